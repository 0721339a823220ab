//! Elements picked by indices that are read from memory.

use pyrite_ir::lower::{Lowering, Point, broadcast_axes};
use pyrite_ir::{OpError, Value};
use pyrite_loops::{Binary, Compare, Type, Val, Write};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::copy::dimension;

type Lowered = Result<(), OpError>;

/// An index that lies behind the end where it is negative: `bounded` lets those count from the end.
fn refusing_negative(p: &mut Point<'_, '_>, index: Val, extent: &SymInt) -> Val {
    let index = p.code().cast(Type::I64, index);
    let extent = p.nest.size(extent);
    let zero = p.code().integer(0, Type::I64);
    let negative = p.code().compare(Compare::Lt, index, zero);
    p.code().select(negative, extent, index)
}

/// Rows of a table. A negative index is out of bounds here.
pub fn embedding(l: &mut Lowering<'_>) -> Lowered {
    let (table, indices) = (l.args.tensor(0)?, l.args.tensor(1)?);
    l.map(|p| {
        let count = p.axes.len() - 1;
        let outer = p.axes[..count].to_vec();
        let index = p.nest.load(indices, &outer)?;
        let index = refusing_negative(p, index, &table.meta.shape[0]);
        let at = p.nest.bounded(index, &table.meta.shape[0], &table.meta.stride[0]);
        let last = p.axes[count];
        p.nest.gather(table, &[None, Some(last)], at)
    })
}

/// Slices along a dimension.
pub fn index_select(l: &mut Lowering<'_>) -> Lowered {
    let (source, indices) = (l.args.tensor(0)?, l.args.tensor(2)?);
    if source.meta.rank() == 0 || indices.meta.rank() == 0 {
        return Err(OpError::unsupported("indices of a number"));
    }
    let dim = dimension(l.args.int(1)?, source.meta.rank())?;
    l.map(|p| {
        let along = p.axes[dim];
        let index = p.nest.load(indices, &[along])?;
        let index = refusing_negative(p, index, &source.meta.shape[dim]);
        let at = p.nest.bounded(index, &source.meta.shape[dim], &source.meta.stride[dim]);
        let axes: Vec<_> = p
            .axes
            .iter()
            .enumerate()
            .map(|(d, axis)| (d != dim && source.meta.shape[d].as_int() != Some(1)).then_some(*axis))
            .collect();
        p.nest.gather(source, &axes, at)
    })
}

/// One element for each index, along a dimension.
pub fn gather(l: &mut Lowering<'_>) -> Lowered {
    let (source, indices) = (l.args.tensor(0)?, l.args.tensor(2)?);
    if source.meta.rank() == 0 || indices.meta.rank() != source.meta.rank() {
        return Err(OpError::unsupported("indices of a number"));
    }
    let dim = dimension(l.args.int(1)?, source.meta.rank())?;
    l.map(|p| {
        let axes = p.axes.clone();
        let index = p.nest.load(indices, &axes)?;
        let index = refusing_negative(p, index, &source.meta.shape[dim]);
        let at = p.nest.bounded(index, &source.meta.shape[dim], &source.meta.stride[dim]);
        let axes: Vec<_> = axes.iter().enumerate().map(|(d, axis)| (d != dim).then_some(*axis)).collect();
        p.nest.gather(source, &axes, at)
    })
}

/// Elements by index tensors for some dimensions, the others whole.
pub fn index(l: &mut Lowering<'_>) -> Lowered {
    let source = l.args.tensor(0)?;
    let indices = match l.args.value(1) {
        Value::List(items) => items.iter().map(Value::as_tensor).collect::<Vec<_>>(),
        _ => return Err(OpError::unsupported("indices that are no list")),
    };
    if indices.iter().flatten().any(|place| matches!(place.meta.dtype, DType::Bool | DType::U8)) {
        return Err(OpError::unsupported("masks as indices"));
    }
    let given: Vec<usize> = (0..indices.len()).filter(|d| indices[*d].is_some()).collect();
    let (Some(first), Some(last)) = (given.first(), given.last()) else {
        return Err(OpError::unsupported("no indices"));
    };
    let broadcast = indices.iter().flatten().map(|place| place.meta.rank()).max().unwrap_or(0);
    let adjacent = last - first + 1 == given.len();
    // The dimensions of the indices stand where the first indexed one was, or in front if others are between.
    let front = if adjacent { *first } else { 0 };
    l.map(|p| {
        let over: Vec<_> = p.axes[front..front + broadcast].to_vec();
        let rest: Vec<_> = p.axes[..front].iter().chain(&p.axes[front + broadcast..]).copied().collect();
        let mut rest = rest.into_iter();
        let mut at = None;
        let mut axes = Vec::new();
        for (dim, (size, stride)) in source.meta.shape.iter().zip(&source.meta.stride).enumerate() {
            let Some(place) = indices.get(dim).copied().flatten() else {
                axes.push(rest.next());
                continue;
            };
            axes.push(None);
            let map = broadcast_axes(&p.nest.kernel, &place.meta, &over)?;
            let index = p.nest.load_at(place, &map)?;
            let distance = p.nest.bounded(index, size, stride);
            at = Some(match at {
                None => distance,
                Some(sum) => p.code().binary(Binary::Add, sum, distance),
            });
        }
        let at = at.ok_or_else(|| OpError::fault("an index without indices"))?;
        p.nest.gather(source, &axes, at)
    })
}

/// The gradient of a table: rows of the gradient added where their indices say.
pub fn embedding_dense_backward(l: &mut Lowering<'_>) -> Lowered {
    let (gradient, indices, result) = (l.args.tensor(0)?, l.args.tensor(1)?, l.result()?);
    let padding = l.args.int(3)?;
    if l.args.bool(4)? {
        return Err(OpError::unsupported("gradients scaled by frequency in loops"));
    }
    l.map(|p| {
        let ty = p.ty()?;
        Ok(p.code().number(0.0, ty))
    })?;
    let mut nest = l.nest();
    let axes = nest.rows(&gradient.meta.shape);
    let count = axes.len() - 1;
    let value = nest.load(gradient, &axes)?;
    let index = nest.load(indices, &axes[..count])?;
    let index = nest.code.cast(Type::I64, index);
    let skipped = nest.code.integer(padding, Type::I64);
    let is_padding = nest.code.compare(Compare::Eq, index, skipped);
    let (zero, first) = (nest.code.number(0.0, gradient.ty()?), nest.code.integer(0, Type::I64));
    let value = nest.code.select(is_padding, zero, value);
    let index = nest.code.select(is_padding, first, index);
    let at = nest.bounded(index, &result.meta.shape[0], &result.meta.stride[0]);
    nest.scatter(result, &[None, Some(axes[count])], at, value, Write::Add)?;
    l.finish(nest);
    Ok(())
}
