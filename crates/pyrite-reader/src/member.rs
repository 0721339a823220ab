//! What `self.name` stands for: constants, nested graphs, modules.

use pyrite_ir::{Meta, Value};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef};
use ruff_text_size::Ranged;

use crate::expr::Operand;
use crate::forward::{self, Forward, Inputs, V};
use crate::literal;
use crate::problems::{Failed, Res, codes};

/// An attribute of a class.
#[derive(Clone, Copy)]
pub(crate) enum Member<'a> {
    /// A nested graph.
    Graph(&'a StmtClassDef),
    /// A tensor made by an expression.
    Constant(&'a Expr),
    /// A module of `torch.nn` by its constructor.
    Module(&'a ExprCall),
    /// A nested graph of which the text has the class and no body, by its constructor.
    Lost(&'a ExprCall),
}

/// What to do about a graph whose body torch left out.
pub(crate) const LOST_BODY_HINT: &str = "torch printed the class and left the body out, and cannot run the file either; \
                                         dump the graph with a newer torch, or take the fx_graph_readable.py that \
                                         TORCH_COMPILE_DEBUG=1 leaves";

/// Says which graph has no body.
pub(crate) fn lost_body(name: &str) -> String {
    format!("the body of the nested graph `{name}` is not in the file")
}

/// Collects the attributes of a class from its body and its `__init__`.
pub(crate) fn collect<'a>(forward: &mut Forward<'a>, class: &'a StmtClassDef) {
    for stmt in &class.body {
        match stmt {
            Stmt::ClassDef(nested) => {
                forward.members.insert(nested.name.as_str(), Member::Graph(nested));
            }
            Stmt::FunctionDef(function) if function.name.as_str() == "__init__" => {
                for stmt in &function.body {
                    initialize(forward, class, stmt);
                }
            }
            _ => {}
        }
    }
}

fn initialize<'a>(forward: &mut Forward<'a>, class: &'a StmtClassDef, stmt: &'a Stmt) {
    match stmt {
        Stmt::Assign(assign) => {
            if let [Expr::Attribute(target)] = assign.targets.as_slice()
                && matches!(target.value.as_ref(), Expr::Name(name) if name.id.as_str() == "self")
            {
                add(forward, class, target.attr.as_str(), &assign.value);
            }
        }
        Stmt::Expr(expr) => {
            let Expr::Call(call) = expr.value.as_ref() else { return };
            let Some(path) = literal::path(&call.func) else { return };
            let args = &call.arguments.args;
            match (path.as_str(), args.as_ref()) {
                ("self.register_buffer" | "self.register_parameter", [name, value, ..]) => {
                    if let Some(name) = literal::text(name) {
                        add(forward, class, name, value);
                    }
                }
                ("self.add_module" | "self.register_module", [name, value]) => {
                    if let Some(name) = literal::text(name) {
                        add(forward, class, name, value);
                    }
                }
                ("setattr", [Expr::Name(object), name, value]) if object.id.as_str() == "self" => {
                    if let Some(name) = literal::text(name) {
                        add(forward, class, name, value);
                    }
                }
                _ => {}
            }
        }
        _ => {}
    }
}

fn add<'a>(forward: &mut Forward<'a>, class: &'a StmtClassDef, name: &'a str, value: &'a Expr) {
    if !literal::is_word(name) {
        return;
    }
    let member = match value {
        Expr::Call(call) => {
            let path = literal::path(&call.func).unwrap_or_default();
            let last = path.rsplit('.').next().unwrap_or_default();
            let nested = class.body.iter().find_map(|stmt| match stmt {
                Stmt::ClassDef(nested) if nested.name.as_str() == last => Some(nested),
                _ => None,
            });
            match nested.or_else(|| forward.cx.classes.get(path.as_str()).copied()) {
                Some(nested) => Member::Graph(nested),
                None if last == "GraphModule" => Member::Lost(call),
                None if is_module(&path) => Member::Module(call),
                None => match call.func.as_ref() {
                    // `Linear(…).to("cuda")`.
                    Expr::Attribute(attribute) => match attribute.value.as_ref() {
                        Expr::Call(inner) if literal::path(&inner.func).is_some_and(|p| is_module(&p)) => {
                            Member::Module(inner)
                        }
                        _ => Member::Constant(value),
                    },
                    _ => Member::Constant(value),
                },
            }
        }
        _ => Member::Constant(value),
    };
    if let Some(device) = literal::put_where(value) {
        let device = forward.cx.place(device, value);
        forward.devices.insert(mangle(name), device);
    }
    forward.members.insert(name, member);
}

/// Modules have capital names; `Parameter` and `Buffer` are tensors.
fn is_module(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default();
    name.starts_with(|c: char| c.is_ascii_uppercase()) && !matches!(name, "Parameter" | "Buffer")
}

impl<'a> Forward<'a> {
    /// The path of `self.a.b` or `getattr(self.a, 'b')` below `self`; empty for `self` alone.
    pub fn member_path(&self, expr: &'a Expr) -> Option<String> {
        match expr {
            Expr::Name(name) => {
                (name.id.as_str() == "self" && !self.in_rule && !self.locals.contains_key("self")).then(String::new)
            }
            Expr::Attribute(attribute) => {
                let base = self.member_path(&attribute.value)?;
                Some(join(&base, attribute.attr.as_str()))
            }
            Expr::Call(call) => self.member_path_of_call(call),
            _ => None,
        }
    }

    /// The path of `getattr(self.a, 'b')`.
    pub fn member_path_of_call(&self, call: &'a ExprCall) -> Option<String> {
        if literal::path(&call.func)? != "getattr" {
            return None;
        }
        let [object, name] = call.arguments.args.as_ref() else { return None };
        let name = literal::text(name).filter(|name| literal::is_word(name))?;
        Some(join(&self.member_path(object)?, name))
    }

    /// The value of `self.path`.
    pub fn member(&mut self, path: &str, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        let found = self.members.get_key_value(path).map(|(name, member)| (*name, *member));
        match found {
            Some((name, Member::Graph(_))) if pyrite_ir::verify::is_identifier(name) => Ok(Value::Graph(name.into())),
            Some((_, Member::Graph(class))) => self.fail(
                codes::UNSUPPORTED,
                &class.name,
                "the name of a nested graph is not an identifier",
                "rename it",
            ),
            Some((name, Member::Constant(expr))) => {
                let attribute = mangle(name);
                if let Some(known) = self.known_constant(&attribute) {
                    return Ok(self.add_constant(&attribute, known, want));
                }
                self.begin_defining(name, at)?;
                let tensor = self.constant_expr(name, expr);
                self.defining.remove(name);
                let tensor = tensor?;
                if self.is_parameter(expr) && (tensor.dtype().is_float() || tensor.dtype().is_complex()) {
                    self.builder.add_parameter(&attribute);
                }
                Ok(self.add_constant(&attribute, tensor, want))
            }
            Some((_, Member::Module(call))) => {
                self.fail(codes::UNSUPPORTED, call, "a module used as a value", "modules can only be called")
            }
            Some((name, Member::Lost(call))) => self.fail(codes::LOST_BODY, call, lost_body(name), LOST_BODY_HINT),
            None => self.missing(path, want, at),
        }
    }

    /// Notes that a member is being evaluated; fails when it is defined by itself.
    fn begin_defining(&mut self, name: &str, at: &impl Ranged) -> Res<()> {
        if self.defining.insert(name.to_owned()) {
            return Ok(());
        }
        self.fail(codes::UNKNOWN_NAME, at, format!("`self.{name}` is defined by itself"), "remove the cycle")
    }

    fn known_constant(&self, attribute: &str) -> Option<pyrite_tensor::Tensor> {
        self.constants.contains(attribute).then(|| self.builder.constants().get(attribute).cloned()).flatten()
    }

    /// An attribute that the text does not define: with an annotation its values can be generated.
    fn missing(&mut self, path: &str, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        let attribute = mangle(path);
        if let Some(known) = self.known_constant(&attribute) {
            return Ok(self.add_constant(&attribute, known, want));
        }
        if let Some(Value::Tensor(meta)) = self.pending.clone() {
            let ints =
                |dims: &pyrite_ir::SymDims| dims.iter().map(pyrite_sym::SymInt::hint).collect::<Option<Vec<i64>>>();
            if let Some(shape) = ints(&meta.shape) {
                let tensor = self.generate(path, &shape, meta.dtype, at)?;
                return Ok(self.add_constant(&attribute, tensor, want));
            }
        }
        let message = format!("the file does not define `self.{path}`");
        let hint = "read a repro.py or fx_graph_runnable.py, which define it, or annotate it as \"f32[3]\"";
        self.fail(codes::MISSING_CONSTANT, at, message, hint)
    }

    /// `self.path(…)`: a module, or a method of a constant.
    pub fn call_member(&mut self, path: &str, call: &'a ExprCall, want: Option<&str>) -> Res<V> {
        match self.members.get(path).copied() {
            Some(Member::Module(constructor)) => return self.call_module(path, constructor, call, want),
            Some(Member::Lost(constructor)) => {
                return self.fail(codes::LOST_BODY, constructor, lost_body(path), LOST_BODY_HINT);
            }
            Some(Member::Graph(_)) => {
                let (mut args, kwargs) = self.arguments(call)?;
                args.extend(kwargs.into_iter().map(|(_, value)| value));
                return self.inlined(path, args, call);
            }
            _ => {}
        }
        if let Some((object, method)) = path.rsplit_once('.')
            && matches!(self.members.get(object), Some(Member::Constant(_)))
        {
            let object = self.member(object, None, call)?;
            let (args, kwargs) = self.arguments(call)?;
            return self.method(object, method, args, kwargs, want, call);
        }
        let (args, kwargs) = self.arguments(call)?;
        Ok(self.opaque(&format!("self.{}", mangle(path)), args, kwargs, want))
    }

    /// A call of a module of `torch.nn`, by its rule; its parameters become constants.
    fn call_module(&mut self, path: &str, constructor: &'a ExprCall, call: &'a ExprCall, want: Option<&str>) -> Res<V> {
        let (args, kwargs) = self.arguments(call)?;
        let class = literal::path(&constructor.func).unwrap_or_default();
        let class = class.rsplit('.').next().unwrap_or_default().to_owned();
        self.begin_defining(path, call)?;
        let settings = self.arguments(constructor);
        self.defining.remove(path);
        let (settings, named) = settings?;
        let mut all = args.clone();
        all.extend(settings);
        let outer = self.module.replace(mangle(path));
        let result = self.module_rule(&class, all, named, want, call);
        self.module = outer;
        match result? {
            Some(value) => Ok(value),
            None => Ok(self.opaque(&format!("self.{}", mangle(path)), args, kwargs, want)),
        }
    }

    /// A parameter of the module whose rule is evaluated.
    pub fn parameter(&mut self, args: &[V], at: &impl Ranged) -> Res<V> {
        let module = self.module.clone().unwrap_or_default();
        let (Some(Value::Str(name)), Some(Value::List(sizes))) = (args.first(), args.get(1)) else {
            return Err(Failed);
        };
        let attribute = format!("{module}_{name}");
        if let Some(known) = self.known_constant(&attribute) {
            return Ok(self.add_constant(&attribute, known, None));
        }
        let Some(shape) =
            sizes.iter().map(|v| v.as_scalar().map(pyrite_tensor::Scalar::to_i64)).collect::<Option<Vec<i64>>>()
        else {
            return self.fail(codes::BAD_SIZE, at, "a module's sizes are not numbers", "check its constructor");
        };
        let fill = args.get(2).and_then(Value::as_scalar);
        let tensor = match fill {
            Some(fill) => {
                let made = pyrite_tensor::Tensor::empty(&shape, pyrite_tensor::DType::F32);
                let Ok(mut tensor) = made else {
                    return self.fail(
                        codes::BAD_SIZE,
                        at,
                        "a module's parameter is too large",
                        "check its constructor",
                    );
                };
                tensor.fill_from(&pyrite_tensor::Tensor::scalar(fill, pyrite_tensor::DType::F32).expanded(&shape));
                tensor
            }
            None => self.generate(&attribute, &shape, pyrite_tensor::DType::F32, at)?,
        };
        // Running statistics are filled with a constant and have no gradient.
        if !name.starts_with("running") && !name.starts_with("num_batches") {
            self.builder.add_parameter(&attribute);
        }
        Ok(self.add_constant(&attribute, tensor, None))
    }

    /// Whether an expression makes a parameter that wants a gradient.
    fn is_parameter(&self, expr: &'a Expr) -> bool {
        let Expr::Call(call) = expr else { return false };
        let made = self.global_path(&call.func).is_some_and(|path| path.rsplit('.').next() == Some("Parameter"));
        let refused = call.arguments.keywords.iter().any(|k| {
            k.arg.as_ref().is_some_and(|name| name.as_str() == "requires_grad")
                && matches!(&k.value, Expr::BooleanLiteral(value) if !value.value)
        });
        made && !refused
    }

    /// Reads the nested graphs that a call is given; returns what the call returns, if it can be told.
    pub fn nested(&mut self, args: &[V], at: &impl Ranged) -> Res<Option<Value<Meta>>> {
        let Some(last) = args.iter().rposition(|v| matches!(v, Value::Graph(_))) else { return Ok(None) };
        let mut operands = Vec::new();
        for value in &args[last + 1..] {
            self.operands(value, &mut operands);
        }
        let mut result = None;
        for value in args {
            let Value::Graph(name) = value else { continue };
            if !self.subgraphs.contains_key(&**name) {
                let Some(Member::Graph(class)) = self.members.get(&**name).copied() else {
                    let message = format!("no nested graph is called `{name}`");
                    return self.fail(codes::UNKNOWN_NAME, at, message, "is a class missing in the file?");
                };
                let count = forward::find(class).map_or(0, |f| forward::inputs(f).count());
                let known: &[Option<Value<Meta>>] = if count == operands.len() { &operands } else { &[] };
                let graph = forward::read_class(self.cx, class, &Inputs::Operands(known), self.depth + 1)?;
                self.subgraphs.insert(name.to_string(), graph);
            }
            result = self.subgraphs.get(&**name).and_then(output_meta);
        }
        Ok(result)
    }

    fn operands(&self, value: &V, out: &mut Vec<Option<Value<Meta>>>) {
        match value {
            Value::List(items) => items.iter().for_each(|item| self.operands(item, out)),
            Value::Tensor(id) => out.push(self.meta(*id).cloned()),
            Value::Str(_) => {}
            Value::Int(v) => out.push(Some(Value::Int(v.clone()))),
            _ if self.operand(value) == Operand::Number => out.push(None),
            _ => {}
        }
    }
}

/// What a graph returns.
fn output_meta(graph: &pyrite_ir::Graph) -> Option<Value<Meta>> {
    graph.output().try_map(&mut |id| graph.get(*id).and_then(|n| n.meta.clone()).ok_or(())).ok()
}

fn join(base: &str, name: &str) -> String {
    if base.is_empty() { name.to_owned() } else { format!("{base}.{name}") }
}

/// A path as one identifier.
fn mangle(path: &str) -> String {
    let name: String = path.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if pyrite_ir::verify::is_identifier(&name) { name } else { format!("_{name}") }
}
