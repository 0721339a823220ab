//! Sets, and the order in which Python iterates over them.
//!
//! Where a set keeps a member depends on its hash and on all that was done to the set before: members that were removed
//! leave their places marked, a merge resizes the table once, a copy packs it. Nothing of that is computed here. Every set
//! has a [`Twin`], a set of Python's with the same members; what is done to the set is done to the twin, by the same
//! method and with the same kind of argument, and the order is the twin's. For a set from outside the twin begins as an
//! exact copy, and the places of its members are guarded where they are observed.
//!
//! A member that only a call knows (an object that the frame makes, a tensor) has a hash that is not known: the twin is
//! lost, the order cannot be observed, and the set is made again by the steps that were recorded since.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Evaluator, Run, Stop};
use crate::host::{Kind, Object};
use crate::value::{Entries, Key, SetStep, SetValue, Twin, Value, View};

/// The methods that a set is changed by and that take other sets.
const MERGES: [&str; 3] = ["intersection_update", "difference_update", "symmetric_difference_update"];

/// What a method of a set is given.
enum Operand {
    /// An object: a set that has its members where Python would have them, a dictionary of the same keys, a tuple.
    Object(Object),
    /// Members whose hashes are not all known.
    Members(Vec<Value>),
}

impl Evaluator<'_, '_> {
    /// A new set of these items, added one by one.
    pub(super) fn new_set(&mut self, items: Vec<Value>) -> Run<Value> {
        let entries = RefCell::new(Entries::default());
        let mut objects = Some(Vec::with_capacity(items.len()));
        let mut steps = Vec::new();
        for item in items {
            let key = self.key_in(&entries, &item)?;
            if entries.borrow().get(key).is_some() {
                continue;
            }
            match self.with_known_hash(&item)? {
                Some(object) => objects.iter_mut().for_each(|objects| objects.push(object)),
                None => objects = None,
            }
            steps.push(SetStep { method: "add", args: vec![item.clone()] });
            entries.borrow_mut().set(key, item.clone(), item);
        }
        let twin = match objects {
            Some(objects) => self.real_set_of(&objects)?,
            None => None,
        };
        let made = SetValue { entries, grown: Cell::new(true), ..SetValue::default() };
        match twin {
            Some(twin) => made.twin.set(Twin::Known(twin)),
            None => {
                made.twin.set(Twin::Lost(None));
                made.steps.replace(steps);
            }
        }
        Ok(Value::Set(Rc::new(made)))
    }

    /// `set(items)` or `frozenset(items)`.
    pub(super) fn set_from(&mut self, items: &Value, class: &str) -> Run<Value> {
        let frozen = class == "frozenset";
        // A frozen set is its own copy.
        if frozen && matches!(items, Value::Known(object, _) if self.host.kind(*object) == Kind::FrozenSet) {
            return Ok(items.clone());
        }
        match self.set_operand(items)? {
            Operand::Object(object) => {
                let class = self.builtin(class)?;
                let made = self.host.call(class, &[object], &[]).map_err(|r| self.raised(r))?;
                self.described_set(made)
            }
            Operand::Members(members) => {
                let made = self.new_set(members)?;
                Ok(if frozen { frozen_set(made) } else { made })
            }
        }
    }

    /// A set, or a frozen set of plain values, as a described set.
    pub(super) fn set_of(&mut self, value: &Value) -> Run<Value> {
        match value {
            Value::Known(object, _) if self.host.kind(*object) == Kind::FrozenSet => self.opened_set(*object),
            other => Ok(other.clone()),
        }
    }

    /// As [`Self::set_of`], to be iterated over or merged.
    pub(super) fn laid_out_set(&mut self, value: &Value) -> Run<Value> {
        if let Value::Known(object, Some(source)) = value
            && self.host.kind(*object) == Kind::FrozenSet
        {
            self.read_layout(*object, source)?;
        }
        self.set_of(value)
    }

    /// A set of Python's that nobody else has.
    fn described_set(&mut self, object: Object) -> Run<Value> {
        if self.host.kind(object) == Kind::FrozenSet {
            return Ok(Value::Known(object, None));
        }
        self.opened_set(object)
    }

    /// A set of Python's with its members.
    fn opened_set(&mut self, object: Object) -> Run<Value> {
        let mut entries = Entries::default();
        for item in self.constant_items(object) {
            let value = Value::Known(item, None);
            let key = self.key(&value)?;
            entries.set(key, value.clone(), value);
        }
        let frozen = Some(self.host.class_of(object)) == self.host.member("builtins", "frozenset");
        let twin = Cell::new(Twin::Known(object));
        Ok(Value::Set(Rc::new(SetValue { entries: RefCell::new(entries), frozen, twin, ..SetValue::default() })))
    }

    /// An object that is hashed as a member is in every call; nothing where its hash is not known.
    fn with_known_hash(&mut self, member: &Value) -> Run<Option<Object>> {
        let member = self.with_known_sizes(member)?;
        if let Some(object) = self.plain_guarded(&member)? {
            return Ok(Some(object));
        }
        match &member {
            Value::Known(object, _) if self.host.hashes_plainly(*object) => Ok(Some(*object)),
            // `torch.Size` is hashed as the tuple that it is.
            Value::Tuple(tuple) if tuple.class.is_some() => self.real(&member),
            _ => Ok(None),
        }
    }

    fn builtin(&self, name: &str) -> Run<Object> {
        self.host.member("builtins", name).ok_or_else(|| self.stop(format!("{name} is missing")))
    }

    fn real_set_of(&mut self, objects: &[Object]) -> Run<Option<Object>> {
        let Some(class) = self.host.member("builtins", "set") else { return Ok(None) };
        let tuple = self.host.tuple(objects);
        self.host.call(class, &[tuple], &[]).map(Some).map_err(|r| self.raised(r))
    }

    /// An exact copy of a set.
    fn copy_exactly(&self, set: Object) -> Option<Object> {
        let copy = self.host.member("pyrite._native", "copy_set")?;
        self.host.call(copy, &[set], &[]).ok()
    }

    /// The twin of a set, for what is done to both.
    fn twin(&mut self, set: &SetValue) -> Run<Option<Object>> {
        match set.twin.get() {
            Twin::Known(twin) => Ok(Some(twin)),
            Twin::Lost(_) => Ok(None),
            Twin::Untouched => {
                let twin = match &set.origin {
                    Some(origin) => self.copy_exactly(origin.object),
                    None => self.real_set_of(&[])?,
                };
                set.grown.set(set.origin.is_none());
                set.twin.set(twin.map_or(Twin::Lost(None), Twin::Known));
                Ok(twin)
            }
        }
    }

    /// The twin of a set, to be looked at: where one from outside has its members is guarded.
    fn observed_twin(&mut self, set: &SetValue) -> Run<Option<Object>> {
        let twin = self.twin(set)?;
        if twin.is_some()
            && let Some(origin) = &set.origin
            && !set.observed.replace(true)
        {
            self.read_layout(origin.object, &origin.source)?;
        }
        Ok(twin)
    }

    /// The members of a set in the order that Python iterates over them.
    pub(super) fn ordered_members(&mut self, value: &Value) -> Run<Vec<Value>> {
        let Value::Set(set) = value else { return Ok(Vec::new()) };
        if set.entries.borrow().len() <= 1 {
            return Ok(members(value));
        }
        if let Some(origin) = &set.origin
            && !set.changed.get()
        {
            let members = self.read_order(origin.object, &origin.source);
            return Ok(members.into_iter().map(|member| Value::Known(member, None)).collect());
        }
        let Some(twin) = self.observed_twin(set)? else { return Err(self.stop("the order of a set's members")) };
        let mut ordered = Vec::with_capacity(set.entries.borrow().len());
        for object in self.constant_items(twin) {
            let key = self.key(&Value::Known(object, None))?;
            let member = set.entries.borrow().get(key).cloned();
            ordered.push(member.unwrap_or(Value::Known(object, None)));
        }
        Ok(ordered)
    }

    /// What Python's method of a set is given for a value. A set, a frozen set and a dictionary are merged as what they are,
    /// whatever their classes say of iteration; others are iterated over.
    fn set_operand(&mut self, value: &Value) -> Run<Operand> {
        let items = match value {
            Value::Set(set) => match self.observed_twin(set)? {
                Some(twin) => return Ok(Operand::Object(twin)),
                None => return Ok(Operand::Members(members(value))),
            },
            Value::Known(object, source) if self.host.kind(*object) == Kind::FrozenSet => {
                if let Some(source) = source {
                    self.read_layout(*object, source)?;
                }
                return Ok(Operand::Object(*object));
            }
            other => self.items_of(other)?,
        };
        let Some(objects) = self.with_known_hashes(&items)? else { return Ok(Operand::Members(items)) };
        let tuple = self.host.tuple(&objects);
        if let Value::Dict(dict) = value
            && dict.class.is_none()
        {
            let ordered = self.host.polyfill("dict_of_keys").ok_or_else(|| self.stop("a dict of keys"))?;
            let keys = self.host.call(ordered, &[tuple], &[]).map_err(|r| self.raised(r))?;
            return Ok(Operand::Object(keys));
        }
        Ok(Operand::Object(tuple))
    }

    fn with_known_hashes(&mut self, items: &[Value]) -> Run<Option<Vec<Object>>> {
        let mut objects = Vec::with_capacity(items.len());
        for item in items {
            let Some(object) = self.with_known_hash(item)? else { return Ok(None) };
            self.key(item)?;
            objects.push(object);
        }
        Ok(Some(objects))
    }

    /// What methods of sets are given; nothing where a hash is not known.
    fn operands(&mut self, values: &[Value]) -> Run<Option<Vec<Object>>> {
        let mut objects = Vec::with_capacity(values.len());
        for value in values {
            match self.set_operand(value)? {
                Operand::Object(object) => objects.push(object),
                Operand::Members(_) => return Ok(None),
            }
        }
        Ok(Some(objects))
    }

    /// What a method of Python's sets gives, called with a twin.
    fn call_twin(&mut self, twin: Object, method: &str, args: &[Object]) -> Run<Object> {
        let class = self.host.class_of(twin);
        let method = self.class_item(class, method).ok_or_else(|| self.stop("a missing method of sets"))?;
        let args: Vec<Object> = std::iter::once(twin).chain(args.iter().copied()).collect();
        self.host.call(method, &args, &[]).map_err(|r| self.raised(r))
    }

    /// An operator of Python's between sets and views of dictionaries; nothing where a hash is not known.
    pub(super) fn combine_sets(&mut self, name: &str, left: &Value, right: &Value) -> Run<Option<Value>> {
        let mut objects = Vec::with_capacity(2);
        for value in [left, right] {
            let value = &self.iterated_once(value)?;
            let object = match value {
                Value::View(view) if view.view != View::Values => {
                    let pairs = self.dict_pairs(&view.dict)?;
                    let items = match view.view {
                        View::Keys => pairs.into_iter().map(|(key, _)| key).collect(),
                        _ => pairs.into_iter().map(|(key, value)| Value::tuple(vec![key, value])).collect::<Vec<_>>(),
                    };
                    let Some(items) = self.with_known_hashes(&items)? else { return Ok(None) };
                    let tuple = self.host.tuple(&items);
                    let maker = if view.view == View::Keys { "keys_view" } else { "items_view" };
                    let maker = self.host.polyfill(maker).ok_or_else(|| self.stop("a view of a dict"))?;
                    self.host.call(maker, &[tuple], &[]).map_err(|r| self.raised(r))?
                }
                other => match self.set_operand(other)? {
                    Operand::Object(object) => object,
                    Operand::Members(_) => return Ok(None),
                },
            };
            objects.push(object);
        }
        let made = self.host.operator(name, &objects).map_err(|r| self.raised(r))?;
        self.described_set(made).map(Some)
    }

    /// Records a step, and does to the twin what is done to a set; the twin is lost where that is not known.
    fn take_step(&mut self, set: &Value, step: SetStep, objects: Option<&[Object]>) -> Run<()> {
        self.change_entries(set, |_| ())?;
        let Value::Set(set) = set else { return Ok(()) };
        let twin = self.twin(set)?;
        match (twin, objects) {
            (Some(twin), Some(objects)) => {
                self.call_twin(twin, step.method, objects)?;
            }
            (Some(twin), None) => set.twin.set(Twin::Lost(Some(twin))),
            (None, _) => {}
        }
        set.grown.set(set.grown.get() && step.method == "add");
        set.changes.set(set.changes.get() + 1);
        if set.origin.is_some() || matches!(set.twin.get(), Twin::Lost(_)) {
            set.steps.borrow_mut().push(step);
        }
        Ok(())
    }

    /// `set.add(value)`.
    pub(super) fn set_add(&mut self, set: &Value, value: Value) -> Run<()> {
        let Value::Set(held) = set else { return Err(self.stop("add to an object that is not a set")) };
        let key = self.key_in(&held.entries, &value)?;
        if held.entries.borrow().get(key).is_some() {
            return Ok(());
        }
        let object = self.with_known_hash(&value)?;
        let step = SetStep { method: "add", args: vec![value.clone()] };
        self.take_step(set, step, object.as_ref().map(std::slice::from_ref))?;
        held.entries.borrow_mut().set(key, value.clone(), value);
        Ok(())
    }

    /// Removes a member; whether it was there.
    /// The key of a value that a set is asked for: a set is looked for as the frozen set of its members.
    pub(super) fn key_of_member(&mut self, set: &SetValue, value: &Value) -> Run<Key> {
        let frozen = match value {
            Value::Set(other) if other.class.is_none() => Some(self.set_from(value, "frozenset")?),
            _ => None,
        };
        self.key_in(&set.entries, frozen.as_ref().unwrap_or(value))
    }

    fn set_discard(&mut self, set: &Value, value: &Value) -> Run<bool> {
        let Value::Set(held) = set else { return Err(self.stop("a member of an object that is not a set")) };
        let key = self.key_of_member(held, value)?;
        let Some(member) = held.entries.borrow().get(key).cloned() else { return Ok(false) };
        let object = self.with_known_hash(&member)?;
        let step = SetStep { method: "discard", args: vec![member] };
        self.take_step(set, step, object.as_ref().map(std::slice::from_ref))?;
        held.entries.borrow_mut().remove(key);
        Ok(true)
    }

    fn set_clear(&mut self, set: &Value) -> Run<()> {
        let Value::Set(held) = set else { return Err(self.stop("an object that is not a set")) };
        self.take_step(set, SetStep { method: "clear", args: Vec::new() }, Some(&[]))?;
        held.entries.borrow_mut().clear();
        Ok(())
    }

    /// Adds what can be iterated over: one by one, but for sets and dictionaries, which Python merges.
    pub(super) fn set_update(&mut self, set: &Value, more: &Value) -> Run<()> {
        let Value::Set(held) = set else { return Err(self.stop("an object that is not a set")) };
        let merges = self.is_set(more) || matches!(more, Value::Dict(dict) if dict.class.is_none());
        if merges && !matches!(more, Value::Set(other) if Rc::ptr_eq(other, held)) {
            let known = match more {
                Value::Set(_) => members(more),
                other => self.items_of(other)?,
            };
            if let Operand::Object(object) = self.set_operand(more)? {
                self.merge(set, "update", vec![object])?;
                for member in known {
                    let key = self.key_in(&held.entries, &member)?;
                    let mut entries = held.entries.borrow_mut();
                    if entries.get(key).is_none() {
                        entries.set(key, member.clone(), member);
                    }
                }
                return Ok(());
            }
        }
        let iterator = if let Value::Set(other) = more
            && Rc::ptr_eq(other, held)
        {
            return Ok(());
        } else if merges {
            Value::tuple(match more {
                Value::Set(_) => members(more),
                other => self.items_of(other)?,
            })
        } else {
            more.clone()
        };
        let iterator = self.iterator(&iterator)?;
        while let Some(item) = self.next(&iterator)? {
            self.set_add(set, item)?;
        }
        Ok(())
    }

    /// Takes a step whose arguments are objects of ours; those that may change later are recorded as they are.
    fn merge(&mut self, set: &Value, method: &'static str, objects: Vec<Object>) -> Run<()> {
        let class = self.host.member("builtins", "set");
        let mut args = Vec::with_capacity(objects.len());
        for object in &objects {
            if let Value::Set(held) = set
                && held.twin.get() == Twin::Known(*object)
            {
                args.push(set.clone());
                continue;
            }
            let kept =
                if Some(self.host.class_of(*object)) == class { self.copy_exactly(*object) } else { Some(*object) };
            args.push(Value::Known(kept.ok_or_else(|| self.stop("a set that cannot be copied"))?, None));
        }
        self.take_step(set, SetStep { method, args }, Some(&objects))
    }

    /// `intersection_update` and its kin.
    fn set_reduce(&mut self, set: &Value, method: &'static str, args: Vec<Value>) -> Run<()> {
        let Value::Set(held) = set else { return Err(self.stop("an object that is not a set")) };
        if let Some(objects) = self.operands(&args)?
            && let Some(twin) = self.twin(held)?
        {
            self.merge(set, method, objects)?;
            let mut entries = Entries::default();
            for item in self.constant_items(twin) {
                // Of equal members Python keeps the one of either set.
                let value = Value::Known(item, None);
                let key = self.key(&value)?;
                entries.set(key, value.clone(), value);
            }
            held.entries.replace(entries);
            return Ok(());
        }
        let result = self.set_method(set, &method.trim_end_matches("_update").into(), args)?;
        let kept = members(&result);
        for member in members(set) {
            if !self.contains(&result, &member)? {
                self.set_discard(set, &member)?;
            }
        }
        for member in kept {
            self.set_add(set, member)?;
        }
        Ok(())
    }

    /// `set.pop()`.
    fn set_pop(&mut self, set: &Value) -> Run<Value> {
        let Value::Set(held) = set else { return Err(self.stop("an object that is not a set")) };
        let all = members(set);
        if all.is_empty() {
            return Err(self.raise("KeyError", "pop from an empty set"));
        }
        let twin = if all.len() == 1 { self.twin(held)? } else { self.observed_twin(held)? };
        let member = match twin {
            Some(twin) => {
                // Seen on a copy: the twin takes the step below.
                let copy = self.copy_exactly(twin).ok_or_else(|| self.stop("a set that cannot be copied"))?;
                Value::Known(self.call_twin(copy, "pop", &[])?, None)
            }
            None if all.len() == 1 => all[0].clone(),
            None => return Err(self.stop("the order of a set's members")),
        };
        let key = self.key_in(&held.entries, &member)?;
        self.take_step(set, SetStep { method: "pop", args: Vec::new() }, Some(&[]))?;
        let removed = held.entries.borrow_mut().remove(key);
        Ok(removed.map_or(member, |(member, _)| member))
    }

    /// A set that two are combined to, where the order of its members is known.
    fn set_result(&mut self, set: &Value, method: &str, args: &[Value]) -> Run<Option<Value>> {
        let Value::Set(held) = set else { return Ok(None) };
        let Some(operands) = self.operands(args)? else { return Ok(None) };
        let Some(twin) = self.observed_twin(held)? else { return Ok(None) };
        let made = self.call_twin(twin, method, &operands)?;
        self.described_set(made).map(Some)
    }

    /// A method of a set.
    pub(super) fn set_method(&mut self, set: &Value, name: &Rc<str>, mut args: Vec<Value>) -> Run<Value> {
        let none = self.none();
        if let "union" | "intersection" | "difference" | "symmetric_difference" | "issubset" | "issuperset" =
            name.trim_end_matches("_update")
        {
            args = args.iter().map(|arg| self.iterated_once(arg)).collect::<Run<_>>()?;
        }
        if let "copy" | "union" | "intersection" | "difference" | "symmetric_difference" = &**name
            && !(&**name == "copy" && is_frozen(set))
            && (&**name != "copy" || args.is_empty())
            && (&**name != "symmetric_difference" || args.len() == 1)
            && let Some(result) = self.set_result(set, name, &args)?
        {
            return Ok(result);
        }
        match (&**name, args.as_slice()) {
            ("add", [value]) => self.set_add(set, value.clone()).map(|()| none),
            ("discard" | "remove", [value]) => {
                if !self.set_discard(set, value)? && &**name == "remove" {
                    let class = self.builtin("KeyError")?;
                    return Err(Stop::Raise(self.exception(class, vec![value.clone()])));
                }
                Ok(none)
            }
            ("clear", []) => self.set_clear(set).map(|()| none),
            ("update", more) => {
                for more in more {
                    self.set_update(set, more)?;
                }
                Ok(none)
            }
            ("copy", []) if is_frozen(set) => Ok(set.clone()),
            ("copy", []) => self.new_set(members(set)),
            ("union", more) => {
                let mut items = members(set);
                for more in more {
                    items.extend(self.unordered_items(more)?);
                }
                self.new_set_like(set, items)
            }
            ("intersection" | "difference", []) => self.new_set_like(set, members(set)),
            ("intersection" | "difference", [first, rest @ ..]) if !rest.is_empty() => {
                let mut result = self.set_method(set, name, vec![first.clone()])?;
                for more in rest {
                    result = self.set_method(&result, name, vec![more.clone()])?;
                }
                Ok(result)
            }
            (method, _) if let Some(method) = MERGES.into_iter().find(|known| *known == method) => {
                self.set_reduce(set, method, args).map(|()| none)
            }
            ("__or__" | "__and__" | "__sub__" | "__xor__", [other]) => {
                let operator = match &**name {
                    "__or__" => "or_",
                    "__and__" => "and_",
                    "__sub__" => "sub",
                    _ => "xor",
                };
                let (set, other) = (self.bare(set)?, self.bare(other)?);
                self.binary(operator, &set, &other)
            }
            ("__ior__" | "__iand__" | "__isub__" | "__ixor__", [other]) => {
                let method = match &**name {
                    "__ior__" => "update",
                    "__iand__" => "intersection_update",
                    "__isub__" => "difference_update",
                    _ => "symmetric_difference_update",
                };
                let other = self.bare(other)?;
                if !self.is_set(&other) {
                    return Err(self.stop(format!("the method {name} of a set")));
                }
                self.set_method(set, &method.into(), vec![other])?;
                Ok(set.clone())
            }
            ("__eq__" | "__ne__", [other]) => {
                let (set, other) = (self.bare(set)?, self.bare(other)?);
                let equal = self.equal(&set, &other)?;
                Ok(self.bool(equal == (&**name == "__eq__")))
            }
            ("__lt__" | "__le__" | "__gt__" | "__ge__", [other]) => {
                let (set, other) = (self.bare(set)?, self.bare(other)?);
                self.compare(name.trim_matches('_'), &set, &other)
            }
            (
                "intersection" | "difference" | "symmetric_difference" | "issubset" | "issuperset" | "isdisjoint",
                [other],
            ) => self.compare_members(set, name, other),
            ("pop", []) => self.set_pop(set),
            ("__contains__", [item]) => {
                let found = self.plainly_contains(set, item)?;
                Ok(self.bool(found))
            }
            ("__init__", more) if more.len() <= 1 => {
                self.set_clear(set)?;
                if let Some(more) = more.first() {
                    self.set_update(set, more)?;
                }
                Ok(none)
            }
            ("__len__", []) => {
                let count = self.count(set)?;
                Ok(self.int(count as i64))
            }
            ("__iter__", []) => self.plain_iterator(set),
            _ => Err(self.stop(format!("the method {name} of a set"))),
        }
    }

    /// What two sets have in common or not, where the order of members does not matter or is not known.
    fn compare_members(&mut self, set: &Value, name: &str, other: &Value) -> Run<Value> {
        let other = match other {
            Value::Set(_) => other.clone(),
            other => {
                let items = self.unordered_items(other)?;
                self.new_set(items)?
            }
        };
        let mut common = Vec::new();
        let mut only_mine = Vec::new();
        for item in members(set) {
            if self.plainly_contains(&other, &item)? { common.push(item) } else { only_mine.push(item) }
        }
        let mut only_theirs = Vec::new();
        for item in members(&other) {
            if !self.plainly_contains(set, &item)? {
                only_theirs.push(item);
            }
        }
        match name {
            "intersection" => self.new_set_like(set, common),
            "difference" => self.new_set_like(set, only_mine),
            "symmetric_difference" => self.new_set_like(set, only_mine.into_iter().chain(only_theirs).collect()),
            "issubset" => Ok(self.bool(only_mine.is_empty())),
            "issuperset" => Ok(self.bool(only_theirs.is_empty())),
            _ => Ok(self.bool(common.is_empty())),
        }
    }

    /// The items of something that can be iterated over, those of a set in any order.
    fn unordered_items(&mut self, value: &Value) -> Run<Vec<Value>> {
        match value {
            Value::Set(_) => Ok(members(value)),
            Value::Known(object, _) if self.host.kind(*object) == Kind::FrozenSet => {
                Ok(self.constant_items(*object).into_iter().map(|item| Value::Known(item, None)).collect())
            }
            other => self.items_of(other),
        }
    }

    /// A set that is frozen where another is; the order of its members is not known.
    fn new_set_like(&mut self, set: &Value, items: Vec<Value>) -> Run<Value> {
        let made = self.new_set(items)?;
        if let Value::Set(made) = &made
            && made.entries.borrow().len() > 1
            && let Twin::Known(_) = made.twin.get()
        {
            made.twin.set(Twin::Lost(None));
            let steps = members_of(made).into_iter().map(|member| SetStep { method: "add", args: vec![member] });
            made.steps.replace(steps.collect());
        }
        Ok(if is_frozen(set) { frozen_set(made) } else { made })
    }

    /// A set of a class of the user's as one of Python's own that holds the same.
    pub(super) fn bare_set(&mut self, set: &SetValue) -> Run<Value> {
        let twin = self.observed_twin(set)?;
        Ok(Value::Set(Rc::new(SetValue {
            entries: RefCell::new(set.entries.borrow().copied()),
            twin: Cell::new(twin.map_or(Twin::Lost(None), Twin::Known)),
            ..SetValue::default()
        })))
    }

    /// What can be iterated over once only, as a tuple of its items.
    fn iterated_once(&mut self, value: &Value) -> Run<Value> {
        match value {
            Value::Iterator(_) | Value::Instance(_) => Ok(Value::tuple(self.items_of(value)?)),
            other => Ok(other.clone()),
        }
    }
}

/// The members of a set in the order they came.
fn members(set: &Value) -> Vec<Value> {
    match set {
        Value::Set(set) => members_of(set),
        _ => Vec::new(),
    }
}

fn members_of(set: &SetValue) -> Vec<Value> {
    set.entries.borrow().iter().map(|(_, member, _)| member.clone()).collect()
}

/// Whether a value is a `frozenset`.
fn is_frozen(set: &Value) -> bool {
    matches!(set, Value::Set(set) if set.frozen)
}

/// A set that nobody else has, as a `frozenset`.
fn frozen_set(set: Value) -> Value {
    let Value::Set(made) = set else { return set };
    match Rc::try_unwrap(made) {
        Ok(made) => Value::Set(Rc::new(SetValue { frozen: true, twin: Cell::new(Twin::Lost(None)), ..made })),
        Err(shared) => Value::Set(shared),
    }
}
