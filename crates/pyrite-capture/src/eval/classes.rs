//! Classes: what a value is an instance of, how instances are made, exceptions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::call::Keywords;
use super::{Evaluator, Frame, Run, Stop};
use crate::host::{Descriptor, Kind, Object};
use crate::source::{Check, Source};
use crate::value::{DictValue, InstanceValue, Iterate, Origin, TupleValue, Value, View};

impl Evaluator<'_, '_> {
    /// The class of a value.
    pub(super) fn class_of(&mut self, value: &Value) -> Run<Value> {
        let named = |this: &Self, module: &str, name: &str| {
            this.host
                .member(module, name)
                .map(|class| Value::Known(class, None))
                .ok_or_else(|| this.stop("a missing class"))
        };
        match value {
            Value::Known(object, _) => Ok(Value::Known(self.host.class_of(*object), None)),
            Value::Lazy(_) => {
                let value = self.force(value)?;
                self.class_of(&value)
            }
            Value::Tensor(tensor) => match &tensor.origin {
                Some(origin) => Ok(Value::Known(self.host.class_of(origin.object), None)),
                None => named(self, "torch", "Tensor"),
            },
            Value::Instance(instance) => Ok(Value::Known(instance.class, None)),
            Value::Tuple(tuple) => match tuple.class {
                Some(class) => Ok(Value::Known(class, None)),
                None => named(self, "builtins", "tuple"),
            },
            Value::Dict(dict) => match dict.class {
                Some(class) => Ok(Value::Known(class, None)),
                None => named(self, "builtins", "dict"),
            },
            Value::Members(_) => named(self, "builtins", "dict"),
            Value::Symbol(_) => named(self, "builtins", "int"),
            Value::Number(_) => named(self, "builtins", "float"),
            Value::List(list) => match list.class {
                Some(class) => Ok(Value::Known(class, None)),
                None => named(self, "builtins", "list"),
            },
            Value::Deque(_) => named(self, "collections", "deque"),
            Value::View(view) => {
                let name = match view.view {
                    View::Keys => "dict_keys",
                    View::Values => "dict_values",
                    View::Items => "dict_items",
                };
                named(self, "_collections_abc", name)
            }
            Value::Set(set) => named(self, "builtins", if set.frozen { "frozenset" } else { "set" }),
            Value::Slice(_) => named(self, "builtins", "slice"),
            Value::Function(_) => named(self, "types", "FunctionType"),
            Value::Method(_) => named(self, "types", "MethodType"),
            Value::Bound(_) => named(self, "types", "BuiltinMethodType"),
            Value::Cell(_) => named(self, "types", "CellType"),
            Value::Partial(_) => named(self, "functools", "partial"),
            Value::Iterator(iterator) => match &*iterator.state.borrow() {
                Iterate::Generator(_) => named(self, "types", "GeneratorType"),
                Iterate::Zip(..) => named(self, "builtins", "zip"),
                Iterate::Enumerate(..) => named(self, "builtins", "enumerate"),
                Iterate::Map(..) => named(self, "builtins", "map"),
                Iterate::Filter(..) => named(self, "builtins", "filter"),
                Iterate::List(..) | Iterate::Items(..) | Iterate::Count(..) => {
                    Err(self.stop("the class of an iterator"))
                }
            },
            Value::Context(context) => Ok(Value::Known(context.class, None)),
            Value::Super(_) | Value::Null => Err(self.stop("the class of a value that has none")),
        }
    }

    /// `isinstance(value, classes)`.
    pub(super) fn is_instance(&mut self, value: &Value, classes: &Value) -> Run<bool> {
        match classes {
            Value::Tuple(tuple) => {
                for class in tuple.items.clone() {
                    let class = self.force(&class)?;
                    if self.is_instance(value, &class)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Known(class, _) if self.host.kind(*class) == Kind::Tuple => {
                let items = self.host.items(*class);
                for item in items {
                    if self.is_instance(value, &Value::Known(item, None))? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Known(class, _) => {
                let Value::Known(of, _) = self.class_of(value)? else {
                    return Err(self.stop("isinstance of a value without a class"));
                };
                if self.host.kind(*class) == Kind::Class || self.host.qualified_name(*class).is_some() {
                    let parameter = self.host.member("torch.nn", "Parameter");
                    if Some(*class) == parameter {
                        return Ok(matches!(value, Value::Tensor(tensor) if tensor.parameter));
                    }
                    if self.host.is_subclass(of, *class) {
                        return Ok(true);
                    }
                    // An object may say that it is of another class.
                    if matches!(value, Value::Instance(_))
                        && let Value::Known(said, _) = self.attribute(value, &"__class__".into())?
                        && said != of
                    {
                        return Ok(self.host.is_subclass(said, *class));
                    }
                    return Ok(false);
                }
                // `int | float`
                let args = self.host.attribute(*class, "__args__").map_err(|r| self.raised(r))?;
                self.is_instance(value, &Value::Known(args, None))
            }
            other => Err(self.stop(format!("isinstance with {}", self.describe(other)))),
        }
    }

    /// An exception that the captured code made.
    pub(super) fn exception(&self, class: Object, args: Vec<Value>) -> Value {
        Value::Instance(Rc::new(InstanceValue {
            class,
            origin: None,
            attributes: RefCell::default(),
            args: RefCell::new(args),
            exception: true,
            torch_module: false,
            changed: Cell::new(false),
        }))
    }

    /// `class(*args, **kwargs)` for a class that is none of Python's own.
    pub(super) fn construct(&mut self, class: Object, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let base = |this: &Self, name: &str| this.host.member("builtins", name).unwrap_or(Object(0));
        let name = self.host.class_name(class);
        let meta = self.host.class_of(class);
        let own_call = self.host.class_attribute(meta, "__call__");
        if own_call != self.host.class_attribute(base(self, "type"), "__call__") {
            // The class of the class makes its instances: members of enumerations are looked up.
            let plain: Option<Vec<Object>> = args.iter().map(|arg| self.plain(arg)).collect();
            if let (Some(plain), true) = (plain, kwargs.is_empty())
                && self.host.class_name(meta).starts_with("enum.")
            {
                let member = self.host.call(class, &plain, &[]).map_err(|r| self.raised(r))?;
                return Ok(Value::Known(member, None));
            }
            if let Some(own_call) = own_call
                && self.host.descriptor(own_call) == Descriptor::Function
            {
                let own_call = self.wrap(own_call, &Rc::new(Source::Fixed(own_call)))?;
                let all = std::iter::once(Value::Known(class, None)).chain(args).collect();
                return self.call(&own_call, all, kwargs);
            }
            return Err(self.stop(format!("{name} is made by a metaclass")));
        }
        self.construct_plainly(class, args, kwargs)
    }

    /// As `type.__call__` makes an object.
    pub(super) fn construct_plainly(&mut self, class: Object, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let base = |this: &Self, name: &str| this.host.member("builtins", name).unwrap_or(Object(0));
        let exception = self.host.is_subclass(class, base(self, "BaseException"));
        let name = self.host.class_name(class);
        if self.host.class_attribute(class, "__del__").is_some() {
            return Err(self.stop(format!("an object of {name} is made, whose end is noticed")));
        }
        if name == "types.SimpleNamespace" && args.is_empty() {
            let made = self.new_instance(class);
            for (name, value) in kwargs {
                made.attributes.borrow_mut().set(&name, Some(value));
            }
            return Ok(Value::Instance(made));
        }
        if self.is_record(class) {
            return self.construct_record(class, &args, kwargs);
        }
        if let Some(number) = self.construct_number(class, &args, &kwargs)? {
            return Ok(number);
        }
        if name == "builtins.method"
            && let [function, receiver] = args.as_slice()
        {
            return Ok(Value::Method(Rc::new((function.clone(), receiver.clone()))));
        }
        if self.host.container_kind(class) == Some(Kind::Dict) {
            return self.construct_dict(class, args, kwargs);
        }
        if let Some(context) = self.construct_context(class, &args, &kwargs)? {
            return Ok(context);
        }
        let new = self.host.class_attribute(class, "__new__");
        let usual_new = [base(self, "object"), base(self, "BaseException")]
            .iter()
            .any(|owner| self.host.class_attribute(*owner, "__new__") == new);
        let made = if usual_new {
            if exception { self.exception(class, args.clone()) } else { Value::Instance(self.new_instance(class)) }
        } else if let Some(new) = new
            && exception
            && !matches!(self.host.descriptor(new), Descriptor::StaticMethod(_) | Descriptor::Function)
        {
            self.exception(class, args.clone())
        } else {
            let Some(new) = new else { return Err(self.stop(format!("{name} cannot be made"))) };
            let function = match self.host.descriptor(new) {
                Descriptor::StaticMethod(function) => function,
                Descriptor::Function => new,
                _ if self.host.is_subclass(class, base(self, "tuple")) && kwargs.is_empty() => {
                    let items = match args.first() {
                        Some(items) => self.items_of(items)?,
                        None => Vec::new(),
                    };
                    return Ok(Value::Tuple(Rc::new(TupleValue { items, class: Some(class), origin: None })));
                }
                _ => return Err(self.stop(format!("an object of {name} is made"))),
            };
            let function = self.wrap(function, &Rc::new(Source::Fixed(function)))?;
            let all = std::iter::once(Value::Known(class, None)).chain(args.iter().cloned()).collect();
            let made = self.call(&function, all, kwargs.clone())?;
            if !matches!(&made, Value::Instance(instance) if instance.class == class) {
                return Ok(made);
            }
            made
        };
        let Some(init) = self.host.class_attribute(class, "__init__") else { return Ok(made) };
        if self.host.descriptor(init) == Descriptor::Function {
            let init = self.wrap(init, &Rc::new(Source::Fixed(init)))?;
            let all = std::iter::once(made.clone()).chain(args).collect();
            self.call(&init, all, kwargs)?;
        } else if !exception {
            if self.host.class_attribute(base(self, "object"), "__init__") != Some(init) {
                return Err(self.stop(format!("an object of {name} is made")));
            }
            if !args.is_empty() || !kwargs.is_empty() {
                let short = name.rsplit('.').next().unwrap_or_default();
                return Err(self.raise("TypeError", &format!("{short}() takes no arguments")));
            }
        }
        Ok(made)
    }

    /// What a record that exists outside holds, as if it had just been set: fields are known to be `None` or not.
    pub(super) fn read_record(&mut self, instance: &InstanceValue, origin: &Origin) -> Run<()> {
        let fields = self.host.class_attribute(instance.class, "__dataclass_fields__");
        let names = fields.map(|fields| self.host.entries(fields)).unwrap_or_default();
        let dict = self.host.instance_dict(origin.object).ok_or_else(|| self.stop("a record without attributes"))?;
        let mut held = 0;
        for (name, _) in names {
            let name = self.host.as_str(name).ok_or_else(|| self.stop("a field whose name is no text"))?;
            let found = self.host.dict_item(dict, &name).ok_or_else(|| self.stop("a record without a field"))?;
            let source = Rc::new(Source::InstanceItem(origin.source.clone(), name.clone()));
            let value = if found == self.host.none() {
                self.wrap(found, &source)?
            } else {
                held += 1;
                self.guard(&source, Check::Class(self.host.class_of(found), None));
                Value::Lazy(Rc::new(Origin { object: found, source }))
            };
            instance.attributes.borrow_mut().set(&name, Some(value));
        }
        if self.host.entries(origin.object).len() != held {
            return Err(self.stop("a record that holds more than its fields"));
        }
        self.guard(&origin.source, Check::Length(held));
        Ok(())
    }

    /// Whether instances are records of named fields in an ordered dictionary, as transformers returns them.
    pub(super) fn is_record(&self, class: Object) -> bool {
        let ordered = self.host.member("collections", "OrderedDict");
        ordered.is_some_and(|ordered| class != ordered && self.host.is_subclass(class, ordered))
            && self.host.class_attribute(class, "__dataclass_fields__").is_some()
            && self.host.class_attribute(class, "to_tuple").is_some()
    }

    /// A number of numpy, made from one of Python; nothing for other classes.
    fn construct_number(&mut self, class: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let generic = self.host.member("numpy", "number");
        if !generic.is_some_and(|generic| self.host.is_subclass(class, generic)) {
            return Ok(None);
        }
        let ([arg], true) = (args, kwargs.is_empty()) else { return Ok(None) };
        let Some(plain) = self.plain_guarded(arg)? else { return Ok(None) };
        let made = self.host.call(class, &[plain], &[]).map_err(|r| self.raised(r))?;
        Ok((self.host.kind(made) == Kind::Plain).then_some(Value::Known(made, None)))
    }

    /// A dictionary of a class of the user's.
    fn construct_dict(&mut self, class: Object, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let made = Value::Dict(Rc::new(DictValue { class: Some(class), ..DictValue::default() }));
        if self.is_python_method(class, "__init__") {
            let init = self.class_attribute_of(&made, class, &"__init__".into())?;
            self.call(&init, args, kwargs)?;
        } else {
            self.call_method(&made, &"update".into(), args, kwargs)?;
        }
        Ok(made)
    }

    fn construct_record(&mut self, class: Object, args: &[Value], kwargs: Keywords) -> Run<Value> {
        let fields = self.host.class_attribute(class, "__dataclass_fields__");
        let fields = fields.ok_or_else(|| self.stop("a record without fields"))?;
        let names: Vec<Rc<str>> =
            self.host.entries(fields).iter().filter_map(|(key, _)| self.host.as_str(*key)).collect();
        let instance = self.new_instance(class);
        for (index, name) in names.iter().enumerate() {
            let given =
                args.get(index).cloned().or_else(|| kwargs.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()));
            let value = match given {
                Some(value) => value,
                None => match self.host.class_attribute(class, name) {
                    Some(default) => self.wrap(default, &Rc::new(Source::ClassItem(class, name.clone())))?,
                    None => self.none(),
                },
            };
            instance.attributes.borrow_mut().set(name, Some(value));
        }
        Ok(Value::Instance(instance))
    }

    /// The fields of a record that are not `None`; nothing when the value is no record.
    pub(super) fn record_fields(&self, value: &Value) -> Option<Vec<(Rc<str>, Value)>> {
        let Value::Instance(instance) = value else { return None };
        if !self.is_record(instance.class) {
            return None;
        }
        let fields = instance.attributes.borrow();
        Some(
            fields
                .0
                .iter()
                .filter_map(|(name, value)| value.clone().map(|value| (name.clone(), value)))
                .filter(|(_, value)| !self.is_none(value))
                .collect(),
        )
    }

    pub(super) fn raise_instruction(&mut self, frame: &mut Frame, count: usize) -> Run<Stop> {
        let cause = if count == 2 { Some(frame.pop()) } else { None };
        if count == 0 {
            return Ok(match frame.handled.last().cloned().flatten() {
                Some(exception) => Stop::Raise(exception),
                None => self.raise("RuntimeError", "No active exception to reraise"),
            });
        }
        let raised = frame.pop();
        let exception = match &raised {
            Value::Known(object, _) if self.host.kind(*object) == Kind::Class => {
                self.call(&raised, Vec::new(), Vec::new())?
            }
            _ => raised,
        };
        if let (Some(cause), Value::Instance(instance)) = (cause, &exception) {
            instance.attributes.borrow_mut().set(&"__cause__".into(), Some(cause));
        }
        Ok(Stop::Raise(exception))
    }

    /// Whether an `except` of these classes catches an exception.
    pub(super) fn exception_matches(&mut self, exception: &Value, classes: &Value) -> Run<bool> {
        self.is_instance(exception, classes)
    }

    /// `case Class(…)`: the values of the patterns, or nothing.
    pub(super) fn match_class(
        &mut self,
        subject: &Value,
        class: &Value,
        names: &Value,
        positional: usize,
    ) -> Run<Option<Value>> {
        if !self.is_instance(subject, class)? {
            return Ok(None);
        }
        let mut values = Vec::new();
        if positional > 0 {
            let Value::Known(object, _) = class else { return Err(self.stop("a pattern of an unknown class")) };
            match self.host.class_attribute(*object, "__match_args__") {
                Some(fields) => {
                    for field in self.host.items(fields).into_iter().take(positional) {
                        let Some(name) = self.host.as_str(field) else { continue };
                        values.push(self.attribute(subject, &name)?);
                    }
                }
                None if positional == 1 => values.push(subject.clone()),
                None => return Err(self.stop("a pattern with several positional parts")),
            }
        }
        for name in self.items_of(names)? {
            let Value::Known(name, _) = name else { continue };
            let Some(name) = self.host.as_str(name) else { continue };
            if !self.has_attribute(subject, &name)? {
                return Ok(None);
            }
            values.push(self.attribute(subject, &name)?);
        }
        Ok(Some(Value::tuple(values)))
    }
}
