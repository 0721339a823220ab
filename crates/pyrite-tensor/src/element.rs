//! The Rust types of elements and their conversion through the three exact carriers: `f64`, `i64`, `Complex64`.
//!
//! Conversions follow PyTorch on x86: floats become integers by truncation, and what does not fit becomes the
//! smallest value of the register type that the CPU converts in; half precision is reached through `f32`; integers wrap; complex numbers drop the imaginary
//! part; anything non-zero is true.

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::DType;
pub use crate::float8::{F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz};

/// A bool of one byte; any non-zero byte counts as true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool8(pub u8);

impl Bool8 {
    /// The bool.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool8 {
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

/// The type of an element in memory.
pub trait Element: Pod + PartialEq + Send + Sync {
    /// The data type it stands for.
    const DTYPE: DType;
    /// It as a real number.
    fn to_f64(self) -> f64;
    /// From a real number.
    fn from_f64(value: f64) -> Self;
    /// It as an integer.
    fn to_i64(self) -> i64;
    /// From an integer.
    fn from_i64(value: i64) -> Self;
    /// It as a complex number.
    fn to_c128(self) -> Complex64 {
        Complex64::new(self.to_f64(), 0.0)
    }
    /// From a complex number.
    fn from_c128(value: Complex64) -> Self {
        Self::from_f64(value.re)
    }
}

/// Truncation into a 64-bit register.
fn truncate(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) { value as i64 } else { i64::MIN }
}

/// Truncation into an unsigned 64-bit register; negative numbers wrap.
fn truncate_unsigned(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if value < HALF { truncate(value) as u64 } else { truncate(value - HALF) as u64 ^ (1 << 63) }
}

/// Truncation into a 32-bit register.
fn truncate32(value: f64) -> i32 {
    if value > -2_147_483_649.0 && value < 2_147_483_648.0 { value as i32 } else { i32::MIN }
}

macro_rules! float {
    ($type:ty, $dtype:ident, $carrier:ty, $to:expr, $from:expr) => {
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            fn to_f64(self) -> f64 {
                $to(self)
            }
            fn from_f64(value: f64) -> Self {
                $from(value as $carrier)
            }
            fn to_i64(self) -> i64 {
                truncate(self.to_f64())
            }
            fn from_i64(value: i64) -> Self {
                $from(value as $carrier)
            }
        }
    };
}

float!(f64, F64, f64, |v| v, |v| v);
float!(f32, F32, f32, f64::from, |v| v);
float!(f16, F16, f32, f16::to_f64, f16::from_f32);
float!(bf16, BF16, f32, bf16::to_f64, bf16::from_f32);
float!(F8E4M3, F8E4M3, f32, |v: F8E4M3| f64::from(v.to_f32()), F8E4M3::from_f32);
float!(F8E5M2, F8E5M2, f32, |v: F8E5M2| f64::from(v.to_f32()), F8E5M2::from_f32);
float!(F8E4M3Fnuz, F8E4M3Fnuz, f32, |v: F8E4M3Fnuz| f64::from(v.to_f32()), F8E4M3Fnuz::from_f32);
float!(F8E5M2Fnuz, F8E5M2Fnuz, f32, |v: F8E5M2Fnuz| f64::from(v.to_f32()), F8E5M2Fnuz::from_f32);

macro_rules! integer {
    ($type:ty, $dtype:ident, $from:expr) => {
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn from_f64(value: f64) -> Self {
                $from(value) as Self
            }
            fn to_i64(self) -> i64 {
                self as i64
            }
            fn from_i64(value: i64) -> Self {
                value as Self
            }
        }
    };
}

integer!(i64, I64, truncate);
integer!(i32, I32, truncate32);
integer!(i16, I16, truncate32);
integer!(i8, I8, truncate32);
integer!(u8, U8, truncate);
integer!(u16, U16, truncate32);
integer!(u32, U32, truncate);
integer!(u64, U64, truncate_unsigned);

impl Element for Bool8 {
    const DTYPE: DType = DType::Bool;
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
    fn from_f64(value: f64) -> Self {
        (value != 0.0).into()
    }
    fn to_i64(self) -> i64 {
        i64::from(self.get())
    }
    fn from_i64(value: i64) -> Self {
        (value != 0).into()
    }
    fn from_c128(value: Complex64) -> Self {
        (value.re != 0.0 || value.im != 0.0).into()
    }
}

macro_rules! complex {
    ($type:ty, $dtype:ident, $real:ty) => {
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            fn to_f64(self) -> f64 {
                self.re.into()
            }
            fn from_f64(value: f64) -> Self {
                Self::new(value as $real, 0.0)
            }
            fn to_i64(self) -> i64 {
                truncate(self.re.into())
            }
            fn from_i64(value: i64) -> Self {
                Self::new(value as $real, 0.0)
            }
            fn to_c128(self) -> Complex64 {
                Complex64::new(self.re.into(), self.im.into())
            }
            fn from_c128(value: Complex64) -> Self {
                Self::new(value.re as $real, value.im as $real)
            }
        }
    };
}

complex!(Complex32, C64, f32);
complex!(Complex64, C128, f64);

/// Runs a body with the element type of a data type bound to a name: `dispatch!(dtype, T => body)`.
///
/// In the body, write `<T as Element>::from_f64`, not `T::from_f64`: the half-precision types have a function of that
/// name of their own, which Rust prefers and which rounds otherwise.
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Bool => {
                type $T = $crate::Bool8;
                $body
            }
            $crate::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::F16 => {
                type $T = $crate::element::F16;
                $body
            }
            $crate::DType::BF16 => {
                type $T = $crate::element::BF16;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::C64 => {
                type $T = $crate::Complex32;
                $body
            }
            $crate::DType::C128 => {
                type $T = $crate::Complex64;
                $body
            }
            $crate::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::DType::F8E4M3 => {
                type $T = $crate::element::F8E4M3;
                $body
            }
            $crate::DType::F8E5M2 => {
                type $T = $crate::element::F8E5M2;
                $body
            }
            $crate::DType::F8E4M3Fnuz => {
                type $T = $crate::element::F8E4M3Fnuz;
                $body
            }
            $crate::DType::F8E5M2Fnuz => {
                type $T = $crate::element::F8E5M2Fnuz;
                $body
            }
        }
    };
}

/// The element type of [`DType::F16`].
pub type F16 = f16;
/// The element type of [`DType::BF16`].
pub type BF16 = bf16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_that_do_not_fit_become_the_smallest_integer() {
        assert_eq!(i64::from_f64(f64::NAN), i64::MIN);
        assert_eq!(i32::from_f64(1e20), i32::MIN);
        assert_eq!(u8::from_f64(-1.0), 255);
        assert_eq!(i8::from_f64(200.0), -56);
    }

    #[test]
    fn large_unsigned_integers_survive_the_way_through_doubles_and_integers() {
        assert_eq!(u64::from_f64(18_446_744_073_709_549_568.0), 18_446_744_073_709_549_568);
        assert_eq!(u64::from_f64(-1.0), u64::MAX);
        assert_eq!(u64::from_i64(u64::MAX.to_i64()), u64::MAX);
        assert_eq!(u64::MAX.to_f64(), 18_446_744_073_709_551_616.0);
        assert_eq!(u32::from_f64(4_294_967_295.0), u32::MAX);
    }

    #[test]
    fn an_integer_is_rounded_once_on_its_way_to_single_precision() {
        let between = (1 << 60) + (1 << 36) + 1;
        assert_eq!(f32::from_i64(between), between as f32);
    }

    #[test]
    fn a_complex_number_is_true_when_any_part_is_not_zero() {
        assert!(Bool8::from_c128(Complex64::new(0.0, 1.0)).get());
        assert_eq!(f32::from_c128(Complex64::new(2.0, 1.0)), 2.0);
    }
}
