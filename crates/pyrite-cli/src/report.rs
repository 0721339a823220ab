//! `pyrite report FOLDER`: one HTML file of what a run left behind, and of two that are compared.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_report::{RunView, html, open};
use serde_json::json;

use crate::failure::Failure;
use crate::{ExitCode, Outcome};

/// Render a debugging session or a trace as one HTML file
#[derive(clap::Args)]
pub struct Report {
    /// The folder of a session, a trace (run_…), or a folder of traces
    folder: PathBuf,
    /// Compare with this session or trace
    #[arg(long, value_name = "FOLDER")]
    compare: Option<PathBuf>,
    /// Output file [default: report.html in the folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Report {
    /// The page of a folder, in it.
    pub fn of(folder: PathBuf) -> Self {
        Self { folder, compare: None, out: None, json: false }
    }

    /// Reads the folder, writes the page, and says where it is.
    pub fn run(&self) -> Outcome {
        let run = read(&self.folder)?;
        let other = self.compare.as_deref().map(read).transpose()?;
        let folder = if self.folder.is_dir() { &self.folder } else { self.folder.parent().unwrap_or(Path::new(".")) };
        let path = self.out.clone().unwrap_or_else(|| folder.join("report.html"));
        write(&path, &html(&run, other.as_ref()))?;
        if self.json {
            let nodes: Vec<usize> = run.graphs.iter().map(|graph| graph.nodes.len()).collect();
            let object = json!({
                "report": path, "folder": run.folder, "signature": run.signature, "steps": run.stages.len(),
                "graphs": nodes, "breaks": run.breaks.len(), "recompiles": run.recompiles.len(),
                "minify": run.minify.len(), "files": run.files.len(),
            });
            println!("{object:#}");
        } else {
            println!("{}", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn read(folder: &Path) -> Result<RunView, Failure> {
    open(folder).map_err(|error| Failure::of(error.diagnostic()))
}

/// Writes the page beside its place and moves it there, so that nothing half-written is seen.
pub fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A page is for others too, as far as the user's mask lets them.
    let readable = std::fs::Permissions::from_mode(0o666);
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix(".report").suffix(".html").permissions(readable).tempfile_in(folder);
    let written = made.and_then(|mut file| {
        file.write_all(page.as_bytes())?;
        file.persist(path)?;
        Ok(())
    });
    written.map_err(|error| {
        Failure::of(
            Diagnostic::error(Code::new("report::unwritten"), "the page cannot be written")
                .at(Location::in_file(path))
                .cause(error)
                .hint("free disk space, or choose another file with --out"),
        )
    })
}
