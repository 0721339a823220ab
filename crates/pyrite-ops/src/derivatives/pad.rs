//! Derivatives of padding and of patches.

use pyrite_ir::{Emit, Pullback, args};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::{Calculus, Rule, first};
use crate::rules::Around;

/// `constant_pad_nd`: what was added is cut off, and what was cut off is zero.
pub fn constant_pad(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let opposite: Vec<SymInt> = p.args.syms(1)?.iter().map(|pad| -pad).collect();
    first(e.one("aten.constant_pad_nd.default", args![p.grad()?, opposite])?)
}

/// `reflection_pad` and `replication_pad`, by the operator that PyTorch has for it.
pub fn padding(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let backward = p.args.schema.name.replace(".default", "_backward.default");
    first(e.one(&backward, &[p.grad()?.into(), p.value(0), p.value(1)])?)
}

/// The gradients of paddings are linear: their gradient is the padding.
pub fn padding_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let forward = p.args.schema.name.replace("_backward", "");
    let mut grads = vec![(0, e.one(&forward, &[p.grad()?.into(), p.value(2)])?.into())];
    if p.wants(1) {
        grads.push((1, e.zeros_like(p.tensor(1)?)?.into()));
    }
    Ok(grads)
}

/// `_pad_circular`: along each dimension, every index sums the places that show it.
pub fn pad_circular(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let shape = e.shape(p.tensor(0)?);
    let mut grad = p.grad()?;
    for (pair, dim) in p.args.syms(1)?.chunks_exact(2).zip((0..shape.len()).rev()) {
        let around = Around::new(&shape[dim], &pair[0], &pair[1]);
        let end = &around.kept + &around.after;
        let places = e.one("aten.arange.start", args![-&around.before, end, DType::I64])?;
        let places = e.one("aten.remainder.Scalar", args![places, around.kept])?;
        let places = e.one("aten.add.Tensor", args![places, around.first])?;
        let mut to = e.shape(grad);
        to[dim] = shape[dim].clone();
        let zeros = e.zeros(&to, grad)?;
        grad = e.one("aten.index_add.default", args![zeros, dim, places, grad])?;
    }
    first(grad)
}

/// `im2col`.
pub fn im2col(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let shape = e.shape(p.tensor(0)?);
    let size = &shape[shape.len() - 2..];
    let values = [p.grad()?.into(), size.into(), p.value(1), p.value(2), p.value(3), p.value(4)];
    first(e.one("aten.col2im.default", &values)?)
}

/// `col2im`.
pub fn col2im(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let values = [p.grad()?.into(), p.value(2), p.value(3), p.value(4), p.value(5)];
    first(e.one("aten.im2col.default", &values)?)
}
