//! Programs from files: PyTorch dumps and Pyrite's repros.

use std::path::{Path, PathBuf};

use pyrite_compiler::inputs;
use pyrite_diag::{Diagnostic, Diagnostics};
use pyrite_ir::Graph;
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, ReadOutcome, read_path};
use pyrite_tensor::Tensor;

use crate::Error;

/// A program that was read from a file, with its inputs; see [`read`].
pub struct ProgramFile {
    outcome: ReadOutcome,
    path: PathBuf,
}

/// Reads a program from a file, without executing anything in it.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("repro.py");
/// std::fs::write(&path, "
/// import torch
/// class Repro(torch.nn.Module):
///     def forward(self, x: 'f32[4]'):
///         return (torch.ops.aten.relu.default(x),)
/// ")?;
/// let file = pyrite::read(&path)?;
/// let program = pyrite::compile(file.graph(), "native")?;
/// let outputs = program.run(&file.inputs(0)?)?;
/// assert_eq!(outputs[0].shape(), [4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: &Path) -> Result<ProgramFile, Error> {
    let outcome = read_path(path, registry(), &ReadOptions::default()).map_err(Error::Read)?;
    Ok(ProgramFile { outcome, path: path.to_owned() })
}

/// Reads a program from its text.
///
/// ```
/// let graph = pyrite::read_text("
/// def forward(x: 'f32[4]'):
///     return (torch.ops.aten.neg.default(x),)
/// ")?;
/// assert!(graph.to_string().contains("aten.neg.default"));
/// # Ok::<(), pyrite::Error>(())
/// ```
pub fn read_text(text: &str) -> Result<Graph, Error> {
    let outcome = pyrite_reader::read_text(text, None, registry(), &ReadOptions::default()).map_err(Error::Read)?;
    Ok(outcome.graph)
}

impl ProgramFile {
    /// The program.
    pub fn graph(&self) -> &Graph {
        &self.outcome.graph
    }

    /// Warnings and notes about the file.
    ///
    /// ```
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("custom.py");
    /// std::fs::write(&path, "
    /// def forward(x: 'f32[4]'):
    ///     return (torch.ops.mylib.mine.default(x),)
    /// ")?;
    /// let file = pyrite::read(&path)?;
    /// assert!(file.notes().iter().any(|note| note.message.contains("mylib")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn notes(&self) -> &[Diagnostic] {
        &self.outcome.notes
    }

    /// The inputs that the file describes: from its storages, or generated from the seed if it has no data.
    pub fn inputs(&self, seed: u64) -> Result<Vec<Tensor>, Error> {
        let loaded = match &self.outcome.inputs {
            Some(spec) => inputs::load_from(spec, &self.outcome.storages, &self.path, seed),
            None => inputs::generate(&self.outcome.graph, &self.path, seed),
        };
        let loaded = loaded.map_err(|diagnostic| {
            let mut all = Diagnostics::new();
            all.push(diagnostic);
            Error::Read(all)
        })?;
        let tensors = loaded.values.into_iter().filter_map(|value| value.as_tensor().cloned());
        Ok(tensors.collect())
    }
}
