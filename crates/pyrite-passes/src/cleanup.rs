//! Removing what is not needed: dead code and repeated work.

use pyrite_ir::{Graph, Kind, Node, NodeId, Tag, Target, Value};
use rustc_hash::FxHashMap;

use crate::gate::Gate;

/// The graph without calls and attributes whose values nobody uses. Calls that write, draw random numbers or are not
/// known stay.
pub fn dead_code(graph: &Graph) -> Graph {
    let mut live = vec![false; graph.id_bound()];
    let nodes: Vec<(NodeId, &Node)> = graph.nodes().collect();
    for (id, node) in nodes.iter().rev() {
        if live[id.0 as usize] || has_effect(node) {
            live[id.0 as usize] = true;
            node.each_input(&mut |input| live[input.0 as usize] = true);
        }
    }
    graph.filtered(&|id| live[id.0 as usize])
}

fn has_effect(node: &Node) -> bool {
    match &node.kind {
        Kind::Placeholder | Kind::Output | Kind::Call(Target::Opaque(_)) => true,
        Kind::Call(Target::Op(op)) => op.schema.is_mutable() || op.has(Tag::Random) || op.schema.returns.is_empty(),
        Kind::GetAttr(_) | Kind::Call(Target::GetItem) => false,
    }
}

/// The graph with every call that repeats an earlier one replaced by it. For functional graphs only. Values that are
/// returned, as they are or as views, have memory of their own, so they are never replaced by each other.
pub fn common_subexpressions(graph: &Graph, gate: &mut Gate) -> Graph {
    common_subexpressions_but(graph, gate, &|_, _| false)
}

/// The same, where a call (the second) may have to stay apart from an equal one before it (the first).
pub fn common_subexpressions_but(
    graph: &Graph,
    gate: &mut Gate,
    stays_apart: &dyn Fn(NodeId, NodeId) -> bool,
) -> Graph {
    let mut returned = returned(graph);
    let mut first: FxHashMap<String, NodeId> = FxHashMap::default();
    let mut instead: Vec<NodeId> = (0..graph.id_bound() as u32).map(NodeId).collect();
    for (id, node) in graph.nodes() {
        let Kind::Call(target) = &node.kind else { continue };
        let pure = match target {
            Target::GetItem => true,
            Target::Op(op) => {
                !op.schema.is_mutable() && !op.has(Tag::Random) && !op.schema.returns.is_empty() && !is_fresh(op.name())
            }
            Target::Opaque(_) => false,
        };
        if !pure {
            continue;
        }
        let args: Vec<Value<NodeId>> = node.args.iter().map(|v| v.map(&mut |i| instead[i.0 as usize])).collect();
        let key = format!("{} {args:?}", target.name());
        match first.get(&key) {
            Some(earlier) => {
                let apart = returned[id.0 as usize] && returned[earlier.0 as usize] || stays_apart(*earlier, id);
                if !apart && gate.allows(|| format!("common-subexpressions at {}", node.name)) {
                    instead[id.0 as usize] = *earlier;
                    // The next that is returned must not be replaced by this one, too.
                    returned[earlier.0 as usize] |= returned[id.0 as usize];
                }
            }
            None => {
                first.insert(key, id);
            }
        }
    }
    graph.renamed(&|id| instead[id.0 as usize])
}

/// Which nodes are returned, or viewed by what is.
fn returned(graph: &Graph) -> Vec<bool> {
    let mut returned = vec![false; graph.id_bound()];
    let nodes: Vec<(NodeId, &Node)> = graph.nodes().collect();
    for (id, node) in nodes.iter().rev() {
        let passes_on = match &node.kind {
            Kind::Output => true,
            Kind::Call(Target::GetItem) => returned[id.0 as usize],
            Kind::Call(Target::Op(op)) => {
                returned[id.0 as usize] && op.schema.returns.iter().any(|result| result.alias.is_some())
            }
            _ => false,
        };
        if passes_on {
            node.each_input(&mut |input| returned[input.0 as usize] = true);
        }
    }
    returned
}

/// Operators that promise new memory with nothing in it: two of them are not one.
fn is_fresh(name: &str) -> bool {
    name.starts_with("aten.empty") || name.starts_with("aten.new_empty")
}
