//! Writing down a computation without saying how it runs.
//!
//! A decomposition or a derivative is a function that calls operators through [`Emit`]. The same function then serves
//! to compute (an emitter that runs each call), to infer metadata (one that infers each call), and to rewrite a graph
//! (one that appends a node per call). Rules may look at metadata, never at data.

use crate::{Meta, OpError, SymDims, Value};

/// A tensor of an emitter, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u32);

/// Who carries out the calls of a rule.
pub trait Emit {
    /// Calls an operator by its full name (`aten.add.Tensor`); arguments in the order of the schema, keyword-only ones
    /// included, the last ones left out where they have defaults.
    fn call(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Value<Handle>, OpError>;

    /// What is known of a tensor.
    fn meta(&self, handle: Handle) -> &Meta;
}

impl dyn Emit + '_ {
    /// Calls an operator that returns one tensor.
    pub fn one(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Handle, OpError> {
        match self.call(op, args)? {
            Value::Tensor(handle) => Ok(handle),
            other => Err(OpError::fault(format!("{op} returned {}, a rule wanted one tensor", other.kind()))),
        }
    }

    /// Calls an operator that returns several tensors.
    pub fn many(&mut self, op: &str, args: &[Value<Handle>]) -> Result<Vec<Handle>, OpError> {
        let Value::List(items) = self.call(op, args)? else {
            return Err(OpError::fault(format!("{op} returned no list where a rule wanted one")));
        };
        items
            .iter()
            .map(|item| {
                item.as_tensor()
                    .copied()
                    .ok_or_else(|| OpError::fault(format!("{op} returned {} in a list", item.kind())))
            })
            .collect()
    }

    /// The sizes of a tensor.
    pub fn shape(&self, handle: Handle) -> SymDims {
        self.meta(handle).shape.clone()
    }

    /// The number of dimensions of a tensor.
    pub fn rank(&self, handle: Handle) -> usize {
        self.meta(handle).rank()
    }

    /// The element type of a tensor.
    pub fn dtype(&self, handle: Handle) -> pyrite_tensor::DType {
        self.meta(handle).dtype
    }
}
