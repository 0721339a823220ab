//! Cuts a graph around calls that no backend knows, or whose results have sizes that only a run can tell.
//!
//! Known operators and opaque calls that follow each other make a part each; what takes or gives numbers or sizes that depend
//! on data is opaque. Parts run in the order of the graph and hand tensors on; gradients flow through each part's own
//! autograd.
//!
//! Invariants: no part writes to what another part sees, so graphs that write are not cut, nor are those with symbolic sizes
//! among their inputs, with switches of grad mode or autocast, or with hooks, which see gradients of the whole graph. A part of
//! the backend takes and gives nothing but tensors of known sizes.

use pyrite_ir::{Builder, Graph, Kind, Meta, Node, NodeId, Operator, StorageId, Switch, Tag, Target, Type, Value};
use pyrite_sym::SymInt;
use rustc_hash::{FxHashMap, FxHashSet};

/// Calls after which torch runs the whole graph.
const WHOLE: [&str; 7] = [
    "pyrite.higher_order.data",
    "pyrite.higher_order.parameter",
    "pyrite.higher_order.set_data",
    "pyrite.higher_order.register_hook",
    "pyrite.higher_order.enter_inference",
    "pyrite.higher_order.exit_inference",
    "pyrite.higher_order.version",
];

/// Who runs a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The backend that compiles the graph.
    Backend,
    /// Whoever knows the opaque calls.
    Opaque,
}

/// A part of a graph, and which values of the whole it takes and gives.
#[derive(Debug)]
pub struct Part {
    /// Who runs it.
    pub runner: Runner,
    /// The part as a graph of its own, which returns a list.
    pub graph: Graph,
    /// The values of the whole that are its placeholders.
    pub inputs: Vec<NodeId>,
    /// The values of the whole that it returns.
    pub outputs: Vec<NodeId>,
}

/// Whether a graph, or one inside of it, writes to a tensor or switches a mode.
fn writes(graph: &Graph) -> bool {
    let acts = |node: &Node| match &node.kind {
        Kind::Call(Target::Op(op)) => op.schema.is_mutable(),
        Kind::Call(Target::Opaque(_)) => Switch::of(node).is_some(),
        _ => false,
    };
    graph.nodes().any(|(_, node)| acts(node)) || graph.subgraphs().values().any(writes)
}

/// Whether a graph writes, while gradients are not recorded, to memory that they are recorded of elsewhere. Torch lets gradients
/// flow through such memory as if nobody had written to it, which no graph without writes expresses.
pub fn writes_behind_autograd(graph: &Graph) -> bool {
    let mut recording = true;
    let mut unrecorded: FxHashSet<StorageId> = FxHashSet::default();
    let mut recorded: FxHashSet<StorageId> = FxHashSet::default();
    let mut watched: FxHashSet<StorageId> = FxHashSet::default();
    for (_, node) in graph.nodes() {
        if let Some(Switch::Grad(on)) = Switch::of(node) {
            recording = on;
            continue;
        }
        let mut storages = Vec::new();
        node.each_input(&mut |input| storages.extend(storage_of(graph.node(input))));
        match (&node.kind, &node.meta) {
            (Kind::Placeholder | Kind::GetAttr(_), Some(Value::Tensor(meta))) if meta.requires_grad => {
                watched.insert(meta.storage);
            }
            (Kind::Call(target), _) => {
                let mutable = matches!(target, Target::Op(op) if op.schema.is_mutable());
                if recording {
                    let flows = storages.iter().any(|storage| watched.contains(storage));
                    if flows && target.name() != "aten.detach.default" {
                        watched.extend(storage_of(node));
                        watched.extend(storages.first().filter(|_| mutable));
                    }
                    recorded.extend(storages);
                } else if mutable {
                    unrecorded.extend(storages.first());
                }
            }
            _ => {}
        }
    }
    unrecorded.iter().any(|storage| recorded.contains(storage) && watched.contains(storage))
}

fn storage_of(node: &Node) -> Option<StorageId> {
    match &node.meta {
        Some(Value::Tensor(meta)) => Some(meta.storage),
        _ => None,
    }
}

/// The operators and inputs of a graph that are numbers, or tensors of sizes, that only a run can tell.
pub fn data_dependent(graph: &Graph) -> Vec<&str> {
    let calls = graph.nodes().filter_map(|(_, node)| match &node.kind {
        Kind::Placeholder if gives_unknown(node) => Some(&*node.name),
        Kind::Call(Target::Op(op)) if op.has(Tag::DataDependentShape) && gives_unknown(node) => Some(op.name()),
        Kind::Call(Target::Op(op)) if reads_number(graph, op, node) => Some(op.name()),
        _ => None,
    });
    let mut names: Vec<&str> = calls.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether an operator is given a tensor for a number, which torch reads when it runs.
fn reads_number(graph: &Graph, op: &Operator, node: &Node) -> bool {
    let is_tensor = |value: &Value<NodeId>| {
        let meta = value.as_tensor().and_then(|id| graph.node(*id).meta.as_ref());
        matches!(meta, Some(Value::Tensor(_)))
    };
    op.schema.params.iter().zip(&node.args).any(|(param, value)| param.ty == Type::Scalar && is_tensor(value))
}

/// Whether a node gives, or takes, a number or a size that only a run can tell.
fn depends_on_data(graph: &Graph, node: &Node) -> bool {
    let mut found = gives_unknown(node);
    found |= matches!(&node.kind, Kind::Call(Target::Op(op)) if reads_number(graph, op, node));
    node.each_input(&mut |input| found |= gives_unknown(graph.node(input)));
    found
}

fn is_unknown(value: &Value<Meta>, reads: bool) -> bool {
    match value {
        Value::Int(size) => size.is_unbacked(),
        Value::Bool(_) | Value::Float(_) | Value::Complex(_) => reads,
        Value::Tensor(meta) => meta.shape.iter().chain(&meta.stride).any(SymInt::is_unbacked),
        Value::List(items) => items.iter().any(|item| is_unknown(item, reads)),
        _ => false,
    }
}

fn gives_unknown(node: &Node) -> bool {
    let reads = matches!(&node.kind, Kind::Call(Target::Op(op)) if op.has(Tag::DataDependentShape));
    let compares = matches!(&node.meta, Some(Value::Bool(_))) && node.kind != Kind::Placeholder;
    compares || node.meta.as_ref().is_some_and(|meta| is_unknown(meta, reads))
}

/// The parts of a graph in the order in which they run; `None` where it cannot be cut.
pub fn partition(graph: &Graph) -> Option<Vec<Part>> {
    let numeric = |meta: &Meta| meta.shape.iter().chain(&meta.stride).all(|size| size.as_int().is_some());
    if graph.subgraphs().values().any(writes) {
        return None;
    }
    let mut wants_gradients = false;
    let mut runs: Vec<(Runner, Vec<NodeId>)> = Vec::new();
    let mut run_of: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (id, node) in graph.nodes() {
        match (&node.kind, &node.meta) {
            (Kind::Placeholder, Some(Value::Tensor(meta))) if numeric(meta) => wants_gradients |= meta.requires_grad,
            (Kind::Placeholder, _) => return None,
            (Kind::Call(target), _) => {
                let runner = match target {
                    Target::Op(op) if op.schema.is_mutable() => return None,
                    Target::Opaque(_) if Switch::of(node).is_some() => return None,
                    // A hook sees the gradient of all that is computed from a tensor, a mode all that is computed.
                    Target::Opaque(name) if WHOLE.contains(&&**name) => return None,
                    Target::Opaque(_) => Some(Runner::Opaque),
                    Target::Op(_) if depends_on_data(graph, node) => Some(Runner::Opaque),
                    Target::Op(_) => Some(Runner::Backend),
                    Target::GetItem => None,
                };
                // An item is picked where its list is made.
                let list = node.args.first().and_then(Value::as_tensor).and_then(|list| run_of.get(list).copied());
                let run = match (runner, list) {
                    (None, Some(run)) => run,
                    (runner, _) => {
                        let runner = runner.unwrap_or(Runner::Backend);
                        if runs.last().is_none_or(|(last, _)| *last != runner) {
                            runs.push((runner, Vec::new()));
                        }
                        runs.len() - 1
                    }
                };
                runs[run].1.push(id);
                run_of.insert(id, run);
            }
            (Kind::GetAttr(_) | Kind::Output, _) => {}
        }
    }
    let mut needed: FxHashSet<NodeId> = FxHashSet::default();
    graph.output().each(&mut |id| {
        needed.insert(*id);
    });
    let mut parts = Vec::with_capacity(runs.len());
    for (runner, nodes) in runs.iter().rev() {
        let outputs: Vec<NodeId> = nodes.iter().copied().filter(|id| needed.contains(id)).collect();
        parts.push(part(graph, *runner, nodes, outputs, wants_gradients)?);
        for id in nodes {
            graph.node(*id).each_input(&mut |input| {
                needed.insert(input);
            });
        }
    }
    parts.reverse();
    Some(parts)
}

/// The part of these nodes; `None` where it takes or gives something other than tensors.
fn part(graph: &Graph, runner: Runner, nodes: &[NodeId], outputs: Vec<NodeId>, wants_gradients: bool) -> Option<Part> {
    let mut builder = Builder::new();
    for (name, tensor) in graph.constants() {
        builder.add_constant(name, tensor.clone());
    }
    let mut moved: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut inputs = Vec::new();
    let mut constants = Vec::new();
    let mut known: FxHashSet<NodeId> = nodes.iter().copied().collect();
    for id in nodes {
        graph.node(*id).each_input(&mut |input| {
            if known.insert(input) {
                let constant = matches!(graph.node(input).kind, Kind::GetAttr(_));
                (if constant { &mut constants } else { &mut inputs }).push(input);
            }
        });
    }
    for id in &inputs {
        let node = graph.node(*id);
        let unknown = runner == Runner::Opaque && gives_unknown(node);
        let Some(Value::Tensor(meta)) = node.meta.as_ref().filter(|_| !unknown) else {
            if !unknown {
                return None;
            }
            moved.insert(*id, builder.placeholder(&node.name, None));
            continue;
        };
        let mut meta = meta.clone();
        if node.kind != Kind::Placeholder {
            meta.requires_grad = wants_gradients && (meta.dtype.is_float() || meta.dtype.is_complex());
            meta.is_leaf = false;
        }
        moved.insert(*id, builder.placeholder(&node.name, Some(Value::Tensor(meta))));
    }
    for id in constants.iter().chain(nodes) {
        let mut node = graph.node(*id).clone();
        for value in &node.args {
            value.each_graph(&mut |name| {
                if let Some(nested) = graph.subgraphs().get(name) {
                    builder.add_subgraph(name, nested.clone());
                }
            });
        }
        let renew = |value: &Value<NodeId>| value.map(&mut |id: &NodeId| moved[id]);
        node.args = node.args.iter().map(renew).collect();
        node.kwargs = node.kwargs.iter().map(|(key, value)| (key.clone(), renew(value))).collect();
        moved.insert(*id, builder.push(node));
    }
    let is_given = |id: &NodeId| match (runner, &graph.node(*id).meta) {
        (_, Some(Value::Tensor(_))) => true,
        (Runner::Opaque, _) => gives_unknown(graph.node(*id)),
        (Runner::Backend, _) => false,
    };
    if !outputs.iter().all(is_given) {
        return None;
    }
    builder.output(Value::List(outputs.iter().map(|id| Value::Tensor(moved[id])).collect()));
    Some(Part { runner, graph: builder.finish(), inputs, outputs })
}
