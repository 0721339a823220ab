//! Derivatives of reading at places that tensors name: the gradient is added up at those places.

use pyrite_ir::{Emit, Handle, OpError, Pullback, args};

use super::{Calculus, Rule, first};
use crate::rules::broadcast;

/// Zeros like the first argument, of the gradient's type.
fn nothing(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<(Handle, Handle), OpError> {
    let grad = p.grad()?;
    Ok((e.zeros(&e.shape(p.tensor(0)?), grad)?, grad))
}

/// `index`.
pub fn index(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (zeros, grad) = nothing(e, p)?;
    first(e.one("aten.index_put.default", &[zeros.into(), p.value(1), grad.into(), true.into()])?)
}

/// `_unsafe_masked_index`.
pub fn masked_index(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (zeros, grad) = nothing(e, p)?;
    let put = "aten._unsafe_masked_index_put_accumulate.default";
    first(e.one(put, &[zeros.into(), p.value(1), p.value(2), grad.into()])?)
}

/// `index_select`.
pub fn index_select(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (zeros, grad) = nothing(e, p)?;
    first(e.one("aten.index_add.default", &[zeros.into(), p.value(1), p.value(2), grad.into()])?)
}

/// `gather`.
pub fn gather(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (zeros, grad) = nothing(e, p)?;
    first(e.one("aten.scatter_add.default", &[zeros.into(), p.value(1), p.value(2), grad.into()])?)
}

/// `take`.
pub fn take(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (zeros, grad) = nothing(e, p)?;
    first(e.one("aten.put.default", &[zeros.into(), p.value(1), grad.into(), true.into()])?)
}

/// `masked_select`.
pub fn masked_select(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    let shape = broadcast(&[&e.shape(p.tensor(0)?), &e.shape(p.tensor(1)?)])?;
    let zeros = e.zeros(&shape, grad)?;
    first(e.one("aten.masked_scatter.default", args![zeros, p.tensor(1)?, grad])?)
}
