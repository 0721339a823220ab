//! Loops that kernels share.

pub mod carrier;
pub mod dense;
pub mod gemm;
pub mod indexing;
pub mod pointwise;

pub use carrier::Carrier;
pub use pointwise::Pointwise;
