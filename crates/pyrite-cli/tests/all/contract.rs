//! What callers rely on: exit codes, JSON, where input comes from and output goes.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

const PROGRAM: &str = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[8]\"):\n        \
                       s = torch.ops.aten.sin.default(x)\n        r = torch.ops.aten.relu.default(s)\n        return (r,)\n";
const WRONG: &str = "relu_accuracy_error_TESTING_ONLY";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("program.py"), PROGRAM).expect("a file");
    folder
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    command.current_dir(folder).args(words);
    command
}

fn pyrite(folder: &Path, words: &[&str]) -> Output {
    command(folder, words).output().expect("the command starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_row_of_the_table_of_exit_codes_holds() {
    let page = out(&pyrite(Path::new("."), &["reference", "exit-codes"]));
    let rows: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    assert_eq!(rows, ["code", "0", "1", "2", "3", "130"], "{page}");
    for (code, words) in [
        (0, &["run", "program.py"][..]),
        (0, &["run", "program.py", "--backend", "native"]),
        (0, &["compare", "program.py", "program.py"]),
        (0, &["minify", "program.py", "--backend", WRONG, "--out", "a"]),
        (0, &["bisect", "program.py", "--backend", WRONG]),
        (0, &["debug", "program.py", "--backend", WRONG, "--out", "b"]),
        (1, &["run", "program.py", "--backend", WRONG]),
        (1, &["analyze", "program.py", "--backend", WRONG]),
        (1, &["minify", "program.py", "--backend", "native", "--runs", "1"]),
        (1, &["bisect", "program.py", "--backend", "native"]),
        (1, &["debug", "program.py", "--backend", "native", "--runs", "1"]),
        (2, &["run", "missing.py"]),
        (2, &["run", "program.py", "--backend", "natve"]),
        (2, &["run", "program.py", "--backnd", "native"]),
        (2, &["--python", "./no_such_python", "run", "program.py", "--backend", "torch:eager"]),
        (2, &["debug", "program.py", "--backend", WRONG, "--out", "b"]),
    ] {
        let folder = folder();
        if words.last() == Some(&"b") && code == 2 {
            fs::create_dir(folder.path().join("b")).unwrap();
            fs::write(folder.path().join("b").join("repro.py"), "").unwrap();
        }
        let output = pyrite(folder.path(), words);
        assert_eq!(output.status.code(), Some(code), "{words:?}\n{}\n{}", out(&output), err(&output));
    }
}

#[test]
fn a_misspelt_backend_and_option_get_the_name_that_was_meant() {
    let folder = folder();
    for (words, meant) in [
        (["run", "program.py", "--backend", "natve"], "did you mean `native`?"),
        (["run", "program.py", "--backend", "inductor"], "did you mean `torch:inductor`?"),
        (["run", "program.py", "--backnd", "native"], "--backend"),
    ] {
        let said = err(&pyrite(folder.path(), &words));
        assert!(said.contains(meant), "{words:?}\n{said}");
    }
}

#[test]
fn debug_prints_json_lines_whatever_happens() {
    let folder = folder();
    for words in [
        &["debug", "program.py", "--backend", WRONG, "--out", "a", "--json"][..],
        &["debug", "program.py", "--backend", "native", "--runs", "1", "--json"],
        &["debug", "program.py", "--backend", WRONG, "--out", "a", "--json"],
        &["debug", "missing.py", "--json"],
    ] {
        let output = pyrite(folder.path(), words);
        let text = out(&output);
        assert!(!text.is_empty(), "{words:?}: {}", err(&output));
        for line in text.lines() {
            assert!(serde_json::from_str::<Json>(line).is_ok_and(|value| value.is_object()), "{words:?}: {line}");
        }
    }
    let steps: Vec<String> =
        out(&pyrite(folder.path(), &["debug", "program.py", "--backend", WRONG, "--out", "b", "--json"]))
            .lines()
            .filter_map(|line| serde_json::from_str::<Json>(line).ok()?["step"].as_str().map(str::to_owned))
            .collect();
    assert!(steps.iter().any(|step| step == "minify") && steps.iter().any(|step| step == "report"), "{steps:?}");
}

#[test]
fn the_small_program_is_the_last_thing_that_is_printed() {
    let folder = folder();
    let said = out(&pyrite(folder.path(), &["minify", "program.py", "--backend", WRONG, "--out", "a"]));
    let program = said.split_once("\n\n").expect("an empty line before the program").1;
    assert!(
        program.starts_with("class Repro") && program.contains("aten.relu") && !program.contains("aten.sin"),
        "{said}"
    );
}

#[test]
fn a_full_disk_under_standard_output_is_told_and_is_no_bug() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    for words in [&["ops"][..], &["reference", "commands"], &["run", "program.py", "--json"]] {
        let folder = folder();
        let output = command(folder.path(), words).stdout(full.try_clone().unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", err(&output));
        assert!(err(&output).contains("cannot be printed") && !err(&output).contains("panicked"), "{}", err(&output));
    }
}

#[test]
fn a_program_comes_from_standard_input_too() {
    let folder = folder();
    let piped = |words: &[&str]| {
        let mut child = command(folder.path(), words);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(PROGRAM.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = piped(&["run", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let output = piped(&["debug", "-", "--backend", WRONG, "--runs", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(folder.path().join("stdin-debug-1").join("repro.py").exists());
}

#[test]
fn a_file_without_an_end_is_refused() {
    if !Path::new("/dev/zero").exists() {
        return;
    }
    let output = pyrite(Path::new("."), &["run", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("/dev/zero"), "{}", err(&output));
}

#[test]
fn a_program_for_another_device_runs_on_the_cpu_and_says_so() {
    let folder = folder();
    let text = "class Repro(torch.nn.Module):\n    def forward(self, x):\n        \
                a = torch.ops.aten.full.default([4], 1, device = device(type='cuda', index=0), pin_memory = False)\n        \
                y = torch.ops.aten.add.Tensor(x, a)\n        return (y,)\ndef load_args(reader):\n    \
                buf0 = reader.storage(None, 16, device=device(type='cuda', index=0))\n    reader.tensor(buf0, (4,))\n";
    fs::write(folder.path().join("cuda.py"), text).unwrap();
    let output = pyrite(folder.path(), &["run", "cuda.py"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(err(&output).contains("is for `cuda:0`; it runs on the CPU"), "{}", err(&output));
    let shown = out(&pyrite(folder.path(), &["show", "cuda.py"]));
    assert!(!shown.contains("cuda"), "{shown}");
    assert!(out(&pyrite(folder.path(), &["--device", "file", "show", "cuda.py"])).contains("cuda"));
}

#[test]
fn a_place_that_cannot_become_a_folder_is_refused_before_anything_is_done() {
    let folder = folder();
    fs::write(folder.path().join("taken"), "mine").expect("a file");
    for words in [&["debug"][..], &["minify"]] {
        for out in ["taken", "taken/below"] {
            let done = pyrite(folder.path(), &[words, &["program.py", "--backend", WRONG, "--out", out]].concat());
            assert_eq!(done.status.code(), Some(2), "{}", err(&done));
            assert!(err(&done).contains("taken is not a folder") && !err(&done).contains("run 1"), "{}", err(&done));
        }
    }
    assert_eq!(fs::read_to_string(folder.path().join("taken")).expect("the file"), "mine");
}
