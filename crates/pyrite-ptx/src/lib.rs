//! Kernels of the loop IR as PTX for NVIDIA GPUs, and an interpreter of the PTX that is emitted.
//!
//! ```text
//! Kernel ──functions written out──▶ Kernel ──compile──▶ Ptx: text, parameters ──launch──▶ grid, block, arguments
//!                                                         │
//!                                                         └─parse──▶ interp::Module ──run──▶ memory, or a trap
//! ```
//!
//! [`compile`] maps the rows and phases of a kernel to a grid ([`mapping`]) and writes text. Sizes, steps that are not known
//! and addresses are parameters, so one text serves all sizes. Arithmetic is rounded as IEEE 754 says (`fma.rn`, `div.rn`,
//! nothing approximate, subnormal numbers kept), and functions come from `pyrite-math`: what a kernel computes at a position
//! has the same bits as on the CPU. Reductions have a fixed tree that depends on sizes alone.
//!
//! [`interp`] reads the text with a parser of its own and runs it, lanes in lockstep; it knows nothing of kernels. It
//! finds accesses outside of the memory that a launch may touch, races and barriers that not all threads reach.

pub mod assemble;
mod atomics;
pub mod attention;
mod emit;
pub mod gemm;
pub mod interp;
pub mod mapping;
mod memory;
mod nest;
mod reduce;
mod scalar;
mod text;

pub use emit::{Arguments, FaultNote, Launch, Ptx, Unsupported, compile, module};
pub use mapping::keeps_rows;
