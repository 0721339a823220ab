//! `pyrite doctor`: what works on this machine, what is missing, and how to get it.

use pyrite_session::machine::examine;
use serde_json::json;

use crate::{ExitCode, Host, Outcome};

/// Check the installation: interpreter, torch, GPUs, caches
#[derive(clap::Args)]
pub struct Doctor {
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Prints the checks. What is missing is optional, so the exit code is 0 unless a check itself fails.
    pub fn run(&self, host: &Host) -> Outcome {
        let checks = examine(host);
        if self.json {
            let rows: Vec<_> = checks
                .iter()
                .map(|c| json!({"name": c.name, "fine": c.remedy.is_none(), "text": c.text, "remedy": c.remedy}))
                .collect();
            println!("{:#}", json!(rows));
        } else {
            for check in &checks {
                let mark = if check.remedy.is_none() { "ok     " } else { "missing" };
                println!("{mark}  {:<15} {}", check.name, check.text);
                if let Some(remedy) = &check.remedy {
                    println!("         {:<15} {remedy}", "");
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
