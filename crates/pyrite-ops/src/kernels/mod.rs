//! Loops that kernels share.

pub mod carrier;
pub mod gemm;
pub mod pointwise;

pub use carrier::Carrier;
pub use pointwise::Pointwise;
