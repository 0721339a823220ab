//! Where a program's inputs come from: what `load_args(reader)` of a repro file says, as data.

use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use crate::{Device, SymDims};

/// The inputs of a program, in the order of its placeholders.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputSpec {
    /// The blocks of bytes that tensors are views of.
    pub storages: Vec<StorageSpec>,
    /// One entry per placeholder.
    pub args: Vec<InputArg>,
}

/// A block of bytes.
#[derive(Clone, Debug)]
pub struct StorageSpec {
    /// The file in `storages/` that holds the bytes; `None` when they stand in the text or are to be generated.
    pub name: Option<String>,
    /// The bytes themselves, as the elements of a dense tensor, where they stand in the text.
    pub data: Option<Tensor>,
    /// How many bytes there are.
    pub nbytes: SymInt,
    /// Where the program has them.
    pub device: Device,
    /// What to generate when there is no file.
    pub dtype_hint: DType,
}

impl PartialEq for StorageSpec {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |spec: &Self| spec.data.as_ref().map(|data| data.storage().to_bytes());
        let form = |spec: &Self| (spec.name.clone(), spec.nbytes.clone(), spec.device.clone(), spec.dtype_hint);
        form(self) == form(other) && bytes(self) == bytes(other)
    }
}

/// One input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputArg {
    /// The name that the file gives it, if any.
    pub name: Option<String>,
    /// What it is.
    pub value: InputValue,
}

/// What an input is.
#[derive(Clone, Debug, PartialEq)]
pub enum InputValue {
    /// A tensor.
    Tensor(TensorSpec),
    /// An integer; with its expression when it stands for a symbolic size.
    Int {
        /// The value it had.
        value: i64,
        /// The expression it is called by.
        expr: Option<String>,
    },
    /// A real number.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// Nothing: a constant that was filtered out, or something that cannot be stored.
    None,
}

/// A tensor as a view of a storage.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    /// The index of its storage.
    pub storage: usize,
    /// Size per dimension.
    pub shape: SymDims,
    /// Stride per dimension, in elements.
    pub stride: SymDims,
    /// The first element's position in the storage.
    pub offset: SymInt,
    /// Element type.
    pub dtype: DType,
    /// Whether gradients are wanted for it.
    pub requires_grad: bool,
    /// Whether it is a leaf of the autograd graph.
    pub is_leaf: bool,
}
