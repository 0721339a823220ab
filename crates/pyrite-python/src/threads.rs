//! How many threads compiled calls use: as many as torch's own operators.
//!
//! `torch.set_num_threads`, `OMP_NUM_THREADS` and workers of a `DataLoader` limit what a process takes of a machine, and compiled
//! code keeps to it. A number that Pyrite itself was told (`PYRITE_NUM_THREADS`) comes first.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The most threads of a call that is about to run on this thread.
pub fn allowed(py: Python<'_>) -> usize {
    static ASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if pyrite_threads::is_wished() {
        return pyrite_threads::MOST;
    }
    let ask = ASK.get_or_try_init(py, || py.import("torch")?.getattr("get_num_threads").map(Bound::unbind));
    let number = ask.and_then(|ask| ask.bind(py).call0()?.extract());
    // A torch without the function has no wish, either.
    number.unwrap_or(pyrite_threads::MOST)
}
