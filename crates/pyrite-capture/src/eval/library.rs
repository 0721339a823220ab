//! Functions of Python's library and of torch that the evaluator answers itself, by modules.

use std::cell::RefCell;
use std::rc::Rc;

use super::call::Keywords;
use super::compare::is_number;
use super::{Evaluator, Run};
use crate::host::{Kind, Object};
use crate::source::Source;
use crate::value::{DictValue, Iterate, PartialValue, TupleValue, Value};

impl Evaluator<'_, '_> {
    /// Functions of Python's library that are more than arithmetic.
    pub(super) fn call_library(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let module = name.split('.').next().unwrap_or_default();
        match module {
            "operator" => self.call_operator(name, args, kwargs),
            "math" => self.call_math(name, args, kwargs),
            "torch" => self.call_question_of_torch(name, args, kwargs),
            _ if name == "types.MappingProxyType" || module == "collections" => {
                self.make_library_container(name, args, kwargs)
            }
            "dataclasses" | "inspect" | "typing" => self.describe_signature(name, args),
            "sys" | "warnings" => self.ask_about_process(name, args, kwargs),
            _ => self.call_rest_of_library(name, args, kwargs),
        }
    }

    /// Functions of the module `operator`.
    fn call_operator(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("operator.getitem", [object, key]) => self.get_item(object, key)?,
            ("operator.setitem", [object, key, value]) => {
                self.set_item(object, key, value.clone())?;
                self.none()
            }
            ("operator.delitem", [object, key]) => {
                self.delete_item(object, key)?;
                self.none()
            }
            ("operator.concat", [left, right]) => self.binary("add", left, right)?,
            ("operator.iconcat", [left, right]) => self.binary_in_place("add", left, right)?,
            ("operator.call", [function, rest @ ..]) => self.call(function, rest.to_vec(), kwargs.clone())?,
            ("operator.countOf" | "operator.indexOf", [items, wanted]) => {
                let iterator = self.iterator(items)?;
                let (mut count, mut place) = (0, 0);
                while let Some(item) = self.next(&iterator)? {
                    if self.is_same_or_equal(&item, wanted)? {
                        count += 1;
                        if name == "operator.indexOf" {
                            return Ok(Some(self.int(place)));
                        }
                    }
                    place += 1;
                }
                if name == "operator.indexOf" {
                    return Err(self.raise("ValueError", "sequence.index(x): x not in sequence"));
                }
                self.int(count)
            }
            ("operator.contains", [object, item]) => {
                let found = self.contains(object, item)?;
                self.bool(found)
            }
            ("operator.is_", [left, right]) => {
                let same = self.is_same(left, right)?;
                self.bool(same)
            }
            ("operator.is_not", [left, right]) => {
                let same = self.is_same(left, right)?;
                self.bool(!same)
            }
            ("operator.not_", [value]) => {
                let is_true = self.is_true(value)?;
                self.bool(!is_true)
            }
            ("operator.truth", [value]) => {
                let is_true = self.is_true(value)?;
                self.bool(is_true)
            }
            ("operator.eq" | "operator.ne" | "operator.lt" | "operator.le" | "operator.gt" | "operator.ge", [l, r]) => {
                self.compare(name.trim_start_matches("operator."), l, r)?
            }
            ("operator.neg" | "operator.pos" | "operator.invert", [value]) => {
                self.unary(name.trim_start_matches("operator."), value)?
            }
            (operator, [left, right]) if operator.starts_with("operator.") => {
                let stem = operator.trim_start_matches("operator.");
                if crate::opcode::BINARY.contains(&stem) {
                    self.binary(stem, left, right)?
                } else if let Some(stem) = stem.strip_prefix('i')
                    && let Some(known) = crate::opcode::BINARY.iter().find(|known| known.trim_end_matches('_') == stem)
                {
                    self.binary_in_place(known, left, right)?
                } else {
                    return Ok(None);
                }
            }
            _ => return Ok(None),
        }))
    }

    /// Functions of the module `math` on what only a call knows.
    fn call_math(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("math.prod", [factors]) if !matches!(factors, Value::Tensor(_)) => {
                let start = kwargs.iter().find(|(key, _)| &**key == "start").map(|(_, value)| value.clone());
                let mut product = start.unwrap_or_else(|| self.int(1));
                let iterator = self.iterator(factors)?;
                while let Some(factor) = self.next(&iterator)? {
                    if matches!(factor, Value::Tensor(_)) {
                        return Ok(None);
                    }
                    product = self.binary("mul", &product, &factor)?;
                }
                product
            }
            (_, [value @ (Value::Symbol(_) | Value::Number(_))])
                if name.starts_with("math.")
                    && let Some(number) = self.math_of_number(name, value)? =>
            {
                number
            }
            ("math.pow", [base @ (Value::Symbol(_) | Value::Number(_)), exponent])
                if let Some(number) = self.power("math.pow", base, exponent)? =>
            {
                number
            }
            ("math.floor" | "math.ceil" | "math.trunc", [value @ Value::Symbol(_)]) => value.clone(),
            ("math.floor" | "math.ceil" | "math.trunc", [value @ Value::Number(_)])
                if let Some(whole) = self.rounded_quotient(name, value)? =>
            {
                whole
            }
            ("math.floor" | "math.ceil" | "math.trunc", [value @ Value::Instance(instance)]) => {
                let method = format!("__{}__", name.trim_start_matches("math."));
                if !self.is_python_method(instance.class, &method) {
                    return Ok(None);
                }
                let method = self.class_attribute_of(value, instance.class, &method.into())?;
                self.call(&method, Vec::new(), Vec::new())?
            }
            _ => return Ok(None),
        }))
    }

    /// Functions of torch that ask and assert, and compute nothing.
    fn call_question_of_torch(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("torch._C._log_api_usage_once", _) => self.none(),
            ("torch._check_is_size", [size @ (Value::Symbol(_) | Value::Known(..))]) if kwargs.is_empty() => {
                let zero = self.int(0);
                let condition = self.compare("ge", &size.clone(), &zero)?;
                let holds = self.assert_data(&condition)? || self.is_true(&condition)?;
                return Ok(holds.then(|| self.none()));
            }
            ("torch._assert" | "torch._check", [condition, ..]) | ("torch._check_with", [_, condition, ..]) => {
                if let Value::Tensor(_) | Value::Condition(_) = condition {
                    let asserted = self.assert_data(condition)?;
                    return if asserted { Ok(Some(self.none())) } else { Err(self.stop("an assertion about data")) };
                }
                // An assertion that fails is followed to where it raises.
                return Ok(if self.is_true(condition)? { Some(self.none()) } else { None });
            }
            (
                "torch.fx.experimental.symbolic_shapes.expect_true"
                | "torch.fx.experimental.symbolic_shapes.guard_or_true"
                | "torch.fx.experimental.symbolic_shapes.guard_or_false"
                | "torch.fx.experimental.symbolic_shapes.guard_size_oblivious"
                | "torch.fx.experimental.symbolic_shapes.statically_known_true",
                [condition],
            ) => {
                let is_true = self.is_true(condition)?;
                self.bool(is_true)
            }
            ("torch.sym_max" | "torch.sym_min", [left, right])
                if !args.iter().any(|arg| matches!(arg, Value::Tensor(_) | Value::Instance(_))) =>
            {
                let chosen = self.extreme(name.trim_start_matches("torch.sym_"), args, kwargs)?;
                let float = self.host.member("builtins", "float").ok_or_else(|| self.stop("float is missing"))?;
                let mut floats = false;
                for arg in [left, right] {
                    floats |= matches!(self.class_of(arg)?, Value::Known(class, _) if class == float);
                }
                if floats { self.call(&Value::Known(float, None), vec![chosen], Vec::new())? } else { chosen }
            }
            ("torch.is_tensor", [value]) => self.bool(matches!(value, Value::Tensor(_))),
            ("torch.is_grad_enabled" | "torch._C.is_grad_enabled", []) => self.bool(self.grad),
            ("torch.is_autocast_enabled", rest) => {
                let on_cpu = match rest.first() {
                    Some(Value::Known(device, _)) => self.host.as_str(*device).is_some_and(|device| &*device == "cpu"),
                    _ => false,
                };
                self.bool(on_cpu && self.state.autocast.is_some())
            }
            ("torch.is_floating_point" | "torch.is_complex", [tensor @ Value::Tensor(_)]) => {
                let method = name.trim_start_matches("torch.");
                return self.call_method(tensor, &method.into(), Vec::new(), Vec::new()).map(Some);
            }
            ("torch.numel", [tensor @ Value::Tensor(_)]) => {
                return self.call_method(tensor, &"numel".into(), Vec::new(), Vec::new()).map(Some);
            }
            ("torch.Size", [items]) => {
                let items = self.items_of(items)?;
                let class = self.host.member("torch", "Size");
                Value::Tuple(Rc::new(TupleValue { items, class, ..TupleValue::default() }))
            }
            _ => return Ok(None),
        }))
    }

    /// Containers of the library.
    fn make_library_container(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("collections.OrderedDict" | "collections.defaultdict", _) => {
                let class = self.host.member("collections", name.rsplit('.').next().unwrap_or_default());
                let (default, rest) = match (name, args) {
                    ("collections.defaultdict", [factory, rest @ ..]) => (Some(factory.clone()), rest),
                    _ => (None, args),
                };
                let default = RefCell::new(default);
                let made = Value::Dict(Rc::new(DictValue { class, default, ..DictValue::default() }));
                if let Some(more) = rest.first() {
                    self.dict_update(&made, more)?;
                }
                for (key, value) in kwargs {
                    let key = self.text(key);
                    self.set_item(&made, &key, value.clone())?;
                }
                made
            }
            ("collections.Counter", _) => {
                let class = self.host.member("collections", "Counter").ok_or_else(|| self.stop("a missing class"))?;
                let made = Value::Dict(Rc::new(DictValue { class: Some(class), ..DictValue::default() }));
                let init = self.attribute(&made, &"__init__".into())?;
                self.call(&init, args.to_vec(), kwargs.clone())?;
                made
            }
            ("collections.namedtuple", _) => {
                let plain = args.iter().map(|arg| self.real(arg)).collect::<Run<Option<Vec<Object>>>>()?;
                let names: Vec<Value> = kwargs.iter().map(|(_, value)| value.clone()).collect();
                let named = names.iter().map(|value| self.real(value)).collect::<Run<Option<Vec<Object>>>>()?;
                let (Some(plain), Some(named)) = (plain, named) else {
                    return Err(self.stop("a named tuple whose names or defaults are not known"));
                };
                let named: Vec<(Object, Object)> =
                    kwargs.iter().zip(named).map(|((key, _), value)| (self.host.str(key), value)).collect();
                let maker = self.host.member("collections", "namedtuple");
                let maker = maker.ok_or_else(|| self.stop("a missing function"))?;
                let class = self.host.call(maker, &plain, &named).map_err(|r| self.raised(r))?;
                // Each call makes a class of its own: none of its objects may leave the frame.
                self.made_classes.insert(class, self.root);
                Value::Known(class, None)
            }
            ("collections.deque", _) => self.new_deque(args, kwargs)?,
            ("types.MappingProxyType", [dict @ Value::Dict(_)]) => Value::Dict(Rc::new(DictValue {
                class: self.host.member("types", "MappingProxyType"),
                behind: Some(dict.clone()),
                ..DictValue::default()
            })),
            _ => return Ok(None),
        }))
    }

    /// What a class or a function says of its fields and parameters.
    fn describe_signature(&mut self, name: &str, args: &[Value]) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            (
                "dataclasses.fields" | "dataclasses.is_dataclass" | "inspect.signature" | "typing.get_type_hints",
                [subject, ..],
            ) => {
                let class = match subject {
                    Value::Known(object, _) => {
                        if self.host.kind(*object) == Kind::Class {
                            self.watch_class(*object);
                        }
                        *object
                    }
                    Value::Function(function) if !name.starts_with("dataclasses.") => match &function.origin {
                        Some(origin) => {
                            self.rely_on_signature(origin)?;
                            origin.object
                        }
                        None => return Err(self.stop("the signature of a function created in the frame")),
                    },
                    Value::Method(parts) if name == "inspect.signature" => {
                        let (Value::Function(function), Some(receiver)) = (&parts.0, super::wrap::origin_of(&parts.1))
                        else {
                            return Err(self.stop("the signature of a method"));
                        };
                        let Some(origin) = &function.origin else { return Err(self.stop("the signature of a method")) };
                        self.rely_on_signature(origin)?;
                        self.guard(&receiver.source, crate::source::Check::Is(receiver.object));
                        let class =
                            self.host.member("types", "MethodType").ok_or_else(|| self.stop("a missing class"))?;
                        self.host.call(class, &[origin.object, receiver.object], &[]).map_err(|r| self.raised(r))?
                    }
                    _ if name == "inspect.signature" => return Err(self.stop("the signature of an object")),
                    other => match self.class_of(other)? {
                        Value::Known(class, _) => class,
                        _ => return Ok(None),
                    },
                };
                let module = name.split('.').next().unwrap_or_default();
                let function = self.host.member(module, name.rsplit('.').next().unwrap_or_default());
                let function = function.ok_or_else(|| self.stop("a missing function"))?;
                let made = self.host.call(function, &[class], &[]).map_err(|r| self.raised(r))?;
                self.wrap(made, &Rc::new(Source::Fixed(made)))?
            }
            _ => return Ok(None),
        }))
    }

    /// Exceptions that are handled, and warnings.
    fn ask_about_process(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("sys.exc_info", []) => match self.handled.clone() {
                Some(handled) => {
                    let class = self.class_of(&handled)?;
                    Value::tuple(vec![class, handled, Value::Unknown("a traceback".into())])
                }
                None => {
                    self.nothing_handled_outside()?;
                    let none = self.none();
                    Value::tuple(vec![none.clone(), none.clone(), none])
                }
            },
            ("sys.exception", []) => match self.handled.clone() {
                Some(handled) => handled,
                None => {
                    self.nothing_handled_outside()?;
                    self.none()
                }
            },
            // Inside of a context that ignores all warnings, which ends with it.
            // What is recorded is recorded where nothing is left out; a warning itself ends the graph.
            ("warnings.simplefilter", [Value::Known(action, _)])
                if kwargs.is_empty()
                    && self.warnings == Some(super::Warned::Recorded)
                    && self.host.as_str(*action).is_some_and(|action| &*action == "always") =>
            {
                self.none()
            }
            ("warnings.simplefilter", [Value::Known(action, _)])
                if kwargs.is_empty()
                    && self.warnings.is_some()
                    && self.host.as_str(*action).is_some_and(|action| &*action == "ignore") =>
            {
                self.warnings = Some(super::Warned::Nothing);
                self.none()
            }
            ("warnings.warn", _) if self.warnings == Some(super::Warned::Nothing) => self.none(),
            _ => return Ok(None),
        }))
    }

    /// Other modules of Python's library, and of Pyrite.
    fn call_rest_of_library(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        Ok(Some(match (name, args) {
            ("functools.partial", [Value::Partial(inner), rest @ ..]) if self.is_flat(inner)? => {
                let mut named = inner.kwargs.clone();
                for (key, value) in kwargs {
                    match named.iter_mut().find(|(known, _)| known == key) {
                        Some(entry) => entry.1 = value.clone(),
                        None => named.push((key.clone(), value.clone())),
                    }
                }
                Value::Partial(Rc::new(PartialValue {
                    function: inner.function.clone(),
                    args: inner.args.iter().chain(rest).cloned().collect(),
                    kwargs: named,
                    attributes: RefCell::default(),
                    origin: None,
                }))
            }
            ("random.random", []) if kwargs.is_empty() => {
                let function = self.host.member("random", "random").ok_or_else(|| self.stop("a missing function"))?;
                self.draw((function, None), Vec::new(), 0.5)?
            }
            (method, [Value::Instance(generator), bounds @ ..])
                if method.starts_with("random.Random.") && kwargs.is_empty() =>
            {
                return self.draw_from(&generator.clone(), method.trim_start_matches("random.Random."), bounds);
            }
            ("pyrite._transforms.call_nested", _) => self.call_nested(args)?,
            ("pyrite._transforms.transforms_around", []) => self.transforms_around(),
            ("pyrite._transforms.latest_hook", []) => self.latest_hook(),
            ("pyrite._transforms.remove_hook", [number]) => self.remove_hook(number)?,
            ("pyrite._transforms.refuse", [Value::Known(reason, _)]) => {
                let reason = self.host.as_str(*reason).unwrap_or_else(|| "a transform".into());
                return Err(self.stop(&*reason));
            }
            ("functools.partial", [function, rest @ ..]) => Value::Partial(Rc::new(PartialValue {
                function: function.clone(),
                args: rest.to_vec(),
                kwargs: kwargs.clone(),
                attributes: RefCell::default(),
                origin: None,
            })),
            // What never changes is its own copy.
            ("copy.copy" | "copy.deepcopy", [value]) if is_number(value) || self.plain_guarded(value)?.is_some() => {
                value.clone()
            }
            ("types.MethodType", [function, object]) => Value::Method(Rc::new((function.clone(), object.clone()))),
            ("itertools.count", rest) => {
                let start = rest.first().cloned().unwrap_or_else(|| self.int(0));
                let step = rest.get(1).cloned().unwrap_or_else(|| self.int(1));
                Value::iterator(Iterate::Count(start, step))
            }
            ("copy.copy", [value]) => match value {
                Value::List(list) if list.class.is_none() => Value::list(self.items_of(value)?),
                Value::Dict(dict) if dict.class.is_none() => {
                    return self.call_method(value, &"copy".into(), Vec::new(), Vec::new()).map(Some);
                }
                Value::Tuple(tuple)
                    if tuple.class.is_some_and(|class| self.class_item(class, "__dict__").is_some()) =>
                {
                    return Err(self.stop("a copy of a user-defined tuple"));
                }
                Value::Known(..) | Value::Tuple(_) => value.clone(),
                Value::Instance(_) => return Ok(None),
                _ => return Err(self.stop("a copy of an object")),
            },
            _ => return Ok(None),
        }))
    }

    /// Whether a partial function of this one is one of its function: it has no attributes of its own.
    fn is_flat(&self, partial: &PartialValue) -> Run<bool> {
        let bare = match &partial.origin {
            Some(origin) => self.read_instance_entries(origin)?.is_none_or(|held| held.is_empty()),
            None => true,
        };
        Ok(bare && partial.attributes.borrow().0.is_empty())
    }

    /// Relies on no exception being handled by who called the frame.
    fn nothing_handled_outside(&mut self) -> Run<()> {
        let question = self.host.member("sys", "exception").ok_or_else(|| self.stop("sys.exception is missing"))?;
        let outside = self.ask_state(question)?;
        if self.is_none(&outside) { Ok(()) } else { Err(self.stop("an exception that is handled outside")) }
    }

    /// Relies on the signature of a function: on the function, its defaults and what it wraps.
    fn rely_on_signature(&mut self, origin: &crate::value::Origin) -> Run<()> {
        self.guard(&origin.source, crate::source::Check::Is(origin.object));
        for name in ["__defaults__", "__kwdefaults__", "__annotations__"] {
            let part = self.read_attribute(origin.object, &origin.source, name)?;
            self.guard(&part.source, crate::source::Check::Is(part.object));
        }
        for name in ["__wrapped__", "__signature__"] {
            if let Some(part) = self.read_instance_item(origin.object, &origin.source, &name.into()) {
                self.guard(&part.source, crate::source::Check::Is(part.object));
            }
        }
        Ok(())
    }
}
