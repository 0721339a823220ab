//! Derivatives of fills, diagonals and blocks.

use pyrite_ir::{Emit, Pullback, Value, args};
use pyrite_sym::SymInt;

use super::{Calculus, Rule, first};

/// `fill`, `zero` and draws of random numbers: nothing is left of the argument, and a value that is a tensor is
/// everywhere.
pub fn fill(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    let mut grads = Vec::new();
    if p.wants(0) {
        grads.push((0, e.zeros_like(grad)?.into()));
    }
    if p.wants(1) {
        grads.push((1, e.unary("sum", grad)?.into()));
    }
    Ok(grads)
}

/// `diag_embed`.
pub fn diag_embed(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.one("aten.diagonal.default", &[p.grad()?.into(), p.value(1), p.value(2), p.value(3)])?)
}

/// `block_diag`.
pub fn block_diag(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (mut row, mut column) = (SymInt::Int(0), SymInt::Int(0));
    let mut grads = Vec::new();
    for block in p.args.tensors(0)? {
        let shape = e.shape(*block);
        let [height, width] = match &shape[..] {
            [height, width] => [height.clone(), width.clone()],
            [width] => [SymInt::Int(1), width.clone()],
            _ => [SymInt::Int(1), SymInt::Int(1)],
        };
        let (bottom, right) = (&row + &height, &column + &width);
        let part = e.one("aten.slice.Tensor", args![p.grad()?, 0, &row, &bottom])?;
        let part = e.one("aten.slice.Tensor", args![part, 1, &column, &right])?;
        grads.push(e.reshape(part, &shape)?);
        (row, column) = (bottom, right);
    }
    Ok(vec![(0, Value::from(grads))])
}
