//! Derivatives of Fourier transforms. The adjoint of a transform is the one in the other direction with the same factor.

use pyrite_ir::{Emit, Gradients, OpError, Pullback, args};
use pyrite_sym::SymInt;

use super::formula::Sheet;

/// The last of the transformed dimensions, counted from the front.
fn last_dim(p: &Pullback<'_>, rank: usize) -> Result<usize, OpError> {
    let dims = p.args.ints(1)?;
    crate::rules::wrap_dim(dims.last().copied().unwrap_or(-1), rank)
}

/// `_fft_c2c`.
pub fn c2c(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let forward = p.args.bool(3)?;
    let s = Sheet::new(e);
    let back = || s.grad(p).of("aten._fft_c2c.default", args![p.value(1), p.value(2), !forward]);
    s.gradients(p, &[(0, &back)])
}

/// `_fft_r2c`: the half that was left out has no gradient.
pub fn r2c(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let shape = e.shape(p.tensor(0)?);
    let dim = last_dim(p, shape.len())?;
    let s = Sheet::new(e);
    let back = || {
        let whole = s.grad(p).padded(dim, &shape[dim]);
        whole.of("aten._fft_c2c.default", args![p.value(1), p.value(2), false]).real()
    };
    s.gradients(p, &[(0, &back)])
}

/// `_fft_c2r`: elements that stand for their mirror image too count twice.
pub fn c2r(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let shape = e.shape(p.tensor(0)?);
    let dim = last_dim(p, shape.len())?;
    let size = p.args.sym(3)?;
    let half = size.floor_div(&SymInt::Int(2)) + 1;
    let mirrored = size - half.clone() + 1;
    let s = Sheet::new(e);
    let back = || {
        let half = s.grad(p).of("aten._fft_r2c.default", args![p.value(1), p.value(2), true]);
        let one = SymInt::Int(1);
        let parts = [half.part(dim, &SymInt::Int(0), &one), half.part(dim, &one, &mirrored) * 2.0];
        let doubled = s.cat(&[parts[0], parts[1], half.rest(dim, &mirrored)], dim as i64);
        doubled.padded(dim, &shape[dim])
    };
    s.gradients(p, &[(0, &back)])
}
