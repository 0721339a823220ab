//! Derivatives of activation functions.

use pyrite_ir::{Emit, Gradients, OpError, Pullback};

use super::Calculus;

/// `gelu`.
pub fn gelu(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let grad = e.one("aten.gelu_backward.default", &[p.grad()?.into(), p.value(0), p.value(1)])?;
    Ok(vec![(0, grad.into())])
}

/// `relu`: the gradient passes where the result is above zero.
pub fn relu(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let grad = e.one("aten.threshold_backward.default", &[p.grad()?.into(), p.result(0)?.into(), 0i64.into()])?;
    Ok(vec![(0, grad.into())])
}

/// `sigmoid`: `y·(1 - y)`.
pub fn sigmoid(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let y = e.conj(p.result(0)?)?;
    let rest = e.from_number(1.0, y)?;
    let slope = e.mul(y, rest)?;
    Ok(vec![(0, e.mul(p.grad()?, slope)?.into())])
}
