//! The text form: Python that PyTorch executes.
//!
//! [`print`] writes a graph as the class that PyTorch's FX prints, one assignment per node; [`print_repro`] writes a
//! whole file that plain PyTorch runs. The text is deterministic, and `pyrite-reader` reads it back to an equal graph.
//!
//! Invariants:
//! - a known operator is written with its full overload name, so that nothing is resolved anew when it is read;
//! - arguments that equal the schema's default are left out, keyword-only ones are written by name;
//! - numbers are written so that they are read back bit for bit (NaN keeps no payload).

use std::fmt::{self, Write as _};
use std::sync::Arc;

use pyrite_tensor::{Complex64, DType, Tensor};

use crate::inputs::{InputArg, InputSpec, InputValue, StorageSpec};
use crate::meta::contiguous_strides;
use crate::verify::is_identifier;
use crate::{Device, Graph, Kind, Meta, Node, NodeId, Operator, SymDims, Target, Type, Value};

/// How constants are written.
#[derive(Clone, Copy, Default)]
pub enum Constants<'a> {
    /// All of them as literals.
    #[default]
    Inline,
    /// Those of more than [`INLINE_ELEMENTS`] elements as files in `storages/`; the function names the file of a
    /// constant's storage. Only [`print_repro`]'s text knows how to load them.
    Stored(&'a dyn Fn(&Tensor) -> String),
    /// Those of more than [`INLINE_ELEMENTS`] elements as random ones of the same shape and type.
    MadeUp,
}

/// Constants with more elements than this can be stored beside the text.
pub const INLINE_ELEMENTS: usize = 64;

/// What to write.
#[derive(Clone, Copy)]
pub struct PrintOptions<'a> {
    /// The name of the class; by default the graph's own, else `Repro`.
    pub class_name: Option<&'a str>,
    /// Whether every value is annotated with its type, shape and strides.
    pub annotations: bool,
    /// Whether a value is released (`x = None`) after its last use.
    pub releases: bool,
    /// Whether the user's stack is written before the nodes it belongs to.
    pub stacks: bool,
    /// How constants are written.
    pub constants: Constants<'a>,
}

impl Default for PrintOptions<'_> {
    fn default() -> Self {
        Self { class_name: None, annotations: true, releases: true, stacks: false, constants: Constants::Inline }
    }
}

/// What a repro file says besides its graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReproInfo {
    /// Written as comments, in order: backend, signature, tolerance, versions, seed.
    pub metadata: Vec<(String, String)>,
    /// Where the inputs come from.
    pub inputs: Option<InputSpec>,
    /// What the file does when it is run: the text of its main part. By default it prints what the program returns.
    pub main: Option<String>,
}

impl ReproInfo {
    /// The metadata of that name.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
}

/// The operators that Python writes with a symbol.
pub const BINARY_SYMBOLS: [(&str, &str); 19] = [
    ("add", "+"),
    ("sub", "-"),
    ("mul", "*"),
    ("matmul", "@"),
    ("truediv", "/"),
    ("floordiv", "//"),
    ("mod", "%"),
    ("pow", "**"),
    ("and_", "&"),
    ("or_", "|"),
    ("xor", "^"),
    ("lshift", "<<"),
    ("rshift", ">>"),
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
];

/// The graph as the Python that [`print()`] writes by default.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self, &PrintOptions::default()))
    }
}

/// A graph as a class, with the classes of its nested graphs before it.
pub fn print(graph: &Graph, options: &PrintOptions<'_>) -> String {
    let own = if is_identifier(&graph.name) { graph.name.as_str() } else { "Repro" };
    let mut printer = Printer { options, text: String::new(), classes: Vec::new() };
    printer.class(graph, options.class_name.unwrap_or(own));
    printer.text
}

/// A whole file that plain PyTorch runs.
pub fn print_repro(graph: &Graph, info: &ReproInfo, options: &PrintOptions<'_>) -> String {
    let mut text = String::new();
    for (key, value) in &info.metadata {
        let _ = writeln!(text, "# pyrite: {key} = {}", value.replace(['\n', '\r'], " "));
    }
    if !info.metadata.is_empty() {
        text.push('\n');
    }
    text.push_str("import math\nimport operator\nimport os\nimport torch\nfrom math import inf, nan\n");
    text.push_str("from torch import device, tensor\n\n");
    let class = print(graph, &PrintOptions { class_name: Some("Repro"), ..*options });
    if class.contains("stored(") {
        text.push_str(STORED);
    }
    let hints = info.inputs.as_ref().map(symbol_values).unwrap_or_default();
    for (name, value) in &hints {
        let _ = writeln!(text, "{name} = {value}");
    }
    if !hints.is_empty() {
        text.push('\n');
    }
    text.push_str(&class);
    text.push('\n');
    if let Some(inputs) = &info.inputs {
        print_load_args(&mut text, inputs);
        if let Some(main) = &info.main {
            text.push_str(main);
        } else {
            let seed = info.get("seed").and_then(|seed| seed.parse::<u64>().ok()).unwrap_or_default();
            text.push_str(&RUN.replace("SEED", &seed.to_string()));
        }
    }
    text
}

/// What is around a program, and no setting of its compiler.
const AROUND: [&str; 12] =
    ["limit", "skip", "steps", "code", "mode", "dynamic", "calls", "look", "poison", "tf32", "ptxas", "triton"];

/// The settings of a compiler, as the name of a backend carries them.
fn compiler_settings(settings: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = settings.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| is_dotted(name) && !AROUND.contains(name))
}

/// Settings of a backend that has none of Inductor's, as `torch.compile` takes them: `, options={'strict': True}`.
pub fn print_options(settings: &str) -> String {
    let pairs: Vec<String> =
        compiler_settings(settings).map(|(name, value)| format!("{}: {}", quote(name), setting(value))).collect();
    if pairs.is_empty() { String::new() } else { format!(", options={{{}}}", pairs.join(", ")) }
}

/// Settings of Inductor, as the name of a backend carries them.
pub fn print_settings(text: &mut String, settings: &str) {
    let mut imported = false;
    for (name, value) in compiler_settings(settings) {
        if !std::mem::replace(&mut imported, true) {
            text.push_str("    import torch._inductor.config\n\n");
        }
        let _ = writeln!(text, "    torch._inductor.config.{name} = {}", setting(value));
    }
}

/// The value of a setting, which is JSON or a plain word, as Python writes it.
fn setting(value: &str) -> String {
    let mut rest = value;
    match json(&mut rest) {
        Some(written) if rest.trim().is_empty() => written,
        _ => quote(value),
    }
}

/// A value of JSON as Python writes it, taken off a text; `None` where there is none.
fn json(rest: &mut &str) -> Option<String> {
    *rest = rest.trim_start();
    for (word, written) in [("true", "True"), ("false", "False"), ("null", "None")] {
        if let Some(after) = rest.strip_prefix(word) {
            *rest = after;
            return Some(written.to_owned());
        }
    }
    if let Some(after) = rest.strip_prefix('"') {
        let mut text = String::new();
        let mut letters = after.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    *rest = &after[at + 1..];
                    return Some(quote(&text));
                }
                '\\' => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'u' => {
                        let digits: String = letters.by_ref().take(4).map(|(_, digit)| digit).collect();
                        text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                    }
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        return None;
    }
    if let Some(after) = rest.strip_prefix('[') {
        *rest = after;
        let mut items = Vec::new();
        loop {
            *rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix(']') {
                *rest = after;
                return Some(format!("[{}]", items.join(", ")));
            }
            if !items.is_empty() {
                *rest = rest.strip_prefix(',')?;
            }
            items.push(json(rest)?);
        }
    }
    let end = rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    number.parse::<f64>().ok().filter(|number| number.is_finite())?;
    *rest = after;
    Some(number.to_owned())
}

/// Whether a text is a name with dots and nothing else, so that a file cannot smuggle code in.
pub fn is_dotted(text: &str) -> bool {
    text.split('.').all(is_identifier)
}

const STORED: &str = "\
def stored(name, nbytes, shape, stride, dtype, offset=0):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'storages', name)
    storage = torch.load(path, weights_only=True)._untyped_storage
    assert storage.nbytes() == nbytes, f'{path} has {storage.nbytes()} bytes instead of {nbytes}'
    return torch.tensor([], dtype=dtype).set_(storage, offset, shape, stride)

";

const RUN: &str = "
if __name__ == '__main__':
    from torch._dynamo.debug_utils import InputReader

    torch.manual_seed(SEED)
    reader = InputReader(save_dir=os.path.dirname(os.path.abspath(__file__)))
    load_args(reader)
    print(Repro()(*reader.args))
";

/// The symbols that sizes in `load_args` mention, with the values they had.
fn symbol_values(inputs: &InputSpec) -> Vec<(String, i64)> {
    let mut found: Vec<(String, i64)> = Vec::new();
    for arg in &inputs.args {
        if let InputValue::Int { value, expr: Some(expr) } = &arg.value
            && is_identifier(expr)
        {
            found.push((expr.clone(), *value));
        }
    }
    let mut note = |size: &pyrite_sym::SymInt| {
        if let pyrite_sym::SymInt::Expr(node) = size {
            for name in node.0.symbols() {
                if let Some(value) = node.1.hint(&pyrite_sym::Expr::symbol(name.clone())) {
                    found.push((name.to_string(), value));
                }
            }
        }
    };
    for arg in &inputs.args {
        if let InputValue::Tensor(t) = &arg.value {
            t.shape.iter().chain(&t.stride).for_each(&mut note);
        }
    }
    inputs.storages.iter().for_each(|s| note(&s.nbytes));
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

fn print_load_args(text: &mut String, inputs: &InputSpec) {
    text.push_str("\ndef load_args(reader):\n");
    let mut written = vec![false; inputs.storages.len()];
    for arg in &inputs.args {
        let InputArg { name, value } = arg;
        let line = match value {
            InputValue::Tensor(t) => {
                if let (Some(storage), Some(done)) = (inputs.storages.get(t.storage), written.get_mut(t.storage))
                    && !std::mem::replace(done, true)
                {
                    print_storage(text, t.storage, storage);
                }
                let mut line = format!("reader.tensor(buf{}, {}", t.storage, sizes(&t.shape));
                if t.stride != contiguous_strides(&t.shape) {
                    let _ = write!(line, ", {}", sizes(&t.stride));
                }
                if t.dtype != DType::F32 {
                    let _ = write!(line, ", dtype=torch.{}", t.dtype.torch_name());
                }
                if t.offset != 0 {
                    let _ = write!(line, ", storage_offset={}", t.offset);
                }
                if t.requires_grad {
                    line.push_str(", requires_grad=True");
                }
                if t.is_leaf {
                    line.push_str(", is_leaf=True");
                }
                line + ")"
            }
            InputValue::Int { value, expr: Some(expr) } => format!("reader.symint({value}, expr={})", quote(expr)),
            InputValue::Int { value, expr: None } => format!("reader.symint({value})"),
            InputValue::Float(value) => format!("reader.symint({})", float(*value)),
            InputValue::Bool(value) => format!("reader.symint({})", if *value { "True" } else { "False" }),
            InputValue::None => format!("reader.const({})", quote(name.as_deref().unwrap_or("?"))),
        };
        let _ = write!(text, "    {line}");
        if let Some(name) = name {
            let _ = write!(text, "  # {}", name.replace(['\n', '\r'], " "));
        }
        text.push('\n');
    }
    if inputs.args.is_empty() {
        text.push_str("    pass\n");
    }
    text.push_str("load_args._version = 0\n");
}

fn print_storage(text: &mut String, index: usize, storage: &StorageSpec) {
    if let Some(data) = &storage.data {
        let mut data = literal(data);
        if storage.device != Device::Cpu {
            data.truncate(data.len() - 1);
            let _ = write!(data, ", device={})", quote(&storage.device.to_string()));
        }
        let _ = writeln!(text, "    buf{index} = {data}.untyped_storage()");
        return;
    }
    let name = storage.name.as_ref().map_or_else(|| "None".to_owned(), |n| quote(n));
    let _ = write!(text, "    buf{index} = reader.storage({name}, {}", storage.nbytes);
    if storage.device != Device::Cpu {
        let _ = write!(text, ", device={}", device(&storage.device));
    }
    if storage.dtype_hint != DType::F32 {
        let _ = write!(text, ", dtype_hint=torch.{}", storage.dtype_hint.torch_name());
    }
    text.push_str(")\n");
}

fn sizes(dims: &SymDims) -> String {
    let parts: Vec<String> = dims.iter().map(ToString::to_string).collect();
    tuple(&parts)
}

fn tuple(parts: &[String]) -> String {
    if let [one] = parts { format!("({one},)") } else { format!("({})", parts.join(", ")) }
}

struct Printer<'a> {
    options: &'a PrintOptions<'a>,
    text: String,
    classes: Vec<String>,
}

impl Printer<'_> {
    /// Writes a class after those of its nested graphs; returns its name.
    fn class(&mut self, graph: &Graph, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.classes.contains(&name) {
            name.push('_');
        }
        self.classes.push(name.clone());
        let nested: Vec<(Arc<str>, String)> = graph
            .subgraphs()
            .iter()
            .map(|(attribute, nested)| {
                let class = self.class(nested, &format!("{name}_{attribute}"));
                self.text.push('\n');
                (attribute.clone(), class)
            })
            .collect();
        let _ = writeln!(self.text, "class {name}(torch.nn.Module):");
        if !nested.is_empty() || !graph.constants().is_empty() {
            self.text.push_str("    def __init__(self):\n        super().__init__()\n");
            for (attribute, class) in nested {
                let _ = writeln!(self.text, "        self.{attribute} = {class}()");
            }
            for (constant, tensor) in graph.constants() {
                let (name, mut value) = (quote(constant), self.constant(tensor));
                let device = graph.device_of_constant(constant);
                if device != Device::Cpu {
                    let _ = write!(value, ".to({})", quote(&device.to_string()));
                }
                let _ = if graph.parameters.contains(constant) {
                    writeln!(self.text, "        self.register_parameter({name}, torch.nn.Parameter({value}))")
                } else {
                    writeln!(self.text, "        self.register_buffer({name}, {value})")
                };
            }
            self.text.push('\n');
        }
        self.forward(graph);
        name
    }

    fn constant(&self, tensor: &Tensor) -> String {
        match self.options.constants {
            Constants::Stored(file) if tensor.numel() > INLINE_ELEMENTS => {
                let ints = |dims: &[i64]| tuple(&dims.iter().map(ToString::to_string).collect::<Vec<_>>());
                let (shape, stride) = (ints(tensor.shape()), ints(tensor.stride()));
                let nbytes = tensor.storage().nbytes();
                let mut call = format!(
                    "stored({}, {nbytes}, {shape}, {stride}, torch.{}",
                    quote(&file(tensor)),
                    tensor.dtype().torch_name()
                );
                if tensor.layout().offset != 0 {
                    let _ = write!(call, ", {}", tensor.layout().offset);
                }
                call + ")"
            }
            Constants::MadeUp if tensor.numel() > INLINE_ELEMENTS => {
                let function = if tensor.dtype().is_inexact() { "randn" } else { "zeros" };
                format!("torch.{function}({:?}, dtype=torch.{})", tensor.shape(), tensor.dtype().torch_name())
            }
            _ => literal(tensor),
        }
    }

    fn forward(&mut self, graph: &Graph) {
        let last = last_uses(graph, self.options.releases);
        self.text.push_str("    def forward(self");
        for (_, node) in graph.placeholders() {
            let _ = write!(self.text, ", {}", node.name);
            self.annotation(node);
        }
        self.text.push_str("):\n");
        let before = self.text.len();
        let mut stack: Option<&str> = None;
        for (position, (_, node)) in graph.nodes().enumerate() {
            if node.kind == Kind::Placeholder {
                continue;
            }
            if self.options.stacks
                && let Some(own) = node.stack.as_deref()
                && stack != Some(own)
            {
                stack = Some(own);
                let _ = writeln!(self.text, "\n        # {}", own.replace(['\n', '\r'], " "));
            }
            self.text.push_str("        ");
            match &node.kind {
                Kind::Output => {
                    self.text.push_str("return ");
                    let value = node.args.first().unwrap_or(&Value::None);
                    let spelled = Values { graph }.result(value);
                    self.text.push_str(&spelled);
                }
                kind => {
                    self.text.push_str(&node.name);
                    self.annotation(node);
                    let spelled = match kind {
                        Kind::GetAttr(name) => format!("self.{name}"),
                        Kind::Call(target) => Values { graph }.call(node, target),
                        Kind::Placeholder | Kind::Output => String::new(),
                    };
                    let _ = write!(self.text, " = {spelled}");
                    if let Some(names) = last.get(position).filter(|names| !names.is_empty()) {
                        let _ = write!(self.text, ";  {} = None", names.join(" = "));
                    }
                }
            }
            self.text.push('\n');
        }
        if self.text.len() == before {
            self.text.push_str("        pass\n");
        }
    }

    fn annotation(&mut self, node: &Node) {
        if !self.options.annotations {
            if node.kind == Kind::Placeholder && matches!(&node.meta, Some(Value::Int(v)) if v.as_int().is_none()) {
                self.text.push_str(" : torch.SymInt");
            }
            return;
        }
        match &node.meta {
            Some(Value::Tensor(meta)) => {
                let _ = write!(self.text, ": \"{}\"", annotate(meta));
            }
            Some(Value::Int(value)) => {
                let _ = write!(self.text, ": \"Sym({value})\"");
            }
            _ => {}
        }
    }
}

/// A tensor's annotation: strides where they are not dense, the device where it is not the CPU.
pub fn annotate(meta: &Meta) -> String {
    let list = |dims: &SymDims| dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut text = format!("{}[{}]", meta.dtype, list(&meta.shape));
    if meta.stride != contiguous_strides(&meta.shape) {
        let _ = write!(text, "[{}]", list(&meta.stride));
    }
    let device = meta.device.to_string();
    // A name from a file must not end the string that it is written in.
    if meta.device != Device::Cpu && device.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'_')) {
        text.push_str(&device);
    }
    text
}

/// For each position, the names that are released after it.
fn last_uses(graph: &Graph, releases: bool) -> Vec<Vec<&str>> {
    if !releases {
        return Vec::new();
    }
    let mut last = vec![usize::MAX; graph.id_bound()];
    for (position, (id, node)) in graph.nodes().enumerate() {
        // An unused call is released at once; an unused input stays, as in FX.
        if node.kind != Kind::Placeholder {
            last[id.0 as usize] = position;
        }
        node.each_input(&mut |input| {
            if let Some(slot) = last.get_mut(input.0 as usize) {
                *slot = position;
            }
        });
    }
    let mut released = vec![Vec::new(); graph.len()];
    for (id, node) in graph.nodes() {
        if let Some(names) = last.get(id.0 as usize).and_then(|at| released.get_mut(*at)) {
            names.push(node.name.as_str());
        }
    }
    released
}

/// Writes the arguments of one graph's nodes.
struct Values<'a> {
    graph: &'a Graph,
}

impl Values<'_> {
    fn result(&self, value: &Value<NodeId>) -> String {
        match value {
            Value::List(items) => tuple(&items.iter().map(|item| self.value(item)).collect::<Vec<_>>()),
            other => self.value(other),
        }
    }

    fn value(&self, value: &Value<NodeId>) -> String {
        match value {
            Value::None => "None".to_owned(),
            Value::Tensor(id) => self.graph.get(*id).map_or_else(|| format!("node_{}", id.0), |n| n.name.clone()),
            Value::Bool(v) => if *v { "True" } else { "False" }.to_owned(),
            Value::Int(v) => v.to_string(),
            Value::Float(v) => float(*v),
            Value::Complex(v) => complex(*v),
            Value::Str(v) => quote(v),
            Value::DType(v) => format!("torch.{}", v.torch_name()),
            Value::Device(v) => device(v),
            Value::Layout(v) => format!("torch.{v}"),
            Value::MemoryFormat(v) => format!("torch.{}", v.torch_name()),
            Value::List(items) => {
                format!("[{}]", items.iter().map(|item| self.value(item)).collect::<Vec<_>>().join(", "))
            }
            Value::Slice(parts) => {
                format!("slice({}, {}, {})", self.value(&parts[0]), self.value(&parts[1]), self.value(&parts[2]))
            }
            Value::Graph(name) => format!("self.{name}"),
        }
    }

    fn call(&self, node: &Node, target: &Target) -> String {
        match target {
            Target::GetItem => match node.args.as_slice() {
                [list, index] => format!("{}[{}]", self.value(list), self.value(index)),
                _ => self.plain("operator.getitem", node),
            },
            Target::Opaque(name) => match (name.strip_prefix("operator."), node.kwargs.is_empty()) {
                (Some(operator), true) => self.python(operator, node),
                _ => self.plain(name, node),
            },
            Target::Op(op) => self.bound(op, node),
        }
    }

    fn plain(&self, name: &str, node: &Node) -> String {
        let mut parts: Vec<String> = node.args.iter().map(|v| self.value(v)).collect();
        parts.extend(node.kwargs.iter().map(|(key, v)| format!("{key} = {}", self.value(v))));
        format!("{name}({})", parts.join(", "))
    }

    /// An operator of Python's `operator` module, with its symbol where it has one.
    fn python(&self, name: &str, node: &Node) -> String {
        let operand = |value: &Value<NodeId>| match value {
            // A negative number or an expression is no operand without parentheses.
            Value::Int(v) if v.as_int().is_none_or(|v| v < 0) => format!("({v})"),
            Value::Float(v) if v.is_sign_negative() => format!("({})", float(*v)),
            other => self.value(other),
        };
        let symbol = BINARY_SYMBOLS.iter().find(|row| row.0 == name).map(|row| row.1);
        match (node.args.as_slice(), symbol, name) {
            ([value, index], _, "getitem") => format!("{}[{}]", self.value(value), self.result(index)),
            ([a, b], Some(symbol), _) => format!("{} {symbol} {}", operand(a), operand(b)),
            ([a], _, "neg") => format!("-{}", operand(a)),
            ([a], _, "pos") => format!("+{}", operand(a)),
            ([a], _, "invert") => format!("~{}", operand(a)),
            _ => self.plain(&format!("operator.{name}"), node),
        }
    }

    fn bound(&self, op: &Operator, node: &Node) -> String {
        let mut parts = op.name().splitn(3, '.');
        let (namespace, name, overload) =
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if namespace == "_operator" {
            return self.python(name, node);
        }
        let callee = match namespace {
            "higher_order" => format!("torch.ops.higher_order.{name}"),
            _ if is_identifier(overload) => format!("torch.ops.{namespace}.{name}.{overload}"),
            _ => format!("getattr(torch.ops.{namespace}.{name}, {})", quote(overload)),
        };
        let mut given: Vec<String> = Vec::new();
        let mut named: Vec<String> = Vec::new();
        let defaults: Vec<bool> =
            op.schema.params.iter().zip(&node.args).map(|(param, value)| is_default(param, value)).collect();
        let positional = op
            .schema
            .params
            .iter()
            .zip(&defaults)
            .rposition(|(param, default)| !param.keyword_only && !default)
            .map_or(0, |last| last + 1);
        for (index, (param, value)) in op.schema.params.iter().zip(&node.args).enumerate() {
            if param.keyword_only {
                if !defaults[index] {
                    named.push(format!("{} = {}", param.name, self.value(value)));
                }
            } else if index < positional {
                match (namespace, value) {
                    ("higher_order", Value::List(items)) if is_variadic(op, index) => {
                        given.extend(items.iter().map(|item| self.value(item)));
                    }
                    ("higher_order", value) => given.push(self.result(value)),
                    (_, value) => given.push(self.value(value)),
                }
            }
        }
        given.extend(named);
        format!("{callee}({})", given.join(", "))
    }
}

/// Whether Python passes a parameter's items one by one. A schema cannot say so, but these operators are called so.
pub fn is_variadic(op: &Operator, index: usize) -> bool {
    matches!(op.schema.params.get(index), Some(param) if &*param.name == "operands" && matches!(param.ty, Type::List(..)))
        && op.name().starts_with("higher_order.invoke_subgraph")
}

fn is_default(param: &crate::schema::Param, value: &Value<NodeId>) -> bool {
    match &param.default {
        Some(default) => value.try_map::<(), ()>(&mut |_| Err(())).as_ref() == Ok(default),
        None => param.keyword_only && *value == Value::None && matches!(param.ty, Type::Optional(_)),
    }
}

/// A tensor as an expression that makes it anew.
fn literal(tensor: &Tensor) -> String {
    let dtype = tensor.dtype();
    let items: Vec<String> = match dtype {
        DType::Bool => tensor.to_bools().into_iter().map(|v| if v { "True" } else { "False" }.to_owned()).collect(),
        d if d.is_integral() => tensor.to_i64s().iter().map(ToString::to_string).collect(),
        d if d.is_complex() => tensor.to_c128s().into_iter().map(complex).collect(),
        DType::F64 => tensor.to_f64s().into_iter().map(float).collect(),
        _ => tensor.to_f64s().into_iter().map(short_float).collect(),
    };
    let name = dtype.torch_name();
    let dense = match tensor.shape() {
        [] => format!("torch.tensor({}, dtype=torch.{name})", items.first().map_or("0", String::as_str)),
        [_] => format!("torch.tensor([{}], dtype=torch.{name})", items.join(", ")),
        shape => format!("torch.tensor([{}], dtype=torch.{name}).reshape({shape:?})", items.join(", ")),
    };
    let contiguous = pyrite_tensor::Layout::contiguous(tensor.shape());
    if tensor.layout().stride == contiguous.stride || tensor.layout().is_contiguous() {
        return dense;
    }
    let (shape, stride) = (tensor.shape(), tensor.stride());
    if tensor.layout().may_overlap() {
        return dense;
    }
    format!("torch.empty_strided({shape:?}, {stride:?}, dtype=torch.{name}).copy_({dense})")
}

/// The shortest text that single precision reads back.
fn short_float(value: f64) -> String {
    let short = python_float(&format!("{:e}", value as f32));
    if short.parse::<f64>().is_ok_and(|v| v as f32 == value as f32) && value.is_finite() { short } else { float(value) }
}

fn float(value: f64) -> String {
    if value.is_nan() {
        "float('nan')".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "float('inf')" } else { "float('-inf')" }.to_owned()
    } else {
        python_float(&format!("{value:e}"))
    }
}

/// Python's notation of a number in Rust's shortest scientific one: an exponent only for very large and small ones.
fn python_float(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific.to_owned() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    if !(-4..16).contains(&exponent) {
        let sign_of_exponent = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{sign_of_exponent}{:02}", exponent.abs());
    }
    let digits = mantissa.replace('.', "");
    let point = exponent + 1;
    if point <= 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize));
    }
    let point = point as usize;
    if digits.len() <= point {
        format!("{sign}{digits}{}.0", "0".repeat(point - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..point], &digits[point..])
    }
}

fn complex(value: Complex64) -> String {
    format!("complex({}, {})", float(value.re), float(value.im))
}

fn device(value: &Device) -> String {
    let name = value.to_string();
    match name.split_once(':') {
        Some((kind, index)) if index.parse::<u32>().is_ok() => format!("device(type={}, index={index})", quote(kind)),
        _ => format!("device(type={})", quote(&name)),
    }
}

/// A string as Python writes it.
pub fn quote(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() && (c as u32) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_does() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e-5, "1e-05"),
            (1.5e-4, "0.00015"),
            (1e16, "1e+16"),
            (123_456.789, "123456.789"),
            (1e15, "1000000000000000.0"),
            (-2.5e300, "-2.5e+300"),
            (5e-324, "5e-324"),
            (f64::NEG_INFINITY, "float('-inf')"),
        ] {
            assert_eq!(float(value), text);
        }
        assert_eq!(short_float(f64::from(0.1f32)), "0.1");
    }

    #[test]
    fn settings_become_lines_and_nothing_else_does() {
        let mut text = String::new();
        let settings =
            "cpp.simdlen=0&epilogue_fusion=false&limit=lowerings:3&mode=max&a();b=1&cpp.cxx=[null, \"g++\"]&s=\"x\"";
        print_settings(&mut text, settings);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "import torch._inductor.config",
                "torch._inductor.config.cpp.simdlen = 0",
                "torch._inductor.config.epilogue_fusion = False",
                "torch._inductor.config.cpp.cxx = [None, 'g++']",
                "torch._inductor.config.s = 'x'"
            ]
        );
    }

    #[test]
    fn strings_are_quoted_as_python_does() {
        assert_eq!(quote("a"), "'a'");
        assert_eq!(quote("it's"), "\"it's\"");
        assert_eq!(quote("\"'\\\n\u{7}"), "'\"\\'\\\\\\n\\x07'");
    }
}
