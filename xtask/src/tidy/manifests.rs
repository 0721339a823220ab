//! Rules for `Cargo.toml` files, which are read line by line in the plain style that this workspace writes them in.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use pyrite_diag::{Code, Diagnostic, Diagnostics, Location};

use super::line_location;
use crate::workspace::Workspace;

const NO_LINTS: Code = Code::new("tidy::no-workspace-lints");
const STALE_VERSION: Code = Code::new("tidy::stale-version");
const NO_DESCRIPTION: Code = Code::new("tidy::no-description");

/// Checks the manifests of all crates.
pub fn check(workspace: &Workspace) -> Result<Diagnostics> {
    let mut found = Diagnostics::new();
    for package in &workspace.packages {
        let path = &package.manifest_path;
        let manifest = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        if !takes_over_lints(&manifest) {
            found.push(
                Diagnostic::error(NO_LINTS, format!("`{}` does not take over the workspace's lints", package.name))
                    .at(Location::in_file(workspace.relative(path)))
                    .hint("add the section `[lints]` with `workspace = true`"),
            );
        }
        if !manifest.lines().any(|line| line.starts_with("description = ")) {
            found.push(
                Diagnostic::error(NO_DESCRIPTION, format!("`{}` has no description", package.name))
                    .at(Location::in_file(workspace.relative(path)))
                    .hint("add a `description`: crates are published with one"),
            );
        }
    }
    let root = workspace.root.join("Cargo.toml");
    let manifest = fs::read_to_string(&root).with_context(|| format!("cannot read {}", root.display()))?;
    found.extend(check_versions(&manifest));
    Ok(found)
}

/// Every crate of the workspace is required in the workspace's version: a published crate takes its siblings from the
/// same release.
fn check_versions(manifest: &str) -> Diagnostics {
    let lines: Vec<&str> = manifest.lines().collect();
    let own = lines.iter().find_map(|line| line.strip_prefix("version = "));
    let own = own.map_or("", |version| version.trim_matches('"'));
    let stale = lines.iter().enumerate().filter(|(_, line)| {
        let version = line.split_once("version = \"").and_then(|(_, rest)| rest.split('"').next());
        line.contains("path = \"crates/") && version.is_some_and(|version| version != own)
    });
    stale
        .map(|(index, line)| {
            let name = line.split(' ').next().unwrap_or_default();
            Diagnostic::error(STALE_VERSION, format!("`{name}` is required in another version than {own}"))
                .at(line_location(Path::new("Cargo.toml"), &lines, index))
                .hint("write the version of `[workspace.package]`")
        })
        .collect()
}

fn takes_over_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        section == "[lints]" && without_spaces(line) == "workspace=true"
    })
}

/// The index of the line that declares a normal or build dependency on `name`.
pub fn dependency_line(lines: &[&str], name: &str) -> Option<usize> {
    let mut in_dependencies = false;
    lines.iter().map(|line| line.trim()).position(|line| {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            in_dependencies = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            let (table, key) = section.rsplit_once('.').unwrap_or((section, ""));
            return key == name && table.ends_with("dependencies") && !table.ends_with("dev-dependencies");
        }
        let rest = line.strip_prefix(name).unwrap_or("");
        in_dependencies && rest.starts_with(['.', ' ', '='])
    })
}

fn without_spaces(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_required_in_the_version_of_the_workspace() {
        let manifest = "version = \"0.2.0\"\na = { path = \"crates/a\", version = \"0.2.0\" }\n\
                        b = { path = \"crates/b\", version = \"0.1.0\" }\nc = { path = \"crates/c\" }\n";
        assert_eq!(
            check_versions(manifest).to_string(),
            "Cargo.toml:3: error[tidy::stale-version]: `b` is required in another version than 0.2.0"
        );
    }

    #[test]
    fn lints_come_from_the_workspace_by_their_own_section() {
        assert!(takes_over_lints("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"));
        assert!(!takes_over_lints("[package]\nworkspace = true\n"));
        assert!(!takes_over_lints("[lints]\n\n[other]\nworkspace = true\n"));
    }

    #[test]
    fn a_dependency_is_found_in_every_way_of_writing_it() {
        let line = |text: &str| dependency_line(&text.lines().collect::<Vec<_>>(), "pyrite-ir");
        assert_eq!(line("[dependencies]\npyrite-ir.workspace = true\n"), Some(1));
        assert_eq!(line("[build-dependencies]\n\npyrite-ir = { path = \"x\" }\n"), Some(2));
        assert_eq!(line("[dependencies.pyrite-ir]\nworkspace = true\n"), Some(0));
        assert_eq!(line("[target.'cfg(unix)'.dependencies]\npyrite-ir=1\n"), Some(1));
        assert_eq!(line("[dev-dependencies]\npyrite-ir = 1\n"), None);
        assert_eq!(line("[dependencies]\npyrite-ir-more = 1\n"), None);
    }
}
