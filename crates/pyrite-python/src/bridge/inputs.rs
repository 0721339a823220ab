//! torch's tensors and Python's numbers as the inputs of a program.

use std::ptr::NonNull;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyTuple};
use pyrite_ir::Value;
use pyrite_tensor::{Complex64, Layout, Storage, Tensor};
use rustc_hash::FxHashMap;

use super::shim::{Described, Refused, Shim, dtype_of};

/// An address that every element type is aligned at.
const ALIGNED: usize = 8;

/// Inputs that are being taken in: storages are found again by their address.
pub struct Inputs {
    shim: &'static Shim,
    storages: FxHashMap<usize, Storage>,
}

impl Inputs {
    /// None yet.
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(Self { shim: Shim::get(py)?, storages: FxHashMap::default() })
    }

    /// All arguments of a call.
    pub fn take(arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<Value<Tensor>>> {
        let mut inputs = Self::new(arguments.py())?;
        inputs.storages.reserve(arguments.len());
        arguments.iter_borrowed().enumerate().map(|(index, object)| inputs.value(&object, index)).collect()
    }

    /// One argument; its position is for messages.
    pub fn value(&mut self, object: &Bound<'_, PyAny>, index: usize) -> PyResult<Value<Tensor>> {
        match self.shim.describe(object) {
            Ok(described) => self.tensor(object, &described, index).map(Value::Tensor),
            Err(Refused::Class) => plain(object, index),
            Err(Refused::Device) => Err(refused(object, index, "it is not on the CPU")),
            Err(Refused::Layout) => Err(refused(object, index, "it is not strided")),
            Err(Refused::Memory) => Err(refused(object, index, "it has no memory of its own")),
        }
    }

    fn tensor(&mut self, object: &Bound<'_, PyAny>, described: &Described<'_>, index: usize) -> PyResult<Tensor> {
        let Some(dtype) = dtype_of(described.dtype) else {
            return Err(refused(object, index, "Pyrite has no such element type"));
        };
        if self.shim.is_marked(object, dtype) {
            return Err(refused(
                object,
                index,
                "it is negated or conjugated when it is read; call resolve_neg, resolve_conj",
            ));
        }
        let start = (described.data as usize).wrapping_sub(described.offset as usize * dtype.size());
        let storage = if described.data.is_null() || described.storage_bytes == 0 {
            Storage::zeroed(0)
        } else if let Some(known) = self.storages.get(&start) {
            known.clone()
        } else {
            if !start.is_multiple_of(ALIGNED) {
                return Err(refused(object, index, "its memory is not aligned; clone it"));
            }
            let start = NonNull::new(start as *mut u8).ok_or_else(|| refused(object, index, "it has no memory"))?;
            let owner: Py<PyAny> = object.clone().unbind();
            // SAFETY: torch says that so many bytes begin there, and the tensor is kept alive. The program runs
            // while its caller waits; who writes from another thread meanwhile races with torch's kernels too.
            let storage = unsafe { Storage::foreign(start, described.storage_bytes as usize, Box::new(owner)) };
            self.storages.insert(start.as_ptr() as usize, storage.clone());
            storage
        };
        let layout = Layout::new(described.sizes, described.strides, described.offset);
        Tensor::new(storage, dtype, layout).map_err(|error| refused(object, index, &error.to_string()))
    }
}

fn refused(object: &Bound<'_, PyAny>, index: usize, reason: &str) -> PyErr {
    let class = object.get_type();
    let name = class.name().map_or_else(|_| "an object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("argument {index} ({name}) cannot be an input of a compiled program: {reason}"))
}

/// A number, a text or nothing. Whatever Python can see as an integer, such as a symbolic one, is one.
fn plain(object: &Bound<'_, PyAny>, index: usize) -> PyResult<Value<Tensor>> {
    if object.is_none() {
        Ok(Value::None)
    } else if object.is_exact_instance_of::<PyBool>() {
        Ok(Value::Bool(object.extract()?))
    } else if object.is_instance_of::<PyInt>() {
        Ok(Value::from(object.extract::<i64>()?))
    } else if object.is_instance_of::<PyFloat>() {
        Ok(Value::Float(object.extract()?))
    } else if let Ok(number) = object.cast::<PyComplex>() {
        Ok(Value::Complex(Complex64::new(number.getattr("real")?.extract()?, number.getattr("imag")?.extract()?)))
    } else if let Ok(text) = object.cast::<PyString>() {
        Ok(Value::from(text.to_str()?))
    } else if object.hasattr("untyped_storage")? {
        Err(refused(object, index, "it is of a subclass of torch.Tensor"))
    } else {
        Err(refused(object, index, "it is neither a tensor nor a number"))
    }
}
