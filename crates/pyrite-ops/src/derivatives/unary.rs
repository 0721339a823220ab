//! Derivatives of functions of one operand.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI};

use pyrite_ir::{Emit, Gradients, OpError, Pullback};

use super::formula::{Sheet, Term};
use super::macros::{backward_rules, unary_rules};

// Roots are conjugated after they are taken: on their branch cut the order matters.
unary_rules! {
    /// The length of a complex number grows along the number.
    abs |g, x, _| g * x.conj().sgn();
    acos |g, x, _| g * -(1.0 - x.conj().square()).rsqrt().conj();
    /// One root serves where the argument is real and hence positive.
    acosh |g, x, _| if x.is_complex() {
        g * ((x.conj() + 1.0).rsqrt() * (x.conj() - 1.0).rsqrt()).conj()
    } else {
        g * (x.square() - 1.0).rsqrt()
    };
    /// Perpendicular to the number; the angle of a real one does not move.
    angle |g, x, _| if x.is_complex() { perpendicular(g, x.conj()) } else { g.zeros_like() };
    asin |g, x, _| g * (1.0 - x.conj().square()).rsqrt().conj();
    asinh |g, x, _| g * (x.conj().square() + 1.0).rsqrt().conj();
    atan |g, x, _| g / (x.square() + 1.0);
    atanh |g, x, _| g / (1.0 - x.square());
    cos |g, x, _| g * -x.sin();
    cosh |g, x, _| g * x.sinh();
    deg2rad |g, _, _| g * (PI / 180.0);
    erf |g, x, _| (-x.square()).exp() * FRAC_2_SQRT_PI * g;
    erfc |g, x, _| (-x.square()).exp() * -FRAC_2_SQRT_PI * g;
    erfinv |g, _, y| y.square().exp() * (1.0 / FRAC_2_SQRT_PI) * g;
    exp |g, _, y| g * y;
    exp2 |g, _, y| g * y * LN_2;
    expm1 |g, _, y| g * (y + 1.0);
    /// The part behind the point moves with the number.
    frac |g, _, _| g;
    log |g, x, _| g / x;
    log10 |g, x, _| g / (x * LN_10);
    log1p |g, x, _| g / (x + 1.0);
    log2 |g, x, _| g / (x * LN_2);
    /// Where there is a number to begin with.
    nan_to_num |g, x, _| g * x.isinf().or(x.isnan()).logical_not();
    neg |g, _, _| -g;
    rad2deg |g, _, _| g * (180.0 / PI);
    reciprocal |g, _, y| -g * y.square();
    rsqrt |g, _, y| g * -0.5 * y.pow(3.0);
    sgn |g, x, y| if x.is_complex() { across(g, x, y.conj()) } else { g.zeros_like() };
    sin |g, x, _| g * x.cos();
    /// Zero at zero.
    sinc |g, x, _| {
        let (turn, scale) = (x * PI, x.square() * PI);
        (g * ((turn * turn.cos() - turn.sin()) / scale)).except(scale.eq(0.0))
    };
    sinh |g, x, _| g * x.cosh();
    sqrt |g, _, y| g / (y * 2.0);
    tan |g, _, y| g * (y.square() + 1.0);
    /// Functions that are constant almost everywhere.
    constant |g, _, _| g.zeros_like();
}

/// The direction in which the angle of `z` grows, zero at zero.
fn perpendicular<'s>(g: Term<'s>, z: Term<'s>) -> Term<'s> {
    let length = z.abs();
    let square = length.square();
    let part = |t: Term<'s>| (g * t / square).except(length.eq(0.0));
    part(-z.imag()).with("aten.complex.default", part(z.real()))
}

/// The part of the gradient across the number `y` of length one, over the length of `x`.
fn across<'s>(g: Term<'s>, x: Term<'s>, y: Term<'s>) -> Term<'s> {
    let length = x.abs();
    (g / length - (g / y).real() * y / length).except(length.eq(0.0))
}

backward_rules! {
    logit |g, p| "aten.logit_backward.default" [g, p.value(0), p.value(1)];
    tanh |g, p| "aten.tanh_backward.default" [g, p.result(0)?];
}

/// The mantissa of a number is the number over a power of two.
pub fn frexp(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, exponent) = (s.grad(p), s.result(p, 1));
    s.gradients(p, &[(0, &|| g / exponent.exp2())])
}
