//! Activation functions.

use pyrite_ir::{Args, Call, Emit, Handle, Meta, OpDef, OpError, Tag, Tolerance, Value, args, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::{Complex64, DType, Layout, Tensor};

use crate::decompositions::activation as by;
use crate::derivatives::{activation as d, activation_backward as second};
use crate::kernels::Pointwise;
use crate::lowerings as to_loops;
use crate::rules::{
    core_pointwise, in_place, plain_pointwise, preserved_strides, rounded_to, to_float, to_same, to_same_float,
    to_same_inexact, to_same_number, wrap_dim,
};
use pyrite_kernels::{complex, vector_math};

const FLOATS: &[&str] = &["f32[3, 4]", "f64[5]", "bf16[2, 3]<[1, 2]", "f32[0, 3]"];
const IN_PLACE: &[&str] = &["f32[3, 4]", "f64[2, 3]<[1, 4]"];

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::gelu(Tensor self, *, str approximate='none') -> Tensor",
        "`x·Φ(x)` with the normal distribution function Φ, exact or by its tanh approximation.",
        to_same_float,
        gelu,
    )
    .tags(&[Tag::Core, Tag::Pointwise])
    .derivative(d::gelu)
    .decompose(by::gelu)
    .samples(&["f32[3, 4]", "f64[5], approximate='tanh'", "bf16[2, 3]<[1, 2]", "f32[0, 3]"]),
    OpDef::kernel(
        "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
        "The gradient of `gelu`.",
        to_same,
        gelu_backward,
    )
    .tags(&[Tag::Pointwise])
    .derivative(second::gelu_backward)
    .decompose(by::gelu_backward)
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], approximate='tanh'"]),
    core_pointwise("aten::relu(Tensor self) -> Tensor", "The element, or zero below zero.", to_same_number, relu, &["f32[3, 4]", "f64[5]<[2]", "bf16[2, 3]<[1, 2]", "i64[4]", "f32[0, 3]"]).tolerance(Tolerance::Exact).lower(to_loops::pointwise::relu).derivative(d::relu),
    core_pointwise("aten::sigmoid(Tensor self) -> Tensor", "The logistic function `1 / (1 + e^-x)`.", to_float, sigmoid, &["f32[3, 4]", "f64[5]", "bf16[2, 3]<[1, 2]", "i64[4]", "c64[3]", "f32[0, 3]"]).lower(to_loops::pointwise::sigmoid).derivative(d::sigmoid),
    plain_pointwise("aten::silu(Tensor self) -> Tensor", "`x·sigmoid(x)`.", to_same_inexact, silu, &["f32[3, 4]", "f64[5]", "bf16[2, 3]<[1, 2]", "c64[3]"]).derivative(d::silu).decompose(by::silu),
    core_pointwise("aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", "Linear above zero, `alpha·(e^x - 1)` below, both scaled.", to_same_float, elu, &["f32[3, 4]", "f64[5], 2, 0.5, 1.5", "bf16[2, 3]"]).derivative(d::elu).decompose(by::elu),
    plain_pointwise("aten::celu(Tensor self, Scalar alpha=1.) -> Tensor", "Linear above zero, `alpha·(e^(x/alpha) - 1)` below.", to_same_float, celu, &["f32[3, 4]", "f64[5], 2.0"]).derivative(d::celu).decompose(by::celu),
    OpDef::composite("aten::selu(Tensor self) -> Tensor", "`elu` with the constants that keep mean and variance.", selu).tags(&[Tag::Pointwise]).samples(FLOATS),
    core_pointwise("aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", "The element, scaled below zero.", to_same_float, leaky_relu, &["f32[3, 4]", "f64[5], 0.5", "bf16[2, 3], -1"]).derivative(d::leaky_relu).decompose(by::leaky_relu),
    core_pointwise("aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", "The element, kept between two bounds.", to_same_number, hardtanh, &["f32[3, 4]", "f64[5], -0.5, 0.25", "bf16[2, 3]", "i64[4], 0, 6"]).tolerance(Tolerance::Exact).derivative(d::hardtanh).decompose(by::hardtanh),
    OpDef::composite("aten::relu6(Tensor self) -> Tensor", "The element, kept between zero and six.", relu6).tags(&[Tag::Pointwise]).samples(FLOATS),
    plain_pointwise("aten::hardsigmoid(Tensor self) -> Tensor", "A straight line from 0 at -3 to 1 at 3.", to_same_float, hardsigmoid, FLOATS).derivative(d::hardsigmoid).decompose(by::hardsigmoid),
    OpDef::kernel("aten::hardswish(Tensor self) -> Tensor", "`x·hardsigmoid(x)`.", to_same_float, hardswish).derivative(d::hardswish).decompose(by::hardswish).samples(FLOATS),
    plain_pointwise("aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "The element, or zero near zero.", to_same_float, hardshrink, &["f32[3, 4]", "f64[5], 0.1"]).derivative(d::hardshrink).decompose(by::hardshrink),
    plain_pointwise("aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "The element moved toward zero, stopping there.", to_shrunk, softshrink, &["f32[3, 4]", "f64[5], 0.1"]).derivative(d::softshrink).decompose(by::softshrink),
    plain_pointwise("aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", "`ln(1 + e^(beta·x)) / beta`, linear above the threshold.", to_same_float, softplus, &["f32[3, 4]", "f64[5], 2, 0.5", "bf16[3]"]).derivative(d::softplus).decompose(by::softplus),
    plain_pointwise("aten::mish(Tensor self) -> Tensor", "`x·tanh(softplus(x))`.", to_same_float, mish, FLOATS).derivative(d::mish).decompose(by::mish),
    plain_pointwise("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", "The element, or a value where it is not above the threshold.", to_same_number, threshold, &["f32[3, 4], 0.1, 20", "i64[4], 0, 5", "bf16[3], 0, 1"]).tolerance(Tolerance::Exact).derivative(d::threshold).decompose(by::threshold),
    OpDef::kernel("aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", "The logarithm of `sigmoid`, and a buffer for its gradient.", infer_log_sigmoid, log_sigmoid_forward).derivative(d::log_sigmoid_forward).decompose(by::log_sigmoid_forward).samples(&["f32[3, 4]", "f64[5]", "bf16[2, 3]<[1, 2]"]),
    OpDef::composite("aten::log_sigmoid(Tensor self) -> Tensor", "The logarithm of `sigmoid`.", log_sigmoid).samples(FLOATS),
    OpDef::kernel("aten::glu(Tensor self, int dim=-1) -> Tensor", "The first half of a dimension, weighted by `sigmoid` of the second.", infer_glu, glu).derivative(d::glu).decompose(by::glu).samples(&["f32[3, 4]", "f64[4, 3], 0", "f32[2, 4, 3]<[1, 2, 8], 1", "bf16[6]", "f32[0, 4]"]),
    OpDef::kernel("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor", "The element, scaled below zero by a weight.", to_same, prelu).derivative(d::prelu).decompose(by::prelu).samples(&["f32[3, 4], f32[1, 4]", "f64[5], f64[5]", "bf16[2, 3], bf16[1, 3]"]),
    OpDef::composite("aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor", "`rrelu_with_noise` without the noise.", rrelu_without_noise).tags(&[Tag::Random]).samples(&["f32[2, 3]<[1, 2]", "f64[5], 0.1, 0.3, training=True"]),
    OpDef::written("aten::rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor(a!)", "`rrelu` in place.", "aten.rrelu.default").tags(&[Tag::Random]).samples(&["f32[2, 3]", "f64[5], 0.1, 0.3, training=True"]),
    OpDef::kernel("aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor", "`leaky_relu` with a slope that is random in training, kept in `noise`, and the middle of its range otherwise.", infer_rrelu, rrelu).derivative(d::rrelu_with_noise).tags(&[Tag::Random]).samples(&["f32[2, 3]<[1, 2], f32[2, 3]", "f64[5], f64[5], 0.1, 0.3, training=True", "bf16[4], bf16[4], training=True"]),
    OpDef::kernel("aten::rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)", "`rrelu_with_noise`, and the noise as it is afterwards.", infer_rrelu_functional, rrelu_functional).derivative(d::rrelu_with_noise_functional).constants(&[1]).tags(&[Tag::Random]).samples(&["f32[2, 3]<[1, 2], f32[2, 3]<[1, 2]", "f64[5], f64[5], 0.1, 0.3, training=True"]),
    in_place("aten::relu_(Tensor(a!) self) -> Tensor(a!)", "aten.relu.default", IN_PLACE),
    in_place("aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)", "aten.sigmoid.default", IN_PLACE),
    in_place("aten::silu_(Tensor(a!) self) -> Tensor(a!)", "aten.silu.default", IN_PLACE),
    in_place("aten::elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)", "aten.elu.default", IN_PLACE),
    in_place("aten::celu_(Tensor(a!) self, Scalar alpha=1.) -> Tensor(a!)", "aten.celu.default", IN_PLACE),
    in_place("aten::selu_(Tensor(a!) self) -> Tensor(a!)", "aten.selu.default", IN_PLACE),
    in_place("aten::gelu_(Tensor(a!) self, *, str approximate='none') -> Tensor(a!)", "aten.gelu.default", IN_PLACE),
    in_place("aten::leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)", "aten.leaky_relu.default", IN_PLACE),
    in_place("aten::hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)", "aten.hardtanh.default", IN_PLACE),
    in_place("aten::relu6_(Tensor(a!) self) -> Tensor(a!)", "aten.relu6.default", IN_PLACE),
    in_place("aten::hardsigmoid_(Tensor(a!) self) -> Tensor(a!)", "aten.hardsigmoid.default", IN_PLACE),
    in_place("aten::hardswish_(Tensor(a!) self) -> Tensor(a!)", "aten.hardswish.default", IN_PLACE),
    in_place("aten::mish_(Tensor(a!) self) -> Tensor(a!)", "aten.mish.default", IN_PLACE),
    in_place("aten::threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)", "aten.threshold.default", &["f32[3, 4], 0.1, 20"]),
];

/// √(2/π)
const TANH_SCALE: f64 = 0.797_884_560_802_865_4;
/// The cubic coefficient of the tanh approximation.
const TANH_CUBIC: f64 = 0.044_715;

enum Approximate {
    None,
    Tanh,
}

fn approximate(name: &str) -> Result<Approximate, OpError> {
    match name {
        "none" => Ok(Approximate::None),
        "tanh" => Ok(Approximate::Tanh),
        other => invalid!("approximate must be 'none' or 'tanh', not '{other}'"),
    }
}

fn gelu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let map = Pointwise::as_result(call, [call.args.tensor(0)?])?;
    match approximate(call.args.str(1)?)? {
        Approximate::None => map
            .f32_slices(vector_math::gelu)
            .f64(|[x]| x * 0.5 * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2))),
        Approximate::Tanh => map
            .f32_slices(vector_math::gelu_tanh)
            .f64(|[x]| 0.5 * x * (1.0 + (TANH_SCALE * (x + TANH_CUBIC * x * x * x)).tanh())),
    }
    .finish()
}

fn gelu_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let map = Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?])?;
    match approximate(call.args.str(2)?)? {
        Approximate::None => map.f64(|[g, x]| {
            let cdf = 0.5 * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2));
            let pdf = (-0.5 * x * x).exp() * 0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
            g * (cdf + x * pdf)
        }),
        Approximate::Tanh => map.f64(|[g, x]| {
            let tanh = (TANH_SCALE * (x + TANH_CUBIC * x * x * x)).tanh();
            let inner = TANH_SCALE * (1.0 + 3.0 * TANH_CUBIC * x * x);
            g * (0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * inner)
        }),
    }
    .finish()
}

/// A function of one float, in double precision.
fn map(call: &Call<'_>, f: impl Fn(f64) -> f64 + Sync) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?.f64(|[x]| f(x)).finish()
}

fn relu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    // Written so that NaN and the sign of zero stay.
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32(|[x]| if x < 0.0 { 0.0 } else { x })
        .f64(|[x]| if x < 0.0 { 0.0 } else { x })
        .i64(|[x]| x.max(0))
        .finish()
}

/// `1 / (1 + e^-x)`.
pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn sigmoid(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32_slices(vector_math::sigmoid)
        .f64(|[x]| logistic(x))
        .c128(|[z]| complex::quotient(Complex64::ONE, 1.0 + (-z).exp()))
        .finish()
}

fn silu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32_slices(vector_math::silu)
        .f64(|[x]| x / (1.0 + (-x).exp()))
        .c128(|[z]| z / (1.0 + (-z).exp()))
        .finish()
}

fn elu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (alpha, scale, input_scale) = (call.args.float(1)?, call.args.float(2)?, call.args.float(3)?);
    map(call, |x| if x <= 0.0 { (x * input_scale).exp_m1() * alpha * scale } else { x * scale })
}

fn celu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let alpha = call.args.float(1)?;
    if alpha == 0.0 {
        invalid!("celu: alpha must not be zero");
    }
    map(call, |x| if x <= 0.0 { (x / alpha).exp_m1() * alpha } else { x })
}

fn selu(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    const ALPHA: f64 = 1.673_263_242_354_377_2;
    const SCALE: f64 = 1.050_700_987_355_480_5;
    e.call("aten.elu.default", args![*a.tensor(0)?, ALPHA, SCALE])
}

fn relu6(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    e.call("aten.hardtanh.default", args![*a.tensor(0)?, 0i64, 6i64])
}

fn leaky_relu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let slope = call.args.float(1)?;
    map(call, |x| if x > 0.0 { x } else { x * slope })
}

fn hardtanh(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (low, high) = (call.args.scalar(1)?, call.args.scalar(2)?);
    let (low32, high32) = (low.to_f64() as f32, high.to_f64() as f32);
    let (low64, high64, low_int, high_int) = (low.to_f64(), high.to_f64(), low.to_i64(), high.to_i64());
    if low64 > high64 {
        invalid!("hardtanh: the lower bound {low} is above the upper bound {high}");
    }
    // Not `clamp`, which panics on NaN bounds.
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32(|[x]| {
            if x < low32 {
                low32
            } else if x > high32 {
                high32
            } else {
                x
            }
        })
        .f64(|[x]| {
            if x < low64 {
                low64
            } else if x > high64 {
                high64
            } else {
                x
            }
        })
        .i64(|[x]| x.max(low_int).min(high_int))
        .finish()
}

fn hardsigmoid(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    map(call, |x| (x + 3.0).clamp(0.0, 6.0) / 6.0)
}

fn hardswish(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    map(call, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0)
}

fn hardshrink(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let bound = rounded_to(call.out_meta(0)?.dtype, call.args.float(1)?);
    map(call, |x| if (-bound..=bound).contains(&x) { 0.0 } else { x })
}

fn to_shrunk(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    if args.float(1)? < 0.0 {
        invalid!("softshrink: lambd must not be negative");
    }
    to_same_float(args)
}

fn softshrink(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let bound = call.args.float(1)?;
    map(call, |x| match x {
        x if x > bound => x - bound,
        x if x < -bound => x + bound,
        x if x.is_nan() => x,
        _ => 0.0,
    })
}

fn softplus(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (beta, threshold) = (call.args.float(1)?, call.args.float(2)?);
    map(call, |x| if x * beta > threshold { x } else { (x * beta).exp().ln_1p() / beta })
}

fn mish(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    map(call, |x| x * x.exp().ln_1p().tanh())
}

fn threshold(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (bound, value) = (call.args.scalar(1)?, call.args.scalar(2)?);
    let (bound32, value32) = (bound.to_f64() as f32, value.to_f64() as f32);
    let (bound64, value64, bound_int, value_int) = (bound.to_f64(), value.to_f64(), bound.to_i64(), value.to_i64());
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32(|[x]| if x <= bound32 { value32 } else { x })
        .f64(|[x]| if x <= bound64 { value64 } else { x })
        .i64(|[x]| if x <= bound_int { value_int } else { x })
        .finish()
}

fn infer_log_sigmoid(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = args.tensor(0)?;
    if !x.dtype.is_float() {
        invalid!("log_sigmoid takes floats, not {}", x.dtype);
    }
    // The buffer keeps `e^-|x|` for the gradient.
    Ok(Value::List(vec![x.fresh(&x.shape, x.dtype).into(), x.fresh(&x.shape, x.dtype).into()]))
}

fn log_sigmoid_forward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    let name = &call.args.schema.name;
    let output = Pointwise::into(name, [x], x.dtype(), call.allocate(0)?)
        .f64(|[x]| x.min(0.0) - (-x.abs()).exp().ln_1p())
        .finish()?;
    let buffer = Pointwise::into(name, [x], x.dtype(), call.allocate(1)?).f64(|[x]| (-x.abs()).exp()).finish()?;
    Ok(Value::List(vec![output, buffer]))
}

fn log_sigmoid(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let both = e.many("aten.log_sigmoid_forward.default", args![*a.tensor(0)?])?;
    Ok(both[0].into())
}

fn infer_glu(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = args.tensor(0)?;
    if x.rank() == 0 {
        invalid!("glu wants a tensor with dimensions");
    }
    if !x.dtype.is_float() {
        invalid!("glu takes floats, not {}", x.dtype);
    }
    let dim = wrap_dim(args.int(1)?, x.rank())?;
    let mut shape = x.shape.clone();
    if shape[dim].as_int().is_some_and(|size| size % 2 != 0) {
        invalid!("glu halves dimension {dim}, whose size is {}", shape[dim]);
    }
    shape[dim] = shape[dim].floor_div(&SymInt::Int(2));
    let half = x.view(&shape, &x.stride, SymInt::Int(0));
    Ok(crate::rules::same_as(&[half.clone(), half], x.dtype)?.into())
}

/// The two halves of a dimension.
fn halves(x: &Tensor, dim: i64) -> Result<[Tensor; 2], OpError> {
    let dim = wrap_dim(dim, x.rank())?;
    let mut shape = x.shape().to_vec();
    shape[dim] /= 2;
    let second = x.layout().offset + shape[dim] * x.stride()[dim];
    let half = |offset| x.view(x.dtype(), Layout::new(&shape, x.stride(), offset));
    Ok([half(x.layout().offset)?, half(second)?])
}

fn glu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = halves(call.args.tensor(0)?, call.args.int(1)?)?;
    Pointwise::as_result(call, [&a, &b])?.f64(|[a, b]| a * logistic(b)).finish()
}

fn prelu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?])?
        .f32(|[x, w]| if x > 0.0 { x } else { w * x })
        .f64(|[x, w]| if x > 0.0 { x } else { w * x })
        .finish()
}

fn infer_rrelu(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = args.tensor(0)?;
    if !x.dtype.is_float() {
        invalid!("rrelu takes floats, not {}", x.dtype);
    }
    Ok(x.fresh(&x.shape, x.dtype).into())
}

fn rrelu(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Ok(rrelu_into(call, call.args.tensor(1)?)?.into())
}

fn rrelu_without_noise(e: &mut dyn Emit, args: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let noise = e.one("aten.empty_like.default", &[args.value(0).clone()])?;
    let mut values = args.values.to_vec();
    values.insert(1, noise.into());
    e.call("aten.rrelu_with_noise.default", &values)
}

/// The result; in training, the slopes are written into `noise`.
fn rrelu_into(call: &Call<'_>, noise: &Tensor) -> Result<Tensor, OpError> {
    let x = call.args.tensor(0)?;
    let (result, values) = (call.allocate(0)?, x.to_f64s());
    // Slopes have the precision that is computed with; the noise keeps them in its own.
    let single = x.dtype().to_compute() == DType::F32;
    let rounded = |value: f64| if single { f64::from(value as f32) } else { value };
    let (lower, upper) = (rounded(call.args.float(2)?), rounded(call.args.float(3)?));
    if !call.args.bool(4)? {
        let slope = 0.5 * rounded(lower + upper);
        result.write_f64s(&values.iter().map(|x| if *x > 0.0 { *x } else { x * slope }).collect::<Vec<_>>());
        return Ok(result);
    }
    if noise.shape() != x.shape() {
        invalid!("rrelu: noise has shape {:?}, the tensor {:?}", noise.shape(), x.shape());
    }
    let mut generator = call.rng.borrow_mut();
    // Only elements that need a slope draw one, in order.
    let mut slope = || rounded(lower + generator.next_f64() * (upper - lower));
    let slopes: Vec<f64> = values.iter().map(|x| if *x <= 0.0 { slope() } else { 1.0 }).collect();
    noise.write_f64s(&slopes);
    result.write_f64s(&values.iter().zip(&slopes).map(|(x, slope)| x * slope).collect::<Vec<_>>());
    Ok(result)
}

fn infer_rrelu_functional(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let noise = args.tensor(1)?;
    let strided = Meta::strided(&noise.shape, &preserved_strides(noise), noise.dtype);
    Ok(Value::List(vec![infer_rrelu(args)?, Meta { device: noise.device.clone(), ..strided }.into()]))
}

fn rrelu_functional(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let noise = call.allocate(1)?;
    noise.write_from(call.args.tensor(1)?);
    Ok(vec![rrelu_into(call, &noise)?, noise].into())
}

#[cfg(test)]
mod tests {
    //! The operator of docs/extend/operator.md: its code is that of the page, and its rules agree.

    use pyrite_interp::{Context, Interpreter, Mode};
    use pyrite_ir::trace::Tracer;
    use pyrite_ir::{Pullback, Registry};

    use super::*;
    use crate::ops::TABLES;
    use crate::samples;

    mod by {
        crate::decompositions::formulas! {
            softcap |s, a, [x]| (x / a.float(1)?).tanh() * a.float(1)?;
        }
    }

    mod d {
        use pyrite_ir::{Emit, Gradients, OpError, Pullback};

        use crate::derivatives::formula::Sheet;

        /// `softcap`.
        pub fn softcap(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
            let s = Sheet::new(e);
            let (g, y, cap) = (s.grad(p), s.result(p, 0), p.args.float(1)?);
            s.gradients(p, &[(0, &|| g * (1.0 - y * y / (cap * cap)))])
        }
    }

    fn softcap(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
        let cap = call.args.float(1)?;
        map(call, |x| (x / cap).tanh() * cap)
    }

    #[rustfmt::skip]
    const EXAMPLE: &[OpDef] = &[
        plain_pointwise(
            "aten::softcap(Tensor self, Scalar cap) -> Tensor",
            "`cap·tanh(x / cap)`.",
            to_same_float,
            softcap,
            &["f32[3, 4], 2", "f64[5], 0.5", "bf16[2, 3], 30"],
        )
        .derivative(d::softcap)
        .decompose(by::softcap),
    ];

    #[test]
    fn the_operator_of_the_documentation_is_the_one_here() {
        let bare = |text: &str| -> String {
            let code = text.lines().map(|line| line.split("  //").next().unwrap_or_default());
            code.flat_map(str::chars).filter(|letter| !letter.is_whitespace()).collect()
        };
        let own = bare(include_str!("activation.rs"));
        let page = include_str!("../../../../docs/extend/operator.md");
        let blocks: Vec<&str> =
            page.split("```rust,ignore").skip(1).filter_map(|block| block.split("```").next()).collect();
        assert_eq!(blocks.len(), 4);
        for block in blocks {
            assert!(own.contains(&bare(block)), "the page has other code than this test:\n{block}");
        }
    }

    #[test]
    fn the_rules_of_the_operator_of_the_documentation_agree() {
        let registry = Registry::new(&[TABLES, &[EXAMPLE]].concat()).expect("well-formed records");
        let op = registry.get("aten.softcap.default").expect("the example");
        for text in op.def.samples {
            let sample = samples::read(&op.schema, text).expect("a sample");
            let (x, cap) = (sample[0].as_tensor().expect("a tensor"), sample[1].clone());
            let mut tracer = Tracer::new(&registry);
            let bound = [tracer.placeholder("x", Meta::of(x)).into(), cap.map(&mut |_| unreachable!())];
            let args = Args { schema: &op.schema, values: &bound };
            let out = tracer.call(op.name(), &bound).expect("the shape rule");
            let simpler = by::softcap(&mut tracer, &args).expect("the decomposition");
            let grad =
                (&mut tracer as &mut dyn Emit).one("aten.ones_like.default", std::slice::from_ref(&out)).expect("ones");
            let pullback = Pullback { args, out: &out, grads: &[Some(grad)], wanted: &[true, false] };
            let gradients = d::softcap(&mut tracer, &pullback).expect("the derivative");
            let results = [out, simpler, gradients[0].1.clone()];
            let results = Value::List(results.iter().map(|value| tracer.lower(value)).collect());
            let context = Context::new(&registry, 0);
            let ran = Interpreter { context: &context, mode: Mode::CrossReference }
                .run(&tracer.finish(results), vec![x.clone().into()])
                .expect("the kernels");
            let Value::List(ran) = ran else { panic!("a list was returned") };
            let numbers = |index: usize| ran[index].as_tensor().map(Tensor::to_f64s).unwrap_or_default();
            let cap = cap.as_scalar().map_or(f64::NAN, pyrite_tensor::Scalar::to_f64);
            for (index, x) in x.to_f64s().into_iter().enumerate() {
                let tanh = (x / cap).tanh();
                for (kind, wanted) in [cap * tanh, cap * tanh, 1.0 - tanh * tanh].into_iter().enumerate() {
                    let found = numbers(kind)[index];
                    assert!((found - wanted).abs() <= 0.02 * (1.0 + wanted.abs()), "{text}: {kind}: {found}, {wanted}");
                }
            }
        }
    }
}
