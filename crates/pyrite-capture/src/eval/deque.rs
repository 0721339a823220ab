//! `collections.deque`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::call::Keywords;
use super::{Evaluator, Run};
use crate::value::{DequeValue, Origin, Value};

impl Evaluator<'_, '_> {
    /// `collections.deque(items, maxlen)`.
    pub(super) fn new_deque(&mut self, args: &[Value], kwargs: &Keywords) -> Run<Value> {
        let made = self.deque(Vec::new(), None);
        self.fill_deque(&made, args, kwargs)?;
        Ok(made)
    }

    /// `deque.__init__(items, maxlen)`: the items come one by one, as `append` of `deque` itself adds them.
    fn fill_deque(&mut self, made: &Value, args: &[Value], kwargs: &Keywords) -> Run<()> {
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
        let limit = match args.get(1).cloned().or_else(|| option("maxlen")) {
            Some(limit) if !self.is_none(&limit) => Some(self.index_of(&limit)?),
            _ => None,
        };
        let limit = limit.map(usize::try_from).transpose();
        let limit = limit.map_err(|_| self.raise("ValueError", "maxlen must be non-negative"))?;
        let Value::Deque(deque) = made else { return Err(self.stop("an object that is not a deque")) };
        if deque.origin.is_some() && deque.limit.get() != limit {
            return Err(self.stop("changing the maxlen of a deque from outside the frame"));
        }
        deque.limit.set(limit);
        self.change_deque(made, Vec::clear)?;
        match args.first().cloned().or_else(|| option("iterable")) {
            Some(items) => self.deque_method(made, &"extend".into(), &[items], &Vec::new()).map(|_| ()),
            None => Ok(()),
        }
    }

    fn deque(&self, items: Vec<Value>, limit: Option<usize>) -> Value {
        let surplus = limit.map_or(0, |limit| items.len().saturating_sub(limit));
        let items = RefCell::new(items.into_iter().skip(surplus).collect());
        Value::Deque(Rc::new(DequeValue { items, limit: Cell::new(limit), ..DequeValue::default() }))
    }

    /// One that exists outside.
    pub(super) fn wrap_deque(&mut self, origin: Origin) -> Run<Value> {
        let source = origin.source.clone();
        let items = self.read_items(origin.object, &source).into_iter().map(|item| self.lazily(item));
        let items = RefCell::new(items.collect());
        let limit = self.read_attribute(origin.object, &source, "maxlen")?;
        let limit = self.admit(&limit)?;
        let limit = if self.is_none(&limit) { None } else { Some(self.index_of(&limit)? as usize) };
        let class = self.host.class_of(origin.object);
        let class = Some(class).filter(|class| Some(*class) != self.host.member("collections", "deque"));
        let limit = Cell::new(limit);
        Ok(Value::Deque(Rc::new(DequeValue { items, limit, class, origin: Some(origin), ..DequeValue::default() })))
    }

    /// Changes the items of a deque.
    pub(super) fn change_deque<R>(&mut self, value: &Value, change: impl FnOnce(&mut Vec<Value>) -> R) -> Run<R> {
        let Value::Deque(deque) = value else {
            return Err(self.stop("a deque method on an object that is not a deque"));
        };
        let result = change(&mut deque.items.borrow_mut());
        self.note_change(value, deque.origin.is_some(), &deque.changed)?;
        Ok(result)
    }

    /// `deque.name(*args, **kwargs)`.
    pub(super) fn deque_method(
        &mut self,
        value: &Value,
        name: &Rc<str>,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Value> {
        let Value::Deque(deque) = value else {
            return Err(self.stop("a deque method on an object that is not a deque"));
        };
        let limit = deque.limit.get().unwrap_or(usize::MAX);
        let none = self.none();
        match (&**name, args) {
            ("__init__", given) if given.len() <= 2 => self.fill_deque(value, given, kwargs).map(|()| none),
            _ if !kwargs.is_empty() => Err(self.stop(format!("the method {name} of a deque with keywords"))),
            ("append", [item]) => {
                self.change_deque(value, |items| {
                    items.push(item.clone());
                    items.drain(..items.len().saturating_sub(limit));
                })?;
                Ok(none)
            }
            ("appendleft", [item]) => {
                self.change_deque(value, |items| {
                    items.insert(0, item.clone());
                    items.truncate(limit);
                })?;
                Ok(none)
            }
            // Items come one by one: what yields them may look at the deque, or raise in between.
            ("extend" | "extendleft", [more]) => {
                let more =
                    if more.identity() == value.identity() { Value::list(self.items_of(more)?) } else { more.clone() };
                let one: Rc<str> = if &**name == "extend" { "append".into() } else { "appendleft".into() };
                let iterator = self.iterator(&more)?;
                while let Some(item) = self.next(&iterator)? {
                    self.deque_method(value, &one, &[item], &Vec::new())?;
                }
                Ok(none)
            }
            ("pop" | "popleft", []) => {
                let first = &**name == "popleft";
                let item = self.change_deque(value, |items| match items.len() {
                    0 => None,
                    _ if first => Some(items.remove(0)),
                    _ => items.pop(),
                })?;
                match item {
                    Some(item) => self.force(&item),
                    None => Err(self.raise("IndexError", "pop from an empty deque")),
                }
            }
            ("rotate", rest) if rest.len() <= 1 => {
                let steps = rest.first().map_or(Ok(1), |steps| self.index_of(steps))?;
                self.change_deque(value, |items| {
                    let length = items.len() as i64;
                    if length > 0 {
                        items.rotate_right(steps.rem_euclid(length) as usize);
                    }
                })?;
                Ok(none)
            }
            ("clear", []) => self.change_deque(value, Vec::clear).map(|()| none),
            ("reverse", []) => self.change_deque(value, |items| items.reverse()).map(|()| none),
            ("copy" | "__copy__", []) => {
                if deque.class.is_some() {
                    return Err(self.stop("copying a deque subclass"));
                }
                let items = self.items_of(value)?;
                Ok(self.deque(items, deque.limit.get()))
            }
            ("remove", [wanted]) => {
                for (place, item) in self.items_of(value)?.iter().enumerate() {
                    if self.is_same_or_equal(item, wanted)? {
                        self.change_deque(value, |items| items.remove(place))?;
                        return Ok(none);
                    }
                }
                Err(self.not_found(value, name, wanted)?)
            }
            ("insert", [at, item]) => {
                let length = self.count(value)?;
                if length >= limit {
                    return Err(self.raise("IndexError", "deque already at its maximum size"));
                }
                let at = self.index_of(at)?;
                let place = if at < 0 { (at + length as i64).max(0) } else { at.min(length as i64) };
                self.change_deque(value, |items| items.insert(place as usize, item.clone()))?;
                Ok(none)
            }
            ("index", [wanted]) => {
                for (place, item) in self.items_of(value)?.iter().enumerate() {
                    if self.is_same_or_equal(item, wanted)? {
                        return Ok(self.int(place as i64));
                    }
                }
                Err(self.not_found(value, name, wanted)?)
            }
            ("__reversed__", []) => {
                let mut items = self.items_of(value)?;
                items.reverse();
                Ok(Value::iterator(crate::value::Iterate::Items(items, 0)))
            }
            // By its name the method counts from the end before it looks at the key.
            ("__getitem__" | "__setitem__" | "__delitem__", [key, ..])
                if !matches!(key, Value::Symbol(_))
                    && !matches!(key, Value::Known(key, _) if self.host.as_int(*key).is_some()) =>
            {
                Err(self.stop(format!("the method {name} of a deque with a key that is no whole number")))
            }
            (
                "count" | "__len__" | "__iter__" | "__getitem__" | "__setitem__" | "__delitem__" | "__contains__"
                | "__eq__" | "__ne__",
                _,
            ) => self.sequence_method(value, name, args),
            _ => Err(self.stop(format!("the method {name} of a deque"))),
        }
    }
}
