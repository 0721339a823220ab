//! What a derivative rule gets and gives.
//!
//! A rule receives a call that was made, the gradients of its results, and says the gradients of its arguments. It does
//! not care about broadcasting, types or accumulation: whoever asked sums a gradient down to its argument's shape,
//! takes the real part where the argument is real, casts it to the argument's type, and adds up several uses. The
//! gradient of a complex value is the one along which the real loss grows fastest, as PyTorch defines it: the factors
//! of a product's gradient are conjugated.

use crate::{Args, Handle, OpError, Value};

/// The gradients of a call's arguments: the position of a parameter and the gradient of its tensor, or a list of
/// gradients (some of them `None`) where the parameter is a list. A parameter that is not named has none.
pub type Gradients = Vec<(usize, Value<Handle>)>;

/// A call to be differentiated.
#[derive(Clone, Copy, Debug)]
pub struct Pullback<'a> {
    /// The arguments of the call.
    pub args: Args<'a, Handle>,
    /// Its results, one or a list.
    pub out: &'a Value<Handle>,
    /// The gradient of each result, `None` where nothing depends on it.
    pub grads: &'a [Option<Handle>],
    /// Whether the gradient of a parameter is wanted, for each parameter.
    pub wanted: &'a [bool],
}

impl Pullback<'_> {
    /// The gradient of the single result.
    pub fn grad(&self) -> Result<Handle, OpError> {
        self.grad_of(0).ok_or_else(|| {
            OpError::fault(format!("{} is differentiated without a gradient of its result", self.args.schema.name))
        })
    }

    /// The gradient of a result, `None` where nothing depends on it.
    pub fn grad_of(&self, index: usize) -> Option<Handle> {
        self.grads.get(index).copied().flatten()
    }

    /// A result.
    pub fn result(&self, index: usize) -> Result<Handle, OpError> {
        let found = match self.out {
            Value::List(items) => items.get(index).and_then(Value::as_tensor),
            one => one.as_tensor().filter(|_| index == 0),
        };
        found.copied().ok_or_else(|| OpError::fault(format!("{} has no result {index}", self.args.schema.name)))
    }

    /// An argument as it was given.
    pub fn value(&self, index: usize) -> Value<Handle> {
        self.args.value(index).clone()
    }

    /// An argument that is a tensor.
    pub fn tensor(&self, index: usize) -> Result<Handle, OpError> {
        self.args.tensor(index).copied()
    }

    /// Whether the gradient of a parameter is wanted.
    pub fn wants(&self, index: usize) -> bool {
        self.wanted.get(index).copied().unwrap_or(false)
    }

    /// Fails when the gradient of a parameter is wanted that the rule does not have.
    pub fn refuse(&self, index: usize) -> Result<(), OpError> {
        if self.wants(index) {
            let name = self.args.schema.params.get(index).map_or("?", |p| &*p.name);
            return Err(OpError::unsupported(format!(
                "the derivative of {} with respect to `{name}`",
                self.args.schema.name
            )));
        }
        Ok(())
    }
}
