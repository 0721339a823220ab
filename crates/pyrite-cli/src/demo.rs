//! `pyrite demo`: an embedded transformer block, read from text and run.

use std::path::Path;
use std::time::Instant;

use pyrite_compiler::training::flatten;
use pyrite_compiler::{Options, find, inputs};
use pyrite_ir::verify::verify;
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, read_text};

use crate::ExitCode;
use crate::Outcome;
use crate::failure::Failure;
use crate::outputs::line;

/// The block: attention and a feed-forward part with residuals, as Dynamo captures it.
const BLOCK: &str = include_str!("demo/transformer_block.py");

/// Run an embedded transformer block
#[derive(clap::Args)]
pub struct Demo {}

impl Demo {
    /// Reads, verifies and runs the block, and says how long each took.
    #[expect(clippy::unused_self, reason = "every command has the same shape")]
    pub fn run(&self) -> Outcome {
        let name = Path::new("transformer_block.py");
        let start = Instant::now();
        let read = read_text(BLOCK, Some(name), registry(), &ReadOptions::default())
            .map_err(|diagnostics| Failure::Input { diagnostics, json: false })?;
        let read_time = start.elapsed();
        let problems = verify(&read.graph, Some(name));
        println!(
            "read      {} nodes in {:.2} ms, {} problems",
            read.graph.len(),
            read_time.as_secs_f64() * 1e3,
            problems.len()
        );
        let inputs = inputs::generate(&read.graph, name, 0).map_err(Failure::of)?;
        let backend = find("eager").ok_or_else(|| anyhow::anyhow!("the backend eager is missing"))?;
        let program = (backend.compile)(read.graph, &Options::default()).map_err(|e| anyhow::anyhow!("{e}"))?;
        let start = Instant::now();
        let mut nodes = 0;
        let result = program.run(inputs.values, &mut |_, _| nodes += 1).map_err(|e| anyhow::anyhow!("{e}"))?;
        println!(
            "run       {nodes} nodes in {:.2} ms with backend {}",
            start.elapsed().as_secs_f64() * 1e3,
            backend.name
        );
        let mut outputs = Vec::new();
        flatten(&result.outputs, &mut outputs);
        for output in &outputs {
            println!("output    {}", line(output));
        }
        Ok(ExitCode::SUCCESS)
    }
}
