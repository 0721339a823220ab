//! Proofs by plain PyTorch.
//!
//! A repro for a backend of torch.compile is proven by running it as its reader would: `python repro.py` in a fresh
//! interpreter, with a fresh folder for what compilers cache, and nothing of Pyrite in it. All that the folder may hold is
//! what Inductor found out about the processor, which is the same for every program. What the file says and how it ends
//! must fit the signature; the line that says so is the evidence. Anything else is no proof, whatever a worker saw.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use pyrite_oracle::{Class, Signature, gist};

use crate::process::{Heard, MOST_CROWDED, Process};
use crate::script::signal_name;
use crate::torch::{IMPORT, Python, give_probes};

/// What came of running a repro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whether the file failed as announced.
    pub proven: bool,
    /// What it said, and how it ended where it printed nothing.
    pub line: String,
    /// The command that does the same.
    pub command: String,
}

/// How the line begins that tells of a bug.
pub const BUG: &str = "bug: ";

/// What a line says of an error that says nothing, such as a bare `assert`.
pub const NOTHING: &str = "nothing";

/// How a file that plain Python ran came to its end.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How the process ended.
    pub status: ExitStatus,
    /// What it printed.
    pub lines: Vec<String>,
    /// What it said last on standard error.
    pub errors: String,
}

/// The command with which a reader runs a file.
pub fn plain_command(path: &Path, python: &Python) -> String {
    let search_path = search_path(python);
    let prefix = search_path.as_ref().map(|path| format!("PYTHONPATH={} ", path.to_string_lossy())).unwrap_or_default();
    format!("{prefix}{} {}", python.interpreter.display(), path.display())
}

/// Runs a file in a fresh interpreter with fresh caches, and nothing of Pyrite; why it did not run, or not end in a time,
/// where that is so.
pub fn run_plainly(path: &Path, python: &Python, time: Duration) -> Result<Ran, String> {
    run_words(&[path.into()], python, &[], time)
}

/// The same for a file with arguments, and variables of its environment.
pub(crate) fn run_words(
    words: &[OsString],
    python: &Python,
    environment: &[(&str, &str)],
    time: Duration,
) -> Result<Ran, String> {
    run_program(&python.interpreter, words, python, environment, time)
}

/// The same for a program that starts the interpreter itself.
pub(crate) fn run_program(
    program: &Path,
    words: &[OsString],
    python: &Python,
    environment: &[(&str, &str)],
    time: Duration,
) -> Result<Ran, String> {
    let caches = tempfile::tempdir().map_err(|error| format!("no temporary folder for caches: {error}"))?;
    let name = program.display();
    let mut program = Command::new(program);
    program.args(words).envs(environment.iter().copied());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PYRITE_")) {
        if !name.to_string_lossy().starts_with("PYRITE_TEST_") {
            program.env_remove(name);
        }
    }
    // Without them the proof takes longer, and says the same.
    let _ = give_probes(&python.interpreter, &caches.path().join("inductor"));
    program.env("TORCHINDUCTOR_CACHE_DIR", caches.path().join("inductor"));
    program.env("TRITON_CACHE_DIR", caches.path().join("triton"));
    program.envs(search_path(python).map(|path| ("PYTHONPATH", path)));
    let mut process = Process::start(&mut program).map_err(|error| format!("{name} cannot be started: {error}"))?;
    drop(process.input.take());
    let until = Instant::now() + time;
    let mut lines = Vec::new();
    while let Heard::Line(line) = process.hear(until) {
        lines.push(line);
    }
    let status = process.wait(until).ok_or("it did not finish in time")?;
    Ok(Ran { status, lines, errors: process.errors() })
}

/// Runs a repro and compares how it ends with its signature. `time` is how long a run may take before it is a hang.
pub fn show(path: &Path, python: &Python, signature: &Signature, time: Duration) -> Shown {
    let command = plain_command(path, python);
    // The file limits a hang itself; this is for what hangs unannounced.
    let Ran { status, lines, errors } = match run_plainly(path, python, time * 2 * MOST_CROWDED + IMPORT * 2) {
        Ok(ran) => ran,
        Err(line) => return Shown { proven: false, line, command },
    };
    let said = announced(&lines, signature).or_else(|| lines.last().cloned()).unwrap_or_default();
    let proven = fits(signature, status, &said);
    let line = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("it is terminated by signal {signal} ({})", signal_name(signal)),
        (None, Some(1)) if said.starts_with(BUG) => said,
        (None, code) => {
            let last = if said.is_empty() { errors.trim().lines().last().unwrap_or_default().to_owned() } else { said };
            format!("it exits with code {}: {last}", code.unwrap_or(-1))
        }
    };
    Shown { proven, line, command }
}

/// The last line that tells of the bug. What a backend printed without ending its line stands before it.
fn announced(lines: &[String], signature: &Signature) -> Option<String> {
    let told = format!("{BUG}{}", signature.told());
    let glued = lines.iter().rev().find_map(|line| line.find(&told).map(|at| line[at..].to_owned()));
    glued.or_else(|| lines.iter().rev().find(|line| line.starts_with(BUG)).cloned())
}

/// Where Python looks for modules to import: in the folder that Pyrite was started in too.
fn search_path(python: &Python) -> Option<OsString> {
    if python.imports.is_empty() {
        return None;
    }
    let own = std::env::current_dir().ok()?;
    let given = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let given = std::env::split_paths(&given).filter(|path| !path.as_os_str().is_empty()).collect::<Vec<_>>();
    std::env::join_paths(std::iter::once(own).chain(given)).ok()
}

/// Whether a process ended, and said, what a signature announces.
fn fits(signature: &Signature, status: ExitStatus, said: &str) -> bool {
    match signature.class {
        Class::Signal(signal) => return status.signal() == Some(signal),
        Class::OutOfMemory if status.signal() == Some(9) => return true,
        Class::Garbage => return false,
        _ => {}
    }
    let rest = said.strip_prefix(BUG).and_then(|said| said.strip_prefix(&signature.told()));
    let (Some(rest), Some(1)) = (rest, status.code()) else { return false };
    let text = signature.site.as_ref().and_then(|site| site.text.as_ref());
    match (signature.class, text) {
        (Class::Error | Class::MissingError, Some(text)) => {
            let fits = |said: &str| gist(said) == *text || text.is_empty() && said == NOTHING;
            rest.strip_prefix(": ").is_some_and(fits)
        }
        _ => rest.is_empty() || rest.starts_with(": "),
    }
}

#[cfg(test)]
mod tests {
    use pyrite_oracle::Stage;

    use super::*;

    fn code(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn what_a_backend_prints_does_not_hide_the_line() {
        let value = Signature::new(Stage::Forward, Class::Value);
        let line = "bug: forward: values differ: output 0";
        let lines = ["compiling...", &format!("50 %{line}"), "done"].map(str::to_owned);
        assert_eq!(announced(&lines, &value).as_deref(), Some(line));
        assert_eq!(announced(&["bug: forward: hang".to_owned()], &value).as_deref(), Some("bug: forward: hang"));
    }

    #[test]
    fn only_the_announced_end_is_a_proof() {
        let value = Signature::new(Stage::Forward, Class::Value);
        assert!(fits(&value, code(1), "bug: forward: values differ: output 0[0] is 1 in eager, 2 compiled"));
        assert!(!fits(&value, code(1), "bug: forward: stride differs: output 0"), "another part of the contract");
        assert!(!fits(&value, code(1), "Traceback"), "an error of the file's own");
        assert!(!fits(&value, code(0), "bug: forward: values differ: x"));
        assert!(!fits(&value, ExitStatus::from_raw(11), "bug: forward: values differ: x"));

        let error = Signature::new(Stage::Compile, Class::Error).raised("ValueError", Some("f in g.py"));
        let error = error.saying("relu of 3 elements is refused");
        let line = |said: &str| format!("bug: compile: error ValueError at f in g.py: {said}");
        assert!(fits(&error, code(1), &line("relu of 7 elements is refused")));
        assert!(!fits(&error, code(1), &line("there is no compiler")), "another error of the same function");

        let silent = Signature::new(Stage::Compile, Class::Error).raised("ValueError", Some("f in g.py")).saying("");
        assert!(fits(&silent, code(1), &line("nothing")) && !fits(&silent, code(1), &line("relu is refused")));

        let missing = Signature::new(Stage::Forward, Class::MissingError).raised("IndexError", None);
        let missing = missing.saying("index 9 is out of bounds");
        assert!(fits(&missing, code(1), "bug: forward: missing error IndexError: index 3 is out of bounds"));
        assert!(!fits(&missing, code(1), "bug: forward: missing error IndexError: too many indices"));

        let crash = Signature::new(Stage::Forward, Class::Signal(11));
        assert!(fits(&crash, ExitStatus::from_raw(11), ""));
        assert!(!fits(&crash, ExitStatus::from_raw(6), "") && !fits(&crash, code(1), "bug: forward: signal 11"));
    }
}
