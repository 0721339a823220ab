//! Pooling over windows of the last two dimensions.

use pyrite_ir::OpError;
use pyrite_ir::lower::{Lowering, Place};
use pyrite_loops::{AxisId, Binary, Inst, Reduction, Type, Write};
use pyrite_sym::SymInt;

type Lowered = Result<(), OpError>;

/// Two numbers of an argument that gives one for both, or none for the defaults.
fn pair(l: &Lowering<'_>, index: usize, default: [i64; 2]) -> Result<[i64; 2], OpError> {
    let given = l.args.ints(index)?;
    Ok(match given[..] {
        [] => default,
        [both] => [both, both],
        [first, second, ..] => [first, second],
    })
}

/// The last two sizes of a tensor, which must be known.
fn plane(place: &Place) -> Result<[i64; 2], OpError> {
    let rank = place.meta.rank();
    let size = |d: usize| {
        let size = place.meta.shape[d].as_int();
        size.ok_or_else(|| OpError::unsupported("pooling of planes of unknown size in loops"))
    };
    if rank < 3 {
        return Err(OpError::unsupported("pooling of a plane without channels in loops"));
    }
    Ok([size(rank - 2)?, size(rank - 1)?])
}

/// Steps along a tensor for windows: the leading axes one by one, then those of the windows and those within them.
fn moves(rank: usize, axes: &[AxisId], stride: [i64; 2], inner: [AxisId; 2]) -> Vec<(usize, AxisId, SymInt)> {
    let mut moves: Vec<(usize, AxisId, SymInt)> = (0..rank - 2).map(|d| (d, axes[d], SymInt::Int(1))).collect();
    for d in 0..2 {
        moves.push((rank - 2 + d, axes[rank - 2 + d], stride[d].into()));
        moves.push((rank - 2 + d, inner[d], SymInt::Int(1)));
    }
    moves
}

/// The mean of every window that lies within the plane.
fn averaged(l: &mut Lowering<'_>, window: [i64; 2], stride: [i64; 2], divisor: f64) -> Lowered {
    let (source, result) = (l.args.tensor(0)?, l.result()?);
    let ty = result.ty()?;
    if !ty.is_float() {
        return Err(OpError::unsupported("averages of integers in loops"));
    }
    let rank = source.meta.rank();
    let mut nest = l.nest();
    let axes = nest.rows(&result.meta.shape);
    let inner = window.map(|extent| nest.kernel.add_axis(extent.into()));
    let access = nest.access_by(source, &moves(rank, &axes, stride, inner));
    let value = nest.code.push(Inst::Load(access), source.ty()?);
    let value = nest.code.cast(ty, value);
    let sum = nest.reduced(&inner, Reduction::Sum, value, None);
    let count = nest.code.number(divisor, ty);
    let mean = nest.code.binary(Binary::Div, sum, count);
    nest.store(result, &axes, mean)?;
    l.finish(nest);
    Ok(())
}

/// Means of windows without padding.
pub fn avg_pool2d(l: &mut Lowering<'_>) -> Lowered {
    let window = pair(l, 1, [1, 1])?;
    let stride = pair(l, 2, window)?;
    let [height, width] = plane(l.args.tensor(0)?)?;
    if pair(l, 3, [0, 0])? != [0, 0] || l.args.bool(4)? || height < window[0] || width < window[1] {
        return Err(OpError::unsupported("averages over a border in loops"));
    }
    let divisor = l.args.opt_int(6)?.unwrap_or(window[0] * window[1]);
    averaged(l, window, stride, divisor as f64)
}

/// The window of an adaptive pool whose windows are all alike.
fn even_window(from: &Place, to: &Place) -> Result<[i64; 2], OpError> {
    let (outer, inner) = (plane(from)?, plane(to)?);
    if inner.contains(&0) || outer[0] % inner[0] != 0 || outer[1] % inner[1] != 0 {
        return Err(OpError::unsupported("windows of different sizes in loops"));
    }
    Ok([outer[0] / inner[0], outer[1] / inner[1]])
}

/// Means of as many windows as are asked for.
pub fn adaptive_avg_pool2d(l: &mut Lowering<'_>) -> Lowered {
    let window = even_window(l.args.tensor(0)?, l.result()?)?;
    averaged(l, window, window, (window[0] * window[1]) as f64)
}

/// The gradient of that: every element gets its share of its window's.
pub fn adaptive_avg_pool2d_backward(l: &mut Lowering<'_>) -> Lowered {
    let (gradient, result) = (l.args.tensor(0)?, l.result()?);
    let window = even_window(result, gradient)?;
    let ty = result.ty()?;
    let rank = result.meta.rank();
    let mut nest = l.nest();
    let axes = nest.rows(&gradient.meta.shape);
    let inner = window.map(|extent| nest.kernel.add_axis(extent.into()));
    nest.kernel.rows.extend(inner);
    let value = nest.load(gradient, &axes)?;
    let value = nest.code.cast(ty, value);
    let count = nest.code.number((window[0] * window[1]) as f64, ty);
    let share = nest.code.binary(Binary::Div, value, count);
    let access = nest.access_by(result, &moves(rank, &axes, window, inner));
    nest.code.push(Inst::Store { access, value: share }, ty);
    l.finish(nest);
    Ok(())
}

/// The largest of every window, and where it is in its plane. Positions in the padding stand for the nearest element of
/// the plane, which is in the window too, so they change nothing.
pub fn max_pool2d_with_indices(l: &mut Lowering<'_>) -> Lowered {
    let source = l.args.tensor(0)?;
    let (values, places) = (&l.results[0], &l.results[1]);
    let window = pair(l, 1, [1, 1])?;
    let stride = pair(l, 2, window)?;
    let padding = pair(l, 3, [0, 0])?;
    let sizes = plane(source)?;
    if pair(l, 4, [1, 1])? != [1, 1] || sizes.contains(&0) {
        return Err(OpError::unsupported("windows with holes in loops"));
    }
    let rank = source.meta.rank();
    let mut nest = l.nest();
    let axes = nest.rows(&values.meta.shape);
    let inner = window.map(|extent| nest.kernel.add_axis(extent.into()));
    let mut at = None;
    let mut index = None;
    for d in 0..2 {
        let outer = nest.index(axes[rank - 2 + d]);
        let step = nest.code.integer(stride[d], Type::I64);
        let begin = nest.code.binary(Binary::Mul, outer, step);
        let within = nest.index(inner[d]);
        let place = nest.code.binary(Binary::Add, begin, within);
        let border = nest.code.integer(padding[d], Type::I64);
        let place = nest.code.binary(Binary::Sub, place, border);
        let (first, last) = (nest.code.integer(0, Type::I64), nest.code.integer(sizes[d] - 1, Type::I64));
        let place = nest.code.binary(Binary::Max, place, first);
        let place = nest.code.binary(Binary::Min, place, last);
        let distance = nest.distance(place, &source.meta.stride[rank - 2 + d]);
        at = Some(at.map_or(distance, |sum| nest.code.binary(Binary::Add, sum, distance)));
        index = Some(match index {
            None => place,
            Some(row) => {
                let width = nest.code.integer(sizes[d], Type::I64);
                let row = nest.code.binary(Binary::Mul, row, width);
                nest.code.binary(Binary::Add, row, place)
            }
        });
    }
    let (Some(at), Some(index)) = (at, index) else { return Err(OpError::fault("a plane has two dimensions")) };
    let leading: Vec<Option<AxisId>> = (0..rank).map(|d| (d < rank - 2).then(|| axes[d])).collect();
    let value = nest.gather(source, &leading, at)?;
    let largest = nest.also_reduced(Reduction::Max, value, None);
    let place = nest.also_reduced(Reduction::ArgMax, value, Some(index));
    nest.next_phase(&inner);
    for (result, to) in [(largest, values), (place, places)] {
        let value = nest.result(result);
        nest.store(to, &axes, value)?;
    }
    l.finish(nest);
    Ok(())
}

/// The gradient of that: every element of the gradient added where the index says.
pub fn max_pool2d_with_indices_backward(l: &mut Lowering<'_>) -> Lowered {
    let (gradient, indices, result) = (l.args.tensor(0)?, l.args.tensor(7)?, l.result()?);
    let rank = result.meta.rank();
    let [height, width] = plane(result)?;
    // An index counts through the plane; it must be a distance in memory too.
    let (down, right) = (&result.meta.stride[rank - 2], &result.meta.stride[rank - 1]);
    if *down != right.clone() * SymInt::Int(width) {
        return Err(OpError::unsupported("planes that are not dense in loops"));
    }
    l.map(|p| {
        let ty = p.ty()?;
        Ok(p.code().number(0.0, ty))
    })?;
    let mut nest = l.nest();
    let axes = nest.rows(&gradient.meta.shape);
    let value = nest.load(gradient, &axes)?;
    let index = nest.load(indices, &axes)?;
    let at = nest.bounded(index, &(height * width).into(), right);
    let leading: Vec<Option<AxisId>> = (0..rank).map(|d| (d < rank - 2).then(|| axes[d])).collect();
    nest.scatter(result, &leading, at, value, Write::Add)?;
    l.finish(nest);
    Ok(())
}
