//! The compiler of graphs that does nothing: what comes out is interpreted.

use std::sync::Arc;

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{Graph, NodeError, OpError, Operator, Value};
use pyrite_ops::registry;
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

use crate::aot::{Compiled, GraphCompiler};
use crate::backend::{CallMode, CrossReference, Observer};

/// Interprets graphs in a mode; in that of the options where none is given.
pub fn interpreted(mode: Option<Mode>) -> GraphCompiler {
    Arc::new(move |graph, options| {
        let mode = mode.unwrap_or(options.mode);
        Ok(Arc::new(Interpreted { graph, mode, cross_reference: options.cross_reference.clone(), call_mode: None }))
    })
}

/// Interprets graphs, telling the mode of the options every call.
pub(super) fn with_call_mode() -> GraphCompiler {
    Arc::new(|graph, options| {
        Ok(Arc::new(Interpreted {
            graph,
            mode: options.mode,
            cross_reference: CrossReference::default(),
            call_mode: options.call_mode.clone(),
        }))
    })
}

struct Interpreted {
    graph: Graph,
    mode: Mode,
    cross_reference: CrossReference,
    call_mode: Option<CallMode>,
}

impl Compiled for Interpreted {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<Value<Tensor>>, NodeError> {
        let unchecked = |op: &Operator| {
            let built_in = ["aten.", "prims.", "_operator."].iter().any(|namespace| op.name().starts_with(namespace));
            (self.cross_reference.custom_only && built_in)
                || self.cross_reference.ignore.as_ref().is_some_and(|ignore| ignore(op))
        };
        let mut told = |node: &pyrite_ir::Node, value: &Value<Tensor>| {
            if let (Some(mode), pyrite_ir::Kind::Call(_)) = (&self.call_mode, &node.kind) {
                mode(node, value);
            }
            observe(node, value);
        };
        run_graph(&self.graph, inputs, random, self.mode, &unchecked, &mut told)
    }
}

/// Interprets a graph that returns a flat list; the generator goes on from where it is.
pub(super) fn run_graph(
    graph: &Graph,
    inputs: Vec<Value<Tensor>>,
    random: &mut TorchGenerator,
    mode: Mode,
    unchecked: &dyn Fn(&Operator) -> bool,
    observe: &mut Observer<'_>,
) -> Result<Vec<Value<Tensor>>, NodeError> {
    let context = Context { unchecked: Some(unchecked), ..Context::with_generator(registry(), random.clone()) };
    let result =
        Interpreter { context: &context, mode }.run_observed(graph, inputs, &mut |_, node, value| observe(node, value));
    *random = context.rng.into_inner();
    match result? {
        Value::List(items) => Ok(items),
        other => Err(OpError::fault(format!("a functional graph returned {}", other.kind())).into()),
    }
}
