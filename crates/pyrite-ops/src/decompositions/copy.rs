//! Decompositions of gradients of views, and of dropout.

use pyrite_ir::meta::sort_dims;
use pyrite_ir::{Args, Emit, Handle};
use pyrite_tensor::DType;

use super::{Operand, Rule, Sheet, Term, formulas};
use crate::rules::wrap_dim;

/// Zeros of the sizes at an index, of the type of the gradient, with the gradient scattered into them.
fn scattered<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>, op: &str) -> Term<'s> {
    let grad = s.term(a.value(0).clone());
    let zeros = s.call("aten.full.default", &[a.value(1).clone(), 0i64.into(), grad.dtype().into()]);
    let mut args = vec![grad.value()];
    args.extend_from_slice(&a.values[2..]);
    zeros.of(op, &args)
}

formulas! {
    select_backward |s, a, []| scattered(&s, a, "aten.select_scatter.default");
    slice_backward |s, a, []| scattered(&s, a, "aten.slice_scatter.default");
    diagonal_backward |s, a, []| scattered(&s, a, "aten.diagonal_scatter.default");
    /// Every element of a window is added to the place it came from.
    unfold_backward |s, a, [g]| {
        let (sizes, size, step) = (a.syms(1)?, a.int(3)?, a.int(4)?);
        let dim = wrap_dim(a.int(2)?, sizes.len())?;
        let windows = g.shape()[if sizes.is_empty() { 0 } else { dim }].clone();
        let places = s.iota(&windows).unsqueeze(1).of("aten.mul.Tensor", &[step.into()]) + s.iota(size);
        let count = &windows * size;
        let zeros = s.full(&sizes, 0i64, g.dtype().unwrap_or(DType::F32));
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.insert(dim + 1, sizes.len());
        let mut shape = sizes.clone();
        shape[dim] = count.clone();
        let flat = g.permute(&order).reshape(&shape);
        zeros.of("aten.index_add.default", &[dim.into(), places.reshape(&[count]).value(), flat.value()])
    };
}

/// Bool with a probability for each element of a dense tensor, drawn in the order of its memory.
fn drawn_in_order(like: Term<'_>, probability: f64) -> Term<'_> {
    let stride = like.meta().map(|meta| meta.stride).unwrap_or_default();
    let mut order: Vec<usize> = (0..stride.len()).collect();
    sort_dims(&mut order, |a, b| stride[a].is_gt(&stride[b]));
    if order.is_sorted() {
        return like.of("aten.bernoulli.p", &[probability.into()]);
    }
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, d)| back[*d] = at);
    like.permute(&order).of("aten.bernoulli.p", &[probability.into()]).permute(&back)
}

/// `native_dropout`, drawing as the operator does: once for each element, in the order of the mask's memory.
pub fn native_dropout(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let x = s.wide(a, 0);
    let given = s.term(a.value(0).clone());
    let like = given.of("aten.full_like.default", &[1i64.into(), DType::Bool.into()]);
    if a.opt_bool(2)? == Some(false) {
        return s.results(&[Some(given), Some(like)]);
    }
    let keep = 1.0 - a.float(1)?;
    let scale = if keep == 0.0 { 0.0 } else { 1.0 / keep };
    let mask = drawn_in_order(like, keep);
    s.results(&[Some(x * mask.like(x) * scale), Some(mask)])
}
