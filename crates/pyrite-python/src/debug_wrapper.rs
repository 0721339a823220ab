//! Programs that are checked as they run and leave a repro behind when they fail.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyrite_compiler::Options;
use pyrite_debug::torch::Python as Torch;
use pyrite_debug::{Accuracy, Level, ReproAfter, Shrinking, Switches, Tracing, WrapConfig, wrap_compiler_debug};
use pyrite_passes::Random;

use crate::errors;
use crate::graph::{Graph, graph_of};
use crate::options::options;
use crate::program::{Program, describe, find, use_cache};
use crate::python_backend::called;

/// Lets backends of torch.compile be found under `torch:NAME`, where they run in processes of this Python, and functions
/// under `python:MODULE:NAME`.
pub fn register_torch(py: Python<'_>) -> PyResult<()> {
    static ONCE: Once = Once::new();
    let interpreter: String = py.import("sys")?.getattr("executable")?.extract()?;
    ONCE.call_once(|| {
        pyrite_debug::torch::register(Torch::new(Some(PathBuf::from(interpreter))));
        crate::python_backend::register();
    });
    Ok(())
}

/// Lets the processes in which torch's backends run import modules, for the operators that they define.
#[pyfunction]
pub fn import_for_torch(py: Python<'_>, modules: Vec<String>) -> PyResult<()> {
    register_torch(py)?;
    let interpreter: String = py.import("sys")?.getattr("executable")?.extract()?;
    pyrite_debug::torch::register(Torch { imports: modules, ..Torch::new(Some(PathBuf::from(interpreter))) });
    Ok(())
}

/// What the wrapper said last: where it wrote a repro.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Option<String>>>);

impl Told {
    /// The path of the repro that was written since it was last asked for.
    pub fn repro(&self) -> Option<String> {
        let text = self.0.lock().take()?;
        text.rsplit_once("wrote ").map(|(_, path)| path.to_owned())
    }
}

/// Compiles a graph with any backend, by its name or a function with a name, wrapped so that a failure leaves a repro in a
/// folder.
#[pyfunction]
#[pyo3(signature = (
    graph, backend, options = None, example_inputs = None, *, repro_after = "capture", repro_level = 4,
    debug_dir = "pyrite_debug", reference = "eager", accuracy = "fp", minify = true, function = None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn compile_debugged(
    py: Python<'_>,
    #[pyo3(from_py_with = graph_of)] graph: Graph,
    backend: &str,
    options: Option<&Bound<'_, PyDict>>,
    example_inputs: Option<&Bound<'_, PyTuple>>,
    repro_after: &str,
    repro_level: u32,
    debug_dir: &str,
    reference: &str,
    accuracy: &str,
    minify: bool,
    function: Option<Py<PyAny>>,
) -> PyResult<Program> {
    register_torch(py)?;
    let wrong = |name: &str, given: &str, expected: &str| {
        PyValueError::new_err(format!("{name} is `{given}`, expected {expected}"))
    };
    let told = Told::default();
    let heard = told.clone();
    let config = WrapConfig {
        after: ReproAfter::from_name(repro_after).ok_or_else(|| wrong("repro_after", repro_after, "capture or aot"))?,
        level: Level::from_number(repro_level)
            .ok_or_else(|| wrong("repro_level", &repro_level.to_string(), "a number from 1 to 4"))?,
        folder: PathBuf::from(debug_dir),
        only_errors_with: None,
        reference: find(reference)?,
        accuracy: Accuracy::from_name(accuracy).ok_or_else(|| wrong("accuracy", accuracy, "off, fp or strict"))?,
        switches: Switches::default(),
        tracing: Tracing::Symbolic,
        shrinking: if minify { Shrinking::AtOnce } else { Shrinking::Later },
        tell: Arc::new(move |text| *heard.0.lock() = Some(text.to_owned())),
    };
    // What is compared has to draw the same numbers.
    let settings = Options { random: Random::Eager, ..self::options(py, options)? };
    use_cache(py)?;
    let backend = match function {
        Some(function) => called(backend, function),
        None => find(backend)?,
    };
    let wrapped = wrap_compiler_debug(&backend, &config);
    let mut graph = graph.graph;
    if let Some(examples) = example_inputs {
        describe(&mut graph, examples)?;
    }
    let program = py.detach(|| errors::guarded(|| Program::compile(graph, &wrapped, &settings)));
    Ok(program.map_err(|error| errors::uncompiled(py, &error))?.telling(told))
}
