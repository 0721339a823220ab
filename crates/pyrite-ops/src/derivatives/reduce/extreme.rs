//! Extremes: of whole tensors and of `amax` they share the gradient evenly among equal elements; those that come with an
//! index give it to the element at the index.

use pyrite_ir::{Emit, Handle, OpError, Pullback, args};

use super::Reduction;
use crate::derivatives::{Calculus, Rule, first};

/// `amax` and `amin`: equal elements share the gradient.
pub fn extreme(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 2)?;
    first(among_equals(e, &over, p.result(0)?, p.grad()?)?)
}

/// `aminmax`.
pub fn aminmax(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 2)?;
    let mut sum: Option<Handle> = None;
    for index in 0..2 {
        let Some(grad) = p.grad_of(index) else { continue };
        let part = among_equals(e, &over, p.result(index)?, grad)?;
        sum = Some(match sum {
            Some(sum) => e.add(sum, part)?,
            None => part,
        });
    }
    sum.map_or(Ok(Vec::new()), first)
}

fn among_equals(e: &mut dyn Emit, over: &Reduction, result: Handle, grad: Handle) -> Result<Handle, OpError> {
    let (result, grad) = (over.kept(e, result)?, over.kept(e, grad)?);
    let mask = e.one("aten.eq.Tensor", args![over.input, result])?;
    let count = over.sum(e, mask)?;
    let passed = e.mul(grad, mask)?;
    e.div(passed, count)
}

/// `max` and `min` of all elements: equal elements share the gradient, and so do NaNs.
pub fn whole_extreme(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (x, result) = (p.tensor(0)?, p.result(0)?);
    let equal = e.one("aten.eq.Tensor", args![x, result])?;
    let (x_nan, result_nan) = (e.unary("isnan", x)?, e.unary("isnan", result)?);
    let nan = e.one("aten.logical_and.default", args![x_nan, result_nan])?;
    let mask = e.one("aten.logical_or.default", args![equal, nan])?;
    let count = e.unary("sum", mask)?;
    let share = e.div(p.grad()?, count)?;
    first(e.mul(mask, share)?)
}

/// `max.dim` and the like, with values and their indices along a dimension that was dropped unless it was kept.
pub fn indexed(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    indexed_along(e, p, 1, 2)
}

/// The gradient goes to the elements at the indices.
pub(in crate::derivatives) fn indexed_along(e: &mut dyn Emit, p: &Pullback<'_>, dim: usize, keep: usize) -> Rule {
    let over = Reduction::over(e, p, dim, keep)?;
    let Some(grad) = p.grad_of(0) else { return Ok(Vec::new()) };
    let (grad, index) = (over.kept(e, grad)?, over.kept(e, p.result(1)?)?);
    let zeros = e.zeros(&over.shape, grad)?;
    let dim = over.dims.first().copied().unwrap_or(0);
    first(e.one("aten.scatter.src", args![zeros, dim, index, grad])?)
}
