//! CPython as the capture sees it.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyCFunction, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyModule};
use pyo3::types::{PyRange, PySet, PySlice, PyString, PyTuple, PyType};
use pyrite_capture::code::{Code, RawCode, decode};
use pyrite_capture::host::{
    Changes, Descriptor, FunctionParts, Given, GlobalState, Kind, Made, Object, Precedence, Raised, TensorFacts,
};
use pyrite_capture::opcode::Version;
use pyrite_capture::{Host, World};
use pyrite_ir::{Device, Graph, Meta, NodeId, StorageId, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::{Complex64, DType, MemoryFormat};
use rustc_hash::FxHashMap;

use super::objects::{Keep, bound};
use super::rules::{allowed_name, is_skipped};
use crate::bridge::{Shim, dtype_of};
use crate::torch_interpreter::TorchProgram;

type Raw = *mut ffi::PyObject;

/// Classes and tables that are looked up once.
struct Library {
    tensor: Py<PyAny>,
    torch_module: Py<PyAny>,
    size: Py<PyAny>,
    ordered_dict: Py<PyAny>,
    default_dict: Py<PyAny>,
    counter: Py<PyAny>,
    deque: Py<PyAny>,
    cached_property: Py<PyAny>,
    cached_function: Py<PyAny>,
    partial: Py<PyAny>,
    enumeration: Py<PyAny>,
    abstract_class: Py<PyAny>,
    property: Py<PyAny>,
    method: Py<PyAny>,
    proxy: Py<PyAny>,
    operators: (Py<PyAny>, Py<PyAny>),
    numpy_scalar: Option<Py<PyAny>>,
    numpy_array: Option<Py<PyAny>>,
    numpy_type: Option<Py<PyAny>>,
    shares_memory: Py<PyAny>,
    count: Py<PyAny>,
    next_count: Py<PyAny>,
    numpy_functions: Vec<Py<PyAny>>,
    method_wrapper: Py<PyAny>,
    plain: Vec<Py<PyAny>>,
    descriptors: Vec<(Py<PyAny>, &'static str)>,
    names: FxHashMap<usize, Arc<str>>,
    /// What the names belong to, kept alive.
    _named: Py<PyAny>,
    polyfills: Py<PyAny>,
    torch: Py<PyModule>,
    operator: Py<PyModule>,
    skipped: Vec<String>,
    shim: &'static Shim,
}

static LIBRARY: PyOnceLock<Library> = PyOnceLock::new();

fn library(py: Python<'_>) -> PyResult<&'static Library> {
    LIBRARY.get_or_try_init(py, || {
        let class =
            |module: &str, name: &str| -> PyResult<Py<PyAny>> { Ok(py.import(module)?.getattr(name)?.unbind()) };
        let table = py.import("pyrite._names")?;
        let (names, named): (Bound<'_, PyDict>, Bound<'_, PyAny>) = table.call_method0("table")?.extract()?;
        let mut by_address = FxHashMap::default();
        for (address, name) in names {
            by_address.insert(address.extract::<usize>()?, Arc::from(name.extract::<String>()?));
        }
        let mut plain = Vec::new();
        for name in ["dtype", "device", "memory_format", "layout"] {
            plain.push(class("torch", name)?);
        }
        plain.push(class("builtins", "ellipsis").or_else(|_| class("types", "EllipsisType"))?);
        plain.push(class("types", "NotImplementedType")?);
        plain.extend(class("torch.nn.attention", "SDPBackend").ok());
        let mut descriptors = Vec::new();
        for (name, kind) in [
            ("MemberDescriptorType", "slot"),
            ("GetSetDescriptorType", "slot"),
            ("MethodDescriptorType", "method"),
            ("WrapperDescriptorType", "method"),
            ("ClassMethodDescriptorType", "method"),
        ] {
            descriptors.push((class("types", name)?, kind));
        }
        Ok(Library {
            tensor: class("torch", "Tensor")?,
            torch_module: class("torch.nn", "Module")?,
            size: class("torch", "Size")?,
            ordered_dict: class("collections", "OrderedDict")?,
            default_dict: class("collections", "defaultdict")?,
            counter: class("collections", "Counter")?,
            deque: class("collections", "deque")?,
            cached_property: class("functools", "cached_property")?,
            cached_function: class("functools", "_lru_cache_wrapper")?,
            partial: class("functools", "partial")?,
            enumeration: class("enum", "EnumMeta")?,
            abstract_class: class("abc", "ABCMeta")?,
            property: class("builtins", "property")?,
            method: class("types", "MethodType")?,
            method_wrapper: class("types", "MethodWrapperType")?,
            proxy: class("types", "MappingProxyType")?,
            operators: (class("torch._ops", "OpOverload")?, class("torch._ops", "OpOverloadPacket")?),
            numpy_scalar: class("numpy", "generic").ok(),
            numpy_array: class("numpy", "ndarray").ok(),
            numpy_type: class("numpy", "dtype").ok(),
            shares_memory: class("pyrite._arrays", "shares_memory")?,
            count: class("itertools", "count")?,
            next_count: class("pyrite._polyfills", "next_count")?,
            numpy_functions: [class("numpy", "sqrt"), class("numpy", "prod")]
                .into_iter()
                .flatten()
                .map(|function| function.bind(py).get_type().into_any().unbind())
                .collect(),
            plain,
            descriptors,
            names: by_address,
            _named: named.unbind(),
            polyfills: py.import("pyrite._polyfills")?.into_any().unbind(),
            torch: py.import("torch")?.unbind(),
            operator: py.import("operator")?.unbind(),
            skipped: table.call_method0("never_followed")?.extract()?,
            shim: Shim::get(py)?,
        })
    })
}

/// See [`Host`].
pub struct Python3<'py> {
    py: Python<'py>,
    keep: Rc<Keep>,
    library: &'static Library,
    members: RefCell<FxHashMap<(String, String), Option<Object>>>,
    codes: RefCell<FxHashMap<usize, Option<Rc<Code>>>>,
    storages: RefCell<FxHashMap<usize, StorageId>>,
    interned: Bound<'py, PyDict>,
    state: GlobalState,
}

impl<'py> Python3<'py> {
    /// A host that keeps what it names in `keep`.
    pub fn new(py: Python<'py>, keep: Rc<Keep>) -> PyResult<Self> {
        Ok(Self {
            py,
            keep,
            library: library(py)?,
            members: RefCell::default(),
            codes: RefCell::default(),
            storages: RefCell::default(),
            interned: PyDict::new(py),
            state: super::store::global_state(py)?,
        })
    }

    fn bound(&self, object: Object) -> Bound<'py, PyAny> {
        bound(self.py, object)
    }

    fn keep(&self, object: &Bound<'py, PyAny>) -> Object {
        self.keep.keep(object)
    }

    fn made(&self, result: PyResult<Bound<'py, PyAny>>) -> Made {
        match result {
            Ok(object) => Ok(self.keep(&object)),
            Err(error) => Err(Raised(self.keep(error.value(self.py).as_any()))),
        }
    }

    fn is_plain(&self, object: &Bound<'py, PyAny>) -> bool {
        matches!(self.kind_of(object), Kind::None | Kind::Bool | Kind::Int | Kind::Plain)
    }

    fn kind_of(&self, object: &Bound<'py, PyAny>) -> Kind {
        let library = self.library;
        if object.is_none() {
            return Kind::None;
        }
        if object.is_exact_instance_of::<PyBool>() {
            return Kind::Bool;
        }
        if object.is_exact_instance_of::<PyInt>() {
            return Kind::Int;
        }
        if object.is_exact_instance_of::<PyFloat>()
            || object.is_exact_instance_of::<PyString>()
            || object.is_exact_instance_of::<PyComplex>()
            || object.is_exact_instance_of::<PyBytes>()
            || object.is_exact_instance_of::<PyRange>()
        {
            return Kind::Plain;
        }
        if object.is_exact_instance_of::<PySlice>() {
            let parts = ["start", "stop", "step"].map(|name| object.getattr(name).is_ok_and(|p| self.is_plain(&p)));
            return if parts.iter().all(|plain| *plain) { Kind::Plain } else { Kind::Opaque };
        }
        let class = object.get_type();
        let is = |known: &Py<PyAny>| class.as_ptr() == known.as_ptr();
        if library.plain.iter().any(is) {
            return Kind::Plain;
        }
        if object.is_exact_instance_of::<PyTuple>() {
            return Kind::Tuple;
        }
        if object.is_exact_instance_of::<PyList>() {
            return Kind::List;
        }
        let dicts = [&library.ordered_dict, &library.default_dict, &library.counter];
        if object.is_exact_instance_of::<PyDict>() || dicts.into_iter().any(is) {
            return Kind::Dict;
        }
        if is(&library.deque) {
            return Kind::Deque;
        }
        if is(&library.proxy) {
            return Kind::Proxy;
        }
        if object.is_exact_instance_of::<PySet>() {
            return Kind::Set;
        }
        if object.is_exact_instance_of::<PyFrozenSet>() {
            return Kind::FrozenSet;
        }
        self.kind_by_class(object, &class)
    }

    fn kind_by_class(&self, object: &Bound<'py, PyAny>, class: &Bound<'py, PyType>) -> Kind {
        let library = self.library;
        let raw = object.as_ptr();
        let instance_of = |known: &Py<PyAny>| object.is_instance(known.bind(self.py)).unwrap_or(false);
        let is_class = |known: &Py<PyAny>| class.is(known.bind(self.py));
        let class_is = |known: &Py<PyAny>| {
            // SAFETY: both are live classes.
            unsafe { ffi::PyType_IsSubtype(class.as_type_ptr(), known.as_ptr().cast()) != 0 }
        };
        if class_is(&library.tensor) {
            return if library.shim.describe(object).is_ok_and(|d| captured_dtype(d.dtype).is_some()) {
                Kind::Tensor
            } else {
                Kind::TensorSubclass
            };
        }
        // SAFETY: the object is live.
        unsafe {
            if ffi::PyFunction_Check(raw) != 0 {
                return Kind::Function;
            }
            if ffi::PyType_Check(raw) != 0 {
                return Kind::Class;
            }
            if ffi::PyModule_Check(raw) != 0 {
                return Kind::Module;
            }
            if ffi::PyGen_Check(raw) != 0 {
                return Kind::Generator;
            }
        }
        if object.is_instance_of::<PyCFunction>() || library.descriptors.iter().any(|(known, _)| instance_of(known)) {
            return Kind::Builtin;
        }
        if class.is(library.method_wrapper.bind(self.py)) {
            return Kind::Builtin;
        }
        if class.is(library.cached_function.bind(self.py)) || library.numpy_functions.iter().any(class_is) {
            return Kind::Builtin;
        }
        if class.is(library.method.bind(self.py)) {
            return Kind::Method;
        }
        if class_is(&library.torch_module) {
            return Kind::TorchModule;
        }
        if let Some(kind) = self.container(class.as_type_ptr()) {
            return kind;
        }
        if class.is(library.partial.bind(self.py)) {
            return Kind::Partial;
        }
        if class.is(library.operators.0.bind(self.py)) || class.is(library.operators.1.bind(self.py)) {
            return Kind::Builtin;
        }
        if library.numpy_array.as_ref().is_some_and(is_class) {
            let shares = library.shares_memory.bind(self.py).call1((object,));
            return if shares.is_ok_and(|shares| shares.is_truthy().unwrap_or(false)) {
                Kind::Array
            } else {
                Kind::Opaque
            };
        }
        if class.get_type().is_subclass(library.enumeration.bind(self.py)).unwrap_or(false)
            || library.numpy_scalar.as_ref().is_some_and(class_is)
            || library.numpy_type.as_ref().is_some_and(class_is)
        {
            return Kind::Plain;
        }
        if let Some(base) = value_base(self.py, class.as_type_ptr()) {
            let frozen = std::ptr::eq(base, &raw mut ffi::PyFrozenSet_Type);
            return if frozen { Kind::FrozenSet } else { Kind::Plain };
        }
        let tuple = self.py.get_type::<PyTuple>();
        if class.is_subclass(&tuple).unwrap_or(false) {
            let named = class.is(library.size.bind(self.py))
                || class.hasattr("_fields").unwrap_or(false)
                || class.hasattr("n_sequence_fields").unwrap_or(false);
            // SAFETY: the class is live.
            let heap = unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) } & ffi::Py_TPFLAGS_HEAPTYPE != 0;
            return if named || heap { Kind::NamedTuple } else { Kind::Opaque };
        }
        let name = class.name().map(|name| name.to_string()).unwrap_or_default();
        if class.is(library.count.bind(self.py)) {
            let next = library.next_count.bind(self.py).call1((object,));
            return if next.is_ok_and(|next| !next.is_none()) { Kind::Count } else { Kind::Opaque };
        }
        if iterators(self.py).of(class.as_type_ptr()).is_some() {
            return if remaining_count(object).is_some() { Kind::Iterator } else { Kind::Opaque };
        }
        // SAFETY: the class is live.
        let heap = unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) } & ffi::Py_TPFLAGS_HEAPTYPE != 0;
        let container = ["list", "dict", "set", "frozenset", "str", "int", "float", "bytes", "BaseException", "type"];
        // SAFETY: the object is live.
        let exception = unsafe { ffi::PyExceptionInstance_Check(raw) } != 0;
        let derived = !exception
            && container.iter().any(|name| {
                let known = self.py.import("builtins").and_then(|builtins| builtins.getattr(*name));
                known.is_ok_and(|known| class.is_subclass(&known).unwrap_or(false))
            });
        let python_made = heap
            && class.hasattr("__module__").unwrap_or(false)
            && class.getattr("__dict__").is_ok_and(|d| {
                d.contains("__dict__").unwrap_or(false)
                    || d.contains("__slots__").unwrap_or(false)
                    || d.contains("__weakref__").unwrap_or(false)
                    || class.getattr("__mro__").and_then(|mro| mro.len()).is_ok_and(|length| length > 2)
            });
        if !heap && exception {
            return Kind::Exception;
        }
        let record = || {
            class_is(&library.ordered_dict)
                && ["__dataclass_fields__", "to_tuple"].iter().all(|name| class.hasattr(*name).unwrap_or(false))
        };
        // Numbers and texts with operators of their own.
        let valued = || {
            let bases = [&raw mut ffi::PyLong_Type, &raw mut ffi::PyFloat_Type, &raw mut ffi::PyUnicode_Type];
            // SAFETY: the classes are live.
            unsafe {
                ffi::Py_TYPE(class.as_ptr()) == &raw mut ffi::PyType_Type
                    && bases.into_iter().any(|base| ffi::PyType_IsSubtype(class.as_type_ptr(), base) != 0)
            }
        };
        let instance = (python_made || &*name == "SimpleNamespace") && (!derived || record() || valued());
        if instance { Kind::Instance } else { Kind::Opaque }
    }

    /// Whether a function is an operator that is not torch's own.
    fn is_custom(&self, function: Object) -> bool {
        let name = self.qualified_name(function);
        name.is_some_and(|name| name.starts_with("torch.ops.") && !name.starts_with("torch.ops.aten."))
    }

    /// What instances of a class of the user's are that is derived from `list`, `dict`, `OrderedDict`, `defaultdict`,
    /// `deque` or `set`. What it has instead of their methods is looked up where they are called.
    fn container(&self, class: *mut ffi::PyTypeObject) -> Option<Kind> {
        // SAFETY: the class is live, and so are the bases.
        unsafe {
            let flags = ffi::PyType_GetFlags(class);
            let ordered = self.library.ordered_dict.as_ptr().cast::<ffi::PyTypeObject>();
            let deque = self.library.deque.as_ptr().cast::<ffi::PyTypeObject>();
            if flags & ffi::Py_TPFLAGS_HEAPTYPE == 0 {
                return None;
            }
            let lookup = |class: *mut ffi::PyTypeObject, name: &str| {
                super::objects::_PyType_Lookup(class, PyString::intern(self.py, name).as_ptr())
            };
            let same = |base: *mut ffi::PyTypeObject, name: &str| lookup(class, name) == lookup(base, name);
            let set = &raw mut ffi::PySet_Type;
            let (base, kind) = if flags & ffi::Py_TPFLAGS_LIST_SUBCLASS != 0 {
                (&raw mut ffi::PyList_Type, Kind::List)
            } else if flags & ffi::Py_TPFLAGS_DICT_SUBCLASS != 0 {
                // Records of named fields, as transformers returns them, are described otherwise.
                let record = ["__dataclass_fields__", "to_tuple"].iter().all(|name| !lookup(class, name).is_null());
                if record {
                    return None;
                }
                let defaulted = self.library.default_dict.as_ptr().cast::<ffi::PyTypeObject>();
                let base = [ordered, defaulted].into_iter().find(|base| ffi::PyType_IsSubtype(class, *base) != 0);
                (base.unwrap_or(&raw mut ffi::PyDict_Type), Kind::Dict)
            } else if ffi::PyType_IsSubtype(class, deque) != 0 {
                (deque, Kind::Deque)
            } else if ffi::PyType_IsSubtype(class, set) != 0 && same(set, "__iter__") {
                (set, Kind::Set)
            } else {
                return None;
            };
            let usual = ["__getattribute__", "__del__", "__class_getitem__"].iter().all(|name| same(base, name));
            let metaclass = ffi::Py_TYPE(class.cast());
            let known = metaclass == &raw mut ffi::PyType_Type
                || metaclass.cast::<ffi::PyObject>() == self.library.abstract_class.as_ptr();
            (usual && known && class != base).then_some(kind)
        }
    }

    /// A value with tensors that have no data.
    fn without_data(&self, value: &Value<Meta>, nested: &BTreeMap<Arc<str>, Graph>) -> PyResult<Bound<'py, PyAny>> {
        let unknown = || PyTypeError::new_err("an argument whose sizes are symbols, or that is not a plain value");
        Ok(match value {
            Value::Tensor(meta) => {
                let numbers = |sizes: &[SymInt]| sizes.iter().map(SymInt::as_int).collect::<Option<Vec<i64>>>();
                let shape = numbers(&meta.shape).ok_or_else(unknown)?;
                let stride = numbers(&meta.stride).ok_or_else(unknown)?;
                let torch = self.library.torch.bind(self.py);
                let options = PyDict::new(self.py);
                options.set_item("dtype", torch.getattr(dtype_name(meta.dtype))?)?;
                options.set_item("device", "meta")?;
                torch.getattr("empty_strided")?.call((shape, stride), Some(&options))?
            }
            Value::List(items) => {
                let items = items.iter().map(|item| self.without_data(item, nested)).collect::<PyResult<Vec<_>>>()?;
                PyList::new(self.py, items)?.into_any()
            }
            Value::Graph(name) => {
                let graph = nested.get(name).ok_or_else(unknown)?;
                Bound::new(self.py, TorchProgram::new(self.py, graph)?)?.into_any()
            }
            plain => {
                let plain = plain.try_map(&mut |_: &Meta| Err(()));
                let object = plain.ok().and_then(|plain| self.object_of(&plain));
                self.bound(object.ok_or_else(unknown)?)
            }
        })
    }

    /// A value as torch's parser of arguments is shown it: tensors are replaced by ones that compute nothing.
    fn stood_in(&self, value: &Value<Meta>, stand_in: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match value {
            Value::Tensor(meta) => {
                let dtype = self.library.torch.bind(self.py).getattr(dtype_name(meta.dtype))?;
                stand_in.call1((dtype, meta.rank() == 0))
            }
            Value::List(items) => {
                let items = items.iter().map(|item| self.stood_in(item, stand_in)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(self.py, items)?.into_any())
            }
            plain => self.without_data(plain, &BTreeMap::new()),
        }
    }

    /// What a call on tensors without data has given.
    fn given(&self, given: &Bound<'py, PyAny>) -> PyResult<Given> {
        if let Some(meta) = self.meta_of(given)? {
            return Ok(Given::Tensor(Box::new(meta)));
        }
        let other = || PyTypeError::new_err("it returns a value that is not a tensor");
        let items = |given: &Bound<'py, PyAny>| -> PyResult<Vec<Value<Meta>>> {
            given.try_iter()?.map(|item| self.meta_of(&item?)?.map(Value::Tensor).ok_or_else(other)).collect()
        };
        if given.is_exact_instance_of::<PyList>() {
            return Ok(Given::List(items(given)?));
        }
        if !given.is_instance_of::<PyTuple>() {
            return Err(other());
        }
        let class = given.get_type();
        let class = (!given.is_exact_instance_of::<PyTuple>()).then(|| self.keep(class.as_any()));
        // Tensors may stand in tuples inside of it, as the states of recurrent networks do.
        let nested = given.try_iter()?.map(|item| {
            let item = item?;
            match self.meta_of(&item)? {
                Some(meta) => Ok(Value::Tensor(meta)),
                None if item.is_exact_instance_of::<PyTuple>() => items(&item).map(Value::List),
                None => Err(other()),
            }
        });
        Ok(Given::Tuple(nested.collect::<PyResult<_>>()?, class))
    }

    /// What is known of a tensor without data; nothing for other objects.
    fn meta_of(&self, object: &Bound<'py, PyAny>) -> PyResult<Option<Meta>> {
        if !object.is_instance(self.library.tensor.bind(self.py))? {
            return Ok(None);
        }
        let numbers = |numbers: Vec<i64>| numbers.into_iter().map(SymInt::Int).collect::<pyrite_ir::SymDims>();
        let shape = numbers(object.getattr("shape")?.extract()?);
        let stride = numbers(object.call_method0("stride")?.extract()?);
        let dtype = object.getattr("dtype")?;
        let torch = self.library.torch.bind(self.py);
        let known = DTYPES.iter().find(|(_, name)| torch.getattr(*name).is_ok_and(|known| known.is(&dtype)));
        let (dtype, _) = known.ok_or_else(|| PyTypeError::new_err("a tensor of a type that Pyrite does not have"))?;
        Ok(Some(Meta::strided(&shape, &stride, *dtype)))
    }

    fn objects(&self, items: Vec<Bound<'py, PyAny>>) -> Vec<Object> {
        items.iter().map(|item| self.keep(item)).collect()
    }

    fn decode(&self, code: &Bound<'py, PyAny>) -> PyResult<Option<Rc<Code>>> {
        decode_code(code, &self.keep)
    }
}

/// A code object, decoded; `None` when an instruction is unknown.
pub fn decode_code(code: &Bound<'_, PyAny>, keep: &Keep) -> PyResult<Option<Rc<Code>>> {
    let texts = |name: &str| -> PyResult<Vec<Rc<str>>> {
        let names: Vec<String> = code.getattr(name)?.extract()?;
        Ok(names.into_iter().map(Rc::from).collect())
    };
    let text = |name: &str| -> PyResult<Rc<str>> { Ok(Rc::from(code.getattr(name)?.extract::<String>()?)) };
    let number = |name: &str| -> PyResult<usize> { code.getattr(name)?.extract() };
    let mut lines = Vec::new();
    for range in code.call_method0("co_lines")?.try_iter()? {
        let (start, end, line): (u32, u32, Option<u32>) = range?.extract()?;
        lines.push((start, end, line.unwrap_or(0)));
    }
    let Some(version) = Version::of(code.py().version_info().minor) else { return Ok(None) };
    let raw = RawCode {
        version,
        code: code.getattr("co_code")?.extract()?,
        exceptions: code.getattr("co_exceptiontable")?.extract()?,
        lines,
    };
    let Some((instructions, protected)) = decode(&raw) else { return Ok(None) };
    let mut consts = Vec::new();
    for constant in code.getattr("co_consts")?.try_iter()? {
        consts.push(keep.keep(&constant?));
    }
    Ok(Some(Rc::new(Code {
        version,
        object: keep.keep(code),
        instructions,
        protected,
        consts,
        names: texts("co_names")?,
        locals: texts("co_varnames")?,
        cells: texts("co_cellvars")?,
        free: texts("co_freevars")?,
        positional: number("co_argcount")?,
        positional_only: number("co_posonlyargcount")?,
        keyword_only: number("co_kwonlyargcount")?,
        flags: code.getattr("co_flags")?.extract()?,
        stack_size: number("co_stacksize")?,
        first_line: code.getattr("co_firstlineno")?.extract()?,
        name: text("co_name")?,
        qualified_name: text("co_qualname")?,
        file: text("co_filename")?,
    })))
}

/// An item that an iterator has not given out yet, without advancing it: a new reference, or null.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn iterator_item(iterator: Raw, index: usize) -> Raw {
    // SAFETY: the caller gives a live object and holds the interpreter.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: as above.
    let iterator = unsafe { Bound::from_borrowed_ptr(py, iterator) };
    let item = remaining(&iterator).and_then(|items| items.get_item(index).ok());
    item.map_or(std::ptr::null_mut(), Bound::into_ptr)
}

/// How many items a container of Python's own has, or one of its iterators has not given out yet; -1 for other objects,
/// whose own code would have to say it.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn length_of(object: Raw) -> isize {
    // SAFETY: the caller gives a live object and holds the interpreter.
    let object = unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), object) };
    let class = object.get_type().as_type_ptr();
    let known = iterators(object.py());
    if known.of(class).is_some() {
        return remaining_count(&object).map_or(-1, |count| count as isize);
    }
    // SAFETY: the object is live; the length of a deque is told by C code, whatever a class that is derived from it says.
    let of_deque = unsafe { deque_methods(&object).and_then(|methods| (*methods).sq_length) };
    if let Some(length) = of_deque {
        // SAFETY: the object is a deque.
        return unsafe { length(object.as_ptr()) };
    }
    // SAFETY: the object is live; the length of a set is told by C code.
    let native = unsafe { ffi::PyAnySet_CheckExact(object.as_ptr()) } != 0;
    if native { object.len().map_or(-1, |length| length as isize) } else { -1 }
}

/// What `deque` itself does as a sequence, where an object is a deque, of a derived class or not.
fn deque_methods(object: &Bound<'_, PyAny>) -> Option<*mut ffi::PySequenceMethods> {
    let deque = iterators(object.py()).deque as *mut ffi::PyTypeObject;
    // SAFETY: both are live classes, if there is a deque at all.
    unsafe {
        let is_deque = !deque.is_null() && ffi::PyType_IsSubtype(object.get_type().as_type_ptr(), deque) != 0;
        is_deque.then(|| (*deque).tp_as_sequence).filter(|methods| !methods.is_null())
    }
}

/// Whether an object is a deque, of a derived class or not: such classes have a slot for `__next__`, which only raises.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn is_deque(object: Raw) -> bool {
    // SAFETY: the caller gives a live object and holds the interpreter.
    let object = unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), object) };
    deque_methods(&object).is_some()
}

/// An item of a sequence that is no tuple and no list; a new reference, or null with an exception.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn sequence_item(sequence: Raw, index: usize) -> Raw {
    // SAFETY: the caller gives a live object and holds the interpreter.
    unsafe {
        let object = Bound::from_borrowed_ptr(Python::assume_attached(), sequence);
        match deque_methods(&object).and_then(|methods| (*methods).sq_item) {
            Some(item) => item(sequence, index as isize),
            None => ffi::PySequence_GetItem(sequence, index as isize),
        }
    }
}

/// Longer iterators are not looked into.
const MANY: usize = 64;

/// How an iterator of Python's own can be looked into without advancing it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iterates {
    /// It says what it goes over, and where it stands.
    Sequence,
    /// The same, from the end on.
    Reversed,
    /// It gives a list of what it has not given out yet.
    Dict,
    Zip,
    Enumerate,
}

/// The classes of iterators of Python's own, by their addresses: a class of the user's may have the same name.
struct Iterators {
    known: Vec<(usize, Iterates)>,
    deque: usize,
}

impl Iterators {
    fn of(&self, class: *mut ffi::PyTypeObject) -> Option<Iterates> {
        self.known.iter().find(|(known, _)| *known == class as usize).map(|(_, iterates)| *iterates)
    }
}

static ITERATORS: PyOnceLock<Iterators> = PyOnceLock::new();

fn iterators(py: Python<'_>) -> &'static Iterators {
    ITERATORS.get_or_init(py, || {
        const MADE: [(&str, Iterates); 9] = [
            ("iter([])", Iterates::Sequence),
            ("iter(())", Iterates::Sequence),
            ("iter(range(0))", Iterates::Sequence),
            ("reversed([])", Iterates::Reversed),
            ("iter({})", Iterates::Dict),
            ("iter({}.values())", Iterates::Dict),
            ("iter({}.items())", Iterates::Dict),
            ("zip()", Iterates::Zip),
            ("enumerate([])", Iterates::Enumerate),
        ];
        let class = |text: &str| -> Option<usize> {
            let text = std::ffi::CString::new(text).ok()?;
            Some(py.eval(&text, None, None).ok()?.get_type().as_type_ptr() as usize)
        };
        let known = MADE.iter().filter_map(|(text, iterates)| Some((class(text)?, *iterates))).collect();
        let deque = py.import("collections").and_then(|module| module.getattr("deque"));
        Iterators { known, deque: deque.map_or(0, |deque| deque.as_ptr() as usize) }
    })
}

/// What an iterator of Python's own says it would be made again from.
fn reduced<'py>(iterator: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    iterator.call_method0("__reduce__").ok()?.cast_into::<PyTuple>().ok()
}

/// The iterators that a `zip` or `enumerate` goes over; nothing for others.
fn inner_iterators<'py>(iterator: &Bound<'py, PyAny>) -> Option<(Vec<Bound<'py, PyAny>>, Bound<'py, PyAny>)> {
    let class = iterator.get_type();
    match iterators(iterator.py()).of(class.as_type_ptr())? {
        Iterates::Zip => {
            let inner = reduced(iterator)?.get_item(1).ok()?.try_iter().ok()?.collect::<PyResult<Vec<_>>>().ok()?;
            Some((inner, class.into_any()))
        }
        Iterates::Enumerate => {
            let parts = reduced(iterator)?.get_item(1).ok()?;
            Some((vec![parts.get_item(0).ok()?], parts.get_item(1).ok()?))
        }
        _ => None,
    }
}

/// How many items an iterator has not given out yet, if it can be looked into.
fn remaining_count(iterator: &Bound<'_, PyAny>) -> Option<usize> {
    let known = iterators(iterator.py());
    let count = if let Some((inner, _)) = inner_iterators(iterator) {
        let simple =
            |inner: &Bound<'_, PyAny>| known.of(inner.get_type().as_type_ptr()).and_then(|_| remaining_count(inner));
        let counts = inner.iter().map(simple).collect::<Option<Vec<usize>>>()?;
        // One that is strict, which it says in a third part, raises in the end unless all are equally long.
        let strict = reduced(iterator).is_some_and(|parts| parts.len() > 2);
        if strict && counts.iter().any(|count| *count != counts[0]) {
            return None;
        }
        counts.into_iter().min()?
    } else {
        let count = iterator.call_method0("__length_hint__").ok()?.extract().ok()?;
        if count > MANY || remaining(iterator)?.len() != count {
            return None;
        }
        count
    };
    (count <= MANY).then_some(count)
}

/// The lists and tuples that an iterator goes over; nothing where it goes over a dictionary.
fn iterated_lists<'py>(iterator: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Some((inner, _)) = inner_iterators(iterator) {
        let lists = inner.iter().map(iterated_lists).collect::<Option<Vec<_>>>()?;
        return Some(lists.into_iter().flatten().collect());
    }
    match iterators(iterator.py()).of(iterator.get_type().as_type_ptr())? {
        Iterates::Sequence | Iterates::Reversed => {
            let over = reduced(iterator)?.get_item(1).ok()?;
            Some(over.try_iter().ok()?.flatten().collect())
        }
        _ => None,
    }
}

/// What an iterator has not given out yet; nothing when only code of the user's could tell.
fn remaining<'py>(iterator: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
    let py = iterator.py();
    if let Some((inner, start)) = inner_iterators(iterator) {
        let lists = inner.iter().map(remaining).collect::<Option<Vec<_>>>()?;
        let builtins = py.import("builtins").ok()?;
        let again = if start.is_instance_of::<PyInt>() {
            builtins.getattr("enumerate").ok()?.call1((&lists[0], start)).ok()?
        } else {
            builtins.getattr("zip").ok()?.call1(PyTuple::new(py, lists).ok()?).ok()?
        };
        let items: Vec<Bound<'py, PyAny>> = again.try_iter().ok()?.collect::<PyResult<_>>().ok()?;
        return PyList::new(py, items).ok();
    }
    let kind = iterators(py).of(iterator.get_type().as_type_ptr())?;
    let parts = reduced(iterator)?;
    let over = parts.get_item(1).ok()?;
    if over.len().ok()? == 0 {
        return Some(PyList::empty(py));
    }
    let over = over.get_item(0).ok()?;
    let place = parts.get_item(2).ok().and_then(|place| place.extract::<isize>().ok());
    let native = over.is_exact_instance_of::<PyList>()
        || over.is_exact_instance_of::<PyTuple>()
        || over.is_exact_instance_of::<PyRange>()
        || over.is_exact_instance_of::<PyString>();
    if !native {
        return None;
    }
    let items: Vec<Bound<'py, PyAny>> = over.try_iter().ok()?.collect::<PyResult<_>>().ok()?;
    let items: Vec<Bound<'py, PyAny>> = match (kind, place) {
        (Iterates::Reversed, Some(place)) => items.into_iter().take((place + 1).max(0) as usize).rev().collect(),
        (Iterates::Sequence, place) => items.into_iter().skip(place.unwrap_or(0).max(0) as usize).collect(),
        _ => items,
    };
    PyList::new(py, items).ok()
}

/// The class of Python's numbers, texts or frozen sets that a class of the user's is derived from; nothing where its objects
/// are computed with, compared or hashed in another way.
fn value_base(py: Python<'_>, class: *mut ffi::PyTypeObject) -> Option<*mut ffi::PyTypeObject> {
    /// Special names that do not change what Python does with a value.
    const HARMLESS: [&str; 14] = [
        "__module__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__new__",
        "__init__",
        "__slots__",
        "__annotations__",
        "__qualname__",
        "__orig_bases__",
        "__parameters__",
        "__static_attributes__",
        "__firstlineno__",
        "__init_subclass__",
    ];
    // SAFETY: the class and its bases are live.
    unsafe {
        if ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE == 0
            || ffi::Py_TYPE(class.cast()) != &raw mut ffi::PyType_Type
        {
            return None;
        }
        let bases = [
            &raw mut ffi::PyLong_Type,
            &raw mut ffi::PyFloat_Type,
            &raw mut ffi::PyUnicode_Type,
            &raw mut ffi::PyBytes_Type,
            &raw mut ffi::PyFrozenSet_Type,
        ];
        let base = bases.into_iter().find(|base| ffi::PyType_IsSubtype(class, *base) != 0)?;
        let mro = Bound::<PyAny>::from_borrowed_ptr(py, (*class).tp_mro);
        for owner in mro.try_iter().ok()? {
            let owner = owner.ok()?;
            if std::ptr::eq(owner.as_ptr().cast(), base) {
                return Some(base);
            }
            let names = owner.getattr("__dict__").ok()?;
            for name in names.try_iter().ok()? {
                let name: String = name.ok()?.extract().ok()?;
                if name.starts_with("__") && name.ends_with("__") && !HARMLESS.contains(&&*name) {
                    return None;
                }
            }
        }
        None
    }
}

impl Host for Python3<'_> {
    fn kind(&self, object: Object) -> Kind {
        self.kind_of(&self.bound(object))
    }

    fn class_of(&self, object: Object) -> Object {
        self.keep(self.bound(object).get_type().as_any())
    }

    fn describe(&self, object: Object) -> String {
        let bound = self.bound(object);
        let named = |attribute: &str| bound.getattr(attribute).and_then(|name| name.extract::<String>());
        match self.kind_of(&bound) {
            Kind::None | Kind::Bool | Kind::Int | Kind::Plain => {
                let text = bound.repr().map(|text| text.to_string()).unwrap_or_default();
                text.chars().take(60).collect()
            }
            Kind::Function | Kind::Class | Kind::Builtin | Kind::Module => {
                if let Some(name) = self.qualified_name(object) {
                    return name.to_string();
                }
                let module = named("__module__").unwrap_or_default();
                let name = named("__qualname__").or_else(|_| named("__name__")).unwrap_or_else(|_| "?".to_owned());
                if module.is_empty() { name } else { format!("{module}.{name}") }
            }
            _ => format!("an object of {}", self.class_name(self.class_of(object))),
        }
    }

    fn class_name(&self, class: Object) -> String {
        let class = self.bound(class);
        let text = |name: &str| class.getattr(name).and_then(|text| text.extract::<String>()).unwrap_or_default();
        format!("{}.{}", text("__module__"), text("__qualname__"))
    }

    fn none(&self) -> Object {
        self.keep(self.py.None().bind(self.py))
    }

    fn bool(&self, value: bool) -> Object {
        self.keep(PyBool::new(self.py, value).as_any())
    }

    fn int(&self, value: i64) -> Object {
        self.keep(PyInt::new(self.py, value).as_any())
    }

    fn str(&self, value: &str) -> Object {
        self.keep(PyString::intern(self.py, value).as_any())
    }

    fn tuple(&self, items: &[Object]) -> Object {
        let items = items.iter().map(|item| self.bound(*item));
        let items: Vec<_> = items.collect();
        PyTuple::new(self.py, items).map_or_else(|_| self.none(), |tuple| self.keep(tuple.as_any()))
    }

    fn slice(&self, parts: [Object; 3]) -> Object {
        // SAFETY: the parts are live; the result is a new reference.
        let slice = unsafe {
            let made = ffi::PySlice_New(parts[0].0 as Raw, parts[1].0 as Raw, parts[2].0 as Raw);
            Bound::from_owned_ptr(self.py, made)
        };
        self.keep(&slice)
    }

    fn member(&self, module: &str, name: &str) -> Option<Object> {
        let key = (module.to_owned(), name.to_owned());
        if let Some(known) = self.members.borrow().get(&key) {
            return *known;
        }
        let found = self.py.import(module).and_then(|module| module.getattr(name)).ok();
        let found = found.map(|object| self.keep(&object));
        self.members.borrow_mut().insert(key, found);
        found
    }

    fn polyfill(&self, name: &str) -> Option<Object> {
        if name.starts_with("numpy.") {
            let twin = self.py.import("pyrite._arrays").and_then(|arrays| arrays.call_method1("twin", (name,)));
            return twin.ok().filter(|twin| !twin.is_none()).map(|twin| self.keep(&twin));
        }
        let table = self.library.polyfills.bind(self.py).getattr("TABLE").ok()?;
        let found = table.cast::<PyDict>().ok()?.get_item(name).ok()??;
        Some(self.keep(&found))
    }

    fn as_int(&self, object: Object) -> Option<i64> {
        let object = self.bound(object);
        match self.kind_of(&object) {
            Kind::Int | Kind::Bool => object.extract().ok(),
            Kind::Plain if object.hasattr("__index__").unwrap_or(false) => object.extract().ok(),
            _ => None,
        }
    }

    fn as_str(&self, object: Object) -> Option<Rc<str>> {
        let object = self.bound(object);
        let text = object.cast_exact::<PyString>().ok()?;
        text.to_str().ok().map(Rc::from)
    }

    fn is_true(&self, object: Object) -> Result<bool, Raised> {
        let is_true = self.bound(object).is_truthy();
        is_true.map_err(|error| Raised(self.keep(error.value(self.py).as_any())))
    }

    fn to_graph(&self, object: Object) -> Option<Value<NodeId>> {
        let object = self.bound(object);
        Some(match self.kind_of(&object) {
            Kind::None => Value::None,
            Kind::Bool => Value::Bool(object.extract().ok()?),
            Kind::Int => Value::Int(SymInt::Int(object.extract().ok()?)),
            Kind::Plain => return self.plain_to_graph(&object),
            _ => return None,
        })
    }

    fn object_of(&self, value: &Value<NodeId>) -> Option<Object> {
        let torch = self.library.torch.bind(self.py);
        let made = match value {
            Value::None => return Some(self.none()),
            Value::Bool(value) => return Some(self.bool(*value)),
            Value::Int(value) => return Some(self.int(value.as_int()?)),
            Value::Float(value) => PyFloat::new(self.py, *value).into_any(),
            Value::Complex(value) => PyComplex::from_doubles(self.py, value.re, value.im).into_any(),
            Value::Str(value) => return Some(self.str(value)),
            Value::DType(dtype) => torch.getattr(dtype_name(*dtype)).ok()?,
            Value::Device(device) => torch.call_method1("device", (device.to_string(),)).ok()?,
            Value::Layout(name) => torch.getattr(&**name).ok()?,
            Value::MemoryFormat(format) => torch.getattr(format_name(*format)).ok()?,
            _ => return None,
        };
        Some(self.keep(&made))
    }

    fn call(&self, function: Object, args: &[Object], kwargs: &[(Object, Object)]) -> Made {
        let call = || {
            let args = PyTuple::new(self.py, args.iter().map(|arg| self.bound(*arg)).collect::<Vec<_>>())?;
            let named = PyDict::new(self.py);
            for (key, value) in kwargs {
                named.set_item(self.bound(*key), self.bound(*value))?;
            }
            self.bound(function).call(args, Some(&named))
        };
        self.made(call())
    }

    fn operator(&self, name: &str, args: &[Object]) -> Made {
        let call = || {
            let args = PyTuple::new(self.py, args.iter().map(|arg| self.bound(*arg)).collect::<Vec<_>>())?;
            self.library.operator.bind(self.py).getattr(name)?.call1(args)
        };
        self.made(call())
    }

    fn descriptor(&self, attribute: Object) -> Descriptor {
        let object = self.bound(attribute);
        let class = object.get_type();
        // SAFETY: the object is live.
        if unsafe { ffi::PyFunction_Check(object.as_ptr()) } != 0 {
            return Descriptor::Function;
        }
        if class.is(self.library.property.bind(self.py)) {
            return match object.getattr("fget") {
                Ok(getter) if !getter.is_none() => Descriptor::Property(self.keep(&getter)),
                _ => Descriptor::Other,
            };
        }
        let name = class.name().map(|name| name.to_string()).unwrap_or_default();
        let inner = |of: &Bound<'_, PyAny>| of.getattr("__func__").ok().map(|f| self.keep.keep(&f));
        match &*name {
            "classmethod" => return inner(&object).map_or(Descriptor::Other, Descriptor::ClassMethod),
            "cached_property" if class.is(self.library.cached_property.bind(self.py)) => {
                let function = object.getattr("func").map(|function| self.keep(&function));
                return function.map_or(Descriptor::Other, Descriptor::CachedProperty);
            }
            "staticmethod" => return inner(&object).map_or(Descriptor::Other, Descriptor::StaticMethod),
            _ => {}
        }
        for (known, kind) in &self.library.descriptors {
            if class.is(known.bind(self.py)) {
                return if *kind == "slot" { Descriptor::Slot } else { Descriptor::BuiltinMethod };
            }
        }
        // SAFETY: the class is live.
        let (has_get, has_set) = unsafe {
            let class = &*class.as_type_ptr();
            (class.tp_descr_get.is_some(), class.tp_descr_set.is_some())
        };
        let class = self.keep(class.as_any());
        let in_python = |name: &str| {
            let found = self.class_attribute(class, name);
            // SAFETY: what a class has is live.
            found.is_some_and(|found| unsafe { ffi::PyFunction_Check(found.0 as Raw) } != 0)
        };
        if !has_get && !has_set {
            Descriptor::Value
        } else if in_python("__get__") && self.kind(attribute) == Kind::Instance {
            Descriptor::Custom(if has_set { Precedence::Descriptor } else { Precedence::Instance })
        } else {
            Descriptor::Other
        }
    }

    fn fields(&self, class: Object) -> Vec<Rc<str>> {
        let class = self.bound(class);
        let names = class.getattr("_fields").or_else(|_| class.getattr("__match_args__"));
        let names = names.and_then(|names| names.extract::<Vec<String>>()).unwrap_or_default();
        names.into_iter().map(Rc::from).collect()
    }

    fn intern(&self, key: Object) -> Option<Object> {
        let key = self.bound(key);
        let known = self.interned.call_method1("setdefault", (&key, &key));
        known.ok().map(|known| self.keep(&known))
    }

    fn is_value_class(&self, class: Object) -> bool {
        value_base(self.py, class.0 as *mut ffi::PyTypeObject).is_some()
    }

    fn container_kind(&self, class: Object) -> Option<Kind> {
        self.container(class.0 as *mut ffi::PyTypeObject)
    }

    fn code(&self, code: Object) -> Option<Rc<Code>> {
        if let Some(known) = self.codes.borrow().get(&code.0) {
            return known.clone();
        }
        let decoded = self.decode(&self.bound(code)).ok().flatten();
        self.codes.borrow_mut().insert(code.0, decoded.clone());
        decoded
    }

    fn builtin_receiver(&self, function: Object) -> Option<Object> {
        let receiver = self.bound(function).getattr("__self__").ok()?;
        (!receiver.is_none()).then(|| self.keep(&receiver))
    }

    fn qualified_name(&self, function: Object) -> Option<Arc<str>> {
        if let Some(name) = self.library.names.get(&function.0) {
            return Some(name.clone());
        }
        let object = self.bound(function);
        let class = object.get_type();
        if class.is(self.library.operators.0.bind(self.py)) || class.is(self.library.operators.1.bind(self.py)) {
            return Some(format!("torch.ops.{}", object.str().ok()?).into());
        }
        None
    }

    fn may_inline(&self, code: &Code) -> Result<(), String> {
        let listed = || self.library.skipped.iter().any(|prefix| code.file.starts_with(&**prefix));
        if !is_skipped(&code.file) && !listed() {
            return Ok(());
        }
        Err(format!("a call of {} in {}, which is not followed", code.qualified_name, code.file))
    }

    fn opaque_name(&self, function: Object) -> Option<Arc<str>> {
        allowed_name(function.0)
    }

    fn make_opaque(&self, function: Object) -> Arc<str> {
        let object = self.bound(function);
        let name = object.getattr("__name__").and_then(|name| name.extract::<String>()).unwrap_or_default();
        super::rules::allow_function(&object, &format!("pyrite.opaque.{name}"));
        allowed_name(function.0).unwrap_or_else(|| name.into())
    }

    fn describe_call(
        &self,
        function: Object,
        args: &[Value<Meta>],
        kwargs: &[(String, Value<Meta>)],
        nested: &BTreeMap<Arc<str>, Graph>,
    ) -> Result<Given, String> {
        let describe = || -> PyResult<Given> {
            let args = args.iter().map(|arg| self.without_data(arg, nested)).collect::<PyResult<Vec<_>>>()?;
            let named = PyDict::new(self.py);
            for (key, value) in kwargs {
                named.set_item(key, self.without_data(value, nested)?)?;
            }
            let helper = self.py.import("pyrite._opaque")?;
            let args = PyTuple::new(self.py, args)?;
            let is_nested = args.iter().any(|arg| arg.is_instance_of::<TorchProgram>());
            let theirs = self.opaque_name(function).is_some() || self.is_custom(function);
            let describe = match (is_nested, theirs) {
                (true, _) => "describe_nested",
                (false, true) => "describe_allowed",
                (false, false) => "describe",
            };
            let given = helper.call_method1(describe, (self.bound(function), args, named))?;
            self.given(&given)
        };
        describe().map_err(|error| error.to_string())
    }

    fn misparse_of(&self, function: Object, args: &[Value<Meta>], kwargs: &[(String, Value<Meta>)]) -> Option<Raised> {
        let ask = || -> PyResult<_> {
            let function = self.bound(function);
            let kind = function.get_type();
            if !matches!(&*kind.name()?.to_string_lossy(), "builtin_function_or_method" | "method_descriptor") {
                return Ok(None);
            }
            let shown = self.py.import("pyrite._opaque")?.getattr("stand_in")?;
            let args = args.iter().map(|arg| self.stood_in(arg, &shown)).collect::<PyResult<Vec<_>>>()?;
            let named = PyDict::new(self.py);
            for (key, value) in kwargs {
                named.set_item(key, self.stood_in(value, &shown)?)?;
            }
            let refused = function.call(PyTuple::new(self.py, args)?, Some(&named)).err();
            Ok(refused.filter(|error| error.is_instance_of::<PyTypeError>(self.py)))
        };
        let raised = ask().ok().flatten()?;
        raised.set_traceback(self.py, None);
        Some(Raised(self.keep(raised.value(self.py).as_any())))
    }

    fn refusal_of(&self, function: Object, args: &[Value<Meta>], kwargs: &[(String, Value<Meta>)]) -> Option<Raised> {
        let ask = || -> PyResult<_> {
            let nested = BTreeMap::new();
            let args = args.iter().map(|arg| self.without_data(arg, &nested)).collect::<PyResult<Vec<_>>>()?;
            let named = PyDict::new(self.py);
            for (key, value) in kwargs {
                named.set_item(key, self.without_data(value, &nested)?)?;
            }
            let args = PyTuple::new(self.py, args)?;
            self.py.import("pyrite._opaque")?.call_method1("refusal", (self.bound(function), args, named))
        };
        let raised = ask().ok().filter(|raised| !raised.is_none())?;
        Some(Raised(self.keep(&raised)))
    }

    fn hashes_plainly(&self, object: Object) -> bool {
        let bound = self.bound(object);
        // SAFETY: the classes are live.
        let (own, identity, heap) = unsafe {
            let class = bound.get_type().as_type_ptr();
            let heap = ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE != 0;
            let base = &raw const ffi::PyBaseObject_Type;
            let address = |function: Option<ffi::hashfunc>| function.map(|function| function as usize);
            let compares = |class: *const ffi::PyTypeObject| (*class).tp_richcompare.map(|function| function as usize);
            let identity = address((*class).tp_hash) == address((*base).tp_hash) && compares(class) == compares(base);
            ((*class).tp_hash, identity, heap)
        };
        if identity || bound.is_instance_of::<PyType>() {
            return true;
        }
        if let Ok(items) = bound.cast_exact::<PyTuple>() {
            return items.iter().all(|item| self.hashes_plainly(self.keep(&item)));
        }
        if let Ok(items) = bound.cast_exact::<PyFrozenSet>() {
            return items.iter().all(|item| self.hashes_plainly(self.keep(&item)));
        }
        let member = matches!(self.kind_of(&bound), Kind::Plain | Kind::Tensor | Kind::TorchModule);
        own.is_some() && (!heap || member)
    }

    fn derives(&self, class: Object, base: Object) -> bool {
        // SAFETY: both are live; anything that is not a class derives from nothing.
        unsafe {
            ffi::PyType_Check(class.0 as Raw) != 0
                && ffi::PyType_Check(base.0 as Raw) != 0
                && ffi::PyType_IsSubtype(class.0 as *mut ffi::PyTypeObject, base.0 as *mut ffi::PyTypeObject) != 0
        }
    }
}

impl World for Python3<'_> {
    fn attribute(&self, object: Object, name: &str) -> Made {
        let found = self.bound(object).getattr(name).map(|found| {
            // The name of a built-in class is a new text whenever it is asked for; one text is one object here.
            let text = found.cast_exact::<PyString>().ok().and_then(|text| text.to_str().ok());
            text.map_or_else(|| found.clone(), |text| PyString::intern(self.py, text).into_any())
        });
        self.made(found)
    }

    fn class_attribute(&self, class: Object, name: &str) -> Option<Object> {
        let name = PyString::intern(self.py, name);
        // SAFETY: the class is live, the result is borrowed from it.
        let found = unsafe { super::objects::_PyType_Lookup(class.0 as *mut ffi::PyTypeObject, name.as_ptr()) };
        if found.is_null() {
            // SAFETY: an error may have been set by a failed lookup.
            unsafe { ffi::PyErr_Clear() };
            return None;
        }
        // SAFETY: as above.
        Some(self.keep(&unsafe { Bound::from_borrowed_ptr(self.py, found) }))
    }

    fn class_attribute_after(&self, object_of: Object, class: Object, name: &str) -> Option<Object> {
        let order = self.bound(object_of).getattr("__mro__").ok()?;
        let order = order.cast::<PyTuple>().ok()?;
        let place = order.iter().position(|base| base.as_ptr() as usize == class.0)?;
        for base in order.iter().skip(place + 1) {
            let found = base.getattr("__dict__").and_then(|dict| dict.get_item(name));
            if let Ok(found) = found {
                return Some(self.keep(&found));
            }
        }
        None
    }

    fn instance_dict(&self, object: Object) -> Option<Object> {
        // SAFETY: the object is live; a new reference or null with an error.
        unsafe {
            let dict = ffi::PyObject_GenericGetDict(object.0 as Raw, std::ptr::null_mut());
            if dict.is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            Some(self.keep(&Bound::from_owned_ptr(self.py, dict)))
        }
    }

    fn dict_item(&self, dict: Object, name: &str) -> Option<Object> {
        let dict = self.bound(dict);
        let found = dict.cast::<PyDict>().ok()?.get_item(PyString::intern(self.py, name)).ok()??;
        Some(self.keep(&found))
    }

    fn entries(&self, dict: Object) -> Vec<(Object, Object)> {
        let dict = self.bound(dict);
        let Ok(dict) = dict.cast::<PyDict>() else { return Vec::new() };
        if let Some(pairs) = super::guards::ordered_keys(dict.as_any()) {
            // An ordered dictionary has an order of its own.
            let pairs =
                pairs.into_iter().filter_map(|key| Some((self.keep(&key), self.keep(&dict.get_item(&key).ok()??))));
            return pairs.collect();
        }
        dict.iter().map(|(key, value)| (self.keep(&key), self.keep(&value))).collect()
    }

    fn items(&self, object: Object) -> Vec<Object> {
        let object = self.bound(object);
        if self.kind_of(&object) == Kind::Iterator {
            return remaining(&object).map(|items| self.objects(items.iter().collect())).unwrap_or_default();
        }
        // As Python's own class iterates, whatever a class that is derived from it says.
        let native = match self.kind_of(&object) {
            Kind::List => Some(self.py.get_type::<PyList>().into_any()),
            Kind::Deque => Some(self.library.deque.bind(self.py).clone()),
            _ => None,
        };
        let iterator = match native {
            Some(class) => class.call_method1("__iter__", (&object,)).and_then(|iterator| iterator.try_iter()),
            None => object.try_iter(),
        };
        let items = iterator.and_then(std::iter::Iterator::collect::<PyResult<Vec<_>>>);
        items.map(|items| self.objects(items)).unwrap_or_default()
    }

    fn is_subclass(&self, class: Object, base: Object) -> bool {
        // SAFETY: both are live.
        let answer = unsafe { ffi::PyObject_IsSubclass(class.0 as Raw, base.0 as Raw) };
        if answer < 0 {
            // SAFETY: an error is set.
            unsafe { ffi::PyErr_Clear() };
        }
        answer == 1
    }

    fn function(&self, function: Object) -> Option<FunctionParts> {
        let function = self.bound(function);
        let attribute = |name: &str| function.getattr(name).ok();
        let items = |name: &str| -> Vec<Object> {
            let held = attribute(name).filter(|held| !held.is_none());
            held.and_then(|held| held.try_iter().ok().map(|items| items.flatten().collect::<Vec<_>>()))
                .map(|items| self.objects(items))
                .unwrap_or_default()
        };
        let keyword_defaults = attribute("__kwdefaults__").filter(|held| !held.is_none());
        Some(FunctionParts {
            code: self.keep(&attribute("__code__")?),
            globals: self.keep(&attribute("__globals__")?),
            builtins: self.keep(&attribute("__builtins__")?),
            defaults: items("__defaults__"),
            keyword_defaults: keyword_defaults.map(|d| self.entries(self.keep(&d))).unwrap_or_default(),
            closure: items("__closure__"),
        })
    }

    fn method(&self, method: Object) -> Option<(Object, Object)> {
        let method = self.bound(method);
        Some((self.keep(&method.getattr("__func__").ok()?), self.keep(&method.getattr("__self__").ok()?)))
    }

    fn partial(&self, partial: Object) -> Option<(Object, Vec<Object>, Vec<(Object, Object)>)> {
        let partial = self.bound(partial);
        let args = self.items(self.keep(&partial.getattr("args").ok()?));
        let kwargs = self.entries(self.keep(&partial.getattr("keywords").ok()?));
        Some((self.keep(&partial.getattr("func").ok()?), args, kwargs))
    }

    fn cell_contents(&self, cell: Object) -> Option<Object> {
        self.bound(cell).getattr("cell_contents").ok().map(|contents| self.keep(&contents))
    }

    fn tensor(&self, object: Object) -> Option<TensorFacts> {
        let tensor = self.bound(object);
        let described = self.library.shim.describe(&tensor).ok()?;
        let dtype = captured_dtype(described.dtype)?;
        let dims = |dims: &[i64]| dims.iter().map(|d| SymInt::Int(*d)).collect::<pyrite_ir::SymDims>();
        let mut meta = Meta::strided(&dims(described.sizes), &dims(described.strides), dtype);
        meta.offset = SymInt::Int(described.offset);
        meta.requires_grad = self.library.shim.requires_grad(&tensor);
        meta.is_leaf = tensor.getattr("is_leaf").and_then(|leaf| leaf.is_truthy()).unwrap_or(true);
        let start = (described.data as usize).wrapping_sub(described.offset as usize * dtype.size());
        if !described.data.is_null() && described.storage_bytes > 0 {
            meta.storage = *self.storages.borrow_mut().entry(start).or_insert_with(StorageId::fresh);
        }
        let parameter = self.library.shim.is_parameter(&tensor);
        let marked = |name: &str| -> Vec<usize> {
            let marks = tensor.getattr_opt(name).ok().flatten();
            let dims = marks.and_then(|marks| marks.try_iter().ok()).into_iter().flatten();
            dims.filter_map(|dim| dim.ok()?.extract().ok()).collect()
        };
        let never_static = marked("_dynamo_dynamic_indices");
        let marked_dynamic = [never_static.clone(), marked("_dynamo_weak_dynamic_indices")].concat();
        let marked_static = marked("_dynamo_static_indices");
        Some(TensorFacts { meta, parameter, marked_dynamic, marked_static, never_static })
    }

    fn context_variable(&self, variable: Object) -> Option<Object> {
        let mut value = std::ptr::null_mut();
        // SAFETY: the variable is live; a new reference is written, or null.
        unsafe {
            if ffi::PyContextVar_Get(variable.0 as Raw, std::ptr::null_mut(), &raw mut value) < 0 {
                ffi::PyErr_Clear();
                return None;
            }
            (!value.is_null()).then(|| self.keep(&Bound::from_owned_ptr(self.py, value)))
        }
    }

    fn global_state(&self) -> GlobalState {
        self.state
    }

    fn changes(&self, class: Object) -> Changes {
        // SAFETY: the class is live; a lookup gives it a version if it can have one.
        unsafe {
            let class = class.0 as *mut ffi::PyTypeObject;
            let flags = ffi::PyType_GetFlags(class);
            if flags & ffi::Py_TPFLAGS_HEAPTYPE == 0 || flags & ffi::Py_TPFLAGS_IMMUTABLETYPE != 0 {
                return Changes::Never;
            }
            let name = PyString::intern(self.py, "__class__");
            super::objects::_PyType_Lookup(class, name.as_ptr());
            match (*class).tp_version_tag {
                0 => Changes::Unnoticed,
                version => Changes::Version(version),
            }
        }
    }

    fn iterated(&self, iterator: Object) -> Option<Vec<Object>> {
        iterated_lists(&self.bound(iterator)).map(|lists| self.objects(lists))
    }

    fn proxied(&self, proxy: Object) -> Option<Object> {
        // SAFETY: the object is live.
        let shown = unsafe { super::guards::proxied(proxy.0 as Raw) };
        // SAFETY: what a proxy shows lives as long as the proxy.
        let shown = (!shown.is_null()).then(|| unsafe { Bound::from_borrowed_ptr(self.py, shown) })?;
        Some(self.keep(&shown))
    }
}

impl Python3<'_> {
    fn is_numpy_scalar(&self, object: &Bound<'_, PyAny>) -> bool {
        let scalar = self.library.numpy_scalar.as_ref();
        scalar.is_some_and(|scalar| object.is_instance(scalar.bind(self.py)).unwrap_or(false))
    }

    fn plain_to_graph(&self, object: &Bound<'_, PyAny>) -> Option<Value<NodeId>> {
        let class = object.get_type();
        if object.is_instance_of::<PyFloat>() && !self.is_numpy_scalar(object) {
            return object.extract().ok().map(Value::Float);
        }
        // A member of an enumeration of numbers.
        if object.is_instance_of::<PyInt>() {
            return object.extract::<i64>().ok().map(Value::from);
        }
        if let Ok(text) = object.cast_exact::<PyString>() {
            return Some(Value::from(text.to_str().ok()?));
        }
        if let Ok(text) = object.cast::<PyString>()
            && value_base(self.py, class.as_type_ptr()).is_some()
        {
            return Some(Value::from(text.to_str().ok()?));
        }
        if object.is_exact_instance_of::<PyComplex>() {
            let part = |name: &str| object.getattr(name).ok()?.extract::<f64>().ok();
            return Some(Value::Complex(Complex64::new(part("real")?, part("imag")?)));
        }
        if self.is_numpy_scalar(object) {
            let item = object.call_method0("item").ok()?;
            return if item.is_exact_instance_of::<PyBool>() {
                item.extract().ok().map(Value::Bool)
            } else if item.is_exact_instance_of::<PyInt>() {
                item.extract::<i64>().ok().map(Value::from)
            } else {
                item.extract().ok().map(Value::Float)
            };
        }
        let name = class.name().ok()?.to_string();
        let text = object.str().ok()?.to_string();
        match &*name {
            "dtype" => dtype_named(text.strip_prefix("torch.")?).map(Value::DType),
            "device" => Some(Value::Device(Device::from_name(&text))),
            "layout" => Some(Value::Layout(text.strip_prefix("torch.")?.into())),
            "memory_format" => Some(Value::MemoryFormat(match text.strip_prefix("torch.")? {
                "contiguous_format" => MemoryFormat::Contiguous,
                "preserve_format" => MemoryFormat::Preserve,
                "channels_last" => MemoryFormat::ChannelsLast,
                "channels_last_3d" => MemoryFormat::ChannelsLast3d,
                _ => return None,
            })),
            _ => None,
        }
    }
}

/// The element types and torch's names for them.
pub const DTYPES: [(DType, &str); 12] = [
    (DType::F64, "float64"),
    (DType::F32, "float32"),
    (DType::F16, "float16"),
    (DType::BF16, "bfloat16"),
    (DType::C64, "complex64"),
    (DType::C128, "complex128"),
    (DType::I64, "int64"),
    (DType::I32, "int32"),
    (DType::I16, "int16"),
    (DType::I8, "int8"),
    (DType::U8, "uint8"),
    (DType::Bool, "bool"),
];

/// The element type of torch's number for it, where frames that compute with it are captured: torch runs those that are
/// hardly more than storage.
fn captured_dtype(number: i32) -> Option<DType> {
    dtype_of(number).filter(|dtype| !dtype.is_barebones())
}

/// torch's name of a type.
pub fn dtype_name(dtype: DType) -> &'static str {
    DTYPES.iter().find(|(known, _)| *known == dtype).map_or("float32", |(_, name)| name)
}

/// The type of torch's name for it.
pub fn dtype_named(name: &str) -> Option<DType> {
    DTYPES.iter().find(|(_, known)| *known == name).map(|(dtype, _)| *dtype)
}

/// torch's name of a memory format.
pub fn format_name(format: MemoryFormat) -> &'static str {
    match format {
        MemoryFormat::Contiguous => "contiguous_format",
        MemoryFormat::Preserve => "preserve_format",
        MemoryFormat::ChannelsLast => "channels_last",
        MemoryFormat::ChannelsLast3d => "channels_last_3d",
    }
}
