//! What a search tells while it goes on.

use indicatif::{ProgressBar, ProgressStyle};
use pyrite_debug::{Folder, Verdicts};
use pyrite_oracle::{Signature, Verdict};
use pyrite_reduce::{Candidate, Progress, Size};

use super::asked::Asked;

/// Shows progress, and writes every improvement down at once.
pub(super) struct Teller<'a> {
    folder: &'a Folder,
    metadata: Vec<(String, String)>,
    pub(super) bar: ProgressBar,
    queries: u64,
    failed: Option<String>,
    verdicts: &'a Verdicts,
    prover: &'a Asked,
    proving: bool,
}

impl<'a> Teller<'a> {
    pub(super) fn new(
        folder: &'a Folder,
        metadata: Vec<(String, String)>,
        bar: ProgressBar,
        prover: &'a Asked,
        verdicts: &'a Verdicts,
    ) -> Self {
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { folder, metadata, bar, queries: 0, failed: None, verdicts, prover, proving: false }
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
    fn judged(&mut self, queries: u64, _: &Verdict) {
        self.queries = queries;
        self.bar.tick();
    }

    fn is_cancelled(&self) -> bool {
        self.failed().is_some()
    }

    fn began(&mut self, pass: &str) {
        self.bar.set_prefix(pass.to_owned());
    }

    fn improved(&mut self, pass: &str, best: &Candidate, size: Size) {
        // From here on candidates are small, and a core is free for the worker that will prove the result.
        if !std::mem::replace(&mut self.proving, true) {
            self.prover.prepare(1);
        }
        self.bar
            .set_message(format!("{pass}: {} nodes, {} elements, {} queries", size.nodes, size.elements, self.queries));
        if let Err(error) = self.folder.write("repro.py", best, &self.metadata) {
            self.failed = Some(error.to_string());
        }
    }
}
