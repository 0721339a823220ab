//! Tensors that the text holds: `tensor([1., 2.])`, `torch.randn([3], dtype=torch.float32)`, stored ones.

use std::fs::File;
use std::io::BufReader;

use pyrite_diag::{Diagnostic, Severity};
use pyrite_ir::{Kind, Meta, Node, Value};
use pyrite_tensor::formats::{storage_hash, torch_zip};
use pyrite_tensor::random::CounterGenerator;
use pyrite_tensor::{DType, Layout, Scalar, Tensor, TensorError};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use crate::forward::{Forward, V};
use crate::problems::{Res, codes};

/// Whether a function makes a tensor of its arguments.
pub(crate) fn is_maker(path: &str) -> bool {
    matches!(path, "torch.tensor" | "torch.as_tensor")
}

/// A tensor of nested lists of numbers; `None` when they are ragged, symbolic or no numbers.
pub(crate) fn from_value(value: &V, dtype: Option<DType>) -> Option<Tensor> {
    let mut shape = Vec::new();
    let mut probe = value;
    while let Value::List(items) = probe {
        shape.push(items.len() as i64);
        match items.first() {
            Some(first) => probe = first,
            None => break,
        }
    }
    let mut scalars = Vec::new();
    flatten(value, &shape, &mut scalars)?;
    let natural = scalars.iter().fold(DType::Bool, |widest, s| {
        widest.max(match s {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F32,
            Scalar::Complex(_) => DType::C64,
        })
    });
    let natural = if scalars.is_empty() { DType::F32 } else { natural };
    let dtype = dtype.unwrap_or(natural);
    let tensor = Tensor::empty(&shape, dtype).ok()?;
    if dtype.is_complex() || natural == DType::C64 {
        tensor.write_c128s(&scalars.iter().map(|s| s.to_c128()).collect::<Vec<_>>());
    } else if natural == DType::F32 {
        tensor.write_f64s(&scalars.iter().map(|s| s.to_f64()).collect::<Vec<_>>());
    } else {
        tensor.write_i64s(&scalars.iter().map(|s| s.to_i64()).collect::<Vec<_>>());
    }
    Some(tensor)
}

fn flatten(value: &V, shape: &[i64], out: &mut Vec<Scalar>) -> Option<()> {
    match (value, shape) {
        (Value::List(items), [size, rest @ ..]) if items.len() as i64 == *size => {
            items.iter().try_for_each(|item| flatten(item, rest, out))
        }
        (other, []) => {
            out.push(other.as_scalar()?);
            Some(())
        }
        _ => None,
    }
}

/// The tensor that `torch.tensor(…)` in a `forward` makes; `None` when its data are not all known numbers.
pub(crate) fn from_arguments(
    forward: &Forward<'_>,
    name: &str,
    args: &[V],
    kwargs: &[(String, V)],
    at: &impl Ranged,
) -> Res<Option<Tensor>> {
    let Some(data) = args.first().filter(|data| is_known(data)) else { return Ok(None) };
    let dtype = match kwargs.iter().find(|(key, _)| key == "dtype").map(|(_, v)| v).or(args.get(1)) {
        Some(Value::DType(dtype)) => Some(*dtype),
        _ => None,
    };
    if let Some(tensor) = from_value(data, dtype) {
        Ok(Some(tensor))
    } else {
        let message = format!("the data of `{name}` are ragged or no numbers");
        forward.fail(codes::WRONG_ARGUMENTS, at, message, "give lists of equal length")
    }
}

/// Whether a value is a number or nested lists of numbers, however the text wrote them.
fn is_known(value: &V) -> bool {
    match value {
        Value::List(items) => items.iter().all(is_known),
        other => other.as_scalar().is_some(),
    }
}

impl<'a> Forward<'a> {
    /// Adds a constant and the call that copies it, so that writing to the value leaves the constant as it is.
    pub fn fresh_constant(&mut self, tensor: Tensor, want: Option<&str>, at: &impl Ranged) -> Res<V> {
        let mut number = self.constants.len();
        let mut name = format!("_tensor_constant{number}");
        while self.constants.contains(&name) || self.members.contains_key(name.as_str()) {
            number += 1;
            name = format!("_tensor_constant{number}");
        }
        let lifts = !self.cx.registry.overloads("aten.lift_fresh_copy").is_empty();
        let source = self.add_constant(&name, tensor, if lifts { None } else { want });
        if !lifts {
            return Ok(source);
        }
        let copied = self.packet("aten.lift_fresh_copy", vec![source.clone()], Vec::new(), want, at)?;
        Ok(copied.unwrap_or(source))
    }

    /// Adds a constant and the node that reads it.
    pub fn add_constant(&mut self, name: &str, tensor: Tensor, want: Option<&str>) -> V {
        let within =
            |member: &str| name.strip_prefix(member).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        let member = self.devices.keys().filter(|member| within(member)).max_by_key(|member| member.len());
        let device = member.and_then(|member| self.devices.get(member)).cloned().unwrap_or_default();
        let meta = Meta { device, ..Meta::of(&tensor) };
        if self.constants.insert(name.to_owned()) {
            self.builder.add_constant(name, tensor);
        }
        let node_name = self.name(want, name);
        let node =
            Node { meta: Some(Value::Tensor(meta)), ..Node::new(node_name, Kind::GetAttr(name.into()), Vec::new()) };
        Value::Tensor(self.push(node))
    }

    /// A tensor whose values the text does not have.
    pub fn generate(&self, name: &str, shape: &[i64], dtype: DType, at: &impl Ranged) -> Res<Tensor> {
        let tensor = self.made(Tensor::zeros(shape, dtype), at)?;
        if dtype.is_inexact() {
            // Each constant has a stream of its own, so that values do not depend on the order of reading.
            let stream =
                name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
            CounterGenerator::new(self.cx.options.seed, stream).fill_normal(&tensor);
        }
        let message = format!("the values of `{name}` are not in the text; they are generated");
        let note = Diagnostic::new(Severity::Note, codes::GENERATED, message).at(self.at(at));
        self.cx.problems.push(note.hint("PyTorch omits larger constants: dump with storages to include them"));
        Ok(tensor)
    }

    fn made(&self, tensor: Result<Tensor, TensorError>, at: &impl Ranged) -> Res<Tensor> {
        match tensor {
            Ok(tensor) => Ok(tensor),
            Err(error) => self.fail(codes::BAD_SIZE, at, error.to_string(), "check the sizes of this constant"),
        }
    }

    /// The tensor that an expression in `__init__` makes.
    pub fn constant_expr(&mut self, name: &str, expr: &'a Expr) -> Res<Tensor> {
        let Expr::Call(call) = expr else { return self.no_constant(expr) };
        if let Expr::Attribute(attribute) = call.func.as_ref()
            && matches!(attribute.value.as_ref(), Expr::Call(_))
        {
            return self.constant_method(name, call, &attribute.value, attribute.attr.as_str());
        }
        let Some(path) = self.global_path(&call.func) else { return self.no_constant(expr) };
        let function = path.rsplit('.').next().unwrap_or_default();
        if matches!(function, "Parameter" | "Buffer")
            && let Some(inner) = call.arguments.args.first()
        {
            return self.constant_expr(name, inner);
        }
        let (args, kwargs) = self.arguments(call)?;
        let named = |key: &str| kwargs.iter().find(|(k, _)| k == key).map(|(_, v)| v);
        let dtype = match named("dtype") {
            Some(Value::DType(dtype)) => Some(*dtype),
            _ => None,
        };
        let float = dtype.unwrap_or(DType::F32);
        let ints = |value: Option<&V>| -> Option<Vec<i64>> {
            let Some(Value::List(items)) = value else { return None };
            items.iter().map(|v| if let Value::Int(v) = v { v.as_int() } else { None }).collect()
        };
        match function {
            "tensor" | "as_tensor" => match (args.first(), ints(named("size"))) {
                // An empty tensor says its shape apart from its data.
                (Some(Value::List(items)), Some(shape)) if items.is_empty() => {
                    self.made(Tensor::empty(&shape, float), call)
                }
                (Some(data), _) => match from_value(data, dtype) {
                    Some(tensor) => Ok(tensor),
                    None => self.no_constant(expr),
                },
                _ => self.no_constant(expr),
            },
            "randn" | "rand" | "empty" | "randint" => {
                let size = named("size").or_else(|| args.iter().find(|v| matches!(v, Value::List(_))));
                let integer = if function == "randint" { dtype.unwrap_or(DType::I64) } else { float };
                match ints(size) {
                    Some(shape) => self.generate(name, &shape, integer, call),
                    None => self.no_constant(expr),
                }
            }
            "zeros" | "ones" | "full" => match ints(args.first().or(named("size"))) {
                Some(shape) => {
                    let fill = match function {
                        "zeros" => Scalar::Int(0),
                        "ones" => Scalar::Int(1),
                        _ => match args.get(1).or(named("fill_value")).and_then(Value::as_scalar) {
                            Some(fill) => fill,
                            None => return self.no_constant(expr),
                        },
                    };
                    let mut tensor = self.made(Tensor::empty(&shape, float), call)?;
                    tensor.fill_from(&Tensor::scalar(fill, float).expanded(&shape));
                    Ok(tensor)
                }
                None => self.no_constant(expr),
            },
            "empty_strided" => match (ints(args.first()), ints(args.get(1))) {
                (Some(shape), Some(stride)) if shape.len() == stride.len() && stride.iter().all(|s| *s >= 0) => {
                    self.made(Tensor::empty_strided(&shape, &stride, float), call)
                }
                _ => self.no_constant(expr),
            },
            "stored" => self.stored(&args, call),
            _ => self.no_constant(expr),
        }
    }

    fn constant_method(&mut self, name: &str, call: &'a ExprCall, base: &'a Expr, method: &str) -> Res<Tensor> {
        let tensor = self.constant_expr(name, base)?;
        match (method, call.arguments.args.as_ref()) {
            ("to" | "cuda" | "cpu" | "detach" | "clone" | "requires_grad_", _) => Ok(tensor),
            ("reshape" | "view", [shape]) => {
                let shape = match self.eval(shape, None)? {
                    Value::List(items) => items
                        .iter()
                        .map(|v| if let Value::Int(v) = v { v.as_int().filter(|d| *d >= 0) } else { None })
                        .collect::<Option<Vec<i64>>>(),
                    _ => None,
                };
                let count = shape.as_ref().and_then(|s| s.iter().try_fold(1i64, |n, d| n.checked_mul(*d)));
                match shape {
                    Some(shape) if count == Some(tensor.numel() as i64) => Ok(tensor.reshaped(&shape)),
                    _ => self.fail(
                        codes::BAD_SIZE,
                        call,
                        "the shape does not match the number of elements",
                        "check the shape",
                    ),
                }
            }
            ("copy_", [from]) => {
                let from = self.constant_expr(name, from)?;
                if from.shape() != tensor.shape() {
                    return self.fail(codes::BAD_SIZE, call, "a copy between different shapes", "check the shapes");
                }
                tensor.write_from(&from);
                Ok(tensor)
            }
            _ => self.no_constant(call),
        }
    }

    /// `stored(name, nbytes, shape, stride, dtype, offset)`: a constant in the folder `storages`.
    fn stored(&self, args: &[V], at: &ExprCall) -> Res<Tensor> {
        let int = |value: Option<&V>| match value {
            Some(Value::Int(v)) => v.as_int(),
            _ => None,
        };
        let ints = |value: Option<&V>| match value {
            Some(Value::List(items)) => items.iter().map(|v| int(Some(v))).collect::<Option<Vec<i64>>>(),
            _ => None,
        };
        let (Some(Value::Str(name)), Some(nbytes), Some(shape), Some(stride), Some(Value::DType(dtype))) =
            (args.first(), int(args.get(1)), ints(args.get(2)), ints(args.get(3)), args.get(4))
        else {
            let hint = "write `stored(name, bytes, shape, stride, dtype)`";
            return self.fail(codes::WRONG_ARGUMENTS, at, "a stored constant is not described completely", hint);
        };
        let path = match self.cx.storages.find(name) {
            Ok(path) => path,
            Err(reason) => {
                let message = format!("the stored constant `{name}` cannot be opened");
                let diagnostic = Diagnostic::error(codes::MISSING_CONSTANT, message).at(self.at(at)).cause(&reason);
                return self.cx.problems.fail(diagnostic.hint(reason.remedy()));
            }
        };
        let hint = "the folder `storages` belongs to the file: copy both";
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) => {
                let message = format!("the storage {} cannot be opened", path.display());
                let diagnostic = Diagnostic::error(codes::MISSING_CONSTANT, message).at(self.at(at)).cause(error);
                return self.cx.problems.fail(diagnostic.hint(hint));
            }
        };
        let storage = match torch_zip::read_storage(BufReader::new(file)) {
            Ok(storage) => storage,
            Err(error) => {
                let message = format!("the storage {} cannot be read", path.display());
                let diagnostic = Diagnostic::error(codes::MISSING_CONSTANT, message).at(self.at(at)).cause(error);
                return self.cx.problems.fail(diagnostic.hint(hint));
            }
        };
        if storage.nbytes() as i64 != nbytes {
            let message = format!("{} has {} bytes, not {nbytes}", path.display(), storage.nbytes());
            return self.fail(codes::BAD_SIZE, at, message, "the file was damaged or replaced");
        }
        // Names of 64 digits are Pyrite's own and can be checked.
        if name.len() == 64 && storage_hash(&storage.to_bytes()) != **name {
            let message = format!("the content of {} does not match its name", path.display());
            return self.fail(codes::MISSING_CONSTANT, at, message, "the file was damaged or replaced");
        }
        if shape.len() != stride.len() {
            return self.fail(codes::BAD_SIZE, at, "as many strides as sizes are needed", "check the call");
        }
        let layout = Layout::new(&shape, &stride, int(args.get(5)).unwrap_or(0));
        self.made(Tensor::new(storage, *dtype, layout), at)
    }

    fn no_constant<T>(&self, at: &impl Ranged) -> Res<T> {
        self.fail(
            codes::MISSING_CONSTANT,
            at,
            "this constant is not understood",
            "write it as `torch.tensor([…], dtype=…)`",
        )
    }
}
