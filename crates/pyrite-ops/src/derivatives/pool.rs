//! Derivatives of poolings, by their backward operators.
//!
//! Poolings over one dimension are those over two dimensions of which the first has size 1.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};
use pyrite_sym::SymInt;

use super::Calculus;
use super::backward::{gradients, packet};

/// Averages: the backward operator takes the call's arguments.
pub fn average(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let mut args = vec![p.grad()?.into()];
    args.extend(p.args.values.iter().cloned());
    gradients(e, &format!("{}_backward.default", packet(p)), &args, &[0])
}

/// Pools to sizes of zero have no derivative: PyTorch refuses them in the backward pass.
fn expect_windows(e: &dyn Emit, p: &Pullback<'_>) -> Result<(), OpError> {
    let windows = &e.meta(p.grad()?).shape;
    if windows.iter().skip(1).any(|size| size.is_eq(0)) {
        return Err(OpError::unsupported("the derivative of an adaptive pool without windows"));
    }
    Ok(())
}

/// `_adaptive_avg_pool2d` and `_adaptive_avg_pool3d`.
pub fn adaptive_average(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    expect_windows(e, p)?;
    let op = format!("{}_backward.default", packet(p));
    gradients(e, &op, &[p.grad()?.into(), p.value(0)], &[0])
}

/// Maxima with indices: the backward operator takes the call's arguments, then the indices.
pub fn maximum(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let op = format!("{}_backward.default", packet(p));
    let mut args = vec![p.grad()?.into()];
    args.extend(p.args.values.iter().cloned());
    args.push(p.result(1)?.into());
    gradients(e, &op, &args, &[0])
}

/// `adaptive_max_pool2d` and `adaptive_max_pool3d`.
pub fn adaptive_maximum(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    expect_windows(e, p)?;
    let op = format!("{}_backward.default", packet(p));
    gradients(e, &op, &[p.grad()?.into(), p.value(0), p.result(1)?.into()], &[0])
}

/// `fractional_max_pool2d` and `fractional_max_pool3d`.
pub fn fractional(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(3)?;
    let op = format!("{}_backward.default", packet(p));
    gradients(e, &op, &[p.grad()?.into(), p.value(0), p.value(1), p.value(2), p.result(1)?.into()], &[0])
}

/// A tensor with a dimension of size one before the last.
fn flat(e: &mut dyn Emit, a: Handle) -> Result<Value<Handle>, OpError> {
    Ok(e.unsqueeze(a, -2)?.into())
}

/// A list with the number of the dimension of size one before those of the call; an empty list stays empty.
fn before(p: &Pullback<'_>, index: usize, first: i64) -> Value<Handle> {
    match p.value(index) {
        Value::List(items) if !items.is_empty() => Value::List([vec![first.into()], items].concat()),
        other => other,
    }
}

/// Calls a backward operator of two dimensions and drops the first of them.
fn in_plane(e: &mut dyn Emit, op: &str, args: &[Value<Handle>]) -> Result<Gradients, OpError> {
    let grad = e.one(op, args)?;
    Ok(vec![(0, e.one("aten.squeeze.dim", &[grad.into(), (-2i64).into()])?.into())])
}

/// `avg_pool1d`.
pub fn average_1d(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let args = [
        flat(e, p.grad()?)?,
        flat(e, p.tensor(0)?)?,
        before(p, 1, 1),
        before(p, 2, 1),
        before(p, 3, 0),
        p.value(4),
        p.value(5),
        Value::None,
    ];
    in_plane(e, "aten.avg_pool2d_backward.default", &args)
}

/// `adaptive_avg_pool1d`.
pub fn adaptive_average_1d(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    expect_windows(e, p)?;
    let args = [flat(e, p.grad()?)?, flat(e, p.tensor(0)?)?];
    in_plane(e, "aten._adaptive_avg_pool2d_backward.default", &args)
}

/// `max_pool1d_with_indices`.
pub fn maximum_1d(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let args = [
        flat(e, p.grad()?)?,
        flat(e, p.tensor(0)?)?,
        before(p, 1, 1),
        before(p, 2, 1),
        before(p, 3, 0),
        before(p, 4, 1),
        p.value(5),
        flat(e, p.result(1)?)?,
    ];
    in_plane(e, "aten.max_pool2d_with_indices_backward.default", &args)
}

/// `adaptive_max_pool1d`.
pub fn adaptive_maximum_1d(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    expect_windows(e, p)?;
    let args = [flat(e, p.grad()?)?, flat(e, p.tensor(0)?)?, flat(e, p.result(1)?)?];
    in_plane(e, "aten.adaptive_max_pool2d_backward.default", &args)
}

/// `_low_memory_max_pool_with_offsets`, with indices from the offsets.
pub fn maximum_with_offsets(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let x = p.tensor(0)?;
    let dims = p.args.syms(1)?.len();
    let shape = e.shape(x);
    let sizes = shape[shape.len() - dims..].to_vec();
    let [kernel, stride, padding, dilation, ceil] = [1, 2, 3, 4, 5].map(|index| p.value(index));
    let indices = e.one(
        "prims._low_memory_max_pool_offsets_to_indices.default",
        &[p.result(1)?.into(), kernel.clone(), sizes.into(), stride.clone(), padding.clone(), dilation.clone()],
    )?;
    let args = [p.grad()?.into(), x.into(), kernel, stride, padding, dilation, ceil, indices.into()];
    gradients(e, &format!("aten.max_pool{dims}d_with_indices_backward.default"), &args, &[0])
}

/// The elements at positions of the last `dims` dimensions taken as one.
fn picked(e: &mut dyn Emit, from: Handle, indices: Handle, dims: usize) -> Result<Handle, OpError> {
    let shape = e.shape(indices);
    let one = |shape: &[SymInt]| {
        let mut flat = shape[..shape.len() - dims].to_vec();
        flat.push(shape[shape.len() - dims..].iter().fold(1.into(), |n: SymInt, d| n * d));
        flat
    };
    let whole = one(&e.shape(from));
    let from = e.reshape(from, &whole)?;
    let at = e.reshape(indices, &one(&shape))?;
    let found = e.one("aten.gather.default", &[from.into(), (-1i64).into(), at.into()])?;
    e.reshape(found, &shape)
}

/// `max_unpool2d`.
pub fn unpool_2d(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    Ok(vec![(0, picked(e, p.grad()?, p.tensor(1)?, 2)?.into())])
}

/// `max_unpool3d`.
pub fn unpool_3d(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    Ok(vec![(0, picked(e, p.grad()?, p.tensor(1)?, 3)?.into())])
}

/// The backward operators of maxima: the elements at the indices, which are the last argument. Two dimensions or three,
/// as the operator's name says.
pub fn maximum_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let dims = if p.args.schema.name.contains("3d") { 3 } else { 2 };
    let indices = p.tensor(p.args.values.len() - 1)?;
    Ok(vec![(0, picked(e, p.grad()?, indices, dims)?.into())])
}

/// The backward operators of averages, by the forward operators.
pub fn average_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let op = packet(p).replace("_backward", ".default");
    let mut args = vec![p.grad()?.into()];
    args.extend(p.args.values[2..].iter().cloned());
    gradients(e, &op, &args, &[0])
}

/// The backward operators of adaptive averages, by the forward operators.
pub fn adaptive_average_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let op = packet(p).replace("_backward", ".default");
    let dims = if op.contains("3d") { 3 } else { 2 };
    let shape = e.shape(p.tensor(0)?);
    gradients(e, &op, &[p.grad()?.into(), shape[shape.len() - dims..].to_vec().into()], &[0])
}
