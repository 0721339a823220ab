//! Decompositions of the gradients of activation functions.

use pyrite_ir::{Args, Emit, Handle};

use super::{Operand, Rule, Sheet, formulas, wide};
use crate::rules::wrap_dim;

formulas! {
    threshold_backward |s, a, [g, x]| x.le(x.as_element(a.scalar(2)?)).select(g.as_element(0i64.into()), g);
    tanh_backward |s, a, [g, y]| g * (1.0 - y * y).conj();
    sigmoid_backward |s, a, [g, y]| g * ((1.0 - y) * y).conj();
    silu_backward |s, a, [g, x]| {
        let sigmoid = x.sigmoid();
        g * sigmoid * (x * (1.0 - sigmoid) + 1.0)
    };
    mish_backward |s, a, [g, x]| {
        let tanh = x.exp().log1p().tanh();
        g * (tanh + x * x.sigmoid() * (1.0 - tanh * tanh))
    };
    hardtanh_backward |s, a, [g, x]| x.le(a.float(2)?).or(x.ge(a.float(3)?)).select(0.0, g);
    hardsigmoid_backward |s, a, [g, x]| x.gt(-3.0).and(x.lt(3.0)).select(g / 6.0, 0.0);
    hardswish_backward |s, a, [g, x]| x.le(-3.0).select(0.0, x.lt(3.0).select(g * (x / 3.0 + 0.5), g));
    /// Also that of `softshrink`.
    hardshrink_backward |s, a, [g, x]| x.abs().le(a.float(2)?).select(0.0, g);
    leaky_relu_backward |s, a, [g, x]| x.gt(0.0).select(g, g * a.float(2)?);
    elu_backward |s, a, [g]| {
        let (alpha, scale, input_scale) = (a.float(1)?, a.float(2)?, a.float(3)?);
        let x = s.wide(a, 5);
        let below = if a.bool(4)? {
            g * input_scale * (x + alpha * scale)
        } else {
            g * (input_scale * alpha * scale) * (x * input_scale).exp()
        };
        x.le(0.0).select(below, g * scale)
    };
    softplus_backward |s, a, [g, x]| {
        let (beta, threshold) = (a.float(2)?, a.float(3)?);
        (x * beta).gt(threshold).select(g, g * (x * beta).sigmoid())
    };
    log_sigmoid_backward |s, a, [g, x, buffer]| {
        let part = buffer / (buffer + 1.0);
        g * x.lt(0.0).select(1.0 - part, part)
    };
    logit_backward |s, a, [g, x]| {
        let slope = g / (x * (1.0 - x));
        match a.opt_float(2)? {
            None => x.ge(0.0).and(x.le(1.0)).select(slope, f64::NAN),
            Some(eps) => x.lt(eps).or(x.gt(1.0 - eps)).select(0.0, slope),
        }
    };
    glu_backward |s, a, [g, x]| {
        let dim = wrap_dim(a.int(2)?, x.rank())?;
        let [value, gate] = x.halves(dim);
        let sigmoid = gate.sigmoid();
        s.cat(&[g * sigmoid, g * sigmoid * (1.0 - sigmoid) * value], dim as i64)
    };
    rrelu_with_noise_backward |s, a, [g, x, noise]| {
        let (lower, upper) = (a.float(3)?, a.float(4)?);
        let drawn = a.bool(5)? && upper - lower > 1e-6;
        if drawn { g * noise } else { x.gt(0.0).select(g, g * (0.5 * (lower + upper))) }
    };
}

/// `_prelu_kernel_backward`.
pub fn prelu_backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let [g, x, w] = wide(&s, a);
    let above = x.gt(0.0);
    s.results(&[Some(above.select(g, g * w)), Some(above.select(0.0, (g * x).value()))])
}
