//! The vocabulary of finding.
//!
//! An *oracle* answers one question about a candidate program: does it fail, and how? The answer is a [`Verdict`]; a
//! failure has a [`Signature`], which says what must stay the same while a program is reduced and what may change. A
//! search holds the signature it started with: [`Signature::holds`] decides whether a smaller program fails in the same
//! way, and everything that looks for failures depends on that decision alone. What fails only sometimes is judged by
//! [`Sequential`].

mod sequential;
mod signature;
mod verdict;

pub use sequential::{CONFIDENCE, Decision, Sequential, Test};
pub use signature::{Class, Detail, Signature, Site, Stage, gist, signal_name};
pub use verdict::{Oracle, Verdict};
