//! Where the tensors of a call lie, asked of all of them at once: what Python would ask one by one before every call.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};

use crate::bridge::{Located, Shim};

/// The addresses of some arguments.
#[pyclass(module = "pyrite._native", frozen)]
pub struct Places {
    places: Vec<(usize, u64)>,
}

#[pymethods]
impl Places {
    /// Those of the tensors with these numbers.
    #[new]
    fn of(arguments: &Bound<'_, PyList>, numbers: Vec<usize>) -> PyResult<Self> {
        let mut places = Vec::with_capacity(numbers.len());
        for number in numbers {
            places.push((number, arguments.get_item(number)?.call_method0("data_ptr")?.extract()?));
        }
        Ok(Self { places })
    }

    /// Whether the tensors of a call are where those were.
    fn hold(&self, arguments: &Bound<'_, PyList>) -> PyResult<bool> {
        let shim = Shim::get(arguments.py())?;
        for (number, expected) in &self.places {
            let tensor = arguments.get_item(*number)?;
            let found = match shim.address(&tensor) {
                Some(found) => found,
                None => tensor.call_method0("data_ptr")?.extract()?,
            };
            if found != *expected {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether each tensor of a call has a storage of its own that no other one reaches into, and no element of those with these
/// numbers shares its memory with another. Where that is not known, it does not hold.
#[pyfunction]
pub fn lie_apart(arguments: &Bound<'_, PyTuple>, written: Vec<usize>) -> PyResult<bool> {
    let shim = Shim::get(arguments.py())?;
    let (mut storages, mut extents) = (Vec::new(), Vec::new());
    for (number, argument) in arguments.iter().enumerate() {
        if !shim.is_plain(argument.get_type_ptr()) {
            let is_number = argument.is_exact_instance_of::<PyInt>()
                || argument.is_exact_instance_of::<PyFloat>()
                || argument.is_exact_instance_of::<PyBool>();
            if is_number || argument.is_none() {
                continue;
            }
            return Ok(false);
        }
        let Ok(found) = shim.locate(&argument) else { return Ok(false) };
        let (Located { sizes, strides, offset, data, .. }, Some(dtype)) = (&found, found.dtype) else {
            return Ok(false);
        };
        if sizes.contains(&0) {
            continue;
        }
        let repeats = sizes.iter().zip(*strides).any(|(size, stride)| *stride == 0 && *size > 1);
        if repeats && written.contains(&number) {
            return Ok(false);
        }
        let last: i64 = sizes.iter().zip(*strides).map(|(size, stride)| (size - 1) * stride).sum();
        let (first, bytes) = (*data as i64, dtype.size() as i64);
        storages.push(first - offset * bytes);
        extents.push((first, first + (last + 1) * bytes));
    }
    storages.sort_unstable();
    extents.sort_unstable();
    Ok(storages.windows(2).all(|pair| pair[0] != pair[1]) && extents.windows(2).all(|pair| pair[0].1 <= pair[1].0))
}
