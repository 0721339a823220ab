//! Lists, tuples, dictionaries, sets, slices and texts.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::compare::is_graph;
use super::wrap::origin_of;
use super::{Evaluator, Run, Stop};
use crate::host::{Descriptor, Kind, Object};
use crate::source::{Check, Source};
use crate::value::{Attributes, DictValue, Entries, InstanceValue, Key, TupleValue, Value, View};

/// No iteration is followed longer than this.
const MAX_ITEMS: usize = 1_000_000;

/// The key of something that is known by its identity: its object, where it exists outside.
fn identity_key(value: &Value, address: usize) -> Key {
    origin_of(value).map_or(Key::Identity(address), |origin| Key::Plain(origin.object))
}

impl Evaluator<'_, '_> {
    /// A value as a key. How it relates to the keys of a container is guarded by [`Self::key_in`].
    pub(super) fn key(&mut self, value: &Value) -> Run<Key> {
        let value = &self.with_known_sizes(value)?;
        if let Some(object) = self.plain_guarded(value)? {
            return match self.host.intern(object) {
                Some(representative) => Ok(Key::Plain(representative)),
                None => {
                    let hash = self.host.member("builtins", "hash").ok_or_else(|| self.stop("hash is missing"))?;
                    match self.host.call(hash, &[object], &[]) {
                        Err(raised) => Err(self.raised(raised)),
                        Ok(_) => Err(self.stop("a key that cannot be compared")),
                    }
                }
            };
        }
        match value {
            // `torch.Size` is hashed and compared as the tuple that it is.
            Value::Tuple(_) if let Some(object) = self.real(value)? => {
                let representative = self.host.intern(object);
                Ok(Key::Plain(representative.ok_or_else(|| self.stop("a key that cannot be hashed"))?))
            }
            Value::Weak(reference) => {
                let referent = reference.get().ok_or_else(|| self.stop("a weak reference to nothing as a key"))?;
                self.weak_key(&referent)
            }
            // It is hashed and compared as what it refers to.
            Value::Known(object, _) if self.is_weak_reference(*object) => {
                let referent = self.host.call(*object, &[], &[]).map_err(|r| self.raised(r))?;
                if !self.host.hashes_plainly(referent) && self.host.kind(referent) != Kind::Tensor {
                    return Err(self.stop("a weak reference to an object with a hash of its own, as a key"));
                }
                let ended = referent == self.host.none();
                Ok(Key::Weak(if ended { object.0 } else { referent.0 }))
            }
            Value::Known(object, source) => {
                if !self.host.hashes_plainly(*object) {
                    return Err(self.stop("a key with a custom __hash__"));
                }
                if let Some(source) = source {
                    self.guard(source, Check::Is(*object));
                }
                let representative = self.host.intern(*object);
                Ok(Key::Plain(representative.ok_or_else(|| self.stop("a key that cannot be hashed"))?))
            }
            Value::Set(set) if set.frozen => Err(self.stop("a frozenset of objects as a key")),
            Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Deque(_) => {
                let Value::Known(class, _) = self.class_of(value)? else { return Err(self.stop("a key")) };
                let class = self.host.class_name(class);
                let class = class.rsplit('.').next().unwrap_or_default();
                Err(self.raise("TypeError", &format!("unhashable type: '{class}'")))
            }
            Value::Instance(instance) => {
                if self.own_hash(value)? {
                    return Err(self.stop("a key with a custom __hash__"));
                }
                Ok(identity_key(value, Rc::as_ptr(instance).addr()))
            }
            Value::Address(of) => {
                let address = match &**of {
                    Value::Known(object, source) => {
                        if let Some(source) = source {
                            self.guard(source, Check::Is(*object));
                        }
                        Some(object.0)
                    }
                    other => origin_of(other).map_or(other.identity(), |origin| Some(origin.object.0)),
                };
                Ok(Key::Address(address.ok_or_else(|| self.stop("the address of nothing"))?))
            }
            Value::Tuple(tuple) if tuple.class.is_none() => self.tuple_key(&tuple.items.clone()),
            Value::Tensor(tensor) => Ok(identity_key(value, Rc::as_ptr(tensor).addr())),
            Value::Function(function) => Ok(identity_key(value, Rc::as_ptr(function).addr())),
            other => Err(self.stop(format!("{} as a key", self.describe(other)))),
        }
    }

    /// A tuple as a key whose items are not all plain: the tuple of their keys. Objects that are known by their identity are
    /// guarded to be as many as they are.
    fn tuple_key(&mut self, items: &[Value]) -> Run<Key> {
        let mut keys = Vec::with_capacity(items.len());
        for item in items {
            let item = self.force(item)?;
            keys.push(self.key(&item)?);
            let by_identity = matches!(item, Value::Instance(_) | Value::Tensor(_) | Value::Function(_));
            if by_identity && let Some(origin) = origin_of(&item) {
                for other in self.in_tuple_keys.clone() {
                    if other.object != origin.object {
                        self.guard(&origin.source, Check::Differs(other.source));
                    }
                }
                if !self.in_tuple_keys.iter().any(|other| other.object == origin.object) {
                    self.in_tuple_keys.push(origin.clone());
                }
            }
        }
        let number = self.tuple_keys.len();
        Ok(Key::Tuple(*self.tuple_keys.entry(keys).or_insert(number)))
    }

    /// A weak reference as a key, by what it refers to.
    fn weak_key(&mut self, referent: &Value) -> Run<Key> {
        if self.own_hash(referent)? {
            return Err(self.stop("a weak reference to an object with a hash of its own, as a key"));
        }
        let identity = match referent {
            Value::Known(object, _) => Some(object.0),
            _ => origin_of(referent).map_or_else(|| referent.identity(), |origin| Some(origin.object.0)),
        };
        Ok(Key::Weak(identity.ok_or_else(|| self.stop("a weak reference to nothing"))?))
    }

    /// A value as a key of a container: one from outside that is known by its identity is guarded to be the key that it
    /// is, or none of the others.
    pub(super) fn key_in(&mut self, entries: &RefCell<Entries>, value: &Value) -> Run<Key> {
        if let Some(key) = self.key_by_hash(entries, value)? {
            return Ok(key);
        }
        let key = self.key(value)?;
        if let Value::Address(of) = value {
            return self.address_in(entries, of, key);
        }
        if let Key::Tuple(_) = key
            && entries
                .borrow()
                .iter()
                .any(|(_, other, _)| matches!(other, Value::Known(it, _) if self.host.kind(*it) == Kind::Tuple))
        {
            return Err(self.stop("a tuple of objects as a key, among tuples from outside"));
        }
        let referent = match value {
            Value::Weak(reference) => reference.get(),
            _ => None,
        };
        let value = referent.as_ref().unwrap_or(value);
        let by_identity = matches!(value, Value::Instance(_) | Value::Tensor(_) | Value::Function(_));
        if by_identity && let Some(origin) = origin_of(value) {
            for (_, other, _) in entries.borrow().iter() {
                match other {
                    Value::Weak(other) => {
                        if let Some(other) = other.get()
                            && let Some(other) = origin_of(&other)
                            && other.object != origin.object
                        {
                            self.guard(&origin.source, Check::Differs(other.source.clone()));
                        }
                    }
                    Value::Known(known, _) if self.plain(other).is_none() && !self.is_library_object(*known) => {
                        self.guard(&origin.source, Check::Is(origin.object));
                    }
                    other => {
                        if let Some(other) = origin_of(other)
                            && other.object != origin.object
                        {
                            self.guard(&origin.source, Check::Differs(other.source.clone()));
                        }
                    }
                }
            }
        }
        Ok(key)
    }

    /// The address of something as a key of a container.
    fn address_in(&mut self, entries: &RefCell<Entries>, of: &Value, key: Key) -> Run<Key> {
        let Some(origin) = origin_of(of).cloned() else { return Ok(key) };
        let others: Vec<Value> = entries.borrow().iter().map(|(_, other, _)| other.clone()).collect();
        for other in others {
            match &other {
                Value::Address(other) => {
                    if let Some(other) = origin_of(other)
                        && other.object != origin.object
                    {
                        self.guard(&origin.source, Check::Differs(other.source.clone()));
                    }
                }
                Value::Known(number, _) if self.host.kind(*number) == Kind::Int => {
                    self.guard(&origin.source, Check::Is(origin.object));
                    let address = Value::Known(self.host.int(origin.object.0 as i64), None);
                    return self.key(&address);
                }
                _ => {}
            }
        }
        Ok(key)
    }

    /// Whether the class of an object says in Python what its hash is; raises where it has none.
    fn own_hash(&mut self, value: &Value) -> Run<bool> {
        let Value::Instance(instance) = value else { return Ok(false) };
        let own = self.class_item(instance.class, "__hash__");
        if own == Some(self.host.none()) {
            let class = self.short_name(instance.class);
            return Err(self.raise("TypeError", &format!("unhashable type: '{class}'")));
        }
        let object = self.host.member("builtins", "object");
        let usual = own == object.and_then(|object| self.class_item(object, "__hash__"));
        Ok(!usual && !instance.torch_module && !instance.exception)
    }

    /// `hash(value)` of an object that computes it in Python, or of a plain value; nothing for others.
    pub(super) fn hash_of(&mut self, value: &Value) -> Run<Option<Object>> {
        if self.own_hash(value)? {
            let Value::Instance(instance) = value else { return Ok(None) };
            let method = self.class_attribute_of(value, instance.class, &"__hash__".into())?;
            let hash = self.call(&method, Vec::new(), Vec::new())?;
            return match &hash {
                Value::Known(hash, _) if self.host.kind(*hash) == Kind::Int => match self.host.as_int(*hash) {
                    // That number stands for an error.
                    Some(-1) => Ok(Some(self.host.int(-2))),
                    Some(number) => Ok(Some(self.host.int(number))),
                    // One beyond the machine's numbers is reduced as that number's own hash is.
                    None => {
                        let reduce =
                            self.host.member("builtins", "hash").ok_or_else(|| self.stop("hash is missing"))?;
                        self.host.call(reduce, &[*hash], &[]).map(Some).map_err(|r| self.raised(r))
                    }
                },
                Value::Symbol(_) | Value::Number(_) => Err(self.stop("a hash that is not known")),
                _ => Err(self.raise("TypeError", "__hash__ method should return an integer")),
            };
        }
        let Some(object) = self.plain_guarded(value)? else { return Ok(None) };
        let hash = self.host.member("builtins", "hash").ok_or_else(|| self.stop("hash is missing"))?;
        self.host.call(hash, &[object], &[]).map(Some).map_err(|r| self.raised(r))
    }

    /// The hash of a key that a container holds: Python keeps it from when the key was put there.
    fn hash_of_key(&mut self, key: &Value) -> Run<Option<Object>> {
        let kept = match key {
            Value::Instance(instance) => self.hashes.get(&Rc::as_ptr(instance).addr()).map(|(_, hash)| *hash),
            _ => None,
        };
        kept.map_or_else(|| self.hash_of(key), |hash| Ok(Some(hash)))
    }

    /// The key of a value where it, or one of the keys, is an object that says in Python what it is equal to.
    fn key_by_hash(&mut self, entries: &RefCell<Entries>, value: &Value) -> Run<Option<Key>> {
        let own = self.own_hash(value)?;
        // An object without a usable hash is no key even of an empty container.
        let mut hash = if own { self.hash_of(value)? } else { None };
        let others: Vec<(Key, Value)> = entries.borrow().iter().map(|(key, other, _)| (*key, other.clone())).collect();
        for (key, other) in others {
            if !own && !self.own_hash(&other)? {
                continue;
            }
            if other.identity().is_some() && other.identity() == value.identity() {
                return Ok(Some(key));
            }
            if hash.is_none() {
                hash = self.hash_of(value)?;
            }
            let (Some(mine), Some(theirs)) = (hash, self.hash_of_key(&other)?) else { continue };
            let same = self.host.operator("eq", &[mine, theirs]).map_err(|r| self.raised(r))?;
            if same == self.host.bool(true) && self.equal(&other, value)? {
                return Ok(Some(key));
            }
        }
        match value {
            Value::Instance(instance) if own => {
                let identity = Rc::as_ptr(instance).addr();
                if let Some(hash) = hash {
                    self.hashes.insert(identity, (Rc::downgrade(instance), hash));
                }
                Ok(Some(identity_key(value, identity)))
            }
            _ => Ok(None),
        }
    }

    /// Whether an object is one that a name of a library stands for, so that nothing else is.
    fn is_library_object(&self, object: Object) -> bool {
        self.host.qualified_name(object).is_some()
    }

    /// Relies on all keys of a dictionary from outside, and their order.
    fn look_at_whole(&self, dict: &DictValue) {
        if let Some(origin) = &dict.origin
            && dict.behind.is_none()
            && !dict.whole.replace(true)
        {
            self.rely_on_keys(origin);
        }
    }

    /// Relies on a dictionary from outside having a key, or lacking it.
    fn look_at_key(&self, dict: &DictValue, key: Key, found: bool) {
        // No object of the program's stands for these: an equal one may be there later.
        if let Key::Weak(_) | Key::Tuple(_) | Key::Address(_) = key {
            self.look_at_whole(dict);
        }
        let (Some(origin), Key::Plain(object), false) = (&dict.origin, key, dict.whole.get()) else { return };
        if found {
            self.rely_on_key(origin, object);
        } else {
            self.rely_on_absence(origin, object);
        }
    }

    /// Notes that something was changed that nested graphs may not change.
    pub(super) fn note_mutation(&mut self, value: &Value) {
        // What prepares a nested graph keeps its own account of it.
        if self.bodies.is_empty() || self.trace.last().is_some_and(|(file, _, _)| file.ends_with("/_transforms.py")) {
            return;
        }
        let born = value.born();
        for (began, mutates) in &mut self.bodies {
            *mutates |= born.is_none_or(|born| born < *began);
        }
    }

    /// Notes that something from outside was changed.
    pub(super) fn note_change(&mut self, value: &Value, outside: bool, changed: &Cell<bool>) -> Run<()> {
        self.note_mutation(value);
        if !outside {
            return Ok(());
        }
        // An iterator from outside notices that what it goes over has changed.
        let noticed = match value {
            Value::Tuple(_) => false,
            Value::List(_) => origin_of(value).is_some_and(|origin| self.iterated.contains(&origin.object)),
            _ => self.iterates_over_dict,
        };
        if noticed {
            return Err(self.stop("a container is changed while it is iterated over"));
        }
        if !changed.replace(true) {
            self.changed.push(value.clone());
        }
        Ok(())
    }

    /// A new dictionary.
    pub(super) fn new_dict(&mut self, pairs: Vec<(Value, Value)>) -> Run<Value> {
        let entries = RefCell::new(Entries::default());
        for (key, value) in pairs {
            let hashed = self.key_in(&entries, &key)?;
            entries.borrow_mut().set(hashed, key, value);
        }
        Ok(Value::Dict(Rc::new(DictValue { entries, ..DictValue::default() })))
    }

    /// A slice.
    pub(super) fn new_slice(&mut self, parts: [Value; 3]) -> Value {
        match (self.plain(&parts[0]), self.plain(&parts[1]), self.plain(&parts[2])) {
            (Some(a), Some(b), Some(c)) => Value::Known(self.host.slice([a, b, c]), None),
            _ => Value::Slice(Rc::new(parts)),
        }
    }

    /// What a class of the user's that is derived from a container has instead of a method of the container.
    pub(super) fn overridden(&mut self, value: &Value, name: &str) -> Run<Option<Value>> {
        let class = match value {
            Value::List(list) => list.class,
            Value::Dict(dict) => dict.class,
            Value::Set(set) => set.class,
            Value::Deque(deque) => deque.class,
            Value::Tuple(tuple) => tuple.class,
            _ => None,
        };
        match class {
            Some(class) if self.is_python_method(class, name) => {
                self.class_attribute_of(value, class, &name.into()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Whether a class is `collections.defaultdict`, or derived from it.
    pub(super) fn is_defaultdict(&self, class: Object) -> bool {
        let known = self.host.member("collections", "defaultdict");
        known.is_some_and(|known| self.host.derives(class, known))
    }

    /// All items of something that can be iterated over, looked at.
    pub(super) fn items_of(&mut self, value: &Value) -> Run<Vec<Value>> {
        if self.overridden(value, "__iter__")?.is_some() {
            let iterator = self.iterator(value)?;
            return self.items_of(&iterator);
        }
        self.plain_items(value)
    }

    /// As [`Self::items_of`], whatever the class of a container says of iteration.
    pub(super) fn plain_items(&mut self, value: &Value) -> Run<Vec<Value>> {
        let items = match value {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::List(list) => list.items.borrow().clone(),
            Value::Deque(deque) => deque.items.borrow().clone(),
            Value::View(view) => return self.shown(&view.clone()),
            Value::Dict(_) => {
                let dict = shown_dict(value).ok_or_else(|| self.stop("an object that is not a dict"))?;
                self.look_at_whole(&dict);
                dict.entries.borrow().iter().map(|(_, key, _)| key.clone()).collect()
            }
            Value::Set(_) => return self.ordered_members(value),
            other => {
                let iterator = self.iterator(other)?;
                let mut items = Vec::new();
                while let Some(item) = self.next(&iterator)? {
                    items.push(item);
                    if items.len() > MAX_ITEMS {
                        return Err(self.stop("an iteration without end"));
                    }
                }
                return Ok(items);
            }
        };
        items.iter().map(|item| self.force(item)).collect()
    }

    /// The members of a set that are all whole numbers, for what does not depend on their order.
    pub(super) fn whole_members(&self, value: &Value) -> Option<Vec<Value>> {
        let Value::Set(set) = value else { return None };
        let entries = set.entries.borrow();
        let whole = |member: &Value| matches!(member, Value::Known(object, _) if self.host.kind(*object) == Kind::Int);
        let members: Vec<Value> = entries.iter().map(|(_, member, _)| member.clone()).collect();
        (set.class.is_none() && members.iter().all(whole)).then_some(members)
    }

    /// How many items there are.
    pub(super) fn count(&mut self, value: &Value) -> Run<usize> {
        Ok(match value {
            Value::Tuple(tuple) => tuple.items.len(),
            Value::List(list) => list.items.borrow().len(),
            Value::Deque(deque) => deque.items.borrow().len(),
            Value::View(view) => return self.count(&view.dict),
            Value::Dict(_) => {
                let dict = shown_dict(value).ok_or_else(|| self.stop("an object that is not a dict"))?;
                self.look_at_whole(&dict);
                dict.entries.borrow().len()
            }
            Value::Set(set) => set.entries.borrow().len(),
            Value::Members(instance) => {
                let members = self.members_of(&instance.clone())?;
                return self.count(&members);
            }
            other => return Err(self.stop(format!("the length of {}", self.describe(other)))),
        })
    }

    /// `len(value)`.
    pub(super) fn length(&mut self, value: &Value) -> Run<Value> {
        if let Some(method) = self.overridden(value, "__len__")? {
            let length = self.call(&method, Vec::new(), Vec::new())?;
            return self.checked_length(length);
        }
        match value {
            Value::Tuple(_) | Value::List(_) | Value::Deque(_) | Value::Dict(_) | Value::View(_) | Value::Set(_) => {
                let count = self.count(value)?;
                Ok(self.int(count as i64))
            }
            Value::Members(instance) => {
                let members = self.members_of(&instance.clone())?;
                self.length(&members)
            }
            Value::Tensor(_) => match self.item_overridden("len", value, &[])? {
                Some(result) => Ok(result),
                None => self.tensor_length(value),
            },
            Value::Instance(instance) => {
                if self.class_item(instance.class, "__len__").is_none() {
                    let class = self.short_name(instance.class);
                    return Err(self.raise("TypeError", &format!("object of type '{class}' has no len()")));
                }
                let method = self.class_attribute_of(value, instance.class, &"__len__".into())?;
                let length = self.call(&method, Vec::new(), Vec::new())?;
                self.checked_length(length)
            }
            other => match self.plain(other) {
                Some(object) => {
                    let len = self.host.member("builtins", "len").ok_or_else(|| self.stop("len is missing"))?;
                    self.host.call(len, &[object], &[]).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r))
                }
                None => Err(self.stop(format!("the length of {}", self.describe(other)))),
            },
        }
    }

    /// What `__len__` gave, if it is a length.
    fn checked_length(&mut self, length: Value) -> Run<Value> {
        match &length {
            Value::Symbol(_) => Ok(length),
            Value::Known(object, _) if self.host.kind(*object) == Kind::Int => match self.host.as_int(*object) {
                Some(number) if number >= 0 => Ok(length),
                _ => Err(self.raise("ValueError", "__len__() should return >= 0")),
            },
            Value::Known(object, _) if self.host.kind(*object) == Kind::Bool => {
                let number = self.index_of(&length)?;
                Ok(self.int(number))
            }
            other => {
                let Value::Known(class, _) = self.class_of(other)? else { return Err(self.stop("a class")) };
                let class = self.short_name(class);
                let message = format!("'{class}' object cannot be interpreted as an integer");
                Err(self.raise("TypeError", &message))
            }
        }
    }

    /// An integer that is known.
    pub(super) fn index_of(&mut self, value: &Value) -> Run<i64> {
        match value {
            Value::Known(object, _) => match self.host.as_int(*object) {
                Some(value) => Ok(value),
                None => {
                    let text = self.host.describe(*object);
                    Err(self.stop(format!("{text} where a small integer is wanted")))
                }
            },
            Value::Symbol(symbol) => match symbol.size.hint() {
                // A size that Python has to know is no longer free.
                Some(hint) if symbol.size.is_eq(hint) => Ok(hint),
                _ => Err(self.stop("a size that is not known")),
            },
            Value::Lazy(_) => {
                let value = self.force(value)?;
                self.index_of(&value)
            }
            Value::Number(_) => {
                let value = self.specialized(value);
                self.index_of(&value)
            }
            // An integer of any class is itself.
            Value::Instance(instance) if let Some(number) = instance.value => {
                self.index_of(&Value::Known(number, None))
            }
            Value::Instance(instance) if self.is_python_method(instance.class, "__index__") => {
                let method = self.class_attribute_of(value, instance.class, &"__index__".into())?;
                let index = self.call(&method, Vec::new(), Vec::new())?;
                if let Value::Instance(_) = index {
                    return Err(self.stop("an index that is an object again"));
                }
                self.index_of(&index)
            }
            other => Err(self.stop(format!("{} where an integer is wanted", self.describe(other)))),
        }
    }

    /// The places that a slice picks from so many items.
    pub(super) fn slice_places(&mut self, slice: &Value, length: usize) -> Run<Option<Vec<usize>>> {
        let parts: [Value; 3] = match slice {
            Value::Slice(parts) => [parts[0].clone(), parts[1].clone(), parts[2].clone()],
            Value::Known(object, _) if self.host.class_name(self.host.class_of(*object)) == "builtins.slice" => {
                let part = |name: &str| self.constant(*object, name).map(|part| Value::Known(part, None));
                [part("start")?, part("stop")?, part("step")?]
            }
            _ => return Ok(None),
        };
        let mut part = |value: &Value| if self.is_none(value) { Ok(None) } else { self.index_of(value).map(Some) };
        let (start, stop, step) = (part(&parts[0])?, part(&parts[1])?, part(&parts[2])?);
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err(self.raise("ValueError", "slice step cannot be zero"));
        }
        let length = length as i64;
        let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let clamp = |value: i64| (if value < 0 { value.saturating_add(length) } else { value }).clamp(low, high);
        let start = start.map_or(if step > 0 { low } else { high }, clamp);
        let stop = stop.map_or(if step > 0 { high } else { low }, clamp);
        let mut places = Vec::new();
        let mut next = Some(start);
        while let Some(place) = next.filter(|place| if step > 0 { *place < stop } else { *place > stop }) {
            places.push(place as usize);
            next = place.checked_add(step);
        }
        Ok(Some(places))
    }

    fn place_in(&mut self, key: &Value, length: usize, what: &str) -> Run<usize> {
        let whole = match key {
            Value::Known(number, _) => self.host.as_int(*number).is_some(),
            other => matches!(other, Value::Symbol(_)),
        };
        if !whole
            && let Value::Known(class, _) = self.class_of(key)?
            && self.class_item(class, "__index__").is_none()
        {
            let class = self.short_name(class);
            let message = match what.split(' ').next() {
                Some("deque") => format!("sequence index must be integer, not '{class}'"),
                of => format!("{} indices must be integers or slices, not {class}", of.unwrap_or(what)),
            };
            return Err(self.raise("TypeError", &message));
        }
        let index = self.index_of(key)?;
        let place = if index < 0 { index + length as i64 } else { index };
        if place < 0 || place >= length as i64 {
            return Err(self.raise("IndexError", &format!("{what} index out of range")));
        }
        Ok(place as usize)
    }

    /// `object[key]`.
    pub(super) fn get_item(&mut self, object: &Value, key: &Value) -> Run<Value> {
        match self.overridden(object, "__getitem__")? {
            Some(method) => self.call(&method, vec![key.clone()], Vec::new()),
            None => self.plain_item(object, key),
        }
    }

    /// `object[key]`, as Python's own classes do it.
    pub(super) fn plain_item(&mut self, object: &Value, key: &Value) -> Run<Value> {
        if let Some(text) = self.value_without(object, "__getitem__") {
            return self.plain_item(&text, key);
        }
        match object {
            Value::Tensor(_) => match self.item_overridden("getitem", object, std::slice::from_ref(key))? {
                Some(result) => Ok(result),
                None => self.tensor_item(object, key),
            },
            Value::Members(instance) => {
                let found = match self.name_of(key) {
                    Some(name) => self.member_named(&instance.clone(), &name)?,
                    None => None,
                };
                match found {
                    Some(found) => Ok(found),
                    None => Err(self.no_key(key)),
                }
            }
            Value::Tuple(tuple) => {
                let length = tuple.items.len();
                if let Some(places) = self.slice_places(key, length)? {
                    let items = places.iter().map(|place| tuple.items[*place].clone()).collect();
                    // A slice of sizes is a size again; of other named tuples it is a plain tuple.
                    let class = tuple.class.filter(|class| self.host.class_name(*class) == "torch.Size");
                    return Ok(Value::Tuple(Rc::new(TupleValue { items, class, ..TupleValue::default() })));
                }
                let place = self.place_in(key, length, "tuple")?;
                self.force(&tuple.items[place].clone())
            }
            Value::List(list) => {
                let length = list.items.borrow().len();
                if let Some(places) = self.slice_places(key, length)? {
                    let items = list.items.borrow();
                    return Ok(Value::list(places.iter().map(|place| items[*place].clone()).collect()));
                }
                let place = self.place_in(key, length, "list")?;
                let item = list.items.borrow()[place].clone();
                let item = self.force(&item)?;
                list.items.borrow_mut()[place] = item.clone();
                Ok(item)
            }
            Value::Deque(deque) => {
                let length = deque.items.borrow().len();
                let place = self.place_in(key, length, "deque")?;
                let item = deque.items.borrow()[place].clone();
                self.force(&item)
            }
            Value::Dict(dict) => {
                if let Some(value) = self.dict_get(object, key)? {
                    return Ok(value);
                }
                if let Some(class) = dict.class
                    && self.is_python_method(class, "__missing__")
                {
                    let method = self.class_attribute_of(object, class, &"__missing__".into())?;
                    return self.call(&method, vec![key.clone()], Vec::new());
                }
                let factory = dict.default.borrow().clone();
                if let Some(factory) = factory
                    && !self.is_none(&factory)
                {
                    let value = self.call(&factory, Vec::new(), Vec::new())?;
                    self.set_item(object, key, value.clone())?;
                    return Ok(value);
                }
                Err(self.no_key(key))
            }
            Value::Instance(instance) => {
                if instance.torch_module
                    && self.host.class_name(instance.class) == "torch.nn.modules.container.ModuleList"
                    && self.slice_places(key, 0)?.is_some()
                {
                    // A part of a list of modules is a new module; only what it holds is of use here.
                    let modules = self.items_of(object)?;
                    return self.get_item(&Value::list(modules), key);
                }
                if self.class_item(instance.class, "__getitem__").is_none() {
                    let message = format!("'{}' object is not subscriptable", self.short_name(instance.class));
                    return Err(self.raise("TypeError", &message));
                }
                let method = self.class_attribute_of(object, instance.class, &"__getitem__".into())?;
                self.call(&method, vec![key.clone()], Vec::new())
            }
            Value::Known(held, _) => {
                let held = *held;
                match self.host.kind(held) {
                    Kind::Class => return self.subscribed_class(held, key),
                    Kind::Dict => {
                        let found = self.global_named(object, key)?;
                        return found.ok_or_else(|| self.no_key(key));
                    }
                    _ => {}
                }
                // What a pattern has found does not change.
                if &*self.host.class_name(self.host.class_of(held)) == "re.Match"
                    && let Some(key) = self.plain_guarded(key)?
                {
                    if let Value::Known(_, Some(source)) = object {
                        self.guard(source, Check::Is(held));
                    }
                    let found = self.host.operator("getitem", &[held, key]).map_err(|r| self.raised(r))?;
                    return Ok(Value::Known(found, None));
                }
                match (self.plain(object), self.plain_guarded(key)?) {
                    (Some(object), Some(key)) => self
                        .host
                        .operator("getitem", &[object, key])
                        .map(|o| Value::Known(o, None))
                        .map_err(|r| self.raised(r)),
                    _ => Err(self.stop(format!("an item of {}", self.describe(object)))),
                }
            }
            other => Err(self.stop(format!("an item of {}", self.describe(other)))),
        }
    }

    /// What stands under a name in a dictionary of globals, which is an object that is read name by name.
    fn global_named(&mut self, globals: &Value, name: &Value) -> Run<Option<Value>> {
        let (Value::Known(globals, _), Some(name)) = (globals, self.name_of(name)) else {
            return Err(self.stop("a dictionary of globals"));
        };
        self.global_of(*globals, &name)
    }

    /// The text that a key is.
    pub(super) fn name_of(&self, key: &Value) -> Option<Rc<str>> {
        match key {
            Value::Known(key, _) => self.host.as_str(*key),
            _ => None,
        }
    }

    /// What tells that a mapping has no such key.
    pub(super) fn no_key(&self, key: &Value) -> super::Stop {
        match self.host.member("builtins", "KeyError") {
            Some(class) => super::Stop::Raise(self.exception(class, vec![key.clone()])),
            None => self.stop("KeyError is missing"),
        }
    }

    /// The parameters of a type as an object: classes, variables and aliases, also in lists and tuples.
    fn parameters(&mut self, key: &Value) -> Run<Option<Object>> {
        let maker = match key {
            Value::Known(object, _) => return Ok(Some(*object)),
            Value::Tuple(tuple) if tuple.class.is_none() => "tuple",
            Value::List(list) if list.class.is_none() => "list",
            // A variable of types, or an alias of one.
            other => {
                let Some(origin) = super::wrap::origin_of(other).cloned() else { return Ok(None) };
                self.guard(&origin.source, Check::Is(origin.object));
                return Ok(Some(origin.object));
            }
        };
        let mut items = Vec::new();
        for item in self.items_of(key)? {
            let Some(item) = self.parameters(&item)? else { return Ok(None) };
            items.push(item);
        }
        let maker = self.host.member("builtins", maker).ok_or_else(|| self.stop("a missing class"))?;
        let items = self.host.tuple(&items);
        self.host.call(maker, &[items], &[]).map(Some).map_err(|raised| self.raised(raised))
    }

    /// `Class[key]`: members of enumerations, parameters of types.
    fn subscribed_class(&mut self, class: Object, key: &Value) -> Run<Value> {
        let plain = match self.plain_guarded(key)? {
            None if self.class_item(class, "__class_getitem__").is_some() => self.parameters(key)?,
            plain => plain,
        };
        let Some(key) = plain else { return Err(self.stop("an item of a class")) };
        let made = self.host.operator("getitem", &[class, key]).map_err(|r| self.raised(r))?;
        Ok(Value::Known(made, None))
    }

    /// `object[key] = value`.
    pub(super) fn set_item(&mut self, object: &Value, key: &Value, value: Value) -> Run<()> {
        match self.overridden(object, "__setitem__")? {
            Some(method) => self.call(&method, vec![key.clone(), value], Vec::new()).map(|_| ()),
            None => self.set_plain_item(object, key, value),
        }
    }

    /// `object[key] = value`, as Python's own classes do it.
    pub(super) fn set_plain_item(&mut self, object: &Value, key: &Value, value: Value) -> Run<()> {
        match object {
            Value::Tensor(_) => match self.item_overridden("setitem", object, &[key.clone(), value.clone()])? {
                Some(_) => Ok(()),
                None => self.set_tensor_item(object, key, &value),
            },
            Value::Members(instance) => {
                let name = self.name_of(key).ok_or_else(|| self.stop("a member of an object that has no name"))?;
                if self.is_slot(instance.class, &name) {
                    return Err(self.stop("a member of an object that a slot hides"));
                }
                self.note_mutation(&Value::Instance(instance.clone()));
                self.keep_attribute(&instance.clone(), &Value::Instance(instance.clone()), &name, Some(value));
                Ok(())
            }
            Value::List(list) => {
                let list = list.clone();
                let length = list.items.borrow().len();
                if let Some(places) = self.slice_places(key, length)? {
                    return self.set_list_slice(object, key, &places, &value);
                }
                let place = self.place_in(key, length, "list assignment")?;
                list.items.borrow_mut()[place] = value;
                self.note_change(object, list.origin.is_some(), &list.changed)?;
                Ok(())
            }
            Value::Deque(_) => {
                let length = self.count(object)?;
                let place = self.place_in(key, length, "deque")?;
                self.change_deque(object, |items| items[place] = value)
            }
            Value::Dict(dict) => {
                if dict.behind.is_some() {
                    return Err(self.raise("TypeError", "'mappingproxy' object does not support item assignment"));
                }
                self.check_writable(dict)?;
                self.look_at_whole(dict);
                let hashed = self.key_in(&dict.entries, key)?;
                dict.entries.borrow_mut().set(hashed, key.clone(), value);
                self.note_change(object, dict.origin.is_some(), &dict.changed)?;
                Ok(())
            }
            Value::Instance(instance) => {
                if self.class_item(instance.class, "__setitem__").is_none() {
                    let others = [self.kind_of_key(key), self.host.none()];
                    return Err(self.refused_by("operator.setitem", instance.class, &others));
                }
                let method = self.class_attribute_of(object, instance.class, &"__setitem__".into())?;
                self.call(&method, vec![key.clone(), value], Vec::new())?;
                Ok(())
            }
            Value::Tuple(_) => Err(self.raise("TypeError", "'tuple' object does not support item assignment")),
            other => Err(self.stop(format!("an item of {} is set", self.describe(other)))),
        }
    }

    /// A key that stands for another in messages: those for whole numbers are others.
    fn kind_of_key(&self, key: &Value) -> Object {
        match key {
            Value::Symbol(_) => self.host.int(0),
            Value::Known(number, _) if self.host.kind(*number) == Kind::Int => self.host.int(0),
            _ => self.host.none(),
        }
    }

    fn set_list_slice(&mut self, object: &Value, key: &Value, places: &[usize], value: &Value) -> Run<()> {
        let Value::List(list) = object else { return Ok(()) };
        let items = self.items_of(value)?;
        let consecutive = places.windows(2).all(|pair| pair[1] == pair[0] + 1);
        {
            let mut held = list.items.borrow_mut();
            if consecutive {
                let start = match places.first() {
                    Some(place) => *place,
                    None => {
                        drop(held);
                        let start = self.empty_slice_start(key, list.items.borrow().len())?;
                        held = list.items.borrow_mut();
                        start
                    }
                };
                held.splice(start..start + places.len(), items);
            } else if items.len() == places.len() {
                for (place, item) in places.iter().zip(items) {
                    held[*place] = item;
                }
            } else {
                drop(held);
                let message = format!(
                    "attempt to assign sequence of size {} to extended slice of size {}",
                    items.len(),
                    places.len()
                );
                return Err(self.raise("ValueError", &message));
            }
        }
        self.note_change(object, list.origin.is_some(), &list.changed)?;
        Ok(())
    }

    /// Where an empty slice begins.
    fn empty_slice_start(&mut self, slice: &Value, length: usize) -> Run<usize> {
        let start = match slice {
            Value::Slice(parts) => parts[0].clone(),
            Value::Known(object, _) => Value::Known(self.constant(*object, "start")?, None),
            _ => self.none(),
        };
        if self.is_none(&start) {
            return Ok(0);
        }
        let start = self.index_of(&start)?;
        Ok((if start < 0 { start + length as i64 } else { start }).clamp(0, length as i64) as usize)
    }

    /// `del object[key]`.
    pub(super) fn delete_item(&mut self, object: &Value, key: &Value) -> Run<()> {
        match self.overridden(object, "__delitem__")? {
            Some(method) => self.call(&method, vec![key.clone()], Vec::new()).map(|_| ()),
            None => self.delete_plain_item(object, key),
        }
    }

    /// `del object[key]`, as Python's own classes do it.
    pub(super) fn delete_plain_item(&mut self, object: &Value, key: &Value) -> Run<()> {
        match object {
            Value::List(list) => {
                let length = list.items.borrow().len();
                match self.slice_places(key, length)? {
                    Some(mut places) => {
                        places.sort_unstable();
                        for place in places.into_iter().rev() {
                            list.items.borrow_mut().remove(place);
                        }
                    }
                    None => {
                        let place = self.place_in(key, length, "list assignment")?;
                        list.items.borrow_mut().remove(place);
                    }
                }
                self.note_change(object, list.origin.is_some(), &list.changed)?;
                Ok(())
            }
            Value::Dict(dict) => {
                self.check_writable(dict)?;
                self.look_at_whole(dict);
                let hashed = self.key_in(&dict.entries, key)?;
                if dict.entries.borrow_mut().remove(hashed).is_none() {
                    let class =
                        self.host.member("builtins", "KeyError").ok_or_else(|| self.stop("KeyError is missing"))?;
                    return Err(super::Stop::Raise(self.exception(class, vec![key.clone()])));
                }
                self.note_change(object, dict.origin.is_some(), &dict.changed)?;
                Ok(())
            }
            Value::Deque(_) => {
                let length = self.count(object)?;
                let place = self.place_in(key, length, "deque")?;
                self.change_deque(object, |items| items.remove(place))?;
                Ok(())
            }
            Value::Members(instance) => {
                let instance = instance.clone();
                let held = match self.name_of(key) {
                    Some(name) => self.member_named(&instance, &name)?.map(|_| name),
                    None => None,
                };
                let name = held.ok_or_else(|| self.no_key(key))?;
                let object = Value::Instance(instance.clone());
                self.note_mutation(&object);
                self.keep_attribute(&instance, &object, &name, None);
                Ok(())
            }
            Value::Instance(instance) => {
                if self.class_item(instance.class, "__delitem__").is_none() {
                    return Err(self.refused_by("operator.delitem", instance.class, &[self.kind_of_key(key)]));
                }
                let method = self.class_attribute_of(object, instance.class, &"__delitem__".into())?;
                self.call(&method, vec![key.clone()], Vec::new())?;
                Ok(())
            }
            other => Err(self.stop(format!("an item of {} is removed", self.describe(other)))),
        }
    }

    /// The value of a key, if the dictionary has it.
    pub(super) fn dict_get(&mut self, dict: &Value, key: &Value) -> Run<Option<Value>> {
        let dict = shown_dict(dict).ok_or_else(|| self.stop("a mapping that is not a dict"))?;
        let hashed = self.key_in(&dict.entries, key)?;
        let found = dict.entries.borrow().get(hashed).cloned();
        match found {
            Some(value) => {
                let value = self.force(&value)?;
                dict.entries.borrow_mut().set(hashed, key.clone(), value.clone());
                Ok(Some(value))
            }
            None => {
                self.look_at_key(&dict, hashed, false);
                Ok(None)
            }
        }
    }

    /// The entries of a dictionary, looked at.
    pub(super) fn dict_pairs(&mut self, dict: &Value) -> Run<Vec<(Value, Value)>> {
        if let Value::Members(instance) = dict {
            let members = self.members_of(&instance.clone())?;
            return self.dict_pairs(&members);
        }
        if let Value::Instance(instance) = dict
            && self.class_item(instance.class, "keys").is_some()
        {
            let keys = self.class_attribute_of(dict, instance.class, &"keys".into())?;
            let keys = self.call(&keys, Vec::new(), Vec::new())?;
            let mut pairs = Vec::new();
            for key in self.items_of(&keys)? {
                let value = self.get_item(dict, &key)?;
                pairs.push((key, value));
            }
            return Ok(pairs);
        }
        let Some(held) = shown_dict(dict) else {
            return Err(self.stop(format!("{} where a dict is wanted", self.describe(dict))));
        };
        self.look_at_whole(&held);
        let pairs: Vec<(Value, Value)> =
            held.entries.borrow().iter().map(|(_, key, value)| (key.clone(), value.clone())).collect();
        pairs
            .into_iter()
            .map(|(key, value)| {
                let value = self.force(&value)?;
                Ok((key, value))
            })
            .collect()
    }

    /// `dict.update(more)`.
    pub(super) fn dict_update(&mut self, dict: &Value, more: &Value) -> Run<()> {
        // Pairs are written one by one: what yields them may look at the dictionary, or raise in between.
        let pairs = match more {
            Value::Instance(instance) => self.class_item(instance.class, "keys").is_none(),
            other => !matches!(other, Value::Dict(_) | Value::Members(_)),
        };
        if pairs {
            let iterator = self.iterator(more)?;
            let mut place = 0;
            let is_ordered =
                matches!(dict, Value::Dict(held) if held.class.is_some_and(|class| self.is_ordered(class)));
            while let Some(pair) = self.next(&iterator)? {
                let parts = match self.items_of(&pair) {
                    Err(Stop::Raise(raised)) if !is_ordered && self.is_one_of(&raised, &["TypeError"])? => {
                        let message =
                            format!("cannot convert dictionary update sequence element #{place} to a sequence");
                        return Err(self.raise("TypeError", &message));
                    }
                    parts => parts?,
                };
                if parts.len() != 2 {
                    if is_ordered {
                        return Err(self.stop("an OrderedDict is updated with what are no pairs"));
                    }
                    let message = format!(
                        "dictionary update sequence element #{place} has length {}; 2 is required",
                        parts.len()
                    );
                    return Err(self.raise("ValueError", &message));
                }
                self.update_item(dict, &parts[0], parts[1].clone())?;
                place += 1;
            }
            return Ok(());
        }
        for (key, value) in self.dict_pairs(more)? {
            self.update_item(dict, &key, value)?;
        }
        Ok(())
    }

    /// Sets an item as `update` does it: `OrderedDict` asks the class how, `dict` does not.
    pub(super) fn update_item(&mut self, dict: &Value, key: &Value, value: Value) -> Run<()> {
        match dict {
            Value::Dict(held) if held.class.is_some_and(|class| self.is_ordered(class)) => {
                self.set_item(dict, key, value)
            }
            _ => self.set_plain_item(dict, key, value),
        }
    }

    /// `list.append(value)`.
    pub(super) fn list_append(&mut self, list: &Value, value: Value) -> Run<()> {
        let Value::List(held) = list else { return Err(self.stop("append to an object that is not a list")) };
        held.items.borrow_mut().push(value);
        self.note_change(list, held.origin.is_some(), &held.changed)?;
        Ok(())
    }

    /// `list.extend(more)`.
    pub(super) fn list_extend(&mut self, list: &Value, more: &Value) -> Run<()> {
        let Value::List(held) = list else { return Err(self.stop("extend of an object that is not a list")) };
        // What yields items may look at the list, or raise in between.
        if matches!(more, Value::Iterator(_) | Value::Instance(_)) {
            let iterator = self.iterator(more)?;
            self.ask_length_hint(more)?;
            while let Some(item) = self.next(&iterator)? {
                self.list_append(list, item)?;
                if held.items.borrow().len() > MAX_ITEMS {
                    return Err(self.stop("an iteration without end"));
                }
            }
            return Ok(());
        }
        let items = self.items_of(more)?;
        held.items.borrow_mut().extend(items);
        self.note_change(list, held.origin.is_some(), &held.changed)?;
        Ok(())
    }

    /// Asks an object of the user's how many items to expect, as Python does before it makes a list or a tuple of them.
    fn ask_length_hint(&mut self, value: &Value) -> Run<()> {
        let Value::Instance(instance) = value else { return Ok(()) };
        if instance.torch_module {
            return Ok(());
        }
        for name in ["__len__", "__length_hint__"] {
            if !self.is_python_method(instance.class, name) {
                continue;
            }
            let method = self.class_attribute_of(value, instance.class, &name.into())?;
            match self.call(&method, Vec::new(), Vec::new()) {
                Err(Stop::Raise(raised)) if self.is_one_of(&raised, &["TypeError"])? => {}
                other => return other.map(|_| ()),
            }
        }
        Ok(())
    }

    /// The items of what `list` or `tuple` is called with.
    pub(super) fn items_to_hold(&mut self, value: &Value) -> Run<Vec<Value>> {
        if !matches!(value, Value::Instance(instance) if !instance.torch_module) {
            return self.items_of(value);
        }
        let held = Value::list(Vec::new());
        self.list_extend(&held, value)?;
        self.items_of(&held)
    }

    /// Changes the items of a list.
    pub(super) fn change_list<R>(&mut self, list: &Value, change: impl FnOnce(&mut Vec<Value>) -> R) -> Run<R> {
        let Value::List(held) = list else { return Err(self.stop("a list method on an object that is not a list")) };
        let result = change(&mut held.items.borrow_mut());
        self.note_change(list, held.origin.is_some(), &held.changed)?;
        Ok(result)
    }

    /// Refuses to write to what only shows the attributes of an object.
    fn check_writable(&self, dict: &DictValue) -> Run<()> {
        if dict.behind.is_some() {
            return Err(self.stop("a mapping proxy is changed"));
        }
        let shown = dict.class.is_some() && dict.class == self.host.member("types", "MappingProxyType");
        if shown || self.is_own_dict(dict) {
            return Err(self.stop("the __dict__ of an object is changed"));
        }
        Ok(())
    }

    /// Changes the entries of a dictionary or the members of a set.
    pub(super) fn change_entries<R>(&mut self, value: &Value, change: impl FnOnce(&mut Entries) -> R) -> Run<R> {
        match value {
            Value::Dict(dict) => {
                self.check_writable(dict)?;
                self.look_at_whole(dict);
                let result = change(&mut dict.entries.borrow_mut());
                self.note_change(value, dict.origin.is_some(), &dict.changed)?;
                Ok(result)
            }
            Value::Set(set) => {
                self.note_change(value, set.origin.is_some(), &set.changed)?;
                let result = change(&mut set.entries.borrow_mut());
                Ok(result)
            }
            other => Err(self.stop(format!("a change of {}", self.describe(other)))),
        }
    }

    /// `item in container`.
    pub(super) fn contains(&mut self, container: &Value, item: &Value) -> Run<bool> {
        if let Some(method) = self.overridden(container, "__contains__")? {
            let found = self.call(&method, vec![item.clone()], Vec::new())?;
            return self.is_true(&found);
        }
        self.plainly_contains(container, item)
    }

    /// `item in container`, as Python's own classes say it.
    pub(super) fn plainly_contains(&mut self, container: &Value, item: &Value) -> Run<bool> {
        if let Some(text) = self.value_without(container, "__contains__") {
            return self.plainly_contains(&text, item);
        }
        match container {
            Value::Dict(_) => {
                let dict = shown_dict(container).ok_or_else(|| self.stop("an object that is not a dict"))?;
                let key = self.key_in(&dict.entries, item)?;
                let found = dict.entries.borrow().get(key).is_some();
                self.look_at_key(&dict, key, found);
                Ok(found)
            }
            Value::View(view) if view.view == View::Keys => self.contains(&view.dict, item),
            Value::Members(instance) => match self.name_of(item) {
                Some(name) => Ok(self.member_named(&instance.clone(), &name)?.is_some()),
                None => Ok(false),
            },
            Value::Set(set) => {
                let key = self.key_of_member(set, item)?;
                Ok(set.entries.borrow().get(key).is_some())
            }
            Value::Instance(instance) => {
                if self.class_item(instance.class, "__contains__").is_some() {
                    let method = self.class_attribute_of(container, instance.class, &"__contains__".into())?;
                    let found = self.call(&method, vec![item.clone()], Vec::new())?;
                    return self.is_true(&found);
                }
                self.contains_by_iterating(container, item)
            }
            Value::Known(held, _) if self.host.kind(*held) == Kind::Dict => {
                Ok(self.global_named(container, item)?.is_some())
            }
            Value::Known(..) if !is_graph(item) => match (self.plain(container), self.plain_guarded(item)?) {
                (Some(container), Some(item)) => {
                    let found = self.host.operator("contains", &[container, item]).map_err(|r| self.raised(r))?;
                    self.host.is_true(found).map_err(|r| self.raised(r))
                }
                _ => self.contains_by_iterating(container, item),
            },
            Value::Tensor(_) => Err(self.stop("whether a tensor contains something")),
            // Python's own classes look at what they hold, whatever a derived class says of iteration.
            Value::Tuple(_) | Value::List(_) | Value::Deque(_) if self.overridden(container, "__iter__")?.is_some() => {
                for candidate in self.plain_items(container)? {
                    if self.is_same_or_equal(&candidate, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => self.contains_by_iterating(container, item),
        }
    }

    fn contains_by_iterating(&mut self, container: &Value, item: &Value) -> Run<bool> {
        // An iterator is left where the item was found.
        let iterator = self.iterator(container)?;
        while let Some(candidate) = self.next(&iterator)? {
            if self.is_same_or_equal(&candidate, item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn is_same_or_equal(&mut self, left: &Value, right: &Value) -> Run<bool> {
        if let (Some(a), Some(b)) = (left.identity(), right.identity())
            && a == b
        {
            return Ok(true);
        }
        let equal = self.equal(left, right)?;
        // NaN equals nothing, and is found by what it is.
        match (left, right) {
            (Value::Known(a, _), Value::Known(b, _))
                if !equal && self.host.kind(*a) == Kind::Plain && self.host.kind(*b) == Kind::Plain =>
            {
                self.is_same(left, right)
            }
            _ => Ok(equal),
        }
    }

    /// The texts of an f-string, put together.
    pub(super) fn join_texts(&mut self, parts: &[Value]) -> Run<Value> {
        let mut text = String::new();
        for part in parts {
            let Value::Known(object, _) = part else { return Err(self.stop("a text that is not known")) };
            let piece = self.host.as_str(*object).ok_or_else(|| self.stop("a text that is not known"))?;
            text.push_str(&piece);
        }
        Ok(self.text(&text))
    }

    /// `format(value, spec)` after a conversion: 1 is `str`, 2 `repr`, 3 `ascii`.
    pub(super) fn format(&mut self, value: &Value, conversion: usize, spec: Option<&Value>) -> Run<Value> {
        let value = &self.with_known_sizes(value)?;
        let builtin =
            |this: &Self, name: &str| this.host.member("builtins", name).ok_or_else(|| this.stop("a missing builtin"));
        let Some(mut object) = self.plain_guarded(value)? else {
            if let Value::Instance(instance) = value
                && conversion == 0
                && self.is_python_method(instance.class, "__format__")
            {
                let method = self.class_attribute_of(value, instance.class, &"__format__".into())?;
                let spec = spec.cloned().unwrap_or_else(|| self.text(""));
                return self.call(&method, vec![spec], Vec::new());
            }
            if let (Some(plain), Some(_), 0) = (self.value_of(value), spec, conversion) {
                return self.format(&plain, 0, spec);
            }
            if spec.is_some() || conversion == 3 {
                return Err(self.stop(format!("the formatted text of {}", self.describe(value))));
            }
            return self.text_of(value, conversion == 2);
        };
        if conversion != 0 {
            let function = builtin(self, ["", "str", "repr", "ascii"][conversion])?;
            object = self.host.call(function, &[object], &[]).map_err(|r| self.raised(r))?;
        }
        let spec = match spec {
            Some(Value::Known(spec, _)) => *spec,
            Some(_) => return Err(self.stop("a format that is not known")),
            None => self.host.str(""),
        };
        let format = builtin(self, "format")?;
        self.host.call(format, &[object, spec], &[]).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r))
    }

    /// `str(value)` or `repr(value)`.
    pub(super) fn text_of(&mut self, value: &Value, representation: bool) -> Run<Value> {
        self.nested(|this| this.text_inside(value, representation))
    }

    fn text_inside(&mut self, value: &Value, representation: bool) -> Run<Value> {
        for name in if representation { &["__repr__"][..] } else { &["__str__", "__repr__"] } {
            if let Some(method) = self.overridden(value, name)? {
                return self.call(&method, Vec::new(), Vec::new());
            }
        }
        if let Some(text) = self.text_of_value(value, representation)? {
            return Ok(text);
        }
        if let Some(object) = self.plain_guarded(value)? {
            let name = if representation { "repr" } else { "str" };
            let function = self.host.member("builtins", name).ok_or_else(|| self.stop("a missing builtin"))?;
            return self.host.call(function, &[object], &[]).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r));
        }
        match value {
            Value::Tuple(_) | Value::List(_) => {
                let mut text = String::new();
                let items = self.plain_items(value)?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        text.push_str(", ");
                    }
                    let Value::Known(part, _) = self.text_of(item, true)? else { continue };
                    text.push_str(&self.host.as_str(part).unwrap_or_default());
                }
                let text = match value {
                    Value::List(_) => format!("[{text}]"),
                    Value::Tuple(tuple) if tuple.class.is_some() => {
                        let class = tuple.class.map(|class| self.host.class_name(class)).unwrap_or_default();
                        if class != "torch.Size" {
                            return Err(self.stop("the text of a named tuple"));
                        }
                        format!("torch.Size([{text}])")
                    }
                    _ if items.len() == 1 => format!("({text},)"),
                    _ => format!("({text})"),
                };
                Ok(self.text(&text))
            }
            Value::Members(instance) => {
                let members = self.members_of(&instance.clone())?;
                let pairs = self.dict_pairs(&members)?;
                let members = self.new_dict(pairs)?;
                self.text_of(&members, representation)
            }
            Value::View(view) if matches!(&view.dict, Value::Dict(dict) if dict.class.is_none()) => {
                let items = Value::list(self.items_of(value)?);
                let Value::Known(text, _) = self.text_of(&items, true)? else { return Err(self.stop("a text")) };
                let name = match view.view {
                    View::Keys => "dict_keys",
                    View::Values => "dict_values",
                    View::Items => "dict_items",
                };
                Ok(self.text(&format!("{name}({})", self.host.as_str(text).unwrap_or_default())))
            }
            Value::Dict(dict) if dict.class.is_none() => {
                let mut parts = Vec::new();
                for (key, value) in self.dict_pairs(value)? {
                    let (Value::Known(key, _), Value::Known(value, _)) =
                        (self.text_of(&key, true)?, self.text_of(&value, true)?)
                    else {
                        return Err(self.stop("the text of a dict"));
                    };
                    let text = |o| self.host.as_str(o).unwrap_or_default();
                    parts.push(format!("{}: {}", text(key), text(value)));
                }
                Ok(self.text(&format!("{{{}}}", parts.join(", "))))
            }
            Value::Set(set) if set.class.is_none() => {
                let name = if set.frozen { "frozenset" } else { "set" };
                let items = self.items_of(value)?;
                if items.is_empty() {
                    return Ok(self.text(&format!("{name}()")));
                }
                let Value::Known(text, _) = self.text_of(&Value::list(items), true)? else {
                    return Err(self.stop("a text"));
                };
                let text = self.host.as_str(text).unwrap_or_default();
                let members = format!("{{{}}}", &text[1..text.len() - 1]);
                Ok(self.text(&if set.frozen { format!("{name}({members})") } else { members }))
            }
            Value::Instance(instance) if instance.exception && !representation => {
                self.text_of_exception(value, &instance.clone())
            }
            Value::Instance(instance) if instance.exception && !self.is_python_method(instance.class, "__repr__") => {
                let args = Value::tuple(instance.args.borrow().clone());
                let Value::Known(text, _) = self.text_of(&args, true)? else { return Err(self.stop("a text")) };
                let text = self.host.as_str(text).unwrap_or_default();
                // One argument stands alone, without the comma of its tuple.
                let text = match text.strip_suffix(",)") {
                    Some(text) if instance.args.borrow().len() == 1 => format!("{text})"),
                    _ => text.to_string(),
                };
                let class = self.short_name(instance.class);
                Ok(self.text(&format!("{class}{text}")))
            }
            Value::Instance(instance) => {
                let class = instance.class;
                for name in if representation { &["__repr__"][..] } else { &["__str__", "__repr__"] } {
                    if let Some(found) = self.class_item(class, name)
                        && self.host.descriptor(found) == Descriptor::Function
                    {
                        let function = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
                        let text = self.call(&function, vec![value.clone()], Vec::new())?;
                        let Value::Known(of, _) = self.class_of(&text)? else { return Err(self.stop("a class")) };
                        if Some(of) != self.host.member("builtins", "str") {
                            let of = self.short_name(of);
                            let message = format!("{name} returned non-string (type {of})");
                            return Err(self.raise("TypeError", &message));
                        }
                        return Ok(text);
                    }
                }
                if self.host.class_name(class) == "types.SimpleNamespace" {
                    let members = self.members_of(&instance.clone())?;
                    let mut parts = Vec::new();
                    for (name, value) in self.dict_pairs(&members)? {
                        let Value::Known(text, _) = self.text_of(&value, true)? else {
                            return Err(self.stop("the text of a namespace"));
                        };
                        let name = self.attribute_name(&name)?;
                        parts.push(format!("{name}={}", self.host.as_str(text).unwrap_or_default()));
                    }
                    return Ok(self.text(&format!("namespace({})", parts.join(", "))));
                }
                Err(self.stop("the text of an object, which names its address"))
            }
            Value::Symbol(_) => {
                let known = self.with_known_sizes(value)?;
                self.text_of(&known, representation)
            }
            other => Err(self.stop(format!("the text of {}", self.describe(other)))),
        }
    }

    /// `str(exception)`.
    fn text_of_exception(&mut self, value: &Value, instance: &Rc<InstanceValue>) -> Run<Value> {
        let class = instance.class;
        let found = self.class_item(class, "__str__");
        if let Some(found) = found
            && self.host.descriptor(found) == Descriptor::Function
        {
            let function = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
            return self.call(&function, vec![value.clone()], Vec::new());
        }
        let is_of = |this: &Self, owner: &str| {
            this.host.member("builtins", owner).and_then(|owner| this.class_item(owner, "__str__")) == found
        };
        let args = instance.args.borrow().clone();
        match args.as_slice() {
            [key] if is_of(self, "KeyError") => self.text_of(key, true),
            args if is_of(self, "BaseException") || is_of(self, "KeyError") => match args {
                [] => Ok(self.text("")),
                [one] => self.text_of(one, false),
                many => self.text_of(&Value::tuple(many.to_vec()), false),
            },
            [message, ..] if is_of(self, "BaseExceptionGroup") => {
                let held = match (args.get(1), &instance.origin) {
                    (Some(held), None) => held.clone(),
                    _ => self.attribute(value, &"exceptions".into())?,
                };
                let count = self.count(&held)?;
                let Value::Known(message, _) = self.text_of(message, false)? else { return Err(self.stop("a text")) };
                let message = self.host.as_str(message).unwrap_or_default();
                let plural = if count == 1 { "" } else { "s" };
                Ok(self.text(&format!("{message} ({count} sub-exception{plural})")))
            }
            args => {
                // One of Python's own that is made again from the same arguments says the same.
                let plain: Option<Vec<Object>> = args.iter().map(|arg| self.plain(arg)).collect();
                let (Some(plain), false) = (plain, self.may_change(class)) else {
                    return Err(self.stop(format!("the text of {}", self.describe(value))));
                };
                let made = self.host.call(class, &plain, &[]).map_err(|r| self.raised(r))?;
                let function = self.host.member("builtins", "str").ok_or_else(|| self.stop("a missing builtin"))?;
                self.host.call(function, &[made], &[]).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r))
            }
        }
    }

    /// A value in which sizes are numbers: what Python has to know is no longer free.
    pub(super) fn with_known_sizes(&mut self, value: &Value) -> Run<Value> {
        Ok(match value {
            Value::Symbol(_) => {
                let known = self.index_of(value)?;
                self.int(known)
            }
            Value::Tuple(tuple)
                if tuple
                    .items
                    .iter()
                    .any(|item| matches!(item, Value::Symbol(_) | Value::Tuple(_) | Value::Lazy(_))) =>
            {
                let mut items = Vec::with_capacity(tuple.items.len());
                for item in &tuple.items {
                    let item = self.force(item)?;
                    items.push(self.with_known_sizes(&item)?);
                }
                let attributes = RefCell::new(Attributes(tuple.attributes.borrow().0.clone()));
                Value::Tuple(Rc::new(TupleValue { items, class: tuple.class, attributes, ..TupleValue::default() }))
            }
            other => other.clone(),
        })
    }
}

/// The dictionary that a value is, or shows.
fn shown_dict(value: &Value) -> Option<Rc<DictValue>> {
    match value {
        Value::Dict(dict) => match &dict.behind {
            Some(behind) => shown_dict(behind),
            None => Some(dict.clone()),
        },
        _ => None,
    }
}
