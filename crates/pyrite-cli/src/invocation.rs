//! How this program is started again, as a worker.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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

static OWN: OnceLock<Invocation> = OnceLock::new();

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

    /// Remembers it for the commands of this process; the first one counts.
    pub(crate) fn remember(self) {
        let _ = OWN.set(self);
    }

    /// The one that is remembered, else the running binary.
    pub(crate) fn own() -> io::Result<Self> {
        OWN.get().cloned().map_or_else(Self::of_this_binary, Ok)
    }

    /// It as one list of words.
    pub(crate) fn words(&self) -> Vec<String> {
        let arguments = self.arguments.iter().map(|word| word.to_string_lossy().into_owned());
        std::iter::once(self.program.display().to_string()).chain(arguments).collect()
    }
}
