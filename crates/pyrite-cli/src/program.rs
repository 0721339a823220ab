//! A program from a file: its graph, checked, and its inputs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pyrite_compiler::inputs::{self, Inputs};
use pyrite_diag::Diagnostics;
use pyrite_ir::verify::verify;
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, ReadOutcome, read_path};
use pyrite_reduce::Candidate;

use crate::failure::{Failure, tell};

/// A program that was read and verified.
pub struct Program {
    /// Where it was read from.
    pub path: PathBuf,
    /// What the file holds.
    pub read: ReadOutcome,
    /// How long reading took, inference included.
    pub read_time: Duration,
}

impl Program {
    /// Reads and verifies a file.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Self::open_timed(path, 1)
    }

    /// Reads a file several times, keeps the shortest time, and verifies it. The operators are loaded before.
    pub fn open_timed(path: &Path, repeat: u32) -> Result<Self, Failure> {
        let registry = registry();
        let mut read_time = Duration::MAX;
        let mut read_once = || {
            let start = Instant::now();
            let read = read_path(path, registry, &ReadOptions::default())
                .map_err(|diagnostics| Failure::Input { diagnostics, json: false })?;
            read_time = read_time.min(start.elapsed());
            Ok::<ReadOutcome, Failure>(read)
        };
        for _ in 1..repeat {
            read_once()?;
        }
        let read = read_once()?;
        let mut found = Diagnostics::new();
        for problem in verify(&read.graph, Some(path)) {
            found.push(problem);
        }
        if !found.is_empty() {
            return Err(Failure::Input { diagnostics: found, json: false });
        }
        Ok(Self { path: path.to_owned(), read, read_time })
    }

    /// Whether the graph comes from after PyTorch's own differentiation: what it returns is not differentiated again.
    pub fn is_differentiated(&self) -> bool {
        // Only PyTorch's dumps from after AOTAutograd say whether they are for inference.
        self.read.get("is_inference").is_some()
    }

    /// Says what the reader noticed.
    pub fn tell_notes(&self) {
        let mut notes = Diagnostics::new();
        for note in &self.read.notes {
            notes.push(note.clone());
        }
        tell(&notes);
    }

    /// The seed that was asked for, else the one that the file names, else 0.
    pub fn seed(&self, asked: Option<u64>) -> u64 {
        asked.or_else(|| self.read.get("seed")?.parse().ok()).unwrap_or_default()
    }

    /// The program with its inputs, and with what these say of placeholders that say nothing themselves.
    pub fn candidate(&self, asked: Option<u64>) -> Result<Candidate, Failure> {
        let inputs = self.inputs(asked)?.values;
        let mut graph = self.read.graph.clone();
        pyrite_compiler::inputs::describe(&mut graph, &inputs);
        Ok(Candidate { graph, inputs, seed: self.seed(asked) })
    }

    /// Its inputs: loaded, or generated from the seed where the file has no data.
    pub fn inputs(&self, asked: Option<u64>) -> Result<Inputs, Failure> {
        let seed = self.seed(asked);
        match &self.read.inputs {
            Some(spec) => inputs::load(spec, &self.path, seed),
            None => inputs::generate(&self.read.graph, &self.path, seed),
        }
        .map_err(Failure::of)
    }
}
