//! Differentiation ahead of time.
//!
//! [`joint`](joint()) turns a functional graph into one graph that computes its outputs and, from the gradients of the
//! outputs (the *tangents*), the gradients of its inputs. [`partition`] splits it into a forward and a backward graph and
//! chooses what the first keeps for the second.

pub mod joint;
pub mod partition;

pub use joint::{Joint, Read, joint, joint_of};
pub use partition::{MinCut, Partition, default_partition, min_cut_partition, unbound_symbols};
