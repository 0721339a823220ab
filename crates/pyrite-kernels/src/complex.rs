//! Functions of a complex number that stay accurate where the textbook formulas cancel or overflow.
//!
//! The inverse functions follow Kahan, "Branch Cuts for Complex Elementary Functions": products of square roots decide
//! the branch, signed zeros included, and real inverse functions do the rest.

use num_complex::Complex64;

/// Arc sine.
pub fn asin(z: Complex64) -> Complex64 {
    let (minus, plus) = ((1.0 - z).sqrt(), (1.0 + z).sqrt());
    Complex64::new(z.re.atan2((minus * plus).re), (minus.conj() * plus).im.asinh())
}

/// Arc cosine.
pub fn acos(z: Complex64) -> Complex64 {
    let (minus, plus) = ((1.0 - z).sqrt(), (1.0 + z).sqrt());
    Complex64::new(2.0 * minus.re.atan2(plus.re), (plus.conj() * minus).im.asinh())
}

/// Inverse hyperbolic sine.
pub fn asinh(z: Complex64) -> Complex64 {
    let w = asin(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

/// Inverse hyperbolic cosine.
pub fn acosh(z: Complex64) -> Complex64 {
    let (minus, plus) = ((z - 1.0).sqrt(), (z + 1.0).sqrt());
    Complex64::new((minus.conj() * plus).re.asinh(), 2.0 * minus.im.atan2(plus.re))
}

/// Inverse hyperbolic tangent.
pub fn atanh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    let distance = (1.0 - x) * (1.0 - x) + y * y;
    // On the real axis beyond 1 the sign of a zero imaginary part is the side of the branch cut.
    let angle = if y == 0.0 && x.abs() <= 1.0 { y } else { (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) };
    Complex64::new(0.25 * (4.0 * x / distance).ln_1p(), 0.5 * angle)
}

/// Arc tangent.
pub fn atan(z: Complex64) -> Complex64 {
    let w = atanh(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

/// Hyperbolic tangent.
pub fn tanh(z: Complex64) -> Complex64 {
    if z.re.abs() > 300.0 {
        return Complex64::new(z.re.signum(), 0.0f64.copysign((2.0 * z.im).sin()));
    }
    let (sin, cos) = (2.0 * z.im).sin_cos();
    let (double, below) = (2.0 * z.re, (2.0 * z.re).cosh() + cos);
    Complex64::new(double.sinh() / below, sin / below)
}

/// Tangent.
pub fn tan(z: Complex64) -> Complex64 {
    let w = tanh(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

/// `eᶻ - 1`.
pub fn exp_m1(z: Complex64) -> Complex64 {
    let half = (0.5 * z.im).sin();
    let grown = z.re.exp();
    Complex64::new(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, grown * z.im.sin())
}

/// `ln(1 + z)`.
pub fn ln_1p(z: Complex64) -> Complex64 {
    let re = if z.norm() < 0.5 { 0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p() } else { (1.0 + z).norm().ln() };
    Complex64::new(re, z.im.atan2(1.0 + z.re))
}

/// A power, with zero as a base treated as C does.
pub fn pow(base: Complex64, exponent: Complex64) -> Complex64 {
    if exponent == Complex64::new(2.0, 0.0) {
        return base * base;
    }
    if exponent.im == 0.0 && exponent.re == 0.0 {
        return Complex64::new(1.0, 0.0);
    }
    if base.re == 0.0 && base.im == 0.0 {
        return if exponent.im == 0.0 && exponent.re > 0.0 {
            Complex64::new(0.0, 0.0)
        } else {
            Complex64::new(f64::NAN, f64::NAN)
        };
    }
    (base.ln() * exponent).exp()
}

/// The direction of a number: itself at length 1, or zero.
pub fn sgn(z: Complex64) -> Complex64 {
    let length = z.norm();
    if length == 0.0 { Complex64::new(0.0, 0.0) } else { z / length }
}

/// The quotient of complex numbers, scaled by the larger part of the divisor so that its square neither overflows nor
/// underflows. Zero divides each part.
pub fn quotient(a: Complex64, b: Complex64) -> Complex64 {
    let (re, im) = (b.re.abs(), b.im.abs());
    if re == 0.0 && im == 0.0 {
        return Complex64::new(a.re / re, a.im / im);
    }
    if re >= im {
        let ratio = b.im / b.re;
        let scale = 1.0 / (b.re + b.im * ratio);
        Complex64::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
    } else {
        let ratio = b.re / b.im;
        let scale = 1.0 / (b.re * ratio + b.im);
        Complex64::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points off the axes, on all sides of the branch points.
    fn points() -> impl Iterator<Item = Complex64> {
        let steps = [-3.0, -0.9, -0.2, 0.3, 1.1, 2.5];
        steps.into_iter().flat_map(move |re| steps.into_iter().map(move |im| Complex64::new(re, im)))
    }

    #[test]
    fn a_quotient_neither_overflows_nor_loses_the_parts_over_zero() {
        let (large, zero) = (Complex64::new(1e200, -1e200), Complex64::ZERO);
        assert!((quotient(large, large) - 1.0).norm() < 1e-15);
        let infinite = quotient(Complex64::new(1.0, -2.0), zero);
        assert_eq!((infinite.re, infinite.im), (f64::INFINITY, f64::NEG_INFINITY));
        assert!(quotient(zero, zero).re.is_nan() && points().all(|z| (quotient(z, z) - 1.0).norm() < 1e-15));
    }

    #[test]
    fn inverses_undo_their_functions() {
        for z in points() {
            let pairs = [
                (asin(z).sin(), z),
                (acos(z).cos(), z),
                (tan(atan(z)), z),
                (asinh(z).sinh(), z),
                (acosh(z).cosh(), z),
                (tanh(atanh(z)), z),
                (exp_m1(ln_1p(z)), z),
            ];
            for (index, (found, wanted)) in pairs.into_iter().enumerate() {
                assert!((found - wanted).norm() < 1e-12, "function {index} at {z}: {found}");
            }
        }
    }

    #[test]
    fn principal_branches_are_taken() {
        for z in points() {
            assert!((asin(z) - z.asin()).norm() < 1e-12 && (acos(z) - z.acos()).norm() < 1e-12, "{z}");
            assert!((atanh(z) - z.atanh()).norm() < 1e-12 && (acosh(z) - z.acosh()).norm() < 1e-12, "{z}");
        }
    }

    #[test]
    fn the_tangent_survives_large_arguments() {
        assert_eq!(tanh(Complex64::new(1e4, 1.0)).re, 1.0);
    }
}
