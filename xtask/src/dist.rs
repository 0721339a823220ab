//! Wheels and the source distribution, and a check that a wheel installs into an empty environment.
//!
//! One wheel per supported CPython that is installed on this machine, in `target/dist`. Each wheel is then installed, without
//! the network, into a new virtual environment that has nothing else: the command and the package must work there, and what
//! needs torch must say so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{process, python};

/// What a program must print in an environment with the wheel and without torch.
const CHECK: &str = "
import pyrite, sys
assert pyrite.__version__, 'no version'
graph = pyrite.Graph.from_text('def forward(x: \"f32[4]\"):\\n    return (torch.ops.aten.relu.default(x),)\\n')
assert 'aten.relu.default' in str(graph)
try:
    pyrite.compile
except ImportError as error:
    assert 'needs PyTorch' in str(error), error
else:
    sys.exit('pyrite.compile was found without torch')
";

/// Builds the distribution and checks every wheel.
pub fn run(workspace: &Workspace) -> Result<()> {
    let shared = python::interpreter(workspace)?;
    let out = workspace.target.join("dist");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot renew {}", out.display()))?;
    }
    let interpreters = python::supported();
    if interpreters.is_empty() {
        bail!("no CPython {} was found on the path; install one", python::VERSIONS.join(", "));
    }
    let maturin = |arguments: &[&str]| {
        let mut command = Command::new(&shared);
        command.args(["-m", "maturin"]).args(arguments).arg("--out").arg(&out).current_dir(&workspace.root);
        command.stdin(Stdio::null()).stdout(std::io::stderr());
        command
    };
    process::run(&mut maturin(&["sdist"]))?;
    for interpreter in &interpreters {
        process::run(maturin(&["build", "--release", "--strip"]).arg("--interpreter").arg(interpreter))?;
    }
    for interpreter in &interpreters {
        check(interpreter, &out)?;
    }
    for entry in fs::read_dir(&out)? {
        println!("{}", entry?.path().display());
    }
    Ok(())
}

/// Installs the wheel that fits an interpreter into a new environment, and uses it there.
fn check(interpreter: &Path, wheels: &Path) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let environment = folder.path().join("venv");
    process::run(Command::new(interpreter).args(["-m", "venv"]).arg(&environment).stdin(Stdio::null()))?;
    let inside = |name: &str| -> PathBuf { environment.join("bin").join(name) };
    let mut install = Command::new(inside("python"));
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--find-links"]).arg(wheels).arg("pyrite");
    process::run(&mut install)?;
    process::run(Command::new(inside("python")).args(["-I", "-c", CHECK]))?;
    process::run(Command::new(inside("pyrite")).arg("--version").stdout(std::io::stderr()))
}
