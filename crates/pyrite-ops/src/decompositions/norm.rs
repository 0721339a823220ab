//! Decompositions of normalisations.

use pyrite_ir::{Args, Emit, Handle, OpError, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Scalar};

use super::terms::count;
use super::{Rule, Sheet, Term};

/// A term with mean 0 and variance 1 over dimensions, its mean and its inverse deviation.
fn normalized<'s>(x: Term<'s>, dims: &[usize], eps: f64) -> [Term<'s>; 3] {
    let mean = x.mean(dims);
    let centred = x - mean;
    let inverse = (centred.square().mean(dims) + eps).rsqrt();
    [centred * inverse, mean, inverse]
}

/// Scaled and shifted by what is there of parameters.
fn affine<'s>(x: Term<'s>, weight: Option<Term<'s>>, bias: Option<Term<'s>>) -> Term<'s> {
    let scaled = weight.map_or(x, |weight| x * weight);
    bias.map_or(scaled, |bias| scaled + bias)
}

/// The gradient of a normalisation by its own mean and deviation, from the gradient of its result.
fn centred_gradient<'s>(g: Term<'s>, normal: Term<'s>, inverse: Term<'s>, dims: &[usize]) -> Term<'s> {
    inverse * (g - g.mean(dims) - normal * (g * normal).mean(dims))
}

/// The flags that say which gradients are wanted.
fn mask(a: &Args<'_, Handle>, index: usize) -> Vec<bool> {
    match a.value(index) {
        Value::List(items) => items.iter().map(|v| v.as_scalar().is_some_and(Scalar::to_bool)).collect(),
        _ => Vec::new(),
    }
}

/// The dimensions before and in the normalized shape.
fn split(rank: usize, normalized: usize) -> (Vec<usize>, Vec<usize>) {
    ((0..rank - normalized).collect(), (rank - normalized..rank).collect())
}

/// `native_layer_norm`.
pub fn layer_norm(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let x = s.wide(a, 0);
    let (_, dims) = split(x.rank(), a.syms(1)?.len());
    let [normal, mean, inverse] = normalized(x, &dims, a.float(4)?);
    let out = affine(normal, s.optional(a, 2), s.optional(a, 3));
    s.results(&[Some(out), Some(mean), Some(inverse)])
}

/// `native_layer_norm_backward`.
pub fn layer_norm_backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let (g, x, mean, inverse) = (s.wide(a, 0), s.wide(a, 1), s.wide(a, 3), s.wide(a, 4));
    let (rows, dims) = split(x.rank(), a.syms(2)?.len());
    let wanted = mask(a, 7);
    let normal = (x - mean) * inverse;
    let scaled = affine(g, s.optional(a, 5), None);
    s.results(&[
        wanted[0].then(|| centred_gradient(scaled, normal, inverse, &dims)),
        wanted[1].then(|| (g * normal).sum_out(&rows)),
        wanted[2].then(|| g.sum_out(&rows)),
    ])
}

/// `_fused_rms_norm`.
pub fn rms_norm(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let x = s.wide(a, 0);
    let (_, dims) = split(x.rank(), a.syms(1)?.len());
    let least = if x.dtype() == Some(DType::F64) { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let inverse = (x.square().mean(&dims) + a.opt_float(3)?.unwrap_or(least)).rsqrt();
    s.results(&[Some(affine(x * inverse, s.optional(a, 2), None)), Some(inverse)])
}

/// `_fused_rms_norm_backward`.
pub fn rms_norm_backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let (g, x, inverse, weight) = (s.wide(a, 0), s.wide(a, 1), s.wide(a, 3), s.optional(a, 4));
    let (rows, dims) = split(x.rank(), a.syms(2)?.len());
    let wanted = mask(a, 5);
    let normal = x * inverse;
    let scaled = affine(g, weight, None);
    s.results(&[
        wanted[0].then(|| inverse * (scaled - normal * (scaled * normal).mean(&dims))),
        weight.filter(|_| wanted[1]).map(|_| (g * normal).sum_out(&rows)),
    ])
}

/// The sizes of group norm from the position of its number of samples: samples, groups, channels of a group, and
/// elements of a channel.
fn groups(a: &Args<'_, Handle>, first: usize) -> Result<[SymInt; 4], OpError> {
    let groups = a.sym(first + 3)?;
    let channels = a.sym(first + 1)?.floor_div(&groups);
    Ok([a.sym(first)?, groups, channels, a.sym(first + 2)?])
}

/// `native_group_norm`. The deviations of elements are written twice: those that the variance is taken of run over whole
/// groups, those that are scaled over channels, and loops of different shapes would pass them on through memory.
pub fn group_norm(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let x = s.wide(a, 0);
    let sizes @ [samples, count, channels, rest] = &groups(a, 3)?;
    let one = SymInt::Int(1);
    let by_channels = x.reshape(sizes);
    let whole = by_channels.reshape(&[samples.clone(), count.clone(), channels * rest]);
    let mean = whole.mean(&[2]);
    let inverse = ((whole - mean).square().mean(&[2]) + a.float(7)?).rsqrt();
    let spread = [samples.clone(), count.clone(), one.clone(), one.clone()];
    let normal = (by_channels - mean.reshape(&spread)) * inverse.reshape(&spread);
    let parameter = |index| s.optional(a, index).map(|p| p.reshape(&[count.clone(), channels.clone(), one.clone()]));
    let out = affine(normal, parameter(1), parameter(2)).reshape(&x.shape());
    let statistics = [samples.clone(), count.clone()];
    s.results(&[Some(out), Some(mean.reshape(&statistics)), Some(inverse.reshape(&statistics))])
}

/// `native_group_norm_backward`. What is summed over whole groups is summed over channels first: that is what the gradients
/// of weight and bias need too, so the elements are read once for all sums and once for the gradient of the input.
pub fn group_norm_backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let x = s.wide(a, 1);
    let sizes @ [samples, count, channels, rest] = &groups(a, 5)?;
    let one = SymInt::Int(1);
    let statistics = [samples.clone(), count.clone(), one.clone(), one.clone()];
    let g = s.wide(a, 0).reshape(sizes);
    let inverse = s.wide(a, 3).reshape(&statistics);
    let normal = (x.reshape(sizes) - s.wide(a, 2).reshape(&statistics)) * inverse;
    let weight = s.optional(a, 4).map(|w| w.reshape(&[count.clone(), channels.clone(), one.clone()]));
    let elements = channels * rest;
    let (sum, product) = (g.sum(&[3]), (g * normal).sum(&[3]));
    let mean = |sums| affine(sums, weight, None).sum(&[2]) / s.term(&elements);
    let flat = [a.sym(6)?];
    let wanted = mask(a, 9);
    let of_input = || inverse * (affine(g, weight, None) - mean(sum) - normal * mean(product));
    s.results(&[
        wanted[0].then(|| of_input().reshape(&x.shape())),
        wanted[1].then(|| product.sum_out(&[0, 3]).reshape(&flat)),
        wanted[2].then(|| sum.sum_out(&[0, 3]).reshape(&flat)),
    ])
}

/// What the variants of batch norm share. By running statistics nothing is saved; by those of the batch, running ones
/// move towards them.
struct Batch<'s> {
    out: Term<'s>,
    saved: [Term<'s>; 2],
    /// The running statistics after the call, where there are any.
    running: Option<[Term<'s>; 2]>,
}

/// By which statistics a batch norm normalizes.
#[derive(Clone, Copy, PartialEq)]
enum Statistics {
    Batch,
    Running,
}

impl Statistics {
    fn chosen(training: bool) -> Self {
        if training { Self::Batch } else { Self::Running }
    }
}

/// All dimensions but that of the channels.
fn around_channels(rank: usize) -> Vec<usize> {
    (0..rank).filter(|d| *d != 1).collect()
}

fn batch<'s>(
    s: &'s Sheet<'_>,
    a: &Args<'_, Handle>,
    by: Statistics,
    running: Option<usize>,
    momentum: usize,
) -> Result<Batch<'s>, OpError> {
    let x = s.wide(a, 0);
    let rank = x.rank();
    let dims = around_channels(rank);
    let (factor, eps) = (a.float(momentum)?, a.float(momentum + 1)?);
    let given = running.and_then(|at| Some([s.optional(a, at)?.like(x), s.optional(a, at + 1)?.like(x)]));
    let spread = |index| s.optional(a, index).map(|p| p.along(1, rank));
    if let (Statistics::Running, Some([mean, var])) = (by, given) {
        let none = s.full(&[SymInt::Int(0)], 0.0, x.dtype().unwrap_or(DType::F32));
        let normal = (x - mean.along(1, rank)) * (var + eps).rsqrt().along(1, rank);
        return Ok(Batch { out: affine(normal, spread(1), spread(2)), saved: [none, none], running: given });
    }
    let mean = x.mean(&dims);
    let centred = x - mean;
    let var = centred.square().mean(&dims);
    let inverse = (var + eps).rsqrt();
    let channels = [x.shape()[1].clone()];
    let flat = |term: Term<'s>| term.reshape(&channels);
    let running = given.map(|[old_mean, old_var]| {
        let count = count(&x.shape(), &dims);
        // The variance of a single element has no unbiased estimate: zero by zero.
        let unbiased = flat(var) * s.term(&count) / s.term(&count - SymInt::Int(1));
        [flat(mean) * factor + old_mean * (1.0 - factor), unbiased * factor + old_var * (1.0 - factor)]
    });
    let saved = [flat(mean), flat(inverse)];
    Ok(Batch { out: affine(centred * inverse, spread(1), spread(2)), saved, running })
}

/// The results of a batch norm; running statistics that moved are written where the operator writes them.
fn written(s: &Sheet<'_>, a: &Args<'_, Handle>, made: &Batch<'_>, by: Statistics) {
    if let (Some(moved), Statistics::Batch) = (made.running, by) {
        for (index, term) in moved.into_iter().enumerate() {
            let target = s.term(a.value(3 + index).clone());
            let _ = target.with("aten.copy_.default", term);
        }
    }
}

/// `native_batch_norm` and `_native_batch_norm_legit`.
pub fn batch_norm(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let by = Statistics::chosen(a.bool(5)?);
    let made = batch(&s, a, by, Some(3), 6)?;
    written(&s, a, &made, by);
    s.results(&[Some(made.out), Some(made.saved[0]), Some(made.saved[1])])
}

/// `_native_batch_norm_legit.no_stats`.
pub fn batch_norm_no_stats(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let made = batch(&s, a, Statistics::Batch, None, 4)?;
    s.results(&[Some(made.out), Some(made.saved[0]), Some(made.saved[1])])
}

/// `_native_batch_norm_legit_no_training`.
pub fn batch_norm_no_training(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let made = batch(&s, a, Statistics::Running, Some(3), 5)?;
    s.results(&[Some(made.out), Some(made.saved[0]), Some(made.saved[1])])
}

/// `_native_batch_norm_legit_functional`.
pub fn batch_norm_functional(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let made = batch(&s, a, Statistics::chosen(a.bool(5)?), Some(3), 6)?;
    let [mean, var] = made.running.unwrap_or(made.saved);
    s.results(&[Some(made.out), Some(made.saved[0]), Some(made.saved[1]), Some(mean), Some(var)])
}

/// The bytes that a GPU's library keeps for the backward pass: none.
fn reserve<'s>(s: &'s Sheet<'_>) -> Term<'s> {
    s.full(&[SymInt::Int(0)], 0i64, DType::U8)
}

/// `_batch_norm_with_update`.
pub fn batch_norm_with_update(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let made = batch(&s, a, Statistics::Batch, Some(3), 5)?;
    written(&s, a, &made, Statistics::Batch);
    s.results(&[Some(made.out), Some(made.saved[0]), Some(made.saved[1]), Some(reserve(&s))])
}

/// `_batch_norm_with_update_functional`.
pub fn batch_norm_with_update_functional(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let made = batch(&s, a, Statistics::Batch, Some(3), 5)?;
    let [mean, var] = made.running.unwrap_or(made.saved);
    s.results(&[Some(made.out), Some(made.saved[0]), Some(made.saved[1]), Some(reserve(&s)), Some(mean), Some(var)])
}

/// `_batch_norm_no_update`.
pub fn batch_norm_no_update(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let made = batch(&s, a, Statistics::Running, Some(3), 5)?;
    s.results(&[Some(made.out), Some(made.saved[0]), Some(made.saved[1]), Some(reserve(&s))])
}

/// `native_batch_norm_backward` and `batch_norm_backward`.
pub fn batch_norm_backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let (g, x) = (s.wide(a, 0), s.wide(a, 1));
    let rank = x.rank();
    let dims = around_channels(rank);
    let by = Statistics::chosen(a.bool(7)?);
    let (mean, inverse) = match by {
        Statistics::Batch => (s.wide(a, 5), s.wide(a, 6)),
        Statistics::Running => (s.wide(a, 3), (s.wide(a, 4) + a.float(8)?).rsqrt()),
    };
    let (mean, inverse) = (mean.along(1, rank), inverse.along(1, rank));
    let normal = (x - mean) * inverse;
    let wanted = mask(a, 9);
    let scale = affine(inverse, s.optional(a, 2).map(|w| w.along(1, rank)), None);
    let of_input = || match by {
        // The statistics are constants: nothing flows through them.
        Statistics::Running => g * scale,
        Statistics::Batch => centred_gradient(g, normal, scale, &dims),
    };
    s.results(&[
        wanted[0].then(of_input),
        wanted[1].then(|| (g * normal).sum_out(&dims)),
        wanted[2].then(|| g.sum_out(&dims)),
    ])
}
