//! Errors of the crates below as Python's exceptions.

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;
use pyrite_diag::Diagnostics;

/// A text that cannot be read is a `ValueError` with all that was found in it.
pub fn unreadable(found: &Diagnostics) -> PyErr {
    PyValueError::new_err(found.to_string())
}
