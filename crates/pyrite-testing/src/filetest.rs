//! File tests: a graph file that says what to do with it and what must come out.
//!
//! ```python
//! # test: infer
//! # test: run
//! class Repro(torch.nn.Module):
//!     def forward(self, x : "f32[2]"):
//!         relu = torch.ops.aten.relu.default(x)
//!         return (relu,)
//! # check: infer
//! #| relu: f32[2]
//! ```
//!
//! Each `# test:` line names a [`COMMANDS`] entry; its output must equal the `#|` lines after the `# check:` line of that
//! name. `BLESS=1` writes what came out into the file instead; `cargo xtask bless` sets it.

use std::fmt::Write as _;
use std::path::Path;

use pyrite_compiler::inputs;
use pyrite_diag::{Colour, Diagnostics, TextRenderer};
use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::verify::verify;
use pyrite_ir::{Kind, Meta, Value};
use pyrite_ops::registry;
use pyrite_reader::{ReadOptions, ReadOutcome, read_text};
use pyrite_tensor::Tensor;

/// A command of file tests: its name, what it gives, and how.
pub struct Command {
    /// The name in `# test:`.
    pub name: &'static str,
    /// What its output is.
    pub doc: &'static str,
    run: fn(&str, &Path) -> Result<String, String>,
}

/// Every command.
pub const COMMANDS: &[Command] = &[
    Command { name: "print", doc: "the graph as Pyrite prints it", run: printed },
    Command { name: "infer", doc: "a line per call: what inference says of its value", run: inferred },
    Command {
        name: "run",
        doc: "the outputs, from inputs of seed 0, after a run that checks inference and schemas",
        run,
    },
    Command { name: "errors", doc: "the diagnostics of a file that is wrong", run: errors },
    Command { name: "round-trip", doc: "nothing; printing and reading must give an equal graph", run: round_trip },
];

/// Runs what a file asks for. The error says how output and expectation differ, or why a command failed.
pub fn check(path: &Path, bless: Bless) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let asked: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# test: ")).map(str::trim).collect();
    if asked.is_empty() {
        return Err(format!("{} has no `# test:` line", path.display()));
    }
    let program = without_checks(&text);
    let mut blessed = program.trim_end().to_owned() + "\n";
    let mut problems = String::new();
    for name in asked {
        let Some(command) = COMMANDS.iter().find(|c| c.name == name) else {
            let known: Vec<&str> = COMMANDS.iter().map(|c| c.name).collect();
            return Err(format!("{} asks for `{name}`; known: {}", path.display(), known.join(", ")));
        };
        match (command.run)(&program, path) {
            Ok(output) => {
                let expected = expectation(&text, name);
                let output = output.trim_end().to_owned();
                if !output.is_empty() {
                    let _ = writeln!(blessed, "# check: {name}");
                    for line in output.lines() {
                        let _ = writeln!(blessed, "{}", format!("#| {line}").trim_end());
                    }
                }
                if output != expected {
                    let _ = writeln!(problems, "`{name}` gave\n{output}\ninstead of\n{expected}");
                }
            }
            Err(error) => return Err(format!("{}: `{name}` failed: {error}", path.display())),
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    match bless {
        Bless::Yes => std::fs::write(path, blessed).map_err(|e| format!("{}: {e}", path.display())),
        Bless::No => Err(format!("{}: {problems}(run `cargo xtask bless` if the new output is right)", path.display())),
    }
}

/// Whether expectations are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bless {
    /// Differences fail.
    No,
    /// Differences are written into the file.
    Yes,
}

fn without_checks(text: &str) -> String {
    text.lines()
        .filter(|line| !line.starts_with("#|") && !line.starts_with("# check: "))
        .fold(String::new(), |all, line| all + line + "\n")
}

fn expectation(text: &str, name: &str) -> String {
    let heading = format!("# check: {name}");
    let lines =
        text.lines().skip_while(|line| line.trim_end() != heading).skip(1).take_while(|line| line.starts_with("#|"));
    lines.map(|line| line[2..].strip_prefix(' ').unwrap_or(&line[2..])).collect::<Vec<_>>().join("\n")
}

fn read(text: &str, path: &Path) -> Result<ReadOutcome, Diagnostics> {
    // Diagnostics name the file without its folder, so that expectations hold in every checkout.
    let name = path.file_name().map(Path::new);
    let outcome = read_text(text, name, registry(), &ReadOptions::default())?;
    let mut problems = Diagnostics::new();
    verify(&outcome.graph, name).into_iter().for_each(|problem| problems.push(problem));
    if problems.is_empty() { Ok(outcome) } else { Err(problems) }
}

fn good(text: &str, path: &Path) -> Result<ReadOutcome, String> {
    read(text, path).map_err(|diagnostics| rendered(&diagnostics))
}

fn rendered(diagnostics: &Diagnostics) -> String {
    TextRenderer::new(Colour::Plain).render_all(diagnostics)
}

fn printed(text: &str, path: &Path) -> Result<String, String> {
    Ok(print(&good(text, path)?.graph, &PrintOptions::default()))
}

fn inferred(text: &str, path: &Path) -> Result<String, String> {
    let graph = good(text, path)?.graph;
    let mut output = String::new();
    for (_, node) in graph.nodes() {
        if let (Kind::Call(_), Some(meta)) = (&node.kind, &node.meta) {
            let _ = writeln!(output, "{}: {}", node.name, describe(meta));
        }
    }
    for constraint in graph.env.constraints() {
        let _ = writeln!(output, "requires {constraint}");
    }
    Ok(output)
}

fn describe(value: &Value<Meta>) -> String {
    match value {
        Value::Tensor(meta) if meta.is_contiguous() => format!("{meta}"),
        Value::Tensor(meta) => format!("{meta} stride {:?}", meta.stride.as_slice()),
        Value::Int(size) => size.to_string(),
        Value::List(items) => format!("({})", items.iter().map(describe).collect::<Vec<_>>().join(", ")),
        other => other.kind().to_owned(),
    }
}

fn run(text: &str, path: &Path) -> Result<String, String> {
    let program = good(text, path)?;
    let mut results = Vec::new();
    for mode in [Mode::CrossReference, Mode::SchemaCheck, Mode::Eager] {
        let inputs = match &program.inputs {
            Some(spec) => inputs::load(spec, path, 0),
            None => inputs::generate(&program.graph, path, 0),
        }
        .map_err(|e| e.to_string())?;
        let context = Context::new(registry(), 0);
        let result =
            Interpreter { context: &context, mode }.run(&program.graph, inputs.values).map_err(|e| e.to_string())?;
        results.push(output_lines(&result));
    }
    if results.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!("modes disagree:\n{}", results.join("---\n")));
    }
    Ok(results.pop().unwrap_or_default())
}

fn output_lines(result: &Value<Tensor>) -> String {
    let mut output = String::new();
    let items = if let Value::List(items) = result { items.as_slice() } else { std::slice::from_ref(result) };
    for item in items {
        let _ = match item {
            Value::Tensor(t) => writeln!(output, "{}{:?} stride {:?} {}", t.dtype(), t.shape(), t.stride(), numbers(t)),
            other => {
                writeln!(output, "{}", other.as_scalar().map_or_else(|| other.kind().to_owned(), |s| s.to_string()))
            }
        };
    }
    output
}

/// The elements to five digits, or their sum where there are many.
fn numbers(tensor: &Tensor) -> String {
    let values = tensor.to_f64s();
    if values.len() > 12 {
        return format!("sum {:.4e} of {}", values.iter().sum::<f64>(), values.len());
    }
    let text: Vec<String> =
        values.iter().map(|v| if tensor.dtype().is_integral() { v.to_string() } else { format!("{v:.4e}") }).collect();
    format!("[{}]", text.join(", "))
}

fn errors(text: &str, path: &Path) -> Result<String, String> {
    match read(text, path) {
        Ok(_) => Err("the file is fine, errors were expected".to_owned()),
        Err(diagnostics) => Ok(rendered(&diagnostics)),
    }
}

fn round_trip(text: &str, path: &Path) -> Result<String, String> {
    let first = good(text, path)?.graph;
    let printed = print(&first, &PrintOptions::default());
    let second = good(&printed, path).map_err(|e| format!("the print cannot be read:\n{e}\n{printed}"))?.graph;
    if first == second { Ok(String::new()) } else { Err(format!("the graph read from the print differs:\n{printed}")) }
}
