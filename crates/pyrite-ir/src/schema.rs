//! Operator signatures as PyTorch writes them.
//!
//! `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`. The schema says how a call's arguments
//! are bound, what may be written (`(a!)`) and what the results share storage with (`(a)`).

use std::fmt;
use std::sync::Arc;

use pyrite_sym::SymInt;
use pyrite_tensor::{DType, MemoryFormat};

use crate::{Device, Value};

/// The type of an argument or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A tensor.
    Tensor,
    /// An integer, maybe symbolic.
    Int,
    /// A real number.
    Float,
    /// A bool.
    Bool,
    /// A number of any kind.
    Scalar,
    /// A text.
    Str,
    /// A data type.
    DType,
    /// A device.
    Device,
    /// A storage layout.
    Layout,
    /// A memory format.
    MemoryFormat,
    /// A random generator.
    Generator,
    /// A nested graph.
    Graph,
    /// Anything.
    Any,
    /// A type or None.
    Optional(Box<Type>),
    /// A list; with a length, a single item stands for that many.
    List(Box<Type>, Option<usize>),
}

impl Type {
    /// The type without its `?`.
    pub fn required(&self) -> &Self {
        match self {
            Self::Optional(inner) => inner,
            other => other,
        }
    }

    /// Whether it holds tensors.
    pub fn holds_tensors(&self) -> bool {
        match self {
            Self::Tensor | Self::Any => true,
            Self::Optional(inner) | Self::List(inner, _) => inner.holds_tensors(),
            _ => false,
        }
    }
}

/// Which storage an argument or result belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The letter that names the storage in the schema.
    pub set: Arc<str>,
    /// Whether the operator writes to it.
    pub written: bool,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
    /// What it aliases.
    pub alias: Option<Alias>,
    /// Its default.
    pub default: Option<Value<()>>,
    /// Whether it must be given by name.
    pub keyword_only: bool,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    /// Its type.
    pub ty: Type,
    /// What it aliases.
    pub alias: Option<Alias>,
}

/// A parsed signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The name with dots and an explicit overload, such as `aten.add.Tensor` or `aten.gelu.default`.
    pub name: Arc<str>,
    /// The parameters in order.
    pub params: Vec<Param>,
    /// The results in order.
    pub returns: Vec<Return>,
}

/// Why a signature cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad operator schema `{schema}`: expected {wanted} at byte {at}")]
pub struct SchemaError {
    /// The text.
    pub schema: String,
    /// Where reading stopped.
    pub at: usize,
    /// What was wanted there.
    pub wanted: &'static str,
}

/// Why a call does not fit a signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// More positional arguments than the operator takes.
    #[error("{op} takes {takes} positional arguments, {given} were given")]
    TooMany {
        /// The operator.
        op: Arc<str>,
        /// How many it takes.
        takes: usize,
        /// How many there are.
        given: usize,
    },
    /// A required argument is missing.
    #[error("{op} needs the argument `{name}`")]
    Missing {
        /// The operator.
        op: Arc<str>,
        /// The argument.
        name: Arc<str>,
    },
    /// An argument the operator does not have.
    #[error("{op} has no argument `{name}`")]
    Unknown {
        /// The operator.
        op: Arc<str>,
        /// The argument.
        name: String,
    },
    /// An argument given twice.
    #[error("{op} got multiple values for argument `{name}`")]
    Twice {
        /// The operator.
        op: Arc<str>,
        /// The argument.
        name: Arc<str>,
    },
    /// A value of the wrong type.
    #[error("{op}'s argument `{name}` wants {wanted}, not {got}")]
    Mismatch {
        /// The operator.
        op: Arc<str>,
        /// The argument.
        name: Arc<str>,
        /// The type it wants.
        wanted: String,
        /// What it was given.
        got: String,
    },
}

impl Schema {
    /// Reads a signature.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        Reader { text, at: 0 }.schema()
    }

    /// The index of a parameter.
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| &*p.name == name)
    }

    /// Whether the operator writes to an argument.
    pub fn is_mutable(&self) -> bool {
        self.params.iter().any(|p| p.alias.as_ref().is_some_and(|a| a.written))
    }

    /// The namespace, such as `aten`.
    pub fn namespace(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// Orders a call's arguments by parameter, filling in defaults. A number stands for a tensor, an int for a float
    /// and, where the schema gives a length, an item for a list of that many.
    pub fn bind<T: Clone>(&self, args: &[Value<T>], kwargs: &[(String, Value<T>)]) -> Result<Vec<Value<T>>, BindError> {
        let positional = self.params.iter().filter(|p| !p.keyword_only).count();
        if args.len() > positional {
            return Err(BindError::TooMany { op: self.name.clone(), takes: positional, given: args.len() });
        }
        let mut bound: Vec<Option<Value<T>>> = args.iter().cloned().map(Some).collect();
        bound.resize(self.params.len(), None);
        for (name, value) in kwargs {
            let index =
                self.param(name).ok_or_else(|| BindError::Unknown { op: self.name.clone(), name: name.clone() })?;
            if bound[index].is_some() {
                return Err(BindError::Twice { op: self.name.clone(), name: self.params[index].name.clone() });
            }
            bound[index] = Some(value.clone());
        }
        self.params
            .iter()
            .zip(bound)
            .map(|(param, value)| match (value, &param.default) {
                (Some(value), _) => fit(&param.ty, value).map_err(|got| BindError::Mismatch {
                    op: self.name.clone(),
                    name: param.name.clone(),
                    wanted: param.ty.to_string(),
                    got: got.into(),
                }),
                (None, Some(default)) => {
                    // A default holds no tensor, so nothing is left to replace.
                    Ok(default.try_map(&mut |()| Ok::<_, std::convert::Infallible>(Value::None)).unwrap_or(Value::None))
                }
                (None, None) if matches!(param.ty, Type::Optional(_)) && param.keyword_only => Ok(Value::None),
                (None, None) => Err(BindError::Missing { op: self.name.clone(), name: param.name.clone() }),
            })
            .collect()
    }
}

impl Schema {
    /// As [`Self::bind`], with keyword-only arguments given by position too.
    pub fn bind_in_order<T: Clone>(&self, args: &[Value<T>]) -> Result<Vec<Value<T>>, BindError> {
        let positional = self.params.iter().filter(|p| !p.keyword_only).count().min(args.len());
        let named: Vec<_> = self.params[positional..]
            .iter()
            .map(|p| p.name.to_string())
            .zip(args[positional..].iter().cloned())
            .collect();
        if positional + named.len() < args.len() {
            return Err(BindError::TooMany { op: self.name.clone(), takes: self.params.len(), given: args.len() });
        }
        self.bind(&args[..positional], &named)
    }
}

/// Converts a value to what a type wants, or says what kind of value it is.
fn fit<T: Clone>(ty: &Type, value: Value<T>) -> Result<Value<T>, &'static str> {
    let kind = value.kind();
    match (ty, value) {
        (Type::Any, value) => Ok(value),
        (Type::Optional(_), Value::None) => Ok(Value::None),
        (Type::Optional(inner), value) => fit(inner, value),
        // A node's value may be of any type; what it is shows at inference.
        (_, value @ Value::Tensor(_)) if !matches!(ty, Type::List(..)) => Ok(value),
        (
            Type::Tensor | Type::Scalar,
            value @ (Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Complex(_)),
        ) => Ok(value),
        (Type::Int, value @ Value::Int(_)) => Ok(value),
        (Type::Int, Value::Bool(v)) => Ok(Value::Int(SymInt::Int(v.into()))),
        (Type::Float, value @ (Value::Float(_) | Value::Complex(_))) => Ok(value),
        (Type::Float, Value::Int(v)) => Ok(v.as_int().map_or(Value::Int(v), |v| Value::Float(v as f64))),
        (Type::Float, Value::Bool(v)) => Ok(Value::Float(f64::from(u8::from(v)))),
        (Type::Bool, value @ Value::Bool(_)) => Ok(value),
        (Type::Bool, Value::Int(SymInt::Int(v))) => Ok(Value::Bool(v != 0)),
        (Type::Str, value @ Value::Str(_)) => Ok(value),
        (Type::DType, value @ Value::DType(_)) => Ok(value),
        (Type::Device, value @ Value::Device(_)) => Ok(value),
        (Type::Device, Value::Str(name)) => Ok(Value::Device(Device::from_name(&name))),
        (Type::Layout, value @ Value::Layout(_)) => Ok(value),
        (Type::MemoryFormat, value @ Value::MemoryFormat(_)) => Ok(value),
        (Type::Generator, value @ Value::None) => Ok(value),
        (Type::Graph, value @ Value::Graph(_)) => Ok(value),
        (Type::List(item, _), Value::List(items)) => {
            Ok(Value::List(items.into_iter().map(|v| fit(item, v)).collect::<Result<_, _>>()?))
        }
        // A node whose value is a list of tensors, or a single tensor for a list of any length.
        (Type::List(item, None), value @ Value::Tensor(_)) => {
            Ok(if **item == Type::Tensor { value } else { Value::List(vec![value]) })
        }
        (Type::List(item, Some(n)), value) => fit(item, value).map(|v| Value::List(vec![v; *n])),
        (Type::List(item, None), value @ (Value::Int(_) | Value::Float(_))) => {
            fit(item, value).map(|v| Value::List(vec![v]))
        }
        _ => Err(kind),
    }
}

/// The data type of a number in PyTorch's `ScalarType`, which its schemas use for defaults.
fn numbered_dtype(number: i64) -> Option<DType> {
    use DType::{BF16, Bool, C64, C128, F16, F32, F64, I8, I16, I32, I64, U8};
    let table = [
        (0, U8),
        (1, I8),
        (2, I16),
        (3, I32),
        (4, I64),
        (5, F16),
        (6, F32),
        (7, F64),
        (9, C64),
        (10, C128),
        (11, Bool),
        (15, BF16),
    ];
    table.into_iter().find(|(n, _)| *n == number).map(|(_, dtype)| dtype)
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor => f.write_str("Tensor"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Bool => f.write_str("bool"),
            Self::Scalar => f.write_str("Scalar"),
            Self::Str => f.write_str("str"),
            Self::DType => f.write_str("ScalarType"),
            Self::Device => f.write_str("Device"),
            Self::Layout => f.write_str("Layout"),
            Self::MemoryFormat => f.write_str("MemoryFormat"),
            Self::Generator => f.write_str("Generator"),
            Self::Graph => f.write_str("Graph"),
            Self::Any => f.write_str("Any"),
            Self::Optional(inner) => write!(f, "{inner}?"),
            Self::List(inner, None) => write!(f, "{inner}[]"),
            Self::List(inner, Some(n)) => write!(f, "{inner}[{n}]"),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn schema(mut self) -> Result<Schema, SchemaError> {
        let name = self.name()?;
        self.expect("(", "`(`")?;
        let mut params = Vec::new();
        let mut keyword_only = false;
        while !self.eat(")") {
            if self.eat("*") {
                keyword_only = true;
            } else {
                params.push(self.param(keyword_only)?);
            }
            if !self.eat(",") && !self.rest().starts_with(')') {
                return self.fail("`,` or `)`");
            }
        }
        self.expect("->", "`->`")?;
        let mut returns = Vec::new();
        if self.eat("(") {
            while !self.eat(")") {
                returns.push(self.returned()?);
                if !self.eat(",") && !self.rest().starts_with(')') {
                    return self.fail("`,` or `)`");
                }
            }
        } else {
            returns.push(self.returned()?);
        }
        if self.rest().is_empty() { Ok(Schema { name, params, returns }) } else { self.fail("the end") }
    }

    fn name(&mut self) -> Result<Arc<str>, SchemaError> {
        let namespace = self.word("a namespace")?.to_owned();
        self.expect("::", "`::`")?;
        let name = self.word("a name")?.to_owned();
        let overload = if self.eat(".") { self.word("an overload")? } else { "default" };
        Ok(format!("{namespace}.{name}.{overload}").into())
    }

    fn param(&mut self, keyword_only: bool) -> Result<Param, SchemaError> {
        let (ty, alias) = self.ty()?;
        let name = self.word("a parameter's name")?.into();
        let default = if self.eat("=") { Some(self.default(&ty)?) } else { None };
        Ok(Param { name, ty, alias, default, keyword_only })
    }

    fn returned(&mut self) -> Result<Return, SchemaError> {
        let (ty, alias) = self.ty()?;
        if !matches!(self.rest().chars().next(), None | Some(',' | ')')) {
            self.word("a result's name")?;
        }
        Ok(Return { ty, alias })
    }

    fn ty(&mut self) -> Result<(Type, Option<Alias>), SchemaError> {
        let mut ty = match self.word("a type")? {
            "Tensor" => Type::Tensor,
            "int" | "SymInt" => Type::Int,
            "float" => Type::Float,
            "bool" | "SymBool" => Type::Bool,
            "Scalar" => Type::Scalar,
            "str" => Type::Str,
            "ScalarType" => Type::DType,
            "Device" => Type::Device,
            "Layout" => Type::Layout,
            "MemoryFormat" => Type::MemoryFormat,
            "Generator" => Type::Generator,
            "Graph" => Type::Graph,
            "Any" | "Storage" | "Stream" | "Dimname" => Type::Any,
            _ => return self.fail("a known type"),
        };
        let mut alias = None;
        loop {
            if self.rest().starts_with('(') && !self.rest().starts_with("()") {
                self.eat("(");
                let start = self.at;
                while !matches!(self.rest().chars().next(), None | Some(')' | '!' | ' ')) {
                    self.at += 1;
                }
                let set = self.text[start..self.at].into();
                let written = self.eat("!");
                if self.eat("->") {
                    // `(a -> *)`: the set may grow; for us it is the same storage.
                    self.expect("*", "`*`")?;
                }
                self.expect(")", "`)`")?;
                alias = Some(Alias { set, written });
            } else if self.eat("[") {
                let length = if self.rest().starts_with(']') { None } else { self.word("a length")?.parse().ok() };
                self.expect("]", "`]`")?;
                ty = Type::List(Box::new(ty), length);
            } else if self.eat("?") {
                ty = Type::Optional(Box::new(ty));
            } else {
                return Ok((ty, alias));
            }
        }
    }

    fn default(&mut self, ty: &Type) -> Result<Value<()>, SchemaError> {
        if self.eat("[") {
            let item = match ty.required() {
                Type::List(item, _) => item,
                other => other,
            };
            let mut items = Vec::new();
            while !self.eat("]") {
                items.push(self.default(item)?);
                self.eat(",");
            }
            return Ok(Value::List(items));
        }
        for quote in ["'", "\""] {
            if self.eat(quote) {
                let Some(end) = self.rest().find(quote) else { return self.fail("the closing quote") };
                let text = self.rest()[..end].into();
                self.at += end + 1;
                return Ok(Value::Str(text));
            }
        }
        let rest = self.rest();
        let end = rest.find([',', ')', ']']).unwrap_or(rest.len());
        let word = rest[..end].trim();
        let value = match word {
            "None" => Value::None,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "Mean" => Value::Int(1.into()),
            "Sum" => Value::Int(2.into()),
            "long" => Value::DType(DType::I64),
            "strided" => Value::Layout("strided".into()),
            "contiguous_format" => Value::MemoryFormat(MemoryFormat::Contiguous),
            number => match (number.parse::<i64>(), number.parse::<f64>()) {
                (Ok(v), _) if *ty.required() == Type::Float => Value::Float(v as f64),
                (Ok(v), _) if *ty.required() == Type::DType => match numbered_dtype(v) {
                    Some(dtype) => Value::DType(dtype),
                    None => return self.fail("the number of a data type"),
                },
                (Ok(v), _) => Value::Int(v.into()),
                (_, Ok(v)) => Value::Float(v),
                _ => return self.fail("a default value"),
            },
        };
        self.at += end;
        let fitted = fit(ty, value.clone()).unwrap_or(value);
        Ok(fitted)
    }

    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, wanted: &'static str) -> Result<(), SchemaError> {
        if self.eat(token) { Ok(()) } else { self.fail(wanted) }
    }

    fn word(&mut self, wanted: &'static str) -> Result<&'a str, SchemaError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 {
            return self.fail(wanted);
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn fail<T>(&self, wanted: &'static str) -> Result<T, SchemaError> {
        Err(SchemaError { schema: self.text.to_owned(), at: self.at, wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Schema {
        Schema::parse(text).unwrap()
    }

    #[test]
    fn a_signature_is_read_with_aliases_defaults_and_keywords() {
        let s = schema("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
        assert_eq!(&*s.name, "aten.add_.Tensor");
        assert!(s.is_mutable() && s.params[2].keyword_only);
        assert_eq!(s.params[2].default, Some(Value::Int(1.into())));
        assert!(s.returns[0].alias.as_ref().unwrap().written);
        let s = schema("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]");
        assert_eq!(s.returns[0].ty, Type::List(Box::new(Type::Tensor), None));
        assert!(!s.is_mutable());
    }

    #[test]
    fn list_defaults_take_the_length_of_the_type() {
        let s = schema(
            "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        );
        assert_eq!(s.params[3].default, Some(vec![0i64, 0].into()));
        let lists = schema("aten::x(int[1] padding=[0], SymInt[2] stride=[1, 2]) -> Tensor");
        assert_eq!(lists.params[0].default, Some(vec![0i64].into()));
        assert_eq!(lists.params[1].default, Some(vec![1i64, 2].into()));
        let bound = s.bind(&[Value::Tensor(7), Value::Int(3.into())], &[]).unwrap();
        assert_eq!(bound[1], vec![3i64, 3].into());
        assert_eq!(bound[2], Value::List(vec![]));
    }

    #[test]
    fn a_data_type_by_its_number_is_that_data_type() {
        let s = schema("aten::randperm(SymInt n, *, ScalarType? dtype=4) -> Tensor");
        assert_eq!(s.params[1].default, Some(Value::DType(DType::I64)));
        assert!(Schema::parse("aten::x(*, ScalarType? dtype=77) -> Tensor").is_err());
    }

    #[test]
    fn calls_that_do_not_fit_say_why() {
        let s = schema("aten::gelu(Tensor self, *, str approximate='none') -> Tensor");
        let tensor = Value::Tensor(0);
        assert!(matches!(s.bind::<i32>(&[], &[]), Err(BindError::Missing { .. })));
        assert!(matches!(s.bind(&[tensor.clone(), tensor.clone()], &[]), Err(BindError::TooMany { .. })));
        assert!(matches!(
            s.bind(std::slice::from_ref(&tensor), &[("x".into(), Value::None)]),
            Err(BindError::Unknown { .. })
        ));
        assert!(matches!(
            s.bind(std::slice::from_ref(&tensor), &[("self".into(), Value::None)]),
            Err(BindError::Twice { .. })
        ));
        let wrong = s.bind(&[tensor], &[("approximate".into(), Value::Int(1.into()))]).unwrap_err();
        assert_eq!(wrong.to_string(), "aten.gelu.default's argument `approximate` wants str, not an int");
    }

    #[test]
    fn bad_signatures_are_refused_with_the_place() {
        for text in
            ["aten::x", "aten::x(Foo a) -> Tensor", "x(Tensor a) -> Tensor", "aten::x(Tensor a) -> Tensor junk junk"]
        {
            assert!(Schema::parse(text).is_err(), "{text}");
        }
    }
}
