//! Modules of Python, found by their names.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// The module of this name, imported where it is not loaded yet.
///
/// `Python::import` asks the builtins of the frame that runs for `__import__`. A frame of the user's that is being captured
/// may have other builtins, or none.
pub fn import<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    let key = PyString::intern(py, name);
    let loaded = || loaded(py)?.get_item(&key);
    if let Some(module) = loaded()? {
        return Ok(module.cast_into()?);
    }
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name is a text that ends with a zero, and the other arguments may be null. The result is a new reference.
    unsafe {
        let top = pyo3::ffi::PyImport_ImportModuleLevel(
            name.as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
        );
        Bound::from_owned_ptr_or_err(py, top)?;
    }
    let module = loaded()?;
    module.map_or_else(|| py.import(key), |module| Ok(module.cast_into()?))
}

/// `sys.modules`.
fn loaded(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: the reference is borrowed from the interpreter, which keeps the dictionary.
    let modules = unsafe { Bound::from_borrowed_ptr_or_err(py, pyo3::ffi::PyImport_GetModuleDict())? };
    Ok(modules.cast_into()?)
}
