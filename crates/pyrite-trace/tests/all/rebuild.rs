//! A trace is written, read again, and gives all of its files again.

use std::collections::BTreeMap;
use std::path::Path;

use pyrite_trace::event::{Artifact, Break, Frame, GraphDump, Guard, Kernel, LogLine, NodeRow, Size};
use pyrite_trace::{Event, Level, Setup, Stage, Topic, Topics};

/// The texts of all files but the records, by path.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if !path.ends_with(pyrite_trace::TRACE_FILE) {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn compile_something() {
    let _graph = pyrite_trace::graph(|| "model_0".to_owned());
    let _stage = pyrite_trace::stage(Stage::Aot);
    {
        let _step = pyrite_trace::step("joint");
        pyrite_trace::emit(Topic::AotGraphs, || {
            let row = NodeRow {
                name: "x".to_owned(),
                op: "placeholder".to_owned(),
                shape: Some(vec![Size::Number(4), Size::Symbol("s0".to_owned())]),
                ..NodeRow::default()
            };
            let text = "class Joint: pass\n".to_owned();
            Event::Graph(GraphDump { file: "joint.py".to_owned(), text, nodes: vec![row], edges: vec![] })
        });
    }
    let guard = |text: &str| Event::Guard(Guard { guard: text.to_owned() });
    pyrite_trace::emit(Topic::Guards, || guard("x has shape [4]"));
    pyrite_trace::emit(Topic::Guards, || guard("grad mode is on"));
    pyrite_trace::emit(Topic::GraphBreaks, || {
        let frame =
            Frame { file: "a.py".to_owned(), line: 3, function: "f".to_owned(), source: Some("print(x)".into()) };
        Event::Break(Break { reason: "print".to_owned(), stack: vec![frame], ..Break::default() })
    });
    pyrite_trace::emit(Topic::OutputCode, || {
        let loops = "for (i0 = 0; i0 < 4; i0++) {}".to_owned();
        Event::Kernel(Kernel { name: "k".to_owned(), loops, disassembly: "0000 ret".to_owned(), ..Kernel::default() })
    });
    pyrite_trace::emit(Topic::Schedule, || {
        let (name, file) = ("schedule".to_owned(), "ir_post_fusion.txt".to_owned());
        Event::Artifact(Artifact { name, file, text: "loops\n".to_owned() })
    });
    pyrite_trace::log(Topic::PerfHints, Level::Info, || "a sort is a call".to_owned());
}

#[test]
fn every_file_can_be_made_again_from_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    pyrite_trace::start(Setup::new(&first)).unwrap();
    compile_something();
    drop(pyrite_trace::step("run"));
    drop(pyrite_trace::step("run"));
    assert_eq!(pyrite_trace::stop().unwrap().as_deref(), Some(first.as_path()));
    // What happens after the end is in no file.
    compile_something();

    let records = pyrite_trace::read(&first).unwrap();
    assert!(matches!(&records[0].event, Event::Run(run) if run.versions.contains_key("pyrite")));
    assert!(
        records.iter().any(|record| matches!(&record.event, Event::Log(LogLine { log, .. }) if log == "perf_hints"))
    );
    assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time));
    pyrite_trace::rebuild(&records, &second).unwrap();
    let (written, again) = (texts(&first), texts(&second));
    assert_eq!(written, again);

    let named: Vec<&str> = written.keys().map(String::as_str).collect();
    assert_eq!(
        named,
        [
            "aot/debug.log",
            "aot/model_0/guards.txt",
            "aot/model_0/ir_post_fusion.txt",
            "aot/model_0/joint.py",
            "aot/model_0/output_code.txt",
            "aot/model_0/perf_hints.txt",
            "compile_profile.json",
            "graph_breaks.txt",
            "timings.txt",
        ]
    );
    assert!(written["aot/model_0/guards.txt"].ends_with("x has shape [4]\ngrad mode is on\n"));
    assert!(written["aot/model_0/joint.py"].starts_with("# pyrite "));
    assert!(written["graph_breaks.txt"].contains("print(x)"));
    let profile: serde_json::Value = serde_json::from_str(&written["compile_profile.json"]).unwrap();
    let phases: Vec<&str> = profile.as_array().unwrap().iter().filter_map(|event| event["ph"].as_str()).collect();
    assert_eq!(phases, ["M", "X", "X", "X", "X"]);
}

#[test]
fn what_is_switched_off_is_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let topics = Topics::parse("1,-output_code,-timings").unwrap();
    pyrite_trace::start(Setup { topics, ..Setup::new(folder.path()) }).unwrap();
    assert!(!pyrite_trace::wanted(Topic::OutputCode) && pyrite_trace::wanted(Topic::Guards));
    compile_something();
    pyrite_trace::stop().unwrap();
    let written = texts(folder.path());
    assert!(!written.contains_key("aot/model_0/output_code.txt") && !written.contains_key("timings.txt"));
    assert!(written.contains_key("aot/model_0/joint.py"));
    let records = std::fs::read_to_string(folder.path().join("trace.jsonl")).unwrap();
    assert!(!records.contains("\"kernel\"") && !records.contains("\"mark\""));
}

#[test]
fn a_line_that_a_crash_cut_off_is_left_out_and_a_broken_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    pyrite_trace::start(Setup::new(folder.path())).unwrap();
    compile_something();
    pyrite_trace::stop().unwrap();
    let path = folder.path().join("trace.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let count = text.lines().count();
    std::fs::write(&path, &text[..text.len() - 5]).unwrap();
    assert_eq!(pyrite_trace::read(folder.path()).unwrap().len(), count - 1);
    std::fs::write(&path, text.replacen("\"event\":\"guard\"", "\"event\":\"gourd\"", 1)).unwrap();
    let error = pyrite_trace::read(&path).unwrap_err().to_string();
    assert!(error.contains("trace.jsonl, line 6"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("taken");
    std::fs::write(&file, "").unwrap();
    let error = pyrite_trace::start(Setup::new(&file.join("below"))).unwrap_err().to_string();
    assert!(error.contains("taken"), "{error}");
    assert!(!pyrite_trace::is_on());
}
