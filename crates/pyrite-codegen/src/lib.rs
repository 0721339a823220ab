//! The native compiler.
//!
//! ```text
//! functional graph ──lower──▶ Schedule ──passes──▶ Schedule ──emit──▶ Plan ──▶ Program
//! ```
//!
//! A [`schedule`] is the program as statements over buffers: loop nests, GEMMs ([`gemm`]), fused bmms ([`bmm`]),
//! convolutions ([`conv`]) and calls. [`passes`] lists what is done to it, in order. A kernel becomes [`Code`] for a
//! [`target`]: by the x86-64 emitter ([`x86`]) where the processor has AVX2 or AVX-512, else, and as the oracle of its
//! tests, by the tile interpreter ([`tiles`]); or PTX for a GPU, which an interpreter runs here ([`ptx`]).
//! [`Program`] runs the statements; programs of loops alone also run on a GPU ([`gpu`]).

mod axes;
pub mod bmm;
mod bmm_run;
pub mod code;
mod code_map;
pub mod conv;
pub mod decisions;
mod emit;
mod fingerprint;
pub mod gemm;
pub mod gpu;
mod loops;
pub mod passes;
mod position;
pub mod program;
pub mod ptx;
mod rows;
pub mod schedule;
pub mod store;
pub mod target;
pub mod tiles;
#[cfg(target_arch = "x86_64")]
pub mod x86;

pub use code::{Call, Code, Fault};
pub use position::describe_running;
pub use program::{Prepared, Program};
pub use store::{CodeKey, CodeStore};
pub use target::{Generator, Target, generate};
