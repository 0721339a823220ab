//! The options of a backend, from a Python dictionary.

use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyrite_compiler::Options;
use pyrite_compiler::backend::Direction;
use pyrite_passes::Random;

/// The options that every backend knows. A warning names those it does not.
pub fn options(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::default();
    let mut unknown = Vec::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            "seed" => options.seed = value.extract()?,
            "memory_budget" => options.memory_budget = value.extract()?,
            "fallback_random" => options.random = if value.extract()? { Random::Eager } else { Random::Stream },
            "rewrites" => options.rewrites = value.extract()?,
            "refused" => options.refused = value.extract()?,
            "direction" => options.direction = direction(&value.extract::<String>()?)?,
            _ => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        unknown.sort();
        let text = format!(
            "the backend does not know the options {}; it knows seed, memory_budget, fallback_random, \
             rewrites, refused, direction",
            unknown.join(", ")
        );
        let text = std::ffi::CString::new(text)?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(options)
}

fn direction(name: &str) -> PyResult<Direction> {
    match name {
        "forward" => Ok(Direction::Forward),
        "both" => Ok(Direction::ForwardAndBackward),
        other => Err(PyValueError::new_err(format!("direction is `{other}`, expected forward or both"))),
    }
}
