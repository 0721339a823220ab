//! The native compiler.
//!
//! ```text
//! functional graph ──pieces──▶ kernels and calls ──schedule──▶ fused kernels ──generate──▶ code ──▶ Program
//! ```
//!
//! [`pieces`] lowers every operator to kernels of the loop IR, or leaves it a call. [`schedule`] fuses kernels
//! ([`fuse`]) and finishes them ([`finish`]). A kernel becomes [`Code`]: by the x86-64 emitter ([`x86`]) where the
//! processor has AVX2 or AVX-512, else, and as the oracle of its tests, by the tile interpreter ([`tiles`]).
//! [`Program`] runs the pieces.

mod axes;
pub mod code;
mod code_map;
mod finish;
mod fuse;
pub mod pieces;
pub mod program;
pub mod schedule;
pub mod tiles;
pub mod x86;

use pyrite_ir::OpError;
use pyrite_loops::{Kernel, verify};

pub use code::{Call, Code, Fault};
pub use program::Program;

/// Who makes code of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// The tile interpreter.
    Tiles,
}

impl Generator {
    /// The best for this processor.
    pub fn best() -> Self {
        Self::Tiles
    }
}

/// Makes code of a kernel.
pub fn generate(kernel: &Kernel, generator: Generator) -> Result<Box<dyn Code>, OpError> {
    if let Some(problem) = verify(kernel).first() {
        return Err(OpError::fault(format!("the kernel is wrong: {problem}\n{kernel}")));
    }
    match generator {
        Generator::Tiles => Ok(Box::new(tiles::compile(kernel))),
    }
}
