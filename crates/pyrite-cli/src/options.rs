//! The options that several commands share, as the command line spells them.
//!
//! What they mean is defined once, by `pyrite_session::Options`; this is their spelling and their help.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pyrite_compare::{Accuracy, Nans, SmallTensors, Weight};
use pyrite_debug::{Cloning, Fp64, Switches};
use pyrite_session::{Autocast, Options};

use crate::standard_input;

/// What is asked of a backend
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Judging {
    /// Reference backend [default: eager, or torch:eager for operators that only torch has]
    #[arg(long)]
    reference: Option<String>,
    /// How to compare the results [default: from the file, else fp]
    #[arg(long, value_parser = accuracy())]
    accuracy: Option<Accuracy>,
    /// Do not compute gradients
    #[arg(long)]
    forward_only: bool,
    /// Seed for random numbers and generated inputs [default: from the file, else 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Run under autocast with this dtype
    #[arg(long, value_name = "TYPE", value_parser = autocast())]
    autocast: Option<Autocast>,
    /// Generate all inputs from the seed and ignore the file's data, for dumps without storages
    #[arg(long)]
    random_inputs: bool,
    #[command(flatten)]
    comparing: Comparing,
}

impl Judging {
    /// As the library takes them.
    pub fn options(&self, backend: Option<&String>) -> Options {
        Options {
            backend: backend.cloned(),
            reference: self.reference.clone(),
            accuracy: self.accuracy,
            forward_only: self.forward_only,
            seed: self.seed,
            autocast: self.autocast,
            random_inputs: self.random_inputs,
            switches: self.comparing.switches(),
            ..Options::default()
        }
    }
}

/// The accuracies, with what they mean.
pub fn accuracy() -> impl TypedValueParser<Value = Accuracy> {
    let help = |accuracy| match accuracy {
        Accuracy::Off => "Not at all: only whether it runs",
        Accuracy::Fp => "As floating-point numbers, with double precision as the judge",
        Accuracy::Strict => "Bit for bit",
    };
    let values = Accuracy::ALL.map(|accuracy| PossibleValue::new(accuracy.name()).help(help(accuracy)));
    PossibleValuesParser::new(values).map(|name| Accuracy::from_name(&name).unwrap_or_default())
}

/// The dtypes of autocast.
fn autocast() -> impl TypedValueParser<Value = Autocast> {
    let values = [PossibleValue::new("bf16").help("bfloat16"), PossibleValue::new("f16").help("float16")];
    PossibleValuesParser::new(values).map(|name| if name == "f16" { Autocast::F16 } else { Autocast::Bf16 })
}

/// Where results of a file go that has no folder of its own.
pub fn beside(file: &std::path::Path) -> Option<PathBuf> {
    standard_input::is_it(file).then(PathBuf::new)
}

/// What a comparison ignores and requires
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Comparison")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Comparing {
    /// Relative and absolute tolerance for all floats [default: depends on the dtype]
    #[arg(long, value_name = "TOLERANCE", value_parser = tolerance)]
    tol: Option<f64>,
    /// NaNs are not equal to each other
    #[arg(long)]
    unequal_nan: bool,
    /// Report dtype differences without failing
    #[arg(long)]
    ignore_dtype: bool,
    /// Report differences of integers and bools without failing
    #[arg(long)]
    ignore_non_float: bool,
    /// Treat Python numbers and zero-dimensional tensors as equal
    #[arg(long)]
    relaxed_numbers: bool,
    /// Use only the tolerance, without an fp64 reference and a rounding model
    #[arg(long, conflicts_with = "require_fp64")]
    no_fp64: bool,
    /// Fail if the program cannot run in double precision
    #[arg(long)]
    require_fp64: bool,
    /// Allow small tensors eight to ten times the fp64 error of the reference
    #[arg(long)]
    larger_multiplier: bool,
    /// Accept floats whose cosine similarity is at least this
    #[arg(long, value_name = "COSINE", num_args = 0..=1, default_missing_value = "0.99", value_parser = cosine)]
    cosine_similarity: Option<f64>,
    /// Do not copy inputs between runs, for programs that do not write to their inputs
    #[arg(long)]
    no_clone_inputs: bool,
}

impl Comparing {
    /// As the library takes them.
    pub fn switches(&self) -> Switches {
        let noted = |yes: bool| if yes { Weight::Note } else { Weight::Difference };
        Switches {
            tolerance: self.tol,
            nans: if self.unequal_nan { Nans::Unequal } else { Nans::Equal },
            dtypes: noted(self.ignore_dtype),
            non_floats: noted(self.ignore_non_float),
            kinds: noted(self.relaxed_numbers),
            fp64: match (self.no_fp64, self.require_fp64) {
                (true, _) => Fp64::Unused,
                (_, true) => Fp64::Required,
                _ => Fp64::Used,
            },
            small: if self.larger_multiplier { SmallTensors::Lenient } else { SmallTensors::Usual },
            cosine: self.cosine_similarity,
            cloning: if self.no_clone_inputs { Cloning::Shared } else { Cloning::Cloned },
        }
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if number >= 0.0 && number.is_finite() { Ok(number) } else { Err("expected a number from 0".to_owned()) }
}

fn cosine(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err("expected a number from 0 to 1".to_owned()) }
}
