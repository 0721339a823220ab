//! Decompositions of activation functions.

use pyrite_ir::{Args, Emit, Handle, invalid};
use pyrite_tensor::DType;

use super::{Rule, Sheet, Term, formulas, wide};
use crate::rules::{rounded_to, wrap_dim};

/// √(2/π), and the cubic coefficient of the tanh approximation of `gelu`.
const TANH_SCALE: f64 = 0.797_884_560_802_865_4;
const TANH_CUBIC: f64 = 0.044_715;

/// `x` at which the tanh approximation of `gelu` takes the tanh.
fn cubic(x: Term<'_>) -> Term<'_> {
    (x + x * x * x * TANH_CUBIC) * TANH_SCALE
}

/// The distribution function of the normal distribution.
fn normal(x: Term<'_>) -> Term<'_> {
    ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5
}

/// `ln(1 + e^x)`.
fn softly(x: Term<'_>) -> Term<'_> {
    x.exp().log1p()
}

formulas! {
    gelu |s, a, [x]| match a.str(1)? {
        "none" => x * normal(x),
        "tanh" => x * 0.5 * (cubic(x).tanh() + 1.0),
        other => invalid!("approximate must be 'none' or 'tanh', not '{other}'"),
    };
    gelu_backward |s, a, [g, x]| match a.str(2)? {
        "none" => {
            let density = (x * x * -0.5).exp() * (0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2);
            g * (normal(x) + x * density)
        }
        "tanh" => {
            let tanh = cubic(x).tanh();
            let slope = (x * x * (3.0 * TANH_CUBIC) + 1.0) * TANH_SCALE;
            g * ((tanh + 1.0) * 0.5 + x * 0.5 * (1.0 - tanh * tanh) * slope)
        }
        other => invalid!("approximate must be 'none' or 'tanh', not '{other}'"),
    };
    silu |s, a, [x]| x * x.sigmoid();
    elu |s, a, [x]| {
        let (alpha, scale, input_scale) = (a.float(1)?, a.float(2)?, a.float(3)?);
        x.gt(0.0).select(x * scale, (x * input_scale).expm1() * (alpha * scale))
    };
    celu |s, a, [x]| {
        let alpha = a.float(1)?;
        if alpha == 0.0 {
            invalid!("celu: alpha must not be zero");
        }
        x.gt(0.0).select(x, (x / alpha).expm1() * alpha)
    };
    leaky_relu |s, a, [x]| x.gt(0.0).select(x, x * a.float(1)?);
    hardtanh |s, a, [x]| x.clamp(x.as_element(a.scalar(1)?), x.as_element(a.scalar(2)?));
    hardsigmoid |s, a, [x]| (x + 3.0).clamp(0.0, 6.0) / 6.0;
    hardswish |s, a, [x]| x * (x + 3.0).clamp(0.0, 6.0) / 6.0;
    hardshrink |s, a, [x]| {
        let dtype = s.term(a.value(0).clone()).dtype().unwrap_or(DType::F32);
        x.abs().le(rounded_to(dtype, a.float(1)?)).select(0.0, x)
    };
    /// What is near zero becomes zero by a product, so that NaN stays.
    softshrink |s, a, [x]| {
        let bound = a.float(1)?;
        x.abs().gt(bound).select(x - x.sign() * bound, x * 0.0)
    };
    softplus |s, a, [x]| {
        let (beta, threshold) = (a.float(1)?, a.float(2)?);
        (x * beta).gt(threshold).select(x, softly(x * beta) / beta)
    };
    mish |s, a, [x]| x * softly(x).tanh();
    threshold |s, a, [x]| {
        x.le(x.as_element(a.scalar(1)?)).select(x.as_element(a.scalar(2)?), x)
    };
    glu |s, a, [x]| {
        let [value, gate] = x.halves(wrap_dim(a.int(1)?, x.rank())?);
        value * gate.sigmoid()
    };
    prelu |s, a, [x, w]| x.gt(0.0).select(x, x * w);
}

/// `log_sigmoid_forward`, with the buffer `e^-|x|`.
pub fn log_sigmoid_forward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let [x] = wide(&s, a);
    let buffer = (-x.abs()).exp();
    s.results(&[Some(x.at_most(0.0) - buffer.log1p()), Some(buffer)])
}
