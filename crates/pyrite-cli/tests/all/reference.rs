//! The pages of docs/reference/ say what the tables of the program say. `cargo xtask docs` rewrites them.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference")
}

fn printed(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    let output = command.arg("reference").args(arguments).output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_page_of_the_reference_is_current() {
    let bless = std::env::var("BLESS").is_ok_and(|value| value == "1");
    let names = printed(&[]);
    let mut expected: Vec<String> = Vec::new();
    let mut stale: Vec<String> = Vec::new();
    for name in names.lines() {
        let (file, page) = (format!("{name}.md"), printed(&[name]));
        let path = folder().join(&file);
        if bless {
            std::fs::create_dir_all(folder()).expect("a folder");
            std::fs::write(&path, &page).expect("a page");
        }
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&page) {
            stale.push(file.clone());
        }
        expected.push(file);
    }
    assert!(stale.is_empty(), "not as the tables say: {}; run `cargo xtask docs`", stale.join(", "));
    let entries = std::fs::read_dir(folder()).expect("the folder of the pages");
    let mut found: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    // The page that lists the others is written by hand.
    found.retain(|name| name != "index.md");
    found.sort();
    assert_eq!(found, expected, "a page without a table");
}

#[test]
fn an_unknown_page_is_told_with_the_known_ones() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyrite"));
    let output = command.args(["reference", "weather"]).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("operators"));
}
