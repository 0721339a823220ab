//! `pyrite compare A B`: do two files hold the same results?
//!
//! Tensors are compared by their names: those of A are what is expected.

use std::path::PathBuf;

use pyrite_compare::{Accuracy, compare};
use pyrite_session::results::{lines_of, results_of, sentence_of, verdict_of};
use serde_json::json;

use crate::options::{Comparing, accuracy};
use crate::{ExitCode, Host, Outcome};

/// Compare two result files, or the results of two programs
#[derive(clap::Args)]
pub struct Compare {
    /// The expected results: .npy, .npz, .safetensors, a torch.save file, or a program
    expected: PathBuf,
    /// The actual results
    actual: PathBuf,
    /// The expected results in double precision, which decide whether a difference is rounding
    #[arg(long, alias = "truth", value_name = "FILE")]
    fp64: Option<PathBuf>,
    /// Backend for programs
    #[arg(long, default_value = "eager")]
    backend: String,
    /// How to compare the results
    #[arg(long, default_value = "fp", value_parser = accuracy())]
    accuracy: Accuracy,
    /// Do not compute gradients
    #[arg(long)]
    forward_only: bool,
    /// Seed for random numbers and generated inputs [default: from the file, else 0]
    #[arg(long)]
    seed: Option<u64>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    comparing: Comparing,
}

impl Compare {
    /// Compares the files and says what differs.
    pub fn run(&self, host: &Host) -> Outcome {
        let results = |file: &PathBuf| results_of(host, file, &self.backend, self.forward_only, self.seed);
        let (expected, actual) = (results(&self.expected)?, results(&self.actual)?);
        let exact = self.fp64.as_ref().map(results).transpose()?;
        let report = compare(&expected, &actual, exact.as_ref(), &self.comparing.switches().options(self.accuracy));
        if self.json {
            let object = json!({
                "verdict": verdict_of(&report),
                "expected": self.expected,
                "actual": self.actual,
                "comparison": report,
            });
            println!("{object:#}");
        } else {
            println!("{}", sentence_of(&report));
            lines_of(&report, 20).iter().for_each(|line| println!("{line}"));
        }
        Ok(if report.agrees() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
