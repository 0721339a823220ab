//! Derivatives of looking up rows of a table.

use pyrite_ir::{Emit, Handle, OpError, Pullback, args};
use pyrite_tensor::DType;

use super::{Calculus, Keep, Rule, first};

/// `embedding`. The gradient is dense, also where PyTorch is asked for a sparse one.
pub fn embedding(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let rows = e.shape(p.tensor(0)?)[0].clone();
    let values = [p.grad()?.into(), p.value(1), rows.into(), p.value(2), p.value(3)];
    first(e.one("aten.embedding_dense_backward.default", &values)?)
}

/// `embedding_dense_backward`: the rows of the gradient that indices name, none for the padding.
pub fn embedding_dense_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (grad, indices) = (p.grad()?, p.tensor(1)?);
    let mut rows = e.one("aten.embedding.default", args![grad, indices])?;
    if p.args.bool(4)? {
        let flat = e.reshape(indices, &[e.meta(indices).numel()])?;
        let ones = e.one("aten.ones_like.default", args![flat, e.dtype(grad)])?;
        let zeros = e.zeros(&[p.args.sym(2)?], grad)?;
        let counts = e.one("aten.index_add.default", args![zeros, 0, flat, ones])?;
        let counts = e.one("aten.index.Tensor", args![counts, vec![indices]])?;
        let counts = e.unsqueeze(counts, -1)?;
        rows = e.div(rows, counts)?;
    }
    first(without_padding(e, rows, indices, &p.args.sym(3)?)?)
}

/// Rows with zeros where the index is that of the padding.
fn without_padding(
    e: &mut dyn Emit,
    rows: Handle,
    indices: Handle,
    padding: &pyrite_sym::SymInt,
) -> Result<Handle, OpError> {
    if padding.is_lt(0) {
        return Ok(rows);
    }
    let mask = e.one("aten.eq.Scalar", args![indices, padding])?;
    let mask = e.unsqueeze(mask, -1)?;
    e.one("aten.masked_fill.Scalar", args![rows, mask, 0])
}

/// `_embedding_bag`, also as it is called where no gradient was expected.
pub fn embedding_bag(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let Some(grad) = p.grad_of(0) else { return Ok(Vec::new()) };
    let (weight, indices) = (p.tensor(0)?, p.tensor(1)?);
    let count = e.shape(weight)[0].clone();
    let padding = p.args.sym(8)?;
    let padding = if padding.is_lt(-1) { padding + &count } else { padding };
    if p.args.int(4)? == 2 {
        // An empty bag has no largest row; its index is zero.
        let sizes = e.unsqueeze(p.result(2)?, 1)?;
        let filled = e.compare("gt", sizes, 0)?;
        let grad = e.masked(filled, grad)?;
        let largest = e.cast(p.result(3)?, DType::I64)?;
        let zeros = e.zeros(&e.shape(weight), grad)?;
        return first(e.one("aten.scatter_add.default", args![zeros, 0, largest, grad])?);
    }
    let bags = bag_of_each(e, p)?;
    let mut rows = e.one("aten.index_select.default", args![grad, 0, bags])?;
    let mut grads = Vec::new();
    if p.wants(6) {
        let own = e.one("aten.index_select.default", args![weight, 0, indices])?;
        let products = e.mul(rows, own)?;
        let products = without_padding(e, products, indices, &padding)?;
        grads.push((6, e.sum(products, &[1], Keep::Nothing)?.into()));
    }
    if p.args.int(4)? == 1 {
        let sizes = e.one("aten.index_select.default", args![p.result(2)?, 0, bags])?;
        let sizes = e.one("aten.clamp_min.default", args![sizes, 1])?;
        let sizes = e.unsqueeze(sizes, 1)?;
        rows = e.div(rows, sizes)?;
    }
    if let Some(samples) = p.args.opt_tensor(6)? {
        let samples = e.unsqueeze(*samples, 1)?;
        rows = e.mul(rows, samples)?;
    }
    let table = args![rows, indices, count, padding, p.args.bool(3)?];
    grads.push((0, e.one("aten.embedding_dense_backward.default", table)?.into()));
    Ok(grads)
}

/// The bag that each index is in: how many bags have begun by then, less one.
fn bag_of_each(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Handle, OpError> {
    let (indices, mut offsets) = (p.tensor(1)?, p.tensor(2)?);
    if p.args.bool(7)? {
        offsets = e.one("aten.slice.Tensor", args![offsets, 0, 0, -1])?;
    }
    let places = e.one("aten.arange.default", args![e.shape(indices)[0].clone(), e.dtype(offsets)])?;
    let begun = e.one("aten.searchsorted.Tensor", args![offsets, places, false, true])?;
    e.sub(begun, 1)
}
