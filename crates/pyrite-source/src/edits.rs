//! Edits of a Python source, each of which makes it smaller.
//!
//! [`edits`] proposes all edits of a kind, those that remove most first. A proposal need not keep the meaning, or even a
//! definition that is used elsewhere: whoever asks about the edited text finds out. A text that is no Python is never
//! asked about, so an edit may also be one that breaks the syntax.

use std::collections::BTreeSet;
use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, TraversalSignal, walk_body};
use ruff_python_ast::{AnyNodeRef, ExceptHandler, Expr, ModModule, Number, Stmt};
use ruff_python_parser::Parsed;
use ruff_text_size::{Ranged, TextRange};

/// What an edit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Removes comments and the texts that document a module, class or function.
    Comments,
    /// Removes statements that follow each other.
    Statements,
    /// Puts a block in the place of the statement that it belongs to.
    Blocks,
    /// Removes an argument, element, parameter, decorator, base or alias.
    Elements,
    /// Puts a part of an expression, or a constant, in its place.
    Expressions,
    /// Makes a literal smaller.
    Literals,
}

impl Kind {
    /// All kinds, those first that remove most.
    pub const ALL: [Self; 6] =
        [Self::Comments, Self::Statements, Self::Blocks, Self::Elements, Self::Expressions, Self::Literals];

    /// Its name in progress and traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comments => "comments",
            Self::Statements => "statements",
            Self::Blocks => "blocks",
            Self::Elements => "elements",
            Self::Expressions => "expressions",
            Self::Literals => "literals",
        }
    }
}

/// Other text for some ranges, which do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit(Vec<(Range<usize>, String)>);

impl Edit {
    fn of(range: TextRange, text: impl Into<String>) -> Self {
        Self(vec![(range.start().to_usize()..range.end().to_usize(), text.into())])
    }

    /// The text with the edit made.
    pub fn apply(&self, source: &str) -> String {
        let mut ranges = self.0.clone();
        ranges.sort_by_key(|(range, _)| range.start);
        let (mut text, mut at) = (String::with_capacity(source.len()), 0);
        for (range, other) in ranges {
            text.push_str(&source[at..range.start.max(at)]);
            text.push_str(&other);
            at = range.end.max(at);
        }
        text.push_str(&source[at..]);
        text
    }
}

/// All edits of a kind that a source has.
pub fn edits(source: &str, parsed: &Parsed<ModModule>, kind: Kind) -> Vec<Edit> {
    let mut found = Found { source, parsed, suites: Vec::new(), nodes: Vec::new() };
    found.suites.push(parsed.suite());
    walk_body(&mut found, parsed.suite());
    match kind {
        Kind::Comments => found.comments(),
        Kind::Statements => found.statements(),
        Kind::Blocks => found.blocks(),
        Kind::Elements => found.elements(),
        Kind::Expressions => found.expressions(),
        Kind::Literals => found.literals(),
    }
}

/// What a syntax tree consists of.
struct Found<'a> {
    source: &'a str,
    parsed: &'a Parsed<ModModule>,
    /// The lists of statements, outer ones first.
    suites: Vec<&'a [Stmt]>,
    nodes: Vec<AnyNodeRef<'a>>,
}

impl<'a> SourceOrderVisitor<'a> for Found<'a> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        self.nodes.push(node);
        match node {
            AnyNodeRef::StmtFunctionDef(s) => self.suites.push(&s.body),
            AnyNodeRef::StmtClassDef(s) => self.suites.push(&s.body),
            AnyNodeRef::StmtFor(s) => self.suites.extend([s.body.as_slice(), s.orelse.as_slice()]),
            AnyNodeRef::StmtWhile(s) => self.suites.extend([s.body.as_slice(), s.orelse.as_slice()]),
            AnyNodeRef::StmtIf(s) => {
                self.suites.push(&s.body);
                self.suites.extend(s.elif_else_clauses.iter().map(|clause| clause.body.as_slice()));
            }
            AnyNodeRef::StmtWith(s) => self.suites.push(&s.body),
            AnyNodeRef::StmtTry(s) => {
                self.suites.extend([s.body.as_slice(), s.orelse.as_slice(), s.finalbody.as_slice()]);
            }
            AnyNodeRef::ExceptHandlerExceptHandler(s) => self.suites.push(&s.body),
            AnyNodeRef::MatchCase(s) => self.suites.push(&s.body),
            _ => {}
        }
        TraversalSignal::Traverse
    }
}

impl Found<'_> {
    fn text(&self, range: TextRange) -> &str {
        &self.source[range]
    }

    /// The whole lines of a range where nothing else stands on them, with the last line's end.
    fn lines(&self, range: Range<usize>) -> Option<Range<usize>> {
        let start = self.source[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let end = self.source[range.end..].find('\n').map_or(self.source.len(), |at| range.end + at + 1);
        let before = &self.source[start..range.start];
        let after = self.source[range.end..end].trim();
        (before.trim().is_empty() && (after.is_empty() || after.starts_with('#'))).then_some(start..end)
    }

    fn comments(&self) -> Vec<Edit> {
        let mut ranges = Vec::new();
        for token in self.parsed.tokens().iter().filter(|token| token.kind() == TokenKind::Comment) {
            let range = token.start().to_usize()..token.end().to_usize();
            ranges.push(self.lines(range.clone()).unwrap_or(range));
        }
        let mut all: Vec<(Range<usize>, String)> = ranges.into_iter().map(|range| (range, String::new())).collect();
        for suite in self.suites.iter().filter(|suite| suite.len() > 1) {
            if let Some(Stmt::Expr(first)) = suite.first()
                && first.value.is_string_literal_expr()
                && let Some(lines) = self.lines(first.start().to_usize()..first.end().to_usize())
            {
                all.push((lines, String::new()));
            }
        }
        if all.is_empty() { Vec::new() } else { vec![Edit(all)] }
    }

    /// Statements in a row: halves of the lists first, then quarters, and so on to single ones.
    fn statements(&self) -> Vec<Edit> {
        let mut found = Vec::new();
        let longest = self.suites.iter().map(|suite| suite.len()).max().unwrap_or(0);
        let mut chunk = longest.next_power_of_two();
        while chunk > 0 {
            // The last statements need the others, not the other way round.
            for suite in &self.suites {
                if suite.len() < chunk && chunk > 1 {
                    continue;
                }
                let mut end = suite.len();
                while end > 0 {
                    let start = end.saturating_sub(chunk);
                    found.extend(self.without(&suite[start..end], suite.len()));
                    end = start;
                }
            }
            chunk /= 2;
        }
        found
    }

    /// The text without some statements of a list of so many.
    fn without(&self, statements: &[Stmt], of: usize) -> Option<Edit> {
        let (first, last) = (statements.first()?, statements.last()?);
        let range = first.start().to_usize()..last.end().to_usize();
        let all = statements.len() == of;
        if all && matches!(statements, [Stmt::Pass(_)]) {
            return None;
        }
        let of_module = self.parsed.suite().iter().any(|own| own.range() == first.range());
        Some(match self.lines(range.clone()) {
            Some(lines) if !all || of_module => Edit(vec![(lines, String::new())]),
            _ => Edit(vec![(range, "pass".to_owned())]),
        })
    }

    /// Each block of a statement in the statement's place.
    fn blocks(&self) -> Vec<Edit> {
        let mut found = Vec::new();
        for node in &self.nodes {
            let blocks: Vec<&[Stmt]> = match node {
                AnyNodeRef::StmtFor(s) => vec![&s.body, &s.orelse],
                AnyNodeRef::StmtWhile(s) => vec![&s.body, &s.orelse],
                AnyNodeRef::StmtWith(s) => vec![&s.body],
                AnyNodeRef::StmtFunctionDef(s) => vec![&s.body],
                AnyNodeRef::StmtClassDef(s) => vec![&s.body],
                AnyNodeRef::StmtTry(s) => {
                    let handlers = s.handlers.iter().filter_map(ExceptHandler::as_except_handler);
                    [s.body.as_slice(), &s.orelse, &s.finalbody]
                        .into_iter()
                        .chain(handlers.map(|handler| handler.body.as_slice()))
                        .collect()
                }
                AnyNodeRef::StmtIf(s) => {
                    let clauses = s.elif_else_clauses.iter().map(|clause| clause.body.as_slice());
                    std::iter::once(s.body.as_slice()).chain(clauses).collect()
                }
                AnyNodeRef::StmtMatch(s) => s.cases.iter().map(|case| case.body.as_slice()).collect(),
                _ => continue,
            };
            let range = node.range().start().to_usize()..node.range().end().to_usize();
            let Some(lines) = self.lines(range.clone()) else { continue };
            let margin = &self.source[lines.start..range.start];
            for block in blocks {
                let (Some(first), Some(last)) = (block.first(), block.last()) else { continue };
                let body = first.start().to_usize()..last.end().to_usize();
                let inner = self.source[..body.start].rfind('\n').map_or(0, |at| at + 1)..body.start;
                let inner = &self.source[inner];
                if !inner.trim().is_empty() {
                    continue;
                }
                let mut text = String::new();
                for line in self.source[body].lines() {
                    text.push_str(margin);
                    text.push_str(line.strip_prefix(inner).unwrap_or(line));
                    text.push('\n');
                }
                found.push(Edit(vec![(lines.clone(), text)]));
            }
            // A clause less.
            if let AnyNodeRef::StmtIf(s) = node {
                for clause in &s.elif_else_clauses {
                    let range = clause.start().to_usize()..clause.end().to_usize();
                    found.extend(self.lines(range).map(|lines| Edit(vec![(lines, String::new())])));
                }
            }
        }
        found
    }

    /// One element less of every list that has commas, and decorators.
    fn elements(&self) -> Vec<Edit> {
        let mut found = Vec::new();
        for node in &self.nodes {
            let elements: Vec<TextRange> = match node {
                AnyNodeRef::Arguments(a) => {
                    a.args.iter().map(Ranged::range).chain(a.keywords.iter().map(Ranged::range)).collect()
                }
                AnyNodeRef::ExprList(e) => e.elts.iter().map(Ranged::range).collect(),
                AnyNodeRef::ExprSet(e) if e.elts.len() > 1 => e.elts.iter().map(Ranged::range).collect(),
                AnyNodeRef::ExprTuple(e) if e.elts.len() > 1 => e.elts.iter().map(Ranged::range).collect(),
                AnyNodeRef::ExprDict(e) => e
                    .items
                    .iter()
                    .map(|item| {
                        let start = item.key.as_ref().map_or(item.value.start(), Ranged::start);
                        TextRange::new(start, item.value.end())
                    })
                    .collect(),
                AnyNodeRef::StmtWith(s) if s.items.len() > 1 => s.items.iter().map(Ranged::range).collect(),
                AnyNodeRef::StmtImport(s) if s.names.len() > 1 => s.names.iter().map(Ranged::range).collect(),
                AnyNodeRef::StmtImportFrom(s) if s.names.len() > 1 => s.names.iter().map(Ranged::range).collect(),
                AnyNodeRef::StmtGlobal(s) if s.names.len() > 1 => s.names.iter().map(Ranged::range).collect(),
                AnyNodeRef::Parameters(p) => p.iter_non_variadic_params().map(Ranged::range).collect(),
                AnyNodeRef::Decorator(d) => {
                    let range = d.start().to_usize()..d.end().to_usize();
                    found.extend(self.lines(range).map(|lines| Edit(vec![(lines, String::new())])));
                    continue;
                }
                _ => continue,
            };
            found.extend(elements.iter().map(|range| Edit(vec![(self.with_comma(*range), String::new())])));
        }
        for node in &self.nodes {
            if let AnyNodeRef::StmtFunctionDef(function) = node {
                let parameters: Vec<TextRange> =
                    function.parameters.iter_non_variadic_params().map(Ranged::range).collect();
                for (place, range) in parameters.iter().enumerate() {
                    found.extend(self.without_parameter(function.name.as_str(), place, *range));
                }
            }
        }
        found
    }

    /// The text without a parameter of a function, and without what all its calls give for it.
    fn without_parameter(&self, function: &str, place: usize, parameter: TextRange) -> Option<Edit> {
        let mut ranges = vec![(self.with_comma(parameter), String::new())];
        let is_method = self.text(parameter) != "self"
            && self.nodes.iter().any(|node| {
                matches!(node, AnyNodeRef::StmtFunctionDef(f) if f.name.as_str() == function
                && f.parameters.iter_non_variadic_params().next().is_some_and(|p| p.name() == "self"))
            });
        let given = if is_method { place.checked_sub(1)? } else { place };
        for node in &self.nodes {
            let AnyNodeRef::ExprCall(call) = node else { continue };
            let called = match call.func.as_ref() {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => continue,
            };
            if called == function && call.arguments.args.iter().all(|argument| !argument.is_starred_expr()) {
                let argument = call.arguments.args.get(given)?;
                ranges.push((self.with_comma(argument.range()), String::new()));
            }
        }
        (ranges.len() > 1).then_some(Edit(ranges))
    }

    /// A range with the comma that it needs no more: the next one, else the one before.
    fn with_comma(&self, range: TextRange) -> Range<usize> {
        let (mut start, mut end) = (range.start().to_usize(), range.end().to_usize());
        let rest = &self.source[end..];
        let after = rest.trim_start();
        if let Some(following) = after.strip_prefix(',') {
            end += rest.len() - following.trim_start_matches([' ', '\t']).len();
        } else if let Some(before) = self.source[..start].trim_end().strip_suffix(',') {
            start = before.len();
        }
        start..end
    }

    /// A part of each expression in its place, the outermost expressions first; then constants. A value may also stand in
    /// the place of the statement that stores, returns or looks at it.
    fn expressions(&self) -> Vec<Edit> {
        let mut found = Vec::new();
        for node in &self.nodes {
            let value = match node {
                AnyNodeRef::StmtAssign(s) => Some(&s.value),
                AnyNodeRef::StmtAugAssign(s) => Some(&s.value),
                AnyNodeRef::StmtAnnAssign(s) => s.value.as_ref(),
                AnyNodeRef::StmtReturn(s) => s.value.as_ref(),
                AnyNodeRef::StmtFor(s) => Some(&s.iter),
                AnyNodeRef::StmtWhile(s) => Some(&s.test),
                AnyNodeRef::StmtIf(s) => Some(&s.test),
                _ => None,
            };
            found.extend(value.map(|value| Edit::of(node.range(), self.text(value.range()))));
        }
        let mut constants = Vec::new();
        for node in &self.nodes {
            let Some(expression) = node.as_expr_ref() else { continue };
            let range = expression.range();
            let mut parts = Parts { of: range, found: Vec::new() };
            node.visit_source_order(&mut parts);
            for part in parts.found {
                let text = self.text(part);
                let text = if needs_parentheses(text) { format!("({text})") } else { text.to_owned() };
                found.push(Edit::of(range, text));
            }
            let is_plain = matches!(
                node,
                AnyNodeRef::ExprNumberLiteral(_)
                    | AnyNodeRef::ExprBooleanLiteral(_)
                    | AnyNodeRef::ExprNoneLiteral(_)
                    | AnyNodeRef::ExprStringLiteral(_)
                    | AnyNodeRef::ExprSlice(_)
                    | AnyNodeRef::ExprStarred(_)
            );
            if !is_plain {
                constants.extend(["None", "0", "1", "True"].map(|constant| Edit::of(range, constant)));
            }
        }
        found.extend(constants);
        found
    }

    fn literals(&self) -> Vec<Edit> {
        let mut found = Vec::new();
        for node in &self.nodes {
            match node {
                AnyNodeRef::ExprNumberLiteral(number) => match &number.value {
                    Number::Int(value) => {
                        let Some(value) = value.as_u64() else { continue };
                        let smaller: BTreeSet<u64> =
                            [0, 1, 2, value / 2, value.saturating_sub(1)].into_iter().filter(|v| *v < value).collect();
                        found.extend(smaller.into_iter().map(|v| Edit::of(number.range, v.to_string())));
                    }
                    Number::Float(_) => found.extend(["0.0", "1.0", "2.0"].map(|text| Edit::of(number.range, text))),
                    Number::Complex { .. } => {}
                },
                AnyNodeRef::ExprStringLiteral(text) if !text.value.is_empty() => {
                    found.push(Edit::of(text.range, "''"));
                }
                AnyNodeRef::ExprFString(text) => found.push(Edit::of(text.range, "''")),
                _ => {}
            }
        }
        found
    }
}

/// Whether a text must stand in parentheses to be one operand.
fn needs_parentheses(text: &str) -> bool {
    text.contains('\n') || text.split_whitespace().count() > 1 && !text.starts_with(['(', '[', '{', '\'', '"'])
}

/// The expressions right below one.
struct Parts {
    of: TextRange,
    found: Vec<TextRange>,
}

impl<'a> SourceOrderVisitor<'a> for Parts {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        let is_below = node.range() != self.of;
        if is_below && node.is_expression() && !matches!(node, AnyNodeRef::ExprSlice(_) | AnyNodeRef::ExprStarred(_)) {
            self.found.push(node.range());
            return TraversalSignal::Skip;
        }
        TraversalSignal::Traverse
    }
}
