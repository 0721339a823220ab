//! CPython's objects as guards see them: what may be looked at outside of the frame.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyrite_capture::host::{Changes, FunctionParts, GlobalState, Kind, Made, Object, TensorFacts};
use pyrite_capture::{Host, World};
use pyrite_ir::{Meta, StorageId};
use pyrite_sym::SymInt;

use super::host::{Python3, Raw};
use super::iterators::{iterated_lists, remaining};
use super::names::captured_dtype;

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
        if self.is_by_thread(self.class_of(object)) {
            return self.bound(object).getattr("__dict__").ok().map(|dict| self.keep(&dict));
        }
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
