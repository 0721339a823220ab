//! Functions of a complex number that stay accurate where the textbook formulas cancel or overflow.
//!
//! The inverse functions follow Kahan, "Branch Cuts for Complex Elementary Functions": products of square roots decide
//! the branch, signed zeros included, and real inverse functions do the rest.

use num_complex::Complex64;

/// Square root.
pub fn sqrt(z: Complex64) -> Complex64 {
    if z.im.is_infinite() {
        return Complex64::new(f64::INFINITY, z.im);
    }
    if z.re.is_nan() {
        return Complex64::new(f64::NAN, f64::NAN);
    }
    if z.re.is_infinite() {
        // The part that is finite has a root of zero beside the infinite one; a part that is not known stays so.
        let small = if z.im.is_nan() { f64::NAN } else { 0.0 };
        return if z.re > 0.0 {
            Complex64::new(z.re, small.copysign(z.im))
        } else {
            Complex64::new(small, f64::INFINITY.copysign(z.im))
        };
    }
    z.sqrt()
}

/// `1 ± z`, with the sign of a zero imaginary part kept.
fn beside_one(z: Complex64) -> (Complex64, Complex64) {
    (Complex64::new(1.0 - z.re, -z.im), Complex64::new(1.0 + z.re, z.im))
}

/// `i·z`.
fn rotated(z: Complex64) -> Complex64 {
    Complex64::new(-z.im, z.re)
}

/// `-i·z`.
fn rotated_back(z: Complex64) -> Complex64 {
    Complex64::new(z.im, -z.re)
}

/// Arc sine.
pub fn asin(z: Complex64) -> Complex64 {
    rotated_back(asinh(rotated(z)))
}

/// Arc cosine.
pub fn acos(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    let infinite = -f64::INFINITY.copysign(y);
    if y.is_infinite() {
        // The angle from the real axis: a quarter where the real part is finite.
        return Complex64::new(if x.is_nan() { x } else { y.abs().atan2(x) }, infinite);
    }
    if x.is_infinite() {
        return if y.is_nan() {
            Complex64::new(y, f64::NEG_INFINITY)
        } else {
            Complex64::new(0.0f64.atan2(x), infinite)
        };
    }
    if y.is_nan() && x == 0.0 {
        return Complex64::new(std::f64::consts::FRAC_PI_2, y);
    }
    let (minus, plus) = beside_one(z);
    let (minus, plus) = (minus.sqrt(), plus.sqrt());
    Complex64::new(2.0 * minus.re.atan2(plus.re), (plus.conj() * minus).im.asinh())
}

/// Inverse hyperbolic sine.
pub fn asinh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() {
        return Complex64::new(x, if y.is_nan() { y } else { y.atan2(x.abs()) });
    }
    if y.is_infinite() {
        return Complex64::new(f64::INFINITY.copysign(x), if x.is_nan() { x } else { y.atan2(x.abs()) });
    }
    if x.is_nan() && y == 0.0 {
        return z;
    }
    let w = rotated(z);
    let (minus, plus) = beside_one(w);
    let (minus, plus) = (minus.sqrt(), plus.sqrt());
    Complex64::new((minus.conj() * plus).im.asinh(), -w.re.atan2((minus * plus).re))
}

/// Inverse hyperbolic cosine: that of the cosine, rotated to a real part that is not negative.
pub fn acosh(z: Complex64) -> Complex64 {
    let w = acos(z);
    Complex64::new(w.im.abs(), w.re.copysign(z.im))
}

/// Inverse hyperbolic tangent.
pub fn atanh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    let quarter = std::f64::consts::FRAC_PI_2.copysign(y);
    if y.is_infinite() || x.is_infinite() {
        return Complex64::new(0.0f64.copysign(x), if y.is_nan() { y } else { quarter });
    }
    if y.is_nan() && x == 0.0 {
        return z;
    }
    let distance = (1.0 - x) * (1.0 - x) + y * y;
    // On the real axis beyond 1 the sign of a zero imaginary part is the side of the branch cut.
    let angle = if y == 0.0 && x.abs() <= 1.0 { y } else { (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) };
    Complex64::new(0.25 * (4.0 * x / distance).ln_1p(), 0.5 * angle)
}

/// Arc tangent.
pub fn atan(z: Complex64) -> Complex64 {
    rotated_back(atanh(rotated(z)))
}

/// Hyperbolic sine. A zero stays one whatever it is multiplied by.
pub fn sinh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return Complex64::new(x.sinh(), y);
    }
    if x == 0.0 && !y.is_finite() {
        return Complex64::new(x, f64::NAN);
    }
    // C leaves the sign open.
    if x.is_infinite() && !y.is_finite() {
        return Complex64::new(f64::INFINITY, f64::NAN);
    }
    Complex64::new(x.sinh() * y.cos(), x.cosh() * y.sin())
}

/// Hyperbolic cosine.
pub fn cosh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return Complex64::new(x.cosh(), y * 1f64.copysign(x));
    }
    if x == 0.0 {
        return Complex64::new(y.cos(), if y.is_finite() { x * y.sin() } else { 0.0 });
    }
    if x.is_infinite() && !y.is_finite() {
        return Complex64::new(f64::INFINITY, f64::NAN);
    }
    Complex64::new(x.cosh() * y.cos(), x.sinh() * y.sin())
}

/// Sine.
pub fn sin(z: Complex64) -> Complex64 {
    // C leaves the sign open.
    if z.im.is_infinite() && !z.re.is_finite() {
        return Complex64::new(f64::NAN, f64::INFINITY);
    }
    rotated_back(sinh(rotated(z)))
}

/// Cosine.
pub fn cos(z: Complex64) -> Complex64 {
    cosh(rotated(z))
}

/// Hyperbolic tangent.
pub fn tanh(z: Complex64) -> Complex64 {
    if z.re.abs() > 300.0 {
        let side = if z.im.is_finite() { (2.0 * z.im).sin() } else { 1.0 };
        return Complex64::new(1f64.copysign(z.re), 0.0f64.copysign(side));
    }
    if z.im == 0.0 {
        return Complex64::new(z.re.tanh(), z.im);
    }
    if z.re == 0.0 && !z.im.is_finite() {
        return Complex64::new(z.re, f64::NAN);
    }
    let (sin, cos) = (2.0 * z.im).sin_cos();
    let (double, below) = (2.0 * z.re, (2.0 * z.re).cosh() + cos);
    Complex64::new(double.sinh() / below, sin / below)
}

/// Tangent.
pub fn tan(z: Complex64) -> Complex64 {
    rotated_back(tanh(rotated(z)))
}

/// `eᶻ - 1`.
pub fn exp_m1(z: Complex64) -> Complex64 {
    let half = (0.5 * z.im).sin();
    let grown = z.re.exp();
    Complex64::new(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, grown * z.im.sin())
}

/// `2ᶻ`. Each part is scaled by itself, so that an infinite one does not make the other NaN.
pub fn exp2(z: Complex64) -> Complex64 {
    Complex64::new(z.re * std::f64::consts::LN_2, z.im * std::f64::consts::LN_2).exp()
}

/// `ln(1 + z)`. It is not known where a part is not, even if the other is infinite.
pub fn ln_1p(z: Complex64) -> Complex64 {
    if z.re.is_nan() || z.im.is_nan() {
        return Complex64::new(f64::NAN, f64::NAN);
    }
    let angle = z.im.atan2(1.0 + z.re);
    if z.norm() >= 0.5 {
        return Complex64::new((1.0 + z).norm().ln(), angle);
    }
    let grown = z.re * (2.0 + z.re) + z.im * z.im;
    // What underflows is as small as the real part.
    Complex64::new(if grown == 0.0 { z.re } else { 0.5 * grown.ln_1p() }, angle)
}

/// A power as C defines it, by logarithm and exponential, with [`product`] between them.
pub fn pow(base: Complex64, exponent: Complex64) -> Complex64 {
    product(exponent, base.ln()).exp()
}

/// The product as C defines it: of an infinite number and one that is not zero it is infinite, also where the textbook
/// formula subtracts infinities.
pub fn product(a: Complex64, b: Complex64) -> Complex64 {
    let plain = a * b;
    if !(plain.re.is_nan() && plain.im.is_nan()) {
        return plain;
    }
    let is_infinite = |z: Complex64| z.re.is_infinite() || z.im.is_infinite();
    // An infinite number counts by its direction, and what is not known beside it not at all.
    let direction = |z: Complex64| {
        let part = |x: f64| if x.is_infinite() { 1f64.copysign(x) } else { 0f64.copysign(x) };
        Complex64::new(part(z.re), part(z.im))
    };
    let known = |z: Complex64| {
        let part = |x: f64| if x.is_nan() { 0f64.copysign(x) } else { x };
        Complex64::new(part(z.re), part(z.im))
    };
    let parts = [a.re * b.re, a.im * b.im, a.re * b.im, a.im * b.re];
    let (a, b) = match (is_infinite(a), is_infinite(b)) {
        (true, true) => (direction(a), direction(b)),
        (true, false) => (direction(a), known(b)),
        (false, true) => (known(a), direction(b)),
        (false, false) if parts.iter().any(|part| part.is_infinite()) => (known(a), known(b)),
        (false, false) => return plain,
    };
    let finite = a * b;
    Complex64::new(f64::INFINITY * finite.re, f64::INFINITY * finite.im)
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

    #[test]
    fn infinities_and_the_sides_of_cuts_are_those_of_c() {
        const INF: f64 = f64::INFINITY;
        let is = |found: Complex64, re: f64, im: f64| {
            let same =
                |a: f64, b: f64| a.is_nan() && b.is_nan() || a == b && a.is_sign_positive() == b.is_sign_positive();
            assert!(same(found.re, re) && (same(found.im, im)), "{found} is not {re} + {im}i");
        };
        let quarter = std::f64::consts::FRAC_PI_2;
        is(sqrt(Complex64::new(-INF, -1.0)), 0.0, -INF);
        is(sqrt(Complex64::new(f64::NAN, INF)), INF, INF);
        is(sinh(Complex64::new(0.0, INF)), 0.0, f64::NAN);
        is(cos(Complex64::new(0.0, INF)), INF, -0.0);
        is(sin(Complex64::new(0.0, INF)), 0.0, INF);
        is(tanh(Complex64::new(-INF, INF)), -1.0, 0.0);
        is(atanh(Complex64::new(0.0, INF)), 0.0, quarter);
        is(acos(Complex64::new(INF, 2.0)), 0.0, -INF);
        is(asinh(Complex64::new(INF, INF)), INF, 0.5 * quarter);
        is(sqrt(Complex64::new(f64::NAN, 0.0)), f64::NAN, f64::NAN);
        is(acos(Complex64::new(INF, f64::NAN)), f64::NAN, -INF);
        is(sinh(Complex64::new(-INF, f64::NAN)), INF, f64::NAN);
        is(sin(Complex64::new(f64::NAN, -INF)), f64::NAN, INF);
        is(exp2(Complex64::new(INF, 1.0)), INF, INF);
        is(exp2(Complex64::new(INF, -0.0)), INF, -0.0);
        is(ln_1p(Complex64::new(INF, f64::NAN)), f64::NAN, f64::NAN);
        is(ln_1p(Complex64::new(-INF, INF)), INF, 1.5 * quarter);
        is(ln_1p(Complex64::new(1e-320, 0.0)), 1e-320, 0.0);
        is(pow(Complex64::ZERO, Complex64::ZERO), f64::NAN, f64::NAN);
        is(pow(Complex64::ZERO, Complex64::new(2.5, 0.0)), 0.0, 0.0);
        is(pow(Complex64::new(INF, f64::NAN), Complex64::new(4.0, 0.0)), INF, f64::NAN);
        is(product(Complex64::new(INF, f64::NAN), Complex64::new(1.0, 1.0)), INF, INF);
        assert!(asinh(Complex64::new(0.0, -2.0)).re > 1.3 && asinh(Complex64::new(-0.0, -2.0)).re < -1.3);
        assert!(asin(Complex64::new(2.0, 0.0)).im > 1.3 && asin(Complex64::new(2.0, -0.0)).im < -1.3);
    }
}
