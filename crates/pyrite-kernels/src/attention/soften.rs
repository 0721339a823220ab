//! Rows of scores as weights: the elementwise loops between the matmuls.

#![expect(clippy::inline_always, reason = "every function here is part of a `Loop`, which must be inlined")]

use pyrite_matmul::{Lane, Number, Source};

use crate::simd::{Loop, vectorized};

/// Numbers that are compared or summed side by side.
const LANES: usize = 32;

/// A type that scores are computed in.
pub trait Score: Lane + Source<Self> + Number {
    /// Less than any number.
    const LEAST: Self;
    /// The sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The difference.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// The product.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// The first of two unless the second is larger.
    #[must_use]
    fn or_larger(self, other: Self) -> Self;
    /// The exponential of at most 88; NaN stays NaN.
    #[must_use]
    fn exp<const FUSED: bool>(self) -> Self;
    /// The natural logarithm.
    #[must_use]
    fn ln(self) -> Self;
    /// One divided by it.
    #[must_use]
    fn inverse(self) -> Self;
}

macro_rules! score {
    ($($type:ident, |$x:ident, $fused:ident| $exp:expr;)*) => {
        $(impl Score for $type {
            const LEAST: Self = $type::NEG_INFINITY;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn or_larger(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
            #[inline(always)]
            fn exp<const $fused: bool>(self) -> Self {
                let $x = self;
                $exp
            }
            fn ln(self) -> Self {
                $type::ln(self)
            }
            fn inverse(self) -> Self {
                1.0 / self
            }
        })*
    };
}

score! {
    f32, |x, FUSED| exponential::<FUSED>(x);
    f64, |x, FUSED| x.exp();
}

#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    // The fused operation is a slow call where it is not an instruction.
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// The exponential function of `x ≤ 88` to two units in the last place; below -87 it is zero.
#[inline(always)]
fn exponential<const FUSED: bool>(x: f32) -> f32 {
    /// Adding this leaves an integer in the low bits, in two's complement.
    const ROUND: f32 = 12_582_912.0;
    /// The logarithm of two in two parts, the first with so few bits that its multiples are exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const SMALLEST: f32 = -87.0;
    let shifted = multiply_add::<FUSED>(if x < SMALLEST { SMALLEST } else { x }, std::f32::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let r = multiply_add::<FUSED>(whole, -LN_2[0], x);
    let r = multiply_add::<FUSED>(whole, -LN_2[1], r);
    let p = multiply_add::<FUSED>(r, 1.0 / 5_040.0, 1.0 / 720.0);
    let p = multiply_add::<FUSED>(p, r, 1.0 / 120.0);
    let p = multiply_add::<FUSED>(p, r, 1.0 / 24.0);
    let p = multiply_add::<FUSED>(p, r, 1.0 / 6.0);
    let p = multiply_add::<FUSED>(p, r, 0.5);
    let p = multiply_add::<FUSED>(p * r, r, r) + 1.0;
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < SMALLEST { 0.0 } else { p * power }
}

/// Turns rows of scores into exponentials below the largest score so far.
pub struct Soften<'a, T> {
    /// The scores, rows one after the other.
    pub scores: &'a mut [T],
    pub cols: usize,
    /// Each row's largest score so far.
    pub most: &'a mut [T],
    /// Each row's sum of exponentials so far.
    pub sum: &'a mut [T],
    /// Receives the factor of what each row has added up so far.
    pub factor: &'a mut [T],
}

impl<T: Score> Loop for Soften<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (i, row) in self.scores.chunks_exact_mut(self.cols).enumerate() {
            let before = self.most[i];
            let mut most = largest(row, before);
            if most == T::LEAST {
                // Comparisons pass over NaN.
                most = row.iter().copied().find(|score| *score != T::LEAST).unwrap_or(most);
            }
            if most == T::LEAST {
                // No key has been seen yet.
                row.fill(T::ZERO);
                self.factor[i] = T::ONE;
                continue;
            }
            let sum = exponentials::<FUSED, T>(row, most);
            let factor = if most == before { T::ONE } else { before.minus(most).exp::<FUSED>() };
            self.sum[i] = self.sum[i].times(factor).plus(sum);
            self.most[i] = most;
            self.factor[i] = factor;
        }
    }
}

#[inline(always)]
fn largest<T: Score>(row: &[T], before: T) -> T {
    let mut lanes = [before; LANES];
    let parts = row.chunks_exact(LANES);
    let rest = parts.remainder();
    for part in parts {
        for (most, score) in lanes.iter_mut().zip(part) {
            *most = most.or_larger(*score);
        }
    }
    rest.iter().chain(&lanes).fold(before, |most, score| most.or_larger(*score))
}

/// Replaces scores by their exponentials below `most` and returns their sum.
#[inline(always)]
fn exponentials<const FUSED: bool, T: Score>(row: &mut [T], most: T) -> T {
    let mut lanes = [T::ZERO; LANES];
    let mut parts = row.chunks_exact_mut(LANES);
    for part in &mut parts {
        for (sum, score) in lanes.iter_mut().zip(part) {
            *score = score.minus(most).exp::<FUSED>();
            *sum = sum.plus(*score);
        }
    }
    let mut last = T::ZERO;
    for score in parts.into_remainder() {
        *score = score.minus(most).exp::<FUSED>();
        last = last.plus(*score);
    }
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        for i in 0..count {
            lanes[i] = lanes[i].plus(lanes[i + count]);
        }
    }
    lanes[0].plus(last)
}

/// `softmax` of rows from the logarithm of each row's sum of exponentials, and the gradient of the scores.
pub struct Slopes<'a, T> {
    /// The scores; receives the weights.
    pub scores: &'a mut [T],
    /// The gradient of the weights; receives that of the scores.
    pub slopes: &'a mut [T],
    pub cols: usize,
    /// The logarithm of each row's sum of exponentials.
    pub logs: &'a [T],
    /// The weights of each row times their gradients, summed.
    pub inner: &'a [T],
}

impl<T: Score> Loop for Slopes<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let rows = self.scores.chunks_exact_mut(self.cols).zip(self.slopes.chunks_exact_mut(self.cols));
        for ((scores, slopes), (log, inner)) in rows.zip(self.logs.iter().zip(self.inner)) {
            for (score, slope) in scores.iter_mut().zip(slopes) {
                *score = score.minus(*log).exp::<FUSED>();
                *slope = slope.minus(*inner).times(*score);
            }
        }
    }
}

/// Multiplies every number.
pub struct Times<'a, T> {
    pub row: &'a mut [T],
    pub factor: T,
}

impl<T: Score> Loop for Times<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        self.row.iter_mut().for_each(|x| *x = x.times(self.factor));
    }
}

/// The sum of the products of two rows.
pub struct Dot<'a, T>(pub &'a [T], pub &'a [T]);

impl<T: Score> Loop for Dot<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> T {
        let mut lanes = [T::ZERO; 16];
        let mut last = T::ZERO;
        let (a, b) = (self.0.chunks_exact(16), self.1.chunks_exact(16));
        for (x, y) in a.remainder().iter().zip(b.remainder()) {
            last = last.plus(x.times(*y));
        }
        for (a, b) in a.zip(b) {
            for ((sum, x), y) in lanes.iter_mut().zip(a).zip(b) {
                *sum = sum.plus(x.times(*y));
            }
        }
        lanes.iter().fold(last, |sum, lane| sum.plus(*lane))
    }
}

pub fn run<L: Loop>(work: L) -> L::Output {
    vectorized(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_to_two_units_in_the_last_place() {
        let units = |x: f32, got: f32| {
            let exact = f64::from(x).exp();
            let unit = f64::from(f32::from_bits((exact as f32).to_bits() + 1)) - f64::from(exact as f32);
            (f64::from(got) - exact).abs() / unit
        };
        for i in 0..1_750_000 {
            let x = i as f32 * -5e-5 + 0.3;
            for got in [exponential::<true>(x), exponential::<false>(x)] {
                if x >= -87.0 {
                    assert!(units(x, got) <= 2.0, "exp({x}) is {got}");
                } else {
                    assert_eq!(got.to_bits(), 0, "exp({x})");
                }
            }
        }
    }

    #[test]
    fn the_exponential_of_minus_infinity_is_zero_and_that_of_nan_is_nan() {
        assert_eq!(exponential::<true>(f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!(exponential::<true>(0.0).to_bits(), 1.0f32.to_bits());
        assert!(exponential::<true>(f32::NAN).is_nan());
        assert!(exponential::<false>(f32::NAN).is_nan());
    }
}
