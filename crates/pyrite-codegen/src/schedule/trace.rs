//! Schedule and programs as text: kernels with their memory dependencies, and calls, in the order they run.

use std::fmt::Write as _;
use std::sync::Arc;

use pyrite_ir::lower::Place;
use pyrite_ir::{Value, dump};
use pyrite_loops::{BufferId, Kernel, c_like, dependencies};
use pyrite_trace::event::{Artifact, Kernel as KernelEvent};
use pyrite_trace::{Event, Level, Topic};
use rustc_hash::FxHashMap;

use super::{AsKernel, Buffer, ExternCall, Op, Origin, Schedule, buffer_name, places};
use crate::bmm::Link;
use crate::loops::Loops;

/// A kernel with its memory dependencies.
pub fn kernel(buffers: &[Buffer], kernel: &Kernel) -> String {
    let computed = |buffer: BufferId| buffers[buffer.0 as usize].origin == Origin::Computed;
    dependencies(kernel, &|buffer| buffer_name(buffers, buffer), &computed)
}

/// A call of an operator.
pub fn call(buffers: &[Buffer], call: &ExternCall) -> String {
    let named = |value: &Value<Place>| -> Vec<String> {
        places(value).into_iter().map(|buffer| buffer_name(buffers, buffer)).collect()
    };
    let read: Vec<String> = call.args.iter().flat_map(named).collect();
    format!("{} = {}({})", named(&call.results).join(", "), call.op.name(), read.join(", "))
}

/// A program as statements in the order they run, kernels with their memory dependencies.
pub fn listing<K: AsKernel>(schedule: &Schedule<K>) -> String {
    let buffers = &schedule.buffers;
    let mut text = String::new();
    for statement in &schedule.statements {
        let _ = match &statement.op {
            Op::Loop(loops) => writeln!(text, "{}", kernel(buffers, loops.kernel())),
            Op::Call(extern_call) => writeln!(text, "{}\n", call(buffers, extern_call)),
            Op::Conv(conv) => writeln!(text, "{}, in transformed tiles\n", call(buffers, &conv.call)),
            Op::Gemm(gemm) => match &gemm.epilogue {
                Some(epilogue) => {
                    let own = epilogue.kernel.kernel();
                    writeln!(text, "{}, epilogue {}", call(buffers, &gemm.call), own.name)
                        .and_then(|()| writeln!(text, "{}", kernel(buffers, own)))
                }
                None => writeln!(text, "{}\n", call(buffers, &gemm.call)),
            },
            Op::Bmm(fused) => {
                list_links(&mut text, buffers, &fused.links);
                Ok(())
            }
        };
    }
    text
}

fn list_links<K: AsKernel>(text: &mut String, buffers: &[Buffer], links: &[Link<K>]) {
    for (at, link) in links.iter().enumerate() {
        let next = links.get(at + 1).map_or(String::new(), |next| match next {
            Link::Kernel(loops, _) => format!(", epilogue {}", loops.kernel().name),
            Link::Bmm(bmm) => format!(", prologue of {}", bmm.node.name),
        });
        let _ = match link {
            Link::Kernel(loops, _) if next.is_empty() => writeln!(text, "{}", kernel(buffers, loops.kernel())),
            Link::Kernel(loops, _) => {
                let own = loops.kernel();
                writeln!(text, "{}{}{next}\n", kernel(buffers, own), own.name)
            }
            Link::Bmm(bmm) => {
                let name = |buffer| buffer_name(buffers, buffer);
                let (out, lhs, rhs) = (name(bmm.out.buffer), name(bmm.lhs.buffer), name(bmm.rhs.buffer));
                writeln!(text, "{out} = {}({lhs}, {rhs}){next}\n", bmm.op.name())
            }
        };
    }
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

/// Tells the trace of the program before kernels are fused.
pub(crate) fn tell_lowered(schedule: &Schedule) {
    pyrite_trace::emit(Topic::IrPreFusion, || artifact(Topic::IrPreFusion, listing(schedule)));
    for operator in &schedule.fallbacks {
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
