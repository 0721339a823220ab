//! Inputs made up where none were saved.

use crate::{Layout, Storage, Tensor, TensorError};

use super::TorchGenerator;

/// What PyTorch's `rand_strided` gives: a buffer as large as the strides need, filled with normal numbers for a float
/// type and with zeros for all others, seen with the given shape and strides.
pub fn rand_strided(
    shape: &[i64],
    stride: &[i64],
    dtype: crate::DType,
    generator: &mut TorchGenerator,
) -> Result<Tensor, TensorError> {
    // The allocation is checked by making the tensor; the buffer covers the gaps between elements, too.
    let tensor = Tensor::empty_strided(shape, stride, dtype)?;
    let needed = tensor.storage().nbytes() / dtype.size();
    let buffer = Tensor::new(Storage::zeroed(tensor.storage().nbytes()), dtype, Layout::contiguous(&[needed as i64]))?;
    if dtype.is_float8() {
        // PyTorch draws them in half precision.
        let half = Tensor::empty(&[needed as i64], crate::DType::F16)?;
        generator.normal(&half, 0.0, 1.0).expect("a float type has normal numbers");
        buffer.write_from(&half);
    } else if dtype.is_float() {
        generator.normal(&buffer, 0.0, 1.0).expect("a float type has normal numbers");
    }
    buffer.view(dtype, Layout::new(shape, stride, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn the_gaps_between_elements_are_drawn_too() {
        let tensor = rand_strided(&[2, 2], &[8, 2], DType::F32, &mut TorchGenerator::new(3)).unwrap();
        let flat = Tensor::empty(&[11], DType::F32).unwrap();
        TorchGenerator::new(3).normal(&flat, 0.0, 1.0).unwrap();
        let flat = flat.to_vec::<f32>();
        assert_eq!(tensor.to_vec::<f32>(), [flat[0], flat[2], flat[8], flat[10]]);
        assert_eq!(tensor.stride(), [8, 2]);
    }

    #[test]
    fn what_is_not_a_float_is_zero() {
        let mut generator = TorchGenerator::new(0);
        for dtype in [DType::I64, DType::Bool, DType::C64] {
            let tensor = rand_strided(&[3], &[1], dtype, &mut generator).unwrap();
            assert!(tensor.to_bools().iter().all(|value| !value));
        }
        assert!(rand_strided(&[0, 3], &[3, 1], DType::F32, &mut generator).unwrap().to_f64s().is_empty());
        assert!(rand_strided(&[2], &[i64::MAX], DType::F32, &mut generator).is_err());
    }
}
