//! The folders that results are written to.
//!
//! A folder that holds a session is never written over: [`check_unused`] is asked before anything is done, so that a
//! command that refuses has touched nothing.

use std::path::{Path, PathBuf};

use pyrite_diag::{Code, Diagnostic, Location};

use crate::failure::Failure;
use crate::standard_input;

/// The files by which a session is known.
const OF_A_SESSION: [&str; 4] = ["verdicts.jsonl", "repro.py", "report.md", pyrite_trace::TRACE_FILE];

/// Refuses a folder that holds a session, other than the one that this process has begun.
pub fn check_unused(out: &Path, file: &Path) -> Result<(), Failure> {
    if pyrite_trace::folder().is_some_and(|own| own == out) {
        return Ok(());
    }
    let Some(found) = OF_A_SESSION.iter().map(|name| out.join(name)).find(|path| path.exists()) else { return Ok(()) };
    Err(Failure::of(
        Diagnostic::error(Code::new("cli::occupied"), "the result would overwrite another")
            .at(Location::in_file(file))
            .cause(format!("{} is there", found.display()))
            .hint("name another folder with --out; `pyrite minify --resume` goes on with a search"),
    ))
}

/// A new folder beside a file, or in the working directory for standard input, called `STEM-KIND-N`.
pub fn beside(file: &Path, kind: &str) -> Result<PathBuf, Failure> {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let parent = if standard_input::is_it(file) { None } else { file.parent() };
    let parent = parent.unwrap_or(Path::new(""));
    let failed = |cause: String| {
        Failure::of(
            Diagnostic::error(Code::new("cli::cannot-write"), "the result cannot be written")
                .at(Location::in_file(file))
                .cause(cause)
                .hint("name a folder that can be written with --out"),
        )
    };
    for number in 1..=u32::MAX {
        let path = parent.join(format!("{stem}-{kind}-{number}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(format!("{}: {error}", path.display()))),
        }
    }
    Err(failed("all numbers are taken".to_owned()))
}
