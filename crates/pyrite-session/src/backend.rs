//! Backends by name, and what is said where one is missing or fails.

use std::path::Path;

use pyrite_compiler::backend::backends;
use pyrite_compiler::{Backend, find};
use pyrite_debug::torch::{self, Lack};
use pyrite_debug::{missing_program, trust};
use pyrite_diag::{Code, Diagnostic, Location, nearest};
use pyrite_ir::{NodeError, OpError};

use crate::SessionError;

/// The backend of a name.
pub fn named(name: &str) -> Result<Backend, SessionError> {
    if let Some(line) = name.strip_prefix("cmd:") {
        check_command(line)?;
    }
    find(name).ok_or_else(|| {
        let known: Vec<String> = backends().iter().map(|b| b.name.to_string()).collect();
        let mut problem = Diagnostic::error(Code::new("cli::unknown-backend"), format!("there is no backend `{name}`"));
        // Inductor is torch's: its name alone is the commonest slip of all.
        let torch = trust::is_of_torch(name).then(|| format!("torch:{name}"));
        if let Some(near) = torch.as_deref().or_else(|| nearest(name, known.iter().map(String::as_str))) {
            problem = problem.hint(format!("did you mean `{near}`?"));
        }
        SessionError::of(
            problem.hint(format!(
                "known: {}; torch:NAME for torch.compile's, cmd:PROGRAM for any program",
                known.join(", ")
            )),
        )
    })
}

/// Refuses a command whose program is not there: it could only say that it cannot tell.
pub fn check_command(line: &str) -> Result<(), SessionError> {
    match missing_program(line) {
        None => Ok(()),
        Some(program) => Err(SessionError::of(
            Diagnostic::error(Code::new("cli::unknown-command"), format!("there is no program `{program}`"))
                .cause("it is not a file that can be executed, nor on the PATH")
                .hint("check its spelling; a path is relative to the working directory"),
        )),
    }
}

/// What is said where a question cannot be answered because torch, or one of its backends, is not there.
pub fn missing(why: &str) -> Option<Diagnostic> {
    let (code, otherwise) = match torch::lack(why)? {
        Lack::Backend => (Code::new("cli::unknown-backend"), "`pyrite backends` lists Pyrite's own"),
        Lack::Torch => (Code::new("run::unavailable"), "`pyrite doctor` says what works on this machine"),
    };
    let (message, hint) = why.split_once("; ").unwrap_or((why, otherwise));
    Some(Diagnostic::error(code, message).hint(hint))
}

/// A diagnostic of what went wrong at a node.
pub fn node_diagnostic(file: &Path, error: &NodeError, what: &str) -> Diagnostic {
    diagnosed(file, error, what, None)
}

/// A diagnostic of what went wrong at a node in one backend and not in the reference, whatever the error says.
pub fn backend_diagnostic(file: &Path, error: &NodeError, what: &str, backend: &str) -> Diagnostic {
    let hint =
        format!("`pyrite debug {} --backend {backend}` finds the smallest program that does this", file.display());
    diagnosed(file, error, what, Some(&hint))
}

fn diagnosed(file: &Path, error: &NodeError, what: &str, instead: Option<&str>) -> Diagnostic {
    if let OpError::Outside { message, .. } = &error.error
        && let Some(missing) = missing(message)
    {
        return missing;
    }
    let mut location = Location::in_file(file);
    if let Some((line, column)) = error.span {
        location = location.line(line).column(column);
    }
    let cause = error.error.to_string();
    let (cause, remedy) = match cause.split_once("Help: ") {
        Some((cause, remedy)) => (cause.trim_end(), Some(remedy)),
        None => (cause.as_str(), None),
    };
    let (code, hint) = match &error.error {
        // What is missing on this machine is no fault of the program's.
        OpError::Invalid(_) if remedy.is_some() && error.node.is_none() => {
            (Code::new("run::unavailable"), remedy.unwrap_or_default())
        }
        OpError::Invalid(_) | OpError::OutOfRange(_) => (
            Code::new("run::invalid"),
            "the program is wrong at this node, and PyTorch refuses it too: `pyrite show` prints the shape and type of every value",
        ),
        OpError::Unsupported(_) => (
            Code::new("run::unsupported"),
            "`pyrite ops` lists what Pyrite can run; `--backend torch:eager --reference torch:eager` runs the rest in PyTorch",
        ),
        OpError::Fault(_) => (Code::new("run::internal"), "this is a bug in Pyrite; please report it with the file"),
        OpError::Outside { .. } => {
            (Code::new("run::outside"), "`pyrite minify` finds the smallest program that does this")
        }
    };
    let hint = instead.unwrap_or(hint);
    let node = error.node.as_ref().map(|n| format!(" at node `{n}`")).unwrap_or_default();
    let op = error.op.as_ref().map(|o| format!(" ({o})")).unwrap_or_default();
    let mut diagnostic = Diagnostic::error(code, format!("{what}{node}{op}")).at(location).cause(cause).hint(hint);
    if let Some(remedy) = remedy.filter(|remedy| *remedy != hint) {
        diagnostic = diagnostic.hint(remedy);
    }
    if let Some(stack) = &error.stack {
        diagnostic = diagnostic.hint(format!("the node was captured here: {}", stack.trim()));
    }
    diagnostic
}
