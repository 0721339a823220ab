//! Group norm: every group of channels of every sample by its own statistics.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Tag, Value, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Element, Tensor};

use super::{expect_float, expect_parameters, mask, parameter, statistic_dtype, wanted};
use crate::decompositions::norm as by;
use crate::derivatives::norm as d;
use crate::rules::image_like;
use pyrite_kernels::Carrier;
use pyrite_kernels::lanes::{elements, fill};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
        "Groups of channels with mean 0 and variance 1, scaled and shifted; also means and inverse deviations.",
        |a| {
            let input = a.tensor(0)?;
            expect_float("group norm", input)?;
            let groups = check(input, [&a.sym(3)?, &a.sym(4)?, &a.sym(5)?], a.int(6)?)?;
            let params = [a.opt_tensor(1)?, a.opt_tensor(2)?];
            expect_parameters("group norm", input, &params)?;
            for param in params.into_iter().flatten() {
                if param.rank() != 1 || !param.shape[0].is_eq(a.sym(4)?) {
                    invalid!("group norm of {} channels got a parameter of shape {:?}", a.sym(4)?, param.shape);
                }
            }
            let dtype = statistic_dtype(a, &[1, 2])?;
            let shape = [a.sym(3)?, SymInt::Int(groups)];
            Ok(vec![image_like(input, &input.shape), input.fresh(&shape, dtype), input.fresh(&shape, dtype)].into())
        },
        |c| match c.args.tensor(0)?.dtype() {
            DType::F64 => forward::<f64>(c),
            _ => forward::<f32>(c),
        },
    )
    .tags(&[Tag::Core])
    .derivative(d::group_norm)
    .decompose(by::group_norm)
    .samples(&[
        "f32[2, 4, 3, 5], f32[4], f32[4], 2, 4, 15, 2, 1e-5",
        "f64[2, 4, 3, 5]<[60, 1, 20, 4], None, None, 2, 4, 15, 4, 1e-5",
        "bf16[2, 6], f32[6], f32[6], 2, 6, 1, 3, 1e-5",
        "f32[0, 4, 3], None, None, 0, 4, 3, 2, 1e-5",
    ]),
    OpDef::kernel(
        "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        "The gradients of group norm for input, weight and bias.",
        backward_meta,
        |c| match c.args.tensor(1)?.dtype() {
            DType::F64 => backward::<f64>(c),
            _ => backward::<f32>(c),
        },
    )
    .tags(&[Tag::Core])
    .derivative(d::group_norm_backward)
    .decompose(by::group_norm_backward)
    .samples(&[
        "f32[2, 4, 3], f32[2, 4, 3], f32[2, 2], f32[2, 2], f32[4], 2, 4, 3, 2, [True, True, True]",
        "f64[2, 4, 3], f64[2, 4, 3], f64[2, 2], f64[2, 2], None, 2, 4, 3, 2, [True, False, False]",
    ]),
];

/// Checks the sizes given beside the input and returns the number of groups.
fn check(input: &Meta, [n, c, rest]: [&SymInt; 3], groups: i64) -> Result<i64, OpError> {
    if c.is_eq(0) || rest.is_eq(0) {
        invalid!("group norm wants channels and elements in each, not {c} of {rest}");
    }
    if groups < 1 || !c.modulo(&SymInt::Int(groups)).is_eq(0) {
        invalid!("{c} channels do not make {groups} groups");
    }
    if !input.numel().is_eq(n * c * rest) {
        invalid!("an input of shape {:?} is not {n} samples of {c} channels of {rest} elements", input.shape);
    }
    Ok(groups)
}

/// The sizes of a call, from the position of `N`: samples, channels, elements per channel, groups.
fn sizes(call: &Call<'_>, first: usize) -> Result<[usize; 4], OpError> {
    let at = |i: usize| call.args.int(first + i).map(|v| v as usize);
    Ok([at(0)?, at(1)?, at(2)?, at(3)?])
}

fn forward<T: Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (out, mean, rstd) = (call.allocate(0)?, call.allocate(1)?, call.allocate(2)?);
    let [_, channels, rest, groups] = sizes(call, 3)?;
    let weight = parameter(call.args.opt_tensor(1)?, channels, 1.0);
    let bias = parameter(call.args.opt_tensor(2)?, channels, 0.0);
    let eps = call.args.float(7)?;
    let per_group = channels / groups;
    let row = per_group * rest;
    let from = elements::<T>(call.args.tensor(0)?);
    let mut statistics = vec![(0.0, f64::NAN); mean.numel()];
    if row > 0 {
        fill::<T>(&out, |to| {
            statistics = pyrite_threads::map_chunks(to, row, |n, to| {
                let from = &from[n * row..(n + 1) * row];
                let mean = from.iter().map(|x| x.to_f64()).sum::<f64>() / row as f64;
                let square = |x: &T| (x.to_f64() - mean) * (x.to_f64() - mean);
                let rstd = 1.0 / (from.iter().map(square).sum::<f64>() / row as f64 + eps).sqrt();
                for (c, (to, from)) in to.chunks_mut(rest).zip(from.chunks(rest)).enumerate() {
                    let channel = n % groups * per_group + c;
                    let (w, b) = (weight[channel] * rstd, bias[channel]);
                    for (to, x) in to.iter_mut().zip(from) {
                        *to = <T as Element>::from_f64((x.to_f64() - mean) * w + b);
                    }
                }
                (mean, rstd)
            });
        });
    }
    mean.write_f64s(&statistics.iter().map(|s| s.0).collect::<Vec<_>>());
    rstd.write_f64s(&statistics.iter().map(|s| s.1).collect::<Vec<_>>());
    Ok(vec![out, mean, rstd].into())
}

fn backward_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(1)?;
    expect_float("group norm", input)?;
    check(input, [&a.sym(5)?, &a.sym(6)?, &a.sym(7)?], a.int(8)?)?;
    let flags = mask::<_, 3>(a, 9)?;
    let dtype = a.opt_tensor(4)?.map_or(input.dtype, |w| w.dtype);
    let channels = [a.sym(6)?];
    Ok(Value::List(vec![
        wanted(flags[0], || image_like(input, &input.shape)),
        wanted(flags[1], || input.fresh(&channels, dtype)),
        wanted(flags[2], || input.fresh(&channels, dtype)),
    ]))
}

fn backward<T: Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let flags = mask::<_, 3>(&call.args, 9)?;
    let [samples, channels, rest, groups] = sizes(call, 5)?;
    let grad = elements::<T>(call.args.tensor(0)?);
    let input = elements::<T>(call.args.tensor(1)?);
    let (mean, rstd) = (call.args.tensor(2)?.to_f64s(), call.args.tensor(3)?.to_f64s());
    let weight = parameter(call.args.opt_tensor(4)?, channels, 1.0);
    let per_group = channels / groups;
    // Per sample and channel the sums of `grad · (input - mean)` and of `grad`.
    let sums: Vec<(f64, f64)> = pyrite_threads::map(samples * channels, |nc| {
        let mean = mean[nc / per_group];
        let at = nc * rest..(nc + 1) * rest;
        grad[at.clone()]
            .iter()
            .zip(&input[at])
            .fold((0.0, 0.0), |(dot, sum), (g, x)| (dot + g.to_f64() * (x.to_f64() - mean), sum + g.to_f64()))
    });
    let mut results = vec![Value::None, Value::None, Value::None];
    if flags[0] {
        let out = call.allocate(0)?;
        let row = per_group * rest;
        if row > 0 {
            fill::<T>(&out, |to| {
                pyrite_threads::chunks(to, row, |ng, to| {
                    let first = ng % groups * per_group;
                    let (mut dot, mut sum) = (0.0, 0.0);
                    for (c, part) in sums[ng * per_group..(ng + 1) * per_group].iter().enumerate() {
                        dot += part.0 * weight[first + c];
                        sum += part.1 * weight[first + c];
                    }
                    let (mean, rstd) = (mean[ng], rstd[ng]);
                    let (sum, dot) = (sum / row as f64, dot * rstd * rstd / row as f64);
                    for (i, to) in to.iter_mut().enumerate() {
                        let at = ng * row + i;
                        let g = grad[at].to_f64() * weight[first + i / rest];
                        *to = <T as Element>::from_f64(rstd * (g - sum - (input[at].to_f64() - mean) * dot));
                    }
                });
            });
        }
        results[0] = out.into();
    }
    let over_samples = |term: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..channels).map(|c| (0..samples).map(|n| term(n * channels + c)).sum()).collect()
    };
    if flags[1] {
        let out = call.allocate(1)?;
        out.write_f64s(&over_samples(&|nc| sums[nc].0 * rstd[nc / per_group]));
        results[1] = out.into();
    }
    if flags[2] {
        let out = call.allocate(2)?;
        out.write_f64s(&over_samples(&|nc| sums[nc].1));
        results[2] = out.into();
    }
    Ok(Value::List(results))
}
