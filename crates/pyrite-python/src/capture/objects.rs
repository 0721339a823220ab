//! Python's objects by their address, kept alive together.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use std::cell::RefCell;

use pyo3::prelude::*;
use pyrite_capture::Object;
use rustc_hash::FxHashMap;

// SAFETY: CPython exports these with these types.
unsafe extern "C" {
    /// What a class has under a name, its bases included: a borrowed reference, or null.
    pub fn _PyType_Lookup(
        class: *mut pyo3::ffi::PyTypeObject,
        name: *mut pyo3::ffi::PyObject,
    ) -> *mut pyo3::ffi::PyObject;
    /// Where an object keeps its `__dict__`, made if it was not yet; null when it has none.
    fn _PyObject_GetDictPtr(object: *mut pyo3::ffi::PyObject) -> *mut *mut pyo3::ffi::PyObject;
    /// A bound method: a new reference.
    pub fn PyMethod_New(
        function: *mut pyo3::ffi::PyObject,
        object: *mut pyo3::ffi::PyObject,
    ) -> *mut pyo3::ffi::PyObject;
    /// `collections.OrderedDict`.
    pub static mut PyODict_Type: pyo3::ffi::PyTypeObject;
}

/// Whether an object is a `collections.OrderedDict`, or of a class derived from it.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn is_ordered(object: *mut pyo3::ffi::PyObject) -> bool {
    // SAFETY: both classes are live.
    unsafe { pyo3::ffi::PyType_IsSubtype(pyo3::ffi::Py_TYPE(object), &raw mut PyODict_Type) != 0 }
}

/// Objects that stay alive as long as this does.
#[derive(Default)]
pub struct Keep(RefCell<FxHashMap<usize, Py<PyAny>>>);

impl Keep {
    /// Names an object and keeps it.
    pub fn keep(&self, object: &Bound<'_, PyAny>) -> Object {
        let address = object.as_ptr() as usize;
        self.0.borrow_mut().entry(address).or_insert_with(|| object.clone().unbind());
        Object(address)
    }
}

/// The object of a name.
pub fn bound(py: Python<'_>, object: Object) -> Bound<'_, PyAny> {
    // SAFETY: names are given out for live objects only, and whoever holds the name holds what keeps them.
    unsafe { Bound::from_borrowed_ptr(py, object.0 as *mut pyo3::ffi::PyObject) }
}

impl Keep {
    /// Keeps an object no longer. Its name stays valid while something else does.
    pub fn forget(&self, object: Object) {
        self.0.borrow_mut().remove(&object.0);
    }
}

/// The `__dict__` of an object, borrowed from it, or null.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn instance_dict(object: *mut pyo3::ffi::PyObject) -> *mut pyo3::ffi::PyObject {
    // SAFETY: the object is live; the place of its dictionary lies in it.
    unsafe {
        let place = _PyObject_GetDictPtr(object);
        if place.is_null() { std::ptr::null_mut() } else { *place }
    }
}
