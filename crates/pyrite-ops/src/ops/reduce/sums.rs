//! Sums, products and counts.

use num_complex::Complex64;
use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Tag, Value, Vjp, invalid, unsupported};
use pyrite_tensor::{DType, Tensor};

use super::{listed, one_or_all, reduced, sum_dtype};
use crate::decompositions::reduce as by;
use crate::derivatives::reduce as d;
use crate::lowerings as to_loops;
use crate::rules::wrap_dim;
use pyrite_kernels::lanes::{accumulate, reduce};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        "The sum of all elements.",
        |a| sum_meta(a, &all(a)?, false, 1),
        |c| sum(c, &all(&c.args)?),
    )
    .derivative(d::sum)
    .decompose(by::sum)
    .samples(&[
        "f32[3, 4]",
        "b8[5]",
        "i32[2, 3], dtype=f64",
        "c64[4]",
        "f32[0]",
        "f32[]",
        "f32[200, 300]<[1, 200]",
    ]),
    OpDef::kernel(
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "The sum over dimensions.",
        |a| sum_meta(a, &dims(a)?, a.bool(2)?, 3),
        |c| sum(c, &dims(&c.args)?),
    )
    .lower(to_loops::reduce::sum_dim)
    .tags(&[Tag::Core])
    .derivative(d::sum_dim)
    .samples(&[
        "f32[], [-1]",
        "f32[2, 3, 4, 5], [1]",
        "f32[2, 3, 4, 5]<[60, 1, 15, 3], [0, 2, 3], True",
        "f32[4, 5]<[0, 1], [-2]",
        "i64[2, 3], [0]",
        "bf16[2, 3], None",
        "f64[0, 3], [0]",
        "f32[64, 700], [0]",
        "f32[64, 700], [1], True",
        "c128[2, 3], [], dtype=c64",
    ]),
    OpDef::kernel(
        "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "The sum over dimensions of what is a number.",
        |a| {
            if a.tensor(0)?.dtype.is_complex() {
                unsupported!("nansum of complex numbers");
            }
            sum_meta(a, &dims(a)?, a.bool(2)?, 3)
        },
        |c| nansum(c, &dims(&c.args)?),
    )
    .derivative(d::nansum)
    .decompose(by::nansum)
    .samples(&["f32[3, 4], [1], True", "i32[4]", "f64[2, 3], dtype=f32"]),
    OpDef::kernel(
        "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        "The product of all elements.",
        |a| sum_meta(a, &all(a)?, false, 1),
        |c| prod(c, &all(&c.args)?),
    )
    .lower(to_loops::reduce::prod)
    .tags(&[Tag::Core])
    .derivative(d::prod)
    .samples(&["f32[3, 4]", "b8[5]", "c64[4]", "f32[0]"]),
    OpDef::kernel(
        "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "The product over a dimension.",
        |a| sum_meta(a, &[wrap_dim(a.int(1)?, a.tensor(0)?.rank())?], a.bool(2)?, 3),
        |c| prod(c, &[wrap_dim(c.args.int(1)?, c.args.tensor(0)?.rank())?]),
    )
    .lower(to_loops::reduce::prod_dim)
    .tags(&[Tag::Core])
    .derivative(d::prod_dim)
    .samples(&["f32[3, 4], 1", "i16[3, 4], 0, True", "f32[], 0", "bf16[2, 3], -1, dtype=f32"]),
    OpDef::kernel(
        "aten::count_nonzero(Tensor self, int? dim=None) -> Tensor",
        "How many elements are not zero.",
        |a| count_meta(a, &one_or_all(a, 1, a.tensor(0)?.rank())?),
        |c| count(c, &one_or_all(&c.args, 1, c.args.tensor(0)?.rank())?),
    )
    .vjp(Vjp::NonDifferentiable("a count is an integer"))
    .decompose(by::count_nonzero)
    .samples(&["f32[3, 4]", "b8[3, 4], 1", "i64[0]", "c64[3]"]),
    OpDef::kernel(
        "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
        "How many elements are not zero, over dimensions.",
        |a| count_meta(a, &dims(a)?),
        |c| count(c, &dims(&c.args)?),
    )
    .vjp(Vjp::NonDifferentiable("a count is an integer"))
    .decompose(by::count_nonzero_dims)
    .samples(&["f32[3, 4], [0]", "b8[2, 3, 4], [0, 2]", "i64[2, 2], []"]),
    OpDef::kernel("aten::trace(Tensor self) -> Tensor", "The sum of a matrix's diagonal.", trace_meta, trace)
        .derivative(d::trace)
        .decompose(by::trace)
        .samples(&["f32[3, 4]", "i32[2, 2]", "c64[3, 3]", "f32[0, 2]"]),
];

trait Ranked {
    fn ranks(&self) -> usize;
}

impl Ranked for Meta {
    fn ranks(&self) -> usize {
        self.rank()
    }
}

impl Ranked for Tensor {
    fn ranks(&self) -> usize {
        self.rank()
    }
}

fn all<T: Ranked>(args: &Args<'_, T>) -> Result<Vec<usize>, OpError> {
    Ok((0..args.tensor(0)?.ranks()).collect())
}

fn dims<T: Ranked>(args: &Args<'_, T>) -> Result<Vec<usize>, OpError> {
    listed(args, 1, args.tensor(0)?.ranks())
}

fn sum_meta(a: &Args<'_, Meta>, dims: &[usize], keep: bool, dtype: usize) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    Ok(reduced(input, dims, keep, sum_dtype(input.dtype, a.dtype(dtype)?)).into())
}

/// The input in the type of the result.
fn as_result(call: &Call<'_>) -> Result<Tensor, OpError> {
    let (input, dtype) = (call.args.tensor(0)?, call.out_meta(0)?.dtype);
    // Widening an integer is what its carrier does anyway.
    let same = input.dtype() == dtype || (input.dtype().is_integral() && dtype == DType::I64);
    Ok(if same { input.clone() } else { input.cast(dtype) })
}

fn sum(call: &Call<'_>, dims: &[usize]) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = as_result(call)?;
    match input.dtype() {
        DType::F32 => out.write_f64s(&accumulate(&input, dims, None, |x, _| x)),
        d if d.is_float() => out.write_f64s(&reduce(&input, dims, |lane: &[f64]| lane.iter().sum())),
        d if d.is_complex() => out.write_c128s(&reduce(&input, dims, |lane: &[Complex64]| lane.iter().sum())),
        _ => out.write_i64s(&reduce(&input, dims, |lane: &[i64]| lane.iter().fold(0i64, |s, x| s.wrapping_add(*x)))),
    }
    Ok(out.into())
}

fn nansum(call: &Call<'_>, dims: &[usize]) -> Result<Value<Tensor>, OpError> {
    if !call.out_meta(0)?.dtype.is_float() {
        return sum(call, dims);
    }
    let out = call.allocate(0)?;
    let input = as_result(call)?;
    out.write_f64s(&reduce(&input, dims, |lane: &[f64]| lane.iter().filter(|x| !x.is_nan()).sum()));
    Ok(out.into())
}

fn prod(call: &Call<'_>, dims: &[usize]) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = as_result(call)?;
    match input.dtype() {
        d if d.is_float() => out.write_f64s(&reduce(&input, dims, |lane: &[f64]| lane.iter().product())),
        d if d.is_complex() => out.write_c128s(&reduce(&input, dims, |lane: &[Complex64]| lane.iter().product())),
        _ => out.write_i64s(&reduce(&input, dims, |lane: &[i64]| lane.iter().fold(1i64, |p, x| p.wrapping_mul(*x)))),
    }
    Ok(out.into())
}

fn count_meta(a: &Args<'_, Meta>, dims: &[usize]) -> Result<Value<Meta>, OpError> {
    Ok(reduced(a.tensor(0)?, dims, false, DType::I64).into())
}

fn count(call: &Call<'_>, dims: &[usize]) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let quantifier = call.args.tensor(0)?.cast(DType::Bool);
    out.write_i64s(&reduce(&quantifier, dims, |lane: &[i64]| lane.iter().sum::<i64>()));
    Ok(out.into())
}

fn trace_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    if input.rank() != 2 {
        invalid!("trace wants a matrix, not a tensor of {} dimensions", input.rank());
    }
    if input.dtype == DType::Bool {
        invalid!("trace is not defined for bools");
    }
    Ok(input.fresh(&[], sum_dtype(input.dtype, None)).into())
}

fn trace(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    let layout = input.layout();
    let len = layout.shape[0].min(layout.shape[1]);
    let stride = layout.stride[0] + layout.stride[1];
    let diagonal = input.view(input.dtype(), pyrite_tensor::Layout::new(&[len], &[stride], layout.offset))?;
    match input.dtype() {
        d if d.is_float() => out.write_f64s(&[diagonal.to_f64s().iter().sum()]),
        d if d.is_complex() => out.write_c128s(&[diagonal.to_c128s().iter().sum()]),
        _ => out.write_i64s(&[diagonal.to_i64s().iter().fold(0i64, |s, x| s.wrapping_add(*x))]),
    }
    Ok(out.into())
}
