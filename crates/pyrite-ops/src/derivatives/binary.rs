//! Derivatives of the arithmetic of two operands.

use pyrite_ir::{Emit, Gradients, OpError, Pullback, Value};
use pyrite_tensor::{Complex64, Scalar};

use super::formula::{Operand, Sheet, Term};
use super::macros::binary_rules;

/// `a + alpha·b`.
pub fn add(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, alpha) = (s.grad(p), s.argument(p, 2));
    s.gradients(p, &[(0, &|| g), (1, &|| g * alpha)])
}

/// `a - alpha·b`.
pub fn sub(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, alpha) = (s.grad(p), s.argument(p, 2));
    s.gradients(p, &[(0, &|| g), (1, &|| -(g * alpha))])
}

/// `b - alpha·a`.
pub fn rsub(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, alpha) = (s.grad(p), s.argument(p, 2));
    s.gradients(p, &[(0, &|| -(g * alpha)), (1, &|| g)])
}

binary_rules! {
    /// `a·b`.
    mul |g, a, b, _| [g * b, g * a];
    /// `a / b`.
    div |g, a, b, _| [g / b, -g * (a / b / b)];
    /// A remainder that has the sign of the divisor.
    remainder |g, a, b, _| [g, -g * quotient(a, b, "floor")];
    /// A remainder that has the sign of the dividend.
    fmod |g, a, b, _| [g, -g * quotient(a, b, "trunc")];
    /// The larger of two; equals share the gradient, and NaN takes it whole.
    maximum |g, a, b, _| [shared(g, a.eq(b)).except(a.lt(b)), shared(g, a.eq(b)).except(a.gt(b))];
    /// The smaller of two; equals share the gradient, and NaN takes it whole.
    minimum |g, a, b, _| [shared(g, a.eq(b)).except(a.gt(b)), shared(g, a.eq(b)).except(a.lt(b))];
    /// The larger of two, a number rather than NaN.
    fmax |g, a, b, _| [shared(g, a.eq(b)).only(a.ge(b).or(b.isnan())), shared(g, a.eq(b)).except(a.gt(b).or(b.isnan()))];
    /// The smaller of two, a number rather than NaN.
    fmin |g, a, b, _| [shared(g, a.eq(b)).only(a.le(b).or(b.isnan())), shared(g, a.eq(b)).except(a.lt(b).or(b.isnan()))];
    /// The angle of the point `(b, a)`; zero at the origin.
    atan2 |g, a, b, _| [g * b * inverse_square(a, b), g * -a * inverse_square(a, b)];
    /// The length of `(a, b)`.
    hypot |g, a, b, y| [g * (a / y), g * (b / y)];
    /// `|a|` with the sign of `b`; zero at zero.
    copysign |g, a, _, y| [g * (y / a).except(a.eq(0.0)), g.zeros_like()];
    /// The neighbour of `a` moves with `a` as long as the two differ.
    nextafter |g, a, b, _| [g.except(a.eq(b)), g.zeros_like()];
    /// `ln(e^a + e^b)`.
    logaddexp |g, a, b, _| [g / ((b - a).exp() + 1.0), g / ((a - b).exp() + 1.0)];
    /// `log2(2^a + 2^b)`.
    logaddexp2 |g, a, b, _| [g / ((b - a).exp2() + 1.0), g / ((a - b).exp2() + 1.0)];
    /// Complex numbers from their parts.
    complex |g, _, _, _| [g.real(), g.imag()];
    /// Complex numbers from length and angle.
    polar |g, _, _, y| [(g * y.sgn()).real(), (g * y).imag()];
}

fn quotient<'s>(a: Term<'s>, b: Term<'s>, rounding: &str) -> Term<'s> {
    a.of("aten.div.Tensor_mode", &[b.value(), rounding.into()])
}

/// Half of the gradient where two operands are equal.
fn shared<'s>(g: Term<'s>, equal: Term<'s>) -> Term<'s> {
    equal.select(g / 2.0, g)
}

/// `1 / (a² + b²)`, zero at the origin.
fn inverse_square<'s>(a: Term<'s>, b: Term<'s>) -> Term<'s> {
    let square = a.square() + b.square();
    square.reciprocal().except(square.eq(0.0))
}

/// A rounded quotient does not move; one that is not rounded does.
pub fn div_mode(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    if p.args.opt_str(2)?.is_none() {
        return div(e, p);
    }
    let s = Sheet::new(e);
    let g = s.grad(p);
    s.gradients(p, &[(0, &|| g.zeros_like()), (1, &|| g.zeros_like())])
}

/// `a` to the power of a tensor or a number.
///
/// The exponent zero makes the base's slope zero even where `a^(b - 1)` is infinite, and the base zero makes that of
/// the exponent zero where the power does not move.
pub fn pow(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, y) = (s.grad(p), s.result(p, 0));
    // `float_power` has a wider result than its operands, and integers have no logarithm.
    let (a, b) = (s.argument(p, 0).like(y), s.argument(p, 1).like(y));
    let of_base = || match b.number() {
        Some(exponent) if !exponent.to_bool() => g.zeros_like(),
        Some(exponent) => g * power_slope(&s, a, exponent),
        None => (g * (b * a.pow(b - 1.0))).except(b.eq(0.0)),
    };
    let of_exponent = || {
        let grows = || if b.is_complex() { b.real().ge(0.0) } else { b.ge(0.0) };
        match a.number() {
            Some(base) if base.to_bool() => g * (y * logarithm(&s, base)),
            Some(base) => (g * (y * logarithm(&s, base))).except(grows()),
            None => (g * (y * a.log())).except(a.eq(0.0).and(grows())),
        }
    };
    s.gradients(p, &[(0, &of_base), (1, &of_exponent)])
}

/// `n·a^(n - 1)`; no power is taken where `n` is one or two.
fn power_slope<'s>(s: &'s Sheet<'_>, a: Term<'s>, exponent: Scalar) -> Term<'s> {
    let (factor, rest) = match exponent {
        Scalar::Complex(n) => (Value::Complex(n), Scalar::Complex(n - 1.0)),
        Scalar::Float(n) => (Value::Float(n), Scalar::Float(n - 1.0)),
        other => (other.to_i64().into(), Scalar::Int(other.to_i64() - 1)),
    };
    let factor = s.term(factor);
    if !rest.to_bool() {
        factor
    } else if rest.to_c128() == Complex64::ONE {
        a * factor
    } else {
        a.pow(Value::from(rest)) * factor
    }
}

/// Of a number; not a number below zero, as PyTorch has it.
fn logarithm<'s>(s: &'s Sheet<'_>, number: Scalar) -> Term<'s> {
    match number {
        Scalar::Complex(z) => s.term(Value::Complex(z.ln())),
        other => s.term(other.to_f64().ln()),
    }
}

/// `a·ln b`, zero where `a` is.
pub fn xlogy(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, a, b) = (s.grad(p), s.argument(p, 0), s.argument(p, 1));
    let op = if b.is_tensor() { "aten.xlogy.Tensor" } else { "aten.xlogy.Scalar_Other" };
    s.gradients(p, &[(0, &|| vanishing(g.with(op, b), a, b, 0.0)), (1, &|| g * a / b)])
}

/// `a·ln(1 + b)`, zero where `a` is.
pub fn xlog1py(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, a, b) = (s.grad(p), s.argument(p, 0), s.argument(p, 1));
    let op = if b.is_tensor() { "aten.special_xlog1py.default" } else { "aten.special_xlog1py.other_scalar" };
    s.gradients(p, &[(0, &|| vanishing(g.with(op, b), a, b, -1.0)), (1, &|| g * a / (b + 1.0))])
}

/// Zero where `a` is zero and `b` at its pole or beyond.
fn vanishing<'s>(slope: Term<'s>, a: Term<'s>, b: Term<'s>, pole: f64) -> Term<'s> {
    match b.number() {
        Some(number) if number.to_f64() > pole => slope,
        Some(_) => slope.except(a.eq(0.0)),
        None => slope.except(a.eq(0.0).and(b.le(pole))),
    }
}
