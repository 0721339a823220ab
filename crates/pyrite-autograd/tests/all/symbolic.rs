//! Derivative rules write graphs for sizes that are symbols, not only for numbers, and both halves know those sizes.

use pyrite_autograd::{MinCut, Partition, default_partition, joint, min_cut_partition, unbound_symbols};
use pyrite_ir::{Builder, Meta, OpRef, Type, Value, Vjp};
use pyrite_ops::{registry, samples};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::Tensor;

/// A joint graph of a call whose tensors have symbols for sizes above one, or of the call as it is.
fn differentiate(op: &OpRef, text: &str, env: Option<&SymEnv>) -> Result<(), String> {
    let args = samples::read(&op.schema, text).map_err(|e| e.to_string())?;
    let mut builder = Builder::new();
    let mut sizes = std::collections::BTreeMap::<i64, SymInt>::new();
    let bound: Vec<_> =
        args.iter()
            .map(|arg| {
                arg.map(&mut |tensor: &Tensor| {
                    let fixed = Meta::of(tensor);
                    let mut meta = fixed.clone();
                    if let Some(env) = env
                        && fixed.is_contiguous()
                    {
                        let shape: Vec<SymInt> = tensor
                            .shape()
                            .iter()
                            .map(|d| {
                                if *d > 1 {
                                    sizes.entry(*d).or_insert_with(|| env.size(*d)).clone()
                                } else {
                                    (*d).into()
                                }
                            })
                            .collect();
                        meta = Meta::contiguous(&shape, fixed.dtype);
                    }
                    meta.requires_grad = meta.dtype.is_inexact();
                    builder.placeholder("x", Some(Value::Tensor(meta)))
                })
            })
            .collect();
    let result = builder.call(op, bound);
    let several = op.schema.returns.len() > 1 || matches!(op.schema.returns[0].ty, Type::List(..));
    let out = if several { builder.get_item(result, 0) } else { result };
    builder.output(Value::List(vec![Value::Tensor(out)]));
    let joint = joint(&builder.finish(), registry()).map_err(|e| e.to_string())?;
    for partition in [default_partition(&joint), min_cut_partition(&joint, MinCut::default())] {
        let Partition { forward, backward, .. } = partition;
        for (half, graph) in [("forward", forward), ("backward", backward)] {
            let unbound = unbound_symbols(&graph);
            if !unbound.is_empty() {
                return Err(format!("no input of the {half} half has the sizes {unbound:?}"));
            }
        }
    }
    Ok(())
}

/// Operators whose derivative has a part for each of as many reflections as a size says: there is no graph for a symbol.
const UNROLLED: &[&str] = &["aten.linalg_householder_product.default", "aten.ormqr.default"];

#[test]
fn rules_serve_symbolic_sizes() {
    let (mut problems, mut checked) = (Vec::new(), 0);
    let rules = registry().iter().filter(|op| matches!(op.def.vjp, Vjp::Rule(_)));
    for op in rules.filter(|op| !UNROLLED.contains(&op.name())) {
        for text in op.def.samples {
            if differentiate(op, text, None).is_err() {
                continue;
            }
            checked += 1;
            if let Err(error) = differentiate(op, text, Some(&SymEnv::new())) {
                problems.push(format!("{} on ({text}): {error}", op.name()));
            }
        }
    }
    assert!(checked > 1000, "only {checked} samples have joint graphs");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
