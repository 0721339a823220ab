//! Derivatives of special functions.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

use pyrite_ir::{Emit, Gradients, OpError, Pullback, args};
use pyrite_tensor::DType;

use super::formula::{Operand, Sheet, Term};
use super::macros::unary_rules;

/// The derivative of a Bessel function of order 1 at zero, where the formula is 0/0.
const SLOPE_AT_ZERO: f64 = 0.5;

unary_rules! {
    entr |g, x, _| g * (-x.log() - 1.0);
    erfcx |g, x, y| (x * y * 2.0 - FRAC_2_SQRT_PI) * g;
    i0 |g, x, _| g * x.special_i1();
    i0e |g, x, y| g * (x.special_i1e() - x.sgn() * y);
    i1 |g, x, y| g * beside_zero(x, |x| x.i0() - y / x);
    i1e |g, x, y| g * beside_zero(x, |x| x.special_i0e() - y * (x.sgn() + x.reciprocal()));
    bessel_j0 |g, x, _| g * -x.special_bessel_j1();
    bessel_j1 |g, x, y| g * beside_zero(x, |x| x.special_bessel_j0() - y / x);
    bessel_y0 |g, x, _| g * -x.special_bessel_y1();
    /// At zero, the second term is the larger infinity.
    bessel_y1 |g, x, y| g * (x.special_bessel_y0().except(x.eq(0.0)) - y / x);
    bessel_k0 |g, x, _| g * -x.special_modified_bessel_k1();
    bessel_k1 |g, x, y| g * (-x.special_modified_bessel_k0() - y / x);
    lgamma |g, x, _| g * x.digamma();
    log_ndtr |g, x, _| g / (x * -FRAC_1_SQRT_2).special_erfcx() * (2.0 / PI).sqrt();
    ndtri |g, _, y| g * ((y.square() * 0.5).exp() * (2.0 * PI).sqrt());
}

/// A formula that divides by its argument; where that is too small for it, the slope at zero.
fn beside_zero<'s>(x: Term<'s>, formula: impl FnOnce(Term<'s>) -> Term<'s>) -> Term<'s> {
    let smallest = match x.dtype() {
        Some(DType::BF16) => 2f64.powi(-7),
        Some(DType::F16) => 2f64.powi(-10),
        Some(DType::F32) => f32::EPSILON.into(),
        _ => f64::EPSILON,
    };
    let small = x.abs().le(smallest);
    small.select(SLOPE_AT_ZERO, formula(small.select(smallest, x)))
}

/// `polygamma(n, x)`.
pub fn polygamma(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let order = p.args.int(0)? + 1;
    let s = Sheet::new(e);
    let (g, x) = (s.grad(p), s.argument(p, 1));
    s.gradients(p, &[(1, &|| g * s.call("aten.polygamma.default", args![order, x.value()]))])
}

/// `digamma(x)`, which is `polygamma(0, x)`.
pub fn digamma(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, x) = (s.grad(p), s.argument(p, 0));
    s.gradients(p, &[(0, &|| g * s.call("aten.polygamma.default", args![1i64, x.value()]))])
}

/// `mvlgamma(x, n)`: the sum of `digamma(x - i/2)` for `i` below `n`.
pub fn mvlgamma(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (n, dtype) = (p.args.int(1)? as f64, e.dtype(p.result(0)?));
    let s = Sheet::new(e);
    let (g, x) = (s.grad(p), s.argument(p, 0));
    let slope = || {
        let shifts = s.call("aten.arange.start_step", args![0.5 - n / 2.0, 0.5, 0.5, dtype]);
        let columns = x.of("aten.unsqueeze.default", args![-1i64]) + shifts;
        columns.digamma().of("aten.sum.dim_IntList", args![vec![-1i64]])
    };
    s.gradients(p, &[(0, &|| g * slope())])
}

/// `igamma(a, x)`, which is differentiated with respect to `x` alone.
pub fn igamma(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(0)?;
    let s = Sheet::new(e);
    let (g, a, x) = (s.grad(p), s.argument(p, 0), s.argument(p, 1));
    s.gradients(p, &[(1, &|| g * gamma_density(a, x))])
}

/// `igammac(a, x)`, the rest of `igamma` to one.
pub fn igammac(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(0)?;
    let s = Sheet::new(e);
    let (g, a, x) = (s.grad(p), s.argument(p, 0), s.argument(p, 1));
    s.gradients(p, &[(1, &|| -g * gamma_density(a, x))])
}

/// `x^(a - 1)·e^-x / Γ(a)`.
fn gamma_density<'s>(a: Term<'s>, x: Term<'s>) -> Term<'s> {
    ((a - 1.0) * x.log() - x - a.lgamma()).exp()
}

/// `zeta(x, q)`, which is differentiated with respect to `q` alone.
pub fn zeta(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(0)?;
    let s = Sheet::new(e);
    let (g, x, q) = (s.grad(p), s.argument(p, 0), s.argument(p, 1));
    s.gradients(p, &[(1, &|| g * -x * (x + 1.0).with("aten.special_zeta.default", q))])
}
