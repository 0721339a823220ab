//! Copies, and tensors with a part replaced.

use pyrite_ir::lower::{Lowering, Place};
use pyrite_ir::{OpError, Value};
use pyrite_loops::Compare;
use pyrite_sym::SymInt;

type Lowered = Result<(), OpError>;

/// The argument, in the result's type and layout.
pub fn copied(l: &mut Lowering<'_>) -> Lowered {
    let dtype = l.result()?.meta.dtype;
    l.map(|p| {
        let x = p.own(0)?;
        Ok(p.code().wrap(dtype, x))
    })
}

/// The second argument, in the layout of the first.
pub fn copy(l: &mut Lowering<'_>) -> Lowered {
    let dtype = l.result()?.meta.dtype;
    l.map(|p| {
        let x = p.own(1)?;
        Ok(p.code().wrap(dtype, x))
    })
}

/// A dimension of a tensor, counted from the front. A number has one that can be named.
pub(super) fn dimension(dim: i64, rank: usize) -> Result<usize, OpError> {
    let count = rank.max(1);
    let wrapped = if dim < 0 { dim + count as i64 } else { dim };
    usize::try_from(wrapped).ok().filter(|d| *d < count).ok_or_else(|| OpError::invalid(format!("dimension {dim}")))
}

/// A tensor with one place along a dimension replaced.
pub fn select_scatter(l: &mut Lowering<'_>) -> Lowered {
    let source = l.args.tensor(1)?;
    let shape = l.args.tensor(0)?.meta.shape.clone();
    let dim = dimension(l.args.int(2)?, shape.len())?;
    let index = l.args.sym(3)?;
    let index = if index.is_lt(0) { index + shape[dim].clone() } else { index };
    l.map(|p| {
        let ty = p.ty()?;
        let whole = p.arg(0, ty)?;
        let mut axes: Vec<_> = p.axes.iter().copied().map(Some).collect();
        let along = p.axes[dim];
        axes.remove(dim);
        let part = p.nest.load_at(source, &axes)?;
        let part = p.code().cast(ty, part);
        let at = p.nest.index(along);
        let index = p.nest.size(&index);
        let here = p.code().compare(Compare::Eq, at, index);
        Ok(p.code().select(here, part, whole))
    })
}

/// A tensor with a slice replaced: a copy of the whole, then one of the slice.
pub fn slice_scatter(l: &mut Lowering<'_>) -> Lowered {
    let result = l.result()?;
    let source = l.args.tensor(1)?;
    let shape = result.meta.shape.clone();
    let dim = dimension(l.args.int(2)?, shape.len())?;
    let size = shape[dim].clone();
    let bound = |value: Option<SymInt>, default: SymInt| match value {
        None => default,
        Some(v) => {
            let v = if v.is_lt(0) { v + size.clone() } else { v };
            if v.is_lt(0) {
                SymInt::Int(0)
            } else if v.is_gt(&size) {
                size.clone()
            } else {
                v
            }
        }
    };
    let start = bound(l.args.opt_sym(3)?, SymInt::Int(0));
    let step = l.args.sym(5)?;
    copied(l)?;
    let mut stride = result.meta.stride.clone();
    let offset = result.meta.offset.clone() + stride[dim].clone() * start;
    stride[dim] = stride[dim].clone() * step;
    let part = Place { buffer: result.buffer, meta: result.meta.view(&source.meta.shape, &stride, offset) };
    write(l, source, &part)
}

/// Copies a tensor to a place.
pub(super) fn write(l: &mut Lowering<'_>, source: &Place, to: &Place) -> Lowered {
    let mut nest = l.nest();
    let axes = nest.rows(&to.meta.shape);
    let value =
        if source.meta.dtype == to.meta.dtype { nest.load(source, &axes) } else { nest.load_held(source, &axes) }?;
    nest.store(to, &axes, value)?;
    l.finish(nest);
    Ok(())
}

/// Tensors one after the other along a dimension: a copy of each to its place.
pub fn cat(l: &mut Lowering<'_>) -> Lowered {
    let result = l.result()?;
    // A legacy of PyTorch's: empty tensors of one dimension go with everything.
    let parts: Vec<&Place> = l
        .args
        .tensors(0)?
        .into_iter()
        .filter(|place| !(place.meta.rank() == 1 && place.meta.shape[0].as_int() == Some(0)))
        .collect();
    if parts.iter().any(|place| place.meta.rank() != result.meta.rank()) {
        return Err(OpError::unsupported("tensors of different rank"));
    }
    let dim = dimension(l.args.int(1)?, result.meta.rank())?;
    let mut offset = result.meta.offset.clone();
    for part in parts {
        let size = part.meta.shape[dim].clone();
        let meta = result.meta.view(&part.meta.shape, &result.meta.stride, offset.clone());
        write(l, part, &Place { buffer: result.buffer, meta })?;
        offset = offset + size * result.meta.stride[dim].clone();
    }
    Ok(())
}

/// A tensor with a border of one number.
pub fn constant_pad_nd(l: &mut Lowering<'_>) -> Lowered {
    let result = l.result()?;
    let source = l.args.tensor(0)?;
    let pads = l.args.syms(1)?;
    if pads.iter().any(|pad| pad.is_lt(0)) {
        return Err(OpError::unsupported("negative padding in loops"));
    }
    let number = match l.args.value(2) {
        Value::None => pyrite_tensor::Scalar::Int(0),
        other => other.as_scalar().ok_or_else(|| OpError::unsupported("a padding that is no number"))?,
    };
    l.map(|p| {
        let ty = p.ty()?;
        p.literal(number, ty)
    })?;
    let mut offset = result.meta.offset.clone();
    for (from_last, pad) in pads.chunks_exact(2).enumerate() {
        let dim = result.meta.rank() - 1 - from_last;
        offset = offset + pad[0].clone() * result.meta.stride[dim].clone();
    }
    let meta = result.meta.view(&source.meta.shape, &result.meta.stride, offset);
    write(l, source, &Place { buffer: result.buffer, meta })
}

/// A tensor with dimensions turned around: a copy that reads backwards.
pub fn flip(l: &mut Lowering<'_>) -> Lowered {
    let result = l.result()?;
    let source = l.args.tensor(0)?;
    let mut meta = source.meta.clone();
    // A number has one dimension to name and none to turn.
    let dims = if meta.rank() == 0 { Vec::new() } else { l.args.ints(1)? };
    for dim in dims {
        let dim = dimension(dim, meta.rank())?;
        // A number has a dimension that can be named and nothing to turn around.
        if meta.rank() == 0 {
            continue;
        }
        let last = (meta.shape[dim].clone() + SymInt::Int(-1)) * meta.stride[dim].clone();
        meta.offset = meta.offset + last;
        meta.stride[dim] = meta.stride[dim].clone() * SymInt::Int(-1);
    }
    write(l, &Place { buffer: source.buffer, meta }, result)
}
