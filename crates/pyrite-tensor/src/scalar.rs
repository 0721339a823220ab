//! A single number of any category, as operators take them (`alpha`, `fill_value`).

use std::fmt;

use num_complex::Complex64;

use crate::DType;

/// A number from the program text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
}

impl Scalar {
    /// The widest type of its category, which promotion treats as a Python number.
    pub fn dtype(self) -> DType {
        match self {
            Self::Bool(_) => DType::Bool,
            Self::Int(_) => DType::I64,
            Self::Float(_) => DType::F64,
            Self::Complex(_) => DType::C128,
        }
    }

    /// It as a real number; the real part of a complex one.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Bool(value) => f64::from(u8::from(value)),
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
            Self::Complex(value) => value.re,
        }
    }

    /// It as an integer, truncated toward zero.
    pub fn to_i64(self) -> i64 {
        match self {
            Self::Bool(value) => i64::from(value),
            Self::Int(value) => value,
            Self::Float(value) => value as i64,
            Self::Complex(value) => value.re as i64,
        }
    }

    /// It as a complex number.
    pub fn to_c128(self) -> Complex64 {
        match self {
            Self::Complex(value) => value,
            other => Complex64::new(other.to_f64(), 0.0),
        }
    }

    /// Whether it is not zero.
    pub fn to_bool(self) -> bool {
        match self {
            Self::Bool(value) => value,
            Self::Int(value) => value != 0,
            Self::Float(value) => value != 0.0,
            Self::Complex(value) => value.re != 0.0 || value.im != 0.0,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Complex(value) => write!(f, "complex({:?}, {:?})", value.re, value.im),
        }
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<Complex64> for Scalar {
    fn from(value: Complex64) -> Self {
        Self::Complex(value)
    }
}
