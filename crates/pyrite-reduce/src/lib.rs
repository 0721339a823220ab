//! The minifier.
//!
//! A *candidate* is a program with its inputs. A pass proposes smaller candidates; the driver asks an oracle about them
//! and keeps the first that still fails in the way the search started with. Candidates have a total order
//! ([`Size`]), so "smaller" means one thing everywhere, and a pass never has to judge.
//!
//! Invariants:
//! - the result fails with the signature of the start, verifies, and is not larger than the start;
//! - the result is *1-minimal* for the passes named in the report: none of them proposes anything smaller that fails;
//! - the same start, oracle and options give the same result, whatever the number of jobs: proposals are judged side by
//!   side but accepted in their order;
//! - no candidate is judged twice.

mod candidate;
mod content;
mod driver;
mod passes;
mod rebuild;
mod regions;
mod saved;
mod settings;

pub use candidate::{Candidate, Size};
pub use content::{Content, drawn};
pub use driver::{Follow, NotReproduced, Options, Progress, Reduction, Silent, reduce};
pub use passes::{PASSES, Pass};
pub use saved::Keep;
pub use settings::necessary;
