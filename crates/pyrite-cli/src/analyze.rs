//! `pyrite analyze FILE`: where do a backend and the reference part, node by node?

use std::path::PathBuf;
use std::process::ExitCode;

use pyrite_compiler::Options;
use pyrite_compiler::backend::Direction;
use pyrite_debug::{candidate_of, compared, execute};
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_interp::Mode;
use pyrite_ir::{Kind, NodeId, Patch, Value};
use pyrite_reduce::Candidate;
use serde_json::json;

use crate::Outcome;
use crate::failure::Failure;
use crate::run::{Precision, named, node_diagnostic};
use crate::switches::Comparing;

/// Say, node by node, where a backend and the reference part
#[derive(clap::Args)]
pub struct Analyze {
    /// The file
    file: PathBuf,
    /// Who is looked at
    #[arg(long)]
    backend: String,
    /// Who says what is right
    #[arg(long, default_value = "eager")]
    reference: String,
    /// How closely the two are compared
    #[arg(long, value_enum, default_value = "fp")]
    accuracy: Precision,
    /// The seed of random numbers and of generated inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    comparing: Comparing,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Analyze {
    /// Runs both with every value returned, and compares value by value.
    pub fn run(&self) -> Outcome {
        self.attempt().map_err(|failure| failure.told_in_json(self.json))
    }

    fn attempt(&self) -> Outcome {
        let (backend, reference) = (named(&self.backend)?, named(&self.reference)?);
        let whole = candidate_of(&self.file, self.seed).map_err(|why| {
            Failure::of(
                Diagnostic::error(Code::new("analyze::failed"), "the program cannot be loaded")
                    .at(Location::in_file(&self.file))
                    .cause(why),
            )
        })?;
        let (all, names) = returning_all(&whole)
            .ok_or_else(|| anyhow::anyhow!("the values of {} cannot be returned", self.file.display()))?;
        let run = |backend, mode| {
            let options = Options { seed: self.seed, mode, direction: Direction::Forward, ..Options::default() };
            execute(&all.graph, &all.inputs, backend, &options, &mut |_| {}, &mut |_, _| {})
        };
        let failed = |what: &str, error: &pyrite_ir::NodeError| Failure::of(node_diagnostic(&self.file, error, what));
        let expected = run(&reference, Mode::Eager).map_err(|b| failed("the reference failed", &b.error))?;
        let actual = run(&backend, Mode::Eager).map_err(|b| failed("the backend failed", &b.error))?;
        let truth = run(&reference, Mode::Fp64).ok().map(|truth| compared(&truth.results));
        let exact = match self.accuracy {
            Precision::Strict => pyrite_compare::Accuracy::Strict,
            Precision::Fp => pyrite_compare::Accuracy::Fp,
            Precision::Off => pyrite_compare::Accuracy::Off,
        };
        let report = pyrite_compare::compare(
            &compared(&expected.results),
            &compared(&actual.results),
            truth.as_ref(),
            &self.comparing.switches().options(exact),
        );
        let mut parted: Vec<(usize, &pyrite_compare::Difference)> = report
            .differences
            .iter()
            .filter(|d| d.place.group == "outputs")
            .filter_map(|d| Some((d.place.name.parse().ok()?, d)))
            .collect();
        let worst = parted.first().map(|(index, _)| *index);
        parted.sort_by_key(|(index, _)| *index);
        let name = |index: usize| names.get(index).map_or("?", String::as_str);
        if self.json {
            let rows: Vec<_> = parted
                .iter()
                .map(|(index, d)| json!({"node": name(*index), "class": d.class.name(), "difference": d.to_string()}))
                .collect();
            let first = parted.first().map(|(index, _)| name(*index));
            let object = json!({
                "verdict": if parted.is_empty() { "pass" } else { "fail" },
                "nodes": names.len(),
                "first": first,
                "worst": worst.map(name),
                "differences": rows,
            });
            println!("{object:#}");
        } else if parted.is_empty() {
            println!("{} and {} agree at all {} values", backend.name, reference.name, names.len());
        } else {
            println!("{} values, {} and {} part at {}:", names.len(), backend.name, reference.name, parted.len());
            for (index, difference) in parted.iter().take(20) {
                println!("{}: {difference}", name(*index));
            }
            if parted.len() > 20 {
                println!("and {} more", parted.len() - 20);
            }
            println!("first: {}, worst: {}", name(parted[0].0), worst.map_or("?", name));
        }
        Ok(if parted.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}

/// The program with every tensor it computes returned, and their names.
fn returning_all(whole: &Candidate) -> Option<(Candidate, Vec<String>)> {
    let mut graph = whole.graph.clone();
    let mut names = Vec::new();
    let mut values: Vec<NodeId> = Vec::new();
    let mut output = None;
    for (id, node) in whole.graph.nodes() {
        match (&node.kind, &node.meta) {
            (Kind::Call(_), Some(Value::Tensor(_))) => {
                names.push(node.name.clone());
                values.push(id);
            }
            (Kind::Output, _) => output = Some(id),
            _ => {}
        }
    }
    let mut patch = Patch::new(&graph, "return-all");
    patch.set_args(output?, vec![values.into()]);
    graph.apply(&patch).ok()?;
    Some((Candidate { graph, inputs: whole.inputs.clone() }, names))
}
