//! Tensors without operators.
//!
//! A [`Tensor`] is a strided view of a [`Storage`]; storages are shared, so aliasing is visible: two tensors alias
//! when [`Storage::same`] says so. The crate knows data types and their promotion, layouts (contiguous,
//! channels-last, overlapping), conversion between types, random generators and file formats. What is computed with
//! tensors lives in `pyrite-ops`.
//!
//! Invariants:
//! - Every element that a tensor can address lies inside its storage; constructors check it.
//! - The bytes of a storage are reached only through its lock, so safe code can share a storage between tensors.
//! - Strides and offsets count elements, never bytes; strides are not negative.

pub mod dtype;
pub mod element;
pub mod float8;
pub mod formats;
pub mod layout;
pub mod random;
pub mod scalar;
pub mod storage;
pub mod tensor;
pub mod walk;

pub use dtype::{Category, DType};
pub use element::{Bool8, Element};
pub use layout::{Dims, Layout, MemoryFormat};
pub use num_complex::{Complex32, Complex64};
pub use scalar::Scalar;
pub use storage::{Held, Owner, Storage, Version};
pub use tensor::{Tensor, TensorError};
