//! The oracles of a search: workers, or a command.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyrite_debug::{Command, Isolated, Limits, Question};
use pyrite_oracle::{Class, Oracle, Verdict};
use pyrite_reduce::Candidate;

/// The oracle of a search.
pub(super) enum Asked {
    Workers(Box<Timed>),
    Command(Box<Command>),
}

impl Asked {
    pub(super) fn as_oracle(&self) -> &dyn Oracle<Candidate> {
        match self {
            Self::Workers(workers) => &**workers,
            Self::Command(command) => &**command,
        }
    }

    /// Tells how long the first question took when it was asked before, and what was answered.
    pub(super) fn learn(&self, took: Duration, verdict: &Verdict) {
        if let Self::Workers(asked) = self {
            asked.learn(took, verdict);
        }
    }

    /// What a candidate may use now.
    pub(super) fn limits(&self) -> Option<Limits> {
        match self {
            Self::Workers(asked) => Some(asked.isolated.limits()),
            Self::Command(_) => None,
        }
    }

    /// Why a candidate could not be written, if one could not.
    pub(super) fn failed(&self) -> Option<String> {
        match self {
            Self::Workers(asked) => asked.isolated.failed(),
            Self::Command(command) => command.failed(),
        }
    }

    /// Where candidates are written.
    pub(super) fn scratch(&self) -> &Path {
        match self {
            Self::Workers(asked) => asked.isolated.scratch(),
            Self::Command(command) => command.scratch(),
        }
    }

    /// Starts workers ahead of the first question.
    pub(super) fn prepare(&self, workers: usize) {
        if let Self::Workers(asked) = self {
            asked.isolated.prepare(workers);
        }
    }

    pub(super) fn judge_path(&self, path: &Path, question: &Question, candidate: &Candidate) -> Verdict {
        match self {
            Self::Workers(workers) => workers.isolated.judge_asked(path, question),
            Self::Command(command) => command.judge(candidate),
        }
    }
}

/// How long a candidate of a program that hangs may take, where every run compiles in a process of its own.
const HANGING: Duration = Duration::from_mins(1);

/// Workers whose time limit follows from the first run: candidates are smaller, so ten times as long is a hang. A first run
/// that hangs says nothing of that.
pub(super) struct Timed {
    isolated: Arc<Isolated>,
    limits: Limits,
    fixed: bool,
    first: Mutex<Option<Duration>>,
}

impl Timed {
    /// Workers whose limit of time is given, or follows.
    pub(super) fn new(isolated: Arc<Isolated>, limits: Limits, time: Option<Duration>) -> Self {
        Self { isolated, limits, fixed: time.is_some(), first: Mutex::new(None) }
    }

    fn learn(&self, took: Duration, verdict: &Verdict) {
        let mut first = self.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if first.is_none() && !self.fixed {
            *first = Some(took);
            let hangs = verdict.signature().is_some_and(|signature| signature.class == Class::Hang);
            let time = if hangs { HANGING } else { (took * 10).max(Duration::from_secs(5)) };
            self.isolated.set_limits(Limits { time, ..self.limits });
        }
    }
}

impl Oracle<Candidate> for Timed {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        let start = Instant::now();
        let verdict = self.isolated.judge(candidate);
        self.learn(start.elapsed(), &verdict);
        verdict
    }
}
