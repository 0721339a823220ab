//! Scalar expressions over the elements of a pointwise operator's operands.

use std::fmt;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// Negation.
    Neg,
    /// The exponential function.
    Exp,
    /// The error function.
    Erf,
    /// The hyperbolic tangent.
    Tanh,
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
}

/// An expression for one element.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// The element of an operand, by the operand's position.
    Input(usize),
    /// A number.
    Const(f64),
    /// A function of one expression.
    Unary(Unary, Box<Expr>),
    /// A function of two expressions.
    Binary(Binary, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// A function of it.
    #[must_use]
    pub fn unary(self, op: Unary) -> Self {
        Self::Unary(op, Box::new(self))
    }

    /// Its value for the given elements, in double precision; `erf` is supplied by the caller.
    pub fn evaluate(&self, inputs: &[f64], erf: &dyn Fn(f64) -> f64) -> f64 {
        match self {
            Self::Input(index) => inputs[*index],
            Self::Const(value) => *value,
            Self::Unary(op, a) => {
                let a = a.evaluate(inputs, erf);
                match op {
                    Unary::Neg => -a,
                    Unary::Exp => a.exp(),
                    Unary::Erf => erf(a),
                    Unary::Tanh => a.tanh(),
                }
            }
            Self::Binary(op, a, b) => {
                let (a, b) = (a.evaluate(inputs, erf), b.evaluate(inputs, erf));
                match op {
                    Binary::Add => a + b,
                    Binary::Sub => a - b,
                    Binary::Mul => a * b,
                    Binary::Div => a / b,
                }
            }
        }
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl<T: Into<Expr>> std::ops::$trait<T> for Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                Expr::Binary(Binary::$trait, Box::new(self), Box::new(other.into()))
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

impl From<f64> for Expr {
    fn from(value: f64) -> Self {
        Self::Const(value)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(index) => write!(f, "in{index}"),
            Self::Const(value) => write!(f, "{value:?}"),
            Self::Unary(Unary::Neg, a) => write!(f, "-{a}"),
            Self::Unary(op, a) => write!(f, "{}({a})", format!("{op:?}").to_lowercase()),
            Self::Binary(op, a, b) => {
                let sign = match op {
                    Binary::Add => '+',
                    Binary::Sub => '-',
                    Binary::Mul => '*',
                    Binary::Div => '/',
                };
                write!(f, "({a} {sign} {b})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_evaluates_and_prints() {
        let e = (Expr::Input(0) * 2.0 + Expr::Input(1)).unary(Unary::Neg);
        assert_eq!(e.evaluate(&[3.0, 1.0], &|v| v), -7.0);
        assert_eq!(e.to_string(), "-((in0 * 2.0) + in1)");
    }
}
