//! Norms, distances and log-sum-exp.

use num_complex::Complex64;
use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Value, args, invalid};
use pyrite_tensor::{DType, Tensor};

use super::{expect_elements, listed, reduced};
use crate::decompositions::reduce as by;
use crate::derivatives::reduce as d;
use crate::rules::wrap_dim;
use pyrite_kernels::lanes::{accumulate, reduce};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "The norm of the given order over dimensions.",
        vector_norm_meta,
        vector_norm,
    )
    .derivative(d::vector_norm)
    .decompose(by::vector_norm)
    .samples(&[
        "f32[3, 4]",
        "f32[3, 4], 1, [1], True",
        "f64[3, 4], inf, [0]",
        "f32[3, 4], -inf, [0]",
        "c64[3], 3",
        "bf16[2, 3], 0.5, [-1], dtype=f32",
        "f32[3], 0",
        "f32[0, 3], inf, [1]",
    ]),
    OpDef::composite("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", "The norm of all elements.", |e, a| {
        e.call("aten.linalg_vector_norm.default", &[a.value(0).clone(), a.value(1).clone()])
    })
    .samples(&["f32[3, 4]", "c64[3], 1"]),
    OpDef::composite(
        "aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
        "The norm over dimensions.",
        |e, a| {
            let keep = a.value(3).clone();
            e.call("aten.linalg_vector_norm.default", &[a.value(0).clone(), order(a.value(1)), a.value(2).clone(), keep])
        },
    )
    .samples(&["f32[3, 4], 2, [1]", "f64[3, 4], None, [0], True"]),
    OpDef::composite(
        "aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
        "The norm over dimensions, computed in a type.",
        |e, a| {
            let rest = [a.value(2).clone(), a.value(3).clone(), a.value(4).clone()];
            let [dim, keep, dtype] = rest;
            e.call("aten.linalg_vector_norm.default", &[a.value(0).clone(), order(a.value(1)), dim, keep, dtype])
        },
    )
    .samples(&["f32[3, 4], 2, [1], False, dtype=f64"]),
    OpDef::composite(
        "aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
        "The norm of all elements, computed in a type.",
        |e, a| {
            let dtype = a.value(2).clone();
            e.call(
                "aten.linalg_vector_norm.default",
                &[a.value(0).clone(), order(a.value(1)), Value::None, false.into(), dtype],
            )
        },
    )
    .samples(&["f32[3, 4], None, dtype=f64"]),
    OpDef::composite(
        "aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
        "The square root of the sum of squares over dimensions.",
        |e, a| {
            let (input, dim, keep) = (a.value(0).clone(), a.value(1).clone(), a.value(2).clone());
            e.call("aten.linalg_vector_norm.default", &[input, 2.0.into(), dim, keep])
        },
    )
    .samples(&["f32[3, 4], [0, 1]", "f64[3, 4], [1], True"]),
    OpDef::kernel(
        "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
        "The logarithm of the sum of exponentials over dimensions.",
        |a| {
            let input = a.tensor(0)?;
            let dims = listed(a, 1, input.rank())?;
            Ok(reduced(input, &dims, a.bool(2)?, input.dtype.to_inexact()).into())
        },
        logsumexp,
    )
    .derivative(d::logsumexp)
    .decompose(by::logsumexp)
    .samples(&["f32[3, 4], [1]", "f64[2, 3, 4], [0, 2], True", "i64[3], [0]", "c64[3], [0]", "f32[0, 2], [0]"]),
    OpDef::composite(
        "aten::special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
        "The logarithm of the sum of exponentials over dimensions.",
        |e, a| e.call("aten.logsumexp.default", args![*a.tensor(0)?, a.ints(1)?, a.bool(2)?]),
    )
    .samples(&["f32[3, 4], [1]"]),
    OpDef::kernel(
        "aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
        "The slices along a dimension, scaled down to a largest norm.",
        renorm_meta,
        renorm,
    )
    .derivative(d::renorm)
    .decompose(by::renorm)
    .samples(&["f32[3, 4], 2, 0, 1", "f64[2, 3, 4], 1, 1, 0.5", "c64[2, 3], inf, -1, 1", "bf16[2, 3], 2, 0, 1"]),
    OpDef::written(
        "aten::renorm_(Tensor(a!) self, Scalar p, int dim, Scalar maxnorm) -> Tensor(a!)",
        "Scales the slices along a dimension down to a largest norm.",
        "aten.renorm.default",
    )
    .samples(&["f32[3, 4], 2, 0, 1"]),
];

fn order<T: Clone>(p: &Value<T>) -> Value<T> {
    if matches!(p, Value::None) { 2.0.into() } else { p.clone() }
}

fn vector_norm_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    if !input.dtype.is_inexact() {
        invalid!("a norm is defined for float and complex types, not for {}", input.dtype);
    }
    let dtype = a.dtype(4)?.unwrap_or(input.dtype);
    if dtype.is_complex() != input.dtype.is_complex() || dtype.promote(input.dtype) != dtype {
        invalid!("a norm of {} cannot be computed in {dtype}", input.dtype);
    }
    let order = a.float(1)?;
    let dims = listed(a, 2, input.rank())?;
    if order < 0.0 || order.is_infinite() {
        expect_elements("a norm of this order", input, &dims)?;
    }
    Ok(reduced(input, &dims, a.bool(3)?, dtype.to_real()).into())
}

fn vector_norm(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    let dims = listed(&call.args, 2, input.rank())?;
    let order = call.args.float(1)?;
    // Computing in f64 covers whatever type was asked for, up to the final rounding.
    out.write_f64s(&norms(input, &dims, order));
    Ok(out.into())
}

/// The norms of all lanes.
fn norms(input: &Tensor, dims: &[usize], order: f64) -> Vec<f64> {
    if input.dtype() == DType::F32 && order == 2.0 {
        return accumulate(input, dims, None, |x, _| x * x).iter().map(|s| s.sqrt()).collect();
    }
    if input.dtype().is_complex() {
        return reduce(input, dims, |lane: &[Complex64]| norm(lane.iter().map(|x| x.norm()), order));
    }
    reduce(input, dims, |lane: &[f64]| norm(lane.iter().map(|x| x.abs()), order))
}

/// The norm of absolute values.
fn norm(lane: impl Iterator<Item = f64>, order: f64) -> f64 {
    let nan_or =
        |a: f64, b: f64, pick: fn(f64, f64) -> f64| if a.is_nan() || b.is_nan() { f64::NAN } else { pick(a, b) };
    if order == 0.0 {
        lane.map(|x| f64::from(u8::from(x != 0.0))).sum()
    } else if order == 1.0 {
        lane.sum()
    } else if order == 2.0 {
        lane.map(|x| x * x).sum::<f64>().sqrt()
    } else if order == f64::INFINITY {
        lane.fold(0.0, |a, b| nan_or(a, b, f64::max))
    } else if order == f64::NEG_INFINITY {
        lane.fold(f64::INFINITY, |a, b| nan_or(a, b, f64::min))
    } else {
        lane.map(|x| x.powf(order)).sum::<f64>().powf(1.0 / order)
    }
}

fn logsumexp(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    let dims = listed(&call.args, 1, input.rank())?;
    if input.dtype().is_complex() {
        out.write_c128s(&reduce(input, &dims, |lane: &[Complex64]| {
            let top = lane.iter().fold(f64::NEG_INFINITY, |a, b| if b.re > a { b.re } else { a });
            let top = if top.is_finite() { top } else { 0.0 };
            lane.iter().map(|x| (x - top).exp()).sum::<Complex64>().ln() + top
        }));
    } else {
        out.write_f64s(&reduce(input, &dims, log_sum_exp));
    }
    Ok(out.into())
}

/// The logarithm of the sum of exponentials of a lane.
pub(in crate::ops) fn log_sum_exp(lane: &[f64]) -> f64 {
    let top = lane.iter().fold(f64::NEG_INFINITY, |a, b| if *b > a { *b } else { a });
    // An infinite maximum must not be subtracted from itself.
    let top = if top.is_finite() { top } else { 0.0 };
    lane.iter().map(|x| (x - top).exp()).sum::<f64>().ln() + top
}

fn renorm_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    if !input.dtype.is_inexact() {
        invalid!("renorm is defined for float and complex types, not for {}", input.dtype);
    }
    if a.float(1)? <= 0.0 {
        invalid!("renorm wants a positive order");
    }
    if a.float(3)? < 0.0 {
        invalid!("renorm wants a largest norm that is not negative");
    }
    if input.rank() < 2 {
        invalid!("renorm wants at least two dimensions, not {}", input.rank());
    }
    wrap_dim(a.int(2)?, input.rank())?;
    Ok(input.fresh(&input.shape, input.dtype).into())
}

fn renorm(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    let dim = wrap_dim(call.args.int(2)?, input.rank())?;
    let largest = call.args.float(3)?;
    let others: Vec<usize> = (0..input.rank()).filter(|d| *d != dim).collect();
    let factors: Vec<f64> = norms(input, &others, call.args.float(1)?)
        .iter()
        .map(|norm| if *norm > largest { largest / (norm + 1e-7) } else { 1.0 })
        .collect();
    let block = pyrite_kernels::lanes::Block::new(input.shape(), dim);
    let factor = |i: usize| factors[i / block.inner.max(1) % block.len.max(1)];
    if input.dtype().is_complex() {
        let values: Vec<_> = input.to_c128s().iter().enumerate().map(|(i, x)| x * factor(i)).collect();
        out.write_c128s(&values);
    } else {
        out.write_f64s(&input.to_f64s().iter().enumerate().map(|(i, x)| x * factor(i)).collect::<Vec<_>>());
    }
    Ok(out.into())
}
