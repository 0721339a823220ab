//! Context managers: torch's own, which switch how what follows is computed, and the user's.

use std::cell::RefCell;
use std::rc::Rc;

use pyrite_ir::{Device, Value as GraphValue};
use pyrite_tensor::DType;

use super::call::Keywords;
use super::{Evaluator, Run};
use crate::host::Object;
use crate::value::{ContextKind, ContextValue, Origin, Value};

/// The class whose objects switch when they are made.
const SET_GRAD_ENABLED: &str = "torch.autograd.grad_mode.set_grad_enabled";

impl Evaluator<'_, '_> {
    /// A context manager of torch, made from its class; nothing when the class is none.
    pub(super) fn construct_context(&mut self, class: Object, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let name = self.host.class_name(class);
        let kind = match &*name {
            "torch.autograd.grad_mode.no_grad" => ContextKind::Grad(false),
            "torch.autograd.grad_mode.enable_grad" => ContextKind::Grad(true),
            SET_GRAD_ENABLED => {
                let mode = args.first().or_else(|| kwargs.first().map(|(_, value)| value));
                let mode = mode.cloned().ok_or_else(|| self.stop("set_grad_enabled without a mode"))?;
                let before = self.grad;
                let mode = self.is_true(&mode)?;
                self.check_unseen(ContextKind::Grad(mode))?;
                self.set_grad(mode)?;
                let context = self.context(ContextKind::Grad(mode), class, args, None);
                if let Value::Context(context) = &context {
                    context.before.borrow_mut().push(before);
                }
                return Ok(Some(context));
            }
            "torch.amp.autocast_mode.autocast" | "torch.cpu.amp.autocast_mode.autocast" => {
                let kind = self.autocast_kind(&name, args, kwargs)?;
                // Made again, it takes its arguments by position: device, type, enabled.
                let made = self.autocast_arguments(&name, args, kwargs);
                return Ok(Some(self.context(kind, class, &made, None)));
            }
            "torch.autograd.profiler.record_function" => ContextKind::Nothing,
            // What torch's own compiler is told by them is nothing to others.
            "torch._dynamo.decorators.ErrorOnGraphBreakDecoratorContextManager"
            | "torch._dynamo.decorators.DynamoConfigPatchProxy" => ContextKind::Nothing,
            "warnings.catch_warnings" if args.is_empty() && kwargs.is_empty() => ContextKind::Warnings,
            "warnings.catch_warnings"
                if args.is_empty()
                    && matches!(kwargs.as_slice(), [(key, Value::Known(on, _))] if &**key == "record" && *on == self.host.bool(true)) =>
            {
                ContextKind::RecordedWarnings
            }
            "torch._C.DisableTorchFunctionSubclass" => ContextKind::SubclassesOff,
            "torch._C.DisableTorchFunction" => ContextKind::OverridesOff,
            "torch.autograd.grad_mode.inference_mode" if self.bodies.is_empty() => {
                let mode = args.first().or_else(|| kwargs.first().map(|(_, value)| value)).cloned();
                let on = match mode {
                    // As a decorator without parentheses.
                    Some(Value::Function(_)) => return Err(self.stop("inference mode as a decorator")),
                    Some(mode) => self.is_true(&mode)?,
                    None => true,
                };
                let mode = self.bool(on);
                return Ok(Some(self.context(ContextKind::Inference(on), class, &[mode], None)));
            }
            "torch.autograd.grad_mode.inference_mode" | "torch._C._InferenceMode" => {
                return Err(self.stop("inference mode inside of a nested graph"));
            }
            _ => return Ok(None),
        };
        Ok(Some(self.context(kind, class, args, None)))
    }

    fn context(&self, kind: ContextKind, class: Object, args: &[Value], origin: Option<Origin>) -> Value {
        Value::Context(Rc::new(ContextValue { kind, class, args: args.to_vec(), origin, before: RefCell::default() }))
    }

    fn autocast_arguments(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Vec<Value> {
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
        let names: &[&str] =
            if name.starts_with("torch.cpu") { &["enabled", "dtype"] } else { &["device_type", "dtype", "enabled"] };
        let given = |index: usize, name: &str| args.get(index).cloned().or_else(|| option(name));
        let mut all: Vec<Option<Value>> = names.iter().enumerate().map(|(i, name)| given(i, name)).collect();
        while matches!(all.last(), Some(None)) {
            all.pop();
        }
        all.into_iter().map(|value| value.unwrap_or_else(|| self.none())).collect()
    }

    fn autocast_kind(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<ContextKind> {
        let option = |name: &str| kwargs.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.clone());
        let of_cpu = name.starts_with("torch.cpu");
        let (device, dtype, enabled) = if of_cpu {
            (
                None,
                args.get(1).cloned().or_else(|| option("dtype")),
                args.first().cloned().or_else(|| option("enabled")),
            )
        } else {
            let device = args.first().cloned().or_else(|| option("device_type"));
            (
                device,
                args.get(1).cloned().or_else(|| option("dtype")),
                args.get(2).cloned().or_else(|| option("enabled")),
            )
        };
        let is_elsewhere = matches!(&device, Some(Value::Known(device, _)) if self.host.as_str(*device).is_none_or(|device| &*device != "cpu"));
        if let Some(enabled) = enabled
            && !self.is_true(&enabled)?
        {
            // What is captured runs without the autocast of other devices.
            return Ok(if is_elsewhere { ContextKind::Nothing } else { ContextKind::Autocast(None) });
        }
        if is_elsewhere {
            return Err(self.stop("autocast for a device other than the CPU"));
        }
        let dtype = match dtype {
            Some(value) if !self.is_none(&value) => value,
            // One inside of another keeps the type.
            _ => return Ok(ContextKind::Autocast(Some(self.state.autocast.unwrap_or(DType::BF16)))),
        };
        match self.graph_value(&dtype)? {
            GraphValue::DType(dtype) => Ok(ContextKind::Autocast(Some(dtype))),
            _ => Err(self.stop("autocast with an argument that is not a dtype")),
        }
    }

    /// A context from outside, made once more to be entered here. What the one outside notes when it is entered is written to
    /// it when the frame ends.
    fn made_again(&mut self, context: &ContextValue, origin: &Origin) -> Run<Rc<ContextValue>> {
        if self.entered.iter().any(|(object, entered)| *object == origin.object && !entered.before.borrow().is_empty())
        {
            return Err(self.stop("a context manager from outside, which is entered twice"));
        }
        let mut read = |name: &str| {
            let seen = self.read_attribute(origin.object, &origin.source, name)?;
            self.admit(&seen)
        };
        let (kind, args) = match context.kind {
            ContextKind::Autocast(_) => {
                let args = [read("device")?, read("fast_dtype")?, read("_enabled")?];
                (self.autocast_kind("torch.amp.autocast_mode.autocast", &args, &Vec::new())?, args.to_vec())
            }
            ContextKind::Grad(mode) if self.host.class_name(context.class) == SET_GRAD_ENABLED => {
                (context.kind, vec![self.bool(mode)])
            }
            kind => (kind, Vec::new()),
        };
        let made = ContextValue { kind, class: context.class, args, origin: None, before: RefCell::default() };
        let made = Rc::new(made);
        self.entered.push((origin.object, made.clone()));
        Ok(made)
    }

    /// What holds again once a context from outside, which is entered here, is left. `set_grad_enabled` noted that when it was
    /// made; the others note it now, where everybody can read it.
    fn note_grad_mode(&mut self, manager: &Value, context: &ContextValue) -> Run<bool> {
        if self.host.class_name(context.class) == SET_GRAD_ENABLED {
            let noted = context.before.borrow().last().copied();
            return noted.ok_or_else(|| self.stop("set_grad_enabled without the mode before it"));
        }
        let setattr = self.host.member("builtins", "setattr").ok_or_else(|| self.stop("a missing function"))?;
        let (name, mode) = (self.text("prev"), self.bool(self.grad));
        self.setters_called.push((setattr, vec![manager.clone(), name, mode], Vec::new()));
        Ok(self.grad)
    }

    /// A context manager of torch that exists outside: one that was entered before the frame went on.
    pub(super) fn wrap_context(&mut self, class: Object, origin: &Origin) -> Run<Option<Value>> {
        let kind = match &*self.host.class_name(class) {
            "torch.autograd.grad_mode.no_grad" => ContextKind::Grad(false),
            "torch.autograd.grad_mode.enable_grad" => ContextKind::Grad(true),
            SET_GRAD_ENABLED => {
                let mode = self.read_attribute(origin.object, &origin.source, "mode")?;
                let mode = self.admit(&mode)?;
                ContextKind::Grad(self.is_true(&mode)?)
            }
            "torch.amp.autocast_mode.autocast" if self.bodies.is_empty() => {
                let context =
                    self.context(ContextKind::Autocast(self.state.autocast), class, &[], Some(origin.clone()));
                return Ok(Some(context));
            }
            "torch._dynamo.decorators.ErrorOnGraphBreakDecoratorContextManager"
            | "torch._dynamo.decorators.DynamoConfigPatchProxy" => ContextKind::Nothing,
            _ => return Ok(None),
        };
        let context = self.context(kind, class, &[], Some(origin.clone()));
        if let Value::Context(context) = &context
            && let Ok(before) = self.read_attribute(origin.object, &origin.source, "prev")
        {
            let before = self.admit(&before)?;
            context.before.borrow_mut().push(self.is_true(&before)?);
        }
        Ok(Some(context))
    }

    /// What autocast chooses once a context that was entered outside is left.
    fn autocast_before(&mut self, origin: &Origin) -> Run<Option<DType>> {
        if self.left.iter().any(|left| matches!(left, Value::Context(context) if context.origin.as_ref().is_some_and(|it| it.object == origin.object))) {
            return Err(self.stop("a context that was not entered is left"));
        }
        let mut read = |name: &str| {
            let seen = self.read_attribute(origin.object, &origin.source, name)?;
            self.admit(&seen)
        };
        let (on, device, dtype) = (read("prev")?, read("device")?, read("prev_fastdtype")?);
        if !matches!(&device, Value::Known(device, _) if self.host.as_str(*device).is_some_and(|device| &*device == "cpu"))
        {
            return Err(self.stop("autocast for a device other than the CPU"));
        }
        if !self.is_true(&on)? {
            return Ok(None);
        }
        match self.graph_value(&dtype)? {
            GraphValue::DType(dtype) => Ok(Some(dtype)),
            _ => Err(self.stop("autocast with an argument that is not a dtype")),
        }
    }

    /// Refuses to enter or leave a context that switches how torch computes where a mode is shown that it does.
    fn check_unseen(&self, kind: ContextKind) -> Run<()> {
        if self.overrides.sees_modes()
            && matches!(kind, ContextKind::Grad(_) | ContextKind::Autocast(_) | ContextKind::Inference(_))
        {
            return Err(self.stop("a switch of how torch computes, which is shown to a mode"));
        }
        Ok(())
    }

    /// Switches the recording of gradients.
    pub(super) fn set_grad(&mut self, grad: bool) -> Run<()> {
        if self.grad != grad {
            self.grad = grad;
            self.grad_modes.push((self.calls.begin_nested(), grad));
            self.switch("torch._C._set_grad_enabled", vec![GraphValue::Bool(grad)])?;
        }
        Ok(())
    }

    /// Switches inference mode, and with it the recording of gradients; the graph does so where the mode is entered or left.
    fn set_inference(&mut self, on: bool, grad: bool) {
        self.inference = on;
        self.grad = grad;
        self.grad_modes.push((self.calls.begin_nested(), grad));
    }

    fn switch(&mut self, name: &str, args: Vec<GraphValue<pyrite_ir::NodeId>>) -> Run<()> {
        self.calls.call(name, args, Vec::new()).map_err(|refused| self.stop(refused.0))?;
        Ok(())
    }

    /// Enters autocast for all that follows.
    pub(super) fn enter_autocast(&mut self, dtype: Option<DType>) -> Run<()> {
        self.autocasted = true;
        let args = vec![
            GraphValue::Str("cpu".into()),
            GraphValue::DType(dtype.unwrap_or(DType::BF16)),
            GraphValue::Bool(dtype.is_some()),
            GraphValue::None,
        ];
        self.switch("torch.amp.autocast_mode._enter_autocast", args)
    }

    /// Enters a context manager: what leaves it, and what it gives.
    pub(super) fn enter(&mut self, manager: &Value) -> Run<(Value, Value)> {
        match manager {
            Value::Context(context) => {
                self.check_unseen(context.kind)?;
                let exit = Value::Bound(Rc::new((manager.clone(), "__exit__".into())));
                match context.kind {
                    ContextKind::Grad(grad) => {
                        if let Some(origin) = &context.origin {
                            let made = self.made_again(context, origin)?;
                            let before = self.note_grad_mode(manager, context)?;
                            made.before.borrow_mut().push(before);
                            self.set_grad(grad)?;
                            let exit = Value::Bound(Rc::new((Value::Context(made), "__exit__".into())));
                            return Ok((exit, self.none()));
                        }
                        // `set_grad_enabled` has switched already.
                        if self.host.class_name(context.class) != SET_GRAD_ENABLED {
                            context.before.borrow_mut().push(self.grad);
                            self.set_grad(grad)?;
                        }
                        Ok((exit, self.none()))
                    }
                    ContextKind::Autocast(_) if let Some(origin) = &context.origin => {
                        let made = self.made_again(context, origin)?;
                        let enter_once = self.host.polyfill("enter_once");
                        let enter_once = enter_once.ok_or_else(|| self.stop("a missing function"))?;
                        self.setters_called.push((enter_once, vec![manager.clone()], Vec::new()));
                        let (exit, _) = self.enter(&Value::Context(made))?;
                        Ok((exit, manager.clone()))
                    }
                    ContextKind::Autocast(dtype) => {
                        context.before.borrow_mut().push(true);
                        self.autocasts.push(self.state.autocast);
                        self.state.autocast = dtype;
                        self.enter_autocast(dtype)?;
                        Ok((exit, manager.clone()))
                    }
                    ContextKind::Inference(on) => {
                        context.before.borrow_mut().push(true);
                        let (name, on_or_off) = ("pyrite.higher_order.enter_inference", vec![GraphValue::Bool(on)]);
                        let entered = self.calls.opaque(name, on_or_off, Vec::new(), GraphValue::None);
                        self.inferences.push((self.inference, self.grad, entered));
                        self.set_inference(on, !on);
                        Ok((exit, self.none()))
                    }
                    ContextKind::Warnings => {
                        if self.warnings.is_some() {
                            return Err(self.stop("warnings.catch_warnings() inside of another"));
                        }
                        context.before.borrow_mut().push(true);
                        self.warnings = Some(super::Warned::AsOutside);
                        Ok((exit, self.none()))
                    }
                    ContextKind::RecordedWarnings => {
                        if self.warnings.is_some() {
                            return Err(self.stop("warnings.catch_warnings() inside of another"));
                        }
                        context.before.borrow_mut().push(true);
                        self.warnings = Some(super::Warned::Recorded);
                        Ok((exit, Value::list(Vec::new())))
                    }
                    ContextKind::Nothing => {
                        context.before.borrow_mut().push(true);
                        Ok((exit, manager.clone()))
                    }
                    ContextKind::SubclassesOff | ContextKind::OverridesOff => {
                        context.before.borrow_mut().push(true);
                        self.overrides.switch_off(context.kind);
                        Ok((exit, self.none()))
                    }
                }
            }
            Value::Instance(instance) => {
                let class = instance.class;
                if !self.is_python_method(class, "__enter__") || !self.is_python_method(class, "__exit__") {
                    let text = self.host.class_name(class);
                    return Err(self.stop(format!("{text} as a context manager")));
                }
                let exit = self.class_attribute_of(manager, class, &"__exit__".into())?;
                let enter = self.class_attribute_of(manager, class, &"__enter__".into())?;
                let entered = self.call(&enter, Vec::new(), Vec::new())?;
                Ok((exit, entered))
            }
            // New tensors are on the CPU anyway.
            Value::Known(device, _)
                if self.host.class_name(self.host.class_of(*device)) == "torch.device"
                    && matches!(self.host.to_graph(*device), Some(GraphValue::Device(Device::Cpu))) =>
            {
                let class = self.host.class_of(*device);
                let name = self.text("cpu");
                let context = self.context(ContextKind::Nothing, class, &[name], None);
                let (exit, _) = self.enter(&context)?;
                Ok((exit, manager.clone()))
            }
            other => Err(self.stop(format!("{} as a context manager", self.describe(other)))),
        }
    }

    /// Methods of torch's context managers.
    pub(super) fn context_method(&mut self, manager: &Value, name: &str, args: &[Value]) -> Run<Value> {
        let Value::Context(context) = manager else { return Err(self.stop("not a context manager")) };
        match (name, args) {
            ("__enter__", []) => self.enter(manager).map(|(_, entered)| entered),
            ("__exit__", [_, _, _]) => {
                self.check_unseen(context.kind)?;
                match context.kind {
                    ContextKind::Grad(_) => {
                        let before = context.before.borrow_mut().pop();
                        let before = before.ok_or_else(|| self.stop("a context that was not entered is left"))?;
                        self.set_grad(before)?;
                    }
                    ContextKind::Autocast(_) if let Some(origin) = &context.origin => {
                        let before = self.autocast_before(&origin.clone())?;
                        self.state.autocast = before;
                        self.left.push(manager.clone());
                        // It stays entered as long as the graph runs, which ends what it enters itself.
                        self.enter_autocast(before)?;
                    }
                    ContextKind::Autocast(_) => {
                        context.before.borrow_mut().pop();
                        self.state.autocast = self.autocasts.pop().flatten();
                        self.switch("torch.amp.autocast_mode._exit_autocast", vec![GraphValue::None])?;
                    }
                    ContextKind::Inference(_) => {
                        context.before.borrow_mut().pop();
                        let outside = self.inferences.pop();
                        let outside = outside.ok_or_else(|| self.stop("a context that was not entered is left"))?;
                        let (on, grad, entered) = outside;
                        let name = "pyrite.higher_order.exit_inference";
                        self.calls.opaque(name, vec![entered], Vec::new(), GraphValue::None);
                        self.set_inference(on, grad);
                    }
                    ContextKind::Warnings | ContextKind::RecordedWarnings => {
                        context.before.borrow_mut().pop();
                        self.warnings = None;
                    }
                    ContextKind::Nothing => {
                        context.before.borrow_mut().pop();
                    }
                    ContextKind::SubclassesOff | ContextKind::OverridesOff => {
                        context.before.borrow_mut().pop();
                        self.overrides.switch_on(context.kind);
                    }
                }
                Ok(self.bool(false))
            }
            ("clone", []) => Ok(self.context(context.kind, context.class, &context.args, None)),
            _ => Err(self.stop(format!("the method {name} of a context manager"))),
        }
    }
}
