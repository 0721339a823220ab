//! Decompositions of products; those of matrices stay whole.

use pyrite_ir::{Args, Handle, OpError};
use pyrite_sym::SymInt;
use pyrite_tensor::Scalar;

use super::terms::count;
use super::{Sheet, Term, formulas};
use crate::rules::wrap_dims;

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

/// Two terms of one rank multiplied and summed over dimensions, which stay with size one.
fn contracted<'s>(x: Term<'s>, y: Term<'s>, dims: &[usize]) -> Term<'s> {
    let is_one = |term: Term<'s>, d: usize| term.shape()[d].is_eq(1);
    // What only one of them has is summed there.
    let alone = |own: Term<'s>, other: Term<'s>| {
        let alone: Vec<usize> = dims.iter().copied().filter(|d| is_one(other, *d)).collect();
        own.sum(&alone)
    };
    let (x, y) = (alone(x, y), alone(y, x));
    let all = 0..x.rank();
    let both = |d: &usize| !is_one(x, *d) && !is_one(y, *d);
    let summed: Vec<usize> = dims.iter().copied().filter(both).collect();
    let batch: Vec<usize> = all.clone().filter(|d| both(d) && !dims.contains(d)).collect();
    let right: Vec<usize> = all.clone().filter(|d| is_one(x, *d) && !is_one(y, *d)).collect();
    let left: Vec<usize> = all.filter(|d| is_one(y, *d)).collect();
    if summed.is_empty() || right.is_empty() || left.iter().all(|d| is_one(x, *d)) {
        return (x * y).sum(&summed);
    }
    let matrices = |term: Term<'s>, rows: &[usize], cols: &[usize]| {
        let rest = (0..term.rank()).filter(|d| ![&batch[..], rows, cols].concat().contains(d));
        let order: Vec<usize> = batch.iter().chain(rows).chain(cols).copied().chain(rest).collect();
        let shape = term.shape();
        term.permute(&order).reshape(&[count(&shape, &batch), count(&shape, rows), count(&shape, cols)])
    };
    let product = matrices(x, &left, &summed).with("aten.bmm.default", matrices(y, &summed, &right));
    let order = [&batch[..], &left, &right, &summed].concat();
    let size = |d: &usize| match (left.contains(d), summed.contains(d)) {
        (_, true) => SymInt::Int(1),
        (true, _) => x.shape()[*d].clone(),
        _ => y.shape()[*d].clone(),
    };
    let place = |d: usize| order.iter().position(|own| *own == d).unwrap_or(d);
    product
        .reshape(&order.iter().map(size).collect::<Vec<_>>())
        .permute(&(0..order.len()).map(place).collect::<Vec<_>>())
}

/// Three terms of one rank multiplied and summed over dimensions: first the two whose sums leave least.
fn contracted_three<'s>(terms: [Term<'s>; 3], dims: &[usize]) -> Term<'s> {
    let alone = |third: usize| -> Vec<usize> {
        let shape = terms[third].shape();
        dims.iter().copied().filter(|d| shape[*d].is_eq(1)).collect()
    };
    let gain = |third: &usize| {
        let sizes = |d: &usize| (0..3).filter(|i| i != third).map(|i| terms[i].shape()[*d].as_int().unwrap_or(1)).max();
        alone(*third).iter().filter_map(sizes).product::<i64>()
    };
    let third = (0..3).max_by_key(gain).unwrap_or(2);
    let [first, second] = [[1, 2], [0, 2], [0, 1]][third];
    let pair = contracted(terms[first], terms[second], &alone(third));
    let sum = contracted(pair, terms[third], dims);
    (0..sum.rank()).rev().filter(|d| dims.contains(d)).fold(sum, Term::squeeze)
}

formulas! {
    trilinear |s, a, [x, y, z]| {
        let rank = x.rank() + a.ints(3)?.len();
        let mut terms = [x, y, z];
        for (index, term) in terms.iter_mut().enumerate() {
            let mut added = wrap_dims(&a.ints(3 + index)?, rank)?;
            added.sort_unstable();
            *term = added.into_iter().fold(*term, Term::unsqueeze);
        }
        contracted_three(terms, &wrap_dims(&a.ints(6)?, rank)?)
    };
    baddbmm |s, a, [_x, y, z]| added(&s, a, y.with("aten.bmm.default", z))?;
    addbmm |s, a, [_x, y, z]| added(&s, a, y.with("aten.bmm.default", z).sum_out(&[0]))?;
    mv |s, a, [x, y]| times_vector(x, y);
    addmv |s, a, [_x, y, z]| added(&s, a, times_vector(y, z))?;
    addr |s, a, [_x, y, z]| added(&s, a, y.unsqueeze(1) * z)?;
    dot |s, a, [x, y]| (x * y).total();
    vdot |s, a, [x, y]| (x.conj() * y).total();
}
