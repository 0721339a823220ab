//! The scenarios of PyTorch's own minifier tests: same results or smaller ones.

use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::{Kind, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Class, Signature, Stage, Verdict};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_reduce::{Candidate, Options, Reduction, Silent, reduce};
use pyrite_tensor::Tensor;
use pyrite_tensor::random::CounterGenerator;

/// A program of the body of a `forward`, with random inputs of the sizes its annotations say.
fn program(inputs: &[&str], body: &[&str]) -> Candidate {
    let parameters: Vec<String> = inputs.iter().map(|name| format!("{name} : \"f32[3]\"")).collect();
    let text = format!(
        "class Repro(torch.nn.Module):\n    def forward(self, {}):\n        {}\n",
        parameters.join(", "),
        body.join("\n        ")
    );
    let graph = read_text(&text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let inputs = (0..inputs.len())
        .map(|index| {
            let tensor = Tensor::empty(&[3], pyrite_tensor::DType::F32).expect("three numbers");
            CounterGenerator::new(7, index as u64).fill_normal(&tensor);
            Value::Tensor(tensor)
        })
        .collect();
    Candidate { graph, inputs, seed: 0 }
}

fn verdict(fails: bool) -> Verdict {
    if fails { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
}

fn calls(candidate: &Candidate, name: &str) -> bool {
    candidate.graph.nodes().any(|(_, node)| matches!(&node.kind, Kind::Call(target) if target.name().contains(name)))
}

fn reduced(start: Candidate, oracle: &(dyn Fn(&Candidate) -> Verdict + Sync)) -> Reduction {
    reduce(start, &|c: &Candidate| oracle(c), Options::default(), &mut Silent).expect("the start fails")
}

fn nodes_and_inputs(reduction: &Reduction) -> (usize, usize) {
    (reduction.best.graph.len(), reduction.best.inputs.len())
}

#[test]
fn a_matmul_is_kept_with_its_two_inputs() {
    let start =
        program(&["x", "y"], &["y_1 = y / 3", "x_1 = x + 3", "x_2 = x_1 * y_1", "a = x_2 + y_1", "return (a,)"]);
    let found = reduced(start, &|c| verdict(calls(c, "aten.mul")));
    let (nodes, inputs) = nodes_and_inputs(&found);
    assert!(nodes <= 4 && inputs <= 2, "{nodes} nodes, {inputs} inputs");
}

#[test]
fn constants_shrink_with_the_inputs_and_lose_their_data() {
    let text = "class Repro(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
                self.register_buffer('w', torch.tensor([0.25, -1.75, 3.5]))\n    def forward(self, x : \"f32[3]\"):\n        \
                w = self.w\n        y = x * w\n        z = y + x\n        return (z,)\n";
    let graph = read_text(text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let start = Candidate { graph, ..program(&["x"], &["return (x,)"]) };
    let found = reduced(start, &|c| verdict(calls(c, "aten.mul") && !c.graph.constants().is_empty()));
    let constant = found.best.graph.constants().values().next().expect("the constant is part of the failure");
    assert_eq!(constant.shape(), [1]);
    assert_ne!(found.best.content(), pyrite_reduce::Content::Data, "{:?}", constant.to_f64s());
}

/// Whether clean inputs give something that is not a number.
fn makes_nan(candidate: &Candidate) -> bool {
    let has_nan = |value: &Value<Tensor>| {
        let mut found = false;
        value.each(&mut |t| found |= t.to_f64s().iter().any(|v| v.is_nan()));
        found
    };
    if candidate.inputs.iter().any(has_nan) {
        return false;
    }
    let context = Context::new(registry(), 0);
    let interpreter = Interpreter { context: &context, mode: Mode::Eager };
    interpreter.run(&candidate.graph, candidate.inputs.clone()).is_ok_and(|result| has_nan(&result))
}

#[test]
fn the_operator_that_makes_nan_of_clean_inputs_is_found() {
    let start = program(
        &["x"],
        &[
            "a = x * 3",
            "b = a + 5",
            "c = b.cos()",
            "zero = c - c",
            "result = zero / zero",
            "d = result + 3",
            "e = d * 2",
            "return (e,)",
        ],
    );
    let found = reduced(start, &|c| verdict(makes_nan(c)));
    let (nodes, inputs) = nodes_and_inputs(&found);
    assert!(nodes <= 3 && inputs <= 1, "{nodes} nodes, {inputs} inputs");
}

#[test]
fn the_operator_that_makes_nan_is_found_through_a_module() {
    let text = "class Repro(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
                self.relu = torch.nn.ReLU()\n\n    def forward(self, x : \"f32[3]\"):\n        y = self.relu(x)\n        \
                zero = y - y\n        result = zero / zero\n        more = result + 3\n        return (more,)\n";
    let graph = read_text(text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let input = Tensor::from_slice(&[0.5f32, -1.5, 2.0], &[3]);
    let found = reduced(Candidate { graph, inputs: vec![Value::Tensor(input)], seed: 0 }, &|c| verdict(makes_nan(c)));
    assert_eq!(nodes_and_inputs(&found), (3, 1));
}

#[test]
fn an_input_that_is_returned_is_all_that_is_left() {
    let start = program(&["a", "b", "c"], &["d = a.sin()", "e = c.cos()", "f = d * e", "return (d, b, e, f)"]);
    let returned = |candidate: &Candidate| {
        let mut outputs = Vec::new();
        candidate.graph.output().each(&mut |id| outputs.push(*id));
        candidate.graph.placeholders().any(|(id, _)| outputs.contains(&id))
    };
    let found = reduced(start, &|c| verdict(returned(c)));
    assert_eq!(nodes_and_inputs(&found), (2, 1));
}

#[test]
fn a_sum_of_an_item_of_a_tuple_is_kept_with_its_two_inputs() {
    let start = program(
        &["a", "b"],
        &[
            "tup = torch.std_mean(a)",
            "first = tup[0]",
            "second = tup[1]",
            "m = b * second",
            "s = first + m",
            "return (s,)",
        ],
    );
    let found = reduced(start, &|c| verdict(calls(c, "aten.add")));
    let (nodes, inputs) = nodes_and_inputs(&found);
    assert!(nodes <= 4 && inputs <= 2, "{nodes} nodes, {inputs} inputs");
}

#[test]
fn relu_among_twenty_others_is_found_in_few_queries() {
    for others in [10, 20] {
        let mut body = Vec::new();
        let mut last = "x".to_owned();
        for index in 0..others {
            let op = if index == others / 2 {
                "relu"
            } else if index % 2 == 0 {
                "sin"
            } else {
                "cos"
            };
            body.push(format!("v{index} = torch.{op}({last})"));
            last = format!("v{index}");
        }
        body.push(format!("return ({last},)"));
        let body: Vec<&str> = body.iter().map(String::as_str).collect();
        let start = program(&["x"], &body);
        let found = reduced(start, &|c| verdict(calls(c, "aten.relu")));
        assert_eq!(found.best.graph.len(), 3);
        assert_eq!(found.best.size().elements, 1);
        assert!(found.queries <= 25, "{} queries for {others}", found.queries);
    }
}

#[test]
fn two_operators_that_fail_only_together_are_found_in_a_deep_graph() {
    // Three thousand nodes; the failure needs a sigmoid whose result a tanh takes.
    let mut body = Vec::new();
    let mut last = "x".to_owned();
    for index in 0..3000 {
        let op = match index {
            1717 => "sigmoid",
            1718 => "tanh",
            _ if index % 7 == 3 => "sigmoid",
            _ => "sin",
        };
        body.push(format!("v{index} = torch.{op}({last})"));
        last = format!("v{index}");
    }
    body.push(format!("return ({last},)"));
    let body: Vec<&str> = body.iter().map(String::as_str).collect();
    let fused = |candidate: &Candidate| {
        candidate.graph.nodes().any(|(_, node)| {
            let Kind::Call(target) = &node.kind else { return false };
            let mut fed = false;
            node.each_input(&mut |input| {
                fed |= matches!(&candidate.graph.node(input).kind, Kind::Call(t) if t.name().contains("sigmoid"));
            });
            fed && target.name().contains("tanh")
        })
    };
    let found = reduced(program(&["x"], &body), &|c| verdict(fused(c)));
    assert_eq!(found.best.graph.len(), 4);
    assert!(found.queries <= 60, "{} queries", found.queries);
}

/// A transformer of many layers, as it is after ahead-of-time autograd: normalisation, attention and a gated product, with
/// an operator of its own between the sigmoid of the gate and its tanh in all layers but one.
fn transformer(layers: usize, guilty: usize) -> Candidate {
    let mut body: Vec<String> = Vec::new();
    let mut last = "x".to_owned();
    for layer in 0..layers {
        let mut number = 0;
        let mut call = |text: String| {
            let name = format!("l{layer}_{number}");
            number += 1;
            body.push(format!("{name} = {text}"));
            name
        };
        let mean = call(format!("torch.ops.aten.mean.dim({last}, [-1], True)"));
        let centred = call(format!("torch.ops.aten.sub.Tensor({last}, {mean})"));
        let square = call(format!("torch.ops.aten.mul.Tensor({centred}, {centred})"));
        let variance = call(format!("torch.ops.aten.mean.dim({square}, [-1], True)"));
        let shifted = call(format!("torch.ops.aten.add.Tensor({variance}, 1e-05)"));
        let inverse = call(format!("torch.ops.aten.rsqrt.default({shifted})"));
        let norm = call(format!("torch.ops.aten.mul.Tensor({centred}, {inverse})"));
        let query = call(format!("torch.ops.aten.mm.default({norm}, w)"));
        let key = call(format!("torch.ops.aten.mm.default({norm}, w)"));
        let value = call(format!("torch.ops.aten.mm.default({norm}, w)"));
        let transposed = call(format!("torch.ops.aten.permute.default({key}, [1, 0])"));
        let scores = call(format!("torch.ops.aten.mm.default({query}, {transposed})"));
        let scaled = call(format!("torch.ops.aten.mul.Tensor({scores}, 0.5)"));
        let weights = call(format!("torch.ops.aten._softmax.default({scaled}, -1, False)"));
        let mixed = call(format!("torch.ops.aten.mm.default({weights}, {value})"));
        let added = call(format!("torch.ops.aten.add.Tensor({last}, {mixed})"));
        let wide = call(format!("torch.ops.aten.mm.default({added}, w)"));
        let gate = call(format!("torch.ops.aten.sigmoid.default({wide})"));
        let between = if layer == guilty { gate } else { call(format!("torch.ops.aten.mul.Tensor({gate}, {wide})")) };
        let bent = call(format!("torch.ops.aten.tanh.default({between})"));
        let product = call(format!("torch.ops.aten.mm.default({bent}, w)"));
        last = call(format!("torch.ops.aten.add.Tensor({added}, {product})"));
    }
    body.push(format!("return ({last},)"));
    let text = format!(
        "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[4, 4]\", w : \"f32[4, 4]\"):\n        {}\n",
        body.join("\n        ")
    );
    let graph = read_text(&text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let inputs = (0..2).map(|index| {
        let tensor = Tensor::empty(&[4, 4], pyrite_tensor::DType::F32).expect("numbers");
        CounterGenerator::new(7, index).fill_normal(&tensor);
        Value::Tensor(tensor)
    });
    Candidate { graph, inputs: inputs.collect(), seed: 0 }
}

#[test]
fn two_operators_that_fail_only_when_fused_are_found_in_a_transformer() {
    let start = transformer(140, 93);
    assert!(start.graph.len() > 3000, "{} nodes", start.graph.len());
    let fused = |candidate: &Candidate| {
        candidate.graph.nodes().any(|(_, node)| {
            let Kind::Call(target) = &node.kind else { return false };
            let mut fed = false;
            node.each_input(&mut |input| {
                fed |= matches!(&candidate.graph.node(input).kind, Kind::Call(t) if t.name().contains("sigmoid"));
            });
            fed && target.name().contains("tanh")
        })
    };
    let found = reduced(start, &|c| verdict(fused(c)));
    assert_eq!(nodes_and_inputs(&found), (4, 1));
    assert_eq!(found.best.size().elements, 1);
    assert!(found.queries <= 60, "{} queries", found.queries);
}
