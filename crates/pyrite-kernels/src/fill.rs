//! Filling tensors with one value.

use pyrite_tensor::walk::Walk;
use pyrite_tensor::{Element, Scalar, Tensor, dispatch};

/// Stores a number, converted to the element type, in every element.
pub fn fill_with(tensor: &Tensor, value: Scalar) {
    dispatch!(tensor.dtype(), T => {
        let element: T = match value {
            Scalar::Bool(_) | Scalar::Int(_) => T::from_i64(value.to_i64()),
            Scalar::Float(v) => <T as Element>::from_f64(v),
            Scalar::Complex(v) => T::from_c128(v),
        };
        let mut data = tensor.storage().write::<T>();
        let walk = Walk::new(tensor.shape(), &[tensor.stride()]);
        let step = walk.row_strides[0] as usize;
        walk.each_row(|at| {
            let start = (tensor.layout().offset + at[0]) as usize;
            if step == 1 {
                data[start..start + walk.row].fill(element);
            } else {
                for i in 0..walk.row {
                    data[start + i * step] = element;
                }
            }
        });
    });
}
