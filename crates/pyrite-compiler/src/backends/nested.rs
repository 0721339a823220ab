//! Each half as one call of a nested graph.

use std::sync::Arc;

use pyrite_ir::{Builder, Graph, Kind, NodeError, OpError, Target, Value};
use pyrite_ops::registry;

use super::interpreted;
use crate::aot::GraphCompiler;

/// Interprets an outer graph whose only call is that of the graph.
pub(super) fn compiler() -> GraphCompiler {
    let inner = interpreted(None);
    Arc::new(move |graph, options| inner(outer(graph)?, options))
}

/// A graph that calls a graph.
fn outer(graph: Graph) -> Result<Graph, NodeError> {
    let invoke = registry()
        .get("higher_order.invoke_subgraph.default")
        .ok_or_else(|| OpError::fault("higher_order.invoke_subgraph is missing"))?;
    let mut builder = Builder::new();
    let operands: Vec<_> = graph.placeholders().map(|(_, node)| (node.name.clone(), node.meta.clone())).collect();
    let operands: Vec<_> = operands.into_iter().map(|(name, meta)| builder.placeholder(&name, meta)).collect();
    let Value::List(returned) = graph.output() else {
        return Err(OpError::fault("a functional graph returns a list").into());
    };
    let metas = returned.iter().map(|value| match value {
        Value::Tensor(id) => graph.node(*id).meta.clone().unwrap_or(Value::None),
        _ => Value::None,
    });
    let meta = Value::List(metas.collect());
    let count = returned.len();
    builder.add_subgraph("subgraph_0", graph);
    let nested = builder.push(pyrite_ir::Node::new("subgraph_0", Kind::GetAttr("subgraph_0".into()), Vec::new()));
    let args = vec![Value::Tensor(nested), "subgraph_0".into(), operands.into()];
    let call = pyrite_ir::Node {
        meta: Some(meta),
        ..pyrite_ir::Node::new("invoke_subgraph", Kind::Call(Target::Op(invoke.clone())), args)
    };
    let call = builder.push(call);
    let items: Vec<_> = (0..count).map(|index| builder.get_item(call, index as i64)).collect();
    builder.output(items.into());
    Ok(builder.finish())
}
