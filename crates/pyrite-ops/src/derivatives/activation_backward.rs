//! Second derivatives of activation functions: derivatives of the operators that compute first ones.
//!
//! Each of these operators is linear in the gradient it gets, so the gradient of that is the operator itself applied to
//! the gradient that comes in now; the other one is the product of both with the function's second derivative.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value, args};
use pyrite_sym::SymInt;

use super::formula::{Operand, Sheet, Term};
use super::macros::curved_rules;

/// √(2/π)
const TANH_SCALE: f64 = 0.797_884_560_802_865_4;
/// The cubic coefficient of the tanh approximation.
const TANH_CUBIC: f64 = 0.044_715;
/// 1/√(2π)
const NORMAL_PEAK: f64 = 0.398_942_280_401_432_7;

curved_rules! {
    elu_backward 5 |x, p| {
        let (alpha, scale, input_scale) = (p.args.float(1)?, p.args.float(2)?, p.args.float(3)?);
        let below = if p.args.bool(4)? {
            x.ones_like() * input_scale
        } else {
            (x * input_scale).exp() * (input_scale * input_scale * alpha * scale)
        };
        below.only(x.lt(0.0))
    };
    gelu_backward 1 |x, p| if p.args.str(2)? == "tanh" { tanh_gelu_curvature(x) } else {
        (x.square() * -0.5).exp() * NORMAL_PEAK * (2.0 - x.square())
    };
    hardswish_backward 1 |x, _| (x.ones_like() / 3.0).only(x.gt(-3.0).and(x.lt(3.0)));
    logit_backward 1 |x, p| {
        let curvature = (x * 2.0 - 1.0) / (x * (1.0 - x)).square();
        match p.args.opt_float(2)? {
            Some(eps) => curvature.except(x.lt(eps).or(x.gt(1.0 - eps))),
            None => curvature,
        }
    };
    mish_backward 1 |x, _| {
        let (sigmoid, tanh) = (x.sigmoid(), x.softplus().tanh());
        (1.0 - tanh.square()) * sigmoid * (x * (1.0 - sigmoid - tanh * sigmoid * 2.0) + 2.0)
    };
    silu_backward 1 |x, _| {
        let sigmoid = x.sigmoid();
        sigmoid * (1.0 - sigmoid) * (x * (1.0 - sigmoid * 2.0) + 2.0)
    };
    softplus_backward 1 |x, p| {
        let (beta, threshold) = (p.args.float(2)?, p.args.float(3)?);
        let sigmoid = (x * beta).sigmoid();
        (sigmoid * (1.0 - sigmoid) * beta).only((x * beta).lt(threshold))
    };
}

fn tanh_gelu_curvature(x: Term<'_>) -> Term<'_> {
    let square = x.square();
    let tanh = (x * (square * TANH_CUBIC + 1.0) * TANH_SCALE).tanh();
    let slope = (square * (3.0 * TANH_CUBIC) + 1.0) * TANH_SCALE;
    (1.0 - tanh.square()) * (slope + x * (x * (3.0 * TANH_CUBIC * TANH_SCALE) - tanh * slope.square()))
}

/// Functions of straight pieces.
pub fn straight(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (h, x) = (s.grad(p), s.argument(p, 1));
    s.gradients(p, &[(0, &|| h.of(&p.args.schema.name, &p.args.values[1..])), (1, &|| x.zeros_like())])
}

/// `tanh_backward`: `g·conj(1 - y²)`, which is linear in `g` and in the conjugate of what follows it.
pub fn tanh_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (h, g, y) = (s.grad(p), s.argument(p, 0), s.argument(p, 1));
    s.gradients(p, &[(0, &|| h.with("aten.tanh_backward.default", y)), (1, &|| h.conj() * g.conj() * (y * -2.0))])
}

/// `sigmoid_backward`: `g·conj(y·(1 - y))`, which is linear in `g` and in the conjugate of what follows it.
pub fn sigmoid_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (h, g, y) = (s.grad(p), s.argument(p, 0), s.argument(p, 1));
    let of_result = || h.conj() * g.conj() * (1.0 - y * 2.0);
    s.gradients(p, &[(0, &|| h.with("aten.sigmoid_backward.default", y)), (1, &of_result)])
}

/// `log_sigmoid_backward`: all but a sign of the argument is in the buffer.
pub fn log_sigmoid_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (h, g, x, buffer) = (s.grad(p), s.argument(p, 0), s.argument(p, 1), s.argument(p, 2));
    let of_buffer = || {
        let slope = (buffer + 1.0).square().reciprocal();
        h * g * x.lt(0.0).select(-slope, slope)
    };
    s.gradients(
        p,
        &[
            (0, &|| h.of("aten.log_sigmoid_backward.default", &[x.value(), buffer.value()])),
            (1, &|| x.zeros_like()),
            (2, &of_buffer),
        ],
    )
}

/// `_prelu_kernel_backward`, which has the gradients of the argument and of the weight.
pub fn prelu_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, x, w) = (s.argument(p, 0), s.argument(p, 1), s.argument(p, 2));
    let of_input = p.grad_of(0).map_or_else(|| g.zeros_like(), |h| s.term(h));
    let of_weight = p.grad_of(1).map_or_else(|| g.zeros_like(), |h| s.term(h));
    let above = x.gt(0.0);
    s.gradients(
        p,
        &[
            (0, &|| above.select(of_input, of_input * w + of_weight * x)),
            (1, &|| (of_weight * g).except(above)),
            (2, &|| (of_input * g).except(above)),
        ],
    )
}

/// `rrelu_with_noise_backward`: linear in the noise where slopes were drawn, else of straight pieces.
pub fn rrelu_with_noise_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let drawn = p.args.bool(5)? && p.args.float(4)? - p.args.float(3)? > 1e-6;
    let s = Sheet::new(e);
    let (h, g) = (s.grad(p), s.argument(p, 0));
    s.gradients(
        p,
        &[
            (0, &|| h.of("aten.rrelu_with_noise_backward.default", &p.args.values[1..])),
            (1, &|| g.zeros_like()),
            (2, &|| if drawn { h * g } else { g.zeros_like() }),
        ],
    )
}

/// `glu_backward`: for the halves `a` and `b` of the argument, the halves `g·σ(b)` and `g·a·σ'(b)`.
pub fn glu_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let dim = p.args.int(2)?;
    let x = p.tensor(1)?;
    let [a, b] = halves(e, x, dim)?;
    let [ha, hb] = halves(e, p.grad()?, dim)?;
    let s = Sheet::new(e);
    let [g, a, b, ha, hb] = [p.tensor(0)?, a, b, ha, hb].map(|t| s.term(t));
    let sigmoid = b.sigmoid();
    let slope = sigmoid * (1.0 - sigmoid);
    let of_first = || hb * g * slope;
    let of_second = || g * slope * (ha + hb * a * (1.0 - sigmoid * 2.0));
    s.gradients(
        p,
        &[
            (0, &|| ha * sigmoid + hb * a * slope),
            (1, &|| s.call("aten.cat.default", args![Value::List(vec![of_first().value(), of_second().value()]), dim])),
        ],
    )
}

/// The two halves of a dimension.
fn halves(e: &mut dyn Emit, x: Handle, dim: i64) -> Result<[Handle; 2], OpError> {
    let shape = e.shape(x);
    let at = if dim < 0 { dim + shape.len() as i64 } else { dim } as usize;
    let half = shape[at].floor_div(&SymInt::Int(2));
    let first = e.one("aten.slice.Tensor", args![x, dim, 0i64, half.clone()])?;
    let second = e.one("aten.slice.Tensor", args![x, dim, half, shape[at].clone()])?;
    Ok([first, second])
}
