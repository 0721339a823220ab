//! Verdicts on disk, each as soon as it is known.
//!
//! A search is deterministic: the same start and the same verdicts lead to the same end. So a search that was interrupted
//! is taken up by searching again with the verdicts that are known. The file `verdicts.jsonl` says in its first line what
//! was asked, and in every further line the key of a candidate with its verdict and how long it took. A last line that was
//! torn by a crash is dropped.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pyrite_oracle::{Oracle, Verdict};
use pyrite_reduce::Candidate;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The file's name in a result folder.
const NAME: &str = "verdicts.jsonl";

/// Why verdicts cannot be kept or taken up.
#[derive(Debug, thiserror::Error)]
pub enum VerdictsError {
    /// The disk says no.
    #[error("{path} cannot be used: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// The search in the folder asked something else.
    #[error("{path} belongs to a search for another program, backend or setting")]
    Otherwise {
        /// The file.
        path: PathBuf,
    },
    /// A line in the middle is no verdict.
    #[error("line {line} of {path} is no verdict: {cause}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        cause: String,
    },
}

/// Which way of asking a verdict comes from: the same candidate may be asked about in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asking {
    /// By one run.
    Once,
    /// By one more run, of this number.
    Again(u32),
    /// By as many runs as a sequential test needs.
    Sequentially,
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    asking: Asking,
    verdict: Verdict,
    seconds: f64,
}

/// The verdicts of a search; see the module's text.
pub struct Verdicts {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: File,
    known: FxHashMap<(String, Asking), Verdict>,
    first: Option<Duration>,
    failed: Option<String>,
}

impl Verdicts {
    /// Whether a folder holds a search.
    pub fn are_in(folder: &Path) -> bool {
        folder.join(NAME).exists()
    }

    /// Begins in a folder that holds no search yet.
    pub fn begin(folder: &Path, asked: &Json) -> Result<Self, VerdictsError> {
        let path = folder.join(NAME);
        let fail = |e: std::io::Error| VerdictsError::Io { path: path.clone(), cause: e.to_string() };
        let mut file = OpenOptions::new().append(true).create_new(true).open(&path).map_err(fail)?;
        file.write_all(format!("{asked}\n").as_bytes()).map_err(fail)?;
        let state = State { file, known: FxHashMap::default(), first: None, failed: None };
        Ok(Self { path, state: Mutex::new(state) })
    }

    /// Takes up the search in a folder, which must have asked the same.
    pub fn resume(folder: &Path, asked: &Json) -> Result<Self, VerdictsError> {
        let path = folder.join(NAME);
        let fail = |e: std::io::Error| VerdictsError::Io { path: path.clone(), cause: e.to_string() };
        let text = std::fs::read(&path).map_err(fail)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(&text[..whole]).into_owned();
        let mut lines = text.lines().enumerate();
        let header = lines.next().and_then(|(_, line)| serde_json::from_str::<Json>(line).ok());
        if header.as_ref() != Some(asked) {
            return Err(VerdictsError::Otherwise { path });
        }
        let mut known = FxHashMap::default();
        let mut first = None;
        for (index, line) in lines {
            let line: Line = serde_json::from_str(line).map_err(|e| VerdictsError::Broken {
                path: path.clone(),
                line: index + 1,
                cause: e.to_string(),
            })?;
            first.get_or_insert(Duration::from_secs_f64(line.seconds.max(0.0)));
            known.insert((line.key, line.asking), line.verdict);
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(fail)?;
        file.set_len(whole as u64).map_err(fail)?;
        Ok(Self { path, state: Mutex::new(State { file, known, first, failed: None }) })
    }

    /// How long the first question took, if it was answered before.
    pub fn first(&self) -> Option<Duration> {
        self.lock().first
    }

    /// Keeps a verdict that is known already, with how long the question took.
    pub fn know(&self, candidate: &Candidate, asking: Asking, verdict: Verdict, took: Duration) {
        let line = Line { key: key_of(candidate), asking, verdict, seconds: took.as_secs_f64() };
        self.keep(&line);
        let mut state = self.lock();
        state.first.get_or_insert(took);
        state.known.insert((line.key, asking), line.verdict);
    }

    /// Why a verdict could not be written, if one could not.
    pub fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    /// An oracle that answers what is known and keeps what it learns from another.
    pub fn over<'a>(&'a self, oracle: &'a dyn Oracle<Candidate>, asking: Asking) -> Remembering<'a> {
        Remembering { verdicts: self, oracle, asking }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn keep(&self, line: &Line) {
        let mut state = self.lock();
        // One write for a line, so that lines of several threads do not mix and a crash tears the last one at most.
        let written = serde_json::to_string(line)
            .map_err(std::io::Error::from)
            .and_then(|text| state.file.write_all(format!("{text}\n").as_bytes()));
        if let Err(error) = written {
            state.failed.get_or_insert(format!("{}: {error}", self.path.display()));
        }
    }
}

fn key_of(candidate: &Candidate) -> String {
    candidate.key().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Answers what is known, asks for the rest; made by [`Verdicts::over`].
pub struct Remembering<'a> {
    verdicts: &'a Verdicts,
    oracle: &'a dyn Oracle<Candidate>,
    asking: Asking,
}

impl Oracle<Candidate> for Remembering<'_> {
    fn judge(&self, candidate: &Candidate) -> Verdict {
        let key = key_of(candidate);
        if let Some(verdict) = self.verdicts.lock().known.get(&(key.clone(), self.asking)) {
            return verdict.clone();
        }
        let start = Instant::now();
        let verdict = self.oracle.judge(candidate);
        let line = Line { key, asking: self.asking, verdict, seconds: start.elapsed().as_secs_f64() };
        self.verdicts.keep(&line);
        line.verdict
    }
}
