//! The operators.
//!
//! Each operator is one [`OpDef`](pyrite_ir::OpDef) in a table of its family under `ops/`; [`registry`] collects the
//! tables. To add an operator, write its record in the file of its family: the schema exactly as PyTorch has it, a
//! doc sentence, and one of
//!
//! - `OpDef::kernel(schema, doc, infer, eval)`: metadata rule and kernel. The kernel gets what was inferred and fills
//!   tensors of exactly that shape and stride ([`Call::allocate`](pyrite_ir::Call::allocate)).
//! - `OpDef::view(schema, doc, infer)`: the metadata rule is all there is; values are views of the argument.
//! - `OpDef::composite(schema, doc, decompose)`: a function that calls other operators. It serves to compute, to infer
//!   and to rewrite graphs, so it looks at metadata only.
//! - `OpDef::written(schema, doc, functional)`: in-place and out variants.
//!
//! followed by `.tags(..)`, `.derivative(..)`, `.decompose(..)`, `.lower(..)`, `.samples(..)` and what else differs from the
//! default. Derivative rules are in [`derivatives`], decompositions of operators that also have a kernel in
//! [`decompositions`], the loops that the native compiler makes of the others in `lowerings`. Rules for metadata that
//! several operators share are in [`rules`], the loops that kernels share in [`kernels`].
//!
//! Right means: close to PyTorch's eager result, or at least as close to the exact result. Kernels therefore compute in
//! `f64` unless speed matters; where it does, they have an `f32` path too.

pub mod decompositions;
pub mod derivatives;
pub mod kernels;
mod lowerings;
mod ops;
pub mod rules;
pub mod samples;

use std::sync::OnceLock;

use pyrite_ir::Registry;

/// All operators.
///
/// # Panics
/// When a record is malformed; a test makes sure that none is.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry::new(ops::TABLES).unwrap_or_else(|error| panic!("{error}")))
}
