//! How results look: a line for people, an object for programs, a file for later.

use std::io::BufWriter;
use std::path::Path;

use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_ir::Value;
use pyrite_tensor::formats::npz;
use pyrite_tensor::{DType, Tensor};
use serde_json::{Value as Json, json};

use crate::SessionError;

/// Keeps tensors, in order, in a file that numpy reads.
pub fn save(path: &Path, outputs: &[Value<Tensor>]) -> Result<(), SessionError> {
    save_named(path, npz::numbered(outputs.iter().filter_map(Value::as_tensor).cloned()))
}

/// Keeps tensors by their names in a file that numpy reads.
pub fn save_named(path: &Path, tensors: Vec<(String, Tensor)>) -> Result<(), SessionError> {
    // numpy has no bfloat16 and no floats of 8 bits; single precision holds all their values.
    let narrow = |dtype: DType| dtype == DType::BF16 || dtype.is_float8();
    let readable = |t: Tensor| if narrow(t.dtype()) { t.cast(DType::F32) } else { t };
    let tensors: Vec<(String, Tensor)> = tensors.into_iter().map(|(name, t)| (name, readable(t))).collect();
    let fail = |cause: String| {
        SessionError::of(
            Diagnostic::error(Code::new("cli::cannot-write"), "the outputs cannot be saved")
                .at(Location::in_file(path))
                .cause(cause)
                .hint("choose another file, or free disk space"),
        )
    };
    // The file appears under its name only when it is whole.
    let partial = path.with_extension("npz.partial");
    let written = std::fs::File::create(&partial)
        .map_err(|e| e.to_string())
        .and_then(|file| npz::write(BufWriter::new(file), &tensors).map_err(|e| e.to_string()))
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

/// An output as an object.
pub fn describe(output: &Value<Tensor>) -> Json {
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
