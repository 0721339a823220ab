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
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyWeakrefReference};
use pyrite_ir::Value;
use pyrite_tensor::{Layout, Storage, Tensor};
use rustc_hash::FxHashMap;

use super::inputs::{ALIGNED, region};
use super::shim::{Described, Shim, dtype_of};

/// See the module's text.
#[derive(Default)]
pub struct Remembered {
    arguments: Vec<Argument>,
    /// Those that the last call had otherwise than the one before.
    changed: Vec<usize>,
    /// The argument of each storage, by its identity.
    positions: FxHashMap<usize, usize>,
    /// Weak references to the arguments of the last call that was seen.
    references: Arc<Vec<Py<PyWeakrefReference>>>,
    /// Dispatch keys of tensors whose writes torch counts: those of a tensor made in inference mode are others.
    counted: Vec<u64>,
}

/// The arguments of a call, as long as somebody else has them, and how often each had been written.
#[pyclass(module = "pyrite._native", frozen)]
pub struct Seen {
    references: Arc<Vec<Py<PyWeakrefReference>>>,
    versions: Vec<i64>,
}

#[pymethods]
impl Seen {
    /// The arguments; `None` where one is gone or was written since.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let mut found = Vec::with_capacity(self.versions.len());
        for (reference, version) in self.references.iter().zip(&self.versions) {
            let Some(object) = reference.bind(py).upgrade() else { return Ok(None) };
            if object.getattr(pyo3::intern!(py, "_version"))?.extract::<i64>()? != *version {
                return Ok(None);
            }
            found.push(object);
        }
        Ok(Some(found))
    }
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
            if self.arguments.get(index).is_some_and(|known| known.is(keys, &described)) {
                continue;
            }
            let argument = Argument::new(shim, keys, &described)?;
            self.positions.insert(argument.tensor.storage().id(), index);
            match self.arguments.get_mut(index) {
                Some(known) => {
                    self.positions.remove(&known.tensor.storage().id());
                    *known = argument;
                }
                None => self.arguments.push(argument),
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

    /// The arguments of the call that was just taken, for whoever wants to call again later; `None` where torch does not count
    /// how often one of them is written.
    pub fn seen(&mut self, shim: &Shim, arguments: &Bound<'_, PyTuple>) -> PyResult<Option<Seen>> {
        let py = arguments.py();
        let mut versions = Vec::with_capacity(self.arguments.len());
        for (argument, object) in self.arguments.iter().zip(arguments.iter_borrowed()) {
            if !self.counted.contains(&argument.keys) {
                if object.call_method0("is_inference")?.is_truthy()? {
                    return Ok(None);
                }
                self.counted.push(argument.keys);
            }
            // SAFETY: tensors with these keys have been seen to be counted.
            let Some(version) = (unsafe { shim.version(&object) }) else { return Ok(None) };
            versions.push(version);
        }
        let refers = |(reference, object): (&Py<PyWeakrefReference>, Borrowed<'_, '_, PyAny>)| {
            reference.bind(py).upgrade().is_some_and(|known| known.is(object))
        };
        let same = self.references.len() == arguments.len()
            && self.references.iter().zip(arguments.iter_borrowed()).all(refers);
        if !same {
            let made = arguments.iter_borrowed().map(|object| PyWeakrefReference::new(&object).map(Bound::unbind));
            self.references = Arc::new(made.collect::<PyResult<_>>()?);
        }
        Ok(Some(Seen { references: self.references.clone(), versions }))
    }

    /// The argument in whose memory a tensor lies.
    pub fn position(&self, tensor: &Tensor) -> Option<usize> {
        self.positions.get(&tensor.storage().id()).copied()
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
