//! `pyrite compare A B`: do two files hold the same results?
//!
//! Tensors are compared by their names: those of A are what is expected.

use std::path::PathBuf;

use pyrite_compare::{Accuracy, compare};
use pyrite_session::results::{lines_of, results_of, sentence_of, verdict_of};
use serde_json::json;

use crate::options::{Comparing, accuracy};
use crate::{ExitCode, Host, Outcome};

/// Compare two files of results, or the results of two programs
#[derive(clap::Args)]
pub struct Compare {
    /// What is expected: .npy, .npz, .safetensors, a file of torch.save, or a program
    expected: PathBuf,
    /// What is compared with it
    actual: PathBuf,
    /// The same in double precision, which judges what is not close
    #[arg(long, alias = "truth", value_name = "FILE")]
    fp64: Option<PathBuf>,
    /// Backend that runs programs
    #[arg(long, default_value = "eager")]
    backend: String,
    /// How closely the two are compared
    #[arg(long, default_value = "fp", value_parser = accuracy())]
    accuracy: Accuracy,
    /// Leave out the gradients of programs
    #[arg(long)]
    forward_only: bool,
    /// Seed of random numbers and of generated inputs [default: what the file says, else 0]
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
