//! The diagnostic itself: its code, its severity and what it tells the reader.

use std::fmt;

use serde::Serialize;

use crate::location::Location;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Something worth knowing; nothing is wrong.
    Note,
    /// Something is likely wrong, and the work goes on.
    Warning,
    /// The work cannot be done.
    Error,
}

impl Severity {
    /// The word that stands in front of the message.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The stable name of a kind of diagnostic, such as `reader::unknown-operator`: tests, scripts and documentation refer
/// to it, while the message may be worded anew at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Code(&'static str);

impl Code {
    /// Makes a code out of kebab-case words, joined by `::`. In a `const`, a malformed name is a compile error.
    ///
    /// # Panics
    /// If the name is malformed.
    pub const fn new(name: &'static str) -> Self {
        assert!(is_well_formed(name.as_bytes()), "a code consists of kebab-case words joined by `::`");
        Self(name)
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Whether `name` consists of words of lower-case letters and digits, with `-` or `::` between any two of them.
const fn is_well_formed(name: &[u8]) -> bool {
    let mut in_word = false;
    let mut i = 0;
    while i < name.len() {
        match name[i] {
            b'a'..=b'z' | b'0'..=b'9' => in_word = true,
            b'-' if in_word => in_word = false,
            b':' if in_word && i + 1 < name.len() && name[i + 1] == b':' => {
                in_word = false;
                i += 1;
            }
            _ => return false,
        }
        i += 1;
    }
    in_word
}

/// One thing to tell the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Which kind of diagnostic it is.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub location: Location,
    /// What is wrong, in one sentence that makes sense on its own.
    pub message: String,
    /// What lies underneath, such as the operating system's error.
    pub cause: Option<String>,
    /// What the user can do about it.
    pub hints: Vec<String>,
    /// Facts that help to understand the message.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic with a severity, a code and a message, at an unknown place.
    pub fn new(severity: Severity, code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            location: Location::unknown(),
            message: message.into(),
            cause: None,
            hints: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// An error.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = location;
        self
    }

    /// Sets the cause, from an error or from a sentence.
    #[must_use]
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Adds something that the user can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a fact that helps to understand the message.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Writes place, severity, code, message and cause on one line; [`crate::TextRenderer`] writes everything.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.location.is_unknown() {
            write!(f, "{}: ", self.location)?;
        }
        write!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_made_of_kebab_case_words() {
        for good in ["reader", "reader::unknown-operator", "a::b::c", "tensor::f16-overflow"] {
            assert!(is_well_formed(good.as_bytes()), "{good}");
        }
        for bad in ["", "Reader", "a_b", "-a", "a-", "a--b", "::a", "a::", "a:b", "a::-b", "a b", "ä"] {
            assert!(!is_well_formed(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn severities_rise_from_note_to_error() {
        assert!(Severity::Note < Severity::Warning && Severity::Warning < Severity::Error);
    }

    #[test]
    fn display_fits_on_one_line() {
        let diagnostic = Diagnostic::error(Code::new("reader::io"), "cannot read the file")
            .at(Location::in_file("a.py").line(1))
            .cause(std::io::Error::other("disk on fire"))
            .hint("buy a new disk");
        assert_eq!(diagnostic.to_string(), "a.py:1: error[reader::io]: cannot read the file: disk on fire");
        assert!(diagnostic.is_error());
    }
}
