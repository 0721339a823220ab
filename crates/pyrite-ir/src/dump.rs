//! Graphs for traces: as text, as rows of nodes with edges, and as files that run.
//!
//! Texts stay small: constants with many elements are written as random ones of the same shape and type.

use std::collections::HashMap;

use pyrite_trace::event::{GraphDump, NodeRow, Size};
use pyrite_trace::{Event, Topic};

use crate::inputs::{InputArg, InputSpec, InputValue, StorageSpec, TensorSpec};
use crate::print::{Constants, PrintOptions, ReproInfo, print, print_repro};
use crate::{Graph, Kind, Meta, NodeId, StorageId, Value};
use pyrite_sym::SymInt;

/// A graph as an event for the file of a name.
pub fn dump(graph: &Graph, file: &str) -> GraphDump {
    let places: HashMap<NodeId, u32> = graph.nodes().zip(0..).map(|((id, _), place)| (id, place)).collect();
    let mut nodes = Vec::with_capacity(graph.len());
    let mut edges = Vec::new();
    for (place, (_, node)) in graph.nodes().enumerate() {
        let (op, target) = match &node.kind {
            Kind::Placeholder => ("placeholder", String::new()),
            Kind::GetAttr(name) => ("get_attr", name.to_string()),
            Kind::Call(target) => ("call_function", target.name().to_owned()),
            Kind::Output => ("output", String::new()),
        };
        let meta = if let Some(Value::Tensor(meta)) = &node.meta { Some(meta) } else { None };
        let first = edges.len();
        node.each_input(&mut |used| {
            if let Some(from) = places.get(&used)
                && !edges[first..].contains(&(*from, place as u32))
            {
                edges.push((*from, place as u32));
            }
        });
        let module = match &node.kind {
            Kind::Placeholder => module_of(&node.name),
            _ => edges[first..].iter().find_map(|(from, _)| {
                let source: &NodeRow = &nodes[*from as usize];
                source.module.clone().filter(|_| source.op == "placeholder")
            }),
        };
        nodes.push(NodeRow {
            name: node.name.clone(),
            op: op.to_owned(),
            target,
            module,
            stack: node.stack.as_ref().map(ToString::to_string),
            shape: meta.map(|meta| meta.shape.iter().map(size).collect()),
            dtype: meta.map(|meta| meta.dtype.to_string()),
        });
    }
    GraphDump { file: file.to_owned(), text: readable(graph), nodes, edges }
}

fn size(size: &SymInt) -> Size {
    size.as_int().map_or_else(|| Size::Symbol(size.to_string()), Size::Number)
}

/// The module that a parameter belongs to, from the name that capture gave its input: `l_self_modules_a_modules_0_…`
/// belongs to `a.0`.
fn module_of(name: &str) -> Option<String> {
    let (owner, _) = name.split_once("_parameters_").or_else(|| name.split_once("_buffers_"))?;
    let path: Vec<&str> = owner.split("_modules_").skip(1).map(|part| part.trim_matches('_')).collect();
    (!path.is_empty()).then(|| path.join("."))
}

/// A graph as Python, with types and the user's lines.
pub fn readable(graph: &Graph) -> String {
    print(graph, &PrintOptions { stacks: true, constants: Constants::MadeUp, ..PrintOptions::default() })
}

/// A graph as a file that PyTorch and Pyrite run on random inputs.
pub fn runnable(graph: &Graph, metadata: Vec<(String, String)>) -> String {
    let info = ReproInfo { metadata, inputs: Some(random_inputs(graph)), main: None };
    print_repro(graph, &info, &PrintOptions { constants: Constants::MadeUp, ..PrintOptions::default() })
}

/// Tells the trace of a graph, if anybody wants it. What is written of it is made from a copy, on the trace's own thread.
pub fn tell(topic: Topic, graph: &Graph, event: impl FnOnce(&Graph) -> Event + Send + 'static) {
    if pyrite_trace::wanted(topic) {
        let graph = graph.clone();
        pyrite_trace::later(topic, move || event(&graph));
    }
}

/// Inputs of the right types for a graph, those that share memory sharing it, with data that whoever reads makes up.
fn random_inputs(graph: &Graph) -> InputSpec {
    let mut spec = InputSpec::default();
    let mut known: HashMap<StorageId, usize> = HashMap::new();
    for (_, node) in graph.placeholders() {
        let value = match &node.meta {
            Some(Value::Tensor(meta)) => {
                let storage = *known.entry(meta.storage).or_insert_with(|| {
                    spec.storages.push(storage_for(meta));
                    spec.storages.len() - 1
                });
                let needed = bytes(meta);
                let have = &mut spec.storages[storage].nbytes;
                if needed.hint() > have.hint() {
                    *have = needed;
                }
                InputValue::Tensor(TensorSpec {
                    storage,
                    shape: meta.shape.clone(),
                    stride: meta.stride.clone(),
                    offset: meta.offset.clone(),
                    dtype: meta.dtype,
                    requires_grad: meta.requires_grad,
                    is_leaf: meta.is_leaf,
                })
            }
            Some(Value::Int(size)) => {
                let expr = size.as_int().is_none().then(|| size.to_string());
                InputValue::Int { value: size.hint().unwrap_or_default(), expr }
            }
            _ => InputValue::None,
        };
        spec.args.push(InputArg { name: Some(node.name.clone()), value });
    }
    spec
}

fn storage_for(meta: &Meta) -> StorageSpec {
    StorageSpec { name: None, data: None, nbytes: bytes(meta), device: meta.device.clone(), dtype_hint: meta.dtype }
}

/// How many bytes a tensor reaches.
fn bytes(meta: &Meta) -> SymInt {
    let mut last = meta.offset.clone();
    for (size, stride) in meta.shape.iter().zip(&meta.stride) {
        if size.as_int() == Some(0) {
            return SymInt::Int(0);
        }
        last = last + (size.clone() + SymInt::Int(-1)) * stride.clone();
    }
    (last + SymInt::Int(1)) * SymInt::Int(meta.dtype.size() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_that_are_parameters_say_their_module() {
        let name = "l_self_modules_layers_modules_0_modules_norm_parameters_weight_";
        assert_eq!(module_of(name).as_deref(), Some("layers.0.norm"));
        assert_eq!(module_of("l_self_parameters_weight_"), None);
        assert_eq!(module_of("l_x_"), None);
    }
}
