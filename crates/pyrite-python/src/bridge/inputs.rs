//! torch's tensors and Python's numbers as the inputs of a program.
//!
//! A Pyrite storage over torch's memory holds torch's storage, not the tensor object: `tensor.data = other` and `set_`
//! give the object another storage, and what was taken in before lives on. Torch's storage itself may be given other
//! memory, as by `resize_`; whoever comes back to a storage later asks for what it is then ([`Storage::current`]).
//!
//! Memory that no element type of its own is aligned in is copied. Programs that write are given storages that are one
//! where memory is one, however many torch storages lie over it ([`Overlap::Joined`]).

#![expect(unsafe_code, reason = "torch's tensors are raw memory")]

use std::ptr::NonNull;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyString, PyTuple};
use pyrite_ir::Value;
use pyrite_tensor::{Complex64, DType, Layout, Owner, Storage, Tensor};
use rustc_hash::FxHashMap;

use super::shim::{Described, Refused, Shim, TorchStorage, dtype_of};

/// An address that every element type is aligned at.
pub(super) const ALIGNED: usize = 8;

/// What torch storages that overlap become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Storages of their own: nobody writes, so nobody can tell.
    Apart,
    /// One storage.
    Joined,
}

/// Inputs that are being taken in: storages are found again by where they begin and end.
pub struct Inputs {
    shim: &'static Shim,
    storages: FxHashMap<(usize, usize), Storage>,
    /// Storages over several of torch's, with where they begin.
    joined: Vec<(usize, Storage)>,
}

impl Inputs {
    /// None yet.
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(Self { shim: Shim::get(py)?, storages: FxHashMap::default(), joined: Vec::new() })
    }

    /// All arguments of a call.
    pub fn take(arguments: &Bound<'_, PyTuple>, overlap: Overlap) -> PyResult<Vec<Value<Tensor>>> {
        let mut inputs = Self::new(arguments.py())?;
        inputs.storages.reserve(arguments.len());
        if overlap == Overlap::Joined {
            inputs.join(arguments);
        }
        arguments.iter_borrowed().enumerate().map(|(index, object)| inputs.value(&object, index)).collect()
    }

    /// Makes one storage of torch storages that overlap without being the same.
    fn join(&mut self, arguments: &Bound<'_, PyTuple>) {
        let mut regions = Vec::with_capacity(arguments.len());
        for object in arguments.iter() {
            let Ok(described) = self.shim.describe(&object) else { continue };
            let Some(dtype) = dtype_of(described.dtype) else { continue };
            if let Some((begin, end)) = region(&described, dtype) {
                regions.push((begin, end, object));
            }
        }
        regions.sort_by_key(|(begin, end, _)| (*begin, *end));
        let mut rest = regions.as_slice();
        while let Some((begin, first_end, _)) = rest.first() {
            let mut end = *first_end;
            let mut count = 1;
            while let Some((next, next_end, _)) = rest.get(count).filter(|(next, ..)| *next < end) {
                debug_assert!(next >= begin);
                end = end.max(*next_end);
                count += 1;
            }
            let group = &rest[..count];
            rest = &rest[count..];
            let same = group.iter().all(|(other, other_end, _)| other == begin && other_end == first_end);
            let Some(start) = NonNull::new(*begin as *mut u8) else { continue };
            if same || !begin.is_multiple_of(ALIGNED) {
                continue;
            }
            let owners: Option<Vec<TorchStorage>> =
                group.iter().map(|(_, _, object)| TorchStorage::of(self.shim, object)).collect();
            let Some(owners) = owners else { continue };
            // SAFETY: each of torch's storages has its bytes, there is no gap between them, and all of them are kept;
            // else as for one.
            let storage = unsafe { Storage::external(start, end - begin, Box::new(Several(owners))) };
            self.joined.push((*begin, storage));
        }
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
            let dtype = object.getattr("dtype").map_or_else(|_| "of it".to_owned(), |dtype| dtype.to_string());
            return Err(refused(object, index, &format!("Pyrite has no element type {dtype}")));
        };
        if self.shim.is_marked(object) {
            let resolved = resolved(object).map_err(|_| {
                refused(object, index, "it is negated or conjugated when it is read; call resolve_neg, resolve_conj")
            })?;
            let described = self.shim.describe(&resolved).map_err(|_| refused(object, index, "it has no memory"))?;
            return self.tensor(&resolved, &described, index);
        }
        let mut offset = described.offset;
        let storage = match region(described, dtype) {
            None => Storage::zeroed(0),
            Some((begin, end)) => {
                let joined =
                    self.joined.iter().find(|(start, storage)| *start <= begin && end <= *start + storage.nbytes());
                if let Some((start, storage)) = joined {
                    let bytes = described.data as usize - start;
                    if !bytes.is_multiple_of(dtype.size()) {
                        return Err(refused(object, index, "it overlaps with another argument within an element"));
                    }
                    offset = (bytes / dtype.size()) as i64;
                    storage.clone()
                } else if let Some(known) = self.storages.get(&(begin, end)) {
                    known.clone()
                } else {
                    let storage = TorchStorage::of(self.shim, object).and_then(TorchStorage::lend);
                    let storage = storage.ok_or_else(|| refused(object, index, "it has no memory"))?;
                    self.storages.insert((begin, end), storage.clone());
                    storage
                }
            }
        };
        let layout = Layout::new(described.sizes, described.strides, offset);
        Tensor::new(storage, dtype, layout).map_err(|error| refused(object, index, &error.to_string()))
    }
}

/// A tensor that is conjugated or negated when it is read, as a copy with the same strides that is not.
fn resolved<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let torch = tensor.py().import("torch")?;
    let tensor = tensor.call_method0("detach")?;
    let options = PyDict::new(tensor.py());
    options.set_item("dtype", tensor.getattr("dtype")?)?;
    options.set_item("device", tensor.getattr("device")?)?;
    let (sizes, strides) = (tensor.call_method0("size")?, tensor.call_method0("stride")?);
    let copy = torch.call_method("empty_strided", (sizes, strides), Some(&options))?;
    copy.call_method1("copy_", (tensor,))
}

/// Where a tensor's storage begins and ends; `None` where there is no memory.
pub(super) fn region(described: &Described<'_>, dtype: DType) -> Option<(usize, usize)> {
    if described.data.is_null() || described.storage_bytes <= 0 {
        return None;
    }
    let begin = (described.data as usize).wrapping_sub(described.offset as usize * dtype.size());
    Some((begin, begin + described.storage_bytes as usize))
}

/// Storages of torch's that one of ours lies over.
struct Several(#[expect(dead_code, reason = "they are held")] Vec<TorchStorage>);

impl Owner for Several {}

impl TorchStorage {
    /// The memory as a storage: itself where it is aligned, else a copy.
    fn lend(self) -> Option<Storage> {
        let (start, nbytes) = self.place()?;
        if (start.as_ptr() as usize).is_multiple_of(ALIGNED) {
            // SAFETY: torch says that so many bytes begin there, and its storage is kept. A program runs while its
            // caller waits; who writes from another thread meanwhile races with torch's kernels too, and who changes the
            // storage's size between forward and backward is asked where it is then.
            return Some(unsafe { Storage::external(start, nbytes, Box::new(Lent { storage: self, start, nbytes })) });
        }
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), nbytes) };
        let copy = Storage::from_slice(bytes);
        let start = NonNull::new(copy.as_mut_ptr())?;
        // SAFETY: the copy is kept, and nobody else has it.
        Some(unsafe { Storage::external(start, nbytes, Box::new(Unaligned { storage: self, _copy: copy })) })
    }
}

/// Memory of torch's that is used where it is.
struct Lent {
    storage: TorchStorage,
    start: NonNull<u8>,
    nbytes: usize,
}

// SAFETY: the address is only compared with another.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Owner for Lent {
    fn current(&self) -> Option<Storage> {
        match self.storage.place() {
            Some(place) if place == (self.start, self.nbytes) => None,
            Some(_) => self.storage.again().and_then(TorchStorage::lend),
            None => Some(Storage::zeroed(0)),
        }
    }

    fn address(&self) -> Option<usize> {
        self.storage.place().map(|(start, _)| start.as_ptr() as usize)
    }
}

/// Memory of torch's that no element is aligned in, and its copy.
struct Unaligned {
    storage: TorchStorage,
    _copy: Storage,
}

impl Owner for Unaligned {
    /// Copied again: it may have been written meanwhile.
    fn current(&self) -> Option<Storage> {
        Some(self.storage.again().and_then(TorchStorage::lend).unwrap_or_else(|| Storage::zeroed(0)))
    }

    fn address(&self) -> Option<usize> {
        self.storage.place().map(|(start, _)| start.as_ptr() as usize)
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
