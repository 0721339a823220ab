//! Eager execution.
//!
//! [`call`] runs one operator, [`Interpreter`] a graph. Modes observe or change a run: double precision, a check of
//! every call against its schema, a check of inference against computation, an observer per node.

pub mod call;
mod double;
pub mod run;

pub use call::{Context, call};
pub use double::in_double;
pub use run::{Interpreter, Mode, Observer};
