//! From a program that fails to a file that proves it.
//!
//! [`judge`](judge()) answers, in this process, how a backend does on a program compared with a reference. [`Isolated`]
//! asks the same question of worker processes with limits of time and memory, so that a crash, a hang or running out
//! of memory is a verdict and not the end; [`Command`] asks any program. [`torch`] makes the backends of torch.compile
//! backends of Pyrite. [`Folder`] writes programs down as repro files
//! with their storages, whole or not at all.

mod command;
mod isolated;
mod judge;
mod process;
pub mod protocol;
mod repro;
pub mod torch;

pub use command::Command;
pub use isolated::{Isolated, Limits};
pub use judge::{
    Broken, Judged, Precision, Question, Ran, compared, execute, fresh_inputs, judge, judge_file, signature_of,
};
pub use repro::{Folder, RepoError, candidate_of};
