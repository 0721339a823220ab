//! The command `pyrite`, from Python.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyrite_cli::Invocation;

/// Does what the words of a command line say, without the program's name, and returns the exit code.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<OsString>) -> PyResult<u8> {
    let interpreter: PathBuf = py.import("sys")?.getattr("executable")?.extract()?;
    crate::python_backend::register();
    let words = std::iter::once(OsString::from("pyrite")).chain(words);
    Ok(py.detach(|| pyrite_cli::run(words, Invocation::of_python(&interpreter))).number())
}
