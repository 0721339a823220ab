//! Elements picked, written and added to by indices that are read from memory.
//!
//! Writes go to a copy of the tensor, in the order of the indices: of several to one place the last counts, and sums are
//! rounded one by one.

use pyrite_ir::lower::{Lowering, Nest, Place, broadcast_axes};
use pyrite_ir::{OpError, SymDims, Value};
use pyrite_loops::{AxisId, Binary, Compare, Type, Val, Write};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::copy::dimension;
use crate::rules::broadcast;

type Lowered = Result<(), OpError>;

/// An index that lies behind the end where it is negative: `bounded` lets those count from the end.
fn refusing_negative(nest: &mut Nest, index: Val, extent: &SymInt) -> Val {
    let index = nest.code.cast(Type::I64, index);
    let extent = nest.size(extent);
    let zero = nest.code.integer(0, Type::I64);
    let negative = nest.code.compare(Compare::Lt, index, zero);
    nest.code.select(negative, extent, index)
}

/// Rows of a table. A negative index is out of bounds here.
pub fn embedding(l: &mut Lowering<'_>) -> Lowered {
    let (table, indices) = (l.args.tensor(0)?, l.args.tensor(1)?);
    l.map(|p| {
        let count = p.axes.len() - 1;
        let outer = p.axes[..count].to_vec();
        let index = p.nest.load(indices, &outer)?;
        let index = refusing_negative(&mut p.nest, index, &table.meta.shape[0]);
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
        let index = refusing_negative(&mut p.nest, index, &source.meta.shape[dim]);
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
        let index = refusing_negative(&mut p.nest, index, &source.meta.shape[dim]);
        let at = p.nest.bounded(index, &source.meta.shape[dim], &source.meta.stride[dim]);
        let axes: Vec<_> = axes.iter().enumerate().map(|(d, axis)| (d != dim).then_some(*axis)).collect();
        p.nest.gather(source, &axes, at)
    })
}

/// The index tensors of a call, one for each dimension that is indexed.
struct Indices<'a> {
    places: Vec<Option<&'a Place>>,
    /// How many dimensions of the tensor come before those of the indices: all before the first that is indexed, or none
    /// if others are between.
    front: usize,
    /// The shape that the indices broadcast to.
    shape: SymDims,
}

impl<'a> Indices<'a> {
    fn of(l: &Lowering<'a>, argument: usize) -> Result<Self, OpError> {
        let places = match l.args.value(argument) {
            Value::List(items) => items.iter().map(Value::as_tensor).collect::<Vec<_>>(),
            _ => return Err(OpError::unsupported("indices that are no list")),
        };
        if places.iter().flatten().any(|place| matches!(place.meta.dtype, DType::Bool | DType::U8)) {
            return Err(OpError::unsupported("masks as indices"));
        }
        let given: Vec<usize> = (0..places.len()).filter(|d| places[*d].is_some()).collect();
        let (Some(first), Some(last)) = (given.first(), given.last()) else {
            return Err(OpError::unsupported("no indices"));
        };
        let front = if last - first + 1 == given.len() { *first } else { 0 };
        let shapes: Vec<&[SymInt]> = places.iter().flatten().map(|place| &place.meta.shape[..]).collect();
        let shape = broadcast(&shapes)?;
        Ok(Self { places, front, shape })
    }

    /// The shape of what is picked from a tensor, or put there.
    fn picked(&self, source: &Place) -> SymDims {
        let is_whole = |dim: usize| self.places.get(dim).copied().flatten().is_none();
        let whole = source.meta.shape.iter().enumerate().filter(|(dim, _)| is_whole(*dim)).map(|(_, size)| size);
        let (before, after): (Vec<_>, Vec<_>) = whole.cloned().enumerate().partition(|(at, _)| *at < self.front);
        let sizes = |part: Vec<(usize, SymInt)>| part.into_iter().map(|(_, size)| size);
        sizes(before).chain(self.shape.iter().cloned()).chain(sizes(after)).collect()
    }

    /// For a position of what is picked from a tensor: the axes that its dimensions move along, and the distance that
    /// the indices add.
    fn at(&self, nest: &mut Nest, axes: &[AxisId], source: &Place) -> Result<(Vec<Option<AxisId>>, Val), OpError> {
        let (front, rank) = (self.front, self.shape.len());
        let over = &axes[front..front + rank];
        let mut whole = axes[..front].iter().chain(&axes[front + rank..]).copied();
        let mut at = None;
        let mut moving = Vec::new();
        for (dim, (size, stride)) in source.meta.shape.iter().zip(&source.meta.stride).enumerate() {
            let Some(place) = self.places.get(dim).copied().flatten() else {
                moving.push(whole.next());
                continue;
            };
            moving.push(None);
            let map = broadcast_axes(&nest.kernel, &place.meta, over)?;
            let index = nest.load_at(place, &map)?;
            let distance = nest.bounded(index, size, stride);
            at = Some(match at {
                None => distance,
                Some(sum) => nest.code.binary(Binary::Add, sum, distance),
            });
        }
        Ok((moving, at.ok_or_else(|| OpError::fault("an index without indices"))?))
    }
}

/// Elements by index tensors for some dimensions, the others whole.
pub fn index(l: &mut Lowering<'_>) -> Lowered {
    let source = l.args.tensor(0)?;
    let indices = Indices::of(l, 1)?;
    l.map(|p| {
        let (moving, at) = indices.at(&mut p.nest, &p.axes, source)?;
        p.nest.gather(source, &moving, at)
    })
}

/// How values are added to elements of a type. Half precisions are summed up with more digits.
fn adding(result: &Place) -> Result<Write, OpError> {
    match result.meta.dtype {
        DType::F16 | DType::BF16 => Err(OpError::unsupported("sums of half precisions in loops")),
        _ => Ok(Write::Add),
    }
}

/// Values written or added where index tensors say.
pub fn index_put(l: &mut Lowering<'_>) -> Lowered {
    let (values, result) = (l.args.tensor(2)?, l.result()?);
    let write = if l.args.bool(3)? { adding(result)? } else { Write::Set };
    let indices = Indices::of(l, 1)?;
    let shape = indices.picked(result);
    if broadcast(&[&shape, &values.meta.shape]).ok().as_ref() != Some(&shape) {
        return Err(OpError::unsupported("values that do not have the shape of what is indexed"));
    }
    l.map(|p| p.own(0))?;
    let mut nest = l.nest();
    let axes = nest.rows(&shape);
    let value = nest.load(values, &axes)?;
    let (moving, at) = indices.at(&mut nest, &axes, result)?;
    nest.scatter(result, &moving, at, value, write)?;
    l.finish(nest);
    Ok(())
}

/// Values written or added along a dimension where an index tensor says, one for each of its positions.
fn scattered(l: &mut Lowering<'_>, write: Write) -> Lowered {
    let (indices, result) = (l.args.tensor(2)?, l.result()?);
    let rank = result.meta.rank();
    if rank == 0 || indices.meta.rank() != rank {
        return Err(OpError::unsupported("indices of a number"));
    }
    let dim = dimension(l.args.int(1)?, rank)?;
    l.map(|p| p.own(0))?;
    let mut nest = l.nest();
    let axes = nest.rows(&indices.meta.shape);
    let along: Vec<_> = axes.iter().copied().map(Some).collect();
    let value = match l.args.value(3) {
        Value::Tensor(source) if source.meta.rank() != rank => {
            return Err(OpError::unsupported("a number as a source"));
        }
        // It may be larger than the indices.
        Value::Tensor(source) => nest.load_at(source, &along)?,
        _ => nest.literal_of(l.args.scalar(3)?, result.meta.dtype)?,
    };
    let index = nest.load_at(indices, &along)?;
    let index = refusing_negative(&mut nest, index, &result.meta.shape[dim]);
    let at = nest.bounded(index, &result.meta.shape[dim], &result.meta.stride[dim]);
    let moving: Vec<_> = along.iter().enumerate().map(|(d, axis)| axis.filter(|_| d != dim)).collect();
    nest.scatter(result, &moving, at, value, write)?;
    l.finish(nest);
    Ok(())
}

/// Elements or a number written along a dimension.
pub fn scatter(l: &mut Lowering<'_>) -> Lowered {
    scattered(l, Write::Set)
}

/// Elements added along a dimension.
pub fn scatter_add(l: &mut Lowering<'_>) -> Lowered {
    let write = adding(l.result()?)?;
    scattered(l, write)
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
