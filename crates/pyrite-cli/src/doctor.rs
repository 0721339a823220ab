//! `pyrite doctor`: what works on this machine.

use std::process::Command;

use serde_json::json;

use crate::ExitCode;
use crate::{Outcome, environment};

/// Say what works on this machine and what is missing
#[derive(clap::Args)]
pub struct Doctor {
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

/// How a check came out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    Missing,
}

struct Finding {
    name: &'static str,
    state: State,
    text: String,
}

impl Doctor {
    /// Prints the findings. What is missing is optional, so the exit code is 0 unless a check itself fails.
    pub fn run(&self) -> Outcome {
        let findings = findings();
        if self.json {
            let rows: Vec<_> = findings
                .iter()
                .map(|f| json!({"name": f.name, "fine": f.state == State::Fine, "text": f.text}))
                .collect();
            println!("{:#}", json!(rows));
        } else {
            for finding in &findings {
                let mark = if finding.state == State::Fine { "ok     " } else { "missing" };
                println!("{mark}  {:<12} {}", finding.name, finding.text);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn findings() -> [Finding; 7] {
    [version(), cpu(), threads(), operators(), torch(), temporary_folder(), variables()]
}

/// Names and texts of what this machine is.
pub fn environment() -> Vec<(&'static str, String)> {
    let concerns_programs = |finding: &Finding| finding.name != "disk";
    findings().into_iter().filter(concerns_programs).map(|finding| (finding.name, finding.text)).collect()
}

/// Whether there is a torch to compare with.
fn torch() -> Finding {
    let script = "import sys, torch; print(f'torch {torch.__version__} with Python {sys.version.split()[0]}')";
    let name = "torch";
    let interpreter = crate::python_interpreter();
    match Command::new(&interpreter).args(["-c", script]).output() {
        Ok(output) if output.status.success() => {
            Finding { name, state: State::Fine, text: String::from_utf8_lossy(&output.stdout).trim().to_owned() }
        }
        Ok(_) => Finding {
            name,
            state: State::Missing,
            text: format!(
                "{} has no torch; only needed to compare with PyTorch: `pip install torch`, or name another with --python",
                interpreter.display()
            ),
        },
        Err(error) => Finding {
            name,
            state: State::Missing,
            text: format!(
                "{} cannot be started ({error}); only needed to compare with PyTorch: name an interpreter with --python",
                interpreter.display()
            ),
        },
    }
}

fn version() -> Finding {
    let text = format!("pyrite {} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    Finding { name: "version", state: State::Fine, text }
}

#[cfg(target_arch = "x86_64")]
fn cpu() -> Finding {
    let features = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ];
    let present: Vec<&str> = features.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    let text = if present.is_empty() {
        "no vector extensions: matrix products are slow".to_owned()
    } else {
        present.join(", ")
    };
    Finding { name: "cpu", state: if present.is_empty() { State::Missing } else { State::Fine }, text }
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu() -> Finding {
    Finding { name: "cpu", state: State::Fine, text: std::env::consts::ARCH.to_owned() }
}

fn threads() -> Finding {
    Finding { name: "threads", state: State::Fine, text: pyrite_threads::chosen().to_string() }
}

fn operators() -> Finding {
    Finding { name: "operators", state: State::Fine, text: pyrite_ops::registry().iter().count().to_string() }
}

fn temporary_folder() -> Finding {
    let folder = std::env::temp_dir();
    let file = folder.join(format!("pyrite-doctor-{}", std::process::id()));
    let name = "disk";
    match std::fs::write(&file, b"pyrite") {
        Ok(()) => {
            let _ = std::fs::remove_file(&file);
            Finding { name, state: State::Fine, text: format!("{} can be written", folder.display()) }
        }
        Err(error) => {
            Finding { name, state: State::Missing, text: format!("{} cannot be written: {error}", folder.display()) }
        }
    }
}

fn variables() -> Finding {
    let set: Vec<String> = environment::VARIABLES
        .iter()
        .filter_map(|(name, _)| Some(format!("{name}={}", environment::value(name)?)))
        .collect();
    let text = if set.is_empty() { "none of Pyrite's variables is set".to_owned() } else { set.join(" ") };
    Finding { name: "environment", state: State::Fine, text }
}
