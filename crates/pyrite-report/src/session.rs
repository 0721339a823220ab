//! The folder of a debugging session that has no trace: `repro.py`, `passing.py`, `report.md`.

use std::fs;
use std::path::Path;

use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, read_text};

use crate::folder::file_at;
use crate::from_trace::nodes_of;
use crate::view::{Found, GraphView, Repro, RunView};

/// The smallest program that fails.
pub const REPRO: &str = "repro.py";
/// The largest part of a failing program that passes.
const PASSING: &str = "passing.py";
/// What the session found, for people.
const STORY: &str = "report.md";

/// Reads such a folder; nothing where there is no repro.
pub fn read(folder: &Path) -> Option<RunView> {
    let text = own_text(folder, REPRO)?;
    let mut run = RunView::default();
    for name in [REPRO, PASSING] {
        let Some(text) = own_text(folder, name) else { continue };
        let place = run.files.len();
        if let Some((graph, metadata)) = graph_of(&text, folder, name, place) {
            run.graphs.push(graph);
            if name == REPRO {
                run.signature = metadata.iter().find(|(key, _)| key == "signature").map(|(_, value)| value.clone());
                run.facts = metadata;
            }
        }
        run.files.push(file_at(name, text));
    }
    if let Some(story) = own_text(folder, STORY) {
        run.findings = findings(&story);
    }
    run.title = run.signature.clone().unwrap_or_else(|| "a debugging session".to_owned());
    run.subtitle = folder.display().to_string();
    run.repro = Some(Repro { path: REPRO.to_owned(), text, proven: None });
    Some(run)
}

/// The text of a file of the folder: a link may lead to what is none of the page's, and a pipe never ends.
fn own_text(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name);
    fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
    fs::read_to_string(path).ok()
}

/// The graph of a program's text, and what the text says of itself; nothing where it cannot be read.
fn graph_of(text: &str, folder: &Path, name: &str, place: usize) -> Option<(GraphView, Vec<(String, String)>)> {
    let options = ReadOptions { folder: Some(folder.to_owned()), ..ReadOptions::default() };
    let read = read_text(text, Some(&folder.join(name)), registry(), &options).ok()?;
    let dump = pyrite_ir::dump::dump(&read.graph, name);
    let nodes = nodes_of(dump.nodes, &dump.edges);
    let stem = name.trim_end_matches(".py").to_owned();
    let metadata = read.metadata.into_iter().map(|entry| (entry.key, entry.value)).collect();
    Some((GraphView { name: Some(stem), stage: None, file: name.to_owned(), text: Some(place), nodes }, metadata))
}

/// The steps that the session's story lists.
fn findings(story: &str) -> Vec<Found> {
    let section = story.split("## What was found").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let entries = section.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    entries.map(|(step, text)| Found { step: step.to_owned(), text: text.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_story_are_those_of_its_first_list() {
        let story = "# x\n\n## What was found\n\n- confirm: 3 of 3 runs\n- prove: so\n\n## Environment\n\n- os: y\n";
        let found = findings(story);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].step.as_str(), found[0].text.as_str()), ("confirm", "3 of 3 runs"));
    }
}
