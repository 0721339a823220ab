//! Test tools.
//!
//! [`filetest`] runs the graph files under `filetests/`, [`random`] makes random well-typed graphs and says what must
//! hold for each, [`sampled`] makes graphs of operators' samples, [`fuzz`] throws damaged texts at the reader. Nothing outside of tests depends on this crate.

pub mod filetest;
pub mod fuzz;
pub mod random;
pub mod sampled;
pub mod writes;
