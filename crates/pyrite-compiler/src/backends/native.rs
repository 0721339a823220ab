//! The native compiler as a compiler of graphs.

use std::sync::Arc;

use pyrite_codegen::decisions::Decisions;
use pyrite_codegen::passes::{self, Side};
use pyrite_codegen::{Generator, Program};
use pyrite_interp::Mode;
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_ops::registry;
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

use crate::aot::{Compiled, GraphCompiler, PreparedGraph};
use crate::backend::{Observer, Options};
use crate::cache;

/// Compiles graphs to machine code. Modes of the interpreter (double precision, checks) need the interpreter, and get
/// it.
pub fn native() -> GraphCompiler {
    native_by(Generator::chosen())
}

/// The same with a certain generator of code.
pub fn native_by(generator: Generator) -> GraphCompiler {
    Arc::new(move |graph, options| {
        if options.mode != Mode::Eager {
            return super::interpreted(None)(graph, options);
        }
        match cache::shared().program(&graph, options, generator) {
            Ok((program, decisions)) => Ok(compiled(program, decisions.to_vec())),
            // Data-dependent sizes and nested graphs are interpreted.
            Err(NodeError { error: OpError::Unsupported(_), .. }) => super::interpreted(None)(graph, options),
            Err(error) => Err(error),
        }
    })
}

/// A compiled program as a half of a backend, with the decisions that were made for it.
pub fn compiled(program: Program, rewrites: Vec<String>) -> Arc<dyn Compiled> {
    Arc::new(Native { program, rewrites })
}

struct Native {
    program: Program,
    rewrites: Vec<String>,
}

impl Compiled for Native {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<Value<Tensor>>, NodeError> {
        listed(self.program.run(inputs, registry(), random, observe)?)
    }

    fn prepare(self: Arc<Self>, inputs: Vec<Value<Tensor>>) -> Option<Box<dyn PreparedGraph>> {
        let inputs = self.program.prepare(inputs)?;
        Some(Box::new(PreparedNative { native: self, inputs }))
    }

    fn rewrites(&self) -> &[String] {
        &self.rewrites
    }
}

/// A native program with inputs for many runs.
struct PreparedNative {
    native: Arc<Native>,
    inputs: pyrite_codegen::Prepared,
}

impl PreparedGraph for PreparedNative {
    fn replace(&mut self, index: usize, input: &Tensor) -> bool {
        self.native.program.replace(&mut self.inputs, index, input)
    }

    fn run(
        &mut self,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<Value<Tensor>>, NodeError> {
        listed(self.native.program.run_prepared(&mut self.inputs, registry(), random, observe)?)
    }
}

/// The results of a functional graph.
fn listed(results: Value<Tensor>) -> Result<Vec<Value<Tensor>>, NodeError> {
    match results {
        Value::List(items) => Ok(items),
        other => Err(OpError::fault(format!("a functional graph returned {}", other.kind())).into()),
    }
}

/// The schedule of a graph before or after a pass of the native compiler, as text.
pub fn schedule_at(graph: &Graph, options: &Options, side: Side, pass: &str) -> Result<String, NodeError> {
    passes::schedule_at(graph, registry(), &mut Decisions::new(&mut options.gate()), side, pass)
}

/// The decisions that the native compiler makes for a graph, in order.
pub fn decisions(graph: &Graph, options: &Options) -> Result<Vec<String>, NodeError> {
    let mut gate = options.gate().logged();
    Program::compile(graph, registry(), Generator::chosen(), &mut gate)?;
    Ok(gate.into_log())
}

/// What a graph becomes, for whoever wants to see it.
pub fn compile_native(graph: &Graph, options: &Options) -> Result<Program, NodeError> {
    Program::compile(graph, registry(), Generator::chosen(), &mut options.gate())
}
