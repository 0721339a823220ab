//! Derivatives of normalisations, by their backward operators and from the statistics that the forward pass saved.
//!
//! The saved statistics are results like others: where something depends on them, their gradients flow into the input.
//! The backward operators take statistics as arguments and give gradients for them too, so differentiating twice comes
//! out right without a rule for it.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, Value};
use pyrite_sym::SymInt;

use super::backward::{gradients, mask};
use super::{Calculus, Keep};

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

    /// The mean over what statistics are taken over.
    fn mean(&self, e: &mut dyn Emit, a: Handle) -> Result<Handle, OpError> {
        e.one("aten.mean.dim", &[a.into(), self.over.as_slice().into(), true.into()])
    }

    /// The sum over what statistics are taken over.
    fn sum(&self, e: &mut dyn Emit, a: Handle) -> Result<Handle, OpError> {
        e.sum(a, &self.over, Keep::Dims)
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

/// The gradients of the arguments of a backward operator.
///
/// With `n = (x - m)·r` and `u = g·w`, its results are `dx = r·(u - mean(u) - n·mean(u·n))`, `dw = Σg·n` and `db = Σg`.
/// Let `a`, `b` and `c` be the gradients of these. As `u` and `a` stand alike in `Σa·dx`, the gradient of `u` is what
/// the operator makes of `a`: `q = r·(a - mean(a) - n·mean(a·n))`. The gradient of `n` is
/// `v = g·b - r·(a·mean(u·n) + u·mean(a·n))`, from which those of `x`, `m` and `r` follow.
fn backward(e: &mut dyn Emit, p: &Pullback<'_>, form: &Form, at: &Places) -> Result<Gradients, OpError> {
    let (grad, input) = (p.tensor(0)?, p.tensor(1)?);
    let (g, x) = (e.reshape(grad, &form.whole)?, e.reshape(input, &form.whole)?);
    let rstd = p.tensor(at.rstd)?;
    let r = e.reshape(rstd, &form.statistic)?;
    let centred = match at.mean {
        Some(mean) => {
            let mean = e.reshape(p.tensor(mean)?, &form.statistic)?;
            e.sub(x, mean)?
        }
        None => x,
    };
    let n = e.mul(centred, r)?;
    let weight = p.args.opt_tensor(at.weight)?.copied();
    let w = weight.map(|w| e.reshape(w, &form.parameter)).transpose()?;
    let mut of_g: Vec<Handle> = Vec::new();
    let mut of_n: Option<Handle> = None;
    let mut of_r: Option<Handle> = None;
    let mut found = Vec::new();
    if let Some(a) = p.grad_of(0) {
        let a = e.reshape(a, &form.whole)?;
        let u = match w {
            Some(w) => e.mul(g, w)?,
            None => g,
        };
        let (un, an, au) = (e.mul(u, n)?, e.mul(a, n)?, e.mul(a, u)?);
        let (mean_un, mean_an) = (form.mean(e, un)?, form.mean(e, an)?);
        // `rest` is `q / r`, and `dot` is `Σa·dx / r`.
        let along = e.mul(n, mean_an)?;
        let mut rest = e.sub(a, along)?;
        let (sum_au, sum_un) = (form.sum(e, au)?, form.sum(e, un)?);
        let along = e.mul(sum_un, mean_an)?;
        let mut dot = e.sub(sum_au, along)?;
        if at.mean.is_some() {
            let (mean_a, sum_u) = (form.mean(e, a)?, form.sum(e, u)?);
            rest = e.sub(rest, mean_a)?;
            let level = e.mul(mean_a, sum_u)?;
            dot = e.sub(dot, level)?;
        }
        of_r = Some(dot);
        let q = e.mul(rest, r)?;
        of_g.push(match w {
            Some(w) => e.mul(q, w)?,
            None => q,
        });
        if let Some(weight) = weight.filter(|_| p.wants(at.weight)) {
            let product = e.mul(g, q)?;
            let sum = e.sum(product, &form.repeated, Keep::Dims)?;
            let shape = e.shape(weight);
            found.push((at.weight, e.reshape(sum, &shape)?.into()));
        }
        let (left, right) = (e.mul(a, mean_un)?, e.mul(u, mean_an)?);
        let sum = e.add(left, right)?;
        let sum = e.mul(sum, r)?;
        of_n = Some(e.neg(sum)?);
    }
    if let Some(b) = p.grad_of(1) {
        let b = e.reshape(b, &form.parameter)?;
        of_g.push(e.mul(b, n)?);
        let gb = e.mul(g, b)?;
        of_n = Some(match of_n {
            Some(v) => e.add(v, gb)?,
            None => gb,
        });
    }
    if let Some(c) = p.grad_of(2) {
        let c = e.reshape(c, &form.parameter)?;
        of_g.push(e.expand(c, &form.whole)?);
    }
    if p.wants(0) {
        let mut terms = of_g.into_iter();
        if let Some(first) = terms.next() {
            let sum = terms.try_fold(first, |sum, term| e.add(sum, term))?;
            let shape = e.shape(grad);
            found.push((0, e.reshape(sum, &shape)?.into()));
        }
    }
    let Some(v) = of_n else { return Ok(found) };
    let vr = e.mul(v, r)?;
    if p.wants(1) {
        let shape = e.shape(input);
        found.push((1, e.reshape(vr, &shape)?.into()));
    }
    if let Some(mean) = at.mean.filter(|index| p.wants(*index)) {
        let sum = form.sum(e, vr)?;
        let sum = e.neg(sum)?;
        let shape = e.shape(p.tensor(mean)?);
        found.push((mean, e.reshape(sum, &shape)?.into()));
    }
    if p.wants(at.rstd) {
        let product = e.mul(v, centred)?;
        let mut sum = form.sum(e, product)?;
        if let Some(more) = of_r {
            sum = e.add(sum, more)?;
        }
        let shape = e.shape(rstd);
        found.push((at.rstd, e.reshape(sum, &shape)?.into()));
    }
    Ok(found)
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
    let (g, x) = (p.tensor(0)?, p.tensor(1)?);
    let (mean, var) = (e.reshape(p.tensor(3)?, &form.statistic)?, e.reshape(p.tensor(4)?, &form.statistic)?);
    let var = e.one("aten.add.Scalar", &[var.into(), p.value(8)])?;
    let r = e.unary("rsqrt", var)?;
    let weight = p.args.opt_tensor(2)?.copied();
    let mut of_g = Vec::new();
    let mut found = Vec::new();
    if let Some(a) = p.grad_of(0) {
        let ar = e.mul(a, r)?;
        of_g.push(match weight {
            Some(weight) => {
                let w = e.reshape(weight, &form.parameter)?;
                e.mul(ar, w)?
            }
            None => ar,
        });
        if let Some(weight) = weight.filter(|_| p.wants(2)) {
            let product = e.mul(g, ar)?;
            let sum = e.sum(product, &form.repeated, Keep::Dims)?;
            let shape = e.shape(weight);
            found.push((2, e.reshape(sum, &shape)?.into()));
        }
    }
    if let Some(b) = p.grad_of(1) {
        let b = e.reshape(b, &form.parameter)?;
        let br = e.mul(b, r)?;
        let centred = e.sub(x, mean)?;
        of_g.push(e.mul(centred, br)?);
        if p.wants(1) {
            found.push((1, e.mul(g, br)?.into()));
        }
    }
    if let Some(c) = p.grad_of(2) {
        let c = e.reshape(c, &form.parameter)?;
        of_g.push(e.expand(c, &form.whole)?);
    }
    let mut terms = of_g.into_iter();
    if let Some(first) = terms.next().filter(|_| p.wants(0)) {
        found.push((0, terms.try_fold(first, |sum, term| e.add(sum, term))?.into()));
    }
    Ok(found)
}
