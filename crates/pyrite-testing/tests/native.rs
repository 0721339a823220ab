//! The native compiler against the interpreter: operators on their samples, random graphs.

use pyrite_debug::{Precision, Question, Switches, judge};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Builder, Eval, Graph, Meta, Value};
use pyrite_ops::{registry, samples};
use pyrite_oracle::Verdict;
use pyrite_tensor::Tensor;
use pyrite_testing::random;

fn question() -> Question {
    Question {
        backend: "native".to_owned(),
        reference: "eager".to_owned(),
        accuracy: Precision::Fp,
        forward_only: true,
        seed: 0,
        rewrites: None,
        switches: Switches::default(),
    }
}

/// What is wrong with the native compiler's answer, if anything is that is not wrong before it.
fn problem(graph: &Graph, inputs: &[Value<Tensor>]) -> Option<String> {
    let ask = |question| judge(graph, inputs, &question, &mut |_| {}, &mut |_, _| {}).verdict;
    let verdict = ask(question());
    let earlier = Question { backend: "aot_eager_decomp_partition".to_owned(), ..question() };
    if verdict.signature().is_some() && ask(earlier).signature().is_some() {
        return None;
    }
    match verdict {
        Verdict::Fail(signature) => Some(signature.to_string()),
        Verdict::Flaky { signature, .. } => Some(signature.to_string()),
        Verdict::Pass | Verdict::Noise | Verdict::Invalid(_) => None,
    }
}

#[test]
fn every_sample_of_every_operator_is_computed_alike() {
    let mut problems = Vec::new();
    let mut count = 0;
    for op in registry().iter().filter(|op| !matches!(op.def.eval, Eval::HigherOrder)) {
        for text in op.def.samples {
            let Ok(args) = samples::read(&op.schema, text) else { continue };
            let mut builder = Builder::new();
            let mut inputs = Vec::new();
            let bound = args
                .iter()
                .map(|arg| {
                    arg.map(&mut |tensor| {
                        inputs.push(Value::Tensor(tensor.clone()));
                        builder.placeholder("x", Some(Value::Tensor(Meta::of(tensor))))
                    })
                })
                .collect();
            let result = builder.call(op, bound);
            builder.output(Value::Tensor(result));
            count += 1;
            if let Some(problem) = problem(&builder.finish(), &inputs) {
                problems.push(format!("{} on ({text}): {problem}", op.name()));
            }
        }
    }
    assert!(count > 1000, "only {count} samples were run");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn random_graphs_are_computed_alike() {
    for number in 0..300 {
        let case = random::graph(number);
        let mut graph = case.graph;
        let metas: Vec<_> = graph.placeholders().map(|(id, _)| id).zip(case.inputs.iter().map(Meta::of)).collect();
        for (id, meta) in metas {
            graph.set_meta(id, Value::Tensor(meta));
        }
        let inputs: Vec<Value<Tensor>> = case.inputs.into_iter().map(Value::Tensor).collect();
        if let Some(problem) = problem(&graph, &inputs) {
            panic!("graph {number}: {problem}\n{}", print(&graph, &PrintOptions::default()));
        }
    }
}
