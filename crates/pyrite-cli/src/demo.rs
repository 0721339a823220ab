//! `pyrite demo`: what Pyrite is for, in a few seconds and without Python.
//!
//! Compiles an embedded transformer block and runs it beside the interpreter; then compiles it with a bug planted in a
//! fusion, and does what `pyrite debug` and `report` do: notices, says where results diverge, bisects, minifies, proves. Everything goes to one folder; the last line is the path of its report.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pyrite_compiler::backend::Executable;
use pyrite_compiler::{Options, find, inputs};
use pyrite_debug::compared;
use pyrite_diag::{Code, Diagnostic, Location};
use pyrite_interp::Mode;
use pyrite_ir::{Graph, Value};
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, read_text};
use pyrite_session::{Options as SessionOptions, Session, folder};
use pyrite_tensor::Tensor;
use pyrite_trace::Topics;

use crate::failure::Failure;
use crate::report::Report;
use crate::reporter::Printer;
use crate::{ExitCode, Host, Outcome, tracing};

/// The block: attention and a feed-forward part with residuals, as Dynamo captures it.
const BLOCK: &str = include_str!("demo/transformer_block.py");

/// The compiler with a bug.
const WRONG: &str = "native_fusion_error_TESTING_ONLY";

/// How often a program is run for its time.
const RUNS: u32 = 5;

/// Compile an embedded transformer block, plant a bug in the compiler, and find it
#[derive(clap::Args)]
pub struct Demo {
    /// Output folder [default: a new folder in PYRITE_DEBUG_DIR, else in pyrite_debug]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Demo {
    /// Tells the story.
    pub fn run(&self, host: &Host) -> Outcome {
        if let Some(out) = &self.out {
            folder::check_unused(out)?;
        }
        let out = tracing::begin_demo(self.out.as_deref())?;
        let file = out.join("transformer_block.py");
        std::fs::write(&file, BLOCK).map_err(|error| {
            let problem = Diagnostic::error(Code::new("demo::cannot-write"), "the demo cannot be written");
            Failure::of(problem.at(Location::in_file(&file)).cause(error.to_string()).hint("name a folder with --out"))
        })?;
        compile(&file)?;
        tracing::limit(Topics::parse("debug").unwrap_or(Topics::NONE));

        println!("\nThe same, by a compiler with a bug in one of its fusions, {WRONG}:");
        let options =
            SessionOptions { backend: Some(WRONG.to_owned()), out: Some(out.clone()), ..SessionOptions::default() };
        let found = Session::open(host, &file, options, &Printer::new(false))?.run()?;
        pyrite_trace::stop().map_err(anyhow::Error::from)?;
        println!("\nThe report of this session:");
        Report::of(out).run()?;
        Ok(if found.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Compiles the block, runs it, and compares it with the interpreter.
fn compile(file: &Path) -> Result<(), Failure> {
    println!("A transformer block, compiled and run:");
    let read = read_text(BLOCK, Some(file), registry(), &ReadOptions::default())
        .map_err(|diagnostics| Failure::Input { diagnostics, json: false })?;
    let inputs = inputs::generate(&read.graph, file, 0).map_err(Failure::of)?.values;
    let nodes = read.graph.len();
    let (eager, _) = made("eager", read.graph.clone(), Mode::Eager)?;
    let (exact, _) = made("eager", read.graph.clone(), Mode::Fp64)?;
    // Telling the trace takes time that compiling does not.
    tracing::limit(Topics::NONE);
    let (native, took) = made("native", read.graph.clone(), Mode::Eager)?;
    tracing::limit(Topics::ALL);
    made("native", read.graph, Mode::Eager)?;
    println!("compile: {nodes} nodes in {took:.1} ms");
    let (slow, expected) = timed(&*eager, &inputs)?;
    let (fast, actual) = timed(&*native, &inputs)?;
    println!("run: {fast:.2} ms, interpreted {slow:.2} ms");
    let (_, fp64) = timed(&*exact, &inputs)?;
    let report = pyrite_compare::compare(&expected, &actual, Some(&fp64), &pyrite_compare::Options::default());
    let agree = if report.differences.is_empty() { "agree" } else { "DIFFER" };
    println!("compare: the results {agree}");
    Ok(())
}

/// The block by a backend, and how many milliseconds it took to compile.
fn made(backend: &str, graph: Graph, mode: Mode) -> Result<(Box<dyn Executable>, f64), Failure> {
    let found = find(backend).ok_or_else(|| anyhow::anyhow!("the backend {backend} is missing"))?;
    let begun = Instant::now();
    let program = (found.compile)(graph, &Options { mode, ..Options::default() });
    let program = program.map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok((program, begun.elapsed().as_secs_f64() * 1e3))
}

/// The shortest time of several runs, in milliseconds, and the results.
fn timed(program: &dyn Executable, inputs: &[Value<Tensor>]) -> Result<(f64, pyrite_compare::Results), Failure> {
    let mut best = f64::INFINITY;
    let mut outputs = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let ran = program.run(inputs.to_vec(), None, &mut |_, _| {}).map_err(|error| anyhow::anyhow!("{error}"))?;
        best = best.min(begun.elapsed().as_secs_f64() * 1e3);
        outputs = vec![ran.outputs];
    }
    Ok((best, compared(&pyrite_compiler::training::Results { outputs, ..Default::default() })))
}
