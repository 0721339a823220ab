//! Graphs as Python sees them.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Kind, Switch, Target};
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, read_path, read_text};
use pyrite_sym::SymInt;

use crate::errors;
use crate::program::compile_graph;

/// A graph of tensor operators. Its text is Python that PyTorch runs too.
#[pyclass(module = "pyrite._native", frozen)]
pub struct Graph {
    /// The graph itself.
    pub graph: pyrite_ir::Graph,
    /// Whether autograd has to see how its outputs were computed from one another.
    pub has_history: bool,
}

impl From<pyrite_ir::Graph> for Graph {
    fn from(graph: pyrite_ir::Graph) -> Self {
        Self { graph, has_history: false }
    }
}

/// A node of a graph: what FX calls its name, op and target.
#[pyclass(module = "pyrite._native", frozen, get_all)]
pub struct Node {
    /// The name, unique in the graph.
    pub name: String,
    /// `placeholder`, `get_attr`, `call_function` or `output`.
    pub op: &'static str,
    /// What is called, or the name again for what calls nothing.
    pub target: String,
}

#[pymethods]
impl Graph {
    /// Reads a graph from its text: Pyrite's, or what FX prints. Hints are values of symbolic sizes.
    #[staticmethod]
    #[pyo3(signature = (text, hints = None))]
    fn from_text(text: &str, hints: Option<BTreeMap<String, i64>>) -> PyResult<Self> {
        let options = ReadOptions { hints: hints.unwrap_or_default(), ..ReadOptions::default() };
        let read = read_text(text, None, registry(), &options).map_err(|e| errors::unreadable(&e))?;
        Ok(read.graph.into())
    }

    /// Reads a graph from a file: a repro, what FX prints, or a program of torch.export (`.pt2`), whose weights become
    /// constants. Nothing of it is executed or unpickled.
    #[staticmethod]
    fn from_file(path: std::path::PathBuf) -> PyResult<Self> {
        let read = read_path(&path, registry(), &ReadOptions::default()).map_err(|e| errors::unreadable(&e))?;
        Ok(read.graph.into())
    }

    /// Whether torch's autograd has to see the operators one by one: to know how the outputs were computed from one another,
    /// which one compiled program hides, or to make sparse gradients.
    #[getter]
    fn needs_autograd(&self) -> bool {
        self.has_history || pyrite_ir::any_true(&self.graph, "sparse")
    }

    /// The graph as Python text.
    #[getter]
    fn code(&self) -> String {
        print(&self.graph, &PrintOptions { annotations: false, ..PrintOptions::default() })
    }

    /// The text with the type, shape and strides of every value, and the user's stacks.
    fn print_readable(&self) -> String {
        print(&self.graph, &PrintOptions { stacks: true, ..PrintOptions::default() })
    }

    /// The nodes in the order they run.
    #[getter]
    fn nodes(&self) -> Vec<Node> {
        self.graph.nodes().map(|(_, node)| Node::of(node)).collect()
    }

    /// The element type and the sizes of every tensor, by the name of its node. A size that is a symbol is `None`.
    #[getter]
    fn types(&self) -> BTreeMap<String, (String, Vec<Option<i64>>)> {
        let of = |node: &pyrite_ir::Node| {
            let meta = node.meta.as_ref()?.as_tensor()?;
            Some((node.name.clone(), (meta.dtype.to_string(), meta.shape.iter().map(SymInt::as_int).collect())))
        };
        self.graph.nodes().filter_map(|(_, node)| of(node)).collect()
    }

    /// The functions that are called and that Pyrite does not know, by their dotted names.
    #[getter]
    fn opaque_ops(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .graph
            .nodes()
            .filter(|(_, node)| matches!(&node.kind, Kind::Call(Target::Opaque(_))) && Switch::of(node).is_none())
            .map(|(_, node)| Node::of(node).target)
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The operators that give numbers, or tensors of sizes that only a run can tell.
    #[getter]
    fn data_dependent_ops(&self) -> Vec<String> {
        pyrite_passes::partition::data_dependent(&self.graph).into_iter().map(str::to_owned).collect()
    }

    /// Whether gradients flow through memory that is written while none are recorded.
    #[getter]
    fn writes_behind_autograd(&self) -> bool {
        pyrite_passes::partition::writes_behind_autograd(&self.graph)
    }

    /// How many operators are called; picking an item of a list is not counted.
    #[getter]
    fn op_count(&self) -> usize {
        self.graph.nodes().filter(|(_, node)| is_operator(&node.kind)).count()
    }

    /// The graph as a `torch.fx.GraphModule`, which backends of torch.compile take.
    fn to_fx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::fx::to_fx(py, &self.graph)
    }

    /// Reads a graph from a `torch.fx.GraphModule`; its own tensors become constants.
    #[staticmethod]
    #[pyo3(signature = (module, example_inputs = None))]
    fn from_fx<'py>(
        module: &Bound<'py, PyAny>,
        example_inputs: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        module.py().import("pyrite.fx")?.call_method1("from_fx", (module, example_inputs))
    }

    /// Runs the graph eagerly.
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(&self, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let program = compile_graph(arguments.py(), self.graph.clone().into(), "eager", None, Some(arguments))?;
        Bound::new(arguments.py(), program)?.call1(arguments.clone())
    }

    fn __repr__(&self) -> String {
        format!("<pyrite.Graph of {} nodes>", self.graph.len())
    }

    fn __str__(&self) -> String {
        self.code()
    }

    /// What a notebook shows: the text with types and shapes.
    fn _repr_html_(&self) -> String {
        let text = print(&self.graph, &PrintOptions::default());
        format!("<pre>{}</pre>", text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
    }
}

/// The graph that Python gives, as it is or inside of the module that backends of torch.compile take.
pub fn graph_of(given: &Bound<'_, PyAny>) -> PyResult<Graph> {
    let inside = match given.cast::<Graph>() {
        Ok(graph) => return Ok(graph.get().graph.clone().into()),
        Err(error) => given.getattr("pyrite_graph").map_err(|_| error)?,
    };
    Ok(inside.cast::<Graph>()?.get().graph.clone().into())
}

fn is_operator(kind: &Kind) -> bool {
    matches!(kind, Kind::Call(Target::Op(_) | Target::Opaque(_)))
}

impl Node {
    fn of(node: &pyrite_ir::Node) -> Self {
        let (op, target) = match &node.kind {
            Kind::Placeholder => ("placeholder", node.name.clone()),
            Kind::GetAttr(name) => ("get_attr", name.to_string()),
            Kind::Call(target) => ("call_function", target.name().to_owned()),
            Kind::Output => ("output", "output".to_owned()),
        };
        Self { name: node.name.clone(), op, target }
    }
}

#[pymethods]
impl Node {
    fn __repr__(&self) -> String {
        format!("<{} {} {}>", self.op, self.name, self.target)
    }
}
