//! Graphs with calls that Pyrite knows nothing of, or with sizes that depend on data: a backend compiles what lies between them,
//! torch runs them.
//!
//! Invariants: what an opaque call gives has the strides that the next part was compiled for; a graph with custom operators that
//! write is torch's as a whole, because a write is seen across parts.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyrite_ir::{Graph as Ir, Kind, NodeId, Target, Value};
use pyrite_passes::partition::{Runner, partition};
use pyrite_sym::SymInt;
use rustc_hash::FxHashMap;

use crate::crash;
use crate::debug_wrapper;
use crate::errors;
use crate::graph::{Graph, graph_of};
use crate::program::{Program, describe, find, use_cache};
use crate::torch_interpreter::{Maker, TorchProgram};

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
    /// The strides of what an opaque call gives, where a compiled part relies on them; `None` for what has sizes that depend on
    /// data, which no compiled part takes.
    strides: Option<Vec<Option<Py<PyTuple>>>>,
}

/// The strides of what a part gives.
fn strides(py: Python<'_>, graph: &Ir, gives: &[NodeId]) -> PyResult<Vec<Option<Py<PyTuple>>>> {
    let of = |id: &NodeId| {
        let stride: Option<Vec<i64>> = match &graph.node(*id).meta {
            Some(Value::Tensor(meta)) if meta.shape.iter().all(|size| size.as_int().is_some()) => {
                meta.stride.iter().map(SymInt::as_int).collect()
            }
            _ => None,
        };
        stride.map(|stride| Ok(PyTuple::new(py, stride)?.unbind())).transpose()
    };
    gives.iter().map(of).collect()
}

/// Whether a custom operator of a graph writes, by its schema.
fn writes(py: Python<'_>, graph: &Ir) -> PyResult<bool> {
    let question = py.import("pyrite._opaque")?.getattr("written")?;
    let maker = Maker::new(py, graph)?;
    for (_, node) in graph.nodes() {
        if let Kind::Call(Target::Opaque(name)) = &node.kind
            && name.starts_with("torch.ops.")
        {
            let told = question.call1((maker.dotted(name)?,))?;
            if told.is_none() || told.len()? > 0 {
                return Ok(true);
            }
        }
    }
    Ok(false)
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
    crash::watch(py)?;
    let found = find(backend)?;
    let mut graph = graph.graph;
    describe(&mut graph, example_inputs)?;
    let outputs = match graph.output() {
        Value::List(items) => items.iter().map(|item| item.as_tensor().copied()).collect(),
        other => other.as_tensor().copied().map(|one| vec![one]),
    };
    let constant = |id: &NodeId| matches!(graph.node(*id).kind, Kind::GetAttr(_));
    let whole = writes(py, &graph)?;
    let (Some(parts), Some(outputs)) =
        (partition(&graph).filter(|_| !whole), outputs.filter(|outputs: &Vec<NodeId>| !outputs.iter().any(constant)))
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
        let takes = part.inputs.iter().map(|id| places[id]).collect();
        for id in &part.outputs {
            let place = places.len();
            places.insert(*id, place);
        }
        let (program, strides) = match part.runner {
            Runner::Opaque => {
                let program = Py::new(py, TorchProgram::new(py, &part.graph)?)?.into_any();
                (program, Some(strides(py, &graph, &part.outputs)?))
            }
            Runner::Backend => {
                let compiled = py.detach(|| errors::guarded(|| Program::compile(part.graph, &found, &settings)));
                (Py::new(py, compiled.map_err(|error| errors::uncompiled(py, &error))?)?.into_any(), None)
            }
        };
        let gives = part.outputs.iter().map(|id| places[id]).collect();
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
                values[*place] = match part.strides.as_ref().and_then(|strides| strides[index].as_ref()) {
                    Some(stride) => self.laid_out.bind(py).call1((value, stride.bind(py)))?,
                    None => value,
                };
            }
        }
        Ok(PyList::new(py, self.outputs.iter().map(|place| values[*place].clone()))?.into_any())
    }

    /// How many parts there are: those of the backend, and those of torch.
    #[getter]
    fn parts(&self) -> (usize, usize) {
        let opaque = self.parts.iter().filter(|part| part.strides.is_some()).count();
        (self.parts.len() - opaque, opaque)
    }

    fn __repr__(&self) -> String {
        format!("<pyrite.MixedProgram of {} arguments>", self.arity)
    }
}
