//! `pyrite compile`: what the stages and the native compiler make of a program, and arguments that are kept.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

const PROGRAM: &str = r"class Repro(torch.nn.Module):
    def forward(self, x):
        soft = torch.ops.aten._softmax.default(x, -1, False)
        twice = torch.ops.aten.mul.Tensor(soft, 2.0)
        return (twice,)

def load_args(reader):
    buf0 = reader.storage('absent', 240)
    reader.tensor(buf0, (6, 10), requires_grad=True, is_leaf=True)
load_args._version = 0
";

fn compile(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_pyrite");
    Command::new(program).arg("compile").args(arguments).current_dir(folder).output().expect("the command starts")
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("repro.py"), PROGRAM).expect("a file");
    folder
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_kernels_of_both_halves_are_printed_as_ptx() {
    let folder = folder();
    let output = compile(folder.path(), &["repro.py", "--print", "ptx"]);
    let printed = out(&output);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.matches(".visible .entry").count(), 2, "{printed}");
    assert!(printed.contains("fma.rn.f32") && printed.contains("div.rn.f32"), "{printed}");
    assert!(!printed.contains(".approx"), "{printed}");
}

#[test]
fn a_softmax_and_its_gradient_are_one_kernel_each() {
    let folder = folder();
    let printed = out(&compile(folder.path(), &["repro.py", "--print", "kernels"]));
    assert!(printed.contains("# forward: 1 kernels, 0 calls"), "{printed}");
    assert!(printed.contains("# backward: 1 kernels, 0 calls"), "{printed}");
    assert!(printed.contains(".unmet_dependencies = {}"), "{printed}");
}

#[test]
fn kept_arguments_compile_to_the_same_without_any_data() {
    let folder = folder();
    let options = ["--decompositions", "core", "--partition", "default", "--json"];
    let first = compile(folder.path(), &[&["repro.py", "--save-args", "kept.py"], &options[..]].concat());
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    let kept = std::fs::read_to_string(folder.path().join("kept.py")).expect("what was kept");
    assert!(kept.contains("reader.storage(None, 240"), "{kept}");
    assert!(!kept.contains("absent"), "{kept}");
    let again = compile(folder.path(), &["--load-args", "kept.py", "--json"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let summary = |output: &Output| serde_json::from_str::<Json>(&out(output)).expect("an object")["nodes"].clone();
    assert_eq!(summary(&first), summary(&again));
    assert!(summary(&again)["backward"].as_u64() > Some(3));
}

#[test]
fn a_file_that_was_not_kept_is_refused_as_arguments() {
    let folder = folder();
    let output = compile(folder.path(), &["--load-args", "repro.py"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("compile::not-kept") && said.contains("repro.py") && said.contains("--save-args"), "{said}");
    let output = compile(folder.path(), &["repro.py", "--save-args", "nowhere/kept.py"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("compile::cannot-write"));
}
