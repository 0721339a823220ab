//! What a session may be told: the one definition that the command line, Python and the records on disk share.

use std::path::PathBuf;
use std::time::Duration;

use pyrite_compare::Accuracy;
use pyrite_debug::{Limits, Switches};
use pyrite_oracle::CONFIDENCE;
use pyrite_reduce::Keep;
use pyrite_tensor::DType;
use serde::{Deserialize, Serialize};

use crate::target::Target;

/// The lower precision of autocast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Autocast {
    /// bfloat16.
    Bf16,
    /// float16.
    F16,
}

impl Autocast {
    /// Its dtype.
    pub fn dtype(self) -> DType {
        match self {
            Self::Bf16 => DType::BF16,
            Self::F16 => DType::F16,
        }
    }
}

/// All of it. Every field has a default, and a session on a file needs no more than [`Options::default`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of a session")]
pub struct Options {
    /// The backend under test; by default the one that the file names.
    pub backend: Option<String>,
    /// The reference backend; by default `eager`, and `torch:eager` for operators that only torch knows.
    pub reference: Option<String>,
    /// How closely the two are compared; by default as the file says, else as floating-point numbers.
    pub accuracy: Option<Accuracy>,
    /// Whether gradients are left out.
    pub forward_only: bool,
    /// The seed of random numbers and of generated inputs; by default the one that the file names, else 0.
    pub seed: Option<u64>,
    /// What the comparison overlooks and insists on.
    pub switches: Switches,
    /// How often the program is run to confirm that it fails.
    pub runs: u32,
    /// How often a reduced program is run before it is believed to fail always or never.
    pub trials: u32,
    /// How sure a verdict is on what fails only sometimes.
    pub confidence: f64,
    /// How many candidates are tried at once.
    pub jobs: u32,
    /// How many guilty steps a bisection looks for.
    pub culprits: usize,
    /// Seconds after which a search stops with the best found so far, and a bisection asks nothing more.
    pub time_budget: Option<f64>,
    /// Seconds after which a run is a hang; by default 300, then ten times the first run.
    pub time_limit: Option<f64>,
    /// How many megabytes a candidate may use; by default three quarters of the machine's.
    pub memory_limit: Option<u64>,
    /// A command that is asked instead of a backend.
    pub check: Option<String>,
    /// Only errors whose text contains this are the failure.
    pub check_str: Option<String>,
    /// The lower precision of autocast, under which the program runs in every backend.
    pub autocast: Option<Autocast>,
    /// Whether inputs are drawn anew from the seed, in place of the data that the file has.
    pub random_inputs: bool,
    /// The largest number of nodes that a reduction removes at once.
    pub max_granularity: Option<usize>,
    /// Whether the values of nodes are kept in temporary files.
    pub offload_to_disk: bool,
    /// Whether no values of nodes are kept, so that no candidate is fed from them.
    pub skip_saving_eager_intermediates: bool,
    /// Whether every improvement of a search stays in `checkpoints/N.py`, by its number of nodes.
    pub checkpoints: bool,
    /// The build system whose target is written beside the repro.
    pub target: Option<Target>,
    /// The folder of the result; by default a new one.
    pub out: Option<PathBuf>,
    /// The folder of a search to go on with.
    pub resume: Option<PathBuf>,
    /// Where a new folder is made; by default beside the file.
    pub beside: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backend: None,
            reference: None,
            accuracy: None,
            forward_only: false,
            seed: None,
            switches: Switches::default(),
            runs: 3,
            trials: 5,
            confidence: CONFIDENCE,
            jobs: 2,
            culprits: 4,
            time_budget: None,
            time_limit: None,
            memory_limit: None,
            check: None,
            check_str: None,
            autocast: None,
            random_inputs: false,
            max_granularity: None,
            offload_to_disk: false,
            skip_saving_eager_intermediates: false,
            checkpoints: false,
            target: None,
            out: None,
            resume: None,
            beside: None,
        }
    }
}

impl Options {
    /// How long a run may take before anything is known of the program.
    pub const FIRST: Duration = Duration::from_mins(5);

    /// Where the values of nodes are kept that candidates are fed from.
    pub fn keep(&self) -> Keep {
        match (self.skip_saving_eager_intermediates, self.offload_to_disk) {
            (true, _) => Keep::Nowhere,
            (_, true) => Keep::OnDisk,
            _ => Keep::InMemory,
        }
    }

    /// How long a run may take.
    pub fn time(&self) -> Duration {
        self.time_limit.map_or(Self::FIRST, Duration::from_secs_f64)
    }

    /// What a run may use before anything is known of the program.
    pub fn limits(&self) -> Limits {
        let memory = self.memory_limit.map(|mb| mb << 20).or_else(Limits::usual_memory);
        Limits { time: self.time(), memory }
    }

    /// How long a search may take.
    pub fn budget(&self) -> Option<Duration> {
        self.time_budget.map(Duration::from_secs_f64)
    }

    /// What differs from the default, as one line.
    pub fn changed(&self) -> String {
        let (Ok(own), Ok(usual)) = (serde_json::to_value(self), serde_json::to_value(Self::default())) else {
            return String::new();
        };
        let changed = own.as_object().into_iter().flatten().filter(|(name, value)| usual.get(name) != Some(value));
        changed.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }
}
