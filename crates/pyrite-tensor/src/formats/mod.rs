//! File formats: `torch.save` archives, `torch.export` archives, safetensors, npy and npz.
//!
//! Readers take untrusted bytes. They execute nothing, believe no declared size before the bytes are there, and turn
//! every defect into a [`FormatError`] that says what was wrong and where; the caller adds the file's path. Writers
//! give the same bytes for the same tensors.

mod archive;
pub mod exported;
pub mod npy;
pub mod npz;
mod pickle;
pub mod safetensors;
pub mod torch_zip;

use sha2::{Digest, Sha256};

use crate::{DType, Layout, Storage, Tensor, TensorError, dispatch};

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The system could not read or write.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is not of the format, or is cut short or damaged as a whole.
    #[error("not a readable {format} file: {reason}")]
    Malformed {
        /// The format that was expected.
        format: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// One entry of an archive, or one tensor of a file, is damaged, unsafe or of an unknown kind.
    #[error("entry `{entry}`: {reason}")]
    Entry {
        /// Its name.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The pickle of a `torch.save` file does something that tensors do not need.
    #[error("data.pkl, byte {offset}: {reason}")]
    Pickle {
        /// Where in the pickle.
        offset: usize,
        /// What is wrong.
        reason: String,
    },
    /// The pickle of a `torch.save` file names something that is not part of a tensor.
    #[error(
        "data.pkl, byte {offset}: refused the global `{global}`: only tensors, parameters, storages, dtypes and plain \
         containers are read, and nothing is ever executed"
    )]
    Global {
        /// Where in the pickle.
        offset: usize,
        /// Its module and name.
        global: String,
    },
    /// The described tensor cannot exist.
    #[error("entry `{entry}`: {source}")]
    Tensor {
        /// The entry it comes from.
        entry: String,
        /// Why.
        source: TensorError,
    },
    /// The format has no such element type.
    #[error("entry `{entry}`: {format} cannot hold {dtype}{hint}")]
    DType {
        /// The entry that would hold it.
        entry: String,
        /// The format.
        format: &'static str,
        /// The element type.
        dtype: DType,
        /// What to do instead, with its punctuation; empty when nothing can be done.
        hint: &'static str,
    },
}

impl FormatError {
    fn entry(entry: &str, reason: impl Into<String>) -> Self {
        Self::Entry { entry: entry.to_string(), reason: reason.into() }
    }

    fn malformed(format: &'static str, reason: impl Into<String>) -> Self {
        Self::Malformed { format, reason: reason.into() }
    }
}

/// The name under which Pyrite stores a storage: the SHA-256 of its bytes in hexadecimal.
pub fn storage_hash(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of the elements in order, last dimension fastest.
fn dense_bytes(tensor: &Tensor) -> Vec<u8> {
    dispatch!(tensor.dtype(), T => bytemuck::cast_slice(&tensor.to_vec::<T>()).to_vec())
}

/// A tensor over a copy of these bytes.
fn over_bytes(entry: &str, bytes: &[u8], dtype: DType, layout: Layout) -> Result<Tensor, FormatError> {
    Tensor::new(Storage::from_slice(bytes), dtype, layout)
        .map_err(|source| FormatError::Tensor { entry: entry.to_string(), source })
}

/// The bytes of a dense tensor; `None` for a negative size or one that does not fit.
fn dense_size(shape: &[i64], dtype: DType) -> Option<u64> {
    let sizes = shape.iter().map(|size| u64::try_from(*size).ok());
    // An overflow counts also where another dimension is empty: no writer makes such a shape.
    sizes.into_iter().try_fold(dtype.size() as u64, |bytes, size| bytes.checked_mul(size?.max(1)))?;
    Some(shape.iter().fold(dtype.size() as u64, |bytes, size| bytes * *size as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha256_in_hexadecimal() {
        assert_eq!(storage_hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn sizes_that_overflow_have_no_dense_size() {
        assert_eq!(dense_size(&[2, 3], DType::F32), Some(24));
        assert_eq!(dense_size(&[0, 3], DType::F32), Some(0));
        assert_eq!(dense_size(&[i64::MAX, i64::MAX], DType::F32), None);
        assert_eq!(dense_size(&[i64::MAX, i64::MAX, 0], DType::F32), None);
        assert_eq!(dense_size(&[-1], DType::F32), None);
    }
}
