//! How a backend does on a program, compared with a reference.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use pyrite_compare::{Accuracy, Options as CompareOptions, Outcome, Report, Results as Compared, Role, compare};
use pyrite_compiler::backend::{Backend, Direction, Observer};
use pyrite_compiler::training::{Phase, Results, flatten, run_fwd_maybe_bwd};
use pyrite_compiler::{Options, find};
use pyrite_interp::{Mode, in_double};
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_oracle::{Class, Detail, Signature, Stage, Verdict};
use pyrite_tensor::{Storage, Tensor};
use serde::{Deserialize, Serialize};

use crate::repro::candidate_of;

/// How closely a backend is compared with the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Not at all: only whether it runs.
    Off,
    /// As floating-point numbers, with double precision as the judge.
    #[default]
    Fp,
    /// Bit for bit.
    Strict,
}

/// What is asked about a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// Who is under test.
    pub backend: String,
    /// Who says what is right.
    pub reference: String,
    /// How closely the two are compared.
    pub accuracy: Precision,
    /// Whether gradients are left out.
    pub forward_only: bool,
    /// The seed of random numbers.
    pub seed: u64,
    /// How many optional rewrites the backend may make; all when `None`.
    #[serde(default)]
    pub rewrites: Option<u64>,
}

impl Question {
    fn direction(&self) -> Direction {
        if self.forward_only { Direction::Forward } else { Direction::ForwardAndBackward }
    }
}

/// A backend's failure.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Where on the way.
    pub stage: Stage,
    /// What went wrong.
    pub error: NodeError,
}

impl Broken {
    /// The failure as what a search holds.
    pub fn signature(&self) -> Signature {
        let kind = match &self.error.error {
            OpError::Invalid(_) => "invalid",
            OpError::Unsupported(_) => "unsupported",
            OpError::Fault(_) => "internal",
            OpError::Outside { kind, place, message, stage } => {
                return outside(kind, place.as_deref(), message, stage);
            }
        };
        let detail = Detail { message: Some(self.error.to_string()), ..Detail::default() };
        Signature::new(self.stage, Class::Error).raised(kind, self.error.op.as_deref()).detailed(detail)
    }
}

/// The failure of a compiler outside of Pyrite.
fn outside(kind: &str, place: Option<&str>, message: &str, stage: &str) -> Signature {
    let stage = match stage {
        "compile" => Stage::Compile,
        "backward" => Stage::Backward,
        _ => Stage::Forward,
    };
    let detail = Detail { message: Some(message.to_owned()), ..Detail::default() };
    let number = |prefix: &str| kind.strip_prefix(prefix).and_then(|n| n.parse::<i32>().ok());
    let class = match (number("signal "), number("exit ")) {
        (Some(9), _) => Class::OutOfMemory,
        (Some(signal), _) => Class::Signal(signal),
        (None, Some(code)) => Class::Exit(code),
        (None, None) if kind == "hang" => Class::Hang,
        (None, None) => return Signature::new(stage, Class::Error).raised(kind, place).detailed(detail),
    };
    Signature::new(stage, class).detailed(detail)
}

/// A backend's results and times.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What came out.
    pub results: Results,
    /// How long compiling took.
    pub compile: Duration,
    /// How long running took.
    pub run: Duration,
}

/// Compiles a program with a backend and runs it on copies of the inputs.
pub fn execute(
    graph: &Graph,
    inputs: &[Value<Tensor>],
    backend: &Backend,
    options: &Options,
    tell: &mut dyn FnMut(Stage),
    observe: &mut Observer<'_>,
) -> Result<Ran, Broken> {
    let (graph, inputs) = prepared(graph, inputs, options.mode);
    let constants = graph.constants().clone();
    tell(Stage::Compile);
    let start = Instant::now();
    let executable = (backend.compile)(graph, options).map_err(|error| Broken { stage: Stage::Compile, error })?;
    let compile = start.elapsed();
    let start = Instant::now();
    let mut began = |phase: Phase| tell(stage_of(phase));
    let results = run_fwd_maybe_bwd(&*executable, inputs, &constants, options.direction, &mut began, observe)
        .map_err(|(phase, error)| Broken { stage: stage_of(phase), error })?;
    Ok(Ran { results, compile, run: start.elapsed() })
}

fn stage_of(phase: Phase) -> Stage {
    match phase {
        Phase::Forward => Stage::Forward,
        Phase::Backward => Stage::Backward,
    }
}

/// A program and its inputs for one run: a run may write to inputs and constants, so each gets them afresh, in double
/// precision where the mode says so. Tensors share memory as before.
fn prepared(graph: &Graph, inputs: &[Value<Tensor>], mode: Mode) -> (Graph, Vec<Value<Tensor>>) {
    let mut graph = graph.clone();
    let mut copies = Copies::default();
    let mut inputs: Vec<_> = inputs.iter().map(|input| input.map(&mut |tensor| copies.of(tensor))).collect();
    let copies = RefCell::new(copies);
    graph.map_constants(&|tensor| copies.borrow_mut().of(tensor));
    if mode == Mode::Fp64 {
        in_double(&mut graph, &mut inputs);
    }
    (graph, inputs)
}

/// Copies of inputs that share memory as the inputs do.
pub fn fresh_inputs(inputs: &[Value<Tensor>]) -> Vec<Value<Tensor>> {
    let mut copies = Copies::default();
    inputs.iter().map(|input| input.map(&mut |tensor| copies.of(tensor))).collect()
}

/// Copies of storages, each made once.
#[derive(Default)]
struct Copies {
    storages: BTreeMap<usize, Storage>,
}

impl Copies {
    fn of(&mut self, tensor: &Tensor) -> Tensor {
        let storage = tensor.storage();
        let copy = self.storages.entry(storage.id()).or_insert_with(|| Storage::from_slice(&storage.read::<u8>()));
        Tensor::new(copy.clone(), tensor.dtype(), tensor.layout().clone()).unwrap_or_else(|_| tensor.clone())
    }
}

/// What a run left behind, in the groups that are compared.
pub fn compared(results: &Results) -> Compared {
    let mut outputs = Vec::new();
    results.outputs.iter().for_each(|output| flatten(output, &mut outputs));
    let gradient = |g: &Option<Tensor>| g.clone().map_or(Value::None, Value::Tensor);
    let numbered = |values: Vec<Value<Tensor>>| values.into_iter().enumerate().map(|(i, v)| (i.to_string(), v));
    Compared::new()
        .with("outputs", Role::Outputs, numbered(outputs))
        .with("input gradients", Role::Gradients, numbered(results.input_gradients.iter().map(gradient).collect()))
        .with(
            "parameter gradients",
            Role::Gradients,
            results.parameter_gradients.iter().map(|(name, g)| (name.to_string(), gradient(g))),
        )
        .with("inputs", Role::Inputs, numbered(results.inputs.clone()))
        .with(
            "buffers",
            Role::Inputs,
            results.buffers.iter().map(|(name, t)| (name.to_string(), Value::Tensor(t.clone()))),
        )
}

/// The answer, with what it rests on.
pub struct Judged {
    /// The answer.
    pub verdict: Verdict,
    /// What the backend gave, if it ran.
    pub actual: Option<Result<Ran, Broken>>,
    /// The comparison, if there was one.
    pub report: Option<Report>,
}

impl Judged {
    fn invalid(why: String) -> Self {
        Self { verdict: Verdict::Invalid(why), actual: None, report: None }
    }
}

/// Judges a backend on a program. `tell` hears of each stage of the backend under test as it begins.
pub fn judge(
    graph: &Graph,
    inputs: &[Value<Tensor>],
    question: &Question,
    tell: &mut dyn FnMut(Stage),
    observe: &mut Observer<'_>,
) -> Judged {
    let named = |name: &str| find(name).ok_or_else(|| format!("there is no backend `{name}`"));
    let (backend, reference) = match (named(&question.backend), named(&question.reference)) {
        (Ok(backend), Ok(reference)) => (backend, reference),
        (Err(why), _) | (_, Err(why)) => return Judged::invalid(why),
    };
    let options = |mode, rewrites| Options {
        seed: question.seed,
        mode,
        direction: question.direction(),
        rewrites,
        ..Options::default()
    };
    let mut run = |backend: &Backend, mode: Mode, rewrites: Option<u64>, tell: &mut dyn FnMut(Stage)| {
        execute(graph, inputs, backend, &options(mode, rewrites), tell, observe)
    };
    let expected = run(&reference, Mode::Eager, None, &mut |_| {});
    let actual = run(&backend, Mode::Eager, question.rewrites, tell);
    let expected = match (expected, &actual) {
        (Ok(expected), _) => expected,
        (Err(broken), _) => {
            let why = format!("the reference {} fails: {}", question.reference, broken.error);
            return Judged { verdict: Verdict::Invalid(why), actual: Some(actual), report: None };
        }
    };
    let ran = match &actual {
        Ok(ran) => ran,
        Err(broken) => {
            return Judged { verdict: Verdict::Fail(broken.signature()), actual: Some(actual), report: None };
        }
    };
    let accuracy = match question.accuracy {
        Precision::Off => return Judged { verdict: Verdict::Pass, actual: Some(actual), report: None },
        Precision::Fp => Accuracy::Fp,
        Precision::Strict => Accuracy::Strict,
    };
    let (wanted, found) = (compared(&expected.results), compared(&ran.results));
    let options = CompareOptions::new(accuracy);
    let mut report = compare(&wanted, &found, None, &options);
    if !report.agrees() && accuracy == Accuracy::Fp {
        // Only what is not close needs double precision to judge it.
        let truth = run(&reference, Mode::Fp64, None, &mut |_| {}).ok().map(|truth| compared(&truth.results));
        report = compare(&wanted, &found, truth.as_ref(), &options);
    }
    let verdict = match report.outcome() {
        Outcome::Same => Verdict::Pass,
        Outcome::Noise => Verdict::Noise,
        Outcome::Different => Verdict::Fail(signature_of(&report)),
    };
    Judged { verdict, actual: Some(actual), report: Some(report) }
}

/// The signature of a difference: by the worst one.
pub fn signature_of(report: &Report) -> Signature {
    use pyrite_compare::Class as Broken;
    let Some(worst) = report.differences.first() else { return Signature::new(Stage::Forward, Class::Value) };
    let backward = report.differences.iter().all(|difference| difference.place.group.contains("gradients"));
    let class = match worst.class {
        Broken::Structure | Broken::Kind => Class::Structure,
        Broken::Dtype => Class::Dtype,
        Broken::Shape => Class::Shape,
        Broken::Stride => Class::Stride,
        Broken::Aliasing => Class::Aliasing,
        Broken::Mutation => Class::Mutation,
        Broken::NanPosition | Broken::Value => Class::Value,
    };
    let detail = Detail {
        value: Some(worst.place.to_string()),
        rule: Some(worst.class.name().to_owned()),
        magnitude: worst.numbers.as_ref().map(|numbers| numbers.max_abs.0),
        message: Some(worst.to_string()),
    };
    Signature::new(if backward { Stage::Backward } else { Stage::Forward }, class).detailed(detail)
}

/// Judges a backend on the program of a repro file.
pub fn judge_file(path: &Path, question: &Question, tell: &mut dyn FnMut(Stage)) -> Verdict {
    match candidate_of(path, question.seed) {
        Ok(candidate) => judge(&candidate.graph, &candidate.inputs, question, tell, &mut |_, _| {}).verdict,
        Err(why) => Verdict::Invalid(why),
    }
}
