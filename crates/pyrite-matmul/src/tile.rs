//! Microkernels: one tile of a product, with its sums in registers.
//!
//! A tile has up to [`Isa::rows`] rows and exactly [`Isa::cols`] columns. Its left operand is a panel whose rows lie
//! [`PANEL`] elements apart, so that all of them are reached from one address; its right operand has a row of
//! [`Isa::cols`] elements for each step. The rest of a program decides what those are.
//!
//! There is one function for each number of rows, so that a matrix is cut into panels of nearly equal height and no
//! row is computed in vain.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

use crate::few::{self, ComputeDots};
use crate::row::{self, ComputeStrip};

/// Elements from one row of a left panel to the next: as many steps as a panel has, and a cache line more, so that its
/// rows do not all fall into the same set of the cache.
pub const PANEL: usize = DEPTH + 16;

/// The most steps of a panel: a left one and a right one fit the first-level cache together. The sums of a tile go to the
/// output, which may be far away, once in so many steps.
pub const DEPTH: usize = 256;

/// Steps that are summed in registers before they are added to the sums before them. Longer sums round further away from
/// double precision than torch's do.
pub const BLOCK: usize = 64;

/// Steps that the loops of microkernels take at a time.
const UNROLLED: usize = 4;

/// Elements from one hint to the next: a cache line of single precision, and every second one of double.
pub const LINE: usize = 16;

/// How many steps the panels have, of a sum of so many: about the same number each.
pub fn depth_of(steps: usize) -> usize {
    steps.div_ceil(steps.div_ceil(DEPTH).max(1))
}

/// What the sums of a tile are added to.
#[derive(Clone, Copy)]
pub enum Start<T> {
    /// Nothing.
    Nothing,
    /// What the output holds, times a factor.
    Scaled(T),
    /// The same row of numbers for all rows.
    Row(*const T),
}

/// A tile to compute.
pub struct Tile<T> {
    /// Steps to sum over.
    pub depth: usize,
    /// The left panel.
    pub lhs: *const T,
    /// The right panel.
    pub rhs: *const T,
    /// Elements from one row of the right panel to the next.
    pub rhs_step: usize,
    /// Where the rows begin instead, for [`Isa::indirect`]: so many elements behind `rhs` each.
    pub starts: *const usize,
    /// The first element of the output.
    pub out: *mut T,
    /// Elements from one row of the output to the next.
    pub out_step: usize,
    /// The factor of the sums.
    pub scale: T,
    /// What they are added to.
    pub start: Start<T>,
    /// What is wanted soon and lies far away: where to begin, and how far it is from one cache line to the next. A block of
    /// steps asks for one line now and then, so that nothing waits for them. They need not be there.
    pub hints: [(*const T, usize); 4],
}

impl<T> Tile<T> {
    /// Steps that ask for a line each.
    pub const HINTED: usize = BLOCK / UNROLLED;
}

/// Computes a tile of a certain number of rows.
pub type Compute<T> = unsafe fn(&Tile<T>);

/// The microkernels of a processor for one type.
pub struct Isa<T: 'static> {
    /// Columns of a tile.
    pub cols: usize,
    /// The functions for one row, two rows, and so on.
    pub compute: &'static [Compute<T>],
    /// The same for right operands whose rows begin anywhere.
    pub indirect: &'static [Compute<T>],
    /// Copies a square whose columns are dense into rows: source, elements between its columns, target, elements
    /// between its rows. Its side is [`Isa::square`].
    pub transpose: unsafe fn(*const T, usize, *mut T, usize),
    /// The side of the square that `transpose` copies.
    pub square: usize,
    /// The functions for products of few rows: one row, two rows, and so on.
    pub dots: &'static [ComputeDots<T>],
    /// The same for right operands with dense rows.
    pub strips: &'static [ComputeStrip<T>],
    /// The same for tiles of half as many columns.
    pub narrow: Option<&'static Isa<T>>,
}

impl<T> Isa<T> {
    /// The most rows of a tile.
    pub fn rows(&self) -> usize {
        self.compute.len()
    }
}

/// A type that has microkernels.
pub trait Lane: Copy + Send + Sync + PartialEq + 'static {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The nearest value.
    fn rounded(value: f64) -> Self;
    /// `self·factor + addend`.
    #[must_use]
    fn times_plus(self, factor: Self, addend: Self) -> Self;
    /// The microkernels that the processor at hand can run, the best first.
    fn isas() -> &'static [&'static Isa<Self>];
}

macro_rules! microkernels {
    ($module:ident, $type:ident, $lanes:literal, $features:literal, $strips:expr, [$($rows:literal)*], $transpose:ident, $square:literal,
     $dot:path, $vector:ident,
     $zero:ident, $load:ident, $store:ident, $splat:ident, $fma:ident, $mul:ident, $add:ident) => {
        #[cfg(target_arch = "x86_64")]
        mod $module {
            use super::{BLOCK, Isa, PANEL, Start, Tile, UNROLLED, x86};
            use x86::$vector as Vector;

            pub static ISA: Isa<$type> = Isa {
                cols: 2 * $lanes,
                compute: &[$(tile::<$rows, 2, false>),*],
                indirect: &[$(tile::<$rows, 2, true>),*],
                transpose: super::$transpose,
                square: $square,
                dots: super::few::$module::DOTS,
                strips: $strips,
                narrow: Some(&NARROW),
            };

            static NARROW: Isa<$type> = Isa {
                cols: $lanes,
                compute: &[$(tile::<$rows, 1, false>),*],
                indirect: &[$(tile::<$rows, 1, true>),*],
                narrow: None,
                ..ISA
            };

            // SAFETY: callers hand over panels and an output that hold every element of the tile, and have asked the
            // processor for the instructions.
            #[expect(unsafe_code, reason = "a microkernel works on raw memory")]
            #[target_feature(enable = $features)]
            unsafe fn tile<const ROWS: usize, const VECTORS: usize, const INDIRECT: bool>(t: &Tile<$type>) {
                let mut kept = [[x86::$zero(); VECTORS]; ROWS];
                let (mut lhs, mut rhs, mut starts, mut rest) = (t.lhs, t.rhs, t.starts, t.depth);
                let mut hint = 0;
                while rest > BLOCK {
                    // SAFETY: as above, for the steps that are left.
                    let sums = unsafe { block::<ROWS, VECTORS, INDIRECT>((lhs, rhs), (t.rhs_step, starts), BLOCK, t.hints[hint % t.hints.len()]) };
                    for (kept, sums) in kept.iter_mut().zip(sums) {
                        for (kept, sum) in kept.iter_mut().zip(sums) {
                            *kept = x86::$add(*kept, sum);
                        }
                    }
                    lhs = lhs.wrapping_add(BLOCK);
                    if INDIRECT {
                        starts = starts.wrapping_add(BLOCK);
                    } else {
                        rhs = rhs.wrapping_add(BLOCK * t.rhs_step);
                    }
                    rest -= BLOCK;
                    hint += 1;
                }
                // SAFETY: as above, for the steps that are left.
                let mut sums = unsafe { block::<ROWS, VECTORS, INDIRECT>((lhs, rhs), (t.rhs_step, starts), rest, t.hints[hint % t.hints.len()]) };
                if t.depth > BLOCK {
                    for (kept, sums) in kept.iter().zip(&mut sums) {
                        for (kept, sum) in kept.iter().zip(sums) {
                            *sum = x86::$add(*kept, *sum);
                        }
                    }
                }
                let scale = x86::$splat(t.scale);
                for (row, sums) in sums.iter().enumerate() {
                    for (half, sum) in sums.iter().enumerate() {
                        // SAFETY: as above.
                        unsafe {
                            let out = t.out.add(row * t.out_step + half * $lanes);
                            let value = match t.start {
                                Start::Nothing => x86::$mul(scale, *sum),
                                Start::Scaled(factor) if factor == 1.0 => x86::$fma(scale, *sum, x86::$load(out)),
                                Start::Scaled(factor) => {
                                    x86::$add(x86::$mul(scale, *sum), x86::$mul(x86::$splat(factor), x86::$load(out)))
                                }
                                Start::Row(bias) => x86::$fma(scale, *sum, x86::$load(bias.add(half * $lanes))),
                            };
                            x86::$store(out, value);
                        }
                    }
                }
            }

            /// The sums over some steps.
            // SAFETY: as for `tile`.
            #[expect(unsafe_code, reason = "a microkernel works on raw memory")]
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn block<const ROWS: usize, const VECTORS: usize, const INDIRECT: bool>(
                (mut lhs, mut rhs): (*const $type, *const $type),
                (rhs_step, mut starts): (usize, *const usize),
                depth: usize,
                (mut hint, hint_step): (*const $type, usize),
            ) -> [[Vector; VECTORS]; ROWS] {
                let mut sums = [[x86::$zero(); VECTORS]; ROWS];
                let mut steps = |count: usize| {
                    for step in 0..count {
                        // SAFETY: as above.
                        unsafe {
                            let row = rhs.add(if INDIRECT { *starts.add(step) } else { step * rhs_step });
                            let right: [Vector; VECTORS] =
                                std::array::from_fn(|half| x86::$load(row.add(half * $lanes)));
                            for (row, sums) in sums.iter_mut().enumerate() {
                                let left = x86::$splat(*lhs.add(row * PANEL + step));
                                for (sum, right) in sums.iter_mut().zip(right) {
                                    *sum = $dot(left, right, *sum);
                                }
                            }
                        }
                    }
                    lhs = lhs.wrapping_add(count);
                    if INDIRECT {
                        starts = starts.wrapping_add(count);
                    } else {
                        rhs = rhs.wrapping_add(count * rhs_step);
                    }
                };
                // Several at a time, so that counting takes no slots from the arithmetic.
                for _ in 0..depth / UNROLLED {
                    x86::_mm_prefetch::<{ x86::_MM_HINT_T1 }>(hint.cast::<i8>());
                    hint = hint.wrapping_add(hint_step);
                    steps(UNROLLED);
                }
                for _ in 0..depth % UNROLLED {
                    steps(1);
                }
                sums
            }
        }
    };
}

microkernels!(
    avx512_f32, f32, 16, "avx512f,avx2,fma", super::row::avx512_f32::STRIPS, [1 2 3 4 5 6 7 8 9 10 11 12 13 14], transpose_f32, 8, x86::_mm512_fmadd_ps, __m512,
    _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_mul_ps, _mm512_add_ps
);
microkernels!(
    avx512_f64, f64, 8, "avx512f,avx2,fma", super::row::avx512_f64::STRIPS, [1 2 3 4 5 6 7 8 9 10 11 12 13 14], transpose_f64, 4, x86::_mm512_fmadd_pd, __m512d,
    _mm512_setzero_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_mul_pd, _mm512_add_pd
);
microkernels!(
    avx2_f32, f32, 8, "avx2,fma", super::row::avx2_f32::STRIPS, [1 2 3 4 5 6], transpose_f32, 8, x86::_mm256_fmadd_ps, __m256,
    _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_mul_ps, _mm256_add_ps
);
microkernels!(
    avx2_f64, f64, 4, "avx2,fma", super::row::avx2_f64::STRIPS, [1 2 3 4 5 6], transpose_f64, 4, x86::_mm256_fmadd_pd, __m256d,
    _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_mul_pd, _mm256_add_pd
);

microkernels!(
    avx512_pairs, f32, 16, "avx512f,avx512bf16,avx2,fma", &[], [1 2 3 4 5 6 7 8 9 10 11 12 13 14], transpose_f32, 8, super::dot_pairs, __m512,
    _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_mul_ps, _mm512_add_ps
);

/// Adds the products of pairs of `bf16`, which lie in the bits of single-precision numbers.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
pub fn dot_pairs(left: x86::__m512, right: x86::__m512, sum: x86::__m512) -> x86::__m512 {
    let pairs = |bits: x86::__m512| {
        // SAFETY: both types are 512 bits without a meaning of their own.
        #[expect(unsafe_code, reason = "there is no intrinsic for this cast")]
        unsafe {
            std::mem::transmute::<x86::__m512, x86::__m512bh>(bits)
        }
    };
    x86::_mm512_dpbf16_ps(sum, pairs(left), pairs(right))
}

/// The microkernels for pairs of `bf16`, if the processor has the instruction.
pub fn pairs() -> Option<&'static Isa<f32>> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512f") {
        return Some(&avx512_pairs::ISA);
    }
    None
}

// SAFETY: callers have asked for AVX2, and both squares lie within their memory.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a transpose in registers works on raw memory")]
#[target_feature(enable = "avx2")]
unsafe fn transpose_f32(from: *const f32, from_step: usize, to: *mut f32, to_step: usize) {
    use x86::{
        _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_unpackhi_ps,
        _mm256_unpacklo_ps,
    };
    // SAFETY: as above.
    let column = |i: usize| unsafe { _mm256_loadu_ps(from.add(i * from_step)) };
    let pair = |i: usize| {
        let (a, b) = (column(i), column(i + 1));
        (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b))
    };
    let four = |i: usize| {
        let ((a, b), (c, d)) = (pair(i), pair(i + 2));
        [
            _mm256_shuffle_ps::<0x44>(a, c),
            _mm256_shuffle_ps::<0xEE>(a, c),
            _mm256_shuffle_ps::<0x44>(b, d),
            _mm256_shuffle_ps::<0xEE>(b, d),
        ]
    };
    let (low, high) = (four(0), four(4));
    for i in 0..4 {
        // SAFETY: as above.
        unsafe {
            _mm256_storeu_ps(to.add(i * to_step), _mm256_permute2f128_ps::<0x20>(low[i], high[i]));
            _mm256_storeu_ps(to.add((i + 4) * to_step), _mm256_permute2f128_ps::<0x31>(low[i], high[i]));
        }
    }
}

// SAFETY: callers have asked for AVX2, and both squares lie within their memory.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a transpose in registers works on raw memory")]
#[target_feature(enable = "avx2")]
unsafe fn transpose_f64(from: *const f64, from_step: usize, to: *mut f64, to_step: usize) {
    use x86::{_mm256_loadu_pd, _mm256_permute2f128_pd, _mm256_storeu_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd};
    // SAFETY: as above.
    let column = |i: usize| unsafe { _mm256_loadu_pd(from.add(i * from_step)) };
    let pair = |i: usize| {
        let (a, b) = (column(i), column(i + 1));
        [_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)]
    };
    let (low, high) = (pair(0), pair(2));
    for i in 0..2 {
        // SAFETY: as above.
        unsafe {
            _mm256_storeu_pd(to.add(i * to_step), _mm256_permute2f128_pd::<0x20>(low[i], high[i]));
            _mm256_storeu_pd(to.add((i + 2) * to_step), _mm256_permute2f128_pd::<0x31>(low[i], high[i]));
        }
    }
}

macro_rules! lane {
    ($type:ident, $avx512:ident, $avx2:ident) => {
        impl Lane for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            fn rounded(value: f64) -> Self {
                value as $type
            }
            fn times_plus(self, factor: Self, addend: Self) -> Self {
                self * factor + addend
            }
            fn isas() -> &'static [&'static Isa<Self>] {
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    static ALL: [&Isa<$type>; 2] = [&$avx512::ISA, &$avx2::ISA];
                    return if is_x86_feature_detected!("avx512f") { &ALL } else { &ALL[1..] };
                }
                &[]
            }
        }
    };
}

lane!(f32, avx512_f32, avx2_f32);
lane!(f64, avx512_f64, avx2_f64);
