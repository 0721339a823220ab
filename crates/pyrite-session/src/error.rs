//! Why a step of a session has no result.

use std::io;

use pyrite_debug::RepoError;
use pyrite_diag::{Colour, Diagnostic, Diagnostics, TextRenderer};

use crate::Standing;

/// Why a step has no result. That a program does not fail is a result.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The input or an option is wrong; each diagnostic says what to do.
    #[error("{}", TextRenderer::new(Colour::Plain).render_all(.0).trim_end())]
    Input(Diagnostics),
    /// The system says no: a disk, a pipe, a process.
    #[error("{what}")]
    System {
        /// What could not be done, to what.
        what: String,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The reporter wanted the session to end.
    #[error("{}", .0.farewell())]
    Interrupted(Box<Standing>),
    /// A program could not be written down.
    #[error(transparent)]
    Unwritten(#[from] RepoError),
}

impl SessionError {
    /// One wrong thing.
    pub fn of(diagnostic: Diagnostic) -> Self {
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(diagnostic);
        Self::Input(diagnostics)
    }

    /// Something that the system refused.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self + Clone {
        let what = what.into();
        |cause| Self::System { what, cause }
    }
}
