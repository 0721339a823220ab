//! Derivatives of dropout and of normal numbers, whose parameters count as constants.

use pyrite_ir::{Emit, Pullback, Value, args};

use super::{Calculus, Rule, first};

/// `native_dropout`: what was kept, scaled as it was.
pub fn native_dropout(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let Some(grad) = p.grad_of(0) else { return Ok(Vec::new()) };
    let drop = p.args.float(1)?;
    let scale = match p.args.opt_bool(2)? {
        Some(false) => 1.0,
        _ if drop == 1.0 => 0.0,
        _ => 1.0 / (1.0 - drop),
    };
    first(e.one("aten.native_dropout_backward.default", args![grad, p.result(1)?, scale])?)
}

/// `native_dropout_backward`.
pub fn native_dropout_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.one("aten.native_dropout_backward.default", &[p.grad()?.into(), p.value(1), p.value(2)])?)
}

/// `normal` of tensors: PyTorch takes what is drawn as a constant.
pub fn normal(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let mut grads = Vec::new();
    for (index, value) in p.args.values[..2].iter().enumerate() {
        if let Value::Tensor(parameter) = value {
            grads.push((index, e.zeros_like(*parameter)?.into()));
        }
    }
    Ok(grads)
}
