//! The command `pyrite`, for the binary and for the Python package.
//!
//! [`run`] takes the words of a command line and gives the exit code. It never ends the process by itself, except for
//! commands that a signal or a closed pipe ends.
//!
//! Results go to standard output, talk and progress to standard error. Exit codes: 0 fine, 1 a failure was reproduced
//! or a difference found, 2 bad usage or input, 3 a bug in Pyrite.

mod analyze;
mod backends;
mod bisect;
mod compare;
mod compile;
mod completions;
mod debug;
mod demo;
mod doctor;
mod exit;
mod failure;
mod get_args;
mod interrupt;
mod leaving;
mod logs;
mod minify;
mod minify_script;
mod numbers;
mod ops;
mod options;
mod reference;
mod report;
mod reporter;
mod run;
mod show;
mod standard_input;
mod tracing;

use std::any::Any;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use exit::ExitCode;
use failure::Failure;
use pyrite_diag::{Code, Diagnostic};
use pyrite_reader::ReadOptions;
pub use pyrite_session::Invocation;
use pyrite_session::{Host, Place, Python, environment, worker};

/// The release, the commit it was built from, and the target.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PYRITE_BUILD"), ")");

/// Captures, runs and debugs tensor programs.
#[derive(Parser)]
#[command(name = "pyrite", version = VERSION)]
struct Cli {
    /// The Python interpreter that has torch, for backends `torch:NAME` [default: PYRITE_PYTHON, else python3]
    #[arg(long, global = true, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// A Python module to import first, for custom operators and backends; may be given several times
    #[arg(long, global = true, value_name = "MODULE")]
    import: Vec<String>,
    /// Look for the storages of programs in this folder too, wherever it is
    #[arg(long, global = true, value_name = "FOLDER")]
    storages: Option<PathBuf>,
    /// Where torch's backends run programs: `file` for where the file has its tensors, `cpu`, or a device such as `cuda:0`
    /// for all of them [default: file where this machine has a GPU, else cpu]
    #[arg(long, global = true, value_name = "DEVICE")]
    device: Option<Place>,
    /// How many megabytes of a GPU a program may have
    #[arg(long, global = true, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    gpu_memory_limit: Option<u64>,
    /// Leave a trace: every graph, loop nest and instruction on the way, in a folder below PYRITE_DEBUG_DIR, else
    /// pyrite_debug; `--trace=-output_code` leaves one artifact out [default: PYRITE_COMPILE_DEBUG]
    #[arg(long, global = true, value_name = "ARTIFACTS", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    trace: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program: a repro, or any dump of PyTorch's or Pyrite's
    #[command(alias = "minifier-query")]
    Run(run::Run),
    /// Take a program through functionalization, differentiation, decomposition and partitioning
    Compile(compile::Compile),
    /// Read, verify and print a program
    Show(show::Show),
    /// Confirm, classify, bisect, minify and prove a failure
    Debug(debug::Debug),
    /// Find the stage, and the single rewrite, that makes a program fail
    Bisect(bisect::Bisect),
    /// Find the smallest program that still fails
    Minify(minify::Minify),
    /// Find the smallest script whose compiled run differs from its eager run, where no single graph is wrong
    MinifyScript(minify_script::MinifyScript),
    /// Say, node by node, where a backend and the reference diverge
    Analyze(analyze::Analyze),
    /// Compare two files of results, or the results of two programs
    Compare(compare::Compare),
    /// Load the inputs of a program and say what they are
    GetArgs(get_args::GetArgs),
    /// Make one HTML file of what a run left behind
    Report(report::Report),
    /// List the operators that Pyrite knows
    Ops(ops::Ops),
    /// List the backends that can run a program
    Backends(backends::Backends),
    /// List what can be logged and traced
    Logs(logs::Logs),
    /// Say what works on this machine and what is missing
    Doctor(doctor::Doctor),
    /// Print a script that completes this command's words in a shell
    Completions(completions::Completions),
    /// Compile an embedded transformer block, plant a bug in the compiler, and find it
    Demo(demo::Demo),
    /// Print a page of the reference (for `cargo xtask docs`)
    #[command(hide = true)]
    Reference(reference::Reference),
    /// Run a command that ends with its caller (internal)
    #[command(hide = true)]
    Supervise {
        /// The process that asks
        #[arg(long)]
        parent: u32,
        /// The command
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Answer requests on standard input (internal)
    #[command(hide = true)]
    Worker {
        /// How many bytes of memory of its own the worker may have
        #[arg(long)]
        memory_limit: Option<u64>,
        /// The process that asks; the worker ends with it
        #[arg(long)]
        parent: Option<u32>,
    },
}

/// Does what the words of a command line say; the first word is the program's name.
pub fn run(words: impl IntoIterator<Item = OsString>, own: Invocation) -> ExitCode {
    let words = match standard_input::spooled(words) {
        Ok(words) => words,
        Err(error) => return Failure::Outside(error).report(),
    };
    let json = words.iter().any(|word| word == "--json");
    let Cli { python, import, storages, device, gpu_memory_limit, trace, command } = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and versions are no errors, and are printed where results are.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if matches!(command, Command::Minify(_) | Command::MinifyScript(_) | Command::Debug(_)) {
        interrupt::hold();
    }
    let python = python.or_else(|| environment::value("PYRITE_PYTHON").map(PathBuf::from)).or(own.python.clone());
    let devices = device.unwrap_or_else(Place::usual).into();
    if let Some(megabytes) = gpu_memory_limit {
        pyrite_debug::torch::limit_device_memory(megabytes << 20);
    }
    let reading = ReadOptions { devices, storages, ..ReadOptions::default() };
    let host = &Host::new(own, Python { imports: import, ..Python::new(python) }, reading);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        environment::apply()?;
        if !matches!(command, Command::Worker { .. } | Command::Supervise { .. }) {
            tracing::begin_logs()?;
        }
        if matches!(command, Command::Run(_) | Command::Compile(_)) {
            tracing::begin(trace.as_deref())?;
            // Searches compile thousands of programs that nobody wants to see again.
            environment::use_cache()?;
        }
        let outcome = match command {
            Command::Run(command) => command.run(host),
            Command::Compile(command) => command.run(host),
            Command::Show(command) => command.run(host),
            Command::Debug(command) => command.run(host),
            Command::Bisect(command) => command.run(host),
            Command::Minify(command) => command.run(host),
            Command::MinifyScript(command) => command.run(host),
            Command::Analyze(command) => command.run(host),
            Command::Compare(command) => command.run(host),
            Command::GetArgs(command) => command.run(host),
            Command::Report(command) => command.run(),
            Command::Reference(command) => command.run(),
            Command::Ops(command) => command.run(),
            Command::Backends(command) => command.run(),
            Command::Logs(command) => command.run(),
            Command::Doctor(command) => command.run(host),
            Command::Completions(command) => command.run(),
            Command::Demo(command) => command.run(host),
            Command::Supervise { parent, words } => Ok(worker::supervise(parent, &words)?.into()),
            Command::Worker { memory_limit, parent } => {
                worker::serve(memory_limit, parent)?;
                Ok(ExitCode::SUCCESS)
            }
        };
        outcome.map_err(|failure: Failure| failure.told_in_json(json))
    }));
    tracing::end();
    standard_input::forget();
    match outcome {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.report(),
        Err(panic) if is_unwritten_output(said(&*panic)) => {
            let cause = said(&*panic).rsplit_once(": ").map_or("", |(_, cause)| cause);
            let problem =
                Diagnostic::error(Code::new("cli::cannot-write"), "the results cannot be printed").cause(cause);
            Failure::of(problem.hint("make room where standard output goes, or print elsewhere")).report()
        }
        // The panic's own message stands above on standard error.
        Err(_) => {
            eprintln!(
                "This is a bug in Pyrite {}. Please report it with the file and the command.",
                env!("CARGO_PKG_VERSION")
            );
            ExitCode::from(3)
        }
    }
}

/// Whether a panic says that standard output took no more.
pub fn is_unwritten_output(text: &str) -> bool {
    text.starts_with("failed printing to stdout")
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map_or_else(|| panic.downcast_ref::<&str>().copied().unwrap_or_default(), String::as_str)
}

/// What a command comes to.
type Outcome = Result<ExitCode, Failure>;
