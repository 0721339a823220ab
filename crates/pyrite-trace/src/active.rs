//! The trace and the logs of this process, and the calls that feed them.
//!
//! One number says which topics anybody wants. While nobody does, [`wanted`], [`emit`], [`log`] and [`step`] cost one
//! relaxed load each and build nothing.
//!
//! Which stage and which graph are at work is kept for each thread: [`stage`] and [`graph`] give a [`Scope`] that ends
//! when it is dropped.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::directory::{Directory, Files, TraceError};
use crate::event::{Event, Level, LogLine, Mark, Record, Run, Stage, StageMark};
use crate::files::describe;
use crate::select::{LogLevels, Topics};
use crate::topic::Topic;
use crate::writer::Writer;

/// The topics that anybody wants.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// The number of the next graph.
static GRAPHS: AtomicU32 = AtomicU32::new(0);

/// Shows a line of a log.
pub type LogSink = Arc<dyn Fn(Topic, Level, &str) + Send + Sync>;

struct State {
    trace: Option<Trace>,
    levels: Option<LogLevels>,
    sink: Option<LogSink>,
}

struct Trace {
    writer: Writer,
    topics: Topics,
    begun: Instant,
}

static STATE: Mutex<State> = Mutex::new(State { trace: None, levels: None, sink: None });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn announce(&self) {
        let traced = self.trace.as_ref().map_or(0, |trace| trace.topics.bits());
        let logged = if self.sink.is_some() { self.levels.as_ref().map_or(0, LogLevels::bits) } else { 0 };
        WANTED.store(traced | logged, Ordering::Relaxed);
    }
}

/// How a trace is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its folder.
    pub folder: PathBuf,
    /// What it holds.
    pub topics: Topics,
    /// Which files it has.
    pub files: Files,
    /// The words of the command line.
    pub argv: Vec<String>,
    /// Versions of others that take part, by name.
    pub versions: Vec<(String, String)>,
}

impl Setup {
    /// Everything, in a folder.
    pub fn new(folder: &Path) -> Self {
        let argv = std::env::args().collect();
        Self { folder: folder.to_owned(), topics: Topics::ALL, files: Files::All, argv, versions: Vec::new() }
    }
}

/// Begins a trace. One that was going on ends.
pub fn start(setup: Setup) -> Result<(), TraceError> {
    let mut directory = Directory::create(&setup.folder, setup.files)?;
    let own = ("pyrite".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let run = Run {
        versions: setup.versions.into_iter().chain([own]).collect(),
        argv: setup.argv,
        started: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        pid: std::process::id(),
    };
    directory.write(&Record { time: 0.0, stage: None, graph: None, event: Event::Run(run) })?;
    let writer = Writer::start(directory).map_err(|cause| TraceError::Write { path: setup.folder, cause })?;
    let mut state = state();
    let earlier = state.trace.replace(Trace { writer, topics: setup.topics, begun: Instant::now() });
    state.announce();
    drop(state);
    earlier.map_or(Ok(()), |trace| trace.writer.finish().map(|_| ()))
}

/// Ends the trace, and says where it is, or what could not be written.
pub fn stop() -> Result<Option<PathBuf>, TraceError> {
    let mut state = state();
    let trace = state.trace.take();
    state.announce();
    drop(state);
    trace.map(|trace| trace.writer.finish()).transpose()
}

/// Lets the trace that is going on hold only these topics from here on.
pub fn limit(topics: Topics) {
    let mut state = state();
    if let Some(trace) = &mut state.trace {
        trace.topics = topics;
    }
    state.announce();
}

/// The folder of the trace that is going on.
pub fn folder() -> Option<PathBuf> {
    state().trace.as_ref().map(|trace| trace.writer.folder().to_owned())
}

/// Waits until everything that was told is on disk: whoever runs what was compiled may crash.
pub fn flush() {
    if is_on() {
        let wait = state().trace.as_ref().map(|trace| trace.writer.flush());
        if let Some(wait) = wait {
            wait();
        }
    }
}

/// Says who shows logs, and from which levels on.
pub fn set_logs(levels: LogLevels, sink: LogSink) {
    let mut state = state();
    state.levels = Some(levels);
    state.sink = Some(sink);
    state.announce();
}

/// Whether anybody wants a topic.
#[inline]
pub fn wanted(topic: Topic) -> bool {
    WANTED.load(Ordering::Relaxed) & topic.bit() != 0
}

/// Whether anybody wants anything.
#[inline]
pub fn is_on() -> bool {
    WANTED.load(Ordering::Relaxed) != 0
}

/// Tells an event of a topic, if anybody wants it.
#[inline]
pub fn emit(topic: Topic, event: impl FnOnce() -> Event) {
    if wanted(topic) {
        deliver(topic, Some((topic, Level::Info)), event());
    }
}

/// Tells an event of a topic, if anybody wants it. The trace makes it when its turn comes, on another thread.
#[inline]
pub fn later(topic: Topic, event: impl FnOnce() -> Event + Send + 'static) {
    if !wanted(topic) {
        return;
    }
    let state = state();
    let logged = state.sink.is_some() && state.levels.as_ref().is_some_and(|l| l.shows(topic, Level::Info));
    match &state.trace {
        Some(trace) if !logged && trace.topics.contains(topic) => {
            // Stands in until the event is made.
            let empty = Event::Log(LogLine { log: String::new(), level: Level::Info, text: String::new() });
            trace.writer.make(in_context(trace.begun.elapsed().as_secs_f64(), empty), Box::new(event));
        }
        _ => {
            drop(state);
            deliver(topic, Some((topic, Level::Info)), event());
        }
    }
}

fn in_context(time: f64, event: Event) -> Record {
    CONTEXT.with_borrow(|context| {
        let graph = context.graph.as_ref().map(ToString::to_string);
        Record { time, stage: context.stage, graph, event }
    })
}

/// Tells an event of a topic to the trace alone: the logs hear of it from elsewhere.
#[inline]
pub fn record(topic: Topic, event: impl FnOnce() -> Event) {
    if wanted(topic) {
        deliver(topic, None, event());
    }
}

/// Logs a line. Warnings and errors are shown even where nobody asked.
#[inline]
pub fn log(topic: Topic, level: Level, text: impl FnOnce() -> String) {
    if wanted(topic) || level >= Level::Warning {
        let line = LogLine { log: topic.name().to_owned(), level, text: text() };
        deliver(topic, Some((topic, level)), Event::Log(line));
    }
}

/// Hands an event to the trace, under one topic, and to the logs, maybe under another or not at all.
fn deliver(traced: Topic, logged: Option<(Topic, Level)>, event: Event) {
    let mut record = in_context(0.0, event);
    let state = state();
    let logged = logged.filter(|(topic, level)| state.levels.as_ref().is_some_and(|l| l.shows(*topic, *level)));
    let said = logged.filter(|_| state.sink.is_some()).map(|(topic, level)| (topic, level, shown(&record)));
    if let Some(trace) = &state.trace
        && trace.topics.contains(traced)
    {
        record.time = trace.begun.elapsed().as_secs_f64();
        trace.writer.write(record);
    }
    let sink = state.sink.clone();
    drop(state);
    if let (Some(sink), Some((topic, level, text))) = (sink, said) {
        sink(topic, level, &text);
    }
}

/// An event as logs show it.
fn shown(record: &Record) -> String {
    let named = |file: &str, text: &str| format!("{} {file}\n{text}", record.graph.as_deref().unwrap_or(""));
    match &record.event {
        Event::Graph(graph) => named(&graph.file, &graph.text),
        Event::Artifact(artifact) => named(&artifact.file, &artifact.text),
        Event::Kernel(kernel) => named(&kernel.name, &format!("{}\n{}", kernel.loops, kernel.disassembly)),
        _ => describe(record),
    }
}

/// A name for a graph that no other graph of this process has.
pub fn graph_name(of: &str) -> String {
    format!("{of}_{}", GRAPHS.fetch_add(1, Ordering::Relaxed))
}

#[derive(Default)]
struct Context {
    stage: Option<Stage>,
    graph: Option<Arc<str>>,
    depth: u32,
}

thread_local! {
    static CONTEXT: RefCell<Context> = const { RefCell::new(Context { stage: None, graph: None, depth: 0 }) };
}

/// The graph at work on this thread.
pub fn current_graph() -> Option<Arc<str>> {
    CONTEXT.with_borrow(|context| context.graph.clone())
}

/// Something that goes on until it is dropped.
#[must_use = "a scope ends when it is dropped"]
#[derive(Debug, Default)]
pub struct Scope {
    before: Option<(Option<Stage>, Option<Arc<str>>)>,
    step: Option<(&'static str, Instant)>,
}

/// A stage is at work on this thread until the scope ends.
pub fn stage(stage: Stage) -> Scope {
    if !is_on() {
        return Scope::default();
    }
    let before = CONTEXT.with_borrow_mut(|context| (context.stage.replace(stage), context.graph.clone()));
    let mut scope = step(stage.name());
    scope.before = Some(before);
    scope
}

/// A stage is at work on this thread until the scope ends, but is not timed.
pub fn within(stage: Stage) -> Scope {
    if !is_on() {
        return Scope::default();
    }
    let before = CONTEXT.with_borrow_mut(|context| (context.stage.replace(stage), context.graph.clone()));
    Scope { before: Some(before), step: None }
}

/// A graph is at work on this thread until the scope ends.
pub fn graph(name: impl FnOnce() -> String) -> Scope {
    if !is_on() {
        return Scope::default();
    }
    let name = name();
    let before = CONTEXT.with_borrow_mut(|context| (context.stage, context.graph.replace(name.into())));
    Scope { before: Some(before), step: None }
}

/// A step of the stage at work, timed until the scope ends.
pub fn step(name: &'static str) -> Scope {
    if !is_on() {
        return Scope::default();
    }
    mark(name, Mark::Begin, None);
    CONTEXT.with_borrow_mut(|context| context.depth += 1);
    Scope { before: None, step: Some((name, Instant::now())) }
}

/// Tells that a step begins or ends: to the trace among the timings, to the logs as a line of the stage.
fn mark(name: &str, mark: Mark, seconds: Option<f64>) {
    let (stage, depth) = CONTEXT.with_borrow(|context| (context.stage, context.depth));
    let component = match stage {
        Some(Stage::Capture) => Topic::Capture,
        Some(Stage::Aot) => Topic::Aot,
        Some(Stage::Native) => Topic::Native,
        _ => Topic::Debug,
    };
    if wanted(Topic::Timings) || wanted(component) {
        let level = if mark == Mark::End && depth == 0 { Level::Info } else { Level::Debug };
        let event = StageMark { name: name.to_owned(), mark, depth, seconds };
        deliver(Topic::Timings, Some((component, level)), Event::Stage(event));
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some((name, begun)) = self.step.take() {
            CONTEXT.with_borrow_mut(|context| context.depth = context.depth.saturating_sub(1));
            mark(name, Mark::End, Some(begun.elapsed().as_secs_f64()));
        }
        if let Some((stage, graph)) = self.before.take() {
            CONTEXT.with_borrow_mut(|context| (context.stage, context.graph) = (stage, graph));
        }
    }
}
