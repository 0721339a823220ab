//! Where a failure begins: the stage, the pass, the single step; and which settings make it vanish.

use std::time::{Duration, Instant};

use pyrite_debug::{Determinism, Effort, Folder, Found, Isolated, Limits, OTHER_TRITONS, Question};
use pyrite_oracle::Verdict;
use pyrite_reduce::Candidate;
use serde_json::json;

use crate::{Host, SessionError};

/// How long a bisection may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A single question; longer is a hang.
    pub question: Duration,
    /// All of them; after that nothing more is asked.
    pub search: Option<Duration>,
}

/// Finds where a failure begins, in workers; the verdict where the program does not fail.
pub fn bisect(
    host: &Host,
    candidate: &Candidate,
    question: &Question,
    culprits: usize,
    patience: Patience,
) -> Result<Result<Found, Verdict>, SessionError> {
    bisect_by(
        &host.workers(question, Limits { time: patience.question, memory: None })?,
        candidate,
        question,
        culprits,
        patience,
    )
}

/// The same with workers that are there already.
pub(crate) fn bisect_by(
    workers: &Isolated,
    candidate: &Candidate,
    question: &Question,
    culprits: usize,
    patience: Patience,
) -> Result<Result<Found, Verdict>, SessionError> {
    workers.set_limits(Limits { time: patience.question, ..workers.limits() });
    let scratch = tempfile::tempdir().map_err(SessionError::system("cannot create a folder for candidates"))?;
    let path = Folder::scratch(scratch.path())?.write("program.py", candidate, &[])?;
    let ask = |question: &Question| workers.judge_asked(&path, question);
    let begun = Instant::now();
    let over = || patience.search.is_some_and(|time| begun.elapsed() >= time);
    Ok(pyrite_debug::bisect(candidate, question, Effort { culprits, over: &over }, scratch.path(), &ask))
}

/// What was found, a sentence a line.
pub fn lines(found: &Found) -> Vec<String> {
    let mut lines = vec![format!("it begins with {} ({})", found.adds, found.backend)];
    lines.extend(found.part.as_ref().map(|part| format!("the guilty part: {part}")));
    lines.extend(found.culprits.iter().map(|step| format!("a guilty step: {step}")));
    for switch in &found.vanishes_with {
        lines.push(format!("it vanishes with {}, without {}", switch.setting, switch.what));
    }
    if found.elsewhere && found.versions.is_empty() && found.backend == "torch:inductor" {
        lines.push(format!(
            "no other version of Triton was tested: {OTHER_TRITONS} names folders with some, as `pip install --target FOLDER \
             triton==VERSION` makes them"
        ));
    }
    for (folder, verdict) in &found.versions {
        lines.push(match verdict {
            Verdict::Pass | Verdict::Noise => format!("it vanishes with Triton from {folder}"),
            Verdict::Invalid(why) => format!("Triton from {folder} does not work here: {why}"),
            Verdict::Fail(_) | Verdict::Flaky { .. } => format!("it stays with Triton from {folder}"),
        });
    }
    match found.determinism {
        Determinism::Same => lines.push("compiled twice, the code is the same".to_owned()),
        Determinism::Different => {
            lines.push("compiled twice, the code is another: the compiler is not deterministic".into());
        }
        Determinism::Unknown => {}
    }
    if !found.unasked.is_empty() {
        lines.push(format!("skipped (time budget): {}", found.unasked.join("; ")));
    }
    lines
}

/// What was found, as data.
pub fn data(found: &Found) -> serde_json::Value {
    json!({
        "backend": found.backend, "stage": found.adds, "queries": found.queries, "part": found.part,
        "culprits": found.culprits, "determinism": found.determinism, "unasked": found.unasked,
        "triton": found.versions.iter().map(|(folder, verdict)| json!({"folder": folder, "verdict": verdict.name()})).collect::<Vec<_>>(),
        "vanishes_with": found.vanishes_with.iter().map(|switch| switch.setting).collect::<Vec<_>>(),
    })
}
