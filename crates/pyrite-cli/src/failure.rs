//! How a command fails, and how that looks.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::PathBuf;

use pyrite_diag::{Code, Colour, Diagnostic, Diagnostics, TextRenderer};
use pyrite_session::{Program, SessionError};
use serde_json::json;

use crate::ExitCode;

/// Why a command did not do what it was asked for.
pub enum Failure {
    /// The input or the usage was wrong.
    Input {
        /// What was wrong.
        diagnostics: Diagnostics,
        /// Whether to report as JSON on standard output.
        json: bool,
    },
    /// Something outside of the input failed: a pipe, a disk.
    Outside(anyhow::Error),
}

impl Failure {
    /// One wrong thing, as text.
    pub fn of(diagnostic: Diagnostic) -> Self {
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(diagnostic);
        Self::Input { diagnostics, json: false }
    }

    /// The same, as JSON if asked for.
    #[must_use]
    pub fn told_in_json(self, wanted: bool) -> Self {
        match self {
            Self::Input { diagnostics, .. } => Self::Input { diagnostics, json: wanted },
            other => other,
        }
    }

    /// Tells the user, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            Self::Input { diagnostics, json: true } => {
                println!("{}", json!({"verdict": "invalid", "diagnostics": diagnostics}));
            }
            Self::Input { diagnostics, json: false } => tell(diagnostics),
            Self::Outside(error) => tell_one(outside(error)),
        }
        ExitCode::from(2)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Input(diagnostics) => Self::Input { diagnostics, json: false },
            SessionError::System { what, cause } => Self::Outside(anyhow::Error::new(cause).context(what)),
            SessionError::Unwritten(error) => Self::Outside(error.into()),
            SessionError::Interrupted(standing) => Self::Outside(anyhow::anyhow!(standing.farewell())),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Outside(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Outside(error.into())
    }
}

/// What is outside of the input, with what helps against it.
fn outside(error: &anyhow::Error) -> Diagnostic {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let hint = match kind {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            "free disk space, or use another disk: --out for results, TMPDIR for temporary files"
        }
        Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            "name a folder that you may write to: --out for results, TMPDIR for temporary files"
        }
        Some(ErrorKind::NotFound) => "check that the path exists and is spelled so",
        Some(ErrorKind::OutOfMemory) => "free memory, or run fewer candidates at a time with --jobs 1",
        _ => "run `pyrite doctor` to check the installation; if it finds no problem, please report this",
    };
    Diagnostic::error(Code::new("cli::outside"), format!("{error:#}")).hint(hint)
}

/// Writes one diagnostic to standard error.
pub fn tell_one(diagnostic: Diagnostic) {
    let mut diagnostics = Diagnostics::new();
    diagnostics.push(diagnostic);
    tell(&diagnostics);
}

/// Says what the reader noticed.
pub fn tell_notes(program: &Program) {
    let mut notes = Diagnostics::new();
    notes.extend(program.read.notes.iter().cloned());
    tell(&notes);
}

/// Writes diagnostics to standard error, with the lines they speak of.
fn tell(diagnostics: &Diagnostics) {
    let colour = if std::io::stderr().is_terminal() { Colour::Ansi } else { Colour::Plain };
    let files: BTreeSet<PathBuf> =
        diagnostics.iter().filter(|d| d.location.line.is_some()).filter_map(|d| d.location.file.clone()).collect();
    let sources: Vec<(PathBuf, String)> =
        files.into_iter().filter_map(|file| Some((file.clone(), std::fs::read_to_string(file).ok()?))).collect();
    let renderer = sources.iter().fold(TextRenderer::new(colour), |r, (file, text)| r.source(file.clone(), text));
    eprint!("{}", renderer.render_all(diagnostics));
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn what_fails_outside_is_told_with_what_helps() {
        let full: anyhow::Result<()> = Err(io::Error::from(ErrorKind::StorageFull)).context("found/report.md");
        let told = outside(&full.unwrap_err());
        assert!(told.message.starts_with("found/report.md: "), "{}", told.message);
        assert!(told.hints[0].contains("--out"), "{:?}", told.hints);
        assert!(outside(&anyhow::anyhow!("odd")).hints[0].contains("pyrite doctor"));
    }
}
