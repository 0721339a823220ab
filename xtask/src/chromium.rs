//! The browser that the tests of the report run in.
//!
//! It is Debian's package `chromium`. Where it is missing it is installed, if this user may; where that is not possible the
//! tests of the report are skipped, and the reason is told here.

use std::process::Command;

use crate::process;

/// The names under which Chromium is found.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Installs Chromium if it is missing and this user may install packages.
pub fn provide() {
    if NAMES.iter().any(|name| process::succeeds(Command::new(name).arg("--version"))) {
        return;
    }
    if !process::succeeds(Command::new("apt-get").arg("--version")) {
        eprintln!("no Chromium is installed, and this machine has no apt-get: the tests of the report are skipped");
        return;
    }
    eprintln!("installing Chromium for the tests of the report: once, some 300 MB");
    let install = |program: &str, words: &[&str]| {
        let options = ["install", "--yes", "--no-install-recommends", "chromium"];
        let mut command = Command::new(program);
        command.args(words).args(options).env("DEBIAN_FRONTEND", "noninteractive");
        process::succeeds(&mut command)
    };
    // Only what needs no password: as the superuser, or where sudo asks nothing.
    if !install("apt-get", &[]) && !install("sudo", &["--non-interactive", "apt-get"]) {
        eprintln!(
            "Chromium cannot be installed: the tests of the report are skipped; `apt-get install chromium` as root helps"
        );
    }
}
