//! The one door to what lies outside of the frame.
//!
//! Objects from outside may be others, or hold other things, at the next call. Whatever the evaluator sees of them it
//! sees through the functions of this module, and each of them records where it looked and what was seen: an attribute,
//! an item, a class, a length, an order, an absence, a state of torch or Python. What is found comes as [`Seen`], an
//! object together with the path to it, and becomes a value only by [`Evaluator::admit`], which guards what it is.
//!
//! Invariants: [`World`], the part of the host that reads what can change, is a private field here, so no other module
//! can read it unrecorded. [`crate::Host`], which all modules use, tells only facts that cannot change: what a class is
//! called, what an immutable object holds, what a pure function computes. What is deliberately not guarded: that torch keeps
//! the names of a module's parameters, buffers and submodules apart.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::{Evaluator, Run, Stop};
use crate::host::{Changes, FunctionParts, GlobalState, Kind, Object, TensorFacts, World};
use crate::source::{Check, Guard, Source};
use crate::value::{Origin, Value};

/// What was found outside, and where.
pub(super) struct Seen {
    /// The object.
    pub(super) object: Object,
    /// The path to it.
    pub(super) source: Rc<Source>,
}

/// See the module's text.
pub(super) struct Outside<'a> {
    world: &'a dyn World,
    guards: RefCell<Vec<Guard>>,
    guarded: RefCell<FxHashSet<(Rc<Source>, u8)>>,
    /// Classes that are guarded to hold what they hold.
    watched: RefCell<FxHashSet<Object>>,
    /// Whether a class was looked into that says nothing of its changes.
    unwatchable: Cell<Option<Object>>,
}

impl<'a> Outside<'a> {
    pub(super) fn new(world: &'a dyn World) -> Self {
        Self {
            world,
            guards: RefCell::default(),
            guarded: RefCell::default(),
            watched: RefCell::default(),
            unwatchable: Cell::new(None),
        }
    }
}

impl Evaluator<'_, '_> {
    /// Assumes something of an object from outside.
    pub(super) fn guard(&self, source: &Rc<Source>, check: Check) {
        // What an object is cannot change, what it holds can.
        if let Source::Fixed(object) = **source {
            let changes = matches!(self.host.kind(object), Kind::List | Kind::Deque | Kind::Dict | Kind::Set);
            let held = matches!(check, Check::Length(_) | Check::Keys(_) | Check::Equal(_)) && changes;
            if !held && !matches!(check, Check::Unchanged(_) | Check::Code(_)) {
                return;
            }
        }
        let tag = match &check {
            Check::Is(_) => 0,
            Check::Class(..) => 1,
            Check::Equal(_) => 2,
            Check::Length(_) => 3,
            Check::Keys(_) => 4,
            Check::Code(_) => 5,
            Check::Tensor(..) => 6,
            Check::Nothing => 7,
            Check::Something => 8,
            Check::Unchanged(_) => 9,
            Check::Lacks(_) | Check::Same(_) | Check::Differs(_) | Check::Compares(..) => 255,
        };
        if tag == 255 || self.outside.guarded.borrow_mut().insert((source.clone(), tag)) {
            let line = self.trace.last().map(|(file, line, _)| (file.clone(), *line));
            self.outside.guards.borrow_mut().push(Guard { source: source.clone(), check, line });
        }
    }

    /// All that was assumed; an error when something was seen whose changes go unnoticed.
    pub(super) fn take_guards(&self) -> Result<Vec<Guard>, String> {
        match self.outside.unwatchable.get() {
            Some(class) => Err(format!("the class {} changes too often to be relied on", self.host.class_name(class))),
            None => Ok(std::mem::take(&mut *self.outside.guards.borrow_mut())),
        }
    }

    /// The value of what was found, which is guarded by what it is.
    pub(super) fn admit(&mut self, seen: &Seen) -> Run<Value> {
        self.wrap(seen.object, &seen.source)
    }

    /// What was found, as an item of a container that nobody has looked at.
    pub(super) fn lazily(&self, seen: Seen) -> Value {
        Value::Lazy(Rc::new(Origin { object: seen.object, source: seen.source }))
    }

    /// Relies on a class, and its bases, holding what they hold.
    pub(super) fn watch_class(&self, class: Object) {
        if !self.outside.watched.borrow_mut().insert(class) {
            return;
        }
        match self.outside.world.changes(class) {
            Changes::Never => {}
            Changes::Version(version) => self.guard(&Rc::new(Source::Fixed(class)), Check::Unchanged(version)),
            Changes::Unnoticed => self.outside.unwatchable.set(Some(class)),
        }
    }

    /// The class of an object from outside, which is guarded, as is what the class holds.
    pub(super) fn guard_class(&self, origin: &Origin) -> Object {
        let class = self.host.class_of(origin.object);
        let version = match self.outside.world.changes(class) {
            Changes::Version(version) => {
                self.outside.watched.borrow_mut().insert(class);
                Some(version)
            }
            Changes::Never | Changes::Unnoticed => None,
        };
        self.guard(&origin.source, Check::Class(class, version));
        class
    }

    /// Whether what a class holds can be changed at all.
    pub(super) fn may_change(&self, class: Object) -> bool {
        self.outside.world.changes(class) != Changes::Never
    }

    /// What a class has under a name, its bases included, unbound.
    pub(super) fn class_item(&self, class: Object, name: &str) -> Option<Object> {
        self.watch_class(class);
        self.outside.world.class_attribute(class, name)
    }

    /// As `super(class, object_of).name` looks it up: in the bases of `object_of` after `class`.
    pub(super) fn class_item_after(&self, object_of: Object, class: Object, name: &str) -> Option<Object> {
        self.watch_class(object_of);
        self.outside.world.class_attribute_after(object_of, class, name)
    }

    /// Whether a class is another, derived from it, or registered with it.
    pub(super) fn is_subclass(&self, class: Object, base: Object) -> bool {
        if self.host.derives(class, base) {
            return true;
        }
        let answer = self.outside.world.is_subclass(class, base);
        // Abstract classes know of others by registration.
        let abstracts = self.host.member("abc", "ABCMeta");
        if abstracts.is_some_and(|meta| self.host.derives(self.host.class_of(base), meta))
            && let Ok(question) = self.outside.world.attribute(base, "__subclasscheck__")
        {
            let source = Rc::new(Source::Called(Rc::new(Source::Fixed(class)), question));
            self.guard(&source, Check::Equal(self.host.bool(answer)));
        }
        answer
    }

    /// An attribute that is read without user code; one that is missing raises, and is guarded to be missing.
    pub(super) fn read_attribute(&self, object: Object, source: &Rc<Source>, name: &str) -> Run<Seen> {
        let source = Rc::new(Source::Attribute(source.clone(), name.into()));
        match self.outside.world.attribute(object, name) {
            Ok(object) => Ok(Seen { object, source }),
            Err(raised) => {
                self.guard(&source, Check::Nothing);
                Err(self.raised(raised))
            }
        }
    }

    /// An item of the `__dict__` of an object; one that is missing is guarded to be.
    pub(super) fn read_instance_item(&self, object: Object, source: &Rc<Source>, name: &Rc<str>) -> Option<Seen> {
        let world = self.outside.world;
        let dict = world.instance_dict(object);
        if let Some(dict) = dict
            && self.host.is_by_thread(self.host.class_of(object))
        {
            return self.read_key(dict, &Rc::new(Source::Attribute(source.clone(), "__dict__".into())), name);
        }
        let found = dict.and_then(|dict| world.dict_item(dict, name));
        match found {
            Some(object) => Some(Seen { object, source: Rc::new(Source::InstanceItem(source.clone(), name.clone())) }),
            None if matches!(**source, Source::Fixed(_)) => {
                self.guard(&Rc::new(Source::InstanceItem(source.clone(), name.clone())), Check::Nothing);
                None
            }
            None => {
                self.guard(source, Check::Lacks(name.clone()));
                None
            }
        }
    }

    /// The entries of the `__dict__` of an object, whose keys are guarded; nothing when it has none.
    pub(super) fn read_instance_entries(&self, origin: &Origin) -> Run<Option<Vec<(Rc<str>, Seen)>>> {
        let Some(dict) = self.outside.world.instance_dict(origin.object) else { return Ok(None) };
        let pairs = self.outside.world.entries(dict);
        let source = Rc::new(Source::Attribute(origin.source.clone(), "__dict__".into()));
        self.guard(&source, Check::Keys(pairs.iter().map(|(key, _)| *key).collect()));
        let by_thread = self.host.is_by_thread(self.host.class_of(origin.object));
        let seen = |(key, object): (Object, Object)| {
            let name = self.host.as_str(key).ok_or_else(|| self.stop("an attribute whose name is not a string"))?;
            let source = if by_thread {
                Source::Key(source.clone(), key)
            } else {
                Source::InstanceItem(origin.source.clone(), name.clone())
            };
            Ok((name, Seen { object, source: Rc::new(source) }))
        };
        pairs.into_iter().map(seen).collect::<Run<_>>().map(Some)
    }

    /// The object that keeps the attributes of another, by its identity alone.
    pub(super) fn keeper_of_attributes(&self, object: Object) -> Option<Object> {
        self.outside.world.instance_dict(object)
    }

    /// An item of a dictionary under a text; one that is missing is guarded to be.
    pub(super) fn read_key(&self, dict: Object, source: &Rc<Source>, name: &str) -> Option<Seen> {
        let source = Rc::new(Source::Key(source.clone(), self.host.str(name)));
        match self.outside.world.dict_item(dict, name) {
            Some(object) => Some(Seen { object, source }),
            None => {
                self.guard(&source, Check::Nothing);
                None
            }
        }
    }

    /// What a module of torch keeps under a name in one of its dictionaries, if anything: torch keeps the names of those
    /// apart, so that one is missing there is not guarded.
    pub(super) fn read_module_item(&self, kept: &Seen, name: &str) -> Option<Seen> {
        let object = self.outside.world.dict_item(kept.object, name)?;
        Some(Seen { object, source: Rc::new(Source::Key(kept.source.clone(), self.host.str(name))) })
    }

    /// A global; one that is missing is guarded to be.
    pub(super) fn read_global(&self, globals: Object, name: &Rc<str>) -> Option<Seen> {
        if globals != self.entry.globals {
            return self.read_key(globals, &Rc::new(Source::Fixed(globals)), name);
        }
        let source = Rc::new(Source::Global(name.clone()));
        match self.outside.world.dict_item(globals, name) {
            Some(object) => Some(Seen { object, source }),
            None => {
                self.guard(&source, Check::Nothing);
                None
            }
        }
    }

    /// A builtin; one that is missing is guarded to be.
    pub(super) fn read_builtin(&self, builtins: Object, name: &Rc<str>) -> Option<Seen> {
        if builtins != self.entry.builtins {
            return self.read_key(builtins, &Rc::new(Source::Fixed(builtins)), name);
        }
        let source = Rc::new(Source::Builtin(name.clone()));
        match self.outside.world.dict_item(builtins, name) {
            Some(object) => Some(Seen { object, source }),
            None => {
                self.guard(&source, Check::Nothing);
                None
            }
        }
    }

    /// The keys of a dictionary with what each holds, in order. That there are no others, and the order, is guarded by
    /// [`Evaluator::rely_on_keys`] once it matters.
    pub(super) fn read_entries(&self, origin: &Origin) -> Vec<(Object, Seen)> {
        let pairs = self.outside.world.entries(origin.object);
        let seen = |(key, object): (Object, Object)| {
            (key, Seen { object, source: Rc::new(Source::Key(origin.source.clone(), key)) })
        };
        pairs.into_iter().map(seen).collect()
    }

    /// Relies on a dictionary having just the keys that it has, in their order.
    pub(super) fn rely_on_keys(&self, origin: &Origin) {
        let keys = self.outside.world.entries(origin.object).into_iter().map(|(key, _)| key).collect();
        self.guard(&origin.source, Check::Keys(keys));
    }

    /// Relies on a dictionary having a key.
    pub(super) fn rely_on_key(&self, origin: &Origin, key: Object) {
        self.guard(&Rc::new(Source::Key(origin.source.clone(), key)), Check::Something);
    }

    /// Relies on a dictionary lacking a key.
    pub(super) fn rely_on_absence(&self, origin: &Origin, key: Object) {
        self.guard(&Rc::new(Source::Key(origin.source.clone(), key)), Check::Nothing);
    }

    /// How many entries a dictionary has, which is guarded.
    pub(super) fn read_length(&self, dict: Object, source: &Rc<Source>) -> usize {
        let length = self.outside.world.entries(dict).len();
        self.guard(source, Check::Length(length));
        length
    }

    /// The items of a list, tuple, deque or iterator, whose number is guarded.
    pub(super) fn read_items(&self, object: Object, source: &Rc<Source>) -> Vec<Seen> {
        let items = self.outside.world.items(object);
        self.guard(source, Check::Length(items.len()));
        let seen =
            |(index, object): (usize, Object)| Seen { object, source: Rc::new(Source::Index(source.clone(), index)) };
        items.into_iter().enumerate().map(seen).collect()
    }

    /// The members of a set of plain values, which are guarded.
    pub(super) fn read_members(&self, origin: &Origin) -> Run<Vec<Object>> {
        // The object itself may change: it is compared with what it is now.
        let class = self.host.class_of(origin.object);
        let plain = self.host.member("builtins", "set").ok_or_else(|| self.stop("a missing class"))?;
        if self.host.container_kind(class).is_some() {
            let members = self.outside.world.items(origin.object);
            if members.iter().any(|member| !self.host.hashes_plainly(*member)) {
                return Err(self.stop("a set of objects with a custom __eq__"));
            }
            self.guard(&origin.source, Check::Keys(members.clone()));
            return Ok(members);
        }
        let snapshot = self.host.call(plain, &[origin.object], &[]).map_err(|r| self.raised(r))?;
        let members = self.outside.world.items(snapshot);
        if members.iter().any(|member| !self.host.hashes_plainly(*member)) {
            return Err(self.stop("a set of objects with a custom __eq__"));
        }
        self.guard(&origin.source, Check::Equal(snapshot));
        Ok(members)
    }

    /// The members of a set in the order in which it is iterated over, which is guarded: equal sets may have others.
    pub(super) fn read_order(&self, set: Object, source: &Rc<Source>) -> Vec<Object> {
        let members = self.outside.world.items(set);
        if members.len() > 1 {
            self.guard(source, Check::Keys(members.clone()));
        }
        members
    }

    /// Relies on where a set has its members: on their order, and on what a later change of the set makes of it.
    pub(super) fn read_layout(&self, set: Object, source: &Rc<Source>) -> Run<()> {
        self.read_order(set, source);
        let layout = self.host.member("pyrite._native", "set_layout");
        let layout = layout.ok_or_else(|| self.stop("the layout of a set"))?;
        let seen = self.read_called(&Origin { object: set, source: source.clone() }, layout)?;
        self.guard(&seen.source, Check::Equal(seen.object));
        Ok(())
    }

    /// What a cell holds; an empty one is guarded to be.
    pub(super) fn read_cell(&self, origin: &Origin) -> Option<Seen> {
        let source = Rc::new(Source::Contents(origin.source.clone()));
        match self.outside.world.cell_contents(origin.object) {
            Some(object) => Some(Seen { object, source }),
            None => {
                self.guard(&source, Check::Nothing);
                None
            }
        }
    }

    /// The lists that an iterator goes over, by their identity alone; nothing where it goes over a dictionary.
    pub(super) fn iterated_by(&self, iterator: Object) -> Option<Vec<Object>> {
        self.outside.world.iterated(iterator)
    }

    /// What a context variable holds; an empty one is guarded to be.
    pub(super) fn read_context_variable(&self, variable: Object) -> Option<Seen> {
        let source = Rc::new(Source::ContextVariable(variable));
        match self.outside.world.context_variable(variable) {
            Some(object) => Some(Seen { object, source }),
            None => {
                self.guard(&source, Check::Nothing);
                None
            }
        }
    }

    /// What a weak reference refers to.
    pub(super) fn read_referent(&self, reference: Object, source: &Rc<Source>) -> Run<Seen> {
        let object = self.host.call(reference, &[], &[]).map_err(|r| self.raised(r))?;
        Ok(Seen { object, source: Rc::new(Source::Referent(source.clone())) })
    }

    /// The dictionary behind a `types.MappingProxyType`.
    pub(super) fn read_proxied(&self, origin: &Origin) -> Option<Seen> {
        let object = self.outside.world.proxied(origin.object)?;
        Some(Seen { object, source: Rc::new(Source::Proxied(origin.source.clone())) })
    }

    /// The `__dict__` of a class, and what is in it. That it holds nothing else is what the class's version says.
    pub(super) fn read_namespace(&self, class: Object) -> Run<(Origin, Vec<(Object, Seen)>)> {
        self.watch_class(class);
        let source = Rc::new(Source::Attribute(Rc::new(Source::Fixed(class)), "__dict__".into()));
        let proxy = self.outside.world.attribute(class, "__dict__").map_err(|raised| self.raised(raised))?;
        let held = self.outside.world.proxied(proxy).ok_or_else(|| self.stop("a class without a __dict__"))?;
        let mut seen = Vec::new();
        for (key, object) in self.outside.world.entries(held) {
            let name = self.host.as_str(key).ok_or_else(|| self.stop("an attribute whose name is no text"))?;
            seen.push((key, Seen { object, source: Rc::new(Source::ClassItem(class, name)) }));
        }
        Ok((Origin { object: proxy, source }, seen))
    }

    /// What a function makes of an object, which is made again for each call.
    pub(super) fn read_called(&self, origin: &Origin, function: Object) -> Run<Seen> {
        let object = self.host.call(function, &[origin.object], &[]).map_err(|r| self.raised(r))?;
        Ok(Seen { object, source: Rc::new(Source::Called(origin.source.clone(), function)) })
    }

    /// What a function without arguments says of the state of torch or Python.
    pub(super) fn ask_state(&mut self, question: Object) -> Run<Value> {
        let object = self.host.call(question, &[], &[]).map_err(|r| self.raised(r))?;
        self.admit(&Seen { object, source: Rc::new(Source::Asked(question)) })
    }

    /// The parts of a function. Its code is guarded; what its defaults and cells hold is guarded where it is looked at.
    pub(super) fn read_function(&self, origin: &Origin) -> Option<FunctionParts> {
        let parts = self.outside.world.function(origin.object)?;
        // A function that stands in a module stays the same object; one that is passed around is often made anew.
        let source = &origin.source;
        let stable = matches!(**source, Source::Global(_) | Source::ClassItem(..) | Source::Fixed(_))
            || matches!(&**source, Source::Key(base, _) | Source::Attribute(base, _) | Source::InstanceItem(base, _)
                if matches!(**base, Source::Fixed(_)));
        if stable {
            self.guard(source, Check::Is(origin.object));
        }
        self.guard(source, Check::Code(parts.code));
        Some(parts)
    }

    /// The function and the object of a method.
    pub(super) fn read_method(&self, origin: &Origin) -> Option<(Seen, Seen)> {
        let (function, receiver) = self.outside.world.method(origin.object)?;
        let of = |object, name: &str| Seen {
            object,
            source: Rc::new(Source::Attribute(origin.source.clone(), name.into())),
        };
        Some((of(function, "__func__"), of(receiver, "__self__")))
    }

    /// The function, arguments and keyword arguments of a `functools.partial`.
    pub(super) fn read_partial(&self, origin: &Origin) -> Run<Option<PartialSeen>> {
        let Some((function, args, kwargs)) = self.outside.world.partial(origin.object) else { return Ok(None) };
        let of = |name: &str| Rc::new(Source::Attribute(origin.source.clone(), name.into()));
        let function = Seen { object: function, source: of("func") };
        self.guard(&of("args"), Check::Length(args.len()));
        let args = args.into_iter().enumerate();
        let args = args.map(|(i, object)| Seen { object, source: Rc::new(Source::Index(of("args"), i)) }).collect();
        self.guard(&of("keywords"), Check::Keys(kwargs.iter().map(|(key, _)| *key).collect()));
        let kwargs = kwargs.into_iter().map(|(key, object)| {
            let name = self.host.as_str(key).ok_or_else(|| self.stop("a keyword that is not a string"))?;
            Ok((name, Seen { object, source: Rc::new(Source::Key(of("keywords"), key)) }))
        });
        Ok(Some(PartialSeen { function, args, kwargs: kwargs.collect::<Run<_>>()? }))
    }

    /// What is known of a tensor; the caller guards it, with the sizes that are symbols.
    pub(super) fn read_tensor(&self, object: Object) -> Option<TensorFacts> {
        self.outside.world.tensor(object)
    }

    /// torch's state, which every plan is guarded by.
    pub(super) fn read_state(&self) -> GlobalState {
        self.outside.world.global_state()
    }

    /// The attribute of an object of a class whose attributes never change once it is made.
    pub(super) fn constant(&self, object: Object, name: &str) -> Run<Object> {
        self.outside.world.attribute(object, name).map_err(|raised| self.raised(raised))
    }

    /// The entries of a dictionary that nobody else has, or that is never changed.
    pub(super) fn constant_entries(&self, dict: Object) -> Vec<(Object, Object)> {
        self.outside.world.entries(dict)
    }

    /// The items of an object that nobody else has, or that is immutable.
    pub(super) fn constant_items(&self, object: Object) -> Vec<Object> {
        self.outside.world.items(object)
    }

    /// An item of the `__dict__` of an object that is only asked whether it is there; guarded by the caller.
    pub(super) fn has_instance_item(&self, origin: &Origin, name: &Rc<str>) -> bool {
        self.read_instance_item(origin.object, &origin.source, name).is_some()
    }

    /// Raises what reading something raised.
    pub(super) fn raised(&self, raised: crate::host::Raised) -> Stop {
        Stop::Raise(self.exception_of(raised.0))
    }
}

/// What a `functools.partial` holds.
pub(super) struct PartialSeen {
    pub(super) function: Seen,
    pub(super) args: Vec<Seen>,
    pub(super) kwargs: Vec<(Rc<str>, Seen)>,
}
