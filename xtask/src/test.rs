//! The steps of `cargo xtask test` and `cargo xtask nightly`, and the sum of what they count.
//!
//! A failing step never stops the ones after it: one run shows everything that is wrong.

use std::fmt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::counts::Counts;
use crate::programs::{Building, Conformance};
use crate::python::{self, Installation};
use crate::workspace::Workspace;
use crate::{chromium, process, programs, tidy};

/// How long the fuzz target runs in `test`.
const FUZZ_SECONDS: u64 = 30;
/// How long it runs in `nightly`.
const NIGHTLY_FUZZ_SECONDS: u64 = 30 * 60;
/// How many processes of Python share work at most: each holds torch, and what it tests may take all memory it gets.
const PYTHON_PROCESSES: usize = 8;
/// What tests of random programs and of many dumps read in `nightly`: how many there are.
const NIGHTLY_TESTS: &[(&str, &str)] = &[
    ("PYRITE_RANDOM_PROGRAMS", "10000"),
    ("PYRITE_RANDOM_SCHEDULES", "100000"),
    ("PYRITE_MEMORY_SEQUENCES", "100000"),
    ("PYRITE_CAPTURE_PROGRAMS", "20000"),
    ("PYRITE_CORPUS", "all"),
    ("KERNELS", "3000"),
    ("PTX_KERNELS", "10000"),
    ("PYRITE_DUMP_MATRIX", "all"),
    ("PYRITE_USER_PROGRAMS", "all"),
    ("PYRITE_GUARDED", "all"),
];

/// What reduces and proves planted bugs, and nothing else; everyday runs leave them out.
const PROOFS: &[&str] = &[
    "tests/python/debugger/test_proof.py",
    "tests/python/debugger/test_scripts.py",
    "tests/python/debugger/test_minifier.py",
    "tests/python/debugger/test_torch_backends.py",
    "tests/python/debugger/test_good_programs.py",
    "tests/python/debugger/test_hostile.py",
    "tests/python/debugger/test_reports.py",
];

/// The crates whose unsafe code Miri runs, and which of their tests reach it.
const MIRI: &[(&str, &[&str])] =
    &[("pyrite-threads", &[]), ("pyrite-tensor", &["storage::", "tensor::", "walk::", "layout::", "element::"])];

/// What compares random convolutions with PyTorch's.
const CONVOLUTIONS: &str = "operators.convolutions";
/// What compares whole models with PyTorch's.
const ARCHITECTURES: &str = "models.sweep";
/// What compares whole models that torch captured with PyTorch's, and counts what Pyrite does not compile.
const REGIONS: &str = "models.region_sweep";
/// What runs every small function through torch.compile.
const REGION_CASES: &str = "tests/python/package/test_region_cases.py";
/// What compiles functions on the subjects of a peer's tests in every way.
const PEER_CASES: &str = "tests/python/package/test_peer_cases.py";
/// What compares operators at sizes that no sample has, twenty cases of each.
const SIZES: &str = "operators.sizes";
/// What calls torch's functions in every way in which they are written.
const VARIANTS: &str = "operators.variants";
/// What calls samples of torch's functions with inputs that lie otherwise.
const BORDER_SAMPLES: &str = "border.samples";
/// What compiles random compositions of torch's functions and calls them with changing sizes.
const COMPOSITIONS: &str = "border.compositions";
/// What runs the examples in docstrings of torch and torchvision at every entry point.
const EXAMPLES: &str = "border.examples";
/// What runs the tests of packages that build on torch, call by call, where a folder named by `PYRITE_ECOSYSTEM` holds them.
const ECOSYSTEM: &str = "border.ecosystem";
/// What runs the tests of CPython and of packages inside of captured frames.
const SUITES: &str = "capture.suites";
/// What calls every method of Python's own classes inside of captured frames.
const METHODS: &str = "capture.methods";
/// What compiles every model of transformers that can be built small.
const STRANGERS: &str = "models.strangers";

/// How many of pytest's tests are named with their times at its end.
const SLOWEST: &str = "--durations=40";

/// All crates but the one that needs Python.
const WITHOUT_PYTHON: &[&str] = &["--workspace", "--exclude", "pyrite-python"];

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What needs neither Python nor a release build.
    Fast,
    /// Everything that decides over a change.
    Full,
    /// Also the whole conformance suites and public architectures, and a long fuzz run in place of the short one.
    Nightly,
}

/// Runs all steps of the scope, prints a table of them, and returns the sum.
pub fn run(workspace: &Workspace, scope: Scope) -> Counts {
    let mut report = Report::default();
    let installation = (scope != Scope::Fast).then(|| python::begin(workspace));
    let interpreter = installation.as_ref().and_then(|begun| begun.as_ref().ok()).map(Installation::bare_interpreter);
    // The checks below leave a processor idle wherever one crate waits for another, and use another folder.
    let building = interpreter.map(|interpreter| Building::begin(workspace, interpreter));
    report.step("fmt", || checked(&mut workspace.cargo(["fmt", "--all", "--check"])));
    report.step("clippy", || {
        let mut command = match interpreter {
            Some(interpreter) => programs::cargo_with_python(workspace, interpreter, ["clippy", "--workspace"]),
            None => workspace.cargo(["clippy"].iter().chain(WITHOUT_PYTHON)),
        };
        checked(command.args(["--all-targets", "--keep-going", "--", "-D", "warnings"]))
    });
    report.step("tidy", || {
        let found = tidy::run(workspace)?;
        Ok(if found.has_errors() { Outcome::FAILED } else { Outcome::PASSED })
    });
    report.step("tests", || rust_tests(workspace, scope));
    if !has_avx512() {
        report.step("AVX-512", || Ok(Outcome::Skipped("this processor has none: its code was compiled and not run")));
    }
    report.step("doctests", || {
        let mut command = workspace.cargo(["test", "--doc", "--no-fail-fast"].iter().chain(WITHOUT_PYTHON));
        counted(&mut command, Counts::of_libtest)
    });
    drop(building);
    if let Some(begun) = installation {
        report.step("python", || begun?.finish().map(|_| Outcome::PASSED));
        with_python(workspace, scope, &mut report);
    }
    report.print();
    report.total()
}

/// Whether this processor runs what is compiled for the widest vectors.
fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// The steps that need a release build, most of them torch too.
fn with_python(workspace: &Workspace, scope: Scope, report: &mut Report) {
    chromium::provide();
    let processes = thread::available_parallelism().map_or(1, usize::from).min(PYTHON_PROCESSES).to_string();
    let fuzz_seconds = if scope == Scope::Nightly { NIGHTLY_FUZZ_SECONDS } else { FUZZ_SECONDS };
    thread::scope(|beside| {
        // Most tests of pytest wait for something now and then.
        let fuzzing = beside.spawn(|| Step::run("fuzz", || fuzz(workspace, fuzz_seconds)));
        let args = ["-m", "not serial", "--numprocesses", &processes, "--dist", "worksteal"];
        report.step("pytest", || pytest(workspace, scope, &args));
        report.steps.push(fuzzing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
    report.step("pytest, serial", || pytest(workspace, scope, &["-m", "serial"]));
    if scope == Scope::Nightly {
        nightly(workspace, &processes, report);
    }
}

/// What takes too long to be run for every change.
fn nightly(workspace: &Workspace, processes: &str, report: &mut Report) {
    report.step("pytest, oldest torch", || oldest_torch(workspace, processes));
    let jobs = ["--jobs", processes];
    report.step("conformance", || {
        // A case is traced for longer than it runs: both ways share the trace.
        let both = ["--mode", "crossref,native"];
        measured(programs::conformance_command(workspace, Conformance::Results)?.args(both).args(jobs))
    });
    report.step("gradients", || measured(programs::conformance_command(workspace, Conformance::Gradients)?.args(jobs)));
    report.step("miri", || miri(workspace));
    report.step("proofs", || {
        let args = ["-m", "pytest", "--color=no", "--numprocesses", processes];
        let mut command = programs::python_with_pyrite(workspace, args)?;
        counted(command.args(PROOFS).env("PYRITE_PROOFS", "all"), Counts::of_pytest)
    });
    let modules: [(_, _, &[&str]); 12] = [
        ("convolutions", CONVOLUTIONS, &[]),
        ("sizes", SIZES, &["--count", "20"]),
        ("variants", VARIANTS, &[]),
        ("samples at every entry point", BORDER_SAMPLES, &["--count", "4000"]),
        ("compositions", COMPOSITIONS, &["--count", "4000"]),
        ("examples in documentation", EXAMPLES, &["torch", "torchvision"]),
        ("tests of the ecosystem", ECOSYSTEM, &[]),
        ("architectures", ARCHITECTURES, &[]),
        ("regions of architectures", REGIONS, &[]),
        ("models of strangers", STRANGERS, &[]),
        ("tests of others", SUITES, &["test", "sympy.core", "sympy.sets", "networkx", "mpmath"]),
        ("methods of Python's classes", METHODS, &[]),
    ];
    for (name, module, args) in modules {
        report.step(name, || measured(programs::python_module(workspace, module)?.args(args)));
    }
    for (name, file, variable) in [
        ("regions of functions", REGION_CASES, "PYRITE_REGION_CASES"),
        ("subjects of a peer's tests", PEER_CASES, "PYRITE_PEER_CASES"),
    ] {
        report.step(name, || {
            let args = ["-m", "pytest", "--color=no", file, "--numprocesses", processes];
            let mut command = programs::python_with_pyrite(workspace, args)?;
            counted(command.env(variable, "all"), Counts::of_pytest)
        });
    }
}

/// The tests that need torch, with the oldest one that is supported.
fn oldest_torch(workspace: &Workspace, processes: &str) -> Result<Outcome> {
    let chosen = (python::TORCH, python::OLDEST_TORCH);
    let mut building = workspace.cargo(["xtask", "python"]);
    let built = process::run_and_keep(building.envs([chosen]))?;
    let Some(interpreter) =
        built.text.lines().find(|line| line.ends_with("bin/python")).filter(|_| built.status.success())
    else {
        bail!("no Python environment with torch {}", python::OLDEST_TORCH);
    };
    let mut command = Command::new(interpreter);
    command.current_dir(&workspace.root).env("PYRITE_BIN", workspace.release_binary("pyrite")).envs([chosen]);
    command.args([
        "-m",
        "pytest",
        "--color=no",
        "-m",
        "not serial",
        "--numprocesses",
        processes,
        "--dist",
        "worksteal",
    ]);
    counted(command.arg("tests/python"), Counts::of_pytest)
}

/// The tests of the crates that share raw memory between threads and tensors, under Miri where it is installed.
fn miri(workspace: &Workspace) -> Result<Outcome> {
    let miri = |args: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo", "miri"]).args(args).current_dir(&workspace.root);
        command
    };
    if !process::succeeds(&mut miri(&["--version"])) {
        return Ok(Outcome::Skipped("Miri is missing: rustup component add miri rust-src --toolchain nightly"));
    }
    let mut counts = Counts::default();
    for (package, modules) in MIRI {
        let mut command = miri(&["test", "--package", package, "--lib", "--"]);
        // The pool asks for the number of processors.
        command.args(*modules).env("MIRIFLAGS", "-Zmiri-disable-isolation");
        let Outcome::Counted(found) = counted(&mut command, Counts::of_libtest)? else { continue };
        counts += found;
    }
    Ok(Outcome::Counted(counts))
}

/// The tests of all crates that need no Python, with nextest where it is installed.
fn rust_tests(workspace: &Workspace, scope: Scope) -> Result<Outcome> {
    let more = |mut command: Command| {
        if scope == Scope::Nightly {
            command.envs(NIGHTLY_TESTS.iter().copied());
        }
        command
    };
    if programs::has_nextest(workspace) {
        let args = ["nextest", "run", "--no-fail-fast", "--no-tests=pass", "--color=never"];
        return counted(&mut more(workspace.cargo(args.iter().chain(WITHOUT_PYTHON))), Counts::of_nextest);
    }
    eprintln!("cargo-nextest is not installed: `cargo test` takes its place");
    let args = ["test", "--lib", "--bins", "--tests", "--no-fail-fast"];
    counted(&mut more(workspace.cargo(args.iter().chain(WITHOUT_PYTHON))), Counts::of_libtest)
}

/// Some of the tests that need torch. Most wait for a process that they started, so several run at a time; those marked
/// `serial` measure times, and run alone.
fn pytest(workspace: &Workspace, scope: Scope, which: &[&str]) -> Result<Outcome> {
    let args = ["-m", "pytest", "--color=no", SLOWEST, "tests/python"];
    let mut command = programs::python_with_pyrite(workspace, args)?;
    if scope == Scope::Nightly {
        command.envs(NIGHTLY_TESTS.iter().copied());
    }
    counted(command.args(which), Counts::of_pytest)
}

fn fuzz(workspace: &Workspace, seconds: u64) -> Result<Outcome> {
    if !programs::has_fuzz_target(workspace) {
        return Ok(Outcome::Skipped("there is no fuzz target"));
    }
    measured(&mut programs::fuzz_command(workspace, seconds)?)
}

/// Runs a program that is one check.
fn checked(command: &mut Command) -> Result<Outcome> {
    process::run(command).map(|()| Outcome::PASSED)
}

/// Runs a program whose summary `read` understands.
fn counted(command: &mut Command, read: fn(&str) -> Counts) -> Result<Outcome> {
    let transcript = process::run_and_keep(command)?;
    let counts = read(&transcript.text);
    Ok(Outcome::Counted(if transcript.status.success() { counts } else { counts.with_a_failure() }))
}

/// Runs a program that is one check and whose last line gives its figures.
fn measured(command: &mut Command) -> Result<Outcome> {
    let transcript = process::run_and_keep(command)?;
    let counts = if transcript.status.success() { Counts::ONE_PASSED } else { Counts::ONE_FAILED };
    let last = transcript.text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Ok(Outcome::Measured(counts, last.unwrap_or("it printed nothing").to_owned()))
}

/// What came out of a step.
enum Outcome {
    Counted(Counts),
    Measured(Counts, String),
    Skipped(&'static str),
}

impl Outcome {
    const PASSED: Self = Self::Counted(Counts::ONE_PASSED);
    const FAILED: Self = Self::Counted(Counts::ONE_FAILED);

    fn counts(&self) -> Counts {
        match self {
            Self::Counted(counts) | Self::Measured(counts, _) => *counts,
            Self::Skipped(_) => Counts::default(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counted(counts) => write!(f, "{counts}"),
            Self::Measured(counts, figures) => write!(f, "{counts}: {figures}"),
            Self::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

/// A step that was run.
struct Step {
    name: &'static str,
    outcome: Outcome,
    duration: Duration,
}

impl Step {
    /// Runs one step. A step that cannot be run at all counts as one failure.
    fn run(name: &'static str, run: impl FnOnce() -> Result<Outcome>) -> Self {
        eprintln!("==> {name}");
        let start = Instant::now();
        let outcome = run().unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            Outcome::FAILED
        });
        let duration = start.elapsed();
        eprintln!("    {name}: {outcome} ({:.1} s)", duration.as_secs_f64());
        Self { name, outcome, duration }
    }
}

/// The steps that were run.
#[derive(Default)]
struct Report {
    steps: Vec<Step>,
}

impl Report {
    fn step(&mut self, name: &'static str, run: impl FnOnce() -> Result<Outcome>) {
        self.steps.push(Step::run(name, run));
    }

    fn print(&self) {
        println!();
        for Step { name, outcome, duration } in &self.steps {
            println!("{name:<20} {:>7.1} s   {outcome}", duration.as_secs_f64());
        }
    }

    fn total(&self) -> Counts {
        let mut total = Counts::default();
        for step in &self.steps {
            total += step.outcome.counts();
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_step_counts_once_and_the_rest_goes_on() {
        let mut report = Report::default();
        report.step("broken", || anyhow::bail!("no such program"));
        report.step("left out", || Ok(Outcome::Skipped("nothing to do")));
        report.step("tests", || Ok(Outcome::Counted(Counts { passed: 5, failed: 2 })));
        assert_eq!(report.total(), Counts { passed: 5, failed: 3 });
    }
}
