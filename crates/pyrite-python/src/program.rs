//! Compiled programs as Python calls them.
//!
//! [`Program::run`] takes torch's arguments and gives an [`Outcome`]: what came out, leaf by leaf, and the backward half
//! where a gradient is wanted. A call without gradients turns it into torch tensors here; with gradients, the Python
//! class in `pyrite/autograd.py` does, because autograd's bookkeeping is Python's.
//!
//! Invariants:
//! - An output that lies in the memory of an input is that input, or a view of it, for torch too.
//! - Inputs that the program writes are appended to the outputs where gradients are wanted: gradients flow through what
//!   was written. Their versions are counted up.
//! - Random numbers come from torch's generator, and only programs that draw touch it.
//! - A program that only reads and ran for less than [`SHORT`] the last time keeps the interpreter while it runs: nobody can
//!   take memory from its arguments, so nothing has to hold it ([`Remembered`]). Others let the interpreter go.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyrite_compiler::backend::{Backend, Executable, Forward, Options, Prepared};
use pyrite_diag::{Colour, TextRenderer};
use pyrite_ir::contract::any_call;
use pyrite_ir::{Contract, Graph as Ir, Kind, Meta, Node, NodeError, NodeId, OpError, Switch, Tag, Target, Value};
use pyrite_ops::registry;
use pyrite_oracle::Stage;
use pyrite_passes::calling::{
    begin_without_grad, output_bases, return_as_they_lie, return_written, specialize, starts_without_grad,
    unrecorded_writes, views_of_several, with_inputs_apart, written_inputs,
};
use pyrite_passes::functionalize::Reading;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{Layout, Tensor};

use crate::bridge::{Inputs, Overlap, Remembered, Shim, with_torch_generator};
use crate::debug_wrapper::Told;
use crate::graph::{Graph, graph_of};
use crate::options::options;
use crate::outcome::{Outcome, read};
use crate::torch_interpreter::TorchProgram;
use crate::{crash, debug_wrapper, errors, threads};

/// A compiled program: call it with one argument per placeholder, and it returns the list of the graph's outputs.
#[pyclass(module = "pyrite._native", frozen, weakref)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a program, each asked alone")]
pub struct Program {
    executable: Box<dyn Executable>,
    draws: bool,
    differentiates: bool,
    /// Whether it begins without gradients and switches them on.
    switches_on: bool,
    /// Whether torch runs it while gradients are recorded: torch refuses it then, and can say so.
    forward_only: bool,
    /// Whether it was compiled without gradients, which inputs want, because nobody recorded them then.
    for_inference: bool,
    /// The same with gradients.
    training: PyOnceLock<Py<Program>>,
    /// The inputs that the program writes.
    written: Vec<usize>,
    /// Those of them that it writes only while no gradients are recorded.
    unrecorded: Vec<usize>,
    /// Those of the written ones that are appended to the outputs.
    returned: Vec<usize>,
    /// For each output that is a tensor, the input that it is a view of, if it is one.
    bases: Vec<Option<usize>>,
    /// For each output that is a tensor, whether it is one of several views that one operator made.
    several: Vec<bool>,
    /// How torch reads each leaf of the outputs from its memory; empty where that is as it lies there.
    readings: Vec<Reading>,
    arity: usize,
    /// What was assumed of the inputs.
    contract: Contract,
    /// What it was compiled from, by whom.
    source: Arc<Source>,
    /// Whether it writes to tensors, and whether it names places in storages.
    writes: bool,
    names_places: bool,
    /// The same for inputs that do not keep to the contract.
    others: Mutex<Vec<Py<Program>>>,
    /// Set when no more are compiled.
    is_exhausted: AtomicBool,
    by_torch: PyOnceLock<Py<TorchProgram>>,
    /// Where a debug wrapper says what it wrote.
    told: Option<Told>,
    /// Whether it only reads plain tensors, and no Python runs in it.
    may_be_short: bool,
    /// Whether its last call was so short that others can wait for the interpreter meanwhile.
    is_short: AtomicBool,
    /// What short calls take their arguments as.
    short: Mutex<ShortCalls>,
}

/// The arguments of the last short call, and the program prepared for them.
#[derive(Default)]
struct ShortCalls {
    remembered: Remembered,
    prepared: Option<Box<dyn Prepared>>,
}

/// A graph and who compiled it.
pub type Source = (Ir, Backend, Options);

/// A program that runs for less than this keeps the interpreter.
const SHORT: Duration = Duration::from_micros(200);

thread_local! {
    /// For programs that draw nothing: a generator takes time to make.
    static UNUSED: RefCell<TorchGenerator> = RefCell::new(TorchGenerator::new(0));
}

impl Program {
    /// Compiles a graph whose placeholders have metadata.
    pub fn compile(graph: Ir, backend: &Backend, options: &Options) -> Result<Self, NodeError> {
        let wants =
            |(_, node): (NodeId, &pyrite_ir::Node)| matches!(&node.meta, Some(Value::Tensor(m)) if m.requires_grad);
        let differentiates = graph.placeholders().any(wants);
        let arity = graph.placeholders().count();
        let source = Arc::new((graph.clone(), backend.clone(), options.clone()));
        let writes = any_call(&graph, &|op| op.schema.is_mutable());
        let names_places = any_call(&graph, &|op| op.schema.params.iter().any(|p| &*p.name == "storage_offset"));
        let draws = any_call(&graph, &|op| op.has(Tag::Random));
        let written = if writes { written_inputs(&graph, registry(), differentiates)? } else { Vec::new() };
        let switches_on = differentiates && starts_without_grad(&graph);
        let unrecorded = unrecorded_writes(&graph, &written);
        let graph = if switches_on { begin_without_grad(graph)? } else { graph };
        let (graph, readings) = return_as_they_lie(graph, registry())?;
        let (graph, returned) = if differentiates { return_written(graph, &written)? } else { (graph, Vec::new()) };
        let (bases, several) = (output_bases(&graph), views_of_several(&graph));
        let executable = (backend.compile)(graph, options)?;
        let contract = executable.contract().cloned().unwrap_or_else(|| Contract::of(&source.0));
        let may_be_short = runs_no_python(&source.0, backend)
            && !(writes || draws || names_places || contract.is_conditional())
            && bases.iter().all(Option::is_none)
            && readings.is_empty();
        Ok(Self {
            executable,
            draws,
            differentiates,
            switches_on,
            forward_only: false,
            for_inference: false,
            training: PyOnceLock::new(),
            written,
            unrecorded,
            returned,
            bases,
            several,
            readings,
            arity,
            contract,
            source,
            writes,
            names_places,
            others: Mutex::default(),
            is_exhausted: AtomicBool::new(false),
            by_torch: PyOnceLock::new(),
            told: None,
            may_be_short,
            is_short: AtomicBool::new(false),
            short: Mutex::default(),
        })
    }

    /// Compiles a graph for calls that record no gradients, where it only reads: nothing is saved for a backward half.
    /// `None` where it has to be compiled as it is.
    fn compile_for_inference(graph: &Ir, backend: &Backend, options: &Options) -> Option<Result<Self, NodeError>> {
        let mut forward = graph.clone();
        let mut wanted = false;
        for (id, node) in graph.placeholders() {
            if let Some(Value::Tensor(meta)) = &node.meta
                && meta.requires_grad
            {
                wanted = true;
                forward.set_meta(id, Value::Tensor(Meta { requires_grad: false, ..meta.clone() }));
            }
        }
        let only_reads = runs_no_python(graph, backend)
            && !any_call(graph, &|op| op.schema.is_mutable())
            && graph.nodes().all(|(_, node)| Switch::of(node).is_none());
        (wanted && only_reads).then(|| {
            let source = Arc::new((graph.clone(), backend.clone(), options.clone()));
            Ok(Self { for_inference: true, source, ..Self::compile(forward, backend, options)? })
        })
    }

    /// Who runs calls that record gradients, of a program that was compiled without.
    fn with_gradients<'py>(slf: &Bound<'py, Self>) -> PyResult<Runner<'py>> {
        let (py, program) = (slf.py(), slf.get());
        let (graph, backend, options) = &*program.source;
        let made = program.training.get_or_try_init(py, || {
            let compiled = py.detach(|| errors::guarded(|| Self::compile(graph.clone(), backend, options)));
            let compiled = Bound::new(py, compiled.map_err(|error| errors::uncompiled(py, &error))?)?;
            py.import("pyrite.autograd")?.call_method1("remember_as", (&compiled, slf))?;
            Ok::<_, PyErr>(compiled.unbind())
        });
        match made {
            Ok(made) => Ok(Runner::Compiled(made.bind(py).clone())),
            Err(_) => program.torch(py),
        }
    }

    /// The same, which knows where a debug wrapper says what it wrote.
    #[must_use]
    pub fn telling(self, told: Told) -> Self {
        Self { told: Some(told), may_be_short: false, ..self }
    }

    /// An error of running; its last line is the path of the repro, where one was written.
    fn failed(&self, error: &NodeError) -> PyErr {
        errors::failed(error, self.told.as_ref().and_then(Told::repro).as_deref())
    }

    /// Runs it on torch's arguments.
    pub fn run(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Outcome> {
        let py = arguments.py();
        errors::check_arity(self.arity, arguments)?;
        if self.is_short.load(Ordering::Relaxed)
            && let Some(outcome) = self.run_short_recorded(arguments)?
        {
            return Ok(outcome);
        }
        let inputs = self.take(arguments)?;
        let given: Vec<Option<Tensor>> = inputs.iter().map(|input| input.as_tensor().cloned()).collect();
        let call = crash::Call::of(&self.source.0, &self.source.1.name, Stage::Forward, crash::Given::Held(&given));
        let threads = threads::allowed(py);
        let run = |random: &mut TorchGenerator| {
            let forward = py.detach(|| {
                let act = || self.executable.run(inputs, Some(random), &mut |_, _| {});
                pyrite_threads::limited(threads, || call.run(|| errors::guarded(act)))
            });
            forward.map_err(|error| self.failed(&error))
        };
        let start = Instant::now();
        let Forward { outputs, backward } =
            if self.draws { with_torch_generator(py, run)? } else { run(&mut TorchGenerator::new(0))? };
        let is_short = self.may_be_short && start.elapsed() < SHORT;
        self.is_short.store(is_short, Ordering::Relaxed);
        let outcome = Outcome::new(outputs, backward, &given, self.returned.len(), &self.bases, &self.several);
        Ok(outcome.of(&self.source).read_as(&self.readings))
    }

    /// Runs it as [`Self::run_short`] does, for a call that records gradients: inputs that were saved are held from then on.
    fn run_short_recorded(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Option<Outcome>> {
        let run = self.run_at_once(arguments, |Forward { outputs, mut backward }, remembered| {
            let py = arguments.py();
            let mut inputs = Inputs::new(py)?;
            let mut held: Vec<(usize, Tensor)> = Vec::new();
            let mut all_held = true;
            let mut hold = |saved: &Tensor| {
                let index = remembered.position(saved)?;
                let known = held.iter().find(|(known, _)| *known == index).map(|(_, input)| input.clone());
                let taken = || inputs.value(&arguments.get_item(index).ok()?, index).ok()?.as_tensor().cloned();
                let input = known.clone().or_else(taken);
                // Both lie over the bytes that torch says the argument's storage has.
                let place = |tensor: &Tensor| (tensor.storage().as_ptr(), tensor.storage().nbytes());
                let input = input.filter(|input| place(input) == place(saved));
                let renewed = input
                    .as_ref()
                    .and_then(|input| Tensor::new(input.storage().clone(), saved.dtype(), saved.layout().clone()).ok());
                all_held &= renewed.is_some();
                held.extend(input.filter(|_| known.is_none()).map(|input| (index, input)));
                renewed
            };
            let known = backward.as_mut().is_none_or(|backward| backward.hold_saved(&mut hold));
            if !known || !all_held {
                return Ok(None);
            }
            let outcome = Outcome::new(outputs, backward, &[], self.returned.len(), &self.bases, &self.several);
            let seen = remembered.seen(Shim::get(py)?, arguments)?.map(|seen| Py::new(py, seen)).transpose()?;
            Ok(Some(outcome.of(&self.source).holding(held).seeing(seen)))
        });
        let outcome = run?;
        if outcome.is_none() {
            self.is_short.store(false, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    /// Runs it on torch's arguments without letting the interpreter go; `None` where they, or what comes out, need the
    /// longer way.
    fn run_short<'py>(&self, arguments: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.run_at_once(arguments, |Forward { outputs, .. }, _| {
            Outcome::new(outputs, None, &[], 0, &[], &[]).into_list(arguments).map(Some)
        })
    }

    /// The same; what came out, and the arguments as they were taken, go to a function. What is saved for a backward half may
    /// lie in the memory of arguments, which nobody holds but the caller.
    fn run_at_once<R>(
        &self,
        arguments: &Bound<'_, PyTuple>,
        finish: impl FnOnce(Forward, &mut Remembered) -> PyResult<Option<R>>,
    ) -> PyResult<Option<R>> {
        let shim = Shim::get(arguments.py())?;
        let Some(mut short) = self.short.try_lock() else { return Ok(None) };
        let ShortCalls { remembered, prepared } = &mut *short;
        // SAFETY: the program is run at once, here, and no Python runs in it; what it gives does not lie in arguments.
        #[expect(unsafe_code, reason = "memory of the arguments is read without being held")]
        if unsafe { remembered.take(shim, arguments) }.is_none() {
            *prepared = None;
            return Ok(None);
        }
        let start = Instant::now();
        let replace = |known: &mut Box<dyn Prepared>| {
            let mut changed = remembered.changed().iter();
            changed.all(|index| remembered.tensor(*index).is_some_and(|tensor| known.replace(*index, tensor)))
        };
        if !prepared.as_mut().is_some_and(replace) {
            *prepared = self.executable.prepare(&remembered.inputs());
        }
        let mut run = |random: &mut TorchGenerator| match prepared {
            Some(prepared) => prepared.run(random, &mut |_, _| {}),
            None => self.executable.run(remembered.inputs(), Some(random), &mut |_, _| {}),
        };
        let given = crash::Given::Remembered(remembered);
        let call = crash::Call::of(&self.source.0, &self.source.1.name, Stage::Forward, given);
        let act = || call.run(|| UNUSED.with_borrow_mut(|random| errors::guarded(|| run(random))));
        let forward = pyrite_threads::limited(threads::allowed(arguments.py()), act);
        if forward.is_err() {
            *prepared = None;
        }
        let forward = forward.map_err(|error| self.failed(&error))?;
        let mut lies_in_arguments = false;
        forward.outputs.each(&mut |tensor| lies_in_arguments |= remembered.position(tensor).is_some());
        self.is_short.store(!lies_in_arguments && start.elapsed() < SHORT, Ordering::Relaxed);
        if lies_in_arguments {
            return Ok(None);
        }
        finish(forward, remembered)
    }
}

/// Whether all of a graph is machine code: no operator is called outside, and no graph is nested in it.
fn runs_no_python(graph: &Ir, backend: &Backend) -> bool {
    let opaque = |(_, node): (NodeId, &Node)| matches!(node.kind, Kind::Call(Target::Opaque(_)));
    &*backend.name == "native" && graph.subgraphs().is_empty() && !graph.nodes().any(opaque)
}

/// Who runs a call.
enum Runner<'py> {
    Compiled(Bound<'py, Program>),
    Torch(Bound<'py, TorchProgram>),
}

/// A program is compiled for so many ways in which its inputs share memory, lie in it or have sizes that break what was
/// assumed; torch runs the rest.
const MOST_OTHERS: usize = 8;

impl Program {
    /// The inputs of a call.
    fn take(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<Value<Tensor>>> {
        Inputs::take(arguments, if self.writes { Overlap::Joined } else { Overlap::Apart })
    }

    /// Who runs a call with these arguments: the program itself where they keep to its contract.
    fn runner<'py>(slf: &Bound<'py, Self>, arguments: &Bound<'py, PyTuple>) -> PyResult<Runner<'py>> {
        let (py, program) = (slf.py(), slf.get());
        if program.forward_only && is_recording(py)? && gradients_wanted(arguments)? {
            return program.torch(py);
        }
        if arguments.len() == program.arity
            && (program.looks_at_overlaps(arguments)? || program.reaches_marked(arguments)?)
        {
            return program.torch(py);
        }
        if !program.contract.is_conditional() || arguments.len() != program.arity {
            return Ok(Runner::Compiled(slf.clone()));
        }
        let Ok(inputs) = program.take(arguments) else {
            // What cannot be taken in at all is an error of the call; what overlaps in odd ways torch can do.
            Inputs::take(arguments, Overlap::Apart)?;
            return program.torch(py);
        };
        let copied = |tensor: &Tensor| tensor.storage().address() != tensor.storage().as_ptr() as usize;
        let writes_copies = || !program.written.is_empty() && inputs.iter().filter_map(Value::as_tensor).any(copied);
        if program.contract.is_entangled(&inputs) || writes_copies() || program.moves(arguments, &inputs)? {
            return program.torch(py);
        }
        if program.contract.fits(&inputs) {
            return Ok(Runner::Compiled(slf.clone()));
        }
        let known =
            program.others.lock().iter().find(|other| other.get().contract.fits(&inputs)).map(|o| o.clone_ref(py));
        if let Some(known) = known {
            return Ok(Runner::Compiled(known.into_bound(py)));
        }
        if program.is_exhausted.load(Ordering::Relaxed) {
            return program.torch(py);
        }
        let Some(compiled) = program.compiled_for(py, arguments, &inputs)? else {
            program.is_exhausted.store(true, Ordering::Relaxed);
            return program.torch(py);
        };
        let compiled = Bound::new(py, compiled)?;
        py.import("pyrite.autograd")?.call_method1("remember_as", (&compiled, slf))?;
        let mut others = program.others.lock();
        others.push(compiled.clone().unbind());
        program.is_exhausted.store(others.len() >= MOST_OTHERS, Ordering::Relaxed);
        Ok(Runner::Compiled(compiled))
    }

    /// The program compiled for these inputs; `None` where it cannot be.
    fn compiled_for(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        inputs: &[Value<Tensor>],
    ) -> PyResult<Option<Self>> {
        let (graph, backend, options) = &*self.source;
        let Some(mut graph) = specialize(graph, inputs) else { return Ok(None) };
        describe(&mut graph, arguments)?;
        let compiled = py.detach(|| errors::guarded(|| Self::compile(graph, backend, options)));
        Ok(compiled.ok().filter(|compiled| compiled.contract.fits(inputs)))
    }

    /// Whether an output is a view of an input that wants a gradient and whose elements share cells, as those of an
    /// expanded one do. Views are told to torch by where they lie, and a gradient of such a place is a mean.
    fn looks_at_overlaps(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<bool> {
        if !self.differentiates || self.bases.iter().all(Option::is_none) {
            return Ok(false);
        }
        let shim = Shim::get(arguments.py())?;
        for base in self.bases.iter().flatten() {
            let argument = arguments.get_item(*base)?;
            if shim.requires_grad(&argument)
                && shim.shape(&argument).is_ok_and(|shape| Layout::new(shape.sizes, shape.strides, 0).may_overlap())
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an input that is conjugated or negated when it is read is written, or an output is a view of it: a copy
    /// does not do for it.
    fn reaches_marked(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let reached = || self.written.iter().chain(self.bases.iter().flatten());
        if reached().next().is_none() {
            return Ok(false);
        }
        let shim = Shim::get(arguments.py())?;
        for index in reached() {
            let argument = arguments.get_item(*index)?;
            if shim.shape(&argument).is_ok() && shim.is_marked(&argument) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether places in torch's storages are named, and inputs lie in other storages here.
    fn moves(&self, arguments: &Bound<'_, PyTuple>, inputs: &[Value<Tensor>]) -> PyResult<bool> {
        if !self.writes || !self.names_places {
            return Ok(false);
        }
        let offset = |value: &Value<Tensor>| value.as_tensor().map(|tensor| tensor.layout().offset);
        let theirs = Inputs::take(arguments, Overlap::Apart)?;
        Ok(theirs.iter().map(offset).ne(inputs.iter().map(offset)))
    }

    /// The program as torch runs it, whatever its inputs are.
    fn torch<'py>(&self, py: Python<'py>) -> PyResult<Runner<'py>> {
        let made = self.by_torch.get_or_try_init(py, || Py::new(py, TorchProgram::new(py, &self.source.0)?))?;
        Ok(Runner::Torch(made.bind(py).clone()))
    }
}

#[pymethods]
impl Program {
    /// Runs the program.
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(slf: &Bound<'py, Self>, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let program = slf.get();
        if program.for_inference && is_recording(py)? && gradients_wanted(arguments)? {
            return match Self::with_gradients(slf)? {
                Runner::Compiled(program) => program.call1(arguments),
                Runner::Torch(program) => program.call1(arguments),
            };
        }
        let records = |program: &Self| -> PyResult<bool> {
            Ok(program.differentiates && (program.switches_on || is_recording(py)?) && gradients_wanted(arguments)?)
        };
        if program.is_short.load(Ordering::Relaxed)
            && arguments.len() == program.arity
            && !records(program)?
            && let Some(outputs) = program.run_short(arguments)?
        {
            return Ok(outputs);
        }
        let runner = Self::runner(slf, arguments)?;
        let slf = match &runner {
            Runner::Compiled(program) => program,
            Runner::Torch(program) => return program.call1(arguments),
        };
        let program = slf.get();
        if records(program)? {
            static APPLY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            return APPLY.import(py, "pyrite.autograd", "apply")?.call1((slf, arguments));
        }
        let outcome = program.run(arguments)?;
        if !program.written.is_empty() {
            let written: Vec<_> =
                program.written.iter().map(|index| arguments.get_item(*index)).collect::<PyResult<_>>()?;
            py.import("pyrite.autograd")?.call_method1("count_versions_up", (PyList::new(py, written)?,))?;
        }
        outcome.into_list(arguments)
    }

    /// Runs the program and returns what autograd needs to know.
    #[pyo3(signature = (*arguments))]
    fn forward(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Outcome> {
        self.run(arguments)
    }

    /// The same for a program whose last call was short and began with gradients; `None` where this one has to go the longer way.
    #[pyo3(signature = (*arguments))]
    fn forward_short(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Option<Outcome>> {
        errors::check_arity(self.arity, arguments)?;
        let is_short = self.is_short.load(Ordering::Relaxed) && !self.switches_on;
        if is_short { self.run_short_recorded(arguments) } else { Ok(None) }
    }

    /// How many programs there are beside this one, for inputs that it was not compiled for.
    #[getter]
    fn others(&self) -> usize {
        self.others.lock().len()
    }

    /// The positions of the inputs that the program writes.
    #[getter]
    fn written(&self) -> Vec<usize> {
        self.written.clone()
    }

    /// The positions of the inputs that the program writes only while no gradients are recorded.
    #[getter]
    fn unrecorded(&self) -> Vec<usize> {
        self.unrecorded.clone()
    }

    /// The positions of the written inputs that stand at the end of the outputs.
    #[getter]
    fn returned(&self) -> Vec<usize> {
        self.returned.clone()
    }

    /// A leaf of the outputs, as torch reads it, as it lies in memory.
    fn as_it_lies<'py>(&self, leaf: usize, tensor: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // A reading undoes itself.
        self.readings.get(leaf).map_or_else(|| Ok(tensor.clone()), |reading| read(tensor.clone(), *reading))
    }

    /// Whether the program draws random numbers.
    #[getter]
    fn draws(&self) -> bool {
        self.draws
    }

    /// Whether the program begins without gradients and switches them on.
    #[getter]
    fn switches_on(&self) -> bool {
        self.switches_on
    }

    /// The backend that compiled it.
    #[getter]
    fn backend(&self) -> &str {
        &self.source.1.name
    }

    /// The graphs that the backend runs, with their names.
    fn graphs(&self) -> Vec<(String, Graph)> {
        self.executable.graphs().into_iter().map(|(name, graph)| (name, graph.into())).collect()
    }

    /// The optional decisions that were made for it, in the order of their numbers.
    #[getter]
    fn rewrites(&self) -> Vec<String> {
        self.executable.rewrites().to_vec()
    }

    /// How long each stage of compiling took, in seconds and in order.
    #[getter]
    fn stage_times(&self) -> Vec<(&'static str, f64)> {
        self.executable.times().iter().map(|(stage, time)| (*stage, time.as_secs_f64())).collect()
    }

    fn __repr__(&self) -> String {
        format!("<pyrite.Program of {} arguments by {}>", self.arity, self.source.1.name)
    }
}

/// Whether autograd is on.
fn is_recording(py: Python<'_>) -> PyResult<bool> {
    static ENABLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    ENABLED.import(py, "torch", "is_grad_enabled")?.call0()?.is_truthy()
}

/// Whether any argument wants a gradient.
fn gradients_wanted(arguments: &Bound<'_, PyTuple>) -> PyResult<bool> {
    let shim = Shim::get(arguments.py())?;
    Ok(arguments.iter_borrowed().any(|argument| shim.requires_grad(&argument)))
}

/// Lets compiled code be kept on disk, from the first call on; a warning says why it cannot be.
pub fn use_cache(py: Python<'_>) -> PyResult<()> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let mut problem = None;
    ONCE.call_once(|| problem = pyrite_compiler::cache::use_chosen_folder().err());
    let Some(problem) = problem else { return Ok(()) };
    let text = TextRenderer::new(Colour::Plain).render(&problem.diagnostic());
    let text = std::ffi::CString::new(text)?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

/// Compiles a graph with a backend of Pyrite's. Example inputs say what the placeholders are: shapes, types, whose
/// gradients are wanted, and which share memory; sizes that the graph says are symbolic stay so.
#[pyfunction]
#[pyo3(name = "compile", signature = (graph, backend = "native", options = None, example_inputs = None))]
pub fn compile_graph(
    py: Python<'_>,
    #[pyo3(from_py_with = graph_of)] graph: Graph,
    backend: &str,
    options: Option<&Bound<'_, PyDict>>,
    example_inputs: Option<&Bound<'_, PyTuple>>,
) -> PyResult<Program> {
    let settings = self::options(py, options)?;
    debug_wrapper::register_torch(py)?;
    use_cache(py)?;
    crash::watch(py)?;
    let found = find(backend)?;
    let mut graph = graph.graph;
    if let Some(examples) = example_inputs {
        describe(&mut graph, examples)?;
    }
    let recording = is_recording(py)?;
    let program = py.detach(|| {
        errors::guarded(|| {
            let forward = if recording { None } else { Program::compile_for_inference(&graph, &found, &settings) };
            match forward.unwrap_or_else(|| Program::compile(graph.clone(), &found, &settings)) {
                // Some writes are refused only while gradients are recorded.
                Err(NodeError { error: OpError::Invalid(_), .. }) if !recording => {
                    let forward = Program::compile(begin_without_grad(graph.clone())?, &found, &settings)?;
                    Ok(Program {
                        forward_only: true,
                        source: Arc::new((graph, found.clone(), settings.clone())),
                        ..forward
                    })
                }
                // Inputs that share memory in a way that is not compiled are torch's; others may come.
                Err(NodeError { error: OpError::Unsupported(_), .. })
                    if let Some(apart) = with_inputs_apart(&graph) =>
                {
                    Program::compile(apart, &found, &settings)
                }
                made => made,
            }
        })
    });
    program.map_err(|error| errors::uncompiled(py, &error))
}

/// The backend of a name, or an error that lists the names.
pub fn find(name: &str) -> PyResult<Backend> {
    pyrite_compiler::find(name).ok_or_else(|| {
        let known: Vec<String> =
            pyrite_compiler::backend::backends().iter().map(|backend| backend.name.to_string()).collect();
        PyValueError::new_err(format!("there is no backend `{name}`; there are {}", known.join(", ")))
    })
}

/// Names and help of the backends of Pyrite's.
#[pyfunction]
pub fn backends() -> Vec<(String, String)> {
    let listed = pyrite_compiler::backend::backends();
    listed.iter().map(|backend| (backend.name.to_string(), backend.help.to_string())).collect()
}

/// The names of the operators that Pyrite knows.
#[pyfunction]
pub fn operators() -> Vec<String> {
    registry().iter().map(|op| op.schema.name.to_string()).collect()
}

/// Sets what is known of the placeholders from example inputs.
pub fn describe(graph: &mut Ir, examples: &Bound<'_, PyTuple>) -> PyResult<()> {
    let known: Vec<(NodeId, Option<Value<Meta>>)> =
        graph.placeholders().map(|(id, node)| (id, node.meta.clone())).collect();
    if known.len() != examples.len() {
        let (wanted, given) = (known.len(), examples.len());
        return Err(PyTypeError::new_err(format!("the graph takes {wanted} inputs, {given} examples were given")));
    }
    let writes = any_call(graph, &|op| op.schema.is_mutable());
    let overlap = if writes { Overlap::Joined } else { Overlap::Apart };
    // What a wrapper subclass is has been told with the graph, and torch runs what takes one.
    let is_wrapper = examples.py().import("pyrite._wrappers")?.getattr("is_wrapper")?;
    let is_plain = |object: &Bound<'_, PyAny>| -> PyResult<bool> {
        let class = object.get_type();
        Ok(!class.hasattr("__tensor_flatten__")? || !is_wrapper.call1((class,))?.is_truthy()?)
    };
    let mut plain = Vec::with_capacity(known.len());
    for (known, object) in known.into_iter().zip(examples.iter()) {
        if is_plain(&object)? {
            plain.push((known, object));
        }
    }
    let examples = &PyTuple::new(examples.py(), plain.iter().map(|(_, object)| object))?;
    let inputs = Inputs::take(examples, overlap).or_else(|_| Inputs::take(examples, Overlap::Apart))?;
    for (((id, before), object), input) in plain.into_iter().zip(inputs) {
        let Value::Tensor(tensor) = input else { continue };
        let flag = |name: &str| object.getattr(name).and_then(|value| value.is_truthy());
        let mut meta = Meta { requires_grad: flag("requires_grad")?, is_leaf: flag("is_leaf")?, ..Meta::of(&tensor) };
        if let Some(Value::Tensor(before)) = before
            && before.shape.iter().chain(&before.stride).any(|size| size.as_int().is_none())
            && before.rank() == meta.rank()
        {
            meta.shape = before.shape;
            meta.stride = before.stride;
        }
        graph.set_meta(id, Value::Tensor(meta));
    }
    Ok(())
}
