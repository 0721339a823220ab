//! Functions and classes that are known by their names: Python's builtins, its library, torch.

use super::call::Keywords;
use super::{Evaluator, Run};
use crate::host::{Descriptor, Kind, Object};
use crate::value::Value;

/// Modules of Python's library whose functions compute and do nothing else.
const PURE_MODULES: [&str; 6] = ["math.", "operator.", "cmath.", "string.", "numbers.", "_struct."];

/// Functions and classes that compute and do nothing else, when their arguments are plain.
const PURE: [&str; 52] = [
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
    "torch._C._infer_size",
    "torch.nn.functional._get_softmax_dim",
    "torch._C._log_api_usage_once",
    "torch._C._nn._parse_to",
    "numpy.float32",
    "numpy.float64",
    "numpy.int64",
];

/// Functions of numpy that give an array, not a number, where it has no dimensions.
const MAKES_ARRAYS: [&str; 15] = [
    "array",
    "asarray",
    "asanyarray",
    "broadcast_to",
    "copy",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "reshape",
    "squeeze",
    "zeros",
    "zeros_like",
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
const QUESTIONS: [&str; 19] = [
    "posix.getcwd",
    "posix.getpid",
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

/// What `torch._C._set_deterministic_algorithms` sets, by the questions of `torch._C` for it.
const DETERMINISM: [&str; 2] = ["_get_deterministic_algorithms", "_get_deterministic_algorithms_warn_only"];

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
        if name.starts_with("torch.")
            && let Some(result) = self.call_with_numbers(name, args, kwargs)?
        {
            return Ok(Some(result));
        }
        if let Some((_, answer)) = ANSWERS.iter().find(|(known, _)| *known == name) {
            self.told_compiling |= *answer;
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
        if let "torch.use_deterministic_algorithms" | "torch._C._set_deterministic_algorithms" = name {
            return self.set_deterministic(object, args, kwargs).map(Some);
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
            && !stem.contains('.')
        {
            self.count_arguments(object, args, kwargs)?;
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
        let made = self.call_polyfill(name, args.to_vec(), kwargs.clone())?;
        if let Some(stem) = name.strip_prefix("numpy.")
            && MAKES_ARRAYS.contains(&stem)
            && let Some(Value::Instance(array)) = &made
            && self.is_array(array.class)
            && self.is_scalar_of_numpy(array)?
        {
            return Err(self.stop(format!("an array of {name} that has no dimensions")));
        }
        Ok(made)
    }

    /// Whether autocast is on for a device, and which type it chooses.
    fn ask_autocast(&mut self, name: &str, device: &Value) -> Run<Value> {
        let device = match device {
            Value::Known(device, _) => self.host.as_str(*device),
            _ => None,
        };
        let enabled = name == "torch.is_autocast_enabled";
        let (module, question) = match (device.as_deref(), enabled) {
            (Some("cpu"), true) => return Ok(self.bool(self.state.autocast.is_some())),
            (Some("cpu"), false) if let Some(dtype) = self.state.autocast => {
                let dtype = self.host.object_of(&pyrite_ir::Value::DType(dtype));
                return dtype.map(|it| Value::Known(it, None)).ok_or_else(|| self.stop("a type without a name"));
            }
            (Some("cpu"), false) if self.autocasts.is_empty() => ("torch", "get_autocast_cpu_dtype".to_owned()),
            (Some("cuda"), true) => ("torch", "is_autocast_enabled".to_owned()),
            (Some("cuda"), false) => ("torch", "get_autocast_gpu_dtype".to_owned()),
            (Some(device), true) => ("pyrite._polyfills", format!("is_autocast_enabled_{device}")),
            _ => return Err(self.stop("whether autocast is on, for a device that is not known")),
        };
        let question = self.host.member(module, &question).ok_or_else(|| self.stop("autocast of an unknown device"))?;
        self.ask_state(question)
    }

    /// Notes what a setting of torch is from now on.
    fn set_setting(&mut self, question: Object, value: Value) {
        match self.settings_set.iter_mut().find(|(known, ..)| *known == question) {
            Some(entry) => entry.1 = value,
            None => self.settings_set.push((question, value, self.root)),
        }
    }

    /// Lets torch use deterministic algorithms, or any: captured code sees it from here on, everyone once the frame ends.
    fn set_deterministic(&mut self, setter: Object, args: &[Value], kwargs: &Keywords) -> Run<Value> {
        let warn_only = match &kwargs[..] {
            [] => self.bool(false),
            [(name, value)] if &**name == "warn_only" => value.clone(),
            _ => return Err(self.stop("a choice of algorithms with unknown arguments")),
        };
        let [mode] = args else { return Err(self.stop("a choice of algorithms with unknown arguments")) };
        for value in [mode, &warn_only] {
            let known = self.plain_guarded(value)?;
            if !known.is_some_and(|known| self.host.kind(known) == Kind::Bool) || !self.bodies.is_empty() {
                return Err(self.stop("a choice of algorithms that is not known"));
            }
        }
        for (question, value) in DETERMINISM.into_iter().zip([mode, &warn_only]) {
            let question = self.host.member("torch._C", question).ok_or_else(|| self.stop("a missing function"))?;
            self.set_setting(question, value.clone());
        }
        self.setters_called.retain(|(known, ..)| *known != setter);
        self.setters_called.push((setter, vec![mode.clone()], vec![("warn_only".into(), warn_only)]));
        Ok(self.none())
    }

    /// Refuses to end a frame with other settings than it began with: it goes on before the first was set.
    pub(super) fn check_settings(&mut self) -> Result<(), String> {
        let later = DETERMINISM.map(|question| self.host.member("torch._C", question));
        for (question, value, at) in std::mem::take(&mut self.settings_set) {
            if later.contains(&Some(question)) {
                continue;
            }
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

    /// Whether an attribute of a class is written in Python.
    pub(super) fn is_python_method(&self, class: Object, name: &str) -> bool {
        self.class_item(class, name).is_some_and(|found| self.host.descriptor(found) == Descriptor::Function)
    }
}
