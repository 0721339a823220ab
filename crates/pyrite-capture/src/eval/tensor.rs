//! Tensors and sizes: calls that become nodes of the graph.

use std::rc::Rc;
use std::sync::Arc;

use pyrite_ir::{Eval, Kind as NodeKind, Meta, NodeId, StorageId, Target, Type, Value as GraphValue};
use pyrite_reader::{Calls, IndexPart, Mark, Refused};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::call::Keywords;
use super::compare::is_graph;
use super::wrap::origin_of;
use super::{Evaluator, Run, Stop};
use crate::host::{Descriptor, Kind, Object};
use crate::source::Check;
use crate::value::{ConditionValue, SymbolValue, TensorValue, TupleValue, Value};

/// Functions that make tensors of torch's default type.
const MAKERS: [&str; 8] = ["empty", "eye", "linspace", "logspace", "ones", "rand", "randn", "zeros"];

/// The attribute `data` of a tensor, where it is written through it.
const DATA: &str = "pyrite.higher_order.data";
/// A parameter that is made.
const PARAMETER: &str = "pyrite.higher_order.parameter";

/// Two numbers whose expressions multiply to more than this are taken for what they are: a number that is computed from itself
/// again and again would double with each step.
const MAX_WEIGHT: usize = 2000;

pub(super) type V = GraphValue<NodeId>;

impl Evaluator<'_, '_> {
    /// Metadata of a tensor.
    pub(super) fn tensor_meta(&self, node: NodeId) -> Run<&Meta> {
        match self.calls.meta(node) {
            Some(GraphValue::Tensor(meta)) => Ok(meta),
            _ => Err(self.stop("a tensor of which nothing is known")),
        }
    }

    /// A value as an argument in the graph.
    pub(super) fn graph_value(&mut self, value: &Value) -> Run<V> {
        match value {
            Value::Tensor(tensor) if tensor.example.is_some() => {
                Err(self.stop("a wrapper subclass as an argument of an operator"))
            }
            Value::Tensor(tensor) => {
                self.check_inside(tensor.node)?;
                Ok(GraphValue::Tensor(tensor.node))
            }
            Value::Symbol(symbol) => {
                if let GraphValue::Tensor(node) = &symbol.graph {
                    self.check_inside(*node)?;
                }
                Ok(symbol.graph.clone())
            }
            Value::Known(object, _) => self.known_to_graph(*object),
            Value::Number(number) => {
                let object = self.specialize(number);
                self.known_to_graph(object)
            }
            Value::Tuple(_) | Value::List(_) => {
                let items = self.items_of(value)?;
                items.iter().map(|item| self.graph_value(item)).collect::<Run<Vec<V>>>().map(GraphValue::List)
            }
            Value::Slice(parts) => {
                let parts = parts.clone();
                let part = [self.graph_value(&parts[0])?, self.graph_value(&parts[1])?, self.graph_value(&parts[2])?];
                Ok(GraphValue::Slice(Box::new(part)))
            }
            Value::Lazy(_) => {
                let value = self.force(value)?;
                self.graph_value(&value)
            }
            Value::Instance(instance) if let Some(value) = instance.value => self.known_to_graph(value),
            other => Err(self.stop(format!("{} as an argument of an operator", self.describe(other)))),
        }
    }

    pub(super) fn known_to_graph(&mut self, object: Object) -> Run<V> {
        if let Some(value) = self.host.to_graph(object) {
            return Ok(value);
        }
        match self.host.kind(object) {
            Kind::Tuple | Kind::NamedTuple => {
                let items = self.constant_items(object);
                items.into_iter().map(|item| self.known_to_graph(item)).collect::<Run<Vec<V>>>().map(GraphValue::List)
            }
            _ => {
                let text = self.host.describe(object);
                Err(self.stop(format!("{text} as an argument of an operator")))
            }
        }
    }

    /// The value of a result in the graph.
    pub(super) fn result(&mut self, value: &V, class: Option<Object>) -> Run<Value> {
        match value {
            GraphValue::Tensor(id) => {
                let node = *id;
                if self.depends_on_data(node) && !self.bodies.is_empty() {
                    return Err(self.stop("a size that depends on data in a nested graph"));
                }
                self.check_guesses(node)?;
                self.check_default_dtype(node)?;
                match self.calls.meta(node).cloned() {
                    Some(GraphValue::Tensor(_)) => Ok(Value::Tensor(Rc::new(TensorValue::computed(node)))),
                    Some(GraphValue::Int(SymInt::Int(size))) => Ok(self.int(size)),
                    Some(GraphValue::Int(size)) => {
                        Ok(Value::Symbol(Rc::new(SymbolValue { size, graph: value.clone() })))
                    }
                    Some(GraphValue::List(items)) => {
                        let mut parts = Vec::with_capacity(items.len());
                        for index in 0..items.len() {
                            let index = IndexPart::Value(GraphValue::from(index));
                            let part = self.calls.get_item(value, vec![index]).map_err(|r| self.refused(&r))?;
                            parts.push(self.result(&part, None)?);
                        }
                        Ok(Value::Tuple(Rc::new(TupleValue { items: parts, class, ..TupleValue::default() })))
                    }
                    Some(GraphValue::Bool(_)) => Ok(Value::Condition(Rc::new(ConditionValue { node, says: None }))),
                    Some(GraphValue::None) if !self.gives_number(node) => Ok(self.none()),
                    _ => Err(self.stop_with(
                        "a number that depends on data",
                        "keep it a tensor, or move the call out of the compiled function",
                    )),
                }
            }
            GraphValue::List(items) => {
                let parts = items.iter().map(|item| self.result(item, None)).collect::<Run<Vec<_>>>()?;
                Ok(Value::Tuple(Rc::new(TupleValue { items: parts, class, ..TupleValue::default() })))
            }
            other => match self.host.object_of(other) {
                Some(object) => Ok(Value::Known(object, None)),
                None => Err(self.stop("a result that Python has no value for")),
            },
        }
    }

    /// The type that torch gives new tensors of floating-point numbers.
    pub(super) fn default_dtype(&self) -> DType {
        let question = self.host.member("torch", "get_default_dtype");
        let set = self.settings_set.iter().find(|(known, ..)| Some(*known) == question);
        let set = set.and_then(|(_, value, _)| self.plain(value)).and_then(|object| self.host.to_graph(object));
        match set {
            Some(GraphValue::DType(dtype)) => dtype,
            _ => self.state.default_dtype,
        }
    }

    /// The type of the tensor that a function makes of numbers that name none, where torch's default decides it.
    fn type_by_default(&mut self, name: &str, numbers: &[Value]) -> Run<Option<DType>> {
        const OF_NUMBERS: [&str; 5] = ["tensor", "as_tensor", "full", "arange", "scalar_tensor"];
        let makes_floats = MAKERS.contains(&name);
        if !makes_floats && !OF_NUMBERS.contains(&name) {
            return Ok(None);
        }
        let default = self.default_dtype();
        let mut found = makes_floats.then_some(default);
        for number in numbers {
            let class = match number {
                Value::Known(object, _) => self.host.class_name(self.host.class_of(*object)),
                Value::List(_) | Value::Tuple(_) if !makes_floats => {
                    let items = self.items_of(number)?;
                    match self.type_by_default(name, &items)? {
                        Some(of_items) if of_items.is_complex() => return Ok(Some(of_items)),
                        of_items => found = found.or(of_items),
                    }
                    continue;
                }
                _ => continue,
            };
            match &*class {
                "builtins.float" => found = Some(default),
                // It takes no complex numbers for torch's default type.
                "builtins.complex" if name == "scalar_tensor" => {}
                "builtins.complex" if default == DType::F64 => return Ok(Some(DType::C128)),
                "builtins.complex" => return Err(self.stop("complex numbers of torch's default type")),
                _ => {}
            }
        }
        Ok(found)
    }

    /// The type of a tensor that is made of numbers of which some are numpy's, which have types of their own; nothing where
    /// none is, or the call names one.
    fn type_of_numbers(&mut self, name: &str, args: &[Value]) -> Run<Option<DType>> {
        let [data] = args else { return Ok(None) };
        if !matches!(name, "tensor" | "as_tensor" | "asarray") {
            return Ok(None);
        }
        let mut below = vec![data.clone()];
        let (mut has_types, mut found) = (false, None::<DType>);
        while let Some(value) = below.pop() {
            let dtype = match &value {
                Value::List(_) | Value::Tuple(_) => {
                    below.extend(self.items_of(&value)?);
                    continue;
                }
                Value::Known(object, _) if self.host.class_name(self.host.class_of(*object)).starts_with("numpy.") => {
                    has_types = true;
                    let Some(reader) = self.host.member("pyrite._arrays", "type_of_number") else { return Ok(None) };
                    let read = self.host.call(reader, &[*object], &[]).map_err(|raised| self.raised(raised))?;
                    match self.host.to_graph(read) {
                        Some(GraphValue::DType(dtype)) => dtype,
                        _ => return Ok(None),
                    }
                }
                Value::Known(object, _) => match self.host.to_graph(*object) {
                    Some(GraphValue::Bool(_)) => DType::Bool,
                    Some(GraphValue::Int(_)) => DType::I64,
                    Some(GraphValue::Float(_)) => self.default_dtype(),
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            };
            found = Some(found.map_or(dtype, |known| known.promote(dtype)));
        }
        Ok(found.filter(|_| has_types))
    }

    /// Refuses a result of a type that no argument has or names, where torch would give it another default.
    fn check_default_dtype(&self, node: NodeId) -> Run<()> {
        let Some(GraphValue::Tensor(meta)) = self.calls.meta(node) else { return Ok(()) };
        if !matches!(meta.dtype, DType::F32 | DType::C64) || self.default_dtype() == DType::F32 {
            return Ok(());
        }
        let held = self.calls.node(node);
        let mut named = matches!(held.kind, NodeKind::Placeholder);
        named |= held
            .args
            .iter()
            .chain(held.kwargs.iter().map(|(_, value)| value))
            .any(|arg| matches!(arg, GraphValue::DType(_)));
        held.each_input(&mut |input| {
            let float = |meta: &Meta| meta.dtype.is_float() || meta.dtype.is_complex();
            named |= matches!(self.calls.meta(input), Some(GraphValue::Tensor(meta)) if float(meta));
        });
        if named { Ok(()) } else { Err(self.stop("a result of torch's default type, which is not float32")) }
    }

    /// Whether a node calls an operator that gives a number or a bool, which only its run can tell.
    fn gives_number(&self, node: NodeId) -> bool {
        let NodeKind::Call(Target::Op(op)) = &self.calls.node(node).kind else { return false };
        op.schema.returns.iter().any(|given| matches!(given.ty, Type::Bool | Type::Int | Type::Float | Type::Scalar))
    }

    pub(super) fn refused(&self, refused: &Refused) -> Stop {
        self.stop(refused.0.clone())
    }

    /// Raises what torch raises where it refuses these arguments, too; stops where it does not, or where the function is
    /// written in Python for them.
    pub(super) fn refused_by_torch(
        &mut self,
        refused: &Refused,
        function: Option<Object>,
        name: &str,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Stop {
        let stop = self.refused(refused);
        let Some(function) = function.filter(|_| !self.autocasted && self.host.polyfill(name).is_none()) else {
            return stop;
        };
        let described = |this: &mut Self, value: &Value| {
            let value = this.graph_value(value)?;
            this.fixed(&value)
        };
        let args = args.iter().map(|arg| described(self, arg)).collect::<Run<Vec<_>>>();
        let kwargs = kwargs.iter().map(|(key, value)| Ok((key.to_string(), described(self, value)?)));
        let kwargs = kwargs.collect::<Run<Vec<_>>>();
        let (Ok(args), Ok(kwargs)) = (args, kwargs) else { return stop };
        match self.host.refusal_of(function, &args, &kwargs) {
            Some(raised) => self.raised(raised),
            None => stop,
        }
    }

    /// Nodes know the user's stack.
    pub(super) fn record_location(&mut self) {
        let stack = self
            .trace
            .last()
            .map(|(file, line, function)| Arc::<str>::from(format!("File: {file}:{line} in {function}")));
        self.calls.set_stack(stack);
        self.guesses = self.calls.env().guesses();
    }

    /// `operator.name(args…)` where something is computed by the graph.
    pub(super) fn graph_operator(&mut self, name: &str, args: &[Value]) -> Run<Value> {
        if !args.iter().any(|arg| matches!(arg, Value::Tensor(_))) {
            return self.size_operator(name, args);
        }
        if let [left, right] = args
            && (matches!(left, Value::Known(o, _) if self.host.kind(*o) == Kind::None)
                || matches!(right, Value::Known(o, _) if self.host.kind(*o) == Kind::None))
        {
            return Err(self.stop(format!("the operator {name} of a tensor and None")));
        }
        if name == "pow" {
            // The only operator whose kernel has to hold the number in the tensor's type.
            self.check_accepted(self.host.member("torch", "pow"), args, &Vec::new())?;
        }
        let values = args.iter().map(|arg| self.graph_value(arg)).collect::<Run<Vec<V>>>()?;
        self.record_location();
        let result = match self.calls.operator(name, values.clone()) {
            Ok(result) => result,
            Err(_)
                if let Some(result) = self.call_in_one_type(&values, |calls, values| calls.operator(name, values)) =>
            {
                result
            }
            Err(refused) => {
                let function = self.host.member("operator", name);
                return Err(self.refused_by_torch(&refused, function, "", args, &Vec::new()));
            }
        };
        if name.starts_with('i') && !matches!(name, "invert") {
            // In place: the same object goes on.
            self.check_written(&args[0])?;
            return Ok(args[0].clone());
        }
        self.result(&result, None)
    }

    /// A call whose operands autocast brings to one type, where some have it already: the result of a break, or what a
    /// program has converted itself. Nothing where that is not why it was refused.
    fn call_in_one_type(
        &mut self,
        values: &[V],
        call: impl FnOnce(&mut Calls<'_>, Vec<V>) -> Result<V, Refused>,
    ) -> Option<V> {
        let chosen = self.state.autocast?;
        let dtypes: Vec<Option<DType>> = values
            .iter()
            .map(|value| match value {
                GraphValue::Tensor(node) => match self.calls.meta(*node) {
                    Some(GraphValue::Tensor(meta)) => Some(meta.dtype),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        let held = |dtype: DType| dtypes.contains(&Some(dtype));
        if !held(chosen) || !held(DType::F32) {
            return None;
        }
        let mut converted = Vec::with_capacity(values.len());
        for (value, dtype) in values.iter().zip(&dtypes) {
            converted.push(match dtype {
                Some(DType::F32) => {
                    self.calls.method(value.clone(), "to", vec![GraphValue::DType(chosen)], Vec::new()).ok()?
                }
                _ => value.clone(),
            });
        }
        call(self.calls, converted).ok()
    }

    /// Shifts of a size, and operators on its bits and a few that are known, as arithmetic; nothing for other operators.
    fn size_by_bits(&mut self, name: &str, size: &Value, bits: i64) -> Run<Option<Value>> {
        const FEW: u32 = 6;
        let few = (0..=0x3FFF_FFFF).contains(&bits) && bits.count_ones() <= FEW;
        let (step, argument) = match (name, bits) {
            ("lshift", 0..=30) => ("mul", 1 << bits),
            ("rshift", 0..=30) => ("floordiv", 1 << bits),
            ("and_", 0..=0x3FFF_FFFF) if (bits + 1).count_ones() == 1 => ("mod", bits + 1),
            ("and_", _) if few => return self.common_bits(size, bits).map(Some),
            // What both have is counted once, or not at all.
            ("or_" | "xor", _) if few => {
                let common = self.common_bits(size, bits)?;
                let times = self.int(if name == "or_" { 1 } else { 2 });
                let common = self.size_operator("mul", &[common, times])?;
                let sum = self.size_operator("add", &[size.clone(), self.int(bits)])?;
                return self.size_operator("sub", &[sum, common]).map(Some);
            }
            _ => return Ok(None),
        };
        let argument = self.int(argument);
        self.size_operator(step, &[size.clone(), argument]).map(Some)
    }

    /// The bits that a size has among these.
    fn common_bits(&mut self, size: &Value, bits: i64) -> Run<Value> {
        let mut total = self.int(0);
        for place in (0..31).filter(|place| bits >> place & 1 == 1) {
            let (bit, two) = (self.int(1 << place), self.int(2));
            let above = self.size_operator("floordiv", &[size.clone(), bit.clone()])?;
            let there = self.size_operator("mod", &[above, two])?;
            let value = self.size_operator("mul", &[there, bit])?;
            total = self.size_operator("add", &[total, value])?;
        }
        Ok(total)
    }

    fn size_operator(&mut self, name: &str, args: &[Value]) -> Run<Value> {
        if let ("neg", [size]) = (name, args) {
            return self.size_operator("sub", &[self.int(0), size.clone()]);
        }
        if let ("invert", [size @ Value::Symbol(_)]) = (name, args) {
            return self.size_operator("sub", &[self.int(-1), size.clone()]);
        }
        let sizes: Option<Vec<SymInt>> = args.iter().map(|arg| self.as_size(arg)).collect();
        if let Some([left, right]) = sizes.as_deref() {
            if matches!(name, "eq" | "ne" | "lt" | "le" | "gt" | "ge") {
                return self.compare_sizes(name, &left.clone(), &right.clone(), args);
            }
            if matches!(name, "floordiv" | "mod") && right.is_unbacked() {
                return Err(self.stop("a division by a number that depends on data"));
            }
            let is_light = left.weight().saturating_mul(right.weight()) <= MAX_WEIGHT;
            if is_light && matches!(name, "add" | "sub" | "mul" | "floordiv" | "mod") {
                let values = args.iter().map(|arg| self.graph_value(arg)).collect::<Run<Vec<V>>>()?;
                let result = self.calls.operator(name, values).map_err(|r| self.refused(&r))?;
                return self.result(&result, None);
            }
        }
        if let [size @ Value::Symbol(_), Value::Known(bits, _)] = args
            && let Some(bits) = self.host.as_int(*bits)
            && let Some(result) = self.size_by_bits(name, size, bits)?
        {
            return Ok(result);
        }
        if let ("pow", [base @ Value::Symbol(_), Value::Known(exponent, _)]) = (name, args)
            && let Some(exponent @ 1..=8) = self.host.as_int(*exponent)
        {
            let mut power = base.clone();
            for _ in 1..exponent {
                power = self.size_operator("mul", &[power, base.clone()])?;
            }
            return Ok(power);
        }
        if let [left, right] = args
            && let Some(number) = self.number_operator(name, left, right)?
        {
            return Ok(number);
        }
        // Anything else needs the number.
        let mut plain = Vec::with_capacity(args.len());
        for arg in args {
            plain.push(match arg {
                Value::Symbol(_) => {
                    let known = self.index_of(arg)?;
                    self.host.int(known)
                }
                other => self.plain(other).ok_or_else(|| self.stop("arithmetic on an object that is not a number"))?,
            });
        }
        let name = if name.starts_with('i') && name != "invert" { &name[1..] } else { name };
        self.host.operator(name, &plain).map(|o| Value::Known(o, None)).map_err(|r| self.raised(r))
    }

    /// The larger or smaller of two whole numbers, one of which is a symbol; nothing for others. Which it is decides nothing.
    pub(super) fn extreme_size(&self, name: &str, left: &Value, right: &Value) -> Option<Value> {
        let symbols = [left, right].map(|value| matches!(value, Value::Symbol(_)));
        let (a, b) = (self.as_size(left)?, self.as_size(right)?);
        let backed = |size: &SymInt| size.as_int().is_some() || (size.hint().is_some() && !size.is_unbacked());
        if !symbols.contains(&true) || !backed(&a) || !backed(&b) {
            return None;
        }
        let size = if name == "max" { a.max(&b) } else { a.min(&b) };
        Some(match size.as_int() {
            Some(known) => self.int(known),
            None => Value::Symbol(Rc::new(SymbolValue { graph: GraphValue::Int(size.clone()), size })),
        })
    }

    fn as_size(&self, value: &Value) -> Option<SymInt> {
        match value {
            Value::Symbol(symbol) => Some(symbol.size.clone()),
            Value::Known(object, _) if self.host.kind(*object) == Kind::Int => {
                self.host.as_int(*object).map(SymInt::Int)
            }
            _ => None,
        }
    }

    /// Calls a function of torch by its name; nothing when the graph has no operator for it.
    pub(super) fn call_torch(
        &mut self,
        name: &str,
        object: Object,
        args: &[Value],
        kwargs: &Keywords,
    ) -> Run<Option<Value>> {
        if let Some(method) = name.strip_prefix("torch.Tensor.") {
            let Some((receiver @ Value::Tensor(_), rest)) = args.split_first() else { return Ok(None) };
            return self.tensor_method(receiver, &method.into(), rest.to_vec(), kwargs.clone()).map(Some);
        }
        if name.starts_with("math.") || name.starts_with("operator.") {
            if args.iter().any(|arg| matches!(arg, Value::Tensor(_))) && name.starts_with("math.") {
                return Err(self.stop_with("a number is read from a tensor", "use the function that torch has"));
            }
            if args.iter().any(is_graph) && name.starts_with("math.") {
                let known = args.iter().map(|arg| match arg {
                    Value::Symbol(_) => self.index_of(arg).map(|known| self.int(known)),
                    other => Ok(other.clone()),
                });
                let known = known.collect::<Run<Vec<_>>>()?;
                let function = self.host.member("math", name.trim_start_matches("math."));
                let function = function.ok_or_else(|| self.stop("a missing function"))?;
                let plain: Option<Vec<Object>> = known.iter().map(|arg| self.plain(arg)).collect();
                let plain = plain.ok_or_else(|| self.stop("an argument that is not known"))?;
                let made = self.host.call(function, &plain, &[]).map_err(|r| self.raised(r))?;
                return Ok(Some(Value::Known(made, None)));
            }
            return Ok(None);
        }
        if !self.calls.knows(name) {
            return self.call_unknown(name, object, args, kwargs);
        }
        if let Some((_, out @ (Value::Tensor(_) | Value::Tuple(_) | Value::List(_)))) =
            kwargs.iter().find(|(key, _)| &**key == "out")
        {
            let rest: Keywords = kwargs.iter().filter(|(key, _)| &**key != "out").cloned().collect();
            return self.call_into(name, object, args, &rest, out).map(Some);
        }
        self.check_options(name, kwargs)?;
        self.check_accepted(Some(object), args, kwargs)?;
        let short = name.rsplit('.').next().unwrap_or_default();
        let combined = match args.split_first() {
            Some((tensor, rest)) if kwargs.is_empty() => self.elementwise_arguments(short, tensor, rest)?,
            _ => None,
        };
        let values = match combined {
            Some(rest) => std::iter::once(self.graph_value(&args[0])?).chain(rest).collect(),
            None => args.iter().map(|arg| self.graph_value(arg)).collect::<Run<Vec<V>>>()?,
        };
        let mut named = self.named_values(kwargs)?;
        let named_type = named.iter().any(|(key, _)| key == "dtype");
        if !named_type {
            let by_default = |this: &mut Self| match this.default_dtype() {
                DType::F32 => Ok(None),
                _ => this.type_by_default(short, args),
            };
            let of_numbers = self.type_of_numbers(short, args)?;
            if let Some(dtype) = of_numbers.map_or_else(|| by_default(self), |dtype| Ok(Some(dtype)))? {
                named.push(("dtype".to_owned(), GraphValue::DType(dtype)));
            }
        }
        self.record_location();
        let mark = self.calls.mark();
        let result = match self.calls.call(name, values.clone(), named.clone()) {
            Ok(result) => result,
            Err(_)
                if let Some(result) =
                    self.call_in_one_type(&values, |calls, values| calls.call(name, values, named.clone())) =>
            {
                result
            }
            Err(_) if let Some(numbers) = self.with_numbers(short, args)? => {
                return self.call_torch(name, object, &numbers, kwargs);
            }
            Err(refused) => return Err(self.refused_by_torch(&refused, Some(object), name, args, kwargs)),
        };
        if let Some(Value::Tensor(first)) = args.first()
            && let GraphValue::Tensor(node) = &result
            && self.writes_first(*node, first.node)
        {
            self.check_shape_kept(first.node, *node, mark)?;
            self.check_written(&args[0])?;
            return Ok(Some(args[0].clone()));
        }
        if let Some(itself) = self.itself(&result, args) {
            return Ok(Some(itself));
        }
        let class = self.host.member("torch.return_types", &class_of_results(name));
        let class = class.or_else(|| self.host.member("torch.return_types", short));
        let result = self.result(&result, class)?;
        Ok(Some(if short == "broadcast_tensors" { self.broadcast(&result, args)? } else { result }))
    }

    /// A call whose result is written to a tensor, which must be as large and of the same type already.
    fn call_into(&mut self, name: &str, object: Object, args: &[Value], kwargs: &Keywords, out: &Value) -> Run<Value> {
        // torch refuses to where a gradient is recorded.
        for value in args.iter().chain([out]) {
            if self.grad && self.requires_grad(value)? {
                return Err(self.stop(format!("the argument out of {name}")));
            }
        }
        let made = self.call_torch(name, object, args, kwargs)?;
        if let (Some(Value::Tuple(results)), Value::Tuple(_) | Value::List(_)) = (&made, out) {
            return self.write_into(name, &results.items.clone(), out);
        }
        if let (Some(Value::Tensor(made)), Value::Tensor(held)) = (&made, out) {
            let (made, held) = (self.tensor_meta(made.node)?.clone(), self.tensor_meta(held.node)?.clone());
            if made.dtype != held.dtype || self.autocasted || !self.are_same(&made.shape, &held.shape)? {
                return Err(self.stop(format!("the argument out of {name}, of another shape or type")));
            }
        }
        match made {
            Some(made @ Value::Tensor(_)) => self.tensor_method(out, &"copy_".into(), vec![made], Vec::new()),
            _ => Err(self.stop(format!("the argument out of {name}"))),
        }
    }

    /// Whether sizes are, and are guarded to be, the same.
    fn are_same(&mut self, left: &[SymInt], right: &[SymInt]) -> Run<bool> {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (one, other) in left.iter().zip(right) {
            if one == other {
                continue;
            }
            if one.hint() != other.hint() || one.hint().is_none() || one.is_unbacked() || other.is_unbacked() {
                return Ok(false);
            }
            let [one, other] = [one, other].map(|size| match size.as_int() {
                Some(known) => self.int(known),
                None => {
                    Value::Symbol(Rc::new(SymbolValue { graph: GraphValue::Int(size.clone()), size: size.clone() }))
                }
            });
            let same = self.compare("eq", &one, &other)?;
            if !self.is_true(&same)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Several results that are written to tensors: those tensors, by the names of the results.
    fn write_into(&mut self, name: &str, results: &[Value], out: &Value) -> Run<Value> {
        let held = self.items_of(out)?;
        let class = self.host.member("torch.return_types", &format!("{}_out", class_of_results(name)));
        let refused = |this: &Self| this.stop(format!("the argument out of {name}, of another shape or type"));
        let Some(class) = class.filter(|_| held.len() == results.len() && !self.autocasted) else {
            return Err(refused(self));
        };
        let mut written: Vec<StorageId> = Vec::new();
        for (result, held) in results.iter().zip(&held) {
            let (Value::Tensor(result), Value::Tensor(held)) = (result, held) else { return Err(refused(self)) };
            let (result, held) = (self.tensor_meta(result.node)?.clone(), self.tensor_meta(held.node)?.clone());
            if result.dtype != held.dtype || !self.are_same(&result.shape, &held.shape)? {
                return Err(refused(self));
            }
            // Some functions of torch refuse to write two results to one memory.
            if written.contains(&held.storage) {
                return Err(self.stop(format!("the argument out of {name}, whose tensors share memory")));
            }
            written.push(held.storage);
        }
        for (result, held) in results.iter().zip(&held) {
            self.tensor_method(held, &"copy_".into(), vec![result.clone()], Vec::new())?;
        }
        Ok(Value::Tuple(Rc::new(TupleValue { items: held, class: Some(class), ..TupleValue::default() })))
    }

    /// What `torch.broadcast_tensors` returns: tensors that have the common shape already are themselves.
    fn broadcast(&mut self, result: &Value, args: &[Value]) -> Run<Value> {
        let given = match args {
            [list @ (Value::List(_) | Value::Tuple(_))] => self.items_of(list)?,
            tensors => tensors.to_vec(),
        };
        let Value::Tuple(tuple) = result else { return Ok(result.clone()) };
        let mut items = tuple.items.clone();
        for (item, tensor) in items.iter_mut().zip(&given) {
            if let (Value::Tensor(made), Value::Tensor(before)) = (&*item, tensor)
                && self.tensor_meta(made.node)?.shape == self.tensor_meta(before.node)?.shape
            {
                *item = tensor.clone();
            }
        }
        Ok(Value::Tuple(Rc::new(TupleValue { items, class: tuple.class, ..TupleValue::default() })))
    }

    /// Refuses a write to an input that autograd watches: whether torch allows it depends on the mode it is done in.
    pub(super) fn check_written(&mut self, value: &Value) -> Run<()> {
        if let Value::Tensor(tensor) = value {
            let storage = self.tensor_meta(tensor.node)?.storage;
            if let Some((_, read)) = self.picked.iter().find(|(both, _)| both.contains(&storage)) {
                self.end_at = Some(*read);
                self.copy_in_the_way.set(true);
                return Err(self.stop("a write to what was picked by a tensor of one number"));
            }
            self.hide_writes(storage)?;
        }
        let Value::Tensor(tensor) = value else { return Ok(()) };
        if tensor.origin.is_some() && self.grad && self.tensor_meta(tensor.node)?.requires_grad {
            return Err(self.stop("a write to a tensor that requires a gradient"));
        }
        Ok(())
    }

    /// Lets the attributes `data` that were read of a storage be calls that torch runs: autograd does not see what is written
    /// through them.
    fn hide_writes(&mut self, storage: StorageId) -> Run<()> {
        let read: Vec<_> = self.data_read.iter().filter(|(known, ..)| *known == storage).copied().collect();
        for (_, node, at) in read {
            if self.calls.is_nested(node) || !self.bodies.is_empty() {
                self.end_at = Some(at);
                return Err(self.stop("a write to the attribute data of a tensor"));
            }
            self.calls.call_instead(node, DATA);
        }
        Ok(())
    }

    /// `tensor.data = new`, for a tensor of the same shape and type.
    pub(super) fn set_data(&mut self, tensor: &Value, new: &Value) -> Run<()> {
        let (Value::Tensor(held), Value::Tensor(given)) = (tensor, new) else {
            return Err(self.stop("the attribute data of a tensor is set to a value other than a tensor"));
        };
        let (before, after) = (self.tensor_meta(held.node)?.clone(), self.tensor_meta(given.node)?.clone());
        let alike = before.dtype == after.dtype
            && self.are_same(&before.shape, &after.shape)?
            && self.are_same(&before.stride, &after.stride)?;
        if !alike || !self.bodies.is_empty() || held.class.is_some() || given.class.is_some() || self.autocasted {
            return Err(self.stop("the attribute data of a tensor is set to one of another shape or type"));
        }
        let args = vec![self.graph_value(tensor)?, self.graph_value(new)?];
        self.record_location();
        self.calls.opaque("pyrite.higher_order.set_data", args, Vec::new(), GraphValue::None);
        self.note_mutation(tensor);
        Ok(())
    }

    /// `nn.Parameter(tensor)`, of which gradients are recorded.
    pub(super) fn make_parameter(&mut self, tensor: &Value) -> Run<Value> {
        let GraphValue::Tensor(data) = self.graph_value(tensor)? else {
            return Err(self.stop("a parameter of a value other than a tensor"));
        };
        let meta = self.tensor_meta(data)?.clone();
        if !self.bodies.is_empty() || !(meta.dtype.is_float() || meta.dtype.is_complex()) || self.autocasted {
            return Err(self.stop("a tensor that requires a gradient is made"));
        }
        self.record_location();
        let meta = GraphValue::Tensor(Meta { requires_grad: true, is_leaf: true, ..meta });
        match self.calls.opaque(PARAMETER, vec![GraphValue::Tensor(data)], Vec::new(), meta) {
            GraphValue::Tensor(node) => {
                Ok(Value::Tensor(Rc::new(TensorValue { parameter: true, ..TensorValue::computed(node) })))
            }
            _ => Err(self.stop("a tensor that requires a gradient is made")),
        }
    }

    /// Relies on the one element of a tensor being true, which is known once the graph has run; whether that is possible.
    pub(super) fn assert_data(&mut self, value: &Value) -> Run<bool> {
        if let Value::Condition(condition) = value {
            return self.assert_condition(&condition.clone()).map(|()| true);
        }
        let Value::Tensor(tensor) = value else { return Ok(false) };
        let one = self.tensor_meta(tensor.node)?.shape.iter().all(|size| size.as_int() == Some(1));
        // A mode is shown that the bool of a tensor is asked for.
        let shown = tensor.class.is_some() || self.overrides.sees_modes();
        if !one || shown || !self.bodies.is_empty() || self.autocasted {
            return Ok(false);
        }
        self.graph_value(value)?;
        self.asserted.push((tensor.node, self.root));
        Ok(true)
    }

    pub(super) fn check_written_by(&mut self, value: &Value, made: NodeId) -> Run<()> {
        match value {
            Value::Tensor(tensor) if self.writes_first(made, tensor.node) => self.check_written(value),
            _ => Ok(()),
        }
    }

    /// Stops at a call that changes the shape or the strides of its argument in place (`squeeze_`, `transpose_`): whoever holds
    /// the tensor would go on with the metadata that it had. The call runs in Python, and what follows is captured anew.
    /// Memory that compiled code made cannot be resized there: a graph with `resize_` is torch's to run, and the tensor is
    /// what it became from then on.
    pub(super) fn check_shape_kept(&mut self, tensor: NodeId, made: NodeId, mark: Mark) -> Run<()> {
        let (before, after) = (self.tensor_meta(tensor)?, self.tensor_meta(made)?);
        if before.shape == after.shape && before.stride == after.stride {
            return Ok(());
        }
        let is_view =
            matches!(&self.calls.node(made).kind, NodeKind::Call(Target::Op(op)) if matches!(op.def.eval, Eval::View));
        if !is_view && matches!(self.calls.node(tensor).kind, NodeKind::Call(_)) {
            let now = GraphValue::Tensor(after.clone());
            self.calls.set_meta(tensor, now);
            return Ok(());
        }
        self.calls.abandon_since(mark);
        Err(self.stop("the shape of a tensor is changed in place"))
    }

    /// Whether a call wrote to a tensor and returned it.
    pub(super) fn writes_first(&self, node: NodeId, tensor: NodeId) -> bool {
        let node = self.calls.node(node);
        let NodeKind::Call(Target::Op(op)) = &node.kind else { return false };
        op.schema.is_mutable() && matches!(node.args.first(), Some(GraphValue::Tensor(first)) if *first == tensor)
    }

    pub(super) fn named_values(&mut self, kwargs: &Keywords) -> Run<Vec<(String, V)>> {
        let mut named = Vec::with_capacity(kwargs.len());
        for (key, value) in kwargs {
            // What these say does not change a result on the CPU.
            if matches!(&**key, "out" | "generator" | "names") && self.is_none(value) {
                continue;
            }
            if matches!(&**key, "pin_memory" | "requires_grad" | "non_blocking") && !self.is_true(value)? {
                continue;
            }
            if &**key == "non_blocking" {
                continue;
            }
            named.push((key.to_string(), self.graph_value(value)?));
        }
        Ok(named)
    }

    pub(super) fn check_options(&mut self, name: &str, kwargs: &Keywords) -> Run<()> {
        for (key, value) in kwargs {
            let refuse = match &**key {
                "out" | "generator" => !self.is_none(value),
                "requires_grad" => self.is_true(value)?,
                _ => false,
            };
            if refuse {
                return Err(self.stop(format!("the argument {key} of {name}")));
            }
        }
        Ok(())
    }

    /// `tensor.name`.
    pub(super) fn tensor_attribute(&mut self, value: &Value, name: &Rc<str>) -> Run<Value> {
        let Value::Tensor(tensor) = value else { return Err(self.stop("an attribute of nothing")) };
        self.check_inside(tensor.node)?;
        if let Some(result) = self.attribute_overridden(value, name)? {
            return Ok(result);
        }
        let node = tensor.node;
        match &**name {
            "shape" => self.tensor_method(value, &"size".into(), Vec::new(), Vec::new()),
            "ndim" => {
                let rank = self.tensor_meta(node)?.rank();
                Ok(self.int(rank as i64))
            }
            "dtype" if self.autocasted && tensor.origin.is_none() => {
                Err(self.stop("the type of a tensor that autocast chooses"))
            }
            "real" if !self.tensor_meta(node)?.dtype.is_complex() => Ok(value.clone()),
            // The conjugate of real numbers is themselves.
            "H" | "mH" if !self.tensor_meta(node)?.dtype.is_complex() => {
                self.tensor_attribute(value, &(if &**name == "H" { "T" } else { "mT" }).into())
            }
            "dtype" | "device" | "T" | "mT" | "H" | "mH" | "real" | "imag" | "data" => {
                self.record_location();
                let result = self.calls.attribute(&GraphValue::Tensor(node), name).map_err(|r| self.refused(&r))?;
                if &**name == "data" && self.grad && self.requires_grad(value).unwrap_or(true) {
                    let GraphValue::Tensor(read) = &result else { return Err(self.stop("a tensor without data")) };
                    self.data_read.push((self.tensor_meta(node)?.storage, *read, self.root));
                }
                self.result(&result, None)
            }
            "requires_grad" => {
                let requires = self.requires_grad(value)?;
                Ok(self.bool(requires))
            }
            "layout" => {
                let strided = self.host.member("torch", "strided").ok_or_else(|| self.stop("a missing layout"))?;
                Ok(Value::Known(strided, None))
            }
            "is_cuda" | "is_sparse" | "is_quantized" | "is_mkldnn" | "is_meta" | "is_nested" | "is_mps" | "is_xpu"
            | "is_sparse_csr" => Ok(self.bool(false)),
            "is_cpu" => Ok(self.bool(true)),
            "nbytes" => {
                let size = self.tensor_meta(node)?.dtype.size();
                let (count, size) =
                    (self.tensor_method(value, &"numel".into(), Vec::new(), Vec::new())?, self.int(size as i64));
                self.binary("mul", &count, &size)
            }
            "itemsize" => {
                let size = self.tensor_meta(node)?.dtype.size();
                Ok(self.int(size as i64))
            }
            "is_leaf" => {
                let leaf = self.is_leaf_guarded(value)?;
                Ok(self.bool(leaf))
            }
            "grad" => match (tensor.attributes.borrow().get(name).cloned(), &tensor.origin) {
                (Some(set), _) => Ok(set.unwrap_or_else(|| self.none())),
                (None, Some(origin)) => {
                    let (object, source) = (origin.object, origin.source.clone());
                    let found = self.read_attribute(object, &source, name)?;
                    self.admit(&found)
                }
                (None, None) => Err(self.stop("the attribute grad of a computed tensor")),
            },
            "_version" if tensor.class.is_none() && self.bodies.is_empty() => {
                let unknown = GraphValue::Int(self.calls.unknown_number());
                let node = self.graph_value(value)?;
                let version = self.calls.opaque("pyrite.higher_order.version", vec![node], Vec::new(), unknown);
                self.result(&version, None)
            }
            "grad_fn" if self.is_leaf_guarded(value)? => Ok(self.none()),
            // What it is stays with torch; that it is there can be told.
            "grad_fn" if self.bodies.is_empty() => {
                let what = Value::Unknown("the grad_fn of a tensor".into());
                if let Some(identity) = what.identity() {
                    self.made_at.insert(identity, self.root);
                }
                Ok(what)
            }
            "grad_fn" | "_version" | "_base" | "names" | "__dict__" | "_backward_hooks" => {
                Err(self.stop(format!("the attribute {name} of a tensor")))
            }
            "__class__" => self.class_of(value),
            _ => {
                let Value::Known(class, _) = self.class_of(value)? else {
                    return Err(self.stop("a tensor without a class"));
                };
                match self.class_item(class, name) {
                    // What is hung on a tensor hides a method of the same name.
                    Some(found)
                        if tensor.class.is_some()
                            && matches!(
                                self.host.descriptor(found),
                                Descriptor::Function | Descriptor::BuiltinMethod
                            )
                            && let Some(own) = self.tensor_own_attribute(value, name)? =>
                    {
                        Ok(own)
                    }
                    Some(found) if self.host.descriptor(found) == Descriptor::Slot => {
                        Err(self.stop(format!("the attribute {name} of a tensor")))
                    }
                    Some(_) => Ok(Value::Bound(Rc::new((value.clone(), name.clone())))),
                    None => match self.tensor_own_attribute(value, name)? {
                        Some(found) => Ok(found),
                        None => {
                            let class = self.short_name(class);
                            let message = format!("'{class}' object has no attribute '{name}'");
                            Err(self.no_attribute(Some(value), name, &message))
                        }
                    },
                }
            }
        }
    }

    fn is_leaf(&mut self, value: &Value) -> Run<bool> {
        let Value::Tensor(tensor) = value else { return Ok(false) };
        match &tensor.origin {
            Some(_) => Ok(self.tensor_meta(tensor.node)?.is_leaf),
            None if tensor.parameter || self.unrecorded_view(tensor.node).is_some() => Ok(true),
            None => Ok(!self.requires_grad(value)?),
        }
    }

    /// As [`Self::is_leaf`], for code that can tell.
    fn is_leaf_guarded(&mut self, value: &Value) -> Run<bool> {
        if let Some(origin) = origin_of(value) {
            let seen = self.read_attribute(origin.object, &origin.source, "is_leaf")?;
            self.admit(&seen)?;
        }
        self.is_leaf(value)
    }

    /// Relies on where the tensors from outside begin whose memory a tensor lies in.
    pub(super) fn rely_on_offset(&mut self, node: NodeId) -> Run<()> {
        let storage = self.tensor_meta(node)?.storage;
        let class = self.host.member("torch", "Tensor").ok_or_else(|| self.stop("torch.Tensor is missing"))?;
        let Some(function) = self.class_item(class, "storage_offset") else { return Ok(()) };
        let mut seen = Vec::new();
        for known in self.known.values() {
            if let (Value::Tensor(tensor), Some(origin)) = (known, origin_of(known))
                && self.tensor_meta(tensor.node).is_ok_and(|meta| meta.storage == storage)
            {
                seen.push(self.read_called(origin, function)?);
            }
        }
        for seen in seen {
            self.guard(&seen.source, Check::Equal(seen.object));
        }
        Ok(())
    }

    /// What a view that was made while no gradient was recorded is a view of: torch lets it require what that requires, as a leaf.
    pub(super) fn unrecorded_view(&self, node: NodeId) -> Option<NodeId> {
        let recorded = self.grad_modes.iter().rev().find(|(from, _)| *from <= node).is_none_or(|(_, grad)| *grad);
        let mut held = self.calls.node(node);
        // One of several views that an operator has made at once.
        if let Some(list) = held.args.first().and_then(GraphValue::as_tensor)
            && matches!(self.calls.meta(*list), Some(GraphValue::List(_)))
        {
            held = self.calls.node(*list);
        }
        let NodeKind::Call(Target::Op(op)) = &held.kind else { return None };
        if recorded || self.inference || op.schema.is_mutable() || op.name().contains("detach") {
            return None;
        }
        let source = *held.args.first().and_then(GraphValue::as_tensor)?;
        match (self.calls.meta(node), self.calls.meta(source)) {
            (Some(GraphValue::Tensor(view)), Some(GraphValue::Tensor(of))) if view.storage == of.storage => {
                Some(source)
            }
            _ => None,
        }
    }

    /// What the user hung on a tensor.
    pub(super) fn tensor_own_attribute(&mut self, value: &Value, name: &Rc<str>) -> Run<Option<Value>> {
        let Value::Tensor(tensor) = value else { return Ok(None) };
        if let Some(Some(set)) = tensor.attributes.borrow().get(name) {
            return Ok(Some(set.clone()));
        }
        if let Some(origin) = &tensor.origin
            && let Some(found) = self.read_instance_item(origin.object, &origin.source, name)
        {
            return self.admit(&found).map(Some);
        }
        Ok(None)
    }

    pub(super) fn requires_grad(&mut self, value: &Value) -> Run<bool> {
        let Value::Tensor(tensor) = value else { return Ok(false) };
        if tensor.origin.is_some() {
            return Ok(self.tensor_meta(tensor.node)?.requires_grad);
        }
        // A node, and the one that reads it: what is written in between counts.
        let mut pending = vec![(tensor.node, self.calls.begin_nested())];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some((node, reader)) = pending.pop() {
            if !seen.insert((node, reader)) {
                continue;
            }
            self.check_inside(node)?;
            if self.levels.contains(&node) {
                return Err(self.stop("whether a tensor requires a gradient inside of a transform"));
            }
            if let Some(GraphValue::Tensor(meta)) = self.calls.meta(node) {
                if meta.requires_grad {
                    return Ok(true);
                }
                if !meta.dtype.is_float() && !meta.dtype.is_complex() {
                    continue;
                }
            }
            let held = self.calls.node(node);
            if matches!(&held.kind, NodeKind::Call(target) if target.name().contains("detach") || target.name() == DATA)
            {
                continue;
            }
            let recorded = self.grad_modes.iter().rev().find(|(from, _)| *from <= node).is_none_or(|(_, grad)| *grad);
            if !recorded && matches!(held.kind, NodeKind::Call(_)) {
                // What is written to stays what it was.
                if matches!(&held.kind, NodeKind::Call(Target::Op(op)) if op.schema.is_mutable()) {
                    pending.extend(held.args.first().and_then(GraphValue::as_tensor).map(|input| (*input, node)));
                }
                pending.extend(self.unrecorded_view(node).map(|source| (source, node)));
                continue;
            }
            held.each_input(&mut |input| pending.push((input, node)));
            for writer in self.writers_of(node, reader) {
                self.calls.node(writer).each_input(&mut |input| {
                    if input != node {
                        pending.push((input, writer));
                    }
                });
            }
        }
        Ok(false)
    }

    /// The nodes before another that write to the memory of a tensor so that torch records it.
    fn writers_of(&self, node: NodeId, before: NodeId) -> Vec<NodeId> {
        let storage_of = |node: NodeId| match self.calls.meta(node) {
            Some(GraphValue::Tensor(meta)) => Some(meta.storage),
            _ => None,
        };
        let storage = storage_of(node);
        let writes = |writer: &NodeId| {
            let held = self.calls.node(*writer);
            let (NodeKind::Call(Target::Op(op)), Some(GraphValue::Tensor(to))) = (&held.kind, held.args.first()) else {
                return false;
            };
            let recorded =
                self.grad_modes.iter().rev().find(|(from, _)| *from <= *writer).is_none_or(|(_, grad)| *grad);
            let alone =
                matches!(&self.calls.node(*to).kind, NodeKind::Call(target) if target.name().contains("detach"));
            let logical = op.name().starts_with("aten.logical_");
            op.schema.is_mutable() && recorded && !logical && storage_of(*to) == storage && (!alone || *to == node)
        };
        (node.0 + 1..before.0).map(NodeId).filter(|id| !self.calls.is_nested(*id)).filter(writes).collect()
    }
}

/// What torch calls the class of a function's results: `linalg_qr` for `torch.linalg.qr`.
fn class_of_results(name: &str) -> String {
    name.strip_prefix("torch.").unwrap_or(name).replace('.', "_")
}
