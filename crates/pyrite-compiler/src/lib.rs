//! The public Rust API: a graph, its inputs, and the backends that run it.
//!
//! [`backends`](backend::backends()) lists the backends; each compiles a graph to an [`Executable`]. Most are made with
//! [`aot_autograd`], which takes a program through functionalization, differentiation, decomposition and partitioning.
//! [`training`] runs an executable forward and backward and collects what came out. [`inputs`] turns what a repro file
//! says about its inputs into tensors.

pub mod aot;
pub mod backend;
pub mod backends;
pub mod cache;
pub mod gpu;
pub mod inputs;
pub mod training;

pub use aot::{AotAutograd, aot_autograd};
pub use backend::{Backend, Executable, Options, find, register};
