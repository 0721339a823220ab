//! `pyrite compile FILE`: takes a program through the stages of ahead-of-time autograd and says what they made.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use pyrite_codegen::passes::{self, LOWER, Machine, Side};
use pyrite_compiler::Options;
use pyrite_compiler::aot::{Partitioner, Stages, partition_by_default, partition_by_min_cut};
use pyrite_compiler::backends::{compile_native, decisions, schedule_at};
use pyrite_diag::{Code, Diagnostic, Location, counted, nearest};
use pyrite_ir::Graph;
use pyrite_ir::print::{PrintOptions, ReproInfo, print, print_repro};
use pyrite_passes::{Random, Table};
use pyrite_session::Program;
use pyrite_session::backend::node_diagnostic;
use pyrite_session::execution::direction;
use serde_json::json;

use crate::failure::{Failure, tell_notes};
use crate::{ExitCode, Host, Outcome};

/// How the joint graph is partitioned.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Partition {
    /// Save as few bytes as possible
    MinCut,
    /// Save every value that the backward graph reads
    Default,
}

/// Which operators are decomposed.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Decompositions {
    /// Only composite operators
    Composite,
    /// Everything outside of PyTorch's core ATen set
    Core,
    /// Everything that can be lowered to loops
    Loops,
}

/// An intermediate graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Functional,
    Joint,
    Forward,
    Backward,
}

/// What to print.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Print {
    /// A graph.
    Graph(Stage),
    /// What the native compiler makes of the halves: kernels with their memory dependencies, and calls.
    Kernels,
    /// The kernels as PTX for GPUs.
    Ptx,
    /// The scheduled program before or after a pass of the native compiler.
    Schedule(Side, &'static str, Option<Machine>),
    /// The numbered decisions of the native compiler.
    Decisions,
}

impl Print {
    fn parse(text: &str) -> Result<Self, String> {
        let wanted = match text {
            "functional" => Self::Graph(Stage::Functional),
            "joint" => Self::Graph(Stage::Joint),
            "forward" => Self::Graph(Stage::Forward),
            "backward" => Self::Graph(Stage::Backward),
            "kernels" => Self::Kernels,
            "ptx" => Self::Ptx,
            "decisions" => Self::Decisions,
            other => return Self::parse_schedule(other),
        };
        Ok(wanted)
    }

    /// `before:PASS` or `after:PASS`.
    fn parse_schedule(text: &str) -> Result<Self, String> {
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
            Some((pass, _, only)) => Ok(Self::Schedule(side, pass, only)),
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

    /// Whether the native compiler has a part in it.
    fn is_native(self) -> bool {
        !matches!(self, Self::Graph(_))
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
    #[arg(long, value_enum, default_value = "min-cut")]
    partition: Partition,
    /// Memory budget for saved activations, as a fraction of what is saved if no matmul is recomputed
    #[arg(long, default_value_t = 1.0)]
    memory_budget: f64,
    /// Whether the native compiler draws the same random numbers as eager, instead of a faster stream of its own
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    fallback_random: bool,
    /// Which operators are decomposed
    #[arg(long, value_enum, default_value = "composite")]
    decompositions: Decompositions,
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
        if self.load_args.is_some() {
            return self.with_kept_options(&program, path)?.compile(&program, path);
        }
        if let Some(kept) = &self.save_args {
            self.keep(&program, kept)?;
        }
        self.compile(&program, path)
    }

    /// Writes the program with its options and without the data of its inputs.
    fn keep(&self, program: &Program, path: &Path) -> Result<(), Failure> {
        let mut inputs = program.read.inputs.clone();
        if let Some(inputs) = &mut inputs {
            inputs.storages.iter_mut().for_each(|storage| storage.name = None);
        }
        let name =
            |value: Option<clap::builder::PossibleValue>| value.map_or_else(String::new, |v| v.get_name().to_owned());
        let metadata = vec![
            ("pyrite".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("partition".to_owned(), name(self.partition.to_possible_value())),
            ("memory_budget".to_owned(), self.memory_budget.to_string()),
            ("fallback_random".to_owned(), self.fallback_random.to_string()),
            ("decompositions".to_owned(), name(self.decompositions.to_possible_value())),
            ("forward_only".to_owned(), self.forward_only.to_string()),
        ];
        let text =
            print_repro(&program.read.graph, &ReproInfo { metadata, inputs, main: None }, &PrintOptions::default());
        let written = tempfile::NamedTempFile::new_in(
            path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()).map(|()| file))
        .and_then(|file| file.persist(path).map_err(|error| error.error));
        written.map(|_| ()).map_err(|error| {
            let what = Diagnostic::error(Code::new("compile::cannot-write"), "cannot save the arguments");
            let what = what.at(Location::in_file(path)).cause(error.to_string());
            Failure::of(what.hint("free disk space, or choose another file with --save-args"))
        })
    }

    /// The command with the options that a file was kept with.
    fn with_kept_options(&self, program: &Program, path: &Path) -> Result<Self, Failure> {
        let missing = |key: &str| {
            let message = format!("the file has no `{key}`");
            let what = Diagnostic::error(Code::new("compile::not-kept"), message).at(Location::in_file(path));
            Failure::of(what.hint("write it with `pyrite compile --save-args`"))
        };
        let said = |key: &'static str| program.read.get(key).ok_or_else(|| missing(key));
        Ok(Self {
            partition: Partition::from_str(said("partition")?, false).map_err(|_| missing("partition"))?,
            memory_budget: said("memory_budget")?.parse().map_err(|_| missing("memory_budget"))?,
            fallback_random: said("fallback_random")?.parse().map_err(|_| missing("fallback_random"))?,
            decompositions: Decompositions::from_str(said("decompositions")?, false)
                .map_err(|_| missing("decompositions"))?,
            forward_only: said("forward_only")?.parse().map_err(|_| missing("forward_only"))?,
            file: None,
            save_args: None,
            load_args: self.load_args.clone(),
            print: self.print,
            rewrites: self.rewrites,
            repeat: self.repeat,
            json: self.json,
        })
    }

    fn compile(&self, program: &Program, path: &Path) -> Outcome {
        if !self.json {
            tell_notes(program);
        }
        let partitioner: Partitioner = match self.partition {
            Partition::MinCut => partition_by_min_cut(),
            Partition::Default => partition_by_default(),
        };
        let table = match self.decompositions {
            _ if self.print.is_some_and(Print::is_native) => Table::Loops,
            Decompositions::Composite => Table::Composite,
            Decompositions::Core => Table::Core,
            Decompositions::Loops => Table::Loops,
        };
        let options = Options {
            direction: direction(program, self.forward_only),
            memory_budget: self.memory_budget,
            random: if self.fallback_random { Random::Eager } else { Random::Stream },
            rewrites: self.rewrites,
            ..Options::default()
        };
        let mut best: Option<Stages> = None;
        for _ in 0..self.repeat {
            let stages = Stages::of(&program.read.graph, &partitioner, table, &options)
                .map_err(|error| Failure::of(node_diagnostic(path, &error, "compiling failed")))?;
            let total = |s: &Stages| s.times.iter().map(|(_, t)| *t).sum::<Duration>();
            if best.as_ref().is_none_or(|b| total(&stages) < total(b)) {
                best = Some(stages);
            }
        }
        let Some(stages) = best else { return Ok(ExitCode::SUCCESS) };
        match self.print {
            Some(Print::Kernels) => print_kernels(path, &stages, &options)?,
            Some(Print::Ptx) => print_ptx(path, &stages, &options)?,
            Some(Print::Schedule(side, pass, only)) => print_schedules(path, &stages, &options, (side, pass, only))?,
            Some(Print::Decisions) => print_decisions(path, &stages, &options)?,
            Some(Print::Graph(stage)) => print_stage(&stages, stage)?,
            None if self.json => println!("{:#}", summary(program, &stages)),
            None => tell(program, &stages),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The graphs that the native compiler compiles: the halves, or the whole where there are none.
fn compiled_graphs(stages: &Stages) -> impl Iterator<Item = (&'static str, &Graph)> {
    let halves = stages.partition.is_some();
    graphs(stages).into_iter().filter_map(move |(stage, name, graph)| {
        let compiled = match stage {
            Stage::Functional => !halves,
            stage => stage != Stage::Joint,
        };
        compiled.then_some((name, graph))
    })
}

/// Prints the kernels and calls of each graph that is compiled.
fn print_kernels(path: &Path, stages: &Stages, options: &Options) -> Result<(), Failure> {
    for (name, graph) in compiled_graphs(stages) {
        let compiled = compile_native(graph, options)
            .map_err(|error| Failure::of(node_diagnostic(path, &error, "compiling failed")))?;
        let kernels = counted(compiled.kernels().count() as u64, "kernel", "kernels");
        let calls = counted(compiled.calls() as u64, "call", "calls");
        let fallbacks = match compiled.fallbacks() {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        println!("# {name}: {kernels}, {calls}; fallbacks to reference kernels: {fallbacks}\n");
        print!("{compiled}");
    }
    Ok(())
}

/// Prints the kernels of each graph that is compiled, as PTX for GPUs.
fn print_ptx(path: &Path, stages: &Stages, options: &Options) -> Result<(), Failure> {
    for (name, graph) in compiled_graphs(stages) {
        let compiled = compile_native(graph, options)
            .map_err(|error| Failure::of(node_diagnostic(path, &error, "compiling failed")))?;
        println!("// {name}: {}", counted(compiled.kernels().count() as u64, "kernel", "kernels"));
        for kernel in compiled.kernels() {
            println!("\n{}", pyrite_codegen::ptx::listing(kernel));
        }
    }
    Ok(())
}

/// Prints the scheduled program of each graph that is compiled, as it is before or after a pass.
fn print_schedules(
    path: &Path,
    stages: &Stages,
    options: &Options,
    (side, pass, only): (Side, &str, Option<Machine>),
) -> Result<(), Failure> {
    let side_name = match side {
        Side::Before => "before",
        Side::After => "after",
    };
    let machine = match only {
        Some(Machine::Gpu) => ", for a GPU",
        Some(Machine::Cpu) | None => "",
    };
    for (name, graph) in compiled_graphs(stages) {
        let text = schedule_at(graph, options, side, pass)
            .map_err(|error| Failure::of(node_diagnostic(path, &error, "compiling failed")))?;
        println!("# {name} {side_name} {pass}{machine}");
        print!("{text}");
    }
    Ok(())
}

/// Prints the decisions of the native compiler for each graph, numbered as `--rewrites` counts them.
fn print_decisions(path: &Path, stages: &Stages, options: &Options) -> Result<(), Failure> {
    for (name, graph) in compiled_graphs(stages) {
        let made = decisions(graph, options)
            .map_err(|error| Failure::of(node_diagnostic(path, &error, "compiling failed")))?;
        println!("# {name}: {}", counted(made.len() as u64, "decision", "decisions"));
        for (index, decision) in made.iter().enumerate() {
            println!("{:>4} {decision}", index + 1);
        }
    }
    Ok(())
}

fn graphs(stages: &Stages) -> Vec<(Stage, &'static str, &Graph)> {
    let mut graphs = vec![(Stage::Functional, "functional", &stages.functional.graph)];
    graphs.extend(stages.joint.as_ref().map(|j| (Stage::Joint, "joint", &j.graph)));
    if let Some(partition) = &stages.partition {
        graphs.push((Stage::Forward, "forward", &partition.forward));
        graphs.push((Stage::Backward, "backward", &partition.backward));
    }
    graphs
}

fn print_stage(stages: &Stages, wanted: Stage) -> Result<(), Failure> {
    let found = graphs(stages).into_iter().find(|(stage, ..)| *stage == wanted);
    let Some((_, _, graph)) = found else {
        let message = "there is no such graph: no input of the program requires a gradient";
        return Err(Failure::of(
            Diagnostic::error(Code::new("cli::no-stage"), message).hint("the functional graph is all there is"),
        ));
    };
    print!("{}", print(graph, &PrintOptions::default()));
    Ok(())
}

fn summary(program: &Program, stages: &Stages) -> serde_json::Value {
    let nodes: serde_json::Map<String, serde_json::Value> =
        graphs(stages).into_iter().map(|(_, name, graph)| (name.to_owned(), json!(graph.len()))).collect();
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

fn tell(program: &Program, stages: &Stages) {
    println!("{:<12} {:>6} nodes", "captured", program.read.graph.len());
    for (_, name, graph) in graphs(stages) {
        println!("{name:<12} {:>6} nodes", graph.len());
    }
    if let Some(partition) = &stages.partition {
        println!("saved        {:>6} for the backward half", bytes(partition.saved_bytes as f64));
    }
    for (name, time) in &stages.times {
        println!("{name:<14} {:>8.3} ms", time.as_secs_f64() * 1e3);
    }
}
