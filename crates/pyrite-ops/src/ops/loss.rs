//! Losses: how far predictions are from targets.
//!
//! A reduction is 0 for one value per element, 1 for the mean, 2 for the sum. Elementwise losses compute in `f64` and
//! round once. Classes are read from an integer tensor; those equal to `ignore_index` count for nothing.

use pyrite_ir::{Args, Call, Emit, Handle, Meta, OpDef, OpError, SymDims, Value, args, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use crate::decompositions::loss as by;
use crate::derivatives::loss as d;
use crate::kernels::Pointwise;
use crate::rules::{expect_same_shape, operand_dtype, preserved_strides, same_as};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        "The squared difference.",
        |a| infer_pair(a, 2),
        |call| pair(call, 2, |x, y| (x - y) * (x - y)),
    )
    .derivative(d::symmetric)
    .decompose(by::mse)
    .samples(&["f32[3, 4], f32[3, 4]", "f64[3, 4]<[1, 3], f64[4], 0", "bf16[5], bf16[5], 2", "f32[0], f32[0]"]),
    OpDef::kernel(
        "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
        "The gradient of `mse_loss`.",
        infer_pair_backward,
        |call| pair_backward(call, 3, |x, y| 2.0 * (x - y)),
    )
    .derivative(d::mse_backward)
    .decompose(by::mse_backward)
    .samples(&["f32[], f32[3, 4], f32[3, 4], 1", "f64[5], f64[5], f64[5], 0"]),
    OpDef::kernel(
        "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
        "The difference, squared where it is below `beta`.",
        |a| {
            if a.scalar(3)?.to_f64() < 0.0 {
                invalid!("smooth_l1_loss wants a beta that is not negative");
            }
            infer_pair(a, 2)
        },
        smooth_l1,
    )
    .derivative(d::symmetric)
    .decompose(by::smooth_l1)
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], 0, 0.5", "f32[5], f32[5], 2, 0."]),
    OpDef::kernel(
        "aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> \
         Tensor",
        "The gradient of `smooth_l1_loss`.",
        infer_pair_backward,
        smooth_l1_backward,
    )
    .derivative(d::smooth_l1_backward)
    .decompose(by::smooth_l1_backward)
    .samples(&["f32[], f32[3, 4], f32[3, 4], 1, 1.", "f64[5], f64[5], f64[5], 0, 0."]),
    OpDef::kernel(
        "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
        "Half the squared difference, going on linearly from `delta`.",
        |a| {
            if a.float(3)? <= 0.0 {
                invalid!("huber_loss wants a delta above zero");
            }
            if a.tensor(0)?.dtype != a.tensor(1)?.dtype {
                unsupported!("huber_loss of {} and {}", a.tensor(0)?.dtype, a.tensor(1)?.dtype);
            }
            infer_pair(a, 2)
        },
        huber,
    )
    .derivative(d::symmetric)
    .decompose(by::huber)
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], 0, 0.5"]),
    OpDef::kernel(
        "aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> \
         Tensor",
        "The gradient of `huber_loss`.",
        infer_pair_backward,
        huber_backward,
    )
    .derivative(d::huber_backward)
    .decompose(by::huber_backward)
    .samples(&["f32[], f32[3, 4], f32[3, 4], 1, 1.", "f64[5], f64[5], f64[5], 0, 0.5"]),
    OpDef::kernel(
        "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        "`ln(1 + exp(-target·self))`.",
        |a| {
            let (x, target) = (a.tensor(0)?.clone(), a.tensor(1)?.clone());
            // A target of a lesser type is multiplied in place.
            let dtype = if operand_dtype(&[x.clone(), target.clone()]) == x.dtype { x.dtype } else { target.dtype };
            expect_in_place(a, &[x, Meta { dtype, ..target }])?;
            infer_pair(a, 2)
        },
        |call| pair(call, 2, |x, y| (-y * x).exp().ln_1p()),
    )
    .derivative(d::symmetric)
    .decompose(by::soft_margin)
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], 0"]),
    OpDef::kernel(
        "aten::soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
        "The gradient of `soft_margin_loss`.",
        infer_pair_backward,
        |call| pair_backward(call, 3, |x, y| -y / (1.0 + (y * x).exp())),
    )
    .derivative(d::soft_margin_backward)
    .decompose(by::soft_margin_backward)
    .samples(&["f32[], f32[3, 4], f32[3, 4], 1"]),
    OpDef::kernel(
        "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
        "`-weight·(target·ln(self) + (1 - target)·ln(1 - self))`, each logarithm at least -100.",
        infer_cross,
        cross,
    )
    .derivative(d::binary_cross_entropy)
    .decompose(by::binary_cross_entropy)
    .samples(&["f32[3, 4]{0..1}, f32[3, 4]{0..1}", "f64[3, 4]{0..1}, f64[3, 4]{0..1}, f64[4], 0"]),
    OpDef::kernel(
        "aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int \
         reduction=1) -> Tensor",
        "The gradient of `binary_cross_entropy`.",
        infer_cross_backward,
        cross_backward,
    )
    .derivative(d::binary_cross_entropy_backward)
    .decompose(by::binary_cross_entropy_backward)
    .samples(&[
        "f32[], f32[3, 4]{0.1..0.9}, f32[3, 4]{0..1}",
        "f64[3, 4], f64[3, 4]{0.1..0.9}, f64[3, 4]{0..1}, f64[4], 0",
    ]),
    OpDef::kernel(
        "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? \
         pos_weight=None, int reduction=1) -> Tensor",
        "`binary_cross_entropy` of the sigmoid of `self`.",
        infer_cross_logits,
        cross_logits,
    )
    .derivative(d::binary_cross_entropy_with_logits)
    .decompose(by::binary_cross_entropy_with_logits)
    .samples(&["f32[3, 4], f32[3, 4]{0..1}", "f64[3, 4], f64[3, 4]{0..1}, f64[4], f64[4]{0..2}, 0"]),
    OpDef::kernel(
        "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> \
         (Tensor output, Tensor total_weight)",
        "The negative score of each target class, and the sum of the classes' weights.",
        infer_nll,
        nll,
    )
    .derivative(d::nll)
    .constants(&[1])
    .decompose(by::nll)
    .samples(&[
        "f32[3, 4], i64[3]{0..4}, None, 1, -100",
        "f64[3, 4], i64[3]{0..4}, f64[4], 0, 2",
        "f32[4], i64[]{0..4}, None, 2, -100",
    ]),
    OpDef::kernel(
        "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> \
         (Tensor output, Tensor total_weight)",
        "`nll_loss_forward` for every pixel.",
        infer_nll,
        nll,
    )
    .derivative(d::nll)
    .constants(&[1])
    .decompose(by::nll)
    .samples(&[
        "f32[2, 4, 3, 3], i64[2, 3, 3]{0..4}, None, 1, -100",
        "f64[2, 4, 3, 3]<[36, 1, 12, 4], i64[2, 3, 3]{0..4}, f64[4], 0, 2",
    ]),
    OpDef::kernel(
        "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, \
         SymInt ignore_index, Tensor total_weight) -> Tensor",
        "The gradient of `nll_loss_forward`.",
        infer_nll_backward,
        nll_backward,
    )
    .derivative(d::nll_backward)
    .decompose(by::nll_backward)
    .samples(&["f32[], f32[3, 4], i64[3]{0..4}, None, 1, -100, f32[]{3..3}"]),
    OpDef::kernel(
        "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, \
         SymInt ignore_index, Tensor total_weight) -> Tensor",
        "The gradient of `nll_loss2d_forward`.",
        infer_nll_backward,
        nll_backward,
    )
    .derivative(d::nll_backward)
    .decompose(by::nll_backward)
    .samples(&["f32[2, 3, 3], f32[2, 4, 3, 3], i64[2, 3, 3]{0..4}, None, 0, -100, f32[]{3..4}"]),
    OpDef::composite(
        "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> \
         Tensor",
        "The negative score of each target class, reduced.",
        |e, a| Ok(e.many("aten.nll_loss_forward.default", a.values)?[0].into()),
    )
    .samples(&["f32[3, 4], i64[3]{0..4}"]),
    OpDef::composite(
        "aten::nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) \
         -> Tensor",
        "`nll_loss` for every pixel.",
        |e, a| Ok(e.many("aten.nll_loss2d_forward.default", a.values)?[0].into()),
    )
    .samples(&["f32[2, 4, 3, 3], i64[2, 3, 3]{0..4}"]),
    OpDef::composite(
        "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) \
         -> Tensor",
        "`nll_loss` over any number of dimensions.",
        nll_nd,
    )
    .samples(&[
        "f32[3, 4], i64[3]{0..4}",
        "f32[2, 4, 3], i64[2, 3]{0..4}, None, 0",
        "f32[2, 4, 3, 3], i64[2, 3, 3]{0..4}",
    ]),
    OpDef::composite(
        "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt \
         ignore_index=-100, float label_smoothing=0.) -> Tensor",
        "`nll_loss` of the logarithm of the softmax; targets are classes or a probability per class.",
        cross_entropy,
    )
    .samples(&[
        "f32[3, 4], i64[3]{0..4}",
        "f32[2, 4, 3], i64[2, 3]{0..4}, f32[4]{0..1}, 0, 2, 0.1",
        "f32[3, 4], f32[3, 4]{0..1}, f32[4]{0..1}, 1, -100, 0.1",
        "f32[4], i64[]{0..4}, None, 2",
    ]),
    OpDef::composite(
        "aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        "The absolute difference.",
        l1,
    )
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], 0"]),
    OpDef::composite(
        "aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
        "`target·(ln(target) - self)`, with targets that may be logarithms themselves.",
        kl_div,
    )
    .samples(&["f32[3, 4], f32[3, 4]{0..1}", "f64[5], f64[5], 0, log_target=True"]),
    OpDef::composite(
        "aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> \
         Tensor",
        "`max(0, -target·(input1 - input2) + margin)`.",
        margin_ranking,
    )
    .samples(&["f32[5], f32[5], f32[5], 0.5"]),
    OpDef::composite(
        "aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
        "The input where the target is 1, `max(0, margin - input)` where it is -1.",
        hinge_embedding,
    )
    .samples(&["f32[3, 4], i64[4]{-1..2}"]),
    OpDef::composite(
        "aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> \
         Tensor",
        "The negative logarithm of the Poisson likelihood.",
        poisson_nll,
    )
    .samples(&["f32[5], f32[5]{0..5}, True, True, 1e-8, 1", "f32[5]{0..1}, f32[5]{0..5}, False, False, 1e-8, 0"]),
    OpDef::composite(
        "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., \
         float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
        "How much farther an anchor is from the positive than from the negative example, plus a margin.",
        triplet_margin,
    )
    .samples(&["f32[3, 4], f32[3, 4], f32[3, 4]", "f64[3, 4], f64[3, 4], f64[3, 4], 1., 2., 1e-6, True, 0"]),
    OpDef::composite(
        "aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool \
         keepdim=False) -> Tensor",
        "The norm of the difference over the last dimension.",
        |e, a| {
            let distance = distance(e, [*a.tensor(0)?, *a.tensor(1)?], a.float(2)?, a.float(3)?, a.bool(4)?)?;
            Ok(distance.into())
        },
    )
    .samples(&["f32[3, 4], f32[3, 4]", "f64[3, 4], f64[4], 1., 1e-6, True"]),
    OpDef::composite(
        "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
        "The cosine of the angle between vectors.",
        cosine_similarity,
    )
    .samples(&["f32[3, 4], f32[3, 4]", "f64[3, 4], f64[4], -1, 1e-6"]),
];

/// How values become one.
#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    None,
    Mean,
    Sum,
}

fn reduction(code: i64) -> Result<Reduction, OpError> {
    match code {
        0 => Ok(Reduction::None),
        1 => Ok(Reduction::Mean),
        2 => Ok(Reduction::Sum),
        other => invalid!("a reduction is 0, 1 or 2, not {other}"),
    }
}

/// The loss of two tensors that broadcast; the reduction stands at `index`.
fn infer_pair(a: &Args<'_, Meta>, index: usize) -> Result<Value<Meta>, OpError> {
    reduced(a, &[a.tensor(0)?.clone(), a.tensor(1)?.clone()], index)
}

fn reduced(a: &Args<'_, Meta>, operands: &[Meta], index: usize) -> Result<Value<Meta>, OpError> {
    let dtype = operand_dtype(operands);
    if !dtype.is_float() {
        unsupported!("{} for {dtype}", a.schema.name);
    }
    let each = same_as(operands, dtype)?;
    Ok(match reduction(a.int(index)?)? {
        Reduction::None => each,
        _ => each.fresh(&[], dtype),
    }
    .into())
}

/// Computes a value per element of broadcast operands and reduces as the result's shape says.
fn elementwise<const N: usize>(
    call: &Call<'_>,
    operands: [&Tensor; N],
    index: usize,
    f: impl Fn([f64; N]) -> f64 + Sync,
) -> Result<Value<Tensor>, OpError> {
    let how = reduction(call.args.int(index)?)?;
    if how == Reduction::None {
        return Pointwise::as_result(call, operands)?.f64(f).finish();
    }
    let metas: Vec<Meta> = operands.iter().map(|t| Meta::of(t)).collect();
    let shape = same_as(&metas, DType::F64)?.layout()?.shape;
    let values: Vec<Vec<f64>> = operands.iter().map(|t| t.expanded(&shape).to_f64s()).collect();
    let count = values.first().map_or(0, Vec::len);
    let sum: f64 = (0..count).map(|i| f(std::array::from_fn(|n| values[n][i]))).sum();
    let out = call.allocate(0)?;
    out.write_f64s(&[if how == Reduction::Mean { sum / count as f64 } else { sum }]);
    Ok(out.into())
}

fn pair(call: &Call<'_>, index: usize, f: impl Fn(f64, f64) -> f64 + Sync) -> Result<Value<Tensor>, OpError> {
    elementwise(call, [call.args.tensor(0)?, call.args.tensor(1)?], index, |[x, y]| f(x, y))
}

fn infer_pair_backward(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = [a.tensor(1)?.clone(), a.tensor(2)?.clone(), a.tensor(0)?.clone()];
    let dtype = operand_dtype(&operands);
    Ok(same_as(&operands, dtype)?.into())
}

/// The gradient by the derivative of the loss of one element.
fn pair_backward(call: &Call<'_>, index: usize, f: impl Fn(f64, f64) -> f64 + Sync) -> Result<Value<Tensor>, OpError> {
    let (grad, x, y) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let mean = reduction(call.args.int(index)?)? == Reduction::Mean;
    let scale = if mean { 1.0 / x.numel() as f64 } else { 1.0 };
    Pointwise::as_result(call, [grad, x, y])?.f64(|[g, x, y]| g * scale * f(x, y)).finish()
}

fn smooth_l1(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let beta = call.args.float(3)?;
    if beta < 0.0 {
        invalid!("smooth_l1_loss needs a beta that is not negative, got {beta}");
    }
    pair(call, 2, |x, y| {
        let z = (x - y).abs();
        if z < beta { 0.5 * z * z / beta } else { z - 0.5 * beta }
    })
}

fn smooth_l1_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let beta = call.args.float(4)?;
    pair_backward(call, 3, |x, y| {
        let z = x - y;
        if z.abs() < beta {
            z / beta
        } else if z == 0.0 {
            0.0
        } else {
            z.signum()
        }
    })
}

fn huber(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let delta = call.args.float(3)?;
    if delta <= 0.0 {
        invalid!("huber_loss needs a positive delta, got {delta}");
    }
    pair(call, 2, |x, y| {
        let z = (x - y).abs();
        if z <= delta { 0.5 * z * z } else { delta * (z - 0.5 * delta) }
    })
}

fn huber_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let delta = call.args.float(4)?;
    pair_backward(call, 3, |x, y| (x - y).clamp(-delta.abs(), delta.abs()))
}

/// An error unless all operands have one type and expand to the first one's shape: torch computes the loss in place.
fn expect_in_place(a: &Args<'_, Meta>, operands: &[Meta]) -> Result<(), OpError> {
    for operand in &operands[1..] {
        let whole = same_as(&[operands[0].clone(), operand.clone()], operands[0].dtype)?;
        if whole.rank() != operands[0].rank() || whole.shape.iter().zip(&operands[0].shape).any(|(x, y)| !x.is_eq(y)) {
            invalid!("{} of {:?} cannot use one of shape {:?}", a.schema.name, operands[0].shape, operand.shape);
        }
    }
    match operands.iter().find(|operand| operand.dtype != operands[0].dtype) {
        Some(other) => unsupported!("{} of {} and {}", a.schema.name, operands[0].dtype, other.dtype),
        None => Ok(()),
    }
}

fn infer_cross(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    expect_same_shape("binary_cross_entropy", &a.tensor(0)?.shape, &a.tensor(1)?.shape)?;
    let mut operands = vec![a.tensor(0)?.clone(), a.tensor(1)?.clone()];
    operands.extend(a.opt_tensor(2)?.cloned());
    expect_in_place(a, &operands)?;
    reduced(a, &operands, 3)
}

fn one() -> Tensor {
    Tensor::from_slice(&[1.0f64], &[])
}

fn cross(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, y) = (call.args.tensor(0)?, call.args.tensor(1)?);
    for (of, tensor) in [("input", x), ("target", y)] {
        if let Some(bad) = tensor.to_f64s().into_iter().find(|x| !(0.0..=1.0).contains(x)) {
            invalid!("all elements of {of} should be between 0 and 1, got {bad}");
        }
    }
    let (weight, unit) = (call.args.opt_tensor(2)?, one());
    elementwise(call, [x, y, weight.unwrap_or(&unit)], 3, |[x, y, w]| {
        w * ((y - 1.0) * (-x).ln_1p().max(-100.0) - y * x.ln().max(-100.0))
    })
}

fn infer_cross_backward(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(1)?;
    expect_same_shape("binary_cross_entropy", &x.shape, &a.tensor(2)?.shape)?;
    Ok(Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &preserved_strides(x), x.dtype) }.into())
}

fn cross_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, x, y) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let (weight, unit) = (call.args.opt_tensor(3)?, one());
    let mean = reduction(call.args.int(4)?)? == Reduction::Mean;
    let scale = if mean { 1.0 / x.numel() as f64 } else { 1.0 };
    Pointwise::as_result(call, [grad, x, y, weight.unwrap_or(&unit)])?
        .f64(|[g, x, y, w]| g * scale * w * (x - y) / ((1.0 - x) * x).max(1e-12))
        .finish()
}

fn infer_cross_logits(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    expect_same_shape("binary_cross_entropy_with_logits", &a.tensor(0)?.shape, &a.tensor(1)?.shape)?;
    let mut operands = vec![a.tensor(0)?.clone(), a.tensor(1)?.clone()];
    operands.extend(a.opt_tensor(2)?.cloned());
    operands.extend(a.opt_tensor(3)?.cloned());
    expect_in_place(a, &operands)?;
    // PyTorch begins with one minus the target and goes on in place.
    reduced(a, &operands[1..2], 4)
}

fn cross_logits(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let unit = one();
    let (weight, positive) = (call.args.opt_tensor(2)?.unwrap_or(&unit), call.args.opt_tensor(3)?.unwrap_or(&unit));
    elementwise(call, [call.args.tensor(0)?, call.args.tensor(1)?, weight, positive], 4, |[x, y, w, p]| {
        // ln(1 + exp(-x)) without overflow.
        let softplus = (-x.abs()).exp().ln_1p() + (-x).max(0.0);
        w * ((1.0 - y) * x + (1.0 + (p - 1.0) * y) * softplus)
    })
}

/// The shape of the targets that belong to scores: all dimensions but that of the classes.
fn target_shape(scores: &Meta) -> Result<SymDims, OpError> {
    match scores.rank() {
        1 => Ok(SymDims::new()),
        2 | 4 => Ok(scores.shape.iter().enumerate().filter(|(d, _)| *d != 1).map(|(_, s)| s.clone()).collect()),
        _ => invalid!("scores of classes have one, two or four dimensions, not {:?}", scores.shape),
    }
}

fn expect_classes(a: &Args<'_, Meta>, first: usize) -> Result<SymDims, OpError> {
    let (scores, target) = (a.tensor(first)?, a.tensor(first + 1)?);
    let shape = target_shape(scores)?;
    if !scores.dtype.is_float() || !matches!(target.dtype, DType::I64 | DType::U8) {
        invalid!("{} takes float scores and integer classes, got {scores} and {target}", a.schema.name);
    }
    // A single score also takes its class as a vector of one element.
    if !(scores.rank() == 1 && target.rank() <= 1) {
        expect_same_shape(&a.schema.name, &target.shape, &shape)?;
    }
    if let Some(weight) = a.opt_tensor(first + 2)? {
        let classes = &scores.shape[usize::from(scores.rank() > 1)];
        if weight.rank() != 1 || !weight.shape[0].is_eq(classes) {
            invalid!("{}: {classes} classes need as many weights, got {:?}", a.schema.name, weight.shape);
        }
    }
    Ok(shape)
}

fn infer_nll(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let shape = expect_classes(a, 0)?;
    let scores = a.tensor(0)?;
    let each = reduction(a.int(3)?)? == Reduction::None;
    let output = scores.fresh(if each { &shape } else { &[] }, scores.dtype);
    Ok(vec![output, scores.fresh(&[], scores.dtype)].into())
}

/// What the kernels of class losses look at: scores with the classes last, and one class and weight per row.
struct Classes {
    /// The class of each row; `None` where it is ignored.
    classes: Vec<Option<usize>>,
    weights: Vec<f64>,
    count: usize,
}

impl Classes {
    fn read(call: &Call<'_>, first: usize) -> Result<Self, OpError> {
        let scores = call.args.tensor(first)?;
        let count = scores.shape()[usize::from(scores.rank() > 1)] as usize;
        let ignored = call.args.int(first + 4)?;
        let classes = call
            .args
            .tensor(first + 1)?
            .to_i64s()
            .into_iter()
            .map(|class| match usize::try_from(class) {
                _ if class == ignored => Ok(None),
                Ok(index) if index < count => Ok(Some(index)),
                _ => invalid!("class {class} is out of range: there are {count}"),
            })
            .collect::<Result<_, _>>()?;
        let weights = match call.args.opt_tensor(first + 2)? {
            Some(weight) => weight.to_f64s(),
            None => vec![1.0; count],
        };
        Ok(Self { classes, weights, count })
    }
}

/// A tensor of scores with the dimension of the classes last.
fn classes_last(scores: &Tensor) -> Tensor {
    if scores.rank() == 4 { scores.permuted(&[0, 2, 3, 1]) } else { scores.clone() }
}

fn nll(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let given = Classes::read(call, 0)?;
    let scores = classes_last(call.args.tensor(0)?).to_f64s();
    let (output, total) = (call.allocate(0)?, call.allocate(1)?);
    let how = reduction(call.args.int(3)?)?;
    let mut weight_sum = 0.0;
    let losses: Vec<f64> = given
        .classes
        .iter()
        .zip(scores.chunks_exact(given.count.max(1)))
        .map(|(class, row)| {
            class.map_or(0.0, |class| {
                weight_sum += given.weights[class];
                -given.weights[class] * row[class]
            })
        })
        .collect();
    let sum: f64 = losses.iter().sum();
    match how {
        Reduction::None => output.write_f64s(&losses),
        Reduction::Mean => output.write_f64s(&[sum / weight_sum]),
        Reduction::Sum => output.write_f64s(&[sum]),
    }
    // Without reduction nobody needs the sum of the weights.
    total.write_f64s(&[if how == Reduction::None { 0.0 } else { weight_sum }]);
    Ok(vec![output, total].into())
}

fn infer_nll_backward(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    expect_classes(a, 1)?;
    let scores = a.tensor(1)?;
    Ok(Meta { device: scores.device.clone(), ..Meta::strided(&scores.shape, &preserved_strides(scores), scores.dtype) }
        .into())
}

fn nll_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let given = Classes::read(call, 1)?;
    let how = reduction(call.args.int(4)?)?;
    let grad = call.args.tensor(0)?.to_f64s();
    let total = call.args.tensor(6)?.to_f64s().first().copied().unwrap_or(1.0);
    let needed = if how == Reduction::None { given.classes.len() } else { 1 };
    if grad.len() < needed {
        invalid!("{}: the gradient has {} elements, needs {needed}", call.args.schema.name, grad.len());
    }
    let out = call.allocate(0)?;
    let mut values = vec![0.0; out.numel()];
    for (index, (class, row)) in given.classes.iter().zip(values.chunks_exact_mut(given.count.max(1))).enumerate() {
        let Some(class) = *class else { continue };
        row[class] = -given.weights[class]
            * match how {
                Reduction::None => grad[index],
                Reduction::Mean => grad[0] / total,
                Reduction::Sum => grad[0],
            };
    }
    classes_last(&out).write_f64s(&values);
    Ok(out.into())
}

fn nll_nd(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (scores, target) = (*a.tensor(0)?, *a.tensor(1)?);
    let rest = &a.values[2..];
    let shape = e.shape(scores);
    let rank = shape.len();
    let call = |e: &mut dyn Emit, op: &str, scores: Handle, target: Handle| {
        let mut values: Vec<Value<Handle>> = vec![scores.into(), target.into()];
        values.extend(rest.iter().cloned());
        e.one(op, &values)
    };
    match rank {
        0 => invalid!("nll_loss needs scores with a dimension of classes"),
        1 | 2 => Ok(call(e, "aten.nll_loss.default", scores, target)?.into()),
        4 => Ok(call(e, "aten.nll_loss2d.default", scores, target)?.into()),
        _ => {
            // All dimensions after the classes become one row of pixels.
            let pixels = shape[2..].iter().fold(SymInt::Int(1), |n, d| n * d);
            let (batch, classes) = (shape[0].clone(), shape[1].clone());
            let flat = vec![batch.clone(), classes, 1.into(), pixels.clone()];
            let flat = e.one("aten.reshape.default", args![scores, flat])?;
            let wanted = e.one("aten.reshape.default", args![target, vec![batch.clone(), 1.into(), pixels]])?;
            let loss = call(e, "aten.nll_loss2d.default", flat, wanted)?;
            if e.rank(loss) == 0 {
                return Ok(loss.into());
            }
            let mut whole = vec![batch];
            whole.extend(shape[2..].iter().cloned());
            e.call("aten.view.default", args![loss, whole])
        }
    }
}

/// A loss per element, reduced.
fn finish(e: &mut dyn Emit, loss: Handle, code: i64) -> Result<Value<Handle>, OpError> {
    match reduction(code)? {
        Reduction::None => Ok(loss.into()),
        Reduction::Mean => e.call("aten.mean.default", args![loss]),
        Reduction::Sum => e.call("aten.sum.default", args![loss]),
    }
}

fn l1(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let difference = e.one("aten.sub.Tensor", args![*a.tensor(0)?, *a.tensor(1)?])?;
    let loss = e.one("aten.abs.default", args![difference])?;
    finish(e, loss, a.int(2)?)
}

fn kl_div(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (input, target) = (*a.tensor(0)?, *a.tensor(1)?);
    if [input, target].into_iter().any(|x| !e.dtype(x).is_float()) {
        invalid!("kl_div is defined for floats alone");
    }
    let loss = if a.bool(3)? {
        let difference = e.one("aten.sub.Tensor", args![target, input])?;
        let likelihood = e.one("aten.exp.default", args![target])?;
        e.one("aten.mul.Tensor", args![likelihood, difference])?
    } else {
        let entropy = e.one("aten.xlogy.Tensor", args![target, target])?;
        let cross = e.one("aten.mul.Tensor", args![target, input])?;
        e.one("aten.sub.Tensor", args![entropy, cross])?
    };
    finish(e, loss, a.int(2)?)
}

/// An error unless three tensors have as many dimensions.
fn expect_one_rank(e: &dyn Emit, a: &Args<'_, Handle>) -> Result<(), OpError> {
    let [x, y, z] = [e.shape(*a.tensor(0)?), e.shape(*a.tensor(1)?), e.shape(*a.tensor(2)?)];
    if x.len() != y.len() || y.len() != z.len() {
        invalid!("{} needs tensors with as many dimensions, got {x:?}, {y:?} and {z:?}", a.schema.name);
    }
    Ok(())
}

fn margin_ranking(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    expect_one_rank(e, a)?;
    let difference = e.one("aten.sub.Tensor", args![*a.tensor(0)?, *a.tensor(1)?])?;
    let opposite = e.one("aten.neg.default", args![*a.tensor(2)?])?;
    let loss = e.one("aten.mul.Tensor", args![opposite, difference])?;
    let loss = e.one("aten.add.Scalar", args![loss, a.float(3)?])?;
    let loss = e.one("aten.clamp_min.default", args![loss, 0])?;
    finish(e, loss, a.int(4)?)
}

fn hinge_embedding(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (input, target) = (*a.tensor(0)?, *a.tensor(1)?);
    if !e.meta(input).dtype.is_float() {
        unsupported!("hinge_embedding_loss of {}", e.meta(input).dtype);
    }
    let zeros = e.one("aten.zeros_like.default", args![input])?;
    let apart = e.one("aten.rsub.Scalar", args![input, a.float(2)?])?;
    let apart = e.one("aten.clamp_min.default", args![apart, 0])?;
    let unlike = e.one("aten.ne.Scalar", args![target, 1])?;
    let alike = e.one("aten.ne.Scalar", args![target, -1])?;
    let margin = e.one("aten.where.self", args![unlike, apart, zeros])?;
    let own = e.one("aten.where.self", args![alike, input, zeros])?;
    let loss = e.one("aten.add.Tensor", args![margin, own])?;
    finish(e, loss, a.int(3)?)
}

fn poisson_nll(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (input, target, eps) = (*a.tensor(0)?, *a.tensor(1)?, a.float(4)?);
    let mut loss = if a.bool(2)? {
        let rate = e.one("aten.exp.default", args![input])?;
        let fit = e.one("aten.mul.Tensor", args![target, input])?;
        e.one("aten.sub.Tensor", args![rate, fit])?
    } else {
        let log = e.one("aten.add.Scalar", args![input, eps])?;
        let log = e.one("aten.log.default", args![log])?;
        let fit = e.one("aten.mul.Tensor", args![target, log])?;
        e.one("aten.sub.Tensor", args![input, fit])?
    };
    if a.bool(3)? {
        // Stirling's approximation of the factorial of what is above one.
        let log = e.one("aten.log.default", args![target])?;
        let power = e.one("aten.mul.Tensor", args![target, log])?;
        let power = e.one("aten.sub.Tensor", args![power, target])?;
        let root = e.one("aten.mul.Scalar", args![target, std::f64::consts::TAU])?;
        let root = e.one("aten.log.default", args![root])?;
        let root = e.one("aten.mul.Scalar", args![root, 0.5])?;
        let stirling = e.one("aten.add.Tensor", args![power, root])?;
        let small = e.one("aten.le.Scalar", args![target, 1])?;
        let stirling = e.one("aten.masked_fill.Scalar", args![stirling, small, 0])?;
        loss = e.one("aten.add.Tensor", args![loss, stirling])?;
    }
    finish(e, loss, a.int(5)?)
}

fn distance(e: &mut dyn Emit, [x, y]: [Handle; 2], p: f64, eps: f64, keep: bool) -> Result<Handle, OpError> {
    let difference = e.one("aten.sub.Tensor", args![x, y])?;
    let difference = e.one("aten.add.Scalar", args![difference, eps])?;
    e.one("aten.linalg_vector_norm.default", args![difference, p, vec![-1i64], keep])
}

fn triplet_margin(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (anchor, positive, negative) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (p, eps) = (a.float(4)?, a.float(5)?);
    expect_one_rank(e, a)?;
    if a.float(3)? <= 0.0 {
        invalid!("triplet_margin_loss wants a margin above zero");
    }
    let near = distance(e, [anchor, positive], p, eps, false)?;
    let mut far = distance(e, [anchor, negative], p, eps, false)?;
    if a.bool(6)? {
        let swapped = distance(e, [positive, negative], p, eps, false)?;
        far = e.one("aten.minimum.default", args![far, swapped])?;
    }
    let loss = e.one("aten.add.Scalar", args![near, a.float(3)?])?;
    let loss = e.one("aten.sub.Tensor", args![loss, far])?;
    let loss = e.one("aten.clamp_min.default", args![loss, 0])?;
    finish(e, loss, a.int(7)?)
}

fn cosine_similarity(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (dim, eps) = (a.int(2)?, a.float(3)?);
    let mut sides = [*a.tensor(0)?, *a.tensor(1)?];
    if sides.iter().any(|side| e.meta(*side).dtype.is_complex()) {
        invalid!("cosine_similarity is not defined for complex numbers");
    }
    // Both have the common shape, so that the dimension means the same in both.
    let shape = crate::rules::broadcast(&[&e.shape(sides[0]), &e.shape(sides[1])])?.to_vec();
    for side in &mut sides {
        *side = e.one("aten.expand.default", args![*side, shape.clone()])?;
        let norm = e.one("aten.linalg_vector_norm.default", args![*side, 2, vec![dim], true])?;
        let norm = e.one("aten.clamp_min.default", args![norm, eps])?;
        *side = e.one("aten.div.Tensor", args![*side, norm])?;
    }
    let product = e.one("aten.mul.Tensor", args![sides[0], sides[1]])?;
    e.call("aten.sum.dim_IntList", args![product, vec![dim]])
}

fn cross_entropy(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (input, target, weight) = (*a.tensor(0)?, *a.tensor(1)?, a.opt_tensor(2)?.copied());
    let (code, ignored, smoothing) = (a.int(3)?, a.sym(4)?, a.float(5)?);
    let how = reduction(code)?;
    if !(0.0..=1.0).contains(&smoothing) {
        invalid!("label_smoothing must be between 0 and 1, it is {smoothing}");
    }
    let shape = e.shape(input);
    if shape.is_empty() {
        invalid!("cross_entropy_loss needs scores with a dimension of classes");
    }
    let dim = usize::from(shape.len() > 1);
    let Some(classes) = shape[dim].hint() else { invalid!("a number of classes that is not known") };
    let logs = e.one("aten._log_softmax.default", args![input, dim, false])?;
    // One weight per class, in the place of the classes.
    let spread = |e: &mut dyn Emit, weight: Handle| {
        let sizes: Vec<SymInt> =
            (0..shape.len()).map(|d| if d == dim { shape[dim].clone() } else { 1.into() }).collect();
        e.one("aten.view.default", args![weight, sizes])
    };
    let weighted = match weight {
        Some(weight) if smoothing > 0.0 || e.dtype(target).is_float() => {
            let weight = spread(e, weight)?;
            e.one("aten.mul.Tensor", args![logs, weight])?
        }
        _ => logs,
    };
    if e.dtype(target).is_float() && e.rank(target) == shape.len() {
        expect_same_shape("cross_entropy_loss", &e.shape(target), &shape)?;
        let mut wanted = target;
        if smoothing > 0.0 {
            wanted = e.one("aten.mul.Scalar", args![wanted, 1.0 - smoothing])?;
            wanted = e.one("aten.add.Scalar", args![wanted, smoothing / classes as f64])?;
        }
        let each = e.one("aten.mul.Tensor", args![weighted, wanted])?;
        if how == Reduction::None {
            let sum = e.one("aten.sum.dim_IntList", args![each, vec![dim as i64]])?;
            return e.call("aten.neg.default", args![sum]);
        }
        let sum = e.one("aten.sum.default", args![each])?;
        let sum = e.one("aten.neg.default", args![sum])?;
        if how == Reduction::Sum {
            return Ok(sum.into());
        }
        let rows = shape.iter().enumerate().filter(|(d, _)| *d != dim).fold(SymInt::Int(1), |n, (_, s)| n * s);
        return e.call("aten.div.Scalar", args![sum, rows]);
    }
    let loss = e.one("aten.nll_loss_nd.default", args![logs, target, weight, code, ignored.clone()])?;
    if smoothing == 0.0 {
        return Ok(loss.into());
    }
    let smooth = e.one("aten.sum.dim_IntList", args![weighted, vec![dim as i64]])?;
    let smooth = e.one("aten.neg.default", args![smooth])?;
    let hidden = e.one("aten.eq.Scalar", args![target, ignored])?;
    let mut smooth = e.one("aten.masked_fill.Scalar", args![smooth, hidden, 0.0])?;
    if how != Reduction::None {
        smooth = e.one("aten.sum.default", args![smooth])?;
    }
    if how == Reduction::Mean {
        let seen = e.one("aten.logical_not.default", args![hidden])?;
        let count = match weight {
            Some(weight) => {
                let class = e.one("aten.masked_fill.Scalar", args![target, hidden, 0])?;
                let each = e.one("aten.index.Tensor", &[weight.into(), Value::List(vec![class.into()])])?;
                let each = e.one("aten.mul.Tensor", args![each, seen])?;
                e.one("aten.sum.default", args![each])?
            }
            None => e.one("aten.sum.default", args![seen])?,
        };
        smooth = e.one("aten.div.Tensor", args![smooth, count])?;
    }
    let loss = e.one("aten.mul.Scalar", args![loss, 1.0 - smoothing])?;
    let smooth = e.one("aten.mul.Scalar", args![smooth, smoothing / classes as f64])?;
    e.call("aten.add.Tensor", args![loss, smooth])
}
