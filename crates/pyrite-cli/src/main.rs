//! The command `pyrite`.

mod ops;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Captures, runs and debugs tensor programs.
#[derive(Parser)]
#[command(name = "pyrite", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the operators that Pyrite knows
    Ops(ops::Ops),
    /// Answer requests on standard input (internal)
    #[command(hide = true)]
    Worker,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Ops(command) => command.run(),
        Command::Worker => worker::serve(),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
