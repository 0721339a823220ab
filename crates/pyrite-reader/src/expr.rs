//! Expressions to values.
//!
//! An expression is evaluated to a value: a literal, a node, a list of them. A call becomes a node (see [`crate::bind`]);
//! arithmetic becomes a node when a tensor or a symbolic size takes part, and a number otherwise.

use pyrite_ir::{Kind, Meta, Node, Target, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::Complex64;
use ruff_python_ast::{CmpOp, Expr, ExprAttribute, ExprCall, Number, Operator, StmtAugAssign, UnaryOp};
use ruff_text_size::Ranged;

use crate::forward::{Forward, Local, V};
use crate::problems::{Failed, Res, codes};
use crate::{literal, number};

/// What an operand is, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A number, symbolic or not.
    Number,
    /// A tensor.
    Tensor,
    /// Something else: a list, a string.
    Other,
    /// The value of an opaque call.
    Unknown,
}

/// The arguments of a call: by position and by name.
pub(crate) type Given = (Vec<V>, Vec<(String, V)>);

impl<'a> Forward<'a> {
    /// The value of an expression; the node that it ends in takes the wanted name.
    pub fn eval(&mut self, expr: &'a Expr, want: Option<&str>) -> Res<V> {
        match expr {
            Expr::Name(name) => self.name_value(name.id.as_str(), expr),
            Expr::Call(call) => self.call(call, want),
            Expr::Attribute(attribute) => self.attribute(attribute, want),
            Expr::Subscript(subscript) => self.subscript(subscript, want),
            Expr::NumberLiteral(n) => literal::number(n).map_or_else(|| self.too_large(expr), Ok),
            Expr::BooleanLiteral(v) => Ok(Value::Bool(v.value)),
            Expr::NoneLiteral(_) => Ok(Value::None),
            Expr::StringLiteral(v) => Ok(Value::Str(v.value.to_str().into())),
            Expr::List(list) => self.items(&list.elts),
            Expr::Tuple(tuple) => self.items(&tuple.elts),
            Expr::UnaryOp(unary) => {
                if unary.op == UnaryOp::USub
                    && let Expr::NumberLiteral(n) = unary.operand.as_ref()
                    && let Number::Int(value) = &n.value
                    && value.as_u64() == Some(1 << 63)
                {
                    return Ok(i64::MIN.into());
                }
                let value = self.eval(&unary.operand, None)?;
                let name = match unary.op {
                    UnaryOp::USub => "neg",
                    UnaryOp::UAdd => "pos",
                    UnaryOp::Invert => "invert",
                    UnaryOp::Not => "not_",
                };
                self.operator(name, vec![value], want, expr)
            }
            Expr::BinOp(binary) => {
                let left = self.eval(&binary.left, None)?;
                let right = self.eval(&binary.right, None)?;
                self.operator(operator_name(binary.op), vec![left, right], want, expr)
            }
            Expr::Compare(compare) => match (compare.ops.as_ref(), compare.comparators.as_ref()) {
                ([op], [right]) => {
                    let left = self.eval(&compare.left, None)?;
                    let right = self.eval(right, None)?;
                    self.comparison(*op, left, right, want, expr)
                }
                _ => self.fail(codes::UNSUPPORTED, expr, "a chain of comparisons", "compare two values at a time"),
            },
            Expr::If(conditional) => {
                let test = self.eval(&conditional.test, None)?;
                let Some(test) = as_bool(&test) else {
                    return self.fail(codes::UNSUPPORTED, expr, "a condition that depends on data", "use torch.where");
                };
                self.eval(if test { &conditional.body } else { &conditional.orelse }, want)
            }
            Expr::BoolOp(operation) => {
                let mut last = Value::None;
                for value in &operation.values {
                    last = self.eval(value, None)?;
                    let Some(is_bool) = as_bool(&last) else {
                        return self.fail(
                            codes::UNSUPPORTED,
                            expr,
                            "a condition that depends on data",
                            "use torch.where",
                        );
                    };
                    if is_bool == (operation.op == ruff_python_ast::BoolOp::Or) {
                        break;
                    }
                }
                Ok(last)
            }
            other => self.fail(
                codes::UNSUPPORTED,
                other,
                "unsupported expression in a graph",
                "a graph consists of calls, operators, names and literals",
            ),
        }
    }

    fn too_large<T>(&self, at: &impl Ranged) -> Res<T> {
        self.fail(codes::BAD_SIZE, at, "a number does not fit into 64 bits", "use a smaller one")
    }

    fn items(&mut self, items: &'a [Expr]) -> Res<V> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Expr::Starred(starred) => match self.eval(&starred.value, None)? {
                    Value::List(more) => values.extend(more),
                    _ => {
                        return self.fail(
                            codes::UNSUPPORTED,
                            item,
                            "`*` on a value that is not a list",
                            "write it out",
                        );
                    }
                },
                other => values.push(self.eval(other, None)?),
            }
        }
        Ok(Value::List(values))
    }

    fn name_value(&mut self, name: &'a str, at: &Expr) -> Res<V> {
        if !self.locals.contains_key(name) {
            let path = self.cx.aliases.get(name).map_or(name, String::as_str);
            if let Some(value) = literal::constant(path) {
                return Ok(value);
            }
            if let Some((_, value)) = self.cx.hints.iter().find(|(n, _)| n == name) {
                return Ok((*value).into());
            }
        }
        self.lookup(name, at)
    }

    /// The dotted name of an expression that starts with no local name: `torch.ops.aten.add`.
    pub fn global_path(&self, expr: &'a Expr) -> Option<String> {
        let mut path = String::new();
        let root = literal::write_path(expr, &mut path)?;
        if self.locals.contains_key(root) || root == "self" {
            return None;
        }
        match self.cx.aliases.get(root) {
            Some(full) if !self.in_rule => Some(format!("{full}{}", &path[root.len()..])),
            _ => Some(path),
        }
    }

    fn attribute(&mut self, attribute: &'a ExprAttribute, want: Option<&str>) -> Res<V> {
        if let Some(path) = self.member_path(&attribute.value) {
            let full = if path.is_empty() { attribute.attr.to_string() } else { format!("{path}.{}", attribute.attr) };
            return self.member(&full, want, attribute);
        }
        if let Some(path) = self.global_path_of(attribute) {
            if let Some(value) = literal::constant(&path) {
                return Ok(value);
            }
            if literal::is_dtype_name(&path) {
                let message = format!("unknown dtype `{path}`");
                let hint = "known are float16, bfloat16, float32, float64, the float8 types, complex64, complex128, int8 to int64, uint8 to uint64, bool";
                return self.fail(codes::UNKNOWN_DTYPE, attribute, message, hint);
            }
            let message = format!("`{path}` is nothing that a graph can use as a value");
            return self.fail(codes::UNKNOWN_NAME, attribute, message, "check the spelling");
        }
        let value = self.eval(&attribute.value, None)?;
        self.tensor_attribute(&value, attribute.attr.as_str(), want, attribute)
    }

    fn global_path_of(&self, attribute: &'a ExprAttribute) -> Option<String> {
        let mut path = self.global_path(&attribute.value)?;
        path.push('.');
        path.push_str(&attribute.attr);
        Some(path)
    }

    /// `x.shape`, `x.T`, `x.dtype`.
    pub fn tensor_attribute(&mut self, value: &V, name: &str, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        if let Value::Tensor(id) = value
            && let Some(Value::Tensor(meta)) = self.meta(*id)
        {
            match name {
                "shape" => return self.sizes(value, at),
                "dtype" => return Ok(Value::DType(meta.dtype)),
                "device" => return Ok(Value::Device(meta.device.clone())),
                "ndim" => return Ok(meta.rank().into()),
                "requires_grad" => return Ok(Value::Bool(meta.requires_grad)),
                "layout" => return Ok(Value::Layout("strided".into())),
                "is_cuda" => return Ok(Value::Bool(meta.device.to_string().starts_with("cuda"))),
                _ => {}
            }
        }
        let packet = match name {
            "T" => "numpy_T",
            "mT" => "mT",
            "H" => "matrix_H",
            "mH" => "mH",
            "real" => "real",
            "imag" => "imag",
            "data" => "detach",
            "shape" => return self.sizes(value, at),
            _ => {
                let args = vec![value.clone(), Value::from(name)];
                return Ok(self.opaque("getattr", args, Vec::new(), want));
            }
        };
        match self.packet(&format!("aten.{packet}"), vec![value.clone()], Vec::new(), want, at)? {
            Some(value) => Ok(value),
            None => Ok(self.opaque("getattr", vec![value.clone(), Value::from(name)], Vec::new(), want)),
        }
    }

    /// All sizes of a tensor: numbers where they are known, nodes where they are symbolic.
    pub fn sizes(&mut self, value: &V, at: &impl Ranged) -> Res<V> {
        let rank = match value {
            Value::Tensor(id) => match self.meta(*id) {
                Some(Value::Tensor(meta)) => meta.rank(),
                _ => return Ok(self.opaque("torch.Tensor.size", vec![value.clone()], Vec::new(), None)),
            },
            _ => return self.fail(codes::UNSUPPORTED, at, "the shape of a value that is not a tensor", "use a tensor"),
        };
        (0..rank).map(|dim| self.size(value, dim as i64, None, at)).collect::<Res<Vec<V>>>().map(Value::List)
    }

    /// One size of a tensor.
    pub fn size(&mut self, value: &V, dim: i64, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        if let Value::Tensor(id) = value
            && let Some(Value::Tensor(meta)) = self.meta(*id)
        {
            let rank = meta.rank() as i64;
            let place = if dim < 0 { dim + rank } else { dim };
            let Some(size) = usize::try_from(place).ok().and_then(|d| meta.shape.get(d)) else {
                let message = format!("dimension {dim} of a tensor with {rank}");
                return self.fail(codes::OUT_OF_RANGE, at, message, "use a dimension that it has");
            };
            if let Some(known) = size.as_int() {
                return Ok(known.into());
            }
        }
        match self.packet("aten.sym_size", vec![value.clone(), dim.into()], Vec::new(), want, at)? {
            Some(value) => Ok(value),
            None => Ok(self.opaque("torch.ops.aten.sym_size.int", vec![value.clone(), dim.into()], Vec::new(), want)),
        }
    }

    /// What an operand is.
    pub fn operand(&self, value: &V) -> Operand {
        match value {
            Value::Tensor(id) => match self.meta(*id) {
                Some(Value::Tensor(_)) => Operand::Tensor,
                Some(Value::Int(_) | Value::Float(_) | Value::Bool(_)) => Operand::Number,
                Some(_) => Operand::Other,
                None => Operand::Unknown,
            },
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Complex(_) => Operand::Number,
            _ => Operand::Other,
        }
    }

    /// `left op right` and the like, by the name that Python's `operator` module gives it.
    pub fn operator(&mut self, name: &str, args: Vec<V>, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        if let Some(value) = number::fold(name, &args) {
            return Ok(value);
        }
        let kinds: Vec<Operand> = args.iter().map(|v| self.operand(v)).collect();
        if kinds.contains(&Operand::Tensor) {
            let (packet, args) = tensor_operator(name, args.clone(), &kinds);
            if name == "truediv" && packet == "aten.reciprocal" {
                // A number divided by a tensor, as PyTorch computes it.
                let [number, tensor] = args.as_slice() else { return Err(Failed) };
                if let Some(inverse) = self.packet(packet, vec![tensor.clone()], Vec::new(), None, at)?
                    && let Some(value) = self.packet("aten.mul", vec![inverse, number.clone()], Vec::new(), want, at)?
                {
                    return Ok(value);
                }
            } else if !packet.is_empty()
                && let Some(value) = self.packet(packet, args, Vec::new(), want, at)?
            {
                return Ok(value);
            }
        } else if name == "add" && args.iter().all(|v| matches!(v, Value::List(_))) {
            let joined = args.into_iter().flat_map(|v| if let Value::List(items) = v { items } else { Vec::new() });
            return Ok(Value::List(joined.collect()));
        } else if kinds.contains(&Operand::Other) && !kinds.contains(&Operand::Unknown) {
            let found: Vec<&str> = args.iter().map(Value::kind).collect();
            let message = format!("`{name}` of {}", found.join(" and "));
            return self.fail(codes::UNSUPPORTED, at, message, "operands are numbers or tensors");
        }
        self.python_operator(name, args, want, at)
    }

    /// Arithmetic on symbolic sizes, or on what is not known.
    fn python_operator(&mut self, name: &str, args: Vec<V>, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        if let Some(op) = self.cx.registry.get(&format!("_operator.{name}.default")) {
            let op = op.clone();
            if args.iter().all(|v| self.operand(v) == Operand::Number) {
                return self.call_op(&op, args, Vec::new(), want, at);
            }
        }
        let sizes: Option<Vec<SymInt>> = args.iter().map(|v| self.as_size(v)).collect();
        let meta = sizes.and_then(|sizes| number::symbolic(name, &sizes)).map(Value::<Meta>::Int);
        let stem = name.trim_end_matches('_').to_owned();
        let name = format!("operator.{name}");
        let node_name = self.name(want, &stem);
        let target = Target::Opaque(name.into());
        Ok(Value::Tensor(self.push(Node { meta, ..Node::new(node_name, Kind::Call(target), args) })))
    }

    /// A value as a size, if it is one.
    pub fn as_size(&self, value: &V) -> Option<SymInt> {
        match value {
            Value::Int(v) => Some(v.clone()),
            Value::Tensor(id) => match self.meta(*id) {
                Some(Value::Int(v)) => Some(v.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    fn comparison(&mut self, op: CmpOp, left: V, right: V, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        let name = match op {
            CmpOp::Eq => "eq",
            CmpOp::NotEq => "ne",
            CmpOp::Lt => "lt",
            CmpOp::LtE => "le",
            CmpOp::Gt => "gt",
            CmpOp::GtE => "ge",
            CmpOp::Is | CmpOp::IsNot => {
                let same = matches!((&left, &right), (Value::None, Value::None)) || (left == right);
                return Ok(Value::Bool(same == (op == CmpOp::Is)));
            }
            CmpOp::In | CmpOp::NotIn => {
                let Value::List(items) = &right else {
                    return self.fail(codes::UNSUPPORTED, at, "`in` on a value that is not a list", "write it out");
                };
                return Ok(Value::Bool(items.contains(&left) == (op == CmpOp::In)));
            }
        };
        if matches!(name, "eq" | "ne")
            && matches!((&left, &right), (Value::Str(_) | Value::DType(_) | Value::None, _) | (_, Value::Str(_)))
        {
            return Ok(Value::Bool((left == right) == (name == "eq")));
        }
        self.operator(name, vec![left, right], want, at)
    }

    /// `x += y`: in place on a tensor, a new value otherwise.
    pub fn augmented(&mut self, assign: &'a StmtAugAssign, renamed: Option<&str>) -> Res<()> {
        let Expr::Name(target) = assign.target.as_ref() else {
            let hint = "assign the part to a name first";
            return self.fail(codes::UNSUPPORTED, assign, "an in-place change of something without a name", hint);
        };
        let old = self.lookup(target.id.as_str(), target)?;
        let value = self.eval(&assign.value, None)?;
        let name = operator_name(assign.op);
        let result = if self.operand(&old) == Operand::Tensor && assign.op != Operator::MatMult {
            let (packet, args) = tensor_operator(name, vec![old.clone(), value.clone()], &[Operand::Tensor; 2]);
            let packet = format!("{packet}_");
            match self.packet(&packet, args, Vec::new(), renamed, assign)? {
                Some(result) => result,
                None => self.opaque(
                    &format!("operator.i{}", name.trim_end_matches('_')),
                    vec![old, value],
                    Vec::new(),
                    renamed,
                ),
            }
        } else if self.operand(&old) == Operand::Unknown {
            self.opaque(&format!("operator.i{}", name.trim_end_matches('_')), vec![old, value], Vec::new(), renamed)
        } else {
            self.operator(name, vec![old, value], renamed, assign)?
        };
        self.locals.insert(target.id.as_str(), Local::Value(result));
        Ok(())
    }

    /// The arguments of a call.
    pub fn arguments(&mut self, call: &'a ExprCall) -> Res<Given> {
        let mut args = Vec::with_capacity(call.arguments.args.len());
        for arg in &call.arguments.args {
            match arg {
                Expr::Starred(starred) => match self.eval(&starred.value, None)? {
                    Value::List(more) => args.extend(more),
                    _ => {
                        return self.fail(codes::UNSUPPORTED, arg, "`*` on a value that is not a list", "write it out");
                    }
                },
                other => args.push(self.eval(other, None)?),
            }
        }
        let mut kwargs = Vec::with_capacity(call.arguments.keywords.len());
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else {
                return self.fail(codes::UNSUPPORTED, keyword, "`**` in a call", "write the arguments out");
            };
            let value = match self.eval(&keyword.value, None)? {
                Value::Str(device) if name.as_str() == "device" && !self.in_rule => {
                    Value::Device(self.cx.place(pyrite_ir::Device::from_name(&device), keyword))
                }
                value => value,
            };
            kwargs.push((name.to_string(), value));
        }
        Ok((args, kwargs))
    }

    /// Values that calls of Python's own functions give, where they are known: `float('inf')`.
    pub fn builtin(&mut self, path: &str, args: &[V], kwargs: &[(String, V)], at: &impl Ranged) -> Option<Res<V>> {
        let value = match (path, args) {
            ("float", [Value::Str(text)]) => match text.trim().to_ascii_lowercase().trim_start_matches('+') {
                "inf" | "infinity" => Value::Float(f64::INFINITY),
                "-inf" | "-infinity" => Value::Float(f64::NEG_INFINITY),
                "nan" | "-nan" => Value::Float(f64::NAN),
                other => Value::Float(other.parse().ok()?),
            },
            ("float" | "torch.sym_float", [value]) => match value.as_scalar()? {
                pyrite_tensor::Scalar::Complex(_) => return None,
                scalar => Value::Float(scalar.to_f64()),
            },
            ("int" | "torch.sym_int", [value]) => match (value, value.as_scalar()) {
                (_, Some(scalar)) => scalar.to_i64().into(),
                _ => return self.as_size(value).map(|_| Ok(value.clone())),
            },
            ("bool", [value]) => Value::Bool(as_bool(value)?),
            ("complex", [re, im]) => Value::Complex(Complex64::new(re.as_scalar()?.to_f64(), im.as_scalar()?.to_f64())),
            ("slice", [stop]) => Value::Slice(Box::new([Value::None, stop.clone(), Value::None])),
            ("slice", [start, stop]) => Value::Slice(Box::new([start.clone(), stop.clone(), Value::None])),
            ("slice", [start, stop, step]) => Value::Slice(Box::new([start.clone(), stop.clone(), step.clone()])),
            ("torch.Size" | "tuple" | "list", [Value::List(items)]) => Value::List(items.clone()),
            ("device" | "torch.device", _) => match literal::device(args, kwargs) {
                Some(device) => Value::Device(self.cx.place(device, at)),
                None => {
                    return Some(self.fail(codes::WRONG_ARGUMENTS, at, "not a device", "write `device('cpu')`"));
                }
            },
            ("len", [Value::List(items)]) => items.len().into(),
            ("math.floor", [Value::Float(v)]) => (v.floor() as i64).into(),
            ("math.ceil", [Value::Float(v)]) => (v.ceil() as i64).into(),
            ("math.sqrt", [v]) => Value::Float(v.as_scalar()?.to_f64().sqrt()),
            ("getattr", [value, Value::Str(name)]) if self.operand(value) == Operand::Tensor => {
                let (value, name) = (value.clone(), name.clone());
                return Some(self.tensor_attribute(&value, &name, None, at));
            }
            _ => return None,
        };
        Some(Ok(value))
    }
}

/// Whether a constant counts as true.
pub(crate) fn as_bool(value: &V) -> Option<bool> {
    match value {
        Value::None => Some(false),
        Value::Str(text) => Some(!text.is_empty()),
        Value::List(items) => Some(!items.is_empty()),
        Value::Tensor(_) => None,
        other => other.as_scalar().map(pyrite_tensor::Scalar::to_bool),
    }
}

/// The name of an operator in Python's `operator` module.
fn operator_name(op: Operator) -> &'static str {
    match op {
        Operator::Add => "add",
        Operator::Sub => "sub",
        Operator::Mult => "mul",
        Operator::MatMult => "matmul",
        Operator::Div => "truediv",
        Operator::Mod => "mod",
        Operator::Pow => "pow",
        Operator::LShift => "lshift",
        Operator::RShift => "rshift",
        Operator::BitOr => "or_",
        Operator::BitXor => "xor",
        Operator::BitAnd => "and_",
        Operator::FloorDiv => "floordiv",
    }
}

/// The ATen operator that Python's operator stands for on tensors, and its arguments.
fn tensor_operator(name: &str, mut args: Vec<V>, kinds: &[Operand]) -> (&'static str, Vec<V>) {
    let reversed = kinds.first() == Some(&Operand::Number);
    let packet = match name {
        "add" => "aten.add",
        "sub" if reversed => "aten.rsub",
        "sub" => "aten.sub",
        "mul" => "aten.mul",
        "matmul" => "aten.matmul",
        "truediv" if reversed => return ("aten.reciprocal", args),
        "truediv" => "aten.div",
        "floordiv" => return ("aten.floor_divide", args),
        "mod" => return ("aten.remainder", args),
        "pow" => return ("aten.pow", args),
        "and_" => "aten.bitwise_and",
        "or_" => "aten.bitwise_or",
        "xor" => "aten.bitwise_xor",
        "lshift" => return ("aten.__lshift__", args),
        "rshift" => return ("aten.__rshift__", args),
        "eq" => "aten.eq",
        "ne" => "aten.ne",
        "lt" if reversed => "aten.gt",
        "lt" => "aten.lt",
        "le" if reversed => "aten.ge",
        "le" => "aten.le",
        "gt" if reversed => "aten.lt",
        "gt" => "aten.gt",
        "ge" if reversed => "aten.le",
        "ge" => "aten.ge",
        "neg" => "aten.neg",
        "pos" => "aten.positive",
        "invert" => "aten.bitwise_not",
        _ => "",
    };
    if reversed {
        args.reverse();
    }
    (packet, args)
}
