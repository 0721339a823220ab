//! The debugger as a library: what `pyrite debug FILE --backend BACKEND --out FOLDER` does, as data.
//!
//! `cargo run --release -p pyrite-session --example debug_a_file -- FILE BACKEND FOLDER`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pyrite_session::{Finding, Host, Invocation, Options, Python, ReadOptions, Reporter, Session, worker};

/// Prints a line for every step.
struct Lines;

impl Reporter for Lines {
    fn found(&self, finding: &Finding) {
        println!("{:>6.1} s  {}: {}", finding.seconds, finding.step, finding.text);
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    // The workers of a session are processes of the same program.
    if let Some(code) = worker::serve_if_asked() {
        return Ok(code.into());
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, backend, folder] = words.as_slice() else {
        return Err("usage: debug_a_file FILE BACKEND FOLDER".into());
    };
    let host = Host::new(Invocation::of_this_binary()?, Python::new(None), ReadOptions::default());
    let options = Options { backend: Some(backend.clone()), out: Some(PathBuf::from(folder)), ..Options::default() };
    let found = Session::open(&host, Path::new(file), options, &Lines)?.run()?;

    println!("outcome: {}", found.outcome());
    if let Some(minified) = &found.minified {
        println!("{} nodes of {} are left: {}", minified.nodes_after, minified.nodes_before, minified.proof());
        println!("{}", minified.program);
    }
    Ok(if found.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
