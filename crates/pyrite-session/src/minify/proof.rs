//! The file of a reduction: written with the settings that its failure needs, and run to see whether it fails as announced.
//!
//! The result for a backend of torch.compile is run by plain PyTorch, as its reader would run it; that for one of Pyrite's own
//! is judged by a worker that has seen nothing of the search.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pyrite_debug::{Claim, Folder, Question, Shown, show};
use pyrite_oracle::{Oracle as _, Signature, Verdict};
use pyrite_reduce::{Candidate, Content, Reduction, necessary};

use super::asked::Asked;
use super::minified::Flaky;
use super::{Minify, Saying};
use crate::{Options, SessionError};

/// What a search ended with, and who is asked about it.
pub(super) struct Ending<'a> {
    pub(super) minify: &'a Minify<'a>,
    pub(super) folder: &'a Folder,
    /// Who was asked in the search.
    pub(super) oracle: &'a Asked,
    pub(super) saying: &'a Saying<'a>,
    pub(super) reduction: &'a Reduction,
    pub(super) flaky: Option<&'a Flaky>,
}

/// What came of running the written file.
pub(super) struct Proof {
    pub(super) proven: bool,
    /// In how many of how many runs a fresh worker saw the failure, where it was asked several times.
    pub(super) times: Option<(u32, u32)>,
    /// What plain PyTorch made of the file.
    pub(super) shown: Option<Shown>,
}

impl Ending<'_> {
    /// Writes the file and what belongs beside it. The question that it answers names only the settings that its failure needs.
    pub(super) fn write(
        &self,
        question: Question,
        mut metadata: Vec<(String, String)>,
    ) -> Result<(PathBuf, Question), SessionError> {
        metadata.extend(self.flaky.map(|flaky| ("fails".to_owned(), flaky.to_string())));
        metadata.push(("data".to_owned(), data_in(&self.reduction.best)));
        let path = self.write_repro(&question, &metadata)?;
        let unwritten = |error| self.minify.unwritten("the result cannot be written", error);
        keep_beside(self.folder, self.reduction).map_err(unwritten)?;
        if self.flaky.is_some() {
            return Ok((path, question));
        }
        let question = with_necessary_settings(&question, &|asked| {
            let verdict = self.oracle.judge_path(&path, asked, &self.reduction.best);
            verdict.signature().is_some_and(|found| self.reduction.signature.holds(found))
        });
        let named = metadata.iter_mut().find(|(key, value)| key == "backend" && *value != question.backend);
        if let Some((_, backend)) = named {
            backend.clone_from(&question.backend);
            self.write_repro(&question, &metadata)?;
        }
        Ok((path, question))
    }

    fn write_repro(&self, question: &Question, metadata: &[(String, String)]) -> Result<PathBuf, SessionError> {
        let claim = Claim {
            imports: &self.minify.host.python.imports,
            signature: Some(&self.reduction.found),
            forward_only: question.forward_only,
            accuracy: question.accuracy,
            tolerance: question.switches.tolerance,
            time: self.time(),
            memory: self.oracle.limits().and_then(|limits| limits.memory),
            ..Claim::of(&question.backend)
        };
        self.folder
            .write_claiming("repro.py", &self.reduction.best, metadata, Some(&claim))
            .map_err(|error| self.minify.unwritten("the result cannot be written", error))
    }

    /// How long one run of the file may take.
    fn time(&self) -> Duration {
        self.oracle.limits().map_or(Options::FIRST, |limits| limits.time)
    }

    /// Runs the written file: by `prover`, where there is one, else by plain PyTorch.
    pub(super) fn prove(&self, path: &Path, question: &Question, prover: Option<&Asked>) -> Proof {
        let Some(prover) = prover else {
            let shown = shown_by_python(path, &self.reduction.found, self.time(), self.flaky);
            return Proof { proven: shown.proven, times: None, shown: Some(shown) };
        };
        let prove = |best: &Candidate| self.saying.heard(prover.judge_path(path, question, best));
        let verdict = match self.flaky {
            Some(flaky) => self.minify.sequential(&prove, flaky, &self.reduction.signature).judge(&self.reduction.best),
            None => prove(&self.reduction.best),
        };
        let proven = verdict.signature().is_some_and(|found| self.reduction.signature.holds(found));
        Proof { proven, times: times(&verdict), shown: None }
    }
}

/// Where the numbers in a program come from.
pub(super) fn data_in(program: &Candidate) -> String {
    match program.content() {
        Content::Bits | Content::Small => "small whole numbers".to_owned(),
        Content::Generated => format!("generated from seed {}", program.seed),
        Content::Data => "from the program".to_owned(),
    }
}

/// The question with only those settings of the backend that the failure needs.
fn with_necessary_settings(question: &Question, fails: &dyn Fn(&Question) -> bool) -> Question {
    let Some((name, pairs)) = question.backend.split_once('?') else { return question.clone() };
    let with = |pairs: &[&str]| {
        let backend = if pairs.is_empty() { name.to_owned() } else { format!("{name}?{}", pairs.join("&")) };
        Question { backend, ..question.clone() }
    };
    let pairs: Vec<&str> = pairs.split('&').filter(|pair| !pair.is_empty()).collect();
    with(&necessary(&pairs, &mut |some| fails(&with(some))))
}

/// In how many of how many runs a candidate failed, where it was run several times.
fn times(verdict: &Verdict) -> Option<(u32, u32)> {
    match verdict {
        Verdict::Flaky { failed, runs, .. } => Some((*failed, *runs)),
        _ => None,
    }
}

/// Runs the written file by plain PyTorch; what fails only sometimes is run until it does, for as long as that is likely.
fn shown_by_python(path: &Path, signature: &Signature, time: Duration, flaky: Option<&Flaky>) -> Shown {
    let Some(python) = pyrite_debug::torch::registered() else {
        let line = "there is no Python to run it with; name one with --python".to_owned();
        return Shown { proven: false, line, command: format!("python {}", path.display()) };
    };
    let runs = flaky.map_or(1, |flaky| (4 * flaky.runs / flaky.failed.max(1)).clamp(4, 20));
    let mut shown = show(path, &python, signature, time);
    for _ in 1..runs {
        if shown.proven {
            break;
        }
        shown = show(path, &python, signature, time);
    }
    shown
}

/// The passing neighbour, and other failures that were met.
fn keep_beside(folder: &Folder, reduction: &Reduction) -> Result<(), pyrite_debug::RepoError> {
    if let Some(passing) = &reduction.passing {
        let metadata = vec![("verdict".to_owned(), "pass".to_owned())];
        folder.write("passing.py", passing, &metadata)?;
    }
    for (number, (signature, candidate)) in reduction.others.iter().enumerate() {
        let other = Folder::open(&folder.path().join(format!("other-{}", number + 1)))?;
        other.write("repro.py", candidate, &[("signature".to_owned(), signature.to_string())])?;
    }
    Ok(())
}
