//! Integers that rounding can tip over blame nobody, however rarely they do; other integers do.

use pyrite_compiler::backend::{Backend, Executable, Forward, Observer, register};
use pyrite_compiler::find;
use pyrite_debug::{Question, judge};
use pyrite_ir::{Graph, Meta, NodeError, Value};
use pyrite_ops::registry;
use pyrite_oracle::Verdict;
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::{DType, Tensor};

/// `eager` with its outputs changed.
struct Changed {
    inner: Box<dyn Executable>,
    change: fn(usize, f64) -> f64,
    of: fn(DType) -> bool,
}

impl Executable for Changed {
    fn run(&self, inputs: Vec<Value<Tensor>>, observe: &mut Observer<'_>) -> Result<Forward, NodeError> {
        let outputs = self.inner.run(inputs, observe)?.outputs.map(&mut |tensor| {
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
