//! Programs in folders: what `TORCH_COMPILE_DEBUG=1`, PyTorch's minifier, tlparse and Pyrite leave.
//!
//! Such folders hold several texts of each graph. Those that can be run again are taken: a `repro.py`, a
//! `minifier_launcher.py`, an `fx_graph_runnable`, which tlparse numbers and calls `.txt`. A folder without any of them is one of
//! programs: all of its `.py` files.
//!
//! Invariant: a folder may be a stranger's, so no link out of it is followed, none to a folder at all, and only what is a file is
//! opened: a pipe that nobody writes to would be waited for.

use std::path::{Path, PathBuf};

use pyrite_diag::{Code, Diagnostic, Location};

use crate::SessionError;

/// How the names of files begin that can be run again.
const RUNNABLE: [&str; 3] = ["repro", "minifier_launcher", "fx_graph_runnable"];

/// A file, or the programs in a folder and below, in the order of their paths.
pub fn programs_in(path: &Path) -> Result<Vec<PathBuf>, SessionError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let failed = |cause| SessionError::system(format!("the folder {} cannot be listed", folder.display()))(cause);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (place, kind) = (entry.path(), entry.file_type().map_err(failed)?);
            if kind.is_dir() && place.file_name().is_some_and(|name| name != "trace" && name != "storages") {
                open.push(place);
            } else if place.extension().is_some_and(|extension| extension == "py" || extension == "txt")
                && (kind.is_file() || kind.is_symlink() && is_file_within(&place, path))
            {
                files.push(place);
            }
        }
    }
    let runnable: Vec<PathBuf> = files.iter().filter(|path| is_runnable(path)).cloned().collect();
    let mut found = if runnable.is_empty() {
        files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "py")).collect()
    } else {
        runnable
    };
    found.sort();
    if found.is_empty() {
        let problem = Diagnostic::error(Code::new("bisect::no-program"), "the folder contains no program");
        return Err(SessionError::of(problem.at(Location::in_file(path)).hint("name a .py file or its folder")));
    }
    Ok(found)
}

/// Whether a path is a file in a folder once all links are followed.
fn is_file_within(path: &Path, folder: &Path) -> bool {
    let real = (path.canonicalize(), folder.canonicalize());
    path.is_file() && matches!(real, (Ok(path), Ok(folder)) if path.starts_with(&folder))
}

/// Whether a path is a named pipe. Those that the system makes, such as a shell's `<(command)`, have somebody who writes.
fn is_named_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let of_system = ["/dev", "/proc"].iter().any(|place| path.starts_with(place));
    !of_system && std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// The one program that a path means: a file, or the only program of a folder.
pub(crate) fn program_at(path: &Path) -> Result<PathBuf, SessionError> {
    if is_named_pipe(path) {
        let problem = Diagnostic::error(Code::new("cli::named-pipe"), "this is a named pipe, not a file");
        let hint = format!("if something writes to it: `pyrite … - < {}`", path.display());
        return Err(SessionError::of(problem.at(Location::in_file(path)).hint(hint)));
    }
    let mut found = programs_in(path)?;
    if found.len() == 1 {
        return Ok(found.swap_remove(0));
    }
    let names: Vec<String> = found.iter().take(20).map(|file| file.display().to_string()).collect();
    let problem = Diagnostic::error(Code::new("cli::several-programs"), "the folder contains several programs");
    let problem = problem.at(Location::in_file(path)).cause(names.join(", "));
    Err(SessionError::of(problem.hint("name one of them; `pyrite bisect FOLDER` finds the first that fails")))
}

fn is_runnable(path: &Path) -> bool {
    let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { return false };
    RUNNABLE.iter().any(|name| {
        let rest = stem.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('_').is_some_and(is_number))
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
