//! Convolutions of compiled programs: those in transformed tiles agree with calls of their kernels, in every call alike,
//! also when the weight has been written to.

use pyrite_codegen::{Generator, Program};
use pyrite_ir::{Builder, Graph, Meta, NodeId, Value};
use pyrite_ops::registry;
use pyrite_passes::Gate;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{DType, Tensor};

fn numbers(shape: &[i64], seed: usize) -> Tensor {
    let tensor = Tensor::empty(shape, DType::F32).unwrap();
    let values = (0..tensor.numel()).map(|at| ((at + seed) * 7919 % 1009) as f64 / 1009.0 - 0.5);
    tensor.write_f64s(&values.collect::<Vec<_>>());
    tensor
}

/// A call of an operator on all inputs, with options.
fn graph(op: &str, inputs: &[Tensor], options: Vec<Value<NodeId>>) -> Graph {
    let mut builder = Builder::new();
    let mut args: Vec<Value<NodeId>> =
        inputs.iter().map(|tensor| builder.placeholder("x", Some(Value::Tensor(Meta::of(tensor)))).into()).collect();
    args.extend(options);
    let value = builder.call(registry().get(op).unwrap(), args);
    builder.output(vec![value].into());
    builder.finish()
}

fn compile(graph: &Graph, gate: &mut Gate) -> Program {
    Program::compile(graph, registry(), Generator::best(), gate).unwrap()
}

fn run(program: &Program, inputs: &[Tensor]) -> Vec<Vec<f64>> {
    let inputs = inputs.iter().cloned().map(Value::Tensor).collect();
    let value = program.run(inputs, registry(), &mut TorchGenerator::new(0), &mut |_, _| {}).unwrap();
    let mut found = Vec::new();
    value.each(&mut |tensor| found.push(tensor.to_f64s()));
    found
}

fn assert_close(found: &[Vec<f64>], expected: &[Vec<f64>]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let size = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(size > 0.0 && worst <= 4e-6 * size, "{worst} of {size}");
    }
}

/// Compiles with and without tiles; both agree and stay the same, and follow the weight when it is written to.
fn check(graph: &Graph, inputs: &[Tensor], weight: &Tensor) {
    let mut gate = Gate::open().logged();
    let program = compile(graph, &mut gate);
    let log = gate.into_log();
    let tiles: Vec<String> = log.iter().filter(|decision| decision.starts_with("winograd ")).cloned().collect();
    assert_eq!(tiles.len(), 1, "{log:?}");
    assert!(program.to_string().contains("in transformed tiles"));
    let refused = compile(graph, &mut Gate::open().refusing(&tiles));
    assert!(!refused.to_string().contains("in transformed tiles"));
    for round in 0..2 {
        let expected = run(&refused, inputs);
        let first = run(&program, inputs);
        assert_close(&first, &expected);
        for _ in 0..3 {
            assert_eq!(run(&program, inputs), first, "calls differ in round {round}");
        }
        weight.write_f64s(&weight.to_f64s().iter().map(|x| x * 3.0 + 0.25).collect::<Vec<_>>());
    }
}

fn options(padding: i64) -> Vec<Value<NodeId>> {
    let pair = |value: i64| Value::from(vec![value; 2]);
    vec![pair(1), pair(padding), pair(1), false.into(), pair(0), 1i64.into()]
}

#[test]
fn a_convolution_in_tiles_agrees_and_follows_its_weight() {
    let inputs = [numbers(&[2, 96, 15, 12], 1), numbers(&[100, 96, 3, 3], 2), numbers(&[100], 3)];
    check(&graph("aten.convolution.default", &inputs, options(1)), &inputs, &inputs[1]);
}

#[test]
fn a_large_image_of_fewer_channels_in_tiles_agrees() {
    let inputs = [numbers(&[1, 64, 33, 32], 1), numbers(&[70, 64, 3, 3], 2), numbers(&[70], 3)];
    check(&graph("aten.convolution.default", &inputs, options(1)), &inputs, &inputs[1]);
}

#[test]
fn the_gradients_of_a_convolution_in_tiles_agree() {
    let inputs = [numbers(&[2, 100, 13, 10], 1), numbers(&[2, 96, 15, 12], 2), numbers(&[100, 96, 3, 3], 3)];
    let mut values: Vec<Value<NodeId>> = vec![Value::from(vec![100i64])];
    values.extend(options(0));
    values.push(Value::List([true; 3].map(Value::from).to_vec()));
    check(&graph("aten.convolution_backward.default", &inputs, values), &inputs, &inputs[2]);
}

#[test]
fn what_is_not_worth_tiles_stays_a_call() {
    for (x, weight) in
        [([1, 3, 32, 32], [64, 3, 3, 3]), ([1, 128, 7, 7], [128, 128, 3, 3]), ([1, 64, 28, 28], [64, 64, 3, 3])]
    {
        let inputs = [numbers(&x, 1), numbers(&weight, 2)];
        let mut values = vec![Value::None];
        values.extend(options(1));
        let mut gate = Gate::open().logged();
        compile(&graph("aten.convolution.default", &inputs, values), &mut gate);
        assert!(!gate.into_log().iter().any(|decision| decision.starts_with("winograd ")), "{x:?} {weight:?}");
    }
}
