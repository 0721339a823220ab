//! Losses: how far predictions are from targets.
//!
//! A reduction is 0 for one value per element, 1 for the mean, 2 for the sum. Elementwise losses compute in `f64` and
//! round once. Classes are read from an integer tensor; those equal to `ignore_index` count for nothing.

use pyrite_ir::{Args, Call, Emit, Handle, Meta, OpDef, OpError, SymDims, Value, args, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

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
    .samples(&["f32[3, 4], f32[3, 4]", "f64[3, 4]<[1, 3], f64[4], 0", "bf16[5], bf16[5], 2", "f32[0], f32[0]"]),
    OpDef::kernel(
        "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
        "The gradient of `mse_loss`.",
        infer_pair_backward,
        |call| pair_backward(call, 3, |x, y| 2.0 * (x - y)),
    )
    .samples(&["f32[], f32[3, 4], f32[3, 4], 1", "f64[5], f64[5], f64[5], 0"]),
    OpDef::kernel(
        "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
        "The difference, squared where it is below `beta`.",
        |a| infer_pair(a, 2),
        smooth_l1,
    )
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], 0, 0.5", "f32[5], f32[5], 2, 0."]),
    OpDef::kernel(
        "aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> \
         Tensor",
        "The gradient of `smooth_l1_loss`.",
        infer_pair_backward,
        smooth_l1_backward,
    )
    .samples(&["f32[], f32[3, 4], f32[3, 4], 1, 1.", "f64[5], f64[5], f64[5], 0, 0."]),
    OpDef::kernel(
        "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
        "Half the squared difference, going on linearly from `delta`.",
        |a| infer_pair(a, 2),
        huber,
    )
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], 0, 0.5"]),
    OpDef::kernel(
        "aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> \
         Tensor",
        "The gradient of `huber_loss`.",
        infer_pair_backward,
        huber_backward,
    )
    .samples(&["f32[], f32[3, 4], f32[3, 4], 1, 1.", "f64[5], f64[5], f64[5], 0, 0.5"]),
    OpDef::kernel(
        "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        "`ln(1 + exp(-target·self))`.",
        |a| infer_pair(a, 2),
        |call| pair(call, 2, |x, y| (-y * x).exp().ln_1p()),
    )
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], 0"]),
    OpDef::kernel(
        "aten::soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
        "The gradient of `soft_margin_loss`.",
        infer_pair_backward,
        |call| pair_backward(call, 3, |x, y| -y / (1.0 + (y * x).exp())),
    )
    .samples(&["f32[], f32[3, 4], f32[3, 4], 1"]),
    OpDef::kernel(
        "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
        "`-weight·(target·ln(self) + (1 - target)·ln(1 - self))`, each logarithm at least -100.",
        infer_cross,
        cross,
    )
    .samples(&["f32[3, 4]{0..1}, f32[3, 4]{0..1}", "f64[3, 4]{0..1}, f64[3, 4]{0..1}, f64[4], 0"]),
    OpDef::kernel(
        "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? \
         pos_weight=None, int reduction=1) -> Tensor",
        "`binary_cross_entropy` of the sigmoid of `self`.",
        infer_cross_logits,
        cross_logits,
    )
    .samples(&["f32[3, 4], f32[3, 4]{0..1}", "f64[3, 4], f64[3, 4]{0..1}, f64[4], f64[4]{0..2}, 0"]),
    OpDef::kernel(
        "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> \
         (Tensor output, Tensor total_weight)",
        "The negative score of each target class, and the sum of the classes' weights.",
        infer_nll,
        nll,
    )
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
    .samples(&["f32[], f32[3, 4], i64[3]{0..4}, None, 1, -100, f32[]{3..4}"]),
    OpDef::kernel(
        "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, \
         SymInt ignore_index, Tensor total_weight) -> Tensor",
        "The gradient of `nll_loss2d_forward`.",
        infer_nll_backward,
        nll_backward,
    )
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

fn infer_cross(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    expect_same_shape("binary_cross_entropy", &a.tensor(0)?.shape, &a.tensor(1)?.shape)?;
    let mut operands = vec![a.tensor(0)?.clone(), a.tensor(1)?.clone()];
    operands.extend(a.opt_tensor(2)?.cloned());
    reduced(a, &operands, 3)
}

fn one() -> Tensor {
    Tensor::from_slice(&[1.0f64], &[])
}

fn cross(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, y) = (call.args.tensor(0)?, call.args.tensor(1)?);
    if let Some(bad) = x.to_f64s().into_iter().find(|x| !(0.0..=1.0).contains(x)) {
        invalid!("binary_cross_entropy needs inputs between 0 and 1, got {bad}");
    }
    let (weight, unit) = (call.args.opt_tensor(2)?, one());
    elementwise(call, [x, y, weight.unwrap_or(&unit)], 3, |[x, y, w]| {
        w * ((y - 1.0) * (-x).ln_1p().max(-100.0) - y * x.ln().max(-100.0))
    })
}

fn infer_cross_logits(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    expect_same_shape("binary_cross_entropy_with_logits", &a.tensor(0)?.shape, &a.tensor(1)?.shape)?;
    let mut operands = vec![a.tensor(0)?.clone(), a.tensor(1)?.clone()];
    operands.extend(a.opt_tensor(2)?.cloned());
    operands.extend(a.opt_tensor(3)?.cloned());
    reduced(a, &operands, 4)
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
