//! The Python package of this clone, ready to be imported.
//!
//! `target/python` gets a small virtual environment on top of the shared one that has torch; another Python or torch has
//! another folder, such as `target/python-2.11`. In it, `pyrite` consists of links to `python/pyrite` and to the extension
//! module that cargo built, beside the metadata that an installation would have: edits of Python files count at once, and
//! entry points and the command `pyrite` are there as in a wheel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{process, programs, python};

/// The entry points, in one place with the wheel's.
const PROJECT: &str = "pyproject.toml";

/// Builds the extension module and returns an interpreter that has torch and this clone's package.
pub fn interpreter(workspace: &Workspace) -> Result<PathBuf> {
    let shared = python::interpreter(workspace)?;
    programs::build_release(workspace, &shared)?;
    let folder = workspace.target.join(format!("python{}", python::suffix()));
    let environment = folder.join("venv");
    let interpreter = environment.join("bin/python");
    let modules = folder.join("modules");
    stage(workspace, &modules)?;
    if !interpreter.is_file() {
        process::run(
            Command::new(&shared)
                .args(["-m", "venv", "--without-pip"])
                .arg(&environment)
                .stdin(Stdio::null())
                .stdout(std::io::stderr()),
        )?;
    }
    let (theirs, ours) = (site_packages(&shared)?, site_packages(&interpreter)?);
    let (theirs, modules) = (theirs.display().to_string(), modules.display());
    write(&ours.join("pyrite.pth"), &format!("import site; site.addsitedir({theirs:?})\n{modules}\n"))?;
    let script =
        format!("#!{}\nimport sys\nfrom pyrite.__main__ import main\nsys.exit(main())\n", interpreter.display());
    let command = environment.join("bin/pyrite");
    write(&command, &script)?;
    make_executable(&command)?;
    Ok(interpreter)
}

/// Puts links to the package's files, the extension module and the metadata into a folder.
fn stage(workspace: &Workspace, modules: &Path) -> Result<()> {
    let package = modules.join("pyrite");
    if package.exists() {
        fs::remove_dir_all(&package).with_context(|| format!("cannot renew {}", package.display()))?;
    }
    fs::create_dir_all(&package).with_context(|| format!("cannot create {}", package.display()))?;
    let sources = workspace.root.join("python/pyrite");
    for entry in fs::read_dir(&sources).with_context(|| format!("cannot list {}", sources.display()))? {
        let entry = entry?;
        if entry.file_name() != "__pycache__" {
            link(&entry.path(), &package.join(entry.file_name()))?;
        }
    }
    link(&workspace.target.join("release/lib_native.so"), &package.join("_native.so"))?;
    let version = env!("CARGO_PKG_VERSION");
    let metadata = modules.join(format!("pyrite-{version}.dist-info"));
    fs::create_dir_all(&metadata).with_context(|| format!("cannot create {}", metadata.display()))?;
    write(&metadata.join("METADATA"), &format!("Metadata-Version: 2.1\nName: pyrite\nVersion: {version}\n"))?;
    let project = fs::read_to_string(workspace.root.join(PROJECT)).with_context(|| format!("cannot read {PROJECT}"))?;
    write(&metadata.join("entry_points.txt"), &entry_points(&project))
}

/// The sections of the project file that name entry points, as an installation writes them.
fn entry_points(project: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for line in project.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let name = section.trim_end_matches(']');
            let group = if name == "project.scripts" {
                Some("console_scripts")
            } else {
                name.strip_prefix("project.entry-points.").map(|group| group.trim_matches('"'))
            };
            inside = group.is_some();
            if let Some(group) = group {
                text += &format!("[{group}]\n");
            }
        } else if inside {
            text += &line.replace('"', "");
            text.push('\n');
        }
    }
    text
}

fn site_packages(interpreter: &Path) -> Result<PathBuf> {
    let output = Command::new(interpreter)
        .args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", interpreter.display()))?;
    if !output.status.success() {
        bail!("{} does not say where its packages are", interpreter.display());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> Result<()> {
    std::os::unix::fs::symlink(from, to).with_context(|| format!("cannot link {}", to.display()))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_are_those_of_the_project_file() {
        let project = "[project]\nname = \"a\"\n\n[project.scripts]\na = \"a.b:main\"\n\n[project.entry-points.\"c.d\"]\ne = \"a.f\"\n[tool.x]\ng = 1\n";
        assert_eq!(entry_points(project), "[console_scripts]\na = a.b:main\n\n[c.d]\ne = a.f\n");
    }
}
