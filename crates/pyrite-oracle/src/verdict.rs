//! What an oracle says.

use serde::{Deserialize, Serialize};

use crate::Signature;

/// The answer of an oracle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The program does what it should.
    Pass,
    /// It differs from the reference by no more than rounding explains.
    Noise,
    /// It fails.
    Fail(Signature),
    /// It fails in some of the runs.
    Flaky {
        /// In how many runs it failed.
        failed: u32,
        /// How many runs there were.
        runs: u32,
        /// How.
        signature: Signature,
    },
    /// It is not a program, or the reference fails too: the question has no answer.
    Invalid(String),
}

impl Verdict {
    /// The signature of a failure.
    pub fn signature(&self) -> Option<&Signature> {
        match self {
            Self::Fail(signature) | Self::Flaky { signature, .. } => Some(signature),
            Self::Pass | Self::Noise | Self::Invalid(_) => None,
        }
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Noise => "noise",
            Self::Fail(_) => "fail",
            Self::Flaky { .. } => "flaky",
            Self::Invalid(_) => "invalid",
        }
    }
}

/// Answers one question about candidates. Several threads may ask at once.
pub trait Oracle<C>: Sync {
    /// What becomes of a candidate.
    fn judge(&self, candidate: &C) -> Verdict;
}

impl<C, F: Fn(&C) -> Verdict + Sync> Oracle<C> for F {
    fn judge(&self, candidate: &C) -> Verdict {
        self(candidate)
    }
}
