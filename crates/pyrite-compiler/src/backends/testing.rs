//! Backends that fail on purpose, for testing what looks for failures.
//!
//! Each fails at one stage where the program contains a relu (or, for the last, where an input is not a leaf of the
//! autograd graph), and is `eager` otherwise.

use std::hash::{BuildHasher, RandomState};

use pyrite_ir::{Graph, Kind, Node, NodeError, OpError, Patch, Target, Value};
use pyrite_ops::registry;
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

use super::eager;
use crate::backend::{Backend, Executable, Forward, Observer, Options};

pub(super) fn backends() -> Vec<Backend> {
    vec![
        Backend::new(
            "relu_compile_error_TESTING_ONLY",
            "for tests: fails to compile a graph with relu",
            |graph, options| match relu(&graph) {
                Some(node) => Err(NodeError::at(node, OpError::invalid("relu is refused by a backend for tests"))),
                None => eager::compile(&graph, options, options.mode),
            },
        ),
        Backend::new(
            "relu_runtime_error_TESTING_ONLY",
            "for tests: fails when a graph with relu runs",
            |graph, options| {
                let failing = relu(&graph).cloned();
                let inner = eager::compile(&graph, options, options.mode)?;
                Ok(Box::new(Failing { inner, failing }))
            },
        ),
        Backend::new("relu_accuracy_error_TESTING_ONLY", "for tests: adds one to every relu", |graph, options| {
            eager::compile(&shifted(&graph)?, options, options.mode)
        }),
        Backend::new(
            "relu_flaky_error_TESTING_ONLY",
            "for tests: fails one time in five when a graph with relu runs",
            |graph, options| {
                let failing = relu(&graph).filter(|_| one_time_in_five()).cloned();
                let inner = eager::compile(&graph, options, options.mode)?;
                Ok(Box::new(Failing { inner, failing }))
            },
        ),
        Backend::new(
            "non_leaf_compile_error_TESTING_ONLY",
            "for tests: fails to compile where an input is not a leaf of the autograd graph",
            |graph, options| non_leaf(&graph, options),
        ),
    ]
}

fn is_relu(node: &Node) -> bool {
    matches!(&node.kind, Kind::Call(target) if matches!(target.name(), "aten.relu.default" | "aten.relu_.default"))
}

fn relu(graph: &Graph) -> Option<&Node> {
    graph.nodes().map(|(_, node)| node).find(|node| is_relu(node)).or_else(|| graph.subgraphs().values().find_map(relu))
}

/// By the randomness that every hash map of the standard library is seeded with.
fn one_time_in_five() -> bool {
    RandomState::new().hash_one(0).is_multiple_of(5)
}

struct Failing {
    inner: Box<dyn Executable>,
    failing: Option<Node>,
}

impl Executable for Failing {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        match &self.failing {
            Some(node) => Err(NodeError::at(node, OpError::invalid("relu is refused by a backend for tests"))),
            None => self.inner.run(inputs, random, observe),
        }
    }
}

/// The graph with one added to the result of every relu.
fn shifted(graph: &Graph) -> Result<Graph, NodeError> {
    let fault = |what: &str| NodeError::from(OpError::fault(what.to_owned()));
    let add = registry().get("aten.add.Tensor").ok_or_else(|| fault("aten.add is missing"))?;
    let mut patch = Patch::new(graph, "relu-accuracy-error");
    let nodes: Vec<_> = graph.nodes().collect();
    for (position, (id, node)) in nodes.iter().enumerate() {
        let (true, Some((next, _))) = (is_relu(node), nodes.get(position + 1)) else { continue };
        let args = vec![Value::Tensor(*id), 1i64.into(), 1i64.into()];
        let wrong = Node {
            meta: node.meta.clone(),
            span: node.span,
            ..Node::new("wrong", Kind::Call(Target::Op(add.clone())), args)
        };
        let wrong = patch.insert_before(*next, wrong);
        patch.replace_uses(*id, Value::Tensor(wrong));
    }
    let mut shifted = graph.clone();
    shifted.apply(&patch).map_err(|error| fault(&error.to_string()))?;
    Ok(shifted)
}

fn non_leaf(graph: &Graph, options: &Options) -> Result<Box<dyn Executable>, NodeError> {
    let guilty = graph
        .placeholders()
        .map(|(_, node)| node)
        .find(|node| matches!(&node.meta, Some(Value::Tensor(meta)) if !meta.is_leaf));
    match guilty {
        Some(node) => {
            Err(NodeError::at(node, OpError::invalid("an input that is not a leaf is refused by a backend for tests")))
        }
        None => eager::compile(graph, options, options.mode),
    }
}
