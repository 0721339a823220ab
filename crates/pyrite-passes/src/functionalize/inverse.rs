//! Undoing a view: what a tensor becomes when a view of it gets other content.

use pyrite_ir::{Emit, OpError, Value};

use super::state::{Pure, State, ViewStep};

/// The value of the viewed tensor, which was `before`, when the view has become `content`.
pub(super) fn undo(state: &mut State<'_>, step: &ViewStep, before: Pure, content: Pure) -> Result<Pure, OpError> {
    let whole = state.tracer.meta(before).clone();
    let rank = whole.rank();
    let arg = |index: usize| -> Value<Pure> {
        let plain: Result<_, std::convert::Infallible> =
            step.args.get(index).unwrap_or(&Value::None).try_map(&mut |_| Ok(Value::None));
        let Ok(value) = plain;
        value
    };
    let int = |index: usize| arg(index).as_scalar().map(pyrite_tensor::Scalar::to_i64);
    let wrap = |dim: i64| if dim < 0 { dim + rank.max(1) as i64 } else { dim };
    let stem = step.op.name().split('.').nth(1).unwrap_or_default();
    match stem {
        "alias" | "detach" | "lift_fresh" | "resolve_conj" | "resolve_neg" => Ok(content),
        "_conj" => state.call_pure("aten._conj.default", &[content.into()]),
        "_neg_view" => state.call_pure("aten._neg_view.default", &[content.into()]),
        "view" if step.op.name() == "aten.view.dtype" => {
            state.call_pure("aten.view.dtype", &[content.into(), whole.dtype.into()])
        }
        "view" | "_reshape_alias" | "unsqueeze" | "squeeze" | "unflatten" => {
            state.call_pure("aten.reshape.default", &[content.into(), (&*whole.shape).into()])
        }
        "expand" | "broadcast_to" => {
            // Writes to repeated elements were refused; what is left changes the number of dimensions only.
            state.call_pure("aten.reshape.default", &[content.into(), (&*whole.shape).into()])
        }
        "transpose" | "swapaxes" | "swapdims" => {
            state.call_pure("aten.transpose.int", &[content.into(), arg(1), arg(2)])
        }
        "t" | "mT" | "mH" | "numpy_T" | "permute" | "movedim" | "moveaxis" => {
            let order = permutation(state, step, before)?;
            let mut back = vec![0i64; order.len()];
            for (to, from) in order.iter().enumerate() {
                back[*from] = to as i64;
            }
            state.call_pure("aten.permute.default", &[content.into(), back.into()])
        }
        "select" => state.call_pure("aten.select_scatter.default", &[before.into(), content.into(), arg(1), arg(2)]),
        "slice" => state
            .call_pure("aten.slice_scatter.default", &[before.into(), content.into(), arg(1), arg(2), arg(3), arg(4)]),
        "narrow" => {
            let (Some(dim), Value::Int(length)) = (int(1), arg(3)) else {
                return generic(state, step, before, content);
            };
            let Value::Int(start) = arg(2) else { return generic(state, step, before, content) };
            let dim = wrap(dim);
            let start = if start.is_lt(0) { start + &whole.shape[dim as usize] } else { start };
            let end = &start + &length;
            state.call_pure(
                "aten.slice_scatter.default",
                &[before.into(), content.into(), dim.into(), start.into(), end.into(), 1i64.into()],
            )
        }
        "diagonal" => {
            state.call_pure("aten.diagonal_scatter.default", &[before.into(), content.into(), arg(1), arg(2), arg(3)])
        }
        "unbind" => {
            let (dim, at) = (int(1).unwrap_or(0), step.item.unwrap_or(0) as i64);
            state.call_pure("aten.select_scatter.default", &[before.into(), content.into(), dim.into(), at.into()])
        }
        "view_as_real" => state.call_pure("aten.view_as_complex.default", &[content.into()]),
        "view_as_complex" => state.call_pure("aten.view_as_real.default", &[content.into()]),
        _ => generic(state, step, before, content),
    }
}

/// The order of dimensions that a permuting view makes: for each of its dimensions, which one of the tensor it is. Read
/// off metadata of a tensor of the same rank whose strides tell the dimensions apart.
fn permutation(state: &State<'_>, step: &ViewStep, before: Pure) -> Result<Vec<usize>, OpError> {
    use pyrite_ir::Meta;
    use pyrite_sym::SymInt;
    let meta = state.tracer.meta(before);
    let strides: Vec<SymInt> = (0..meta.rank()).map(|d| SymInt::Int(d as i64 + 1)).collect();
    let probe = Meta { stride: strides.as_slice().into(), ..meta.clone() };
    let args: Vec<Value<Meta>> = step
        .args
        .iter()
        .enumerate()
        .map(
            |(index, arg)| {
                if index == step.viewed { Value::Tensor(probe.clone()) } else { arg.map(&mut |_| probe.clone()) }
            },
        )
        .collect();
    let Value::Tensor(view) = pyrite_ir::infer::infer(state.tracer.registry(), &step.op, &args)? else {
        return Err(OpError::fault(format!("{} permutes nothing", step.op.name())));
    };
    Ok(view.stride.iter().map(|s| s.as_int().unwrap_or(1) as usize - 1).collect())
}

/// By the place of the view in the memory of the tensor, which serves for every view of the same element type.
fn generic(state: &mut State<'_>, step: &ViewStep, before: Pure, content: Pure) -> Result<Pure, OpError> {
    let whole = state.tracer.meta(before).clone();
    let view = state.view_meta(step, before)?;
    if view.dtype != whole.dtype {
        return Err(OpError::unsupported(format!("a write through {}, which changes the type", step.op.name())));
    }
    let args = [before.into(), content.into(), (&*view.shape).into(), (&*view.stride).into(), (&view.offset).into()];
    state.call_pure("aten.as_strided_scatter.default", &args)
}
