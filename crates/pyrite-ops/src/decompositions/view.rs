//! Decompositions of views into PyTorch's core views.

use pyrite_ir::{Args, Emit, Handle, OpError, Value};
use pyrite_sym::SymInt;

use super::{Rule, Sheet, Term, formulas};
use crate::rules::{specialized, wrap_dim, wrap_dims};

/// The dimensions in order, but two of them exchanged.
fn exchanged(x: Term<'_>, one: i64, two: i64) -> Result<Term<'_>, OpError> {
    let rank = x.rank();
    let (one, two) = (wrap_dim(one, rank)?, wrap_dim(two, rank)?);
    let mut order: Vec<usize> = (0..rank).collect();
    if rank > 0 {
        order.swap(one, two);
    }
    Ok(x.permute(&order))
}

/// Dimensions moved to other places, the rest in order.
fn moved<'s>(x: Term<'s>, from: &[i64], to: &[i64]) -> Result<Term<'s>, OpError> {
    let rank = x.rank();
    let (from, to) = (wrap_dims(from, rank)?, wrap_dims(to, rank)?);
    let mut rest = (0..rank).filter(|d| !from.contains(d));
    let order: Vec<usize> = (0..rank)
        .filter_map(|d| to.iter().position(|t| *t == d).map_or_else(|| rest.next(), |at| from.get(at).copied()))
        .collect();
    Ok(x.permute(&order))
}

fn given<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>) -> Term<'s> {
    s.term(a.value(0).clone())
}

formulas! {
    transpose |s, a, []| exchanged(given(&s, a), a.int(1)?, a.int(2)?)?;
    matrix_transpose |s, a, []| exchanged(given(&s, a), -2, -1)?;
    t |s, a, []| {
        let x = given(&s, a);
        let order: Vec<usize> = (0..x.rank()).rev().collect();
        x.permute(&order)
    };
    movedim |s, a, []| moved(given(&s, a), &[a.int(1)?], &[a.int(2)?])?;
    movedims |s, a, []| moved(given(&s, a), &a.ints(1)?, &a.ints(2)?)?;
    narrow |s, a, []| {
        let x = given(&s, a);
        let dim = wrap_dim(a.int(1)?, x.rank())?;
        let (start, length) = (a.sym(2)?, a.sym(3)?);
        let start = if start.is_lt(0) { start + &x.shape()[dim] } else { start };
        let end = &start + length;
        x.slice(dim, start, end)
    };
    broadcast_to |s, a, []| s.call("aten.expand.default", &a.values[..2]);
    /// The dimensions that have size one.
    squeeze |s, a, []| {
        let x = given(&s, a);
        let single = x.shape().iter().enumerate().filter(|(_, size)| size.is_eq(1)).map(|(d, _)| d as i64).collect::<Vec<_>>();
        x.of("aten.squeeze.dims", &[single.into()])
    };
    unflatten |s, a, []| {
        let x = given(&s, a);
        let dim = wrap_dim(a.int(1)?, x.rank())?;
        let (mut shape, mut sizes) = (x.shape().to_vec(), a.syms(2)?);
        if let Some(open) = sizes.iter().position(|size| size.as_int() == Some(-1)) {
            let rest = sizes.iter().enumerate().filter(|(d, _)| *d != open).fold(SymInt::Int(1), |n, (_, size)| n * size);
            sizes[open] = shape[dim].floor_div(&rest);
        }
        shape.splice(dim..=dim, sizes);
        x.of("aten.view.default", &[shape.into()])
    };
    linalg_diagonal |s, a, []| s.call("aten.diagonal.default", a.values);
    itself |s, a, []| s.call("aten.alias.default", a.values);
}

/// `unbind`: each index of a dimension.
pub fn unbind(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let x = *a.tensor(0)?;
    let dim = wrap_dim(a.int(1)?, e.rank(x))?;
    let count = specialized(&e.shape(x)[dim])?;
    let select = |index: i64| e.call("aten.select.int", &[x.into(), dim.into(), index.into()]);
    (0..count).map(select).collect::<Result<_, _>>().map(Value::List)
}

/// Parts of known sizes along a dimension.
fn parts(e: &mut dyn Emit, x: Handle, sizes: Vec<SymInt>, dim: usize) -> Rule {
    e.call("aten.split_with_sizes.default", &[x.into(), sizes.into(), dim.into()])
}

/// `split.Tensor`: parts of one size, the last what is left.
pub fn split(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let x = *a.tensor(0)?;
    let dim = wrap_dim(a.int(2)?, e.rank(x))?;
    equal_parts(e, x, &a.sym(1)?, dim)
}

fn equal_parts(e: &mut dyn Emit, x: Handle, size: &SymInt, dim: usize) -> Rule {
    let whole = e.shape(x)[dim].clone();
    if size.is_eq(0) {
        return parts(e, x, vec![whole], dim);
    }
    let count = specialized(&whole.ceil_div(size))?.max(1);
    let mut sizes = vec![size.clone(); count as usize - 1];
    sizes.push(whole - size * (count - 1));
    parts(e, x, sizes, dim)
}

/// `split.sizes`.
pub fn split_sizes(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    e.call("aten.split_with_sizes.default", a.values)
}

/// `chunk`: at most so many parts of one size.
pub fn chunk(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let x = *a.tensor(0)?;
    let dim = wrap_dim(a.int(2)?, e.rank(x))?;
    let (whole, count) = (e.shape(x)[dim].clone(), a.int(1)?);
    if whole.is_eq(0) {
        return parts(e, x, vec![SymInt::Int(0); count.max(1) as usize], dim);
    }
    equal_parts(e, x, &whole.ceil_div(&SymInt::Int(count)), dim)
}
