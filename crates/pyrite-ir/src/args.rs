//! A call's arguments in the order of its schema, with typed access.

use pyrite_sym::SymInt;
use pyrite_tensor::{DType, MemoryFormat, Scalar, Tensor};

use crate::{Device, Handle, Meta, OpError, Schema, Type, Value};

/// What can stand for a Python number where a tensor is wanted.
pub trait FromNumber: Sized {
    /// The stand-in.
    fn from_number(value: Scalar) -> Self;
}

impl FromNumber for Meta {
    fn from_number(value: Scalar) -> Self {
        Self::number(value)
    }
}

impl FromNumber for Tensor {
    fn from_number(value: Scalar) -> Self {
        Self::number(value)
    }
}

/// Arguments bound to a schema: one value per parameter. Positions are those of the schema.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a, T> {
    /// The schema.
    pub schema: &'a Schema,
    /// A value per parameter.
    pub values: &'a [Value<T>],
}

impl<'a, T> Args<'a, T> {
    /// The raw value.
    pub fn value(&self, index: usize) -> &'a Value<T> {
        &self.values[index]
    }

    fn wrong<R>(&self, index: usize, wanted: &str) -> Result<R, OpError> {
        let name = self.schema.params.get(index).map_or("?", |p| &*p.name);
        Err(OpError::Invalid(format!(
            "{}'s argument `{name}` is {}, expected {wanted}",
            self.schema.name,
            self.values.get(index).map_or("missing", Value::kind)
        )))
    }

    /// A tensor.
    pub fn tensor(&self, index: usize) -> Result<&'a T, OpError> {
        match self.values.get(index) {
            Some(Value::Tensor(t)) => Ok(t),
            _ => self.wrong(index, "a tensor"),
        }
    }

    /// A tensor or None.
    pub fn opt_tensor(&self, index: usize) -> Result<Option<&'a T>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            _ => self.tensor(index).map(Some),
        }
    }

    /// A list of tensors.
    pub fn tensors(&self, index: usize) -> Result<Vec<&'a T>, OpError> {
        self.opt_tensors(index)?.into_iter().map(|t| t.map_or_else(|| self.wrong(index, "tensors"), Ok)).collect()
    }

    /// A list of tensors, some of which may be None.
    pub fn opt_tensors(&self, index: usize) -> Result<Vec<Option<&'a T>>, OpError> {
        let Some(Value::List(items)) = self.values.get(index) else { return self.wrong(index, "a list of tensors") };
        items
            .iter()
            .map(|item| match item {
                Value::None => Ok(None),
                Value::Tensor(t) => Ok(Some(t)),
                _ => self.wrong(index, "a list of tensors"),
            })
            .collect()
    }

    /// An integer, maybe symbolic.
    pub fn sym(&self, index: usize) -> Result<SymInt, OpError> {
        match self.values.get(index) {
            Some(Value::Int(v)) => Ok(v.clone()),
            Some(Value::Bool(v)) => Ok(SymInt::Int(i64::from(*v))),
            _ => self.wrong(index, "an int"),
        }
    }

    /// An integer or None.
    pub fn opt_sym(&self, index: usize) -> Result<Option<SymInt>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            _ => self.sym(index).map(Some),
        }
    }

    /// An integer whose value is known. A symbolic one is taken to be its captured value, which becomes a constraint.
    pub fn int(&self, index: usize) -> Result<i64, OpError> {
        known(&self.sym(index)?).map_or_else(|| self.wrong(index, "a number that is known"), Ok)
    }

    /// A known integer or None.
    pub fn opt_int(&self, index: usize) -> Result<Option<i64>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            _ => self.int(index).map(Some),
        }
    }

    /// A list of integers, maybe symbolic.
    pub fn syms(&self, index: usize) -> Result<Vec<SymInt>, OpError> {
        let Some(Value::List(items)) = self.values.get(index) else { return self.wrong(index, "a list of ints") };
        items
            .iter()
            .map(|item| match item {
                Value::Int(v) => Ok(v.clone()),
                _ => self.wrong(index, "a list of ints"),
            })
            .collect()
    }

    /// A list of integers or None.
    pub fn opt_syms(&self, index: usize) -> Result<Option<Vec<SymInt>>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            _ => self.syms(index).map(Some),
        }
    }

    /// A list of known integers.
    pub fn ints(&self, index: usize) -> Result<Vec<i64>, OpError> {
        self.syms(index)?.iter().map(|v| known(v).map_or_else(|| self.wrong(index, "known ints"), Ok)).collect()
    }

    /// A list of known integers or None.
    pub fn opt_ints(&self, index: usize) -> Result<Option<Vec<i64>>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            _ => self.ints(index).map(Some),
        }
    }

    /// A list of real numbers or None.
    pub fn opt_floats(&self, index: usize) -> Result<Option<Vec<f64>>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            Some(Value::List(items)) => items
                .iter()
                .map(|v| v.as_scalar().map_or_else(|| self.wrong(index, "a list of floats"), |s| Ok(s.to_f64())))
                .collect::<Result<_, _>>()
                .map(Some),
            _ => self.wrong(index, "a list of floats"),
        }
    }

    /// A number of any kind.
    pub fn scalar(&self, index: usize) -> Result<Scalar, OpError> {
        match self.values.get(index) {
            Some(Value::Int(size)) if size.as_int().is_none() => {
                let (name, param) = (&self.schema.name, &self.schema.params[index].name);
                Err(OpError::unsupported(format!("{name} with `{param}` = {size}, which is known when it runs")))
            }
            Some(value) => value.as_scalar().map_or_else(|| self.wrong(index, "a number"), Ok),
            None => self.wrong(index, "a number"),
        }
    }

    /// A number or None.
    pub fn opt_scalar(&self, index: usize) -> Result<Option<Scalar>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            _ => self.scalar(index).map(Some),
        }
    }

    /// A real number.
    pub fn float(&self, index: usize) -> Result<f64, OpError> {
        Ok(self.scalar(index)?.to_f64())
    }

    /// A real number or None.
    pub fn opt_float(&self, index: usize) -> Result<Option<f64>, OpError> {
        Ok(self.opt_scalar(index)?.map(Scalar::to_f64))
    }

    /// A bool.
    pub fn bool(&self, index: usize) -> Result<bool, OpError> {
        match self.values.get(index) {
            Some(Value::Bool(v)) => Ok(*v),
            _ => self.wrong(index, "a bool"),
        }
    }

    /// A bool or None.
    pub fn opt_bool(&self, index: usize) -> Result<Option<bool>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            _ => self.bool(index).map(Some),
        }
    }

    /// A text.
    pub fn str(&self, index: usize) -> Result<&'a str, OpError> {
        match self.values.get(index) {
            Some(Value::Str(v)) => Ok(v),
            _ => self.wrong(index, "a string"),
        }
    }

    /// A text or None.
    pub fn opt_str(&self, index: usize) -> Result<Option<&'a str>, OpError> {
        match self.values.get(index) {
            Some(Value::None) => Ok(None),
            _ => self.str(index).map(Some),
        }
    }

    /// A data type or None.
    pub fn dtype(&self, index: usize) -> Result<Option<DType>, OpError> {
        match self.values.get(index) {
            Some(Value::DType(v)) => Ok(Some(*v)),
            Some(Value::None) => Ok(None),
            _ => self.wrong(index, "a dtype"),
        }
    }

    /// A device or None.
    pub fn device(&self, index: usize) -> Result<Option<Device>, OpError> {
        match self.values.get(index) {
            Some(Value::Device(v)) => Ok(Some(v.clone())),
            Some(Value::None) => Ok(None),
            _ => self.wrong(index, "a device"),
        }
    }

    /// A memory format or None.
    pub fn memory_format(&self, index: usize) -> Result<Option<MemoryFormat>, OpError> {
        match self.values.get(index) {
            Some(Value::MemoryFormat(v)) => Ok(Some(*v)),
            Some(Value::None) => Ok(None),
            _ => self.wrong(index, "a memory format"),
        }
    }
}

/// The number that a size is, or is taken to be from now on.
fn known(size: &SymInt) -> Option<i64> {
    size.as_int().or_else(|| size.hint().filter(|value| size.is_eq(*value)))
}

/// Replaces numbers by stand-in tensors wherever the schema wants tensors.
pub fn tensors_from_numbers<T: FromNumber>(schema: &Schema, values: &mut [Value<T>]) {
    for (param, value) in schema.params.iter().zip(values) {
        replace_numbers(&param.ty, value);
    }
}

/// Arguments with a handle for every number where the schema wants a tensor, as rules expect them; `make` makes them.
pub fn with_number_handles(
    schema: &Schema,
    args: &[Value<Handle>],
    make: &mut dyn FnMut(Scalar) -> Handle,
) -> Vec<Value<Handle>> {
    let mut numbered: Vec<Value<Numbered>> = args.iter().map(|v| v.map(&mut |h| Numbered::Handle(*h))).collect();
    tensors_from_numbers(schema, &mut numbered);
    numbered
        .iter()
        .map(|v| {
            v.map(&mut |n| match n {
                Numbered::Handle(handle) => *handle,
                Numbered::Number(scalar) => make(*scalar),
            })
        })
        .collect()
}

/// A tensor, or a number where a rule wants one.
#[derive(Clone, Copy)]
enum Numbered {
    Handle(Handle),
    Number(Scalar),
}

impl FromNumber for Numbered {
    fn from_number(value: Scalar) -> Self {
        Self::Number(value)
    }
}

fn replace_numbers<T: FromNumber>(ty: &Type, value: &mut Value<T>) {
    match (ty.required(), &mut *value) {
        (Type::List(inner, _), Value::List(items)) => items.iter_mut().for_each(|item| replace_numbers(inner, item)),
        (Type::Tensor, number) => {
            let scalar = match number {
                // A symbolic number has the type of any int; its value is not needed for metadata.
                Value::Int(v) => Some(Scalar::Int(v.hint().unwrap_or(0))),
                other => other.as_scalar(),
            };
            if let Some(scalar) = scalar {
                *value = Value::Tensor(T::from_number(scalar));
            }
        }
        _ => {}
    }
}

/// A list of values from anything that converts: `args![x, 1, true]`.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        &[$($crate::Value::from($value)),*]
    };
}
