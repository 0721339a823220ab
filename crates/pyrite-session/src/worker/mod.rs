//! A worker: answers requests on standard input until it ends (`pyrite worker`).
//!
//! A message is one line of JSON followed by as many raw bytes as its field `blob` says. Requests: `call` runs one
//! operator, `run` a graph given as text, `grad` such a graph and its derivative, `judge`
//! compares two backends on a file, `analyze` compares them value by value, and `prepare` loads what such a question needs. The answer's first storages are those of
//! the request after the run, so that the caller sees what was written and what is shared; further ones are fresh.

mod gradient;
mod supervise;

use std::io::{self, BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyrite_compiler::backend::Direction;
use pyrite_compiler::{Options, find};
use pyrite_debug::protocol::{Decoder, Encoder};
use pyrite_debug::torch::Python;
use pyrite_debug::{Question, Step, judge_file};
use pyrite_diag::{Colour, TextRenderer};
use pyrite_interp::{Context, Interpreter, Mode, call};
use pyrite_ir::verify::verify;
use pyrite_ir::{Graph, Kind, Meta, NodeError, OpError, Target, Value};
use pyrite_ops::registry;
use pyrite_oracle::Verdict;
use pyrite_reader::{ReadOptions, codes, read_text};
use pyrite_tensor::Tensor;
use serde_json::{Value as Json, json};

use crate::SessionError;
use crate::analyze::analyze_file;

use supervise::is_gone;
pub use supervise::supervise;

/// The largest message that is read; a larger one is a caller's mistake.
const MAX_BLOB: u64 = 8 << 30;

/// How often a worker looks whether its parent is there.
const LOOK: Duration = Duration::from_millis(100);

/// Ends this process and its group when the parent is gone, also in the middle of an answer that nobody waits for.
fn end_with(parent: u32) {
    std::thread::spawn(move || {
        while !is_gone(parent) {
            std::thread::sleep(LOOK);
        }
        // A worker that Pyrite has started leads its group.
        let own = rustix::process::getpid();
        let _ = rustix::process::kill_process_group(own, rustix::process::Signal::KILL);
        std::process::exit(1);
    });
}

/// Becomes a worker or a supervisor where the command line of this process asks for one, and gives the exit code. A
/// program whose sessions use itself as the worker ([`Invocation::of_this_binary`](crate::Invocation::of_this_binary))
/// begins its `main` with this.
pub fn serve_if_asked() -> Option<u8> {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let place = words.iter().position(|word| word == "worker" || word == "supervise")?;
    let all = |name: &str| words.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1].clone()).collect();
    let number = |name: &str| Vec::pop(&mut all(name)).and_then(|text: String| text.parse::<u64>().ok());
    let parent = number("--parent").and_then(|id| u32::try_from(id).ok())?;
    let ended = if words[place] == "supervise" {
        let command = words.iter().position(|word| word == "--").map_or(&[][..], |dashes| &words[dashes + 1..]);
        supervise(parent, command)
    } else {
        let (interpreter, imports): (Vec<String>, Vec<String>) = (all("--python"), all("--import"));
        let python = Python::new(interpreter.first().map(PathBuf::from));
        pyrite_debug::torch::register(Python { imports, ..python });
        serve(number("--memory-limit"), Some(parent)).map(|()| 0)
    };
    Some(ended.unwrap_or_else(|error| {
        eprintln!("{error}");
        2
    }))
}

/// Answers until the end of input.
pub fn serve(memory_limit: Option<u64>, parent: Option<u32>) -> Result<(), SessionError> {
    let failed = |what: &str| SessionError::system(what.to_owned());
    // Whoever asked hears which node a worker died at.
    let _heard = pyrite_debug::signals::install();
    if let Some(bytes) = memory_limit {
        let limit = rustix::process::Rlimit { current: Some(bytes), maximum: Some(bytes) };
        rustix::process::setrlimit(rustix::process::Resource::Data, limit)
            .map_err(|error| failed("limiting memory")(error.into()))?;
    }
    if let Some(parent) = parent {
        end_with(parent);
    }
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    // A panic is reported in the answer; its text on standard error would only be noise there.
    std::panic::set_hook(Box::new(|_| {}));
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line).map_err(failed("reading a request"))? == 0 {
            return Ok(());
        }
        let request: Json =
            serde_json::from_str(&line).map_err(|error| failed("a request is not JSON")(error.into()))?;
        let size = request["blob"].as_u64().unwrap_or(0);
        if size > MAX_BLOB {
            let cause = io::Error::other(format!("a request of {size} bytes is larger than the limit of {MAX_BLOB}"));
            return Err(failed("reading a request")(cause));
        }
        let mut blob = vec![0; size as usize];
        input.read_exact(&mut blob).map_err(failed("reading a request's bytes"))?;
        let (answer, blob) = if let Some(cmd @ ("judge" | "prepare" | "analyze")) = request["cmd"].as_str() {
            (about_a_question(cmd, &request, &mut output)?, Vec::new())
        } else {
            let (mut answer, blob) = answer(&request, &blob);
            answer["id"] = request["id"].clone();
            answer["blob"] = json!(blob.len());
            (answer, blob)
        };
        let sent = writeln!(output, "{answer}").and_then(|()| output.write_all(&blob)).and_then(|()| output.flush());
        sent.map_err(failed("answering a request"))?;
    }
}

/// Answers a request that has a question.
fn about_a_question(cmd: &str, request: &Json, output: &mut impl Write) -> Result<Json, SessionError> {
    let wrong = |what: String| SessionError::system("a request is not one")(io::Error::other(what));
    let question: Question =
        serde_json::from_value(request["question"].clone()).map_err(|error| wrong(error.to_string()))?;
    if cmd == "prepare" {
        prepare(&question);
        return Ok(json!({"prepared": true}));
    }
    let path = request["file"].as_str().ok_or_else(|| wrong("a question without a file".to_owned()))?;
    if let Some(seconds) = request["time_limit"].as_f64() {
        pyrite_debug::torch::limit_time(Duration::from_secs_f64(seconds));
    }
    Ok(match cmd {
        "analyze" => match catch_unwind(AssertUnwindSafe(|| analyze_file(Path::new(path), &question))) {
            Ok(Ok(analysis)) => json!({"analysis": analysis}),
            Ok(Err(stopped)) => json!({"message": stopped}),
            Err(_) => json!({"message": "the worker panicked"}),
        },
        _ => judge(Path::new(path), &question, output),
    })
}

/// Loads what a question will need. What fails here fails again, with its reason, when the question is asked.
fn prepare(question: &Question) {
    let _ = registry();
    for backend in [&question.backend, &question.reference] {
        pyrite_debug::torch::prepare(backend);
    }
}

/// Judges a backend on a file. Every step is told before it begins, so that the caller knows where a crash happened.
fn judge(path: &Path, question: &Question, output: &mut impl Write) -> Json {
    let mut tell = |step: Step| {
        let step = match step {
            Step::Reference => json!({"reference": true}),
            Step::Backend(stage) => json!({"stage": stage}),
        };
        // A caller that is gone is noticed when the answer is written.
        let _ = writeln!(output, "{step}").and_then(|()| output.flush());
    };
    let verdict = catch_unwind(AssertUnwindSafe(|| judge_file(path, question, &mut tell)));
    match verdict {
        Ok(verdict) => json!({"verdict": verdict}),
        Err(_) => json!({"verdict": Verdict::Invalid("the worker panicked".to_owned())}),
    }
}

/// Why a request has no result.
struct Refusal {
    kind: &'static str,
    message: String,
    op: Option<String>,
}

impl Refusal {
    fn of(error: &OpError, op: Option<String>) -> Self {
        let kind = match error {
            OpError::Invalid(_) | OpError::OutOfRange(_) => "invalid",
            OpError::Unsupported(_) => "unsupported",
            OpError::Fault(_) | OpError::Outside { .. } => "error",
        };
        Self { kind, message: error.to_string(), op }
    }

    fn at(error: &NodeError) -> Self {
        Self { message: error.to_string(), ..Self::of(&error.error, error.op.clone()) }
    }

    fn bad_request(message: impl ToString) -> Self {
        Self { kind: "invalid", message: message.to_string(), op: None }
    }
}

fn answer(request: &Json, blob: &[u8]) -> (Json, Vec<u8>) {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let decoder = Decoder::new(request, blob).map_err(Refusal::bad_request)?;
        let result = match request["cmd"].as_str() {
            Some("call") => one_call(request, &decoder)?,
            Some("run") => run(request, &decoder)?,
            Some("grad") => gradient::answer(request, &decoder)?,
            other => return Err(Refusal::bad_request(format!("unknown request {other:?}"))),
        };
        Ok(Encoder::encode(&decoder, &result))
    }));
    match result {
        Ok(Ok((output, storages, blob))) => (json!({"ok": true, "output": output, "storages": storages}), blob),
        Ok(Err(refusal)) => {
            (json!({"ok": false, "kind": refusal.kind, "message": refusal.message, "op": refusal.op}), Vec::new())
        }
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            let message = format!("panic: {}", text.unwrap_or_default());
            (json!({"ok": false, "kind": "error", "message": message, "op": request["op"]}), Vec::new())
        }
    }
}

fn seed(request: &Json) -> u64 {
    request["seed"].as_u64().unwrap_or(0)
}

fn one_call(request: &Json, decoder: &Decoder) -> Result<Value<Tensor>, Refusal> {
    let name = request["op"].as_str().unwrap_or_default();
    let op = registry().get(name).ok_or_else(|| Refusal {
        kind: "unsupported",
        message: format!("unknown operator {name}"),
        op: Some(name.to_owned()),
    })?;
    let args = decoder.values(&request["inputs"]).map_err(Refusal::bad_request)?;
    let mut kwargs = Vec::new();
    if let Json::Object(named) = &request["kwargs"] {
        for (name, value) in named {
            kwargs.push((name.clone(), decoder.value(value).map_err(Refusal::bad_request)?));
        }
    }
    let bound = op.schema.bind(&args, &kwargs).map_err(Refusal::bad_request)?;
    let context = Context::new(registry(), seed(request));
    call(&context, op, bound).map_err(|error| Refusal::of(&error, Some(name.to_owned())))
}

/// The graph of a request, with operators that are all known.
fn graph(request: &Json) -> Result<Graph, Refusal> {
    let text = request["graph"].as_str().ok_or_else(|| Refusal::bad_request("a request without a graph"))?;
    let read = read_text(text, None, registry(), &ReadOptions::default()).map_err(|diagnostics| {
        let renderer = TextRenderer::new(Colour::Plain).unnamed_source(text);
        // A data type of PyTorch's that Pyrite does not have is a gap, not a wrong program.
        let gap = diagnostics.iter().any(|d| d.code == codes::UNKNOWN_DTYPE);
        let refusal = Refusal::bad_request(renderer.render_all(&diagnostics));
        if gap { Refusal { kind: "unsupported", ..refusal } } else { refusal }
    })?;
    for (_, node) in read.graph.nodes() {
        if let Kind::Call(Target::Opaque(name)) = &node.kind {
            let op = name.strip_prefix("torch.ops.").unwrap_or(name);
            return Err(Refusal {
                kind: "unsupported",
                message: format!("unknown operator {op}"),
                op: Some(op.to_owned()),
            });
        }
    }
    if let Some(problem) = verify(&read.graph, None).first() {
        return Err(Refusal::bad_request(problem));
    }
    Ok(read.graph)
}

fn run(request: &Json, decoder: &Decoder) -> Result<Value<Tensor>, Refusal> {
    let inputs = decoder.values(&request["inputs"]).map_err(Refusal::bad_request)?;
    interpret(request, &graph(request)?, inputs)
}

/// Runs a graph in the request's mode with the request's seed.
fn interpret(request: &Json, graph: &Graph, inputs: Vec<Value<Tensor>>) -> Result<Value<Tensor>, Refusal> {
    if request["mode"].as_str() == Some("native") {
        return compiled(request, graph, inputs);
    }
    let context = Context::new(registry(), seed(request));
    let interpreter = Interpreter { context: &context, mode: mode(request)? };
    interpreter.run(graph, inputs).map_err(|error| Refusal::at(&error))
}

/// Compiles a graph natively and runs that.
fn compiled(request: &Json, graph: &Graph, inputs: Vec<Value<Tensor>>) -> Result<Value<Tensor>, Refusal> {
    let native = find("native").ok_or_else(|| Refusal::bad_request("there is no backend native"))?;
    let options = Options { seed: seed(request), direction: Direction::Forward, ..Options::default() };
    let mut graph = graph.clone();
    let metas: Vec<_> =
        graph.placeholders().map(|(id, _)| id).zip(&inputs).map(|(id, v)| (id, v.map(&mut Meta::of))).collect();
    for (id, meta) in metas {
        graph.set_meta(id, meta);
    }
    let executable = (native.compile)(graph, &options).map_err(|error| Refusal::at(&error))?;
    let forward = executable.run(inputs, None, &mut |_, _| {}).map_err(|error| Refusal::at(&error))?;
    Ok(forward.outputs)
}

fn mode(request: &Json) -> Result<Mode, Refusal> {
    match request["mode"].as_str() {
        None | Some("eager") => Ok(Mode::Eager),
        Some("fp64") => Ok(Mode::Fp64),
        Some("schema") => Ok(Mode::SchemaCheck),
        Some("crossref") => Ok(Mode::CrossReference),
        Some(other) => Err(Refusal::bad_request(format!("unknown mode {other}"))),
    }
}
