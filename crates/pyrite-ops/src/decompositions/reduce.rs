//! Decompositions of reductions.

use pyrite_ir::{Args, Emit, Handle, OpError, Value};
use pyrite_tensor::{DType, Scalar};

use super::terms::count;
use super::{Rule, Sheet, Term, formulas};
use crate::rules::{wrap_dim, wrap_dims};

/// The dimensions of a list, or all of them where it is absent or empty.
fn listed(a: &Args<'_, Handle>, index: usize, rank: usize) -> Result<Vec<usize>, OpError> {
    match a.opt_ints(index)? {
        Some(dims) if !dims.is_empty() => wrap_dims(&dims, rank),
        _ => Ok((0..rank).collect()),
    }
}

/// Without the reduced dimensions unless they are to be kept.
fn kept<'s>(x: Term<'s>, dims: &[usize], keep: bool) -> Term<'s> {
    if keep || x.rank() == 0 || dims.is_empty() {
        return x;
    }
    let dims: Vec<i64> = dims.iter().map(|d| *d as i64).collect();
    x.of("aten.squeeze.dims", &[dims.into()])
}

/// Variance and mean over the dimensions of a call, with these kept.
fn moments<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>) -> Result<([Term<'s>; 2], Vec<usize>), OpError> {
    let x = s.wide(a, 0);
    let dims = listed(a, 1, x.rank())?;
    let correction = a.opt_scalar(2)?.unwrap_or(Scalar::Int(1));
    let mean = x.mean(&dims);
    let distance = if x.is_complex() { (x - mean).abs() } else { x - mean };
    let total = count(&x.shape(), &dims);
    let square = distance.square().sum(&dims);
    let variance = match (total.as_int(), correction) {
        (Some(total), _) => square / (total as f64 - correction.to_f64()).max(0.0),
        (None, Scalar::Int(correction)) if total.is_gt(correction) => square / s.term(&total - correction),
        (None, _) => {
            let freedom = s.full(&[], &total, DType::F64) - correction.to_f64();
            square / freedom.at_least(0.0).like(square)
        }
    };
    Ok(([variance, mean], dims))
}

formulas! {
    var |s, a, []| {
        let ([variance, _], dims) = moments(&s, a)?;
        kept(variance, &dims, a.bool(3)?)
    };
    std |s, a, []| {
        let ([variance, _], dims) = moments(&s, a)?;
        kept(variance.sqrt(), &dims, a.bool(3)?)
    };
    all |s, a, [x]| x.logical_not().any().logical_not();
    all_dim |s, a, [x]| x.logical_not().of("aten.any.dim", &a.values[1..]).logical_not();
    all_dims |s, a, [x]| x.logical_not().of("aten.any.dims", &a.values[1..]).logical_not();
    max |s, a, [x]| x.of("aten.amax.default", &[]);
    min |s, a, [x]| x.of("aten.amin.default", &[]);
    sum |s, a, [x]| x.of("aten.sum.dim_IntList", &[Value::List(Vec::new()), false.into(), a.value(1).clone()]);
    nansum |s, a, [x]| {
        let numbers = if x.dtype().is_some_and(DType::is_integral) { x } else { x.isnan().select(0.0, x) };
        numbers.of("aten.sum.dim_IntList", &a.values[1..])
    };
    count_nonzero |s, a, [x]| {
        let dims = a.opt_int(1)?.map_or(Value::List(Vec::new()), |dim| vec![dim].into());
        x.ne(x.as_element(0i64.into())).of("aten.sum.dim_IntList", &[dims])
    };
    count_nonzero_dims |s, a, [x]| x.ne(x.as_element(0i64.into())).of("aten.sum.dim_IntList", &a.values[1..]);
    trace |s, a, [x]| x.of("aten.diagonal.default", &[]).total();
    logsumexp |s, a, [x]| {
        let x = x.dtype().map_or(x, |dtype| x.to(dtype.to_inexact()));
        let dims = listed(a, 1, x.rank())?;
        let sum = if count(&x.shape(), &dims).is_eq(0) || x.numel().is_eq(0) {
            x.exp().sum(&dims).log()
        } else {
            let real = if x.is_complex() { x.real() } else { x };
            let top = real.amax(&dims);
            // An infinite maximum must not be subtracted from itself.
            let top = top.isinf().select(0.0, top);
            (x - top).exp().sum(&dims).log() + top
        };
        kept(sum, &dims, a.bool(2)?)
    };
    vector_norm |s, a, [x]| {
        let x = a.dtype(4)?.map_or(x, |dtype| x.to(dtype.to_compute()));
        let dims = listed(a, 2, x.rank())?;
        kept(norm(x, &dims, a.float(1)?), &dims, a.bool(3)?)
    };
    renorm |s, a, [x]| {
        let (p, most) = (a.float(1)?, a.float(3)?);
        let dim = wrap_dim(a.int(2)?, x.rank())?;
        let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != dim).collect();
        let norm = norm(x, &dims, p);
        x * norm.gt(most).select(most / (norm + 1e-7), 1.0)
    };
}

/// The norm over dimensions, which are kept.
fn norm<'s>(x: Term<'s>, dims: &[usize], order: f64) -> Term<'s> {
    if order != 0.0 && count(&x.shape(), dims).is_eq(1) {
        // Powers of a single element would overflow and underflow for nothing.
        return x.abs();
    }
    let size = if x.is_complex() || order != 2.0 { x.abs() } else { x };
    if order == 0.0 {
        size.ne(0.0).like(size).sum(dims)
    } else if order == 1.0 {
        size.sum(dims)
    } else if order == 2.0 {
        size.square().sum(dims).sqrt()
    } else if order == f64::INFINITY {
        size.amax(dims)
    } else if order == f64::NEG_INFINITY {
        size.amin(dims)
    } else {
        size.pow(order).sum(dims).pow(1.0 / order)
    }
}

/// `var_mean`.
pub fn var_mean(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let ([variance, mean], dims) = moments(&s, a)?;
    let keep = a.bool(3)?;
    s.results(&[Some(kept(variance, &dims, keep)), Some(kept(mean, &dims, keep))])
}

/// `std_mean`.
pub fn std_mean(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let ([variance, mean], dims) = moments(&s, a)?;
    let keep = a.bool(3)?;
    s.results(&[Some(kept(variance.sqrt(), &dims, keep)), Some(kept(mean, &dims, keep))])
}

/// `aminmax`.
pub fn aminmax(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let x = s.term(a.value(0).clone());
    let dims: Value<Handle> = a.opt_int(1)?.map_or(Value::List(Vec::new()), |dim| vec![dim].into());
    let extreme = |op| x.of(op, &[dims.clone(), a.value(2).clone()]);
    s.results(&[Some(extreme("aten.amin.default")), Some(extreme("aten.amax.default"))])
}
