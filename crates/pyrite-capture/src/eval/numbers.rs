//! Numbers that are not whole and change from call to call.
//!
//! A float that had another value in an earlier call is an input of the graph: a tensor of double precision without
//! dimensions. What Python computes from it and what tensors are combined with it are operators of the graph. Where only
//! its value will do, as for the arguments of most operators, it is *specialized*: guarded to be what it is.
//!
//! Invariants: a result is of the type and the value that it has with a Python number. A tensor without dimensions would
//! take part in choosing the type where a number does not, so it is first converted to the type that the number is computed
//! with; where torch computes with more digits than that type has, the number is specialized. Arithmetic that may raise is
//! guarded not to. What whole numbers that are symbols give by division, by a root or together with a float is a number, too.

use std::cell::RefCell;
use std::rc::Rc;

use pyrite_ir::{Meta, NodeId, Value as GraphValue};
use pyrite_tensor::DType;

use super::call::Keywords;
use super::random::{Drawing, Drawn};
use super::{Evaluator, Run};
use crate::host::{Kind, Object};
use crate::source::{Check, NUMBER, Order, Source};
use crate::value::{Derivation, NumberValue, SymbolValue, Value};

/// Functions of `math` that are operators of the graph, and for which numbers they do not raise.
const FUNCTIONS: [(&str, Domain); 15] = [
    ("math.sqrt", Domain::NotNegative),
    ("math.log", Domain::Positive),
    ("math.log2", Domain::Positive),
    ("math.log10", Domain::Positive),
    ("math.log1p", Domain::NotNegative),
    ("math.exp", Domain::Moderate),
    ("math.expm1", Domain::Moderate),
    ("math.sinh", Domain::Moderate),
    ("math.cosh", Domain::Moderate),
    ("math.sin", Domain::Moderate),
    ("math.cos", Domain::Moderate),
    ("math.tan", Domain::Moderate),
    ("math.asinh", Domain::Moderate),
    ("math.tanh", Domain::All),
    ("math.atan", Domain::All),
];

/// Where a function of `math` raises nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domain {
    All,
    NotNegative,
    Positive,
    /// Neither infinite nor so large that the result overflows.
    Moderate,
}

/// The largest number whose exponential does not overflow, rounded down.
const MODERATE: i64 = 700;
/// The largest exponent by which no size overflows a float.
const LARGEST_EXPONENT: f64 = 16.0;

/// Functions and methods of a tensor and a number that combine them element by element.
const ELEMENTWISE: [&str; 27] = [
    "clamp_max",
    "clamp_max_",
    "clamp_min",
    "clamp_min_",
    "fill_",
    "add",
    "add_",
    "sub",
    "sub_",
    "subtract",
    "mul",
    "mul_",
    "multiply",
    "div",
    "div_",
    "divide",
    "true_divide",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
];

type V = GraphValue<NodeId>;

impl Evaluator<'_, '_> {
    /// A float that has changed between calls, as an input; nothing where it is to be a constant.
    pub(super) fn wrap_float(&mut self, object: Object, source: &Rc<Source>) -> Option<Value> {
        if !self.settings.dynamic.contains(&((**source).clone(), NUMBER)) {
            return None;
        }
        let class = self.host.class_of(object);
        if Some(class) != self.host.member("builtins", "float") {
            return None;
        }
        if let Some(known) = self.numbers.get(source) {
            return Some(known.clone());
        }
        let name = self.input_name(source);
        let node = self.calls.input(&name, GraphValue::Tensor(Meta::contiguous(&[], DType::F64)));
        self.guard(source, Check::Class(class, None));
        self.floats.push(self.inputs.len());
        self.inputs.push((node, source.clone(), object));
        let number = self.number(node, object, Derivation::Input(source.clone()));
        self.numbers.insert(source.clone(), number.clone());
        Some(number)
    }

    /// A random number of Python's `random` module, which every call draws anew. What it might be stands for it here.
    pub(super) fn draw(&mut self, by: Drawing, args: Vec<Object>, hint: f64) -> Run<Value> {
        if !self.bodies.is_empty() {
            return Err(self.stop("a random number that is drawn in a nested graph"));
        }
        let hint = self.host.object_of(&GraphValue::Float(hint)).ok_or_else(|| self.stop("a float"))?;
        let node = self.calls.input("drawn", GraphValue::Tensor(Meta::contiguous(&[], DType::F64)));
        self.floats.push(self.inputs.len());
        self.draws.push(Drawn { input: self.inputs.len(), function: by.0, receiver: by.1, args });
        self.inputs.push((node, Rc::new(Source::Fixed(hint)), hint));
        Ok(self.number(node, hint, Derivation::Drawn(self.draws.len() - 1, self.root)))
    }

    /// A function of Python's `random` module with plain arguments; nothing for one that does not draw a number.
    pub(super) fn draw_by(&mut self, name: &str, by: Drawing, args: &[Value]) -> Run<Option<Value>> {
        let plain = args.iter().map(|arg| self.plain_guarded(arg)).collect::<Run<Option<Vec<Object>>>>()?;
        let Some(plain) = plain else { return Ok(None) };
        match name {
            // What it sets is set in order with the numbers that are drawn.
            "seed" if plain.len() == 1 && self.host.kind(plain[0]) == Kind::Int => {
                self.draw(by, plain, 0.0)?;
                Ok(Some(self.none()))
            }
            "random" if plain.is_empty() => self.draw(by, plain, 0.5).map(Some),
            "getrandbits"
                if plain
                    .first()
                    .and_then(|bits| self.host.as_int(*bits))
                    .is_some_and(|bits| (1..62).contains(&bits)) =>
            {
                self.draw_integer(by, plain).map(Some)
            }
            "randint" | "randrange" => {
                let bounds: Option<Vec<i64>> = plain.iter().map(|bound| self.host.as_int(*bound)).collect();
                let drawable = match (name, bounds.as_deref()) {
                    ("randint", Some([low, high])) => low <= high,
                    ("randrange", Some([high])) => *high > 0,
                    ("randrange", Some([low, high])) => low < high,
                    _ => false,
                };
                if drawable { self.draw_integer(by, plain).map(Some) } else { Ok(None) }
            }
            "uniform" | "gauss" | "normalvariate" | "lognormvariate" | "triangular" => {
                let numbers: Option<Vec<f64>> = plain.iter().map(|arg| self.real_number(*arg)).collect();
                match numbers.as_deref() {
                    Some([low, high]) if name == "uniform" => {
                        self.draw(by, plain, f64::midpoint(*low, *high)).map(Some)
                    }
                    Some([_, _]) => self.draw(by, plain, 0.5).map(Some),
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// A random integer, which every call draws anew: nothing is known of it here.
    fn draw_integer(&mut self, by: Drawing, args: Vec<Object>) -> Run<Value> {
        if !self.bodies.is_empty() {
            return Err(self.stop("a random number that is drawn in a nested graph"));
        }
        let size = self.calls.unknown_number();
        let node = self.calls.input("drawn", GraphValue::Int(size.clone()));
        self.draws.push(Drawn { input: self.inputs.len(), function: by.0, receiver: by.1, args });
        let none = self.host.none();
        self.inputs.push((node, Rc::new(Source::Fixed(none)), none));
        Ok(Value::Symbol(Rc::new(SymbolValue { size, graph: GraphValue::Tensor(node) })))
    }

    pub(super) fn number(&self, node: NodeId, hint: Object, from: Derivation) -> Value {
        Value::Number(Rc::new(NumberValue { node, hint, from, asked: RefCell::default() }))
    }

    /// What a number is, which is guarded from now on.
    pub(super) fn specialize(&mut self, number: &NumberValue) -> Object {
        match &number.from {
            Derivation::Input(source) => self.guard(&source.clone(), Check::Equal(number.hint)),
            // It is not known yet: the frame ends before it is drawn or read.
            Derivation::Drawn(_, at) | Derivation::Data(at) => {
                self.decided_by_draw = Some(self.decided_by_draw.map_or(*at, |before| before.min(*at)));
            }
            Derivation::Computed(_, operands) => {
                for operand in operands {
                    match operand {
                        Value::Number(operand) => _ = self.specialize(operand),
                        // A symbol that is part of a number is one whose value is known here.
                        Value::Symbol(_) => _ = self.index_of(operand).ok(),
                        _ => {}
                    }
                }
            }
        }
        number.hint
    }

    /// A value whose number is specialized, if it is one.
    pub(super) fn specialized(&mut self, value: &Value) -> Value {
        match value {
            Value::Number(number) => Value::Known(self.specialize(number), None),
            other => other.clone(),
        }
    }

    /// `operator.name(left, right)` of a number and a tensor or another number; nothing when it has to be specialized.
    pub(super) fn number_operator(&mut self, name: &str, left: &Value, right: &Value) -> Run<Option<Value>> {
        match (left, right) {
            (Value::Tensor(_), Value::Number(number)) => self.tensor_and_number(name, left, number, right),
            (Value::Number(number), Value::Tensor(_)) => self.tensor_and_number(name, right, number, right),
            _ => match order(name) {
                Some(order) => self.ask(name, order, left, right),
                None => self.compute(name, left, right),
            },
        }
    }

    /// An operator of a tensor and a number; `right` says on which side the number stands.
    fn tensor_and_number(
        &mut self,
        name: &str,
        tensor: &Value,
        number: &Rc<NumberValue>,
        right: &Value,
    ) -> Run<Option<Value>> {
        let stem = match name {
            "iadd" | "isub" | "imul" | "itruediv" => &name[1..],
            "add" | "sub" | "mul" | "truediv" => name,
            other if order(other).is_some() => other,
            _ => return Ok(None),
        };
        let in_place = stem != name;
        let Some(operand) = self.operand(tensor, number, in_place)? else { return Ok(None) };
        let operand = Value::Tensor(Rc::new(crate::value::TensorValue::computed(operand)));
        if matches!(right, Value::Number(_)) {
            return self.graph_operator(name, &[tensor.clone(), operand]).map(Some);
        }
        if name == "truediv" {
            // As torch divides a number by a tensor.
            let inverse = self.tensor_method(tensor, &"reciprocal".into(), Vec::new(), Vec::new())?;
            return self.graph_operator("mul", &[inverse, operand]).map(Some);
        }
        self.graph_operator(name, &[operand, tensor.clone()]).map(Some)
    }

    /// The arguments of a function of a tensor and a number; nothing where the number has to be specialized.
    pub(super) fn elementwise_arguments(&mut self, name: &str, tensor: &Value, args: &[Value]) -> Run<Option<Vec<V>>> {
        let [Value::Number(number)] = args else { return Ok(None) };
        if !ELEMENTWISE.contains(&name) {
            return Ok(None);
        }
        // Where a bound is not a number, torch gives other gradients for one that is a tensor.
        if name.starts_with("clamp") && !self.is_comparable(&args[0])? {
            return Ok(None);
        }
        let operand = self.operand(tensor, number, name.ends_with('_'))?;
        Ok(operand.map(|operand| vec![GraphValue::Tensor(operand)]))
    }

    /// Whether a number is, and is guarded to be, one that others are larger or smaller than.
    fn is_comparable(&mut self, value: &Value) -> Run<bool> {
        let Some(infinite) = self.host.object_of(&GraphValue::Float(f64::INFINITY)) else { return Ok(false) };
        match self.ask("le", Order::LessOrEqual, value, &Value::Known(infinite, None))? {
            Some(answer) => self.is_true(&answer),
            None => Ok(false),
        }
    }

    /// A number as the operand of a tensor, of the type that it is computed with.
    pub(super) fn operand(&mut self, tensor: &Value, number: &NumberValue, in_place: bool) -> Run<Option<NodeId>> {
        let Value::Tensor(tensor) = tensor else { return Ok(None) };
        if self.autocasted {
            return Ok(None);
        }
        let Some(GraphValue::Tensor(meta)) = self.calls.meta(tensor.node) else { return Ok(None) };
        let dtype = match meta.dtype {
            DType::F64 => return Ok(Some(number.node)),
            DType::F32 => DType::F32,
            dtype if dtype.is_float() || dtype.is_complex() || in_place => return Ok(None),
            _ if self.state.default_dtype == DType::F32 => DType::F32,
            _ => return Ok(None),
        };
        let made = self.calls.method(GraphValue::Tensor(number.node), "to", vec![GraphValue::DType(dtype)], Vec::new());
        match made {
            Ok(GraphValue::Tensor(node)) => Ok(Some(node)),
            _ => Ok(None),
        }
    }

    /// A comparison with a known number: its outcome is guarded, not the number.
    fn ask(&mut self, name: &str, order: Order, left: &Value, right: &Value) -> Run<Option<Value>> {
        let (number, other, order) = match (left, right) {
            (Value::Number(number), Value::Known(other, _)) => (number, *other, order),
            (Value::Known(other, _), Value::Number(number)) => (number, *other, order.mirrored()),
            _ => return Ok(None),
        };
        let Some(bound) = self.real_number(other) else { return Ok(None) };
        let source = match &number.from {
            Derivation::Input(source) => source,
            Derivation::Computed("truediv", operands) => return self.ask_quotient(order, &operands.clone(), bound),
            _ => return Ok(None),
        };
        let operands = match left {
            Value::Number(_) => [number.hint, other],
            _ => [other, number.hint],
        };
        let outcome = self.host.operator(name, &operands).map_err(|r| self.raised(r))?;
        if !number.asked.borrow().contains(&(order, other)) {
            number.asked.borrow_mut().push((order, other));
            self.guard(&source.clone(), Check::Compares(order, other, outcome));
        }
        Ok(Some(Value::Known(outcome, None)))
    }

    /// A comparison of the quotient of a whole number that is a symbol and a known one with a bound: one of whole numbers.
    fn ask_quotient(&mut self, order: Order, operands: &[Value], bound: f64) -> Run<Option<Value>> {
        let [size @ Value::Symbol(_), Value::Known(divisor, _)] = operands else { return Ok(None) };
        let Some(divisor) = self.host.as_int(*divisor).filter(|divisor| *divisor > 0) else { return Ok(None) };
        let limit = bound * divisor as f64;
        // Beyond this the quotient may be rounded to the bound.
        if limit.is_nan() || limit.abs() >= f64::from(1 << 30) {
            return Ok(None);
        }
        let (whole, floor) = (limit.fract() == 0.0, limit.floor() as i64);
        let (name, limit) = match order {
            Order::Equal | Order::NotEqual if !whole => return Ok(Some(self.bool(order == Order::NotEqual))),
            Order::Equal => ("eq", floor),
            Order::NotEqual => ("ne", floor),
            Order::Less if whole => ("lt", floor),
            Order::Less | Order::LessOrEqual => ("le", floor),
            Order::GreaterOrEqual if whole => ("ge", floor),
            Order::Greater | Order::GreaterOrEqual => ("gt", floor),
        };
        let limit = self.int(limit);
        self.compare(name, &size.clone(), &limit).map(Some)
    }

    /// Whether a number counts as true.
    pub(super) fn number_is_true(&mut self, value: &Value) -> Run<bool> {
        let zero = self.int(0);
        match self.ask("ne", Order::NotEqual, value, &zero)? {
            Some(answer) => self.is_true(&answer),
            None => {
                let specialized = self.specialized(value);
                self.is_true(&specialized)
            }
        }
    }

    /// Arithmetic of two numbers, one of which changes.
    fn compute(&mut self, name: &str, left: &Value, right: &Value) -> Run<Option<Value>> {
        if let "pow" | "ipow" = name {
            return self.power("pow", left, right);
        }
        let (name, function) = match name {
            "add" | "iadd" => ("add", "torch.ops.aten.add.Tensor"),
            "sub" | "isub" => ("sub", "torch.ops.aten.sub.Tensor"),
            "mul" | "imul" => ("mul", "torch.ops.aten.mul.Tensor"),
            "truediv" | "itruediv" => ("truediv", "torch.ops.aten.div.Tensor"),
            _ => return Ok(None),
        };
        // Whole numbers stay whole by anything but a division.
        let is_whole = |this: &Self, value: &Value| match value {
            Value::Symbol(_) => true,
            Value::Known(object, _) => this.host.kind(*object) == Kind::Int,
            _ => false,
        };
        if name != "truediv" && is_whole(self, left) && is_whole(self, right) {
            return Ok(None);
        }
        if name == "truediv" && !self.is_divisor(right)? {
            return Ok(None);
        }
        let made = match (name, left, right) {
            // A known number is part of the operator.
            ("add" | "mul", _, Value::Known(..)) => self.with_scalar(name, left, right)?,
            ("add" | "mul", Value::Known(..), _) => self.with_scalar(name, right, left)?,
            ("sub" | "truediv", _, Value::Known(..)) => self.with_scalar(name, left, right)?,
            ("sub", Value::Known(..), _) => self.with_scalar("rsub", right, left)?,
            _ => match (self.number_part(left)?, self.number_part(right)?) {
                (Some(first), Some(second)) => self.calls.call(function, vec![first, second], Vec::new()).ok(),
                _ => None,
            },
        };
        let (Some(GraphValue::Tensor(node)), Some(a), Some(b)) = (made, self.hint_of(left), self.hint_of(right)) else {
            return Ok(None);
        };
        let hint = self.host.operator(name, &[a, b]).map_err(|r| self.raised(r))?;
        let from = Derivation::Computed(name, vec![left.clone(), right.clone()]);
        Ok(Some(self.number(node, hint, from)))
    }

    /// Whether a number is, and is guarded to be, one that can be divided by.
    fn is_divisor(&mut self, value: &Value) -> Run<bool> {
        match value {
            Value::Number(number) => match &number.from {
                Derivation::Input(_) => self.number_is_true(value),
                // As long as neither overflows nor underflows, which no size does.
                Derivation::Computed("truediv" | "math.sqrt", operands)
                    if operands.iter().all(|it| matches!(it, Value::Symbol(_) | Value::Known(..))) =>
                {
                    self.is_divisor(&operands[0].clone())
                }
                Derivation::Computed("math.exp" | "math.cosh", _) => Ok(true),
                // No root or inverse of a size that is not zero is too small to be a divisor.
                Derivation::Computed("pow" | "math.pow", operands) if matches!(operands[0], Value::Symbol(_)) => {
                    self.lies("gt", &operands[0].clone(), 0)
                }
                _ => Ok(false),
            },
            Value::Known(object, _) => Ok(self.real_number(*object).is_some_and(|number| number != 0.0)),
            Value::Symbol(symbol) if symbol.size.hint().is_some_and(|hint| hint != 0) => {
                let zero = self.int(0);
                let differs = self.compare("ne", value, &zero)?;
                self.is_true(&differs)
            }
            _ => Ok(false),
        }
    }

    /// An operator of a number and a known one.
    fn with_scalar(&mut self, name: &str, number: &Value, known: &Value) -> Run<Option<V>> {
        let stem = if name == "truediv" { "div" } else { name };
        let Value::Known(known, _) = known else { return Ok(None) };
        let (Some(number), Some(known)) = (self.number_part(number)?, self.real_number(*known)) else {
            return Ok(None);
        };
        let function = format!("torch.ops.aten.{stem}.Scalar");
        Ok(self.calls.call(&function, vec![number, GraphValue::Float(known)], Vec::new()).ok())
    }

    /// What a number is here.
    fn hint_of(&self, value: &Value) -> Option<Object> {
        match value {
            Value::Number(number) => Some(number.hint),
            Value::Symbol(symbol) => symbol.size.hint().map(|hint| self.host.int(hint)),
            Value::Known(object, _) => Some(*object),
            _ => None,
        }
    }

    /// A number in the graph.
    fn number_part(&mut self, value: &Value) -> Run<Option<V>> {
        let part = match value {
            Value::Number(number) => return Ok(Some(GraphValue::Tensor(number.node))),
            Value::Known(object, _) => match self.real_number(*object) {
                Some(number) => GraphValue::Float(number),
                None => return Ok(None),
            },
            Value::Symbol(symbol) if symbol.size.hint().is_some() && !symbol.size.is_unbacked() => symbol.graph.clone(),
            _ => return Ok(None),
        };
        let dtype = vec![("dtype".to_owned(), GraphValue::DType(DType::F64))];
        Ok(self.calls.call("torch.ops.aten.scalar_tensor.default", vec![part], dtype).ok())
    }

    /// A function of `math` of a number that changes or a whole number that is a symbol; nothing where it might raise.
    pub(super) fn math_of_number(&mut self, name: &str, value: &Value) -> Run<Option<Value>> {
        let Some((name, domain)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else { return Ok(None) };
        let stem = name.trim_start_matches("math.");
        let inside = match domain {
            Domain::All => true,
            Domain::NotNegative => self.lies("ge", value, 0)?,
            Domain::Positive => self.lies("gt", value, 0)?,
            Domain::Moderate => self.lies("le", value, MODERATE)? && self.lies("ge", value, -MODERATE)?,
        };
        let (true, Some(hint)) = (inside, self.hint_of(value)) else { return Ok(None) };
        let function = self.host.member("math", stem).ok_or_else(|| self.stop("a missing function"))?;
        let hint = self.host.call(function, &[hint], &[]).map_err(|r| self.raised(r))?;
        let Some(part) = self.number_part(value)? else { return Ok(None) };
        let made = self.calls.call(&format!("torch.ops.aten.{stem}.default"), vec![part], Vec::new());
        let Ok(GraphValue::Tensor(node)) = made else { return Ok(None) };
        Ok(Some(self.number(node, hint, Derivation::Computed(name, vec![value.clone()]))))
    }

    /// `base ** exponent` or `math.pow(base, exponent)` with a known exponent, where the result is a float.
    pub(super) fn power(&mut self, name: &'static str, base: &Value, exponent: &Value) -> Run<Option<Value>> {
        let Value::Known(known, _) = exponent else { return Ok(None) };
        let Some(exact) = self.real_number(*known).filter(|exact| exact.abs() <= LARGEST_EXPONENT) else {
            return Ok(None);
        };
        // Whole numbers to a whole power stay whole.
        let whole = self.host.kind(*known) == Kind::Int && exact >= 0.0 && name == "pow";
        let possible = match base {
            Value::Symbol(_) if whole => false,
            Value::Symbol(_) => self.lies(if exact < 0.0 { "gt" } else { "ge" }, base, 0)?,
            Value::Number(_) => exact >= 0.0 && self.lies("ge", base, 0)? && self.lies("le", base, MODERATE)?,
            _ => false,
        };
        let (true, Some(hint)) = (possible, self.hint_of(base)) else { return Ok(None) };
        let hint = match name {
            "pow" => self.host.operator("pow", &[hint, *known]),
            _ => {
                let function = self.host.member("math", "pow").ok_or_else(|| self.stop("a missing function"))?;
                self.host.call(function, &[hint, *known], &[])
            }
        };
        let hint = hint.map_err(|r| self.raised(r))?;
        let Some(part) = self.number_part(base)? else { return Ok(None) };
        let args = vec![part, GraphValue::Float(exact)];
        let made = self.calls.call("torch.ops.aten.pow.Tensor_Scalar", args, Vec::new());
        let Ok(GraphValue::Tensor(node)) = made else { return Ok(None) };
        let from = Derivation::Computed(name, vec![base.clone(), exponent.clone()]);
        Ok(Some(self.number(node, hint, from)))
    }

    /// Whether a number is, and is guarded to be, on one side of a bound; no where it cannot be guarded.
    fn lies(&mut self, name: &str, value: &Value, bound: i64) -> Run<bool> {
        let limit = self.int(bound);
        match value {
            Value::Known(object, _) => Ok(self.real_number(*object).is_some_and(|number| match name {
                "ge" => number >= bound as f64,
                "gt" => number > bound as f64,
                _ => number <= bound as f64,
            })),
            Value::Symbol(symbol) if symbol.size.hint().is_some() && !symbol.size.is_unbacked() => {
                let answer = self.compare(name, value, &limit)?;
                self.is_true(&answer)
            }
            Value::Number(number) => match &number.from {
                Derivation::Input(_) => {
                    let Some(order) = order(name) else { return Ok(false) };
                    match self.ask(name, order, value, &limit)? {
                        Some(answer) => self.is_true(&answer),
                        None => Ok(false),
                    }
                }
                // By a divisor that is not smaller than one nothing moves away from zero.
                Derivation::Computed("truediv", operands) => {
                    let (left, right) = (operands[0].clone(), operands[1].clone());
                    let outwards = (name == "le" && bound >= 0) || (name == "ge" && bound <= 0);
                    let larger = matches!(right, Value::Known(..)) && self.lies("ge", &right, 1)?;
                    Ok((outwards || bound == 0) && larger && self.lies(name, &left, bound)?)
                }
                Derivation::Computed("mul" | "add", operands) if bound == 0 && name != "le" => {
                    let operands = operands.clone();
                    for operand in &operands {
                        if !self.lies(name, operand, 0)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                }
                Derivation::Computed("math.sqrt" | "math.exp" | "math.cosh", _) => Ok(name == "ge" && bound <= 0),
                _ => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// The whole numbers, none of them negative, that a number is the quotient of; nothing for others.
    fn quotient_of(&mut self, value: &Value) -> Run<Option<(Value, Value)>> {
        let Value::Number(number) = value else { return Ok(None) };
        let operands = match &number.from {
            Derivation::Computed("truediv", operands) => operands.clone(),
            // A fraction of which the inverse is whole, and both are exact.
            Derivation::Computed("mul", operands) => {
                let (size, fraction) = match operands.as_slice() {
                    [size @ Value::Symbol(_), Value::Known(fraction, _)]
                    | [Value::Known(fraction, _), size @ Value::Symbol(_)] => (size.clone(), *fraction),
                    _ => return Ok(None),
                };
                let inverse = self.real_number(fraction).map(f64::recip);
                let inverse = inverse.filter(|it| it.fract() == 0.0 && (1.0..1e6).contains(it));
                match inverse.map(|inverse| inverse as i64).filter(|inverse| inverse.count_ones() == 1) {
                    Some(inverse) => vec![size, self.int(inverse)],
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let [left, right] = operands.as_slice() else { return Ok(None) };
        for operand in [left, right] {
            let whole = match operand {
                Value::Symbol(_) => true,
                Value::Known(object, _) => self.host.kind(*object) == Kind::Int,
                _ => false,
            };
            if !whole || !self.lies("ge", operand, 0)? {
                return Ok(None);
            }
        }
        Ok(Some((left.clone(), right.clone())))
    }

    /// `math.floor`, `math.ceil`, `math.trunc`, `int` or `round` of a quotient of whole numbers that are not negative: a
    /// whole number again.
    pub(super) fn rounded_quotient(&mut self, name: &str, value: &Value) -> Run<Option<Value>> {
        let Some((left, right)) = self.quotient_of(value)? else { return Ok(None) };
        let one = self.int(1);
        match name {
            "math.ceil" => {
                let less = self.binary("sub", &right, &one)?;
                let more = self.binary("add", &left, &less)?;
                self.binary("floordiv", &more, &right).map(Some)
            }
            "round" => {
                let floor = self.binary("floordiv", &left, &right)?;
                let rest = self.binary("mod", &left, &right)?;
                let two = self.int(2);
                let odd = self.binary("mod", &floor, &two)?;
                if matches!(&right, Value::Known(divisor, _) if self.host.as_int(*divisor) == Some(2)) {
                    // What is left is a half or nothing.
                    let up = self.binary("mul", &rest, &odd)?;
                    return self.binary("add", &floor, &up).map(Some);
                }
                let twice = self.binary("mul", &rest, &two)?;
                let more = self.compare("gt", &twice, &right)?;
                if self.is_true(&more)? {
                    return self.binary("add", &floor, &one).map(Some);
                }
                let half = self.compare("eq", &twice, &right)?;
                if self.is_true(&half)? { self.binary("add", &floor, &odd).map(Some) } else { Ok(Some(floor)) }
            }
            _ => self.binary("floordiv", &left, &right).map(Some),
        }
    }

    /// The value of a float, or of an integer that a float can hold.
    fn real_number(&self, object: Object) -> Option<f64> {
        const EXACT: i64 = 1 << 53;
        match self.host.kind(object) {
            Kind::Int => {
                let number = self.host.as_int(object).filter(|number| (-EXACT..=EXACT).contains(number))?;
                Some(number as f64)
            }
            Kind::Plain if Some(self.host.class_of(object)) == self.host.member("builtins", "float") => {
                match self.host.to_graph(object) {
                    Some(GraphValue::Float(number)) => Some(number),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `-number` or `abs(number)`; nothing for other operators.
    pub(super) fn negated(&mut self, name: &str, number: &NumberValue, value: &Value) -> Run<Option<Value>> {
        let (name, function) = match name {
            "neg" => ("neg", "torch.ops.aten.neg.default"),
            "abs" => ("abs", "torch.ops.aten.abs.default"),
            _ => return Ok(None),
        };
        let hint = self.host.operator(name, &[number.hint]).map_err(|r| self.raised(r))?;
        let made = self.calls.call(function, vec![GraphValue::Tensor(number.node)], Vec::new());
        let Ok(GraphValue::Tensor(node)) = made else { return Ok(None) };
        Ok(Some(self.number(node, hint, Derivation::Computed(name, vec![value.clone()]))))
    }

    /// A function of torch with numbers that change among its arguments, by what is written in Python for them; nothing
    /// where there is nothing, or where they have to be specialized.
    pub(super) fn call_with_numbers(&mut self, name: &str, args: &[Value], kwargs: &Keywords) -> Run<Option<Value>> {
        let changes = |value: &Value| match value {
            Value::Number(_) => true,
            Value::List(list) => list.items.borrow().iter().any(|item| matches!(item, Value::Number(_))),
            Value::Tuple(tuple) => tuple.items.iter().any(|item| matches!(item, Value::Number(_))),
            _ => false,
        };
        if !args.iter().chain(kwargs.iter().map(|(_, value)| value)).any(changes) || self.autocasted {
            return Ok(None);
        }
        if let ("torch.scalar_tensor", [Value::Number(number)]) = (name, args) {
            return self.tensor_of_number(&number.clone(), kwargs);
        }
        let mark = self.calls.mark();
        match self.call_polyfill(&format!("{name} of numbers"), args.to_vec(), kwargs.clone()) {
            Err(super::Stop::Break(..)) => {
                self.calls.abandon_since(mark);
                Ok(None)
            }
            other => other,
        }
    }

    /// A new tensor without dimensions that holds a number; nothing where it is not of a type of floats.
    fn tensor_of_number(&mut self, number: &NumberValue, kwargs: &Keywords) -> Run<Option<Value>> {
        let dtype = match kwargs.as_slice() {
            [] => self.default_dtype(),
            [(key, dtype)] if &**key == "dtype" => match self.graph_value(dtype)? {
                GraphValue::DType(dtype) => dtype,
                GraphValue::None => self.default_dtype(),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let node = GraphValue::Tensor(number.node);
        let made = match dtype {
            DType::F64 => self.calls.method(node, "clone", Vec::new(), Vec::new()),
            DType::F32 => self.calls.method(node, "to", vec![GraphValue::DType(dtype)], Vec::new()),
            _ => return Ok(None),
        };
        match made {
            Ok(made) => self.result(&made, None).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// The comparison of this name.
fn order(name: &str) -> Option<Order> {
    Some(match name {
        "lt" => Order::Less,
        "le" => Order::LessOrEqual,
        "eq" => Order::Equal,
        "ne" => Order::NotEqual,
        "gt" => Order::Greater,
        "ge" => Order::GreaterOrEqual,
        _ => return None,
    })
}
