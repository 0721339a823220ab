//! `pyrite debug FILE`: everything, without choices.

use std::path::PathBuf;

use pyrite_session::{Options, Session};

use crate::numbers::seconds;
use crate::options::{Judging, beside};
use crate::reporter::Printer;
use crate::{ExitCode, Host, Outcome};

/// Whose build target is written.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Target {
    /// Buck: a file BUCK
    Buck,
    /// Bazel: a file BUILD.bazel
    Bazel,
}

/// Confirm, classify, bisect, minify and prove a failure
#[derive(clap::Args)]
pub struct Debug {
    /// The file
    file: PathBuf,
    /// Backend under test [default: what the file says]
    #[arg(long)]
    backend: Option<String>,
    /// How often the program is run to see whether it fails every time
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How many candidates are tried at once
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
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
    /// Print JSON objects, one for each step
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
        let found = Session::open(host, &self.file, options, &Printer::new(self.json))?.run()?;
        Ok(if found.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
