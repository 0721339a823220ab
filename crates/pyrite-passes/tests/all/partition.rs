//! Graphs cut around opaque calls, and what callers of compiled graphs are told.

use pyrite_ir::{Builder, Graph, Kind, Meta, Node, NodeId, Switch, Target, Value};
use pyrite_ops::registry;
use pyrite_passes::calling::{
    begin_without_grad, output_bases, return_written, specialize, starts_without_grad, views_of_several,
    with_inputs_apart, written_inputs,
};
use pyrite_passes::partition::{Part, Runner, partition};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::{DType, Tensor};

fn meta(dtype: DType) -> Meta {
    Meta::contiguous(&[2.into(), 3.into()], dtype)
}

fn placeholder(builder: &mut Builder, name: &str, dtype: DType) -> NodeId {
    builder.placeholder(name, Some(Value::Tensor(meta(dtype))))
}

fn call(builder: &mut Builder, name: &str, args: Vec<Value<NodeId>>) -> NodeId {
    let node = Node::new("called", Kind::Call(Target::Op(registry().get(name).unwrap().clone())), args);
    builder.push(Node { meta: Some(Value::Tensor(meta(DType::F32))), ..node })
}

fn opaque(builder: &mut Builder, name: &str, args: Vec<Value<NodeId>>) -> NodeId {
    let node = Node::new("unknown", Kind::Call(Target::Opaque(name.into())), args);
    builder.push(Node { meta: Some(Value::Tensor(meta(DType::F32))), ..node })
}

fn runners(parts: &[Part]) -> Vec<Runner> {
    parts.iter().map(|part| part.runner).collect()
}

#[test]
fn known_operators_on_both_sides_of_an_opaque_call_are_parts_of_their_own() {
    let mut builder = Builder::new();
    let x = placeholder(&mut builder, "x", DType::F32);
    let before = call(&mut builder, "aten.relu.default", vec![x.into()]);
    let unknown = opaque(&mut builder, "mine.twice", vec![before.into()]);
    let after = call(&mut builder, "aten.add.Tensor", vec![unknown.into(), before.into()]);
    builder.output(vec![after].into());
    let parts = partition(&builder.finish()).unwrap();
    assert_eq!(runners(&parts), [Runner::Backend, Runner::Opaque, Runner::Backend]);
    let flow: Vec<_> = parts.iter().map(|part| (part.inputs.clone(), part.outputs.clone())).collect();
    assert_eq!(flow, [(vec![x], vec![before]), (vec![before], vec![unknown]), (vec![unknown, before], vec![after])]);
    assert!(parts.iter().all(|part| part.graph.placeholders().count() == part.inputs.len()));
}

#[test]
fn neighbours_of_one_kind_stay_together_and_unused_values_stay_inside() {
    let mut builder = Builder::new();
    let x = placeholder(&mut builder, "x", DType::F32);
    let first = opaque(&mut builder, "mine.one", vec![x.into()]);
    let second = opaque(&mut builder, "mine.two", vec![first.into()]);
    let last = call(&mut builder, "aten.relu.default", vec![second.into()]);
    builder.output(vec![last].into());
    let parts = partition(&builder.finish()).unwrap();
    assert_eq!(runners(&parts), [Runner::Opaque, Runner::Backend]);
    assert_eq!(parts[0].outputs, [second]);
}

#[test]
fn what_is_handed_on_wants_gradients_when_an_input_does() {
    for wanted in [false, true] {
        let mut builder = Builder::new();
        let x = builder.placeholder("x", Some(Value::Tensor(Meta { requires_grad: wanted, ..meta(DType::F32) })));
        let unknown = opaque(&mut builder, "mine.twice", vec![x.into()]);
        let last = call(&mut builder, "aten.relu.default", vec![unknown.into()]);
        builder.output(vec![last].into());
        let parts = partition(&builder.finish()).unwrap();
        let (_, handed) = parts[1].graph.placeholders().next().unwrap();
        let Some(Value::Tensor(handed)) = &handed.meta else { panic!("a tensor is handed on") };
        assert_eq!((handed.requires_grad, handed.is_leaf), (wanted, false));
    }
}

/// A graph of one opaque call and what `more` adds before it.
fn around(more: impl FnOnce(&mut Builder, NodeId)) -> Graph {
    let mut builder = Builder::new();
    let x = placeholder(&mut builder, "x", DType::F32);
    more(&mut builder, x);
    let unknown = opaque(&mut builder, "mine.twice", vec![x.into()]);
    builder.output(vec![unknown].into());
    builder.finish()
}

#[test]
fn graphs_that_write_switch_modes_register_hooks_or_have_symbolic_sizes_are_not_cut() {
    let written = around(|builder, x| {
        call(builder, "aten.relu_.default", vec![x.into()]);
    });
    let switched = around(|builder, _| {
        let target = Target::Opaque("torch._C._set_grad_enabled".into());
        let node = Node::new("off", Kind::Call(target), vec![Value::Bool(false)]);
        assert!(Switch::of(&node).is_some());
        builder.push(Node { meta: Some(Value::None), ..node });
    });
    let hooked = around(|builder, x| {
        opaque(builder, "pyrite.higher_order.register_hook", vec![x.into()]);
    });
    let symbolic = around(|builder, _| {
        let sizes = [SymEnv::new().size(5), 3.into()];
        builder.placeholder("y", Some(Value::Tensor(Meta::contiguous(&sizes, DType::F32))));
    });
    for graph in [written, switched, hooked, symbolic] {
        assert!(partition(&graph).is_none());
    }
    assert!(partition(&around(|_, _| {})).is_some());
}

#[test]
fn written_inputs_are_found_and_those_with_gradients_are_returned() {
    let mut builder = Builder::new();
    let counter = placeholder(&mut builder, "counter", DType::I64);
    let x = placeholder(&mut builder, "x", DType::F32);
    let y = placeholder(&mut builder, "y", DType::F32);
    let op = |name: &str| registry().get(name).unwrap();
    builder.call(op("aten.add_.Tensor"), vec![counter.into(), counter.into(), 1.into()]);
    let view = builder.call(op("aten.t.default"), vec![x.into()]);
    builder.call(op("aten.relu_.default"), vec![view.into()]);
    let sum = builder.call(op("aten.add.Tensor"), vec![x.into(), y.into(), 1.into()]);
    builder.output(vec![sum].into());
    let graph = builder.finish();
    let written = written_inputs(&graph, registry(), true).unwrap();
    assert_eq!(written, [0, 1]);
    let (returning, returned) = return_written(graph, &written).unwrap();
    assert_eq!(returned, [1]);
    assert_eq!(*returning.output(), Value::List(vec![Value::Tensor(sum), Value::Tensor(x)]));
}

#[test]
fn views_of_views_lead_to_their_input_and_fresh_tensors_to_none() {
    let mut builder = Builder::new();
    let x = placeholder(&mut builder, "x", DType::F32);
    let op = |name: &str| registry().get(name).unwrap();
    let view = builder.call(op("aten.t.default"), vec![x.into()]);
    let again = builder.call(op("aten.unsqueeze.default"), vec![view.into(), 0.into()]);
    let fresh = builder.call(op("aten.relu.default"), vec![view.into()]);
    builder.output(vec![again, fresh, x].into());
    assert_eq!(output_bases(&builder.finish()), [Some(0), None, Some(0)]);
}

#[test]
fn views_that_one_operator_made_together_are_marked_and_their_views_too() {
    let mut builder = Builder::new();
    let x = placeholder(&mut builder, "x", DType::F32);
    let op = |name: &str| registry().get(name).unwrap();
    let parts = builder.call(op("aten.chunk.default"), vec![x.into(), 2.into(), 0.into()]);
    let part = builder.push(Node::new("part", Kind::Call(Target::GetItem), vec![parts.into(), 0.into()]));
    let view = builder.call(op("aten.t.default"), vec![part.into()]);
    let fresh = builder.call(op("aten.relu.default"), vec![part.into()]);
    let whole = builder.call(op("aten.t.default"), vec![x.into()]);
    builder.output(vec![part, view, fresh, whole].into());
    assert_eq!(views_of_several(&builder.finish()), [true, true, false, false]);
}

#[test]
fn a_graph_that_first_switches_gradients_on_begins_with_them_off() {
    let switch = |builder: &mut Builder, on: bool| {
        let target = Target::Opaque("torch._C._set_grad_enabled".into());
        let node = Node::new("switch", Kind::Call(target), vec![Value::Bool(on)]);
        builder.push(Node { meta: Some(Value::None), ..node });
    };
    for (switches, without) in [(vec![true], true), (vec![false, true], false), (vec![], false)] {
        let graph = around(|builder, _| switches.iter().for_each(|on| switch(builder, *on)));
        assert_eq!(starts_without_grad(&graph), without);
        let begun = begin_without_grad(graph).unwrap();
        let first = begun.nodes().find_map(|(_, node)| Switch::of(node));
        assert!(matches!(first, Some(Switch::Grad(false))));
    }
}

#[test]
fn inputs_that_share_memory_are_told_apart_and_others_left_alone() {
    let mut builder = Builder::new();
    let whole = meta(DType::F32);
    let x = builder.placeholder("x", Some(Value::Tensor(whole.clone())));
    let y = builder.placeholder("y", Some(Value::Tensor(whole)));
    let sum = call(&mut builder, "aten.add.Tensor", vec![x.into(), y.into()]);
    builder.output(vec![sum].into());
    let apart = with_inputs_apart(&builder.finish()).unwrap();
    assert!(with_inputs_apart(&apart).is_none());
}

#[test]
fn sizes_of_inputs_take_the_place_of_symbols() {
    let env = SymEnv::new();
    let size = env.size(5);
    let mut builder = Builder::new();
    let sizes = [size.clone(), 3.into()];
    let x = builder.placeholder("x", Some(Value::Tensor(Meta::contiguous(&sizes, DType::F32))));
    let shape = Value::List(vec![3.into(), Value::from(size)]);
    let viewed = builder.call(registry().get("aten.reshape.default").unwrap(), vec![x.into(), shape]);
    builder.output(vec![viewed].into());
    let given = [Value::Tensor(Tensor::zeros(&[7, 3], DType::F32).unwrap())];
    let graph = specialize(&builder.finish(), &given).unwrap();
    let (_, reshape) = graph.nodes().find(|(_, node)| matches!(node.kind, Kind::Call(_))).unwrap();
    assert_eq!(reshape.args[1], Value::List(vec![3.into(), 7.into()]));
}

#[test]
fn what_gives_or_takes_sizes_from_data_is_no_part_of_the_backend() {
    let mut builder = Builder::new();
    let x = placeholder(&mut builder, "x", DType::F32);
    let before = call(&mut builder, "aten.relu.default", vec![x.into()]);
    let sized = |builder: &mut Builder, name: &str, input: NodeId, shape: &[SymInt]| {
        let node =
            Node::new("sized", Kind::Call(Target::Op(registry().get(name).unwrap().clone())), vec![input.into()]);
        builder.push(Node { meta: Some(Value::Tensor(Meta::contiguous(shape, DType::F32))), ..node })
    };
    let size = SymEnv::new().unbacked();
    let found = sized(&mut builder, "aten.nonzero.default", before, &[size.clone(), 2.into()]);
    let doubled = sized(&mut builder, "aten.neg.default", found, &[size, 2.into()]);
    let after = sized(&mut builder, "aten.exp.default", before, &[2.into(), 3.into()]);
    builder.output(vec![doubled, after].into());
    let graph = builder.finish();
    assert_eq!(pyrite_passes::partition::data_dependent(&graph), ["aten.nonzero.default"]);
    let parts = partition(&graph).unwrap();
    assert_eq!(runners(&parts), [Runner::Backend, Runner::Opaque, Runner::Backend]);
    assert_eq!(parts[1].outputs, [doubled]);
}
