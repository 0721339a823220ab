//! Derivatives of counts with weights and of reductions of segments.

use pyrite_ir::{Emit, Handle, OpError, Pullback, args};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::scatter::{Places, of_factors};
use super::{Calculus, Rule, first};
use crate::rules::wrap_dim;

/// `bincount`: to every weight the gradient of its number.
pub fn bincount(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = e.one("aten.index_select.default", args![p.grad()?, 0, p.tensor(0)?])?;
    Ok(vec![(1, grad.into())])
}

/// `segment_reduce`: as a scatter of every element to its segment.
pub fn segment_reduce(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (data, result, grad) = (p.tensor(0)?, p.result(0)?, p.grad()?);
    let shape = e.shape(data);
    let axis = wrap_dim(p.args.int(5)?, shape.len())?;
    if e.meta(result).numel().is_eq(0) || e.meta(data).numel().is_eq(0) {
        return first(e.zeros_like(data)?);
    }
    let (segments, inside) = segments(e, p, &shape, axis)?;
    let places = Places::of_elements(axis as i64, segments);
    let spread = match p.args.str(1)? {
        "sum" => places.read(e, grad)?,
        "mean" => {
            let ones = e.cast(inside, e.dtype(grad))?;
            let zeros = e.zeros(&e.shape(result), grad)?;
            let count = places.add(e, zeros, ones)?;
            let share = e.div(grad, count)?;
            places.read(e, share)?
        }
        "prod" => {
            let start = p.args.opt_float(7)?.unwrap_or(1.0);
            let start = e.one("aten.full_like.default", args![result, start])?;
            // What is in no segment multiplies nothing.
            let factors = e.select(inside, data, 1.0)?;
            of_factors(e, places, [start, factors, result, grad], true)?
        }
        _ => {
            let best = places.read(e, result)?;
            let mut mask = e.one("aten.eq.Tensor", args![data, best])?;
            let (data_nan, best_nan) = (e.unary("isnan", data)?, e.unary("isnan", best)?);
            let nan = e.one("aten.logical_and.default", args![data_nan, best_nan])?;
            mask = e.one("aten.logical_or.default", args![mask, nan])?;
            mask = e.one("aten.logical_and.default", args![mask, inside])?;
            let ones = e.cast(mask, e.dtype(grad))?;
            let zeros = e.zeros(&e.shape(result), grad)?;
            let count = places.add(e, zeros, ones)?;
            let share = e.div(grad, count)?;
            let share = places.read(e, share)?;
            e.masked(mask, share)?
        }
    };
    first(e.masked(inside, spread)?)
}

/// The segment of each element along the axis, and whether it is in one at all.
fn segments(e: &mut dyn Emit, p: &Pullback<'_>, shape: &[SymInt], axis: usize) -> Result<(Handle, Handle), OpError> {
    let (ends, start) = if let Some(lengths) = p.args.opt_tensor(2)? {
        (e.one("aten.cumsum.default", args![*lengths, axis])?, None)
    } else {
        let offsets = p.tensor(4)?;
        let start = e.one("aten.slice.Tensor", args![offsets, axis, 0, 1])?;
        (e.one("aten.slice.Tensor", args![offsets, axis, 1])?, Some(start))
    };
    let places = e.one("aten.arange.default", args![shape[axis].clone(), e.dtype(ends)])?;
    let places = e.expand(places, &shape[..=axis])?;
    let dense = e.one("aten.contiguous.default", args![ends])?;
    let ended = e.one("aten.searchsorted.Tensor", args![dense, places, false, true])?;
    let last = e.shape(ends)[axis].clone() - 1;
    let mut inside = e.one("aten.le.Scalar", args![ended, &last])?;
    if let Some(start) = start {
        let begun = e.one("aten.ge.Tensor", args![places, start])?;
        inside = e.one("aten.logical_and.default", args![inside, begun])?;
    }
    let segment = e.one("aten.clamp_max.default", args![ended, last])?;
    let segment = e.cast(segment, DType::I64)?;
    let mut wide = [segment, inside];
    for part in &mut wide {
        for _ in axis + 1..shape.len() {
            *part = e.unsqueeze(*part, -1)?;
        }
        *part = e.expand(*part, shape)?;
    }
    Ok(wide.into())
}
