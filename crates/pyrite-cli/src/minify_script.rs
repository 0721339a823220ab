//! `pyrite minify-script SCRIPT`: finds the smallest script whose compiled run differs from its eager run.

use std::path::PathBuf;

use pyrite_session::script::{ReducedScript, ScriptOptions, minify};

use crate::numbers::{command, seconds};
use crate::options::beside;
use crate::reporter::Printer;
use crate::{ExitCode, Host, Outcome, interrupt};

/// Find the smallest script that behaves differently when compiled, if no single graph is wrong
#[derive(clap::Args)]
pub struct MinifyScript {
    /// The script
    file: PathBuf,
    /// The script's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
    /// torch.compile backend of the compiled run; the default tests TorchDynamo alone
    #[arg(long, default_value = "eager")]
    backend: String,
    /// Test candidates with this command: it receives a path and exits with 0 (passes), 1 (fails) or 125
    /// (cannot tell)
    #[arg(long, value_name = "CMD", conflicts_with = "backend", value_parser = command)]
    check: Option<String>,
    /// Number of candidates tested in parallel
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Stop after this many seconds and keep the best result
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_budget: Option<f64>,
    /// Seconds after which a run counts as a hang [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<f64>,
    /// Output folder [default: a new folder beside the script]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl MinifyScript {
    /// Reduces the script, proves the result, and prints it.
    pub fn run(&self, host: &Host) -> Outcome {
        interrupt::hold();
        let options = ScriptOptions {
            backend: Some(self.backend.clone()),
            check: self.check.clone(),
            words: self.words.clone(),
            jobs: self.jobs as usize,
            time_budget: self.time_budget,
            time_limit: self.time_limit,
            out: self.out.clone(),
            beside: beside(&self.file),
        };
        let reduced = minify(host, &self.file, &options, &Printer::new(self.json))?;
        if self.json {
            println!("{:#}", reduced.data());
        } else {
            tell(&reduced);
        }
        Ok(if reduced.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn tell(reduced: &ReducedScript) {
    let small = match reduced {
        ReducedScript::Nothing { reason } => return println!("nothing to reduce: {reason}"),
        ReducedScript::Smaller(small) => small,
    };
    let (before, after) = small.lines;
    println!("{before} lines to {after}, {} queries, {:.1} s", small.queries, small.seconds);
    println!("\n{}", small.source.trim_end());
    let word = if small.shown.proven { "proven" } else { "seen, but not proven" };
    println!("\n{}: {word} by `{}`: {}", small.repro.display(), small.shown.command, small.shown.line);
}
