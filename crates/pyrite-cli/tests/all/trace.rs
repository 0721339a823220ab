//! `--trace`, `PYRITE_COMPILE_DEBUG`, `PYRITE_LOGS`, and the traces that debugging leaves.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pyrite_trace::{Event, Record};

const PROGRAM: &str = r#"class Repro(torch.nn.Module):
    def forward(self, x: "f32[6, 10]", w: "f32[10, 10]"):
        # File: model.py:3 in forward, code: return (x @ w).relu().softmax(-1)
        product = torch.ops.aten.mm.default(x, w)
        above = torch.ops.aten.relu.default(product)
        soft = torch.ops.aten._softmax.default(above, -1, False)
        return (soft, above)

def load_args(reader):
    buf0 = reader.storage(None, 240)
    reader.tensor(buf0, (6, 10), requires_grad=True, is_leaf=True)
    buf1 = reader.storage(None, 400)
    reader.tensor(buf1, (10, 10))
load_args._version = 0
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("program.py"), PROGRAM).expect("a file");
    folder
}

fn pyrite(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    for name in ["PYRITE_LOGS", "PYRITE_COMPILE_DEBUG", "PYRITE_DEBUG_DIR", "PYRITE_CODEGEN"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).args(arguments).current_dir(folder).output().expect("the command starts")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The only run below a folder of traces.
fn only_run(base: &Path) -> PathBuf {
    let runs: Vec<PathBuf> = std::fs::read_dir(base).expect("traces").map(|entry| entry.unwrap().path()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let name = runs[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("run_20") && name.contains("-pid_"), "{name}");
    runs[0].clone()
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_traced_run_leaves_every_stage_and_the_records_give_it_again() {
    let folder = folder();
    let run = ["run", "program.py", "--backend", "native", "--trace"];
    let output = pyrite(folder.path(), &run, &[("PYRITE_CODEGEN", "x86")]);
    assert!(output.status.success(), "{}", told(&output));
    let trace = only_run(&folder.path().join("pyrite_debug"));
    assert!(told(&output).contains("trace: pyrite_debug"), "{}", told(&output));
    let found = files(&trace);
    for wanted in [
        "aot/debug.log",
        "aot/model_0/backward.py",
        "aot/model_0/forward.py",
        "aot/model_0/graph_readable.py",
        "aot/model_0/graph_runnable.py",
        "aot/model_0/graph_transformed.py",
        "aot/model_0/joint.py",
        "compile_profile.json",
        "native/debug.log",
        "native/model_0_backward/output_code.txt",
        "native/model_0_forward/graph_readable.py",
        "native/model_0_forward/graph_runnable.py",
        "native/model_0_forward/ir_post_fusion.txt",
        "native/model_0_forward/ir_pre_fusion.txt",
        "native/model_0_forward/output_code.txt",
        "timings.txt",
        "trace.jsonl",
    ] {
        assert!(found.iter().any(|file| file == wanted), "{wanted} is missing in {found:?}");
    }
    for file in
        found.iter().filter(|file| Path::new(file).extension().is_none_or(|end| end != "json" && end != "jsonl"))
    {
        let first = text(&trace.join(file)).lines().next().unwrap_or_default().to_owned();
        assert!(first.starts_with(&format!("# pyrite {}", env!("CARGO_PKG_VERSION"))), "{file}: {first}");
    }
    let code = text(&trace.join("native/model_0_forward/output_code.txt"));
    assert!(code.contains("for (long i0 = 0; i0 < 6; i0++) {"), "{code}");
    if std::is_x86_feature_detected!("avx2") {
        assert!(code.contains("| 00000  ") && code.contains("  ret\n"), "{code}");
        assert!(!code.contains("(bad)"), "the data behind the code is no code: {code}");
    }
    let readable = text(&trace.join("aot/model_0/graph_readable.py"));
    assert!(readable.contains("model.py:3"), "{readable}");

    let again = folder.path().join("again");
    pyrite_trace::rebuild(&pyrite_trace::read(&trace).unwrap(), &again).unwrap();
    let rebuilt = files(&again);
    assert_eq!(rebuilt.len() + 1, found.len());
    for file in rebuilt {
        assert_eq!(text(&again.join(&file)), text(&trace.join(&file)), "{file}");
    }
}

#[test]
fn graphs_of_a_trace_run_in_pyrite() {
    let folder = folder();
    pyrite(folder.path(), &["compile", "program.py", "--decompositions", "loops", "--trace"], &[]);
    let trace = only_run(&folder.path().join("pyrite_debug"));
    let path = trace.join("aot/model_0/graph_runnable.py");
    let run = ["run", path.to_str().unwrap(), "--backend", "native", "--reference", "eager", "--json"];
    let output = pyrite(folder.path(), &run, &[]);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && out.contains("\"pass\""), "{out}{}", told(&output));
    for file in ["joint.py", "forward.py", "backward.py", "graph_transformed.py"] {
        let path = trace.join("aot/model_0").join(file);
        let output = pyrite(folder.path(), &["show", path.to_str().unwrap()], &[]);
        assert!(output.status.success(), "{file}: {}", told(&output));
    }
}

#[test]
fn artifacts_are_switched_off_one_by_one_and_nothing_is_written_unasked() {
    let folder = folder();
    let run = ["run", "program.py", "--backend", "native"];
    pyrite(folder.path(), &run, &[]);
    assert!(!folder.path().join("pyrite_debug").exists());
    pyrite(folder.path(), &run, &[("PYRITE_COMPILE_DEBUG", "0")]);
    assert!(!folder.path().join("pyrite_debug").exists());

    let variables = [("PYRITE_COMPILE_DEBUG", "1,-output_code,-aot_graphs"), ("PYRITE_DEBUG_DIR", "elsewhere")];
    let output = pyrite(folder.path(), &run, &variables);
    assert!(output.status.success(), "{}", told(&output));
    let found = files(&only_run(&folder.path().join("elsewhere")));
    assert!(!found.iter().any(|file| file.ends_with("output_code.txt") || file.ends_with("joint.py")), "{found:?}");
    assert!(found.iter().any(|file| file.ends_with("ir_post_fusion.txt")), "{found:?}");

    let output = pyrite(folder.path(), &run, &[("PYRITE_COMPILE_DEBUG", "1,-output_cod")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("output_code"), "{}", told(&output));
}

#[test]
fn a_trace_that_cannot_be_written_is_told_before_anything_runs() {
    let folder = folder();
    std::fs::write(folder.path().join("taken"), "").unwrap();
    let output = pyrite(folder.path(), &["run", "program.py", "--trace"], &[("PYRITE_DEBUG_DIR", "taken")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("PYRITE_DEBUG_DIR"), "{}", told(&output));
}

#[test]
fn logs_show_what_was_asked_for_and_nothing_else() {
    let folder = folder();
    let run = ["run", "program.py", "--backend", "native"];
    assert!(!told(&pyrite(folder.path(), &run, &[])).contains("pyrite."));
    let output = pyrite(folder.path(), &run, &[("PYRITE_LOGS", "aot_graphs,schedule,native")]);
    let log = told(&output);
    assert!(log.contains("pyrite.aot_graphs: model_0 joint.py\nclass "), "{log}");
    assert!(log.contains("pyrite.schedule: model_0_forward ir_post_fusion.txt\n"), "{log}");
    assert!(log.contains("pyrite.native: model_0_forward: native took "), "{log}");
    assert!(!log.contains("pyrite.aot:") && !log.contains("pyrite.output_code:"), "{log}");
    assert!(!log.contains("lower took"), "steps are for +native: {log}");

    let output = pyrite(folder.path(), &run, &[("PYRITE_LOGS", "schedul")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("did you mean schedule"), "{}", told(&output));
}

fn records(folder: &Path) -> Vec<Record> {
    pyrite_trace::read(folder).expect("a trace")
}

#[test]
fn debugging_leaves_its_findings_every_question_and_the_repro() {
    let folder = folder();
    let backend = "relu_accuracy_error_TESTING_ONLY";
    let output = pyrite(folder.path(), &["debug", "program.py", "--backend", backend, "--out", "found"], &[]);
    assert!(output.status.success(), "{}", told(&output));
    let out = folder.path().join("found");
    let records = records(&out);
    let steps: Vec<&str> = records
        .iter()
        .filter_map(|record| if let Event::Finding(found) = &record.event { Some(&*found.step) } else { None })
        .collect();
    assert_eq!(steps.first(), Some(&"confirm"));
    assert!(["bisect", "analyze", "prove"].iter().all(|step| steps.contains(step)), "{steps:?}");
    let parted: Vec<_> = records
        .iter()
        .filter_map(|record| if let Event::Divergence(value) = &record.event { Some(value) } else { None })
        .filter(|value| value.class.is_some())
        .collect();
    assert_eq!(parted.first().map(|value| value.op.as_str()), Some("aten.relu.default"));
    let minified: Vec<_> = records
        .iter()
        .filter_map(|record| if let Event::Minify(step) = &record.event { Some(step) } else { None })
        .collect();
    assert!(minified.windows(2).all(|pair| pair[0].query <= pair[1].query && pair[0].nodes >= pair[1].nodes));
    let improved = minified.iter().filter_map(|step| step.text.as_ref());
    assert!(improved.clone().count() >= 1 && improved.clone().all(|text| text.contains("relu")));
    let repro = records
        .iter()
        .find_map(|record| if let Event::Repro(repro) = &record.event { Some(repro) } else { None })
        .expect("a repro");
    assert!(repro.proven && repro.text == text(&out.join("repro.py")));
    assert!(records.iter().any(|record| matches!(&record.event, Event::Graph(graph) if graph.nodes.len() == 6)));
}

#[test]
fn analyzing_and_bisecting_keep_a_trace_where_they_are_told_to() {
    let folder = folder();
    let with = ["program.py", "--backend", "relu_accuracy_error_TESTING_ONLY", "--out"];
    pyrite(folder.path(), &[&["analyze"][..], &with, &["here"]].concat(), &[]);
    let found = records(&folder.path().join("here"));
    let parted: Vec<&str> = found
        .iter()
        .filter_map(|record| match &record.event {
            Event::Divergence(node) if node.class.is_some() => Some(&*node.node),
            _ => None,
        })
        .collect();
    assert_eq!(parted.first(), Some(&"above"));
    pyrite(folder.path(), &[&["bisect"][..], &with, &["there"]].concat(), &[]);
    let found = records(&folder.path().join("there"));
    assert!(found.iter().any(|record| matches!(&record.event, Event::Finding(found) if found.step == "bisect")));
}

#[test]
fn a_folder_that_holds_a_session_is_refused_first_and_not_touched() {
    let folder = folder();
    let with = ["program.py", "--backend", "relu_accuracy_error_TESTING_ONLY", "--out", "here"];
    let begun = pyrite(folder.path(), &[&["debug"][..], &with].concat(), &[]);
    assert_eq!(begun.status.code(), Some(0), "{begun:?}");
    let content = || {
        let entries = std::fs::read_dir(folder.path().join("here")).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.filter(|path| path.is_file()).map(|path| (std::fs::read(&path).unwrap(), path)).collect();
        files.sort();
        files
    };
    let before = content();
    for command in ["debug", "minify", "analyze", "bisect"] {
        let again = pyrite(folder.path(), &[&[command][..], &with].concat(), &[]);
        assert_eq!(again.status.code(), Some(2), "{command}: {again:?}");
        assert!(String::from_utf8_lossy(&again.stderr).contains("cli::occupied"), "{command}");
        assert_eq!(content(), before, "{command} touched the session");
    }
    for trace in ["trace.jsonl", "verdicts.jsonl", "report.md"] {
        std::fs::create_dir(folder.path().join(trace.replace('.', "_"))).unwrap();
        let only = folder.path().join(trace.replace('.', "_"));
        std::fs::write(only.join(trace), "kept").unwrap();
        for command in ["debug", "minify", "analyze", "bisect"] {
            let words = [&[command][..], &with[..4], &[only.to_str().unwrap()]].concat();
            assert_eq!(pyrite(folder.path(), &words, &[]).status.code(), Some(2), "{command} into {trace}");
            assert_eq!(std::fs::read_to_string(only.join(trace)).unwrap(), "kept", "{command}");
        }
    }
}

#[test]
fn the_names_of_logs_are_listed_by_the_command_and_by_its_help() {
    let folder = folder();
    let list = String::from_utf8_lossy(&pyrite(folder.path(), &["logs"], &[]).stdout).into_owned();
    let help = String::from_utf8_lossy(&pyrite(folder.path(), &["logs", "--help"], &[]).stdout).into_owned();
    let json = pyrite(folder.path(), &["logs", "--json"], &[]).stdout;
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    assert_eq!(rows.len(), pyrite_trace::TOPICS.len());
    for row in rows {
        let name = row["name"].as_str().unwrap();
        assert!(list.contains(&format!("  {name} ")) && help.contains(&format!("  {name} ")), "{name}");
    }
}
