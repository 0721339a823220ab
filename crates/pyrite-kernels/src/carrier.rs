//! The number types that kernels compute in.
//!
//! Elements are carried as one of four Rust types: `f32` (also for half precision and 8-bit floats), `f64`, `i64` (also
//! for bool and the smaller integers, which wrap when stored), and `Complex64`. Kernels that only move elements carry
//! unsigned 64-bit integers as `i64` of the same bits.

use num_complex::Complex64;
use pyrite_tensor::{DType, Element, Tensor};

/// A type that kernels compute in.
pub trait Carrier: Element {
    /// The elements of a tensor in order.
    fn load(tensor: &Tensor) -> Vec<Self>;
    /// Stores elements in order.
    fn store(tensor: &Tensor, values: &[Self]);
    /// Whether elements of a data type are carried by this type without loss.
    fn carries(dtype: DType) -> bool;
}

macro_rules! carrier {
    ($type:ty, $load:ident, $store:ident, $($dtype:ident)|+) => {
        impl Carrier for $type {
            fn load(tensor: &Tensor) -> Vec<Self> {
                tensor.$load()
            }
            fn store(tensor: &Tensor, values: &[Self]) {
                tensor.$store(values);
            }
            fn carries(dtype: DType) -> bool {
                matches!(dtype, $(DType::$dtype)|+)
            }
        }
    };
}

carrier!(f32, to_f32s, write_f32s, F32 | F16 | BF16 | F8E4M3 | F8E5M2 | F8E4M3Fnuz | F8E5M2Fnuz);
carrier!(f64, to_f64s, write_f64s, F64 | F32 | F16 | BF16 | F8E4M3 | F8E5M2 | F8E4M3Fnuz | F8E5M2Fnuz);
carrier!(i64, to_i64s, write_i64s, Bool | U8 | I8 | I16 | I32 | I64 | U16 | U32 | U64);
carrier!(Complex64, to_c128s, write_c128s, C64 | C128);
