//! Exit codes as numbers that a caller can look at.

/// An exit code; [`CODES`] says what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(u8);

/// What each exit code means: the code, what it says of most commands, what it says of those that search (`minify`,
/// `bisect` and `debug FILE`), and what it says of `debug SCRIPT`.
pub const CODES: &[(u8, &str, &str, &str)] = &[
    (0, "fine", "done, and proven", "nothing was found"),
    (
        1,
        "the failure was reproduced, or a difference found",
        "nothing was reproduced, or what was seen is not proven",
        "a failure was found",
    ),
    (2, "bad usage or input, or torch, a backend or a command is missing", "the same", "the same"),
    (3, "a bug in Pyrite", "the same", "the same"),
    (130, "interrupted", "interrupted; the best result so far is on disk, and --resume continues", "interrupted"),
];

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
