//! An oracle that asks worker processes.
//!
//! Workers are warm: one answers many questions. When a candidate ends it, or takes too long and is ended, that is the
//! verdict, and the next question goes to a new worker. A worker says which stage it has come to, so a crash knows
//! where it happened; one that ends while the reference runs says nothing of the backend, and the question is invalid.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyrite_oracle::{Class, Detail, Oracle, Signature, Stage, Verdict};
use pyrite_reduce::Candidate;
use serde_json::{Value as Json, json};

use crate::process::{Heard, Process};
use crate::repro::{Folder, RepoError};
use crate::{Question, Step};

/// What a candidate may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take.
    pub time: Duration,
    /// How many bytes of memory of its own it may have.
    pub memory: Option<u64>,
}

impl Limits {
    /// The memory a candidate may use where nobody says: three quarters of the machine's, so that what eats memory ends
    /// before the machine does. `None` where the system does not say how much there is.
    pub fn usual_memory() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kilobytes: u64 = total.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kilobytes * 1024 / 4 * 3)
    }
}

/// Asks workers; see the module's text.
pub struct Isolated {
    program: PathBuf,
    arguments: Vec<OsString>,
    question: Question,
    limits: Mutex<Limits>,
    place: PathBuf,
    scratch: Mutex<Scratch>,
    idle: Mutex<Vec<Process>>,
    asked: AtomicU64,
    failed: Mutex<Option<String>>,
}

/// Where candidates are written for workers to read.
struct Scratch {
    folder: Folder,
    _place: tempfile::TempDir,
}

// The folder's cache of storages is used under the lock alone.
impl Isolated {
    /// Workers of a program (the `pyrite` command, with arguments before its sub-command) for a question.
    pub fn new(
        program: &Path,
        arguments: Vec<OsString>,
        question: Question,
        limits: Limits,
    ) -> Result<Self, RepoError> {
        let place =
            tempfile::tempdir().map_err(|e| RepoError::Io { path: std::env::temp_dir(), cause: e.to_string() })?;
        let folder = Folder::scratch(place.path())?;
        Ok(Self {
            program: program.to_owned(),
            arguments,
            question,
            limits: Mutex::new(limits),
            place: place.path().to_owned(),
            scratch: Mutex::new(Scratch { folder, _place: place }),
            idle: Mutex::default(),
            asked: AtomicU64::new(0),
            failed: Mutex::default(),
        })
    }

    /// Why a candidate could not be written, if one could not.
    pub fn failed(&self) -> Option<String> {
        lock(&self.failed).clone()
    }

    /// Where candidates are written.
    pub fn scratch(&self) -> &Path {
        &self.place
    }

    /// Gives later candidates other limits.
    pub fn set_limits(&self, limits: Limits) {
        *lock(&self.limits) = limits;
    }

    fn worker(&self, limits: Limits) -> std::io::Result<Process> {
        if let Some(worker) = lock(&self.idle).pop() {
            return Ok(worker);
        }
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg("worker").arg("--parent").arg(std::process::id().to_string());
        if let Some(memory) = limits.memory {
            command.arg("--memory-limit").arg(memory.to_string());
        }
        Process::start(&mut command)
    }

    /// Starts workers ahead of the first question, so that they import what they need while there is other work. What
    /// goes wrong with them is told by the question that needs them.
    pub fn prepare(&self, workers: usize) {
        let limits = *lock(&self.limits);
        let request = json!({"cmd": "prepare", "question": self.question, "blob": 0});
        let mut started: Vec<Process> = (0..workers).filter_map(|_| self.worker(limits).ok()).collect();
        for worker in &mut started {
            let _ = worker.input.as_mut().map(|input| writeln!(input, "{request}").and_then(|()| input.flush()));
        }
        lock(&self.idle).append(&mut started);
    }

    /// Asks about a file that is written already.
    pub fn judge_path(&self, path: &Path) -> Verdict {
        self.judge_asked(path, &self.question)
    }

    /// Asks the same workers another question about such a file. A worker that was killed says nothing about the program
    /// yet, because others kill too: the question is put once more, and what the system kills for its memory is killed
    /// again.
    pub fn judge_asked(&self, path: &Path, question: &Question) -> Verdict {
        match self.judge_once(path, question) {
            Answer::Verdict(verdict) => verdict,
            Answer::Died { signature, .. } if signature.class == Class::OutOfMemory => {
                self.judge_once(path, question).verdict(question)
            }
            died => died.verdict(question),
        }
    }

    fn judge_once(&self, path: &Path, question: &Question) -> Answer {
        let limits = *lock(&self.limits);
        let mut worker = match self.worker(limits) {
            Ok(worker) => worker,
            Err(error) => {
                return Answer::Verdict(Verdict::Invalid(format!(
                    "no worker can be started: {error}; `pyrite doctor` tries one"
                )));
            }
        };
        let request = json!({"cmd": "judge", "file": path, "question": question, "blob": 0});
        let until = Instant::now() + limits.time;
        let sent = worker.input.as_mut().map(|input| writeln!(input, "{request}").and_then(|()| input.flush()));
        let (mut stage, mut step) = (Stage::Compile, Step::Backend(Stage::Compile));
        if matches!(sent, Some(Ok(()))) {
            loop {
                match worker.hear(until) {
                    Heard::Line(line) => match answer(&line) {
                        Said::Step(now) => {
                            step = now;
                            if let Step::Backend(now) = now {
                                stage = now;
                            }
                        }
                        Said::Prepared => {}
                        Said::Verdict(verdict) => {
                            lock(&self.idle).push(worker);
                            return Answer::Verdict(verdict);
                        }
                        Said::Garbage => {
                            let detail = Detail { message: Some(line), ..Detail::default() };
                            let signature = Signature::new(stage, Class::Garbage).detailed(detail);
                            return Answer::Died { signature, step };
                        }
                    },
                    Heard::Ended => break,
                    Heard::TimeIsUp => {
                        return Answer::Died { signature: Signature::new(stage, Class::Hang), step };
                    }
                }
            }
        }
        let class = match worker.wait(Instant::now() + Duration::from_secs(2)) {
            Some(status) => worker.class(status),
            None => Class::Garbage,
        };
        let message = worker.errors();
        let detail = Detail { message: (!message.is_empty()).then_some(message), ..Detail::default() };
        Answer::Died { signature: Signature::new(stage, class).detailed(detail), step }
    }
}

/// What came of a question.
enum Answer {
    Verdict(Verdict),
    /// The worker ended, was ended or said nothing sensible, at a step.
    Died {
        signature: Signature,
        step: Step,
    },
}

impl Answer {
    fn verdict(self, question: &Question) -> Verdict {
        match self {
            Self::Verdict(verdict) => verdict,
            Self::Died { signature, step: Step::Backend(_) } => Verdict::Fail(signature),
            Self::Died { signature, step: Step::Reference } => {
                Verdict::Invalid(format!("the reference {} gives no answer: {signature}", question.reference))
            }
        }
    }
}

impl Oracle<Candidate> for Isolated {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let written = lock(&self.scratch).folder.write(&format!("candidate_{number}.py"), candidate, &[]);
        match written {
            Ok(path) => {
                let verdict = self.judge_path(&path);
                let _ = std::fs::remove_file(path);
                verdict
            }
            Err(error) => {
                lock(&self.failed).get_or_insert(error.to_string());
                Verdict::Invalid(error.to_string())
            }
        }
    }
}

enum Said {
    Step(Step),
    Prepared,
    Verdict(Verdict),
    Garbage,
}

fn answer(line: &str) -> Said {
    let Ok(json) = serde_json::from_str::<Json>(line) else { return Said::Garbage };
    if let Ok(stage) = serde_json::from_value::<Stage>(json["stage"].clone()) {
        return Said::Step(Step::Backend(stage));
    }
    if json["reference"] == true {
        return Said::Step(Step::Reference);
    }
    if json["prepared"] == true {
        return Said::Prepared;
    }
    match serde_json::from_value::<Verdict>(json["verdict"].clone()) {
        Ok(verdict) => Said::Verdict(verdict),
        Err(_) => match json["message"].as_str() {
            Some(message) => Said::Verdict(Verdict::Invalid(message.to_owned())),
            None => Said::Garbage,
        },
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
