//! Diagnostics for people, in the layout that `rustc` made familiar.
//!
//! ```text
//! error[reader::unknown-operator]: no operator is called `aten.rleu`
//!  --> repro.py:2:9
//!   |
//! 2 |     y = aten.rleu(x)
//!   |         ^^^^^^^^^
//!   = help: did you mean `aten.relu`?
//! ```
//!
//! The excerpt needs the source text, which the caller supplies: the renderer opens no files. Where it has no source,
//! the location's own text stands in, without carets. Long lines are cut to a window around the place. Control
//! characters and bidirectional overrides are shown as U+FFFD, because the source may be a stranger's.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::collection::Diagnostics;
use crate::diagnostic::{Diagnostic, Severity};
use crate::location::Location;

/// Characters of a source line that an excerpt shows at most.
const EXCERPT_WIDTH: usize = 140;
/// Characters of context that a cut line keeps in front of the place.
const EXCERPT_CONTEXT: usize = 40;

/// Whether the text carries terminal colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Text alone.
    #[default]
    Plain,
    /// ANSI escape sequences around the text.
    Ansi,
}

/// Renders diagnostics as text, with excerpts from the sources that it was given.
#[derive(Clone, Debug, Default)]
pub struct TextRenderer<'a> {
    colour: Colour,
    sources: Vec<(Option<PathBuf>, &'a str)>,
}

impl<'a> TextRenderer<'a> {
    /// A renderer without sources.
    pub fn new(colour: Colour) -> Self {
        Self { colour, sources: Vec::new() }
    }

    /// Supplies the text of a file.
    #[must_use]
    pub fn source(mut self, file: impl Into<PathBuf>, text: &'a str) -> Self {
        self.sources.push((Some(file.into()), text));
        self
    }

    /// Supplies the text that locations without a file point into.
    #[must_use]
    pub fn unnamed_source(mut self, text: &'a str) -> Self {
        self.sources.push((None, text));
        self
    }

    /// Renders one diagnostic. The text ends with a newline.
    pub fn render(&self, diagnostic: &Diagnostic) -> String {
        let mut out = String::new();
        self.write_heading(&mut out, diagnostic);

        let location = &diagnostic.location;
        let margin = location.line.map_or(1, |line| line.to_string().len());
        if !location.is_unknown() {
            let arrow = self.paint(Style::Frame, "-->");
            let _ = writeln!(out, "{:margin$}{arrow} {}", "", visible(&location.to_string()));
        }
        if let Some(excerpt) = self.excerpt(location) {
            self.write_excerpt(&mut out, &excerpt, margin);
        }
        for (label, text) in trailers(diagnostic) {
            let sign = self.paint(Style::Frame, "=");
            let label = self.paint(Style::Strong, label);
            let text = visible(text).replace('\n', &format!("\n{:width$}", "", width = margin + 3));
            let _ = writeln!(out, "{:margin$} {sign} {label}: {text}", "");
        }
        out
    }

    /// Renders all of them, with an empty line between any two.
    pub fn render_all(&self, diagnostics: &Diagnostics) -> String {
        diagnostics.iter().map(|diagnostic| self.render(diagnostic)).collect::<Vec<_>>().join("\n")
    }

    fn write_heading(&self, out: &mut String, diagnostic: &Diagnostic) {
        let kind = format!("{}[{}]", diagnostic.severity, diagnostic.code);
        let kind = self.paint(Style::Severity(diagnostic.severity), &kind);
        let message = self.paint(Style::Strong, &format!(": {}", visible(&diagnostic.message)));
        let _ = writeln!(out, "{kind}{message}");
    }

    fn write_excerpt(&self, out: &mut String, excerpt: &Excerpt, margin: usize) {
        let bar = self.paint(Style::Frame, "|");
        let number = self.paint(Style::Frame, &format!("{:>margin$}", excerpt.line));
        let _ = writeln!(out, "{:margin$} {bar}", "");
        let _ = writeln!(out, "{number} {bar} {}", excerpt.text);
        if let Some((padding, carets)) = &excerpt.carets {
            let _ = writeln!(out, "{:margin$} {bar} {padding}{}", "", self.paint(Style::Caret, carets));
        }
    }

    /// The line that the location points at, if the source or at least the location's own text is known.
    fn excerpt(&self, location: &Location) -> Option<Excerpt> {
        let line = location.line?;
        if let Some(source) = self.find_source(location.file.as_deref()) {
            let text = source.lines().nth((line as usize).checked_sub(1)?)?;
            return Some(Excerpt::of_line(line, text, location));
        }
        let text = location.text.as_ref()?.lines().next()?;
        Some(Excerpt::of_line(line, text, &Location::unknown()))
    }

    fn find_source(&self, file: Option<&Path>) -> Option<&'a str> {
        self.sources.iter().find(|(name, _)| name.as_deref() == file).map(|(_, text)| *text)
    }

    fn paint(&self, style: Style, text: &str) -> String {
        match self.colour {
            Colour::Plain => text.to_owned(),
            Colour::Ansi => format!("\x1b[{}m{text}\x1b[0m", style.sequence()),
        }
    }
}

/// What a piece of the rendered text is, which decides its colour.
#[derive(Clone, Copy)]
enum Style {
    Severity(Severity),
    Strong,
    Frame,
    Caret,
}

impl Style {
    /// The parameters of the ANSI sequence that switches the style on.
    fn sequence(self) -> &'static str {
        match self {
            Self::Severity(Severity::Error) | Self::Caret => "1;31",
            Self::Severity(Severity::Warning) => "1;33",
            Self::Severity(Severity::Note) => "1;36",
            Self::Strong => "1",
            Self::Frame => "1;34",
        }
    }
}

/// A source line made ready to print.
struct Excerpt {
    line: u32,
    text: String,
    /// What stands in front of the carets, and the carets.
    carets: Option<(String, String)>,
}

impl Excerpt {
    fn of_line(line: u32, text: &str, location: &Location) -> Self {
        let text: Vec<char> = visible(text).chars().collect();
        let start = location.column.map(|column| (column as usize).saturating_sub(1).min(text.len()));
        let window = window(text.len(), start.unwrap_or(0));

        let mut shown = String::new();
        let mut padding = String::new();
        if window.start > 0 {
            shown.push('…');
            padding.push(' ');
        }
        shown.extend(&text[window.clone()]);
        if window.end < text.len() {
            shown.push('…');
        }

        let carets = start.map(|start| {
            // A tab is as wide under the line as it is in the line.
            padding.extend(text[window.start..start].iter().map(|&c| if c == '\t' { '\t' } else { ' ' }));
            let marked = location.text.as_deref().and_then(|text| text.lines().next());
            let length = marked.map_or(1, |text| text.chars().count());
            (padding, "^".repeat(length.min(window.end - start).max(1)))
        });
        Self { line, text: shown, carets }
    }
}

/// The part of a line of `length` characters that is shown when the place of interest begins at `start`.
fn window(length: usize, start: usize) -> std::ops::Range<usize> {
    if length <= EXCERPT_WIDTH {
        return 0..length;
    }
    let first = start.saturating_sub(EXCERPT_CONTEXT).min(length - EXCERPT_WIDTH);
    first..first + EXCERPT_WIDTH
}

/// The lines under the excerpt, each with its label.
fn trailers(diagnostic: &Diagnostic) -> impl Iterator<Item = (&'static str, &str)> {
    let cause = diagnostic.cause.iter().map(|text| ("cause", text.as_str()));
    let notes = diagnostic.notes.iter().map(|text| ("note", text.as_str()));
    let hints = diagnostic.hints.iter().map(|text| ("help", text.as_str()));
    cause.chain(notes).chain(hints)
}

/// The text with every character replaced that would steer a terminal or reorder the line.
fn visible(text: &str) -> String {
    let steers = |c: char| {
        let control = c.is_control() && c != '\t' && c != '\n';
        control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    const CODE: Code = Code::new("test::some");

    fn plain(source: &str, location: Location) -> String {
        TextRenderer::new(Colour::Plain).source("a.py", source).render(&Diagnostic::error(CODE, "wrong").at(location))
    }

    #[test]
    fn a_message_without_a_place_is_one_line() {
        assert_eq!(plain("", Location::unknown()), "error[test::some]: wrong\n");
    }

    #[test]
    fn the_frame_is_as_wide_as_the_line_number() {
        let source = "x\n".repeat(9) + "abc def\n";
        let expected = "\
error[test::some]: wrong
  --> a.py:10:5
   |
10 | abc def
   |     ^^^
";
        assert_eq!(plain(&source, Location::in_file("a.py").line(10).column(5).text("def")), expected);
    }

    #[test]
    fn without_the_source_the_own_text_stands_in() {
        let expected = "\
error[test::some]: wrong
 --> b.py:2:5
  |
2 | def
";
        assert_eq!(plain("x", Location::in_file("b.py").line(2).column(5).text("def")), expected);
    }

    #[test]
    fn a_line_that_does_not_exist_has_no_excerpt() {
        let location = Location::in_file("a.py");
        assert_eq!(plain("x\n", location.clone().line(7)), "error[test::some]: wrong\n --> a.py:7\n");
        assert_eq!(plain("x\n", location.line(0)), "error[test::some]: wrong\n --> a.py:0\n");
    }

    #[test]
    fn a_column_past_the_end_points_behind_the_line() {
        let text = plain("ab\n", Location::in_file("a.py").line(1).column(99).text("zz"));
        assert!(text.ends_with("1 | ab\n  |   ^\n"), "{text}");
    }

    #[test]
    fn a_tab_keeps_its_width_above_the_caret() {
        let text = plain("\tab\n", Location::in_file("a.py").line(1).column(3));
        assert!(text.ends_with("1 | \tab\n  | \t ^\n"), "{text}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let source = "a".repeat(1000) + "here" + &"b".repeat(1000);
        let text = plain(&source, Location::in_file("a.py").line(1).column(1001).text("here"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[3].chars().count(), "1 | ".len() + EXCERPT_WIDTH + 2);
        let caret = lines[4].find('^').unwrap();
        assert_eq!(lines[3].chars().skip(caret).take(4).collect::<String>(), "here");
        assert!(lines[4].ends_with("^^^^"));
    }

    #[test]
    fn control_characters_of_the_source_never_reach_the_terminal() {
        let text = plain("a\x1b[2Jb\u{202e}\n", Location::in_file("a.py").line(1));
        assert!(text.contains("a\u{fffd}[2Jb\u{fffd}\n"), "{text}");
    }

    #[test]
    fn trailers_come_as_cause_note_help_and_are_indented() {
        let diagnostic = Diagnostic::warning(CODE, "odd").hint("do this\nor that").note("known").cause("deep");
        let expected = "\
warning[test::some]: odd
  = cause: deep
  = note: known
  = help: do this
    or that
";
        assert_eq!(TextRenderer::default().render(&diagnostic), expected);
    }

    #[test]
    fn ansi_adds_nothing_but_escape_sequences() {
        let diagnostic = Diagnostic::error(CODE, "wrong").at(Location::unknown().line(1).column(1)).hint("h");
        let ansi = TextRenderer::new(Colour::Ansi).unnamed_source("x").render(&diagnostic);
        let plain = TextRenderer::new(Colour::Plain).unnamed_source("x").render(&diagnostic);
        assert!(ansi.starts_with("\x1b[1;31merror[test::some]\x1b[0m"));

        let mut stripped = String::new();
        let mut rest = ansi.as_str();
        while let Some(start) = rest.find('\x1b') {
            stripped.push_str(&rest[..start]);
            rest = rest[start..].split_once('m').unwrap().1;
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain);
    }

    #[test]
    fn several_diagnostics_are_set_apart() {
        let diagnostics: Diagnostics =
            [Diagnostic::error(CODE, "one"), Diagnostic::warning(CODE, "two")].into_iter().collect();
        let text = TextRenderer::default().render_all(&diagnostics);
        assert_eq!(text, "error[test::some]: one\n\nwarning[test::some]: two\n");
    }
}
