//! Where results diverge, node by node.
//!
//! Both run with every value returned, and each value is compared; where double precision can be computed, it says how far
//! either side is from it. The first value that differs is where to look; the worst is where it shows most.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pyrite_compare::{Difference, Report, Results, ValuePath};
use pyrite_compiler::backend::{Backend, Direction};
use pyrite_compiler::{Options, find};
use pyrite_debug::{Broken, Folder, Question, asked, candidate_of, compared, execute};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_interp::Mode;
use pyrite_ir::{Graph, Kind, NodeId, Patch, StorageId, Target, Value};
use pyrite_reduce::Candidate;
use pyrite_tensor::Tensor;
use pyrite_trace::event::{Divergence, Spread};
use pyrite_trace::{Event, Topic};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::Host;
use crate::backend::node_diagnostic;
use crate::spread::spread;

/// Why there is nothing to compare.
#[derive(Debug)]
pub enum Stopped {
    /// The program has no values that can be returned.
    NothingToReturn,
    /// The reference failed.
    Reference(Box<Broken>),
    /// The backend failed.
    Backend(Box<Broken>),
}

impl Stopped {
    /// What to tell of a file.
    pub fn diagnostic(&self, file: &Path) -> Diagnostic {
        let (what, error) = match self {
            Self::NothingToReturn => {
                let problem = Diagnostic::error(Code::new("analyze::no-values"), "the program computes no tensors");
                return problem.at(Location::in_file(file)).hint("`pyrite run` compares what it returns");
            }
            Self::Reference(broken) => ("the reference failed", &broken.error),
            Self::Backend(broken) => ("the backend failed", &broken.error),
        };
        node_diagnostic(file, error, what)
    }
}

/// All values of a program, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Analysis {
    /// A value each.
    pub layers: Vec<Layer>,
    /// Whether double precision judged them.
    pub judged: bool,
}

impl Analysis {
    /// The values at which the two differ.
    pub fn differing(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| layer.difference.is_some())
    }

    /// The first value that differs: where to look.
    pub fn first(&self) -> Option<&Layer> {
        self.differing().next()
    }

    /// The value at which the backend is worst, compared with the reference: where it shows most.
    pub fn worst(&self) -> Option<&Layer> {
        self.differing().max_by(|a, b| a.excess().total_cmp(&b.excess()))
    }

    /// What was found, in a sentence.
    pub fn sentence(&self) -> String {
        let (count, all) = (self.differing().count(), self.layers.len());
        match self.first() {
            Some(first) => format!("{count} of {all} values differ, the first is {}", first.name()),
            None => format!("no single value of {all} differs: it takes operators that are compiled together"),
        }
    }

    /// The same as data.
    pub fn data(&self) -> Json {
        let first = self.first().map(Layer::name);
        json!({"values": self.layers.len(), "differ": self.differing().count(), "first": first})
    }

    /// Tells the trace of every value.
    pub fn tell_trace(&self) {
        self.layers.iter().for_each(Layer::tell_trace);
    }
}

/// Whose values they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The reference's.
    Reference,
    /// The backend's.
    Backend,
    /// Those in double precision.
    Float64,
}

/// Is given the values of each side, with the names of their nodes.
pub type Keeper<'a> = dyn FnMut(Side, Vec<(String, Tensor)>) + 'a;

/// Runs a backend and the reference with every value returned, and compares value by value.
pub fn analyze(
    whole: &Candidate,
    backend: &Backend,
    reference: &Backend,
    options: &pyrite_compare::Options,
    keep: &mut Keeper<'_>,
) -> Result<Analysis, Stopped> {
    let (all, names) = returning_all(whole).ok_or(Stopped::NothingToReturn)?;
    let run = |backend, mode| {
        let options = Options { seed: whole.seed, mode, direction: Direction::Forward, ..Options::default() };
        execute(&all.graph, &all.inputs, backend, &options, &mut |_| {}, &mut |_, _| {})
    };
    let expected = run(reference, Mode::Eager).map_err(|broken| Stopped::Reference(Box::new(broken)))?;
    let actual = run(backend, Mode::Eager).map_err(|broken| Stopped::Backend(Box::new(broken)))?;
    let exact = run(reference, Mode::Fp64).ok().map(|exact| compared(&exact.results));
    let (expected, actual) = (compared(&expected.results), compared(&actual.results));
    let sides = [(Side::Reference, Some(&expected)), (Side::Backend, Some(&actual)), (Side::Float64, exact.as_ref())];
    for (side, results) in sides {
        let Some(results) = results else { continue };
        let value = |(index, (node, _)): (usize, &(String, String))| {
            Some((node.clone(), results.tensor(&place_of(index))?.clone()))
        };
        keep(side, names.iter().enumerate().filter_map(value).collect());
    }
    let report = pyrite_compare::compare(&expected, &actual, exact.as_ref(), options);
    Ok(Analysis { layers: layers(&names, &expected, &actual, exact.as_ref(), &report), judged: exact.is_some() })
}

/// The same for a file, as a worker does it.
pub(crate) fn analyze_file(path: &Path, question: &Question) -> Result<Analysis, String> {
    let whole = candidate_of(path, question.seed)?;
    let known = |name: &str| find(name).ok_or_else(|| format!("there is no backend `{name}`"));
    let options = question.switches.options(question.accuracy);
    analyze(&whole, &known(&question.backend)?, &known(&question.reference)?, &options, &mut |_, _| {})
        .map_err(|stopped| stopped.diagnostic(path).message)
}

/// The values of a program, from a process of its own: a backend that dies or hangs on a program that returns all of them
/// ends nothing but that. `None` when there is no answer in time.
pub(crate) fn analyze_apart(host: &Host, whole: &Candidate, question: &Question, time: Duration) -> Option<Analysis> {
    #[derive(Deserialize)]
    struct Answer {
        analysis: Analysis,
    }
    let scratch = tempfile::tempdir().ok()?;
    let path = Folder::scratch(scratch.path()).ok()?.write("program.py", whole, &[]).ok()?;
    let seconds = time.as_secs_f64();
    let request = json!({"cmd": "analyze", "file": path, "question": question, "time_limit": seconds, "blob": 0});
    let mut program = Command::new(&host.invocation.program);
    program.args(host.worker_arguments()).arg("worker").arg("--parent").arg(std::process::id().to_string());
    let text = asked(&mut program, &format!("{request}\n"), time)?;
    text.lines().rev().find_map(|line| serde_json::from_str::<Answer>(line).ok()).map(|answer| answer.analysis)
}

/// A value on the way, and how far both sides are from double precision there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Layer {
    /// The node.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// The root mean square error of the reference, as a part of the value's own root mean square.
    pub reference_error: Option<f64>,
    /// That of the backend.
    pub backend_error: Option<f64>,
    /// Which part of the contract differs, where one does.
    pub class: Option<String>,
    /// The difference, in a line.
    pub difference: Option<String>,
    /// Where in the value the two differ, where they do.
    #[serde(default)]
    pub spread: Option<Spread>,
}

impl Layer {
    /// The node and its operator.
    pub fn name(&self) -> String {
        format!("{} ({})", self.node, self.op)
    }

    /// Tells the trace.
    fn tell_trace(&self) {
        pyrite_trace::emit(Topic::Debug, || {
            let excess = self.excess();
            Event::Divergence(Divergence {
                node: self.node.clone(),
                op: self.op.clone(),
                magnitude: excess.is_finite().then_some(excess),
                backend_error: self.backend_error,
                reference_error: self.reference_error,
                class: self.class.clone(),
                value: self.difference.clone(),
                spread: self.spread.clone(),
            })
        });
    }

    /// How much worse the backend is; what has no number is worst.
    fn excess(&self) -> f64 {
        match (self.reference_error, self.backend_error) {
            (Some(own), Some(other)) => other / own.max(f64::EPSILON),
            _ => f64::INFINITY,
        }
    }
}

/// Where a value is found among the results.
fn place_of(index: usize) -> ValuePath {
    ValuePath { group: "outputs".to_owned(), name: index.to_string(), path: Vec::new() }
}

fn layers(
    names: &[(String, String)],
    expected: &Results,
    actual: &Results,
    exact: Option<&Results>,
    report: &Report,
) -> Vec<Layer> {
    let layer = |(index, (node, op)): (usize, &(String, String))| {
        let place = place_of(index);
        let error = |side: &Results| relative_error(exact?.tensor(&place)?, side.tensor(&place)?);
        let difference = report.differences.iter().find(|difference| difference.place == place);
        Layer {
            node: node.clone(),
            op: op.clone(),
            reference_error: error(expected),
            backend_error: error(actual),
            class: difference.map(|difference| difference.class.name().to_owned()),
            difference: difference.map(without_place),
            spread: difference.and_then(|_| spread(expected.tensor(&place)?, actual.tensor(&place)?)),
        }
    };
    names.iter().enumerate().map(layer).collect()
}

/// A difference without its place: what is returned here are values on the way, and no outputs.
fn without_place(difference: &Difference) -> String {
    let text = difference.to_string();
    text.strip_prefix(&format!("{}: ", difference.place)).map_or_else(|| text.clone(), str::to_owned)
}

/// The root mean square error as a part of the root mean square of the exact value; over finite floats.
fn relative_error(exact: &Tensor, value: &Tensor) -> Option<f64> {
    if !exact.dtype().is_float() || !value.dtype().is_float() || exact.shape() != value.shape() {
        return None;
    }
    let (mut error, mut size) = (0.0, 0.0);
    for (t, v) in exact.to_f64s().into_iter().zip(value.to_f64s()) {
        if t.is_finite() && v.is_finite() {
            error += (v - t) * (v - t);
            size += t * t;
        }
    }
    Some(if size > 0.0 { (error / size).sqrt() } else { error.sqrt() })
}

/// The nodes whose memory a later operator writes to.
fn overwritten(graph: &Graph) -> BTreeSet<NodeId> {
    let mut found = BTreeSet::new();
    let mut before: Vec<(NodeId, StorageId)> = Vec::new();
    for (id, node) in graph.nodes() {
        if let Kind::Call(Target::Op(op)) = &node.kind {
            let written = op.schema.params.iter().zip(&node.args);
            let written = written.filter(|(param, _)| param.alias.as_ref().is_some_and(|alias| alias.written));
            for (_, value) in written {
                value.each(&mut |written| {
                    let storage = storage_of(graph, *written);
                    found.extend(before.iter().filter(|(_, other)| Some(*other) == storage).map(|(id, _)| *id));
                });
            }
        }
        before.extend(storage_of(graph, id).map(|storage| (id, storage)));
    }
    found
}

fn storage_of(graph: &Graph, id: NodeId) -> Option<StorageId> {
    match &graph.node(id).meta {
        Some(Value::Tensor(meta)) => Some(meta.storage),
        _ => None,
    }
}

/// The program with every tensor it computes returned, and their names. A value that a later operator writes over is left
/// out: what would be returned of it is the other's doing.
fn returning_all(whole: &Candidate) -> Option<(Candidate, Vec<(String, String)>)> {
    let mut graph = whole.graph.clone();
    let overwritten = overwritten(&graph);
    let mut names = Vec::new();
    let mut values: Vec<NodeId> = Vec::new();
    let mut output = None;
    for (id, node) in whole.graph.nodes() {
        match (&node.kind, &node.meta) {
            (Kind::Call(target), Some(Value::Tensor(_))) if !overwritten.contains(&id) => {
                names.push((node.name.clone(), target.name().to_owned()));
                values.push(id);
            }
            (Kind::Output, _) => output = Some(id),
            _ => {}
        }
    }
    let mut patch = Patch::new(&graph, "return-all");
    patch.set_args(output?, vec![values.into()]);
    graph.apply(&patch).ok()?;
    Some((Candidate { graph, ..whole.clone() }, names))
}
