//! Small files as PyTorch 2.4, 2.9 and 2.15 write them: each is read to a well-formed graph whose every value is known,
//! and survives a round trip. The files are inputs; none of them is ever executed.

use std::path::Path;

use pyrite_ir::print::{PrintOptions, ReproInfo, print, print_repro};
use pyrite_ir::verify::verify;
use pyrite_ir::{Kind, Target, Value};
use pyrite_reader::{ReadOptions, ReadOutcome, read_path, read_text};

/// The file, how many inputs it has, what it returns, and what the file says of itself.
const FILES: [(&str, usize, usize, Option<(&str, &str)>); 11] = [
    ("torch_2_4_dynamo_repro.py", 1, 1, Some(("backend", "inductor"))),
    ("torch_2_4_aot_minifier_launcher.py", 4, 3, Some(("torch.version", "2.4.0+cu121"))),
    ("torch_2_9_dynamo_repro.py", 4, 2, Some(("accuracy", "True"))),
    ("torch_2_9_fx_graph_readable.py", 3, 2, None),
    ("torch_2_15_dynamo_repro.py", 5, 5, Some(("command", "run"))),
    ("torch_2_15_dynamo_minifier_launcher.py", 5, 5, Some(("command", "minify"))),
    ("torch_2_15_dynamo_readable.py", 5, 5, None),
    ("torch_2_15_dynamo_code.py", 5, 4, None),
    ("torch_2_15_aot_repro.py", 5, 5, Some(("tracing_mode", "symbolic"))),
    ("torch_2_15_aot_minifier_launcher.py", 5, 5, Some(("accuracy", "accuracy"))),
    ("torch_2_15_fx_graph_readable.py", 5, 5, None),
];

fn read(name: &str) -> ReadOutcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    read_path(&path, pyrite_ops::registry(), &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn files_of_every_version_are_read() {
    for (name, inputs, results, says) in FILES {
        let outcome = read(name);
        let graph = &outcome.graph;
        assert!(verify(graph, None).is_empty(), "{name}: {:?}", verify(graph, None));
        assert_eq!(graph.placeholders().count(), inputs, "{name}");
        assert!(matches!(graph.output(), Value::List(items) if items.len() == results), "{name}");
        if let Some((key, value)) = says {
            assert_eq!(outcome.get(key), Some(value), "{name}");
        }
        // Without annotations and inputs nothing can be known.
        if name != "torch_2_15_dynamo_code.py" {
            for (_, node) in graph.nodes() {
                let silent = matches!(&node.kind, Kind::Call(Target::Opaque(f)) if f.ends_with("_set_grad_enabled"));
                assert!(node.meta.is_some() || node.kind == Kind::Output || silent, "{name}: {} is unknown", node.name);
            }
        }
        for note in &outcome.notes {
            assert_ne!(note.code.name(), "reader::annotation-differs", "{note}");
        }
    }
}

#[test]
fn files_of_every_version_survive_a_round_trip() {
    for (name, ..) in FILES {
        let outcome = read(name);
        let info = ReproInfo { metadata: Vec::new(), inputs: outcome.inputs.clone(), main: None };
        let options = PrintOptions { class_name: Some("Repro"), ..PrintOptions::default() };
        let text = print_repro(&outcome.graph, &info, &options);
        let again = read_text(&text, None, pyrite_ops::registry(), &ReadOptions::default())
            .unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        assert!(again.graph == outcome.graph, "{name}\n{text}");
        assert_eq!(again.inputs, outcome.inputs, "{name}");
        if name != "torch_2_15_dynamo_code.py" {
            assert_eq!(print(&again.graph, &options), print(&outcome.graph, &options), "{name}");
        }
    }
}

#[test]
fn both_dynamo_files_hold_the_same_graph() {
    assert!(read("torch_2_15_dynamo_repro.py").graph == read("torch_2_15_dynamo_minifier_launcher.py").graph);
    assert!(read("torch_2_15_dynamo_repro.py").graph == read("torch_2_15_dynamo_readable.py").graph);
}
