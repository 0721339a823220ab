//! The rules of the house that no compiler checks.
//!
//! - Every crate stands in the level table of ARCHITECTURE.md and depends on strictly lower levels ([`levels`]).
//! - Every crate takes over the workspace's lints ([`manifests`]).
//! - Every source file opens with a module doc; no code is left for later, no test is switched off, every `unsafe`
//!   states why it is sound, and every diagnostic what to do next ([`sources`]).
//! - No file uses a retired word for something that the field has a name for ([`words`]).
//! - Every link of the documentation leads somewhere ([`links`]).
//! - There is a changelog.
//!
//! All findings are collected and printed with their place. Warnings do not fail.

mod code_view;
mod levels;
mod links;
mod manifests;
mod sources;
mod words;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use pyrite_diag::{Code, Colour, Diagnostic, Diagnostics, Location, Severity, TextRenderer};

use crate::workspace::Workspace;

const MISSING_FILE: Code = Code::new("tidy::missing-file");

/// Checks everything, prints what was found on stderr, and returns it.
pub fn run(workspace: &Workspace) -> Result<Diagnostics> {
    let mut found = Diagnostics::new();
    found.extend(levels::check(workspace)?);
    found.extend(manifests::check(workspace)?);
    let files = sources::rust_files(workspace)?;
    for file in &files {
        found.extend(sources::check(workspace, file)?);
    }
    found.extend(words::check(workspace)?);
    found.extend(links::check(workspace)?);
    if !workspace.root.join("CHANGELOG.md").is_file() {
        let problem = Diagnostic::error(MISSING_FILE, "there is no changelog").at(Location::in_file("CHANGELOG.md"));
        found.push(problem.hint("write one, with a line for every change that a user can see"));
    }
    found.sort_by_location();

    if !found.is_empty() {
        eprintln!("{}", TextRenderer::new(Colour::Plain).render_all(&found));
    }
    eprintln!(
        "tidy: {} crates, {} files, {} errors, {} warnings",
        workspace.packages.len(),
        files.len(),
        found.count(Severity::Error),
        found.count(Severity::Warning)
    );
    Ok(found)
}

/// The names of all files that git tracks and that are there, relative to the root.
fn tracked(workspace: &Workspace) -> Result<Vec<String>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(&workspace.root).output();
    let listed = listed.context("cannot run git ls-files; is git installed?")?;
    let names = String::from_utf8(listed.stdout).context("git ls-files printed a name that is not UTF-8")?;
    let there = |name: &&str| !name.is_empty() && workspace.root.join(name).is_file();
    Ok(names.split('\0').filter(there).map(str::to_owned).collect())
}

/// The place of a line, given by its index, with its text.
fn line_location(file: &Path, lines: &[&str], index: usize) -> Location {
    let location = Location::in_file(file).line(index as u32 + 1);
    match lines.get(index) {
        Some(text) => location.text(*text),
        None => location,
    }
}
