//! The debugger: from a program that a backend gets wrong to the smallest program that fails in the same way.
//!
//! A [`Session`] confirms the failure, finds the stage that introduces it, minimizes the program, proves the result in a
//! fresh process and writes a report. [`Session::run`] does all of it; its result, [`Debugged`], is data.
//!
//! Candidates run in worker processes, so that a crash or a hang is a verdict. The workers are processes of the same
//! program: `main` begins with [`serve_if_asked`].
//!
//! ```standalone_crate
//! use pyrite::debug::{Host, Invocation, Options, Python, ReadOptions, Session, Silent, serve_if_asked};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     if let Some(code) = serve_if_asked() {
//!         std::process::exit(code.into());
//!     }
//!     let folder = tempfile::tempdir()?;
//!     let file = folder.path().join("model.py");
//!     std::fs::write(&file, "
//! def forward(x: 'f32[8]', y: 'f32[8]'):
//!     add = torch.ops.aten.add.Tensor(x, y)
//!     relu = torch.ops.aten.relu.default(add)
//!     return (torch.ops.aten.sin.default(relu),)
//! ")?;
//!     let options = Options {
//!         backend: Some("relu_accuracy_error_TESTING_ONLY".to_owned()),
//!         out: Some(folder.path().join("session")),
//!         ..Options::default()
//!     };
//!     let host = Host::new(Invocation::of_this_binary()?, Python::new(None), ReadOptions::default());
//!     let found = Session::open(&host, &file, options, &Silent)?.run()?;
//!     assert!(found.is_proven());
//!     assert!(found.minified.unwrap().program.contains("aten.relu.default"));
//!     Ok(())
//! }
//! ```

pub use pyrite_session::worker::serve_if_asked;
pub use pyrite_session::{
    Confirmed, Debugged, Finding, Host, Invocation, Options, Python, ReadOptions, Reporter, Session, SessionError,
    Silent,
};
