//! The command `pyrite`, from Python.

use std::collections::BTreeMap;
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

/// The exit code of words that are no command line, after what is wrong with them was printed; None where they are one.
#[pyfunction]
pub fn refused(py: Python<'_>, words: Vec<OsString>) -> Option<u8> {
    let words = std::iter::once(OsString::from("pyrite")).chain(words);
    py.detach(|| pyrite_cli::refused(words).map(pyrite_cli::ExitCode::number))
}

/// The options of `pyrite debug` by their names, with how many words belong to each at least and at most.
#[pyfunction]
pub fn debug_options() -> BTreeMap<String, (usize, usize)> {
    pyrite_cli::debug_options().into_iter().map(|option| (option.name, option.words.into())).collect()
}

/// Why a folder cannot take the results of a session, if it cannot.
#[pyfunction]
pub fn unusable_folder(folder: PathBuf) -> Option<String> {
    pyrite_session::folder::check_unused(&folder).err().map(|error| error.to_string())
}
