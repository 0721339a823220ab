//! Properties over many inputs: random graphs survive a round trip, damaged texts never panic, time grows linearly.

use crate::common;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::common::{read, registry, round_trip};
use proptest::prelude::*;
use pyrite_ir::{Builder, Graph, Meta, NodeId, Value};
use pyrite_tensor::{DType, Tensor};

/// A graph from numbers: each picks an operator and its operands among the values so far.
fn graph(choices: &[(u8, u16, u16, i64)]) -> Graph {
    let registry = registry();
    let mut builder = Builder::new();
    let meta = || Some(Value::Tensor(Meta::of_shape(&[3, 3], DType::F32)));
    let mut values: Vec<NodeId> = ["x", "y", "lambda_"].iter().map(|name| builder.placeholder(name, meta())).collect();
    for (index, (choice, a, b, number)) in choices.iter().enumerate() {
        let pick = |n: &u16| Value::Tensor(values[*n as usize % values.len()]);
        let mut call = |name: &str, args: &[Value<NodeId>]| {
            let op = registry.get(name).unwrap();
            let bound = op.schema.bind_in_order(args).unwrap();
            builder.call(op, bound)
        };
        // NaN is unlike itself, so graphs with one are never equal.
        let float =
            Some(f64::from_bits(number.unsigned_abs() ^ 0x3ff0_0000_0000_0000)).filter(|v| !v.is_nan()).unwrap_or(0.0);
        let id = match choice % 10 {
            0 => call("aten.add.Tensor", &[pick(a), pick(b), (*number).into()]),
            1 => call("aten.mul.Tensor", &[pick(a), Value::Float(float)]),
            2 => call("aten.mm.default", &[pick(a), pick(b)]),
            3 => call("aten.gelu.default", &[pick(a), Value::from(if number % 2 == 0 { "tanh" } else { "none" })]),
            4 => call(
                "aten.layer_norm.default",
                &[pick(a), vec![3i64].into(), Value::None, pick(b), Value::Float(float)],
            ),
            5 => call("aten.cat.default", &[Value::List(vec![pick(a), pick(b)]), (*number % 2).into()]),
            6 => {
                let list = call("aten.split.Tensor", &[pick(a), Value::Int(1.into())]);
                builder.get_item(list, number.rem_euclid(3));
                continue;
            }
            7 => {
                call("aten.to.dtype", &[pick(a), DType::ALL[*a as usize % DType::ALL.len()].into(), Value::Bool(true)])
            }
            8 => builder.constant(&format!("c{index}"), Tensor::from_slice(&[float as f32; 9], &[3, 3])),
            _ => {
                let name = builder.unique_name("opaque");
                let target = pyrite_ir::Target::Opaque("torch.ops.mylib.op.default".into());
                let text: String =
                    (0..b % 6).map(|i| char::from_u32(u32::from(a.wrapping_mul(i))).unwrap_or('\\')).collect();
                let args = vec![
                    pick(a),
                    Value::Str(text.as_str().into()),
                    Value::List(vec![Value::None, Value::Float(float)]),
                ];
                let mut node = pyrite_ir::Node::new(name, pyrite_ir::Kind::Call(target), args);
                node.kwargs.push(("k".into(), Value::Slice(Box::new([Value::None, (*number).into(), Value::None]))));
                builder.push(node)
            }
        };
        values.push(id);
    }
    let last = values.iter().rev().take(3).map(|id| Value::Tensor(*id)).collect();
    builder.output(Value::List(last));
    builder.finish()
}

const VALID: &str = "
class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('c', torch.tensor([1.5, float('inf')], dtype=torch.float32))
    def forward(self, s0: \"Sym(s0)\", x: \"f32[s0, 4][4, 1]cpu\", y: \"f32[4, 4]\"):
        # File: a.py:1 in f, code: z
        add: \"f32[s0, 4]\" = torch.ops.aten.add.Tensor(x, 2, alpha = -1);  x = None
        c = self.c
        z = add @ y
        z += 1;  z_1 = z;  z = None
        w = z_1[(Ellipsis, None, slice(1, 3, None))]
        t = torch.tensor([3, 4, 5.0])
        d = torch.nn.functional.dropout(w, 0.5, training = True)
        n = s0 * 2
        return (d, t, c, n, z_1[0].sum(-1))

def load_args(reader):
    reader.symint(5, expr='s0')  # s0
    buf0 = reader.storage('ab', 16*s0, dtype_hint=torch.int64)
    reader.tensor(buf0, (s0, 4), is_leaf=True)  # x
    buf1 = reader.storage(None, 64, device=device(type='cpu'))
    reader.tensor(buf1, (4, 4), (1, 4), requires_grad=True)  # y
load_args._version = 0
";

const SCRAPS: [&str; 24] = [
    "(",
    ")",
    "[",
    "]",
    "\"",
    "'",
    ",",
    "=",
    ":",
    ".",
    "-",
    "*",
    "None",
    "self",
    "x",
    "999999999999999999999",
    "1e999",
    "\n",
    "\n    ",
    "f32[",
    "torch.",
    "lambda",
    "\u{7f}",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs_survive_a_round_trip(choices in prop::collection::vec(any::<(u8, u16, u16, i64)>(), 0..40)) {
        let mut built = graph(&choices);
        // Metadata comes from reading, so the second round has it and the first has not.
        let text = pyrite_ir::print::print(&built, &pyrite_ir::print::PrintOptions::default());
        let read = read(&text).unwrap_or_else(|e| panic!("{e}\n{text}")).graph;
        prop_assert!(read == built, "{}", text);
        built.env = read.env.clone();
        round_trip(&read);
    }

    #[test]
    fn damaged_texts_never_panic(cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, 0usize..24), 1..6)) {
        let mut text = VALID.to_owned();
        for (at, length, scrap) in cuts {
            let start = text.floor_char_boundary(at.index(text.len() + 1));
            let end = text.floor_char_boundary((start + length).min(text.len()));
            text.replace_range(start..end.max(start), SCRAPS[scrap]);
        }
        let _ = read(&text);
    }

    #[test]
    fn truncated_texts_never_panic(at in any::<prop::sample::Index>()) {
        let end = VALID.floor_char_boundary(at.index(VALID.len()));
        let _ = read(&VALID[..end]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
        let _ = read(&text);
        let _ = read(&format!("def forward(self, x: \"f32[2]\"):\n    a = {text}\n    return a\n"));
    }
}

#[test]
fn the_valid_text_is_valid() {
    common::read_ok(VALID);
}

/// A chain of calls as FX prints it.
fn chain(nodes: usize) -> String {
    let mut text =
        String::from("class Repro(torch.nn.Module):\n    def forward(self, v0: \"f32[8, 8]\", w: \"f32[8, 8]\"):\n");
    for i in 1..=nodes {
        let p = i - 1;
        let call = match i % 4 {
            0 => format!("torch.ops.aten.add.Tensor(v{p}, w, alpha = 2)"),
            1 => format!("torch.ops.aten.mul.Tensor(v{p}, 0.5)"),
            2 => format!("torch.ops.aten.gelu.default(v{p}, approximate = 'tanh')"),
            _ => format!("torch.ops.aten.mm.default(v{p}, w)"),
        };
        let _ = writeln!(text, "        v{i}: \"f32[8, 8][8, 1]cpu\" = {call};  v{p} = None");
    }
    let _ = writeln!(text, "        return (v{nodes},)");
    text
}

fn fastest(text: &str) -> Duration {
    (0..3)
        .map(|_| {
            let start = Instant::now();
            read(text).unwrap();
            start.elapsed()
        })
        .min()
        .unwrap()
}

#[test]
fn time_grows_with_the_number_of_nodes_and_no_faster() {
    let (small, large) = (fastest(&chain(5_000)), fastest(&chain(50_000)));
    println!("5,000 nodes: {small:?}; 50,000 nodes: {large:?}");
    // Ten times the nodes; the rest is room for caches and for other programs on the machine.
    assert!(large < small * 25, "{small:?} for 5,000 nodes, {large:?} for 50,000");
}
