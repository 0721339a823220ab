//! `pyrite report` as a user meets it: what it reads, what it writes, and what bad folders get.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value as Json, json};

fn report(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pyrite")).arg("report").args(arguments).output().expect("the command starts")
}

fn trace(folder: &Path, records: &[Json]) {
    fs::create_dir_all(folder).expect("a folder");
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(folder.join("trace.jsonl"), text).expect("a trace");
}

fn begun(word: &str) -> Json {
    json!({
        "event": "run", "time": 0.0, "stage": null, "graph": null, "versions": {"pyrite": "0.1.0"},
        "argv": ["pyrite", word], "started": 1.7e9, "pid": 1,
    })
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a path in UTF-8")
}

/// The data that a page carries.
fn data(page: &Path) -> Json {
    let text = fs::read_to_string(page).expect("a page");
    let (_, data) = text.split_once("id=\"data\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("an end");
    serde_json::from_str(data).expect("JSON")
}

/// Bad folders: exit code 2, nothing on standard output, and a message with what was expected and how to make it.
fn refused(arguments: &[&str], expected: &[&str]) {
    let output = report(arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(output.stdout.is_empty());
    for part in expected {
        assert!(told.contains(part), "expected {part} in\n{told}");
    }
}

#[test]
fn a_trace_becomes_a_page_in_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = json!({
        "event": "graph", "time": 0.5, "stage": "aot", "graph": "f_0", "file": "joint.py", "text": "relu = x\n",
        "nodes": [{"name": "x", "op": "placeholder"}, {"name": "relu", "op": "call_function", "target": "aten.relu.default"}],
        "edges": [[0, 1]],
    });
    let parting = json!({
        "event": "divergence", "time": 0.6, "stage": "debug", "graph": null, "node": "relu", "op": "aten.relu.default",
        "backend_error": 0.5, "class": "value", "value": "off",
    });
    trace(folder.path(), &[begun("debug"), graph, parting]);
    let output = report(&[path(folder.path())]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = folder.path().join("report.html");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), path(&page));
    let run = &data(&page)["runs"][0];
    assert_eq!(run["subtitle"], "pyrite debug");
    assert_eq!(run["graphs"][0]["nodes"][1]["inputs"], json!([0]));
    assert_eq!(run["graphs"][0]["nodes"][1]["divergence"]["class"], "value");
    assert_eq!(run["files"][0]["path"], "aot/f_0/joint.py");
}

#[test]
fn the_last_run_below_a_folder_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    trace(&folder.path().join("run_2026_01_01_00_00_00_000000-pid_9"), &[begun("first")]);
    trace(&folder.path().join("run_2026_01_02_00_00_00_000000-pid_3"), &[begun("second")]);
    let output = report(&[path(folder.path()), "--json"]);
    let told: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["folder"], "run_2026_01_02_00_00_00_000000-pid_3");
    assert_eq!(data(&folder.path().join("report.html"))["runs"][0]["subtitle"], "pyrite second");
}

#[test]
fn a_session_without_a_trace_shows_its_repro_and_what_was_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let repro = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[2, 3]\"):\n        \
                 gelu = torch.ops.aten.gelu.default(x)\n        return (gelu,)\n";
    fs::write(folder.path().join("repro.py"), repro).expect("a repro");
    fs::write(folder.path().join("report.md"), "# x\n\n## What was found\n\n- confirm: 3 of 3\n").expect("a story");
    let page = folder.path().join("page.html");
    let output = report(&[path(folder.path()), "--out", path(&page), "--compare", path(folder.path())]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let data = data(&page);
    assert_eq!(data["runs"].as_array().map(Vec::len), Some(2));
    let run = &data["runs"][0];
    assert_eq!(run["repro"]["text"], repro);
    assert_eq!(run["findings"][0], json!({"step": "confirm", "text": "3 of 3"}));
    let nodes = run["graphs"][0]["nodes"].as_array().expect("nodes");
    assert_eq!(nodes[1]["target"], "aten.gelu.default");
    assert_eq!(nodes[1]["shape"], "[2, 3]");
}

#[test]
fn bad_folders_are_refused_with_what_was_expected_and_how_to_make_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = ["pyrite debug FILE --out FOLDER", "PYRITE_COMPILE_DEBUG=1"];
    refused(&[path(&folder.path().join("nowhere"))], &[&["report::no-folder"], make.as_slice()].concat());
    refused(&[path(folder.path())], &[&["report::nothing-in-it", "trace.jsonl", "repro.py"], make.as_slice()].concat());
    let file = folder.path().join("notes.txt");
    fs::write(&file, "").expect("a file");
    refused(&[path(&file)], &["report::no-folder", "it is a file"]);
    fs::write(folder.path().join("trace.jsonl"), format!("{}\n{{\"event\": \"no\"}}\n", begun("x"))).expect("a trace");
    refused(&[path(folder.path())], &["report::bad-trace", "trace.jsonl:2", "docs/trace-format.md"]);
    assert!(!folder.path().join("report.html").exists());
}

#[test]
fn a_page_that_cannot_be_written_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    trace(folder.path(), &[begun("x")]);
    let page = folder.path().join("no-such-folder").join("page.html");
    refused(&[path(folder.path()), "--out", path(&page)], &["report::unwritten", "--out"]);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

/// The files that a page quotes around breaks and recompiles.
fn quoted(folder: &Path) -> Vec<String> {
    let output = report(&[path(folder)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let run = &data(&folder.join("report.html"))["runs"][0];
    let sources = run["sources"].as_array().expect("sources");
    sources.iter().filter_map(|source| Some(source["file"].as_str()?.to_owned())).collect()
}

fn recompile(file: &Path) -> Json {
    json!({
        "event": "recompile", "time": 0.5, "stage": "capture", "graph": null, "function": "f", "file": path(file),
        "line": 1, "guard": "a guard", "times": 1,
    })
}

#[test]
fn a_page_quotes_the_scripts_beside_a_run_and_nothing_else_that_a_trace_names() {
    let (project, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let write = |place: &Path| fs::write(place, "secret = 1\n").expect("a file");
    let script = project.path().join("train.py");
    let link = project.path().join("link.py");
    let others = [elsewhere.path().join("other.py"), project.path().join("key"), project.path().join("notes.txt")];
    others.iter().chain([&script]).for_each(|place| write(place));
    std::os::unix::fs::symlink(&others[0], &link).expect("a link");
    let run = project.path().join("pyrite_debug").join("run_1");
    let devices = [Path::new("/dev/zero"), Path::new("/etc/passwd")];
    let named = others.iter().map(|other| &**other).chain([&*script, &link]).chain(devices);
    trace(&run, &[begun("debug")].into_iter().chain(named.map(recompile)).collect::<Vec<_>>());
    assert_eq!(quoted(&run), [path(&script)]);
}

#[test]
fn a_page_holds_no_file_that_a_link_in_the_folder_leads_to() {
    let (folder, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let secret = elsewhere.path().join("secret.py");
    fs::write(&secret, "secret = 1\n").expect("a file");
    let link = |name: &str| std::os::unix::fs::symlink(&secret, folder.path().join(name)).expect("a link");
    link("repro.py");
    link("report.md");
    refused(&[path(folder.path())], &["report::nothing-in-it"]);
    link("passing.py");
    fs::remove_file(folder.path().join("repro.py")).expect("the link");
    fs::write(
        folder.path().join("repro.py"),
        "class Repro(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n",
    )
    .expect("a repro");
    assert_eq!(report(&[path(folder.path())]).status.code(), Some(0));
    let page = fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(!page.contains("secret = 1"), "a link was followed");
}
