//! Questions about a tensor that torch answers with `True` or `False`, asked without looking their names up again.

#![expect(unsafe_code, reason = "torch's functions are a C library")]

use std::ffi::c_void;

use pyo3::exceptions::PyImportError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

type Ask = unsafe extern "C" fn(*mut PyObject, *mut c_void) -> *mut PyObject;

/// The C function behind a property, or a method without arguments, of torch's class of tensors.
pub struct Predicate {
    ask: Ask,
    context: *mut c_void,
}

// SAFETY: a function and the constant it is called with, both of a class that lives as long as torch does.
unsafe impl Send for Predicate {}
// SAFETY: as above.
unsafe impl Sync for Predicate {}

impl Predicate {
    /// The question of a name.
    pub fn named(py: Python<'_>, name: &str) -> PyResult<Self> {
        let member = py.import("torch._C")?.getattr("TensorBase")?.getattr("__dict__")?.get_item(name)?;
        let missing = || {
            PyImportError::new_err(format!("torch's tensors answer `{name}` differently than in torch 2.11 to 2.15"))
        };
        let class = member.get_type_ptr();
        // SAFETY: a descriptor is of the layout that its class says; its definition lives as long as the class does.
        unsafe {
            if class == &raw mut ffi::PyGetSetDescr_Type {
                let definition = (*member.as_ptr().cast::<ffi::PyGetSetDescrObject>()).d_getset;
                let ask = (*definition).get.ok_or_else(missing)?;
                return Ok(Self { ask, context: (*definition).closure });
            }
            if class == &raw mut ffi::PyMethodDescr_Type {
                let definition = (*member.as_ptr().cast::<ffi::PyMethodDescrObject>()).d_method;
                if (*definition).ml_flags == ffi::METH_NOARGS {
                    let ask = std::mem::transmute::<ffi::PyCFunction, Ask>((*definition).ml_meth.PyCFunction);
                    return Ok(Self { ask, context: std::ptr::null_mut() });
                }
            }
        }
        Err(missing())
    }

    /// Torch's answer; an error is no.
    ///
    /// # Safety
    /// The object is a live tensor and the interpreter is held.
    pub unsafe fn holds(&self, tensor: *mut PyObject) -> bool {
        // SAFETY: the function takes a tensor and gives a new reference, or null with an error.
        unsafe {
            let answer = (self.ask)(tensor, self.context);
            if answer.is_null() {
                ffi::PyErr_Clear();
                return false;
            }
            let holds = answer == ffi::Py_True();
            ffi::Py_DECREF(answer);
            holds
        }
    }
}
