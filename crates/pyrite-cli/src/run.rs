//! `pyrite run FILE`: runs a program.

use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pyrite_compiler::{Executable, Options, backends, find};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_interp::Mode;
use pyrite_ir::{NodeError, OpError, Value};
use pyrite_tensor::formats::npz;
use pyrite_tensor::{DType, Tensor};
use serde_json::{Value as Json, json};

use crate::Outcome;
use crate::failure::Failure;
use crate::program::Program;

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

/// Run a program: a repro, or any dump of PyTorch's or Pyrite's
#[derive(clap::Args)]
pub struct Run {
    /// The file
    file: PathBuf,
    /// Who runs it; `pyrite backends` lists them
    #[arg(long, default_value = "eager")]
    backend: String,
    /// The seed of random numbers and of generated inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What to check on the way
    #[arg(long, value_enum, default_value = "off")]
    check: Check,
    /// Run this often and report the fastest
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Keep the outputs, in order, in this .npz file
    #[arg(long, value_name = "FILE")]
    save_outputs: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
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
        let mode = match self.check {
            Check::Off => Mode::Eager,
            Check::Fp64 => Mode::Fp64,
            Check::Schema => Mode::SchemaCheck,
            Check::Inference => Mode::CrossReference,
        };
        let backend = find(&self.backend).ok_or_else(|| unknown_backend(&self.backend))?;
        let executable = (backend.compile)(program.read.graph.clone(), &Options { seed: self.seed, mode })
            .map_err(|error| self.failed(&error.into()))?;
        let nodes = program.read.graph.len() as u64;
        let mut fastest = Duration::MAX;
        let mut result = Value::None;
        for _ in 0..self.repeat {
            // A program may write to its inputs, so every run gets them afresh.
            let inputs = program.inputs(self.seed)?;
            if inputs.generated > 0 && !self.json {
                eprintln!(
                    "note: {} inputs have no stored data; random data from seed {} is used",
                    inputs.generated, self.seed
                );
            }
            let start = Instant::now();
            result = with_progress(nodes, &*executable, inputs.values).map_err(|error| self.failed(&error))?;
            fastest = fastest.min(start.elapsed());
        }
        let mut outputs = Vec::new();
        flatten(&result, &mut outputs);
        if let Some(path) = &self.save_outputs {
            save(path, &outputs)?;
        }
        if self.json {
            let report = json!({
                "verdict": "pass",
                "signature": null,
                "backend": backend.name,
                "seed": self.seed,
                "read_seconds": program.read_time.as_secs_f64(),
                "run_seconds": fastest.as_secs_f64(),
                "outputs": outputs.iter().map(describe).collect::<Vec<_>>(),
            });
            println!("{report:#}");
        } else {
            for (index, output) in outputs.iter().enumerate() {
                println!("{index}: {}", line(output));
            }
            eprintln!("ran {nodes} nodes in {:.3} ms with backend {}", fastest.as_secs_f64() * 1e3, backend.name);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn failed(&self, error: &NodeError) -> Failure {
        let mut location = Location::in_file(&self.file);
        if let Some((line, column)) = error.span {
            location = location.line(line).column(column);
        }
        let (code, hint) = match &error.error {
            OpError::Invalid(_) => {
                (Code::new("run::invalid"), "the program is wrong at this node; PyTorch refuses it too")
            }
            OpError::Unsupported(_) => (
                Code::new("run::unsupported"),
                "`pyrite ops` lists what Pyrite can run; other operators need a backend that knows them",
            ),
            OpError::Fault(_) => {
                (Code::new("run::internal"), "this is a bug in Pyrite; please report it with the file")
            }
        };
        let node = error.node.as_ref().map(|n| format!(" at node `{n}`")).unwrap_or_default();
        let op = error.op.as_ref().map(|o| format!(" ({o})")).unwrap_or_default();
        Failure::of(
            Diagnostic::error(code, format!("the run failed{node}{op}")).at(location).cause(&error.error).hint(hint),
        )
    }
}

fn unknown_backend(name: &str) -> Failure {
    let known: Vec<&str> = backends().iter().map(|b| b.name).collect();
    let message = format!("there is no backend `{name}`");
    Failure::of(
        Diagnostic::error(Code::new("cli::unknown-backend"), message).hint(format!("known: {}", known.join(", "))),
    )
}

/// Runs with a bar on standard error once the run takes longer than a moment.
fn with_progress(
    nodes: u64,
    executable: &dyn Executable,
    inputs: Vec<Value<Tensor>>,
) -> Result<Value<Tensor>, NodeError> {
    let start = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    let mut done = 0;
    let result = executable.run(inputs, &mut |_, node| {
        done += 1;
        if bar.is_none() && start.elapsed() > Duration::from_millis(500) {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} nodes, {elapsed}, {msg}");
            bar = Some(ProgressBar::new(nodes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())));
        }
        if let Some(bar) = &bar {
            bar.set_position(done);
            bar.set_message(node.name.clone());
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    result
}

/// The outputs in order, nested lists opened.
pub fn flatten(value: &Value<Tensor>, into: &mut Vec<Value<Tensor>>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| flatten(item, into)),
        other => into.push(other.clone()),
    }
}

fn save(path: &PathBuf, outputs: &[Value<Tensor>]) -> Result<(), Failure> {
    // numpy has no bfloat16; single precision holds all its values.
    let tensors = outputs
        .iter()
        .filter_map(Value::as_tensor)
        .map(|t| if t.dtype() == DType::BF16 { t.cast(DType::F32) } else { t.clone() });
    let fail = |cause: String| {
        Failure::of(
            Diagnostic::error(Code::new("cli::cannot-write"), "the outputs cannot be saved")
                .at(Location::in_file(path))
                .cause(cause)
                .hint("choose another file or make room"),
        )
    };
    // The file appears under its name only when it is whole.
    let partial = path.with_extension("npz.partial");
    let written = std::fs::File::create(&partial)
        .map_err(|e| e.to_string())
        .and_then(|file| npz::write(BufWriter::new(file), &npz::numbered(tensors)).map_err(|e| e.to_string()))
        .and_then(|()| std::fs::rename(&partial, path).map_err(|e| e.to_string()));
    written.map_err(|cause| {
        let _ = std::fs::remove_file(&partial);
        fail(cause)
    })
}

/// Smallest, largest and mean finite element, and how many are not finite.
struct Statistics {
    min: f64,
    max: f64,
    mean: f64,
    nans: usize,
    infinities: usize,
    zeros: usize,
}

impl Statistics {
    fn of(tensor: &Tensor) -> Self {
        let values = if tensor.dtype().is_complex() {
            tensor.to_c128s().into_iter().map(num_complex::Complex::norm).collect()
        } else {
            tensor.to_f64s()
        };
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let count = finite().count();
        Self {
            min: finite().fold(f64::INFINITY, f64::min),
            max: finite().fold(f64::NEG_INFINITY, f64::max),
            mean: if count > 0 { finite().sum::<f64>() / count as f64 } else { f64::NAN },
            nans: values.iter().filter(|v| v.is_nan()).count(),
            infinities: values.iter().filter(|v| v.is_infinite()).count(),
            zeros: values.iter().filter(|v| **v == 0.0).count(),
        }
    }
}

fn describe(output: &Value<Tensor>) -> Json {
    let Value::Tensor(tensor) = output else {
        return json!({"kind": output.kind(), "value": plain(output)});
    };
    let s = Statistics::of(tensor);
    json!({
        "kind": "tensor",
        "dtype": tensor.dtype().abbr(),
        "shape": tensor.shape(),
        "stride": tensor.stride(),
        "statistics": {
            "min": s.min, "max": s.max, "mean": s.mean, "nans": s.nans, "infinities": s.infinities, "zeros": s.zeros,
        },
    })
}

/// An output in a line, for people.
pub fn line(output: &Value<Tensor>) -> String {
    let Value::Tensor(tensor) = output else { return plain(output) };
    let s = Statistics::of(tensor);
    let odd = match (s.nans, s.infinities) {
        (0, 0) => String::new(),
        (nans, infinities) => format!(", {nans} nan, {infinities} inf"),
    };
    let range =
        if s.min > s.max { String::new() } else { format!(" min {:.6}, mean {:.6}, max {:.6}", s.min, s.mean, s.max) };
    format!("{}{:?} stride {:?}{range}{odd}", tensor.dtype(), tensor.shape(), tensor.stride())
}

fn plain(value: &Value<Tensor>) -> String {
    match value {
        Value::None => "None".to_owned(),
        Value::Str(text) => text.to_string(),
        other => other.as_scalar().map_or_else(|| other.kind().to_owned(), |s| s.to_string()),
    }
}
