//! Bugs that are put into single decisions of the native compiler are found by bisecting the decisions.

use std::sync::Arc;

use pyrite_bisect::first_guilty;
use pyrite_codegen::decisions::Decisions;
use pyrite_codegen::{Generator, Program};
use pyrite_compiler::aot::GraphCompiler;
use pyrite_compiler::backend::{Backend, Options};
use pyrite_compiler::backends::compiled;
use pyrite_compiler::{aot_autograd, find, register};
use pyrite_debug::{Accuracy, Question, Switches, judge};
use pyrite_ir::{Builder, Graph, Meta, Value};
use pyrite_loops::{Binary, Block, Inst, Kernel};
use pyrite_ops::registry;
use pyrite_passes::Table;
use pyrite_tensor::{DType, Tensor};

/// The native backend with a bug in the decision whose name contains a text.
fn spoiled(name: &'static str, decision: &'static str) -> Backend {
    let compiler: GraphCompiler = Arc::new(move |graph: Graph, options: &Options| {
        let mut gate = options.gate().logged();
        let mut spoil = |made: &str, kernel: &mut Kernel| {
            if made.contains(decision) {
                products_become_sums(kernel);
            }
        };
        let decisions = &mut Decisions::spoiled(&mut gate, &mut spoil);
        let program = Program::compile_by(&graph, registry(), Generator::best(), decisions)?;
        Ok(compiled(program, gate.into_log()))
    });
    aot_autograd(compiler).decompositions(Table::Loops).backend(name, "has a bug")
}

fn products_become_sums(kernel: &mut Kernel) {
    for phase in &mut kernel.phases {
        let mut code = Block::default();
        for (value, inst) in phase.code.iter() {
            let changed = match *inst {
                Inst::Binary(Binary::Mul, a, b) => Inst::Binary(Binary::Add, a, b),
                inst => inst,
            };
            assert_eq!(code.push(changed, phase.code.ty(value)), value, "no two instructions become the same");
        }
        phase.code = code;
    }
}

/// `tanh(exp(x·y) - y)·x`, its sum along rows, and a product at the end.
fn program() -> (Graph, Vec<Value<Tensor>>) {
    let op = |name: &str| registry().get(name).unwrap();
    let tensor = |seed: f64| {
        let tensor = Tensor::empty(&[8, 24], DType::F32).unwrap();
        tensor.write_f64s(&(0..8 * 24).map(|i| (f64::from(i) * seed).sin()).collect::<Vec<_>>());
        tensor
    };
    let inputs = [tensor(0.7), tensor(1.3)];
    let mut builder = Builder::new();
    let x = builder.placeholder("x", Some(Value::Tensor(Meta::of(&inputs[0]))));
    let y = builder.placeholder("y", Some(Value::Tensor(Meta::of(&inputs[1]))));
    let product = builder.call(op("aten.mul.Tensor"), vec![x.into(), y.into()]);
    let power = builder.call(op("aten.exp.default"), vec![product.into()]);
    let less = builder.call(op("aten.sub.Tensor"), vec![power.into(), y.into(), 1.into()]);
    let bent = builder.call(op("aten.tanh.default"), vec![less.into()]);
    let sums = vec![bent.into(), Value::List(vec![1.into()]), true.into(), Value::None];
    let sums = builder.call(op("aten.sum.dim_IntList"), sums);
    let last = builder.call(op("aten.mul.Tensor"), vec![bent.into(), sums.into()]);
    builder.output(vec![last].into());
    (builder.finish(), inputs.into_iter().map(Value::Tensor).collect())
}

/// The decision that the bisector finds guilty.
fn found(name: &'static str, decision: &'static str) -> String {
    register(spoiled(name, decision));
    let (graph, inputs) = program();
    let executable = (find(name).unwrap().compile)(graph.clone(), &Options::default()).unwrap();
    let decisions = executable.rewrites().to_vec();
    let mut ask = |count: u64| {
        let question = Question {
            backend: name.to_owned(),
            reference: "eager".to_owned(),
            accuracy: Accuracy::Fp,
            forward_only: true,
            seed: 0,
            rewrites: Some(count),
            refused: Vec::new(),
            switches: Switches::default(),
            thorough: false,
        };
        judge(&graph, &inputs, &question, &mut |_| {}, &mut |_, _| {}).verdict
    };
    let guilty = first_guilty(decisions.len() as u64, &mut ask).expect("the bug shows");
    decisions[guilty.step as usize].clone()
}

#[test]
fn a_bug_in_a_lowering_is_found() {
    assert_eq!(found("spoiled_lowering", "lower aten.mul.Tensor at mul_1"), "lower aten.mul.Tensor at mul_1");
}

#[test]
fn a_bug_in_a_fusion_is_found() {
    let guilty = found("spoiled_fusion", "and mul_1");
    assert!(guilty.starts_with("fuse ") && guilty.ends_with("and mul_1"), "{guilty}");
}

#[test]
fn a_bug_in_the_code_of_a_kernel_is_found() {
    let guilty = found("spoiled_emitter", "emit ");
    assert!(guilty.starts_with("emit "), "{guilty}");
}
