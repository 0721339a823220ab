//! Operators on the samples of their records, as graphs.

use pyrite_ir::{Builder, Graph, Meta, OpRef, Value};
use pyrite_ops::samples;
use pyrite_tensor::Tensor;

/// The graph of an operator on one of its samples, and the graph's inputs; nothing where the sample cannot be read.
pub fn graph(op: &OpRef, sample: &str) -> Option<(Graph, Vec<Value<Tensor>>)> {
    let args = samples::read(&op.schema, sample).ok()?;
    let mut builder = Builder::new();
    let mut inputs = Vec::new();
    let bound = args
        .iter()
        .map(|arg| {
            arg.map(&mut |tensor| {
                inputs.push(Value::Tensor(tensor.clone()));
                builder.placeholder("x", Some(Value::Tensor(Meta::of(tensor))))
            })
        })
        .collect();
    let result = builder.call(op, bound);
    builder.output(Value::Tensor(result));
    Some((builder.finish(), inputs))
}
