//! Operators: truthiness, identity, comparison, arithmetic.

use std::rc::Rc;

use pyrite_sym::{Rel, SymInt};

use super::wrap::origin_of;
use super::{Evaluator, Run};
use crate::host::{Descriptor, Kind, Object};
use crate::source::{Check, Source};
use crate::value::Value;

impl Evaluator<'_, '_> {
    /// Whether a value is `None`.
    pub(super) fn is_none(&self, value: &Value) -> bool {
        matches!(value, Value::Known(object, _) if *object == self.host.none())
    }

    /// The object of a value that is plain through and through.
    pub(super) fn plain(&self, value: &Value) -> Option<Object> {
        match value {
            Value::Known(object, _) => match self.host.kind(*object) {
                Kind::None
                | Kind::Bool
                | Kind::Int
                | Kind::Plain
                | Kind::FrozenSet
                | Kind::Class
                | Kind::Tuple
                | Kind::NamedTuple => Some(*object),
                _ => None,
            },
            Value::Lazy(origin) => match self.host.kind(origin.object) {
                Kind::None | Kind::Bool | Kind::Int | Kind::Plain => Some(origin.object),
                _ => None,
            },
            Value::Tuple(tuple) if tuple.class.is_none() => {
                let items: Option<Vec<Object>> = tuple.items.iter().map(|item| self.plain(item)).collect();
                Some(self.host.tuple(&items?))
            }
            Value::Slice(parts) => {
                let parts = [self.plain(&parts[0])?, self.plain(&parts[1])?, self.plain(&parts[2])?];
                Some(self.host.slice(parts))
            }
            _ => None,
        }
    }

    /// As [`Self::plain`], with every part guarded.
    pub(super) fn plain_guarded(&mut self, value: &Value) -> Run<Option<Object>> {
        match value {
            Value::Tuple(tuple) if tuple.class.is_none() => {
                let mut items = Vec::with_capacity(tuple.items.len());
                for item in tuple.items.clone() {
                    let item = self.force(&item)?;
                    match self.plain_guarded(&item)? {
                        Some(item) => items.push(item),
                        None => return Ok(None),
                    }
                }
                Ok(Some(self.host.tuple(&items)))
            }
            Value::Number(number) => Ok(Some(self.specialize(number))),
            other => Ok(self.plain(other)),
        }
    }

    /// As [`Self::plain_guarded`], also for lists and dictionaries of such: a new object, for functions that only read it.
    pub(super) fn real(&mut self, value: &Value) -> Run<Option<Object>> {
        self.nested(|this| this.real_inside(value))
    }

    fn real_inside(&mut self, value: &Value) -> Run<Option<Object>> {
        let class = match value {
            Value::List(list) if list.class.is_none() => self.host.member("builtins", "list"),
            Value::Dict(dict) if dict.class.is_none() => self.host.member("builtins", "dict"),
            Value::Tuple(tuple) if tuple.class.is_none() => self.host.member("builtins", "tuple"),
            Value::Tuple(tuple) => tuple.class.filter(|class| self.host.class_name(*class) == "torch.Size"),
            Value::List(_) | Value::Dict(_) => None,
            other => return self.plain_guarded(other),
        };
        let Some(maker) = class else { return Ok(None) };
        let items = match value {
            Value::Dict(_) => {
                self.dict_pairs(value)?.into_iter().map(|(key, value)| Value::tuple(vec![key, value])).collect()
            }
            _ => self.items_of(value)?,
        };
        let mut objects = Vec::with_capacity(items.len());
        for item in &items {
            match self.real(item)? {
                Some(object) => objects.push(object),
                None => return Ok(None),
            }
        }
        let tuple = self.host.tuple(&objects);
        self.host.call(maker, &[tuple], &[]).map(Some).map_err(|r| self.raised(r))
    }

    /// `bool(value)`.
    pub(super) fn is_true(&mut self, value: &Value) -> Run<bool> {
        match value {
            Value::Known(object, _) => match self.host.kind(*object) {
                Kind::Opaque if self.host.class_name(self.host.class_of(*object)) == "re.Match" => Ok(true),
                Kind::Opaque | Kind::Generator => {
                    let text = self.host.describe(*object);
                    Err(self.stop(format!("whether {text} is true")))
                }
                _ => self.host.is_true(*object).map_err(|r| self.raised(r)),
            },
            Value::Tensor(_) => Err(self.stop_with(
                "a branch that depends on the data of a tensor",
                "use torch.where, or move the branch out of the compiled function",
            )),
            Value::Symbol(symbol) => match symbol.size.told(Rel::Eq, &SymInt::Int(0)) {
                Some(is_zero) => Ok(!is_zero),
                None => Err(self.undecided()),
            },
            Value::Condition(_) => Err(self.undecided()),
            Value::Number(_) => self.number_is_true(value),
            Value::Instance(instance) => {
                let class = instance.class;
                if self.class_item(class, "__bool__").is_some() {
                    let method = self.class_attribute_of(value, class, &"__bool__".into())?;
                    let result = self.call(&method, Vec::new(), Vec::new())?;
                    let Value::Known(of, _) = self.class_of(&result)? else { return Err(self.stop("a class")) };
                    if Some(of) != self.host.member("builtins", "bool") {
                        let of = self.short_name(of);
                        return Err(self.raise("TypeError", &format!("__bool__ should return bool, returned {of}")));
                    }
                    return self.is_true(&result);
                }
                if self.class_item(class, "__len__").is_some() {
                    let length = self.length(value)?;
                    return self.is_true(&length);
                }
                Ok(true)
            }
            Value::Tuple(_) | Value::List(_) | Value::Deque(_) | Value::Dict(_) | Value::View(_) | Value::Set(_) => {
                if let Some(method) = self.overridden(value, "__bool__")? {
                    let is_true = self.call(&method, Vec::new(), Vec::new())?;
                    return self.is_true(&is_true);
                }
                if self.overridden(value, "__len__")?.is_some() {
                    let length = self.length(value)?;
                    return self.is_true(&length);
                }
                let length = self.count(value)?;
                Ok(length != 0)
            }
            Value::Null | Value::Lazy(_) => Err(self.stop("whether nothing is true")),
            Value::Unknown(what) => Err(self.stop(format!("whether {what} is true"))),
            _ => Ok(true),
        }
    }

    /// Whether numbers that change are one object; nothing for other values. Python has one object for each small whole number,
    /// of others it depends on where they come from.
    fn is_same_number(&mut self, left: &Value, right: &Value) -> Run<Option<bool>> {
        let changes = |value: &Value| matches!(value, Value::Symbol(_) | Value::Number(_));
        let is_number = |value: &Value| match value {
            Value::Known(object, _) => matches!(self.host.kind(*object), Kind::Int | Kind::Plain),
            other => changes(other),
        };
        if !(changes(left) || changes(right)) || !(is_number(left) && is_number(right)) {
            return Ok(None);
        }
        if !self.equal(left, right)? {
            return Ok(Some(false));
        }
        let left = self.with_known_sizes(left)?;
        let right = self.with_known_sizes(right)?;
        let small = |value: &Value| match value {
            Value::Known(object, _) => self.host.as_int(*object).is_some_and(|number| (-5..=256).contains(&number)),
            _ => false,
        };
        if small(&left) && small(&right) { Ok(Some(true)) } else { Err(self.stop("the identity of numbers")) }
    }

    /// `left is right`.
    pub(super) fn is_same(&mut self, left: &Value, right: &Value) -> Run<bool> {
        if let Some(same) = self.is_same_number(left, right)? {
            return Ok(same);
        }
        if let (Value::Known(a, _), Value::Known(b, _)) = (left, right) {
            self.rely_on_identity(left, right);
            return Ok(a == b);
        }
        if let (Value::Tuple(a), Value::Tuple(b)) = (left, right)
            && a.items.is_empty()
            && b.items.is_empty()
            && a.class.is_none()
            && b.class.is_none()
        {
            return Ok(true);
        }
        match (left, right) {
            // There is one reference without a callback for each object.
            (Value::Weak(a), Value::Weak(b)) if a.callback.is_none() && b.callback.is_none() => {
                return match (a.get(), b.get()) {
                    (Some(a), Some(b)) => self.is_same(&a, &b),
                    _ => Ok(Rc::ptr_eq(a, b)),
                };
            }
            (Value::Weak(_), Value::Known(known, _)) | (Value::Known(known, _), Value::Weak(_))
                if self.is_weak_reference(*known) =>
            {
                return Err(self.stop("the identity of weak references"));
            }
            _ => {}
        }
        match (left.identity(), right.identity()) {
            (Some(a), Some(b)) => {
                if a == b {
                    return Ok(true);
                }
                // A method that was bound here is nobody else's.
                if let (Value::Method(_), Value::Method(_)) = (left, right)
                    && [a, b].iter().any(|one| !self.known.values().any(|known| known.identity() == Some(*one)))
                {
                    return Ok(false);
                }
                if let (Value::Method(_), Value::Method(_)) = (left, right) {
                    return Err(self.stop("the identity of two methods"));
                }
                if let (Some(a), Some(b)) = (origin_of(left), origin_of(right)) {
                    let (a, b) = (a.source.clone(), b.source.clone());
                    self.guard(&a, Check::Differs(b));
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Whether two functions are one, which is guarded.
    fn is_same_function(&mut self, left: &Value, right: &Value) -> Run<bool> {
        if let (Value::Function(a), Value::Function(b)) = (left, right) {
            if Rc::ptr_eq(a, b) {
                return Ok(true);
            }
            for origin in [&a.origin, &b.origin].into_iter().flatten() {
                self.guard(&origin.source.clone(), Check::Is(origin.object));
            }
            return Ok(false);
        }
        self.is_same(left, right)
    }

    /// Guards which objects two are, where what they are guarded by so far does not say.
    fn rely_on_identity(&mut self, left: &Value, right: &Value) {
        let (Value::Known(a, _), Value::Known(b, _)) = (left, right) else { return };
        let told = |object: Object| match self.host.kind(object) {
            Kind::None | Kind::Bool | Kind::Class | Kind::Module => true,
            // One that is bound to an object is guarded by what it is bound to.
            Kind::Builtin => self.bound_receiver(object).is_none(),
            _ => false,
        };
        // Plain values that differ are no one object; None and its like are guarded by identity anyway.
        let plain = |object: Object| matches!(self.host.kind(object), Kind::Int | Kind::Plain | Kind::FrozenSet);
        let differ = a != b && (told(*a) || plain(*a)) && (told(*b) || plain(*b)) && {
            let eq = |a: Object, b: Object| self.host.operator("eq", &[a, b]).ok();
            let no = Some(self.host.bool(false));
            // Two NaNs may be one object though they are not equal.
            eq(*a, *b) == no && !(eq(*a, *a) == no && eq(*b, *b) == no)
                || self.host.class_of(*a) != self.host.class_of(*b)
        };
        if differ {
            return;
        }
        let opaque = |object: Object| matches!(self.host.kind(object), Kind::Opaque | Kind::Generator);
        if let (Value::Known(a, Some(first)), Value::Known(b, Some(second))) = (left, right)
            && opaque(*a)
            && opaque(*b)
        {
            // Where they are one object, both paths are guarded to lead to it.
            if a != b {
                self.guard(first, Check::Differs(second.clone()));
            }
            return;
        }
        for value in [left, right] {
            if let Value::Known(object, Some(source)) = value
                && !told(*object)
            {
                self.guard(&source.clone(), Check::Is(*object));
            }
        }
    }

    /// The name of a class without its module.
    pub(super) fn short_name(&self, class: Object) -> String {
        let name = self.host.class_name(class);
        name.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// `left < right` and the like, by the name that Python's `operator` module gives it.
    pub(super) fn compare(&mut self, name: &str, left: &Value, right: &Value) -> Run<Value> {
        self.nested(|this| this.compare_values(name, left, right))
    }

    fn compare_values(&mut self, name: &str, left: &Value, right: &Value) -> Run<Value> {
        if let Some(result) = self.operator_overridden(name, left, Some(right))? {
            return Ok(result);
        }
        if is_number(left) || is_number(right) {
            if let Some(result) = self.number_operator(name, left, right)? {
                return Ok(result);
            }
            let (left, right) = (self.specialized(left), self.specialized(right));
            return self.compare(name, &left, &right);
        }
        if let (Value::Tensor(_), true) = (left, self.is_number_of(right))
            && let Some(number) = self.value_of(right)
        {
            return self.compare(name, left, &number);
        }
        // The version of torch is compared by rules of its own, and does not change.
        if let (Value::Instance(version), Some(other)) = (left, self.plain_guarded(right)?)
            && let Some(origin) = version.origin.clone()
            && self.host.class_name(version.class) == "torch.torch_version.TorchVersion"
        {
            self.guard(&origin.source, Check::Is(origin.object));
            let outcome = self.host.operator(name, &[origin.object, other]).map_err(|r| self.raised(r))?;
            return Ok(Value::Known(outcome, None));
        }
        if (is_graph(left) || is_graph(right)) && self.value_of(left).is_none() && self.value_of(right).is_none() {
            if matches!(name, "eq" | "ne") && (self.is_none(left) || self.is_none(right)) {
                return Ok(self.bool(name == "ne"));
            }
            return self.graph_operator(name, &[left.clone(), right.clone()]);
        }
        if let (Some(a), Some(b)) = (self.plain_guarded(left)?, self.plain_guarded(right)?) {
            return self.host.operator(name, &[a, b]).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r));
        }
        if let Some(result) = self.reflected(left, right, &format!("__{name}__"), mirrored(name))? {
            return Ok(result);
        }
        if let Some((left, right)) = self.as_values(left, right, &format!("__{name}__"), mirrored(name))? {
            return self.compare(name, &left, &right);
        }
        if let Some(result) = self.combine_views(name, left, right)? {
            return Ok(result);
        }
        match (name, left, right) {
            ("eq" | "ne", ..) => {
                let equal = self.equal(left, right)?;
                Ok(self.bool(equal == (name == "eq")))
            }
            (_, Value::Tuple(_), Value::Tuple(_)) | (_, Value::List(_), Value::List(_)) => {
                let (a, b) = (self.plain_items(left)?, self.plain_items(right)?);
                for (x, y) in a.iter().zip(&b) {
                    if !self.equal(x, y)? {
                        return self.compare(name, x, y);
                    }
                }
                let (a, b) = (self.int(a.len() as i64), self.int(b.len() as i64));
                self.compare(name, &a, &b)
            }
            _ if self.is_set(left) && self.is_set(right) => {
                let (left, right) = (self.set_of(left)?, self.set_of(right)?);
                let (count, other) = (self.count(&left)?, self.count(&right)?);
                let method = match name {
                    "lt" if count >= other => return Ok(self.bool(false)),
                    "gt" if count <= other => return Ok(self.bool(false)),
                    "lt" | "le" => "issubset",
                    _ => "issuperset",
                };
                self.call_method(&left, &method.into(), vec![right], Vec::new())
            }
            // None of these has an operator for the other.
            (_, Value::Set(_), Value::List(_) | Value::Tuple(_) | Value::Dict(_))
            | (_, Value::List(_) | Value::Tuple(_) | Value::Dict(_), Value::Set(_))
                if let Some(symbol) = symbol_of(name).filter(|symbol| !matches!(*symbol, "+" | "*")) =>
            {
                let (left, right) = (self.class_name_of(left)?, self.class_name_of(right)?);
                let message = format!("unsupported operand type(s) for {symbol}: '{left}' and '{right}'");
                Err(self.raise("TypeError", &message))
            }
            (_, Value::Instance(_), _) | (_, _, Value::Instance(_))
                if self.refuses(left, right, &format!("__{name}__"), mirrored(name))? =>
            {
                let symbol = match name {
                    "lt" => "<",
                    "le" => "<=",
                    "gt" => ">",
                    _ => ">=",
                };
                let (left, right) = (self.class_name_of(left)?, self.class_name_of(right)?);
                let message = format!("'{symbol}' not supported between instances of '{left}' and '{right}'");
                Err(self.raise("TypeError", &message))
            }
            _ => {
                let (a, b) = (self.describe(left), self.describe(right));
                Err(self.stop(format!("a comparison of {a} and {b}")))
            }
        }
    }

    /// `left == right`, as a bool.
    pub(super) fn equal(&mut self, left: &Value, right: &Value) -> Run<bool> {
        self.nested(|this| this.equal_values(left, right))
    }

    fn equal_values(&mut self, left: &Value, right: &Value) -> Run<bool> {
        let (left, right) = (self.force(left)?, self.force(right)?);
        if matches!(
            (&left, &right),
            (Value::Members(_), Value::Members(_) | Value::Dict(_)) | (Value::Dict(_), Value::Members(_))
        ) {
            let shown = |this: &mut Self, side: &Value| match side {
                Value::Members(instance) => this.members_of(&instance.clone()),
                other => Ok(other.clone()),
            };
            let (left, right) = (shown(self, &left)?, shown(self, &right)?);
            return self.equal(&left, &right);
        }
        if is_graph(&left) || is_graph(&right) || is_number(&left) || is_number(&right) {
            let result = self.compare("eq", &left, &right)?;
            return self.is_true(&result);
        }
        if self.value_of(&left).is_some() || self.value_of(&right).is_some() {
            let result = self.compare("eq", &left, &right)?;
            return self.is_true(&result);
        }
        if left.identity().is_some() && left.identity() == right.identity() {
            return Ok(true);
        }
        if let (Some(a), Some(b)) = (self.plain_guarded(&left)?, self.plain_guarded(&right)?) {
            let result = self.host.operator("eq", &[a, b]).map_err(|r| self.raised(r))?;
            return self.host.is_true(result).map_err(|r| self.raised(r));
        }
        if let Some(equal) = self.equal_views(&left, &right)? {
            return Ok(equal);
        }
        if (self.overridden(&left, "__eq__")?.is_some() || self.overridden(&right, "__eq__")?.is_some())
            && let Some(result) = self.reflected(&left, &right, "__eq__", "__eq__")?
        {
            return self.is_true(&result);
        }
        match (&left, &right) {
            (Value::Tuple(_), Value::Tuple(_))
            | (Value::List(_), Value::List(_))
            | (Value::Deque(_), Value::Deque(_)) => {
                let (a, b) = (self.plain_items(&left)?, self.plain_items(&right)?);
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (x, y) in a.iter().zip(&b) {
                    if !self.is_same_or_equal(x, y)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Slice(a), Value::Slice(b)) => {
                for (x, y) in a.iter().zip(b.iter()) {
                    if !self.is_same_or_equal(x, y)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Dict(_), Value::Dict(_)) => {
                if self.count(&left)? != self.count(&right)? {
                    return Ok(false);
                }
                let mut ordered = true;
                for side in [&left, &right] {
                    ordered &= matches!(self.class_of(side)?, Value::Known(class, _) if self.is_ordered(class));
                }
                // Two dictionaries that keep an order are compared in it.
                if ordered {
                    let (keys, others) = (self.plain_items(&left)?, self.plain_items(&right)?);
                    for (key, other) in keys.iter().zip(&others) {
                        if !self.is_same_or_equal(key, other)? {
                            return Ok(false);
                        }
                    }
                }
                for (key, value) in self.dict_pairs(&left)? {
                    match self.dict_get(&right, &key)? {
                        Some(other) if self.is_same_or_equal(&value, &other)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            (Value::Set(a), Value::Set(b)) => {
                if a.entries.borrow().len() != b.entries.borrow().len() {
                    return Ok(false);
                }
                let members: Vec<Value> = a.entries.borrow().iter().map(|(_, member, _)| member.clone()).collect();
                for member in members {
                    if !self.contains(&right, &member)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Set(_), Value::Known(known, _)) if self.host.kind(*known) == Kind::FrozenSet => {
                let right = self.set_of(&right)?;
                self.equal(&left, &right)
            }
            (Value::Known(known, _), Value::Set(_)) if self.host.kind(*known) == Kind::FrozenSet => {
                let left = self.set_of(&left)?;
                self.equal(&left, &right)
            }
            (Value::Weak(a), Value::Weak(b)) => match (a.get(), b.get()) {
                (Some(a), Some(b)) => self.equal(&a, &b),
                _ => Ok(Rc::ptr_eq(a, b)),
            },
            (Value::Weak(_), Value::Known(known, _)) | (Value::Known(known, _), Value::Weak(_))
                if self.is_weak_reference(*known) =>
            {
                Err(self.stop("a comparison of weak references"))
            }
            (Value::Address(a), Value::Address(b)) => self.is_same(&a.clone(), &b.clone()),
            (Value::Address(_) | Value::Unknown(_), _) | (_, Value::Address(_) | Value::Unknown(_)) => {
                Err(self.stop("a comparison with the address of an object"))
            }
            (Value::Method(a), Value::Method(b)) => {
                let (a, b) = (a.clone(), b.clone());
                Ok(self.is_same(&a.1, &b.1)? && self.is_same_function(&a.0, &b.0)?)
            }
            (Value::Instance(a), Value::Instance(b))
                if a.class == b.class && Some(a.class) == self.host.member("types", "SimpleNamespace") =>
            {
                let (a, b) = (self.attribute(&left, &"__dict__".into())?, self.attribute(&right, &"__dict__".into())?);
                let pairs = |this: &mut Self, held: &Value| match held {
                    Value::Members(instance) => this.members_of(&instance.clone()),
                    other => Ok(other.clone()),
                };
                let (a, b) = (pairs(self, &a)?, pairs(self, &b)?);
                self.equal(&a, &b)
            }
            (Value::Instance(_), _) | (_, Value::Instance(_)) => {
                match self.reflected(&left, &right, "__eq__", "__eq__")? {
                    Some(result) => self.is_true(&result),
                    None if self.is_compared_in_c(&left) || self.is_compared_in_c(&right) => {
                        Err(self.stop("a comparison of objects that are not understood"))
                    }
                    None => self.is_same(&left, &right),
                }
            }
            (Value::Known(a, _), Value::Known(b, _)) => {
                // Methods of one object are equal, though each look at them makes another.
                if self.host.kind(*a) == Kind::Builtin && self.host.kind(*b) == Kind::Builtin {
                    self.rely_on_receiver(&left);
                    self.rely_on_receiver(&right);
                    let same = self.host.operator("eq", &[*a, *b]).map_err(|r| self.raised(r))?;
                    return Ok(same == self.host.bool(true));
                }
                let opaque = |o: Object| matches!(self.host.kind(o), Kind::Opaque | Kind::Generator);
                if a != b && (opaque(*a) || opaque(*b)) {
                    let usual = self.host.member("builtins", "object").and_then(|it| self.class_item(it, "__eq__"));
                    if [*a, *b].iter().any(|it| self.class_item(self.host.class_of(*it), "__eq__") != usual) {
                        return Err(self.stop("a comparison of objects that are not understood"));
                    }
                    return self.is_same(&left, &right);
                }
                Ok(a == b)
            }
            _ if self.is_compared_in_c(&left) || self.is_compared_in_c(&right) => {
                Err(self.stop("a comparison of objects that are not understood"))
            }
            (
                Value::Function(_) | Value::Method(_) | Value::Bound(_),
                Value::Function(_) | Value::Method(_) | Value::Bound(_),
            ) => Err(self.stop("a comparison of functions")),
            _ => Ok(false),
        }
    }

    /// Whether the class of an object that is not looked into says in C what the object is equal to.
    fn is_compared_in_c(&self, value: &Value) -> bool {
        let class = match value {
            Value::Instance(instance) if instance.value.is_none() && !instance.exception => instance.class,
            Value::Known(object, _) if matches!(self.host.kind(*object), Kind::Opaque | Kind::Generator) => {
                self.host.class_of(*object)
            }
            _ => return false,
        };
        let usual = self.host.member("builtins", "object").and_then(|object| self.class_item(object, "__eq__"));
        let found = self.class_item(class, "__eq__");
        found != usual && found.is_some_and(|found| self.host.descriptor(found) != Descriptor::Function)
    }

    /// Whether a value is a set, frozen or not.
    pub(super) fn is_set(&self, value: &Value) -> bool {
        match value {
            Value::Set(_) => true,
            Value::Known(object, _) => self.host.kind(*object) == Kind::FrozenSet,
            _ => false,
        }
    }

    /// The name of the class of a value without its module.
    fn class_name_of(&mut self, value: &Value) -> Run<String> {
        match self.class_of(value)? {
            Value::Known(class, _) => Ok(self.short_name(class)),
            _ => Err(self.stop("a value without a class")),
        }
    }

    /// Whether no class of two operands has these methods, other than in Python, where they were asked already.
    fn refuses(&mut self, left: &Value, right: &Value, name: &str, mirrored: &str) -> Run<bool> {
        let object = self.host.member("builtins", "object").ok_or_else(|| self.stop("a missing class"))?;
        for (value, name) in [(left, name), (right, mirrored)] {
            let Value::Known(class, _) = self.class_of(value)? else { return Ok(false) };
            let found = self.class_item(class, name);
            let usual = self.class_item(object, name);
            if found.is_some() && found != usual && !self.is_python_method(class, name) && !self.is_ignorant(value) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a value's own operators know nothing of objects of other classes.
    fn is_ignorant(&self, value: &Value) -> bool {
        let Value::Known(object, _) = value else { return false };
        match self.host.kind(*object) {
            Kind::None | Kind::Bool | Kind::Int => true,
            Kind::Plain => {
                let class = self.host.class_name(self.host.class_of(*object));
                matches!(&*class, "builtins.float" | "builtins.complex")
            }
            _ => false,
        }
    }

    /// What a method of the left operand's class, or the mirrored one of the right's, gives; nothing when neither has one.
    pub(super) fn reflected(&mut self, left: &Value, right: &Value, name: &str, mirrored: &str) -> Run<Option<Value>> {
        let class_of = |value: &Value| match value {
            Value::Instance(instance) => Some(instance.class),
            Value::Tuple(tuple) => tuple.class,
            Value::List(list) => list.class,
            Value::Deque(deque) => deque.class,
            Value::Dict(dict) => dict.class,
            Value::Set(set) => set.class,
            _ => None,
        };
        let mut ways = [(left, right, name), (right, left, mirrored)];
        // The right operand is asked first where its class is derived from the left one's and has its own method.
        if let (Value::Known(of_left, _), Some(of_right)) = (self.class_of(left)?, class_of(right))
            && of_left != of_right
            && self.host.derives(of_right, of_left)
            && self.class_item(of_right, mirrored) != self.class_item(of_left, mirrored)
        {
            ways.reverse();
        }
        let same = class_of(left).is_some() && class_of(left) == class_of(right);
        for (place, (object, other, name)) in ways.into_iter().enumerate() {
            let Some(class) = class_of(object) else { continue };
            // Operands of one class are asked once; comparisons are asked both ways.
            if place > 0 && same && mirrored.starts_with("__r") {
                continue;
            }
            let Some(found) = self.class_item(class, name) else { continue };
            if self.host.descriptor(found) != Descriptor::Function {
                continue;
            }
            let function = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
            let result = self.call(&function, vec![object.clone(), other.clone()], Vec::new())?;
            let unknown = self.host.member("builtins", "NotImplemented");
            if !matches!(&result, Value::Known(o, _) if Some(*o) == unknown) {
                return Ok(Some(result));
            }
        }
        Ok(None)
    }

    /// `operator.name(value)`.
    pub(super) fn unary(&mut self, name: &str, value: &Value) -> Run<Value> {
        if let Some(result) = self.operator_overridden(name, value, None)? {
            return Ok(result);
        }
        if let Value::Number(number) = value
            && let Some(result) = self.negated(name, number, value)?
        {
            return Ok(result);
        }
        // torch gives the tensor itself, unless it holds bools.
        if let ("pos", Value::Tensor(tensor)) = (name, value)
            && self.tensor_meta(tensor.node)?.dtype != pyrite_tensor::DType::Bool
        {
            return Ok(value.clone());
        }
        if is_graph(value) {
            return self.graph_operator(name, std::slice::from_ref(value));
        }
        if let Some(object) = self.plain_guarded(value)? {
            return self.host.operator(name, &[object]).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r));
        }
        if let Some(method) = self.overridden(value, &format!("__{name}__"))? {
            return self.call(&method, Vec::new(), Vec::new());
        }
        if let Value::Instance(instance) = value {
            let method = format!("__{name}__");
            if self.class_item(instance.class, &method).is_none() {
                let symbol = match name {
                    "neg" => "-",
                    "pos" => "+",
                    _ => "~",
                };
                let message = format!("bad operand type for unary {symbol}: '{}'", self.short_name(instance.class));
                return Err(self.raise("TypeError", &message));
            }
            let method = self.class_attribute_of(value, instance.class, &method.into())?;
            return self.call(&method, Vec::new(), Vec::new());
        }
        Err(self.stop(format!("the operator {name} of {}", self.describe(value))))
    }

    /// The class of sizes, where a tuple is of it: joined or repeated it stays what it is, where other classes become tuples.
    pub(super) fn size_class(&self, value: &Value) -> Option<Object> {
        match value {
            Value::Tuple(tuple) => tuple.class.filter(|class| self.host.class_name(*class) == "torch.Size"),
            _ => None,
        }
    }

    /// `operator.name(left, right)`.
    pub(super) fn binary(&mut self, name: &str, left: &Value, right: &Value) -> Run<Value> {
        if let Some(result) = self.operator_overridden(name, left, Some(right))? {
            return Ok(result);
        }
        if is_number(left) || is_number(right) {
            if let Some(result) = self.number_operator(name, left, right)? {
                return Ok(result);
            }
            let (left, right) = (self.specialized(left), self.specialized(right));
            return self.binary(name, &left, &right);
        }
        // torch takes a number of any class for the number that it is.
        if let (Value::Tensor(_), true) = (left, self.is_number_of(right))
            && let Some(number) = self.value_of(right)
        {
            return self.binary(name, left, &number);
        }
        if is_graph(left) || is_graph(right) {
            let sequences = matches!(left, Value::List(_) | Value::Tuple(_) | Value::Instance(_))
                || matches!(right, Value::List(_) | Value::Tuple(_) | Value::Instance(_));
            if !sequences {
                return self.graph_operator(name, &[left.clone(), right.clone()]);
            }
        }
        // `int | float`, to be asked for as a class.
        if name == "or_"
            && let (Value::Known(a, _), Value::Known(b, _)) = (left, right)
            && self.host.class_name(self.host.class_of(*a)) == "types.UnionType"
        {
            return self.host.operator(name, &[*a, *b]).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r));
        }
        let formats = name == "mod" && matches!(left, Value::Known(o, _) if self.host.as_str(*o).is_some());
        // A tuple of any class is the values that are formatted.
        let values = match right {
            Value::Tuple(tuple) if formats && tuple.class.is_some() => &Value::tuple(self.items_of(right)?),
            other => other,
        };
        if formats && let (Some(text), Some(values)) = (self.plain(left), self.real(values)?) {
            return self
                .host
                .operator(name, &[text, values])
                .map(|o| Value::Known(o, None))
                .map_err(|r| self.raised(r));
        }
        // Where the members of sets come to lie is guarded below.
        let sets = self.is_set(left) && self.is_set(right);
        if !sets
            && let (Some(a), Some(b)) = (self.plain_guarded(left)?, self.plain_guarded(right)?)
            && !matches!(left, Value::Tuple(_))
        {
            return self.host.operator(name, &[a, b]).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r));
        }
        let stem = name.trim_end_matches('_');
        if let Some(result) = self.reflected(left, right, &format!("__{stem}__"), &format!("__r{stem}__"))? {
            return Ok(result);
        }
        if let Some((left, right)) = self.as_values(left, right, &format!("__{stem}__"), &format!("__r{stem}__"))? {
            return self.binary(name, &left, &right);
        }
        if let Some(result) = self.combine_views(name, left, right)? {
            return Ok(result);
        }
        match (name, left, right) {
            ("add", Value::List(_), Value::List(_)) | ("add", Value::Tuple(_), Value::Tuple(_)) => {
                let mut items = self.plain_items(left)?;
                items.extend(self.plain_items(right)?);
                let class = self.size_class(left).or_else(|| self.size_class(right));
                Ok(if matches!(left, Value::List(_)) {
                    Value::list(items)
                } else {
                    Value::Tuple(Rc::new(crate::value::TupleValue { items, class, ..Default::default() }))
                })
            }
            ("mul", Value::List(_) | Value::Tuple(_), _) | ("mul", _, Value::List(_) | Value::Tuple(_)) => {
                let (sequence, times) =
                    if matches!(left, Value::List(_) | Value::Tuple(_)) { (left, right) } else { (right, left) };
                let times = self.index_of(times)?;
                let items = self.plain_items(sequence)?;
                let count = usize::try_from(times).unwrap_or(0);
                if items.len().saturating_mul(count) > 100_000 {
                    return Err(self.stop("creating a very long list"));
                }
                let repeated: Vec<Value> = (0..count).flat_map(|_| items.iter().cloned()).collect();
                let class = self.size_class(sequence);
                Ok(if matches!(sequence, Value::List(_)) {
                    Value::list(repeated)
                } else {
                    Value::Tuple(Rc::new(crate::value::TupleValue { items: repeated, class, ..Default::default() }))
                })
            }
            ("add", Value::List(_), other)
                if self.is_ignorant(other) || matches!(other, Value::Tuple(_) | Value::Dict(_) | Value::Set(_)) =>
            {
                let other = self.class_name_of(other)?;
                Err(self.raise("TypeError", &format!("can only concatenate list (not \"{other}\") to list")))
            }
            ("or_", Value::Dict(_), Value::Dict(_)) => {
                let mut pairs = self.dict_pairs(left)?;
                pairs.extend(self.dict_pairs(right)?);
                // Other dictionaries than these give a plain one, whatever their class.
                for side in [left, right] {
                    if let Value::Dict(dict) = side
                        && dict.class.is_some_and(|class| self.is_ordered(class) || self.is_defaultdict(class))
                    {
                        return self.new_dict_like(side, pairs);
                    }
                }
                self.new_dict(pairs)
            }
            ("and_" | "or_" | "sub" | "xor", ..) if self.is_set(left) && self.is_set(right) => {
                let left = self.laid_out_set(left)?;
                let method = match name {
                    "and_" => "intersection",
                    "or_" => "union",
                    "sub" => "difference",
                    _ => "symmetric_difference",
                };
                self.call_method(&left, &method.into(), vec![right.clone()], Vec::new())
            }
            // None of these has an operator for the other.
            (_, Value::Set(_), Value::List(_) | Value::Tuple(_) | Value::Dict(_))
            | (_, Value::List(_) | Value::Tuple(_) | Value::Dict(_), Value::Set(_))
                if let Some(symbol) = symbol_of(name).filter(|symbol| !matches!(*symbol, "+" | "*")) =>
            {
                let (left, right) = (self.class_name_of(left)?, self.class_name_of(right)?);
                let message = format!("unsupported operand type(s) for {symbol}: '{left}' and '{right}'");
                Err(self.raise("TypeError", &message))
            }
            (_, Value::Instance(_), _) | (_, _, Value::Instance(_))
                if self.refuses(left, right, &format!("__{stem}__"), &format!("__r{stem}__"))?
                    && let Some(symbol) = symbol_of(name) =>
            {
                let (left, right) = (self.class_name_of(left)?, self.class_name_of(right)?);
                let message = format!("unsupported operand type(s) for {symbol}: '{left}' and '{right}'");
                Err(self.raise("TypeError", &message))
            }
            _ => {
                let (a, b) = (self.describe(left), self.describe(right));
                Err(self.stop(format!("the operator {name} of {a} and {b}")))
            }
        }
    }

    /// `left op= right`.
    pub(super) fn binary_in_place(&mut self, name: &str, left: &Value, right: &Value) -> Run<Value> {
        if let Some(method) = self.overridden(left, &format!("__i{}__", name.trim_end_matches('_')))? {
            return self.call(&method, vec![right.clone()], Vec::new());
        }
        match (name, left) {
            (_, Value::Tensor(_)) if name != "matmul" => {
                let in_place = format!("i{}", name.trim_end_matches('_'));
                if let Some(result) = self.operator_overridden(&in_place, left, Some(right))? {
                    return Ok(result);
                }
                if let Value::Number(_) = right
                    && let Some(result) = self.number_operator(&in_place, left, right)?
                {
                    return Ok(result);
                }
                let right = self.specialized(right);
                self.graph_operator(&in_place, &[left.clone(), right])
            }
            ("add", Value::List(_)) => {
                self.list_extend(left, right)?;
                Ok(left.clone())
            }
            ("mul", Value::List(_)) => {
                let repeated = self.binary("mul", left, right)?;
                let items = self.items_of(&repeated)?;
                self.change_list(left, |held| *held = items)?;
                Ok(left.clone())
            }
            ("add", Value::Deque(_)) => {
                self.call_method(left, &"extend".into(), vec![right.clone()], Vec::new())?;
                Ok(left.clone())
            }
            ("or_", Value::Dict(_)) => {
                self.dict_update(left, right)?;
                Ok(left.clone())
            }
            ("or_" | "and_" | "sub" | "xor", Value::Set(set)) if !set.frozen && self.is_set(right) => {
                let method = match name {
                    "or_" => "update",
                    "and_" => "intersection_update",
                    "sub" => "difference_update",
                    _ => "symmetric_difference_update",
                };
                self.call_method(left, &method.into(), vec![right.clone()], Vec::new())?;
                Ok(left.clone())
            }
            (_, Value::Instance(instance)) => {
                let method = format!("__i{}__", name.trim_end_matches('_'));
                if let Some(found) = self.class_item(instance.class, &method)
                    && self.host.descriptor(found) == Descriptor::Function
                {
                    let function = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
                    return self.call(&function, vec![left.clone(), right.clone()], Vec::new());
                }
                self.binary(name, left, right)
            }
            _ => self.binary(name, left, right),
        }
    }
}

/// How Python writes an operator in messages; nothing for those whose messages differ from the others.
fn symbol_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "truediv" => "/",
        "floordiv" => "//",
        "mod" => "%",
        "matmul" => "@",
        "and_" => "&",
        "or_" => "|",
        "xor" => "^",
        "lshift" => "<<",
        "rshift" => ">>",
        _ => return None,
    })
}

/// Whether a value is computed by the graph.
pub(super) fn is_graph(value: &Value) -> bool {
    matches!(value, Value::Tensor(_) | Value::Symbol(_))
}

/// Whether a value is a float that changes from call to call.
pub(super) fn is_number(value: &Value) -> bool {
    matches!(value, Value::Number(_))
}

fn mirrored(name: &str) -> &'static str {
    match name {
        "lt" => "__gt__",
        "le" => "__ge__",
        "gt" => "__lt__",
        "ge" => "__le__",
        "eq" => "__eq__",
        _ => "__ne__",
    }
}
