//! An interpreter of the PTX that this crate emits: a third reading of a kernel, and its sanitizer.
//!
//! [`Module::parse`] reads the text ([`parse`]); [`Module::run`] runs a launch, block after block. The lanes of a warp go in
//! lockstep: of those that can run, the ones at the lowest instruction run it together, so that branches meet again where
//! the text goes on. What is wrong ends the run with a [`Trap`] that names the line:
//!
//! - an access outside of the memory that the launch was given, a write to what it may only read, an address that is not a
//!   multiple of what is moved;
//! - a race: two threads touch a place, one of them writes, and neither a barrier nor an atomic operation orders them, in
//!   shared memory or in global memory, within a block or between blocks;
//! - a barrier that some threads of the block never reach, or a shuffle from a lane that does not take part.

mod execute;
mod memory;
mod parse;
mod values;

pub use execute::Trap;
pub use memory::Region;
pub use parse::{Module, ParseError};
