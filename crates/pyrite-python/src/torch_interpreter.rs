//! Graphs that torch itself runs, operator by operator.
//!
//! This is what the backend `eager` means to a user of Python: the captured program with nothing compiled, so that what
//! differs from plain Python is the capture's doing. [`TorchProgram`] is a list of calls of torch's own functions, made of
//! constants and the values of earlier calls. Gradients, random numbers, writes and views are torch's.
//!
//! Invariants: calls are made in the order of the graph; a value is let go after its last use; grad mode and autocast are
//! after a run what they were before, also when it fails.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use std::sync::Arc;

use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyrite_ir::{Contract, Given, Graph as Ir, Kind, NodeId, Schema, Switch, Target, Value};
use pyrite_sym::Expr;
use rustc_hash::FxHashMap;

use crate::bridge::{Shim, to_torch};
use crate::capture::{allowed_function, dtype_name, format_name};
use crate::errors;
use crate::graph::{Graph, graph_of};

/// What switches inference mode on or off, and back.
const ENTER_INFERENCE: &str = "pyrite.higher_order.enter_inference";
const EXIT_INFERENCE: &str = "pyrite.higher_order.exit_inference";

/// A graph that torch runs: call it with one argument per placeholder, and it returns the list of the graph's outputs.
#[pyclass(module = "pyrite._native", frozen, weakref)]
pub struct TorchProgram {
    steps: Vec<Step>,
    arity: usize,
    /// How many values there are.
    values: usize,
    outputs: Vec<Argument>,
    /// What gives the symbols among sizes their values.
    contract: Contract,
    switches: bool,
}

/// One call.
struct Step {
    what: What,
    arguments: Vec<Argument>,
    /// The names of the last arguments.
    names: Option<Py<PyTuple>>,
    result: usize,
    /// The values that nobody needs afterwards.
    last: Vec<usize>,
}

enum What {
    /// A function of torch's Python interface, and the overload it stands for.
    Call(Py<PyAny>, Option<Py<PyAny>>),
    /// An item of a sequence.
    Item,
    /// Grad mode.
    Grad,
    /// Autocast from here to the matching end.
    Enter(Py<PyAny>),
    Exit(Py<PyAny>),
}

/// An argument of a call.
enum Argument {
    Value(usize),
    Fixed(Py<PyAny>),
    Size(Expr),
    List(Vec<Argument>),
    Slice(Box<[Argument; 3]>),
}

impl TorchProgram {
    /// A graph as calls of torch's functions; an error when it holds what only Pyrite knows.
    pub fn new(py: Python<'_>, graph: &Ir) -> PyResult<Self> {
        let mut maker = Maker::new(py, graph)?;
        let mut program = Self {
            steps: Vec::new(),
            arity: 0,
            values: 0,
            outputs: Vec::new(),
            contract: Contract::of_sizes(graph),
            switches: false,
        };
        for (id, node) in graph.nodes() {
            let place = program.values;
            match &node.kind {
                Kind::Placeholder => {
                    program.arity += 1;
                }
                Kind::GetAttr(name) => {
                    let constant = graph.constants().get(name);
                    let constant = constant.ok_or_else(|| PyRuntimeError::new_err(format!("no constant `{name}`")))?;
                    maker.places.insert(id, Place::Constant(to_torch(py, constant)?.unbind()));
                    continue;
                }
                Kind::Call(target) => {
                    program.switches |= Switch::of(node).is_some() || target.name() == ENTER_INFERENCE;
                    program.steps.push(maker.step(node, target, place)?);
                }
                Kind::Output => {
                    let outputs = match graph.output() {
                        Value::List(items) => items.clone(),
                        other => vec![other.clone()],
                    };
                    program.outputs = outputs.iter().map(|value| maker.argument(value)).collect::<PyResult<_>>()?;
                    continue;
                }
            }
            maker.places.insert(id, Place::Value(place));
            program.values += 1;
        }
        program.note_last_uses();
        Ok(program)
    }

    fn note_last_uses(&mut self) {
        let mut used = vec![false; self.values];
        self.outputs.iter().for_each(|output| output.values(&mut |value| used[value] = true));
        for step in self.steps.iter_mut().rev() {
            let mut last = Vec::new();
            if !used[step.result] {
                last.push(step.result);
            }
            for argument in &step.arguments {
                argument.values(&mut |value| {
                    if !std::mem::replace(&mut used[value], true) {
                        last.push(value);
                    }
                });
            }
            step.last = last;
        }
    }

    fn run<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        entered: &mut Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        let shim = Shim::get(py)?;
        let mut values: Vec<Option<Bound<'py, PyAny>>> = Vec::with_capacity(self.values);
        values.extend(arguments.iter().map(Some));
        values.resize(self.values, None);
        let inputs: Vec<Bound<'py, PyAny>> = arguments.iter().collect();
        let symbols = self.contract.values(|input| match shim.shape(&inputs[input]) {
            Ok(shape) => Given::Tensor { shape: shape.sizes, stride: shape.strides },
            Err(_) => inputs[input].extract().map_or(Given::Other, Given::Int),
        });
        let symbols = symbols.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let size = |name: &str| symbols.get(name);
        let mut given: Vec<Bound<'py, PyAny>> = Vec::with_capacity(16);
        for step in &self.steps {
            given.clear();
            for argument in &step.arguments {
                given.push(argument.object(py, &values, &size)?);
            }
            let result = step.call(py, &given, entered)?;
            values[step.result] = Some(result);
            for value in &step.last {
                values[*value] = None;
            }
        }
        let outputs = self.outputs.iter().map(|output| output.object(py, &values, &size));
        Ok(PyList::new(py, outputs.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }
}

impl Step {
    fn call<'py>(
        &self,
        py: Python<'py>,
        given: &[Bound<'py, PyAny>],
        entered: &mut Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let plain = |function: &Py<PyAny>| vectorcall(py, function, given, self.names.as_ref());
        match &self.what {
            What::Call(function, None) => plain(function),
            What::Call(function, Some(overload)) => match plain(function) {
                // The function may take its arguments in another way than the operator does.
                Err(error) if error.is_instance_of::<PyTypeError>(py) => plain(overload),
                other => other,
            },
            What::Item => given[0].get_item(&given[1]),
            What::Grad => {
                let on = given[0].is_truthy()?;
                set_grad(py, on)?;
                Ok(py.None().into_bound(py))
            }
            What::Enter(function) => {
                let context = plain(function)?;
                entered.push(context);
                Ok(py.None().into_bound(py))
            }
            What::Exit(function) => {
                if let Some(context) = entered.pop() {
                    function.bind(py).call1((context,))?;
                }
                Ok(py.None().into_bound(py))
            }
        }
    }
}

fn set_grad(py: Python<'_>, on: bool) -> PyResult<()> {
    py.import("torch._C")?.call_method1("_set_grad_enabled", (on,))?;
    Ok(())
}

/// `function(*given)`; the last of them by their names.
fn vectorcall<'py>(
    py: Python<'py>,
    function: &Py<PyAny>,
    given: &[Bound<'py, PyAny>],
    names: Option<&Py<PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let named = names.map_or(0, |names| names.bind(py).len());
    let names = names.map_or(std::ptr::null_mut(), Py::as_ptr);
    // SAFETY: a bound reference is a pointer to its object; as many as are named are at the end; the result is a new
    // reference, or null with an error.
    unsafe {
        let arguments = given.as_ptr().cast::<*mut ffi::PyObject>();
        let result = ffi::PyObject_Vectorcall(function.as_ptr(), arguments, given.len() - named, names);
        Bound::from_owned_ptr_or_err(py, result)
    }
}

impl Argument {
    fn values(&self, see: &mut dyn FnMut(usize)) {
        match self {
            Self::Value(value) => see(*value),
            Self::Fixed(_) | Self::Size(_) => {}
            Self::List(items) => items.iter().for_each(|item| item.values(see)),
            Self::Slice(parts) => parts.iter().for_each(|part| part.values(see)),
        }
    }

    fn object<'py>(
        &self,
        py: Python<'py>,
        values: &[Option<Bound<'py, PyAny>>],
        size: &dyn Fn(&str) -> Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Value(value) => {
                let value = values[*value].as_ref();
                value.ok_or_else(|| PyRuntimeError::new_err("a value is used after its last use"))?.clone()
            }
            Self::Fixed(object) => object.bind(py).clone(),
            Self::Size(expression) => {
                let size = expression.evaluate(size);
                let size = size.ok_or_else(|| PyRuntimeError::new_err("a size of no input is needed"))?;
                PyInt::new(py, size).into_any()
            }
            Self::List(items) => {
                let items = items.iter().map(|item| item.object(py, values, size));
                PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
            }
            Self::Slice(parts) => {
                let [start, stop, step] = &**parts;
                let part = |part: &Self| part.object(py, values, size);
                py.get_type::<pyo3::types::PySlice>().call1((part(start)?, part(stop)?, part(step)?))?
            }
        })
    }
}

/// What a node stands for.
enum Place {
    Value(usize),
    Constant(Py<PyAny>),
}

/// Makes the calls of a program.
pub struct Maker<'a, 'py> {
    py: Python<'py>,
    graph: &'a Ir,
    torch: Bound<'py, PyModule>,
    functions: FxHashMap<Arc<str>, (Py<PyAny>, Option<Py<PyAny>>)>,
    places: FxHashMap<NodeId, Place>,
}

impl<'a, 'py> Maker<'a, 'py> {
    /// For the calls of a graph.
    pub fn new(py: Python<'py>, graph: &'a Ir) -> PyResult<Self> {
        let torch = py.import("torch")?;
        Ok(Self { py, graph, torch, functions: FxHashMap::default(), places: FxHashMap::default() })
    }

    fn step(&mut self, node: &pyrite_ir::Node, target: &Target, result: usize) -> PyResult<Step> {
        let py = self.py;
        let mut arguments = Vec::with_capacity(node.args.len());
        let mut names = Vec::new();
        let what = match target {
            Target::GetItem => {
                arguments.extend(node.args.iter().map(|arg| self.argument(arg)).collect::<PyResult<Vec<_>>>()?);
                What::Item
            }
            Target::Op(op) => {
                for (value, param) in node.args.iter().zip(&op.schema.params) {
                    if !param.keyword_only {
                        arguments.push(self.argument(value)?);
                    } else if !is_default(value, param.default.as_ref()) {
                        arguments.push(self.argument(value)?);
                        names.push(&*param.name);
                    }
                }
                let (function, overload) = self.function(&op.schema)?;
                What::Call(function, overload)
            }
            Target::Opaque(name) => {
                let switch = Switch::of(node);
                match &**name {
                    ENTER_INFERENCE => {
                        let on = node.args.iter().map(|arg| self.argument(arg)).collect::<PyResult<Vec<_>>>()?;
                        let what = What::Enter(self.dotted(name)?);
                        return Ok(Step { what, arguments: on, names: None, result, last: Vec::new() });
                    }
                    EXIT_INFERENCE => {
                        let what = What::Exit(self.dotted(name)?);
                        return Ok(Step { what, arguments: Vec::new(), names: None, result, last: Vec::new() });
                    }
                    _ => {}
                }
                if switch != Some(Switch::ExitAutocast) {
                    arguments.extend(node.args.iter().map(|arg| self.argument(arg)).collect::<PyResult<Vec<_>>>()?);
                    for (name, value) in &node.kwargs {
                        arguments.push(self.argument(value)?);
                        names.push(name);
                    }
                }
                match switch {
                    Some(Switch::Grad(_)) => What::Grad,
                    Some(Switch::EnterAutocast(_)) => What::Enter(self.dotted(name)?),
                    Some(Switch::ExitAutocast) => What::Exit(self.dotted(name)?),
                    None => What::Call(self.dotted(name)?, None),
                }
            }
        };
        let names = if names.is_empty() { None } else { Some(PyTuple::new(py, names)?.unbind()) };
        Ok(Step { what, arguments, names, result, last: Vec::new() })
    }

    /// The function of a dotted name.
    pub fn dotted(&self, name: &str) -> PyResult<Py<PyAny>> {
        if let Some(function) = allowed_function(self.py, name) {
            return Ok(function);
        }
        let mut parts = name.split('.');
        let mut object = self.py.import(parts.next().unwrap_or_default())?.into_any();
        for part in parts {
            object = match object.getattr(part) {
                Ok(found) => found,
                Err(error) => match object.getattr("__name__").and_then(|name| name.extract::<String>()) {
                    Ok(module) => self.py.import(format!("{module}.{part}"))?.into_any(),
                    Err(_) => return Err(error),
                },
            };
        }
        Ok(object.unbind())
    }

    /// The function of torch's Python interface that stands for an operator, which is quicker to call than the operator's
    /// overload, and that overload.
    pub fn function(&mut self, schema: &Schema) -> PyResult<(Py<PyAny>, Option<Py<PyAny>>)> {
        let py = self.py;
        if let Some((function, overload)) = self.functions.get(&schema.name) {
            return Ok((function.clone_ref(py), overload.as_ref().map(|overload| overload.clone_ref(py))));
        }
        let mut parts = schema.name.split('.');
        let (space, base, name) = (parts.next(), parts.next().unwrap_or_default(), parts.next().unwrap_or("default"));
        if space == Some("higher_order") {
            return Err(PyNotImplementedError::new_err(format!(
                "{} is not run by torch: compile with backend=\"native\"",
                schema.name
            )));
        }
        if space == Some("_operator") {
            let function = self.py.import("operator")?.getattr(base)?.unbind();
            self.functions.insert(schema.name.clone(), (function.clone_ref(py), None));
            return Ok((function, None));
        }
        let overload = self.torch.getattr("ops")?.getattr(space.unwrap_or("aten"))?.getattr(base)?.getattr(name)?;
        let bindings = self.torch.getattr("_C")?;
        let holders = ["_VariableFunctions", "_nn", "_linalg", "_special", "_fft"];
        let of_tensor = schema.params.first().is_some_and(|param| &*param.name == "self");
        let mut found = None;
        if space == Some("aten") {
            found = holders.iter().find_map(|holder| bindings.getattr(*holder).ok()?.getattr(base).ok());
            if found.is_none() && of_tensor {
                found = bindings.getattr("TensorBase")?.getattr(base).ok();
            }
        }
        let (function, overload) = match found {
            Some(function) => (function.unbind(), Some(overload.unbind())),
            None => (overload.unbind(), None),
        };
        let kept = (function.clone_ref(py), overload.as_ref().map(|overload| overload.clone_ref(py)));
        self.functions.insert(schema.name.clone(), kept);
        Ok((function, overload))
    }

    /// The object that a value without tensors is.
    pub fn plain(&self, value: &Value<NodeId>) -> PyResult<Bound<'py, PyAny>> {
        match self.argument(value)? {
            Argument::Fixed(object) => Ok(object.into_bound(self.py)),
            _ => Err(PyRuntimeError::new_err("an argument that is not a plain value")),
        }
    }

    fn argument(&self, value: &Value<NodeId>) -> PyResult<Argument> {
        let py = self.py;
        Ok(Argument::Fixed(match value {
            Value::Tensor(node) => match self.places.get(node) {
                Some(Place::Value(place)) => return Ok(Argument::Value(*place)),
                Some(Place::Constant(constant)) => constant.clone_ref(py),
                None => return Err(PyRuntimeError::new_err("a value is used before it is computed")),
            },
            Value::Int(size) => match size.as_int() {
                Some(size) => PyInt::new(py, size).into_any().unbind(),
                None => return Ok(Argument::Size(size.to_expr())),
            },
            Value::List(items) => {
                let items = items.iter().map(|item| self.argument(item)).collect::<PyResult<Vec<_>>>()?;
                return Ok(Argument::List(items));
            }
            Value::Slice(parts) => {
                let [start, stop, step] = &**parts;
                let parts = [self.argument(start)?, self.argument(stop)?, self.argument(step)?];
                return Ok(Argument::Slice(Box::new(parts)));
            }
            Value::None => py.None(),
            Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any().unbind(),
            Value::Float(value) => PyFloat::new(py, *value).into_any().unbind(),
            Value::Complex(value) => PyComplex::from_doubles(py, value.re, value.im).into_any().unbind(),
            Value::Str(value) => PyString::new(py, value).into_any().unbind(),
            Value::DType(dtype) => self.torch.getattr(dtype_name(*dtype))?.unbind(),
            Value::Device(device) => self.torch.call_method1("device", (device.to_string(),))?.unbind(),
            Value::Layout(name) => self.torch.getattr(&**name)?.unbind(),
            Value::MemoryFormat(format) => self.torch.getattr(format_name(*format))?.unbind(),
            Value::Graph(name) => {
                let nested = self.graph.subgraphs().get(name);
                let nested = nested.ok_or_else(|| PyRuntimeError::new_err(format!("no nested graph `{name}`")))?;
                Py::new(py, TorchProgram::new(py, nested)?)?.into_any()
            }
        }))
    }
}

/// Whether an argument says no more than leaving it out does.
pub fn is_default(value: &Value<NodeId>, default: Option<&Value<()>>) -> bool {
    match (value, default) {
        (Value::None, None | Some(Value::None)) => true,
        (Value::Bool(a), Some(Value::Bool(b))) => a == b,
        (Value::Int(a), Some(Value::Int(b))) => a.as_int().is_some() && a.as_int() == b.as_int(),
        (Value::Float(a), Some(Value::Float(b))) => a.to_bits() == b.to_bits(),
        (Value::Str(a), Some(Value::Str(b))) => a == b,
        (Value::List(a), Some(Value::List(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_default(a, Some(b)))
        }
        _ => false,
    }
}

#[pymethods]
impl TorchProgram {
    /// Runs the program.
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(&self, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        errors::check_arity(self.arity, arguments)?;
        let mut entered = Vec::new();
        if !self.switches {
            return self.run(arguments, &mut entered);
        }
        let torch = py.import("torch")?;
        let grad = torch.call_method0("is_grad_enabled")?.is_truthy()?;
        let result = self.run(arguments, &mut entered);
        set_grad(py, grad)?;
        if !entered.is_empty() {
            let exit = py.import("pyrite.higher_order")?.getattr("exit_inference")?;
            for context in entered.into_iter().rev() {
                exit.call1((context,))?;
            }
        }
        result
    }

    fn __repr__(&self) -> String {
        format!("<pyrite.TorchProgram of {} arguments>", self.arity)
    }
}

/// A graph as a program that torch runs.
#[pyfunction]
pub fn run_by_torch(py: Python<'_>, #[pyo3(from_py_with = graph_of)] graph: Graph) -> PyResult<TorchProgram> {
    TorchProgram::new(py, &graph.graph)
}
