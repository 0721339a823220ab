//! Random numbers.
//!
//! Three generators with three purposes:
//! - [`TorchGenerator`] gives what PyTorch gives on the CPU after `torch.manual_seed(s)`, so that a program that
//!   draws numbers can be compared with PyTorch element by element. It is sequential.
//! - [`CounterGenerator`] is our own: stateless, any element can be computed alone and in any order.
//! - [`stream`] is the one that compiled programs draw from when they need not draw what PyTorch does: stateless too, and
//!   made for vectors.
//!
//! [`rand_strided`] makes the inputs that PyTorch's repro reader makes when the saved ones are missing.

mod box_muller;
mod counter;
mod distributions;
mod generator;
mod integers;
mod mt19937;
mod multinomial;
mod order;
mod state;
pub mod stream;
mod strided;

pub use counter::CounterGenerator;
pub use generator::{RandomError, TorchGenerator};
pub use multinomial::Replacement;
pub use state::STATE_BYTES;
pub use strided::rand_strided;
