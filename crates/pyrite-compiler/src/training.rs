//! Running a program as training does: forward, a scalar loss, backward.
//!
//! [`run_fwd_maybe_bwd`] runs an executable and, where anything wants a gradient, its backward half with the gradient of
//! [`reduce_to_scalar_loss`]. [`Results`] is what came out: outputs, gradients of inputs and parameters, and what the
//! run left in inputs and buffers.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyrite_ir::{NodeError, OpError, Value};
use pyrite_tensor::{DType, Scalar, Tensor};

use crate::backend::{Direction, Executable, Observer};

/// What a run gives, and what it left behind.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The program's outputs.
    pub outputs: Vec<Value<Tensor>>,
    /// The loss whose gradients these are, where something wants a gradient.
    pub loss: Option<f64>,
    /// The gradient of each input, `None` where it has none.
    pub input_gradients: Vec<Option<Tensor>>,
    /// The gradient of each parameter, `None` where it has none.
    pub parameter_gradients: Vec<(Arc<str>, Option<Tensor>)>,
    /// The inputs after the run.
    pub inputs: Vec<Value<Tensor>>,
    /// The program's constant tensors after the run.
    pub buffers: Vec<(Arc<str>, Tensor)>,
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Running forward.
    Forward,
    /// Running backward.
    Backward,
}

/// Runs an executable forward and, where the direction says so and anything wants a gradient, backward. `began` hears
/// of each phase; an error says in which phase it was.
pub fn run_fwd_maybe_bwd(
    executable: &dyn Executable,
    inputs: Vec<Value<Tensor>>,
    constants: &BTreeMap<Arc<str>, Tensor>,
    direction: Direction,
    began: &mut dyn FnMut(Phase),
    observe: &mut Observer<'_>,
) -> Result<Results, (Phase, NodeError)> {
    let kept = inputs.clone();
    began(Phase::Forward);
    let forward = executable.run(inputs, None, observe).map_err(|error| (Phase::Forward, error))?;
    let mut results = Results { outputs: vec![forward.outputs], ..Results::default() };
    if let (Some(backward), Direction::ForwardAndBackward) = (forward.backward, direction) {
        began(Phase::Backward);
        let failed = |error: NodeError| (Phase::Backward, error);
        let mut leaves = Vec::new();
        flatten(&results.outputs[0], &mut leaves);
        let loss = reduce_to_scalar_loss(&results.outputs[0]).map_err(|e| failed(e.into()))?;
        let tangents = backward
            .wanted()
            .iter()
            .map(|leaf| loss.gradient(*leaf, leaves.get(*leaf)))
            .collect::<Result<Vec<_>, OpError>>()
            .map_err(|e| failed(e.into()))?;
        let gradients = backward.run(tangents, observe).map_err(failed)?;
        results.loss = Some(loss.value);
        results.input_gradients = gradients.inputs;
        results.parameter_gradients = gradients.parameters;
    }
    results.inputs = kept;
    results.buffers = constants.iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
    Ok(results)
}

/// A scalar loss of a program's outputs.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Its value.
    pub value: f64,
    /// For each output, nested lists opened, the gradient of each of its elements.
    slopes: Vec<f64>,
}

impl Loss {
    /// The gradient of an output.
    pub fn gradient(&self, leaf: usize, output: Option<&Value<Tensor>>) -> Result<Tensor, OpError> {
        let Some(Value::Tensor(output)) = output else {
            return Err(OpError::fault("the gradient of an output that is not a tensor"));
        };
        let slope = self.slopes.get(leaf).copied().unwrap_or(0.0);
        let layout = output.layout();
        let dense = if layout.is_dense() {
            layout.stride.to_vec()
        } else {
            pyrite_tensor::Layout::contiguous(output.shape()).stride.to_vec()
        };
        let gradient = Tensor::empty_strided(output.shape(), &dense, output.dtype())?;
        gradient.write_from(&Tensor::scalar(Scalar::Float(slope), output.dtype()).expanded(output.shape()));
        Ok(gradient)
    }
}

/// The mean of the means: a tensor counts by the mean of its elements, a list by the mean of what its members count
/// by. Integers, bools and 8-bit floats count too, as PyTorch's loss of a repro has them, though they have no gradient; what is not a
/// tensor does not. A complex tensor counts by its real part.
pub fn reduce_to_scalar_loss(outputs: &Value<Tensor>) -> Result<Loss, OpError> {
    let mut slopes = Vec::new();
    match reduce(outputs, 1.0, &mut slopes) {
        Some(value) if is_differentiable(outputs) => Ok(Loss { value, slopes }),
        _ => Err(OpError::invalid("no output is a floating-point tensor, so there is no loss")),
    }
}

/// Whether anything in a value counts for the loss.
fn counts(value: &Value<Tensor>) -> bool {
    match value {
        Value::Tensor(_) => true,
        Value::List(items) => items.iter().any(counts),
        _ => false,
    }
}

/// Whether anything in a value can have a gradient.
fn is_differentiable(value: &Value<Tensor>) -> bool {
    match value {
        Value::Tensor(tensor) => is_continuous(tensor.dtype()),
        Value::List(items) => items.iter().any(is_differentiable),
        _ => false,
    }
}

fn is_continuous(dtype: DType) -> bool {
    dtype.is_inexact() && !dtype.is_float8()
}

/// The loss of a value; appends the slope of each leaf, given that of the whole.
fn reduce(value: &Value<Tensor>, slope: f64, slopes: &mut Vec<f64>) -> Option<f64> {
    match value {
        Value::Tensor(tensor) => {
            let count = tensor.numel() as f64;
            slopes.push(if is_continuous(tensor.dtype()) { slope / count } else { 0.0 });
            Some(tensor.to_c128s().iter().map(|z| z.re).sum::<f64>() / count)
        }
        Value::List(items) => {
            let members = items.iter().filter(|item| counts(item)).count() as f64;
            let parts: Vec<Option<f64>> = items.iter().map(|item| reduce(item, slope / members, slopes)).collect();
            let parts: Vec<f64> = parts.into_iter().flatten().collect();
            (!parts.is_empty()).then(|| parts.iter().sum::<f64>() / members)
        }
        _ => {
            slopes.push(0.0);
            None
        }
    }
}

/// The leaves of a value in order, nested lists opened.
pub fn flatten(value: &Value<Tensor>, into: &mut Vec<Value<Tensor>>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| flatten(item, into)),
        other => into.push(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32]) -> Value<Tensor> {
        Value::Tensor(Tensor::from_slice(values, &[values.len() as i64]))
    }

    #[test]
    fn the_loss_is_the_mean_of_means_whatever_the_nesting() {
        let nested = Value::List(vec![
            tensor(&[1.0, 3.0]),
            Value::List(vec![tensor(&[4.0]), Value::None, tensor(&[8.0, 8.0, 8.0, 8.0])]),
            Value::Tensor(Tensor::from_slice(&[5i64], &[1])),
        ]);
        let loss = reduce_to_scalar_loss(&nested).unwrap();
        assert_eq!(loss.value, (2.0 + f64::midpoint(4.0, 8.0) + 5.0) / 3.0);
        let third = 1.0 / 3.0;
        assert_eq!(loss.slopes, [third / 2.0, third / 2.0, 0.0, third / 2.0 / 4.0, 0.0]);
    }

    #[test]
    fn outputs_without_floats_have_no_loss() {
        assert!(reduce_to_scalar_loss(&Value::List(vec![Value::Tensor(Tensor::from_slice(&[5i64], &[1]))])).is_err());
    }
}
