//! The options of a backend, from a Python dictionary.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyrite_compiler::Options;
use pyrite_compiler::backend::{CallMode, Direction};
use pyrite_ir::Kind;
use pyrite_passes::Random;

use crate::bridge::to_torch;
use crate::outcome::to_python;

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
            "mode" if !value.is_none() => options.call_mode = Some(call_mode(&value)?),
            "mode" => {}
            "direction" => options.direction = direction(&value.extract::<String>()?)?,
            _ => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        unknown.sort();
        let text = format!(
            "the backend does not know the options {}; it knows seed, memory_budget, fallback_random, \
             rewrites, refused, direction, mode",
            unknown.join(", ")
        );
        let text = std::ffi::CString::new(text)?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(options)
}

/// A function of Python's that is told of every call: the name of its node, its operator, and what it gave. What the function raises
/// is reported and ends nothing.
fn call_mode(function: &Bound<'_, PyAny>) -> PyResult<CallMode> {
    if !function.is_callable() {
        let text = "the option `mode` is a function that is told of every call, or a mode of torch's";
        return Err(PyTypeError::new_err(text));
    }
    let function = function.clone().unbind();
    Ok(Arc::new(move |node, value| {
        let Kind::Call(target) = &node.kind else { return };
        Python::attach(|py| {
            let told = to_python(py, value, &mut |tensor| to_torch(py, tensor))
                .and_then(|value| function.bind(py).call1((&*node.name, target.name(), value)));
            if let Err(error) = told {
                error.write_unraisable(py, Some(function.bind(py)));
            }
        });
    }))
}

fn direction(name: &str) -> PyResult<Direction> {
    match name {
        "forward" => Ok(Direction::Forward),
        "both" => Ok(Direction::ForwardAndBackward),
        other => Err(PyValueError::new_err(format!("direction is `{other}`, expected forward or both"))),
    }
}
