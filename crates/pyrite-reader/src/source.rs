//! The text before it is parsed: made valid Python without moving a character, and bounded.
//!
//! FX prints `class <lambda>(torch.nn.Module):`, which is not Python, and prints classes indented as they stood in a
//! log. Both are repaired with replacements of the same length, so that places in the repaired text are places in the
//! file. The parser recurses, and so does dropping its tree; [`check_depth`] bounds how deeply.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use pyrite_diag::{Diagnostic, Location};
use pyrite_ir::graph::Span;
use ruff_text_size::{Ranged, TextRange};

use crate::problems::codes;

/// The text with its file and lines.
pub(crate) struct Source<'a> {
    /// The repaired text.
    pub text: Cow<'a, str>,
    file: Option<PathBuf>,
    line_starts: Vec<u32>,
}

impl<'a> Source<'a> {
    /// Repairs a text.
    pub fn new(text: &'a str, file: Option<&Path>) -> Self {
        let mut text = Cow::Borrowed(text);
        if text.contains("class <lambda>") {
            text = Cow::Owned(text.replace("class <lambda>", "class _lambda_"));
        }
        if let Some(dedented) = dedent(&text) {
            text = Cow::Owned(dedented);
        }
        let line_starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1))
            .collect();
        Self { text, file: file.map(Path::to_path_buf), line_starts }
    }

    /// The line and column of a byte.
    pub fn span(&self, offset: usize) -> Span {
        let line = self.line_starts.partition_point(|start| (*start as usize) <= offset).max(1);
        let start = self.line_starts[line - 1] as usize;
        let end = self.text.floor_char_boundary(offset.max(start));
        let column = self.text.get(start..end).map_or(0, |before| before.chars().count());
        Span { line: line as u32, column: column as u32 + 1 }
    }

    /// The place of a part of the text.
    pub fn at(&self, part: &impl Ranged) -> Location {
        let range = part.range();
        let span = self.span(range.start().to_usize());
        let mut location = self.whole().line(span.line).column(span.column);
        let text = self.slice(range);
        let first_line = text.lines().next().unwrap_or_default();
        location.text = Some(first_line.chars().take(80).collect());
        location
    }

    /// The place of a line and column.
    pub fn at_span(&self, span: Span) -> Location {
        self.whole().line(span.line).column(span.column)
    }

    /// The file as a whole.
    pub fn whole(&self) -> Location {
        self.file.as_ref().map_or_else(Location::unknown, Location::in_file)
    }

    /// A part of the text.
    pub fn slice(&self, range: TextRange) -> &str {
        self.text.get(range.start().to_usize()..range.end().to_usize()).unwrap_or_default()
    }
}

/// Removes the indentation that all lines share, keeping every line's number; columns shift alike. Lines inside
/// brackets or strings are shifted too, which changes no graph.
fn dedent(text: &str) -> Option<String> {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))?;
    let indent = first.len() - first.trim_start_matches([' ', '\t']).len();
    if indent == 0 {
        return None;
    }
    let prefix = &first[..indent];
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        out.push_str(line.strip_prefix(prefix).unwrap_or_else(|| line.trim_start_matches([' ', '\t'])));
    }
    Some(out)
}

/// Expressions may be nested this deeply.
const MAX_DEPTH: u32 = 200;
/// Blocks may be indented this far.
const MAX_INDENT: usize = 400;

/// Refuses a text whose parse tree could be deeper than the stack allows. Every token that can add a level (an opening
/// bracket, an operator, a keyword of an expression) counts; a comma ends what was counted since its bracket opened.
pub(crate) fn check_depth(source: &Source<'_>) -> Result<(), Diagnostic> {
    let bytes = source.text.as_bytes();
    let too_deep = |at: usize| {
        Diagnostic::error(codes::TOO_DEEP, format!("an expression is nested more than {MAX_DEPTH} levels deep"))
            .at(source.at_span(source.span(at)))
            .hint("assign its parts to names first")
    };
    let mut open: Vec<u32> = Vec::new();
    let mut count = 0u32;
    let mut quoted = 0u32;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'#' => {
                at += memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                continue;
            }
            b'\'' | b'"' => {
                at = skip_string(bytes, at);
                // A string inside a formatted string starts a level that brackets do not show.
                quoted += 1;
                if quoted > 4 * MAX_DEPTH && is_formatted(bytes, at) {
                    return Err(too_deep(at));
                }
                continue;
            }
            b'\n' if open.is_empty() => {
                count = 0;
                quoted = 0;
                let indent = bytes[at + 1..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
                if indent > MAX_INDENT {
                    return Err(Diagnostic::error(codes::TOO_DEEP, "a line is indented too far")
                        .at(source.at_span(source.span(at + 1)))
                        .hint("graphs need at most a few levels of indentation"));
                }
            }
            b';' if open.is_empty() => count = 0,
            b'(' | b'[' | b'{' => {
                count += 1;
                open.push(count);
            }
            b')' | b']' | b'}' => count = open.pop().unwrap_or(0),
            b',' => count = open.last().copied().unwrap_or(0),
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {}
            b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^' | b'~' | b'<' | b'>' | b'.' | b':' | b'!' => {
                count += 1;
            }
            b if b.is_ascii_alphabetic() || *b == b'_' => {
                let end = at + bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
                if matches!(
                    &bytes[at..end],
                    b"not"
                        | b"lambda"
                        | b"await"
                        | b"if"
                        | b"else"
                        | b"and"
                        | b"or"
                        | b"in"
                        | b"is"
                        | b"yield"
                        | b"for"
                ) {
                    count += 1;
                }
                at = end;
                if count > MAX_DEPTH {
                    return Err(too_deep(at));
                }
                continue;
            }
            _ => {}
        }
        if count > MAX_DEPTH {
            return Err(too_deep(at));
        }
        at += 1;
    }
    Ok(())
}

fn memchr(needle: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|b| *b == needle)
}

/// Whether there is a formatted string shortly before, which is where strings can nest.
fn is_formatted(bytes: &[u8], at: usize) -> bool {
    bytes[at.saturating_sub(4096)..at].windows(2).any(|w| matches!(w, [b'f' | b'F' | b't' | b'T', b'\'' | b'"']))
}

/// The end of the string that starts at a quote; the end of the line or text where it is not closed.
fn skip_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if triple { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' if !triple => return at,
            b if *b == quote => {
                if !triple {
                    return at + 1;
                }
                if bytes[at..].starts_with(&[quote; 3]) {
                    return at + 3;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}
