//! A compiled graph: a schedule with its code, and the run that carries it out.
//!
//! Buffers are storages that are taken when a statement first fills them and given back after their last use; the cache of
//! storages hands the same memory to the next call. A result may take over the memory of what its kernel is the last to
//! read ([`Reuse`]). Sizes that are not known when the program is compiled are read off
//! the inputs of each call: the code is the same for all of them.
//!
//! What was decided and made when the graph was compiled is a [`Plan`], which programs of equal graphs share; constants
//! and weights in panels are each program's own.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pyrite_interp::{Context, call};
use pyrite_ir::lower::Place;
use pyrite_ir::{Graph, Kind, Node, NodeError, OpError, Registry, Symbols, Value};
use pyrite_loops::{BufferId, Kernel};
use pyrite_passes::Gate;
use pyrite_sym::SymInt;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{Held, Layout, Storage, Tensor};
use pyrite_trace::event::KernelTime;
use pyrite_trace::{Event, Stage, Topic};

use crate::Generator;
use crate::bmm::{Bmm, FusedBmm, Link};
use crate::bmm_run::{BmmOperands, Extents, Given};
use crate::conv::{Conv, Ran};
use crate::decisions::Decisions;
pub use crate::emit::Plan;
use crate::gemm::{Gemm, Weight};
use crate::loops::{Loops, Memory};
use crate::position::Position;
use crate::schedule::{ExternCall, Op, Origin, Reuse, Schedule, Statement, extent};
use crate::store::Nothing;

/// Is told of every call of an operator, and of every kernel by a node of its name, as it is done. A value that has been
/// written over by then is `None`.
pub type Observer<'a> = dyn FnMut(&Node, &Value<Tensor>) + 'a;

/// A compiled graph; see the module's text.
pub struct Program {
    plan: Arc<Plan>,
    constants: HashMap<Arc<str>, Tensor>,
    /// What is kept of the weight of each step that is a GEMM or a convolution.
    weights: Vec<Weight>,
    /// What its graph is called in the trace.
    traced: Option<Arc<str>>,
    /// How many runs were timed.
    timed: AtomicU32,
}

/// Inputs that come again in many runs, bound and put where kernels find them; see [`Program::prepare`].
///
/// Invariants: between runs the buffers of inputs have memory, and no others. The storages of inputs are held all the time:
/// who writes to one through Pyrite waits for this to go.
pub struct Prepared {
    symbols: Symbols,
    memory: Vec<Option<Memory>>,
    /// For each input that is a tensor, its storage.
    held: Vec<Option<Held>>,
}

/// Inputs that are where kernels find them, for one run.
struct EnteredInputs<'a> {
    symbols: &'a Symbols,
    memory: &'a mut Vec<Option<Memory>>,
    after_last_use: AfterLastUse,
}

/// What becomes of buffers after their last use in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterLastUse {
    /// They are given back.
    Free,
    /// All but inputs are.
    KeepInputs,
}

/// How many runs of a program are timed kernel by kernel while a trace wants to know: the first touches fresh memory.
const TIMED_RUNS: u32 = 4;

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
        let plan = Plan::of(graph, registry, generator, decisions, &Nothing)?;
        Ok(Self::new(Arc::new(plan), graph))
    }

    /// The program of a graph that was compiled, or of one that is equal to it but for the values of its constants.
    pub fn new(plan: Arc<Plan>, graph: &Graph) -> Self {
        let constants = graph.constants().iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        let weights = plan.schedule.statements.iter().map(|_| Weight::default()).collect();
        Self { plan, constants, weights, traced: pyrite_trace::current_graph(), timed: AtomicU32::new(0) }
    }
}

impl Program {
    /// What the program does, with the code of its kernels.
    fn schedule(&self) -> &Schedule<Loops> {
        &self.plan.schedule
    }

    /// The operators that run through their reference kernels without being meant to.
    pub fn fallbacks(&self) -> &[String] {
        &self.schedule().fallbacks
    }

    /// How many operators are called.
    pub fn calls(&self) -> usize {
        let calls = |statement: &Statement<Loops>| match &statement.op {
            Op::Loop(_) => 0,
            Op::Call(_) | Op::Gemm(_) | Op::Conv(_) => 1,
            Op::Bmm(fused) => fused.bmms().count(),
        };
        self.schedule().statements.iter().map(calls).sum()
    }

    /// The kernels in the order they run.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.schedule().kernels().map(|loops| &loops.kernel)
    }

    /// Runs it on inputs, which are given back at their last use.
    pub fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        registry: &Registry,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Value<Tensor>, NodeError> {
        let symbols = self.plan.contract.bind(&inputs)?;
        let _held = held(&inputs);
        let mut memory: Vec<Option<Memory>> = vec![None; self.schedule().buffers.len()];
        self.enter(inputs, &symbols, &mut memory)?;
        let mut entered = EnteredInputs { symbols: &symbols, memory: &mut memory, after_last_use: AfterLastUse::Free };
        self.run_entered(&mut entered, registry, random, observe)
    }

    /// Puts inputs where runs find them again. `None` where each run has to look at them anew: where one is copied, or the
    /// program depends on more than their types, sizes and strides.
    pub fn prepare(&self, inputs: Vec<Value<Tensor>>) -> Option<Prepared> {
        let contract = &self.plan.contract;
        let lies_as_said = |(wanted, given): (&Value<Place>, &Value<Tensor>)| match (wanted, given) {
            (Value::Tensor(place), Value::Tensor(tensor)) => lies_as(place, tensor),
            (Value::Tensor(_), _) => false,
            _ => true,
        };
        if contract.is_conditional() || !self.schedule().inputs.iter().zip(&inputs).all(lies_as_said) {
            return None;
        }
        let symbols = contract.bind(&inputs).ok()?;
        let mut memory: Vec<Option<Memory>> = vec![None; self.schedule().buffers.len()];
        let held = inputs.iter().map(|input| input.as_tensor().map(|tensor| tensor.storage().hold())).collect();
        self.enter(inputs, &symbols, &mut memory).ok()?;
        Some(Prepared { symbols, memory, held })
    }

    /// Gives one of prepared inputs other memory; whether that could be done.
    pub fn replace(&self, prepared: &mut Prepared, index: usize, input: &Tensor) -> bool {
        let Some(Value::Tensor(place)) = self.schedule().inputs.get(index) else { return false };
        if !lies_as(place, input) {
            return false;
        }
        prepared.held[index] = Some(input.storage().hold());
        self.enter_one(place, input, &prepared.symbols, &mut prepared.memory).is_ok()
    }

    /// Runs it on inputs that were prepared for it.
    pub fn run_prepared(
        &self,
        prepared: &mut Prepared,
        registry: &Registry,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Value<Tensor>, NodeError> {
        let Prepared { symbols, memory, .. } = prepared;
        let mut entered = EnteredInputs { symbols, memory, after_last_use: AfterLastUse::KeepInputs };
        let output = self.run_entered(&mut entered, registry, random, observe);
        for (buffer, memory) in self.schedule().buffers.iter().zip(memory) {
            if !matches!(buffer.origin, Origin::Input(_)) {
                *memory = None;
            }
        }
        output
    }

    fn run_entered(
        &self,
        EnteredInputs { symbols, memory, after_last_use }: &mut EnteredInputs<'_>,
        registry: &Registry,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Value<Tensor>, NodeError> {
        let context = Context::with_generator(registry, random.clone());
        let position = Position::of(&self.plan);
        let _entered = position.enter();
        let mut times = self.times();
        for (number, (statement, weight)) in self.schedule().statements.iter().zip(&self.weights).enumerate() {
            position.at(number);
            let begun = times.as_ref().map(|_| Instant::now());
            self.reuse(statement, symbols, memory)?;
            match &statement.op {
                Op::Loop(loops) => self.run_loops(loops, symbols, memory)?,
                Op::Gemm(gemm) => {
                    let value = self
                        .run_gemm((gemm, weight), &context, symbols, memory)
                        .map_err(|error| NodeError::at(&gemm.call.node, error))?;
                    let overwritten = statement.reuses.iter().any(|reuse| reuse.dead == gemm.out());
                    observe(&gemm.call.node, if overwritten { &Value::None } else { &value });
                }
                Op::Bmm(fused) => {
                    self.run_bmm(fused, &context, symbols, memory)?;
                    for bmm in fused.bmms() {
                        let gone = fused.block_of(bmm.out.buffer).is_some()
                            || bmm.is_redirected()
                            || statement.reuses.iter().any(|reuse| reuse.dead == bmm.out.buffer);
                        let value =
                            if gone { Value::None } else { Value::Tensor(self.tensor(&bmm.out, symbols, memory)?) };
                        observe(&bmm.node, &value);
                    }
                }
                Op::Conv(conv) => {
                    let value = self
                        .run_conv((conv, weight), &context, symbols, memory)
                        .map_err(|error| NodeError::at(&conv.call.node, error))?;
                    observe(&conv.call.node, &value);
                }
                Op::Call(call) => {
                    let value = self
                        .run_call(call, &context, symbols, memory)
                        .map_err(|error| NodeError::at(&call.node, error))?;
                    observe(&call.node, &value);
                }
            }
            if let (Some(times), Some(begun)) = (&mut times, begun) {
                times.push((number, begun.elapsed()));
            }
            for buffer in &statement.frees {
                let kept = *after_last_use == AfterLastUse::KeepInputs
                    && matches!(self.schedule().buffer(*buffer).origin, Origin::Input(_));
                if !kept {
                    memory[buffer.0 as usize] = None;
                }
            }
        }
        *random = context.rng.into_inner();
        self.tell_times(&times.unwrap_or_default());
        let output =
            self.schedule().output.try_map(&mut |place| self.tensor(place, symbols, memory).map(Value::Tensor))?;
        Ok(symbols.numbers(output)?)
    }

    /// Room for the times of a run's statements, where a trace wants them.
    fn times(&self) -> Option<Vec<(usize, Duration)>> {
        let wanted = pyrite_trace::wanted(Topic::Timings) && self.timed.load(Ordering::Relaxed) < TIMED_RUNS;
        wanted.then(|| {
            self.timed.fetch_add(1, Ordering::Relaxed);
            Vec::with_capacity(self.schedule().statements.len())
        })
    }

    /// Tells the trace how long the statements of a run took.
    fn tell_times(&self, times: &[(usize, Duration)]) {
        let Some(name) = self.traced.as_ref().filter(|_| !times.is_empty()) else { return };
        let _stage = pyrite_trace::within(Stage::Native);
        let _graph = pyrite_trace::graph(|| name.to_string());
        for (number, took) in times {
            let of_node = |node: &Node| {
                let op = if let Kind::Call(target) = &node.kind { target.name().to_owned() } else { String::new() };
                (node.name.clone(), op)
            };
            let (name, op) = match &self.schedule().statements[*number].op {
                Op::Loop(loops) => (loops.kernel.name.clone(), String::new()),
                Op::Gemm(gemm) => of_node(&gemm.call.node),
                Op::Bmm(fused) => fused.bmms().next().map(|bmm| of_node(&bmm.node)).unwrap_or_default(),
                Op::Conv(conv) => of_node(&conv.call.node),
                Op::Call(call) => of_node(&call.node),
            };
            let seconds = took.as_secs_f64();
            pyrite_trace::record(Topic::Timings, || Event::KernelTime(KernelTime { name, seconds, op }));
        }
    }

    /// Puts the inputs where kernels find them; an input whose strides are not those that were said is copied.
    fn enter(
        &self,
        inputs: Vec<Value<Tensor>>,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
    ) -> Result<(), OpError> {
        for (wanted, given) in self.schedule().inputs.iter().zip(inputs) {
            let Value::Tensor(place) = wanted else { continue };
            let Value::Tensor(tensor) = given else {
                return Err(OpError::invalid(format!("an input is {}, the program takes a tensor", given.kind())));
            };
            self.enter_one(place, &tensor, symbols, memory)?;
        }
        Ok(())
    }

    /// Puts one input where kernels find it.
    fn enter_one(
        &self,
        place: &Place,
        tensor: &Tensor,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
    ) -> Result<(), OpError> {
        let sizes = |sizes: &[SymInt], given: &[i64]| {
            let same = |(size, given): (&SymInt, &i64)| Ok::<_, OpError>(symbols.eval(size)? == *given);
            let pairs = sizes.iter().zip(given).map(same);
            Ok::<_, OpError>(sizes.len() == given.len() && all(pairs)?)
        };
        if tensor.dtype() != place.meta.dtype || !sizes(&place.meta.shape, tensor.shape())? {
            return Err(OpError::invalid(format!(
                "an input is {} {:?}, the program was compiled for {} {:?}",
                tensor.dtype(),
                tensor.shape(),
                place.meta.dtype,
                symbols.layout(&place.meta)?.shape
            )));
        }
        let reaches = self.schedule().reaches.iter().filter(|reach| reach.buffer == place.buffer);
        let found = if sizes(&place.meta.stride, tensor.stride())? {
            let offset = tensor.layout().offset - symbols.eval(&place.meta.offset)?;
            let start = offset * tensor.dtype().size() as i64;
            Memory { storage: tensor.storage().clone(), start }
        } else if reaches.clone().next().is_none() {
            let bytes = symbols.eval(&extent(&place.meta))? as usize * tensor.dtype().size();
            let layout = symbols.layout(&place.meta)?;
            let copy = Tensor::new(Storage::recycled(bytes), tensor.dtype(), layout)?;
            copy.write_from(tensor);
            Memory::whole(copy.storage().clone())
        } else {
            return Err(OpError::invalid(format!(
                "an input has strides {:?}, the program looks at its storage and was compiled for {:?}",
                tensor.stride(),
                symbols.layout(&place.meta)?.stride
            )));
        };
        memory[place.buffer.0 as usize] = Some(found);
        for reach in reaches {
            placed(reach, symbols, memory)?;
        }
        Ok(())
    }

    /// A tensor of the program, its buffer filled.
    fn tensor(&self, place: &Place, symbols: &Symbols, memory: &mut [Option<Memory>]) -> Result<Tensor, OpError> {
        self.provide(place.buffer, symbols, memory)?;
        placed(place, symbols, memory)
    }

    /// Makes sure that a buffer has memory.
    fn provide(&self, id: BufferId, symbols: &Symbols, memory: &mut [Option<Memory>]) -> Result<(), OpError> {
        let slot = &mut memory[id.0 as usize];
        if slot.is_none() {
            let buffer = &self.schedule().buffers[id.0 as usize];
            *slot = Some(Memory::whole(match &buffer.origin {
                Origin::Constant(name) => {
                    let tensor = self.constants.get(name);
                    tensor.ok_or_else(|| OpError::fault(format!("no constant {name}")))?.storage().clone()
                }
                Origin::Input(number) => {
                    return Err(OpError::fault(format!("input {number} was given back too early")));
                }
                Origin::Computed | Origin::Scratch => {
                    Storage::recycled(symbols.eval(&buffer.elements)? as usize * buffer.dtype.size())
                }
            }));
        }
        Ok(())
    }

    /// Gives the memory of what dies in a statement to the results that are written over it, where nobody else has it.
    fn reuse(
        &self,
        statement: &Statement<Loops>,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
    ) -> Result<(), OpError> {
        for Reuse { dead, result } in &statement.reuses {
            // A buffer of which an earlier statement has written a part stays where it is.
            if memory[result.0 as usize].is_some() {
                continue;
            }
            if matches!(statement.op, Op::Gemm(_) | Op::Bmm(_)) {
                self.provide(*dead, symbols, memory)?;
            }
            let made = self.schedule().buffer(*result);
            let bytes = symbols.eval(&made.elements)? as usize * made.dtype.size();
            let free = |memory: &&Memory| {
                let Memory { storage, start } = memory;
                *start == 0 && storage.nbytes() == bytes && storage.version().is_some() && storage.is_unique()
            };
            memory[result.0 as usize] = memory[dead.0 as usize].as_ref().filter(free).cloned();
        }
        Ok(())
    }

    fn run_loops(&self, loops: &Loops, symbols: &Symbols, memory: &mut [Option<Memory>]) -> Result<(), OpError> {
        self.provide_for(loops, symbols, memory, &[])?;
        loops.ready(&self.schedule().buffers, symbols, memory, &[])?.run()
    }

    /// Computes a GEMM and its epilogue.
    fn run_gemm(
        &self,
        (gemm, weight): (&Gemm<Loops>, &Weight),
        context: &Context<'_>,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
    ) -> Result<Value<Tensor>, OpError> {
        let operands = gemm.operands(|place| self.tensor(place, symbols, memory))?;
        let loops = gemm.epilogue.as_ref().map(|epilogue| &epilogue.kernel);
        if operands.is_small() {
            let value = self.run_call(&gemm.call, context, symbols, memory)?;
            loops.map_or(Ok(()), |loops| self.run_loops(loops, symbols, memory))?;
            return Ok(value);
        }
        let ready = match loops {
            Some(loops) => {
                self.provide_for(loops, symbols, memory, &[])?;
                Some(loops.ready(&self.schedule().buffers, symbols, memory, &[])?)
            }
            None => None,
        };
        gemm.run(&operands, weight, ready.as_ref())?;
        Ok(Value::Tensor(operands.out))
    }

    /// Computes a convolution in tiles, and by calls what is not.
    fn run_conv(
        &self,
        (conv, weight): (&Conv, &Weight),
        context: &Context<'_>,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
    ) -> Result<Value<Tensor>, OpError> {
        let operands = conv.operands(|place| self.tensor(place, symbols, memory))?;
        if conv.run(&operands, weight) == Ran::No {
            return self.run_call(&conv.call, context, symbols, memory);
        }
        let out = Value::Tensor(operands.out);
        let rest = conv.rest.as_ref().map(|rest| self.run_call(rest, context, symbols, memory)).transpose()?;
        Ok(match (&conv.call.results, rest) {
            (Value::List(_), Some(Value::List(mut all))) => {
                all[0] = out;
                Value::List(all)
            }
            (Value::List(results), _) => {
                Value::List(std::iter::once(out).chain(results.iter().skip(1).map(|_| Value::None)).collect())
            }
            _ => out,
        })
    }

    /// Runs the links of a fused bmm, block by block or, where matrices are small, one after the other.
    fn run_bmm(
        &self,
        fused: &FusedBmm<Loops>,
        context: &Context<'_>,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
    ) -> Result<(), NodeError> {
        let mut extents = Vec::new();
        for bmm in fused.bmms() {
            let (lhs, out) = (symbols.layout(&bmm.lhs.meta)?, symbols.layout(&bmm.out.meta)?);
            extents.push(Extents::of(&lhs.shape, &out.shape));
        }
        if extents.iter().any(|extents| extents.is_small()) {
            for link in &fused.links {
                match link {
                    Link::Kernel(loops, _) => self.run_loops(loops, symbols, memory)?,
                    Link::Bmm(bmm) => {
                        self.call_bmm(bmm, context, symbols, memory)
                            .map_err(|error| NodeError::at(&bmm.node, error))?;
                    }
                }
            }
            return Ok(());
        }
        let blocks: Vec<BufferId> = fused.blocks.iter().map(|block| block.buffer).collect();
        let mut given = Vec::with_capacity(fused.links.len());
        for link in &fused.links {
            given.push(match link {
                Link::Kernel(loops, _) => {
                    self.provide_for(loops, symbols, memory, &blocks)?;
                    Given::Kernel(loops.ready(&self.schedule().buffers, symbols, memory, &blocks)?)
                }
                Link::Bmm(bmm) => {
                    let mut tensor = |place: &Place| {
                        let own = !blocks.contains(&place.buffer);
                        own.then(|| self.tensor(place, symbols, memory)).transpose()
                    };
                    let (lhs, out) = (tensor(&bmm.lhs)?, tensor(&bmm.out)?);
                    let rhs = self.tensor(&bmm.rhs, symbols, memory)?;
                    Given::Bmm(BmmOperands { lhs, fed: fused.fills(bmm.lhs.buffer), rhs, out })
                }
            });
        }
        Ok(fused.run(&given, &extents)?)
    }

    /// Calls the operator of a bmm.
    fn call_bmm(
        &self,
        bmm: &Bmm,
        context: &Context<'_>,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
    ) -> Result<(), OpError> {
        // A call knows one dimension that numbers matrices.
        let mut operand = |place: &Place| {
            let tensor = self.tensor(place, symbols, memory)?;
            let (counts, matrix) = tensor.shape().split_at(tensor.rank() - 2);
            let flat = [&[counts.iter().product()], matrix].concat();
            Ok::<_, OpError>(Value::Tensor(tensor.reshaped(&flat)))
        };
        let args = vec![operand(&bmm.lhs)?, operand(&bmm.rhs)?];
        let value = call(context, &bmm.op, args)?;
        let out = self.tensor(&bmm.out, symbols, memory)?;
        let result = value.as_tensor().ok_or_else(|| OpError::fault("a bmm without a result"))?;
        out.write_from(&result.reshaped(out.shape()));
        Ok(())
    }

    /// Makes the call of an operator, and keeps the memory of its results.
    fn run_call(
        &self,
        statement: &ExternCall,
        context: &Context<'_>,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
    ) -> Result<Value<Tensor>, OpError> {
        for arg in &statement.args {
            let mut constants = Vec::new();
            arg.each(&mut |place: &Place| constants.push(place.buffer));
            for id in constants {
                if matches!(self.schedule().buffer(id).origin, Origin::Constant(_)) {
                    self.provide(id, symbols, memory)?;
                }
            }
        }
        let args = statement
            .args
            .iter()
            .map(|arg| {
                let tensors = arg.try_map(&mut |place| placed(place, symbols, memory).map(Value::Tensor))?;
                symbols.numbers(tensors)
            })
            .collect::<Result<Vec<_>, OpError>>()?;
        let value = call(context, &statement.op, args)?;
        let mut wanted = Vec::new();
        statement.results.each(&mut |place| wanted.push(place.clone()));
        let mut found = Vec::new();
        value.each(&mut |tensor| found.push(tensor.clone()));
        if wanted.len() != found.len() {
            return Err(OpError::fault(format!("{} results instead of {}", found.len(), wanted.len())));
        }
        for (place, tensor) in wanted.iter().zip(found) {
            let layout = symbols.layout(&place.meta)?;
            let lies = tensor.layout();
            let alike =
                lies.shape == layout.shape && lies.stride == layout.stride && tensor.dtype() == place.meta.dtype;
            if tensor.numel() > 0 && !alike {
                return Err(OpError::fault(format!("a result lies as {lies:?}, inferred was {layout:?}")));
            }
            let start = (lies.offset - layout.offset) * tensor.dtype().size() as i64;
            memory[place.buffer.0 as usize] = Some(Memory { storage: tensor.storage().clone(), start });
        }
        Ok(value)
    }

    /// Makes sure that everything a kernel touches has memory.
    fn provide_for(
        &self,
        loops: &Loops,
        symbols: &Symbols,
        memory: &mut [Option<Memory>],
        but: &[BufferId],
    ) -> Result<(), OpError> {
        for access in &loops.kernel.accesses {
            let scratch = self.schedule().buffers[access.buffer.0 as usize].origin == Origin::Scratch;
            if !scratch && !but.contains(&access.buffer) {
                self.provide(access.buffer, symbols, memory)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
    }
}

/// Keeps others from writing to inputs that they hold too while code reads them by address. What the program alone holds
/// nobody else can write to, and its memory may be used again.
fn held(inputs: &[Value<Tensor>]) -> Vec<Held> {
    let tensors = inputs.iter().filter_map(Value::as_tensor);
    tensors.filter(|tensor| !tensor.storage().is_unique()).map(|tensor| tensor.storage().hold()).collect()
}

/// Whether a tensor has the type, the sizes and the strides of a place whose sizes are all known.
fn lies_as(place: &Place, tensor: &Tensor) -> bool {
    let same = |sizes: &[SymInt], given: &[i64]| {
        sizes.len() == given.len() && sizes.iter().zip(given).all(|(size, given)| size.as_int() == Some(*given))
    };
    let meta = &place.meta;
    tensor.dtype() == meta.dtype && same(&meta.shape, tensor.shape()) && same(&meta.stride, tensor.stride())
}

/// Whether all of some questions are answered with yes.
fn all(mut answers: impl Iterator<Item = Result<bool, OpError>>) -> Result<bool, OpError> {
    answers.try_fold(true, |so_far, answer| Ok(so_far && answer?))
}

/// A tensor in the memory of its buffer.
fn placed(place: &Place, symbols: &Symbols, memory: &[Option<Memory>]) -> Result<Tensor, OpError> {
    let memory = memory[place.buffer.0 as usize].clone();
    let Memory { storage, start } = memory.ok_or_else(|| OpError::fault("a buffer is read before it is filled"))?;
    let (layout, size) = (symbols.layout(&place.meta)?, place.meta.dtype.size() as i64);
    if start % size != 0 && layout.numel() > 0 {
        let dtype = place.meta.dtype;
        return Err(OpError::invalid(format!(
            "the offset of an input, {start} bytes, is no multiple of {dtype}'s size"
        )));
    }
    let offset = layout.offset + start / size;
    Ok(Tensor::new(storage, place.meta.dtype, Layout { offset, ..layout })?)
}
