//! The table that everything else depends on: which failures are the same bug?

use pyrite_oracle::{Class, Detail, Signature, Stage, Verdict};

fn compile(kind: &str, place: &str) -> Signature {
    Signature::new(Stage::Compile, Class::Error).raised(kind, Some(place))
}

fn wrong(class: Class) -> Signature {
    Signature::new(Stage::Forward, class)
}

fn detail(value: &str, rule: &str, magnitude: f64) -> Detail {
    Detail { value: Some(value.into()), rule: Some(rule.into()), magnitude: Some(magnitude), message: None }
}

fn said(message: &str) -> Detail {
    Detail { message: Some(message.into()), ..Detail::default() }
}

#[test]
fn pairs_of_failures_are_told_apart_or_taken_for_one() {
    let same = true;
    let other = false;
    let table: Vec<(&str, Signature, Signature, bool)> = vec![
        (
            "the same error at the same place",
            compile("CompileError", "lower_relu"),
            compile("CompileError", "lower_relu"),
            same,
        ),
        (
            "another text at the same place: sizes changed",
            compile("CompileError", "lower_relu").detailed(said("bad shape [2, 512]")),
            compile("CompileError", "lower_relu").detailed(said("bad shape [2]")),
            same,
        ),
        (
            "two errors of one function that say different things",
            compile("RuntimeError", "relu in rules.py").saying("relu of 3 dimensions is not there"),
            compile("RuntimeError", "relu in rules.py").saying("expected a float, got an int"),
            other,
        ),
        (
            "one error of a function with other sizes and names",
            compile("RuntimeError", "relu in rules.py").saying("buf12: shapes [2, 512] and (3,) of `primals_1` differ"),
            compile("RuntimeError", "relu in rules.py").saying("arg0_1: shapes [2] and (3, 1) of `x` differ"),
            same,
        ),
        (
            "an error whose text was not kept",
            compile("RuntimeError", "relu in rules.py").saying("expected a float"),
            compile("RuntimeError", "relu in rules.py"),
            same,
        ),
        (
            "the same type from another place",
            compile("CompileError", "lower_relu"),
            compile("CompileError", "lower_sum"),
            other,
        ),
        (
            "another type at the same place",
            compile("CompileError", "lower_relu"),
            compile("KeyError", "lower_relu"),
            other,
        ),
        (
            "an error while compiling and while running",
            compile("RuntimeError", "relu"),
            Signature::new(Stage::Forward, Class::Error).raised("RuntimeError", Some("relu")),
            other,
        ),
        (
            "an error and a crash",
            compile("RuntimeError", "relu"),
            Signature::new(Stage::Compile, Class::Signal(11)),
            other,
        ),
        ("two segmentation faults while running", wrong(Class::Signal(11)), wrong(Class::Signal(11)), same),
        ("a segmentation fault and an abort", wrong(Class::Signal(11)), wrong(Class::Signal(6)), other),
        ("a hang and a crash", wrong(Class::Hang), wrong(Class::Signal(11)), other),
        ("two hangs", wrong(Class::Hang), wrong(Class::Hang), same),
        ("out of memory and killed for another reason", wrong(Class::OutOfMemory), wrong(Class::Signal(9)), other),
        ("an exit without an answer and one with another code", wrong(Class::Exit(0)), wrong(Class::Exit(3)), other),
        (
            "another output is wrong",
            wrong(Class::Value).detailed(detail("output 7", "close", 0.5)),
            wrong(Class::Value).detailed(detail("output 0", "close", 0.5)),
            same,
        ),
        (
            "another numeric rule is broken",
            wrong(Class::Value).detailed(detail("output 0", "close", 0.5)),
            wrong(Class::Value).detailed(detail("output 0", "nan-position", 0.5)),
            same,
        ),
        (
            "the difference grew",
            wrong(Class::Value).detailed(detail("output 0", "close", 0.5)),
            wrong(Class::Value).detailed(detail("output 0", "close", 80.0)),
            same,
        ),
        ("values and shapes", wrong(Class::Value), wrong(Class::Shape), other),
        ("values and strides", wrong(Class::Value), wrong(Class::Stride), other),
        ("aliasing and mutation", wrong(Class::Aliasing), wrong(Class::Mutation), other),
        ("dtype and value", wrong(Class::Dtype), wrong(Class::Value), other),
        (
            "wrong outputs and wrong gradients",
            wrong(Class::Value),
            Signature::new(Stage::Backward, Class::Value),
            other,
        ),
        (
            "a guilty operator remains",
            wrong(Class::Value).guilty(["aten.relu.default", "aten.add.Tensor"]),
            wrong(Class::Value).guilty(["aten.relu.default"]),
            same,
        ),
        (
            "other operators are guilty",
            wrong(Class::Value).guilty(["aten.relu.default"]),
            wrong(Class::Value).guilty(["aten.log1p.default"]),
            other,
        ),
        (
            "who is guilty is not known of one of them",
            wrong(Class::Value).guilty(["aten.relu.default"]),
            wrong(Class::Value),
            same,
        ),
        ("garbage and an exit without an answer", wrong(Class::Garbage), wrong(Class::Exit(0)), other),
    ];
    for (name, held, found, expected) in &table {
        assert_eq!(held.holds(found), *expected, "{name}");
    }
}

#[test]
fn texts_lose_their_numbers_and_names() {
    for (text, expected) in [
        ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", "… and … shapes cannot be multiplied (… and …)"),
        ("\n  The size of tensor a (3) must match.\nmore", "The size of tensor a (…) must match."),
        ("/tmp/x1/abc.cpp:12:3: error: ‘foo’ was not declared", "… was not declared"),
        ("index -99 is out of bounds for [1, 2, 3]", "index … is out of bounds for […]"),
        ("relu is refused", "relu is refused"),
        ("it's", "it's"),
    ] {
        assert_eq!(pyrite_oracle::gist(text), expected, "{text}");
    }
}

#[test]
fn signatures_survive_being_written_down() {
    let signature =
        compile("CompileError", "lower_relu").guilty(["aten.relu.default"]).detailed(detail("output 0", "close", 0.5));
    let text = serde_json::to_string(&Verdict::Fail(signature.clone())).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), Verdict::Fail(signature));
}

#[test]
fn a_signature_is_told_in_a_line() {
    let signature = wrong(Class::Value).guilty(["aten.relu.default"]);
    assert_eq!(signature.to_string(), "forward: values differ by aten.relu.default");
    assert_eq!(compile("KeyError", "lower").to_string(), "compile: error KeyError at lower");
}
