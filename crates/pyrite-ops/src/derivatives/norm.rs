//! Derivatives of normalisations, by their backward operators and from the statistics that the forward pass saved.
//!
//! The saved statistics are results like others: where something depends on them, their gradients flow into the input.
//! The backward operators take statistics as arguments and give gradients for them too, so differentiating twice comes
//! out right without a rule for it.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};
use pyrite_sym::SymInt;

use super::Calculus;
use super::backward::{gradients, mask};
use super::formula::{Sheet, Term};

/// How a normalisation lays out its tensors, so that they broadcast.
struct Form {
    /// The input.
    whole: Vec<SymInt>,
    /// Means and inverse deviations.
    statistic: Vec<SymInt>,
    /// Weight and bias.
    parameter: Vec<SymInt>,
    /// The dimensions that statistics are taken over, which have `count` elements.
    over: Vec<i64>,
    count: SymInt,
    /// The dimensions along which weight and bias are repeated.
    repeated: Vec<i64>,
}

impl Form {
    fn new(whole: Vec<SymInt>, is_statistic: &dyn Fn(usize) -> bool, is_parameter: &dyn Fn(usize) -> bool) -> Self {
        let keep = |keep: &dyn Fn(usize) -> bool| -> Vec<SymInt> {
            whole.iter().enumerate().map(|(d, size)| if keep(d) { size.clone() } else { SymInt::Int(1) }).collect()
        };
        let without = |keep: &dyn Fn(usize) -> bool| (0..whole.len()).filter(|d| !keep(*d)).map(|d| d as i64).collect();
        let over: Vec<i64> = without(is_statistic);
        Self {
            statistic: keep(is_statistic),
            parameter: keep(is_parameter),
            count: over.iter().fold(SymInt::Int(1), |n, d| n * &whole[*d as usize]),
            over,
            repeated: without(is_parameter),
            whole,
        }
    }

    /// Statistics over the last `normalized` dimensions.
    fn layer(e: &dyn Emit, x: Handle, normalized: usize) -> Self {
        let lead = e.rank(x) - normalized;
        Self::new(e.shape(x).to_vec(), &|d| d < lead, &|d| d >= lead)
    }

    /// Statistics per channel.
    fn batch(e: &dyn Emit, x: Handle) -> Self {
        Self::new(e.shape(x).to_vec(), &|d| d == 1, &|d| d == 1)
    }

    /// Statistics per sample and group of channels; the sizes are those that stand at `at` in the call.
    fn group(p: &Pullback<'_>, at: usize) -> Result<Self, OpError> {
        let (n, c, rest, groups) = (p.args.sym(at)?, p.args.sym(at + 1)?, p.args.sym(at + 2)?, p.args.sym(at + 3)?);
        let each = c.floor_div(&groups);
        Ok(Self::new(vec![n, groups, each, rest], &|d| d < 2, &|d| d == 1 || d == 2))
    }

    /// The gradient that flows to the input through its statistics: with mean `m` and inverse deviation `r`, `dm/dx` is
    /// `1/n`, and `dr/dx` is `-r³·(x - m)/n`.
    fn through_statistics(
        &self,
        e: &mut dyn Emit,
        x: Handle,
        mean: Option<Handle>,
        rstd: Handle,
        grads: [Option<Handle>; 2],
    ) -> Result<Option<Handle>, OpError> {
        let mut sum = None;
        if let Some(grad) = grads[0] {
            let grad = e.reshape(grad, &self.statistic)?;
            sum = Some(e.expand(grad, &self.whole)?);
        }
        if let Some(grad) = grads[1] {
            let (grad, rstd) = (e.reshape(grad, &self.statistic)?, e.reshape(rstd, &self.statistic)?);
            let cube = e.power(rstd, 3i64)?;
            let slope = e.mul(grad, cube)?;
            let mut centred = e.reshape(x, &self.whole)?;
            if let Some(mean) = mean {
                let mean = e.reshape(mean, &self.statistic)?;
                centred = e.sub(centred, mean)?;
            }
            let flow = e.mul(slope, centred)?;
            sum = Some(match sum {
                Some(sum) => e.sub(sum, flow)?,
                None => e.neg(flow)?,
            });
        }
        let Some(sum) = sum else { return Ok(None) };
        let grad = e.div(sum, self.count.clone())?;
        let shape = e.shape(x);
        e.reshape(grad, &shape).map(Some)
    }
}

/// Adds a gradient of the input to those of a call.
fn with_input(e: &mut dyn Emit, mut grads: Gradients, more: Option<Handle>) -> Result<Gradients, OpError> {
    let Some(more) = more else { return Ok(grads) };
    match grads.iter_mut().find(|(index, _)| *index == 0) {
        Some((_, grad)) => *grad = e.add(grad.clone(), more)?.into(),
        None => grads.push((0, more.into())),
    }
    Ok(grads)
}

/// `native_layer_norm`.
pub fn layer_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (x, mean, rstd) = (p.tensor(0)?, p.result(1)?, p.result(2)?);
    let grads = match p.grad_of(0) {
        Some(grad) => {
            let [shape, weight, bias] = [1, 2, 3].map(|index| p.value(index));
            let mask = mask(p, &[0, 2, 3]);
            let args = [grad.into(), x.into(), shape, mean.into(), rstd.into(), weight, bias, mask];
            gradients(e, "aten.native_layer_norm_backward.default", &args, &[0, 2, 3])?
        }
        None => Vec::new(),
    };
    let form = Form::layer(e, x, p.args.syms(1)?.len());
    let more = form.through_statistics(e, x, Some(mean), rstd, [p.grad_of(1), p.grad_of(2)])?;
    with_input(e, grads, more)
}

/// `_fused_rms_norm`.
pub fn rms_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (x, rstd) = (p.tensor(0)?, p.result(1)?);
    let grads = match p.grad_of(0) {
        Some(grad) => {
            let args = [grad.into(), x.into(), p.value(1), rstd.into(), p.value(2), mask(p, &[0, 2])];
            gradients(e, "aten._fused_rms_norm_backward.default", &args, &[0, 2])?
        }
        None => Vec::new(),
    };
    let form = Form::layer(e, x, p.args.syms(1)?.len());
    let more = form.through_statistics(e, x, None, rstd, [None, p.grad_of(1)])?;
    with_input(e, grads, more)
}

/// `native_group_norm`.
pub fn group_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (x, mean, rstd) = (p.tensor(0)?, p.result(1)?, p.result(2)?);
    let grads = match p.grad_of(0) {
        Some(grad) => {
            let mut args = vec![grad.into(), x.into(), mean.into(), rstd.into(), p.value(1)];
            args.extend((3..7).map(|index| p.value(index)));
            args.push(mask(p, &[0, 1, 2]));
            gradients(e, "aten.native_group_norm_backward.default", &args, &[0, 1, 2])?
        }
        None => Vec::new(),
    };
    let more = Form::group(p, 3)?.through_statistics(e, x, Some(mean), rstd, [p.grad_of(1), p.grad_of(2)])?;
    with_input(e, grads, more)
}

/// Where the running statistics of a batch norm stand among its arguments.
#[derive(Clone, Copy, PartialEq)]
enum Running {
    /// It has none.
    Absent,
    /// At 3 and 4, but the input is normalized by its own.
    Unused,
    /// At 3 and 4, and the input is normalized by them.
    Used,
}

/// The gradients of a batch norm whose epsilon stands at `eps`.
fn batch(e: &mut dyn Emit, p: &Pullback<'_>, running: Running, eps: usize) -> Result<Gradients, OpError> {
    let (x, training) = (p.tensor(0)?, running != Running::Used);
    let (mut means, mut saved) = ([Value::None, Value::None], [Value::None, Value::None]);
    if running != Running::Absent {
        p.refuse(3)?;
        p.refuse(4)?;
        means = [p.value(3), p.value(4)];
    }
    if training {
        saved = [p.result(1)?.into(), p.result(2)?.into()];
    }
    let grads = match p.grad_of(0) {
        Some(grad) => {
            let [mean, var] = means;
            let [saved_mean, saved_invstd] = saved;
            let (weight, eps, mask) = (p.value(1), p.value(eps), mask(p, &[0, 1, 2]));
            let args = [grad.into(), x.into(), weight, mean, var, saved_mean, saved_invstd, training.into(), eps, mask];
            gradients(e, "aten.native_batch_norm_backward.default", &args, &[0, 1, 2])?
        }
        None => Vec::new(),
    };
    if !training {
        return Ok(grads);
    }
    let form = Form::batch(e, x);
    let more = form.through_statistics(e, x, Some(p.result(1)?), p.result(2)?, [p.grad_of(1), p.grad_of(2)])?;
    with_input(e, grads, more)
}

/// `native_batch_norm`, `_native_batch_norm_legit` and its functional form.
pub fn batch_norm(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    batch(e, p, if p.args.bool(5)? { Running::Unused } else { Running::Used }, 7)
}

/// `_native_batch_norm_legit.no_stats`.
pub fn batch_norm_no_stats(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    batch(e, p, Running::Absent, 5)
}

/// `_native_batch_norm_legit_no_training` and `_batch_norm_no_update`.
pub fn batch_norm_by_running(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    batch(e, p, Running::Used, 6)
}

/// `_batch_norm_with_update` and its functional form.
pub fn batch_norm_by_batch(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    batch(e, p, Running::Unused, 6)
}

/// Where a backward operator has its arguments.
struct Places {
    weight: usize,
    mean: Option<usize>,
    rstd: usize,
}

/// The mean over dimensions, which stay with size one.
fn averaged<'s>(t: Term<'s>, dims: &[i64]) -> Term<'s> {
    t.of("aten.mean.dim", &[dims.into(), true.into()])
}

/// The sum over dimensions, which stay with size one.
fn summed<'s>(t: Term<'s>, dims: &[i64]) -> Term<'s> {
    t.of("aten.sum.dim_IntList", &[dims.into(), true.into()])
}

/// In a larger shape.
fn expanded<'s>(t: Term<'s>, shape: &[SymInt]) -> Term<'s> {
    t.of("aten.expand.default", &[shape.into()])
}

/// The sum of those terms that there are.
fn total<'s>(terms: impl IntoIterator<Item = Option<Term<'s>>>) -> Option<Term<'s>> {
    terms.into_iter().flatten().reduce(|sum, term| sum + term)
}

/// The gradients of the arguments of a backward operator.
///
/// With `n = (x - m)·r` and `u = g·w`, its results are `dx = r·(u - mean(u) - n·mean(u·n))`, `dw = Σg·n` and `db = Σg`.
/// Let `a`, `b` and `c` be their gradients. In `Σa·dx`, `a` and `u` are interchangeable: it is `Σu·r·z` with
/// `z = a - mean(a) - n·mean(a·n)`, which gives the gradients of `u` and of the factor `r`. What `n` gets is
/// `v = g·b - r·(a·mean(u·n) + u·mean(a·n))`, from which the rest follows. Without a mean to subtract, those of `u` and
/// `a` do not occur.
fn backward(e: &mut dyn Emit, p: &Pullback<'_>, form: &Form, at: &Places) -> Result<Gradients, OpError> {
    let mut laid = |value: Option<Handle>, shape: &[SymInt]| value.map(|v| e.reshape(v, shape)).transpose();
    let weight = laid(p.args.opt_tensor(at.weight)?.copied(), &form.parameter)?;
    let mean = laid(at.mean.map(|index| p.tensor(index)).transpose()?, &form.statistic)?;
    let r = laid(Some(p.tensor(at.rstd)?), &form.statistic)?;
    let (g, x) = (laid(Some(p.tensor(0)?), &form.whole)?, laid(Some(p.tensor(1)?), &form.whole)?);
    let a = laid(p.grad_of(0), &form.whole)?;
    let (b, c) = (laid(p.grad_of(1), &form.parameter)?, laid(p.grad_of(2), &form.parameter)?);
    let s = Sheet::new(e);
    let [weight, mean, a, b, c] = [weight, mean, a, b, c].map(|value| value.map(|v| s.term(v)));
    let [g, x, r] = [g, x, r].map(|value| s.term(value));
    let (average, sum) = (|t| averaged(t, &form.over), |t, dims: &[i64]| summed(t, dims));

    let centred = mean.map_or(x, |mean| x - mean);
    let n = centred * r;
    let u = weight.map_or(g, |weight| g * weight);
    let z = a.map(|a| {
        let across = a - n * average(a * n);
        if mean.is_some() { across - average(a) } else { across }
    });
    let v = total([b.map(|b| g * b), a.map(|a| -((a * average(u * n) + u * average(a * n)) * r))]);

    let of_grad = total([
        z.map(|z| weight.map_or(z * r, |weight| z * r * weight)),
        b.map(|b| n * b),
        c.map(|c| expanded(c, &form.whole)),
    ]);
    let of_weight = z.filter(|_| weight.is_some()).map(|z| sum(g * z * r, &form.repeated));
    let of_mean = v.map(|v| -sum(v * r, &form.over));
    let of_rstd = total([v.map(|v| v * centred), z.map(|z| u * z)]).map(|t| sum(t, &form.over));
    let of_input = v.map(|v| v * r);
    let mut found = vec![(0, of_grad), (1, of_input), (at.weight, of_weight), (at.rstd, of_rstd)];
    found.extend(at.mean.map(|index| (index, of_mean)));
    let found: Vec<_> = found.into_iter().filter_map(|(index, term)| Some((index, term?))).collect();
    let found = s.found(p, &found)?;
    in_shape_of_arguments(e, p, found)
}

/// Gradients back from the form of a normalisation in the shapes of its arguments.
fn in_shape_of_arguments(e: &mut dyn Emit, p: &Pullback<'_>, grads: Gradients) -> Result<Gradients, OpError> {
    let shaped = grads.into_iter().map(|(index, grad)| {
        let shape = e.shape(p.tensor(index)?);
        Ok((index, e.one("aten.reshape.default", &[grad, shape.to_vec().into()])?.into()))
    });
    shaped.collect()
}

/// `native_layer_norm_backward`.
pub fn layer_norm_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let form = Form::layer(e, p.tensor(1)?, p.args.syms(2)?.len());
    backward(e, p, &form, &Places { weight: 5, mean: Some(3), rstd: 4 })
}

/// `_fused_rms_norm_backward`.
pub fn rms_norm_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let form = Form::layer(e, p.tensor(1)?, p.args.syms(2)?.len());
    backward(e, p, &form, &Places { weight: 4, mean: None, rstd: 3 })
}

/// `native_group_norm_backward`.
pub fn group_norm_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    backward(e, p, &Form::group(p, 5)?, &Places { weight: 4, mean: Some(2), rstd: 3 })
}

/// `native_batch_norm_backward` and `batch_norm_backward`. By running statistics, which are constants, the results are
/// `dx = r·g·w`, `dw = Σg·n` and `db = Σg`.
pub fn batch_norm_backward(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let form = Form::batch(e, p.tensor(1)?);
    if p.args.bool(7)? {
        return backward(e, p, &form, &Places { weight: 2, mean: Some(5), rstd: 6 });
    }
    p.refuse(3)?;
    p.refuse(4)?;
    let mut laid = |value: Option<Handle>| value.map(|v| e.reshape(v, &form.parameter)).transpose();
    let (mean, var) = (laid(Some(p.tensor(3)?))?, laid(Some(p.tensor(4)?))?);
    let (weight, b, c) = (laid(p.args.opt_tensor(2)?.copied())?, laid(p.grad_of(1))?, laid(p.grad_of(2))?);
    let s = Sheet::new(e);
    let [weight, a, b, c] = [weight, p.grad_of(0), b, c].map(|value| value.map(|v| s.term(v)));
    let (g, x, mean) = (s.term(p.tensor(0)?), s.term(p.tensor(1)?), s.term(mean));
    let r = (s.term(var) + s.term(p.value(8))).rsqrt();
    let of_grad = total([
        a.map(|a| weight.map_or(a * r, |weight| a * r * weight)),
        b.map(|b| (x - mean) * r * b),
        c.map(|c| expanded(c, &form.whole)),
    ]);
    let of_weight = a.filter(|_| weight.is_some()).map(|a| summed(g * a * r, &form.repeated));
    let found = [(0, of_grad), (1, b.map(|b| g * b * r)), (2, of_weight)];
    let found: Vec<_> = found.into_iter().filter_map(|(index, term)| Some((index, term?))).collect();
    let found = s.found(p, &found)?;
    in_shape_of_arguments(e, p, found)
}
