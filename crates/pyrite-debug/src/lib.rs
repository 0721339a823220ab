//! From a program that fails to a file that proves it.
//!
//! [`judge`](judge()) answers, in this process, how a backend does on a program compared with a reference. [`Isolated`]
//! asks the same question of worker processes with limits of time and memory, so that a crash, a hang or running out
//! of memory is a verdict and not the end; [`Command`] asks any program, which
//! [`command_backend`] makes a backend `cmd:PROGRAM`. [`torch`] makes the backends of torch.compile
//! backends of Pyrite. [`Folder`] writes programs down as repro files
//! with their storages, whole or not at all. [`wrap_compiler_debug`] makes a backend that leaves such files behind when it
//! fails, [`trust`] says what a file may choose by itself, and [`signals`] says which node was running when the process dies. [`bisect`](bisect()) finds the
//! stage, the pass and the single steps that a failure begins with.

mod assess;
mod bisection;
pub mod command_backend;
mod command_oracle;
mod freedom;
mod isolated;
mod judge;
mod perturb;
mod process;
mod proof;
pub mod protocol;
mod repro;
mod rounding;
mod running;
mod script;
pub mod signals;
mod switches;
mod timing;
pub mod torch;
mod tracing;
pub mod trust;
mod verdicts;
mod wrapper;

pub use assess::{Again, Assessment, Bound, assess, compared, signature_of};
pub use bisection::{Determinism, Effort, Found, OTHER_TRITONS, bisect};
pub use command_oracle::{Command, missing_program};
pub use freedom::excused;
pub use isolated::{Isolated, Limits};
pub use judge::{
    Broken, Judged, Question, Ran, Step, execute, execute_shared, fresh_inputs, judge, judge_backends, judge_file,
};
pub use process::{Heard, MOST_CROWDED, Process, asked, crowding};
pub use proof::{BUG, Ran as PlainRun, Shown, plain_command, run_plainly, show};
pub use pyrite_compare::Accuracy;
pub use repro::{Folder, RepoError, candidate_of};
pub use rounding::OtherRounding;
pub use script::{Claim, signal_name};
pub use switches::{Cloning, Fp64, Switches};
pub use timing::{Times, time_calls};
pub use tracing::Tracing;
pub use verdicts::{Asking, Remembering, Verdicts, VerdictsError};
pub use wrapper::{Level, ReproAfter, Shrinking, WrapConfig, wrap_compiler_debug};
