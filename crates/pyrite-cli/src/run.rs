//! `pyrite run FILE`: runs a program, forward and backward, and compares backends.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pyrite_compiler::training::{Results, flatten};
use pyrite_compiler::{Backend, Options};
use pyrite_debug::{Assessment, Broken, Ran};
use pyrite_diag::{Code, Diagnostic};
use pyrite_interp::Mode;
use pyrite_ir::{Graph, Node, Value};
use pyrite_oracle::Verdict;
use pyrite_passes::Random;
use pyrite_session::Program;
use pyrite_session::backend::{backend_diagnostic, named};
use pyrite_session::execution::{Executed, Execution, direction, failed_to, prepared, stage_name};
use pyrite_session::outputs::{describe, line, save};
use pyrite_session::results::lines_of;
use pyrite_tensor::Tensor;
use serde_json::{Value as Json, json};

use crate::failure::{Failure, tell_notes, tell_one};
use crate::leaving::Leaving;
use crate::options::Judging;
use crate::reporter::missing_data;
use crate::{ExitCode, Host, Outcome};

/// What the run does beyond computing.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Check {
    /// Nothing
    Off,
    /// Compute in double precision
    Fp64,
    /// Report writes and aliasing that the schema does not declare
    Schema,
    /// Compare inferred metadata with the results
    Inference,
}

/// Run a program: a repro, a dump of PyTorch or Pyrite, or a torch.export file
#[derive(clap::Args)]
pub struct Run {
    /// The file
    file: PathBuf,
    /// Backend; its results are compared with the reference if the two differ (`pyrite backends` lists all)
    #[arg(long, default_value = "eager")]
    backend: String,
    /// Memory budget for saved activations, as a fraction of what is saved if no matmul is recomputed
    #[arg(long, default_value_t = 1.0)]
    memory_budget: f64,
    /// Whether the native compiler draws the same random numbers as eager, instead of a faster stream of its own
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    fallback_random: bool,
    /// Additional checks during the run
    #[arg(long, value_enum, default_value = "off")]
    check: Check,
    /// Compile once, run N times, and report the fastest run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Save the outputs, in order, to this .npz file
    #[arg(long, value_name = "FILE")]
    save_outputs: Option<PathBuf>,
    /// Save the gradients of inputs and parameters, in order, to this .npz file
    #[arg(long, value_name = "FILE")]
    save_gradients: Option<PathBuf>,
    /// Save the inputs as they are after the run, in order, to this .npz file
    #[arg(long, value_name = "FILE")]
    save_inputs: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    judging: Judging,
    #[command(flatten)]
    leaving: Leaving,
}

impl Run {
    /// Runs the program and prints its outputs.
    pub fn run(&self, host: &Host) -> Outcome {
        let asked = self.judging.options(Some(&self.backend));
        let program = Program::open_for(host, &self.file, &asked)?;
        if !self.json {
            tell_notes(&program);
        }
        if !(0.0..=1.0).contains(&self.memory_budget) {
            let message = format!("the memory budget {} is not between 0 and 1", self.memory_budget);
            let problem = Diagnostic::error(Code::new("cli::bad-value"), message);
            return Err(Failure::of(
                problem.hint("1 saves every activation that is worth it, 0 recomputes everything"),
            ));
        }
        let question = program.question(&asked, &self.backend)?;
        let (backend, reference) = (named(&question.backend)?, named(&question.reference)?);
        let (graph, generated) = prepared(&program, asked.seed)?;
        if generated > 0 && !self.json {
            let inputs = missing_data(generated);
            eprintln!("note: {inputs} no stored data; random data from seed {} is used", question.seed);
        }
        let backend = self.leaving.wrap(backend, &reference, question.accuracy, question.switches.clone())?;
        let options = Options {
            seed: question.seed,
            mode: match self.check {
                Check::Off => Mode::Eager,
                Check::Fp64 => Mode::Fp64,
                Check::Schema => Mode::SchemaCheck,
                Check::Inference => Mode::CrossReference,
            },
            direction: direction(&program, asked.forward_only),
            memory_budget: self.memory_budget,
            random: if self.fallback_random { Random::Eager } else { Random::Stream },
            ..Options::default()
        };
        let execution = Execution {
            program: &program,
            graph: &graph,
            backend: &backend,
            reference: &reference,
            accuracy: question.accuracy,
            switches: &question.switches,
            options,
            seed: asked.seed,
            repeat: self.repeat,
            watch: &watch,
        };
        match execution.run()? {
            Executed::Ran { ran, compared } => {
                self.done(&program, question.seed, &backend, &ran, compared.as_deref().map(|c| (&reference, c)))
            }
            Executed::OnlyBackendFailed(broken) => Ok(self.only_the_backend_failed(&broken, &backend, &reference)),
        }
    }

    /// Prints what came out, and of the comparison if there was one.
    fn done(
        &self,
        program: &Program,
        seed: u64,
        backend: &Backend,
        ran: &Ran,
        compared: Option<(&Backend, &Assessment)>,
    ) -> Outcome {
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
        let verdict = compared.map_or(Verdict::Pass, |(_, assessment)| assessment.verdict.clone());
        let report = compared.and_then(|(_, assessment)| assessment.report.as_ref());
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
                "seed": seed,
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
                tell_verdict(&verdict, backend, reference);
                report.map(|report| lines_of(report, 10)).iter().flatten().for_each(|line| println!("{line}"));
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
            let (name, stage) = (&backend.name, stage_name(broken.stage));
            println!("{name} fails to {stage}; {} does not fail in this way", reference.name);
            tell_one(backend_diagnostic(&self.file, &broken.error, &failed_to(broken.stage, backend), name));
        }
        ExitCode::from(1)
    }
}

/// Says how two backends compare.
fn tell_verdict(verdict: &Verdict, backend: &Backend, reference: &Backend) {
    let (backend, reference) = (&backend.name, &reference.name);
    match verdict {
        Verdict::Pass => println!("{backend} agrees with {reference}"),
        Verdict::Noise => println!("{backend} differs from {reference} by no more than rounding explains:"),
        Verdict::Invalid(why) => println!("{backend} cannot be compared with {reference}: {why}"),
        Verdict::Fail(_) | Verdict::Flaky { .. } => println!("{backend} differs from {reference}:"),
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
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Watches a run with a bar.
fn watch(graph: &Graph) -> Box<dyn FnMut(&Node)> {
    let mut progress = Progress::new(graph.len() as u64);
    Box::new(move |node| progress.step(node))
}
