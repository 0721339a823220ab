//! What kind of value an object is to the evaluator.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyCFunction, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList};
use pyo3::types::{PyRange, PySet, PySlice, PyString, PyTuple, PyType};
use pyrite_capture::Host;
use pyrite_capture::host::{Kind, Object};

use super::host::Python3;
use super::iterators::{is_known_iterator, remaining_count};
use super::names::captured_dtype;
use crate::modules::import;

impl<'py> Python3<'py> {
    fn is_plain(&self, object: &Bound<'py, PyAny>) -> bool {
        matches!(self.kind_of(object), Kind::None | Kind::Bool | Kind::Int | Kind::Plain)
    }

    pub(super) fn kind_of(&self, object: &Bound<'py, PyAny>) -> Kind {
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
        if is_known_iterator(class) {
            return if remaining_count(object).is_some() { Kind::Iterator } else { Kind::Opaque };
        }
        // SAFETY: the class is live.
        let heap = unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) } & ffi::Py_TPFLAGS_HEAPTYPE != 0;
        let container = ["list", "dict", "set", "frozenset", "str", "int", "float", "bytes", "BaseException", "type"];
        // SAFETY: the object is live.
        let exception = unsafe { ffi::PyExceptionInstance_Check(raw) } != 0;
        let derived = !exception
            && container.iter().any(|name| {
                let known = import(self.py, "builtins").and_then(|builtins| builtins.getattr(*name));
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
        if class_is(&library.thread_local) {
            return Kind::Instance;
        }
        // Numbers and texts with operators of their own.
        let valued = || {
            let bases = [&raw mut ffi::PyLong_Type, &raw mut ffi::PyFloat_Type, &raw mut ffi::PyUnicode_Type];
            // SAFETY: the classes are live.
            unsafe {
                ffi::Py_TYPE(class.as_ptr()) == &raw mut ffi::PyType_Type
                    && bases.into_iter().any(|base| ffi::PyType_IsSubtype(class.as_type_ptr(), base) != 0)
            }
        };
        let instance = (python_made || &*name == "SimpleNamespace") && (!derived || valued());
        if instance { Kind::Instance } else { Kind::Opaque }
    }

    /// Whether a function is an operator that is not torch's own.
    pub(super) fn is_custom(&self, function: Object) -> bool {
        let name = self.qualified_name(function);
        name.is_some_and(|name| name.starts_with("torch.ops.") && !name.starts_with("torch.ops.aten."))
    }

    /// What instances of a class of the user's are that is derived from `list`, `dict`, `OrderedDict`, `defaultdict`,
    /// `deque` or `set`. What it has instead of their methods is looked up where they are called.
    pub(super) fn container(&self, class: *mut ffi::PyTypeObject) -> Option<Kind> {
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
}

/// The class of Python's numbers, texts or frozen sets that a class of the user's is derived from; nothing where its objects
/// are computed with, compared or hashed in another way.
pub(super) fn value_base(py: Python<'_>, class: *mut ffi::PyTypeObject) -> Option<*mut ffi::PyTypeObject> {
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
