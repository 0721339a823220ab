//! Tracing a graph again, node by node.
//!
//! What every pass shares: placeholders, constants, items of lists and outputs are carried over; calls go to a function
//! that may do something else with them.

use std::convert::Infallible;

use pyrite_ir::{
    Emit, Graph, Handle, Kind, Meta, Node, NodeError, NodeId, OpError, OpRef, Origin, Target, Tracer, Value,
};

/// Traces a graph into a new one; `call` carries out the calls of known operators.
pub fn replay<'a>(
    graph: &Graph,
    mut tracer: Tracer<'a>,
    call: &mut dyn FnMut(&mut Tracer<'a>, &Node, &OpRef, &[Value<Handle>]) -> Result<Value<Handle>, OpError>,
) -> Result<Graph, NodeError> {
    let mut values: Vec<Value<Handle>> = vec![Value::None; graph.id_bound()];
    let mut output = Value::None;
    tracer.builder().copy_surroundings(graph);
    for (id, node) in graph.nodes() {
        tracer.origin = Origin::of(node);
        let located = |error| NodeError::at(node, error);
        values[id.0 as usize] = match &node.kind {
            Kind::Placeholder => placeholder(&mut tracer, node, &node.name),
            Kind::GetAttr(name) => match graph.constants().get(name) {
                Some(tensor) => Value::Tensor(tracer.constant(name, tensor)),
                None => Value::Graph(name.clone()),
            },
            Kind::Output => {
                let returned = node.args.first().unwrap_or(&Value::None);
                let kept = returned.try_map(&mut |from: &NodeId| {
                    let value = values[from.0 as usize].clone();
                    match (value, graph.node(*from).meta.as_ref()) {
                        (Value::Tensor(handle), Some(Value::Tensor(meta))) => as_laid_out(&mut tracer, handle, meta),
                        (value, _) => Ok(value),
                    }
                });
                output = tracer.lower(&kept.map_err(located)?);
                Value::None
            }
            Kind::Call(target) => {
                let args = arguments(node, &values);
                match target {
                    Target::GetItem => item(&args).map_err(located)?,
                    Target::Op(op) => call(&mut tracer, node, op, &args).map_err(located)?,
                    Target::Opaque(_) => opaque(&mut tracer, node, &values),
                }
            }
        };
    }
    Ok(tracer.finish(output))
}

/// An output with the strides that it had. Passes keep all but those along dimensions of size one, which no element
/// depends on and which whoever receives the tensor can ask for.
fn as_laid_out(tracer: &mut Tracer<'_>, handle: Handle, had: &Meta) -> Result<Value<Handle>, OpError> {
    let has = tracer.meta(handle);
    if has.shape != had.shape || has.numel().is_eq(0) {
        return Ok(handle.into());
    }
    let dims = || had.shape.iter().zip(had.stride.iter().zip(&has.stride));
    let mut moved = dims().filter(|(_, (had, has))| !had.is_eq(*has)).peekable();
    if moved.peek().is_none() || !moved.all(|(size, _)| size.is_eq(1)) {
        return Ok(handle.into());
    }
    let (shape, stride) = (had.shape.as_slice().into(), had.stride.as_slice().into());
    tracer.call("aten.as_strided.default", &[handle.into(), shape, stride])
}

/// An input like that of a node, under a name.
pub fn placeholder(tracer: &mut Tracer<'_>, node: &Node, name: &str) -> Value<Handle> {
    match &node.meta {
        Some(Value::Tensor(meta)) => Value::Tensor(tracer.placeholder(name, meta.clone())),
        other => {
            tracer.plain_placeholder(name, other.clone());
            other.as_ref().map_or(Value::None, without_tensors)
        }
    }
}

/// A call of an operator that is not known, as it stands; its results are what its metadata says.
pub fn opaque(tracer: &mut Tracer<'_>, node: &Node, values: &[Value<Handle>]) -> Value<Handle> {
    let lower = |v: &Value<NodeId>| tracer.lower(&resolve(v, values));
    let args = node.args.iter().map(lower).collect();
    let kwargs = node.kwargs.iter().map(|(k, v)| (k.clone(), lower(v))).collect();
    let id = tracer.append(Node { args, kwargs, ..node.clone() });
    match &node.meta {
        Some(meta) => tracer.results(id, meta),
        None => Value::None,
    }
}

/// The arguments of a node.
pub fn arguments(node: &Node, values: &[Value<Handle>]) -> Vec<Value<Handle>> {
    node.args.iter().map(|arg| resolve(arg, values)).collect()
}

/// A value with every node replaced by what it stands for.
pub fn resolve(value: &Value<NodeId>, values: &[Value<Handle>]) -> Value<Handle> {
    let resolved: Result<_, Infallible> = value.try_map(&mut |id| Ok(values[id.0 as usize].clone()));
    let Ok(value) = resolved;
    value
}

/// `list[index]`.
pub fn item(args: &[Value<Handle>]) -> Result<Value<Handle>, OpError> {
    let (Some(Value::List(items)), Some(index)) = (args.first(), args.get(1).and_then(Value::as_scalar)) else {
        return Err(OpError::invalid("an item of what is not a list"));
    };
    let (index, len) = (index.to_i64(), items.len() as i64);
    let wrapped = if index < 0 { index + len } else { index };
    let found = usize::try_from(wrapped).ok().and_then(|at| items.get(at));
    found.cloned().ok_or_else(|| OpError::invalid(format!("item {index} of a list of {len}")))
}

/// A value with `None` for every tensor.
pub fn without_tensors(value: &Value<Meta>) -> Value<Handle> {
    let mapped: Result<_, Infallible> = value.try_map(&mut |_| Ok(Value::None));
    let Ok(value) = mapped;
    value
}
