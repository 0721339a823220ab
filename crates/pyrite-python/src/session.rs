//! Sessions of the debugger and comparisons of values, from Python.

use std::path::PathBuf;

use parking_lot::Mutex;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyrite_compare::{Accuracy, Results, Role, compare};
use pyrite_debug::Switches;
use pyrite_ir::Value;
use pyrite_session::minify::Reduced;
use pyrite_session::results::{lines_of, sentence_of, verdict_of};
use pyrite_session::{
    Devices, Finding, Host, Invocation, Options, Python as Torch, ReadOptions, Reporter, Searching, Session,
    SessionError,
};
use pyrite_tensor::Tensor;

use crate::bridge::Inputs;

/// Hands a session's progress to a function of Python's, and Python's Ctrl-C to the session.
struct Listener {
    say: Option<Py<PyAny>>,
    best: Mutex<Option<(usize, usize)>>,
    raised: Mutex<Option<PyErr>>,
}

impl Listener {
    fn say(&self, text: &str) {
        let Some(say) = &self.say else { return };
        if let Err(error) = Python::attach(|py| say.call1(py, (text,))) {
            self.raised.lock().get_or_insert(error);
        }
    }
}

impl Reporter for Listener {
    fn confirming(&self, run: u32, runs: u32, backend: &str) {
        self.say(&format!("run {run} of {runs}: {backend} compiles and runs the program …"));
    }

    fn found(&self, finding: &Finding) {
        self.say(&format!("{}: {}", finding.step, finding.text));
    }

    fn searching(&self, search: &Searching<'_>) {
        let mut best = self.best.lock();
        if let Some((nodes, elements)) = search.best
            && *best != search.best
        {
            *best = search.best;
            self.say(&format!("minify: {nodes} nodes, {elements} elements, {} queries", search.queries));
        }
    }

    fn reduced(&self, reduced: &Reduced) {
        if let Reduced::Smaller(minified) = reduced {
            self.say(&format!("minify: {} nodes of {} are left", minified.nodes_after, minified.nodes_before));
        }
    }

    fn note(&self, text: &str) {
        self.say(text);
    }

    fn next(&self, text: &str) {
        self.say(&format!("next: {text}"));
    }

    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general over lifetimes")]
    fn is_cancelled(&self) -> bool {
        let mut raised = self.raised.lock();
        if raised.is_none()
            && let Err(error) = Python::attach(|py| py.check_signals())
        {
            *raised = Some(error);
        }
        raised.is_some()
    }
}

/// The names of the options of a session.
#[pyfunction]
pub fn session_options() -> PyResult<Vec<String>> {
    let all = serde_json::to_value(Options::default()).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(all.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect())
}

/// The report of a session's folder, as one HTML page.
#[pyfunction]
pub fn report_page(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let page = py.detach(|| pyrite_report::open(&folder).map(|run| pyrite_report::html(&run, None)));
    page.map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Debugs a file as options say, which are JSON; returns what was found, as JSON. `say` hears of every step.
#[pyfunction]
#[pyo3(signature = (file, options, imports = Vec::new(), say = None))]
pub fn debug_session(
    py: Python<'_>,
    file: PathBuf,
    options: &str,
    imports: Vec<String>,
    say: Option<Py<PyAny>>,
) -> PyResult<String> {
    let interpreter: PathBuf = py.import("sys")?.getattr("executable")?.extract()?;
    crate::python_backend::register();
    let options: Options = serde_json::from_str(options).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    let python = Torch { imports, ..Torch::new(Some(interpreter.clone())) };
    let reading = ReadOptions { devices: Devices::Cpu, ..ReadOptions::default() };
    let host = Host::new(Invocation::of_python(&interpreter), python, reading);
    let listener = Listener { say, best: Mutex::new(None), raised: Mutex::new(None) };
    let found = py.detach(|| Session::open(&host, &file, options, &listener)?.run());
    let farewell = match &found {
        Err(SessionError::Interrupted(standing)) => Some(standing.farewell()),
        _ => None,
    };
    if let Some(raised) = listener.raised.into_inner() {
        return Err(match farewell {
            Some(said) if raised.is_instance_of::<PyKeyboardInterrupt>(py) => PyKeyboardInterrupt::new_err(said),
            _ => raised,
        });
    }
    match found {
        Ok(found) => Ok(found.data().to_string()),
        Err(error @ SessionError::Input(_)) => Err(PyValueError::new_err(error.to_string())),
        Err(error) => Err(PyOSError::new_err(error.to_string())),
    }
}

/// A value with its name.
type Named<'py> = (String, Bound<'py, PyAny>);

/// Compares named values as `pyrite compare` does: whether they agree, the verdict, a sentence, lines, and everything as
/// JSON. `exact` holds the same values in double precision.
#[pyfunction]
#[pyo3(signature = (expected, actual, exact = None, accuracy = "fp", switches = "{}"))]
pub fn compare_values(
    py: Python<'_>,
    expected: Vec<Named<'_>>,
    actual: Vec<Named<'_>>,
    exact: Option<Vec<Named<'_>>>,
    accuracy: &str,
    switches: &str,
) -> PyResult<(bool, &'static str, String, Vec<String>, String)> {
    let wrong = |error: serde_json::Error| PyTypeError::new_err(error.to_string());
    let accuracy = Accuracy::from_name(accuracy)
        .ok_or_else(|| PyValueError::new_err(format!("accuracy is `{accuracy}`, expected off, fp or strict")))?;
    let switches: Switches = serde_json::from_str(switches).map_err(wrong)?;
    let mut inputs = Inputs::new(py)?;
    let mut results = |values: Vec<Named<'_>>| -> PyResult<Results> {
        let value = |(index, (name, object)): (usize, Named<'_>)| Ok((name, inputs.value(&object, index)?));
        let values: Vec<(String, Value<Tensor>)> =
            values.into_iter().enumerate().map(value).collect::<PyResult<_>>()?;
        Ok(Results::new().with("values", Role::Outputs, values))
    };
    let (expected, actual) = (results(expected)?, results(actual)?);
    let exact = exact.map(results).transpose()?;
    let report = compare(&expected, &actual, exact.as_ref(), &switches.options(accuracy));
    let data = serde_json::to_string(&report).map_err(wrong)?;
    Ok((report.agrees(), verdict_of(&report), sentence_of(&report), lines_of(&report, 20), data))
}
