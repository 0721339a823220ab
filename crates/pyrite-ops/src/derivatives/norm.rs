//! Derivatives of normalisations, by their backward operators and from the statistics that the forward pass saved.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};

use super::backward::{gradients, mask};

/// `native_layer_norm`.
pub fn layer_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let args = [
        p.grad()?.into(),
        p.value(0),
        p.value(1),
        p.result(1)?.into(),
        p.result(2)?.into(),
        p.value(2),
        p.value(3),
        mask(p, &[0, 2, 3]),
    ];
    gradients(e, "aten.native_layer_norm_backward.default", &args, &[0, 2, 3])
}

/// `_fused_rms_norm`.
pub fn rms_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let args = [p.grad()?.into(), p.value(0), p.value(1), p.result(1)?.into(), p.value(2), mask(p, &[0, 2])];
    gradients(e, "aten._fused_rms_norm_backward.default", &args, &[0, 2])
}

/// `native_group_norm`.
pub fn group_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let mut args = vec![p.grad()?.into(), p.value(0), p.result(1)?.into(), p.result(2)?.into(), p.value(1)];
    args.extend((3..7).map(|index| p.value(index)));
    args.push(mask(p, &[0, 1, 2]));
    gradients(e, "aten.native_group_norm_backward.default", &args, &[0, 1, 2])
}

/// By which statistics a batch norm normalizes.
enum Statistics {
    Batch,
    Running,
}

impl Statistics {
    fn chosen(training: bool) -> Self {
        if training { Self::Batch } else { Self::Running }
    }
}

/// The gradients of a batch norm whose running statistics, if it has any, stand at 3 and 4, and epsilon at `eps`.
fn batch(
    e: &mut dyn Emit,
    p: &Pullback<'_>,
    statistics: &Statistics,
    running: bool,
    eps: usize,
) -> Result<Gradients, OpError> {
    let (mean, var) = if running { (p.value(3), p.value(4)) } else { (Value::None, Value::None) };
    if running {
        p.refuse(3)?;
        p.refuse(4)?;
    }
    let saved: [Value<Handle>; 2] = match statistics {
        Statistics::Batch => [p.result(1)?.into(), p.result(2)?.into()],
        Statistics::Running => [Value::None, Value::None],
    };
    let [saved_mean, saved_invstd] = saved;
    let args = [
        p.grad()?.into(),
        p.value(0),
        p.value(1),
        mean,
        var,
        saved_mean,
        saved_invstd,
        matches!(statistics, Statistics::Batch).into(),
        p.value(eps),
        mask(p, &[0, 1, 2]),
    ];
    gradients(e, "aten.native_batch_norm_backward.default", &args, &[0, 1, 2])
}

/// `native_batch_norm`, `_native_batch_norm_legit` and its functional form.
pub fn batch_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    batch(e, p, &Statistics::chosen(p.args.bool(5)?), true, 7)
}

/// `_native_batch_norm_legit.no_stats`.
pub fn batch_norm_no_stats(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    batch(e, p, &Statistics::Batch, false, 5)
}

/// `_native_batch_norm_legit_no_training` and `_batch_norm_no_update`.
pub fn batch_norm_by_running(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    batch(e, p, &Statistics::Running, true, 6)
}

/// `_batch_norm_with_update` and its functional form.
pub fn batch_norm_by_batch(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    batch(e, p, &Statistics::Batch, true, 6)
}
