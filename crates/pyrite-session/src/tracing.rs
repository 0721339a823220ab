//! The trace of a session: a `trace.jsonl` in the folder of its result, which `pyrite report` draws.

use std::path::Path;

use pyrite_diag::{Code, Diagnostic};
use pyrite_ir::Graph;
use pyrite_trace::event::Repro;
use pyrite_trace::{Event, Files, Setup, Topic, Topics};

use crate::Reporter;

/// A trace that ends with what it is of.
#[must_use]
pub struct Traced<'a>(Option<&'a dyn Reporter>);

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        if let Some(reporter) = self.0
            && let Err(error) = pyrite_trace::stop()
        {
            reporter.warn(untraced(&error));
        }
    }
}

/// Begins the trace of a session in the folder of its result; one that is going on goes on, and ends with whoever began it.
pub fn begin<'a>(folder: &Path, reporter: &'a dyn Reporter) -> Traced<'a> {
    if pyrite_trace::folder().is_some() {
        return Traced(None);
    }
    let topics = Topics::parse("debug,timings").unwrap_or(Topics::ALL);
    let setup = Setup { topics, files: Files::TraceOnly, ..Setup::new(folder) };
    match pyrite_trace::start(setup) {
        Ok(()) => Traced(Some(reporter)),
        Err(error) => {
            reporter.warn(untraced(&error));
            Traced(None)
        }
    }
}

/// A trace that cannot be kept is no reason to stop.
pub fn untraced(error: &pyrite_trace::TraceError) -> Diagnostic {
    let problem = Diagnostic::warning(Code::new("trace::cannot-write"), "this run is not traced");
    problem.cause(error.to_string()).hint("free disk space, or choose another folder")
}

/// Ends a trace and leaves nothing of it in the folder.
pub(crate) fn discard(folder: &Path) {
    if pyrite_trace::folder().is_some_and(|traced| traced == folder) {
        let _ = pyrite_trace::stop();
        let _ = std::fs::remove_file(folder.join(pyrite_trace::TRACE_FILE));
    }
}

/// Tells the trace of the program that is debugged.
pub fn tell_program(graph: &Graph, file: &str) {
    pyrite_trace::emit(Topic::Debug, || Event::Graph(pyrite_ir::dump::dump(graph, file)));
}

/// Tells the trace of a repro.
pub(crate) fn tell_repro(path: &Path, signature: &str, proven: bool) {
    pyrite_trace::emit(Topic::Debug, || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Event::Repro(Repro { path: path.display().to_string(), text, signature: signature.to_owned(), proven })
    });
}
