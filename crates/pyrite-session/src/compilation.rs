//! A program taken through the stages of ahead-of-time autograd and the native compiler: with which options, what each
//! stage makes of it, and the file that keeps the compiler's input for another time.
//!
//! A kept file is a repro with the options in its metadata and without the data of its inputs: [`Compilation::kept`] reads
//! back what [`Compilation::keep`] wrote.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use pyrite_codegen::passes::{Machine, Side};
use pyrite_compiler::Options;
use pyrite_compiler::aot::{Partitioner, Stages, partition_by_default, partition_by_min_cut};
use pyrite_compiler::backends::{compile_native, decisions, schedule_at};
use pyrite_diag::{Code, Diagnostic, Location, counted};
use pyrite_ir::print::{PrintOptions, ReproInfo, print_repro};
use pyrite_ir::{Graph, NodeError};
use pyrite_passes::{Random, Table};

use crate::backend::node_diagnostic;
use crate::execution::direction;
use crate::{Program, SessionError};

/// How the joint graph is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// As few bytes as possible are saved.
    MinCut,
    /// Every value that the backward graph reads is saved.
    Default,
}

impl Partition {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::MinCut, Self::Default];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::MinCut => "min-cut",
            Self::Default => "default",
        }
    }

    /// The one with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|partition| partition.name() == name)
    }

    fn partitioner(self) -> Partitioner {
        match self {
            Self::MinCut => partition_by_min_cut(),
            Self::Default => partition_by_default(),
        }
    }
}

/// How a program is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Compilation {
    /// What the forward graph saves for the backward graph.
    pub partition: Partition,
    /// How much of what is saved without recomputed matmuls may be saved, as a fraction.
    pub memory_budget: f64,
    /// Where the native compiler's random numbers come from.
    pub random: Random,
    /// Which operators are decomposed.
    pub decompositions: Table,
    /// Whether gradients are left out.
    pub forward_only: bool,
}

/// The names of what a kept file says.
const PARTITION: &str = "partition";
const MEMORY_BUDGET: &str = "memory_budget";
const FALLBACK_RANDOM: &str = "fallback_random";
const DECOMPOSITIONS: &str = "decompositions";
const FORWARD_ONLY: &str = "forward_only";

impl Compilation {
    /// Writes the program with these options and without the data of its inputs.
    pub fn keep(&self, program: &Program, path: &Path) -> Result<(), SessionError> {
        let mut inputs = program.read.inputs.clone();
        if let Some(inputs) = &mut inputs {
            inputs.storages.iter_mut().for_each(|storage| storage.name = None);
        }
        let metadata = [
            ("pyrite", env!("CARGO_PKG_VERSION").to_owned()),
            (PARTITION, self.partition.name().to_owned()),
            (MEMORY_BUDGET, self.memory_budget.to_string()),
            (FALLBACK_RANDOM, (self.random == Random::Eager).to_string()),
            (DECOMPOSITIONS, self.decompositions.name().to_owned()),
            (FORWARD_ONLY, self.forward_only.to_string()),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).to_vec();
        let text =
            print_repro(&program.read.graph, &ReproInfo { metadata, inputs, main: None }, &PrintOptions::default());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let written = tempfile::NamedTempFile::new_in(folder)
            .and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file))
            .and_then(|file| file.persist(path).map_err(|error| error.error));
        written.map(|_| ()).map_err(|error| {
            let what = Diagnostic::error(Code::new("compile::cannot-write"), "cannot save the arguments");
            let what = what.at(Location::in_file(path)).cause(error.to_string());
            SessionError::of(what.hint("free disk space, or choose another file with --save-args"))
        })
    }

    /// The options that a file was kept with.
    pub fn kept(program: &Program, path: &Path) -> Result<Self, SessionError> {
        fn said<T>(
            program: &Program,
            path: &Path,
            key: &'static str,
            read: fn(&str) -> Option<T>,
        ) -> Result<T, SessionError> {
            program.read.get(key).and_then(read).ok_or_else(|| {
                let message = format!("the file has no `{key}`");
                let what = Diagnostic::error(Code::new("compile::not-kept"), message).at(Location::in_file(path));
                SessionError::of(what.hint("write it with `pyrite compile --save-args`"))
            })
        }
        let flag = |key| said::<bool>(program, path, key, |text| text.parse().ok());
        Ok(Self {
            partition: said(program, path, PARTITION, Partition::from_name)?,
            memory_budget: said(program, path, MEMORY_BUDGET, |text| text.parse().ok())?,
            random: if flag(FALLBACK_RANDOM)? { Random::Eager } else { Random::Stream },
            decompositions: said(program, path, DECOMPOSITIONS, Table::from_name)?,
            forward_only: flag(FORWARD_ONLY)?,
        })
    }

    /// Takes the program through the stages `repeat` times, with the first `rewrites` of the optional rewrites only, and
    /// keeps the fastest time.
    pub fn run(
        &self,
        program: &Program,
        path: &Path,
        rewrites: Option<u64>,
        repeat: u32,
    ) -> Result<Compiled, SessionError> {
        let options = Options {
            direction: direction(program, self.forward_only),
            memory_budget: self.memory_budget,
            random: self.random,
            rewrites,
            ..Options::default()
        };
        let partitioner = self.partition.partitioner();
        let compile = || Stages::of(&program.read.graph, &partitioner, self.decompositions, &options);
        let total = |stages: &Stages| stages.times.iter().map(|(_, time)| *time).sum::<Duration>();
        let failed = |error: NodeError| failed(path, &error);
        let mut stages = compile().map_err(failed)?;
        for _ in 1..repeat {
            let again = compile().map_err(failed)?;
            if total(&again) < total(&stages) {
                stages = again;
            }
        }
        Ok(Compiled { stages, options })
    }
}

/// A graph between two stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intermediate {
    /// The program without writes.
    Functional,
    /// Outputs and gradients in one graph.
    Joint,
    /// What runs first.
    Forward,
    /// What computes the gradients.
    Backward,
}

impl Intermediate {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Functional, Self::Joint, Self::Forward, Self::Backward];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Functional => "functional",
            Self::Joint => "joint",
            Self::Forward => "forward",
            Self::Backward => "backward",
        }
    }
}

/// What the native compiler can show of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Kernels with their memory dependencies, and calls.
    Kernels,
    /// The kernels as PTX for GPUs.
    Ptx,
    /// The scheduled program before or after a pass, which may be for one machine only.
    Schedule(Side, &'static str, Option<Machine>),
    /// The numbered decisions.
    Decisions,
}

/// A program that went through the stages.
pub struct Compiled {
    /// What each stage made.
    pub stages: Stages,
    options: Options,
}

impl Compiled {
    /// The graph of a stage, if the program has one: without an input that requires a gradient only the first is there.
    pub fn graph(&self, which: Intermediate) -> Option<&Graph> {
        let partition = self.stages.partition.as_ref();
        match which {
            Intermediate::Functional => Some(&self.stages.functional.graph),
            Intermediate::Joint => self.stages.joint.as_ref().map(|joint| &joint.graph),
            Intermediate::Forward => partition.map(|halves| &halves.forward),
            Intermediate::Backward => partition.map(|halves| &halves.backward),
        }
    }

    /// All graphs there are, with their names.
    pub fn graphs(&self) -> impl Iterator<Item = (&'static str, &Graph)> {
        Intermediate::ALL.into_iter().filter_map(|which| Some((which.name(), self.graph(which)?)))
    }

    /// The text of a listing, for each graph that the native compiler gets: the halves, or the whole where there are none.
    pub fn listing(&self, listing: Listing, path: &Path) -> Result<String, SessionError> {
        let given: &[Intermediate] = match self.stages.partition {
            Some(_) => &[Intermediate::Forward, Intermediate::Backward],
            None => &[Intermediate::Functional],
        };
        let mut text = String::new();
        for &which in given {
            if let Some(graph) = self.graph(which) {
                text += &self.listed(listing, which.name(), graph).map_err(|error| failed(path, &error))?;
            }
        }
        Ok(text)
    }

    fn listed(&self, listing: Listing, name: &str, graph: &Graph) -> Result<String, NodeError> {
        let mut text = String::new();
        match listing {
            Listing::Kernels => {
                let compiled = compile_native(graph, &self.options)?;
                let kernels = counted(compiled.kernels().count() as u64, "kernel", "kernels");
                let calls = counted(compiled.calls() as u64, "call", "calls");
                let fallbacks = match compiled.fallbacks() {
                    [] => "none".to_owned(),
                    names => names.join(", "),
                };
                let _ = writeln!(text, "# {name}: {kernels}, {calls}; fallbacks to reference kernels: {fallbacks}\n");
                let _ = write!(text, "{compiled}");
            }
            Listing::Ptx => {
                let compiled = compile_native(graph, &self.options)?;
                let _ =
                    writeln!(text, "// {name}: {}", counted(compiled.kernels().count() as u64, "kernel", "kernels"));
                for kernel in compiled.kernels() {
                    let _ = writeln!(text, "\n{}", pyrite_codegen::ptx::listing(kernel));
                }
            }
            Listing::Schedule(side, pass, only) => {
                let side_name = match side {
                    Side::Before => "before",
                    Side::After => "after",
                };
                let machine = match only {
                    Some(Machine::Gpu) => ", for a GPU",
                    Some(Machine::Cpu) | None => "",
                };
                let _ = writeln!(text, "# {name} {side_name} {pass}{machine}");
                text += &schedule_at(graph, &self.options, side, pass)?;
            }
            Listing::Decisions => {
                let made = decisions(graph, &self.options)?;
                let _ = writeln!(text, "# {name}: {}", counted(made.len() as u64, "decision", "decisions"));
                for (index, decision) in made.iter().enumerate() {
                    let _ = writeln!(text, "{:>4} {decision}", index + 1);
                }
            }
        }
        Ok(text)
    }
}

fn failed(path: &Path, error: &NodeError) -> SessionError {
    SessionError::of(node_diagnostic(path, error, "compiling failed"))
}
