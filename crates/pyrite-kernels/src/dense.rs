//! Dense slices of a carrier, borrowed where the tensor already is one.
//!
//! Kernels that address elements by number (pooling, scattering, convolution) read their operands with [`read`] and
//! fill their result with [`fill`], whatever type and layout these have.

use pyrite_tensor::Tensor;

use crate::Carrier;

/// Calls `f` with the elements in order.
pub fn read<T: Carrier, R>(tensor: &Tensor, f: impl FnOnce(&[T]) -> R) -> R {
    if tensor.dtype() == T::DTYPE
        && let Some(slice) = tensor.as_slice::<T>()
    {
        return f(&slice);
    }
    f(&T::load(tensor))
}

/// Calls `f` with room for the elements in order and stores what it wrote; the room holds zeros or garbage before.
/// The tensor must not share its storage with one that is being read.
pub fn fill<T: Carrier, R>(out: &Tensor, f: impl FnOnce(&mut [T]) -> R) -> R {
    if out.dtype() == T::DTYPE && out.layout().is_contiguous() {
        let (start, len) = (out.layout().offset as usize, out.numel());
        let mut written = out.storage().write::<T>();
        return f(if len == 0 { &mut [] } else { &mut written[start..start + len] });
    }
    let mut values = vec![T::from_i64(0); out.numel()];
    let result = f(&mut values);
    T::store(out, &values);
    result
}

/// Runs a body with the carrier of a data type bound to a name: `carried!(dtype, T => body)`. Half precision and
/// 8-bit floats are carried by `f32`, complex numbers by `Complex64`, integers and bools by `i64`.
#[macro_export]
macro_rules! carried {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            dtype if dtype.to_compute() == pyrite_tensor::DType::F32 => {
                type $T = f32;
                $body
            }
            pyrite_tensor::DType::F64 => {
                type $T = f64;
                $body
            }
            pyrite_tensor::DType::C64 | pyrite_tensor::DType::C128 => {
                type $T = pyrite_tensor::Complex64;
                $body
            }
            _ => {
                type $T = i64;
                $body
            }
        }
    };
}
