//! `-` where a file is expected: standard input, kept in a file while the command runs.
//!
//! A program is read more than once, by this process and by its workers. It has no folder of its own, so its storages are
//! found only by `--storages`, and results are written to the working directory.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;

/// Where standard input is kept.
static KEPT: Mutex<Option<tempfile::TempDir>> = Mutex::new(None);

/// No program is larger; the reader says so of what is cut off here.
const LIMIT: u64 = (1 << 28) + 1;

/// The words of a command line with the file that holds standard input in the place of `-`.
pub fn spooled(words: impl IntoIterator<Item = OsString>) -> anyhow::Result<Vec<OsString>> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    if words.iter().any(|word| word == "-") {
        let file = keep()?;
        words.iter_mut().filter(|word| *word == "-").for_each(|word| *word = file.clone().into_os_string());
    }
    Ok(words)
}

fn keep() -> anyhow::Result<PathBuf> {
    let folder = tempfile::tempdir().context("cannot store standard input")?;
    let path = folder.path().join("stdin.py");
    let mut text = Vec::new();
    std::io::stdin().lock().take(LIMIT).read_to_end(&mut text).context("standard input cannot be read")?;
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    Ok(path)
}

/// Whether a file holds standard input.
pub fn is_it(file: &Path) -> bool {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.as_ref().is_some_and(|folder| file.starts_with(folder.path()))
}

/// Removes the file.
pub fn forget() {
    drop(KEPT.lock().unwrap_or_else(PoisonError::into_inner).take());
}
