//! Every operator on its own samples: inference and computation agree, and only what the schema declares is changed
//! or shared.

use std::collections::BTreeMap;

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::infer::infer;
use pyrite_ir::{Builder, Eval, Meta, OpError, OpRef, SymDims, Tag, Value};
use pyrite_ops::{registry, samples};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::Tensor;

/// Runs one call as a graph of its own, in a mode that checks it.
fn run(op: &OpRef, args: &[Value<Tensor>], mode: Mode) -> Result<Value<Tensor>, String> {
    let mut builder = Builder::new();
    let mut inputs = Vec::new();
    let bound = args
        .iter()
        .map(|arg| {
            arg.map(&mut |tensor| {
                inputs.push(Value::Tensor(tensor.clone()));
                builder.placeholder("x", None)
            })
        })
        .collect();
    let result = builder.call(op, bound);
    builder.output(Value::Tensor(result));
    let context = Context::new(registry(), 0);
    Interpreter { context: &context, mode }.run(&builder.finish(), inputs).map_err(|e| e.to_string())
}

#[test]
fn every_sample_runs_and_keeps_its_promises() {
    let mut problems = Vec::new();
    let mut count = 0;
    for op in registry().iter() {
        for text in op.def.samples {
            for mode in [Mode::CrossReference, Mode::SchemaCheck] {
                match samples::read(&op.schema, text) {
                    Ok(args) => {
                        count += 1;
                        if let Err(error) = run(op, &args, mode) {
                            problems.push(format!("{} on ({text}), {mode:?}: {error}", op.name()));
                        }
                    }
                    Err(error) => problems.push(format!("{} sample ({text}): {error}", op.name())),
                }
            }
        }
    }
    assert!(count > 0);
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_operator_has_a_doc_and_samples() {
    // The notation of samples has no nested graphs; `tests/higher_order.rs` has their calls.
    let sampled = |op: &&OpRef| matches!(op.def.eval, Eval::HigherOrder) || !op.def.samples.is_empty();
    let bare: Vec<&str> =
        registry().iter().filter(|op| op.def.doc.is_empty() || !sampled(op)).map(|op| op.name()).collect();
    assert!(bare.is_empty(), "without doc or samples: {bare:?}");
}

#[test]
fn a_split_into_more_tensors_than_memory_holds_is_refused() {
    let huge = Value::Tensor(Meta::of_shape(&[1 << 40], pyrite_tensor::DType::F32));
    for (name, rest) in [
        ("aten.split.Tensor", vec![1.into(), 0.into()]),
        ("aten.unbind.int", vec![0.into()]),
        ("aten.chunk.default", vec![(1i64 << 40).into(), 0.into()]),
    ] {
        let op = registry().get(name).unwrap();
        let args: Vec<Value<Meta>> = std::iter::once(huge.clone()).chain(rest).collect();
        let refused = infer(registry(), op, &args).unwrap_err();
        assert!(refused.to_string().contains("cannot return"), "{name}: {refused}");
    }
}

#[test]
fn an_unknown_option_is_an_invalid_call() {
    let op = registry().get("aten.gelu.default").unwrap();
    let args = samples::read(&op.schema, "f32[2], approximate='other'").unwrap();
    let error = pyrite_interp::call(&Context::new(registry(), 0), op, args).unwrap_err();
    assert!(matches!(error, OpError::Invalid(_)));
}

/// The same metadata with every size of two and more replaced by a symbol that has it as its hint.
fn symbolic(meta: &Meta, sizes: &mut BTreeMap<i64, SymInt>, env: &SymEnv) -> Meta {
    if !meta.is_contiguous() || meta.number {
        return meta.clone();
    }
    let shape: SymDims = meta
        .shape
        .iter()
        .map(|size| match size.as_int() {
            Some(value) if value >= 2 => sizes.entry(value).or_insert_with(|| env.size(value)).clone(),
            _ => size.clone(),
        })
        .collect();
    Meta { storage: meta.storage, offset: meta.offset.clone(), ..Meta::contiguous(&shape, meta.dtype) }
}

#[test]
fn inference_with_symbolic_sizes_agrees_with_numbers() {
    let mut problems = Vec::new();
    for op in registry().iter().filter(|op| !op.has(Tag::DataDependentShape)) {
        for text in op.def.samples {
            let Ok(mut args) = samples::read(&op.schema, text) else { continue };
            pyrite_ir::args::tensors_from_numbers(&op.schema, &mut args);
            let numbers = pyrite_interp::call::metas(&args);
            let (env, mut sizes) = (SymEnv::new(), BTreeMap::new());
            let symbols: Vec<Value<Meta>> =
                numbers.iter().map(|v| v.map(&mut |m| symbolic(m, &mut sizes, &env))).collect();
            let (Ok(expected), actual) = (infer(registry(), op, &numbers), infer(registry(), op, &symbols)) else {
                continue;
            };
            match actual {
                Ok(actual) => {
                    let (mut want, mut have) = (Vec::new(), Vec::new());
                    expected.each(&mut |m: &Meta| want.push((hints(&m.shape), hints(&m.stride), m.dtype)));
                    actual.each(&mut |m: &Meta| have.push((hints(&m.shape), hints(&m.stride), m.dtype)));
                    if want != have {
                        problems.push(format!("{} on ({text}): {have:?} instead of {want:?}", op.name()));
                    }
                }
                Err(error) => problems.push(format!("{} on ({text}): {error}", op.name())),
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

fn hints(dims: &[SymInt]) -> Vec<Option<i64>> {
    dims.iter().map(SymInt::hint).collect()
}
