//! Decompositions of products; those of matrices stay whole.

use pyrite_ir::{Args, Handle, OpError};
use pyrite_tensor::Scalar;

use super::{Sheet, Term, formulas};

fn is(number: Scalar, value: f64) -> bool {
    !matches!(number, Scalar::Complex(_)) && number.to_f64() == value
}

/// `beta·x + alpha·product`, with the factors after three arguments; nothing of `x` where beta is zero.
fn added<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>, product: Term<'s>) -> Result<Term<'s>, OpError> {
    let (beta, alpha) = (a.scalar(3)?, a.scalar(4)?);
    let times = |x: Term<'s>, factor: Scalar| {
        if is(factor, 1.0) { x } else { x.of("aten.mul.Tensor", &[x.as_element(factor)]) }
    };
    let product = times(product, alpha);
    if is(beta, 0.0) {
        return Ok(product);
    }
    Ok(times(s.wide(a, 0), beta) + product)
}

/// The product of a matrix and a vector.
fn times_vector<'s>(matrix: Term<'s>, vector: Term<'s>) -> Term<'s> {
    matrix.with("aten.mm.default", vector.unsqueeze(1)).squeeze(1)
}

formulas! {
    baddbmm |s, a, [_x, y, z]| added(&s, a, y.with("aten.bmm.default", z))?;
    addbmm |s, a, [_x, y, z]| added(&s, a, y.with("aten.bmm.default", z).sum_out(&[0]))?;
    mv |s, a, [x, y]| times_vector(x, y);
    addmv |s, a, [_x, y, z]| added(&s, a, times_vector(y, z))?;
    addr |s, a, [_x, y, z]| added(&s, a, y.unsqueeze(1) * z)?;
    dot |s, a, [x, y]| (x * y).total();
    vdot |s, a, [x, y]| (x.conj() * y).total();
}
