//! Products of few rows with a right operand whose rows are dense.
//!
//! They are bound by reading that operand, so it is read once, as it lies: several of its rows at a time, as far as the
//! sums of a strip of columns stay in the first-level cache. Tiles would walk down a narrow strip of it instead, which is
//! as good until every row lies on pages of its own. Sums are split like those of tiles, so that rounding errors stay
//! small, and they are the same whichever thread takes a column.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

use crate::blocked::Gemm;
use crate::few::finished;
use crate::pack::{Source, View};
use crate::tile::{BLOCK, Isa, Lane, Start};

/// Sums that are worked on at a time, of all rows together.
const STRIP: usize = 2048;
/// Elements of the right operand that are worth a thread of their own.
const SHARE: usize = 1 << 17;
/// Bytes from one row of the right operand to the next from which on tiles are slower than strips.
const FAR: usize = 1 << 12;
/// Bytes of the right operand from which on that matters, since it comes from beyond the second-level cache.
const LARGE: usize = 1 << 19;
/// Columns are dealt out to threads in multiples of as many.
const GRAIN: usize = 16;

/// Some steps of some rows, to be added to the sums of a strip.
pub struct Strip<T> {
    /// Steps to sum over.
    pub depth: usize,
    /// The first row of the left operand; rows are dense.
    pub lhs: *const T,
    /// Elements from one row to the next.
    pub lhs_step: usize,
    /// The first of the right operand's rows.
    pub rhs: *const T,
    /// Elements from one of them to the next.
    pub rhs_step: usize,
    /// The sums, those of a row after those of the other.
    pub sums: *mut T,
    /// Columns of the strip.
    pub width: usize,
}

/// Adds to the sums of a certain number of rows.
pub type ComputeStrip<T> = unsafe fn(&Strip<T>);

/// Whether a product is one of these.
pub fn takes<S: Source<T>, T: Lane>(p: &Gemm<'_, S, T>, rhs: View<S>, isa: &Isa<T>) -> bool {
    let (rows, cols, depth) = p.sizes;
    let far = rhs.row_stride * size_of::<T>() >= FAR && cols.saturating_mul(depth) * size_of::<T>() >= LARGE;
    S::SAME && rhs.col_stride == 1 && rows <= isa.strips.len() && (rows == 1 || far)
}

/// Computes a product that [`takes`] agrees to on at most so many threads.
// SAFETY: as for `blocked::run`; `rhs` is the right operand.
#[expect(unsafe_code, reason = "operands are raw memory")]
pub unsafe fn run<S: Source<T>, T: Lane>(p: &Gemm<'_, S, T>, rhs: View<S>, isa: &Isa<T>, threads: usize) {
    let (m, n, k) = p.sizes;
    // SAFETY: the left operand has these rows and steps.
    let lhs = unsafe { p.dense_lhs() };
    let lhs = lhs.view();
    let grains = n.div_ceil(GRAIN);
    let tasks = threads.min(n.saturating_mul(k) / SHARE).clamp(1, grains);
    pyrite_threads::each(tasks, |task| {
        let (first, end) = (task * grains / tasks * GRAIN, ((task + 1) * grains / tasks * GRAIN).min(n));
        let (mut part, mut sums) = ([T::ZERO; STRIP], [T::ZERO; STRIP]);
        for first in (first..end).step_by(STRIP / m) {
            let width = (STRIP / m).min(end - first);
            let (part, sums) = (&mut part[..m * width], &mut sums[..m * width]);
            for step in (0..k).step_by(BLOCK) {
                let to = if step == 0 { &mut *sums } else { &mut *part };
                to.fill(T::ZERO);
                let strip = Strip {
                    depth: BLOCK.min(k - step),
                    lhs: lhs.at(0, step),
                    lhs_step: lhs.row_stride,
                    rhs: rhs.at(step, first).cast(),
                    rhs_step: rhs.row_stride,
                    sums: to.as_mut_ptr(),
                    width,
                };
                // SAFETY: the operands have these rows and columns, there is a sum for each, and the processor has the
                // instructions of its own table.
                unsafe { isa.strips[m - 1](&strip) };
                if step > 0 {
                    for (sum, part) in sums.iter_mut().zip(&*part) {
                        *sum = T::ONE.times_plus(*part, *sum);
                    }
                }
            }
            for (row, sums) in sums.chunks_exact(width).enumerate() {
                for (col, sum) in sums.iter().enumerate() {
                    // SAFETY: the output has these rows and columns, which are this task's alone, and the bias as many.
                    unsafe {
                        let out = p.out.add(row * p.out_step + first + col);
                        *out = match p.start {
                            Start::Nothing => p.scale.times_plus(*sum, T::ZERO),
                            start => finished(*sum, p.scale, start, *out, |bias| *bias.add(first + col)),
                        };
                    }
                }
            }
        }
    });
    if let Some(finish) = p.finish {
        finish(0..m);
    }
}

macro_rules! strip_kernels {
    ($module:ident, $type:ident, $lanes:literal, $features:literal, [$(($rows:literal $deep:literal))*],
     $vector:ident, $load:ident, $store:ident, $splat:ident, $fma:ident) => {
        /// The strips of one type and one set of instructions.
        #[cfg(target_arch = "x86_64")]
        pub mod $module {
            use super::{ComputeStrip, Strip, x86};
            use x86::$vector as Vector;

            /// The functions for one row, two rows, and so on.
            pub static STRIPS: &[ComputeStrip<$type>] = &[$(strip::<$rows, $deep>),*];

            // SAFETY: callers hand over operands and sums that hold every element, and have asked the processor for the
            // instructions.
            #[expect(unsafe_code, reason = "a microkernel works on raw memory")]
            #[target_feature(enable = $features)]
            unsafe fn strip<const ROWS: usize, const DEEP: usize>(t: &Strip<$type>) {
                let whole = t.depth / DEEP * DEEP;
                // SAFETY: as above.
                unsafe {
                    for step in (0..whole).step_by(DEEP) {
                        add::<ROWS, DEEP>(t, step);
                    }
                    for step in whole..t.depth {
                        add::<ROWS, 1>(t, step);
                    }
                }
            }

            /// Adds some steps.
            // SAFETY: as for `strip`.
            #[expect(unsafe_code, reason = "a microkernel works on raw memory")]
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn add<const ROWS: usize, const DEEP: usize>(t: &Strip<$type>, step: usize) {
                // SAFETY: the operands have these rows and steps.
                unsafe {
                    let number = |row: usize, deep: usize| *t.lhs.add(row * t.lhs_step + step + deep);
                    let left: [[Vector; DEEP]; ROWS] =
                        std::array::from_fn(|row| std::array::from_fn(|deep| x86::$splat(number(row, deep))));
                    let rhs: [*const $type; DEEP] = std::array::from_fn(|deep| t.rhs.add((step + deep) * t.rhs_step));
                    let whole = t.width / $lanes * $lanes;
                    for col in (0..whole).step_by($lanes) {
                        let mut sums: [Vector; ROWS] =
                            std::array::from_fn(|row| x86::$load(t.sums.add(row * t.width + col)));
                        for deep in 0..DEEP {
                            let right = x86::$load(rhs[deep].add(col));
                            for (sum, left) in sums.iter_mut().zip(&left) {
                                *sum = x86::$fma(left[deep], right, *sum);
                            }
                        }
                        for (row, sum) in sums.into_iter().enumerate() {
                            x86::$store(t.sums.add(row * t.width + col), sum);
                        }
                    }
                    for col in whole..t.width {
                        for row in 0..ROWS {
                            let sum = t.sums.add(row * t.width + col);
                            for deep in 0..DEEP {
                                *sum = number(row, deep).mul_add(*rhs[deep].add(col), *sum);
                            }
                        }
                    }
                }
            }
        }
    };
}

strip_kernels!(
    avx512_f32, f32, 16, "avx512f,avx2,fma", [(1 8) (2 8) (3 8) (4 4)],
    __m512, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps
);
strip_kernels!(
    avx512_f64, f64, 8, "avx512f,avx2,fma", [(1 8) (2 8) (3 8) (4 4)],
    __m512d, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_fmadd_pd
);
strip_kernels!(
    avx2_f32, f32, 8, "avx2,fma", [(1 8) (2 4) (3 4) (4 2)],
    __m256, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps
);
strip_kernels!(
    avx2_f64, f64, 4, "avx2,fma", [(1 8) (2 4) (3 4) (4 2)],
    __m256d, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd
);
