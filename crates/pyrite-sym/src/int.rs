//! A size: a number, or an expression over the symbols of an environment.

use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

use crate::{Expr, Rel, SymEnv};

/// A size. Equality (`==`) is structural; [`SymInt::is_eq`] and its relatives decide about values.
#[derive(Clone)]
pub enum SymInt {
    /// A number.
    Int(i64),
    /// An expression that is not a number, with the environment of its symbols.
    Expr(Arc<(Expr, SymEnv)>),
}

impl SymInt {
    /// The size an expression stands for.
    pub fn from_expr(expr: Expr, env: &SymEnv) -> Self {
        match expr.as_int() {
            Some(value) => Self::Int(value),
            None => Self::Expr(Arc::new((expr, env.clone()))),
        }
    }

    /// The number, unless it is symbolic.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Expr(_) => None,
        }
    }

    /// The number, or the value that the hints give.
    pub fn hint(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Expr(node) => node.1.hint(&node.0),
        }
    }

    /// How much there is to look at, in its expression.
    pub fn weight(&self) -> usize {
        match self {
            Self::Int(_) => 1,
            Self::Expr(node) => node.0.weight(),
        }
    }

    /// It as an expression.
    pub fn to_expr(&self) -> Expr {
        match self {
            Self::Int(value) => Expr::int(*value),
            Self::Expr(node) => node.0.clone(),
        }
    }

    fn env<'a>(&'a self, other: &'a Self) -> Option<&'a SymEnv> {
        match (self, other) {
            (Self::Expr(node), _) | (_, Self::Expr(node)) => Some(&node.1),
            _ => None,
        }
    }

    fn combine(&self, other: &Self, ints: fn(i64, i64) -> Option<i64>, exprs: fn(&Expr, &Expr) -> Expr) -> Self {
        if let (Self::Int(a), Self::Int(b)) = (self, other) {
            // Sizes that do not fit 64 bits saturate: no tensor has them, so the next bounds check refuses them.
            return Self::Int(ints(*a, *b).unwrap_or(i64::MAX));
        }
        match self.env(other) {
            Some(env) => Self::from_expr(exprs(&self.to_expr(), &other.to_expr()), env),
            None => Self::Int(0),
        }
    }

    /// Floor division.
    #[must_use]
    pub fn floor_div(&self, other: &Self) -> Self {
        self.combine(other, |a, b| Expr::int(a).floor_div(&Expr::int(b)).as_int(), Expr::floor_div)
    }

    /// Division rounding up, for positive divisors.
    #[must_use]
    pub fn ceil_div(&self, other: &Self) -> Self {
        (self + other - 1).floor_div(other)
    }

    /// The remainder as Python has it.
    #[must_use]
    pub fn modulo(&self, other: &Self) -> Self {
        self.combine(other, |a, b| Expr::int(a).modulo(&Expr::int(b)).as_int(), Expr::modulo)
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        self.combine(other, |a, b| Some(a.min(b)), Expr::minimum)
    }

    /// The larger of two.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.combine(other, |a, b| Some(a.max(b)), Expr::maximum)
    }

    fn decide(&self, rel: Rel, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => match rel {
                Rel::Eq => a == b,
                Rel::Ne => a != b,
                Rel::Lt => a < b,
                Rel::Le => a <= b,
            },
            // A size that only a run can tell is taken to be a general one: unlike every other size.
            _ => self.env(other).map_or(rel == Rel::Ne, |env| {
                let (left, right) = (self.to_expr(), other.to_expr());
                env.decide(&left, rel, &right).unwrap_or_else(|| env.in_general(&left, rel, &right))
            }),
        }
    }

    /// Whether a comparison holds, where that can be told; may record a constraint.
    pub fn told(&self, rel: Rel, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Int(_), Self::Int(_)) => Some(self.decide(rel, other)),
            _ => self.env(other).and_then(|env| env.decide(&self.to_expr(), rel, &other.to_expr())),
        }
    }

    /// Whether only a run can tell it.
    pub fn is_unbacked(&self) -> bool {
        self.hint().is_none()
    }

    /// The same with symbols of a name replaced.
    #[must_use]
    pub fn renamed(&self, name: &str, new: &Self) -> Self {
        match (self, new) {
            (Self::Expr(node), Self::Expr(home)) if node.0.symbols().iter().any(|symbol| &**symbol == name) => {
                Self::from_expr(node.0.substitute(&|symbol| (symbol == name).then(|| home.0.clone())), &home.1)
            }
            _ => self.clone(),
        }
    }

    /// Whether both are the same number; may record a constraint.
    pub fn is_eq(&self, other: impl Into<Self>) -> bool {
        self.decide(Rel::Eq, &other.into())
    }

    /// Whether it is less; may record a constraint.
    pub fn is_lt(&self, other: impl Into<Self>) -> bool {
        self.decide(Rel::Lt, &other.into())
    }

    /// Whether it is less or equal; may record a constraint.
    pub fn is_le(&self, other: impl Into<Self>) -> bool {
        self.decide(Rel::Le, &other.into())
    }

    /// Whether it is greater; may record a constraint.
    pub fn is_gt(&self, other: impl Into<Self>) -> bool {
        other.into().decide(Rel::Lt, self)
    }

    /// Whether it is greater or equal; may record a constraint.
    pub fn is_ge(&self, other: impl Into<Self>) -> bool {
        other.into().decide(Rel::Le, self)
    }
}

impl PartialEq for SymInt {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Expr(a), Self::Expr(b)) => a.0 == b.0,
            _ => false,
        }
    }
}

impl Eq for SymInt {}

impl PartialEq<i64> for SymInt {
    fn eq(&self, other: &i64) -> bool {
        self.as_int() == Some(*other)
    }
}

impl From<i64> for SymInt {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for SymInt {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<usize> for SymInt {
    fn from(value: usize) -> Self {
        Self::Int(value as i64)
    }
}

impl From<&SymInt> for SymInt {
    fn from(value: &SymInt) -> Self {
        value.clone()
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $ints:expr, $exprs:expr) => {
        impl<T: Into<SymInt>> $trait<T> for &SymInt {
            type Output = SymInt;
            fn $method(self, other: T) -> SymInt {
                self.combine(&other.into(), $ints, $exprs)
            }
        }
        impl<T: Into<SymInt>> $trait<T> for SymInt {
            type Output = SymInt;
            fn $method(self, other: T) -> SymInt {
                self.combine(&other.into(), $ints, $exprs)
            }
        }
    };
}

operator!(Add, add, i64::checked_add, Expr::add);
operator!(Sub, sub, i64::checked_sub, Expr::sub);
operator!(Mul, mul, i64::checked_mul, Expr::mul);

impl Neg for &SymInt {
    type Output = SymInt;
    fn neg(self) -> SymInt {
        SymInt::Int(0) - self
    }
}

impl fmt::Display for SymInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Expr(node) => write!(f, "{}", node.0),
        }
    }
}

impl fmt::Debug for SymInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_expressions_decide_records_nothing() {
        let env = SymEnv::new();
        let s = env.size(4);
        assert!(s.is_gt(0) && !s.is_eq(1) && (&s + 1).is_gt(&s) && (&s * 2).is_ge(4));
        assert!(env.constraints().is_empty());
    }

    #[test]
    fn what_only_the_hint_decides_becomes_a_constraint() {
        let env = SymEnv::new();
        let (a, b) = (env.size(4), env.size(4));
        assert!(a.is_eq(&b));
        assert!(!a.is_lt(3));
        let texts: Vec<String> = env.constraints().iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["s0 == s1", "3 <= s0"]);
        let bind = |name: &str| Some(if name == "s0" { 5 } else { 4 });
        assert_eq!(env.constraints()[0].holds(&bind), Some(false));
    }

    #[test]
    fn a_size_known_only_at_run_time_differs_from_every_other() {
        let env = SymEnv::new();
        let u = env.unbacked();
        assert!(!u.is_eq(1) && !u.is_eq(5));
        assert!(env.constraints().is_empty());
    }

    #[test]
    fn only_what_differs_between_sizes_of_two_and_more_is_a_guess() {
        let env = SymEnv::new();
        let u = env.unbacked();
        assert!(u.is_ge(1) && !u.is_eq(0) && !(&u * 3).is_eq(3));
        assert_eq!(env.guesses(), 0);
        assert!(!u.is_lt(5) && !u.is_eq(7));
        assert_eq!(env.guesses(), 2);
        assert_eq!(u.told(Rel::Lt, &5.into()), None);
    }

    #[test]
    fn what_is_assumed_of_a_symbol_decides() {
        let env = SymEnv::new();
        let n = env.named("u1", None, i64::MIN);
        assert_eq!(n.told(Rel::Lt, &0.into()), None);
        env.assume(&Expr::int(0), Rel::Le, &n.to_expr());
        env.assume(&n.to_expr(), Rel::Lt, &Expr::int(8));
        assert_eq!(n.told(Rel::Lt, &0.into()), Some(false));
        assert_eq!(n.told(Rel::Le, &7.into()), Some(true));
        assert_eq!(n.told(Rel::Lt, &7.into()), None);
    }

    #[test]
    fn numbers_stay_numbers_and_overflow_saturates() {
        assert_eq!(SymInt::Int(6).ceil_div(&4.into()), SymInt::Int(2));
        assert_eq!(SymInt::Int(i64::MAX) * 2, SymInt::Int(i64::MAX));
        let env = SymEnv::new();
        let s = env.size(3);
        assert_eq!((&s - &s).as_int(), Some(0));
    }
}
