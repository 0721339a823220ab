//! Methods that Python's own classes implement in C.

use std::cell::RefCell;
use std::rc::Rc;

use super::call::Keywords;
use super::compare::{is_graph, is_number};
use super::{Evaluator, Run, Stop};
use crate::host::{Descriptor, Kind, Object};
use crate::source::Source;
use crate::value::{DequeValue, DictValue, InstanceValue, Origin, TupleValue, Value, View};

impl Evaluator<'_, '_> {
    /// `receiver.name(*args, **kwargs)` for a method written in C.
    pub(super) fn call_method(
        &mut self,
        receiver: &Value,
        name: &Rc<str>,
        args: Vec<Value>,
        kwargs: Keywords,
    ) -> Run<Value> {
        self.count_arguments_of(receiver, name, &args, &kwargs)?;
        if let [other] = args.as_slice()
            && self.knows_nothing_of(receiver, name, other)?
        {
            return self.not_implemented();
        }
        match receiver {
            Value::Tensor(_) if &**name == "__iter__" && args.is_empty() && self.in_torch_numpy() => {
                self.plain_iterator(receiver)
            }
            Value::Tensor(_) => match self.method_overridden(receiver, name, &args, &kwargs)? {
                Some(result) => Ok(result),
                None => self.tensor_method(receiver, name, args, kwargs),
            },
            // What `object` does for them.
            Value::Tuple(_) | Value::List(_) | Value::Deque(_) | Value::Dict(_) | Value::Set(_)
                if kwargs.is_empty() && matches!((&**name, args.len()), ("__setattr__", 2) | ("__delattr__", 1)) =>
            {
                let attribute = self.attribute_name(&args[0])?;
                self.set_own_attribute(receiver, &attribute, args.get(1).cloned())?;
                Ok(self.none())
            }
            Value::List(_) => self.list_method(receiver, name, args, kwargs),
            Value::Deque(_) => self.deque_method(receiver, name, &args, &kwargs),
            Value::Dict(_) => self.dict_method(receiver, name, args, kwargs),
            Value::View(_) if matches!(&**name, "isdisjoint" | "__and__" | "__or__" | "__sub__" | "__xor__") => {
                if let Some(operator) = super::views::set_operator(name)
                    && let [other] = args.as_slice()
                    && let Some(result) = self.combine_sets(operator, receiver, other)?
                {
                    return Ok(result);
                }
                let mine = self.items_of(receiver)?;
                let mine = self.new_set(mine)?;
                let method = match &**name {
                    "__and__" => "intersection",
                    "__or__" => "union",
                    "__sub__" => "difference",
                    "__xor__" => "symmetric_difference",
                    other => other,
                };
                self.set_method(&mine, &method.into(), args)
            }
            Value::View(_) => self.sequence_method(receiver, name, &args),
            Value::Members(_) => self.members_method(receiver, name, args, kwargs),
            Value::Set(_) => self.set_method(receiver, name, args),
            Value::Tuple(_) => self.tuple_method(receiver, name, args, kwargs),
            Value::Iterator(_) => self.iterator_method(receiver, name, &args),
            Value::Instance(_) => match self.value_method(receiver, name, &args, &kwargs)? {
                Some(result) => Ok(result),
                None => self.object_method(receiver, name, args, kwargs),
            },
            Value::Context(_) => self.context_method(receiver, name, &args),
            Value::Symbol(_) => {
                let known = self.index_of(receiver)?;
                let known = self.int(known);
                self.call_method(&known, name, args, kwargs)
            }
            Value::Number(_) => {
                let known = self.specialized(receiver);
                self.call_method(&known, name, args, kwargs)
            }
            Value::Known(object, _) => self.known_method(*object, receiver, name, args, kwargs),
            Value::Function(_) if &**name == "__call__" => self.call(receiver, args, kwargs),
            Value::Function(_) if &**name == "__get__" => match args.as_slice() {
                [object, ..] if self.is_none(object) => Ok(receiver.clone()),
                [object, ..] => Ok(Value::Method(Rc::new((receiver.clone(), object.clone())))),
                [] => Err(self.stop("a function is bound to nothing")),
            },
            other => Err(self.stop(format!("the method {name} of {}", self.describe(other)))),
        }
    }

    /// Raises where a container, number or text has a method in C of this name that takes other arguments.
    fn count_arguments_of(&mut self, receiver: &Value, name: &str, args: &[Value], kwargs: &Keywords) -> Run<()> {
        let counts = match receiver {
            Value::Tuple(_) | Value::List(_) | Value::Deque(_) | Value::Dict(_) | Value::Set(_) | Value::View(_) => {
                true
            }
            Value::Instance(instance) => instance.value.is_some(),
            Value::Known(object, _) => {
                matches!(self.host.kind(*object), Kind::Int | Kind::Bool | Kind::Plain | Kind::FrozenSet)
            }
            _ => false,
        };
        if counts
            && let Value::Known(class, _) = self.class_of(receiver)?
            && let Some(method) = self.class_item(class, name)
            && self.host.descriptor(method) == Descriptor::BuiltinMethod
        {
            self.count_arguments(method, args, kwargs)?;
        }
        Ok(())
    }

    /// `NotImplemented`.
    fn not_implemented(&self) -> Run<Value> {
        let object = self.host.member("builtins", "NotImplemented").ok_or_else(|| self.stop("a missing constant"))?;
        Ok(Value::Known(object, None))
    }

    /// Whether an operator of a container, called by its name, leaves it to the other operand to answer.
    fn knows_nothing_of(&mut self, container: &Value, name: &str, other: &Value) -> Run<bool> {
        let compares = matches!(name, "__eq__" | "__ne__" | "__lt__" | "__le__" | "__gt__" | "__ge__");
        let stem = name.trim_matches('_');
        let combines = ["and", "or", "sub", "xor"]
            .iter()
            .any(|operator| stem == *operator || stem.strip_prefix(['r', 'i']).is_some_and(|stem| stem == *operator));
        let classes: &[(&str, &str)] = match container {
            Value::List(_) if compares => &[("builtins", "list")],
            Value::Tuple(_) if compares => &[("builtins", "tuple")],
            Value::Deque(_) if compares => &[("collections", "deque")],
            Value::Dict(dict) if dict.behind.is_none() && (compares || matches!(name, "__or__" | "__ror__")) => {
                &[("builtins", "dict")]
            }
            Value::Set(_) if compares || combines => &[("builtins", "set"), ("builtins", "frozenset")],
            Value::View(view) if compares && view.view == View::Values && container.identity() != other.identity() => {
                &[]
            }
            Value::View(view) if compares && view.view != View::Values => &[
                ("builtins", "set"),
                ("builtins", "frozenset"),
                ("_collections_abc", "dict_keys"),
                ("_collections_abc", "dict_items"),
            ],
            _ => return Ok(false),
        };
        let Value::Known(of, _) = self.class_of(other)? else { return Ok(false) };
        Ok(!classes
            .iter()
            .any(|(module, class)| self.host.member(module, class).is_some_and(|class| self.host.derives(of, class))))
    }

    /// A method of the `__dict__` of an object.
    fn members_method(&mut self, receiver: &Value, name: &Rc<str>, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let none = self.none();
        match (&**name, args.as_slice()) {
            ("get", [key, default @ ..]) if default.len() <= 1 => {
                let found = if self.contains(receiver, key)? { Some(self.get_item(receiver, key)?) } else { None };
                Ok(found.or_else(|| default.first().cloned()).unwrap_or(none))
            }
            ("pop", [key, default @ ..]) if default.len() <= 1 => {
                if !self.contains(receiver, key)? {
                    return default.first().cloned().ok_or_else(|| self.no_key(key));
                }
                let held = self.get_item(receiver, key)?;
                self.delete_item(receiver, key)?;
                Ok(held)
            }
            ("setdefault", [key, default @ ..]) if default.len() <= 1 => {
                if !self.contains(receiver, key)? {
                    let value = default.first().cloned().unwrap_or(none);
                    self.set_item(receiver, key, value)?;
                }
                self.get_item(receiver, key)
            }
            ("__getitem__", [key]) => self.get_item(receiver, key),
            ("__setitem__", [key, value]) => self.set_item(receiver, key, value.clone()).map(|()| none),
            ("__delitem__", [key]) => self.delete_item(receiver, key).map(|()| none),
            ("__contains__", [key]) => {
                let found = self.contains(receiver, key)?;
                Ok(self.bool(found))
            }
            ("copy", []) => {
                let pairs = self.dict_pairs(receiver)?;
                self.new_dict(pairs)
            }
            ("keys", []) => Ok(self.view(receiver, View::Keys)),
            ("values", []) => Ok(self.view(receiver, View::Values)),
            ("items", []) => Ok(self.view(receiver, View::Items)),
            ("__iter__", []) => self.iterator(receiver),
            ("__len__", []) => self.length(receiver),
            ("update", _) => {
                let given = self.new_dict(Vec::new())?;
                self.call_method(&given, name, args, kwargs)?;
                for (key, value) in self.dict_pairs(&given)? {
                    self.set_item(receiver, &key, value)?;
                }
                Ok(self.none())
            }
            _ => Err(self.stop(format!("the method {name} of the __dict__ of an object"))),
        }
    }

    /// What an object holds at this point, as a dictionary.
    pub(super) fn members_of(&mut self, instance: &Rc<InstanceValue>) -> Run<Value> {
        if instance.origin.is_some() {
            return self.attributes_of(instance);
        }
        let held: Vec<(Rc<str>, Value)> = {
            let attributes = instance.attributes.borrow();
            let held = attributes.0.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
            held.collect()
        };
        let held = held.into_iter().filter(|(name, _)| !self.is_slot(instance.class, name));
        let pairs = held.map(|(name, value)| (self.text(&name), value)).collect();
        self.new_dict(pairs)
    }

    /// `text.format(*args, **kwargs)` where an argument is not plain; nothing where all are.
    fn format_by_fields(&mut self, text: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let mut are_plain = true;
        for value in args.iter().chain(kwargs.iter().map(|(_, value)| value)) {
            are_plain &= self.real(value)?.is_some();
        }
        let Some(parse) = self.host.polyfill("format_fields").filter(|_| !are_plain) else { return Ok(None) };
        let fields = self.host.call(parse, &[self.host.str(text)], &[]).map_err(|r| self.raised(r))?;
        let fields = self.wrap(fields, &Rc::new(Source::Fixed(fields)))?;
        let named = kwargs.iter().map(|(name, value)| (self.text(name), value.clone())).collect();
        let named = self.new_dict(named)?;
        self.call_polyfill("format_by_fields", vec![fields, Value::tuple(args.to_vec()), named], Vec::new())
    }

    /// `class.__subclasses__()`: a new list of the classes that are derived from it now.
    fn subclasses_of(&mut self, class: Object) -> Run<Value> {
        let function = self.constant(self.host.class_of(class), "__subclasses__")?;
        let seen = self.read_called(&Origin { object: class, source: Rc::new(Source::Fixed(class)) }, function)?;
        let classes = self.admit(&seen)?;
        let classes = self.items_of(&classes)?;
        Ok(Value::list(classes))
    }

    fn known_method(
        &mut self,
        object: Object,
        receiver: &Value,
        name: &Rc<str>,
        args: Vec<Value>,
        kwargs: Keywords,
    ) -> Run<Value> {
        if self.is_random_source(object) {
            return self.generator_method(object, name, &args, &kwargs);
        }
        let plain_kind =
            matches!(self.host.kind(object), Kind::Int | Kind::Bool | Kind::Plain | Kind::FrozenSet | Kind::None);
        if self.host.kind(object) == Kind::Class
            && let Some(class) = self.host.qualified_name(object)
            && let Some(result) = self.call_polyfill(&format!("{class}.{name}"), args.clone(), kwargs.clone())?
        {
            return Ok(result);
        }
        // As `type` itself answers.
        if let ("__instancecheck__", [value]) = (&**name, args.as_slice())
            && self.host.kind(object) == Kind::Class
            && let Value::Known(of, _) = self.class_of(value)?
        {
            return Ok(self.bool(self.host.derives(of, object)));
        }
        if ("__subclasses__", 0, 0) == (&**name, args.len(), kwargs.len()) && self.host.kind(object) == Kind::Class {
            return self.subclasses_of(object);
        }
        if &**name == "apply"
            && self.host.kind(object) == Kind::Class
            && let Some(function) = self.host.member("torch.autograd", "Function")
            && self.host.derives(object, function)
        {
            let args = std::iter::once(receiver.clone()).chain(args).collect();
            let result = self.call_polyfill("torch.autograd.Function.apply", args, kwargs)?;
            return result.ok_or_else(|| self.stop("a call of an autograd.Function"));
        }
        let reads = matches!(
            (&*self.host.class_name(object), &**name),
            ("builtins.int", "from_bytes") | ("builtins.float" | "builtins.bytes" | "builtins.bytearray", "fromhex")
        );
        if reads && let Some((plain, named)) = self.plain_arguments(&args, &kwargs)? {
            let method = self.constant(object, name)?;
            let result = self.host.call(method, &plain, &named).map_err(|r| self.raised(r))?;
            return Ok(self.opened(result));
        }
        if Some(object) == self.host.member("builtins", "dict")
            && &**name == "fromkeys"
            && let [keys, value @ ..] = args.as_slice()
        {
            let value = value.first().cloned().unwrap_or_else(|| self.none());
            let keys = self.items_of(keys)?;
            return self.new_dict(keys.into_iter().map(|key| (key, value.clone())).collect());
        }
        if plain_kind
            && self.host.as_str(object).is_some()
            && &**name == "join"
            && args.len() == 1
            && self.can_be_iterated(&args[0])?
        {
            let items = self.items_of(&args[0])?;
            let plain: Option<Vec<Object>> = items.iter().map(|item| self.plain(item)).collect();
            if let Some(plain) = plain {
                let method = self.constant(object, name)?;
                let tuple = self.host.tuple(&plain);
                return self
                    .host
                    .call(method, &[tuple], &[])
                    .map(|o| Value::Known(o, None))
                    .map_err(|r| self.raised(r));
            }
        }
        if let Some(operator) = operator_of(name)
            && let [other @ (Value::Symbol(_) | Value::Number(_))] = args.as_slice()
        {
            let whole = matches!(self.host.kind(object), Kind::Int | Kind::Bool);
            return if whole && is_number(other) {
                self.not_implemented()
            } else {
                self.binary(operator, receiver, other)
            };
        }
        // A number's own operators know numbers only.
        if let Kind::Int | Kind::Bool = self.host.kind(object)
            && operator_of(name).is_some()
            && let [other] = args.as_slice()
            && !matches!(other, Value::Known(..))
            && self.value_of(other).is_none()
        {
            return self.not_implemented();
        }
        // What a frozen set of plain values is asked with others is asked of the set that it is.
        if self.host.kind(object) == Kind::FrozenSet {
            if super::views::set_operator(name).is_some()
                || matches!(&**name, "union" | "intersection" | "difference" | "symmetric_difference")
            {
                let set = self.laid_out_set(receiver)?;
                return self.call_method(&set, name, args, kwargs);
            }
            if args.iter().any(|arg| self.plain(arg).is_none()) {
                let set = self.set_of(receiver)?;
                return self.call_method(&set, name, args, kwargs);
            }
        }
        if plain_kind {
            if "format" == &**name
                && let Some(text) = self.host.as_str(object)
                && let Some(formatted) = self.format_by_fields(&text, &args, &kwargs)?
            {
                return Ok(formatted);
            }
            let mut plain = Vec::with_capacity(args.len());
            for arg in &args {
                match self.real(arg)? {
                    Some(object) => plain.push(object),
                    None => return Err(self.stop(format!("the method {name} with {}", self.describe(arg)))),
                }
            }
            let mut named = Vec::with_capacity(kwargs.len());
            for (key, value) in &kwargs {
                let value = self.real(value)?.ok_or_else(|| self.stop("an argument that is not known"))?;
                named.push((self.host.str(key), value));
            }
            // What the class has names itself in messages as it does where a program calls it.
            let method = self.class_item(self.host.class_of(object), name);
            let method = match method.filter(|method| {
                let class = self.host.class_name(self.host.class_of(*method));
                matches!(&*class, "builtins.method_descriptor" | "builtins.wrapper_descriptor")
            }) {
                Some(method) => {
                    plain.insert(0, object);
                    method
                }
                None => self.constant(object, name)?,
            };
            let result = self.host.call(method, &plain, &named).map_err(|r| self.raised(r))?;
            return Ok(self.opened(result));
        }
        let class = self.host.class_name(self.host.class_of(object));
        if matches!(&*class, "re.Pattern" | "re.Match") && &**name != "finditer" {
            if let Value::Known(_, Some(source)) = receiver {
                self.guard(source, crate::source::Check::Is(object));
            }
            let plain = args.iter().map(|arg| self.real(arg)).collect::<Run<Option<Vec<Object>>>>()?;
            let plain = plain.ok_or_else(|| self.stop(format!("the method {name} of a regular expression")))?;
            let Some((_, named)) = self.plain_arguments(&[], &kwargs)? else {
                return Err(self.stop(format!("the method {name} of a regular expression")));
            };
            let method = self.constant(object, name)?;
            let result = self.host.call(method, &plain, &named).map_err(|r| self.raised(r))?;
            return Ok(self.opened(result));
        }
        if self.host.class_name(self.host.class_of(object)) == "_contextvars.ContextVar" {
            return self.context_variable_method(object, name, &args);
        }
        let text = self.host.describe(object);
        Err(self.stop(format!("the method {name} of {text}")))
    }

    /// `get`, `set` and `reset` of a context variable.
    fn context_variable_method(&mut self, variable: Object, name: &str, args: &[Value]) -> Run<Value> {
        let before = match self.context_variables.iter().find(|(known, _)| *known == variable) {
            Some((_, value)) => Some(value.clone()),
            None => match self.read_context_variable(variable) {
                Some(held) => Some(self.admit(&held)?),
                None => None,
            },
        };
        match (name, args, before) {
            ("get", _, Some(value)) => Ok(value),
            ("get", [default], None) => Ok(default.clone()),
            ("set", [value], before) => {
                let class = self.host.member("contextvars", "Token").ok_or_else(|| self.stop("a missing class"))?;
                let token = self.new_instance(class);
                token.attributes.borrow_mut().set(&"old".into(), before);
                self.set_context_variable(variable, value.clone());
                Ok(Value::Instance(token))
            }
            ("reset", [Value::Instance(token)], _) => {
                let old = token.attributes.borrow().get("old").cloned().flatten();
                match old {
                    Some(old) => self.set_context_variable(variable, old),
                    None => self.context_variables.retain(|(known, _)| *known != variable),
                }
                Ok(self.none())
            }
            _ => Err(self.stop(format!("the method {name} of a context variable"))),
        }
    }

    fn set_context_variable(&mut self, variable: Object, value: Value) {
        match self.context_variables.iter_mut().find(|(known, _)| *known == variable) {
            Some(entry) => entry.1 = value,
            None => self.context_variables.push((variable, value)),
        }
    }

    /// An object that a pure function made: it is nobody else's, so it may be opened.
    pub(super) fn opened(&mut self, object: Object) -> Value {
        match self.host.kind(object) {
            Kind::List => Value::list(self.constant_items(object).into_iter().map(|item| self.opened(item)).collect()),
            Kind::Tuple => {
                Value::tuple(self.constant_items(object).into_iter().map(|item| self.opened(item)).collect())
            }
            Kind::NamedTuple => {
                let items = self.constant_items(object).into_iter().map(|item| self.opened(item)).collect();
                let class = Some(self.host.class_of(object));
                Value::Tuple(Rc::new(TupleValue { items, class, ..TupleValue::default() }))
            }
            _ => Value::Known(object, None),
        }
    }

    fn list_method(&mut self, list: &Value, name: &Rc<str>, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let none = self.none();
        match (&**name, args.as_slice()) {
            ("append", [value]) => self.list_append(list, value.clone()).map(|()| none),
            ("extend", [more]) => self.list_extend(list, more).map(|()| none),
            ("insert", [at, value]) => {
                let at = self.index_of(at)?;
                self.change_list(list, |items| {
                    let length = items.len() as i64;
                    let place = if at < 0 { (at + length).max(0) } else { at.min(length) };
                    items.insert(place as usize, value.clone());
                })?;
                Ok(none)
            }
            ("pop", rest) if rest.len() <= 1 => {
                let length = self.count(list)?;
                if length == 0 {
                    return Err(self.raise("IndexError", "pop from empty list"));
                }
                let at = rest.first().map_or(Ok(-1), |at| self.index_of(at))?;
                let place = if at < 0 { at + length as i64 } else { at };
                if place < 0 || place >= length as i64 {
                    return Err(self.raise("IndexError", "pop index out of range"));
                }
                let item = self.change_list(list, |items| items.remove(place as usize))?;
                self.force(&item)
            }
            ("clear", []) => self.change_list(list, Vec::clear).map(|()| none),
            ("reverse", []) => self.change_list(list, |items| items.reverse()).map(|()| none),
            ("copy", []) => {
                let items = self.plain_items(list)?;
                Ok(Value::list(items))
            }
            ("remove", [value]) => {
                for (place, item) in self.items_of(list)?.iter().enumerate() {
                    if self.is_same_or_equal(item, value)? {
                        self.change_list(list, |items| items.remove(place))?;
                        return Ok(none);
                    }
                }
                Err(self.not_found(list, name, value)?)
            }
            ("sort", []) => {
                let items = self.items_of(list)?;
                let sorted = self.sorted(items, &kwargs)?;
                self.change_list(list, |items| *items = sorted)?;
                Ok(none)
            }
            _ => self.sequence_method(list, name, &args),
        }
    }

    fn tuple_method(&mut self, tuple: &Value, name: &Rc<str>, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let class = match tuple {
            Value::Tuple(tuple) => tuple.class,
            _ => None,
        };
        if let Some(class) = class
            && self.host.class_name(class) == "torch.Size"
            && &**name == "numel"
        {
            let mut product = self.int(1);
            for item in self.items_of(tuple)? {
                product = self.binary("mul", &product, &item)?;
            }
            return Ok(product);
        }
        if !kwargs.is_empty() {
            return Err(self.stop(format!("the method {name} of a tuple with keywords")));
        }
        self.sequence_method(tuple, name, &args)
    }

    /// What `index` and `remove` of a sequence raise that does not hold a value.
    pub(super) fn not_found(&mut self, sequence: &Value, method: &str, wanted: &Value) -> Run<Stop> {
        let (module, class) = match sequence {
            Value::List(_) => ("builtins", "list"),
            Value::Deque(_) => ("collections", "deque"),
            _ => ("builtins", "tuple"),
        };
        let Some(wanted) = self.real(wanted)? else {
            return Ok(self.stop(format!("the text of a value that a {class} does not hold")));
        };
        let class = self.host.member(module, class).ok_or_else(|| self.stop("a missing class"))?;
        let method = self.class_item(class, method).ok_or_else(|| self.stop("a missing method"))?;
        let empty = self.host.call(class, &[], &[]).map_err(|raised| self.raised(raised))?;
        match self.host.call(method, &[empty, wanted], &[]) {
            Err(raised) => Ok(self.raised(raised)),
            Ok(_) => Ok(self.stop("a value in an empty sequence")),
        }
    }

    /// Whether the class of a value lets it be iterated over.
    fn can_be_iterated(&mut self, value: &Value) -> Run<bool> {
        Ok(match value {
            Value::Iterator(_) => true,
            other => {
                let Value::Known(class, _) = self.class_of(other)? else { return Ok(false) };
                ["__iter__", "__getitem__"].iter().any(|name| self.class_item(class, name).is_some())
            }
        })
    }

    pub(super) fn sequence_method(&mut self, value: &Value, name: &Rc<str>, args: &[Value]) -> Run<Value> {
        match (&**name, args) {
            ("index", [wanted, bounds @ ..]) => {
                let items = self.items_of(value)?;
                let length = items.len() as i64;
                let mut bound = |bound: Option<&Value>, usual: i64| {
                    let bound = bound.map_or(Ok(usual), |bound| self.index_of(bound))?;
                    Ok((if bound < 0 { bound + length } else { bound }).clamp(0, length) as usize)
                };
                let (start, stop) = (bound(bounds.first(), 0)?, bound(bounds.get(1), length)?);
                for (place, item) in items.iter().enumerate().take(stop).skip(start) {
                    if self.is_same_or_equal(item, wanted)? {
                        return Ok(self.int(place as i64));
                    }
                }
                Err(self.not_found(value, name, wanted)?)
            }
            ("count", [wanted]) => {
                let mut count = 0;
                for item in self.items_of(value)? {
                    count += i64::from(self.is_same_or_equal(&item, wanted)?);
                }
                Ok(self.int(count))
            }
            ("__init__", more) if more.len() <= 1 && matches!(value, Value::List(_)) => {
                self.change_list(value, Vec::clear)?;
                if let Some(more) = more.first() {
                    self.list_extend(value, more)?;
                }
                Ok(self.none())
            }
            ("__init__", _) if matches!(value, Value::Tuple(_)) => Ok(self.none()),
            ("__len__", []) => {
                let count = self.count(value)?;
                Ok(self.int(count as i64))
            }
            ("__iter__", []) => self.plain_iterator(value),
            ("__getitem__", [key]) => self.plain_item(value, key),
            ("__setitem__", [key, new]) => {
                self.set_plain_item(value, key, new.clone())?;
                Ok(self.none())
            }
            ("__contains__", [item]) => {
                let found = self.plainly_contains(value, item)?;
                Ok(self.bool(found))
            }
            ("__add__", [other]) => {
                let (value, other) = (self.bare(value)?, self.bare(other)?);
                self.binary("add", &value, &other)
            }
            ("__mul__" | "__rmul__", [other]) => {
                let value = self.bare(value)?;
                self.binary("mul", &value, other)
            }
            ("__iadd__", [other]) if matches!(value, Value::List(_)) => {
                self.list_extend(value, other)?;
                Ok(value.clone())
            }
            ("__iadd__", [other]) => self.binary_in_place("add", value, other),
            ("__delitem__", [key]) => {
                self.delete_plain_item(value, key)?;
                Ok(self.none())
            }
            ("__repr__" | "__str__", []) => self.text_of(value, true),
            ("__eq__" | "__ne__", [other]) => {
                let (value, other) = (self.bare(value)?, self.bare(other)?);
                let equal = self.equal(&value, &other)?;
                Ok(self.bool(equal == (&**name == "__eq__")))
            }
            ("__lt__" | "__le__" | "__gt__" | "__ge__", [other]) => {
                let (value, other) = (self.bare(value)?, self.bare(other)?);
                self.compare(name.trim_matches('_'), &value, &other)
            }
            _ => Err(self.stop(format!("the method {name} of {}", self.describe(value)))),
        }
    }

    fn dict_method(&mut self, dict: &Value, name: &Rc<str>, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let none = self.none();
        if matches!(dict, Value::Dict(held) if held.behind.is_some())
            && matches!(&**name, "__init__" | "__or__" | "__ior__")
        {
            return Err(self.stop(format!("the method {name} of a mappingproxy")));
        }
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
        match (&**name, args.as_slice()) {
            ("get", [key, default @ ..]) if default.len() <= 1 => match self.dict_get(dict, key)? {
                Some(value) => Ok(value),
                None => Ok(default.first().cloned().unwrap_or(none)),
            },
            ("keys", []) => Ok(self.view(dict, View::Keys)),
            ("values", []) => Ok(self.view(dict, View::Values)),
            ("items", []) => Ok(self.view(dict, View::Items)),
            ("setdefault", [key, default @ ..]) if default.len() <= 1 => match self.dict_get(dict, key)? {
                Some(value) => Ok(value),
                None => {
                    let value = default.first().cloned().unwrap_or(none);
                    self.set_plain_item(dict, key, value.clone())?;
                    Ok(value)
                }
            },
            ("pop", [key, default @ ..]) if default.len() <= 1 => {
                let hashed = self.key_of_dict(dict, key)?;
                match self.change_entries(dict, |entries| entries.remove(hashed))? {
                    Some((_, value)) => self.force(&value),
                    None => match default.first() {
                        Some(value) => Ok(value.clone()),
                        None => {
                            let class = self.host.member("builtins", "KeyError");
                            let class = class.ok_or_else(|| self.stop("KeyError is missing"))?;
                            Err(Stop::Raise(self.exception(class, vec![key.clone()])))
                        }
                    },
                }
            }
            ("popitem", rest) if rest.len() <= 1 => {
                let at_end = rest.first().cloned().or_else(|| option("last"));
                let at_end = at_end.map_or(Ok(true), |at_end| self.is_true(&at_end))?;
                self.count(dict)?;
                let chosen = match dict {
                    Value::Dict(held) if at_end => held.entries.borrow().iter().next_back().map(|(key, _, _)| *key),
                    Value::Dict(held) => held.entries.borrow().iter().next().map(|(key, _, _)| *key),
                    _ => None,
                };
                let Some(chosen) = chosen else {
                    let ordered = self.class_of(dict)?;
                    let ordered = matches!(&ordered, Value::Known(class, _) if self.is_ordered(*class));
                    let message = if ordered { "dictionary is empty" } else { "popitem(): dictionary is empty" };
                    return Err(self.raise("KeyError", message));
                };
                let removed = self.change_entries(dict, |entries| entries.remove(chosen))?;
                let (key, value) = removed.ok_or_else(|| self.stop("an entry that is gone"))?;
                let value = self.force(&value)?;
                Ok(Value::tuple(vec![key, value]))
            }
            ("update", rest) if rest.len() <= 1 => {
                if let Some(more) = rest.first() {
                    self.dict_update(dict, more)?;
                }
                for (key, value) in kwargs {
                    let key = self.text(&key);
                    self.update_item(dict, &key, value)?;
                }
                Ok(none)
            }
            ("__init__", given) if matches!(dict, Value::Dict(held) if held.class.is_some_and(|class| self.is_defaultdict(class))) =>
            {
                let (factory, rest) = given.split_first().unwrap_or((&none, given));
                let Value::Known(of, _) = self.class_of(factory)? else { return Err(self.stop("a class")) };
                if !self.is_none(factory) && self.class_item(of, "__call__").is_none() {
                    return Err(self.raise("TypeError", "first argument must be callable or None"));
                }
                if let Value::Dict(held) = dict {
                    *held.default.borrow_mut() = Some(factory.clone());
                }
                self.dict_method(dict, &"update".into(), rest.to_vec(), kwargs)
            }
            ("__init__", rest) if rest.len() <= 1 => self.dict_method(dict, &"update".into(), args, kwargs),
            ("clear", []) => self.change_entries(dict, super::super::value::Entries::clear).map(|()| none),
            ("copy", []) => {
                let pairs = self.dict_pairs(dict)?;
                self.new_dict_like(dict, pairs)
            }
            ("move_to_end", [key, rest @ ..]) if rest.len() <= 1 => {
                let last = rest.first().cloned().or_else(|| option("last"));
                let last = last.map_or(Ok(true), |last| self.is_true(&last))?;
                let hashed = self.key_of_dict(dict, key)?;
                if !self.change_entries(dict, |entries| entries.move_to_end(hashed, last))? {
                    let class = self.host.member("builtins", "KeyError");
                    let class = class.ok_or_else(|| self.stop("KeyError is missing"))?;
                    return Err(Stop::Raise(self.exception(class, vec![key.clone()])));
                }
                Ok(none)
            }
            ("__getitem__", [key]) => self.plain_item(dict, key),
            ("__setitem__", [key, value]) => {
                self.set_plain_item(dict, key, value.clone())?;
                Ok(none)
            }
            ("__contains__", [key]) => {
                let found = self.plainly_contains(dict, key)?;
                Ok(self.bool(found))
            }
            ("__len__", []) => {
                let count = self.count(dict)?;
                Ok(self.int(count as i64))
            }
            ("__iter__", []) => self.plain_iterator(dict),
            ("__delitem__", [key]) => {
                self.delete_plain_item(dict, key)?;
                Ok(none)
            }
            ("__eq__" | "__ne__", [other]) => {
                let (dict, other) = (self.bare(dict)?, self.bare(other)?);
                let equal = self.equal(&dict, &other)?;
                Ok(self.bool(equal == (&**name == "__eq__")))
            }
            ("__or__", [other]) => {
                let (dict, other) = (self.bare(dict)?, self.bare(other)?);
                self.binary("or_", &dict, &other)
            }
            ("__ior__", [other]) => self.binary_in_place("or_", dict, other),
            ("__repr__" | "__str__", []) => self.text_of(dict, true),
            _ => Err(self.stop(format!("the method {name} of a dict"))),
        }
    }

    /// A container of a class of the user's as one of Python's own that holds the same: operators of the class are not asked.
    pub(super) fn bare(&mut self, value: &Value) -> Run<Value> {
        let own = |class: Option<Object>, plain: Kind| {
            class.is_some_and(|class| {
                self.host.container_kind(class) == Some(plain) && !self.is_ordered(class) && !self.is_defaultdict(class)
            })
        };
        Ok(match value {
            Value::List(list) if own(list.class, Kind::List) => Value::list(list.items.borrow().clone()),
            Value::Tuple(tuple) if tuple.class.is_some() && self.size_class(value).is_none() => {
                Value::tuple(tuple.items.clone())
            }
            Value::Deque(deque) if own(deque.class, Kind::Deque) => Value::Deque(Rc::new(DequeValue {
                items: RefCell::new(deque.items.borrow().clone()),
                ..DequeValue::default()
            })),
            Value::Set(set) if own(set.class, Kind::Set) => self.bare_set(set)?,
            Value::Dict(dict) if own(dict.class, Kind::Dict) => {
                if dict.origin.is_some() && !dict.whole.get() {
                    return Ok(value.clone());
                }
                let entries = dict.entries.borrow().copied();
                Value::Dict(Rc::new(DictValue { entries: RefCell::new(entries), ..DictValue::default() }))
            }
            other => other.clone(),
        })
    }

    /// Whether a class is `collections.OrderedDict`, or derived from it.
    pub(super) fn is_ordered(&self, class: Object) -> bool {
        let ordered = self.host.member("collections", "OrderedDict");
        ordered.is_some_and(|ordered| self.host.derives(class, ordered))
    }

    fn key_of_dict(&mut self, dict: &Value, key: &Value) -> Run<crate::value::Key> {
        match dict {
            Value::Dict(held) => self.key_in(&held.entries, key),
            _ => self.key(key),
        }
    }

    pub(super) fn new_dict_like(&mut self, dict: &Value, pairs: Vec<(Value, Value)>) -> Run<Value> {
        let Value::Dict(held) = dict else { return self.new_dict(pairs) };
        if let Some(class) = held.class
            && self.host.container_kind(class).is_some()
        {
            if self.is_ordered(class) || self.is_defaultdict(class) {
                return Err(self.stop("copying a dict subclass"));
            }
            return self.new_dict(pairs);
        }
        let made = self.new_dict(pairs)?;
        let Value::Dict(made) = made else { return Ok(made) };
        let Ok(made) = Rc::try_unwrap(made) else { return Err(self.stop("a dict that is shared")) };
        Ok(Value::Dict(Rc::new(crate::value::DictValue { class: held.class, default: held.default.clone(), ..made })))
    }

    fn iterator_method(&mut self, iterator: &Value, name: &Rc<str>, args: &[Value]) -> Run<Value> {
        match (&**name, args) {
            ("__next__", []) => match self.next_or_result(iterator)? {
                Ok(value) => Ok(value),
                Err(result) => Err(self.stop_iteration(result)),
            },
            ("__iter__", []) => Ok(iterator.clone()),
            ("throw", [exception]) => {
                let Value::Known(class, _) = self.class_of(exception)? else { return Err(self.stop("a class")) };
                let class = self.short_name(class);
                let refusal =
                    format!("exceptions must be classes or instances deriving from BaseException, not {class}");
                let exception = self.raised_value(exception, &refusal)?;
                match self.throw(iterator, exception)? {
                    Ok(value) => Ok(value),
                    Err(result) => Err(self.stop_iteration(result)),
                }
            }
            ("send", [value]) => match self.send_or_result(iterator, value.clone())? {
                Ok(value) => Ok(value),
                Err(result) => Err(self.stop_iteration(result)),
            },
            ("close", []) => {
                self.close(iterator)?;
                Ok(self.none())
            }
            _ => Err(self.stop(format!("the method {name} of an iterator"))),
        }
    }

    /// Methods that every object has.
    fn object_method(&mut self, object: &Value, name: &Rc<str>, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let Value::Instance(instance) = object else { return Err(self.stop("a method of nothing")) };
        let instance = instance.clone();
        if super::random::draws_in_c(name)
            && kwargs.is_empty()
            && let Some(drawn) = self.draw_from(&instance, name, &args)?
        {
            return Ok(drawn);
        }
        match (&**name, args.as_slice()) {
            ("__init__", _) if instance.exception => {
                self.set_exception_args(&instance, object, args);
                Ok(self.none())
            }
            ("__init__", _) if self.initialises(&instance) => {
                Err(self.stop(format!("the initialisation of {} by C code", self.describe(object))))
            }
            ("__init__" | "__init_subclass__", _) => Ok(self.none()),
            ("__setattr__", [attribute, value]) => {
                let attribute = self.attribute_name(attribute)?;
                self.set_plainly(&instance, object, &attribute, Some(value.clone()))?;
                Ok(self.none())
            }
            ("__delattr__", [attribute]) => {
                let attribute = self.attribute_name(attribute)?;
                self.remove_plainly(&instance, object, &attribute)?;
                Ok(self.none())
            }
            ("__getattribute__", [attribute]) => {
                let attribute = self.attribute_name(attribute)?;
                if &*attribute == "__dict__" {
                    return self.dict_of(&instance);
                }
                self.plain_attribute(object, &instance, &attribute)
            }
            ("__eq__", [other]) => {
                if object.identity() == other.identity() {
                    return Ok(self.bool(true));
                }
                self.not_implemented()
            }
            ("with_traceback", [traceback]) if instance.exception && instance.origin.is_none() => {
                let name: Rc<str> = "__traceback__".into();
                if self.is_none(traceback) {
                    instance.attributes.borrow_mut().set(&name, Some(traceback.clone()));
                } else if matches!(traceback, Value::Unknown(_)) {
                    // Where an exception was raised is known to Python itself.
                    instance.attributes.borrow_mut().forget(&name);
                } else {
                    return Err(self.stop("a traceback from outside"));
                }
                Ok(object.clone())
            }
            ("add_note", [text]) if instance.exception && instance.origin.is_none() => {
                let held = instance.attributes.borrow().get("__notes__").cloned().flatten();
                let notes = held.unwrap_or_else(|| Value::list(Vec::new()));
                self.list_append(&notes, text.clone())?;
                self.keep_attribute(&instance, object, &"__notes__".into(), Some(notes));
                Ok(self.none())
            }
            ("__str__", []) => self.text_of(object, false),
            ("__reduce_ex__", [_]) if self.is_copied_plainly(&instance) => self.reduced(&instance),
            _ => Err(self.stop(format!("the method {name} of {}", self.describe(object)))),
        }
    }

    /// Whether C code initialises objects of a class in a way of its own.
    fn initialises(&self, instance: &InstanceValue) -> bool {
        let usual = self.host.member("builtins", "object").and_then(|object| self.class_item(object, "__init__"));
        let bases =
            self.constant(instance.class, "__mro__").map(|bases| self.constant_items(bases)).unwrap_or_default();
        let in_c = bases.into_iter().filter_map(|base| self.class_item(base, "__init__"));
        let mut in_c = in_c.filter(|init| self.host.descriptor(*init) == crate::host::Descriptor::BuiltinMethod);
        in_c.next().is_some_and(|init| Some(init) != usual)
    }

    /// Whether copies of an object are made from its class and its `__dict__` alone.
    fn is_copied_plainly(&self, instance: &InstanceValue) -> bool {
        let Some(object) = self.host.member("builtins", "object") else { return false };
        let usual = ["__reduce_ex__", "__reduce__", "__getstate__"];
        let own = ["__slots__", "__getnewargs__", "__getnewargs_ex__"];
        !instance.exception
            && !instance.torch_module
            && usual.iter().all(|name| self.class_item(instance.class, name) == self.class_item(object, name))
            && own.iter().all(|name| self.class_item(instance.class, name).is_none())
    }

    /// What `object.__reduce_ex__` says that an object is made again from.
    fn reduced(&mut self, instance: &Rc<InstanceValue>) -> Run<Value> {
        let maker = self.host.member("copyreg", "__newobj__").ok_or_else(|| self.stop("copyreg is missing"))?;
        let maker = self.wrap(maker, &Rc::new(Source::Fixed(maker)))?;
        let held = self.dict_of(instance)?;
        let pairs = self.dict_pairs(&held)?;
        let none = self.none();
        let state = if pairs.is_empty() { none.clone() } else { self.new_dict(pairs)? };
        let class = Value::tuple(vec![Value::Known(instance.class, None)]);
        Ok(Value::tuple(vec![maker, class, state, none.clone(), none]))
    }

    /// A text that names an attribute.
    pub(super) fn attribute_name(&mut self, value: &Value) -> Run<Rc<str>> {
        match value {
            Value::Known(object, source) => {
                if let Some(name) = self.host.as_str(*object) {
                    return Ok(name);
                }
                // A text of a class of the user's is the text that it is.
                let class = self.host.class_of(*object);
                if let Some(text) = self.host.member("builtins", "str")
                    && self.host.derives(class, text)
                    && let Some(reader) = self.host.member("pyrite._polyfills", "base_value")
                {
                    if let Some(source) = source {
                        self.guard(&source.clone(), crate::source::Check::Is(*object));
                    }
                    let text = self.host.call(reader, &[*object], &[]).map_err(|r| self.raised(r))?;
                    return self.host.as_str(text).ok_or_else(|| self.stop("a text without characters"));
                }
                Err(self.raise("TypeError", "attribute name must be string"))
            }
            other => match self.value_of(other) {
                Some(Value::Known(text, _)) if let Some(name) = self.host.as_str(text) => Ok(name),
                _ => Err(self.stop(format!("{} as the name of an attribute", self.describe(other)))),
            },
        }
    }

    /// The items in order, by a key if there is one.
    pub(super) fn sorted(&mut self, items: Vec<Value>, kwargs: &Keywords) -> Run<Vec<Value>> {
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
        let reverse = match option("reverse") {
            Some(value) => self.is_true(&value)?,
            None => false,
        };
        let key = option("key").filter(|key| !self.is_none(key));
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            let by = match &key {
                Some(key) => self.call(key, vec![item.clone()], Vec::new())?,
                None => item.clone(),
            };
            let by = self.with_known_sizes(&by)?;
            if is_graph(&by) {
                return Err(self.stop("an order that depends on tensors"));
            }
            keyed.push((by, item));
        }
        if reverse {
            keyed.reverse();
        }
        // An insertion sort is stable and compares as Python does; long lists are compared by Python itself.
        let plain: Option<Vec<Object>> = keyed.iter().map(|(by, _)| self.plain(by)).collect();
        if let Some(plain) = plain {
            let order = self.host.polyfill("order").ok_or_else(|| self.stop("the order of a list"))?;
            let tuple = self.host.tuple(&plain);
            let order = self.host.call(order, &[tuple], &[]).map_err(|r| self.raised(r))?;
            let places: Vec<usize> =
                self.constant_items(order).iter().filter_map(|o| self.host.as_int(*o)).map(|i| i as usize).collect();
            let mut sorted: Vec<Value> = places.iter().map(|place| keyed[*place].1.clone()).collect();
            if reverse {
                sorted.reverse();
            }
            return Ok(sorted);
        }
        for index in 1..keyed.len() {
            let mut place = index;
            while place > 0 {
                let (after, before) = (keyed[place].0.clone(), keyed[place - 1].0.clone());
                let less = self.compare("lt", &after, &before)?;
                if !self.is_true(&less)? {
                    break;
                }
                keyed.swap(place, place - 1);
                place -= 1;
            }
        }
        let mut sorted: Vec<Value> = keyed.into_iter().map(|(_, item)| item).collect();
        if reverse {
            sorted.reverse();
        }
        Ok(sorted)
    }
}

/// The operator that a special method of a number stands for.
fn operator_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "__add__" => "add",
        "__sub__" => "sub",
        "__mul__" => "mul",
        "__truediv__" => "truediv",
        _ => return None,
    })
}
