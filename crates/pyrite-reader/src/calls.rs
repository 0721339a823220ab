//! Calls that a program makes one by one, instead of a text that is read.
//!
//! Whoever captures a running program meets the same calls that a text holds: `torch.relu(x)`, `x.sum(-1)`, `a @ b`,
//! `x[0, ..., None]`. [`write_calls`] binds them by the same rules and writes the same graph.
//!
//! Invariants: a call that is refused says why, and nothing that it wrote comes into the graph; every value that is
//! handed out has metadata; the graph that comes out has its inputs first and nothing that is neither used nor has an
//! effect.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pyrite_ir::{Builder, Graph, Kind, Meta, Node, NodeId, Operator, Registry, Switch, Target, Value};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::Tensor;
use ruff_text_size::TextRange;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::expr::Operand;
use crate::forward::{Forward, V};
use crate::module::Context;
use crate::problems::{Problems, Res};
use crate::source::Source;
use crate::{ReadOptions, Unknown, constant};

/// Why a call was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// One part of an index.
#[derive(Clone, Debug)]
pub enum IndexPart {
    /// `...`
    Ellipsis,
    /// A number, a slice, `None`, a tensor or a list.
    Value(V),
}

/// Writes a graph call by call; see the module's text.
pub struct Calls<'a> {
    forward: Forward<'a>,
    /// What refused calls had written before they were refused: no part of the graph.
    abandoned: Vec<Range<usize>>,
}

/// How far a graph was written at some time.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

/// Calls that are to become a nested graph: those from `begin` to `end`.
pub struct Body {
    /// The number of the first node.
    pub begin: NodeId,
    /// The number after the last node.
    pub end: NodeId,
    /// Its own inputs.
    pub inputs: Vec<NodeId>,
    /// What it gives.
    pub output: V,
}

/// Where errors would point to in a text.
fn nowhere() -> TextRange {
    TextRange::default()
}

/// Lets a program write calls.
pub fn write_calls<R>(registry: &Registry, write: impl FnOnce(&mut Calls<'_>) -> R) -> R {
    let source = Source::new("", None);
    let problems = Problems::default();
    let options = ReadOptions { unknown: Unknown::Refuse, ..ReadOptions::default() };
    let context = Context {
        registry,
        options: &options,
        source: &source,
        problems: &problems,
        env: SymEnv::new(),
        hints: Vec::new(),
        classes: FxHashMap::default(),
        aliases: FxHashMap::default(),
        storages: pyrite_ir::StorageSearch::default(),
        moved: std::cell::Cell::new(false),
    };
    write(&mut Calls { forward: Forward::new(&context, 0), abandoned: Vec::new() })
}

impl Calls<'_> {
    /// The symbols of the graph's sizes.
    pub fn env(&self) -> &SymEnv {
        &self.forward.cx.env
    }

    /// The user's stack of the calls to come.
    pub fn set_stack(&mut self, stack: Option<Arc<str>>) {
        self.forward.set_stack(stack);
    }

    /// An input.
    pub fn input(&mut self, name: &str, meta: Value<Meta>) -> NodeId {
        let name = self.forward.name(None, name);
        self.forward.push(Node { meta: Some(meta), ..Node::new(name, Kind::Placeholder, Vec::new()) })
    }

    /// A tensor that is known when the graph is made. What writes to it leaves the constant as it is.
    pub fn constant(&mut self, tensor: Tensor) -> Result<V, Refused> {
        self.checked(|forward| forward.fresh_constant(tensor, None, &nowhere()))
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        self.forward.builder.node(id)
    }

    /// What is known of a node's value; nothing of one that was taken out of the graph.
    pub fn meta(&self, id: NodeId) -> Option<&Value<Meta>> {
        if self.is_nested(id) { None } else { self.forward.meta(id) }
    }

    /// Whether a function of that dotted name can be called at all.
    pub fn knows(&mut self, path: &str) -> bool {
        self.forward.is_known(path)
    }

    /// Calls a function by its dotted name, such as `torch.nn.functional.gelu`.
    pub fn call(&mut self, path: &str, args: Vec<V>, kwargs: Vec<(String, V)>) -> Result<V, Refused> {
        if Switch::is_name(path) {
            let node = Node { kwargs, ..Node::new("", Kind::Call(Target::Opaque(path.into())), args) };
            let name = self.forward.name(None, path.rsplit('.').next().unwrap_or("switch"));
            return Ok(Value::Tensor(self.forward.push(Node { name, meta: Some(Value::None), ..node })));
        }
        if constant::is_maker(path)
            && let Some(tensor) = self.checked(|f| constant::from_arguments(f, path, &args, &kwargs, &nowhere()))?
        {
            return self.constant(tensor);
        }
        self.checked(|forward| {
            let callee = forward.resolve(path);
            forward.invoke(&callee, args, kwargs, None, &nowhere())
        })
    }

    /// Calls a function that no operator stands for, by its dotted name. What it gives is told by whoever knows it.
    pub fn opaque(&mut self, path: &str, args: Vec<V>, kwargs: Vec<(String, V)>, meta: Value<Meta>) -> V {
        let node = Node { kwargs, meta: Some(meta), ..Node::new("", Kind::Call(Target::Opaque(path.into())), args) };
        let name = self.forward.name(None, path.rsplit('.').next().unwrap_or("call"));
        Value::Tensor(self.forward.push(Node { name, ..node }))
    }

    /// Calls an operator of the registry whose result is told by whoever calls it; nothing where there is no such operator.
    pub fn operation(&mut self, name: &str, args: Vec<V>, meta: Value<Meta>) -> Option<NodeId> {
        let op = self.forward.cx.registry.get(name)?.clone();
        let stem = name.split('.').nth(1).unwrap_or("call");
        let name = self.forward.name(None, stem);
        Some(self.forward.push(Node { meta: Some(meta), ..Node::new(name, Kind::Call(Target::Op(op)), args) }))
    }

    /// Calls a method of a tensor.
    pub fn method(&mut self, object: V, name: &str, args: Vec<V>, kwargs: Vec<(String, V)>) -> Result<V, Refused> {
        self.checked(|forward| forward.method(object, name, args, kwargs, None, &nowhere()))
    }

    /// Applies a function of Python's `operator` module.
    pub fn operator(&mut self, name: &str, args: Vec<V>) -> Result<V, Refused> {
        self.call(&format!("operator.{name}"), args, Vec::new())
    }

    /// An attribute of a tensor, such as `x.mT`.
    pub fn attribute(&mut self, object: &V, name: &str) -> Result<V, Refused> {
        self.checked(|forward| forward.tensor_attribute(object, name, None, &nowhere()))
    }

    /// `object[parts]`.
    pub fn get_item(&mut self, object: &V, parts: Vec<IndexPart>) -> Result<V, Refused> {
        self.checked(|forward| forward.index_parts(object, parts, None, &nowhere()))
    }

    /// `object[parts] = new`.
    pub fn set_item(&mut self, object: &V, parts: Vec<IndexPart>, new: V) -> Result<(), Refused> {
        self.checked(|forward| forward.store_parts(object, parts, new, None, &nowhere()).map(|()| Value::None))
            .map(|_| ())
    }

    /// Where a nested graph begins: the number of its first node.
    pub fn begin_nested(&self) -> NodeId {
        self.forward.builder.next_id()
    }

    /// Whether a node has become part of a nested graph.
    pub fn is_nested(&self, id: NodeId) -> bool {
        self.forward.builder.is_removed(id)
    }

    /// What the calls since `body.begin` use of what was there before, and of inputs of the whole graph.
    pub fn captured(&self, body: &Body) -> Vec<NodeId> {
        let mut captured = Vec::new();
        let mut see = |id: NodeId| {
            let inside = id >= body.begin && self.node(id).kind != Kind::Placeholder;
            if !inside && !body.inputs.contains(&id) && !captured.contains(&id) {
                captured.push(id);
            }
        };
        for id in self.needed_of(body) {
            self.node(id).each_input(&mut see);
        }
        body.output.each(&mut |id| see(*id));
        captured
    }

    /// Whether a call was taken back.
    pub fn is_abandoned(&self, id: NodeId) -> bool {
        self.abandoned.iter().any(|calls| calls.contains(&(id.0 as usize)))
    }

    /// The nodes of a body that its result needs, or that have an effect.
    fn needed_of(&self, body: &Body) -> Vec<NodeId> {
        let mut needed: FxHashSet<NodeId> = FxHashSet::default();
        body.output.each(&mut |id| {
            needed.insert(*id);
        });
        let mut nodes = Vec::new();
        for id in (body.begin.0..body.end.0).rev().map(NodeId) {
            if self.is_nested(id) || self.node(id).kind == Kind::Placeholder {
                continue;
            }
            let node = self.node(id);
            let acts = !self.is_abandoned(id) && (Switch::of(node).is_some() || has_effect(node));
            if needed.contains(&id) || acts {
                node.each_input(&mut |input| {
                    needed.insert(input);
                });
                nodes.push(id);
            }
        }
        nodes.reverse();
        nodes
    }

    /// Makes a nested graph of the calls of a body, whose inputs are the body's and then `captured`, and takes them out of
    /// this one. Returns its name.
    pub fn end_nested(&mut self, body: &Body, captured: &[NodeId], name: &str) -> Arc<str> {
        let nodes = self.needed_of(body);
        let inputs: Vec<NodeId> = body.inputs.iter().chain(captured).copied().collect();
        let mut graph = self.forward.builder.extract(&nodes, &inputs, &body.output);
        graph.env = self.env().clone();
        let name: Arc<str> = self.forward.builder.unique_subgraph(name).into();
        self.forward.builder.add_subgraph(&name, graph);
        self.forget(body);
        name
    }

    /// Takes the calls of a body out of the graph.
    pub fn forget(&mut self, body: &Body) {
        let inside = |id: &NodeId| {
            !self.is_nested(*id) && (self.node(*id).kind != Kind::Placeholder || body.inputs.contains(id))
        };
        let gone = (body.begin.0..body.end.0).map(NodeId).filter(inside).collect();
        self.forward.builder.remove(&gone);
    }

    /// The nested graphs so far.
    pub fn nested(&self) -> &BTreeMap<Arc<str>, Graph> {
        self.forward.builder.subgraphs()
    }

    fn checked<T: Checked>(&mut self, call: impl FnOnce(&mut Forward<'_>) -> Res<T>) -> Result<T, Refused> {
        let mark = self.mark();
        let made = call(&mut self.forward);
        let problems = self.forward.cx.problems.take_errors();
        let checked = match (made, problems.into_iter().next()) {
            (Ok(value), None) => {
                self.name_unknown(mark);
                value.check(&self.forward).map(|()| value).map_err(Refused)
            }
            (_, Some(problem)) => Err(Refused(problem.message)),
            (Err(_), None) => Err(Refused("the call is not one that a graph can hold".to_owned())),
        };
        if checked.is_err() {
            self.abandon_since(mark);
        }
        checked
    }

    /// Gives what only a run can tell of the calls since a mark a symbol of this graph: inference does not know the symbols
    /// of earlier calls.
    fn name_unknown(&mut self, mark: Mark) {
        let nameless = |meta: &Value<Meta>| sizes(meta).iter().any(is_nameless);
        let mut named: Option<SymInt> = None;
        for id in (mark.0..self.forward.builder.id_bound()).map(|id| NodeId(id as u32)) {
            let Some(meta) = self.forward.meta(id).filter(|meta| nameless(meta)).cloned() else { continue };
            let low = if matches!(meta, Value::Int(_)) { i64::MIN } else { 0 };
            let symbol = named.get_or_insert_with(|| unknown(&self.forward.cx.env, low));
            let meta = with_sizes(&meta, &|size| size.renamed(NAMELESS, symbol));
            self.forward.builder.set_meta(id, meta);
        }
    }

    /// Lets a node call a function that no operator stands for, by its dotted name, on the same arguments.
    pub fn call_instead(&mut self, id: NodeId, path: &str) {
        self.forward.builder.set_target(id, Target::Opaque(path.into()));
    }

    /// Says what a node gives.
    pub fn set_meta(&mut self, id: NodeId, meta: Value<Meta>) {
        self.forward.builder.set_meta(id, meta);
    }

    /// A symbol for a size that only a run can tell.
    pub fn unknown_size(&self) -> SymInt {
        unknown(&self.forward.cx.env, 0)
    }

    /// A symbol for an integer that only a run can tell.
    pub fn unknown_number(&self) -> SymInt {
        unknown(&self.forward.cx.env, i64::MIN)
    }

    /// A place in the graph, for [`abandon_since`](Self::abandon_since).
    pub fn mark(&self) -> Mark {
        Mark(self.forward.builder.id_bound())
    }

    /// Takes back every call since a mark, with its effects. Nothing that follows may use their results.
    pub fn abandon_since(&mut self, mark: Mark) {
        self.abandoned.push(mark.0..self.forward.builder.id_bound());
    }

    /// Takes back one call, with its effect. Nothing may use its results.
    pub fn abandon(&mut self, call: NodeId) {
        self.abandoned.push(call.0 as usize..call.0 as usize + 1);
    }

    /// The graph with what it returns: inputs in the given order first, then what the results need and what has an
    /// effect. Inputs that nothing needs are left out, except those that name a symbol; which were kept is returned.
    pub fn finish(&mut self, inputs: &[NodeId], naming: &[usize], output: Value<NodeId>) -> (Graph, Vec<usize>) {
        let written = std::mem::take(&mut self.forward.builder).finish();
        let mut needed = vec![false; written.id_bound()];
        output.each(&mut |id| needed[id.0 as usize] = true);
        let nodes: Vec<(NodeId, &Node)> = written.nodes().collect();
        for (id, node) in nodes.iter().rev() {
            let place = id.0 as usize;
            let is_abandoned = self.abandoned.iter().any(|calls| calls.contains(&place));
            needed[place] |= !is_abandoned && (Switch::of(node).is_some() || has_effect(node));
            if needed[place] {
                node.each_input(&mut |input| needed[input.0 as usize] = true);
            }
        }
        let mut builder = Builder::new();
        for (name, tensor) in written.constants() {
            builder.add_constant(name, tensor.clone());
        }
        let mut moved = vec![NodeId(u32::MAX); written.id_bound()];
        let mut kept = Vec::new();
        for (index, id) in inputs.iter().enumerate() {
            if needed[id.0 as usize] || naming.contains(&index) {
                moved[id.0 as usize] = builder.push(written.node(*id).clone());
                kept.push(index);
            }
        }
        for (id, node) in nodes {
            if needed[id.0 as usize] && node.kind != Kind::Placeholder {
                let renew = |value: &V| value.map(&mut |id: &NodeId| moved[id.0 as usize]);
                let mut node = node.clone();
                for value in &node.args {
                    value.each_graph(&mut |name| {
                        if let Some(nested) = written.subgraphs().get(name) {
                            builder.add_subgraph(name, nested.clone());
                        }
                    });
                }
                node.args = node.args.iter().map(renew).collect();
                node.kwargs = node.kwargs.iter().map(|(key, value)| (key.clone(), renew(value))).collect();
                moved[id.0 as usize] = builder.push(node);
            }
        }
        builder.output(output.map(&mut |id| moved[id.0 as usize]));
        let mut graph = builder.finish();
        graph.env = self.env().clone();
        (graph, kept)
    }
}

/// What inference calls a size that only a run can tell; symbols of graphs have other names.
const NAMELESS: &str = "u0";

/// A symbol for what only a run can tell.
fn unknown(env: &SymEnv, low: i64) -> SymInt {
    let count = env.symbols().iter().filter(|symbol| symbol.hint.is_none()).count();
    env.named(&format!("u{}", count + 1), None, low)
}

fn is_nameless(size: &SymInt) -> bool {
    matches!(size, SymInt::Expr(node) if node.0.symbols().iter().any(|symbol| &**symbol == NAMELESS))
}

/// The sizes, strides and numbers of a value.
fn sizes(value: &Value<Meta>) -> Vec<SymInt> {
    match value {
        Value::Int(size) => vec![size.clone()],
        Value::Tensor(meta) => meta.shape.iter().chain(&meta.stride).chain([&meta.offset]).cloned().collect(),
        Value::List(items) => items.iter().flat_map(sizes).collect(),
        _ => Vec::new(),
    }
}

/// A value with other sizes, strides and numbers.
fn with_sizes(value: &Value<Meta>, of: &dyn Fn(&SymInt) -> SymInt) -> Value<Meta> {
    match value {
        Value::Int(size) => Value::Int(of(size)),
        Value::Tensor(meta) => {
            let mut meta = meta.clone();
            for size in meta.shape.iter_mut().chain(&mut meta.stride).chain([&mut meta.offset]) {
                *size = of(size);
            }
            Value::Tensor(meta)
        }
        Value::List(items) => Value::List(items.iter().map(|item| with_sizes(item, of)).collect()),
        other => other.clone(),
    }
}

/// Whether a call does more than return a value.
/// Whether a norm in training writes to the statistics that it is given, which its schema does not say.
fn updates_statistics(op: &Operator, node: &Node) -> bool {
    let given = |name: &str| {
        let named = op.schema.params.iter().zip(&node.args).find(|(param, _)| &*param.name == name);
        named.map(|(_, value)| value)
    };
    let training = given("training").or_else(|| given("use_input_stats"));
    matches!(training, Some(Value::Bool(true))) && matches!(given("running_mean"), Some(Value::Tensor(_)))
}

fn has_effect(node: &Node) -> bool {
    match &node.kind {
        Kind::Call(Target::Op(op)) => {
            op.schema.is_mutable() || op.has(pyrite_ir::Tag::Random) || updates_statistics(op, node)
        }
        // Nobody knows what an opaque call does beside.
        Kind::Call(Target::Opaque(_)) => true,
        _ => false,
    }
}

/// What a call may hand out.
trait Checked {
    fn check(&self, forward: &Forward<'_>) -> Result<(), String>;
}

impl Checked for V {
    fn check(&self, forward: &Forward<'_>) -> Result<(), String> {
        match self {
            Value::List(items) => items.iter().try_for_each(|item| item.check(forward)),
            value if forward.operand(value) == Operand::Unknown => {
                Err("the call's result cannot be inferred from its arguments alone".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Checked for Option<Tensor> {
    fn check(&self, _: &Forward<'_>) -> Result<(), String> {
        Ok(())
    }
}
