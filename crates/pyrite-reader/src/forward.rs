//! A class or function to a graph, statement by statement.
//!
//! Names are bound to values: most to a node, some (aliases, sizes, nested graphs) to no node of their own. A node
//! takes the name it is assigned to; nodes inside an expression get names that the text does not use.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_ir::graph::Span;
use pyrite_ir::inputs::{InputSpec, InputValue};
use pyrite_ir::{Builder, Device, Graph, Kind, Meta, Node, NodeId, Target, Value};
use pyrite_tensor::tensor::MAX_BYTES;
use ruff_python_ast::{Expr, ParameterWithDefault, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::annotation::{self, Annotated, BadAnnotation};
use crate::bind::Callee;
use crate::literal;
use crate::member::{self, Member};
use crate::module::Context;
use crate::problems::{Failed, Res, codes};

/// A value in a graph that is being read.
pub(crate) type V = Value<NodeId>;

/// What is known of a graph's inputs before it is read.
pub(crate) enum Inputs<'a> {
    /// What `load_args` says, if there is one.
    Spec(Option<&'a InputSpec>),
    /// What a nested graph is called with.
    Operands(&'a [Option<Value<Meta>>]),
}

/// Graphs may be nested this deeply.
const MAX_NESTING: u32 = 32;

/// What a name stands for.
#[derive(Clone)]
pub(crate) enum Local {
    /// A value.
    Value(V),
    /// Something that could not be read; it was reported.
    Broken,
}

/// A graph being read.
pub(crate) struct Forward<'a> {
    pub cx: &'a Context<'a>,
    pub builder: Builder,
    pub locals: FxHashMap<&'a str, Local>,
    /// What `self.name` stands for.
    pub members: FxHashMap<&'a str, Member<'a>>,
    /// Where members are put that say so, by their attribute.
    pub devices: FxHashMap<String, Device>,
    /// What called names resolve to.
    pub callees: FxHashMap<String, Rc<Callee>>,
    /// Names that nodes have or that the text assigns.
    reserved: FxHashSet<String>,
    /// Names that nodes have.
    nodes: FxHashSet<String>,
    /// The statement being read.
    pub statement: TextRange,
    /// Set while the text of a binding rule is evaluated instead of the file's.
    pub in_rule: bool,
    /// A rule needed an operator that the registry does not have.
    pub rule_failed: bool,
    /// Names used before the line that defines them.
    later: FxHashMap<&'a str, TextRange>,
    span: Option<Span>,
    stack: Option<Arc<str>>,
    pub subgraphs: BTreeMap<String, Graph>,
    /// The constants made so far, by the attribute they came from.
    pub constants: FxHashSet<String>,
    /// The members that are being evaluated.
    pub defining: FxHashSet<String>,
    pub depth: u32,
    /// The nodes of the inputs, in order; `None` where one could not be read.
    inputs: Vec<Option<NodeId>>,
    /// How many nodes there are.
    pushed: usize,
    /// What the annotation of the statement being read says.
    pub pending: Option<Value<Meta>>,
    /// The module whose rule is evaluated.
    pub module: Option<String>,
    /// Whether strides of inputs had to be assumed.
    pub assumed: bool,
}

/// The `forward` of a class.
pub(crate) fn find(class: &StmtClassDef) -> Option<&StmtFunctionDef> {
    class.body.iter().find_map(|stmt| match stmt {
        Stmt::FunctionDef(function) if function.name.as_str() == "forward" => Some(function),
        _ => None,
    })
}

/// The parameters of a `forward` that are inputs: all but `self`.
pub(crate) fn inputs(function: &StmtFunctionDef) -> impl Iterator<Item = &ParameterWithDefault> {
    let parameters = &function.parameters;
    let all = parameters.posonlyargs.iter().chain(&parameters.args).chain(&parameters.kwonlyargs);
    let of_self =
        |(position, p): &(usize, &ParameterWithDefault)| *position == 0 && p.parameter.name.as_str() == "self";
    all.enumerate().filter(move |entry| !of_self(entry)).map(|(_, parameter)| parameter)
}

/// Reads a class.
pub(crate) fn read_class<'a>(
    cx: &'a Context<'a>,
    class: &'a StmtClassDef,
    inputs: &Inputs<'_>,
    depth: u32,
) -> Res<Graph> {
    let Some(function) = find(class) else {
        let message = format!("the class `{}` has no `forward`", class.name);
        return cx.problems.fail(
            Diagnostic::error(codes::NO_GRAPH, message).at(cx.source.at(&class.name)).hint("is the file complete?"),
        );
    };
    if depth > MAX_NESTING {
        let message = "graphs are nested too deeply, or a class contains itself";
        return cx
            .problems
            .fail(Diagnostic::error(codes::TOO_DEEP, message).at(cx.source.at(&class.name)).hint("remove the cycle"));
    }
    let mut forward = Forward::new(cx, depth);
    forward.builder.set_name(class.name.as_str());
    member::collect(&mut forward, class);
    forward.read(function, inputs)
}

/// Reads a function that belongs to no class.
pub(crate) fn read_function<'a>(cx: &'a Context<'a>, function: &'a StmtFunctionDef, inputs: &Inputs<'_>) -> Res<Graph> {
    Forward::new(cx, 0).read(function, inputs)
}

impl<'a> Forward<'a> {
    pub fn new(cx: &'a Context<'a>, depth: u32) -> Self {
        Self {
            cx,
            builder: Builder::new(),
            locals: FxHashMap::default(),
            members: FxHashMap::default(),
            devices: FxHashMap::default(),
            callees: FxHashMap::default(),
            reserved: FxHashSet::default(),
            nodes: FxHashSet::default(),
            statement: TextRange::default(),
            in_rule: false,
            rule_failed: false,
            later: FxHashMap::default(),
            span: None,
            stack: None,
            subgraphs: BTreeMap::new(),
            constants: FxHashSet::default(),
            defining: FxHashSet::default(),
            depth,
            inputs: Vec::new(),
            pushed: 0,
            pending: None,
            module: None,
            assumed: false,
        }
    }

    /// Where a part of the text is; inside a rule, where the call is that the rule is for.
    pub fn at(&self, part: &impl Ranged) -> Location {
        if self.in_rule { self.cx.source.at(&self.statement) } else { self.cx.source.at(part) }
    }

    /// Reports an error.
    pub fn fail<T>(&self, code: Code, at: &impl Ranged, message: impl Into<String>, hint: impl Into<String>) -> Res<T> {
        self.cx.problems.fail(Diagnostic::error(code, message).at(self.at(at)).hint(hint))
    }

    fn read(mut self, function: &'a StmtFunctionDef, inputs: &Inputs<'_>) -> Res<Graph> {
        let mut failed = None;
        for stmt in &function.body {
            self.reserve(stmt);
        }
        if self.placeholders(function, inputs).is_err() {
            failed = Some(Failed);
        }
        let mut end = function.parameters.range().end().to_usize();
        let mut returned = false;
        for (index, stmt) in function.body.iter().enumerate() {
            self.statement = stmt.range();
            self.pending = None;
            let start = stmt.range().start().to_usize();
            self.comment(end, start);
            end = stmt.range().end().to_usize();
            self.span = Some(self.cx.source.span(start));
            let next = function.body.get(index + 1);
            match self.statement(stmt, next) {
                Ok(done) => returned |= done,
                Err(Failed) => failed = Some(Failed),
            }
            if self.cx.problems.full() {
                return Err(Failed);
            }
            if returned {
                break;
            }
        }
        if let Some(failed) = failed {
            return Err(failed);
        }
        if !returned {
            return self.fail(
                codes::NO_GRAPH,
                &function.name,
                format!("`{}` returns nothing", function.name),
                "a graph ends with `return`: is the file complete?",
            );
        }
        for (name, graph) in std::mem::take(&mut self.subgraphs) {
            self.builder.add_subgraph(&name, graph);
        }
        let mut graph = self.builder.finish();
        graph.env = self.cx.env.clone();
        Ok(graph)
    }

    /// Notes the names that a statement assigns, so that no other node takes them.
    fn reserve(&mut self, stmt: &'a Stmt) {
        let mut note = |target: &'a Expr| {
            if let Expr::Name(name) = target {
                self.reserved.insert(name.id.to_string());
                self.later.entry(name.id.as_str()).or_insert(stmt.range());
            }
        };
        match stmt {
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    match target {
                        Expr::Tuple(tuple) => tuple.elts.iter().for_each(&mut note),
                        other => note(other),
                    }
                }
            }
            Stmt::AnnAssign(assign) => note(&assign.target),
            _ => {}
        }
    }

    /// Takes the stack from the comments between two statements.
    fn comment(&mut self, from: usize, to: usize) {
        let Some(gap) = self.cx.source.text.get(from..to) else { return };
        if !gap.contains('#') {
            return;
        }
        for line in gap.lines() {
            if let Some(text) = line.trim().strip_prefix("# ")
                && text.contains("File: ")
            {
                self.stack = Some(text.into());
            }
        }
    }

    fn placeholders(&mut self, function: &'a StmtFunctionDef, inputs: &Inputs<'_>) -> Res<()> {
        let parameters = &function.parameters;
        if let Some(variadic) = parameters.vararg.as_ref().or(parameters.kwarg.as_ref()) {
            let hint = "a graph has a fixed number of inputs";
            return self.fail(codes::UNSUPPORTED, variadic.as_ref(), "inputs of unknown number", hint);
        }
        let mut failed = Ok(());
        let mut index = 0;
        for parameter in self::inputs(function) {
            let name = parameter.parameter.name.as_str();
            self.statement = parameter.range();
            self.span = Some(self.cx.source.span(parameter.range().start().to_usize()));
            if self.locals.contains_key(name) {
                failed = self.fail(
                    codes::DUPLICATE_NAME,
                    &parameter.parameter.name,
                    format!("two inputs are called `{name}`"),
                    "rename one of them",
                );
                continue;
            }
            self.reserved.insert(name.to_owned());
            let annotation = parameter.parameter.annotation.as_deref();
            if let Ok(meta) = self.placeholder_meta(name, index, annotation, inputs) {
                let node = Node { meta, ..Node::new(name, Kind::Placeholder, Vec::new()) };
                let id = self.push(node);
                self.inputs.push(Some(id));
                self.locals.insert(name, Local::Value(Value::Tensor(id)));
            } else {
                self.inputs.push(None);
                self.locals.insert(name, Local::Broken);
                failed = Err(Failed);
            }
            index += 1;
        }
        if let Inputs::Spec(Some(spec)) = inputs
            && spec.args.len() != index
        {
            return self.fail(
                codes::LOAD_ARGS,
                &function.name,
                format!("`load_args` loads {} inputs, `forward` takes {index}", spec.args.len()),
                "the two must agree: was one of them edited?",
            );
        }
        failed
    }

    fn placeholder_meta(
        &mut self,
        name: &str,
        index: usize,
        annotation: Option<&Expr>,
        inputs: &Inputs<'_>,
    ) -> Res<Option<Value<Meta>>> {
        let annotated = match annotation {
            Some(expr) => self.annotation(expr, codes_of_inputs)?,
            None => None,
        };
        let given = match inputs {
            Inputs::Operands(operands) => operands.get(index).cloned().flatten(),
            Inputs::Spec(spec) => match spec.and_then(|s| s.args.get(index).map(|arg| (s, &arg.value))) {
                Some((spec, InputValue::Tensor(t))) => {
                    let mut meta = Meta::strided(&t.shape, &t.stride, t.dtype);
                    meta.offset = t.offset.clone();
                    meta.requires_grad = t.requires_grad;
                    meta.is_leaf = t.is_leaf || !t.requires_grad;
                    if let Some(storage) = spec.storages.get(t.storage) {
                        meta.device = storage.device.clone();
                    }
                    // Inputs that share a storage alias each other.
                    let twin = spec.args[..index]
                        .iter()
                        .position(|a| matches!(&a.value, InputValue::Tensor(o) if o.storage == t.storage));
                    if let Some(Some(Value::Tensor(other))) = twin.map(|at| self.input_meta(at)) {
                        meta.storage = other.storage;
                    }
                    Some(Value::Tensor(meta))
                }
                Some((_, InputValue::Int { value, expr })) => {
                    let symbolic = expr.as_deref().and_then(|e| self.cx.symbols().size(e));
                    Some(Value::Int(symbolic.unwrap_or_else(|| (*value).into())))
                }
                Some((_, InputValue::Float(value))) => Some(Value::Float(*value)),
                Some((_, InputValue::Bool(value))) => Some(Value::Bool(*value)),
                Some((_, InputValue::None)) => Some(Value::None),
                None => None,
            },
        };
        let symbolic = annotation.and_then(literal::path).is_some_and(|p| p == "torch.SymInt");
        Ok(match (annotated, given) {
            (Some(a), Some(Value::Int(_)) | None) => {
                self.assumed |= !a.has_stride;
                Some(a.value)
            }
            (Some(a), Some(given)) => {
                self.compare(&a, &given);
                Some(given)
            }
            (None, Some(Value::Int(value))) if symbolic && value.as_int().is_some() => {
                let known = self.cx.hints.iter().any(|(n, _)| n == name);
                Some(Value::Int(if known { self.cx.symbols().declare(name) } else { value }))
            }
            (None, given @ Some(_)) => given,
            (None, None) if symbolic => Some(Value::Int(self.cx.symbols().declare(name))),
            (None, None) => None,
        })
    }

    fn input_meta(&self, index: usize) -> Option<Value<Meta>> {
        self.inputs.get(index).copied().flatten().and_then(|id| self.meta(id).cloned())
    }

    /// Reads an annotation; one that is a Python type says nothing.
    fn annotation(&self, expr: &Expr, strict: fn(&BadAnnotation) -> bool) -> Res<Option<Annotated>> {
        let Some(text) = literal::text(expr) else { return Ok(None) };
        let bad = match annotation::parse(text, &self.cx.symbols()) {
            Ok(mut annotated) => match too_large(&annotated.value) {
                None => {
                    if let Value::Tensor(meta) = &mut annotated.value {
                        meta.device = self.cx.place(std::mem::take(&mut meta.device), expr);
                    }
                    return Ok(Some(annotated));
                }
                Some(message) => {
                    let hint = "no tensor is that large: was the file damaged?";
                    return self.fail(codes::BAD_SIZE, expr, message, hint);
                }
            },
            Err(bad) => bad,
        };
        let (code, message) = match &bad {
            BadAnnotation::DType(name) => (codes::UNKNOWN_DTYPE, format!("unknown dtype `{name}`")),
            BadAnnotation::Size(size) => (codes::BAD_SIZE, format!("`{size}` is not a size")),
            BadAnnotation::Form => (codes::BAD_ANNOTATION, format!("`{text}` is not how FX describes a value")),
        };
        let hint = "FX writes `f32[2, 3]`, `f32[2, 3][3, 1]cpu` or `Sym(s0)`";
        if strict(&bad) {
            return self.fail(code, expr, message, hint);
        }
        self.cx.problems.push(Diagnostic::warning(code, message).at(self.at(expr)).hint(hint));
        Ok(None)
    }

    /// The user's stack of the nodes to come.
    pub fn set_stack(&mut self, stack: Option<Arc<str>>) {
        self.stack = stack;
    }

    /// Adds a node where the reader stands.
    pub fn push(&mut self, mut node: Node) -> NodeId {
        node.span = self.span;
        if node.kind != Kind::Placeholder {
            node.stack.clone_from(&self.stack);
        }
        self.nodes.insert(node.name.clone());
        self.pushed += 1;
        self.builder.push(node)
    }

    /// The name of the next node: the wanted one, or one that nothing else has.
    pub fn name(&mut self, want: Option<&str>, stem: &str) -> String {
        if let Some(name) = want
            && !self.nodes.contains(name)
        {
            return name.to_owned();
        }
        let stem = if pyrite_ir::verify::is_identifier(stem) { stem } else { "call" };
        if !self.reserved.contains(stem) && !self.nodes.contains(stem) {
            return stem.to_owned();
        }
        // Names are handed out in order, so the search starts where the last one ended.
        loop {
            let name = self.builder.unique_name(stem);
            if !self.reserved.contains(&name) && !self.nodes.contains(&name) {
                return name;
            }
        }
    }

    /// What is known of a node.
    pub fn meta(&self, id: NodeId) -> Option<&Value<Meta>> {
        self.builder.node(id).meta.as_ref()
    }

    /// Reads a statement; true when it was the `return`.
    fn statement(&mut self, stmt: &'a Stmt, next: Option<&'a Stmt>) -> Res<bool> {
        match stmt {
            Stmt::Assign(assign) => {
                if matches!(assign.value.as_ref(), Expr::NoneLiteral(_)) && self.is_release(&assign.targets) {
                    return Ok(false);
                }
                self.assign(&assign.targets, &assign.value, None)?;
            }
            Stmt::AnnAssign(assign) => {
                let annotated = self.annotation(&assign.annotation, |_| false)?;
                match &assign.value {
                    Some(value) => self.assign(std::slice::from_ref(assign.target.as_ref()), value, annotated)?,
                    None => return self.fail(codes::UNSUPPORTED, stmt, "a name without a value", "remove the line"),
                }
            }
            Stmt::AugAssign(assign) => {
                let renamed = next.and_then(|next| renamed(&assign.target, next));
                self.augmented(assign, renamed)?;
            }
            Stmt::Expr(expr) => {
                if !matches!(expr.value.as_ref(), Expr::StringLiteral(_) | Expr::EllipsisLiteral(_)) {
                    self.eval(&expr.value, None)?;
                }
            }
            Stmt::Return(stmt) => {
                let value = match &stmt.value {
                    Some(value) => self.eval(value, None)?,
                    None => Value::None,
                };
                let name = if self.nodes.contains("output") { self.name(None, "output") } else { "output".to_owned() };
                self.stack = None;
                self.push(Node::new(name, Kind::Output, vec![value]));
                return Ok(true);
            }
            Stmt::Pass(_) => {}
            other => {
                return self.fail(
                    codes::UNSUPPORTED,
                    other,
                    "unsupported statement in a graph",
                    "a graph consists of assignments, calls and one `return`",
                );
            }
        }
        Ok(false)
    }

    /// `x = y = None` after the last use.
    fn is_release(&self, targets: &[Expr]) -> bool {
        targets.iter().all(|t| matches!(t, Expr::Name(name) if self.locals.contains_key(name.id.as_str())))
    }

    fn assign(&mut self, targets: &'a [Expr], value: &'a Expr, annotated: Option<Annotated>) -> Res<()> {
        let want = match targets {
            [Expr::Name(name)] => {
                self.check_new(name.id.as_str(), &targets[0])?;
                Some(name.id.as_str())
            }
            _ => None,
        };
        let before = self.pushed;
        self.pending = annotated.as_ref().map(|a| a.value.clone());
        let Ok(value) = self.eval(value, want) else {
            for target in targets {
                self.bind_broken(target);
            }
            return Err(Failed);
        };
        if let (Some(annotated), Value::Tensor(id)) = (&annotated, &value)
            && id.0 as usize >= before
        {
            self.apply_annotation(*id, annotated);
        }
        for target in targets {
            self.bind_target(target, value.clone())?;
        }
        Ok(())
    }

    fn check_new(&self, name: &str, at: &Expr) -> Res<()> {
        if self.locals.contains_key(name) {
            return self.fail(
                codes::DUPLICATE_NAME,
                at,
                format!("`{name}` is assigned a second time"),
                "every value of a graph needs a unique name: rename one",
            );
        }
        Ok(())
    }

    fn bind_broken(&mut self, target: &'a Expr) {
        match target {
            Expr::Name(name) => {
                self.locals.insert(name.id.as_str(), Local::Broken);
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|t| self.bind_broken(t)),
            _ => {}
        }
    }

    pub fn bind_target(&mut self, target: &'a Expr, value: V) -> Res<()> {
        match target {
            Expr::Name(name) => {
                self.locals.insert(name.id.as_str(), Local::Value(value));
                Ok(())
            }
            Expr::Tuple(tuple) => {
                for (index, item) in tuple.elts.iter().enumerate() {
                    let want = if let Expr::Name(name) = item { Some(name.id.as_str()) } else { None };
                    let part = self.get_item(&value, index as i64, want, target)?;
                    self.bind_target(item, part)?;
                }
                Ok(())
            }
            Expr::Subscript(subscript) => self.set_item(subscript, value),
            other => self.fail(codes::UNSUPPORTED, other, "nothing can be assigned to this", "assign to a name"),
        }
    }

    /// An item of a list, or of a node whose value is a list.
    pub fn item(&mut self, value: &V, index: i64, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        let len = match value {
            Value::List(items) => Some(items.len()),
            Value::Tensor(id) => match self.meta(*id) {
                Some(Value::List(items)) => Some(items.len()),
                _ => None,
            },
            other => {
                let message = format!("{} has no items", other.kind());
                return self.fail(codes::UNSUPPORTED, at, message, "only lists and tensors have items");
            }
        };
        let place = match len {
            Some(len) => {
                let place = if index < 0 { index + len as i64 } else { index };
                if place < 0 || place >= len as i64 {
                    let message = format!("item {index} of a list of {len}");
                    return self.fail(codes::OUT_OF_RANGE, at, message, "use an index inside the list");
                }
                place as usize
            }
            None => 0,
        };
        match value {
            Value::List(items) => Ok(items[place].clone()),
            Value::Tensor(id) => {
                let meta = match self.meta(*id) {
                    Some(Value::List(items)) => items.get(place).cloned(),
                    _ => None,
                };
                let name = self.name(want, "getitem");
                let args = vec![Value::Tensor(*id), index.into()];
                let node = Node { meta, ..Node::new(name, Kind::Call(Target::GetItem), args) };
                Ok(Value::Tensor(self.push(node)))
            }
            _ => Err(Failed),
        }
    }

    /// Uses what an annotation says where inference said nothing, and compares where it did.
    fn apply_annotation(&mut self, id: NodeId, annotated: &Annotated) {
        match self.meta(id) {
            Some(inferred) => self.compare(annotated, &inferred.clone()),
            None => self.builder.set_meta(id, annotated.value.clone()),
        }
    }

    fn compare(&self, annotated: &Annotated, inferred: &Value<Meta>) {
        if let (Value::Tensor(said), Value::Tensor(found)) = (&annotated.value, inferred) {
            let same = |a: &[pyrite_sym::SymInt], b: &[pyrite_sym::SymInt]| {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| a == b || a.as_int().is_none() || b.as_int().is_none())
            };
            if said.dtype != found.dtype
                || !same(&said.shape, &found.shape)
                || (annotated.has_stride && !same(&said.stride, &found.stride))
            {
                let full = |m: &Meta| format!("{}{:?}{:?}", m.dtype, m.shape, m.stride);
                let message = if annotated.has_stride {
                    format!("the text says {}, inference {}", full(said), full(found))
                } else {
                    format!("the text says {}{:?}, inference {}", said.dtype, said.shape, full(found))
                };
                let location = self.cx.source.at(&self.statement);
                let hint = "inference counts; correct the annotation, or report it if PyTorch wrote it so";
                self.cx.problems.push(Diagnostic::warning(codes::ANNOTATION, message).at(location).hint(hint));
            }
        }
    }

    /// The value of a name.
    pub fn lookup(&self, name: &str, at: &impl Ranged) -> Res<V> {
        match self.locals.get(name) {
            Some(Local::Value(value)) => Ok(value.clone()),
            Some(Local::Broken) => Err(Failed),
            None => match self.later.get(name) {
                Some(range) if !self.in_rule => {
                    let line = self.cx.source.span(range.start().to_usize()).line;
                    let message = format!("`{name}` is used before line {line} defines it");
                    self.fail(codes::UNKNOWN_NAME, at, message, "a graph has no cycles: define it first")
                }
                _ => {
                    let message = format!("nothing is called `{name}`");
                    self.fail(codes::UNKNOWN_NAME, at, message, "check the spelling, or whether a line is missing")
                }
            },
        }
    }
}

fn codes_of_inputs(_: &BadAnnotation) -> bool {
    true
}

/// Says why a value of known sizes cannot exist.
fn too_large(value: &Value<Meta>) -> Option<String> {
    let Value::Tensor(meta) = value else { return None };
    let mut bytes = meta.dtype.size() as i64;
    for size in &meta.shape {
        if let Some(size) = size.as_int() {
            if size == 0 {
                return None;
            }
            bytes = bytes.checked_mul(size).filter(|b| *b <= MAX_BYTES).unwrap_or(-1);
            if bytes < 0 {
                return Some(format!("a tensor of shape {:?} is too large", meta.shape));
            }
        }
    }
    None
}

/// After `z += 1`, FX gives the result its name by `z_1 = z`.
fn renamed<'a>(target: &Expr, next: &'a Stmt) -> Option<&'a str> {
    let (to, from): (&Expr, &Expr) = match next {
        Stmt::Assign(assign) => match assign.targets.as_slice() {
            [one] => (one, &assign.value),
            _ => return None,
        },
        Stmt::AnnAssign(assign) => (&assign.target, assign.value.as_deref()?),
        _ => return None,
    };
    match (target, to, from) {
        (Expr::Name(target), Expr::Name(to), Expr::Name(from)) if target.id == from.id => Some(to.id.as_str()),
        _ => None,
    }
}
