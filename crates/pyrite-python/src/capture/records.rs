//! What was captured, for those who ask: `explain`, profilers, logs, records of failures.
//!
//! Every compiler has an observer, a Python object of the class `pyrite._observer.Observer`. It is told of each capture
//! as it begins and ends; nothing is told about runs of plans, so a call that was captured before costs nothing here.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyrite_capture::Check;
use pyrite_capture::plan::Break;

use super::guards::{Frame, Walk};
use super::hook::Config;
use super::store::{CodeState, Kept, Miss};

/// A captured frame.
#[pyclass(module = "pyrite._native", frozen, get_all)]
pub struct Captured {
    /// The function's name.
    pub function: String,
    /// Its file.
    pub file: String,
    /// Its first line.
    pub line: u32,
    /// The graph, if anything is computed.
    pub graph: Option<Py<crate::graph::Graph>>,
    /// How many operators the graph calls.
    pub op_count: usize,
    /// Why the graph ends before its frame does.
    pub reason: Option<String>,
    /// How to avoid it.
    pub hint: Option<String>,
    /// Where, outermost first: file, line, function.
    pub user_stack: Vec<(String, u32, String)>,
    /// What was assumed, as text, where somebody asked for it.
    pub guards: Vec<String>,
    /// The symbols among the sizes of inputs: the name, the place of the input, the dimension.
    pub symbols: Vec<(String, usize, usize)>,
    /// What was assumed of the symbols, as expressions.
    pub constraints: Vec<String>,
    /// How many objects of Python that exist outside of the frame the captured code changes.
    pub changes: usize,
    /// The outputs of the graph that the captured code asserts to be true.
    pub asserted: Vec<usize>,
    /// How many random numbers of Python's the captured code draws.
    pub draws: usize,
    /// Seconds that the capture took.
    pub capture_seconds: f64,
    /// Seconds that the backend took.
    pub compile_seconds: f64,
    /// `captured`, `skipped` (the frame runs plain) or `limit` (too many plans for one code).
    pub outcome: &'static str,
    /// For a code that has been captured before, the guard that failed.
    pub failed_guard: Option<String>,
}

impl Captured {
    /// A record of a code, with nothing captured yet.
    pub fn of(state: &CodeState, why: Option<&Break>, outcome: &'static str) -> Self {
        let code = &state.code;
        let stack = why.map(|why| {
            let entry =
                |(file, line, name): &(_, u32, _)| (ToString::to_string(file), *line, ToString::to_string(name));
            why.stack.iter().map(entry).collect()
        });
        Self {
            function: code.qualified_name.to_string(),
            file: code.file.to_string(),
            line: code.first_line,
            graph: None,
            op_count: 0,
            reason: why.map(|why| why.reason.clone()),
            hint: why.and_then(|why| why.hint.clone()),
            user_stack: stack.unwrap_or_default(),
            guards: Vec::new(),
            symbols: Vec::new(),
            constraints: Vec::new(),
            changes: 0,
            asserted: Vec::new(),
            draws: 0,
            capture_seconds: 0.0,
            compile_seconds: 0.0,
            outcome,
            failed_guard: None,
        }
    }
}

/// The observer of a configuration.
pub struct Watch<'a, 'py> {
    py: Python<'py>,
    observer: &'a Py<PyAny>,
}

impl<'a, 'py> Watch<'a, 'py> {
    /// Who watches a compiler.
    pub fn of(py: Python<'py>, config: &'a Config) -> Self {
        Self { py, observer: &config.observer }
    }

    /// A capture begins; whether it is wanted.
    pub fn begins(&self, state: &CodeState) -> PyResult<bool> {
        let code = &state.code;
        let told = (&*code.qualified_name, &*code.file, code.first_line);
        self.observer.bind(self.py).call_method1("begins", told)?.is_truthy()
    }

    /// A frame has been evaluated symbolically.
    pub fn traced(&self, state: &CodeState, seconds: f64) -> PyResult<()> {
        self.observer.bind(self.py).call_method1("traced", (&*state.code.qualified_name, seconds))?;
        Ok(())
    }

    /// Which sizes, by input and dimension, differ between the ranks of a distributed job.
    pub fn differing(&self, state: &CodeState, sizes: Vec<(String, Vec<i64>)>) -> PyResult<Vec<(usize, usize)>> {
        let code = &state.code;
        let told = (&*code.qualified_name, &*code.file, code.first_line, sizes);
        self.observer.bind(self.py).call_method1("differing", told)?.extract()
    }

    /// What was assumed of a frame, if anybody wants to know.
    pub fn guards(&self, kept: &Kept) -> PyResult<Vec<String>> {
        if !self.observer.bind(self.py).call_method0("wants_guards")?.is_truthy()? {
            return Ok(Vec::new());
        }
        Ok((0..kept.walk.guards().len()).filter_map(|guard| describe_guard(&kept.walk, guard)).collect())
    }

    /// A frame was captured, or runs plain.
    pub fn captured(&self, record: Captured) -> PyResult<()> {
        self.observer.bind(self.py).call_method1("captured", (record,))?;
        Ok(())
    }

    /// A frame could not be captured: here are its function and arguments, for whoever wants to try again.
    pub fn failed(&self, state: &CodeState, frame: &Frame, reason: &str) -> PyResult<()> {
        // SAFETY: function and slots are those of a live frame; parameters are its first slots.
        let (function, arguments) = unsafe {
            let function = Bound::from_borrowed_ptr(self.py, frame.function);
            let slots = (0..state.code.parameters()).map(|index| *frame.slots.add(index));
            let slots = slots.map(|slot| (!slot.is_null()).then(|| Bound::from_borrowed_ptr(self.py, slot)));
            (function, slots.collect::<Vec<_>>())
        };
        let arguments = PyList::new(self.py, arguments)?;
        let told = PyTuple::new(self.py, [function.as_any(), arguments.as_any()])?;
        self.observer.bind(self.py).call_method1("failed", (told, reason))?;
        Ok(())
    }

    /// A code has as many plans as it may have, and another is wanted.
    pub fn limited(&self, state: &CodeState, plans: usize, miss: &Miss) -> PyResult<()> {
        let guard = miss.describe().unwrap_or_else(|| "its assumptions".to_owned());
        let code = &state.code;
        let most = match state.most_failed() {
            Some((source, count)) => format!("`{source}` failed {}", times(count)),
            None => format!("no plan fitted {}", times(state.misses.get())),
        };
        let message = format!(
            "{} ({}:{}) was compiled {} and runs plain from now on. Last reason to compile again: {guard}; {most}. \
             Help: pass what changes as a tensor, or raise pyrite.config.cache_size_limit.",
            code.qualified_name,
            code.file,
            code.first_line,
            times(u32::try_from(plans).unwrap_or(u32::MAX)),
        );
        let record = Captured { failed_guard: miss.describe(), ..Captured::of(state, None, "limit") };
        self.observer.bind(self.py).call_method1("limited", (record, message))?;
        Ok(())
    }
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A guard as text: what it looks at, what it wants, and the user's line that relies on it.
pub fn describe_guard(walk: &Walk, guard: usize) -> Option<String> {
    let guard = walk.guards().get(guard)?;
    let place = guard.line.as_ref().map(|(file, line)| format!(" ({file}:{line})")).unwrap_or_default();
    Some(format!("{}: {}{place}", guard.source, check_name(&guard.check)))
}

fn check_name(check: &Check) -> String {
    match check {
        Check::Is(_) => "is the same object".to_owned(),
        Check::Class(..) => "is of the same class".to_owned(),
        Check::Equal(_) => "has the same value".to_owned(),
        Check::Length(1) => "has 1 item".to_owned(),
        Check::Length(length) => format!("has {length} items"),
        Check::Keys(_) => "has the same keys".to_owned(),
        Check::Code(_) => "is a function of the same code".to_owned(),
        Check::Tensor(meta, _) => format!("is a tensor of type {} and shape {:?}", meta.dtype, meta.shape),
        Check::Lacks(name) => format!("has no attribute {name} of its own"),
        Check::Nothing => "is not there".to_owned(),
        Check::Something => "is there".to_owned(),
        Check::Unchanged(_) => "is a class that has not been changed".to_owned(),
        Check::Same(other) => format!("is {other}"),
        Check::Differs(other) => format!("is not {other}"),
        Check::Compares(order, ..) => format!("compares the same with a number, by {order}"),
    }
}
