//! Results are one-step minimal: whatever single thing is taken away from a result, the failure vanishes.
//!
//! The steps are made here, by another way than the passes make them: an output is left out or replaced by one of its
//! ancestors, a call by one of its operands of the same form or by a fresh input, and a size by a smaller one: of one input
//! alone, and of all inputs that have it.

use std::collections::BTreeMap;

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Builder, Kind, Meta, Node, NodeId, Target, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Class, Signature, Stage, Verdict};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_reduce::{Candidate, Options, Silent, reduce};
use pyrite_tensor::random::CounterGenerator;
use pyrite_tensor::{Layout, Tensor};

fn program(parameters: &str, body: &str) -> Candidate {
    let text = format!("class Repro(torch.nn.Module):\n    def forward(self, {parameters}):\n{body}");
    let graph = read_text(&text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let metas: Vec<_> = graph.placeholders().map(|(_, node)| node.meta.clone()).collect();
    let inputs = metas.iter().enumerate().map(|(index, meta)| {
        let meta = meta.as_ref().and_then(Value::as_tensor).expect("an annotation");
        let tensor = Tensor::empty(&meta.layout().expect("a layout").shape, meta.dtype).expect("a tensor");
        CounterGenerator::new(7, index as u64).fill_normal(&tensor);
        Value::Tensor(tensor)
    });
    let inputs = inputs.collect();
    Candidate { graph, inputs, seed: 0 }
}

fn outputs(candidate: &Candidate) -> Vec<NodeId> {
    let mut found = Vec::new();
    candidate.graph.output().each(&mut |id| found.push(*id));
    found
}

/// The program with other outputs, with nodes in the place of others, and with inputs in the place of nodes; what nobody
/// needs and nothing writes is left out.
fn changed(
    from: &Candidate,
    outputs: &[NodeId],
    instead: &BTreeMap<NodeId, NodeId>,
    fed: &BTreeMap<NodeId, Tensor>,
) -> Candidate {
    let graph = &from.graph;
    let resolve = |id: NodeId| instead.get(&id).copied().unwrap_or(id);
    let mut needed: Vec<NodeId> = outputs.iter().map(|id| resolve(*id)).collect();
    let writes = |node: &Node| matches!(&node.kind, Kind::Call(Target::Op(op)) if op.schema.is_mutable());
    needed.extend(graph.nodes().filter(|(id, node)| writes(node) && !instead.contains_key(id)).map(|(id, _)| id));
    let mut at = 0;
    while at < needed.len() {
        if !fed.contains_key(&needed[at]) {
            graph.node(needed[at]).each_input(&mut |input| {
                if !needed.contains(&resolve(input)) {
                    needed.push(resolve(input));
                }
            });
        }
        at += 1;
    }
    let mut builder = Builder::new();
    let (mut copies, mut inputs) = (BTreeMap::new(), Vec::new());
    for ((id, node), value) in graph.placeholders().zip(&from.inputs).filter(|((id, _), _)| needed.contains(id)) {
        copies.insert(id, builder.push(node.clone()));
        inputs.push(value.clone());
    }
    for (id, tensor) in fed.iter().filter(|(id, _)| needed.contains(id)) {
        let meta = Value::Tensor(Meta { storage: pyrite_ir::StorageId::fresh(), ..Meta::of(tensor) });
        copies.insert(*id, builder.placeholder(&graph.node(*id).name, Some(meta)));
        inputs.push(Value::Tensor(tensor.clone()));
    }
    for (id, node) in graph.nodes().filter(|(id, _)| needed.contains(id)) {
        if copies.contains_key(&id) || node.kind == Kind::Output {
            continue;
        }
        let args = node.args.iter().map(|value| value.map(&mut |used| copies[&resolve(*used)])).collect();
        copies.insert(id, builder.push(Node { args, ..node.clone() }));
    }
    builder.output(outputs.iter().map(|id| copies[&resolve(*id)]).collect::<Vec<_>>().into());
    Candidate { graph: builder.finish(), inputs, seed: from.seed }
}

/// Every program that is one step smaller.
fn steps(from: &Candidate) -> Vec<(String, Candidate)> {
    let (graph, all, none) = (&from.graph, outputs(from), BTreeMap::new());
    let mut found = Vec::new();
    let meta = |id: NodeId| graph.node(id).meta.as_ref().and_then(Value::as_tensor);
    for (place, output) in all.iter().enumerate() {
        let rest: Vec<NodeId> = [&all[..place], &all[place + 1..]].concat();
        if !rest.is_empty() {
            found.push((format!("without output {place}"), changed(from, &rest, &none, &BTreeMap::new())));
        }
        let (mut above, mut at) = (vec![*output], 0);
        while at < above.len() {
            graph.node(above[at]).each_input(&mut |input| above.push(input));
            at += 1;
        }
        for ancestor in above.into_iter().skip(1).filter(|id| matches!(graph.node(*id).kind, Kind::Call(_))) {
            if meta(ancestor).is_some() && !all.contains(&ancestor) {
                let mut moved = all.clone();
                moved[place] = ancestor;
                let name = &graph.node(ancestor).name;
                found.push((format!("{name} for output {place}"), changed(from, &moved, &none, &BTreeMap::new())));
            }
        }
    }
    let mut values: BTreeMap<NodeId, Tensor> = BTreeMap::new();
    let context = Context::new(registry(), 0);
    let copies = from.inputs.iter().map(|v| v.map(&mut |t| t.cast(t.dtype()))).collect();
    let ran = Interpreter { context: &context, mode: Mode::Eager }.run_observed(graph, copies, &mut |id, _, value| {
        values.extend(value.as_tensor().map(|tensor| (id, tensor.contiguous())));
    });
    assert!(ran.is_ok());
    for (id, node) in graph.nodes().filter(|(_, node)| matches!(node.kind, Kind::Call(_))) {
        let mut operands = Vec::new();
        node.each_input(&mut |input| operands.push(input));
        for operand in operands {
            if let (Some(own), Some(other)) = (meta(id), meta(operand))
                && own.shape == other.shape
                && own.dtype == other.dtype
            {
                let instead = BTreeMap::from([(id, operand)]);
                found.push((format!("without {}", node.name), changed(from, &all, &instead, &BTreeMap::new())));
            }
        }
        if let Some(tensor) = values.get(&id) {
            let fed = BTreeMap::from([(id, tensor.clone())]);
            found.push((format!("an input for {}", node.name), changed(from, &all, &none, &fed)));
        }
    }
    found
}

/// The program with other sizes of its inputs; none where it is not a program then.
fn resized(from: &Candidate, size: &dyn Fn(usize, usize, i64) -> i64) -> Option<Candidate> {
    let (mut builder, mut copies, mut inputs) = (Builder::new(), BTreeMap::new(), Vec::new());
    for (id, node) in from.graph.nodes().filter(|(_, node)| node.kind != Kind::Output) {
        let args = node.args.iter().map(|value| value.map(&mut |used| copies[used])).collect();
        let mut copy = Node { args, ..node.clone() };
        if node.kind == Kind::Placeholder {
            let number = inputs.len();
            let tensor = from.inputs.get(number)?.as_tensor()?;
            let shape = tensor.shape().iter().enumerate().map(|(dim, n)| size(number, dim, *n)).collect();
            let smaller = tensor.view(tensor.dtype(), Layout { shape, ..tensor.layout().clone() }).ok()?.contiguous();
            copy.meta = Some(Value::Tensor(Meta::of(&smaller)));
            inputs.push(Value::Tensor(smaller));
        }
        copies.insert(id, builder.push(copy));
    }
    builder.output(outputs(from).iter().map(|id| copies[id]).collect::<Vec<_>>().into());
    // Reading it infers all other sizes.
    let text = print(&builder.finish(), &PrintOptions::default());
    let graph = read_text(&text, None, registry(), &ReadOptions::default()).ok()?.graph;
    let found = Candidate { graph, inputs, seed: from.seed };
    let context = Context::new(registry(), 0);
    let given = found.inputs.iter().map(|v| v.map(&mut |t| t.cast(t.dtype()))).collect();
    let ran = Interpreter { context: &context, mode: Mode::Eager }.run(&found.graph, given);
    ran.is_ok().then_some(found)
}

/// Every program with one size less.
fn smaller_sizes(from: &Candidate) -> Vec<(String, Candidate)> {
    let mut found = Vec::new();
    let shapes: Vec<Vec<i64>> =
        from.inputs.iter().filter_map(Value::as_tensor).map(|tensor| tensor.shape().to_vec()).collect();
    for (number, shape) in shapes.iter().enumerate() {
        for (dim, n) in shape.iter().enumerate().filter(|(_, n)| **n > 1) {
            let one = |i: usize, d: usize, size: i64| if (i, d) == (number, dim) { size - 1 } else { size };
            found.extend(resized(from, &one).map(|c| (format!("size {n} of input {number} less"), c)));
            let all = |_: usize, _: usize, size: i64| if size == *n { size - 1 } else { size };
            found.extend(resized(from, &all).map(|c| (format!("size {n} of all inputs less"), c)));
        }
    }
    found
}

fn names(candidate: &Candidate) -> Vec<String> {
    let calls = candidate.graph.nodes().filter_map(|(_, node)| match &node.kind {
        Kind::Call(target) => Some(target.name().to_owned()),
        _ => None,
    });
    calls.collect()
}

/// Programs that are made of the same few parts in many ways.
fn programs() -> Vec<Candidate> {
    let bodies = [
        "        a = torch.sin(x)\n        b = torch.relu(a)\n        c = torch.cos(b)\n        d = c @ w\n        return (d, b)\n",
        "        m = x @ w\n        v = m.view(2, 8)\n        p = v.permute(1, 0)\n        s = torch.relu(p)\n        \
         c = torch.cos(x)\n        t = c.sum(-1)\n        return (s, t)\n",
        "        a = x * 2\n        b = torch.ops.aten.relu_.default(a)\n        c = torch.cos(a)\n        d = c + b\n        \
         m = d @ w\n        return (m,)\n",
        "        t = torch.ops.aten.split.Tensor(x, 2)\n        a = t[0]\n        b = t[1]\n        c = torch.relu(a)\n        \
         d = torch.cos(b)\n        e = c + d\n        f = e @ w\n        g = torch.tanh(f)\n        return (g, c)\n",
        "        a = torch.cos(x)\n        b = torch.cos(a)\n        c = torch.relu(b)\n        d = torch.relu(c)\n        \
         e = d @ w\n        f = torch.sin(e)\n        g = f @ w\n        h = torch.relu(g)\n        return (h, a, d)\n",
    ];
    bodies.iter().map(|body| program("x : \"f32[4, 4]\", w : \"f32[4, 4]\"", body)).collect()
}

/// Bugs, by the operators that a program must have for them.
const BUGS: [&[&str]; 8] = [
    &["relu"],
    &["cos"],
    &["mm"],
    &["relu", "cos"],
    &["relu", "mm"],
    &["cos", "mm"],
    &["relu", "cos", "mm"],
    &["sin", "mm"],
];

#[test]
fn nothing_can_be_taken_away_from_a_result() {
    let mut reduced = 0;
    for start in programs() {
        for bug in BUGS {
            let is = |name: &str, op: &str| name.contains(op) || op == "mm" && name.contains("matmul");
            let fails = |c: &Candidate| bug.iter().all(|op| names(c).iter().any(|name| is(name, op)));
            let oracle = |c: &Candidate| {
                if fails(c) { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
            };
            let Ok(found) = reduce(start.clone(), &oracle, Options::default(), &mut Silent) else { continue };
            reduced += 1;
            for (step, smaller) in steps(&found.best).into_iter().chain(smaller_sizes(&found.best)) {
                let shrinks = smaller.is_smaller_than(&found.best.size());
                assert!(
                    !(shrinks && smaller.is_program() && fails(&smaller)),
                    "{bug:?}, {step}: {:?}",
                    names(&found.best)
                );
            }
        }
    }
    assert!(reduced >= 25, "{reduced}");
}

#[test]
fn no_size_of_a_result_can_be_smaller() {
    for (needed, op) in [(1, "relu"), (2, "cos"), (3, "mm"), (3, "sin")] {
        for start in programs() {
            let large = |c: &Candidate| {
                let sizes = c.inputs.iter().filter_map(Value::as_tensor).flat_map(|t| t.shape().to_vec());
                sizes.max().is_some_and(|size| size >= needed)
            };
            let is = |name: &String| name.contains(op) || op == "mm" && name.contains("matmul");
            let fails = |c: &Candidate| large(c) && names(c).iter().any(is);
            let oracle = |c: &Candidate| {
                if fails(c) { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
            };
            let Ok(found) = reduce(start.clone(), &oracle, Options::default(), &mut Silent) else { continue };
            for (step, smaller) in smaller_sizes(&found.best) {
                assert!(!fails(&smaller), "{op} of {needed}, {step}: {:?}", names(&found.best));
            }
        }
    }
}
