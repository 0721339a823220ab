//! The error type.

use pyrite_diag::{Colour, Diagnostics, TextRenderer};
use pyrite_ir::{NodeError, OpError};

/// Why a program could not be built, read, compiled or run.
///
/// ```
/// let error = pyrite::read_text("def forward(x: 'f32[4]'):\n    return (torch.ops.aten.add.Tensor(x),)\n").err().unwrap();
/// assert!(matches!(error, pyrite::Error::Read(_)));
/// assert!(error.to_string().contains("other"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or text that cannot be read; each diagnostic has its line and a hint.
    #[error("{}", TextRenderer::new(Colour::Plain).render_all(.0))]
    Read(Diagnostics),
    /// An operator that the registry does not have.
    #[error("there is no operator `{name}`; write its full name, such as `aten.add.Tensor` (`pyrite ops` lists all)")]
    UnknownOperator {
        /// What was asked for.
        name: String,
    },
    /// Arguments that an operator does not take.
    #[error("`{op}` does not take these arguments: {cause}; its schema is `{schema}`")]
    Arguments {
        /// The operator.
        op: String,
        /// What is wrong.
        cause: String,
        /// What it takes.
        schema: String,
    },
    /// A backend that does not exist.
    #[error("there is no backend `{name}`; the backends are {}", known.join(", "))]
    UnknownBackend {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A node that cannot be compiled or run.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Inputs that the program does not take, or a result of another form than was asked for.
    #[error(transparent)]
    Operator(#[from] OpError),
}
