//! Special functions of real numbers, in double precision.

pub mod bessel;
pub mod gamma;
pub mod normal;
pub mod polynomial;
