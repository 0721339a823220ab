//! From a frame to a plan that is kept: capture, agreement between ranks, the backend.
//!
//! Invariants: a failure of ours, a panic included, lets the frame run plain and is told to the observer; an exception of
//! the backend is the user's to see.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyrite_capture::plan::{Break, End, Recipe};
use pyrite_capture::{Entry, Object, Plan, Settings, Source, capture};
use pyrite_ir::{Contract, Value};
use pyrite_sym::SymInt;
use pyrite_trace::Stage;

use super::guards::{Frame, Walk, give_back, take_found};
use super::hook::Config;
use super::host::Python3;
use super::objects::Keep;
use super::records::{Captured, Watch, describe_guard};
use super::store::{CodeState, Kept, Miss, objects_of, places_of, sources_of, translate};
use super::tracing::{self, Goes};
use crate::modules::import;
use crate::torch_interpreter::TorchProgram;

/// A frame that is to be compiled.
pub struct Job<'a, 'py> {
    /// The interpreter.
    pub py: Python<'py>,
    /// The frame's code object.
    pub object: &'a Bound<'py, PyAny>,
    /// What is kept there.
    pub state: &'a CodeState,
    /// The frame.
    pub frame: &'a Frame,
    /// For whom.
    pub config: &'a Arc<Config>,
    /// Whether all sizes are symbols; `None` lets those that change become symbols.
    pub dynamic: Option<bool>,
}

/// Why a frame runs plain.
enum Refusal {
    /// Nobody wants it, or there is nothing to gain.
    Quiet,
    /// Something is in the way.
    Reason(String, Option<Break>),
}

impl<'py> Job<'_, 'py> {
    /// Compiles the frame; `None` when it is to run plain.
    pub fn run(&self, miss: &Miss) -> PyResult<Option<Rc<Kept>>> {
        let watch = Watch::of(self.py, self.config);
        self.config.remember(self.object);
        if !watch.begins(self.state)? {
            self.state.give_up(self.config);
            return Ok(None);
        }
        let _graph = pyrite_trace::graph(|| tracing::graph_name(self));
        match self.compile(&watch, miss)? {
            Ok(kept) => Ok(Some(kept)),
            Err(Refusal::Quiet) => {
                self.state.give_up(self.config);
                Ok(None)
            }
            Err(Refusal::Reason(reason, why)) => {
                watch.failed(self.state, self.frame, &reason)?;
                if self.config.full_graph {
                    let why = why.unwrap_or(Break { reason, hint: None, stack: Vec::new() });
                    return Err(break_error(self.py, &why));
                }
                self.state.give_up(self.config);
                let _stage = pyrite_trace::within(Stage::Capture);
                tracing::tell_break(self, &reason, why.as_ref(), Goes::Plain);
                let record = Captured::of(self.state, why.as_ref(), "skipped");
                watch.captured(Captured { reason: Some(reason), ..record })?;
                Ok(None)
            }
        }
    }

    fn compile(&self, watch: &Watch<'_, '_>, miss: &Miss) -> PyResult<Result<Rc<Kept>, Refusal>> {
        let refused = |reason: &str| Ok(Err(Refusal::Reason(reason.to_owned(), None)));
        let Self { py, state, frame, config, .. } = *self;
        let stage = pyrite_trace::stage(Stage::Capture);
        let begun = Instant::now();
        // The plan names objects that are kept until its guards keep them.
        let (mut plan, _keep) = match self.plan(watch)? {
            Ok(planned) => planned,
            Err(reason) => return refused(&reason),
        };
        if !plan.fixed_marks.is_empty() {
            let errors = import(py, "pyrite._errors")?;
            let error = errors.call_method1("violated_marks", (&*state.code.qualified_name, plan.fixed_marks))?;
            return Err(PyErr::from_value(error));
        }
        let capture_seconds = begun.elapsed().as_secs_f64();
        drop(stage);
        watch.traced(state, capture_seconds)?;
        let original = match &state.mapping {
            Some(mapping) => {
                if translate(&mut plan, mapping).is_none() {
                    return refused("the frame stops inside of its own prologue");
                }
                mapping.object.bind(py).clone()
            }
            None => self.object.clone(),
        };
        if let End::Break(resume) = &plan.end
            && (config.full_graph || !super::run::can_go_on(py, &original, resume)?)
        {
            return Ok(Err(Refusal::Reason(resume.why.reason.clone(), Some(resume.why.clone()))));
        }
        if plan.graph.is_none() && plan.effects.is_empty() && matches!(plan.end, End::Return(_)) {
            // Without a tensor there is nothing to gain here.
            return Ok(Err(Refusal::Quiet));
        }
        let Some(generators) = super::run::generators(py, &plan)? else {
            return refused("a generator that is alive cannot be created again");
        };
        let guards = std::mem::take(&mut plan.guards);
        let walk = Walk::new(py, guards, &sources_of(&plan))?;
        let inputs: Vec<usize> = plan.inputs.iter().filter_map(|source| walk.place_of(source)).collect();
        let mut found = take_found();
        if let Err(guard) = walk.check(py, frame, &mut found) {
            let guard = describe_guard(&walk, guard).unwrap_or_default();
            return refused(&format!("what was assumed of the frame does not hold: {guard}"));
        }
        let examples = self.examples(&plan, super::run::fetched(py, &inputs, &found))?;
        give_back(found);
        let begun = Instant::now();
        let made = match self.compile_graph(&plan, examples) {
            Ok(made) => made,
            Err(error) => {
                watch.failed(state, frame, &error.to_string())?;
                return Err(error);
            }
        };
        let (program, graph) = match made {
            Compiled::Program(program, graph) => (Some(program), Some(graph)),
            Compiled::Nothing => (None, None),
            Compiled::Refused => return refused("the backend refused the graph"),
        };
        let compile_seconds = begun.elapsed().as_secs_f64();
        let sources = places_of(&plan, &walk);
        let by_torch = program.as_ref().is_some_and(|program| program.bind(py).is_instance_of::<TorchProgram>());
        let contract = plan.graph.as_ref().map(Contract::of_sizes).unwrap_or_default();
        let symbols = plan.symbols.iter();
        let symbols = symbols.filter_map(|(name, source, dim)| Some((name.clone(), walk.place_of(source)?, *dim)));
        let kept = Kept {
            contract,
            symbols: symbols.collect(),
            constraints: plan.env.constraints(),
            config: Arc::downgrade(config),
            _keep: objects_of(py, &plan),
            walk,
            plan,
            program,
            by_torch,
            generators,
            inputs,
            sources,
            calls: Cell::new(0),
        };
        tracing::tell_captured(self, &kept, miss);
        let why = if let End::Break(resume) = &kept.plan.end { Some(&resume.why) } else { None };
        watch.captured(Captured {
            graph,
            op_count: kept.plan.op_count,
            guards: watch.guards(&kept)?,
            symbols: named_sizes(&kept.plan),
            constraints: kept.constraints.iter().map(ToString::to_string).collect(),
            changes: kept.plan.changes + kept.plan.switched.len(),
            asserted: kept.plan.asserted.clone(),
            draws: kept.plan.draws.len(),
            capture_seconds,
            compile_seconds,
            failed_guard: miss.describe(),
            ..Captured::of(state, why, "captured")
        })?;
        Ok(Ok(Rc::new(kept)))
    }

    /// The plan of the frame, after its numbers and sizes were divided into constants and symbols; the reason where there is none.
    fn plan(&self, watch: &Watch<'_, '_>) -> PyResult<Result<(Plan, Rc<Keep>), String>> {
        let Self { state, .. } = *self;
        let mut captured = self.capture()?;
        // A number that leads to a break as a symbol is better a constant.
        if !matches!(&captured, Ok((plan, _)) if matches!(plan.end, End::Return(_)))
            && let Some(numbers) = state.fix_numbers()
        {
            let fixed = self.capture()?;
            if break_of(&fixed).is_some() && break_of(&fixed) == break_of(&captured) {
                state.free_numbers(numbers);
            } else {
                captured = fixed;
            }
        }
        match captured {
            Ok((plan, _)) if self.dynamic.is_none() && self.agree(watch, &plan)? => self.capture(),
            captured => Ok(captured),
        }
    }

    /// What the graph is compiled with: the inputs as they are once their `requires_grad` was switched.
    fn examples(&self, plan: &Plan, fetched: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut examples = super::run::prepared(self.py, plan, fetched)?;
        for (tensor, wanted) in &plan.switched {
            let switched =
                |input: &Rc<Source>| matches!(&plan.recipes[*tensor], Recipe::Source(source) if source == input);
            if let Some(place) = plan.inputs.iter().position(switched) {
                examples[place] = examples[place].call_method0("detach")?.call_method1("requires_grad_", (*wanted,))?;
            }
        }
        Ok(examples)
    }

    /// Evaluates the frame symbolically; the reason where that is not possible. What the plan names is kept beside it.
    fn capture(&self) -> PyResult<Result<(Plan, Rc<Keep>), String>> {
        let Self { py, state, frame, .. } = *self;
        let keep = Rc::new(Keep::default());
        let host = Python3::new(py, keep.clone())?;
        // SAFETY: slots and closure of a live frame.
        let (slots, closure) = unsafe {
            let slot = |index: usize| {
                let object = *frame.slots.add(index);
                (!object.is_null()).then(|| keep.keep(&Bound::from_borrowed_ptr(py, object)))
            };
            let slots: Vec<Option<Object>> = (0..state.code.parameters()).map(slot).collect();
            let closure = ffi::PyFunction_GetClosure(frame.function);
            let cells = if closure.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(closure) };
            let cell = |index: isize| keep.keep(&Bound::from_borrowed_ptr(py, ffi::PyTuple_GET_ITEM(closure, index)));
            (slots, (0..cells).map(cell).collect::<Vec<_>>())
        };
        let entry = Entry {
            code: state.code.clone(),
            closure,
            globals: Object(frame.globals as usize),
            builtins: Object(frame.builtins as usize),
            slots,
        };
        let settings = Settings { dynamic: state.dynamic.borrow().clone(), all_dynamic: self.dynamic == Some(true) };
        match catch_unwind(AssertUnwindSafe(|| capture(&host, &entry, &settings))) {
            Ok(captured) => Ok(captured.map(|plan| (plan, keep)).map_err(|skipped| skipped.0)),
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                Ok(Err(format!("a bug in Pyrite {}, please report it: {said}", env!("CARGO_PKG_VERSION"))))
            }
        }
    }

    /// Lets the sizes that differ between the ranks of a job become symbols; whether there are new ones.
    fn agree(&self, watch: &Watch<'_, '_>, plan: &Plan) -> PyResult<bool> {
        let Some(graph) = &plan.graph else { return Ok(false) };
        let sizes = graph.placeholders().zip(&plan.inputs).map(|((_, node), source)| {
            let shape = match &node.meta {
                Some(Value::Tensor(meta)) => meta.shape.iter().map(|size| SymInt::as_int(size).unwrap_or(-1)).collect(),
                _ => Vec::new(),
            };
            (source.to_string(), shape)
        });
        let differing = watch.differing(self.state, sizes.collect())?;
        let mut dynamic = self.state.dynamic.borrow_mut();
        let mut grown = false;
        for (input, dim) in differing {
            if let Some(source) = plan.inputs.get(input) {
                grown |= dynamic.insert(((**source).clone(), dim));
            }
        }
        Ok(grown)
    }

    /// Whether the function asks torch how one tensor was computed from another: for the gradient by an intermediate
    /// value, or for a hook on one.
    fn asks_for_history(&self, plan: &Plan) -> bool {
        let code = &self.state.code;
        let names = |name: &str| code.names.iter().any(|each| &**each == name);
        let reason = if let End::Break(resume) = &plan.end { &*resume.why.reason } else { "" };
        ["retain_grad", "register_hook", "grad_fn"].iter().any(|name| names(name) || reason.contains(name))
            || names("autograd") && names("grad")
            || code.global_names().any(|name| name == "grad")
            || reason.contains("torch/autograd/")
    }

    fn compile_graph(&self, plan: &Plan, examples: Vec<Bound<'_, PyAny>>) -> PyResult<Compiled> {
        let py = self.py;
        let Some(graph) = &plan.graph else { return Ok(Compiled::Nothing) };
        let has_history = self.asks_for_history(plan) && graph.has_dependent_outputs();
        let graph = Py::new(py, crate::graph::Graph { graph: graph.clone(), has_history })?;
        let examples = PyTuple::new(py, examples)?;
        let program = self.config.backend.bind(py).call1((graph.clone_ref(py), examples))?;
        if program.is_none() {
            return Ok(Compiled::Refused);
        }
        Ok(Compiled::Program(program.unbind(), graph))
    }
}

/// Where a capture ends before its frame does, and why.
fn break_of<K>(captured: &Result<(Plan, K), String>) -> Option<(usize, &str)> {
    match captured {
        Ok((plan, _)) => match &plan.end {
            End::Break(resume) => Some((resume.first, &resume.why.reason)),
            End::Return(_) => None,
        },
        Err(_) => None,
    }
}

enum Compiled {
    Program(Py<PyAny>, Py<crate::graph::Graph>),
    Nothing,
    Refused,
}

/// The error of a function that must be one graph.
fn break_error(py: Python<'_>, why: &Break) -> PyErr {
    let mut message = format!("the graph breaks: {}", why.reason);
    for (file, line, function) in &why.stack {
        message.push_str(&format!("\n  File \"{file}\", line {line}, in {function}"));
    }
    if let Some(hint) = &why.hint {
        message.push_str(&format!("\nHelp: {hint}"));
    }
    let made = import(py, "pyrite._errors").and_then(|errors| errors.call_method1("graph_break", (&message,)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(_) => PyRuntimeError::new_err(message),
    }
}

/// The symbols among the sizes of a plan's inputs: the name, the place of the input, the dimension.
fn named_sizes(plan: &Plan) -> Vec<(String, usize, usize)> {
    let sizes = plan.symbols.iter().filter_map(|(name, source, dim)| {
        let input = plan.inputs.iter().position(|input| input == source)?;
        Some((name.to_string(), input, *dim))
    });
    sizes.collect()
}
