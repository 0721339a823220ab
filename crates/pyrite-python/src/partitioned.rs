//! Graphs with calls that Pyrite knows nothing of: a backend compiles what lies between them, torch runs them.
//!
//! A graph is cut into parts where known operators and opaque calls meet. Parts run in the order of the graph and hand
//! tensors on; gradients flow through each part's own autograd.
//!
//! Invariants: no part writes to what another part sees, so graphs that write are not cut but run by torch as a whole, and
//! so are those with symbolic sizes or switches of grad mode and autocast; what an opaque call gives has the strides that
//! the next part was compiled for.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyrite_ir::{Builder, Graph as Ir, Kind, Meta, NodeId, Switch, Target, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::debug_wrapper;
use crate::errors;
use crate::graph::{Graph, graph_of};
use crate::program::{Program, describe, find, use_cache};
use crate::torch_interpreter::TorchProgram;

/// Who runs a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    Backend,
    Torch,
}

/// A part of a graph, and which values of the whole it takes and gives.
struct Part {
    runner: Runner,
    graph: Ir,
    takes: Vec<NodeId>,
    gives: Vec<NodeId>,
}

/// A program of parts: call it with one argument per placeholder, and it returns the list of the graph's outputs.
#[pyclass(module = "pyrite._native", frozen, weakref)]
pub struct MixedProgram {
    parts: Vec<Step>,
    /// How many values there are; inputs come first.
    values: usize,
    arity: usize,
    outputs: Vec<usize>,
    /// The function that gives a result the strides it is said to have.
    laid_out: Py<PyAny>,
}

/// A part that can be run.
struct Step {
    program: Py<PyAny>,
    takes: Vec<usize>,
    gives: Vec<usize>,
    /// The strides of what an opaque call gives, where a compiled part relies on them.
    strides: Option<Vec<Py<PyTuple>>>,
}

/// Why a graph cannot be cut: nothing needs to know.
struct Whole;

/// Whether a graph, or one inside of it, writes to a tensor or switches a mode.
fn writes(graph: &Ir) -> bool {
    let acts = |node: &pyrite_ir::Node| match &node.kind {
        Kind::Call(Target::Op(op)) => op.schema.is_mutable(),
        Kind::Call(Target::Opaque(_)) => Switch::of(node).is_some(),
        _ => false,
    };
    graph.nodes().any(|(_, node)| acts(node)) || graph.subgraphs().values().any(writes)
}

/// The parts of a graph in order.
fn cut(graph: &Ir) -> Result<Vec<Part>, Whole> {
    let numeric = |meta: &Meta| meta.shape.iter().chain(&meta.stride).all(|size| size.as_int().is_some());
    if graph.subgraphs().values().any(writes) {
        return Err(Whole);
    }
    let mut wants_gradients = false;
    let mut runs: Vec<(Runner, Vec<NodeId>)> = Vec::new();
    let mut run_of: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (id, node) in graph.nodes() {
        match (&node.kind, &node.meta) {
            (Kind::Placeholder, Some(Value::Tensor(meta))) if numeric(meta) => wants_gradients |= meta.requires_grad,
            (Kind::Placeholder, _) => return Err(Whole),
            (Kind::Call(target), _) => {
                let runner = match target {
                    Target::Op(op) if op.schema.is_mutable() => return Err(Whole),
                    Target::Opaque(_) if Switch::of(node).is_some() => return Err(Whole),
                    // A hook sees the gradient of all that is computed from a tensor.
                    Target::Opaque(name) if &**name == "pyrite.higher_order.register_hook" => return Err(Whole),
                    Target::Opaque(_) => Some(Runner::Torch),
                    Target::Op(_) => Some(Runner::Backend),
                    Target::GetItem => None,
                };
                // An item is picked where its list is made.
                let list = node.args.first().and_then(Value::as_tensor).and_then(|list| run_of.get(list).copied());
                let run = match (runner, list) {
                    (None, Some(run)) => run,
                    (runner, _) => {
                        let runner = runner.unwrap_or(Runner::Backend);
                        if runs.last().is_none_or(|(last, _)| *last != runner) {
                            runs.push((runner, Vec::new()));
                        }
                        runs.len() - 1
                    }
                };
                runs[run].1.push(id);
                run_of.insert(id, run);
            }
            (Kind::GetAttr(_) | Kind::Output, _) => {}
        }
    }
    let mut needed: FxHashSet<NodeId> = FxHashSet::default();
    graph.output().each(&mut |id| {
        needed.insert(*id);
    });
    let mut parts = Vec::with_capacity(runs.len());
    for (runner, nodes) in runs.iter().rev() {
        let gives: Vec<NodeId> = nodes.iter().copied().filter(|id| needed.contains(id)).collect();
        parts.push(part(graph, *runner, nodes, gives, wants_gradients)?);
        for id in nodes {
            graph.node(*id).each_input(&mut |input| {
                needed.insert(input);
            });
        }
    }
    parts.reverse();
    Ok(parts)
}

/// The part of these nodes.
fn part(
    graph: &Ir,
    runner: Runner,
    nodes: &[NodeId],
    gives: Vec<NodeId>,
    wants_gradients: bool,
) -> Result<Part, Whole> {
    let mut builder = Builder::new();
    for (name, tensor) in graph.constants() {
        builder.add_constant(name, tensor.clone());
    }
    let mut moved: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut takes = Vec::new();
    let mut constants = Vec::new();
    let mut known: FxHashSet<NodeId> = nodes.iter().copied().collect();
    for id in nodes {
        graph.node(*id).each_input(&mut |input| {
            if known.insert(input) {
                let constant = matches!(graph.node(input).kind, Kind::GetAttr(_));
                (if constant { &mut constants } else { &mut takes }).push(input);
            }
        });
    }
    for id in &takes {
        let node = graph.node(*id);
        let Some(Value::Tensor(meta)) = &node.meta else { return Err(Whole) };
        let mut meta = meta.clone();
        if node.kind != Kind::Placeholder {
            meta.requires_grad = wants_gradients && (meta.dtype.is_float() || meta.dtype.is_complex());
            meta.is_leaf = false;
        }
        moved.insert(*id, builder.placeholder(&node.name, Some(Value::Tensor(meta))));
    }
    for id in constants.iter().chain(nodes) {
        let mut node = graph.node(*id).clone();
        for value in &node.args {
            value.each_graph(&mut |name| {
                if let Some(nested) = graph.subgraphs().get(name) {
                    builder.add_subgraph(name, nested.clone());
                }
            });
        }
        let renew = |value: &Value<NodeId>| value.map(&mut |id: &NodeId| moved[id]);
        node.args = node.args.iter().map(renew).collect();
        node.kwargs = node.kwargs.iter().map(|(key, value)| (key.clone(), renew(value))).collect();
        moved.insert(*id, builder.push(node));
    }
    if gives.iter().any(|id| !matches!(graph.node(*id).meta, Some(Value::Tensor(_)))) {
        return Err(Whole);
    }
    builder.output(Value::List(gives.iter().map(|id| Value::Tensor(moved[id])).collect()));
    Ok(Part { runner, graph: builder.finish(), takes, gives })
}

/// The strides of what a part gives.
fn strides(py: Python<'_>, graph: &Ir, gives: &[NodeId]) -> PyResult<Vec<Py<PyTuple>>> {
    let of = |id: &NodeId| {
        let stride = match &graph.node(*id).meta {
            Some(Value::Tensor(meta)) => meta.stride.iter().map(|size| size.as_int().unwrap_or(0)).collect(),
            _ => Vec::new(),
        };
        Ok(PyTuple::new(py, stride)?.unbind())
    };
    gives.iter().map(of).collect()
}

/// Compiles a graph with opaque calls: by a backend of Pyrite's where that is possible, else all of it is torch's.
#[pyfunction]
#[pyo3(signature = (graph, backend, options, example_inputs))]
pub fn compile_mixed(
    py: Python<'_>,
    #[pyo3(from_py_with = graph_of)] graph: Graph,
    backend: &str,
    options: Option<&Bound<'_, PyDict>>,
    example_inputs: &Bound<'_, PyTuple>,
) -> PyResult<Py<PyAny>> {
    let settings = crate::options::options(py, options)?;
    debug_wrapper::register_torch(py)?;
    use_cache(py)?;
    let found = find(backend)?;
    let mut graph = graph.graph;
    describe(&mut graph, example_inputs)?;
    let outputs = match graph.output() {
        Value::List(items) => items.iter().map(|item| item.as_tensor().copied()).collect(),
        other => other.as_tensor().copied().map(|one| vec![one]),
    };
    let constant = |id: &NodeId| matches!(graph.node(*id).kind, Kind::GetAttr(_));
    let (Ok(parts), Some(outputs)) =
        (cut(&graph), outputs.filter(|outputs: &Vec<NodeId>| !outputs.iter().any(constant)))
    else {
        return Ok(Py::new(py, TorchProgram::new(py, &graph)?)?.into_any());
    };
    let mut places: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (index, (id, _)) in graph.placeholders().enumerate() {
        places.insert(id, index);
    }
    let arity = places.len();
    let mut steps = Vec::with_capacity(parts.len());
    for part in parts {
        let takes = part.takes.iter().map(|id| places[id]).collect();
        for id in &part.gives {
            let place = places.len();
            places.insert(*id, place);
        }
        let (program, strides) = match part.runner {
            Runner::Torch => {
                let program = Py::new(py, TorchProgram::new(py, &part.graph)?)?.into_any();
                (program, Some(strides(py, &graph, &part.gives)?))
            }
            Runner::Backend => {
                let compiled = py.detach(|| errors::guarded(|| Program::compile(part.graph, &found, &settings)));
                (Py::new(py, compiled.map_err(|error| errors::uncompiled(py, &error))?)?.into_any(), None)
            }
        };
        let gives = part.gives.iter().map(|id| places[id]).collect();
        steps.push(Step { program, takes, gives, strides });
    }
    let outputs = outputs.iter().map(|id| places[id]).collect();
    let laid_out = py.import("pyrite._opaque")?.getattr("laid_out")?.unbind();
    Ok(Py::new(py, MixedProgram { parts: steps, values: places.len(), arity, outputs, laid_out })?.into_any())
}

#[pymethods]
impl MixedProgram {
    /// Runs the program.
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(&self, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        errors::check_arity(self.arity, arguments)?;
        let mut values: Vec<Bound<'py, PyAny>> = arguments.iter().collect();
        values.resize(self.values, py.None().into_bound(py));
        for part in &self.parts {
            let given = PyTuple::new(py, part.takes.iter().map(|place| values[*place].clone()))?;
            let made = part.program.bind(py).call1(given)?;
            for (index, place) in part.gives.iter().enumerate() {
                let value = made.get_item(index)?;
                values[*place] = match &part.strides {
                    Some(strides) => self.laid_out.bind(py).call1((value, strides[index].bind(py)))?,
                    None => value,
                };
            }
        }
        Ok(PyList::new(py, self.outputs.iter().map(|place| values[*place].clone()))?.into_any())
    }

    /// How many parts there are: those of the backend, and those of torch.
    #[getter]
    fn parts(&self) -> (usize, usize) {
        let foreign = self.parts.iter().filter(|part| part.strides.is_some()).count();
        (self.parts.len() - foreign, foreign)
    }

    fn __repr__(&self) -> String {
        format!("<pyrite.MixedProgram of {} arguments>", self.arity)
    }
}
