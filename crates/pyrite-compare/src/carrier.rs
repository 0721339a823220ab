//! The three types in which elements are compared: `i64`, `f64` and `Complex64`. Each holds every element of its
//! category exactly.

use pyrite_tensor::element::{BF16, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F16};
use pyrite_tensor::{Complex64, DType, Element};

use crate::options::{Nans, Tolerance};

/// How two elements meet before their distance is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Both are finite, or not finite in the same way.
    Agree,
    /// One is NaN, or NaN equals nothing.
    Nan,
    /// They are infinite in different ways.
    Infinity,
}

/// A type in which elements are compared.
pub trait Carrier: Copy + PartialEq + Default + 'static {
    /// From an element of its category or a lower one.
    fn of<T: Element>(element: T) -> Self;
    /// Whether every part is finite.
    fn is_finite(self) -> bool;
    /// How two elements meet.
    fn meet(expected: Self, actual: Self, nans: Nans) -> Meeting;
    /// The distance of the parts that are finite on both sides.
    fn distance(expected: Self, actual: Self) -> f64;
    /// The magnitude of the finite parts.
    fn magnitude(self) -> f64;
    /// The scalar product.
    fn product(expected: Self, actual: Self) -> f64;
    /// Whether both are equal bit for bit, any NaN being one.
    fn same_bits(expected: Self, actual: Self) -> bool;
    /// As people write it, in the precision of the element type.
    fn text(self, dtype: DType) -> String;

    /// Whether two elements are within the tolerance.
    fn is_close(expected: Self, actual: Self, tolerance: Tolerance, nans: Nans) -> bool {
        Self::meet(expected, actual, nans) == Meeting::Agree
            && Self::distance(expected, actual) <= tolerance.bound(expected.magnitude())
    }

    /// Whether all elements are within the tolerance; the inner loop of comparing.
    fn all_close(expected: &[Self], actual: &[Self], tolerance: Tolerance, nans: Nans) -> bool {
        expected.iter().zip(actual).all(|(e, a)| Self::is_close(*e, *a, tolerance, nans))
    }

    /// The distance in units in the last place of an element type.
    fn ulps(_expected: Self, _actual: Self, _dtype: DType) -> Option<u64> {
        None
    }
}

impl Carrier for i64 {
    fn of<T: Element>(element: T) -> Self {
        element.to_i64()
    }

    fn is_finite(self) -> bool {
        true
    }

    fn meet(_expected: Self, _actual: Self, _nans: Nans) -> Meeting {
        Meeting::Agree
    }

    fn distance(expected: Self, actual: Self) -> f64 {
        expected.abs_diff(actual) as f64
    }

    fn magnitude(self) -> f64 {
        self.unsigned_abs() as f64
    }

    fn product(expected: Self, actual: Self) -> f64 {
        expected as f64 * actual as f64
    }

    fn same_bits(expected: Self, actual: Self) -> bool {
        expected == actual
    }

    fn text(self, dtype: DType) -> String {
        match dtype {
            DType::Bool => if self == 0 { "False" } else { "True" }.to_owned(),
            DType::U64 => self.cast_unsigned().to_string(),
            _ => self.to_string(),
        }
    }
}

impl Carrier for f64 {
    fn of<T: Element>(element: T) -> Self {
        element.to_f64()
    }

    fn is_finite(self) -> bool {
        self.is_finite()
    }

    fn meet(expected: Self, actual: Self, nans: Nans) -> Meeting {
        match (expected.is_nan(), actual.is_nan()) {
            (true, true) if nans == Nans::Equal => Meeting::Agree,
            (true, _) | (_, true) => Meeting::Nan,
            _ if expected.is_infinite() || actual.is_infinite() => {
                if expected == actual {
                    Meeting::Agree
                } else {
                    Meeting::Infinity
                }
            }
            _ => Meeting::Agree,
        }
    }

    fn distance(expected: Self, actual: Self) -> f64 {
        if expected.is_finite() && actual.is_finite() { (actual - expected).abs() } else { 0.0 }
    }

    fn magnitude(self) -> f64 {
        if self.is_finite() { self.abs() } else { 0.0 }
    }

    fn product(expected: Self, actual: Self) -> f64 {
        expected * actual
    }

    fn same_bits(expected: Self, actual: Self) -> bool {
        expected.to_bits() == actual.to_bits() || expected.is_nan() && actual.is_nan()
    }

    fn text(self, dtype: DType) -> String {
        match dtype {
            // The shortest text that gives the same single-precision number.
            _ if dtype.to_real().to_compute() == DType::F32 => format!("{:?}", self as f32),
            _ => format!("{self:?}"),
        }
    }

    /// Without branches, so that it becomes vector code. A bound that is not finite accepts nothing: it stems from an
    /// infinite expected element, which only its equal matches.
    #[expect(clippy::needless_bitwise_bool, reason = "lazy operators would be branches")]
    fn all_close(expected: &[Self], actual: &[Self], tolerance: Tolerance, nans: Nans) -> bool {
        let equal_nans = nans == Nans::Equal;
        let mut all = true;
        for (e, a) in expected.iter().zip(actual) {
            let bound = tolerance.bound(e.abs());
            let near = ((a - e).abs() <= bound) & (bound < f64::INFINITY);
            all &= near | (a == e) | (equal_nans & e.is_nan() & a.is_nan());
        }
        all
    }

    fn ulps(expected: Self, actual: Self, dtype: DType) -> Option<u64> {
        if !expected.is_finite() || !actual.is_finite() {
            return None;
        }
        // The bits of a float, read as sign and magnitude, count the floats from zero.
        let rank = |value: f64| -> Option<i128> {
            let magnitude = match dtype {
                DType::F16 => u64::from(F16::from_f64(value.abs()).to_bits()),
                DType::BF16 => u64::from(BF16::from_f64(value.abs()).to_bits()),
                DType::F32 => u64::from((value.abs() as f32).to_bits()),
                DType::F64 => value.abs().to_bits(),
                DType::F8E4M3 => F8E4M3::from_f32(value.abs() as f32).0.into(),
                DType::F8E5M2 => F8E5M2::from_f32(value.abs() as f32).0.into(),
                DType::F8E4M3Fnuz => F8E4M3Fnuz::from_f32(value.abs() as f32).0.into(),
                DType::F8E5M2Fnuz => F8E5M2Fnuz::from_f32(value.abs() as f32).0.into(),
                _ => return None,
            };
            Some(if value.is_sign_negative() { -i128::from(magnitude) } else { i128::from(magnitude) })
        };
        let distance = rank(expected)?.abs_diff(rank(actual)?);
        Some(u64::try_from(distance).unwrap_or(u64::MAX))
    }
}

impl Carrier for Complex64 {
    fn of<T: Element>(element: T) -> Self {
        element.to_c128()
    }

    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    fn meet(expected: Self, actual: Self, nans: Nans) -> Meeting {
        match f64::meet(expected.re, actual.re, nans) {
            Meeting::Agree => f64::meet(expected.im, actual.im, nans),
            other => other,
        }
    }

    fn distance(expected: Self, actual: Self) -> f64 {
        norm(f64::distance(expected.re, actual.re), f64::distance(expected.im, actual.im))
    }

    fn magnitude(self) -> f64 {
        norm(self.re.magnitude(), self.im.magnitude())
    }

    fn product(expected: Self, actual: Self) -> f64 {
        expected.re * actual.re + expected.im * actual.im
    }

    fn same_bits(expected: Self, actual: Self) -> bool {
        f64::same_bits(expected.re, actual.re) && f64::same_bits(expected.im, actual.im)
    }

    fn text(self, dtype: DType) -> String {
        let sign = if self.im.is_sign_negative() { "-" } else { "+" };
        format!("({}{sign}{}j)", self.re.text(dtype), self.im.abs().text(dtype))
    }

    /// Squares without branches first. They are right where the square of the bound is an ordinary number; a block
    /// with anything else, or with an element that is not close, is asked again one by one.
    #[expect(clippy::needless_bitwise_bool, reason = "lazy operators would be branches")]
    fn all_close(expected: &[Self], actual: &[Self], tolerance: Tolerance, nans: Nans) -> bool {
        let mut all = true;
        for (e, a) in expected.iter().zip(actual) {
            let bound = tolerance.bound(e.norm_sqr().sqrt());
            let square = bound * bound;
            all &= ((a - e).norm_sqr() <= square) & (square > 1e-280) & (square < 1e280);
        }
        all || expected.iter().zip(actual).all(|(e, a)| Self::is_close(*e, *a, tolerance, nans))
    }
}

/// The length of a vector; the slow exact way only where squares leave the range of floats.
fn norm(x: f64, y: f64) -> f64 {
    let square = x * x + y * y;
    if (1e-280..1e280).contains(&square) { square.sqrt() } else { x.hypot(y) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: [f64; 9] = [0.0, -0.0, 1.0, 1.000_001, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX];

    #[test]
    fn the_vector_loop_says_what_the_single_test_says() {
        for tolerance in [Tolerance::EXACT, Tolerance::both(1e-3), Tolerance { rtol: 0.0, atol: 1e-7 }] {
            for nans in [Nans::Equal, Nans::Unequal] {
                for e in ODD {
                    for a in ODD {
                        let single = f64::is_close(e, a, tolerance, nans);
                        assert_eq!(f64::all_close(&[e], &[a], tolerance, nans), single, "{e} {a} {tolerance:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_squares_of_complex_numbers_say_what_their_lengths_say() {
        let numbers = [0.0, 1.0, 1.000_001, -1.0, 1e-200, 1e200, f64::INFINITY, f64::NAN];
        let pairs = numbers.into_iter().flat_map(|re| numbers.map(|im| Complex64::new(re, im)));
        for tolerance in [Tolerance::EXACT, Tolerance::both(1e-3), Tolerance { rtol: 1e-3, atol: 0.0 }] {
            for e in pairs.clone() {
                for a in pairs.clone() {
                    let single = Complex64::is_close(e, a, tolerance, Nans::Equal);
                    assert_eq!(Complex64::all_close(&[e], &[a], tolerance, Nans::Equal), single, "{e} {a}");
                }
            }
        }
    }

    #[test]
    fn an_infinity_is_close_to_itself_alone() {
        let wide = Tolerance::both(1.0);
        assert!(f64::is_close(f64::INFINITY, f64::INFINITY, wide, Nans::Equal));
        assert!(!f64::is_close(f64::INFINITY, 1.0, wide, Nans::Equal));
        assert!(!f64::is_close(f64::INFINITY, f64::NEG_INFINITY, wide, Nans::Equal));
        let half_infinite = |im| Complex64::new(f64::INFINITY, im);
        assert!(Complex64::is_close(half_infinite(1.0), half_infinite(1.0), wide, Nans::Equal));
        assert!(!Complex64::is_close(half_infinite(1.0), half_infinite(9.0), wide, Nans::Equal));
    }

    #[test]
    fn units_in_the_last_place_count_across_zero() {
        assert_eq!(f64::ulps(1.0, f64::from(1.0f32.next_up()), DType::F32), Some(1));
        assert_eq!(f64::ulps(-f64::from_bits(1), f64::from_bits(1), DType::F64), Some(2));
        assert_eq!(f64::ulps(1.0, 2.0, DType::BF16), Some(128));
    }
}
