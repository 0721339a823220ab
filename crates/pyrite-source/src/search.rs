//! The search for a smaller source.

use std::time::Instant;

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::parse_module;
use rustc_hash::FxHashSet;

use crate::edits::{Kind, edits};

/// How large a source is: its tokens, then its letters, then what its digits come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// How many tokens it has, without line ends and comments.
    pub tokens: usize,
    /// How many bytes it has.
    pub bytes: usize,
    digits: u64,
}

impl Size {
    /// The size of a text; none where it is no Python.
    pub fn of(source: &str) -> Option<Self> {
        let parsed = parse_module(source).ok()?;
        let counts = |kind: TokenKind| {
            !matches!(
                kind,
                TokenKind::Comment
                    | TokenKind::Newline
                    | TokenKind::NonLogicalNewline
                    | TokenKind::Indent
                    | TokenKind::Dedent
                    | TokenKind::EndOfFile
            )
        };
        let tokens = parsed.tokens().iter().filter(|token| counts(token.kind())).count();
        let digits = source.bytes().filter(u8::is_ascii_digit).map(|digit| u64::from(digit - b'0')).sum();
        Some(Self { tokens, bytes: source.len(), digits })
    }
}

/// What a search may be told.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many texts are asked about at once.
    pub jobs: usize,
    /// When it ends with the best found so far.
    pub until: Option<Instant>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The smallest text.
    pub source: String,
    /// How large it was, and is.
    pub sizes: (Size, Size),
    /// How many texts were asked about.
    pub queries: u64,
    /// Whether no single edit makes it smaller.
    pub is_minimal: bool,
}

/// Finds a smaller source of which the answer is still yes. `tell` hears of every smaller one, with the kind of edit and how
/// many texts were asked about. None where the source is no Python.
pub fn reduce(
    source: &str,
    fails: &(dyn Fn(&str) -> bool + Sync),
    options: Options,
    tell: &mut dyn FnMut(Kind, u64, &str),
) -> Option<Reduction> {
    let before = Size::of(source)?;
    let mut search =
        Search { best: source.to_owned(), size: before, asked: FxHashSet::default(), queries: 0, options, fails, tell };
    let mut is_minimal = false;
    while !is_minimal && !search.is_over() {
        let size = search.size;
        for kind in Kind::ALL {
            search.pass(kind);
        }
        is_minimal = search.size == size && !search.is_over();
    }
    let (source, sizes, queries) = (search.best, (before, search.size), search.queries);
    Some(Reduction { source, sizes, queries, is_minimal })
}

struct Search<'a> {
    best: String,
    size: Size,
    asked: FxHashSet<String>,
    queries: u64,
    options: Options,
    fails: &'a (dyn Fn(&str) -> bool + Sync),
    tell: &'a mut dyn FnMut(Kind, u64, &str),
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.options.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Tries every edit of a kind; after each that holds the edits of the new text, from the same place on.
    fn pass(&mut self, kind: Kind) {
        let mut at = 0;
        loop {
            let Ok(parsed) = parse_module(&self.best) else { return };
            let proposals = edits(&self.best, &parsed, kind);
            let mut batch: Vec<(usize, String, Size)> = Vec::new();
            while at < proposals.len() {
                let text = proposals[at].apply(&self.best);
                at += 1;
                let Some(size) = Size::of(&text).filter(|size| *size < self.size) else { continue };
                if self.asked.insert(text.clone()) {
                    batch.push((at - 1, text, size));
                    if batch.len() == self.options.jobs.max(1) {
                        break;
                    }
                }
            }
            if batch.is_empty() || self.is_over() {
                return;
            }
            self.queries += batch.len() as u64;
            let fails = self.fails;
            let answers: Vec<bool> = std::thread::scope(|scope| {
                let asked: Vec<_> = batch.iter().map(|(_, text, _)| scope.spawn(move || fails(text))).collect();
                asked.into_iter().map(|asked| asked.join().unwrap_or(false)).collect()
            });
            if let Some(first) = answers.iter().position(|answer| *answer) {
                for (_, text, _) in batch.drain(first + 1..) {
                    // It was an edit of another text.
                    self.asked.remove(&text);
                }
                let (place, text, size) = batch.swap_remove(first);
                (self.best, self.size, at) = (text, size, place);
                (self.tell)(kind, self.queries, &self.best);
            }
        }
    }
}
