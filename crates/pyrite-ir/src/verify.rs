//! The verifier.
//!
//! A graph is well formed when
//! 1. every name is a Python identifier, not a keyword, not a name that the text form needs for itself (`torch`), and
//!    belongs to one node;
//! 2. every node uses only nodes that come before it: there is no cycle;
//! 3. placeholders come first and have no arguments;
//! 4. there is exactly one output, it is the last node, has one argument, and nobody uses it;
//! 5. a `get_attr` names a constant or a nested graph that the graph has;
//! 6. a call of a known operator has one argument per parameter of its schema, each of the parameter's type, and none
//!    by name;
//! 7. a `getitem` has a node and an index; where the node's value is known, it is a list and the index is inside it;
//! 8. a nested graph that is passed to a call exists, and is well formed itself;
//! 9. where metadata is known, a tensor has as many strides as sizes, none negative.
//!
//! All violations are reported, each with the node and, where it was read from a text, its place there.

use std::path::Path;

use pyrite_diag::{Code, Diagnostic, Location};
use rustc_hash::FxHashMap;

use crate::{Graph, Kind, Meta, Node, NodeId, Target, Value};

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The names that printed graphs use for themselves; a node of that name would hide them.
const RESERVED: [&str; 5] = ["torch", "operator", "math", "device", "self"];

/// Whether a text can be a name in Python.
pub fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
}

/// All violations in a graph and the graphs nested in it; `file` is where the graph was read from.
pub fn verify(graph: &Graph, file: Option<&Path>) -> Vec<Diagnostic> {
    let mut check = Check { graph, file, found: Vec::new() };
    check.run();
    let mut found = check.found;
    for nested in graph.subgraphs.values() {
        found.extend(verify(nested, file));
    }
    found
}

struct Check<'a> {
    graph: &'a Graph,
    file: Option<&'a Path>,
    found: Vec<Diagnostic>,
}

impl Check<'_> {
    fn report(&mut self, node: &Node, code: &'static str, message: String) {
        let mut location = self.file.map_or_else(Location::default, Location::in_file);
        if let Some(span) = node.span {
            location = location.line(span.line).column(span.column);
        }
        let problem = Diagnostic::error(Code::new(code), format!("{message} (node `{}`)", node.name)).at(location);
        self.found.push(problem.hint("correct the line; if Pyrite or PyTorch wrote it so, that is a bug to report"));
    }

    fn run(&mut self) {
        let graph = self.graph;
        let mut seen = vec![false; graph.id_bound()];
        let mut names: FxHashMap<&str, NodeId> = FxHashMap::default();
        let mut calls_began = false;
        for (id, node) in graph.nodes() {
            self.name(node);
            if names.insert(&node.name, id).is_some() {
                self.report(node, "verify::duplicate-name", format!("two nodes are named `{}`", node.name));
            }
            self.inputs(node, &seen);
            if node.kind == Kind::Placeholder && calls_began {
                self.report(node, "verify::late-placeholder", "an input comes after a computation".to_owned());
            }
            calls_began |= matches!(node.kind, Kind::GetAttr(_) | Kind::Call(_));
            self.kind(id, node);
            if let Some(meta) = &node.meta {
                meta.each(&mut |meta| self.meta(node, meta));
            }
            seen[id.0 as usize] = true;
        }
        if !graph.nodes().any(|(_, node)| node.kind == Kind::Output) {
            let location = self.file.map_or_else(Location::default, Location::in_file);
            let message = "the graph has no output: nothing is returned";
            let problem = Diagnostic::error(Code::new("verify::no-output"), message).at(location);
            self.found.push(problem.hint("end `forward` with `return (value,)`"));
        }
    }

    fn name(&mut self, node: &Node) {
        if !is_identifier(&node.name) {
            self.report(node, "verify::bad-name", format!("`{}` is not a name in Python", node.name));
        }
        if RESERVED.contains(&node.name.as_str()) {
            self.report(node, "verify::bad-name", format!("`{}` means something else in a graph's text", node.name));
        }
    }

    /// Inputs of a node are computed before it, and none of them is the output.
    fn inputs(&mut self, node: &Node, seen: &[bool]) {
        let graph = self.graph;
        let mut late = Vec::new();
        node.each_input(&mut |input| {
            if !seen.get(input.0 as usize).copied().unwrap_or(false) {
                late.push(input);
            }
        });
        for input in late {
            let name = graph.get(input).map_or_else(|| format!("number {}", input.0), |n| format!("`{}`", n.name));
            self.report(
                node,
                "verify::use-before-definition",
                format!("it uses the node {name} before that is computed"),
            );
        }
        node.each_input(&mut |input| {
            if graph.get(input).is_some_and(|n| n.kind == Kind::Output) {
                self.report(node, "verify::output-used", "it uses the output node".to_owned());
            }
        });
    }

    /// What nodes of each kind have to have.
    fn kind(&mut self, id: NodeId, node: &Node) {
        let graph = self.graph;
        match &node.kind {
            Kind::Placeholder if node.args.is_empty() => {}
            Kind::Placeholder => {
                self.report(node, "verify::placeholder-arguments", "an input has arguments".to_owned());
            }
            Kind::GetAttr(name) if graph.constants.contains_key(name) || graph.subgraphs.contains_key(name) => {}
            Kind::GetAttr(name) => self.report(
                node,
                "verify::unknown-attribute",
                format!("the graph has no constant or nested graph `{name}`"),
            ),
            Kind::Call(target) => self.call(node, target),
            Kind::Output => {
                if node.args.len() != 1 {
                    self.report(
                        node,
                        "verify::output-arguments",
                        format!("the output has {} arguments instead of one", node.args.len()),
                    );
                }
                if graph.order.last() != Some(&id) {
                    self.report(node, "verify::output-not-last", "the output is not the last node".to_owned());
                }
            }
        }
    }

    fn call(&mut self, node: &Node, target: &Target) {
        for value in &node.args {
            self.nested(node, value);
        }
        match target {
            Target::Op(op) => {
                if !node.kwargs.is_empty() {
                    self.report(
                        node,
                        "verify::unbound-call",
                        format!("the call of {} has arguments by name", op.name()),
                    );
                }
                if node.args.len() != op.schema.params.len() {
                    let (has, wants) = (node.args.len(), op.schema.params.len());
                    self.report(
                        node,
                        "verify::wrong-arity",
                        format!("{} has {wants} parameters, the call has {has} arguments", op.name()),
                    );
                } else if let Err(error) = op.schema.bind_in_order(&node.args) {
                    self.report(node, "verify::wrong-type", error.to_string());
                }
            }
            Target::GetItem => match node.args.as_slice() {
                [Value::Tensor(list), Value::Int(index)] => {
                    let meta = self.graph.get(*list).and_then(|n| n.meta.as_ref());
                    if let Some(Value::Tensor(_)) = meta {
                        self.report(
                            node,
                            "verify::bad-getitem",
                            "getitem picks from lists, this is a tensor".to_owned(),
                        );
                    }
                    if let (Some(Value::List(items)), Some(index)) = (meta, index.as_int()) {
                        let len = items.len() as i64;
                        if !(-len..len).contains(&index) {
                            self.report(node, "verify::item-out-of-range", format!("item {index} of a list of {len}"));
                        }
                    }
                }
                _ => self.report(node, "verify::bad-getitem", "getitem takes a node and an index".to_owned()),
            },
            Target::Opaque(_) => {}
        }
    }

    fn nested(&mut self, node: &Node, value: &Value<NodeId>) {
        match value {
            Value::Graph(name) if !self.graph.subgraphs.contains_key(name) => {
                self.report(node, "verify::unknown-graph", format!("the graph has no nested graph `{name}`"));
            }
            Value::List(items) => items.iter().for_each(|item| self.nested(node, item)),
            _ => {}
        }
    }

    fn meta(&mut self, node: &Node, meta: &Meta) {
        if meta.shape.len() != meta.stride.len() {
            self.report(
                node,
                "verify::bad-metadata",
                format!("{} sizes but {} strides", meta.shape.len(), meta.stride.len()),
            );
        }
        if meta.shape.iter().chain(&meta.stride).any(|d| d.as_int().is_some_and(|v| v < 0)) {
            self.report(node, "verify::bad-metadata", "a size or stride is negative".to_owned());
        }
    }
}
