//! What makes two failures the same.
//!
//! Held exactly: the stage, the class, the error's type and the site it was raised at, and, where guilty operators are
//! known, that one of them remains. Which output differs, by which rule and by how much only ranks candidates: these
//! change legitimately while a graph shrinks, and so do the numbers inside an error's text, which is why a site is a
//! place and not a message.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Where on the way of a program it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// While a graph is captured from Python.
    Capture,
    /// While it is compiled.
    Compile,
    /// While it runs forward.
    Forward,
    /// While it runs backward.
    Backward,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// An ordinary error.
    Error,
    /// The process was ended by this signal.
    Signal(i32),
    /// The process ended with this code without an answer.
    Exit(i32),
    /// The time limit passed.
    Hang,
    /// The memory limit was reached.
    OutOfMemory,
    /// The answer was none.
    Garbage,
    /// The results are nested otherwise or of other kinds.
    Structure,
    /// A shape differs.
    Shape,
    /// Strides differ.
    Stride,
    /// A data type differs.
    Dtype,
    /// Memory is shared otherwise.
    Aliasing,
    /// An input was left with another content.
    Mutation,
    /// Values differ.
    Value,
}

/// Where and as what an error was raised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Site {
    /// The error's type, such as `RuntimeError` or `unsupported`.
    pub kind: String,
    /// The place that raised it: a function and file, or an operator. Without line numbers and sizes.
    pub place: Option<String>,
}

/// What only ranks candidates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Which value differs, such as `output 3`.
    pub value: Option<String>,
    /// Which numeric rule was broken.
    pub rule: Option<String>,
    /// How large the difference is.
    pub magnitude: Option<f64>,
    /// The error's text.
    pub message: Option<String>,
}

/// How a program fails; see the module's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// Where on the way.
    pub stage: Stage,
    /// What kind.
    pub class: Class,
    /// The error, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<Site>,
    /// Operators that are known to be guilty, as far as they are known.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub guilty: BTreeSet<String>,
    /// What may change.
    #[serde(default)]
    pub detail: Detail,
}

impl Signature {
    /// A failure of a class at a stage.
    pub fn new(stage: Stage, class: Class) -> Self {
        Self { stage, class, site: None, guilty: BTreeSet::new(), detail: Detail::default() }
    }

    /// With the error that was raised.
    #[must_use]
    pub fn raised(self, kind: &str, place: Option<&str>) -> Self {
        Self { site: Some(Site { kind: kind.to_owned(), place: place.map(str::to_owned) }), ..self }
    }

    /// With operators that are known to be guilty.
    #[must_use]
    pub fn guilty(mut self, operators: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.guilty.extend(operators.into_iter().map(Into::into));
        self
    }

    /// With what may change.
    #[must_use]
    pub fn detailed(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// Whether another failure is the same bug. `self` is the signature that is held; where it knows guilty operators,
    /// the other must share one, unless the other knows none.
    pub fn holds(&self, other: &Self) -> bool {
        let guilty = self.guilty.is_empty() || other.guilty.is_empty() || !self.guilty.is_disjoint(&other.guilty);
        self.stage == other.stage && self.class == other.class && self.site == other.site && guilty
    }
}

/// The held part in a line.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Capture => "capture",
            Stage::Compile => "compile",
            Stage::Forward => "forward",
            Stage::Backward => "backward",
        };
        write!(f, "{stage}: ")?;
        match self.class {
            Class::Error => f.write_str("error")?,
            Class::Signal(signal) => write!(f, "signal {signal}")?,
            Class::Exit(code) => write!(f, "exit code {code} without an answer")?,
            Class::Hang => f.write_str("hang")?,
            Class::OutOfMemory => f.write_str("out of memory")?,
            Class::Garbage => f.write_str("no readable answer")?,
            Class::Structure => f.write_str("structure differs")?,
            Class::Shape => f.write_str("shape differs")?,
            Class::Stride => f.write_str("stride differs")?,
            Class::Dtype => f.write_str("dtype differs")?,
            Class::Aliasing => f.write_str("aliasing differs")?,
            Class::Mutation => f.write_str("mutation differs")?,
            Class::Value => f.write_str("values differ")?,
        }
        if let Some(site) = &self.site {
            write!(f, " {}", site.kind)?;
            if let Some(place) = &site.place {
                write!(f, " at {place}")?;
            }
        }
        if !self.guilty.is_empty() {
            write!(f, " by {}", self.guilty.iter().cloned().collect::<Vec<_>>().join(" or "))?;
        }
        Ok(())
    }
}
