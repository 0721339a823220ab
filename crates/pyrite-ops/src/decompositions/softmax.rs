//! Decompositions of softmax.

use pyrite_ir::OpError;

use super::{Term, formulas};
use crate::rules::wrap_dim;

/// A term less its largest element along a dimension, so that exponentials stay small; and the dimension.
fn lowered(x: Term<'_>, dim: i64) -> Result<(Term<'_>, [usize; 1]), OpError> {
    let dims = [wrap_dim(dim, x.rank())?];
    // Without elements there is no largest one.
    Ok((if x.numel().is_eq(0) { x } else { x - x.amax(&dims) }, dims))
}

/// Exponentials, divided by their sum.
fn softmax_of(x: Term<'_>, dim: i64) -> Result<Term<'_>, OpError> {
    let (x, dims) = lowered(x, dim)?;
    let exp = x.exp();
    Ok(exp / exp.sum(&dims))
}

formulas! {
    softmax |s, a, [x]| softmax_of(x, a.int(1)?)?;
    log_softmax |s, a, [x]| {
        let (x, dims) = lowered(x, a.int(1)?)?;
        x - x.exp().sum(&dims).log()
    };
    /// Rows of nothing but `-∞` become zero.
    safe_softmax |s, a, [x]| {
        let x = a.dtype(2)?.map_or(x, |dtype| x.to(dtype.to_compute()));
        let dim = a.int(1)?;
        let seen = x.ne(f64::NEG_INFINITY).of("aten.any.dim", &[dim.into(), true.into()]);
        seen.select(softmax_of(x, dim)?, 0.0)
    };
    softmax_backward |s, a, [g, y]| {
        let dims = [wrap_dim(a.int(2)?, g.rank())?];
        (g - (g * y).sum(&dims)) * y
    };
    log_softmax_backward |s, a, [g, y]| {
        let dims = [wrap_dim(a.int(2)?, g.rank())?];
        g - y.exp() * g.sum(&dims)
    };
}
