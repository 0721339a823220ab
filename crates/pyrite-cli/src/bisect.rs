//! `pyrite bisect FILE`: which stage, and which single rewrite, makes a program fail?

use std::path::{Path, PathBuf};
use std::time::Duration;

use pyrite_debug::Found;
use pyrite_diag::counted;
use pyrite_oracle::Verdict;
use pyrite_session::backend::missing;
use pyrite_session::bisect::{Patience, bisect, data, lines};
use pyrite_session::dumps::programs_in;
use pyrite_session::{Program, Story, folder};
use pyrite_trace::Stage;
use serde_json::json;

use crate::failure::Failure;
use crate::numbers::seconds;
use crate::options::Judging;
use crate::reporter::Printer;
use crate::{ExitCode, Host, Outcome, tracing};

/// Find the stage and the individual rewrite that make a program fail
#[derive(clap::Args)]
pub struct Bisect {
    /// The file, or a folder of programs
    file: PathBuf,
    /// Backend under test
    #[arg(long)]
    backend: String,
    /// Stop after finding this many guilty steps
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    culprits: usize,
    /// Time limit of a run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, value_parser = seconds)]
    time_limit: f64,
    /// Stop after this many seconds, and list what was not tested
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_budget: Option<f64>,
    /// Write a trace to this folder, for `pyrite report`
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    judging: Judging,
}

impl Bisect {
    /// Searches stages, then rewrites.
    pub fn run(&self, host: &Host) -> Outcome {
        if let Some(out) = &self.out {
            folder::check_unused(out)?;
        }
        let options = self.judging.options(Some(&self.backend));
        let patience = Patience {
            question: Duration::from_secs_f64(self.time_limit),
            search: self.time_budget.map(Duration::from_secs_f64),
        };
        let mut passed = Verdict::Pass;
        // Of several graphs the first that fails is the guilty one.
        for file in programs_in(&self.file)? {
            let program = Program::open_for(host, &file, &options)?;
            let question = program.question(&options, &self.backend)?;
            let candidate = program.candidate(options.seed)?;
            match bisect(host, &candidate, &question, self.culprits, patience)? {
                Ok(found) => {
                    if let Some(out) = &self.out {
                        let printer = Printer::new(self.json);
                        let _trace = tracing::begin_in(out, &printer);
                        let _stage = pyrite_trace::stage(Stage::Debug);
                        pyrite_session::tracing::tell_program(&candidate.graph, "program.py");
                        let mut story = Story::begin();
                        story.tell("bisect", &lines(&found).join("; "), data(&found));
                        story.tell_trace();
                    }
                    return Ok(self.tell(&file, &found));
                }
                Err(verdict) => passed = verdict,
            }
        }
        if let Verdict::Invalid(why) = &passed
            && let Some(problem) = missing(why)
        {
            return Err(Failure::of(problem).told_in_json(self.json));
        }
        if self.json {
            println!("{:#}", json!({"verdict": passed.name()}));
        } else {
            match &passed {
                Verdict::Invalid(why) => println!("nothing to bisect: {why}"),
                Verdict::Noise => println!("nothing to bisect: the results differ by no more than rounding explains"),
                _ => println!("nothing to bisect: the program does not fail"),
            }
        }
        Ok(ExitCode::FAILURE)
    }

    fn tell(&self, file: &Path, found: &Found) -> ExitCode {
        if self.json {
            let mut report = data(found);
            report["verdict"] = json!("fail");
            report["file"] = json!(file);
            report["signature"] = json!(found.signature);
            report["rewrite"] = json!(found.culprits.first().map(|what| json!({"what": what})));
            println!("{report:#}");
        } else {
            println!("{}: {}", file.display(), found.signature);
            lines(found).iter().for_each(|line| println!("{line}"));
            println!("{}", counted(found.queries, "query", "queries"));
            if !found.unasked.is_empty() {
                eprintln!("next: a longer --time-budget, or none, tests the rest");
            }
        }
        ExitCode::SUCCESS
    }
}
