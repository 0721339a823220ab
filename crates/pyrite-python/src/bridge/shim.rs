//! torch's C functions that say what a tensor is.
//!
//! libtorch exports them for programs that were compiled ahead of time, with a stable C interface; they are found in the
//! library that torch has loaded. They take a pointer to the C++ tensor, which lies in the Python object behind its
//! header. Every function says by its result whether it did what it was asked for.

#![expect(unsafe_code, reason = "torch's functions are a C library")]

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::PyImportError;
use pyo3::ffi::{PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use pyrite_tensor::DType;

use super::predicate::Predicate;

type GetI32 = unsafe extern "C" fn(*const c_void, *mut i32) -> i32;
type GetI64 = unsafe extern "C" fn(*const c_void, *mut i64) -> i32;
type GetDims = unsafe extern "C" fn(*const c_void, *mut *const i64) -> i32;
type GetPointer = unsafe extern "C" fn(*const c_void, *mut *mut u8) -> i32;
type Reinterpret = unsafe extern "C" fn(*const c_void, i64, *const i64, *const i64, i64, *mut *mut c_void) -> i32;
type HasImplementation = unsafe extern "C" fn(*const u64) -> bool;
type CountWrites = unsafe extern "C" fn(*const c_void) -> i64;
type Delete = unsafe extern "C" fn(*mut c_void) -> i32;

/// The functions, and the classes whose instances they are asked about.
pub struct Shim {
    dtype: GetI32,
    device: GetI32,
    device_index: GetI32,
    layout: GetI32,
    rank: GetI64,
    offset: GetI64,
    storage_bytes: GetI64,
    sizes: GetDims,
    strides: GetDims,
    data: GetPointer,
    reinterpret: Reinterpret,
    delete: Delete,
    requires_grad: Predicate,
    /// The same, asked of a tensor's implementation, where torch was seen to answer it as Python does.
    implementation_requires_grad: Option<HasImplementation>,
    /// How often a tensor was written, where torch was seen to answer it as Python does.
    version: Option<CountWrites>,
    is_neg: Predicate,
    is_conj: Predicate,
    tensor: usize,
    parameter: usize,
    keys: Option<DispatchKeys>,
}

/// Where a C++ tensor keeps its dispatch keys, and what some of them are. Torch has no C function that gives them.
struct DispatchKeys {
    /// Words from where the tensor's implementation begins.
    place: usize,
    /// The keys of a plain tensor: it is strided, on the CPU, and read as it lies.
    plain: u64,
    /// The keys of a tensor that is negated or conjugated when it is read, beyond those of one that is not.
    marks: u64,
}

/// The implementation of a tensor is at least so many words long.
pub(super) const IMPLEMENTATION_WORDS: usize = 22;

/// What torch says of a tensor. The slices live as long as the tensor is not changed.
pub struct Described<'a> {
    /// Element type, as torch numbers it.
    pub dtype: i32,
    /// Size per dimension.
    pub sizes: &'a [i64],
    /// Stride per dimension.
    pub strides: &'a [i64],
    /// The first element, in elements from the storage's start.
    pub offset: i64,
    /// The address of the first element; null where there is none.
    pub data: *mut u8,
    /// Bytes of the storage.
    pub storage_bytes: i64,
}

/// The part of it that guards ask for.
pub struct Shape<'a> {
    /// Element type, as torch numbers it.
    pub dtype: i32,
    /// Size per dimension.
    pub sizes: &'a [i64],
    /// Stride per dimension.
    pub strides: &'a [i64],
}

/// What torch says of a tensor on any device. The slices live as long as the tensor is not changed.
pub struct Located<'a> {
    /// Whether it is on a GPU.
    pub is_cuda: bool,
    /// The number of its device.
    pub index: i32,
    /// Element type; `None` where Pyrite has none.
    pub dtype: Option<DType>,
    /// Size per dimension.
    pub sizes: &'a [i64],
    /// Stride per dimension.
    pub strides: &'a [i64],
    /// The first element, in elements from the storage's start.
    pub offset: i64,
    /// The address of the first element; null where there is none.
    pub data: *mut u8,
}

/// Why a tensor is not described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is of another class.
    Class,
    /// It is not on the CPU.
    Device,
    /// It is sparse, quantized or otherwise not strided.
    Layout,
    /// It has no memory: it is fake, or wrapped by a transformation.
    Memory,
}

/// The C++ tensor lies right behind the head of its Python object.
const HEAD: usize = size_of::<PyObject>();

static SHIM: PyOnceLock<Shim> = PyOnceLock::new();
/// Set once the functions have been seen to agree with Python.
static CHECKED: PyOnceLock<()> = PyOnceLock::new();

impl Shim {
    /// The functions of the torch that is loaded.
    pub fn get(py: Python<'_>) -> PyResult<&'static Self> {
        let shim = SHIM.get_or_try_init(py, || Self::load(&py.import("torch")?))?;
        CHECKED.get_or_try_init(py, || shim.agrees_with_python(&py.import("torch")?))?;
        Ok(shim)
    }

    fn load(torch: &Bound<'_, PyModule>) -> PyResult<Self> {
        let py = torch.py();
        let folder: String = torch.getattr("__path__")?.get_item(0)?.extract()?;
        let library = Library::open(&format!("{folder}/lib/libtorch_cpu.so"))?;
        let class =
            |module: &str, name: &str| -> PyResult<usize> { Ok(py.import(module)?.getattr(name)?.as_ptr() as usize) };
        // SAFETY: the functions have these types in every torch that exports them.
        Ok(unsafe {
            Self {
                dtype: std::mem::transmute::<*mut c_void, GetI32>(library.find(c"aoti_torch_get_dtype")?),
                device: std::mem::transmute::<*mut c_void, GetI32>(library.find(c"aoti_torch_get_device_type")?),
                device_index: std::mem::transmute::<*mut c_void, GetI32>(library.find(c"aoti_torch_get_device_index")?),
                layout: std::mem::transmute::<*mut c_void, GetI32>(library.find(c"aoti_torch_get_layout")?),
                rank: std::mem::transmute::<*mut c_void, GetI64>(library.find(c"aoti_torch_get_dim")?),
                offset: std::mem::transmute::<*mut c_void, GetI64>(library.find(c"aoti_torch_get_storage_offset")?),
                storage_bytes: std::mem::transmute::<*mut c_void, GetI64>(
                    library.find(c"aoti_torch_get_storage_size")?,
                ),
                sizes: std::mem::transmute::<*mut c_void, GetDims>(library.find(c"aoti_torch_get_sizes")?),
                strides: std::mem::transmute::<*mut c_void, GetDims>(library.find(c"aoti_torch_get_strides")?),
                data: std::mem::transmute::<*mut c_void, GetPointer>(library.find(c"aoti_torch_get_data_ptr")?),
                reinterpret: std::mem::transmute::<*mut c_void, Reinterpret>(
                    library.find(c"aoti_torch__reinterpret_tensor")?,
                ),
                delete: std::mem::transmute::<*mut c_void, Delete>(library.find(c"aoti_torch_delete_tensor_object")?),
                requires_grad: Predicate::named(py, "requires_grad")?,
                implementation_requires_grad: None,
                version: None,
                is_neg: Predicate::named(py, "is_neg")?,
                is_conj: Predicate::named(py, "is_conj")?,
                tensor: class("torch", "Tensor")?,
                parameter: class("torch.nn", "Parameter")?,
                keys: None,
            }
            .with_dispatch_keys(torch)
            .with_requires_grad(torch, &folder)
            .with_version(torch, &library)
        })
    }

    /// Looks for the function behind `requires_grad`, which costs a tenth of what Python's property does.
    fn with_requires_grad(mut self, torch: &Bound<'_, PyModule>, folder: &str) -> Self {
        let find = || -> PyResult<HasImplementation> {
            let library = Library::open(&format!("{folder}/lib/libc10.so"))?;
            // SAFETY: `bool c10::TensorImpl::requires_grad() const` takes a pointer to the implementation alone.
            let ask = unsafe {
                std::mem::transmute::<*mut c_void, HasImplementation>(
                    library.find(c"_ZNK3c1010TensorImpl13requires_gradEv")?,
                )
            };
            let plain = probe(torch, &[2])?;
            let parameter = torch.getattr("nn")?.getattr("Parameter")?.call1((&plain,))?;
            let (view, computed) = (parameter.call_method0("detach")?, parameter.call_method0("relu")?);
            for probe in [&plain, &parameter, &view, &computed] {
                let wanted: bool = probe.getattr("requires_grad")?.extract()?;
                // SAFETY: the probes are tensors, of torch's own classes where modes leave them so.
                if !self.is_plain(probe.get_type_ptr()) || unsafe { ask(Self::implementation(probe)) } != wanted {
                    return Err(PyImportError::new_err("torch answers otherwise than Python"));
                }
            }
            Ok(ask)
        };
        self.implementation_requires_grad = find().ok();
        self
    }

    /// Looks for the function behind `_version`, which costs a fifth of what Python's property does.
    fn with_version(mut self, torch: &Bound<'_, PyModule>, library: &Library) -> Self {
        let find = || -> PyResult<CountWrites> {
            // SAFETY: `int64_t at::TensorBase::_version() const` takes a pointer to the tensor alone.
            let ask = unsafe {
                std::mem::transmute::<*mut c_void, CountWrites>(library.find(c"_ZNK2at10TensorBase8_versionEv")?)
            };
            let plain = probe(torch, &[2])?;
            for writes in 0..3 {
                let counted = !plain.call_method0("is_inference")?.is_truthy()?;
                let wanted: i64 = if counted { plain.getattr("_version")?.extract()? } else { -1 };
                // SAFETY: the probe is a tensor, of torch's own class where modes leave it so, whose writes are counted.
                let agrees =
                    counted && self.is_plain(plain.get_type_ptr()) && unsafe { ask(Self::inner(&plain)) } == wanted;
                if !agrees || wanted != writes {
                    return Err(PyImportError::new_err("torch answers otherwise than Python"));
                }
                plain.call_method1("fill_", (1,))?;
            }
            Ok(ask)
        };
        self.version = find().ok();
        self
    }

    /// How often a tensor of torch's own class was written; `None` where that is not known.
    ///
    /// # Safety
    /// The tensor was not made in inference mode: nobody counts how often such a one is written, and torch throws.
    pub unsafe fn version(&self, tensor: &Bound<'_, PyAny>) -> Option<i64> {
        let ask = self.version.filter(|_| self.is_plain(tensor.get_type_ptr()))?;
        // SAFETY: the class is torch's own, and torch counts the tensor's writes.
        Some(unsafe { ask(Self::inner(tensor)) })
    }

    /// Looks for the place of dispatch keys, with tensors of all kinds; without it calls take a longer way.
    fn with_dispatch_keys(mut self, torch: &Bound<'_, PyModule>) -> Self {
        self.keys = self.find_dispatch_keys(torch).ok().flatten();
        self
    }

    fn find_dispatch_keys(&self, torch: &Bound<'_, PyModule>) -> PyResult<Option<DispatchKeys>> {
        let plain = probe(torch, &[2])?;
        if self.shape(&plain).is_err() {
            return Ok(None);
        }
        let negated = plain.call_method0("_neg_view")?;
        let complex = plain.call_method1("to", (torch.getattr("complex64")?,))?;
        let conjugated = complex.call_method0("conj")?;
        let parameter = torch.getattr("nn")?.getattr("Parameter")?.call1((&plain,))?;
        let probes = [&plain, &negated, &complex, &conjugated, &parameter];
        let ask = torch.getattr("_C")?.getattr("_dispatch_keys")?;
        let mut keys = [0u64; 5];
        for (probe, keys) in probes.iter().zip(&mut keys) {
            *keys = ask.call1((probe,))?.call_method0("raw_repr")?.extract()?;
        }
        let holds = |word: &usize| {
            probes.iter().zip(keys).all(|(probe, keys)| {
                // SAFETY: the probes are tensors of torch's own classes, and their implementation is that long.
                self.is_plain(probe.get_type_ptr()) && unsafe { Self::implementation(probe).add(*word).read() } == keys
            })
        };
        let mut found = (0..IMPLEMENTATION_WORDS).filter(holds);
        let [plain, negated, complex, conjugated, _] = keys;
        let marks = (negated & !plain) | (conjugated & !complex);
        Ok(match (found.next(), found.next()) {
            (Some(word), None) if negated & !plain != 0 && conjugated & !complex != 0 => {
                Some(DispatchKeys { place: word, plain, marks })
            }
            _ => None,
        })
    }

    /// The words of a tensor's implementation.
    ///
    /// # Safety
    /// The object is a tensor of torch's own class.
    pub(super) unsafe fn implementation(tensor: &Bound<'_, PyAny>) -> *const u64 {
        // SAFETY: a C++ tensor is a pointer to its implementation.
        unsafe { *Self::inner(tensor).cast::<*const u64>() }
    }

    /// The dispatch keys of a tensor of torch's own class, where it is known where they are: they say on which device it
    /// is, how it is laid out and whether it is fake, wrapped, negated or conjugated.
    pub fn dispatch_keys(&self, tensor: &Bound<'_, PyAny>) -> Option<u64> {
        let keys = self.keys.as_ref()?;
        // SAFETY: the class is torch's own, and the place was found in tensors of it.
        self.is_plain(tensor.get_type_ptr()).then(|| unsafe { Self::implementation(tensor).add(keys.place).read() })
    }

    /// Whether a tensor of such keys is neither negated nor conjugated when it is read.
    pub fn is_read_as_it_lies(&self, keys: u64) -> bool {
        self.keys.as_ref().is_some_and(|known| known.marks & keys == 0)
    }

    /// Whether what the functions say of a tensor, and of the beginning of its storage, is what Python says of it.
    fn agrees_with_python(&'static self, torch: &Bound<'_, PyModule>) -> PyResult<()> {
        let probe = probe(torch, &[4, 5])?.call_method0("t")?.call_method1("narrow", (1, 1, 3))?;
        let address: usize = probe.call_method0("data_ptr")?.extract()?;
        let begin: usize = probe.call_method0("untyped_storage")?.call_method0("data_ptr")?.extract()?;
        let agrees = self.describe(&probe).is_ok_and(|found| {
            found.sizes == [5, 3] && found.strides == [1, 5] && found.data as usize == address && found.dtype == 6
        });
        let storage = TorchStorage::of(self, &probe).and_then(|storage| storage.place());
        if agrees && storage.is_some_and(|(start, bytes)| start.as_ptr() as usize == begin && bytes == 80) {
            return Ok(());
        }
        let version: String = torch.getattr("__version__")?.extract()?;
        Err(PyImportError::new_err(format!(
            "pyrite cannot read the tensors of torch {version}; it is tested with torch 2.11 to 2.15"
        )))
    }

    /// Whether an object is a tensor of any class.
    pub fn is_plain(&self, class: *mut PyTypeObject) -> bool {
        class as usize == self.tensor || class as usize == self.parameter
    }

    /// Whether an object is exactly a parameter.
    pub fn is_parameter(&self, tensor: &Bound<'_, PyAny>) -> bool {
        tensor.get_type_ptr() as usize == self.parameter
    }

    /// Whether a tensor of torch's own class wants a gradient.
    pub fn requires_grad(&self, tensor: &Bound<'_, PyAny>) -> bool {
        // SAFETY: the class is one of torch's own.
        self.is_plain(tensor.get_type_ptr())
            && unsafe {
                match self.implementation_requires_grad {
                    Some(ask) => ask(Self::implementation(tensor)),
                    None => self.requires_grad.holds(tensor.as_ptr()),
                }
            }
    }

    /// Whether a tensor of torch's own class is negated or conjugated when it is read.
    pub fn is_marked(&self, tensor: &Bound<'_, PyAny>) -> bool {
        if let Some(keys) = self.dispatch_keys(tensor) {
            return !self.is_read_as_it_lies(keys);
        }
        let tensor = tensor.as_ptr();
        // SAFETY: the caller gives a tensor.
        unsafe { self.is_neg.holds(tensor) || self.is_conj.holds(tensor) }
    }

    /// Element type, sizes and strides of a tensor.
    pub fn shape<'a>(&self, tensor: &'a Bound<'_, PyAny>) -> Result<Shape<'a>, Refused> {
        if !self.is_plain(tensor.get_type_ptr()) {
            return Err(Refused::Class);
        }
        if self.is_on_cpu_and_strided(tensor) {
            // SAFETY: the class is torch's own.
            return unsafe { self.dims(tensor) };
        }
        let mut device = 0;
        // SAFETY: the object is a tensor of torch's own class, so the C++ tensor lies behind its head; the result is
        // written to the variable given.
        if unsafe { (self.device)(Self::inner(tensor), &raw mut device) } != 0 || device != 0 {
            return Err(Refused::Device);
        }
        self.shape_anywhere(tensor)
    }

    /// Where a tensor is, and how it lies there.
    pub fn locate<'a>(&self, tensor: &'a Bound<'_, PyAny>) -> Result<Located<'a>, Refused> {
        /// Torch's number for GPUs.
        const CUDA: i32 = 1;
        let Shape { dtype, sizes, strides } = self.shape_anywhere(tensor)?;
        let (mut device, mut index, mut offset, mut data) = (0, 0, 0, std::ptr::null_mut());
        // SAFETY: as in `shape_anywhere`, which has seen the class.
        let failed = unsafe {
            let inner = Self::inner(tensor);
            (self.device)(inner, &raw mut device)
                | (self.device_index)(inner, &raw mut index)
                | (self.offset)(inner, &raw mut offset)
                | (self.data)(inner, &raw mut data)
        };
        if failed != 0 || !(device == 0 || device == CUDA) {
            return Err(Refused::Device);
        }
        Ok(Located { is_cuda: device == CUDA, index, dtype: dtype_of(dtype), sizes, strides, offset, data })
    }

    /// The address of the first element of a tensor of torch's own class that has memory.
    pub fn address(&self, tensor: &Bound<'_, PyAny>) -> Option<u64> {
        let mut data = std::ptr::null_mut();
        if !self.is_plain(tensor.get_type_ptr()) {
            return None;
        }
        // SAFETY: the class is torch's own; the result is written to the variable given.
        let failed = unsafe { (self.data)(Self::inner(tensor), &raw mut data) };
        (failed == 0).then_some(data as u64)
    }

    /// Element type, sizes and strides of a tensor, whatever device it is on.
    fn shape_anywhere<'a>(&self, tensor: &'a Bound<'_, PyAny>) -> Result<Shape<'a>, Refused> {
        if !self.is_plain(tensor.get_type_ptr()) {
            return Err(Refused::Class);
        }
        let mut layout = 0;
        // SAFETY: the object is a tensor of torch's own class, so the C++ tensor lies behind its head; the result is
        // written to the variable given.
        unsafe {
            if (self.layout)(Self::inner(tensor), &raw mut layout) != 0 || layout != 0 {
                return Err(Refused::Layout);
            }
            self.dims(tensor)
        }
    }

    /// Whether the dispatch keys of a tensor of torch's own class are those of a plain one.
    fn is_on_cpu_and_strided(&self, tensor: &Bound<'_, PyAny>) -> bool {
        self.keys.as_ref().is_some_and(|keys| self.dispatch_keys(tensor) == Some(keys.plain))
    }

    /// Element type, sizes and strides of a tensor that is strided.
    ///
    /// # Safety
    /// The object is a tensor of torch's own class.
    unsafe fn dims<'a>(&self, tensor: &'a Bound<'_, PyAny>) -> Result<Shape<'a>, Refused> {
        let (mut dtype, mut rank) = (0, 0);
        let (mut sizes, mut strides) = (std::ptr::null(), std::ptr::null());
        // SAFETY: as above; sizes and strides live in the tensor, which is borrowed.
        unsafe {
            let inner = Self::inner(tensor);
            let failed = (self.dtype)(inner, &raw mut dtype)
                | (self.rank)(inner, &raw mut rank)
                | (self.sizes)(inner, &raw mut sizes)
                | (self.strides)(inner, &raw mut strides);
            if failed != 0 || rank < 0 || (rank > 0 && (sizes.is_null() || strides.is_null())) {
                return Err(Refused::Memory);
            }
            let dims =
                |start: *const i64| if rank == 0 { &[] } else { std::slice::from_raw_parts(start, rank as usize) };
            Ok(Shape { dtype, sizes: dims(sizes), strides: dims(strides) })
        }
    }

    /// What torch says of a tensor on the CPU, with its dispatch keys; `None` where it is not described or keys are not known.
    pub fn describe_with_keys<'a>(&self, tensor: &'a Bound<'_, PyAny>) -> Option<(u64, Described<'a>)> {
        let keys = self.dispatch_keys(tensor)?;
        Some((keys, self.describe(tensor).ok()?))
    }

    /// What torch says of a tensor.
    pub fn describe<'a>(&self, tensor: &'a Bound<'_, PyAny>) -> Result<Described<'a>, Refused> {
        let Shape { dtype, sizes, strides } = self.shape(tensor)?;
        let (mut offset, mut storage_bytes, mut data) = (0, 0, std::ptr::null_mut());
        // SAFETY: as in `shape`, which has seen the class.
        let failed = unsafe {
            let inner = Self::inner(tensor);
            (self.offset)(inner, &raw mut offset)
                | (self.storage_bytes)(inner, &raw mut storage_bytes)
                | (self.data)(inner, &raw mut data)
        };
        if failed != 0 {
            return Err(Refused::Memory);
        }
        Ok(Described { dtype, sizes, strides, offset, data, storage_bytes })
    }

    /// The C++ tensor of an object.
    ///
    /// # Safety
    /// The object is a tensor of torch's own class.
    unsafe fn inner(tensor: &Bound<'_, PyAny>) -> *const c_void {
        // SAFETY: the C++ tensor lies behind the head of the object.
        unsafe { tensor.as_ptr().cast::<u8>().add(HEAD).cast() }
    }
}

/// A tensor to try functions on, of the same type on the same device whatever the user's defaults are.
fn probe<'py>(torch: &Bound<'py, PyModule>, sizes: &[i64]) -> PyResult<Bound<'py, PyAny>> {
    let named = PyDict::new(torch.py());
    named.set_item("device", "cpu")?;
    named.set_item("dtype", torch.getattr("float32")?)?;
    torch.call_method("zeros", (sizes.to_vec(),), Some(&named))
}

/// A storage of torch's, held by a tensor of its own that nobody else knows: what is done to other tensors over it, such
/// as giving them another storage, does not let it go.
pub struct TorchStorage {
    shim: &'static Shim,
    /// Torch's handle of a tensor of one element, the first of the storage.
    first: *mut c_void,
}

// SAFETY: torch counts the holders of tensors and storages atomically, and asks for the interpreter where it needs it.
unsafe impl Send for TorchStorage {}
// SAFETY: as above; the handle is only read.
unsafe impl Sync for TorchStorage {}

impl TorchStorage {
    /// The storage of a tensor that [`Shim::describe`] has described and that has memory.
    pub fn of(shim: &'static Shim, tensor: &Bound<'_, PyAny>) -> Option<Self> {
        // SAFETY: the object is a tensor of torch's own class.
        shim.is_plain(tensor.get_type_ptr()).then(|| unsafe { Self::new(shim, Shim::inner(tensor)) })?
    }

    /// Another hold of the same storage.
    pub fn again(&self) -> Option<Self> {
        // SAFETY: the handle is that of a live tensor.
        unsafe { Self::new(self.shim, self.first) }
    }

    /// # Safety
    /// The pointer is to a live C++ tensor.
    unsafe fn new(shim: &'static Shim, tensor: *const c_void) -> Option<Self> {
        let (one, mut first, mut offset) = ([1i64], std::ptr::null_mut(), 0);
        // SAFETY: the function makes a tensor of the sizes and strides given over the storage of another, so many elements
        // after where that begins.
        let failed = unsafe {
            let unknown = (shim.offset)(tensor, &raw mut offset);
            unknown | (shim.reinterpret)(tensor, 1, one.as_ptr(), one.as_ptr(), -offset, &raw mut first)
        };
        (failed == 0 && !first.is_null()).then_some(Self { shim, first })
    }

    /// Where its memory is now, and how many bytes; `None` where it has none.
    pub fn place(&self) -> Option<(NonNull<u8>, usize)> {
        let (mut bytes, mut start) = (0, std::ptr::null_mut());
        // SAFETY: the handle is that of a live tensor; results are written to the variables given.
        let failed = unsafe {
            (self.shim.storage_bytes)(self.first, &raw mut bytes) | (self.shim.data)(self.first, &raw mut start)
        };
        let start = NonNull::new(start).filter(|_| failed == 0 && bytes > 0)?;
        Some((start, bytes as usize))
    }
}

impl Drop for TorchStorage {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and this is its end.
        unsafe { (self.shim.delete)(self.first) };
    }
}

/// The element type of torch's number for it.
pub fn dtype_of(number: i32) -> Option<DType> {
    Some(match number {
        0 => DType::U8,
        1 => DType::I8,
        2 => DType::I16,
        3 => DType::I32,
        4 => DType::I64,
        5 => DType::F16,
        6 => DType::F32,
        7 => DType::F64,
        9 => DType::C64,
        10 => DType::C128,
        11 => DType::Bool,
        15 => DType::BF16,
        23 => DType::F8E5M2,
        24 => DType::F8E4M3,
        25 => DType::F8E5M2Fnuz,
        26 => DType::F8E4M3Fnuz,
        27 => DType::U16,
        28 => DType::U32,
        29 => DType::U64,
        _ => return None,
    })
}

/// A library that is loaded already.
struct Library(*mut c_void, String);

impl Library {
    fn open(path: &str) -> PyResult<Self> {
        let name = CString::new(path).map_err(|_| PyImportError::new_err("the path of torch has a zero in it"))?;
        // SAFETY: the name ends with a zero; a library that is not loaded is not loaded by this.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return Err(PyImportError::new_err(format!("torch has not loaded {path}")));
        }
        Ok(Self(handle, path.to_owned()))
    }

    fn find(&self, name: &CStr) -> PyResult<*mut c_void> {
        // SAFETY: the handle is that of an open library.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if found.is_null() {
            let name = name.to_string_lossy();
            return Err(PyImportError::new_err(format!("{} has no {name}; pyrite needs torch 2.11 or newer", self.1)));
        }
        Ok(found)
    }
}
