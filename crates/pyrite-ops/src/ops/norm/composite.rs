//! The normalisations that programs call, by their native operators.

use pyrite_ir::{Args, Emit, Handle, OpDef, OpError, Value, args, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::MemoryFormat;

use crate::rules::suggested_format;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
        "Layer norm.",
        |e, a| first(e, "aten.native_layer_norm.default", &a.values[..5]),
    )
    .samples(&["f32[2, 3, 8], [8], f32[8], f32[8]", "f64[2, 3], [3]"]),
    OpDef::composite(
        "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
        "Group norm.",
        group_norm,
    )
    .samples(&["f32[2, 4, 3, 5], 2, f32[4], f32[4]", "f64[2, 6], 3"]),
    OpDef::composite(
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        "Batch norm.",
        |e, a| first(e, "aten.native_batch_norm.default", &a.values[..8]),
    )
    .samples(&[
        "f32[2, 4, 3, 5], f32[4], f32[4], None, None, True, 0.1, 1e-5, True",
        "f32[2, 4], None, None, f32[4], f32[4]{0.5..1.5}, False, 0.1, 1e-5, True",
    ]),
    OpDef::composite(
        "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        "Every channel of every sample normalised on its own.",
        instance_norm,
    )
    .samples(&[
        "f32[2, 4, 3, 5], f32[4], f32[4], None, None, True, 0.1, 1e-5, True",
        "f64[2, 4, 6], None, None, f64[4], f64[4]{0.5..1.5}, False, 0.1, 1e-5, True",
    ]),
    OpDef::composite(
        "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
        "Rows divided by the root of their mean square, scaled.",
        |e, a| {
            let format = suggested_format(e.meta(*a.tensor(0)?));
            let normalised = first(e, "aten._fused_rms_norm.default", a.values)?;
            // PyTorch computes images with their channels last operator by operator, in their own order.
            match format {
                MemoryFormat::Contiguous => Ok(normalised),
                format => e.call("aten.clone.default", args![normalised, format]),
            }
        },
    )
    .samples(&["f32[2, 3, 8], [8], f32[8], 1e-5", "f64[2, 3], [3]", "f32[2, 3, 4, 5]<[60, 1, 15, 3], [5]"]),
];

/// The first result of a native operator.
fn first(e: &mut dyn Emit, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
    Ok(e.many(op, args)?[0].into())
}

fn group_norm(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let shape = e.shape(*a.tensor(0)?);
    if shape.len() < 2 {
        invalid!("group norm wants at least two dimensions, not {}", shape.len());
    }
    let rest = shape[2..].iter().fold(SymInt::Int(1), |n, d| n * d);
    let [input, groups, weight, bias, eps] = std::array::from_fn(|i| a.value(i).clone());
    let (n, c) = ((&shape[0]).into(), (&shape[1]).into());
    first(e, "aten.native_group_norm.default", &[input, weight, bias, n, c, rest.into(), groups, eps])
}

/// A batch norm of one sample that has every channel of every sample. Running statistics move to the mean over samples.
fn instance_norm(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let input = *a.tensor(0)?;
    let shape = e.shape(input);
    if shape.len() < 2 {
        invalid!("instance norm wants at least two dimensions, not {}", shape.len());
    }
    let (samples, channels) = (shape[0].clone(), shape[1].clone());
    let mut merged = vec![SymInt::Int(1), &samples * &channels];
    merged.extend_from_slice(&shape[2..]);
    let flat = e.one("aten.reshape.default", args![input, merged.as_slice()])?;
    let mut given = vec![flat.into()];
    for index in 1..5 {
        given.push(match a.opt_tensor(index)? {
            Some(each) => e.one("aten.repeat.default", args![*each, [samples.clone()].as_slice()])?.into(),
            None => Value::None,
        });
    }
    given.extend_from_slice(&a.values[5..9]);
    let out = e.one("aten.batch_norm.default", &given)?;
    if a.bool(5)? {
        for (index, moved) in given.iter().enumerate().take(5).skip(3) {
            if let (Some(running), Value::Tensor(moved)) = (a.opt_tensor(index)?, moved) {
                let each = [samples.clone(), channels.clone()];
                let each = e.one("aten.reshape.default", args![*moved, each.as_slice()])?;
                let mean = e.one("aten.mean.dim", args![each, vec![0i64], false])?;
                e.one("aten.copy_.default", args![*running, mean])?;
            }
        }
    }
    Ok(e.one("aten.reshape.default", args![out, &*shape])?.into())
}
