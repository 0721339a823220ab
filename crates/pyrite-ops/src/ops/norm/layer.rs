//! Layer norm and RMS norm: every row by its own statistics.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, SymDims, Tag, Value, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Element, Tensor};

use super::{expect_float, expect_parameters, mask, parameter, statistic_dtype, wanted};
use crate::decompositions::norm as by;
use crate::derivatives::norm as d;
use pyrite_kernels::Carrier;
use pyrite_kernels::lanes::{PARALLEL, elements, fill, sum_row};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
        "Rows with mean 0 and variance 1, scaled and shifted; also the means and inverse deviations.",
        |a| {
            let (input, shape) = (a.tensor(0)?, statistic_shape(a)?);
            expect_parameters("layer norm", input, &[a.opt_tensor(2)?, a.opt_tensor(3)?])?;
            let dtype = statistic_dtype(a, &[2, 3])?;
            let result = input.fresh(&input.shape, input.dtype);
            Ok(vec![result, input.fresh(&shape, dtype), input.fresh(&shape, dtype)].into())
        },
        |c| match c.args.tensor(0)?.dtype() {
            DType::F64 => forward::<f64>(c),
            _ => forward::<f32>(c),
        },
    )
    .tags(&[Tag::Core])
    .derivative(d::layer_norm)
    .statistics(&[1, 2])
    .decompose(by::layer_norm)
    .samples(&[
        "f32[2, 3, 8], [8], f32[8], f32[8], 1e-5",
        "f64[2, 3, 4], [3, 4], None, None, 1e-5",
        "bf16[4, 6], [6], f32[6], f32[6], 1e-5",
        "f32[4, 6]<[1, 4], [6], f32[6], None, 1e-5",
        "f32[0, 6], [6], None, None, 1e-5",
        "f32[64, 768], [768], f32[768], f32[768], 1e-5",
    ]),
    OpDef::kernel(
        "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        "The gradients of layer norm for input, weight and bias.",
        backward_meta,
        |c| match c.args.tensor(1)?.dtype() {
            DType::F64 => backward::<f64>(c),
            _ => backward::<f32>(c),
        },
    )
    .tags(&[Tag::Core])
    .derivative(d::layer_norm_backward)
    .decompose(by::layer_norm_backward)
    .samples(&[
        "f32[2, 3, 8], f32[2, 3, 8], [8], f32[2, 3, 1], f32[2, 3, 1], f32[8], f32[8], [True, True, True]",
        "f64[4, 3], f64[4, 3], [3], f64[4, 1], f64[4, 1], f64[3], None, [True, False, False]",
        "bf16[4, 3], bf16[4, 3], [3], f32[4, 1], f32[4, 1], f32[3], f32[3], [True, True, True]",
        "f32[64, 768], f32[64, 768], [768], f32[64, 1], f32[64, 1], f32[768], f32[768], [True, True, True]",
    ]),
    OpDef::kernel(
        "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
        "Rows divided by the root of their mean square, scaled; also the inverse roots.",
        |a| {
            let (input, shape) = (a.tensor(0)?, statistic_shape(a)?);
            let result = input.fresh(&input.shape, input.dtype);
            Ok(vec![result, input.fresh(&shape, input.dtype.to_compute())].into())
        },
        |c| match c.args.tensor(0)?.dtype() {
            DType::F64 => rms_forward::<f64>(c),
            _ => rms_forward::<f32>(c),
        },
    )
    .derivative(d::rms_norm)
    .decompose(by::rms_norm)
    .samples(&["f32[2, 3, 8], [8], f32[8], 1e-5", "f64[2, 3], [3], None, None", "bf16[2, 4], [4], None, 1e-5"]),
    OpDef::kernel(
        "aten::_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)",
        "The gradients of RMS norm for input and weight.",
        |a| {
            let (input, flags) = (a.tensor(1)?, mask::<_, 2>(a, 5)?);
            let weight = a.opt_tensor(4)?;
            Ok(Value::List(vec![
                wanted(flags[0], || input.fresh(&input.shape, input.dtype)),
                match weight {
                    Some(weight) if flags[1] => input.fresh(&weight.shape, weight.dtype).into(),
                    _ => Value::None,
                },
            ]))
        },
        |c| match c.args.tensor(1)?.dtype() {
            DType::F64 => rms_backward::<f64>(c),
            _ => rms_backward::<f32>(c),
        },
    )
    .derivative(d::rms_norm_backward)
    .decompose(by::rms_norm_backward)
    .samples(&["f32[4, 3], f32[4, 3], [3], f32[4, 1], f32[3], [True, True]"]),
];

/// The shape of the rows' statistics; checks that the input ends with the normalized shape.
fn statistic_shape(a: &Args<'_, Meta>) -> Result<SymDims, OpError> {
    let input = a.tensor(0)?;
    expect_float("layer norm", input)?;
    let normalized = a.syms(1)?;
    check(input, &normalized)?;
    // RMS norm has no bias: a number stands in its place.
    let bias = a.value(3).as_tensor();
    for param in a.opt_tensor(2)?.into_iter().chain(bias) {
        if param.rank() != normalized.len() || param.shape.iter().zip(&normalized).any(|(a, b)| !a.is_eq(b)) {
            invalid!("a parameter of shape {:?} is not of the normalized shape {normalized:?}", param.shape);
        }
    }
    let lead = input.rank() - normalized.len();
    Ok((0..input.rank()).map(|d| if d < lead { input.shape[d].clone() } else { SymInt::Int(1) }).collect())
}

fn check(input: &Meta, normalized: &[SymInt]) -> Result<(), OpError> {
    let lead = input.rank().checked_sub(normalized.len());
    let fits = !normalized.is_empty()
        && lead.is_some_and(|lead| input.shape[lead..].iter().zip(normalized).all(|(a, b)| a.is_eq(b)));
    if !fits {
        invalid!("the input of shape {:?} does not end with the normalized shape {normalized:?}", input.shape);
    }
    Ok(())
}

/// The length of a row.
fn row_length(call: &Call<'_>, index: usize) -> Result<usize, OpError> {
    Ok(call.args.ints(index)?.iter().product::<i64>() as usize)
}

/// Rows of a buffer with one number each, on many threads when there is much to do.
fn each_row<T: Carrier, R: Send>(to: &mut [T], row: usize, f: impl Fn(usize, &mut [T]) -> R + Sync + Send) -> Vec<R> {
    if row == 0 {
        return Vec::new();
    }
    if to.len() >= PARALLEL {
        pyrite_threads::map_chunks(to, row, f)
    } else {
        to.chunks_mut(row).enumerate().map(|(n, to)| f(n, to)).collect()
    }
}

fn forward<T: Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (out, mean, rstd) = (call.allocate(0)?, call.allocate(1)?, call.allocate(2)?);
    let row = row_length(call, 1)?;
    let weight = parameter(call.args.opt_tensor(2)?, row, 1.0);
    let bias = parameter(call.args.opt_tensor(3)?, row, 0.0);
    let eps = call.args.float(4)?;
    if row == 0 {
        mean.write_f64s(&vec![0.0; mean.numel()]);
        rstd.write_f64s(&vec![f64::NAN; rstd.numel()]);
        return Ok(vec![out, mean, rstd].into());
    }
    let from = elements::<T>(call.args.tensor(0)?);
    let mut statistics = Vec::new();
    fill::<T>(&out, |to| {
        statistics = each_row(to, row, |n, to| {
            let from = &from[n * row..(n + 1) * row];
            let mean = sum_row(from, |x| x) / row as f64;
            let rstd = 1.0 / (sum_row(from, |x| (x - mean) * (x - mean)) / row as f64 + eps).sqrt();
            for (((to, x), w), b) in to.iter_mut().zip(from).zip(&weight).zip(&bias) {
                *to = <T as Element>::from_f64((x.to_f64() - mean) * rstd * w + b);
            }
            (mean, rstd)
        });
    });
    mean.write_f64s(&statistics.iter().map(|s| s.0).collect::<Vec<_>>());
    rstd.write_f64s(&statistics.iter().map(|s| s.1).collect::<Vec<_>>());
    Ok(vec![out, mean, rstd].into())
}

fn backward_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (input, normalized) = (a.tensor(1)?, a.syms(2)?);
    expect_float("layer norm", input)?;
    check(input, &normalized)?;
    let flags = mask::<_, 3>(a, 7)?;
    let Some(weight) = a.opt_tensor(5)?.or(a.opt_tensor(6)?) else {
        if flags[1] || flags[2] {
            invalid!("a gradient of layer norm's parameters is wanted, but there are none");
        }
        return Ok(Value::List(vec![
            wanted(flags[0], || input.fresh(&input.shape, input.dtype)),
            Value::None,
            Value::None,
        ]));
    };
    let parameter = |want| wanted(want, || input.fresh(&normalized, weight.dtype));
    Ok(Value::List(vec![
        wanted(flags[0], || input.fresh(&input.shape, input.dtype)),
        parameter(flags[1]),
        parameter(flags[2]),
    ]))
}

fn backward<T: Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let flags = mask::<_, 3>(&call.args, 7)?;
    let row = row_length(call, 2)?;
    let grad = elements::<T>(call.args.tensor(0)?);
    let input = elements::<T>(call.args.tensor(1)?);
    let (mean, rstd) = (call.args.tensor(3)?.to_f64s(), call.args.tensor(4)?.to_f64s());
    let weight = parameter(call.args.opt_tensor(5)?, row, 1.0);
    let mut results = vec![Value::None, Value::None, Value::None];
    if flags[0] {
        let out = call.allocate(0)?;
        fill::<T>(&out, |to| {
            each_row(to, row, |n, to| {
                let at = n * row..(n + 1) * row;
                row_gradient(&grad[at.clone()], &input[at], &weight, Some(mean[n]), rstd[n], to);
            });
        });
        results[0] = out.into();
    }
    if flags[1] || flags[2] {
        let sums = column_sums(&grad, &input, row, |n| (mean[n], rstd[n]));
        for (index, sums) in [(1, &sums.0), (2, &sums.1)] {
            if flags[index] {
                let out = call.allocate(index)?;
                out.write_f64s(sums);
                results[index] = out.into();
            }
        }
    }
    Ok(Value::List(results))
}

/// The gradient of a row; without a mean the row was not centred.
fn row_gradient<T: Carrier>(grad: &[T], input: &[T], weight: &[f64], mean: Option<f64>, rstd: f64, to: &mut [T]) {
    let count = grad.len() as f64;
    let centre = mean.unwrap_or(0.0);
    let (mut sum, mut dot) = (0.0, 0.0);
    for ((g, x), w) in grad.iter().zip(input).zip(weight) {
        let g = g.to_f64() * w;
        sum += g;
        dot += g * (x.to_f64() - centre) * rstd;
    }
    let sum = if mean.is_some() { sum / count } else { 0.0 };
    let dot = dot / count;
    for (((to, g), x), w) in to.iter_mut().zip(grad).zip(input).zip(weight) {
        let normal = (x.to_f64() - centre) * rstd;
        *to = <T as Element>::from_f64(rstd * (g.to_f64() * w - sum - normal * dot));
    }
}

/// Per column the sums of `grad · normalized input` and of `grad`.
fn column_sums<T: Carrier>(
    grad: &[T],
    input: &[T],
    row: usize,
    statistics: impl Fn(usize) -> (f64, f64) + Sync,
) -> (Vec<f64>, Vec<f64>) {
    let empty = || (vec![0.0; row], vec![0.0; row]);
    if row == 0 || grad.is_empty() {
        return empty();
    }
    let rows = grad.len() / row;
    let pieces = if grad.len() >= PARALLEL { pyrite_threads::count().min(rows) } else { 1 };
    let partial: Vec<(Vec<f64>, Vec<f64>)> = pyrite_threads::map(pieces, |piece| {
        let (mut dots, mut sums) = empty();
        for n in rows * piece / pieces..rows * (piece + 1) / pieces {
            let (mean, rstd) = statistics(n);
            let at = n * row..(n + 1) * row;
            for (((g, x), dot), sum) in grad[at.clone()].iter().zip(&input[at]).zip(&mut dots).zip(&mut sums) {
                *dot += g.to_f64() * (x.to_f64() - mean) * rstd;
                *sum += g.to_f64();
            }
        }
        (dots, sums)
    });
    partial.into_iter().fold(empty(), |mut all, part| {
        all.0.iter_mut().zip(part.0).for_each(|(a, p)| *a += p);
        all.1.iter_mut().zip(part.1).for_each(|(a, p)| *a += p);
        all
    })
}

fn rms_forward<T: Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (out, rstd) = (call.allocate(0)?, call.allocate(1)?);
    let row = row_length(call, 1)?;
    let weight = parameter(call.args.opt_tensor(2)?, row, 1.0);
    let eps = call.args.opt_float(3)?.unwrap_or(match T::DTYPE {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    });
    let from = elements::<T>(call.args.tensor(0)?);
    let mut roots = vec![f64::NAN; rstd.numel()];
    if row > 0 {
        fill::<T>(&out, |to| {
            roots = each_row(to, row, |n, to| {
                let from = &from[n * row..(n + 1) * row];
                let rstd = 1.0 / (sum_row(from, |x| x * x) / row as f64 + eps).sqrt();
                for ((to, x), w) in to.iter_mut().zip(from).zip(&weight) {
                    *to = <T as Element>::from_f64(x.to_f64() * rstd * w);
                }
                rstd
            });
        });
    }
    rstd.write_f64s(&roots);
    Ok(vec![out, rstd].into())
}

fn rms_backward<T: Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let flags = mask::<_, 2>(&call.args, 5)?;
    let row = row_length(call, 2)?;
    let grad = elements::<T>(call.args.tensor(0)?);
    let input = elements::<T>(call.args.tensor(1)?);
    let rstd = call.args.tensor(3)?.to_f64s();
    let weight = call.args.opt_tensor(4)?;
    let mut results = vec![Value::None, Value::None];
    if flags[0] {
        let scale = parameter(weight, row, 1.0);
        let out = call.allocate(0)?;
        fill::<T>(&out, |to| {
            each_row(to, row, |n, to| {
                let at = n * row..(n + 1) * row;
                row_gradient(&grad[at.clone()], &input[at], &scale, None, rstd[n], to);
            });
        });
        results[0] = out.into();
    }
    if flags[1] && weight.is_some() {
        let out = call.allocate(1)?;
        out.write_f64s(&column_sums(&grad, &input, row, |n| (0.0, rstd[n])).0);
        results[1] = out.into();
    }
    Ok(Value::List(results))
}
