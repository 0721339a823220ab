//! Where CPython evaluates frames.
//!
//! The hook sees every frame of the process. For most of them it is one thread-local look: no compiled function is
//! running here. Frames of compiled functions are looked up at their code object.

#![expect(unsafe_code, reason = "CPython's frames are raw pointers")]

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyrite_capture::Check;
use pyrite_capture::code::{ASYNCHRONOUS, FUNCTION, GENERATOR};
use rustc_hash::FxHashMap;

use super::compile::Job;
use super::functions::Mapping;
use super::guards::{Found, Frame, is_float, take_found};
use super::objects::bound;
use super::records::Watch;
use super::run::{Caller, caller_of};
use super::store::{CodeState, Kept, Miss, global_state, is_watched};
use crate::modules::import;

type Raw = *mut ffi::PyObject;
type Evaluate = unsafe extern "C" fn(*mut ffi::PyThreadState, *mut u8, i32) -> Raw;

// SAFETY: these are the functions and constants of `csrc/frame.c`, with the types they have there.
unsafe extern "C" {
    static pyrite_captures: i32;
    static pyrite_frame_code: usize;
    static pyrite_frame_function: usize;
    static pyrite_frame_globals: usize;
    static pyrite_frame_builtins: usize;
    static pyrite_frame_slots: usize;
    static pyrite_code_flags: usize;
    static pyrite_code_stack_size: usize;
    fn pyrite_set_evaluator(evaluator: *mut std::ffi::c_void);
    fn pyrite_evaluator() -> *mut std::ffi::c_void;
    fn pyrite_default_evaluator() -> *mut std::ffi::c_void;
    fn pyrite_evaluate(thread: *mut ffi::PyThreadState, frame: *mut u8, throwing: i32) -> Raw;
    fn pyrite_leave(thread: *mut ffi::PyThreadState, frame: *mut u8, result: Raw) -> Raw;
    fn pyrite_reserve_extra(drop: Option<unsafe extern "C" fn(*mut std::ffi::c_void)>) -> isize;
    fn pyrite_extra(code: Raw, index: isize) -> *mut std::ffi::c_void;
    fn pyrite_set_extra(code: Raw, index: isize, extra: *mut std::ffi::c_void) -> i32;
}

/// For whom and how frames are compiled.
pub struct Config {
    /// `(graph, example_inputs) -> callable or None`.
    pub backend: Py<PyAny>,
    /// Whether a break is an error.
    pub full_graph: bool,
    /// Whether all sizes are symbols; `None` lets those that change become symbols.
    pub dynamic: Option<bool>,
    /// How many plans a code may have.
    pub limit: usize,
    /// Told of what is captured; see `records`.
    pub observer: Py<PyAny>,
    /// The code objects at which something is kept for it, by their addresses.
    codes: Mutex<FxHashMap<usize, Py<PyAny>>>,
}

impl Config {
    /// Notes that something is kept at a code object.
    pub fn remember(&self, code: &Bound<'_, PyAny>) {
        self.codes.lock().entry(code.as_ptr() as usize).or_insert_with(|| code.clone().unbind());
    }
}

impl Drop for Config {
    /// What is kept holds classes and functions that in turn hold the code objects where it is kept, so it goes now.
    fn drop(&mut self) {
        let codes = std::mem::take(self.codes.get_mut());
        let own: *const Self = self;
        Python::try_attach(|py| {
            for code in codes.values() {
                if let Some(state) = known_state(code.bind(py)) {
                    state.part_with(own);
                }
            }
        });
    }
}

thread_local! {
    static ACTIVE: RefCell<Option<Arc<Config>>> = const { RefCell::new(None) };
    /// Whether `ACTIVE` is set: the one look that every frame pays for.
    static IS_ACTIVE: Cell<bool> = const { Cell::new(false) };
    /// How many frames that run from plans are inside of one another.
    static NESTED: Cell<usize> = const { Cell::new(0) };
    /// The frame that was last handed on to whoever evaluated frames before.
    static HANDED_ON: Cell<*mut u8> = const { Cell::new(std::ptr::null_mut()) };
    /// The configuration that a run of a plan has put aside.
    static ASIDE: RefCell<Vec<Option<Arc<Config>>>> = const { RefCell::new(Vec::new()) };
}

static EXTRA: AtomicIsize = AtomicIsize::new(-1);
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// Frames deeper inside of frames that run from plans run plain: each takes room on the machine's stack.
const MAX_NESTED: usize = 200;
/// The mark of code that is never captured.
const SKIP: *mut std::ffi::c_void = std::ptr::without_provenance_mut(1);
/// The mark of code during which nothing is captured: other compilers.
const QUIET: *mut std::ffi::c_void = std::ptr::without_provenance_mut(2);

fn set_active(config: Option<Arc<Config>>) -> Option<Arc<Config>> {
    IS_ACTIVE.set(config.is_some());
    ACTIVE.replace(config)
}

/// Runs something during which no frame is captured.
pub fn without_capture<R>(run: impl FnOnce() -> R) -> R {
    let active = set_active(None);
    ASIDE.with(|aside| aside.borrow_mut().push(active.clone()));
    let _back = Back(active, true);
    run()
}

/// Puts back, also when something panics, the configuration that was there before, and takes it from those aside.
struct Back(Option<Arc<Config>>, bool);

impl Drop for Back {
    fn drop(&mut self) {
        if self.1 {
            ASIDE.with(|aside| aside.borrow_mut().pop());
        }
        set_active(self.0.take());
    }
}

/// Runs something during which frames are captured as they were before the innermost [`without_capture`].
pub fn with_capture<R>(run: impl FnOnce() -> R) -> R {
    if IS_ACTIVE.get() {
        return run();
    }
    let config = ASIDE.with(|aside| aside.borrow().last().cloned().flatten());
    let _back = Back(set_active(config), false);
    run()
}

/// Whether frames of this version of CPython are captured.
#[pyfunction]
pub fn captures() -> bool {
    // SAFETY: a constant of the C file.
    unsafe { pyrite_captures != 0 }
}

/// Puts the hook in place.
#[pyfunction]
pub fn install() {
    // SAFETY: the interpreter is held; the functions are those of the C file.
    unsafe {
        let first = EXTRA.load(Ordering::Relaxed) < 0;
        if first {
            EXTRA.store(pyrite_reserve_extra(Some(drop_state)), Ordering::Relaxed);
        }
        let current = pyrite_evaluator();
        if current != evaluate as *mut std::ffi::c_void {
            // Who came after the first time has us as the one before it.
            if first && current != pyrite_default_evaluator() {
                BEFORE.store(current as usize, Ordering::Relaxed);
            }
            pyrite_set_evaluator(evaluate as *mut std::ffi::c_void);
        }
    }
}

/// Drops what was kept at a code object.
///
/// # Safety
/// The pointer is one that was kept there.
unsafe extern "C" fn drop_state(extra: *mut std::ffi::c_void) {
    if !extra.is_null() && extra != SKIP && extra != QUIET {
        // SAFETY: the pointer is a box that `set_extra` gave away; the code object is going.
        drop(unsafe { Box::from_raw(extra.cast::<Rc<CodeState>>()) });
    }
}

fn extra(code: Raw) -> *mut std::ffi::c_void {
    // SAFETY: a live code object.
    unsafe { pyrite_extra(code, EXTRA.load(Ordering::Relaxed)) }
}

fn set_extra(code: Raw, state: *mut std::ffi::c_void) {
    let before = extra(code);
    // SAFETY: a live code object; the extra before is ours to drop.
    unsafe {
        pyrite_set_extra(code, EXTRA.load(Ordering::Relaxed), state);
        drop_state(before);
    }
}

/// Lets frames of a code run plain for good.
pub fn set_skip(code: &Bound<'_, PyAny>) {
    set_extra(code.as_ptr(), SKIP);
}

/// Lets frames of a code run plain for good.
#[pyfunction]
pub fn skip_code(code: &Bound<'_, PyAny>) {
    set_skip(code);
}

/// What is kept at a code object, if anything is.
fn known_state(code: &Bound<'_, PyAny>) -> Option<Rc<CodeState>> {
    let known = extra(code.as_ptr());
    if known.is_null() || known == SKIP || known == QUIET {
        return None;
    }
    // SAFETY: the extra is a box of ours.
    Some(unsafe { (*known.cast::<Rc<CodeState>>()).clone() })
}

/// What is kept at a code object, which is decoded if it was not.
pub fn code_state(code: &Bound<'_, PyAny>) -> PyResult<Option<Rc<CodeState>>> {
    let known = extra(code.as_ptr());
    if known == SKIP || known == QUIET {
        return Ok(None);
    }
    if let Some(state) = known_state(code) {
        return Ok(Some(state));
    }
    let Some(state) = CodeState::new(code, None)? else { return Ok(None) };
    Ok(Some(keep_state(code, state)))
}

/// Keeps the state of a resume function's code.
pub fn set_mapping(code: &Bound<'_, PyAny>, mapping: Mapping) -> PyResult<()> {
    if let Some(state) = CodeState::new(code, Some(Rc::new(mapping)))? {
        keep_state(code, state);
    }
    Ok(())
}

fn keep_state(code: &Bound<'_, PyAny>, state: CodeState) -> Rc<CodeState> {
    let state = Rc::new(state);
    set_extra(code.as_ptr(), Box::into_raw(Box::new(state.clone())).cast());
    state
}

/// The hook.
///
/// # Safety
/// CPython calls it with a thread and a frame of its own.
unsafe extern "C" fn evaluate(thread: *mut ffi::PyThreadState, frame: *mut u8, throwing: i32) -> Raw {
    if throwing == 0 && IS_ACTIVE.try_with(Cell::get).unwrap_or(false) {
        let nested = NESTED.get();
        // SAFETY: the frame is CPython's own, of the layout that the C file was compiled for.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe { captured(frame) }));
        match result {
            // SAFETY: as above; the frame is not used after this.
            Ok(Some(result)) => return unsafe { pyrite_leave(thread, frame, result) },
            Ok(None) => {
                // SAFETY: as above.
                if extra(unsafe { field(frame, pyrite_frame_code) }) == QUIET {
                    let active = set_active(None);
                    // SAFETY: the frame goes on to whoever evaluates it.
                    let result = unsafe { hand_on(thread, frame, throwing) };
                    set_active(active);
                    return result;
                }
            }
            Err(_) => {
                NESTED.set(nested);
                IS_ACTIVE.set(ACTIVE.with(|active| active.try_borrow().is_ok_and(|active| active.is_some())));
            }
        }
    }
    // SAFETY: the frame is CPython's own.
    unsafe { hand_on(thread, frame, throwing) }
}

/// Lets CPython, or whoever evaluated frames before, evaluate a frame.
///
/// # Safety
/// The frame is CPython's own, about to be evaluated.
unsafe fn hand_on(thread: *mut ffi::PyThreadState, frame: *mut u8, throwing: i32) -> Raw {
    let before = BEFORE.load(Ordering::Relaxed);
    let handed_on = HANDED_ON.try_with(Cell::get).unwrap_or(frame);
    // SAFETY: the frame goes to CPython, or to whoever evaluated frames before.
    unsafe {
        // Whoever was there before may hand its frames on to us, as torch does: one that comes back is CPython's.
        if before == 0 || handed_on == frame {
            return pyrite_evaluate(thread, frame, throwing);
        }
        HANDED_ON.set(frame);
        let result = std::mem::transmute::<usize, Evaluate>(before)(thread, frame, throwing);
        HANDED_ON.set(handed_on);
        result
    }
}

/// A field of a structure of C.
///
/// # Safety
/// The offset is that of a field of this type.
unsafe fn field<T: Copy>(base: *const u8, offset: usize) -> T {
    // SAFETY: the offset is that of a field of this type.
    unsafe { base.add(offset).cast::<T>().read_unaligned() }
}

/// Runs a frame from its plan; `None` when it is to run plain.
///
/// # Safety
/// The frame is CPython's own, about to be evaluated.
unsafe fn captured(frame: *mut u8) -> Option<Raw> {
    // SAFETY: the caller gives a frame; its fields are live objects.
    let (code, flags, stack_size, view) = unsafe {
        let code: Raw = field(frame, pyrite_frame_code);
        let flags: i32 = field(code.cast(), pyrite_code_flags);
        let view = Frame {
            slots: frame.add(pyrite_frame_slots).cast(),
            function: field(frame, pyrite_frame_function),
            globals: field(frame, pyrite_frame_globals),
            builtins: field(frame, pyrite_frame_builtins),
        };
        let stack_size: i32 = field(code.cast(), pyrite_code_stack_size);
        (code, flags as u32, stack_size, view)
    };
    let known = extra(code);
    if known == SKIP || known == QUIET {
        return None;
    }
    // SAFETY: the hook is called with the interpreter held.
    let py = unsafe { Python::assume_attached() };
    let config = ACTIVE.with(|active| active.borrow().clone())?;
    // SAFETY: the code object is live.
    let code = unsafe { Bound::from_borrowed_ptr(py, code) };
    // Code that needs no stack computes nothing, and has no room for a result.
    if known.is_null() && stack_size == 0 {
        set_extra(code.as_ptr(), SKIP);
        return None;
    }
    if known.is_null() && (flags & (GENERATOR | ASYNCHRONOUS) != 0 || flags & FUNCTION != FUNCTION || is_library(&code))
    {
        set_extra(code.as_ptr(), if asked(&code, "is_compiler") { QUIET } else { SKIP });
        return None;
    }
    let caller = caller_of(code.as_ptr());
    let nested = NESTED.get();
    if nested >= MAX_NESTED {
        return None;
    }
    NESTED.set(nested + 1);
    let outcome = run_frame(py, &code, &view, &config, caller);
    NESTED.set(nested);
    match outcome {
        Ok(Some(value)) => Some(value.into_ptr()),
        Ok(None) => None,
        Err(error) => {
            error.restore(py);
            Some(std::ptr::null_mut())
        }
    }
}

/// Whether a code belongs to a library whose frames are not captured on their own.
fn is_library(code: &Bound<'_, PyAny>) -> bool {
    asked(code, "is_library")
}

/// Asks a function of `pyrite._names` about the file of a code.
fn asked(code: &Bound<'_, PyAny>, question: &str) -> bool {
    let ask = || -> PyResult<bool> {
        let file = code.getattr("co_filename")?;
        import(code.py(), "pyrite._names")?.call_method1(question, (file,))?.is_truthy()
    };
    without_capture(ask).unwrap_or(true)
}

fn run_frame<'py>(
    py: Python<'py>,
    code: &Bound<'py, PyAny>,
    frame: &Frame,
    config: &Arc<Config>,
    caller: Caller,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(state) = code_state(code)? else {
        set_skip(code);
        return Ok(None);
    };
    state.refresh();
    if state.is_given_up(config) {
        return Ok(None);
    }
    // Modes and transformations see the calls of torch's functions as they are written.
    if is_watched(py)? {
        return Ok(None);
    }
    let mut miss = Miss::default();
    let plans: Vec<Rc<Kept>> = state.plans.borrow().clone();
    if !plans.is_empty() {
        let now = global_state(py)?;
        for kept in &plans {
            if !std::ptr::eq(kept.config.as_ptr(), Arc::as_ptr(config)) {
                continue;
            }
            if kept.plan.state != now {
                miss.other = Some("torch's state (grad mode, inference mode, autocast, default type) is the same");
                continue;
            }
            let mut found = take_found();
            match kept.walk.check(py, frame, &mut found) {
                Ok(()) if kept.constraints_hold(py, &found) => {
                    return carry_out(py, &state, kept, found, frame, caller);
                }
                Ok(()) => {
                    super::guards::give_back(found);
                    miss.other = Some("what was assumed of symbolic sizes holds");
                }
                Err(guard) => {
                    super::guards::give_back(found);
                    miss.guards.push((kept.clone(), guard));
                }
            }
        }
    }
    state.missed(&miss);
    let of_config = plans.iter().filter(|kept| std::ptr::eq(kept.config.as_ptr(), Arc::as_ptr(config))).count();
    let function = &*state.code.qualified_name;
    let missed = without_capture(|| Missed::of(py, config.limit, of_config, function))?;
    if missed.runs_plain {
        return Ok(None);
    }
    if of_config >= missed.limit {
        without_capture(|| Watch::of(py, config).limited(&state, of_config, &miss))?;
        state.give_up(config);
        return Ok(None);
    }
    let dynamic = config.dynamic.or(missed.dynamic);
    if dynamic != Some(false) {
        for (kept, _) in &miss.guards {
            for (guard, source, dims) in kept.walk.changes(py, frame, &|source| state.failures_of(source)) {
                let fixed = match &guard.check {
                    Check::Equal(object) if is_float(bound(py, *object).as_ptr()) => missed.fixes_floats,
                    Check::Equal(_) => missed.fixes_integers,
                    _ => false,
                };
                if !fixed {
                    state.note_changes(&source, dims);
                }
            }
        }
    }
    let kept = without_capture(|| Job { py, object: code, state: &state, frame, config, dynamic }.run(&miss))?;
    let Some(kept) = kept else { return Ok(None) };
    let mut found = take_found();
    if kept.walk.check(py, frame, &mut found).is_err() {
        // What was just assumed does not hold: nothing of this frame can be relied on.
        super::guards::give_back(found);
        state.give_up(config);
        return Ok(None);
    }
    let mut plans = state.plans.borrow_mut();
    plans.retain(|known| known.config.strong_count() > 0);
    plans.push(kept.clone());
    drop(plans);
    carry_out(py, &state, &kept, found, frame, caller)
}

/// What becomes of a frame that no plan fits, by the switches of `pyrite._switches`.
#[derive(FromPyObject)]
struct Missed {
    limit: usize,
    runs_plain: bool,
    dynamic: Option<bool>,
    fixes_integers: bool,
    fixes_floats: bool,
}

impl Missed {
    fn of(py: Python<'_>, limit: usize, plans: usize, function: &str) -> PyResult<Self> {
        import(py, "pyrite._switches")?.call_method1("missed", (limit, plans, function))?.extract()
    }
}

/// Runs a plan; nothing when the frame is to run plain. A panic there is an exception: some of the frame's effects may be
/// done, so it cannot run plain.
fn carry_out<'py>(
    py: Python<'py>,
    state: &CodeState,
    kept: &Rc<Kept>,
    found: Found,
    frame: &Frame,
    caller: Caller,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let run = || super::run::run(py, state, kept, found, frame, caller);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let text = format!("a bug in Pyrite {}; please report it with the program", env!("CARGO_PKG_VERSION"));
        Err(PyRuntimeError::new_err(text))
    })
}

/// Switches torch's own capture off where it stands before ours: one frame is not captured twice. How to switch it on
/// again is returned.
fn quiet_torch(py: Python<'_>) -> PyResult<Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>> {
    // SAFETY: the interpreter is held.
    if unsafe { pyrite_evaluator() } == evaluate as *mut std::ffi::c_void {
        return Ok(None);
    }
    let switch = import(py, "torch._C._dynamo.eval_frame")?.getattr("set_eval_frame")?;
    let callback = switch.call1((py.None(),))?;
    install();
    Ok(Some((switch, callback)))
}

/// A function that compiles what it calls.
#[pyclass(module = "pyrite._native", frozen)]
pub struct Compiler {
    config: Arc<Config>,
}

#[pymethods]
impl Compiler {
    #[new]
    #[pyo3(signature = (backend, observer, *, fullgraph, dynamic, cache_size_limit))]
    fn new(
        backend: Py<PyAny>,
        observer: Py<PyAny>,
        fullgraph: bool,
        dynamic: Option<bool>,
        cache_size_limit: usize,
    ) -> Self {
        install();
        let config = Config {
            backend,
            full_graph: fullgraph,
            dynamic,
            limit: cache_size_limit,
            observer,
            codes: Mutex::default(),
        };
        Self { config: Arc::new(config) }
    }

    /// Calls a function; its frames, and those of what it calls, are captured.
    #[pyo3(signature = (function, args, kwargs))]
    fn call<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let theirs = quiet_torch(function.py())?;
        let before = set_active(Some(self.config.clone()));
        let result = function.call(args, kwargs);
        set_active(before);
        if let Some((switch, callback)) = theirs {
            switch.call1((callback,))?;
        }
        result
    }

    /// Calls a function; its frames run plain.
    #[staticmethod]
    #[pyo3(signature = (function, args, kwargs))]
    fn call_plain<'py>(
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let before = set_active(None);
        let result = function.call(args, kwargs);
        set_active(before);
        result
    }
}
