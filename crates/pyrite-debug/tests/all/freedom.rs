//! What operators leave open blames nobody, and everything else of the same program does.

use std::sync::atomic::{AtomicI64, Ordering};

use pyrite_compiler::backend::{Backend, Executable, Forward, Observer, register};
use pyrite_compiler::find;
use pyrite_debug::{Question, judge};
use pyrite_ir::{Graph, Meta, NodeError, Value};
use pyrite_ops::registry;
use pyrite_oracle::Verdict;
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{DType, Tensor};

type Change = fn(&Tensor) -> Tensor;

/// `eager` in another precision, with its outputs changed.
struct Changed {
    inner: Box<dyn Executable>,
    before: Change,
    after: Change,
}

impl Executable for Changed {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let inputs = inputs.iter().map(|value| value.map(&mut |tensor| (self.before)(tensor))).collect();
        let outputs = self.inner.run(inputs, random, observe)?.outputs;
        Ok(Forward { outputs: outputs.map(&mut |tensor| (self.after)(tensor)), backward: None })
    }
}

fn backend(name: &str, after: Change) {
    register(Backend::new(name, "for tests", move |graph, options| {
        let inner = (find("eager").expect("eager").compile)(graph, options)?;
        Ok(Box::new(Changed { inner, before: Tensor::clone, after }))
    }));
}

/// Adds to the integers of every output.
fn moved(tensor: &Tensor, by: impl Fn(usize, i64) -> i64) -> Tensor {
    if !tensor.dtype().is_integral() {
        return tensor.clone();
    }
    let result = Tensor::empty(tensor.shape(), tensor.dtype()).expect("a tensor");
    result.write_i64s(&tensor.to_i64s().iter().enumerate().map(|(at, value)| by(at, *value)).collect::<Vec<_>>());
    result
}

fn verdict(body: &[&str], inputs: &[Tensor], backend: &str, reference: &str) -> Verdict {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let lines: String = body.iter().map(|line| format!("        {line}\n")).collect();
    let text =
        format!("import torch\n\nclass Repro(torch.nn.Module):\n    def forward(self, {}):\n{lines}", names.join(", "));
    let mut graph: Graph = read_text(&text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let ids: Vec<_> = graph.placeholders().map(|(id, _)| id).collect();
    for (id, input) in ids.into_iter().zip(inputs) {
        graph.set_meta(id, Value::Tensor(Meta::of(input)));
    }
    let question = Question { backend: backend.to_owned(), reference: reference.to_owned(), ..Question::default() };
    let inputs: Vec<_> = inputs.iter().cloned().map(Value::Tensor).collect();
    judge(&graph, &inputs, &question, &mut |_| {}, &mut |_, _| {}).verdict
}

fn is_fine(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Noise)
}

const POOL: &str = "t = torch.ops.aten.max_pool2d_with_indices.default(x0, [2, 2], [2, 2])";

#[test]
fn the_last_of_equal_elements_of_a_window_is_as_good_as_the_first() {
    backend("last-of-window", |tensor| moved(tensor, |_, place| place + 5));
    backend("beside-window", |tensor| moved(tensor, |_, place| place + 2));
    let tied = Tensor::from_slice(&[0f32; 16], &[1, 1, 4, 4]);
    let body = [POOL, "v = t[0]", "i = t[1]", "return (v, i)"];
    let asked = |backend| verdict(&body, std::slice::from_ref(&tied), backend, "eager");
    assert!(is_fine(&asked("last-of-window")), "{:?}", asked("last-of-window"));
    // The choice is open, so nobody is blamed for a place that no choice names either.
    assert!(is_fine(&asked("beside-window")), "an element that is open is open");
    let rising = Tensor::from_slice(&std::array::from_fn::<f32, 16, _>(|i| i as f32), &[1, 1, 4, 4]);
    let found = verdict(&body, &[rising], "beside-window", "eager");
    assert!(matches!(found, Verdict::Fail(_)), "without ties there is one answer: {found:?}");
}

#[test]
fn running_extremes_leave_open_which_of_the_elements_so_far_is_named() {
    backend("first-so-far", |tensor| moved(tensor, |_, _| 0));
    for operator in ["cummax", "cummin"] {
        let body = [&*format!("t = torch.ops.aten.{operator}.default(x0, 0)"), "v = t[0]", "i = t[1]", "return (v, i)"];
        let tied = Tensor::from_slice(&[1f32; 5], &[5]).cast(DType::BF16);
        assert!(is_fine(&verdict(&body, &[tied], "first-so-far", "eager")), "{operator}");
        let values: [f32; 3] = if operator == "cummax" { [1.0, 2.0, 3.0] } else { [3.0, 2.0, 1.0] };
        let rising = Tensor::from_slice(&values, &[3]);
        assert!(matches!(verdict(&body, &[rising], "first-so-far", "eager"), Verdict::Fail(_)), "{operator}");
    }
}

#[test]
fn what_is_read_at_an_open_place_is_open_and_the_rest_is_not() {
    backend("other-reading", |tensor| {
        let values = tensor.to_f64s();
        let result = Tensor::empty(tensor.shape(), tensor.dtype()).expect("a tensor");
        result.write_f64s(&values.iter().enumerate().map(|(at, v)| if at == 0 { 5.0 } else { *v }).collect::<Vec<_>>());
        result
    });
    // The first window is tied, the second is not.
    let x = Tensor::from_slice(&[0f32, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0], &[1, 1, 2, 4]);
    let y = Tensor::from_slice(&std::array::from_fn::<f32, 8, _>(|i| i as f32), &[8]);
    let body = [
        POOL,
        "i = t[1]",
        "f = torch.ops.aten.reshape.default(i, [2])",
        "g = torch.ops.aten.gather.default(x1, 0, f)",
        "return (g,)",
    ];
    let inputs = [x, y];
    assert!(is_fine(&verdict(&body, &inputs, "other-reading", "eager")));
    let lines: Vec<&str> =
        body[..4].iter().copied().chain(["h = torch.ops.aten.flip.default(g, [0])", "return (h,)"]).collect();
    assert!(matches!(verdict(&lines, &inputs, "other-reading", "eager"), Verdict::Fail(_)), "that one is not open");
}

#[test]
fn integers_that_a_reference_changes_from_run_to_run_are_open() {
    static RUNS: AtomicI64 = AtomicI64::new(0);
    backend("drifting-places", |tensor| {
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        moved(tensor, |at, place| if at == 0 { place + run } else { place })
    });
    let body = ["i = torch.ops.aten.argmax.default(x0, 1)", "y = torch.ops.aten.mul.Tensor(x0, 2.0)", "return (i, y)"];
    let x = Tensor::from_slice(&[1f32, 2.0, 4.0, 3.0], &[2, 2]);
    backend("fine", Tensor::clone);
    let found = verdict(&body, std::slice::from_ref(&x), "fine", "drifting-places");
    assert!(is_fine(&found), "{found:?}");
    backend("wrong-numbers", |tensor| {
        if tensor.dtype().is_integral() {
            return tensor.clone();
        }
        let result = Tensor::empty(tensor.shape(), tensor.dtype()).expect("a tensor");
        result.write_f64s(&tensor.to_f64s().iter().map(|v| v + 1.0).collect::<Vec<_>>());
        result
    });
    assert!(matches!(verdict(&body, &[x], "wrong-numbers", "drifting-places"), Verdict::Fail(_)));
}

#[test]
fn integers_that_tip_over_by_rounding_are_never_a_bug_and_wrong_ones_are() {
    for (name, after) in [
        ("wide", (|tensor| tensor.clone()) as Change),
        ("wide-and-off", |tensor| moved(tensor, |_, place| (place + 7) % 32)),
    ] {
        register(Backend::new(name, "for tests", move |graph: Graph, options| {
            let mut graph = graph;
            graph.map_dtypes(&|dtype| if dtype == DType::BF16 { DType::F32 } else { dtype });
            let inner = (find("eager").expect("eager").compile)(graph, options)?;
            Ok(Box::new(Changed { inner, before: |tensor| tensor.cast(DType::F32), after }))
        }));
    }
    let mut tipped = 0;
    for (operator, ending) in
        [("argmax.default(b, 1)", "i = t"), ("cummax.default(b, 1)", "i = t[1]"), ("sort.default(b, 1)", "i = t[1]")]
    {
        let body = [
            "a = torch.ops.aten.sigmoid.default(x0)",
            "b = torch.ops.aten.mul.Tensor(a, a)",
            &*format!("t = torch.ops.aten.{operator}"),
            ending,
            "return (i,)",
        ];
        for seed in 0..20 {
            let x = Tensor::empty(&[16, 32], DType::F32).expect("a tensor");
            TorchGenerator::new(seed).normal(&x, 0.0, 2.0).expect("numbers");
            let x = [x.cast(DType::BF16)];
            let found = verdict(&body, &x, "wide", "eager");
            assert!(is_fine(&found), "{operator}, seed {seed}: {found:?}");
            tipped += usize::from(found == Verdict::Noise);
        }
        if operator.starts_with("argmax") {
            let x =
                Tensor::from_slice(&std::array::from_fn::<f32, 512, _>(|i| (i % 32) as f32 / 16.0 - 1.0), &[16, 32]);
            let found = verdict(&body, &[x.cast(DType::BF16)], "wide-and-off", "eager");
            assert!(matches!(found, Verdict::Fail(_)), "{found:?}");
        }
    }
    assert!(tipped > 0, "nothing tipped over, so nothing was shown");
}

#[test]
fn numbers_that_an_integer_type_cannot_hold_become_anything() {
    backend("other-integers", |tensor| moved(tensor, |at, value| if at < 2 { 77 } else { value }));
    let body = ["i = torch.ops.aten._to_copy.default(x0, dtype=torch.int8)", "return (i,)"];
    let far = Tensor::from_slice(&[300f32, f32::NAN, 5.0, -7.0], &[4]);
    assert!(is_fine(&verdict(&body, &[far], "other-integers", "eager")));
    let near = Tensor::from_slice(&[30.5f32, -1.5, 5.5, -7.5], &[4]);
    assert!(matches!(verdict(&body, &[near], "other-integers", "eager"), Verdict::Fail(_)));
}

#[test]
fn whoever_draws_other_random_numbers_is_not_blamed_and_whoever_spoils_them_is() {
    for (name, after) in [
        ("torch:redrawn", (|tensor| tensor.clone()) as Change),
        ("torch:redrawn-and-spoiled", |tensor| {
            let result = Tensor::empty(tensor.shape(), tensor.dtype()).expect("a tensor");
            result.write_f64s(&tensor.to_f64s().iter().map(|v| v + 1.0).collect::<Vec<_>>());
            result
        }),
    ] {
        register(Backend::new(name, "for tests", move |graph: Graph, options| {
            let options = pyrite_compiler::Options { seed: options.seed + 1, ..options.clone() };
            let inner = (find("eager").expect("eager").compile)(graph, &options)?;
            Ok(Box::new(Changed { inner, before: Tensor::clone, after }))
        }));
    }
    let x =
        Tensor::from_slice(&std::array::from_fn::<f32, 512, _>(|i| if i < 256 { 1.0 + i as f32 } else { 0.0 }), &[512]);
    for line in [
        "t = torch.ops.aten.native_dropout.default(x0, 0.5, True)\n        a = t[0]",
        "t = torch.ops.aten.native_dropout.default(x0, 0.05, True)\n        a = t[0]",
        "a = torch.ops.aten.rand_like.default(x0)",
        "b = torch.ops.aten.full_like.default(x0, 0.9)\n        c = torch.ops.aten.bernoulli.default(b)\n        a = torch.ops.aten.mul.Tensor(c, x0)",
        "b = torch.ops.aten.randint_like.default(x0, 3)\n        a = torch.ops.aten.add.Tensor(b, x0)",
    ] {
        let body = [line, "s = torch.ops.aten.mul.Tensor(a, 2.0)", "return (s,)"];
        let asked = |backend| verdict(&body, std::slice::from_ref(&x), backend, "eager");
        assert!(is_fine(&asked("torch:redrawn")), "{line}: {:?}", asked("torch:redrawn"));
        if line.contains("dropout") {
            // What is dropped or kept of a zero is zero.
            assert!(matches!(asked("torch:redrawn-and-spoiled"), Verdict::Fail(_)), "{line}");
        }
    }
}
