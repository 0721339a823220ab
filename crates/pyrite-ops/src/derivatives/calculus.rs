//! The vocabulary of derivative rules: operators as methods of an emitter.

use pyrite_ir::{Emit, Handle, OpError, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Scalar};

/// Operators as methods; each calls the ATen operator of the same name. An operand is a tensor, a number, or an
/// argument as it was given.
pub trait Calculus {
    /// The emitter.
    fn emitter(&mut self) -> &mut dyn Emit;

    /// `a + b`
    fn add(&mut self, a: impl Into<Value<Handle>>, b: impl Into<Value<Handle>>) -> Result<Handle, OpError> {
        self.emitter().one("aten.add.Tensor", &[a.into(), b.into()])
    }

    /// `a - b`
    fn sub(&mut self, a: impl Into<Value<Handle>>, b: impl Into<Value<Handle>>) -> Result<Handle, OpError> {
        self.emitter().one("aten.sub.Tensor", &[a.into(), b.into()])
    }

    /// `a · b`
    fn mul(&mut self, a: impl Into<Value<Handle>>, b: impl Into<Value<Handle>>) -> Result<Handle, OpError> {
        self.emitter().one("aten.mul.Tensor", &[a.into(), b.into()])
    }

    /// `a / b`
    fn div(&mut self, a: impl Into<Value<Handle>>, b: impl Into<Value<Handle>>) -> Result<Handle, OpError> {
        self.emitter().one("aten.div.Tensor", &[a.into(), b.into()])
    }

    /// `number - a`
    #[expect(clippy::wrong_self_convention, reason = "it is read as `number - a`, no conversion")]
    fn from_number(&mut self, number: impl Into<Scalar>, a: Handle) -> Result<Handle, OpError> {
        let negative = self.neg(a)?;
        let number: Scalar = number.into();
        self.emitter().one("aten.add.Scalar", &[negative.into(), number.into()])
    }

    /// `a` to a constant power
    fn power(&mut self, a: Handle, exponent: impl Into<Scalar>) -> Result<Handle, OpError> {
        let exponent: Scalar = exponent.into();
        self.emitter().one("aten.pow.Tensor_Scalar", &[a.into(), exponent.into()])
    }

    /// An operator of one tensor, by its name without namespace and overload: `e.unary("exp", x)`.
    fn unary(&mut self, name: &str, a: Handle) -> Result<Handle, OpError> {
        self.emitter().one(&format!("aten.{name}.default"), &[a.into()])
    }

    /// `-a`
    fn neg(&mut self, a: Handle) -> Result<Handle, OpError> {
        self.unary("neg", a)
    }

    /// The complex conjugate; a real operand is returned as it is.
    fn conj(&mut self, a: Handle) -> Result<Handle, OpError> {
        if self.emitter().dtype(a).is_complex() { self.unary("_conj", a) } else { Ok(a) }
    }

    /// The conjugate of an argument that may be a number.
    fn conj_value(&mut self, a: Value<Handle>) -> Result<Value<Handle>, OpError> {
        Ok(match a {
            Value::Tensor(handle) => self.conj(handle)?.into(),
            Value::Complex(number) => Value::Complex(number.conj()),
            other => other,
        })
    }

    /// `a` where the mask holds, else `b`
    fn select(
        &mut self,
        mask: Handle,
        a: impl Into<Value<Handle>>,
        b: impl Into<Value<Handle>>,
    ) -> Result<Handle, OpError> {
        let (a, b) = (a.into(), b.into());
        let op = match (&a, &b) {
            (Value::Tensor(_), Value::Tensor(_)) => "aten.where.self",
            (Value::Tensor(_), _) => "aten.where.ScalarOther",
            (_, Value::Tensor(_)) => "aten.where.ScalarSelf",
            _ => "aten.where.Scalar",
        };
        self.emitter().one(op, &[mask.into(), a, b])
    }

    /// `a` where the mask holds, else zero
    fn masked(&mut self, mask: Handle, a: Handle) -> Result<Handle, OpError> {
        self.select(mask, a, 0i64)
    }

    /// A comparison with a number: `e.compare("gt", x, 0)`.
    fn compare(&mut self, name: &str, a: Handle, number: impl Into<Scalar>) -> Result<Handle, OpError> {
        let number: Scalar = number.into();
        self.emitter().one(&format!("aten.{name}.Scalar"), &[a.into(), number.into()])
    }

    /// Zeros of the shape, strides and type of a tensor.
    fn zeros_like(&mut self, a: Handle) -> Result<Handle, OpError> {
        self.emitter().one("aten.zeros_like.default", &[a.into()])
    }

    /// Zeros of a shape, of the type of a tensor.
    fn zeros(&mut self, shape: &[SymInt], like: Handle) -> Result<Handle, OpError> {
        let dtype = self.emitter().dtype(like);
        self.emitter().one("aten.full.default", &[shape.into(), 0i64.into(), dtype.into()])
    }

    /// The gradient of a result, or zeros where there is none.
    fn or_zeros(&mut self, grad: Option<Handle>, like: Handle) -> Result<Handle, OpError> {
        grad.map_or_else(|| self.zeros_like(like), Ok)
    }

    /// The same elements in another type.
    fn cast(&mut self, a: Handle, dtype: DType) -> Result<Handle, OpError> {
        if self.emitter().dtype(a) == dtype {
            return Ok(a);
        }
        self.emitter().one("aten._to_copy.default", &[a.into(), dtype.into()])
    }

    /// The sum over dimensions.
    fn sum(&mut self, a: Handle, dims: &[i64], keep: Keep) -> Result<Handle, OpError> {
        if dims.is_empty() {
            return Ok(a);
        }
        self.emitter().one("aten.sum.dim_IntList", &[a.into(), dims.into(), (keep == Keep::Dims).into()])
    }

    /// In reverse order along a dimension.
    fn flip(&mut self, a: Handle, dim: usize) -> Result<Handle, OpError> {
        self.emitter().one("aten.flip.default", &[a.into(), vec![dim as i64].into()])
    }

    /// The same elements in another shape, copied where they cannot be viewed.
    fn reshape(&mut self, a: Handle, shape: &[SymInt]) -> Result<Handle, OpError> {
        self.emitter().one("aten.reshape.default", &[a.into(), shape.into()])
    }

    /// Repeated without copying along dimensions of size one.
    fn expand(&mut self, a: Handle, shape: &[SymInt]) -> Result<Handle, OpError> {
        self.emitter().one("aten.expand.default", &[a.into(), shape.into()])
    }

    /// With a dimension of size one more.
    fn unsqueeze(&mut self, a: Handle, dim: i64) -> Result<Handle, OpError> {
        self.emitter().one("aten.unsqueeze.default", &[a.into(), dim.into()])
    }

    /// Two dimensions swapped.
    fn transpose(&mut self, a: Handle, one: i64, two: i64) -> Result<Handle, OpError> {
        self.emitter().one("aten.transpose.int", &[a.into(), one.into(), two.into()])
    }

    /// The last two dimensions swapped and conjugated.
    fn adjoint(&mut self, a: Handle) -> Result<Handle, OpError> {
        let swapped = self.transpose(a, -2, -1)?;
        self.conj(swapped)
    }

    /// The matrix product.
    fn matmul(&mut self, a: Handle, b: Handle) -> Result<Handle, OpError> {
        self.emitter().one("aten.matmul.default", &[a.into(), b.into()])
    }
}

/// Whether a reduction leaves dimensions of size one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It does.
    Dims,
    /// It drops them.
    Nothing,
}

impl Calculus for dyn Emit + '_ {
    fn emitter(&mut self) -> &mut dyn Emit {
        self
    }
}
