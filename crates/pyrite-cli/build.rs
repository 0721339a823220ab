//! Tells `pyrite --version` which commit it was built from, and for which target.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
    };
    // Every commit and checkout appends to this log. Outside of a repository there is no commit to name.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    let build = match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(commit) => format!("{commit} {target}"),
        None => target,
    };
    println!("cargo:rustc-env=PYRITE_BUILD={build}");
}
