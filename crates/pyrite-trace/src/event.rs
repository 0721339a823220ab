//! What can happen, as data.
//!
//! A [`Record`] is one line of `trace.jsonl`: when, in which stage, for which graph, and what. `docs/trace-format.md`
//! describes every field for readers that are not written in Rust; a test compares the two.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A line of `trace.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since the run began.
    pub time: f64,
    /// The stage at work, if any.
    #[serde(default)]
    pub stage: Option<Stage>,
    /// The graph at hand, if any.
    #[serde(default)]
    pub graph: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// A part of Pyrite that has a folder of its own in the debug directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From a frame to a graph.
    Capture,
    /// From a graph to its forward and backward halves.
    Aot,
    /// From a half to machine code.
    Native,
    /// Confirming, bisecting, minifying, proving.
    Debug,
}

impl Stage {
    /// Its name, which is that of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Aot => "aot",
            Self::Native => "native",
            Self::Debug => "debug",
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run begins: the first line.
    Run(Run),
    /// A step of a stage begins or ends. The step that is named like its stage is the whole stage.
    Stage(StageMark),
    /// A graph as it is at some point.
    Graph(GraphDump),
    /// A file of the debug directory.
    Artifact(Artifact),
    /// A graph had to end before its frame did.
    Break(Break),
    /// A frame was captured again.
    Recompile(Recompile),
    /// What a captured frame assumes.
    Guard(Guard),
    /// A compiled kernel.
    Kernel(Kernel),
    /// How long a kernel, or a call of an operator between kernels, took in a run.
    KernelTime(KernelTime),
    /// How far a backend's value of a node is from the reference's.
    Divergence(Divergence),
    /// A question of the minifier, answered.
    Minify(MinifyStep),
    /// What a step of a debugging session found, in a sentence.
    Finding(Finding),
    /// A repro was written.
    Repro(Repro),
    /// A line for `debug.log` and the logs.
    Log(LogLine),
}

/// The first line of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Versions by name; `pyrite` is always there.
    pub versions: BTreeMap<String, String>,
    /// The words of the command line.
    pub argv: Vec<String>,
    /// When it began, in seconds since 1970.
    pub started: f64,
    /// The process.
    pub pid: u32,
}

/// Whether something begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// It begins.
    Begin,
    /// It ends.
    End,
}

/// The begin or end of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageMark {
    /// The step's name; see [`Event::Stage`].
    pub name: String,
    /// Begin or end.
    pub mark: Mark,
    /// How many steps are around it.
    pub depth: u32,
    /// How long it took, at its end.
    #[serde(default)]
    pub seconds: Option<f64>,
}

/// A graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphDump {
    /// The file it is written to, such as `joint.py`.
    pub file: String,
    /// It as Python that PyTorch and Pyrite read.
    pub text: String,
    /// Its nodes in the order they run.
    pub nodes: Vec<NodeRow>,
    /// Who uses whom: the place of the used node in `nodes`, then that of its user.
    pub edges: Vec<(u32, u32)>,
}

/// A node of a graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Its name in the text.
    pub name: String,
    /// FX's word: `placeholder`, `get_attr`, `call_function` or `output`.
    pub op: String,
    /// What is called or looked up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The path of the module it came from, such as `layers.0.norm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The user's stack, innermost last, a line each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Its sizes, where its value is one tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<Size>>,
    /// Its dtype as PyTorch names it in annotations, such as `f32`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
}

/// A size: a number, or an expression over symbols.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// A number.
    Number(i64),
    /// An expression, as text.
    Symbol(String),
}

/// A file of the debug directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// The name of its row in the table of topics.
    pub name: String,
    /// The file's name.
    pub file: String,
    /// What it holds.
    pub text: String,
}

/// A line of the user's program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function.
    pub function: String,
    /// The line's text, where the file can be read.
    #[serde(default)]
    pub source: Option<String>,
}

/// Why a graph ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// The reason.
    pub reason: String,
    /// How to avoid it.
    #[serde(default)]
    pub hint: Option<String>,
    /// The function that was captured.
    pub function: String,
    /// The file of the line.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The line's text, where the file can be read.
    #[serde(default)]
    pub source: Option<String>,
    /// The user's stack, innermost last.
    pub stack: Vec<Frame>,
    /// Whether the frame runs plain instead of going on after the break.
    #[serde(default)]
    pub skipped: bool,
}

/// Why a frame was captured again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recompile {
    /// The function.
    pub function: String,
    /// Its file.
    pub file: String,
    /// Its first line.
    pub line: u32,
    /// The guard that failed.
    pub guard: String,
    /// What the guard looked at.
    #[serde(default)]
    pub source: Option<String>,
    /// How often frames of this function met no plan that fits.
    pub times: u32,
}

/// What a captured frame assumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// The assumption.
    pub guard: String,
}

/// A compiled kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name: those of the nodes it computes, with `_` between them.
    pub name: String,
    /// Its loops, as readable C-like text.
    pub loops: String,
    /// Its instructions, an address and an instruction a line; empty where it is interpreted.
    pub disassembly: String,
    /// How many bytes of machine code it has.
    pub bytes: usize,
}

/// How long a kernel took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// Its name, or that of the node that is called.
    pub name: String,
    /// Seconds of the run, or of the fastest of several.
    pub seconds: f64,
    /// The operator that is called; empty for a kernel.
    #[serde(default)]
    pub op: String,
}

/// How far a value is from the reference's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// The node.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// How many times larger the backend's error against double precision is than the reference's; `null` where there
    /// is no number. 1 and less is as good as the reference.
    #[serde(default)]
    pub magnitude: Option<f64>,
    /// The backend's relative error against double precision.
    #[serde(default)]
    pub backend_error: Option<f64>,
    /// The reference's.
    #[serde(default)]
    pub reference_error: Option<f64>,
    /// Which part of the contract differs; `null` where the two agree.
    #[serde(default)]
    pub class: Option<String>,
    /// The difference in a sentence.
    #[serde(default)]
    pub value: Option<String>,
    /// Where in the value the two differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// Where in a value two results differ. The value is a matrix, its last dimension across; an error is a part of the expected
/// value's root mean square.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Rows of cells, a digit each: 0 where all elements are equal, 9 where the largest error is at least 1, 8 where it is
    /// at least a tenth, and so on.
    pub map: Vec<String>,
    /// Elements of a cell, down and across.
    pub cell: (u64, u64),
    /// How many elements have each digit.
    pub histogram: Vec<u64>,
}

/// A question of the minifier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MinifyStep {
    /// The question's number, from 1.
    pub query: u64,
    /// Seconds since the search began.
    pub seconds: f64,
    /// The pass that proposed the candidate.
    pub pass: String,
    /// The answer: `pass`, `noise`, `fail`, `flaky` or `invalid`.
    pub verdict: String,
    /// Nodes of the best candidate after the answer, with placeholders and output.
    pub nodes: usize,
    /// Elements of all its inputs.
    pub elements: usize,
    /// The best candidate's text, where the answer made it another.
    #[serde(default)]
    pub text: Option<String>,
}

/// What a step of a session found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The step: `confirm`, `bisect`, `minify`, `prove`, ….
    pub step: String,
    /// What it found, in a sentence.
    pub text: String,
    /// Seconds since the session began.
    #[serde(default)]
    pub seconds: f64,
    /// The same as data.
    #[serde(default)]
    pub data: serde_json::Value,
}

/// A repro.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repro {
    /// Where it is.
    pub path: String,
    /// It.
    pub text: String,
    /// How it fails.
    pub signature: String,
    /// Whether it failed so in a fresh process.
    pub proven: bool,
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For those who follow every step.
    Debug,
    /// What was done.
    Info,
    /// What the user should look at.
    Warning,
    /// What failed.
    Error,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// The log's name in the table of topics.
    pub log: String,
    /// How much it matters.
    pub level: Level,
    /// The line, or lines.
    pub text: String,
}
