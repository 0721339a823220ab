//! Derivatives of reductions: the gradient of a result goes back to all the elements it was made of.
//!
//! Extremes of whole tensors and `amax` share it evenly among equal elements; extremes that come with an index give it
//! to the element at the index.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, SymDims, Value, args};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::{Calculus, Keep};
use crate::rules::{wrap_dim, wrap_dims};

type Rule = Result<Gradients, OpError>;

/// What a call reduces.
struct Reduction {
    input: Handle,
    shape: SymDims,
    /// The dimensions, in ascending order.
    dims: Vec<usize>,
    keep: Keep,
}

impl Reduction {
    /// Of all dimensions.
    fn whole(e: &dyn Emit, p: &Pullback<'_>) -> Result<Self, OpError> {
        let input = p.tensor(0)?;
        let shape = e.shape(input);
        Ok(Self { input, dims: (0..shape.len()).collect(), shape, keep: Keep::Nothing })
    }

    /// Of the dimensions that a parameter lists, of all of them when it lists none.
    fn over(e: &dyn Emit, p: &Pullback<'_>, dim: usize, keep: usize) -> Result<Self, OpError> {
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
    fn kept(&self, e: &mut dyn Emit, result: Handle) -> Result<Handle, OpError> {
        // A number broadcasts as it is; one of a vector needs a place to be scattered to.
        if self.keep == Keep::Dims || (e.rank(result) == 0 && self.shape.len() > 1) {
            return Ok(result);
        }
        self.dims.iter().try_fold(result, |result, dim| e.unsqueeze(result, *dim as i64))
    }

    /// A gradient of the result, repeated over what was reduced.
    fn spread(&self, e: &mut dyn Emit, grad: Handle) -> Result<Handle, OpError> {
        let kept = self.kept(e, grad)?;
        e.expand(kept, &self.shape)
    }

    /// How many elements make one.
    fn count(&self) -> SymInt {
        self.dims.iter().fold(SymInt::Int(1), |n, d| n * &self.shape[*d])
    }

    fn sum(&self, e: &mut dyn Emit, a: Handle) -> Result<Handle, OpError> {
        e.sum(a, &self.listed(), Keep::Dims)
    }

    fn listed(&self) -> Vec<i64> {
        self.dims.iter().map(|d| *d as i64).collect()
    }
}

/// The gradient of the first argument alone.
fn first(grad: Handle) -> Rule {
    Ok(vec![(0, grad.into())])
}

/// `sum` of all elements.
pub fn sum(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(Reduction::whole(e, p)?.spread(e, p.grad()?)?)
}

/// `sum` over dimensions.
pub fn sum_dim(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(Reduction::over(e, p, 1, 2)?.spread(e, p.grad()?)?)
}

/// `nansum`: what is no number was not summed.
pub fn nansum(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let spread = Reduction::over(e, p, 1, 2)?.spread(e, p.grad()?)?;
    let missing = e.unary("isnan", p.tensor(0)?)?;
    let present = e.unary("logical_not", missing)?;
    first(e.mul(spread, present)?)
}

/// `mean` of all elements.
pub fn mean(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::whole(e, p)?;
    first(share(e, &over, p.grad()?)?)
}

/// `mean` over dimensions.
pub fn mean_dim(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 2)?;
    first(share(e, &over, p.grad()?)?)
}

fn share(e: &mut dyn Emit, over: &Reduction, grad: Handle) -> Result<Handle, OpError> {
    let spread = over.spread(e, grad)?;
    e.div(spread, over.count())
}

/// `trace`.
pub fn trace(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let shape = e.shape(p.tensor(0)?);
    let diagonal = e.expand(p.grad()?, &[shape[0].min(&shape[1])])?;
    first(e.one("aten.diagonal_backward.default", args![diagonal, &*shape, 0, 0, 1])?)
}

/// `prod` of all elements.
pub fn prod(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::whole(e, p)?;
    if over.dims.is_empty() {
        return first(p.grad()?);
    }
    let flat = e.reshape(over.input, &[over.count()])?;
    let others = products_of_others(e, flat, 0)?;
    let grad = e.mul(p.grad()?, others)?;
    first(e.reshape(grad, &over.shape)?)
}

/// `prod` over a dimension.
pub fn prod_dim(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 2)?;
    if over.shape.is_empty() {
        return first(p.grad()?);
    }
    let others = products_of_others(e, over.input, over.dims[0])?;
    let grad = over.kept(e, p.grad()?)?;
    first(e.mul(grad, others)?)
}

/// For each element the product of all others along a dimension, conjugated. Products of those before and those after
/// it: a division by the element would fail where it is zero.
fn products_of_others(e: &mut dyn Emit, x: Handle, dim: usize) -> Result<Handle, OpError> {
    let (shape, dtype) = (e.shape(x), e.dtype(x));
    if shape[dim].is_eq(0) || shape[dim].is_eq(1) {
        return e.one("aten.full.default", args![&*shape, 1, dtype]);
    }
    let mut one = shape.clone();
    one[dim] = SymInt::Int(1);
    let one = e.one("aten.full.default", args![&*one, 1, dtype])?;
    let last = &shape[dim] - 1;
    let before = e.one("aten.slice.Tensor", args![x, dim, 0, &last])?;
    let before = e.one("aten.cat.default", args![vec![one, before], dim])?;
    let before = e.one("aten.cumprod.default", args![before, dim])?;
    let after = e.one("aten.slice.Tensor", args![x, dim, 1])?;
    let after = e.flip(after, dim)?;
    let after = e.one("aten.cat.default", args![vec![one, after], dim])?;
    let after = e.one("aten.cumprod.default", args![after, dim])?;
    let after = e.flip(after, dim)?;
    let product = e.mul(before, after)?;
    e.conj(product)
}

/// `var`.
pub fn var(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 3)?;
    first(of_variance(e, p, &over, p.grad()?)?)
}

/// `std`.
pub fn std(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 3)?;
    let grad = of_deviation(e, p.result(0)?, p.grad()?)?;
    first(of_variance(e, p, &over, grad)?)
}

/// `var_mean`.
pub fn var_mean(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    with_mean(e, p, p.grad_of(0))
}

/// `std_mean`.
pub fn std_mean(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = match p.grad_of(0) {
        Some(grad) => Some(of_deviation(e, p.result(0)?, grad)?),
        None => None,
    };
    with_mean(e, p, grad)
}

fn with_mean(e: &mut dyn Emit, p: &Pullback<'_>, variance: Option<Handle>) -> Rule {
    let over = Reduction::over(e, p, 1, 3)?;
    let variance = variance.map(|grad| of_variance(e, p, &over, grad)).transpose()?;
    let mean = p.grad_of(1).map(|grad| share(e, &over, grad)).transpose()?;
    match (variance, mean) {
        (Some(a), Some(b)) => first(e.add(a, b)?),
        (Some(grad), None) | (None, Some(grad)) => first(grad),
        (None, None) => Ok(Vec::new()),
    }
}

/// The gradient of the variance from that of its root, zero where the root is.
fn of_deviation(e: &mut dyn Emit, std: Handle, grad: Handle) -> Result<Handle, OpError> {
    let twice = e.mul(std, 2)?;
    let grad = e.div(grad, twice)?;
    let flat = e.compare("eq", std, 0)?;
    e.select(flat, 0.0, grad)
}

/// `2·(x - mean) / (n - correction)`.
fn of_variance(e: &mut dyn Emit, p: &Pullback<'_>, over: &Reduction, grad: Handle) -> Result<Handle, OpError> {
    let correction = p.args.opt_float(2)?.unwrap_or(1.0);
    let mean = e.one("aten.mean.dim", args![over.input, over.listed(), true])?;
    let centred = e.sub(over.input, mean)?;
    let grad = over.kept(e, grad)?;
    let scaled = match over.count() {
        SymInt::Int(count) => e.mul(grad, 2.0 / (count as f64 - correction))?,
        count => {
            let count = e.one("aten.scalar_tensor.default", args![count, DType::F64])?;
            let freedom = e.sub(count, correction)?;
            let twice = e.mul(grad, 2)?;
            e.div(twice, freedom)?
        }
    };
    e.mul(scaled, centred)
}

/// `amax` and `amin`: equal elements share the gradient.
pub fn extreme(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 2)?;
    first(among_equals(e, &over, p.result(0)?, p.grad()?)?)
}

/// `aminmax`.
pub fn aminmax(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let over = Reduction::over(e, p, 1, 2)?;
    let mut sum: Option<Handle> = None;
    for index in 0..2 {
        let Some(grad) = p.grad_of(index) else { continue };
        let part = among_equals(e, &over, p.result(index)?, grad)?;
        sum = Some(match sum {
            Some(sum) => e.add(sum, part)?,
            None => part,
        });
    }
    sum.map_or(Ok(Vec::new()), first)
}

fn among_equals(e: &mut dyn Emit, over: &Reduction, result: Handle, grad: Handle) -> Result<Handle, OpError> {
    let (result, grad) = (over.kept(e, result)?, over.kept(e, grad)?);
    let mask = e.one("aten.eq.Tensor", args![over.input, result])?;
    let count = over.sum(e, mask)?;
    let passed = e.mul(grad, mask)?;
    e.div(passed, count)
}

/// `max` and `min` of all elements: equal elements share the gradient, and so do NaNs.
pub fn whole_extreme(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (x, result) = (p.tensor(0)?, p.result(0)?);
    let equal = e.one("aten.eq.Tensor", args![x, result])?;
    let (x_nan, result_nan) = (e.unary("isnan", x)?, e.unary("isnan", result)?);
    let nan = e.one("aten.logical_and.default", args![x_nan, result_nan])?;
    let mask = e.one("aten.logical_or.default", args![equal, nan])?;
    let count = e.unary("sum", mask)?;
    let share = e.div(p.grad()?, count)?;
    first(e.mul(mask, share)?)
}

/// `max.dim` and the like, with values and their indices along a dimension that was dropped unless it was kept.
pub fn indexed(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    indexed_along(e, p, 1, 2)
}

/// The gradient goes to the elements at the indices.
pub(super) fn indexed_along(e: &mut dyn Emit, p: &Pullback<'_>, dim: usize, keep: usize) -> Rule {
    let over = Reduction::over(e, p, dim, keep)?;
    let Some(grad) = p.grad_of(0) else { return Ok(Vec::new()) };
    let (grad, index) = (over.kept(e, grad)?, over.kept(e, p.result(1)?)?);
    let zeros = e.zeros(&over.shape, grad)?;
    let dim = over.dims.first().copied().unwrap_or(0);
    first(e.one("aten.scatter.src", args![zeros, dim, index, grad])?)
}
