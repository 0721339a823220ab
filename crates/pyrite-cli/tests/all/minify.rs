//! The commands that look for failures, run as a user runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

const PROGRAM: &str = r#"
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 6]", w : "f32[6, 6]"):
        a = torch.sin(x)
        b = a @ w
        c = torch.cos(b)
        d = torch.relu(c)
        e = torch.sigmoid(d)
        f = e.sum(-1)
        g = torch.tanh(f)
        h = g * 2.0
        i = torch.exp(h)
        return (i, a)
"#;

fn pyrite(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pyrite")).current_dir(folder).args(args).output().expect("pyrite runs")
}

fn json(output: &Output) -> Json {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{}", String::from_utf8_lossy(&output.stderr)))
}

fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("program.py"), text).expect("a file");
    folder
}

#[test]
fn a_program_is_reduced_as_it_is_under_autocast() {
    let folder = folder(PROGRAM);
    fs::write(folder.path().join("check.sh"), "grep -q bfloat16 \"$1\" && exit 1\nexit 0\n").expect("a script");
    let asked = ["minify", "program.py", "--check", "sh check.sh", "--out", "found"];
    let output = pyrite(folder.path(), &asked);
    assert_eq!(output.status.code(), Some(1), "the program has no bfloat16 by itself");
    fs::remove_dir_all(folder.path().join("found")).ok();
    let output = pyrite(folder.path(), &[&asked[..], &["--autocast", "bf16"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let left = fs::read_to_string(folder.path().join("found/repro.py")).expect("a repro");
    assert!(left.contains("bfloat16") && !left.contains("tanh"), "{left}");
}

#[test]
fn a_failing_relu_is_all_that_is_left_and_proven() {
    for (backend, stage, class) in [
        ("relu_compile_error_TESTING_ONLY", "compile", "error"),
        ("relu_runtime_error_TESTING_ONLY", "forward", "error"),
        ("relu_accuracy_error_TESTING_ONLY", "forward", "value"),
    ] {
        let folder = folder(PROGRAM);
        let output = pyrite(folder.path(), &["minify", "program.py", "--backend", backend, "--out", "found", "--json"]);
        let report = json(&output);
        assert_eq!(output.status.code(), Some(0), "{backend}: {report:#}");
        assert_eq!(report["nodes_after"], 3, "{backend}");
        assert_eq!(report["elements_after"], 1, "{backend}");
        assert_eq!(report["proven"], true, "{backend}");
        assert_eq!((&report["signature"]["stage"], &report["signature"]["class"]), (&stage.into(), &class.into()));
        let again = pyrite(folder.path(), &["run", "found/repro.py", "--backend", backend, "--json"]);
        assert_eq!(again.status.code(), Some(1), "{backend}: the repro fails as it says");
        assert_eq!(json(&again)["verdict"], "fail");
        assert!(folder.path().join("found/passing.py").exists(), "{backend}: the passing neighbour is kept");
    }
}

#[test]
fn a_program_that_does_not_fail_leaves_nothing_behind() {
    let folder = folder(&PROGRAM.replace("relu", "sinh"));
    let output =
        pyrite(folder.path(), &["minify", "program.py", "--backend", "relu_accuracy_error_TESTING_ONLY", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["verdict"], "pass");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["program.py"]);
}

#[test]
fn any_command_can_judge_and_two_operators_are_found_together() {
    let folder = folder(PROGRAM);
    let script = folder.path().join("check.sh");
    fs::write(&script, "grep -q 'aten.relu' \"$1\" && grep -q 'aten.tanh' \"$1\" && exit 1\nexit 0\n").unwrap();
    let check = format!("sh {}", script.display());
    let output = pyrite(folder.path(), &["minify", "program.py", "--check", &check, "--out", "found", "--json"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let text = fs::read_to_string(folder.path().join("found/repro.py")).unwrap();
    assert!(text.contains("aten.relu") && text.contains("aten.tanh"));
    assert!(report["nodes_after"].as_u64().unwrap() <= 5, "{report:#}");
}

#[test]
fn runs_do_not_overwrite_each_other() {
    let folder = folder(PROGRAM);
    for _ in 0..2 {
        let args = ["minify", "program.py", "--backend", "relu_compile_error_TESTING_ONLY"];
        assert_eq!(pyrite(folder.path(), &args).status.code(), Some(0));
    }
    for number in [1, 2] {
        assert!(folder.path().join(format!("program-minified-{number}/repro.py")).exists());
    }
}

#[test]
fn analysis_names_the_first_value_that_differs() {
    let folder = folder(PROGRAM);
    let backend = ["--backend", "relu_accuracy_error_TESTING_ONLY", "--json"];
    let output = pyrite(folder.path(), &[&["analyze", "program.py"][..], &backend].concat());
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report["first"], "d", "{report:#}");
    let agrees = pyrite(folder.path(), &["analyze", "program.py", "--backend", "aot_eager", "--json"]);
    assert_eq!((agrees.status.code(), &json(&agrees)["verdict"]), (Some(0), &"pass".into()));
}

#[test]
fn analysis_does_not_blame_a_value_that_a_later_operator_writes_over() {
    let folder = folder(
        "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[4, 6]\"):\n        a = torch.ops.aten.sin.default(x)\n        \
         v = torch.ops.aten.view.default(a, [24])\n        r = torch.ops.aten.relu_.default(v)\n        \
         c = torch.ops.aten.cos.default(r)\n        return (c,)\n",
    );
    let backend = "relu_accuracy_error_TESTING_ONLY";
    let report = json(&pyrite(folder.path(), &["analyze", "program.py", "--backend", backend, "--json"]));
    let nodes: Vec<_> = report["layers"].as_array().expect("layers").iter().map(|layer| &layer["node"]).collect();
    assert_eq!(nodes, ["r", "c"], "{report:#}");
    assert_eq!(report["first"], "r", "{report:#}");
}

#[test]
fn inputs_are_told_by_name() {
    let folder = folder(PROGRAM);
    let report = json(&pyrite(folder.path(), &["get-args", "program.py", "--json"]));
    assert_eq!(report[1]["name"], "w");
    assert_eq!(report[1]["shape"], serde_json::json!([6, 6]));
}

#[test]
fn bad_usage_is_told_and_nothing_is_written() {
    let folder = folder(PROGRAM);
    for args in [
        &["minify", "program.py", "--backend", "no-such-backend"][..],
        &["minify", "missing.py", "--backend", "aot_eager"],
        &["minify", "program.py"],
        &["run", "program.py", "--memory-budget", "7"],
        &["minify", "program.py", "--check", " "],
        &["minify", "program.py", "--backend", "aot_eager", "--time-budget", "nan"],
        &["minify", "program.py", "--backend", "aot_eager", "--time-limit", "0"],
        &["minify", "program.py", "--backend", "aot_eager", "--confidence", "7"],
        &["bisect", "program.py", "--backend", "aot_eager", "--time-limit", "inf"],
    ] {
        let output = pyrite(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn bisection_says_with_which_stage_a_failure_begins() {
    let folder = folder(PROGRAM);
    let args = ["bisect", "program.py", "--backend", "relu_accuracy_error_TESTING_ONLY", "--json"];
    let output = pyrite(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["stage"], "the backend itself");
    let fine = pyrite(folder.path(), &["bisect", "program.py", "--backend", "aot_eager_decomp_partition", "--json"]);
    assert_eq!((fine.status.code(), &json(&fine)["verdict"]), (Some(1), &"pass".into()));
}

#[test]
fn a_bisection_without_time_says_what_it_did_not_ask() {
    let folder = folder(PROGRAM);
    let backend = "relu_accuracy_error_TESTING_ONLY";
    let args = ["bisect", "program.py", "--backend", backend, "--time-budget", "0.000001", "--json"];
    let output = pyrite(folder.path(), &args);
    let report = json(&output);
    assert_eq!((output.status.code(), &report["queries"]), (Some(0), &1.into()));
    assert_eq!(report["unasked"][0], "whether it fails with pre_dispatch_eager");
}

#[test]
fn one_command_confirms_bisects_minifies_and_proves() {
    let folder = folder(PROGRAM);
    let args = ["debug", "program.py", "--backend", "relu_accuracy_error_TESTING_ONLY", "--out", "found"];
    let output = pyrite(folder.path(), &args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in ["3 of 3 runs", "wrong results", "the backend itself", "3 nodes", "proven in a fresh process"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let report = fs::read_to_string(folder.path().join("found/report.md")).expect("a report");
    for part in ["# forward: values differ", "3 of 3 runs", "aten.relu", "## Environment", "- version: pyrite"] {
        assert!(report.contains(part), "{part} is missing:\n{report}");
    }
    // What is compiled to see what works on this machine is no part of the session.
    let trace = fs::read_to_string(folder.path().join("found/trace.jsonl")).expect("a trace");
    assert!(trace.contains("\"finding\"") && !trace.contains("\"stage\":\"native\""), "{trace}");
    let fine = pyrite(folder.path(), &["debug", "program.py", "--backend", "aot_eager"]);
    assert_eq!(fine.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&fine.stdout).contains("no failure"));
}

#[test]
fn a_build_target_lies_beside_the_repro_and_folders_are_never_reused() {
    let folder = folder(PROGRAM);
    for (target, file, folder_name) in
        [("buck", "BUCK", "program-debug-1"), ("bazel", "BUILD.bazel", "program-debug-2")]
    {
        let args = ["debug", "program.py", "--backend", "relu_compile_error_TESTING_ONLY", "--target", target];
        let output = pyrite(folder.path(), &args);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let text = fs::read_to_string(folder.path().join(folder_name).join(file)).expect("a target");
        assert!(text.contains("name = \"repro\"") && text.contains("repro.py"), "{text}");
    }
}

#[test]
fn a_question_without_an_answer_and_noise_are_told_apart_from_failures() {
    let folder = folder(PROGRAM);
    let invalid = pyrite(
        folder.path(),
        &["debug", "program.py", "--backend", "eager", "--reference", "relu_runtime_error_TESTING_ONLY"],
    );
    assert_eq!(invalid.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&invalid.stdout).contains("invalid"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn analysis_says_how_far_each_side_is_from_fp64() {
    let folder = folder(PROGRAM);
    let output =
        pyrite(folder.path(), &["analyze", "program.py", "--backend", "relu_accuracy_error_TESTING_ONLY", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    let layers = report["layers"].as_array().expect("layers");
    let first = layers.iter().find(|layer| layer["node"] == report["first"]).expect("the first");
    assert_eq!(first["op"], "aten.relu.default");
    assert!(first["backend_error"].as_f64() > first["reference_error"].as_f64());
    assert!(layers[0]["difference"].is_null());
}

#[test]
fn inputs_that_the_seed_gives_are_not_stored() {
    let folder = folder(PROGRAM);
    // The failure needs numbers that are not whole, which no plain content gives.
    let script = folder.path().join("check.sh");
    let line = format!(
        "{} get-args \"$1\" --json | grep -q '\"max\": -\\?[0-9]*\\.[0-9]*[1-9]' && grep -q aten.relu \"$1\" && exit 1\nexit 0\n",
        env!("CARGO_BIN_EXE_pyrite")
    );
    fs::write(&script, line).unwrap();
    let backend = format!("cmd:sh {}", script.display());
    for seed in ["0", "5"] {
        let args = ["minify", "program.py", "--backend", &backend, "--out", seed, "--seed", seed, "--json"];
        let report = json(&pyrite(folder.path(), &args));
        assert_eq!(report["proven"], true, "{report:#}");
        assert_eq!(report["data"], format!("generated from seed {seed}"), "{report:#}");
        assert_eq!(report["user_data"], false);
        let text = fs::read_to_string(folder.path().join(seed).join("repro.py")).unwrap();
        assert!(text.contains("reader.storage(None, 4)"), "{text}");
        assert!(text.contains(&format!("torch.manual_seed({seed})")), "{text}");
        // Without being told, the file's own seed is taken.
        let again = pyrite(folder.path(), &["run", &format!("{seed}/repro.py"), "--backend", &backend, "--json"]);
        assert_eq!((again.status.code(), &json(&again)["verdict"]), (Some(1), &"fail".into()));
    }
}

#[test]
fn a_command_that_cannot_be_started_is_a_mistake_of_usage() {
    let folder = folder(PROGRAM);
    for asked in [
        &["minify", "program.py", "--check", "no-such-program --fast"][..],
        &["minify", "program.py", "--backend", "cmd:no-such-program"],
        &["debug", "program.py", "--backend", "cmd:'no-such-program'"],
        &["run", "program.py", "--backend", "cmd:no-such-program"],
    ] {
        let output = pyrite(folder.path(), asked);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{asked:?}: {said}");
        assert!(said.contains("there is no program `no-such-program`"), "{asked:?}: {said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn what_is_not_known_of_an_input_is_told_with_its_place_and_a_remedy() {
    let folder = folder(&PROGRAM.replace(" : \"f32[4, 6]\"", ""));
    for command in ["debug", "minify", "bisect", "analyze", "run"] {
        let output = pyrite(folder.path(), &[command, "program.py", "--backend", "aot_eager"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("program.py:3") && said.contains("annotate it"), "{command}: {said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_program_that_is_fine_or_noisy_is_told_what_to_try_next() {
    let folder = folder(PROGRAM);
    let output = pyrite(folder.path(), &["debug", "program.py", "--backend", "aot_eager"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("next:") && said.contains("--backend") && said.contains("--runs"), "{said}");
}
