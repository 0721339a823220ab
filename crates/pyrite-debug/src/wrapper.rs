//! A backend that leaves a repro behind when it fails.
//!
//! [`wrap_compiler_debug`] wraps any backend. Its [`Level`] says when a program is written down: on an error (1), on an
//! error and minified (2), always before it runs and minified on an error (3), or when its results are not those of the
//! reference too (4). [`ReproAfter`] says which program that is: the captured one, or each half that ahead-of-time autograd
//! makes of it.
//!
//! Invariants:
//! - What is written has the real inputs, as they were before the call, and real constants of any size. An error of
//!   compiling is therefore raised at the first call, when there are inputs.
//! - At level 3 the file is on the disk before the program is compiled and called.
//! - Every program has a folder of its own, numbered from the first that is free: nothing is overwritten, and the same
//!   runs give the same names.
//! - A program that runs while another wrapped one does is not wrapped again.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyrite_compare::Accuracy;
use pyrite_compiler::aot::{Compiled, aot_autograd};
use pyrite_compiler::backend::{Backend, Backward, Direction, Executable, Forward, InputGradients, Observer, Options};
use pyrite_interp::Mode;
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_oracle::{Signature, Stage, Verdict};
use pyrite_passes::Table;
use pyrite_reduce::{Candidate, Options as ReduceOptions, Silent, reduce};
use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

use crate::judge::{Broken, Question, judge_backends, prepared};
use crate::repro::{Folder, RepoError};
use crate::running::Running;
use crate::signals::{self, Heard, Trail};
use crate::switches::Switches;
use crate::tracing::Tracing;

/// Which program is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReproAfter {
    /// The captured one.
    Capture,
    /// Each half that ahead-of-time autograd makes of it.
    Aot,
}

impl ReproAfter {
    /// By its name; `dynamo` is PyTorch's word for capture.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "capture" | "dynamo" => Some(Self::Capture),
            "aot" => Some(Self::Aot),
            _ => None,
        }
    }
}

/// When a program is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// On an error: the graph and its inputs.
    OnError,
    /// On an error: the same, minified beside it.
    Minified,
    /// Always before it runs, and on an error minified.
    Always,
    /// On an error and when the results are not those of the reference: minified.
    Accuracy,
}

impl Level {
    /// By its number, from 1 to 4.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::OnError, Self::Minified, Self::Always, Self::Accuracy].get(number.checked_sub(1)? as usize).copied()
    }

    /// Its number, from 1 to 4.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }
}

/// Who makes a program that failed smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrinking {
    /// The wrapper, right after it was written down.
    AtOnce,
    /// Whoever takes the file up.
    Later,
}

/// How a backend is wrapped.
#[derive(Clone)]
pub struct WrapConfig {
    /// Which program is written down.
    pub after: ReproAfter,
    /// When.
    pub level: Level,
    /// Where: each program gets a folder in it.
    pub folder: PathBuf,
    /// Only errors whose text contains this are written down.
    pub only_errors_with: Option<String>,
    /// Reference backend, at level 4.
    pub reference: Backend,
    /// How closely it is compared, at level 4.
    pub accuracy: Accuracy,
    /// What the comparison overlooks.
    pub switches: Switches,
    /// Which sizes a program has that is written down.
    pub tracing: Tracing,
    /// Who makes it smaller.
    pub shrinking: Shrinking,
    /// Is told what was written.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
}

thread_local! {
    /// Whether a wrapped program is running on this thread.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks the time in which nothing is wrapped again.
struct Inside;

impl Inside {
    fn enter() -> Option<Self> {
        (!INSIDE.replace(true)).then_some(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// The backend, leaving repros behind; see the module's text.
pub fn wrap_compiler_debug(backend: &Backend, config: &WrapConfig) -> Backend {
    let heard = Arc::new(signals::install());
    let (inner, config) = (backend.clone(), Arc::new(config.clone()));
    match config.after {
        ReproAfter::Capture => Backend::new(&backend.name, &backend.help, move |graph, options| {
            let (backend, config, options) = (inner.clone(), config.clone(), options.clone());
            let debugged = Debugged { backend, config, options, graph, _heard: heard.clone() };
            Ok(Box::new(debugged.compiled()))
        }),
        ReproAfter::Aot => {
            let table = if ["decomp", "inductor", "native"].iter().any(|word| backend.name.contains(word)) {
                Table::Core
            } else {
                Table::Composite
            };
            let halves = aot_autograd(Arc::new(move |graph, options| {
                let options = Options { direction: Direction::Forward, ..options.clone() };
                let (backend, config) = (inner.clone(), config.clone());
                Ok(Arc::new(Half { backend, config, options, graph, heard: heard.clone() }))
            }));
            halves.decompositions(table).backend(&backend.name, &backend.help)
        }
    }
}

/// A half of a program as a program of its own.
struct Half {
    backend: Backend,
    config: Arc<WrapConfig>,
    options: Options,
    graph: Graph,
    heard: Arc<Heard>,
}

impl Compiled for Half {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        _: &mut TorchGenerator,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<Value<Tensor>>, NodeError> {
        let debugged = Debugged {
            backend: self.backend.clone(),
            config: self.config.clone(),
            options: self.options.clone(),
            graph: self.graph.clone(),
            _heard: self.heard.clone(),
        };
        match debugged.compiled().run(inputs, None, observe)?.outputs {
            Value::List(items) => Ok(items),
            other => Err(OpError::fault(format!("a half of a program returned {}", other.kind())).into()),
        }
    }
}

/// A program and who runs it.
#[derive(Clone)]
struct Debugged {
    backend: Backend,
    config: Arc<WrapConfig>,
    options: Options,
    graph: Graph,
    /// Says what is running when a signal ends the process.
    _heard: Arc<Heard>,
}

impl Debugged {
    fn compiled(self) -> Wrapped {
        let wrapped = Wrapped { nested: INSIDE.get(), executable: OnceLock::new(), debugged: self };
        if wrapped.debugged.config.level != Level::Always {
            let _inside = Inside::enter();
            let _ = wrapped.executable();
        }
        wrapped
    }

    fn question(&self) -> Question {
        Question {
            backend: self.backend.name.to_string(),
            reference: self.config.reference.name.to_string(),
            accuracy: self.config.accuracy,
            forward_only: self.options.direction == Direction::Forward,
            seed: self.options.seed,
            rewrites: self.options.rewrites,
            refused: self.options.refused.clone(),
            switches: self.config.switches.clone(),
            thorough: true,
        }
    }

    fn metadata(&self, signature: Option<&Signature>) -> Vec<(String, String)> {
        let accuracy = if self.config.level == Level::Accuracy { self.config.accuracy } else { Accuracy::Off }.name();
        let mut metadata: Vec<(String, String)> = [
            ("pyrite", env!("CARGO_PKG_VERSION")),
            ("backend", &self.backend.name),
            ("reference", &self.config.reference.name),
            ("accuracy", accuracy),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        metadata.push(("seed".to_owned(), self.options.seed.to_string()));
        metadata.extend(signature.map(|signature| ("signature".to_owned(), signature.to_string())));
        metadata
    }

    /// Writes a program into a new folder, with the graphs that the backend made of it, and returns the file's path.
    fn write(
        &self,
        name: &str,
        program: &Candidate,
        signature: Option<&Signature>,
        graphs: &[(String, Graph)],
    ) -> Result<PathBuf, RepoError> {
        let folder = Folder::open(&free(&self.config.folder)?)?;
        let path = folder.write(name, program, &self.metadata(signature))?;
        write_trace(folder.path(), graphs)?;
        // The names are on the disk too when this returns, not only the contents.
        for place in [folder.path(), &self.config.folder] {
            File::open(place).and_then(|place| place.sync_all()).map_err(|error| failed(place, error))?;
        }
        Ok(path)
    }

    /// Writes down a program that raised an error, where it does not lie there yet, and says so.
    fn raised(
        &self,
        stage: Stage,
        error: &NodeError,
        program: &Candidate,
        graphs: &[(String, Graph)],
        written: Option<&Path>,
    ) {
        let text = error.to_string();
        if self.config.only_errors_with.as_ref().is_some_and(|wanted| !text.contains(wanted)) {
            return;
        }
        let name = match self.config.level {
            Level::OnError => "repro.py",
            _ => "minifier_launcher.py",
        };
        let signature = Broken { stage, error: error.clone() }.signature();
        let path = match written {
            Some(path) => path.to_owned(),
            None => match self.write(name, program, Some(&signature), graphs) {
                Ok(path) => path,
                Err(why) => return (self.config.tell)(&format!("no repro: {why}")),
            },
        };
        (self.config.tell)(&format!("{} failed; wrote {}", self.backend.name, path.display()));
        if self.config.level == Level::OnError {
            return;
        }
        match self.minified(program, &path) {
            Ok(Some(small)) => (self.config.tell)(&format!("minified; wrote {}", small.display())),
            Ok(None) => {}
            Err(why) => (self.config.tell)(&format!("not minified: {why}")),
        }
    }

    /// Finds the smallest program that fails like this one and writes it beside it; `None` when it does not fail again.
    fn minified(&self, program: &Candidate, path: &Path) -> Result<Option<PathBuf>, RepoError> {
        if self.config.shrinking == Shrinking::Later {
            return Ok(None);
        }
        let question = self.question();
        let fails = |candidate: &Candidate| {
            let backends = [&self.backend, &self.config.reference];
            judge_backends(&candidate.graph, &candidate.inputs, backends, &question, &mut |_| {}, &mut |_, _| {})
                .verdict
        };
        let Ok(reduction) = reduce(program.clone(), &fails, ReduceOptions::default(), &mut Silent) else {
            return Ok(None);
        };
        let folder = Folder::open(&path.parent().unwrap_or(Path::new("")).join("minified"))?;
        folder.write("repro.py", &reduction.best, &self.metadata(Some(&reduction.found))).map(Some)
    }

    /// The error of a program whose results are not those of the reference; its last line is the repro's path.
    fn inaccurate(&self, program: &Candidate, signature: &Signature, graphs: &[(String, Graph)]) -> NodeError {
        let difference = signature.detail.message.clone().unwrap_or_else(|| signature.to_string());
        let written = self
            .write("repro.py", program, Some(signature), graphs)
            .and_then(|path| Ok(self.minified(program, &path)?.unwrap_or(path)));
        let place = match written {
            Ok(path) => path.display().to_string(),
            Err(why) => format!("no repro: {why}"),
        };
        let message = format!(
            "AccuracyError: {} differs from {}: {difference}\n{place}",
            self.backend.name, self.config.reference.name
        );
        OpError::Outside { kind: "AccuracyError".to_owned(), place: None, message, stage: "forward".to_owned() }.into()
    }
}

fn failed(path: &Path, error: std::io::Error) -> RepoError {
    RepoError::Io { path: path.to_owned(), cause: error.to_string() }
}

/// Writes the graphs that a backend made of a program.
fn write_trace(folder: &Path, graphs: &[(String, Graph)]) -> Result<(), RepoError> {
    if graphs.is_empty() {
        return Ok(());
    }
    let trace = folder.join("trace");
    std::fs::create_dir_all(&trace).map_err(|error| failed(&trace, error))?;
    for (stage, graph) in graphs {
        let file = trace.join(format!("{stage}.py"));
        std::fs::write(&file, print(graph, &PrintOptions::default())).map_err(|error| failed(&file, error))?;
    }
    Ok(())
}

/// The first folder that is not there, made.
fn free(parent: &Path) -> Result<PathBuf, RepoError> {
    std::fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
    let mut number = 1u32;
    loop {
        let path = parent.join(format!("graph_{number}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(failed(&path, error)),
        }
    }
}

struct Wrapped {
    debugged: Debugged,
    executable: OnceLock<Result<Box<dyn Executable>, NodeError>>,
    nested: bool,
}

impl Wrapped {
    fn executable(&self) -> &Result<Box<dyn Executable>, NodeError> {
        let Debugged { backend, options, graph, .. } = &self.debugged;
        self.executable.get_or_init(|| {
            signals::running(&format!("the compiler {}", backend.name));
            let executable = (backend.compile)(graph.clone(), options);
            signals::running("");
            executable
        })
    }

    /// The file that lies there before anything runs, and the trail beside it.
    fn begin(&self, program: &Candidate) -> Result<Option<(PathBuf, Option<Trail>)>, NodeError> {
        let Debugged { backend, config, .. } = &self.debugged;
        if config.level != Level::Always {
            return Ok(None);
        }
        let path = self
            .debugged
            .write("repro.py", program, None, &[])
            .map_err(|why| OpError::fault(format!("no repro can be written before the run: {why}")))?;
        (config.tell)(&format!("running {}", path.display()));
        let trail = Trail::begin(&path.with_file_name("running")).ok();
        if let Some(trail) = &trail {
            trail.running(&format!("the compiler {}", backend.name));
        }
        Ok(Some((path, trail)))
    }
}

impl Executable for Wrapped {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        random: Option<&mut TorchGenerator>,
        observe: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let own = &mut TorchGenerator::new(self.debugged.options.seed);
        let random = random.unwrap_or(own);
        let debugged = &self.debugged;
        let inside = Inside::enter();
        if self.nested || inside.is_none() {
            return match self.executable() {
                Ok(executable) => executable.run(inputs, Some(random), observe),
                Err(error) => Err(error.clone()),
            };
        }
        let (graph, before) = prepared(&debugged.graph, &inputs, Mode::Eager);
        let program = Candidate { graph, inputs: before, seed: debugged.options.seed };
        let program = debugged.config.tracing.of(program);
        let begun = self.begin(&program)?;
        let executable = match self.executable() {
            Ok(executable) => executable,
            Err(error) => {
                let written = begun.as_ref().map(|(path, _)| path.as_path());
                debugged.raised(Stage::Compile, error, &program, &[], written);
                return Err(while_compiling(error));
            }
        };
        let graphs = executable.graphs();
        let mut running = Running::new(&debugged.backend.name, &debugged.graph, &graphs);
        let mut written = None;
        if let Some((path, trail)) = begun {
            write_trace(path.parent().unwrap_or(Path::new("")), &graphs)
                .map_err(|why| OpError::fault(format!("no trace can be written before the run: {why}")))?;
            running.trail = trail;
            written = Some(path);
        }
        if debugged.config.level == Level::Accuracy {
            let backends = [&debugged.backend, &debugged.config.reference];
            let question = debugged.question();
            let judged =
                judge_backends(&program.graph, &program.inputs, backends, &question, &mut |_| {}, &mut |_, _| {});
            if let (Verdict::Fail(signature), Some(Ok(_))) = (&judged.verdict, &judged.actual) {
                return Err(debugged.inaccurate(&program, signature, &graphs));
            }
        }
        let running = RefCell::new(running);
        running.borrow().say();
        let forward = executable.run(inputs, Some(random), &mut |node, value| {
            running.borrow_mut().done(node);
            observe(node, value);
        });
        let running = running.into_inner();
        signals::running("");
        match forward {
            Ok(Forward { outputs, backward }) => {
                let backward = backward.map(|inner| {
                    let debugged = debugged.clone();
                    Box::new(WrappedBackward { inner, debugged, program, graphs, running, written })
                        as Box<dyn Backward>
                });
                Ok(Forward { outputs, backward })
            }
            Err(error) => {
                debugged.raised(Stage::Forward, &error, &program, &graphs, written.as_deref());
                Err(error)
            }
        }
    }

    fn times(&self) -> &[(&'static str, Duration)] {
        self.executable.get().and_then(|made| made.as_ref().ok()).map(|made| made.times()).unwrap_or_default()
    }

    fn graphs(&self) -> Vec<(String, Graph)> {
        self.executable.get().and_then(|made| made.as_ref().ok()).map(|made| made.graphs()).unwrap_or_default()
    }
}

/// An error of compiling that is raised later still says that it is one.
fn while_compiling(error: &NodeError) -> NodeError {
    let site = Broken { stage: Stage::Compile, error: error.clone() }.signature().site;
    let Some(site) = site else { return error.clone() };
    let (kind, place, stage) = (site.kind, site.place, "compile".to_owned());
    NodeError { error: OpError::Outside { kind, place, message: error.error.to_string(), stage }, ..error.clone() }
}

struct WrappedBackward {
    inner: Box<dyn Backward>,
    debugged: Debugged,
    program: Candidate,
    graphs: Vec<(String, Graph)>,
    running: Running,
    written: Option<PathBuf>,
}

impl Backward for WrappedBackward {
    fn wanted(&self) -> Vec<usize> {
        self.inner.wanted()
    }

    fn again(&self) -> Box<dyn Backward> {
        Box::new(Self {
            inner: self.inner.again(),
            debugged: self.debugged.clone(),
            program: self.program.clone(),
            graphs: self.graphs.clone(),
            running: Running::new(&self.debugged.backend.name, &self.debugged.graph, &self.graphs),
            written: self.written.clone(),
        })
    }

    fn replace(&mut self, inputs: &[(usize, Tensor, Tensor)]) -> Result<(), OpError> {
        self.inner.replace(inputs)
    }

    fn run(self: Box<Self>, tangents: Vec<Tensor>, observe: &mut Observer<'_>) -> Result<InputGradients, NodeError> {
        let Self { inner, debugged, program, graphs, mut running, written } = *self;
        let _inside = Inside::enter();
        running.say();
        let gradients = inner.run(tangents, &mut |node, value| {
            running.done(node);
            observe(node, value);
        });
        signals::running("");
        gradients.inspect_err(|error| debugged.raised(Stage::Backward, error, &program, &graphs, written.as_deref()))
    }
}
