//! Running a program as it stands.
//!
//! Forward, the interpreter runs the captured graph itself, writes included. Gradients come from the joint graph of the
//! functionalized program, interpreted as a whole on the inputs as they were before the run: nothing is decomposed
//! beyond what derivatives need, and nothing is partitioned.

use std::sync::Arc;

use pyrite_autograd::{Joint, joint_of};
use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Contract, Graph, NodeError, OpError, Tracer, Value};
use pyrite_ops::registry;
use pyrite_passes::functionalize::InputSource;
use pyrite_passes::{Functional, autocast, functionalize, replay};
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{Layout, Tensor};

use super::interpreted::run_graph;
use crate::aot::current;
use crate::backend::{Backward, Direction, Executable, Forward, InputGradients, Observer, Options};

/// Interprets a program in a mode.
pub(super) fn compile(graph: &Graph, options: &Options, mode: Mode) -> Result<Box<dyn Executable>, NodeError> {
    let graph = autocast::lower(graph, registry())?;
    let derivative = if wants_gradient(&graph) && options.direction == Direction::ForwardAndBackward {
        let parameters: Vec<Arc<str>> = graph.parameters().cloned().collect();
        let functional = functionalize(&graph, registry(), &parameters)?;
        let returned = functional.differentiable();
        let joint = joint_of(&functional.graph, registry(), &|output| returned.contains(&output))?;
        (!joint.tangents.is_empty()).then(|| Arc::new(Derivative { functional, joint, parameters }))
    } else {
        None
    };
    Ok(Box::new(Eager { graph, mode, seed: options.seed, derivative }))
}

fn wants_gradient(graph: &Graph) -> bool {
    graph.parameters().next().is_some()
        || graph.placeholders().any(|(_, node)| matches!(&node.meta, Some(Value::Tensor(meta)) if meta.requires_grad))
}

/// As eager; an error while running names capture as the suspect, since the graph should not contain what raises.
pub(super) fn compile_noexcept(graph: &Graph, options: &Options) -> Result<Box<dyn Executable>, NodeError> {
    Ok(Box::new(NoExcept { inner: compile(graph, options, options.mode)? }))
}

/// As eager, on a trace of the graph.
pub(super) fn compile_retraced(graph: &Graph, options: &Options) -> Result<Box<dyn Executable>, NodeError> {
    let graph = autocast::lower(graph, registry())?;
    let traced = replay::replay(&graph, Tracer::new(registry()), &mut |tracer, _, op, args| tracer.call_op(op, args))?;
    compile(&traced, options, options.mode)
}

/// What gradients need.
struct Derivative {
    functional: Functional,
    joint: Joint,
    parameters: Vec<Arc<str>>,
}

struct Eager {
    graph: Graph,
    mode: Mode,
    seed: u64,
    derivative: Option<Arc<Derivative>>,
}

impl Executable for Eager {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let own = &mut TorchGenerator::new(self.seed);
        let random = random.unwrap_or(own);
        let context = Context::with_generator(registry(), random.clone());
        let interpreter = Interpreter { context: &context, mode: self.mode };
        let backward: Option<Box<dyn Backward>> = match &self.derivative {
            Some(derivative) => {
                let mut before = derivative.functional.enter(&inputs, self.graph.constants())?;
                for position in &derivative.functional.written {
                    if let Value::Tensor(tensor) = &before[*position] {
                        before[*position] = Value::Tensor(copied(tensor)?);
                    }
                }
                Some(Box::new(EagerBackward {
                    derivative: derivative.clone(),
                    before,
                    count: inputs.len(),
                    mode: self.mode,
                    random: random.clone(),
                }))
            }
            None => None,
        };
        let outputs = interpreter.run_observed(&self.graph, inputs, &mut |_, node, value| observe(node, value));
        *random = context.rng.into_inner();
        Ok(Forward { outputs: outputs?, backward })
    }

    fn contract(&self) -> Option<&Contract> {
        self.derivative.as_ref().map(|derivative| &derivative.functional.contract)
    }

    fn graphs(&self) -> Vec<(String, Graph)> {
        let mut graphs = vec![("forward".to_owned(), self.graph.clone())];
        graphs.extend(self.derivative.as_ref().map(|d| ("joint".to_owned(), d.joint.graph.clone())));
        graphs
    }
}

/// A copy in the same place of memory of its own.
pub(crate) fn copied(tensor: &Tensor) -> Result<Tensor, OpError> {
    let count = (tensor.storage().nbytes() / tensor.dtype().size()) as i64;
    let whole = tensor.view(tensor.dtype(), Layout::contiguous(&[count]))?;
    let copy = Tensor::empty(&[count], tensor.dtype())?;
    copy.write_from(&whole);
    Ok(copy.view(tensor.dtype(), tensor.layout().clone())?)
}

#[derive(Clone)]
struct EagerBackward {
    derivative: Arc<Derivative>,
    /// The inputs of the functional graph as they were before the run.
    before: Vec<Value<Tensor>>,
    count: usize,
    mode: Mode,
    random: TorchGenerator,
}

impl Backward for EagerBackward {
    fn wanted(&self) -> Vec<usize> {
        self.derivative.functional.leaves_of(&self.derivative.joint.tangents)
    }

    fn again(&self) -> Box<dyn Backward> {
        Box::new(self.clone())
    }

    fn run(
        mut self: Box<Self>,
        tangents: Vec<Tensor>,
        observe: &mut Observer<'_>,
    ) -> Result<InputGradients, NodeError> {
        let Derivative { functional, joint, parameters } = &*self.derivative;
        let mut inputs = current(std::mem::take(&mut self.before))?;
        inputs.extend(tangents.into_iter().map(Value::Tensor));
        let results = run_graph(&joint.graph, inputs, &mut self.random, self.mode, &|_| false, observe)?;
        Ok(gradients(functional, parameters, self.count, &results[joint.outputs..]))
    }
}

/// The gradients of a functional graph's inputs as those of the program's.
pub(crate) fn gradients(
    functional: &Functional,
    parameters: &[Arc<str>],
    inputs: usize,
    gradients: &[Value<Tensor>],
) -> InputGradients {
    let mut result = InputGradients {
        inputs: vec![None; inputs],
        parameters: parameters.iter().map(|name| (name.clone(), None)).collect(),
    };
    for (source, gradient) in functional.sources.iter().zip(gradients) {
        let Value::Tensor(gradient) = gradient else { continue };
        match source {
            InputSource::Input(index) => result.inputs[*index] = Some(gradient.clone()),
            InputSource::Constant(name) => {
                if let Some((_, place)) = result.parameters.iter_mut().find(|(known, _)| known == name) {
                    *place = Some(gradient.clone());
                }
            }
            InputSource::Storage(_) => {}
        }
    }
    result
}

/// An error of running as one of capture.
fn blamed(error: NodeError) -> NodeError {
    NodeError {
        error: OpError::fault(format!("the captured graph raised an error while running: {}", error.error)),
        ..error
    }
}

struct NoExcept {
    inner: Box<dyn Executable>,
}

impl Executable for NoExcept {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        self.inner.run(inputs, random, observe).map_err(blamed)
    }

    fn contract(&self) -> Option<&Contract> {
        self.inner.contract()
    }

    fn graphs(&self) -> Vec<(String, Graph)> {
        self.inner.graphs()
    }
}

/// A program to be run eagerly that can be written down and read again.
pub struct EagerCallable {
    text: String,
}

impl EagerCallable {
    /// Of a graph.
    pub fn new(graph: &Graph) -> Self {
        Self { text: print(graph, &PrintOptions::default()) }
    }

    /// Its text form, which PyTorch can run too.
    pub fn to_text(&self) -> &str {
        &self.text
    }

    /// From a text form.
    pub fn from_text(text: &str) -> Result<Self, OpError> {
        super::serialized::read(text)?;
        Ok(Self { text: text.to_owned() })
    }

    /// Runs it.
    pub fn call(&self, inputs: Vec<Value<Tensor>>, seed: u64) -> Result<Value<Tensor>, NodeError> {
        let graph = super::serialized::read(&self.text)?;
        let context = Context::new(registry(), seed);
        Interpreter { context: &context, mode: Mode::Eager }.run(&graph, inputs)
    }
}
