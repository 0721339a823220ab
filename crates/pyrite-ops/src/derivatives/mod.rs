//! Derivative rules, a file per family of operators, named by the records in [`crate::ops`].
//!
//! A rule is a function `(emitter, pullback) -> gradients`; [`Pullback`](pyrite_ir::Pullback) says what it may rely on.
//! In short: return `(parameter, gradient)` pairs; broadcasting, casting and adding up are done by the caller; conjugate
//! the factors of products, so that complex arguments come out right (`e.conj` leaves real ones alone); a wanted
//! gradient that the rule does not have is refused with [`Pullback::refuse`](pyrite_ir::Pullback::refuse), never left
//! out; a result whose gradient is `None` contributes nothing. Use the call's results (`p.result(0)`) where that saves
//! work or memory in the backward pass. Rules look at metadata only, so they serve graphs, eager runs and symbolic
//! sizes alike.
//!
//! [`Calculus`] has the operators that rules are written with, and [`formula`] lets pointwise rules read like formulas.

pub mod activation;
pub mod activation_backward;
pub mod attention;
mod backward;
pub mod binary;
mod calculus;
pub mod convolution;
pub mod copy;
pub mod create;
pub mod distance;
pub mod embedding;
pub mod fft;
pub mod formula;
pub mod grid;
pub mod index;
pub mod join;
pub mod linalg;
pub mod loss;
mod macros;
pub mod matmul;
mod matrices;
pub mod norm;
pub mod pad;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod scatter;
pub mod softmax;
pub mod sort;
pub mod special;
pub mod statistics;
pub mod ternary;
pub mod unary;
pub mod upsample;
pub mod view;

pub use calculus::{Calculus, Keep};

use pyrite_ir::{Gradients, Handle, OpError};

/// What a rule returns.
type Rule = Result<Gradients, OpError>;

/// The gradient of the first argument alone.
fn first(grad: Handle) -> Rule {
    Ok(vec![(0, grad.into())])
}
