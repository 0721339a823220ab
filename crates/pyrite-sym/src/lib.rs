//! Symbolic sizes.
//!
//! A tensor's size is either a number or an expression over symbols (`s0`, `2*s0 + 1`, `s0//4`). This crate holds
//! the expressions ([`Expr`], always in normal form), the sizes made from them ([`SymInt`]), and the record of what
//! had to be assumed about the symbols ([`SymEnv`], a list of [`Constraint`]s).
//!
//! Invariants:
//! - An [`Expr`] is a sum of monomials in a fixed order without zero coefficients, so two expressions that are equal
//!   as polynomials over their atoms are structurally equal.
//! - A [`SymInt`] that is a number is never stored as an expression.
//! - A comparison that the expressions alone do not decide is answered from the symbols' hints, and the answer is
//!   recorded as a constraint: replaying the program is valid for every binding that satisfies all constraints.

mod env;
mod expr;
mod int;

pub use env::{Constraint, Rel, SymEnv, Symbol};
pub use expr::{Atom, Expr, ParseExprError};
pub use int::SymInt;
