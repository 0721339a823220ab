//! What works on this machine, what is missing, and how to get it: what `pyrite doctor` prints and reports quote.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use pyrite_compiler::{Options, find};
use pyrite_oracle::signal_name;
use pyrite_reader::{ReadOptions, read_text};
use pyrite_tensor::Tensor;

use crate::{Host, environment};

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Check {
    /// What it is.
    pub name: &'static str,
    /// What was seen.
    pub text: String,
    /// How to get it, where it is missing.
    pub remedy: Option<String>,
}

impl Check {
    fn fine(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text.into(), remedy: None }
    }

    fn missing(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, text: text.into(), remedy: Some(remedy.into()) }
    }
}

/// Everything that is looked at. What is missing is optional.
pub fn examine(host: &Host) -> Vec<Check> {
    let mut checks = vec![version(), cpu(), native(), threads(), gpu(), operators(), torch(host)];
    checks.extend(bfloat16(host));
    checks.extend([package(host), variables(), workers(host)]);
    checks.push(writable("temporary files", &std::env::temp_dir(), "TMPDIR"));
    checks.push(writable("traces", &environment::debug_folder(), "PYRITE_DEBUG_DIR"));
    checks
}

/// Names and texts of what this machine is; Python's side only where torch took part, since starting Python takes time.
pub(crate) fn environment(host: &Host, torch: Torch) -> Vec<(&'static str, String)> {
    let mut checks = vec![version(), cpu(), native(), threads(), operators(), variables()];
    if torch == Torch::TookPart {
        checks.push(installed_torch(host));
    }
    checks.into_iter().map(|check| (check.name, check.text)).collect()
}

/// Whether torch took part in what is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Torch {
    /// A backend or the reference is torch's.
    TookPart,
    /// Everything ran in Rust.
    Absent,
}

/// The version of torch, in a line.
pub(crate) fn torch_version(host: &Host) -> String {
    installed_torch(host).text
}

/// The versions that Python's packages say they have. Nothing is imported, which would take seconds.
fn installed_torch(host: &Host) -> Check {
    let script = "import sys; from importlib.metadata import version; \
                  print(f'torch {version(\"torch\")} with Python {sys.version.split()[0]}')";
    match python(host, script) {
        Said::Line(text) => Check::fine("torch", text),
        Said::Failed | Said::Died(_) | Said::NotStarted(_) => Check::fine("torch", "its version is not known"),
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

fn python(host: &Host, script: &str) -> Said {
    // Nothing is imported from the working directory, which may be a stranger's.
    let mut command = Command::new(&host.python.interpreter);
    match command.env("PYTHONSAFEPATH", "1").args(["-c", script]).output() {
        Ok(output) if output.status.success() => Said::Line(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Ok(output) => output.status.signal().map_or(Said::Failed, Said::Died),
        Err(error) => Said::NotStarted(error),
    }
}

/// Whether there is a torch to compare with.
fn torch(host: &Host) -> Check {
    let interpreter = host.python.interpreter.display();
    let name = "torch";
    match python(host, "import sys, torch; print(f'torch {torch.__version__} with Python {sys.version.split()[0]}')") {
        Said::Line(text) => Check::fine(name, text),
        Said::Failed | Said::Died(_) => Check::missing(
            name,
            format!("{interpreter} has no torch; only needed to compare with PyTorch"),
            format!("`{interpreter} -m pip install torch`, or name another interpreter with --python or PYRITE_PYTHON"),
        ),
        Said::NotStarted(error) => Check::missing(
            name,
            format!("{interpreter} cannot be started ({error}); only needed to compare with PyTorch"),
            "install Python 3.11, 3.12 or 3.13, or name an interpreter with --python or PYRITE_PYTHON",
        ),
    }
}

/// What helps where torch's own kernels for bfloat16 use instructions that the processor announces and refuses.
pub(crate) const WITHOUT_AMX: &str = "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 to disable AMX in torch";

/// Whether torch's own kernels for bfloat16 run: in some virtual machines AMX is announced and faults. Nothing where there
/// is no torch.
fn bfloat16(host: &Host) -> Option<Check> {
    let name = "torch bfloat16";
    match python(host, "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); print((x @ x)[0, 0].item())") {
        Said::Line(_) => Some(Check::fine(name, "bfloat16 matmuls work")),
        Said::Died(signal) => {
            let text = format!(
                "torch's bfloat16 matmul is terminated by {}: AMX may be unusable on this machine",
                signal_name(signal)
            );
            Some(Check::missing(name, text, WITHOUT_AMX))
        }
        Said::Failed | Said::NotStarted(_) => None,
    }
}

/// Whether the Python package of the same version is there.
fn package(host: &Host) -> Check {
    let own = env!("CARGO_PKG_VERSION");
    let name = "python package";
    let install = "`pip install .` in a clone of Pyrite's repository, with that interpreter's pip";
    match python(host, "import pyrite; print(pyrite.__version__)") {
        Said::Line(version) if version == own => Check::fine(name, format!("pyrite {version}")),
        Said::Line(version) => Check::missing(name, format!("pyrite {version} there, this command is {own}"), install),
        Said::Failed | Said::Died(_) | Said::NotStarted(_) => Check::missing(
            name,
            "not there; only needed for `pyrite.compile` and torch.compile(backend=\"pyrite\")",
            install,
        ),
    }
}

fn version() -> Check {
    let text = format!("pyrite {} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    Check::fine("version", text)
}

#[cfg(target_arch = "x86_64")]
fn cpu() -> Check {
    let features = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ];
    let present: Vec<&str> = features.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    if present.is_empty() {
        let text = "no vector extensions: loops are interpreted and matmuls are slow";
        return Check::missing("cpu", text, "use a processor with AVX2");
    }
    Check::fine("cpu", present.join(", "))
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu() -> Check {
    Check::fine("cpu", std::env::consts::ARCH)
}

/// Whether machine code can be made and run: some systems forbid it.
fn native() -> Check {
    let text = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[3]\"):\n        twice = x + x\n        \
                return (twice,)\n";
    let ran = || -> Result<(), String> {
        let read = read_text(text, None, pyrite_ops::registry(), &ReadOptions::default())
            .map_err(|_| "the check itself cannot be read".to_owned())?;
        let backend = find("native").ok_or("the backend is missing")?;
        let program = (backend.compile)(read.graph, &Options::default()).map_err(|error| error.to_string())?;
        let input = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]);
        program.run(vec![input.into()], None, &mut |_, _| {}).map_err(|error| error.to_string())?;
        Ok(())
    };
    let generator = pyrite_codegen::Generator::chosen();
    match ran() {
        Ok(()) => Check::fine("native code", generator.name()),
        Err(error) => Check::missing(
            "native code",
            format!("a compiled program does not run: {error}"),
            "PYRITE_CODEGEN=tiles interprets loops instead",
        ),
    }
}

/// Which GPUs the driver shows.
fn gpu() -> Check {
    let look = || -> pyrite_cuda::Result<String> {
        let driver = pyrite_cuda::Driver::get()?;
        let mut devices = Vec::new();
        for ordinal in 0..driver.count()? {
            let device = driver.device(ordinal)?;
            let (name, architecture, gib) = (&device.name, device.architecture(), device.memory >> 30);
            devices.push(format!("cuda:{ordinal} {name} ({architecture}, {gib} GiB)"));
        }
        if devices.is_empty() {
            return Err(pyrite_cuda::CudaError::NoDevice { wanted: 0, count: 0 });
        }
        let version = driver.version();
        Ok(format!("{}, driver of CUDA {}.{}", devices.join(", "), version / 1000, version % 1000 / 10))
    };
    match look() {
        Ok(text) => Check::fine("gpu", text),
        Err(error) => Check::missing("gpu", format!("{error}; only needed to run programs there"), error.remedy()),
    }
}

fn threads() -> Check {
    Check::fine("threads", pyrite_threads::chosen().to_string())
}

fn operators() -> Check {
    Check::fine("operators", pyrite_ops::registry().iter().count().to_string())
}

/// Whether this program can be started again, as everything that judges programs does.
fn workers(host: &Host) -> Check {
    let own = &host.invocation;
    let started = Command::new(&own.program).args(&own.arguments).arg("--version").output();
    match started.map(|output| output.status.success()) {
        Ok(true) => Check::fine("workers", "this program can be started again"),
        Ok(false) => Check::missing("workers", "this program fails when it is started again", "reinstall it"),
        Err(error) => Check::missing(
            "workers",
            format!("this program cannot be started again: {error}"),
            "raise the limit of processes (`ulimit -u`), or free memory",
        ),
    }
}

/// Whether a folder, or the nearest one above that is there, can be written.
fn writable(name: &'static str, folder: &Path, variable: &str) -> Check {
    let there: PathBuf =
        folder.ancestors().find(|above| above.is_dir()).map_or_else(|| PathBuf::from("."), Path::to_owned);
    match tempfile::NamedTempFile::new_in(&there) {
        Ok(_) => Check::fine(name, format!("{} can be written", folder.display())),
        Err(error) => Check::missing(
            name,
            format!("{} cannot be written: {error}", folder.display()),
            format!("name another folder with {variable}"),
        ),
    }
}

fn variables() -> Check {
    let set: Vec<String> = environment::VARIABLES
        .iter()
        .filter_map(|(name, _)| Some(format!("{name}={}", environment::value(name)?)))
        .collect();
    let text = if set.is_empty() { "none of Pyrite's variables is set".to_owned() } else { set.join(" ") };
    Check::fine("environment", text)
}
