//! Derivatives of copies, of copies into parts of tensors, and of the gradients of views, which are linear in turn.

use pyrite_ir::{Emit, Handle, OpError, Pullback, Value, args};

use super::view::may_overlap;
use super::{Calculus, Rule};

/// `clone` and conversions: the gradient passes, back to the device of the argument.
pub fn converted(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    let home = e.meta(p.tensor(0)?).device.clone();
    if e.meta(grad).device == home {
        return Ok(vec![(0, grad.into())]);
    }
    let moved = e.one("aten._to_copy.default", &[grad.into(), Value::None, Value::None, home.into()])?;
    Ok(vec![(0, moved.into())])
}

/// `copy`: nothing of the first argument is left.
pub fn copy(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    let mut grads = vec![(1, grad.into())];
    if p.wants(0) {
        grads.push((0, e.zeros_like(grad)?.into()));
    }
    Ok(grads)
}

/// `select_scatter`.
pub fn select_scatter(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    scattered(e, p, "aten.select.int")
}

/// `slice_scatter`.
pub fn slice_scatter(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    scattered(e, p, "aten.slice.Tensor")
}

/// `diagonal_scatter`.
pub fn diagonal_scatter(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    scattered(e, p, "aten.diagonal.default")
}

/// Where a part was overwritten: the part's gradient is the view, the rest's what is left when the part is zero.
fn scattered(e: &mut dyn Emit, p: &Pullback<'_>, view: &str) -> Rule {
    let (grad, place) = (p.grad()?, &p.args.values[2..]);
    written(e, p, grad, place, view)
}

/// `as_strided_scatter`: as the others, on a gradient that is laid out like the argument.
pub fn as_strided_scatter(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let x = e.meta(p.tensor(0)?).clone();
    if !x.is_dense() || may_overlap(&x) {
        return Err(OpError::unsupported("the derivative of as_strided_scatter into a tensor that is not dense"));
    }
    let offset = p.args.opt_sym(4)?.unwrap_or_else(|| x.offset.clone()) - &x.offset;
    let grad = e.one("aten.copy.default", args![p.tensor(0)?, p.grad()?])?;
    written(e, p, grad, &[p.value(2), p.value(3), offset.into()], "aten.as_strided.default")
}

fn written(e: &mut dyn Emit, p: &Pullback<'_>, grad: Handle, place: &[Value<Handle>], view: &str) -> Rule {
    let at = |first: &[Handle]| {
        let mut values: Vec<Value<Handle>> = first.iter().map(|h| (*h).into()).collect();
        values.extend_from_slice(place);
        values
    };
    let mut grads = Vec::new();
    if p.wants(0) {
        let nothing = e.zeros(&e.shape(p.tensor(1)?), grad)?;
        grads.push((0, e.one(&p.args.schema.name, &at(&[grad, nothing]))?.into()));
    }
    if p.wants(1) {
        grads.push((1, e.one(view, &at(&[grad]))?.into()));
    }
    Ok(grads)
}

/// `select_backward`.
pub fn select_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    viewed(e, p, "aten.select.int")
}

/// `slice_backward`.
pub fn slice_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    viewed(e, p, "aten.slice.Tensor")
}

/// `diagonal_backward`.
pub fn diagonal_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    viewed(e, p, "aten.diagonal.default")
}

/// `unfold_backward`.
pub fn unfold_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    viewed(e, p, "aten.unfold.default")
}

/// The gradient of a view's gradient is the view.
fn viewed(e: &mut dyn Emit, p: &Pullback<'_>, view: &str) -> Rule {
    let mut values: Vec<Value<Handle>> = vec![p.grad()?.into()];
    values.extend_from_slice(&p.args.values[2..]);
    Ok(vec![(0, e.one(view, &values)?.into())])
}
