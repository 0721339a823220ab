//! Results: read from files, made by programs, compared, and how differences read.
//!
//! A file holds tensors (`.npy`, `.npz`, `.safetensors`, what `torch.save` wrote), or is a program, which is run. Nothing in
//! it is executed by Python.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use pyrite_compare::{Difference, Outcome, Report, Results, Role, Rule};
use pyrite_compiler::Options;
use pyrite_debug::{compared, execute};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_interp::Mode;
use pyrite_ir::Value;
use pyrite_tensor::Tensor;
use pyrite_tensor::formats::torch_zip::Saved;
use pyrite_tensor::formats::{FormatError, npy, npz, safetensors, torch_zip};

use crate::backend::{named, node_diagnostic};
use crate::execution::direction;
use crate::{Host, Program, SessionError};

/// What a file holds, or what its program gives with a backend.
pub fn results_of(
    host: &Host,
    file: &Path,
    backend: &str,
    forward_only: bool,
    seed: Option<u64>,
) -> Result<Results, SessionError> {
    let extension = file.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if extension != "py" {
        let values = held(file, &extension).map_err(|cause| {
            SessionError::of(
                Diagnostic::error(Code::new("compare::cannot-read"), "the results cannot be read")
                    .at(Location::in_file(file))
                    .cause(cause)
                    .hint("give a .npy, .npz or .safetensors file, a file that torch.save wrote, or a program"),
            )
        })?;
        return Ok(Results::new().with("tensors", Role::Outputs, values));
    }
    let program = Program::open(file, &host.reading)?;
    let backend = named(backend)?;
    let candidate = program.candidate(seed)?;
    let direction = direction(&program, forward_only);
    let options = Options { seed: candidate.seed, mode: Mode::Eager, direction, ..Options::default() };
    let ran = execute(&candidate.graph, &candidate.inputs, &backend, &options, &mut |_| {}, &mut |_, _| {});
    ran.map(|ran| compared(&ran.results)).map_err(|broken| {
        SessionError::of(node_diagnostic(file, &broken.error, &format!("{} fails on it", backend.name)))
    })
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

/// A comparison in a word.
pub fn verdict_of(report: &Report) -> &'static str {
    match report.outcome() {
        Outcome::Same => "pass",
        Outcome::Noise => "noise",
        Outcome::Different => "fail",
    }
}

/// A comparison in a sentence.
pub fn sentence_of(report: &Report) -> String {
    match report.outcome() {
        Outcome::Same => format!("all {} values agree", report.compared),
        Outcome::Noise => format!("{} values differ by no more than rounding explains", report.compared),
        Outcome::Different => format!("{} of {} values compared differ:", report.differences.len(), report.compared),
    }
}

/// The worst differences of a comparison, and what else there is to tell, in lines.
pub fn lines_of(report: &Report, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    report.differences.iter().take(most).for_each(|difference| difference_lines(difference, &mut lines));
    if report.differences.len() > most {
        lines.push(format!("and {} more differences", report.differences.len() - most));
    }
    lines.extend(report.notes.iter().take(10).map(|note| format!("note: {note}")));
    lines
}

/// A difference, in lines.
fn difference_lines(difference: &Difference, lines: &mut Vec<String>) {
    lines.push(format!(
        "{}: {}: the rule is that {}",
        difference.place,
        difference.class.name(),
        difference.rule.demand()
    ));
    let Some(numbers) = &difference.numbers else {
        lines.push(format!("  expected {}, got {}", difference.expected, difference.actual));
        return;
    };
    let worst = &numbers.worst;
    let ulps = worst.ulps.map(|ulps| format!(", {ulps} ulp")).unwrap_or_default();
    let fp64 = worst.fp64.as_ref().map(|fp64| format!(", fp64 {fp64}")).unwrap_or_default();
    lines.push(format!("  {} of {} elements differ", numbers.differing, numbers.elements));
    lines.push(format!("  worst at {:?}: expected {}, got {}{fp64}{ulps}", worst.index, worst.expected, worst.actual));
    let q = &numbers.quantiles;
    lines.push(format!(
        "  absolute error: half up to {}, 90 % up to {}, 99 % up to {}, all up to {}",
        q.p50, q.p90, q.p99, numbers.max_abs
    ));
    // No tolerance accepts a NaN for a number.
    let passing = match difference.rule {
        Rule::NanPosition | Rule::InfinityPosition | Rule::NoNan => "no tolerance passes".to_owned(),
        _ => format!("the smallest tolerance that passes is {}", numbers.passing_tolerance),
    };
    lines.push(format!("  largest relative error {}; {passing}", numbers.max_rel));
    if let (Some(expected), Some(actual)) = (numbers.expected_rmse, numbers.actual_rmse) {
        lines.push(format!("  root mean square error against fp64: {actual}, that of the reference {expected}"));
    }
    if let Some(spread) = &numbers.spread {
        lines.push(format!(
            "  root mean square distance {}; other rounding moves it by {}, at worst {}, in {} runs",
            spread.actual_rmse, spread.rmse, spread.worst, spread.samples
        ));
    }
    if let Some(cosine) = numbers.cosine {
        lines.push(format!("  cosine {cosine}"));
    }
}
