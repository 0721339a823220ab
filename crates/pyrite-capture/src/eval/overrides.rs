//! `__torch_function__`: tensors of classes of the user's, objects that stand for tensors, and modes.
//!
//! Torch shows the calls of its functions to the innermost mode, and then to the classes of its arguments. The functions that
//! it shows for operators and attributes are those of `pyrite._overrides`, which has asked torch. A tensor of a class of the
//! user's is a node of the graph like any other: the graph computes on plain tensors over the same memory, and what leaves the
//! frame is given its class again.
//!
//! Invariants: a function that is shown to somebody is not called otherwise; a mode that is shown a call does not see the calls
//! that it makes itself; a frame ends with the modes that it began with.

use std::rc::Rc;

use pyrite_ir::Value as GraphValue;

use super::call::Keywords;
use super::{Evaluator, Run};
use crate::host::{Descriptor, Kind, Object};
use crate::source::Source;
use crate::value::{ContextKind, ListValue, Origin, TensorValue, TupleValue, Value};

/// Whom torch shows the calls of its functions.
#[derive(Default)]
pub(super) struct Overrides {
    /// The modes that captured code has entered, the innermost last, and by which instruction of the root.
    modes: Vec<(Value, (usize, usize))>,
    /// How many contexts that switch the classes of arguments off were entered and not left.
    subclasses_off: usize,
    /// As many that switch off modes, too.
    all_off: usize,
    /// Whether the operator that comes next is the method of torch's own, which its class does not replace.
    by_name: bool,
}

impl Overrides {
    pub(super) fn switch_off(&mut self, kind: ContextKind) {
        match kind {
            ContextKind::OverridesOff => self.all_off += 1,
            _ => self.subclasses_off += 1,
        }
    }

    pub(super) fn switch_on(&mut self, kind: ContextKind) {
        let count = match kind {
            ContextKind::OverridesOff => &mut self.all_off,
            _ => &mut self.subclasses_off,
        };
        *count = count.saturating_sub(1);
    }

    /// Where the outermost mode was entered that is not left yet.
    pub(super) fn entered_at(&self) -> Option<(usize, usize)> {
        self.modes.first().map(|(_, at)| *at)
    }

    /// Lets the operator that comes next be torch's own; what `leave_method` takes.
    pub(super) fn enter_method(&mut self) -> bool {
        std::mem::replace(&mut self.by_name, true)
    }

    pub(super) fn leave_method(&mut self, before: bool) {
        self.by_name = before;
    }

    /// Whether the classes of arguments are not shown functions at this point.
    pub(super) fn is_off(&self) -> bool {
        self.all_off > 0 || self.subclasses_off > 0
    }

    /// Whether calls are shown to a mode at this point.
    pub(super) fn sees_modes(&self) -> bool {
        self.all_off == 0 && !self.modes.is_empty()
    }
}

impl Evaluator<'_, '_> {
    /// A tensor of a class of the user's from outside.
    pub(super) fn wrap_subclass(&mut self, origin: Origin) -> Run<Value> {
        let class = self.guard_class(&origin);
        if self.is_wrapper_class(class)? {
            return self.wrap_wrapper(origin, class);
        }
        let known = Value::Known(class, None);
        let is_captured = self.ask_overrides("is_captured", &known)?;
        let text = self.host.describe(origin.object);
        let refused = |this: &Self| {
            this.stop_with(
                format!("{text} is a tensor of a kind that cannot be captured"),
                "dense tensors on the CPU, and classes derived from Tensor without __torch_dispatch__, are captured",
            )
        };
        if !is_captured {
            return Err(refused(self));
        }
        let maker = self.overrides_member("to_plain")?;
        let plain = self.read_called(&origin, maker)?;
        if self.host.kind(plain.object) != Kind::Tensor {
            return Err(refused(self));
        }
        let is_leaf = self.host.call(self.overrides_member("is_leaf")?, &[origin.object], &[]);
        let is_leaf = is_leaf.is_ok_and(|leaf| leaf == self.host.bool(true));
        let wrapped = self.wrap_leaf(Origin { object: plain.object, source: plain.source }, Some(is_leaf))?;
        let parameter = self.host.member("torch.nn", "Parameter");
        let parameter = parameter.is_some_and(|parameter| self.host.derives(class, parameter));
        let tensor =
            TensorValue { origin: Some(origin), class: Some(class), parameter, ..TensorValue::computed(wrapped.node) };
        Ok(Value::Tensor(Rc::new(tensor)))
    }

    fn overrides_member(&self, name: &str) -> Run<Object> {
        let found = self.host.member("pyrite._overrides", name);
        found.ok_or_else(|| self.stop(format!("a missing function: pyrite._overrides.{name}")))
    }

    /// Asks a function of `pyrite._overrides` about an object.
    fn ask_overrides(&self, question: &str, about: &Value) -> Run<bool> {
        let Value::Known(object, _) = about else { return Ok(false) };
        let question = self.overrides_member(question)?;
        let answer = self.host.call(question, &[*object], &[]).map_err(|r| self.raised(r))?;
        Ok(answer == self.host.bool(true))
    }

    /// The class by which a value says what torch's functions do with it.
    fn overriding_class(&mut self, value: &Value) -> Option<Object> {
        let class = match value {
            Value::Tensor(tensor) => tensor.class?,
            Value::Instance(instance) if !instance.torch_module && !instance.exception => instance.class,
            _ => return None,
        };
        let found = self.class_item(class, "__torch_function__")?;
        let disabled = self.host.member("torch._C", "_disabled_torch_function_impl");
        (Some(found) != disabled).then_some(class)
    }

    /// The arguments whose classes are asked, those of derived classes first.
    fn overriding<'v>(&mut self, args: impl Iterator<Item = &'v Value>) -> Run<Vec<(Value, Object)>> {
        let mut found: Vec<(Value, Object)> = Vec::new();
        if self.overrides.all_off > 0 || self.overrides.subclasses_off > 0 {
            return Ok(found);
        }
        for arg in args {
            let held = match arg {
                Value::Tuple(tuple) if tuple.class.is_none() => tuple.items.clone(),
                Value::List(list) if list.class.is_none() => list.items.borrow().clone(),
                other => vec![other.clone()],
            };
            for value in held {
                let value = self.force(&value)?;
                let Some(class) = self.overriding_class(&value) else { continue };
                if found.is_empty() && !self.is_enabled_outside()? {
                    return Ok(found);
                }
                if found.iter().any(|(_, known)| *known == class) {
                    continue;
                }
                let place = found.iter().position(|(_, known)| self.host.derives(class, *known));
                found.insert(place.unwrap_or(found.len()), (value, class));
            }
        }
        Ok(found)
    }

    /// Whether classes are asked where the frame is called, which is guarded.
    fn is_enabled_outside(&mut self) -> Run<bool> {
        let question = self.host.member("torch._C", "_is_torch_function_enabled");
        let enabled = self.ask_state(question.ok_or_else(|| self.stop("a missing function"))?)?;
        self.is_true(&enabled)
    }

    /// Shows a call to modes and to the classes of its arguments; nothing where nobody wants to see it.
    fn show(&mut self, function: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let sees_modes = self.overrides.sees_modes();
        let overriding = self.overriding(args.iter().chain(kwargs.iter().map(|(_, value)| value)))?;
        if !sees_modes && overriding.is_empty() {
            return Ok(None);
        }
        if !sees_modes && self.takes_wrapper(args, kwargs)? {
            let mut own = false;
            for (_, class) in &overriding {
                own |= self.has_own_function(*class)?;
            }
            if !own {
                return self.call_wrapped(function, args, kwargs).map(Some);
            }
        }
        let function = Value::Known(function, None);
        let types = Value::tuple(overriding.iter().map(|(_, class)| Value::Known(*class, None)).collect());
        let mut shown = vec![function.clone(), types, Value::tuple(args.to_vec())];
        let is_c = matches!(&function, Value::Known(object, _) if self.host.kind(*object) == Kind::Builtin);
        if !is_c || !kwargs.is_empty() {
            let pairs = kwargs.iter().map(|(name, value)| (self.text(name), value.clone())).collect();
            shown.push(self.new_dict(pairs)?);
        }
        let function = match &function {
            Value::Known(object, _) if self.host.kind(*object) == Kind::Function => {
                self.wrap(*object, &Rc::new(Source::Fixed(*object)))?
            }
            other => other.clone(),
        };
        shown[0] = function;
        if sees_modes && let Some((mode, at)) = self.overrides.modes.pop() {
            let method = self.attribute(&mode, &"__torch_function__".into());
            let result = method.and_then(|method| self.call(&method, shown.clone(), Vec::new()));
            self.overrides.modes.push((mode, at));
            let result = result?;
            if !self.is_not_implemented(&result) {
                return Ok(Some(result));
            }
        }
        for (value, class) in overriding {
            let method = match self.class_item(class, "__torch_function__").map(|found| self.host.descriptor(found)) {
                Some(Descriptor::ClassMethod(_) | Descriptor::StaticMethod(_)) => {
                    self.attribute(&Value::Known(class, None), &"__torch_function__".into())?
                }
                // An ordinary method is warned about.
                _ => {
                    return Err(
                        self.stop(format!("__torch_function__ of {} is not a class method", self.describe(&value)))
                    );
                }
            };
            let result = self.call(&method, shown.clone(), Vec::new())?;
            if !self.is_not_implemented(&result) {
                return Ok(Some(result));
            }
        }
        Err(self.stop("a function that no __torch_function__ implements"))
    }

    fn is_not_implemented(&self, value: &Value) -> bool {
        matches!(value, Value::Known(object, _) if Some(*object) == self.host.member("builtins", "NotImplemented"))
    }

    /// Whether anybody may want to see a call with these arguments; says no without a look at classes where that is cheap.
    fn may_be_shown(&self, args: &[Value], kwargs: &Keywords) -> bool {
        let holds = |value: &Value| match value {
            Value::Tensor(tensor) => tensor.class.is_some(),
            Value::Instance(_) | Value::Lazy(_) => true,
            Value::Tuple(tuple) => tuple.items.iter().any(needs_a_look),
            Value::List(list) => list.items.borrow().iter().any(needs_a_look),
            _ => false,
        };
        self.overrides.sees_modes() || args.iter().any(holds) || kwargs.iter().any(|(_, value)| holds(value))
    }

    /// A function of torch by its name: what is shown to others, and what is asked about that.
    pub(super) fn call_overridden(
        &mut self,
        name: &str,
        object: Object,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Option<Value>> {
        let stem = name.rsplit('.').next().unwrap_or_default();
        // Questions about overridden functions are met under many names.
        if stem.trim_start_matches('_').starts_with("has_torch_function") {
            let given = match args {
                [Value::Tuple(tuple)] => tuple.items.clone(),
                [list @ Value::List(_)] => self.items_of(list)?,
                other => other.to_vec(),
            };
            let found = self.overrides.sees_modes() || !self.overriding(given.iter())?.is_empty();
            return Ok(Some(self.bool(found)));
        }
        match (name, args) {
            ("torch.overrides.handle_torch_function", [Value::Known(function, _), _, rest @ ..]) => {
                return self.show(*function, rest, kwargs);
            }
            ("torch.overrides.handle_torch_function", [Value::Function(function), _, rest @ ..]) => {
                let object = function.origin.as_ref().map(|origin| origin.object);
                let object = object
                    .ok_or_else(|| self.stop("a function created in the frame is passed to __torch_function__"))?;
                return self.show(object, rest, kwargs);
            }
            ("torch.Tensor.__torch_function__", [Value::Known(class, _), function, types, given, rest @ ..]) => {
                let kwargs = rest.first().cloned().filter(|kwargs| !self.is_none(kwargs));
                return self.default_override(*class, function, types, given, kwargs.as_ref()).map(Some);
            }
            ("torch._C._disabled_torch_function_impl", [function, _, given, rest @ ..]) => {
                let kwargs = rest.first().cloned().filter(|kwargs| !self.is_none(kwargs));
                return self.call_undispatched(function, given, kwargs.as_ref()).map(Some);
            }
            ("torch.Tensor.as_subclass", [tensor @ Value::Tensor(_), Value::Known(class, _)]) => {
                return self.as_subclass(tensor, *class).map(Some);
            }
            ("torch.Tensor._make_subclass", [Value::Known(class, _), tensor @ Value::Tensor(_), rest @ ..])
                if kwargs.is_empty() && rest.len() <= 1 =>
            {
                let requires = match rest {
                    [] => false,
                    [required, ..] => self.is_true(required)?,
                };
                if requires && Some(*class) == self.host.member("torch.nn", "Parameter") {
                    return self.make_parameter(tensor).map(Some);
                }
                if requires {
                    return Err(self.stop("creating a tensor that requires a gradient"));
                }
                let plain = self.tensor_method(tensor, &"detach".into(), Vec::new(), Vec::new())?;
                return self.as_subclass(&plain, *class).map(Some);
            }
            ("torch._C._is_torch_function_enabled", [])
                if self.overrides.subclasses_off + self.overrides.all_off > 0 =>
            {
                return Ok(Some(self.bool(false)));
            }
            ("torch._C._is_torch_function_all_disabled", []) if self.overrides.all_off > 0 => {
                return Ok(Some(self.bool(true)));
            }
            ("torch._C._push_on_torch_function_stack" | "torch.overrides._push_mode", [mode]) => {
                self.overrides.modes.push((mode.clone(), self.root));
                return Ok(Some(self.none()));
            }
            ("torch._C._pop_torch_function_stack" | "torch.overrides._pop_mode", []) => {
                let left = self.overrides.modes.pop();
                return left.map(|(mode, _)| Some(mode)).ok_or_else(|| self.stop("a mode of outside is left"));
            }
            ("torch._C._len_torch_function_stack", []) if !self.overrides.modes.is_empty() => {
                return Err(self.stop("the number of modes, inside of one"));
            }
            _ => {}
        }
        let attribute = name.strip_prefix("torch.Tensor.").and_then(|rest| rest.strip_suffix(".__get__"));
        if !self.may_be_shown(args, kwargs) && attribute.is_none() {
            return Ok(None);
        }
        if attribute.is_none()
            && !is_question(name)
            && self.host.kind(object) == Kind::Builtin
            && self.wrapper_without_override_in(args, kwargs)?
        {
            if let (Some(method), Some((receiver, rest))) = (name.strip_prefix("torch.Tensor."), args.split_first()) {
                return self.wrapper_method(receiver, &method.into(), rest, kwargs);
            }
            return self.call_wrapped(object, args, kwargs).map(Some);
        }
        let question = if self.overrides.sees_modes() { "is_shown_to_modes" } else { "is_overridable" };
        if attribute.is_some() || self.ask_overrides(question, &Value::Known(object, None))? {
            let shown = self.show(object, args, kwargs)?;
            if shown.is_some() {
                return Ok(shown);
            }
        } else if self.host.kind(object) == Kind::Builtin && !is_question(name) {
            self.check_not_overriding(name, args)?;
        }
        if attribute.is_none()
            && !is_question(name)
            && self.host.kind(object) == Kind::Builtin
            && self.takes_wrapper(args, kwargs)?
        {
            if let (Some(method), Some((receiver, rest))) = (name.strip_prefix("torch.Tensor."), args.split_first()) {
                return self.wrapper_method(receiver, &method.into(), rest, kwargs);
            }
            return self.call_wrapped(object, args, kwargs).map(Some);
        }
        match (attribute, args) {
            (Some(attribute), [tensor @ Value::Tensor(_), ..]) => {
                self.tensor_attribute(tensor, &attribute.into()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Refuses a function written in C of which it is not known whether it is shown, where somebody may want to see it.
    pub(super) fn check_not_overriding(&mut self, name: &str, args: &[Value]) -> Run<()> {
        if self.overriding(args.iter())?.is_empty() {
            return Ok(());
        }
        Err(self.stop(format!("a call of {name} with a tensor subclass")))
    }

    /// What `Tensor.__torch_function__` does: calls the function on plain tensors, and gives what it returns a class.
    fn default_override(
        &mut self,
        class: Object,
        function: &Value,
        types: &Value,
        args: &Value,
        kwargs: Option<&Value>,
    ) -> Run<Value> {
        for of in self.items_of(types)? {
            let Value::Known(of, _) = of else { return Err(self.stop("a type that is not a class")) };
            if !self.is_subclass(class, of) {
                let unknown = self.host.member("builtins", "NotImplemented");
                return unknown.map(|it| Value::Known(it, None)).ok_or_else(|| self.stop("a missing constant"));
            }
        }
        let result = self.call_undispatched(function, args, kwargs)?;
        if self.ask_overrides("keeps_class", function)? {
            return Ok(result);
        }
        self.converted(&result, class)
    }

    /// Calls a function that no class of its arguments is shown.
    fn call_undispatched(&mut self, function: &Value, args: &Value, kwargs: Option<&Value>) -> Run<Value> {
        let args = self.items_of(args)?;
        let kwargs = match kwargs {
            Some(kwargs) => self.keyword_items(kwargs)?,
            None => Vec::new(),
        };
        self.overrides.subclasses_off += 1;
        let result = self.call(function, args, kwargs);
        self.overrides.subclasses_off -= 1;
        result
    }

    /// A result whose tensors are of a class.
    fn converted(&mut self, value: &Value, class: Object) -> Run<Value> {
        if Some(class) == self.host.member("torch", "Tensor") {
            return Ok(value.clone());
        }
        match value {
            Value::Tensor(tensor) if !tensor.class.is_some_and(|of| self.host.derives(of, class)) => {
                self.check_no_new(class)?;
                if tensor.origin.is_some() {
                    return self.as_subclass(value, class);
                }
                // Nobody else has what a function has just computed.
                let tensor = TensorValue { class: Some(class), ..TensorValue::computed(tensor.node) };
                Ok(Value::Tensor(Rc::new(tensor)))
            }
            Value::Tuple(tuple) => {
                let items = tuple.items.iter().map(|item| self.converted(item, class)).collect::<Run<Vec<_>>>()?;
                Ok(Value::Tuple(Rc::new(TupleValue { items, class: tuple.class, ..TupleValue::default() })))
            }
            Value::List(list) if list.class.is_none() => {
                let items = list.items.borrow().clone();
                let items = items.iter().map(|item| self.converted(item, class)).collect::<Run<Vec<_>>>()?;
                Ok(Value::List(Rc::new(ListValue { items: items.into(), ..ListValue::default() })))
            }
            other => Ok(other.clone()),
        }
    }

    fn check_no_new(&mut self, class: Object) -> Run<()> {
        if self.ask_overrides("is_captured", &Value::Known(class, None))? {
            return Ok(());
        }
        Err(self.stop(format!("constructing a tensor of {}", self.host.class_name(class))))
    }

    /// `tensor.as_subclass(class)`: another tensor over the same memory.
    pub(super) fn as_subclass(&mut self, tensor: &Value, class: Object) -> Run<Value> {
        let plain = Some(class) == self.host.member("torch", "Tensor");
        if !plain {
            self.check_no_new(class)?;
        }
        let value = self.graph_value(tensor)?;
        self.record_location();
        let alias = self.calls.call("torch.ops.aten.alias.default", vec![value], Vec::new());
        let GraphValue::Tensor(node) = alias.map_err(|refused| self.stop(refused.0))? else {
            return Err(self.stop("a tensor of which nothing is known"));
        };
        let class = (!plain).then_some(class);
        Ok(Value::Tensor(Rc::new(TensorValue { class, ..TensorValue::computed(node) })))
    }

    /// A method of a tensor that is written in C, or in Python by torch.
    pub(super) fn method_overridden(
        &mut self,
        receiver: &Value,
        name: &Rc<str>,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Option<Value>> {
        if let ("as_subclass", [Value::Known(class, _)]) = (&**name, args) {
            return self.as_subclass(receiver, *class).map(Some);
        }
        let held = std::slice::from_ref(receiver);
        if !self.may_be_shown(held, &Vec::new()) && !self.may_be_shown(args, kwargs) {
            return Ok(None);
        }
        let torch = self.host.member("torch", "Tensor").ok_or_else(|| self.stop("a missing class"))?;
        let Some(function) = self.class_item(torch, name) else { return Ok(None) };
        if !self.ask_overrides("is_overridable", &Value::Known(function, None))? {
            if let Some(result) = self.wrapper_method(receiver, name, args, kwargs)? {
                return Ok(Some(result));
            }
            if self.host.kind(function) == Kind::Builtin && &**name != "__hash__" {
                self.check_not_overriding(name, held)?;
            }
            return Ok(None);
        }
        if self.metadata_answers_for_wrapper(receiver, name)? {
            return Ok(None);
        }
        let all: Vec<Value> = std::iter::once(receiver.clone()).chain(args.iter().cloned()).collect();
        match self.show(function, &all, kwargs)? {
            Some(result) => Ok(Some(result)),
            None => self.wrapper_method(receiver, name, args, kwargs),
        }
    }

    /// An operator that the class of an operand has its own method for, or that is shown to others.
    pub(super) fn operator_overridden(
        &mut self,
        name: &str,
        left: &Value,
        right: Option<&Value>,
    ) -> Run<Option<Value>> {
        let is_tensor = |value: &Value| matches!(value, Value::Tensor(_));
        if !is_tensor(left) && !right.is_some_and(is_tensor) {
            return Ok(None);
        }
        let pair: Vec<Value> = std::iter::once(left.clone()).chain(right.cloned()).collect();
        let stem = name.trim_end_matches('_');
        let (method, reflected) = (format!("__{stem}__"), format!("__r{stem}__"));
        let shown = self.may_be_shown(&pair, &Vec::new());
        if !shown && !self.is_replaced(&method) && !self.is_replaced(&reflected) {
            return Ok(None);
        }
        let by_name = std::mem::take(&mut self.overrides.by_name);
        if !by_name && let Some(result) = self.own_operator(&method, left, right)? {
            return Ok(Some(result));
        }
        // Python asks objects before torch sees them.
        if pair.iter().any(|value| matches!(value, Value::Instance(_) | Value::List(_) | Value::Tuple(_))) {
            return Ok(None);
        }
        let (found, args) = match right {
            Some(right) if !is_tensor(left) => {
                if !by_name && let Some(result) = self.own_operator(&reflected, right, Some(left))? {
                    return Ok(Some(result));
                }
                (format!("reflected_{name}"), vec![right.clone(), left.clone()])
            }
            _ => (format!("operator_{name}"), pair),
        };
        if !shown {
            return Ok(None);
        }
        match self.host.member("pyrite._overrides", &found) {
            Some(function) => {
                let shown =
                    if self.wrapper_without_override(&args)? { None } else { self.show(function, &args, &Vec::new())? };
                match (shown, right) {
                    (Some(result), _) => Ok(Some(result)),
                    (None, Some(right)) => self.wrapper_operator(name, &[left.clone(), right.clone()]),
                    (None, None) => self.wrapper_operator(name, std::slice::from_ref(left)),
                }
            }
            None => Err(self.stop(format!("the operator {name} of a tensor subclass"))),
        }
    }

    /// `torch.Tensor`.
    fn tensor_class(&self) -> Run<Object> {
        self.host.member("torch", "Tensor").ok_or_else(|| self.stop("a missing class"))
    }

    /// Whether a program has put something of its own into `torch.Tensor` under a name.
    fn is_replaced(&self, name: &str) -> bool {
        let held = self.host.member("torch", "Tensor").and_then(|class| self.class_item(class, name));
        held.is_some_and(|held| !self.host.is_by_torch(held))
    }

    /// What a tensor's class holds under a name where that is not torch's: of a subclass, or in place of torch's own.
    fn own_method(&self, class: Option<Object>, name: &str) -> Run<Option<Object>> {
        if class.is_none() && !self.is_replaced(name) {
            return Ok(None);
        }
        let torch = self.tensor_class()?;
        let found = self.class_item(class.unwrap_or(torch), name);
        Ok(found.filter(|_| found != self.class_item(torch, name) || self.is_replaced(name)))
    }

    /// What a method of a tensor's class that torch does not have gives.
    fn own_operator(&mut self, method: &str, tensor: &Value, other: Option<&Value>) -> Run<Option<Value>> {
        let Value::Tensor(held) = tensor else { return Ok(None) };
        let Some(found) = self.own_method(held.class, method)? else { return Ok(None) };
        if self.host.descriptor(found) != Descriptor::Function {
            return Err(self.stop(format!("the method {method} of a tensor's class")));
        }
        let function = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
        let args = std::iter::once(tensor.clone()).chain(other.cloned()).collect();
        let result = self.call(&function, args, Vec::new())?;
        if self.is_not_implemented(&result) {
            return Err(self.stop(format!("{method} of a tensor subclass, which returns NotImplemented")));
        }
        Ok(Some(result))
    }

    /// `len`, `getitem` or `setitem` of a tensor.
    pub(super) fn item_overridden(&mut self, name: &str, tensor: &Value, rest: &[Value]) -> Run<Option<Value>> {
        let method = format!("__{name}__");
        if let Value::Tensor(held) = tensor
            && self.own_method(held.class, &method)?.is_some()
        {
            let method = self.attribute(tensor, &method.into())?;
            return self.call(&method, rest.to_vec(), Vec::new()).map(Some);
        }
        if !self.may_be_shown(std::slice::from_ref(tensor), &Vec::new()) && !self.may_be_shown(rest, &Vec::new()) {
            return Ok(None);
        }
        let all: Vec<Value> = std::iter::once(tensor.clone()).chain(rest.iter().cloned()).collect();
        if name == "len" && self.metadata_answers_for_wrapper(tensor, "size")? {
            return Ok(None);
        }
        let function = self.overrides_member(&format!("operator_{name}"))?;
        if !self.wrapper_without_override(&all)?
            && let Some(result) = self.show(function, &all, &Vec::new())?
        {
            return Ok(Some(result));
        }
        self.wrapper_operator(name, &all)
    }

    /// An attribute of a tensor that its class has its own of, or that is shown to others; nothing where it is torch's.
    pub(super) fn attribute_overridden(&mut self, value: &Value, name: &Rc<str>) -> Run<Option<Value>> {
        let Value::Tensor(tensor) = value else { return Ok(None) };
        if self.is_replaced(name) {
            let class = tensor.class.map_or_else(|| self.tensor_class(), Ok)?;
            return self.class_attribute_of(value, class, name).map(Some);
        }
        if let Some(class) = tensor.class {
            let torch = self.tensor_class()?;
            let found = self.class_item(class, name);
            if found != self.class_item(torch, name)
                && let Some(found) = found
            {
                if self.host.descriptor(found) == Descriptor::Slot
                    && let Some(Some(set)) = tensor.attributes.borrow().get(name)
                {
                    return Ok(Some(set.clone()));
                }
                if self.host.descriptor(found) == Descriptor::Value
                    && let Some(own) = self.tensor_own_attribute(value, name)?
                {
                    return Ok(Some(own));
                }
                return self.class_attribute_of(value, class, name).map(Some);
            }
            if found.is_none()
                && self.tensor_own_attribute(value, name)?.is_none()
                && self.class_item(class, "__getattr__").is_some()
            {
                return Err(self.stop("__getattr__ of a tensor subclass"));
            }
        }
        if let Some(found) = self.wrapper_attribute(value, name)? {
            return Ok(Some(found));
        }
        if !self.may_be_shown(std::slice::from_ref(value), &Vec::new())
            || self.wrapper_without_override(std::slice::from_ref(value))?
        {
            return Ok(None);
        }
        match self.host.member("pyrite._overrides", &format!("getter_{name}")) {
            Some(getter) => self.show(getter, std::slice::from_ref(value), &Vec::new()),
            None => Ok(None),
        }
    }

    /// Refuses to end a frame inside of a mode: it goes on before it was entered.
    pub(super) fn check_modes(&mut self) -> Result<(), String> {
        let Some(entered) = self.overrides.entered_at() else { return Ok(()) };
        self.earlier = Some(entered);
        Err("a mode that is shown the calls of torch's functions is entered".to_owned())
    }
}

/// Whether a function only says something about its argument.
fn is_question(name: &str) -> bool {
    let computes = ["torch._C._nn.", "torch._C._linalg.", "torch._C._fft.", "torch._C._special."];
    let inner = name.starts_with("torch._C.") && !computes.iter().any(|space| name.starts_with(space));
    name.starts_with("torch.is_") || inner || name.starts_with("torch.overrides.")
}

/// Whether an item of a container may be one whose class is asked.
fn needs_a_look(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.class.is_some(),
        Value::Instance(_) | Value::Lazy(_) => true,
        _ => false,
    }
}
