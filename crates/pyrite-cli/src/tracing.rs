//! Traces of commands: where they go, what they hold, and how they are told.
//!
//! A command that compiles in this process is traced where `--trace` or `PYRITE_COMPILE_DEBUG` asks, into a folder of its
//! own. One that debugs keeps a `trace.jsonl` in the folder of its result, asked or not. Workers are never traced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_session::environment::{self, debug_folder};
use pyrite_session::tracing::untraced;
use pyrite_trace::{LogLevels, Setup, Topics, UnknownTopic};

use crate::failure::{Failure, tell_one};

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
    start(Setup { topics, ..Setup::new(&pyrite_trace::run_folder(&debug_folder())) })
}

fn start(setup: Setup) -> Result<(), Failure> {
    let folder = setup.folder.clone();
    pyrite_trace::start(setup).map_err(|error| {
        let problem = Diagnostic::error(Code::new("trace::cannot-write"), "the trace cannot be written");
        let problem = problem.at(Location::in_file(&folder)).cause(error.to_string());
        Failure::of(problem.hint("name a folder that can be written with PYRITE_DEBUG_DIR"))
    })
}

pub use pyrite_session::tracing::begin as begin_in;

/// Begins the trace of a demo, with everything in it; returns its folder.
pub fn begin_demo(out: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = out.map_or_else(|| pyrite_trace::run_folder(&debug_folder()), Path::to_owned);
    start(Setup::new(&folder))?;
    Ok(folder)
}

/// Leaves everything but these topics out of the trace from here on.
pub use pyrite_trace::limit;

/// Ends a trace, and says where it is if it has a folder of its own.
pub fn end() {
    let own = pyrite_trace::folder().is_some_and(|folder| folder.starts_with(debug_folder()));
    match pyrite_trace::stop() {
        Ok(Some(folder)) if own => eprintln!("trace: {}", folder.display()),
        Ok(_) => {}
        Err(error) => tell_one(untraced(&error)),
    }
}

fn unknown(from: &str, error: &UnknownTopic) -> Failure {
    let problem = Diagnostic::error(Code::new("environment::bad-value"), format!("{from}: {error}"));
    Failure::of(problem.hint("`pyrite logs` lists the names"))
}
