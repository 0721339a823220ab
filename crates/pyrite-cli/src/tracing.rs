//! Traces of commands: where they go, what they hold, and how they are told.
//!
//! A command that compiles in this process is traced where `--trace` or `PYRITE_COMPILE_DEBUG` asks, into a folder of its
//! own. One that debugs keeps a `trace.jsonl` in the folder of its result, asked or not. Workers are never traced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_ir::Graph;
use pyrite_trace::event::Repro;
use pyrite_trace::{Event, Files, LogLevels, Setup, Topic, Topics, UnknownTopic};

use crate::environment;
use crate::failure::{Failure, tell_one};

/// Where traces and repros go: what `PYRITE_DEBUG_DIR` names, else `pyrite_debug`.
pub fn base() -> PathBuf {
    environment::value("PYRITE_DEBUG_DIR").map_or_else(|| PathBuf::from("pyrite_debug"), PathBuf::from)
}

/// Begins to log as `PYRITE_LOGS` says.
pub fn begin_logs() -> Result<(), Failure> {
    let levels = match environment::value("PYRITE_LOGS") {
        Some(text) => LogLevels::parse(&text).map_err(|error| unknown("PYRITE_LOGS", &error))?,
        None => LogLevels::default(),
    };
    pyrite_trace::set_logs(levels, Arc::new(|topic, _, text| eprintln!("pyrite.{}: {text}", topic.name())));
    Ok(())
}

/// Begins a trace of a command that compiles, where it is asked for.
pub fn begin(asked: Option<&str>) -> Result<(), Failure> {
    let (from, text) = match asked {
        Some(text) => ("--trace", text.to_owned()),
        None => match environment::value("PYRITE_COMPILE_DEBUG") {
            Some(text) => ("PYRITE_COMPILE_DEBUG", text),
            None => return Ok(()),
        },
    };
    let topics = Topics::parse(&text).map_err(|error| unknown(from, &error))?;
    if topics.is_empty() {
        return Ok(());
    }
    start(Setup { topics, ..Setup::new(&pyrite_trace::run_folder(&base())) })
}

fn start(setup: Setup) -> Result<(), Failure> {
    let folder = setup.folder.clone();
    pyrite_trace::start(setup).map_err(|error| {
        let problem = Diagnostic::error(Code::new("trace::cannot-write"), "the trace cannot be written");
        let problem = problem.at(Location::in_file(&folder)).cause(error.to_string());
        Failure::of(problem.hint("name a folder that can be written with PYRITE_DEBUG_DIR"))
    })
}

/// Begins the trace of a command that debugs, in the folder of its result; one that is going on goes on.
pub fn begin_in(folder: &Path) {
    if pyrite_trace::folder().is_some() {
        return;
    }
    let topics = Topics::parse("debug,timings").unwrap_or(Topics::ALL);
    let setup = Setup { topics, files: Files::TraceOnly, ..Setup::new(folder) };
    if let Err(error) = pyrite_trace::start(setup) {
        untraced(&error);
    }
}

/// Begins the trace of a demo, with everything in it; returns its folder.
pub fn begin_demo(out: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = out.map_or_else(|| pyrite_trace::run_folder(&base()), Path::to_owned);
    start(Setup::new(&folder))?;
    Ok(folder)
}

/// Leaves everything but these topics out of the trace from here on.
pub use pyrite_trace::limit;

/// Ends a trace and leaves nothing of it in the folder.
pub fn discard(folder: &Path) {
    if pyrite_trace::folder().is_some_and(|traced| traced == folder) {
        let _ = pyrite_trace::stop();
        let _ = std::fs::remove_file(folder.join(pyrite_trace::TRACE_FILE));
    }
}

/// Ends a trace, and says where it is if it has a folder of its own.
pub fn end() {
    let own = pyrite_trace::folder().is_some_and(|folder| folder.starts_with(base()));
    match pyrite_trace::stop() {
        Ok(Some(folder)) if own => eprintln!("trace: {}", folder.display()),
        Ok(_) => {}
        Err(error) => untraced(&error),
    }
}

/// A trace that cannot be kept is no reason to stop.
fn untraced(error: &pyrite_trace::TraceError) {
    let problem = Diagnostic::warning(Code::new("trace::cannot-write"), "this run is not traced");
    tell_one(problem.cause(error.to_string()).hint("make room, or name another folder"));
}

fn unknown(from: &str, error: &UnknownTopic) -> Failure {
    let problem = Diagnostic::error(Code::new("environment::bad-value"), format!("{from}: {error}"));
    Failure::of(problem.hint("`pyrite logs` lists the names"))
}

/// Tells the trace of the program that is debugged.
pub fn tell_program(graph: &Graph, file: &str) {
    pyrite_trace::emit(Topic::Debug, || Event::Graph(pyrite_ir::dump::dump(graph, file)));
}

/// Tells the trace of a repro.
pub fn tell_repro(path: &Path, signature: &str, proven: bool) {
    pyrite_trace::emit(Topic::Debug, || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Event::Repro(Repro { path: path.display().to_string(), text, signature: signature.to_owned(), proven })
    });
}
