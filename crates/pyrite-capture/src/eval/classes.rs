//! Classes: what a value is an instance of, how instances are made, exceptions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::call::Keywords;
use super::{Evaluator, Frame, Run, Stop};
use crate::host::{Descriptor, Kind, Object};
use crate::source::Source;
use crate::value::{
    Born, DequeValue, DictValue, InstanceValue, Iterate, ListValue, Referent, SetValue, TupleValue, Value, View,
    WeakValue,
};

/// Classes whose instances are the one positional part of their patterns.
const MATCHES_ITSELF: [&str; 11] = [
    "builtins.bool",
    "builtins.bytearray",
    "builtins.bytes",
    "builtins.dict",
    "builtins.float",
    "builtins.frozenset",
    "builtins.int",
    "builtins.list",
    "builtins.set",
    "builtins.str",
    "builtins.tuple",
];

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
            Value::Tensor(tensor) => match (tensor.class, &tensor.origin) {
                (Some(class), _) => Ok(Value::Known(class, None)),
                (None, Some(origin)) => Ok(Value::Known(self.host.class_of(origin.object), None)),
                (None, None) => named(self, "torch", "Tensor"),
            },
            // Arrays are numpy's to whoever asks.
            Value::Instance(instance) if self.is_array(instance.class) => {
                if !self.in_torch_numpy() && self.is_scalar_of_numpy(instance)? {
                    let dtype = self.array_type(&instance.clone())?;
                    return self.attribute(&dtype, &"type".into());
                }
                named(self, "numpy", "ndarray")
            }
            Value::Instance(instance) => Ok(Value::Known(instance.class, None)),
            Value::Tuple(tuple) => match tuple.class {
                Some(class) => Ok(Value::Known(class, None)),
                None => named(self, "builtins", "tuple"),
            },
            Value::Dict(dict) => match dict.class {
                // The `__dict__` of an object or a function, which is only read.
                Some(_)
                    if dict.origin.as_ref().is_none_or(|o| self.host.kind(o.object) == Kind::Dict)
                        && dict.behind.is_none()
                        && dict.class == self.host.member("types", "MappingProxyType") =>
                {
                    named(self, "builtins", "dict")
                }
                Some(class) => Ok(Value::Known(class, None)),
                None => named(self, "builtins", "dict"),
            },
            Value::Members(_) => named(self, "builtins", "dict"),
            Value::Symbol(_) => named(self, "builtins", "int"),
            Value::Number(_) => named(self, "builtins", "float"),
            Value::Condition(_) => named(self, "builtins", "bool"),
            Value::List(list) => match list.class {
                Some(class) => Ok(Value::Known(class, None)),
                None => named(self, "builtins", "list"),
            },
            Value::Deque(deque) => match deque.class {
                Some(class) => Ok(Value::Known(class, None)),
                None => named(self, "collections", "deque"),
            },
            Value::View(view) => {
                let name = match view.view {
                    View::Keys => "dict_keys",
                    View::Values => "dict_values",
                    View::Items => "dict_items",
                };
                named(self, "_collections_abc", name)
            }
            Value::Set(set) => match set.class {
                Some(class) => Ok(Value::Known(class, None)),
                None => named(self, "builtins", if set.frozen { "frozenset" } else { "set" }),
            },
            Value::Slice(_) => named(self, "builtins", "slice"),
            Value::Function(_) => named(self, "types", "FunctionType"),
            Value::Method(_) => named(self, "types", "MethodType"),
            Value::Bound(_) => named(self, "types", "BuiltinMethodType"),
            Value::Cell(_) => named(self, "types", "CellType"),
            Value::Partial(_) => named(self, "functools", "partial"),
            Value::Iterator(iterator) if iterator.generator => named(self, "types", "GeneratorType"),
            Value::Iterator(iterator) => match &*iterator.state.borrow() {
                Iterate::Zip(..) => named(self, "builtins", "zip"),
                Iterate::Enumerate(..) => named(self, "builtins", "enumerate"),
                Iterate::Map(..) => named(self, "builtins", "map"),
                Iterate::Filter(..) => named(self, "builtins", "filter"),
                Iterate::Count(..) => named(self, "itertools", "count"),
                Iterate::Generator(_) | Iterate::List(..) | Iterate::Items(..) | Iterate::Watched(..) => {
                    Err(self.stop("the class of an iterator"))
                }
            },
            Value::Context(context) => Ok(Value::Known(context.class, None)),
            Value::Address(_) => named(self, "builtins", "int"),
            Value::Weak(_) => named(self, "weakref", "ReferenceType"),
            Value::Unknown(what) => Err(self.stop(format!("the class of {what}"))),
            Value::Super(_) | Value::Null => Err(self.stop("the class of a value that has none")),
        }
    }

    /// Whether a class is the one that stands for numpy's arrays.
    pub(super) fn is_array(&self, class: Object) -> bool {
        self.host.class_name(class) == "torch._numpy._ndarray.ndarray"
    }

    /// Whether an array stands for a number of numpy's: what its functions compute and pick is one where it has no dimensions.
    pub(super) fn is_scalar_of_numpy(&self, array: &InstanceValue) -> Run<bool> {
        let Value::Tensor(tensor) = self.tensor_of_array(array)? else { return Ok(false) };
        Ok(array.origin.is_none() && self.tensor_meta(tensor.node)?.shape.is_empty())
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
            Value::Known(class, _) if self.is_array(*class) => {
                Ok(matches!(value, Value::Instance(instance) if self.is_array(instance.class)))
            }
            Value::Known(class, _) if self.host.kind(*class) == Kind::Tuple => {
                for item in self.constant_items(*class) {
                    if self.is_instance(value, &Value::Known(item, None))? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Known(class, _) if self.host.kind(*class) == Kind::Class => self.is_instance_of(value, *class),
            Value::Known(class, _) if self.host.class_name(self.host.class_of(*class)).starts_with("typing.") => {
                let origin = self.constant(*class, "__origin__")?;
                self.is_instance(value, &Value::Known(origin, None))
            }
            Value::Known(class, _) => {
                // `int | float`
                let args = self.constant(*class, "__args__")?;
                self.is_instance(value, &Value::Known(args, None))
            }
            // `typing.Hashable` and its like stand for classes.
            Value::Instance(alias) if self.host.class_name(alias.class).starts_with("typing.") => {
                let origin = self.attribute(classes, &"__origin__".into())?;
                self.is_instance(value, &origin)
            }
            other => Err(self.stop(format!("isinstance with {}", self.describe(other)))),
        }
    }

    /// `isinstance(value, class)` for one class.
    fn is_instance_of(&mut self, value: &Value, class: Object) -> Run<bool> {
        let Value::Known(of, _) = self.class_of(value)? else {
            return Err(self.stop("isinstance of a value without a class"));
        };
        if Some(class) == self.host.member("torch.nn", "Parameter") {
            return Ok(matches!(value, Value::Tensor(tensor) if tensor.parameter));
        }
        if of == class {
            return Ok(true);
        }
        if self.host.class_name(self.host.class_of(class)) == "torch.tensortype" {
            return self.is_of_tensor_type(value, class);
        }
        if let Some(answer) = self.asked_metaclass(class, "__instancecheck__", value)? {
            return Ok(answer);
        }
        if self.is_subclass(of, class) {
            return Ok(true);
        }
        // An object may say that it is of another class.
        if matches!(value, Value::Instance(_))
            && let Value::Known(said, _) = self.attribute(value, &"__class__".into())?
            && said != of
        {
            return Ok(self.is_subclass(said, class));
        }
        Ok(false)
    }

    /// `isinstance(value, torch.FloatTensor)` and the like.
    fn is_of_tensor_type(&mut self, value: &Value, class: Object) -> Run<bool> {
        let Value::Tensor(_) = value else { return Ok(false) };
        let name = self.host.class_name(class);
        let said = self.call_polyfill("torch.Tensor.type", vec![value.clone()], Vec::new())?;
        match said {
            Some(Value::Known(said, _)) => Ok(self.host.as_str(said).is_some_and(|said| *said == *name)),
            _ => Err(self.stop("the type of a tensor")),
        }
    }

    /// `issubclass(class, base)` for one base.
    pub(super) fn is_subclass_of(&mut self, class: Object, base: Object) -> Run<bool> {
        if let Some(answer) = self.asked_metaclass(base, "__subclasscheck__", &Value::Known(class, None))? {
            return Ok(answer);
        }
        Ok(self.is_subclass(class, base))
    }

    /// What the metaclass of a class says, where it has its own way to tell who belongs to the class.
    fn asked_metaclass(&mut self, class: Object, name: &str, subject: &Value) -> Run<Option<bool>> {
        let meta = self.host.class_of(class);
        let usual = self.host.member("builtins", "type");
        let found = self.class_item(meta, name);
        if Some(meta) == usual || found == usual.and_then(|usual| self.class_item(usual, name)) {
            return Ok(None);
        }
        let abstract_class = self.host.member("abc", "ABCMeta");
        if found == abstract_class.and_then(|known| self.class_item(known, name)) {
            // Its own rule, if the user has written one, may look at anything.
            let hook = self.class_item(class, "__subclasshook__");
            let hook = hook.map(|hook| self.host.descriptor(hook));
            if let Some(Descriptor::ClassMethod(hook)) = hook
                && let Some(parts) = self.function_code(hook)
                && !parts.file.contains("_collections_abc")
                && !parts.file.ends_with("typing.py")
            {
                return Err(
                    self.stop(format!("{} has custom instance or subclass checks", self.host.class_name(class)))
                );
            }
            return Ok(None);
        }
        match found {
            Some(found) if self.host.descriptor(found) == Descriptor::Function => {
                let function = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
                let answer = self.call(&function, vec![Value::Known(class, None), subject.clone()], Vec::new())?;
                self.is_true(&answer).map(Some)
            }
            // torch's metaclass of tensors answers as `type` does, except for the classes that stand for element types.
            _ if self.host.class_name(meta) == "torch._C._TensorMeta" => Ok(None),
            _ => Err(self.stop(format!("{} has custom instance or subclass checks", self.host.class_name(class)))),
        }
    }

    /// The code of a function written in Python.
    fn function_code(&self, function: Object) -> Option<Rc<crate::code::Code>> {
        let code = self.constant(function, "__code__").ok()?;
        self.host.code(code)
    }

    /// An exception that the captured code made.
    pub(super) fn exception(&self, class: Object, args: Vec<Value>) -> Value {
        Value::Instance(Rc::new(InstanceValue {
            born: Born::default(),
            class,
            origin: None,
            attributes: RefCell::default(),
            args: RefCell::new(args),
            value: None,
            exception: true,
            torch_module: false,
            changed: Cell::new(false),
        }))
    }

    /// Whether instances of a class are exceptions.
    pub(super) fn is_exception_class(&self, class: Object) -> bool {
        self.host.member("builtins", "BaseException").is_some_and(|base| self.host.derives(class, base))
    }

    /// A described exception for a real one that C code of Python's own raised; others stay as they are.
    pub(super) fn exception_of(&self, object: Object) -> Value {
        if self.host.kind(object) != Kind::Exception {
            return Value::Known(object, None);
        }
        let args = self.constant(object, "args").map(|args| self.constant_items(args)).unwrap_or_default();
        let args = args.into_iter().map(|arg| Value::Known(arg, None)).collect();
        let made = self.exception(self.host.class_of(object), args);
        if let (Value::Instance(error), Ok(name)) = (&made, self.constant(object, "name")) {
            error.attributes.borrow_mut().set(&"name".into(), Some(Value::Known(name, None)));
        }
        made
    }

    /// What C code keeps for every exception.
    pub(super) fn exception_attribute(&mut self, value: &Value, name: &Rc<str>) -> Run<Value> {
        let Value::Instance(instance) = value else {
            return Err(self.stop("raising an object that is not an exception"));
        };
        let held = |name: &str| instance.attributes.borrow().get(name).cloned().flatten();
        match &**name {
            "__context__" | "__cause__" => Ok(held(name).unwrap_or_else(|| self.none())),
            "__suppress_context__" => {
                let set = held("__cause__").is_some();
                Ok(self.bool(set))
            }
            // One that was raised has a context, if only `None`.
            "__traceback__" if held("__context__").is_some() => Ok(Value::Unknown("a traceback".into())),
            "__traceback__" => Ok(self.none()),
            "value" if self.host.class_name(instance.class) == "builtins.StopIteration" => {
                Ok(instance.args.borrow().first().cloned().unwrap_or_else(|| self.none()))
            }
            _ => Err(self.stop(format!("the attribute {name} of an exception"))),
        }
    }

    /// The exception that is being handled, in this frame or in one that called it.
    pub(super) fn handled_now(&self, frame: &Frame) -> Option<Value> {
        let own = frame.handled.iter().rev().flatten().next().cloned();
        own.or_else(|| self.handled_outside.last().cloned().flatten())
    }

    /// Notes what was being handled when an exception was raised, as Python does.
    pub(super) fn give_context(&mut self, frame: &Frame, exception: &Value, again: bool) -> Run<()> {
        let Value::Instance(raised) = exception else { return Ok(()) };
        if !raised.exception || raised.origin.is_some() {
            return Ok(());
        }
        // Where it is raised becomes its traceback, whatever it was set to be before.
        raised.attributes.borrow_mut().forget("__traceback__");
        let context: Rc<str> = "__context__".into();
        let known = raised.attributes.borrow().get(&context).is_some();
        if known && !again {
            return Ok(());
        }
        let Some(handled) = self.handled_now(frame) else {
            if !known {
                // One that is handled outside would be its context.
                let question =
                    self.host.member("sys", "exception").ok_or_else(|| self.stop("sys.exception is missing"))?;
                let outside = self.ask_state(question)?;
                if !self.is_none(&outside) {
                    return Err(self.stop("an exception that is raised while another is handled outside"));
                }
                let none = self.none();
                raised.attributes.borrow_mut().set(&context, Some(none));
            }
            return Ok(());
        };
        if handled.identity() == exception.identity() {
            return Ok(());
        }
        // A chain that led back to the exception is cut there. One that leads back to itself was made by hand.
        let mut link = handled.clone();
        let mut seen = FxHashSet::default();
        while let Value::Instance(held) = &link.clone() {
            if !seen.insert(link.identity()) {
                break;
            }
            let next = held.attributes.borrow().get(&context).cloned().flatten();
            let Some(next) = next else { break };
            if next.identity().is_some() && next.identity() == exception.identity() {
                held.attributes.borrow_mut().set(&context, Some(self.none()));
                break;
            }
            link = next;
        }
        raised.attributes.borrow_mut().set(&context, Some(handled));
        Ok(())
    }

    /// `class(*args, **kwargs)` for a class that is not built into Python.
    pub(super) fn construct(&mut self, class: Object, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let base = |this: &Self, name: &str| this.host.member("builtins", name).unwrap_or(Object(0));
        let name = self.host.class_name(class);
        let meta = self.host.class_of(class);
        let own_call = self.class_item(meta, "__call__");
        if own_call != self.class_item(base(self, "type"), "__call__") {
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
            return Err(self.stop(format!("constructing {name}, which has a custom metaclass")));
        }
        self.construct_plainly(class, args, kwargs)
    }

    /// `weakref.ref(referent, callback)`. Nobody is called back for what ends inside of a frame, so that a callback goes with
    /// what exists outside only.
    fn weak_reference(&self, args: &[Value]) -> Option<Value> {
        let (referent, callback) = match args {
            [referent] => (referent, None),
            [referent, callback] => (referent, Some(callback.clone()).filter(|callback| !self.is_none(callback))),
            _ => return None,
        };
        let referent = match referent {
            Value::Instance(instance) if instance.origin.is_none() && callback.is_none() => {
                let refused = self.class_item(instance.class, "__weakref__").is_none();
                if refused {
                    return None;
                }
                Referent::Made(Rc::downgrade(instance))
            }
            Value::Instance(_) | Value::Tensor(_) | Value::Function(_)
                if super::wrap::origin_of(referent).is_some() =>
            {
                Referent::Outside(referent.clone())
            }
            Value::Known(class, _) if self.host.kind(*class) == Kind::Class => Referent::Outside(referent.clone()),
            _ => return None,
        };
        Some(Value::Weak(Rc::new(WeakValue { referent, callback })))
    }

    /// Whether an object is a weak reference.
    pub(super) fn is_weak_reference(&self, object: Object) -> bool {
        self.host.class_name(self.host.class_of(object)) == "weakref.ReferenceType"
    }

    /// The class that a group of exceptions is of, which depends on what it holds; for other exceptions their class.
    fn class_of_group(&mut self, class: Object, args: &[Value]) -> Run<Object> {
        let base = |this: &Self, name: &str| this.host.member("builtins", name).unwrap_or(Object(0));
        let (any, usual) = (base(self, "BaseExceptionGroup"), base(self, "ExceptionGroup"));
        if !self.host.derives(class, any) || self.class_item(class, "__new__") != self.class_item(any, "__new__") {
            return Ok(class);
        }
        let [message, held] = args else { return Err(self.stop("the arguments of a group of exceptions")) };
        if self.name_of(message).is_none() || !matches!(held, Value::List(_) | Value::Tuple(_)) {
            return Err(self.stop("the arguments of a group of exceptions"));
        }
        let held = self.items_of(held)?;
        if held.is_empty() {
            return Err(self.raise("ValueError", "second argument (exceptions) must be a non-empty sequence"));
        }
        let mut plain = true;
        for (place, item) in held.iter().enumerate() {
            let of = match self.class_of(item)? {
                Value::Known(of, _) if self.is_exception_class(of) => of,
                _ => {
                    let message = format!("Item {place} of second argument (exceptions) is not an exception");
                    return Err(self.raise("ValueError", &message));
                }
            };
            plain &= self.host.derives(of, base(self, "Exception"));
        }
        if class == any && plain {
            return Ok(usual);
        }
        if class == usual && !plain {
            return Err(self.raise("TypeError", "Cannot nest BaseExceptions in an ExceptionGroup"));
        }
        let mixed = !plain && self.host.derives(class, base(self, "Exception"));
        if mixed { Err(self.stop("a group of exceptions that end a program")) } else { Ok(class) }
    }

    /// As `type.__call__` makes an object.
    pub(super) fn construct_plainly(&mut self, class: Object, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let base = |this: &Self, name: &str| this.host.member("builtins", name).unwrap_or(Object(0));
        let exception = self.host.derives(class, base(self, "BaseException"));
        let name = self.host.class_name(class);
        if self.class_item(class, "__del__").is_some() {
            return Err(self.stop(format!("constructing {name}, which has a finalizer")));
        }
        if let Some(missing) = self.class_item(class, "__abstractmethods__")
            && !self.constant_items(missing).is_empty()
            && let Some(maker) = self.host.member("builtins", "object").and_then(|o| self.class_item(o, "__new__"))
        {
            // It says which methods are missing.
            return match self.host.call(maker, &[class], &[]) {
                Err(raised) => Err(self.raised(raised)),
                Ok(_) => Err(self.stop(format!("constructing {name}, which is abstract"))),
            };
        }
        // By its number an error of the system is of a class derived from `OSError`.
        if name == "builtins.OSError" && args.len() > 1 {
            return Err(self.stop("constructing an OSError from an errno"));
        }
        if name == "types.SimpleNamespace" && args.is_empty() {
            let made = self.new_instance(class);
            for (name, value) in kwargs {
                made.attributes.borrow_mut().set(&name, Some(value));
            }
            return Ok(Value::Instance(made));
        }
        if name == "numpy.dtype"
            && kwargs.is_empty()
            && let Some((plain, _)) = self.plain_arguments(&args, &kwargs)?
        {
            return self.host.call(class, &plain, &[]).map(|made| Value::Known(made, None)).map_err(|r| self.raised(r));
        }
        if name == "random.Random"
            && kwargs.is_empty()
            && let Some(generator) = self.new_random(class, &args)?
        {
            return Ok(generator);
        }
        if let Some(number) = self.construct_number(class, &args, &kwargs)? {
            return Ok(number);
        }
        if name == "builtins.cell" && args.len() <= 1 && kwargs.is_empty() {
            return Ok(super::step::new_cell(args.into_iter().next()));
        }
        if name == "builtins.method"
            && let [function, receiver] = args.as_slice()
        {
            return Ok(Value::Method(Rc::new((function.clone(), receiver.clone()))));
        }
        if let Some(kind) = self.host.container_kind(class) {
            return self.construct_container(class, kind, args, kwargs);
        }
        if name == "weakref.ReferenceType"
            && kwargs.is_empty()
            && let Some(reference) = self.weak_reference(&args)
        {
            return Ok(reference);
        }
        if name == "builtins.mappingproxy"
            && let [dict @ Value::Dict(_)] = args.as_slice()
        {
            let behind = Some(dict.clone());
            return Ok(Value::Dict(Rc::new(DictValue { class: Some(class), behind, ..DictValue::default() })));
        }
        if let Some(context) = self.construct_context(class, &args, &kwargs)? {
            return Ok(context);
        }
        let class = if exception { self.class_of_group(class, &args)? } else { class };
        let new = self.class_item(class, "__new__");
        let usual_new = [base(self, "object"), base(self, "BaseException")]
            .iter()
            .any(|owner| self.class_item(*owner, "__new__") == new);
        let in_python = new
            .is_some_and(|new| matches!(self.host.descriptor(new), Descriptor::StaticMethod(_) | Descriptor::Function));
        let mut initialised = class;
        let made = if let Some(value) = self.value_base(class).filter(|_| !in_python && kwargs.is_empty())
            && !self.host.is_value_class(class)
        {
            self.new_value(class, value, args.clone())?
        } else if usual_new {
            if exception { self.exception(class, args.clone()) } else { Value::Instance(self.new_instance(class)) }
        } else if let Some(new) = new
            && exception
            && !matches!(self.host.descriptor(new), Descriptor::StaticMethod(_) | Descriptor::Function)
        {
            self.exception(class, args.clone())
        } else if let Some(new) = new
            && !matches!(self.host.descriptor(new), Descriptor::StaticMethod(_) | Descriptor::Function)
            && self.host.derives(class, base(self, "tuple"))
            && kwargs.is_empty()
        {
            let items = match args.first() {
                Some(items) => self.items_of(items)?,
                None => Vec::new(),
            };
            Value::Tuple(Rc::new(TupleValue { items, class: Some(class), ..TupleValue::default() }))
        } else if let Some(new) = new
            && !matches!(self.host.descriptor(new), Descriptor::StaticMethod(_) | Descriptor::Function)
            && self.host.is_value_class(class)
            && let Some(plain) = args.iter().map(|arg| self.real(arg)).collect::<Run<Option<Vec<Object>>>>()?
            && let Some((_, named)) = self.plain_arguments(&[], &kwargs)?
        {
            let plain: Vec<Object> = std::iter::once(class).chain(plain).collect();
            Value::Known(self.host.call(new, &plain, &named).map_err(|r| self.raised(r))?, None)
        } else {
            let Some(new) = new else { return Err(self.stop(format!("{name} cannot be created"))) };
            let function = match self.host.descriptor(new) {
                Descriptor::StaticMethod(function) => function,
                Descriptor::Function => new,
                _ => return Err(self.stop(format!("constructing {name}"))),
            };
            let function = self.wrap(function, &Rc::new(Source::Fixed(function)))?;
            let all = std::iter::once(Value::Known(class, None)).chain(args.iter().cloned()).collect();
            let made = self.call(&function, all, kwargs.clone())?;
            let of = match &made {
                Value::Instance(instance) => Some(instance.class),
                Value::Tensor(tensor) => tensor.class,
                Value::Tuple(tuple) => tuple.class,
                Value::Known(object, _) => Some(self.host.class_of(*object)),
                _ => None,
            };
            // What is of another class was initialised by whoever made it; an instance of a derived class was not.
            match of.filter(|of| self.host.derives(*of, class)) {
                None => return Ok(made),
                Some(derived) => initialised = derived,
            }
            made
        };
        let Some(init) = self.class_item(initialised, "__init__") else { return Ok(made) };
        if self.host.descriptor(init) == Descriptor::Function {
            let init = self.wrap(init, &Rc::new(Source::Fixed(init)))?;
            let all = std::iter::once(made.clone()).chain(args).collect();
            let result = self.call(&init, all, kwargs)?;
            if !self.is_none(&result) {
                let Value::Known(class, _) = self.class_of(&result)? else { return Err(self.stop("a class")) };
                let class = self.host.class_name(class);
                let class = class.rsplit('.').next().unwrap_or_default();
                return Err(self.raise("TypeError", &format!("__init__() should return None, not '{class}'")));
            }
        } else if !exception {
            let torch = self.host.member("torch", "Tensor").and_then(|tensor| self.class_item(tensor, "__init__"));
            if self.class_item(base(self, "object"), "__init__") != Some(init) && torch != Some(init) {
                return Err(self.stop(format!("constructing {name}")));
            }
            if usual_new && (!args.is_empty() || !kwargs.is_empty()) {
                let short = name.rsplit('.').next().unwrap_or_default();
                return Err(self.raise("TypeError", &format!("{short}() takes no arguments")));
            }
        }
        Ok(made)
    }

    /// A number of numpy, made from one of Python; nothing for other classes.
    fn construct_number(&mut self, class: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let generic = self.host.member("numpy", "number");
        if !generic.is_some_and(|generic| self.host.derives(class, generic)) {
            return Ok(None);
        }
        let ([arg], true) = (args, kwargs.is_empty()) else { return Ok(None) };
        let Some(plain) = self.plain_guarded(arg)? else { return Ok(None) };
        let made = self.host.call(class, &[plain], &[]).map_err(|r| self.raised(r))?;
        Ok((self.host.kind(made) == Kind::Plain).then_some(Value::Known(made, None)))
    }

    /// A container of a class of the user's.
    fn construct_container(&mut self, class: Object, kind: Kind, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let new = self.class_item(class, "__new__").map(|new| self.host.descriptor(new));
        let made = match new {
            Some(Descriptor::StaticMethod(function)) => {
                let function = self.wrap(function, &Rc::new(Source::Fixed(function)))?;
                let all = std::iter::once(Value::Known(class, None)).chain(args.iter().cloned()).collect();
                let made = self.call(&function, all, kwargs.clone())?;
                if !matches!(self.class_of(&made)?, Value::Known(of, _) if self.host.derives(of, class)) {
                    return Ok(made);
                }
                made
            }
            _ => self.empty_container(class, kind)?,
        };
        let init = match self.overridden(&made, "__init__")? {
            Some(init) => init,
            None => Value::Bound(Rc::new((made.clone(), "__init__".into()))),
        };
        self.call(&init, args, kwargs)?;
        Ok(made)
    }

    /// A container of a class of the user's that holds nothing yet.
    pub(super) fn empty_container(&mut self, class: Object, kind: Kind) -> Run<Value> {
        let class = Some(class);
        Ok(match kind {
            Kind::List => Value::List(Rc::new(ListValue { class, ..ListValue::default() })),
            Kind::Dict => Value::Dict(Rc::new(DictValue { class, ..DictValue::default() })),
            Kind::Set => Value::Set(Rc::new(SetValue { class, ..SetValue::default() })),
            Kind::Deque => Value::Deque(Rc::new(DequeValue { class, ..DequeValue::default() })),
            _ => return Err(self.stop("constructing a user-defined container")),
        })
    }

    pub(super) fn raise_instruction(&mut self, frame: &mut Frame, count: usize) -> Run<Stop> {
        let cause = if count == 2 { Some(frame.pop()) } else { None };
        if count == 0 {
            return Ok(match self.handled_now(frame) {
                Some(exception) => Stop::Raise(exception),
                None => self.raise("RuntimeError", "No active exception to reraise"),
            });
        }
        let raised = frame.pop();
        let exception = self.raised_value(&raised, "exceptions must derive from BaseException")?;
        if let (Some(cause), Value::Instance(instance)) = (cause, &exception) {
            let cause = if self.is_none(&cause) {
                cause
            } else {
                self.raised_value(&cause, "exception causes must derive from BaseException")?
            };
            let suppress = self.bool(true);
            let mut attributes = instance.attributes.borrow_mut();
            attributes.set(&"__cause__".into(), Some(cause));
            attributes.set(&"__suppress_context__".into(), Some(suppress));
        }
        self.give_context(frame, &exception, true)?;
        Ok(Stop::Raise(exception))
    }

    /// What is raised: an exception, or one made from its class.
    pub(super) fn raised_value(&mut self, raised: &Value, refusal: &str) -> Run<Value> {
        let base = self.host.member("builtins", "BaseException").ok_or_else(|| self.stop("a missing class"))?;
        let exception = match raised {
            Value::Known(object, _) if self.host.kind(*object) == Kind::Class => {
                if !self.host.derives(*object, base) {
                    return Err(self.raise("TypeError", refusal));
                }
                self.call(raised, Vec::new(), Vec::new())?
            }
            other => other.clone(),
        };
        // Raising one that exists would give it a context and a traceback.
        if let Value::Instance(instance) = &exception
            && instance.origin.is_some()
            && instance.exception
        {
            return Err(self.stop("an exception from outside is raised"));
        }
        match self.class_of(&exception)? {
            Value::Known(class, _) if self.host.derives(class, base) => Ok(exception),
            _ => Err(self.raise("TypeError", refusal)),
        }
    }

    /// Whether an `except` of these classes catches an exception. No metaclass is asked.
    pub(super) fn exception_matches(&mut self, exception: &Value, classes: &Value) -> Run<bool> {
        let several = match classes {
            Value::Tuple(_) => self.items_of(classes)?,
            Value::Known(object, _) if self.host.kind(*object) == Kind::Tuple => {
                self.constant_items(*object).into_iter().map(|class| Value::Known(class, None)).collect()
            }
            one => vec![one.clone()],
        };
        let base = self.host.member("builtins", "BaseException").ok_or_else(|| self.stop("a missing class"))?;
        let Value::Known(of, _) = self.class_of(exception)? else { return Err(self.stop("an exception")) };
        let mut matches = false;
        for class in several {
            match class {
                Value::Known(class, _) if self.host.kind(class) == Kind::Class && self.host.derives(class, base) => {
                    matches |= self.host.derives(of, class);
                }
                _ => {
                    let message = "catching classes that do not inherit from BaseException is not allowed";
                    return Err(self.raise("TypeError", message));
                }
            }
        }
        Ok(matches)
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
            match self.class_item(*object, "__match_args__") {
                Some(fields) => {
                    if self.constant_items(fields).len() < positional {
                        return Err(self.stop("a pattern with more positional parts than its class has"));
                    }
                    for field in self.constant_items(fields).into_iter().take(positional) {
                        let Some(name) = self.host.as_str(field) else { continue };
                        match self.attribute_if_any(subject, &name)? {
                            Some(value) => values.push(value),
                            None => return Ok(None),
                        }
                    }
                }
                None if positional == 1 && MATCHES_ITSELF.contains(&&*self.host.class_name(*object)) => {
                    values.push(subject.clone());
                }
                None => return Err(self.stop("a pattern with several positional parts")),
            }
        }
        for name in self.items_of(names)? {
            let Value::Known(name, _) = name else { continue };
            let Some(name) = self.host.as_str(name) else { continue };
            match self.attribute_if_any(subject, &name)? {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(Value::tuple(values)))
    }
}
