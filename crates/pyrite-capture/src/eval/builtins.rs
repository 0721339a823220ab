//! Functions and classes that are known by their names: Python's builtins, its library, torch.

use std::cell::RefCell;
use std::rc::Rc;

use super::call::Keywords;
use super::compare::{is_graph, is_number};
use super::{Evaluator, Run};
use crate::host::{Descriptor, Kind, Object};
use crate::source::Source;
use crate::value::{DictValue, Iterate, PartialValue, Strictness, TupleValue, Value};

/// Modules of Python's library whose functions compute and do nothing else.
const PURE_MODULES: [&str; 6] = ["math.", "operator.", "cmath.", "string.", "numbers.", "_struct."];

/// Functions and classes that compute and do nothing else, when their arguments are plain.
const PURE: [&str; 51] = [
    "builtins.abs",
    "builtins.bytes.__new__",
    "builtins.float.__new__",
    "builtins.frozenset.__new__",
    "builtins.int.__new__",
    "builtins.str.__new__",
    "builtins.ascii",
    "builtins.bin",
    "builtins.bool",
    "builtins.bytes",
    "builtins.chr",
    "builtins.complex",
    "builtins.divmod",
    "builtins.float",
    "builtins.format",
    "builtins.frozenset",
    "builtins.hash",
    "builtins.hex",
    "builtins.int",
    "builtins.max",
    "builtins.min",
    "builtins.oct",
    "builtins.ord",
    "builtins.pow",
    "builtins.range",
    "builtins.repr",
    "builtins.round",
    "builtins.slice",
    "builtins.str",
    "builtins.sum",
    "builtins.str.maketrans",
    "inspect.isclass",
    "posix.fspath",
    "sys.intern",
    "torch.device",
    "torch.dtype",
    "torch.finfo",
    "torch.iinfo",
    "torch.get_default_dtype",
    "torch.promote_types",
    "torch.result_type",
    "torch.can_cast",
    "torch.cuda.is_available",
    "torch.backends.mps.is_available",
    "torch.broadcast_shapes",
    "torch.nn.functional._get_softmax_dim",
    "torch._C._log_api_usage_once",
    "torch._C._nn._parse_to",
    "numpy.float32",
    "numpy.float64",
    "numpy.int64",
];

/// Functions of those modules that change what they are given.
const CHANGING: [&str; 3] = ["operator.setitem", "operator.delitem", "operator.iconcat"];

/// Classes whose instances are functions.
const MAKERS: [&str; 3] = ["operator.itemgetter", "operator.attrgetter", "operator.methodcaller"];

/// Questions of libraries about how they are run, with the answer they get here.
const ANSWERS: [(&str, bool); 9] = [
    ("torch.jit.is_scripting", false),
    ("torch._jit_internal.is_scripting", false),
    ("torch.compiler.is_compiling", true),
    ("torch._utils.is_compiling", true),
    ("torch.compiler.is_dynamo_compiling", true),
    ("torch.compiler.is_exporting", false),
    ("torch._C._functorch.is_functorch_wrapped_tensor", false),
    ("torch.onnx.is_in_onnx_export", false),
    ("torch.backends.mha.get_fastpath_enabled", false),
];

/// Functions without arguments that say what the state of torch is. What they say is guarded.
const QUESTIONS: [&str; 21] = [
    "sys.getrecursionlimit",
    "torch.jit.is_tracing",
    "torch._C._get_tracing_state",
    "torch._C._is_tracing",
    "torch._C._is_torch_function_enabled",
    "torch._C._is_torch_function_all_disabled",
    "torch._C._len_torch_dispatch_stack",
    "torch._C._len_torch_function_stack",
    "torch.is_inference_mode_enabled",
    "torch.distributed.is_available",
    "torch.distributed.is_initialized",
    "torch.is_deterministic_algorithms_enabled",
    "torch.are_deterministic_algorithms_enabled",
    "torch.is_deterministic_algorithms_warn_only_enabled",
    "torch.get_deterministic_debug_mode",
    "torch.get_float32_matmul_precision",
    "torch.get_num_threads",
    "torch.is_anomaly_enabled",
    "torch.is_warn_always_enabled",
    "torch.get_default_device",
    "torch._C._get_cudnn_enabled",
];

/// Functions that set what questions ask for, with the module of both.
const SETTERS: [(&str, &str, &str); 8] = [
    ("torch._C._set_default_dtype", "torch", "get_default_dtype"),
    ("torch._C._set_sdp_use_flash", "torch._C", "_get_flash_sdp_enabled"),
    ("torch._C._set_sdp_use_mem_efficient", "torch._C", "_get_mem_efficient_sdp_enabled"),
    ("torch._C._set_sdp_use_math", "torch._C", "_get_math_sdp_enabled"),
    ("torch._C._set_sdp_use_cudnn", "torch._C", "_get_cudnn_sdp_enabled"),
    ("torch._C._set_sdp_use_overrideable", "torch._C", "_get_overrideable_sdp_enabled"),
    (
        "torch._C._autograd._saved_tensors_hooks_disable",
        "torch._C._autograd",
        "_saved_tensors_hooks_get_disabled_error_message",
    ),
    (
        "torch._C._autograd._saved_tensors_hooks_enable",
        "torch._C._autograd",
        "_saved_tensors_hooks_get_disabled_error_message",
    ),
];

/// Questions about autocast, some with the name of a device. What they say is guarded.
const AUTOCAST_QUESTIONS: [&str; 5] = [
    "torch.is_autocast_cpu_enabled",
    "torch.is_autocast_cache_enabled",
    "torch.get_autocast_cpu_dtype",
    "torch.get_autocast_gpu_dtype",
    "torch.is_autocast_xla_enabled",
];

impl Evaluator<'_, '_> {
    /// Calls a function that is known by its name; nothing when it is to be followed instead.
    pub(super) fn call_named(
        &mut self,
        name: &str,
        object: Object,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Option<Value>> {
        if name.starts_with("torch.")
            && let Some(result) = self.call_overridden(name, object, args, kwargs)?
        {
            return Ok(Some(result));
        }
        if let Some((_, answer)) = ANSWERS.iter().find(|(known, _)| *known == name) {
            return Ok(Some(self.bool(*answer)));
        }
        // Settings of torch are read by functions without arguments, most of them under `torch._C`.
        let getter = name.strip_prefix("torch._C._get_").is_some() || name.starts_with("torch._C._is_");
        if let ("torch.is_autocast_enabled" | "torch.get_autocast_dtype", [device]) = (name, args)
            && kwargs.is_empty()
        {
            return self.ask_autocast(name, device).map(Some);
        }
        if AUTOCAST_QUESTIONS.contains(&name) {
            if self.autocasted {
                return Err(self.stop("whether autocast is on, inside of it"));
            }
            return if args.is_empty() { self.ask_state(object).map(Some) } else { Ok(None) };
        }
        if let Some(stem) = name.strip_prefix("torch._foreach_") {
            let args = std::iter::once(self.text(stem)).chain(args.iter().cloned()).collect();
            return self.call_polyfill("foreach", args, kwargs.clone());
        }
        if let Some((_, module, question)) = SETTERS.iter().find(|(setter, ..)| *setter == name)
            && let Some(question) = self.host.member(module, question)
            && kwargs.is_empty()
        {
            let value = args.first().cloned().unwrap_or_else(|| self.none());
            if self.plain_guarded(&value)?.is_none() {
                return Err(self.stop(format!("a call of {name} with a value that is not known")));
            }
            self.set_setting(question, value);
            return Ok(Some(self.none()));
        }
        if name == "torch.is_inference_mode_enabled" && !self.inferences.is_empty() {
            return Ok(Some(self.bool(self.inference)));
        }
        if let Some((_, value, _)) = self.settings_set.iter().find(|(question, ..)| *question == object) {
            return Ok(Some(value.clone()));
        }
        if name == "torch._C._autograd._saved_tensors_hooks_get_disabled_error_message" {
            return self.ask_state(object).map(Some);
        }
        if args.is_empty() && kwargs.is_empty() && (QUESTIONS.contains(&name) || getter) {
            return self.ask_state(object).map(Some);
        }
        if let Some(stem) = name.strip_prefix("builtins.")
            && let Some(result) = self.call_builtin(stem, args, kwargs)?
        {
            return Ok(Some(result));
        }
        if let Some(result) = self.call_library(name, args, kwargs)? {
            return Ok(Some(result));
        }
        if (name.starts_with("torch.") || name.starts_with("operator.") || name.starts_with("math."))
            && let Some(result) = self.call_torch_or_polyfill(name, object, args, kwargs)?
        {
            return Ok(Some(result));
        }
        if MAKERS.contains(&name)
            && let Some(made) = self.call_polyfill(name, args.to_vec(), kwargs.clone())?
        {
            return Ok(Some(made));
        }
        if (PURE.contains(&name) || PURE_MODULES.iter().any(|module| name.starts_with(module)))
            && !CHANGING.contains(&name)
            && let Some(result) = self.call_plainly(object, args, kwargs)?
        {
            return Ok(Some(result));
        }
        // Numbers are computed with as they are.
        if name.starts_with("numpy.")
            && self.is_numpy_function(object)
            && let Some(result) = self.call_numpy(object, args, kwargs)?
        {
            return Ok(Some(result));
        }
        self.call_polyfill(name, args.to_vec(), kwargs.clone())
    }

    /// Whether autocast is on for a device, and which type it chooses.
    fn ask_autocast(&mut self, name: &str, device: &Value) -> Run<Value> {
        let device = match device {
            Value::Known(device, _) => self.host.as_str(*device),
            _ => None,
        };
        let enabled = name == "torch.is_autocast_enabled";
        let question = match (device.as_deref(), enabled) {
            (Some("cpu"), true) => return Ok(self.bool(self.state.autocast.is_some())),
            (Some("cpu"), false) if let Some(dtype) = self.state.autocast => {
                let dtype = self.host.object_of(&pyrite_ir::Value::DType(dtype));
                return dtype.map(|it| Value::Known(it, None)).ok_or_else(|| self.stop("a type without a name"));
            }
            (Some("cpu"), false) if !self.autocasted => "get_autocast_cpu_dtype",
            (Some("cuda"), true) => "is_autocast_enabled",
            (Some("cuda"), false) => "get_autocast_gpu_dtype",
            _ => return Err(self.stop("whether autocast is on, for a device that is not known")),
        };
        let question = self.host.member("torch", question).ok_or_else(|| self.stop("a missing function"))?;
        self.ask_state(question)
    }

    /// Notes what a setting of torch is from now on.
    fn set_setting(&mut self, question: Object, value: Value) {
        match self.settings_set.iter_mut().find(|(known, ..)| *known == question) {
            Some(entry) => entry.1 = value,
            None => self.settings_set.push((question, value, self.root)),
        }
    }

    /// Refuses to end a frame with other settings than it began with: it goes on before the first was set.
    pub(super) fn check_settings(&mut self) -> Result<(), String> {
        for (question, value, at) in std::mem::take(&mut self.settings_set) {
            let outside = self.host.call(question, &[], &[]).ok();
            let now = self.plain(&value);
            let same = match (outside, now) {
                (Some(outside), Some(now)) => {
                    self.host.operator("eq", &[outside, now]).is_ok_and(|same| same == self.host.bool(true))
                }
                _ => false,
            };
            if !same {
                self.earlier = Some(at);
                return Err("a setting of torch is changed".to_owned());
            }
        }
        Ok(())
    }

    /// Calls a function of torch; where no operator takes these arguments, one that is written in Python for them.
    fn call_torch_or_polyfill(
        &mut self,
        name: &str,
        object: Object,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Option<Value>> {
        let mark = self.calls.mark();
        match self.call_torch(name, object, args, kwargs) {
            Err(super::Stop::Break(..)) if self.host.polyfill(name).is_some() => {
                self.calls.abandon_since(mark);
                Ok(None)
            }
            other => other,
        }
    }

    /// Calls a function without effects on plain arguments; nothing when they are not.
    fn call_plainly(&mut self, function: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let mut plain = Vec::with_capacity(args.len());
        let formats = self.host.qualified_name(function).is_some_and(|name| &*name == "builtins.format");
        for arg in args {
            let arg = self.with_known_sizes(arg)?;
            let arg = if formats { arg } else { self.value_of(&arg).unwrap_or(arg) };
            match self.real(&arg)? {
                Some(object) => plain.push(object),
                None => return Ok(None),
            }
        }
        let Some((_, named)) = self.plain_arguments(&[], kwargs)? else { return Ok(None) };
        let made = self.host.call(function, &plain, &named).map_err(|r| self.raised(r))?;
        Ok(Some(self.opened(made)))
    }

    fn call_builtin(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
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
            ("sum" | "min" | "max" | "any" | "all", [set @ Value::Set(_)])
                if kwargs.is_empty()
                    && let Some(members) = self.whole_members(set) =>
            {
                return self.call_builtin(name, &[Value::tuple(members)], kwargs);
            }
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
            ("vars", [object]) => self.attribute(object, &"__dict__".into())?,
            ("divmod", _) if args.iter().any(|arg| matches!(arg, Value::Tensor(_))) => {
                return Err(self.stop("divmod of a tensor, which torch refuses"));
            }
            ("divmod", [left, right]) if args.iter().any(|arg| matches!(arg, Value::Instance(_))) => {
                match self.reflected(left, right, "__divmod__", "__rdivmod__")? {
                    Some(result) => result,
                    None => return Err(self.stop("the quotient and remainder of objects")),
                }
            }
            (
                "print" | "input" | "open" | "exec" | "eval" | "compile" | "breakpoint" | "globals" | "locals" | "vars",
                _,
            ) => {
                let hint = match name {
                    "print" => "print after the compiled function, or remove the call",
                    _ => "move the call out of the compiled function",
                };
                return Err(self.stop_with(format!("a call of {name}"), hint));
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
            ("iter", [value]) => self.iterator(value)?,
            ("iter", [_, _]) => return self.call_polyfill("iter", args.to_vec(), Vec::new()),
            ("next", [iterator, default @ ..]) if default.len() <= 1 => match self.next_or_result(iterator)? {
                Ok(value) => value,
                Err(result) => match default.first() {
                    Some(default) => default.clone(),
                    None => return Err(self.stop_iteration(result)),
                },
            },
            ("list", []) => Value::list(Vec::new()),
            ("list", [items]) => Value::list(self.items_of(items)?),
            ("tuple", []) => Value::tuple(Vec::new()),
            ("tuple", [items]) => Value::tuple(self.items_of(items)?),
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
                let mut items = self.items_of(value)?;
                items.reverse();
                Value::iterator(Iterate::Items(items, 0))
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
                let iterator = self.iterator(items)?;
                while let Some(item) = self.next(&iterator)? {
                    total = self.binary("add", &total, &item)?;
                }
                total
            }
            ("max" | "min", rest) if !rest.is_empty() => return self.extreme(name, rest, kwargs).map(Some),
            ("float", [Value::Number(_)]) => args[0].clone(),
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
                let method = self.class_attribute_of(&args[0], instance.class, &format!("__{name}__").into())?;
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
                let method = self.class_attribute_of(&args[0], instance.class, &format!("__{name}__").into())?;
                self.call(&method, Vec::new(), Vec::new())?
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
            ("super", [Value::Known(class, _), object]) => self.super_of(*class, object.clone())?,
            ("object", []) => {
                let class = self.host.member("builtins", "object").ok_or_else(|| self.stop("object is missing"))?;
                Value::Instance(self.new_instance(class))
            }
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
                Value::Tuple(Rc::new(TupleValue { items, class: (!plain).then_some(*class), origin: None }))
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
    fn extreme(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Value> {
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

    /// Functions of Python's library that are more than arithmetic.
    fn call_library(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
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
            ("collections.deque", _) => self.new_deque(args, kwargs)?,
            ("types.MethodType", [function, object]) => Value::Method(Rc::new((function.clone(), object.clone()))),
            ("itertools.count", rest) => {
                let start = rest.first().cloned().unwrap_or_else(|| self.int(0));
                let step = rest.get(1).cloned().unwrap_or_else(|| self.int(1));
                Value::iterator(Iterate::Count(start, step))
            }
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
            ("types.MappingProxyType", [dict @ Value::Dict(_)]) => Value::Dict(Rc::new(DictValue {
                class: self.host.member("types", "MappingProxyType"),
                behind: Some(dict.clone()),
                ..DictValue::default()
            })),
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
            ("torch._C._log_api_usage_once", _) => self.none(),
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
                Value::Tuple(Rc::new(TupleValue { items, class, origin: None }))
            }
            ("copy.copy", [value]) => match value {
                Value::List(_) => Value::list(self.items_of(value)?),
                Value::Dict(_) => return self.call_method(value, &"copy".into(), Vec::new(), Vec::new()).map(Some),
                Value::Known(..) | Value::Tuple(_) => value.clone(),
                Value::Instance(_) => return Ok(None),
                _ => return Err(self.stop("a copy of an object")),
            },
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

    /// `import name`, inside a function.
    pub(super) fn import(&mut self, frame: &super::Frame, name: &str, from: &Value, level: &Value) -> Run<Value> {
        // Only modules that are loaded already: an import of another runs its code.
        let modules = self.host.member("sys", "modules").ok_or_else(|| self.stop("sys.modules is missing"))?;
        let level = self.index_of(level)?;
        let full = if level == 0 {
            name.to_owned()
        } else {
            let package = self.read_global(frame.globals, &"__package__".into());
            let package = match package {
                Some(package) => match self.admit(&package)? {
                    Value::Known(package, _) => self.host.as_str(package),
                    _ => None,
                },
                None => None,
            };
            let package = package.ok_or_else(|| self.stop("a relative import outside of a package"))?;
            let mut parts: Vec<&str> = package.split('.').collect();
            for _ in 1..level {
                parts.pop();
            }
            let base = parts.join(".");
            if name.is_empty() { base } else { format!("{base}.{name}") }
        };
        let wanted =
            if self.is_none(from) { full.split('.').next().unwrap_or_default().to_owned() } else { full.clone() };
        let table = Rc::new(Source::Fixed(modules));
        let loaded = match self.read_key(modules, &table, &full) {
            Some(found) => {
                self.admit(&found)?;
                self.read_key(modules, &table, &wanted)
            }
            None => None,
        };
        match loaded {
            Some(module) => self.admit(&module),
            None => Err(self.stop_with(format!("an import of {full}"), "import it at the top of the file")),
        }
    }

    /// Whether an attribute of a class is written in Python.
    pub(super) fn is_python_method(&self, class: Object, name: &str) -> bool {
        self.class_item(class, name).is_some_and(|found| self.host.descriptor(found) == Descriptor::Function)
    }
}
