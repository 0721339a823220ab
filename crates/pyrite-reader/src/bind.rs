//! Calls to operators.
//!
//! A called name resolves to a [`Callee`]: an overload by its full name, a packet of overloads of which the arguments
//! pick one (`overloads.rs`), a binding rule (`rules.rs`), or something the registry does not know.

use std::rc::Rc;

use pyrite_diag::{Diagnostic, Severity};
use pyrite_ir::args::tensors_from_numbers;
use pyrite_ir::infer::infer;
use pyrite_ir::print::is_variadic;
use pyrite_ir::schema::BindError;
use pyrite_ir::{Device, Infer, Kind, Meta, Node, OpError, OpRef, Switch, Target, Value};
use ruff_python_ast::{Expr, ExprCall, StmtFunctionDef};
use ruff_text_size::Ranged;

use crate::expr::Operand;
use crate::forward::{Forward, V};
use crate::problems::{Failed, Res, codes};
use crate::rules::rules;
use crate::{Unknown, constant, inline, literal, passing};

/// What a called name is.
pub(crate) enum Callee {
    /// An overload.
    Op(OpRef),
    /// The overloads of a name such as `aten.add`, and the name it was called by.
    Packet(String, String),
    /// A rule of `functional.py`.
    Rule(&'static StmtFunctionDef, String),
    /// A function of Python's `operator` module.
    Operator(String),
    /// `torch.tensor` and the like: makes a constant.
    Constant(String),
    /// Unknown.
    Opaque(String),
}

/// Where PyTorch keeps functions, and what their operators' names begin with.
const NAMESPACES: [(&str, &str); 12] = [
    ("torch.nn.functional.", ""),
    ("torch._C._nn.", ""),
    ("torch.functional.", ""),
    ("torch._VF.", ""),
    ("torch.Tensor.", ""),
    ("torch._C._linalg.", ""),
    ("torch._C._special.", ""),
    ("torch._C._fft.", ""),
    ("torch.special.", "special_"),
    ("torch.linalg.", "linalg_"),
    ("torch.fft.", "fft_"),
    ("torch.", ""),
];

impl<'a> Forward<'a> {
    /// A call expression.
    pub fn call(&mut self, call: &'a ExprCall, want: Option<&str>) -> Res<V> {
        if let Expr::Attribute(attribute) = call.func.as_ref() {
            if let Some(path) = self.member_path(&call.func) {
                return self.call_member(&path, call, want);
            }
            if self.global_path(&attribute.value).is_none() {
                let object = self.eval(&attribute.value, None)?;
                let (args, kwargs) = self.arguments(call)?;
                return self.method(object, attribute.attr.as_str(), args, kwargs, want, call);
            }
        } else if let Some(path) = self.member_path(&call.func) {
            // `getattr(self, '0')(x)`.
            return self.call_member(&path, call, want);
        }
        let path = match self.global_path(&call.func) {
            Some(path) => path,
            None => {
                if let Some(path) = self.getattr_path(&call.func) {
                    path
                } else {
                    let hint = "a graph calls functions by their names";
                    return self.fail(codes::UNSUPPORTED, call, "a call of something that has no name", hint);
                }
            }
        };
        if path == "getattr"
            && let Some(member) = self.member_path_of_call(call)
        {
            return self.member(&member, want, call);
        }
        if let Some(value) = self.with_generator(&path, call, want) {
            return value;
        }
        let callee = self.resolve(&path);
        let (args, kwargs) = self.arguments(call)?;
        if let Callee::Constant(name) = callee.as_ref()
            && let Some(value) = constant::from_arguments(self, name, &args, &kwargs, call)?
        {
            return self.fresh_constant(value, want, call);
        }
        self.invoke(&callee, args, kwargs, want, call)
    }

    /// `getattr(torch.ops.aten.random_, 'from')`: an overload whose name is a keyword.
    fn getattr_path(&self, func: &'a Expr) -> Option<String> {
        let Expr::Call(call) = func else { return None };
        if literal::path(&call.func)? != "getattr" {
            return None;
        }
        let [object, name] = call.arguments.args.as_ref() else { return None };
        let name = literal::text(name).filter(|name| literal::is_word(name))?;
        Some(format!("{}.{name}", self.global_path(object)?))
    }

    /// Whether a dotted name is an operator, or has a rule.
    pub fn is_known(&mut self, path: &str) -> bool {
        !matches!(*self.resolve(path), Callee::Opaque(_))
    }

    /// What a dotted name is.
    pub fn resolve(&mut self, path: &str) -> Rc<Callee> {
        if let Some(callee) = self.callees.get(path) {
            return callee.clone();
        }
        let callee = Rc::new(self.find(path));
        self.callees.insert(path.to_owned(), callee.clone());
        callee
    }

    fn find(&self, path: &str) -> Callee {
        let registry = self.cx.registry;
        let known = |packet: &str| !registry.overloads(packet).is_empty();
        let dotted =
            if self.in_rule && path.starts_with("aten.") { Some(path) } else { path.strip_prefix("torch.ops.") };
        if let Some(name) = dotted {
            if let Some(op) = registry.get(name) {
                return Callee::Op(op.clone());
            }
            if known(name) {
                return Callee::Packet(name.to_owned(), path.to_owned());
            }
            return match rules().get(path.strip_suffix(".default").unwrap_or(path)) {
                Some(rule) => Callee::Rule(rule, path.to_owned()),
                None => Callee::Opaque(path.to_owned()),
            };
        }
        if let Some(name) = path.strip_prefix("operator.").or_else(|| path.strip_prefix("_operator.")) {
            return Callee::Operator(name.to_owned());
        }
        if let Some(rule) = rules().get(path)
            && (self.in_rule || path.contains('.'))
        {
            return Callee::Rule(rule, path.to_owned());
        }
        if constant::is_maker(path) {
            return Callee::Constant(path.to_owned());
        }
        for (prefix, stem) in NAMESPACES {
            if let Some(name) = path.strip_prefix(prefix)
                && !name.contains('.')
            {
                let packet = format!("aten.{stem}{name}");
                if known(&packet) {
                    return Callee::Packet(packet, path.to_owned());
                }
            }
        }
        Callee::Opaque(path.to_owned())
    }

    /// Calls what a name resolved to.
    pub fn invoke(
        &mut self,
        callee: &Callee,
        args: Vec<V>,
        kwargs: Vec<(String, V)>,
        want: Option<&str>,
        at: &impl Ranged,
    ) -> Res<V> {
        match callee {
            Callee::Op(op) => self.call_op(op, args, kwargs, want, at),
            Callee::Packet(packet, path) => match self.packet(packet, args.clone(), kwargs.clone(), want, at)? {
                Some(value) => Ok(value),
                None => Ok(self.opaque(path, args, kwargs, want)),
            },
            Callee::Rule(rule, path) => match self.rule(rule, path, &args, &kwargs, want, at)? {
                Some(value) => Ok(value),
                None => Ok(self.opaque(path, args, kwargs, want)),
            },
            Callee::Operator(name) => match (name.as_str(), args.as_slice()) {
                ("getitem", [value, Value::Int(index)]) if index.as_int().is_some() => {
                    self.get_item(&value.clone(), index.as_int().unwrap_or(0), want, at)
                }
                ("getitem", [value, index]) => self.index_value(&value.clone(), &index.clone(), want, at),
                ("setitem", [value, index, new]) => {
                    self.store(&value.clone(), &index.clone(), new.clone(), want, at)?;
                    Ok(value.clone())
                }
                (name, _) => match name.strip_prefix('i').filter(|n| is_in_place(n)) {
                    Some(stem) if args.first().is_some_and(|v| self.operand(v) == Operand::Tensor) => {
                        self.in_place(stem, args, want, at)
                    }
                    _ => self.operator(name, args, want, at),
                },
            },
            Callee::Constant(path) | Callee::Opaque(path) => {
                if let Some(value) = self.builtin(path, &args, &kwargs, at) {
                    return value;
                }
                if self.in_rule {
                    if let Some(value) = self.rule_function(path, &args, at) {
                        return value;
                    }
                    self.rule_failed = true;
                    return Err(Failed);
                }
                if inline::is_body(path)
                    && let Some((Value::Graph(body), operands)) = args.split_first()
                {
                    return self.inlined(&body.clone(), operands.to_vec(), at);
                }
                let Some(path) = path.strip_prefix("torch.ops.higher_order.") else {
                    return Ok(self.opaque(path, args, kwargs, want));
                };
                let meta = self.nested(&args, at)?;
                let value = self.opaque(&format!("torch.ops.higher_order.{path}"), args, kwargs, want);
                if let (Some(meta), Value::Tensor(id)) = (meta, &value) {
                    self.builder.set_meta(*id, meta);
                }
                Ok(value)
            }
        }
    }

    fn in_place(&mut self, stem: &str, args: Vec<V>, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        let packet = match stem {
            "truediv" => "aten.div_".to_owned(),
            "floordiv" => "aten.floor_divide_".to_owned(),
            "mod" => "aten.remainder_".to_owned(),
            "and" => "aten.bitwise_and_".to_owned(),
            "or" => "aten.bitwise_or_".to_owned(),
            "xor" => "aten.bitwise_xor_".to_owned(),
            other => format!("aten.{other}_"),
        };
        match self.packet(&packet, args.clone(), Vec::new(), want, at)? {
            Some(value) => Ok(value),
            None => Ok(self.opaque(&format!("operator.i{stem}"), args, Vec::new(), want)),
        }
    }

    /// `x.method(…)`.
    pub fn method(
        &mut self,
        object: V,
        name: &str,
        mut args: Vec<V>,
        kwargs: Vec<(String, V)>,
        want: Option<&str>,
        at: &impl Ranged,
    ) -> Res<V> {
        if let (Some(operator), [other], []) = (comparison(name), args.as_slice(), kwargs.as_slice()) {
            return self.operator(operator, vec![object, other.clone()], want, at);
        }
        let asks_for_size = matches!(name, "size" | "dim" | "numel" | "stride" | "item" | "tolist");
        if self.operand(&object) == Operand::Unknown && asks_for_size {
            args.insert(0, object);
            return Ok(self.opaque(&format!("torch.Tensor.{name}"), args, kwargs, want));
        }
        if name == "size" || name == "dim" || name == "numel" || name == "stride" {
            match (name, args.as_slice(), kwargs.as_slice()) {
                ("size", [], []) => return self.sizes(&object, at),
                ("size", [Value::Int(dim)], []) => {
                    if let Some(dim) = dim.as_int() {
                        return self.size(&object, dim, want, at);
                    }
                }
                _ => {}
            }
            if let Value::Tensor(id) = &object
                && let Some(Value::Tensor(meta)) = self.meta(*id)
            {
                match (name, args.as_slice()) {
                    ("dim", []) => return Ok(meta.rank().into()),
                    ("numel", []) => {
                        if let Some(count) = meta.numel().as_int() {
                            return Ok(count.into());
                        }
                        if let Some(value) =
                            self.packet("aten.sym_numel", vec![object.clone()], Vec::new(), want, at)?
                        {
                            return Ok(value);
                        }
                    }
                    _ => {}
                }
            }
        }
        args.insert(0, object);
        let callee = self.resolve(&format!("torch.Tensor.{name}"));
        self.invoke(&callee, args, kwargs, want, at)
    }

    /// Adds a call of an operator.
    pub fn call_op(
        &mut self,
        op: &OpRef,
        mut args: Vec<V>,
        kwargs: Vec<(String, V)>,
        want: Option<&str>,
        at: &impl Ranged,
    ) -> Res<V> {
        if let Some(last) = op.schema.params.len().checked_sub(1)
            && is_variadic(op, last)
            && args.len() >= last
        {
            let operands = args.split_off(last);
            args.push(Value::List(operands));
        }
        let bound = match op.schema.bind(&args, &kwargs) {
            Ok(bound) => bound,
            Err(error) => {
                let hint = match &error {
                    BindError::TooMany { .. } | BindError::Twice { .. } => "remove an argument",
                    BindError::Missing { .. } => "add the argument",
                    BindError::Unknown { .. } => "check the argument's name",
                    BindError::Mismatch { .. } => "check the order and types of the arguments",
                };
                return self.fail(codes::WRONG_ARGUMENTS, at, error.to_string(), hint);
            }
        };
        let meta = if matches!(op.def.infer, Infer::HigherOrder) {
            self.nested(&bound, at)?
        } else {
            self.infer(op, &bound, at)?
        };
        let stem = op.name().split('.').nth(1).unwrap_or("call");
        let name = self.name(want, stem);
        let node = Node { meta, ..Node::new(name, Kind::Call(Target::Op(op.clone())), bound) };
        Ok(Value::Tensor(self.push(node)))
    }

    /// What a call returns, as far as its arguments are known.
    fn infer(&self, op: &OpRef, bound: &[V], at: &impl Ranged) -> Res<Option<Value<Meta>>> {
        let mut metas = Vec::with_capacity(bound.len());
        for value in bound {
            match value.try_map(&mut |id| self.meta(*id).cloned().ok_or(())) {
                Ok(meta) => metas.push(meta),
                Err(()) => return Ok(None),
            }
        }
        tensors_from_numbers(&op.schema, &mut metas);
        match infer(self.cx.registry, op, &metas) {
            Ok(meta) => Ok(Some(meta)),
            Err(OpError::Invalid(message)) if self.assumed && self.pending.is_some() => {
                let note = Diagnostic::warning(codes::NOT_INFERRED, message)
                    .note("the text does not give the strides of its inputs; they are taken to be dense")
                    .hint("annotate inputs with their strides, like `x : \"f32[2, 3][1, 2]\"`, or add a load_args function");
                self.cx.problems.push(note.at(self.at(at)));
                Ok(None)
            }
            Err(OpError::Invalid(message)) => {
                self.fail(codes::WRONG_CALL, at, message, "PyTorch refuses this call too: check shapes and types")
            }
            Err(error) => {
                let note = Diagnostic::new(Severity::Note, codes::NOT_INFERRED, error.to_string());
                self.cx.problems.push(note.at(self.at(at)));
                Ok(None)
            }
        }
    }

    /// Adds a call of something that the registry does not know.
    pub fn opaque(&mut self, name: &str, mut args: Vec<V>, kwargs: Vec<(String, V)>, want: Option<&str>) -> V {
        if Switch::is_name(name)
            && let Some(Value::Str(device)) = args.first()
        {
            let device = self.cx.place(Device::from_name(device), &self.statement);
            args[0] = Value::from(device.to_string().as_str());
        }
        if !name.starts_with("operator.") {
            // An opaque call may reach a Python backend one day: only functions that compute are ever passed on.
            let callable = passing::is_passed_on(name);
            let message = if callable {
                format!("unknown operator `{name}`; it stays in the graph as an opaque call")
            } else {
                format!("`{name}` is not a function that a graph can call")
            };
            let refuse = !callable || self.cx.options.unknown == Unknown::Refuse;
            let severity = if refuse { Severity::Error } else { Severity::Note };
            let location = self.cx.source.at(&self.statement);
            let mut note = Diagnostic::new(severity, codes::UNKNOWN_OPERATOR, message).at(location);
            if let Some(hint) = self.similar(name) {
                note = note.hint(format!("did you mean `{hint}`?"));
            } else if callable {
                note = note.hint("a backend that knows it can run it, such as torch:eager");
            } else {
                note = note.hint("a graph calls operators and functions of torch");
            }
            self.cx.problems.push(note);
        }
        let stem = name
            .rsplit('.')
            .find(|part| !matches!(*part, "default" | "Tensor" | "Scalar" | "int" | "out"))
            .unwrap_or("call")
            .to_owned();
        let node_name = self.name(want, &stem);
        let node = Node { kwargs, ..Node::new(node_name, Kind::Call(Target::Opaque(name.into())), args) };
        Value::Tensor(self.push(node))
    }

    /// An operator whose name differs by one letter.
    fn similar(&self, name: &str) -> Option<String> {
        let wanted = name.strip_prefix("torch.ops.")?;
        self.cx.registry.iter().map(|op| op.name()).find(|known| one_edit(known, wanted)).map(str::to_owned)
    }
}

/// Whether two names differ by one letter added, left out, changed, or by two swapped.
fn one_edit(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[same..], &b[same..]);
    match a.len() as i64 - b.len() as i64 {
        0 => {
            let swapped = a.len() >= 2 && a[0] == b[1] && a[1] == b[0] && a[2..] == b[2..];
            a.len() >= 2 && (a[1..] == b[1..] || swapped)
        }
        1 => a[1..] == *b,
        -1 => *a == b[1..],
        _ => false,
    }
}

fn is_in_place(stem: &str) -> bool {
    matches!(stem, "add" | "sub" | "mul" | "truediv" | "floordiv" | "mod" | "pow" | "and" | "or" | "xor")
}

/// What a method behind one of Python's comparisons is called in its `operator` module: dumps have `x.__eq__(y)` too.
fn comparison(method: &str) -> Option<&'static str> {
    const NAMES: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
    let name = method.strip_prefix("__")?.strip_suffix("__")?;
    NAMES.into_iter().find(|known| *known == name)
}
