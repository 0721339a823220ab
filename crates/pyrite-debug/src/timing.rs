//! How long calls of a compiled program take.

use std::time::{Duration, Instant};

use pyrite_compiler::backend::{Backend, Direction, Options};
use pyrite_compiler::training::{flatten, reduce_to_scalar_loss};
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_tensor::Tensor;
use pyrite_tensor::storage::{peak, watch_peak};

use crate::judge::prepared;

/// The fastest times of several calls.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Of compiling, which is done once.
    pub compile: Duration,
    /// Of the forward half.
    pub forward: Duration,
    /// Of the backward half; zero where there is none.
    pub backward: Duration,
    /// The most bytes that tensors made during a call took at a time.
    pub peak: usize,
}

/// Compiles a program once and calls it several times on the same inputs, as a caller with weights does. Making inputs
/// and the gradients of the loss is not counted.
pub fn time_calls(
    graph: &Graph,
    inputs: &[Value<Tensor>],
    backend: &Backend,
    options: &Options,
    calls: u32,
) -> Result<Times, NodeError> {
    let (program, inputs) = prepared(graph, inputs, options.mode);
    let start = Instant::now();
    let executable = (backend.compile)(program, options)?;
    let compile = start.elapsed();
    let mut times = Times { compile, forward: Duration::MAX, backward: Duration::MAX, peak: usize::MAX };
    for _ in 0..calls {
        let inputs = inputs.clone();
        let before = watch_peak();
        let start = Instant::now();
        let forward = executable.run(inputs, None, &mut |_, _| {})?;
        times.forward = times.forward.min(start.elapsed());
        let Some(backward) = forward.backward.filter(|_| options.direction == Direction::ForwardAndBackward) else {
            times.backward = Duration::ZERO;
            times.peak = times.peak.min(peak() - before);
            continue;
        };
        let loss = reduce_to_scalar_loss(&forward.outputs)?;
        let mut leaves = Vec::new();
        flatten(&forward.outputs, &mut leaves);
        let tangents = backward
            .wanted()
            .iter()
            .map(|leaf| loss.gradient(*leaf, leaves.get(*leaf)))
            .collect::<Result<Vec<_>, OpError>>()?;
        drop((forward.outputs, leaves));
        let start = Instant::now();
        backward.run(tangents, &mut |_, _| {})?;
        times.backward = times.backward.min(start.elapsed());
        times.peak = times.peak.min(peak() - before);
    }
    Ok(times)
}
