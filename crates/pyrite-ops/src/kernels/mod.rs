//! Loops of kernels that look at the call of an operator; numerics that do not are in `pyrite-kernels`.

pub mod indexing;
pub mod pointwise;

pub use pointwise::{Pointwise, common_dtype, operand};
