//! A program from a file: its graph, checked, and its inputs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pyrite_compare::Accuracy;
use pyrite_compiler::inputs::{self, Inputs};
use pyrite_debug::{Limits, Question, trust};
use pyrite_diag::{Code, Diagnostic, Diagnostics, Location};
use pyrite_ir::verify::verify;
use pyrite_ir::{Device, Graph, Kind, Meta, Node, Switch, Target, Value};
use pyrite_ops::registry;
use pyrite_reader::{Entry, Origin, ReadOptions, ReadOutcome, read_path};
use pyrite_reduce::Candidate;

use crate::dumps::program_at;
use crate::execution::under_autocast;
use crate::{Host, Options, SessionError, backend};

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
    pub fn open(path: &Path, reading: &ReadOptions) -> Result<Self, SessionError> {
        Self::open_timed(path, reading, 1)
    }

    /// Reads and verifies a file for a session.
    pub fn open_for(host: &Host, path: &Path, options: &Options) -> Result<Self, SessionError> {
        let mut program = Self::open(path, &host.reading)?;
        if options.random_inputs
            && let Some(inputs) = &mut program.read.inputs
        {
            for storage in &mut inputs.storages {
                (storage.name, storage.data) = (None, None);
            }
        }
        if let Some(autocast) = options.autocast {
            program.read.graph = under_autocast(&program, options.seed, autocast.dtype())?;
        }
        Ok(program)
    }

    /// Reads a file several times, keeps the shortest time, and verifies it. The operators are loaded before.
    pub fn open_timed(path: &Path, reading: &ReadOptions, repeat: u32) -> Result<Self, SessionError> {
        let found = program_at(path)?;
        let path = found.as_path();
        let registry = registry();
        let mut read_time = Duration::MAX;
        let mut read_once = || {
            let start = Instant::now();
            let read = read_path(path, registry, reading).map_err(SessionError::Input)?;
            read_time = read_time.min(start.elapsed());
            Ok::<ReadOutcome, SessionError>(read)
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
            return Err(SessionError::Input(found));
        }
        Ok(Self { path: path.to_owned(), read, read_time })
    }

    /// Whether the graph comes from after PyTorch's own differentiation: what it returns is not differentiated again.
    pub fn is_differentiated(&self) -> bool {
        // Only PyTorch's dumps from after AOTAutograd say whether they are for inference.
        self.read.get("is_inference").is_some()
    }

    /// The backend that the file chooses; an error where it chooses one that only the command line may.
    pub fn said_backend(&self) -> Result<Option<String>, SessionError> {
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
                    let what =
                        format!("the file requests the backend `{backend}`, which only the command line may choose");
                    Err(self.refused(entry, what, why, format!("to allow it: --backend {}", quoted(&backend))))
                }
            };
        }
        if let Some(entry) = self.read.entry("check") {
            let what = format!(
                "the file requests the check command `{}`, which only the command line may choose",
                entry.value
            );
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
    pub fn check_imports(&self, backends: [&str; 2], imported: &[String]) -> Result<(), SessionError> {
        if !backends.iter().any(|name| name.starts_with("torch:")) {
            return Ok(());
        }
        let missing = |entry: &&Entry| entry.key == "import" && !imported.contains(&entry.value);
        match self.read.metadata.iter().find(missing) {
            None => Ok(()),
            Some(entry) => {
                let what = format!(
                    "the file requests the import of `{}`, which only the command line may choose",
                    entry.value
                );
                let allow = format!("to allow it: --import {}", quoted(&entry.value));
                Err(self.refused(entry, what, "importing a module executes it", allow))
            }
        }
    }

    fn refused(&self, entry: &Entry, what: String, why: impl ToString, allow: String) -> SessionError {
        let place = Location::in_file(&self.path).line(entry.line);
        SessionError::of(
            Diagnostic::error(Code::new("trust::not-repeated"), what).at(place).cause(why.to_string()).hint(allow),
        )
    }

    /// How closely the file wants backends compared.
    pub fn accuracy(&self) -> Accuracy {
        match self.read.get("accuracy") {
            Some("off" | "") => Accuracy::Off,
            Some("strict" | "strict_accuracy") => Accuracy::Strict,
            _ => Accuracy::Fp,
        }
    }

    /// What is asked about the program: what the options say, else the file, else the usual. Both backends are checked to
    /// be known.
    pub fn question(&self, options: &Options, backend: &str) -> Result<Question, SessionError> {
        let reference = self.reference(options.reference.as_ref(), backend);
        if !backend.is_empty() {
            backend::named(backend)?;
        }
        backend::named(&reference)?;
        Ok(Question {
            backend: backend.to_owned(),
            reference,
            accuracy: options.accuracy.unwrap_or_else(|| self.accuracy()),
            forward_only: options.forward_only || self.is_differentiated(),
            seed: self.seed(options.seed),
            switches: options.switches.clone(),
            ..Question::default()
        })
    }

    /// The seed that was asked for, else the one that the file names, else 0.
    pub fn seed(&self, asked: Option<u64>) -> u64 {
        asked.or_else(|| self.read.get("seed")?.parse().ok()).unwrap_or_default()
    }

    /// The program with its inputs, and with what these say of placeholders that say nothing themselves.
    pub fn candidate(&self, asked: Option<u64>) -> Result<Candidate, SessionError> {
        let inputs = self.inputs(asked)?.values;
        let mut graph = self.read.graph.clone();
        pyrite_compiler::inputs::describe(&mut graph, &inputs);
        Ok(Candidate { graph, inputs, seed: self.seed(asked) })
    }

    /// Refuses a program with a value that does not fit into the memory of this machine: whoever ran it would be killed.
    fn check_memory(&self) -> Result<(), SessionError> {
        let Some(memory) = Limits::machine_memory() else { return Ok(()) };
        for (_, node) in self.read.graph.nodes() {
            let mut needed = 0;
            if let Some(meta) = &node.meta {
                meta.each(&mut |meta| {
                    // Inputs are copied, element by element, whatever they reach.
                    let bytes = if node.kind == Kind::Placeholder { elements_of(meta) } else { bytes_of(meta) };
                    needed = needed.max(bytes.filter(|_| meta.device == Device::Cpu).unwrap_or(0));
                });
            }
            if needed <= u128::from(memory) {
                continue;
            }
            let mut place = Location::in_file(&self.path);
            if let Some(span) = node.span {
                place = place.line(span.line).column(span.column);
            }
            let what = format!("`{}` does not fit into the memory of this machine", node.name);
            let cause =
                format!("it needs {:.1} GB, and the machine has {:.1} GB", needed as f64 / 1e9, memory as f64 / 1e9);
            return Err(SessionError::of(
                Diagnostic::error(Code::new("program::too-large"), what)
                    .at(place)
                    .cause(cause)
                    .hint("run it on a machine with more memory, or make the sizes in the file smaller"),
            ));
        }
        Ok(())
    }

    /// Its inputs: loaded, or generated from the seed where the file has no data.
    pub fn inputs(&self, asked: Option<u64>) -> Result<Inputs, SessionError> {
        let seed = self.seed(asked);
        self.check_memory()?;
        match &self.read.inputs {
            Some(spec) => inputs::load_from(spec, &self.read.storages, &self.path, seed),
            None => inputs::generate(&self.read.graph, &self.path, seed),
        }
        .map_err(SessionError::of)
    }
}

/// How many bytes of memory a tensor takes at least; `None` where that is not known. A view takes what it reaches.
fn bytes_of(meta: &Meta) -> Option<u128> {
    let mut span = 1u128;
    for (size, stride) in meta.shape.iter().zip(meta.stride.iter()) {
        let (size, stride) = (size.hint()?, stride.hint()?.unsigned_abs());
        if size <= 0 {
            return Some(0);
        }
        span = span.saturating_add(u128::from(size as u64 - 1) * u128::from(stride));
    }
    Some(span.saturating_mul(meta.dtype.size() as u128))
}

/// How many bytes the elements of a tensor take.
fn elements_of(meta: &Meta) -> Option<u128> {
    let mut bytes = meta.dtype.size() as u128;
    for size in &meta.shape {
        bytes = bytes.saturating_mul(u128::try_from(size.hint()?).ok()?);
    }
    Some(bytes)
}

/// Whether a graph calls something that Pyrite does not know, or calls it with element types that only torch has it for.
fn has_opaque(graph: &Graph) -> bool {
    let opaque = |node: &Node| match &node.kind {
        Kind::Call(Target::Opaque(name)) => !name.starts_with("operator.") && Switch::of(node).is_none(),
        Kind::Call(Target::Op(_)) => node.meta.is_none() && takes_barebones(graph, node),
        _ => false,
    };
    graph.nodes().any(|(_, node)| opaque(node)) || graph.subgraphs().values().any(has_opaque)
}

/// Whether an argument of a call is, or names, an element type that is hardly more than storage.
fn takes_barebones(graph: &Graph, node: &Node) -> bool {
    let mut found = node.args.iter().any(|arg| matches!(arg, Value::DType(dtype) if dtype.is_barebones()));
    node.each_input(&mut |input| {
        let meta = graph.node(input).meta.as_ref().and_then(Value::as_tensor);
        found |= meta.is_some_and(|meta| meta.dtype.is_barebones());
    });
    found
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
