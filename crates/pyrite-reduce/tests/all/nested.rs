//! The laws of reduction inside nested graphs, which a failure needs and which therefore cannot be opened.

use std::collections::BTreeSet;

use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Builder, Graph, Kind, Meta, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Class, Signature, Stage, Verdict};
use pyrite_reduce::{Candidate, Options, PASSES, Silent, reduce};
use pyrite_tensor::{Scalar, Tensor};
use pyrite_testing::random;

/// How a program calls its nested graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Invocation,
    Choice,
}

/// A random graph as the body of a call, alone or one of two that are chosen between, at some depth.
fn nested(number: u64, by: By, depth: usize) -> Candidate {
    let case = random::graph(number);
    let inputs = case.inputs.into_iter().map(Value::Tensor).collect();
    (0..depth).fold(Candidate { graph: case.graph, inputs, seed: 0 }, |inner, _| wrapped(&inner, by))
}

fn wrapped(inner: &Candidate, by: By) -> Candidate {
    let mut builder = Builder::new();
    let mut inputs = inner.inputs.clone();
    let mut operands: Vec<Value<_>> = Vec::new();
    for (_, node) in inner.graph.placeholders() {
        operands.push(Value::Tensor(builder.placeholder(&node.name, node.meta.clone())));
    }
    let mut metas = Vec::new();
    inner.graph.output().each(&mut |id| metas.extend(inner.graph.node(*id).meta.clone()));
    builder.add_subgraph("body", inner.graph.clone());
    let body = Value::Graph("body".into());
    let (name, args) = match by {
        By::Invocation => ("higher_order.invoke_subgraph.default", vec![body, Value::None, Value::List(operands)]),
        By::Choice => {
            builder.add_subgraph("other", inner.graph.clone());
            let flag = Tensor::scalar(Scalar::Bool(true), pyrite_tensor::DType::Bool);
            let which = builder.placeholder("which", Some(Value::Tensor(Meta::of(&flag))));
            inputs.push(Value::Tensor(flag));
            let other = Value::Graph("other".into());
            ("higher_order.cond.default", vec![Value::Tensor(which), body, other, Value::List(operands)])
        }
    };
    let call = builder.call(registry().get(name).expect("the operator"), args);
    builder.set_meta(call, Value::List(metas.clone()));
    let items: Vec<_> = metas
        .into_iter()
        .enumerate()
        .map(|(index, meta)| {
            let item = builder.get_item(call, index as i64);
            builder.set_meta(item, meta);
            item
        })
        .collect();
    builder.output(items.into());
    Candidate { graph: builder.finish(), inputs, seed: 0 }
}

/// The operators inside of nested graphs at a depth, over all that are called.
fn names(graph: &Graph, depth: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, node) in graph.nodes() {
        let Kind::Call(target) = &node.kind else { continue };
        if depth == 0 {
            found.insert(target.name().to_owned());
        }
        for arg in node.args.iter().filter(|_| depth > 0) {
            if let Value::Graph(name) = arg
                && let Some(body) = graph.subgraphs().get(name)
            {
                found.extend(names(body, depth - 1));
            }
        }
    }
    found.remove("operator.getitem");
    found
}

fn text(graph: &Graph) -> String {
    print(graph, &PrintOptions::default())
}

fn verdict(fails: bool) -> Verdict {
    if fails { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
}

#[test]
fn a_guilty_operator_is_left_alone_in_its_nested_graph() {
    let mut reduced = 0;
    for (by, depth) in [(By::Invocation, 1), (By::Choice, 1), (By::Invocation, 2)] {
        for number in 0..25 {
            let start = nested(number, by, depth);
            let Some(guilty) = names(&start.graph, depth).into_iter().next() else { continue };
            let oracle = |c: &Candidate| verdict(names(&c.graph, depth).contains(&guilty));
            let run = |jobs| reduce(start.clone(), &oracle, Options { jobs, ..Options::default() }, &mut Silent);
            let found = run(1).expect("it fails");
            let at = format!("graph {number} by {by:?} at depth {depth}");
            assert!(matches!(oracle(&found.best), Verdict::Fail(_)), "{at}: the result does not fail");
            assert!(found.best.is_program(), "{at}: the result is not a program");
            assert!(found.best.size() <= start.size(), "{at}: the result is larger");
            assert_eq!(found.minimal_for.len(), PASSES.len(), "{at}: passes are left");
            let calls = found.best.size().calls;
            // One call for each level, and the guilty one; a choice may keep it in either graph or, where no operand
            // has its form, a call in the other.
            let most = if by == By::Choice { depth + 2 } else { depth + 1 };
            assert!(calls <= most, "{at}: {calls} calls:\n{}", text(&found.best.graph));
            let again = reduce(found.best.clone(), &oracle, Options::default(), &mut Silent).expect("it fails");
            assert_eq!(again.best.size(), found.best.size(), "{at}: the result is not minimal");
            let three = run(3).expect("it fails");
            assert_eq!(three.best.key(), found.best.key(), "{at}: the result depends on the jobs");
            reduced += 1;
        }
    }
    assert!(reduced > 60, "only {reduced} graphs failed");
}

#[test]
fn operands_and_results_that_nobody_needs_go() {
    for number in 0..25 {
        let start = nested(number, By::Invocation, 1);
        let Some(guilty) = names(&start.graph, 1).into_iter().next() else { continue };
        let oracle = |c: &Candidate| verdict(names(&c.graph, 1).contains(&guilty));
        let found = reduce(start, &oracle, Options::default(), &mut Silent).expect("it fails");
        let body = found.best.graph.subgraphs().values().next().expect("a body");
        let counts = body.use_counts();
        assert!(
            body.placeholders().all(|(id, _)| counts[id.0 as usize] > 0),
            "graph {number}: {}",
            text(&found.best.graph)
        );
        let mut results = 0;
        body.output().each(&mut |_| results += 1);
        assert_eq!(results, 1, "graph {number}: {}", text(&found.best.graph));
    }
}
