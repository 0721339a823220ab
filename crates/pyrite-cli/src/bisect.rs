//! `pyrite bisect FILE`: which stage, and which single rewrite, makes a program fail?

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use pyrite_debug::{Determinism, Effort, Folder, Found, Isolated, Limits, Question};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_oracle::Verdict;
use pyrite_reduce::Candidate;
use pyrite_trace::Stage;
use serde_json::json;

use crate::ExitCode;
use crate::Outcome;
use crate::failure::Failure;
use crate::numbers::seconds;
use crate::program::Program;
use crate::result_folder;
use crate::run::{Precision, named, said_by_file};
use crate::story::Story;
use crate::switches::Comparing;
use crate::tracing;

/// Find the stage, and the single rewrite, that makes a program fail
#[derive(clap::Args)]
pub struct Bisect {
    /// The file, or a folder of programs
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
    /// The seed of random numbers and of generated inputs [default: what the file says, else 0]
    #[arg(long)]
    seed: Option<u64>,
    /// How many guilty steps are looked for
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    culprits: usize,
    /// How many seconds a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, value_parser = seconds)]
    time_limit: f64,
    /// Ask nothing more after this many seconds, and say what was not asked
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_budget: Option<f64>,
    /// Keep a trace in this folder, for `pyrite report`
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    comparing: Comparing,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Bisect {
    /// Searches stages, then rewrites.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        if let Some(out) = &self.out {
            result_folder::check_unused(out, &self.file)?;
        }
        named(&self.backend)?;
        named(&self.reference)?;
        let mut passed = None;
        // Of several graphs the first that fails is the guilty one.
        for file in self.files()? {
            let program = Program::open(&file)?;
            let question = Question {
                backend: self.backend.clone(),
                reference: self.reference.clone(),
                accuracy: self.accuracy.unwrap_or_else(|| said_by_file(&program)).into(),
                forward_only: self.forward_only || program.is_differentiated(),
                seed: program.seed(self.seed),
                switches: self.comparing.switches(),
                ..Question::default()
            };
            let candidate = program.candidate(self.seed)?;
            let patience = Patience {
                question: Duration::from_secs_f64(self.time_limit),
                search: self.time_budget.map(Duration::from_secs_f64),
            };
            match bisect(&candidate, &question, self.culprits, patience)? {
                Ok(found) => {
                    if let Some(out) = &self.out {
                        tracing::begin_in(out);
                        let _stage = pyrite_trace::stage(Stage::Debug);
                        tracing::tell_program(&candidate.graph, "program.py");
                        let mut story = Story::begin();
                        story.tell("bisect", &lines(&found).join("; "), data(&found));
                        story.tell_trace();
                    }
                    return Ok(self.tell(&file, &found));
                }
                Err(verdict) => passed = Some(verdict),
            }
        }
        let verdict = passed.unwrap_or(Verdict::Pass);
        if self.json {
            println!("{:#}", json!({"verdict": verdict.name()}));
        } else {
            println!("nothing to bisect: the program does not fail ({})", verdict.name());
        }
        Ok(ExitCode::from(1))
    }

    /// The file, or the programs in the folder, in the order of their names.
    fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        if !self.file.is_dir() {
            return Ok(vec![self.file.clone()]);
        }
        let mut found = Vec::new();
        let mut open = vec![self.file.clone()];
        while let Some(folder) = open.pop() {
            let entries = std::fs::read_dir(&folder);
            for entry in entries.with_context(|| format!("the folder {} cannot be listed", folder.display()))? {
                let path = entry?.path();
                if path.is_dir() && path.file_name().is_some_and(|name| name != "trace" && name != "storages") {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "py") {
                    found.push(path);
                }
            }
        }
        found.sort();
        if found.is_empty() {
            let problem = Diagnostic::error(Code::new("bisect::no-program"), "the folder holds no program");
            return Err(Failure::of(problem.at(Location::in_file(&self.file)).hint("name a .py file or its folder")));
        }
        Ok(found)
    }

    fn tell(&self, file: &Path, found: &Found) -> ExitCode {
        if self.json {
            let rewrite = found.culprits.first().map(|what| json!({"what": what}));
            let switches: Vec<_> = found.vanishes_with.iter().map(|switch| switch.setting).collect();
            let report = json!({
                "verdict": "fail",
                "file": file,
                "signature": found.signature,
                "backend": found.backend,
                "stage": found.adds,
                "part": found.part,
                "rewrite": rewrite,
                "culprits": found.culprits,
                "vanishes_with": switches,
                "determinism": found.determinism,
                "queries": found.queries,
                "unasked": found.unasked,
            });
            println!("{report:#}");
        } else {
            println!("{}: {}", file.display(), found.signature);
            lines(found).iter().for_each(|line| println!("{line}"));
            println!("{} queries", found.queries);
            if !found.unasked.is_empty() {
                eprintln!("next: a longer --time-budget, or none, asks the rest");
            }
        }
        ExitCode::SUCCESS
    }
}

/// What was found, a sentence a line.
pub fn lines(found: &Found) -> Vec<String> {
    let mut lines = vec![format!("it begins with {} ({})", found.adds, found.backend)];
    lines.extend(found.part.as_ref().map(|part| format!("the guilty part: {part}")));
    lines.extend(found.culprits.iter().map(|step| format!("a guilty step: {step}")));
    for switch in &found.vanishes_with {
        lines.push(format!("it vanishes with {}, without {}", switch.setting, switch.what));
    }
    match found.determinism {
        Determinism::Same => lines.push("compiled twice, the code is the same".to_owned()),
        Determinism::Different => {
            lines.push("compiled twice, the code is another: the compiler is not deterministic".into());
        }
        Determinism::Unknown => {}
    }
    if !found.unasked.is_empty() {
        lines.push(format!("not asked for want of time: {}", found.unasked.join("; ")));
    }
    lines
}

/// What was found, as data.
pub fn data(found: &Found) -> serde_json::Value {
    json!({
        "backend": found.backend, "stage": found.adds, "queries": found.queries, "part": found.part,
        "culprits": found.culprits, "determinism": found.determinism, "unasked": found.unasked,
        "vanishes_with": found.vanishes_with.iter().map(|switch| switch.setting).collect::<Vec<_>>(),
    })
}

/// How long a bisection may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A single question; longer is a hang.
    pub question: Duration,
    /// All of them; after that nothing more is asked.
    pub search: Option<Duration>,
}

/// Finds where a failure begins, in workers; the verdict where the program does not fail.
pub fn bisect(
    candidate: &Candidate,
    question: &Question,
    culprits: usize,
    patience: Patience,
) -> Result<Result<Found, Verdict>, Failure> {
    let limits = Limits { time: patience.question, memory: None };
    let own = crate::Invocation::own()?;
    let workers = Isolated::new(&own.program.clone(), crate::worker_arguments(own), question.clone(), limits)?;
    let scratch = tempfile::tempdir()?;
    let path = Folder::scratch(scratch.path())?.write("program.py", candidate, &[])?;
    let ask = |question: &Question| workers.judge_asked(&path, question);
    let begun = Instant::now();
    let over = || patience.search.is_some_and(|time| begun.elapsed() >= time);
    Ok(pyrite_debug::bisect(candidate, question, Effort { culprits, over: &over }, scratch.path(), &ask))
}
