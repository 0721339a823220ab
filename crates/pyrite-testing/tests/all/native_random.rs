//! Random numbers in compiled programs: those of an eager run, and those of the fast stream.

use pyrite_codegen::Generator;
use pyrite_compiler::backends::{interpreted, native_by};
use pyrite_compiler::{Options, aot_autograd};
use pyrite_ir::{Builder, Graph, Kind, Meta, NodeId, Target, Value};
use pyrite_ops::registry;
use pyrite_passes::{Random, Table};
use pyrite_tensor::random::stream;
use pyrite_tensor::{DType, Tensor};

fn call(builder: &mut Builder, name: &str, args: &[Value<NodeId>]) -> NodeId {
    let op = registry().get(name).unwrap();
    builder.call(op, op.schema.bind_in_order(args).unwrap())
}

fn input(builder: &mut Builder, tensor: &Tensor, requires_grad: bool) -> NodeId {
    builder.placeholder("x", Some(Value::Tensor(Meta { requires_grad, ..Meta::of(tensor) })))
}

/// The graph that calls one operator on tensors, which come first among its arguments.
fn graph_of(name: &str, inputs: &[Tensor], rest: &[Value<NodeId>]) -> Graph {
    let mut builder = Builder::new();
    let mut args: Vec<Value<NodeId>> = inputs.iter().map(|tensor| input(&mut builder, tensor, false).into()).collect();
    args.extend_from_slice(rest);
    let result = call(&mut builder, name, &args);
    builder.output(vec![result].into());
    builder.finish()
}

fn generators() -> Vec<Option<Generator>> {
    let known = Generator::NAMES.iter().filter_map(|name| Generator::named(name)).map(Some);
    known.chain([None]).collect()
}

/// The first result by a generator of code, or by the interpreter.
fn run(graph: &Graph, inputs: &[Tensor], by: Option<Generator>, random: Random, seed: u64) -> Tensor {
    let compiler = by.map_or_else(|| interpreted(None), native_by);
    let pipeline = aot_autograd(compiler).decompositions(Table::Loops);
    let program = pipeline.compile(graph, &Options { random, seed, ..Options::default() }).unwrap();
    let inputs = inputs.iter().map(|tensor| Value::Tensor(tensor.clone())).collect();
    let Value::List(outputs) = program.run(inputs, None, &mut |_, _| {}).unwrap().outputs else { panic!("a list") };
    outputs[0].as_tensor().unwrap().clone()
}

fn sizes(shape: &[i64]) -> Value<NodeId> {
    Value::List(shape.iter().map(|size| Value::from(*size)).collect())
}

fn zeros(shape: &[i64], dtype: DType) -> Tensor {
    let tensor = Tensor::empty(shape, dtype).unwrap();
    tensor.write_f64s(&vec![0.0; tensor.numel()]);
    tensor
}

#[test]
fn a_stream_is_the_same_bit_for_bit_on_every_generator_of_code() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
        // More than one thread's share, and sizes that no vector divides.
        for shape in [&[3, 5, 7][..], &[70_001], &[257, 1031]] {
            let graph = graph_of("aten.rand.default", &[], &[sizes(shape), dtype.into()]);
            let all = generators();
            let expected = run(&graph, &[], None, Random::Stream, 7).to_f64s();
            assert!(expected.iter().all(|x| (0.0..1.0).contains(x)), "{dtype}");
            for by in all {
                assert_eq!(run(&graph, &[], by, Random::Stream, 7).to_f64s(), expected, "{dtype} {shape:?} {by:?}");
            }
            assert_ne!(run(&graph, &[], None, Random::Stream, 8).to_f64s(), expected, "another seed");
        }
    }
}

#[test]
fn positions_are_counted_in_the_order_of_the_sizes_whatever_reads_them() {
    let (rows, columns) = (37, 53);
    let mut builder = Builder::new();
    let drawn = call(&mut builder, "aten.rand.default", &[sizes(&[rows, columns]), DType::F32.into()]);
    let transposed = call(&mut builder, "aten.permute.default", &[drawn.into(), sizes(&[1, 0])]);
    let part = call(&mut builder, "aten.slice.Tensor", &[transposed.into(), 0.into(), 5.into(), 41.into(), 3.into()]);
    let whole = call(&mut builder, "aten.add.Tensor", &[part.into(), 0.into()]);
    let both = call(&mut builder, "aten.cat.default", &[vec![whole, whole].into(), 1.into()]);
    let result = call(&mut builder, "aten.mul.Tensor", &[both.into(), 2.into()]);
    builder.output(vec![result].into());
    let graph = builder.finish();
    let plain = graph_of("aten.rand.default", &[], &[sizes(&[rows, columns]), DType::F32.into()]);
    let drawn = run(&plain, &[], None, Random::Stream, 3).to_f64s();
    for by in generators() {
        let result = run(&graph, &[], by, Random::Stream, 3);
        assert_eq!(result.shape(), [12, 2 * rows]);
        for (at, value) in result.to_f64s().iter().enumerate() {
            let (i, j) = (at as i64 / (2 * rows), at as i64 % rows);
            assert_eq!(*value, 2.0 * drawn[(j * columns + 5 + 3 * i) as usize], "{by:?} at {i}, {j}");
        }
    }
}

/// Mean and deviation of what an operator draws, and the numbers.
fn moments(name: &str, inputs: &[Tensor], rest: &[Value<NodeId>]) -> (f64, f64, Vec<f64>) {
    let graph = graph_of(name, inputs, rest);
    let by = Some(Generator::chosen());
    let numbers = run(&graph, inputs, by, Random::Stream, 11).to_f64s();
    assert_ne!(numbers, run(&graph, inputs, by, Random::Eager, 11).to_f64s(), "{name} draws from the stream");
    let close = run(&graph, inputs, None, Random::Stream, 11).to_f64s();
    let same = numbers.iter().zip(&close).all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs().max(1.0));
    assert!(same, "{name}: compiled and interpreted programs draw the same");
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt(), numbers)
}

#[test]
fn what_is_drawn_from_the_stream_has_its_distribution() {
    let n = 200_000;
    let like = || vec![zeros(&[n], DType::F32)];
    let size = sizes(&[n]);
    let near = |(mean, deviation, _): &(f64, f64, Vec<f64>), expected: (f64, f64)| {
        let apart = (mean - expected.0).abs() / expected.1 * (n as f64).sqrt();
        assert!(apart < 5.0 && (deviation / expected.1 - 1.0).abs() < 0.03, "{mean} ± {deviation}, not {expected:?}");
    };
    let unit = (1.0f64 / 12.0).sqrt();
    near(&moments("aten.rand.default", &[], std::slice::from_ref(&size)), (0.5, unit));
    near(&moments("aten.rand_like.default", &like(), &[]), (0.5, unit));
    near(&moments("aten.uniform.default", &like(), &[(-2.0).into(), 6.0.into()]), (2.0, 8.0 * unit));
    near(&moments("aten.randn.default", &[], std::slice::from_ref(&size)), (0.0, 1.0));
    near(&moments("aten.randn_like.default", &like(), &[]), (0.0, 1.0));
    near(&moments("aten.normal_functional.default", &like(), &[3.0.into(), 2.0.into()]), (3.0, 2.0));
    near(&moments("aten.normal.float_float", &[], &[3.0.into(), 2.0.into(), size.clone()]), (3.0, 2.0));
    near(&moments("aten.normal.Tensor_float", &like(), &[2.0.into()]), (0.0, 2.0));
    near(&moments("aten.exponential.default", &like(), &[4.0.into()]), (0.25, 0.25));
    let (_, _, waits) = moments("aten.geometric.default", &like(), &[0.25.into()]);
    let first = waits.iter().filter(|wait| **wait == 1.0).count() as f64 / n as f64;
    assert!((first - 0.25).abs() < 0.005 && waits.iter().all(|wait| *wait >= 1.0 && wait.fract() == 0.0), "{first}");
    let log = moments("aten.log_normal.default", &like(), &[0.5.into(), 0.25.into()]);
    let normal: Vec<f64> = log.2.iter().map(|x| x.ln()).collect();
    assert!((normal.iter().sum::<f64>() / n as f64 - 0.5).abs() < 0.003);
    let (_, _, mut cauchy) = moments("aten.cauchy.default", &like(), &[1.0.into(), 2.0.into()]);
    cauchy.sort_by(f64::total_cmp);
    assert!((cauchy[n as usize / 2] - 1.0).abs() < 0.05 && (cauchy[n as usize / 4 * 3] - 3.0).abs() < 0.1);
    near(&moments("aten.bernoulli.p", &like(), &[0.3.into()]), (0.3, 0.21f64.sqrt()));
    let chances = zeros(&[n], DType::F64);
    chances.write_f64s(&vec![0.8; n as usize]);
    near(&moments("aten.bernoulli.default", &[chances], &[]), (0.8, 0.16f64.sqrt()));
    let dice = moments("aten.randint.low", &[], &[1.into(), 7.into(), size]);
    near(&dice, (3.5, (35.0f64 / 12.0).sqrt()));
    let faces = (1..=6).map(|face| dice.2.iter().filter(|x| **x == f64::from(face)).count()).collect::<Vec<_>>();
    assert!(faces.iter().all(|count| (*count as f64 / n as f64 - 1.0 / 6.0).abs() < 0.005), "{faces:?}");
}

#[test]
fn without_the_stream_an_eager_run_s_numbers_are_drawn() {
    let graph = graph_of("aten.randn.default", &[], &[sizes(&[100])]);
    let eager = pyrite_compiler::find("eager").unwrap();
    let program = (eager.compile)(graph.clone(), &Options { seed: 5, ..Options::default() }).unwrap();
    let Value::List(outputs) = program.run(Vec::new(), None, &mut |_, _| {}).unwrap().outputs else { panic!("a list") };
    let expected = outputs[0].as_tensor().unwrap().to_f64s();
    assert_eq!(Options::default().random, Random::Eager);
    assert_eq!(run(&graph, &[], Some(Generator::chosen()), Random::Eager, 5).to_f64s(), expected);
    assert_ne!(run(&graph, &[], Some(Generator::chosen()), Random::Stream, 5).to_f64s(), expected);
}

#[test]
fn what_has_no_stream_draws_as_an_eager_run_does() {
    let empty = graph_of("aten.randint.low", &[], &[3.into(), 3.into(), sizes(&[4])]);
    let pipeline = aot_autograd(native_by(Generator::chosen())).decompositions(Table::Loops);
    let options = Options { random: Random::Stream, ..Options::default() };
    let refused = pipeline.compile(&empty, &options).and_then(|program| program.run(Vec::new(), None, &mut |_, _| {}));
    assert!(refused.is_err(), "an empty range is refused as without the stream");
    let graph = graph_of("aten.randperm.default", &[], &[50.into()]);
    let by = Some(Generator::chosen());
    let (stream, eager) = (run(&graph, &[], by, Random::Stream, 1), run(&graph, &[], by, Random::Eager, 1));
    assert_eq!(stream.to_i64s(), eager.to_i64s());
}

#[test]
fn dropout_is_fused_and_its_backward_half_draws_again_instead_of_keeping_the_mask() {
    let x = zeros(&[64, 1000], DType::F32);
    x.write_f64s(&vec![1.0; x.numel()]);
    let mut builder = Builder::new();
    let placeholder = input(&mut builder, &x, true);
    let twice = call(&mut builder, "aten.mul.Tensor", &[placeholder.into(), 2.into()]);
    let dropped = call(&mut builder, "aten.dropout.default", &[twice.into(), 0.25.into(), true.into()]);
    builder.output(vec![dropped].into());
    let graph = builder.finish();
    for by in generators() {
        let compiler = by.map_or_else(|| interpreted(None), native_by);
        let pipeline = aot_autograd(compiler).decompositions(Table::Loops);
        let options = Options { random: Random::Stream, ..Options::default() };
        let program = pipeline.compile(&graph, &options).unwrap();
        let graphs = program.graphs();
        let (_, backward) = graphs.iter().find(|(name, _)| name == "backward").unwrap();
        let draws = |node: &pyrite_ir::Node| matches!(&node.kind, Kind::Call(Target::Op(op)) if op.name() == "pyrite.uniform.default");
        assert_eq!(backward.nodes().filter(|(_, node)| draws(node)).count(), 1);
        let saved = backward.placeholders().map(|(_, node)| node.meta.as_ref().unwrap().as_tensor().unwrap().rank());
        assert_eq!(saved.collect::<Vec<_>>(), [0, 2], "the seed and the gradient come in");
        let mut calls = 0;
        let forward = program.run(vec![x.clone().into()], None, &mut |_, _| calls += 1).unwrap();
        let Value::List(outputs) = forward.outputs else { panic!("a list") };
        let out = outputs[0].as_tensor().unwrap().to_f64s();
        let kept = out.iter().filter(|value| **value != 0.0).count() as f64 / out.len() as f64;
        assert!((kept - 0.75).abs() < 0.01, "{kept} were kept");
        assert!(out.iter().all(|value| *value == 0.0 || (*value - 2.0 / 0.75).abs() < 1e-6));
        let ones = zeros(&[64, 1000], DType::F32);
        ones.write_f64s(&vec![1.0; ones.numel()]);
        let gradient = forward.backward.unwrap().run(vec![ones], &mut |_, _| {}).unwrap().inputs[0].clone().unwrap();
        assert_eq!(gradient.to_f64s(), out, "what was kept is what has a gradient");
        if by.is_some() {
            assert_eq!(calls, 1, "only the seed is drawn by a call");
        }
    }
}

#[test]
fn dropout_between_matmuls_draws_the_same_block_by_block() {
    let numbers = |seed: usize| {
        let tensor = zeros(&[6, 128, 32], DType::F32);
        let count = tensor.numel();
        tensor.write_f64s(&(0..count).map(|i| ((i * 31 + seed * 17) % 29) as f64 / 29.0 - 0.5).collect::<Vec<_>>());
        tensor
    };
    let inputs = [numbers(1), numbers(2), numbers(3)];
    let mut builder = Builder::new();
    let [query, key, value] = [0, 1, 2].map(|at| input(&mut builder, &inputs[at], false));
    let transposed = call(&mut builder, "aten.permute.default", &[key.into(), sizes(&[0, 2, 1])]);
    let scores = call(&mut builder, "aten.bmm.default", &[query.into(), transposed.into()]);
    let weights = call(&mut builder, "aten._softmax.default", &[scores.into(), (-1).into(), false.into()]);
    let dropped = call(&mut builder, "aten.dropout.default", &[weights.into(), 0.25.into(), true.into()]);
    let mixed = call(&mut builder, "aten.bmm.default", &[dropped.into(), value.into()]);
    builder.output(vec![mixed].into());
    let graph = builder.finish();
    let expected = run(&graph, &inputs, None, Random::Stream, 9).to_f64s();
    for by in generators() {
        let found = run(&graph, &inputs, by, Random::Stream, 9).to_f64s();
        let same = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(same, "{by:?}");
    }
}

#[test]
fn the_halves_of_what_is_drawn_are_the_published_ones() {
    // Philox2x32 with seven rounds, counter and key zero.
    assert_eq!(stream::draw(0, 0) as u64, 0xcd26_be2a_257a_3673);
}
