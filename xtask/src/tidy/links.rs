//! Links of the documentation: every relative link leads to a file of the repository and, with `#`, to a heading in it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use pyrite_diag::{Code, Diagnostic, Diagnostics};

use super::{line_location, tracked};
use crate::workspace::Workspace;

const BROKEN_LINK: Code = Code::new("tidy::broken-link");
const NOT_IN_THE_BOOK: Code = Code::new("tidy::not-in-the-book");

/// The contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks all tracked Markdown files, and that the book lists every page of the documentation.
pub fn check(workspace: &Workspace) -> Result<Diagnostics> {
    let mut found = Diagnostics::new();
    let summary = fs::read_to_string(workspace.root.join(SUMMARY)).with_context(|| format!("cannot read {SUMMARY}"))?;
    let listed: Vec<String> = links(&summary).into_iter().map(|(_, link)| format!("docs/{link}")).collect();
    let pages = tracked(workspace)?;
    let pages = pages.iter().filter(|name| name.starts_with("docs/") && is_page(name) && *name != SUMMARY);
    for page in pages.filter(|page| !listed.contains(page)) {
        found.push(
            Diagnostic::error(NOT_IN_THE_BOOK, "the page is not in the book")
                .at(line_location(Path::new(page), &[], 0))
                .hint("list it in docs/SUMMARY.md"),
        );
    }
    for name in tracked(workspace)?.iter().filter(|name| is_page(name)) {
        let text = fs::read_to_string(workspace.root.join(name)).with_context(|| format!("cannot read {name}"))?;
        let lines: Vec<&str> = text.lines().collect();
        for (index, link) in links(&text) {
            if let Some(cause) = broken(&workspace.root, Path::new(name), &link) {
                let message = format!("the link `{link}` leads nowhere: {cause}");
                found.push(
                    Diagnostic::error(BROKEN_LINK, message)
                        .at(line_location(Path::new(name), &lines, index))
                        .hint("correct the path or the heading; links are relative to the file they stand in"),
                );
            }
        }
    }
    Ok(found)
}

fn is_page(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "md")
}

/// Links of a page with the index of their line; code is left out, and so are links to other sites.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for (at, _) in plain.match_indices("](") {
            let target = plain[at + 2..].split(')').next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((index, target.to_owned()));
            }
        }
    }
    found
}

/// Why a link leads nowhere, if it does.
fn broken(root: &Path, page: &Path, link: &str) -> Option<String> {
    let (path, heading) = link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
    let target =
        if path.is_empty() { page.to_owned() } else { normal(&page.parent().unwrap_or(Path::new("")).join(path))? };
    let full = root.join(&target);
    if !full.exists() {
        return Some(format!("there is no {}", target.display()));
    }
    let heading = heading?;
    let text = fs::read_to_string(full).ok()?;
    (!anchors(&text).iter().any(|anchor| anchor == heading))
        .then(|| format!("{} has no heading `{heading}`", target.display()))
}

/// A path without `.` and `..`; nothing where it leaves the repository, which is not checked.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::ParentDir => {
                parts.pop()?;
            }
            _ => {}
        }
    }
    Some(parts.iter().collect())
}

/// The anchors of a page's headings, as they are made on the web.
fn anchors(text: &str) -> Vec<String> {
    let heading = |line: &str| line.starts_with('#').then(|| line.trim_start_matches('#').trim().to_lowercase());
    let anchor = |text: String| -> String {
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    text.lines().filter_map(heading).map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_prose_are_found_and_those_in_code_are_not() {
        let text = "See [a](b.md) and [c](https://d.e).\n```\n[x](y)\n```\n`[z](w)` or [v](#u)\n";
        assert_eq!(links(text), [(0, "b.md".to_owned()), (4, "#u".to_owned())]);
    }

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        fs::write(folder.path().join("docs/a.md"), "# A page\n\n## It fails only `sometimes`\n").unwrap();
        let leads = |page: &str, link: &str| broken(folder.path(), Path::new(page), link).is_none();
        assert!(leads("README.md", "docs/a.md"));
        assert!(leads("README.md", "docs/a.md#it-fails-only-sometimes"));
        assert!(leads("docs/a.md", "#a-page") && leads("docs/a.md", "../docs/a.md"));
        assert!(!leads("README.md", "docs/b.md") && !leads("docs/a.md", "#b"));
    }
}
