//! `pyrite debug FILE`: everything, without choices.

use std::path::PathBuf;

use pyrite_session::{FirstNan, Options, Session, first_nan};

use crate::numbers::seconds;
use crate::options::{Judging, beside};
use crate::reporter::Printer;
use crate::{ExitCode, Host, Outcome};

/// The build system of a target.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Target {
    /// Buck: write BUCK
    Buck,
    /// Bazel: write BUILD.bazel
    Bazel,
}

/// Confirm, classify, bisect, minify and prove a failure
#[derive(clap::Args)]
pub struct Debug {
    /// The file
    file: PathBuf,
    /// Backend under test [default: from the file]
    #[arg(long)]
    backend: Option<String>,
    /// Number of runs that confirm the failure and measure how often it occurs
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Number of candidates tested in parallel
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Time limit in seconds, for minifying and for bisecting each [default: none for minifying, 120 for bisecting]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_budget: Option<f64>,
    /// Seconds after which a run counts as a hang [default: 300 for the first run, then ten times its duration]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<f64>,
    /// Run a script and find the first compiled kernel that makes NaN or infinity of finite numbers
    #[arg(long)]
    first_nan: bool,
    /// Arguments of the script, after --first-nan
    #[arg(last = true, requires = "first_nan")]
    words: Vec<String>,
    /// Also write a build target for the repro
    #[arg(long, value_enum)]
    target: Option<Target>,
    /// Output folder [default: a new folder beside the file]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print one JSON object per step
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    judging: Judging,
}

impl Debug {
    /// Does all of it, and prints every step as it ends.
    pub fn run(&self, host: &Host) -> Outcome {
        let options = Options {
            runs: self.runs,
            jobs: self.jobs,
            time_budget: self.time_budget,
            time_limit: self.time_limit,
            target: self.target.map(|target| match target {
                Target::Buck => pyrite_session::Target::Buck,
                Target::Bazel => pyrite_session::Target::Bazel,
            }),
            out: self.out.clone(),
            beside: beside(&self.file),
            ..self.judging.options(self.backend.as_ref())
        };
        if self.first_nan {
            return Ok(match first_nan(host, &self.file, &self.words, &options, &Printer::new(self.json))? {
                FirstNan::Made(_) => ExitCode::FAILURE,
                FirstNan::Nowhere => ExitCode::SUCCESS,
                // A script's own failure keeps its code.
                FirstNan::ScriptFailed(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
            });
        }
        let found = Session::open(host, &self.file, options, &Printer::new(self.json))?.run()?;
        Ok(if found.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
