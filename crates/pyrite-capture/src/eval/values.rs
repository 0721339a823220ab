//! Numbers and texts of classes of the user's: objects with attributes and methods of their own that are an `int`, `float` or
//! `str` of Python's wherever their class does not say otherwise.
//!
//! Invariant: [`InstanceValue::value`] is an object of exactly `int`, `float` or `str`. What a class has in Python comes first;
//! everything else is asked of that object.

use std::rc::Rc;

use super::{Evaluator, Run};
use crate::host::{Kind, Object};
use crate::source::Check;
use crate::value::{InstanceValue, Origin, Value};

/// The classes of Python's own that such classes are derived from.
const BASES: [&str; 3] = ["int", "float", "str"];

/// Methods that every object has, whatever it is besides.
const OF_OBJECT: [&str; 7] =
    ["__setattr__", "__delattr__", "__getattribute__", "__init__", "__init_subclass__", "__reduce_ex__", "__reduce__"];

impl Evaluator<'_, '_> {
    /// The class of Python's own numbers and texts that a class of the user's is derived from.
    pub(super) fn value_base(&self, class: Object) -> Option<Object> {
        let bases = BASES.iter().filter_map(|name| self.host.member("builtins", name));
        let base = bases.into_iter().find(|base| self.host.derives(class, *base))?;
        let usual = self.host.member("builtins", "type");
        (class != base && Some(self.host.class_of(class)) == usual && self.host.qualified_name(class).is_none())
            .then_some(base)
    }

    /// The number or text that an object from outside is, which is guarded; nothing for other objects.
    pub(super) fn read_value(&mut self, class: Object, origin: &Origin) -> Run<Option<Object>> {
        if self.value_base(class).is_none() {
            return Ok(None);
        }
        let reader = self.host.polyfill("base_value").ok_or_else(|| self.stop("a missing function"))?;
        let seen = self.read_called(origin, reader)?;
        self.guard(&seen.source, Check::Equal(seen.object));
        Ok(Some(seen.object))
    }

    /// The number or text that an object is; nothing for other values.
    pub(super) fn value_of(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Instance(instance) => instance.value.map(|value| Value::Known(value, None)),
            _ => None,
        }
    }

    /// The number or text that an object is where its class has no method of this name in Python.
    pub(super) fn value_without(&self, value: &Value, name: &str) -> Option<Value> {
        match value {
            Value::Instance(instance) if instance.value.is_some() && !self.is_python_method(instance.class, name) => {
                self.value_of(value)
            }
            _ => None,
        }
    }

    /// A new number or text of a class of the user's, from the arguments of the class of Python's own.
    pub(super) fn new_value(&mut self, class: Object, base: Object, args: Vec<Value>) -> Run<Value> {
        let args = args.into_iter().map(|arg| self.value_of(&arg).unwrap_or(arg)).collect();
        let made = self.call(&Value::Known(base, None), args, Vec::new())?;
        let made = match self.with_known_sizes(&made)? {
            Value::Number(number) => self.specialize(&number),
            Value::Known(object, _) if self.host.class_of(object) == base => object,
            _ => return Err(self.stop(format!("constructing {}", self.host.class_name(class)))),
        };
        let Some(instance) = Rc::into_inner(self.new_instance(class)) else { return Err(self.stop("an object")) };
        Ok(Value::Instance(Rc::new(InstanceValue { value: Some(made), ..instance })))
    }

    /// `receiver.name(*args)` for a method that the class of Python's own has; nothing where the receiver is no such value.
    pub(super) fn value_method(
        &mut self,
        receiver: &Value,
        name: &Rc<str>,
        args: &[Value],
        kwargs: &super::call::Keywords,
    ) -> Run<Option<Value>> {
        let Some(value) = self.value_of(receiver).filter(|_| !OF_OBJECT.contains(&&**name)) else { return Ok(None) };
        let args: Vec<Value> = args.iter().map(|arg| self.value_of(arg).unwrap_or_else(|| arg.clone())).collect();
        match (&**name, args.as_slice()) {
            ("__str__", []) if !self.is_text(&value) => self.text_of(receiver, true).map(Some),
            ("__format__", [Value::Known(spec, _)]) if self.host.as_str(*spec).is_some_and(|spec| spec.is_empty()) => {
                self.text_of(receiver, false).map(Some)
            }
            _ => self.call_method(&value, name, args, kwargs.clone()).map(Some),
        }
    }

    fn is_text(&self, value: &Value) -> bool {
        matches!(value, Value::Known(object, _) if self.host.as_str(*object).is_some())
    }

    /// The text of a number or text of a class of the user's; nothing for other values.
    pub(super) fn text_of_value(&mut self, value: &Value, representation: bool) -> Run<Option<Value>> {
        let (Some(plain), Value::Instance(instance)) = (self.value_of(value), value) else { return Ok(None) };
        // A number has no text but its representation.
        let text = self.is_text(&plain);
        let names: &[&str] = if representation {
            &["__repr__"]
        } else if text {
            &["__str__"]
        } else {
            &["__str__", "__repr__"]
        };
        if names.iter().any(|name| self.is_python_method(instance.class, name)) {
            return Ok(None);
        }
        self.text_of(&plain, representation).map(Some)
    }

    /// Two operands as Python's own operators see them: nothing where neither is a number or text of a class of the user's, or
    /// where one has said that it does not know the other.
    pub(super) fn as_values(
        &mut self,
        left: &Value,
        right: &Value,
        name: &str,
        mirrored: &str,
    ) -> Run<Option<(Value, Value)>> {
        if self.value_of(left).is_none() && self.value_of(right).is_none() {
            return Ok(None);
        }
        for (side, name) in [(left, name), (right, mirrored)] {
            if let Value::Instance(instance) = side
                && instance.value.is_some()
                && self.is_python_method(instance.class, name)
            {
                return Err(self.stop("an operator that an object of its own class refuses"));
            }
        }
        let plain = |this: &Self, side: &Value| this.value_of(side).unwrap_or_else(|| side.clone());
        let (left, right) = (plain(self, left), plain(self, right));
        let known = |side: &Value| !matches!(side, Value::Instance(_));
        Ok((known(&left) && known(&right)).then_some((left, right)))
    }

    /// Whether objects of a kind are numbers or texts with a class of the user's.
    pub(super) fn is_number_of(&self, value: &Value) -> bool {
        match self.value_of(value) {
            Some(Value::Known(object, _)) => {
                !matches!(self.host.kind(object), Kind::Plain if self.host.as_str(object).is_some())
            }
            _ => false,
        }
    }
}
