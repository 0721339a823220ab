//! Scripts that give a different result compiled than eager, reduced as Python source.
//!
//! Dynamo may be at fault where every graph is right: a guard is missing, a side effect is lost, a call is left out. No
//! graph shows that, so the script itself is the candidate. A script is run twice, without torch.compile and with it (by
//! default with the backend `eager`, so that Dynamo alone is judged), each time in a process of its own; what it prints,
//! what it raises and what its variables hold in the end is compared. [`minify`] finds a smaller script that differs in
//! the same way.
//!
//! The result is two files: `script.py`, the small script, and `repro.py`, which holds it and checks it in plain PyTorch:
//! exit code 1 and one line that begins with `bug: ` where the difference is there, 0 where it is not, 2 where it cannot
//! tell. It is proven when `python repro.py` says what was seen here.
//!
//! Invariants:
//! - a difference counts only where two eager runs agree with each other;
//! - a smaller script differs in the same way: the same kind of difference, for errors the same type and text but for names
//!   and numbers;
//! - what fails outside of the script (the interpreter, an import, the disk) is never a difference.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pyrite_debug::{BUG, Command, Heard, MOST_CROWDED, Process, Shown, crowding, plain_command, run_plainly};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_oracle::{Verdict, gist};
use pyrite_source::Size;
use serde_json::{Value as Json, json};

use crate::backend::check_command;
use crate::reporter::{Reporter, Searching};
use crate::{Host, SessionError, folder};

const OBSERVE: &str = include_str!("observe.py");
const SERVE: &str = include_str!("serve.py");
const CHECK: &str = include_str!("check.py");

/// How long an interpreter may take to import torch.
const IMPORT: Duration = Duration::from_mins(2);

/// How long a run may take where nobody says so.
const USUAL_LIMIT: Duration = Duration::from_mins(1);

/// What the reduction of a script may be told.
#[derive(Clone, Debug, Default)]
pub struct ScriptOptions {
    /// The backend of torch.compile in the compiled run; `eager` where none is named.
    pub backend: Option<String>,
    /// A command that is asked instead: it gets the path of a script and exits with 0, 1 (the failure is there) or 125.
    pub check: Option<String>,
    /// The script's arguments.
    pub words: Vec<String>,
    /// How many scripts are run at once.
    pub jobs: usize,
    /// How many seconds the search may take.
    pub time_budget: Option<f64>,
    /// How many seconds a run may take.
    pub time_limit: Option<f64>,
    /// The folder of the result.
    pub out: Option<PathBuf>,
    /// Where a new folder is made where none is named.
    pub beside: Option<PathBuf>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum ReducedScript {
    /// A smaller script.
    Smaller(Box<SmallScript>),
    /// There is no difference, or nobody can tell.
    Nothing {
        /// Why.
        reason: String,
    },
}

/// A small script that differs.
#[derive(Clone, Debug)]
pub struct SmallScript {
    /// How it differs: a word or two for the kind, and a sentence.
    pub difference: Difference,
    /// Its text.
    pub source: String,
    /// How large the script was, and is.
    pub sizes: (Size, Size),
    /// How many lines that are not empty it had, and has.
    pub lines: (usize, usize),
    /// How many scripts were run.
    pub queries: u64,
    /// How long it took.
    pub seconds: f64,
    /// Whether no single edit makes it smaller.
    pub is_minimal: bool,
    /// What came of running the written file.
    pub shown: Shown,
    /// The small script.
    pub script: PathBuf,
    /// The file that checks it; the script itself where a command was asked.
    pub repro: PathBuf,
}

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The kind, such as `result`, `error Unsupported`, `signal 11` or `hang`.
    pub way: String,
    /// A sentence.
    pub text: String,
}

impl Difference {
    /// Whether another difference is the same failure.
    fn holds(&self, other: &Self) -> bool {
        let is_error = self.way.starts_with("error ") || self.way.starts_with("no error ");
        self.way == other.way && (!is_error || gist(&self.text) == gist(&other.text))
    }
}

impl ReducedScript {
    /// Whether there is a file that was seen to fail as announced.
    pub fn is_proven(&self) -> bool {
        matches!(self, Self::Smaller(small) if small.shown.proven)
    }

    /// As an object for programs.
    pub fn data(&self) -> Json {
        match self {
            Self::Nothing { reason } => json!({"proven": false, "reason": reason}),
            Self::Smaller(small) => json!({
                "difference": small.difference.way, "text": small.difference.text, "program": small.source,
                "tokens_before": small.sizes.0.tokens, "tokens_after": small.sizes.1.tokens,
                "lines_before": small.lines.0, "lines_after": small.lines.1,
                "queries": small.queries, "seconds": small.seconds, "minimal": small.is_minimal,
                "proven": small.shown.proven, "line": small.shown.line, "command": small.shown.command,
                "script": small.script, "repro": small.repro,
            }),
        }
    }
}

/// Finds a smaller script that differs in the same way, and proves it.
pub fn minify(
    host: &Host,
    file: &Path,
    options: &ScriptOptions,
    reporter: &dyn Reporter,
) -> Result<ReducedScript, SessionError> {
    let begun = Instant::now();
    if let Some(out) = &options.out {
        folder::check_unused(out)?;
    }
    let source =
        std::fs::read_to_string(file).map_err(|error| bad(file, "the script cannot be read", &error.to_string()))?;
    if Size::of(&source).is_none() {
        return Err(bad(file, "the script is not valid Python", "its syntax is wrong"));
    }
    let asked = Asked::new(host, file, options)?;
    reporter.note("running the script without torch.compile and with it …");
    let first = match asked.ask(&source) {
        Answer::Differs(first) => first,
        Answer::Same => {
            let reason = "the compiled run does what the eager one does".to_owned();
            return Ok(ReducedScript::Nothing { reason });
        }
        Answer::Invalid(reason) => return Ok(ReducedScript::Nothing { reason }),
    };
    reporter.note(&format!("{}; searching for the smallest script that does", first.text));
    let fails = |text: &str| {
        !reporter.is_cancelled() && matches!(asked.ask(text), Answer::Differs(found) if first.holds(&found))
    };
    let until = options.time_budget.map(|seconds| begun + Duration::from_secs_f64(seconds));
    let settings = pyrite_source::Options { jobs: options.jobs.max(1), until };
    let mut tell = |kind: pyrite_source::Kind, queries: u64, best: &str| {
        reporter.searching(&Searching { pass: kind.name(), queries, best: Some((lines_of(best), best.len())) });
    };
    let reduction = pyrite_source::reduce(&source, &fails, settings, &mut tell);
    reporter.searched();
    let Some(reduction) = reduction else {
        return Err(bad(file, "the script is not valid Python", "its syntax is wrong"));
    };
    let difference = match asked.ask(&reduction.source) {
        Answer::Differs(found) => found,
        Answer::Same | Answer::Invalid(_) => first,
    };
    let out = match &options.out {
        Some(out) => out.clone(),
        None => folder::beside(file, options.beside.as_deref(), "minified")?,
    };
    let written = |error: std::io::Error| bad(file, "the result cannot be written", &error.to_string());
    std::fs::create_dir_all(&out).map_err(written)?;
    let script = out.join("script.py");
    std::fs::write(&script, &reduction.source).map_err(written)?;
    let repro = match asked {
        Asked::Command(_) => script.clone(),
        Asked::Pool(_) => {
            let path = out.join("repro.py");
            std::fs::write(&path, asked.checked(&reduction.source, host, &difference)).map_err(written)?;
            path
        }
    };
    let shown = asked.prove(&repro, host, &difference);
    Ok(ReducedScript::Smaller(Box::new(SmallScript {
        difference,
        lines: (lines_of(&source), lines_of(&reduction.source)),
        sizes: reduction.sizes,
        queries: reduction.queries,
        seconds: begun.elapsed().as_secs_f64(),
        is_minimal: reduction.is_minimal,
        source: reduction.source,
        shown,
        script,
        repro,
    })))
}

/// How many lines of a text are not empty.
fn lines_of(text: &str) -> usize {
    text.lines().filter(|line| !line.trim().is_empty()).count()
}

fn bad(file: &Path, what: &str, cause: &str) -> SessionError {
    SessionError::of(
        Diagnostic::error(Code::new("script::failed"), what)
            .at(Location::in_file(file))
            .cause(cause)
            .hint("name a Python script, a folder for the result with --out, and one for candidates with TMPDIR"),
    )
}

/// What a script was seen to do.
enum Answer {
    Differs(Difference),
    Same,
    Invalid(String),
}

/// Who is asked about a script.
enum Asked {
    Command(Box<Command>),
    Pool(Box<Pool>),
}

impl Asked {
    fn new(host: &Host, file: &Path, options: &ScriptOptions) -> Result<Self, SessionError> {
        let limit = options.time_limit.map_or(USUAL_LIMIT, Duration::from_secs_f64);
        let scratch =
            tempfile::tempdir().map_err(|error| bad(file, "cannot create a temporary folder", &error.to_string()))?;
        if let Some(command) = &options.check {
            check_command(command)?;
            let asked = Command::new(command, limit)?.supervised_by(host.supervisor());
            return Ok(Self::Command(Box::new(asked)));
        }
        let named = options.backend.as_deref().unwrap_or("eager");
        Ok(Self::Pool(Box::new(Pool {
            python: host.python.clone(),
            backend: named.strip_prefix("torch:").unwrap_or(named).to_owned(),
            words: options.words.clone(),
            home: std::path::absolute(file).ok().and_then(|file| file.parent().map(Path::to_owned)).unwrap_or_default(),
            limit,
            scratch,
            idle: Mutex::default(),
            numbers: Mutex::new(0),
        })))
    }

    fn ask(&self, source: &str) -> Answer {
        match self {
            Self::Pool(pool) => pool.ask(source),
            Self::Command(command) => {
                let path = command.scratch().join(format!("script_{:?}.py", std::thread::current().id()));
                if let Err(error) = std::fs::write(&path, source) {
                    return Answer::Invalid(error.to_string());
                }
                match command.ask(&path) {
                    Verdict::Fail(signature) => Answer::Differs(Difference {
                        way: signature.to_string(),
                        text: "the command reports the failure".to_owned(),
                    }),
                    Verdict::Invalid(why) => Answer::Invalid(why),
                    _ => Answer::Same,
                }
            }
        }
    }

    /// The file that checks a script.
    fn checked(&self, source: &str, host: &Host, difference: &Difference) -> String {
        let Self::Pool(pool) = self else { return source.to_owned() };
        let mut text = format!("# pyrite: script = {}\n", env!("CARGO_PKG_VERSION"));
        text.push_str(&format!("# pyrite: difference = {}: {}\n\n", difference.way, one_line(&difference.text)));
        text.push_str(&format!("PROGRAM = {}\n\n", quoted(source)));
        let words: Vec<String> = pool.words.iter().map(|word| quote(word)).collect();
        text.push_str(&format!(
            "BACKEND, WORDS, LIMIT, MOST_CROWDED = {}, [{}], {}, {MOST_CROWDED}\n\n",
            quote(&pool.backend),
            words.join(", "),
            pool.limit.as_secs_f64()
        ));
        text.push_str("# What follows runs the program without torch.compile and with it, and compares.\n\n");
        text.push_str(OBSERVE);
        for module in &host.python.imports {
            text.push_str(&format!("\n\nimport {module}  # noqa: E402, F401\n"));
        }
        text.push('\n');
        text.push_str(CHECK);
        text
    }

    /// Runs the written file as its reader would.
    fn prove(&self, path: &Path, host: &Host, difference: &Difference) -> Shown {
        let pool = match self {
            Self::Pool(pool) => pool,
            Self::Command(command) => {
                let (proven, line) = match command.ask(path) {
                    Verdict::Fail(signature) => (true, signature.to_string()),
                    other => (false, format!("{other:?}")),
                };
                return Shown { proven, line, command: format!("the command on {}", path.display()) };
            }
        };
        let command = plain_command(path, &host.python);
        match run_plainly(path, &host.python, pool.limit * 3 * MOST_CROWDED + IMPORT * 3) {
            Err(line) => Shown { proven: false, line, command },
            Ok(ran) => {
                let said = ran.lines.iter().rev().find(|line| line.starts_with(BUG)).or(ran.lines.last());
                let line =
                    said.cloned().unwrap_or_else(|| ran.errors.trim().lines().last().unwrap_or_default().to_owned());
                let rest = line.strip_prefix(BUG).and_then(|rest| rest.strip_prefix(&difference.way));
                let found = rest
                    .and_then(|rest| rest.strip_prefix(": "))
                    .map(|text| Difference { way: difference.way.clone(), text: text.to_owned() });
                let proven = ran.status.code() == Some(1) && found.is_some_and(|found| difference.holds(&found));
                Shown { proven, line, command }
            }
        }
    }
}

/// A text as one of Python's, in several lines where that is possible.
fn quoted(text: &str) -> String {
    if text.contains("'''") || text.contains('\\') || text.ends_with('\'') {
        return quote(text);
    }
    format!("'''\\\n{text}'''")
}

/// A text as one of Python's, in one line.
fn quote(text: &str) -> String {
    // JSON's escapes are Python's, too.
    Json::String(text.to_owned()).to_string()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Interpreters that have imported torch and run each script in a fork.
struct Pool {
    python: pyrite_debug::torch::Python,
    backend: String,
    words: Vec<String>,
    /// Where the script lies, and looks for its modules.
    home: PathBuf,
    limit: Duration,
    scratch: tempfile::TempDir,
    idle: Mutex<Vec<Process>>,
    numbers: Mutex<u64>,
}

impl Pool {
    fn ask(&self, source: &str) -> Answer {
        let folder = {
            let mut number = self.numbers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *number += 1;
            self.scratch.path().join(number.to_string())
        };
        let script = folder.join("script.py");
        if let Err(error) = std::fs::create_dir(&folder).and_then(|()| std::fs::write(&script, source)) {
            return Answer::Invalid(format!("{}: {error}", folder.display()));
        }
        let request = json!({
            "script": script, "words": self.words, "backend": self.backend, "folder": folder,
            "limit": self.limit.as_secs_f64() * crowding(),
        });
        let answer = self.answered(&request.to_string());
        let _ = std::fs::remove_dir_all(&folder);
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return Answer::Invalid(why),
        };
        let word = |key: &str| answer.get(key).and_then(Json::as_str).map(str::to_owned);
        match (word("way"), word("invalid")) {
            (Some(way), _) => Answer::Differs(Difference { way, text: word("text").unwrap_or_default() }),
            (None, Some(why)) => Answer::Invalid(why),
            (None, None) if answer.as_object().is_some_and(serde_json::Map::is_empty) => Answer::Same,
            (None, None) => Answer::Invalid(format!("unexpected answer from a worker: {answer}")),
        }
    }

    /// The answer to a request, by an interpreter that is idle, else by a new one.
    fn answered(&self, request: &str) -> Result<Json, String> {
        let idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        let mut process = match idle {
            Some(process) => process,
            None => self.start()?,
        };
        let input = process.input.as_mut().ok_or("a worker has no input")?;
        writeln!(input, "{request}")
            .and_then(|()| input.flush())
            .map_err(|error| format!("a worker is gone: {error}"))?;
        // Two eager runs and a compiled one.
        let answer = Self::line(&process, self.limit * 3 * MOST_CROWDED + IMPORT)?;
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(process);
        Ok(answer)
    }

    fn start(&self) -> Result<Process, String> {
        let place = self.scratch.path().join("worker.py");
        std::fs::write(&place, format!("{OBSERVE}\n\n{SERVE}"))
            .map_err(|error| format!("{}: {error}", place.display()))?;
        let python = &self.python;
        let mut command = Program::new(&python.interpreter);
        command.arg(&place).args(&python.imports).env("TORCH_WARM_POOL", "0");
        let given = std::env::var_os("PYTHONPATH").unwrap_or_default();
        let here = std::env::current_dir().ok().filter(|_| !python.imports.is_empty());
        let places = std::env::split_paths(&given).filter(|place| !place.as_os_str().is_empty());
        if let Ok(path) = std::env::join_paths(here.into_iter().chain([self.home.clone()]).chain(places)) {
            command.env("PYTHONPATH", path);
        }
        let process = Process::start(&mut command)
            .map_err(|error| format!("{} cannot be started: {error}", python.interpreter.display()))?;
        let said = Self::line(&process, IMPORT)?;
        match said.get("unfit").and_then(Json::as_str) {
            Some(why) => Err(why.to_owned()),
            None => Ok(process),
        }
    }

    fn line(process: &Process, time: Duration) -> Result<Json, String> {
        match process.hear(Instant::now() + time) {
            Heard::Line(line) => {
                serde_json::from_str(&line).map_err(|_| format!("unexpected line from a worker: {line}"))
            }
            Heard::TimeIsUp => Err("a worker does not answer".to_owned()),
            Heard::Ended => {
                std::thread::sleep(Duration::from_millis(100));
                let errors = process.errors();
                Err(format!("a worker exited: {}", errors.trim().lines().last().unwrap_or_default()))
            }
        }
    }
}
