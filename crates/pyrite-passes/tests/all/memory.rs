//! What passes may do to memory: results stay apart, and what cannot be said without writes is refused.

use pyrite_ir::{Builder, Meta, OpError, Value};
use pyrite_ops::registry;
use pyrite_passes::{Gate, cleanup, functionalize};
use pyrite_tensor::DType;

fn input() -> (Builder, pyrite_ir::NodeId) {
    let mut builder = Builder::new();
    let meta = Meta::contiguous(&[2.into(), 3.into()], DType::F32);
    let x = builder.placeholder("x", Some(Value::Tensor(meta)));
    (builder, x)
}

fn calls(graph: &pyrite_ir::Graph) -> usize {
    graph.nodes().filter(|(_, node)| matches!(node.kind, pyrite_ir::Kind::Call(_))).count()
}

#[test]
fn equal_values_that_are_returned_stay_two() {
    let op = |name: &str| registry().get(name).unwrap();
    for view in [false, true] {
        let (mut builder, x) = input();
        let returned: Vec<_> = (0..2)
            .map(|_| {
                let relu = builder.call(op("aten.relu.default"), vec![x.into()]);
                if view { builder.call(op("aten.t.default"), vec![relu.into()]) } else { relu }
            })
            .collect();
        builder.output(returned.into());
        let graph = builder.finish();
        assert_eq!(calls(&cleanup::common_subexpressions(&graph, &mut Gate::open())), calls(&graph));
    }
}

#[test]
fn equal_values_of_which_one_is_returned_become_one() {
    let op = |name: &str| registry().get(name).unwrap();
    let (mut builder, x) = input();
    let first = builder.call(op("aten.relu.default"), vec![x.into()]);
    let second = builder.call(op("aten.relu.default"), vec![x.into()]);
    let third = builder.call(op("aten.neg.default"), vec![second.into()]);
    builder.output(vec![first, third].into());
    let merged = cleanup::common_subexpressions(&builder.finish(), &mut Gate::open());
    assert_eq!(calls(&cleanup::dead_code(&merged)), 2);
}

#[test]
fn values_that_are_returned_stay_apart_where_an_equal_one_is_not_returned() {
    let op = |name: &str| registry().get(name).unwrap();
    let (mut builder, x) = input();
    let inner = builder.call(op("aten.relu.default"), vec![x.into()]);
    let used = builder.call(op("aten.neg.default"), vec![inner.into()]);
    let second = builder.call(op("aten.relu.default"), vec![x.into()]);
    let third = builder.call(op("aten.relu.default"), vec![x.into()]);
    builder.output(vec![used, second, third].into());
    let merged = cleanup::common_subexpressions(&builder.finish(), &mut Gate::open());
    let Value::List(outputs) = merged.output() else { panic!("a list is returned") };
    assert_ne!(outputs[1], outputs[2]);
    assert_eq!(calls(&cleanup::dead_code(&merged)), 3);
}

#[test]
fn a_resized_tensor_is_unsupported_and_no_fault_of_ours() {
    let (mut builder, x) = input();
    let size = Value::List(vec![4.into(), 4.into()]);
    let resized = builder.call(registry().get("aten.resize_.default").unwrap(), vec![x.into(), size, Value::None]);
    builder.output(vec![resized].into());
    let error = functionalize(&builder.finish(), registry(), &[]).map(|_| ()).unwrap_err();
    assert!(matches!(error.error, OpError::Unsupported(_)), "{error:?}");
}
