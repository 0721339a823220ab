//! Rewrites of graphs.
//!
//! [`functionalize`](functionalize()) removes every write, [`decompose`](decompose()) expresses operators by simpler
//! ones, [`cleanup`] removes what is not needed. Each takes a graph and returns another: a pass traces the graph anew,
//! so that metadata and the origin of every node come out right by construction. Optional rewrites ask a [`Gate`]
//! first, which numbers them and can be told to stop: what is numbered can be bisected. [`mod@partition`] cuts a graph around
//! calls that no backend knows; [`calling`] says what a compiled graph's caller has to know.

pub mod autocast;
pub mod calling;
pub mod cleanup;
pub mod decompose;
pub mod functionalize;
pub mod gate;
pub mod partition;
pub mod replay;

pub use decompose::{Random, Table, decompose};
pub use functionalize::{Functional, functionalize};
pub use gate::Gate;
