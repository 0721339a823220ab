//! Traces and logs for Python: the table of logs, levels that Python's `logging` has, the start and end of a trace.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyrite_trace::{Level, LogLevels, Setup, TOPICS, Topic, TopicKind, Topics, UnknownTopic};

/// The levels that were set.
static LEVELS: Mutex<Option<LogLevels>> = Mutex::new(None);

/// The table of logs: name, `component` or `artifact`, the file of the debug directory, and what it shows.
#[pyfunction]
pub fn log_table() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    let kind = |kind| if kind == TopicKind::Component { "component" } else { "artifact" };
    TOPICS.iter().map(|row| (row.name, kind(row.kind), row.file, row.help)).collect()
}

/// What is wrong with a name that the table does not have.
#[pyfunction]
pub fn unknown_log(name: &str) -> String {
    UnknownTopic::new(name).to_string()
}

/// Logs a name from a level of Python's `logging` on. Lines go to the logger `pyrite.NAME`.
#[pyfunction]
pub fn set_log_level(name: &str, level: i32) -> PyResult<()> {
    let topic = Topic::named(name).ok_or_else(|| PyValueError::new_err(unknown_log(name)))?;
    let level = match level {
        0 => Level::Warning,
        ..=10 => Level::Debug,
        11..=20 => Level::Info,
        21..=30 => Level::Warning,
        _ => Level::Error,
    };
    let mut levels = LEVELS.lock().unwrap_or_else(PoisonError::into_inner);
    let levels = levels.get_or_insert_default();
    levels.set(topic, level);
    pyrite_trace::set_logs(levels.clone(), Arc::new(say));
    Ok(())
}

/// Hands a line to Python's `logging`.
fn say(topic: Topic, level: Level, text: &str) {
    // Captured graphs are logged where they are captured.
    if topic == Topic::GraphCode {
        return;
    }
    let number = match level {
        Level::Debug => 10,
        Level::Info => 20,
        Level::Warning => 30,
        Level::Error => 40,
    };
    Python::attach(|py| {
        let logger = py
            .import("logging")
            .and_then(|logging| logging.call_method1("getLogger", (format!("pyrite.{}", topic.name()),)));
        // A log that cannot be written is no reason to stop.
        let _ = logger.and_then(|logger| logger.call_method1("log", (number, "%s", text)));
    });
}

/// Begins a trace below a folder, or in it where `exact` is given; returns its folder.
#[pyfunction]
#[pyo3(signature = (artifacts, *, below=None, exact=None, argv=Vec::new(), versions=Vec::new()))]
pub fn start_trace(
    artifacts: &str,
    below: Option<PathBuf>,
    exact: Option<PathBuf>,
    argv: Vec<String>,
    versions: Vec<(String, String)>,
) -> PyResult<Option<PathBuf>> {
    let topics = Topics::parse(artifacts).map_err(|error| PyValueError::new_err(error.to_string()))?;
    if topics.is_empty() {
        return Ok(None);
    }
    let below = below.unwrap_or_else(|| PathBuf::from("pyrite_debug"));
    let folder = exact.unwrap_or_else(|| pyrite_trace::run_folder(&below));
    pyrite_trace::start(Setup { topics, argv, versions, ..Setup::new(&folder) })
        .map_err(|error| PyOSError::new_err(error.to_string()))?;
    Ok(Some(folder))
}

/// Ends the trace that is going on; returns its folder.
#[pyfunction]
pub fn stop_trace() -> PyResult<Option<PathBuf>> {
    pyrite_trace::stop().map_err(|error| PyOSError::new_err(error.to_string()))
}
