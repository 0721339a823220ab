//! `load_args(reader)`: where the inputs come from.

use pyrite_diag::Diagnostic;
use pyrite_ir::inputs::{InputArg, InputSpec, InputValue, StorageSpec, TensorSpec};
use pyrite_ir::meta::contiguous_strides;
use pyrite_ir::{Device, SymDims, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;
use pyrite_tensor::tensor::MAX_BYTES;
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef, UnaryOp};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

use crate::constant::{from_value, is_maker};
use crate::forward::V;
use crate::literal;
use crate::module::Context;
use crate::problems::{Res, codes};

/// The symbols that `load_args` gives values to.
pub(crate) fn hints(function: &StmtFunctionDef) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    for stmt in &function.body {
        if let Stmt::Expr(stmt) = stmt
            && let Some(("symint", call)) = reader_call(&stmt.value)
            && let Some(Expr::NumberLiteral(number)) = call.arguments.args.first()
            && let Some(expr) = keyword(call, "expr").and_then(literal::text)
            && pyrite_ir::verify::is_identifier(expr)
            && let Some(value) = literal::int(number)
        {
            found.push((expr.to_owned(), value));
        }
    }
    found
}

/// Reads the function.
pub(crate) fn read(context: &Context<'_>, function: &StmtFunctionDef) -> Res<InputSpec> {
    let mut reader = LoadArgs { context, spec: InputSpec::default(), names: FxHashMap::default() };
    let mut failed = None;
    for stmt in &function.body {
        if let Err(error) = reader.statement(stmt) {
            failed = Some(error);
        }
        if context.problems.full() {
            break;
        }
    }
    failed.map_or(Ok(reader.spec), Err)
}

/// `reader.method(…)`.
fn reader_call(expr: &Expr) -> Option<(&str, &ExprCall)> {
    let Expr::Call(call) = expr else { return None };
    let Expr::Attribute(attribute) = call.func.as_ref() else { return None };
    matches!(attribute.value.as_ref(), Expr::Name(_)).then_some((attribute.attr.as_str(), call))
}

/// The `torch.tensor(…)` of a storage that is written out.
fn written_storage(expr: &Expr) -> Option<&ExprCall> {
    let Expr::Call(outer) = expr else { return None };
    let Expr::Attribute(attribute) = outer.func.as_ref() else { return None };
    let Expr::Call(inner) = attribute.value.as_ref() else { return None };
    let makes = literal::path(&inner.func).is_some_and(|path| is_maker(&path));
    (makes && attribute.attr.as_str() == "untyped_storage" && outer.arguments.is_empty()).then_some(inner)
}

/// A list of numbers, or a number, as it stands in the text.
fn numbers(expr: &Expr) -> Option<V> {
    match expr {
        Expr::List(list) => list.elts.iter().map(numbers).collect::<Option<Vec<_>>>().map(Value::List),
        Expr::NumberLiteral(number) => literal::number(number),
        Expr::BooleanLiteral(literal) => Some(Value::Bool(literal.value)),
        Expr::UnaryOp(unary) if unary.op == UnaryOp::USub => match numbers(&unary.operand)? {
            Value::Int(value) => Some(value.as_int()?.checked_neg()?.into()),
            Value::Float(value) => Some(Value::Float(-value)),
            Value::Complex(value) => Some(Value::Complex(-value)),
            _ => None,
        },
        Expr::Call(call) => {
            let args: Vec<&Expr> = call.arguments.args.iter().collect();
            match (literal::path(&call.func)?.as_str(), args.as_slice()) {
                ("float", [text]) => literal::text(text)?.parse().ok().map(Value::Float),
                ("complex", [re, im]) => {
                    let part = |expr: &Expr| numbers(expr)?.as_scalar().map(pyrite_tensor::Scalar::to_f64);
                    Some(Value::Complex(pyrite_tensor::Complex64::new(part(re)?, part(im)?)))
                }
                _ => None,
            }
        }
        other => literal::path(other).as_deref().and_then(literal::constant),
    }
}

fn keyword<'a>(call: &'a ExprCall, name: &str) -> Option<&'a Expr> {
    call.arguments.keywords.iter().find(|k| k.arg.as_ref().is_some_and(|a| a.as_str() == name)).map(|k| &k.value)
}

struct LoadArgs<'a> {
    context: &'a Context<'a>,
    spec: InputSpec,
    names: FxHashMap<&'a str, usize>,
}

impl<'a> LoadArgs<'a> {
    fn fail<T>(&self, at: &impl Ranged, message: impl Into<String>, hint: &str) -> Res<T> {
        let location = self.context.source.at(at);
        self.context.problems.fail(Diagnostic::error(codes::LOAD_ARGS, message).at(location).hint(hint))
    }

    fn statement(&mut self, stmt: &'a Stmt) -> Res<()> {
        match stmt {
            Stmt::Assign(assign) => match (assign.targets.as_slice(), reader_call(&assign.value)) {
                ([Expr::Name(name)], Some(("storage", call))) => {
                    let storage = self.storage(call)?;
                    self.names.insert(name.id.as_str(), self.spec.storages.len());
                    self.spec.storages.push(storage);
                    Ok(())
                }
                (_, Some((method, call))) => self.argument(method, call, stmt),
                ([Expr::Name(name)], None) if written_storage(&assign.value).is_some() => {
                    let storage = self.written(&assign.value)?;
                    self.names.insert(name.id.as_str(), self.spec.storages.len());
                    self.spec.storages.push(storage);
                    Ok(())
                }
                _ => self.fail(stmt, "`load_args` assigns something that is not a storage", "use `reader.storage(…)`"),
            },
            Stmt::Expr(expr) => match reader_call(&expr.value) {
                Some((method, call)) => self.argument(method, call, stmt),
                // A list that PyTorch could not store is described in a string.
                None if matches!(expr.value.as_ref(), Expr::StringLiteral(_)) => Ok(()),
                None => self.fail(
                    stmt,
                    "`load_args` contains a statement that is not a call of its reader",
                    "remove the line",
                ),
            },
            Stmt::Pass(_) => Ok(()),
            other => self.fail(other, "`load_args` may only call its reader", "remove the statement"),
        }
    }

    fn storage(&self, call: &ExprCall) -> Res<StorageSpec> {
        let args = &call.arguments.args;
        let name = match args.first().or_else(|| keyword(call, "storage_hash")) {
            Some(Expr::NoneLiteral(_)) => None,
            Some(expr) => match literal::text(expr) {
                // The name becomes a path: it must not leave the folder.
                Some(name) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                    Some(name.to_owned())
                }
                _ => return self.fail(expr, "a storage's name must be letters and digits", "use the file's name"),
            },
            None => return self.fail(call, "`reader.storage` needs a name and a number of bytes", "add them"),
        };
        let Some(nbytes) = args.get(1).or_else(|| keyword(call, "nbytes")) else {
            return self.fail(call, "`reader.storage` needs the number of bytes", "add it");
        };
        let size = self.size(nbytes)?;
        if size.hint().is_some_and(|v| !(0..=MAX_BYTES).contains(&v)) {
            let location = self.context.source.at(nbytes);
            let message = format!("a storage of {size} bytes cannot exist");
            return self.context.problems.fail(
                Diagnostic::error(codes::BAD_SIZE, message).at(location).hint("check the number against the file"),
            );
        }
        let device = match keyword(call, "device") {
            Some(expr) => self.device(expr)?,
            None => Device::Cpu,
        };
        let dtype_hint = match keyword(call, "dtype_hint") {
            Some(expr) => self.dtype(expr)?,
            None => DType::F32,
        };
        Ok(StorageSpec { name, data: None, nbytes: size, device, dtype_hint })
    }

    /// `torch.tensor([…], dtype=…).untyped_storage()`: bytes that stand in the text.
    fn written(&self, expr: &Expr) -> Res<StorageSpec> {
        let Some(call) = written_storage(expr) else {
            return self.fail(expr, "a storage is neither read nor written out", "use `reader.storage(…)`");
        };
        let dtype = keyword(call, "dtype").map(|dtype| self.dtype(dtype)).transpose()?;
        let data = call.arguments.args.first().and_then(numbers).and_then(|numbers| from_value(&numbers, dtype));
        let Some(data) = data else {
            return self.fail(
                expr,
                "the data of a storage are not a list of numbers",
                "write `torch.tensor([1.0, 2.0])`",
            );
        };
        let (nbytes, dtype_hint) = (SymInt::from(data.storage().nbytes() as i64), data.dtype());
        let device = keyword(call, "device").map(|device| self.device(device)).transpose()?.unwrap_or_default();
        Ok(StorageSpec { name: None, data: Some(data), nbytes, device, dtype_hint })
    }

    fn argument(&mut self, method: &str, call: &'a ExprCall, stmt: &Stmt) -> Res<()> {
        let value = match method {
            "tensor" => InputValue::Tensor(self.tensor(call)?),
            "symint" => self.number(call)?,
            "const" | "unsupported" | "opaque" | "generator" => InputValue::None,
            "storage" => {
                self.storage(call)?;
                return Ok(());
            }
            other => {
                return self.fail(call, format!("`reader.{other}` is unknown"), "the file may be of a newer PyTorch");
            }
        };
        let name = self.comment(stmt);
        self.spec.args.push(InputArg { name, value });
        Ok(())
    }

    /// The name in the comment behind a statement.
    fn comment(&self, stmt: &Stmt) -> Option<String> {
        let rest = self.context.source.text.get(stmt.range().end().to_usize()..)?;
        let line = rest.lines().next()?.trim();
        let name = line.strip_prefix('#')?.split(',').next()?.trim();
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn number(&self, call: &ExprCall) -> Res<InputValue> {
        let expr = keyword(call, "expr").and_then(literal::text).map(str::to_owned);
        let Some(value) = call.arguments.args.first().or_else(|| keyword(call, "val")) else {
            return self.fail(call, "`reader.symint` needs a value", "add it");
        };
        Ok(match value {
            Expr::BooleanLiteral(value) => InputValue::Bool(value.value),
            Expr::NoneLiteral(_) => InputValue::None,
            Expr::NumberLiteral(number) if literal::int(number).is_none() => match literal::number(number) {
                Some(Value::Float(value)) => InputValue::Float(value),
                _ => {
                    return self.fail(
                        value,
                        "an input is a number that does not fit into 64 bits",
                        "use a smaller one",
                    );
                }
            },
            other => {
                let size = self.size(other)?;
                match size.hint() {
                    Some(value) => InputValue::Int { value, expr },
                    None => return self.fail(other, "the value of an input is not known", "write it as a number"),
                }
            }
        })
    }

    fn tensor(&self, call: &'a ExprCall) -> Res<TensorSpec> {
        let args = &call.arguments.args;
        let (Some(storage), Some(shape)) =
            (args.first().or_else(|| keyword(call, "storage")), args.get(1).or_else(|| keyword(call, "shape")))
        else {
            return self.fail(call, "`reader.tensor` needs a storage and a shape", "add them");
        };
        let storage = match storage {
            Expr::Name(name) => match self.names.get(name.id.as_str()) {
                Some(index) => *index,
                None => return self.fail(storage, format!("no storage is called `{}`", name.id), "define it before"),
            },
            other => return self.fail(other, "a tensor's storage must be a name", "assign the storage first"),
        };
        let shape = self.sizes(shape)?;
        let stride = match args.get(2).or_else(|| keyword(call, "stride")) {
            None | Some(Expr::NoneLiteral(_)) => contiguous_strides(&shape),
            Some(expr) => {
                let stride = self.sizes(expr)?;
                if stride.len() != shape.len() {
                    let message = format!("{} strides for {} sizes", stride.len(), shape.len());
                    return self.fail(expr, message, "give one stride per size");
                }
                stride
            }
        };
        let offset = keyword(call, "storage_offset").map_or(Ok(SymInt::Int(0)), |expr| self.size(expr))?;
        let dtype = keyword(call, "dtype").map_or(Ok(DType::F32), |expr| self.dtype(expr))?;
        let spec = TensorSpec {
            storage,
            shape,
            stride,
            offset,
            dtype,
            requires_grad: self.flag(call, "requires_grad")?,
            is_leaf: self.flag(call, "is_leaf")?,
        };
        self.check_bounds(call, &spec)?;
        Ok(spec)
    }

    /// A tensor must lie inside its storage.
    fn check_bounds(&self, call: &ExprCall, spec: &TensorSpec) -> Res<()> {
        let hints = |dims: &SymDims| dims.iter().map(SymInt::hint).collect::<Option<Vec<i64>>>();
        let (Some(shape), Some(stride), Some(offset)) = (hints(&spec.shape), hints(&spec.stride), spec.offset.hint())
        else {
            return Ok(());
        };
        let span = shape.iter().zip(&stride).try_fold(1i64, |span, (size, step)| {
            if *size < 0 || *step < 0 { None } else { size.checked_sub(1)?.checked_mul(*step)?.checked_add(span) }
        });
        let empty = shape.contains(&0);
        let needed = span
            .filter(|_| offset >= 0)
            .and_then(|span| if empty { Some(0) } else { span.checked_add(offset) })
            .and_then(|elements| elements.checked_mul(spec.dtype.size() as i64));
        let present = self.spec.storages.get(spec.storage).and_then(|s| s.nbytes.hint());
        let bad = match (needed, present) {
            (None, _) => Some("a tensor's sizes and strides are negative or overflow".to_owned()),
            (Some(needed), _) if needed > MAX_BYTES => {
                Some(format!("a tensor needs {needed} bytes, which cannot exist"))
            }
            (Some(needed), Some(present)) if needed > present => {
                Some(format!("a tensor needs {needed} bytes of a storage of {present}"))
            }
            _ => None,
        };
        match bad {
            Some(message) => self.context.problems.fail(
                Diagnostic::error(codes::BAD_SIZE, message)
                    .at(self.context.source.at(call))
                    .hint("the file was changed or is damaged: compare it with the original"),
            ),
            None => Ok(()),
        }
    }

    fn flag(&self, call: &ExprCall, name: &str) -> Res<bool> {
        match keyword(call, name) {
            None => Ok(false),
            Some(Expr::BooleanLiteral(value)) => Ok(value.value),
            Some(other) => self.fail(other, format!("`{name}` must be True or False"), "write one of them"),
        }
    }

    fn dtype(&self, expr: &Expr) -> Res<DType> {
        if let Some(Value::DType(dtype)) = literal::path(expr).as_deref().and_then(literal::constant) {
            Ok(dtype)
        } else {
            let text = self.context.source.slice(expr.range());
            self.context.problems.fail(
                Diagnostic::error(codes::UNKNOWN_DTYPE, format!("unknown dtype `{text}`"))
                    .at(self.context.source.at(expr))
                    .hint("known are float16, bfloat16, float32, float64, the float8 types, complex64, complex128, int8 to int64, uint8 to uint64, bool"),
            )
        }
    }

    fn device(&self, expr: &Expr) -> Res<Device> {
        match literal::device_of(expr) {
            Some(device) => Ok(self.context.place(device, expr)),
            None => self.fail(expr, "not a device", "write `device(type='cpu')`"),
        }
    }

    fn sizes(&self, expr: &Expr) -> Res<SymDims> {
        let items: &[Expr] = match expr {
            Expr::Tuple(tuple) => &tuple.elts,
            Expr::List(list) => &list.elts,
            other => return self.fail(other, "sizes must be a tuple", "write `(2, 3)`"),
        };
        items.iter().map(|item| self.size(item)).collect()
    }

    fn size(&self, expr: &Expr) -> Res<SymInt> {
        if let Expr::NumberLiteral(number) = expr
            && let Some(value) = literal::int(number)
        {
            return Ok(SymInt::Int(value));
        }
        let text = self.context.source.slice(expr.range());
        match self.context.symbols().size(text) {
            Some(size) => Ok(size),
            None => self.context.problems.fail(
                Diagnostic::error(codes::BAD_SIZE, format!("`{text}` is not a size"))
                    .at(self.context.source.at(expr))
                    .hint("a size is an integer of 64 bits, or an expression over symbols such as `s0 + 1`"),
            ),
        }
    }
}
