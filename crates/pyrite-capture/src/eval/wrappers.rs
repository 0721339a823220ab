//! Wrapper subclasses: tensors without memory of their own that hold others and see operators in `__torch_dispatch__`.
//!
//! A wrapper is a node of the graph like any tensor, and its value has an *example* beside the node: an object of its class whose
//! inner tensors have no data. A function of torch that is given a wrapper is one opaque call, which torch runs on the wrapper
//! itself; what it gives is told by calling it on examples (`pyrite._wrappers`). So the class says what comes out, and a backend
//! written for torch.compile sees the functions that the user called.
//!
//! Invariants: a wrapper is an argument of opaque calls alone; what is relied on of a wrapper from outside, and of all it holds, is
//! one guard, its signature; the inner tensors of one that was written to are not read.

use std::rc::Rc;
use std::sync::Arc;

use pyrite_ir::{Meta, NodeId, SymDims, Value as GraphValue};
use pyrite_sym::SymInt;

use super::call::Keywords;
use super::{Evaluator, Run};
use crate::host::{Kind, Object};
use crate::source::{Check, Source};
use crate::value::{ListValue, Origin, TensorValue, TupleValue, Value};

type V = GraphValue<NodeId>;

/// What torch says of a wrapper without a look at what it holds: the metadata of the outer tensor.
const OUTER: [&str; 10] = [
    "size",
    "dim",
    "ndimension",
    "numel",
    "nelement",
    "is_floating_point",
    "is_complex",
    "is_signed",
    "element_size",
    "__hash__",
];
/// What the class of a wrapper decides about its tensors.
const KINDS: [&str; 5] = ["layout", "is_nested", "is_sparse", "is_quantized", "is_mkldnn"];

/// What a call on examples has given.
enum Described {
    Tensor { example: Option<Object>, meta: Box<Meta> },
    Sequence(Object, Vec<Described>),
    Plain(Object),
}

impl Described {
    /// Whether it is made of wrappers alone.
    fn is_wrapped(&self, none: Object) -> bool {
        match self {
            Self::Tensor { example, .. } => example.is_some(),
            Self::Sequence(_, items) => items.iter().all(|item| item.is_wrapped(none)),
            Self::Plain(object) => *object == none,
        }
    }
}

impl Evaluator<'_, '_> {
    fn wrappers_member(&self, name: &str) -> Run<Object> {
        let found = self.host.member("pyrite._wrappers", name);
        found.ok_or_else(|| self.stop(format!("a missing function: pyrite._wrappers.{name}")))
    }

    /// Calls a function of `pyrite._wrappers`, which has no effect.
    fn ask_wrappers(&self, name: &str, args: &[Object]) -> Run<Object> {
        self.host.call(self.wrappers_member(name)?, args, &[]).map_err(|raised| self.raised(raised))
    }

    /// Whether tensors of a class are wrappers.
    pub(super) fn is_wrapper_class(&self, class: Object) -> Run<bool> {
        Ok(self.ask_wrappers("is_wrapper", &[class])? == self.host.bool(true))
    }

    /// Whether a value is a wrapper, or a list or tuple with one.
    pub(super) fn holds_wrapper(&mut self, value: &Value) -> Run<bool> {
        Ok(match value {
            Value::Tensor(tensor) => tensor.example.is_some(),
            Value::Tuple(_) | Value::List(_) => {
                let items = self.items_of(value)?;
                items.iter().any(|item| matches!(item, Value::Tensor(tensor) if tensor.example.is_some()))
            }
            _ => false,
        })
    }

    /// Whether a call has a wrapper among its arguments.
    pub(super) fn takes_wrapper(&mut self, args: &[Value], kwargs: &Keywords) -> Run<bool> {
        for value in args.iter().chain(kwargs.iter().map(|(_, value)| value)) {
            if self.holds_wrapper(value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A wrapper from outside.
    pub(super) fn wrap_wrapper(&mut self, origin: Origin, class: Object) -> Run<Value> {
        self.wrappers.push(origin.clone());
        // Which wrappers hold the same tensors decides what can be computed of them.
        let held = self.wrappers_member("held")?;
        let held = self.read_called(&origin, held)?;
        for (index, inner) in self.constant_items(held.object).into_iter().enumerate() {
            let source = Rc::new(Source::Index(held.source.clone(), index));
            match self.held_by_wrappers.iter().find(|(known, _)| *known == inner) {
                Some((_, first)) => self.guard(&source, Check::Same(first.clone())),
                None => self.held_by_wrappers.push((inner, source)),
            }
        }
        let refused = |this: &Self| this.stop(format!("a {} that cannot be taken apart", this.host.class_name(class)));
        let Ok(example) = self.host.call(self.wrappers_member("example")?, &[origin.object], &[]) else {
            return Err(refused(self));
        };
        let Ok(described) = self.ask_wrappers("described", &[example]) else { return Err(refused(self)) };
        let Described::Tensor { mut meta, .. } = self.read_described(described)? else { return Err(refused(self)) };
        let state = self.ask_wrappers("outer", &[origin.object])?;
        let state: Vec<bool> =
            self.constant_items(state).into_iter().map(|said| said == self.host.bool(true)).collect();
        (meta.requires_grad, meta.is_leaf) = (state[0], state[1]);
        let name = self.input_name(&origin.source);
        let node = self.calls.input(&name, GraphValue::Tensor(*meta));
        self.inputs.push((node, origin.source.clone(), origin.object));
        Ok(Value::Tensor(Rc::new(TensorValue {
            origin: Some(origin),
            class: Some(class),
            example: Some(example),
            parameter: state[2],
            ..TensorValue::computed(node)
        })))
    }

    /// Guards the wrappers from outside by their signatures: with sizes where the captured code relies on some.
    pub(super) fn guard_wrappers(&self) -> Run<()> {
        if self.wrappers.is_empty() {
            return Ok(());
        }
        let sized = self.relies_on_wrapped_sizes.get();
        let signature = self.wrappers_member(if sized { "signature" } else { "signature_of_any_size" })?;
        for origin in &self.wrappers {
            let seen = self.read_called(origin, signature)?;
            self.guard(&seen.source, Check::Equal(seen.object));
        }
        Ok(())
    }

    /// What `pyrite._wrappers.described` says.
    fn read_described(&self, object: Object) -> Run<Described> {
        let unknown = || self.stop("a result of a wrapper subclass that is not described");
        let parts = self.constant_items(object);
        let kind = parts.first().and_then(|kind| self.host.as_str(*kind)).ok_or_else(unknown)?;
        match (&*kind, parts.as_slice()) {
            ("tensor", [_, example, sizes, strides, dtype]) => {
                let numbers = |sizes: Object| {
                    let size = |size: Object| match self.host.as_int(size) {
                        Some(size) if size >= 0 => SymInt::Int(size),
                        // A jagged size is known to the run alone, and has a number by which it is the same elsewhere.
                        said => self.jagged_size(said.unwrap_or(-1)),
                    };
                    self.constant_items(sizes).into_iter().map(size).collect::<SymDims>()
                };
                let Some(GraphValue::DType(dtype)) = self.host.to_graph(*dtype) else { return Err(unknown()) };
                let example = (*example != self.host.none()).then_some(*example);
                let meta = Box::new(Meta::strided(&numbers(*sizes), &numbers(*strides), dtype));
                Ok(Described::Tensor { example, meta })
            }
            ("sequence", [_, class, items]) => {
                let items = self.constant_items(*items).into_iter().map(|item| self.read_described(item));
                Ok(Described::Sequence(*class, items.collect::<Run<_>>()?))
            }
            ("plain", [_, value]) => Ok(Described::Plain(*value)),
            _ => Err(unknown()),
        }
    }

    fn jagged_size(&self, number: i64) -> SymInt {
        if number == -1 {
            return self.calls.unknown_number();
        }
        let mut known = self.jagged_sizes.borrow_mut();
        known.entry(number).or_insert_with(|| self.calls.unknown_number()).clone()
    }

    /// An argument as an object without data.
    fn example_of(&mut self, value: &Value) -> Run<Object> {
        match value {
            Value::Tensor(tensor) => {
                if let Some(example) = tensor.example {
                    return Ok(example);
                }
                if tensor.class.is_some() {
                    return Err(self.stop("a tensor subclass beside a wrapper subclass"));
                }
                let meta = self.tensor_meta(tensor.node)?.clone();
                let meta = self.fixed_meta(&meta)?;
                let numbers = |sizes: &[SymInt]| {
                    let sizes: Vec<Object> =
                        sizes.iter().map(|size| self.host.int(size.as_int().unwrap_or_default())).collect();
                    self.host.tuple(&sizes)
                };
                let dtype = self.host.object_of(&GraphValue::DType(meta.dtype));
                let dtype = dtype.ok_or_else(|| self.stop("a tensor of a type without a name"))?;
                self.ask_wrappers("plain", &[numbers(&meta.shape), numbers(&meta.stride), dtype])
            }
            Value::Tuple(_) | Value::List(_) => {
                let items = self.items_of(value)?;
                let items = items.iter().map(|item| self.example_of(item)).collect::<Run<Vec<_>>>()?;
                let tuple = self.host.tuple(&items);
                if matches!(value, Value::Tuple(_)) {
                    return Ok(tuple);
                }
                let list = self.host.member("builtins", "list").ok_or_else(|| self.stop("a missing class"))?;
                self.host.call(list, &[tuple], &[]).map_err(|raised| self.raised(raised))
            }
            Value::Slice(parts) => {
                let parts = parts.clone();
                let parts = [self.example_of(&parts[0])?, self.example_of(&parts[1])?, self.example_of(&parts[2])?];
                Ok(self.host.slice(parts))
            }
            Value::Known(object, _) => Ok(*object),
            Value::Symbol(_) => {
                let known = self.index_of(value)?;
                Ok(self.host.int(known))
            }
            Value::Number(number) => Ok(self.specialize(number)),
            Value::Lazy(_) => {
                let value = self.force(value)?;
                self.example_of(&value)
            }
            other => {
                let text = self.describe(other);
                Err(self.stop(format!("{text} as an argument beside a wrapper subclass")))
            }
        }
    }

    /// An argument of a call with wrappers, in the graph.
    fn wrapped_value(&mut self, value: &Value) -> Run<V> {
        match value {
            Value::Tensor(tensor) => {
                self.check_inside(tensor.node)?;
                Ok(GraphValue::Tensor(tensor.node))
            }
            Value::Tuple(_) | Value::List(_) => {
                let items = self.items_of(value)?;
                items.iter().map(|item| self.wrapped_value(item)).collect::<Run<Vec<V>>>().map(GraphValue::List)
            }
            Value::Lazy(_) => {
                let value = self.force(value)?;
                self.wrapped_value(&value)
            }
            Value::Symbol(_) => {
                let known = self.index_of(value)?;
                Ok(GraphValue::Int(SymInt::Int(known)))
            }
            Value::Known(object, _) if self.host.class_name(self.host.class_of(*object)) == "builtins.slice" => {
                let part = |this: &mut Self, name: &str| {
                    let part = this.constant(*object, name)?;
                    this.wrapped_value(&Value::Known(part, None))
                };
                let parts = [part(self, "start")?, part(self, "stop")?, part(self, "step")?];
                Ok(GraphValue::Slice(Box::new(parts)))
            }
            other => self.graph_value(other),
        }
    }

    /// Calls a function of torch on wrappers: one node of the graph.
    pub(super) fn call_wrapped(&mut self, function: Object, args: &[Value], kwargs: &Keywords) -> Run<Value> {
        if self.autocasted || !self.bodies.is_empty() {
            return Err(self.stop("a wrapper subclass under autocast or in a nested graph"));
        }
        let function = if self.overrides.is_off() && self.has_override(args, kwargs)? {
            self.ask_wrappers("undispatched", &[function])?
        } else {
            function
        };
        let name: Arc<str> = match self.host.qualified_name(function) {
            Some(name)
                if name.starts_with("torch.") || name.starts_with("operator.") || &*name == "builtins.getattr" =>
            {
                name
            }
            _ => self.host.make_opaque(function),
        };
        let examples = args.iter().map(|arg| self.example_of(arg)).collect::<Run<Vec<_>>>()?;
        let mut pairs = Vec::with_capacity(kwargs.len());
        for (key, value) in kwargs {
            let value = self.example_of(value)?;
            pairs.push(self.host.tuple(&[self.host.str(key), value]));
        }
        let pairs = self.host.tuple(&pairs);
        let dict = self.host.member("builtins", "dict").ok_or_else(|| self.stop("a missing class"))?;
        let named = self.host.call(dict, &[pairs], &[]).map_err(|raised| self.raised(raised))?;
        let given = self.host.tuple(&examples);
        let described = self.host.call(self.wrappers_member("describe")?, &[function, given, named], &[]);
        let described = match described {
            Ok(described) => self.read_described(described)?,
            Err(raised) => {
                let text = self.host.describe(raised.0);
                return Err(self.stop(format!("a call of {name} with a wrapper subclass raises {text}")));
            }
        };
        // Graphs of wrappers alone are as they are for wrappers of any size.
        if !described.is_wrapped(self.host.none()) {
            self.relies_on_wrapped_sizes.set(true);
        }
        if let Described::Plain(object) = &described
            && *object != self.host.none()
        {
            return Ok(Value::Known(*object, None));
        }
        let values = args.iter().map(|arg| self.wrapped_value(arg)).collect::<Run<Vec<V>>>()?;
        let mut named = Vec::with_capacity(kwargs.len());
        for (key, value) in kwargs {
            named.push((key.to_string(), self.wrapped_value(value)?));
        }
        self.record_location();
        let node = self.calls.opaque(&name, values, named, meta_of(&described));
        // A function that gives an argument back has written to it.
        let stem = name.rsplit('.').next().unwrap_or_default();
        let is_write = (stem.ends_with('_') && !stem.ends_with("__")) || stem == "setitem" || is_in_place(stem);
        if is_write && let Some(Value::Tensor(written)) = args.first() {
            self.written_wrappers.insert(written.node);
            if !matches!(described, Described::Plain(_)) {
                return Ok(args[0].clone());
            }
        }
        if let Described::Tensor { example: Some(example), .. } = &described
            && let Some(place) = examples.iter().position(|known| known == example)
        {
            return Ok(args[place].clone());
        }
        let result = self.result(&node, None)?;
        self.with_examples(&result, &described)
    }

    /// Whether a class of an argument is shown functions.
    fn has_override(&mut self, args: &[Value], kwargs: &Keywords) -> Run<bool> {
        let disabled = self.host.member("torch._C", "_disabled_torch_function_impl");
        let mut pending: Vec<Value> = args.iter().chain(kwargs.iter().map(|(_, value)| value)).cloned().collect();
        while let Some(value) = pending.pop() {
            match &value {
                Value::Tensor(tensor) => {
                    if let Some(class) = tensor.class
                        && self.class_item(class, "__torch_function__") != disabled
                    {
                        return Ok(true);
                    }
                }
                Value::Tuple(_) | Value::List(_) => pending.extend(self.items_of(&value)?),
                _ => {}
            }
        }
        Ok(false)
    }

    /// The value of a result, with what is known of the wrappers in it.
    fn with_examples(&mut self, value: &Value, described: &Described) -> Run<Value> {
        match (value, described) {
            (Value::Tensor(tensor), Described::Tensor { example: Some(example), .. }) => {
                let class = self.host.class_of(*example);
                Ok(Value::Tensor(Rc::new(TensorValue {
                    class: Some(class),
                    example: Some(*example),
                    ..TensorValue::computed(tensor.node)
                })))
            }
            (Value::Tuple(tuple), Described::Sequence(class, items)) => {
                let parts = tuple.items.iter().zip(items).map(|(part, item)| self.with_examples(part, item));
                let parts = parts.collect::<Run<Vec<_>>>()?;
                if Some(*class) == self.host.member("builtins", "list") {
                    return Ok(Value::List(Rc::new(ListValue { items: parts.into(), ..ListValue::default() })));
                }
                let class = Some(*class).filter(|class| Some(*class) != self.host.member("builtins", "tuple"));
                Ok(Value::Tuple(Rc::new(TupleValue { items: parts, class, ..TupleValue::default() })))
            }
            (_, Described::Plain(object)) => Ok(Value::Known(*object, None)),
            _ => Ok(value.clone()),
        }
    }

    /// A method of a wrapper that torch has; nothing where the metadata of the outer tensor says it.
    pub(super) fn wrapper_method(
        &mut self,
        receiver: &Value,
        name: &Rc<str>,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Option<Value>> {
        let is_wrapper = matches!(receiver, Value::Tensor(tensor) if tensor.example.is_some());
        if (is_wrapper && OUTER.contains(&&**name)) || (!is_wrapper && !self.takes_wrapper(args, kwargs)?) {
            return Ok(None);
        }
        if matches!(&**name, "requires_grad_" | "register_hook" | "backward" | "retain_grad") {
            return Err(self.stop(format!("a call of {name} of a wrapper subclass")));
        }
        let torch = self.host.member("torch", "Tensor").ok_or_else(|| self.stop("a missing class"))?;
        let Some(function) = self.class_item(torch, name) else { return Ok(None) };
        let all: Vec<Value> = std::iter::once(receiver.clone()).chain(args.iter().cloned()).collect();
        self.call_wrapped(function, &all, kwargs).map(Some)
    }

    /// Whether a class looks at functions with code of its own.
    pub(super) fn has_own_function(&self, class: Object) -> Run<bool> {
        Ok(self.ask_wrappers("has_own_function", &[class])? == self.host.bool(true))
    }

    /// Whether there are wrappers among the operands, and no class with a `__torch_function__` of its own, nor a mode.
    pub(super) fn wrapper_without_override(&mut self, args: &[Value]) -> Run<bool> {
        if self.overrides.sees_modes() || !self.takes_wrapper(args, &Vec::new())? {
            return Ok(false);
        }
        for arg in args {
            if let Value::Tensor(tensor) = arg
                && let Some(class) = tensor.class
                && self.has_own_function(class)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same of a call.
    pub(super) fn wrapper_without_override_in(&mut self, args: &[Value], kwargs: &Keywords) -> Run<bool> {
        let all: Vec<Value> = args.iter().chain(kwargs.iter().map(|(_, value)| value)).cloned().collect();
        self.wrapper_without_override(&all)
    }

    /// Whether the metadata of the outer tensor answers a question to a wrapper, so that nobody is shown it.
    pub(super) fn metadata_answers_for_wrapper(&mut self, receiver: &Value, name: &str) -> Run<bool> {
        Ok(OUTER.contains(&name) && self.wrapper_without_override(std::slice::from_ref(receiver))?)
    }

    /// An operator, or the item of a tensor, with a wrapper among its operands.
    pub(super) fn wrapper_operator(&mut self, name: &str, args: &[Value]) -> Run<Option<Value>> {
        if !self.takes_wrapper(args, &Vec::new())? {
            return Ok(None);
        }
        let function = self.host.member("operator", name);
        let function = function.ok_or_else(|| self.stop(format!("the operator {name} of a wrapper subclass")))?;
        self.call_wrapped(function, args, &Vec::new()).map(Some)
    }

    /// An attribute of a wrapper that its class does not have of its own; nothing where the metadata of the outer tensor says it.
    pub(super) fn wrapper_attribute(&mut self, value: &Value, name: &Rc<str>) -> Run<Option<Value>> {
        let Value::Tensor(tensor) = value else { return Ok(None) };
        let Some(example) = tensor.example else { return Ok(None) };
        if let Some(Some(set)) = tensor.attributes.borrow().get(name) {
            return Ok(Some(set.clone()));
        }
        if KINDS.contains(&&**name) {
            let said = self.ask_wrappers("question", &[example, self.host.str(name)])?;
            return Ok(Some(Value::Known(said, None)));
        }
        let said = self.ask_wrappers("attribute", &[example, self.host.str(name)]);
        let said = said.map(|said| self.constant_items(said));
        if let Ok([_, described]) = said.as_deref() {
            if self.written_wrappers.contains(&tensor.node) {
                return Err(self.stop("what a wrapper subclass holds that was written to"));
            }
            if tensor.origin.is_some() {
                return self.tensor_own_attribute(value, name);
            }
            return match self.read_described(*described)? {
                Described::Plain(object) => {
                    self.relies_on_wrapped_sizes.set(true);
                    Ok(Some(Value::Known(object, None)))
                }
                Described::Tensor { .. } => self.read_attribute_of_wrapper(value, name).map(Some),
                Described::Sequence(..) => Err(self.stop(format!("the attribute {name} of a wrapper subclass"))),
            };
        }
        if said.is_err() {
            return match tensor.origin {
                Some(_) => self.tensor_own_attribute(value, name),
                None => Err(self.stop(format!("the attribute {name} of a wrapper subclass"))),
            };
        }
        match &**name {
            "T" | "mT" | "H" | "mH" | "real" | "imag" | "data" => self.read_attribute_of_wrapper(value, name).map(Some),
            _ => Ok(None),
        }
    }

    fn read_attribute_of_wrapper(&mut self, value: &Value, name: &Rc<str>) -> Run<Value> {
        let getattr = self.host.member("builtins", "getattr").ok_or_else(|| self.stop("a missing function"))?;
        let name = self.text(name);
        self.call_wrapped(getattr, &[value.clone(), name], &Vec::new())
    }

    /// A wrapper that the captured code makes.
    pub(super) fn construct_wrapper(&mut self, class: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        if self.host.kind(class) != Kind::Class {
            return Ok(None);
        }
        let torch = self.host.member("torch", "Tensor").ok_or_else(|| self.stop("a missing class"))?;
        if class == torch || !self.host.derives(class, torch) || !self.is_wrapper_class(class)? {
            return Ok(None);
        }
        let function = self.ask_wrappers("constructor", &[class])?;
        self.call_wrapped(function, args, kwargs).map(Some)
    }
}

/// Whether a function of Python's `operator` module writes to its first operand.
fn is_in_place(stem: &str) -> bool {
    stem.strip_prefix('i').is_some_and(|rest| {
        crate::opcode::BINARY.iter().any(|name| name.trim_end_matches('_') == rest.trim_end_matches('_'))
    })
}

fn meta_of(described: &Described) -> GraphValue<Meta> {
    match described {
        Described::Tensor { meta, .. } => GraphValue::Tensor((**meta).clone()),
        Described::Sequence(_, items) => GraphValue::List(items.iter().map(meta_of).collect()),
        Described::Plain(_) => GraphValue::None,
    }
}
