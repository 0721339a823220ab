//! Regions of a graph that switches make: autocast, and gradients on or off.
//!
//! A switch is used by nobody, and yet matters to the calls after it. A candidate keeps the switches that hold for one of
//! its calls and drops the others; it ends in the state that the program it was made of ends in.

use pyrite_ir::{Builder, Graph, Kind, Node, NodeId, Switch, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Switches that go together, so that what is left without them is balanced: an entry with its exit, a switch of
/// gradients with the next one, or the only one there is.
pub(crate) fn regions(graph: &Graph) -> Vec<Vec<NodeId>> {
    let mut found = Vec::new();
    let mut grad: Vec<NodeId> = Vec::new();
    for (id, node) in graph.nodes() {
        match Switch::of(node) {
            Some(Switch::EnterAutocast(_)) => found.push([id].into_iter().chain(exit_of(graph, id)).collect()),
            Some(Switch::Grad(_)) => grad.push(id),
            Some(Switch::ExitAutocast) | None => {}
        }
    }
    found.extend(grad.windows(grad.len().clamp(1, 2)).map(<[NodeId]>::to_vec));
    found
}

/// How many switches there are, those of nested graphs too.
pub(crate) fn count(graph: &Graph) -> usize {
    let own = graph.nodes().filter(|(_, node)| Switch::of(node).is_some()).count();
    own + graph.subgraphs().values().map(count).sum::<usize>()
}

fn exit_of(graph: &Graph, entry: NodeId) -> Option<NodeId> {
    let leaves = |node: &Node| {
        Switch::of(node) == Some(Switch::ExitAutocast) && node.args.first() == Some(&Value::Tensor(entry))
    };
    graph.nodes().find(|(_, node)| leaves(node)).map(|(id, _)| id)
}

/// A graph that was traced anew, with its exits from regions tied to the entries again: an entry has no value that tracing
/// could carry over. Tracing keeps all switches in their order.
pub(crate) fn tied(traced: Graph, original: &Graph) -> Graph {
    let switches = |graph: &Graph| -> Vec<NodeId> {
        graph.nodes().filter(|(_, node)| Switch::of(node).is_some()).map(|(id, _)| id).collect()
    };
    let (old, new) = (switches(original), switches(&traced));
    if old.is_empty() {
        return traced;
    }
    let mut entries: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for (before, after) in old.iter().zip(&new) {
        let entry = original.node(*before).args.first().and_then(Value::as_tensor);
        if let Some(place) = entry.and_then(|entry| old.iter().position(|id| id == entry)) {
            entries.insert(*after, new[place]);
        }
    }
    let mut builder = Builder::new();
    builder.copy_surroundings(&traced);
    traced.constants().iter().for_each(|(name, tensor)| builder.add_constant(name, tensor.clone()));
    let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for (id, node) in traced.nodes() {
        let place = |value: &Value<NodeId>| value.map(&mut |id| copies.get(id).copied().unwrap_or(*id));
        let mut args: Vec<Value<NodeId>> = node.args.iter().map(place).collect();
        if let (Some(entry), Some(first)) = (entries.get(&id), args.first_mut()) {
            *first = Value::Tensor(copies[entry]);
        }
        let kwargs = node.kwargs.iter().map(|(name, value)| (name.clone(), place(value))).collect();
        let copy = builder.push(Node { args, kwargs, ..node.clone() });
        copies.insert(id, copy);
    }
    builder.finish()
}

/// The switches that hold for a call that is needed, but for those that are dropped.
pub(crate) fn live(graph: &Graph, needed: &[bool], dropped: &FxHashSet<NodeId>) -> Vec<NodeId> {
    let mut kept = Vec::new();
    // The calls so far, and after how many of them each open region and the last switch of gradients began.
    let mut calls = 0;
    let mut open: Vec<(NodeId, usize)> = Vec::new();
    let (mut holds, mut last) = (true, None::<(NodeId, bool, usize)>);
    let keep_if_used = |last: Option<(NodeId, bool, usize)>, holds: &mut bool, used: bool, kept: &mut Vec<NodeId>| {
        if let Some((id, state, _)) = last
            && used
            && state != *holds
        {
            kept.push(id);
            *holds = state;
        }
    };
    for (id, node) in graph.nodes() {
        match Switch::of(node) {
            Some(_) if dropped.contains(&id) => {}
            Some(Switch::Grad(state)) => {
                keep_if_used(last, &mut holds, last.is_some_and(|(.., since)| calls > since), &mut kept);
                last = Some((id, state, calls));
            }
            Some(Switch::EnterAutocast(_)) => open.push((id, calls)),
            Some(Switch::ExitAutocast) => {
                let entry = node.args.first().and_then(Value::as_tensor);
                if let Some(place) = open.iter().position(|(known, _)| Some(known) == entry) {
                    let (entry, since) = open.remove(place);
                    if calls > since {
                        kept.extend([entry, id]);
                    }
                }
            }
            None => calls += usize::from(matches!(node.kind, Kind::Call(_)) && needed[id.0 as usize]),
        }
    }
    keep_if_used(last, &mut holds, true, &mut kept);
    kept.extend(open.into_iter().filter(|(_, since)| calls > *since).map(|(id, _)| id));
    kept
}
