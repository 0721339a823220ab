//! Compiled programs against the interpreter, for tests of single steps.

use pyrite_codegen::Program;
use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{Graph, Value};
use pyrite_ops::registry;
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

/// The numbers that a program returns.
pub fn run(program: &Program, inputs: &[Tensor]) -> Vec<f64> {
    let inputs = inputs.iter().cloned().map(Value::Tensor).collect();
    let value = program.run(inputs, registry(), &mut TorchGenerator::new(0), &mut |_, _| {}).unwrap();
    flat(&value)
}

/// The numbers that the interpreter returns.
pub fn expected(graph: &Graph, inputs: &[Tensor]) -> Vec<f64> {
    let context = Context::new(registry(), 0);
    let interpreter = Interpreter { context: &context, mode: Mode::Eager };
    flat(&interpreter.run(graph, inputs.iter().cloned().map(Value::Tensor).collect()).unwrap())
}

fn flat(value: &Value<Tensor>) -> Vec<f64> {
    let mut all = Vec::new();
    value.each(&mut |t| all.extend(t.to_f64s()));
    all
}

/// Fails if numbers are farther apart than a part of those expected, or of one.
pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f64::max);
    assert!(worst <= tolerance, "{what}: {worst}");
}
