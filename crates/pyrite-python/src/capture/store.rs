//! What is kept at a code object: its plans, and the functions its frames go on in.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak as ArcWeak};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyrite_capture::code::Code;
use pyrite_capture::host::GlobalState;
use pyrite_capture::plan::{Effect, End, Plan, Recipe};
use pyrite_capture::resume::Point;
use pyrite_capture::source::NUMBER;
use pyrite_capture::{Object, Source};
use rustc_hash::{FxHashMap, FxHashSet};

use pyrite_ir::{Contract, Given};
use pyrite_sym::Constraint;
use pyrite_tensor::DType;

use super::functions::{Mapping, Resumption};
use super::guards::{Found, Walk};
use super::hook::Config;
use super::host::decode_code;
use super::names::DTYPES;
use super::objects::{Keep, bound};
use super::records::describe_guard;
use crate::bridge::Shim;
use crate::modules::import;

/// A captured frame that can be run again.
pub struct Kept {
    /// For whom it was compiled.
    pub config: ArcWeak<Config>,
    /// Its guards.
    pub walk: Walk,
    /// What it does.
    pub plan: Plan,
    /// The compiled graph.
    pub program: Option<Py<PyAny>>,
    /// Whether torch runs the graph, so that its outputs are just the objects that they are.
    pub by_torch: bool,
    /// The functions of the generators that are made anew, by their recipes.
    pub generators: FxHashMap<usize, Resumption>,
    /// The nodes of the walk where the graph's inputs are.
    pub inputs: Vec<usize>,
    /// For each recipe that starts from a source, the node of the walk where that is.
    pub sources: Vec<Option<usize>>,
    /// What was assumed of the sizes of the inputs of the graph.
    pub contract: Contract,
    /// The symbols among sizes and numbers: the node of the walk where each is read, and the dimension.
    pub symbols: Vec<(Rc<str>, usize, usize)>,
    /// What was assumed of them, by the evaluation of the frame and by the backend.
    pub constraints: Vec<Constraint>,
    /// Keeps the plan's objects alive.
    pub _keep: Vec<Py<PyAny>>,
    /// Calls so far.
    pub calls: Cell<u64>,
}

impl Kept {
    /// Whether what was assumed of the sizes of inputs holds for those that were found. Numbers that are symbols are not too
    /// large.
    pub fn constraints_hold(&self, py: Python<'_>, found: &Found) -> bool {
        let number = |place: usize| found.get(py, place).extract::<i64>().ok();
        let mut numbers = self.symbols.iter().filter(|(_, _, dim)| *dim == NUMBER);
        if !numbers.all(|(_, place, _)| number(*place).is_some()) {
            return false;
        }
        let size = |name: &str| {
            let (_, place, dim) = self.symbols.iter().find(|(symbol, _, _)| &**symbol == name)?;
            if *dim == NUMBER {
                return number(*place);
            }
            Shim::get(py).ok()?.shape(&found.get(py, *place)).ok()?.sizes.get(*dim).copied()
        };
        // What only a run can tell is not assumed of the inputs.
        if self.constraints.iter().any(|constraint| constraint.holds(&size) == Some(false)) {
            return false;
        }
        if !self.contract.is_conditional() {
            return true;
        }
        let Ok(shim) = Shim::get(py) else { return false };
        let tensors: Vec<Bound<'_, PyAny>> = self.inputs.iter().map(|place| found.get(py, *place)).collect();
        let given = |input: usize| match tensors.get(input).map(|tensor| shim.shape(tensor)) {
            Some(Ok(shape)) => Given::Tensor { shape: shape.sizes, stride: shape.strides },
            _ => self.inputs.get(input).and_then(|place| number(*place)).map_or(Given::Other, Given::Int),
        };
        self.contract.symbols(given).is_ok()
    }
}

/// Why no plan of a code fits a frame.
#[derive(Default)]
pub struct Miss {
    /// The guards that failed, each with its plan.
    pub guards: Vec<(Rc<Kept>, usize)>,
    /// What else does not hold.
    pub other: Option<&'static str>,
}

impl Miss {
    /// What does not hold, as text.
    pub fn describe(&self) -> Option<String> {
        let guard = self.guards.last().and_then(|(kept, guard)| describe_guard(&kept.walk, *guard));
        guard.or_else(|| self.other.map(str::to_owned))
    }
}

/// What is kept at a code object.
pub struct CodeState {
    /// The code, decoded.
    pub code: Rc<Code>,
    /// Keeps the decoded code's constants alive.
    _keep: Rc<Keep>,
    /// Where a resume function's instructions are in the original.
    pub mapping: Option<Rc<Mapping>>,
    /// Captured frames.
    pub plans: RefCell<Vec<Rc<Kept>>>,
    /// Sizes that have changed between calls.
    pub dynamic: RefCell<FxHashSet<(Source, usize)>>,
    /// Numbers that have changed but that Python has to know.
    fixed: RefCell<FxHashSet<Source>>,
    /// Functions in which frames of this code go on; the second kind is never captured.
    pub resumptions: RefCell<FxHashMap<Point, Option<Rc<Resumption>>>>,
    /// How often no plan fitted.
    pub misses: Cell<u32>,
    /// How often guards on each source failed.
    failures: RefCell<BTreeMap<String, u32>>,
    /// Set when frames of this code run plain from now on, for a configuration.
    pub given_up: RefCell<Vec<ArcWeak<Config>>>,
    /// How often everything had been forgotten when this was last looked at.
    epoch: Cell<u64>,
}

static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Forgets everything that was captured: code is captured anew when it is next run.
#[pyfunction]
pub fn forget_captures() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
}

impl CodeState {
    /// The state of a code object that nothing is known of; `None` when it cannot be decoded.
    pub fn new(code: &Bound<'_, PyAny>, mapping: Option<Rc<Mapping>>) -> PyResult<Option<Self>> {
        let keep = Rc::new(Keep::default());
        let Some(decoded) = decode_code(code, &keep)? else { return Ok(None) };
        // The code object holds this state; it must not hold the code object in turn.
        keep.forget(decoded.object);
        Ok(Some(Self {
            code: decoded,
            _keep: keep,
            mapping,
            plans: RefCell::default(),
            dynamic: RefCell::default(),
            fixed: RefCell::default(),
            resumptions: RefCell::default(),
            misses: Cell::new(0),
            failures: RefCell::default(),
            given_up: RefCell::default(),
            epoch: Cell::new(EPOCH.load(Ordering::Relaxed)),
        }))
    }

    /// Forgets what was kept before everything was forgotten.
    pub fn refresh(&self) {
        let epoch = EPOCH.load(Ordering::Relaxed);
        if self.epoch.replace(epoch) != epoch {
            self.plans.borrow_mut().clear();
            self.dynamic.borrow_mut().clear();
            self.fixed.borrow_mut().clear();
            self.given_up.borrow_mut().clear();
            self.failures.borrow_mut().clear();
            self.misses.set(0);
        }
    }

    /// Forgets what is kept for a configuration that goes.
    pub fn part_with(&self, config: *const Config) {
        let goes = |known: &ArcWeak<Config>| std::ptr::eq(known.as_ptr(), config) || known.strong_count() == 0;
        let mut plans = self.plans.borrow_mut();
        let gone: Vec<Rc<Kept>> = plans.extract_if(.., |kept| goes(&kept.config)).collect();
        let last = plans.is_empty();
        drop(plans);
        self.given_up.borrow_mut().retain(|known| !goes(known));
        let resumptions = if last { std::mem::take(&mut *self.resumptions.borrow_mut()) } else { FxHashMap::default() };
        // Python may run while these go: nothing is borrowed any more.
        drop((gone, resumptions));
    }

    /// Counts a frame that no plan fitted.
    pub fn missed(&self, miss: &Miss) {
        self.misses.set(self.misses.get() + 1);
        if let Some((kept, guard)) = miss.guards.last()
            && let Some(guard) = kept.walk.guards().get(*guard)
        {
            *self.failures.borrow_mut().entry(guard.source.to_string()).or_default() += 1;
        }
    }

    /// How often guards on a source have failed.
    pub fn failures_of(&self, source: &Source) -> u32 {
        self.failures.borrow().get(&source.to_string()).copied().unwrap_or(0)
    }

    /// The source whose guards failed most often, and how often.
    pub fn most_failed(&self) -> Option<(String, u32)> {
        let failures = self.failures.borrow();
        failures.iter().max_by_key(|(_, count)| **count).map(|(source, count)| (source.clone(), *count))
    }

    /// Notes sizes, or a number, that have changed between calls.
    pub fn note_changes(&self, source: &Source, dims: Vec<usize>) {
        if !self.fixed.borrow().contains(source) {
            self.dynamic.borrow_mut().extend(dims.into_iter().map(|dim| (source.clone(), dim)));
        }
    }

    /// Takes numbers as constants from now on: those that were not.
    pub fn fix_numbers(&self) -> Option<Vec<Source>> {
        let mut dynamic = self.dynamic.borrow_mut();
        let numbers = dynamic.iter().filter(|(_, dim)| *dim == NUMBER).map(|(source, _)| source.clone());
        let numbers: Vec<Source> = numbers.collect();
        dynamic.retain(|(_, dim)| *dim != NUMBER);
        self.fixed.borrow_mut().extend(numbers.iter().cloned());
        (!numbers.is_empty()).then_some(numbers)
    }

    /// Takes back that numbers are constants.
    pub fn free_numbers(&self, numbers: Vec<Source>) {
        self.fixed.borrow_mut().retain(|source| !numbers.contains(source));
        self.dynamic.borrow_mut().extend(numbers.into_iter().map(|source| (source, NUMBER)));
    }

    /// Whether frames run plain for a configuration.
    pub fn is_given_up(&self, config: &Arc<Config>) -> bool {
        self.given_up.borrow().iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(config)))
    }

    /// Lets frames run plain for a configuration from now on.
    pub fn give_up(&self, config: &Arc<Config>) {
        let mut given_up = self.given_up.borrow_mut();
        given_up.retain(|known| known.strong_count() > 0);
        given_up.push(Arc::downgrade(config));
    }
}

/// The objects that a plan names outside of its guards.
pub fn objects_of(py: Python<'_>, plan: &Plan) -> Vec<Py<PyAny>> {
    let mut objects: Vec<Object> = Vec::new();
    for recipe in &plan.recipes {
        match recipe {
            Recipe::Object(object) | Recipe::Call(object, ..) | Recipe::Entered(object, ..) => objects.push(*object),
            Recipe::Tuple(_, Some(class)) | Recipe::Dict(_, Some(class), _) => objects.push(*class),
            Recipe::Instance(class, _) | Recipe::Exception(class, _) => objects.push(*class),
            Recipe::Generator(generator) => objects.extend([generator.code.object, generator.globals]),
            Recipe::Function(function) => objects.extend([function.code, function.globals]),
            _ => {}
        }
    }
    for effect in &plan.effects {
        if let Effect::SetGlobal(object, ..)
        | Effect::DeleteGlobal(object, _)
        | Effect::SetContextVariable(object, _)
        | Effect::Call(object, ..) = effect
        {
            objects.push(*object);
        }
    }
    for draw in &plan.draws {
        objects.push(draw.function);
        objects.extend(&draw.args);
    }
    objects.iter().map(|object| bound(py, *object).unbind()).collect()
}

/// The sources that a plan's recipes and symbols start from.
pub fn sources_of(plan: &Plan) -> Vec<Rc<Source>> {
    let recipes = plan.recipes.iter().filter_map(|recipe| match recipe {
        Recipe::Source(source) => Some(source.clone()),
        _ => None,
    });
    let symbols = plan.symbols.iter().map(|(_, source, _)| source.clone());
    plan.inputs.iter().cloned().chain(recipes).chain(symbols).collect()
}

/// For each recipe of a plan, the node of the walk that it starts from.
pub fn places_of(plan: &Plan, walk: &Walk) -> Vec<Option<usize>> {
    let place = |recipe: &Recipe| match recipe {
        Recipe::Source(source) => walk.place_of(source),
        _ => None,
    };
    plan.recipes.iter().map(place).collect()
}

/// Translates where a plan ends to the original code.
pub fn translate(plan: &mut Plan, mapping: &Mapping) -> Option<()> {
    let End::Break(resume) = &mut plan.end else { return Some(()) };
    let place = |place: usize| mapping.places.get(place).copied().flatten();
    resume.first = place(resume.first)?;
    resume.last = place(resume.last)?;
    // What a prologue took its values from is not needed any more.
    let original = |slot: usize| mapping.slots.get(slot).copied().flatten();
    for slots in [&mut resume.locals, &mut resume.kept] {
        *slots = slots.iter().filter_map(|(slot, recipe)| Some((original(*slot)?, *recipe))).collect();
        slots.sort_unstable();
    }
    resume.written = resume.written.iter().filter_map(|slot| original(*slot)).collect();
    Some(())
}

/// The functions that say what torch's state is.
struct State {
    grad: Py<PyAny>,
    inference: Py<PyAny>,
    any_autocast: Py<PyAny>,
    autocast: Py<PyAny>,
    autocast_dtype: Py<PyAny>,
    default_dtype: Py<PyAny>,
    function_modes: Py<PyAny>,
    dispatch_modes: Py<PyAny>,
    jit_tracer: Py<PyAny>,
    transformation: Py<PyAny>,
    forward_ad: Py<PyAny>,
    modes_are_harmless: Py<PyAny>,
    dtypes: FxHashMap<usize, DType>,
}

static STATE: PyOnceLock<State> = PyOnceLock::new();

fn state(py: Python<'_>) -> PyResult<&'static State> {
    STATE.get_or_try_init(py, || {
        let torch = import(py, "torch")?;
        let function = |name: &str| torch.getattr(name).map(Bound::unbind);
        let mut dtypes = FxHashMap::default();
        for (dtype, name) in DTYPES {
            dtypes.insert(torch.getattr(name)?.as_ptr() as usize, dtype);
        }
        Ok(State {
            grad: function("is_grad_enabled")?,
            inference: function("is_inference_mode_enabled")?,
            any_autocast: torch.getattr("_C")?.getattr("_is_any_autocast_enabled")?.unbind(),
            autocast: function("is_autocast_enabled")?,
            autocast_dtype: function("get_autocast_dtype")?,
            default_dtype: function("get_default_dtype")?,
            function_modes: torch.getattr("_C")?.getattr("_len_torch_function_stack")?.unbind(),
            dispatch_modes: torch.getattr("_C")?.getattr("_len_torch_dispatch_stack")?.unbind(),
            jit_tracer: import(py, "torch._C")?.getattr("_get_tracing_state")?.unbind(),
            transformation: import(py, "torch._C._functorch")?.getattr("peek_interpreter_stack")?.unbind(),
            forward_ad: import(py, "torch.autograd.forward_ad")?.into_any().unbind(),
            modes_are_harmless: import(py, "pyrite._names")?.getattr("modes_are_harmless")?.unbind(),
            dtypes,
        })
    })
}

/// Whether a mode, a transformation of `torch.func`, `torch.jit.trace` or differentiation in forward mode sees what functions of
/// torch are called.
pub fn is_watched(py: Python<'_>) -> PyResult<bool> {
    let state = state(py)?;
    let ask = |question: &Py<PyAny>| question.bind(py).call0();
    let is_traced = !ask(&state.jit_tracer)?.is_none();
    if is_traced || ask(&state.dispatch_modes)?.is_truthy()? || !ask(&state.transformation)?.is_none() {
        return Ok(true);
    }
    // Tensors may carry tangents, which no graph knows of.
    if state.forward_ad.bind(py).getattr(pyo3::intern!(py, "_current_level"))?.extract::<i64>()? >= 0 {
        return Ok(true);
    }
    Ok(ask(&state.function_modes)?.is_truthy()? && !ask(&state.modes_are_harmless)?.is_truthy()?)
}

/// torch's state.
pub fn global_state(py: Python<'_>) -> PyResult<GlobalState> {
    let state = state(py)?;
    let ask = |question: &Py<PyAny>| question.bind(py).call0()?.is_truthy();
    let dtype = |object: Bound<'_, PyAny>| state.dtypes.get(&(object.as_ptr() as usize)).copied();
    let autocast = if ask(&state.any_autocast)? && state.autocast.bind(py).call1(("cpu",))?.is_truthy()? {
        dtype(state.autocast_dtype.bind(py).call1(("cpu",))?)
    } else {
        None
    };
    Ok(GlobalState {
        grad: ask(&state.grad)?,
        inference: ask(&state.inference)?,
        autocast,
        default_dtype: dtype(state.default_dtype.bind(py).call0()?).unwrap_or(DType::F32),
    })
}
