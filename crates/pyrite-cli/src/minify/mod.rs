//! `pyrite minify FILE`: finds the smallest program that still fails.
//!
//! A failure is first taken to come every time. A start that passes is run again, and a result is: where a run disagrees,
//! the failure comes only sometimes, and the search begins anew with a sequential test for every candidate and for the
//! proof.
//!
//! The result for a backend of torch.compile is proven by plain PyTorch, as its reader would run it; that for one of
//! Pyrite's own by a worker that has seen nothing of the search.

mod asked;
mod teller;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use pyrite_debug::torch::is_unknown_backend;
use pyrite_debug::{Asking, Claim, Command, Folder, Isolated, Limits, Question, Shown, Verdicts, VerdictsError, show};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_oracle::{CONFIDENCE, Oracle, Sequential, Signature, Test, Verdict};
use pyrite_reduce::{Candidate, Content, Follow, Keep, NotReproduced, Options, Reduction, Size, necessary, reduce};
use pyrite_trace::Stage;
use serde_json::json;

use crate::Outcome;
use crate::doctor;
use crate::failure::Failure;
use crate::interrupt;
use crate::numbers::{command, confidence, seconds};
use crate::program::Program;
use crate::result_folder;
use crate::run::{Precision, named, said_by_file, unknown_backend};
use crate::switches::Comparing;
use crate::tracing;
use crate::{ExitCode, Invocation};
use asked::{Asked, Timed};
use teller::Teller;

/// Find the smallest program that still fails
#[derive(clap::Args)]
pub struct Minify {
    /// The file
    file: PathBuf,
    /// Who fails on it; `pyrite backends` lists them
    #[arg(long, required_unless_present = "check")]
    backend: Option<String>,
    /// Who says what is right [default: eager, and torch:eager for operators that only torch knows]
    #[arg(long)]
    reference: Option<String>,
    /// How closely the two are compared [default: what the file says, else fp]
    #[arg(long, value_enum)]
    accuracy: Option<Precision>,
    /// Ask this command instead of a backend: it gets the path of a candidate and exits with 0 (fine), 1 (the failure is
    /// there) or 125 (cannot tell)
    #[arg(long, value_name = "CMD", conflicts_with = "backend", value_parser = command)]
    check: Option<String>,
    /// Only errors whose text contains this are the failure; everything else counts as fine
    #[arg(long, value_name = "TEXT", conflicts_with = "check")]
    check_str: Option<String>,
    /// Leave out gradients
    #[arg(long)]
    forward_only: bool,
    /// The seed of random numbers and of generated inputs [default: what the file says, else 0]
    #[arg(long)]
    seed: Option<u64>,
    /// How many candidates are tried at once
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Stop after this many seconds with the best found so far
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_budget: Option<f64>,
    /// How many seconds a candidate may take [default: ten times the first run, at least 5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<f64>,
    /// How many megabytes a candidate may use [default: three quarters of the machine's]
    #[arg(long, value_name = "MB")]
    memory_limit: Option<u64>,
    /// How often a program is run before it is believed to fail always or never
    #[arg(long, default_value_t = RUNS, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How sure a verdict is on what fails only sometimes
    #[arg(long, default_value_t = CONFIDENCE, value_name = "P", value_parser = confidence)]
    confidence: f64,
    /// Keep the values of nodes in temporary files, for programs whose values do not fit into memory
    #[arg(long)]
    offload_to_disk: bool,
    /// Go on with the search in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "out")]
    resume: Option<PathBuf>,
    /// Where the result is written [default: a new folder beside the file]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    comparing: Comparing,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[arg(skip)]
    part_of: PartOf,
}

/// Whose work a reduction is a part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PartOf {
    /// Its own: its report is all that is printed.
    #[default]
    Itself,
    /// A session's, which prints a line for each step.
    Session,
}

/// How often a program is run before it is believed, unless told otherwise.
const RUNS: u32 = 5;

/// How long the first run may take before anything is known of it.
const FIRST: Duration = Duration::from_mins(5);

impl Minify {
    /// The reduction of a file as a part of a session.
    pub fn of(file: PathBuf, backend: String, reference: String, accuracy: Precision) -> Self {
        Self {
            file,
            backend: Some(backend),
            reference: Some(reference),
            accuracy: Some(accuracy),
            check: None,
            check_str: None,
            forward_only: false,
            seed: None,
            jobs: 2,
            time_budget: None,
            time_limit: None,
            memory_limit: None,
            runs: RUNS,
            confidence: CONFIDENCE,
            offload_to_disk: false,
            resume: None,
            out: None,
            comparing: Comparing::default(),
            json: false,
            part_of: PartOf::Session,
        }
    }

    /// With another seed.
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// With limits of time, for all and for a candidate.
    pub fn limited(self, time_budget: Option<f64>, time_limit: Option<f64>) -> Self {
        Self { time_budget, time_limit, ..self }
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
        self.found().map(|(code, _)| code)
    }

    /// The same, with what the written file says when plain PyTorch runs it, where that is the proof.
    pub fn found(&self) -> Result<(ExitCode, Option<Shown>), Failure> {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Result<(ExitCode, Option<Shown>), Failure> {
        interrupt::hold();
        let begun = Instant::now();
        if let Some(out) = &self.out {
            result_folder::check_unused(out, &self.file)?;
        }
        let program = Program::open(&self.file)?;
        if let Some(backend) = &self.backend {
            named(backend)?;
        }
        let backend = self.backend.clone().unwrap_or_default();
        let reference = program.reference(self.reference.as_ref(), &backend);
        named(&reference)?;
        let question = Question {
            backend,
            reference,
            accuracy: self.accuracy.unwrap_or_else(|| said_by_file(&program)).into(),
            forward_only: self.forward_only || program.is_differentiated(),
            seed: program.seed(self.seed),
            rewrites: None,
            refused: Vec::new(),
            switches: self.comparing.switches(),
        };
        let oracle = self.oracle(&question)?;
        oracle.prepare(self.jobs as usize);
        let start = program.candidate(self.seed)?;
        let folder =
            Folder::open(&self.folder()?).map_err(|error| self.unwritten("the result cannot be written", error))?;
        tracing::begin_in(folder.path());
        let _stage = pyrite_trace::stage(Stage::Debug);
        let verdicts = self.verdicts(&folder, &question, &start)?;
        if let Some(took) = verdicts.first() {
            oracle.learn(took);
        }
        // The written file is judged at the end by a worker that has seen nothing of the search. It gets ready meanwhile.
        let by_python = question.backend.starts_with("torch:");
        let prover = if by_python { None } else { Some(self.oracle(&question)?) };
        let scratch = std::iter::once(oracle.scratch()).chain(prover.as_ref().map(Asked::scratch));
        interrupt::watch(self.farewell(&folder, scratch.map(Path::to_owned).collect()));
        let bar = if self.json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        let mut teller =
            Teller::new(&folder, self.metadata(&question), bar, prover.as_ref(), &verdicts).starting_from(&start);
        let before = (start.size(), start.graph.len());
        let follow = match (question.accuracy, &self.check) {
            (pyrite_debug::Precision::Fp, None) => Follow::Floats,
            _ => Follow::Everything,
        };
        let saying = Saying { oracle: oracle.as_oracle(), text: self.check_str.as_deref() };
        let searched = self.search(&start, follow, &saying, &verdicts, &mut teller);
        teller.bar.finish_and_clear();
        if let Some(error) = teller.failed() {
            return Err(self.unwritten("the result cannot be written", error));
        }
        if let Some(error) = oracle.failed() {
            return Err(self.unwritten("candidates cannot be written", error));
        }
        let (reduction, flaky) = match searched {
            Ok(found) => found,
            Err(NotReproduced(verdict)) => return Ok((self.nothing_to_shrink(&folder, &verdict)?, None)),
        };
        let mut metadata = teller.metadata_for(&reduction.found);
        metadata.extend(flaky.as_ref().map(|flaky| ("fails".to_owned(), flaky.to_string())));
        metadata.push(("data".to_owned(), data_in(&reduction.best)));
        let imports: Vec<String> = crate::python_imports().collect();
        let limits = oracle.limits();
        let write = |question: &Question, metadata: &[(String, String)]| {
            let claim = Claim {
                imports: &imports,
                signature: Some(&reduction.found),
                forward_only: question.forward_only,
                accuracy: question.accuracy,
                tolerance: question.switches.tolerance,
                time: limits.map_or(FIRST, |limits| limits.time),
                memory: limits.and_then(|limits| limits.memory),
                ..Claim::of(&question.backend)
            };
            folder
                .write_claiming("repro.py", &reduction.best, metadata, Some(&claim))
                .map_err(|error| self.unwritten("the result cannot be written", error))
        };
        let path = write(&question, &metadata)?;
        keep_beside(&folder, &reduction).map_err(|error| self.unwritten("the result cannot be written", error))?;
        let question = match flaky {
            Some(_) => question,
            None => with_necessary_settings(&question, &|asked| {
                let verdict = oracle.judge_path(&path, asked, &reduction.best);
                verdict.signature().is_some_and(|found| reduction.signature.holds(found))
            }),
        };
        if let Some((_, backend)) =
            metadata.iter_mut().find(|(key, value)| key == "backend" && *value != question.backend)
        {
            backend.clone_from(&question.backend);
            write(&question, &metadata)?;
        }
        let held = |proof: &Verdict| proof.signature().is_some_and(|found| reduction.signature.holds(found));
        let (proof, shown) = if let Some(prover) = &prover {
            let prove = |best: &Candidate| saying.heard(prover.judge_path(&path, &question, best));
            let proof = match &flaky {
                Some(flaky) => self.sequential(&prove, flaky, &reduction.signature).judge(&reduction.best),
                None => prove(&reduction.best),
            };
            (Some(proof), None)
        } else {
            let time = limits.map_or(FIRST, |limits| limits.time);
            (None, Some(shown_by_python(&path, &reduction.found, time, flaky.as_ref())))
        };
        let proven = proof.as_ref().is_some_and(held) || shown.as_ref().is_some_and(|shown| shown.proven);
        let ended = Ended {
            question: &question,
            path: &path,
            proof: proof.as_ref(),
            shown: shown.as_ref(),
            proven,
            flaky: flaky.as_ref(),
        };
        tracing::tell_repro(&path, &reduction.found.to_string(), proven);
        self.tell(&reduction, before, begun.elapsed(), &ended);
        Ok((if proven { ExitCode::SUCCESS } else { ExitCode::from(1) }, shown))
    }

    /// Searches as if the failure came every time, and where it turns out not to, searches again with a test for every
    /// candidate.
    fn search(
        &self,
        start: &Candidate,
        follow: Follow,
        oracle: &dyn Oracle<Candidate>,
        verdicts: &Verdicts,
        teller: &mut Teller<'_>,
    ) -> Result<(Reduction, Option<Flaky>), NotReproduced> {
        let options = Options {
            jobs: self.jobs as usize,
            time_budget: self.time_budget.map(Duration::from_secs_f64),
            max_queries: None,
            follow,
            keep: if self.offload_to_disk { Keep::OnDisk } else { Keep::InMemory },
        };
        let again = |candidate: &Candidate| -> Vec<Verdict> {
            let numbers: Vec<u32> = (2..=self.runs).collect();
            let ask = |n: u32| verdicts.over(oracle, Asking::Again(n)).judge(candidate);
            let side_by_side = |batch: &[u32]| {
                std::thread::scope(|scope| {
                    let asked: Vec<_> = batch.iter().map(|n| scope.spawn(move || ask(*n))).collect();
                    let panicked = |_| Verdict::Invalid("the oracle panicked".to_owned());
                    asked.into_iter().map(|asked| asked.join().unwrap_or_else(panicked)).collect::<Vec<_>>()
                })
            };
            numbers.chunks(options.jobs).flat_map(side_by_side).collect()
        };
        let once = verdicts.over(oracle, Asking::Once);
        let (flaky, held) = match reduce(start.clone(), &once, options, teller) {
            Err(NotReproduced(verdict @ Verdict::Invalid(_))) => return Err(NotReproduced(verdict)),
            Err(NotReproduced(verdict)) => {
                let more = again(start);
                let failures: Vec<&Signature> = more.iter().filter_map(Verdict::signature).collect();
                let Some(first) = failures.first() else { return Err(NotReproduced(verdict)) };
                let failed = failures.iter().filter(|found| first.holds(found)).count() as u32;
                (Flaky { failed, runs: self.runs }, (*first).clone())
            }
            Ok(found) => {
                let more = again(&found.best);
                let held = |v: &&Verdict| v.signature().is_some_and(|other| found.signature.holds(other));
                let failed = 1 + more.iter().filter(held).count() as u32;
                if failed == self.runs || more.iter().any(|v| matches!(v, Verdict::Invalid(_))) {
                    return Ok((found, None));
                }
                (Flaky { failed, runs: self.runs }, found.signature)
            }
        };
        teller.bar.println(format!("it fails only sometimes: {flaky}; every candidate is judged by many runs now"));
        let sequential = self.sequential(oracle, &flaky, &held);
        let sequential = verdicts.over(&sequential, Asking::Sequentially);
        reduce(start.clone(), &sequential, options, teller).map(|found| (found, Some(flaky)))
    }

    fn sequential<'a>(
        &self,
        oracle: &'a dyn Oracle<Candidate>,
        flaky: &Flaky,
        held: &Signature,
    ) -> Sequential<'a, Candidate> {
        let test = Test::of(flaky.failed, flaky.runs, self.confidence);
        Sequential { oracle, test, held: held.clone() }
    }

    /// The verdicts of this search in its folder: fresh ones, or those of the search that is resumed.
    fn verdicts(&self, folder: &Folder, question: &Question, start: &Candidate) -> Result<Verdicts, Failure> {
        let key: String = start.key().iter().map(|byte| format!("{byte:02x}")).collect();
        let asked = json!({
            "pyrite": env!("CARGO_PKG_VERSION"), "program": key, "question": question, "check": self.check,
            "check_str": self.check_str, "runs": self.runs, "confidence": self.confidence,
        });
        let verdicts = match &self.resume {
            Some(_) => Verdicts::resume(folder.path(), &asked),
            None => Verdicts::begin(folder.path(), &asked),
        };
        verdicts.map_err(|error| {
            let hint = match error {
                VerdictsError::Otherwise { .. } => "resume with the same file and options, or search in a new folder",
                VerdictsError::Io { .. } => {
                    "name a folder that can be written, and that a search began in if it is resumed"
                }
                VerdictsError::Broken { .. } => "remove this line and those after it, or search in a new folder",
            };
            Failure::of(
                Diagnostic::error(Code::new("minify::verdicts"), "the verdicts of the search cannot be kept")
                    .at(Location::in_file(&self.file))
                    .cause(error.to_string())
                    .hint(hint),
            )
        })
    }

    /// What is said when the search is interrupted.
    fn farewell(&self, folder: &Folder, scratch: Vec<PathBuf>) -> impl FnOnce() + Send + 'static {
        let (file, folder) = (self.file.clone(), folder.path().to_owned());
        move || {
            pyrite_trace::settle();
            let best = folder.join("repro.py");
            let found = if best.exists() {
                format!("the best so far is {}", best.display())
            } else {
                "nothing smaller was found yet".to_owned()
            };
            eprintln!(
                "interrupted: {found}; the same command with `--resume {}` instead of `--out` goes on with {}",
                folder.display(),
                file.display()
            );
            for place in scratch {
                let _ = std::fs::remove_dir_all(place);
            }
        }
    }

    fn oracle(&self, question: &Question) -> Result<Asked, Failure> {
        let time = self.time_limit.map(Duration::from_secs_f64);
        if let Some(command) = &self.check {
            let asked = Command::new(command, time.unwrap_or(FIRST))
                .map_err(|e| self.failed("candidates cannot be written", e))?;
            return Ok(Asked::Command(Box::new(asked.supervised_by(Invocation::own()?.words()))));
        }
        let own = Invocation::own()?;
        let memory = self.memory_limit.map(|mb| mb << 20).or_else(Limits::usual_memory);
        let limits = Limits { time: time.unwrap_or(FIRST), memory };
        let isolated = Isolated::new(&own.program.clone(), crate::worker_arguments(own), question.clone(), limits)
            .map_err(|e| self.failed("candidates cannot be written", e))?;
        Ok(Asked::Workers(Box::new(Timed::new(isolated, limits, time))))
    }

    /// The folder of the result: the one that is resumed, or one that holds no result yet.
    fn folder(&self) -> Result<PathBuf, Failure> {
        if let Some(resumed) = &self.resume {
            if !Verdicts::are_in(resumed) {
                let cause = format!("there is no {}", resumed.join("verdicts.jsonl").display());
                return Err(self.failed("there is no search to resume", cause));
            }
            return Ok(resumed.clone());
        }
        match &self.out {
            Some(out) => Ok(out.clone()),
            None => result_folder::beside(&self.file, "minified"),
        }
    }

    fn metadata(&self, question: &Question) -> Vec<(String, String)> {
        let mut metadata = vec![("pyrite".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        if let Some(command) = &self.check {
            metadata.push(("check".to_owned(), command.clone()));
        } else {
            metadata.push(("backend".to_owned(), question.backend.clone()));
            metadata.push(("reference".to_owned(), question.reference.clone()));
        }
        if [&question.backend, &question.reference].iter().any(|name| name.starts_with("torch:")) {
            metadata.push(("torch".to_owned(), doctor::torch_version()));
        }
        metadata.extend(crate::python_imports().map(|module| ("import".to_owned(), module)));
        metadata.push(("seed".to_owned(), question.seed.to_string()));
        metadata
    }

    fn tell(
        &self,
        reduction: &Reduction,
        before: (Size, usize),
        took: Duration,
        &Ended { question, path, proof, shown, proven, flaky }: &Ended<'_>,
    ) {
        let after = reduction.best.size();
        if self.json {
            let report = json!({
                "verdict": if flaky.is_some() { "flaky" } else { "fail" },
                "flaky": flaky.map(|flaky| json!({
                    "failed": flaky.failed, "runs": flaky.runs, "confidence": self.confidence,
                    "confidence_of_all": self.confidence_of_all(reduction.queries),
                    "proof": proof.and_then(times).map(|(failed, runs)| json!({"failed": failed, "runs": runs})),
                })),
                "nodes_before": before.1,
                "nodes_after": reduction.best.graph.len(),
                "inputs_after": after.inputs,
                "elements_before": before.0.elements,
                "elements_after": after.elements,
                "queries": reduction.queries,
                "seconds": took.as_secs_f64(),
                "signature": reduction.found,
                "proven": proven,
                "line": shown.map(|shown| &shown.line),
                "command": shown.map(|shown| &shown.command),
                "backend": question.backend,
                "minimal_for": reduction.minimal_for,
                "user_data": reduction.best.content() == Content::Data,
                "data": data_in(&reduction.best),
                "others": reduction.others.iter().map(|(s, _)| s.to_string()).collect::<Vec<_>>(),
                "repro": path,
            });
            self.print(&report);
            return;
        }
        println!("{}", reduction.found);
        if let Some(flaky) = flaky {
            println!(
                "it fails only sometimes: {flaky}; each verdict is right with a probability of at least {}, all {} with {:.2}",
                self.confidence,
                reduction.queries,
                self.confidence_of_all(reduction.queries)
            );
            if let Some((failed, runs)) = proof.and_then(times) {
                println!("the proof: {failed} of {runs} runs");
            }
        }
        println!(
            "{} nodes, {} elements became {} nodes, {} elements in {} queries, {:.1} s",
            before.1,
            before.0.elements,
            reduction.best.graph.len(),
            after.elements,
            reduction.queries,
            took.as_secs_f64()
        );
        println!(
            "{}",
            match reduction.best.content() {
                Content::Data => "it still holds numbers that came with the program".to_owned(),
                _ => format!("none of the program's data is left in it: {}", data_in(&reduction.best)),
            }
        );
        for (signature, _) in &reduction.others {
            println!("met on the way, and kept aside: {signature}");
        }
        let proof = match (shown, proven) {
            (Some(shown), true) => format!("proven by plain PyTorch: {}", shown.line),
            (Some(shown), false) => {
                format!("NOT proven: seen only inside of Pyrite's worker; `{}`: {}", shown.command, shown.line)
            }
            (None, true) => "proven in a fresh process".to_owned(),
            (None, false) => "NOT proven: the written file did not fail so".to_owned(),
        };
        println!("{}: {proof}", path.display());
        println!("\n{}", print(&reduction.best.graph, &PrintOptions::default()).trim_end());
    }

    /// With which probability at least all verdicts of a search are right: their errors add up at worst.
    fn confidence_of_all(&self, verdicts: u64) -> f64 {
        (1.0 - verdicts as f64 * (1.0 - self.confidence)).max(0.0)
    }

    fn nothing_to_shrink(&self, folder: &Folder, verdict: &Verdict) -> Outcome {
        if self.out.is_none() && self.resume.is_none() {
            let _ = pyrite_trace::stop();
            let _ = std::fs::remove_dir_all(folder.path());
        }
        if let Verdict::Invalid(why) = verdict
            && is_unknown_backend(why)
        {
            return Err(unknown_backend(why));
        }
        let why = match verdict {
            Verdict::Invalid(why) => why.clone(),
            Verdict::Noise => "the results differ by no more than rounding explains".to_owned(),
            _ => format!("the program does not fail in {} runs", self.runs),
        };
        if self.json {
            self.print(&json!({"verdict": verdict.name(), "reason": why, "proven": false}));
        } else {
            println!("nothing to shrink: {why}");
        }
        Ok(ExitCode::from(1))
    }

    /// Prints a report: as an object of its own, or as one line of a session's.
    fn print(&self, report: &serde_json::Value) {
        match self.part_of {
            PartOf::Itself => println!("{report:#}"),
            PartOf::Session => println!("{}", json!({"step": "minify", "result": report})),
        }
    }

    fn unwritten(&self, what: &str, cause: impl ToString) -> Failure {
        Failure::of(
            Diagnostic::error(Code::new("minify::unwritten"), what)
                .at(Location::in_file(&self.file))
                .cause(cause.to_string())
                .hint("make room, or name another folder with --out (and another TMPDIR); --resume goes on from here"),
        )
    }

    fn failed(&self, what: &str, cause: impl ToString) -> Failure {
        Failure::of(
            Diagnostic::error(Code::new("minify::failed"), what)
                .at(Location::in_file(&self.file))
                .cause(cause.to_string())
                .hint("name a folder for the result with --out, and one for candidates with TMPDIR"),
        )
    }
}

/// An oracle that hears only errors which say something.
struct Saying<'a> {
    oracle: &'a dyn Oracle<Candidate>,
    text: Option<&'a str>,
}

impl Saying<'_> {
    /// A verdict, or that all is fine where an error says something else.
    fn heard(&self, verdict: Verdict) -> Verdict {
        let said = |signature: &Signature, text| signature.detail.message.as_deref().is_some_and(|m| m.contains(text));
        match (verdict.signature(), self.text) {
            (Some(signature), Some(text)) if !said(signature, text) => Verdict::Pass,
            _ => verdict,
        }
    }
}

impl Oracle<Candidate> for Saying<'_> {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        self.heard(self.oracle.judge(candidate))
    }
}

/// Where the numbers in a program come from.
fn data_in(program: &Candidate) -> String {
    match program.content() {
        Content::Bits | Content::Small => "small whole numbers".to_owned(),
        Content::Generated => format!("generated from seed {}", program.seed),
        Content::Data => "from the program".to_owned(),
    }
}

/// The question with only those settings of the backend that the failure needs.
fn with_necessary_settings(question: &Question, fails: &dyn Fn(&Question) -> bool) -> Question {
    let Some((name, pairs)) = question.backend.split_once('?') else { return question.clone() };
    let with = |pairs: &[&str]| {
        let backend = if pairs.is_empty() { name.to_owned() } else { format!("{name}?{}", pairs.join("&")) };
        Question { backend, ..question.clone() }
    };
    let pairs: Vec<&str> = pairs.split('&').filter(|pair| !pair.is_empty()).collect();
    with(&necessary(&pairs, &mut |some| fails(&with(some))))
}

/// In how many of how many runs a candidate failed, where it was run several times.
fn times(verdict: &Verdict) -> Option<(u32, u32)> {
    match verdict {
        Verdict::Flaky { failed, runs, .. } => Some((*failed, *runs)),
        _ => None,
    }
}

/// Runs the written file by plain PyTorch; what fails only sometimes is run until it does, for as long as that is likely.
fn shown_by_python(path: &Path, signature: &Signature, time: Duration, flaky: Option<&Flaky>) -> Shown {
    let Some(python) = pyrite_debug::torch::registered() else {
        let line = "there is no Python to run it with; name one with --python".to_owned();
        return Shown { proven: false, line, command: format!("python {}", path.display()) };
    };
    let runs = flaky.map_or(1, |flaky| (4 * flaky.runs / flaky.failed.max(1)).clamp(4, 20));
    let mut shown = show(path, &python, signature, time);
    for _ in 1..runs {
        if shown.proven {
            break;
        }
        shown = show(path, &python, signature, time);
    }
    shown
}

/// How a search ended.
struct Ended<'a> {
    question: &'a Question,
    path: &'a Path,
    /// What a worker said of the written file, where a worker was asked.
    proof: Option<&'a Verdict>,
    /// What the written file said when plain PyTorch ran it, where it did.
    shown: Option<&'a Shown>,
    proven: bool,
    flaky: Option<&'a Flaky>,
}

/// How often a failure came.
struct Flaky {
    failed: u32,
    runs: u32,
}

impl std::fmt::Display for Flaky {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} runs", self.failed, self.runs)
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
