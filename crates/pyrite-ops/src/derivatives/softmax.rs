//! Derivatives of softmax.

use pyrite_ir::{Emit, Gradients, OpError, Pullback};

use super::{Calculus, Keep};

/// `_softmax` and `_safe_softmax`, from the result.
pub fn softmax(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    from_result(e, p, "aten._softmax_backward_data.default")
}

/// `_log_softmax`, from the result.
pub fn log_softmax(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    from_result(e, p, "aten._log_softmax_backward_data.default")
}

fn from_result(e: &mut dyn Emit, p: &Pullback<'_>, op: &str) -> Result<Gradients, OpError> {
    let dtype = e.dtype(p.tensor(0)?);
    let grad = e.one(op, &[p.grad()?.into(), p.result(0)?.into(), p.value(1), dtype.into()])?;
    Ok(vec![(0, grad.into())])
}

/// `_softmax_backward_data`: `y·(g - Σg·y)`.
pub fn softmax_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (t, g, y, dim) = (p.grad()?, p.tensor(0)?, p.tensor(1)?, p.args.int(2)?);
    let mut grads = Vec::new();
    if p.wants(0) {
        let grad = e.one("aten._softmax_backward_data.default", &[t.into(), y.into(), p.value(2), p.value(3)])?;
        grads.push((0, grad.into()));
    }
    if p.wants(1) {
        let (gy, ty) = (e.mul(g, y)?, e.mul(t, y)?);
        let (gy, ty) = (e.sum(gy, &[dim], Keep::Dims)?, e.sum(ty, &[dim], Keep::Dims)?);
        let direct = e.sub(g, gy)?;
        let direct = e.mul(t, direct)?;
        let through = e.mul(g, ty)?;
        grads.push((1, e.sub(direct, through)?.into()));
    }
    Ok(grads)
}

/// `_log_softmax_backward_data`: `g - exp(y)·Σg`.
pub fn log_softmax_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (t, g, y, dim) = (p.grad()?, p.tensor(0)?, p.tensor(1)?, p.args.int(2)?);
    let weights = e.unary("exp", y)?;
    let weighted = e.mul(t, weights)?;
    let mut grads = Vec::new();
    if p.wants(0) {
        let sum = e.sum(weighted, &[dim], Keep::Dims)?;
        grads.push((0, e.sub(t, sum)?.into()));
    }
    if p.wants(1) {
        let sum = e.sum(g, &[dim], Keep::Dims)?;
        let product = e.mul(sum, weighted)?;
        grads.push((1, e.neg(product)?.into()));
    }
    Ok(grads)
}
