//! Calls.

use std::rc::Rc;

use pyrite_ir::Value as GraphValue;
use pyrite_sym::SymInt;

use super::{Evaluator, Outcome, Run};
use crate::code::ASYNCHRONOUS;
use crate::host::{Descriptor, Kind, Object};
use crate::source::{Check, Source};
use crate::value::{ContextKind, FunctionValue, InstanceValue, Origin, Value};

/// Keyword arguments.
pub(super) type Keywords = Vec<(Rc<str>, Value)>;
/// Positional arguments, and keyword arguments with their names.
type PlainArguments = (Vec<Object>, Vec<(Object, Object)>);

/// Functions of torch's own compiler that are followed: what they do in plain Python is all that they do.
const FOLLOWED: [&str; 3] =
    ["nonstrict_trace.<locals>.wrapped", "wrap_dunder_call_ctx_manager.<locals>.inner", "error_on_graph_break"];

/// Functions that torch refuses to run unless all of their bodies are captured.
const WHOLE: [&str; 7] = [
    "torch.cond",
    "torch.while_loop",
    "torch._higher_order_ops.while_loop",
    "torch._higher_order_ops.map",
    "torch._higher_order_ops.scan",
    "torch._higher_order_ops.associative_scan",
    "torch._higher_order_ops.strict_mode",
];
/// What torch says of them.
const UNCAPTURED: &str = "doesn't work unless it is captured completely with torch.compile";

/// Functions of files of torch's that may be imported later than the names of functions are read: the file, the function, and
/// what is followed instead.
const BY_FILE: [(&str, &str, &str); 5] = [
    ("/torch/fx/_symbolic_trace.py", "is_fx_tracing", "torch.fx.is_fx_tracing"),
    ("/torch/nn/attention/flex_attention.py", "flex_attention", "torch.nn.attention.flex_attention.flex_attention"),
    ("/torch/fx/traceback.py", "annotate", "torch.fx.traceback.annotate"),
    ("/torch/fx/experimental/symbolic_shapes.py", "has_free_unbacked_symbols", "torch.fx.has_free_unbacked_symbols"),
    (
        "/torch/_dynamo/_trace_wrapped_higher_order_op.py",
        "TransformGetItemToIndex.__torch_function__",
        "torch._dynamo.TransformGetItemToIndex.__torch_function__",
    ),
];

impl Evaluator<'_, '_> {
    /// `function(*args, **kwargs)`.
    pub(super) fn call(&mut self, function: &Value, mut args: Vec<Value>, mut kwargs: Keywords) -> Run<Value> {
        match function {
            Value::Function(function) => self.call_function(&function.clone(), args, kwargs),
            Value::Method(parts) => {
                args.insert(0, parts.1.clone());
                if let Value::Instance(array) = &parts.1
                    && self.is_array(array.class)
                    && !self.in_torch_numpy()
                {
                    return self.call_array_method(&parts.0.clone(), args, kwargs);
                }
                self.call(&parts.0.clone(), args, kwargs)
            }
            Value::Bound(parts) => self.call_method(&parts.0.clone(), &parts.1.clone(), args, kwargs),
            Value::Known(object, source) if args.is_empty() && self.is_weak_reference(*object) => {
                // A key is the reference that it is.
                let source = source.clone().unwrap_or_else(|| Rc::new(Source::Fixed(*object)));
                let referent = self.read_referent(*object, &source)?;
                self.admit(&referent)
            }
            // A context manager of torch as a decorator.
            Value::Context(context) if args.len() == 1 && kwargs.is_empty() => {
                args.insert(0, function.clone());
                let is_entered_again = matches!(context.kind, ContextKind::Autocast(_));
                let decorator = if is_entered_again { "decorated_by_itself" } else { "decorated" };
                let made = self.call_polyfill(decorator, args, kwargs)?;
                made.ok_or_else(|| self.stop("a context manager as a decorator"))
            }
            Value::Weak(reference) if args.is_empty() && kwargs.is_empty() => {
                Ok(reference.get().unwrap_or_else(|| self.none()))
            }
            Value::Known(object, _) => {
                self.rely_on_receiver(function);
                self.call_known(*object, args, kwargs)
            }
            Value::Instance(instance) => self.call_instance(function, &instance.clone(), args, kwargs),
            Value::Partial(partial) => {
                let partial = partial.clone();
                let all: Vec<Value> = partial.args.iter().cloned().chain(args).collect();
                for (name, value) in &partial.kwargs {
                    if !kwargs.iter().any(|(given, _)| given == name) {
                        kwargs.push((name.clone(), value.clone()));
                    }
                }
                self.call(&partial.function, all, kwargs)
            }
            Value::Context(_) => {
                let args = std::iter::once(function.clone()).chain(args).collect();
                let decorated = self.call_polyfill("context_decorator", args, kwargs)?;
                decorated.ok_or_else(|| self.stop("a call of a context manager"))
            }
            Value::Tuple(_) | Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Symbol(_) | Value::Number(_) => {
                let Value::Known(class, _) = self.class_of(function)? else { return Err(self.stop("a class")) };
                if self.class_item(class, "__call__").is_some() {
                    return Err(self.stop(format!("a call of {}", self.describe(function))));
                }
                let class = self.short_name(class);
                Err(self.raise("TypeError", &format!("'{class}' object is not callable")))
            }
            other => Err(self.stop(format!("a call of {}", self.describe(other)))),
        }
    }

    fn call_function(&mut self, function: &Rc<FunctionValue>, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        if let Some(origin) = &function.origin
            && let Some(name) = self.host.opaque_name(origin.object)
        {
            // Another function of the same code is another function.
            self.guard(&origin.source, Check::Is(origin.object));
            return self.capture_opaque_call(&name, origin.object, &args, &kwargs);
        }
        if let Some(origin) = &function.origin
            && let Some(name) = self.host.qualified_name(origin.object)
        {
            match self.call_named(&name, origin.object, &args, &kwargs) {
                Ok(Some(result)) => return Ok(result),
                Ok(None) => {}
                // What no operator fits may still be followed.
                Err(super::Stop::Break(..)) if name.starts_with("torch.nn.functional.") || &*name == "torch.norm" => {}
                Err(stop) => return Err(stop),
            }
        }
        let code = self.host.code(function.code).ok_or_else(|| self.stop("a function whose code is not understood"))?;
        // A method that was read from the class, as `contextlib.ExitStack` does.
        if let ([context @ Value::Context(_), rest @ ..], "__enter__" | "__exit__") = (args.as_slice(), &*code.name) {
            return self.context_method(context, &code.name, rest);
        }
        if code.flags & ASYNCHRONOUS != 0 {
            return Err(self.stop(format!("the asynchronous function {}", code.qualified_name)));
        }
        if let Some(origin) = &function.origin {
            let (object, source) = (origin.object, origin.source.clone());
            // What is compiled by itself is part of the graph here.
            let original = match (&*code.name, &*code.file) {
                ("compile_wrapper", file) if file.ends_with("/torch/_dynamo/eval_frame.py") => {
                    "_torchdynamo_orig_callable"
                }
                ("compiled", file) if file.ends_with("/pyrite/_capture.py") => "_pyrite_original",
                (name, file) if file.ends_with("/torch/_dynamo/decorators.py") && name.contains("mark_") => {
                    return Ok(self.none());
                }
                _ => "",
            };
            if code.file.ends_with("/torch/_dynamo/eval_frame.py")
                && &*code.qualified_name == "DisableContext.__call__.<locals>._fn"
                && let Some(original) = self.disabled_by_torch(object, &source)?
            {
                return self.call(&original, args, kwargs);
            }
            if !original.is_empty()
                && let Some(original) = self.read_instance_item(object, &source, &original.into())
            {
                let original = self.admit(&original)?;
                return self.call(&original, args, kwargs);
            }
        }
        // torch's own compiler counts the modules that are made, once it has been imported.
        if &*code.name == "patched_init"
            && code.file.ends_with("/torch/_dynamo/mutation_guard.py")
            && let Some(place) = code.free.iter().position(|name| &**name == "init")
            && let Some(init) = self.cell_contents(&function.closure[place])?
        {
            return self.call(&init, args, kwargs);
        }
        // Tensors are arrays inside of a function that `torch.compiler.wrap_numpy` has wrapped.
        if &*code.qualified_name == "wrap_numpy.<locals>.wrap"
            && code.file.ends_with("/torch/_dynamo/external_utils.py")
            && let Some(place) = code.free.iter().position(|name| &**name == "f")
            && let Some(wrapped) = self.cell_contents(&function.closure[place])?
        {
            let args = std::iter::once(wrapped).chain(args).collect();
            let made = self.call_polyfill("call_with_arrays", args, kwargs)?;
            return made.ok_or_else(|| self.stop("a function of arrays"));
        }
        // torch's own compiler may have been imported since the names of functions were read.
        if &*code.name == "is_compiling" && code.file.contains("/torch/_dynamo/") {
            self.told_compiling = true;
            return Ok(self.bool(true));
        }
        // torch's own numpy knows its own types.
        let mut args = args;
        if &*code.qualified_name == "DType.__init__"
            && self.in_torch_numpy()
            && let [_, Value::Known(given, _)] = args.as_slice()
            && let Some(reader) = self.host.member("pyrite._arrays", "scalar_type")
        {
            let known = self.host.call(reader, &[*given], &[]).map_err(|r| self.raised(r))?;
            args[1] = Value::Known(known, None);
        }
        let known = |(file, name, _): &&(&str, &str, &str)| *name == &*code.qualified_name && code.file.ends_with(file);
        if let Some((_, _, replaced)) = BY_FILE.iter().find(known)
            && let Some(result) = self.call_polyfill(replaced, args.clone(), kwargs.clone())?
        {
            return Ok(result);
        }
        if let Some(result) = self.call_of_dynamo(&code, &args)? {
            return Ok(result);
        }
        if &*code.qualified_name == "singledispatch.<locals>.dispatch"
            && let [Value::Known(class, _)] = args.as_slice()
            && let Some(found) = self.dispatched(function, &code, *class)?
        {
            return Ok(found);
        }
        // What is traced without a look inside by torch's own compiler is followed here.
        let mut traced = FOLLOWED.contains(&&*code.qualified_name) && code.file.contains("/torch/_dynamo/");
        // How torch's trees take sizes apart.
        traced |= &*code.name == "<lambda>" && code.file.ends_with("/torch/fx/experimental/proxy_tensor.py");
        if !traced {
            self.host.may_inline(&code).map_err(|reason| self.stop(reason))?;
        }
        let mut frame = self.bind_arguments(function, &code, args, kwargs)?;
        match self.run_frame(&mut frame)? {
            Outcome::Return(value) => Ok(value),
            Outcome::Yield(_) => Err(self.stop("a generator that is not one")),
        }
    }

    /// The function of an optimizer that torch's own compiler has put a wrapper around, because it is none of its business.
    fn disabled_by_torch(&mut self, wrapper: Object, source: &Rc<Source>) -> Run<Option<Value>> {
        let Some(original) = self.read_instance_item(wrapper, source, &"_torchdynamo_orig_callable".into()) else {
            return Ok(None);
        };
        let original = self.admit(&original)?;
        let Value::Function(function) = &original else { return Ok(None) };
        let code = self.host.code(function.code);
        Ok(code.filter(|code| code.file.contains("/torch/optim/")).map(|_| original.clone()))
    }

    /// What a function of torch's own compiler does in plain Python where that is nothing.
    fn call_of_dynamo(&mut self, code: &crate::Code, args: &[Value]) -> Run<Option<Value>> {
        // torch's optimizers keep their steps apart from what calls them, for the sake of torch's own compiler.
        let from_optimizer = self.trace.last().is_some_and(|(file, ..)| file.ends_with("/torch/optim/optimizer.py"));
        if &*code.qualified_name == "graph_break"
            && code.file.ends_with("/torch/_dynamo/decorators.py")
            && from_optimizer
        {
            return Ok(Some(self.none()));
        }
        // Nothing that the user writes is skipped here.
        if &*code.qualified_name == "dont_skip_tracing" && code.file.ends_with("/torch/_dynamo/decorators.py") {
            return Ok(args.first().filter(|function| !self.is_none(function)).cloned());
        }
        if !code.file.ends_with("/torch/_dynamo/comptime.py") || &*code.name == "sleep" {
            return Ok(None);
        }
        // Only what is called instead of the compiler is called.
        if &*code.qualified_name == "_Comptime.__call__" {
            return match args.get(2) {
                Some(fallback) => self.call(&fallback.clone(), Vec::new(), Vec::new()).map(Some),
                None => Ok(Some(self.none())),
            };
        }
        Ok(code.qualified_name.starts_with("_Comptime.").then(|| self.none()))
    }

    /// The function that `functools.singledispatch` calls for a class: one of those that are registered, which are guarded.
    fn dispatched(&mut self, function: &FunctionValue, code: &crate::Code, class: Object) -> Run<Option<Value>> {
        let Some(origin) = &function.origin else { return Ok(None) };
        let place = code.free.iter().position(|name| &**name == "registry");
        let Some(cell) = place.and_then(|place| function.closure.get(place).cloned()) else { return Ok(None) };
        let Some(registry) = self.cell_contents(&cell)? else { return Ok(None) };
        let chosen = self.host.call(origin.object, &[class], &[]).map_err(|r| self.raised(r))?;
        // Classes that are registered with abstract ones move a count on.
        if let Some(count) = self.host.member("abc", "get_cache_token")
            && let Ok(now) = self.host.call(count, &[], &[])
        {
            self.guard(&Rc::new(Source::Asked(count)), Check::Equal(now));
        }
        for (_, registered) in self.dict_pairs(&registry)? {
            if super::wrap::origin_of(&registered).is_some_and(|origin| origin.object == chosen) {
                return Ok(Some(registered));
            }
        }
        Ok(None)
    }

    fn call_known(&mut self, object: Object, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let name = self.host.qualified_name(object);
        if let Some(name) = &name
            && let Some(result) = self.call_named(name, object, &args, &kwargs)?
        {
            return Ok(result);
        }
        match self.host.kind(object) {
            Kind::Class => match self.construct_wrapper(object, &args, &kwargs)? {
                Some(made) => Ok(made),
                None => self.construct(object, args, kwargs),
            },
            Kind::Builtin => {
                if self.host.class_name(self.host.class_of(object)) == "functools._lru_cache_wrapper" {
                    if let Some(result) = self.call_cached(object, &args, &kwargs)? {
                        return Ok(result);
                    }
                    let values = args.iter().chain(kwargs.iter().map(|(_, value)| value));
                    if args.iter().any(|arg| matches!(arg, Value::Tensor(_))) || values.clone().any(holds_symbol) {
                        return self.follow_cached(object, args, kwargs);
                    }
                }
                if self.is_numpy_function(object)
                    && let Some(result) = self.call_numpy(object, &args, &kwargs)?
                {
                    return Ok(result);
                }
                if let Some(receiver) = self.host.builtin_receiver(object)
                    && let Ok(method) = self.constant(object, "__name__")
                    && let Some(method) = self.host.as_str(method)
                    && self.host.kind(receiver) != Kind::Module
                {
                    let receiver = self.wrap(receiver, &Rc::new(Source::Fixed(receiver)))?;
                    return self.call_method(&receiver, &method, args, kwargs);
                }
                if self.host.descriptor(object) == Descriptor::BuiltinMethod
                    && let Ok(method) = self.constant(object, "__name__")
                    && let Some(method) = self.host.as_str(method)
                    && let Some((receiver, rest)) = args.split_first()
                {
                    return self.call_method(&receiver.clone(), &method, rest.to_vec(), kwargs);
                }
                let owner = self.constant(object, "__module__").ok().and_then(|owner| self.host.as_str(owner));
                if owner.is_some_and(|owner| owner.starts_with("torch."))
                    && self.wrapper_without_override_in(&args, &kwargs)?
                {
                    return self.call_wrapped(object, &args, &kwargs);
                }
                let text = self.host.describe(object);
                Err(self.stop_with(
                    format!("a call of {text}, which is not written in Python"),
                    "move the call out of the compiled function, or replace it by one that torch has",
                ))
            }
            Kind::None | Kind::Bool | Kind::Int | Kind::Plain | Kind::FrozenSet | Kind::Module
                if self.host.class_name(self.host.class_of(object)).starts_with("builtins.")
                    && self.class_item(self.host.class_of(object), "__call__").is_none() =>
            {
                let class = self.short_name(self.host.class_of(object));
                Err(self.raise("TypeError", &format!("'{class}' object is not callable")))
            }
            _ => {
                let text = self.host.describe(object);
                Err(self.stop(format!("a call of {text}")))
            }
        }
    }

    /// A method of an array. Some give an array, not a number, where it has no dimensions.
    fn call_array_method(&mut self, function: &Value, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let name = super::wrap::origin_of(function).and_then(|origin| self.constant(origin.object, "__name__").ok());
        let name = name.and_then(|name| self.host.as_str(name)).unwrap_or_default();
        let ellipsis = self.host.member("builtins", "Ellipsis");
        let rest = |value: &Value| matches!(value, Value::Known(object, _) if Some(*object) == ellipsis);
        let makes_array = match (&*name, args.as_slice()) {
            ("reshape" | "squeeze", _) => true,
            ("__getitem__", [_, Value::Tuple(index)]) => index.items.iter().any(rest),
            ("__getitem__", [_, index]) => rest(index),
            _ => false,
        };
        let is_number = |this: &Self, value: &Value| match value {
            Value::Instance(array) if this.is_array(array.class) => this.is_scalar_of_numpy(array),
            _ => Ok(false),
        };
        let makes_array = makes_array && !is_number(self, &args[0])?;
        let made = self.call(function, args, kwargs)?;
        if makes_array && is_number(self, &made)? {
            return Err(self.stop(format!("an array of the method {name} that has no dimensions")));
        }
        Ok(made)
    }

    /// Whether a function of numpy computes a number from numbers and does nothing else.
    pub(super) fn is_numpy_function(&self, object: Object) -> bool {
        const REDUCTIONS: [&str; 8] = ["prod", "sum", "mean", "max", "min", "amax", "amin", "round"];
        match &*self.host.class_name(self.host.class_of(object)) {
            "numpy.ufunc" => true,
            "numpy._ArrayFunctionDispatcher" => {
                let name = self.constant(object, "__name__").ok().and_then(|name| self.host.as_str(name));
                name.is_some_and(|name| REDUCTIONS.contains(&&*name))
            }
            _ => false,
        }
    }

    /// Calls a function of numpy on numbers; nothing when an argument, or the result, is none.
    pub(super) fn call_numpy(&mut self, function: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let args = args.iter().map(|arg| self.real(arg)).collect::<Run<Option<Vec<Object>>>>()?;
        let (Some(args), true) = (args, kwargs.is_empty()) else { return Ok(None) };
        let made = self.host.call(function, &args, &[]).map_err(|r| self.raised(r))?;
        Ok((self.host.kind(made) == Kind::Plain).then_some(Value::Known(made, None)))
    }

    /// Raises what a function or method written in C raises for more or fewer arguments, or other keywords, than it takes.
    pub(super) fn count_arguments(&self, function: Object, args: &[Value], kwargs: &Keywords) -> Run<()> {
        let keywords: Vec<Rc<str>> = kwargs.iter().map(|(name, _)| name.clone()).collect();
        self.host.refusal(function, args.len(), &keywords).map_or(Ok(()), |raised| Err(self.raised(raised)))
    }

    /// What a function of Python's raises for an object of a class without the method that it asks for.
    pub(super) fn refused_by(&self, function: &str, class: Object, others: &[Object]) -> super::Stop {
        let (module, name) = function.split_once('.').unwrap_or(("builtins", function));
        let (Some(call), Some(function)) =
            (self.host.member("pyrite._polyfills", "call_with_bare_object"), self.host.member(module, name))
        else {
            return self.stop("a missing function");
        };
        let args: Vec<Object> =
            [function, self.host.str(&self.short_name(class))].into_iter().chain(others.iter().copied()).collect();
        match self.host.call(call, &args, &[]) {
            Err(raised) => self.raised(raised),
            Ok(_) => self.stop(format!("{name} of an object without such a method")),
        }
    }

    /// The objects of arguments, where all are plain.
    pub(super) fn plain_arguments(&mut self, args: &[Value], kwargs: &Keywords) -> Run<Option<PlainArguments>> {
        let mut plain = Vec::with_capacity(args.len());
        for arg in args {
            match self.plain_guarded(arg)? {
                Some(object) => plain.push(object),
                None => return Ok(None),
            }
        }
        let mut named = Vec::with_capacity(kwargs.len());
        for (key, value) in kwargs {
            match self.plain_guarded(value)? {
                Some(object) => named.push((self.host.str(key), object)),
                None => return Ok(None),
            }
        }
        Ok(Some((plain, named)))
    }

    /// A function that keeps its results, called with tensors or sizes that are symbols: the function behind it is followed,
    /// once for the same arguments. What it keeps from earlier calls is not looked at, as tensors are known by their identity
    /// and what it makes of sizes has to be such that nobody could tell.
    fn follow_cached(&mut self, function: Object, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let asked: Option<Vec<usize>> = args
            .iter()
            .map(|arg| match arg {
                Value::Known(object, _) => self.host.intern(*object).map(|object| object.0),
                other => other.identity(),
            })
            .collect();
        let asked = asked.filter(|_| kwargs.is_empty()).map(|asked| (function, asked));
        if let Some(kept) = asked.as_ref().and_then(|asked| self.kept_results.get(asked)) {
            return Ok(kept.clone());
        }
        let source = Rc::new(Source::Fixed(function));
        let wrapped = self.read_attribute(function, &source, "__wrapped__")?;
        let wrapped = self.admit(&wrapped)?;
        let is_of_sizes = !args.iter().any(|arg| matches!(arg, Value::Tensor(_)));
        let changed = self.changed.len();
        let result = self.call(&wrapped, args, kwargs)?;
        if is_of_sizes && (self.changed.len() > changed || !is_frozen(&result)) {
            let text = self.host.describe(function);
            return Err(self.stop(format!("a call of {text}, which keeps what it made of sizes that are symbols here")));
        }
        if let Some(asked) = asked {
            self.kept_results.insert(asked, result.clone());
        }
        Ok(result)
    }

    /// A function that keeps its results, called for real where that runs none of its code, because it has kept the result, or
    /// code that does nothing but compute. Nothing when an argument is not plain.
    fn call_cached(&mut self, function: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        // An object that is hashed by its identity is itself as long as that is guarded.
        let mut plain = Vec::with_capacity(args.len());
        for arg in args {
            let object = match self.by_identity(arg) {
                Some(object) => Some(object),
                None => self.real(arg)?,
            };
            let Some(object) = object else { return Ok(None) };
            plain.push(object);
        }
        let Some((_, named)) = self.plain_arguments(&[], kwargs)? else { return Ok(None) };
        let is_kept = self.host.polyfill("is_kept").ok_or_else(|| self.stop("a missing function"))?;
        let asked = self.host.tuple(&[function, self.host.tuple(&plain)]);
        let kept = self.host.call(is_kept, &[asked], &[]).map_err(|r| self.raised(r))?;
        if !kwargs.is_empty() || kept != self.host.bool(true) {
            let before = self.count_effects();
            let wrapped = self.read_attribute(function, &Rc::new(Source::Fixed(function)), "__wrapped__")?;
            let wrapped = self.admit(&wrapped)?;
            self.call(&wrapped, args.to_vec(), kwargs.clone())?;
            // What the frame has changed is not written yet, so the function must not look at it.
            if before + self.count_effects() > 0 {
                let text = self.host.describe(function);
                return Err(self.stop(format!("a call of {text}, which keeps no result for it yet, among effects")));
            }
        }
        let made = self.host.call(function, &plain, &named).map_err(|r| self.raised(r))?;
        if kwargs.is_empty() {
            let origin = Origin { object: asked, source: Rc::new(Source::Fixed(asked)) };
            let kept = self.read_called(&origin, is_kept)?;
            self.admit(&kept)?;
        }
        self.wrap(made, &Rc::new(Source::Fixed(made))).map(Some)
    }

    /// An object from outside that is hashed by its identity, which is guarded; nothing for other values.
    fn by_identity(&mut self, value: &Value) -> Option<Object> {
        let Value::Instance(instance) = value else { return None };
        let origin = instance.origin.as_ref()?;
        let object = self.host.member("builtins", "object")?;
        let hash = self.class_item(instance.class, "__hash__");
        if hash != self.class_item(object, "__hash__") {
            return None;
        }
        self.guard(&origin.source, Check::Is(origin.object));
        Some(origin.object)
    }

    fn call_instance(
        &mut self,
        value: &Value,
        instance: &Rc<InstanceValue>,
        args: Vec<Value>,
        kwargs: Keywords,
    ) -> Run<Value> {
        let class = instance.class;
        match (&*self.host.class_name(class), &instance.origin) {
            ("torch._dynamo.eval_frame.OptimizedModule" | "pyrite._capture.CompiledModule", Some(origin)) => {
                // What is compiled by itself is part of the graph here.
                let original = self.read_instance_item(origin.object, &origin.source, &"_orig_mod".into());
                let original = match original {
                    Some(original) => self.admit(&original)?,
                    None => self.attribute(value, &"_orig_mod".into())?,
                };
                return self.call(&original, args, kwargs);
            }
            ("torch._dynamo.comptime._Comptime", Some(_)) => {
                return match args.get(1) {
                    Some(fallback) => self.call(&fallback.clone(), Vec::new(), Vec::new()),
                    None => Ok(self.none()),
                };
            }
            ("torch.jit.ScriptFunction" | "torch.jit.torch.jit.ScriptFunction", Some(origin)) => {
                self.guard(&origin.source.clone(), Check::Is(origin.object));
                let name = self.host.make_opaque(origin.object);
                return self.capture_opaque_call(&name, origin.object, &args, &kwargs);
            }
            _ => {}
        }
        let Some(found) = self.class_item(class, "__call__") else {
            let text = self.host.class_name(class);
            let text = text.rsplit('.').next().unwrap_or_default().to_owned();
            return Err(self.raise("TypeError", &format!("'{text}' object is not callable")));
        };
        if instance.torch_module {
            let module = self.host.member("torch.nn", "Module");
            if module.and_then(|module| self.class_item(module, "__call__")) == Some(found) {
                return self.call_module(value, instance, args, kwargs);
            }
        }
        if self.host.descriptor(found) != Descriptor::Function {
            return Err(self.stop(format!("a call of an object of {}", self.host.class_name(class))));
        }
        let function = self.wrap(found, &Rc::new(Source::Fixed(found)))?;
        let args = std::iter::once(value.clone()).chain(args).collect();
        self.call(&function, args, kwargs)
    }

    /// Lets a module whose parameters depend on its first input have them, for inputs of these shapes: as in plain Python that
    /// happens once and for good, before anything is computed. The frame is evaluated anew.
    fn initialize_lazy(&mut self, instance: &Rc<InstanceValue>, args: &[Value], kwargs: &Keywords) -> Run<()> {
        let lazy = self.host.member("torch.nn.modules.lazy", "LazyModuleMixin");
        let Some(origin) =
            instance.origin.as_ref().filter(|_| lazy.is_some_and(|lazy| self.host.derives(instance.class, lazy)))
        else {
            return Ok(());
        };
        let (Some(function), true) = (self.host.polyfill("initialize_lazy"), kwargs.is_empty()) else { return Ok(()) };
        let mut examples = Vec::with_capacity(args.len());
        for arg in args {
            let (Value::Tensor(_), GraphValue::Tensor(node)) = (arg, self.graph_value(arg)?) else { return Ok(()) };
            let meta = self.fixed_meta(&self.tensor_meta(node)?.clone())?;
            let sizes: Vec<Object> =
                meta.shape.iter().filter_map(SymInt::as_int).map(|size| self.host.int(size)).collect();
            let Some(dtype) = self.host.object_of(&GraphValue::DType(meta.dtype)) else { return Ok(()) };
            examples.push(self.host.tuple(&[self.host.tuple(&sizes), dtype]));
        }
        let examples = self.host.tuple(&examples);
        let done = self.host.call(function, &[origin.object, examples], &[]).map_err(|raised| self.raised(raised))?;
        if done == self.host.bool(true) {
            self.again = true;
            return Err(self.stop("a module that its first call initialises"));
        }
        Ok(())
    }

    /// A module of torch: its hooks, if it has any, and its `forward`.
    fn call_module(
        &mut self,
        value: &Value,
        instance: &Rc<InstanceValue>,
        args: Vec<Value>,
        kwargs: Keywords,
    ) -> Run<Value> {
        const HOOKS: [&str; 4] = ["_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"];
        const GLOBAL: [&str; 4] = [
            "_global_forward_hooks",
            "_global_forward_pre_hooks",
            "_global_backward_hooks",
            "_global_backward_pre_hooks",
        ];
        for hooks in GLOBAL {
            if let Some(held) = self.host.member("torch.nn.modules.module", hooks)
                && self.read_length(held, &Rc::new(Source::Fixed(held))) > 0
            {
                return Err(self.stop("a module, while there are hooks of all modules"));
            }
        }
        self.initialize_lazy(instance, &args, &kwargs)?;
        let mut hooked = false;
        for hooks in HOOKS {
            let set = instance.attributes.borrow().get(hooks).cloned().flatten();
            if let Some(set) = set {
                hooked |= self.count(&set)? > 0;
            }
        }
        if hooked && instance.origin.is_none() {
            return Err(self.stop("a call of a new module with hooks"));
        }
        if let Some(origin) = &instance.origin {
            for hooks in HOOKS {
                let held = self.read_instance_item(origin.object, &origin.source, &hooks.into());
                let Some(held) = held else { continue };
                let empty = self.read_length(held.object, &held.source) == 0;
                hooked |= !empty;
                if !empty && hooks.starts_with("_backward") {
                    return Err(self.stop("a module with hooks of its backward half"));
                }
            }
        }
        if hooked {
            let function =
                self.host.polyfill("module_call").ok_or_else(|| self.stop("a module with hooks of its own"))?;
            let function = self.wrap(function, &Rc::new(Source::Fixed(function)))?;
            let pairs = kwargs.into_iter().map(|(name, value)| (self.text(&name), value)).collect();
            let kwargs = self.new_dict(pairs)?;
            return self.call(&function, vec![value.clone(), Value::tuple(args), kwargs], Vec::new());
        }
        let forward = self.attribute(value, &"forward".into())?;
        self.call(&forward, args, kwargs)
    }

    /// Calls a function of `pyrite._polyfills` that stands for one written in C.
    pub(super) fn call_polyfill(&mut self, name: &str, args: Vec<Value>, kwargs: Keywords) -> Run<Option<Value>> {
        let Some(function) = self.host.polyfill(name) else { return Ok(None) };
        let function = self.wrap(function, &Rc::new(Source::Fixed(function)))?;
        match self.call(&function, args, kwargs) {
            Err(super::Stop::Break(reason, hint)) if WHOLE.contains(&name) && !reason.contains(UNCAPTURED) => {
                let reason =
                    format!("{name}: this higher order operator {UNCAPTURED}. Got graph break/error: {reason}");
                Err(super::Stop::Break(reason, hint))
            }
            other => other.map(Some),
        }
    }

    /// The entries of a dictionary of keyword arguments.
    pub(super) fn keyword_items(&mut self, dict: &Value) -> Run<Keywords> {
        let pairs = self.dict_pairs(dict)?;
        pairs
            .into_iter()
            .map(|(key, value)| match &key {
                Value::Known(key, _) => match self.host.as_str(*key) {
                    Some(name) => Ok((name, value)),
                    None => Err(self.raise("TypeError", "keywords must be strings")),
                },
                _ => Err(self.raise("TypeError", "keywords must be strings")),
            })
            .collect()
    }
}

/// Whether a value is, or holds, a size that is a symbol.
fn holds_symbol(value: &Value) -> bool {
    match value {
        Value::Symbol(_) => true,
        Value::Tuple(tuple) => tuple.items.iter().any(holds_symbol),
        _ => false,
    }
}

/// Whether nobody can tell a value from another that was made in the same way.
fn is_frozen(value: &Value) -> bool {
    match value {
        Value::Known(..) | Value::Symbol(_) | Value::Number(_) | Value::Slice(_) => true,
        Value::Tuple(tuple) => tuple.items.iter().all(is_frozen),
        _ => false,
    }
}
