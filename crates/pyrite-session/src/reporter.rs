//! How a session tells what it does while it does it.
//!
//! A session returns data. What happens before that, and takes time, goes to a [`Reporter`]: the command line draws bars
//! and prints lines, Python writes to a notebook, a test collects.

use std::path::{Path, PathBuf};

use pyrite_diag::Diagnostic;
use pyrite_trace::event::Finding;

use crate::minify::Reduced;

/// Hears what a session does. Every method may be left out.
pub trait Reporter: Sync {
    /// One of several runs that confirm the failure begins.
    fn confirming(&self, run: u32, runs: u32, backend: &str) {
        let _ = (run, runs, backend);
    }

    /// A step has its answer.
    fn found(&self, finding: &Finding) {
        let _ = finding;
    }

    /// A search goes on.
    fn searching(&self, search: &Searching<'_>) {
        let _ = search;
    }

    /// A search is over, however it ended.
    fn searched(&self) {}

    /// The program was reduced, as a part of a session.
    fn reduced(&self, reduced: &Reduced) {
        let _ = reduced;
    }

    /// Something that changes how the session goes on.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// What the user may do next.
    fn next(&self, text: &str) {
        let _ = text;
    }

    /// Something went wrong that does not stop the session.
    fn warn(&self, diagnostic: Diagnostic) {
        let _ = diagnostic;
    }

    /// Whether the session should end; asked after every question.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Where the session stands now, for whoever interrupts it.
    fn standing(&self, standing: Standing) {
        let _ = standing;
    }
}

/// Hears nothing.
pub struct Silent;

impl Reporter for Silent {}

/// Where a search is.
#[derive(Clone, Copy, Debug)]
pub struct Searching<'a> {
    /// The pass that is trying.
    pub pass: &'a str,
    /// How many candidates were judged.
    pub queries: u64,
    /// Nodes and elements of the best candidate, once something smaller was found.
    pub best: Option<(usize, usize)>,
}

/// What is known of a session that is interrupted, and how to go on.
#[derive(Clone, Debug)]
pub enum Standing {
    /// The failure is being confirmed.
    Confirming {
        /// The file in question.
        file: PathBuf,
    },
    /// A program is being reduced.
    Reducing {
        /// The file in question.
        file: PathBuf,
        /// The folder of the result.
        folder: PathBuf,
        /// Folders of candidates, which nobody needs any more.
        scratch: Vec<PathBuf>,
    },
    /// The smallest program is found and written down; the rest explains it.
    Explaining {
        /// The repro.
        repro: PathBuf,
        /// What it shows, and whether that is proven.
        claim: String,
    },
}

impl Standing {
    /// What was found so far and how to go on.
    pub fn farewell(&self) -> String {
        match self {
            Self::Confirming { file } => format!(
                "interrupted before the failure was confirmed; run the same command again for {}",
                file.display()
            ),
            Self::Reducing { file, folder, .. } => {
                let best = folder.join("repro.py");
                let found = if best.exists() {
                    format!("the best result so far is {}", best.display())
                } else {
                    "nothing smaller was found yet".to_owned()
                };
                let (folder, file) = (folder.display(), file.display());
                format!(
                    "interrupted: {found}; the same command with `--resume {folder}` instead of `--out` continues with {file}"
                )
            }
            Self::Explaining { repro, claim } => {
                let repro = repro.display();
                format!(
                    "interrupted while explaining: {repro}: {claim}; `pyrite bisect {repro}` looks for the cause again"
                )
            }
        }
    }

    /// Ends the trace cleanly and removes what nobody needs.
    pub fn clean_up(&self) {
        pyrite_trace::flush();
        if let Self::Reducing { scratch, .. } = self {
            for place in scratch {
                let _ = std::fs::remove_dir_all(place);
            }
        }
    }

    /// The file or repro that it is about.
    pub fn file(&self) -> &Path {
        match self {
            Self::Confirming { file } | Self::Reducing { file, .. } => file,
            Self::Explaining { repro, .. } => repro,
        }
    }
}
