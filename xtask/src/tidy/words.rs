//! Retired words: names and phrases that Pyrite once used for things the field has names for.
//!
//! The table holds whole identifiers, file names and phrases, each with the word to use instead. They are found as whole
//! words in every tracked source and text file. The changelog keeps its history, and two files state old names on purpose
//! ([`EXEMPT`]).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use pyrite_diag::{Code, Diagnostic, Diagnostics};

use super::{line_location, tracked};
use crate::workspace::Workspace;

const RETIRED_WORD: Code = Code::new("tidy::retired-word");

/// Endings of the files that are searched.
const ENDINGS: [&str; 8] = [".rs", ".py", ".pyi", ".md", ".toml", ".js", ".css", ".c"];

/// Files that may hold retired words: history, the names that are still accepted, and this table.
const EXEMPT: [&str; 3] = ["CHANGELOG.md", "crates/pyrite-codegen/src/decisions.rs", "xtask/src/tidy/words.rs"];

/// Retired word or phrase, and what to write.
const RETIRED: [(&str, &str); 77] = [
    // Operators, memory and compilers of others.
    ("Target::Foreign", "Target::Opaque"),
    ("ForeignTensor", "TensorSubclass"),
    ("call_foreign", "capture_opaque_call"),
    ("foreign call", "opaque call"),
    ("foreign calls", "opaque calls"),
    ("foreign operator", "opaque operator"),
    ("foreign memory", "external memory"),
    ("Storage::foreign", "Storage::external"),
    ("foreign-folder", "not-owned"),
    ("_foreign", "_opaque"),
    // Matrix multiplication.
    ("products of matrices", "matmuls"),
    ("Products of matrices", "Matmuls"),
    ("batches of products", "batched matmuls"),
    ("products of batches", "batched matmuls"),
    ("native_products", "native_gemm"),
    ("native_batches", "native_bmm"),
    ("own-products", "own-gemm"),
    // Transposes.
    ("Turned", "Transposed"),
    ("turn_panel", "transpose_panel"),
    ("turn_quarters", "transpose_quarters"),
    ("turned_copy", "transposed_copy"),
    // Schedule, fusion and buffers.
    ("Follower", "Epilogue"),
    ("heir", "buffer reuse"),
    ("heirs", "buffer reuse"),
    ("bequeath", "reuse"),
    ("look_through", "elide_copy"),
    ("looks through", "elides the copy"),
    ("native_parts", "native_split_concat"),
    ("Errand", "RuntimeCall"),
    ("errand", "runtime call"),
    ("errands", "runtime calls"),
    // Versions and hashes.
    ("Stamp", "Version"),
    // Verdicts and accuracy.
    ("truth value", "bool"),
    ("truth values", "bools"),
    ("NoTruth", "NoFp64"),
    ("near_the_truth", "near_fp64"),
    ("Settled", "Assessment"),
    ("settle", "assess, specialize, flush"),
    ("settled", "assessed, specialized, flushed"),
    ("nudge", "perturb"),
    ("Nudge", "Perturbation"),
    ("nudged", "perturbed"),
    ("pytest.mark.calm", "pytest.mark.serial"),
    // Modules.
    ("commanded", "command_backend"),
    // Phrases.
    ("mend", "fix"),
    ("mended", "fixed"),
    ("for want of", "skipped: …"),
    ("cannot be had", "cannot open, is not available"),
    ("something else than", "a different result than"),
    ("who fails on it", "backend under test"),
    ("Who fails on it", "Backend under test"),
    ("Who says what is right", "Reference backend"),
    ("who says what is right", "reference backend"),
    ("the way of the data", "data flow"),
    ("a context manager that is none", "not a context manager"),
    ("the vocabulary of finding", "core types"),
    ("computes something else", "computes a different result"),
    ("is no tensor", "is not a tensor"),
    ("is no list", "is not a list"),
    ("is no plain value", "is not a plain value"),
    ("is no data type", "unknown dtype"),
    ("this is no", "this is not a"),
    ("something that is no", "a value that is not a"),
    ("that is none", "that is not one"),
    ("make room", "free disk space"),
    ("kept aside", "saved separately"),
    ("cannot be made", "cannot be created"),
    ("tells itself", "has custom …"),
    ("as it comes", "as captured"),
    ("of a class of its own", "of a subclass"),
    ("near it are", "did you mean"),
    ("plain products", "plain matmuls"),
    ("matrix products", "matmuls"),
    ("told to whoever", "reported to"),
    ("functions that no operator stands for", "functions without an operator"),
    ("whose end is noticed", "which has a finalizer"),
    ("nested otherwise", "differs in structure"),
];

/// Searches every tracked file, by its name and line by line.
pub fn check(workspace: &Workspace) -> Result<Diagnostics> {
    let mut found = Diagnostics::new();
    let searched = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending)) && !EXEMPT.contains(&name);
    for name in tracked(workspace)?.iter().filter(|name| searched(name)) {
        let text = fs::read_to_string(workspace.root.join(name)).with_context(|| format!("cannot read {name}"))?;
        found.extend(check_text(Path::new(name), &text));
    }
    Ok(found)
}

fn check_text(file: &Path, text: &str) -> Diagnostics {
    let mut found = Diagnostics::new();
    let lines: Vec<&str> = text.lines().collect();
    let name = file.to_string_lossy();
    for (word, instead) in RETIRED {
        let hint = format!("write `{instead}`; STYLE.md has the glossary, xtask/src/tidy/words.rs the table");
        if has_word(&name, word) {
            let problem = Diagnostic::error(RETIRED_WORD, format!("`{word}` in the name of a file is a retired word"));
            found.push(problem.at(line_location(file, &[], 0)).hint(&hint));
        }
        for (index, _) in lines.iter().enumerate().filter(|(_, line)| has_word(line, word)) {
            let problem = Diagnostic::error(RETIRED_WORD, format!("`{word}` is a retired word"));
            found.push(problem.at(line_location(file, &lines, index)).hint(&hint));
        }
    }
    found
}

/// Whether a text has the word with no letter, digit or underscore next to it.
fn has_word(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, text: &str) -> Vec<u32> {
        check_text(Path::new(name), text).iter().map(|found| found.location.line.unwrap()).collect()
    }

    #[test]
    fn whole_words_and_phrases_are_found_where_they_stand() {
        assert_eq!(lines("a.md", "This is fine.\nThe foreign call of it.\nWe mend it.\n"), [2, 3]);
        assert_eq!(lines("a.rs", "let amend = mended_part;\nlet x = Settled { y };\n"), [2]);
    }

    #[test]
    fn names_of_files_are_searched_too() {
        assert_eq!(lines("tests/native_products.rs", "//! Fine.\n"), [1]);
        assert!(lines("tests/native_gemm.rs", "//! Fine.\n").is_empty());
    }

    #[test]
    fn no_replacement_is_itself_retired() {
        for (word, instead) in RETIRED {
            assert!(RETIRED.iter().all(|(other, _)| !has_word(instead, other)), "{word}: {instead}");
        }
    }
}
