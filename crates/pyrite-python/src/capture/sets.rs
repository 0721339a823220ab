//! Sets of CPython with all that decides the order of their members.
//!
//! A set is a table with open addressing: which slots are taken, which are marked because their members were removed, and
//! where `pop` looks first depend on what was done to it. No method of Python's copies that; [`copy_set`] does, and
//! [`set_layout`] tells it.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PySet, PyTuple, PyType};

/// The hash in the slot of a member that was removed; no object has it.
const REMOVED: isize = -1;

/// A copy of a set, of a class derived from `set` if one is given, that Python iterates over and changes as it does the set.
#[pyfunction]
#[pyo3(signature = (set, cls=None))]
pub fn copy_set<'py>(set: &Bound<'py, PySet>, cls: Option<&Bound<'py, PyType>>) -> PyResult<Bound<'py, PySet>> {
    let py = set.py();
    let made = match cls {
        Some(class) => py.get_type::<PySet>().call_method1("__new__", (class,))?.cast_into::<PySet>()?,
        None => PySet::empty(py)?,
    };
    // SAFETY: both are live sets, which `PySetObject` describes, and nothing else runs meanwhile. The new one is empty and
    // has its small table. A larger one is taken from the allocator that sets give theirs back to. Every slot is copied,
    // and what a slot of a member refers to is counted once more; slots without one refer to nothing that is counted.
    unsafe {
        let from = set.as_ptr().cast::<ffi::PySetObject>();
        let to = made.as_ptr().cast::<ffi::PySetObject>();
        let slots = (*from).mask as usize + 1;
        let table = if std::ptr::eq((*from).table, (&raw const (*from).smalltable).cast()) {
            (&raw mut (*to).smalltable).cast::<ffi::setentry>()
        } else {
            ffi::PyMem_Malloc(slots * size_of::<ffi::setentry>()).cast::<ffi::setentry>()
        };
        if table.is_null() {
            return Err(pyo3::exceptions::PyMemoryError::new_err("a set cannot be copied"));
        }
        std::ptr::copy_nonoverlapping((*from).table, table, slots);
        for slot in 0..slots {
            let entry = table.add(slot);
            if !(*entry).key.is_null() && (*entry).hash != REMOVED {
                ffi::Py_INCREF((*entry).key);
            }
        }
        (*to).table = table;
        (*to).mask = (*from).mask;
        (*to).fill = (*from).fill;
        (*to).used = (*from).used;
        (*to).finger = (*from).finger;
    }
    Ok(made)
}

/// Where a set or frozen set has its members: the size of its table, where `pop` begins, and the slots that are taken with
/// the hashes there.
#[pyfunction]
pub fn set_layout<'py>(set: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: the object is live.
    if unsafe { ffi::PyAnySet_Check(set.as_ptr()) } == 0 {
        return Ok(PyTuple::empty(set.py()));
    }
    // SAFETY: the object is a set, which `PySetObject` describes; its table has one slot more than its mask.
    let layout = unsafe {
        let set = set.as_ptr().cast::<ffi::PySetObject>();
        let mut layout = vec![(*set).mask, (*set).finger];
        for slot in 0..=(*set).mask {
            let entry = (*set).table.add(slot as usize);
            if !(*entry).key.is_null() {
                layout.extend([slot, (*entry).hash]);
            }
        }
        layout
    };
    PyTuple::new(set.py(), layout)
}
