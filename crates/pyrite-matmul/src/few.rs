//! Products of few rows with a right operand whose columns are dense, as the weight of a linear layer is.
//!
//! They are bound by reading that operand, so it is read once and as it lies: four columns at a time are multiplied with
//! up to [`Isa::dots`] rows, vectors along the steps of the sum, all sums in registers. Nothing is packed. Sums are taken
//! by lanes, [`BLOCK`] terms each before they are added up, so that rounding errors stay small, and they are the same
//! whichever thread takes a column.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

use crate::blocked::Gemm;
use crate::pack::{Source, View};
use crate::tile::{BLOCK, Isa, Lane, Start};

/// Rows that are few however short the sums are.
const ALWAYS_FEW: usize = 16;
/// Steps from which on adding up lanes takes little of the time.
const LONG: usize = 128;
/// Columns that are summed side by side.
pub const QUAD: usize = 4;
/// Elements of the right operand that are worth a thread of their own.
const SHARE: usize = 1 << 17;

/// Some rows times some columns.
pub struct Dots<T> {
    /// Steps to sum over.
    pub depth: usize,
    /// The first row of the left operand; rows are dense.
    pub lhs: *const T,
    /// Elements from one row to the next.
    pub lhs_step: usize,
    /// The columns of the right operand. There are always four to read.
    pub columns: [*const T; QUAD],
    /// How many of them have a place in the output.
    pub count: usize,
    /// The first element of the output.
    pub out: *mut T,
    /// Elements from one row of the output to the next.
    pub out_step: usize,
    /// The factor of the sums.
    pub scale: T,
    /// What they are added to.
    pub start: Start<T>,
}

/// Computes a certain number of rows.
pub type ComputeDots<T> = unsafe fn(&Dots<T>);

/// Whether a product is one of these: one with less rows than would fill the columns of a tile.
pub fn takes<S: Source<T>, T: Lane>(p: &Gemm<'_, S, T>, rhs: View<S>, isa: &Isa<T>) -> bool {
    let (rows, _, depth) = p.sizes;
    let few = rows < isa.cols && (rows <= ALWAYS_FEW || depth >= LONG);
    S::SAME && rhs.row_stride == 1 && few
}

/// Computes a product that [`takes`] agrees to on at most so many threads.
// SAFETY: as for `blocked::run`; `rhs` is the right operand.
#[expect(unsafe_code, reason = "operands are raw memory")]
pub unsafe fn run<S: Source<T>, T: Lane>(p: &Gemm<'_, S, T>, rhs: View<S>, isa: &Isa<T>, threads: usize) {
    let (m, n, k) = p.sizes;
    // SAFETY: the left operand has these rows and steps.
    let lhs = unsafe { p.dense_lhs() };
    let lhs = lhs.view();
    let height = m.div_ceil(m.div_ceil(isa.dots.len()));
    let quads = n.div_ceil(QUAD);
    let tasks = threads.min(n.saturating_mul(k) / SHARE).clamp(1, quads);
    pyrite_threads::each(tasks, |task| {
        for quad in task * quads / tasks..(task + 1) * quads / tasks {
            let first = quad * QUAD;
            let columns = std::array::from_fn(|at| rhs.at(0, (first + at).min(n - 1)).cast::<T>());
            let start = match p.start {
                Start::Row(bias) => Start::Row(bias.wrapping_add(first)),
                other => other,
            };
            for row in (0..m).step_by(height) {
                let dots = Dots {
                    depth: k,
                    lhs: lhs.at(row, 0),
                    lhs_step: lhs.row_stride,
                    columns,
                    count: QUAD.min(n - first),
                    out: p.out.wrapping_add(row * p.out_step + first),
                    out_step: p.out_step,
                    scale: p.scale,
                    start,
                };
                // SAFETY: the operands have these rows and columns, the output the same, and no other task writes to
                // its columns; the processor has the instructions of its own table.
                unsafe { isa.dots[height.min(m - row) - 1](&dots) };
            }
        }
    });
    if let Some(finish) = p.finish {
        finish(0..m);
    }
}

/// What a sum is worth in the output.
pub fn finished<T: Lane>(sum: T, scale: T, start: Start<T>, out: T, bias: impl FnOnce(*const T) -> T) -> T {
    match start {
        Start::Nothing => scale.times_plus(sum, T::ZERO),
        Start::Scaled(factor) => scale.times_plus(sum, factor.times_plus(out, T::ZERO)),
        Start::Row(row) => scale.times_plus(sum, bias(row)),
    }
}

macro_rules! dot_kernels {
    ($module:ident, $type:ident, $lanes:literal, $features:literal, [$(($rows:literal $sets:literal))*],
     $dot:path, $some:ident, $reduce:ident, $vector:ident, $quad:ident,
     $zero:ident, $load:ident, $add:ident,
     $quad_zero:ident, $quad_load:ident, $quad_store:ident, $quad_splat:ident, $quad_fma:ident, $quad_mul:ident, $quad_add:ident) => {
        /// The dot products of one type and one set of instructions.
        #[cfg(target_arch = "x86_64")]
        pub mod $module {
            use std::arch::x86_64 as x86;
            use x86::{$quad as Quad, $vector as Vector};

            use super::{BLOCK, ComputeDots, Dots, QUAD, Start, finished};

            /// The functions for one row, two rows, and so on.
            pub static DOTS: &[ComputeDots<$type>] = &[$(dots::<$rows, $sets>),*];

            // SAFETY: callers hand over operands and an output that hold every element, and have asked the processor for
            // the instructions.
            #[expect(unsafe_code, reason = "a microkernel works on raw memory")]
            #[target_feature(enable = $features)]
            unsafe fn dots<const ROWS: usize, const SETS: usize>(t: &Dots<$type>) {
                let mut sums = [x86::$quad_zero(); ROWS];
                let mut at = 0;
                while at < t.depth {
                    let end = t.depth.min(at + SETS * BLOCK * $lanes);
                    let mut parts = [[[x86::$zero(); QUAD]; ROWS]; SETS];
                    // SAFETY: all of these steps are left of each row and column.
                    unsafe {
                        while at + SETS * $lanes <= end {
                            for (set, parts) in parts.iter_mut().enumerate() {
                                add::<ROWS, false>(t, at + set * $lanes, $lanes, parts);
                            }
                            at += SETS * $lanes;
                        }
                        while at < end {
                            let rest = $lanes.min(end - at);
                            add::<ROWS, true>(t, at, rest, &mut parts[0]);
                            at += rest;
                        }
                    }
                    let (first, others) = parts.split_at_mut(1);
                    for other in others {
                        for (parts, other) in first[0].as_flattened_mut().iter_mut().zip(other.as_flattened()) {
                            *parts = x86::$add(*parts, *other);
                        }
                    }
                    for (sum, parts) in sums.iter_mut().zip(&first[0]) {
                        *sum = x86::$quad_add(*sum, super::$reduce(*parts));
                    }
                }
                for (row, sum) in sums.into_iter().enumerate() {
                    let out = t.out.wrapping_add(row * t.out_step);
                    // SAFETY: the output has so many columns of each row, and the bias as many.
                    unsafe {
                        if t.count == QUAD {
                            leave(t, sum, out);
                        } else {
                            let mut lanes: [$type; QUAD] = [0.0; QUAD];
                            x86::$quad_store(lanes.as_mut_ptr(), sum);
                            for (col, sum) in lanes[..t.count].iter().enumerate() {
                                let out = out.add(col);
                                *out = finished(*sum, t.scale, t.start, *out, |bias| *bias.add(col));
                            }
                        }
                    }
                }
            }

            /// Adds the products of a vector of steps, or of less than one.
            // SAFETY: so many steps are left of each row and column.
            #[expect(unsafe_code, reason = "a microkernel works on raw memory")]
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn add<const ROWS: usize, const SOME: bool>(
                t: &Dots<$type>,
                at: usize,
                count: usize,
                parts: &mut [[Vector; QUAD]; ROWS],
            ) {
                // SAFETY: as above.
                let load = |from: *const $type| unsafe {
                    if SOME { super::$some(from, count) } else { x86::$load(from) }
                };
                let left: [Vector; ROWS] = std::array::from_fn(|row| load(t.lhs.wrapping_add(row * t.lhs_step + at)));
                for (col, column) in t.columns.iter().enumerate() {
                    let right = load(column.wrapping_add(at));
                    for (left, parts) in left.iter().zip(parts.iter_mut()) {
                        parts[col] = $dot(*left, right, parts[col]);
                    }
                }
            }

            /// Writes four sums.
            // SAFETY: the output and the bias have four elements.
            #[expect(unsafe_code, reason = "a microkernel works on raw memory")]
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn leave(t: &Dots<$type>, sum: Quad, out: *mut $type) {
                let scale = x86::$quad_splat(t.scale);
                // SAFETY: as above.
                unsafe {
                    let value = match t.start {
                        Start::Nothing => x86::$quad_mul(scale, sum),
                        Start::Scaled(factor) => {
                            let kept = x86::$quad_mul(x86::$quad_splat(factor), x86::$quad_load(out));
                            x86::$quad_add(x86::$quad_mul(scale, sum), kept)
                        }
                        Start::Row(bias) => x86::$quad_fma(scale, sum, x86::$quad_load(bias)),
                    };
                    x86::$quad_store(out, value);
                }
            }
        }
    };
}

dot_kernels!(
    avx512_f32, f32, 16, "avx512f,avx2,fma", [(1 2) (2 1) (3 1) (4 1) (5 1) (6 1)],
    x86::_mm512_fmadd_ps, some_512, reduce_512, __m512, __m128,
    _mm512_setzero_ps, _mm512_loadu_ps, _mm512_add_ps,
    _mm_setzero_ps, _mm_loadu_ps, _mm_storeu_ps, _mm_set1_ps, _mm_fmadd_ps, _mm_mul_ps, _mm_add_ps
);
dot_kernels!(
    avx512_f64, f64, 8, "avx512f,avx2,fma", [(1 2) (2 1) (3 1) (4 1) (5 1) (6 1)],
    x86::_mm512_fmadd_pd, some_512_f64, reduce_512_f64, __m512d, __m256d,
    _mm512_setzero_pd, _mm512_loadu_pd, _mm512_add_pd,
    _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_mul_pd, _mm256_add_pd
);
dot_kernels!(
    avx2_f32, f32, 8, "avx2,fma", [(1 2) (2 1) (3 1)],
    x86::_mm256_fmadd_ps, some_256, reduce_256, __m256, __m128,
    _mm256_setzero_ps, _mm256_loadu_ps, _mm256_add_ps,
    _mm_setzero_ps, _mm_loadu_ps, _mm_storeu_ps, _mm_set1_ps, _mm_fmadd_ps, _mm_mul_ps, _mm_add_ps
);
dot_kernels!(
    avx2_f64, f64, 4, "avx2,fma", [(1 2) (2 1) (3 1)],
    x86::_mm256_fmadd_pd, some_256_f64, reduce_256_f64, __m256d, __m256d,
    _mm256_setzero_pd, _mm256_loadu_pd, _mm256_add_pd,
    _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_mul_pd, _mm256_add_pd
);
dot_kernels!(
    avx512_pairs, f32, 16, "avx512f,avx512bf16,avx2,fma", [(1 2) (2 1) (3 1) (4 1) (5 1) (6 1)],
    crate::tile::dot_pairs, some_512, reduce_512, __m512, __m128,
    _mm512_setzero_ps, _mm512_loadu_ps, _mm512_add_ps,
    _mm_setzero_ps, _mm_loadu_ps, _mm_storeu_ps, _mm_set1_ps, _mm_fmadd_ps, _mm_mul_ps, _mm_add_ps
);

/// Some numbers, less than a vector of them, and zeros behind them.
// SAFETY: callers make sure that so many numbers are there.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vectors are read from memory")]
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn some_512(from: *const f32, count: usize) -> x86::__m512 {
    // SAFETY: as above; what the mask leaves out is not read.
    unsafe { x86::_mm512_maskz_loadu_ps(((1u32 << count) - 1) as u16, from) }
}

// SAFETY: as for `some_512`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vectors are read from memory")]
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn some_512_f64(from: *const f64, count: usize) -> x86::__m512d {
    // SAFETY: as above.
    unsafe { x86::_mm512_maskz_loadu_pd(((1u32 << count) - 1) as u8, from) }
}

// SAFETY: as for `some_512`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vectors are read from memory")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn some_256(from: *const f32, count: usize) -> x86::__m256 {
    let lanes = x86::_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mask = x86::_mm256_cmpgt_epi32(x86::_mm256_set1_epi32(count as i32), lanes);
    // SAFETY: as above.
    unsafe { x86::_mm256_maskload_ps(from, mask) }
}

// SAFETY: as for `some_512`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vectors are read from memory")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn some_256_f64(from: *const f64, count: usize) -> x86::__m256d {
    let mask = x86::_mm256_cmpgt_epi64(x86::_mm256_set1_epi64x(count as i64), x86::_mm256_setr_epi64x(0, 1, 2, 3));
    // SAFETY: as above.
    unsafe { x86::_mm256_maskload_pd(from, mask) }
}

/// The sums of the lanes of four vectors.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn reduce_512([a, b, c, d]: [x86::__m512; QUAD]) -> x86::__m128 {
    let ab = x86::_mm512_add_ps(x86::_mm512_unpacklo_ps(a, b), x86::_mm512_unpackhi_ps(a, b));
    let cd = x86::_mm512_add_ps(x86::_mm512_unpacklo_ps(c, d), x86::_mm512_unpackhi_ps(c, d));
    let all = x86::_mm512_add_ps(x86::_mm512_shuffle_ps::<0x44>(ab, cd), x86::_mm512_shuffle_ps::<0xEE>(ab, cd));
    let high = x86::_mm256_castpd_ps(x86::_mm512_extractf64x4_pd::<1>(x86::_mm512_castps_pd(all)));
    let half = x86::_mm256_add_ps(x86::_mm512_castps512_ps256(all), high);
    x86::_mm_add_ps(x86::_mm256_castps256_ps128(half), x86::_mm256_extractf128_ps::<1>(half))
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn reduce_512_f64(parts: [x86::__m512d; QUAD]) -> x86::__m256d {
    reduce_256_f64(
        parts.map(|part| x86::_mm256_add_pd(x86::_mm512_castpd512_pd256(part), x86::_mm512_extractf64x4_pd::<1>(part))),
    )
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma")]
fn reduce_256([a, b, c, d]: [x86::__m256; QUAD]) -> x86::__m128 {
    let ab = x86::_mm256_add_ps(x86::_mm256_unpacklo_ps(a, b), x86::_mm256_unpackhi_ps(a, b));
    let cd = x86::_mm256_add_ps(x86::_mm256_unpacklo_ps(c, d), x86::_mm256_unpackhi_ps(c, d));
    let all = x86::_mm256_add_ps(x86::_mm256_shuffle_ps::<0x44>(ab, cd), x86::_mm256_shuffle_ps::<0xEE>(ab, cd));
    x86::_mm_add_ps(x86::_mm256_castps256_ps128(all), x86::_mm256_extractf128_ps::<1>(all))
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma")]
fn reduce_256_f64([a, b, c, d]: [x86::__m256d; QUAD]) -> x86::__m256d {
    let ab = x86::_mm256_add_pd(x86::_mm256_unpacklo_pd(a, b), x86::_mm256_unpackhi_pd(a, b));
    let cd = x86::_mm256_add_pd(x86::_mm256_unpacklo_pd(c, d), x86::_mm256_unpackhi_pd(c, d));
    x86::_mm256_add_pd(x86::_mm256_permute2f128_pd::<0x20>(ab, cd), x86::_mm256_permute2f128_pd::<0x31>(ab, cd))
}
