//! Derivatives of distances. Where points coincide they are zero.

use pyrite_ir::{Emit, Gradients, OpError, Pullback};

use super::{Calculus, Keep};

/// `_cdist_forward`: the backward operator gives the gradient of the first points; those of the second are the first
/// of the transposed problem.
pub fn cdist(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let mut grads = Vec::new();
    let sides = [(p.grad()?, p.result(0)?, [0, 1]), (p.grad()?, p.result(0)?, [1, 0])];
    for (mut grad, mut distances, [own, other]) in sides {
        if !p.wants(own) {
            continue;
        }
        if own == 1 {
            (grad, distances) = (e.transpose(grad, -2, -1)?, e.transpose(distances, -2, -1)?);
        }
        let args = [grad.into(), p.value(own), p.value(other), p.value(2), distances.into()];
        grads.push((own, e.one("aten._cdist_backward.default", &args)?.into()));
    }
    Ok(grads)
}

/// `_euclidean_dist`: with `ratio = grad / distance`, the first points get `x·Σratio - ratio·y`, the second likewise.
pub fn euclidean(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (x, y, distance) = (p.tensor(0)?, p.tensor(1)?, p.result(0)?);
    let ratio = e.div(p.grad()?, distance)?;
    let apart = e.compare("ne", distance, 0i64)?;
    let ratio = e.masked(apart, ratio)?;
    let transposed = e.transpose(ratio, -2, -1)?;
    let mut grads = Vec::new();
    for (index, ratio, own, other) in [(0, ratio, x, y), (1, transposed, y, x)] {
        if p.wants(index) {
            let total = e.sum(ratio, &[-1], Keep::Dims)?;
            let near = e.mul(own, total)?;
            let far = e.matmul(ratio, other)?;
            grads.push((index, e.sub(near, far)?.into()));
        }
    }
    Ok(grads)
}

/// `_pdist_forward`.
pub fn pdist(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let args = [p.grad()?.into(), p.value(0), p.value(1), p.result(0)?.into()];
    Ok(vec![(0, e.one("aten._pdist_backward.default", &args)?.into())])
}
