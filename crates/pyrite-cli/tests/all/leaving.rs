//! Repros that `pyrite run` leaves behind, asked for by options and by the environment.

use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = r#"class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 3]"):
        a = torch.ops.aten.sin.default(x)
        b = torch.ops.aten.relu.default(a)
        c = torch.ops.aten.cos.default(b)
        return (c,)
"#;

fn run(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    std::fs::write(folder.join("model.py"), PROGRAM).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    for name in ["PYRITE_REPRO_AFTER", "PYRITE_REPRO_LEVEL", "PYRITE_DEBUG_DIR"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).current_dir(folder).args(["run", "model.py"]).args(arguments);
    command.output().expect("pyrite runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_environment_asks_as_the_options_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let failing = ["--backend", "relu_runtime_error_TESTING_ONLY"];
    let output = run(folder.path(), &failing, &[("PYRITE_REPRO_AFTER", "dynamo"), ("PYRITE_DEBUG_DIR", "left")]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(folder.path().join("left/graph_1/minifier_launcher.py").exists(), "{}", stderr(&output));
    let output = run(folder.path(), &[&failing[..], &["--repro-level", "1"]].concat(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(folder.path().join("pyrite_debug/graph_1/repro.py").exists(), "{}", stderr(&output));
    let output = run(folder.path(), &failing, &[("PYRITE_REPRO_AFTER", ""), ("PYRITE_REPRO_LEVEL", "")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path().join("pyrite_debug/graph_2").exists(), "empty is the same as unset");
}

#[test]
fn a_bad_variable_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, value) in [("PYRITE_REPRO_LEVEL", "5"), ("PYRITE_REPRO_LEVEL", "high"), ("PYRITE_REPRO_AFTER", "before")]
    {
        let output = run(folder.path(), &[], &[(name, value)]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(name) && stderr(&output).contains(value), "{}", stderr(&output));
    }
}

#[test]
fn level_four_ends_with_the_path_of_a_small_repro() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--backend", "relu_accuracy_error_TESTING_ONLY", "--repro-level", "4", "--repro-after", "aot"];
    let output = run(folder.path(), &arguments, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let path = folder.path().join("pyrite_debug/graph_1/minified/repro.py");
    let text = std::fs::read_to_string(path).expect("a minified repro");
    assert!(text.contains("aten.relu") && !text.contains("aten.cos"), "{text}");
}
