//! Walks that are taken again.
//!
//! Most of what a walk visits hangs in dictionaries that nobody has touched since: the tree of a model, the globals of its
//! modules. CPython 3.11 gives a dictionary a new number at every change, and no two dictionaries ever have the same one:
//! an equal number means the same dictionary with the same contents. A [`Snapshot`] is what a walk found, and the few
//! looks that show that it would find the same again.
//!
//! Later versions of CPython have no such numbers to rely on; there the whole walk is taken each time.
//!
//! Invariants: an object is looked at only after the looks that show it to be alive, which are those at what holds it;
//! what can change without a trace, such as the shape of a tensor, is tested each time; a snapshot that does not hold says
//! nothing about the guards, and the whole walk decides.

#![expect(unsafe_code, reason = "CPython's objects are raw pointers")]

use pyo3::ffi;
use pyo3::prelude::*;

use super::guards::{Found, Frame, Raw, Step, Test, Walk};
use super::objects::{instance_dict, is_ordered};

/// See the module's text. An empty one does not hold.
#[derive(Default)]
pub struct Snapshot {
    objects: Vec<Raw>,
    looks: Vec<Look>,
    /// Pairs of nodes that have to be one object, or not.
    relations: Vec<(usize, usize, bool)>,
    /// For each node, the globals and the builtins, how often it was another or had changed while all guards held.
    changes: Vec<u8>,
}

/// What changes more often than this is walked each time.
const OFTEN: u8 = 3;

enum Look {
    /// The globals are this dictionary at this version.
    Globals(Raw, u64),
    /// The builtins are.
    Builtins(Raw, u64),
    /// A node's dictionary is at this version.
    Dict(usize, Raw, u64),
    /// The `__dict__` of a node's object is this dictionary at this version; null stands for none.
    InstanceDict(usize, Raw, Raw, u64),
    /// An object is of this class, at this version.
    Class(Raw, *mut ffi::PyTypeObject, Option<u32>),
    /// A class is at this version.
    ClassVersion(*mut ffi::PyTypeObject, u32),
    /// A node is walked and tested as the first time.
    Walk(usize),
    /// The same, and it has to lead to the same object.
    Pin(usize),
    /// One of a node's tests, of an object that is the same.
    Test(usize, usize),
}

impl Snapshot {
    /// Takes what a walk that succeeded just found.
    pub fn renew(&mut self, walk: &Walk, frame: &Frame, found: &Found) {
        if !walk.numbered {
            return;
        }
        let count = walk.nodes.len();
        self.changes.resize(count + 2, 0);
        let mut taker = Taker {
            walk,
            frame,
            objects: &found.objects,
            changes: &self.changes,
            holds: walk.holders(),
            same: vec![false; count],
            seen: vec![false; count],
            looks: Vec::new(),
            globals: [false; 2],
            classes: Vec::new(),
        };
        for node in 0..count {
            taker.take(node);
        }
        let Taker { same, looks, .. } = taker;
        let open = walk.relations.iter().filter(|(a, b, _, _)| !(same[*a] && same[*b]));
        self.relations = open.map(|(a, b, wanted, _)| (*a, *b, *wanted)).collect();
        self.objects.clone_from(&found.objects);
        self.looks = looks;
    }

    /// Whether the walk would find what it found, and what it leaves.
    pub fn holds(&mut self, py: Python<'_>, walk: &Walk, frame: &Frame, found: &mut Found) -> bool {
        if self.objects.is_empty() {
            return false;
        }
        found.clear();
        found.objects.extend_from_slice(&self.objects);
        for look in &self.looks {
            // SAFETY: the looks before this one have shown that what it looks at is alive.
            if !unsafe { Self::look(py, walk, frame, found, look) } {
                let changed = match look {
                    Look::Globals(..) => walk.nodes.len(),
                    Look::Builtins(..) => walk.nodes.len() + 1,
                    Look::Dict(place, ..) | Look::InstanceDict(place, ..) | Look::Pin(place) => *place,
                    Look::Class(..) | Look::ClassVersion(..) | Look::Walk(_) | Look::Test(..) => return false,
                };
                self.changes[changed] = self.changes[changed].saturating_add(1);
                return false;
            }
        }
        self.relations.iter().all(|(a, b, wanted)| (found.objects[*a] == found.objects[*b]) == *wanted)
    }

    /// # Safety
    /// The looks before this one succeeded, the frame is live and the interpreter held.
    unsafe fn look(py: Python<'_>, walk: &Walk, frame: &Frame, found: &mut Found, look: &Look) -> bool {
        // SAFETY: the caller guarantees that what a look names is alive.
        unsafe {
            match *look {
                Look::Globals(dict, version) => frame.globals == dict && version_of(dict) == version,
                Look::Builtins(dict, version) => frame.builtins == dict && version_of(dict) == version,
                Look::Dict(_, dict, version) => version_of(dict) == version,
                Look::InstanceDict(_, object, dict, version) => {
                    instance_dict(object) == dict && (dict.is_null() || version_of(dict) == version)
                }
                Look::Class(object, class, version) => {
                    ffi::Py_TYPE(object) == class && version.is_none_or(|version| (*class).tp_version_tag == version)
                }
                Look::ClassVersion(class, version) => (*class).tp_version_tag == version,
                Look::Test(node, test) => {
                    let object = found.objects[node];
                    walk.holds(py, &walk.nodes[node].checks[test].0, object)
                }
                Look::Walk(node) | Look::Pin(node) => {
                    let before = found.objects[node];
                    let object = Walk::step(&walk.nodes[node], frame, found);
                    if matches!(look, Look::Pin(_)) && object != before {
                        return false;
                    }
                    found.objects[node] = object;
                    let node = &walk.nodes[node];
                    (!object.is_null() || node.may_be_missing)
                        && node.checks.iter().all(|(test, _)| walk.holds(py, test, object))
                }
            }
        }
    }
}

/// A snapshot that is being taken.
struct Taker<'a> {
    walk: &'a Walk,
    frame: &'a Frame,
    objects: &'a [Raw],
    changes: &'a [u8],
    /// Whether anything is found through the dictionary of a node.
    holds: Vec<bool>,
    /// Whether a node is the same object while the looks hold.
    same: Vec<bool>,
    /// Whether the dictionary of a node is looked at.
    seen: Vec<bool>,
    looks: Vec<Look>,
    globals: [bool; 2],
    classes: Vec<*mut ffi::PyTypeObject>,
}

impl Taker<'_> {
    fn take(&mut self, place: usize) {
        let node = &self.walk.nodes[place];
        let parent = node.parent;
        let fixed_parent = parent != usize::MAX && self.same[parent] && !self.objects[parent].is_null();
        // SAFETY: the walk has just succeeded, so what it found is alive.
        let same = unsafe {
            match &node.step {
                Step::Fixed(_) => true,
                Step::Global(_) => self.look_at_globals(0),
                Step::Builtin(_) => self.look_at_globals(1),
                Step::InstanceItem(_) if fixed_parent => self.look_at_instance_dict(parent),
                Step::Key(_) if fixed_parent => self.look_at_dict(parent),
                Step::Index(_) if fixed_parent => ffi::PyTuple_Check(self.objects[parent]) != 0,
                Step::ClassItem(class, _) => self.look_at_class(class.as_ptr().cast()),
                _ => false,
            }
        };
        self.same[place] = same;
        if !same {
            let pinned = self.holds[place] && self.changes[place] <= OFTEN;
            self.looks.push(if pinned { Look::Pin(place) } else { Look::Walk(place) });
            self.same[place] = pinned;
            return;
        }
        for (index, (test, _)) in node.checks.iter().enumerate() {
            // SAFETY: as above.
            if !unsafe { self.is_implied(place, test) } {
                self.looks.push(Look::Test(place, index));
            }
        }
    }

    /// Whether a test holds of an object that is the same, once further looks hold.
    ///
    /// # Safety
    /// The walk has just succeeded: what it found is alive.
    unsafe fn is_implied(&mut self, place: usize, test: &Test) -> bool {
        let object = self.objects[place];
        // SAFETY: the object is alive, or null where the test allows it.
        unsafe {
            match test {
                Test::Is(_) | Test::Nothing | Test::Same(_) | Test::Differs(_) => true,
                Test::Class(class, version) => {
                    let class = class.as_ptr().cast();
                    // The class of an instance of a static class cannot be set.
                    if ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE != 0 || ffi::PyModule_Check(object) != 0 {
                        self.looks.push(Look::Class(object, class, *version));
                    }
                    true
                }
                Test::Equal(equal) => object == equal.as_ptr() || is_immutable(object),
                Test::Compares(..) => is_immutable(object),
                Test::Something => true,
                Test::Unchanged(version) => {
                    self.looks.push(Look::ClassVersion(object.cast(), *version));
                    true
                }
                // An ordered dictionary changes its order without a trace.
                Test::Keys(_) if is_ordered(object) => false,
                Test::Keys(_) => self.look_at_dict(place),
                Test::Length(_) if ffi::PyTuple_Check(object) != 0 => true,
                Test::Length(_) if ffi::PyDict_Check(object) != 0 => self.look_at_dict(place),
                Test::Lacks(_) => self.look_at_instance_dict(place),
                Test::Length(_) | Test::Code(_) | Test::Tensor(_) => false,
            }
        }
    }

    /// Looks at the globals or the builtins.
    ///
    /// # Safety
    /// The walk has just succeeded: what it found is alive.
    unsafe fn look_at_globals(&mut self, which: usize) -> bool {
        if self.changes[self.walk.nodes.len() + which] > OFTEN {
            return false;
        }
        if !std::mem::replace(&mut self.globals[which], true) {
            // SAFETY: both dictionaries are the frame's.
            self.looks.push(unsafe {
                match which {
                    0 => Look::Globals(self.frame.globals, version_of(self.frame.globals)),
                    _ => Look::Builtins(self.frame.builtins, version_of(self.frame.builtins)),
                }
            });
        }
        true
    }

    /// Looks at a node that is a dictionary. A node is a dictionary or has one, so one mark serves both.
    ///
    /// # Safety
    /// The walk has just succeeded: what it found is alive.
    unsafe fn look_at_dict(&mut self, place: usize) -> bool {
        let dict = self.objects[place];
        // SAFETY: the object is alive.
        unsafe {
            if ffi::PyDict_Check(dict) == 0 || self.changes[place] > OFTEN {
                return false;
            }
            if !std::mem::replace(&mut self.seen[place], true) {
                self.looks.push(Look::Dict(place, dict, version_of(dict)));
            }
        }
        true
    }

    /// Looks at the `__dict__` of a node.
    ///
    /// # Safety
    /// The walk has just succeeded: what it found is alive.
    unsafe fn look_at_instance_dict(&mut self, place: usize) -> bool {
        let object = self.objects[place];
        // SAFETY: the object is alive.
        unsafe {
            if ffi::PyDict_Check(object) != 0 || self.changes[place] > OFTEN {
                return false;
            }
            if !std::mem::replace(&mut self.seen[place], true) {
                let dict = instance_dict(object);
                let version = if dict.is_null() { 0 } else { version_of(dict) };
                self.looks.push(Look::InstanceDict(place, object, dict, version));
            }
        }
        true
    }

    /// Looks at the version of a class.
    ///
    /// # Safety
    /// The walk has just succeeded: what it found is alive.
    unsafe fn look_at_class(&mut self, class: *mut ffi::PyTypeObject) -> bool {
        // SAFETY: the class is held by the walk.
        let version = unsafe { (*class).tp_version_tag };
        if version == 0 {
            return false;
        }
        if !self.classes.contains(&class) {
            self.classes.push(class);
            self.looks.push(Look::ClassVersion(class, version));
        }
        true
    }
}

/// Whether what an object is equal to never changes.
///
/// # Safety
/// The object is alive.
unsafe fn is_immutable(object: Raw) -> bool {
    // SAFETY: the object is alive.
    unsafe {
        ffi::PyLong_CheckExact(object) != 0
            || ffi::PyFloat_CheckExact(object) != 0
            || ffi::PyUnicode_CheckExact(object) != 0
            || ffi::PyBytes_CheckExact(object) != 0
            || ffi::PyComplex_CheckExact(object) != 0
    }
}

/// # Safety
/// The object is a live dictionary.
#[allow(deprecated, reason = "later versions do not come here")]
unsafe fn version_of(dict: Raw) -> u64 {
    // SAFETY: the caller gives a dictionary.
    unsafe { (*dict.cast::<ffi::PyDictObject>()).ma_version_tag }
}
