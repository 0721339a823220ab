//! Derivatives of joining, repeating and rearranging.

use pyrite_ir::{Emit, Pullback, Value, args};
use pyrite_sym::SymInt;

use super::{Calculus, Keep, Rule, first};
use crate::rules::wrap_dim;

/// `cat`: to every tensor its part. An empty vector is passed over, whatever the shape of the others.
pub fn cat(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    let dim = wrap_dim(p.args.int(1)?, e.rank(grad))?;
    let mut start = SymInt::Int(0);
    let mut grads = Vec::new();
    for x in p.args.tensors(0)? {
        let shape = e.shape(*x);
        if shape.len() == 1 && shape[0].is_eq(0) {
            grads.push(e.zeros(&shape, grad)?);
            continue;
        }
        let end = &start + &shape[dim];
        grads.push(e.one("aten.slice.Tensor", args![grad, dim, &start, &end])?);
        start = end;
    }
    Ok(vec![(0, Value::from(grads))])
}

/// `repeat`: the sum of all repeats.
pub fn repeat(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (shape, repeats) = (e.shape(p.tensor(0)?), p.args.syms(1)?);
    let lead = repeats.len() - shape.len();
    // Each dimension of the result is two: which repeat, and where in the tensor.
    let (mut apart, mut dims) = (Vec::new(), Vec::new());
    for (dim, count) in repeats.iter().enumerate() {
        let own = dim.checked_sub(lead).map(|own| shape[own].clone());
        if !count.is_eq(1) || own.is_none() {
            dims.push(apart.len() as i64);
            apart.push(count.clone());
        }
        apart.extend(own);
    }
    let grad = e.reshape(p.grad()?, &apart)?;
    first(e.sum(grad, &dims, Keep::Nothing)?)
}

/// `channel_shuffle`: the shuffle of as many groups as there were channels in one.
pub fn channel_shuffle(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let size = e.shape(p.tensor(0)?)[1].floor_div(&p.args.sym(1)?);
    first(e.one("aten.channel_shuffle.default", args![p.grad()?, size])?)
}

/// `pixel_shuffle`.
pub fn pixel_shuffle(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.one("aten.pixel_unshuffle.default", &[p.grad()?.into(), p.value(1)])?)
}

/// `pixel_unshuffle`.
pub fn pixel_unshuffle(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.one("aten.pixel_shuffle.default", &[p.grad()?.into(), p.value(1)])?)
}
