//! Integers that rounding can tip over blame nobody, however rarely they do; other integers do.

use pyrite_compiler::backend::{Backend, Executable, Forward, Observer, register};
use pyrite_compiler::find;
use pyrite_debug::{Question, judge};
use pyrite_ir::{Graph, Meta, NodeError, Value};
use pyrite_ops::registry;
use pyrite_oracle::Verdict;
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{DType, Tensor};

/// `eager` with its outputs changed.
struct Changed {
    inner: Box<dyn Executable>,
    change: fn(usize, f64) -> f64,
    of: fn(DType) -> bool,
}

impl Executable for Changed {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let outputs = self.inner.run(inputs, random, observe)?.outputs.map(&mut |tensor| {
            if !(self.of)(tensor.dtype()) {
                return tensor.clone();
            }
            let result = Tensor::empty(tensor.shape(), tensor.dtype()).expect("a tensor");
            let values = tensor.to_f64s();
            let changed: Vec<f64> =
                values.into_iter().enumerate().map(|(at, value)| (self.change)(at, value)).collect();
            result.write_f64s(&changed);
            result
        });
        Ok(Forward { outputs, backward: None })
    }
}

fn backend(name: &str, of: fn(DType) -> bool, change: fn(usize, f64) -> f64) {
    register(Backend::new(name, "for tests", move |graph, options| {
        let inner = (find("eager").expect("eager").compile)(graph, options)?;
        Ok(Box::new(Changed { inner, change, of }))
    }));
}

fn verdict(body: &[&str], input: &Tensor, backend: &str) -> Verdict {
    let lines: String = body.iter().map(|line| format!("        {line}\n")).collect();
    let text = format!("import torch\n\nclass Repro(torch.nn.Module):\n    def forward(self, x):\n{lines}");
    let mut graph: Graph = read_text(&text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let id = graph.placeholders().map(|(id, _)| id).next().expect("an input");
    graph.set_meta(id, Value::Tensor(Meta::of(input)));
    let question = Question { backend: backend.to_owned(), reference: "eager".to_owned(), ..Question::default() };
    judge(&graph, &[Value::Tensor(input.clone())], &question, &mut |_| {}, &mut |_, _| {}).verdict
}

/// Four windows of four elements. The two largest of the first one are six units in the last place apart, so that moving each of
/// them by two, as a sample does at most, does not tip it over.
fn windows() -> Tensor {
    let mut values: Vec<f32> = (0..16).map(|i| (i * 7 % 16) as f32 / 32.0).collect();
    values[0] = 0.75;
    values[1] = f32::from_bits(0.75f32.to_bits() - 6);
    Tensor::from_slice(&values, &[1, 1, 4, 4])
}

const POOL: [&str; 4] = [
    "a = torch.ops.aten.exp.default(x)",
    "t = torch.ops.aten.max_pool2d_with_indices.default(a, [2, 2], [2, 2])",
    "i = t[1]",
    "return (i,)",
];

#[test]
fn an_index_that_rounding_can_tip_is_noise_and_a_wrong_one_is_not() {
    backend("tipped", DType::is_integral, |at, place| if at == 0 { 1.0 } else { place });
    backend("tipped-into-the-rest", DType::is_integral, |at, place| if at == 0 { 4.0 } else { place });
    backend("wrong", DType::is_integral, |at, place| if at == 2 { 8.0 + f64::from(place == 8.0) } else { place });
    assert_eq!(verdict(&POOL, &windows(), "tipped"), Verdict::Noise);
    assert!(matches!(verdict(&POOL, &windows(), "wrong"), Verdict::Fail(_)));
    let found = verdict(&POOL, &windows(), "tipped-into-the-rest");
    assert!(matches!(found, Verdict::Fail(_)), "the window tips over to its second, not to its third: {found:?}");
}

#[test]
fn what_follows_from_an_index_that_tips_is_noise_and_the_rest_is_not() {
    // What is read at the place: 100 and 200, which are no rounding apart.
    let body = [
        POOL[0],
        POOL[1],
        POOL[2],
        "f = torch.ops.aten.reshape.default(i, [4])",
        "n = torch.ops.aten.arange.start_step(100.5, 1700.5, 100.0)",
        "g = torch.ops.aten.index_select.default(n, 0, f)",
        "return (g,)",
    ];
    backend("other-reading", DType::is_float, |at, value| if at == 0 { 200.5 } else { value });
    backend("another-reading", DType::is_float, |at, value| if at == 0 { 900.5 } else { value });
    assert_eq!(verdict(&body, &windows(), "other-reading"), Verdict::Noise);
    assert!(matches!(verdict(&body, &windows(), "another-reading"), Verdict::Fail(_)));
}

#[test]
fn comparisons_of_numbers_that_are_given_are_exact() {
    let x = Tensor::from_slice(&[0.5f32, 0.25, 0.75, 0.5], &[4]);
    backend("or-equal", DType::is_integral, |at, value| if at == 0 || at == 3 { 1.0 - value } else { value });
    let given = ["b = torch.ops.aten.gt.Scalar(x, 0.5)", "return (b,)"];
    assert!(matches!(verdict(&given, &x, "or-equal"), Verdict::Fail(_)));
    let moved = ["n = torch.ops.aten.neg.default(x)", "b = torch.ops.aten.gt.Scalar(n, -0.5)", "return (b,)"];
    assert!(matches!(verdict(&moved, &x, "or-equal"), Verdict::Fail(_)), "nothing was rounded on the way");
    let rounded = [
        "e = torch.ops.aten.exp.default(x)",
        "l = torch.ops.aten.log.default(e)",
        "b = torch.ops.aten.gt.Scalar(l, 0.5)",
        "return (b,)",
    ];
    assert!(matches!(verdict(&rounded, &x, "or-equal"), Verdict::Noise | Verdict::Pass), "that is rounded");
}

#[test]
fn numbers_that_move_together_do_not_tip() {
    let body = [
        "a = torch.ops.aten.exp.default(x)",
        "m = torch.ops.aten.amax.default(a, [0], True)",
        "b = torch.ops.aten.eq.Tensor(a, m)",
        "return (b,)",
    ];
    let x = Tensor::from_slice(&[0.3f32, 0.9, 0.1, -0.4], &[4]);
    backend("no-maximum", DType::is_integral, |_, _| 0.0);
    assert!(matches!(verdict(&body, &x, "no-maximum"), Verdict::Fail(_)));
}

#[test]
fn references_that_differ_by_an_index_that_tips_do_not_excuse_a_wrong_backend() {
    // Torch itself picks the other place, as it may; the backend is wrong in its numbers.
    backend("torch:eager", DType::is_integral, |at, place| if at == 0 { 1.0 } else { place });
    backend("torch:wrong-numbers", DType::is_float, |_, value| value + 1.0);
    backend("torch:fine", DType::is_integral, |at, place| if at == 0 { 1.0 } else { place });
    let body = [POOL[0], POOL[1], POOL[2], "return (a, i)"];
    let found = verdict(&body, &windows(), "torch:wrong-numbers");
    assert!(matches!(found, Verdict::Fail(_)), "{found:?}");
    assert_eq!(verdict(&body, &windows(), "torch:fine"), Verdict::Noise);
    // A reference with a place that no rounding explains is in doubt.
    backend("torch:wrong-place", DType::is_integral, |at, place| if at == 1 { place + 1.0 } else { place });
    backend("torch:eager", DType::is_integral, |at, place| if at == 1 { place + 1.0 } else { place });
    assert!(matches!(verdict(&body, &windows(), "torch:wrong-place"), Verdict::Invalid(_)));
}

/// The second element is one that rounding of `exp` and `log` moves across 0.5, the others are far from it.
fn edge() -> Tensor {
    let near = f32::from_bits(0.5f32.to_bits() + 1);
    Tensor::from_slice(&[0.25f32, near, 0.75, 0.9], &[4])
}

/// `x` once more, after rounding.
const ROUNDED: [&str; 2] = ["e = torch.ops.aten.exp.default(x)", "l = torch.ops.aten.log.default(e)"];

#[test]
fn a_whole_result_that_follows_from_one_tip_is_noise_and_another_one_is_not() {
    let body = [
        POOL[0],
        POOL[1],
        POOL[2],
        "f = torch.ops.aten.reshape.default(i, [4])",
        "n = torch.ops.aten.arange.start_step(100.5, 1700.5, 100.0)",
        "g = torch.ops.aten.index_select.default(n, 0, f)",
        "h = torch.ops.aten.slice.Tensor(g, 0, 0, 1)",
        "w = torch.ops.aten.repeat.default(h, [256])",
        "return (w,)",
    ];
    backend("all-of-the-other", DType::is_float, |_, _| 200.5);
    backend("all-of-another", DType::is_float, |_, _| 900.5);
    assert_eq!(verdict(&body, &windows(), "all-of-the-other"), Verdict::Noise);
    assert!(matches!(verdict(&body, &windows(), "all-of-another"), Verdict::Fail(_)));
}

#[test]
fn floats_that_change_in_steps_tip_over_as_integers_do() {
    for (call, of_edge) in [
        ("torch.ops.aten.floor.default(d)", -1.0),
        ("torch.ops.aten.sign.default(d)", -1.0),
        ("torch.ops.aten.trunc.default(k)", 0.0),
        ("torch.ops.aten.remainder.Scalar(d, 1.0)", 1.0),
        ("torch.ops.aten.div.Tensor_mode(d, o, rounding_mode='floor')", -1.0),
    ] {
        let step = format!("s = {call}");
        let body = [
            ROUNDED[0],
            ROUNDED[1],
            "d = torch.ops.aten.sub.Tensor(l, 0.5)",
            "k = torch.ops.aten.add.Tensor(d, 1.0)",
            "o = torch.ops.aten.ones_like.default(d)",
            &step,
            "m = torch.ops.aten.mul.Tensor(s, 100.0)",
            "return (m,)",
        ];
        let name = format!("tipped {call}");
        let far = format!("far from an edge {call}");
        let of: fn(DType) -> bool = DType::is_float;
        if of_edge < 0.0 {
            backend(&name, of, |at, value| if at == 1 { -100.0 } else { value });
        } else if of_edge > 0.0 {
            backend(&name, of, |at, value| if at == 1 { 99.9999 } else { value });
        } else {
            backend(&name, of, |at, value| if at == 1 { 0.0 } else { value });
        }
        backend(&far, of, |at, value| if at == 2 { value - 100.0 } else { value });
        let found = verdict(&body, &edge(), &name);
        assert!(matches!(found, Verdict::Noise | Verdict::Pass), "{call}: {found:?}");
        assert!(matches!(verdict(&body, &edge(), &far), Verdict::Fail(_)), "{call}");
    }
    let given = ["s = torch.ops.aten.floor.default(x)", "return (s,)"];
    backend("one-less", DType::is_float, |at, value| if at == 1 { value - 1.0 } else { value });
    assert!(matches!(verdict(&given, &edge(), "one-less"), Verdict::Fail(_)), "nothing is rounded");
}

/// 64 times the number that `exp` and `log` lead back to itself, or next to it.
fn edges() -> Tensor {
    let values: Vec<f32> = (0..64).map(|at| 0.5 + at as f32 / 128.0).collect();
    Tensor::from_slice(&values, &[64])
}

/// Zero, but for rounding.
const CANCELS: [&str; 3] = [ROUNDED[0], ROUNDED[1], "d = torch.ops.aten.sub.Tensor(l, x)"];

#[test]
fn nans_and_infinities_that_come_and_go_by_rounding_are_noise_and_others_are_not() {
    let root = [CANCELS[0], CANCELS[1], CANCELS[2], "r = torch.ops.aten.sqrt.default(d)", "return (r,)"];
    // A number where the other side has none, and none where it has one.
    backend("other-nans", DType::is_float, |at, value| match at {
        3 | 9 | 20 if value.is_nan() => 1e-4,
        3 | 9 | 20 => f64::NAN,
        _ => value,
    });
    backend("nan-throughout", DType::is_float, |_, _| f64::NAN);
    assert_eq!(verdict(&root, &edges(), "other-nans"), Verdict::Noise);
    assert!(matches!(verdict(&root, &edges(), "nan-throughout"), Verdict::Fail(_)));
    let stable = [
        CANCELS[0],
        CANCELS[1],
        CANCELS[2],
        "s = torch.ops.aten.add.Tensor(d, 1.0)",
        "r = torch.ops.aten.sqrt.default(s)",
        "return (r,)",
    ];
    assert!(matches!(verdict(&stable, &edges(), "other-nans"), Verdict::Fail(_)), "no rounding makes a NaN of that");
    let quotient = [CANCELS[0], CANCELS[1], CANCELS[2], "r = torch.ops.aten.reciprocal.default(d)", "return (r,)"];
    backend("other-poles", DType::is_float, |at, value| match at {
        3 | 9 | 20 if value.is_infinite() => -8_388_608.0,
        3 | 9 | 20 => f64::INFINITY,
        _ => value,
    });
    assert_eq!(verdict(&quotient, &edges(), "other-poles"), Verdict::Noise);
}

/// `eager` with fewer rows in its first output.
struct Shorter {
    inner: Box<dyn Executable>,
    less: i64,
}

impl Executable for Shorter {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let outputs = self.inner.run(inputs, random, observe)?.outputs.map(&mut |tensor| {
            let rows = (tensor.shape()[0] - self.less).max(0);
            Tensor::empty(&[rows, tensor.shape()[1]], tensor.dtype()).expect("a tensor")
        });
        Ok(Forward { outputs, backward: None })
    }
}

#[test]
fn a_size_that_depends_on_rounding_is_noise_and_a_wrong_one_is_not() {
    for (name, less) in [("some-less", 3), ("none", 64)] {
        register(Backend::new(name, "for tests", move |graph, options| {
            let inner = (find("eager").expect("eager").compile)(graph, options)?;
            Ok(Box::new(Shorter { inner, less }))
        }));
    }
    let tail = ["n = torch.ops.aten.nonzero.default(g)", "return (n,)"];
    let near = [CANCELS[0], CANCELS[1], CANCELS[2], "g = torch.ops.aten.ge.Scalar(d, 0)", tail[0], tail[1]];
    assert_eq!(verdict(&near, &edges(), "some-less"), Verdict::Noise);
    let far = [CANCELS[0], CANCELS[1], "g = torch.ops.aten.gt.Scalar(l, 0.253)", tail[0], tail[1]];
    assert!(matches!(verdict(&far, &edges(), "some-less"), Verdict::Fail(_)), "no rounding changes how many there are");
    assert!(matches!(verdict(&far, &edges(), "none"), Verdict::Fail(_)));
}
