//! The public Rust API: a graph, its inputs, and the backends that run it.
//!
//! [`backends`] is the table of backends; each compiles a graph to an [`Executable`]. [`inputs`] turns what a repro file
//! says about its inputs into tensors.

pub mod backend;
pub mod inputs;

pub use backend::{Backend, Executable, Options, backends, find};
