//! `pyrite minify FILE`: finds the smallest program that still fails.

use std::path::PathBuf;

use pyrite_oracle::CONFIDENCE;
use pyrite_session::Options;
use pyrite_session::minify::minify;

use crate::numbers::{command, confidence, seconds};
use crate::options::{Judging, beside};
use crate::reporter::{Printer, tell_reduced};
use crate::{ExitCode, Host, Outcome, interrupt};

/// Find the smallest program that still fails
#[derive(clap::Args)]
pub struct Minify {
    /// The file
    file: PathBuf,
    /// Backend under test; `pyrite backends` lists them
    #[arg(long, required_unless_present = "check")]
    backend: Option<String>,
    /// Ask this command instead of a backend: it gets the path of a candidate and exits with 0 (fine), 1 (the failure is
    /// there) or 125 (cannot tell)
    #[arg(long, value_name = "CMD", conflicts_with = "backend", value_parser = command)]
    check: Option<String>,
    /// Only errors whose text contains this are the failure; everything else counts as fine
    #[arg(long, value_name = "TEXT", conflicts_with = "check")]
    check_str: Option<String>,
    /// Remove at most this many nodes or outputs at once
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    max_granularity: Option<u64>,
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
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
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
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    judging: Judging,
}

impl Minify {
    /// Reduces the program, proves the result, and prints it.
    pub fn run(&self, host: &Host) -> Outcome {
        interrupt::hold();
        let options = Options {
            check: self.check.clone(),
            check_str: self.check_str.clone(),
            max_granularity: self.max_granularity.and_then(|count| usize::try_from(count).ok()),
            jobs: self.jobs,
            time_budget: self.time_budget,
            time_limit: self.time_limit,
            memory_limit: self.memory_limit,
            trials: self.runs,
            confidence: self.confidence,
            offload_to_disk: self.offload_to_disk,
            resume: self.resume.clone(),
            out: self.out.clone(),
            beside: beside(&self.file),
            ..self.judging.options(self.backend.as_ref())
        };
        let reduced = minify(host, &self.file, &options, &Printer::new(self.json))?;
        if self.json {
            println!("{:#}", reduced.data());
        } else {
            tell_reduced(&reduced);
        }
        Ok(if reduced.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
