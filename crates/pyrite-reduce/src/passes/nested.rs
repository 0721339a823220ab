//! Nested graphs, put in the place of their calls.
//!
//! A call of a nested graph becomes the nodes of that graph; a choice between two becomes either. What is inside is then
//! reduced like everything else.

use std::sync::Arc;

use pyrite_ir::{Builder, Graph, Kind, Node, NodeId, Target, Value};
use rustc_hash::FxHashMap;

use super::arguments::inferred;
use crate::Candidate;
use crate::driver::Search;

pub(super) fn inline(search: &mut Search<'_>) {
    while !search.is_over() {
        let from = search.best().clone();
        let mut proposals = Vec::new();
        for (id, node) in from.graph.nodes() {
            let Some(operands) = operands_of(node) else { continue };
            for name in graphs_of(&from.graph, node) {
                proposals.extend(inlined(&from, id, &name, operands));
            }
        }
        if search.first_failing(proposals).is_none() {
            return;
        }
    }
}

/// What a call of nested graphs hands to them: its last argument.
pub(super) fn operands_of(node: &Node) -> Option<&[Value<NodeId>]> {
    match (&node.kind, node.args.last()) {
        (Kind::Call(Target::Op(op)), Some(Value::List(operands))) if op.name().starts_with("higher_order.") => {
            Some(operands)
        }
        _ => None,
    }
}

/// The nested graphs that a call names, by themselves or through nodes that read them.
pub(crate) fn graphs_of(graph: &Graph, node: &Node) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for arg in &node.args {
        match arg {
            Value::Graph(name) => names.push(name.clone()),
            Value::Tensor(id) => {
                if let Kind::GetAttr(name) = &graph.node(*id).kind
                    && graph.subgraphs().contains_key(name)
                {
                    names.push(name.clone());
                }
            }
            _ => {}
        }
    }
    names
}

/// The candidate with a nested graph's nodes in the place of a call.
fn inlined(from: &Candidate, call: NodeId, name: &str, operands: &[Value<NodeId>]) -> Option<Candidate> {
    let nested = from.graph.subgraphs().get(name)?;
    let mut builder = Builder::new();
    builder.copy_surroundings(&from.graph);
    for (inner, graph) in nested.subgraphs() {
        builder.add_subgraph(inner, graph.clone());
    }
    let mut copies: FxHashMap<NodeId, Value<NodeId>> = FxHashMap::default();
    for (id, node) in from.graph.nodes() {
        if id != call {
            let copy = copied(&mut builder, &from.graph, node, &copies)?;
            copies.insert(id, copy);
            continue;
        }
        let mut inside: FxHashMap<NodeId, Value<NodeId>> = FxHashMap::default();
        let mut given = operands.iter();
        let mut result = Value::None;
        for (id, node) in nested.nodes() {
            let copy = match &node.kind {
                Kind::Placeholder => resolved(given.next()?, &copies)?,
                Kind::Output => {
                    result = resolved(node.args.first()?, &inside)?;
                    continue;
                }
                _ => copied(&mut builder, nested, node, &inside)?,
            };
            inside.insert(id, copy);
        }
        copies.insert(call, result);
    }
    inferred(Candidate { graph: builder.finish(), inputs: from.inputs.clone(), seed: from.seed })
}

/// A node's copy, over copies of what it uses; an item of a list that is known is that item.
fn copied(
    builder: &mut Builder,
    graph: &Graph,
    node: &Node,
    copies: &FxHashMap<NodeId, Value<NodeId>>,
) -> Option<Value<NodeId>> {
    if let Kind::GetAttr(name) = &node.kind
        && let Some(tensor) = graph.constants().get(name)
    {
        builder.add_constant(name, tensor.clone());
    }
    let args: Vec<Value<NodeId>> = node.args.iter().map(|value| resolved(value, copies)).collect::<Option<_>>()?;
    if let (Kind::Call(Target::GetItem), Some(Value::List(items)), Some(Value::Int(index))) =
        (&node.kind, args.first(), args.get(1))
    {
        return items.get(usize::try_from(index.as_int()?).ok()?).cloned();
    }
    let kwargs = node
        .kwargs
        .iter()
        .map(|(name, value)| Some((name.clone(), resolved(value, copies)?)))
        .collect::<Option<_>>()?;
    let name = if matches!(node.kind, Kind::Placeholder) { node.name.clone() } else { builder.unique_name(&node.name) };
    Some(Value::Tensor(builder.push(Node { name, args, kwargs, ..node.clone() })))
}

/// A value with every node replaced by what stands for it.
fn resolved(value: &Value<NodeId>, copies: &FxHashMap<NodeId, Value<NodeId>>) -> Option<Value<NodeId>> {
    value.try_map(&mut |id| copies.get(id).cloned().ok_or(())).ok()
}
