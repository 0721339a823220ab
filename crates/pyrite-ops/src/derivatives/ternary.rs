//! Derivatives of pointwise functions of three and more operands.

use pyrite_ir::{Emit, Gradients, OpError, Pullback, Value};
use pyrite_tensor::Scalar;

use super::formula::Sheet;

/// `where`: the gradient goes where the value came from.
pub fn choose(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, mask) = (s.grad(p), s.argument(p, 0));
    s.gradients(p, &[(1, &|| g.only(mask)), (2, &|| g.except(mask))])
}

/// `clamp`. The gradient passes strictly between bounds that are numbers. Bounds that are tensors take the gradient
/// where they are the result, and half of it where the argument touches them.
pub fn clamp(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, x, low, high) = (s.grad(p), s.argument(p, 0), s.argument(p, 1), s.argument(p, 2));
    if high.is_none() {
        return raised(&s, p, 1);
    }
    if low.is_none() {
        return lowered(&s, p, 2);
    }
    if !low.is_tensor() && !high.is_tensor() {
        return s.gradients(p, &[(0, &|| g.only(x.gt(low).and(x.lt(high))))]);
    }
    let half = g / 2.0;
    let touches = |bound| x.eq(bound).and(low.lt(high));
    s.gradients(
        p,
        &[
            (0, &|| touches(low).or(touches(high)).select(half, g).except(x.lt(low).or(x.gt(high)))),
            (1, &|| x.lt(low).and(low.le(high)).select(g, half.only(touches(low)))),
            (2, &|| x.gt(high).and(low.le(high)).or(low.gt(high)).select(g, half.only(touches(high)))),
        ],
    )
}

/// `clamp_min`.
pub fn clamp_min(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    raised(&Sheet::new(e), p, 1)
}

/// `clamp_max`.
pub fn clamp_max(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    lowered(&Sheet::new(e), p, 1)
}

/// With the lower bound `index` alone.
fn raised(s: &Sheet<'_>, p: &Pullback<'_>, index: usize) -> Result<Gradients, OpError> {
    let (g, x, low) = (s.grad(p), s.argument(p, 0), s.argument(p, index));
    if !low.is_tensor() {
        return s.gradients(p, &[(0, &|| g.only(x.gt(low)))]);
    }
    let shared = || x.eq(low).select(g / 2.0, g);
    s.gradients(p, &[(0, &|| shared().except(x.lt(low))), (index, &|| shared().except(x.gt(low)))])
}

/// With the upper bound `index` alone.
fn lowered(s: &Sheet<'_>, p: &Pullback<'_>, index: usize) -> Result<Gradients, OpError> {
    let (g, x, high) = (s.grad(p), s.argument(p, 0), s.argument(p, index));
    if !high.is_tensor() {
        return s.gradients(p, &[(0, &|| g.only(x.lt(high)))]);
    }
    let shared = || x.eq(high).select(g / 2.0, g);
    s.gradients(p, &[(0, &|| shared().except(x.gt(high))), (index, &|| shared().except(x.lt(high)))])
}

/// `a + w·(b - a)`.
pub fn lerp(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, a, b, w) = (s.grad(p), s.argument(p, 0), s.argument(p, 1), s.argument(p, 2));
    let rest = || match w.number() {
        Some(Scalar::Complex(w)) => s.term(Value::Complex(1.0 - w)),
        Some(w) => s.term(1.0 - w.to_f64()),
        None => 1.0 - w,
    };
    s.gradients(p, &[(0, &|| g * rest()), (1, &|| g * w), (2, &|| g * (b - a))])
}

/// `x + c·a·b`.
pub fn addcmul(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, a, b, c) = (s.grad(p), s.argument(p, 1), s.argument(p, 2), s.argument(p, 3));
    s.gradients(p, &[(0, &|| g), (1, &|| g * (b * c)), (2, &|| g * (a * c))])
}

/// `x + c·a / b`.
pub fn addcdiv(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, a, b, c) = (s.grad(p), s.argument(p, 1), s.argument(p, 2), s.argument(p, 3));
    s.gradients(p, &[(0, &|| g), (1, &|| g * (b.reciprocal() * c)), (2, &|| -g * (a * c / b.square()))])
}
