//! What single passes leave, on programs made for them.

use pyrite_ir::{Kind, Target, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Class, Signature, Stage, Verdict};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_reduce::{Candidate, Content, Options, Reduction, Silent, reduce};
use pyrite_tensor::random::CounterGenerator;
use pyrite_tensor::{DType, Tensor};

/// A program from its text, with random inputs as its annotations say.
fn program(text: &str) -> Candidate {
    let graph = read_text(text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let metas: Vec<_> = graph.placeholders().map(|(_, node)| node.meta.clone()).collect();
    let inputs = metas.iter().enumerate().map(|(index, meta)| {
        let meta = meta.as_ref().and_then(Value::as_tensor).expect("an annotation");
        let layout = meta.layout().expect("a layout");
        let tensor = Tensor::empty(&layout.shape, meta.dtype).expect("a tensor");
        if meta.dtype.is_float() {
            CounterGenerator::new(7, index as u64).fill_normal(&tensor);
        } else {
            tensor.write_f64s(&vec![1.0; tensor.numel()]);
        }
        Value::Tensor(tensor)
    });
    let inputs = inputs.collect();
    Candidate { graph, inputs, seed: 0 }
}

fn forward(parameters: &str, body: &str) -> Candidate {
    program(&format!("class Repro(torch.nn.Module):\n    def forward(self, {parameters}):\n{body}"))
}

fn reduced(start: Candidate, fails: &(dyn Fn(&Candidate) -> bool + Sync)) -> Reduction {
    let oracle = |c: &Candidate| {
        if fails(c) { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
    };
    reduce(start, &oracle, Options::default(), &mut Silent).expect("the start fails")
}

fn names(candidate: &Candidate) -> Vec<String> {
    let calls = candidate.graph.nodes().filter_map(|(_, node)| match &node.kind {
        Kind::Call(Target::GetItem) | Kind::Placeholder | Kind::GetAttr(_) | Kind::Output => None,
        Kind::Call(target) => Some(target.name().to_owned()),
    });
    calls.collect()
}

fn tensor(candidate: &Candidate, index: usize) -> &Tensor {
    candidate.inputs[index].as_tensor().expect("a tensor")
}

#[test]
fn a_matmul_with_a_bias_becomes_one_without() {
    let start = forward(
        "bias : \"f32[5]\", a : \"f32[3, 4]\", b : \"f32[4, 5]\"",
        "        out = torch.ops.aten.addmm.default(bias, a, b)\n        return (out,)\n",
    );
    let found = reduced(start, &|c| names(c).iter().any(|name| name.contains("mm")));
    assert_eq!(names(&found.best), ["aten.mm.default"]);
    assert_eq!(found.best.inputs.len(), 2);
}

#[test]
fn any_call_will_do_where_only_the_number_of_calls_matters() {
    let start = forward(
        "x : \"f32[3, 4]\"",
        "        y = torch.ops.aten._softmax.default(x, -1, False)\n        return (y,)\n",
    );
    let found = reduced(start, &|c| names(c).len() == 1);
    let Some((_, call)) = found.best.graph.nodes().find(|(_, node)| matches!(node.kind, Kind::Call(_))) else {
        panic!("the call is gone");
    };
    assert_ne!(names(&found.best), ["aten._softmax.default"]);
    assert_eq!(call.args.len(), 1, "{call:?}");
}

#[test]
fn unusual_types_become_usual_ones_together() {
    let body = "        wide = torch.ops.aten._to_copy.default(x, dtype = torch.float64)\n        \
                z = torch.ops.aten.mul.Tensor(wide, y)\n        return (z,)\n";
    let start = || forward("x : \"f16[3]\", y : \"f64[3]\"", body);
    let found = reduced(start(), &|c| names(c).contains(&"aten.mul.Tensor".to_owned()));
    found.best.inputs.iter().for_each(|input| input.each(&mut |t| assert_eq!(t.dtype(), DType::F32)));
    let needs_half = |c: &Candidate| c.inputs.iter().any(|v| v.as_tensor().is_some_and(|t| t.dtype() == DType::F16));
    let found = reduced(start(), &needs_half);
    assert!(needs_half(&found.best));
}

#[test]
fn nested_graphs_are_opened_and_reduced_inside() {
    let text = "class Inner(torch.nn.Module):\n    def forward(self, x):\n        a = x.sin()\n        b = a.relu()\n        \
                c = b.cos()\n        return (c,)\n\nclass Repro(torch.nn.Module):\n    def __init__(self):\n        \
                super().__init__()\n        self.inner = Inner()\n\n    def forward(self, flag : \"b8[]\", x : \"f32[2]\"):\n        \
                cond = torch.ops.higher_order.cond(flag, self.inner, self.inner, (x,))\n        item = cond[0]\n        \
                out = item.tanh()\n        return (out,)\n";
    let has_relu = |c: &Candidate| {
        let own = names(c).iter().any(|name| name.contains("relu"));
        let used = names(c).iter().any(|name| name.contains("cond"));
        own || used
            && c.graph.subgraphs().values().any(|g| {
                g.nodes().any(|(_, node)| matches!(&node.kind, Kind::Call(target) if target.name().contains("relu")))
            })
    };
    let found = reduced(program(text), &has_relu);
    assert_eq!(names(&found.best), ["aten.relu.default"]);
    assert_eq!((found.best.graph.len(), found.best.size().elements), (3, 1));
}

#[test]
fn an_odd_tail_is_kept_where_it_matters() {
    let start = forward("x : \"f32[1037]\"", "        y = torch.sin(x)\n        return (y,)\n");
    // As a kernel does that is wrong after its last whole vector.
    let tail = |c: &Candidate| {
        names(c).len() == 1
            && c.inputs.first().and_then(Value::as_tensor).is_some_and(|t| t.numel() > 16 && t.numel() % 16 != 0)
    };
    let found = reduced(start, &tail);
    assert_eq!(tensor(&found.best, 0).shape(), [17]);
    assert!(found.queries <= 60, "{} queries", found.queries);
}

/// A program of a million elements, and how many elements each question had, in order.
fn asked(fails: &(dyn Fn(&Candidate) -> bool + Sync)) -> (Reduction, Vec<usize>) {
    let body = "        y = torch.ops.aten.relu.default(x)\n        z = torch.ops.aten.exp.default(y)\n        \
                v = torch.ops.aten.add.Tensor(z, b)\n        s = torch.ops.aten.sum.dim_IntList(v, [1])\n        \
                t = torch.ops.aten.sin.default(s)\n        return (t, v)\n";
    let start = forward("x : \"f32[2048, 512]\", b : \"f32[512]\"", body);
    let elements = std::sync::Mutex::new(Vec::new());
    let found = reduced(start, &|c| {
        let mut count = 0;
        c.inputs.iter().for_each(|input| input.each(&mut |t| count += t.numel()));
        elements.lock().unwrap().push(count);
        fails(c)
    });
    (found, elements.into_inner().unwrap())
}

#[test]
fn sizes_of_large_programs_shrink_before_anything_else() {
    let (found, elements) = asked(&|c| names(c).contains(&"aten.relu.default".to_owned()));
    assert_eq!((names(&found.best).len(), tensor(&found.best, 0).numel()), (1, 1));
    // The start, and at once something small.
    assert!(elements[1..].iter().all(|count| *count < 1 << 15), "{elements:?}");
}

#[test]
fn large_parameters_are_no_reason_to_ask_about_a_long_program_again() {
    let mut body = String::new();
    for layer in 0..40 {
        let (from, op) = (if layer == 0 { "x".to_owned() } else { format!("v{}", layer - 1) }, layer % 3);
        body += &match op {
            0 => format!("        v{layer} = torch.ops.aten.mm.default({from}, w{})\n", layer % 2),
            1 => format!("        v{layer} = torch.ops.aten.sin.default({from})\n"),
            _ => format!("        v{layer} = torch.ops.aten.add.Tensor({from}, x)\n"),
        };
    }
    body = body.replace("v19 = torch.ops.aten.sin", "v19 = torch.ops.aten.relu") + "        return (v39,)\n";
    let start = forward("x : \"f32[2, 1024]\", w0 : \"f32[1024, 1024]\", w1 : \"f32[1024, 1024]\"", &body);
    let long = std::sync::atomic::AtomicUsize::new(0);
    let found = reduced(start, &|c| {
        long.fetch_add(usize::from(names(c).len() >= 40), std::sync::atomic::Ordering::Relaxed);
        names(c).contains(&"aten.relu.default".to_owned())
    });
    assert_eq!((names(&found.best).len(), tensor(&found.best, 0).numel()), (1, 1));
    assert_eq!(long.into_inner(), 1, "only the start is asked about as a whole");
}

#[test]
fn a_call_with_several_results_is_cut_from_what_feeds_it() {
    let mut body = String::new();
    for layer in 0..12 {
        let from = if layer == 0 { "x".to_owned() } else { format!("r{}", layer - 1) };
        let last = if layer == 7 { "relu" } else { "sin" };
        body += &format!(
            "        m{layer} = torch.ops.aten.mm.default({from}, w)\n        \
             v{layer} = torch.ops.aten.var_mean.correction(m{layer}, [0], correction=0, keepdim=True)\n        \
             g{layer} = v{layer}[0]\n        h{layer} = v{layer}[1]\n        \
             s{layer} = torch.ops.aten.sub.Tensor(m{layer}, h{layer})\n        \
             q{layer} = torch.ops.aten.rsqrt.default(g{layer})\n        \
             p{layer} = torch.ops.aten.mul.Tensor(s{layer}, q{layer})\n        \
             r{layer} = torch.ops.aten.{last}.default(p{layer})\n"
        );
    }
    body += "        return (r11,)\n";
    let start = forward("x : \"f32[8, 16]\", w : \"f32[16, 16]\"", &body);
    let sizes = std::sync::Mutex::new(Vec::new());
    let found = reduced(start, &|c| {
        sizes.lock().unwrap().push(names(c).len());
        names(c).contains(&"aten.relu.default".to_owned())
    });
    assert_eq!(names(&found.best), ["aten.relu.default"]);
    // After the start one layer's calls stand for those of all others.
    let sizes = sizes.into_inner().unwrap();
    assert!(sizes[1..].iter().all(|calls| *calls <= 20), "{sizes:?}");
}

#[test]
fn the_smallest_size_that_fails_is_searched_where_small_ones_pass() {
    let needs = |c: &Candidate| {
        let long =
            c.inputs.iter().any(|v| v.as_tensor().is_some_and(|t| t.shape().first().is_some_and(|n| *n >= 1025)));
        long && names(c).contains(&"aten.relu.default".to_owned())
    };
    let (found, elements) = asked(&needs);
    assert_eq!(names(&found.best), ["aten.relu.default"]);
    assert_eq!(tensor(&found.best, 0).shape()[0], 1025);
    assert!(tensor(&found.best, 0).numel() == 1025 && elements.len() < 200, "{} questions", elements.len());
}

#[test]
fn contents_become_as_plain_as_the_failure_allows() {
    let start = || forward("x : \"f32[6]\"", "        y = torch.sin(x)\n        return (y,)\n");
    let numbers = |c: &Candidate| c.inputs.first().and_then(Value::as_tensor).map(Tensor::to_f64s).unwrap_or_default();
    assert_eq!(start().content(), Content::Data);

    let found = reduced(start(), &|c| numbers(c).iter().any(|v| *v < 0.0));
    assert!(found.best.content() <= Content::Small, "{:?}", numbers(&found.best));
    assert!(numbers(&found.best).iter().all(|v| v.fract() == 0.0));

    // One number that is not zero among several.
    let found = reduced(start(), &|c| {
        numbers(c).len() == 6 && numbers(c).iter().filter(|v| **v != 0.0).count() == 1
            || numbers(c).iter().all(|v| v.fract() != 0.0) && numbers(c).len() == 6
    });
    assert_eq!(numbers(&found.best).iter().sum::<f64>(), 1.0);

    // Numbers that are not whole: a seed makes them as well as anybody's data.
    let found = reduced(start(), &|c| numbers(c).iter().any(|v| v.fract() != 0.0));
    assert_eq!(found.best.content(), Content::Generated, "{:?}", numbers(&found.best));
}

#[test]
fn groups_that_would_be_fused_are_tried_together() {
    // Products tear the graph into groups of pointwise calls; the failure needs a whole one.
    let mut body = String::new();
    let mut last = "x".to_owned();
    for group in 0..6 {
        let ops = if group == 4 { ["sin", "sigmoid", "tanh", "cos", "sin"] } else { ["sin"; 5] };
        for (index, op) in ops.iter().enumerate() {
            body += &format!("        v{group}_{index} = torch.{op}({last})\n");
            last = format!("v{group}_{index}");
        }
        body += &format!("        m{group} = {last} @ w\n");
        last = format!("m{group}");
    }
    body += &format!("        return ({last},)\n");
    let start = forward("x : \"f32[4, 4]\", w : \"f32[4, 4]\"", &body);
    let chain = |c: &Candidate| {
        names(c).windows(3).any(|w| w[0].contains("sigmoid") && w[1].contains("tanh") && w[2].contains("cos"))
    };
    let found = reduced(start, &chain);
    assert_eq!(names(&found.best).len(), 3);
    assert!(found.queries <= 50, "{} queries", found.queries);
}

#[test]
fn an_output_moves_up_to_what_it_is_computed_from() {
    let body = "        m = torch.ops.aten.mm.default(a, b)\n        u = torch.ops.aten._unsafe_view.default(m, [2, 3, 4])\n        \
                v = torch.ops.aten.view.default(u, [2, 12])\n        p = torch.ops.aten.permute.default(v, [1, 0])\n        \
                parts = torch.ops.aten.unbind.int(p)\n        g = parts[0]\n        c = torch.ops.aten.cos.default(x)\n        \
                return (g, c)\n";
    let start = forward("x : \"f32[5]\", a : \"f32[6, 3]\", b : \"f32[3, 4]\"", body);
    let fails =
        |c: &Candidate| ["aten.mm.default", "aten.cos.default"].iter().all(|op| names(c).contains(&(*op).to_owned()));
    let mut left = names(&reduced(start, &fails).best);
    left.sort();
    assert_eq!(left, ["aten.cos.default", "aten.mm.default"]);
}

/// A write that is read through another name of the memory, after a read that must come before it, among calls that have
/// nothing to do with it.
const WRITES: &str = "        h = torch.ops.aten.mm.default(w, w)\n        r = torch.ops.aten.relu.default(h)\n        \
                      s = torch.ops.aten.sum.default(r)\n        v = torch.ops.aten.view.dtype(x, torch.int32)\n        \
                      y = torch.ops.aten.mul.Tensor(v, 2)\n        t = torch.ops.aten.sub_.Tensor(y, -4)\n        \
                      part = torch.ops.aten.slice.Tensor(x, 1, 2, 5)\n        f = torch.ops.aten.fill_.Scalar(part, 2)\n        \
                      z = torch.ops.aten.view.dtype(t, torch.int64)\n        return (z, s)\n";

#[test]
fn programs_that_write_lose_what_does_not_matter_and_keep_writes_through_views() {
    let start = forward("x : \"i64[2, 6]\", w : \"f32[3, 3]\"", WRITES);
    // The multiplication reads memory that is written after it through a slice.
    let fails = |c: &Candidate| {
        let place = |op: &str| names(c).iter().position(|name| name == op);
        let read = place("aten.mul.Tensor");
        read.is_some() && read < place("aten.sub_.Tensor") && read < place("aten.fill_.Scalar")
    };
    let mut left = names(&reduced(start, &fails).best);
    left.sort();
    for op in ["aten.mm.default", "aten.relu.default", "aten.sum.default"] {
        assert!(!left.contains(&op.to_owned()), "{left:?}");
    }
    assert!(left.len() <= 5, "{left:?}");
}

#[test]
fn calls_before_one_that_raises_go_many_at_a_time() {
    let chain: String = (0..8).map(|i| format!("        h{} = torch.sin(h{i})\n", i + 1)).collect();
    let body = format!("{chain}        out = torch.ops.aten.index.Tensor(h8, [index])\n        return (out,)\n");
    // The only index is out of range, so no value after it is known, and none of the calls can be fed from one.
    let start = forward("h0 : \"f32[1, 4]\", index : \"i64[1]\"", &body);
    let found = reduced(start, &|c| names(c).iter().any(|name| name == "aten.index.Tensor"));
    assert_eq!(names(&found.best), ["aten.index.Tensor"]);
    assert!(found.queries <= 20, "{} queries", found.queries);
}
