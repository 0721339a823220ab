//! What decompositions say of terms beyond arithmetic: shapes, reductions, types.

use pyrite_ir::{Args, Handle, SymDims, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Scalar};

use super::{Operand, Sheet, Term};

impl Sheet<'_> {
    /// An argument in the type to compute in: half precision as `f32`, everything else as it is.
    pub fn wide(&self, a: &Args<'_, Handle>, index: usize) -> Term<'_> {
        self.term(a.value(index).clone()).wide()
    }

    /// An argument in the type to compute in, if it was given.
    pub fn optional(&self, a: &Args<'_, Handle>, index: usize) -> Option<Term<'_>> {
        Some(self.wide(a, index)).filter(|term| !term.is_none())
    }

    /// A tensor of one number.
    pub fn full(&self, shape: &[SymInt], number: impl Into<Value<Handle>>, dtype: DType) -> Term<'_> {
        self.call("aten.full.default", &[shape.into(), number.into(), dtype.into()])
    }

    /// The numbers from zero up to `end`.
    pub fn iota(&self, end: impl Into<Value<Handle>>) -> Term<'_> {
        self.call("aten.arange.start_step", &[0i64.into(), end.into(), 1i64.into(), DType::I64.into()])
    }

    /// Terms one after the other along a dimension.
    pub fn cat(&self, terms: &[Term<'_>], dim: i64) -> Term<'_> {
        let list = Value::List(terms.iter().map(|term| term.value()).collect());
        self.call("aten.cat.default", &[list, dim.into()])
    }
}

/// The number of elements in some dimensions.
pub(super) fn count(shape: &[SymInt], dims: &[usize]) -> SymInt {
    dims.iter().filter_map(|d| shape.get(*d)).fold(SymInt::Int(1), |n, d| n * d)
}

fn listed(dims: &[usize]) -> Value<Handle> {
    Value::List(dims.iter().map(|d| Value::from(*d)).collect())
}

impl Term<'_> {
    /// In the type to compute in.
    #[must_use]
    pub fn wide(self) -> Self {
        match self.dtype() {
            Some(dtype) => self.to(dtype.to_compute()),
            None => self,
        }
    }

    /// In another type.
    #[must_use]
    pub fn to(self, dtype: DType) -> Self {
        match self.dtype() {
            Some(own) if own != dtype => self.of("aten._to_copy.default", &[dtype.into()]),
            _ => self,
        }
    }

    /// Its sizes; none for a number.
    #[must_use]
    pub fn shape(self) -> SymDims {
        self.meta().map(|meta| meta.shape).unwrap_or_default()
    }

    /// Its number of dimensions.
    #[must_use]
    pub fn rank(self) -> usize {
        self.shape().len()
    }

    /// The number of its elements.
    #[must_use]
    pub fn numel(self) -> SymInt {
        self.shape().iter().fold(SymInt::Int(1), |n, d| n * d)
    }

    fn reduced(self, op: &str, dims: &[usize], keep: bool) -> Self {
        if dims.is_empty() {
            return self;
        }
        self.of(op, &[listed(dims), keep.into()])
    }

    /// The sum over dimensions, which stay with size one.
    #[must_use]
    pub fn sum(self, dims: &[usize]) -> Self {
        self.reduced("aten.sum.dim_IntList", dims, true)
    }

    /// The sum over dimensions, which are dropped.
    #[must_use]
    pub fn sum_out(self, dims: &[usize]) -> Self {
        self.reduced("aten.sum.dim_IntList", dims, false)
    }

    /// The sum of all elements.
    #[must_use]
    pub fn total(self) -> Self {
        self.of("aten.sum.dim_IntList", &[Value::List(Vec::new())])
    }

    /// The mean over dimensions, which stay with size one.
    #[must_use]
    pub fn mean(self, dims: &[usize]) -> Self {
        self.reduced("aten.mean.dim", dims, true)
    }

    /// The largest element over dimensions, which stay with size one.
    #[must_use]
    pub fn amax(self, dims: &[usize]) -> Self {
        self.reduced("aten.amax.default", dims, true)
    }

    /// The smallest element over dimensions, which stay with size one.
    #[must_use]
    pub fn amin(self, dims: &[usize]) -> Self {
        self.reduced("aten.amin.default", dims, true)
    }

    /// The same elements in another shape.
    #[must_use]
    pub fn reshape(self, shape: &[SymInt]) -> Self {
        self.of("aten.reshape.default", &[shape.into()])
    }

    /// Repeated along dimensions of size one.
    #[must_use]
    pub fn expand(self, shape: &[SymInt]) -> Self {
        self.of("aten.expand.default", &[shape.into()])
    }

    /// With its dimensions in another order.
    #[must_use]
    pub fn permute(self, order: &[usize]) -> Self {
        self.of("aten.permute.default", &[listed(order)])
    }

    /// With a dimension of size one more.
    #[must_use]
    pub fn unsqueeze(self, dim: usize) -> Self {
        self.of("aten.unsqueeze.default", &[dim.into()])
    }

    /// Without a dimension of size one.
    #[must_use]
    pub fn squeeze(self, dim: usize) -> Self {
        self.of("aten.squeeze.dim", &[dim.into()])
    }

    /// A part of a dimension.
    #[must_use]
    pub fn slice(self, dim: usize, start: impl Into<Value<Handle>>, end: impl Into<Value<Handle>>) -> Self {
        self.of("aten.slice.Tensor", &[dim.into(), start.into(), end.into()])
    }

    /// The slices along a dimension that a vector names.
    #[must_use]
    pub fn pick(self, dim: usize, index: Self) -> Self {
        self.of("aten.index_select.default", &[dim.into(), index.value()])
    }

    /// The halves of a dimension.
    #[must_use]
    pub fn halves(self, dim: usize) -> [Self; 2] {
        let whole = self.shape()[dim].clone();
        let half = whole.floor_div(&SymInt::Int(2));
        [self.slice(dim, 0i64, half.clone()), self.slice(dim, half, whole)]
    }

    /// Kept between bounds.
    #[must_use]
    pub fn clamp(self, low: impl Into<Value<Handle>>, high: impl Into<Value<Handle>>) -> Self {
        self.of("aten.clamp.default", &[low.into(), high.into()])
    }

    /// At least a bound.
    #[must_use]
    pub fn at_least(self, bound: impl Into<Value<Handle>>) -> Self {
        self.clamp(bound, Value::None)
    }

    /// At most a bound.
    #[must_use]
    pub fn at_most(self, bound: impl Into<Value<Handle>>) -> Self {
        self.clamp(Value::None, bound)
    }

    /// A vector in the place of one dimension of a tensor of some rank.
    #[must_use]
    pub fn along(self, dim: usize, rank: usize) -> Self {
        let size = self.numel();
        let shape: SymDims = (0..rank).map(|d| if d == dim { size.clone() } else { SymInt::Int(1) }).collect();
        self.reshape(&shape)
    }

    /// A number as elements of this term's type have it: integers for integers.
    #[must_use]
    pub fn as_element(self, number: Scalar) -> Value<Handle> {
        match self.dtype() {
            Some(DType::Bool) => Value::from(i64::from(number.to_bool())),
            Some(dtype) if dtype.is_integral() => Value::from(number.to_i64()),
            _ => number.into(),
        }
    }
}
