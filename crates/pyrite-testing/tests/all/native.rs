//! The native compiler against the interpreter: operators on their samples, random graphs.

use pyrite_codegen::{Generator, Program};
use pyrite_compiler::backends::native_by;
use pyrite_compiler::{Options, aot_autograd, register};
use pyrite_debug::{Accuracy, Question, Switches, judge};
use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Builder, Eval, Graph, Meta, Value};
use pyrite_ops::registry;
use pyrite_oracle::Verdict;
use pyrite_passes::{Gate, Table};
use pyrite_sym::SymEnv;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{DType, Tensor};
use pyrite_testing::{random, sampled};

/// The names of the native backend with each generator of code that this processor has.
fn backends() -> Vec<String> {
    let generators = Generator::NAMES.iter().filter_map(|name| Some((name, Generator::named(name)?)));
    generators
        .map(|(name, generator)| {
            let backend = format!("native by {name}");
            register(aot_autograd(native_by(generator)).decompositions(Table::Loops).backend(&backend, "for tests"));
            backend
        })
        .collect()
}

fn question(backend: &str) -> Question {
    Question {
        backend: backend.to_owned(),
        reference: "eager".to_owned(),
        accuracy: Accuracy::Fp,
        forward_only: true,
        seed: 0,
        rewrites: None,
        refused: Vec::new(),
        switches: Switches::default(),
        thorough: false,
    }
}

/// What is wrong with the native compiler's answer, if anything is that is not wrong before it.
fn problem(graph: &Graph, inputs: &[Value<Tensor>], backend: &str) -> Option<String> {
    let ask = |question| judge(graph, inputs, &question, &mut |_| {}, &mut |_, _| {}).verdict;
    let verdict = ask(question(backend));
    let earlier = question("aot_eager_decomp_partition");
    if verdict.signature().is_some() && ask(earlier).signature().is_some() {
        return None;
    }
    match verdict {
        Verdict::Fail(signature) => Some(signature.to_string()),
        Verdict::Flaky { signature, .. } => Some(signature.to_string()),
        // A sample that cannot be judged tests nothing.
        Verdict::Invalid(reason) => Some(format!("cannot be judged: {reason:?}")),
        Verdict::Pass | Verdict::Noise => None,
    }
}

#[test]
fn every_sample_of_every_operator_is_computed_alike() {
    let backends = backends();
    let mut problems = Vec::new();
    let mut count = 0;
    for op in registry().iter().filter(|op| !matches!(op.def.eval, Eval::HigherOrder)) {
        for text in op.def.samples {
            let Some((graph, inputs)) = sampled::graph(op, text) else { continue };
            count += 1;
            for backend in &backends {
                if let Some(problem) = problem(&graph, &inputs, backend) {
                    problems.push(format!("{backend}: {} on ({text}): {problem}", op.name()));
                }
            }
        }
    }
    assert!(count > 1000, "only {count} samples were run");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn random_graphs_are_computed_alike() {
    let backends = backends();
    for number in 0..300 {
        let case = random::graph(number);
        let mut graph = case.graph;
        let metas: Vec<_> = graph.placeholders().map(|(id, _)| id).zip(case.inputs.iter().map(Meta::of)).collect();
        for (id, meta) in metas {
            graph.set_meta(id, Value::Tensor(meta));
        }
        let inputs: Vec<Value<Tensor>> = case.inputs.into_iter().map(Value::Tensor).collect();
        for backend in &backends {
            if let Some(problem) = problem(&graph, &inputs, backend) {
                panic!("{backend}: graph {number}: {problem}\n{}", print(&graph, &PrintOptions::default()));
            }
        }
    }
}

#[test]
fn a_program_compiled_once_runs_on_every_size() {
    let op = |name: &str| registry().get(name).unwrap();
    let env = SymEnv::new();
    let shape = [env.size(5), env.size(8)];
    let mut builder = Builder::new();
    let meta = Meta::contiguous(&shape, DType::F32);
    let x = builder.placeholder("x", Some(Value::Tensor(meta)));
    let largest = builder.call(op("aten.amax.default"), vec![x.into(), Value::List(vec![1.into()]), true.into()]);
    let below = builder.call(op("aten.sub.Tensor"), vec![x.into(), largest.into(), 1.into()]);
    let power = builder.call(op("aten.exp.default"), vec![below.into()]);
    let sum = vec![power.into(), Value::List(vec![1.into()]), true.into(), Value::None];
    let sum = builder.call(op("aten.sum.dim_IntList"), sum);
    let result = builder.call(op("aten.div.Tensor"), vec![power.into(), sum.into()]);
    builder.output(vec![result].into());
    let graph = builder.finish();
    let program = Program::compile(&graph, registry(), Generator::best(), &mut Gate::open()).unwrap();
    assert_eq!((program.kernels().count(), program.calls()), (1, 0), "{program}");
    for (rows, columns) in [(5, 8), (1, 1), (3, 1000), (70, 33), (0, 4)] {
        let input = Tensor::empty(&[rows, columns], DType::F32).unwrap();
        input.write_f64s(&(0..rows * columns).map(|i| (i as f64 * 0.7).sin()).collect::<Vec<_>>());
        let context = Context::new(registry(), 0);
        let interpreter = Interpreter { context: &context, mode: Mode::Eager };
        let mut plain = graph.clone();
        let (id, _) = plain.placeholders().next().unwrap();
        plain.set_meta(id, Value::Tensor(Meta::of(&input)));
        let expected = interpreter.run(&plain, vec![input.clone().into()]).unwrap();
        let found = program.run(vec![input.into()], registry(), &mut TorchGenerator::new(0), &mut |_, _| {}).unwrap();
        let numbers = |value: &Value<Tensor>| {
            let mut all = Vec::new();
            value.each(&mut |t| all.extend(t.to_f64s()));
            all
        };
        let (expected, found) = (numbers(&expected), numbers(&found));
        assert_eq!(expected.len() as i64, rows * columns);
        assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-6), "{rows}x{columns}");
    }
}

#[test]
fn running_sums_of_any_length_are_one_kernel_with_what_is_around_them() {
    let op = |name: &str| registry().get(name).unwrap();
    let env = SymEnv::new();
    let mut builder = Builder::new();
    let x = builder.placeholder("x", Some(Value::Tensor(Meta::contiguous(&[env.size(5), env.size(300)], DType::F32))));
    let double = builder.call(op("aten.add.Tensor"), vec![x.into(), x.into(), 1.into()]);
    let sums = builder.call(op("aten.cumsum.default"), vec![double.into(), 1.into(), Value::None]);
    let result = builder.call(op("aten.neg.default"), vec![sums.into()]);
    builder.output(vec![result].into());
    let graph = builder.finish();
    for generator in Generator::NAMES.iter().filter_map(|name| Generator::named(name)) {
        let program = Program::compile(&graph, registry(), generator, &mut Gate::open()).unwrap();
        assert_eq!((program.kernels().count(), program.fallbacks().len()), (1, 0), "{program}");
        for (rows, columns) in [(5, 300), (1, 1000), (33, 7), (40, 1), (3, 0)] {
            let input = Tensor::empty(&[rows, columns], DType::F32).unwrap();
            let given: Vec<f64> = (0..rows * columns).map(|i| ((i * 37) % 101) as f64 / 4.0 - 12.0).collect();
            input.write_f64s(&given);
            let value = program.run(vec![input.into()], registry(), &mut TorchGenerator::new(0), &mut |_, _| {});
            let mut found = Vec::new();
            value.unwrap().each(&mut |t| found.extend(t.to_f64s()));
            for (row, found) in given.chunks(columns.max(1) as usize).zip(found.chunks(columns.max(1) as usize)) {
                let mut sum = 0.0;
                for (x, found) in row.iter().zip(found) {
                    sum += x;
                    assert!((found + 2.0 * sum).abs() < 1e-3, "{rows}x{columns} by {}", generator.name());
                }
            }
        }
    }
}

#[test]
fn outputs_may_be_views_of_what_has_a_size_that_depends_on_data() {
    let op = |name: &str| registry().get(name).unwrap();
    let x = Tensor::from_slice(&[0.0f32, 2.0, 0.0, 3.0, 4.0, 0.0], &[2, 3]);
    let mut builder = Builder::new();
    let placeholder = builder.placeholder("x", Some(Value::Tensor(Meta::of(&x))));
    let places = builder.call(op("aten.nonzero.default"), vec![placeholder.into()]);
    let parts = builder.call(op("aten.unbind.int"), vec![places.into(), 1.into()]);
    let (rows, columns) = (builder.get_item(parts, 0), builder.get_item(parts, 1));
    builder.output(vec![rows, columns].into());
    let graph = builder.finish();
    for backend in backends() {
        let program = (pyrite_compiler::find(&backend).unwrap().compile)(graph.clone(), &Options::default()).unwrap();
        let outputs = program.run(vec![x.clone().into()], None, &mut |_, _| {}).unwrap().outputs;
        let mut found = Vec::new();
        outputs.each(&mut |tensor| found.push(tensor.to_i64s()));
        assert_eq!(found, [[0, 1, 1], [1, 0, 1]], "{backend}");
    }
}
