//! Splitting a joint graph into a forward and a backward graph.
//!
//! The forward graph returns the outputs and the values that the backward graph needs (the *saved* values); the
//! backward graph takes the saved values and the tangents and returns the gradients. Which values are saved is the
//! partitioner's choice: [`default_partition`] saves what the backward half reads; [`min_cut_partition`] saves as few
//! bytes as it can and recomputes the rest.
//!
//! Invariants: the two graphs together compute what the joint graph does; random numbers are drawn once, in the
//! forward graph; the backward graph computes a recomputed value right before its first use, so that few of them live
//! at a time; a symbolic size that the backward graph computes with is one of its inputs, or a size of one.

mod min_cut;
mod sizes;

use pyrite_ir::{Builder, Graph, Kind, Meta, Node, NodeId, Switch, Tag, Target, Value};
use pyrite_sym::{Expr, SymInt};

use crate::{Joint, Read};
pub use min_cut::{MinCut, min_cut_partition};
pub use sizes::unbound_symbols;

/// A joint graph in two; see the module's text.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Takes the primals; returns the outputs, then the saved values, then saved sizes.
    pub forward: Graph,
    /// Takes the saved values and sizes, then the tangents; returns a gradient or `None` for each primal.
    pub backward: Graph,
    /// How many outputs of the forward graph are outputs of the program.
    pub outputs: usize,
    /// For each tangent, the output it is the gradient of.
    pub tangents: Vec<usize>,
    /// How many bytes are saved, where sizes are known.
    pub saved_bytes: u64,
    /// For each saved value, the primal that it is and how it is read, where it is one.
    pub saved_primals: Vec<Option<(usize, Read)>>,
}

/// Saves every value of the forward half that the backward half reads.
pub fn default_partition(joint: &Joint) -> Partition {
    let roles = Roles::of(joint);
    let mut wanted = vec![false; joint.graph.id_bound()];
    for (id, node) in joint.graph.nodes() {
        if roles.needed_backward[id.0 as usize] && !roles.forward[id.0 as usize] {
            node.each_input(&mut |input| wanted[input.0 as usize] |= roles.forward[input.0 as usize]);
        }
    }
    for gradient in &roles.gradients {
        wanted[gradient.0 as usize] |= roles.forward[gradient.0 as usize];
    }
    let saved = roles.savable(joint, &wanted);
    split(joint, &roles, saved)
}

/// Which half of a joint graph its nodes belong to.
struct Roles {
    /// The outputs of the forward half, in order.
    outputs: Vec<Value<NodeId>>,
    /// The gradients, in order.
    returned: Vec<Value<NodeId>>,
    /// The nodes that are gradients.
    gradients: Vec<NodeId>,
    /// Needed for the outputs.
    forward: Vec<bool>,
    /// Depends on a tangent.
    tangent: Vec<bool>,
    /// Needed for a gradient.
    needed_backward: Vec<bool>,
}

impl Roles {
    fn of(joint: &Joint) -> Self {
        let graph = &joint.graph;
        let items = if let Value::List(items) = graph.output() { items.clone() } else { Vec::new() };
        let (outputs, returned) = items.split_at(joint.outputs.min(items.len()));
        let mut gradients = Vec::new();
        returned.iter().for_each(|value| value.each(&mut |id| gradients.push(*id)));
        let mut tangent = vec![false; graph.id_bound()];
        for (id, _) in graph.placeholders().skip(joint.primals) {
            tangent[id.0 as usize] = true;
        }
        for (id, node) in graph.nodes() {
            if node.kind != Kind::Output {
                node.each_input(&mut |input| tangent[id.0 as usize] |= tangent[input.0 as usize]);
            }
        }
        let needed = |roots: &[Value<NodeId>]| {
            let mut needed = vec![false; graph.id_bound()];
            roots.iter().for_each(|value| value.each(&mut |id| needed[id.0 as usize] = true));
            let nodes: Vec<(NodeId, &Node)> = graph.nodes().collect();
            for (id, node) in nodes.iter().rev() {
                if needed[id.0 as usize] {
                    node.each_input(&mut |input| needed[input.0 as usize] = true);
                }
            }
            needed
        };
        let mut forward = needed(outputs);
        // What draws random numbers or asserts something is part of the program, wherever its value goes.
        for (id, node) in graph.nodes() {
            if has_effect(node) && !tangent[id.0 as usize] {
                mark(graph, id, &mut forward);
            }
        }
        let needed_backward = needed(returned);
        Self { outputs: outputs.to_vec(), returned: returned.to_vec(), gradients, forward, tangent, needed_backward }
    }

    /// The wanted values that can be saved, in order. Lists cannot: their items are.
    fn savable(&self, joint: &Joint, wanted: &[bool]) -> Vec<NodeId> {
        let mut saved = Vec::new();
        for (id, node) in joint.graph.nodes() {
            let is_list = matches!(node.meta, Some(Value::List(_)));
            let of_wanted_list = matches!(node.kind, Kind::Call(Target::GetItem))
                && matches!(node.args.first(), Some(Value::Tensor(list)) if wanted[list.0 as usize]);
            if (wanted[id.0 as usize] && !is_list) || (of_wanted_list && self.needed_backward[id.0 as usize]) {
                saved.push(id);
            }
        }
        saved
    }
}

fn has_effect(node: &Node) -> bool {
    match &node.kind {
        Kind::Call(Target::Op(op)) => op.has(Tag::Random) || op.schema.returns.is_empty(),
        Kind::Call(Target::Opaque(_)) => Switch::of(node).is_none(),
        _ => false,
    }
}

/// Marks a node and all it depends on.
fn mark(graph: &Graph, id: NodeId, marks: &mut [bool]) {
    let mut stack = vec![id];
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut marks[id.0 as usize], true) {
            graph.node(id).each_input(&mut |input| stack.push(input));
        }
    }
}

/// The bytes of a value, if its sizes are known; a size that is not counts as its hint.
pub(crate) fn bytes_of(meta: Option<&Value<Meta>>) -> u64 {
    let mut bytes = 0u64;
    if let Some(meta) = meta {
        meta.each(&mut |m: &Meta| {
            let count = m.shape.iter().map(|d| d.hint().unwrap_or(1).max(0) as u64).product::<u64>();
            bytes += count * m.dtype.size() as u64;
        });
    }
    bytes
}

/// The two graphs for a choice of saved values, each in the order of the joint graph.
fn split(joint: &Joint, roles: &Roles, saved: Vec<NodeId>) -> Partition {
    let graph = &joint.graph;
    let mut needed = roles.forward.clone();
    for id in &saved {
        mark(graph, *id, &mut needed);
    }
    let mut forward = Copier::new(graph);
    for (id, _) in graph.placeholders().take(joint.primals) {
        forward.copy(id);
    }
    for (id, node) in graph.nodes() {
        if needed[id.0 as usize] && node.kind != Kind::Placeholder {
            forward.copy(id);
        }
    }
    let bound = sizes::bound_symbols(graph);
    let (mut backward, mut recomputed) = backward_half(joint, roles, &saved, &[]);
    let sizes: Vec<SymInt> = unbound_symbols(&backward)
        .into_iter()
        .filter(|name| bound.contains(name))
        .map(|name| graph.env.wrap(Expr::symbol(name)))
        .collect();
    if !sizes.is_empty() {
        (backward, recomputed) = backward_half(joint, roles, &saved, &sizes);
    }
    let outputs = roles.outputs.iter().map(|v| forward.value(v));
    let returned = outputs.chain(saved.iter().map(|id| forward.node(*id))).chain(sizes.into_iter().map(Value::Int));
    let returned = Value::List(returned.collect());
    let forward = forward.finish(returned);
    let saved_bytes = saved.iter().map(|id| bytes_of(graph.node(*id).meta.as_ref())).sum();
    let saved_primals = saved_primals(joint, roles, &saved, &recomputed);
    let tangents = joint.tangents.clone();
    Partition { forward, backward, outputs: joint.outputs, tangents, saved_bytes, saved_primals }
}

/// The backward graph for a choice of saved values and sizes, and which nodes of the forward half it computes again.
fn backward_half(joint: &Joint, roles: &Roles, saved: &[NodeId], sizes: &[SymInt]) -> (Graph, Vec<NodeId>) {
    let graph = &joint.graph;
    let mut backward = Copier::new(graph);
    for id in saved {
        backward.input(*id);
    }
    for size in sizes {
        backward.builder.placeholder("size", Some(Value::Int(size.clone())));
    }
    for (id, _) in graph.placeholders().skip(joint.primals) {
        backward.input(id);
    }
    for (id, node) in graph.nodes() {
        if roles.needed_backward[id.0 as usize] && roles.tangent[id.0 as usize] && node.kind != Kind::Placeholder {
            backward.copy_with_inputs(id);
        }
    }
    for id in &roles.gradients {
        backward.copy_with_inputs(*id);
    }
    let again = |id: &NodeId| roles.forward[id.0 as usize] && backward.copies[id.0 as usize].is_some();
    let recomputed: Vec<NodeId> = graph.nodes().map(|(id, _)| id).filter(again).collect();
    let returned = Value::List(roles.returned.iter().map(|v| backward.value(v)).collect());
    (backward.finish(returned), recomputed)
}

/// Which saved values are primals or views of them, and how they are read: a view that a derivative takes is one of what
/// it reads. What the backward half computes again of the forward half is what that computed then, so it reads the memory
/// of that time.
fn saved_primals(joint: &Joint, roles: &Roles, saved: &[NodeId], recomputed: &[NodeId]) -> Vec<Option<(usize, Read)>> {
    let mut again = vec![false; joint.graph.id_bound()];
    for id in recomputed.iter().filter(|id| !saved.contains(id)) {
        joint.graph.node(*id).each_input(&mut |input| again[input.0 as usize] = true);
    }
    let primals: Vec<NodeId> = joint.graph.placeholders().take(joint.primals).map(|(id, _)| id).collect();
    let primal = |id: &NodeId| {
        let (mut of, mut by_program) = (*id, false);
        while let Some(viewed) = viewed(joint.graph.node(of)) {
            by_program |= roles.forward[of.0 as usize];
            of = viewed;
        }
        let at = primals.iter().position(|primal| *primal == of)?;
        Some((
            at,
            match joint.reads[at] {
                _ if by_program => Read::Storage,
                Read::Itself if again[of.0 as usize] => Read::Both,
                read => read,
            },
        ))
    };
    saved.iter().map(primal).collect()
}

/// What a node is a view of.
fn viewed(node: &Node) -> Option<NodeId> {
    let Kind::Call(Target::Op(op)) = &node.kind else { return None };
    let is_view = op.schema.returns.iter().any(|given| given.alias.is_some());
    let at = op.schema.params.iter().position(|param| param.alias.is_some()).filter(|_| is_view)?;
    node.args.get(at).and_then(Value::as_tensor).copied()
}

/// Copies nodes of a graph into a new one.
struct Copier<'a> {
    from: &'a Graph,
    builder: Builder,
    copies: Vec<Option<NodeId>>,
}

impl<'a> Copier<'a> {
    fn new(from: &'a Graph) -> Self {
        let mut builder = Builder::new();
        builder.copy_surroundings(from);
        Self { from, builder, copies: vec![None; from.id_bound()] }
    }

    fn value(&self, value: &Value<NodeId>) -> Value<NodeId> {
        value.map(&mut |id| self.copies[id.0 as usize].expect("what a kept node uses is kept"))
    }

    fn node(&self, id: NodeId) -> Value<NodeId> {
        self.value(&Value::Tensor(id))
    }

    fn copy(&mut self, id: NodeId) {
        let node = self.from.node(id);
        let args = node.args.iter().map(|v| self.value(v)).collect();
        let kwargs = node.kwargs.iter().map(|(k, v)| (k.clone(), self.value(v))).collect();
        if let Kind::GetAttr(name) = &node.kind
            && let Some(tensor) = self.from.constants().get(name)
        {
            self.builder.add_constant(name, tensor.clone());
        }
        self.copies[id.0 as usize] = Some(self.builder.push(Node { args, kwargs, ..node.clone() }));
    }

    /// Copies a node after what it uses, in a stack of its own: graphs may be deep.
    fn copy_with_inputs(&mut self, id: NodeId) {
        let mut stack = vec![(id, false)];
        while let Some((id, ready)) = stack.pop() {
            if self.copies[id.0 as usize].is_some() {
                continue;
            }
            if ready {
                self.copy(id);
                continue;
            }
            stack.push((id, true));
            let mut inputs = Vec::new();
            self.from.node(id).each_input(&mut |input| inputs.push(input));
            stack.extend(inputs.into_iter().rev().map(|input| (input, false)));
        }
    }

    /// Makes a node an input.
    fn input(&mut self, id: NodeId) {
        let node = self.from.node(id);
        if self.copies[id.0 as usize].is_none() {
            let placeholder =
                Node { meta: node.meta.clone(), ..Node::new(node.name.clone(), Kind::Placeholder, Vec::new()) };
            self.copies[id.0 as usize] = Some(self.builder.push(placeholder));
        }
    }

    fn finish(mut self, returned: Value<NodeId>) -> Graph {
        self.builder.output(returned);
        self.builder.finish()
    }
}
