//! Metadata of pointwise operators: broadcast shape, promoted type, kept layout.

use pyrite_ir::{Args, Device, Meta, OpError, Type, Value, invalid};
use pyrite_tensor::dtype::{Rank, result_type};
use pyrite_tensor::element::{BF16, F16};
use pyrite_tensor::{DType, Scalar};

use crate::rules::{broadcast, pointwise_strides};

/// The operands of a pointwise call: its tensors, and numbers that stand in an operand's place (`self`, `other`,
/// `exponent`). Options such as `alpha` are no operands.
pub fn operands(args: &Args<'_, Meta>) -> Vec<Meta> {
    args.schema
        .params
        .iter()
        .zip(args.values)
        .filter_map(|(param, value)| match (param.ty.required(), value) {
            (Type::Tensor, Value::Tensor(meta)) => Some(meta.clone()),
            (Type::Scalar, number) if matches!(&*param.name, "self" | "other" | "exponent") => {
                let scalar = match number {
                    Value::Int(v) => Some(Scalar::Int(v.hint().unwrap_or(0))),
                    other => other.as_scalar(),
                };
                scalar.map(Meta::number)
            }
            _ => None,
        })
        .collect()
}

/// The common type of operands.
pub fn operand_dtype<'a>(operands: impl IntoIterator<Item = &'a Meta>) -> DType {
    let ranked = operands.into_iter().map(|m| {
        let rank = match (m.number, m.rank()) {
            (true, _) => Rank::Number,
            (_, 0) => Rank::Scalar,
            _ => Rank::Tensor,
        };
        (m.dtype, rank)
    });
    result_type(ranked).unwrap_or(DType::F32)
}

/// The result of a pointwise operator on these operands, of the given type.
pub fn same_as(operands: &[Meta], dtype: DType) -> Result<Meta, OpError> {
    let shapes: Vec<_> = operands.iter().map(|m| &*m.shape).collect();
    let shape = broadcast(&shapes)?;
    let real: Vec<&Meta> = operands.iter().filter(|m| !m.number).collect();
    let is_half = |m: &&Meta| matches!(m.dtype, DType::F16 | DType::BF16);
    if dtype.is_complex()
        && real.iter().any(is_half)
        && !real.iter().any(|m| m.dtype.is_complex() || m.dtype.size() > 2)
    {
        return Err(OpError::unsupported("complex numbers of half precision"));
    }
    let layout_of: Vec<&Meta> = operands.iter().collect();
    let stride = pointwise_strides(&layout_of, &shape);
    let device = real.iter().find(|m| m.rank() > 0).or(real.first()).map_or(Device::Cpu, |m| m.device.clone());
    Ok(Meta { device, ..Meta::strided(&shape, &stride, dtype) })
}

/// Result of the operands' common type.
pub fn to_same(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    Ok(same_as(&operands, operand_dtype(&operands))?.into())
}

/// Result of the operands' common type, with integers becoming the default float.
pub fn to_float(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    Ok(same_as(&operands, operand_dtype(&operands).to_inexact())?.into())
}

/// The same of real operands.
pub fn to_real_float(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    refuse_complex(args)?;
    to_float(args)
}

/// A bool per real element.
pub fn compare_real(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    refuse_complex(args)?;
    compare(args)
}

fn refuse_complex(args: &Args<'_, Meta>) -> Result<(), OpError> {
    let dtype = operand_dtype(&operands(args));
    if dtype.is_complex() {
        invalid!("{} is not defined for {dtype}", args.schema.name);
    }
    Ok(())
}

/// A bool per element.
pub fn compare(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(same_as(&operands(args), DType::Bool)?.into())
}

/// Result of the operands' common type, which is no bool: PyTorch has no arithmetic on bools here.
pub fn to_same_number(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    let dtype = operand_dtype(&operands);
    if dtype == DType::Bool {
        invalid!("{} is not defined for bools", args.schema.name);
    }
    Ok(same_as(&operands, dtype)?.into())
}

/// Result of the operands' common type, which is a float or complex: PyTorch has no kernel for integers.
pub fn to_same_inexact(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    let dtype = operand_dtype(&operands);
    if !dtype.is_inexact() {
        invalid!("{} is not defined for {dtype}", args.schema.name);
    }
    Ok(same_as(&operands, dtype)?.into())
}

/// Result of the operands' common type, which is a float.
pub fn to_same_float(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    let dtype = operand_dtype(&operands);
    if !dtype.is_float() {
        invalid!("{} is not defined for {dtype}", args.schema.name);
    }
    Ok(same_as(&operands, dtype)?.into())
}

/// Result of the operands' common type, with the real type in place of a complex one.
pub fn to_real(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    Ok(same_as(&operands, operand_dtype(&operands).to_real())?.into())
}

/// A number as an element of a type with half precision, as PyTorch rounds numbers beside such tensors; otherwise the number.
pub fn rounded_to(dtype: DType, number: f64) -> f64 {
    match dtype {
        DType::F16 => F16::from_f64(number).to_f64(),
        DType::BF16 => BF16::from_f64(number).to_f64(),
        _ => number,
    }
}
