//! Means, variances and standard deviations.

use num_complex::Complex64;
use pyrite_ir::{Args, Call, Emit, Handle, Meta, OpDef, OpError, Tag, Value, invalid};
use pyrite_tensor::{DType, Tensor};

use super::{list, listed, reduced};
use crate::decompositions::reduce as by;
use crate::derivatives::reduce as d;
use crate::lowerings as to_loops;
use pyrite_kernels::lanes::{accumulate, reduce};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        "The mean of all elements.",
        |a| mean_meta(a, &(0..a.tensor(0)?.rank()).collect::<Vec<_>>(), false, 1),
        |c| mean(c, &(0..c.args.tensor(0)?.rank()).collect::<Vec<_>>()),
    )
    .lower(to_loops::reduce::mean).tags(&[Tag::Core])
    .derivative(d::mean)
    .samples(&["f32[3, 4]", "i64[4], dtype=f32", "c64[3]", "f32[0]", "bf16[2, 2]"]),
    OpDef::kernel(
        "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "The mean over dimensions.",
        |a| mean_meta(a, &listed(a, 1, a.tensor(0)?.rank())?, a.bool(2)?, 3),
        |c| mean(c, &listed(&c.args, 1, c.args.tensor(0)?.rank())?),
    )
    .lower(to_loops::reduce::mean_dim).tags(&[Tag::Core])
    .derivative(d::mean_dim)
    .samples(&["f32[], [-1], True", 
        "f32[3, 4], [1], True",
        "f32[2, 3, 4, 5]<[60, 1, 15, 3], [-1, -2], True",
        "f64[2, 3], None",
        "f32[0, 3], [0]",
        "b8[2, 3], [1], dtype=f64",
    ]),
    OpDef::kernel(
        "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
        "The variance over dimensions, divided by the count less the correction (1 unless given).",
        |a| moment_meta(a, Form::One),
        |c| moment(c, Spread::Variance, Form::One),
    )
    .tags(&[Tag::Core])
    .derivative(d::var)
    .decompose(by::var)
    .samples(&[
        "f32[3, 4], [1]",
        "f64[2, 3, 4], [0, 2], correction=0, keepdim=True",
        "c64[5]",
        "bf16[4, 3]<[1, 4], [0], correction=0.5",
        "f32[0]",
    ]),
    OpDef::kernel(
        "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
        "The standard deviation over dimensions.",
        |a| moment_meta(a, Form::One),
        |c| moment(c, Spread::Deviation, Form::One),
    )
    .derivative(d::std)
    .decompose(by::std)
    .samples(&["f32[3, 4], [1]", "f64[2, 3], correction=0, keepdim=True", "c64[5]"]),
    OpDef::kernel(
        "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        "The variance and the mean over dimensions.",
        |a| moment_meta(a, Form::WithMean),
        |c| moment(c, Spread::Variance, Form::WithMean),
    )
    .derivative(d::var_mean)
    .decompose(by::var_mean)
    .samples(&["f32[3, 4], [1]", "f64[2, 3], correction=0, keepdim=True", "c64[5]"]),
    OpDef::kernel(
        "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        "The standard deviation and the mean over dimensions.",
        |a| moment_meta(a, Form::WithMean),
        |c| moment(c, Spread::Deviation, Form::WithMean),
    )
    .derivative(d::std_mean)
    .decompose(by::std_mean)
    .samples(&["f32[3, 4], [1]", "f64[2, 3], correction=0, keepdim=True"]),
    OpDef::composite("aten::var(Tensor self, bool unbiased=True) -> Tensor", "The variance of all elements.", |e, a| {
        unbiased(e, a, "aten.var.correction", Dims::All)
    })
    .samples(&["f32[3, 4]", "f64[5], False"]),
    OpDef::composite(
        "aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
        "The variance over dimensions.",
        |e, a| unbiased(e, a, "aten.var.correction", Dims::Listed),
    )
    .tags(&[Tag::Core])
    .samples(&["f32[3, 4], [1]", "f64[5], None, False, True"]),
    OpDef::composite("aten::std(Tensor self, bool unbiased=True) -> Tensor", "The standard deviation.", |e, a| {
        unbiased(e, a, "aten.std.correction", Dims::All)
    })
    .samples(&["f32[3, 4]"]),
    OpDef::composite(
        "aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
        "The standard deviation over dimensions.",
        |e, a| unbiased(e, a, "aten.std.correction", Dims::Listed),
    )
    .samples(&["f32[3, 4], [1]"]),
    OpDef::composite(
        "aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
        "The variance and the mean of all elements.",
        |e, a| unbiased(e, a, "aten.var_mean.correction", Dims::All),
    )
    .samples(&["f32[3, 4]"]),
    OpDef::composite(
        "aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
        "The variance and the mean over dimensions.",
        |e, a| unbiased(e, a, "aten.var_mean.correction", Dims::Listed),
    )
    .samples(&["f32[3, 4], [1]"]),
    OpDef::composite(
        "aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
        "The standard deviation and the mean of all elements.",
        |e, a| unbiased(e, a, "aten.std_mean.correction", Dims::All),
    )
    .samples(&["f32[3, 4]"]),
    OpDef::composite(
        "aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
        "The standard deviation and the mean over dimensions.",
        |e, a| unbiased(e, a, "aten.std_mean.correction", Dims::Listed),
    )
    .samples(&["f32[3, 4], [1]"]),
];

fn mean_meta(a: &Args<'_, Meta>, dims: &[usize], keep: bool, dtype: usize) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    let dtype = a.dtype(dtype)?.unwrap_or(input.dtype);
    if !dtype.is_inexact() {
        invalid!("the mean of {dtype} has no type; give a float dtype");
    }
    Ok(reduced(input, dims, keep, dtype).into())
}

fn mean(call: &Call<'_>, dims: &[usize]) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    let input = if input.dtype() == out.dtype() { input.clone() } else { input.cast(out.dtype()) };
    write_means(&input, dims, &out);
    Ok(out.into())
}

/// The number of elements of each lane.
fn count(input: &Tensor, dims: &[usize]) -> f64 {
    dims.iter().map(|d| input.shape().get(*d).copied().unwrap_or(1) as f64).product()
}

fn write_means(input: &Tensor, dims: &[usize], out: &Tensor) {
    let n = count(input, dims);
    match input.dtype() {
        d if d.is_complex() => {
            out.write_c128s(&reduce(input, dims, |lane: &[Complex64]| lane.iter().sum::<Complex64>() / n));
        }
        _ => out.write_f64s(&means(input, dims, n)),
    }
}

fn means(input: &Tensor, dims: &[usize], n: f64) -> Vec<f64> {
    if input.dtype() == DType::F32 {
        let mut sums = accumulate(input, dims, None, |x, _| x);
        sums.iter_mut().for_each(|s| *s /= n);
        sums
    } else {
        reduce(input, dims, |lane: &[f64]| lane.iter().sum::<f64>() / n)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    One,
    WithMean,
}

#[derive(Clone, Copy)]
enum Spread {
    Variance,
    Deviation,
}

fn moment_meta(a: &Args<'_, Meta>, form: Form) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    if !input.dtype.is_inexact() {
        invalid!("variances are defined for float and complex types, not for {}", input.dtype);
    }
    let dims = listed(a, 1, input.rank())?;
    let keep = a.bool(3)?;
    let spread = reduced(input, &dims, keep, input.dtype.to_real());
    Ok(match form {
        Form::One => spread.into(),
        Form::WithMean => list(vec![spread, reduced(input, &dims, keep, input.dtype)]),
    })
}

fn moment(call: &Call<'_>, spread: Spread, form: Form) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let dims = listed(&call.args, 1, input.rank())?;
    let n = count(input, &dims);
    let freedom = (n - call.args.opt_float(2)?.unwrap_or(1.0)).max(0.0);
    let out = call.allocate(0)?;
    let mut squares = if input.dtype() == DType::F32 {
        let means = means(input, &dims, n);
        accumulate(input, &dims, Some(&means), |x, mean| (x - mean) * (x - mean))
    } else if input.dtype().is_complex() {
        reduce(input, &dims, |lane: &[Complex64]| {
            let mean = lane.iter().sum::<Complex64>() / n;
            lane.iter().map(|x| (x - mean).norm_sqr()).sum()
        })
    } else {
        reduce(input, &dims, |lane: &[f64]| {
            let mean = lane.iter().sum::<f64>() / n;
            lane.iter().map(|x| (x - mean) * (x - mean)).sum()
        })
    };
    for square in &mut squares {
        *square /= freedom;
        if matches!(spread, Spread::Deviation) {
            *square = square.sqrt();
        }
    }
    out.write_f64s(&squares);
    if form == Form::One {
        return Ok(out.into());
    }
    let mean = call.allocate(1)?;
    write_means(input, &dims, &mean);
    Ok(vec![out, mean].into())
}

enum Dims {
    All,
    Listed,
}

/// The overloads that say `unbiased` for a correction of one.
fn unbiased(e: &mut dyn Emit, a: &Args<'_, Handle>, op: &str, dims: Dims) -> Result<Value<Handle>, OpError> {
    let input = a.value(0).clone();
    match dims {
        Dims::All => e.call(op, &[input, Value::None, i64::from(a.bool(1)?).into()]),
        Dims::Listed => e.call(op, &[input, a.value(1).clone(), i64::from(a.bool(2)?).into(), a.value(3).clone()]),
    }
}
