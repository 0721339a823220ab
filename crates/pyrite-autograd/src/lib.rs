//! Differentiation ahead of time.
//!
//! [`joint`](joint()) turns a functional graph into one graph that computes its outputs and, from the gradients of the
//! outputs (the *tangents*), the gradients of its inputs.

pub mod joint;

pub use joint::{Joint, joint, joint_of};
