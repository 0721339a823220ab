//! Where a session runs: the program that becomes its workers, the Python that has torch, and how files are read.
//!
//! A worker is the same program, started again: the binary `pyrite`, Python with the package's module, or any binary whose
//! `main` begins with [`worker::serve_if_asked`](crate::worker::serve_if_asked).

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyrite_debug::torch::Python;
use pyrite_debug::{Isolated, Limits, Question, RepoError};
use pyrite_reader::ReadOptions;

/// How long a program of `cmd:` may take.
const COMMAND: Duration = Duration::from_mins(5);

/// A program and its first arguments, after which the words of a command line follow.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
    /// The Python interpreter that has torch, where no other is named.
    pub python: Option<PathBuf>,
}

impl Invocation {
    /// The running binary.
    pub fn of_this_binary() -> io::Result<Self> {
        Ok(Self { program: std::env::current_exe()?, arguments: Vec::new(), python: None })
    }

    /// Python with the package's module.
    pub fn of_python(interpreter: &Path) -> Self {
        Self {
            program: interpreter.to_owned(),
            // The working directory may be a stranger's: nothing is imported from it.
            arguments: ["-P", "-m", "pyrite"].map(OsString::from).into(),
            python: Some(interpreter.to_owned()),
        }
    }

    /// It as one list of words.
    fn words(&self) -> Vec<String> {
        let arguments = self.arguments.iter().map(|word| word.to_string_lossy().into_owned());
        std::iter::once(self.program.display().to_string()).chain(arguments).collect()
    }
}

/// Where a session runs.
#[derive(Clone, Debug)]
pub struct Host {
    /// How workers are started.
    pub invocation: Invocation,
    /// Where torch is, and which modules are imported beside it.
    pub python: Python,
    /// How files are read.
    pub reading: ReadOptions,
}

impl Host {
    /// A host whose backends `torch:NAME` and `cmd:PROGRAM` can be found from here on.
    pub fn new(invocation: Invocation, python: Python, reading: ReadOptions) -> Self {
        let host = Self { invocation, python, reading };
        pyrite_debug::torch::register(host.python.clone());
        pyrite_debug::command_backend::register(COMMAND, Some(host.supervisor()));
        host
    }

    /// Workers for a question.
    pub(crate) fn workers(&self, question: &Question, limits: Limits) -> Result<Isolated, RepoError> {
        Isolated::new(&self.invocation.program, self.worker_arguments(), question.clone(), limits)
    }

    /// The words that start a supervisor, which ends a command when this process is gone.
    pub(crate) fn supervisor(&self) -> Vec<String> {
        self.invocation.words()
    }

    /// The arguments that this program is started with as a worker, and those that tell the worker where torch is.
    pub(crate) fn worker_arguments(&self) -> Vec<OsString> {
        let mut arguments = self.invocation.arguments.clone();
        if let Some(bytes) = pyrite_debug::torch::device_memory_limit() {
            arguments.extend(["--gpu-memory-limit".into(), (bytes >> 20).to_string().into()]);
        }
        arguments.extend(["--python".into(), self.python.interpreter.clone().into_os_string()]);
        for module in &self.python.imports {
            arguments.extend(["--import".into(), module.into()]);
        }
        arguments
    }
}
