//! Finds the smallest program that still fails, and proves that it does.
//!
//! A failure is first taken to come every time. A start that passes is run again, and a result is: where a run disagrees,
//! the failure comes only sometimes, and the search begins anew with a sequential test for every candidate and for the
//! proof.
//!
//! The search hands its result to `proof.rs`, which writes the file and runs it.

mod asked;
mod minified;
mod progress;
mod proof;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyrite_compare::Accuracy;
use pyrite_debug::{Asking, Command, Folder, Isolated, Question, Verdicts, VerdictsError};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_oracle::{Oracle, Sequential, Signature, Test, Verdict};
use pyrite_reduce::{Candidate, Content, Follow, NotReproduced, Reduction, reduce};
use pyrite_trace::Stage;
use serde_json::json;

use crate::backend::{check_command, missing};
use crate::folder;
use crate::machine;
use crate::program::Program;
use crate::reporter::{Reporter, Standing};
use crate::tracing::{self, Traced};
use crate::{Host, Options, SessionError};
use asked::{Asked, Timed};
pub use minified::{Flaky, Minified, Reduced};
use progress::Teller;
use proof::{Ending, Proof, data_in};

/// Reduces a file's program and proves the result.
pub fn minify(host: &Host, file: &Path, options: &Options, reporter: &dyn Reporter) -> Result<Reduced, SessionError> {
    if let Some(out) = &options.out {
        folder::check_unused(out)?;
    }
    let program = Program::open_for(host, file, options)?;
    let question = program.question(options, options.backend.as_deref().unwrap_or_default())?;
    let start = program.candidate(options.seed)?;
    Minify { host, file, options, reporter, workers: None, known: None }.run(question, &start)
}

/// Whether a folder holds nothing, or is not there yet.
fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(!folder.exists(), |mut entries| entries.next().is_none())
}

/// A reduction.
pub(crate) struct Minify<'a> {
    pub(crate) host: &'a Host,
    /// The file that the program came from.
    pub(crate) file: &'a Path,
    pub(crate) options: &'a Options,
    pub(crate) reporter: &'a dyn Reporter,
    /// Workers that are there already.
    pub(crate) workers: Option<Arc<Isolated>>,
    /// What is known of the program already, and how long that took.
    pub(crate) known: Option<(Verdict, Duration)>,
}

impl Minify<'_> {
    /// Reduces a program and proves the result.
    pub(crate) fn run(&self, question: Question, start: &Candidate) -> Result<Reduced, SessionError> {
        let begun = Instant::now();
        let oracle = self.oracle(&question, self.workers.clone())?;
        oracle.prepare(self.options.jobs as usize);
        let (folder, _trace, verdicts) = self.begin(&question, start)?;
        let _stage = pyrite_trace::stage(Stage::Debug);
        if let Some(took) = verdicts.first() {
            oracle.learn(took, &Verdict::Pass);
        } else if let Some((verdict, took)) = &self.known {
            verdicts.know(start, Asking::Once, verdict.clone(), *took);
            oracle.learn(*took, verdict);
        }
        // The written file is judged at the end by a worker that has seen nothing of the search. It gets ready meanwhile.
        let by_python = question.backend.starts_with("torch:");
        let prover = if by_python { None } else { Some(self.oracle(&question, None)?) };
        let scratch = std::iter::once(oracle.scratch()).chain(prover.as_ref().map(Asked::scratch));
        let standing = Standing::Reducing {
            file: self.file.to_owned(),
            folder: folder.path().to_owned(),
            scratch: scratch.map(Path::to_owned).collect(),
        };
        self.reporter.standing(standing.clone());
        let mut teller = Teller::new(&folder, self.metadata(&question), self.reporter, prover.as_ref(), &verdicts)
            .starting_from(start);
        if self.options.checkpoints {
            let checkpoints = Folder::open(&folder.path().join("checkpoints"));
            teller.keep_in(checkpoints.map_err(|error| self.unwritten("checkpoints cannot be written", error))?);
        }
        let before = (start.size(), start.graph.len());
        let follow = match (question.accuracy, &self.options.check) {
            (Accuracy::Fp, None) => Follow::Floats,
            _ => Follow::Everything,
        };
        let saying = Saying { oracle: oracle.as_oracle(), text: self.options.check_str.as_deref() };
        let searched = self.search(start, follow, &saying, &verdicts, &mut teller);
        self.reporter.searched();
        if self.reporter.is_cancelled() {
            return Err(SessionError::Interrupted(Box::new(standing)));
        }
        if let Some(error) = teller.failed() {
            return Err(self.unwritten("the result cannot be written", error));
        }
        if let Some(error) = oracle.failed() {
            return Err(self.unwritten("candidates cannot be written", error));
        }
        let (reduction, flaky) = match searched {
            Ok(found) => found,
            Err(NotReproduced(verdict)) => return self.nothing_to_shrink(&folder, verdict),
        };
        let ending = Ending {
            minify: self,
            folder: &folder,
            oracle: &oracle,
            saying: &saying,
            reduction: &reduction,
            flaky: flaky.as_ref(),
        };
        let (path, question) = ending.write(question, teller.metadata_for(&reduction.found))?;
        let Proof { proven, times, shown } = ending.prove(&path, &question, prover.as_ref());
        tracing::tell_repro(&path, &reduction.found.to_string(), proven);
        Ok(Reduced::Smaller(Box::new(Minified {
            nodes_before: before.1,
            elements_before: before.0.elements,
            nodes_after: reduction.best.graph.len(),
            elements_after: reduction.best.size().elements,
            inputs_after: reduction.best.size().inputs,
            queries: reduction.queries,
            seconds: begun.elapsed().as_secs_f64(),
            confidence: self.options.confidence,
            flaky: flaky.map(|flaky| Flaky { proof: times, ..flaky }),
            proven,
            shown,
            backend: question.backend,
            minimal_for: reduction.minimal_for,
            user_data: reduction.best.content() == Content::Data,
            data: data_in(&reduction.best),
            others: reduction.others.iter().map(|(signature, _)| signature.clone()).collect(),
            program: print(&reduction.best.graph, &PrintOptions::default()).trim_end().to_owned(),
            signature: reduction.found,
            repro: path,
        })))
    }

    /// The folder of the result, with a trace and the verdicts of the search in it. What cannot even begin, such as on a full disk,
    /// leaves nothing behind that looks like a search.
    fn begin(&self, question: &Question, start: &Candidate) -> Result<(Folder, Traced<'_>, Verdicts), SessionError> {
        let place = self.folder()?;
        let unused = is_empty(&place).then(|| place.clone());
        let clear = |error| {
            unused.as_deref().inspect(|place| drop(std::fs::remove_dir_all(place)));
            error
        };
        let folder =
            Folder::open(&place).map_err(|error| clear(self.unwritten("the result cannot be written", error)))?;
        let trace = tracing::begin(folder.path(), self.reporter);
        match self.verdicts(&folder, question, start) {
            Ok(verdicts) => Ok((folder, trace, verdicts)),
            Err(error) => {
                drop(trace);
                Err(clear(error))
            }
        }
    }

    /// Searches as if the failure came every time, and where it turns out not to, searches again with a test for every
    /// candidate.
    fn search(
        &self,
        start: &Candidate,
        follow: Follow,
        oracle: &dyn Oracle<Candidate>,
        verdicts: &Verdicts,
        teller: &mut Teller<'_>,
    ) -> Result<(Reduction, Option<Flaky>), NotReproduced> {
        let runs = self.options.trials;
        let options = pyrite_reduce::Options {
            jobs: self.options.jobs as usize,
            time_budget: self.options.budget(),
            max_queries: None,
            follow,
            keep: self.options.keep(),
            max_granularity: self.options.max_granularity,
        };
        let again = |candidate: &Candidate| -> Vec<Verdict> {
            let numbers: Vec<u32> = (2..=runs).collect();
            let ask = |n: u32| verdicts.over(oracle, Asking::Again(n)).judge(candidate);
            let side_by_side = |batch: &[u32]| {
                std::thread::scope(|scope| {
                    let asked: Vec<_> = batch.iter().map(|n| scope.spawn(move || ask(*n))).collect();
                    let panicked = |_| Verdict::Invalid("the oracle panicked".to_owned());
                    asked.into_iter().map(|asked| asked.join().unwrap_or_else(panicked)).collect::<Vec<_>>()
                })
            };
            numbers.chunks(options.jobs).flat_map(side_by_side).collect()
        };
        let once = verdicts.over(oracle, Asking::Once);
        let (flaky, held) = match reduce(start.clone(), &once, options, teller) {
            Err(NotReproduced(verdict @ Verdict::Invalid(_))) => return Err(NotReproduced(verdict)),
            Err(NotReproduced(verdict)) => {
                let more = again(start);
                let failures: Vec<&Signature> = more.iter().filter_map(Verdict::signature).collect();
                let Some(first) = failures.first() else { return Err(NotReproduced(verdict)) };
                let failed = failures.iter().filter(|found| first.holds(found)).count() as u32;
                (Flaky { failed, runs, proof: None }, (*first).clone())
            }
            Ok(found) => {
                let more = again(&found.best);
                let held = |v: &&Verdict| v.signature().is_some_and(|other| found.signature.holds(other));
                let failed = 1 + more.iter().filter(held).count() as u32;
                if failed == runs || more.iter().any(|v| matches!(v, Verdict::Invalid(_))) {
                    return Ok((found, None));
                }
                (Flaky { failed, runs, proof: None }, found.signature)
            }
        };
        self.reporter.note(&format!("it fails only sometimes: {flaky}; every candidate is now run many times"));
        let sequential = self.sequential(oracle, &flaky, &held);
        let sequential = verdicts.over(&sequential, Asking::Sequentially);
        reduce(start.clone(), &sequential, options, teller).map(|found| (found, Some(flaky)))
    }

    fn sequential<'a>(
        &self,
        oracle: &'a dyn Oracle<Candidate>,
        flaky: &Flaky,
        held: &Signature,
    ) -> Sequential<'a, Candidate> {
        let test = Test::of(flaky.failed, flaky.runs, self.options.confidence);
        Sequential { oracle, test, held: held.clone() }
    }

    /// The verdicts of this search in its folder: fresh ones, or those of the search that is resumed.
    fn verdicts(&self, folder: &Folder, question: &Question, start: &Candidate) -> Result<Verdicts, SessionError> {
        let key: String = start.key().iter().map(|byte| format!("{byte:02x}")).collect();
        let asked = json!({
            "pyrite": env!("CARGO_PKG_VERSION"), "program": key, "question": question,
            "check": self.options.check, "check_str": self.options.check_str, "runs": self.options.trials,
            "confidence": self.options.confidence,
        });
        let verdicts = match &self.options.resume {
            Some(_) => Verdicts::resume(folder.path(), &asked),
            None => Verdicts::begin(folder.path(), &asked),
        };
        verdicts.map_err(|error| {
            let hint = match error {
                VerdictsError::Otherwise { .. } => "resume with the same file and options, or search in a new folder",
                VerdictsError::Io { .. } => {
                    "name a folder that can be written, and that a search began in if it is resumed"
                }
                VerdictsError::Broken { .. } => "remove this line and those after it, or search in a new folder",
            };
            SessionError::of(
                Diagnostic::error(Code::new("minify::verdicts"), "cannot save the verdicts of the search")
                    .at(Location::in_file(self.file))
                    .cause(error.to_string())
                    .hint(hint),
            )
        })
    }

    /// Workers for a question, those that are given or new ones; or the command that is asked instead.
    fn oracle(&self, question: &Question, workers: Option<Arc<Isolated>>) -> Result<Asked, SessionError> {
        let unwritten = |error| self.failed("candidates cannot be written", error);
        if let Some(command) = &self.options.check {
            check_command(command)?;
            let asked = Command::new(command, self.options.time()).map_err(unwritten)?;
            return Ok(Asked::Command(Box::new(asked.supervised_by(self.host.supervisor()))));
        }
        let limits = self.options.limits();
        let isolated = match workers {
            Some(workers) => workers,
            None => Arc::new(self.host.workers(question, limits).map_err(unwritten)?),
        };
        let fixed = self.options.time_limit.map(Duration::from_secs_f64);
        Ok(Asked::Workers(Box::new(Timed::new(isolated, limits, fixed))))
    }

    /// The folder of the result: the one that is resumed, or one that holds no result yet.
    fn folder(&self) -> Result<PathBuf, SessionError> {
        if let Some(resumed) = &self.options.resume {
            if !Verdicts::are_in(resumed) {
                let cause = format!("there is no {}", resumed.join("verdicts.jsonl").display());
                return Err(self.failed("there is no search to resume", cause));
            }
            return Ok(resumed.clone());
        }
        match &self.options.out {
            Some(out) => Ok(out.clone()),
            None => folder::beside(self.file, self.options.beside.as_deref(), "minified"),
        }
    }

    fn metadata(&self, question: &Question) -> Vec<(String, String)> {
        let mut metadata = vec![("pyrite".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        if let Some(command) = &self.options.check {
            metadata.push(("check".to_owned(), command.clone()));
        } else {
            metadata.push(("backend".to_owned(), question.backend.clone()));
            metadata.push(("reference".to_owned(), question.reference.clone()));
        }
        if [&question.backend, &question.reference].iter().any(|name| name.starts_with("torch:")) {
            metadata.push(("torch".to_owned(), machine::torch_version(self.host)));
        }
        metadata.extend(self.host.python.imports.iter().map(|module| ("import".to_owned(), module.clone())));
        metadata.push(("seed".to_owned(), question.seed.to_string()));
        metadata
    }

    fn nothing_to_shrink(&self, folder: &Folder, verdict: Verdict) -> Result<Reduced, SessionError> {
        if self.options.out.is_none() && self.options.resume.is_none() {
            let _ = pyrite_trace::stop();
            let _ = std::fs::remove_dir_all(folder.path());
        }
        let reason = match &verdict {
            Verdict::Invalid(why) => match missing(why) {
                Some(problem) => return Err(SessionError::of(problem)),
                None => why.clone(),
            },
            Verdict::Noise => "the results differ by no more than rounding explains".to_owned(),
            _ => format!("the program does not fail in {} runs", self.options.trials),
        };
        Ok(Reduced::Nothing { verdict: Box::new(verdict), reason })
    }

    fn unwritten(&self, what: &str, cause: impl ToString) -> SessionError {
        SessionError::of(
            Diagnostic::error(Code::new("minify::unwritten"), what)
                .at(Location::in_file(self.file))
                .cause(cause.to_string())
                .hint("free disk space, or choose another folder with --out (and another TMPDIR); --resume continues from here"),
        )
    }

    fn failed(&self, what: &str, cause: impl ToString) -> SessionError {
        SessionError::of(
            Diagnostic::error(Code::new("minify::failed"), what)
                .at(Location::in_file(self.file))
                .cause(cause.to_string())
                .hint("name a folder for the result with --out, and one for candidates with TMPDIR"),
        )
    }
}

/// An oracle that hears only errors which say something.
struct Saying<'a> {
    oracle: &'a dyn Oracle<Candidate>,
    text: Option<&'a str>,
}

impl Saying<'_> {
    /// A verdict, or that all is fine where an error says something else.
    fn heard(&self, verdict: Verdict) -> Verdict {
        let said = |signature: &Signature, text| signature.detail.message.as_deref().is_some_and(|m| m.contains(text));
        match (verdict.signature(), self.text) {
            (Some(signature), Some(text)) if !said(signature, text) => Verdict::Pass,
            _ => verdict,
        }
    }
}

impl Oracle<Candidate> for Saying<'_> {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        self.heard(self.oracle.judge(candidate))
    }
}
