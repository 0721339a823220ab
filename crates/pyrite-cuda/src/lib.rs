//! The CUDA driver, without a toolkit: a table of functions that are found in `libcuda.so.1` when they are first wanted.
//!
//! ```text
//! Driver::get() ──device(0)──▶ Device ──context()──▶ Context ──module(ptx)──▶ Module ──function(name)──▶ Function
//!                                                       └──stream()──▶ Stream: launches, copies, memory, events
//! ```
//!
//! A machine without a GPU has no such library; one with an old driver lacks functions. Both are a [`CudaError`] with a
//! remedy, never a panic, and are found out by [`Driver::get`] alone. [`Driver::with`] takes the functions from elsewhere,
//! which is how tests run everything here without a GPU.
//!
//! Invariants:
//! - A context is the *primary* one of its device, which torch uses too, so pointers and streams of torch are good here.
//! - Work is ordered by streams; nothing here waits for the device unless its name says so.
//! - What is made is ended when it is dropped. Errors of ending are ignored: the process may be ending too.

mod context;
mod driver;
mod error;
mod module;
mod stream;
mod table;

pub use context::{Context, Pinned};
pub use driver::{Device, Driver};
pub use error::{CudaError, Result};
pub use module::{Function, Image, Module};
pub use stream::{Event, Grid, Memory, Stream};
pub use table::{FUNCTIONS, Handle, Lookup};
