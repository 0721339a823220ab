//! The report of a debugging session: what was asked, what was found step by step, the smallest program, and the machine
//! it was found on. It is Markdown, ready to be pasted into an issue.

use std::fmt::Write as _;
use std::path::Path;

use crate::doctor;

/// What a session did, in order.
#[derive(Default)]
pub struct Story {
    steps: Vec<(String, String)>,
}

impl Story {
    /// Adds what a step found.
    pub fn tell(&mut self, step: &str, text: &str) {
        self.steps.push((step.to_owned(), text.to_owned()));
    }

    /// The report, with the repro of the folder where there is one.
    pub fn markdown(&self, title: &str, file: &Path, backend: &str, folder: &Path) -> String {
        let mut text = format!("# {title}\n\nFound by `pyrite debug` in `{}` with `{backend}`.\n\n", name(file));
        text.push_str("## What was found\n\n");
        for (step, found) in &self.steps {
            let _ = writeln!(text, "- {step}: {found}");
        }
        if let Ok(repro) = std::fs::read_to_string(folder.join("repro.py")) {
            let _ = write!(
                text,
                "\n## The smallest program that fails\n\n`pyrite run repro.py --backend {backend}`, in this folder.\n\n\
                 ```python\n{}\n```\n",
                repro.trim_end()
            );
        }
        text.push_str("\n## Environment\n\n");
        for (what, found) in doctor::environment() {
            let _ = writeln!(text, "- {what}: {found}");
        }
        let flags: Vec<String> = std::env::args().skip(1).filter(|word| word.starts_with("--")).collect();
        let _ = writeln!(text, "- flags: {}", if flags.is_empty() { "none".to_owned() } else { flags.join(" ") });
        text
    }
}

fn name(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
