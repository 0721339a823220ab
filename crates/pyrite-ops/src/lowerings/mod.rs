//! How primitive operators become loops.
//!
//! A rule stands in the record of its operator; the functions are here, one file for each kind of loop. Operators that
//! have a decomposition are lowered through it. What a rule cannot express (complex numbers, integer division, masks as
//! indices) it refuses, and the call is made through the kernel.

pub mod copy;
pub mod create;
pub mod distance;
pub mod index;
pub mod pointwise;
pub mod pool;
pub mod reduce;
pub mod scan;
