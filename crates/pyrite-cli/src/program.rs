//! A program from a file: its graph, checked, and its inputs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pyrite_compiler::inputs::{self, Inputs};
use pyrite_debug::trust;
use pyrite_diag::{Code, Diagnostic, Diagnostics, Location};
use pyrite_ir::verify::verify;
use pyrite_ir::{Graph, Kind, Node, Switch, Target};
use pyrite_ops::registry;
use pyrite_reader::{Devices, Entry, Origin, ReadOptions, ReadOutcome, read_path};
use pyrite_reduce::Candidate;

use crate::failure::{Failure, tell};

/// Where a program's tensors are put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Place {
    /// On the CPU
    #[default]
    Cpu,
    /// Where the file has them
    File,
}

/// How this process was told to read programs.
static READING: OnceLock<ReadOptions> = OnceLock::new();

/// Says how programs are read; the first word counts.
pub fn set_reading(storages: Option<PathBuf>, place: Place) {
    let devices = match place {
        Place::Cpu => Devices::Cpu,
        Place::File => Devices::AsWritten,
    };
    let _ = READING.set(ReadOptions { devices, storages, ..ReadOptions::default() });
}

/// The words of a command line that have programs read as this process reads them.
pub fn reading_words() -> Vec<OsString> {
    let reading = reading();
    let device = match reading.devices {
        Devices::Cpu => "cpu",
        Devices::AsWritten => "file",
    };
    let mut words: Vec<OsString> = ["--device", device].map(OsString::from).into();
    if let Some(storages) = reading.storages {
        words.extend(["--storages".into(), storages.into_os_string()]);
    }
    words
}

fn reading() -> ReadOptions {
    READING.get().cloned().unwrap_or_default()
}

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
            let read = read_path(path, registry, &reading())
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

    /// The backend that the file chooses; an error where it chooses one that only the command line may.
    pub fn said_backend(&self) -> Result<Option<String>, Failure> {
        // `run_repro` after dynamo names one of torch's; after aot it is Inductor that compiles.
        let named = match self.read.entry("backend") {
            Some(Entry { value, origin: Origin::RunRepro, .. }) if value == "None" => None,
            Some(entry) if entry.origin == Origin::RunRepro => Some((format!("torch:{}", entry.value), entry)),
            Some(entry) => Some((entry.value.clone(), entry)),
            None => None,
        };
        if let Some((backend, entry)) = named {
            return match trust::check_backend(&backend) {
                Ok(()) => Ok(Some(backend)),
                Err(why) => {
                    let what = format!("the file asks for the backend `{backend}`, which a file may not choose");
                    Err(self.refused(entry, what, why, format!("to allow it: --backend {}", quoted(&backend))))
                }
            };
        }
        if let Some(entry) = self.read.entry("check") {
            let what = format!("the file asks for the check command `{}`, which a file may not choose", entry.value);
            let allow = format!("to allow it: `pyrite minify FILE --check {}`", quoted(&entry.value));
            return Err(self.refused(entry, what, "it runs a program", allow));
        }
        let after_aot = self.read.entry("is_inference").is_some_and(|entry| entry.origin == Origin::RunRepro);
        Ok(after_aot.then(|| "torch:inductor".to_owned()))
    }

    /// The backend that says what is right where none is named: for what only torch knows how to run, torch.
    pub fn reference(&self, asked: Option<&String>, backend: &str) -> String {
        let usual = if backend.starts_with("torch:") && has_opaque(&self.read.graph) { "torch:eager" } else { "eager" };
        asked.cloned().unwrap_or_else(|| usual.to_owned())
    }

    /// Refuses a file whose modules the command line does not repeat, where a backend of torch's would want them.
    pub fn check_imports(&self, backends: [&str; 2]) -> Result<(), Failure> {
        if !backends.iter().any(|name| name.starts_with("torch:")) {
            return Ok(());
        }
        let imported: Vec<String> = crate::python_imports().collect();
        let missing = |entry: &&Entry| entry.key == "import" && !imported.contains(&entry.value);
        match self.read.metadata.iter().find(missing) {
            None => Ok(()),
            Some(entry) => {
                let what = format!("the file asks to import the module `{}`, which a file may not", entry.value);
                let allow = format!("to allow it: --import {}", quoted(&entry.value));
                Err(self.refused(entry, what, "importing a module executes it", allow))
            }
        }
    }

    fn refused(&self, entry: &Entry, what: String, why: impl ToString, allow: String) -> Failure {
        let place = Location::in_file(&self.path).line(entry.line);
        Failure::of(
            Diagnostic::error(Code::new("trust::not-repeated"), what).at(place).cause(why.to_string()).hint(allow),
        )
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
            Some(spec) => inputs::load_from(spec, &self.read.storages, &self.path, seed),
            None => inputs::generate(&self.read.graph, &self.path, seed),
        }
        .map_err(Failure::of)
    }
}

/// Whether a graph calls something that Pyrite does not know.
fn has_opaque(graph: &Graph) -> bool {
    let opaque = |node: &Node| match &node.kind {
        Kind::Call(Target::Foreign(name)) => !name.starts_with("operator.") && Switch::of(node).is_none(),
        _ => false,
    };
    graph.nodes().any(|(_, node)| opaque(node)) || graph.subgraphs().values().any(has_opaque)
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
