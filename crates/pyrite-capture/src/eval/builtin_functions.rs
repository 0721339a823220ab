//! Python's built-in functions and classes, by families.

use std::rc::Rc;

use super::call::Keywords;
use super::compare::is_graph;
use super::{Evaluator, Run};
use crate::host::{Kind, Object};
use crate::value::{Iterate, Strictness, TupleValue, Value};

impl Evaluator<'_, '_> {
    /// Calls a function of Python's builtins; nothing when it is to be called as any other.
    pub(super) fn call_builtin(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        // The others take none, and say so.
        const WITH_KEYWORDS: [&str; 9] = ["print", "open", "enumerate", "zip", "sum", "min", "max", "sorted", "dict"];
        let special = name.contains('.') || name.starts_with("__");
        if !kwargs.is_empty() && !special && !WITH_KEYWORDS.contains(&name) {
            return Ok(None);
        }
        match name {
            "len" | "isinstance" | "issubclass" | "type" | "callable" | "id" | "hash" | "print" | "input" | "open"
            | "exec" | "eval" | "compile" | "breakpoint" | "globals" | "locals" | "super" | "object" => {
                self.ask_about_object(name, args)
            }
            "vars" | "getattr" | "hasattr" | "setattr" | "delattr" => self.call_attribute_function(name, args),
            "iter" | "next" | "enumerate" | "zip" | "map" | "filter" | "reversed" | "range" | "slice" => {
                self.iterate_by_builtin(name, args, kwargs)
            }
            "sum" | "min" | "max" | "any" | "all" | "sorted" => self.fold(name, args, kwargs),
            "list" | "tuple" | "set" | "frozenset" | "dict" => self.make_container(name, args, kwargs),
            "divmod" | "float" | "abs" | "round" | "int" | "bool" | "str" | "repr" => self.convert(name, args),
            _ if special => self.call_function_of_class(name, args, kwargs),
            _ => Ok(None),
        }
    }

    /// Functions that ask what objects are, and those that are refused.
    fn ask_about_object(&mut self, name: &str, args: &[Value]) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("len", [value]) => self.length(value)?,
            ("isinstance", [value, classes]) => {
                let found = self.is_instance(value, classes)?;
                self.bool(found)
            }
            ("issubclass", [Value::Known(class, _), classes]) => {
                let bases = match self.plain_guarded(classes)? {
                    Some(bases) if self.host.kind(bases) == Kind::Tuple => self.constant_items(bases),
                    Some(base) => vec![base],
                    None => return Ok(None),
                };
                let mut found = false;
                for base in bases {
                    if self.host.kind(base) != Kind::Class {
                        return Err(self.stop("issubclass with an argument that is not a class"));
                    }
                    found = found || self.is_subclass_of(*class, base)?;
                }
                self.bool(found)
            }
            ("type", [value]) => self.class_of(value)?,
            ("callable", [value]) => {
                let found = match value {
                    Value::Function(_) | Value::Method(_) | Value::Bound(_) | Value::Partial(_) => true,
                    other => match self.class_of(other)? {
                        Value::Known(class, _) => self.class_item(class, "__call__").is_some(),
                        _ => false,
                    },
                };
                self.bool(found)
            }
            (
                "id",
                [Value::Symbol(_) | Value::Number(_) | Value::Condition(_) | Value::Method(_) | Value::Bound(_)],
            ) => {
                return Err(self.stop("the address of an object"));
            }
            ("id", [value]) => Value::Address(Rc::new(value.clone())),
            ("hash", [Value::List(_) | Value::Dict(_) | Value::Set(_)])
                if let Value::Known(class, _) = self.class_of(&args[0])?
                    && self.class_item(class, "__hash__") == Some(self.host.none()) =>
            {
                let message = format!("unhashable type: '{}'", self.short_name(class));
                return Err(self.raise("TypeError", &message));
            }
            ("hash", [value @ Value::Instance(_)]) => match self.hash_of(value)? {
                Some(hash) => Value::Known(hash, None),
                None => return Err(self.stop("the hash of an object")),
            },
            ("print" | "input" | "open" | "exec" | "eval" | "compile" | "breakpoint" | "globals" | "locals", _) => {
                let hint = match name {
                    "print" => "print after the compiled function, or remove the call",
                    _ => "move the call out of the compiled function",
                };
                return Err(self.stop_with(format!("a call of {name}"), hint));
            }
            ("super", [Value::Known(class, _), object]) => self.super_of(*class, object.clone())?,
            ("object", []) => {
                let class = self.host.member("builtins", "object").ok_or_else(|| self.stop("object is missing"))?;
                Value::Instance(self.new_instance(class))
            }
            _ => return Ok(None),
        }))
    }

    /// Functions that read and write attributes.
    fn call_attribute_function(&mut self, name: &str, args: &[Value]) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("vars", [object]) => self.attribute(object, &"__dict__".into())?,
            ("vars", _) => {
                return Err(self.stop_with("a call of vars", "move the call out of the compiled function"));
            }
            ("getattr", [object, attribute, rest @ ..]) if rest.len() <= 1 => {
                let attribute = self.attribute_name(attribute)?;
                match rest.first() {
                    None => self.attribute(object, &attribute)?,
                    Some(default) => self.attribute_if_any(object, &attribute)?.unwrap_or_else(|| default.clone()),
                }
            }
            ("hasattr", [object, attribute]) => {
                let attribute = self.attribute_name(attribute)?;
                let found = self.attribute_if_any(object, &attribute)?.is_some();
                self.bool(found)
            }
            ("setattr", [object, attribute, value]) => {
                let attribute = self.attribute_name(attribute)?;
                self.set_attribute(object, &attribute, value.clone())?;
                self.none()
            }
            ("delattr", [object, attribute]) => {
                let attribute = self.attribute_name(attribute)?;
                self.delete_attribute(object, &attribute)?;
                self.none()
            }
            _ => return Ok(None),
        }))
    }

    /// Functions that make iterators, and what they run over.
    fn iterate_by_builtin(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
        Ok(Some(match (name, args) {
            ("iter", [value]) => self.iterator(value)?,
            ("iter", [_, _]) => return self.call_polyfill("iter", args.to_vec(), Vec::new()),
            ("next", [iterator, default @ ..]) if default.len() <= 1 => match self.next_or_result(iterator)? {
                Ok(value) => value,
                Err(result) => match default.first() {
                    Some(default) => default.clone(),
                    None => return Err(self.stop_iteration(result)),
                },
            },
            ("enumerate", [items, rest @ ..]) => {
                let inner = self.iterator(items)?;
                let start = rest.first().cloned().or_else(|| option("start"));
                let start = start.map_or(Ok(0), |start| self.index_of(&start))?;
                Value::iterator(Iterate::Enumerate(inner, start))
            }
            ("zip", several) => {
                let inner = several.iter().map(|items| self.iterator(items)).collect::<Run<_>>()?;
                let strict = match option("strict") {
                    Some(value) => self.is_true(&value)?,
                    None => false,
                };
                Value::iterator(Iterate::Zip(inner, if strict { Strictness::Strict } else { Strictness::Shortest }))
            }
            ("map", [function, several @ ..]) if !several.is_empty() => {
                let inner = several.iter().map(|items| self.iterator(items)).collect::<Run<_>>()?;
                Value::iterator(Iterate::Map(function.clone(), inner))
            }
            ("filter", [function, items]) => {
                let inner = self.iterator(items)?;
                Value::iterator(Iterate::Filter(function.clone(), inner))
            }
            ("reversed", [value]) => {
                if let Some(method) = self.overridden(value, "__reversed__")? {
                    return self.call(&method, Vec::new(), Vec::new()).map(Some);
                }
                if let Value::Instance(instance) = value
                    && self.class_item(instance.class, "__reversed__").is_some()
                {
                    let method = self.class_attribute_of(value, instance.class, &"__reversed__".into())?;
                    return self.call(&method, Vec::new(), Vec::new()).map(Some);
                }
                if let Value::Tensor(_) = value {
                    return self.call_method(value, &"__reversed__".into(), Vec::new(), Vec::new()).map(Some);
                }
                let Value::Known(class, _) = self.class_of(value)? else { return Ok(None) };
                let lacks = |name: &str| self.class_item(class, name).is_none();
                if lacks("__reversed__") && (lacks("__getitem__") || lacks("__len__")) {
                    return Err(self.refused_by("reversed", class, &[]));
                }
                let mut items = self.items_of(value)?;
                items.reverse();
                Value::iterator(Iterate::Items(items, 0))
            }
            ("range", bounds) if bounds.iter().any(|bound| matches!(bound, Value::Symbol(_))) => {
                let mut known = Vec::new();
                for bound in bounds {
                    let value = self.index_of(bound)?;
                    known.push(self.host.int(value));
                }
                let class = self.host.member("builtins", "range").ok_or_else(|| self.stop("range is missing"))?;
                let made = self.host.call(class, &known, &[]).map_err(|r| self.raised(r))?;
                Value::Known(made, None)
            }
            ("slice", parts) if !parts.is_empty() => {
                let none = self.none();
                let parts = match parts {
                    [stop] => [none.clone(), stop.clone(), none],
                    [start, stop] => [start.clone(), stop.clone(), none],
                    [start, stop, step] => [start.clone(), stop.clone(), step.clone()],
                    _ => return Ok(None),
                };
                self.new_slice(parts)
            }
            _ => return Ok(None),
        }))
    }

    /// Functions that go through all that they are given.
    fn fold(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
        Ok(Some(match (name, args) {
            ("sum" | "min" | "max" | "any" | "all", [set @ Value::Set(_)])
                if kwargs.is_empty()
                    && let Some(members) = self.whole_members(set) =>
            {
                return self.call_builtin(name, &[Value::tuple(members)], kwargs);
            }
            ("sorted", [items]) => {
                // The order of plain members is their own, whatever the order of their set.
                let members = match items {
                    Value::Set(set) if set.class.is_none_or(|class| !self.is_python_method(class, "__iter__")) => {
                        let members = set.entries.borrow();
                        let members = members.iter().map(|(_, member, _)| member.clone());
                        let members: Vec<Value> = members.collect();
                        let by_itself = !kwargs.iter().any(|(name, _)| &**name == "key");
                        let is = |member: &Value, kind: Kind| match member {
                            Value::Known(object, _) if kind == Kind::Int => self.host.kind(*object) == kind,
                            Value::Known(object, _) => self.host.as_str(*object).is_some(),
                            _ => false,
                        };
                        let of = |members: &[Value], kind: Kind| members.iter().all(|member| is(member, kind));
                        let comparable = of(&members, Kind::Int) || of(&members, Kind::Plain);
                        Some(members).filter(|_| by_itself && comparable)
                    }
                    _ => None,
                };
                let items = match members {
                    Some(members) => members,
                    None => self.items_of(items)?,
                };
                Value::list(self.sorted(items, kwargs)?)
            }
            ("any" | "all", [items]) => {
                let iterator = self.iterator(items)?;
                let wanted = name == "any";
                while let Some(item) = self.next(&iterator)? {
                    if self.is_true(&item)? == wanted {
                        return Ok(Some(self.bool(wanted)));
                    }
                }
                self.bool(!wanted)
            }
            ("sum", [items, start @ ..]) if start.len() <= 1 => {
                let start = start.first().cloned().or_else(|| option("start"));
                let mut total = start.unwrap_or_else(|| self.int(0));
                if let Value::Known(class, _) = self.class_of(&total)? {
                    let instead = match &*self.host.class_name(class) {
                        "builtins.str" => Some(("strings", "''")),
                        "builtins.bytes" => Some(("bytes", "b''")),
                        "builtins.bytearray" => Some(("bytearray", "b''")),
                        _ => None,
                    };
                    if let Some((what, empty)) = instead {
                        let message = format!("sum() can't sum {what} [use {empty}.join(seq) instead]");
                        return Err(self.raise("TypeError", &message));
                    }
                }
                let iterator = self.iterator(items)?;
                while let Some(item) = self.next(&iterator)? {
                    total = self.binary("add", &total, &item)?;
                }
                total
            }
            ("max" | "min", rest) if !rest.is_empty() => return self.extreme(name, rest, kwargs).map(Some),
            _ => return Ok(None),
        }))
    }

    /// Containers.
    fn make_container(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("list", []) => Value::list(Vec::new()),
            ("list", [items]) => Value::list(self.items_to_hold(items)?),
            ("tuple", []) => Value::tuple(Vec::new()),
            ("tuple", [items]) => Value::tuple(self.items_to_hold(items)?),
            ("set", []) => self.new_set(Vec::new())?,
            ("set" | "frozenset", [items]) => self.set_from(items, name)?,
            ("dict", rest) if rest.len() <= 1 => {
                let dict = self.new_dict(Vec::new())?;
                if let Some(more) = rest.first() {
                    self.dict_update(&dict, more)?;
                }
                for (key, value) in kwargs {
                    let key = self.text(key);
                    self.set_item(&dict, &key, value.clone())?;
                }
                dict
            }
            _ => return Ok(None),
        }))
    }

    /// Numbers, and texts of objects.
    fn convert(&mut self, name: &str, args: &[Value]) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("divmod", _) if args.iter().any(|arg| matches!(arg, Value::Tensor(_))) => {
                return Err(self.stop("divmod of a tensor, which torch refuses"));
            }
            ("divmod", [left, right]) if args.iter().any(|arg| matches!(arg, Value::Instance(_))) => {
                match self.reflected(left, right, "__divmod__", "__rdivmod__")? {
                    Some(result) => result,
                    None => return Err(self.stop("the quotient and remainder of objects")),
                }
            }
            ("float", [Value::Number(_)]) => args[0].clone(),
            ("abs", [value @ Value::Number(number)])
                if let Some(result) = self.negated("abs", &number.clone(), &value.clone())? =>
            {
                result
            }
            ("abs", [value]) if is_graph(value) => {
                let value = value.clone();
                if matches!(value, Value::Tensor(_)) {
                    self.call_method(&value, &"abs".into(), Vec::new(), Vec::new())?
                } else {
                    let zero = self.int(0);
                    let positive = self.compare("ge", &value, &zero)?;
                    if self.is_true(&positive)? { value } else { self.unary("neg", &value)? }
                }
            }
            ("abs" | "round", [Value::Instance(instance), ..]) => {
                let method = format!("__{name}__");
                if self.class_item(instance.class, &method).is_none() {
                    return Err(self.refused_by(name, instance.class, &[]));
                }
                let method = self.class_attribute_of(&args[0], instance.class, &method.into())?;
                self.call(&method, args[1..].to_vec(), Vec::new())?
            }
            ("int" | "float" | "bool", [value @ Value::Tensor(_)]) => self.item_of(&value.clone(), name)?,
            ("bool", [value @ Value::Condition(_)]) => value.clone(),
            ("int", [value @ Value::Symbol(_)]) => value.clone(),
            ("int" | "round", [value @ Value::Number(_)])
                if let Some(whole) = self.rounded_quotient(name, value)? =>
            {
                whole
            }
            ("round", [value @ Value::Symbol(_)]) => value.clone(),
            ("float", [value @ Value::Symbol(_)]) => {
                let (value, one) = (value.clone(), self.int(1));
                self.binary("truediv", &value, &one)?
            }
            ("bool", [value]) => {
                let is_true = self.is_true(value)?;
                self.bool(is_true)
            }
            ("bool", []) => self.bool(false),
            ("str" | "repr", [value]) => self.text_of(value, name == "repr")?,
            ("int" | "float", [Value::Instance(instance)])
                if let Some(text) = instance.value
                    && self.class_item(instance.class, &format!("__{name}__")).is_none() =>
            {
                let class = self.host.member("builtins", name).ok_or_else(|| self.stop("a missing class"))?;
                self.call(&Value::Known(class, None), vec![Value::Known(text, None)], Vec::new())?
            }
            ("int" | "float", [Value::Instance(instance)]) => {
                let names: &[&str] =
                    if name == "int" { &["__int__", "__index__", "__trunc__"] } else { &["__float__", "__index__"] };
                let Some(method) = names.iter().find(|method| self.class_item(instance.class, method).is_some()) else {
                    return Err(self.refused_by(name, instance.class, &[]));
                };
                let class = self.host.member("builtins", name).ok_or_else(|| self.stop("a missing class"))?;
                let bound = self.class_attribute_of(&args[0], instance.class, &(*method).into())?;
                match self.call(&bound, Vec::new(), Vec::new())? {
                    Value::Known(made, _) if self.host.class_of(made) == class => Value::Known(made, None),
                    made @ Value::Symbol(_) if name == "int" => made,
                    made @ Value::Number(_) if name == "float" => made,
                    made @ (Value::Known(..) | Value::Symbol(_)) if *method == "__index__" => {
                        self.call(&Value::Known(class, None), vec![made], Vec::new())?
                    }
                    _ => return Err(self.stop(format!("what {method} of an object gives"))),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// Methods that are taken from their classes.
    fn call_function_of_class(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("object.__new__", [Value::Known(class, _), ..]) => Value::Instance(self.new_instance(*class)),
            ("object.__setattr__", [object, attribute, value]) => {
                return self
                    .call_method(object, &"__setattr__".into(), vec![attribute.clone(), value.clone()], Vec::new())
                    .map(Some);
            }
            ("object.__init__", _) => self.none(),
            ("str.maketrans", parts) => {
                let parts = parts.iter().map(|part| self.real(part)).collect::<Run<Option<Vec<Object>>>>()?;
                let parts = parts.ok_or_else(|| self.stop("a table of characters that is not known"))?;
                let class = self.host.member("builtins", "str").ok_or_else(|| self.stop("str is missing"))?;
                let method = self.constant(class, "maketrans")?;
                let made = self.host.call(method, &parts, &[]).map_err(|r| self.raised(r))?;
                let pairs = self.constant_entries(made).into_iter();
                let pairs = pairs.map(|(key, value)| (Value::Known(key, None), Value::Known(value, None)));
                self.new_dict(pairs.collect())?
            }
            ("type.__call__", [Value::Known(class, _), rest @ ..]) if self.host.kind(*class) == Kind::Class => {
                self.construct_plainly(*class, rest.to_vec(), kwargs.clone())?
            }
            ("list.__new__" | "dict.__new__" | "set.__new__" | "deque.__new__", [Value::Known(class, _), ..])
                if let Some(kind) = self.host.container_kind(*class) =>
            {
                self.empty_container(*class, kind)?
            }
            ("int.__new__" | "float.__new__" | "str.__new__", [Value::Known(class, _), rest @ ..])
                if kwargs.is_empty()
                    && let Some(base) = self.value_base(*class) =>
            {
                self.new_value(*class, base, rest.to_vec())?
            }
            ("int.__new__" | "float.__new__" | "str.__new__" | "bytes.__new__" | "frozenset.__new__", _) => {
                return Ok(None);
            }
            ("tuple.__new__", [Value::Known(class, _), items]) => {
                let items = self.items_of(items)?;
                let plain = Some(*class) == self.host.member("builtins", "tuple");
                Value::Tuple(Rc::new(TupleValue { items, class: (!plain).then_some(*class), ..TupleValue::default() }))
            }
            ("__build_class__", _) => return Err(self.stop("a class definition")),
            ("__import__", _) => return Err(self.stop("an import by a call")),
            _ => {
                // A method taken from its class: `list.append(items, x)`, `str.upper(text)`.
                if let Some((_, method)) = name.split_once('.')
                    && let Some((receiver, rest)) = args.split_first()
                    && !method.contains('.')
                {
                    let receiver = receiver.clone();
                    return self.call_method(&receiver, &method.into(), rest.to_vec(), kwargs.clone()).map(Some);
                }
                return Ok(None);
            }
        }))
    }

    /// `super()` without arguments: the class is in the cell `__class__`, the object in the first slot.
    pub(super) fn zero_super(&mut self, frame: &super::Frame) -> Run<Value> {
        let first_free = frame.slots.len() - frame.code.free.len();
        let cell = frame.code.free.iter().position(|name| &**name == "__class__");
        let cell = cell.and_then(|index| frame.slots[first_free + index].clone());
        let receiver = frame.slots.first().cloned().flatten().filter(|_| frame.code.positional > 0);
        let (Some(cell), Some(receiver)) = (cell, receiver) else {
            return Err(self.raise("RuntimeError", "super(): no arguments"));
        };
        let receiver = match &receiver {
            Value::Cell(_) => self.cell_contents(&receiver)?.unwrap_or(Value::Null),
            other => self.force(other)?,
        };
        match self.cell_contents(&cell)? {
            Some(Value::Known(class, _)) => self.super_of(class, receiver),
            _ => Err(self.stop("super() outside of a class")),
        }
    }

    /// `super(class, receiver)`: the receiver is an instance of the class, or a class that is derived from it.
    fn super_of(&mut self, class: Object, receiver: Value) -> Run<Value> {
        let fits = match &receiver {
            Value::Null => return Err(self.raise("RuntimeError", "super(): arg[0] deleted")),
            Value::Known(object, _) if self.host.kind(*object) == Kind::Class && self.host.derives(*object, class) => {
                true
            }
            other => match self.class_of(other)? {
                Value::Known(of, _) => self.host.derives(of, class),
                _ => false,
            },
        };
        if !fits {
            let message = "super(type, obj): obj must be an instance or subtype of type";
            return Err(self.raise("TypeError", message));
        }
        Ok(Value::Super(Rc::new((class, receiver))))
    }

    /// `max` and `min`.
    pub(super) fn extreme(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Value> {
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
        let iterator =
            if let [items] = args { self.iterator(items)? } else { Value::iterator(Iterate::Items(args.to_vec(), 0)) };
        let key = option("key").filter(|key| !self.is_none(key));
        if let ([left, right], None) = (args, &key)
            && let Some(chosen) = self.extreme_size(name, left, right)
        {
            return Ok(chosen);
        }
        let mut best: Option<(Value, Value)> = None;
        while let Some(item) = self.next(&iterator)? {
            let by = match &key {
                Some(key) => self.call(key, vec![item.clone()], Vec::new())?,
                None => item.clone(),
            };
            let better = match &best {
                None => true,
                Some((so_far, _)) => {
                    let result = self.compare(if name == "max" { "gt" } else { "lt" }, &by, so_far)?;
                    self.is_true(&result)?
                }
            };
            if better {
                best = Some((by, item));
            }
        }
        match (best, option("default")) {
            (Some((_, item)), _) => Ok(item),
            (None, Some(default)) => Ok(default),
            // Versions of Python say this in different words.
            (None, None) => {
                let function = self.host.member("builtins", name).ok_or_else(|| self.stop(name))?;
                match self.host.call(function, &[self.host.tuple(&[])], &[]) {
                    Err(raised) => Err(self.raised(raised)),
                    Ok(_) => Err(self.stop(name)),
                }
            }
        }
    }
}
