//! Symbolic sizes of the two halves.
//!
//! A graph learns the values of its symbols from its inputs: a symbol is *bound* where an input has it as a size or is
//! it. The forward half gets all of the program's inputs. The backward half may compute with a size that none of its
//! inputs has, as the gradient of a mean does; such a size is returned by the forward half and becomes an input.

use std::collections::BTreeSet;
use std::sync::Arc;

use pyrite_ir::{Graph, Meta, NodeId, Value};
use pyrite_sym::SymInt;

/// The symbols that a graph computes with and that none of its inputs binds, by name.
pub fn unbound_symbols(graph: &Graph) -> BTreeSet<Arc<str>> {
    let bound = bound_symbols(graph);
    let mut used = BTreeSet::new();
    used_symbols(graph, &mut used);
    used.retain(|name| !bound.contains(name));
    used
}

/// The symbols that the inputs of a graph bind.
pub(super) fn bound_symbols(graph: &Graph) -> BTreeSet<Arc<str>> {
    let mut bound = BTreeSet::new();
    let mut bind = |size: &SymInt| bound.extend(size.to_expr().as_symbol().map(Arc::from));
    for (_, node) in graph.placeholders() {
        match &node.meta {
            Some(Value::Int(size)) => bind(size),
            Some(Value::Tensor(meta)) => meta.shape.iter().for_each(&mut bind),
            _ => {}
        }
    }
    bound
}

fn used_symbols(graph: &Graph, used: &mut BTreeSet<Arc<str>>) {
    for (_, node) in graph.nodes() {
        let arguments = node.args.iter().chain(node.kwargs.iter().map(|(_, value)| value));
        arguments.for_each(|value: &Value<NodeId>| each_size(value, &mut |size| add(size, used)));
        if let Some(meta) = &node.meta {
            each_size(meta, &mut |size| add(size, used));
            meta.each(&mut |meta: &Meta| {
                meta.shape.iter().chain(&meta.stride).chain([&meta.offset]).for_each(|size| add(size, used));
            });
        }
    }
    graph.subgraphs().values().for_each(|nested| used_symbols(nested, used));
}

fn add(size: &SymInt, used: &mut BTreeSet<Arc<str>>) {
    if size.as_int().is_none() {
        used.extend(size.to_expr().symbols());
    }
}

fn each_size<T>(value: &Value<T>, found: &mut dyn FnMut(&SymInt)) {
    match value {
        Value::Int(size) => found(size),
        Value::List(items) => items.iter().for_each(|item| each_size(item, found)),
        _ => {}
    }
}
