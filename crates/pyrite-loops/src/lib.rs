//! The loop IR.
//!
//! What the native compiler lowers operators to. So far it holds the innermost part: the scalar expression that gives
//! one element of a result from the elements of its operands at the same place. Loop nests and memory dependencies
//! join it with the native compiler.

mod scalar;

pub use scalar::{Binary, Expr, Unary};
