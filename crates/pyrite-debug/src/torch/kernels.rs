//! The guilty kernel of a program that Inductor compiles wrongly.
//!
//! A repro, or a training script, is run once more in a fresh interpreter by `kernel_check.py`, which looks at every launch
//! of a kernel and writes the first guilty one as `kernel.py`. That file is proven as a repro is: plain Python runs it, and
//! it has to end as announced. Where NVIDIA's compute-sanitizer is installed and a kernel faults on a GPU or writes beyond a
//! buffer there, its report says which access did so.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyrite_oracle::Class;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::sanitizer::{self, Access};
use super::{IMPORT, Python};
use crate::process::MOST_CROWDED;
use crate::proof::{BUG, Ran, Shown, plain_command, run_plainly, run_words};

const CHECK: &str = include_str!("kernel_check.py");

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The first kernel that computes another value than eager, writes beyond a buffer, leaves elements unwritten or faults.
    Values,
    /// The same where the process ends by a signal: each kernel is written down before it is launched.
    Crash(i32),
    /// The first kernel that makes NaN or infinity of finite numbers.
    Nan,
}

/// What a check of all kernels came to.
#[derive(Clone, Debug)]
pub enum Checked {
    /// A guilty kernel.
    Guilty(Box<GuiltyKernel>),
    /// No kernel is guilty of anything that is looked for.
    Nothing {
        /// How many launches were looked at.
        launches: u64,
        /// How many values were compared with eager.
        compared: u64,
        /// How long each kernel took.
        times: Vec<LaunchTime>,
        /// How the script itself failed, if it did.
        failed: Option<ScriptFailure>,
    },
}

/// How a script failed by itself.
#[derive(Clone, Debug)]
pub struct ScriptFailure {
    /// Its exit code.
    pub code: i32,
    /// The last line that it said, such as the error that it raised.
    pub line: String,
}

/// How long a kernel took.
#[derive(Clone, Debug, Deserialize)]
pub struct LaunchTime {
    /// Its name, or that of the operator that generated code calls.
    pub name: String,
    /// Seconds of its fastest launch.
    pub seconds: f64,
    /// Whether it is an operator, and not generated.
    #[serde(rename = "extern")]
    pub is_operator: bool,
    /// Its text; empty for an operator.
    #[serde(default)]
    pub code: String,
}

/// A kernel that does what it should not.
#[derive(Clone, Debug)]
pub struct GuiltyKernel {
    /// Its name, or that of the operator that generated code calls.
    pub kernel: String,
    /// What it does: `value`, `overrun`, `unwritten`, `nonfinite`, `fault` or `crash`.
    pub kind: String,
    /// The same in a sentence.
    pub text: String,
    /// The nodes of Inductor's graph that it was generated from.
    pub nodes: Vec<String>,
    /// The lines of the user's program that those come from.
    pub source: Vec<String>,
    /// The call of its graph in which it was seen, from 1.
    pub call: u64,
    /// The kernel alone.
    pub file: Option<PathBuf>,
    /// What came of running that file.
    pub shown: Option<Shown>,
    /// The graph with the inputs of that call, where they were asked for.
    pub program: Option<PathBuf>,
    /// What compute-sanitizer says, where it was asked.
    pub access: Option<Access>,
    /// How long each kernel took until it was found.
    pub times: Vec<LaunchTime>,
}

/// `kernels.json`.
#[derive(Deserialize)]
struct Record {
    kind: Option<String>,
    #[serde(default)]
    kernel: Option<String>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    nodes: Vec<String>,
    #[serde(default)]
    source: Vec<String>,
    #[serde(default)]
    call: u64,
    #[serde(default)]
    launches: u64,
    #[serde(default)]
    checked: u64,
    #[serde(default)]
    file: Option<PathBuf>,
    #[serde(default)]
    program: Option<PathBuf>,
    #[serde(default)]
    times: Vec<LaunchTime>,
}

impl GuiltyKernel {
    /// Whether its file was seen to fail as announced.
    pub fn is_proven(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.proven)
    }

    /// What is known of it, a sentence a line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.text.clone()];
        if !self.nodes.is_empty() {
            lines.push(format!("it was generated from {}", self.nodes.join(", ")));
        }
        match (&self.file, &self.shown) {
            (Some(_), Some(shown)) if shown.proven => lines.push(format!("`{}`: {}", shown.command, shown.line)),
            (Some(file), Some(shown)) => {
                lines.push(format!("{} alone does not fail so: {}", file.display(), shown.line));
            }
            _ => {}
        }
        lines.extend(self.access.as_ref().map(Access::sentence));
        lines
    }

    /// The same as data.
    pub fn data(&self) -> Json {
        json!({
            "kernel": self.kernel, "kind": self.kind, "text": self.text, "nodes": self.nodes, "source": self.source,
            "call": self.call, "file": self.file, "program": self.program, "proven": self.is_proven(),
            "line": self.shown.as_ref().map(|shown| &shown.line),
            "command": self.shown.as_ref().map(|shown| &shown.command),
            "sanitizer": self.access.as_ref().map(Access::data),
        })
    }
}

/// Runs a script with all kernels checked, and writes the first guilty one into a folder. `time` is how long a run may take.
pub fn check_kernels(
    script: &Path,
    words: &[String],
    python: &Python,
    folder: &Path,
    watch: Watch,
    time: Duration,
) -> Result<Checked, String> {
    let scratch = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let checker = scratch.path().join("kernel_check.py");
    std::fs::write(&checker, CHECK).map_err(|error| format!("{} cannot be written: {error}", checker.display()))?;
    let record = folder.join("kernels.json");
    let run = |options: &[&str]| -> Result<(Record, Option<ScriptFailure>), String> {
        let _ = std::fs::remove_file(&record);
        let mut all: Vec<OsString> = vec![checker.clone().into(), "--out".into(), folder.into()];
        for module in &python.imports {
            all.extend(["--import".into(), module.into()]);
        }
        all.extend(options.iter().map(OsString::from));
        all.push(script.into());
        all.extend(words.iter().map(OsString::from));
        let ran = run_words(&all, python, &[], time * 2 * MOST_CROWDED + IMPORT * 2)?;
        let line = ran.errors.trim().lines().last().unwrap_or_default().to_owned();
        let text = std::fs::read_to_string(&record)
            .map_err(|_| format!("the check of kernels ended without an answer: {line}"))?;
        let failed = ran.status.code().filter(|code| *code != 0).map(|code| ScriptFailure { code, line });
        let record = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", record.display()))?;
        Ok((record, failed))
    };
    let (mut found, failed) = match watch {
        Watch::Values => run(&[])?,
        Watch::Crash(_) => run(&["--announce"])?,
        Watch::Nan => run(&["--watch", "nan"])?,
    };
    if found.kind.is_none() && watch == Watch::Values {
        // In memory that another buffer had, elements that are never written do not show.
        (found, _) = run(&["--no-reuse"])?;
    }
    let (Some(kind), kernel) = (found.kind, found.kernel) else {
        let Record { launches, checked, times, .. } = found;
        return Ok(Checked::Nothing { launches, compared: checked, times, failed });
    };
    let mut guilty = GuiltyKernel {
        kernel: kernel.unwrap_or_else(|| "no kernel".to_owned()),
        kind,
        text: found.text,
        nodes: found.nodes,
        source: found.source,
        call: found.call,
        file: found.file,
        shown: None,
        program: found.program,
        access: None,
        times: found.times,
    };
    if let Some(file) = guilty.file.clone() {
        let shown = prove(&file, &guilty.kind, python, watch, time);
        if (guilty.kind == "fault" || guilty.kind == "overrun") && shown.proven {
            guilty.access = sanitizer::examine(&file, python, time);
        }
        guilty.shown = Some(shown);
    }
    Ok(Checked::Guilty(Box::new(guilty)))
}

/// Runs the file of a kernel by plain Python, and sees whether it ends as announced.
fn prove(file: &Path, kind: &str, python: &Python, watch: Watch, time: Duration) -> Shown {
    let command = plain_command(file, python);
    let Ran { status, lines, errors } = match run_plainly(file, python, time * 2 * MOST_CROWDED + IMPORT * 2) {
        Ok(ran) => ran,
        Err(line) => return Shown { proven: false, line, command },
    };
    if let (Watch::Crash(signal), Some(ended)) = (watch, status.signal()) {
        let line = format!("it is terminated by signal {ended} ({})", crate::script::signal_name(ended));
        return Shown { proven: ended == signal, line, command };
    }
    let announced = format!("{BUG}{kind}: ");
    let said = lines.iter().rev().find(|line| line.starts_with(&announced));
    let proven = said.is_some() && status.code() == Some(1);
    let last = || errors.trim().lines().last().unwrap_or_default().to_owned();
    let line = said.or(lines.last()).cloned().unwrap_or_else(last);
    Shown { proven, line, command }
}

/// What to look for after a failure of this class; nothing where no kernel can be blamed.
pub fn watch_for(class: Class) -> Option<Watch> {
    match class {
        Class::Value | Class::Mutation | Class::Fault => Some(Watch::Values),
        Class::Signal(signal) => Some(Watch::Crash(signal)),
        _ => None,
    }
}
