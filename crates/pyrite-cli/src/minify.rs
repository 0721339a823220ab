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
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Minify {
    /// The file
    file: PathBuf,
    /// Backend under test; `pyrite backends` lists them
    #[arg(long, required_unless_present = "check")]
    backend: Option<String>,
    /// Test candidates with this command instead of a backend: it receives a path and exits with 0 (passes), 1 (fails) or
    /// 125 (cannot tell)
    #[arg(long, value_name = "CMD", conflicts_with = "backend", value_parser = command)]
    check: Option<String>,
    /// Only errors whose message contains this text count as the failure
    #[arg(long, value_name = "TEXT", conflicts_with = "check")]
    check_str: Option<String>,
    /// Maximum number of nodes or outputs to remove at once
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    max_granularity: Option<u64>,
    /// Number of candidates tested in parallel
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Stop after this many seconds and keep the best result
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_budget: Option<f64>,
    /// Time limit of a candidate, in seconds [default: ten times the first run, at least 5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<f64>,
    /// Memory limit of a candidate, in megabytes [default: three quarters of the machine's memory]
    #[arg(long, value_name = "MB")]
    memory_limit: Option<u64>,
    /// Number of runs before a program counts as deterministic
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Confidence of verdicts on intermittent failures
    #[arg(long, default_value_t = CONFIDENCE, value_name = "P", value_parser = confidence)]
    confidence: f64,
    /// Store the values of nodes in temporary files, for programs that do not fit into memory
    #[arg(long)]
    offload_to_disk: bool,
    /// Do not save the values of nodes at all; the result may be larger, since no candidate is fed from them
    #[arg(long, conflicts_with = "offload_to_disk")]
    skip_saving_eager_intermediates: bool,
    /// Keep every improvement as checkpoints/N.py in the output folder, N being its number of nodes
    #[arg(long)]
    checkpoints: bool,
    /// Resume the search in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "out")]
    resume: Option<PathBuf>,
    /// Output folder [default: a new folder beside the file]
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
            skip_saving_eager_intermediates: self.skip_saving_eager_intermediates,
            checkpoints: self.checkpoints,
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
