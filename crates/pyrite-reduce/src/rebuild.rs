//! Making a candidate from parts of another.

use pyrite_ir::{Builder, Graph, Kind, Meta, Node, NodeId, OpRef, StorageId, Target, Value};
use pyrite_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Candidate;
use crate::regions::live;

/// What a new candidate is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// What it returns.
    pub(crate) outputs: Vec<NodeId>,
    /// Nodes that become inputs, with their values.
    pub(crate) fed: FxHashMap<NodeId, Tensor>,
    /// Nodes whose uses become uses of another.
    pub(crate) instead: FxHashMap<NodeId, NodeId>,
    /// Nodes with other arguments.
    pub(crate) args: FxHashMap<NodeId, Vec<Value<NodeId>>>,
    /// Calls of other operators.
    pub(crate) operators: FxHashMap<NodeId, OpRef>,
    /// Switches that are left out, though calls follow them.
    pub(crate) dropped: FxHashSet<NodeId>,
    /// For nodes of a list, inputs of their own for the nodes they use; see [`Parts::cut`].
    pub(crate) cut: FxHashMap<(NodeId, NodeId), Tensor>,
}

/// The memory that a node's value lies in.
fn storages_of(node: &Node) -> Vec<StorageId> {
    let mut found = Vec::new();
    if let Some(meta) = &node.meta {
        meta.each(&mut |meta| found.push(meta.storage));
    }
    found
}

/// The memory that a node writes to.
fn written_by<'a>(graph: &'a Graph, node: &'a Node) -> impl Iterator<Item = StorageId> + 'a {
    let params = match &node.kind {
        Kind::Call(Target::Op(op)) => op.schema.params.as_slice(),
        _ => &[],
    };
    let written = params.iter().zip(&node.args).filter(|(param, _)| param.alias.as_ref().is_some_and(|a| a.written));
    written.flat_map(|(_, arg)| {
        let mut found = Vec::new();
        arg.each(&mut |id| found.extend(storages_of(graph.node(*id))));
        found
    })
}

impl Parts {
    /// All of a graph.
    pub(crate) fn all(graph: &Graph) -> Self {
        let mut outputs = Vec::new();
        graph.output().each(&mut |id| outputs.push(*id));
        Self { outputs, ..Self::default() }
    }

    fn resolve(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while let Some(next) = self.instead.get(&id) {
            id = *next;
        }
        id
    }

    /// The candidate: the parts, and what they need.
    pub(crate) fn build(&self, from: &Candidate) -> Candidate {
        let graph = &from.graph;
        let mut needed = vec![false; graph.id_bound()];
        let mut stack: Vec<NodeId> = self.outputs.iter().map(|id| self.resolve(*id)).collect();
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut needed[id.0 as usize], true) || self.fed.contains_key(&id) {
                continue;
            }
            self.each_use(graph, id, &mut |input| stack.push(input));
        }
        // What writes to the memory of a kept value matters, though nobody uses its result: also through a view that
        // nobody else uses. Parts that are cut have no memory in common.
        let moved: FxHashMap<StorageId, StorageId> = self
            .instead
            .iter()
            .flat_map(|(id, other)| storages_of(graph.node(*id)).into_iter().zip(storages_of(graph.node(*other))))
            .filter(|(from, to)| from != to)
            .collect();
        // The memory of what is replaced is the memory of what takes its place.
        let home = |storage: StorageId| {
            let mut storage = storage;
            for _ in 0..=moved.len() {
                storage = moved.get(&storage).copied().unwrap_or(storage);
            }
            storage
        };
        loop {
            let kept: FxHashSet<StorageId> = graph
                .nodes()
                .filter(|(id, _)| needed[id.0 as usize] && !self.fed.contains_key(id) && self.cut.is_empty())
                .flat_map(|(_, node)| storages_of(node))
                .map(home)
                .collect();
            for (id, node) in graph.nodes() {
                let is_there = needed[id.0 as usize] || self.fed.contains_key(&id) || self.instead.contains_key(&id);
                if !is_there && written_by(graph, node).any(|storage| kept.contains(&home(storage))) {
                    stack.push(id);
                }
            }
            if stack.is_empty() {
                break;
            }
            while let Some(id) = stack.pop() {
                if std::mem::replace(&mut needed[id.0 as usize], true) || self.fed.contains_key(&id) {
                    continue;
                }
                self.each_use(graph, id, &mut |input| stack.push(input));
            }
        }
        for switch in live(graph, &needed, &self.dropped) {
            needed[switch.0 as usize] = true;
        }
        let mut builder = Builder::new();
        builder.copy_surroundings(graph);
        let mut copies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        let mut inputs = Vec::new();
        for ((id, node), value) in graph.placeholders().zip(&from.inputs) {
            if needed[id.0 as usize] {
                let copy = builder.push(Node { args: Vec::new(), ..node.clone() });
                copies.insert(id, copy);
                inputs.push(value.clone());
            }
        }
        let mut edges: FxHashMap<(NodeId, NodeId), NodeId> = FxHashMap::default();
        // Where a program has gradients, those of its parts are wanted too.
        let differentiates =
            graph.placeholders().any(|(_, node)| matches!(&node.meta, Some(Value::Tensor(meta)) if meta.requires_grad));
        // What stands for a node is where the node's value is.
        let input = |builder: &mut Builder, node: &Node, tensor: &Tensor| {
            let requires_grad = differentiates && (tensor.dtype().is_float() || tensor.dtype().is_complex());
            let known = node.meta.as_ref().and_then(Value::as_tensor);
            let device = known.map(|meta| meta.device.clone()).unwrap_or_default();
            let meta = Meta { storage: StorageId::fresh(), requires_grad, device, ..Meta::of(tensor) };
            builder.placeholder(&node.name, Some(Value::Tensor(meta)))
        };
        // Inputs come first, so those that stand for nodes are made before any call.
        for (id, node) in graph.nodes() {
            if needed[id.0 as usize] {
                if let Some(tensor) = self.fed.get(&id) {
                    copies.insert(id, input(&mut builder, node, tensor));
                    inputs.push(Value::Tensor(tensor.clone()));
                    continue;
                }
                let mut uses = Vec::new();
                node.each_input(&mut |used| uses.push(used));
                for used in uses {
                    if let (Some(tensor), false) = (self.cut.get(&(id, used)), edges.contains_key(&(id, used))) {
                        edges.insert((id, used), input(&mut builder, graph.node(used), tensor));
                        inputs.push(Value::Tensor(tensor.clone()));
                    }
                }
            }
        }
        for (id, node) in graph.nodes() {
            let skipped = matches!(node.kind, Kind::Placeholder | Kind::Output) || copies.contains_key(&id);
            if !needed[id.0 as usize] || skipped {
                continue;
            }
            if let Kind::GetAttr(name) = &node.kind
                && let Some(tensor) = graph.constants().get(name)
            {
                builder.add_constant(name, tensor.clone());
            }
            let place = |used: &NodeId| {
                edges.get(&(id, *used)).or_else(|| copies.get(&self.resolve(*used))).copied().unwrap_or(*used)
            };
            let args = self.args.get(&id).unwrap_or(&node.args).iter().map(|v| v.map(&mut |u| place(u))).collect();
            let kwargs = match self.operators.get(&id) {
                Some(_) => Vec::new(),
                None => node.kwargs.iter().map(|(k, v)| (k.clone(), v.map(&mut |u| place(u)))).collect(),
            };
            let kind = self.operators.get(&id).map_or(node.kind.clone(), |op| Kind::Call(Target::Op(op.clone())));
            let name = builder.unique_name(&node.name);
            let copy = builder.push(Node { name, kind, args, kwargs, ..node.clone() });
            copies.insert(id, copy);
        }
        let outputs: Vec<NodeId> =
            self.outputs.iter().filter_map(|id| copies.get(&self.resolve(*id)).copied()).collect();
        builder.output(outputs.into());
        Candidate { graph: builder.finish(), inputs, seed: from.seed }
    }

    /// The nodes that a node uses in the new candidate.
    fn each_use(&self, graph: &Graph, id: NodeId, f: &mut dyn FnMut(NodeId)) {
        let node = graph.node(id);
        let args = self.args.get(&id).unwrap_or(&node.args);
        for value in args.iter().chain(node.kwargs.iter().map(|(_, v)| v)) {
            value.each(&mut |used| {
                if !self.cut.contains_key(&(id, *used)) {
                    f(self.resolve(*used));
                }
            });
        }
    }
}
