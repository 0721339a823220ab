//! `pyrite compare`: two files of results, in every format, and two programs.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use pyrite_tensor::Tensor;
use pyrite_tensor::formats::{npy, npz, safetensors};
use serde_json::Value as Json;

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    command.current_dir(folder).arg("compare").args(arguments).output().expect("pyrite runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn values(last: f32) -> Vec<(String, Tensor)> {
    let tensor = Tensor::from_slice(&[1.0, 2.0, 3.0, last], &[2, 2]);
    vec![("weight".to_owned(), tensor), ("count".to_owned(), Tensor::from_slice(&[1000i64], &[1]))]
}

fn save(folder: &Path, name: &str, tensors: &[(String, Tensor)]) {
    let file = File::create(folder.join(name)).expect("a file");
    match name.rsplit('.').next() {
        Some("npz") => npz::write(file, tensors).expect("written"),
        Some("npy") => npy::write(file, "0", &tensors[0].1).expect("written"),
        _ => safetensors::write(file, tensors).expect("written"),
    }
}

#[test]
fn equal_files_agree_in_every_format_and_across_formats() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.npz", "a.npy", "a.safetensors"] {
        save(folder.path(), name, &values(4.0));
        let output = compare(folder.path(), &[name, name]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
    }
    let output = compare(folder.path(), &["a.npz", "a.safetensors"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "all 2 values agree\n"));
}

#[test]
fn a_difference_has_its_rule_its_worst_element_and_the_tolerance_that_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    save(folder.path(), "a.npz", &values(4.0));
    save(folder.path(), "b.npz", &values(4.5));
    let output = compare(folder.path(), &["a.npz", "b.npz"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["tensors[weight]: value", "within the tolerance", "worst at [1, 1]", "expected 4.0, got 4.5", "ulp"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(said.contains("relative error 0.125; the smallest tolerance that passes is 0.1"), "{said}");
    let output = compare(folder.path(), &["a.npz", "b.npz", "--json"]);
    let object: Json = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(object["verdict"], "fail");
    assert_eq!(object["comparison"]["differences"][0]["numbers"]["worst"]["index"], serde_json::json!([1, 1]));
    assert_eq!(compare(folder.path(), &["a.npz", "b.npz", "--tol", "0.11"]).status.code(), Some(0));
    assert_eq!(compare(folder.path(), &["a.npz", "b.npz", "--cosine-similarity"]).status.code(), Some(0));
}

#[test]
fn an_fp64_reference_judges_what_is_not_close() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = |value: f32| vec![("y".to_owned(), Tensor::from_slice(&[value], &[1]))];
    save(folder.path(), "a.npz", &one(1.0));
    save(folder.path(), "b.npz", &one(1.02));
    save(folder.path(), "truth.npz", &[("y".to_owned(), Tensor::from_slice(&[1.012f64], &[1]))]);
    assert_eq!(compare(folder.path(), &["a.npz", "b.npz"]).status.code(), Some(1));
    let output = compare(folder.path(), &["a.npz", "b.npz", "--truth", "truth.npz", "--json"]);
    let object: Json = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!((output.status.code(), &object["verdict"]), (Some(0), &Json::from("noise")));
}

#[test]
fn programs_are_run_and_their_results_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = |op: &str| {
        format!(
            "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[2, 3]\"):\n        y = torch.ops.aten.{op}.default(x)\n        return (y,)\n"
        )
    };
    fs::write(folder.path().join("sin.py"), program("sin")).expect("a file");
    fs::write(folder.path().join("cos.py"), program("cos")).expect("a file");
    assert_eq!(compare(folder.path(), &["sin.py", "sin.py"]).status.code(), Some(0));
    let output = compare(folder.path(), &["sin.py", "cos.py"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("outputs[0]: value"), "{}", text(&output.stdout));
}

#[test]
fn files_that_cannot_be_read_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    save(folder.path(), "a.npz", &values(4.0));
    fs::write(folder.path().join("broken.npz"), b"PK not an archive").expect("a file");
    fs::write(folder.path().join("notes.txt"), b"nothing").expect("a file");
    for name in ["broken.npz", "missing.npz", "notes.txt"] {
        let output = compare(folder.path(), &["a.npz", name]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(output.stdout.is_empty() && said.contains(name) && said.contains("compare::cannot-read"), "{said}");
    }
}
