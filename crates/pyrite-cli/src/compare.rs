//! `pyrite compare A B`: do two files hold the same results?
//!
//! A file holds tensors (`.npy`, `.npz`, `.safetensors`, what `torch.save` wrote), or is a program, which is run. Tensors
//! are compared by their names: those of A are what is expected. Nothing in either file is executed by Python.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use pyrite_compare::{Accuracy, Difference, Outcome as Comparison, Report, Results, Role, Rule, compare};
use pyrite_compiler::Options;
use pyrite_compiler::backend::Direction;
use pyrite_debug::{compared, execute};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_interp::Mode;
use pyrite_ir::Value;
use pyrite_tensor::Tensor;
use pyrite_tensor::formats::torch_zip::Saved;
use pyrite_tensor::formats::{FormatError, npy, npz, safetensors, torch_zip};
use serde_json::json;

use crate::ExitCode;
use crate::Outcome;
use crate::failure::Failure;
use crate::program::Program;
use crate::run::{Precision, named, node_diagnostic};
use crate::switches::Comparing;

/// Compare two files of results, or the results of two programs
#[derive(clap::Args)]
pub struct Compare {
    /// What is expected: .npy, .npz, .safetensors, a file of torch.save, or a program
    expected: PathBuf,
    /// What is compared with it
    actual: PathBuf,
    /// The same in double precision, which judges what is not close
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Who runs programs
    #[arg(long, default_value = "eager")]
    backend: String,
    /// How closely the two are compared
    #[arg(long, value_enum, default_value = "fp")]
    accuracy: Precision,
    /// Leave out the gradients of programs
    #[arg(long)]
    forward_only: bool,
    /// The seed of random numbers and of generated inputs [default: what the file says, else 0]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    comparing: Comparing,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Compare {
    /// Compares the files and says what differs.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        let accuracy = match self.accuracy {
            Precision::Off => Accuracy::Off,
            Precision::Fp => Accuracy::Fp,
            Precision::Strict => Accuracy::Strict,
        };
        let (expected, actual) = (self.results(&self.expected)?, self.results(&self.actual)?);
        let truth = self.truth.as_deref().map(|file| self.results(file)).transpose()?;
        let report = compare(&expected, &actual, truth.as_ref(), &self.comparing.switches().options(accuracy));
        if self.json {
            let object = json!({
                "verdict": verdict(&report),
                "expected": self.expected,
                "actual": self.actual,
                "comparison": report,
            });
            println!("{object:#}");
        } else {
            tell(&report);
        }
        Ok(if report.agrees() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    /// What a file holds, or what its program gives.
    fn results(&self, file: &Path) -> Result<Results, Failure> {
        let extension = file.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        if extension == "py" {
            return self.ran(file);
        }
        let values = held(file, &extension).map_err(|cause| {
            Failure::of(
                Diagnostic::error(Code::new("compare::cannot-read"), "the results cannot be read")
                    .at(Location::in_file(file))
                    .cause(cause)
                    .hint("give a .npy, .npz or .safetensors file, a file that torch.save wrote, or a program"),
            )
        })?;
        Ok(Results::new().with("tensors", Role::Outputs, values))
    }

    fn ran(&self, file: &Path) -> Result<Results, Failure> {
        let program = Program::open(file)?;
        let backend = named(&self.backend)?;
        let candidate = program.candidate(self.seed)?;
        let forward_only = self.forward_only || program.is_differentiated();
        let direction = if forward_only { Direction::Forward } else { Direction::ForwardAndBackward };
        let options = Options { seed: candidate.seed, mode: Mode::Eager, direction, ..Options::default() };
        let ran = execute(&candidate.graph, &candidate.inputs, &backend, &options, &mut |_| {}, &mut |_, _| {});
        match ran {
            Ok(ran) => Ok(compared(&ran.results)),
            Err(broken) => {
                let what = format!("{} fails on it", backend.name);
                Err(Failure::of(node_diagnostic(file, &broken.error, &what)))
            }
        }
    }
}

/// A value with its name.
type Named = (String, Value<Tensor>);

/// What a file holds, by its extension or by how it begins: tensors and everything else, each with its name.
fn held(file: &Path, extension: &str) -> Result<Vec<Named>, String> {
    let named = |tensors: Vec<(String, Tensor)>| -> Vec<Named> {
        tensors.into_iter().map(|(name, tensor)| (name, Value::Tensor(tensor))).collect()
    };
    let text = |error: FormatError| error.to_string();
    let open = || File::open(file).map(BufReader::new).map_err(|error| error.to_string());
    let saved = || {
        let mut found = Vec::new();
        leaves(&torch_zip::read_saved(open()?).map_err(text)?, &mut String::new(), &mut found);
        Ok(found)
    };
    match extension {
        "npy" => Ok(named(vec![("0".to_owned(), npy::read(open()?, "0").map_err(text)?)])),
        "npz" => npz::read(open()?).map(named).map_err(text),
        "safetensors" => {
            safetensors::read(&std::fs::read(file).map_err(|error| error.to_string())?).map(named).map_err(text)
        }
        "pt" | "pth" | "bin" | "ckpt" => saved(),
        other => {
            open()?;
            saved().or_else(|_: String| npz::read(open()?).map(named).map_err(text)).map_err(|_| {
                let kind = if other.is_empty() { "no extension".to_owned() } else { format!("the extension .{other}") };
                format!("it has {kind} and is neither a file of torch.save nor an .npz")
            })
        }
    }
}

/// Everything in nested containers, keys and positions joined by dots. A container that is empty is a value itself.
fn leaves(saved: &Saved, path: &mut String, found: &mut Vec<Named>) {
    let mut inside = |key: &str, value: &Saved| {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(key);
        leaves(value, path, found);
        path.truncate(length);
    };
    let value = match saved {
        Saved::List(items) if !items.is_empty() => {
            return items.iter().enumerate().for_each(|(index, item)| inside(&index.to_string(), item));
        }
        Saved::Dict(items) if !items.is_empty() => return items.iter().for_each(|(key, item)| inside(key, item)),
        Saved::List(_) => Value::from("[]"),
        Saved::Dict(_) => Value::from("{}"),
        Saved::None => Value::None,
        Saved::Bool(value) => Value::Bool(*value),
        Saved::Int(value) => (*value).into(),
        Saved::Float(value) => Value::Float(*value),
        Saved::Text(text) => Value::from(text.as_str()),
        Saved::DType(dtype) => Value::DType(*dtype),
        Saved::Tensor { tensor, .. } => Value::Tensor(tensor.clone()),
        Saved::Storage(storage) => Value::Tensor(Tensor::from_slice(&storage.to_bytes(), &[storage.nbytes() as i64])),
    };
    found.push((path.clone(), value));
}

fn verdict(report: &Report) -> &'static str {
    match report.outcome() {
        Comparison::Same => "pass",
        Comparison::Noise => "noise",
        Comparison::Different => "fail",
    }
}

fn tell(report: &Report) {
    match report.outcome() {
        Comparison::Same => println!("all {} values agree", report.compared),
        Comparison::Noise => println!("{} values differ by no more than rounding explains", report.compared),
        Comparison::Different => {
            println!("{} of {} values compared differ:", report.differences.len(), report.compared);
        }
    }
    tell_differences(report, 20);
}

/// Prints the worst differences, and what else there is to tell.
pub fn tell_differences(report: &Report, lines: usize) {
    report.differences.iter().take(lines).for_each(tell_difference);
    if report.differences.len() > lines {
        println!("and {} more differences", report.differences.len() - lines);
    }
    report.notes.iter().take(10).for_each(|note| println!("note: {note}"));
}

fn tell_difference(difference: &Difference) {
    println!("{}: {}: the rule is that {}", difference.place, difference.class.name(), difference.rule.demand());
    let Some(numbers) = &difference.numbers else {
        println!("  expected {}, got {}", difference.expected, difference.actual);
        return;
    };
    let worst = &numbers.worst;
    let ulps = worst.ulps.map(|ulps| format!(", {ulps} ulp")).unwrap_or_default();
    let truth = worst.truth.as_ref().map(|truth| format!(", fp64 {truth}")).unwrap_or_default();
    println!("  {} of {} elements differ", numbers.differing, numbers.elements);
    println!("  worst at {:?}: expected {}, got {}{truth}{ulps}", worst.index, worst.expected, worst.actual);
    let q = &numbers.quantiles;
    println!(
        "  absolute error: half up to {}, 90 % up to {}, 99 % up to {}, all up to {}",
        q.p50, q.p90, q.p99, numbers.max_abs
    );
    // No tolerance accepts a NaN for a number.
    let passing = match difference.rule {
        Rule::NanPosition | Rule::InfinityPosition | Rule::NoNan => "no tolerance passes".to_owned(),
        _ => format!("the smallest tolerance that passes is {}", numbers.passing_tolerance),
    };
    println!("  largest relative error {}; {passing}", numbers.max_rel);
    if let (Some(expected), Some(actual)) = (numbers.expected_rmse, numbers.actual_rmse) {
        println!("  root mean square error against fp64: {actual}, that of the reference {expected}");
    }
    if let Some(spread) = &numbers.spread {
        println!(
            "  root mean square distance {}; other rounding moves it by {}, at worst {}, in {} runs",
            spread.actual_rmse, spread.rmse, spread.worst, spread.samples
        );
    }
    if let Some(cosine) = numbers.cosine {
        println!("  cosine {cosine}");
    }
}
