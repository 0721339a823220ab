//! `pyrite show FILE`: reads, verifies and prints a program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyrite_ir::print::{PrintOptions, ReproInfo, print_repro};
use pyrite_ir::{Kind, Target};
use pyrite_reader::Entry;
use pyrite_session::Program;
use serde_json::json;

use crate::failure::tell_notes;
use crate::{ExitCode, Host, Outcome};

/// Read, verify and print a program
#[derive(clap::Args)]
pub struct Show {
    /// The file
    file: PathBuf,
    /// Print the user's stack above each node
    #[arg(long)]
    stacks: bool,
    /// Read N times and report the fastest time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print a JSON object: nodes, operators, inputs, times
    #[arg(long)]
    json: bool,
}

impl Show {
    /// Prints the program.
    pub fn run(&self, host: &Host) -> Outcome {
        let program = Program::open_timed(&self.file, &host.reading, self.repeat)?;
        let graph = &program.read.graph;
        if self.json {
            let mut operators: BTreeMap<&str, usize> = BTreeMap::new();
            let mut opaque = Vec::new();
            for (_, node) in graph.nodes() {
                if let Kind::Call(target) = &node.kind {
                    *operators.entry(target.name()).or_default() += 1;
                    if let Target::Opaque(name) = target {
                        opaque.push(json!({"node": node.name, "name": &**name, "line": node.span.map(|s| s.line)}));
                    }
                }
            }
            let inputs: Vec<_> = graph
                .placeholders()
                .map(|(_, node)| {
                    let mut text = None;
                    if let Some(meta) = &node.meta {
                        meta.each(&mut |m| text = Some(m.to_string()));
                    }
                    json!({"name": node.name, "type": text})
                })
                .collect();
            let report = json!({
                "nodes": graph.len(),
                "inputs": inputs,
                "operators": operators,
                "foreign": opaque,
                "constants": graph.constants().keys().map(|k| &**k).collect::<Vec<_>>(),
                "nested_graphs": graph.subgraphs().keys().map(|k| &**k).collect::<Vec<_>>(),
                "metadata": program.read.metadata.iter().map(|said| (&said.key, &said.value)).collect::<BTreeMap<_, _>>(),
                "notes": program.read.notes.iter().map(|n| n.message.clone()).collect::<Vec<_>>(),
                "timings": {"read_seconds": program.read_time.as_secs_f64()},
            });
            println!("{report:#}");
        } else {
            tell_notes(&program);
            // What is printed is a program that its reader may run: a stranger's file chooses nothing in it.
            let trusted = program.said_backend().ok().flatten();
            let chosen = |said: &Entry| match said.key.as_str() {
                "backend" => trusted.clone().map(|backend| (said.key.clone(), backend)),
                "import" => None,
                _ => Some((said.key.clone(), said.value.clone())),
            };
            let metadata = program.read.metadata.iter().filter_map(chosen).collect();
            let info = ReproInfo { metadata, inputs: program.read.inputs.clone(), main: None };
            print!("{}", print_repro(graph, &info, &PrintOptions { stacks: self.stacks, ..PrintOptions::default() }));
        }
        Ok(ExitCode::SUCCESS)
    }
}
