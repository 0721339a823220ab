//! Derivatives of scans, which are scans from the other end.

use pyrite_ir::{Emit, Handle, OpError, Pullback, args};

use super::{Calculus, Keep, Rule, first};
use crate::rules::wrap_dim;

/// The dimension of the scan; `None` for a tensor without any, which the scan leaves as it is.
fn along(e: &dyn Emit, p: &Pullback<'_>) -> Result<Option<usize>, OpError> {
    let rank = e.rank(p.tensor(0)?);
    let dim = wrap_dim(p.args.int(1)?, rank)?;
    Ok(Some(dim).filter(|_| rank > 0))
}

/// A scan from the end of a dimension.
fn reversed(e: &mut dyn Emit, scan: &str, x: Handle, dim: usize) -> Result<Handle, OpError> {
    let flipped = e.flip(x, dim)?;
    let scanned = e.one(scan, args![flipped, dim])?;
    e.flip(scanned, dim)
}

/// `cumsum`.
pub fn cumsum(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    match along(e, p)? {
        Some(dim) => first(reversed(e, "aten.cumsum.default", grad, dim)?),
        None => first(grad),
    }
}

/// `cumprod`. Before the first zero of a lane it is the sum of `grad·y` from here on, divided by `x`; the first zero
/// itself gets the products without it, up to the second zero; what follows gets nothing.
pub fn cumprod(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (x, grad) = (p.tensor(0)?, p.grad()?);
    let Some(dim) = along(e, p)? else { return first(grad) };
    let zero = e.compare("eq", x, 0)?;
    let zeros = e.one("aten.cumsum.default", args![zero, dim])?;
    let (before, between) = (e.compare("eq", zeros, 0)?, e.compare("eq", zeros, 1)?);
    let first_zero = e.one("aten.logical_and.default", args![zero, between])?;

    let y = e.conj(p.result(0)?)?;
    let weighted = e.mul(grad, y)?;
    let sums = reversed(e, "aten.cumsum.default", weighted, dim)?;
    let factors = e.select(zero, 1.0, x)?;
    let factors = e.conj(factors)?;
    let usual = e.div(sums, factors)?;

    let others = e.select(first_zero, 1.0, x)?;
    let products = e.one("aten.cumprod.default", args![others, dim])?;
    let products = e.conj(products)?;
    let products = e.mul(grad, products)?;
    let products = e.masked(between, products)?;
    let at_zero = e.sum(products, &[dim as i64], Keep::Dims)?;

    let rest = e.masked(first_zero, at_zero)?;
    first(e.select(before, usual, rest)?)
}

/// `cummax` and `cummin`: every result came from the element at its index.
pub fn extreme(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let Some(grad) = p.grad_of(0) else { return Ok(Vec::new()) };
    let zeros = e.zeros(&e.shape(p.tensor(0)?), grad)?;
    first(e.one("aten.scatter_add.default", args![zeros, p.args.int(1)?, p.result(1)?, grad])?)
}

/// `logcumsumexp`: `Σ grad·exp(x - y)` over the results from here on, whose logarithm is a scan too; positive and
/// negative gradients are summed apart.
pub fn logcumsumexp(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (x, grad) = (p.tensor(0)?, p.grad()?);
    let Some(dim) = along(e, p)? else { return first(grad) };
    if e.dtype(x).is_complex() {
        let grad = e.conj(grad)?;
        let log = e.unary("log", grad)?;
        let sum = sum_of_exponentials(e, p, log, dim)?;
        return first(e.conj(sum)?);
    }
    let size = e.unary("abs", grad)?;
    let log = e.unary("log", size)?;
    let mut parts = Vec::new();
    for sign in ["gt", "lt"] {
        let mask = e.compare(sign, grad, 0)?;
        let log = e.select(mask, log, f64::NEG_INFINITY)?;
        parts.push(sum_of_exponentials(e, p, log, dim)?);
    }
    first(e.sub(parts[0], parts[1])?)
}

fn sum_of_exponentials(e: &mut dyn Emit, p: &Pullback<'_>, log: Handle, dim: usize) -> Result<Handle, OpError> {
    let relative = e.sub(log, p.result(0)?)?;
    let sum = reversed(e, "aten.logcumsumexp.default", relative, dim)?;
    let sum = e.add(sum, p.tensor(0)?)?;
    e.unary("exp", sum)
}
