//! The tasks that build something and run it.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;
use crate::{package, process, python};

/// The package that holds the filetests and the fuzz target.
const TESTING: &str = "pyrite-testing";
/// The fuzz target for the reader and the verifier.
const FUZZ_BINARY: &str = "fuzz-reader";

/// Runs `pyrite demo`.
pub fn demo(workspace: &Workspace) -> Result<()> {
    build_binaries(workspace)?;
    process::run(Command::new(workspace.release_binary("pyrite")).arg("demo").current_dir(&workspace.root))
}

/// Runs the benchmarks against PyTorch.
pub fn bench(workspace: &Workspace, args: &[OsString]) -> Result<()> {
    process::run(python_module(workspace, "bench")?.args(args))
}

/// Runs what needs a GPU, the compiler and then the debugger; the scripts say so where there is none.
pub fn gpu(workspace: &Workspace, args: &[OsString]) -> Result<()> {
    process::run(python_module(workspace, "gpu.speed")?.args(args))?;
    process::run(&mut python_module(workspace, "gpu.sweep")?)?;
    process::run(python_module(workspace, "gpu.bars")?.arg("--pyrite").arg(workspace.release_binary("pyrite")))
}

/// What is compared with PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conformance {
    /// The operators' results.
    Results,
    /// Their gradients.
    Gradients,
}

/// Runs the operators against PyTorch's.
pub fn conformance(workspace: &Workspace, what: Conformance, args: &[OsString]) -> Result<()> {
    process::run(conformance_command(workspace, what)?.args(args))
}

/// The command behind [`conformance`].
pub fn conformance_command(workspace: &Workspace, what: Conformance) -> Result<Command> {
    let module = match what {
        Conformance::Results => "operators.conformance",
        Conformance::Gradients => "operators.gradients",
    };
    python_module(workspace, module)
}

/// Rewrites the expectations of the filetests.
pub fn bless(workspace: &Workspace) -> Result<()> {
    let runner: &[&str] = if has_nextest(workspace) { &["nextest", "run"] } else { &["test"] };
    process::run(workspace.cargo(runner).args(["-p", TESTING, "--test", "all", "filetests::"]).env("BLESS", "1"))
}

/// Rewrites the pages that are made from tables.
pub fn docs(workspace: &Workspace) -> Result<()> {
    process::run(workspace.cargo(["test", "-p", "pyrite-cli", "--test", "all", "reference::"]).env("BLESS", "1"))?;
    if !runs("mdbook") {
        eprintln!("mdbook is not installed, so the book is not built: cargo install mdbook");
        return Ok(());
    }
    process::run(Command::new("mdbook").arg("build").current_dir(&workspace.root))?;
    println!("{}", workspace.root.join("target/book/index.html").display());
    Ok(())
}

/// Whether a program starts when it is asked for its version.
fn runs(program: &str) -> bool {
    let silent = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    silent.is_ok_and(|status| status.success())
}

/// Fuzzes the reader and the verifier for so many seconds.
pub fn fuzz(workspace: &Workspace, seconds: u64) -> Result<()> {
    if !has_fuzz_target(workspace) {
        bail!("the workspace has no binary `{FUZZ_BINARY}` in `{TESTING}`");
    }
    process::run(&mut fuzz_command(workspace, seconds)?)
}

/// The command behind [`fuzz`].
pub fn fuzz_command(workspace: &Workspace, seconds: u64) -> Result<Command> {
    build_binaries(workspace)?;
    let mut command = Command::new(workspace.release_binary(FUZZ_BINARY));
    command.args(["--seconds", &seconds.to_string()]).current_dir(&workspace.root);
    Ok(command)
}

/// Whether there is something to fuzz.
pub fn has_fuzz_target(workspace: &Workspace) -> bool {
    workspace.package(TESTING).is_some_and(|testing| testing.has_binary(FUZZ_BINARY))
}

/// Whether `cargo nextest` is installed.
pub fn has_nextest(workspace: &Workspace) -> bool {
    process::succeeds(&mut workspace.cargo(["nextest", "--version"]))
}

/// The interpreter that has torch and the package, with `args`; it finds the freshly built binary in `PYRITE_BIN`.
pub fn python_with_pyrite<A: AsRef<OsStr>>(
    workspace: &Workspace,
    args: impl IntoIterator<Item = A>,
) -> Result<Command> {
    let mut command = Command::new(package::interpreter(workspace)?);
    command.args(args).current_dir(&workspace.root).env("PYRITE_BIN", workspace.release_binary("pyrite"));
    Ok(command)
}

/// A module of `tests/python` as a program.
pub fn python_module(workspace: &Workspace, module: &str) -> Result<Command> {
    let mut command = python_with_pyrite(workspace, ["-m", module])?;
    command.env("PYTHONPATH", workspace.root.join("tests/python"));
    Ok(command)
}

/// Cargo with `args`, able to build the extension module for that Python.
pub fn cargo_with_python<A: AsRef<OsStr>>(
    workspace: &Workspace,
    interpreter: &Path,
    args: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = workspace.cargo(args);
    command.env("PYO3_PYTHON", interpreter);
    command
}

/// Builds the binaries of the release profile. Always all in one go, the extension module too where there is a Python for
/// it: built apart, they would enable different features of shared dependencies, and those would be compiled twice.
fn build_binaries(workspace: &Workspace) -> Result<()> {
    if let Some(interpreter) = python::installed(workspace) {
        return build_release(workspace, &interpreter);
    }
    process::run(&mut workspace.cargo(["build", "--release", "-p", "pyrite-cli", "-p", TESTING]))
}

/// Builds the binaries and the extension module of the release profile.
pub fn build_release(workspace: &Workspace, interpreter: &Path) -> Result<()> {
    process::run(release_command(workspace, interpreter).stdout(std::io::stderr()))
}

fn release_command(workspace: &Workspace, interpreter: &Path) -> Command {
    let args = ["build", "--release", "-p", "pyrite-cli", "-p", TESTING, "-p", "pyrite-python"];
    cargo_with_python(workspace, interpreter, args)
}

/// A build that goes on beside other work, and is waited for at the end.
pub struct Building(Child);

impl Building {
    /// Begins what [`build_release`] does. It says nothing: whoever builds for good afterwards finds the work done, or
    /// tells of the errors.
    pub fn begin(workspace: &Workspace, interpreter: &Path) -> Result<Self> {
        let mut command = release_command(workspace, interpreter);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(quiet.spawn().context("cannot start cargo")?))
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        let _ = self.0.wait();
    }
}
