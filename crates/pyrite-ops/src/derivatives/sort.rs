//! Derivatives of sorting and selecting by rank: the gradient goes to the elements at the indices.

use pyrite_ir::{Emit, Pullback, args};

use super::reduce::indexed_along;
use super::{Calculus, Rule, first};

/// `sort`.
pub fn sort(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    moved(e, p, 1)
}

/// `sort.stable` and `topk`.
pub fn sort_second(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    moved(e, p, 2)
}

fn moved(e: &mut dyn Emit, p: &Pullback<'_>, dim: usize) -> Rule {
    let Some(grad) = p.grad_of(0) else { return Ok(Vec::new()) };
    let zeros = e.zeros(&e.shape(p.tensor(0)?), grad)?;
    first(e.one("aten.scatter.src", args![zeros, p.args.int(dim)?, p.result(1)?, grad])?)
}

/// `kthvalue`.
pub fn kthvalue(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    indexed_along(e, p, 2, 3)
}
