//! `pyrite analyze FILE`: where do a backend and the reference diverge, node by node?

use std::path::PathBuf;

use pyrite_session::analyze::{Analysis, Layer, Side, analyze};
use pyrite_session::{Program, SessionError, backend, folder, outputs};
use pyrite_trace::Stage;
use serde_json::json;

use crate::options::Judging;
use crate::reporter::Printer;
use crate::{ExitCode, Host, Outcome, tracing};

/// Compare a backend with the reference node by node, and find where they diverge
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Analyze {
    /// The file
    file: PathBuf,
    /// Backend under test
    #[arg(long)]
    backend: String,
    /// Write a trace to this folder, for `pyrite report`, and the values of all nodes to intermediates/*.npz
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Do not save the reference's values
    #[arg(long, requires = "out")]
    skip_saving_reference_intermediates: bool,
    /// Do not save the backend's values
    #[arg(long, requires = "out")]
    skip_saving_backend_intermediates: bool,
    /// Do not save the values in double precision
    #[arg(long, requires = "out")]
    skip_saving_float64_intermediates: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    judging: Judging,
}

impl Analyze {
    /// The file that keeps the values of a side, if one does.
    fn file_of(&self, side: Side) -> Option<&'static str> {
        let (skipped, name) = match side {
            Side::Reference => (self.skip_saving_reference_intermediates, "reference.npz"),
            Side::Backend => (self.skip_saving_backend_intermediates, "backend.npz"),
            Side::Float64 => (self.skip_saving_float64_intermediates, "float64.npz"),
        };
        (self.out.is_some() && !skipped).then_some(name)
    }

    /// Runs both with every value returned, and compares value by value.
    pub fn run(&self, host: &Host) -> Outcome {
        if let Some(out) = &self.out {
            folder::check_unused(out)?;
        }
        let options = self.judging.options(Some(&self.backend));
        let program = Program::open_for(host, &self.file, &options)?;
        let question = program.question(&options, &self.backend)?;
        let (backend, reference) = (backend::named(&question.backend)?, backend::named(&question.reference)?);
        let whole = program.candidate(options.seed)?;
        let mut kept = Vec::new();
        let mut keep = |side, values| kept.extend(self.file_of(side).map(|file| (file, values)));
        let compared = question.switches.options(question.accuracy);
        let analysis = analyze(&whole, &backend, &reference, &compared, &mut keep)
            .map_err(|stopped| SessionError::of(stopped.diagnostic(&self.file)))?;
        if let Some(out) = &self.out {
            let printer = Printer::new(self.json);
            let _trace = tracing::begin_in(out, &printer);
            let _stage = pyrite_trace::stage(Stage::Debug);
            pyrite_session::tracing::tell_program(&whole.graph, "program.py");
            analysis.tell_trace();
            let folder = out.join("intermediates");
            if !kept.is_empty() {
                std::fs::create_dir_all(&folder)
                    .map_err(SessionError::system(format!("cannot create {}", folder.display())))?;
            }
            for (file, values) in kept {
                outputs::save_named(&folder.join(file), values)?;
            }
        }
        if self.json {
            tell_programs(&analysis);
        } else {
            tell(&backend.name, &reference.name, &analysis);
        }
        Ok(if analysis.first().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn tell_programs(analysis: &Analysis) {
    let row = |layer: &Layer| json!({"node": layer.node, "class": layer.class, "difference": layer.difference});
    let object = json!({
        "verdict": if analysis.first().is_some() { "fail" } else { "pass" },
        "nodes": analysis.layers.len(),
        "first": analysis.first().map(|layer| &layer.node),
        "worst": analysis.worst().map(|layer| &layer.node),
        "differences": analysis.differing().map(row).collect::<Vec<_>>(),
        "layers": analysis.layers,
    });
    println!("{object:#}");
}

fn tell(backend: &str, reference: &str, analysis: &Analysis) {
    if !analysis.judged {
        println!("fp64 cannot be computed: the two are compared with each other");
    }
    let all = analysis.layers.len();
    let (Some(first), Some(worst)) = (analysis.first(), analysis.worst()) else {
        println!("{backend} and {reference} agree at all {all} values");
        println!("the failure needs several operators compiled together: try `pyrite minify`");
        return;
    };
    let count = analysis.differing().count();
    println!("{all} values, {backend} and {reference} differ at {count}:");
    for layer in analysis.differing().take(20) {
        if let (Some(own), Some(other)) = (layer.reference_error, layer.backend_error) {
            println!("{} ({}): error against fp64 {other:.3e}, that of {reference} {own:.3e}", layer.node, layer.op);
        }
        println!("{}: {}", layer.node, layer.difference.as_deref().unwrap_or_default());
    }
    if count > 20 {
        println!("and {} more", count - 20);
    }
    println!("first: {}, worst: {}", first.node, worst.node);
}
