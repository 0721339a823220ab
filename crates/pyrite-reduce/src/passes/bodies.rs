//! Nested graphs, reduced where they stand.
//!
//! A failure may need the call of a nested graph, so that its nodes cannot be put in the place of the call. Its body is
//! then a program of its own, whose inputs are what the call hands over: the passes propose smaller bodies, and each is
//! put back. A body keeps its inputs and its results, because all graphs that a call chooses between have the same; an
//! input that stands for a node of the body is handed over by every call. Inputs that no body uses, and results that
//! nobody takes, go in proposals of their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use pyrite_ir::{Builder, Graph, Kind, Meta, Node, NodeId, StorageId, Target, Value};
use pyrite_tensor::Tensor;
use rustc_hash::FxHashMap;

use super::flags::without_regions;
use super::nested::{graphs_of, operands_of};
use super::{arguments, operators, structure};
use crate::Candidate;
use crate::driver::Search;
use crate::rebuild::Parts;
use crate::saved::{Keep, Saved};

pub(super) fn inside(search: &mut Search<'_>) {
    while !search.is_over() {
        let from = search.best().clone();
        if from.graph.subgraphs().is_empty() || search.first_failing(smaller(&from, search.keep())).is_none() {
            return;
        }
    }
}

/// The candidates with one nested graph smaller, those at any depth among them.
fn smaller(from: &Candidate, keep: Keep) -> Vec<Candidate> {
    let values = Saved::of(from, keep);
    let mut found = without_unused(from);
    let mut seen: BTreeSet<Arc<str>> = BTreeSet::new();
    for (id, call) in from.graph.nodes() {
        let Some(operands) = operands_of(call) else { continue };
        for name in graphs_of(&from.graph, call) {
            let Some(body) = from.graph.subgraphs().get(&name) else { continue };
            if !seen.insert(name.clone()) || !returns_tensors(body) {
                continue;
            }
            let value =
                |id: &NodeId| values.as_ref().and_then(|values| values.tensor(*id)).map(Value::Tensor).ok_or(());
            let given: Option<Vec<Value<Tensor>>> =
                operands.iter().map(|operand| operand.try_map(&mut |id| value(id)).ok()).collect();
            let known = given.is_some();
            let inputs = given.unwrap_or_else(|| vec![Value::None; body.placeholders().count()]);
            let body = annotated(Candidate { graph: body.clone(), inputs, seed: from.seed });
            let mut bodies = structure::bypassed(&body);
            bodies.extend(without_regions(&body));
            bodies.extend(operators::with_simpler(&body));
            bodies.extend(arguments::with_defaults(&body));
            if known && let Some(values) = Saved::of(&body, keep) {
                bodies.splice(..0, structure::fed(&body, &values));
            }
            bodies.extend(smaller(&body, keep));
            found.extend(ended(from, id, &name, &body));
            found.extend(bodies.into_iter().filter_map(|smaller| put_back(from, &name, &body, &smaller)));
        }
    }
    found
}

/// A body that knows of its nodes what follows from its inputs.
fn annotated(body: Candidate) -> Candidate {
    let mut known = body.clone();
    for ((id, node), value) in body.graph.placeholders().zip(&body.inputs) {
        if let (None, Value::Tensor(tensor)) = (&node.meta, value) {
            known.graph.set_meta(id, Value::Tensor(Meta::of(tensor)));
        }
    }
    let whole = known.graph.nodes().all(|(_, node)| node.meta.is_some() || matches!(node.kind, Kind::Output));
    if whole { known } else { arguments::inferred(known).unwrap_or(body) }
}

fn returns_tensors(body: &Graph) -> bool {
    matches!(body.output(), Value::List(items) if items.iter().all(|item| matches!(item, Value::Tensor(_))))
}

/// The nested graphs that calls choose between together with one, itself among them.
fn together_with(graph: &Graph, name: &Arc<str>) -> BTreeSet<Arc<str>> {
    let mut group = BTreeSet::from([name.clone()]);
    loop {
        let before = group.len();
        for (_, node) in graph.nodes() {
            let named = graphs_of(graph, node);
            if operands_of(node).is_some() && named.iter().any(|name| group.contains(name)) {
                group.extend(named);
            }
        }
        if group.len() == before {
            return group;
        }
    }
}

/// The candidates that end with a call of a nested graph that ends with one of its nodes. The others that are chosen
/// between return something of the same form.
fn ended(from: &Candidate, call: NodeId, name: &Arc<str>, body: &Candidate) -> Vec<Candidate> {
    let group = together_with(&from.graph, name);
    let inner = body.graph.nodes().filter(|(_, node)| matches!(node.kind, Kind::Call(_)));
    let returned = items(&body.graph);
    let forms = inner.filter_map(|(id, node)| Some((id, node.meta.as_ref()?.as_tensor()?)));
    let ends = forms.filter(|(id, _)| returned != [*id]).filter_map(|(end, form)| {
        let mut bodies: Vec<(Arc<str>, Graph)> = Vec::new();
        for other in &group {
            let graph = if other == name { &body.graph } else { from.graph.subgraphs().get(other)? };
            let fits = |id: NodeId, node: &Node| match (&node.meta, other == name) {
                (_, true) => id == end,
                (Some(Value::Tensor(meta)), false) => meta.shape == form.shape && meta.dtype == form.dtype,
                _ => false,
            };
            let (end, _) = graph.nodes().find(|(id, node)| fits(*id, node))?;
            let whole = Candidate {
                graph: graph.clone(),
                inputs: vec![Value::None; graph.placeholders().count()],
                seed: from.seed,
            };
            let part = Parts { outputs: vec![end], ..Parts::default() }.build(&whole);
            let inputs = graph.placeholders().map(|(_, node)| node.clone()).collect();
            bodies.push((other.clone(), with_inputs(&part.graph, inputs)));
        }
        let mut builder = Builder::new();
        builder.copy_surroundings(&from.graph);
        bodies.into_iter().for_each(|(name, body)| builder.add_subgraph(&name, body));
        let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for (id, node) in from.graph.nodes().take_while(|(id, _)| *id <= call) {
            let mut copy = copied(&mut builder, &from.graph, node, &copies);
            if id == call {
                copy.meta = Some(Value::List(vec![Value::Tensor(form.clone())]));
            }
            copies.insert(id, builder.push(copy));
        }
        let item = builder.get_item(*copies.get(&call)?, 0);
        builder.set_meta(item, Value::Tensor(form.clone()));
        builder.output(vec![item].into());
        let ended = Candidate { graph: builder.finish(), inputs: from.inputs.clone(), seed: from.seed };
        // Inputs may come after the call only where they are used after it.
        let given = ended.graph.placeholders().count() == ended.inputs.len();
        given.then(|| Parts::all(&ended.graph).build(&ended))
    });
    ends.collect()
}

/// The candidate with a smaller body in the place of another.
fn put_back(from: &Candidate, name: &Arc<str>, old: &Candidate, new: &Candidate) -> Option<Candidate> {
    let known: BTreeSet<&str> = old.graph.placeholders().map(|(_, node)| node.name.as_str()).collect();
    let added: Vec<(&Node, &Value<Tensor>)> = (new.graph.placeholders().zip(&new.inputs))
        .filter(|((_, node), _)| !known.contains(node.name.as_str()))
        .map(|((_, node), value)| (node, value))
        .collect();
    let fresh: Vec<Node> = added.iter().map(|(node, _)| (*node).clone()).collect();
    let group = together_with(&from.graph, name);
    let mut bodies: FxHashMap<Arc<str>, Graph> = FxHashMap::default();
    for other in &group {
        let before = from.graph.subgraphs().get(other)?;
        let after = if other == name { &new.graph } else { before };
        let inputs = before.placeholders().map(|(_, node)| node.clone()).chain(fresh.iter().cloned());
        bodies.insert(other.clone(), with_inputs(after, inputs.collect()));
    }
    let mut builder = Builder::new();
    builder.copy_surroundings(&from.graph);
    bodies.into_iter().for_each(|(name, body)| builder.add_subgraph(&name, body));
    let mut inputs = from.inputs.clone();
    let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut handed: Vec<Value<NodeId>> = Vec::new();
    for (id, node) in from.graph.placeholders() {
        copies.insert(id, builder.push(node.clone()));
    }
    for (node, value) in added {
        let meta = match &node.meta {
            Some(Value::Tensor(meta)) => Some(Value::Tensor(Meta { storage: StorageId::fresh(), ..meta.clone() })),
            other => other.clone(),
        };
        let name = builder.unique_name(&node.name);
        handed.push(Value::Tensor(builder.placeholder(&name, meta)));
        inputs.push(value.clone());
    }
    for (id, node) in from.graph.nodes().filter(|(_, node)| node.kind != Kind::Placeholder) {
        let mut copy = copied(&mut builder, &from.graph, node, &copies);
        let touched = operands_of(node).is_some() && graphs_of(&from.graph, node).iter().any(|n| group.contains(n));
        if touched && let Some(Value::List(operands)) = copy.args.last_mut() {
            operands.extend(handed.iter().cloned());
        }
        copies.insert(id, builder.push(copy));
    }
    Some(Candidate { graph: builder.finish(), inputs, seed: from.seed })
}

/// A node over the copies of what it uses; a constant comes along.
fn copied(builder: &mut Builder, graph: &Graph, node: &Node, copies: &FxHashMap<NodeId, NodeId>) -> Node {
    if let Kind::GetAttr(name) = &node.kind
        && let Some(tensor) = graph.constants().get(name)
    {
        builder.add_constant(name, tensor.clone());
    }
    let place = |value: &Value<NodeId>| value.map(&mut |id| copies.get(id).copied().unwrap_or(*id));
    Node {
        args: node.args.iter().map(place).collect(),
        kwargs: node.kwargs.iter().map(|(name, value)| (name.clone(), place(value))).collect(),
        ..node.clone()
    }
}

/// A graph with these inputs, in this order; those it has are taken by their names.
fn with_inputs(graph: &Graph, inputs: Vec<Node>) -> Graph {
    let mut builder = Builder::new();
    builder.copy_surroundings(graph);
    let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let own: FxHashMap<&str, NodeId> = graph.placeholders().map(|(id, node)| (node.name.as_str(), id)).collect();
    for input in inputs {
        let known = own.get(input.name.as_str()).copied();
        let mut name = input.name.clone();
        while known.is_none() && graph.find(&name).is_some() {
            name.push('_');
        }
        let copy = builder.push(Node { name, ..input });
        copies.extend(known.map(|id| (id, copy)));
    }
    for (id, node) in graph.nodes().filter(|(_, node)| node.kind != Kind::Placeholder) {
        let copy = copied(&mut builder, graph, node, &copies);
        copies.insert(id, builder.push(copy));
    }
    builder.finish()
}

/// The candidates in which a group of nested graphs has no inputs that none of it uses, and no results that nobody takes.
fn without_unused(from: &Candidate) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<Arc<str>> = BTreeSet::new();
    for name in from.graph.subgraphs().keys() {
        if seen.contains(name) {
            continue;
        }
        let group = together_with(&from.graph, name);
        found.extend(trimmed(from, &group));
        seen.extend(group);
    }
    found
}

fn trimmed(from: &Candidate, group: &BTreeSet<Arc<str>>) -> Option<Candidate> {
    let bodies: Vec<(&Arc<str>, &Graph)> =
        group.iter().map(|name| Some((name, from.graph.subgraphs().get(name)?))).collect::<Option<_>>()?;
    if !bodies.iter().all(|(_, body)| returns_tensors(body)) {
        return None;
    }
    let is_call = |node: &Node| {
        operands_of(node).is_some() && graphs_of(&from.graph, node).iter().any(|name| group.contains(name))
    };
    let calls: BTreeSet<NodeId> = from.graph.nodes().filter(|(_, node)| is_call(node)).map(|(id, _)| id).collect();
    let mut taken: BTreeSet<i64> = BTreeSet::new();
    for (_, node) in from.graph.nodes() {
        let mut uses = false;
        node.each_input(&mut |input| uses |= calls.contains(&input));
        match (&node.kind, node.args.get(1)) {
            (Kind::Call(Target::GetItem), Some(Value::Int(index))) if uses => taken.extend(index.as_int()),
            _ if uses => return None,
            _ => {}
        }
    }
    let results = bodies.iter().map(|(_, body)| items(body).len()).max()?;
    let kept_results: Vec<usize> = (0..results).filter(|index| taken.contains(&(*index as i64))).collect();
    let mut after: Vec<(Arc<str>, Graph)> = Vec::new();
    let mut used: BTreeSet<usize> = BTreeSet::new();
    for (name, body) in &bodies {
        let all = items(body);
        let outputs = kept_results.iter().map(|index| all.get(*index).copied()).collect::<Option<_>>()?;
        let inputs = vec![Value::None; body.placeholders().count()];
        let part = Parts { outputs, ..Parts::default() };
        let smaller = part.build(&Candidate { graph: (*body).clone(), inputs, seed: from.seed }).graph;
        for (index, (_, node)) in body.placeholders().enumerate() {
            used.extend(smaller.placeholders().any(|(_, other)| other.name == node.name).then_some(index));
        }
        after.push(((*name).clone(), smaller));
    }
    let count = bodies.iter().map(|(_, body)| body.placeholders().count()).max()?;
    if kept_results.is_empty() || kept_results.len() == results && used.len() == count {
        return None;
    }
    let mut builder = Builder::new();
    builder.copy_surroundings(&from.graph);
    for ((name, smaller), (_, body)) in after.iter().zip(&bodies) {
        let inputs = body.placeholders().enumerate().filter(|(index, _)| used.contains(index));
        builder.add_subgraph(name, with_inputs(smaller, inputs.map(|(_, (_, node))| node.clone()).collect()));
    }
    let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for (id, node) in from.graph.nodes() {
        let mut copy = copied(&mut builder, &from.graph, node, &copies);
        if calls.contains(&id) {
            if let Some(Value::List(operands)) = copy.args.last_mut() {
                let mut index = 0..;
                operands.retain(|_| index.next().is_some_and(|index| used.contains(&index)));
            }
            if let Some(Value::List(metas)) = &mut copy.meta {
                let mut index = 0..;
                metas.retain(|_| index.next().is_some_and(|index| kept_results.contains(&index)));
            }
        }
        if let (Kind::Call(Target::GetItem), [Value::Tensor(list), Value::Int(index)]) = (&node.kind, &node.args[..])
            && calls.contains(list)
        {
            let place = kept_results.iter().position(|kept| Some(*kept as i64) == index.as_int())?;
            copy.args[1] = (place as i64).into();
        }
        copies.insert(id, builder.push(copy));
    }
    let trimmed = Candidate { graph: builder.finish(), inputs: from.inputs.clone(), seed: from.seed };
    // What the call no longer takes may be used by nobody else.
    Some(Parts::all(&trimmed.graph).build(&trimmed))
}

fn items(body: &Graph) -> Vec<NodeId> {
    let mut items = Vec::new();
    body.output().each(&mut |id| items.push(*id));
    items
}
