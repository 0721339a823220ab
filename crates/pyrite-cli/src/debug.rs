//! `pyrite debug FILE`: everything, without choices.
//!
//! Confirms the failure by running the program several times, says what kind it is, finds the stage it begins with,
//! reduces the program, proves the result in a fresh process, and writes a report beside it.
//!
//! Where a stage is looked for, every question compiles the program once more. Pyrite's own backends take milliseconds for
//! that and are asked about the whole program. Others take up to minutes: they are asked about the smallest program, which
//! fails in the same way, and for so long and no longer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use pyrite_debug::{Isolated, Limits, Question};
use pyrite_oracle::{Class, Oracle, Signature, Verdict, signal_name};
use pyrite_reduce::Candidate;
use pyrite_trace::Stage;
use serde_json::json;

use crate::ExitCode;
use crate::Outcome;
use crate::analyze::{Layer, analyze_apart};
use crate::bisect::{Patience, bisect, data, lines};
use crate::doctor::{self, Torch, WITHOUT_AMX};
use crate::failure::Failure;
use crate::interrupt;
use crate::minify::Minify;
use crate::numbers::seconds;
use crate::program::Program;
use crate::result_folder;
use crate::run::{Precision, named, said_by_file, unknown_backend};
use crate::story::Story;
use crate::switches::Comparing;
use crate::target::Target;
use crate::tracing;

/// The signal of an instruction that the processor refuses.
const SIGILL: i32 = 4;
/// How many guilty steps are looked for.
const CULPRITS: usize = 4;
/// How many seconds are spent on bisecting unless told otherwise.
const BISECTING: f64 = 120.0;

/// Which program is bisected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bisecting {
    /// The one that came in.
    Whole,
    /// What the minifier left of it.
    Smallest,
}

/// Confirm, classify, bisect, minify and prove a failure
#[derive(clap::Args)]
pub struct Debug {
    /// The file
    file: PathBuf,
    /// Who fails on it [default: what the file says]
    #[arg(long)]
    backend: Option<String>,
    /// Who says what is right [default: eager, and torch:eager for operators that only torch knows]
    #[arg(long)]
    reference: Option<String>,
    /// How closely the two are compared [default: what the file says, else fp]
    #[arg(long, value_enum)]
    accuracy: Option<Precision>,
    /// How often the program is run to see whether it fails every time
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The seed of random numbers and of generated inputs [default: what the file says, else 0]
    #[arg(long)]
    seed: Option<u64>,
    /// Stop reducing after this many seconds, and bisecting after as many [default: no limit, and 120 for bisecting]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_budget: Option<f64>,
    /// How many seconds a run may take before it is a hang [default: 300, then ten times the first run]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<f64>,
    /// Write a build target beside the repro
    #[arg(long, value_enum)]
    target: Option<Target>,
    /// Where the result is written [default: a new folder beside the file]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    comparing: Comparing,
    /// Print JSON objects, one for each step
    #[arg(long)]
    json: bool,
}

impl Debug {
    /// The usual session on a file, with its results in a folder.
    pub fn of(file: PathBuf, backend: String, out: PathBuf) -> Self {
        Self {
            file,
            backend: Some(backend),
            reference: None,
            accuracy: None,
            runs: 3,
            seed: None,
            time_budget: None,
            time_limit: None,
            target: None,
            out: Some(out),
            comparing: Comparing::default(),
            json: false,
        }
    }

    /// Does all of it.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        if let Some(out) = &self.out {
            result_folder::check_unused(out, &self.file)?;
        }
        let program = Program::open(&self.file)?;
        let backend = match &self.backend {
            Some(backend) => backend.clone(),
            None => program.said_backend()?.unwrap_or_else(|| "aot_eager_decomp_partition".to_owned()),
        };
        let reference = program.reference(self.reference.as_ref(), &backend);
        program.check_imports([&backend, &reference])?;
        named(&backend)?;
        named(&reference)?;
        let precision = self.accuracy.unwrap_or_else(|| said_by_file(&program));
        let question = Question {
            backend: backend.clone(),
            reference: reference.clone(),
            accuracy: precision.into(),
            forward_only: program.is_differentiated(),
            seed: program.seed(self.seed),
            switches: self.comparing.switches(),
            ..Question::default()
        };
        let candidate = program.candidate(self.seed)?;
        let file = self.file.clone();
        interrupt::watch(move || {
            eprintln!(
                "interrupted before the failure was confirmed; the same command asks again about {}",
                file.display()
            );
        });
        let mut story = Story::begin();
        let Some(signature) = self.confirm(&candidate, &question, &mut story)? else { return Ok(ExitCode::from(1)) };
        let when = if backend.contains(':') { Bisecting::Smallest } else { Bisecting::Whole };
        if when == Bisecting::Whole {
            self.bisect(&candidate, &question, &self.file, &mut story)?;
        }
        let folder = match &self.out {
            Some(out) => out.clone(),
            None => result_folder::beside(&self.file, "debug")?,
        };
        let torch =
            if [&backend, &reference].iter().any(|name| name.starts_with("torch:") || name.starts_with("python:")) {
                Torch::TookPart
            } else {
                Torch::Absent
            };
        // Before the trace begins: to see what works here, something small is compiled.
        let machine = doctor::environment(torch);
        tracing::begin_in(&folder);
        let _stage = pyrite_trace::stage(Stage::Debug);
        tracing::tell_program(&candidate.graph, "program.py");
        if when == Bisecting::Whole {
            self.part(&question, precision, &signature, &mut story);
        }
        story.tell_trace();
        let (code, shown) = Minify::of(self.file.clone(), backend.clone(), reference, precision)
            .seeded(question.seed)
            .limited(self.time_budget, self.time_limit)
            .into_folder(Some(folder.clone()))
            .comparing(self.comparing.clone())
            .in_json(self.json)
            .found()
            .inspect_err(|_| {
                tracing::discard(&folder);
                // It goes only if nothing is in it.
                let _ = std::fs::remove_dir(&folder);
            })?;
        let proven = code == ExitCode::SUCCESS;
        let proof = match (&shown, proven) {
            (Some(shown), true) => format!("`{}`: {}", shown.command, shown.line),
            (Some(shown), false) => {
                format!("seen only inside of Pyrite's worker; `{}`: {}", shown.command, shown.line)
            }
            (None, true) => "the repro fails so in a fresh process".to_owned(),
            (None, false) => "the smallest program is not proven".to_owned(),
        };
        let line = shown.as_ref().map(|shown| &shown.line);
        story.tell("prove", &proof, json!({"proven": proven, "line": line}));
        if when == Bisecting::Smallest {
            // What compiles for long is asked for the result first.
            self.part(&question, precision, &signature, &mut story);
        }
        if when == Bisecting::Smallest && proven {
            let repro = folder.join("repro.py");
            let smallest = Program::open(&repro)?;
            let backend = smallest.read.get("backend").unwrap_or(&backend).to_owned();
            let question = Question { backend, seed: smallest.seed(None), ..question };
            self.bisect(&smallest.candidate(None)?, &question, &repro, &mut story)?;
        }
        story.tell_trace();
        if let Some(target) = self.target {
            let path = target.write(&folder)?;
            self.say(&mut story, "target", &path.display().to_string(), json!({"target": path}));
        }
        let path = folder.join("report.md");
        std::fs::write(&path, story.markdown(&signature.to_string(), &self.file, &backend, &folder, &machine))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        self.say(&mut story, "report", &path.display().to_string(), json!({"report": path}));
        Ok(code)
    }

    /// Says where the failure of a program begins.
    fn bisect(
        &self,
        candidate: &Candidate,
        question: &Question,
        file: &Path,
        story: &mut Story,
    ) -> Result<(), Failure> {
        let search = Duration::from_secs_f64(self.time_budget.unwrap_or(BISECTING));
        match bisect(candidate, question, CULPRITS, Patience { question: self.time(), search: Some(search) })? {
            Ok(found) => {
                self.say(story, "bisect", &lines(&found).join("; "), data(&found));
                if !found.unasked.is_empty() && !self.json {
                    let (file, backend) = (file.display(), &question.backend);
                    eprintln!("next: `pyrite bisect {file} --backend '{backend}'` asks the rest");
                }
            }
            Err(verdict) => {
                let object = json!({"verdict": verdict.name()});
                self.say(story, "bisect", "the failure did not come again", object);
            }
        }
        Ok(())
    }

    /// Runs the program several times and says what kind of failure it is; nothing where it does not fail.
    fn confirm(
        &self,
        candidate: &Candidate,
        question: &Question,
        story: &mut Story,
    ) -> Result<Option<Signature>, Failure> {
        let limits = Limits { time: self.time(), memory: None };
        let own = crate::Invocation::own()?;
        let oracle = Isolated::new(&own.program.clone(), crate::worker_arguments(own), question.clone(), limits)?;
        let ask = |run: u32| {
            if !self.json {
                eprintln!("run {run} of {}: {} compiles and runs the program …", self.runs, question.backend);
            }
            oracle.judge(candidate)
        };
        let verdicts: Vec<Verdict> = (1..=self.runs).map(ask).collect();
        let failed: Vec<&Signature> = verdicts.iter().filter_map(Verdict::signature).collect();
        let (count, runs, backend) = (failed.len(), self.runs, &question.backend);
        let invalid = verdicts.iter().find_map(|v| if let Verdict::Invalid(why) = v { Some(why) } else { None });
        let kind = match (failed.first(), invalid) {
            (None, Some(_)) => "invalid: the question has no answer".to_owned(),
            (None, None) if verdicts.contains(&Verdict::Noise) => {
                "noise: the results differ by no more than rounding explains".to_owned()
            }
            (None, None) => "fine: the program does what it should".to_owned(),
            (Some(signature), _) => {
                let asked = backend.starts_with("cmd:");
                let kind = if asked && signature.class == Class::Exit(1) {
                    "the command says that the bug is there".to_owned()
                } else {
                    kind_of(signature.class)
                };
                if count < verdicts.len() { format!("flaky: {kind}, in {count} of {runs} runs") } else { kind }
            }
        };
        let object = json!({
            "failed": count, "runs": runs, "backend": backend, "kind": kind, "signature": failed.first(),
        });
        self.say(story, "confirm", &format!("{count} of {runs} runs of {backend} fail: {kind}"), object);
        if let (None, Some(why)) = (failed.first(), invalid) {
            if pyrite_debug::torch::is_unknown_backend(why) {
                return Err(unknown_backend(why));
            }
            self.say(story, "confirm", why, json!({"reason": why}));
        }
        if failed.is_empty() && !self.json {
            eprintln!("next: {}", next_after(&verdicts, backend));
        }
        if let Some(Class::Signal(SIGILL)) = failed.first().map(|signature| signature.class)
            && backend.starts_with("torch:")
        {
            let text =
                format!("if torch's own kernels fault on this processor, {WITHOUT_AMX}; `pyrite doctor` tries it");
            self.say(story, "hint", &text, json!({"hint": text}));
        }
        if let Some(message) = failed.first().and_then(|signature| signature.detail.message.as_ref()) {
            let detail = message.lines().next().unwrap_or_default();
            story.tell("detail", detail, json!({"message": message}));
        }
        Ok(failed.first().copied().cloned())
    }

    /// Says at which value a wrong result begins, and tells the trace of every value on the way. What cannot be told
    /// stays untold: programs of `cmd:` return no values, and a backend may fail on a program that returns all of them.
    fn part(&self, question: &Question, precision: Precision, signature: &Signature, story: &mut Story) {
        if !matches!(signature.class, Class::Value | Class::Shape | Class::Stride | Class::Dtype)
            || [&question.backend, &question.reference].iter().any(|name| name.starts_with("cmd:"))
        {
            return;
        }
        let words =
            ["--backend", &question.backend, "--reference", &question.reference, "--accuracy", precision.name()];
        let words = words.map(str::to_owned).into_iter().chain(["--json".to_owned(), "--seed".to_owned()]);
        let words = words.chain([question.seed.to_string(), self.file.display().to_string()]);
        let words: Vec<String> = words.chain(self.comparing.words()).collect();
        let Some(layers) = analyze_apart(&words, self.time()) else { return };
        layers.iter().for_each(Layer::tell_trace);
        let parted: Vec<&Layer> = layers.iter().filter(|layer| layer.parts()).collect();
        let (count, all) = (parted.len(), layers.len());
        let text = match parted.first() {
            Some(first) => format!("{count} of {all} values differ, the first is {}", first.name()),
            None => format!("no single value of {all} differs: it takes operators that are compiled together"),
        };
        let object = json!({"values": all, "differ": count, "first": parted.first().map(|layer| layer.name())});
        self.say(story, "analyze", &text, object);
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.time_limit.unwrap_or(300.0))
    }

    fn say(&self, story: &mut Story, step: &str, text: &str, object: serde_json::Value) {
        story.tell(step, text, object.clone());
        if self.json {
            println!("{}", json!({"step": step, "result": object}));
        } else {
            println!("{step}: {text}");
        }
    }
}

/// What to try where nothing fails.
fn next_after(verdicts: &[Verdict], backend: &str) -> String {
    if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Invalid(_))) {
        return "mend what is said above; `pyrite doctor` says what works on this machine, and --reference names another \
                judge"
            .to_owned();
    }
    if verdicts.contains(&Verdict::Noise) {
        return "--no-fp64 with --tol T judges by the tolerance alone, --accuracy strict by every bit; `pyrite analyze` \
                says where results part"
            .to_owned();
    }
    format!(
        "name the backend that fails with --backend (this was {backend}), run more often with --runs, or compare every bit \
         with --accuracy strict; what fails only in your script may need other inputs than the file has"
    )
}

/// A class of failures in plain words.
fn kind_of(class: Class) -> String {
    match class {
        Class::Error => "an error that the reference does not raise".to_owned(),
        Class::Hang => "a hang".to_owned(),
        Class::Signal(number) => format!("a crash, {}", signal_name(number)),
        Class::Exit(_) | Class::Garbage => "a crash".to_owned(),
        Class::OutOfMemory => "out of memory".to_owned(),
        _ => "wrong results".to_owned(),
    }
}
