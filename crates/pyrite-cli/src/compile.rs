//! `pyrite compile FILE`: takes a program through the stages of ahead-of-time autograd and says what they made.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pyrite_codegen::passes::{self, LOWER, Side};
use pyrite_diag::{Code, Diagnostic, nearest};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_passes::{Random, Table};
use pyrite_session::Program;
use pyrite_session::compilation::{Compilation, Compiled, Intermediate, Listing, Partition};
use serde_json::json;

use crate::failure::{Failure, tell_notes};
use crate::{ExitCode, Host, Outcome};

/// What to print.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Print {
    /// A graph.
    Graph(Intermediate),
    /// What the native compiler makes of the graphs.
    Native(Listing),
}

impl Print {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(graph) = Intermediate::ALL.into_iter().find(|graph| graph.name() == text) {
            return Ok(Self::Graph(graph));
        }
        let listing = match text {
            "kernels" => Listing::Kernels,
            "ptx" => Listing::Ptx,
            "decisions" => Listing::Decisions,
            other => Self::parse_schedule(other)?,
        };
        Ok(Self::Native(listing))
    }

    /// `before:PASS` or `after:PASS`.
    fn parse_schedule(text: &str) -> Result<Listing, String> {
        let Some((side, name)) = text.split_once(':').and_then(|(side, name)| match side {
            "before" => Some((Side::Before, name)),
            "after" => Some((Side::After, name)),
            _ => None,
        }) else {
            let known = ["functional", "joint", "forward", "backward", "kernels", "ptx", "decisions"];
            // The name of a pass alone is a likely slip.
            let meant = passes::all().find(|(pass, ..)| *pass == text).map(|(pass, ..)| format!("after:{pass}"));
            let meant = meant.or_else(|| nearest(text, known).map(str::to_owned));
            let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
            return Err(format!("{meant}expected {}, before:PASS or after:PASS", known.join(", ")));
        };
        match passes::all().find(|(known, ..)| *known == name) {
            Some((LOWER, ..)) if side == Side::Before => {
                Err("nothing is scheduled before lower; functional, forward and backward print its graphs".to_owned())
            }
            Some((pass, _, only)) => Ok(Listing::Schedule(side, pass, only)),
            None => {
                let names: Vec<&str> = passes::all().map(|(name, ..)| name).collect();
                // A part of a name is a likely slip, too.
                let meant = nearest(name, names.iter().copied())
                    .or_else(|| names.iter().copied().find(|known| !name.is_empty() && known.contains(name)));
                let meant = meant.map(|meant| format!(", did you mean {meant}?")).unwrap_or_default();
                Err(format!("there is no pass `{name}`{meant}; the passes are {}", names.join(", ")))
            }
        }
    }
}

/// Run the compiler's stages on a program, and print what each produces
#[derive(clap::Args)]
pub struct Compile {
    /// The file
    #[arg(required_unless_present = "load_args")]
    file: Option<PathBuf>,
    /// Save the compiler's input to this file: the program, its options, and the metadata of tensors instead of their data
    #[arg(long, value_name = "FILE")]
    save_args: Option<PathBuf>,
    /// Compile the program in a --save-args file, with the options saved there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "partition", "memory_budget", "fallback_random", "decompositions", "forward_only"])]
    load_args: Option<PathBuf>,
    /// Partitioner, which decides what the forward graph saves for the backward graph
    #[arg(long, default_value = "min-cut", value_parser = partition())]
    partition: Partition,
    /// Memory budget for saved activations, as a fraction of what is saved if no matmul is recomputed
    #[arg(long, default_value_t = 1.0)]
    memory_budget: f64,
    /// Whether the native compiler draws the same random numbers as eager, instead of a faster stream of its own
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    fallback_random: bool,
    /// Which operators are decomposed
    #[arg(long, default_value = "composite", value_parser = decompositions())]
    decompositions: Table,
    /// Do not compute gradients
    #[arg(long)]
    forward_only: bool,
    /// Print this instead of the summary: a graph (functional, joint, forward, backward), kernels, ptx (GPU kernels),
    /// before:PASS or after:PASS (the schedule before or after a pass of the native compiler, such as after:fuse), or
    /// decisions (the numbered decisions of the native compiler)
    #[arg(long, value_name = "WHAT", value_parser = Print::parse)]
    print: Option<Print>,
    /// Apply only the first N optional rewrites of each stage, and make only the first N decisions of the native compiler
    #[arg(long, value_name = "N")]
    rewrites: Option<u64>,
    /// Compile N times and report the fastest times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Compile {
    /// Compiles and tells.
    pub fn run(&self, host: &Host) -> Outcome {
        let Some(path) = self.load_args.as_ref().or(self.file.as_ref()) else {
            let problem = Diagnostic::error(Code::new("cli::no-file"), "there is no file to compile");
            return Err(Failure::of(problem.hint("name one, or what `--save-args` wrote with `--load-args FILE`")));
        };
        let program = Program::open(path, &host.reading)?;
        let mut compilation =
            if self.load_args.is_some() { Compilation::kept(&program, path)? } else { self.compilation() };
        if let Some(kept) = &self.save_args {
            compilation.keep(&program, kept)?;
        }
        if let Some(Print::Native(_)) = self.print {
            compilation.decompositions = Table::Loops;
        }
        if !self.json {
            tell_notes(&program);
        }
        let compiled = compilation.run(&program, path, self.rewrites, self.repeat)?;
        match self.print {
            Some(Print::Native(listing)) => print!("{}", compiled.listing(listing, path)?),
            Some(Print::Graph(which)) => print_graph(&compiled, which)?,
            None if self.json => println!("{:#}", summary(&program, &compiled)),
            None => tell(&program, &compiled),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn compilation(&self) -> Compilation {
        Compilation {
            partition: self.partition,
            memory_budget: self.memory_budget,
            random: if self.fallback_random { Random::Eager } else { Random::Stream },
            decompositions: self.decompositions,
            forward_only: self.forward_only,
        }
    }
}

/// The partitioners.
fn partition() -> impl TypedValueParser<Value = Partition> {
    let help = |partition| match partition {
        Partition::MinCut => "Save as few bytes as possible",
        Partition::Default => "Save every value that the backward graph reads",
    };
    let values = Partition::ALL.map(|partition| PossibleValue::new(partition.name()).help(help(partition)));
    PossibleValuesParser::new(values).map(|name| Partition::from_name(&name).unwrap_or(Partition::MinCut))
}

/// The tables of decompositions.
fn decompositions() -> impl TypedValueParser<Value = Table> {
    let help = |table| match table {
        Table::Composite => "Only composite operators",
        Table::Core => "Everything outside of PyTorch's core ATen set",
        Table::Loops => "Everything that can be lowered to loops",
    };
    let values = Table::ALL.map(|table| PossibleValue::new(table.name()).help(help(table)));
    PossibleValuesParser::new(values).map(|name| Table::from_name(&name).unwrap_or_default())
}

fn print_graph(compiled: &Compiled, which: Intermediate) -> Result<(), Failure> {
    let Some(graph) = compiled.graph(which) else {
        let message = "there is no such graph: no input of the program requires a gradient";
        return Err(Failure::of(
            Diagnostic::error(Code::new("cli::no-stage"), message).hint("the functional graph is all there is"),
        ));
    };
    print!("{}", print(graph, &PrintOptions::default()));
    Ok(())
}

fn summary(program: &Program, compiled: &Compiled) -> serde_json::Value {
    let stages = &compiled.stages;
    let nodes: serde_json::Map<String, serde_json::Value> =
        compiled.graphs().map(|(name, graph)| (name.to_owned(), json!(graph.len()))).collect();
    let times: serde_json::Map<String, serde_json::Value> =
        stages.times.iter().map(|(name, time)| ((*name).to_owned(), json!(time.as_secs_f64()))).collect();
    json!({
        "captured_nodes": program.read.graph.len(),
        "nodes": nodes,
        "seconds": times,
        "total_seconds": stages.times.iter().map(|(_, t)| t.as_secs_f64()).sum::<f64>(),
        "written_inputs": stages.functional.written.len(),
        "saved_bytes": stages.partition.as_ref().map(|p| p.saved_bytes),
    })
}

/// A number of bytes in the unit that suits it.
fn bytes(count: f64) -> String {
    match count {
        count if count < 1e3 => format!("{count} B"),
        count if count < 1e6 => format!("{:.2} kB", count / 1e3),
        count => format!("{:.2} MB", count / 1e6),
    }
}

fn tell(program: &Program, compiled: &Compiled) {
    let stages = &compiled.stages;
    println!("{:<12} {:>6} nodes", "captured", program.read.graph.len());
    for (name, graph) in compiled.graphs() {
        println!("{name:<12} {:>6} nodes", graph.len());
    }
    if let Some(partition) = &stages.partition {
        println!("saved        {:>6} for the backward half", bytes(partition.saved_bytes as f64));
    }
    for (name, time) in &stages.times {
        println!("{name:<14} {:>8.3} ms", time.as_secs_f64() * 1e3);
    }
}
