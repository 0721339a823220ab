//! `torch:NAME`: any backend of torch.compile, and `torch:eager`, as one of Pyrite's.
//!
//! A Python process imports torch once and forks for every program, so a crash of a compiler under test ends a fork and
//! nothing else. It gets the text that Pyrite prints of the parsed graph, never the text of a stranger's file, and hands
//! back outputs, gradients and what the run left in its inputs. A name may carry settings; `settings.rs` says which.

mod settings;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use pyrite_compiler::backend::{
    Backend, Backward, Direction, Executable, Forward, InputGradients, Observer, Options, register_prefix,
};
use pyrite_ir::{Graph, NodeError, OpError, Value};
use pyrite_reduce::Candidate;
use pyrite_tensor::{Storage, Tensor};
use serde_json::{Value as Json, json};

use crate::commanded::CANNOT_TELL;
use crate::process::{Heard, Process};
use crate::protocol::Decoder;
use crate::repro::Folder;

const WORKER: &str = include_str!("worker.py");

/// How long torch may take to be imported.
const IMPORT: Duration = Duration::from_mins(2);

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

static REGISTERED: OnceLock<Python> = OnceLock::new();

/// Starts the Python process for a backend, if it is one of torch's, so that its first program need not wait.
pub fn prepare(backend: &str) {
    if let (Some(name), Some(python)) = (backend.strip_prefix("torch:"), REGISTERED.get()) {
        // The first program starts it again, and tells what is wrong.
        let _ = zygote(python, name);
    }
}

/// Makes `torch:NAME` a backend for every name.
pub fn register(python: Python) {
    let _ = REGISTERED.set(python.clone());
    register_prefix("torch:", move |name| {
        let python = python.clone();
        let inner = name.to_owned();
        Some(Backend::new(&format!("torch:{name}"), "torch.compile's backend of that name", move |graph, options| {
            Ok(Box::new(Program { graph, backend: inner.clone(), python: python.clone(), options: options.clone() }))
        }))
    });
}

/// A program that torch runs.
struct Program {
    graph: Graph,
    backend: String,
    python: Python,
    options: Options,
}

/// The processes that fork, by interpreter and imports.
static RUNNING: OnceLock<Mutex<BTreeMap<String, Arc<Mutex<Process>>>>> = OnceLock::new();

/// The process that forks, one for each interpreter and set of imports; started at the first use.
fn zygote(python: &Python, backend: &str) -> Result<Arc<Mutex<Process>>, OpError> {
    let mut words: Vec<String> = python.imports.clone();
    if settings::base(backend) == "inductor" {
        words.push("inductor".to_owned());
    }
    let key = format!("{} {}", python.interpreter.display(), words.join(" "));
    let mut running = lock(RUNNING.get_or_init(Mutex::default));
    if let Some(process) = running.get(&key) {
        return Ok(process.clone());
    }
    let mut command = Command::new(&python.interpreter);
    command.arg("-c").arg(WORKER).args(&words);
    if std::env::var_os("TORCHINDUCTOR_CACHE_DIR").is_none() {
        command.env("TORCHINDUCTOR_CACHE_DIR", std::env::temp_dir().join("pyrite-inductor"));
    }
    let interpreter = python.interpreter.display();
    let process = Process::start(&mut command).map_err(|error| {
        unavailable(format!(
            "torch backends need Python: {interpreter} cannot be started ({error}); name an interpreter that has torch \
             with --python"
        ))
    })?;
    match process.hear(Instant::now() + IMPORT) {
        Heard::Line(line) if line.contains("ready") => {}
        Heard::TimeIsUp => {
            return Err(unavailable(format!(
                "{interpreter} did not import torch within {} s; try again when less runs beside it",
                IMPORT.as_secs()
            )));
        }
        Heard::Line(_) | Heard::Ended => {
            let said = process.errors();
            let last = said.trim().lines().last().unwrap_or("no answer").to_owned();
            return Err(unavailable(format!(
                "torch cannot be imported by {interpreter}: {last}; name an interpreter that has torch with --python"
            )));
        }
    }
    let process = Arc::new(Mutex::new(process));
    running.insert(key, process.clone());
    Ok(process)
}

/// Where there is no torch, nobody can tell how a program does in it.
fn unavailable(message: String) -> OpError {
    OpError::Outside { kind: CANNOT_TELL.to_owned(), place: None, message, stage: "compile".to_owned() }
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
    fn run(&self, inputs: Vec<Value<Tensor>>, _: &mut Observer<'_>) -> Result<Forward, NodeError> {
        let fault = |what: String| NodeError::from(OpError::fault(what));
        let place = tempfile::tempdir().map_err(|e| fault(format!("no temporary folder: {e}")))?;
        let folder = Folder::scratch(place.path()).map_err(|e| fault(e.to_string()))?;
        let candidate = Candidate { graph: self.graph.clone(), inputs: inputs.clone(), seed: self.options.seed };
        folder.write("program.py", &candidate, &[]).map_err(|e| fault(e.to_string()))?;
        let forward_only = self.options.direction == Direction::Forward;
        let request = json!({
            "folder": place.path(),
            "backend": settings::base(&self.backend),
            "settings": settings::settings(&self.backend),
            "seed": self.options.seed,
            "forward_only": forward_only,
            "time_limit": self.python.time_limit.as_secs_f64(),
        });
        let answer = self.ask(&request)?;
        let stage = answer["stage"].as_str().unwrap_or("forward").to_owned();
        if let Some(died) = answer["died"].as_object() {
            let kind = match (died.get("signal").and_then(Json::as_i64), died.get("exit").and_then(Json::as_i64)) {
                (Some(signal), _) => format!("signal {signal}"),
                (None, Some(code)) => format!("exit {code}"),
                (None, None) => "hang".to_owned(),
            };
            return Err(failed(&kind, None, &format!("torch ended by {kind}"), &stage));
        }
        if let Some(error) = answer["error"].as_object() {
            let text = |name: &str| error.get(name).and_then(Json::as_str);
            let compiling = error.get("compiling").and_then(Json::as_bool).unwrap_or(false);
            let stage = if compiling { "compile" } else { stage.as_str() };
            if error.get("memory").and_then(Json::as_bool).unwrap_or(false) {
                return Err(failed("out of memory", None, text("message").unwrap_or(""), stage));
            }
            return Err(failed(
                text("kind").unwrap_or("Exception"),
                text("place"),
                text("message").unwrap_or(""),
                stage,
            ));
        }
        self.results(place.path(), &inputs)
    }

    fn graphs(&self) -> Vec<(String, Graph)> {
        vec![("forward".to_owned(), self.graph.clone())]
    }
}

impl Program {
    /// Asks the Python process. One that is gone, killed by whoever, is started anew once: its forks crash, it does not.
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
                let last = said.trim().lines().last().unwrap_or("it said nothing").to_owned();
                Err(OpError::fault(format!("the Python process is gone: {last}")).into())
            }
        }
    }

    fn ask_of(&self, process: &mut Process, request: &Json) -> Result<Json, Gone> {
        let sent = process.input.as_mut().map(|input| writeln!(input, "{request}").and_then(|()| input.flush()));
        if !matches!(sent, Some(Ok(()))) {
            return Err(Gone::Ended);
        }
        // The process keeps the time itself; it is given some more to say so.
        let until = Instant::now() + self.python.time_limit + Duration::from_secs(30);
        match process.hear(until) {
            Heard::Line(line) => serde_json::from_str(&line)
                .map_err(|e| Gone::Told(OpError::fault(format!("the Python process answered {line:?}: {e}")).into())),
            Heard::Ended | Heard::TimeIsUp => Err(Gone::Ended),
        }
    }

    /// Reads the results, gives the inputs their contents after the run, and keeps who shares memory with whom.
    fn results(&self, folder: &Path, inputs: &[Value<Tensor>]) -> Result<Forward, NodeError> {
        let fault = |what: &str| NodeError::from(OpError::fault(format!("torch's results cannot be read: {what}")));
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
