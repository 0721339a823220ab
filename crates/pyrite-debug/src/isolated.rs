//! An oracle that asks worker processes.
//!
//! Workers are warm: one answers many questions. When a candidate ends it, or takes too long and is ended, that is the
//! verdict, and the next question goes to a new worker. A worker says which stage it has come to, so a crash knows
//! where it happened; one that ends while the reference runs says nothing of the backend, and the question is invalid.
//!
//! A failure of the machinery is never a verdict on a backend:
//! - a worker that ends before it has begun with the program, or that answers what is no answer, makes a question invalid;
//! - so does one that ends while a backend works that has processes of its own (`torch:`, `cmd:`): those are watched where
//!   they are started, and the time they take counts there;
//! - the first failure of a session counts only after the backend has shown that it can run a trivial program. One that
//!   fails even there was not asked what the session wants to know.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use pyrite_ir::{Builder, Device, Meta, Value};
use pyrite_oracle::{Class, Detail, Oracle, Signature, Stage, Verdict};
use pyrite_reduce::Candidate;
use pyrite_tensor::Tensor;
use pyrite_trace::{Level, Topic};
use serde_json::{Value as Json, json};

use crate::command_backend::WORKER_FAILED;
use crate::process::{Heard, MOST_CROWDED, Process, crowding};
use crate::repro::{Folder, RepoError, candidate_of};
use crate::torch::without_setting;
use crate::{Question, Step};

/// What a candidate may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take on an idle machine; where others work too, as many times as long as [`crowding`] says.
    pub time: Duration,
    /// How many bytes of memory of its own it may have.
    pub memory: Option<u64>,
}

impl Limits {
    /// The memory a candidate may use where nobody says: three quarters of the machine's, so that what eats memory ends
    /// before the machine does. `None` where the system does not say how much there is.
    pub fn usual_memory() -> Option<u64> {
        Some(Self::machine_memory()? / 4 * 3)
    }

    /// The memory of the machine, in bytes.
    pub fn machine_memory() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kilobytes: u64 = total.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kilobytes * 1024)
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
    /// The first candidate, about which every difference is weighed thoroughly: what is taken for a failure there is searched for.
    whole: OnceLock<[u8; 32]>,
    /// Why the backend cannot even run a trivial program, if it cannot; found out at the first failure.
    trial: OnceLock<Result<(), String>>,
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
            whole: OnceLock::new(),
            trial: OnceLock::new(),
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

    /// What candidates may use now.
    pub fn limits(&self) -> Limits {
        *lock(&self.limits)
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
        // A process without memory must end at once: a backtrace of it would want some.
        command.env("RUST_BACKTRACE", "0");
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

    /// Asks the same workers another question about such a file. A failure counts only where the backend can run a trivial
    /// program.
    pub fn judge_asked(&self, path: &Path, question: &Question) -> Verdict {
        let verdict = self.judge_untried(path, question);
        if verdict.signature().is_none() {
            return verdict;
        }
        let device = || candidate_of(path, self.question.seed).ok().and_then(|program| program.graph.elsewhere());
        match self.trial.get_or_init(|| self.try_trivial_programs(device())) {
            Ok(()) => verdict,
            Err(why) => Verdict::Invalid(format!(
                "{WORKER_FAILED}{} fails even on a program with one operator, so the result is meaningless: {why}",
                self.question.backend
            )),
        }
    }

    /// Has the backend run a trivial program ahead of the first failure, which waits for that where it is still under way. For
    /// programs that are likely to fail, beside their first run.
    pub fn try_ahead(&self, program: &Candidate) {
        self.trial.get_or_init(|| self.try_trivial_programs(program.graph.elsewhere()));
    }

    /// A worker that was killed says nothing about the program yet, because others kill too: the question is put once
    /// more, and what the system kills for its memory is killed again.
    fn judge_untried(&self, path: &Path, question: &Question) -> Verdict {
        match self.judge_once(path, question) {
            Answer::Verdict(verdict) => verdict,
            Answer::Died { signature, .. } if signature.class == Class::OutOfMemory => {
                self.judge_once(path, question).verdict(question)
            }
            died => died.verdict(question),
        }
    }

    /// Asks about programs of one operator, of which a backend that works at all can run one: a bug may be in the other. They
    /// are where the program is that has failed: for another device a compiler needs other tools, which may be missing, or
    /// take a minute to be found. They are called once: what fails only when results are kept over calls may fail for every
    /// program.
    fn try_trivial_programs(&self, device: Option<Device>) -> Result<(), String> {
        let question = Question { backend: without_setting(&self.question.backend, "calls"), ..self.question.clone() };
        let mut first = None;
        for (number, op) in TRIVIAL.into_iter().enumerate() {
            let mut candidate = trivial(op)?;
            if let Some(device) = &device {
                candidate.graph.put_on(device);
            }
            let written = lock(&self.scratch).folder.write(&format!("trivial_{number}.py"), &candidate, &[]);
            let path = written.map_err(|error| error.to_string())?;
            let why = match self.judge_untried(&path, &question) {
                Verdict::Pass | Verdict::Noise => return Ok(()),
                Verdict::Fail(signature) | Verdict::Flaky { signature, .. } => {
                    let said = signature.detail.message.clone().unwrap_or_default();
                    format!("{op}: {signature}: {said}")
                }
                Verdict::Invalid(why) => format!("{op}: {why}"),
            };
            first.get_or_insert(why);
        }
        Err(first.unwrap_or_default())
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
        let seconds = limits.time.as_secs_f64();
        let request = json!({"cmd": "judge", "file": path, "question": question, "time_limit": seconds, "blob": 0});
        let time = if is_watched_elsewhere(question) {
            limits.time * 2 * MOST_CROWDED + STARTING
        } else {
            limits.time.mul_f64(crowding())
        };
        // Every step has its time. What comes before the first is the worker's own.
        let mut until = Instant::now() + time.max(OWN_START);
        let sent = worker.input.as_mut().map(|input| writeln!(input, "{request}").and_then(|()| input.flush()));
        let (mut stage, mut step) = (Stage::Compile, None);
        let mut times = Times::new();
        if matches!(sent, Some(Ok(()))) {
            loop {
                match worker.hear(until) {
                    Heard::Line(line) => match answer(&line) {
                        Said::Step(now) => {
                            times.begin(now);
                            step = Some(now);
                            until = Instant::now() + time;
                            if let Step::Backend(now) = now {
                                stage = now;
                            }
                        }
                        Said::Prepared => {}
                        Said::Verdict(verdict) => {
                            pyrite_trace::log(Topic::Debug, Level::Debug, || times.end());
                            lock(&self.idle).push(worker);
                            return Answer::Verdict(*verdict);
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

/// How long the steps of one question took.
struct Times {
    steps: Vec<(String, Instant)>,
}

impl Times {
    fn new() -> Self {
        Self { steps: vec![("start".to_owned(), Instant::now())] }
    }

    fn begin(&mut self, step: Step) {
        let name = match step {
            Step::Reference => "reference".to_owned(),
            Step::Backend(stage) => format!("{stage:?}").to_lowercase(),
        };
        self.steps.push((name, Instant::now()));
    }

    /// The steps with their seconds, in the order in which they were taken.
    fn end(&self) -> String {
        let ends = self.steps.iter().skip(1).map(|(_, begun)| *begun).chain([Instant::now()]);
        let each = self.steps.iter().zip(ends);
        let each: Vec<String> =
            each.map(|((name, begun), end)| format!("{name} {:.2} s", (end - *begun).as_secs_f64())).collect();
        format!("a question took: {}", each.join(", "))
    }
}

/// What came of a question.
enum Answer {
    Verdict(Verdict),
    /// The worker ended, was ended or said nothing sensible, at a step.
    Died {
        signature: Signature,
        step: Option<Step>,
    },
}

impl Answer {
    fn verdict(self, question: &Question) -> Verdict {
        let (signature, step) = match self {
            Self::Verdict(verdict) => return verdict,
            Self::Died { signature, step } => (signature, step),
        };
        let said = signature.detail.message.as_deref().unwrap_or("it printed nothing").trim();
        let broken = |when: &str| Verdict::Invalid(format!("{WORKER_FAILED}it ended {when}: {signature}: {said}"));
        match step {
            None => broken("before it began with the program"),
            Some(Step::Reference) => {
                Verdict::Invalid(format!("the reference {} does not respond: {signature}", question.reference))
            }
            Some(Step::Backend(_)) if is_watched_elsewhere(question) => broken("while another process was asked"),
            Some(Step::Backend(_)) if matches!(signature.class, Class::Garbage | Class::Exit(_)) => {
                broken("without an answer")
            }
            Some(Step::Backend(_)) => Verdict::Fail(signature),
        }
    }
}

/// How long a worker may take until it begins with a program.
const OWN_START: Duration = Duration::from_mins(1);

/// How long a process that a worker asks may take to start, to be started once more, and to hand its results over.
const STARTING: Duration = Duration::from_mins(6);

/// Whether a backend works in processes of its own, whose ends and times are watched by the worker.
fn is_watched_elsewhere(question: &Question) -> bool {
    ["torch:", "cmd:"].iter().any(|prefix| question.backend.starts_with(prefix))
}

/// Operators of which a backend that works at all can run one.
const TRIVIAL: [&str; 2] = ["aten.clone.default", "aten.neg.default"];

/// A program of one operator.
fn trivial(op: &str) -> Result<Candidate, String> {
    let input = Tensor::from_slice(&[1.0f32, -2.0], &[2]);
    let mut builder = Builder::new();
    let x = builder.placeholder("x", Some(Value::Tensor(Meta::of(&input))));
    let op = pyrite_ops::registry().get(op).ok_or_else(|| format!("there is no {op}"))?;
    let y = builder.call(op, vec![x.into()]);
    builder.output(vec![y].into());
    Ok(Candidate { graph: builder.finish(), inputs: vec![Value::Tensor(input)], seed: 0 })
}

impl Oracle<Candidate> for Isolated {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let written = lock(&self.scratch).folder.write(&format!("candidate_{number}.py"), candidate, &[]);
        match written {
            Ok(path) => {
                let key = candidate.key();
                let thorough = *self.whole.get_or_init(|| key) == key;
                let verdict = self.judge_asked(&path, &Question { thorough, ..self.question.clone() });
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
    Verdict(Box<Verdict>),
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
        Ok(verdict) => Said::Verdict(Box::new(verdict)),
        Err(_) => match json["message"].as_str() {
            Some(message) => Said::Verdict(Box::new(Verdict::Invalid(message.to_owned()))),
            None => Said::Garbage,
        },
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
