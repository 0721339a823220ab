//! Every kind of bad input is a diagnostic with a code and a line, never a panic.

use std::path::Path;

use crate::common::{read, registry};
use pyrite_reader::{ReadOptions, read_bytes, read_path};

/// Reads a bad text and returns the code and line of the first error.
#[track_caller]
fn error(text: &str) -> (&'static str, Option<u32>) {
    let errors = read(text).expect_err(text);
    let first = errors.iter().next().unwrap();
    assert!(first.is_error());
    assert!(!first.hints.is_empty() || first.cause.is_some(), "no remedy: {first}");
    assert_eq!(first.location.file.as_deref(), Some(Path::new("test.py")));
    (first.code.name(), first.location.line)
}

fn forward(line: &str) -> String {
    format!("def forward(self, x: \"f32[4]\"):\n    {line}\n    return (x,)\n")
}

#[test]
fn broken_python_is_located() {
    assert_eq!(error("def forward(self, x):\n    a = (x\n"), ("reader::syntax", Some(3)));
    assert_eq!(error("def forward(self, x):\n    a = torch.ops.aten.sin.defau"), ("reader::unknown-name", Some(2)));
    assert_eq!(error("class A:\n  x = = 1\n"), ("reader::syntax", Some(2)));
    assert_eq!(error(""), ("reader::no-graph", None));
    assert_eq!(error("import torch\n"), ("reader::no-graph", None));
    assert_eq!(error("\0"), ("reader::syntax", Some(1)));
}

/// So torch 2.11 prints nested graphs in its dumps.
#[test]
fn a_nested_graph_without_a_body_is_told() {
    for printed in ["GraphModule()", "<lambda>()"] {
        for used in ["torch.ops.higher_order.invoke_subgraph(self.body, 'body', x)", "self.body(x)"] {
            let init = format!("    def __init__(self):\n        super().__init__()\n        self.body = {printed}\n");
            let forward = format!("    def forward(self, x: \"f32[4]\"):\n        a = {used}\n        return (a,)\n");
            let text = format!("class Repro(torch.nn.Module):\n{init}{forward}");
            assert_eq!(error(&text), ("reader::lost-body", Some(4)), "{text}");
        }
    }
}

#[test]
fn files_that_are_no_text_are_refused() {
    let errors =
        read_bytes(b"import torch\nx = '\xff'\n", Some(Path::new("a.py")), registry(), &ReadOptions::default())
            .unwrap_err();
    let first = errors.iter().next().unwrap();
    assert_eq!((first.code.name(), first.location.line), ("reader::not-utf8", Some(2)));
    let errors = read_path(Path::new("no/such/file.py"), registry(), &ReadOptions::default()).unwrap_err();
    assert_eq!(errors.iter().next().unwrap().code.name(), "reader::io");
    let errors = read_path(Path::new("."), registry(), &ReadOptions::default()).unwrap_err();
    assert_eq!(errors.iter().next().unwrap().code.name(), "reader::io");
}

#[test]
fn names_must_be_defined_once_and_before_use() {
    assert_eq!(error(&forward("a = torch.ops.aten.sin.default(y)")), ("reader::unknown-name", Some(2)));
    let cyclic = "def forward(self, x):\n    a = torch.ops.aten.sin.default(b)\n    b = torch.ops.aten.sin.default(a)\n    return (b,)\n";
    assert_eq!(error(cyclic), ("reader::unknown-name", Some(2)));
    let twice = "def forward(self, x):\n    a = torch.relu(x)\n    a = torch.relu(x)\n    return (a,)\n";
    assert_eq!(error(twice), ("reader::duplicate-name", Some(3)));
    let inputs = read("def forward(self, x, x):\n    return (x,)\n").unwrap_err();
    assert!(inputs.iter().next().unwrap().code.name().starts_with("reader::"));
}

#[test]
fn members_that_define_themselves_are_refused() {
    let parameter = "class Repro(torch.nn.Module):\n    def __init__(self):\n        self.register_parameter('w', torch.nn.Parameter(torch.tensor([1.0, self.w])))\n    def forward(self, x: \"f32[2]\"):\n        w = self.w\n        return (x * w,)\n";
    assert_eq!(error(parameter), ("reader::unknown-name", Some(3)));
    let module = "class Repro(torch.nn.Module):\n    def __init__(self):\n        self.m = torch.nn.Linear(self.m(2), 2)\n    def forward(self, x: \"f32[2]\"):\n        return (self.m(x),)\n";
    assert_eq!(error(module), ("reader::unknown-name", Some(3)));
}

#[test]
fn arguments_must_fit_the_schema() {
    assert_eq!(error(&forward("a = torch.ops.aten.sin.default(x, x)")), ("reader::wrong-arguments", Some(2)));
    assert_eq!(error(&forward("a = torch.ops.aten.sin.default()")), ("reader::wrong-arguments", Some(2)));
    assert_eq!(error(&forward("a = torch.ops.aten.sin.default(x, y = 1)")), ("reader::wrong-arguments", Some(2)));
    assert_eq!(error(&forward("a = torch.ops.aten.sin.default('x')")), ("reader::wrong-arguments", Some(2)));
    assert_eq!(error(&forward("a = torch.relu(x, x, x)")), ("reader::wrong-arguments", Some(2)));
    assert_eq!(error(&forward("a = torch.nn.functional.dropout()")), ("reader::wrong-arguments", Some(2)));
    assert_eq!(error(&forward("a = torch.ops.aten.mm.default(x, x)")), ("reader::wrong-call", Some(2)));
    assert_eq!(error(&forward("a = torch.ops.aten.split.Tensor(x, 2)[5]")), ("reader::item-out-of-range", Some(2)));
}

#[test]
fn types_and_sizes_must_exist() {
    assert_eq!(error("def forward(self, x: \"f33[4]\"):\n    return (x,)\n"), ("reader::unknown-dtype", Some(1)));
    assert_eq!(error("def forward(self, x: \"f32[4\"):\n    return (x,)\n"), ("reader::bad-annotation", Some(1)));
    assert_eq!(
        error("def forward(self,\n  x: \"f32[99999999999999999999]\"):\n    return (x,)\n"),
        ("reader::bad-size", Some(2))
    );
    assert_eq!(
        error("def forward(self, x: \"f32[4000000000, 4000000000]\"):\n    return (x,)\n"),
        ("reader::bad-size", Some(1))
    );
    assert_eq!(error("def forward(self, x: \"f32[-4]\"):\n    return (x,)\n"), ("reader::bad-size", Some(1)));
    assert_eq!(error(&forward("a = x.to(torch.float7)")), ("reader::unknown-dtype", Some(2)));
    assert_eq!(error(&forward("a = x + 99999999999999999999")), ("reader::bad-size", Some(2)));
}

#[test]
fn python_that_is_no_graph_is_refused() {
    for line in [
        "if x: pass",
        "for i in x: pass",
        "import os",
        "a = [i for i in x]",
        "a = lambda: x",
        "a = {1: x}",
        "x.y = 1",
        "a = f(*x)",
        "a = torch.relu(**x)",
        "a = x < 1 < 2",
        "a = x()()",
        "global x",
        "with x: pass",
        "a = f'{x}'",
    ] {
        let (code, line_number) = error(&forward(line));
        assert_eq!((code, line_number), ("reader::unsupported-python", Some(2)), "{line}");
    }
}

#[test]
fn several_errors_are_collected_up_to_a_limit() {
    let mut text = String::from("def forward(self, x):\n");
    for i in 0..50 {
        text.push_str(&format!("    a{i} = torch.ops.aten.sin.default(b{i})\n"));
    }
    text.push_str("    return (a0,)\n");
    assert_eq!(read(&text).unwrap_err().len(), 20);
    // A name that could not be read is not reported again where it is used.
    let text = "def forward(self, x):\n    a = torch.relu(y)\n    b = torch.relu(a)\n    return (b,)\n";
    assert_eq!(read(text).unwrap_err().len(), 1);
}

#[test]
fn functions_that_reach_beyond_the_graph_are_refused() {
    for call in [
        "torch.load('x')",
        "torch.hub.load('a/b', 'c')",
        "torch.ops.load_library('x.so')",
        "torch.ops.load_library.__call__('x.so')",
        "torch.utils.cpp_extension.load('x')",
        "torch._import_dotted_name('os.system')",
        "torch.Tensor.__reduce_ex__(x, 2)",
        "torch.relu.__globals__(x)",
        "torch.os.system('true')",
        "torch._C._jit_pass(x)",
        "torch.nn.functional.torch.load('x')",
        "os.system('true')",
        "eval('1')",
        "__import__('os')",
        "math.__loader__.load_module('os')",
        "x.__class__('y')",
        "torch.ops.aten.café(x)",
    ] {
        let (code, line) = error(&forward(&format!("a = {call}")));
        assert_eq!((code, line), ("reader::unknown-operator", Some(2)), "{call}");
    }
}

#[test]
fn nothing_in_a_text_can_end_the_place_it_is_printed_in() {
    for line in [
        "a = getattr(torch.ops.aten.sin, 'x); print(1')(x)",
        "a = getattr(self, \"b'); print(1\")(x)",
        "a = getattr(self, \"b'); print(1\")",
    ] {
        assert!(read(&forward(line)).is_err(), "{line}");
    }
    let text = forward("a = torch.arange(4, device = 'cpu\"\\n    print(1)')");
    let graph = read(&text).unwrap().graph;
    let printed = pyrite_ir::print::print(&graph, &pyrite_ir::print::PrintOptions::default());
    assert!(!printed.contains("\n    print"), "{printed}");
    assert!(read(&printed).unwrap().graph == graph);
}

#[test]
fn unknown_operators_can_be_refused() {
    let text = forward("a = torch.ops.aten.snii.default(x)");
    let options = ReadOptions { unknown: pyrite_reader::Unknown::Refuse, ..ReadOptions::default() };
    let errors = pyrite_reader::read_text(&text, None, registry(), &options).unwrap_err();
    let first = errors.iter().next().unwrap();
    assert_eq!((first.code.name(), first.location.line), ("reader::unknown-operator", Some(2)));
    let text = forward("a = torch.ops.aten.sni.default(x)");
    let outcome = read(&text).unwrap();
    assert_eq!(outcome.notes[0].hints, ["did you mean `aten.sin.default`?"]);
}

#[test]
fn load_args_is_checked() {
    let file = |body: &str| {
        format!("class Repro:\n    def forward(self, x):\n        return (x,)\n\ndef load_args(reader):\n{body}\n")
    };
    for (body, code, line) in [
        ("    reader.tensor(buf0, (4,))", "reader::load-args", 6),
        ("    buf0 = reader.storage(None, 16)\n    reader.tensor(buf0, (5,))", "reader::bad-size", 7),
        ("    buf0 = reader.storage(None, 16)\n    reader.tensor(buf0, (2,), (9,))", "reader::bad-size", 7),
        (
            "    buf0 = reader.storage(None, 16)\n    reader.tensor(buf0, (2,), storage_offset=-1)",
            "reader::bad-size",
            7,
        ),
        ("    buf0 = reader.storage(None, 16)\n    reader.tensor(buf0, (2, 2), (1,))", "reader::load-args", 7),
        ("    buf0 = reader.storage(None, 99999999999999999999)", "reader::bad-size", 6),
        ("    buf0 = reader.storage(None, 9999999999999999)", "reader::bad-size", 6),
        ("    buf0 = reader.storage('../../etc/passwd', 16)", "reader::load-args", 6),
        (
            "    buf0 = reader.storage(None, 16)\n    reader.tensor(buf0, (4,), dtype=torch.float7)",
            "reader::unknown-dtype",
            7,
        ),
        ("    buf0 = reader.storage(None, 4611686018427387904)", "reader::bad-size", 6),
        (
            "    buf0 = reader.storage(None, 16)\n    reader.tensor(buf0, (4611686018427387904, 4611686018427387904), (0, 4))",
            "reader::bad-size",
            7,
        ),
        ("    import os", "reader::load-args", 6),
        ("    reader.explode()", "reader::load-args", 6),
        ("    pass", "reader::load-args", 2),
    ] {
        assert_eq!(error(&file(body)), (code, Some(line)), "{body}");
    }
}

#[test]
fn deep_nesting_is_refused_and_shallow_is_not() {
    let deep = |open: &str, close: &str, n: usize| {
        format!("def forward(self, x: \"f32[4]\"):\n    a = {}x{}\n    return (x,)\n", open.repeat(n), close.repeat(n))
    };
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("not ", ""),
        ("~", ""),
        ("torch.relu(", ")"),
        ("1 + ", ""),
        ("lambda: ", ""),
        ("x if x else ", ""),
        ("x.", ""),
    ] {
        assert_eq!(error(&deep(open, close, 100_000)), ("reader::too-deep", Some(2)), "{open}");
    }
    assert!(read(&deep("-", "", 90)).is_ok());
    assert!(read(&deep("torch.relu(", ")", 60)).is_ok());
    let strings = format!("def forward(self, x):\n    a = {}\n    return x\n", "f\"{".repeat(20_000));
    assert!(read(&strings).is_err());
    let nested: String = (0..3000).map(|i| format!("{}if x:\n", " ".repeat(i))).collect();
    assert!(read(&nested).is_err());
    let classes = "class A:\n  def __init__(self):\n    self.a = A()\n  def forward(self, x):\n    c = torch.ops.higher_order.cond(x, self.a, self.a, (x,))\n    return c\n";
    assert_eq!(error(classes).0, "reader::too-deep");
}

#[test]
fn constants_must_be_understood() {
    let file = |constant: &str| {
        format!(
            "class Repro:\n    def __init__(self):\n        self.c = {constant}\n    def forward(self):\n        c = self.c\n        return (c,)\n"
        )
    };
    for (constant, code) in [
        ("torch.tensor([[1, 2], [3]])", "reader::missing-constant"),
        ("torch.tensor([1, 2]).reshape([3])", "reader::bad-size"),
        ("torch.randn([4000000000, 4000000000])", "reader::bad-size"),
        ("open('x')", "reader::missing-constant"),
        ("stored('00', 16, (4,), (1,), torch.float32)", "reader::missing-constant"),
        ("stored('../x', 16, (4,), (1,), torch.float32)", "reader::missing-constant"),
        ("3", "reader::missing-constant"),
    ] {
        let (found, line) = error(&file(constant));
        assert_eq!((found, line), (code, Some(3)), "{constant}");
    }
    assert_eq!(error(&forward("a = self.nothing")), ("reader::missing-constant", Some(2)));
}
