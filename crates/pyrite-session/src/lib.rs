//! The debugger as a library.
//!
//! A [`Session`] takes a program that fails through confirming, classifying, bisecting, analyzing, minifying, proving and
//! reporting; every step returns data, and [`Session::run`] does all of them. [`minify`](minify::minify),
//! [`bisect`](bisect::bisect) and [`analyze`](analyze::analyze) are the steps alone. [`Options`] is the one definition of
//! what they may be told. A [`Reporter`] hears what happens meanwhile; nothing in this crate prints.
//!
//! A session asks workers, which are processes of the same program: a [`Host`] says how they are started, where torch is
//! and how files are read.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use pyrite_session::{Host, Invocation, Options, Python, ReadOptions, Session, Silent};
//!
//! // The binary becomes a worker of its own sessions where it is asked to.
//! if let Some(code) = pyrite_session::worker::serve_if_asked() {
//!     std::process::exit(code.into());
//! }
//! let host = Host::new(Invocation::of_this_binary()?, Python::new(None), ReadOptions::default());
//! let options = Options { backend: Some("native".to_owned()), ..Options::default() };
//! let found = Session::open(&host, Path::new("repro.py"), options, &Silent)?.run()?;
//! println!("{}", found.outcome());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - nothing is printed, and no option is read from anywhere but [`Options`], [`Host`] and the file;
//! - a folder that holds another session is never written to;
//! - what is announced as proven was seen to fail as its reader would run it.

pub mod analyze;
pub mod backend;
pub mod bisect;
pub mod compilation;
pub mod dumps;
pub mod environment;
mod error;
pub mod execution;
pub mod folder;
mod host;
pub mod machine;
pub mod minify;
mod nan;
mod options;
pub mod outputs;
mod place;
mod program;
mod reporter;
pub mod results;
pub mod script;
mod session;
mod spread;
mod story;
mod target;
pub mod tracing;
pub mod worker;

pub use error::SessionError;
pub use host::{Host, Invocation};
pub use nan::{FirstNan, first_nan};
pub use options::{Autocast, Options};
pub use place::DevicePlacement;
pub use program::Program;
pub use pyrite_debug::torch::Python;
pub use pyrite_reader::{Devices, ReadOptions};
pub use pyrite_trace::event::Finding;
pub use reporter::{Reporter, Searching, Silent, Standing};
pub use session::{Confirmed, Debugged, Session};
pub use story::Story;
pub use target::Target;
