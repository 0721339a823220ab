//! Why an operator cannot be inferred or computed.

use std::sync::Arc;

use pyrite_tensor::TensorError;

use crate::Origin;
use crate::graph::{Kind, Node};

/// What went wrong with a call. The kinds have different owners: the program, Pyrite's coverage, Pyrite's code, and
/// whoever is asked outside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// The call is wrong; PyTorch refuses it too.
    #[error("{0}")]
    Invalid(String),
    /// An index among the data is outside of what it points into; PyTorch refuses it too.
    #[error("{0}")]
    OutOfRange(String),
    /// The call is right, but Pyrite does not know how to do it.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A bug in Pyrite.
    #[error("internal: {0}")]
    Fault(String),
    /// Something outside of Pyrite failed: a compiler that is under test, a program that was asked.
    #[error("{message}")]
    Outside {
        /// The type of its error, or how it ended: `RuntimeError`, `signal 11`, `hang`.
        kind: String,
        /// Where it was raised.
        place: Option<String>,
        /// What it said.
        message: String,
        /// The stage it had come to: `compile`, `forward` or `backward`.
        stage: String,
    },
}

impl OpError {
    /// The call is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// The call is beyond what Pyrite does.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Pyrite has a bug.
    pub fn fault(message: impl Into<String>) -> Self {
        Self::Fault(message.into())
    }
}

impl From<TensorError> for OpError {
    fn from(error: TensorError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// What went wrong, and at which node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{error}", node.as_ref().map(|n| format!("node `{n}`{}: ", op.as_ref().map(|o| format!(" ({o})")).unwrap_or_default())).unwrap_or_default())]
pub struct NodeError {
    /// The node, if it was one.
    pub node: Option<String>,
    /// The operator it calls.
    pub op: Option<String>,
    /// Where the node stands in the text it was read from.
    pub span: Option<(u32, u32)>,
    /// The user's stack where it was captured.
    pub stack: Option<Arc<str>>,
    /// What went wrong.
    pub error: OpError,
}

impl NodeError {
    /// An error of a node.
    pub fn at(node: &Node, error: OpError) -> Self {
        let op = if let Kind::Call(target) = &node.kind { Some(target.name().to_owned()) } else { None };
        Self { op, ..Self::from_origin(&Origin::of(node), error) }
    }

    /// An error of something that came from a node of the user's program; it is called by the name it has there.
    pub fn from_origin(origin: &Origin, error: OpError) -> Self {
        Self {
            node: origin.original.as_ref().map(ToString::to_string),
            op: None,
            span: origin.span.map(|s| (s.line, s.column)),
            stack: origin.stack.clone(),
            error,
        }
    }

    /// The error of the operator of that name.
    #[must_use]
    pub fn of_op(self, op: &str) -> Self {
        Self { op: Some(op.to_owned()), ..self }
    }
}

impl From<OpError> for NodeError {
    fn from(error: OpError) -> Self {
        Self { node: None, op: None, span: None, stack: None, error }
    }
}

/// Returns an [`OpError::Invalid`] with a formatted message.
#[macro_export]
macro_rules! invalid {
    ($($arg:tt)*) => {
        return Err($crate::OpError::Invalid(format!($($arg)*)))
    };
}

/// Returns an [`OpError::Unsupported`] with a formatted message.
#[macro_export]
macro_rules! unsupported {
    ($($arg:tt)*) => {
        return Err($crate::OpError::Unsupported(format!($($arg)*)))
    };
}
