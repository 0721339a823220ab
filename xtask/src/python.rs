//! The virtual environment with torch that the Python tests, the benchmarks and the conformance suite run in.
//!
//! It lies in the user's cache folder and carries the hash of its requirements in its name, so that clones with the same
//! requirements share one and a changed requirement leads to a new one. A marker file inside says that the installation went
//! through to its end; a folder without it is what an interrupted installation left, and is made anew. A file lock keeps
//! two clones from installing at once. To build an extension module the interpreter alone is enough, so [`begin`] lets the
//! installation go on beside other work.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::process;
use crate::workspace::Workspace;

/// Where lists of what is installed lie, relative to the root.
const LISTS: &str = "tests/python";
/// The file inside the environment that marks it as complete.
const STAMP: &str = ".complete";
/// The variable that names the Python to test with, by name or path, in place of the first one that fits.
const CHOICE: &str = "PYRITE_TEST_PYTHON";
/// The variable that names the torch to test with in place of the newest, as the end of a list's name: `requirements-2.11.txt`.
pub const TORCH: &str = "PYRITE_TEST_TORCH";
/// The oldest torch that is supported.
pub const OLDEST_TORCH: &str = "2.11";
/// The versions of CPython for which every requirement has a wheel, the preferred one first.
pub const VERSIONS: [&str; 3] = ["3.11", "3.12", "3.13"];

/// The interpreter of the environment, if it is installed.
pub fn installed(workspace: &Workspace) -> Option<PathBuf> {
    let environment = environment(workspace).ok()?;
    environment.is_complete().then(|| environment.interpreter())
}

/// What follows a name where another Python or another torch than the first one is tested.
pub fn suffix() -> String {
    let chosen = [CHOICE, TORCH].map(|variable| std::env::var(variable).unwrap_or_default());
    suffix_of(&chosen)
}

fn suffix_of(chosen: &[String]) -> String {
    let names = chosen.iter().filter(|name| !name.is_empty());
    names.map(|name| format!("-{}", Path::new(name).file_name().unwrap_or_default().display())).collect()
}

/// The list of what is installed.
fn requirements(workspace: &Workspace) -> PathBuf {
    let torch = std::env::var(TORCH).unwrap_or_default();
    workspace.root.join(LISTS).join(format!("requirements{}.txt", suffix_of(&[torch])))
}

fn environment(workspace: &Workspace) -> Result<Environment> {
    let requirements = requirements(workspace);
    let mut text = fs::read(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    text.extend(std::env::var(CHOICE).unwrap_or_default().bytes());
    let cache = cache_folder(std::env::var_os("XDG_CACHE_HOME"), std::env::home_dir())?.join("pyrite");
    Ok(Environment { folder: cache.join(format!("venv-{}", short_hash(&text))) })
}

/// The interpreter of the environment, which is installed first if it is missing.
pub fn interpreter(workspace: &Workspace) -> Result<PathBuf> {
    begin(workspace)?.finish()
}

/// Makes the interpreter, and begins to install what is missing.
pub fn begin(workspace: &Workspace) -> Result<Installation> {
    let requirements = requirements(workspace);
    let environment = environment(workspace)?;
    let interpreter = environment.interpreter();
    if !environment.is_complete() {
        let cache = environment.folder.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
        let lock = lock(&environment.folder.with_extension("lock"))?;
        // Whoever held the lock before may have done the work.
        if !environment.is_complete() {
            environment.create()?;
            let rest = thread::spawn(move || {
                let _lock = lock;
                environment.fill(&requirements)
            });
            return Ok(Installation { interpreter, rest: Some(rest) });
        }
    }
    Ok(Installation { interpreter, rest: None })
}

/// An installation that goes on beside other work.
pub struct Installation {
    interpreter: PathBuf,
    rest: Option<JoinHandle<Result<()>>>,
}

impl Installation {
    /// The interpreter, to build for. What it can import is not there yet.
    pub fn bare_interpreter(&self) -> &Path {
        &self.interpreter
    }

    /// Waits for the end, and returns the interpreter with everything installed.
    pub fn finish(self) -> Result<PathBuf> {
        match self.rest.map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(self.interpreter),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) => bail!("the installation of the Python requirements panicked"),
        }
    }
}

/// A virtual environment, installed or not.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    fn interpreter(&self) -> PathBuf {
        self.folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
    }

    fn is_complete(&self) -> bool {
        self.folder.join(STAMP).is_file() && self.interpreter().is_file()
    }

    /// Makes the environment from nothing, with nothing in it.
    fn create(&self) -> Result<()> {
        let folder = &self.folder;
        if folder.exists() {
            eprintln!("removing the unfinished environment in {}", folder.display());
            fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        let base = find_python()?;
        eprintln!(
            "installing torch and the other Python requirements into {} with {}: once, some minutes, about 6 GB",
            folder.display(),
            base.display()
        );
        process::run(talking_on_stderr(Command::new(base).args(["-m", "venv"]).arg(folder)))
    }

    /// Installs what is required. The marker file comes last.
    fn fill(&self, requirements: &Path) -> Result<()> {
        let folder = &self.folder;
        let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--requirement"];
        process::run(talking_on_stderr(Command::new(self.interpreter()).args(pip).arg(requirements)))
            .with_context(|| format!("cannot install {}", requirements.display()))?;
        process::run(talking_on_stderr(Command::new(self.interpreter()).args(["-c", "import torch"])))
            .context("torch is installed and cannot be imported")?;
        fs::write(folder.join(STAMP), "").with_context(|| format!("cannot mark {} as complete", folder.display()))
    }
}

/// Sends the command's output to stderr: our stdout belongs to the interpreter's path.
fn talking_on_stderr(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::from(io::stderr()))
}

/// Takes the lock, and waits for it if somebody else has it. It ends with the returned file.
fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => eprintln!("waiting for another installation, which holds {}", path.display()),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// All supported CPythons on the path, one of each version.
pub fn supported() -> Vec<PathBuf> {
    let versioned = VERSIONS.iter().map(|version| format!("python{version}"));
    versioned.filter(|name| probe(name) == Probe::Fits).map(PathBuf::from).collect()
}

/// The first Python on the path that has a supported version and can make virtual environments.
fn find_python() -> Result<PathBuf> {
    let versioned = VERSIONS.iter().map(|version| format!("python{version}"));
    let names: Vec<String> = match std::env::var(CHOICE).ok().filter(|name| !name.is_empty()) {
        Some(name) => vec![name],
        None => versioned.chain(["python3".to_owned(), "python".to_owned()]).collect(),
    };
    let mut rejected = Vec::new();
    for name in names {
        match probe(&name) {
            Probe::Fits => return Ok(PathBuf::from(name)),
            Probe::Missing => {}
            Probe::Rejected(reason) => rejected.push(format!("\n  {name}: {reason}")),
        }
    }
    bail!(
        "the Python tests need CPython {} with its `venv` module on the path, and there is none{}",
        VERSIONS.join(" or "),
        rejected.concat()
    );
}

/// What is known of a Python after it was asked.
#[derive(Debug, PartialEq, Eq)]
enum Probe {
    Fits,
    Missing,
    Rejected(String),
}

fn probe(name: &str) -> Probe {
    let script = "import sys; print('%d.%d' % sys.version_info[:2]); import venv, ensurepip";
    let Ok(output) = Command::new(name).args(["-c", script]).stdin(Stdio::null()).output() else {
        return Probe::Missing;
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if version.is_empty() {
        // A version manager's placeholder for a Python that is not switched on.
        Probe::Rejected("it does not start".to_owned())
    } else if !VERSIONS.contains(&version.as_str()) {
        Probe::Rejected(format!("its version is {version}"))
    } else if !output.status.success() {
        Probe::Rejected("it has no `venv` or `ensurepip` module".to_owned())
    } else {
        Probe::Fits
    }
}

/// The user's cache folder: `XDG_CACHE_HOME` if it is an absolute path, else `.cache` in the home folder.
fn cache_folder(xdg: Option<OsString>, home: Option<PathBuf>) -> Result<PathBuf> {
    match xdg.map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(path) => Ok(path),
        None => Ok(home.context("there is no home folder; set XDG_CACHE_HOME")?.join(".cache")),
    }
}

/// The first 16 hexadecimal digits of the SHA-256.
fn short_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let first: [u8; 8] = std::array::from_fn(|i| digest[i]);
    format!("{:016x}", u64::from_be_bytes(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sixteen_digits_of_sha256() {
        assert_eq!(short_hash(b"abc"), "ba7816bf8f01cfea");
    }

    #[test]
    fn another_python_and_another_torch_have_folders_of_their_own() {
        let suffix = |python: &str, torch: &str| suffix_of(&[python.to_owned(), torch.to_owned()]);
        assert_eq!(suffix("", ""), "");
        assert_eq!(suffix("/opt/bin/python3.12", ""), "-python3.12");
        assert_eq!(suffix("python3.13", "2.11"), "-python3.13-2.11");
    }

    #[test]
    fn a_relative_xdg_folder_is_ignored() {
        let folder = |xdg: &str| cache_folder(Some(xdg.into()), Some("/home/x".into())).unwrap();
        assert_eq!(folder("/var/c"), Path::new("/var/c"));
        assert_eq!(folder("c"), Path::new("/home/x/.cache"));
        assert_eq!(folder(""), Path::new("/home/x/.cache"));
        assert!(cache_folder(None, None).is_err());
    }

    #[test]
    fn an_environment_without_a_marker_file_is_not_complete() {
        let scratch = tempfile::tempdir().unwrap();
        let environment = Environment { folder: scratch.path().join("venv") };
        assert!(!environment.is_complete());
        fs::create_dir_all(environment.interpreter().parent().unwrap()).unwrap();
        fs::write(environment.interpreter(), "").unwrap();
        assert!(!environment.is_complete());
        fs::write(environment.folder.join(STAMP), "").unwrap();
        assert!(environment.is_complete());
    }

    #[test]
    fn a_lock_is_free_again_after_its_end() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("venv.lock");
        let held = lock(&path).unwrap();
        assert!(matches!(File::create(&path).unwrap().try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        lock(&path).unwrap();
    }

    #[test]
    fn a_program_that_does_not_exist_is_missing() {
        assert_eq!(probe("no-such-python-as-this"), Probe::Missing);
    }
}
