//! `pyrite run FILE`: runs a program, forward and backward, and compares backends.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pyrite_compare::Report;
use pyrite_compiler::backend::{Direction, backends};
use pyrite_compiler::training::{Results, flatten};
use pyrite_compiler::{Backend, Options, find};
use pyrite_debug::{
    Again, Bound, Broken, Precision as Accuracy, Ran, Settled, execute, nudged, settle, time_calls, trust,
};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_interp::Mode;
use pyrite_ir::{Graph, Node, NodeError, OpError, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Stage, Verdict};
use pyrite_passes::{Random, autocast};
use pyrite_tensor::{DType, Tensor};
use serde_json::{Value as Json, json};

use crate::ExitCode;
use crate::Outcome;
use crate::compare::tell_differences;
use crate::failure::{Failure, tell_one};
use crate::leaving::Leaving;
use crate::outputs::{describe, line, save};
use crate::program::Program;
use crate::suggest::nearest;
use crate::switches::Comparing;

/// What the run does beyond computing.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Check {
    /// Nothing
    Off,
    /// Compute in double precision
    Fp64,
    /// Report arguments that are changed or shared without being declared
    Schema,
    /// Compare inferred with computed metadata
    Inference,
}

/// How closely a backend is compared with the reference.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    /// Not at all: only whether it runs
    Off,
    /// As floating-point numbers, with double precision as the judge
    Fp,
    /// Bit for bit
    Strict,
}

impl Precision {
    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Fp => "fp",
            Self::Strict => "strict",
        }
    }
}

/// The lower precision of autocast.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Lower {
    /// bfloat16
    Bf16,
    /// float16
    F16,
}

/// Run a program: a repro, or any dump of PyTorch's or Pyrite's
#[derive(clap::Args)]
pub struct Run {
    /// The file
    file: PathBuf,
    /// Who runs it; `pyrite backends` lists them
    #[arg(long, default_value = "eager")]
    backend: String,
    /// Who says what is right; it runs too where it is another one than the backend
    #[arg(long, default_value = "eager")]
    reference: String,
    /// How closely the two are compared [default: what the file says, else fp]
    #[arg(long, value_enum)]
    accuracy: Option<Precision>,
    /// Leave out gradients
    #[arg(long)]
    forward_only: bool,
    /// Run under autocast in this precision
    #[arg(long, value_enum, value_name = "TYPE")]
    autocast: Option<Lower>,
    /// How much memory may be kept for the backward half, as a part of what is kept without recomputing products
    #[arg(long, default_value_t = 1.0)]
    memory_budget: f64,
    /// Whether the native compiler draws the random numbers that an eager run draws, instead of a fast stream of its own
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    fallback_random: bool,
    /// The seed of random numbers and of generated inputs [default: what the file says, else 0]
    #[arg(long)]
    seed: Option<u64>,
    /// What to check on the way
    #[arg(long, value_enum, default_value = "off")]
    check: Check,
    /// Compile once, run this often, and report the fastest run of each half
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Keep the outputs, in order, in this .npz file
    #[arg(long, value_name = "FILE")]
    save_outputs: Option<PathBuf>,
    /// Keep the gradients of inputs and parameters, in order, in this .npz file
    #[arg(long, value_name = "FILE")]
    save_gradients: Option<PathBuf>,
    /// Keep the inputs as the run left them, in order, in this .npz file
    #[arg(long, value_name = "FILE")]
    save_inputs: Option<PathBuf>,
    #[command(flatten)]
    comparing: Comparing,
    #[command(flatten)]
    leaving: Leaving,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl From<Precision> for Accuracy {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Off => Self::Off,
            Precision::Fp => Self::Fp,
            Precision::Strict => Self::Strict,
        }
    }
}

impl Run {
    /// Runs the program and prints its outputs.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        let program = Program::open(&self.file)?;
        if !self.json {
            program.tell_notes();
        }
        if !(0.0..=1.0).contains(&self.memory_budget) {
            let message = format!("the memory budget {} is not between 0 and 1", self.memory_budget);
            let problem = Diagnostic::error(Code::new("cli::bad-value"), message);
            return Err(Failure::of(problem.hint("1 keeps what is cheapest to keep, 0 computes everything again")));
        }
        let backend = named(&self.backend)?;
        let reference = named(&self.reference)?;
        let graph = self.graph(&program)?;
        let mode = match self.check {
            Check::Off => Mode::Eager,
            Check::Fp64 => Mode::Fp64,
            Check::Schema => Mode::SchemaCheck,
            Check::Inference => Mode::CrossReference,
        };
        let accuracy = self.accuracy.unwrap_or_else(|| said_by_file(&program));
        let backend = self.leaving.wrap(backend, &reference, accuracy.into(), self.comparing.switches())?;
        let ran = self.execute(&program, &graph, &backend, mode, self.repeat)?;
        // Without a comparison the reference is asked only whether an error is the program's own.
        let ran = match ran {
            Ok(ran) if backend.name == reference.name || accuracy == Precision::Off => {
                return self.done(&program, &backend, &ran, None);
            }
            Err(broken) if backend.name == reference.name => return Err(self.failed(&broken, &backend)),
            ran => ran,
        };
        if let Err(broken) = &ran
            && broken.cannot_tell()
        {
            let why = broken.error.to_string();
            let unknown = pyrite_debug::torch::is_unknown_backend(&why);
            return Err(if unknown { unknown_backend(&why) } else { self.failed(broken, &backend) });
        }
        let expected = match (self.execute(&program, &graph, &reference, mode, 1)?, &ran) {
            (Ok(expected), _) => expected,
            (Err(raised), Err(broken)) if broken.died() && !raised.died() => {
                return Ok(self.only_the_backend_failed(broken, &backend, &reference));
            }
            (Err(raised), _) => return Err(self.failed(&raised, &reference)),
        };
        let ran = match ran {
            Ok(ran) => ran,
            Err(broken) => return Ok(self.only_the_backend_failed(&broken, &backend, &reference)),
        };
        let switches = self.comparing.switches();
        let mut failed = None;
        let mut again = |again: Again| {
            let outcome = match again {
                Again::Same => self.execute(&program, &graph, &reference, mode, 1),
                Again::Double => self.execute(&program, &graph, &reference, Mode::Fp64, 1),
                Again::Nudged(seed) => program
                    .inputs(self.seed)
                    .map(|inputs| nudged(&graph, &inputs.values, &reference, &self.options(&program, mode), seed)),
            };
            outcome.unwrap_or_else(|failure| {
                failed = Some(failure);
                Err(Broken { stage: Stage::Forward, error: OpError::fault("the inputs are gone").into() })
            })
        };
        let settled = settle(&expected.results, &ran.results, accuracy.into(), &switches, Bound::Always, &mut again);
        if let Some(failure) = failed {
            return Err(failure);
        }
        self.done(&program, &backend, &ran, Some((&reference, &settled)))
    }

    /// The program's graph, under autocast where that was asked for, with what is known of the inputs.
    fn graph(&self, program: &Program) -> Result<Graph, Failure> {
        let mut graph = program.read.graph.clone();
        let inputs = program.inputs(self.seed)?;
        if inputs.generated > 0 && !self.json {
            eprintln!(
                "note: {} inputs have no stored data; random data from seed {} is used",
                inputs.generated,
                program.seed(self.seed)
            );
        }
        pyrite_compiler::inputs::describe(&mut graph, &inputs.values);
        let dtype = match self.autocast {
            None => return Ok(graph),
            Some(Lower::Bf16) => DType::BF16,
            Some(Lower::F16) => DType::F16,
        };
        autocast::apply(&graph, registry(), Some(dtype)).map_err(|error| self.located(&error, "autocast failed"))
    }

    fn options(&self, program: &Program, mode: Mode) -> Options {
        let direction = if self.forward_only || program.is_differentiated() {
            Direction::Forward
        } else {
            Direction::ForwardAndBackward
        };
        Options {
            seed: program.seed(self.seed),
            mode,
            direction,
            memory_budget: self.memory_budget,
            random: if self.fallback_random { Random::Eager } else { Random::Stream },
            ..Options::default()
        }
    }

    /// Compiles with a backend and runs; bad input is a failure of the command, what the backend does is a result.
    fn execute(
        &self,
        program: &Program,
        graph: &Graph,
        backend: &Backend,
        mode: Mode,
        repeat: u32,
    ) -> Result<Result<Ran, Broken>, Failure> {
        let options = self.options(program, mode);
        let inputs = program.inputs(self.seed)?;
        let mut progress = Progress::new(graph.len() as u64);
        let observe = &mut |node: &Node, _: &Value<Tensor>| progress.step(node);
        let ran = execute(graph, &inputs.values, backend, &options, &mut |_| {}, observe);
        progress.finish();
        let Ok(mut ran) = ran else { return Ok(ran) };
        if repeat > 1 {
            let times = time_calls(graph, &inputs.values, backend, &options, repeat)
                .map_err(|error| self.located(&error, "a repeated run failed"))?;
            (ran.compile, ran.run) = (times.compile.min(ran.compile), times.forward + times.backward);
            ran.peak = Some(times.peak);
        }
        Ok(Ok(ran))
    }

    /// Prints what came out, and of the comparison if there was one.
    fn done(&self, program: &Program, backend: &Backend, ran: &Ran, compared: Option<(&Backend, &Settled)>) -> Outcome {
        let mut outputs = Vec::new();
        ran.results.outputs.iter().for_each(|output| flatten(output, &mut outputs));
        let gradients = gradients(&ran.results);
        if let Some(path) = &self.save_outputs {
            save(path, &outputs)?;
        }
        if let Some(path) = &self.save_gradients {
            save(path, &gradients.iter().map(|(_, g)| Value::Tensor(g.clone())).collect::<Vec<_>>())?;
        }
        if let Some(path) = &self.save_inputs {
            save(path, &ran.results.inputs)?;
        }
        let verdict = compared.map_or(Verdict::Pass, |(_, settled)| settled.verdict.clone());
        let report = compared.and_then(|(_, settled)| settled.report.as_ref());
        if self.json {
            let named: Vec<Json> = gradients
                .iter()
                .map(|(name, gradient)| {
                    let mut object = describe(&Value::Tensor(gradient.clone()));
                    object["of"] = json!(name);
                    object
                })
                .collect();
            let report = json!({
                "verdict": verdict.name(),
                "signature": verdict.signature(),
                "reason": if let Verdict::Invalid(why) = &verdict { Some(why) } else { None },
                "backend": &*backend.name,
                "reference": compared.map(|(reference, _)| reference.name.to_string()),
                "seed": program.seed(self.seed),
                "read_seconds": program.read_time.as_secs_f64(),
                "compile_seconds": ran.compile.as_secs_f64(),
                "run_seconds": ran.run.as_secs_f64(),
                "peak_bytes": ran.peak,
                "loss": ran.results.loss,
                "outputs": outputs.iter().map(describe).collect::<Vec<_>>(),
                "gradients": named,
                "comparison": report,
            });
            println!("{report:#}");
        } else {
            for (index, output) in outputs.iter().enumerate() {
                println!("{index}: {}", line(output));
            }
            for (name, gradient) in &gradients {
                println!("gradient of {name}: {}", line(&Value::Tensor(gradient.clone())));
            }
            if let Some((reference, _)) = compared {
                tell_verdict(&verdict, report, backend, reference);
            }
            let loss = ran.results.loss.map(|loss| format!(", loss {loss:.6}")).unwrap_or_default();
            eprintln!(
                "ran {} nodes with backend {}: compiled in {:.3} ms, ran in {:.3} ms{loss}",
                program.read.graph.len(),
                backend.name,
                ran.compile.as_secs_f64() * 1e3,
                ran.run.as_secs_f64() * 1e3
            );
        }
        Ok(match verdict {
            Verdict::Pass | Verdict::Noise => ExitCode::SUCCESS,
            Verdict::Fail(_) | Verdict::Flaky { .. } => ExitCode::from(1),
            Verdict::Invalid(_) => ExitCode::from(2),
        })
    }

    /// The reference runs and the backend does not: the failure is the result.
    fn only_the_backend_failed(&self, broken: &Broken, backend: &Backend, reference: &Backend) -> ExitCode {
        if self.json {
            let report = json!({
                "verdict": "fail",
                "signature": broken.signature(),
                "backend": &*backend.name,
                "reference": &*reference.name,
                "error": broken.error.to_string(),
                "outputs": [],
            });
            println!("{report:#}");
        } else {
            println!("{} fails to {}; {} does not fail so", backend.name, stage_name(broken.stage), reference.name);
            tell_one(self.diagnostic(&broken.error, &failed_to(broken.stage, backend)));
        }
        ExitCode::from(1)
    }

    fn failed(&self, broken: &Broken, backend: &Backend) -> Failure {
        self.located(&broken.error, &failed_to(broken.stage, backend))
    }

    fn located(&self, error: &NodeError, what: &str) -> Failure {
        Failure::of(self.diagnostic(error, what))
    }

    fn diagnostic(&self, error: &NodeError, what: &str) -> Diagnostic {
        node_diagnostic(&self.file, error, what)
    }
}

/// Says how two backends compare.
fn tell_verdict(verdict: &Verdict, report: Option<&Report>, backend: &Backend, reference: &Backend) {
    let (backend, reference) = (&backend.name, &reference.name);
    match verdict {
        Verdict::Pass => println!("{backend} agrees with {reference}"),
        Verdict::Noise => println!("{backend} differs from {reference} by no more than rounding explains:"),
        Verdict::Invalid(why) => println!("{backend} cannot be compared with {reference}: {why}"),
        Verdict::Fail(_) | Verdict::Flaky { .. } => println!("{backend} differs from {reference}:"),
    }
    if let Some(report) = report {
        tell_differences(report, 10);
    }
}

/// A diagnostic of what went wrong at a node.
pub fn node_diagnostic(file: &Path, error: &NodeError, what: &str) -> Diagnostic {
    let mut location = Location::in_file(file);
    if let Some((line, column)) = error.span {
        location = location.line(line).column(column);
    }
    let (code, hint) = match &error.error {
        OpError::Invalid(_) => (
            Code::new("run::invalid"),
            "the program is wrong at this node, and PyTorch refuses it too: `pyrite show` prints the shape and type of every value",
        ),
        OpError::Unsupported(_) => (
            Code::new("run::unsupported"),
            "`pyrite ops` lists what Pyrite can run; `--backend torch:eager --reference torch:eager` leaves the rest to PyTorch",
        ),
        OpError::Fault(_) => (Code::new("run::internal"), "this is a bug in Pyrite; please report it with the file"),
        OpError::Outside { .. } => {
            (Code::new("run::outside"), "`pyrite minify` finds the smallest program that does this")
        }
    };
    let node = error.node.as_ref().map(|n| format!(" at node `{n}`")).unwrap_or_default();
    let op = error.op.as_ref().map(|o| format!(" ({o})")).unwrap_or_default();
    let mut diagnostic =
        Diagnostic::error(code, format!("{what}{node}{op}")).at(location).cause(&error.error).hint(hint);
    if let Some(stack) = &error.stack {
        diagnostic = diagnostic.hint(format!("the node was captured here: {}", stack.trim()));
    }
    diagnostic
}

fn failed_to(stage: Stage, backend: &Backend) -> String {
    match stage {
        Stage::Forward if &*backend.name == "eager" => "the run failed".to_owned(),
        stage => format!("{} failed to {}", backend.name, stage_name(stage)),
    }
}

/// What a backend fails to do.
fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Capture => "capture",
        Stage::Compile => "compile",
        Stage::Forward => "run",
        Stage::Backward => "run backward",
    }
}

/// The backend of a name.
pub fn named(name: &str) -> Result<Backend, Failure> {
    find(name).ok_or_else(|| {
        let known: Vec<String> = backends().iter().map(|b| b.name.to_string()).collect();
        let mut problem = Diagnostic::error(Code::new("cli::unknown-backend"), format!("there is no backend `{name}`"));
        // Inductor is torch's: its name alone is the commonest slip of all.
        let torch = trust::is_of_torch(name).then(|| format!("torch:{name}"));
        if let Some(near) = torch.as_deref().or_else(|| nearest(name, known.iter().map(String::as_str))) {
            problem = problem.hint(format!("did you mean `{near}`?"));
        }
        Failure::of(
            problem.hint(format!(
                "known: {}; torch:NAME for torch.compile's, cmd:PROGRAM for any program",
                known.join(", ")
            )),
        )
    })
}

/// What is said of a backend of torch's that is not there.
pub fn unknown_backend(why: &str) -> Failure {
    let (message, hint) = why.split_once("; ").unwrap_or((why, "`pyrite backends` lists Pyrite's own"));
    Failure::of(Diagnostic::error(Code::new("cli::unknown-backend"), message).hint(hint))
}

/// How closely the file wants backends compared.
pub fn said_by_file(program: &Program) -> Precision {
    match program.read.get("accuracy") {
        Some("off" | "") => Precision::Off,
        Some("strict" | "strict_accuracy") => Precision::Strict,
        _ => Precision::Fp,
    }
}

/// The gradients there are, with the names of what they are gradients of.
fn gradients(results: &Results) -> Vec<(String, Tensor)> {
    let inputs = results.input_gradients.iter().enumerate().map(|(index, g)| (format!("input {index}"), g));
    let parameters = results.parameter_gradients.iter().map(|(name, g)| (name.to_string(), g));
    inputs.chain(parameters).filter_map(|(name, g)| Some((name, g.clone()?))).collect()
}

/// A bar on standard error once a run takes longer than a moment.
struct Progress {
    nodes: u64,
    start: Instant,
    done: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    fn new(nodes: u64) -> Self {
        Self { nodes, start: Instant::now(), done: 0, bar: None }
    }

    fn step(&mut self, node: &Node) {
        self.done += 1;
        if self.bar.is_none() && self.start.elapsed() > Duration::from_millis(500) {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} nodes, {elapsed}, {msg}");
            let bar = ProgressBar::new(self.nodes);
            self.bar = Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())));
        }
        if let Some(bar) = &self.bar {
            // A backward half has nodes that the program's graph does not count.
            bar.set_length(self.nodes.max(self.done));
            bar.set_position(self.done);
            bar.set_message(node.name.clone());
        }
    }

    fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
