//! Loops that kernels share.

pub mod carrier;
pub mod complex;
pub mod convolution;
pub mod dense;
pub mod fill;
pub mod fourier;
pub mod gemm;
pub mod indexing;
pub mod lanes;
pub mod pointwise;
pub mod remap;
pub mod simd;
pub mod vector_math;

pub use carrier::Carrier;
pub use fill::fill_with;
pub use pointwise::{Pointwise, common_dtype, operand};
pub use remap::{accumulate, remap};
