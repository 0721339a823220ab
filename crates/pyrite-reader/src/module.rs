//! The file as a whole: its classes, its `forward`, its `load_args`, what it says about itself.

use std::path::Path;

use pyrite_diag::{Diagnostic, Diagnostics};
use pyrite_ir::{InputSpec, Registry};
use pyrite_sym::SymEnv;
use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_python_parser::parse_module;
use rustc_hash::FxHashMap;

use crate::annotation::Symbols;
use crate::forward::{self, Inputs};
use crate::literal;
use crate::problems::{Problems, Res, codes};
use crate::source::{Source, check_depth};
use crate::{ReadOptions, ReadOutcome, load_args};

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
}

impl Context<'_> {
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
    if let Err(diagnostic) = check_depth(source) {
        return problems.fail(diagnostic);
    }
    let parsed = match parse_module(&source.text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let mut hint = "the file must be Python as PyTorch or Pyrite prints it";
            if error.location.start().to_usize() + 1 >= source.text.trim_end().len() {
                hint = "the text ends in the middle: was the file written completely?";
            }
            let location = source.at(&error.location);
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
    };
    read_top(context, &top.order, &top.functions, body)
}

fn read_top<'a>(
    mut context: Context<'a>,
    order: &[&'a StmtClassDef],
    functions: &[&'a StmtFunctionDef],
    body: &'a [Stmt],
) -> Res<ReadOutcome> {
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
    let metadata = metadata(&context, body);
    Ok(ReadOutcome { graph, inputs, metadata, notes: Vec::new() })
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
fn metadata(context: &Context<'_>, body: &[Stmt]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in context.source.text.lines() {
        if let Some(rest) = line.strip_prefix("# pyrite: ")
            && let Some((key, value)) = rest.split_once(" = ")
        {
            found.push((key.trim().to_owned(), value.trim().to_owned()));
        } else if let Some(rest) = line.strip_prefix("# torch ")
            && let Some((key, value)) = rest.split_once(": ")
        {
            found.push((format!("torch.{}", key.trim().replace(' ', "_")), value.trim().to_owned()));
        }
    }
    for stmt in body {
        match stmt {
            Stmt::Assign(assign) => {
                if let [Expr::Attribute(_)] = assign.targets.as_slice()
                    && let Some(path) = literal::path(&assign.targets[0])
                    && path.contains(".config.")
                {
                    let value = context.source.slice(ruff_text_size::Ranged::range(assign.value.as_ref()));
                    found.push((path, value.to_owned()));
                }
            }
            Stmt::If(block) => run_settings(context, &block.body, &mut found),
            _ => {}
        }
    }
    found
}

/// The keyword arguments of `run_repro(mod, load_args, accuracy=False, …)`.
fn run_settings(context: &Context<'_>, body: &[Stmt], found: &mut Vec<(String, String)>) {
    for stmt in body {
        match stmt {
            Stmt::With(with) => run_settings(context, &with.body, found),
            Stmt::Expr(stmt) => {
                if let Expr::Call(call) = stmt.value.as_ref()
                    && literal::path(&call.func).is_some_and(|p| p == "run_repro")
                {
                    for keyword in &call.arguments.keywords {
                        if let Some(name) = &keyword.arg {
                            let text = context.source.slice(ruff_text_size::Ranged::range(&keyword.value));
                            let value = literal::text(&keyword.value).map_or_else(|| text.to_owned(), str::to_owned);
                            found.push((name.to_string(), value));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}
