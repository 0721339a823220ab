//! What a trace holds of a capture: the graph, the guards, the bytecode before and what runs after, breaks, and why a
//! frame was captured again.

use pyo3::prelude::*;
use pyrite_capture::plan::{Break, End};
use pyrite_ir::dump::dump;
use pyrite_trace::event::{Artifact, Break as BreakEvent, Frame, Guard, Recompile};
use pyrite_trace::{Event, Stage, Topic};

use super::compile::Job;
use super::records::describe_guard;
use super::store::{Kept, Miss};
use crate::modules::import;

/// A name for the graph of a frame.
pub fn graph_name(job: &Job<'_, '_>) -> String {
    let name = &job.state.code.qualified_name;
    pyrite_trace::graph_name(name.rsplit('.').next().unwrap_or(name))
}

/// Tells the trace of a captured frame.
pub fn tell_captured(job: &Job<'_, '_>, kept: &Kept, miss: &Miss) {
    if !pyrite_trace::is_on() {
        return;
    }
    let _stage = pyrite_trace::within(Stage::Capture);
    if let Some(graph) = &kept.plan.graph {
        pyrite_trace::record(Topic::GraphCode, || Event::Graph(dump(graph, "graph_readable.py")));
    }
    for guard in (0..kept.walk.guards().len()).filter_map(|guard| describe_guard(&kept.walk, guard)) {
        pyrite_trace::record(Topic::Guards, || Event::Guard(Guard { guard }));
    }
    pyrite_trace::emit(Topic::Bytecode, || {
        let row = Topic::Bytecode.row();
        Event::Artifact(Artifact { name: row.name.to_owned(), file: row.file.to_owned(), text: bytecode(job, kept) })
    });
    if let Some(guard) = miss.describe() {
        pyrite_trace::record(Topic::Recompiles, || {
            let code = &job.state.code;
            Event::Recompile(Recompile {
                function: code.qualified_name.to_string(),
                file: code.file.to_string(),
                line: code.first_line,
                source: guard.split_once(": ").map(|(source, _)| source.to_owned()),
                guard,
                times: job.state.misses.get(),
            })
        });
    }
    if let End::Break(resume) = &kept.plan.end {
        tell_break(job, &resume.why.reason, Some(&resume.why), Goes::On);
    }
}

/// How a frame goes on after a break.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    /// In another graph.
    On,
    /// Without Pyrite.
    Plain,
}

/// Tells the trace of a break.
pub fn tell_break(job: &Job<'_, '_>, reason: &str, why: Option<&Break>, goes: Goes) {
    pyrite_trace::record(Topic::GraphBreaks, || {
        let code = &job.state.code;
        let frame = |(file, line, function): &(std::rc::Rc<str>, u32, std::rc::Rc<str>)| Frame {
            file: file.to_string(),
            line: *line,
            function: function.to_string(),
            source: source_line(job.py, file, *line),
        };
        let stack: Vec<Frame> = why.map(|why| why.stack.iter().map(frame).collect()).unwrap_or_default();
        let last = stack.last().cloned();
        let (file, line) = (code.file.to_string(), code.first_line);
        Event::Break(BreakEvent {
            reason: reason.to_owned(),
            hint: why.and_then(|why| why.hint.clone()),
            function: code.qualified_name.to_string(),
            file: last.as_ref().map_or(file, |frame| frame.file.clone()),
            line: last.as_ref().map_or(line, |frame| frame.line),
            source: last.and_then(|frame| frame.source),
            stack,
            skipped: goes == Goes::Plain,
        })
    });
}

fn source_line(py: Python<'_>, file: &str, line: u32) -> Option<String> {
    let text: String = import(py, "linecache").ok()?.call_method1("getline", (file, line)).ok()?.extract().ok()?;
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The frame's bytecode, and what is done instead of it.
fn bytecode(job: &Job<'_, '_>, kept: &Kept) -> String {
    let plan = &kept.plan;
    let mut text = format!("before:\n{}\nafter: a plan, carried out without bytecode\n", disassembled(job.object));
    for (number, source) in plan.inputs.iter().enumerate() {
        text.push_str(&format!("  input {number}: {source}\n"));
    }
    if plan.graph.is_some() {
        text.push_str(&format!("  run the compiled graph: {} operators\n", plan.op_count));
    }
    for recipe in &plan.recipes {
        text.push_str(&format!("  make {recipe:?}\n"));
    }
    for effect in &plan.effects {
        text.push_str(&format!("  do {effect:?}\n"));
    }
    match &plan.end {
        End::Return(recipe) => text.push_str(&format!("  return object {recipe}\n")),
        End::Break(resume) => {
            text.push_str(&format!("  go on at instruction {} in:\n", resume.first));
            let original = match &job.state.mapping {
                Some(mapping) => mapping.object.bind(job.py).clone(),
                None => job.object.clone(),
            };
            if let Ok(Some(code)) = super::run::code_after(job.py, &original, resume) {
                text.push_str(&disassembled(&code));
            }
        }
    }
    text
}

/// Bytecode as Python's `dis` shows it.
fn disassembled(code: &Bound<'_, PyAny>) -> String {
    let shown = import(code.py(), "dis").and_then(|dis| dis.call_method1("Bytecode", (code,)));
    shown.and_then(|shown| shown.call_method0("dis")).and_then(|text| text.extract()).unwrap_or_default()
}
