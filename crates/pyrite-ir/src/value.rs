//! What an operator takes and returns, generic over what stands for a tensor.
//!
//! The same enum serves three times: `Value<NodeId>` is an argument in a graph, `Value<Meta>` describes a value that
//! is not computed yet, `Value<Tensor>` is a computed one.

use std::sync::Arc;

use pyrite_sym::SymInt;
use pyrite_tensor::{Complex64, DType, MemoryFormat, Scalar, Tensor};

use crate::Device;

/// An argument or a result; see the module's text. Floats are equal when their bits are: NaN equals itself, and the
/// two zeros differ.
#[derive(Clone, Debug)]
pub enum Value<T> {
    /// Nothing.
    None,
    /// A tensor, or in a graph the value of a node, whatever it is.
    Tensor(T),
    /// A bool.
    Bool(bool),
    /// An integer, maybe symbolic.
    Int(SymInt),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
    /// A text.
    Str(Arc<str>),
    /// A data type.
    DType(DType),
    /// A device.
    Device(Device),
    /// A storage layout by its name in `torch`, such as `strided`.
    Layout(Arc<str>),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A list or tuple.
    List(Vec<Value<T>>),
    /// A slice `start:stop:step`, each part a value.
    Slice(Box<[Value<T>; 3]>),
    /// A nested graph by its name in the graph that owns it.
    Graph(Arc<str>),
}

impl<T: PartialEq> PartialEq for Value<T> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Tensor(a), Self::Tensor(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Complex(a), Self::Complex(b)) => {
                (a.re.to_bits(), a.im.to_bits()) == (b.re.to_bits(), b.im.to_bits())
            }
            (Self::Str(a), Self::Str(b)) | (Self::Layout(a), Self::Layout(b)) | (Self::Graph(a), Self::Graph(b)) => {
                a == b
            }
            (Self::DType(a), Self::DType(b)) => a == b,
            (Self::Device(a), Self::Device(b)) => a == b,
            (Self::MemoryFormat(a), Self::MemoryFormat(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Slice(a), Self::Slice(b)) => a == b,
            _ => false,
        }
    }
}

impl<T> Value<T> {
    /// The same value with every tensor replaced.
    pub fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> Value<U> {
        let mapped: Result<Value<U>, std::convert::Infallible> = self.try_map(&mut |t| Ok(Value::Tensor(f(t))));
        match mapped {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// The same value with every tensor replaced by a value; stops at the first error.
    pub fn try_map<U, E>(&self, f: &mut dyn FnMut(&T) -> Result<Value<U>, E>) -> Result<Value<U>, E> {
        Ok(match self {
            Self::None => Value::None,
            Self::Tensor(t) => f(t)?,
            Self::Bool(v) => Value::Bool(*v),
            Self::Int(v) => Value::Int(v.clone()),
            Self::Float(v) => Value::Float(*v),
            Self::Complex(v) => Value::Complex(*v),
            Self::Str(v) => Value::Str(v.clone()),
            Self::DType(v) => Value::DType(*v),
            Self::Device(v) => Value::Device(v.clone()),
            Self::Layout(v) => Value::Layout(v.clone()),
            Self::MemoryFormat(v) => Value::MemoryFormat(*v),
            Self::List(items) => Value::List(items.iter().map(|v| v.try_map(f)).collect::<Result<_, _>>()?),
            Self::Slice(parts) => {
                Value::Slice(Box::new([parts[0].try_map(f)?, parts[1].try_map(f)?, parts[2].try_map(f)?]))
            }
            Self::Graph(name) => Value::Graph(name.clone()),
        })
    }

    /// Calls `f` with every tensor in it, in order.
    pub fn each(&self, f: &mut dyn FnMut(&T)) {
        match self {
            Self::Tensor(t) => f(t),
            Self::List(items) => items.iter().for_each(|v| v.each(f)),
            Self::Slice(parts) => parts.iter().for_each(|v| v.each(f)),
            _ => {}
        }
    }

    /// Calls `f` with the name of every nested graph in it.
    pub fn each_graph(&self, f: &mut dyn FnMut(&Arc<str>)) {
        match self {
            Self::Graph(name) => f(name),
            Self::List(items) => items.iter().for_each(|v| v.each_graph(f)),
            _ => {}
        }
    }

    /// The number, if it is one whose value is known.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Self::Bool(v) => Some(Scalar::Bool(*v)),
            Self::Int(v) => v.as_int().map(Scalar::Int),
            Self::Float(v) => Some(Scalar::Float(*v)),
            Self::Complex(v) => Some(Scalar::Complex(*v)),
            _ => None,
        }
    }

    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&T> {
        match self {
            Self::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Tensor(_) => "a tensor",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Complex(_) => "a complex number",
            Self::Str(_) => "a string",
            Self::DType(_) => "a dtype",
            Self::Device(_) => "a device",
            Self::Layout(_) => "a layout",
            Self::MemoryFormat(_) => "a memory format",
            Self::List(_) => "a list",
            Self::Slice(_) => "a slice",
            Self::Graph(_) => "a nested graph",
        }
    }
}

macro_rules! from {
    ($($type:ty => |$v:ident| $make:expr;)*) => {
        $(impl<T> From<$type> for Value<T> {
            fn from($v: $type) -> Self {
                $make
            }
        })*
    };
}

from! {
    bool => |v| Value::Bool(v);
    i64 => |v| Value::Int(v.into());
    i32 => |v| Value::Int(v.into());
    usize => |v| Value::Int(v.into());
    SymInt => |v| Value::Int(v);
    &SymInt => |v| Value::Int(v.clone());
    f64 => |v| Value::Float(v);
    Complex64 => |v| Value::Complex(v);
    &str => |v| Value::Str(v.into());
    DType => |v| Value::DType(v);
    Device => |v| Value::Device(v);
    MemoryFormat => |v| Value::MemoryFormat(v);
    Scalar => |v| match v {
        Scalar::Bool(v) => Value::Bool(v),
        Scalar::Int(v) => Value::Int(v.into()),
        Scalar::Float(v) => Value::Float(v),
        Scalar::Complex(v) => Value::Complex(v),
    };
    &[i64] => |v| Value::List(v.iter().map(|d| Value::Int((*d).into())).collect());
    Vec<i64> => |v| Value::from(v.as_slice());
    &[SymInt] => |v| Value::List(v.iter().map(Value::from).collect());
    Vec<SymInt> => |v| Value::from(v.as_slice());
}

macro_rules! from_tensor {
    ($($type:ty),*) => {
        $(
            impl From<$type> for Value<$type> {
                fn from(tensor: $type) -> Self {
                    Self::Tensor(tensor)
                }
            }
            impl From<Vec<$type>> for Value<$type> {
                fn from(tensors: Vec<$type>) -> Self {
                    Self::List(tensors.into_iter().map(Self::Tensor).collect())
                }
            }
        )*
    };
}

from_tensor!(Tensor, crate::Meta, crate::Handle, crate::NodeId);

impl<T, U: Into<Value<T>>> From<Option<U>> for Value<T> {
    fn from(value: Option<U>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_a_number_equals_itself_and_zeros_differ() {
        let float = Value::<()>::Float;
        assert_eq!(float(f64::NAN), float(f64::NAN));
        assert_ne!(float(0.0), float(-0.0));
        assert_ne!(float(1.0), Value::Int(1.into()));
    }
}
