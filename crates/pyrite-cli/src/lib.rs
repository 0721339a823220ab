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

use clap::{CommandFactory as _, Parser, Subcommand};

pub use exit::ExitCode;
use failure::Failure;
use pyrite_diag::{Code, Diagnostic};
use pyrite_reader::ReadOptions;
pub use pyrite_session::Invocation;
use pyrite_session::{DevicePlacement, Host, Python, environment, worker};

/// The release, the commit it was built from, and the target.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PYRITE_BUILD"), ")");

/// Capture, compile, run and debug tensor programs.
#[derive(Parser)]
#[command(name = "pyrite", version = VERSION)]
struct Cli {
    /// Python interpreter with torch, for `torch:NAME` backends [default: PYRITE_PYTHON, else python3]
    #[arg(long, global = true, help_heading = "Global options", value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Python module to import first, for custom operators and backends; can be repeated
    #[arg(long, global = true, help_heading = "Global options", value_name = "MODULE")]
    import: Vec<String>,
    /// Another folder to search for the tensor data of programs
    #[arg(long, global = true, help_heading = "Global options", value_name = "FOLDER")]
    storages: Option<PathBuf>,
    /// Device for torch backends: `file` (as in the file), `cpu`, or a device such as `cuda:0`
    /// [default: file if this machine has a GPU, else cpu]
    #[arg(long, global = true, help_heading = "Global options", value_name = "DEVICE")]
    device: Option<DevicePlacement>,
    /// GPU memory limit of a program, in megabytes
    #[arg(long, global = true, help_heading = "Global options", value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    gpu_memory_limit: Option<u64>,
    /// Write a trace of every stage to a folder in PYRITE_DEBUG_DIR, else in pyrite_debug; `--trace=-output_code` omits
    /// an artifact [default: PYRITE_COMPILE_DEBUG]
    #[arg(long, global = true, help_heading = "Global options", value_name = "ARTIFACTS", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    trace: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program: a repro, a dump of PyTorch or Pyrite, or a torch.export file
    #[command(alias = "minifier-query")]
    Run(run::Run),
    /// Run the compiler's stages on a program, and print what each produces
    Compile(compile::Compile),
    /// Read, verify and print a program
    Show(show::Show),
    /// Confirm, classify, bisect, minify and prove a failure
    Debug(debug::Debug),
    /// Find the stage and the individual rewrite that make a program fail
    Bisect(bisect::Bisect),
    /// Find the smallest program that still fails
    Minify(minify::Minify),
    /// Find the smallest script that behaves differently when compiled, if no single graph is wrong
    MinifyScript(minify_script::MinifyScript),
    /// Compare a backend with the reference node by node, and find where they diverge
    Analyze(analyze::Analyze),
    /// Compare two result files, or the results of two programs
    Compare(compare::Compare),
    /// Load the inputs of a program and describe them
    GetArgs(get_args::GetArgs),
    /// Render a debugging session or a trace as one HTML file
    Report(report::Report),
    /// List the operators that Pyrite knows
    Ops(ops::Ops),
    /// List the backends that can run a program
    Backends(backends::Backends),
    /// List logs and trace artifacts
    Logs(logs::Logs),
    /// Check the installation: interpreter, torch, GPUs, caches
    Doctor(doctor::Doctor),
    /// Print a shell completion script
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
    let devices = device.unwrap_or_else(DevicePlacement::usual).into();
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
            Failure::of(problem.hint("free disk space, or redirect standard output to another disk")).report()
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

/// What is wrong with the words of a command line, printed as [`run`] would, and the exit code of that; `None` where nothing is.
pub fn refused(words: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let error = Cli::try_parse_from(words).err()?;
    let _ = error.print();
    Some(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)))
}

/// An option and what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionWord {
    /// Its name, with dashes.
    pub name: String,
    /// How many words after it belong to it, at least and at most; what is joined by `=` does not count.
    pub words: [usize; 2],
}

/// The options of `pyrite debug`, those of every command included.
pub fn debug_options() -> Vec<OptionWord> {
    let mut cli = Cli::command();
    cli.build();
    let debug = cli.find_subcommand("debug").into_iter().flat_map(clap::Command::get_arguments);
    let options = debug.filter_map(|option| {
        let name = format!("--{}", option.get_long()?);
        let count = option.get_num_args().unwrap_or_else(|| 0.into());
        let words = if option.is_require_equals_set() { [0, 0] } else { [count.min_values(), count.max_values()] };
        Some(OptionWord { name, words })
    });
    options.collect()
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
