//! torch's random generator on the CPU, lent to a program.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyrite_ir::Value;
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

use super::{Inputs, to_torch};

/// Runs something with torch's generator as it stands, and gives torch the state it is left in, so that
/// `torch.manual_seed` rules a compiled program as it does an eager one.
pub fn with_torch_generator<T>(py: Python<'_>, run: impl FnOnce(&mut TorchGenerator) -> PyResult<T>) -> PyResult<T> {
    let theirs = py.import("torch")?.getattr("default_generator")?;
    let Value::Tensor(state) = Inputs::new(py)?.value(&theirs.call_method0("get_state")?, 0)? else {
        return Err(PyRuntimeError::new_err("the state of torch's generator is not a tensor"));
    };
    let mut random = TorchGenerator::from_state(&state.to_vec::<u8>()).ok_or_else(|| {
        PyRuntimeError::new_err("the state of torch's generator has a layout that Pyrite does not know; it is tested with torch 2.11 to 2.15")
    })?;
    let result = run(&mut random);
    let after = random.to_state();
    theirs.call_method1("set_state", (to_torch(py, &Tensor::from_slice(&after, &[after.len() as i64]))?,))?;
    result
}
