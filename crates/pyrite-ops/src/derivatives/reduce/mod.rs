//! Derivatives of reductions: the gradient of a result goes back to all the elements it was made of.

mod extreme;
mod moments;
mod norms;
mod sums;

pub use extreme::*;
pub use moments::*;
pub use norms::*;
pub use sums::*;

use pyrite_ir::{Emit, Handle, OpError, Pullback, SymDims, Value};
use pyrite_sym::SymInt;

use super::{Calculus, Keep};
use crate::rules::{wrap_dim, wrap_dims};

/// What a call reduces.
pub(super) struct Reduction {
    pub input: Handle,
    pub shape: SymDims,
    /// The dimensions, in ascending order.
    pub dims: Vec<usize>,
    keep: Keep,
}

impl Reduction {
    /// Of all dimensions.
    pub fn whole(e: &dyn Emit, p: &Pullback<'_>) -> Result<Self, OpError> {
        let input = p.tensor(0)?;
        let shape = e.shape(input);
        Ok(Self { input, dims: (0..shape.len()).collect(), shape, keep: Keep::Nothing })
    }

    /// Of the dimensions that a parameter lists, of all of them when it lists none.
    pub fn over(e: &dyn Emit, p: &Pullback<'_>, dim: usize, keep: usize) -> Result<Self, OpError> {
        let mut all = Self::whole(e, p)?;
        let rank = all.shape.len();
        let mut dims = match p.args.value(dim) {
            Value::None => Vec::new(),
            Value::List(_) => wrap_dims(&p.args.ints(dim)?, rank)?,
            _ => vec![wrap_dim(p.args.int(dim)?, rank)?],
        };
        dims.retain(|d| *d < rank);
        dims.sort_unstable();
        if !dims.is_empty() {
            all.dims = dims;
        }
        if p.args.bool(keep)? {
            all.keep = Keep::Dims;
        }
        Ok(all)
    }

    /// A result with the reduced dimensions as dimensions of size one.
    pub fn kept(&self, e: &mut dyn Emit, result: Handle) -> Result<Handle, OpError> {
        // A number broadcasts as it is; one of a vector needs a place to be scattered to.
        if self.keep == Keep::Dims || (e.rank(result) == 0 && self.shape.len() > 1) {
            return Ok(result);
        }
        self.dims.iter().try_fold(result, |result, dim| e.unsqueeze(result, *dim as i64))
    }

    /// A gradient of the result, repeated over what was reduced.
    pub fn spread(&self, e: &mut dyn Emit, grad: Handle) -> Result<Handle, OpError> {
        let kept = self.kept(e, grad)?;
        e.expand(kept, &self.shape)
    }

    /// How many elements make one.
    pub fn count(&self) -> SymInt {
        self.dims.iter().fold(SymInt::Int(1), |n, d| n * &self.shape[*d])
    }

    /// The sum over what was reduced, whose dimensions stay.
    pub fn sum(&self, e: &mut dyn Emit, a: Handle) -> Result<Handle, OpError> {
        e.sum(a, &self.listed(), Keep::Dims)
    }

    /// The dimensions as an argument.
    pub fn listed(&self) -> Vec<i64> {
        self.dims.iter().map(|d| *d as i64).collect()
    }
}
