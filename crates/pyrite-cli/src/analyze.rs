//! `pyrite analyze FILE`: where do a backend and the reference part, node by node?
//!
//! Both run with every value returned, and each value is compared; where double precision can be computed, it says how far
//! either side is from it. The first value that differs is where to look; the worst is where it shows most.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use pyrite_compare::{Difference, Place, Report, Results};
use pyrite_compiler::Options;
use pyrite_compiler::backend::{Backend, Direction};
use pyrite_debug::{Broken, compared, execute, printed};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_interp::Mode;
use pyrite_ir::{Graph, Kind, NodeId, Patch, StorageId, Target, Value};
use pyrite_reduce::Candidate;
use pyrite_tensor::Tensor;
use pyrite_trace::event::Divergence;
use pyrite_trace::{Event, Stage, Topic};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ExitCode;
use crate::Outcome;
use crate::failure::Failure;
use crate::program::Program;
use crate::result_folder;
use crate::run::{Precision, named, node_diagnostic};
use crate::switches::Comparing;
use crate::tracing;

/// Say, node by node, where a backend and the reference part
#[derive(clap::Args)]
pub struct Analyze {
    /// The file
    file: PathBuf,
    /// Who is looked at
    #[arg(long)]
    backend: String,
    /// Who says what is right
    #[arg(long, default_value = "eager")]
    reference: String,
    /// How closely the two are compared
    #[arg(long, value_enum, default_value = "fp")]
    accuracy: Precision,
    /// The seed of random numbers and of generated inputs [default: what the file says, else 0]
    #[arg(long)]
    seed: Option<u64>,
    /// Keep a trace in this folder, for `pyrite report`
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    comparing: Comparing,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Analyze {
    /// Runs both with every value returned, and compares value by value.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        if let Some(out) = &self.out {
            result_folder::check_unused(out, &self.file)?;
        }
        let (backend, reference) = (named(&self.backend)?, named(&self.reference)?);
        let whole = Program::open(&self.file)?.candidate(self.seed)?;
        let options = self.comparing.switches().options(exact(self.accuracy));
        let Analysis { layers, judged } = analyze(&whole, &backend, &reference, &options).map_err(|stopped| {
            let (what, error) = match &stopped {
                Stopped::NothingToReturn => {
                    let problem = Diagnostic::error(Code::new("analyze::no-values"), "the program computes no tensors")
                        .at(Location::in_file(&self.file));
                    return Failure::of(problem.hint("`pyrite run` compares what it returns"));
                }
                Stopped::Reference(broken) => ("the reference failed", &broken.error),
                Stopped::Backend(broken) => ("the backend failed", &broken.error),
            };
            Failure::of(node_diagnostic(&self.file, error, what))
        })?;
        if let Some(out) = &self.out {
            tracing::begin_in(out);
            let _stage = pyrite_trace::stage(Stage::Debug);
            tracing::tell_program(&whole.graph, "program.py");
            layers.iter().for_each(Layer::tell_trace);
        }
        Ok(self.tell(&backend.name, &reference.name, &layers, judged))
    }

    fn tell(&self, backend: &str, reference: &str, layers: &[Layer], judged: bool) -> ExitCode {
        let parted: Vec<&Layer> = layers.iter().filter(|layer| layer.difference.is_some()).collect();
        let first = parted.first().map(|layer| &layer.node);
        let worst = parted.iter().max_by(|a, b| a.excess().total_cmp(&b.excess())).map(|layer| &layer.node);
        let code = if parted.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
        if self.json {
            let rows: Vec<_> = parted
                .iter()
                .map(|layer| json!({"node": layer.node, "class": layer.class, "difference": layer.difference}))
                .collect();
            let object = json!({
                "verdict": if parted.is_empty() { "pass" } else { "fail" },
                "nodes": layers.len(),
                "first": first,
                "worst": worst,
                "differences": rows,
                "layers": layers,
            });
            println!("{object:#}");
            return code;
        }
        if !judged {
            println!("fp64 cannot be computed: the two are compared with each other");
        }
        if parted.is_empty() {
            println!("{backend} and {reference} agree at all {} values", layers.len());
            println!(
                "if the program fails as a whole, it takes operators that are compiled together: see `pyrite minify`"
            );
            return code;
        }
        println!("{} values, {backend} and {reference} part at {}:", layers.len(), parted.len());
        for layer in parted.iter().take(20) {
            if let (Some(own), Some(other)) = (layer.reference_error, layer.backend_error) {
                println!(
                    "{} ({}): error against fp64 {other:.3e}, that of {reference} {own:.3e}",
                    layer.node, layer.op
                );
            }
            println!("{}: {}", layer.node, layer.difference.as_deref().unwrap_or_default());
        }
        if parted.len() > 20 {
            println!("and {} more", parted.len() - 20);
        }
        if let (Some(first), Some(worst)) = (first, worst) {
            println!("first: {first}, worst: {worst}");
        }
        code
    }
}

/// Why there is nothing to compare.
enum Stopped {
    /// The program has no values that can be returned.
    NothingToReturn,
    /// The reference failed.
    Reference(Box<Broken>),
    /// The backend failed.
    Backend(Box<Broken>),
}

/// All values of a program, in order.
struct Analysis {
    layers: Vec<Layer>,
    /// Whether double precision judged them.
    judged: bool,
}

/// Runs a backend and the reference with every value returned, and compares value by value.
fn analyze(
    whole: &Candidate,
    backend: &Backend,
    reference: &Backend,
    options: &pyrite_compare::Options,
) -> Result<Analysis, Stopped> {
    let (all, names) = returning_all(whole).ok_or(Stopped::NothingToReturn)?;
    let run = |backend, mode| {
        let options = Options { seed: whole.seed, mode, direction: Direction::Forward, ..Options::default() };
        execute(&all.graph, &all.inputs, backend, &options, &mut |_| {}, &mut |_, _| {})
    };
    let expected = run(reference, Mode::Eager).map_err(|broken| Stopped::Reference(Box::new(broken)))?;
    let actual = run(backend, Mode::Eager).map_err(|broken| Stopped::Backend(Box::new(broken)))?;
    let truth = run(reference, Mode::Fp64).ok().map(|truth| compared(&truth.results));
    let (expected, actual) = (compared(&expected.results), compared(&actual.results));
    let report = pyrite_compare::compare(&expected, &actual, truth.as_ref(), options);
    Ok(Analysis { layers: layers(&names, &expected, &actual, truth.as_ref(), &report), judged: truth.is_some() })
}

/// The values of a program, from a process of its own: a backend that dies or hangs on a program that returns all of them
/// ends nothing but that. `None` when there is no answer in time.
pub fn analyze_apart(question: &[String], time: Duration) -> Option<Vec<Layer>> {
    #[derive(Deserialize)]
    struct Answer {
        layers: Vec<Layer>,
    }
    let own = crate::Invocation::own().ok()?;
    let mut program = Command::new(&own.program);
    let text = printed(program.args(crate::worker_arguments(own)).arg("analyze").args(question), time)?;
    serde_json::from_str::<Answer>(&text).ok().map(|answer| answer.layers)
}

/// How closely values are compared.
fn exact(precision: Precision) -> pyrite_compare::Accuracy {
    match precision {
        Precision::Strict => pyrite_compare::Accuracy::Strict,
        Precision::Fp => pyrite_compare::Accuracy::Fp,
        Precision::Off => pyrite_compare::Accuracy::Off,
    }
}

/// A value on the way, and how far both sides are from double precision there.
#[derive(Serialize, Deserialize)]
pub struct Layer {
    node: String,
    op: String,
    /// The root mean square error of the reference, as a part of the value's own root mean square.
    reference_error: Option<f64>,
    /// That of the backend.
    backend_error: Option<f64>,
    class: Option<String>,
    difference: Option<String>,
}

impl Layer {
    /// Whether the two sides part here.
    pub fn parts(&self) -> bool {
        self.difference.is_some()
    }

    /// The node and its operator.
    pub fn name(&self) -> String {
        format!("{} ({})", self.node, self.op)
    }

    /// Tells the trace.
    pub fn tell_trace(&self) {
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

fn layers(
    names: &[(String, String)],
    expected: &Results,
    actual: &Results,
    truth: Option<&Results>,
    report: &Report,
) -> Vec<Layer> {
    let layer = |(index, (node, op)): (usize, &(String, String))| {
        let place = Place { group: "outputs".to_owned(), name: index.to_string(), path: Vec::new() };
        let error = |side: &Results| relative_error(truth?.tensor(&place)?, side.tensor(&place)?);
        let difference = report.differences.iter().find(|difference| difference.place == place);
        Layer {
            node: node.clone(),
            op: op.clone(),
            reference_error: error(expected),
            backend_error: error(actual),
            class: difference.map(|difference| difference.class.name().to_owned()),
            difference: difference.map(without_place),
        }
    };
    names.iter().enumerate().map(layer).collect()
}

/// A difference without its place: what is returned here are values on the way, and no outputs.
fn without_place(difference: &Difference) -> String {
    let text = difference.to_string();
    text.strip_prefix(&format!("{}: ", difference.place)).map_or_else(|| text.clone(), str::to_owned)
}

/// The root mean square error as a part of the root mean square of the truth; over finite floats.
fn relative_error(truth: &Tensor, value: &Tensor) -> Option<f64> {
    if !truth.dtype().is_float() || !value.dtype().is_float() || truth.shape() != value.shape() {
        return None;
    }
    let (mut error, mut size) = (0.0, 0.0);
    for (t, v) in truth.to_f64s().into_iter().zip(value.to_f64s()) {
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
