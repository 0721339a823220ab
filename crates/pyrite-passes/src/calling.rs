//! What the caller of a compiled graph has to know of it: which inputs it writes, which outputs are views of inputs, which
//! are views that one operator made several of, which are conjugated or negated when they are read, whether it begins with
//! gradients off; and the graph in the form in which that can be kept.

use pyrite_ir::contract::any_call;
use pyrite_ir::{
    Contract, Eval, Given, Graph, Kind, Meta, Node, NodeError, NodeId, OpError, Operator, Patch, Registry, StorageId,
    Switch, Target, Value,
};
use pyrite_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::autocast;
use crate::functionalize::{InputSource, Reading, functionalize};

/// For each output that is a tensor, whether it is a view by an operator that returns several of one tensor, or a view of
/// such a one. torch refuses to write to them while gradients are recorded.
pub fn views_of_several(graph: &Graph) -> Vec<bool> {
    const SEVERAL: [&str; 4] = ["aten.split.", "aten.split_with_sizes.", "aten.chunk.", "aten.unbind."];
    let mut marked: FxHashSet<NodeId> = FxHashSet::default();
    for (id, node) in graph.nodes() {
        let Kind::Call(target) = &node.kind else { continue };
        let is_marked = match target {
            Target::Op(op) if SEVERAL.iter().any(|name| op.name().starts_with(name)) => true,
            Target::Op(op) if op.schema.returns.iter().any(|given| given.alias.is_some()) => {
                let viewed = op.schema.params.iter().position(|param| param.alias.is_some());
                let viewed = viewed.and_then(|at| node.args.get(at)).and_then(Value::as_tensor);
                viewed.is_some_and(|of| marked.contains(of))
            }
            Target::GetItem => node.args.first().and_then(Value::as_tensor).is_some_and(|of| marked.contains(of)),
            _ => false,
        };
        if is_marked {
            marked.insert(id);
        }
    }
    let mut found = Vec::new();
    graph.output().each(&mut |id| found.push(marked.contains(id)));
    found
}

/// For each output that is a tensor, the input that it is a view of, as the schemas of operators tell.
pub fn output_bases(graph: &Graph) -> Vec<Option<usize>> {
    let mut known: FxHashMap<NodeId, usize> = FxHashMap::default();
    let inputs = graph.placeholders().enumerate().map(|(index, (id, _))| (id, index));
    known.extend(inputs);
    for (id, node) in graph.nodes() {
        let Kind::Call(target) = &node.kind else { continue };
        let looked_at = match target {
            Target::Op(op) if op.schema.returns.iter().any(|given| given.alias.is_some()) => {
                op.schema.params.iter().position(|arg| arg.alias.is_some()).and_then(|at| node.args.get(at))
            }
            Target::GetItem => node.args.first(),
            _ => None,
        };
        if let Some(base) = looked_at.and_then(Value::as_tensor).and_then(|of| known.get(of).copied()) {
            known.insert(id, base);
        }
    }
    let mut found = Vec::new();
    graph.output().each(&mut |id| found.push(known.get(id).copied()));
    found
}

/// Whether the first switch of gradients in a graph is to on, so that they are off before it.
pub fn starts_without_grad(graph: &Graph) -> bool {
    let switched = |(_, node): (NodeId, &Node)| match Switch::of(node) {
        Some(Switch::Grad(on)) => Some(on),
        _ => None,
    };
    graph.nodes().find_map(switched) == Some(true)
}

/// The graph with gradients off from its beginning.
pub fn begin_without_grad(mut graph: Graph) -> Result<Graph, NodeError> {
    let first = graph.nodes().find(|(_, node)| node.kind != Kind::Placeholder).map(|(id, _)| id);
    if let Some(first) = first {
        let target = Target::Opaque("torch._C._set_grad_enabled".into());
        let node = Node::new("begins_without_gradients", Kind::Call(target), vec![Value::Bool(false)]);
        let mut patch = Patch::new(&graph, "begin-without-gradients");
        patch.insert_before(first, Node { meta: Some(Value::None), ..node });
        graph.apply(&patch).map_err(|error| OpError::fault(error.to_string()))?;
    }
    Ok(graph)
}

/// The inputs that a program writes, by their position.
pub fn written_inputs(graph: &Graph, registry: &Registry, differentiates: bool) -> Result<Vec<usize>, NodeError> {
    let lowered = autocast::lower(graph, registry)?;
    let functional = functionalize(&lowered, registry, &[])?;
    let mut written = Vec::new();
    for position in &functional.written {
        match &functional.sources[*position] {
            InputSource::Input(index) => written.push(*index),
            InputSource::Storage(_) if differentiates => {
                return Err(OpError::unsupported("gradients through a write to memory that inputs share").into());
            }
            InputSource::Storage(index) => written.push(*index),
            InputSource::Constant(_) => {}
        }
    }
    Ok(written)
}

/// Those of the written inputs that a graph writes only while no gradients are recorded.
pub fn unrecorded_writes(graph: &Graph, written: &[usize]) -> Vec<usize> {
    if written.is_empty() {
        return Vec::new();
    }
    let storage_of = |value: Option<&Value<Meta>>| match value {
        Some(Value::Tensor(meta)) => Some(meta.storage),
        _ => None,
    };
    let mut recording = !starts_without_grad(graph);
    let mut recorded = FxHashSet::default();
    for (_, node) in graph.nodes() {
        if let Some(Switch::Grad(on)) = Switch::of(node) {
            recording = on;
        }
        if recording && matches!(&node.kind, Kind::Call(Target::Op(op)) if op.schema.is_mutable()) {
            node.each_input(&mut |input| recorded.extend(storage_of(graph.node(input).meta.as_ref())));
        }
    }
    let storages: Vec<_> = graph.placeholders().map(|(_, node)| storage_of(node.meta.as_ref())).collect();
    let quiet = |index: &usize| storages[*index].is_some_and(|storage| !recorded.contains(&storage));
    written.iter().copied().filter(quiet).collect()
}

/// The graph with written inputs of continuous types at the end of its outputs, and which they are.
pub fn return_written(mut graph: Graph, written: &[usize]) -> Result<(Graph, Vec<usize>), NodeError> {
    let placeholders: Vec<(NodeId, bool)> = graph
        .placeholders()
        .map(|(id, node)| {
            let continuous = |m: &Meta| m.dtype.is_float() || m.dtype.is_complex();
            (id, matches!(&node.meta, Some(Value::Tensor(meta)) if continuous(meta)))
        })
        .collect();
    let returned: Vec<usize> = written.iter().copied().filter(|index| placeholders[*index].1).collect();
    let end = graph.nodes().find(|(_, node)| node.kind == Kind::Output).map(|(id, _)| id);
    if let (false, Some(end)) = (returned.is_empty(), end) {
        let mut outputs = match graph.output() {
            Value::List(items) => items.clone(),
            other => vec![other.clone()],
        };
        outputs.extend(returned.iter().map(|index| Value::Tensor(placeholders[*index].0)));
        let mut patch = Patch::new(&graph, "return-written-inputs");
        patch.set_args(end, vec![Value::List(outputs)]);
        graph.apply(&patch).map_err(|error| OpError::fault(error.to_string()))?;
    }
    Ok((graph, returned))
}

/// The graph with its outputs as they lie in memory, and how torch reads each leaf of them, where it reads any otherwise: what
/// torch returns as a conjugate or a negative is a flag on a view, through which its caller may write.
pub fn return_as_they_lie(mut graph: Graph, registry: &Registry) -> Result<(Graph, Vec<Reading>), NodeError> {
    if !may_return_readings(&graph) {
        return Ok((graph, Vec::new()));
    }
    let readings = functionalize(&autocast::lower(&graph, registry)?, registry, &[])?.readings;
    if readings.iter().all(|reading| *reading == Reading::default()) {
        return Ok((graph, Vec::new()));
    }
    let end = graph.nodes().find(|(_, node)| node.kind == Kind::Output).map(|(id, _)| id);
    if let Some(end) = end {
        let mut patch = Patch::new(&graph, "return-as-they-lie");
        let mut next = readings.iter();
        let outputs = as_they_lie(&mut patch, end, registry, graph.output(), &mut next)?;
        patch.set_args(end, vec![outputs]);
        graph.apply(&patch).map_err(|error| OpError::fault(error.to_string()))?;
    }
    Ok((graph, readings))
}

/// Whether outputs may be conjugates or negatives, by the operators and the types of a graph.
fn may_return_readings(graph: &Graph) -> bool {
    let is_composite_view = |op: &Operator| {
        matches!(op.def.eval, Eval::ViaDecomposition) && op.schema.returns.iter().any(|given| given.alias.is_some())
    };
    let mut is_complex = false;
    for meta in graph.nodes().filter_map(|(_, node)| node.meta.as_ref()) {
        meta.each(&mut |meta| is_complex |= meta.dtype.is_complex());
    }
    any_call(graph, &Operator::is_computed_view) || is_complex && any_call(graph, &is_composite_view)
}

/// Outputs with what undoes their readings, which are their own inverses, before the end of a graph.
fn as_they_lie(
    patch: &mut Patch,
    end: NodeId,
    registry: &Registry,
    outputs: &Value<NodeId>,
    readings: &mut dyn Iterator<Item = &Reading>,
) -> Result<Value<NodeId>, OpError> {
    if let Value::List(items) = outputs {
        let items = items.iter().map(|item| as_they_lie(patch, end, registry, item, readings));
        return Ok(Value::List(items.collect::<Result<_, _>>()?));
    }
    let Reading { conjugated, negated } = readings.next().copied().unwrap_or_default();
    let &Value::Tensor(mut tensor) = outputs else { return Ok(outputs.clone()) };
    for name in
        [conjugated.then_some("aten._conj.default"), negated.then_some("aten._neg_view.default")].into_iter().flatten()
    {
        let op = registry.get(name).ok_or_else(|| OpError::fault(format!("{name} does not exist")))?;
        tensor = patch.insert_before(
            end,
            Node::new("as_it_lies", Kind::Call(Target::Op(op.clone())), vec![Value::Tensor(tensor)]),
        );
    }
    Ok(Value::Tensor(tensor))
}

/// The graph as if no two inputs shared memory; `None` where none do.
pub fn with_inputs_apart(graph: &Graph) -> Option<Graph> {
    let mut seen = FxHashSet::default();
    let mut apart = graph.clone();
    let mut changed = false;
    for (id, node) in graph.placeholders() {
        let Some(Value::Tensor(meta)) = &node.meta else { continue };
        if !seen.insert(meta.storage) {
            changed = true;
            apart.set_meta(id, Value::Tensor(Meta { storage: StorageId::fresh(), ..meta.clone() }));
        }
    }
    changed.then_some(apart)
}

/// The graph with the numbers of these inputs in place of symbols; `None` where that cannot be written.
pub fn specialize(graph: &Graph, inputs: &[Value<Tensor>]) -> Option<Graph> {
    let symbols = Contract::of_sizes(graph).values(|input| Given::of(&inputs[input])).ok()?;
    let mut patch = Patch::new(graph, "specialize");
    for (id, node) in graph.nodes() {
        let args: Vec<Value<NodeId>> =
            node.args.iter().map(|arg| symbols.numbers(arg.clone()).ok()).collect::<Option<_>>()?;
        let named = |(_, value): &(_, Value<NodeId>)| symbols.numbers(value.clone()).is_ok_and(|new| new == *value);
        if !node.kwargs.iter().all(named) {
            return None;
        }
        if args != node.args {
            patch.set_args(id, args);
        }
    }
    let mut graph = graph.clone();
    graph.apply(&patch).ok()?;
    let placeholders: Vec<NodeId> = graph.placeholders().map(|(id, _)| id).collect();
    for (id, input) in placeholders.into_iter().zip(inputs) {
        graph.set_meta(id, input.map(&mut |tensor: &Tensor| Meta::of(tensor)));
    }
    Some(graph)
}
