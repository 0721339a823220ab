//! Norms and log-sum-exp.

use pyrite_ir::{Emit, Handle, OpError, Pullback, args};

use super::Reduction;
use crate::derivatives::{Calculus, Rule, first};

/// `linalg_vector_norm`.
pub fn vector_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 2, 3)?;
    let order = p.args.float(1)?;
    if order == 0.0 {
        // A count does not change with its elements, and PyTorch gives no gradient at all.
        return Ok(Vec::new());
    }
    let (norm, grad) = (over.kept(e, p.result(0)?)?, over.kept(e, p.grad()?)?);
    first(of_norm(e, &over, order, norm, grad)?)
}

/// The gradient of what a norm of an order is taken of. Where the norm has a kink at zero, it is zero there.
fn of_norm(e: &mut dyn Emit, over: &Reduction, order: f64, norm: Handle, grad: Handle) -> Result<Handle, OpError> {
    let x = over.input;
    if order == 1.0 {
        let sign = e.unary("sgn", x)?;
        return e.mul(sign, grad);
    }
    let flat = e.compare("eq", norm, 0)?;
    if order == 2.0 {
        let direction = e.div(x, norm)?;
        let direction = e.select(flat, 0.0, direction)?;
        return e.mul(grad, direction);
    }
    let (size, sign) = (e.unary("abs", x)?, e.unary("sgn", x)?);
    if order.is_infinite() {
        let equal = e.one("aten.eq.Tensor", args![size, norm])?;
        let (x_nan, norm_nan) = (e.unary("isnan", x)?, e.unary("isnan", norm)?);
        let nan = e.one("aten.logical_and.default", args![x_nan, norm_nan])?;
        let mask = e.one("aten.logical_or.default", args![equal, nan])?;
        let count = over.sum(e, mask)?;
        let share = e.div(grad, count)?;
        let signs = e.mul(sign, mask)?;
        return e.mul(signs, share);
    }
    let slope = if order < 1.0 {
        let power = e.power(size, order - 1.0)?;
        let zero = e.compare("eq", x, 0)?;
        let power = e.select(zero, 0.0, power)?;
        e.mul(sign, power)?
    } else if order < 2.0 {
        let power = e.power(size, order - 1.0)?;
        e.mul(sign, power)?
    } else {
        let power = e.power(size, order - 2.0)?;
        e.mul(x, power)?
    };
    if order < 1.0 {
        let rest = e.power(norm, 1.0 - order)?;
        let scaled = e.mul(slope, grad)?;
        return e.mul(scaled, rest);
    }
    let rest = e.power(norm, order - 1.0)?;
    let share = e.div(grad, rest)?;
    let share = e.select(flat, 0.0, share)?;
    e.mul(slope, share)
}

/// `logsumexp`: each element by its part of the sum.
pub fn logsumexp(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 2)?;
    let (result, grad) = (over.kept(e, p.result(0)?)?, over.kept(e, p.grad()?)?);
    let part = e.sub(over.input, result)?;
    let part = e.unary("exp", part)?;
    let part = e.conj(part)?;
    first(e.mul(grad, part)?)
}

/// `renorm`: where slices were scaled by `m / (norm + ε)`, the scale depends on them too.
pub fn renorm(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let mut over = Reduction::whole(e, p)?;
    let dim = crate::rules::wrap_dim(p.args.int(2)?, over.shape.len())?;
    over.dims.remove(dim);
    let (x, order, most) = (over.input, p.args.float(1)?, p.args.float(3)?);
    let norm = e.one("aten.linalg_vector_norm.default", args![x, order, over.listed(), true])?;
    let shifted = e.add(norm, 1e-7)?;
    let inverse = e.unary("reciprocal", shifted)?;
    let scale = e.mul(inverse, most)?;
    let scaled = e.compare("gt", norm, most)?;
    let conj = e.conj(x)?;
    let product = e.mul(p.grad()?, conj)?;
    let product = if e.dtype(product).is_complex() { e.unary("real", product)? } else { product };
    let along = over.sum(e, product)?;
    let along = e.mul(along, scale)?;
    let along = e.mul(along, inverse)?;
    let along = e.neg(along)?;
    let through_norm = of_norm(e, &over, order, norm, along)?;
    let direct = e.mul(p.grad()?, scale)?;
    let moved = e.add(direct, through_norm)?;
    first(e.select(scaled, moved, p.grad()?)?)
}
