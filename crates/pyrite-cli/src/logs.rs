//! `pyrite logs`: what can be logged and traced.

use pyrite_trace::{TOPICS, TopicKind};
use serde_json::json;

use crate::{ExitCode, Outcome};

/// List what PYRITE_LOGS and PYRITE_COMPILE_DEBUG know
#[derive(clap::Args)]
#[command(after_help = listing())]
pub struct Logs {
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

impl Logs {
    /// Prints the table.
    pub fn run(&self) -> Outcome {
        if self.json {
            let rows: Vec<_> = TOPICS
                .iter()
                .map(|row| json!({"name": row.name, "kind": kind(row.kind), "file": row.file, "help": row.help}))
                .collect();
            println!("{:#}", json!(rows));
        } else {
            print!("{}", listing());
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn kind(kind: TopicKind) -> &'static str {
    match kind {
        TopicKind::Component => "component",
        TopicKind::Artifact => "artifact",
    }
}

/// The table, and how its names are used.
fn listing() -> String {
    let mut text = String::new();
    for wanted in [TopicKind::Component, TopicKind::Artifact] {
        text.push_str(match wanted {
            TopicKind::Component => {
                "Components, with levels: name (what is done), +name (every step), -name (errors only):\n"
            }
            TopicKind::Artifact => "\nArtifacts, shown or not; the file is the one that a trace has:\n",
        });
        for row in TOPICS.iter().filter(|row| row.kind == wanted) {
            let file = if row.kind == TopicKind::Artifact && !row.file.is_empty() {
                format!(" ({})", row.file)
            } else {
                String::new()
            };
            text.push_str(&format!("  {:<18} {}{file}\n", row.name, row.help));
        }
    }
    text.push_str(
        "\nPYRITE_LOGS=\"capture,+aot,graph_code\" shows them on standard error; `all` stands for every name.\n\
         PYRITE_COMPILE_DEBUG=1, or --trace, leaves them in files; \"1,-output_code\" leaves one out.\n",
    );
    text
}
