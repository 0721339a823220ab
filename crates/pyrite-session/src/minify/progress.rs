//! What a search keeps and tells while it goes on.

use std::time::Instant;

use pyrite_debug::{Folder, Verdicts};
use pyrite_oracle::{Signature, Verdict};
use pyrite_reduce::{Candidate, Progress, Size};
use pyrite_trace::event::MinifyStep;
use pyrite_trace::{Event, Topic};

use super::asked::Asked;
use crate::reporter::{Reporter, Searching};

/// Tells of progress, and writes every improvement down at once.
pub(super) struct Teller<'a> {
    reporter: &'a dyn Reporter,
    folder: &'a Folder,
    checkpoints: Option<Folder>,
    metadata: Vec<(String, String)>,
    queries: u64,
    failed: Option<String>,
    verdicts: &'a Verdicts,
    prover: Option<&'a Asked>,
    proving: bool,
    begun: Instant,
    pass: String,
    /// Nodes and elements of the best candidate.
    best: (usize, usize),
    /// Whether anything smaller than the start was found.
    improved: bool,
}

impl<'a> Teller<'a> {
    pub(super) fn new(
        folder: &'a Folder,
        metadata: Vec<(String, String)>,
        reporter: &'a dyn Reporter,
        prover: Option<&'a Asked>,
        verdicts: &'a Verdicts,
    ) -> Self {
        Self {
            folder,
            checkpoints: None,
            metadata,
            reporter,
            queries: 0,
            failed: None,
            verdicts,
            prover,
            proving: false,
            begun: Instant::now(),
            pass: "start".to_owned(),
            best: (0, 0),
            improved: false,
        }
    }

    /// With what the search starts from.
    pub(super) fn starting_from(self, start: &Candidate) -> Self {
        Self { best: (start.graph.len(), start.size().elements), ..self }
    }

    /// Keeps every improvement there, by its number of nodes.
    pub(super) fn keep_in(&mut self, checkpoints: Folder) {
        self.checkpoints = Some(checkpoints);
    }

    fn tell_trace(&self, verdict: &str, text: Option<String>) {
        pyrite_trace::emit(Topic::Debug, || {
            Event::Minify(MinifyStep {
                query: self.queries,
                seconds: self.begun.elapsed().as_secs_f64(),
                pass: self.pass.clone(),
                verdict: verdict.to_owned(),
                nodes: self.best.0,
                elements: self.best.1,
                text,
            })
        });
    }

    fn tell_progress(&self) {
        let best = self.improved.then_some(self.best);
        self.reporter.searching(&Searching { pass: &self.pass, queries: self.queries, best });
    }

    /// What could not be written, if something could not.
    pub(super) fn failed(&self) -> Option<String> {
        self.failed.clone().or_else(|| self.verdicts.failed())
    }

    pub(super) fn metadata_for(&self, signature: &Signature) -> Vec<(String, String)> {
        let mut metadata = self.metadata.clone();
        metadata.push(("signature".to_owned(), signature.to_string()));
        metadata
    }
}

impl Progress for Teller<'_> {
    fn judged(&mut self, queries: u64, verdict: &Verdict) {
        self.queries = queries;
        self.tell_trace(verdict.name(), None);
        self.tell_progress();
    }

    fn is_cancelled(&self) -> bool {
        self.failed().is_some() || self.reporter.is_cancelled()
    }

    fn began(&mut self, pass: &str) {
        pass.clone_into(&mut self.pass);
    }

    fn improved(&mut self, pass: &str, best: &Candidate, size: Size) {
        // From here on candidates are small, and a core is free for the worker that will prove the result.
        if !std::mem::replace(&mut self.proving, true)
            && let Some(prover) = self.prover
        {
            prover.prepare(1);
        }
        self.best = (best.graph.len(), size.elements);
        self.improved = true;
        pass.clone_into(&mut self.pass);
        self.tell_progress();
        match self.folder.write("repro.py", best, &self.metadata) {
            Ok(path) if pyrite_trace::wanted(Topic::Debug) => {
                self.tell_trace("fail", std::fs::read_to_string(path).ok());
            }
            Ok(_) => {}
            Err(error) => self.failed = Some(error.to_string()),
        }
        if let Some(checkpoints) = &self.checkpoints
            && let Err(error) = checkpoints.write(&format!("{}.py", best.graph.len()), best, &self.metadata)
        {
            self.failed = Some(error.to_string());
        }
    }
}
