//! Several diagnostics, in the order in which they were found.
//!
//! A check that can go on after an error adds to a collection instead of returning at once, so that the user sees
//! everything that is wrong in one go.

use std::fmt;

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Severity};

/// An ordered collection of diagnostics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a diagnostic at the end.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are, of any severity.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many there are of one severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.iter().any(Diagnostic::is_error)
    }

    /// The diagnostics, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Orders them by file, line and column; those at the same place keep their order.
    pub fn sort_by_location(&mut self) {
        let place = |diagnostic: &Diagnostic| {
            let location = &diagnostic.location;
            (location.file.clone(), location.line, location.column)
        };
        self.0.sort_by_cached_key(place);
    }

    /// The value if none of them is an error, else all of them. With the value, warnings and notes are dropped: a caller
    /// that shows them reads them first.
    pub fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.has_errors() { Err(self) } else { Ok(value) }
    }
}

/// Writes one line for each.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(diagnostics: I) -> Self {
        Self(diagnostics.into_iter().collect())
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        self.0.extend(diagnostics);
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Location};

    const CODE: Code = Code::new("test::some");

    fn at(file: &str, line: u32) -> Diagnostic {
        Diagnostic::warning(CODE, "m").at(Location::in_file(file).line(line))
    }

    #[test]
    fn only_an_error_makes_the_result_an_error() {
        let mut diagnostics = Diagnostics::from(Diagnostic::warning(CODE, "odd"));
        assert_eq!(diagnostics.clone().into_result(1), Ok(1));
        diagnostics.push(Diagnostic::error(CODE, "wrong"));
        assert_eq!((diagnostics.count(Severity::Warning), diagnostics.count(Severity::Error)), (1, 1));
        assert_eq!(diagnostics.clone().into_result(1), Err(diagnostics));
    }

    #[test]
    fn sorting_goes_by_file_then_line() {
        let mut diagnostics: Diagnostics = [at("b", 1), at("a", 10), at("a", 9)].into_iter().collect();
        diagnostics.sort_by_location();
        assert_eq!(
            diagnostics.to_string(),
            "a:9: warning[test::some]: m\na:10: warning[test::some]: m\nb:1: warning[test::some]: m"
        );
    }
}
