//! Building a graph call by call, with shapes and element types inferred as it grows.

use pyrite_ir::{Emit, Graph, Handle, Meta, Tracer, Value};
use pyrite_ops::registry;
use pyrite_tensor::{DType, Tensor};

use crate::Error;

/// A tensor of a graph under construction.
///
/// It belongs to the [`GraphBuilder`] that made it.
pub type TensorRef = Handle;

/// An argument of an operator: a tensor, a number, a bool, a text, a list, or nothing.
///
/// ```
/// use pyrite::{Argument, DType, GraphBuilder};
///
/// let mut builder = GraphBuilder::new();
/// let x = builder.input("x", DType::F32, &[4]);
/// let arguments: [Argument; 4] = [x.into(), 2.into(), 0.5.into(), vec![x, x].into()];
/// assert!(matches!(arguments[0], Argument::Tensor(_)));
/// ```
pub type Argument = Value<Handle>;

/// Builds a graph.
///
/// ```
/// use pyrite::{DType, GraphBuilder};
///
/// let mut builder = GraphBuilder::new();
/// let x = builder.input("x", DType::F32, &[8, 16]);
/// let weight = builder.parameter("weight", DType::F32, &[4, 16]);
/// let y = builder.call("aten.linear.default", &[x.into(), weight.into()])?;
/// assert_eq!(builder.shape(y), [8, 4]);
/// let graph = builder.finish(&[y]);
/// assert!(graph.to_string().contains("aten.linear.default"));
/// # Ok::<(), pyrite::Error>(())
/// ```
pub struct GraphBuilder {
    tracer: Tracer<'static>,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphBuilder {
    /// An empty graph over all operators that Pyrite has.
    pub fn new() -> Self {
        Self { tracer: Tracer::new(registry()) }
    }

    /// Adds a dense input.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[i64]) -> TensorRef {
        self.tracer.placeholder(name, dense(dtype, shape))
    }

    /// Adds a dense input that wants a gradient; see [`Program::gradients`](crate::Program::gradients).
    pub fn parameter(&mut self, name: &str, dtype: DType, shape: &[i64]) -> TensorRef {
        self.tracer.placeholder(name, Meta { requires_grad: true, ..dense(dtype, shape) })
    }

    /// Adds a tensor that is part of the program.
    ///
    /// ```
    /// use pyrite::{GraphBuilder, Tensor};
    ///
    /// let mut builder = GraphBuilder::new();
    /// let table = builder.constant("table", &Tensor::from_slice(&[1.0_f32, 2.0], &[2]));
    /// assert_eq!(builder.shape(table), [2]);
    /// ```
    pub fn constant(&mut self, name: &str, tensor: &Tensor) -> TensorRef {
        self.tracer.constant(name, tensor)
    }

    /// Calls an operator that returns one tensor, by its full name.
    ///
    /// Arguments stand in the order of the schema; the last ones may be left out where they have defaults.
    ///
    /// ```
    /// use pyrite::{DType, Error, GraphBuilder};
    ///
    /// let mut builder = GraphBuilder::new();
    /// let x = builder.input("x", DType::F32, &[4]);
    /// let unknown = builder.call("aten.rleu.default", &[x.into()]);
    /// assert!(matches!(unknown, Err(Error::UnknownOperator { .. })));
    /// ```
    pub fn call(&mut self, op: &str, arguments: &[Argument]) -> Result<TensorRef, Error> {
        match self.emit(op, arguments)? {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(refused(op, format!("it returns {}, not one tensor; use `call_many`", other.kind()))),
        }
    }

    /// Calls an operator that returns several tensors.
    ///
    /// ```
    /// use pyrite::{DType, GraphBuilder};
    ///
    /// let mut builder = GraphBuilder::new();
    /// let x = builder.input("x", DType::F32, &[4, 6]);
    /// let halves = builder.call_many("aten.split.Tensor", &[x.into(), 3.into(), 1.into()])?;
    /// assert_eq!(halves.len(), 2);
    /// # Ok::<(), pyrite::Error>(())
    /// ```
    pub fn call_many(&mut self, op: &str, arguments: &[Argument]) -> Result<Vec<TensorRef>, Error> {
        let result = self.emit(op, arguments)?;
        let Value::List(items) = &result else {
            return Err(refused(op, format!("it returns {}, not several tensors; use `call`", result.kind())));
        };
        let tensors: Option<Vec<TensorRef>> = items.iter().map(|item| item.as_tensor().copied()).collect();
        tensors.ok_or_else(|| refused(op, "it returns values that are not tensors".to_owned()))
    }

    /// The sizes of a tensor; a symbolic size counts as -1.
    pub fn shape(&self, tensor: TensorRef) -> Vec<i64> {
        self.tracer.meta(tensor).shape.iter().map(|size| size.as_int().unwrap_or(-1)).collect()
    }

    /// The element type of a tensor.
    pub fn dtype(&self, tensor: TensorRef) -> DType {
        self.tracer.meta(tensor).dtype
    }

    /// The graph, which returns these tensors.
    pub fn finish(self, outputs: &[TensorRef]) -> Graph {
        let outputs = self.tracer.lower(&Value::List(outputs.iter().map(|tensor| Value::Tensor(*tensor)).collect()));
        self.tracer.finish(outputs)
    }

    fn emit(&mut self, op: &str, arguments: &[Argument]) -> Result<Value<Handle>, Error> {
        let operator = registry().get(op).ok_or_else(|| Error::UnknownOperator { name: op.to_owned() })?;
        let bound = operator.schema.bind_in_order(arguments).map_err(|cause| refused(op, cause.to_string()))?;
        Ok(self.tracer.call_op(operator, &bound)?)
    }
}

fn refused(op: &str, cause: String) -> Error {
    let schema = registry().get(op).map(|operator| operator.def.schema.to_owned()).unwrap_or_default();
    Error::Arguments { op: op.to_owned(), cause, schema }
}

fn dense(dtype: DType, shape: &[i64]) -> Meta {
    let shape: Vec<_> = shape.iter().map(|size| (*size).into()).collect();
    Meta::contiguous(&shape, dtype)
}
