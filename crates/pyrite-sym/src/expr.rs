//! Integer expressions in normal form.
//!
//! An expression is a polynomial with integer coefficients over *atoms*: symbols, and the operations that do not
//! distribute (floor division, remainder, minimum, maximum). Construction normalises, so equality is structural.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a polynomial is built over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// A symbol by its name.
    Symbol(Arc<str>),
    /// Division rounding toward negative infinity.
    FloorDiv(Box<Expr>, Box<Expr>),
    /// The remainder with the divisor's sign, as Python has it.
    Mod(Box<Expr>, Box<Expr>),
    /// The smaller of two.
    Min(Box<Expr>, Box<Expr>),
    /// The larger of two.
    Max(Box<Expr>, Box<Expr>),
}

/// A product of atoms with their powers, in the order of the atoms.
type Monomial = Vec<(Atom, u32)>;

/// An integer expression; see the module's text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Expr {
    terms: BTreeMap<Monomial, i64>,
}

impl Expr {
    /// A number.
    pub fn int(value: i64) -> Self {
        let mut terms = BTreeMap::new();
        if value != 0 {
            terms.insert(Vec::new(), value);
        }
        Self { terms }
    }

    /// A symbol.
    pub fn symbol(name: impl Into<Arc<str>>) -> Self {
        Self::atom(Atom::Symbol(name.into()))
    }

    fn atom(atom: Atom) -> Self {
        Self { terms: BTreeMap::from([(vec![(atom, 1)], 1)]) }
    }

    /// The number this is, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The symbol this is, if it is nothing but one.
    pub fn as_symbol(&self) -> Option<&str> {
        let (monomial, coefficient) = self.terms.iter().next()?;
        match (self.terms.len(), monomial.as_slice(), coefficient) {
            (1, [(Atom::Symbol(name), 1)], 1) => Some(name),
            _ => None,
        }
    }

    /// How much there is to look at: atoms, with what they are built over.
    pub fn weight(&self) -> usize {
        let of_atom = |(atom, _): &(Atom, u32)| match atom {
            Atom::Symbol(_) => 1,
            Atom::FloorDiv(left, right) | Atom::Mod(left, right) | Atom::Min(left, right) | Atom::Max(left, right) => {
                1 + left.weight() + right.weight()
            }
        };
        self.terms.keys().map(|monomial| 1 + monomial.iter().map(of_atom).sum::<usize>()).sum()
    }

    /// The sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        let mut terms = self.terms.clone();
        for (monomial, coefficient) in &other.terms {
            add_term(&mut terms, monomial.clone(), *coefficient);
        }
        Self { terms }
    }

    /// The negation.
    #[must_use]
    pub fn neg(&self) -> Self {
        Self { terms: self.terms.iter().map(|(m, c)| (m.clone(), c.wrapping_neg())).collect() }
    }

    /// The difference.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    /// The product.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        let mut terms = BTreeMap::new();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                add_term(&mut terms, multiply(left, right), a.wrapping_mul(*b));
            }
        }
        Self { terms }
    }

    /// Floor division. Exact where every coefficient is divisible by a number, or where the divisor is a factor.
    #[must_use]
    pub fn floor_div(&self, other: &Self) -> Self {
        if let (Some(a), Some(b)) = (self.as_int(), other.as_int()) {
            return if b == 0 {
                Self::atom(Atom::FloorDiv(self.clone().into(), other.clone().into()))
            } else {
                Self::int(floor_div(a, b))
            };
        }
        if let Some(quotient) = self.divide_exactly(other) {
            return quotient;
        }
        Self::atom(Atom::FloorDiv(self.clone().into(), other.clone().into()))
    }

    /// The remainder, zero where the division is exact.
    #[must_use]
    pub fn modulo(&self, other: &Self) -> Self {
        if let (Some(a), Some(b)) = (self.as_int(), other.as_int())
            && b != 0
        {
            return Self::int(a.wrapping_sub(floor_div(a, b).wrapping_mul(b)));
        }
        if self.divide_exactly(other).is_some() {
            return Self::int(0);
        }
        Self::atom(Atom::Mod(self.clone().into(), other.clone().into()))
    }

    /// The smaller of the two.
    #[must_use]
    pub fn minimum(&self, other: &Self) -> Self {
        self.extremum(other, i64::min, Atom::Min)
    }

    /// The larger of the two.
    #[must_use]
    pub fn maximum(&self, other: &Self) -> Self {
        self.extremum(other, i64::max, Atom::Max)
    }

    fn extremum(&self, other: &Self, pick: fn(i64, i64) -> i64, atom: fn(Box<Self>, Box<Self>) -> Atom) -> Self {
        if let Some(difference) = self.sub(other).as_int() {
            let keep_self = pick(difference, 0) == difference;
            return if keep_self { self.clone() } else { other.clone() };
        }
        let (first, second) = if self <= other { (self, other) } else { (other, self) };
        Self::atom(atom(first.clone().into(), second.clone().into()))
    }

    /// The quotient when the divisor is one term that divides each of ours without a remainder.
    fn divide_exactly(&self, divisor: &Self) -> Option<Self> {
        if divisor.terms.len() != 1 {
            return (self == divisor && !self.terms.is_empty()).then(|| Self::int(1));
        }
        let (monomial, coefficient) = divisor.terms.iter().next()?;
        let mut terms = BTreeMap::new();
        for (ours, c) in &self.terms {
            if c.checked_rem(*coefficient)? != 0 {
                return None;
            }
            add_term(&mut terms, divide(ours, monomial)?, c / coefficient);
        }
        Some(Self { terms })
    }

    /// The value under a binding of the symbols; `None` when one is unbound, on overflow and on division by zero.
    pub fn evaluate(&self, bind: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let mut total = 0i64;
        for (monomial, coefficient) in &self.terms {
            let mut product = *coefficient;
            for (atom, power) in monomial {
                product = product.checked_mul(atom.evaluate(bind)?.checked_pow(*power)?)?;
            }
            total = total.checked_add(product)?;
        }
        Some(total)
    }

    /// The smallest and largest value that symbols within the given ranges allow; `None` where it is unbounded or
    /// not known.
    pub fn bounds(&self, range: &dyn Fn(&str) -> (i64, Option<i64>)) -> (Option<i64>, Option<i64>) {
        let (mut low, mut high) = (Some(0i64), Some(0i64));
        for (monomial, coefficient) in &self.terms {
            let (mut a, mut b) = (Some(1i64), Some(1i64));
            for (atom, power) in monomial {
                let (atom_low, atom_high) = atom.bounds(range);
                // Only factors known to be non-negative keep the product's bounds simple.
                if atom_low.is_none_or(|v| v < 0) {
                    return (None, None);
                }
                for _ in 0..*power {
                    a = a.zip(atom_low).and_then(|(x, y)| x.checked_mul(y));
                    b = b.zip(atom_high).and_then(|(x, y)| x.checked_mul(y));
                }
            }
            let scaled = |v: Option<i64>| v.and_then(|v| v.checked_mul(*coefficient));
            let (term_low, term_high) = if *coefficient >= 0 { (scaled(a), scaled(b)) } else { (scaled(b), scaled(a)) };
            low = low.zip(term_low).and_then(|(x, y)| x.checked_add(y));
            high = high.zip(term_high).and_then(|(x, y)| x.checked_add(y));
        }
        (low, high)
    }

    /// Replaces symbols by expressions.
    #[must_use]
    pub fn substitute(&self, replace: &dyn Fn(&str) -> Option<Self>) -> Self {
        let mut total = Self::int(0);
        for (monomial, coefficient) in &self.terms {
            let mut product = Self::int(*coefficient);
            for (atom, power) in monomial {
                let value = atom.substitute(replace);
                for _ in 0..*power {
                    product = product.mul(&value);
                }
            }
            total = total.add(&product);
        }
        total
    }

    /// The names of all symbols in it, sorted, each once.
    pub fn symbols(&self) -> Vec<Arc<str>> {
        let mut found = Vec::new();
        self.collect_symbols(&mut found);
        found.sort();
        found.dedup();
        found
    }

    fn collect_symbols(&self, found: &mut Vec<Arc<str>>) {
        for (atom, _) in self.terms.keys().flatten() {
            match atom {
                Atom::Symbol(name) => found.push(name.clone()),
                Atom::FloorDiv(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                    a.collect_symbols(found);
                    b.collect_symbols(found);
                }
            }
        }
    }

    /// Reads what [`fmt::Display`] writes, and the spellings PyTorch uses in its dumps (`s0`, `2*s0`, `(s0//2)`,
    /// `s0**2`, `FloorDiv(a, b)`, `Mod(a, b)`, `Min(a, b)`, `Max(a, b)`).
    pub fn parse(text: &str) -> Result<Self, ParseExprError> {
        Parser { text, at: 0, depth: 0 }.whole()
    }
}

impl Atom {
    fn evaluate(&self, bind: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let both = |a: &Expr, b: &Expr| Some((a.evaluate(bind)?, b.evaluate(bind)?));
        match self {
            Self::Symbol(name) => bind(name),
            Self::FloorDiv(a, b) => both(a, b).filter(|(_, b)| *b != 0).map(|(a, b)| floor_div(a, b)),
            Self::Mod(a, b) => {
                both(a, b).filter(|(_, b)| *b != 0).map(|(a, b)| a.wrapping_sub(floor_div(a, b).wrapping_mul(b)))
            }
            Self::Min(a, b) => both(a, b).map(|(a, b)| a.min(b)),
            Self::Max(a, b) => both(a, b).map(|(a, b)| a.max(b)),
        }
    }

    fn bounds(&self, range: &dyn Fn(&str) -> (i64, Option<i64>)) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Symbol(name) => {
                let (low, high) = range(name);
                (Some(low), high)
            }
            Self::FloorDiv(a, b) => {
                let ((a_low, a_high), divisor) = (a.bounds(range), b.as_int());
                match divisor {
                    Some(d) if d > 0 => (a_low.map(|v| floor_div(v, d)), a_high.map(|v| floor_div(v, d))),
                    _ => (a_low.filter(|v| *v >= 0 && b.bounds(range).0.is_some_and(|b| b > 0)).map(|_| 0), None),
                }
            }
            Self::Mod(_, b) => match b.bounds(range) {
                (Some(low), high) if low > 0 => (Some(0), high.map(|v| v - 1)),
                _ => (None, None),
            },
            Self::Min(a, b) => {
                let ((a_low, a_high), (b_low, b_high)) = (a.bounds(range), b.bounds(range));
                (a_low.zip(b_low).map(|(x, y)| x.min(y)), a_high.into_iter().chain(b_high).min())
            }
            Self::Max(a, b) => {
                let ((a_low, a_high), (b_low, b_high)) = (a.bounds(range), b.bounds(range));
                (a_low.into_iter().chain(b_low).max(), a_high.zip(b_high).map(|(x, y)| x.max(y)))
            }
        }
    }

    fn substitute(&self, replace: &dyn Fn(&str) -> Option<Expr>) -> Expr {
        match self {
            Self::Symbol(name) => replace(name).unwrap_or_else(|| Expr::symbol(name.clone())),
            Self::FloorDiv(a, b) => a.substitute(replace).floor_div(&b.substitute(replace)),
            Self::Mod(a, b) => a.substitute(replace).modulo(&b.substitute(replace)),
            Self::Min(a, b) => a.substitute(replace).minimum(&b.substitute(replace)),
            Self::Max(a, b) => a.substitute(replace).maximum(&b.substitute(replace)),
        }
    }
}

fn floor_div(a: i64, b: i64) -> i64 {
    let quotient = a.wrapping_div(b);
    if (a.wrapping_rem(b) != 0) && ((a < 0) != (b < 0)) { quotient - 1 } else { quotient }
}

fn add_term(terms: &mut BTreeMap<Monomial, i64>, monomial: Monomial, coefficient: i64) {
    use std::collections::btree_map::Entry;
    match terms.entry(monomial) {
        Entry::Vacant(slot) => {
            if coefficient != 0 {
                slot.insert(coefficient);
            }
        }
        Entry::Occupied(mut slot) => {
            let sum = slot.get().wrapping_add(coefficient);
            if sum == 0 {
                slot.remove();
            } else {
                *slot.get_mut() = sum;
            }
        }
    }
}

fn multiply(left: &Monomial, right: &Monomial) -> Monomial {
    let mut powers: BTreeMap<Atom, u32> = left.iter().cloned().collect();
    for (atom, power) in right {
        *powers.entry(atom.clone()).or_default() += power;
    }
    powers.into_iter().collect()
}

fn divide(numerator: &Monomial, denominator: &Monomial) -> Option<Monomial> {
    let mut powers: BTreeMap<Atom, u32> = numerator.iter().cloned().collect();
    for (atom, power) in denominator {
        let left = powers.get_mut(atom)?;
        *left = left.checked_sub(*power)?;
    }
    Some(powers.into_iter().filter(|(_, power)| *power > 0).collect())
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol(name) => f.write_str(name),
            Self::FloorDiv(a, b) => write!(f, "(({a})//({b}))"),
            Self::Mod(a, b) => write!(f, "(({a})%({b}))"),
            Self::Min(a, b) => write!(f, "Min({a}, {b})"),
            Self::Max(a, b) => write!(f, "Max({a}, {b})"),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        // Symbols come before the constant term, as people write it.
        for (position, (monomial, coefficient)) in self.terms.iter().rev().enumerate() {
            match (position, *coefficient < 0) {
                (0, true) => f.write_str("-")?,
                (0, false) => {}
                (_, true) => f.write_str(" - ")?,
                (_, false) => f.write_str(" + ")?,
            }
            let magnitude = coefficient.unsigned_abs();
            if monomial.is_empty() || magnitude != 1 {
                write!(f, "{magnitude}")?;
                if !monomial.is_empty() {
                    f.write_str("*")?;
                }
            }
            for (index, (atom, power)) in monomial.iter().enumerate() {
                if index > 0 {
                    f.write_str("*")?;
                }
                write!(f, "{atom}")?;
                if *power > 1 {
                    write!(f, "**{power}")?;
                }
            }
        }
        Ok(())
    }
}

/// A text that is not a size expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseExprError {
    /// The byte at which reading stopped.
    pub at: usize,
    /// What was wanted there.
    pub wanted: &'static str,
}

impl fmt::Display for ParseExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {} of the size expression", self.wanted, self.at)
    }
}

impl std::error::Error for ParseExprError {}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

/// Deeper nesting than any program has; it keeps hostile text from exhausting the stack.
const MAX_DEPTH: u32 = 64;

impl Parser<'_> {
    fn whole(mut self) -> Result<Expr, ParseExprError> {
        let value = self.sum()?;
        if self.peek().is_some() { self.fail("the end") } else { Ok(value) }
    }

    fn fail<T>(&self, wanted: &'static str) -> Result<T, ParseExprError> {
        Err(ParseExprError { at: self.at, wanted })
    }

    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        self.peek();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn sum(&mut self) -> Result<Expr, ParseExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("less nesting");
        }
        let mut value = self.product()?;
        loop {
            if self.eat("+") {
                value = value.add(&self.product()?);
            } else if self.eat("-") {
                value = value.sub(&self.product()?);
            } else {
                self.depth -= 1;
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<Expr, ParseExprError> {
        let mut value = self.factor()?;
        loop {
            if self.eat("//") {
                value = value.floor_div(&self.factor()?);
            } else if self.eat("*") {
                value = value.mul(&self.factor()?);
            } else if self.eat("%") {
                value = value.modulo(&self.factor()?);
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<Expr, ParseExprError> {
        let mut negative = false;
        while self.eat("-") {
            negative = !negative;
        }
        let base = self.primary()?;
        let mut value = base.clone();
        if self.eat("**") {
            match self.primary()?.as_int() {
                Some(power @ 0..=16) => {
                    value = Expr::int(1);
                    for _ in 0..power {
                        value = value.mul(&base);
                    }
                }
                _ => return self.fail("a small power"),
            }
        }
        Ok(if negative { value.neg() } else { value })
    }

    fn primary(&mut self) -> Result<Expr, ParseExprError> {
        if self.eat("(") {
            let value = self.sum()?;
            return if self.eat(")") { Ok(value) } else { self.fail("`)`") };
        }
        let Some(first) = self.peek() else { return self.fail("a number or a name") };
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word = &rest[..length];
        if first.is_ascii_digit() {
            let Ok(number) = word.parse() else { return self.fail("a number that fits 64 bits") };
            self.at += length;
            return Ok(Expr::int(number));
        }
        if !(first.is_ascii_alphabetic() || first == '_') {
            return self.fail("a number or a name");
        }
        self.at += length;
        let combine: fn(&Expr, &Expr) -> Expr = match word {
            "FloorDiv" | "CleanDiv" => Expr::floor_div,
            "Mod" | "PythonMod" => Expr::modulo,
            "Min" => Expr::minimum,
            "Max" => Expr::maximum,
            name => return Ok(Expr::symbol(name)),
        };
        if !self.eat("(") {
            return self.fail("`(`");
        }
        let first = self.sum()?;
        if !self.eat(",") {
            return self.fail("`,`");
        }
        let second = self.sum()?;
        if self.eat(")") { Ok(combine(&first, &second)) } else { self.fail("`)`") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expr(text: &str) -> Expr {
        Expr::parse(text).unwrap()
    }

    #[test]
    fn equal_polynomials_are_structurally_equal() {
        assert_eq!(expr("(s0 + 1)*(s0 - 1)"), expr("s0**2 - 1"));
        assert_eq!(expr("s0*s1 - s1*s0").as_int(), Some(0));
    }

    #[test]
    fn an_exact_division_leaves_no_atom() {
        assert_eq!(expr("(4*s0*s1)//(2*s1)"), expr("2*s0"));
        assert_eq!(expr("(4*s0) % 4").as_int(), Some(0));
        assert_eq!(expr("(s0 + 1)//2").to_string(), "((s0 + 1)//(2))");
    }

    #[test]
    fn division_by_zero_stays_symbolic_and_has_no_value() {
        assert_eq!(expr("4//0").evaluate(&|_| None), None);
    }

    #[test]
    fn bad_texts_are_refused() {
        for text in ["", "s0 +", "(s0", "s0 s1", "99999999999999999999", "Min(s0)", "$"] {
            assert!(Expr::parse(text).is_err(), "{text}");
        }
        assert!(Expr::parse(&"(".repeat(100_000)).is_err());
    }

    fn arbitrary_text() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![(0i64..20).prop_map(|v| v.to_string()), "s[0-2]"];
        leaf.prop_recursive(4, 24, 2, |inner| {
            (inner.clone(), inner, 0..7usize).prop_map(|(a, b, op)| match op {
                0 => format!("({a} + {b})"),
                1 => format!("({a} - {b})"),
                2 => format!("({a} * {b})"),
                3 => format!("({a} // {b})"),
                4 => format!("({a} % {b})"),
                5 => format!("Min({a}, {b})"),
                _ => format!("Max({a}, {b})"),
            })
        })
    }

    proptest! {
        #[test]
        fn printing_and_reading_keeps_the_expression(text in arbitrary_text()) {
            let value = expr(&text);
            prop_assert_eq!(Expr::parse(&value.to_string()).unwrap(), value);
        }

        #[test]
        fn bounds_hold_for_every_binding(text in arbitrary_text(), s in prop::array::uniform3(2i64..9)) {
            let value = expr(&text);
            let bind = |name: &str| name[1..].parse::<usize>().ok().map(|i| s[i]);
            if let Some(actual) = value.evaluate(&bind) {
                let (low, high) = value.bounds(&|_| (2, Some(8)));
                prop_assert!(low.is_none_or(|low| low <= actual));
                prop_assert!(high.is_none_or(|high| actual <= high));
            }
        }
    }
}
