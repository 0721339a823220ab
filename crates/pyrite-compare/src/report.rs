//! What a comparison found, as data, and as text for people.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::options::Weight;

/// Which part of the contract is broken; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A value is missing, or a list has another length.
    Structure,
    /// Another kind of value, such as None for a tensor.
    Kind,
    /// Another element type.
    Dtype,
    /// Another shape.
    Shape,
    /// NaN or infinity in other places.
    NanPosition,
    /// Other numbers.
    Value,
    /// Other contents of an input after the run.
    Mutation,
    /// Memory is shared with other values.
    Aliasing,
    /// Elements lie in another order in memory.
    Stride,
}

impl Class {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Kind => "kind",
            Self::Dtype => "dtype",
            Self::Shape => "shape",
            Self::NanPosition => "nan-position",
            Self::Value => "value",
            Self::Mutation => "mutation",
            Self::Aliasing => "aliasing",
            Self::Stride => "stride",
        }
    }
}

/// Which rule is broken, more finely than the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The other side has no such value.
    Missing,
    /// The reference has no such value.
    Surplus,
    /// Lists have one length.
    Length,
    /// Values are of one kind.
    Kind,
    /// Element types are equal.
    Dtype,
    /// Shapes are equal.
    Shape,
    /// Strides are equal.
    Stride,
    /// The same values share a storage.
    Sharing,
    /// Values that share a storage lie at the same distance in it.
    Offset,
    /// What is not a float is equal.
    Exact,
    /// Elements are equal bit for bit.
    Bitwise,
    /// NaN stands where the reference has it.
    NanPosition,
    /// Infinity stands where the reference has it, with its sign.
    InfinityPosition,
    /// There is no NaN.
    NoNan,
    /// Elements are within the tolerance of the reference, where no fp64 reference can judge them.
    Tolerance,
    /// The root mean square error against the fp64 is not much larger than the reference's.
    RootMeanSquare,
    /// The worst element's error against the fp64 is not much larger than that of the reference's worst.
    WorstElement,
}

impl Rule {
    /// What it demands, for people.
    pub fn demand(self) -> &'static str {
        match self {
            Self::Missing => "every value of the reference is there",
            Self::Surplus => "no value is there that the reference does not have",
            Self::Length => "lists have one length",
            Self::Kind => "values are of one kind",
            Self::Dtype => "element types are equal",
            Self::Shape => "shapes are equal",
            Self::Stride => "strides are equal",
            Self::Sharing => "the same values share memory",
            Self::Offset => "values that share memory lie at the same distance",
            Self::Exact => "what is not a float is equal",
            Self::Bitwise => "elements are equal bit for bit",
            Self::NanPosition => "NaN stands where the reference has it",
            Self::InfinityPosition => "infinity stands where the reference has it",
            Self::NoNan => "there is no NaN",
            Self::Tolerance => "elements are within the tolerance",
            Self::RootMeanSquare => "the mean error against fp64 is not much larger than the reference's",
            Self::WorstElement => "no element's error against fp64 is much larger than the reference's worst",
        }
    }
}

/// Which value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ValuePath {
    /// The group it is in.
    pub group: String,
    /// Its name in the group; empty for the group as a whole.
    pub name: String,
    /// The way into nested lists.
    pub path: Vec<usize>,
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.group)?;
        if !self.name.is_empty() {
            write!(f, "[{}]", self.name)?;
        }
        self.path.iter().try_for_each(|index| write!(f, "[{index}]"))
    }
}

/// A real number; in JSON a text where it is not finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Real(pub f64);

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.abs();
        if self.0 == 0.0 || (1e-3..1e6).contains(&magnitude) || !self.0.is_finite() {
            let text = format!("{:.4}", self.0);
            f.write_str(if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
        } else {
            write!(f, "{:.3e}", self.0)
        }
    }
}

impl Serialize for Real {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.collect_str(&self.0) }
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(value) => Ok(Self(value)),
            Form::Text(text) => text.parse().map(Self).map_err(serde::de::Error::custom),
        }
    }
}

/// The element that differs most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Its coordinates.
    pub index: Vec<i64>,
    /// What the reference has there.
    pub expected: String,
    /// What the other side has there.
    pub actual: String,
    /// What double precision has there.
    pub fp64: Option<String>,
    /// Its distance in units in the last place, for real floats.
    pub ulps: Option<u64>,
}

/// Upper bounds of the absolute errors, at most a quarter above them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Of half of the elements.
    pub p50: Real,
    /// Of nine in ten.
    pub p90: Real,
    /// Of ninety-nine in a hundred.
    pub p99: Real,
}

/// How the numbers of two values differ. Errors are taken over the elements that are finite on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// How many elements the value has.
    pub elements: usize,
    /// How many of them break the tolerance or, when strict, equality.
    pub differing: usize,
    /// The element that breaks the rule most.
    pub worst: Worst,
    /// The largest absolute error.
    pub max_abs: Real,
    /// The largest relative error, where the reference is not zero.
    pub max_rel: Real,
    /// Absolute errors.
    pub quantiles: Quantiles,
    /// The smallest tolerance, relative and absolute alike, that would accept every element.
    pub passing_tolerance: Real,
    /// The cosine of the angle between both; nothing when one of them is zero.
    pub cosine: Option<Real>,
    /// The reference's root mean square error against the fp64.
    pub expected_rmse: Option<Real>,
    /// The other side's root mean square error against the fp64.
    pub actual_rmse: Option<Real>,
    /// By how much the rule is broken: 1 is the border.
    pub severity: Real,
    /// How far rounding alone moves the value, where that was tried.
    #[serde(default)]
    pub spread: Option<Spread>,
}

/// How far the reference moves when it rounds and sums otherwise: the error model's bound for one value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many runs with other rounding it was found by.
    pub samples: usize,
    /// The largest root mean square distance of those runs from the reference.
    pub rmse: Real,
    /// The largest distance of one element.
    pub worst: Real,
    /// The root mean square distance of the other side from the reference.
    pub actual_rmse: Real,
}

/// One broken part of the contract of one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Which value.
    pub place: ValuePath,
    /// Which part of the contract.
    pub class: Class,
    /// Which rule.
    pub rule: Rule,
    /// What the reference has, in a few words.
    pub expected: String,
    /// What the other side has, in a few words.
    pub actual: String,
    /// How its numbers differ.
    pub numbers: Option<Box<Numbers>>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.place, self.class.name())?;
        let Some(numbers) = &self.numbers else {
            return write!(f, "expected {}, got {}", self.expected, self.actual);
        };
        write!(f, "{}; broken rule: {}", numbers, self.rule.demand())
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worst = &self.worst;
        write!(f, "{} of {} elements differ, worst at {:?}: ", self.differing, self.elements, worst.index)?;
        write!(f, "expected {}, got {}", worst.expected, worst.actual)?;
        if let Some(fp64) = &worst.fp64 {
            write!(f, ", fp64 {fp64}")?;
        }
        write!(f, "; abs {}, rel {}", self.max_abs, self.max_rel)?;
        if let (Some(expected), Some(actual)) = (self.expected_rmse, self.actual_rmse) {
            write!(f, ", rmse {actual} against {expected}")?;
        }
        if let Some(spread) = &self.spread {
            let Spread { samples, rmse, worst, actual_rmse } = spread;
            let runs = if *samples == 1 { "one run".to_owned() } else { format!("{samples} runs") };
            write!(f, ", rms distance {actual_rmse}; other rounding moves it by {rmse}, at worst {worst}, in {runs}")?;
        }
        Ok(())
    }
}

/// What is told about a value that does not count as different for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remark {
    /// It is not close to the reference, and as near to the fp64 as the reference is.
    Noise(Box<Numbers>),
    /// It is not close to the reference, and the fp64 could not judge it, for this reason.
    NoFp64(String),
    /// It breaks a rule, and the reference does so too when it rounds otherwise.
    Rounding(Box<Difference>),
    /// It breaks a rule that the options tell to overlook.
    Overlooked(Box<Difference>),
}

/// A remark about a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Which value.
    pub place: ValuePath,
    /// What there is to tell.
    pub remark: Remark,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.remark {
            Remark::Noise(numbers) => write!(f, "{}: noise: {numbers}", self.place),
            Remark::NoFp64(why) => write!(f, "{}: compared without fp64: {why}", self.place),
            Remark::Rounding(difference) => write!(f, "{difference} (noise: other rounding changes it too)"),
            Remark::Overlooked(difference) => write!(f, "{difference} (overlooked)"),
        }
    }
}

/// The answer in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every value is close to the reference's.
    Same,
    /// Some value is not close, and as near to the fp64 as the reference is.
    Noise,
    /// Some part of the contract is broken.
    Different,
}

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How many values were compared; lists do not count.
    pub compared: usize,
    /// What is broken, the worst first.
    pub differences: Vec<Difference>,
    /// What else there is to tell.
    pub notes: Vec<Note>,
}

impl Report {
    /// The answer in a word.
    pub fn outcome(&self) -> Outcome {
        if !self.differences.is_empty() {
            Outcome::Different
        } else if self.notes.iter().any(|note| matches!(note.remark, Remark::Noise(_) | Remark::Rounding(_))) {
            Outcome::Noise
        } else {
            Outcome::Same
        }
    }

    /// Whether nothing is broken.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }

    /// The classes that are broken, each once, the worst first.
    pub fn classes(&self) -> Vec<Class> {
        let mut classes: Vec<Class> = self.differences.iter().map(|difference| difference.class).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// A line for each of the worst differences, at most this many, and one that counts the rest.
    pub fn summary(&self, lines: usize) -> String {
        let mut text = String::new();
        for difference in self.differences.iter().take(lines) {
            let _ = writeln!(text, "{difference}");
        }
        match self.differences.len().saturating_sub(lines) {
            0 => {}
            1 => text.push_str("and one more difference\n"),
            rest => {
                let _ = writeln!(text, "and {rest} more differences");
            }
        }
        text
    }

    /// Adds a difference, or a note where it is to be overlooked.
    pub(crate) fn add(&mut self, difference: Difference, weight: Weight) {
        match weight {
            Weight::Difference => self.differences.push(difference),
            Weight::Note => self
                .notes
                .push(Note { place: difference.place.clone(), remark: Remark::Overlooked(Box::new(difference)) }),
        }
    }

    /// Puts the worst differences first; equals stay in the order of the results.
    pub(crate) fn rank(&mut self) {
        let severity = |difference: &Difference| difference.numbers.as_ref().map_or(0.0, |n| n.severity.0);
        self.differences.sort_by(|a, b| a.class.cmp(&b.class).then(severity(b).total_cmp(&severity(a))));
    }
}
