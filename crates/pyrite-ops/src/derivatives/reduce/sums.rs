//! Sums and products.

use pyrite_ir::{Emit, Handle, OpError, Pullback, args};
use pyrite_sym::SymInt;

use super::Reduction;
use crate::derivatives::{Calculus, Rule, first};

/// `sum` of all elements.
pub fn sum(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(Reduction::whole(e, p)?.spread(e, p.grad()?)?)
}

/// `sum` over dimensions.
pub fn sum_dim(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(Reduction::over(e, p, 1, 2)?.spread(e, p.grad()?)?)
}

/// `nansum`: what is no number was not summed.
pub fn nansum(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let spread = Reduction::over(e, p, 1, 2)?.spread(e, p.grad()?)?;
    let missing = e.unary("isnan", p.tensor(0)?)?;
    let present = e.unary("logical_not", missing)?;
    first(e.mul(spread, present)?)
}

/// `trace`.
pub fn trace(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let shape = e.shape(p.tensor(0)?);
    let diagonal = e.expand(p.grad()?, &[shape[0].min(&shape[1])])?;
    first(e.one("aten.diagonal_backward.default", args![diagonal, &*shape, 0, 0, 1])?)
}

/// `prod` of all elements.
pub fn prod(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::whole(e, p)?;
    if over.dims.is_empty() {
        return first(p.grad()?);
    }
    let flat = e.reshape(over.input, &[over.count()])?;
    let others = third_party_gemms(e, flat, 0)?;
    let grad = e.mul(p.grad()?, others)?;
    first(e.reshape(grad, &over.shape)?)
}

/// `prod` over a dimension.
pub fn prod_dim(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 2)?;
    if over.shape.is_empty() {
        return first(p.grad()?);
    }
    let others = third_party_gemms(e, over.input, over.dims[0])?;
    let grad = over.kept(e, p.grad()?)?;
    first(e.mul(grad, others)?)
}

/// For each element the product of all others along a dimension, conjugated. Products of those before and those after
/// it: a division by the element would fail where it is zero.
fn third_party_gemms(e: &mut dyn Emit, x: Handle, dim: usize) -> Result<Handle, OpError> {
    let (shape, dtype) = (e.shape(x), e.dtype(x));
    if shape[dim].is_eq(0) || shape[dim].is_eq(1) {
        return e.one("aten.full.default", args![&*shape, 1, dtype]);
    }
    let mut one = shape.clone();
    one[dim] = SymInt::Int(1);
    let one = e.one("aten.full.default", args![&*one, 1, dtype])?;
    let last = &shape[dim] - 1;
    let before = e.one("aten.slice.Tensor", args![x, dim, 0, &last])?;
    let before = e.one("aten.cat.default", args![vec![one, before], dim])?;
    let before = e.one("aten.cumprod.default", args![before, dim])?;
    let after = e.one("aten.slice.Tensor", args![x, dim, 1])?;
    let after = e.flip(after, dim)?;
    let after = e.one("aten.cat.default", args![vec![one, after], dim])?;
    let after = e.one("aten.cumprod.default", args![after, dim])?;
    let after = e.flip(after, dim)?;
    let product = e.mul(before, after)?;
    e.conj(product)
}
