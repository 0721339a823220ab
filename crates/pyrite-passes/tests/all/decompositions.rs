//! Every decomposition against the kernel of its operator, on the samples: the same values, metadata, writes and random
//! draws, and nothing but core operators where these are asked for.

use std::collections::BTreeMap;

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{Builder, Decompose, Eval, Graph, Kind, Meta, OpRef, SymDims, Tag, Target, Tolerance, Value};
use pyrite_ops::{registry, samples};
use pyrite_passes::{Gate, Random, Table, decompose};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::{DType, Tensor};

/// Types that a sample of a float type is also run in.
const FLOATS: &[DType] = &[DType::F64, DType::F32, DType::BF16, DType::F16];

/// How far results of a type may be apart: relative and absolute.
fn tolerance(op: &OpRef, dtype: DType) -> (f64, f64) {
    let (relative, absolute) = match dtype {
        DType::F16 => (1e-3, 1e-3),
        DType::BF16 => (1.6e-2, 1e-2),
        DType::F32 | DType::C64 => (1e-5, 1e-5),
        DType::F64 | DType::C128 => (1e-9, 1e-9),
        _ => (0.0, 0.0),
    };
    match op.def.tolerance {
        Tolerance::Exact => (0.0, 0.0),
        Tolerance::Usual => (relative, absolute),
        Tolerance::Times(factor) => (relative * factor, absolute * factor),
    }
}

/// A graph of one call, and its inputs.
fn program(op: &OpRef, args: &[Value<Tensor>], meta: &mut dyn FnMut(&Tensor) -> Meta) -> (Graph, Vec<Tensor>) {
    let mut builder = Builder::new();
    let mut inputs = Vec::new();
    let bound = args
        .iter()
        .map(|arg| {
            arg.map(&mut |tensor: &Tensor| {
                inputs.push(tensor.clone());
                builder.placeholder("x", Some(Value::Tensor(meta(tensor))))
            })
        })
        .collect();
    let result = builder.call(op, bound);
    builder.output(Value::Tensor(result));
    (builder.finish(), inputs)
}

/// A result, and which input's memory it shares.
type Seen = Option<(Tensor, Option<usize>)>;

/// What a graph returns, and its inputs after it ran.
fn run(graph: &Graph, inputs: &[Tensor]) -> Result<Vec<Seen>, String> {
    let own: Vec<Tensor> = inputs.iter().map(copied).collect();
    let context = Context::new(registry(), 3);
    let values = own.iter().cloned().map(Value::Tensor).collect();
    let result = Interpreter { context: &context, mode: Mode::Eager }
        .run(graph, values)
        .map_err(|e| format!("{e}\n{}", text(graph)))?;
    let mut found = Vec::new();
    flatten(&result, &mut found);
    found.extend(own.iter().cloned().map(Some));
    let home = |t: &Tensor| own.iter().position(|input| input.storage().id() == t.storage().id());
    Ok(found.into_iter().map(|t| t.map(|t| (t.clone(), home(&t)))).collect())
}

fn text(graph: &Graph) -> String {
    pyrite_ir::print::print(graph, &pyrite_ir::print::PrintOptions::default())
}

/// A tensor of its own memory with the same strides.
fn copied(tensor: &Tensor) -> Tensor {
    let copy = Tensor::empty_strided(tensor.shape(), tensor.stride(), tensor.dtype()).unwrap();
    copy.write_c128s(&tensor.to_c128s());
    if tensor.dtype().is_integral() {
        copy.write_i64s(&tensor.to_i64s());
    }
    copy
}

fn flatten(value: &Value<Tensor>, found: &mut Vec<Option<Tensor>>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| flatten(item, found)),
        Value::Tensor(tensor) => found.push(Some(tensor.clone())),
        _ => found.push(None),
    }
}

/// How two results differ. Strides of dimensions with at most one element say nothing.
fn difference(
    op: &OpRef,
    (want, home): &(Tensor, Option<usize>),
    (have, at): &(Tensor, Option<usize>),
) -> Option<String> {
    if home != at {
        return Some(format!("memory of input {at:?} against {home:?}"));
    }
    let strides = |t: &Tensor| -> Vec<i64> {
        t.shape().iter().zip(t.stride()).map(|(size, stride)| if *size == 1 { 0 } else { *stride }).collect()
    };
    if want.shape() != have.shape() || want.dtype() != have.dtype() {
        return Some(format!("{}{:?} against {}{:?}", have.dtype(), have.shape(), want.dtype(), want.shape()));
    }
    if want.numel() > 0 && strides(want) != strides(have) {
        return Some(format!("strides {:?} against {:?}", have.stride(), want.stride()));
    }
    if want.dtype().is_integral() {
        let (w, h) = (want.to_i64s(), have.to_i64s());
        return (w != h).then(|| format!("{h:?} against {w:?}"));
    }
    let (relative, absolute) = tolerance(op, want.dtype());
    let parts = |t: &Tensor| -> Vec<f64> { t.to_c128s().iter().flat_map(|z| [z.re, z.im]).collect() };
    let far =
        |w: f64, h: f64| !(w == h || (w.is_nan() && h.is_nan()) || (w - h).abs() <= absolute + relative * w.abs());
    let (w, h) = (parts(want), parts(have));
    w.iter().zip(&h).find(|(w, h)| far(**w, **h)).map(|(w, h)| format!("{h} against {w}"))
}

/// The operators that a graph calls.
fn called(graph: &Graph) -> Vec<OpRef> {
    let calls = graph.nodes().filter_map(|(_, node)| match &node.kind {
        Kind::Call(Target::Op(op)) => Some(op.clone()),
        _ => None,
    });
    calls.collect()
}

fn check(op: &OpRef, args: &[Value<Tensor>]) -> Result<(), String> {
    let (graph, inputs) = program(op, args, &mut |t| Meta::of(t));
    let want = run(&graph, &inputs)?;
    for table in [Table::Core, Table::Loops] {
        if !table.covers(op) {
            continue;
        }
        let simple =
            decompose(&graph, registry(), table, Random::Eager, &mut Gate::open()).map_err(|e| e.to_string())?;
        let have = run(&simple, &inputs)?;
        if want.len() != have.len() {
            return Err(format!("{} results against {}", have.len(), want.len()));
        }
        for (at, pair) in want.iter().zip(&have).enumerate() {
            let problem = match pair {
                (Some(want), Some(have)) => difference(op, want, have),
                (None, None) => None,
                _ => Some("a result that is nothing".to_owned()),
            };
            if let Some(problem) = problem {
                return Err(format!("{table:?}, result {at}: {problem}\n{}", text(&simple)));
            }
        }
        for inner in called(&simple) {
            if table.covers(&inner) {
                return Err(format!("{table:?} leaves {}", inner.name()));
            }
        }
    }
    Ok(())
}

/// A sample with its floats, and the types it names, in another type; `None` where it has no floats of its first type.
fn in_type(args: &[Value<Tensor>], dtype: DType) -> Option<Vec<Value<Tensor>>> {
    let mut first = None;
    args.iter().for_each(|arg| {
        arg.each(&mut |t: &Tensor| {
            if t.dtype().is_float() {
                first.get_or_insert(t.dtype());
            }
        });
    });
    let from = first.filter(|from| *from != dtype)?;
    let retyped = args.iter().map(|arg| match arg {
        Value::DType(named) if *named == from => Value::DType(dtype),
        other => other.map(&mut |t: &Tensor| {
            if t.dtype() != from {
                return t.clone();
            }
            let to = Tensor::empty_strided(t.shape(), t.stride(), dtype).unwrap();
            to.write_f64s(&t.to_f64s());
            to
        }),
    });
    Some(retyped.collect())
}

/// A sample whose floats begin with numbers at which functions do something special, each tensor in another order.
fn at_edges(args: &[Value<Tensor>]) -> Vec<Value<Tensor>> {
    const EDGES: [f64; 7] = [0.0, f64::INFINITY, -1.0, f64::NAN, f64::NEG_INFINITY, 1.0, -0.0];
    let mut tensors = 0;
    let edged = args.iter().map(|arg| {
        arg.map(&mut |t: &Tensor| {
            if !t.dtype().is_float() {
                return t.clone();
            }
            tensors += 1;
            let mut values = t.to_f64s();
            values.iter_mut().enumerate().for_each(|(at, value)| *value = EDGES[at * tensors % EDGES.len()]);
            let to = Tensor::empty_strided(t.shape(), t.stride(), t.dtype()).unwrap();
            to.write_f64s(&values);
            to
        })
    });
    edged.collect()
}

/// Operators with a decomposition beside their kernel or view; `PYRITE_TEST_OPS=gelu,relu` picks those whose names contain one of these.
fn operators() -> impl Iterator<Item = &'static OpRef> {
    let only = std::env::var("PYRITE_TEST_OPS").unwrap_or_default();
    registry().iter().filter(move |op| {
        let mut names = only.split(',').filter(|name| !name.is_empty()).peekable();
        let picked = names.peek().is_none() || names.any(|name| op.name().contains(name));
        picked && matches!((op.def.eval, op.def.decompose), (Eval::Kernel(_) | Eval::View, Decompose::Rule(_)))
    })
}

#[test]
fn every_decomposition_computes_what_the_kernel_does() {
    let mut problems = Vec::new();
    let mut checked = 0;
    for op in operators() {
        for sample in op.def.samples {
            let args = samples::read(&op.schema, sample).unwrap();
            checked += 1;
            if let Err(problem) = check(op, &args) {
                problems.push(format!("{} on ({sample}): {problem}", op.name()));
            }
            if op.has(Tag::Pointwise)
                && let Err(problem) = check(op, &at_edges(&args))
            {
                problems.push(format!("{} at the edges of ({sample}): {problem}", op.name()));
            }
            for dtype in FLOATS {
                // Types that the operator does not take are no samples.
                let Some(args) = in_type(&args, *dtype) else { continue };
                let (graph, inputs) = program(op, &args, &mut |t| Meta::of(t));
                if run(&graph, &inputs).is_err() {
                    continue;
                }
                if let Err(problem) = check(op, &args) {
                    problems.push(format!("{} on ({sample}) in {dtype}: {problem}", op.name()));
                }
            }
        }
    }
    assert!(checked > 0);
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// The same metadata with every size of two and more replaced by a symbol that has it as its hint.
fn symbolic(tensor: &Tensor, sizes: &mut BTreeMap<i64, SymInt>, env: &SymEnv) -> Meta {
    let meta = Meta::of(tensor);
    if !meta.is_contiguous() {
        return meta;
    }
    let symbol = |size: &SymInt| match size.as_int() {
        Some(value) if value >= 2 => sizes.entry(value).or_insert_with(|| env.size(value)).clone(),
        _ => size.clone(),
    };
    let shape: SymDims = meta.shape.iter().map(symbol).collect();
    Meta { storage: meta.storage, ..Meta::contiguous(&shape, meta.dtype) }
}

#[test]
fn decompositions_take_symbolic_sizes() {
    let mut problems = Vec::new();
    for op in operators().filter(|op| !op.has(Tag::DataDependentShape)) {
        for sample in op.def.samples {
            let args = samples::read(&op.schema, sample).unwrap();
            let (env, mut sizes) = (SymEnv::new(), BTreeMap::new());
            let (graph, inputs) = program(op, &args, &mut |t| symbolic(t, &mut sizes, &env));
            // What cannot be inferred with symbols cannot be decomposed either.
            let tracer = pyrite_ir::Tracer::new(registry());
            let traced = pyrite_passes::replay::replay(&graph, tracer, &mut |t, _, op, args| t.call_op(op, args));
            if traced.is_err() {
                continue;
            }
            let simple = match decompose(&graph, registry(), Table::Loops, Random::Eager, &mut Gate::open()) {
                Ok(simple) => simple,
                Err(error) => {
                    problems.push(format!("{} on ({sample}): {error}", op.name()));
                    continue;
                }
            };
            let (Ok(want), have) = (run(&graph, &inputs), run(&simple, &inputs)) else { continue };
            let problem = match have {
                Ok(have) => want.iter().zip(&have).find_map(|pair| match pair {
                    (Some(want), Some(have)) => difference(op, want, have),
                    _ => None,
                }),
                Err(error) => Some(error),
            };
            problems.extend(problem.map(|p| format!("{} on ({sample}): {p}\n{}", op.name(), text(&simple))));
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
