//! The request `grad`: a graph's outputs and the gradients of its inputs.
//!
//! In: `graph`, `inputs`, `wants` (for each input, whether its gradient is wanted), `tangents` (for each output, the
//! gradient that flows into it, or null for zeros). Out: the list of outputs and the list of gradients, one per input,
//! null where an input has none.

use pyrite_autograd::{Joint, joint};
use pyrite_ir::{Graph, Kind, Meta, NodeError, NodeId, OpError, Patch, Value};
use pyrite_ops::registry;
use pyrite_tensor::Tensor;
use serde_json::Value as Json;

use super::{Decoder, Refusal, graph, interpret};

/// Answers the request.
pub fn answer(request: &Json, decoder: &Decoder) -> Result<Value<Tensor>, Refusal> {
    let mut graph = graph(request)?;
    let mut inputs = decoder.values(&request["inputs"]).map_err(Refusal::bad_request)?;
    let tangents = decoder.values(&request["tangents"]).map_err(Refusal::bad_request)?;
    describe_inputs(&mut graph, &inputs, &request["wants"])?;
    let joint = differentiate(graph).map_err(|error| Refusal::at(&error))?;
    for ((_, placeholder), output) in joint.graph.placeholders().skip(joint.primals).zip(&joint.tangents) {
        let Some(Value::Tensor(meta)) = &placeholder.meta else {
            return Err(Refusal::of(&OpError::fault("a tangent without metadata"), None));
        };
        let given = tangents.get(*output).and_then(Value::as_tensor);
        inputs.push(Value::Tensor(tangent(meta, given).map_err(|error| Refusal::of(&error, None))?));
    }
    let Value::List(mut outputs) = interpret(request, &joint.graph, inputs)? else {
        return Err(Refusal::of(&OpError::fault("a joint graph without a list of outputs"), None));
    };
    let gradients = outputs.split_off(joint.outputs);
    Ok(Value::List(vec![Value::List(outputs), Value::List(gradients)]))
}

/// The joint graph of a graph as it was captured.
fn differentiate(mut graph: Graph) -> Result<Joint, NodeError> {
    flatten_outputs(&mut graph)?;
    joint(&graph, registry())
}

/// Gives the placeholders the metadata of the inputs, with `requires_grad` where a gradient is wanted.
fn describe_inputs(graph: &mut Graph, inputs: &[Value<Tensor>], wants: &Json) -> Result<(), Refusal> {
    let places: Vec<NodeId> = graph.placeholders().map(|(id, _)| id).collect();
    if places.len() != inputs.len() {
        let message = format!("the graph takes {} inputs, {} were given", places.len(), inputs.len());
        return Err(Refusal::bad_request(message));
    }
    for (index, (place, input)) in places.into_iter().zip(inputs).enumerate() {
        let requires_grad = wants[index].as_bool().unwrap_or(false);
        graph.set_meta(place, input.map(&mut |tensor| Meta { requires_grad, ..Meta::of(tensor) }));
    }
    Ok(())
}

/// Makes the graph return one flat list.
fn flatten_outputs(graph: &mut Graph) -> Result<(), OpError> {
    fn flatten(value: &Value<NodeId>, into: &mut Vec<Value<NodeId>>) {
        match value {
            Value::List(items) => items.iter().for_each(|item| flatten(item, into)),
            other => into.push(other.clone()),
        }
    }
    let mut flat = Vec::new();
    flatten(graph.output(), &mut flat);
    let Some((id, _)) = graph.nodes().find(|(_, node)| node.kind == Kind::Output) else {
        return Err(OpError::invalid("a graph without an output has no derivative"));
    };
    let mut patch = Patch::new(graph, "flatten-outputs");
    patch.set_args(id, vec![Value::List(flat)]);
    graph.apply(&patch).map_err(|error| OpError::fault(error.to_string()))
}

/// A tangent laid out as the joint graph expects it; zeros where none was given.
fn tangent(meta: &Meta, given: Option<&Tensor>) -> Result<Tensor, OpError> {
    let layout = match (meta.layout(), given) {
        (Ok(layout), _) => layout,
        // A size that only a run can tell is that of the tangent.
        (Err(_), Some(given)) => return Ok(given.clone()),
        (Err(error), None) => return Err(error),
    };
    let tensor = Tensor::empty_strided(&layout.shape, &layout.stride, meta.dtype)?;
    match given {
        Some(given) if given.shape() == tensor.shape() => tensor.write_from(given),
        Some(given) => {
            let message = format!("a tangent of shape {:?} for an output of {:?}", given.shape(), tensor.shape());
            return Err(OpError::invalid(message));
        }
        None => tensor.write_from(&Tensor::zeros(&layout.shape, meta.dtype)?),
    }
    Ok(tensor)
}
