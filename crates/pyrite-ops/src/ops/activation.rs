//! Activation functions.

use pyrite_ir::{Args, Call, Emit, Handle, Lower, Meta, OpDef, OpError, Tag, Value, Vjp, invalid};
use pyrite_loops::{Expr, Unary};
use pyrite_tensor::Tensor;

use crate::kernels::Pointwise;
use crate::rules::to_same;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::gelu(Tensor self, *, str approximate='none') -> Tensor",
        "`x·Φ(x)` with the normal distribution function Φ, exact or by its tanh approximation.",
        to_same,
        gelu,
    )
    .tags(&[Tag::Core, Tag::Pointwise])
    .vjp(Vjp::Rule(gelu_vjp))
    .lower(Lower::Pointwise(gelu_lower))
    .samples(&["f32[3, 4]", "f64[5], approximate='tanh'", "bf16[2, 3]<[1, 2]", "f32[0, 3]"]),
    OpDef::kernel(
        "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
        "The gradient of `gelu`.",
        to_same,
        gelu_backward,
    )
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4], f32[3, 4]", "f64[5], f64[5], approximate='tanh'"]),
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
            .f32(|[x]| x * 0.5 * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2)))
            .f64(|[x]| x * 0.5 * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2))),
        Approximate::Tanh => map.f64(|[x]| 0.5 * x * (1.0 + (TANH_SCALE * (x + TANH_CUBIC * x * x * x)).tanh())),
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

fn gelu_vjp(
    e: &mut dyn Emit,
    a: &Args<'_, Handle>,
    _: &Value<Handle>,
    grads: &[Value<Handle>],
) -> Result<Vec<Value<Handle>>, OpError> {
    let grad = e.one("aten.gelu_backward.default", &[grads[0].clone(), a.value(0).clone(), a.value(1).clone()])?;
    Ok(vec![grad.into(), Value::None])
}

fn gelu_lower(a: &Args<'_, Meta>) -> Result<Expr, OpError> {
    let x = || Expr::Input(0);
    Ok(match approximate(a.str(1)?)? {
        Approximate::None => x() * 0.5 * ((x() * std::f64::consts::FRAC_1_SQRT_2).unary(Unary::Erf) + 1.0),
        Approximate::Tanh => {
            let inner = (x() + x() * x() * x() * TANH_CUBIC) * TANH_SCALE;
            x() * 0.5 * (inner.unary(Unary::Tanh) + 1.0)
        }
    })
}
