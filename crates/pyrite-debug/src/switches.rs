//! What a comparison of backends overlooks and what it insists on: the switches that PyTorch's debugger has.

use pyrite_compare::{Accuracy, Judgement, Nans, Options, SmallTensors, Tolerance, Tolerances, Weight};
use serde::{Deserialize, Serialize};

/// Whether results that are not close are judged by a run in double precision, and by what rounding does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fp64 {
    /// Where it can be had.
    #[default]
    Used,
    /// Never: the tolerance alone decides.
    Unused,
    /// Always; a program that cannot be run so is no valid question.
    Required,
}

/// Whether every run gets copies of the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cloning {
    /// Each run gets its own.
    #[default]
    Cloned,
    /// All runs get the same memory, for programs that write to none of it and are too large to be copied.
    Shared,
}

/// All of them; by default nothing is overlooked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Switches {
    /// The tolerance, relative and absolute, of all floats; by default one for each element type.
    pub tolerance: Option<f64>,
    /// Whether a NaN equals a NaN.
    pub nans: Nans,
    /// How much another element type counts.
    pub dtypes: Weight,
    /// How much other integers and bools count.
    pub non_floats: Weight,
    /// How much another kind of number counts, such as a Python float for a tensor without dimensions.
    pub kinds: Weight,
    /// Whether double precision judges.
    pub fp64: Fp64,
    /// How small tensors are judged.
    pub small: SmallTensors,
    /// The cosine with which a value passes in any case.
    pub cosine: Option<f64>,
    /// Whether runs get copies of the inputs.
    pub cloning: Cloning,
}

impl Switches {
    /// The options of a comparison at an accuracy.
    pub fn options(&self, accuracy: Accuracy) -> Options {
        let tolerances =
            self.tolerance.map_or_else(Tolerances::default, |tol| Tolerances::uniform(Tolerance::both(tol)));
        Options {
            tolerances,
            judgement: Judgement { small: self.small, ..Judgement::default() },
            nans: self.nans,
            dtypes: self.dtypes,
            kinds: self.kinds,
            non_floats: self.non_floats,
            cosine: self.cosine,
            ..Options::new(accuracy)
        }
    }
}
