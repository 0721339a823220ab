//! Rules for `.rs` files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pyrite_diag::{Code, Diagnostic, Diagnostics};

use super::code_view::code_only;
use super::line_location;
use crate::workspace::Workspace;

/// Folders that hold Rust code.
const FOLDERS: [&str; 3] = ["crates", "fuzz", "xtask"];
/// Past so many lines, a file may say two things.
const LONG_FILE: usize = 600;
/// How many lines above an `unsafe` its reason may begin.
const SAFETY_REACH: usize = 5;
/// In how many lines from its construction on a diagnostic gets its hint.
const HINT_REACH: usize = 12;
/// Code that may not be committed, and why.
const FORBIDDEN: [(&str, &str); 3] = [
    ("todo!(", "code is written before it is committed"),
    ("unimplemented!(", "what is not supported returns an error that says so"),
    ("#[ignore", "a test that is not run is not a test"),
];

const NO_MODULE_DOC: Code = Code::new("tidy::no-module-doc");
const LONG: Code = Code::new("tidy::long-file");
const UNFINISHED: Code = Code::new("tidy::unfinished");
const NO_SAFETY: Code = Code::new("tidy::no-safety-comment");
const NO_REMEDY: Code = Code::new("tidy::no-remedy");

/// All Rust files of the repository, in order, without build output.
pub fn rust_files(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|name| workspace.root.join(name)).collect();
    folders.retain(|folder| folder.is_dir());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name();
            if entry.file_type()?.is_dir() {
                if name != "target" && !name.to_string_lossy().starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Checks one file.
pub fn check(workspace: &Workspace, file: &Path) -> Result<Diagnostics> {
    let source = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(check_source(workspace.relative(file), &source))
}

fn check_source(file: &Path, source: &str) -> Diagnostics {
    let mut found = Diagnostics::new();
    let code = code_only(source);
    let lines: Vec<&str> = source.lines().collect();

    let first = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0);
    if !lines.get(first).is_some_and(|line| line.starts_with("//!")) {
        found.push(
            Diagnostic::error(NO_MODULE_DOC, "the file does not open with a module doc")
                .at(line_location(file, &lines, first))
                .hint("say with `//!` what the module is for, what it takes and returns, and what it keeps"),
        );
    }
    if lines.len() > LONG_FILE {
        let message = format!("the file has {} lines, more than {LONG_FILE}", lines.len());
        found.push(
            Diagnostic::warning(LONG, message)
                .at(line_location(file, &[], lines.len() - 1))
                .hint("does it say two things?"),
        );
    }
    for (index, line) in code.lines().enumerate() {
        for (pattern, reason) in FORBIDDEN {
            if let Some(at) = line.find(pattern) {
                found.push(
                    Diagnostic::error(UNFINISHED, format!("`{pattern}` is not allowed: {reason}"))
                        .at(line_location(file, &lines, index).column(column(line, at)))
                        .hint("finish it, or leave it out"),
                );
            }
        }
        for at in unsafe_keywords(line) {
            if !is_explained(&lines, index, &line[at..]) {
                found.push(
                    Diagnostic::error(NO_SAFETY, "`unsafe` without the reason why it is sound")
                        .at(line_location(file, &lines, index).column(column(line, at)))
                        .hint("write a `SAFETY:` comment above it, or a `# Safety` section for a declaration"),
                );
            }
        }
    }
    if !file.components().any(|part| part.as_os_str() == "tests") {
        found.extend(without_remedy(file, &lines, &code));
    }
    found
}

/// Diagnostics that do not say what to do next. What tests build need not.
fn without_remedy(file: &Path, lines: &[&str], code: &str) -> Diagnostics {
    let code: Vec<&str> = code.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).collect();
    let mut found = Diagnostics::new();
    for (index, line) in code.iter().enumerate() {
        let built = ["Diagnostic::error(", "Diagnostic::warning("].iter().find_map(|call| line.find(call));
        let near = &code[index..code.len().min(index + HINT_REACH)];
        if let Some(at) = built.filter(|_| !near.iter().any(|line| line.contains("hint"))) {
            found.push(
                Diagnostic::error(NO_REMEDY, "a diagnostic that does not say what to do next")
                    .at(line_location(file, lines, index).column(column(line, at)))
                    .hint("give it a `.hint(…)`: a command, an option, or what to change in which file"),
            );
        }
    }
    found
}

/// The column of a byte of the line.
fn column(line: &str, at: usize) -> u32 {
    line[..at].chars().count() as u32 + 1
}

/// Where in a line of code the keyword `unsafe` stands, function pointer types left out: they promise nothing.
fn unsafe_keywords(line: &str) -> impl Iterator<Item = usize> {
    const KEYWORD: &str = "unsafe";
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(KEYWORD).map(|(at, _)| at).filter(move |&at| {
        let after = &line[at + KEYWORD.len()..];
        let whole = !line[..at].ends_with(is_word) && !after.starts_with(is_word);
        let after = after.trim_start();
        let after = after.strip_prefix("extern").unwrap_or(after).trim_start();
        let pointer = after.strip_prefix("fn").is_some_and(|rest| rest.trim_start().starts_with('('));
        whole && !pointer
    })
}

/// Whether the reason stands close above, or, for a declaration, in its documentation.
fn is_explained(lines: &[&str], index: usize, from_keyword: &str) -> bool {
    let near = &lines[index.saturating_sub(SAFETY_REACH)..=index];
    if near.iter().any(|line| line.contains("SAFETY:")) {
        return true;
    }
    let mut words = from_keyword.split_whitespace().skip(1);
    let declares = words.next().is_some_and(|word| matches!(word, "fn" | "trait" | "extern"));
    let above = lines[..index].iter().rev().map(|line| line.trim_start());
    let mut documentation = above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
    declares && documentation.any(|line| line.contains("# Safety"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(source: &str) -> Vec<(u32, &'static str)> {
        let found = check_source(Path::new("a.rs"), source);
        found.iter().map(|diagnostic| (diagnostic.location.line.unwrap(), diagnostic.code.name())).collect()
    }

    #[test]
    fn a_file_opens_with_its_doc() {
        assert!(findings("//! What it is for.\n\nfn f() {}\n").is_empty());
        assert_eq!(findings("\nuse std::fs;\n//! Late.\n"), [(2, "tidy::no-module-doc")]);
        assert_eq!(findings(""), [(1, "tidy::no-module-doc")]);
    }

    #[test]
    fn a_long_file_gets_a_warning() {
        let source = "//! Long.\n".to_owned() + &"\n".repeat(LONG_FILE);
        let found = check_source(Path::new("a.rs"), &source);
        assert_eq!(found.len(), 1);
        assert!(!found.has_errors());
    }

    #[test]
    fn unfinished_code_is_found_in_code_only() {
        let source = "//! A.\nfn f() { todo!() }\n// todo!()\nconst T: &str = \"todo!()\";\n#[ignore = \"x\"]\n";
        assert_eq!(findings(source), [(2, "tidy::unfinished"), (5, "tidy::unfinished")]);
    }

    #[test]
    fn unsafe_needs_a_reason_close_by() {
        let explained = "//! A.\nfn f() {\n    // SAFETY: the index is checked above.\n    unsafe { g() }\n}\n";
        assert!(findings(explained).is_empty());
        let far = "//! A.\n// SAFETY: too far away.\n\n\n\n\n\nfn f() { unsafe { g() } }\n";
        assert_eq!(findings(far), [(8, "tidy::no-safety-comment")]);
    }

    #[test]
    fn an_unsafe_declaration_may_explain_itself_in_its_doc() {
        let section = "/// # Safety\n/// 1\n/// 2\n/// 3\n/// 4\n/// 5\n/// 6\n#[inline]\n";
        assert!(findings(&format!("//! A.\n{section}pub unsafe fn f() {{}}\n")).is_empty());
        assert_eq!(findings("//! A.\npub unsafe fn f() {}\n"), [(2, "tidy::no-safety-comment")]);
        assert_eq!(findings(&format!("//! A.\n{section}unsafe {{ f() }}\n")), [(10, "tidy::no-safety-comment")]);
    }

    #[test]
    fn a_diagnostic_says_what_to_do_next() {
        let bare = "//! A.\nfn f() {\n    Diagnostic::error(CODE, \"hint\")\n}\n";
        assert_eq!(findings(bare), [(3, "tidy::no-remedy")]);
        assert!(findings(&bare.replace(")\n}", ")\n        .hint(\"do that\")\n}")).is_empty());
        assert!(findings(&bare.replace("fn f()", "#[cfg(test)]\nmod tests")).is_empty());
        assert!(check_source(Path::new("crates/a/tests/b.rs"), bare).is_empty());
    }

    #[test]
    fn a_function_pointer_type_needs_no_reason() {
        assert!(findings("//! A.\ntype F = unsafe extern \"C\" fn(u8);\ntype G = unsafe fn(u8);\n").is_empty());
        assert!(findings("//! A.\n#![deny(unsafe_op_in_unsafe_fn)]\n").is_empty());
    }
}
