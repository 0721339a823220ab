//! Results that an operator leaves open.
//!
//! The record of an operator says what right results may differ in: which of equal elements is named, the signs of
//! vectors, the order of writes to one place. Whether a program's results depend on such a choice is found out by making
//! the other choice: the reference runs once more, and every open result is changed into another right one. An element of
//! the results that changes with it is open too, and blames nobody; every other one has to be right.
//!
//! Random numbers are such a choice for backends that may draw others than eager does: each element that an operator drew
//! becomes another one that it may draw. Another seed would not do: half of the elements of a mask are the same with it.
//!
//! Gradients follow from a choice as results do: with gradients, both halves of the differentiated program run so. Where it
//! cannot be differentiated by Pyrite, the forward half runs alone, and gradients that differ blame nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyrite_compiler::aot::{Compiled, GraphCompiler};
use pyrite_compiler::backend::{Direction, Observer};
use pyrite_compiler::training::Results;
use pyrite_compiler::{Options, aot_autograd};
use pyrite_interp::{Context, Interpreter, Mode, call};
use pyrite_ir::{Device, Eval, Freedom, Graph, Kind, NodeError, NodeId, OpError, OpRef, Operator, Tag, Target, Value};
use pyrite_ops::registry;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{Complex64, DType, Layout, Scalar, Tensor};
use rustc_hash::FxHashMap;

use crate::judge::{Copies, execute, prepared};
use crate::torch::base;

/// Whether random numbers are among what a backend may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draws {
    /// It draws those of eager.
    AsEager,
    /// It may draw others.
    Freely,
}

impl Draws {
    /// Those of a backend.
    pub(crate) fn of(backend: &str) -> Self {
        let as_eager = ["inductor", "eager", "aot_eager", "aot_eager_decomp_partition"];
        match backend.strip_prefix("torch:") {
            Some(name) if !as_eager.contains(&base(name)) => Self::Freely,
            _ => Self::AsEager,
        }
    }
}

/// What becomes of a program's results with other choices.
pub(crate) struct Other {
    results: Results,
    gradients: Gradients,
}

/// Whether the other choices were followed through the backward half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gradients {
    Followed,
    Unknown,
}

/// How far apart two numbers are that are not the same, as a part of the larger.
const APART: f64 = 1e-6;

impl Other {
    /// Runs a program with other choices; `None` where it leaves none open, or cannot be run by the interpreter.
    pub(crate) fn of(graph: &Graph, inputs: &[Value<Tensor>], options: &Options, draws: Draws) -> Option<Self> {
        let random = draws == Draws::Freely && crate::torch::draws(graph);
        if options.direction == Direction::ForwardAndBackward {
            match with_gradients(graph, inputs, options, draws) {
                Some((results, chosen)) => {
                    return chosen.then_some(Self { results, gradients: Gradients::Followed });
                }
                None if !random && !leaves_open(graph) => return None,
                None => {}
            }
        } else if !random && !leaves_open(graph) {
            return None;
        }
        let (mut graph, inputs) = prepared(graph, inputs, Mode::Eager);
        graph.put_on(&Device::Cpu);
        let context = Context::new(registry(), options.seed);
        let (outputs, chosen) = run_choosing(&graph, inputs.clone(), &context, draws, &mut |_, _| {});
        let outputs = outputs.ok()?;
        let buffers = graph.constants().iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        let results = Results { outputs: vec![outputs], inputs, buffers, ..Results::default() };
        chosen.then_some(Self { results, gradients: Gradients::Unknown })
    }

    /// What a backend gave, with those elements that are open as the reference has them.
    pub(crate) fn excuse(&self, expected: &Results, actual: &Results) -> Results {
        let mut copies = Copies::default();
        let mut copied = |value: &Value<Tensor>| value.map(&mut |tensor| copies.of(tensor));
        let mut excused = Results {
            outputs: actual.outputs.iter().map(&mut copied).collect(),
            inputs: actual.inputs.iter().map(&mut copied).collect(),
            input_gradients: expected.input_gradients.clone(),
            parameter_gradients: expected.parameter_gradients.clone(),
            buffers: Vec::new(),
            loss: actual.loss,
        };
        excused.buffers = actual.buffers.iter().map(|(name, tensor)| (name.clone(), copies.of(tensor))).collect();
        if self.gradients == Gradients::Followed {
            let mut copied = |gradient: &Option<Tensor>| gradient.as_ref().map(|tensor| copies.of(tensor));
            excused.input_gradients = actual.input_gradients.iter().map(&mut copied).collect();
            let named = |(name, gradient): &(_, Option<Tensor>)| (Clone::clone(name), copied(gradient));
            excused.parameter_gradients = actual.parameter_gradients.iter().map(named).collect();
            let own = self.results.input_gradients.iter().zip(&expected.input_gradients).zip(&excused.input_gradients);
            own.for_each(|((other, expected), actual)| excuse_gradient([other, expected, actual]));
            let own = self.results.parameter_gradients.iter().zip(&expected.parameter_gradients);
            for (((_, other), (_, expected)), (_, actual)) in own.zip(&excused.parameter_gradients) {
                excuse_gradient([other, expected, actual]);
            }
        }
        excuse_values(&self.results.outputs, &expected.outputs, &mut excused.outputs, &mut copies);
        excuse_values(&self.results.inputs, &expected.inputs, &mut excused.inputs, &mut copies);
        for (((_, other), (_, expected)), (_, actual)) in
            self.results.buffers.iter().zip(&expected.buffers).zip(&excused.buffers)
        {
            excuse_tensor(other, expected, actual);
        }
        excused
    }
}

/// What a backend gave, with what the program's operators leave open as the reference has it; `None` where they leave nothing open.
pub fn excused(
    graph: &Graph,
    inputs: &[Value<Tensor>],
    options: &Options,
    backend: &str,
    [expected, actual]: [&Results; 2],
) -> Option<Results> {
    Some(Other::of(graph, inputs, options, Draws::of(backend))?.excuse(expected, actual))
}

/// Both halves of a program with other choices, and whether there was one; `None` where it cannot be differentiated.
fn with_gradients(graph: &Graph, inputs: &[Value<Tensor>], options: &Options, draws: Draws) -> Option<(Results, bool)> {
    let chosen = Arc::new(AtomicBool::new(false));
    let told = chosen.clone();
    let compiler: GraphCompiler =
        Arc::new(move |graph, _| Ok(Arc::new(Choosing { graph, draws, chosen: told.clone() }) as Arc<dyn Compiled>));
    let backend = aot_autograd(compiler).backend("other choices", "the reference with other choices");
    let options = Options { mode: Mode::Eager, ..options.clone() };
    let ran = execute(graph, inputs, &backend, &options, &mut |_| {}, &mut |_, _| {}).ok()?;
    Some((ran.results, chosen.load(Ordering::Relaxed)))
}

/// A functional graph that is interpreted with other choices.
struct Choosing {
    graph: Graph,
    draws: Draws,
    chosen: Arc<AtomicBool>,
}

impl Compiled for Choosing {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<Value<Tensor>>, NodeError> {
        let context = Context::with_generator(registry(), random.clone());
        let (result, chosen) = run_choosing(&self.graph, inputs, &context, self.draws, observe);
        self.chosen.fetch_or(chosen, Ordering::Relaxed);
        *random = context.rng.into_inner();
        match result? {
            Value::List(items) => Ok(items),
            other => Err(OpError::fault(format!("a functional graph returned {}", other.kind())).into()),
        }
    }
}

/// Interprets a graph and changes every open result into another right one; whether there was one.
fn run_choosing(
    graph: &Graph,
    inputs: Vec<Value<Tensor>>,
    context: &Context<'_>,
    draws: Draws,
    observe: &mut Observer<'_>,
) -> (Result<Value<Tensor>, NodeError>, bool) {
    let interpreter = Interpreter { context, mode: Mode::Eager };
    let order: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let mut seen: FxHashMap<NodeId, Value<Tensor>> = FxHashMap::default();
    let mut before: Vec<Value<Tensor>> = Vec::new();
    let (mut at, mut chosen) = (0, false);
    let result = interpreter.run_observed(graph, inputs, &mut |id, node, value| {
        let given = |seen: &FxHashMap<NodeId, Value<Tensor>>, id: NodeId| {
            let args = graph.node(id).args.iter();
            args.map(|arg| in_place_of_nodes(arg, seen)).collect::<Option<Vec<_>>>()
        };
        if let Kind::Call(Target::Op(op)) = &node.kind {
            // What an operator writes to was another thing before.
            let args = if op.schema.is_mutable() { Some(before.clone()) } else { given(&seen, id) };
            let other = |args: Vec<_>| match draws {
                Draws::Freely if op.has(Tag::Random) => other_draws(op, &args, value),
                Draws::Freely | Draws::AsEager => choose(op, &args, value, context),
            };
            chosen |= args.and_then(other).unwrap_or(false);
        }
        seen.insert(id, value.clone());
        at += 1;
        before = match order.get(at).map(|next| (*next, &graph.node(*next).kind)) {
            Some((next, Kind::Call(Target::Op(op))))
                if op.schema.is_mutable() && (is_open(op) || op.has(Tag::Random)) =>
            {
                let args = given(&seen, next).unwrap_or_default();
                args.iter().map(|arg| arg.map(&mut copy_of)).collect()
            }
            _ => Vec::new(),
        };
        observe(node, value);
    });
    (result, chosen)
}

/// Whether a graph has an operator that leaves something open.
fn leaves_open(graph: &Graph) -> bool {
    let open = |kind: &Kind| matches!(kind, Kind::Call(Target::Op(op)) if is_open(op));
    graph.nodes().any(|(_, node)| open(&node.kind))
}

fn is_open(op: &Operator) -> bool {
    freedom_of(op) != Freedom::Nothing
}

/// What an operator leaves open; one that writes its result somewhere leaves open what its functional form does.
fn freedom_of(op: &Operator) -> Freedom {
    match op.def.eval {
        Eval::WriteBack(functional) => registry().get(functional).map_or(Freedom::Nothing, |op| op.def.freedom),
        _ => op.def.freedom,
    }
}

/// An argument with the values of the nodes in it; `None` where one is not known.
pub(crate) fn in_place_of_nodes(arg: &Value<NodeId>, seen: &FxHashMap<NodeId, Value<Tensor>>) -> Option<Value<Tensor>> {
    if let Value::Tensor(id) = arg {
        return seen.get(id).cloned();
    }
    if let Value::List(items) = arg {
        return items.iter().map(|item| in_place_of_nodes(item, seen)).collect::<Option<Vec<_>>>().map(Value::List);
    }
    arg.try_map::<Tensor, ()>(&mut |_| Err(())).ok()
}

/// Changes a result into another right one, in place; whether there is another. `None` where that is not known.
fn choose(op: &OpRef, args: &[Value<Tensor>], result: &Value<Tensor>, context: &Context<'_>) -> Option<bool> {
    let results = tensors_in(result)?;
    let named = |name: &str| args.get(op.schema.param(name)?);
    match freedom_of(op) {
        Freedom::Nothing => None,
        Freedom::Ties => {
            if matches!(named("stable"), Some(Value::Bool(true))) {
                return None;
            }
            let dim = named("dim").and_then(Value::as_scalar).map_or(-1.0, Scalar::to_f64);
            let mut changed = other_ties(args.first()?.as_tensor()?, dim as i64, results.last()?);
            if matches!(named("sorted"), Some(Value::Bool(false))) {
                results.iter().for_each(|tensor| changed |= rotate(tensor, dim as i64));
            }
            Some(changed)
        }
        Freedom::TiesInWindow => other_ties_in_windows(op, args, results.last()?, context),
        Freedom::Signs => {
            let rank = args.first()?.as_tensor()?.rank();
            // Vectors of one space may be any that span it: what is zero need not be.
            let spans = has_wide_spaces(&results, rank);
            for vectors in results.iter().filter(|tensor| tensor.rank() == rank) {
                let other = |z: &Complex64| if spans && z.norm() < 1e-6 { Complex64::new(1.0, 0.0) } else { -z };
                vectors.write_c128s(&vectors.to_c128s().iter().map(other).collect::<Vec<_>>());
            }
            Some(true)
        }
        Freedom::HalfTurn => {
            let half = |angle: f64| (angle.abs() - std::f64::consts::PI).abs() < 1e-2;
            let angles = results.first()?.to_f64s();
            results.first()?.write_f64s(&angles.iter().map(|v| if half(*v) { -v } else { *v }).collect::<Vec<_>>());
            Some(angles.into_iter().any(half))
        }
        Freedom::OutOfRange => other_integers(args.first()?.as_tensor()?, results.first()?),
        Freedom::Contents => {
            let anything = results.first()?;
            anything.write_f64s(&vec![3.0; anything.numel()]);
            Some(anything.numel() > 0)
        }
        Freedom::WriteOrder => {
            let functional = functional_form(op)?;
            let other = call(context, functional, backwards(functional, args)?).ok()?;
            let (own, other) = (results.first()?, other.as_tensor()?.clone());
            let differs = own.to_c128s() != other.to_c128s();
            own.write_from(&other);
            Some(differs)
        }
    }
}

/// The tensors that an operator returns.
fn tensors_in(result: &Value<Tensor>) -> Option<Vec<&Tensor>> {
    match result {
        Value::Tensor(tensor) => Some(vec![tensor]),
        Value::List(items) => Some(items.iter().filter_map(Value::as_tensor).collect()),
        _ => None,
    }
}

/// An operator that writes nothing and computes what another one does.
fn functional_form(op: &OpRef) -> Option<&OpRef> {
    match op.def.eval {
        Eval::WriteBack(functional) => registry().get(functional),
        _ => Some(op),
    }
}

/// How often an operator draws at most until each element has been another one, and how many elements that may be in all.
const DRAWINGS: u64 = 256;
const DRAWN: u64 = 1 << 27;

/// Makes each element that an operator drew another one that it may draw; whether there is another.
fn other_draws(op: &OpRef, args: &[Value<Tensor>], result: &Value<Tensor>) -> Option<bool> {
    let functional = functional_form(op)?;
    let results = tensors_in(result)?;
    let own: Vec<_> = results.iter().map(|tensor| tensor.to_c128s()).collect();
    let mut other = own.clone();
    let count = own.iter().map(Vec::len).sum::<usize>().max(1) as u64;
    for seed in 1..=DRAWINGS.min(DRAWN / count).max(4) {
        let drawn = call(&Context::new(registry(), seed), functional, args.to_vec()).ok()?;
        let mut same = 0;
        for ((own, other), drawn) in own.iter().zip(&mut other).zip(tensors_in(&drawn)?) {
            for ((own, other), drawn) in own.iter().zip(other).zip(drawn.to_c128s()) {
                if other == own {
                    *other = drawn;
                    same += usize::from(*other == *own);
                }
            }
        }
        if same == 0 {
            break;
        }
    }
    results.iter().zip(&other).for_each(|(tensor, other)| tensor.write_c128s(other));
    Some(other != own)
}

/// Changes what became of numbers that an integer type cannot hold; whether there are any. Processors and compilers differ
/// in it.
fn other_integers(numbers: &Tensor, integers: &Tensor) -> Option<bool> {
    if integers.dtype().is_float8() {
        return other_float8s(numbers, integers);
    }
    let (low, high) = match integers.dtype() {
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::I16 => (-32_768.0, 32_767.0),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        // The largest integer below this one is no double.
        DType::I64 => (-(2f64.powi(63)), 2f64.powi(63).next_down()),
        DType::U16 => (0.0, 65_535.0),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        DType::U64 => (0.0, 2f64.powi(64).next_down()),
        _ => return None,
    };
    if !numbers.dtype().is_float() {
        return None;
    }
    let own = integers.to_i64s();
    let fits = |number: f64| (low..=high).contains(&number.trunc());
    let other: Vec<i64> = numbers
        .to_f64s()
        .into_iter()
        .zip(&own)
        .map(|(number, own)| if fits(number) { *own } else { own ^ 1 })
        .collect();
    integers.write_i64s(&other);
    Some(other != own)
}

/// Another number where one is too large for a float of 8 bits: PyTorch's releases make the largest number or NaN of it.
fn other_float8s(numbers: &Tensor, narrow: &Tensor) -> Option<bool> {
    let largest = match narrow.dtype() {
        DType::F8E4M3 => 448.0,
        DType::F8E4M3Fnuz => 240.0,
        _ => 57_344.0,
    };
    if !numbers.dtype().is_float() {
        return None;
    }
    let mut changed = false;
    let mut other = |(number, own): (f64, f64)| {
        let fits = number.is_nan() || number.abs() <= largest;
        changed |= !fits;
        if fits { own } else { 1.0 }
    };
    let values: Vec<f64> = numbers.to_f64s().into_iter().zip(narrow.to_f64s()).map(&mut other).collect();
    narrow.write_f64s(&values);
    Some(changed)
}

/// Moves every element along a dimension to the place before it, the first to the end: another order of what has none;
/// whether there is one.
fn rotate(tensor: &Tensor, dim: i64) -> bool {
    let dim = if dim < 0 { dim + tensor.rank() as i64 } else { dim };
    let Some(length) = usize::try_from(dim).ok().and_then(|dim| tensor.shape().get(dim)).map(|n| *n as usize) else {
        return false;
    };
    let inner: usize = tensor.shape()[dim as usize + 1..].iter().map(|n| *n as usize).product();
    let next = |at: usize| {
        let (row, place, column) = (at / inner / length, at / inner % length, at % inner);
        (row * length + (place + 1) % length) * inner + column
    };
    if tensor.dtype() == DType::I64 {
        let own = tensor.to_i64s();
        tensor.write_i64s(&(0..own.len()).map(|at| own[next(at)]).collect::<Vec<_>>());
    } else {
        let own = tensor.to_c128s();
        tensor.write_c128s(&(0..own.len()).map(|at| own[next(at)]).collect::<Vec<_>>());
    }
    length > 1 && tensor.numel() > 0
}

/// Whether some of the vectors that a factorization finds are any that span a space: those of equal eigenvalues or singular
/// values, of singular values that are zero, those that fill a square matrix up, and those of columns that depend on
/// others.
fn has_wide_spaces(results: &[&Tensor], rank: usize) -> bool {
    let of_matrices: Vec<&&Tensor> = results.iter().filter(|tensor| tensor.rank() == rank).collect();
    let sides = |tensor: &Tensor| (tensor.shape()[rank - 2] as usize, tensor.shape()[rank - 1] as usize);
    if let Some(values) = results.iter().find(|tensor| tensor.rank() + 1 == rank) {
        let count = values.shape().last().map_or(0, |n| *n as usize).max(1);
        let filled = |tensor: &&&Tensor| sides(tensor).0 == sides(tensor).1 && sides(tensor).1 > count;
        let near = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            let equal = |pair: &[f64]| pair[1] - pair[0] <= 1e-4 * largest;
            values.windows(2).any(equal) || values.iter().any(|value| value.abs() <= 1e-5 * largest)
        };
        return of_matrices.iter().any(filled) || values.to_f64s().chunks(count).any(near);
    }
    let [q, r] = of_matrices[..] else { return false };
    let (rows, columns) = sides(r);
    let depends = |matrix: &[Complex64]| {
        let largest = matrix.iter().fold(0.0, |most: f64, z| most.max(z.norm()));
        (0..rows.min(columns)).any(|k| matrix[k * columns + k].norm() <= 1e-5 * largest)
    };
    sides(q).1 > columns || r.to_c128s().chunks((rows * columns).max(1)).any(depends)
}

/// Names another of equal elements; whether there is one.
fn other_ties(input: &Tensor, dim: i64, indices: &Tensor) -> bool {
    let rank = input.rank() as i64;
    if rank == 0 || input.numel() == 0 || indices.dtype() != DType::I64 {
        return false;
    }
    let dim = if dim < 0 { dim + rank } else { dim } as usize;
    let Some(length) = input.shape().get(dim).map(|n| *n as usize) else { return false };
    let inner: usize = input.shape()[dim + 1..].iter().map(|n| *n as usize).product();
    let outer = input.numel() / length / inner;
    let keys: Vec<u64> = if input.dtype().is_integral() {
        input.to_i64s().into_iter().map(|v| v as u64).collect()
    } else {
        // A NaN is as large as another, and so are both zeros.
        input.to_f64s().into_iter().map(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }.to_bits()).collect()
    };
    let mut named = indices.to_i64s();
    let count = named.len() / (outer * inner);
    let mut changed = false;
    for lane in 0..outer * inner {
        let (row, column) = (lane / inner, lane % inner);
        let mut equal: FxHashMap<u64, Vec<i64>> = FxHashMap::default();
        for place in 0..length {
            equal.entry(keys[(row * length + place) * inner + column]).or_default().push(place as i64);
        }
        for rank in 0..count {
            let slot = &mut named[(row * count + rank) * inner + column];
            let own = usize::try_from(*slot).ok().filter(|place| *place < length);
            let Some(key) = own.map(|place| keys[(row * length + place) * inner + column]) else { continue };
            let places = &equal[&key];
            if let Some(at) = places.iter().position(|place| place == slot).filter(|_| places.len() > 1) {
                *slot = places[(at + 1) % places.len()];
                changed = true;
            }
        }
    }
    indices.write_i64s(&named);
    changed
}

/// Names another of equal elements, of those that each result was taken from; whether there is one. Which those are the
/// operator itself says: it gets a tensor of the same order without ties, once with the earlier of equal elements the
/// smaller one, and once the other way.
fn other_ties_in_windows(op: &OpRef, args: &[Value<Tensor>], indices: &Tensor, context: &Context<'_>) -> Option<bool> {
    let ranks = dense_ranks(args.first()?.as_tensor()?, op);
    let (input, count) = (args.first()?.as_tensor()?, ranks.len());
    let places = |sign: f64| {
        let untied = Tensor::empty(input.shape(), DType::F64).ok()?;
        let keys = ranks.iter().enumerate().map(|(place, rank)| (rank * count) as f64 + sign * place as f64);
        untied.write_f64s(&keys.collect::<Vec<_>>());
        let args = std::iter::once(untied.into()).chain(args[1..].iter().cloned()).collect();
        match call(context, op, args).ok()? {
            Value::List(results) => Some(results.last()?.as_tensor()?.to_i64s()),
            _ => None,
        }
    };
    let (own, last, first) = (indices.to_i64s(), places(1.0)?, places(-1.0)?);
    let other: Vec<i64> =
        own.iter().zip(last.iter().zip(&first)).map(|(own, (l, f))| if l == own { *f } else { *l }).collect();
    indices.write_i64s(&other);
    Some(other != own)
}

/// The place of each element among the different elements in order. A NaN wins over all: it is the smallest where minima
/// are looked for, else the largest.
fn dense_ranks(input: &Tensor, op: &OpRef) -> Vec<usize> {
    let values: Vec<f64> = input.to_f64s();
    let minima = op.name().contains("min");
    let order = |a: &f64, b: &f64| match (a.is_nan(), b.is_nan()) {
        (true, true) => std::cmp::Ordering::Equal,
        (true, false) if minima => std::cmp::Ordering::Less,
        (true, false) => std::cmp::Ordering::Greater,
        (false, true) if minima => std::cmp::Ordering::Greater,
        (false, true) => std::cmp::Ordering::Less,
        // Both zeros are equal.
        (false, false) => a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal),
    };
    let mut sorted: Vec<usize> = (0..values.len()).collect();
    sorted.sort_by(|a, b| order(&values[*a], &values[*b]));
    let (mut ranks, mut rank) = (vec![0; values.len()], 0);
    for (at, place) in sorted.iter().enumerate() {
        let tied = at > 0 && order(&values[sorted[at - 1]], &values[*place]).is_eq();
        rank = if tied || at == 0 { rank } else { rank + 1 };
        ranks[*place] = rank;
    }
    ranks
}

/// The arguments of an operator that writes to places, with the writes in the reverse order; `None` where that is not
/// known.
fn backwards(op: &OpRef, args: &[Value<Tensor>]) -> Option<Vec<Value<Tensor>>> {
    let mut args = args.to_vec();
    let named = |name: &str| op.schema.param(name);
    if named("accumulate").is_some_and(|at| matches!(args.get(at), Some(Value::Bool(true)))) {
        return None;
    }
    let dim_of = |rank: usize| -> Option<usize> {
        let dim = args.get(named("dim")?)?.as_scalar()?.to_f64() as i64;
        usize::try_from(if dim < 0 { dim + rank as i64 } else { dim }).ok().filter(|dim| *dim < rank)
    };
    let tensor = |name: &str| args.get(named(name)?)?.as_tensor().cloned();
    let replaced: Vec<(usize, Value<Tensor>)> = if let Some(at) = named("indices") {
        let Value::List(items) = args.get(at)? else { return None };
        let values = tensor("values")?;
        let count = items.first()?.as_tensor()?.numel() as i64;
        let fits = |item: &Value<Tensor>| {
            item.as_tensor().is_some_and(|t| t.rank() == 1 && t.dtype() != DType::Bool && t.shape()[0] == count)
        };
        if !items.iter().all(fits) || values.shape().first() != Some(&count) {
            return None;
        }
        let items = items.iter().filter_map(Value::as_tensor).map(|item| Value::Tensor(reversed(item, 0))).collect();
        vec![(at, Value::List(items)), (named("values")?, Value::Tensor(reversed(&values, 0)))]
    } else if let (Some(source), Some(at)) = (tensor("src"), named("src")) {
        let index = tensor("index")?;
        let dim = dim_of(index.rank())?;
        let layout = Layout::new(index.shape(), source.stride(), source.layout().offset);
        let used = source.view(source.dtype(), layout).ok()?;
        vec![(named("index")?, Value::Tensor(reversed(&index, dim))), (at, Value::Tensor(reversed(&used, dim)))]
    } else {
        let (index, source) = (tensor("index")?, tensor("source")?);
        let (index_at, source_at) = (named("index")?, named("source")?);
        if named("dim").is_some() {
            let dim = dim_of(source.rank())?;
            vec![(index_at, reversed(&index, 0).into()), (source_at, reversed(&source, dim).into())]
        } else {
            let flat = |tensor: &Tensor| reversed(&tensor.contiguous().reshaped(&[tensor.numel() as i64]), 0);
            vec![(index_at, flat(&index).into()), (source_at, flat(&source).into())]
        }
    };
    for (at, value) in replaced {
        args[at] = value;
    }
    Some(args)
}

/// A dense copy in memory of its own.
pub(crate) fn copy_of(tensor: &Tensor) -> Tensor {
    let Ok(copy) = Tensor::empty(tensor.shape(), tensor.dtype()) else { return tensor.clone() };
    copy.write_from(tensor);
    copy
}

/// A copy with the elements along a dimension in the reverse order.
fn reversed(tensor: &Tensor, dim: usize) -> Tensor {
    let Some(length) = tensor.shape().get(dim).map(|n| *n as usize) else { return tensor.clone() };
    let inner: usize = tensor.shape()[dim + 1..].iter().map(|n| *n as usize).product();
    let values = tensor.to_c128s();
    let place = |at: usize| {
        let (row, rank, column) = (at / inner / length, at / inner % length, at % inner);
        (row * length + length - 1 - rank) * inner + column
    };
    let copy = copy_of(tensor);
    copy.write_c128s(&(0..values.len()).map(|at| values[place(at)]).collect::<Vec<_>>());
    copy
}

fn excuse_gradient(three: [&Option<Tensor>; 3]) {
    if let [Some(other), Some(expected), Some(actual)] = three {
        excuse_tensor(other, expected, actual);
    }
}

fn excuse_values(
    others: &[Value<Tensor>],
    expected: &[Value<Tensor>],
    actual: &mut [Value<Tensor>],
    copies: &mut Copies,
) {
    for ((other, expected), actual) in others.iter().zip(expected).zip(actual) {
        excuse_value(other, expected, actual, copies);
    }
}

fn excuse_value(other: &Value<Tensor>, expected: &Value<Tensor>, actual: &mut Value<Tensor>, copies: &mut Copies) {
    match (other, expected, actual) {
        (Value::Tensor(other), Value::Tensor(expected), Value::Tensor(actual)) => {
            if has_open_size(other, expected, actual) {
                *actual = copies.of(expected);
            } else {
                excuse_tensor(other, expected, actual);
            }
        }
        (Value::List(other), Value::List(expected), Value::List(actual)) => {
            excuse_values(other, expected, actual, copies);
        }
        _ => {}
    }
}

/// Whether the size of a value depends on a choice, so that a backend's may be another one there: nothing of it can be compared.
fn has_open_size(other: &Tensor, expected: &Tensor, actual: &Tensor) -> bool {
    let (other, own, open) = (other.shape(), actual.shape(), expected.shape());
    let alike = expected.dtype() == actual.dtype() && other.len() == open.len() && own.len() == open.len();
    alike && other != open && (0..open.len()).all(|dim| other[dim] != open[dim] || own[dim] == open[dim])
}

/// Gives the elements of a backend's tensor that are open the values of the reference.
fn excuse_tensor(other: &Tensor, expected: &Tensor, actual: &Tensor) {
    let alike = |tensor: &Tensor| tensor.shape() == expected.shape() && tensor.dtype() == expected.dtype();
    if !alike(other) || !alike(actual) {
        return;
    }
    if expected.dtype().is_integral() {
        let (other, expected, own) = (other.to_i64s(), expected.to_i64s(), actual.to_i64s());
        if other != expected {
            let merged = own.iter().zip(expected.iter().zip(&other));
            actual.write_i64s(&merged.map(|(own, (e, o))| if e == o { *own } else { *e }).collect::<Vec<_>>());
        }
        return;
    }
    let (other, expected, own) = (other.to_c128s(), expected.to_c128s(), actual.to_c128s());
    let is_open = |e: &num_complex::Complex64, o: &num_complex::Complex64| {
        let (distance, size) = ((e - o).norm(), e.norm().max(o.norm()));
        e != o && !(e.is_nan() && o.is_nan()) && (distance > APART * size || distance.is_nan())
    };
    if expected.iter().zip(&other).any(|(e, o)| is_open(e, o)) {
        let merged = own.iter().zip(expected.iter().zip(&other));
        actual.write_c128s(&merged.map(|(own, (e, o))| if is_open(e, o) { *e } else { *own }).collect::<Vec<_>>());
    }
}
