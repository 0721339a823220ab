//! What makes two failures the same.
//!
//! Held exactly: the stage, the class, the error's type, the place that raised it and what it said there, and, where guilty
//! operators are known, that one of them remains. Which output differs, by which rule and by how much only ranks
//! candidates: these change legitimately while a graph shrinks, and so do the numbers and names in an error's text, which
//! are taken out of it.

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
    /// A result where the reference raises an error; the site is the reference's error.
    MissingError,
    /// The process was ended by this signal.
    Signal(i32),
    /// The process ended with this code without an answer.
    Exit(i32),
    /// The time limit passed.
    Hang,
    /// The memory limit was reached.
    OutOfMemory,
    /// A kernel faulted on its device; the site says how. Nothing runs in the process after that.
    Fault,
    /// The answer was none.
    Garbage,
    /// The results differ in structure or kind.
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
    /// What it said: the first line, without numbers and names; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Site {
    /// Whether another error is the same. A text that is not known is no other text.
    pub fn holds(&self, other: &Self) -> bool {
        let said = |site: &Self| site.text.clone();
        let same_text = said(self).zip(said(other)).is_none_or(|(own, other)| own == other);
        self.kind == other.kind && self.place == other.place && same_text
    }
}

/// The gist of an error's text: its first line without numbers, names and what is quoted. Two errors that one function
/// raises for different reasons say different things; the same one says other sizes and names as a program shrinks.
pub fn gist(text: &str) -> String {
    // Of a C++ compiler's complaints the first says most; the lines before name files.
    let complaint = text.lines().find(|line| line.contains(" error: "));
    let line = complaint.or_else(|| text.lines().find(|line| !line.trim().is_empty())).unwrap_or_default();
    let line = complaint.and_then(|line| line.split_once(" error: ")).map_or(line, |(_, said)| said);
    // The lines that lead to a value are of the program, not of the error.
    let line = line.split_once(" Stack trace:").map_or(line, |(said, _)| said);
    let mut words: Vec<String> = Vec::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let (word, after) = if let Some(close) = closing(first) {
            match rest[first.len_utf8()..].find(close) {
                Some(end) => ("…".to_owned(), &rest[first.len_utf8() + end + close.len_utf8()..]),
                None => (first.to_string(), &rest[first.len_utf8()..]),
            }
        } else if first.is_alphanumeric() || "_/".contains(first) || is_negative(rest) {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || "_./-+".contains(c))).unwrap_or(rest.len());
            let found = rest[..end].trim_end_matches(['.', '-', '+']);
            let found = if found.is_empty() { &rest[..end] } else { found };
            let named = found.contains(|c: char| c.is_ascii_digit() || c == '_' || c == '/') || found.contains('.');
            (if named { "…".to_owned() } else { found.to_owned() }, &rest[found.len()..])
        } else {
            (first.to_string(), &rest[first.len_utf8()..])
        };
        words.push(word);
        rest = after;
    }
    // Lists of numbers and names grow and shrink: one stands for all.
    let (mut said, mut between, mut listed) = (String::new(), String::new(), false);
    for word in &words {
        match word.as_str() {
            "…" if listed => between.clear(),
            "," | " " if listed => between.push_str(word),
            ")" | "]" | "}" if listed => {
                between.clear();
                said.push_str(word);
                listed = false;
            }
            _ => {
                said.push_str(&std::mem::take(&mut between));
                said.push_str(word);
                listed = word == "…";
            }
        }
    }
    if let Some((end, _)) = said.char_indices().nth(GIST) {
        said.truncate(end);
    }
    said
}

/// Whether a text begins with a negative number.
fn is_negative(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// How many letters of a text are held.
const GIST: usize = 200;

/// What closes a quotation.
fn closing(open: char) -> Option<char> {
    match open {
        '\'' | '"' | '`' => Some(open),
        '‘' => Some('’'),
        _ => None,
    }
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
    /// Which call of the program fails, from 1; `None` where the first does. It is not held: what fails only sometimes may
    /// fail in either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// What may change.
    #[serde(default)]
    pub detail: Detail,
}

impl Signature {
    /// A failure of a class at a stage.
    pub fn new(stage: Stage, class: Class) -> Self {
        Self { stage, class, site: None, guilty: BTreeSet::new(), call: None, detail: Detail::default() }
    }

    /// With the error that was raised.
    #[must_use]
    pub fn raised(self, kind: &str, place: Option<&str>) -> Self {
        Self { site: Some(Site { kind: kind.to_owned(), place: place.map(str::to_owned), text: None }), ..self }
    }

    /// With what the error said, numbers and names taken out.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        if let Some(site) = &mut self.site {
            site.text = Some(gist(text));
        }
        self
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

    /// Of a later call than the first.
    #[must_use]
    pub fn at_call(self, call: u32) -> Self {
        Self { call: Some(call).filter(|call| *call > 1), ..self }
    }

    /// The held part in a line, as a repro's main part says it: without what only the search knows.
    pub fn told(&self) -> String {
        Self { guilty: BTreeSet::new(), call: None, ..self.clone() }.to_string()
    }

    /// Whether another failure is the same bug. `self` is the signature that is held; where it knows guilty operators,
    /// the other must share one, unless the other knows none.
    pub fn holds(&self, other: &Self) -> bool {
        let guilty = self.guilty.is_empty() || other.guilty.is_empty() || !self.guilty.is_disjoint(&other.guilty);
        let site = match (&self.site, &other.site) {
            (Some(own), Some(other)) => own.holds(other),
            (own, other) => own.is_none() && other.is_none(),
        };
        self.stage == other.stage && self.class == other.class && site && guilty
    }
}

/// A signal in words.
pub fn signal_name(number: i32) -> String {
    let (what, name) = match number {
        4 => ("illegal instruction", "SIGILL"),
        5 => ("trap", "SIGTRAP"),
        6 => ("abort", "SIGABRT"),
        7 => ("bus error", "SIGBUS"),
        8 => ("arithmetic exception", "SIGFPE"),
        9 => ("killed", "SIGKILL"),
        11 => ("segmentation fault", "SIGSEGV"),
        15 => ("terminated", "SIGTERM"),
        31 => ("bad system call", "SIGSYS"),
        _ => return format!("signal {number}"),
    };
    format!("{what} ({name})")
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
            Class::MissingError => f.write_str("missing error")?,
            Class::Signal(signal) => f.write_str(&signal_name(signal))?,
            Class::Exit(code) => write!(f, "exit code {code}")?,
            Class::Hang => f.write_str("hang")?,
            Class::OutOfMemory => f.write_str("out of memory")?,
            Class::Fault => f.write_str("device fault:")?,
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
        if let Some(call) = self.call {
            write!(f, " in call {call}")?;
        }
        if !self.guilty.is_empty() {
            write!(f, " by {}", self.guilty.iter().cloned().collect::<Vec<_>>().join(" or "))?;
        }
        Ok(())
    }
}
