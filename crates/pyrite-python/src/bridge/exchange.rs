//! Pyrite's tensors as torch's, by DLPack's exchange interface.
//!
//! torch's class of tensors carries a table of C functions; one of them makes a tensor of a description whose memory
//! stays ours until torch calls the deleter.

#![expect(unsafe_code, reason = "torch's tensors are raw memory")]

use std::collections::hash_map::Entry;
use std::ffi::c_void;

use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict};
use pyrite_tensor::{DType, Layout, Storage, Tensor};
use rustc_hash::FxHashMap;

use super::resizable::Resizable;
use super::shim::Shim;

/// DLPack's version of the structures below.
const VERSION: Version = Version { major: 1, minor: 3 };

#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct Array {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    rank: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    flags: u64,
    array: Array,
}

type ToObject = unsafe extern "C" fn(*mut Managed, *mut *mut c_void) -> i32;

#[repr(C)]
struct Table {
    version: Version,
    previous: *const Table,
    allocate: *const c_void,
    from_object: *const c_void,
    to_object: ToObject,
}

/// What torch holds while it uses our memory. The description points into the shape and the strides.
struct Lent {
    managed: Managed,
    tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

static TO_OBJECT: PyOnceLock<ToObject> = PyOnceLock::new();
static RESIZABLE: PyOnceLock<Option<Resizable>> = PyOnceLock::new();

fn to_object(py: Python<'_>) -> PyResult<ToObject> {
    TO_OBJECT
        .get_or_try_init(py, || {
            let found = py.import("torch")?.getattr("Tensor")?.getattr("__dlpack_c_exchange_api__")?;
            let capsule = found.cast::<PyCapsule>()?;
            let table = capsule.pointer_checked(Some(c"dlpack_exchange_api"))?.cast::<Table>();
            // SAFETY: a capsule of that name holds such a table, which lives as long as torch does.
            let table = unsafe { table.as_ref() };
            if table.version.major != VERSION.major {
                return Err(PyImportError::new_err(
                    "torch speaks another version of DLPack; pyrite needs torch 2.11 or newer",
                ));
            }
            Ok(table.to_object)
        })
        .copied()
}

/// How results are made resizable.
fn resizable(py: Python<'_>) -> Option<&'static Resizable> {
    /// The probes' sizes in bytes.
    const SIZES: [usize; 4] = [5, 96, 777, 4100];
    RESIZABLE
        .get_or_init(py, || {
            let find = || -> PyResult<Option<Resizable>> {
                let named = PyDict::new(py);
                let torch = py.import("torch")?;
                named.set_item("dtype", torch.getattr("uint8")?)?;
                named.set_item("device", "cpu")?;
                let owned = SIZES.map(|size| torch.call_method("empty", (size,), Some(&named)));
                let owned = owned.into_iter().collect::<PyResult<Vec<_>>>()?;
                let lent = SIZES.map(|size| {
                    let bytes: Vec<u8> = (0..size).map(|byte| byte as u8).collect();
                    let layout = Layout::new(&[size as i64], &[1], 0);
                    let tensor = Tensor::new(Storage::from_slice(&bytes), DType::U8, layout);
                    lend(py, &tensor.map_err(|error| PyRuntimeError::new_err(error.to_string()))?)
                });
                let lent = lent.into_iter().collect::<PyResult<Vec<_>>>()?;
                Resizable::find(Shim::get(py)?, &owned, &lent)
            };
            find().ok().flatten()
        })
        .as_ref()
}

/// A torch tensor over the tensor's memory. It is no view and has no history. Where the memory is Pyrite's own, torch may
/// resize it.
pub fn to_torch<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    if tensor.numel() == 0 {
        return empty(py, tensor);
    }
    let object = lend(py, tensor)?;
    // Memory without a version is somebody else's, who would not see that it was resized.
    if tensor.storage().version().is_some()
        && let Some(resizable) = resizable(py)
    {
        resizable.allow(&object);
    }
    Ok(object)
}

/// A torch tensor over the tensor's memory.
fn lend<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let make = to_object(py)?;
    let (code, bits) = kind(tensor.dtype());
    let (shape, strides) = (tensor.shape().to_vec(), tensor.stride().to_vec());
    let offset = tensor.layout().offset as usize * tensor.dtype().size();
    let array = Array {
        data: tensor.storage().as_mut_ptr().wrapping_add(offset).cast(),
        device_type: 1,
        device_id: 0,
        rank: shape.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed =
        Managed { version: VERSION, context: std::ptr::null_mut(), deleter: Some(give_back), flags: 0, array };
    let lent = Box::leak(Box::new(Lent { managed, tensor: tensor.clone(), shape, strides }));
    lent.managed.array.shape = lent.shape.as_mut_ptr();
    lent.managed.array.strides = lent.strides.as_mut_ptr();
    let lent: *mut Lent = lent;
    lent_context(lent);
    let mut object = std::ptr::null_mut();
    // SAFETY: the description is complete and lives until the deleter is called; the interpreter is held.
    let failed = unsafe { make(&raw mut (*lent).managed, &raw mut object) };
    if failed != 0 || object.is_null() {
        return Err(PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("torch did not take a result")));
    }
    // SAFETY: the function returns a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, object.cast()) })
}

/// A torch tensor without elements. Its memory is torch's, so that it can be resized as users do with empty tensors.
fn empty<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let torch = py.import("torch")?;
    let named = PyDict::new(py);
    named.set_item("dtype", torch.getattr(tensor.dtype().torch_name())?)?;
    named.set_item("device", "cpu")?;
    torch.call_method("empty_strided", (tensor.shape().to_vec(), tensor.stride().to_vec()), Some(&named))
}

/// Torch's storages of Pyrite's storages that several results lie in, or that a result does not begin at the beginning of.
#[derive(Default)]
pub struct Storages<'py> {
    /// How many results lie in each.
    counts: FxHashMap<usize, usize>,
    made: FxHashMap<usize, Bound<'py, PyAny>>,
}

impl<'py> Storages<'py> {
    /// The storages of these results.
    pub fn of<'a>(results: impl Iterator<Item = &'a Tensor>) -> Self {
        let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
        results.for_each(|tensor| *counts.entry(tensor.storage().id()).or_default() += 1);
        Self { counts, made: FxHashMap::default() }
    }

    /// As [`to_torch`], with the offset that the tensor has and in the same storage as others that it shares memory with.
    pub fn give(&mut self, py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        let id = tensor.storage().id();
        let shares = self.counts.get(&id).is_some_and(|count| *count > 1);
        if (!shares && tensor.layout().offset == 0) || tensor.numel() == 0 {
            return to_torch(py, tensor);
        }
        let storage = match self.made.entry(id) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(free) => {
                let bytes = tensor.storage().nbytes() as i64;
                let whole = Tensor::new(tensor.storage().clone(), DType::U8, Layout::new(&[bytes], &[1], 0));
                let whole = whole.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
                free.insert(to_torch(py, &whole)?.call_method0("untyped_storage")?)
            }
        };
        let layout = tensor.layout();
        let place = (&*storage, layout.offset, layout.shape.to_vec(), layout.stride.to_vec());
        // An empty tensor of the type, which is then laid over the storage: it is no view, as what a program returns is not.
        let like = Tensor::new(tensor.storage().clone(), tensor.dtype(), Layout::new(&[0], &[1], 0));
        let like = like.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        to_torch(py, &like)?.call_method1("set_", place)
    }
}

fn lent_context(lent: *mut Lent) {
    // SAFETY: the box was just leaked and nobody else has it.
    unsafe { (*lent).managed.context = lent.cast() };
}

unsafe extern "C" fn give_back(managed: *mut Managed) {
    // SAFETY: the context is the box that `to_torch` leaked, and torch calls this once.
    let lent = unsafe { Box::from_raw((*managed).context.cast::<Lent>()) };
    drop(lent.tensor);
}

/// DLPack's code and bits of an element type.
fn kind(dtype: DType) -> (u8, u8) {
    let bits = (dtype.size() * 8) as u8;
    let code = match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::C64 | DType::C128 => 5,
        DType::Bool => 6,
        DType::F8E4M3 => 10,
        DType::F8E4M3Fnuz => 11,
        DType::F8E5M2 => 12,
        DType::F8E5M2Fnuz => 13,
    };
    (code, bits)
}
