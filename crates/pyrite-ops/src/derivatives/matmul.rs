//! Derivatives of matmuls and vectors.
//!
//! With `C = A·B`, the gradients are `dA = dC·Bᴴ` and `dB = Aᴴ·dC`. A factor that lies transposed in memory gets its
//! gradient as the transpose of the transposed product, so that a weight used as `weightᵀ` has a dense gradient.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};
use pyrite_tensor::Scalar;

use super::Calculus;

/// Times the conjugate of a factor among the arguments; a factor of one is left out.
fn scaled(e: &mut dyn Emit, p: &Pullback<'_>, grad: Handle, factor: usize) -> Result<Handle, OpError> {
    let number = p.args.value(factor).as_scalar();
    if number == Some(Scalar::Int(1)) || number == Some(Scalar::Float(1.0)) {
        return Ok(grad);
    }
    let factor = e.conj_value(p.value(factor))?;
    e.mul(grad, factor)
}

/// Whether a matrix's first dimension is the fastest.
fn is_transposed(e: &dyn Emit, a: Handle) -> bool {
    let meta = e.meta(a);
    meta.stride[0].is_eq(1) && meta.stride[1].is_eq(&meta.shape[0])
}

/// The gradient of the first factor of a product of two matrices.
fn left(e: &mut dyn Emit, grad: Handle, a: Handle, b: Handle) -> Result<Handle, OpError> {
    if is_transposed(e, a) {
        let b = e.conj(b)?;
        let grad = e.unary("t", grad)?;
        let product = e.one("aten.mm.default", &[b.into(), grad.into()])?;
        return e.unary("t", product);
    }
    let b = e.unary("t", b)?;
    let b = e.conj(b)?;
    e.one("aten.mm.default", &[grad.into(), b.into()])
}

/// The gradient of the second factor of a product of two matrices.
fn right(e: &mut dyn Emit, grad: Handle, a: Handle, b: Handle) -> Result<Handle, OpError> {
    if is_transposed(e, b) {
        let grad = e.unary("t", grad)?;
        let a = e.conj(a)?;
        let product = e.one("aten.mm.default", &[grad.into(), a.into()])?;
        return e.unary("t", product);
    }
    let a = e.unary("t", a)?;
    let a = e.conj(a)?;
    e.one("aten.mm.default", &[a.into(), grad.into()])
}

/// `mm`.
pub fn mm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    product(e, p, [0, 1], [left, right])
}

/// `bmm`.
pub fn bmm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    product(e, p, [0, 1], [batch_left, batch_right])
}

fn batch_left(e: &mut dyn Emit, grad: Handle, _: Handle, b: Handle) -> Result<Handle, OpError> {
    let b = e.adjoint(b)?;
    e.one("aten.bmm.default", &[grad.into(), b.into()])
}

fn batch_right(e: &mut dyn Emit, grad: Handle, a: Handle, _: Handle) -> Result<Handle, OpError> {
    let a = e.adjoint(a)?;
    e.one("aten.bmm.default", &[a.into(), grad.into()])
}

/// `_grouped_mm`: the groups that divide a dimension of the product or of a factor divide that of its gradient.
pub fn grouped_mm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (grad, a, b, offsets) = (p.grad()?, p.tensor(0)?, p.tensor(1)?, p.value(2));
    let mut grads = Vec::new();
    if p.wants(0) {
        let b = e.one("aten.transpose.int", &[b.into(), Value::from(-2), Value::from(-1)])?;
        grads.push((0, e.one("aten._grouped_mm.default", &[grad.into(), b.into(), offsets.clone()])?.into()));
    }
    if p.wants(1) {
        let a = e.one("aten.transpose.int", &[a.into(), Value::from(-2), Value::from(-1)])?;
        grads.push((1, e.one("aten._grouped_mm.default", &[a.into(), grad.into(), offsets])?.into()));
    }
    Ok(grads)
}

/// The gradient of one factor from that of the product and both factors.
type Side = fn(&mut dyn Emit, Handle, Handle, Handle) -> Result<Handle, OpError>;

fn product(e: &mut dyn Emit, p: &Pullback<'_>, at: [usize; 2], sides: [Side; 2]) -> Result<Gradients, OpError> {
    let (grad, a, b) = (p.grad()?, p.tensor(at[0])?, p.tensor(at[1])?);
    let mut grads = Vec::new();
    for (index, side) in at.into_iter().zip(sides) {
        if p.wants(index) {
            grads.push((index, side(e, grad, a, b)?.into()));
        }
    }
    Ok(grads)
}

/// `beta·self + alpha·product`, whose factors stand at 1 and 2, `beta` and `alpha` at 3 and 4.
fn added(e: &mut dyn Emit, p: &Pullback<'_>, sides: [Side; 2]) -> Result<Gradients, OpError> {
    let mut grads = Vec::new();
    if p.wants(0) {
        grads.push((0, scaled(e, p, p.grad()?, 3)?.into()));
    }
    for (index, grad) in product(e, p, [1, 2], sides)? {
        if let Value::Tensor(grad) = grad {
            grads.push((index, scaled(e, p, grad, 4)?.into()));
        }
    }
    Ok(grads)
}

/// `addmm`.
pub fn addmm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    added(e, p, [left, right])
}

/// `baddbmm`.
pub fn baddbmm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    added(e, p, [batch_left, batch_right])
}

/// `addbmm`: every matrix of the batch gets the gradient of the sum.
pub fn addbmm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    fn spread(e: &mut dyn Emit, grad: Handle, a: Handle) -> Result<Handle, OpError> {
        let mut shape = e.shape(grad);
        shape.insert(0, e.shape(a)[0].clone());
        e.expand(grad, &shape)
    }
    added(
        e,
        p,
        [
            |e, grad, a, b| {
                let grad = spread(e, grad, a)?;
                batch_left(e, grad, a, b)
            },
            |e, grad, a, b| {
                let grad = spread(e, grad, a)?;
                batch_right(e, grad, a, b)
            },
        ],
    )
}

/// The gradient of the matrix of a product with a vector.
fn of_matrix(e: &mut dyn Emit, grad: Handle, _: Handle, vector: Handle) -> Result<Handle, OpError> {
    let vector = e.conj(vector)?;
    let column = e.unsqueeze(grad, 1)?;
    e.mul(column, vector)
}

/// The gradient of the vector.
fn of_vector(e: &mut dyn Emit, grad: Handle, matrix: Handle, _: Handle) -> Result<Handle, OpError> {
    let matrix = e.adjoint(matrix)?;
    e.one("aten.mv.default", &[matrix.into(), grad.into()])
}

/// `mv`.
pub fn mv(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    product(e, p, [0, 1], [of_matrix, of_vector])
}

/// `addmv`.
pub fn addmv(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    added(e, p, [of_matrix, of_vector])
}

/// `addr`.
pub fn addr(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    added(
        e,
        p,
        [
            |e, grad, _, y| {
                let y = e.conj(y)?;
                e.one("aten.mv.default", &[grad.into(), y.into()])
            },
            |e, grad, x, _| {
                let (grad, x) = (e.unary("t", grad)?, e.conj(x)?);
                e.one("aten.mv.default", &[grad.into(), x.into()])
            },
        ],
    )
}

/// `dot`.
pub fn dot(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    product(
        e,
        p,
        [0, 1],
        [
            |e, grad, _, y| {
                let y = e.conj(y)?;
                e.mul(grad, y)
            },
            |e, grad, x, _| {
                let x = e.conj(x)?;
                e.mul(grad, x)
            },
        ],
    )
}

/// `vdot`, whose first operand is conjugated.
pub fn vdot(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    product(
        e,
        p,
        [0, 1],
        [
            |e, grad, _, y| {
                let grad = e.conj(grad)?;
                e.mul(grad, y)
            },
            |e, grad, x, _| e.mul(grad, x),
        ],
    )
}

/// `_trilinear`: the gradient of an operand is the product of the other two and the result's gradient, with the
/// dimensions that it was expanded along summed, and those that were summed expanded.
pub fn trilinear(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let mut grads = Vec::new();
    for own in (0..3).filter(|index| p.wants(*index)) {
        let mut args: Vec<Value<Handle>> = p.args.values.to_vec();
        for (other, arg) in args[..3].iter_mut().enumerate() {
            *arg = if other == own { p.grad()?.into() } else { e.conj(p.tensor(other)?)?.into() };
        }
        args.swap(3 + own, 6);
        grads.push((own, e.one("aten._trilinear.default", &args)?.into()));
    }
    Ok(grads)
}
