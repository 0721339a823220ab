//! `pyrite ops`: the operators.

use pyrite_diag::{counted, nearest};
use pyrite_ir::{Eval, Infer, Operator, Tag};
use serde_json::json;

use crate::ExitCode;
use crate::Outcome;

/// List the operators that Pyrite knows
#[derive(clap::Args)]
pub struct Ops {
    /// Only operators that PyTorch tags `core`
    #[arg(long)]
    core: bool,
    /// Only operators whose name contains this text
    #[arg(value_name = "TEXT")]
    contains: Option<String>,
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

impl Ops {
    /// Prints the list.
    pub fn run(&self) -> Outcome {
        let chosen: Vec<_> = pyrite_ops::registry()
            .iter()
            .filter(|op| !self.core || op.has(Tag::Core))
            .filter(|op| self.contains.as_ref().is_none_or(|text| op.name().contains(text.as_str())))
            .collect();
        if self.json {
            let rows: Vec<_> = chosen.iter().map(|op| describe(op)).collect();
            println!("{:#}", json!(rows));
        } else {
            for op in &chosen {
                println!("{:<48} {}", op.name(), op.def.doc);
            }
            eprintln!("{}", counted(chosen.len() as u64, "operator", "operators"));
            if let (true, Some(text)) = (chosen.is_empty(), &self.contains) {
                let names = pyrite_ops::registry().iter().flat_map(|op| [op.name(), base_name(op.name())]);
                match nearest(text, names) {
                    Some(near) => eprintln!("no name contains `{text}`; did you mean `{near}`?"),
                    None => eprintln!("no name contains `{text}`; programs may still call it as an opaque operator"),
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `relu` of `aten.relu.default`.
fn base_name(name: &str) -> &str {
    name.split('.').nth(1).unwrap_or(name)
}

fn describe(op: &Operator) -> serde_json::Value {
    let eval = match op.def.eval {
        Eval::Kernel(_) => "kernel",
        Eval::View => "view",
        Eval::ViaDecomposition => "decomposition",
        Eval::WriteBack(_) => "write-back",
        Eval::HigherOrder => "nested-graph",
    };
    let infer = match op.def.infer {
        Infer::Rule(_) => "rule",
        Infer::ViaDecomposition => "decomposition",
        Infer::Written => "written-arguments",
        Infer::HigherOrder => "nested-graph",
    };
    json!({
        "name": op.name(),
        "schema": op.def.schema,
        "doc": op.def.doc,
        "tags": op.def.tags.iter().map(|tag| tag.name()).collect::<Vec<_>>(),
        "eval": eval,
        "infer": infer,
        "samples": op.def.samples,
    })
}
