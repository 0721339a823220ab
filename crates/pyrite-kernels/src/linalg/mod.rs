//! Factorizations and eigenvalues of dense matrices, generic over real and complex numbers.

pub mod factor;
pub mod matrix;
pub mod spectral;
