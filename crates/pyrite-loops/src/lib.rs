//! The loop IR: what operators become before they become machine code.
//!
//! A [`Kernel`] computes one or more buffers from others. It runs over *rows*, the axes that all of its parts share,
//! and for every row runs its *phases* in order. A phase has axes of its own, runs its scalar code for each of their
//! positions, and may reduce values over them; what it reduced is a number that later phases of the row can use.
//!
//! ```text
//! for each position of the rows            softmax:  rows [n]
//!     for each phase                                 phase [m]: r0 = max(x)
//!         for each position of its axes              phase [m]: e = exp(x - r0), r1 = sum(e)
//!             load, compute, store, reduce           phase [m]: store e / r1
//! ```
//!
//! A pointwise operator is a kernel of one phase without axes of its own; a reduction has one phase over what it
//! reduces and one that stores. Fusing two kernels is making their rows the same, and listing the phases of both.
//!
//! Memory is read and written through [`Access`]es: a buffer, an offset, and a step for every axis, all of them
//! symbolic. So views cost nothing, and a size that is not known yet is an argument of the compiled kernel.

mod c_like;
mod code;
mod kernel;
mod print;
mod verify;

pub use c_like::c_like;
pub use code::{Binary, Block, Compare, Inst, Number, Shift, Table, Type, Unary, Val, Write};
pub use kernel::{
    Access, AccessId, Axis, AxisId, BufferId, Direction, Kernel, Lanes, Phase, Reduce, Reduction, ResultId,
};
pub use print::{dependencies, index};
pub use verify::{Problem, verify};
