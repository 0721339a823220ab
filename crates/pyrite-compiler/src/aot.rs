//! Ahead-of-time autograd: the pipeline from a captured program to compiled forward and backward graphs.
//!
//! ```text
//! program ──autocast──▶ ──functionalize──▶ ──joint──▶ ──decompose──▶ ──partition──▶ forward ──fw_compiler──▶
//!                                                                                   backward ──bw_compiler──▶
//! ```
//!
//! [`AotAutograd`] is the builder that backends are made with: it takes the two compilers, the partitioner and the table
//! of decompositions. A program that wants no gradient has no backward half: its functional graph goes to the forward
//! compiler as it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyrite_autograd::{Joint, MinCut, Partition, Read, default_partition, joint_of, min_cut_partition};
use pyrite_ir::dump::{dump, runnable, tell};
use pyrite_ir::{Contract, Graph, Kind, NodeError, NodeId, OpError, Target, Value};
use pyrite_ops::registry;
use pyrite_passes::functionalize::InputSource;
use pyrite_passes::{Functional, Table, autocast, cleanup, decompose, functionalize};
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{Layout, Tensor};
use pyrite_trace::event::Artifact;
use pyrite_trace::{Event, Stage, Topic};

use crate::backend::{Backend, Backward, Direction, Executable, Forward, InputGradients, Observer, Options, Prepared};
use crate::backends::{copied, gradients as gradients_of};

/// A functional graph that is ready to run: it takes its inputs by value and returns a flat list.
pub trait Compiled: Send + Sync {
    /// Runs it. Inputs are dropped at their last use; random numbers come from the generator.
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<Value<Tensor>>, NodeError>;

    /// Itself with inputs for many runs; `None` where each run has to look at them.
    fn prepare(self: Arc<Self>, _inputs: Vec<Value<Tensor>>) -> Option<Box<dyn PreparedGraph>> {
        None
    }

    /// The optional decisions that were made for it, in order.
    fn rewrites(&self) -> &[String] {
        &[]
    }
}

/// A functional graph with inputs that come again in many runs, as [`Prepared`] is a program.
pub trait PreparedGraph: Send {
    /// Gives an input other memory; `false` where the graph has to be prepared anew.
    fn replace(&mut self, index: usize, input: &Tensor) -> bool;

    /// Runs it, as [`Compiled::run`] does.
    fn run(&mut self, random: &mut TorchGenerator, observe: &mut Observer<'_>)
    -> Result<Vec<Value<Tensor>>, NodeError>;
}

/// Compiles a functional graph.
pub type GraphCompiler = Arc<dyn Fn(Graph, &Options) -> Result<Arc<dyn Compiled>, NodeError> + Send + Sync>;
/// Splits a joint graph.
pub type Partitioner = Arc<dyn Fn(&Joint, &Options) -> Partition + Send + Sync>;

/// How a program is differentiated and compiled; see the module's text.
#[derive(Clone)]
pub struct AotAutograd {
    /// Compiles the forward graph, and the graph of a program without gradients.
    pub fw_compiler: GraphCompiler,
    /// Compiles the backward graph.
    pub bw_compiler: GraphCompiler,
    /// Splits the joint graph.
    pub partition_fn: Partitioner,
    /// Which operators are decomposed.
    pub decompositions: Table,
    /// Whether, without gradients, the writes to inputs stay in the graph instead of being done after it.
    pub keep_inference_input_mutations: bool,
}

/// Saves what the backward half reads.
pub fn partition_by_default() -> Partitioner {
    Arc::new(|joint, _| default_partition(joint))
}

/// Saves as little as it can.
pub fn partition_by_min_cut() -> Partitioner {
    Arc::new(|joint, options| min_cut_partition(joint, MinCut { memory_budget: options.memory_budget }))
}

/// A backend that differentiates ahead of time and compiles both halves with one compiler.
pub fn aot_autograd(compiler: GraphCompiler) -> AotAutograd {
    AotAutograd {
        fw_compiler: compiler.clone(),
        bw_compiler: compiler,
        partition_fn: partition_by_min_cut(),
        decompositions: Table::Composite,
        keep_inference_input_mutations: false,
    }
}

impl AotAutograd {
    /// With another compiler for the backward graph.
    #[must_use]
    pub fn bw_compiler(self, bw_compiler: GraphCompiler) -> Self {
        Self { bw_compiler, ..self }
    }

    /// With another partitioner.
    #[must_use]
    pub fn partition_fn(self, partition_fn: Partitioner) -> Self {
        Self { partition_fn, ..self }
    }

    /// With a table of decompositions.
    #[must_use]
    pub fn decompositions(self, decompositions: Table) -> Self {
        Self { decompositions, ..self }
    }

    /// With writes to inputs kept in the graph where there is no backward half.
    #[must_use]
    pub fn keep_inference_input_mutations(self, keep: bool) -> Self {
        Self { keep_inference_input_mutations: keep, ..self }
    }

    /// The backend of this pipeline.
    pub fn backend(self, name: &str, help: &str) -> Backend {
        Backend::new(name, help, move |graph, options| self.compile(&graph, options))
    }

    /// Compiles a program.
    pub fn compile(&self, graph: &Graph, options: &Options) -> Result<Box<dyn Executable>, NodeError> {
        let _graph = named_for_trace();
        let stages = Stages::of(graph, &self.partition_fn, self.decompositions, options)?;
        let constants = graph.constants().clone();
        let mut times = stages.times;
        let mut timed = Timer { times: &mut times };
        // Decisions are numbered through: the halves go on where the stages, and the other half, stopped.
        let mut rewrites = stages.rewrites;
        let mut compile = |compiler: &GraphCompiler, half: &str, graph: Graph| {
            let _half = pyrite_trace::graph(|| {
                format!("{}_{half}", pyrite_trace::current_graph().as_deref().unwrap_or("model"))
            });
            let left = options.rewrites.map(|limit| limit.saturating_sub(rewrites.len() as u64));
            let compiled = compiler(graph, &Options { rewrites: left, ..options.clone() })?;
            rewrites.extend_from_slice(compiled.rewrites());
            Ok::<_, NodeError>(compiled)
        };
        let (forward, backward) = match stages.partition {
            Some(partition) => {
                let forward =
                    timed.measure("forward", || compile(&self.fw_compiler, "forward", partition.forward.clone()))?;
                let backward =
                    timed.measure("backward", || compile(&self.bw_compiler, "backward", partition.backward.clone()))?;
                (forward, Some(Arc::new(Half { compiled: backward, partition })))
            }
            None if self.keep_inference_input_mutations => {
                let written = with_writes(&stages.functional)?;
                (timed.measure("forward", || compile(&self.fw_compiler, "forward", written))?, None)
            }
            None => (
                timed.measure("forward", || compile(&self.fw_compiler, "forward", stages.functional.graph.clone()))?,
                None,
            ),
        };
        pyrite_trace::flush();
        let parameters = graph.parameters().cloned().collect();
        // The stages have assumed more of symbolic sizes than the program did.
        let contract = stages.functional.contract_with(graph);
        Ok(Box::new(AotExecutable {
            functional: Arc::new(Functional { contract, ..stages.functional }),
            forward,
            backward,
            constants,
            parameters,
            seed: options.seed,
            rewrites,
            times,
        }))
    }
}

/// The graphs of the pipeline, for compiling and for showing.
pub struct Stages {
    /// The program without writes. With a backward half its graph is that of the program before decomposition.
    pub functional: Functional,
    /// Outputs and gradients in one, decomposed, where a gradient is wanted.
    pub joint: Option<Joint>,
    /// The joint graph in two.
    pub partition: Option<Partition>,
    /// How long each stage took, in order.
    pub times: Vec<(&'static str, Duration)>,
    /// The optional rewrites that were made, in order.
    pub rewrites: Vec<String>,
}

impl Stages {
    /// Takes a program through the pipeline.
    pub fn of(
        graph: &Graph,
        partition_fn: &Partitioner,
        decompositions: Table,
        options: &Options,
    ) -> Result<Self, NodeError> {
        let _graph = named_for_trace();
        let _stage = pyrite_trace::stage(Stage::Aot);
        tell_program(graph);
        let stages = Self::made(graph, partition_fn, decompositions, options)?;
        stages.tell();
        Ok(stages)
    }

    fn made(
        graph: &Graph,
        partition_fn: &Partitioner,
        decompositions: Table,
        options: &Options,
    ) -> Result<Self, NodeError> {
        let mut times = Vec::new();
        let mut timed = Timer { times: &mut times };
        let mut gate = options.gate().logged();
        let graph = timed.run("autocast", || autocast::lower(graph, registry()))?;
        let parameters: Vec<Arc<str>> = graph.parameters().cloned().collect();
        let mut functional = timed.run("functionalize", || functionalize(&graph, registry(), &parameters))?;
        functional.graph = timed.run("dead-code", || Ok(cleanup::dead_code(&functional.graph)))?;
        let wants = functional
            .graph
            .placeholders()
            .any(|(_, node)| matches!(&node.meta, Some(Value::Tensor(meta)) if meta.requires_grad));
        if !wants || options.direction == Direction::Forward {
            functional.graph = timed.run("decompose", || {
                decompose(&functional.graph, registry(), decompositions, options.random, &mut gate)
            })?;
            functional.graph = timed.run("clean-up", || Ok(cleaned(&functional.graph, &mut gate)))?;
            return Ok(Self { functional, joint: None, partition: None, times, rewrites: gate.into_log() });
        }
        let returned = functional.differentiable();
        let mut joint =
            timed.run("joint", || joint_of(&functional.graph, registry(), &|output| returned.contains(&output)))?;
        if joint.tangents.is_empty() {
            functional.graph = timed.run("decompose", || {
                decompose(&functional.graph, registry(), decompositions, options.random, &mut gate)
            })?;
            return Ok(Self { functional, joint: None, partition: None, times, rewrites: gate.into_log() });
        }
        joint.graph = timed
            .run("decompose", || decompose(&joint.graph, registry(), decompositions, options.random, &mut gate))?;
        joint.graph = timed.run("clean-up", || Ok(cleaned_joint(&joint, &mut gate)))?;
        let partition = timed.run("partition", || Ok(partition_fn(&joint, options)))?;
        Ok(Self { functional, joint: Some(joint), partition: Some(partition), times, rewrites: gate.into_log() })
    }

    /// Tells the trace of the graphs.
    fn tell(&self) {
        let told = |topic, graph, file| tell(topic, graph, move |graph| Event::Graph(dump(graph, file)));
        told(Topic::GraphTransformed, &self.functional.graph, "graph_transformed.py");
        if let Some(joint) = &self.joint {
            told(Topic::AotGraphs, &joint.graph, "joint.py");
        }
        match &self.partition {
            Some(halves) => {
                told(Topic::AotGraphs, &halves.forward, "forward.py");
                told(Topic::AotGraphs, &halves.backward, "backward.py");
            }
            None => told(Topic::AotGraphs, &self.functional.graph, "forward.py"),
        }
    }
}

/// Gives the graph at work a name, unless whoever captured it has.
fn named_for_trace() -> pyrite_trace::Scope {
    pyrite_trace::graph(|| {
        pyrite_trace::current_graph().map_or_else(|| pyrite_trace::graph_name("model"), |name| name.to_string())
    })
}

/// Traces a program before any stage.
fn tell_program(graph: &Graph) {
    tell(Topic::GraphCode, graph, |graph| Event::Graph(dump(graph, "graph_readable.py")));
    tell(Topic::GraphRunnable, graph, |graph| {
        let row = Topic::GraphRunnable.row();
        let metadata = vec![("pyrite".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        let text = runnable(graph, metadata);
        Event::Artifact(Artifact { name: row.name.to_owned(), file: row.file.to_owned(), text })
    });
}

/// A graph without dead code and without what is computed twice.
pub(crate) fn cleaned(graph: &Graph, gate: &mut pyrite_passes::Gate) -> Graph {
    cleanup::dead_code(&cleanup::common_subexpressions(&cleanup::dead_code(graph), gate))
}

/// The same for a joint graph. What derivative rules compute from an input is computed from what the input is at the time of
/// the backward pass, so it is not what the forward half computed from it.
fn cleaned_joint(joint: &Joint, gate: &mut pyrite_passes::Gate) -> Graph {
    let graph = cleanup::dead_code(&joint.graph);
    let (primals, tangents): (Vec<_>, Vec<_>) =
        graph.placeholders().map(|(id, _)| id).enumerate().partition(|(index, _)| *index < joint.primals);
    let Some((_, border)) = tangents.first().copied() else { return cleaned(&graph, gate) };
    let is_reread =
        |id: NodeId| primals.iter().any(|(index, primal)| *primal == id && joint.reads[*index] != Read::Storage);
    let stays_apart = |earlier: NodeId, later: NodeId| {
        let node = graph.node(later);
        let is_view = matches!(&node.kind, Kind::Call(Target::Op(op)) if op.schema.returns.iter().any(|given| given.alias.is_some()));
        let mut reads = false;
        node.each_input(&mut |input| reads |= is_reread(input));
        earlier < border && border < later && reads && !is_view
    };
    cleanup::dead_code(&cleanup::common_subexpressions_but(&graph, gate, &stays_apart))
}

struct Timer<'a> {
    times: &'a mut Vec<(&'static str, Duration)>,
}

impl Timer<'_> {
    /// Times a step of this stage, for the trace too.
    fn run<T>(&mut self, name: &'static str, f: impl FnOnce() -> Result<T, NodeError>) -> Result<T, NodeError> {
        let _step = pyrite_trace::step(name);
        self.measure(name, f)
    }

    /// Times what tells the trace of itself.
    fn measure<T>(&mut self, name: &'static str, f: impl FnOnce() -> Result<T, NodeError>) -> Result<T, NodeError> {
        let start = Instant::now();
        let result = f();
        self.times.push((name, start.elapsed()));
        result
    }
}

/// The functional graph with a copy into each written input at its end.
fn with_writes(functional: &Functional) -> Result<Graph, NodeError> {
    let copy = registry().get("aten.copy_.default").ok_or_else(|| OpError::fault("aten.copy_ is missing"))?;
    let mut patch = pyrite_ir::Patch::new(&functional.graph, "input-writes");
    let graph = &functional.graph;
    let inputs: Vec<_> = graph.placeholders().map(|(id, _)| id).collect();
    let Some((end, _)) = graph.nodes().last() else { return Ok(graph.clone()) };
    let Value::List(returned) = graph.output() else { return Ok(graph.clone()) };
    for (position, content) in functional.written.iter().zip(returned) {
        let args = vec![Value::Tensor(inputs[*position]), content.clone(), false.into()];
        let node = pyrite_ir::Node {
            meta: graph.node(inputs[*position]).meta.clone(),
            ..pyrite_ir::Node::new("copy_", pyrite_ir::Kind::Call(pyrite_ir::Target::Op(copy.clone())), args)
        };
        patch.insert_before(end, node);
    }
    let mut written = graph.clone();
    written.apply(&patch).map_err(|error| OpError::fault(error.to_string()))?;
    Ok(written)
}

/// The backward half, compiled.
struct Half {
    compiled: Arc<dyn Compiled>,
    partition: Partition,
}

struct AotExecutable {
    functional: Arc<Functional>,
    forward: Arc<dyn Compiled>,
    backward: Option<Arc<Half>>,
    constants: BTreeMap<Arc<str>, Tensor>,
    parameters: Vec<Arc<str>>,
    seed: u64,
    rewrites: Vec<String>,
    times: Vec<(&'static str, Duration)>,
}

impl Executable for AotExecutable {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let own = &mut TorchGenerator::new(self.seed);
        let random = random.unwrap_or(own);
        let count = inputs.len();
        let entered = self.functional.enter_owned(inputs, &self.constants)?;
        let keep = self.functional.keeps(&entered);
        let sizes = self.functional.sizes(&entered)?;
        let mut results = self.forward.run(entered, random, observe)?;
        let produced = self.functional.resolved(sizes, &results)?;
        let Some(half) = &self.backward else {
            let outputs = self.functional.leave_as(&produced, &keep, results)?;
            return Ok(Forward { outputs, backward: None });
        };
        let saved =
            self.functional.written.iter().try_fold(results.split_off(half.partition.outputs), |saved, position| {
                unwritten(saved, &keep[*position])
            })?;
        let outputs = self.functional.leave_as(&produced, &keep, results)?;
        let backward = AotBackward {
            half: half.clone(),
            functional: self.functional.clone(),
            saved,
            random: random.clone(),
            inputs: count,
            parameters: self.parameters.clone(),
        };
        Ok(Forward { outputs, backward: Some(Box::new(backward)) })
    }

    fn prepare(&self, inputs: &[Value<Tensor>]) -> Option<Box<dyn Prepared>> {
        if !self.functional.passes_inputs_on() {
            return None;
        }
        let forward = self.forward.clone().prepare(inputs.to_vec())?;
        let backward = self.backward.clone().map(|half| (half, self.parameters.clone()));
        Some(Box::new(AotPrepared { functional: self.functional.clone(), forward, backward, inputs: inputs.len() }))
    }

    fn contract(&self) -> Option<&Contract> {
        Some(&self.functional.contract)
    }

    fn rewrites(&self) -> &[String] {
        &self.rewrites
    }

    fn times(&self) -> &[(&'static str, Duration)] {
        &self.times
    }

    fn graphs(&self) -> Vec<(String, Graph)> {
        match &self.backward {
            Some(half) => vec![
                ("forward".to_owned(), half.partition.forward.clone()),
                ("backward".to_owned(), half.partition.backward.clone()),
            ],
            None => vec![("forward".to_owned(), self.functional.graph.clone())],
        }
    }
}

/// A program that only reads its inputs, prepared.
struct AotPrepared {
    functional: Arc<Functional>,
    forward: Box<dyn PreparedGraph>,
    /// The backward half with the program's parameters, where something wants a gradient.
    backward: Option<(Arc<Half>, Vec<Arc<str>>)>,
    inputs: usize,
}

impl Prepared for AotPrepared {
    fn replace(&mut self, index: usize, input: &Tensor) -> bool {
        self.forward.replace(index, input)
    }

    fn run(&mut self, random: &mut TorchGenerator, observe: &mut Observer<'_>) -> Result<Forward, NodeError> {
        let mut results = self.forward.run(random, observe)?;
        let backward = self.backward.as_ref().map(|(half, parameters)| {
            let backward: Box<dyn Backward> = Box::new(AotBackward {
                half: half.clone(),
                functional: self.functional.clone(),
                saved: results.split_off(half.partition.outputs),
                random: random.clone(),
                inputs: self.inputs,
                parameters: parameters.clone(),
            });
            backward
        });
        Ok(Forward { outputs: self.functional.leave(&[], results)?, backward })
    }
}

/// What a tensor that lies in an input is once the input lies elsewhere; `None` where that cannot be said.
fn renewed(tensor: &Tensor, before: &Tensor, now: &Tensor) -> Option<Tensor> {
    if before.dtype() != now.dtype() || before.shape() != now.shape() {
        return None;
    }
    let (layout, from, to) = (tensor.layout(), before.layout(), now.layout());
    if layout == from {
        return Some(now.clone());
    }
    let offset = layout.offset - from.offset + to.offset;
    let moved = Layout { offset, ..layout.clone() };
    (from.stride == to.stride && tensor.dtype() == now.dtype()).then(|| now.view(now.dtype(), moved).ok())?
}

/// Values that a write to a tensor leaves alone: those that share its memory are copied.
fn unwritten(values: Vec<Value<Tensor>>, written: &Value<Tensor>) -> Result<Vec<Value<Tensor>>, OpError> {
    let Value::Tensor(written) = written else { return Ok(values) };
    let apart = |value: Value<Tensor>| match value {
        Value::Tensor(tensor) if tensor.storage().same(written.storage()) => Ok(Value::Tensor(copied(&tensor)?)),
        other => Ok(other),
    };
    values.into_iter().map(apart).collect()
}

/// Saved values in the memory that its owners have now.
pub(crate) fn current(saved: Vec<Value<Tensor>>) -> Result<Vec<Value<Tensor>>, OpError> {
    let now = |value: Value<Tensor>| match value {
        Value::Tensor(tensor) => tensor.current().map(Value::Tensor).map_err(|error| {
            OpError::invalid(format!(
                "memory that the backward graph reads was freed or resized after the forward call: {error}"
            ))
        }),
        other => Ok(other),
    };
    saved.into_iter().map(now).collect()
}

#[derive(Clone)]
struct AotBackward {
    half: Arc<Half>,
    functional: Arc<Functional>,
    saved: Vec<Value<Tensor>>,
    random: TorchGenerator,
    inputs: usize,
    parameters: Vec<Arc<str>>,
}

impl Backward for AotBackward {
    fn wanted(&self) -> Vec<usize> {
        self.functional.leaves_of(&self.half.partition.tangents)
    }

    fn again(&self) -> Box<dyn Backward> {
        Box::new(self.clone())
    }

    fn hold_saved(&mut self, held: &mut dyn FnMut(&Tensor) -> Option<Tensor>) -> bool {
        for saved in &mut self.saved {
            match saved {
                Value::Tensor(tensor) => {
                    if let Some(held) = held(tensor) {
                        *tensor = held;
                    }
                }
                Value::List(_) => return false,
                _ => {}
            }
        }
        true
    }

    fn replace(&mut self, inputs: &[(usize, Tensor, Tensor)]) -> Result<(), OpError> {
        for (saved, primal) in self.saved.iter_mut().zip(&self.half.partition.saved_primals) {
            let (Value::Tensor(tensor), Some((primal, read))) = (&*saved, primal) else { continue };
            let InputSource::Input(input) = &self.functional.sources[*primal] else { continue };
            let Some((_, before, now)) = inputs.iter().find(|(index, ..)| index == input) else { continue };
            let renewed = match read {
                Read::Storage => continue,
                Read::Itself => renewed(tensor, before, now),
                Read::Both => None,
            };
            *saved = Value::Tensor(renewed.ok_or_else(|| {
                OpError::invalid(format!(
                    "input {input} was modified after the forward call, and the backward graph needs it; call the program again"
                ))
            })?);
        }
        Ok(())
    }

    fn run(
        mut self: Box<Self>,
        tangents: Vec<Tensor>,
        observe: &mut Observer<'_>,
    ) -> Result<InputGradients, NodeError> {
        let mut inputs = current(std::mem::take(&mut self.saved))?;
        inputs.extend(tangents.into_iter().map(Value::Tensor));
        let gradients = self.half.compiled.run(inputs, &mut self.random, observe)?;
        Ok(gradients_of(&self.functional, &self.parameters, self.inputs, &gradients))
    }
}
