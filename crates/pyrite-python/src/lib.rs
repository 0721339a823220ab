//! The extension module `pyrite._native`: what the Python package `pyrite` is made of in Rust.
//!
//! [`graph`] shows graphs to Python, [`program`] compiles and runs them, [`torch_interpreter`] lets torch run them, [`partitioned`]
//! both where only torch knows a function, [`gpu`] runs segments on GPUs, [`bridge`]
//! takes torch's tensors in and out, [`capture`] captures frames, [`debug_wrapper`] checks programs as they run, [`session`] debugs files and compares values, [`python_backend`] has
//! backends written in Python. Everything here converts and hands on; what can be said without Python is said in the
//! crates below.

mod bridge;
mod capture;
mod command;
mod crash;
mod debug_wrapper;
mod errors;
mod fx;
mod gpu;
mod gpu_attention;
mod gpu_kernels;
mod gpu_matmul;
mod graph;
mod modules;
mod options;
mod outcome;
mod partitioned;
mod places;
mod program;
mod python_backend;
mod session;
mod threads;
mod torch_interpreter;
mod trace;

/// The Rust half of the package `pyrite`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::bridge::Seen;
    #[pymodule_export]
    use crate::capture::{
        Captured, Compiler, allow_function, captures, copy_set, drop_guards, forget_captures, install, reassembled,
        set_layout, skip_code, skip_files,
    };
    #[pymodule_export]
    use crate::command::{debug_options, main, refused, unusable_folder};
    #[pymodule_export]
    use crate::crash::{CrashesIn, crashes_in};
    #[pymodule_export]
    use crate::debug_wrapper::{compile_debugged, import_for_torch};
    #[pymodule_export]
    use crate::errors::{AccuracyError, CompileError};
    #[pymodule_export]
    use crate::gpu::{GpuSegment, compile_gpu, extern_operators};
    #[pymodule_export]
    use crate::gpu_attention::GpuAttention;
    #[pymodule_export]
    use crate::gpu_matmul::GpuMatmul;
    #[pymodule_export]
    use crate::graph::{Graph, Node};
    #[pymodule_export]
    use crate::outcome::{Outcome, Tape};
    #[pymodule_export]
    use crate::partitioned::{MixedProgram, compile_mixed};
    #[pymodule_export]
    use crate::places::{Places, lie_apart};
    #[pymodule_export]
    use crate::program::{Program, backends, compile_graph, operators};
    #[pymodule_export]
    use crate::session::{compare_values, debug_session, report_page, session_options};
    #[pymodule_export]
    use crate::torch_interpreter::{TorchProgram, run_by_torch};
    #[pymodule_export]
    use crate::trace::{log_table, set_log_level, start_trace, stop_trace, unknown_log};

    /// The version of Pyrite.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
