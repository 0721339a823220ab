//! Programs of `torch.export`, `.pt2` archives, to graphs.
//!
//! The archive's JSON is written out as the text that FX prints for the same program, and that text is read: there is one
//! way from PyTorch's graphs to Pyrite's. Parameters, buffers and constants become constants of the graph, so that its
//! inputs are the user's; outputs that are the new content of a buffer or an input are written to it. Sizes that are
//! symbols have the values that the program was exported with. Nothing is unpickled.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use pyrite_diag::{Diagnostic, Diagnostics, Location};
use pyrite_ir::{Builder, Graph, Kind, Node, NodeId, Registry, Value};
use pyrite_tensor::formats::exported::{self, Exported, dtype};
use pyrite_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use crate::problems::codes;
use crate::{Entry, Origin, ReadOptions, ReadOutcome, module};

/// How an archive begins.
pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";
/// Expressions of sizes may be nested this deeply.
const MAX_DEPTH: usize = 64;

/// Reads an archive.
pub(crate) fn read(path: &Path, registry: &Registry, options: &ReadOptions) -> Result<ReadOutcome, Diagnostics> {
    let fail = |diagnostic: Diagnostic| {
        let mut all = Diagnostics::new();
        all.push(diagnostic.at(Location::in_file(path)));
        all
    };
    let unreadable = |message: String| {
        fail(
            Diagnostic::error(codes::EXPORTED, "the archive is not a readable torch.export program")
                .cause(message)
                .hint("write it with `torch.export.save(torch.export.export(module, args), path)`"),
        )
    };
    let file = std::fs::File::open(path)
        .map_err(|error| fail(Diagnostic::error(codes::IO, "the file cannot be read").cause(error)))?;
    let found = exported::read(std::io::BufReader::new(file)).map_err(|error| unreadable(error.to_string()))?;
    let (text, constants) = written(&found).map_err(&unreadable)?;
    let mut options = options.clone();
    let mut hints = BTreeMap::new();
    collect_hints(&found.model["graph_module"]["graph"], &mut hints);
    hints.extend(std::mem::take(&mut options.hints));
    options.hints = hints;
    let mut outcome = module::read(&text, Some(path), registry, &options)?;
    outcome.graph = with_constants(&outcome.graph, &constants);
    if let Some(version) = found.model["torch_version"].as_str() {
        let (key, value) = ("torch version".to_owned(), version.to_owned());
        outcome.metadata.push(Entry { key, value, line: 0, origin: Origin::Comment });
    }
    Ok(outcome)
}

/// The values that symbols had when the program was exported, from wherever a size is one symbol.
fn collect_hints(value: &Json, hints: &mut BTreeMap<String, i64>) {
    match value {
        Json::Object(members) => {
            if let (Some(text), Some(hint)) = (members.get("expr_str").and_then(Json::as_str), members.get("hint")) {
                let symbol = text.strip_prefix("Symbol('").and_then(|rest| rest.split('\'').next());
                if let (Some(symbol), Some(number)) = (symbol, hint["as_int"].as_i64()) {
                    hints.insert(symbol.to_owned(), number);
                }
            }
            members.values().for_each(|member| collect_hints(member, hints));
        }
        Json::Array(items) => items.iter().for_each(|item| collect_hints(item, hints)),
        _ => {}
    }
}

/// The program as FX prints it, and the constants among its inputs.
fn written(exported: &Exported) -> Result<(String, BTreeMap<String, Tensor>), String> {
    let module = &exported.model["graph_module"];
    let graph = &module["graph"];
    let specs = module["signature"]["input_specs"].as_array().ok_or("it has no signature")?;
    let mut constants = BTreeMap::new();
    let mut text = String::from("class Exported(torch.nn.Module):\n    def forward(self");
    for spec in specs {
        let (kind, spec) = tagged(spec)?;
        match kind {
            "parameter" | "buffer" | "tensor_constant" => {
                let name = identifier(&spec["arg"]["name"])?;
                let key = spec[format!("{kind}_name")].as_str().ok_or("a constant has no name")?;
                let tensor = exported.tensors.get(key).ok_or_else(|| format!("the tensor `{key}` is missing"))?;
                constants.insert(name.to_owned(), tensor.clone());
                input(&mut text, graph, name)?;
            }
            "user_input" => match tagged(&spec["arg"])? {
                ("as_tensor", tensor) => input(&mut text, graph, identifier(&tensor["name"])?)?,
                ("as_sym_int", number) => {
                    let name = identifier(&number["as_name"])?;
                    let size = size(&graph["sym_int_values"][name])?;
                    let _ = write!(text, ", {name}: \"Sym({size})\"");
                }
                // Numbers and the like were constants of the export.
                ("as_none" | "as_int" | "as_float" | "as_bool" | "as_string", _) => {}
                (other, _) => return Err(format!("an input is `{other}`")),
            },
            // Its value stands in the calls that use it.
            "constant_input" => {}
            other => return Err(format!("an input is a `{other}`")),
        }
    }
    text += "):\n";
    for (index, node) in graph["nodes"].as_array().into_iter().flatten().enumerate() {
        call(&mut text, node, index)?;
    }
    outputs(&mut text, module)?;
    Ok((text, constants))
}

/// Writes the new contents of buffers and inputs to them, and returns the rest.
fn outputs(text: &mut String, module: &Json) -> Result<(), String> {
    let specs = |key: &str| module["signature"][key].as_array().ok_or_else(|| format!("it has no {key}"));
    let mut returned = String::new();
    for spec in specs("output_specs")? {
        let (kind, spec) = tagged(spec)?;
        let target = match kind {
            "user_output" | "loss_output" | "gradient_to_parameter" | "gradient_to_user_input" => {
                returned += &match &spec["arg"] {
                    name if name["name"].is_string() => identifier(&name["name"])?.to_owned(),
                    value => argument(value)?,
                };
                returned += ", ";
                continue;
            }
            "buffer_mutation" => input_named(specs("input_specs")?, "buffer", "buffer_name", &spec["buffer_name"]),
            "parameter_mutation" => {
                input_named(specs("input_specs")?, "parameter", "parameter_name", &spec["parameter_name"])
            }
            "user_input_mutation" => spec["user_input_name"].as_str().map(str::to_owned),
            other => return Err(format!("an output is a `{other}`")),
        };
        let target = target.ok_or_else(|| format!("a `{kind}` names nothing that is written"))?;
        if !is_identifier(&target) {
            return Err(format!("`{}` is not a valid name", target.escape_debug()));
        }
        let value = identifier(&spec["arg"]["name"])?;
        let _ = writeln!(text, "        written_{target} = torch.ops.aten.copy_.default({target}, {value})");
    }
    let _ = writeln!(text, "        return ({returned})");
    Ok(())
}

/// The name in the graph of a parameter or buffer, by its name in the module.
fn input_named(specs: &[Json], kind: &str, key: &str, name: &Json) -> Option<String> {
    let found = specs.iter().map(|spec| &spec[kind]).find(|spec| !spec[key].is_null() && spec[key] == *name)?;
    found["arg"]["name"].as_str().map(str::to_owned)
}

fn input(text: &mut String, graph: &Json, name: &str) -> Result<(), String> {
    let meta = &graph["tensor_values"][name];
    let dtype = element_type(&meta["dtype"])?;
    let dims = |key: &str| -> Result<String, String> {
        let sizes = meta[key].as_array().ok_or_else(|| format!("`{name}` has no {key}"))?;
        Ok(sizes.iter().map(size).collect::<Result<Vec<_>, _>>()?.join(", "))
    };
    let device = identifier(&meta["device"]["type"])?;
    let index = meta["device"]["index"].as_u64().map_or(String::new(), |index| format!(":{index}"));
    let _ = write!(text, ", {name}: \"{}[{}][{}]{device}{index}\"", dtype.abbr(), dims("sizes")?, dims("strides")?);
    Ok(())
}

fn call(text: &mut String, node: &Json, index: usize) -> Result<(), String> {
    let target = node["target"].as_str().ok_or("a node has no target")?;
    if !target.split('.').all(is_identifier) {
        return Err(format!("a node calls `{target}`"));
    }
    let mut given = Vec::new();
    for input in node["inputs"].as_array().into_iter().flatten() {
        let value = argument(&input["arg"])?;
        given.push(match input["kind"].as_i64() {
            Some(2) => format!("{}={value}", identifier(&input["name"])?),
            _ => value,
        });
    }
    let outputs = node["outputs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let given = given.join(", ");
    let named = |value: &Json| -> Result<Option<String>, String> {
        Ok(match tagged(value)? {
            ("as_tensor", tensor) => Some(identifier(&tensor["name"])?.to_owned()),
            ("as_sym_int" | "as_sym_float" | "as_sym_bool", number) => Some(identifier(&number["as_name"])?.to_owned()),
            _ => None,
        })
    };
    if let [output] = outputs
        && let Some(name) = named(output)?
    {
        let _ = writeln!(text, "        {name} = {target}({given})");
        return Ok(());
    }
    let whole = format!("outputs_of_node_{index}");
    let _ = writeln!(text, "        {whole} = {target}({given})");
    let items: Vec<Json> = match outputs {
        [one] => match tagged(one)? {
            ("as_tensors", list) => {
                list.as_array().into_iter().flatten().map(|item| serde_json::json!({ "as_tensor": item })).collect()
            }
            ("as_none", _) => Vec::new(),
            (other, _) => return Err(format!("`{target}` gives `{other}`")),
        },
        several => several.to_vec(),
    };
    for (position, item) in items.iter().enumerate() {
        if let Some(name) = named(item)? {
            let _ = writeln!(text, "        {name} = {whole}[{position}]");
        }
    }
    Ok(())
}

/// An argument as Python.
fn argument(value: &Json) -> Result<String, String> {
    let (kind, value) = tagged(value)?;
    let each = |one: &dyn Fn(&Json) -> Result<String, String>| -> Result<String, String> {
        let items = value.as_array().ok_or_else(|| format!("`{kind}` is not a list"))?;
        Ok(format!("[{}]", items.iter().map(one).collect::<Result<Vec<_>, _>>()?.join(", ")))
    };
    let name = |value: &Json| identifier(&value["name"]).map(str::to_owned);
    let optional = |value: &Json| match tagged(value)? {
        ("as_tensor", tensor) => identifier(&tensor["name"]).map(str::to_owned),
        _ => Ok("None".to_owned()),
    };
    let symbol = |value: &Json| match tagged(value)? {
        ("as_name", name) => identifier(name).map(str::to_owned),
        (_, number) => literal(number),
    };
    match kind {
        "as_none" => Ok("None".to_owned()),
        "as_tensor" => name(value),
        "as_tensors" => each(&name),
        "as_optional_tensor" => optional(value),
        "as_optional_tensors" => each(&optional),
        "as_int" | "as_float" | "as_bool" | "as_string" => literal(value),
        "as_ints" | "as_floats" | "as_bools" | "as_strings" => each(&literal),
        "as_int_lists" => each(&|list: &Json| argument(&serde_json::json!({ "as_ints": list }))),
        "as_sym_int" | "as_sym_float" | "as_sym_bool" => symbol(value),
        "as_sym_ints" | "as_sym_floats" | "as_sym_bools" => each(&symbol),
        "as_scalar_type" => Ok(format!("torch.{}", element_type(value)?.torch_name())),
        "as_device" => Ok(format!("device(type='{}')", identifier(&value["type"])?)),
        "as_layout" if value.as_i64() == Some(7) => Ok("torch.strided".to_owned()),
        "as_memory_format" => match value.as_i64() {
            Some(1) => Ok("torch.contiguous_format".to_owned()),
            Some(2) => Ok("torch.channels_last".to_owned()),
            Some(3) => Ok("torch.channels_last_3d".to_owned()),
            Some(4) => Ok("torch.preserve_format".to_owned()),
            _ => Err("a memory format is unknown".to_owned()),
        },
        "as_complex" => Ok(format!("complex({}, {})", literal(&value["real"])?, literal(&value["imag"])?)),
        "as_graph" => Err("an operator takes a graph, which Pyrite does not read from archives".to_owned()),
        other => Err(format!("an argument is `{other}`")),
    }
}

fn literal(value: &Json) -> Result<String, String> {
    match value {
        Json::Null => Ok("None".to_owned()),
        Json::Bool(true) => Ok("True".to_owned()),
        Json::Bool(false) => Ok("False".to_owned()),
        Json::Number(number) => Ok(number.to_string()),
        // JSON has no such numbers; their text stands for them.
        Json::String(text) if text == "Infinity" => Ok("inf".to_owned()),
        Json::String(text) if text == "-Infinity" => Ok("-inf".to_owned()),
        Json::String(text) if text == "NaN" => Ok("nan".to_owned()),
        Json::String(_) => Ok(value.to_string()),
        _ => Err("a constant is neither a number nor a string".to_owned()),
    }
}

fn element_type(value: &Json) -> Result<DType, String> {
    let number = value.as_i64().unwrap_or_default();
    dtype(number).ok_or_else(|| format!("unknown dtype number {number}"))
}

/// The only key of an object, and its value.
fn tagged(value: &Json) -> Result<(&str, &Json), String> {
    let object = value.as_object().ok_or("a value has no kind")?;
    let mut members = object.iter().filter(|(_, value)| !value.is_null() || object.len() == 1);
    match (members.next(), members.next()) {
        (Some((kind, value)), None) => Ok((kind, value)),
        _ => Err("a value has several kinds".to_owned()),
    }
}

fn identifier(value: &Json) -> Result<&str, String> {
    let name = value.as_str().ok_or("a name is missing")?;
    if is_identifier(name) { Ok(name) } else { Err(format!("`{}` is not a valid name", name.escape_debug())) }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A size: a number, or an expression in the form that sympy's `srepr` writes.
fn size(value: &Json) -> Result<String, String> {
    match tagged(value)? {
        ("as_int", number) => literal(number),
        ("as_expr", expr) => {
            let text = expr["expr_str"].as_str().ok_or("a size has no expression")?;
            let mut rest = text;
            let written = expression(&mut rest, 0).ok_or_else(|| format!("the size `{text}` cannot be read"))?;
            if rest.trim().is_empty() { Ok(written) } else { Err(format!("the size `{text}` cannot be read")) }
        }
        (other, _) => Err(format!("a size is `{other}`")),
    }
}

/// `Mul(Integer(2), Symbol('s0', positive=True, integer=True))` as `(2*s0)`.
fn expression(rest: &mut &str, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    let open = rest.find('(')?;
    let function = rest[..open].trim();
    *rest = &rest[open + 1..];
    if function == "Integer" || function == "Symbol" {
        let close = rest.find(')')?;
        let inside = rest[..close].split(',').next()?.trim().trim_matches('\'').to_owned();
        *rest = &rest[close + 1..];
        let valid = if function == "Integer" { inside.parse::<i64>().is_ok() } else { is_identifier(&inside) };
        return valid.then_some(inside);
    }
    let function = function.rsplit('.').next()?.to_owned();
    let mut parts = Vec::new();
    loop {
        parts.push(expression(rest, depth + 1)?);
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(',') {
            *rest = after;
        } else {
            *rest = rest.strip_prefix(')')?;
            break;
        }
    }
    let nested = |name: &str| parts.iter().skip(1).fold(parts[0].clone(), |all, part| format!("{name}({all}, {part})"));
    Some(match (function.as_str(), parts.len()) {
        ("Add", _) => format!("({})", parts.join(" + ")),
        ("Mul", _) => format!("({})", parts.iter().map(|part| format!("({part})")).collect::<Vec<_>>().join("*")),
        ("Pow", 2) => format!("({})**{}", parts[0], parts[1]),
        ("FloorDiv" | "CleanDiv", 2) => format!("(({})//({}))", parts[0], parts[1]),
        ("Mod" | "PythonMod", 2) => format!("Mod({}, {})", parts[0], parts[1]),
        ("Max", _) => nested("Max"),
        ("Min", _) => nested("Min"),
        _ => return None,
    })
}

/// The graph with these placeholders as constants.
fn with_constants(graph: &Graph, constants: &BTreeMap<String, Tensor>) -> Graph {
    let mut builder = Builder::new();
    builder.copy_surroundings(graph);
    let mut moved: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let is_input = |node: &Node| node.kind == Kind::Placeholder && !constants.contains_key(node.name.as_str());
    // Inputs stand before everything else.
    let inputs = graph.nodes().filter(|(_, node)| is_input(node));
    for (id, node) in inputs.chain(graph.nodes().filter(|(_, node)| !is_input(node))) {
        let renew = |value: &Value<NodeId>| value.map(&mut |id: &NodeId| moved[id]);
        let mut node: Node = node.clone();
        node.args = node.args.iter().map(renew).collect();
        node.kwargs = node.kwargs.iter().map(|(key, value)| (key.clone(), renew(value))).collect();
        if node.kind == Kind::Output {
            builder.output(node.args.into_iter().next().unwrap_or(Value::None));
            continue;
        }
        if let (Kind::Placeholder, Some(tensor)) = (&node.kind, constants.get(node.name.as_str())) {
            builder.add_constant(&node.name, tensor.clone());
            node.kind = Kind::GetAttr(node.name.as_str().into());
        }
        moved.insert(id, builder.push(node));
    }
    builder.finish()
}
