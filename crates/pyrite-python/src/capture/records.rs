//! What was captured, for those who ask: `explain`, profilers, logs.

use std::cell::RefCell;

use pyo3::prelude::*;

/// A captured frame.
#[pyclass(module = "pyrite._native", frozen, get_all)]
pub struct Captured {
    /// The function's name.
    pub function: String,
    /// Its file.
    pub file: String,
    /// Its first line.
    pub line: u32,
    /// The graph, if anything is computed.
    pub graph: Option<Py<crate::graph::Graph>>,
    /// How many operators the graph calls.
    pub op_count: usize,
    /// Why the graph ends before its frame does.
    pub reason: Option<String>,
    /// How to avoid it.
    pub hint: Option<String>,
    /// Where, outermost first: file, line, function.
    pub user_stack: Vec<(String, u32, String)>,
    /// What was assumed, as text.
    pub guards: Vec<String>,
    /// Seconds that the capture took.
    pub capture_seconds: f64,
    /// Seconds that the backend took.
    pub compile_seconds: f64,
    /// `captured`, `skipped` (the frame runs plain) or `limit` (too many plans for one code).
    pub outcome: &'static str,
    /// For a code that has been captured before, the guard that failed.
    pub failed_guard: Option<String>,
}

thread_local! {
    static RECORDS: RefCell<Option<Vec<Py<Captured>>>> = const { RefCell::new(None) };
}

/// Notes a capture, if anybody listens.
pub fn note(py: Python<'_>, captured: impl FnOnce() -> Captured) {
    RECORDS.with(|records| {
        if let Some(records) = &mut *records.borrow_mut()
            && let Ok(captured) = Py::new(py, captured())
        {
            records.push(captured);
        }
    });
}

/// Begins to listen, or ends; what was noted until then is returned.
#[pyfunction]
#[pyo3(signature = (listen))]
pub fn take_records(listen: bool) -> Vec<Py<Captured>> {
    RECORDS.with(|records| records.replace(listen.then(Vec::new))).unwrap_or_default()
}
