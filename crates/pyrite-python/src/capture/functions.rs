//! Functions in which frames go on: code objects from instructions, and who calls them.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use std::rc::Rc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pyrite_capture::Code;
use pyrite_capture::assemble::assemble;
use pyrite_capture::resume::{Continuation, NewCode, Point, argument_slots, closure_slots, resume_code};

use super::objects::bound;
use super::run::Next;

/// A function that goes on at a point of a frame.
pub struct Resumption {
    code: Py<PyAny>,
    /// For each argument, the slot of the original it comes from.
    arguments: Vec<usize>,
    /// For each cell of the closure, the slot of the original.
    closure: Vec<usize>,
}

/// Where the places and slots of a resume function's code are in the original.
pub struct Mapping {
    /// The original code object.
    pub object: Py<PyAny>,
    /// For each instruction its place in the original.
    pub places: Vec<Option<usize>>,
    /// For each slot its number in the original.
    pub slots: Vec<Option<usize>>,
}

/// Makes the function of a point. Continuations become helpers that make the next functions when they are called.
pub fn resumption(
    py: Python<'_>,
    code: &Rc<Code>,
    original: &Bound<'_, PyAny>,
    point: &Point,
) -> PyResult<Option<(Resumption, Mapping)>> {
    let Some((made, continuations)) = resume_code(code, point) else { return Ok(None) };
    let Some(object) = code_object(py, code, original, &made, &continuations)? else { return Ok(None) };
    let resumption = Resumption {
        code: object.clone().unbind(),
        arguments: argument_slots(code, point).collect(),
        closure: closure_slots(code),
    };
    let mapping = Mapping { object: original.clone().unbind(), places: made.places, slots: made.slots };
    Ok(Some((resumption, mapping)))
}

fn code_object<'py>(
    py: Python<'py>,
    code: &Rc<Code>,
    original: &Bound<'py, PyAny>,
    made: &NewCode,
    continuations: &[Continuation],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let assembled = assemble(code.version, &made.instructions, &made.protected, code.first_line);
    let Some(assembled) = assembled else { return Ok(None) };
    let mut consts = Vec::with_capacity(made.consts.len());
    for (index, constant) in made.consts.iter().enumerate() {
        consts.push(match continuations.iter().find(|continuation| continuation.constant == index) {
            Some(continuation) => {
                let point = Point {
                    place: continuation.place,
                    nulls: continuation.nulls.clone(),
                    slots: continuation.slots.clone(),
                    until: None,
                };
                let helper = GoOn { code: original.clone().unbind(), point, kept: continuation.kept.clone() };
                Bound::new(py, helper)?.into_any()
            }
            None => bound(py, *constant),
        });
    }
    let texts = |names: &[Rc<str>]| PyTuple::new(py, names.iter().map(|name| &**name));
    let changes = PyDict::new(py);
    changes.set_item("co_code", PyBytes::new(py, &assembled.code))?;
    changes.set_item("co_linetable", PyBytes::new(py, &assembled.lines))?;
    changes.set_item("co_exceptiontable", PyBytes::new(py, &assembled.exceptions))?;
    changes.set_item("co_consts", PyTuple::new(py, consts)?)?;
    changes.set_item("co_names", texts(&made.names)?)?;
    changes.set_item("co_varnames", texts(&made.locals)?)?;
    changes.set_item("co_nlocals", made.locals.len())?;
    changes.set_item("co_cellvars", PyTuple::empty(py))?;
    changes.set_item("co_freevars", texts(&made.free)?)?;
    changes.set_item("co_argcount", made.arguments)?;
    changes.set_item("co_posonlyargcount", 0)?;
    changes.set_item("co_kwonlyargcount", 0)?;
    changes.set_item("co_flags", made.flags)?;
    changes.set_item("co_stacksize", made.stack_size)?;
    changes.set_item("co_name", &made.name)?;
    original.call_method("replace", (), Some(&changes)).map(Some)
}

impl Resumption {
    /// The code object.
    pub fn code<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.code.bind(py).clone()
    }

    /// Calls the function with the values of slots (cells for those that are) and of the stack.
    pub fn call<'py>(
        &self,
        py: Python<'py>,
        globals: &Bound<'py, PyAny>,
        slots: &[(usize, Bound<'py, PyAny>)],
        stack: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let slot = |wanted: &usize| slots.iter().find(|(slot, _)| slot == wanted).map(|(_, value)| value.clone());
        let mut arguments: Vec<Bound<'py, PyAny>> = self.arguments.iter().filter_map(slot).collect();
        arguments.extend(stack);
        // SAFETY: code and globals are live objects of their types; the result is a new reference or an error.
        let function =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyFunction_New(self.code.as_ptr(), globals.as_ptr()))? };
        if !self.closure.is_empty() {
            let mut cells = Vec::with_capacity(self.closure.len());
            for wanted in &self.closure {
                cells.push(match slot(wanted) {
                    Some(cell) => cell,
                    // SAFETY: an empty cell is a new reference.
                    None => unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCell_New(std::ptr::null_mut()))? },
                });
            }
            let cells = PyTuple::new(py, cells)?;
            // SAFETY: the function takes a reference to the tuple of cells.
            unsafe { ffi::PyFunction_SetClosure(function.as_ptr(), cells.as_ptr()) };
        }
        function.call1(PyTuple::new(py, arguments)?)
    }
}

/// The helper that a resume function calls after the instruction it ran, to return what it gives: where the frame goes on.
#[pyclass(module = "pyrite._native", frozen)]
pub struct GoOn {
    code: Py<PyAny>,
    point: Point,
    /// The slots that nothing reads any more, after those of the point.
    kept: Vec<usize>,
}

#[pymethods]
impl GoOn {
    /// A constant of a code object: whoever copies those copies the reference.
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __call__(&self, py: Python<'_>, stack: &Bound<'_, PyTuple>, locals: &Bound<'_, PyTuple>) -> PyResult<Next> {
        let mut locals = locals.iter().map(Bound::unbind);
        let slots = self.point.slots.iter().copied().zip(&mut locals).collect();
        let kept = self.kept.iter().copied().zip(locals).collect();
        Ok(Next {
            original: self.code.clone_ref(py),
            point: self.point.clone(),
            globals: calling_globals(py)?.unbind(),
            slots,
            kept,
            written: Vec::new(),
            stack: stack.iter().map(Bound::unbind).collect(),
        })
    }
}

/// The globals of the Python frame that calls.
fn calling_globals(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a borrowed reference to the globals of the current frame, which is the resume function's.
    let globals = unsafe { ffi::PyEval_GetGlobals() };
    // SAFETY: as above.
    unsafe { Bound::from_borrowed_ptr_or_err(py, globals) }
}

/// The code and the exception table of a code object, decoded and assembled again; `None` when it has an instruction that
/// is unknown.
#[pyfunction]
pub fn reassembled<'py>(code: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
    let keep = super::objects::Keep::default();
    let Some(decoded) = super::host::decode_code(code, &keep)? else { return Ok(None) };
    let made = assemble(decoded.version, &decoded.instructions, &decoded.protected, decoded.first_line);
    let Some(made) = made else { return Ok(None) };
    let py = code.py();
    Ok(Some((PyBytes::new(py, &made.code), PyBytes::new(py, &made.exceptions))))
}
