//! What a reduction came to.

use std::path::PathBuf;

use pyrite_debug::Shown;
use pyrite_oracle::{Signature, Verdict};
use serde_json::{Value as Json, json};

/// What a reduction came to.
#[derive(Clone, Debug)]
pub enum Reduced {
    /// The program fails, and this is what is left of it.
    Smaller(Box<Minified>),
    /// There is no failure to hold on to.
    Nothing {
        /// What was seen.
        verdict: Box<Verdict>,
        /// The same in words.
        reason: String,
    },
}

impl Reduced {
    /// Whether the written file was seen to fail as announced.
    pub fn is_proven(&self) -> bool {
        matches!(self, Self::Smaller(minified) if minified.proven)
    }

    /// As an object for programs.
    pub fn data(&self) -> Json {
        match self {
            Self::Smaller(minified) => minified.data(),
            Self::Nothing { verdict, reason } => {
                json!({"verdict": verdict.name(), "reason": reason, "proven": false})
            }
        }
    }
}

/// The smallest program that fails, and how it was found.
#[derive(Clone, Debug)]
pub struct Minified {
    /// How it fails.
    pub signature: Signature,
    /// Nodes of the program that came in, with placeholders and output.
    pub nodes_before: usize,
    /// Elements of all its inputs.
    pub elements_before: usize,
    /// Nodes that are left.
    pub nodes_after: usize,
    /// Inputs that are left.
    pub inputs_after: usize,
    /// Elements of all inputs that are left.
    pub elements_after: usize,
    /// How many candidates were judged.
    pub queries: u64,
    /// How long it took.
    pub seconds: f64,
    /// How sure each verdict is where the failure comes only sometimes.
    pub confidence: f64,
    /// How often the failure comes, where it does not always come.
    pub flaky: Option<Flaky>,
    /// Whether the written file was seen to fail as announced.
    pub proven: bool,
    /// What the written file says when plain PyTorch runs it, where that is the proof.
    pub shown: Option<Shown>,
    /// The backend, with the settings that the failure needs.
    pub backend: String,
    /// The passes that found nothing smaller.
    pub minimal_for: Vec<&'static str>,
    /// Whether numbers are left in it that came with the program.
    pub user_data: bool,
    /// Where its numbers come from.
    pub data: String,
    /// Other failures that were met on the way.
    pub others: Vec<Signature>,
    /// The file.
    pub repro: PathBuf,
    /// The program, without its inputs.
    pub program: String,
}

impl Minified {
    /// With which probability at least all verdicts of the search are right: their errors add up at worst.
    pub fn confidence_of_all(&self) -> f64 {
        (1.0 - self.queries as f64 * (1.0 - self.confidence)).max(0.0)
    }

    /// What proves it, or that nothing does.
    pub fn proof(&self) -> String {
        match (&self.shown, self.proven) {
            (Some(shown), true) => format!("proven by plain PyTorch: {}", shown.line),
            (Some(shown), false) => {
                format!("NOT proven: seen only inside of Pyrite's worker; `{}`: {}", shown.command, shown.line)
            }
            (None, true) => "proven in a fresh process".to_owned(),
            (None, false) => "NOT proven: the written file did not fail so".to_owned(),
        }
    }

    /// As an object for programs.
    pub fn data(&self) -> Json {
        json!({
            "verdict": if self.flaky.is_some() { "flaky" } else { "fail" },
            "flaky": self.flaky.as_ref().map(|flaky| json!({
                "failed": flaky.failed, "runs": flaky.runs, "confidence": self.confidence,
                "confidence_of_all": self.confidence_of_all(),
                "proof": flaky.proof.map(|(failed, runs)| json!({"failed": failed, "runs": runs})),
            })),
            "nodes_before": self.nodes_before,
            "nodes_after": self.nodes_after,
            "inputs_after": self.inputs_after,
            "elements_before": self.elements_before,
            "elements_after": self.elements_after,
            "queries": self.queries,
            "seconds": self.seconds,
            "signature": self.signature,
            "proven": self.proven,
            "line": self.shown.as_ref().map(|shown| &shown.line),
            "command": self.shown.as_ref().map(|shown| &shown.command),
            "backend": self.backend,
            "minimal_for": self.minimal_for,
            "user_data": self.user_data,
            "data": self.data,
            "others": self.others.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "repro": self.repro,
        })
    }
}

/// How often a failure came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaky {
    /// In how many runs.
    pub failed: u32,
    /// Of how many.
    pub runs: u32,
    /// The same of the runs that prove the result.
    pub proof: Option<(u32, u32)>,
}

impl std::fmt::Display for Flaky {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} runs", self.failed, self.runs)
    }
}
