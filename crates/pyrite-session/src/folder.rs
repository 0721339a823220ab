//! The folders that results are written to.
//!
//! A folder that holds a session is never written over: [`check_unused`] is asked before anything is done, so that a
//! command that refuses has touched nothing.

use std::path::{Path, PathBuf};

use pyrite_diag::{Code, Diagnostic, Location};

use crate::SessionError;

/// The files by which a session is known.
const OF_A_SESSION: [&str; 5] = ["verdicts.jsonl", "repro.py", "report.md", "kernels.json", pyrite_trace::TRACE_FILE];

/// Refuses what is no folder, and a folder that holds a session, other than the one that this process has begun.
pub fn check_unused(out: &Path) -> Result<(), SessionError> {
    if pyrite_trace::folder().is_some_and(|own| own == out) {
        return Ok(());
    }
    // What cannot become a folder is told before a search, and not after it.
    if let Some(file) = out.ancestors().find(|place| place.exists()).filter(|place| !place.is_dir()) {
        return Err(SessionError::of(
            Diagnostic::error(Code::new("cli::no-folder"), "the result needs a folder")
                .at(Location::in_file(out))
                .cause(format!("{} is not a folder", file.display()))
                .hint("name another place with --out"),
        ));
    }
    let Some(found) = OF_A_SESSION.iter().map(|name| out.join(name)).find(|path| path.exists()) else { return Ok(()) };
    Err(SessionError::of(
        Diagnostic::error(Code::new("cli::occupied"), "the folder contains the results of another run")
            .at(Location::in_file(out))
            .cause(format!("{} exists", found.display()))
            .hint("choose another folder with --out, or remove this one; `pyrite minify --resume` continues a search"),
    ))
}

/// A new folder called `STEM-KIND-N`, beside a file or in another place.
pub(crate) fn beside(file: &Path, place: Option<&Path>, kind: &str) -> Result<PathBuf, SessionError> {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let parent = place.or(file.parent()).unwrap_or(Path::new(""));
    let failed = |cause: String| {
        SessionError::of(
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
