//! Calls of operators that take nested graphs.

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{Builder, Graph, Value, args};
use pyrite_ops::registry;
use pyrite_tensor::Tensor;

/// A graph that fills its input with a number.
fn fills_with(number: f64) -> Graph {
    let mut builder = Builder::new();
    let x = builder.placeholder("x", None);
    let fill = registry().get("aten.fill.Scalar").unwrap();
    let filled = builder.call(fill, args![x, number].to_vec());
    builder.output(filled.into());
    builder.finish()
}

fn run(op: &str, args: Vec<Value<pyrite_ir::NodeId>>) -> f64 {
    let mut builder = Builder::new();
    let x = builder.placeholder("x", None);
    builder.add_subgraph("one", fills_with(1.0));
    builder.add_subgraph("two", fills_with(2.0));
    let mut args = args;
    args.push(Value::List(vec![x.into()]));
    let result = builder.call(registry().get(op).unwrap(), args);
    builder.output(result.into());
    let context = Context::new(registry(), 0);
    let interpreter = Interpreter { context: &context, mode: Mode::Eager };
    let inputs = vec![Tensor::from_slice(&[0f32], &[1]).into()];
    let result = interpreter.run(&builder.finish(), inputs).unwrap();
    result.as_tensor().unwrap().item().to_f64()
}

#[test]
fn cond_runs_the_graph_that_the_bool_chooses() {
    let graphs = |pred: bool| vec![pred.into(), Value::Graph("one".into()), Value::Graph("two".into())];
    assert_eq!(run("higher_order.cond.default", graphs(true)), 1.0);
    assert_eq!(run("higher_order.cond.default", graphs(false)), 2.0);
}

#[test]
fn a_nested_graph_is_invoked_by_its_name() {
    assert_eq!(run("higher_order.invoke_subgraph.default", vec![Value::Graph("two".into()), Value::None]), 2.0);
}
