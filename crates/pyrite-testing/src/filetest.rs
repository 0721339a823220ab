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
//! Each `# test:` line names a [`COMMANDS`] entry, or `after:PASS` for the scheduled program after a pass of the native
//! compiler; its output must equal the `#|` lines after the `# check:` line of that
//! name. `BLESS=1` writes what came out into the file instead; `cargo xtask bless` sets it.

use std::fmt::Write as _;
use std::path::Path;

use pyrite_codegen::decisions::Decisions;
use pyrite_codegen::passes::{self, Machine};
use pyrite_codegen::schedule::{Schedule, memory, parse, verify as schedule_verify};
use pyrite_compiler::aot::{Stages, partition_by_min_cut};
use pyrite_compiler::backend::Direction;
use pyrite_compiler::training::run_fwd_maybe_bwd;
use pyrite_compiler::{Options, find, inputs};
use pyrite_diag::{Colour, Diagnostics, TextRenderer};
use pyrite_interp::{Context, Interpreter, Mode};
use pyrite_ir::print::{PrintOptions, print};
use pyrite_ir::verify::verify;
use pyrite_ir::{Kind, Meta, Value};
use pyrite_ops::registry;
use pyrite_passes::Table;
use pyrite_passes::functionalize::{InputSource, Produced};
use pyrite_ptx::assemble::{Assembler, Needs};
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
    Command { name: "functionalize", doc: "the program without writes, and what surrounds it", run: functionalized },
    Command {
        name: "joint",
        doc: "the graph of outputs and gradients, every float input wanting one",
        run: joint_graph,
    },
    Command {
        name: "partition",
        doc: "the forward and backward graph by min-cut, and the bytes between them",
        run: partitioned,
    },
    Command { name: "gradients", doc: "the gradients of the mean of means, from inputs of seed 0", run: gradients },
    Command { name: "ptx", doc: "the kernels as PTX for GPUs", run: ptx_text },
    Command {
        name: "ptxas",
        doc: "registers and spills of each kernel by NVIDIA's assembler; what is expected, where that is not installed",
        run: assembled,
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
        let output = match (COMMANDS.iter().find(|c| c.name == name), name.strip_prefix("after:")) {
            (Some(command), _) => (command.run)(&program, path),
            (None, Some(pass)) if passes::all().any(|(known, ..)| known == pass) => scheduled(&program, path, pass),
            (None, _) => {
                let known: Vec<&str> = COMMANDS.iter().map(|c| c.name).collect();
                let passes: Vec<&str> = passes::all().map(|(pass, ..)| pass).collect();
                let (known, passes) = (known.join(", "), passes.join(", "));
                return Err(format!("{} asks for `{name}`; known: {known}, after: {passes}", path.display()));
            }
        };
        match output {
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

/// The scheduled program after a pass; it must be well-formed and read back as it was printed.
fn scheduled(text: &str, path: &Path, wanted: &str) -> Result<String, String> {
    let read = good(text, path)?;
    let options = Options { direction: Direction::Forward, ..Options::default() };
    let stages = Stages::of(&read.graph, &partition_by_min_cut(), Table::Loops, &options).map_err(|e| e.to_string())?;
    let mut found = Ok(String::new());
    let mut look = |pass: &str, schedule: &Schedule| {
        if pass == wanted && found.is_ok() {
            found = printed_and_read(schedule);
        }
    };
    let graph = &stages.functional.graph;
    let only = passes::PASSES.iter().find(|pass| pass.name == wanted).and_then(|pass| pass.only);
    let (machine, mut gate) = (only.unwrap_or(Machine::Cpu), options.gate());
    let schedule = passes::schedule_for(machine, graph, registry(), &mut Decisions::new(&mut gate), &mut look);
    let problems = memory::check(&schedule.map_err(|e| e.to_string())?);
    match problems.first() {
        Some(problem) => Err(format!("the memory plan is wrong: {problem}")),
        None => found,
    }
}

/// The schedule that code for GPUs is emitted for.
fn finished(text: &str, path: &Path) -> Result<Schedule, String> {
    let read = good(text, path)?;
    let options = Options { direction: Direction::Forward, ..Options::default() };
    let stages = Stages::of(&read.graph, &partition_by_min_cut(), Table::Loops, &options).map_err(|e| e.to_string())?;
    let graph = &stages.functional.graph;
    passes::schedule_for(Machine::Gpu, graph, registry(), &mut Decisions::new(&mut options.gate()), &mut |_, _| ())
        .map_err(|e| e.to_string())
}

fn ptx_text(text: &str, path: &Path) -> Result<String, String> {
    Ok(finished(text, path)?.kernels().map(pyrite_codegen::ptx::listing).collect())
}

fn assembled(text: &str, path: &Path) -> Result<String, String> {
    let Some(assembler) = Assembler::find() else {
        eprintln!("{}: ptxas is not installed (PYRITE_PTXAS names one), so nothing is assembled", path.display());
        let whole = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        return Ok(expectation(&whole, "ptxas"));
    };
    let mut output = String::new();
    for kernel in finished(text, path)?.kernels() {
        let listing = pyrite_codegen::ptx::listing(kernel);
        for architecture in ["sm_80", "sm_90"] {
            for needs in assembler.assemble(&listing, architecture).map_err(|e| e.to_string())? {
                let Needs { entry, registers, spills, shared } = needs;
                let _ = writeln!(
                    output,
                    "{entry} {architecture}: {registers} registers, {spills} bytes spilled, {shared} bytes shared"
                );
            }
        }
    }
    Ok(output)
}

/// The text of a schedule, after it was verified, read back and printed again.
pub fn printed_and_read(schedule: &Schedule) -> Result<String, String> {
    if let Some(problem) = schedule_verify::verify(schedule).first() {
        return Err(format!("the schedule is wrong: {problem}"));
    }
    let text = schedule.to_string();
    let again = parse::parse(&text, registry()).map_err(|error| format!("{error}\n{text}"))?.to_string();
    if again == text { Ok(text) } else { Err(format!("printed\n{text}\nread back as\n{again}")) }
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

/// The graph of a file with every float input wanting a gradient, unless its `load_args` says which do.
fn wanting(text: &str, path: &Path) -> Result<ReadOutcome, String> {
    let mut program = good(text, path)?;
    if program.inputs.is_none() {
        let inputs: Vec<_> = program.graph.placeholders().map(|(id, node)| (id, node.meta.clone())).collect();
        for (id, meta) in inputs {
            if let Some(Value::Tensor(meta)) = meta {
                let requires_grad = meta.dtype.is_float() || meta.dtype.is_complex();
                program.graph.set_meta(id, Value::Tensor(Meta { requires_grad, ..meta }));
            }
        }
    }
    Ok(program)
}

fn stages(text: &str, path: &Path, direction: Direction) -> Result<Stages, String> {
    let program = wanting(text, path)?;
    let options = Options { direction, ..Options::default() };
    Stages::of(&program.graph, &partition_by_min_cut(), Table::Composite, &options).map_err(|e| e.to_string())
}

fn functionalized(text: &str, path: &Path) -> Result<String, String> {
    let functional = stages(text, path, Direction::Forward)?.functional;
    let mut output = print(&functional.graph, &PrintOptions::default());
    for (source, number) in functional.sources.iter().zip(0..) {
        match source {
            InputSource::Input(input) if *input == number => {}
            source => {
                let _ = writeln!(output, "input {number} is {source:?}");
            }
        }
    }
    if !functional.written.is_empty() {
        let _ = writeln!(output, "written inputs: {:?}", functional.written);
    }
    for (index, produced) in functional.produced.iter().enumerate() {
        let _ = match produced {
            Produced::Value(position) => writeln!(output, "output {index} is result {position}"),
            Produced::Input(position) => writeln!(output, "output {index} is input {position}"),
            Produced::ViewOfInput(position, meta) => {
                writeln!(
                    output,
                    "output {index} is a view of input {position}: {}",
                    describe(&Value::Tensor(meta.clone()))
                )
            }
            Produced::ViewOfValue(position, meta) => {
                writeln!(
                    output,
                    "output {index} is a view of result {position}: {}",
                    describe(&Value::Tensor(meta.clone()))
                )
            }
            Produced::Plain(value) => writeln!(output, "output {index} is {}", value.kind()),
        };
    }
    Ok(output)
}

fn joint_graph(text: &str, path: &Path) -> Result<String, String> {
    let joint = stages(text, path, Direction::ForwardAndBackward)?.joint;
    Ok(print(&joint.ok_or("nothing wants a gradient")?.graph, &PrintOptions::default()))
}

fn partitioned(text: &str, path: &Path) -> Result<String, String> {
    let partition = stages(text, path, Direction::ForwardAndBackward)?.partition.ok_or("nothing wants a gradient")?;
    let shown = |graph| print(graph, &PrintOptions::default());
    let (forward, backward) = (shown(&partition.forward), shown(&partition.backward));
    Ok(format!("forward\n{forward}\nbackward, from {} saved bytes\n{backward}", partition.saved_bytes))
}

fn gradients(text: &str, path: &Path) -> Result<String, String> {
    let program = wanting(text, path)?;
    let mut results = Vec::new();
    for name in ["eager", "aot_eager", "aot_eager_default_partitioner", "aot_eager_decomp_partition"] {
        let inputs = match &program.inputs {
            Some(spec) => inputs::load(spec, path, 0),
            None => inputs::generate(&program.graph, path, 0),
        }
        .map_err(|e| e.to_string())?;
        let backend = find(name).ok_or_else(|| format!("there is no backend {name}"))?;
        let executable = (backend.compile)(program.graph.clone(), &Options::default()).map_err(|e| e.to_string())?;
        let direction = Direction::ForwardAndBackward;
        let constants = program.graph.constants();
        let ran = run_fwd_maybe_bwd(&*executable, inputs.values, constants, direction, &mut |_| {}, &mut |_, _| {})
            .map_err(|(_, e)| format!("{name}: {e}"))?;
        let tensors = ran.input_gradients.into_iter().chain(ran.parameter_gradients.into_iter().map(|(_, g)| g));
        results.push(output_lines(&Value::List(tensors.map(|g| g.map_or(Value::None, Value::Tensor)).collect())));
    }
    if results.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!("backends disagree:\n{}", results.join("---\n")));
    }
    Ok(results.pop().unwrap_or_default())
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
