//! The gradients of activation functions.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Tolerance, Value, invalid};
use pyrite_tensor::{Complex64, DType, Layout, Tensor};

use super::activation::logistic;
use crate::decompositions::activation_backward as by;
use crate::derivatives::activation_backward as d;
use crate::kernels::Pointwise;
use crate::rules::{operand_dtype, plain_pointwise, same_as, to_same, wrap_dim};

const PAIRS: &[&str] = &["f32[3, 4], f32[3, 4]", "f64[5], f64[5]", "bf16[2, 3]<[1, 2], bf16[2, 3]", "f32[0], f32[0]"];
const COMPLEX_PAIRS: &[&str] = &["f32[3, 4], f32[3, 4]", "bf16[2, 3]<[1, 2], bf16[2, 3]", "c64[3], c64[3]"];
const WITH_BOUND: &[&str] = &["f32[3, 4], f32[3, 4], 0.5", "bf16[3], bf16[3], 0"];

/// The table.
pub const OPS: &[OpDef] = &[
    plain_pointwise("aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", "The gradient of `threshold`, and with threshold 0 of `relu`.", self_first, threshold_backward, &["f32[3, 4], f32[3, 4], 0", "f64[5], f64[5], 0.5", "bf16[2, 3]<[1, 2], bf16[2, 3], 0", "i64[3], i64[3], 0"]).tolerance(Tolerance::Exact).derivative(d::straight).decompose(by::threshold_backward),
    plain_pointwise("aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor", "The gradient of `tanh` from its result.", to_same, tanh_backward, COMPLEX_PAIRS).derivative(d::tanh_backward).decompose(by::tanh_backward),
    plain_pointwise("aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", "The gradient of `sigmoid` from its result.", to_same, sigmoid_backward, COMPLEX_PAIRS).derivative(d::sigmoid_backward).decompose(by::sigmoid_backward),
    plain_pointwise("aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor", "The gradient of `silu`.", to_same, silu_backward, COMPLEX_PAIRS).derivative(d::silu_backward).decompose(by::silu_backward),
    OpDef::kernel("aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor", "The gradient of `mish`.", to_same, mish_backward).derivative(d::mish_backward).decompose(by::mish_backward).samples(PAIRS),
    OpDef::kernel("aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor", "The gradient of `hardtanh`.", to_same, hardtanh_backward).derivative(d::straight).decompose(by::hardtanh_backward).samples(&["f32[3, 4], f32[3, 4], -1, 1", "bf16[3], bf16[3], 0, 6"]),
    OpDef::kernel("aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", "The gradient of `hardsigmoid`.", to_same, hardsigmoid_backward).derivative(d::straight).decompose(by::hardsigmoid_backward).samples(PAIRS),
    OpDef::kernel("aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", "The gradient of `hardswish`.", to_same, hardswish_backward).derivative(d::hardswish_backward).decompose(by::hardswish_backward).samples(PAIRS),
    OpDef::kernel("aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", "The gradient of `hardshrink`.", to_same, shrink_backward).derivative(d::straight).decompose(by::hardshrink_backward).samples(WITH_BOUND),
    OpDef::kernel("aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor", "The gradient of `softshrink`.", to_same, shrink_backward).derivative(d::straight).decompose(by::hardshrink_backward).samples(WITH_BOUND),
    OpDef::kernel("aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor", "The gradient of `leaky_relu`.", self_first, leaky_relu_backward).derivative(d::straight).decompose(by::leaky_relu_backward).samples(&["f32[2, 3]<[1, 2], f32[2, 3], 0.1, False", "f64[3], f64[3], 0.2, True"]),
    OpDef::kernel("aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor", "The gradient of `elu`, from its argument or its result.", to_same, elu_backward).derivative(d::elu_backward).decompose(by::elu_backward).samples(&["f32[3, 4], 1, 1, 1, False, f32[3, 4]", "f64[3], 2, 0.5, 1.5, True, f64[3]"]),
    OpDef::kernel("aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor", "The gradient of `softplus`.", to_same, softplus_backward).derivative(d::softplus_backward).decompose(by::softplus_backward).samples(&["f32[3, 4], f32[3, 4], 1, 20", "f64[3], f64[3], 2, 0.5"]),
    OpDef::kernel("aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", "The gradient of `log_sigmoid`.", to_same, log_sigmoid_backward).derivative(d::log_sigmoid_backward).decompose(by::log_sigmoid_backward).samples(&["f32[3, 4], f32[3, 4], f32[3, 4]{0..1}", "f64[3], f64[3], f64[3]{0..1}"]),
    plain_pointwise("aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", "The gradient of `logit`.", to_same, logit_backward, &["f32[3, 4], f32[3, 4]{0..1}", "f64[3], f64[3], 0.1"]).derivative(d::logit_backward).decompose(by::logit_backward),
    OpDef::kernel("aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", "The gradient of `glu`.", infer_glu_backward, glu_backward).derivative(d::glu_backward).decompose(by::glu_backward).samples(&["f32[3, 2], f32[3, 4], -1", "f64[2, 3], f64[4, 3], 0"]),
    OpDef::kernel("aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)", "The gradients of `_prelu_kernel`; that of the weight is not summed yet.", infer_prelu_backward, prelu_backward).derivative(d::prelu_backward).decompose(by::prelu_backward).samples(&["f32[2, 3]<[1, 2], f32[2, 3], f32[1, 3]", "f64[5], f64[5], f64[5]"]),
    OpDef::kernel("aten::rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor", "The gradient of `rrelu_with_noise`.", to_rrelu_gradient, rrelu_backward).derivative(d::rrelu_with_noise_backward).decompose(by::rrelu_with_noise_backward).samples(&["f32[2, 3]<[1, 2], f32[2, 3], f32[2, 3], 0.1, 0.3, True, False", "f32[3], f32[3], f32[3], 0.1, 0.3, False, False"]),
];

/// A function of the incoming gradient and another float, in double precision.
fn map(call: &Call<'_>, other: usize, f: impl Fn(f64, f64) -> f64 + Sync) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(other)?])?.f64(|[g, x]| f(g, x)).finish()
}

/// The common type, in the layout of the argument rather than of the gradient.
fn self_first(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = [args.tensor(1)?.clone(), args.tensor(0)?.clone()];
    let dtype = operand_dtype(&operands);
    if dtype == DType::Bool {
        invalid!("{} is not defined for bools", args.schema.name);
    }
    Ok(same_as(&operands, dtype)?.into())
}

fn threshold_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let bound = call.args.scalar(2)?;
    let (bound32, bound64, bound_int) = (bound.to_f64() as f32, bound.to_f64(), bound.to_i64());
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?])?
        .f32(|[g, x]| if x <= bound32 { 0.0 } else { g })
        .f64(|[g, x]| if x <= bound64 { 0.0 } else { g })
        .i64(|[g, x]| if x <= bound_int { 0 } else { g })
        .finish()
}

fn tanh_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?])?
        .f32(|[g, y]| g * (1.0 - y * y))
        .f64(|[g, y]| g * (1.0 - y * y))
        .c128(|[g, y]| g * (1.0 - y * y).conj())
        .finish()
}

fn sigmoid_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?])?
        .f32(|[g, y]| g * (1.0 - y) * y)
        .f64(|[g, y]| g * (1.0 - y) * y)
        .c128(|[g, y]| g * ((1.0 - y) * y).conj())
        .finish()
}

fn silu_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?])?
        .f32(|[g, x]| {
            let s = 1.0 / (1.0 + (-x).exp());
            g * s * (1.0 + x * (1.0 - s))
        })
        .f64(|[g, x]| {
            let s = logistic(x);
            g * s * (1.0 + x * (1.0 - s))
        })
        .c128(|[g, z]| {
            let s: Complex64 = (1.0 + (-z).exp()).inv();
            g * s * (1.0 + z * (1.0 - s))
        })
        .finish()
}

fn mish_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    map(call, 1, |g, x| {
        let tanh = x.exp().ln_1p().tanh();
        g * (tanh + x * logistic(x) * (1.0 - tanh * tanh))
    })
}

fn hardtanh_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (low, high) = (call.args.float(2)?, call.args.float(3)?);
    map(call, 1, |g, x| if x <= low || x >= high { 0.0 } else { g })
}

fn hardsigmoid_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    map(call, 1, |g, x| if x > -3.0 && x < 3.0 { g / 6.0 } else { 0.0 })
}

fn hardswish_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    map(call, 1, |g, x| match x {
        x if x <= -3.0 => 0.0,
        x if x < 3.0 => g * (x / 3.0 + 0.5),
        _ => g,
    })
}

fn shrink_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let bound = call.args.float(2)?;
    map(call, 1, |g, x| if (-bound..=bound).contains(&x) { 0.0 } else { g })
}

fn leaky_relu_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let slope = call.args.float(2)?;
    if call.args.bool(3)? && slope < 0.0 {
        invalid!("leaky_relu_backward: the result does not tell the argument's sign when the slope is negative");
    }
    map(call, 1, |g, x| if x > 0.0 { g } else { g * slope })
}

fn elu_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (alpha, scale, input_scale) = (call.args.float(1)?, call.args.float(2)?, call.args.float(3)?);
    if call.args.bool(4)? {
        if alpha < 0.0 {
            invalid!("elu_backward: the result does not tell the argument's sign when alpha is negative");
        }
        return map(call, 5, |g, y| if y <= 0.0 { g * input_scale * (y + alpha * scale) } else { g * scale });
    }
    map(call, 5, |g, x| if x <= 0.0 { g * input_scale * alpha * scale * (x * input_scale).exp() } else { g * scale })
}

fn softplus_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (beta, threshold) = (call.args.float(2)?, call.args.float(3)?);
    map(call, 1, |g, x| if x * beta > threshold { g } else { g * logistic(x * beta) })
}

/// The buffer holds `e^-|x|`.
fn log_sigmoid_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?])?
        .f64(|[g, x, exp]| {
            let part = exp / (1.0 + exp);
            g * if x < 0.0 { 1.0 - part } else { part }
        })
        .finish()
}

fn logit_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    match call.args.opt_float(2)? {
        None => map(call, 1, |g, x| if (0.0..=1.0).contains(&x) { g / (x * (1.0 - x)) } else { f64::NAN }),
        Some(eps) => map(call, 1, |g, x| if x < eps || x > 1.0 - eps { 0.0 } else { g / (x * (1.0 - x)) }),
    }
}

fn infer_glu_backward(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = args.tensor(1)?;
    wrap_dim(args.int(2)?, x.rank())?;
    Ok(x.fresh(&x.shape, x.dtype).into())
}

fn glu_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, x) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let dim = wrap_dim(call.args.int(2)?, x.rank())?;
    let result = call.allocate(0)?;
    let mut shape = x.shape().to_vec();
    shape[dim] /= 2;
    if grad.shape() != shape.as_slice() {
        invalid!("glu_backward: the gradient has shape {:?}, expected {shape:?}", grad.shape());
    }
    let half = |t: &Tensor, second: i64| {
        let offset = t.layout().offset + second * shape[dim] * t.stride()[dim];
        t.view(t.dtype(), Layout::new(&shape, t.stride(), offset))
    };
    let (a, b) = (half(x, 0)?.to_f64s(), half(x, 1)?.to_f64s());
    let grads = grad.to_f64s();
    let (mut first, mut second) = (grads.clone(), grads);
    for (i, (a, b)) in a.into_iter().zip(b).enumerate() {
        let s = logistic(b);
        first[i] *= s;
        second[i] *= s * (1.0 - s) * a;
    }
    half(&result, 0)?.write_f64s(&first);
    half(&result, 1)?.write_f64s(&second);
    Ok(result.into())
}

fn infer_prelu_backward(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = [args.tensor(1)?.clone(), args.tensor(2)?.clone(), args.tensor(0)?.clone()];
    let result = || same_as(&operands, operand_dtype(&operands)).map(Value::from);
    Ok(Value::List(vec![result()?, result()?]))
}

fn prelu_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let inputs = [call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?];
    let (name, dtype) = (&call.args.schema.name, inputs[1].dtype());
    let of_input = Pointwise::into(name, inputs, dtype, call.allocate(0)?)
        .f64(|[g, x, w]| if x > 0.0 { g } else { g * w })
        .finish()?;
    let of_weight = Pointwise::into(name, inputs, dtype, call.allocate(1)?)
        .f64(|[g, x, _]| if x > 0.0 { 0.0 } else { g * x })
        .finish()?;
    Ok(Value::List(vec![of_input, of_weight]))
}

/// Whether slopes were drawn: with hardly any range they are not random, even in training.
fn drawn<T>(args: &Args<'_, T>) -> Result<bool, OpError> {
    Ok(args.bool(5)? && args.float(4)? - args.float(3)? > 1e-6)
}

fn to_rrelu_gradient(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    if !drawn(args)? {
        return self_first(args);
    }
    let operands = [args.tensor(2)?.clone(), args.tensor(0)?.clone()];
    Ok(same_as(&operands, operand_dtype(&operands))?.into())
}

fn rrelu_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (lower, upper) = (call.args.float(3)?, call.args.float(4)?);
    if drawn(&call.args)? {
        return map(call, 2, |g, noise| g * noise);
    }
    let slope = 0.5 * (lower + upper);
    map(call, 1, |g, x| if x > 0.0 { g } else { g * slope })
}
