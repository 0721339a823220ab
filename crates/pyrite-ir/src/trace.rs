//! Writing calls down as a graph.
//!
//! A [`Tracer`] is the emitter that appends a node for every call. It infers what each call returns, picks the items of
//! calls with several results, and gives new nodes the [`Origin`] of what is being traced, so that a graph made
//! by any number of rewrites still knows the Python lines it came from.
//!
//! Invariants: every handle stands for a node whose value is a tensor, or for a Python number, which appears in the
//! graph as a literal wherever it is used; metadata of every node is set.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::args::tensors_from_numbers;
use crate::graph::Span;
use crate::infer::infer;
use crate::{Builder, Emit, Graph, Handle, Meta, Node, NodeId, OpError, OpRef, Registry, Tag, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::{Scalar, Tensor};

/// Where a traced call came from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The user's stack.
    pub stack: Option<Arc<str>>,
    /// What the user called it.
    pub original: Option<Arc<str>>,
    /// Where it stands in the text it was read from.
    pub span: Option<Span>,
}

impl Origin {
    /// The origin of a node. A node that came from no other is its own original.
    pub fn of(node: &Node) -> Self {
        let original = node.original.clone().unwrap_or_else(|| node.name.as_str().into());
        Self { stack: node.stack.clone(), original: Some(original), span: node.span }
    }
}

/// Appends nodes; see the module's text.
pub struct Tracer<'a> {
    registry: &'a Registry,
    builder: Builder,
    entries: Vec<Entry>,
    handles: FxHashMap<NodeId, Handle>,
    /// The nodes whose values are symbolic numbers.
    numbers: FxHashMap<String, NodeId>,
    /// Where the calls made from now on come from.
    pub origin: Origin,
}

struct Entry {
    value: Value<NodeId>,
    meta: Meta,
}

impl<'a> Tracer<'a> {
    /// An empty graph over some operators.
    pub fn new(registry: &'a Registry) -> Self {
        Self {
            registry,
            builder: Builder::new(),
            entries: Vec::new(),
            handles: FxHashMap::default(),
            numbers: FxHashMap::default(),
            origin: Origin::default(),
        }
    }

    /// The operators.
    pub fn registry(&self) -> &'a Registry {
        self.registry
    }

    /// The graph under construction, for what is not a call.
    pub fn builder(&mut self) -> &mut Builder {
        &mut self.builder
    }

    /// Adds an input that is a tensor.
    pub fn placeholder(&mut self, name: &str, meta: Meta) -> Handle {
        let id = self.builder.placeholder(name, Some(Value::Tensor(meta.clone())));
        self.adopt(id, meta)
    }

    /// Adds an input that is a number or nothing; in calls it stands for its value.
    pub fn plain_placeholder(&mut self, name: &str, meta: Option<Value<Meta>>) -> NodeId {
        let id = self.builder.placeholder(name, meta.clone());
        self.name_number(id, meta.as_ref());
        id
    }

    /// Lets a symbolic number that a node holds be referred to by the node.
    fn name_number(&mut self, id: NodeId, meta: Option<&Value<Meta>>) {
        if let Some(Value::Int(size @ SymInt::Expr(_))) = meta {
            self.numbers.entry(size.to_string()).or_insert(id);
        }
    }

    /// Adds a constant tensor.
    pub fn constant(&mut self, name: &str, tensor: &Tensor) -> Handle {
        let meta = Meta { storage: crate::StorageId::fresh(), ..Meta::of(tensor) };
        let id = self.builder.constant(name, tensor.clone());
        self.builder.set_meta(id, Value::Tensor(meta.clone()));
        self.adopt(id, meta)
    }

    /// A handle for a node that holds a tensor.
    pub fn adopt(&mut self, id: NodeId, meta: Meta) -> Handle {
        if let Some(handle) = self.handles.get(&id) {
            return *handle;
        }
        let handle = self.keep(Value::Tensor(id), meta);
        self.handles.insert(id, handle);
        handle
    }

    fn keep(&mut self, value: Value<NodeId>, meta: Meta) -> Handle {
        self.entries.push(Entry { value, meta });
        Handle(self.entries.len() as u32 - 1)
    }

    /// The node a handle stands for; `None` for a number.
    pub fn node(&self, handle: Handle) -> Option<NodeId> {
        self.entries[handle.0 as usize].value.as_tensor().copied()
    }

    /// What a handle is in the graph.
    pub fn value(&self, handle: Handle) -> &Value<NodeId> {
        &self.entries[handle.0 as usize].value
    }

    /// A value of handles as it stands in the graph.
    pub fn lower(&self, value: &Value<Handle>) -> Value<NodeId> {
        let lowered: Result<_, std::convert::Infallible> = value.try_map(&mut |h| Ok(self.value(*h).clone()));
        let Ok(value) = lowered;
        self.with_numbers(value)
    }

    fn with_numbers(&self, value: Value<NodeId>) -> Value<NodeId> {
        match value {
            Value::Int(size @ SymInt::Expr(_)) => match self.numbers.get(&size.to_string()) {
                Some(id) => Value::Tensor(*id),
                None => Value::Int(size),
            },
            Value::List(items) => Value::List(items.into_iter().map(|v| self.with_numbers(v)).collect()),
            other => other,
        }
    }

    /// Arguments with a handle for every number where the schema wants a tensor, as rules expect them.
    pub fn with_number_handles(&mut self, op: &OpRef, args: &[Value<Handle>]) -> Vec<Value<Handle>> {
        crate::args::with_number_handles(&op.schema, args, &mut |scalar| self.number(scalar))
    }

    /// A handle for a number, which stays a literal in the graph.
    pub fn number(&mut self, scalar: Scalar) -> Handle {
        self.keep(Value::from(scalar), Meta::number(scalar))
    }

    /// Calls an operator with bound arguments.
    pub fn call_op(&mut self, op: &OpRef, bound: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let mut metas: Vec<Value<Meta>> = bound.iter().map(|v| v.map(&mut |h| self.meta(*h).clone())).collect();
        tensors_from_numbers(&op.schema, &mut metas);
        let meta = infer(self.registry, op, &metas)?;
        if op.has(Tag::DataDependentShape) && matches!(meta, Value::Bool(_) | Value::Float(_) | Value::Complex(_)) {
            // What inference says is a stand-in; a rule that took it for the value would compute something else.
            return Err(OpError::unsupported(format!("{} reads a number from data while tracing", op.name())));
        }
        let args = bound.iter().map(|v| self.lower(v)).collect();
        Ok(self.append_call(op, args, meta))
    }

    /// Adds a call whose results are known already.
    pub fn append_call(&mut self, op: &OpRef, args: Vec<Value<NodeId>>, meta: Value<Meta>) -> Value<Handle> {
        let id = self.builder.call(op, args);
        self.set_origin(id);
        self.builder.set_meta(id, meta.clone());
        self.name_number(id, Some(&meta));
        self.results(id, &meta)
    }

    /// Adds a node as it is, under a free name like its own.
    pub fn append(&mut self, mut node: Node) -> NodeId {
        node.name = self.builder.unique_name(&node.name);
        self.builder.push(node)
    }

    /// Handles for the tensors in a node's value: the node itself, or an item for each.
    pub fn results(&mut self, id: NodeId, meta: &Value<Meta>) -> Value<Handle> {
        match meta {
            Value::Tensor(meta) => Value::Tensor(self.adopt(id, meta.clone())),
            Value::List(items) => Value::List(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| match item {
                        Value::Tensor(_) | Value::List(_) => {
                            let picked = self.builder.get_item(id, index as i64);
                            self.set_origin(picked);
                            self.builder.set_meta(picked, item.clone());
                            self.results(picked, item)
                        }
                        other => plain(other),
                    })
                    .collect(),
            ),
            other => plain(other),
        }
    }

    fn set_origin(&mut self, id: NodeId) {
        let origin = self.origin.clone();
        self.builder.set_origin(id, &origin);
    }

    /// The graph, with what it returns.
    pub fn finish(mut self, output: Value<NodeId>) -> Graph {
        self.builder.output(output);
        self.builder.finish()
    }
}

/// A value without tensors.
fn plain(value: &Value<Meta>) -> Value<Handle> {
    let mapped: Result<_, std::convert::Infallible> = value.try_map(&mut |_| Ok(Value::None));
    let Ok(value) = mapped;
    value
}

impl Emit for Tracer<'_> {
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
        let (operator, bound) = self.registry.bound(op, args)?;
        self.call_op(operator, &bound)
    }

    fn meta(&self, handle: Handle) -> &Meta {
        &self.entries[handle.0 as usize].meta
    }
}
