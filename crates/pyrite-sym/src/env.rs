//! The symbols of a program and what was assumed about them.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Expr, SymInt};

/// How two expressions are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rel {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less than.
    Lt,
    /// Less than or equal.
    Le,
}

impl Rel {
    fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Eq => left == right,
            Self::Ne => left != right,
            Self::Lt => left < right,
            Self::Le => left <= right,
        }
    }

    fn spelled(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
        }
    }
}

/// One assumption: `left rel right`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Constraint {
    /// The left side.
    pub left: Expr,
    /// The relation.
    pub rel: Rel,
    /// The right side.
    pub right: Expr,
}

impl Constraint {
    /// Whether a binding satisfies it; `None` when a symbol is unbound.
    pub fn holds(&self, bind: &dyn Fn(&str) -> Option<i64>) -> Option<bool> {
        Some(self.rel.holds(self.left.evaluate(bind)?, self.right.evaluate(bind)?))
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.rel.spelled(), self.right)
    }
}

/// A symbol with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name, unique in its environment.
    pub name: Arc<str>,
    /// The value it had when the program was captured; `None` for a size that only a run can tell.
    pub hint: Option<i64>,
    /// The smallest value it can have.
    pub low: i64,
    /// The largest value it can have, if there is one.
    pub high: Option<i64>,
}

#[derive(Debug, Default)]
struct Inner {
    symbols: Vec<Symbol>,
    constraints: Vec<Constraint>,
    /// How many comparisons were answered for sizes in general, without knowing.
    guesses: usize,
}

impl Inner {
    fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.iter().find(|symbol| &*symbol.name == name)
    }
}

/// The symbols and constraints of one program; clones share them.
#[derive(Clone, Debug, Default)]
pub struct SymEnv {
    inner: Arc<Mutex<Inner>>,
}

impl SymEnv {
    /// An environment without symbols.
    pub fn new() -> Self {
        Self::default()
    }

    /// A size symbol named `s<n>` with its captured value. Sizes 0 and 1 behave unlike others (they are empty, they
    /// broadcast), so a symbol stands for sizes of 2 and more, unless its captured value is one of them.
    pub fn size(&self, hint: i64) -> SymInt {
        let name = format!("s{}", self.inner.lock().symbols.len());
        self.named(&name, Some(hint), hint.clamp(0, 2))
    }

    /// A symbol named `u<n>` whose value only a run can tell, such as the number of non-zero elements.
    pub fn unbacked(&self) -> SymInt {
        let name = format!("u{}", self.inner.lock().symbols.len());
        self.named(&name, None, 0)
    }

    /// The symbol of that name, made with the hint and lower bound if there is none yet.
    pub fn named(&self, name: &str, hint: Option<i64>, low: i64) -> SymInt {
        let mut inner = self.inner.lock();
        let name = if let Some(symbol) = inner.symbols.iter().find(|s| &*s.name == name) {
            symbol.name.clone()
        } else {
            let name: Arc<str> = name.into();
            inner.symbols.push(Symbol { name: name.clone(), hint, low, high: None });
            name
        };
        drop(inner);
        self.wrap(Expr::symbol(name))
    }

    /// The size that an expression over this environment's symbols stands for.
    pub fn wrap(&self, expr: Expr) -> SymInt {
        SymInt::from_expr(expr, self)
    }

    /// All symbols in the order they were made.
    pub fn symbols(&self) -> Vec<Symbol> {
        self.inner.lock().symbols.clone()
    }

    /// All constraints in the order they were recorded, each once.
    pub fn constraints(&self) -> Vec<Constraint> {
        self.inner.lock().constraints.clone()
    }

    /// The value that the hints give an expression.
    pub fn hint(&self, expr: &Expr) -> Option<i64> {
        let inner = self.inner.lock();
        expr.evaluate(&|name| inner.symbols.iter().find(|s| &*s.name == name).and_then(|s| s.hint))
    }

    /// Decides a comparison: from the expressions alone if possible, else from hints with a recorded constraint.
    /// `None` when neither can tell.
    pub fn decide(&self, left: &Expr, rel: Rel, right: &Expr) -> Option<bool> {
        let known = |symbol: &Symbol| (symbol.low, symbol.high);
        if let Some(answer) = self.decide_by_bounds(left, rel, right, &known) {
            return Some(answer);
        }
        let (a, b) = (self.hint(left)?, self.hint(right)?);
        let answer = rel.holds(a, b);
        let constraint = match (rel, answer) {
            (_, true) => Constraint { left: left.clone(), rel, right: right.clone() },
            (Rel::Eq, false) => Constraint { left: left.clone(), rel: Rel::Ne, right: right.clone() },
            (Rel::Ne, false) => Constraint { left: left.clone(), rel: Rel::Eq, right: right.clone() },
            (Rel::Lt, false) => Constraint { left: right.clone(), rel: Rel::Le, right: left.clone() },
            (Rel::Le, false) => Constraint { left: right.clone(), rel: Rel::Lt, right: left.clone() },
        };
        let mut inner = self.inner.lock();
        if !inner.constraints.contains(&constraint) {
            inner.constraints.push(constraint);
        }
        Some(answer)
    }

    /// What the expressions and the bounds of their symbols say of a comparison.
    fn decide_by_bounds(
        &self,
        left: &Expr,
        rel: Rel,
        right: &Expr,
        of: &dyn Fn(&Symbol) -> (i64, Option<i64>),
    ) -> Option<bool> {
        let difference = left.sub(right);
        if let Some(value) = difference.as_int() {
            return Some(rel.holds(value, 0));
        }
        let inner = self.inner.lock();
        let (low, high) = difference.bounds(&|name| inner.symbol(name).map_or((0, None), of));
        drop(inner);
        let below = high.is_some_and(|v| v < 0);
        let above = low.is_some_and(|v| v > 0);
        match rel {
            Rel::Eq if below || above => Some(false),
            Rel::Ne if below || above => Some(true),
            Rel::Lt if below => Some(true),
            Rel::Lt if low.is_some_and(|v| v >= 0) => Some(false),
            Rel::Le if high.is_some_and(|v| v <= 0) => Some(true),
            Rel::Le if above => Some(false),
            _ => None,
        }
    }

    /// The answer to a comparison that [`decide`](Self::decide) cannot tell, for a size in general: one of 2 or more, which is
    /// no other size. Counted as a guess where the first does not decide it.
    pub(crate) fn in_general(&self, left: &Expr, rel: Rel, right: &Expr) -> bool {
        let general = |symbol: &Symbol| match symbol.hint {
            Some(_) => (symbol.low, symbol.high),
            None => (symbol.low.max(2), symbol.high),
        };
        self.decide_by_bounds(left, rel, right, &general).unwrap_or_else(|| {
            self.inner.lock().guesses += 1;
            rel == Rel::Ne
        })
    }

    /// How many comparisons were answered by a guess so far.
    pub fn guesses(&self) -> usize {
        self.inner.lock().guesses
    }

    /// Takes for given that a comparison of a symbol with a number holds; other comparisons tell nothing.
    pub fn assume(&self, left: &Expr, rel: Rel, right: &Expr) {
        let (name, low, high) = match (left.as_symbol(), left.as_int(), right.as_symbol(), right.as_int()) {
            (Some(name), _, _, Some(bound)) => match rel {
                Rel::Eq => (name, Some(bound), Some(bound)),
                Rel::Lt => (name, None, Some(bound.saturating_sub(1))),
                Rel::Le => (name, None, Some(bound)),
                Rel::Ne => return,
            },
            (_, Some(bound), Some(name), _) => match rel {
                Rel::Eq => (name, Some(bound), Some(bound)),
                Rel::Lt => (name, Some(bound.saturating_add(1)), None),
                Rel::Le => (name, Some(bound), None),
                Rel::Ne => return,
            },
            _ => return,
        };
        let mut inner = self.inner.lock();
        if let Some(symbol) = inner.symbols.iter_mut().find(|symbol| *symbol.name == *name) {
            symbol.low = low.map_or(symbol.low, |low| symbol.low.max(low));
            symbol.high = symbol.high.into_iter().chain(high).min();
        }
    }
}
