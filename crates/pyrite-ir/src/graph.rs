//! The graph: nodes in the order they run.
//!
//! The shape is FX's: a node is a placeholder (an input), a `get_attr` (a constant tensor or nested graph by name), a
//! call, or the output. Every node has one value; a call with several results has a list, of which `getitem` nodes
//! pick. A graph is made by a [`Builder`] and changed by a [`crate::Patch`], by nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use pyrite_sym::SymEnv;
use pyrite_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Device, Meta, OpRef, Switch, Value};

/// A node by its number; numbers are not reused within a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// What a call node calls.
#[derive(Clone)]
pub enum Target {
    /// A known operator. Arguments are bound: one per parameter of its schema.
    Op(OpRef),
    /// `operator.getitem`: an item of a list. Arguments: the list, the index.
    GetItem,
    /// A function the registry does not know, by its dotted Python name. Arguments are kept as written.
    Opaque(Arc<str>),
}

impl Target {
    /// The dotted name.
    pub fn name(&self) -> &str {
        match self {
            Self::Op(op) => op.name(),
            Self::GetItem => "operator.getitem",
            Self::Opaque(name) => name,
        }
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// An input.
    Placeholder,
    /// A constant tensor or a nested graph, by its name in the graph.
    GetAttr(Arc<str>),
    /// A call.
    Call(Target),
    /// The results. Its single argument is what the graph returns.
    Output,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, unique in the graph, a Python identifier.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its arguments.
    pub args: Vec<Value<NodeId>>,
    /// Its arguments by name; only opaque calls have them, since known ones are bound.
    pub kwargs: Vec<(String, Value<NodeId>)>,
    /// What is known of its value; `None` before inference and for opaque calls without annotations.
    pub meta: Option<Value<Meta>>,
    /// The user's stack where it was captured.
    pub stack: Option<Arc<str>>,
    /// What the user called it: the name in the source it came from, or the module path.
    pub original: Option<Arc<str>>,
    /// Where it stands in the text it was read from.
    pub span: Option<Span>,
}

impl Node {
    /// A node with nothing but a name, a kind and arguments.
    pub fn new(name: impl Into<String>, kind: Kind, args: Vec<Value<NodeId>>) -> Self {
        Self { name: name.into(), kind, args, kwargs: Vec::new(), meta: None, stack: None, original: None, span: None }
    }

    /// Calls `f` with every node it uses, in order, as often as it does.
    pub fn each_input(&self, f: &mut dyn FnMut(NodeId)) {
        for value in self.args.iter().chain(self.kwargs.iter().map(|(_, v)| v)) {
            value.each(&mut |id| f(*id));
        }
    }
}

/// Two nodes are equal when they say the same; where they were read from does not matter.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.kind == other.kind && self.args == other.args && self.kwargs == other.kwargs
    }
}

/// A graph; see the module's text.
#[derive(Clone, Default)]
pub struct Graph {
    /// The class name in the text form; empty stands for the usual one.
    pub name: String,
    pub(crate) nodes: Vec<Option<Node>>,
    pub(crate) order: Vec<NodeId>,
    pub(crate) constants: BTreeMap<Arc<str>, Tensor>,
    pub(crate) parameters: BTreeSet<Arc<str>>,
    pub(crate) subgraphs: BTreeMap<Arc<str>, Graph>,
    /// The symbols of its sizes.
    pub env: SymEnv,
}

impl Graph {
    /// The nodes in the order they run.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> + Clone {
        self.order.iter().map(|id| (*id, self.node(*id)))
    }

    /// Whether an output that can have a gradient is computed from another output that can have one.
    pub fn has_dependent_outputs(&self) -> bool {
        let can_have_a_gradient = |id: &NodeId| match &self.node(*id).meta {
            Some(Value::Tensor(meta)) => !meta.dtype.is_integral(),
            _ => true,
        };
        let mut outputs = BTreeSet::new();
        self.output().each(&mut |id| {
            outputs.insert(*id);
        });
        outputs.retain(|id| self.node(*id).kind != Kind::Placeholder && can_have_a_gradient(id));
        let mut derived = BTreeSet::new();
        for (id, node) in self.nodes() {
            let mut depends = false;
            node.each_input(&mut |input| depends |= derived.contains(&input) || outputs.contains(&input));
            if depends {
                derived.insert(id);
            }
        }
        outputs.iter().any(|output| derived.contains(output))
    }

    /// The number of nodes, with placeholders and output.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no node at all.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A node.
    ///
    /// # Panics
    /// When the graph has no such node.
    pub fn node(&self, id: NodeId) -> &Node {
        self.get(id).expect("the graph has this node")
    }

    /// A node, if there is one of that number.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)?.as_ref()
    }

    /// An exclusive upper bound of the numbers of its nodes, for tables indexed by them.
    pub fn id_bound(&self) -> usize {
        self.nodes.len()
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes().find(|(_, node)| node.name == name).map(|(id, _)| id)
    }

    /// The inputs in order.
    pub fn placeholders(&self) -> impl Iterator<Item = (NodeId, &Node)> + Clone {
        self.nodes().filter(|(_, node)| node.kind == Kind::Placeholder)
    }

    /// What the graph returns; `Value::None` when it has no output node.
    pub fn output(&self) -> &Value<NodeId> {
        self.nodes()
            .find(|(_, node)| node.kind == Kind::Output)
            .and_then(|(_, node)| node.args.first())
            .unwrap_or(&Value::None)
    }

    /// The constant tensors by name.
    pub fn constants(&self) -> &BTreeMap<Arc<str>, Tensor> {
        &self.constants
    }

    /// The names of the constants whose gradients are wanted.
    pub fn parameters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.parameters.iter()
    }

    /// The nested graphs by name.
    pub fn subgraphs(&self) -> &BTreeMap<Arc<str>, Graph> {
        &self.subgraphs
    }

    /// For each node number, how often it is used.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.id_bound()];
        for (_, node) in self.nodes() {
            node.each_input(&mut |id| counts[id.0 as usize] += 1);
        }
        counts
    }

    /// The graph of the nodes that are kept, whose inputs must be kept too.
    #[must_use]
    pub fn filtered(&self, keep: &dyn Fn(NodeId) -> bool) -> Self {
        let mut graph = self.clone();
        graph.order.retain(|id| keep(*id));
        for (index, node) in graph.nodes.iter_mut().enumerate() {
            if !keep(NodeId(index as u32)) {
                *node = None;
            }
        }
        graph
    }

    /// The graph with every use of a node replaced by a use of the node that `instead` names, an earlier one.
    #[must_use]
    pub fn renamed(&self, instead: &dyn Fn(NodeId) -> NodeId) -> Self {
        let mut graph = self.clone();
        for node in graph.nodes.iter_mut().flatten() {
            for value in node.args.iter_mut().chain(node.kwargs.iter_mut().map(|(_, v)| v)) {
                *value = value.map(&mut |id| instead(*id));
            }
        }
        graph
    }

    /// Replaces every constant tensor.
    pub fn map_constants(&mut self, f: &dyn Fn(&Tensor) -> Tensor) {
        for tensor in self.constants.values_mut() {
            *tensor = f(tensor);
        }
        for nested in self.subgraphs.values_mut() {
            nested.map_constants(f);
        }
    }

    /// Replaces every element type that arguments and metadata name. Constants keep theirs.
    pub fn map_dtypes(&mut self, f: &dyn Fn(DType) -> DType) {
        fn rename(value: &mut Value<NodeId>, f: &dyn Fn(DType) -> DType) {
            match value {
                Value::DType(dtype) => *dtype = f(*dtype),
                Value::List(items) => items.iter_mut().for_each(|item| rename(item, f)),
                _ => {}
            }
        }
        for node in self.nodes.iter_mut().flatten() {
            // Autocast's own type is a setting, not that of a value.
            if Switch::of(node).is_none() {
                node.args.iter_mut().for_each(|arg| rename(arg, f));
            }
            if let Some(meta) = &mut node.meta {
                *meta = meta.map(&mut |m| Meta { dtype: f(m.dtype), ..m.clone() });
            }
        }
        for nested in self.subgraphs.values_mut() {
            nested.map_dtypes(f);
        }
    }

    /// Puts every tensor on one device: in metadata, in arguments that name a device, and where a tensor is made without
    /// naming one.
    pub fn put_on(&mut self, device: &Device) {
        fn rename(value: &mut Value<NodeId>, device: &Device) {
            match value {
                Value::Device(named) if named.to_string() != "meta" => *named = device.clone(),
                Value::List(items) => items.iter_mut().for_each(|item| rename(item, device)),
                _ => {}
            }
        }
        for node in self.nodes.iter_mut().flatten() {
            let values = node.args.iter_mut().chain(node.kwargs.iter_mut().map(|(_, value)| value));
            values.for_each(|value| rename(value, device));
            if Switch::of(node).is_some()
                && let Some(Value::Str(kind)) = node.args.first_mut()
            {
                *kind = device.kind().into();
            }
            let mut takes_tensors = false;
            node.each_input(&mut |_| takes_tensors = true);
            if let (false, Kind::Call(Target::Op(op))) = (takes_tensors, &node.kind) {
                let named = op.schema.params.iter().position(|param| &*param.name == "device");
                if let Some(unnamed @ Value::None) = named.and_then(|at| node.args.get_mut(at)) {
                    *unnamed = Value::Device(device.clone());
                }
            }
            if let Some(meta) = &mut node.meta {
                *meta = meta.map(&mut |m| Meta { device: device.clone(), ..m.clone() });
            }
        }
        for nested in self.subgraphs.values_mut() {
            nested.put_on(device);
        }
    }

    /// Whether a tensor is somewhere else than on the CPU.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere().is_some()
    }

    /// The first device of a tensor that is not the CPU.
    pub fn elsewhere(&self) -> Option<Device> {
        fn note(found: &mut Option<Device>, device: &Device) {
            if *device != Device::Cpu {
                found.get_or_insert_with(|| device.clone());
            }
        }
        let mut found = None;
        for (_, node) in self.nodes() {
            if let Some(meta) = &node.meta {
                meta.each(&mut |meta| note(&mut found, &meta.device));
            }
            for value in &node.args {
                let items = if let Value::List(items) = value { &items[..] } else { std::slice::from_ref(value) };
                for item in items {
                    if let Value::Device(device) = item {
                        note(&mut found, device);
                    }
                }
            }
            if found.is_some() {
                return found;
            }
        }
        self.subgraphs.values().find_map(Self::elsewhere)
    }

    /// The device of a constant, as the nodes that read it have it.
    pub fn device_of_constant(&self, name: &str) -> Device {
        let reads = |node: &&Node| matches!(&node.kind, Kind::GetAttr(read) if &**read == name);
        let mut metas =
            self.nodes().map(|(_, node)| node).filter(reads).filter_map(|node| node.meta.as_ref()?.as_tensor());
        metas.next().map(|meta| meta.device.clone()).unwrap_or_default()
    }

    /// Takes the constants of another graph for those of the same name.
    pub fn share_constants(&mut self, from: &Self) {
        for (name, tensor) in &mut self.constants {
            if let Some(other) = from.constants.get(name) {
                *tensor = other.clone();
            }
        }
        self.parameters.clone_from(&from.parameters);
    }

    /// Sets what is known of a node's value. Metadata describes a graph and does not change it.
    pub fn set_meta(&mut self, id: NodeId, meta: Value<Meta>) {
        if let Some(Some(node)) = self.nodes.get_mut(id.0 as usize) {
            node.meta = Some(meta);
        }
    }
}

/// Two graphs are equal when their nodes say the same in the same order, whatever their numbers, with equal nested
/// graphs and constants of the same names and types.
impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        let positions = |graph: &Self| -> HashMap<NodeId, NodeId> {
            graph.order.iter().enumerate().map(|(position, id)| (*id, NodeId(position as u32))).collect()
        };
        let renumber = |node: &Node, map: &HashMap<NodeId, NodeId>| {
            let mut node = node.clone();
            let mut renumbered = |id: &NodeId| map.get(id).copied().unwrap_or(*id);
            node.args = node.args.iter().map(|v| v.map(&mut renumbered)).collect();
            node.kwargs = node.kwargs.iter().map(|(k, v)| (k.clone(), v.map(&mut renumbered))).collect();
            node
        };
        let (ours, theirs) = (positions(self), positions(other));
        self.len() == other.len()
            && self.nodes().zip(other.nodes()).all(|((_, a), (_, b))| renumber(a, &ours) == renumber(b, &theirs))
            && self.subgraphs == other.subgraphs
            && self.constants.keys().eq(other.constants.keys())
            && self
                .constants
                .values()
                .zip(other.constants.values())
                .all(|(a, b)| a.dtype() == b.dtype() && a.shape() == b.shape())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} nodes)", self.len())
    }
}

/// Makes a graph, node by node. Names are made unique as FX does: `add`, `add_1`, `add_2`.
#[derive(Default)]
pub struct Builder {
    graph: Graph,
    names: FxHashMap<String, u32>,
}

impl Builder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// The graph's class name in the text form.
    pub fn set_name(&mut self, name: impl Into<String>) {
        self.graph.name = name.into();
    }

    /// The symbols of its sizes.
    pub fn env(&self) -> &SymEnv {
        &self.graph.env
    }

    /// A name like the wanted one that no node has yet.
    pub fn unique_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        loop {
            if !self.names.contains_key(&name) {
                self.names.insert(name.clone(), 0);
                return name;
            }
            let count = self.names.entry(wanted.to_owned()).or_default();
            *count += 1;
            name = format!("{wanted}_{count}");
        }
    }

    /// An exclusive upper bound of the numbers of the nodes so far.
    pub fn id_bound(&self) -> usize {
        self.graph.id_bound()
    }

    /// Adds a node under exactly its name; whether names are unique is for the verifier to say.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.names.entry(node.name.clone()).or_insert(0);
        let id = NodeId(self.graph.nodes.len() as u32);
        self.graph.nodes.push(Some(node));
        self.graph.order.push(id);
        id
    }

    /// Adds an input.
    pub fn placeholder(&mut self, name: &str, meta: Option<Value<Meta>>) -> NodeId {
        let name = self.unique_name(name);
        self.push(Node { meta, ..Node::new(name, Kind::Placeholder, Vec::new()) })
    }

    /// Adds a call of a known operator with bound arguments; the node is named after the operator.
    pub fn call(&mut self, op: &OpRef, args: Vec<Value<NodeId>>) -> NodeId {
        let stem = op.name().split('.').nth(1).unwrap_or("call").to_owned();
        let name = self.unique_name(&stem);
        self.push(Node::new(name, Kind::Call(Target::Op(op.clone())), args))
    }

    /// Adds an item of a list.
    pub fn get_item(&mut self, list: NodeId, index: i64) -> NodeId {
        let name = self.unique_name("getitem");
        self.push(Node::new(name, Kind::Call(Target::GetItem), vec![Value::Tensor(list), index.into()]))
    }

    /// Adds a constant tensor under a name, and the node that reads it.
    pub fn constant(&mut self, name: &str, tensor: Tensor) -> NodeId {
        self.add_constant(name, tensor);
        let node = self.unique_name(name);
        self.push(Node::new(node, Kind::GetAttr(name.into()), Vec::new()))
    }

    /// Adds a constant tensor without a node that reads it.
    pub fn add_constant(&mut self, name: &str, tensor: Tensor) {
        self.graph.constants.insert(name.into(), tensor);
    }

    /// Wants the gradient of a constant.
    pub fn add_parameter(&mut self, name: &str) {
        self.graph.parameters.insert(name.into());
    }

    /// The constants added so far.
    pub fn constants(&self) -> &BTreeMap<Arc<str>, Tensor> {
        &self.graph.constants
    }

    /// Adds a nested graph under a name.
    pub fn add_subgraph(&mut self, name: &str, graph: Graph) {
        self.graph.subgraphs.insert(name.into(), graph);
    }

    /// Adds the output.
    pub fn output(&mut self, value: Value<NodeId>) -> NodeId {
        let name = self.unique_name("output");
        self.push(Node::new(name, Kind::Output, vec![value]))
    }

    /// A node added before.
    pub fn node(&self, id: NodeId) -> &Node {
        self.graph.node(id)
    }

    /// Lets a call be one of another function.
    pub fn set_target(&mut self, id: NodeId, target: Target) {
        if let Some(Some(node)) = self.graph.nodes.get_mut(id.0 as usize) {
            node.kind = Kind::Call(target);
        }
    }

    /// Sets what is known of a node's value.
    pub fn set_meta(&mut self, id: NodeId, meta: Value<Meta>) {
        self.graph.set_meta(id, meta);
    }

    /// Takes over what a graph has besides its nodes: its name, nested graphs and the symbols of its sizes.
    pub fn copy_surroundings(&mut self, graph: &Graph) {
        self.graph.name.clone_from(&graph.name);
        self.graph.subgraphs.clone_from(&graph.subgraphs);
        self.graph.env = graph.env.clone();
        self.graph.parameters.clone_from(&graph.parameters);
    }

    /// The number that the next node gets.
    pub fn next_id(&self) -> NodeId {
        NodeId(self.graph.nodes.len() as u32)
    }

    /// Whether a node was taken out again.
    pub fn is_removed(&self, id: NodeId) -> bool {
        self.graph.get(id).is_none()
    }

    /// Copies nodes, in order, into a graph of their own: `inputs` become its placeholders, and the constants and nested
    /// graphs that they name go along.
    ///
    /// # Panics
    /// When a node uses one that is neither among `nodes` nor among `inputs`.
    pub fn extract(&self, nodes: &[NodeId], inputs: &[NodeId], output: &Value<NodeId>) -> Graph {
        let mut builder = Self::new();
        let mut moved: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for id in inputs {
            let node = self.node(*id);
            let placeholder = builder.placeholder(&node.name, node.meta.clone());
            moved.insert(*id, placeholder);
        }
        for id in nodes {
            let mut node = self.node(*id).clone();
            if let Kind::GetAttr(name) = &node.kind
                && let Some(constant) = self.graph.constants.get(name)
            {
                builder.add_constant(name, constant.clone());
            }
            for value in node.args.iter().chain(node.kwargs.iter().map(|(_, value)| value)) {
                value.each_graph(&mut |name| {
                    if let Some(nested) = self.graph.subgraphs.get(name) {
                        builder.add_subgraph(name, nested.clone());
                    }
                });
            }
            let renew = |value: &Value<NodeId>| value.map(&mut |id: &NodeId| moved[id]);
            node.args = node.args.iter().map(renew).collect();
            node.kwargs = node.kwargs.iter().map(|(key, value)| (key.clone(), renew(value))).collect();
            node.name = builder.unique_name(&node.name);
            let copy = builder.push(node);
            moved.insert(*id, copy);
        }
        builder.output(output.map(&mut |id| moved[id]));
        let mut graph = builder.finish();
        graph.env = self.graph.env.clone();
        graph
    }

    /// Takes nodes out again. Nothing that stays may use them.
    pub fn remove(&mut self, nodes: &FxHashSet<NodeId>) {
        self.graph.order.retain(|id| !nodes.contains(id));
        for id in nodes {
            if let Some(node) = self.graph.nodes.get_mut(id.0 as usize) {
                *node = None;
            }
        }
    }

    /// A name that no nested graph has yet.
    pub fn unique_subgraph(&self, wanted: &str) -> String {
        let names = (0..).map(|number| format!("{wanted}_{number}"));
        names.into_iter().find(|name| !self.graph.subgraphs.contains_key(name.as_str())).unwrap_or_default()
    }

    /// The nested graphs added so far.
    pub fn subgraphs(&self) -> &BTreeMap<Arc<str>, Graph> {
        &self.graph.subgraphs
    }

    /// Says where a node came from.
    pub fn set_origin(&mut self, id: NodeId, origin: &crate::Origin) {
        if let Some(Some(node)) = self.graph.nodes.get_mut(id.0 as usize) {
            node.stack.clone_from(&origin.stack);
            node.original.clone_from(&origin.original);
            node.span = origin.span;
        }
    }

    /// The graph.
    pub fn finish(self) -> Graph {
        self.graph
    }
}
