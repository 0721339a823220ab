//! Derivatives of attention.

use pyrite_ir::{Emit, Gradients, OpError, Pullback};

use super::backward::gradients;

/// `_scaled_dot_product_flash_attention_for_cpu`, from its result and the logarithms of the sums of exponentials.
pub fn flash_attention(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(5)?;
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
    gradients(e, "aten._scaled_dot_product_flash_attention_for_cpu_backward.default", &args, &[0, 1, 2])
}
