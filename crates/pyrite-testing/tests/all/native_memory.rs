//! The memory of compiled programs: results lie where something lay that is not needed any more, and nothing that
//! somebody else holds is written over. Each test has a process of its own, because the bytes of a process are counted.

use pyrite_codegen::{Generator, Program};
use pyrite_ir::{Builder, Graph, Meta, Value};
use pyrite_ops::registry;
use pyrite_passes::Gate;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::storage::{peak, watch_peak};
use pyrite_tensor::{DType, Tensor};

const ROWS: i64 = 128;
const BYTES: usize = (ROWS * ROWS) as usize * size_of::<f32>();

fn square(value: f64) -> Tensor {
    let tensor = Tensor::empty(&[ROWS, ROWS], DType::F32).unwrap();
    tensor.write_f64s(&vec![value; tensor.numel()]);
    tensor
}

/// `exp(… exp(x @ w) … @ w)`, three times.
fn layers(x: &Tensor, w: &Tensor) -> Graph {
    let op = |name: &str| registry().get(name).unwrap();
    let mut builder = Builder::new();
    let mut input = |tensor: &Tensor| builder.placeholder("x", Some(Value::Tensor(Meta::of(tensor))));
    let (mut value, weight) = (input(x), input(w));
    for _ in 0..3 {
        let product = builder.call(op("aten.mm.default"), vec![value.into(), weight.into()]);
        value = builder.call(op("aten.exp.default"), vec![product.into()]);
    }
    builder.output(vec![value].into());
    builder.finish()
}

/// `exp(x)`.
fn exponential(x: &Tensor) -> Graph {
    let mut builder = Builder::new();
    let input = builder.placeholder("x", Some(Value::Tensor(Meta::of(x))));
    let value = builder.call(registry().get("aten.exp.default").unwrap(), vec![input.into()]);
    builder.output(vec![value].into());
    builder.finish()
}

fn compile(graph: &Graph, gate: &mut Gate) -> Program {
    Program::compile(graph, registry(), Generator::best(), gate).unwrap()
}

fn run(program: &Program, inputs: Vec<Tensor>) -> Tensor {
    let inputs = inputs.into_iter().map(Value::Tensor).collect();
    let value = program.run(inputs, registry(), &mut TorchGenerator::new(0), &mut |_, _| {}).unwrap();
    let mut found = Vec::new();
    value.each(&mut |tensor| found.push(tensor.clone()));
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// The most bytes beyond those that were there.
fn bytes(program: &Program, inputs: Vec<Tensor>) -> usize {
    let before = watch_peak();
    drop(run(program, inputs));
    peak() - before
}

#[test]
fn a_chain_of_layers_takes_two_results_at_a_time() {
    let (x, w) = (square(0.01), square(0.001));
    let graph = layers(&x, &w);
    let mut gate = Gate::open().logged();
    let program = compile(&graph, &mut gate);
    let log = gate.into_log();
    let reuse: Vec<String> = log.iter().filter(|decision| decision.starts_with("reuse ")).cloned().collect();
    assert_eq!(reuse.len(), 3, "{log:?}");
    assert_eq!(bytes(&program, vec![x.clone(), w.clone()]), 2 * BYTES);
    let refused = compile(&graph, &mut Gate::open().refusing(&reuse));
    assert_eq!(bytes(&refused, vec![x.clone(), w.clone()]), 3 * BYTES, "refused, results have memory of their own");
    let expected = run(&refused, vec![x.clone(), w.clone()]).to_f64s();
    assert_eq!(run(&program, vec![x, w]).to_f64s(), expected);
}

#[test]
fn an_input_is_written_over_only_when_it_is_given_away() {
    let x = square(0.5);
    let program = compile(&exponential(&x), &mut Gate::open());
    let result = run(&program, vec![x.clone()]);
    assert!(x.to_f64s().iter().all(|value| *value == 0.5), "the caller still has it");
    assert!(!result.storage().same(x.storage()));
    let view = x.permuted(&[1, 0]);
    drop(run(&program, vec![x]));
    assert!(view.to_f64s().iter().all(|value| *value == 0.5), "a view of it is held");
    let given = square(0.5);
    let before = watch_peak();
    let again = run(&program, vec![given]);
    assert_eq!(peak(), before, "nothing was allocated");
    assert_eq!(again.to_f64s(), result.to_f64s());
}
