//! Derivatives of sampling at a grid.

use pyrite_ir::{Emit, Gradients, OpError, Pullback};

use super::backward::{gradients, mask, packet};

/// `grid_sampler_2d` and `grid_sampler_3d`.
pub fn sample(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let mut args = vec![p.grad()?.into()];
    args.extend(p.args.values.iter().cloned());
    args.push(mask(p, &[0, 1]));
    gradients(e, &format!("{}_backward.default", packet(p)), &args, &[0, 1])
}
