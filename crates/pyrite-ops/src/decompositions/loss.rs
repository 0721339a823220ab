//! Decompositions of losses.
//!
//! A reduction is 0 for one value per element, 1 for the mean, 2 for the sum.

use pyrite_ir::{Args, Emit, Handle, OpError};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::{Operand, Rule, Sheet, Term, formulas, wide};

const MEAN: i64 = 1;
const SUM: i64 = 2;

/// A loss per element, reduced.
fn reduced(loss: Term<'_>, reduction: i64) -> Term<'_> {
    match reduction {
        MEAN => loss.of("aten.mean.default", &[]),
        SUM => loss.total(),
        _ => loss,
    }
}

/// The gradient of a loss's elements: that of the mean is shared by the elements of the input `x`.
fn shared<'s>(s: &'s Sheet<'_>, g: Term<'s>, x: Term<'s>, reduction: i64) -> Term<'s> {
    if reduction == MEAN { g / s.term(x.numel()) } else { g }
}

formulas! {
    mse |s, a, [x, y]| reduced((x - y).square(), a.int(2)?);
    mse_backward |s, a, [g, x, y]| shared(&s, g, x, a.int(3)?) * (x - y) * 2.0;
    smooth_l1 |s, a, [x, y]| {
        let (beta, distance) = (a.float(3)?, (x - y).abs());
        let loss = if beta == 0.0 {
            distance
        } else {
            distance.lt(beta).select(distance.square() * 0.5 / beta, distance - 0.5 * beta)
        };
        reduced(loss, a.int(2)?)
    };
    smooth_l1_backward |s, a, [g, x, y]| {
        let (beta, distance) = (a.float(4)?, x - y);
        let slope = if beta == 0.0 { distance.sign() } else { (distance / beta).clamp(-1.0, 1.0) };
        shared(&s, g, x, a.int(3)?) * slope
    };
    huber |s, a, [x, y]| {
        let (delta, distance) = (a.float(3)?, (x - y).abs());
        let loss = distance.le(delta).select(distance.square() * 0.5, (distance - 0.5 * delta) * delta);
        reduced(loss, a.int(2)?)
    };
    huber_backward |s, a, [g, x, y]| {
        let delta = a.float(4)?.abs();
        shared(&s, g, x, a.int(3)?) * (x - y).clamp(-delta, delta)
    };
    soft_margin |s, a, [x, y]| reduced((-(y * x)).exp().log1p(), a.int(2)?);
    soft_margin_backward |s, a, [g, x, y]| shared(&s, g, x, a.int(3)?) * -y / ((y * x).exp() + 1.0);
    /// The logarithms have a floor.
    binary_cross_entropy |s, a, [x, y]| {
        for (of, value) in [("input", x), ("target", y)] {
            let within = value.ge(0.0).of("aten.logical_and.default", &[value.le(1.0).value()]);
            let message = format!("all elements of {of} should be between 0 and 1");
            let holds = within.of("aten.all.default", &[]).value();
            s.effect("aten._assert_async.msg", &[holds, message.as_str().into()]);
        }
        let (hit, miss) = (x.log().at_least(-100.0), (-x).log1p().at_least(-100.0));
        let loss = (y - 1.0) * miss - y * hit;
        let loss = s.optional(a, 2).map_or(loss, |weight| loss * weight);
        reduced(loss, a.int(3)?)
    };
    binary_cross_entropy_backward |s, a, [g, x, y]| {
        let slope = (x - y) / ((1.0 - x) * x).at_least(1e-12);
        let slope = s.optional(a, 3).map_or(slope, |weight| slope * weight);
        shared(&s, g, x, a.int(4)?) * slope
    };
    binary_cross_entropy_with_logits |s, a, [x, y]| {
        // ln(1 + exp(-x)) without overflow.
        let softplus = (-x.abs()).exp().log1p() + (-x).at_least(0.0);
        let factor = s.optional(a, 3).map_or(softplus, |positive| ((positive - 1.0) * y + 1.0) * softplus);
        let loss = (1.0 - y) * x + factor;
        let loss = s.optional(a, 2).map_or(loss, |weight| loss * weight);
        reduced(loss, a.int(4)?)
    };
}

/// What class losses share: where the classes are, the classes of the targets with those to ignore replaced by zero,
/// and a weight for each target, which is zero for those to ignore.
struct Classes<'s> {
    dim: usize,
    seen: Term<'s>,
    index: Term<'s>,
    weight: Option<Term<'s>>,
}

impl<'s> Classes<'s> {
    /// Reads the arguments from the position of the scores on.
    fn read(s: &'s Sheet<'_>, a: &Args<'_, Handle>, first: usize) -> Result<Self, OpError> {
        let scores = s.wide(a, first);
        let target = s.wide(a, first + 1).to(DType::I64);
        let dim = usize::from(scores.rank() > 1);
        // A single score takes its class as a number or as a vector of one element.
        let target = if scores.rank() == 1 { target.reshape(&[]) } else { target };
        let seen = target.of("aten.ne.Scalar", &[a.sym(first + 4)?.into()]);
        let index = seen.select(target, s.full(&[], 0i64, DType::I64)).unsqueeze(dim.min(target.rank()));
        let weight = s.optional(a, first + 2).map(|weight| {
            let all = weight.along(dim, scores.rank()).expand(&scores.shape());
            all.of("aten.gather.default", &[dim.into(), index.value()])
        });
        Ok(Self { dim, seen, index, weight })
    }
}

/// `nll_loss_forward` and `nll_loss2d_forward`.
pub fn nll(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let [scores] = wide(&s, a);
    let given = Classes::read(&s, a, 0)?;
    let picked = scores.of("aten.gather.default", &[given.dim.into(), given.index.value()]);
    let loss = given.weight.map_or(-picked, |weight| -(picked * weight));
    let loss = loss.squeeze(given.dim).only(given.seen);
    let float = scores.dtype().unwrap_or(DType::F32);
    let reduction = a.int(3)?;
    if reduction != MEAN && reduction != SUM {
        return s.results(&[Some(loss), Some(s.full(&[], 0.0, float))]);
    }
    let total = match given.weight {
        Some(weight) => weight.squeeze(given.dim).only(given.seen).total(),
        None => given.seen.to(float).total(),
    };
    let sum = loss.total();
    s.results(&[Some(if reduction == MEAN { sum / total } else { sum }), Some(total)])
}

/// `nll_loss_backward` and `nll_loss2d_backward`: the gradient stands in the place of the target's class.
pub fn nll_backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let scores = s.wide(a, 1);
    let given = Classes::read(&s, a, 1)?;
    let reduction = a.int(4)?;
    let g = s.wide(a, 0);
    let g = match reduction {
        MEAN => g / s.wide(a, 6),
        _ => g,
    };
    let g = if scores.rank() == 1 {
        g.reshape(&[SymInt::Int(1)])
    } else if reduction == 0 {
        g.unsqueeze(given.dim)
    } else {
        g.reshape(&[])
    };
    let each = given.weight.map_or(-g, |weight| -(g * weight));
    let classes = scores.shape()[given.dim].clone();
    let places = s.iota(classes).along(given.dim, scores.rank());
    let here = places.eq(given.index).and(given.seen.unsqueeze(given.dim.min(given.seen.rank())));
    s.result_of(each.only(here))
}
