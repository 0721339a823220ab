//! Programs of loops alone, on a GPU.
//!
//! ```text
//! functional graph ──schedule──▶ GpuPlan: one module of PTX ──sizes──▶ Sizes: memory, tables ──launches──▶ Launch ...
//!                                                                      GpuProgram: the module on a device, enqueue
//! ```
//!
//! A [`GpuPlan`] knows no device: it is tested by the interpreter of PTX. What it cannot have, matmuls, convolutions and
//! other calls, is told with the nodes it comes from ([`NotLoops`]), so that whoever cuts programs gives these to somebody
//! else. Results get memory of their own each time; what lives between two kernels lies in one arena ([`memory`]), whose
//! size and layout depend on sizes alone.

pub mod memory;
mod run;

use std::sync::Arc;

use pyrite_ir::lower::Place;
use pyrite_ir::{Contract, Given, Graph, NodeError, OpError, Registry, Symbols, Value};
use pyrite_loops::{Inst, Kernel};
use pyrite_passes::Gate;
use pyrite_ptx::{Arguments, Launch, Ptx};
use pyrite_tensor::{DType, Layout};

pub use self::memory::Lives;
pub use self::run::{Assembled, GpuKernel, GpuProgram, ImageStore, out_of_bounds};
use crate::decisions::Decisions;
use crate::loops::Tables;
use crate::passes::Machine;
use crate::schedule::{AsKernel, Op, Origin, Schedule};
use crate::{CodeKey, passes};

/// Why a graph has no program of loops alone.
#[derive(Debug, thiserror::Error)]
pub enum NotLoops {
    /// Some of its nodes are calls.
    #[error("{} on a GPU is not a loop", list(.0))]
    Calls(Vec<(String, String)>),
    /// The graph cannot be scheduled.
    #[error(transparent)]
    Node(#[from] NodeError),
}

fn list(calls: &[(String, String)]) -> String {
    calls.iter().map(|(node, operator)| format!("{operator} at {node}")).collect::<Vec<_>>().join(", ")
}

impl From<OpError> for NotLoops {
    fn from(error: OpError) -> Self {
        Self::Node(error.into())
    }
}

/// A program as kernels of one module; see the module's text.
pub struct GpuPlan {
    contract: Contract,
    schedule: Schedule,
    /// Different kernels, each once.
    kernels: Vec<Ptx>,
    /// Which of them each statement runs.
    runs: Vec<usize>,
    text: String,
    /// The sizes of a program that has no symbols.
    fixed: Option<Arc<Sizes>>,
}

/// A result of a program.
#[derive(Clone, Debug)]
pub enum Output {
    /// A tensor: where it lies, how, and of which type.
    Tensor(Lives, Layout, DType),
    /// A number.
    Number(i64),
    /// Nothing.
    None,
}

/// What a call needs for certain sizes.
pub struct Sizes {
    /// The numbers of each statement's kernel.
    tables: Vec<Tables>,
    /// Where each buffer lies.
    lives: Vec<Lives>,
    /// Where rows of each statement put something aside: the access, how many bytes apart, and where in the arena.
    aside: Vec<Vec<(usize, u64, u64)>>,
    /// How many bytes the arena has.
    pub arena: u64,
    /// How many bytes each new result has, with its element type.
    pub fresh: Vec<(u64, DType)>,
    /// What comes out, in order.
    pub outputs: Vec<Output>,
    /// How each input that is a tensor must lie.
    pub inputs: Vec<Option<(Layout, DType)>>,
}

/// The addresses of a call.
pub struct Addresses<'a> {
    /// Of the first element of each input.
    pub inputs: &'a [u64],
    /// Of each constant.
    pub constant: &'a dyn Fn(&str) -> u64,
    /// Of each new result.
    pub fresh: &'a [u64],
    /// Of the arena.
    pub arena: u64,
    /// Where each statement notes a fault, a [`FaultNote`](pyrite_ptx::FaultNote).
    pub fault: &'a dyn Fn(usize) -> u64,
}

impl GpuPlan {
    /// Compiles a functional graph.
    pub fn of(graph: &Graph, registry: &Registry, gate: &mut Gate) -> Result<Self, NotLoops> {
        let schedule = passes::schedule_for(Machine::Gpu, graph, registry, &mut Decisions::new(gate), &mut |_, _| ())?;
        let calls = calls(&schedule);
        if !calls.is_empty() {
            return Err(NotLoops::Calls(calls));
        }
        if !schedule.reaches.is_empty() {
            return Err(OpError::unsupported("a view outside of the input whose storage it is in, on a GPU").into());
        }
        let mut kernels: Vec<Ptx> = Vec::new();
        let (mut keys, mut runs) = (Vec::new(), Vec::new());
        for kernel in schedule.kernels() {
            let key = CodeKey::of(kernel, "ptx");
            let known = keys.iter().position(|known| *known == key);
            runs.push(if let Some(known) = known {
                known
            } else {
                let entry = format!("k{}_{}", kernels.len(), identifier(&kernel.name));
                let refused = |error: pyrite_ptx::Unsupported| OpError::unsupported(error.to_string());
                kernels.push(pyrite_ptx::compile(kernel, &entry).map_err(refused)?);
                keys.push(key);
                kernels.len() - 1
            });
        }
        let text = pyrite_ptx::module(&kernels);
        let contract = Contract::of_sizes(graph);
        let mut plan = Self { contract, schedule, kernels, runs, text, fixed: None };
        plan.fixed = plan.made(&Symbols::default()).ok().map(Arc::new);
        Ok(plan)
    }

    /// The module of all kernels.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The kernels in the order they run, by the name of their node.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.schedule.kernels().map(|kernel| kernel.name.as_str())
    }

    /// Whether a kernel compares an index with its bounds.
    pub fn checks_indices(&self) -> bool {
        let bounded = |inst: &Inst| matches!(inst, Inst::Bounded { .. });
        self.schedule.kernels().flat_map(|kernel| &kernel.phases).any(|phase| phase.code.insts().iter().any(bounded))
    }

    /// How many inputs it takes.
    pub fn arity(&self) -> usize {
        self.schedule.inputs.len()
    }

    /// The names of the constants that it reads.
    pub fn constants(&self) -> impl Iterator<Item = &Arc<str>> {
        self.schedule.buffers.iter().filter_map(|buffer| match &buffer.origin {
            Origin::Constant(name) => Some(name),
            _ => None,
        })
    }

    /// What a call needs whose inputs are these.
    pub fn sizes<'a>(&self, given: impl Fn(usize) -> Given<'a>) -> Result<Arc<Sizes>, OpError> {
        match &self.fixed {
            Some(fixed) => Ok(fixed.clone()),
            None => self.made(&self.contract.values(given)?).map(Arc::new),
        }
    }

    fn made(&self, symbols: &Symbols) -> Result<Sizes, OpError> {
        let tables =
            self.schedule.kernels().map(|kernel| Tables::of(kernel, symbols)).collect::<Result<Vec<_>, _>>()?;
        let mut aside = Vec::new();
        for ((kernel, tables), number) in self.schedule.kernels().zip(&tables).zip(&self.runs) {
            aside.push(self.aside(kernel, tables, &self.kernels[*number]));
        }
        let memory = memory::plan(&self.schedule, symbols, &aside)?;
        let places: Vec<Vec<(usize, u64, u64)>> = aside
            .iter()
            .zip(&memory.aside)
            .map(|(aside, offsets)| {
                aside.iter().zip(offsets).map(|(aside, offset)| (aside.access, aside.pitch, *offset)).collect()
            })
            .collect();
        let layout = |place: &Place| symbols.layout(&place.meta);
        let mut outputs = Vec::new();
        let items = match &self.schedule.output {
            Value::List(items) => items.iter().collect(),
            one => vec![one],
        };
        for item in items {
            outputs.push(match item {
                Value::Tensor(place) => {
                    let lives = memory.lives[place.buffer.0 as usize].clone();
                    Output::Tensor(lives, layout(place)?, place.meta.dtype)
                }
                Value::Int(size) => Output::Number(symbols.eval(size)?),
                Value::None => Output::None,
                other => return Err(OpError::unsupported(format!("{} as a result on a GPU", other.kind()))),
            });
        }
        let mut inputs = Vec::new();
        for input in &self.schedule.inputs {
            inputs.push(match input {
                Value::Tensor(place) => Some((layout(place)?, place.meta.dtype)),
                _ => None,
            });
        }
        let memory::Memory { lives, arena, fresh, .. } = memory;
        Ok(Sizes { tables, lives, aside: places, arena, fresh, outputs, inputs })
    }

    /// What the rows of a kernel put aside: for each access the bytes of a row, and of all that are computed at a time.
    fn aside(&self, kernel: &Kernel, tables: &Tables, ptx: &Ptx) -> Vec<memory::Aside> {
        let is_scratch = |access: usize| {
            let buffer = kernel.accesses[access].buffer;
            self.schedule.buffer(buffer).origin == Origin::Scratch && ptx.may_be_scratch(access)
        };
        let pitch = |access: usize| {
            if is_scratch(access) { crate::ptx::pitch(kernel, &tables.extents, &tables.steps, access) } else { 0 }
        };
        let accesses = (0..kernel.accesses.len()).filter(|access| is_scratch(*access));
        let arguments = Arguments {
            bases: &vec![0; kernel.accesses.len()],
            extents: &tables.extents,
            begins: &vec![0; kernel.axes.len()],
            steps: &tables.steps,
            numbers: &tables.numbers,
            fault: 0,
        };
        let rows = ptx.launch(&arguments, &pitch).map_or(0, |launch| launch.rows_at_once);
        let of = |access: usize| memory::Aside {
            access,
            buffer: kernel.accesses[access].buffer,
            pitch: pitch(access),
            bytes: pitch(access) * rows,
        };
        accesses.map(of).collect()
    }

    /// The launches of a call, in order, each with the number of its statement; nothing where there is nothing to compute.
    pub fn launches<'a>(
        &'a self,
        sizes: &'a Sizes,
        addresses: &'a Addresses<'_>,
    ) -> impl Iterator<Item = (usize, Launch)> + 'a {
        let address = |lives: &Lives| match lives {
            Lives::Input(number) => {
                let first = addresses.inputs.get(*number).copied().unwrap_or(0);
                let offset = sizes.inputs.get(*number).and_then(Option::as_ref);
                let offset = offset.map_or(0, |(layout, dtype)| layout.offset * dtype.size() as i64);
                first.wrapping_add_signed(-offset)
            }
            Lives::Constant(name) => (addresses.constant)(name),
            Lives::Fresh(number) => addresses.fresh.get(*number).copied().unwrap_or(0),
            Lives::Arena(offset) => addresses.arena + offset,
            Lives::Nowhere => 0,
        };
        let launch = move |number: usize, kernel: &Kernel, ptx: &Ptx| {
            let (tables, aside) = (&sizes.tables[number], &sizes.aside[number]);
            let mut bases = Vec::with_capacity(kernel.accesses.len());
            for (index, (access, offset)) in kernel.accesses.iter().zip(&tables.offsets).enumerate() {
                let own = aside.iter().find(|(known, ..)| *known == index);
                bases.push(match own {
                    Some((_, _, place)) => addresses.arena + place,
                    None => address(&sizes.lives[access.buffer.0 as usize])
                        .wrapping_add_signed(offset * access.dtype.size() as i64),
                });
            }
            let begins = vec![0; kernel.axes.len()];
            let arguments = Arguments {
                bases: &bases,
                extents: &tables.extents,
                begins: &begins,
                steps: &tables.steps,
                numbers: &tables.numbers,
                fault: (addresses.fault)(number),
            };
            let pitch = |access: usize| aside.iter().find(|(known, ..)| *known == access).map_or(0, |aside| aside.1);
            ptx.launch(&arguments, &pitch)
        };
        let kernels = self.schedule.kernels().zip(&self.runs).enumerate();
        kernels.filter_map(move |(number, (kernel, ptx))| {
            Some((number, launch(number, kernel.kernel(), &self.kernels[*ptx])?))
        })
    }
}

/// The nodes of a schedule that are no loops, and their operators.
fn calls(schedule: &Schedule) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for statement in &schedule.statements {
        match &statement.op {
            Op::Loop(_) => {}
            Op::Gemm(gemm) => found.push((gemm.call.node.name.clone(), gemm.call.op.name().to_owned())),
            Op::Bmm(fused) => {
                found.extend(fused.bmms().map(|bmm| (bmm.node.name.clone(), bmm.op.name().to_owned())));
            }
            Op::Conv(conv) => found.push((conv.call.node.name.clone(), conv.call.op.name().to_owned())),
            Op::Call(call) => found.push((call.node.name.clone(), call.op.name().to_owned())),
        }
    }
    found
}

/// A name as PTX may have it.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(48).collect()
}
