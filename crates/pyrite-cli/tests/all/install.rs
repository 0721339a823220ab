//! What a new user asks first: what is missing here, and how are words completed.

use std::process::{Command, Output};

fn pyrite(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    command.env_remove("PYRITE_PYTHON").args(arguments).output().expect("the command starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_is_missing_comes_with_how_to_get_it() {
    let output = pyrite(&["--python", "/nowhere/python", "doctor", "--json"]);
    assert!(output.status.success());
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    for row in &rows {
        assert_eq!(row["fine"] == true, row["remedy"].is_null(), "{row}");
    }
    let named = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row {name}"));
    assert_eq!(named("torch")["fine"], false);
    assert!(named("torch")["remedy"].as_str().unwrap().contains("--python"));
    assert_eq!(named("python package")["fine"], false);
    assert!(named("python package")["remedy"].as_str().unwrap().contains("pip install ."));
    for name in ["version", "native code", "workers", "temporary files", "traces"] {
        assert_eq!(named(name)["fine"], true, "{name}");
    }
    let text = out(&pyrite(&["--python", "/nowhere/python", "doctor"]));
    assert!(text.contains("missing  torch") && text.contains("pip install ."), "{text}");
}

#[test]
fn shells_get_scripts_that_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = out(&pyrite(&["completions", shell]));
        for word in ["minify", "bisect", "report", "completions", "--backend"] {
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pyrite.bash");
    std::fs::write(&path, pyrite(&["completions", "bash"]).stdout).unwrap();
    if let Ok(checked) = Command::new("bash").arg("-n").arg(&path).output() {
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
    assert_eq!(pyrite(&["completions", "tcsh"]).status.code(), Some(2));
}
