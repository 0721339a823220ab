//! Products of a single row.
//!
//! They are bound by memory: every element of the right operand counts once. So it is read once, as it lies: column by
//! column where columns are dense, as those of a transposed weight are, else row by row onto a strip of sums that the
//! first-level cache holds. Sums are split like those of tiles, so that rounding errors stay small.

use crate::tile::{BLOCK, Lane};
use crate::{Matrix, Onto, Shape, Threads};

/// Columns whose sums are worked on at a time, where rows are dense.
const STRIP: usize = 512;
/// Elements of the right operand that are worth a thread of their own.
const SHARE: usize = 1 << 17;
/// Columns that are summed side by side, where columns are dense.
pub const SIDE_BY_SIDE: usize = 4;

/// Whether a product is one of these.
pub fn takes<T>(shape: Shape, rhs: Matrix<'_, T>) -> bool {
    let dense = rhs.shape.row_stride == 1 || rhs.shape.col_stride == 1;
    shape.rows == 1 && (shape.col_stride == 1 || shape.cols == 1) && dense
}

/// Computes a product that [`takes`] agrees to. The processor has instructions for [`Lane::isas`].
///
/// # Panics
/// When a matrix leaves its slice.
pub fn run<T: Lane>(out: &mut [T], lhs: Matrix<'_, T>, rhs: Matrix<'_, T>, scale: T, onto: Onto<T>, threads: Threads) {
    let (depth, cols) = (rhs.shape.rows, rhs.shape.cols);
    let copied: Vec<T>;
    let x = if lhs.shape.col_stride == 1 || depth == 1 {
        &lhs.data[..depth]
    } else {
        copied = (0..depth).map(|at| lhs.data[at * lhs.shape.col_stride]).collect();
        &copied
    };
    let parts = threads.count().min(depth.saturating_mul(cols) / SHARE).max(1);
    let size = cols.div_ceil(parts).next_multiple_of(16);
    pyrite_threads::chunks(&mut out[..cols], size, |part, out| {
        let first = part * size;
        for (strip, out) in out.chunks_mut(STRIP).enumerate() {
            let first = first + strip * STRIP;
            let mut sums = [T::ZERO; STRIP];
            let sums = &mut sums[..out.len()];
            if rhs.shape.row_stride == 1 && (depth > 1 || rhs.shape.col_stride != 1) {
                by_columns(x, rhs, first, sums);
            } else {
                by_rows(x, rhs, first, sums);
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = match onto {
                    Onto::Nothing => scale.times_plus(*sum, T::ZERO),
                    Onto::Scaled(factor) => scale.times_plus(*sum, factor.times_plus(*out, T::ZERO)),
                };
            }
        }
    });
}

/// The sums of columns from `first` on, each of which is dense.
fn by_columns<T: Lane>(x: &[T], rhs: Matrix<'_, T>, first: usize, sums: &mut [T]) {
    for (four, sums) in sums.chunks_mut(SIDE_BY_SIDE).enumerate() {
        let first = first + four * SIDE_BY_SIDE;
        let last = first + sums.len() - 1;
        let column = |at: usize| &rhs.data[at.min(last) * rhs.shape.col_stride..][..x.len()];
        let found = T::dots(x, std::array::from_fn(|at| column(first + at)));
        sums.copy_from_slice(&found[..sums.len()]);
    }
}

/// The sums of columns from `first` on, where rows are dense.
fn by_rows<T: Lane>(x: &[T], rhs: Matrix<'_, T>, first: usize, sums: &mut [T]) {
    let step = rhs.shape.row_stride;
    let mut part = [T::ZERO; STRIP];
    let part = &mut part[..sums.len()];
    for (block, x) in x.chunks(BLOCK).enumerate() {
        let begin = block * BLOCK * step + first;
        let end = begin + (x.len() - 1) * step + part.len();
        part.fill(T::ZERO);
        T::add_rows(part, x, &rhs.data[begin..end], step);
        for (sum, part) in sums.iter_mut().zip(&*part) {
            *sum = T::ONE.times_plus(*part, *sum);
        }
    }
}

macro_rules! row_kernels {
    ($type:ident, $module:ident, $features:literal, $lanes:literal,
     $zero:ident, $load:ident, $store:ident, $fma:ident, $add:ident) => {
        /// The loops of single rows, for one type and one set of instructions.
        #[cfg(target_arch = "x86_64")]
        pub mod $module {
            use std::arch::x86_64 as x86;

            use super::SIDE_BY_SIDE;

            /// Elements of two vectors.
            const LANES: usize = 2 * $lanes;

            /// `x` times each of some columns.
            #[target_feature(enable = $features)]
            pub fn dots(x: &[$type], columns: [&[$type]; SIDE_BY_SIDE]) -> [$type; SIDE_BY_SIDE] {
                let columns = columns.map(|column| &column[..x.len()]);
                let mut sums = [[x86::$zero(); 2]; SIDE_BY_SIDE];
                let whole = x.len() / LANES * LANES;
                for at in (0..whole).step_by(LANES) {
                    // SAFETY: `x` and the columns, which are as long, have two vectors from here on.
                    #[expect(unsafe_code, reason = "vectors are read from memory")]
                    unsafe {
                        let left = x.as_ptr().add(at);
                        let left = [x86::$load(left), x86::$load(left.add($lanes))];
                        for (sums, column) in sums.iter_mut().zip(columns) {
                            let right = column.as_ptr().add(at);
                            sums[0] = x86::$fma(left[0], x86::$load(right), sums[0]);
                            sums[1] = x86::$fma(left[1], x86::$load(right.add($lanes)), sums[1]);
                        }
                    }
                }
                std::array::from_fn(|number| {
                    let mut lanes: [$type; $lanes] = [0.0; $lanes];
                    // SAFETY: there is room for a vector.
                    #[expect(unsafe_code, reason = "vectors are written to memory")]
                    unsafe {
                        x86::$store(lanes.as_mut_ptr(), x86::$add(sums[number][0], sums[number][1]));
                    }
                    for (at, (x, w)) in x[whole..].iter().zip(&columns[number][whole..]).enumerate() {
                        lanes[at % $lanes] = x.mul_add(*w, lanes[at % $lanes]);
                    }
                    let mut width = $lanes / 2;
                    while width > 0 {
                        for at in 0..width {
                            lanes[at] += lanes[at + width];
                        }
                        width /= 2;
                    }
                    lanes[0]
                })
            }

            /// Adds rows, each times its number, to sums; rows begin `step` elements apart.
            #[target_feature(enable = $features)]
            pub fn add_rows(sums: &mut [$type], x: &[$type], rows: &[$type], step: usize) {
                let (fours, rest) = x.as_chunks::<4>();
                let width = sums.len();
                let row = |number: usize| &rows[number * step..][..width];
                let mut at = 0;
                for four in fours {
                    let [a, b, c, d] = std::array::from_fn(|number| row(at + number));
                    let inputs = a.iter().zip(b).zip(c.iter().zip(d));
                    for (sum, ((a, b), (c, d))) in sums.iter_mut().zip(inputs) {
                        let first = four[1].mul_add(*b, four[0] * *a);
                        let second = four[3].mul_add(*d, four[2] * *c);
                        *sum += first + second;
                    }
                    at += 4;
                }
                for x in rest {
                    for (sum, w) in sums.iter_mut().zip(row(at)) {
                        *sum = x.mul_add(*w, *sum);
                    }
                    at += 1;
                }
            }
        }
    };
}

row_kernels!(
    f32,
    avx512_f32,
    "avx512f",
    16,
    _mm512_setzero_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps
);
row_kernels!(
    f64,
    avx512_f64,
    "avx512f",
    8,
    _mm512_setzero_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_add_pd
);
row_kernels!(
    f32,
    avx2_f32,
    "avx2,fma",
    8,
    _mm256_setzero_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    _mm256_add_ps
);
row_kernels!(
    f64,
    avx2_f64,
    "avx2,fma",
    4,
    _mm256_setzero_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    _mm256_add_pd
);

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 7919 + seed) % 23) as f64 - 11.0).collect()
    }

    fn every_order_agrees<T: Lane + std::fmt::Debug>(of: fn(f64) -> T) {
        if T::isas().is_empty() {
            return;
        }
        for (k, n) in [(1, 1), (1, 40), (3, 5), (64, 64), (65, 700), (700, 33), (301, 1025), (2, 1)] {
            let (a, b) = (numbers(2 * k, 1), numbers(k * n, 2));
            let cast = |data: &[f64]| data.iter().map(|x| of(*x)).collect::<Vec<T>>();
            let transposed: Vec<f64> = (0..k * n).map(|i| b[i % k * n + i / k]).collect();
            let (x, rows, columns) = (cast(&a), cast(&b), cast(&transposed));
            for (stride, threads) in [(1, Threads::One), (2, Threads::All), (0, Threads::All)] {
                let lhs = Matrix { data: &x, shape: Shape { rows: 1, cols: k, row_stride: 0, col_stride: stride } };
                let sum = |j: usize| (0..k).map(|l| a[l * stride] * b[l * n + j]).sum::<f64>();
                let right = [
                    Matrix { data: &rows, shape: Shape::rows_first(k, n) },
                    Matrix { data: &columns, shape: Shape::rows_first(n, k).transposed() },
                ];
                for rhs in right {
                    let mut out = vec![of(5.0); n];
                    run(&mut out, lhs, rhs, of(2.0), Onto::Scaled(of(-1.0)), threads);
                    let expected: Vec<T> = (0..n).map(|j| of(2.0 * sum(j) - 5.0)).collect();
                    assert_eq!(out, expected, "{k} {n} {stride}");
                    run(&mut out, lhs, rhs, of(1.0), Onto::Nothing, threads);
                    assert_eq!(out, (0..n).map(|j| of(sum(j))).collect::<Vec<T>>(), "{k} {n} {stride}");
                }
            }
        }
    }

    #[test]
    fn a_single_row_is_multiplied_whichever_way_the_matrix_lies() {
        every_order_agrees(|x| x as f32);
        every_order_agrees(|x| x);
    }
}
