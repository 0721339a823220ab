//! How a command fails, and how that looks.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;

use pyrite_diag::{Colour, Diagnostic, Diagnostics, TextRenderer, to_json};

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
                println!("{{\"verdict\": \"invalid\", \"diagnostics\": {}}}", to_json(diagnostics));
            }
            Self::Input { diagnostics, json: false } => tell(diagnostics),
            Self::Outside(error) => eprintln!("error: {error:#}"),
        }
        ExitCode::from(2)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Outside(error.into())
    }
}

/// Writes one diagnostic to standard error.
pub fn tell_one(diagnostic: Diagnostic) {
    let mut diagnostics = Diagnostics::new();
    diagnostics.push(diagnostic);
    tell(&diagnostics);
}

/// Writes diagnostics to standard error, with the lines they speak of.
pub fn tell(diagnostics: &Diagnostics) {
    let colour = if std::io::stderr().is_terminal() { Colour::Ansi } else { Colour::Plain };
    let files: BTreeSet<PathBuf> = diagnostics.iter().filter_map(|d| d.location.file.clone()).collect();
    let sources: Vec<(PathBuf, String)> =
        files.into_iter().filter_map(|file| Some((file.clone(), std::fs::read_to_string(file).ok()?))).collect();
    let renderer = sources.iter().fold(TextRenderer::new(colour), |r, (file, text)| r.source(file.clone(), text));
    eprint!("{}", renderer.render_all(diagnostics));
}
