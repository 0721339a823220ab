//! The extension module `pyrite._native`: what the Python package `pyrite` is made of in Rust.
//!
//! [`graph`] shows graphs to Python. Everything here converts and hands on; what can be said without Python is said in
//! the crates below.

mod errors;
mod graph;

/// The Rust half of the package `pyrite`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::graph::{Graph, Node};

    /// The version of Pyrite.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
