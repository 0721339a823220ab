//! One value for each position.

use pyrite_ir::lower::{Lowering, Point, register};
use pyrite_ir::{Meta, OpError, Value};
use pyrite_loops::{Binary, Block, Compare, Type, Unary, Val};
use pyrite_tensor::{DType, Scalar};

use crate::rules::{operand_dtype, rounded_to};

type Lowered = Result<(), OpError>;

/// The type in which the result's arithmetic is done: bools count as integers.
fn arithmetic(p: &Point<'_, '_>) -> Result<Type, OpError> {
    Ok(match p.ty()? {
        Type::Bool => Type::I32,
        ty => ty,
    })
}

/// The same where only floats are computed.
fn floating(p: &Point<'_, '_>) -> Result<Type, OpError> {
    let ty = p.ty()?;
    if ty.is_float() { Ok(ty) } else { Err(OpError::unsupported("integers in this loop")) }
}

/// An operand as an element of the result's type, as PyTorch brings operands there first: what does not fit wraps around or is
/// rounded.
fn brought(p: &mut Point<'_, '_>, index: usize, ty: Type) -> Result<Val, OpError> {
    let value = p.arg(index, ty)?;
    let dtype = p.lowering.result()?.meta.dtype;
    let is_there = matches!(p.lowering.args.value(index), Value::Tensor(place) if place.meta.dtype == dtype);
    Ok(if is_there || register(dtype)? != ty { value } else { narrowed(p, dtype, value) })
}

/// The same for functions that jump: what is an element of the result's type already is rounded to it, too.
fn held(p: &mut Point<'_, '_>, index: usize, ty: Type) -> Result<Val, OpError> {
    let value = p.held(index, ty)?;
    let dtype = p.lowering.result()?.meta.dtype;
    Ok(if register(dtype)? == ty { narrowed(p, dtype, value) } else { value })
}

/// A value as a type smaller than its register holds it.
fn narrowed(p: &mut Point<'_, '_>, dtype: DType, value: Val) -> Val {
    match dtype {
        DType::U8 | DType::I8 | DType::I16 | DType::F16 | DType::BF16 => p.code().wrap(dtype, value),
        _ => value,
    }
}

/// Two operands in the type in which they are compared.
fn compared(p: &mut Point<'_, '_>) -> Result<(Val, Val), OpError> {
    let metas: Vec<Meta> = vec![p.lowering.meta(0)?, p.lowering.meta(1)?];
    let dtype = operand_dtype(&metas);
    let ty = register(dtype)?;
    let mut operand = |index: usize| match p.lowering.args.value(index).as_scalar() {
        Some(number) => {
            let literal = p.literal_of(number, dtype)?;
            Ok(p.nest.held(dtype, literal))
        }
        None if metas[index].dtype == dtype => p.arg(index, ty),
        None => {
            let value = p.arg(index, ty)?;
            Ok(narrowed(p, dtype, value))
        }
    };
    Ok((operand(0)?, operand(1)?))
}

macro_rules! floats {
    ($($name:ident $op:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of a float.")]
            pub fn $name(l: &mut Lowering<'_>) -> Lowered {
                l.map(|p| {
                    let ty = floating(p)?;
                    let x = p.arg(0, ty)?;
                    Ok(p.code().unary(Unary::$op, x))
                })
            }
        )*
    };
}

floats! {
    acos Acos; acosh Acosh; asin Asin; asinh Asinh; atan Atan; atanh Atanh; cos Cos; cosh Cosh; erf Erf; erfc Erfc; exp Exp;
    expm1 Expm1; log Log; log10 Log10; log1p Log1p; log2 Log2; rsqrt Rsqrt; sin Sin; sinh Sinh; sqrt Sqrt; tan Tan;
    tanh Tanh;
}

macro_rules! rounding {
    ($($name:ident $op:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`; integers are what they are.")]
            pub fn $name(l: &mut Lowering<'_>) -> Lowered {
                l.map(|p| {
                    let ty = p.ty()?;
                    let x = p.held(0, ty)?;
                    Ok(if ty.is_float() { p.code().unary(Unary::$op, x) } else { x })
                })
            }
        )*
    };
}

rounding! { ceil Ceil; floor Floor; round Round; trunc Trunc; }

macro_rules! numbers {
    ($($name:ident $op:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of a number.")]
            pub fn $name(l: &mut Lowering<'_>) -> Lowered {
                l.map(|p| {
                    let ty = arithmetic(p)?;
                    let x = p.arg(0, ty)?;
                    Ok(p.code().unary(Unary::$op, x))
                })
            }
        )*
    };
}

numbers! { abs Abs; neg Neg; sign Sign; }

/// `1 / x`.
pub fn reciprocal(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let ty = floating(p)?;
        let x = p.arg(0, ty)?;
        let one = p.code().number(1.0, ty);
        Ok(p.code().binary(Binary::Div, one, x))
    })
}

/// Negative numbers become zero; NaN stays.
pub fn relu(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let ty = arithmetic(p)?;
        let x = p.arg(0, ty)?;
        let zero = p.code().number(0.0, ty);
        let negative = p.code().compare(Compare::Lt, x, zero);
        Ok(p.code().select(negative, zero, x))
    })
}

/// `1 / (1 + e^-x)`.
pub fn sigmoid(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let ty = floating(p)?;
        let x = p.arg(0, ty)?;
        let code = p.code();
        let negative = code.unary(Unary::Neg, x);
        let power = code.unary(Unary::Exp, negative);
        let one = code.number(1.0, ty);
        let below = code.binary(Binary::Add, power, one);
        Ok(code.binary(Binary::Div, one, below))
    })
}

/// Whether a number is NaN.
pub fn isnan(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let x = p.own(0)?;
        Ok(p.code().compare(Compare::Ne, x, x))
    })
}

/// Whether a number is infinite.
pub fn isinf(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let x = p.own(0)?;
        let ty = p.code().ty(x);
        if !ty.is_float() {
            return Ok(p.code().integer(0, Type::Bool));
        }
        let size = p.code().unary(Unary::Abs, x);
        let infinity = p.code().number(f64::INFINITY, ty);
        Ok(p.code().compare(Compare::Eq, size, infinity))
    })
}

/// `a + alpha·b`.
pub fn add(l: &mut Lowering<'_>) -> Lowered {
    scaled_sum(l, Binary::Add)
}

/// `a - alpha·b`.
pub fn sub(l: &mut Lowering<'_>) -> Lowered {
    scaled_sum(l, Binary::Sub)
}

fn scaled_sum(l: &mut Lowering<'_>, op: Binary) -> Lowered {
    let is_one = l.args.value(2).as_scalar().is_some_and(|alpha| alpha.to_f64() == 1.0);
    l.map(|p| {
        let ty = arithmetic(p)?;
        let (a, mut b) = (brought(p, 0, ty)?, brought(p, 1, ty)?);
        if !is_one {
            // The factor is an element of the result's type, too: a bool where that is bool.
            let dtype = p.lowering.result()?.meta.dtype;
            let alpha = p.lowering.args.value(2).as_scalar();
            let factor = if let (DType::Bool, Some(alpha)) = (dtype, alpha) {
                p.code().integer(i64::from(alpha.to_bool()), ty)
            } else {
                let factor = p.number(2, ty)?;
                narrowed(p, dtype, factor)
            };
            b = p.code().binary(Binary::Mul, b, factor);
        }
        Ok(p.code().binary(op, a, b))
    })
}

/// `a·b`.
pub fn mul(l: &mut Lowering<'_>) -> Lowered {
    two(l, Binary::Mul, arithmetic)
}

/// `a / b` of floats.
pub fn div(l: &mut Lowering<'_>) -> Lowered {
    two(l, Binary::Div, floating)
}

/// `a / b` of floats, rounded as asked.
pub fn div_mode(l: &mut Lowering<'_>) -> Lowered {
    let mode = l.args.opt_str(2)?;
    l.map(|p| {
        let ty = floating(p)?;
        if mode.is_none() {
            let (a, b) = (p.arg(0, ty)?, p.arg(1, ty)?);
            return Ok(p.code().binary(Binary::Div, a, b));
        }
        let (a, b) = (p.held(0, ty)?, p.held(1, ty)?);
        let quotient = p.code().binary(Binary::Div, a, b);
        match mode {
            None => Ok(quotient),
            Some("trunc") => {
                // PyTorch rounds the quotient of two tensors of half precision before it drops the fraction.
                let dtype = p.lowering.result()?.meta.dtype;
                let by_tensor = matches!(p.lowering.args.value(1), Value::Tensor(b) if !b.meta.numel().is_eq(1));
                let quotient = if by_tensor { narrowed(p, dtype, quotient) } else { quotient };
                Ok(p.code().unary(Unary::Trunc, quotient))
            }
            Some(other) => Err(OpError::unsupported(format!("rounding mode {other} in loops"))),
        }
    })
}

/// The larger; NaN if one is.
pub fn maximum(l: &mut Lowering<'_>) -> Lowered {
    two_brought(l, Binary::Max, arithmetic)
}

/// The smaller; NaN if one is.
pub fn minimum(l: &mut Lowering<'_>) -> Lowered {
    two_brought(l, Binary::Min, arithmetic)
}

/// The angle of a point.
pub fn atan2(l: &mut Lowering<'_>) -> Lowered {
    two_brought(l, Binary::Atan2, floating)
}

/// The remainder with the sign of the dividend.
pub fn fmod(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let ty = floating(p)?;
        let (a, b) = (held(p, 0, ty)?, held(p, 1, ty)?);
        Ok(p.code().binary(Binary::Fmod, a, b))
    })
}

fn two(l: &mut Lowering<'_>, op: Binary, ty: fn(&Point<'_, '_>) -> Result<Type, OpError>) -> Lowered {
    l.map(|p| {
        let ty = ty(p)?;
        let (a, b) = (p.arg(0, ty)?, p.arg(1, ty)?);
        Ok(p.code().binary(op, a, b))
    })
}

/// The same of operands as elements of the result's type.
fn two_brought(l: &mut Lowering<'_>, op: Binary, ty: fn(&Point<'_, '_>) -> Result<Type, OpError>) -> Lowered {
    l.map(|p| {
        let ty = ty(p)?;
        let (a, b) = (brought(p, 0, ty)?, brought(p, 1, ty)?);
        Ok(p.code().binary(op, a, b))
    })
}

/// The remainder with the sign of the divisor.
pub fn remainder(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let ty = floating(p)?;
        let (a, b) = (held(p, 0, ty)?, held(p, 1, ty)?);
        let code = p.code();
        let rest = code.binary(Binary::Fmod, a, b);
        let zero = code.number(0.0, ty);
        let some = code.compare(Compare::Ne, rest, zero);
        let rest_is_negative = code.compare(Compare::Lt, rest, zero);
        let divisor_is_negative = code.compare(Compare::Lt, b, zero);
        let apart = code.binary(Binary::Xor, rest_is_negative, divisor_is_negative);
        let apart = code.binary(Binary::And, some, apart);
        let moved = code.binary(Binary::Add, rest, b);
        Ok(code.select(apart, moved, rest))
    })
}

/// A power.
pub fn pow(l: &mut Lowering<'_>) -> Lowered {
    two_brought(l, Binary::Pow, floating)
}

/// A power with a number as exponent, which is an element of the result's type; small ones are products and roots.
pub fn pow_scalar(l: &mut Lowering<'_>) -> Lowered {
    let dtype = l.result()?.meta.dtype;
    let exponent = rounded_to(dtype, l.args.scalar(1)?.to_f64());
    l.map(|p| {
        let ty = p.ty()?;
        let x = p.arg(0, ty)?;
        let code = p.code();
        if exponent == 1.0 {
            return Ok(x);
        }
        if exponent == 2.0 {
            return Ok(code.binary(Binary::Mul, x, x));
        }
        // PyTorch multiplies elements of `bf16`, and computes `f16` in single precision.
        let square = |code: &mut Block| {
            let square = code.binary(Binary::Mul, x, x);
            if dtype == DType::BF16 { code.wrap(dtype, square) } else { square }
        };
        if exponent == 3.0 {
            let square = square(code);
            return Ok(code.binary(Binary::Mul, square, x));
        }
        if !ty.is_float() {
            return Err(OpError::unsupported("powers of integers in loops"));
        }
        Ok(match exponent {
            0.5 => code.unary(Unary::Sqrt, x),
            -0.5 => code.unary(Unary::Rsqrt, x),
            -1.0 | -2.0 => {
                let one = code.number(1.0, ty);
                let divisor = if exponent == -1.0 { x } else { square(code) };
                code.binary(Binary::Div, one, divisor)
            }
            _ => {
                let exponent = code.number(exponent, ty);
                code.binary(Binary::Pow, x, exponent)
            }
        })
    })
}

macro_rules! comparisons {
    ($($name:ident $op:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`, in the common type of the operands.")]
            pub fn $name(l: &mut Lowering<'_>) -> Lowered {
                l.map(|p| {
                    let (a, b) = compared(p)?;
                    Ok(p.code().compare(Compare::$op, a, b))
                })
            }
        )*
    };
}

comparisons! { eq Eq; ne Ne; lt Lt; le Le; gt Gt; ge Ge; }

macro_rules! logic {
    ($($logical:ident $bitwise:ident $op:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($logical), "` of bools.")]
            pub fn $logical(l: &mut Lowering<'_>) -> Lowered {
                two(l, Binary::$op, |_| Ok(Type::Bool))
            }

            #[doc = concat!("`", stringify!($bitwise), "` of integers or bools.")]
            pub fn $bitwise(l: &mut Lowering<'_>) -> Lowered {
                two(l, Binary::$op, |p| p.ty())
            }
        )*
    };
}

logic! { logical_and bitwise_and And; logical_or bitwise_or Or; logical_xor bitwise_xor Xor; }

/// Whether a value is zero.
pub fn logical_not(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let x = p.arg(0, Type::Bool)?;
        Ok(p.code().unary(Unary::Not, x))
    })
}

/// Every bit turned.
pub fn bitwise_not(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let ty = p.ty()?;
        let x = p.arg(0, ty)?;
        Ok(p.code().unary(Unary::Not, x))
    })
}

/// One of two by a condition.
pub fn where_self(l: &mut Lowering<'_>) -> Lowered {
    l.map(|p| {
        let ty = p.ty()?;
        let condition = p.arg(0, Type::Bool)?;
        let (a, b) = (p.arg(1, ty)?, p.arg(2, ty)?);
        Ok(p.code().select(condition, a, b))
    })
}

/// A bound of `clamp`. One that is an integer beyond the result's type becomes the nearest of that type.
fn bound(p: &mut Point<'_, '_>, index: usize, ty: Type) -> Result<Val, OpError> {
    let Some((least, most)) = p.lowering.result()?.meta.dtype.integers() else { return brought(p, index, ty) };
    match p.lowering.args.value(index) {
        Value::Int(number) => {
            if let Some(number) = number.as_int() {
                return p.literal(Scalar::Int(number.clamp(least, most)), ty);
            }
            let (number, least, most) =
                (p.own(index)?, p.code().integer(least, Type::I64), p.code().integer(most, Type::I64));
            let number = p.code().binary(Binary::Max, number, least);
            let number = p.code().binary(Binary::Min, number, most);
            Ok(p.code().cast(ty, number))
        }
        _ => brought(p, index, ty),
    }
}

/// Between two bounds.
pub fn clamp(l: &mut Lowering<'_>) -> Lowered {
    let given = [1, 2].map(|i| !matches!(l.args.value(i), Value::None));
    l.map(|p| {
        let ty = arithmetic(p)?;
        let mut x = p.arg(0, ty)?;
        for (index, op) in [(1, Binary::Max), (2, Binary::Min)] {
            if given[index - 1] {
                let bound: Val = bound(p, index, ty)?;
                // Of zeros with other signs, machines keep the second.
                x = p.code().binary(op, bound, x);
            }
        }
        Ok(x)
    })
}
