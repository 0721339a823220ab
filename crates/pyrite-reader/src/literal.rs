//! The parts of Python that mean the same everywhere: numbers, dotted names, the constants of `torch`.

use pyrite_ir::{Device, NodeId, Value};
use pyrite_tensor::{Complex64, DType, MemoryFormat};
use ruff_python_ast::{Expr, ExprNumberLiteral, Number};

/// An integer literal that fits 64 bits.
pub(crate) fn int(number: &ExprNumberLiteral) -> Option<i64> {
    match &number.value {
        Number::Int(value) => value.as_i64(),
        _ => None,
    }
}

/// A number literal; `None` when it does not fit.
pub(crate) fn number(number: &ExprNumberLiteral) -> Option<Value<NodeId>> {
    match &number.value {
        Number::Int(value) => value.as_i64().map(Value::from),
        Number::Float(value) => Some(Value::Float(*value)),
        Number::Complex { real, imag } => Some(Value::Complex(Complex64::new(*real, *imag))),
    }
}

/// A string literal.
pub(crate) fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::StringLiteral(literal) => Some(literal.value.to_str()),
        _ => None,
    }
}

/// Whether a text consists of ASCII letters, digits and underscores: it can stand in a printed name as it is.
pub(crate) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `torch.ops.aten.add` as it is written; `None` for anything but a chain of names.
pub(crate) fn path(expr: &Expr) -> Option<String> {
    let mut out = String::new();
    write_path(expr, &mut out)?;
    Some(out)
}

/// Appends a dotted name and returns the name it starts with.
pub(crate) fn write_path<'a>(expr: &'a Expr, out: &mut String) -> Option<&'a str> {
    match expr {
        Expr::Name(name) => {
            out.push_str(&name.id);
            Some(&name.id)
        }
        Expr::Attribute(attribute) => {
            let root = write_path(&attribute.value, out)?;
            out.push('.');
            out.push_str(&attribute.attr);
            Some(root)
        }
        _ => None,
    }
}

/// The value of a dotted name that is a constant, such as `torch.float32`.
pub(crate) fn constant(path: &str) -> Option<Value<NodeId>> {
    let name = path.strip_prefix("torch.").or_else(|| path.strip_prefix("math.")).unwrap_or(path);
    match name {
        "inf" => return Some(Value::Float(f64::INFINITY)),
        "nan" => return Some(Value::Float(f64::NAN)),
        "pi" => return Some(Value::Float(std::f64::consts::PI)),
        "e" if path == "math.e" => return Some(Value::Float(std::f64::consts::E)),
        "strided" | "sparse_coo" | "sparse_csr" | "sparse_csc" | "sparse_bsr" | "sparse_bsc" | "jagged"
            if path.starts_with("torch.") =>
        {
            return Some(Value::Layout(name.into()));
        }
        _ => {}
    }
    let name = path.strip_prefix("torch.")?;
    DType::from_torch_name(name)
        .map(Value::DType)
        .or_else(|| MemoryFormat::from_torch_name(name).map(Value::MemoryFormat))
}

/// Whether a name in `torch` looks like a data type, known or not.
pub(crate) fn is_dtype_name(path: &str) -> bool {
    path.strip_prefix("torch.").is_some_and(|name| {
        ["float", "int", "uint", "complex", "bfloat", "quint", "qint", "bits"]
            .iter()
            .any(|stem| name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())))
    })
}

/// A device as an expression: its name, or a call that makes one.
pub(crate) fn device_of(expr: &Expr) -> Option<Device> {
    if let Some(name) = text(expr) {
        return Some(Device::from_name(name));
    }
    let Expr::Call(call) = expr else { return None };
    let value = |expr: &Expr| match expr {
        Expr::NumberLiteral(number) => self::number(number).unwrap_or(Value::None),
        other => text(other).map_or(Value::None, Value::from),
    };
    let args: Vec<_> = call.arguments.args.iter().map(value).collect();
    let named = call.arguments.keywords.iter();
    let kwargs: Vec<_> = named.filter_map(|k| Some((k.arg.as_ref()?.to_string(), value(&k.value)))).collect();
    device(&args, &kwargs)
}

/// Where an expression that makes a tensor or a module puts it, if it says so: `torch.ones(3, device='cuda')`,
/// `Linear(2, 3).cuda()`, `Parameter(x.to('cuda:1'))`.
pub(crate) fn put_where(expr: &Expr) -> Option<Device> {
    let Expr::Call(call) = expr else { return None };
    let first = call.arguments.args.first();
    if let Expr::Attribute(method) = call.func.as_ref()
        && matches!(method.value.as_ref(), Expr::Call(_))
    {
        let own = match method.attr.as_str() {
            "cpu" => Some(Device::Cpu),
            "cuda" => match first {
                None => Some(Device::from_name("cuda:0")),
                Some(Expr::NumberLiteral(index)) => match self::number(index) {
                    Some(Value::Int(index)) => Some(Device::from_name(&format!("cuda:{index}"))),
                    _ => None,
                },
                Some(named) => device_of(named),
            },
            "to" => first.and_then(device_of),
            _ => None,
        };
        return own.or_else(|| put_where(&method.value));
    }
    let named = call.arguments.keywords.iter().find(|k| k.arg.as_ref().is_some_and(|name| name.as_str() == "device"));
    named.and_then(|keyword| device_of(&keyword.value)).or_else(|| first.and_then(put_where))
}

/// `device(type='cuda', index=0)`, `torch.device('cuda:0')`, `torch.device('cuda', 0)`.
pub(crate) fn device(args: &[Value<NodeId>], kwargs: &[(String, Value<NodeId>)]) -> Option<Device> {
    let named = |name: &str| kwargs.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    match (args.first().or_else(|| named("type")), args.get(1).or_else(|| named("index"))) {
        (Some(Value::Str(kind)), None | Some(Value::None)) => Some(Device::from_name(kind)),
        (Some(Value::Str(kind)), Some(Value::Int(index))) => Some(Device::from_name(&format!("{kind}:{index}"))),
        (Some(Value::Device(device)), None) => Some(device.clone()),
        _ => None,
    }
}
