//! Batch norm: every channel by its statistics over the batch, or by running ones.
//!
//! In training the running statistics, where there are any, move towards those of the batch: means as they are,
//! variances unbiased.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Tag, Value, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Element, Tensor};

use super::{expect_float, expect_parameters, mask, parameter, statistic_dtype, wanted};
use crate::decompositions::norm as by;
use crate::derivatives::norm as d;
use crate::rules::image_like;
use pyrite_kernels::Carrier;
use pyrite_kernels::lanes::{Block, PARALLEL, elements, fill};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "Channels normalized over the batch or by running statistics, which training updates in place.",
        |a| forward_meta(a, &LEGIT),
        |c| forward(c, &LEGIT),
    )
    .derivative(d::batch_norm)
    .statistics(&[1, 2])
    .decompose(by::batch_norm)
    .samples(&[
        "f32[2, 4, 3, 5], f32[4], f32[4], None, None, True, 0.1, 1e-5",
        "f64[2, 4], None, None, f64[4], f64[4]{0.5..1.5}, False, 0.1, 1e-5",
        "bf16[2, 4, 3], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, False, 0.1, 1e-5",
    ]),
    OpDef::kernel(
        "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "Channels normalized over the batch or by running statistics, which training updates in place.",
        |a| forward_meta(a, &LEGIT),
        |c| forward(c, &LEGIT),
    )
    .tags(&[Tag::Core])
    .derivative(d::batch_norm)
    .statistics(&[1, 2])
    .decompose(by::batch_norm)
    .samples(&[
        "f32[2, 4, 3, 5], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, True, 0.1, 1e-5",
        "f32[2, 4, 3, 5]<[60, 1, 20, 4], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, True, 0.1, 1e-5",
        "f64[2, 4, 3], None, None, f64[4], f64[4]{0.5..1.5}, False, 0.1, 1e-5",
        "f32[0, 4, 3], None, None, f32[4], f32[4]{0.5..1.5}, False, 0.1, 1e-5",
    ]),
    OpDef::kernel(
        "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "Channels normalized over the batch.",
        |a| forward_meta(a, &NO_STATS),
        |c| forward(c, &NO_STATS),
    )
    .tags(&[Tag::Core])
    .derivative(d::batch_norm_no_stats)
    .statistics(&[1, 2])
    .decompose(by::batch_norm_no_stats)
    .samples(&["f32[2, 4, 3], f32[4], f32[4], True, 0.1, 1e-5"]),
    OpDef::kernel(
        "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "Channels normalized by running statistics.",
        |a| forward_meta(a, &NO_TRAINING),
        |c| forward(c, &NO_TRAINING),
    )
    .tags(&[Tag::Core])
    .derivative(d::batch_norm_by_running)
    .statistics(&[1, 2])
    .decompose(by::batch_norm_no_training)
    .samples(&[
        "f32[2, 4, 3], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, 0.1, 1e-5",
        "f16[2, 4], None, None, f16[4], f16[4]{0.5..1.5}, 0.1, 1e-5",
    ]),
    OpDef::kernel(
        "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
        "Channels normalized over the batch or by running statistics, and the updated running statistics.",
        |a| forward_meta(a, &LEGIT_FUNCTIONAL),
        |c| forward(c, &LEGIT_FUNCTIONAL),
    )
    .derivative(d::batch_norm)
    .statistics(&[1, 2])
    .constants(&[3, 4])
    .decompose(by::batch_norm_functional)
    .samples(&[
        "f32[2, 4, 3], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, True, 0.1, 1e-5",
        "f32[2, 4, 3], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, False, 0.1, 1e-5",
    ]),
    OpDef::kernel(
        "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        "Channels normalized over the batch; running statistics are updated in place. The last result is empty.",
        |a| forward_meta(a, &WITH_UPDATE),
        |c| forward(c, &WITH_UPDATE),
    )
    .derivative(d::batch_norm_by_batch)
    .statistics(&[1, 2])
    .decompose(by::batch_norm_with_update)
    .samples(&["f32[2, 4, 3], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, 0.1, 1e-5"]),
    OpDef::kernel(
        "aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
        "Channels normalized over the batch, and the updated running statistics.",
        |a| forward_meta(a, &WITH_UPDATE_FUNCTIONAL),
        |c| forward(c, &WITH_UPDATE_FUNCTIONAL),
    )
    .derivative(d::batch_norm_by_batch)
    .statistics(&[1, 2])
    .constants(&[4, 5])
    .decompose(by::batch_norm_with_update_functional)
    .samples(&["f32[2, 4, 3], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, 0.1, 1e-5"]),
    OpDef::kernel(
        "aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        "Channels normalized by running statistics. The last result is empty.",
        |a| forward_meta(a, &NO_UPDATE),
        |c| forward(c, &NO_UPDATE),
    )
    .derivative(d::batch_norm_by_running)
    .statistics(&[1, 2])
    .decompose(by::batch_norm_no_update)
    .samples(&["f32[2, 4, 3], f32[4], f32[4], f32[4], f32[4]{0.5..1.5}, 0.1, 1e-5"]),
    OpDef::kernel(
        "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        "The gradients of batch norm for input, weight and bias.",
        backward_meta,
        backward,
    )
    .derivative(d::batch_norm_backward)
    .decompose(by::batch_norm_backward)
    .samples(&[
        "f32[2, 4, 3], f32[2, 4, 3], f32[4], f32[4], f32[4], f32[4], f32[4], True, 1e-5, [True, True, True]",
        "f32[2, 4, 3, 5]<[60, 1, 20, 4], f32[2, 4, 3, 5]<[60, 1, 20, 4], f32[4], f32[4], f32[4], f32[4], f32[4], True, 1e-5, [True, True, True]",
        "f64[2, 4], f64[2, 4], None, f64[4], f64[4]{0.5..1.5}, None, None, False, 1e-5, [True, False, True]",
    ]),
    OpDef::kernel(
        "aten::batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)",
        "The gradients of batch norm for input, weight and bias.",
        backward_meta,
        backward,
    )
    .derivative(d::batch_norm_backward)
    .decompose(by::batch_norm_backward)
    .samples(&[
        "f32[2, 4, 3], f32[2, 4, 3], f32[4], f32[4], f32[4], f32[4], f32[4], True, 1e-5, [True, True, True], u8[0]",
    ]),
];

/// What distinguishes the variants of the forward operator.
struct Variant {
    /// The position of the running mean; the variance follows it.
    running: Option<usize>,
    training: Training,
    /// The position of the momentum; epsilon follows it.
    momentum: usize,
    /// Whether an empty tensor of bytes follows the saved statistics.
    reserve: bool,
    /// Whether updated statistics are results, not written in place.
    functional: bool,
}

enum Training {
    At(usize),
    Always,
    Never,
}

const LEGIT: Variant =
    Variant { running: Some(3), training: Training::At(5), momentum: 6, reserve: false, functional: false };
const NO_STATS: Variant =
    Variant { running: None, training: Training::At(3), momentum: 4, reserve: false, functional: false };
const NO_TRAINING: Variant =
    Variant { running: Some(3), training: Training::Never, momentum: 5, reserve: false, functional: false };
const LEGIT_FUNCTIONAL: Variant = Variant { functional: true, ..LEGIT };
const WITH_UPDATE: Variant = Variant { training: Training::Always, momentum: 5, reserve: true, ..LEGIT };
const WITH_UPDATE_FUNCTIONAL: Variant = Variant { functional: true, ..WITH_UPDATE };
const NO_UPDATE: Variant = Variant { reserve: true, ..NO_TRAINING };

impl Variant {
    fn training<T>(&self, args: &Args<'_, T>) -> Result<bool, OpError> {
        match self.training {
            Training::At(index) => args.bool(index),
            Training::Always => Ok(true),
            Training::Never => Ok(false),
        }
    }

    fn running<'a, T>(&self, args: &Args<'a, T>) -> Result<Option<(&'a T, &'a T)>, OpError> {
        let Some(index) = self.running else { return Ok(None) };
        Ok(args.opt_tensor(index)?.zip(args.opt_tensor(index + 1)?))
    }
}

fn forward_meta(a: &Args<'_, Meta>, variant: &Variant) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_float("batch norm", input)?;
    if input.rank() < 2 {
        invalid!("batch norm wants at least two dimensions, not {}", input.rank());
    }
    let channels = &input.shape[1];
    let running = variant.running(a)?;
    let params = [a.opt_tensor(1)?, a.opt_tensor(2)?, running.map(|r| r.0), running.map(|r| r.1)];
    expect_parameters("batch norm", input, &params)?;
    for param in params.into_iter().flatten() {
        if param.rank() != 1 || !param.numel().is_eq(channels) {
            invalid!("batch norm of {channels} channels got a parameter of shape {:?}", param.shape);
        }
    }
    let training = variant.training(a)?;
    if training && input.numel().is_eq(0) {
        invalid!("batch norm in training wants at least one element, not shape {:?}", input.shape);
    }
    if !training && running.is_none() {
        invalid!("batch norm outside of training wants running statistics");
    }
    let order = variant.running.map_or([1, 2, 1, 2], |r| [1, 2, r, r + 1]);
    let dtype = statistic_dtype(a, &order)?;
    let saved = if training { channels.clone() } else { SymInt::Int(0) };
    let saved = || input.fresh(std::slice::from_ref(&saved), dtype);
    let mut results = vec![image_like(input, &input.shape), saved(), saved()];
    if variant.reserve {
        results.push(input.fresh(&[SymInt::Int(0)], DType::U8));
    }
    if let Some((mean, var)) = running.filter(|_| variant.functional) {
        results.push(mean.fresh(&mean.shape, mean.dtype));
        results.push(var.fresh(&var.shape, var.dtype));
    }
    Ok(results.into())
}

/// A tensor with its dimensions in the order in which another lies in memory, and its channels in that order.
fn in_order_of(out: &Tensor) -> (Vec<usize>, Block) {
    let mut order: Vec<usize> = (0..out.rank()).collect();
    if !out.layout().is_contiguous() {
        // Channels last.
        order.remove(1);
        order.push(1);
    }
    let shape: Vec<i64> = order.iter().map(|d| out.shape()[*d]).collect();
    let channels = order.iter().position(|d| *d == 1).unwrap_or(0);
    (order, Block::new(&shape, channels))
}

/// Per channel the sums of what `term` says of a channel and a position.
fn channel_sums<const N: usize>(block: Block, term: impl Fn(usize, usize) -> [f64; N] + Sync) -> Vec<[f64; N]> {
    let Block { outer, len, inner } = block;
    let parallel = outer * len * inner >= PARALLEL;
    let pieces = if parallel { pyrite_threads::count().min(outer).max(1) } else { 1 };
    let partial: Vec<Vec<[f64; N]>> = pyrite_threads::map(pieces, |piece| {
        let mut sums = vec![[0.0; N]; len];
        for o in outer * piece / pieces..outer * (piece + 1) / pieces {
            for (c, sum) in sums.iter_mut().enumerate() {
                let start = (o * len + c) * inner;
                let mut own = [0.0; N];
                for at in start..start + inner {
                    let terms = term(c, at);
                    for (own, term) in own.iter_mut().zip(terms) {
                        *own += term;
                    }
                }
                for (sum, own) in sum.iter_mut().zip(own) {
                    *sum += own;
                }
            }
        }
        sums
    });
    let mut sums = vec![[0.0; N]; len];
    for part in partial {
        for (sum, part) in sums.iter_mut().zip(part) {
            for (sum, part) in sum.iter_mut().zip(part) {
                *sum += part;
            }
        }
    }
    sums
}

/// Fills a buffer channel by channel with what `value` says of a channel and a position.
fn fill_channels<T: Carrier>(to: &mut [T], block: Block, value: impl Fn(usize, usize) -> f64 + Sync + Send) {
    let Block { len, inner, .. } = block;
    let part = len * inner;
    let outer = |n: usize, to: &mut [T]| {
        for (c, to) in to.chunks_mut(inner).enumerate() {
            let start = n * part + c * inner;
            for (i, to) in to.iter_mut().enumerate() {
                *to = <T as Element>::from_f64(value(c, start + i));
            }
        }
    };
    if to.len() >= PARALLEL {
        pyrite_threads::chunks(to, part, outer);
    } else if !to.is_empty() {
        to.chunks_mut(part).enumerate().for_each(|(n, to)| outer(n, to));
    }
}

fn forward(call: &Call<'_>, variant: &Variant) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let (save_mean, save_invstd) = (call.allocate(1)?, call.allocate(2)?);
    let (order, block) = in_order_of(&out);
    let input = call.args.tensor(0)?.permuted(&order);
    let eps = call.args.float(variant.momentum + 1)?;
    let running = variant.running(&call.args)?;
    let training = variant.training(&call.args)?;
    let count = (block.outer * block.inner) as f64;
    let (mean, var) = match running {
        Some((mean, var)) if !training => (mean.to_f64s(), var.to_f64s()),
        _ if out.dtype() == DType::F64 => statistics(&elements::<f64>(&input), block),
        _ => statistics(&elements::<f32>(&input), block),
    };
    let invstd: Vec<f64> = var.iter().map(|v| 1.0 / (v + eps).sqrt()).collect();
    let weight = parameter(call.args.opt_tensor(1)?, block.len, 1.0);
    let bias = parameter(call.args.opt_tensor(2)?, block.len, 0.0);
    let scale: Vec<f64> = invstd.iter().zip(&weight).map(|(i, w)| i * w).collect();
    let dense = out.permuted(&order);
    if out.dtype() == DType::F64 {
        let from = elements::<f64>(&input);
        fill::<f64>(&dense, |to| fill_channels(to, block, |c, at| (from[at] - mean[c]) * scale[c] + bias[c]));
    } else {
        let from = elements::<f32>(&input);
        fill::<f32>(&dense, |to| {
            fill_channels(to, block, |c, at| (f64::from(from[at]) - mean[c]) * scale[c] + bias[c]);
        });
    }
    if training {
        save_mean.write_f64s(&mean);
        save_invstd.write_f64s(&invstd);
    }
    let mut results = vec![out, save_mean, save_invstd];
    if variant.reserve {
        results.push(call.allocate(3)?);
    }
    if let Some((running_mean, running_var)) = running {
        let momentum = call.args.float(variant.momentum)?;
        let moved = |old: &Tensor, new: &[f64], factor: f64| -> Vec<f64> {
            let towards = |(old, new): (&f64, &f64)| momentum * new * factor + (1.0 - momentum) * old;
            let old = old.to_f64s();
            if training { old.iter().zip(new).map(towards).collect() } else { old }
        };
        let unbiased = if count > 1.0 { count / (count - 1.0) } else { f64::NAN };
        let (new_mean, new_var) = (moved(running_mean, &mean, 1.0), moved(running_var, &var, unbiased));
        if variant.functional {
            let first = results.len();
            for (index, values) in [(first, new_mean), (first + 1, new_var)] {
                let result = call.allocate(index)?;
                result.write_f64s(&values);
                results.push(result);
            }
        } else if training {
            running_mean.write_f64s(&new_mean);
            running_var.write_f64s(&new_var);
        }
    }
    Ok(results.into())
}

/// The mean and the variance of every channel.
fn statistics<T: Carrier>(from: &[T], block: Block) -> (Vec<f64>, Vec<f64>) {
    let count = (block.outer * block.inner) as f64;
    let mean: Vec<f64> =
        channel_sums(block, |_, at| [from[at].to_f64()]).into_iter().map(|[sum]| sum / count).collect();
    let var = channel_sums(block, |c, at| {
        let centred = from[at].to_f64() - mean[c];
        [centred * centred]
    });
    let var = var.into_iter().map(|[sum]| sum / count).collect();
    (mean, var)
}

fn backward_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (grad, input) = (a.tensor(0)?, a.tensor(1)?);
    expect_float("batch norm", input)?;
    if input.rank() < 2 {
        invalid!("batch norm wants at least two dimensions, not {}", input.rank());
    }
    crate::rules::expect_same_shape("batch norm's gradient", &grad.shape, &input.shape)?;
    let (mean, var) = if a.bool(7)? { (5, 6) } else { (3, 4) };
    if a.opt_tensor(mean)?.is_none() || a.opt_tensor(var)?.is_none() {
        invalid!("the gradient of batch norm wants the statistics that normalized the input");
    }
    let flags = mask::<_, 3>(a, 9)?;
    let dtype = a.opt_tensor(2)?.map_or(input.dtype, |w| w.dtype);
    let channels = &input.shape[1..2];
    Ok(Value::List(vec![
        wanted(flags[0], || image_like(input, &input.shape)),
        wanted(flags[1], || input.fresh(channels, dtype)),
        wanted(flags[2], || input.fresh(channels, dtype)),
    ]))
}

fn backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    match call.args.tensor(1)?.dtype() {
        DType::F64 => backward_in::<f64>(call),
        _ => backward_in::<f32>(call),
    }
}

fn backward_in<T: Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let flags = mask::<_, 3>(&call.args, 9)?;
    let input = Meta::of(call.args.tensor(1)?);
    let layout = image_like(&input, &input.shape).layout()?;
    let out = Tensor::empty_strided(&layout.shape, &layout.stride, call.args.tensor(1)?.dtype())?;
    let (order, block) = in_order_of(&out);
    let (grad, input) = (call.args.tensor(0)?.permuted(&order), call.args.tensor(1)?.permuted(&order));
    let (grad, input) = (elements::<T>(&grad), elements::<T>(&input));
    let train = call.args.bool(7)?;
    let (mean, invstd) = if train {
        (call.args.tensor(5)?.to_f64s(), call.args.tensor(6)?.to_f64s())
    } else {
        let eps = call.args.float(8)?;
        let var = call.args.tensor(4)?.to_f64s();
        (call.args.tensor(3)?.to_f64s(), var.iter().map(|v| 1.0 / (v + eps).sqrt()).collect())
    };
    if mean.len() != block.len || invstd.len() != block.len {
        invalid!("batch norm of {} channels got {} means and {} deviations", block.len, mean.len(), invstd.len());
    }
    let weight = parameter(call.args.opt_tensor(2)?, block.len, 1.0);
    let sums = channel_sums(block, |c, at| {
        let g = grad[at].to_f64();
        [g * (input[at].to_f64() - mean[c]), g]
    });
    let mut results = vec![Value::None, Value::None, Value::None];
    if flags[0] {
        let count = (block.outer * block.inner) as f64;
        let scale: Vec<f64> = invstd.iter().zip(&weight).map(|(i, w)| i * w).collect();
        // In evaluation the statistics are constants: nothing flows through them.
        let through: Vec<(f64, f64)> = sums
            .iter()
            .zip(&invstd)
            .map(|([dot, sum], i)| if train { (sum / count, dot * i * i / count) } else { (0.0, 0.0) })
            .collect();
        fill::<T>(&out.permuted(&order), |to| {
            fill_channels(to, block, |c, at| {
                let centred = input[at].to_f64() - mean[c];
                (grad[at].to_f64() - through[c].0 - centred * through[c].1) * scale[c]
            });
        });
        results[0] = out.into();
    }
    let columns: [Vec<f64>; 2] =
        [sums.iter().zip(&invstd).map(|([dot, _], i)| dot * i).collect(), sums.iter().map(|[_, sum]| *sum).collect()];
    for (index, values) in columns.iter().enumerate() {
        if flags[index + 1] {
            let result = call.allocate(index + 1)?;
            result.write_f64s(values);
            results[index + 1] = result.into();
        }
    }
    Ok(Value::List(results))
}
