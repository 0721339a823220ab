//! Where a diagnostic points: a file, a position in it, and the text that stands there.
//!
//! Every part may be missing, because a graph built in memory has no file and a missing file has no line.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// A place in a file, or in a text that has no file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Location {
    /// The file, as the user named it.
    #[serde(serialize_with = "serialize_lossy")]
    pub file: Option<PathBuf>,
    /// The line, counted from one.
    pub line: Option<u32>,
    /// The character in the line, counted from one; it says nothing without a line.
    pub column: Option<u32>,
    /// The text that the diagnostic is about; it begins at `column`.
    pub text: Option<String>,
}

impl Location {
    /// No place at all.
    pub fn unknown() -> Self {
        Self::default()
    }

    /// A whole file.
    pub fn in_file(file: impl Into<PathBuf>) -> Self {
        Self { file: Some(file.into()), ..Self::default() }
    }

    /// Sets the line, counted from one.
    #[must_use]
    pub fn line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }

    /// Sets the character in the line, counted from one.
    #[must_use]
    pub fn column(mut self, column: u32) -> Self {
        self.column = Some(column);
        self
    }

    /// Sets the text that the diagnostic is about.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The place of the byte at `offset` of `source`. An offset past the end, or inside a character, is moved back to
    /// the nearest place that exists.
    pub fn of_offset(source: &str, offset: usize) -> Self {
        let before = &source[..source.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Self::unknown().line(line as u32).column(column as u32)
    }

    /// Adds the file to a location that has none yet.
    #[must_use]
    pub fn or_file(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// Whether neither a file nor a line is known.
    pub fn is_unknown(&self) -> bool {
        self.file.is_none() && self.line.is_none()
    }
}

/// Writes `file:line:column`, as far as known; an unknown location writes nothing.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display())?,
            None if self.line.is_some() => f.write_str("<text>")?,
            None => return Ok(()),
        }
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}

/// JSON strings are Unicode and paths need not be: a byte that is not UTF-8 becomes U+FFFD instead of an error.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn serialize_lossy<S: Serializer>(file: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    file.as_ref().map(|file| file.to_string_lossy()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_writes_the_known_parts() {
        assert_eq!(Location::unknown().to_string(), "");
        assert_eq!(Location::in_file("a.py").to_string(), "a.py");
        assert_eq!(Location::in_file("a.py").line(3).to_string(), "a.py:3");
        assert_eq!(Location::in_file("a.py").line(3).column(7).to_string(), "a.py:3:7");
        assert_eq!(Location::unknown().line(3).to_string(), "<text>:3");
    }

    #[test]
    fn an_offset_becomes_a_line_and_a_character() {
        let source = "ab\nαβγ\n";
        let at = |offset| {
            let location = Location::of_offset(source, offset);
            (location.line.unwrap(), location.column.unwrap())
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(2), (1, 3));
        assert_eq!(at(3), (2, 1));
        assert_eq!(at(5), (2, 2));
        assert_eq!(at(6), (2, 2), "an offset inside a character is moved back");
        assert_eq!(at(99), (3, 1), "an offset past the end is moved back");
    }

    #[test]
    fn a_file_is_added_only_where_none_is_known() {
        let file = Path::new("b.py");
        assert_eq!(Location::unknown().or_file(file).file.as_deref(), Some(file));
        assert_eq!(Location::in_file("a.py").or_file(file).file.as_deref(), Some(Path::new("a.py")));
    }
}
