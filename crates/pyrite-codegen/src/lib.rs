//! The native compiler.
//!
//! A kernel of the loop IR becomes [`Code`]: by the x86-64 emitter ([`x86`]) where the processor has AVX2 or AVX-512,
//! else, and as the oracle of its tests, by the tile interpreter ([`tiles`]).

pub mod code;
pub mod tiles;
pub mod x86;

pub use code::{Call, Code, Fault};
