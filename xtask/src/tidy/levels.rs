//! The level check: a crate depends only on crates of strictly lower levels.
//!
//! The levels stand in ARCHITECTURE.md, in the table with the heading `| level | crate | role |`; this check reads that
//! table, so the document cannot go stale. Crates at level `–` are for development: they may depend on anything, and
//! no crate with a level depends on them outside its tests. Dev-dependencies are free.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use pyrite_diag::{Code, Diagnostic, Diagnostics, Location};

use super::{line_location, manifests};
use crate::workspace::{DependencyKind, Package, Workspace};

const DOCUMENT: &str = "ARCHITECTURE.md";
const HEADING: [&str; 3] = ["level", "crate", "role"];

const BAD_TABLE: Code = Code::new("tidy::level-table");
const UNLISTED: Code = Code::new("tidy::unlisted-crate");
const STALE: Code = Code::new("tidy::stale-crate");
const UPWARD: Code = Code::new("tidy::upward-dependency");

/// Checks the levels of all crates.
pub fn check(workspace: &Workspace) -> Result<Diagnostics> {
    let path = workspace.root.join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (table, mut found) = Table::parse(&text);
    if !table.rows.is_empty() {
        found.extend(check_completeness(workspace, &table, &text));
        for package in &workspace.packages {
            let manifest = fs::read_to_string(&package.manifest_path)
                .with_context(|| format!("cannot read {}", package.manifest_path.display()))?;
            found.extend(check_package(package, &table, workspace.relative(&package.manifest_path), &manifest));
        }
    }
    Ok(found)
}

/// Where a crate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// A layer of the product.
    Layer(u32),
    /// Development only.
    Outside,
}

impl Level {
    fn parse(cell: &str) -> Option<Self> {
        if cell == "–" { Some(Self::Outside) } else { cell.parse().ok().map(Self::Layer) }
    }
}

/// The level of every crate, and the index of the line that says so.
#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<String, (Level, usize)>,
}

impl Table {
    /// Reads the table, with one finding for each line of it that makes no sense.
    fn parse(text: &str) -> (Self, Diagnostics) {
        let mut table = Self::default();
        let mut found = Diagnostics::new();
        let lines: Vec<&str> = text.lines().collect();
        let Some(heading) = lines.iter().position(|line| cells(line) == HEADING) else {
            let message = format!("there is no table with the heading `| {} |`", HEADING.join(" | "));
            let problem = Diagnostic::error(BAD_TABLE, message).at(Location::in_file(DOCUMENT));
            found.push(problem.hint("the heading was changed, or the table taken out: put it back"));
            return (table, found);
        };
        // The line under the heading is the ruler.
        for (index, line) in lines.iter().enumerate().skip(heading + 2).take_while(|(_, line)| line.starts_with('|')) {
            let mut reject = |message: String| {
                let location = line_location(Path::new(DOCUMENT), &lines, index);
                let hint = "a row is `| level | `crate` | role |`, as those around it";
                found.push(Diagnostic::error(BAD_TABLE, message).at(location).hint(hint));
            };
            let [level, names, _] = cells(line)[..] else {
                reject("a row has three cells".to_owned());
                continue;
            };
            let Some(level) = Level::parse(level) else {
                reject(format!("`{level}` is no level: write a number, or `–` for development crates"));
                continue;
            };
            for name in names.split(',').map(|name| name.trim().trim_matches('`')) {
                if table.rows.insert(name.to_owned(), (level, index)).is_some() {
                    reject(format!("`{name}` stands in the table twice"));
                }
            }
        }
        (table, found)
    }

    fn level(&self, name: &str) -> Option<Level> {
        self.rows.get(name).map(|(level, _)| *level)
    }
}

/// The cells of a row of a Markdown table.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map_or_else(Vec::new, |inner| inner.split('|').map(str::trim).collect())
}

/// Every crate is in the table, and the table names no others.
fn check_completeness(workspace: &Workspace, table: &Table, text: &str) -> Diagnostics {
    let lines: Vec<&str> = text.lines().collect();
    let unlisted = workspace.packages.iter().filter(|package| table.level(&package.name).is_none()).map(|package| {
        Diagnostic::error(UNLISTED, format!("`{}` is not in the level table of {DOCUMENT}", package.name))
            .at(Location::in_file(workspace.relative(&package.manifest_path)))
            .hint("add a row with its level and its role")
    });
    let stale = table.rows.iter().filter(|(name, _)| workspace.package(name).is_none()).map(|(name, (_, index))| {
        Diagnostic::error(STALE, format!("the workspace has no crate `{name}`"))
            .at(line_location(Path::new(DOCUMENT), &lines, *index))
            .hint("planned crates stand in a table of their own")
    });
    unlisted.chain(stale).collect()
}

/// Every dependency of the package on another crate of the table goes downward.
fn check_package(package: &Package, table: &Table, manifest_path: &Path, manifest: &str) -> Diagnostics {
    let Some(Level::Layer(own)) = table.level(&package.name) else { return Diagnostics::new() };
    let mut found = Diagnostics::new();
    for dependency in package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Dev) {
        let name = &dependency.name;
        let complaint = match table.level(name) {
            None => continue,
            Some(Level::Layer(level)) if level < own => continue,
            Some(Level::Layer(level)) => {
                format!("`{}` (level {own}) depends on `{name}` (level {level})", package.name)
            }
            Some(Level::Outside) => format!("`{}` depends on `{name}`, which is for development", package.name),
        };
        let lines: Vec<&str> = manifest.lines().collect();
        let location = match manifests::dependency_line(&lines, name) {
            Some(index) => line_location(manifest_path, &lines, index),
            None => Location::in_file(manifest_path),
        };
        found.push(
            Diagnostic::error(UPWARD, complaint)
                .at(location)
                .hint("depend on strictly lower levels only; for tests, use a dev-dependency"),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    const TEXT: &str = "\
# Title
| level | crate | role |
|---|---|---|
| 0 | `low`, `base` | a |
| 1 | `high` | b |
| – | `testing` | c |

| planned for level | crate | role |
|---|---|---|
| 7 | `future` | d |
";

    fn package(name: &str, dependencies: &[(&str, DependencyKind)]) -> Package {
        let dependencies =
            dependencies.iter().map(|&(name, kind)| Dependency { name: name.to_owned(), kind }).collect();
        Package { name: name.to_owned(), manifest_path: "/w/Cargo.toml".into(), dependencies, targets: Vec::new() }
    }

    fn complaints(package: &Package) -> Vec<String> {
        let manifest = "[dev-dependencies]\nhigh = 1\n\n[dependencies]\nhigh = 1\n";
        let (table, _) = Table::parse(TEXT);
        check_package(package, &table, Path::new("Cargo.toml"), manifest).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_table_ends_where_it_ends() {
        let (table, found) = Table::parse(TEXT);
        assert!(found.is_empty(), "{found}");
        assert_eq!(table.level("base"), Some(Level::Layer(0)));
        assert_eq!(table.level("high"), Some(Level::Layer(1)));
        assert_eq!(table.level("testing"), Some(Level::Outside));
        assert_eq!(table.level("future"), None);
    }

    #[test]
    fn rows_that_make_no_sense_are_reported_with_their_line() {
        let text = "| level | crate | role |\n|---|---|---|\n| x | `a` | |\n| 1 |\n| 2 | `b` | |\n| 3 | `b` | |\n";
        let (_, found) = Table::parse(text);
        let lines: Vec<_> = found.iter().map(|diagnostic| diagnostic.location.line).collect();
        assert_eq!(lines, [Some(3), Some(4), Some(6)]);
        assert_eq!(Table::parse("no table").1.len(), 1);
    }

    #[test]
    fn only_downward_dependencies_are_allowed() {
        use DependencyKind::{Build, Dev, Normal};
        assert!(complaints(&package("high", &[("low", Normal), ("serde", Normal)])).is_empty());
        assert!(complaints(&package("low", &[("high", Dev), ("testing", Dev)])).is_empty());
        assert!(complaints(&package("testing", &[("high", Normal)])).is_empty());
        assert_eq!(
            complaints(&package("low", &[("high", Normal), ("base", Build), ("testing", Normal)])),
            [
                "Cargo.toml:5: error[tidy::upward-dependency]: `low` (level 0) depends on `high` (level 1)",
                "Cargo.toml: error[tidy::upward-dependency]: `low` (level 0) depends on `base` (level 0)",
                "Cargo.toml: error[tidy::upward-dependency]: `low` depends on `testing`, which is for development",
            ]
        );
    }

    #[test]
    fn crates_and_rows_have_to_match() {
        let packages = ["low", "base", "high", "new"].map(|name| package(name, &[])).into();
        let workspace = Workspace { root: "/w".into(), target: "/w/target".into(), packages };
        let (table, _) = Table::parse(TEXT);
        let found = check_completeness(&workspace, &table, TEXT).to_string();
        assert_eq!(
            found,
            "Cargo.toml: error[tidy::unlisted-crate]: `new` is not in the level table of ARCHITECTURE.md\n\
             ARCHITECTURE.md:6: error[tidy::stale-crate]: the workspace has no crate `testing`"
        );
    }
}
