//! An oracle that asks any program.
//!
//! The program gets the path of a repro file as its last argument. Exit code 0: the failure is not there; 1: it is;
//! 125: cannot tell. A signal, the time limit and every other code are failures of their own class.

use std::process::Command as Program;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyrite_oracle::{Class, Oracle, Signature, Stage, Verdict};
use pyrite_reduce::Candidate;

use crate::process::{Heard, Process};
use crate::repro::{Folder, RepoError};

/// Asks a program; see the module's text.
pub struct Command {
    words: Vec<String>,
    time: Duration,
    scratch: Mutex<Folder>,
    place: tempfile::TempDir,
    asked: AtomicU64,
    failed: Mutex<Option<String>>,
}

impl Command {
    /// A program with its arguments, separated by blanks.
    pub fn new(line: &str, time: Duration) -> Result<Self, RepoError> {
        let place =
            tempfile::tempdir().map_err(|e| RepoError::Io { path: std::env::temp_dir(), cause: e.to_string() })?;
        Ok(Self {
            words: line.split_whitespace().map(str::to_owned).collect(),
            time,
            scratch: Mutex::new(Folder::scratch(place.path())?),
            place,
            asked: AtomicU64::new(0),
            failed: Mutex::default(),
        })
    }

    /// Why a candidate could not be written, if one could not.
    pub fn failed(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Where candidates are written.
    pub fn scratch(&self) -> &std::path::Path {
        self.place.path()
    }

    /// With a program that runs the command as its own arguments say, and ends it when this process is gone.
    #[must_use]
    pub fn supervised_by(mut self, program: Vec<String>) -> Self {
        let parent = std::process::id().to_string();
        let supervise = ["supervise".to_owned(), "--parent".to_owned(), parent, "--".to_owned()];
        self.words.splice(..0, program.into_iter().chain(supervise));
        self
    }

    fn run(&self, path: &std::path::Path) -> Verdict {
        let Some((program, args)) = self.words.split_first() else {
            return Verdict::Invalid("there is no command to ask".to_owned());
        };
        let mut process = match Process::start(Program::new(program).args(args).arg(path)) {
            Ok(process) => process,
            Err(error) => {
                return Verdict::Invalid(format!(
                    "{program} cannot be started: {error}; is it spelled so, and executable?"
                ));
            }
        };
        drop(process.input.take());
        let until = Instant::now() + self.time;
        while let Heard::Line(_) = process.hear(until) {}
        let Some(status) = process.wait(until) else {
            return Verdict::Fail(Signature::new(Stage::Forward, Class::Hang));
        };
        match status.code() {
            Some(0) => Verdict::Pass,
            Some(125) => {
                let said = process.errors();
                let why = said.trim().lines().last().map(|last| format!(": {last}")).unwrap_or_default();
                Verdict::Invalid(format!("the command cannot tell{why}"))
            }
            Some(1) => Verdict::Fail(Signature::new(Stage::Forward, Class::Exit(1))),
            _ => Verdict::Fail(Signature::new(Stage::Forward, process.class(status))),
        }
    }
}

impl Oracle<Candidate> for Command {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let written = {
            let folder = self.scratch.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            folder.write(&format!("candidate_{number}.py"), candidate, &[])
        };
        match written {
            Ok(path) => self.run(&path),
            Err(error) => {
                let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failed.get_or_insert(error.to_string());
                Verdict::Invalid(error.to_string())
            }
        }
    }
}
