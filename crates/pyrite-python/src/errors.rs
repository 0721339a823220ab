//! Errors of the crates below as Python's exceptions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyrite_diag::Diagnostics;
use pyrite_ir::{NodeError, OpError};

pyo3::create_exception!(pyrite, CompileError, PyRuntimeError, "A backend could not compile a program.");
pyo3::create_exception!(
    pyrite,
    AccuracyError,
    PyRuntimeError,
    "A compiled program computed a different result than the reference; the last line is the path of a repro."
);

/// A text that cannot be read is a `ValueError` with all that was found in it.
pub fn unreadable(found: &Diagnostics) -> PyErr {
    PyValueError::new_err(found.to_string())
}

/// Does something of Pyrite's; a panic there is a bug of ours, and told as that.
pub fn guarded<T>(act: impl FnOnce() -> Result<T, NodeError>) -> Result<T, NodeError> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        let text = format!("a bug in Pyrite {}; please report it with the program", env!("CARGO_PKG_VERSION"));
        Err(OpError::fault(text).into())
    })
}

/// An error of compiling. Its attribute `node` is the name of the node that it is about, if it is about one.
pub fn uncompiled(py: Python<'_>, error: &NodeError) -> PyErr {
    let raised = CompileError::new_err(error.to_string());
    match raised.value(py).setattr("node", error.node.as_deref()) {
        Ok(()) => raised,
        Err(other) => other,
    }
}

/// An error of running: what torch refuses too is the `RuntimeError` that torch raises. The path of a repro is its last
/// line.
pub fn failed(error: &NodeError, repro: Option<&str>) -> PyErr {
    let mut text = error.to_string();
    if let Some(path) = repro {
        text += &format!("\n{path}");
    }
    match &error.error {
        OpError::Outside { kind, message, .. } if kind == "AccuracyError" => AccuracyError::new_err(message.clone()),
        OpError::Outside { stage, .. } if stage == "compile" => CompileError::new_err(text),
        OpError::Unsupported(_) => PyNotImplementedError::new_err(text),
        OpError::OutOfRange(_) => out_of_range(&text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// torch's operators raise an `IndexError` or a `RuntimeError`, each its own: whoever waits for one of them gets it.
fn out_of_range(text: &str) -> PyErr {
    let raised =
        |py: Python<'_>| py.import("pyrite._errors")?.getattr("OutOfRangeError")?.call1((text,)).map(PyErr::from_value);
    Python::attach(raised).unwrap_or_else(|error| error)
}

/// An error unless a program of so many arguments is called with so many.
pub fn check_arity(arity: usize, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    let given = arguments.len();
    if given != arity {
        return Err(PyTypeError::new_err(format!("the program takes {arity} arguments, {given} were given")));
    }
    Ok(())
}
