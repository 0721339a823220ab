//! The file as a whole: its classes, its `forward`, its `load_args`, what it says about itself.

use std::cell::Cell;
use std::path::Path;

use pyrite_diag::{Diagnostic, Diagnostics, Severity};
use pyrite_ir::{Device, InputSpec, Registry, StorageSearch};
use pyrite_sym::SymEnv;
use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_python_parser::parse_module;
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

use crate::annotation::Symbols;
use crate::forward::{self, Inputs};
use crate::literal;
use crate::member::{LOST_BODY_HINT, lost_body};
use crate::problems::{Problems, Res, codes};
use crate::source::{Source, check_depth};
use crate::{Devices, Entry, Origin, ReadOptions, ReadOutcome, load_args};

/// What all parts of the reader share.
pub(crate) struct Context<'a> {
    /// The operators.
    pub registry: &'a Registry,
    /// How to read.
    pub options: &'a ReadOptions,
    /// The text.
    pub source: &'a Source<'a>,
    /// What is wrong with it.
    pub problems: &'a Problems,
    /// The symbols of all its graphs.
    pub env: SymEnv,
    /// Values of symbols that the text gives.
    pub hints: Vec<(String, i64)>,
    /// The classes at the top of the file.
    pub classes: FxHashMap<&'a str, &'a StmtClassDef>,
    /// What imported and assigned names stand for: `aten` for `torch.ops.aten`.
    pub aliases: FxHashMap<&'a str, String>,
    /// Where stored tensors are looked for.
    pub storages: StorageSearch,
    /// Whether something was put on another device than the text has it on.
    pub moved: Cell<bool>,
}

impl Context<'_> {
    /// Where something that the text has on a device is put.
    pub fn place(&self, device: Device, at: &impl ruff_text_size::Ranged) -> Device {
        if self.options.devices != Devices::Cpu || device == Device::Cpu || device.to_string() == "meta" {
            return device;
        }
        if !self.moved.replace(true) {
            let message = format!("the program is for `{device}`; it runs on the CPU");
            let note = Diagnostic::new(Severity::Note, codes::DEVICE, message).at(self.source.at(at));
            self.problems
                .push(note.hint("--device file keeps the devices that the file names, where this machine has them"));
        }
        Device::Cpu
    }

    /// The symbols with their values.
    pub fn symbols(&self) -> Symbols<'_> {
        Symbols { env: &self.env, hints: &self.hints, options: self.options }
    }
}

/// Reads a text.
pub(crate) fn read(
    text: &str,
    file: Option<&Path>,
    registry: &Registry,
    options: &ReadOptions,
) -> Result<ReadOutcome, Diagnostics> {
    let source = Source::new(text, file);
    let problems = Problems::default();
    let outcome = read_source(&source, &problems, registry, options);
    let notes = problems.finish()?;
    if let Ok(outcome) = outcome {
        Ok(ReadOutcome { notes, ..outcome })
    } else {
        let mut all = Diagnostics::new();
        let problem = Diagnostic::error(codes::NO_GRAPH, "the graph could not be read").at(source.whole());
        all.push(problem.hint("a program is a class with a method `forward`, as PyTorch's debugger writes it"));
        Err(all)
    }
}

/// The name of the nested graph whose constructor torch printed as `<lambda>()`, where the syntax error is that.
fn lost_lambda(text: &str, offset: usize) -> Option<&str> {
    let start = text.get(..offset)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next()?.trim();
    line.strip_prefix("self.")?.strip_suffix(" = <lambda>()")
}

/// What torch writes in place of a graph that hooks reach into.
const BACKWARD_STATE: &str = "Repro is not generated due to existence of BackwardState";

fn read_source(
    source: &Source<'_>,
    problems: &Problems,
    registry: &Registry,
    options: &ReadOptions,
) -> Res<ReadOutcome> {
    if source.text.len() > u32::MAX as usize / 2 {
        let message = "the text is larger than a graph needs";
        let problem = Diagnostic::error(codes::TOO_LARGE, message).at(source.whole());
        return problems.fail(problem.hint("name a repro file, not a data file"));
    }
    if source.text.contains(BACKWARD_STATE) {
        let message = "torch wrote no graph: it takes a BackwardState, which holds hooks for the backward pass";
        let problem = Diagnostic::error(codes::NOT_WRITTEN, message).at(source.whole());
        return problems.fail(problem.hint(
            "dump the graph of Dynamo (TORCHDYNAMO_REPRO_AFTER=dynamo), or debug the script: `pyrite debug script.py`",
        ));
    }
    if let Err(diagnostic) = check_depth(source) {
        return problems.fail(diagnostic);
    }
    let parsed = match parse_module(&source.text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let mut hint = "the file must be Python as PyTorch or Pyrite prints it";
            if error.location.start().to_usize() + 1 >= source.text.trim_end().len() {
                hint = "the text ends unexpectedly: was the file written completely?";
            }
            let location = source.at(&error.location);
            if let Some(name) = lost_lambda(&source.text, error.location.start().to_usize()) {
                let problem = Diagnostic::error(codes::LOST_BODY, lost_body(name)).at(location);
                return problems.fail(problem.hint(LOST_BODY_HINT));
            }
            return problems.fail(Diagnostic::error(codes::SYNTAX, error.error.to_string()).at(location).hint(hint));
        }
    };
    let body = &parsed.syntax().body;
    let mut top = Top::default();
    for stmt in body {
        top.statement(stmt);
    }
    let context = Context {
        registry,
        options,
        source,
        problems,
        env: SymEnv::new(),
        hints: top.hints,
        classes: top.classes,
        aliases: top.aliases,
        storages: StorageSearch::default(),
        moved: Cell::new(false),
    };
    read_top(context, &top.order, &top.functions, body)
}

fn read_top<'a>(
    mut context: Context<'a>,
    order: &[&'a StmtClassDef],
    functions: &[&'a StmtFunctionDef],
    body: &'a [Stmt],
) -> Res<ReadOutcome> {
    let metadata = metadata(&context, body);
    let said = metadata.iter().find(|entry| entry.key == "save_dir" && entry.origin == Origin::RunRepro);
    context.storages = StorageSearch::new(
        context.options.folder.as_deref(),
        said.map(|entry| Path::new(entry.value.as_str())).filter(|path| *path != Path::new("None")),
        context.options.storages.as_deref(),
    );
    let mut inputs: Option<InputSpec> = None;
    if let Some(function) = functions.iter().find(|f| f.name.as_str() == "load_args") {
        context.hints.extend(load_args::hints(function));
        inputs = Some(load_args::read(&context, function)?);
    }
    let graph = if let Some(class) = main_class(order) {
        forward::read_class(&context, class, &Inputs::Spec(inputs.as_ref()), 0)?
    } else {
        let bare = functions
            .iter()
            .find(|f| f.name.as_str() == "forward")
            .or_else(|| functions.iter().find(|f| f.name.as_str() != "load_args" && f.name.as_str() != "stored"));
        let Some(function) = bare else {
            return context.problems.fail(
                Diagnostic::error(codes::NO_GRAPH, "the file has no class with a `forward`, and no `forward`")
                    .at(context.source.whole())
                    .hint("name a file that PyTorch's debugger or Pyrite wrote"),
            );
        };
        forward::read_function(&context, function, &Inputs::Spec(inputs.as_ref()))?
    };
    let (mut graph, mut inputs) = (graph, inputs);
    if let Devices::On(device) = &context.options.devices {
        graph.put_on(device);
        inputs.iter_mut().flat_map(|spec| &mut spec.storages).for_each(|storage| storage.device = device.clone());
    }
    let storages = context.storages;
    Ok(ReadOutcome { graph, inputs, metadata, storages, notes: Vec::new() })
}

/// What stands at the top of a file.
#[derive(Default)]
struct Top<'a> {
    classes: FxHashMap<&'a str, &'a StmtClassDef>,
    order: Vec<&'a StmtClassDef>,
    functions: Vec<&'a StmtFunctionDef>,
    aliases: FxHashMap<&'a str, String>,
    hints: Vec<(String, i64)>,
}

impl<'a> Top<'a> {
    fn statement(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::ClassDef(class) => {
                self.classes.insert(class.name.as_str(), class);
                self.order.push(class);
            }
            Stmt::FunctionDef(function) => self.functions.push(function),
            Stmt::Import(import) => {
                for name in &import.names {
                    if let Some(alias) = &name.asname {
                        self.aliases.insert(alias.as_str(), name.name.to_string());
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                if let Some(module) = &import.module {
                    for name in &import.names {
                        let local = name.asname.as_ref().unwrap_or(&name.name);
                        self.aliases.insert(local.as_str(), format!("{module}.{}", name.name));
                    }
                }
            }
            Stmt::Assign(assign) => {
                if let [Expr::Name(target)] = assign.targets.as_slice() {
                    match assign.value.as_ref() {
                        // `s77 = 5`: the value of a symbol that `load_args` mentions.
                        Expr::NumberLiteral(number) => {
                            if let Some(value) = literal::int(number) {
                                self.hints.push((target.id.to_string(), value));
                            }
                        }
                        value => {
                            if let Some(path) = literal::path(value) {
                                self.aliases.insert(target.id.as_str(), path);
                            }
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// The class that is the program: `Repro`, else the last class that no other one makes a part of itself.
fn main_class<'a>(order: &[&'a StmtClassDef]) -> Option<&'a StmtClassDef> {
    let candidates: Vec<&'a StmtClassDef> = order.iter().copied().filter(|c| forward::find(c).is_some()).collect();
    if let Some(repro) = candidates.iter().find(|c| c.name.as_str() == "Repro") {
        return Some(repro);
    }
    candidates.last().copied()
}

/// What the file says about itself.
fn metadata(context: &Context<'_>, body: &[Stmt]) -> Vec<Entry> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(context.source.text.lines()) {
        let comment = if let Some(rest) = line.strip_prefix("# pyrite: ") {
            rest.split_once(" = ").map(|(key, value)| (key.trim().to_owned(), value))
        } else if let Some(rest) = line.strip_prefix("# torch ") {
            rest.split_once(": ").map(|(key, value)| (format!("torch.{}", key.trim().replace(' ', "_")), value))
        } else {
            None
        };
        found.extend(comment.map(|(key, value)| Entry {
            key,
            value: value.trim().to_owned(),
            line: number,
            origin: Origin::Comment,
        }));
    }
    for stmt in body {
        match stmt {
            Stmt::Assign(assign) => {
                if let [Expr::Attribute(_)] = assign.targets.as_slice()
                    && let Some(path) = literal::path(&assign.targets[0])
                    && path.contains(".config.")
                {
                    found.push(entry(context, path, &assign.value, Origin::Setting));
                }
            }
            Stmt::If(block) => run_settings(context, &block.body, &mut found),
            _ => {}
        }
    }
    found
}

/// What an expression says of a key: the text in it, or its own.
fn entry(context: &Context<'_>, key: String, value: &Expr, origin: Origin) -> Entry {
    let range = ruff_text_size::Ranged::range(value);
    let own = match origin {
        Origin::RunRepro => literal::text(value),
        Origin::Comment | Origin::Setting => None,
    };
    let text = own.unwrap_or_else(|| context.source.slice(range));
    Entry { key, value: text.to_owned(), line: context.source.span(range.start().to_usize()).line, origin }
}

/// How PyTorch's dumps from after AOTAutograd say that they were traced.
const TRACING_MODES: [&str; 3] = ["real", "fake", "symbolic"];

/// The keyword arguments of `run_repro(mod, load_args, accuracy=False, …)`.
fn run_settings(context: &Context<'_>, body: &[Stmt], found: &mut Vec<Entry>) {
    for stmt in body {
        match stmt {
            Stmt::With(with) => run_settings(context, &with.body, found),
            Stmt::Expr(stmt) => {
                if let Expr::Call(call) = stmt.value.as_ref()
                    && literal::path(&call.func).is_some_and(|p| p == "run_repro")
                {
                    let named = call.arguments.keywords.iter().filter_map(|k| Some((k.arg.as_ref()?, &k.value)));
                    let mut said: Vec<Entry> =
                        named.map(|(name, value)| entry(context, name.to_string(), value, Origin::RunRepro)).collect();
                    // After dynamo a backend is named. Until torch 2.12 a dump from after AOTAutograd says no more.
                    let says = |key: &str| said.iter().any(|entry| entry.key == key);
                    let traced = |entry: &Entry| entry.key == "tracing_mode" && TRACING_MODES.contains(&&*entry.value);
                    if said.iter().any(traced) && !says("backend") && !says("is_inference") {
                        let line = context.source.span(stmt.range().start().to_usize()).line;
                        let (key, value) = ("is_inference".to_owned(), "False".to_owned());
                        said.push(Entry { key, value, line, origin: Origin::RunRepro });
                    }
                    found.extend(said);
                }
            }
            _ => {}
        }
    }
}
