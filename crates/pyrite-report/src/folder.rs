//! Finding what a folder holds.

use std::fs;
use std::path::{Path, PathBuf};

use pyrite_trace::TRACE_FILE;

use crate::view::{File, RunView};
use crate::{ReportError, from_trace, session};

/// How much of one file is shown.
const LONGEST: usize = 400_000;
/// How much of all files together.
const MOST: usize = 24_000_000;
/// How deep folders are looked into: stage and graph.
const DEPTH: usize = 3;
/// Files that people read.
const READABLE: &[&str] = &["py", "txt", "log", "md", "json"];

/// Reads what a run left in a folder.
pub fn open(path: &Path) -> Result<RunView, ReportError> {
    let cannot = |cause: String| ReportError::NoFolder { path: path.to_owned(), cause };
    let found = fs::metadata(path).map_err(|error| cannot(error.to_string()))?;
    // A trace may be named by its file.
    let folder = match (found.is_dir(), path.file_name(), path.parent()) {
        (false, Some(name), Some(parent)) if name == TRACE_FILE => parent,
        (false, _, _) => return Err(cannot("it is a file".to_owned())),
        (true, _, _) => path,
    };
    let folder = &with_trace(folder).map_err(|error| cannot(error.to_string()))?;
    let mut run = if is_file(&folder.join(TRACE_FILE)) {
        from_trace::read(folder)?
    } else {
        session::read(folder).ok_or_else(|| ReportError::NothingInIt { path: path.to_owned() })?
    };
    run.folder = folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into());
    add_files(&mut run, folder);
    Ok(run)
}

/// Whether a path is a file itself, and no link to one: a folder may be a stranger's.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// The folder itself if it has a trace or a repro, else the last run below it.
fn with_trace(folder: &Path) -> std::io::Result<PathBuf> {
    if is_file(&folder.join(TRACE_FILE)) || is_file(&folder.join(session::REPRO)) {
        return Ok(folder.to_owned());
    }
    let mut runs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_file(&path.join(TRACE_FILE)) {
            runs.push(path);
        }
    }
    // The names of runs begin with their time.
    Ok(runs.into_iter().max().unwrap_or_else(|| folder.to_owned()))
}

/// Adds the readable files of the folder that the run does not have yet.
fn add_files(run: &mut RunView, folder: &Path) {
    let mut paths = Vec::new();
    walk(folder, DEPTH, &mut paths);
    paths.sort();
    let mut room = MOST.saturating_sub(run.files.iter().map(|file| file.text.len()).sum());
    for path in paths {
        let Ok(relative) = path.strip_prefix(folder) else { continue };
        let shown = relative.to_string_lossy().replace('\\', "/");
        if run.files.iter().any(|file| file.path == shown) {
            continue;
        }
        let Ok(bytes) = fs::read(&path) else { continue };
        let text = shortened(String::from_utf8_lossy(&bytes).into_owned());
        if text.len() > room {
            continue;
        }
        room -= text.len();
        run.files.push(file_at(&shown, text));
    }
}

/// A file by its path, whose folders are the stage and the graph.
pub fn file_at(path: &str, text: String) -> File {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or(path).to_owned();
    let part = |index: usize| parts.get(index).map(|part| (*part).to_owned());
    File { path: path.to_owned(), name, stage: part(0), graph: part(1), text }
}

/// A text that is not longer than what is shown, cut at the end of a line.
pub fn shortened(mut text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let end = text.as_bytes()[..LONGEST].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let left = text.len() - end;
    text.truncate(end);
    text.push_str(&format!("\n… {left} more bytes are in the file"));
    text
}

fn walk(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 1 {
            walk(&path, depth - 1, paths);
        } else if kind.is_file()
            && path.extension().and_then(|extension| extension.to_str()).is_some_and(|e| READABLE.contains(&e))
        {
            paths.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_line_and_says_so() {
        let text = "a line of text\n".repeat(40_000);
        let short = shortened(text.clone());
        assert!(short.len() < LONGEST + 100);
        assert!(short.ends_with("more bytes are in the file"), "{}", &short[short.len() - 60..]);
        assert_eq!(shortened("short".to_owned()), "short");
    }

    #[test]
    fn a_file_knows_its_stage_and_graph_by_its_folders() {
        let file = file_at("aot/forward_0/joint.py", String::new());
        assert_eq!(
            (file.stage.as_deref(), file.graph.as_deref(), file.name.as_str()),
            (Some("aot"), Some("forward_0"), "joint.py")
        );
        let file = file_at("timings.txt", String::new());
        assert_eq!((file.stage, file.graph), (None, None));
    }
}
