//! Why there is no report.

use std::path::PathBuf;

use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_trace::TraceError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// There is nothing of that name, or it is no folder.
    #[error("{} is no folder that can be read: {cause}", path.display())]
    NoFolder {
        /// What was named.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// The folder holds nothing that a run leaves behind.
    #[error("{} holds nothing that a run of Pyrite leaves behind", path.display())]
    NothingInIt {
        /// The folder.
        path: PathBuf,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl ReportError {
    /// With what was expected, and how to make it.
    pub fn diagnostic(&self) -> Diagnostic {
        const MAKE: &str = "make one with `pyrite debug FILE --out FOLDER`, or run a program with PYRITE_COMPILE_DEBUG=1 \
                            and name the folder pyrite_debug that it leaves";
        match self {
            Self::NoFolder { path, cause } => {
                Diagnostic::error(Code::new("report::no-folder"), "cannot read the folder")
                    .at(Location::in_file(path))
                    .cause(cause)
                    .hint(MAKE)
            }
            Self::NothingInIt { path } => {
                let message = "nothing of a run is in this folder: expected trace.jsonl, a folder run_… with one, or the \
                               repro.py of a debugging session";
                Diagnostic::error(Code::new("report::nothing-in-it"), message).at(Location::in_file(path)).hint(MAKE)
            }
            Self::Trace(error) => {
                let problem = Diagnostic::error(Code::new("report::bad-trace"), "the trace cannot be read");
                let (path, line) = match error {
                    TraceError::Record { path, line, .. } => (path, Some(*line as u32)),
                    TraceError::Read { path, .. } | TraceError::Write { path, .. } => (path, None),
                };
                let location = Location::in_file(path);
                problem.at(line.into_iter().fold(location, Location::line)).cause(error).hint(
                    "remove the line, or create the trace again: each line is one JSON object (docs/trace-format.md)",
                )
            }
        }
    }
}
