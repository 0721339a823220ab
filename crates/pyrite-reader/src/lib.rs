//! Text to graph.
//!
//! Reads what PyTorch writes (`repro.py`, `minifier_launcher.py`, `fx_graph_runnable.py`, `fx_graph_readable.py`,
//! `gm.print_readable()`, `gm.code`) and what Pyrite prints, and executes none of it: the text is parsed as Python, and
//! the few forms that such files consist of are understood; everything else is a diagnostic. Programs of
//! `torch.export` (`.pt2`) are read through the same text.
//!
//! Calls are bound to the operators of a [`Registry`]: `torch.ops.aten…` by name, what Dynamo captured
//! (`torch.relu(x)`, `x.sum(-1)`, `a @ b`) by [`bind`], by schema. What the registry does not know becomes an opaque
//! call and survives a round trip. Metadata is inferred on the way.
//!
//! Invariants:
//! - no input makes the reader panic or run anything; nesting and size are bounded;
//! - an error names the file, the line, what was wrong and what to do; up to twenty are collected;
//! - every node knows the line it was read from.

mod annotation;
mod bind;
mod calls;
mod constant;
mod exported;
mod expr;
mod forward;
mod index;
mod inline;
mod literal;
mod load_args;
mod member;
mod module;
mod number;
mod overloads;
mod passing;
mod problems;
mod rules;
mod source;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use pyrite_diag::{Diagnostic, Diagnostics, Location};
use pyrite_ir::{Device, Graph, InputSpec, Registry, StorageSearch};

pub use calls::{Body, Calls, IndexPart, Mark, Refused, write_calls};
pub use problems::codes;

/// What to do with calls that the registry does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// Keep them as opaque calls, with a note.
    #[default]
    Keep,
    /// Report them as errors.
    Refuse,
}

/// Where the tensors of a program are put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Devices {
    /// Where the text has them.
    #[default]
    AsWritten,
    /// On the CPU, with a note where the text has them elsewhere.
    Cpu,
    /// All on this device.
    On(Device),
}

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Where tensors are put.
    pub devices: Devices,
    /// What to do with unknown calls.
    pub unknown: Unknown,
    /// Values of symbolic sizes that the text does not give.
    pub hints: BTreeMap<String, i64>,
    /// The seed of constants whose values the text does not have.
    pub seed: u64,
    /// The folder of the file, in and below which its storages lie.
    pub folder: Option<PathBuf>,
    /// A folder in which the user wants storages looked for, wherever it is.
    pub storages: Option<PathBuf>,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct ReadOutcome {
    /// The program.
    pub graph: Graph,
    /// Where its inputs come from, if the text says so.
    pub inputs: Option<InputSpec>,
    /// What the text says about itself, in order: Pyrite's comment block, PyTorch's versions, settings and command.
    pub metadata: Vec<Entry>,
    /// Where the storages that the text names are looked for.
    pub storages: StorageSearch,
    /// Warnings and notes.
    pub notes: Vec<Diagnostic>,
}

/// One thing that a text says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is about, such as `backend`.
    pub key: String,
    /// What is said.
    pub value: String,
    /// The line it stands in.
    pub line: u32,
    /// Who says it.
    pub origin: Origin,
}

/// Who says something in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A comment `# pyrite: KEY = VALUE`, or `# torch KEY: VALUE`.
    Comment,
    /// An assignment to a setting of torch.
    Setting,
    /// An argument of `run_repro(…)`, with which PyTorch's dumps end.
    RunRepro,
}

impl ReadOutcome {
    /// What the text says of a key first.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.metadata.iter().find(|entry| entry.key == key)
    }

    /// The metadata of that name.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entry(key).map(|entry| entry.value.as_str())
    }
}

/// Files larger than this are refused: a graph of a million nodes is smaller.
const MAX_BYTES: u64 = 1 << 28;

/// Reads a file.
pub fn read_path(path: &Path, registry: &Registry, options: &ReadOptions) -> Result<ReadOutcome, Diagnostics> {
    let fail = |diagnostic: Diagnostic| {
        let mut all = Diagnostics::new();
        all.push(diagnostic.at(Location::in_file(path)));
        Err(all)
    };
    let mut file = match std::fs::File::open(path) {
        Ok(_) if path.is_dir() => {
            return fail(Diagnostic::error(codes::IO, "this is a folder, not a file").hint("name the file in it"));
        }
        Ok(file) => file,
        Err(error) => {
            return fail(Diagnostic::error(codes::IO, "the file cannot be opened").cause(error).hint("check the path"));
        }
    };
    let mut bytes = Vec::new();
    let begun = (&mut file).take(exported::MAGIC.len() as u64).read_to_end(&mut bytes);
    if begun.is_ok() && bytes == exported::MAGIC {
        return exported::read(path, registry, options);
    }
    // A pipe or a device does not say how long it is, and may have no end.
    match begun.and_then(|_| file.take(MAX_BYTES).read_to_end(&mut bytes)) {
        Ok(_) if bytes.len() as u64 > MAX_BYTES => {
            let message = format!("the file has more than {MAX_BYTES} bytes, which no graph needs");
            fail(Diagnostic::error(codes::TOO_LARGE, message).hint("name a repro file, not a data file"))
        }
        Ok(_) => {
            let mut options = options.clone();
            if options.folder.is_none() {
                options.folder = path.parent().map(Path::to_path_buf);
            }
            read_bytes(&bytes, Some(path), registry, &options)
        }
        Err(error) => {
            fail(Diagnostic::error(codes::IO, "the file cannot be read").cause(error).hint("check its permissions"))
        }
    }
}

/// Reads bytes that should be UTF-8; `file` is what diagnostics call them.
pub fn read_bytes(
    bytes: &[u8],
    file: Option<&Path>,
    registry: &Registry,
    options: &ReadOptions,
) -> Result<ReadOutcome, Diagnostics> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read_text(text, file, registry, options),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = valid.iter().filter(|b| **b == b'\n').count() as u32 + 1;
            let mut location = file.map_or_else(Location::unknown, Location::in_file);
            location.line = Some(line);
            let mut all = Diagnostics::new();
            all.push(
                Diagnostic::error(codes::NOT_UTF8, "the file is not UTF-8 text")
                    .at(location)
                    .cause(error)
                    .hint("a repro is a Python file; storages are read through it"),
            );
            Err(all)
        }
    }
}

/// Reads a text; `file` is what diagnostics call it.
pub fn read_text(
    text: &str,
    file: Option<&Path>,
    registry: &Registry,
    options: &ReadOptions,
) -> Result<ReadOutcome, Diagnostics> {
    module::read(text, file, registry, options)
}
