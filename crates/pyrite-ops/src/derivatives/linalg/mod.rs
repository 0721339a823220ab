//! Derivatives of linear algebra, for matrices in the last two dimensions.
//!
//! `Aᴴ` is the adjoint and `A⁻ᴴ` its inverse. A gradient of a factor counts only where the factor is free: a triangular
//! one on its triangle, without the diagonal where that is one.

mod factor;
mod reflections;
mod spectral;

pub use factor::{cholesky_ex, cholesky_inverse, cholesky_solve, lu, lu_factor_ex, lu_solve, lu_unpack, qr};
pub use reflections::{householder_product, ormqr};
pub use spectral::{eigh, matrix_sqrth, pinv, polar, svd};

use pyrite_ir::{Emit, Gradients, OpError, Pullback, args};
use pyrite_tensor::DType;

use super::formula::{Operand, Sheet, Term};
use super::matrices::{Diagonal, Side, Triangle};

/// A result of the call as it is.
fn result<'s>(s: &'s Sheet<'_>, p: &Pullback<'_>, index: usize) -> Result<Term<'s>, OpError> {
    Ok(s.term(p.result(index)?))
}

/// The gradient of a result, if there is one.
fn grad_of<'s>(s: &'s Sheet<'_>, p: &Pullback<'_>, index: usize) -> Option<Term<'s>> {
    p.grad_of(index).map(|grad| s.term(grad))
}

/// `linalg_cross`.
pub fn cross(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, a, b) = (s.grad(p), s.argument(p, 0), s.argument(p, 1));
    let cross = |x: Term<'_>, y: Term<'_>| s.call("aten.linalg_cross.default", args![x.value(), y.value(), p.value(2)]);
    s.gradients(p, &[(0, &|| cross(b, g)), (1, &|| cross(g, a))])
}

/// `linalg_inv_ex`: `-A⁻ᴴ·G·A⁻ᴴ`.
pub fn inv_ex(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let inverse = result(&s, p, 0)?.adjoint();
    s.gradients(p, &[(0, &|| -inverse.mm(s.grad(p).mm(inverse)))])
}

/// The gradient of the matrix of a system from that of its right-hand side and the solution.
fn matrix_grad<'s>(rhs: Term<'s>, solution: Term<'s>, side: Side) -> Term<'s> {
    match side {
        Side::Left => -rhs.mm(solution.adjoint()),
        Side::Right => -solution.adjoint().mm(rhs),
    }
}

/// `linalg_solve_triangular`.
pub fn solve_triangular(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (triangle, side) = (Triangle::upper(p.args.bool(2)?), Side::left(p.args.bool(3)?));
    let diagonal = if p.args.bool(4)? { Diagonal::Ones } else { Diagonal::Stored };
    let s = Sheet::new(e);
    let (a, x) = (s.term(p.value(0)), result(&s, p, 0)?);
    let rhs = s.grad(p).solved(a.adjoint(), triangle.flipped(), side, diagonal);
    s.gradients(p, &[(0, &|| matrix_grad(rhs, x, side).triangle(triangle, diagonal)), (1, &|| rhs)])
}

/// `triangular_solve`, whose second result is a copy of the matrix.
pub fn triangular_solve(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (triangle, transposed) = (Triangle::upper(p.args.bool(2)?), p.args.bool(3)?);
    let diagonal = if p.args.bool(4)? { Diagonal::Ones } else { Diagonal::Stored };
    let s = Sheet::new(e);
    let (a, x) = (s.term(p.value(1)), result(&s, p, 0)?);
    let copied = grad_of(&s, p, 1);
    let Some(g) = grad_of(&s, p, 0) else {
        return s.gradients(p, &[(1, &|| copied.unwrap_or(a.zeros_like()))]);
    };
    let (b, of_a) = if transposed {
        let b = g.solved(a.conj(), triangle, Side::Left, diagonal);
        (b, -x.conj().mm(b.of("aten.transpose.int", args![-2i64, -1i64])))
    } else {
        let b = g.solved(a.adjoint(), triangle.flipped(), Side::Left, diagonal);
        (b, -b.mm(x.adjoint()))
    };
    let matrix = || {
        let own = of_a.triangle(triangle, diagonal);
        copied.map_or(own, |copied| own + copied)
    };
    s.gradients(p, &[(0, &|| b), (1, &matrix)])
}

/// Whose LU factorization a call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Factored {
    Itself,
    Adjoint,
}

/// `X` of `Aᴴ·X = B` or `X·Aᴴ = B`, by the LU factorization of `A` or of `Aᴴ`.
fn solved_adjoint<'s>(b: Term<'s>, lu: Term<'s>, pivots: Term<'s>, side: Side, of: Factored) -> Term<'s> {
    let adjoint = of == Factored::Itself;
    lu.of("aten.linalg_lu_solve.default", args![pivots.value(), b.value(), side == Side::Left, adjoint])
}

/// `_linalg_solve_ex`.
pub fn solve_ex(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let side = Side::left(p.args.bool(2)?);
    let (a, b) = (e.shape(p.tensor(0)?), e.shape(p.tensor(1)?));
    let vector = crate::rules::is_vector(&a, &b);
    let s = Sheet::new(e);
    let (x, lu, pivots) = (result(&s, p, 0)?, result(&s, p, 1)?, result(&s, p, 2)?);
    let (g, x) = if vector { (s.grad(p).as_column(), x.as_column()) } else { (s.grad(p), x) };
    let rhs = solved_adjoint(g, lu, pivots, side, Factored::Itself);
    let of_b = || if vector { rhs.squeeze(rhs.rank() - 1) } else { rhs };
    s.gradients(p, &[(0, &|| matrix_grad(rhs, x, side)), (1, &of_b)])
}

/// `_linalg_det`: `G·conj(det)·A⁻ᴴ`. A singular matrix is moved a little, which its determinant hardly notices.
pub fn det(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let of = factored(e, p)?;
    let s = Sheet::new(e);
    let (det, lu, pivots) = (s.result(p, 0), result(&s, p, 1)?, result(&s, p, 2)?);
    let smallest =
        if matches!(lu.dtype(), Some(DType::F64 | DType::C128)) { f64::EPSILON } else { f32::EPSILON.into() };
    let matrix = || {
        let diagonal = lu.diagonal();
        let moved = lu + (diagonal.zeros_like() + smallest).only(diagonal.eq(0.0)).embed();
        scaled_inverse(s.grad(p) * det, moved, pivots, of)
    };
    s.gradients(p, &[(0, &matrix)])
}

/// `_linalg_slogdet`: `G·A⁻ᴴ`, where the gradient of the sign turns `G`.
pub fn slogdet(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let of = factored(e, p)?;
    let s = Sheet::new(e);
    let (sign, log) = (result(&s, p, 0)?, result(&s, p, 1)?);
    let (lu, pivots) = (result(&s, p, 2)?, result(&s, p, 3)?);
    let matrix = || {
        let size = grad_of(&s, p, 1).unwrap_or_else(|| log.zeros_like());
        let factor = match grad_of(&s, p, 0).filter(|_| sign.is_complex()) {
            Some(turn) => s.call("aten.complex.default", args![size.value(), (-(turn.conj() * sign).imag()).value()]),
            None => size.like(sign),
        };
        scaled_inverse(factor, lu, pivots, of)
    };
    s.gradients(p, &[(0, &matrix)])
}

/// What determinants factor: real matrices that lie row by row are taken transposed, which has the same determinant.
fn factored(e: &dyn Emit, p: &Pullback<'_>) -> Result<Factored, OpError> {
    let meta = e.meta(p.tensor(0)?);
    Ok(if meta.is_contiguous() && !meta.dtype.is_complex() { Factored::Adjoint } else { Factored::Itself })
}

/// `A⁻ᴴ` times a number for each matrix.
fn scaled_inverse<'s>(factor: Term<'s>, lu: Term<'s>, pivots: Term<'s>, of: Factored) -> Term<'s> {
    let mut shape = factor.shape();
    shape.push(lu.size(1));
    let diagonal = factor.as_column().expand(&shape);
    solved_adjoint(diagonal.embed(), lu, pivots, Side::Left, of)
}

/// `linalg_matrix_exp`: a corner of the exponential of a matrix of blocks.
pub fn matrix_exp(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (g, a) = (s.grad(p), s.term(p.value(0)).adjoint());
    let corner = || {
        let rows = [s.cat(&[a, g], -1), s.cat(&[a.zeros_like(), a], -1)];
        let blocks = s.cat(&rows, -2).of("aten.linalg_matrix_exp.default", &[]);
        let n = a.size(1);
        blocks.first(-2i64, &n).rest(-1i64, &n)
    };
    s.gradients(p, &[(0, &corner)])
}
