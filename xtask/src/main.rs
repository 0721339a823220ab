//! Development tasks of Pyrite, behind one door: `cargo xtask <task>`.
//!
//! Each task is a function of the [`Workspace`] in a module of its own. A task talks on stderr and on the streams of the
//! programs it starts; only what a caller would read (the interpreter's path, the final counts) goes to stdout.

mod chromium;
mod counts;
mod dist;
mod package;
mod process;
mod programs;
mod python;
mod test;
mod tidy;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::counts::Counts;
use crate::programs::Conformance;
use crate::test::Scope;
use crate::workspace::Workspace;

/// Development tasks of Pyrite.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every check, and end with one line `N passed, N failed`
    Test {
        /// Leave out the fuzz run and the Python tests
        #[arg(long)]
        fast: bool,
    },
    /// Show what Pyrite can do
    Demo,
    /// Measure against PyTorch
    Bench {
        /// Arguments for tests/python/bench
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compare the operators with PyTorch's, on PyTorch's own samples
    Conformance {
        /// Compare gradients instead of results
        #[arg(long)]
        gradients: bool,
        /// Arguments for tests/python/operators/conformance.py or gradients.py
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Run what needs a GPU: right results, faults, speed against PyTorch; says so where there is none
    Gpu {
        /// Arguments for tests/python/gpu/speed.py
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Check the rules of the house: crate levels, manifests, sources
    Tidy,
    /// Rewrite the expectations of the filetests
    Bless,
    /// Rewrite the pages of docs/reference/ from the tables in the source
    Docs,
    /// Run the tests, the whole conformance suites and a long fuzz run
    Nightly,
    /// Install the Python environment if it is missing, build the package, and print the interpreter that has both
    Python,
    /// Build the wheels and the source distribution into target/dist, and install each wheel into an empty environment
    Dist,
    /// Fuzz the reader and the verifier
    Fuzz {
        /// How long to go on
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    let workspace = &Workspace::load()?;
    match task {
        Task::Test { fast } => {
            let scope = if fast { Scope::Fast } else { Scope::Full };
            return Ok(conclude(test::run(workspace, scope)));
        }
        Task::Nightly => return Ok(conclude(test::run(workspace, Scope::Nightly))),
        Task::Tidy => {
            let found = tidy::run(workspace)?;
            return Ok(if found.has_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        Task::Demo => programs::demo(workspace)?,
        Task::Bench { args } => programs::bench(workspace, &args)?,
        Task::Gpu { args } => programs::gpu(workspace, &args)?,
        Task::Conformance { gradients, args } => {
            let what = if gradients { Conformance::Gradients } else { Conformance::Results };
            programs::conformance(workspace, what, &args)?;
        }
        Task::Bless => programs::bless(workspace)?,
        Task::Dist => dist::run(workspace)?,
        Task::Docs => programs::docs(workspace)?,
        Task::Fuzz { seconds } => programs::fuzz(workspace, seconds)?,
        Task::Python => println!("{}", package::interpreter(workspace)?.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the counts as the last line, and turns them into the exit code.
fn conclude(counts: Counts) -> ExitCode {
    println!("{counts}");
    if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
