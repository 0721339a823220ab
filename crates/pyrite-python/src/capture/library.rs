//! What the host knows of Python's and torch's libraries.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};
use rustc_hash::FxHashMap;

use crate::bridge::Shim;
use crate::modules::import;

/// Classes and tables that are looked up once.
pub(super) struct Library {
    pub(super) tensor: Py<PyAny>,
    pub(super) torch_module: Py<PyAny>,
    pub(super) size: Py<PyAny>,
    pub(super) ordered_dict: Py<PyAny>,
    pub(super) default_dict: Py<PyAny>,
    pub(super) counter: Py<PyAny>,
    pub(super) deque: Py<PyAny>,
    pub(super) cached_property: Py<PyAny>,
    pub(super) cached_function: Py<PyAny>,
    pub(super) partial: Py<PyAny>,
    pub(super) enumeration: Py<PyAny>,
    pub(super) abstract_class: Py<PyAny>,
    pub(super) property: Py<PyAny>,
    pub(super) method: Py<PyAny>,
    pub(super) proxy: Py<PyAny>,
    pub(super) thread_local: Py<PyAny>,
    pub(super) operators: (Py<PyAny>, Py<PyAny>),
    pub(super) numpy_scalar: Option<Py<PyAny>>,
    pub(super) numpy_array: Option<Py<PyAny>>,
    pub(super) numpy_type: Option<Py<PyAny>>,
    pub(super) shares_memory: Py<PyAny>,
    pub(super) count: Py<PyAny>,
    pub(super) next_count: Py<PyAny>,
    pub(super) numpy_functions: Vec<Py<PyAny>>,
    pub(super) method_wrapper: Py<PyAny>,
    pub(super) plain: Vec<Py<PyAny>>,
    pub(super) descriptors: Vec<(Py<PyAny>, &'static str)>,
    pub(super) names: FxHashMap<usize, Arc<str>>,
    /// What the names belong to, kept alive.
    _named: Py<PyAny>,
    pub(super) polyfills: Py<PyAny>,
    pub(super) torch: Py<PyModule>,
    pub(super) operator: Py<PyModule>,
    pub(super) skipped: Vec<String>,
    pub(super) shim: &'static Shim,
}

static LIBRARY: PyOnceLock<Library> = PyOnceLock::new();

/// They, looked up if they were not.
pub(super) fn library(py: Python<'_>) -> PyResult<&'static Library> {
    LIBRARY.get_or_try_init(py, || {
        let class =
            |module: &str, name: &str| -> PyResult<Py<PyAny>> { Ok(import(py, module)?.getattr(name)?.unbind()) };
        let table = import(py, "pyrite._names")?;
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
            thread_local: class("_thread", "_local")?,
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
            polyfills: import(py, "pyrite._polyfills")?.into_any().unbind(),
            torch: import(py, "torch")?.unbind(),
            operator: import(py, "operator")?.unbind(),
            skipped: table.call_method0("never_followed")?.extract()?,
            shim: Shim::get(py)?,
        })
    })
}
