//! Backends that are functions written in Python, as backends of Pyrite's.
//!
//! A backend in Python takes a graph and example inputs and returns a callable. [`python_backend`] makes a [`Backend`] of it, so
//! that the debugger can wrap it, ask it about smaller programs and compare it with the reference. A function that can be
//! imported has the name `python:MODULE:NAME`, under which every command finds it.
//!
//! Invariants: the function is called at the first run, when there are inputs, and what it raises then is an error of
//! compiling; outputs that lie in the memory of an input share its storage.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyrite_compiler::backend::{Backend, Backward, Direction, Executable, Forward, InputGradients, Observer, Options};
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{Layout, Tensor};

use crate::bridge::{Inputs, to_torch};

/// What names of functions that can be imported begin with.
const PREFIX: &str = "python:";

/// Lets functions that can be imported be found as `python:MODULE:NAME`.
pub fn register() {
    pyrite_compiler::backend::register_prefix(PREFIX, |name| {
        let (module, function) = name.strip_prefix(PREFIX).unwrap_or(name).split_once(':')?;
        let found = Python::attach(|py| {
            let mut found = py.import(module)?.into_any();
            for part in function.split('.') {
                found = found.getattr(part)?;
            }
            PyResult::Ok(found.unbind())
        });
        Some(called(name, found.ok()?))
    });
}

/// The backend of a function.
pub fn called(name: &str, function: Py<PyAny>) -> Backend {
    let function = Arc::new(function);
    Backend::new(name, "a function written in Python", move |graph, options| {
        let (function, options) = (function.clone(), options.clone());
        Ok(Box::new(Called { function, graph, options, program: Mutex::new(None) }))
    })
}

struct Called {
    function: Arc<Py<PyAny>>,
    graph: Graph,
    options: Options,
    program: Mutex<Option<Py<PyAny>>>,
}

impl Executable for Called {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        _: Option<&mut TorchGenerator>,
        _: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        Python::attach(|py| {
            let given = self.arguments(py, &inputs).map_err(|error| outside(py, &error, "compile"))?;
            let program = self.compiled(py, &given).map_err(|error| outside(py, &error, "compile"))?;
            let result = recording(py, || program.call1(&given)).map_err(|error| outside(py, &error, "forward"))?;
            let outputs = taken(&result, &inputs).map_err(|error| outside(py, &error, "forward"))?;
            let backward = Recorded::of(&given, &result).map_err(|error| outside(py, &error, "forward"))?;
            Ok(Forward { outputs, backward: backward.map(|recorded| Box::new(recorded) as Box<dyn Backward>) })
        })
    }

    fn graphs(&self) -> Vec<(String, Graph)> {
        vec![("forward".to_owned(), self.graph.clone())]
    }
}

impl Called {
    /// The inputs as torch has them; those that want gradients are leaves that record.
    fn arguments<'py>(&self, py: Python<'py>, inputs: &[Value<Tensor>]) -> PyResult<Bound<'py, PyTuple>> {
        let metas = self.graph.placeholders().map(|(_, node)| &node.meta);
        let mut given = Vec::with_capacity(inputs.len());
        for (input, meta) in inputs.iter().zip(metas) {
            let object = crate::outcome::to_python(py, input, &mut |tensor| to_torch(py, tensor))?;
            let wants = matches!(meta, Some(Value::Tensor(meta)) if meta.requires_grad);
            if wants && self.options.direction == Direction::ForwardAndBackward {
                object.call_method1("requires_grad_", (true,))?;
            }
            given.push(object);
        }
        PyTuple::new(py, given)
    }

    fn compiled<'py>(&self, py: Python<'py>, given: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(program) = &*self.program.lock() {
            return Ok(program.bind(py).clone());
        }
        let graph = crate::graph::Graph::from(self.graph.clone());
        let program = self.function.bind(py).call1((graph, given.to_list()))?;
        *self.program.lock() = Some(program.clone().unbind());
        Ok(program)
    }
}

/// Runs something while torch records gradients, wherever it is called from.
fn recording<T>(py: Python<'_>, run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let torch = py.import("torch")?;
    let before = torch.call_method0("is_grad_enabled")?;
    let switch = torch.getattr("_C")?.getattr("_set_grad_enabled")?;
    switch.call1((true,))?;
    let result = run();
    switch.call1((before,))?;
    result
}

/// What was raised, as an error of the graph's.
fn outside(py: Python<'_>, error: &PyErr, stage: &str) -> NodeError {
    let kind = if error.is_instance_of::<PyMemoryError>(py) {
        "out of memory".to_owned()
    } else {
        error.get_type(py).name().map_or_else(|_| "Exception".to_owned(), |name| name.to_string())
    };
    let message = error.to_string();
    OpError::Outside { kind, place: None, message, stage: stage.to_owned() }.into()
}

/// What a program returned.
fn taken(result: &Bound<'_, PyAny>, inputs: &[Value<Tensor>]) -> PyResult<Value<Tensor>> {
    taken_in(result, &mut Inputs::new(result.py())?, inputs)
}

fn taken_in(object: &Bound<'_, PyAny>, seen: &mut Inputs, inputs: &[Value<Tensor>]) -> PyResult<Value<Tensor>> {
    if is_sequence(object) {
        let items = object.try_iter()?.map(|item| taken_in(&item?, seen, inputs));
        return Ok(Value::List(items.collect::<PyResult<_>>()?));
    }
    Ok(match seen.value(object, 0)? {
        Value::Tensor(tensor) => Value::Tensor(within(&tensor, inputs).unwrap_or(tensor)),
        other => other,
    })
}

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>()
}

/// The values of a nested result.
fn leaves<'py>(object: &Bound<'py, PyAny>, found: &mut Vec<Bound<'py, PyAny>>) -> PyResult<()> {
    if is_sequence(object) {
        return object.try_iter()?.try_for_each(|item| leaves(&item?, found));
    }
    found.push(object.clone());
    Ok(())
}

/// The same tensor as a view of the input in whose memory it lies.
fn within(tensor: &Tensor, inputs: &[Value<Tensor>]) -> Option<Tensor> {
    let size = tensor.dtype().size();
    let address = tensor.storage().as_ptr() as usize + tensor.layout().offset as usize * size;
    inputs.iter().filter_map(Value::as_tensor).find_map(|input| {
        let begin = input.storage().as_ptr() as usize;
        let inside =
            address >= begin && address < begin + input.storage().nbytes() && (address - begin).is_multiple_of(size);
        let layout = Layout::new(tensor.shape(), tensor.stride(), (address.wrapping_sub(begin) / size) as i64);
        if inside { Tensor::new(input.storage().clone(), tensor.dtype(), layout).ok() } else { None }
    })
}

/// The backward half that torch recorded.
struct Recorded {
    inputs: Vec<Option<Py<PyAny>>>,
    /// The outputs with a history, by their leaf.
    outputs: Vec<(usize, Py<PyAny>)>,
}

impl Recorded {
    fn of(given: &Bound<'_, PyTuple>, result: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let records = |object: &Bound<'_, PyAny>| {
            object.getattr("requires_grad").and_then(|answer| answer.is_truthy()).unwrap_or(false)
        };
        let mut found = Vec::new();
        leaves(result, &mut found)?;
        let outputs: Vec<(usize, Py<PyAny>)> = (found.iter().enumerate())
            .filter(|(_, leaf)| records(leaf))
            .map(|(index, leaf)| (index, leaf.clone().unbind()))
            .collect();
        let inputs = given.iter().map(|input| records(&input).then(|| input.unbind())).collect();
        Ok((!outputs.is_empty()).then_some(Self { inputs, outputs }))
    }

    fn gradients(&self, py: Python<'_>, tangents: &[Tensor]) -> PyResult<Vec<Option<Tensor>>> {
        let outputs = PyList::new(py, self.outputs.iter().map(|(_, output)| output.bind(py)))?;
        let wanted = PyList::new(py, self.inputs.iter().flatten().map(|input| input.bind(py)))?;
        let tangents = tangents.iter().map(|tangent| to_torch(py, tangent)).collect::<PyResult<Vec<_>>>()?;
        let settings = PyDict::new(py);
        settings.set_item("allow_unused", true)?;
        settings.set_item("retain_graph", true)?;
        let grad = py.import("torch.autograd")?.getattr("grad")?;
        let found = grad.call((outputs, wanted, PyList::new(py, tangents)?), Some(&settings))?;
        let mut seen = Inputs::new(py)?;
        let mut found = found.try_iter()?;
        let mut gradients = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            gradients.push(match input.as_ref().and_then(|_| found.next()) {
                Some(gradient) => seen.value(&gradient?, 0)?.as_tensor().cloned(),
                None => None,
            });
        }
        Ok(gradients)
    }
}

impl Backward for Recorded {
    fn wanted(&self) -> Vec<usize> {
        self.outputs.iter().map(|(leaf, _)| *leaf).collect()
    }

    fn again(&self) -> Box<dyn Backward> {
        Python::attach(|py| {
            let inputs = self.inputs.iter().map(|input| input.as_ref().map(|input| input.clone_ref(py))).collect();
            let outputs = self.outputs.iter().map(|(leaf, output)| (*leaf, output.clone_ref(py))).collect();
            Box::new(Self { inputs, outputs })
        })
    }

    fn run(self: Box<Self>, tangents: Vec<Tensor>, _: &mut Observer<'_>) -> Result<InputGradients, NodeError> {
        let inputs =
            Python::attach(|py| self.gradients(py, &tangents).map_err(|error| outside(py, &error, "backward")))?;
        Ok(InputGradients { inputs, parameters: Vec::new() })
    }
}
