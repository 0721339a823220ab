//! CPython bytecode to graphs.
//!
//! ```text
//! code object ──decode──▶ instructions ──eval──▶ plan: guards · graph · recipes · effects · end
//!                                                                                  └─resume──▶ code that goes on
//! ```
//!
//! [`capture`] evaluates a frame symbolically, following calls into the user's functions, and leaves a [`Plan`]: what
//! was assumed ([`Guard`]), the graph of the tensors' computation, how to make what Python needs afterwards
//! ([`plan::Recipe`], [`plan::Effect`]) and how the frame ends. Where something cannot be captured the plan ends early and
//! the frame goes on in a function that [`resume`] makes from the original code.
//!
//! Nothing here knows CPython's objects: they are reached through [`Host`] and, where another call may find them changed,
//! through [`World`].

#![allow(clippy::single_match_else, reason = "a value, or what is raised instead, reads best as two arms")]
#![allow(clippy::unused_self, reason = "what makes values is asked of the evaluator, whether or not it looks at it")]

pub mod assemble;
pub mod code;
mod eval;
pub mod host;
mod liveness;
pub mod opcode;
pub mod plan;
pub mod resume;
pub mod source;
mod value;

pub use code::Code;
pub use eval::{Entry, Settings, Skipped, capture};
pub use host::{Host, Object, World};
pub use plan::Plan;
pub use source::{Check, Guard, Order, Source};
