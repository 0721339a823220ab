//! Rules for `Cargo.toml` files, which are read line by line in the plain style that this workspace writes them in.

use std::fs;

use anyhow::{Context, Result};
use pyrite_diag::{Code, Diagnostic, Diagnostics, Location};

use crate::workspace::Workspace;

const NO_LINTS: Code = Code::new("tidy::no-workspace-lints");

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
    }
    Ok(found)
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
