//! `pyrite debug FILE`: everything, without choices.
//!
//! Confirms the failure by running the program several times, says what kind it is, finds the stage it begins with,
//! reduces the program, and proves the result in a fresh process.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use pyrite_debug::{Isolated, Limits, Question};
use pyrite_oracle::{Class, Oracle, Verdict};
use serde_json::json;

use crate::Outcome;
use crate::bisect::{bisect, lines, load};
use crate::minify::Minify;
use crate::program::Program;
use crate::run::{Precision, named, said_by_file};
use crate::switches::Comparing;

/// Confirm, classify, bisect, minify and prove a failure
#[derive(clap::Args)]
pub struct Debug {
    /// The file
    file: PathBuf,
    /// Who fails on it [default: what the file says]
    #[arg(long)]
    backend: Option<String>,
    /// Who says what is right
    #[arg(long, default_value = "eager")]
    reference: String,
    /// How closely the two are compared [default: what the file says, else fp]
    #[arg(long, value_enum)]
    accuracy: Option<Precision>,
    /// How often the program is run to see whether it fails every time
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The seed of random numbers and of generated inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Stop reducing after this many seconds
    #[arg(long, value_name = "SECONDS")]
    time_budget: Option<f64>,
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
    /// Does all of it.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        let program = Program::open(&self.file)?;
        let said = program.read.get("backend").map(str::to_owned);
        let backend = self.backend.clone().or(said).unwrap_or_else(|| "aot_eager_decomp_partition".to_owned());
        named(&backend)?;
        named(&self.reference)?;
        let precision = self.accuracy.unwrap_or_else(|| said_by_file(&program));
        let question = Question {
            backend: backend.clone(),
            reference: self.reference.clone(),
            accuracy: precision.into(),
            forward_only: program.is_differentiated(),
            seed: self.seed,
            rewrites: None,
            refused: Vec::new(),
            switches: self.comparing.switches(),
        };
        let candidate = load(&self.file, self.seed)?;
        let limits = Limits { time: Duration::from_mins(5), memory: None };
        let oracle = Isolated::new(&std::env::current_exe()?, crate::python_arguments(), question.clone(), limits)?;
        let verdicts: Vec<Verdict> = (0..self.runs).map(|_| oracle.judge(&candidate)).collect();
        let failed: Vec<_> = verdicts.iter().filter_map(Verdict::signature).collect();
        let kind = match (failed.first(), &verdicts[0]) {
            (None, Verdict::Noise) => "noise: the results differ by no more than rounding explains",
            (None, Verdict::Invalid(_)) => "invalid: the question has no answer",
            (None, _) => "fine: the program does what it should",
            (Some(_), _) if failed.len() < verdicts.len() => "flaky: it fails in some of the runs",
            (Some(signature), _) => match signature.class {
                Class::Error => "an error that the reference does not raise",
                Class::Hang => "a hang",
                Class::Signal(_) | Class::Exit(_) | Class::Garbage => "a crash",
                Class::OutOfMemory => "out of memory",
                _ => "wrong results",
            },
        };
        self.say(
            "confirm",
            &format!("{} of {} runs of {backend} fail: {kind}", failed.len(), self.runs),
            json!({
                "failed": failed.len(), "runs": self.runs, "backend": backend, "kind": kind,
                "signature": failed.first(),
            }),
        );
        if let Verdict::Invalid(why) = &verdicts[0] {
            self.say("confirm", why, json!({"reason": why}));
        }
        if failed.is_empty() {
            return Ok(ExitCode::from(1));
        }
        match bisect(&candidate, &question, 4, limits.time)? {
            Ok(found) => self.say(
                "bisect",
                &lines(&found).join("; "),
                json!({
                    "backend": found.backend, "stage": found.adds, "queries": found.queries, "part": found.part,
                    "culprits": found.culprits, "determinism": found.determinism,
                    "vanishes_with": found.vanishes_with.iter().map(|switch| switch.setting).collect::<Vec<_>>(),
                }),
            ),
            Err(verdict) => self.say("bisect", "the failure did not come again", json!({"verdict": verdict.name()})),
        }
        Minify::of(self.file.clone(), backend, self.reference.clone(), precision)
            .seeded(self.seed)
            .limited(self.time_budget)
            .into_folder(self.out.clone())
            .comparing(self.comparing.clone())
            .in_json(self.json)
            .run()
    }

    fn say(&self, step: &str, text: &str, object: serde_json::Value) {
        if self.json {
            println!("{}", json!({"step": step, "result": object}));
        } else {
            println!("{step}: {text}");
        }
    }
}
