//! Python's own containers and iterators, looked into without running code of the user's.
//!
//! What is asked here is asked of classes by their addresses: a class of the user's may have the name of one of Python's. An
//! iterator is looked into without being advanced.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList, PyRange, PyString, PyTuple, PyType};

use super::host::Raw;
use crate::modules::import;

/// How many items a container of Python's own has, or one of its iterators has not given out yet; -1 for other objects,
/// whose own code would have to say it.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn length_of(object: Raw) -> isize {
    // SAFETY: the caller gives a live object and holds the interpreter.
    let object = unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), object) };
    let class = object.get_type().as_type_ptr();
    let known = iterators(object.py());
    if known.of(class).is_some() {
        return remaining_count(&object).map_or(-1, |count| count as isize);
    }
    // SAFETY: the object is live; the length of a deque is told by C code, whatever a class that is derived from it says.
    let of_deque = unsafe { deque_methods(&object).and_then(|methods| (*methods).sq_length) };
    if let Some(length) = of_deque {
        // SAFETY: the object is a deque.
        return unsafe { length(object.as_ptr()) };
    }
    // SAFETY: the object is live; the length of a set is told by C code.
    let native = unsafe { ffi::PyAnySet_CheckExact(object.as_ptr()) } != 0;
    if native { object.len().map_or(-1, |length| length as isize) } else { -1 }
}

/// What `deque` itself does as a sequence, where an object is a deque, of a derived class or not.
fn deque_methods(object: &Bound<'_, PyAny>) -> Option<*mut ffi::PySequenceMethods> {
    let deque = iterators(object.py()).deque as *mut ffi::PyTypeObject;
    // SAFETY: both are live classes, if there is a deque at all.
    unsafe {
        let is_deque = !deque.is_null() && ffi::PyType_IsSubtype(object.get_type().as_type_ptr(), deque) != 0;
        is_deque.then(|| (*deque).tp_as_sequence).filter(|methods| !methods.is_null())
    }
}

/// Whether an object is a deque, of a derived class or not: such classes have a slot for `__next__`, which only raises.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn is_deque(object: Raw) -> bool {
    // SAFETY: the caller gives a live object and holds the interpreter.
    let object = unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), object) };
    deque_methods(&object).is_some()
}

/// An item of a sequence that is no tuple and no list; a new reference, or null with an exception.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn sequence_item(sequence: Raw, index: usize) -> Raw {
    // SAFETY: the caller gives a live object and holds the interpreter.
    unsafe {
        let object = Bound::from_borrowed_ptr(Python::assume_attached(), sequence);
        match deque_methods(&object).and_then(|methods| (*methods).sq_item) {
            Some(item) => item(sequence, index as isize),
            None => ffi::PySequence_GetItem(sequence, index as isize),
        }
    }
}

/// Longer iterators are not looked into.
const MANY: usize = 64;

/// How an iterator of Python's own can be looked into without advancing it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iterates {
    /// It says what it goes over, and where it stands.
    Sequence,
    /// The same, from the end on.
    Reversed,
    /// It gives a list of what it has not given out yet.
    Dict,
    Zip,
    Enumerate,
}

/// The classes of iterators of Python's own, by their addresses: a class of the user's may have the same name.
struct Iterators {
    known: Vec<(usize, Iterates)>,
    deque: usize,
}

impl Iterators {
    fn of(&self, class: *mut ffi::PyTypeObject) -> Option<Iterates> {
        self.known.iter().find(|(known, _)| *known == class as usize).map(|(_, iterates)| *iterates)
    }
}

static ITERATORS: PyOnceLock<Iterators> = PyOnceLock::new();

fn iterators(py: Python<'_>) -> &'static Iterators {
    ITERATORS.get_or_init(py, || {
        const MADE: [(&str, Iterates); 9] = [
            ("iter([])", Iterates::Sequence),
            ("iter(())", Iterates::Sequence),
            ("iter(range(0))", Iterates::Sequence),
            ("reversed([])", Iterates::Reversed),
            ("iter({})", Iterates::Dict),
            ("iter({}.values())", Iterates::Dict),
            ("iter({}.items())", Iterates::Dict),
            ("zip()", Iterates::Zip),
            ("enumerate([])", Iterates::Enumerate),
        ];
        let class = |text: &str| -> Option<usize> {
            let text = std::ffi::CString::new(text).ok()?;
            Some(py.eval(&text, None, None).ok()?.get_type().as_type_ptr() as usize)
        };
        let known = MADE.iter().filter_map(|(text, iterates)| Some((class(text)?, *iterates))).collect();
        let deque = import(py, "collections").and_then(|module| module.getattr("deque"));
        Iterators { known, deque: deque.map_or(0, |deque| deque.as_ptr() as usize) }
    })
}

/// Whether instances of a class are iterators of Python's own that can be looked into.
pub(super) fn is_known_iterator(class: &Bound<'_, PyType>) -> bool {
    iterators(class.py()).of(class.as_type_ptr()).is_some()
}

/// What an iterator of Python's own says it would be made again from.
fn reduced<'py>(iterator: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    iterator.call_method0("__reduce__").ok()?.cast_into::<PyTuple>().ok()
}

/// The iterators that a `zip` or `enumerate` goes over; nothing for others.
pub(super) fn inner_iterators<'py>(
    iterator: &Bound<'py, PyAny>,
) -> Option<(Vec<Bound<'py, PyAny>>, Bound<'py, PyAny>)> {
    let class = iterator.get_type();
    match iterators(iterator.py()).of(class.as_type_ptr())? {
        Iterates::Zip => {
            let inner = reduced(iterator)?.get_item(1).ok()?.try_iter().ok()?.collect::<PyResult<Vec<_>>>().ok()?;
            Some((inner, class.into_any()))
        }
        Iterates::Enumerate => {
            let parts = reduced(iterator)?.get_item(1).ok()?;
            Some((vec![parts.get_item(0).ok()?], parts.get_item(1).ok()?))
        }
        _ => None,
    }
}

/// How many items an iterator has not given out yet, if it can be looked into.
pub(super) fn remaining_count(iterator: &Bound<'_, PyAny>) -> Option<usize> {
    let known = iterators(iterator.py());
    let count = if let Some((inner, _)) = inner_iterators(iterator) {
        let simple =
            |inner: &Bound<'_, PyAny>| known.of(inner.get_type().as_type_ptr()).and_then(|_| remaining_count(inner));
        let counts = inner.iter().map(simple).collect::<Option<Vec<usize>>>()?;
        // One that is strict, which it says in a third part, raises in the end unless all are equally long.
        let strict = reduced(iterator).is_some_and(|parts| parts.len() > 2);
        if strict && counts.iter().any(|count| *count != counts[0]) {
            return None;
        }
        counts.into_iter().min()?
    } else {
        let count = iterator.call_method0("__length_hint__").ok()?.extract().ok()?;
        if count > MANY || remaining(iterator)?.len() != count {
            return None;
        }
        count
    };
    (count <= MANY).then_some(count)
}

/// The lists and tuples that an iterator goes over; nothing where it goes over a dictionary.
pub(super) fn iterated_lists<'py>(iterator: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Some((inner, _)) = inner_iterators(iterator) {
        let lists = inner.iter().map(iterated_lists).collect::<Option<Vec<_>>>()?;
        return Some(lists.into_iter().flatten().collect());
    }
    match iterators(iterator.py()).of(iterator.get_type().as_type_ptr())? {
        Iterates::Sequence | Iterates::Reversed => {
            let over = reduced(iterator)?.get_item(1).ok()?;
            Some(over.try_iter().ok()?.flatten().collect())
        }
        _ => None,
    }
}

/// What an iterator has not given out yet; nothing when only code of the user's could tell.
pub(super) fn remaining<'py>(iterator: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
    let py = iterator.py();
    if let Some((inner, start)) = inner_iterators(iterator) {
        let lists = inner.iter().map(remaining).collect::<Option<Vec<_>>>()?;
        let builtins = import(py, "builtins").ok()?;
        let again = if start.is_instance_of::<PyInt>() {
            builtins.getattr("enumerate").ok()?.call1((&lists[0], start)).ok()?
        } else {
            builtins.getattr("zip").ok()?.call1(PyTuple::new(py, lists).ok()?).ok()?
        };
        let items: Vec<Bound<'py, PyAny>> = again.try_iter().ok()?.collect::<PyResult<_>>().ok()?;
        return PyList::new(py, items).ok();
    }
    let kind = iterators(py).of(iterator.get_type().as_type_ptr())?;
    let parts = reduced(iterator)?;
    let over = parts.get_item(1).ok()?;
    if over.len().ok()? == 0 {
        return Some(PyList::empty(py));
    }
    let over = over.get_item(0).ok()?;
    let place = parts.get_item(2).ok().and_then(|place| place.extract::<isize>().ok());
    let native = over.is_exact_instance_of::<PyList>()
        || over.is_exact_instance_of::<PyTuple>()
        || over.is_exact_instance_of::<PyRange>()
        || over.is_exact_instance_of::<PyString>();
    if !native {
        return None;
    }
    let items: Vec<Bound<'py, PyAny>> = over.try_iter().ok()?.collect::<PyResult<_>>().ok()?;
    let items: Vec<Bound<'py, PyAny>> = match (kind, place) {
        (Iterates::Reversed, Some(place)) => items.into_iter().take((place + 1).max(0) as usize).rev().collect(),
        (Iterates::Sequence, place) => items.into_iter().skip(place.unwrap_or(0).max(0) as usize).collect(),
        _ => items,
    };
    PyList::new(py, items).ok()
}

/// An item that an iterator has not given out yet, without advancing it: a new reference, or null.
///
/// # Safety
/// The object is live and the interpreter held.
pub unsafe fn iterator_item(iterator: Raw, index: usize) -> Raw {
    // SAFETY: the caller gives a live object and holds the interpreter.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: as above.
    let iterator = unsafe { Bound::from_borrowed_ptr(py, iterator) };
    let item = remaining(&iterator).and_then(|items| items.get_item(index).ok());
    item.map_or(std::ptr::null_mut(), Bound::into_ptr)
}
