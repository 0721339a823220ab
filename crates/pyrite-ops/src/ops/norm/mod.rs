//! Normalisation: of rows (layer and RMS norm), of groups of channels, of channels over a batch.
//!
//! Statistics are summed in `f64`; elements are carried in `f32` (half and single precision) or `f64`. The type of
//! saved statistics is that of the parameters where there are any, else that of the input.

mod batch;
mod composite;
mod group;
mod layer;

use pyrite_ir::{Args, Meta, OpDef, OpError, Value, invalid};
use pyrite_tensor::{DType, Tensor};

/// Layer and RMS norm.
pub const LAYER: &[OpDef] = layer::OPS;
/// Group norm.
pub const GROUP: &[OpDef] = group::OPS;
/// Batch norm.
pub const BATCH: &[OpDef] = batch::OPS;
/// The functions that programs call.
pub const COMPOSITE: &[OpDef] = composite::OPS;

/// The type of saved statistics: that of the first parameter there is, else that of the input.
fn statistic_dtype(a: &Args<'_, Meta>, params: &[usize]) -> Result<DType, OpError> {
    for index in params {
        if let Some(param) = a.opt_tensor(*index)? {
            return Ok(param.dtype);
        }
    }
    Ok(a.tensor(0)?.dtype)
}

fn expect_float(what: &str, input: &Meta) -> Result<(), OpError> {
    if !input.dtype.is_float() {
        invalid!("{what} is defined for float types, not for {}", input.dtype);
    }
    Ok(())
}

/// An error unless all parameters have the input's type, or all `f32` where the input has half precision.
fn expect_parameters(what: &str, input: &Meta, params: &[Option<&Meta>]) -> Result<(), OpError> {
    let half = matches!(input.dtype, DType::F16 | DType::BF16);
    let mut given = params.iter().flatten().map(|param| param.dtype);
    let Some(first) = given.next() else { return Ok(()) };
    if (first != input.dtype && !(half && first == DType::F32)) || given.any(|other| other != first) {
        invalid!("{what} of {} needs parameters of that type, or all of f32 for half precision", input.dtype);
    }
    Ok(())
}

/// The elements of an optional parameter, or `len` times a default.
fn parameter(param: Option<&Tensor>, len: usize, default: f64) -> Vec<f64> {
    param.map_or_else(|| vec![default; len], Tensor::to_f64s)
}

/// The flags that say which gradients are wanted.
fn mask<T, const N: usize>(args: &Args<'_, T>, index: usize) -> Result<[bool; N], OpError> {
    let flags: Vec<bool> = match args.value(index) {
        Value::List(items) => items.iter().map(|v| v.as_scalar().is_some_and(pyrite_tensor::Scalar::to_bool)).collect(),
        _ => Vec::new(),
    };
    match flags.try_into() {
        Ok(flags) => Ok(flags),
        Err(_) => invalid!("{} wants {N} flags for its gradients", args.schema.name),
    }
}

/// A result that is there only when it is wanted.
fn wanted<T>(want: bool, value: impl FnOnce() -> T) -> Value<T> {
    if want { Value::Tensor(value()) } else { Value::None }
}
