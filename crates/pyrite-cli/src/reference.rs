//! `pyrite reference PAGE`: the pages of docs/reference/, made from the tables that the program itself uses.
//!
//! A page is Markdown. `cargo xtask docs` writes all of them, and a test says when one is no longer what its table says.

use std::fmt::Write as _;

use clap::CommandFactory;
use pyrite_compiler::backend::backends;
use pyrite_diag::{Code, Diagnostic};
use pyrite_ir::{Decompose, Eval, Lower, Operator, Tag, Vjp};
use pyrite_session::environment;
use pyrite_trace::{TOPICS, TopicKind};

use crate::exit::CODES;
use crate::failure::Failure;
use crate::{Cli, ExitCode, Outcome};

/// Print a page of the reference (for `cargo xtask docs`)
#[derive(clap::Args)]
pub struct Reference {
    /// Its name; all names without one
    page: Option<String>,
}

/// Name, title and content of every page.
const PAGES: &[(&str, &str, fn() -> String)] = &[
    ("backends", "Backends", backend_page),
    ("commands", "Commands", command_page),
    ("environment", "Environment variables", environment_page),
    ("exit-codes", "Exit codes", exit_page),
    ("logs", "Logs and artifacts", log_page),
    ("operators", "Operators", operator_page),
    ("passes", "Passes", pass_page),
];

impl Reference {
    /// Prints the page, or the names.
    pub fn run(&self) -> Outcome {
        let Some(wanted) = &self.page else {
            PAGES.iter().for_each(|(name, _, _)| println!("{name}"));
            return Ok(ExitCode::SUCCESS);
        };
        let Some((_, title, content)) = PAGES.iter().find(|(name, _, _)| name == wanted) else {
            let message = format!("the reference has no page `{wanted}`");
            let known: Vec<&str> = PAGES.iter().map(|(name, _, _)| *name).collect();
            let hint = format!("there are {}", known.join(", "));
            return Err(Failure::of(Diagnostic::error(Code::new("reference::no-page"), message).hint(hint)));
        };
        println!(
            "# {title}\n\nMade by `cargo xtask docs` from the tables in the source; not edited by hand.\n\n{}",
            content().trim_end()
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// A table of Markdown.
fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn backend_page() -> String {
    let rows = backends().into_iter().map(|backend| vec![code(&backend.name), backend.help.to_string()]);
    format!(
        "Give one of these to `--backend` or `--reference`. From top to bottom each adds a stage, so the first that fails \
         names the guilty one; `pyrite bisect` does that search.\n\n{}\nOutside of Pyrite: `torch:NAME` is any backend of \
         torch.compile (`torch:inductor`, with settings `torch:inductor?SETTING=VALUE`), and `cmd:PROGRAM` any program, \
         which gets the path of a repro and exits with 0 (fine), 1 (the failure is there) or 125 (cannot tell).\n",
        table(&["name", "what it does"], rows)
    )
}

fn command_page() -> String {
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut text = format!("```text\n{}\n```\n", root.render_help().to_string().trim_end());
    for command in root.get_subcommands_mut().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        let name = command.get_name().to_owned();
        let help = command.clone().term_width(100).render_help().to_string();
        let _ = write!(text, "\n## pyrite {name}\n\n```text\n{}\n```\n", help.trim_end());
    }
    // Lines that clap fills up with spaces would be trailing blanks in a file.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn exit_page() -> String {
    let rows = CODES.iter().map(|(number, most, searches, scripts)| {
        vec![number.to_string(), (*most).to_owned(), (*searches).to_owned(), (*scripts).to_owned()]
    });
    let heads = ["code", "most commands", "`minify`, `bisect`, `debug FILE`", "`debug SCRIPT`"];
    format!(
        "{}\nA script's own failure keeps the script's code. A program that `--check` or `cmd:` runs answers with 0 (fine), 1 (the \
         failure is there) or 125 (cannot tell).\n",
        table(&heads, rows)
    )
}

fn environment_page() -> String {
    let mut variables: Vec<_> = environment::VARIABLES.to_vec();
    variables.sort_unstable();
    let rows = variables.iter().map(|(name, help)| vec![code(name), (*help).to_owned()]);
    format!("Unset and empty are the same.\n\n{}", table(&["variable", "meaning"], rows))
}

fn log_page() -> String {
    let rows = |kind: TopicKind| {
        TOPICS.iter().filter(move |row| row.kind == kind).map(|row| {
            let file = if row.file.is_empty() {
                "–".to_owned()
            } else {
                row.file.split(", ").map(code).collect::<Vec<_>>().join(", ")
            };
            vec![code(row.name), file, row.help.to_owned()]
        })
    };
    format!(
        "`PYRITE_LOGS=\"capture,+aot,graph_code\"` prints what it names: a component at level info, with `+` at debug, with \
         `-` only errors; an artifact whole. `PYRITE_COMPILE_DEBUG=1` leaves the files in the debug directory; \
         `PYRITE_COMPILE_DEBUG=\"1,-output_code\"` leaves one out. [The trace format](../trace-format.md) describes the rest.\
         \n\n## Components\n\n{}\n## Artifacts\n\n{}",
        table(&["name", "file", "what it shows"], rows(TopicKind::Component)),
        table(&["name", "file", "what it shows"], rows(TopicKind::Artifact)),
    )
}

fn operator_page() -> String {
    let registry = pyrite_ops::registry();
    let all: Vec<_> = registry.iter().collect();
    let core = all.iter().filter(|op| op.has(Tag::Core)).count();
    let rows = all.iter().map(|op| {
        let tags: Vec<&str> = op.def.tags.iter().map(|tag| tag.name()).collect();
        vec![code(op.name()), op.def.doc.to_owned(), tags.join(", "), gradient(op).to_owned(), loops(op).to_owned()]
    });
    format!(
        "{} operators, {core} of them tagged `core` by PyTorch. *Gradient*: by a rule of its own, through its decomposition, \
         none, or still unwritten; *functionalized*: later stages meet its functional form. *Loops*: how the native compiler runs it; a *call* runs the operator's kernel. `pyrite ops \
         --json` has the schemas too. An operator that is not listed stays in a graph as an opaque one.\n\n{}",
        all.len(),
        table(&["operator", "what it computes", "tags", "gradient", "loops"], rows)
    )
}

/// How later stages meet an operator that writes to its arguments.
const FUNCTIONALIZED: &str = "functionalized";

fn gradient(op: &Operator) -> &'static str {
    match (op.def.vjp, op.def.eval) {
        (_, Eval::WriteBack(_)) => FUNCTIONALIZED,
        (Vjp::Rule(_), _) => "rule",
        (Vjp::ViaDecomposition, _) => "decomposed",
        (Vjp::NonDifferentiable(_), _) => "none",
        (Vjp::Unwritten, _) => "unwritten",
    }
}

fn loops(op: &Operator) -> &'static str {
    if matches!(op.def.eval, Eval::WriteBack(_)) {
        return FUNCTIONALIZED;
    }
    match (op.def.lower, op.def.decompose) {
        (Lower::Rule(_), _) => "rule",
        (Lower::ViaDecomposition, _) | (Lower::Unwritten, Decompose::Rule(_)) => "decomposed",
        (Lower::View, _) => "view",
        (Lower::Extern(_) | Lower::Unwritten, _) => "call",
    }
}

fn pass_page() -> String {
    let reducing = pyrite_reduce::PASSES.iter().map(|pass| vec![code(pass.name), pass.doc.to_owned()]);
    let numbered = pyrite_passes::gate::REWRITES.iter().chain(pyrite_codegen::decisions::DECISIONS);
    let numbered = numbered.map(|(name, doc)| vec![code(name), (*doc).to_owned()]);
    let native = pyrite_codegen::passes::all().map(|(name, doc)| vec![code(name), doc.to_owned()]);
    format!(
        "## Passes of the native compiler\n\nIn the order they run; machine code is emitted behind the last. \
         `pyrite compile FILE --print=after:PASS` prints the scheduled program after one of them.\n\n{}\n## Numbered rewrites and decisions\n\nEach is counted as it is asked for, and can be refused by its number or name. \
         `pyrite bisect` finds the first without which a program is right.\n\n{}\n## Passes of the minifier\n\nIn their order: \
         those first that shrink most for a question. `pyrite minify` names the pass of every improvement.\n\n{}",
        table(&["name", "what it does"], native),
        table(&["name", "what it does"], numbered),
        table(&["name", "what it tries"], reducing),
    )
}
