//! Distances between all pairs of points, and their gradients, without the differences in memory.

use pyrite_ir::OpError;
use pyrite_ir::lower::Lowering;
use pyrite_loops::{Binary, Compare, Reduction, Unary};

type Lowered = Result<(), OpError>;

/// Distances of the orders one and two.
pub fn cdist(l: &mut Lowering<'_>) -> Lowered {
    let order = l.args.float(2)?;
    distances(l, order)
}

/// Distances of the order two.
pub fn euclidean(l: &mut Lowering<'_>) -> Lowered {
    distances(l, 2.0)
}

fn distances(l: &mut Lowering<'_>, order: f64) -> Lowered {
    let is_square = order == 2.0;
    if !is_square && order != 1.0 {
        return Err(OpError::unsupported("distances of other orders than one and two in loops"));
    }
    let (left, right, result) = (l.args.tensor(0)?, l.args.tensor(1)?, l.result()?);
    let mut nest = l.nest();
    let axes = nest.rows(&result.meta.shape);
    let (batch, pair) = axes.split_at(axes.len() - 2);
    let along = nest.kernel.add_axis(left.meta.shape[left.meta.rank() - 1].clone());
    let a = nest.load(left, &[batch, &[pair[0], along]].concat())?;
    let b = nest.load(right, &[batch, &[pair[1], along]].concat())?;
    let difference = nest.code.binary(Binary::Sub, a, b);
    let term = if is_square {
        nest.code.binary(Binary::Mul, difference, difference)
    } else {
        nest.code.unary(Unary::Abs, difference)
    };
    let sum = nest.reduced(&[along], Reduction::Sum, term, None);
    let distance = if is_square { nest.code.unary(Unary::Sqrt, sum) } else { sum };
    nest.store(result, &axes, distance)?;
    l.finish(nest);
    Ok(())
}

/// The gradient of distances of the order two for the first points. Where points or coordinates coincide it is zero.
pub fn cdist_backward(l: &mut Lowering<'_>) -> Lowered {
    if l.args.float(3)? != 2.0 {
        return Err(OpError::unsupported("gradients of distances of other orders than two in loops"));
    }
    let (gradient, left, right) = (l.args.tensor(0)?, l.args.tensor(1)?, l.args.tensor(2)?);
    let (distances, result) = (l.args.tensor(4)?, l.result()?);
    if gradient.meta.rank() != result.meta.rank() {
        return Err(OpError::unsupported("gradients of no distances in loops"));
    }
    let ty = result.ty()?;
    let mut nest = l.nest();
    let axes = nest.rows(&result.meta.shape);
    let (batch, own) = axes.split_at(axes.len() - 2);
    let other = nest.kernel.add_axis(right.meta.shape[right.meta.rank() - 2].clone());
    let pair = [batch, &[own[0], other]].concat();
    let (slope, distance) = (nest.load(gradient, &pair)?, nest.load(distances, &pair)?);
    let a = nest.load(left, &axes)?;
    let b = nest.load(right, &[batch, &[other, own[1]]].concat())?;
    let difference = nest.code.binary(Binary::Sub, a, b);
    let zero = nest.code.number(0.0, ty);
    let share = nest.code.binary(Binary::Div, difference, distance);
    let same = nest.code.compare(Compare::Eq, difference, zero);
    let near = nest.code.compare(Compare::Eq, distance, zero);
    let still = nest.code.binary(Binary::Or, same, near);
    let share = nest.code.select(still, zero, share);
    let term = nest.code.binary(Binary::Mul, slope, share);
    let sum = nest.reduced(&[other], Reduction::Sum, term, None);
    nest.store(result, &axes, sum)?;
    l.finish(nest);
    Ok(())
}
