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
    assert!(printed.contains("# forward: 1 kernel, 0 calls; fallbacks to reference kernels: none"), "{printed}");
    assert!(printed.contains("# backward: 1 kernel, 0 calls"), "{printed}");
    assert!(printed.contains(".unmet_dependencies = {}"), "{printed}");
}

#[test]
fn the_schedule_is_printed_on_both_sides_of_a_pass() {
    let folder = folder();
    let print = |what: &str| compile(folder.path(), &["repro.py", "--print", what]);
    let (before, after) = (out(&print("before:fuse")), out(&print("after:fuse")));
    assert!(before.starts_with("# forward before fuse\n"), "{before}");
    assert!(before.matches("\nloop ").count() > after.matches("\nloop ").count(), "{before}\n{after}");
    // The pass before it in the table is for GPUs only.
    let (before, after) = (out(&print("before:finish-kernels")), out(&print("after:fuse-late")));
    assert_eq!(before.replace("before finish-kernels", "after fuse-late"), after);
    assert!(out(&print("after:recompute")).starts_with("# forward after recompute, for a GPU\n"));
}

#[test]
fn decisions_are_numbered_as_a_limit_counts_them() {
    let folder = folder();
    let printed = out(&compile(folder.path(), &["repro.py", "--print", "decisions"]));
    let first = printed.lines().nth(1).expect("a decision");
    assert!(printed.starts_with("# forward: ") && first.trim().starts_with("1 lower "), "{printed}");
    let limited = out(&compile(folder.path(), &["repro.py", "--print", "decisions", "--rewrites", "1"]));
    assert!(limited.contains(": 1 decision\n") && limited.contains(first), "{limited}");
}

#[test]
fn what_cannot_be_printed_is_refused_with_what_was_meant() {
    let folder = folder();
    for (what, meant) in [
        ("kernel", "did you mean kernels?"),
        ("fuse", "did you mean after:fuse?"),
        ("after:fuze", "did you mean fuse?"),
        ("after:epilogue", "did you mean fuse-epilogue?"),
        ("before:lower", "functional"),
    ] {
        let output = compile(folder.path(), &["repro.py", "--print", what]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(meant), "{what}: {said}");
    }
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
