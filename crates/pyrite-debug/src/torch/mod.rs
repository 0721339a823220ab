//! `torch:NAME`: any backend of torch.compile, and `torch:eager`, as one of Pyrite's.
//!
//! A Python process imports torch once and gives every program a process of its own, so a crash of a compiler under test
//! ends that and nothing else. It gets the text that Pyrite prints of the parsed graph, never the text of a stranger's
//! file, and hands back outputs, gradients and what the run left in its inputs. A name may carry settings; `settings.rs`
//! says which.
//!
//! Only what the program itself raises, and how its process ends while it runs, is an answer. What fails around it (the
//! interpreter, an import, a setting, the disk, the protocol) is [`CANNOT_TELL`], which makes a question invalid.

mod kernels;
mod sanitizer;
mod settings;

pub use kernels::{Checked, GuiltyKernel, LaunchTime, ScriptFailure, Watch, check_kernels, watch_for};
pub use sanitizer::{Access, installed as compute_sanitizer};
pub(crate) use settings::{base, looking_at, setting, without_setting};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use pyrite_compiler::backend::{
    Backend, Backward, Direction, Executable, Forward, InputGradients, Observer, Options, register_prefix,
};
use pyrite_ir::{Graph, Kind, NodeError, OpError, Tag, Target, Value};
use pyrite_reduce::Candidate;
use pyrite_tensor::random::TorchGenerator;
use pyrite_tensor::{Storage, Tensor};
use serde_json::{Value as Json, json};

use crate::command_backend::{CANNOT_TELL, WORKER_FAILED};
use crate::judge::{FAULT, OUT_OF_DEVICE_MEMORY};
use crate::process::{Heard, MOST_CROWDED, Process, crowding};
use crate::protocol::Decoder;
use crate::repro::Folder;

const WORKER: &str = include_str!("worker.py");

/// How long torch may take to be imported, and a program to start and to write its results.
pub(crate) const IMPORT: Duration = Duration::from_mins(2);

/// How long a program may take, in milliseconds, where somebody said so; else what the interpreter is registered with.
static TIME_LIMIT: AtomicU64 = AtomicU64::new(0);

/// Gives the programs of this process another time limit.
pub fn limit_time(time: Duration) {
    TIME_LIMIT.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
}

/// The time limit of this process's programs, else the usual one.
pub(crate) fn limited(usual: Duration) -> Duration {
    match TIME_LIMIT.load(Ordering::Relaxed) {
        0 => usual,
        limit => Duration::from_millis(limit),
    }
}

/// How many bytes of a device a program may have; zero where nobody said so.
static DEVICE_MEMORY: AtomicU64 = AtomicU64::new(0);

/// Limits what the programs of this process may have of a device's memory.
pub fn limit_device_memory(bytes: u64) {
    DEVICE_MEMORY.store(bytes, Ordering::Relaxed);
}

/// The limit of a device's memory, where there is one.
pub fn device_memory_limit() -> Option<u64> {
    Some(DEVICE_MEMORY.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
}

/// Where torch is.
#[derive(Clone, Debug)]
pub struct Python {
    /// The interpreter.
    pub interpreter: PathBuf,
    /// Modules to import beside torch, for custom operators and backends.
    pub imports: Vec<String>,
    /// How long a program may take.
    pub time_limit: Duration,
}

impl Python {
    /// An interpreter; by default `python3`.
    pub fn new(interpreter: Option<PathBuf>) -> Self {
        Self {
            interpreter: interpreter.unwrap_or_else(|| PathBuf::from("python3")),
            imports: Vec::new(),
            time_limit: Duration::from_mins(5),
        }
    }
}

static REGISTERED: Mutex<Option<Python>> = Mutex::new(None);

/// The interpreter that was registered last, if there is one.
pub fn registered() -> Option<Python> {
    lock(&REGISTERED).clone()
}

/// Starts the Python process for a backend, if it is one of torch's, so that its first program need not wait.
pub fn prepare(backend: &str) {
    if let (Some(name), Some(python)) = (backend.strip_prefix("torch:"), registered()) {
        // The first program starts it again, and tells what is wrong.
        let _ = zygote(&python, name);
    }
}

/// Makes `torch:NAME` a backend for every name.
pub fn register(python: Python) {
    *lock(&REGISTERED) = Some(python.clone());
    register_prefix("torch:", move |name| {
        let python = python.clone();
        let inner = name.to_owned();
        Some(Backend::new(&format!("torch:{name}"), "torch.compile's backend of that name", move |graph, options| {
            let (backend, python, options) = (inner.clone(), python.clone(), options.clone());
            Ok(Box::new(Program { graph, backend, python, options, changes: AtomicBool::new(false) }))
        }))
    });
}

/// A program that torch runs.
struct Program {
    graph: Graph,
    backend: String,
    python: Python,
    options: Options,
    /// Whether a second call gave a different result than the first.
    changes: AtomicBool,
}

/// What tells Python processes apart: the interpreter, whether Inductor is imported, and the folder of another Triton.
type Key = (PathBuf, bool, Option<String>);

/// The Python processes.
static RUNNING: OnceLock<Mutex<BTreeMap<Key, Arc<Mutex<Process>>>>> = OnceLock::new();

/// The Python process for a backend; started at the first use. One that has imported Inductor serves all backends.
fn zygote(python: &Python, backend: &str) -> Result<Arc<Mutex<Process>>, OpError> {
    let inductor = settings::base(backend) == "inductor";
    let triton = settings::setting(backend, "triton").map(str::to_owned);
    let mut running = lock(RUNNING.get_or_init(Mutex::default));
    for with in [true, inductor] {
        if let Some(process) = running.get(&(python.interpreter.clone(), with, triton.clone())) {
            return Ok(process.clone());
        }
    }
    let mut command = Command::new(&python.interpreter);
    command.arg("-c").arg(WORKER).args(inductor.then_some("inductor"));
    command.arg(format!("--probe={}", probe_folder(&python.interpreter).display()));
    search_safely(&mut command, &python.imports);
    if std::env::var_os("TORCHINDUCTOR_CACHE_DIR").is_none() {
        command.env("TORCHINDUCTOR_CACHE_DIR", own_folder("inductor"));
    }
    if let Some(folder) = &triton {
        put_first(&mut command, folder);
    }
    let interpreter = python.interpreter.display();
    let process = Process::start(&mut command).map_err(|error| {
        unavailable(format!(
            "{NO_PYTHON} {interpreter} cannot be started ({error}); name an interpreter that has torch with --python"
        ))
    })?;
    match process.hear(Instant::now() + IMPORT) {
        Heard::Line(line) if line.contains("ready") => {}
        Heard::TimeIsUp => {
            return Err(unavailable(format!(
                "{interpreter} did not import torch within {} s; try again when the machine is less busy",
                IMPORT.as_secs()
            )));
        }
        Heard::Line(_) | Heard::Ended => {
            let said = process.errors();
            let last = said.trim().lines().last().unwrap_or("no answer").to_owned();
            return Err(unavailable(format!(
                "{NO_TORCH} {interpreter}: {last}; name an interpreter that has torch with --python, or install torch there"
            )));
        }
    }
    let process = Arc::new(Mutex::new(process));
    running.insert((python.interpreter.clone(), inductor, triton), process.clone());
    Ok(process)
}

/// Where workers keep what Inductor finds out about the processor for an interpreter, apart from what it makes of programs.
fn probe_folder(interpreter: &Path) -> PathBuf {
    let mut hasher = rustc_hash::FxHasher::default();
    interpreter.hash(&mut hasher);
    own_folder(&format!("inductor-probe-{:016x}", hasher.finish()))
}

/// A folder for temporary files that outlive this process and that no other user can put anything into: what lies there is
/// loaded as code. Where the usual place belongs to somebody else, a fresh one serves this process.
fn own_folder(name: &str) -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        let user = rustix::process::geteuid().as_raw();
        let usual = std::env::temp_dir().join(format!("pyrite-{user}"));
        if make_own(&usual, user).is_ok_and(|own| own) {
            return usual;
        }
        tempfile::Builder::new().prefix("pyrite-").tempdir().map_or(usual, tempfile::TempDir::keep)
    });
    root.join(name)
}

/// Makes a folder that its owner alone may enter, and says whether it is one: it may have been there before.
fn make_own(folder: &Path, user: u32) -> std::io::Result<bool> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A link to a folder is none of ours, wherever it leads.
    let found = std::fs::symlink_metadata(folder)?;
    let of_others = found.mode() % 0o100;
    Ok(found.is_dir() && found.uid() == user && of_others == 0)
}

/// Gives a fresh cache of Inductor what it finds out about the processor, which is the same for every program and takes many
/// times as long as a small one; nothing where no worker has found it out. A cache with that alone holds nothing of a
/// program.
pub(crate) fn give_probes(interpreter: &Path, cache: &Path) -> std::io::Result<()> {
    let folder = probe_folder(interpreter);
    if !folder.join("probed").exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)?.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
        let target = cache.join(entry.file_name());
        std::fs::create_dir_all(&target)?;
        for file in std::fs::read_dir(entry.path())?.filter_map(Result::ok) {
            std::fs::copy(file.path(), target.join(file.file_name()))?;
        }
    }
    Ok(())
}

/// Has an interpreter look for modules in the working directory only where the user names some: a folder that a program was
/// unpacked to may hold a `json.py` of its own.
fn search_safely(command: &mut Command, imports: &[String]) {
    command.env("PYTHONSAFEPATH", "1");
    if !imports.is_empty()
        && let Ok(here) = std::env::current_dir()
    {
        let before = std::env::var_os("PYTHONPATH").unwrap_or_default();
        let places = std::env::split_paths(&before).filter(|place| !place.as_os_str().is_empty()).chain([here]);
        if let Ok(all) = std::env::join_paths(places) {
            command.env("PYTHONPATH", all);
        }
    }
}

/// Has an interpreter find Triton in a folder, whatever else is installed, and keep what it compiles apart.
fn put_first(command: &mut Command, folder: &str) {
    let before =
        command.get_envs().find(|(name, _)| *name == "PYTHONPATH").and_then(|(_, value)| value.map(Into::into));
    let before: OsString = before.or_else(|| std::env::var_os("PYTHONPATH")).unwrap_or_default();
    let places = std::env::split_paths(&before).filter(|place| !place.as_os_str().is_empty());
    if let Ok(all) = std::env::join_paths(std::iter::once(PathBuf::from(folder)).chain(places)) {
        command.env("PYTHONPATH", all);
    }
    let mut hasher = rustc_hash::FxHasher::default();
    folder.hash(&mut hasher);
    command.env("TORCHINDUCTOR_CACHE_DIR", own_folder(&format!("inductor-triton-{:016x}", hasher.finish())));
}

/// Where torch or what is around it fails, nobody can tell how a program does in it.
fn unavailable(message: String) -> OpError {
    OpError::Outside { kind: CANNOT_TELL.to_owned(), place: None, message, stage: "compile".to_owned() }
}

/// The same for what fails in Pyrite's own worker.
fn worker(what: impl std::fmt::Display) -> NodeError {
    unavailable(format!("{WORKER_FAILED}{what}")).into()
}

/// How the reason begins where torch has no backend of a name.
const UNKNOWN: &str = "there is no backend `torch:";
/// How the reason begins where there is no Python.
const NO_PYTHON: &str = "torch backends need Python:";
/// How the reason begins where Python has no torch.
const NO_TORCH: &str = "torch cannot be imported by";

/// What a question lacks that it cannot be answered without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// A backend of that name.
    Backend,
    /// Torch, or the Python that has it.
    Torch,
}

/// What is missing on this machine, if a question is invalid for that reason.
pub fn lack(reason: &str) -> Option<Lack> {
    if reason.contains(UNKNOWN) {
        return Some(Lack::Backend);
    }
    (reason.contains(NO_PYTHON) || reason.contains(NO_TORCH)).then_some(Lack::Torch)
}

/// Says that a backend is not there, and which is that has nearly this name.
fn unknown(name: &str, known: &[&str]) -> NodeError {
    let near = known.iter().map(|other| (distance(name, other), other)).min();
    let hint = match near.filter(|(distance, _)| *distance <= 2 + name.len() / 4) {
        Some((_, other)) => format!("did you mean `torch:{other}`?"),
        None => format!("torch has {}", known.join(", ")),
    };
    let import = "--import names the module that registers one of your own";
    unavailable(format!("{UNKNOWN}{name}`; {hint} {import}")).into()
}

/// How many letters have to be added, left out or changed to make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let changed = before + usize::from(from != *to);
            before = row[j + 1];
            row[j + 1] = changed.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What torch raised or how it died, as an error that a signature can be made of.
fn failed(kind: &str, place: Option<&str>, message: &str, stage: &str) -> NodeError {
    let error = OpError::Outside {
        kind: kind.to_owned(),
        place: place.map(str::to_owned),
        message: message.to_owned(),
        stage: stage.to_owned(),
    };
    error.into()
}

impl Executable for Program {
    fn run(
        &self,
        inputs: Vec<Value<Tensor>>,
        _: Option<&mut TorchGenerator>,
        _: &mut Observer<'_>,
    ) -> Result<Forward, NodeError> {
        let place = tempfile::tempdir().map_err(|e| worker(format_args!("no temporary folder: {e}")))?;
        let folder = Folder::scratch(place.path()).map_err(worker)?;
        let candidate = Candidate { graph: self.graph.clone(), inputs: inputs.clone(), seed: self.options.seed };
        folder.write("program.py", &candidate, &[]).map_err(worker)?;
        let base = settings::base(&self.backend);
        let request = json!({
            "folder": place.path(),
            "backend": base,
            "imports": self.python.imports,
            "settings": settings::settings(&self.backend),
            "fallback_random": base == "inductor" && draws(&self.graph),
            "seed": self.options.seed,
            "forward_only": self.options.direction == Direction::Forward,
            "time_limit": self.time_limit().as_secs_f64() * crowding(),
            "device_memory": device_memory_limit(),
            "needs_probe": base == "inductor" && !self.graph.is_elsewhere(),
        });
        // Others than the system kill too: what it kills for its memory is killed again.
        let answer = match self.ask(&request)? {
            killed if killed["died"]["signal"] == 9 => self.ask(&request)?,
            answer => answer,
        };
        let stage = answer["stage"].as_str().unwrap_or("forward").to_owned();
        if let Some(what) = answer["worker"].as_str() {
            return Err(worker(what));
        }
        if let Some(known) = answer["known"].as_array() {
            return Err(unknown(base, &known.iter().filter_map(Json::as_str).collect::<Vec<_>>()));
        }
        if let Some(died) = answer["died"].as_object() {
            let kind = match (died.get("signal").and_then(Json::as_i64), died.get("exit").and_then(Json::as_i64)) {
                (Some(signal), _) => format!("signal {signal}"),
                (None, Some(code)) => format!("exit {code}"),
                (None, None) => "hang".to_owned(),
            };
            return Err(failed(&kind, None, &format!("torch was terminated by {kind}"), &stage));
        }
        if let Some(fault) = answer["fault"].as_str() {
            let stage = if answer["compiling"] == true { "compile" } else { stage.as_str() };
            return Err(failed(&format!("{FAULT}{fault}"), None, &told_of_fault(fault, &answer), stage));
        }
        if let Some(error) = answer["error"].as_object() {
            let text = |name: &str| error.get(name).and_then(Json::as_str);
            let compiling = error.get("compiling").and_then(Json::as_bool).unwrap_or(false);
            let stage = if compiling { "compile" } else { stage.as_str() };
            let memory = match text("memory") {
                Some("device") => Some(OUT_OF_DEVICE_MEMORY),
                Some(_) => Some("out of memory"),
                None => None,
            };
            if let Some(kind) = memory {
                return Err(failed(kind, None, text("message").unwrap_or(""), stage));
            }
            return Err(failed(
                text("kind").unwrap_or("Exception"),
                text("place"),
                text("message").unwrap_or(""),
                stage,
            ));
        }
        if answer["ok"] != true {
            return Err(worker(format_args!("it answered {answer}")));
        }
        self.changes.store(answer["changes"] == true, Ordering::Relaxed);
        self.results(place.path(), &inputs)
    }

    fn changes(&self) -> bool {
        self.changes.load(Ordering::Relaxed)
    }

    fn graphs(&self) -> Vec<(String, Graph)> {
        vec![("forward".to_owned(), self.graph.clone())]
    }
}

/// A fault in a line: which kernel, and what it had asserted.
fn told_of_fault(fault: &str, answer: &Json) -> String {
    let mut text = fault.to_owned();
    match answer["kernel"].as_str() {
        Some(kernel) => text += &format!(" in {kernel}"),
        None if answer["late"] == true => {
            text += "; with launches that wait for their kernels it does not come, so the kernel is not known";
        }
        None => {}
    }
    if let Some(assertion) = answer["assertion"].as_str() {
        text += &format!(": `{assertion}` does not hold");
    }
    text
}

/// Whether a program draws random numbers.
pub(crate) fn draws(graph: &Graph) -> bool {
    let random = |kind: &Kind| matches!(kind, Kind::Call(Target::Op(op)) if op.has(Tag::Random));
    graph.nodes().any(|(_, node)| random(&node.kind)) || graph.subgraphs().values().any(draws)
}

impl Program {
    fn time_limit(&self) -> Duration {
        limited(self.python.time_limit)
    }

    /// Asks the Python process. One that is gone, killed by whoever, is started anew once: what it starts crashes, it
    /// does not.
    fn ask(&self, request: &Json) -> Result<Json, NodeError> {
        let process = zygote(&self.python, &self.backend)?;
        match self.ask_of(&mut lock(&process), request) {
            Ok(answer) => return Ok(answer),
            Err(Gone::Told(error)) => return Err(error),
            Err(Gone::Ended) => {}
        }
        lock(RUNNING.get_or_init(Mutex::default)).retain(|_, known| !Arc::ptr_eq(known, &process));
        let process = zygote(&self.python, &self.backend)?;
        let mut process = lock(&process);
        match self.ask_of(&mut process, request) {
            Ok(answer) => Ok(answer),
            Err(Gone::Told(error)) => Err(error),
            Err(Gone::Ended) => {
                let said = process.errors();
                let last = said.trim().lines().last().unwrap_or("it printed nothing").to_owned();
                Err(worker(format_args!("the Python process is gone: {last}")))
            }
        }
    }

    fn ask_of(&self, process: &mut Process, request: &Json) -> Result<Json, Gone> {
        let sent = process.input.as_mut().map(|input| writeln!(input, "{request}").and_then(|()| input.flush()));
        if !matches!(sent, Some(Ok(()))) {
            return Err(Gone::Ended);
        }
        // The process keeps the time itself, of each half in two calls and of what is around them; it is given some more to say so.
        let until = Instant::now() + self.time_limit() * 4 * MOST_CROWDED + IMPORT * 3;
        match process.hear(until) {
            Heard::Line(line) => serde_json::from_str(&line)
                .map_err(|e| Gone::Told(worker(format_args!("the Python process answered {line:?}: {e}")))),
            Heard::Ended | Heard::TimeIsUp => Err(Gone::Ended),
        }
    }

    /// Reads the results, gives the inputs their contents after the run, and keeps who shares memory with whom.
    fn results(&self, folder: &Path, inputs: &[Value<Tensor>]) -> Result<Forward, NodeError> {
        let fault = |what: &str| worker(format_args!("torch's results cannot be read: {what}"));
        let bytes = std::fs::read(folder.join("results")).map_err(|e| fault(&e.to_string()))?;
        let end = bytes.iter().position(|b| *b == b'\n').ok_or_else(|| fault("no header"))?;
        let header: Json = serde_json::from_slice(&bytes[..end]).map_err(|e| fault(&e.to_string()))?;
        let mut own: Vec<Storage> = Vec::new();
        for input in inputs {
            input.each(&mut |tensor| {
                if !own.iter().any(|known| known.same(tensor.storage())) {
                    own.push(tensor.storage().clone());
                }
            });
        }
        let decoder = Decoder::over(&header, &bytes[end + 1..], &own).map_err(|e| fault(&e.to_string()))?;
        let value = |name: &str| decoder.value(&header[name]).map_err(|e| fault(&e.to_string()));
        let tensors = |value: Value<Tensor>| match value {
            Value::List(items) => items.into_iter().map(|v| v.as_tensor().cloned()).collect(),
            _ => Vec::new(),
        };
        let outputs = value("outputs")?;
        let gradients = InputGradients { inputs: tensors(value("gradients")?), parameters: Vec::new() };
        let mut named = Vec::new();
        for name in self.graph.parameters() {
            let gradient = decoder.value(&header["parameters"][&**name]).map_err(|e| fault(&e.to_string()))?;
            named.push((name.clone(), gradient.as_tensor().cloned()));
        }
        for (name, tensor) in self.graph.constants() {
            if let Ok(Value::Tensor(after)) = decoder.value(&header["buffers"][&**name])
                && after.shape() == tensor.shape()
                && after.dtype() == tensor.dtype()
            {
                tensor.write_from(&after);
            }
        }
        let gradients = InputGradients { parameters: named, ..gradients };
        let any = gradients.inputs.iter().any(Option::is_some) || gradients.parameters.iter().any(|(_, g)| g.is_some());
        let backward: Option<Box<dyn Backward>> = if any { Some(Box::new(Done { gradients })) } else { None };
        Ok(Forward { outputs, backward })
    }
}

/// Why the Python process gave no answer.
enum Gone {
    /// It ended, or is as good as ended.
    Ended,
    /// It said something else.
    Told(NodeError),
}

/// Gradients that torch has computed already, with the same loss.
#[derive(Clone)]
struct Done {
    gradients: InputGradients,
}

impl Backward for Done {
    fn wanted(&self) -> Vec<usize> {
        Vec::new()
    }

    fn again(&self) -> Box<dyn Backward> {
        Box::new(self.clone())
    }

    fn run(self: Box<Self>, _: Vec<Tensor>, _: &mut Observer<'_>) -> Result<InputGradients, NodeError> {
        Ok(self.gradients)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_a_folder_that_its_owner_alone_may_enter_is_ones_own() {
        let place = tempfile::tempdir().expect("a folder");
        let user = rustix::process::geteuid().as_raw();
        let own = place.path().join("own");
        assert!(make_own(&own, user).expect("a folder") && make_own(&own, user).expect("the same folder"));
        assert!(!make_own(&own, user + 1).expect("a folder"), "of another user");
        std::os::unix::fs::symlink(&own, place.path().join("link")).expect("a link");
        assert!(!make_own(&place.path().join("link"), user).expect("a link"), "a link that anybody may have put there");
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).expect("permissions");
        assert!(!make_own(&own, user).expect("a folder"), "open to others");
    }
}
