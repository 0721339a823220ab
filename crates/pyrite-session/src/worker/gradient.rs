//! The request `grad`: a graph's outputs and the gradients of its inputs.
//!
//! In: `graph`, `inputs`, `wants` (for each input, whether its gradient is wanted), `tangents` (for each output, the
//! gradient that flows into it, or null for zeros). Out: the list of outputs and the list of gradients, one per input,
//! null where an input has none.

use pyrite_autograd::{Joint, joint_of};
use pyrite_compiler::training::flatten;
use pyrite_ir::{Graph, Meta, NodeError, NodeId, OpError, Value};
use pyrite_ops::registry;
use pyrite_passes::functionalize::InputSource;
use pyrite_passes::{Functional, functionalize};
use pyrite_tensor::Tensor;
use serde_json::Value as Json;

use super::{Decoder, Refusal, graph, interpret};

/// Answers the request.
pub fn answer(request: &Json, decoder: &Decoder) -> Result<Value<Tensor>, Refusal> {
    let mut graph = graph(request)?;
    let inputs = decoder.values(&request["inputs"]).map_err(Refusal::bad_request)?;
    let tangents = decoder.values(&request["tangents"]).map_err(Refusal::bad_request)?;
    describe_inputs(&mut graph, &inputs, &request["wants"])?;
    let (functional, joint) = differentiate(&graph).map_err(|error| Refusal::at(&error))?;
    let refused = |error: OpError| Refusal::of(&error, None);
    let mut given = functional.enter(&inputs, graph.constants()).map_err(refused)?;
    let kept = functional.keeps(&given);
    let leaves = functional.leaves_of(&joint.tangents);
    for ((_, placeholder), leaf) in joint.graph.placeholders().skip(joint.primals).zip(leaves) {
        let Some(Value::Tensor(meta)) = &placeholder.meta else {
            return Err(refused(OpError::fault("a tangent without metadata")));
        };
        given.push(Value::Tensor(tangent(meta, tangents.get(leaf).and_then(Value::as_tensor)).map_err(refused)?));
    }
    let Value::List(mut results) = interpret(request, &joint.graph, given)? else {
        return Err(refused(OpError::fault("a joint graph without a list of outputs")));
    };
    let found = results.split_off(joint.outputs);
    let mut gradients = vec![Value::None; inputs.len()];
    for (source, gradient) in functional.sources.iter().zip(found) {
        if let InputSource::Input(index) = source {
            gradients[*index] = gradient;
        }
    }
    let mut outputs = Vec::new();
    flatten(&functional.leave(&kept, results).map_err(refused)?, &mut outputs);
    Ok(Value::List(vec![Value::List(outputs), Value::List(gradients)]))
}

/// The functional and the joint graph of a graph as it was captured.
fn differentiate(graph: &Graph) -> Result<(Functional, Joint), NodeError> {
    let functional = functionalize(graph, registry(), &[])?;
    let returned = functional.differentiable();
    let joint = joint_of(&functional.graph, registry(), &|output| returned.contains(&output))?;
    Ok((functional, joint))
}

/// Gives the placeholders the metadata of the inputs, with `requires_grad` where a gradient is wanted.
fn describe_inputs(graph: &mut Graph, inputs: &[Value<Tensor>], wants: &Json) -> Result<(), Refusal> {
    let places: Vec<NodeId> = graph.placeholders().map(|(id, _)| id).collect();
    if places.len() != inputs.len() {
        let message = format!("the graph takes {} inputs, got {}", places.len(), inputs.len());
        return Err(Refusal::bad_request(message));
    }
    for (index, (place, input)) in places.into_iter().zip(inputs).enumerate() {
        let requires_grad = wants[index].as_bool().unwrap_or(false);
        graph.set_meta(place, input.map(&mut |tensor| Meta { requires_grad, ..Meta::of(tensor) }));
    }
    Ok(())
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
