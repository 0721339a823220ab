//! Arguments that come again, as the parameters of a model do in every call.
//!
//! Taking a torch tensor in costs a handle of torch's that holds its storage, and a storage of ours over it ([`Inputs`]). A
//! call that is over before anybody else can run Python does not need the handle: its caller holds the tensors, and nobody
//! can take their memory from them while the interpreter is held. What was made for the last call then serves again where
//! torch says of a tensor just what it said of the last one: class, dispatch keys, element type, sizes, strides, place and
//! length of the memory. That is asked in every call and of every argument; whatever is different is made anew.
//!
//! Invariants:
//! - Nothing here holds memory of torch's: between calls a remembered tensor may lie over memory that is gone. It is read only
//!   in a call that has just found a live torch tensor there.
//! - From [`Remembered::take`] to the last read of what it took, the interpreter is held, and no Python runs.
//!
//! [`Inputs`]: super::Inputs

#![expect(unsafe_code, reason = "torch's tensors are raw memory")]

use std::ptr::NonNull;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyrite_ir::Value;
use pyrite_tensor::{Layout, Storage, Tensor};

use super::inputs::{ALIGNED, region};
use super::shim::{Described, Shim, dtype_of};

/// See the module's text.
#[derive(Default)]
pub struct Remembered {
    arguments: Vec<Argument>,
    /// Those that the last call had otherwise than the one before.
    changed: Vec<usize>,
}

/// What torch said of an argument, and the tensor that was made of it.
struct Argument {
    keys: u64,
    dtype: i32,
    data: usize,
    storage_bytes: i64,
    tensor: Tensor,
}

impl Remembered {
    /// Takes the arguments of a call; `None` where one is no plain tensor on the CPU with aligned memory. What is different
    /// from the last call is in [`Self::changed`].
    ///
    /// # Safety
    /// The tensors are not read after the interpreter has been let go, or Python has run: their memory is the arguments'.
    pub unsafe fn take(&mut self, shim: &Shim, arguments: &Bound<'_, PyTuple>) -> Option<()> {
        self.changed.clear();
        for (index, object) in arguments.iter_borrowed().enumerate() {
            let (keys, described) = shim.describe_with_keys(&object)?;
            match self.arguments.get_mut(index) {
                Some(known) if known.is(keys, &described) => continue,
                Some(known) => *known = Argument::new(shim, keys, &described)?,
                None => self.arguments.push(Argument::new(shim, keys, &described)?),
            }
            self.changed.push(index);
        }
        Some(())
    }

    /// The arguments that are different from those of the last call.
    pub fn changed(&self) -> &[usize] {
        &self.changed
    }

    /// The arguments as the inputs of a program that only reads them.
    pub fn inputs(&self) -> Vec<Value<Tensor>> {
        self.arguments.iter().map(|argument| Value::Tensor(argument.tensor.clone())).collect()
    }

    /// What the argument of this number was taken as in the last call.
    pub fn tensor(&self, index: usize) -> Option<&Tensor> {
        self.arguments.get(index).map(|argument| &argument.tensor)
    }

    /// The argument in whose memory a tensor lies.
    pub fn position(&self, tensor: &Tensor) -> Option<usize> {
        self.arguments.iter().position(|argument| argument.tensor.storage().same(tensor.storage()))
    }
}

impl Argument {
    fn new(shim: &Shim, keys: u64, described: &Described<'_>) -> Option<Self> {
        if !shim.is_read_as_it_lies(keys) {
            return None;
        }
        let dtype = dtype_of(described.dtype)?;
        let storage = match region(described, dtype) {
            None => Storage::zeroed(0),
            Some((begin, end)) => {
                let start = NonNull::new(begin as *mut u8).filter(|_| begin.is_multiple_of(ALIGNED))?;
                // SAFETY: torch says that so many bytes begin there. They are read only in calls that have just been told so
                // of a tensor that their caller holds.
                unsafe { Storage::external(start, end - begin, Box::new(())) }
            }
        };
        let layout = Layout::new(described.sizes, described.strides, described.offset);
        let tensor = Tensor::new(storage, dtype, layout).ok()?;
        let (data, storage_bytes) = (described.data as usize, described.storage_bytes);
        Some(Self { keys, dtype: described.dtype, data, storage_bytes, tensor })
    }

    fn is(&self, keys: u64, described: &Described<'_>) -> bool {
        self.keys == keys
            && self.data == described.data as usize
            && self.dtype == described.dtype
            && self.storage_bytes == described.storage_bytes
            && self.tensor.layout().offset == described.offset
            && *self.tensor.shape() == *described.sizes
            && *self.tensor.stride() == *described.strides
    }
}
