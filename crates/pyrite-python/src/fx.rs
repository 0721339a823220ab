//! Graphs as FX graphs, which backends written for torch.compile take.
//!
//! Nodes keep their names, order and stacks; operators are torch's overloads; nested graphs are modules of the module, constants
//! its buffers. `meta["val"]` and `meta["example_value"]` say what is known of each value. A size that is a symbol is read from
//! the input that names it by a node of its own, since FX has no expressions among arguments.
//!
//! Invariant: the module leaves autocast as it finds it. An exit names its entry, and what the graph does not leave is left
//! before the output.

use std::sync::Arc;

use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice, PyTuple};
use pyrite_ir::{Graph as Ir, Kind, Meta, NodeId, Switch, Target, Type, Value};
use pyrite_sym::{Expr, SymInt};
use rustc_hash::FxHashMap;

use crate::bridge::to_torch;
use crate::capture::dtype_name;
use crate::torch_interpreter::{Maker, is_default};

/// A graph as a `torch.fx.GraphModule`.
pub fn to_fx<'py>(py: Python<'py>, graph: &Ir) -> PyResult<Bound<'py, PyAny>> {
    let torch = py.import("torch")?;
    let fx = py.import("torch.fx")?;
    let mut writer = Writer {
        py,
        graph,
        maker: Maker::new(py, graph)?,
        root: torch.getattr("nn")?.getattr("Module")?.call0()?,
        fx: fx.getattr("Graph")?.call0()?,
        nodes: FxHashMap::default(),
        sizes: FxHashMap::default(),
        entered: Vec::new(),
        ambient: ambient(&torch)?,
        describe: py.import("pyrite.fx")?.getattr("described")?,
    };
    for (id, node) in graph.nodes() {
        writer.write(id, node)?;
    }
    let name = if graph.name.is_empty() { "Repro" } else { &*graph.name };
    fx.getattr("GraphModule")?.call1((writer.root, writer.fx, name))
}

struct Writer<'a, 'py> {
    py: Python<'py>,
    graph: &'a Ir,
    maker: Maker<'a, 'py>,
    root: Bound<'py, PyAny>,
    fx: Bound<'py, PyAny>,
    nodes: FxHashMap<NodeId, Bound<'py, PyAny>>,
    /// The nodes that read symbols, by their names.
    sizes: FxHashMap<Arc<str>, Bound<'py, PyAny>>,
    /// The entries of autocast that are not left yet, the innermost last.
    entered: Vec<Bound<'py, PyAny>>,
    /// The type of autocast on the CPU while the module is written, by its name.
    ambient: Option<String>,
    describe: Bound<'py, PyAny>,
}

/// The type of autocast on the CPU, by its name, where it is on.
fn ambient(torch: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if !torch.call_method1("is_autocast_enabled", ("cpu",))?.is_truthy()? {
        return Ok(None);
    }
    let name = torch.call_method1("get_autocast_dtype", ("cpu",))?.str()?.to_string();
    Ok(Some(name.trim_start_matches("torch.").to_owned()))
}

impl<'py> Writer<'_, 'py> {
    fn write(&mut self, id: NodeId, node: &pyrite_ir::Node) -> PyResult<()> {
        let py = self.py;
        let made = match &node.kind {
            Kind::Placeholder => {
                let made = self.create("placeholder", &node.name, None, None, &node.name)?;
                self.name_symbols(&made, node)?;
                made
            }
            Kind::GetAttr(name) => {
                let constant = self.graph.constants().get(name);
                let constant = constant.ok_or_else(|| PyRuntimeError::new_err(format!("no constant `{name}`")))?;
                self.root.call_method1("register_buffer", (&**name, to_torch(py, constant)?))?;
                self.create("get_attr", &**name, None, None, &node.name)?
            }
            Kind::Call(target) => match Switch::of(node) {
                // A frame that is called under autocast enters it at the beginning of its graph: guards see to it that the
                // module is called under it, too.
                Some(Switch::EnterAutocast(Some(dtype)))
                    if self.nodes.values().all(is_placeholder)
                        && self.entered.is_empty()
                        && self.ambient.as_deref() == Some(dtype_name(dtype)) =>
                {
                    self.ambient = None;
                    return Ok(());
                }
                Some(Switch::EnterAutocast(_)) => {
                    let made = self.call(node, target)?;
                    self.entered.push(made.clone());
                    made
                }
                Some(Switch::ExitAutocast) => self.leave_autocast(&node.name)?,
                _ => self.call(node, target)?,
            },
            Kind::Output => {
                while !self.entered.is_empty() {
                    self.leave_autocast("exit_autocast")?;
                }
                let outputs = match self.graph.output() {
                    Value::List(items) => items.clone(),
                    other => vec![other.clone()],
                };
                let outputs = outputs.iter().map(|value| self.argument(value)).collect::<PyResult<Vec<_>>>()?;
                let outputs = PyTuple::new(py, outputs)?;
                self.create("output", "output", Some(PyTuple::new(py, [outputs])?), None, "output")?
            }
        };
        // FX would not give a node the name of a builtin function on its own.
        made.setattr("name", &node.name)?;
        let meta = made.getattr("meta")?;
        if let Some(stack) = &node.stack {
            meta.set_item("stack_trace", &**stack)?;
        }
        if let Some(Value::Tensor(known)) = &node.meta
            && let Some((shape, stride)) = numbers(known)
        {
            let described = self.describe.call1((shape, stride, dtype_name(known.dtype), known.requires_grad))?;
            meta.set_item("val", &described)?;
            meta.set_item("example_value", described)?;
        }
        self.nodes.insert(id, made);
        Ok(())
    }

    fn call(&mut self, node: &pyrite_ir::Node, target: &Target) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let kwargs = PyDict::new(py);
        let mut args = Vec::with_capacity(node.args.len());
        let function = match target {
            Target::GetItem => {
                for arg in &node.args {
                    args.push(self.argument(arg)?);
                }
                py.import("operator")?.getattr("getitem")?.unbind()
            }
            Target::Op(op) => {
                for (value, param) in node.args.iter().zip(&op.schema.params) {
                    if !param.keyword_only {
                        args.push(self.argument(value)?);
                    } else if !is_default(value, param.default.as_ref()) {
                        kwargs.set_item(&*param.name, self.argument(value)?)?;
                    }
                }
                // What stands at the end and says no more than leaving it out does is left out.
                let last = node.args.iter().zip(&op.schema.params).filter(|(_, param)| !param.keyword_only);
                let unsaid = last.collect::<Vec<_>>().into_iter().rev();
                let unsaid = unsaid
                    .take_while(|(value, param)| param.default.is_some() && is_default(value, param.default.as_ref()));
                args.truncate(args.len() - unsaid.count());
                let (function, overload) = self.maker.function(&op.schema)?;
                // Overloads take no tensor for a number, which torch's functions read.
                let reads = |(value, param): (&Value<NodeId>, &pyrite_ir::schema::Param)| {
                    let tensor = value.as_tensor().and_then(|id| self.graph.node(*id).meta.as_ref());
                    param.ty == Type::Scalar && matches!(tensor, Some(Value::Tensor(_)))
                };
                match overload {
                    Some(overload) if !node.args.iter().zip(&op.schema.params).any(reads) => overload,
                    _ => function,
                }
            }
            Target::Opaque(name) => {
                for arg in &node.args {
                    args.push(self.argument(arg)?);
                }
                for (name, value) in &node.kwargs {
                    kwargs.set_item(name, self.argument(value)?)?;
                }
                let function = self.maker.dotted(name)?;
                // FX writes a function's name into the module's code, and finds that of its class for other objects.
                py.import("pyrite.fx")?.getattr("as_function")?.call1((function, &**name))?.unbind()
            }
        };
        let args = PyTuple::new(py, args)?;
        self.create("call_function", function.bind(py), Some(args), Some(kwargs), &node.name)
    }

    /// Leaves the autocast that was entered last.
    fn leave_autocast(&mut self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let function = self.maker.dotted("torch.amp.autocast_mode._exit_autocast")?;
        let entered = self.entered.pop();
        let entered = entered.ok_or_else(|| PyNotImplementedError::new_err("autocast is left that was not entered"))?;
        let args = PyTuple::new(self.py, [entered])?;
        self.create("call_function", function.bind(self.py), Some(args), None, name)
    }

    fn create(
        &self,
        op: &str,
        target: impl IntoPyObject<'py>,
        args: Option<Bound<'py, PyTuple>>,
        kwargs: Option<Bound<'py, PyDict>>,
        name: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.fx.call_method1("create_node", (op, target, args, kwargs, name))
    }

    /// Notes which symbols an input names.
    fn name_symbols(&mut self, placeholder: &Bound<'py, PyAny>, node: &pyrite_ir::Node) -> PyResult<()> {
        match &node.meta {
            Some(Value::Tensor(meta)) => {
                for (dim, size) in meta.shape.iter().enumerate() {
                    let expr = size.to_expr();
                    let Some(symbol) = expr.as_symbol().map(Arc::<str>::from) else { continue };
                    if size.as_int().is_none() && !self.sizes.contains_key(&symbol) {
                        let function = self.py.import("pyrite.fx")?.getattr("size_of")?;
                        let args =
                            PyTuple::new(self.py, [placeholder.clone(), dim.into_pyobject(self.py)?.into_any()])?;
                        self.sizes.insert(symbol, PyTuple::new(self.py, [function, args.into_any()])?.into_any());
                    }
                }
            }
            Some(Value::Int(size)) => {
                if let Some(symbol) = size.to_expr().as_symbol() {
                    self.sizes.insert(symbol.into(), placeholder.clone());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The node that reads a symbol.
    fn symbol(&mut self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let unknown = || PyNotImplementedError::new_err(format!("the symbol {name} is the size of no input"));
        let found = self.sizes.get(name).ok_or_else(unknown)?.clone();
        let Ok(call) = found.cast::<PyTuple>() else { return Ok(found) };
        let args = call.get_item(1)?.cast_into::<PyTuple>()?;
        let made = self.create("call_function", call.get_item(0)?, Some(args), None, "sym_size")?;
        self.sizes.insert(name.into(), made.clone());
        Ok(made)
    }

    fn size(&mut self, expr: &Expr) -> PyResult<Bound<'py, PyAny>> {
        if let Some(name) = expr.as_symbol() {
            return self.symbol(name);
        }
        let names = expr.symbols();
        let mut args = vec![expr.to_string().into_pyobject(self.py)?.into_any()];
        args.push(PyList::new(self.py, names.iter().map(ToString::to_string))?.into_any());
        for name in &names {
            args.push(self.symbol(name)?);
        }
        let function = self.py.import("pyrite.fx")?.getattr("evaluated")?;
        self.create("call_function", function, Some(PyTuple::new(self.py, args)?), None, "size")
    }

    fn argument(&mut self, value: &Value<NodeId>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        match value {
            Value::Tensor(id) => {
                let node = self.nodes.get(id);
                Ok(node.ok_or_else(|| PyRuntimeError::new_err("a value is used before it is computed"))?.clone())
            }
            Value::Int(size) if size.as_int().is_none() => self.size(&size.to_expr()),
            Value::List(items) => {
                let items = items.iter().map(|item| self.argument(item)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, items)?.into_any())
            }
            Value::Slice(parts) => {
                let [start, stop, step] = &**parts;
                let parts = (self.argument(start)?, self.argument(stop)?, self.argument(step)?);
                py.get_type::<PySlice>().call1(parts)
            }
            Value::Graph(name) => {
                let nested = self.graph.subgraphs().get(name);
                let nested = nested.ok_or_else(|| PyRuntimeError::new_err(format!("no nested graph `{name}`")))?;
                self.root.call_method1("add_module", (&**name, to_fx(py, nested)?))?;
                self.create("get_attr", &**name, None, None, name)
            }
            plain => self.maker.plain(plain),
        }
    }
}

fn is_placeholder(node: &Bound<'_, PyAny>) -> bool {
    node.getattr("op").is_ok_and(|op| op.eq("placeholder").unwrap_or(false))
}

/// Shape and strides, where they are numbers or have hints.
fn numbers(meta: &Meta) -> Option<(Vec<i64>, Vec<i64>)> {
    let all = |sizes: &[SymInt]| sizes.iter().map(SymInt::hint).collect::<Option<Vec<i64>>>();
    Some((all(&meta.shape)?, all(&meta.stride)?))
}
