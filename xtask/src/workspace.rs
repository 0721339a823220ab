//! What `cargo metadata` knows of the workspace: its folders, its packages and what they depend on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The workspace that the current folder belongs to.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    /// The folder of the root manifest.
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    /// Where cargo builds.
    #[serde(rename = "target_directory")]
    pub target: PathBuf,
    /// The workspace's own packages.
    pub packages: Vec<Package>,
}

/// A package of the workspace.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The absolute path of its manifest.
    pub manifest_path: PathBuf,
    /// All its dependencies, of every kind.
    pub dependencies: Vec<Dependency>,
    /// What it builds.
    pub targets: Vec<Target>,
}

/// A dependency as a manifest declares it.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The package it names.
    pub name: String,
    /// What it is needed for.
    #[serde(deserialize_with = "kind_or_normal")]
    pub kind: DependencyKind,
}

/// What a dependency is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DependencyKind {
    /// The package's code.
    Normal,
    /// Its build script.
    Build,
    /// Its tests, examples and benchmarks.
    Dev,
}

/// Something that a package builds.
#[derive(Debug, Deserialize)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Such as `lib`, `bin` or `test`.
    pub kind: Vec<String>,
}

impl Workspace {
    /// Asks cargo about the workspace around the current folder.
    pub fn load() -> Result<Self> {
        let output = Command::new(cargo())
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo")?;
        if !output.status.success() {
            bail!("`cargo metadata` failed: the workspace does not load");
        }
        serde_json::from_slice(&output.stdout).context("`cargo metadata` printed something unexpected")
    }

    /// A cargo command that runs in the root folder.
    pub fn cargo<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(cargo());
        command.args(args).current_dir(&self.root);
        command
    }

    /// The package of that name.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The path that a binary of the release profile has, once it is built.
    pub fn release_binary(&self, name: &str) -> PathBuf {
        self.target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// The path relative to the root, for messages.
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

impl Package {
    /// Whether it builds a binary of that name.
    pub fn has_binary(&self, name: &str) -> bool {
        self.targets.iter().any(|target| target.name == name && target.kind.iter().any(|kind| kind == "bin"))
    }
}

/// The cargo that runs this program, or else the one on the path.
fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Cargo writes `null` for a normal dependency.
fn kind_or_normal<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<DependencyKind, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(DependencyKind::Normal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_workspace_loads() {
        let workspace = Workspace::load().unwrap();
        let xtask = workspace.package("xtask").expect("the workspace has this package");
        assert!(xtask.has_binary("xtask"));
        assert_eq!(workspace.relative(&xtask.manifest_path), Path::new("xtask/Cargo.toml"));
        let kind = |package: &str, name: &str| {
            let package = workspace.package(package).unwrap();
            package.dependencies.iter().find(|dependency| dependency.name == name).unwrap().kind
        };
        assert_eq!(kind("xtask", "clap"), DependencyKind::Normal);
        assert_eq!(kind("pyrite-sym", "proptest"), DependencyKind::Dev);
    }
}
