//! A compiled graph: pieces with their code, and the run that carries them out.
//!
//! Buffers are storages that are taken when a piece first fills them and given back after their last use; the cache of
//! storages hands the same memory to the next call. Sizes that are not known when the program is compiled are read off
//! the inputs of each call: the code is the same for all of them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use pyrite_interp::{Context, call};
use pyrite_ir::lower::Place;
use pyrite_ir::{Graph, Meta, Node, NodeError, OpError, Registry, Value};
use pyrite_loops::{AccessId, AxisId, BufferId, Inst, Kernel, Lanes, dependencies};
use pyrite_passes::Gate;
use pyrite_sym::SymInt;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{Layout, Storage, Tensor};
use rustc_hash::FxHashSet;

use crate::code::{Call, Code};
use crate::decisions::Decisions;
use crate::pieces::{Buffer, Origin, Outside, Piece, Pieces, pieces};
use crate::schedule::{inputs_of, outputs_of, places, schedule};
use crate::{Generator, generate};

/// Work below this, in steps of code, is not shared among threads.
const WORTH_SHARING: i64 = 1 << 20;

/// Is told of every call of an operator, and of every kernel by a node of its name, as it is done.
pub type Observer<'a> = dyn FnMut(&Node, &Value<Tensor>) + 'a;

/// A compiled graph; see the module's text.
pub struct Program {
    steps: Vec<Step>,
    buffers: Vec<Buffer>,
    inputs: Vec<Value<Place>>,
    output: Value<Place>,
    constants: HashMap<Arc<str>, Tensor>,
    fallbacks: Vec<String>,
}

struct Step {
    action: Action,
    /// Buffers that nothing uses afterwards.
    frees: Vec<BufferId>,
}

enum Action {
    Loops(Box<Loops>),
    Outside(Box<Outside>),
}

/// A kernel with its code.
struct Loops {
    kernel: Kernel,
    code: Box<dyn Code>,
    /// The axis whose positions threads share, and by how many they are dealt out.
    shared: Option<(AxisId, i64)>,
    /// How many instructions run at each position.
    weight: i64,
    /// The tables of a kernel whose sizes are all known.
    tables: Option<Tables>,
}

/// The numbers of a kernel for one call.
struct Tables {
    extents: Vec<i64>,
    steps: Vec<i64>,
    numbers: Vec<i64>,
    offsets: Vec<i64>,
}

/// The values of symbols.
type Symbols = HashMap<Arc<str>, i64>;

impl Program {
    /// Compiles a functional graph. Decisions ask the gate.
    pub fn compile(
        graph: &Graph,
        registry: &Registry,
        generator: Generator,
        gate: &mut Gate,
    ) -> Result<Self, NodeError> {
        Self::compile_by(graph, registry, generator, &mut Decisions::new(gate))
    }

    /// The same with decisions that may be spoiled.
    pub fn compile_by(
        graph: &Graph,
        registry: &Registry,
        generator: Generator,
        decisions: &mut Decisions<'_>,
    ) -> Result<Self, NodeError> {
        let mut cut = pieces(graph, registry, decisions)?;
        schedule(&mut cut, decisions);
        let Pieces { buffers, pieces, inputs, output, fallbacks } = cut;
        let frees = last_uses(&pieces, &output);
        let steps = pieces
            .into_iter()
            .zip(frees)
            .map(|(piece, frees)| {
                let action = match piece {
                    Piece::Outside(call) => Action::Outside(call),
                    Piece::Loops(mut kernel) => {
                        let decision = format!("emit {}", kernel.name);
                        let allowed = decisions.allow(&decision);
                        if allowed {
                            decisions.made(&decision, &mut kernel);
                        }
                        let generator = if allowed { generator } else { Generator::Tiles };
                        Action::Loops(Box::new(Loops::new(kernel, generator)?))
                    }
                };
                Ok(Step { action, frees })
            })
            .collect::<Result<_, OpError>>()?;
        let constants = graph.constants().iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        Ok(Self { steps, buffers, inputs, output, constants, fallbacks })
    }

    /// The operators that run through their reference kernels without being meant to.
    pub fn fallbacks(&self) -> &[String] {
        &self.fallbacks
    }

    /// How many operators are called.
    pub fn calls(&self) -> usize {
        self.steps.len() - self.kernels().count()
    }

    /// The kernels in the order they run.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.steps.iter().filter_map(|step| match &step.action {
            Action::Loops(loops) => Some(&loops.kernel),
            Action::Outside(_) => None,
        })
    }

    /// Runs it on inputs, which are given back at their last use.
    pub fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        registry: &Registry,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Value<Tensor>, NodeError> {
        let symbols = self.symbols(&inputs)?;
        let mut memory: Vec<Option<Storage>> = vec![None; self.buffers.len()];
        self.enter(inputs, &symbols, &mut memory)?;
        let context = Context::with_generator(registry, random.clone());
        for step in &self.steps {
            match &step.action {
                Action::Loops(loops) => self.run_loops(loops, &symbols, &mut memory)?,
                Action::Outside(outside) => {
                    let value = run_outside(outside, &context, &symbols, &mut memory)
                        .map_err(|error| NodeError::at(&outside.node, error))?;
                    observe(&outside.node, &value);
                }
            }
            for buffer in &step.frees {
                memory[buffer.0 as usize] = None;
            }
        }
        *random = context.rng.into_inner();
        Ok(self.output.try_map(&mut |place| self.tensor(place, &symbols, &mut memory).map(Value::Tensor))?)
    }

    /// The values of the graph's symbols, and a check that inputs are what the program was compiled for.
    fn symbols(&self, inputs: &[Value<Tensor>]) -> Result<Symbols, OpError> {
        if inputs.len() != self.inputs.len() {
            let (wanted, given) = (self.inputs.len(), inputs.len());
            return Err(OpError::invalid(format!("the program takes {wanted} inputs, {given} were given")));
        }
        let mut symbols = Symbols::new();
        let mut bind = |size: &SymInt, value: i64| {
            if let Some(name) = size.to_expr().as_symbol() {
                symbols.entry(name.into()).or_insert(value);
            }
        };
        for (wanted, given) in self.inputs.iter().zip(inputs) {
            match (wanted, given) {
                (Value::Int(size), Value::Int(value)) => bind(size, value.as_int().unwrap_or_default()),
                (Value::Tensor(place), Value::Tensor(tensor)) if place.meta.rank() == tensor.rank() => {
                    let meta = &place.meta;
                    meta.shape.iter().zip(tensor.shape()).for_each(|(size, value)| bind(size, *value));
                    meta.stride.iter().zip(tensor.stride()).for_each(|(size, value)| bind(size, *value));
                }
                _ => {}
            }
        }
        Ok(symbols)
    }

    /// Puts the inputs where kernels find them; an input that lies otherwise than it was said is copied.
    fn enter(
        &self,
        inputs: Vec<Value<Tensor>>,
        symbols: &Symbols,
        memory: &mut [Option<Storage>],
    ) -> Result<(), OpError> {
        for (wanted, given) in self.inputs.iter().zip(inputs) {
            let (Value::Tensor(place), Value::Tensor(tensor)) = (wanted, given) else { continue };
            let layout = layout_of(&place.meta, symbols)?;
            if tensor.dtype() != place.meta.dtype || *tensor.shape() != *layout.shape {
                return Err(OpError::invalid(format!(
                    "an input is {} {:?}, the program was compiled for {} {:?}",
                    tensor.dtype(),
                    tensor.shape(),
                    place.meta.dtype,
                    layout.shape
                )));
            }
            let slot = &mut memory[place.buffer.0 as usize];
            if *tensor.layout() == layout {
                *slot = Some(tensor.storage().clone());
            } else if slot.is_none() {
                let bytes = eval(&crate::pieces::extent(&place.meta), symbols)? as usize * tensor.dtype().size();
                let copy = Tensor::new(Storage::recycled(bytes), tensor.dtype(), layout)?;
                copy.write_from(&tensor);
                *slot = Some(copy.storage().clone());
            }
        }
        Ok(())
    }

    /// A tensor of the program, its buffer filled.
    fn tensor(&self, place: &Place, symbols: &Symbols, memory: &mut [Option<Storage>]) -> Result<Tensor, OpError> {
        self.provide(place.buffer, symbols, memory)?;
        placed(place, symbols, memory)
    }

    /// Makes sure that a buffer has memory.
    fn provide(&self, id: BufferId, symbols: &Symbols, memory: &mut [Option<Storage>]) -> Result<(), OpError> {
        let slot = &mut memory[id.0 as usize];
        if slot.is_none() {
            let buffer = &self.buffers[id.0 as usize];
            *slot = Some(match &buffer.origin {
                Origin::Constant(name) => {
                    let tensor = self.constants.get(name);
                    tensor.ok_or_else(|| OpError::fault(format!("no constant {name}")))?.storage().clone()
                }
                Origin::Input(number) => {
                    return Err(OpError::fault(format!("input {number} was given back too early")));
                }
                Origin::Computed | Origin::Scratch => {
                    Storage::recycled(eval(&buffer.elements, symbols)? as usize * buffer.dtype.size())
                }
            });
        }
        Ok(())
    }

    fn run_loops(&self, loops: &Loops, symbols: &Symbols, memory: &mut [Option<Storage>]) -> Result<(), OpError> {
        let computed;
        let tables = if let Some(tables) = &loops.tables {
            tables
        } else {
            computed = Tables::of(&loops.kernel, symbols)?;
            &computed
        };
        let kernel = &loops.kernel;
        let axes = kernel.axes.len();
        let mut bases = Vec::with_capacity(kernel.accesses.len());
        let mut scratch = Vec::new();
        for (access, offset) in kernel.accesses.iter().zip(&tables.offsets) {
            let buffer = &self.buffers[access.buffer.0 as usize];
            if buffer.origin == Origin::Scratch {
                let bytes = eval(&buffer.elements, symbols)? as usize * buffer.dtype.size();
                scratch.push((bases.len(), access.buffer, bytes));
                bases.push(Base(std::ptr::null_mut()));
                continue;
            }
            self.provide(access.buffer, symbols, memory)?;
            let Some(storage) = &memory[access.buffer.0 as usize] else { continue };
            bases.push(Base(storage.as_mut_ptr().wrapping_offset(*offset as isize * access.dtype.size() as isize)));
        }
        let positions = tables.work(kernel);
        let threads =
            if positions.saturating_mul(loops.weight) < WORTH_SHARING { 1 } else { rayon::current_num_threads() };
        let run = |part: Option<(AxisId, i64, i64)>| {
            let mut bases = bases.clone();
            let mut extents = tables.extents.clone();
            let mut begins = vec![0; axes];
            if let Some((axis, begin, count)) = part {
                extents[axis.0 as usize] = count;
                begins[axis.0 as usize] = begin;
                for (index, (base, access)) in bases.iter_mut().zip(&kernel.accesses).enumerate() {
                    let step = tables.steps[index * axes + axis.0 as usize];
                    let bytes = begin * step * access.dtype.size() as i64;
                    base.0 = base.0.wrapping_offset(bytes as isize);
                }
            }
            let mut kept: HashMap<BufferId, Storage> = HashMap::new();
            for (index, buffer, bytes) in &scratch {
                let storage = kept.entry(*buffer).or_insert_with(|| Storage::recycled(*bytes));
                bases[*index] = Base(storage.as_mut_ptr());
            }
            let bases: Vec<*mut u8> = bases.iter().map(|base| base.0).collect();
            let call = Call {
                bases: &bases,
                extents: &extents,
                begins: &begins,
                steps: &tables.steps,
                numbers: &tables.numbers,
            };
            // SAFETY: buffers have room for everything that accesses reach, because both come from the same metadata;
            // parts of a shared axis write to different elements.
            #[expect(unsafe_code, reason = "compiled code works on raw memory")]
            unsafe {
                loops.code.run(&call)
            }
        };
        let done = match loops.shared {
            Some((axis, grain)) if threads > 1 => {
                let extent = tables.extents[axis.0 as usize];
                let share = (extent.div_euclid(threads as i64) + i64::from(extent % threads as i64 != 0)).max(1);
                let share = (share + grain - 1) / grain * grain;
                let parts: Vec<(i64, i64)> =
                    (0..extent).step_by(share as usize).map(|begin| (begin, share.min(extent - begin))).collect();
                if parts.len() < 2 {
                    run(None)
                } else {
                    use rayon::prelude::*;
                    parts.par_iter().map(|(begin, count)| run(Some((axis, *begin, *count)))).collect()
                }
            }
            _ => run(None),
        };
        done.map_err(|fault| OpError::invalid(format!("{fault} in {}", kernel.name)))
    }
}

/// The kernels with their memory dependencies, and the calls, in the order they run.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |buffer: BufferId| match self.buffers[buffer.0 as usize].origin {
            Origin::Input(number) => format!("input{number}"),
            Origin::Constant(ref name) => name.to_string(),
            Origin::Computed => format!("buf{}", buffer.0),
            Origin::Scratch => format!("row{}", buffer.0),
        };
        let computed = |buffer: BufferId| self.buffers[buffer.0 as usize].origin == Origin::Computed;
        for step in &self.steps {
            match &step.action {
                Action::Loops(loops) => writeln!(f, "{}", dependencies(&loops.kernel, &name, &computed))?,
                Action::Outside(outside) => {
                    let buffers = |value: &Value<Place>| places(value).into_iter().map(name).collect::<Vec<_>>();
                    let read: Vec<String> = outside.args.iter().flat_map(buffers).collect();
                    let written = buffers(&outside.results).join(", ");
                    writeln!(f, "{written} = {}({})\n", outside.op.name(), read.join(", "))?;
                }
            }
        }
        Ok(())
    }
}

/// An address that threads may share: each writes to elements of its own.
#[derive(Clone, Copy)]
struct Base(*mut u8);

// SAFETY: an address is only a number until compiled code follows it; see `Program::run_loops`.
#[expect(unsafe_code, reason = "parts of a kernel run on several threads")]
unsafe impl Send for Base {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "parts of a kernel run on several threads")]
unsafe impl Sync for Base {}

impl Loops {
    fn new(kernel: Kernel, generator: Generator) -> Result<Self, OpError> {
        let code = generate(&kernel, generator)?;
        let weight = kernel.phases.iter().map(|phase| phase.code.len() as i64).max().unwrap_or(1);
        let known =
            kernel.accesses.iter().all(|access| {
                access.offset.as_int().is_some() && access.steps.iter().all(|step| step.as_int().is_some())
            }) && kernel.axes.iter().all(|axis| axis.extent.as_int().is_some())
                && kernel.numbers.iter().all(|number| number.as_int().is_some());
        let tables = if known { Some(Tables::of(&kernel, &Symbols::new())?) } else { None };
        Ok(Self { shared: shared_axis(&kernel), kernel, code, weight, tables })
    }
}

/// The axis that threads share: the outermost row, or, of a kernel that has none and reduces nothing, its first axis.
fn shared_axis(kernel: &Kernel) -> Option<(AxisId, i64)> {
    let scatters = kernel.phases.iter().any(|p| p.code.insts().iter().any(|i| matches!(i, Inst::Scatter { .. })));
    if scatters {
        return None;
    }
    if let Some(first) = kernel.rows.first() {
        let lanes = kernel.lanes == Lanes::Rows && kernel.rows.len() == 1;
        return Some((*first, if lanes { 64 } else { 1 }));
    }
    let (first, others) = kernel.phases.split_first()?;
    let axis = first.axes.first()?;
    let alike = others.iter().all(|phase| phase.axes == first.axes);
    let reduces = kernel.phases.iter().any(|phase| !phase.reduces.is_empty());
    (alike && !reduces).then_some((*axis, if first.axes.len() == 1 { 64 } else { 1 }))
}

impl Tables {
    fn of(kernel: &Kernel, symbols: &Symbols) -> Result<Self, OpError> {
        let all = |sizes: &mut dyn Iterator<Item = &SymInt>| {
            sizes.map(|size| eval(size, symbols)).collect::<Result<Vec<i64>, OpError>>()
        };
        Ok(Self {
            extents: all(&mut kernel.axes.iter().map(|axis| &axis.extent))?,
            steps: all(&mut kernel.accesses.iter().flat_map(|access| &access.steps))?,
            numbers: all(&mut kernel.numbers.iter())?,
            offsets: all(&mut (0..kernel.accesses.len()).map(|i| &kernel.access(AccessId(i as u32)).offset))?,
        })
    }

    /// How many positions all phases have together.
    fn work(&self, kernel: &Kernel) -> i64 {
        let product = |axes: &[AxisId]| axes.iter().map(|axis| self.extents[axis.0 as usize]).product::<i64>();
        let rows = product(&kernel.rows);
        kernel.phases.iter().map(|phase| rows.saturating_mul(product(&phase.axes))).sum()
    }
}

fn eval(size: &SymInt, symbols: &Symbols) -> Result<i64, OpError> {
    if let Some(number) = size.as_int() {
        return Ok(number);
    }
    let known = size.to_expr().evaluate(&|name| symbols.get(name).copied());
    known.ok_or_else(|| OpError::invalid(format!("the size {size} is not bound by any input")))
}

fn layout_of(meta: &Meta, symbols: &Symbols) -> Result<Layout, OpError> {
    let all = |sizes: &[SymInt]| sizes.iter().map(|size| eval(size, symbols)).collect::<Result<Vec<_>, _>>();
    Ok(Layout::new(&all(&meta.shape)?, &all(&meta.stride)?, eval(&meta.offset, symbols)?))
}

fn placed(place: &Place, symbols: &Symbols, memory: &[Option<Storage>]) -> Result<Tensor, OpError> {
    let storage = memory[place.buffer.0 as usize].clone();
    let storage = storage.ok_or_else(|| OpError::fault("a buffer is read before it is filled"))?;
    Ok(Tensor::new(storage, place.meta.dtype, layout_of(&place.meta, symbols)?)?)
}

/// Makes the call of an operator, and keeps the memory of its results.
fn run_outside(
    outside: &Outside,
    context: &Context<'_>,
    symbols: &Symbols,
    memory: &mut [Option<Storage>],
) -> Result<Value<Tensor>, OpError> {
    let args = outside
        .args
        .iter()
        .map(|arg| {
            let tensors = arg.try_map(&mut |place| placed(place, symbols, memory).map(Value::Tensor))?;
            with_sizes(tensors, symbols)
        })
        .collect::<Result<Vec<_>, OpError>>()?;
    let value = call(context, &outside.op, args)?;
    let mut wanted = Vec::new();
    outside.results.each(&mut |place| wanted.push(place.clone()));
    let mut found = Vec::new();
    value.each(&mut |tensor| found.push(tensor.clone()));
    if wanted.len() != found.len() {
        return Err(OpError::fault(format!("{} results instead of {}", found.len(), wanted.len())));
    }
    for (place, tensor) in wanted.iter().zip(found) {
        let layout = layout_of(&place.meta, symbols)?;
        if tensor.numel() > 0 && (*tensor.layout() != layout || tensor.dtype() != place.meta.dtype) {
            return Err(OpError::fault(format!("a result lies as {:?}, inferred was {layout:?}", tensor.layout())));
        }
        memory[place.buffer.0 as usize] = Some(tensor.storage().clone());
    }
    Ok(value)
}

fn with_sizes(value: Value<Tensor>, symbols: &Symbols) -> Result<Value<Tensor>, OpError> {
    Ok(match value {
        Value::Int(size) => Value::Int(eval(&size, symbols)?.into()),
        Value::List(items) => Value::List(items.into_iter().map(|v| with_sizes(v, symbols)).collect::<Result<_, _>>()?),
        other => other,
    })
}

/// For each piece the buffers that nothing uses afterwards.
fn last_uses(pieces: &[Piece], output: &Value<Place>) -> Vec<Vec<BufferId>> {
    let mut seen: FxHashSet<BufferId> = places(output).into_iter().collect();
    let mut frees = vec![Vec::new(); pieces.len()];
    for (piece, frees) in pieces.iter().zip(&mut frees).rev() {
        for buffer in inputs_of(piece).into_iter().chain(outputs_of(piece)) {
            if seen.insert(buffer) {
                frees.push(buffer);
            }
        }
    }
    frees
}
