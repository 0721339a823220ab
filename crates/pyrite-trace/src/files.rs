//! What each event does to the files of the debug directory.
//!
//! [`Chronicle::edits`] is the only place that knows the layout. The writer of a running trace and [`crate::rebuild`] both
//! use it, so that `trace.jsonl` alone gives every other file again, byte by byte.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;

use crate::event::{Event, Mark, Record};

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file, in the debug directory.
    pub path: PathBuf,
    /// How its text is changed.
    pub how: How,
    /// The text.
    pub text: String,
}

/// How a file is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The text is the whole file.
    Replace,
    /// The text goes to its end.
    Append,
    /// The file is a JSON array, and the text is its next elements, separated by commas.
    Extend,
}

/// What has to be remembered from one event to the next: the version, and the steps that the profile does not have yet.
#[derive(Debug, Default)]
pub struct Chronicle {
    version: String,
    pid: u32,
    steps: Vec<serde_json::Value>,
}

impl Chronicle {
    /// The changes that an event brings.
    pub fn edits(&mut self, record: &Record) -> Vec<Edit> {
        let mut edits = Vec::new();
        match &record.event {
            Event::Run(run) => {
                self.version = run.versions.get("pyrite").cloned().unwrap_or_default();
                self.pid = run.pid;
                self.steps.push(json!({
                    "name": "process_name", "ph": "M", "pid": run.pid, "args": {"name": format!("pyrite {}", self.version)},
                }));
            }
            Event::Stage(mark) if mark.mark == Mark::End => {
                let seconds = mark.seconds.unwrap_or_default();
                let place = [record.stage.map_or("", |stage| stage.name()), record.graph.as_deref().unwrap_or("")];
                let indent = "  ".repeat(mark.depth as usize);
                let line = format!("{:>10.3} ms  {indent}{}  {}\n", seconds * 1e3, mark.name, place.join("/"));
                edits.push(append("timings.txt", line));
                let (begin, length) = ((record.time - seconds) * 1e6, seconds * 1e6);
                self.steps.push(json!({
                    "name": mark.name, "cat": place[0], "ph": "X", "ts": begin.round(), "dur": length.round(),
                    "pid": self.pid, "tid": 1, "args": {"graph": record.graph},
                }));
                if mark.depth == 0 {
                    edits.push(self.profile());
                }
            }
            Event::Graph(graph) => edits.push(replace(record, &graph.file, &graph.text)),
            Event::Artifact(artifact) => edits.push(replace(record, &artifact.file, &artifact.text)),
            Event::Guard(guard) => edits.push(append_beside(record, "guards.txt", format!("{}\n", guard.guard))),
            Event::Break(_) => edits.push(append("graph_breaks.txt", format!("{}\n", describe(record)))),
            Event::Recompile(_) => edits.push(append("recompiles.txt", format!("{}\n", describe(record)))),
            Event::Kernel(kernel) => {
                let mut text = format!("// {}: {} bytes", kernel.name, kernel.bytes);
                let _ = writeln!(text, "\n{}", beside(&kernel.loops, &kernel.disassembly));
                edits.push(append_beside(record, "output_code.txt", text));
            }
            Event::Log(line) if line.log == "perf_hints" => {
                edits.push(append_beside(record, "perf_hints.txt", format!("{}\n", line.text)));
            }
            _ => {}
        }
        if let Some(stage) = record.stage {
            let line = format!("[{:>11.6}] {}\n", record.time, describe(record));
            edits.push(append(&format!("{}/debug.log", stage.name()), line));
        }
        edits
    }

    /// The first line of a new file, for formats that have comments.
    pub fn header(&self, edit: &Edit) -> String {
        match edit.path.extension().and_then(|extension| extension.to_str()) {
            Some("py" | "txt" | "log") => format!("# pyrite {}: {}\n", self.version, edit.path.display()),
            _ => String::new(),
        }
    }

    /// The steps since the last time, in the form that trace viewers of browsers read: an array of events.
    fn profile(&mut self) -> Edit {
        let steps: Vec<String> = self.steps.drain(..).map(|step| step.to_string()).collect();
        Edit { path: "compile_profile.json".into(), how: How::Extend, text: steps.join(",\n") }
    }
}

fn append(path: &str, text: String) -> Edit {
    Edit { path: path.into(), how: How::Append, text }
}

fn append_beside(record: &Record, file: &str, text: String) -> Edit {
    Edit { path: place(record, file), how: How::Append, text }
}

fn replace(record: &Record, file: &str, text: &str) -> Edit {
    Edit { path: place(record, file), how: How::Replace, text: text.to_owned() }
}

/// The path of a file for the stage and the graph at hand.
fn place(record: &Record, file: &str) -> PathBuf {
    let stage = record.stage.map(|stage| stage.name().to_owned());
    let graph = record.graph.as_deref().map(folder_name);
    stage.into_iter().chain(graph).chain([folder_name(file)]).collect()
}

/// A name that is one folder or file on every system.
fn folder_name(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(kept).collect();
    if name.is_empty() || name.chars().all(|c| c == '.') { "_".to_owned() } else { name }
}

/// Two texts side by side.
fn beside(left: &str, right: &str) -> String {
    let width = left.lines().map(|line| line.chars().count()).max().unwrap_or(0).clamp(20, 100);
    let (mut left, mut right) = (left.lines(), right.lines());
    let mut text = String::new();
    loop {
        match (left.next(), right.next()) {
            (None, None) => return text,
            (l, None) => {
                text.push_str(l.unwrap_or_default());
            }
            (l, Some(r)) => {
                let l = l.unwrap_or_default();
                text.push_str(l);
                text.extend(std::iter::repeat_n(' ', width.saturating_sub(l.chars().count())));
                text.push_str(" | ");
                text.push_str(r);
            }
        }
        text.push('\n');
    }
}

/// An event in a line, for logs and people. Events that carry a text have more than one.
pub fn describe(record: &Record) -> String {
    let graph = record.graph.as_deref().unwrap_or("");
    match &record.event {
        Event::Run(run) => format!("run: {}", run.argv.join(" ")),
        Event::Stage(mark) => match (mark.mark, mark.seconds) {
            (Mark::End, Some(seconds)) => format!("{graph}: {} took {:.3} ms", mark.name, seconds * 1e3),
            _ => format!("{graph}: {} begins", mark.name),
        },
        Event::Graph(dump) => format!("{graph}: {} with {} nodes", dump.file, dump.nodes.len()),
        Event::Artifact(artifact) => format!("{graph}: {}", artifact.file),
        Event::Break(found) => {
            let mut text = if found.skipped {
                format!("{} runs plain: {}", found.function, found.reason)
            } else {
                format!("the graph of {} ends: {}", found.function, found.reason)
            };
            for frame in &found.stack {
                let _ = write!(text, "\n  File \"{}\", line {}, in {}", frame.file, frame.line, frame.function);
                if let Some(source) = &frame.source {
                    let _ = write!(text, "\n    {}", source.trim());
                }
            }
            if let Some(hint) = &found.hint {
                let _ = write!(text, "\n  remedy: {hint}");
            }
            text
        }
        Event::Recompile(again) => format!(
            "{} ({}:{}) is recompiled, no cached code matches (number {}): {}",
            again.function, again.file, again.line, again.times, again.guard
        ),
        Event::Guard(guard) => format!("{graph}: guard {}", guard.guard),
        Event::Kernel(kernel) => format!("{graph}: kernel {} of {} bytes", kernel.name, kernel.bytes),
        Event::KernelTime(time) => format!("{graph}: {} took {:.1} µs", time.name, time.seconds * 1e6),
        Event::Divergence(node) => match &node.value {
            Some(value) => format!("{} ({}): {value}", node.node, node.op),
            None => format!("{} ({}) agrees", node.node, node.op),
        },
        Event::Minify(step) => format!(
            "query {} of {}: {}; best has {} nodes, {} elements",
            step.query, step.pass, step.verdict, step.nodes, step.elements
        ),
        Event::Finding(found) => format!("{}: {}", found.step, found.text),
        Event::Repro(repro) => format!("repro {}: {}", repro.path, repro.signature),
        Event::Log(line) => line.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_graphs_cannot_leave_the_directory() {
        assert_eq!(folder_name("../../etc"), ".._.._etc");
        assert_eq!(folder_name(".."), "_");
        assert_eq!(folder_name("f.<locals>.g_0"), "f._locals_.g_0");
    }

    #[test]
    fn loops_stand_beside_their_instructions() {
        let text = beside("for (i = 0; i < 4; i++)\n  a[i] = 0;", "0000  xor eax,eax\n0002  ret\n0003  nop");
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0], "for (i = 0; i < 4; i++) | 0000  xor eax,eax");
        assert!(rows[2].ends_with("| 0003  nop"));
    }
}
