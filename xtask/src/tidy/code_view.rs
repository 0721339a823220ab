//! Rust source with its comments and literals blanked out, so that a search finds code only.
//!
//! The view has a space, or the newline itself, for every character of a comment, a string or a character literal
//! (quotes included). Lines keep their numbers. It understands as much of Rust's lexical grammar as that takes: nested
//! block comments, raw strings, escapes, and the difference between a character literal and a lifetime.

/// Blanks out everything that is not code.
pub fn code_only(source: &str) -> String {
    let mut scanner = Scanner { rest: source, code: String::with_capacity(source.len()) };
    let mut after_word = false;
    while let Some(next) = scanner.rest.chars().next() {
        let length = if after_word { None } else { raw_string_length(scanner.rest) };
        let length = length.or_else(|| comment_or_literal_length(scanner.rest));
        match length {
            Some(length) => scanner.blank(length),
            None => scanner.keep(next),
        }
        after_word = next.is_alphanumeric() || next == '_';
    }
    scanner.code
}

struct Scanner<'a> {
    rest: &'a str,
    code: String,
}

impl Scanner<'_> {
    fn keep(&mut self, c: char) {
        self.code.push(c);
        self.rest = &self.rest[c.len_utf8()..];
    }

    fn blank(&mut self, length: usize) {
        let (blanked, rest) = self.rest.split_at(length);
        self.code.extend(blanked.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

/// The length in bytes of the comment or literal that `text` begins with.
fn comment_or_literal_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        Some(text.find('\n').unwrap_or(text.len()))
    } else if text.starts_with("/*") {
        Some(block_comment_length(text))
    } else if text.starts_with('"') {
        Some(quoted_length(text, '"'))
    } else if text.starts_with('\'') {
        char_literal_length(text)
    } else {
        None
    }
}

fn block_comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text.as_bytes()[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if text.as_bytes()[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of a literal with escapes, up to and with its closing quote.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal; a lifetime has none.
fn char_literal_length(text: &str) -> Option<usize> {
    let mut chars = text.chars().skip(1);
    let (first, second) = (chars.next()?, chars.next()?);
    (first == '\\' || second == '\'').then(|| quoted_length(text, '\''))
}

/// The length of a raw string (`r"…"`, `br#"…"#`, `cr"…"`); a raw identifier such as `r#type` is none.
fn raw_string_length(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"]
        .into_iter()
        .find(|prefix| text.strip_prefix(prefix).is_some_and(|rest| rest.trim_start_matches('#').starts_with('"')))?;
    let hashes = text[prefix.len()..].bytes().take_while(|&byte| byte == b'#').count();
    let start = prefix.len() + hashes + 1;
    let closing = format!("\"{}", "#".repeat(hashes));
    Some(text[start..].find(&closing).map_or(text.len(), |at| start + at + closing.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The view with every run of spaces made one.
    fn words(source: &str) -> String {
        code_only(source).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_are_blanked() {
        assert_eq!(words("a // unsafe\nb"), "a b");
        assert_eq!(words("a /* x /* y */ unsafe */ b"), "a b");
        assert_eq!(words("a /* never closed"), "a");
    }

    #[test]
    fn strings_are_blanked() {
        assert_eq!(words(r#"f("un\"safe // ", b"x") g"#), "f( , b ) g");
        assert_eq!(words(r##"f(r"\", r#"un"safe"#, br"x") g"##), "f( , , ) g");
        assert_eq!(words("let r#type = bar\"x\";"), "let r#type = bar ;");
    }

    #[test]
    fn a_quote_in_a_character_literal_opens_no_string() {
        assert_eq!(
            words(r#"match c { '"' => 1, '\'' => 2, '\\' => 3, 'é' => 4 } x"#),
            "match c { => 1, => 2, => 3, => 4 } x"
        );
    }

    #[test]
    fn lifetimes_are_code() {
        assert_eq!(words("fn f<'a>(x: &'a str, y: &'static str)"), "fn f<'a>(x: &'a str, y: &'static str)");
    }

    #[test]
    fn lines_keep_their_numbers() {
        let source = "a\n\"x\ny\"\n/* \n\n*/ b";
        assert_eq!(code_only(source).lines().count(), source.lines().count());
        assert_eq!(code_only(source).lines().last(), Some("   b"));
    }
}
