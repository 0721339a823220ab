//! Maxima and minima with their places, and quantifier of all or any.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Tag, Tolerance, Value, Vjp, invalid};
use pyrite_tensor::{DType, Tensor};

use super::{expect_elements, list, listed, one_or_all, reduced};
use crate::decompositions::reduce as by;
use crate::derivatives::reduce as d;
use crate::lowerings as to_loops;
use crate::rules::{wrap_dim, wrap_dims};
use pyrite_kernels::Carrier;
use pyrite_kernels::lanes::reduce;

const NO_SLOPE: Vjp = Vjp::NonDifferentiable("an index is an integer");
const NO_BOOL_SLOPE: Vjp = Vjp::NonDifferentiable("a bool has no slope");

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        "The largest element over dimensions; NaN where there is one.",
        |a| extreme_meta(a, "amax"),
        |c| extreme(c, &listed(&c.args, 1, c.args.tensor(0)?.rank())?, Side::Max),
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::reduce::amax)
    .tags(&[Tag::Core])
    .derivative(d::extreme)
    .samples(&[
        "f32[], [-1]",
        "f32[3, 4], [1], True",
        "i64[2, 3, 4], [0, 2]",
        "b8[4]",
        "bf16[2, 3]<[1, 2], [0]",
        "f32[], [0]",
        "f32[0, 3], [1]",
    ]),
    OpDef::kernel(
        "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        "The smallest element over dimensions; NaN where there is one.",
        |a| extreme_meta(a, "amin"),
        |c| extreme(c, &listed(&c.args, 1, c.args.tensor(0)?.rank())?, Side::Min),
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::reduce::amin)
    .tags(&[Tag::Core])
    .derivative(d::extreme)
    .samples(&["f32[3, 4], [1], True", "i64[2, 3, 4], [0, 2]", "b8[4]"]),
    OpDef::kernel(
        "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
        "The smallest and the largest element.",
        aminmax_meta,
        aminmax,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::aminmax)
    .decompose(by::aminmax)
    .samples(&["f32[3, 4]", "f32[3, 4], dim=1, keepdim=True", "i32[5], dim=0", "f32[], dim=0, keepdim=True"]),
    OpDef::kernel(
        "aten::max(Tensor self) -> Tensor",
        "The largest element.",
        |a| whole_meta(a, "max"),
        |c| whole(c, Side::Max),
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::whole_extreme)
    .decompose(by::max)
    .samples(&["f32[3, 4]", "i64[3]", "b8[2]"]),
    OpDef::kernel(
        "aten::min(Tensor self) -> Tensor",
        "The smallest element.",
        |a| whole_meta(a, "min"),
        |c| whole(c, Side::Min),
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::whole_extreme)
    .decompose(by::min)
    .samples(&["f32[3, 4]", "i64[3]", "b8[2]"]),
    OpDef::kernel(
        "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "The largest element along a dimension and its first place.",
        |a| placed_meta(a, "max"),
        |c| placed(c, Side::Max),
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::reduce::max_dim)
    .tags(&[Tag::Core])
    .derivative(d::indexed)
    .samples(&["f32[], -1", "f32[3, 4], 1", "i64[3, 4], 0, True", "b8[4], 0", "f64[2, 3]<[1, 2], -1", "f32[], 0"]),
    OpDef::kernel(
        "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "The smallest element along a dimension and its first place.",
        |a| placed_meta(a, "min"),
        |c| placed(c, Side::Min),
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::reduce::min_dim)
    .tags(&[Tag::Core])
    .derivative(d::indexed)
    .samples(&["f32[3, 4], 1", "i64[3, 4], 0, True", "bf16[4], 0"]),
    OpDef::kernel(
        "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        "The first place of the largest element.",
        |a| place_meta(a, "argmax"),
        |c| place(c, Side::Max),
    )
    .lower(to_loops::reduce::argmax)
    .tags(&[Tag::Core])
    .vjp(NO_SLOPE)
    .samples(&["f32[], -1", "f32[3, 4]", "f32[3, 4], 1, True", "i64[3, 4], 0", "f32[]", "f32[2, 3], None, True"]),
    OpDef::kernel(
        "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        "The first place of the smallest element.",
        |a| place_meta(a, "argmin"),
        |c| place(c, Side::Min),
    )
    .lower(to_loops::reduce::argmin)
    .tags(&[Tag::Core])
    .vjp(NO_SLOPE)
    .samples(&["f32[3, 4]", "f32[3, 4], 1, True", "i64[3, 4], 0"]),
    OpDef::kernel(
        "aten::all(Tensor self) -> Tensor",
        "Whether no element is zero.",
        |a| bool_meta(a, &whole_rank(a.tensor(0)?.rank()), false),
        |c| any_or_all(c, &whole_rank(c.args.tensor(0)?.rank()), Quantifier::All),
    )
    .vjp(NO_BOOL_SLOPE)
    .decompose(by::all)
    .samples(&["b8[3, 4]", "f32[2]", "u8[3]", "f32[0]"]),
    OpDef::kernel(
        "aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        "Whether no element along a dimension is zero.",
        |a| bool_meta(a, &[wrap_dim(a.int(1)?, a.tensor(0)?.rank())?], a.bool(2)?),
        |c| any_or_all(c, &[wrap_dim(c.args.int(1)?, c.args.tensor(0)?.rank())?], Quantifier::All),
    )
    .vjp(NO_BOOL_SLOPE)
    .decompose(by::all_dim)
    .samples(&["b8[3, 4], 1", "f32[2, 3], 0, True", "u8[3], 0"]),
    OpDef::kernel(
        "aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        "Whether no element over dimensions is zero; an empty list looks at each element alone.",
        |a| bool_meta(a, &bool_dims(a, a.tensor(0)?.rank())?, a.bool(2)?),
        |c| any_or_all(c, &bool_dims(&c.args, c.args.tensor(0)?.rank())?, Quantifier::All),
    )
    .vjp(NO_BOOL_SLOPE)
    .decompose(by::all_dims)
    .samples(&["b8[3, 4], [1]", "f32[2, 3], None", "f32[2, 3], []"]),
    OpDef::kernel(
        "aten::any(Tensor self) -> Tensor",
        "Whether some element is not zero.",
        |a| bool_meta(a, &whole_rank(a.tensor(0)?.rank()), false),
        |c| any_or_all(c, &whole_rank(c.args.tensor(0)?.rank()), Quantifier::Any),
    )
    .lower(to_loops::reduce::any)
    .tags(&[Tag::Core])
    .vjp(NO_BOOL_SLOPE)
    .samples(&["b8[3, 4]", "f32[2]", "u8[3]", "f32[0]"]),
    OpDef::kernel(
        "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        "Whether some element along a dimension is not zero.",
        |a| bool_meta(a, &[wrap_dim(a.int(1)?, a.tensor(0)?.rank())?], a.bool(2)?),
        |c| any_or_all(c, &[wrap_dim(c.args.int(1)?, c.args.tensor(0)?.rank())?], Quantifier::Any),
    )
    .lower(to_loops::reduce::any_dim)
    .tags(&[Tag::Core])
    .vjp(NO_BOOL_SLOPE)
    .samples(&["b8[], -1", "b8[3, 4], 1", "f32[2, 3], 0, True", "c64[3], 0"]),
    OpDef::kernel(
        "aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        "Whether some element over dimensions is not zero; an empty list looks at each element alone.",
        |a| bool_meta(a, &bool_dims(a, a.tensor(0)?.rank())?, a.bool(2)?),
        |c| any_or_all(c, &bool_dims(&c.args, c.args.tensor(0)?.rank())?, Quantifier::Any),
    )
    .lower(to_loops::reduce::any_dim)
    .tags(&[Tag::Core])
    .vjp(NO_BOOL_SLOPE)
    .samples(&["b8[3, 4], [1]", "f32[2, 3], None, True", "u8[2, 3], []"]),
];

#[derive(Clone, Copy)]
enum Side {
    Max,
    Min,
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Any,
}

fn whole_rank(rank: usize) -> Vec<usize> {
    (0..rank).collect()
}

fn expect_ordered(what: &str, input: &Meta) -> Result<(), OpError> {
    if input.dtype.is_complex() {
        invalid!("{what} is not defined for complex numbers");
    }
    Ok(())
}

/// The place of the first extreme element of a lane, or of its first NaN; lanes have elements.
pub(in crate::ops) fn first_place<T: Carrier + PartialOrd>(lane: &[T], max: bool) -> usize {
    let mut best = 0;
    for (at, x) in lane.iter().enumerate() {
        #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
        if x != x {
            return at;
        }
        if if max { *x > lane[best] } else { *x < lane[best] } {
            best = at;
        }
    }
    best
}

/// The first places of the extremes of all lanes.
fn places(input: &Tensor, dims: &[usize], side: Side) -> Vec<usize> {
    let max = matches!(side, Side::Max);
    match input.dtype() {
        DType::F64 => reduce(input, dims, |lane: &[f64]| first_place(lane, max)),
        d if d.is_float() => reduce(input, dims, |lane: &[f32]| first_place(lane, max)),
        _ => reduce(input, dims, |lane: &[i64]| first_place(lane, max)),
    }
}

/// Writes the extremes of all lanes.
fn write_extremes(input: &Tensor, dims: &[usize], side: Side, out: &Tensor) {
    let max = matches!(side, Side::Max);
    if out.numel() == 0 {
        return;
    }
    match input.dtype() {
        DType::F64 => out.write_f64s(&reduce(input, dims, |lane: &[f64]| lane[first_place(lane, max)])),
        d if d.is_float() => out.write_f32s(&reduce(input, dims, |lane: &[f32]| lane[first_place(lane, max)])),
        _ => out.write_i64s(&reduce(input, dims, |lane: &[i64]| lane[first_place(lane, max)])),
    }
}

fn extreme_meta(a: &Args<'_, Meta>, what: &str) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(what, input)?;
    let dims = listed(a, 1, input.rank())?;
    expect_elements(what, input, &dims)?;
    Ok(reduced(input, &dims, a.bool(2)?, input.dtype).into())
}

fn extreme(call: &Call<'_>, dims: &[usize], side: Side) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    write_extremes(call.args.tensor(0)?, dims, side, &out);
    Ok(out.into())
}

fn aminmax_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered("aminmax", input)?;
    let dims = one_or_all(a, 1, input.rank())?;
    expect_elements("aminmax", input, &dims)?;
    let result = || reduced(input, &dims, a.bool(2).unwrap_or(false), input.dtype);
    Ok(list(vec![result(), result()]))
}

fn aminmax(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let dims = one_or_all(&call.args, 1, input.rank())?;
    let (min, max) = (call.allocate(0)?, call.allocate(1)?);
    write_extremes(input, &dims, Side::Min, &min);
    write_extremes(input, &dims, Side::Max, &max);
    Ok(vec![min, max].into())
}

fn whole_meta(a: &Args<'_, Meta>, what: &str) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(what, input)?;
    expect_elements(what, input, &whole_rank(input.rank()))?;
    Ok(input.fresh(&[], input.dtype).into())
}

fn whole(call: &Call<'_>, side: Side) -> Result<Value<Tensor>, OpError> {
    extreme(call, &whole_rank(call.args.tensor(0)?.rank()), side)
}

fn placed_meta(a: &Args<'_, Meta>, what: &str) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(what, input)?;
    let dims = [wrap_dim(a.int(1)?, input.rank())?];
    expect_elements(what, input, &dims)?;
    let keep = a.bool(2)?;
    Ok(list(vec![reduced(input, &dims, keep, input.dtype), reduced(input, &dims, keep, DType::I64)]))
}

fn placed(call: &Call<'_>, side: Side) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let dims = [wrap_dim(call.args.int(1)?, input.rank())?];
    let (values, indices) = (call.allocate(0)?, call.allocate(1)?);
    if values.numel() > 0 {
        let at = places(input, &dims, side);
        indices.write_i64s(&at.iter().map(|i| *i as i64).collect::<Vec<_>>());
        write_extremes(input, &dims, side, &values);
    }
    Ok(vec![values, indices].into())
}

fn place_meta(a: &Args<'_, Meta>, what: &str) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(what, input)?;
    if input.dtype == DType::Bool {
        invalid!("{what} is not defined for bools");
    }
    let dims = one_or_all(a, 1, input.rank())?;
    expect_elements(what, input, &dims)?;
    Ok(reduced(input, &dims, a.bool(2)?, DType::I64).into())
}

fn place(call: &Call<'_>, side: Side) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let out = call.allocate(0)?;
    if out.numel() > 0 {
        let at = places(input, &one_or_all(&call.args, 1, input.rank())?, side);
        out.write_i64s(&at.iter().map(|i| *i as i64).collect::<Vec<_>>());
    }
    Ok(out.into())
}

fn bool_dims<T>(args: &Args<'_, T>, rank: usize) -> Result<Vec<usize>, OpError> {
    match args.opt_ints(1)? {
        Some(dims) => wrap_dims(&dims, rank),
        None => Ok(whole_rank(rank)),
    }
}

fn bool_meta(a: &Args<'_, Meta>, dims: &[usize], keep: bool) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    let dtype = if input.dtype == DType::U8 { DType::U8 } else { DType::Bool };
    Ok(reduced(input, dims, keep, dtype).into())
}

fn any_or_all(call: &Call<'_>, dims: &[usize], which: Quantifier) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?.cast(DType::Bool);
    out.write_i64s(&reduce(&input, dims, |lane: &[i64]| {
        i64::from(match which {
            Quantifier::All => lane.iter().all(|x| *x != 0),
            Quantifier::Any => lane.iter().any(|x| *x != 0),
        })
    }));
    Ok(out.into())
}
