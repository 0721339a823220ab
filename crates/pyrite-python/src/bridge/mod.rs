//! torch's tensors in and out, without copies.
//!
//! [`Inputs`] makes Pyrite's tensors over the memory of torch's: two that share a torch storage share a Pyrite storage,
//! which holds torch's, so that aliasing and writes are seen and memory outlives the tensor objects over it. [`Remembered`]
//! serves short calls, which need not hold anything. [`to_torch`] makes a torch tensor over a Pyrite storage, which lives
//! until torch lets it go, and which torch may resize. [`generator`] takes and gives back the state of torch's random generator.
//!
//! Only dense CPU tensors of torch's own classes come in. Others are refused with a `TypeError` that says why.

mod exchange;
mod generator;
mod inputs;
mod predicate;
mod remembered;
mod resizable;
mod shim;

pub use exchange::{Storages, to_torch};
pub use generator::with_torch_generator;
pub use inputs::{Inputs, Overlap};
pub use remembered::{Remembered, Seen};
pub use shim::{Located, Shim, dtype_of};
