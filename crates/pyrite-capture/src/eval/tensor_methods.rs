//! Methods of tensors: those that ask for what is known, those that stand for syntax, and operators.

use std::rc::Rc;

use pyrite_ir::{Kind as NodeKind, Meta, NodeId, Value as GraphValue};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, MemoryFormat};

use super::call::Keywords;
use super::tensor::V;
use super::{Evaluator, Outcome, Run, Stop};
use crate::host::Kind;
use crate::opcode::BINARY;
use crate::source::Source;
use crate::value::{TupleValue, Value};

/// Methods that look at the data, or at what only eager execution has.
const NEEDS_DATA: [&str; 18] = [
    "tolist",
    "numpy",
    "backward",
    "requires_grad_",
    "register_hook",
    "retain_grad",
    "data_ptr",
    "storage",
    "untyped_storage",
    "share_memory_",
    "__array__",
    "__bool__",
    "__int__",
    "__float__",
    "set_",
    "resize_",
    "is_set_to",
    "cuda",
];

/// Methods that torch has written in Python.
const IN_PYTHON: [&str; 3] = ["lu", "norm", "stft"];

/// Methods that write what the method without the underscore computes, and no operator stands for.
const IN_PLACE: [&str; 2] = ["polygamma_", "true_divide_"];

/// The operator that a special method is named after, by its name in Python's `operator` module.
fn operator_named(stem: &str) -> Option<&'static str> {
    // `truediv` is named `div`, too, for the older reflected method.
    let stem = match stem {
        "div" => "truediv",
        other => other,
    };
    BINARY.into_iter().find(|name| name.trim_end_matches('_') == stem)
}

impl Evaluator<'_, '_> {
    /// `tensor.name(*args, **kwargs)`; where no operator takes these arguments, by what is written in Python for them.
    pub(super) fn tensor_method(
        &mut self,
        receiver: &Value,
        name: &Rc<str>,
        args: Vec<Value>,
        kwargs: Keywords,
    ) -> Run<Value> {
        if let "clamp" | "clip" = &**name {
            let all: Vec<Value> = std::iter::once(receiver.clone()).chain(args.iter().cloned()).collect();
            if let Some(result) = self.call_with_numbers("torch.clamp", &all, &kwargs)? {
                return Ok(result);
            }
        }
        let mark = self.calls.mark();
        match self.operator_method(receiver, name, args.clone(), kwargs.clone()) {
            Err(Stop::Break(reason, hint)) => {
                self.calls.abandon_since(mark);
                if let Some(numbers) = self.with_numbers(name, &args)? {
                    return self.operator_method(receiver, name, numbers, kwargs);
                }
                let all: Vec<Value> = std::iter::once(receiver.clone()).chain(args).collect();
                let polyfilled = self.call_polyfill(&format!("torch.Tensor.{name}"), all.clone(), kwargs.clone())?;
                match polyfilled {
                    Some(result) => Ok(result),
                    None => match self.method_by_function(name, all, kwargs)? {
                        Some(result) => Ok(result),
                        None => Err(Stop::Break(reason, hint)),
                    },
                }
            }
            other => other,
        }
    }

    /// A method that no operator stands for: one that is written in Python is followed, another is the function of torch of
    /// that name, one that writes is computed and then written. Nothing where that is not known to be the same.
    fn method_by_function(&mut self, name: &Rc<str>, args: Vec<Value>, kwargs: Keywords) -> Run<Option<Value>> {
        if NEEDS_DATA.contains(&&**name) || name.starts_with('_') {
            return Ok(None);
        }
        let class = self.host.member("torch", "Tensor");
        if IN_PYTHON.contains(&&**name)
            && let Some(method) = class.and_then(|class| self.class_item(class, name))
            && self.host.kind(method) == Kind::Function
        {
            let Value::Function(method) = self.wrap(method, &Rc::new(Source::Fixed(method)))? else { return Ok(None) };
            // Called by its name it would be this method again.
            let Some(code) = self.host.code(method.code) else { return Ok(None) };
            let mut frame = self.bind_arguments(&method, &code, args, kwargs)?;
            return match self.run_frame(&mut frame)? {
                Outcome::Return(value) => Ok(Some(value)),
                Outcome::Yield(_) => Ok(None),
            };
        }
        if IN_PLACE.contains(&&**name) {
            let args = std::iter::once(self.text(name.trim_end_matches('_'))).chain(args).collect();
            return self.call_polyfill("write_result", args, kwargs);
        }
        let Some(function) = self.host.member("torch", name) else { return Ok(None) };
        self.call_unknown(&format!("torch.{name}"), function, &args, &kwargs)
    }

    /// Lets a hook of a leaf from outside be registered when the frame ends: gradients are accumulated where Python runs.
    /// Nothing for other tensors.
    fn hook_after_accumulation(&mut self, receiver: &Value, hook: &Value) -> Run<Option<Value>> {
        let Value::Tensor(tensor) = receiver else { return Ok(None) };
        let plain = tensor.origin.is_some() && tensor.class.is_none() && self.bodies.is_empty();
        if !plain || !self.tensor_meta(tensor.node)?.is_leaf || !self.requires_grad(receiver)? {
            return Ok(None);
        }
        let class = self.host.member("torch", "Tensor");
        let Some(function) = class.and_then(|class| self.class_item(class, "register_post_accumulate_grad_hook"))
        else {
            return Ok(None);
        };
        self.setters_called.push((function, vec![receiver.clone(), hook.clone()], Vec::new()));
        let handle = Value::Unknown("the handle of a hook".into());
        if let Some(identity) = handle.identity() {
            self.made_at.insert(identity, self.root);
        }
        Ok(Some(handle))
    }

    /// Lets the gradients of a leaf from outside be recorded, or not, as long as nothing was computed from it: then it is
    /// switched before the graph runs. Whether that is possible.
    pub(super) fn switch_requires_grad(&mut self, receiver: &Value, wanted: bool) -> Run<bool> {
        let Value::Tensor(tensor) = receiver else { return Ok(false) };
        let Some(origin) = tensor.origin.as_ref().filter(|_| tensor.class.is_none() && tensor.example.is_none()) else {
            return Ok(false);
        };
        let meta = self.tensor_meta(tensor.node)?.clone();
        let differentiable = meta.dtype.is_float() || meta.dtype.is_complex();
        if !meta.is_leaf || !differentiable || self.inference || !self.bodies.is_empty() || self.overrides.sees_modes()
        {
            return Ok(false);
        }
        let mut used = false;
        for id in (tensor.node.0 + 1..self.calls.begin_nested().0).map(NodeId) {
            let held = self.calls.node(id);
            let asks_size = matches!(&held.kind, NodeKind::Call(target) if target.name().starts_with("aten.sym_"));
            held.each_input(&mut |input| used |= !asks_size && input == tensor.node);
        }
        if used {
            return Ok(false);
        }
        let source = origin.source.clone();
        self.calls.set_meta(tensor.node, GraphValue::Tensor(Meta { requires_grad: wanted, ..meta }));
        self.switched.retain(|(known, _)| *known != source);
        self.switched.push((source, wanted));
        Ok(true)
    }

    fn operator_method(&mut self, receiver: &Value, name: &Rc<str>, args: Vec<Value>, kwargs: Keywords) -> Run<Value> {
        let Value::Tensor(tensor) = receiver else { return Err(self.stop("a method of nothing")) };
        let node = tensor.node;
        self.check_inside(node)?;
        // What is so already is not changed.
        if let "requires_grad_" = &**name
            && args.len() + kwargs.len() <= 1
        {
            let wanted = args.first().or_else(|| kwargs.first().map(|(_, value)| value)).cloned();
            let wanted = wanted.map_or(Ok(true), |wanted| self.is_true(&wanted))?;
            if self.requires_grad(receiver)? == wanted || self.switch_requires_grad(receiver, wanted)? {
                return Ok(receiver.clone());
            }
        }
        if let ("register_post_accumulate_grad_hook", [hook]) = (&**name, args.as_slice())
            && kwargs.is_empty()
            && let Some(handle) = self.hook_after_accumulation(receiver, hook)?
        {
            return Ok(handle);
        }
        if matches!((&**name, args.as_slice()), ("item" | "__int__" | "__float__", [])) && kwargs.is_empty() {
            return self.item_of(receiver, name.trim_matches('_'));
        }
        if NEEDS_DATA.contains(&&**name) {
            return Err(self.stop_with(
                format!("a call of {name} of a tensor"),
                "keep the value a tensor, or move the call out of the compiled function",
            ));
        }
        if name.starts_with("__") && !kwargs.is_empty() {
            return Err(self.stop(format!("a call of {name} with keyword arguments")));
        }
        if let Some(answer) = self.answered_method(receiver, name, &args, &kwargs)? {
            return Ok(answer);
        }
        if let Some(result) = self.special_method(receiver, name, &args)? {
            return Ok(result);
        }
        self.check_options(name, &kwargs)?;
        let function = self.host.member("torch", "Tensor").and_then(|class| self.class_item(class, name));
        let all: Vec<Value> = std::iter::once(receiver.clone()).chain(args.iter().cloned()).collect();
        self.check_accepted(function, &all, &kwargs)?;
        let combined = if kwargs.is_empty() { self.elementwise_arguments(name, receiver, &args)? } else { None };
        let values = match combined {
            Some(values) => values,
            None => args.iter().map(|arg| self.graph_value(arg)).collect::<Run<Vec<V>>>()?,
        };
        let named = self.named_values(&kwargs)?;
        self.record_location();
        let mark = self.calls.mark();
        let result = match self.calls.method(GraphValue::Tensor(node), name, values, named) {
            Ok(result) => result,
            Err(refused) => {
                let name = format!("torch.Tensor.{name}");
                return Err(self.refused_by_torch(&refused, function, &name, &all, &kwargs));
            }
        };
        if let GraphValue::Tensor(made) = &result
            && (self.writes_first(*made, node) || self.returns_itself(name, &kwargs, node, *made))
        {
            if self.writes_first(*made, node) {
                self.check_shape_kept(node, *made, mark)?;
            }
            self.check_written_by(receiver, *made)?;
            return Ok(receiver.clone());
        }
        if let Some(itself) = self.itself(&result, std::slice::from_ref(receiver)) {
            return Ok(itself);
        }
        let class = self.host.member("torch.return_types", name);
        self.result(&result, class)
    }

    /// Methods that ask for what is known of a tensor: they compute nothing.
    fn answered_method(
        &mut self,
        receiver: &Value,
        name: &Rc<str>,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Option<Value>> {
        let Value::Tensor(tensor) = receiver else { return Ok(None) };
        let node = tensor.node;
        match (&**name, args) {
            ("size", []) if kwargs.is_empty() => {
                let rank = self.tensor_meta(node)?.rank();
                let items = (0..rank).map(|dim| self.tensor_size(node, dim)).collect::<Run<Vec<_>>>()?;
                let class = self.host.member("torch", "Size");
                return Ok(Some(Value::Tuple(Rc::new(TupleValue { items, class, ..TupleValue::default() }))));
            }
            ("size" | "stride", []) if matches!(kwargs.as_slice(), [(key, _)] if &**key == "dim") => {
                let dim = kwargs[0].1.clone();
                return self.operator_method(receiver, name, vec![dim], Vec::new()).map(Some);
            }
            ("size", [dim]) if kwargs.is_empty() => {
                let rank = self.tensor_meta(node)?.rank() as i64;
                let dim = self.index_of(dim)?;
                let place = if dim < 0 { dim + rank } else { dim };
                if place < 0 || place >= rank {
                    return Err(self.stop("a size of a dimension that a tensor does not have"));
                }
                return self.tensor_size(node, place as usize).map(Some);
            }
            ("dim" | "ndimension", []) => {
                let rank = self.tensor_meta(node)?.rank();
                return Ok(Some(self.int(rank as i64)));
            }
            ("numel" | "nelement", []) => {
                let mut product = self.int(1);
                for dim in 0..self.tensor_meta(node)?.rank() {
                    let size = self.tensor_size(node, dim)?;
                    product = self.binary("mul", &product, &size)?;
                }
                return Ok(Some(product));
            }
            ("stride", rest) if kwargs.is_empty() && !self.depends_on_data(node) => {
                let rank = self.tensor_meta(node)?.rank();
                if let Some(dim) = rest.first() {
                    let dim = self.index_of(dim)?;
                    let place = if dim < 0 { dim + rank as i64 } else { dim };
                    let place = usize::try_from(place).ok().filter(|place| *place < rank);
                    let place = place.ok_or_else(|| self.stop("a stride that is not there"))?;
                    return self.tensor_stride(node, place).map(Some);
                }
                let strides = (0..rank).map(|dim| self.tensor_stride(node, dim)).collect::<Run<Vec<_>>>()?;
                return Ok(Some(Value::tuple(strides)));
            }
            ("is_contiguous", []) if kwargs.is_empty() => {
                let contiguous = self.tensor_meta(node)?.is_contiguous();
                if !contiguous && self.depends_on_data(node) {
                    return Err(self.stop("whether a tensor is contiguous, which depends on data"));
                }
                return Ok(Some(self.bool(contiguous)));
            }
            ("is_contiguous" | "stride", _) if self.depends_on_data(node) => {
                return Err(self.stop(format!("the method {name} of a tensor whose size depends on data")));
            }
            ("is_contiguous", rest) => {
                let format = rest.first().cloned().or_else(|| kwargs.first().map(|(_, value)| value.clone()));
                let format = format.ok_or_else(|| self.stop("a memory format that is missing"))?;
                let order: &[usize] = match (self.graph_value(&format)?, self.tensor_meta(node)?.rank()) {
                    (GraphValue::MemoryFormat(MemoryFormat::ChannelsLast), 4) => &[0, 2, 3, 1],
                    (GraphValue::MemoryFormat(MemoryFormat::ChannelsLast3d), 5) => &[0, 2, 3, 4, 1],
                    (GraphValue::MemoryFormat(MemoryFormat::Contiguous), _) => {
                        let contiguous = self.tensor_meta(node)?.is_contiguous();
                        return Ok(Some(self.bool(contiguous)));
                    }
                    _ => return Ok(Some(self.bool(false))),
                };
                let meta = self.tensor_meta(node)?;
                let mut expected = 1;
                let mut contiguous = true;
                for dim in order.iter().rev() {
                    let (Some(size), Some(stride)) = (meta.shape[*dim].as_int(), meta.stride[*dim].as_int()) else {
                        return Err(self.stop("a memory format that depends on sizes"));
                    };
                    contiguous &= size == 1 || stride == expected;
                    expected *= size;
                }
                return Ok(Some(self.bool(contiguous)));
            }
            ("type", [dtype]) if matches!(self.graph_value(dtype), Ok(GraphValue::DType(_))) => {
                return self.tensor_method(receiver, &"to".into(), args.to_vec(), kwargs.clone()).map(Some);
            }
            ("is_floating_point", []) => {
                let float = self.tensor_meta(node)?.dtype.is_float();
                return Ok(Some(self.bool(float)));
            }
            ("is_complex", []) => {
                let complex = self.tensor_meta(node)?.dtype.is_complex();
                return Ok(Some(self.bool(complex)));
            }
            ("element_size", []) => {
                let size = self.tensor_meta(node)?.dtype.size();
                return Ok(Some(self.int(size as i64)));
            }
            ("storage_offset", []) if kwargs.is_empty() => {
                if let Some(offset) = self.tensor_meta(node)?.offset.as_int() {
                    self.rely_on_offset(node)?;
                    return Ok(Some(self.int(offset)));
                }
                let tensor = vec![GraphValue::Tensor(node)];
                let offset = self.calls.call("torch.ops.aten.sym_storage_offset.default", tensor, Vec::new());
                let offset = offset.map_err(|r| self.refused(&r))?;
                return self.result(&offset, None).map(Some);
            }
            ("is_signed", []) => {
                let unsigned = matches!(self.tensor_meta(node)?.dtype, DType::Bool | DType::U8);
                return Ok(Some(self.bool(!unsigned)));
            }
            ("is_inference", []) if tensor.class.is_none() && self.bodies.is_empty() => {
                let args = vec![GraphValue::Tensor(node)];
                let answer = self.calls.opaque("torch.is_inference", args, Vec::new(), GraphValue::Bool(true));
                return self.result(&answer, None).map(Some);
            }
            ("get_device", []) => return Ok(Some(self.int(-1))),
            ("cpu" | "pin_memory", []) => return Ok(Some(receiver.clone())),
            _ => {}
        }
        Ok(None)
    }

    /// Methods that stand for syntax, which has no keyword arguments.
    fn special_method(&mut self, receiver: &Value, name: &Rc<str>, args: &[Value]) -> Run<Option<Value>> {
        let Value::Tensor(tensor) = receiver else { return Ok(None) };
        let node = tensor.node;
        match (&**name, args) {
            ("__len__", []) => return self.tensor_length(receiver).map(Some),
            ("__getitem__", [key]) => return self.tensor_item(receiver, key).map(Some),
            ("__setitem__", [key, new]) => {
                self.set_tensor_item(receiver, key, new)?;
                return Ok(Some(self.none()));
            }
            ("__neg__", []) => return self.unary("neg", receiver).map(Some),
            ("__pos__", []) => return self.unary("pos", receiver).map(Some),
            ("__invert__", []) => return self.unary("invert", receiver).map(Some),
            ("__abs__", []) => {
                return self.tensor_method(receiver, &"abs".into(), Vec::new(), Vec::new()).map(Some);
            }
            ("__reversed__", []) if self.tensor_meta(node)?.rank() == 0 => return Ok(Some(receiver.clone())),
            ("__reversed__", []) => {
                let first = self.int(0);
                return self.tensor_method(receiver, &"flip".into(), vec![first], Vec::new()).map(Some);
            }
            (special, [other]) => {
                if let Some(stem) = special.strip_prefix("__").and_then(|stem| stem.strip_suffix("__")) {
                    let reflected = stem.strip_prefix('r').and_then(operator_named);
                    let in_place = stem.strip_prefix('i').and_then(operator_named);
                    // It was asked for by its name: what the class has under that name called it, or was left out.
                    let asked = self.overrides.enter_method();
                    let result = match (operator_named(stem), reflected, in_place, stem) {
                        (Some(operator), ..) => self.binary(operator, receiver, other),
                        (_, Some(operator), ..) => self.binary(operator, other, receiver),
                        (_, _, Some(operator), _) => self.binary_in_place(operator, receiver, other),
                        (.., "eq" | "ne" | "lt" | "le" | "gt" | "ge") => self.compare(stem, receiver, other),
                        _ => Err(self.stop(format!("the method {name} of a tensor"))),
                    };
                    self.overrides.leave_method(asked);
                    return result.map(Some);
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// The argument that an operator without effect returns as it is.
    pub(super) fn itself(&self, result: &V, args: &[Value]) -> Option<Value> {
        let GraphValue::Tensor(made) = result else { return None };
        let held = self.calls.node(*made);
        let NodeKind::Call(target) = &held.kind else { return None };
        let GraphValue::Tensor(input) = held.args.first()? else { return None };
        let without_effect = match (target.name(), &held.args[1..]) {
            (
                "aten.dropout.default" | "aten.alpha_dropout.default" | "aten.feature_dropout.default",
                [p, GraphValue::Bool(training), ..],
            ) => !training || matches!(p, GraphValue::Float(p) if *p == 0.0),
            ("aten.flatten.using_ints", [GraphValue::Int(start), GraphValue::Int(end), ..]) => {
                let rank = self.tensor_meta(*input).ok()?.rank() as i64;
                let place = |dim: &SymInt| dim.as_int().map(|dim| if dim < 0 { dim + rank } else { dim });
                rank > 0 && place(start) == place(end)
            }
            (
                "aten.conj.default"
                | "aten.conj_physical.default"
                | "aten.real.default"
                | "aten.resolve_conj.default"
                | "aten.resolve_neg.default",
                [],
            ) => !self.tensor_meta(*input).ok()?.dtype.is_complex(),
            ("aten.atleast_1d.default", []) => self.tensor_meta(*input).ok()?.rank() >= 1,
            ("aten.atleast_2d.default", []) => self.tensor_meta(*input).ok()?.rank() >= 2,
            ("aten.atleast_3d.default", []) => self.tensor_meta(*input).ok()?.rank() >= 3,
            _ => false,
        };
        let is_input = |arg: &&Value| matches!(arg, Value::Tensor(tensor) if tensor.node == *input);
        if without_effect { args.iter().find(is_input).cloned() } else { None }
    }

    /// Whether a conversion had nothing to do: torch then returns the tensor itself.
    fn returns_itself(&self, name: &str, kwargs: &Keywords, node: NodeId, made: NodeId) -> bool {
        const CONVERSIONS: [&str; 13] = [
            "to",
            "contiguous",
            "float",
            "double",
            "half",
            "bfloat16",
            "long",
            "int",
            "short",
            "bool",
            "type_as",
            "char",
            "byte",
        ];
        if self.autocasted || !CONVERSIONS.contains(&name) || kwargs.iter().any(|(key, _)| &**key == "copy") {
            return false;
        }
        match (self.calls.meta(node), self.calls.meta(made)) {
            (Some(GraphValue::Tensor(before)), Some(GraphValue::Tensor(after))) => {
                before.dtype == after.dtype && before.shape == after.shape && before.stride == after.stride
            }
            _ => false,
        }
    }

    pub(super) fn tensor_size(&mut self, node: NodeId, dim: usize) -> Run<Value> {
        self.relies_on_wrapped_sizes.set(true);
        let result = self
            .calls
            .method(GraphValue::Tensor(node), "size", vec![GraphValue::from(dim)], Vec::new())
            .map_err(|r| self.refused(&r))?;
        self.result(&result, None)
    }

    /// One stride of a tensor: a number, or what the graph computes from sizes.
    fn tensor_stride(&mut self, node: NodeId, dim: usize) -> Run<Value> {
        self.relies_on_wrapped_sizes.set(true);
        if let Some(stride) = self.tensor_meta(node)?.stride[dim].as_int() {
            return Ok(self.int(stride));
        }
        let args = vec![GraphValue::Tensor(node), GraphValue::from(dim)];
        let result =
            self.calls.call("torch.ops.aten.sym_stride.int", args, Vec::new()).map_err(|r| self.refused(&r))?;
        self.result(&result, None)
    }
}
