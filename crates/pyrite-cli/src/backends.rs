//! `pyrite backends`: who can run a program.

use pyrite_compiler::backend::backends;
use serde_json::json;

use crate::ExitCode;
use crate::Outcome;

/// List the backends that can run a program
#[derive(clap::Args)]
pub struct Backends {
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

impl Backends {
    /// Prints the list.
    pub fn run(&self) -> Outcome {
        if self.json {
            let rows: Vec<_> = backends().iter().map(|b| json!({"name": &*b.name, "help": &*b.help})).collect();
            println!("{:#}", json!(rows));
        } else {
            for backend in backends() {
                println!("{:<40} {}", backend.name, backend.help);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
