//! Why an operator cannot be inferred or computed.

use pyrite_tensor::TensorError;

/// What went wrong with a call. The three kinds have different owners: the program, Pyrite's coverage, Pyrite's code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// The call is wrong; PyTorch refuses it too.
    #[error("{0}")]
    Invalid(String),
    /// The call is right, but Pyrite does not know how to do it.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A bug in Pyrite.
    #[error("internal: {0}")]
    Fault(String),
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
