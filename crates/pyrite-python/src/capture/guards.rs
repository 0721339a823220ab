//! Guards, compiled to one walk over the objects they look at.
//!
//! The sources of a plan form a tree: `self`, `self._modules`, `self._modules["layer"]`. A [`Walk`] visits every node
//! once, checks what was assumed of it, and leaves the objects behind for the run of the plan.
//!
//! Invariants: a walk runs no user code; objects it leaves are borrowed from the frame or held by the walk.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use std::cell::RefCell;
use std::rc::Rc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyrite_capture::source::NUMBER;
use pyrite_capture::{Check, Guard, Object, Order, Source};
use pyrite_ir::Meta;
use pyrite_sym::SymInt;
use rustc_hash::FxHashMap;

use super::guard_snapshot::Snapshot;
use super::objects::{PyODict_Type, bound, instance_dict, is_ordered};
use crate::bridge::{Shim, dtype_of};
use crate::modules::import;

/// After so many failures of its guards, an integer of a module counts as one that changes.
const OFTEN: u32 = 3;

pub(super) type Raw = *mut ffi::PyObject;

/// The frame that a walk begins at.
#[derive(Clone, Copy)]
pub struct Frame {
    /// Its slots.
    pub slots: *const Raw,
    /// Its function.
    pub function: Raw,
    /// Its globals.
    pub globals: Raw,
    /// Its builtins.
    pub builtins: Raw,
}

/// A node of the tree: how it is reached from its parent, and its tests with the numbers of their guards.
pub(super) struct Node {
    pub(super) parent: usize,
    pub(super) step: Step,
    pub(super) checks: Vec<(Test, usize)>,
    pub(super) may_be_missing: bool,
}

/// One step from an object to the next.
pub(super) enum Step {
    Local(usize),
    Closure(usize),
    Contents,
    Global(Py<PyAny>),
    Builtin(Py<PyAny>),
    InstanceItem(Py<PyAny>),
    Attribute(Py<PyAny>),
    Index(usize),
    Key(Py<PyAny>),
    ClassItem(Py<PyAny>, Py<PyAny>),
    Referent,
    ContextVariable(Py<PyAny>),
    Asked(Py<PyAny>),
    Proxied,
    Called(Py<PyAny>),
    Fixed(Py<PyAny>),
}

/// An assumption about an object.
pub(super) enum Test {
    Is(Py<PyAny>),
    Class(Py<PyAny>, Option<u32>),
    Equal(Py<PyAny>),
    Length(usize),
    Keys(Vec<Py<PyAny>>),
    Code(Py<PyAny>),
    Tensor(Box<TensorTest>),
    Lacks(Py<PyAny>),
    Nothing,
    Something,
    Unchanged(u32),
    Same(usize),
    Differs(usize),
    Compares(i32, Py<PyAny>, bool),
}

pub(super) struct TensorTest {
    class: Py<PyAny>,
    dtype: pyrite_tensor::DType,
    requires_grad: bool,
    /// Sizes and strides; `None` where any will do.
    sizes: Vec<Option<i64>>,
    strides: Vec<Option<i64>>,
    /// Where strides follow from sizes that may change: the dimensions, outermost in memory first.
    order: Option<Vec<usize>>,
}

/// See the module's text.
pub struct Walk {
    pub(super) nodes: Vec<Node>,
    /// Two nodes, whether they are one object, and the guard that says so. Two paths may be walked in any order.
    pub(super) relations: Vec<(usize, usize, bool, usize)>,
    places: FxHashMap<Source, usize>,
    guards: Vec<Guard>,
    shim: &'static Shim,
    snapshot: RefCell<Option<Snapshot>>,
    /// Whether this version of CPython numbers the states of dictionaries.
    pub(super) numbered: bool,
}

/// The objects that a walk left.
#[derive(Default)]
pub struct Found {
    pub(super) objects: Vec<Raw>,
    owned: Vec<Raw>,
}

impl Found {
    /// The object at a node.
    pub fn get<'py>(&self, py: Python<'py>, place: usize) -> Bound<'py, PyAny> {
        // SAFETY: the walk succeeded, so the object is there; it is borrowed from the frame or held here.
        unsafe { Bound::from_borrowed_ptr(py, self.objects[place]) }
    }

    pub(super) fn clear(&mut self) {
        for object in self.owned.drain(..) {
            // SAFETY: each was a new reference.
            unsafe { ffi::Py_DECREF(object) };
        }
        self.objects.clear();
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        self.clear();
    }
}

thread_local! {
    static SPARE: RefCell<Vec<Found>> = const { RefCell::new(Vec::new()) };
}

/// Takes an empty record of objects; [`give_back`] keeps its room for the next.
pub fn take_found() -> Found {
    SPARE.with(|spare| spare.borrow_mut().pop()).unwrap_or_default()
}

/// Keeps the room of a record.
pub fn give_back(mut found: Found) {
    found.clear();
    SPARE.with(|spare| spare.borrow_mut().push(found));
}

impl Walk {
    /// The walk of a plan's guards and of the further sources it needs.
    pub fn new(py: Python<'_>, mut guards: Vec<Guard>, sources: &[Rc<Source>]) -> PyResult<Self> {
        guards.retain(|guard| !super::rules::is_dropped(&guard.check));
        let mut walk = Self {
            nodes: Vec::new(),
            relations: Vec::new(),
            places: FxHashMap::default(),
            guards: Vec::new(),
            shim: Shim::get(py)?,
            snapshot: RefCell::new(None),
            numbered: py.version_info().minor == 11,
        };
        for (index, guard) in guards.iter().enumerate() {
            let place = walk.place(py, &guard.source);
            let test = walk.test(py, &guard.check);
            walk.nodes[place].may_be_missing |= matches!(test, Test::Nothing);
            match test {
                Test::Same(other) => walk.relations.push((place, other, true, index)),
                Test::Differs(other) => walk.relations.push((place, other, false, index)),
                _ => {}
            }
            walk.nodes[place].checks.push((test, index));
        }
        walk.guards = guards;
        for source in sources {
            walk.place(py, source);
        }
        Ok(walk)
    }

    /// The node of a source that the walk visits.
    pub fn place_of(&self, source: &Source) -> Option<usize> {
        self.places.get(source).copied()
    }

    /// How many guards there are.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    fn place(&mut self, py: Python<'_>, source: &Source) -> usize {
        if let Some(place) = self.places.get(source) {
            return *place;
        }
        let text = |name: &str| pyo3::types::PyString::intern(py, name).into_any().unbind();
        let object = |object: &Object| bound(py, *object).unbind();
        let (parent, step) = match source {
            Source::Local(slot, _) => (usize::MAX, Step::Local(*slot)),
            Source::Closure(index, _) => (usize::MAX, Step::Closure(*index)),
            Source::Global(name) => (usize::MAX, Step::Global(text(name))),
            Source::Builtin(name) => (usize::MAX, Step::Builtin(text(name))),
            Source::Contents(base) => (self.place(py, base), Step::Contents),
            Source::Referent(base) => (self.place(py, base), Step::Referent),
            Source::InstanceItem(base, name) => (self.place(py, base), Step::InstanceItem(text(name))),
            Source::Attribute(base, name) => (self.place(py, base), Step::Attribute(text(name))),
            Source::Index(base, index) => (self.place(py, base), Step::Index(*index)),
            Source::Key(base, key) => (self.place(py, base), Step::Key(object(key))),
            Source::ClassItem(class, name) => (usize::MAX, Step::ClassItem(object(class), text(name))),
            Source::ContextVariable(variable) => (usize::MAX, Step::ContextVariable(object(variable))),
            Source::Asked(question) => (usize::MAX, Step::Asked(object(question))),
            Source::Proxied(base) => (self.place(py, base), Step::Proxied),
            Source::Called(base, function) => (self.place(py, base), Step::Called(object(function))),
            Source::Fixed(fixed) => (usize::MAX, Step::Fixed(object(fixed))),
        };
        let place = self.nodes.len();
        self.nodes.push(Node { parent, step, checks: Vec::new(), may_be_missing: false });
        self.places.insert(source.clone(), place);
        place
    }

    fn test(&mut self, py: Python<'_>, check: &Check) -> Test {
        let object = |object: &Object| bound(py, *object).unbind();
        match check {
            Check::Is(is) => Test::Is(object(is)),
            Check::Class(class, version) => Test::Class(object(class), *version),
            Check::Equal(equal) => Test::Equal(object(equal)),
            Check::Length(length) => Test::Length(*length),
            Check::Keys(keys) => Test::Keys(keys.iter().map(object).collect()),
            Check::Code(code) => Test::Code(object(code)),
            Check::Lacks(name) => Test::Lacks(pyo3::types::PyString::intern(py, name).into_any().unbind()),
            Check::Nothing => Test::Nothing,
            Check::Something => Test::Something,
            Check::Unchanged(version) => Test::Unchanged(*version),
            Check::Same(other) => Test::Same(self.place(py, other)),
            Check::Differs(other) => Test::Differs(self.place(py, other)),
            Check::Compares(order, other, outcome) => {
                let order = match order {
                    Order::Less => ffi::Py_LT,
                    Order::LessOrEqual => ffi::Py_LE,
                    Order::Equal => ffi::Py_EQ,
                    Order::NotEqual => ffi::Py_NE,
                    Order::Greater => ffi::Py_GT,
                    Order::GreaterOrEqual => ffi::Py_GE,
                };
                // SAFETY: a constant of the interpreter.
                Test::Compares(order, object(other), outcome.0 == unsafe { ffi::Py_True() } as usize)
            }
            Check::Tensor(meta, class) => Test::Tensor(Box::new(TensorTest {
                class: object(class),
                dtype: meta.dtype,
                requires_grad: meta.requires_grad,
                sizes: meta.shape.iter().map(SymInt::as_int).collect(),
                strides: meta.stride.iter().map(SymInt::as_int).collect(),
                order: meta.stride.iter().any(|stride| stride.as_int().is_none()).then(|| memory_order(meta)),
            })),
        }
    }

    /// For each node, whether anything is found through its dictionary.
    pub(super) fn holders(&self) -> Vec<bool> {
        let mut holders = vec![false; self.nodes.len()];
        for node in &self.nodes {
            if let Step::InstanceItem(_) | Step::Key(_) = node.step {
                holders[node.parent] = true;
            }
        }
        holders
    }

    /// Walks; the number of the guard that failed where one did.
    pub fn check(&self, py: Python<'_>, frame: &Frame, found: &mut Found) -> Result<(), usize> {
        let mut snapshot = self.snapshot.take().unwrap_or_default();
        if !snapshot.holds(py, self, frame, found) {
            let outcome = self.check_all(py, frame, found);
            if outcome.is_ok() {
                snapshot.renew(self, frame, found);
            }
            self.snapshot.replace(Some(snapshot));
            return outcome;
        }
        self.snapshot.replace(Some(snapshot));
        Ok(())
    }

    fn check_all(&self, py: Python<'_>, frame: &Frame, found: &mut Found) -> Result<(), usize> {
        found.clear();
        for node in &self.nodes {
            // SAFETY: parents come first and are live; steps check what they step on.
            let object = unsafe { Self::step(node, frame, found) };
            if object.is_null() && !node.may_be_missing {
                return Err(node.checks.first().map_or(usize::MAX, |(_, guard)| *guard));
            }
            for (test, guard) in &node.checks {
                // SAFETY: the object is live, or null where the test allows it.
                if !unsafe { self.holds(py, test, object) } {
                    return Err(*guard);
                }
            }
            found.objects.push(object);
        }
        let parted =
            |(a, b, wanted, _): &&(usize, usize, bool, usize)| (found.objects[*a] == found.objects[*b]) != *wanted;
        match self.relations.iter().find(parted) {
            Some((_, _, _, guard)) => Err(*guard),
            None => Ok(()),
        }
    }

    /// The object one step on; null when there is none. New references are held by `found`.
    ///
    /// # Safety
    /// The frame is live, the interpreter held, and the objects of earlier nodes are in `found`.
    pub(super) unsafe fn step(node: &Node, frame: &Frame, found: &mut Found) -> Raw {
        // SAFETY: the caller guarantees live objects; every function is given what its type asks for.
        unsafe {
            let parent = if node.parent == usize::MAX { std::ptr::null_mut() } else { found.objects[node.parent] };
            if parent.is_null() && node.parent != usize::MAX {
                return std::ptr::null_mut();
            }
            let mut own = |object: Raw| {
                if object.is_null() {
                    ffi::PyErr_Clear();
                } else {
                    found.owned.push(object);
                }
                object
            };
            let borrowed = |object: Raw| {
                if object.is_null() && !ffi::PyErr_Occurred().is_null() {
                    ffi::PyErr_Clear();
                }
                object
            };
            match &node.step {
                Step::Local(slot) => *frame.slots.add(*slot),
                Step::Closure(index) => {
                    let closure = ffi::PyFunction_GetClosure(frame.function);
                    if closure.is_null() || ffi::PyTuple_GET_SIZE(closure) <= *index as isize {
                        return std::ptr::null_mut();
                    }
                    ffi::PyTuple_GET_ITEM(closure, *index as isize)
                }
                Step::Contents => own(ffi::PyCell_Get(parent)),
                Step::Global(name) => borrowed(ffi::PyDict_GetItemWithError(frame.globals, name.as_ptr())),
                Step::Builtin(name) => borrowed(ffi::PyDict_GetItemWithError(frame.builtins, name.as_ptr())),
                Step::InstanceItem(name) => {
                    let dict = instance_dict(parent);
                    if dict.is_null() {
                        return dict;
                    }
                    borrowed(ffi::PyDict_GetItemWithError(dict, name.as_ptr()))
                }
                Step::Attribute(name) => own(ffi::PyObject_GetAttr(parent, name.as_ptr())),
                Step::Index(index) => {
                    if ffi::PyTuple_Check(parent) != 0 {
                        if ffi::PyTuple_GET_SIZE(parent) <= *index as isize {
                            return std::ptr::null_mut();
                        }
                        ffi::PyTuple_GET_ITEM(parent, *index as isize)
                    } else if ffi::PyList_Check(parent) != 0 {
                        if ffi::PyList_GET_SIZE(parent) <= *index as isize {
                            return std::ptr::null_mut();
                        }
                        ffi::PyList_GET_ITEM(parent, *index as isize)
                    } else if (*ffi::Py_TYPE(parent)).tp_iternext.is_none() || super::iterators::is_deque(parent) {
                        own(super::iterators::sequence_item(parent, *index))
                    } else {
                        let item = super::iterators::iterator_item(parent, *index);
                        own(item)
                    }
                }
                Step::Key(key) => {
                    if ffi::PyDict_Check(parent) == 0 {
                        return std::ptr::null_mut();
                    }
                    borrowed(ffi::PyDict_GetItemWithError(parent, key.as_ptr()))
                }
                Step::ClassItem(class, name) => {
                    borrowed(super::objects::_PyType_Lookup(class.as_ptr().cast(), name.as_ptr()))
                }
                Step::Referent => {
                    // Asking a reference of that very class runs nobody's code.
                    if ffi::PyWeakref_CheckRefExact(parent) == 0 {
                        return std::ptr::null_mut();
                    }
                    own(ffi::PyObject_CallNoArgs(parent))
                }
                Step::ContextVariable(variable) => {
                    let mut value = std::ptr::null_mut();
                    ffi::PyContextVar_Get(variable.as_ptr(), std::ptr::null_mut(), &raw mut value);
                    own(value)
                }
                Step::Asked(question) => own(ffi::PyObject_CallNoArgs(question.as_ptr())),
                Step::Proxied => proxied(parent),
                Step::Called(function) => own(ffi::PyObject_CallOneArg(function.as_ptr(), parent)),
                Step::Fixed(object) => object.as_ptr(),
            }
        }
    }

    /// Whether a test holds for an object.
    ///
    /// # Safety
    /// The object is live, or null where the test allows it.
    pub(super) unsafe fn holds(&self, py: Python<'_>, test: &Test, object: Raw) -> bool {
        // SAFETY: as for `step`.
        unsafe {
            match test {
                Test::Is(is) => object == is.as_ptr(),
                Test::Class(class, version) => {
                    let of = ffi::Py_TYPE(object);
                    of.cast::<ffi::PyObject>() == class.as_ptr()
                        && version.is_none_or(|version| (*of).tp_version_tag == version)
                }
                Test::Equal(equal) => equals(object, equal.as_ptr()),
                Test::Length(length) => {
                    let size = if ffi::PyTuple_Check(object) != 0 {
                        ffi::PyTuple_GET_SIZE(object)
                    } else if ffi::PyList_Check(object) != 0 {
                        ffi::PyList_GET_SIZE(object)
                    } else if ffi::PyDict_Check(object) != 0 {
                        ffi::PyDict_Size(object)
                    } else {
                        super::iterators::length_of(object)
                    };
                    size == *length as isize
                }
                // Classes that are derived from sets leave iteration to them.
                Test::Keys(keys) if ffi::PyAnySet_Check(object) != 0 => {
                    let members = Bound::from_borrowed_ptr(py, object).try_iter();
                    let members = members.and_then(std::iter::Iterator::collect::<PyResult<Vec<_>>>);
                    members.is_ok_and(|members| {
                        members.len() == keys.len()
                            && members.iter().zip(keys).all(|(member, wanted)| equals(member.as_ptr(), wanted.as_ptr()))
                    })
                }
                Test::Keys(keys) => {
                    if ffi::PyDict_Check(object) == 0 || ffi::PyDict_Size(object) != keys.len() as isize {
                        return false;
                    }
                    if let Some(found) = ordered_keys(&Bound::from_borrowed_ptr(py, object)) {
                        return found.iter().zip(keys).all(|(key, wanted)| equals(key.as_ptr(), wanted.as_ptr()));
                    }
                    let (mut place, mut key, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
                    for wanted in keys {
                        if ffi::PyDict_Next(object, &raw mut place, &raw mut key, &raw mut value) == 0
                            || !equals(key, wanted.as_ptr())
                        {
                            return false;
                        }
                    }
                    true
                }
                // Decorators that rename a function give it an equal copy of its code. Comparing two runs no user code.
                Test::Code(code) => {
                    ffi::PyFunction_Check(object) != 0 && equals(ffi::PyFunction_GetCode(object), code.as_ptr())
                }
                Test::Lacks(name) => {
                    let dict = instance_dict(object);
                    dict.is_null() || ffi::PyDict_Contains(dict, name.as_ptr()) == 0
                }
                Test::Nothing => object.is_null(),
                Test::Something => !object.is_null(),
                Test::Unchanged(version) => (*object.cast::<ffi::PyTypeObject>()).tp_version_tag == *version,
                Test::Tensor(test) => self.tensor_holds(py, test, object),
                Test::Compares(order, other, outcome) => {
                    ffi::PyFloat_CheckExact(object) != 0
                        && ffi::PyObject_RichCompareBool(object, other.as_ptr(), *order) == i32::from(*outcome)
                }
                // Compared once all nodes are known.
                Test::Same(_) | Test::Differs(_) => true,
            }
        }
    }

    /// Whether an object is a tensor as it was assumed.
    ///
    /// # Safety
    /// The object is live.
    unsafe fn tensor_holds(&self, py: Python<'_>, test: &TensorTest, object: Raw) -> bool {
        // SAFETY: the object is live.
        let tensor = unsafe { Bound::from_borrowed_ptr(py, object) };
        // SAFETY: as above.
        if unsafe { ffi::Py_TYPE(object).cast::<ffi::PyObject>() } != test.class.as_ptr() {
            return false;
        }
        let Ok(described) = self.shim.shape(&tensor) else { return false };
        let fits = |found: &[i64], wanted: &[Option<i64>]| {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| w.is_none_or(|w| w == *f))
        };
        if dtype_of(described.dtype) != Some(test.dtype) || !fits(described.sizes, &test.sizes) {
            return false;
        }
        let dense = |order: &Vec<usize>| {
            let mut expected = 1;
            order.iter().rev().all(|dim| {
                let follows = test.strides[*dim].is_some() || described.strides[*dim] == expected;
                expected *= described.sizes[*dim];
                follows
            })
        };
        let strides = fits(described.strides, &test.strides) && test.order.as_ref().is_none_or(dense);
        // A dimension that is a symbol is more than one: one is broadcast.
        let ranges = test.sizes.iter().zip(described.sizes).all(|(wanted, found)| wanted.is_some() || *found > 1);
        strides && ranges && self.shim.requires_grad(&tensor) == test.requires_grad
    }

    /// The objects at all nodes, or null; what holds them is in `found`. Nothing is looked for behind an object of another kind
    /// than was assumed.
    fn visit(&self, py: Python<'_>, frame: &Frame, found: &mut Found) {
        for node in &self.nodes {
            // SAFETY: as in `check`.
            let object = unsafe { Self::step(node, frame, found) };
            let is_other = |test: &Test| {
                let tells = matches!(test, Test::Is(_) | Test::Class(..) | Test::Code(_));
                // SAFETY: the object is live.
                tells && !unsafe { self.holds(py, test, object) }
            };
            let is_other = object.is_null() || node.checks.iter().any(|(test, _)| is_other(test));
            found.objects.push(if is_other { std::ptr::null_mut() } else { object });
        }
    }

    /// The sizes and numbers that differ from what the guards assume, whichever of them failed: paths with the dimensions, or
    /// with [`NUMBER`]. Those that change together become symbols together. Integers of a module differ between its
    /// instances; one counts as changing once guards on it have failed often, which `failures` tells of a path.
    pub fn changes(
        &self,
        py: Python<'_>,
        frame: &Frame,
        failures: &dyn Fn(&Source) -> u32,
    ) -> Vec<(&Guard, Source, Vec<usize>)> {
        let mut found = take_found();
        self.visit(py, frame, &mut found);
        let change = |guard: &'_ Guard| match &guard.check {
            Check::Equal(_) => self.differing_number(py, guard, &found, failures),
            _ => self.differing_sizes(py, guard, &found),
        };
        let changed = self.guards.iter().filter_map(|guard| change(guard).map(|(source, dims)| (guard, source, dims)));
        let changed = changed.collect();
        give_back(found);
        changed
    }

    fn differing_number(
        &self,
        py: Python<'_>,
        guard: &Guard,
        found: &Found,
        failures: &dyn Fn(&Source) -> u32,
    ) -> Option<(Source, Vec<usize>)> {
        let Check::Equal(assumed) = &guard.check else { return None };
        let object = found.objects[self.place_of(&guard.source)?];
        // Frames of other classes need not have what this guard is about.
        if object.is_null() {
            return None;
        }
        let assumed = bound(py, *assumed).as_ptr();
        let free = match &*guard.source {
            Source::Global(_) => true,
            Source::InstanceItem(base, _) => {
                let base = self.place_of(base).filter(|place| !found.objects[*place].is_null());
                let base = base.map(|place| found.get(py, place));
                failures(&guard.source) >= OFTEN || base.is_some_and(|base| !is_torch_module(&base))
            }
            source => source.is_argument(),
        };
        let numbers = (free && is_whole(assumed) && is_whole(object)) || (is_float(assumed) && is_float(object));
        // SAFETY: both are alive.
        let changed = numbers && !unsafe { equals(assumed, object) };
        changed.then(|| ((*guard.source).clone(), vec![NUMBER]))
    }

    fn differing_sizes(&self, py: Python<'_>, guard: &Guard, found: &Found) -> Option<(Source, Vec<usize>)> {
        let Check::Tensor(meta, _) = &guard.check else { return None };
        let place = self.place_of(&guard.source)?;
        if found.objects[place].is_null() {
            return None;
        }
        let tensor = found.get(py, place);
        let described = self.shim.shape(&tensor).ok()?;
        if described.sizes.len() != meta.rank() {
            return None;
        }
        let differing: Vec<usize> = described
            .sizes
            .iter()
            .zip(&meta.shape)
            .enumerate()
            .filter(|(_, (found, assumed))| assumed.as_int().is_some_and(|assumed| assumed != **found))
            .map(|(dim, _)| dim)
            .collect();
        (!differing.is_empty()).then(|| ((*guard.source).clone(), differing))
    }
}

/// Whether an object, or null, is an `int` that can be a symbol: one that is not too large.
fn is_whole(object: Raw) -> bool {
    // SAFETY: an object is live.
    unsafe {
        !object.is_null() && ffi::PyLong_CheckExact(object) != 0 && {
            let mut overflow = 0;
            ffi::PyLong_AsLongLongAndOverflow(object, &raw mut overflow);
            overflow == 0
        }
    }
}

/// Whether an object is a module of torch.
fn is_torch_module(object: &Bound<'_, PyAny>) -> bool {
    let class = import(object.py(), "torch.nn").and_then(|nn| nn.getattr("Module"));
    class.is_ok_and(|class| object.is_instance(&class).unwrap_or(false))
}

/// Whether an object, or null, is exactly a float.
pub fn is_float(object: Raw) -> bool {
    // SAFETY: an object is live.
    unsafe { !object.is_null() && ffi::PyFloat_CheckExact(object) != 0 }
}

/// The dimensions of a tensor, outermost in memory first.
fn memory_order(meta: &Meta) -> Vec<usize> {
    let mut order: Vec<usize> = (0..meta.rank()).collect();
    order.sort_by_key(|dim| std::cmp::Reverse(meta.stride[*dim].hint()));
    order
}

/// The keys of an `OrderedDict`, or of one of a class derived from it, in its own order; nothing for other objects. The
/// dictionary behind it keeps another order once a key was moved.
pub(super) fn ordered_keys<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    // SAFETY: the object is live; the iterator of the class itself runs no code of derived ones.
    unsafe {
        if !is_ordered(object.as_ptr()) {
            return None;
        }
        let class = &raw const PyODict_Type;
        let iterator = (*class).tp_iter?(object.as_ptr());
        let iterator = Bound::from_owned_ptr_or_opt(object.py(), iterator)?;
        iterator.try_iter().ok()?.collect::<PyResult<Vec<_>>>().ok()
    }
}

/// The dictionary that a `types.MappingProxyType` shows, borrowed from it; null for other objects and mappings.
///
/// # Safety
/// The object is live.
pub(super) unsafe fn proxied(object: Raw) -> Raw {
    // SAFETY: what a proxy shows stands right behind the head of its object.
    unsafe {
        if ffi::Py_TYPE(object) != &raw mut ffi::PyDictProxy_Type {
            return std::ptr::null_mut();
        }
        let shown = *object.add(1).cast::<Raw>();
        if !shown.is_null() && ffi::PyDict_Check(shown) != 0 { shown } else { std::ptr::null_mut() }
    }
}

/// Whether two plain objects have one class and are equal. Floats are when their bits are. Objects of a class of the
/// user's are only equal to themselves: no code of theirs is asked.
///
/// # Safety
/// Both are live.
unsafe fn equals(left: Raw, right: Raw) -> bool {
    // SAFETY: both are live.
    unsafe {
        if left == right {
            return true;
        }
        let class = ffi::Py_TYPE(left);
        if class != ffi::Py_TYPE(right) {
            return false;
        }
        if ffi::PyFloat_Check(left) != 0 {
            return ffi::PyFloat_AS_DOUBLE(left).to_bits() == ffi::PyFloat_AS_DOUBLE(right).to_bits();
        }
        if ffi::PyTuple_CheckExact(left) != 0 {
            let length = ffi::PyTuple_GET_SIZE(left);
            return length == ffi::PyTuple_GET_SIZE(right)
                && (0..length).all(|i| equals(ffi::PyTuple_GET_ITEM(left, i), ffi::PyTuple_GET_ITEM(right, i)));
        }
        // Classes of the user's are compared where Python itself does it.
        let natives = [
            &raw const ffi::PyLong_Type,
            &raw const ffi::PyUnicode_Type,
            &raw const ffi::PyBytes_Type,
            &raw const ffi::PyFrozenSet_Type,
        ];
        let compares = |class: *const ffi::PyTypeObject| (*class).tp_richcompare.map(|function| function as usize);
        let native = natives.into_iter().any(|base| compares(base) == compares(class));
        if ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE != 0 && !native {
            return false;
        }
        match ffi::PyObject_RichCompareBool(left, right, ffi::Py_EQ) {
            1 => true,
            0 => false,
            _ => {
                ffi::PyErr_Clear();
                false
            }
        }
    }
}
