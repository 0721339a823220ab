//! What a page shows of a run, as data. The scripts of the page read exactly this.

use pyrite_trace::event::{Break, Guard, MinifyStep, Recompile, Spread};
use serde::Serialize;

/// A run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunView {
    /// What it came to, in a line.
    pub title: String,
    /// The command, in a line.
    pub subtitle: String,
    /// The folder's name.
    pub folder: String,
    /// How it failed.
    pub signature: Option<String>,
    /// When it began, in seconds since 1970.
    pub started: Option<f64>,
    /// Names and values: command, versions.
    pub facts: Vec<(String, String)>,
    /// What the steps of a debugging session found.
    pub findings: Vec<Found>,
    /// Steps of stages, in the order they began.
    pub stages: Vec<StepView>,
    /// Graphs, in the order they came.
    pub graphs: Vec<GraphView>,
    /// Breaks of capture.
    pub breaks: Vec<Break>,
    /// Frames that were captured again.
    pub recompiles: Vec<Recompile>,
    /// What captured frames assume.
    pub guards: Vec<OfGraph<Guard>>,
    /// Compiled kernels.
    pub kernels: Vec<OfGraph<KernelView>>,
    /// Questions of the minifier.
    pub minify: Vec<MinifyStep>,
    /// The smallest program.
    pub repro: Option<Repro>,
    /// The user's lines that breaks and recompiles name.
    pub sources: Vec<SourceView>,
    /// Texts of the run, by path.
    pub files: Vec<File>,
}

/// What a step found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The step.
    pub step: String,
    /// What it found.
    pub text: String,
}

/// Something that belongs to a graph.
#[derive(Clone, Debug, Serialize)]
pub struct OfGraph<T> {
    /// The graph's name.
    pub graph: Option<String>,
    /// What it is.
    #[serde(flatten)]
    pub what: T,
}

/// A compiled kernel, or a call of an operator between kernels.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelView {
    /// Its name, or that of the node that is called.
    pub name: String,
    /// Its loops, as text; empty for a call.
    pub loops: String,
    /// Its instructions; empty for a call, and where it is interpreted.
    pub disassembly: String,
    /// How many bytes of machine code it has.
    pub bytes: usize,
    /// The operator that is called; empty for a kernel.
    pub op: String,
    /// Seconds of its fastest run; `null` where none was timed.
    pub seconds: Option<f64>,
}

/// A step of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepView {
    /// Its name.
    pub name: String,
    /// The stage's name.
    pub stage: Option<String>,
    /// The graph's name.
    pub graph: Option<String>,
    /// When it began, in seconds since the run did.
    pub start: f64,
    /// How long it took, or how long the trace follows it where it did not end.
    pub seconds: f64,
    /// How many steps are around it.
    pub depth: u32,
    /// Whether its end is in the trace. A step without an end is where a run died.
    pub ended: bool,
}

/// A graph.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GraphView {
    /// Its name.
    pub name: Option<String>,
    /// The stage's name.
    pub stage: Option<String>,
    /// The name of its file.
    pub file: String,
    /// The place of its text in [`Run::files`].
    pub text: Option<usize>,
    /// Its nodes, in the order they run.
    pub nodes: Vec<NodeView>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// FX's word for what it is.
    pub op: String,
    /// What is called.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The module it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The user's stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Its sizes, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// Its dtype.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// The places of the nodes it uses.
    pub inputs: Vec<u32>,
    /// How far its value is from the reference's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Divergence>,
}

/// How far a value is from the reference's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// The relative error of the backend against double precision.
    pub error: Option<f64>,
    /// That of the reference.
    pub reference: Option<f64>,
    /// Which part of the contract differs; none where the two agree.
    pub class: Option<String>,
    /// The difference in a sentence.
    pub value: Option<String>,
    /// Where in the value the two differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// The smallest program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repro {
    /// Where it is, in the folder where it is there.
    pub path: String,
    /// It.
    pub text: String,
    /// Whether it failed so in a fresh process; unknown without a trace.
    pub proven: Option<bool>,
}

/// Lines of a file of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceView {
    /// The file.
    pub file: String,
    /// The lines around those that are named.
    pub lines: Vec<SourceLine>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceLine {
    /// Its number, from 1.
    pub line: u32,
    /// It.
    pub text: String,
}

/// A text of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    /// Where it is, from the run's folder.
    pub path: String,
    /// Its name.
    pub name: String,
    /// The stage's name.
    pub stage: Option<String>,
    /// The graph's name.
    pub graph: Option<String>,
    /// It; long ones are cut.
    pub text: String,
}
