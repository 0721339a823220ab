//! `pyrite bisect FILE`: which stage, and which single rewrite, makes a program fail?

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use pyrite_bisect::{NotFound, first_guilty, stages};
use pyrite_compiler::Options;
use pyrite_compiler::aot::{Stages, partition_by_min_cut};
use pyrite_debug::{Isolated, Limits, Question, candidate_of};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_oracle::{Oracle, Signature, Verdict};
use pyrite_passes::Table;
use pyrite_reduce::Candidate;
use serde_json::json;

use crate::Outcome;
use crate::failure::Failure;
use crate::program::Program;
use crate::run::{Precision, named, said_by_file};
use crate::switches::Comparing;

/// Find the stage, and the single rewrite, that makes a program fail
#[derive(clap::Args)]
pub struct Bisect {
    /// The file
    file: PathBuf,
    /// Who fails on it
    #[arg(long)]
    backend: String,
    /// Who says what is right
    #[arg(long, default_value = "eager")]
    reference: String,
    /// How closely the two are compared [default: what the file says, else fp]
    #[arg(long, value_enum)]
    accuracy: Option<Precision>,
    /// Leave out gradients
    #[arg(long)]
    forward_only: bool,
    /// The seed of random numbers and of generated inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seconds a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0)]
    time_limit: f64,
    #[command(flatten)]
    comparing: Comparing,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// What a bisection found.
pub struct Found {
    /// The backend with which the failure begins.
    pub backend: String,
    /// What that backend adds.
    pub adds: String,
    /// The rewrite with which it begins, where rewrites can be left out.
    pub rewrite: Option<(u64, String)>,
    /// How the program fails.
    pub signature: Signature,
    /// How many questions it took.
    pub queries: u64,
}

impl Bisect {
    /// Searches stages, then rewrites.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        let program = Program::open(&self.file)?;
        named(&self.backend)?;
        named(&self.reference)?;
        let question = Question {
            backend: self.backend.clone(),
            reference: self.reference.clone(),
            accuracy: self.accuracy.unwrap_or_else(|| said_by_file(&program)).into(),
            forward_only: self.forward_only || program.is_differentiated(),
            seed: self.seed,
            rewrites: None,
            switches: self.comparing.switches(),
        };
        let candidate = load(&self.file, self.seed)?;
        let found = bisect(&candidate, &question, Duration::from_secs_f64(self.time_limit))?;
        Ok(self.tell(found))
    }

    fn tell(&self, found: Result<Found, Verdict>) -> ExitCode {
        match found {
            Ok(found) => {
                if self.json {
                    let rewrite = found.rewrite.as_ref().map(|(number, what)| json!({"number": number, "what": what}));
                    let report = json!({
                        "verdict": "fail",
                        "signature": found.signature,
                        "backend": found.backend,
                        "stage": found.adds,
                        "rewrite": rewrite,
                        "queries": found.queries,
                    });
                    println!("{report:#}");
                } else {
                    println!("{}", found.signature);
                    println!("it begins with {} ({})", found.adds, found.backend);
                    if let Some((number, what)) = &found.rewrite {
                        println!("the guilty rewrite is number {number}: {what}");
                    }
                    println!("{} queries", found.queries);
                }
                ExitCode::SUCCESS
            }
            Err(verdict) => {
                if self.json {
                    println!("{:#}", json!({"verdict": verdict.name()}));
                } else {
                    println!("nothing to bisect: the program does not fail ({})", verdict.name());
                }
                ExitCode::from(1)
            }
        }
    }
}

/// The program of a file.
pub fn load(file: &Path, seed: u64) -> Result<Candidate, Failure> {
    candidate_of(file, seed).map_err(|why| {
        Failure::of(
            Diagnostic::error(Code::new("bisect::failed"), "the program cannot be loaded")
                .at(Location::in_file(file))
                .cause(why),
        )
    })
}

/// Finds the stage and the rewrite; the verdict where the program does not fail.
pub fn bisect(candidate: &Candidate, question: &Question, time: Duration) -> Result<Result<Found, Verdict>, Failure> {
    let row = stages(&question.backend);
    let ask = |backend: &str, rewrites: Option<u64>| -> Result<Verdict, Failure> {
        let question = Question { backend: backend.to_owned(), rewrites, ..question.clone() };
        let limits = Limits { time, memory: None };
        let program = std::env::current_exe()?;
        let oracle = Isolated::new(&program, crate::python_arguments(), question, limits)?;
        Ok(oracle.judge(candidate))
    };
    let mut queries = 0;
    let whole = ask(&question.backend, None)?;
    queries += 1;
    let Some(signature) = whole.signature().cloned() else { return Ok(Err(whole)) };
    // Stages are few, and each is a whole compiler: the first that fails is asked for in order.
    let mut guilty = row.len() - 1;
    for (index, (backend, _)) in row.iter().enumerate().take(row.len() - 1) {
        queries += 1;
        if ask(backend, None)?.signature().is_some_and(|found| signature.holds(found)) {
            guilty = index;
            break;
        }
    }
    let (backend, adds) = row[guilty].clone();
    let log = rewrites_of(candidate, &backend);
    let mut rewrite = None;
    if !log.is_empty() {
        let mut failed = None;
        let mut judge = |n: u64| {
            ask(&backend, Some(n)).unwrap_or_else(|failure| {
                failed = Some(failure);
                Verdict::Invalid("the question could not be asked".to_owned())
            })
        };
        match first_guilty(log.len() as u64, &mut judge) {
            Ok(found) => {
                queries += found.queries;
                rewrite = log.get(found.step as usize).map(|what| (found.step, what.clone()));
            }
            Err(NotFound::Passes(_) | NotFound::FailsAtOnce(_)) => queries += 2,
        }
        if let Some(failure) = failed {
            return Err(failure);
        }
    }
    Ok(Ok(Found { backend, adds, rewrite, signature, queries }))
}

/// The optional rewrites that a backend makes of a program, in their order.
fn rewrites_of(candidate: &Candidate, backend: &str) -> Vec<String> {
    let table = match backend {
        "aot_eager" | "aot_eager_default_partitioner" => Table::Composite,
        name if name.starts_with("aot_eager_decomp_partition") => Table::Core,
        _ => return Vec::new(),
    };
    Stages::of(&candidate.graph, &partition_by_min_cut(), table, &Options::default())
        .map(|stages| stages.rewrites)
        .unwrap_or_default()
}
