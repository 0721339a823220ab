//! Iteration.

use std::rc::Rc;

use super::{Evaluator, Frame, Outcome, Run, Stop};
use crate::host::Kind;
use crate::opcode::Op;
use crate::value::{Iterate, IteratorValue, Strictness, Value, Watched};

/// Longer loops are left to Python.
const MAX_LENGTH: i64 = 10_000;

/// A container that is iterated over.
struct Seen {
    container: Value,
    /// How many items it had when the iteration began.
    count: usize,
    /// Whether it is a set that has changed since.
    stale: bool,
}

impl Evaluator<'_, '_> {
    /// `iter(value)`.
    pub(super) fn iterator(&mut self, value: &Value) -> Run<Value> {
        match self.overridden(value, "__iter__")? {
            Some(method) => self.call(&method, Vec::new(), Vec::new()),
            None => self.plain_iterator(value),
        }
    }

    /// `iter(value)`, as Python's own classes do it.
    pub(super) fn plain_iterator(&mut self, value: &Value) -> Run<Value> {
        if let Some(text) = self.value_without(value, "__iter__") {
            return self.plain_iterator(&text);
        }
        match value {
            Value::Iterator(_) => Ok(value.clone()),
            Value::List(list) => Ok(Value::iterator(Iterate::List(list.clone(), 0))),
            Value::Tuple(tuple) => Ok(Value::iterator(Iterate::Items(tuple.items.clone(), 0))),
            Value::Deque(_) | Value::Dict(_) | Value::View(_) | Value::Set(_) => {
                let items = self.plain_items(value)?;
                let iterator = Value::iterator(Iterate::Watched(Watched::new(value.clone(), items)));
                if let Some(identity) = iterator.identity() {
                    self.made_at.insert(identity, self.root);
                }
                Ok(iterator)
            }
            Value::Members(instance) => {
                let members = self.members_of(&instance.clone())?;
                let names = self.plain_items(&members)?;
                let iterator = Value::iterator(Iterate::Watched(Watched::new(value.clone(), names)));
                if let Some(identity) = iterator.identity() {
                    self.made_at.insert(identity, self.root);
                }
                Ok(iterator)
            }
            Value::Tensor(_) => {
                let items = self.tensor_rows(value)?;
                Ok(Value::iterator(Iterate::Items(items, 0)))
            }
            Value::Instance(instance) => {
                let class = instance.class;
                if self.class_item(class, "__iter__").is_some() {
                    let method = self.class_attribute_of(value, class, &"__iter__".into())?;
                    let iterator = self.call(&method, Vec::new(), Vec::new())?;
                    let iterates = match &iterator {
                        Value::Iterator(_) => true,
                        Value::Instance(made) => self.class_item(made.class, "__next__").is_some(),
                        Value::Known(..) => return Err(self.stop("an iterator that is not understood")),
                        _ => false,
                    };
                    if !iterates {
                        let Value::Known(of, _) = self.class_of(&iterator)? else { return Err(self.stop("a class")) };
                        let of = self.short_name(of);
                        let message = format!("iter() returned non-iterator of type '{of}'");
                        return Err(self.raise("TypeError", &message));
                    }
                    return Ok(iterator);
                }
                if self.class_item(class, "__getitem__").is_some()
                    && let Some(iterator) = self.call_polyfill("sequence_iterator", vec![value.clone()], Vec::new())?
                {
                    return Ok(iterator);
                }
                let name = self.host.class_name(class);
                let name = name.rsplit('.').next().unwrap_or_default();
                Err(self.raise("TypeError", &format!("'{name}' object is not iterable")))
            }
            Value::Known(object, Some(source)) if self.host.kind(*object) == Kind::FrozenSet => {
                let items = self.read_order(*object, source).into_iter().map(|item| Value::Known(item, None)).collect();
                Ok(Value::iterator(Iterate::Items(items, 0)))
            }
            Value::Known(object, _) => match self.host.kind(*object) {
                Kind::Plain | Kind::Tuple | Kind::NamedTuple | Kind::FrozenSet | Kind::Class => {
                    let tuple = self.host.member("builtins", "tuple").ok_or_else(|| self.stop("tuple is missing"))?;
                    if let Some(length) = self.host.operator("length_hint", &[*object]).ok()
                        && self.host.as_int(length).is_some_and(|length| length > MAX_LENGTH)
                    {
                        return Err(self.stop("a very long iteration"));
                    }
                    let items = self.host.call(tuple, &[*object], &[]).map_err(|r| self.raised(r))?;
                    let items = self.constant_items(items).into_iter().map(|item| Value::Known(item, None)).collect();
                    Ok(Value::iterator(Iterate::Items(items, 0)))
                }
                Kind::None | Kind::Bool | Kind::Int => {
                    let name = self.host.class_name(self.host.class_of(*object));
                    let name = name.rsplit('.').next().unwrap_or_default();
                    Err(self.raise("TypeError", &format!("'{name}' object is not iterable")))
                }
                _ => {
                    let text = self.host.describe(*object);
                    Err(self.stop(format!("an iteration over {text}")))
                }
            },
            other => Err(self.stop(format!("an iteration over {}", self.describe(other)))),
        }
    }

    /// The next item; nothing at the end.
    pub(super) fn next(&mut self, iterator: &Value) -> Run<Option<Value>> {
        Ok(self.next_or_result(iterator)?.ok())
    }

    /// The next item, or at the end what a generator returns.
    pub(super) fn next_or_result(&mut self, iterator: &Value) -> Run<Result<Value, Value>> {
        match iterator {
            Value::Iterator(state) => self.advance(&state.clone()),
            Value::Instance(instance) => {
                if self.class_item(instance.class, "__next__").is_none() {
                    return Err(self.refused_by("next", instance.class, &[]));
                }
                let method = self.class_attribute_of(iterator, instance.class, &"__next__".into())?;
                match self.call(&method, Vec::new(), Vec::new()) {
                    Ok(value) => Ok(Ok(value)),
                    Err(Stop::Raise(exception)) => {
                        let class = self.host.member("builtins", "StopIteration").map(|c| Value::Known(c, None));
                        match class {
                            Some(class) if self.exception_matches(&exception, &class)? => Ok(Err(self.none())),
                            _ => Err(Stop::Raise(exception)),
                        }
                    }
                    Err(stop) => Err(stop),
                }
            }
            other => Err(self.stop(format!("the next item of {}", self.describe(other)))),
        }
    }

    fn advance(&mut self, iterator: &Rc<IteratorValue>) -> Run<Result<Value, Value>> {
        enum Step {
            Item(Value),
            /// An item of a container, or its end.
            Watched(Seen, Option<Value>),
            End,
            Inner(Iterate),
        }
        let step = match &mut *iterator.state.borrow_mut() {
            Iterate::List(list, place) => match list.items.borrow().get(*place) {
                Some(item) => {
                    *place += 1;
                    Step::Item(item.clone())
                }
                None => {
                    *place = usize::MAX / 2;
                    Step::End
                }
            },
            Iterate::Items(items, place) => match items.get(*place) {
                Some(item) => {
                    *place += 1;
                    Step::Item(item.clone())
                }
                None => Step::End,
            },
            Iterate::Watched(watched) if watched.place <= watched.items.len() => {
                watched.place += 1;
                let seen = Seen {
                    container: watched.container.clone(),
                    count: watched.items.len(),
                    stale: watched.is_stale(),
                };
                Step::Watched(seen, watched.items.get(watched.place - 1).cloned())
            }
            Iterate::Watched(_) => Step::End,
            Iterate::Enumerate(inner, count) => {
                let current = *count;
                *count += 1;
                Step::Inner(Iterate::Enumerate(inner.clone(), current))
            }
            Iterate::Zip(inner, strictness) => Step::Inner(Iterate::Zip(inner.clone(), *strictness)),
            Iterate::Map(function, inner) => Step::Inner(Iterate::Map(function.clone(), inner.clone())),
            Iterate::Filter(function, inner) => Step::Inner(Iterate::Filter(function.clone(), inner.clone())),
            Iterate::Count(next, step) => Step::Inner(Iterate::Count(next.clone(), step.clone())),
            Iterate::Generator(frame) => match frame.take() {
                Some(frame) => Step::Inner(Iterate::Generator(Some(frame))),
                None => Step::End,
            },
        };
        let inner = match step {
            Step::Item(item) => {
                self.note_taken(iterator);
                return self.force(&item).map(Ok);
            }
            Step::Watched(seen, item) => {
                self.check_unchanged(&seen)?;
                return match item {
                    Some(item) => self.force(&item).map(Ok),
                    None => Ok(Err(self.none())),
                };
            }
            Step::End => return Ok(Err(self.none())),
            Step::Inner(inner) => inner,
        };
        match inner {
            Iterate::Enumerate(inner, count) => match self.next(&inner)? {
                Some(item) => Ok(Ok(Value::tuple(vec![self.int(count), item]))),
                None => Ok(Err(self.none())),
            },
            Iterate::Zip(inner, strictness) => self.advance_zip(&inner, strictness),
            Iterate::Map(function, inner) => {
                let mut args = Vec::with_capacity(inner.len());
                for iterator in &inner {
                    match self.next(iterator)? {
                        Some(item) => args.push(item),
                        None => return Ok(Err(self.none())),
                    }
                }
                self.call(&function, args, Vec::new()).map(Ok)
            }
            Iterate::Filter(function, inner) => loop {
                let Some(item) = self.next(&inner)? else { return Ok(Err(self.none())) };
                let keep = if self.is_none(&function) {
                    item.clone()
                } else {
                    self.call(&function, vec![item.clone()], Vec::new())?
                };
                if self.is_true(&keep)? {
                    return Ok(Ok(item));
                }
            },
            Iterate::Count(next, step) => {
                let following = self.binary("add", &next, &step)?;
                self.note_taken(iterator);
                *iterator.state.borrow_mut() = Iterate::Count(following, step);
                Ok(Ok(next))
            }
            Iterate::Generator(Some(mut frame)) => {
                let outcome = self.run_frame(&mut frame);
                match outcome {
                    Ok(Outcome::Yield(value)) => {
                        frame.push(self.none());
                        *iterator.state.borrow_mut() = Iterate::Generator(Some(frame));
                        Ok(Ok(value))
                    }
                    Ok(Outcome::Return(value)) => Ok(Err(value)),
                    Err(stop) => Err(self.out_of_generator(&frame, stop)?),
                }
            }
            Iterate::Generator(None) | Iterate::List(..) | Iterate::Items(..) | Iterate::Watched(..) => {
                Ok(Err(self.none()))
            }
        }
    }

    /// Notes that an item was taken: one from outside is advanced when the frame ends.
    fn note_taken(&mut self, iterator: &Rc<IteratorValue>) {
        self.note_mutation(&Value::Iterator(iterator.clone()));
        iterator.taken.set(iterator.taken.get() + 1);
        if iterator.origin.is_some() && iterator.taken.get() == 1 {
            self.changed.push(Value::Iterator(iterator.clone()));
        }
    }

    /// Raises where a container has grown or shrunk while it is iterated over, as Python does.
    fn check_unchanged(&mut self, seen: &Seen) -> Run<()> {
        if self.count(&seen.container)? == seen.count {
            // What is found next depends on where Python keeps the members.
            return if seen.stale { Err(self.stop("a set that changes while it is iterated over")) } else { Ok(()) };
        }
        let message = match &seen.container {
            Value::Set(_) => "Set changed size during iteration",
            Value::Deque(_) => "deque mutated during iteration",
            _ => "dictionary changed size during iteration",
        };
        Err(self.raise("RuntimeError", message))
    }

    /// What tells Python that an iterator has ended, with what a generator returned.
    pub(super) fn stop_iteration(&self, result: Value) -> Stop {
        let Some(class) = self.host.member("builtins", "StopIteration") else {
            return self.stop("StopIteration is missing");
        };
        let args = if self.is_none(&result) { Vec::new() } else { vec![result] };
        Stop::Raise(self.exception(class, args))
    }

    /// Raises an exception where a generator is suspended: what it yields next, or returns.
    pub(super) fn throw(&mut self, iterator: &Value, exception: Value) -> Run<Result<Value, Value>> {
        let Value::Iterator(iterator) = iterator else { return Err(self.stop("an object that is not a generator")) };
        let taken = match &mut *iterator.state.borrow_mut() {
            Iterate::Generator(frame) => frame.take(),
            _ => return Err(self.stop("an exception that is thrown into an iterator")),
        };
        let Some(mut frame) = taken else { return Err(Stop::Raise(exception)) };
        if !frame.has_begun() {
            return Err(Stop::Raise(exception));
        }
        let mut exception = exception;
        // One that waits for another generator hands the exception on to it.
        if let Some(inner) = frame.awaited() {
            let exits = self.is_one_of(&exception, &["GeneratorExit"])?;
            let outcome = match &inner {
                Value::Iterator(held) if exits && matches!(&*held.state.borrow(), Iterate::Generator(_)) => {
                    self.close(&inner).map(|()| None)
                }
                Value::Iterator(held) if matches!(&*held.state.borrow(), Iterate::Generator(_)) => {
                    self.throw(&inner, exception.clone()).map(Some)
                }
                Value::Iterator(_) => Ok(None),
                _ => return Err(self.stop("an exception that is thrown into an iterator of the user's")),
            };
            match outcome {
                Ok(None) => {}
                Ok(Some(Ok(value))) => {
                    *iterator.state.borrow_mut() = Iterate::Generator(Some(frame));
                    return Ok(Ok(value));
                }
                Ok(Some(Err(result))) => {
                    let send = frame.code.instructions[..frame.place].iter().rev();
                    let send = send.copied().find(|i| matches!(i.op, Op::Send | Op::SendKeeping));
                    let send = send.ok_or_else(|| self.stop("a generator that waits for nothing"))?;
                    frame.pop();
                    if send.op == Op::Send {
                        frame.pop();
                    }
                    frame.push(result);
                    frame.place = send.target.ok_or_else(|| self.stop("a generator that waits for nothing"))?;
                    return self.go_on(iterator, frame);
                }
                Err(Stop::Raise(raised)) => exception = raised,
                Err(stop) => return Err(stop),
            }
        }
        let Some(handler) = frame.code.handler(frame.place - 1).copied() else {
            return Err(self.out_of_generator(&frame, Stop::Raise(exception))?);
        };
        frame.stack.truncate(handler.depth);
        if handler.push_place {
            frame.push(Value::Known(self.host.int(frame.place as i64 - 1), None));
        }
        self.give_context(&frame, &exception, false)?;
        frame.push(exception);
        frame.place = handler.target;
        self.go_on(iterator, frame)
    }

    /// Runs a generator on: what it yields next, or returns.
    fn go_on(&mut self, iterator: &IteratorValue, mut frame: Box<super::Frame>) -> Run<Result<Value, Value>> {
        match self.run_frame(&mut frame) {
            Ok(Outcome::Yield(value)) => {
                frame.push(self.none());
                *iterator.state.borrow_mut() = Iterate::Generator(Some(frame));
                Ok(Ok(value))
            }
            Ok(Outcome::Return(value)) => Ok(Err(value)),
            Err(stop) => Err(self.out_of_generator(&frame, stop)?),
        }
    }

    /// Whether an exception is of one of these classes of Python's own.
    pub(super) fn is_one_of(&mut self, exception: &Value, classes: &[&str]) -> Run<bool> {
        for class in classes {
            let class = self.host.member("builtins", class).ok_or_else(|| self.stop("a missing class"))?;
            if self.exception_matches(exception, &Value::Known(class, None))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How what ends a generator reaches its caller: a `StopIteration` would be taken for its end.
    fn out_of_generator(&mut self, frame: &super::Frame, stop: Stop) -> Run<Stop> {
        match stop {
            Stop::Raise(exception) if self.is_one_of(&exception, &["StopIteration"])? => {
                self.check_is_generator(frame)?;
                Ok(Stop::Raise(self.stop_iteration_raised(&exception)))
            }
            other => Ok(other),
        }
    }

    /// Refuses a `StopIteration` that a function raises in an iterator of Python's library, which hands it on and goes on
    /// afterwards; only here is it a generator.
    pub(super) fn check_is_generator(&self, frame: &super::Frame) -> Run<()> {
        if frame.code.file.ends_with("_polyfills.py") {
            return Err(self.stop("a StopIteration that a function raises in an iterator of the library"));
        }
        Ok(())
    }

    /// What is raised for a `StopIteration` that was raised in a generator.
    pub(super) fn stop_iteration_raised(&self, exception: &Value) -> Value {
        let stop = self.raise("RuntimeError", "generator raised StopIteration");
        let Stop::Raise(replaced) = stop else { return exception.clone() };
        if let Value::Instance(instance) = &replaced {
            let suppress = self.bool(true);
            let mut attributes = instance.attributes.borrow_mut();
            attributes.set(&"__cause__".into(), Some(exception.clone()));
            attributes.set(&"__context__".into(), Some(exception.clone()));
            attributes.set(&"__suppress_context__".into(), Some(suppress));
        }
        replaced
    }

    /// The next item of an iterator that is sent a value, or at the end what a generator returns.
    pub(super) fn send_or_result(&mut self, iterator: &Value, value: Value) -> Run<Result<Value, Value>> {
        if self.is_none(&value) {
            return self.next_or_result(iterator);
        }
        let Value::Iterator(state) = iterator else { return Err(self.stop("a value sent into an iterator")) };
        if let Iterate::Generator(Some(frame)) = &mut *state.state.borrow_mut() {
            if !frame.has_begun() {
                return Err(self.raise("TypeError", "can't send non-None value to a just-started generator"));
            }
            // What it was to be sent is on its stack.
            frame.pop();
            frame.push(value);
        } else if !matches!(&*state.state.borrow(), Iterate::Generator(None)) {
            return Err(self.stop("a value sent into an iterator"));
        }
        self.next_or_result(iterator)
    }

    /// Ends a generator: what it does when it is left is done.
    pub(super) fn close(&mut self, generator: &Value) -> Run<()> {
        let Value::Iterator(iterator) = generator else { return Err(self.stop("an object that is not a generator")) };
        match &mut *iterator.state.borrow_mut() {
            Iterate::Generator(Some(frame))
                if frame.awaited().is_some() || (frame.is_suspended() && !frame.code.protected.is_empty()) => {}
            Iterate::Generator(frame) => {
                let quiet = frame.as_ref().is_none_or(|frame| !frame.has_begun() || frame.code.protected.is_empty());
                if !quiet {
                    return Err(self.stop("a generator that is closed while it runs"));
                }
                *frame = None;
                return Ok(());
            }
            _ => return Err(self.stop("an iterator that is closed")),
        }
        let class = self.host.member("builtins", "GeneratorExit").ok_or_else(|| self.stop("a missing class"))?;
        let exit = self.exception(class, Vec::new());
        match self.throw(generator, exit) {
            Ok(Ok(_)) => Err(self.raise("RuntimeError", "generator ignored GeneratorExit")),
            Ok(Err(_)) => Ok(()),
            Err(Stop::Raise(raised)) => {
                if self.is_one_of(&raised, &["GeneratorExit", "StopIteration"])? {
                    return Ok(());
                }
                Err(Stop::Raise(raised))
            }
            Err(stop) => Err(stop),
        }
    }

    /// Lets a value go: a generator that nobody else has ends.
    pub(super) fn let_go(&mut self, value: &Value) -> Run<()> {
        if is_begun_and_alone(value) { self.close(value) } else { Ok(()) }
    }

    /// Lets go what a variable held: generators that nobody else has end, also those in containers and iterators that end so.
    pub(super) fn release(&mut self, value: Value) -> Run<()> {
        match &value {
            Value::Iterator(_) if is_begun_and_alone(&value) => {
                return match self.let_go(&value) {
                    Err(Stop::Raise(_)) => Err(self.stop("a generator that raises where it is let go")),
                    other => other,
                };
            }
            Value::Iterator(_) | Value::List(_) | Value::Tuple(_) | Value::Cell(_) => {}
            _ => return Ok(()),
        }
        let held = match value {
            Value::Iterator(iterator) => match Rc::try_unwrap(iterator).map(|iterator| iterator.state.into_inner()) {
                Ok(Iterate::Enumerate(inner, _)) => vec![inner],
                Ok(Iterate::Zip(inner, _)) => inner,
                Ok(Iterate::Map(function, inner)) => std::iter::once(function).chain(inner).collect(),
                Ok(Iterate::Filter(function, inner)) => vec![function, inner],
                Ok(Iterate::Generator(Some(frame))) => frame.slots.into_iter().flatten().chain(frame.stack).collect(),
                _ => Vec::new(),
            },
            Value::List(list) => Rc::try_unwrap(list).map(|list| list.items.into_inner()).unwrap_or_default(),
            Value::Tuple(tuple) => Rc::try_unwrap(tuple).map(|tuple| tuple.items).unwrap_or_default(),
            Value::Cell(cell) => {
                Rc::try_unwrap(cell).ok().and_then(|cell| cell.contents.into_inner()).into_iter().collect()
            }
            _ => Vec::new(),
        };
        held.into_iter().try_for_each(|value| self.release(value))
    }

    /// Whether a frame holds a generator that would do something when the frame is let go.
    pub(super) fn holds_suspended(frame: &Frame) -> bool {
        let does = |value: &Value| {
            is_begun_and_alone(value)
                && matches!(value, Value::Iterator(it)
                    if matches!(&*it.state.borrow(), Iterate::Generator(Some(frame)) if !frame.code.protected.is_empty()))
        };
        frame.slots.iter().flatten().any(does)
    }

    fn advance_zip(&mut self, inner: &[Value], strictness: Strictness) -> Run<Result<Value, Value>> {
        let mut items = Vec::with_capacity(inner.len());
        for (index, iterator) in inner.iter().enumerate() {
            match self.next(iterator)? {
                Some(item) => items.push(item),
                None if strictness == Strictness::Strict => {
                    let message = if index > 0 {
                        Some(format!("zip() argument {} is shorter than argument{}", index + 1, earlier(index)))
                    } else {
                        let mut longer = None;
                        for (later, iterator) in inner.iter().enumerate().skip(1) {
                            if self.next(iterator)?.is_some() {
                                longer = Some(format!(
                                    "zip() argument {} is longer than argument{}",
                                    later + 1,
                                    earlier(later)
                                ));
                                break;
                            }
                        }
                        longer
                    };
                    return match message {
                        Some(message) => Err(self.raise("ValueError", &message)),
                        None => Ok(Err(self.none())),
                    };
                }
                None => return Ok(Err(self.none())),
            }
        }
        if inner.is_empty() {
            return Ok(Err(self.none()));
        }
        Ok(Ok(Value::tuple(items)))
    }
}

/// Whether a value is a generator that has begun and that nobody else has.
fn is_begun_and_alone(value: &Value) -> bool {
    matches!(value, Value::Iterator(iterator) if Rc::strong_count(iterator) == 1
        && matches!(&*iterator.state.borrow(), Iterate::Generator(Some(frame)) if frame.has_begun()))
}

/// How `zip` names the arguments before one.
fn earlier(index: usize) -> String {
    if index == 1 { " 1".to_owned() } else { format!("s 1-{index}") }
}
