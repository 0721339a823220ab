//! Builds a small network, compiles it to machine code, and compares it with the interpreter:
//! `cargo run --release -p pyrite --example compile`.

use pyrite::{CompareOptions, DType, Error, GraphBuilder, Tensor};

/// Builds, compiles, runs and compares.
pub fn main() -> Result<(), Error> {
    let mut builder = GraphBuilder::new();
    let x = builder.input("x", DType::F32, &[4, 8]);
    let weight = builder.input("weight", DType::F32, &[3, 8]);
    let bias = builder.input("bias", DType::F32, &[3]);
    let linear = builder.call("aten.linear.default", &[x.into(), weight.into(), bias.into()])?;
    let gelu = builder.call("aten.gelu.default", &[linear.into()])?;
    let out = builder.call("aten.softmax.int", &[gelu.into(), 1.into()])?;
    let graph = builder.finish(&[out]);
    print!("{graph}");

    let numbers = |count: usize| (0..count).map(|k| (k as f32 * 0.37).sin()).collect::<Vec<f32>>();
    let inputs = [
        Tensor::from_slice(&numbers(32), &[4, 8]),
        Tensor::from_slice(&numbers(24), &[3, 8]),
        Tensor::from_slice(&numbers(3), &[3]),
    ];
    let expected = pyrite::compile(&graph, "eager")?.run(&inputs)?;
    let program = pyrite::compile(&graph, "native")?;
    let actual = program.run(&inputs)?;
    let report = pyrite::compare(&expected, &actual, &CompareOptions::default());
    println!(
        "{} decisions; native {} eager",
        program.decisions().len(),
        if report.agrees() { "agrees with" } else { "differs from" }
    );
    assert!(report.agrees());
    Ok(())
}
