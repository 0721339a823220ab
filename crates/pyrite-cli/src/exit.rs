//! Exit codes as numbers that a caller can look at.

/// An exit code; the library's doc says what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(u8);

impl ExitCode {
    /// Fine.
    pub const SUCCESS: Self = Self(0);
    /// A failure was reproduced, or a difference found.
    pub const FAILURE: Self = Self(1);

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl From<u8> for ExitCode {
    fn from(number: u8) -> Self {
        Self(number)
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.0)
    }
}
