//! `pyrite get-args FILE`: the inputs of a program.

use std::path::PathBuf;

use pyrite_session::Program;
use pyrite_session::outputs::{describe, line, save};
use serde_json::json;

use crate::reporter::missing_data;
use crate::{ExitCode, Host, Outcome};

/// Load the inputs of a program and describe them
#[derive(clap::Args)]
pub struct GetArgs {
    /// The file
    file: PathBuf,
    /// Seed for generated inputs [default: from the file, else 0]
    #[arg(long)]
    seed: Option<u64>,
    /// Save the inputs, in order, to this .npz file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

impl GetArgs {
    /// Prints the inputs.
    pub fn run(&self, host: &Host) -> Outcome {
        let program = Program::open(&self.file, &host.reading)?;
        let inputs = program.inputs(self.seed)?;
        if let Some(path) = &self.save {
            save(path, &inputs.values)?;
        }
        let names: Vec<&str> = program.read.graph.placeholders().map(|(_, node)| node.name.as_str()).collect();
        if self.json {
            let rows: Vec<_> = names
                .iter()
                .zip(&inputs.values)
                .map(|(name, value)| {
                    let mut object = describe(value);
                    object["name"] = json!(name);
                    object
                })
                .collect();
            println!("{:#}", json!(rows));
        } else {
            for (name, value) in names.iter().zip(&inputs.values) {
                println!("{name}: {}", line(value));
            }
            if inputs.generated > 0 {
                eprintln!(
                    "note: {} no stored data; random data from seed {} is used",
                    missing_data(inputs.generated),
                    program.seed(self.seed)
                );
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
