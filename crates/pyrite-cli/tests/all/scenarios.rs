//! PyTorch's minifier scenarios with Pyrite's own backends, as a user runs them: same results or smaller ones, proven.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

fn pyrite(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pyrite")).current_dir(folder).args(args).output().expect("pyrite runs")
}

fn json(output: &Output) -> Json {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// A folder with a program of parameters and the lines of its body.
fn folder(parameters: &str, body: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "class Repro(torch.nn.Module):\n    def forward(self, {parameters}):\n        {}\n",
        body.join("\n        ")
    );
    fs::write(folder.path().join("program.py"), text).expect("a file");
    folder
}

/// So many sines and cosines with another operator in the middle.
fn chain(length: usize, middle: &str) -> tempfile::TempDir {
    let mut body: Vec<String> = (0..length)
        .map(|k| {
            let op = if k == length / 2 { middle } else { ["cos", "sin"][k % 2] };
            format!("v{} = torch.{op}(v{k})", k + 1)
        })
        .collect();
    body.push(format!("return (v{length},)"));
    folder("v0 : \"f32[10]\"", &body.iter().map(String::as_str).collect::<Vec<_>>())
}

fn minify(folder: &Path, args: &[&str]) -> (Option<i32>, Json) {
    let output = pyrite(folder, &[&["minify", "program.py", "--json", "--out", "found"][..], args].concat());
    (output.status.code(), json(&output))
}

fn repro(folder: &Path) -> String {
    fs::read_to_string(folder.join("found/repro.py")).expect("a repro")
}

#[test]
fn relu_among_ten_and_twenty_others_is_left_alone() {
    for length in [10, 20] {
        for (kind, class) in [("compile", "error"), ("runtime", "error"), ("accuracy", "value")] {
            let folder = chain(length, "relu");
            let backend = format!("relu_{kind}_error_TESTING_ONLY");
            let (code, report) = minify(folder.path(), &["--backend", &backend]);
            assert_eq!((code, &report["proven"]), (Some(0), &true.into()), "{backend}: {report:#}");
            assert_eq!((&report["nodes_after"], &report["inputs_after"]), (&3.into(), &1.into()), "{backend}");
            assert_eq!((&report["elements_after"], &report["signature"]["class"]), (&1.into(), &class.into()));
            assert!(repro(folder.path()).contains("aten.relu"));
        }
    }
}

#[test]
fn without_relu_the_same_backends_pass() {
    for kind in ["compile", "runtime", "accuracy"] {
        let folder = chain(10, "sinh");
        let backend = format!("relu_{kind}_error_TESTING_ONLY");
        let (code, report) = minify(folder.path(), &["--backend", &backend, "--runs", "1"]);
        assert_eq!((code, &report["verdict"]), (Some(1), &"pass".into()), "{backend}: {report:#}");
    }
}

#[test]
fn an_input_that_is_no_leaf_is_all_that_is_left() {
    let folder = chain(10, "sinh");
    let program = folder.path().join("program.py");
    let text = fs::read_to_string(&program).expect("a program").replace(" : \"f32[10]\"", "");
    let loading = "\ndef load_args(reader):\n    buf0 = reader.storage(None, 40)\n    \
                   reader.tensor(buf0, (10,), requires_grad=True, is_leaf=False)\nload_args._version = 0\n";
    fs::write(&program, text + loading).expect("a program");
    let (code, report) = minify(folder.path(), &["--backend", "non_leaf_compile_error_TESTING_ONLY"]);
    assert_eq!((code, &report["proven"]), (Some(0), &true.into()), "{report:#}");
    assert!(report["nodes_after"].as_u64() <= Some(3) && report["inputs_after"] == 1, "{report:#}");
    // PyTorch's reader takes an input for no leaf unless it is told.
    assert!(!repro(folder.path()).contains("is_leaf=True"));
}

#[test]
fn a_constant_tensor_is_kept_or_fed() {
    let body = ["k = torch.tensor([2.0, 3.0])", "a = x * k", "b = torch.relu(a)", "return (b,)"];
    let folder = folder("x : \"f32[2]\"", &body);
    let (code, report) = minify(folder.path(), &["--backend", "relu_compile_error_TESTING_ONLY"]);
    assert_eq!((code, &report["nodes_after"], &report["inputs_after"]), (Some(0), &3.into(), &1.into()), "{report:#}");
}

/// 655 · 100 is no number of half precision: the compiler, which computes in single precision, is right about it and
/// eager is not.
const HALF: [&str; 6] =
    ["zero = x * 0", "k = zero + 655", "m = k * 100", "big = zero + 65504", "y = big - m", "return (y,)"];

#[test]
fn half_precision_is_judged_fine_with_fp64_and_reduced_without() {
    let folder = folder("x : \"f16[4]\"", &HALF);
    let (code, report) = minify(folder.path(), &["--backend", "native", "--runs", "1"]);
    assert_eq!((code, &report["verdict"]), (Some(1), &"noise".into()), "{report:#}");
    let args = ["--backend", "native", "--no-fp64", "--accuracy", "fp"];
    let output = pyrite(folder.path(), &[&["minify", "program.py", "--json", "--out", "without"][..], &args].concat());
    let report = json(&output);
    assert_eq!((output.status.code(), &report["proven"]), (Some(0), &true.into()), "{report:#}");
    assert!(report["nodes_after"].as_u64() <= Some(5) && report["inputs_after"].as_u64() <= Some(2), "{report:#}");
    assert_eq!(report["elements_after"], report["inputs_after"], "{report:#}");
}

#[test]
fn values_offloaded_to_disk_lead_to_the_same_end() {
    // Few enough calls for delta debugging, which reads its values back.
    let body = ["a = torch.sin(x)", "b = torch.sin(a)", "c = torch.cos(b)", "d = torch.relu(c)", "return (d,)"];
    for (calls, folder) in [(4, folder("x : \"f32[20]\"", &body)), (20, chain(20, "relu"))] {
        let (code, report) =
            minify(folder.path(), &["--backend", "relu_accuracy_error_TESTING_ONLY", "--offload-to-disk"]);
        assert_eq!((code, &report["proven"]), (Some(0), &true.into()), "{calls} calls: {report:#}");
        assert_eq!(
            (&report["nodes_after"], &report["inputs_after"], &report["elements_after"]),
            (&3.into(), &1.into(), &1.into()),
            "{calls} calls"
        );
    }
}
