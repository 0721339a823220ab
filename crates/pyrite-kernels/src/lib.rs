//! Numerics: what operators compute, as functions of slices and tensors.
//!
//! This crate knows nothing of operators, graphs or schemas; `pyrite-ops` puts these functions behind the records of
//! operators, and the native compiler calls some of them directly. Each module states its method, its accuracy and what it
//! assumes of its arguments. Sizes are checked by the caller, which knows the operator to blame.
//!
//! - [`gemm`], [`convolution`], [`attention`]: dense linear algebra, on all threads where that pays.
//! - [`linalg`]: factorizations and eigenvalues of small dense matrices.
//! - [`fourier`]: FFTs of any length.
//! - [`special`], [`complex`], [`vector_math`]: functions of numbers, and of slices of them in vector code.
//! - [`carrier`], [`lanes`], [`remap`], [`fill`], [`dense`], [`simd`]: the loops that these and other kernels share.

pub mod attention;
pub mod carrier;
pub mod complex;
pub mod convolution;
mod copy;
pub mod dense;
pub mod fill;
pub mod fourier;
pub mod gemm;
pub mod lanes;
pub mod linalg;
pub mod remap;
pub mod simd;
pub mod special;
pub mod vector_math;

pub use carrier::Carrier;
pub use fill::fill_with;
pub use remap::{accumulate, remap};
