//! The report of a debugging session: what was asked, what was found step by step, the smallest program, and the machine
//! it was found on. It is Markdown, ready to be pasted into an issue.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use pyrite_trace::event::Finding;
use pyrite_trace::{Event, Topic};

/// What a session did, in order.
pub struct Story {
    begun: Instant,
    steps: Vec<Finding>,
    /// How many of the steps the trace has.
    traced: usize,
}

impl Story {
    /// A session begins.
    pub fn begin() -> Self {
        Self { begun: Instant::now(), steps: Vec::new(), traced: 0 }
    }

    /// Adds what a step found, in a sentence and as data.
    pub fn tell(&mut self, step: &str, text: &str, data: serde_json::Value) -> &Finding {
        let seconds = self.begun.elapsed().as_secs_f64();
        let number = self.steps.len();
        self.steps.push(Finding { step: step.to_owned(), text: text.to_owned(), seconds, data });
        &self.steps[number]
    }

    /// What the steps found, in order.
    pub fn steps(&self) -> &[Finding] {
        &self.steps
    }

    /// Tells the trace of what it does not have yet.
    pub fn tell_trace(&mut self) {
        for found in &self.steps[self.traced..] {
            pyrite_trace::emit(Topic::Debug, || Event::Finding(found.clone()));
        }
        self.traced = self.steps.len();
    }

    /// The report, with the repro of the folder where there is one, and what the machine is.
    pub fn markdown(
        &self,
        title: &str,
        file: &Path,
        backend: &str,
        folder: &Path,
        machine: &[(&str, String)],
        options: &str,
    ) -> String {
        let mut text = format!("# {title}\n\nFound by `pyrite debug` in `{}` with `{backend}`.\n\n", name(file));
        text.push_str("## What was found\n\n");
        for found in &self.steps {
            let _ = writeln!(text, "- {}: {}", found.step, found.text);
        }
        if let Ok(repro) = std::fs::read_to_string(folder.join("repro.py")) {
            let _ = write!(
                text,
                "\n## The smallest program that fails\n\n`pyrite run repro.py --backend {backend}`, in this folder.\n\n\
                 ```python\n{}\n```\n",
                repro.trim_end()
            );
        }
        if let Ok(kernel) = std::fs::read_to_string(folder.join("kernel.py")) {
            let _ = write!(
                text,
                "\n## The guilty kernel\n\n`python kernel.py`, in this folder, launches it alone.\n\n```python\n{}\n```\n",
                kernel.trim_end()
            );
        }
        text.push_str("\n## Environment\n\n");
        for (what, found) in machine {
            let _ = writeln!(text, "- {what}: {found}");
        }
        let _ = writeln!(text, "- options: {}", if options.is_empty() { "none" } else { options });
        text
    }
}

fn name(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
