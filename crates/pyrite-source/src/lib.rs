//! Smaller Python sources.
//!
//! Some failures need a whole Python program: a guard that is missing, a side effect that is lost. No graph shows them,
//! so the program itself is reduced: [`reduce`] takes its text and a question, and finds a smaller text of which the
//! answer is still yes.
//!
//! Edits are made on the text, where the syntax tree says they may be made, so that what is left reads as its author wrote
//! it. There are five kinds, in [`edits`]: statements are removed, blocks take the place of the statement around them,
//! elements of lists are removed, expressions are replaced by a part of theirs or by a constant, and literals get smaller.
//!
//! Invariants:
//! - every text that is asked about is valid Python, and smaller by [`Size`] than the one before it;
//! - no text is asked about twice;
//! - the result is one-step minimal, unless time ran out: no single edit of it is still answered with yes.

pub mod edits;
mod search;

pub use edits::{Edit, Kind};
pub use search::{Options, Reduction, Size, reduce};
