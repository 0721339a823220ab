//! Derivatives of activation functions: most have an operator of their own.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};

use super::formula::{Operand, Sheet};
use super::macros::backward_rules;

backward_rules! {
    celu |g, p| "aten.elu_backward.default" [g, p.value(1), 1.0, 1.0 / p.args.float(1)?, false, p.value(0)];
    elu |g, p| "aten.elu_backward.default" [g, p.value(1), p.value(2), p.value(3), false, p.value(0)];
    gelu |g, p| "aten.gelu_backward.default" [g, p.value(0), p.value(1)];
    glu |g, p| "aten.glu_backward.default" [g, p.value(0), p.value(1)];
    hardshrink |g, p| "aten.hardshrink_backward.default" [g, p.value(0), p.value(1)];
    hardsigmoid |g, p| "aten.hardsigmoid_backward.default" [g, p.value(0)];
    hardswish |g, p| "aten.hardswish_backward.default" [g, p.value(0)];
    hardtanh |g, p| "aten.hardtanh_backward.default" [g, p.value(0), p.value(1), p.value(2)];
    leaky_relu |g, p| "aten.leaky_relu_backward.default" [g, p.value(0), p.value(1), false];
    mish |g, p| "aten.mish_backward.default" [g, p.value(0)];
    /// The result is above zero where the argument is, and is kept anyway.
    relu |g, p| "aten.threshold_backward.default" [g, p.result(0)?, 0i64];
    rrelu_with_noise |g, p| "aten.rrelu_with_noise_backward.default"
        [g, p.value(0), p.value(1), p.value(2), p.value(3), p.value(4), false];
    rrelu_with_noise_functional |g, p| "aten.rrelu_with_noise_backward.default"
        [g, p.value(0), p.result(1)?, p.value(2), p.value(3), p.value(4), false];
    sigmoid |g, p| "aten.sigmoid_backward.default" [g, p.result(0)?];
    softplus |g, p| "aten.softplus_backward.default" [g, p.value(0), p.value(1), p.value(2)];
    softshrink |g, p| "aten.softshrink_backward.default" [g, p.value(0), p.value(1)];
    threshold |g, p| "aten.threshold_backward.default" [g, p.value(0), p.value(1)];
}

/// `silu`. PyTorch's operator for it does not conjugate.
pub fn silu(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, x) = (s.grad(p), s.argument(p, 0));
    s.gradients(p, &[(0, &|| g.with("aten.silu_backward.default", x))])
}

/// `log_sigmoid_forward`. The buffer is `e^-|x|`, which a second derivative passes through.
pub fn log_sigmoid_forward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (x, buffer) = (s.argument(p, 0), s.result(p, 1));
    let of_output = |g: Handle| s.term(g).of("aten.log_sigmoid_backward.default", &[x.value(), buffer.value()]);
    let of_buffer = |g: Handle| s.term(g) * x.lt(0.0).select(buffer, -buffer);
    let formula = || match (p.grad_of(0), p.grad_of(1)) {
        (Some(output), Some(kept)) => of_output(output) + of_buffer(kept),
        (None, Some(kept)) => of_buffer(kept),
        (Some(output), None) => of_output(output),
        (None, None) => s.grad(p),
    };
    s.gradients(p, &[(0, &formula)])
}

/// `_prelu_kernel`.
pub fn prelu(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let both = e.many("aten._prelu_kernel_backward.default", &[p.grad()?.into(), p.value(0), p.value(1)])?;
    Ok(both.into_iter().map(Value::from).enumerate().collect())
}
