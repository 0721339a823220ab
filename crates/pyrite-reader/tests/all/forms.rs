//! What each form of text is read as.

use crate::common::{body, read, read_ok};
use pyrite_ir::inputs::InputValue;
use pyrite_ir::{Device, Value};

fn forward(signature: &str, lines: &[&str]) -> String {
    let mut text = format!("def forward(self, {signature}):\n");
    for line in lines {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Statements on `x: f32[4, 4]` and `y: f32[4, 4]`, as they are printed.
fn bound(lines: &[&str]) -> Vec<String> {
    body(&read_ok(&forward("x: \"f32[4, 4]\", y: \"f32[4, 4]\"", lines)).graph)
}

#[test]
fn overloads_are_bound_by_schema() {
    assert_eq!(
        bound(&[
            "a = torch.ops.aten.add.Tensor(x, y, alpha = 2)",
            "b = torch.ops.aten.gelu.default(a, approximate = 'tanh');  a = None",
            "return (b,)"
        ]),
        [
            "a = torch.ops.aten.add.Tensor(x, y, alpha = 2)",
            "b = torch.ops.aten.gelu.default(a, approximate = 'tanh')",
            "return (b,)"
        ]
    );
}

#[test]
fn methods_behind_comparisons_become_calls() {
    assert_eq!(
        bound(&["a = x.__eq__(y)", "b = x.__lt__(2)", "c = a.__ne__(b)", "return (c,)"]),
        ["a = x == y", "b = x < 2", "c = a != b", "return (c,)"]
    );
}

#[test]
fn defaults_are_left_out_and_positions_kept() {
    assert_eq!(
        bound(&[
            "a = torch.ops.aten.layer_norm.default(x, [4], None, None, 0.1)",
            "b = torch.ops.aten.layer_norm.default(x, [4], None, None, 1e-05)",
            "return (a, b)"
        ]),
        [
            "a = torch.ops.aten.layer_norm.default(x, [4], None, None, 0.1)",
            "b = torch.ops.aten.layer_norm.default(x, [4])",
            "return (a, b)"
        ]
    );
}

#[test]
fn python_operators_become_calls() {
    assert_eq!(
        bound(&[
            "a = x + y",
            "b = a * 2",
            "c = 1 - b",
            "d = 1 / c",
            "e = d ** 2",
            "f = -e",
            "g = f @ x",
            "h = g > 0",
            "i = 0 < g",
            "return (h, i)"
        ]),
        [
            "a = torch.ops.aten.add.Tensor(x, y)",
            "b = torch.ops.aten.mul.Tensor(a, 2)",
            "c = torch.ops.aten.rsub.Scalar(b, 1)",
            "reciprocal = torch.ops.aten.reciprocal.default(c)",
            "d = torch.ops.aten.mul.Tensor(reciprocal, 1)",
            "e = torch.ops.aten.pow.Tensor_Scalar(d, 2)",
            "f = torch.ops.aten.neg.default(e)",
            "g = torch.ops.aten.matmul.default(f, x)",
            "h = torch.ops.aten.gt.Scalar(g, 0)",
            "i = torch.ops.aten.gt.Scalar(g, 0)",
            "return (h, i)"
        ]
    );
}

#[test]
fn functions_and_methods_are_bound() {
    assert_eq!(
        bound(&[
            "a = torch.relu(x)",
            "b = torch.nn.functional.relu(a, inplace = True)",
            "c = torch._C._nn.linear(b, y)",
            "d = c.softmax(-1)",
            "e = torch.nn.functional.softmax(d, dim = -1, dtype = torch.float64)",
            "f = e.sum()",
            "g = e.sum(-1)",
            "h = torch.cat((x, y), dim = -1)",
            "i = h.float()",
            "j = i.to(torch.float64)",
            "k = j.view(2, 8)",
            "l = torch.nn.functional.dropout(k, 0.1, False)",
            "m = torch.nn.functional.batch_norm(x, None, None, y, None, True, 0.1, 1e-05)",
            "n = x.T",
            "return (f, g, l, m, n)",
        ]),
        [
            "a = torch.ops.aten.relu.default(x)",
            "b = torch.ops.aten.relu_.default(a)",
            "c = torch.ops.aten.linear.default(b, y)",
            "d = torch.ops.aten.softmax.int(c, -1)",
            "e = torch.ops.aten.softmax.int(d, -1, torch.float64)",
            "f = torch.ops.aten.sum.default(e)",
            "g = torch.ops.aten.sum.dim_IntList(e, [-1])",
            "h = torch.ops.aten.cat.default([x, y], -1)",
            "i = torch.ops.aten.to.dtype(h, torch.float32)",
            "j = torch.ops.aten.to.dtype(i, torch.float64)",
            "k = torch.ops.aten.view.default(j, [2, 8])",
            "l = torch.ops.aten.dropout.default(k, 0.1, False)",
            "m = torch.ops.aten.batch_norm.default(x, y, None, None, None, True, 0.1, 1e-05, True)",
            "n = torch.ops.aten.numpy_T.default(x)",
            "return (f, g, l, m, n)"
        ]
    );
}

#[test]
fn in_place_operators_write() {
    assert_eq!(
        bound(&["z = x * y", "z += 1;  z_1 = z;  z = None", "w = z_1 + x", "return (w,)"]),
        [
            "z = torch.ops.aten.mul.Tensor(x, y)",
            "z_1 = torch.ops.aten.add_.Tensor(z, 1)",
            "w = torch.ops.aten.add.Tensor(z_1, x)",
            "return (w,)"
        ]
    );
}

#[test]
fn indices_become_views() {
    assert_eq!(
        bound(&[
            "a = x[0]",
            "b = x[(Ellipsis, None, slice(1, 3, None))]",
            "c = x[:, 1:3]",
            "d = x[[0, 1]]",
            "x[0] = 1;  setitem = x",
            "x[1] = a;  setitem_1 = x",
            "return (a, b, c, d)",
        ]),
        [
            "a = torch.ops.aten.select.int(x, 0, 0)",
            "unsqueeze = torch.ops.aten.unsqueeze.default(x, 1)",
            "b = torch.ops.aten.slice.Tensor(unsqueeze, 2, 1, 3)",
            "c = torch.ops.aten.slice.Tensor(x, 1, 1, 3)",
            "_tensor_constant0 = self._tensor_constant0",
            "lift_fresh_copy = torch.ops.aten.lift_fresh_copy.default(_tensor_constant0)",
            "d = torch.ops.aten.index.Tensor(x, [lift_fresh_copy])",
            "select = torch.ops.aten.select.int(x, 0, 0)",
            "fill_ = torch.ops.aten.fill_.Scalar(select, 1)",
            "select_1 = torch.ops.aten.select.int(x, 0, 1)",
            "copy_ = torch.ops.aten.copy_.default(select_1, a)",
            "return (a, b, c, d)"
        ]
    );
}

#[test]
fn known_sizes_are_numbers() {
    assert_eq!(
        bound(&["n = x.shape[0] * 2", "size = x.size()", "a = y.view(n // 4, x.size(-1) * 2)", "return (a, size[1])"]),
        ["a = torch.ops.aten.view.default(y, [2, 8])", "return (a, 4)"]
    );
}

#[test]
fn items_of_lists_are_picked() {
    assert_eq!(
        bound(&["split = x.split(2, -1)", "a, b = split", "c = split[-1]", "return (a, b, c)"]),
        [
            "split = torch.ops.aten.split.Tensor(x, 2, -1)",
            "a = split[0]",
            "b = split[1]",
            "c = split[-1]",
            "return (a, b, c)"
        ]
    );
}

#[test]
fn symbolic_sizes_are_nodes() {
    let text = forward(
        "s0: \"Sym(s0)\", x: \"f32[s0, 4]\"",
        &["n = s0 * 2", "m = x.size(0)", "a = torch.arange(m, device = device(type='cpu'))", "return (a, n)"],
    );
    let outcome = read_ok(&text);
    assert_eq!(
        body(&outcome.graph),
        [
            "n = s0 * 2",
            "m = torch.ops.aten.sym_size.int(x, 0)",
            "a = torch.ops.aten.arange.default(m, device = device(type='cpu'))",
            "return (a, n)"
        ]
    );
    let n = outcome.graph.find("n").unwrap();
    assert!(matches!(&outcome.graph.node(n).meta, Some(Value::Int(v)) if v.to_string() == "2*s0"));
}

#[test]
fn what_is_unknown_is_kept() {
    let text = forward(
        "x: \"f32[4]\"",
        &[
            "a = torch.ops.mylib.magic.default(x, [1, 2.5], mode = 'it\\'s', flag = None)",
            "b: \"f32[2, 2]\" = torch.special.unheard(a, float('inf'))",
            "c = b.strange(1j)",
            "_set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None",
            "return (c,)",
        ],
    );
    let outcome = read_ok(&text);
    assert_eq!(
        body(&outcome.graph),
        [
            "a = torch.ops.mylib.magic.default(x, [1, 2.5], mode = \"it's\", flag = None)",
            "b = torch.special.unheard(a, float('inf'))",
            "c = torch.Tensor.strange(b, complex(0.0, 1.0))",
            "_set_grad_enabled = torch._C._set_grad_enabled(False)",
            "return (c,)"
        ]
    );
    assert_eq!(outcome.notes.iter().filter(|n| n.code.name() == "reader::unknown-operator").count(), 4);
}

#[test]
fn nested_graphs_are_read_from_either_form() {
    let repro = "
class true_graph_0_0(torch.nn.Module):
    def forward(self, a):
        sin = torch.ops.aten.sin.default(a);  a = None
        return (sin,)

class false_graph_0_1(torch.nn.Module):
    def forward(self, a):
        cos = torch.ops.aten.cos.default(a);  a = None
        return (cos,)

class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.true_graph_0 = true_graph_0_0()
        self.false_graph_0 = false_graph_0_1()

    def forward(self, p: \"b8[]\", x: \"f32[3]\"):
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,));  p = true_graph_0 = None
        getitem = cond[0];  cond = None
        return (getitem,)
";
    let readable = "
class <lambda>(torch.nn.Module):
    def forward(self, p: \"b8[]\", x: \"f32[3]\"):
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,))
        getitem: \"f32[3]\" = cond[0];  cond = None
        return (getitem,)

    class true_graph_0(torch.nn.Module):
        def forward(self, a: \"f32[3]\"):
            sin: \"f32[3]\" = torch.ops.aten.sin.default(a);  a = None
            return (sin,)

    class false_graph_0(torch.nn.Module):
        def forward(self, a: \"f32[3]\"):
            cos: \"f32[3]\" = torch.ops.aten.cos.default(a);  a = None
            return (cos,)
";
    let (a, b) = (read_ok(repro), read_ok(readable));
    assert!(a.graph == b.graph);
    let item = a.graph.find("getitem").unwrap();
    assert!(matches!(&a.graph.node(item).meta, Some(Value::Tensor(m)) if m.shape.len() == 1));
}

#[test]
fn constants_keep_every_bit() {
    let text = "
class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('a', tensor([3., 0.1, inf, -0.]))
        self.register_buffer('b', torch.tensor([[1, 2], [3, 4]], dtype=torch.int16))
        self.register_buffer('c', tensor(1.5, dtype=torch.bfloat16))
        self.register_buffer('d', tensor([], size=(0, 3)))
        self.register_buffer('e', tensor([True, False]))
        self.w = torch.nn.Parameter(torch.randn([2, 3], dtype=torch.float32))
    def forward(self):
        a = self.a
        b = self.b
        c = self.c
        d = self.d
        e = self.e
        w = self.w
        return (a, b, c, d, e, w)
";
    let graph = read_ok(text).graph;
    let again = read(&pyrite_ir::print::print(&graph, &pyrite_ir::print::PrintOptions::default())).unwrap().graph;
    for (name, tensor) in graph.constants() {
        let other = &again.constants()[name];
        assert_eq!(tensor.dtype(), other.dtype(), "{name}");
        assert_eq!(tensor.shape(), other.shape(), "{name}");
        let bits = |t: &pyrite_tensor::Tensor| t.to_f64s().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(tensor), bits(other), "{name}");
    }
    assert_eq!(graph.constants()["d"].shape(), [0, 3]);
}

#[test]
fn modules_become_calls_with_constants() {
    let text = "
from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.L__self___fc = Linear(in_features=4, out_features=8, bias=True)
        self.L__self___act = GELU(approximate='tanh')
        self.L__self___odd = LSTM(4, 8)

    def forward(self, L_x_ : torch.Tensor):
        l_x_ = L_x_
        l__self___fc = self.L__self___fc(l_x_);  l_x_ = None
        l__self___act = self.L__self___act(l__self___fc)
        odd = self.L__self___odd(l__self___act)
        return (odd,)

def load_args(reader):
    buf0 = reader.storage(None, 32)
    reader.tensor(buf0, (2, 4), is_leaf=True)  # L_x_
load_args._version = 0
mod = Repro()
";
    let outcome = read_ok(text);
    assert_eq!(
        body(&outcome.graph),
        [
            "L__self___fc_weight = self.L__self___fc_weight",
            "L__self___fc_bias = self.L__self___fc_bias",
            "l__self___fc = torch.ops.aten.linear.default(L_x_, L__self___fc_weight, L__self___fc_bias)",
            "l__self___act = torch.ops.aten.gelu.default(l__self___fc, approximate = 'tanh')",
            "odd = self.L__self___odd(l__self___act)",
            "return (odd,)"
        ]
    );
}

#[test]
fn inputs_come_from_load_args() {
    let text = "
s77 = 5
class Repro(torch.nn.Module):
    def forward(self, s77, x, y, z, c):
        add = torch.ops.aten.add.Tensor(x, y)
        return (add,)

def load_args(reader):
    reader.symint(5, expr='s77')  # s77
    buf0 = reader.storage('0f00', 16*s77, device=device(type='cuda', index=0), dtype_hint=torch.int64)
    reader.tensor(buf0, (s77, 2), dtype=torch.int64, is_leaf=True)  # x
    reader.tensor(buf0, (s77, 2), (1, s77), dtype=torch.int64, requires_grad=True)  # y
    buf1 = reader.storage(None, 96)
    reader.tensor(buf1, (2, 3), (8, 2), storage_offset=1, is_leaf=True)  # z
    reader.const('c')  # c, filtered out during compilation
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=True, command='minify', save_dir='x', tracing_mode='symbolic', check_str=None)
";
    let outcome = read_ok(text);
    let inputs = outcome.inputs.as_ref().unwrap();
    assert_eq!(inputs.storages[0].name.as_deref(), Some("0f00"));
    assert_eq!(inputs.storages[0].nbytes.hint(), Some(80));
    assert_eq!(inputs.storages[0].device, Device::from_name("cuda:0"));
    assert_eq!(inputs.args.len(), 5);
    assert_eq!(inputs.args[3].name.as_deref(), Some("z"));
    assert!(matches!(&inputs.args[3].value, InputValue::Tensor(t) if t.offset == 1 && t.stride[0] == 8));
    assert_eq!(inputs.args[4].value, InputValue::None);
    assert_eq!((outcome.get("command"), outcome.get("accuracy")), (Some("minify"), Some("True")));
    let metas: Vec<_> = outcome.graph.placeholders().map(|(_, n)| n.meta.clone().unwrap()).collect();
    let (Value::Tensor(x), Value::Tensor(y)) = (&metas[1], &metas[2]) else { panic!("{metas:?}") };
    assert!(x.storage == y.storage && y.requires_grad && x.shape[0].to_string() == "s77");

    let info = pyrite_ir::print::ReproInfo {
        metadata: vec![("backend".into(), "torch:inductor".into()), ("seed".into(), "7".into())],
        inputs: outcome.inputs.clone(),
        main: None,
    };
    let printed = pyrite_ir::print::print_repro(&outcome.graph, &info, &pyrite_ir::print::PrintOptions::default());
    let again = read(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert!(again.graph == outcome.graph);
    assert_eq!(again.inputs, outcome.inputs);
    assert_eq!((again.get("backend"), again.get("seed")), (Some("torch:inductor"), Some("7")));
}

#[test]
fn stacks_are_kept_and_printed_when_asked_for() {
    let text = "
class GraphModule(torch.nn.Module):
    def forward(self, x: \"f32[3]\"):
        # File: /a/b.py:14 in forward, code: y = x.sin()
        sin: \"f32[3]\" = torch.ops.aten.sin.default(x);  x = None

        # File: /a/b.py:15 in forward, code: return y.cos()
        cos: \"f32[3]\" = torch.ops.aten.cos.default(sin);  sin = None
        return (cos,)
";
    let graph = read_ok(text).graph;
    let sin = graph.find("sin").unwrap();
    assert_eq!(graph.node(sin).stack.as_deref(), Some("File: /a/b.py:14 in forward, code: y = x.sin()"));
    assert_eq!(graph.node(sin).span.map(|s| s.line), Some(5));
    let options = pyrite_ir::print::PrintOptions { stacks: true, ..Default::default() };
    let printed = pyrite_ir::print::print(&graph, &options);
    let again = read(&printed).unwrap().graph;
    assert_eq!(pyrite_ir::print::print(&again, &options), printed);
}

#[test]
fn annotations_that_disagree_are_noted() {
    let text = forward(
        "x: \"f32[3, 4][1, 3]cpu\"",
        &["a: \"f32[4, 3][3, 1]cpu\" = torch.ops.aten.sin.default(x)", "return (a,)"],
    );
    let outcome = read(&text).unwrap();
    let note = &outcome.notes[0];
    assert_eq!((note.code.name(), note.location.line), ("reader::annotation-differs", Some(2)));
}

/// The operators that a text calls, in order.
fn called(text: &str) -> Vec<String> {
    let outcome = pyrite_reader::read_text(text, None, pyrite_ops::registry(), &pyrite_reader::ReadOptions::default())
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let name = |node: &pyrite_ir::Node| match &node.kind {
        pyrite_ir::Kind::Call(target) => Some(target.name().to_owned()),
        _ => None,
    };
    outcome.graph.nodes().filter_map(|(_, node)| name(node)).collect()
}

#[test]
fn the_body_of_a_checkpointed_function_stands_in_its_place() {
    for call in ["torch.ops.higher_order.tag_activation_checkpoint(body, x, use_reentrant = False)", "self.body(x)"] {
        let text = format!(
            "class Repro(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = Body()\n\n    \
             def forward(self, x : \"f32[4]\"):\n        body = self.body\n        out = {call}\n        y = out[0]\n        \
             z = torch.ops.aten.cos.default(y)\n        return (z,)\n\nclass Body(torch.nn.Module):\n    def forward(self, x):\n        \
             s = torch.ops.aten.sin.default(x)\n        r = torch.ops.aten.relu.default(s)\n        return (r,)\n"
        );
        assert_eq!(called(&text), ["aten.sin.default", "aten.relu.default", "aten.cos.default"], "{call}");
    }
}

#[test]
fn what_inductor_draws_is_drawn_by_operators() {
    let text = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[4]\"):\n        \
        seeds = torch.ops.prims.inductor_seeds.default(1, device(type='cpu'))\n        \
        seed = torch.ops.prims.inductor_lookup_seed.default(seeds, 0)\n        \
        noise = torch.ops.prims.inductor_random.default([4], seed, 'rand')\n        \
        y = torch.ops.aten.mul.Tensor(x, noise)\n        return (y,)\n";
    let names = called(text);
    assert_eq!(names.last().map(String::as_str), Some("aten.mul.Tensor"));
    assert!(
        names.iter().any(|name| name == "aten.rand.default") && names.iter().all(|name| name.starts_with("aten.")),
        "{names:?}"
    );
}

#[test]
fn an_operator_that_saves_or_restores_the_generator_is_the_operator() {
    let text = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[4]\", state):\n        \
        saved = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.rand.default, [4])\n        \
        kept = saved[0]\n        first = saved[1]\n        \
        second = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.rand.default, [4])\n        \
        y = torch.ops.aten.mul.Tensor(first, second)\n        return (y, kept)\n";
    let names = called(text);
    assert_eq!(names.iter().filter(|name| *name == "aten.rand.default").count(), 2, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("rng_state")), "{names:?}");
}

#[test]
fn devices_map_to_the_cpu_where_that_is_asked_for() {
    let text = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[4][1]cuda:0\"):\n        \
        a = torch.zeros([4], device = 'cuda:0')\n        y = torch.ops.aten.add.Tensor(x, a)\n        return (y,)\n";
    let options = pyrite_reader::ReadOptions { devices: pyrite_reader::Devices::Cpu, ..Default::default() };
    let moved =
        pyrite_reader::read_text(text, None, pyrite_ops::registry(), &options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(moved.notes.iter().filter(|note| note.message.contains("runs on the CPU")).count(), 1);
    let printed = pyrite_ir::print::print(&moved.graph, &pyrite_ir::print::PrintOptions::default());
    assert!(!printed.contains("cuda"), "{printed}");
}
