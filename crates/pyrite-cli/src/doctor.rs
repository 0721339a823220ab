//! `pyrite doctor`: what works on this machine, what is missing, and how to get it.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use pyrite_compiler::{Options, find};
use pyrite_oracle::signal_name;
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::Tensor;
use serde_json::json;

use crate::ExitCode;
use crate::{Invocation, Outcome, environment, tracing};

/// Say what works on this machine and what is missing
#[derive(clap::Args)]
pub struct Doctor {
    /// Print a JSON array of objects
    #[arg(long)]
    json: bool,
}

/// How a check came out.
enum State {
    Fine,
    /// It is missing; how to get it.
    Missing(String),
}

struct Finding {
    name: &'static str,
    state: State,
    text: String,
}

impl Finding {
    fn fine(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, state: State::Fine, text: text.into() }
    }

    fn missing(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Missing(remedy.into()), text: text.into() }
    }

    fn remedy(&self) -> Option<&str> {
        if let State::Missing(remedy) = &self.state { Some(remedy) } else { None }
    }
}

impl Doctor {
    /// Prints the findings. What is missing is optional, so the exit code is 0 unless a check itself fails.
    pub fn run(&self) -> Outcome {
        let mut findings = findings();
        findings.extend([workers(), writable("temporary files", &std::env::temp_dir(), "TMPDIR")]);
        findings.push(writable("traces", &tracing::base(), "PYRITE_DEBUG_DIR"));
        if self.json {
            let rows: Vec<_> = findings
                .iter()
                .map(|f| json!({"name": f.name, "fine": f.remedy().is_none(), "text": f.text, "remedy": f.remedy()}))
                .collect();
            println!("{:#}", json!(rows));
        } else {
            for finding in &findings {
                let mark = if finding.remedy().is_none() { "ok     " } else { "missing" };
                println!("{mark}  {:<15} {}", finding.name, finding.text);
                if let Some(remedy) = finding.remedy() {
                    println!("         {:<15} {remedy}", "");
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What concerns the programs that are run here.
fn findings() -> Vec<Finding> {
    let mut findings = vec![version(), cpu(), native(), threads(), operators(), torch()];
    findings.extend(bfloat16());
    findings.extend([package(), variables()]);
    findings
}

/// Names and texts of what this machine is; Python's side only where torch took part, since starting Python takes time.
pub fn environment(torch: Torch) -> Vec<(&'static str, String)> {
    let mut findings = vec![version(), cpu(), native(), threads(), operators(), variables()];
    if torch == Torch::TookPart {
        findings.push(installed_torch());
    }
    findings.into_iter().map(|finding| (finding.name, finding.text)).collect()
}

/// Whether torch took part in what is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torch {
    /// A backend or the reference is torch's.
    TookPart,
    /// Everything ran in Rust.
    Absent,
}

/// The version of torch, in a line.
pub fn torch_version() -> String {
    installed_torch().text
}

/// The versions that Python's packages say they have. Nothing is imported, which would take seconds.
fn installed_torch() -> Finding {
    let script = "import sys; from importlib.metadata import version; \
                  print(f'torch {version(\"torch\")} with Python {sys.version.split()[0]}')";
    match python(script) {
        Said::Line(text) => Finding::fine("torch", text),
        Said::Failed | Said::Died(_) | Said::NotStarted(_) => Finding::fine("torch", "its version is not known"),
    }
}

/// What a line of Python prints, or what is wrong.
enum Said {
    Line(String),
    Failed,
    /// It was ended by a signal.
    Died(i32),
    NotStarted(std::io::Error),
}

fn python(script: &str) -> Said {
    // Nothing is imported from the working directory, which may be a stranger's.
    let mut command = Command::new(crate::python_interpreter());
    match command.env("PYTHONSAFEPATH", "1").args(["-c", script]).output() {
        Ok(output) if output.status.success() => Said::Line(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Ok(output) => output.status.signal().map_or(Said::Failed, Said::Died),
        Err(error) => Said::NotStarted(error),
    }
}

/// Whether there is a torch to compare with.
fn torch() -> Finding {
    let interpreter = crate::python_interpreter().display().to_string();
    let name = "torch";
    match python("import sys, torch; print(f'torch {torch.__version__} with Python {sys.version.split()[0]}')") {
        Said::Line(text) => Finding::fine(name, text),
        Said::Failed | Said::Died(_) => Finding::missing(
            name,
            format!("{interpreter} has no torch; only needed to compare with PyTorch"),
            format!("`{interpreter} -m pip install torch`, or name another interpreter with --python or PYRITE_PYTHON"),
        ),
        Said::NotStarted(error) => Finding::missing(
            name,
            format!("{interpreter} cannot be started ({error}); only needed to compare with PyTorch"),
            "install Python 3.11, 3.12 or 3.13, or name an interpreter with --python or PYRITE_PYTHON",
        ),
    }
}

/// What helps where torch's own kernels for bfloat16 use instructions that the processor announces and refuses.
pub const WITHOUT_AMX: &str = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment has torch do without AMX";

/// Whether torch's own kernels for bfloat16 run: in some virtual machines AMX is announced and faults. Nothing where there
/// is no torch.
fn bfloat16() -> Option<Finding> {
    let name = "torch bfloat16";
    match python("import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); print((x @ x)[0, 0].item())") {
        Said::Line(_) => Some(Finding::fine(name, "torch multiplies matrices of bfloat16")),
        Said::Died(signal) => {
            let text = format!("torch's own matmul of bfloat16 ends by {}: AMX may fault here", signal_name(signal));
            Some(Finding::missing(name, text, WITHOUT_AMX))
        }
        Said::Failed | Said::NotStarted(_) => None,
    }
}

/// Whether the Python package of the same version is there.
fn package() -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    let name = "python package";
    let install = "`pip install .` in a clone of Pyrite's repository, with that interpreter's pip";
    match python("import pyrite; print(pyrite.__version__)") {
        Said::Line(version) if version == own => Finding::fine(name, format!("pyrite {version}")),
        Said::Line(version) => {
            Finding::missing(name, format!("pyrite {version} there, this command is {own}"), install)
        }
        Said::Failed | Said::Died(_) | Said::NotStarted(_) => Finding::missing(
            name,
            "not there; only needed for `pyrite.compile` and torch.compile(backend=\"pyrite\")",
            install,
        ),
    }
}

fn version() -> Finding {
    let text = format!("pyrite {} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    Finding::fine("version", text)
}

#[cfg(target_arch = "x86_64")]
fn cpu() -> Finding {
    let features = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ];
    let present: Vec<&str> = features.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    if present.is_empty() {
        let text = "no vector extensions: loops are interpreted and matrix products are slow";
        return Finding::missing("cpu", text, "use a processor with AVX2");
    }
    Finding::fine("cpu", present.join(", "))
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu() -> Finding {
    Finding::fine("cpu", std::env::consts::ARCH)
}

/// Whether machine code can be made and run: some systems forbid it.
fn native() -> Finding {
    let text = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[3]\"):\n        twice = x + x\n        \
                return (twice,)\n";
    let ran = || -> Result<(), String> {
        let read = read_text(text, None, pyrite_ops::registry(), &ReadOptions::default())
            .map_err(|_| "the check itself cannot be read".to_owned())?;
        let backend = find("native").ok_or("the backend is missing")?;
        let program = (backend.compile)(read.graph, &Options::default()).map_err(|error| error.to_string())?;
        let input = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]);
        program.run(vec![input.into()], &mut |_, _| {}).map_err(|error| error.to_string())?;
        Ok(())
    };
    let generator = pyrite_codegen::Generator::chosen();
    match ran() {
        Ok(()) => Finding::fine("native code", format!("{generator:?}")),
        Err(error) => Finding::missing(
            "native code",
            format!("a compiled program does not run: {error}"),
            "PYRITE_CODEGEN=tiles interprets loops instead",
        ),
    }
}

fn threads() -> Finding {
    Finding::fine("threads", pyrite_threads::chosen().to_string())
}

fn operators() -> Finding {
    Finding::fine("operators", pyrite_ops::registry().iter().count().to_string())
}

/// Whether this program can be started again, as everything that judges programs does.
fn workers() -> Finding {
    let started = Invocation::own().and_then(|own| {
        Command::new(&own.program).args(&own.arguments).arg("--version").output().map(|output| output.status.success())
    });
    match started {
        Ok(true) => Finding::fine("workers", "this program can be started again"),
        Ok(false) => Finding::missing("workers", "this program fails when it is started again", "install it anew"),
        Err(error) => Finding::missing(
            "workers",
            format!("this program cannot be started again: {error}"),
            "raise the limit of processes (`ulimit -u`), or free memory",
        ),
    }
}

/// Whether a folder, or the nearest one above that is there, can be written.
fn writable(name: &'static str, folder: &Path, variable: &str) -> Finding {
    let there: PathBuf =
        folder.ancestors().find(|above| above.is_dir()).map_or_else(|| PathBuf::from("."), Path::to_owned);
    match tempfile::NamedTempFile::new_in(&there) {
        Ok(_) => Finding::fine(name, format!("{} can be written", folder.display())),
        Err(error) => Finding::missing(
            name,
            format!("{} cannot be written: {error}", folder.display()),
            format!("name another folder with {variable}"),
        ),
    }
}

fn variables() -> Finding {
    let set: Vec<String> = environment::VARIABLES
        .iter()
        .filter_map(|(name, _)| Some(format!("{name}={}", environment::value(name)?)))
        .collect();
    let text = if set.is_empty() { "none of Pyrite's variables is set".to_owned() } else { set.join(" ") };
    Finding::fine("environment", text)
}
