//! What counts as a difference.

use pyrite_tensor::DType;
use serde::{Deserialize, Serialize};

/// How exact the numbers must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accuracy {
    /// Nothing is compared: that both sides ran is enough.
    Off,
    /// As exact as floating-point arithmetic lets one ask: tolerances, and the fp64 where there is one.
    #[default]
    Fp,
    /// Equal bit for bit; any NaN equals any other.
    Strict,
}

impl Accuracy {
    /// All of them, from the most lenient on.
    pub const ALL: [Self; 3] = [Self::Off, Self::Fp, Self::Strict];

    /// Its name, as command lines, files and Python have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Fp => "fp",
            Self::Strict => "strict",
        }
    }

    /// The one with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|accuracy| accuracy.name() == name)
    }
}

/// How much a broken part of the contract counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// As a difference.
    #[default]
    Difference,
    /// It is told, and the results still agree.
    Note,
}

/// Which strides are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strides {
    /// None.
    Ignored,
    /// Those that decide where an element lies (dimensions of more than one element, in tensors of more than one); a
    /// deviation is told and the results still agree.
    Noted,
    /// Those that decide where an element lies.
    #[default]
    Significant,
    /// All, even of dimensions of size one.
    All,
}

/// Whether a NaN may be a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nans {
    /// A NaN equals a NaN.
    #[default]
    Equal,
    /// A NaN equals nothing.
    Unequal,
}

/// How far two elements may be apart: `|actual - expected| <= atol + rtol * |expected|`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// In units of the expected element.
    pub rtol: f64,
    /// Absolute.
    pub atol: f64,
}

impl Tolerance {
    /// No distance at all.
    pub const EXACT: Self = Self { rtol: 0.0, atol: 0.0 };

    /// Both parts equal.
    pub const fn both(tolerance: f64) -> Self {
        Self { rtol: tolerance, atol: tolerance }
    }

    /// The larger of both in each part.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { rtol: self.rtol.max(other.rtol), atol: self.atol.max(other.atol) }
    }

    /// The distance that is allowed from an element of this magnitude.
    pub fn bound(self, magnitude: f64) -> f64 {
        self.atol + self.rtol * magnitude
    }
}

/// A tolerance per element type; at first those of `torch.testing.assert_close`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerances {
    by_type: [Tolerance; DType::ALL.len()],
    /// For Python floats and complex numbers, which do not tell the precision that they were computed in.
    pub number: Tolerance,
}

impl Default for Tolerances {
    fn default() -> Self {
        let single = Tolerance { rtol: 1.3e-6, atol: 1e-5 };
        let by_type = DType::ALL.map(|dtype| match dtype {
            DType::F16 => Tolerance { rtol: 1e-3, atol: 1e-5 },
            DType::BF16 => Tolerance { rtol: 1.6e-2, atol: 1e-5 },
            DType::F32 | DType::C64 => single,
            DType::F64 | DType::C128 => Tolerance::both(1e-7),
            // As for the other floats, about a unit in the last place.
            DType::F8E4M3 | DType::F8E4M3Fnuz => Tolerance { rtol: 0.125, atol: 2e-3 },
            DType::F8E5M2 | DType::F8E5M2Fnuz => Tolerance { rtol: 0.25, atol: 2e-5 },
            _ => Tolerance::EXACT,
        });
        Self { by_type, number: single }
    }
}

impl Tolerances {
    /// The same for all inexact types, as PyTorch's `same` takes it; integers stay exact.
    pub fn uniform(tolerance: Tolerance) -> Self {
        let by_type = DType::ALL.map(|dtype| if dtype.is_inexact() { tolerance } else { Tolerance::EXACT });
        Self { by_type, number: tolerance }
    }

    /// With another tolerance for one type.
    #[must_use]
    pub fn with(mut self, dtype: DType, tolerance: Tolerance) -> Self {
        self.by_type[dtype as usize] = tolerance;
        self
    }

    /// All of them multiplied.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        for tolerance in self.by_type.iter_mut().chain([&mut self.number]) {
            *tolerance = Tolerance { rtol: tolerance.rtol * factor, atol: tolerance.atol * factor };
        }
        self
    }

    /// That of a type.
    pub fn of(&self, dtype: DType) -> Tolerance {
        self.by_type[dtype as usize]
    }
}

/// When a result that is not close to the reference is judged by the fp64: how much worse than the reference it may
/// be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The root mean square error may be this multiple of the reference's.
    pub multiplier: f64,
    /// The same for half precision and for fewer than [`Self::few`] elements, whose mean errors scatter more.
    pub lenient_multiplier: f64,
    /// How many elements are few.
    pub few: usize,
    /// The worst element's error may be this multiple of the reference's worst, times the multiplier above.
    pub worst: f64,
    /// How much more a small tensor may scatter.
    pub small: SmallTensors,
}

/// How the mean errors of small tensors are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmallTensors {
    /// By the lenient multiplier.
    #[default]
    Usual,
    /// As PyTorch's `use_larger_multiplier_for_smaller_tensor`: ten times for up to ten elements, eight times for few.
    Lenient,
}

impl Default for Judgement {
    fn default() -> Self {
        Self { multiplier: 2.0, lenient_multiplier: 3.0, few: 1000, worst: 4.0, small: SmallTensors::Usual }
    }
}

impl Judgement {
    /// The multiple of the reference's root mean square error that a value may have.
    pub fn multiplier_for(&self, dtype: DType, elements: usize) -> f64 {
        let half = matches!(dtype, DType::F16 | DType::BF16);
        if self.small == SmallTensors::Lenient && elements < self.few {
            return if elements <= 10 { 10.0 } else { 8.0 };
        }
        if half || elements < self.few { self.lenient_multiplier } else { self.multiplier }
    }
}

/// What counts as a difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// How exact the numbers must be.
    pub accuracy: Accuracy,
    /// How far floats may be apart.
    pub tolerances: Tolerances,
    /// How much worse than the reference a result may be.
    pub judgement: Judgement,
    /// Whether a NaN may be a result.
    pub nans: Nans,
    /// Which strides are compared.
    pub strides: Strides,
    /// How much another element type counts.
    pub dtypes: Weight,
    /// How much another kind of number counts: a tensor without dimensions, a Python int, float, bool or complex.
    pub kinds: Weight,
    /// How much another sharing of memory counts.
    pub aliasing: Weight,
    /// How much other integers and bools count.
    pub non_floats: Weight,
    /// Where set, floats that are not close pass when the cosine of the angle between both is at least this.
    #[serde(default)]
    pub cosine: Option<f64>,
}

impl Options {
    /// The usual ones at that accuracy.
    pub fn new(accuracy: Accuracy) -> Self {
        Self { accuracy, ..Self::default() }
    }
}
