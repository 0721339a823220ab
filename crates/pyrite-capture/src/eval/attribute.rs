//! Attributes: Python's lookup in instances, classes and modules.

use std::cell::RefCell;
use std::rc::Rc;

use super::wrap::origin_of;
use super::{Evaluator, Run};
use crate::host::{Descriptor, Kind, Object, Precedence};
use crate::opcode::Version;
use crate::source::{Check, Source};
use crate::value::{
    Attributes, Born, DictValue, Entries, FunctionValue, InstanceValue, Origin, PartialValue, TensorValue, Value,
};

/// Attributes of functions that are no items of their `__dict__`.
const FUNCTION_SLOTS: [&str; 8] = [
    "__doc__",
    "__name__",
    "__qualname__",
    "__module__",
    "__annotations__",
    "__defaults__",
    "__kwdefaults__",
    "__type_params__",
];

impl Evaluator<'_, '_> {
    /// `object.name`.
    pub(super) fn attribute(&mut self, object: &Value, name: &Rc<str>) -> Run<Value> {
        match object {
            Value::Instance(instance) => self.instance_attribute(object, &instance.clone(), name),
            Value::Known(known, _) => self.known_attribute(object, *known, name),
            Value::Tensor(_) => self.tensor_attribute(object, name),
            Value::Super(parts) => {
                let (class, receiver) = (parts.0, parts.1.clone());
                self.super_attribute(class, &receiver, name)
            }
            Value::Function(function) => self.function_attribute(object, &function.clone(), name),
            Value::Method(parts) => match &**name {
                "__func__" => Ok(parts.0.clone()),
                "__self__" => Ok(parts.1.clone()),
                _ => self.attribute(&parts.0.clone(), name),
            },
            Value::Tuple(tuple) if tuple.class.is_some() => {
                let class = tuple.class.unwrap_or(Object(0));
                if let Some(index) = self.host.fields(class).iter().position(|field| field == name) {
                    return self.force(&tuple.items[index].clone());
                }
                if &**name == "__class__" {
                    return self.class_of(object);
                }
                if &**name == "__dict__"
                    && (tuple.origin.is_none() || tuple.changed.get())
                    && self.class_item(class, "__dict__").is_some()
                {
                    return Err(self.stop("the __dict__ of a user-defined tuple"));
                }
                // A class that is derived from a named tuple gives its objects attributes.
                if let Some(found) = self.own_attribute(object, name)? {
                    return Ok(found);
                }
                self.class_attribute_of(object, class, name)
            }
            Value::Partial(partial) => self.partial_attribute(object, &partial.clone(), name),
            Value::Cell(_) if &**name == "cell_contents" => match self.cell_contents(object)? {
                Some(value) => Ok(value),
                None => Err(self.raise("ValueError", "Cell is empty")),
            },
            Value::Slice(parts) => match &**name {
                "start" => Ok(parts[0].clone()),
                "stop" => Ok(parts[1].clone()),
                "step" => Ok(parts[2].clone()),
                _ => Err(self.stop(format!("the attribute {name} of a slice"))),
            },
            Value::Null => Err(self.stop("an attribute of nothing")),
            Value::Bound(parts) if &**name == "__self__" => Ok(parts.0.clone()),
            Value::Bound(parts) if &**name == "__name__" => {
                let parts = parts.clone();
                let Value::Known(class, _) = self.class_of(&parts.0)? else { return Err(self.stop("a class")) };
                // A function in C that has several names knows one of them.
                let known = self.class_item(class, &parts.1).and_then(|found| self.constant(found, "__name__").ok());
                known.map(|known| Value::Known(known, None)).ok_or_else(|| self.stop("the name of a method"))
            }
            Value::Iterator(_) if matches!(&**name, "__next__" | "__iter__") => {
                Ok(Value::Bound(Rc::new((object.clone(), name.clone()))))
            }
            _ if &**name == "__class__" => self.class_of(object),
            // Methods of lists, dictionaries and the like; their class knows which there are.
            _ => {
                let Value::Known(class, _) = self.class_of(object)? else {
                    return Err(self.stop(format!("the attribute {name} of {}", self.describe(object))));
                };
                let own = attributes_of_container(object).is_some()
                    && (self.host.container_kind(class).is_some()
                        || Some(class) == self.host.member("collections", "OrderedDict"));
                if own && &**name == "__dict__" {
                    return self.own_dict(object);
                }
                if let Value::Dict(dict) = object
                    && &**name == "default_factory"
                    && self.is_defaultdict(class)
                {
                    return Ok(dict.default.borrow().clone().unwrap_or_else(|| self.none()));
                }
                if let (Value::Deque(deque), "maxlen") = (object, &**name) {
                    return Ok(deque.limit.get().map_or_else(|| self.none(), |limit| self.int(limit as i64)));
                }
                if own {
                    let computed = self.class_item(class, name).map(|found| self.host.descriptor(found));
                    let computed = matches!(
                        computed,
                        Some(Descriptor::Property(_) | Descriptor::Other | Descriptor::Custom(Precedence::Descriptor))
                    );
                    if !computed && let Some(found) = self.own_attribute(object, name)? {
                        return Ok(found);
                    }
                }
                if let Value::View(view) = object
                    && &**name == "mapping"
                {
                    let class = self.host.member("types", "MappingProxyType");
                    let behind = Some(view.dict.clone());
                    return Ok(Value::Dict(Rc::new(DictValue { class, behind, ..DictValue::default() })));
                }
                match self.class_item(class, name) {
                    Some(found) if own => match self.host.descriptor(found) {
                        Descriptor::BuiltinMethod => Ok(Value::Bound(Rc::new((object.clone(), name.clone())))),
                        _ => self.bind(object, found, class, name),
                    },
                    // Kinds of dict that the library writes in Python.
                    Some(found) if self.host.descriptor(found) == Descriptor::Function => {
                        self.bind(object, found, class, name)
                    }
                    Some(found) if matches!(self.host.descriptor(found), Descriptor::Slot | Descriptor::Value) => {
                        Err(self.stop(format!("the attribute {name} of {}", self.describe(object))))
                    }
                    Some(_) => Ok(Value::Bound(Rc::new((object.clone(), name.clone())))),
                    None => match self.class_item(class, "__getattr__") {
                        Some(getter) if own => {
                            let getter = self.wrap(getter, &Rc::new(Source::Fixed(getter)))?;
                            let named = self.text(name);
                            self.call(&getter, vec![object.clone(), named], Vec::new())
                        }
                        _ => Err(self.missing(Some(object), class, name)),
                    },
                }
            }
        }
    }

    /// The tensor behind an array.
    pub(super) fn tensor_of_array(&self, array: &InstanceValue) -> Run<Value> {
        let held = array.attributes.borrow().get("tensor").cloned().flatten();
        held.ok_or_else(|| self.stop("an array without its tensor"))
    }

    /// `array.dtype`.
    pub(super) fn array_type(&mut self, array: &Rc<InstanceValue>) -> Run<Value> {
        let tensor = self.tensor_of_array(array)?;
        let dtype = self.attribute(&tensor, &"dtype".into())?;
        let (Value::Known(dtype, _), Some(maker)) = (dtype, self.host.member("pyrite._arrays", "type_of")) else {
            return Err(self.stop("the attribute dtype of an array"));
        };
        let made = self.host.call(maker, &[dtype], &[]).map_err(|r| self.raised(r))?;
        Ok(Value::Known(made, None))
    }

    /// What a container of a class of the user's holds under a name in its `__dict__`.
    fn own_attribute(&mut self, container: &Value, name: &Rc<str>) -> Run<Option<Value>> {
        let set = attributes_of_container(container).and_then(|held| held.borrow().get(name).cloned());
        match (set, origin_of(container).cloned()) {
            (Some(set), _) => Ok(set),
            (None, Some(origin)) => match self.read_instance_item(origin.object, &origin.source, name) {
                Some(found) => self.admit(&found).map(Some),
                None => Ok(None),
            },
            (None, None) => Ok(None),
        }
    }

    /// What the class of a container has instead of a method that `object` has, bound: it may be written in C as well.
    fn own_accessor(&mut self, container: &Value, name: &str) -> Run<Option<Value>> {
        let Value::Known(class, _) = self.class_of(container)? else { return Ok(None) };
        let usual = self.host.member("builtins", "object").and_then(|object| self.class_item(object, name));
        match self.class_item(class, name) {
            Some(found) if Some(found) != usual => match self.host.descriptor(found) {
                Descriptor::BuiltinMethod => {
                    Ok(Some(Value::Method(Rc::new((Value::Known(found, None), container.clone())))))
                }
                _ => self.bind(container, found, class, &name.into()).map(Some),
            },
            _ => Ok(None),
        }
    }

    /// Sets or removes an attribute of a container of a class of the user's.
    pub(super) fn set_own_attribute(&mut self, container: &Value, name: &Rc<str>, value: Option<Value>) -> Run<()> {
        let Value::Known(class, _) = self.class_of(container)? else { return Err(self.stop("a container")) };
        let keeps = match container {
            Value::Tuple(tuple) => tuple.class.is_some() && self.class_item(class, "__dict__").is_some(),
            // Ordered dictionaries keep attributes without a class of the user's.
            _ => {
                self.host.container_kind(class).is_some()
                    || Some(class) == self.host.member("collections", "OrderedDict")
            }
        };
        let Some(held) = attributes_of_container(container).filter(|_| keeps) else {
            return Err(self.stop(format!("the attribute {name} of {} is set", self.describe(container))));
        };
        let found = self.class_item(class, name).map(|found| self.host.descriptor(found));
        if !matches!(found, None | Some(Descriptor::Value | Descriptor::Function | Descriptor::BuiltinMethod))
            || self.class_item(class, "__slots__").is_some()
        {
            return Err(self.stop(format!("setting the attribute {name} of a user-defined container")));
        }
        if value.is_none() && self.own_attribute(container, name)?.is_none() {
            return Err(self.missing(Some(container), class, name));
        }
        held.borrow_mut().set(name, value.clone());
        self.keep_own_dict(container, name, value)?;
        let changed = match container {
            Value::Tuple(tuple) => &tuple.changed,
            Value::List(list) => &list.changed,
            Value::Dict(dict) => &dict.changed,
            Value::Set(set) => &set.changed,
            Value::Deque(deque) => &deque.changed,
            _ => return Ok(()),
        };
        self.note_change(container, origin_of(container).is_some(), changed)
    }

    /// The `__dict__` of a container of the user's that was made here. It follows the container's attributes; it is not
    /// written to, and nobody outside sees it.
    fn own_dict(&mut self, container: &Value) -> Run<Value> {
        let known = self.own_dicts.iter().find(|(owner, _)| owner.identity() == container.identity());
        if let Some((_, dict)) = known {
            return Ok(Value::Dict(dict.clone()));
        }
        let held = attributes_of_container(container).filter(|_| origin_of(container).is_none());
        let held = held.ok_or_else(|| self.stop("the __dict__ of a user-defined container"))?.borrow();
        let held = held.0.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        let held: Vec<(Rc<str>, Value)> = held.collect();
        let pairs = held.into_iter().map(|(name, value)| (self.text(&name), value)).collect();
        let dict = self.new_dict(pairs)?;
        if let Value::Dict(dict) = &dict {
            self.own_dicts.push((container.clone(), dict.clone()));
        }
        Ok(dict)
    }

    /// Lets the `__dict__` of a container know of an attribute that was set or removed.
    fn keep_own_dict(&mut self, container: &Value, name: &Rc<str>, value: Option<Value>) -> Run<()> {
        let known = self.own_dicts.iter().find(|(owner, _)| owner.identity() == container.identity());
        let Some(dict) = known.map(|(_, dict)| dict.clone()) else { return Ok(()) };
        let key = self.text(name);
        let hashed = self.key_in(&dict.entries, &key)?;
        match value {
            Some(value) => dict.entries.borrow_mut().set(hashed, key, value),
            None => drop(dict.entries.borrow_mut().remove(hashed)),
        }
        Ok(())
    }

    /// Whether a dictionary is the `__dict__` of a container.
    pub(super) fn is_own_dict(&self, dict: &DictValue) -> bool {
        self.own_dicts.iter().any(|(_, own)| std::ptr::eq(&raw const **own, dict))
    }

    /// Whether the code that is followed is torch's own numpy.
    pub(super) fn in_torch_numpy(&self) -> bool {
        self.trace.last().is_some_and(|(file, _, _)| file.contains("/torch/_numpy/"))
    }

    /// What tells that an object has no attribute of a name.
    fn missing(&self, object: Option<&Value>, class: Object, name: &str) -> super::Stop {
        let class = self.host.class_name(class);
        let class = class.rsplit('.').next().unwrap_or_default();
        self.no_attribute(object, name, &format!("'{class}' object has no attribute '{name}'"))
    }

    /// An `AttributeError`, which names the attribute and the object.
    pub(super) fn no_attribute(&self, object: Option<&Value>, name: &str, message: &str) -> super::Stop {
        let stop = self.raise("AttributeError", message);
        if let super::Stop::Raise(Value::Instance(error)) = &stop {
            let mut attributes = error.attributes.borrow_mut();
            attributes.set(&"name".into(), Some(self.text(name)));
            if let Some(object) = object {
                attributes.set(&"obj".into(), Some(object.clone()));
            }
        }
        stop
    }

    fn partial_attribute(&mut self, value: &Value, partial: &PartialValue, name: &Rc<str>) -> Run<Value> {
        if let Some(origin) = &partial.origin
            && matches!(&**name, "args" | "keywords")
        {
            let found = self.read_attribute(origin.object, &origin.source, name)?;
            return self.admit(&found);
        }
        match &**name {
            "func" => Ok(partial.function.clone()),
            "args" => Ok(Value::tuple(partial.args.clone())),
            "keywords" => {
                let pairs = partial.kwargs.iter().map(|(name, value)| (self.text(name), value.clone())).collect();
                self.new_dict(pairs)
            }
            "__class__" => self.class_of(value),
            _ => {
                if let Some(origin) = &partial.origin
                    && let Some(found) = self.read_instance_item(origin.object, &origin.source, name)
                {
                    return self.admit(&found);
                }
                if let Some(set) = partial.attributes.borrow().get(name).cloned().flatten() {
                    return Ok(set);
                }
                let Value::Known(class, _) = self.class_of(value)? else { return Err(self.stop("a partial function")) };
                match self.class_item(class, name) {
                    Some(found) => match self.host.descriptor(found) {
                        Descriptor::BuiltinMethod if &**name == "__call__" => Ok(value.clone()),
                        _ => Err(self.stop(format!("the attribute {name} of a partial function"))),
                    },
                    None => Err(self.no_attribute(
                        Some(value),
                        name,
                        &format!("'functools.partial' object has no attribute '{name}'"),
                    )),
                }
            }
        }
    }

    /// An attribute, if it is there. It is read once: reading may do something.
    pub(super) fn attribute_if_any(&mut self, object: &Value, name: &Rc<str>) -> Run<Option<Value>> {
        match self.attribute(object, name) {
            Ok(value) => Ok(Some(value)),
            Err(super::Stop::Raise(exception)) => {
                let class = self.host.member("builtins", "AttributeError").map(|c| Value::Known(c, None));
                match class {
                    Some(class) if self.exception_matches(&exception, &class)? => Ok(None),
                    _ => Err(super::Stop::Raise(exception)),
                }
            }
            Err(stop) => Err(stop),
        }
    }

    fn known_attribute(&mut self, value: &Value, object: Object, name: &Rc<str>) -> Run<Value> {
        if self.is_random_source(object) {
            return Ok(Value::Bound(Rc::new((value.clone(), name.clone()))));
        }
        match self.host.kind(object) {
            Kind::Module => self.module_attribute(object, name),
            Kind::Class => self.attribute_of_class(object, name),
            Kind::Builtin => match &**name {
                "__name__" | "__qualname__" | "__module__" | "__doc__" => {
                    Ok(Value::Known(self.constant(object, name)?, None))
                }
                "__wrapped__" if self.is_cached_function(object) => {
                    let fixed = Rc::new(Source::Fixed(object));
                    match self.read_instance_item(object, &fixed, name) {
                        Some(found) => self.admit(&found),
                        None => Err(self.missing(Some(value), self.host.class_of(object), name)),
                    }
                }
                // How an attribute of a tensor is read, as it is shown to `__torch_function__`.
                "__get__"
                    if let Ok(attribute) = self.constant(object, "__name__")
                        && let Some(attribute) = self.host.as_str(attribute)
                        && let Some(getter) = self.host.member("pyrite._overrides", &format!("getter_{attribute}"))
                        && self.host.builtin_receiver(getter) == Some(object) =>
                {
                    Ok(Value::Known(getter, None))
                }
                "__self__" => match self.host.builtin_receiver(object) {
                    Some(receiver) => {
                        let method = match value {
                            Value::Known(_, Some(source)) => source.clone(),
                            _ => Rc::new(Source::Fixed(object)),
                        };
                        self.wrap(receiver, &Rc::new(Source::Attribute(method, "__self__".into())))
                    }
                    None => Err(self.stop("the attribute __self__ of a function written in C")),
                },
                // The overloads of an operator do not change.
                _ if self.host.class_name(self.host.class_of(object)) == "torch._ops.OpOverloadPacket" => {
                    let found = self.constant(object, name)?;
                    self.wrap(found, &Rc::new(Source::Fixed(found)))
                }
                _ => Err(self.stop(format!("the attribute {name} of {}", self.host.describe(object)))),
            },
            Kind::None | Kind::Bool | Kind::Int | Kind::Plain | Kind::FrozenSet => {
                let class = self.host.class_of(object);
                let Some(found) = self.class_item(class, name) else {
                    // Members of enumerations, and numbers and texts of classes of the user's, keep attributes of their own.
                    let fixed = match value {
                        Value::Known(_, Some(source)) => source.clone(),
                        _ => Rc::new(Source::Fixed(object)),
                    };
                    return match self.read_instance_item(object, &fixed, name) {
                        Some(found) => self.admit(&found),
                        None => Err(self.missing(Some(value), class, name)),
                    };
                };
                match self.host.descriptor(found) {
                    Descriptor::BuiltinMethod => Ok(Value::Bound(Rc::new((value.clone(), name.clone())))),
                    Descriptor::Function => {
                        let function = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
                        Ok(Value::Method(Rc::new((function, value.clone()))))
                    }
                    Descriptor::Property(_) | Descriptor::ClassMethod(_) | Descriptor::StaticMethod(_) => {
                        self.bind(value, found, class, name)
                    }
                    _ => {
                        // What C code computes of a plain value, and the name and value of a member of an enumeration.
                        let found = self.read_attribute(object, &Rc::new(Source::Fixed(object)), name)?;
                        self.admit(&found)
                    }
                }
            }
            _ => {
                let class = self.host.class_of(object);
                match &*self.host.class_name(class) {
                    "_contextvars.ContextVar" => return Ok(Value::Bound(Rc::new((value.clone(), name.clone())))),
                    // What a pattern, or what it has found, says does not change.
                    "re.Pattern" | "re.Match" => {
                        self.rely_on_object(value);
                        let method = self.class_item(class, name).map(|item| self.host.descriptor(item));
                        if method == Some(Descriptor::BuiltinMethod) {
                            return Ok(Value::Bound(Rc::new((value.clone(), name.clone()))));
                        }
                        let found = self.constant(object, name)?;
                        return Ok(self.opened(found));
                    }
                    // The functions of a property do not change.
                    "builtins.property" if matches!(&**name, "fget" | "fset" | "fdel" | "__doc__") => {
                        self.rely_on_object(value);
                        let found = self.constant(object, name)?;
                        return self.wrap(found, &Rc::new(Source::Fixed(found)));
                    }
                    // What a code object says does not change.
                    "builtins.code" | "types.GenericAlias" | "types.UnionType" => {
                        self.rely_on_object(value);
                        let found = self.constant(object, name)?;
                        return self.wrap(found, &Rc::new(Source::Fixed(found)));
                    }
                    _ => {}
                }
                // What an exception holds may change, and differs from one to the next.
                let raised = self.host.member("builtins", "BaseException");
                let constant = raised.is_none_or(|raised| !self.host.derives(class, raised));
                if constant && self.host.qualified_name(class).is_some() {
                    // A plain record of torch, such as `torch.finfo`.
                    let found = self.constant(object, name)?;
                    let method = self.class_item(class, name).map(|item| self.host.descriptor(item));
                    return match self.host.kind(found) {
                        Kind::Bool | Kind::Int | Kind::Plain | Kind::None => {
                            self.rely_on_object(value);
                            Ok(Value::Known(found, None))
                        }
                        _ if method == Some(Descriptor::BuiltinMethod) => {
                            Ok(Value::Bound(Rc::new((value.clone(), name.clone()))))
                        }
                        // What else an object of C holds, such as the context of an exception, may change.
                        _ => Err(self.stop(format!("the attribute {name} of {}", self.host.describe(object)))),
                    };
                }
                // A method in C is bound without a question, and breaks where it is called.
                let usual = self.host.member("builtins", "object");
                let usual = usual.and_then(|usual| self.class_item(usual, "__getattribute__"));
                if self.class_item(class, "__getattribute__") == usual
                    && self.keeper_of_attributes(object).is_none()
                    && self.class_item(class, name).map(|item| self.host.descriptor(item))
                        == Some(Descriptor::BuiltinMethod)
                {
                    return Ok(Value::Bound(Rc::new((value.clone(), name.clone()))));
                }
                let described = self.host.describe(object);
                Err(self.stop(format!("the attribute {name} of {described}")))
            }
        }
    }

    /// Relies on which object a value is, where it is from outside: what is read of it does not change.
    fn rely_on_object(&self, value: &Value) {
        if let Value::Known(object, Some(source)) = value {
            self.guard(source, Check::Is(*object));
        }
    }

    /// Whether an object is a function that keeps its results.
    fn is_cached_function(&self, object: Object) -> bool {
        self.host.class_name(self.host.class_of(object)) == "functools._lru_cache_wrapper"
    }

    /// `module.name`.
    fn module_attribute(&mut self, module: Object, name: &Rc<str>) -> Run<Value> {
        let source = Rc::new(Source::Fixed(module));
        if let Some(globals) = self.keeper_of_attributes(module)
            && let Some((_, _, set)) = self.globals.iter().find(|(d, n, _)| *d == globals && n == name)
        {
            // The captured code has set the global, or removed it.
            return match set {
                Some(value) => Ok(value.clone()),
                None => Err(self.no_module_attribute(module, name)),
            };
        }
        let class = self.host.class_of(module);
        let computed = self.class_item(class, name).map(|found| self.host.descriptor(found));
        let computed = matches!(
            computed,
            Some(Descriptor::Property(_) | Descriptor::Custom(Precedence::Descriptor) | Descriptor::Other)
        );
        if !computed && let Some(found) = self.read_instance_item(module, &source, name) {
            return self.admit(&found);
        }
        // A module may compute what it lacks, and so may its class, as that of torch._VF does.
        let computes = self.class_item(class, "__getattr__").is_some()
            || self.read_instance_item(module, &source, &"__getattr__".into()).is_some();
        if !computed && !computes {
            return match self.class_item(class, name) {
                Some(_) => {
                    let found = self.read_attribute(module, &source, name)?;
                    self.admit(&found)
                }
                None => Err(self.no_module_attribute(module, name)),
            };
        }
        if self.host.qualified_name(module).is_none() {
            return Err(self.stop(format!("the attribute {name} of a module that computes it")));
        }
        // torch's own settings, and what its modules import once they are asked for it.
        let found = self.read_attribute(module, &source, name)?;
        match self.host.kind(found.object) {
            Kind::Function | Kind::Class | Kind::Module | Kind::Builtin => {
                self.wrap(found.object, &Rc::new(Source::Fixed(found.object)))
            }
            _ => self.admit(&found),
        }
    }

    fn no_module_attribute(&self, module: Object, name: &str) -> super::Stop {
        let named = self.constant(module, "__name__").ok().and_then(|name| self.host.as_str(name)).unwrap_or_default();
        let value = Value::Known(module, None);
        self.no_attribute(Some(&value), name, &format!("module '{named}' has no attribute '{name}'"))
    }

    /// `class.__dict__`: what the class itself holds.
    fn namespace_of(&mut self, class: Object) -> Run<Value> {
        if self.class_items.iter().any(|(changed, ..)| *changed == class) {
            return Err(self.stop("the __dict__ of a class that is changed"));
        }
        let (proxy, held) = self.read_namespace(class)?;
        let mut entries = Entries::default();
        for (key, seen) in held {
            let named = Value::Known(key, None);
            let key = self.key(&named)?;
            entries.set(key, named, self.lazily(seen));
        }
        let shown = DictValue { entries: RefCell::new(entries), ..DictValue::default() };
        Ok(Value::Dict(Rc::new(DictValue {
            class: Some(self.host.class_of(proxy.object)),
            origin: Some(proxy),
            behind: Some(Value::Dict(Rc::new(shown))),
            ..DictValue::default()
        })))
    }

    /// `class.name`.
    fn attribute_of_class(&mut self, class: Object, name: &Rc<str>) -> Run<Value> {
        let known = Value::Known(class, None);
        let fixed = Rc::new(Source::Fixed(class));
        match &**name {
            "__name__" | "__qualname__" | "__mro__" | "__bases__" => {
                let found = self.read_attribute(class, &fixed, name)?;
                // A text may be made anew whenever it is asked for.
                let text = self.host.as_str(found.object).is_some();
                self.guard(&found.source, if text { Check::Equal(found.object) } else { Check::Is(found.object) });
                return Ok(Value::Known(found.object, None));
            }
            "__dict__" => return self.namespace_of(class),
            "__class__" => return self.class_of(&known),
            _ => {}
        }
        if let Some(set) = self.class_item_set(class, name) {
            return self.force(&set);
        }
        let meta = self.host.class_of(class);
        let enumeration = self.host.member("enum", "EnumMeta");
        if enumeration.is_some_and(|enumeration| self.host.derives(meta, enumeration)) {
            // Members are what they are as long as their class is.
            self.watch_class(class);
            if let Ok(member) = self.constant(class, name)
                && self.host.class_of(member) == class
            {
                return Ok(Value::Known(member, None));
            }
        }
        // What computes attributes in the class of a class comes before what the class has.
        if let Some(found) = self.class_item(meta, name) {
            match self.host.descriptor(found) {
                Descriptor::Property(_) => return self.bind(&known, found, meta, name),
                Descriptor::Custom(Precedence::Descriptor) => return self.ask_descriptor(found, known, meta),
                _ => {}
            }
        }
        let Some(found) = self.class_item(class, name) else {
            // The class of a class may have it: members of enumerations, `register` of abstract classes.
            return match self.class_item(meta, name) {
                Some(found) => match self.host.descriptor(found) {
                    Descriptor::Function | Descriptor::Property(_) | Descriptor::ClassMethod(_) => {
                        self.bind(&known, found, meta, name)
                    }
                    Descriptor::Slot | Descriptor::BuiltinMethod | Descriptor::Value => {
                        let found = self.read_attribute(class, &fixed, name)?;
                        self.admit(&found)
                    }
                    _ => Err(self.stop(format!("the attribute {name} of a class, which its metaclass computes"))),
                },
                // Members of enumerations are found by a function of their metaclass.
                None if self.class_item(meta, "__getattr__").is_some() => {
                    let found = self.read_attribute(class, &fixed, name)?;
                    self.admit(&found)
                }
                None => {
                    let text = self.host.class_name(class);
                    let text = text.rsplit('.').next().unwrap_or_default().to_owned();
                    let message = format!("type object '{text}' has no attribute '{name}'");
                    Err(self.no_attribute(Some(&known), name, &message))
                }
            };
        };
        let source = Rc::new(Source::ClassItem(class, name.clone()));
        match self.host.descriptor(found) {
            Descriptor::ClassMethod(_) | Descriptor::StaticMethod(_) => self.bind(&known, found, class, name),
            Descriptor::Function | Descriptor::Value => self.wrap(found, &source),
            Descriptor::BuiltinMethod => Ok(Value::Known(self.constant(class, name)?, None)),
            Descriptor::Property(_) | Descriptor::Slot | Descriptor::CachedProperty(_) => {
                Ok(Value::Known(found, Some(source)))
            }
            Descriptor::Custom(_) => {
                let none = self.none();
                self.ask_descriptor(found, none, class)
            }
            Descriptor::Other => {
                let found = self.read_attribute(class, &fixed, name)?;
                self.admit(&found)
            }
        }
    }

    fn function_attribute(&mut self, value: &Value, function: &Rc<FunctionValue>, name: &Rc<str>) -> Run<Value> {
        if let Some(set) = function.attributes.borrow().get(name) {
            if let Some(value) = set {
                return Ok(value.clone());
            }
            let message = format!("'function' object has no attribute '{name}'");
            return Err(self.no_attribute(Some(value), name, &message));
        }
        if let "__get__" | "__call__" = &**name {
            return Ok(Value::Bound(Rc::new((value.clone(), name.clone()))));
        }
        if let Some(origin) = &function.origin {
            let found = self.read_attribute(origin.object, &origin.source, name)?;
            return self.admit(&found);
        }
        let code = self.host.code(function.code).ok_or_else(|| self.stop("a function without code"))?;
        match &**name {
            "__name__" => Ok(self.text(&code.name)),
            "__qualname__" => Ok(self.text(&code.qualified_name)),
            "__code__" => Ok(Value::Known(function.code, None)),
            "__defaults__" if function.defaults.borrow().is_empty() => Ok(self.none()),
            "__defaults__" => Ok(Value::tuple(function.defaults.borrow().clone())),
            "__kwdefaults__" if function.keyword_defaults.borrow().is_empty() => Ok(self.none()),
            "__kwdefaults__" => {
                let defaults = function.keyword_defaults.borrow().clone();
                let pairs = defaults.iter().map(|(name, value)| (self.text(name), value.clone())).collect();
                self.new_dict(pairs)
            }
            "__closure__" if function.closure.is_empty() => Ok(self.none()),
            "__closure__" => Ok(Value::tuple(function.closure.clone())),
            "__module__" => match self.read_global(function.globals, &"__name__".into()) {
                Some(module) => self.admit(&module),
                None => Ok(self.none()),
            },
            "__class__" => self.class_of(value),
            // The text stands first among the constants.
            "__doc__" => match code.consts.first() {
                Some(text) if self.host.as_str(*text).is_some() && !code.name.starts_with('<') => {
                    Ok(Value::Known(*text, None))
                }
                _ => Ok(self.none()),
            },
            "__annotations__" => {
                let annotations = match &function.annotations {
                    Some(annotations) => annotations.clone(),
                    None => self.new_dict(Vec::new())?,
                };
                // From now on it is the one dictionary that it has.
                function.attributes.borrow_mut().set(name, Some(annotations.clone()));
                Ok(annotations)
            }
            "__dict__" => {
                let mut entries = Entries::default();
                let held: Vec<_> = function.attributes.borrow().0.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
                for (name, value) in held {
                    let named = self.text(&name);
                    let hashed = self.key(&named)?;
                    match value {
                        Some(value) if !FUNCTION_SLOTS.contains(&&*name) => entries.set(hashed, named, value),
                        _ => {}
                    }
                }
                // It is only read: what is written to it would be written to the function.
                let class = self.host.member("types", "MappingProxyType");
                let shown = Rc::new(DictValue { entries: RefCell::new(entries), class, ..DictValue::default() });
                self.made_at.insert(Rc::as_ptr(&shown).addr(), self.root);
                Ok(Value::Dict(shown))
            }
            "__globals__" | "__builtins__" => {
                Err(self.stop(format!("the attribute {name} of a function created in the frame")))
            }
            _ => {
                let Value::Known(class, _) = self.class_of(value)? else { return Err(self.stop("a function")) };
                match self.class_item(class, name) {
                    // Generic functions are not created in captured frames.
                    Some(_) if &**name == "__type_params__" => Ok(Value::tuple(Vec::new())),
                    Some(_) => Err(self.stop(format!("the attribute {name} of a function created in the frame"))),
                    None => {
                        let message = format!("'function' object has no attribute '{name}'");
                        Err(self.no_attribute(Some(value), name, &message))
                    }
                }
            }
        }
    }

    /// What the captured code has set a class, or one of its bases, to hold under a name.
    fn class_item_set(&self, class: Object, name: &str) -> Option<Value> {
        if self.class_items.is_empty() {
            return None;
        }
        let before = self.class_item(class, name);
        // What a nearer base holds hides it.
        let shows = |owner: Object| {
            owner == class || (self.host.derives(class, owner) && self.class_item(owner, name) == before)
        };
        let set = self.class_items.iter().rev().find(|(owner, known, _)| &**known == name && shows(*owner));
        set.map(|(_, _, value)| value.clone())
    }

    /// `class.name = value` for a class of the user's, and a value that is no function or descriptor.
    fn set_class_item(&mut self, class: Object, name: &Rc<str>, value: Value) -> Run<()> {
        const NATIVE: [&str; 10] =
            ["tuple", "list", "dict", "set", "frozenset", "int", "float", "str", "BaseException", "type"];
        let refused =
            |this: &Self| this.stop(format!("the attribute {name} of {} is set", this.host.class_name(class)));
        let usual = self.host.member("builtins", "type");
        let meta = self.host.class_of(class);
        let native = NATIVE.iter().filter_map(|native| self.host.member("builtins", native));
        let native = native.chain(self.host.member("torch", "Tensor")).any(|base| self.host.derives(class, base));
        let found = self.class_item(class, name).map(|found| self.host.descriptor(found));
        let data = match &value {
            Value::Known(object, _) => {
                matches!(self.host.kind(*object), Kind::None | Kind::Bool | Kind::Int | Kind::Plain)
            }
            Value::Tensor(_) | Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Tuple(_) | Value::Symbol(_) => {
                true
            }
            // What is no descriptor is the same object for whoever asks.
            Value::Instance(held) => {
                !held.exception && ["__get__", "__set__"].iter().all(|name| self.class_item(held.class, name).is_none())
            }
            _ => false,
        };
        let settable =
            self.class_item(meta, "__setattr__") == usual.and_then(|usual| self.class_item(usual, "__setattr__"));
        let special = name.starts_with("__") && name.ends_with("__");
        let known = matches!(found, None | Some(Descriptor::Value));
        if native || special || !data || !known || !settable || !self.may_change(class) || !self.bodies.is_empty() {
            return Err(refused(self));
        }
        self.class_items.retain(|(owner, set, _)| *owner != class || set != name);
        self.class_items.push((class, name.clone(), value));
        Ok(())
    }

    fn super_attribute(&mut self, class: Object, receiver: &Value, name: &Rc<str>) -> Run<Value> {
        if self.class_items.iter().any(|(_, set, _)| set == name) {
            return Err(self.stop("super() of an attribute of a class that was set"));
        }
        let of = match receiver {
            Value::Known(object, _) if self.host.kind(*object) == Kind::Class && self.host.derives(*object, class) => {
                *object
            }
            other => match self.class_of(other)? {
                Value::Known(class, _) => class,
                _ => return Err(self.stop("super() of something without a class")),
            },
        };
        let Some(found) = self.class_item_after(of, class, name) else {
            return Err(self.no_attribute(None, name, &format!("'super' object has no attribute '{name}'")));
        };
        if self.host.descriptor(found) == Descriptor::Value {
            return self.wrap(found, &Rc::new(Source::Fixed(found)));
        }
        if self.host.descriptor(found) == Descriptor::BuiltinMethod {
            // By its name the object would find its own again.
            return Ok(Value::Method(Rc::new((Value::Known(found, None), receiver.clone()))));
        }
        self.bind(receiver, found, of, name)
    }

    /// Binds what a class has to an object.
    fn bind(&mut self, object: &Value, found: Object, class: Object, name: &Rc<str>) -> Run<Value> {
        // The guard of the object's class covers what the class holds.
        let fixed = Rc::new(Source::Fixed(found));
        match self.host.descriptor(found) {
            Descriptor::Function => {
                let function = self.wrap(found, &fixed)?;
                Ok(Value::Method(Rc::new((function, object.clone()))))
            }
            Descriptor::Property(getter) => {
                let getter = self.wrap(getter, &Rc::new(Source::Fixed(getter)))?;
                self.call(&getter, vec![object.clone()], Vec::new())
            }
            Descriptor::ClassMethod(function) => {
                // `super()` in a class method has the class itself.
                let class = match object {
                    Value::Known(known, _) if self.host.kind(*known) == Kind::Class => object.clone(),
                    other => self.class_of(other).unwrap_or(Value::Known(class, None)),
                };
                // Up to CPython 3.12 a class method may be one of another descriptor.
                match self.host.descriptor(function) {
                    Descriptor::Property(getter) if self.entry.code.version < Version::V313 => {
                        let getter = self.wrap(getter, &Rc::new(Source::Fixed(getter)))?;
                        return self.call(&getter, vec![class], Vec::new());
                    }
                    Descriptor::Function | Descriptor::Value | Descriptor::BuiltinMethod => {}
                    _ => return Err(self.stop(format!("the class method {name}, which a descriptor computes"))),
                }
                let function = self.wrap(function, &Rc::new(Source::Fixed(function)))?;
                Ok(Value::Method(Rc::new((function, class))))
            }
            Descriptor::StaticMethod(function) => self.wrap(function, &Rc::new(Source::Fixed(function))),
            Descriptor::Slot => match origin_of(object) {
                Some(origin) => {
                    let found = self.read_attribute(origin.object, &origin.source, name)?;
                    self.admit(&found)
                }
                None if matches!(object, Value::Instance(instance) if instance.exception) => {
                    self.exception_attribute(object, name)
                }
                None if let Some(value) = self.value_of(object) => self.attribute(&value, name),
                None => Err(self.missing(Some(object), class, name)),
            },
            Descriptor::BuiltinMethod => Ok(Value::Bound(Rc::new((object.clone(), name.clone())))),
            Descriptor::Value => self.wrap(found, &Rc::new(Source::ClassItem(class, name.clone()))),
            Descriptor::CachedProperty(function) => {
                let function = self.wrap(function, &Rc::new(Source::Fixed(function)))?;
                let value = self.call(&function, vec![object.clone()], Vec::new())?;
                let Value::Instance(instance) = object else {
                    return Err(self.stop("a cached property of an object that is not an instance"));
                };
                self.keep_attribute(&instance.clone(), object, name, Some(value.clone()));
                Ok(value)
            }
            Descriptor::Custom(_) => self.ask_descriptor(found, object.clone(), class),
            // A function that keeps its results.
            Descriptor::Other if self.host.class_name(self.host.class_of(found)) == "functools._lru_cache_wrapper" => {
                Ok(Value::Method(Rc::new((Value::Known(found, None), object.clone()))))
            }
            Descriptor::Other => {
                let text = self.describe(object);
                Err(self.stop(format!("the attribute {name} of {text}, which a descriptor computes")))
            }
        }
    }

    /// What `__get__` of a descriptor says for an object, or for the class where that is `None`.
    fn ask_descriptor(&mut self, descriptor: Object, object: Value, class: Object) -> Run<Value> {
        let getter = self.class_item(self.host.class_of(descriptor), "__get__");
        let getter = getter.ok_or_else(|| self.stop("a descriptor that computes nothing"))?;
        let getter = self.wrap(getter, &Rc::new(Source::Fixed(getter)))?;
        let descriptor = self.wrap(descriptor, &Rc::new(Source::Fixed(descriptor)))?;
        self.call(&getter, vec![descriptor, object, Value::Known(class, None)], Vec::new())
    }

    /// What a class, but no instance, has under a name.
    pub(super) fn class_attribute_of(&mut self, object: &Value, class: Object, name: &Rc<str>) -> Run<Value> {
        match self.class_item(class, name) {
            Some(found) => self.bind(object, found, class, name),
            None => Err(self.missing(Some(object), class, name)),
        }
    }

    fn instance_attribute(&mut self, value: &Value, instance: &Rc<InstanceValue>, name: &Rc<str>) -> Run<Value> {
        let class = instance.class;
        match &**name {
            "__class__" if self.is_array(class) => return self.class_of(value),
            "__class__" => {
                // A property of that name is what the object says of itself.
                return match self.class_item(class, name).map(|found| (found, self.host.descriptor(found))) {
                    Some((found, Descriptor::Property(_))) => self.bind(value, found, class, name),
                    _ => self.class_of(value),
                };
            }
            "dtype" if self.is_array(class) && !self.in_torch_numpy() => {
                return self.array_type(instance);
            }
            // Writing to it is writing to the object.
            "__dict__" => return self.dict_of(instance),
            "args" if instance.exception => return Ok(Value::tuple(instance.args.borrow().clone())),
            _ => {}
        }
        if let Some(getter) = self.class_item(class, "__getattribute__")
            && self.host.descriptor(getter) == Descriptor::Function
        {
            let getter = self.wrap(getter, &Rc::new(Source::Fixed(getter)))?;
            let named = self.text(name);
            return match self.call(&getter, vec![value.clone(), named], Vec::new()) {
                Err(super::Stop::Raise(exception)) => self.call_getattr(value, instance, name, exception),
                other => other,
            };
        }
        match self.plain_attribute(value, instance, name) {
            Err(super::Stop::Raise(exception)) => self.call_getattr(value, instance, name, exception),
            other => other,
        }
    }

    /// The `__dict__` of an object.
    pub(super) fn dict_of(&mut self, instance: &Rc<InstanceValue>) -> Run<Value> {
        if !instance.exception && self.has_dict(instance) {
            if let Some(origin) = &instance.origin
                && !self.host.is_by_thread(instance.class)
                && let Some(keeper) = self.keeper_of_attributes(origin.object)
            {
                let class = self.host.class_of(keeper);
                if Some(class) != self.host.member("builtins", "dict") {
                    return Err(self.stop("a __dict__ that is more than a dict"));
                }
                let source = Rc::new(Source::Attribute(origin.source.clone(), "__dict__".into()));
                self.guard(&source, Check::Class(class, None));
            }
            return Ok(Value::Members(instance.clone()));
        }
        self.attributes_of(instance)
    }

    /// What stands in the `__dict__` of an object from outside at this point.
    pub(super) fn attributes_of(&mut self, instance: &Rc<InstanceValue>) -> Run<Value> {
        let origin = instance.origin.as_ref().ok_or_else(|| self.stop("the __dict__ of an object"))?;
        let held = self.read_instance_entries(origin)?;
        let held = held.ok_or_else(|| self.stop("the __dict__ of an object that has none"))?;
        let mut entries = Entries::default();
        for (name, seen) in held {
            let named = self.text(&name);
            let hashed = self.key(&named)?;
            entries.set(hashed, named, self.lazily(seen));
        }
        let overlay: Vec<_> = instance.attributes.borrow().0.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
        for (name, value) in overlay {
            if self.is_slot(instance.class, &name) {
                continue;
            }
            let named = self.text(&name);
            let hashed = self.key(&named)?;
            match value {
                Some(value) => entries.set(hashed, named, value),
                None => {
                    entries.remove(hashed);
                }
            }
        }
        let class = self.host.member("types", "MappingProxyType");
        // Whoever gets hold of it has the dictionary itself, with what was set and removed.
        let origin = self.keeper_of_attributes(origin.object).map(|object| Origin {
            object,
            source: Rc::new(Source::Attribute(origin.source.clone(), "__dict__".into())),
        });
        let shown = Rc::new(DictValue { entries: RefCell::new(entries), class, origin, ..DictValue::default() });
        self.made_at.insert(Rc::as_ptr(&shown).addr(), self.root);
        Ok(Value::Dict(shown))
    }

    /// Whether instances keep an attribute in a slot.
    pub(super) fn is_slot(&self, class: Object, name: &str) -> bool {
        self.class_item(class, name).is_some_and(|found| self.host.descriptor(found) == Descriptor::Slot)
    }

    /// What the `__dict__` of an object holds under a name.
    pub(super) fn member_named(&mut self, instance: &Rc<InstanceValue>, name: &Rc<str>) -> Run<Option<Value>> {
        if self.is_slot(instance.class, name) {
            return Ok(None);
        }
        let overlay = instance.attributes.borrow().get(name).cloned();
        match overlay {
            Some(set) => set.map(|value| self.force(&value)).transpose(),
            None => self.instance_item(instance, name),
        }
    }

    /// What `__getattr__` gives for an attribute that was not found, if the class has one.
    fn call_getattr(
        &mut self,
        value: &Value,
        instance: &Rc<InstanceValue>,
        name: &Rc<str>,
        missing: Value,
    ) -> Run<Value> {
        let class = self.host.member("builtins", "AttributeError").map(|class| Value::Known(class, None));
        if let Some(getter) = self.class_item(instance.class, "__getattr__")
            && self.host.descriptor(getter) == Descriptor::Function
            && let Some(class) = class
            && self.exception_matches(&missing, &class)?
        {
            let own = !instance.torch_module || {
                let module = self.host.member("torch.nn", "Module");
                module.and_then(|module| self.class_item(module, "__getattr__")) != Some(getter)
            };
            if own {
                let getter = self.wrap(getter, &Rc::new(Source::Fixed(getter)))?;
                let named = self.text(name);
                return self.call(&getter, vec![value.clone(), named], Vec::new());
            }
        }
        Err(super::Stop::Raise(missing))
    }

    /// As `object.__getattribute__` finds attributes; for modules of torch with what they keep.
    pub(super) fn plain_attribute(
        &mut self,
        value: &Value,
        instance: &Rc<InstanceValue>,
        name: &Rc<str>,
    ) -> Run<Value> {
        let class = instance.class;
        let in_class = self.class_item(class, name);
        let descriptor = in_class.map(|found| self.host.descriptor(found));
        // A slot that the captured code has set is kept with the other attributes.
        let overlay = instance.attributes.borrow().get(name).cloned();
        if let Some(found) = in_class
            && matches!(
                descriptor,
                Some(Descriptor::Property(_) | Descriptor::Other | Descriptor::Custom(Precedence::Descriptor))
            )
        {
            return self.bind(value, found, class, name);
        }
        match overlay {
            Some(Some(value)) => return self.force(&value),
            Some(None) => {}
            None => {
                if let Some(Descriptor::Slot) = descriptor
                    && let Some(found) = in_class
                {
                    return self.bind(value, found, class, name);
                }
                if let Some(found) = self.instance_item(instance, name)? {
                    return Ok(found);
                }
            }
        }
        if let Some(set) = self.class_item_set(class, name) {
            return self.force(&set);
        }
        if let Some(found) = in_class
            && !matches!(descriptor, Some(Descriptor::Slot))
        {
            return self.bind(value, found, class, name);
        }
        if instance.torch_module {
            for kept in ["_parameters", "_buffers", "_modules"] {
                if let Some(found) = self.kept_by_module(instance, kept, name)? {
                    return Ok(found);
                }
            }
        }
        Err(self.missing(Some(value), class, name))
    }

    /// An item of an instance's own `__dict__`, as it was outside.
    fn instance_item(&mut self, instance: &InstanceValue, name: &Rc<str>) -> Run<Option<Value>> {
        let Some(origin) = &instance.origin else { return Ok(None) };
        match self.read_instance_item(origin.object, &origin.source, name) {
            Some(found) => self.admit(&found).map(Some),
            None => Ok(None),
        }
    }

    /// What a module of torch keeps in one of its dictionaries.
    pub(super) fn kept_by_module(
        &mut self,
        instance: &Rc<InstanceValue>,
        kept: &str,
        name: &Rc<str>,
    ) -> Run<Option<Value>> {
        let kept: Rc<str> = kept.into();
        // A dictionary that was not looked at as a whole is not guarded as a whole.
        if instance.attributes.borrow().get(&kept).is_none()
            && let Some(origin) = &instance.origin
            && let Some(held) = self.read_instance_item(origin.object, &origin.source, &kept)
            && !self.known.contains_key(&held.object)
        {
            return match self.read_module_item(&held, name) {
                Some(found) => self.admit(&found).map(Some),
                None => Ok(None),
            };
        }
        let overlay = instance.attributes.borrow().get(&kept).cloned().flatten();
        let dict = match overlay {
            Some(dict) => dict,
            None => match self.instance_item(instance, &kept)? {
                Some(dict) => dict,
                None => return Ok(None),
            },
        };
        let key = self.text(name);
        self.dict_get(&dict, &key)
    }

    /// `object.name = value`.
    pub(super) fn set_attribute(&mut self, object: &Value, name: &Rc<str>, value: Value) -> Run<()> {
        let instance = match object {
            Value::Instance(instance) => instance.clone(),
            Value::Function(function) if function.origin.is_none() && &**name == "__defaults__" => {
                let defaults = if self.is_none(&value) { Vec::new() } else { self.items_of(&value)? };
                if !matches!(value, Value::Tuple(_)) && !self.is_none(&value) {
                    return Err(self.stop("defaults of a function that are not a tuple"));
                }
                *function.defaults.borrow_mut() = defaults;
                return Ok(());
            }
            Value::Function(function)
                if function.origin.is_none()
                    && &**name == "__kwdefaults__"
                    && (self.is_none(&value) || matches!(value, Value::Dict(_))) =>
            {
                let defaults = if self.is_none(&value) { Vec::new() } else { self.keyword_items(&value)? };
                *function.keyword_defaults.borrow_mut() = defaults;
                return Ok(());
            }
            Value::Function(_) if matches!(&**name, "__defaults__" | "__kwdefaults__" | "__code__" | "__closure__") => {
                return Err(self.stop(format!("the attribute {name} of a function is set")));
            }
            Value::Function(function) if function.origin.is_none() => {
                function.attributes.borrow_mut().set(name, Some(value));
                return Ok(());
            }
            // The names of its own `__dict__`; others are kept elsewhere.
            Value::Function(function) if !name.starts_with("__") => {
                let function = function.clone();
                self.note_mutation(object);
                function.attributes.borrow_mut().set(name, Some(value));
                if !self.changed.iter().any(|known| known.identity() == object.identity()) {
                    self.changed.push(object.clone());
                }
                return Ok(());
            }
            Value::Cell(_) if &**name == "cell_contents" => return self.set_cell(object, Some(value)),
            Value::Partial(partial) if partial.origin.is_none() => {
                partial.attributes.borrow_mut().set(name, Some(value));
                return Ok(());
            }
            Value::Tensor(tensor) => {
                let tensor = tensor.clone();
                return self.set_on_tensor(object, &tensor, name, value);
            }
            Value::Tuple(_) | Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Deque(_) => {
                if let Some(setter) = self.own_accessor(object, "__setattr__")? {
                    let named = self.text(name);
                    return self.call(&setter, vec![named, value], Vec::new()).map(|_| ());
                }
                return self.set_own_attribute(object, name, Some(value));
            }
            Value::Known(class, _) if self.host.kind(*class) == Kind::Class => {
                return self.set_class_item(*class, name, value);
            }
            other => {
                return Err(self.stop(format!("the attribute {name} of {} is set", self.describe(other))));
            }
        };
        if &**name == "__dict__" {
            return Err(self.stop("the __dict__ of an object is replaced"));
        }
        let class = instance.class;
        let setter = self.class_item(class, "__setattr__");
        let usual = [
            ("builtins", "object"),
            ("builtins", "BaseException"),
            ("types", "SimpleNamespace"),
            ("_thread", "_local"),
        ];
        let usual = usual.iter().any(|(module, owner)| {
            let owner = self.host.member(module, owner);
            owner.and_then(|owner| self.class_item(owner, "__setattr__")) == setter
        });
        if !usual {
            let module = self.host.member("torch.nn", "Module");
            let of_module =
                instance.torch_module && module.and_then(|module| self.class_item(module, "__setattr__")) == setter;
            if of_module {
                return self.set_on_module(&instance, object, name, value);
            }
            let setter = setter.ok_or_else(|| self.stop("an object without __setattr__"))?;
            if self.host.descriptor(setter) != Descriptor::Function {
                return Err(self.stop(format!("{} has a custom __setattr__", self.host.class_name(class))));
            }
            let setter = self.wrap(setter, &Rc::new(Source::Fixed(setter)))?;
            let named = self.text(name);
            self.call(&setter, vec![object.clone(), named, value], Vec::new())?;
            return Ok(());
        }
        self.set_plainly(&instance, object, name, Some(value))
    }

    /// An attribute that the user hangs on a tensor, or the gradient of an input.
    fn set_on_tensor(&mut self, object: &Value, tensor: &Rc<TensorValue>, name: &Rc<str>, value: Value) -> Run<()> {
        let Value::Known(class, _) = self.class_of(object)? else { return Err(self.stop("a tensor without a class")) };
        let gradient =
            &**name == "grad" && tensor.origin.is_some() && (self.is_none(&value) || matches!(value, Value::Tensor(_)));
        if &**name == "data" {
            return self.set_data(object, &value);
        }
        if let ("requires_grad", Value::Known(wanted, _)) = (&**name, &value)
            && self.host.kind(*wanted) == Kind::Bool
        {
            let wanted = *wanted == self.host.bool(true);
            if self.requires_grad(object)? == wanted || self.switch_requires_grad(object, wanted)? {
                return Ok(());
            }
        }
        let hidden = self.class_item(class, name).map(|found| self.host.descriptor(found));
        let own_slot = tensor.class.is_some() && tensor.example.is_none() && hidden == Some(Descriptor::Slot) && {
            let torch = self.host.member("torch", "Tensor").ok_or_else(|| self.stop("a missing class"))?;
            self.class_item(torch, name).is_none()
        };
        if !gradient && hidden.is_some() && !own_slot {
            return Err(self.stop(format!("the attribute {name} of a tensor is set")));
        }
        tensor.attributes.borrow_mut().set(name, Some(value));
        if !tensor.changed.replace(true) && tensor.origin.is_some() {
            self.changed.push(object.clone());
        }
        self.note_mutation(object);
        Ok(())
    }

    /// As `object.__setattr__` and `object.__delattr__` do it.
    pub(super) fn set_plainly(
        &mut self,
        instance: &Rc<InstanceValue>,
        object: &Value,
        name: &Rc<str>,
        value: Option<Value>,
    ) -> Run<()> {
        self.note_mutation(object);
        if let Some(found) = self.class_item(instance.class, name) {
            match self.host.descriptor(found) {
                Descriptor::Property(_) => {
                    let accessor = if value.is_some() { "fset" } else { "fdel" };
                    let setter = self.constant(found, accessor)?;
                    if self.host.kind(setter) != Kind::Function {
                        return Err(self.stop(format!("the property {name} cannot be set")));
                    }
                    let setter = self.wrap(setter, &Rc::new(Source::Fixed(setter)))?;
                    let args = std::iter::once(object.clone()).chain(value).collect();
                    self.call(&setter, args, Vec::new())?;
                    return Ok(());
                }
                Descriptor::Custom(Precedence::Descriptor) => {
                    let accessor = if value.is_some() { "__set__" } else { "__delete__" };
                    let setter = self.class_item(self.host.class_of(found), accessor);
                    let setter = setter.filter(|setter| self.host.kind(*setter) == Kind::Function);
                    let setter = setter.ok_or_else(|| self.stop(format!("{name} is set through a descriptor")))?;
                    let setter = self.wrap(setter, &Rc::new(Source::Fixed(setter)))?;
                    let descriptor = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
                    let args = [descriptor, object.clone()].into_iter().chain(value).collect();
                    self.call(&setter, args, Vec::new())?;
                    return Ok(());
                }
                Descriptor::Other => return Err(self.stop(format!("{name} is set through a descriptor"))),
                _ => {}
            }
        }
        if instance.exception
            && &**name == "args"
            && let Some(args) = &value
        {
            let args = self.items_of(args)?;
            self.set_exception_args(instance, object, args);
            return Ok(());
        }
        // Python itself keeps where an exception was raised.
        if instance.exception && &**name == "__traceback__" && matches!(value, Some(Value::Unknown(_))) {
            return Ok(());
        }
        let known = value.is_none() || self.class_item(instance.class, name).is_some();
        if !known && !self.has_dict(instance) {
            let class = self.short_name(instance.class);
            return Err(self.no_attribute(Some(object), name, &format!("'{class}' object has no attribute '{name}'")));
        }
        self.keep_attribute(instance, object, name, value);
        Ok(())
    }

    /// Gives an exception its arguments.
    pub(super) fn set_exception_args(&mut self, instance: &Rc<InstanceValue>, object: &Value, args: Vec<Value>) {
        if instance.origin.is_some() {
            self.keep_attribute(instance, object, &"args".into(), Some(Value::tuple(args.clone())));
        }
        *instance.args.borrow_mut() = args;
    }

    /// Whether an object has a `__dict__`, not only slots.
    fn has_dict(&self, instance: &InstanceValue) -> bool {
        if self.class_item(instance.class, "__slots__").is_none() {
            return true;
        }
        match &instance.origin {
            Some(origin) => self.keeper_of_attributes(origin.object).is_some(),
            None => self.class_item(instance.class, "__dict__").is_some(),
        }
    }

    /// Notes what an object holds under a name from now on.
    pub(super) fn keep_attribute(
        &mut self,
        instance: &Rc<InstanceValue>,
        object: &Value,
        name: &Rc<str>,
        value: Option<Value>,
    ) {
        instance.attributes.borrow_mut().set(name, value);
        if instance.origin.is_some() && !instance.changed.replace(true) {
            self.changed.push(object.clone());
        }
    }

    fn set_on_module(&mut self, instance: &Rc<InstanceValue>, object: &Value, name: &Rc<str>, value: Value) -> Run<()> {
        let kept: Option<Rc<str>> = match &value {
            Value::Tensor(tensor) if tensor.parameter => Some("_parameters".into()),
            Value::Instance(held) if held.torch_module => Some("_modules".into()),
            _ => None,
        };
        if let Some(kept) = kept {
            // Another kind of attribute of that name would have to go first.
            let taken = self.member_named(instance, name)?.is_some();
            let mut elsewhere = false;
            for other in ["_parameters", "_buffers", "_modules"].into_iter().filter(|other| *other != &*kept) {
                elsewhere |= self.kept_by_module(instance, other, name)?.is_some();
            }
            let (Some(dict), false, false) = (self.member_named(instance, &kept)?, taken, elsewhere) else {
                return Err(self.stop(format!("the parameter or submodule {name} of a module is set")));
            };
            let key = self.text(name);
            return self.set_item(&dict, &key, value);
        }
        if self.kept_by_module(instance, "_parameters", name)?.is_some()
            || self.kept_by_module(instance, "_modules", name)?.is_some()
        {
            return Err(self.stop(format!("the parameter or submodule {name} of a module is set")));
        }
        if self.kept_by_module(instance, "_buffers", name)?.is_some() {
            let set = instance.attributes.borrow().get("_buffers").cloned().flatten();
            let buffers = match set {
                Some(buffers) => Some(buffers),
                None => self.instance_item(instance, &"_buffers".into())?,
            };
            let buffers = buffers.ok_or_else(|| self.stop("a module without buffers"))?;
            let key = self.text(name);
            return self.set_item(&buffers, &key, value);
        }
        self.set_plainly(instance, object, name, Some(value))
    }

    /// `del object.name`.
    pub(super) fn delete_attribute(&mut self, object: &Value, name: &Rc<str>) -> Run<()> {
        if let Value::Tuple(_) | Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Deque(_) = object {
            let Some(remover) = self.own_accessor(object, "__delattr__")? else {
                return self.set_own_attribute(object, name, None);
            };
            let named = self.text(name);
            return self.call(&remover, vec![named], Vec::new()).map(|_| ());
        }
        if let Value::Tensor(tensor) = object {
            // One that the captured code has set, and nobody before.
            let set = matches!(tensor.attributes.borrow().get(name), Some(Some(_)));
            let outside = match &tensor.origin {
                Some(origin) => self.read_instance_item(origin.object, &origin.source, name).is_some(),
                None => false,
            };
            if set && !outside && &**name != "grad" {
                tensor.attributes.borrow_mut().set(name, None);
                return Ok(());
            }
        }
        let Value::Instance(instance) = object else {
            return Err(self.stop(format!("the attribute {name} of {} is removed", self.describe(object))));
        };
        if instance.torch_module {
            return Err(self.stop(format!("the attribute {name} of a module is removed")));
        }
        if self.is_python_method(instance.class, "__delattr__") {
            let remover = self.class_attribute_of(object, instance.class, &"__delattr__".into())?;
            let named = self.text(name);
            self.call(&remover, vec![named], Vec::new())?;
            return Ok(());
        }
        self.remove_plainly(&instance.clone(), object, name)
    }

    /// As `object.__delattr__` does it: what is not there cannot be removed.
    pub(super) fn remove_plainly(&mut self, instance: &Rc<InstanceValue>, object: &Value, name: &Rc<str>) -> Run<()> {
        let found = self.class_item(instance.class, name).map(|found| self.host.descriptor(found));
        let held = match found {
            Some(Descriptor::Property(_) | Descriptor::Custom(Precedence::Descriptor)) => true,
            Some(Descriptor::Slot) => {
                self.plain_attribute(object, instance, name)?;
                true
            }
            _ => match instance.attributes.borrow().get(name).cloned() {
                Some(set) => set.is_some(),
                None => self.instance_item(instance, name)?.is_some(),
            },
        };
        if !held {
            return Err(self.missing(Some(object), instance.class, name));
        }
        self.set_plainly(instance, object, name, None)
    }

    /// A new object of a class, without attributes.
    pub(super) fn new_instance(&self, class: Object) -> Rc<InstanceValue> {
        let module = self.host.member("torch.nn", "Module");
        Rc::new(InstanceValue {
            born: Born::default(),
            class,
            origin: None,
            attributes: RefCell::default(),
            args: RefCell::default(),
            value: None,
            exception: false,
            torch_module: module.is_some_and(|module| self.host.derives(class, module)),
            changed: std::cell::Cell::new(false),
        })
    }
}

/// The attributes that were set on a container and removed since.
pub(super) fn attributes_of_container(value: &Value) -> Option<&RefCell<Attributes>> {
    match value {
        Value::Tuple(tuple) => Some(&tuple.attributes),
        Value::List(list) => Some(&list.attributes),
        Value::Dict(dict) => Some(&dict.attributes),
        Value::Set(set) => Some(&set.attributes),
        Value::Deque(deque) => Some(&deque.attributes),
        _ => None,
    }
}
