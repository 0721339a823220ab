//! Reads what PyTorch dumped: every file in the folder that `PYRITE_DUMPS` names, by default the dumps of several versions
//! of PyTorch beside this file.

use std::path::{Path, PathBuf};

use pyrite_ir::print::{PrintOptions, ReproInfo, print, print_repro};
use pyrite_ir::verify::verify;
use pyrite_reader::{ReadOptions, read_path, read_text};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "py") {
            found.push(path);
        }
    }
}

#[test]
fn dumps_of_models_survive_a_round_trip() {
    let fixtures = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folder = std::env::var_os("PYRITE_DUMPS").map_or_else(fixtures, PathBuf::from);
    let mut found = Vec::new();
    files(&folder, &mut found);
    found.sort();
    assert!(!found.is_empty(), "no dumps in {}", folder.display());
    let registry = pyrite_ops::registry();
    let mut failed = Vec::new();
    for path in found {
        let outcome = match read_path(&path, registry, &ReadOptions::default()) {
            Ok(outcome) => outcome,
            Err(error) => {
                failed.push(format!("{error}"));
                continue;
            }
        };
        let graph = &outcome.graph;
        let unknown = graph.nodes().filter(|(_, n)| n.meta.is_none()).count();
        println!(
            "{}: {} nodes, {unknown} without metadata, {} notes",
            path.display(),
            graph.len(),
            outcome.notes.len()
        );
        for note in &outcome.notes {
            println!("  {note}");
        }
        for problem in verify(graph, Some(&path)) {
            failed.push(problem.to_string());
        }
        let info =
            ReproInfo { metadata: vec![("seed".into(), "0".into())], inputs: outcome.inputs.clone(), main: None };
        let options = PrintOptions { class_name: Some("Repro"), ..PrintOptions::default() };
        let text = print_repro(graph, &info, &options);
        if let Some(out) = std::env::var_os("PYRITE_DUMPS_OUT") {
            let name = path.to_string_lossy().replace('/', "_");
            std::fs::write(Path::new(&out).join(name), &text).unwrap();
        }
        match read_text(&text, Some(&path), registry, &ReadOptions::default()) {
            Ok(again) => {
                if again.graph != *graph || again.inputs != outcome.inputs {
                    failed.push(format!("{}: not equal after a round trip", path.display()));
                } else if print(&again.graph, &options) != print(graph, &options) {
                    let (a, b) = (print(&again.graph, &options), print(graph, &options));
                    let line = a.lines().zip(b.lines()).find(|(a, b)| a != b);
                    failed.push(format!("{}: printed otherwise after a round trip: {line:?}", path.display()));
                }
            }
            Err(error) => failed.push(format!("{} printed: {error}", path.display())),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
