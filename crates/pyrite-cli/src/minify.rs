//! `pyrite minify FILE`: finds the smallest program that still fails.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pyrite_debug::{Command, Folder, Isolated, Limits, Question, candidate_of};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_oracle::{Oracle, Signature, Verdict};
use pyrite_reduce::{Candidate, NotReproduced, Options, Progress, Reduction, Size, reduce};
use serde_json::json;

use crate::Outcome;
use crate::failure::Failure;
use crate::program::Program;
use crate::run::{Precision, named, said_by_file};
use crate::switches::Comparing;

/// Find the smallest program that still fails
#[derive(clap::Args)]
pub struct Minify {
    /// The file
    file: PathBuf,
    /// Who fails on it; `pyrite backends` lists them
    #[arg(long, required_unless_present = "check")]
    backend: Option<String>,
    /// Who says what is right
    #[arg(long, default_value = "eager")]
    reference: String,
    /// How closely the two are compared [default: what the file says, else fp]
    #[arg(long, value_enum)]
    accuracy: Option<Precision>,
    /// Ask this command instead of a backend: it gets the path of a candidate and exits with 0 (fine), 1 (the failure is
    /// there) or 125 (cannot tell)
    #[arg(long, value_name = "CMD", conflicts_with = "backend")]
    check: Option<String>,
    /// Leave out gradients
    #[arg(long)]
    forward_only: bool,
    /// The seed of random numbers and of generated inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many candidates are tried at once
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Stop after this many seconds with the best found so far
    #[arg(long, value_name = "SECONDS")]
    time_budget: Option<f64>,
    /// How many seconds a candidate may take [default: ten times the first run, at least 5]
    #[arg(long, value_name = "SECONDS")]
    time_limit: Option<f64>,
    /// How many megabytes a candidate may use
    #[arg(long, value_name = "MB")]
    memory_limit: Option<u64>,
    /// Where the result is written [default: a new folder beside the file]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    comparing: Comparing,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// How long the first run may take before anything is known of it.
const FIRST: Duration = Duration::from_mins(5);

impl Minify {
    /// The usual reduction of a file.
    pub fn of(file: PathBuf, backend: String, reference: String, accuracy: Precision) -> Self {
        Self {
            file,
            backend: Some(backend),
            reference,
            accuracy: Some(accuracy),
            check: None,
            forward_only: false,
            seed: 0,
            jobs: 2,
            time_budget: None,
            time_limit: None,
            memory_limit: None,
            out: None,
            comparing: Comparing::default(),
            json: false,
        }
    }

    /// With another seed.
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// With a limit of time.
    pub fn limited(self, time_budget: Option<f64>) -> Self {
        Self { time_budget, ..self }
    }

    /// With what the comparison overlooks.
    pub fn comparing(self, comparing: Comparing) -> Self {
        Self { comparing, ..self }
    }

    /// With a folder for the result.
    pub fn into_folder(self, out: Option<PathBuf>) -> Self {
        Self { out, ..self }
    }

    /// With a report for programs.
    pub fn in_json(self, json: bool) -> Self {
        Self { json, ..self }
    }

    /// Reduces the program and proves the result.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        let begun = Instant::now();
        let program = Program::open(&self.file)?;
        if let Some(backend) = &self.backend {
            named(backend)?;
        }
        named(&self.reference)?;
        let question = Question {
            backend: self.backend.clone().unwrap_or_default(),
            reference: self.reference.clone(),
            accuracy: self.accuracy.unwrap_or_else(|| said_by_file(&program)).into(),
            forward_only: self.forward_only || program.is_differentiated(),
            seed: self.seed,
            rewrites: None,
            switches: self.comparing.switches(),
        };
        let oracle = self.oracle(&question)?;
        oracle.prepare(self.jobs as usize);
        let start =
            candidate_of(&self.file, self.seed).map_err(|why| self.failed("the program cannot be loaded", why))?;
        let folder =
            Folder::open(&self.folder()).map_err(|error| self.failed("the result cannot be written", error))?;
        // The written file is judged at the end by a worker that has seen nothing of the search. It gets ready meanwhile.
        let prover = self.oracle(&question)?;
        let mut teller = Teller::new(&folder, self.metadata(&question), self.json, &prover);
        let options = Options {
            jobs: self.jobs as usize,
            time_budget: self.time_budget.map(Duration::from_secs_f64),
            max_queries: None,
        };
        let before = (start.size(), start.graph.len());
        let reduced = reduce(start, oracle.as_oracle(), options, &mut teller);
        teller.bar.finish_and_clear();
        if let Some(error) = teller.failed {
            return Err(self.failed("the result cannot be written", error));
        }
        let reduction = match reduced {
            Ok(reduction) => reduction,
            Err(NotReproduced(verdict)) => return Ok(self.nothing_to_shrink(&folder, &verdict)),
        };
        let path = folder
            .write("repro.py", &reduction.best, &teller.metadata_for(&reduction.found))
            .map_err(|error| self.failed("the result cannot be written", error))?;
        keep_beside(&folder, &reduction).map_err(|error| self.failed("the result cannot be written", error))?;
        let proof = prover.judge_path(&path, &reduction.best);
        let proven = proof.signature().is_some_and(|found| reduction.signature.holds(found));
        self.tell(&reduction, before, begun.elapsed(), &path, proven);
        Ok(if proven { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn oracle(&self, question: &Question) -> Result<Asked, Failure> {
        let time = self.time_limit.map(Duration::from_secs_f64);
        if let Some(command) = &self.check {
            let asked = Command::new(command, time.unwrap_or(FIRST));
            return Ok(Asked::Command(asked.map_err(|e| self.failed("candidates cannot be written", e))?));
        }
        let program = std::env::current_exe()?;
        let limits = Limits { time: time.unwrap_or(FIRST), memory: self.memory_limit.map(|mb| mb << 20) };
        let isolated = Isolated::new(&program, crate::python_arguments(), question.clone(), limits)
            .map_err(|e| self.failed("candidates cannot be written", e))?;
        let first = std::sync::Mutex::new(None);
        Ok(Asked::Workers(Box::new(Timed { isolated, limits, fixed: time.is_some(), first })))
    }

    /// A folder that is not there yet.
    fn folder(&self) -> PathBuf {
        if let Some(out) = &self.out {
            return out.clone();
        }
        let stem = self.file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let parent = self.file.parent().unwrap_or(Path::new(""));
        (1..=u32::MAX)
            .map(|n| parent.join(format!("{stem}-minified-{n}")))
            .find(|path| !path.exists())
            .unwrap_or_default()
    }

    fn metadata(&self, question: &Question) -> Vec<(String, String)> {
        let mut metadata = vec![("pyrite".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        if let Some(command) = &self.check {
            metadata.push(("check".to_owned(), command.clone()));
        } else {
            metadata.push(("backend".to_owned(), question.backend.clone()));
            metadata.push(("reference".to_owned(), question.reference.clone()));
        }
        metadata.extend(crate::python_imports().map(|module| ("import".to_owned(), module)));
        metadata.push(("seed".to_owned(), self.seed.to_string()));
        metadata
    }

    fn tell(&self, reduction: &Reduction, before: (Size, usize), took: Duration, path: &Path, proven: bool) {
        let after = reduction.best.size();
        if self.json {
            let report = json!({
                "verdict": "fail",
                "nodes_before": before.1,
                "nodes_after": reduction.best.graph.len(),
                "inputs_after": after.inputs,
                "elements_before": before.0.elements,
                "elements_after": after.elements,
                "queries": reduction.queries,
                "seconds": took.as_secs_f64(),
                "signature": reduction.found,
                "proven": proven,
                "minimal_for": reduction.minimal_for,
                "others": reduction.others.iter().map(|(s, _)| s.to_string()).collect::<Vec<_>>(),
                "repro": path,
            });
            println!("{report:#}");
            return;
        }
        println!("{}", reduction.found);
        println!(
            "{} nodes, {} elements became {} nodes, {} elements in {} queries, {:.1} s",
            before.1,
            before.0.elements,
            reduction.best.graph.len(),
            after.elements,
            reduction.queries,
            took.as_secs_f64()
        );
        for (signature, _) in &reduction.others {
            println!("met on the way, and kept aside: {signature}");
        }
        let proof = if proven { "proven in a fresh process" } else { "NOT proven: the written file did not fail so" };
        println!("{}: {proof}", path.display());
    }

    fn nothing_to_shrink(&self, folder: &Folder, verdict: &Verdict) -> ExitCode {
        if self.out.is_none() {
            let _ = std::fs::remove_dir_all(folder.path());
        }
        let why = match verdict {
            Verdict::Invalid(why) => why.clone(),
            Verdict::Noise => "the results differ by no more than rounding explains".to_owned(),
            _ => "the program does not fail".to_owned(),
        };
        if self.json {
            println!("{:#}", json!({"verdict": verdict.name(), "reason": why, "proven": false}));
        } else {
            println!("nothing to shrink: {why}");
        }
        ExitCode::from(1)
    }

    fn failed(&self, what: &str, cause: impl ToString) -> Failure {
        Failure::of(
            Diagnostic::error(Code::new("minify::failed"), what)
                .at(Location::in_file(&self.file))
                .cause(cause.to_string()),
        )
    }
}

/// The passing neighbour, and other failures that were met.
fn keep_beside(folder: &Folder, reduction: &Reduction) -> Result<(), pyrite_debug::RepoError> {
    if let Some(passing) = &reduction.passing {
        let metadata = vec![("verdict".to_owned(), "pass".to_owned())];
        folder.write("passing.py", passing, &metadata)?;
    }
    for (number, (signature, candidate)) in reduction.others.iter().enumerate() {
        let other = Folder::open(&folder.path().join(format!("other-{}", number + 1)))?;
        other.write("repro.py", candidate, &[("signature".to_owned(), signature.to_string())])?;
    }
    Ok(())
}

/// Who is asked.
enum Asked {
    Workers(Box<Timed>),
    Command(Command),
}

impl Asked {
    fn as_oracle(&self) -> &dyn Oracle<Candidate> {
        match self {
            Self::Workers(workers) => &**workers,
            Self::Command(command) => command,
        }
    }

    /// Starts workers ahead of the first question.
    fn prepare(&self, workers: usize) {
        if let Self::Workers(asked) = self {
            asked.isolated.prepare(workers);
        }
    }

    fn judge_path(&self, path: &Path, candidate: &Candidate) -> Verdict {
        match self {
            Self::Workers(workers) => workers.isolated.judge_path(path),
            Self::Command(command) => command.judge(candidate),
        }
    }
}

/// Workers whose time limit follows from the first run: candidates are smaller, so ten times as long is a hang.
struct Timed {
    isolated: Isolated,
    limits: Limits,
    fixed: bool,
    first: std::sync::Mutex<Option<Duration>>,
}

impl Oracle<Candidate> for Timed {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        let start = Instant::now();
        let verdict = self.isolated.judge(candidate);
        let mut first = self.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if first.is_none() && !self.fixed {
            let took = start.elapsed();
            *first = Some(took);
            self.isolated.set_limits(Limits { time: (took * 10).max(Duration::from_secs(5)), ..self.limits });
        }
        verdict
    }
}

/// Shows progress, and writes every improvement down at once.
struct Teller<'a> {
    folder: &'a Folder,
    metadata: Vec<(String, String)>,
    bar: ProgressBar,
    queries: u64,
    failed: Option<String>,
    prover: &'a Asked,
    proving: bool,
}

impl<'a> Teller<'a> {
    fn new(folder: &'a Folder, metadata: Vec<(String, String)>, quiet: bool, prover: &'a Asked) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { folder, metadata, bar, queries: 0, failed: None, prover, proving: false }
    }

    fn metadata_for(&self, signature: &Signature) -> Vec<(String, String)> {
        let mut metadata = self.metadata.clone();
        metadata.push(("signature".to_owned(), signature.to_string()));
        metadata
    }
}

impl Progress for Teller<'_> {
    fn judged(&mut self, queries: u64, _: &Verdict) {
        self.queries = queries;
        self.bar.tick();
    }

    fn began(&mut self, pass: &str) {
        self.bar.set_prefix(pass.to_owned());
    }

    fn improved(&mut self, pass: &str, best: &Candidate, size: Size) {
        // From here on candidates are small, and a core is free for the worker that will prove the result.
        if !std::mem::replace(&mut self.proving, true) {
            self.prover.prepare(1);
        }
        self.bar
            .set_message(format!("{pass}: {} nodes, {} elements, {} queries", size.nodes, size.elements, self.queries));
        if let Err(error) = self.folder.write("repro.py", best, &self.metadata) {
            self.failed = Some(error.to_string());
        }
    }
}
