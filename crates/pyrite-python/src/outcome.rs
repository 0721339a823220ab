//! What a run gave, on its way to torch.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyrite_compiler::backend::Backward;
use pyrite_ir::Value;
use pyrite_oracle::Stage;
use pyrite_passes::functionalize::Reading;
use pyrite_tensor::{Scalar, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bridge::{Inputs, Seen, Storages, to_torch};
use crate::crash::{Call, Given};
use crate::program::Source;
use crate::{errors, threads};

/// The leaves of a program's outputs, which of them lie in the memory of inputs, and the backward half.
#[pyclass(module = "pyrite._native", frozen)]
pub struct Outcome {
    outputs: Vec<Value<Tensor>>,
    leaves: Vec<Value<Tensor>>,
    backward: Mutex<Option<Box<dyn Backward>>>,
    /// How many of the outputs, at the end, are inputs that were written.
    appended: usize,
    /// The leaves, and the inputs, that the backward half holds.
    held: (Vec<usize>, Vec<usize>),
    /// The inputs that it holds, as they were.
    inputs: Vec<(usize, Tensor)>,
    /// The input that each leaf lies in, if it lies in one.
    aliases: Vec<Option<Alias>>,
    /// Leaves that are one of several views that one operator made.
    several: Vec<usize>,
    /// Leaves that torch reads otherwise than they lie in memory.
    readings: Vec<(usize, Reading)>,
    /// What ran, where there is a backward half.
    source: Option<Arc<Source>>,
    /// What it ran with, for whoever differentiates twice.
    seen: Option<Py<Seen>>,
}

/// An input of whose memory an output is a view: its position and, unless the output is the input itself, the view.
type Alias = (usize, Option<View>);

/// The size and the stride of a view, where it begins, in bytes behind the beginning of the input, and its dtype where
/// that is not the input's.
type View = (Vec<i64>, Vec<i64>, i64, Option<&'static str>);

impl Outcome {
    pub(crate) fn new(
        outputs: Value<Tensor>,
        backward: Option<Box<dyn Backward>>,
        inputs: &[Option<Tensor>],
        appended: usize,
        bases: &[Option<usize>],
        several: &[bool],
    ) -> Self {
        let outputs = match outputs {
            Value::List(items) => items,
            other => vec![other],
        };
        let mut leaves = Vec::with_capacity(outputs.len());
        outputs.iter().for_each(|output| pyrite_compiler::training::flatten(output, &mut leaves));
        // Before torch takes any: it would count as a holder.
        let held = if backward.is_some() { held(&leaves, inputs) } else { (Vec::new(), Vec::new()) };
        let shared: FxHashSet<usize> = inputs.iter().flatten().map(|input| input.storage().id()).collect();
        let mut bases = bases.iter().copied();
        let mut alias_of = |leaf: &Value<Tensor>| {
            let tensor = leaf.as_tensor()?;
            let base = bases.next().flatten();
            if shared.contains(&tensor.storage().id()) { alias(tensor, base, inputs) } else { None }
        };
        let aliases = leaves.iter().map(&mut alias_of).collect();
        let tensors = leaves.iter().enumerate().filter(|(_, leaf)| leaf.as_tensor().is_some());
        let several = tensors.zip(several).filter(|(_, is_one)| **is_one).map(|((index, _), _)| index).collect();
        let inputs = held.1.iter().filter_map(|index| Some((*index, inputs[*index].clone()?))).collect();
        let (backward, readings, source, seen) = (Mutex::new(backward), Vec::new(), None, None);
        Self { outputs, leaves, backward, appended, held, inputs, aliases, several, readings, source, seen }
    }

    /// The same of a program that is known.
    pub(crate) fn of(self, source: &Arc<Source>) -> Self {
        let source = self.backward.lock().is_some().then(|| source.clone());
        Self { source, ..self }
    }

    /// The same where the backward half holds these inputs, each with its position.
    pub(crate) fn holding(self, mut inputs: Vec<(usize, Tensor)>) -> Self {
        inputs.sort_by_key(|(index, _)| *index);
        let held = (self.held.0, inputs.iter().map(|(index, _)| *index).collect());
        Self { held, inputs, ..self }
    }

    /// The same where torch reads leaves as it is told.
    pub(crate) fn read_as(self, readings: &[Reading]) -> Self {
        let marked = readings.iter().copied().enumerate().filter(|(_, reading)| *reading != Reading::default());
        Self { readings: marked.collect(), ..self }
    }

    /// The same of a call whose arguments are known.
    pub(crate) fn seeing(self, seen: Option<Py<Seen>>) -> Self {
        Self { seen, ..self }
    }

    /// The storages that leaves lie in.
    fn storages<'py>(&self) -> Storages<'py> {
        Storages::of(self.leaves.iter().filter_map(Value::as_tensor))
    }

    /// The outputs as torch has them, where no gradient is wanted.
    pub(crate) fn into_list<'py>(self, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        let shown = self.outputs.len() - self.appended;
        let mut storages = self.storages();
        let leaves = self.leaves.iter().zip(&self.aliases).enumerate();
        let mut tensors = leaves.filter(|(_, (leaf, _))| leaf.as_tensor().is_some());
        let mut convert = |tensor: &Tensor| -> PyResult<Bound<'py, PyAny>> {
            let (leaf, alias) = tensors.next().map(|(leaf, (_, alias))| (leaf, alias.clone())).unzip();
            let lying = match alias.flatten() {
                Some((index, None)) => arguments.get_item(index)?,
                Some((index, Some(view))) => viewed(&arguments.get_item(index)?, view)?,
                None => storages.give(py, tensor)?,
            };
            match self.readings.iter().find(|(marked, _)| Some(*marked) == leaf) {
                Some((_, reading)) => read(lying, *reading),
                None => Ok(lying),
            }
        };
        let items = self.outputs[..shown]
            .iter()
            .map(|value| to_python(py, value, &mut convert))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, items)?.into_any())
    }
}

/// A view of an input.
fn viewed<'py>(base: &Bound<'py, PyAny>, view: View) -> PyResult<Bound<'py, PyAny>> {
    let (size, stride, begin, dtype) = view;
    base.py().import("pyrite._views")?.getattr("viewed")?.call1((base, size, stride, begin, dtype))
}

/// A tensor as torch reads it from its memory.
pub(crate) fn read(tensor: Bound<'_, PyAny>, reading: Reading) -> PyResult<Bound<'_, PyAny>> {
    let tensor = if reading.conjugated { tensor.call_method0("conj")? } else { tensor };
    if reading.negated { tensor.call_method0("_neg_view") } else { Ok(tensor) }
}

/// A value as a Python object; tensors by a function.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &Value<Tensor>,
    tensor: &mut dyn FnMut(&Tensor) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Value::Tensor(found) = value {
        return tensor(found);
    }
    if let Value::List(items) = value {
        let items = items.iter().map(|item| to_python(py, item, tensor)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    Ok(match value.as_scalar() {
        Some(Scalar::Bool(number)) => number.into_pyobject(py)?.to_owned().into_any(),
        Some(Scalar::Int(number)) => number.into_pyobject(py)?.into_any(),
        Some(Scalar::Float(number)) => number.into_pyobject(py)?.into_any(),
        Some(Scalar::Complex(number)) => pyo3::types::PyComplex::from_doubles(py, number.re, number.im).into_any(),
        None => match value {
            Value::Str(text) => text.into_pyobject(py)?.into_any(),
            Value::None => py.None().into_bound(py),
            other => {
                return Err(PyRuntimeError::new_err(format!("a program returned {}", other.kind())));
            }
        },
    })
}

#[pymethods]
impl Outcome {
    /// The leaves: a torch tensor for what is new, `None` for what lies in an input, plain values as they are.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut storages = self.storages();
        let leaves = self.leaves.iter().zip(&self.aliases);
        let convert = |(leaf, alias): (&Value<Tensor>, &Option<Alias>)| match alias {
            Some(_) => Ok(py.None().into_bound(py)),
            None => to_python(py, leaf, &mut |tensor| storages.give(py, tensor)),
        };
        leaves.map(convert).collect()
    }

    /// For each leaf, which input it lies in, if it does.
    fn aliases(&self) -> Vec<Option<Alias>> {
        self.aliases.clone()
    }

    /// The leaves that are one of several views which one operator made.
    fn several(&self) -> Vec<usize> {
        self.several.clone()
    }

    /// The leaves whose memory the backward half reads.
    fn held(&self) -> Vec<usize> {
        self.held.0.clone()
    }

    /// The inputs whose memory the backward half reads.
    fn held_inputs(&self) -> Vec<usize> {
        self.held.1.clone()
    }

    /// What the program ran with, where that is known.
    fn seen(&self, py: Python<'_>) -> Option<Py<Seen>> {
        self.seen.as_ref().map(|seen| seen.clone_ref(py))
    }

    /// Whether every leaf is a tensor with memory and a version of its own.
    fn is_fresh(&self) -> bool {
        let is_new = |(leaf, alias): (&Value<Tensor>, &Option<Alias>)| leaf.as_tensor().is_some() && alias.is_none();
        self.appended == 0
            && self.several.is_empty()
            && self.readings.is_empty()
            && self.leaves.iter().zip(&self.aliases).all(is_new)
    }

    /// The outputs, nested as the program nests them, made of other leaves, which lie in memory as these do.
    fn nest<'py>(&self, py: Python<'py>, mut leaves: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        for (leaf, reading) in &self.readings {
            leaves[*leaf] = read(leaves[*leaf].clone(), *reading)?;
        }
        let mut next = leaves.into_iter();
        let shown = &self.outputs[..self.outputs.len() - self.appended];
        let items = shown.iter().map(|output| renest(py, output, &mut next)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, items)?.into_any())
    }

    /// The backward half, once; `None` where no output has a gradient.
    fn tape(&self) -> Option<Tape> {
        let backward = self.backward.lock().take()?;
        let wanted = backward.wanted();
        let like = wanted.iter().map(|leaf| self.leaves.get(*leaf).and_then(Value::as_tensor).cloned());
        let like = like.map(|tensor| tensor.map(|tensor| (tensor.shape().to_vec(), tensor.dtype()))).collect();
        Some(Tape {
            backward: Mutex::new(Some(backward)),
            wanted,
            like,
            inputs: self.inputs.clone(),
            source: self.source.clone(),
        })
    }
}

/// Which input a leaf lies in: the one that the graph looks at, where that is known, because gradients flow into it and
/// inputs may share memory; else one of the same dtype, if there is one.
fn alias(leaf: &Tensor, base: Option<usize>, inputs: &[Option<Tensor>]) -> Option<Alias> {
    let sharing = || {
        inputs.iter().enumerate().filter_map(|(index, input)| {
            let input = input.as_ref()?;
            input.storage().same(leaf.storage()).then_some((index, input))
        })
    };
    let alike = || sharing().filter(|(_, input)| input.dtype() == leaf.dtype());
    let base = base.and_then(|base| sharing().find(|(index, _)| *index == base));
    let equal = || alike().find(|(_, input)| input.layout() == leaf.layout());
    let (index, input) = base.or_else(equal).or_else(|| alike().next()).or_else(|| sharing().next())?;
    let layout = leaf.layout();
    let first = |tensor: &Tensor| tensor.layout().offset * tensor.dtype().size() as i64;
    let dtype = (input.dtype() != leaf.dtype()).then(|| leaf.dtype().torch_name());
    let is_other = dtype.is_some() || input.layout() != layout;
    let view = || (layout.shape.to_vec(), layout.stride.to_vec(), first(leaf) - first(input), dtype);
    Some((index, is_other.then(view)))
}

/// The leaves and the inputs that somebody holds beside those who are known to: inputs are held once, leaves by the
/// outputs too.
fn held(leaves: &[Value<Tensor>], inputs: &[Option<Tensor>]) -> (Vec<usize>, Vec<usize>) {
    let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
    for input in inputs.iter().flatten() {
        *counts.entry(input.storage().id()).or_default() += 1;
    }
    for leaf in leaves.iter().filter_map(Value::as_tensor) {
        *counts.entry(leaf.storage().id()).or_default() += 2;
    }
    let is_held = |tensor: &Tensor| tensor.storage().holders() > counts[&tensor.storage().id()];
    let held_leaves = leaves.iter().enumerate().filter(|(_, leaf)| leaf.as_tensor().is_some_and(is_held));
    let held_inputs = inputs.iter().enumerate().filter(|(_, input)| input.as_ref().is_some_and(is_held));
    (held_leaves.map(|(index, _)| index).collect(), held_inputs.map(|(index, _)| index).collect())
}

fn renest<'py>(
    py: Python<'py>,
    output: &Value<Tensor>,
    leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match output {
        Value::List(items) => {
            let items = items.iter().map(|item| renest(py, item, leaves)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, items)?.into_any())
        }
        _ => leaves.next().ok_or_else(|| PyRuntimeError::new_err("there are more outputs than leaves")),
    }
}

/// The backward half of one run. What it needs is freed on the way, unless it is to run again.
#[pyclass(module = "pyrite._native", frozen)]
pub struct Tape {
    backward: Mutex<Option<Box<dyn Backward>>>,
    #[pyo3(get)]
    wanted: Vec<usize>,
    like: Vec<Option<(Vec<i64>, pyrite_tensor::DType)>>,
    /// The inputs that it holds, as they were when the program ran.
    inputs: Vec<(usize, Tensor)>,
    source: Option<Arc<Source>>,
}

impl Tape {
    /// The held inputs whose objects have other memory, or lie otherwise in it, than when the program ran.
    fn replaced(&self, py: Python<'_>, held: &[(usize, Bound<'_, PyAny>)]) -> PyResult<Vec<(usize, Tensor, Tensor)>> {
        let mut seen = Inputs::new(py)?;
        let mut replaced = Vec::new();
        for (index, object) in held {
            let Some((_, before)) = self.inputs.iter().find(|(known, _)| known == index) else { continue };
            let value = seen.value(object, *index).map_err(|error| {
                let text = format!(
                    "memory that the backward graph reads was freed or resized after the forward call: {error}"
                );
                PyRuntimeError::new_err(text)
            })?;
            let Value::Tensor(now) = value else { continue };
            let first =
                |tensor: &Tensor| tensor.storage().address() + tensor.layout().offset as usize * tensor.dtype().size();
            let alike = now.shape() == before.shape() && now.stride() == before.stride();
            if !(alike && now.dtype() == before.dtype() && (now.numel() == 0 || first(before) == first(&now))) {
                replaced.push((*index, before.clone(), now));
            }
        }
        Ok(replaced)
    }
}

#[pymethods]
impl Tape {
    /// The gradients of the inputs from those of the wanted outputs; `None` stands for zeros. What was saved is freed
    /// unless it is retained. Held inputs, with their positions, are those that torch has saved.
    #[pyo3(signature = (gradients, held = Vec::new(), *, retain = false))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        gradients: Vec<Bound<'py, PyAny>>,
        held: Vec<(usize, Bound<'py, PyAny>)>,
        retain: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut kept = self.backward.lock();
        let backward = if retain { kept.as_ref().map(|backward| backward.again()) } else { kept.take() };
        drop(kept);
        let Some(mut backward) = backward else {
            return Err(PyRuntimeError::new_err(
                "Trying to backward through the graph a second time: what a compiled program saved is freed after the first \
                 time. Specify retain_graph=True there, or call the program again.",
            ));
        };
        let replaced = self.replaced(py, &held)?;
        if !replaced.is_empty() {
            backward.replace(&replaced).map_err(|error| errors::failed(&error.into(), None))?;
        }
        let mut inputs = Inputs::new(py)?;
        let mut tangents = Vec::with_capacity(gradients.len());
        let mut known: FxHashMap<usize, Vec<(Tensor, Bound<'py, PyAny>)>> = FxHashMap::default();
        for (index, (object, like)) in gradients.iter().zip(&self.like).enumerate() {
            let value = inputs.value(object, index)?;
            match (value, like) {
                (Value::Tensor(tensor), _) => {
                    known.entry(tensor.storage().id()).or_default().push((tensor.clone(), object.clone()));
                    tangents.push(tensor);
                }
                (_, Some((shape, dtype))) => {
                    let zero = Tensor::scalar(Scalar::Int(0), *dtype).expanded(shape);
                    tangents.push(zero);
                }
                (_, None) => {
                    return Err(PyRuntimeError::new_err("requested the gradient of a value that is not a tensor"));
                }
            }
        }
        let threads = threads::allowed(py);
        let run = || pyrite_threads::limited(threads, || errors::guarded(|| backward.run(tangents, &mut |_, _| {})));
        let found = py
            .detach(|| match self.source.as_deref() {
                Some((graph, backend, _)) => {
                    Call::of(graph, &backend.name, Stage::Backward, Given::Saved(&self.inputs)).run(run)
                }
                None => run(),
            })
            .map_err(|error| errors::failed(&error, None))?;
        let mut results = Vec::with_capacity(found.inputs.len());
        for gradient in found.inputs {
            let Some(gradient) = gradient else {
                results.push(py.None().into_bound(py));
                continue;
            };
            // Autograd adds to gradients in place where nobody else has them, so two that share memory are one object,
            // or one of them a copy.
            let sharing = known.entry(gradient.storage().id()).or_default();
            let same = sharing
                .iter()
                .find(|(tensor, _)| tensor.layout() == gradient.layout() && tensor.dtype() == gradient.dtype());
            let object = match same {
                Some((_, object)) => object.clone(),
                None if sharing.is_empty() => to_torch(py, &gradient)?,
                None => to_torch(py, &gradient)?.call_method0("clone")?,
            };
            sharing.push((gradient, object.clone()));
            results.push(object);
        }
        Ok(results)
    }
}
