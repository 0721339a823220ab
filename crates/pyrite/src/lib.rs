//! Pyrite as a Rust library: build, compile, run, compare and debug tensor programs.
//!
//! A program is a [`Graph`] of ATen operators. Build one with a [`GraphBuilder`], or read a PyTorch dump with [`read`].
//! [`compile`] prepares it for a backend: `native` compiles to machine code, `eager` interprets, and [`backends`] lists
//! the rest. [`compare`] decides whether two runs agree, by the whole contract: values, shapes, strides, dtypes,
//! aliasing and writes. [`debug`] finds the smallest program that a backend gets wrong.
//!
//! ```
//! use pyrite::{DType, GraphBuilder, Tensor};
//!
//! let mut builder = GraphBuilder::new();
//! let x = builder.input("x", DType::F32, &[2, 3]);
//! let positive = builder.call("aten.relu.default", &[x.into()])?;
//! let sum = builder.call("aten.sum.dim_IntList", &[positive.into(), vec![1_i64].into()])?;
//! let graph = builder.finish(&[sum]);
//!
//! let program = pyrite::compile(&graph, "native")?;
//! let x = Tensor::from_slice(&[-1.0_f32, 2.0, 3.0, 4.0, -5.0, 6.0], &[2, 3]);
//! let outputs = program.run(&[x])?;
//! assert_eq!(outputs[0].to_f32s(), [5.0, 10.0]);
//! # Ok::<(), pyrite::Error>(())
//! ```
//!
//! Reading a file executes nothing in it, and no Python is needed.

mod builder;
pub mod debug;
mod error;
mod file;
mod program;

pub use builder::{Argument, GraphBuilder, TensorRef};
pub use error::Error;
pub use file::{ProgramFile, read, read_text};
pub use program::{Compiler, Gradients, Program, backends, compare, compile};
pub use pyrite_compare::{Options as CompareOptions, Report};
pub use pyrite_compiler::Backend;
pub use pyrite_ir::Graph;
pub use pyrite_tensor::{DType, Tensor};
