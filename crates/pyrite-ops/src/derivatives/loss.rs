//! Derivatives of losses.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};
use pyrite_sym::SymInt;

use super::Calculus;
use super::backward::{gradients, packet};
use super::formula::{Sheet, Term};
use crate::rules::broadcast;

/// Two tensors in their common shape.
fn together(e: &mut dyn Emit, mut pair: [Handle; 2]) -> Result<[Handle; 2], OpError> {
    let (x, y) = (e.shape(pair[0]), e.shape(pair[1]));
    if x.len() == y.len() && x.iter().zip(&y).all(|(x, y)| x.is_eq(y)) {
        return Ok(pair);
    }
    let whole = broadcast(&[&x, &y])?;
    for side in &mut pair {
        *side = e.expand(*side, &whole)?;
    }
    Ok(pair)
}

/// Losses of a pair that do not change when input and target are swapped: one backward operator serves both.
pub fn symmetric(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let op = format!("{}_backward.default", packet(p));
    let [x, y] = together(e, [p.tensor(0)?, p.tensor(1)?])?;
    let mut grads = Vec::new();
    for (index, [own, other]) in [(0, [x, y]), (1, [y, x])] {
        if p.wants(index) {
            let mut args = vec![p.grad()?.into(), own.into(), other.into()];
            args.extend(p.args.values[2..].iter().cloned());
            grads.extend(gradients(e, &op, &args, &[index])?);
        }
    }
    Ok(grads)
}

/// `nll_loss_forward` and `nll_loss2d_forward`.
pub fn nll(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(2)?;
    let op = packet(p).replace("_forward", "_backward.default");
    let mut args = vec![p.grad()?.into()];
    args.extend(p.args.values.iter().cloned());
    args.push(p.result(1)?.into());
    gradients(e, &op, &args, &[0])
}

/// The gradient of a loss's elements: weighted, and divided by their number where the loss is their mean.
fn of_elements(
    e: &mut dyn Emit,
    p: &Pullback<'_>,
    slope: Handle,
    weight: usize,
    reduction: usize,
) -> Result<Handle, OpError> {
    let mut grad = e.mul(p.grad()?, slope)?;
    if let Some(weight) = p.args.opt_tensor(weight)? {
        grad = e.mul(grad, *weight)?;
    }
    if p.args.int(reduction)? == 1 {
        let count = e.shape(p.tensor(0)?).iter().fold(SymInt::Int(1), |n, d| n * d);
        grad = e.div(grad, count)?;
    }
    Ok(grad)
}

/// `binary_cross_entropy`.
pub fn binary_cross_entropy(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(2)?;
    let mut grads = Vec::new();
    if p.wants(0) {
        let mut args = vec![p.grad()?.into()];
        args.extend(p.args.values.iter().cloned());
        grads.extend(gradients(e, "aten.binary_cross_entropy_backward.default", &args, &[0])?);
    }
    if p.wants(1) {
        // The logarithms of the slope have no floor, unlike those of the loss.
        let x = p.tensor(0)?;
        let rest = e.from_number(1.0, x)?;
        let (rest, log) = (e.unary("log", rest)?, e.unary("log", x)?);
        let slope = e.sub(rest, log)?;
        grads.push((1, of_elements(e, p, slope, 2, 3)?.into()));
    }
    Ok(grads)
}

/// `binary_cross_entropy_with_logits`: with `σ` the sigmoid and `w` the weight of positives, the slope is
/// `(w·y + 1 - y)·σ(x) - w·y`, which without weights is `σ(x) - y`.
pub fn binary_cross_entropy_with_logits(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(2)?;
    p.refuse(3)?;
    let (x, y, positive) = (p.tensor(0)?, p.tensor(1)?, p.args.opt_tensor(3)?.copied());
    let mut grads = Vec::new();
    if p.wants(0) {
        let sigmoid = e.unary("sigmoid", x)?;
        let slope = match positive {
            Some(positive) => {
                let hit = e.mul(positive, y)?;
                let miss = e.from_number(1.0, y)?;
                let total = e.add(hit, miss)?;
                let slope = e.mul(total, sigmoid)?;
                e.sub(slope, hit)?
            }
            None => e.sub(sigmoid, y)?,
        };
        grads.push((0, of_elements(e, p, slope, 2, 4)?.into()));
    }
    if p.wants(1) {
        let opposite = e.neg(x)?;
        let slope = match positive {
            Some(positive) => {
                let (miss, hit) = (e.unary("log_sigmoid", opposite)?, e.unary("log_sigmoid", x)?);
                let hit = e.mul(positive, hit)?;
                e.sub(miss, hit)?
            }
            None => opposite,
        };
        grads.push((1, of_elements(e, p, slope, 2, 4)?.into()));
    }
    Ok(grads)
}

/// `nll_loss_backward` and `nll_loss2d_backward`, which are linear in the gradient: the loss itself.
pub fn nll_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(3)?;
    p.refuse(6)?;
    let op = packet(p).replace("_backward", ".default");
    let args: Vec<Value<Handle>> = [vec![p.grad()?.into()], (2..6).map(|index| p.value(index)).collect()].concat();
    gradients(e, &op, &args, &[0])
}

/// The loss of one element of a pair as its backward operator sees it: the slope `f` of the loss, and the derivatives of
/// `f` by input and target.
type Slopes = for<'s> fn(Term<'s>, Term<'s>, &Pullback<'_>) -> [Term<'s>; 3];

/// Backward operators of losses of a pair, `grad·f(self, target)`, divided by the number of elements for the mean.
fn pair_backward(e: &mut dyn Emit, p: &Pullback<'_>, slopes: Slopes) -> Result<Gradients, OpError> {
    let count = e.shape(p.tensor(1)?).iter().fold(SymInt::Int(1), |n, d| n * d);
    let s = Sheet::new(e);
    let (t, g, x, y) = (s.grad(p), s.argument(p, 0), s.argument(p, 1), s.argument(p, 2));
    let t = if p.args.int(3)? == 1 { t / s.term(count) } else { t };
    let [f, by_input, by_target] = slopes(x, y, p);
    s.gradients(p, &[(0, &|| t * f), (1, &|| t * g * by_input), (2, &|| t * g * by_target)])
}

/// `mse_loss_backward`.
pub fn mse_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    pair_backward(e, p, |x, y, _| {
        let two = x.ones_like() * 2.0;
        [(x - y) * 2.0, two, -two]
    })
}

/// `smooth_l1_loss_backward`.
pub fn smooth_l1_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    pair_backward(e, p, |x, y, p| {
        let (beta, z) = (p.args.float(4).unwrap_or(0.0), x - y);
        let curved = z.abs().lt(beta);
        let slope = curved.select(1.0 / beta, 0.0);
        [curved.select(z / beta, z.sgn()), slope, -slope]
    })
}

/// `huber_loss_backward`.
pub fn huber_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    pair_backward(e, p, |x, y, p| {
        let (delta, z) = (p.args.float(4).unwrap_or(0.0), x - y);
        let curved = z.abs().le(delta);
        let slope = curved.select(1.0, 0.0);
        [curved.select(z, z.sgn() * delta), slope, -slope]
    })
}

/// `soft_margin_loss_backward`: `f = -y·σ(-x·y)`.
pub fn soft_margin_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    pair_backward(e, p, |x, y, _| {
        let weight = (-(x * y)).sigmoid();
        let change = weight * (1.0 - weight);
        [-(y * weight), y * y * change, x * y * change - weight]
    })
}

/// `binary_cross_entropy_backward`: `w·(x - y)/(x·(1 - x))`, whose denominator has a floor.
pub fn binary_cross_entropy_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(3)?;
    let count = e.shape(p.tensor(1)?).iter().fold(SymInt::Int(1), |n, d| n * d);
    let s = Sheet::new(e);
    let (mut t, g, x, y) = (s.grad(p), s.argument(p, 0), s.argument(p, 1), s.argument(p, 2));
    if p.args.opt_tensor(3)?.is_some() {
        t = t * s.argument(p, 3);
    }
    if p.args.int(4)? == 1 {
        t = t / s.term(count);
    }
    let below = x * (1.0 - x);
    let (flat, floor) = (below.lt(1e-12), below.of("aten.clamp_min.default", &[1e-12.into()]));
    let by_input = || {
        let curve = ((x - y) * (1.0 - x * 2.0) / floor).except(flat);
        t * g * (1.0 - curve) / floor
    };
    s.gradients(p, &[(0, &|| t * (x - y) / floor), (1, &by_input), (2, &|| -(t * g / floor))])
}
