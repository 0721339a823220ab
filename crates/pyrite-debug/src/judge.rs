//! How a backend does on a program, compared with a reference.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use pyrite_compare::{Accuracy, Report, compare};
use pyrite_compiler::backend::{Backend, Direction, Observer};
use pyrite_compiler::training::{Phase, Results, run_fwd_maybe_bwd};
use pyrite_compiler::{Options, find};
use pyrite_interp::{Mode, in_double};
use pyrite_ir::{Device, Graph, Node, NodeError, OpError, Value};
use pyrite_oracle::{Class, Detail, Signature, Stage, Verdict};
use pyrite_passes::cleanup::dead_code;
use pyrite_tensor::{Storage, Tensor};
use serde::{Deserialize, Serialize};

use crate::assess::{Again, Assessment, Bound, assess, compared, set_aside_unstable, signature_of};
use crate::command_backend::CANNOT_TELL;
use crate::freedom::{Draws, Other};
use crate::repro::candidate_of;
use crate::rounding::OtherRounding;
use crate::running::Running;
use crate::signals;
use crate::switches::{Cloning, Switches};
use crate::torch::{base, looking_at};

/// What is asked about a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Question {
    /// Who is under test.
    pub backend: String,
    /// Reference backend.
    pub reference: String,
    /// How closely the two are compared.
    pub accuracy: Accuracy,
    /// Whether gradients are left out.
    pub forward_only: bool,
    /// The seed of random numbers.
    pub seed: u64,
    /// How many optional rewrites the backend may make; all when `None`.
    #[serde(default)]
    pub rewrites: Option<u64>,
    /// Optional rewrites that the backend does not make, by their names.
    #[serde(default)]
    pub refused: Vec<String>,
    /// What the comparison overlooks and insists on.
    #[serde(default)]
    pub switches: Switches,
    /// Whether rounding is asked about every difference, whatever that takes; it always is where a program is small.
    #[serde(default)]
    pub thorough: bool,
}

impl Question {
    fn direction(&self) -> Direction {
        if self.forward_only { Direction::Forward } else { Direction::ForwardAndBackward }
    }

    fn run_options(&self, mode: Mode, rewrites: Option<u64>) -> Options {
        Options {
            seed: self.seed,
            mode,
            direction: self.direction(),
            rewrites,
            refused: self.refused.clone(),
            ..Options::default()
        }
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
    /// Whether it never came to an answer: a signal, a hang, an exit, no memory.
    pub fn died(&self) -> bool {
        self.signature().class != Class::Error
    }

    /// Whether a kernel faulted on its device.
    pub fn faulted(&self) -> bool {
        self.signature().class == Class::Fault
    }

    /// Whether a program that was asked has no answer.
    pub fn cannot_tell(&self) -> bool {
        matches!(&self.error.error, OpError::Outside { kind, .. } if kind == CANNOT_TELL)
    }

    /// The failure as what a search holds.
    pub fn signature(&self) -> Signature {
        let kind = match &self.error.error {
            OpError::Invalid(_) | OpError::OutOfRange(_) => "invalid",
            OpError::Unsupported(_) => "unsupported",
            OpError::Fault(_) => "internal",
            OpError::Outside { kind, place, message, stage } => {
                return outside(kind, place.as_deref(), message, stage);
            }
        };
        let detail = Detail { message: Some(self.error.to_string()), ..Detail::default() };
        let signature = Signature::new(self.stage, Class::Error).raised(kind, self.error.op.as_deref());
        signature.saying(&self.error.error.to_string()).detailed(detail)
    }
}

/// How the kind of an error begins that is a fault of a device.
pub(crate) const FAULT: &str = "device fault: ";

/// The kind of an error that is the end of a device's memory.
pub(crate) const OUT_OF_DEVICE_MEMORY: &str = "out of device memory";

/// How signatures say that it is not the host's memory.
pub(crate) const ON_THE_DEVICE: &str = "on the device";

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
        (None, None) if kind == "out of memory" => Class::OutOfMemory,
        (None, None) if kind == OUT_OF_DEVICE_MEMORY => {
            return Signature::new(stage, Class::OutOfMemory).raised(ON_THE_DEVICE, None).detailed(detail);
        }
        (None, None) if kind.starts_with(FAULT) => {
            return Signature::new(stage, Class::Fault).raised(&kind[FAULT.len()..], None).detailed(detail);
        }
        (None, None) => {
            return Signature::new(stage, Class::Error).raised(kind, place).saying(message).detailed(detail);
        }
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
    /// The most bytes that tensors made during a call took at a time, where that was measured.
    pub peak: Option<usize>,
    /// Whether a second call on the same inputs gave other results, where that was tried.
    pub changes: bool,
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
    execute_shared(graph, inputs, backend, options, tell, observe)
}

/// The same on the inputs and constants themselves, which the run may write to.
pub fn execute_shared(
    graph: Graph,
    inputs: Vec<Value<Tensor>>,
    backend: &Backend,
    options: &Options,
    tell: &mut dyn FnMut(Stage),
    observe: &mut Observer<'_>,
) -> Result<Ran, Broken> {
    let mut graph = graph;
    // What Pyrite computes itself it computes on the CPU.
    if !backend.name.starts_with("torch:") && !backend.name.starts_with("cmd:") && graph.is_elsewhere() {
        graph.put_on(&Device::Cpu);
    }
    let constants = graph.constants().clone();
    tell(Stage::Compile);
    let start = Instant::now();
    signals::running(&format!("the compiler {}", backend.name));
    let captured = signals::are_heard().then(|| graph.clone());
    let compiled = (backend.compile)(graph, options).map_err(|error| Broken { stage: Stage::Compile, error });
    signals::running("");
    let executable = compiled?;
    let compile = start.elapsed();
    let mut running = captured.map(|graph| Running::new(&backend.name, &graph, &executable.graphs()));
    if let Some(running) = &running {
        running.say();
    }
    let observe = &mut |node: &Node, value: &Value<Tensor>| {
        if let Some(running) = &mut running {
            running.done(node);
        }
        observe(node, value);
    };
    let start = Instant::now();
    let mut began = |phase: Phase| tell(stage_of(phase));
    let results = run_fwd_maybe_bwd(&*executable, inputs, &constants, options.direction, &mut began, observe)
        .map_err(|(phase, error)| Broken { stage: stage_of(phase), error });
    signals::running("");
    let results = results?;
    Ok(Ran { results, compile, run: start.elapsed(), peak: None, changes: executable.changes() })
}

fn stage_of(phase: Phase) -> Stage {
    match phase {
        Phase::Forward => Stage::Forward,
        Phase::Backward => Stage::Backward,
    }
}

/// A program and its inputs for one run: a run may write to inputs and constants, so each gets them afresh, in double
/// precision where the mode says so. Tensors share memory as before.
pub(crate) fn prepared(graph: &Graph, inputs: &[Value<Tensor>], mode: Mode) -> (Graph, Vec<Value<Tensor>>) {
    let mut graph = graph.clone();
    let mut copies = Copies::default();
    let mut inputs: Vec<_> = inputs.iter().map(|input| input.map(&mut |tensor| copies.of(tensor))).collect();
    let copies = RefCell::new(copies);
    graph.map_constants(&|tensor| copies.borrow_mut().of(tensor));
    if mode == Mode::Fp64 {
        in_double(&mut graph, &mut inputs);
    }
    pyrite_compiler::inputs::describe(&mut graph, &inputs);
    (graph, inputs)
}

/// Copies of inputs that share memory as the inputs do.
pub fn fresh_inputs(inputs: &[Value<Tensor>]) -> Vec<Value<Tensor>> {
    let mut copies = Copies::default();
    inputs.iter().map(|input| input.map(&mut |tensor| copies.of(tensor))).collect()
}

/// Copies of storages, each made once.
#[derive(Default)]
pub(crate) struct Copies {
    storages: BTreeMap<usize, Storage>,
}

impl Copies {
    pub(crate) fn of(&mut self, tensor: &Tensor) -> Tensor {
        let storage = tensor.storage();
        let copy = self.storages.entry(storage.id()).or_insert_with(|| Storage::from_slice(&storage.read::<u8>()));
        Tensor::new(copy.clone(), tensor.dtype(), tensor.layout().clone()).unwrap_or_else(|_| tensor.clone())
    }
}

/// What a judge is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The reference runs: what happens now says nothing of the backend.
    Reference,
    /// The backend comes to this stage.
    Backend(Stage),
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

/// Judges a backend on a program. `tell` hears of each step as it begins.
///
/// A program on which the reference raises an ordinary error is no valid question, unless the backend does not even
/// come to an answer there: dying where an error belongs is a failure. So is a result of a backend of torch's, where torch
/// itself raises the error every time: see [`missing_error`].
pub fn judge(
    graph: &Graph,
    inputs: &[Value<Tensor>],
    question: &Question,
    tell: &mut dyn FnMut(Step),
    observe: &mut Observer<'_>,
) -> Judged {
    let named = |name: &str| find(name).ok_or_else(|| format!("there is no backend `{name}`"));
    let (backend, reference) = match (named(&question.backend), named(&question.reference)) {
        (Ok(backend), Ok(reference)) => (backend, reference),
        (Err(why), _) | (_, Err(why)) => return Judged::invalid(why),
    };
    judge_backends(graph, inputs, [&backend, &reference], question, tell, observe)
}

/// The same for a backend and a reference that need not have the names of the question, nor be registered.
pub fn judge_backends(
    graph: &Graph,
    inputs: &[Value<Tensor>],
    [backend, reference]: [&Backend; 2],
    question: &Question,
    tell: &mut dyn FnMut(Step),
    observe: &mut Observer<'_>,
) -> Judged {
    let trial = Trial::new(graph, inputs, [backend, reference], question);
    tell(Step::Reference);
    let expected = trial.run(reference, Mode::Eager, None, &mut |_| {}, observe);
    let by_backend = |backend: &Backend, tell: &mut dyn FnMut(Step), observe: &mut Observer<'_>| {
        let ran = trial.run(backend, Mode::Eager, question.rewrites, &mut |stage| tell(Step::Backend(stage)), observe);
        tell(Step::Reference);
        ran
    };
    let actual = by_backend(backend, tell, observe);
    let first = trial.weigh(&expected, &actual);
    let passes = matches!(first.verdict, Verdict::Pass | Verdict::Noise);
    // What is right in its first call may be wrong in the next.
    if passes
        && matches!(&actual, Ok(Ran { changes: true, .. }))
        && let Some(later) = find(&looking_at(&backend.name, SECOND))
    {
        let again = by_backend(&later, tell, observe);
        let Assessment { verdict, report } = trial.weigh(&expected, &again);
        if let Verdict::Fail(signature) = verdict {
            let verdict = Verdict::Fail(signature.at_call(SECOND));
            return Judged { verdict, actual: Some(again), report };
        }
    }
    Judged { verdict: first.verdict, actual: Some(actual), report: first.report }
}

/// A program that a backend and a reference run, and what the reference was asked about it beside its first run.
struct Trial<'a> {
    graph: &'a Graph,
    inputs: &'a [Value<Tensor>],
    backend: &'a Backend,
    reference: &'a Backend,
    question: &'a Question,
    rounding: OtherRounding<'a>,
    bound: Bound,
    /// Several comparisons ask for the same runs, which take their time where programs are large.
    asked: RefCell<Vec<(Again, Result<Ran, Broken>)>>,
    /// What the operators leave open, where a difference asked for it.
    open: OnceCell<Option<Other>>,
}

impl<'a> Trial<'a> {
    fn new(
        graph: &'a Graph,
        inputs: &'a [Value<Tensor>],
        [backend, reference]: [&'a Backend; 2],
        question: &'a Question,
    ) -> Self {
        Self {
            graph,
            inputs,
            backend,
            reference,
            question,
            rounding: OtherRounding::new(graph, inputs, reference, question.run_options(Mode::Eager, None)),
            bound: if question.thorough || is_small(graph, inputs) { Bound::Always } else { Bound::WhereItMayExcuse },
            asked: RefCell::default(),
            open: OnceCell::new(),
        }
    }

    /// One run of the program.
    fn run(
        &self,
        backend: &Backend,
        mode: Mode,
        rewrites: Option<u64>,
        tell: &mut dyn FnMut(Stage),
        observe: &mut Observer<'_>,
    ) -> Result<Ran, Broken> {
        let options = self.question.run_options(mode, rewrites);
        if self.question.switches.cloning == Cloning::Shared && mode == Mode::Eager {
            execute_shared(self.graph.clone(), self.inputs.to_vec(), backend, &options, tell, observe)
        } else {
            execute(self.graph, self.inputs, backend, &options, tell, observe)
        }
    }

    /// One more run of the reference.
    fn again(&self, again: Again) -> Result<Ran, Broken> {
        if let Some((_, ran)) = self.asked.borrow().iter().find(|(known, _)| *known == again) {
            return ran.clone();
        }
        let ran = match again {
            Again::Same => self.run(self.reference, Mode::Eager, None, &mut |_| {}, &mut |_, _| {}),
            Again::Double => self.run(self.reference, Mode::Fp64, None, &mut |_| {}, &mut |_, _| {}),
            Again::Perturbed(seed) => self.rounding.sample(seed),
            Again::Tipped => self.rounding.tipped(),
        };
        self.asked.borrow_mut().push((again, ran.clone()));
        ran
    }

    /// Compares results. Where they differ, those that the operators leave open are asked for, and do not count.
    fn assess(&self, expected: &Results, actual: &Results) -> Assessment {
        let assess = |actual: &Results| {
            let Question { accuracy, switches, .. } = self.question;
            assess(expected, actual, *accuracy, switches, self.bound, &mut |again| self.again(again))
        };
        let assessment = assess(actual);
        if assessment.verdict.signature().is_none() {
            return assessment;
        }
        let options = || self.question.run_options(Mode::Eager, None);
        let draws = Draws::of(&self.backend.name);
        match self.open.get_or_init(|| Other::of(self.graph, self.inputs, &options(), draws)) {
            Some(open) => assess(&open.excuse(expected, actual)),
            None => assessment,
        }
    }

    /// The assessment of a run of the backend, after torch itself was asked where that decides.
    fn weigh(&self, expected: &Result<Ran, Broken>, actual: &Result<Ran, Broken>) -> Assessment {
        let assessment = match (expected, actual) {
            (Ok(expected), Ok(actual)) => self.assess(&expected.results, &actual.results),
            (_, Err(broken)) => Assessment { verdict: self.verdict_on(broken, expected), report: None },
            (Err(raised), Ok(_)) => Assessment { verdict: self.verdict_without(raised), report: None },
        };
        match (assessment, second_reference(&self.backend.name, &self.reference.name)) {
            // Torch was asked for the error that is missing.
            (missing @ Assessment { verdict: Verdict::Fail(Signature { class: Class::MissingError, .. }), .. }, _) => {
                missing
            }
            (failure @ Assessment { verdict: Verdict::Fail(_), .. }, Some(second)) => {
                let ask = || self.run(&second, Mode::Eager, None, &mut |_| {}, &mut |_, _| {});
                let itself = OnceCell::new();
                let torch = Torch { name: &second.name, first: ask(), again: &ask, itself, question: self.question };
                let assess = |expected: &Results, actual: &Results| self.assess(expected, actual);
                if self.graph.is_elsewhere() {
                    torch.agrees_on_its_device(failure, expected, actual, &assess)
                } else {
                    torch.agrees(failure, expected, &assess)
                }
            }
            (assessment, _) => assessment,
        }
    }

    /// The verdict on a backend that came to no result.
    fn verdict_on(&self, broken: &Broken, expected: &Result<Ran, Broken>) -> Verdict {
        match expected {
            _ if broken.cannot_tell() => Verdict::Invalid(broken.error.to_string()),
            Ok(_) => Verdict::Fail(broken.signature()),
            Err(raised) if broken.died() && !raised.died() => Verdict::Fail(broken.signature()),
            // A fault of a device is wrong whoever runs the program.
            Err(raised) if broken.faulted() && raised.faulted() => {
                Verdict::Fail(of_everybody(broken.signature(), &self.reference.name))
            }
            Err(raised) => invalid_reference(raised, self.reference),
        }
    }

    /// The verdict on a backend that gives a result where the reference raises.
    fn verdict_without(&self, raised: &Broken) -> Verdict {
        if !is_compiler_of_torch(&self.backend.name) {
            return invalid_reference(raised, self.reference);
        }
        let ask = |graph: &Graph, backend: &Backend| {
            let options = self.question.run_options(Mode::Eager, None);
            execute(graph, self.inputs, backend, &options, &mut |_| {}, &mut |_, _| {}).err()
        };
        missing_error(raised, self.graph, self.reference, &ask, &|seed| self.rounding.whole(seed).err())
    }
}

/// Up to how many elements of all its values a program is small: interpreting it a few times more takes less time than asking
/// any compiler.
const SMALL: u64 = 1 << 22;

fn is_small(graph: &Graph, inputs: &[Value<Tensor>]) -> bool {
    let (mut largest, mut all) = (0, 0);
    for input in inputs {
        input.each(&mut |tensor| largest = largest.max(tensor.numel() as u64));
    }
    for (_, node) in graph.nodes() {
        // What is not known is as large as the largest input.
        let Some(meta) = &node.meta else {
            all += largest;
            continue;
        };
        meta.each(&mut |meta| all += meta.numel().hint().and_then(|n| u64::try_from(n).ok()).unwrap_or(largest));
    }
    all <= SMALL
}

/// The call that is looked at where its results are not those of the first.
const SECOND: u32 = 2;

fn invalid_reference(raised: &Broken, reference: &Backend) -> Verdict {
    Verdict::Invalid(format!("the reference {} fails: {}", reference.name, raised.error))
}

/// The verdict where the reference raises an error and a backend of torch's gives a result. The error is what the program
/// comes to, and a result is a failure, only where all of this holds:
/// - the error is one of the program, not a limit of who runs it: Pyrite's interpreter finds the program wrong, and torch
///   does not say that it lacks a kernel;
/// - it does not come and go with rounding, as that of a matrix that is nearly singular does;
/// - torch itself raises it, twice;
/// - it comes from a value that is used: compilers may leave out the others.
fn missing_error(
    raised: &Broken,
    graph: &Graph,
    reference: &Backend,
    ask: &dyn Fn(&Graph, &Backend) -> Option<Broken>,
    moved: &dyn Fn(u64) -> Option<Broken>,
) -> Verdict {
    let of_program = match &raised.error.error {
        OpError::Invalid(_) | OpError::OutOfRange(_) => true,
        OpError::Outside { .. } => &*reference.name == "torch:eager",
        OpError::Unsupported(_) | OpError::Fault(_) => false,
    };
    let (true, Some(torch)) = (of_program && !raised.died() && !raised.cannot_tell(), find("torch:eager")) else {
        return invalid_reference(raised, reference);
    };
    let used = dead_code(graph);
    let alone = reference.name == torch.name;
    if !alone && ask(&used, reference).is_none() {
        return Verdict::Invalid(format!("{} is of a value that nobody uses", raised.error));
    }
    // A reference outside of Pyrite may raise what the interpreter, which stands in for it with other rounding, does not.
    let known = !alone || find("eager").is_some_and(|own| ask(graph, &own).is_some());
    if known && (1..=ROUNDINGS).any(|seed| moved(seed).is_none()) {
        return Verdict::Invalid(format!("{} depends on rounding", raised.error));
    }
    let (Some(first), Some(second)) = (ask(&used, &torch), ask(&used, &torch)) else {
        return invalid_reference(raised, reference);
    };
    match (&first.error.error, first.signature().holds(&second.signature())) {
        (OpError::Outside { kind, message, .. }, true)
            if !first.died() && !first.cannot_tell() && !is_limit(kind, message) =>
        {
            let asked = if alone { "; Pyrite's interpreter did not run it" } else { "" };
            let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let said = format!("torch:eager raises {kind}: {line}; the backend returns a result{asked}");
            let detail = Detail { message: Some(said), ..Detail::default() };
            let signature = Signature::new(first.signature().stage, Class::MissingError).raised(kind, None);
            Verdict::Fail(signature.saying(message).detailed(detail))
        }
        _ => invalid_reference(raised, reference),
    }
}

/// How many runs with other rounding must raise an error for it to be one of the program.
const ROUNDINGS: u64 = 8;

/// Whether an error of torch's says what torch cannot do, or what rounding makes of a matrix, rather than what a program must
/// not.
fn is_limit(kind: &str, message: &str) -> bool {
    let message = message.to_lowercase();
    let lacks = ["not implemented", "not supported", "unsupported", "not yet", "could not run", "no kernel"];
    kind == "NotImplementedError" || kind.ends_with("LinAlgError") || lacks.iter().any(|said| message.contains(said))
}

/// How two runs are compared.
type Compare<'a> = &'a dyn Fn(&Results, &Results) -> Assessment;

/// What torch itself gives, asked beside the reference.
struct Torch<'a> {
    name: &'a str,
    first: Result<Ran, Broken>,
    again: &'a dyn Fn() -> Result<Ran, Broken>,
    /// How a second run differs from the first, where that was asked.
    itself: OnceCell<Option<Report>>,
    question: &'a Question,
}

impl Torch<'_> {
    /// A failure, where torch has nothing against it.
    fn agrees(&self, failure: Assessment, expected: &Result<Ran, Broken>, assess: Compare<'_>) -> Assessment {
        let Some(signature) = failure.verdict.signature() else { return failure };
        if let (Class::Fault, Err(broken)) = (signature.class, &self.first)
            && broken.faulted()
        {
            let verdict = Verdict::Fail(of_everybody(signature.clone(), self.name));
            return Assessment { verdict, ..failure };
        }
        let mut compare = |expected: &Results, theirs: &Results| self.stable(assess(expected, theirs)).verdict;
        match doubt_of(signature, expected, &self.first, &mut compare) {
            Some(why) => Assessment { verdict: Verdict::Invalid(why), report: failure.report },
            None => failure,
        }
    }

    /// The same for a program on another device than the CPU, where the reference does not compute as torch does: kernels
    /// there may give other results in every run, and results that lie otherwise in memory.
    fn agrees_on_its_device(
        &self,
        failure: Assessment,
        expected: &Result<Ran, Broken>,
        actual: &Result<Ran, Broken>,
        assess: Compare<'_>,
    ) -> Assessment {
        let agreed = self.agrees(self.stable(failure), expected, assess);
        let of_strides = |report: &Report| report.classes() == [pyrite_compare::Class::Stride];
        match (&agreed.verdict, &self.first, actual) {
            (Verdict::Invalid(_), Ok(theirs), Ok(actual)) if agreed.report.as_ref().is_some_and(of_strides) => {
                let by_torch = self.stable(assess(&theirs.results, &actual.results));
                if by_torch.verdict.signature().is_some() { agreed } else { by_torch }
            }
            _ => agreed,
        }
    }

    /// What is left of a failure without what torch's own results differ in from run to run.
    fn stable(&self, failure: Assessment) -> Assessment {
        let (Some(_), Ok(first), Some(mut report)) = (failure.verdict.signature(), &self.first, failure.report.clone())
        else {
            return failure;
        };
        let options = self.question.switches.options(self.question.accuracy);
        let differs = |second: Ran| compare(&compared(&first.results), &compared(&second.results), None, &options);
        let Some(itself) = self.itself.get_or_init(|| (self.again)().ok().map(differs)) else { return failure };
        if itself.agrees() {
            return failure;
        }
        let verdict = match set_aside_unstable(&mut report, itself) {
            Some(why) => Verdict::Invalid(why),
            None if report.agrees() => Verdict::Noise,
            None => Verdict::Fail(signature_of(&report, self.question.accuracy)),
        };
        Assessment { verdict, report: Some(report) }
    }
}

/// A fault of a program that faults in the reference too: the program or an operator of its own is to blame.
fn of_everybody(mut signature: Signature, reference: &str) -> Signature {
    let said = signature.detail.message.get_or_insert_default();
    said.push_str(&format!(
        "; it faults in {reference} too, so the program or one of its operators is at fault, not a compiler"
    ));
    signature
}

/// Whether a backend is one of torch's that compiles.
fn is_compiler_of_torch(backend: &str) -> bool {
    backend.strip_prefix("torch:").is_some_and(|name| base(name) != "eager")
}

/// Who is asked beside the reference before a backend of torch's is blamed: torch itself.
fn second_reference(backend: &str, reference: &str) -> Option<Backend> {
    let is_torch = is_compiler_of_torch(backend) && !reference.contains(':');
    if is_torch { find("torch:eager") } else { None }
}

/// Why a failure blames nobody, after torch itself was asked: torch fails as well, or it does not give what the reference
/// gives in that part of the contract. `None` where the failure stands.
fn doubt_of(
    signature: &Signature,
    expected: &Result<Ran, Broken>,
    theirs: &Result<Ran, Broken>,
    compare: &mut dyn FnMut(&Results, &Results) -> Verdict,
) -> Option<String> {
    let of_value = !matches!(
        signature.class,
        Class::Error
            | Class::Signal(_)
            | Class::Exit(_)
            | Class::Hang
            | Class::OutOfMemory
            | Class::Garbage
            | Class::Fault
    );
    match (expected, theirs) {
        (_, Err(broken)) if broken.cannot_tell() => Some(broken.error.to_string()),
        (_, Err(broken)) if broken.died() => {
            Some(format!("torch:eager does not answer either: {}", broken.signature()))
        }
        // Where torch raises an ordinary error, dying is a failure, and raising another error is none.
        (_, Err(raised)) => {
            let dies = signature.class != Class::Error && !of_value;
            (!dies).then(|| format!("the reference torch:eager fails: {}", raised.error))
        }
        (Ok(expected), Ok(theirs)) if of_value => match compare(&expected.results, &theirs.results) {
            Verdict::Fail(found) | Verdict::Flaky { signature: found, .. } if found.class == signature.class => {
                let said = found.detail.message.clone().unwrap_or_else(|| found.to_string());
                Some(format!(
                    "reference: Pyrite's interpreter and torch:eager disagree, {said}. This is a bug of Pyrite's, please \
                     report it with the program; --reference torch:eager goes on without the interpreter"
                ))
            }
            Verdict::Invalid(why) => Some(why),
            _ => None,
        },
        _ => None,
    }
}

/// Judges a backend on the program of a repro file.
pub fn judge_file(path: &Path, question: &Question, tell: &mut dyn FnMut(Step)) -> Verdict {
    match candidate_of(path, question.seed) {
        Ok(candidate) => judge(&candidate.graph, &candidate.inputs, question, tell, &mut |_, _| {}).verdict,
        Err(why) => Verdict::Invalid(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_torch_lacks_is_no_error_of_a_program() {
        assert!(
            is_limit("NotImplementedError", "") && is_limit("RuntimeError", "\"baddbmm\" not implemented for 'Half'")
        );
        assert!(is_limit("RuntimeError", "Sparse CSR tensors are not supported"));
        assert!(is_limit("_LinAlgError", "linalg.cholesky: the input is not positive-definite"));
        assert!(!is_limit("IndexError", "index 9 is out of bounds for dimension 0 with size 4"));
    }
}
