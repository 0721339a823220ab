//! Reductions: operators that make one number of many.
//!
//! Results are dense whatever the layout of the input. Sums of `f32` run over the tensor's own memory in `f64`; the
//! others copy lanes into a carrier type.

mod extreme;
mod moments;
mod norms;
mod sums;

use pyrite_ir::{Args, Meta, OpDef, OpError, Value, invalid};
use pyrite_tensor::DType;

use crate::rules::{reduced_shape, wrap_dim, wrap_dims};

/// The tables.
pub const SUMS: &[OpDef] = sums::OPS;
/// Maxima, minima and quantifier.
pub const EXTREMES: &[OpDef] = extreme::OPS;
/// Means and variances.
pub const MOMENTS: &[OpDef] = moments::OPS;
/// Norms and distances.
pub const NORMS: &[OpDef] = norms::OPS;

/// The dimensions to reduce: those listed, or all of them when the list is absent or empty.
fn listed<T>(args: &Args<'_, T>, index: usize, rank: usize) -> Result<Vec<usize>, OpError> {
    match args.opt_ints(index)? {
        Some(dims) if !dims.is_empty() => wrap_dims(&dims, rank),
        _ => Ok((0..rank).collect()),
    }
}

/// The dimension to reduce, or all of them when it is absent.
fn one_or_all<T>(args: &Args<'_, T>, index: usize, rank: usize) -> Result<Vec<usize>, OpError> {
    match args.opt_int(index)? {
        Some(dim) => Ok(vec![wrap_dim(dim, rank)?]),
        None => Ok((0..rank).collect()),
    }
}

/// A dense result for reduced dimensions (an empty list reduces nothing).
fn reduced(input: &Meta, dims: &[usize], keep: bool, dtype: DType) -> Meta {
    let shape = if dims.is_empty() { input.shape.clone() } else { reduced_shape(&input.shape, dims, keep) };
    input.fresh(&shape, dtype)
}

/// An error when a reduced dimension is empty, for operators that have no value for that.
fn expect_elements(what: &str, input: &Meta, dims: &[usize]) -> Result<(), OpError> {
    if dims.iter().any(|d| input.shape.get(*d).is_some_and(|size| size.is_eq(0))) {
        invalid!("{what} over an empty dimension of shape {:?} has no value", input.shape);
    }
    Ok(())
}

/// The element type of a sum: integers and bools widen to `i64` unless another type is asked for.
pub(super) fn sum_dtype(input: DType, asked: Option<DType>) -> DType {
    asked.unwrap_or(if input.is_integral() { DType::I64 } else { input })
}

/// Several results.
fn list(metas: Vec<Meta>) -> Value<Meta> {
    metas.into()
}
