//! Derivatives of attention.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value, args};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::backward::gradients;
use super::{Calculus, Keep};

/// `_scaled_dot_product_flash_attention_for_cpu`, from its result and the logarithms of the sums of exponentials.
pub fn flash_attention(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let args = [
        p.grad()?.into(),
        p.value(0),
        p.value(1),
        p.value(2),
        p.result(0)?.into(),
        p.result(1)?.into(),
        p.value(3),
        p.value(4),
        p.value(5),
        p.value(6),
    ];
    let op = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default";
    let mut grads = gradients(e, op, &args, &[0, 1, 2])?;
    if p.wants(5) {
        grads.push((5, of_mask(e, p)?.into()));
    }
    Ok(grads)
}

/// The gradient of the mask, which is that of the scores: `P·(dO·Vᵀ - rowsum(dO·O))` with the weights
/// `P = exp(scores - logsumexp)`. For plain heads only.
fn of_mask(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Handle, OpError> {
    let (query, key, value, mask) = (p.tensor(0)?, p.tensor(1)?, p.tensor(2)?, p.tensor(5)?);
    if !e.shape(query)[1].is_eq(&e.shape(key)[1]) || p.args.bool(4)? {
        p.refuse(5)?;
    }
    let scale: Value<Handle> = match (p.args.opt_float(6)?, &e.shape(query)[3]) {
        (Some(scale), _) => scale.into(),
        (None, SymInt::Int(width)) => (1.0 / (*width as f64).sqrt()).into(),
        (None, width) => {
            let width = e.one("aten.scalar_tensor.default", args![width, DType::F64])?;
            e.unary("rsqrt", width)?.into()
        }
    };
    let (grad, output) = (p.grad()?, p.result(0)?);
    let (keys, values) = (e.transpose(key, -2, -1)?, e.transpose(value, -2, -1)?);
    let scores = e.matmul(query, keys)?;
    let scores = e.mul(scores, scale)?;
    let scores = e.add(scores, mask)?;
    let total = e.unsqueeze(p.result(1)?, -1)?;
    let weights = e.sub(scores, total)?;
    let weights = e.unary("exp", weights)?;
    let inner = e.mul(grad, output)?;
    let inner = e.sum(inner, &[-1], Keep::Dims)?;
    let slopes = e.matmul(grad, values)?;
    let slopes = e.sub(slopes, inner)?;
    e.mul(weights, slopes)
}
