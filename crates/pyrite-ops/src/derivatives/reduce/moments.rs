//! Means, variances and standard deviations.

use pyrite_ir::{Emit, Handle, OpError, Pullback, args};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::Reduction;
use crate::derivatives::{Calculus, Rule, first};

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
