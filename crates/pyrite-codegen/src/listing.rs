//! Pieces and programs as text: kernels with their memory dependencies, and calls, in the order they run.

use std::fmt::Write as _;
use std::sync::Arc;

use pyrite_ir::lower::Place;
use pyrite_ir::{Value, dump};
use pyrite_loops::{BufferId, Kernel, c_like, dependencies};
use pyrite_trace::event::{Artifact, Kernel as KernelEvent};
use pyrite_trace::{Event, Level, Topic};
use rustc_hash::FxHashMap;

use crate::loops::Loops;
use crate::pieces::{Buffer, Origin, Outside, Piece, Pieces};
use crate::schedule::places;

/// The name of a buffer.
pub fn buffer_name(buffers: &[Buffer], buffer: BufferId) -> String {
    match &buffers[buffer.0 as usize].origin {
        Origin::Input(number) => format!("input{number}"),
        Origin::Constant(name) => name.to_string(),
        Origin::Computed => format!("buf{}", buffer.0),
        Origin::Scratch => format!("row{}", buffer.0),
    }
}

/// A kernel with its memory dependencies.
pub fn kernel(buffers: &[Buffer], kernel: &Kernel) -> String {
    let computed = |buffer: BufferId| buffers[buffer.0 as usize].origin == Origin::Computed;
    dependencies(kernel, &|buffer| buffer_name(buffers, buffer), &computed)
}

/// A call of an operator.
pub fn call(buffers: &[Buffer], outside: &Outside) -> String {
    let named = |value: &Value<Place>| -> Vec<String> {
        places(value).into_iter().map(|buffer| buffer_name(buffers, buffer)).collect()
    };
    let read: Vec<String> = outside.args.iter().flat_map(named).collect();
    format!("{} = {}({})", named(&outside.results).join(", "), outside.op.name(), read.join(", "))
}

fn listed(cut: &Pieces) -> String {
    let mut text = String::new();
    for piece in &cut.pieces {
        let _ = match piece {
            Piece::Loops(loops) => writeln!(text, "{}", kernel(&cut.buffers, loops)),
            Piece::Outside(outside) => writeln!(text, "{}\n", call(&cut.buffers, outside)),
        };
    }
    text
}

/// Tells the trace of a graph that is about to be compiled.
pub(crate) fn tell_graph(graph: &pyrite_ir::Graph) {
    pyrite_trace::record(Topic::GraphCode, || artifact(Topic::GraphCode, dump::readable(graph)));
    dump::tell(Topic::GraphRunnable, graph, |graph| {
        let metadata = vec![
            ("pyrite".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("backend".to_owned(), "native".to_owned()),
            ("is_inference".to_owned(), "True".to_owned()),
        ];
        artifact(Topic::GraphRunnable, dump::runnable(graph, metadata))
    });
}

/// Tells the trace of the pieces before they are fused.
pub(crate) fn tell_pieces(cut: &Pieces) {
    pyrite_trace::emit(Topic::IrPreFusion, || artifact(Topic::IrPreFusion, listed(cut)));
    for operator in &cut.fallbacks {
        pyrite_trace::log(Topic::PerfHints, Level::Info, || {
            format!("{operator} runs by its reference kernel: the native compiler has no loops for this case of it")
        });
    }
}

/// Tells the trace of the program, in the order it runs.
pub(crate) fn tell_schedule(text: impl FnOnce() -> String) {
    pyrite_trace::emit(Topic::Schedule, || artifact(Topic::Schedule, text()));
}

/// Tells the trace of the code of kernels. Code that another kernel of the program has too is told once.
pub(crate) fn tell_kernels<'a>(buffers: &[Buffer], kernels: impl Iterator<Item = &'a Loops>) {
    if !pyrite_trace::wanted(Topic::OutputCode) {
        return;
    }
    let names: Arc<Vec<String>> =
        Arc::new((0..buffers.len()).map(|id| buffer_name(buffers, BufferId(id as u32))).collect());
    let mut known: FxHashMap<Vec<u8>, String> = FxHashMap::default();
    for loops in kernels {
        let (kernel, names) = (loops.kernel.clone(), names.clone());
        let machine = loops.machine();
        let bytes = machine.as_ref().map_or(0, |machine| machine.instructions.len() + machine.data);
        let text: Box<dyn FnOnce() -> String + Send> = match machine {
            None => Box::new(String::new),
            Some(machine) => {
                if let Some(twin) = known.get(&machine.instructions) {
                    let twin = twin.clone();
                    Box::new(move || format!("the same instructions as those of {twin}\n"))
                } else {
                    known.insert(machine.instructions.clone(), kernel.name.clone());
                    Box::new(move || machine.disassembly())
                }
            }
        };
        pyrite_trace::later(Topic::OutputCode, move || {
            let loops = c_like(&kernel, &|buffer| names[buffer.0 as usize].clone());
            Event::Kernel(KernelEvent { name: kernel.name, loops, disassembly: text(), bytes })
        });
    }
}

fn artifact(topic: Topic, text: String) -> Event {
    let row = topic.row();
    Event::Artifact(Artifact { name: row.name.to_owned(), file: row.file.to_owned(), text })
}
