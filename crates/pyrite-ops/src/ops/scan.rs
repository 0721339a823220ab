//! Scans: every element from those up to it along a dimension. Results are dense.

use num_complex::Complex64;
use pyrite_ir::{Args, Call, Emit, Freedom, Handle, Meta, OpDef, OpError, Tag, Tolerance, Value, args, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use super::reduce::sum_dtype;
use crate::derivatives::scan as d;
use crate::lowerings as to_loops;
use crate::rules::wrap_dim;
use pyrite_kernels::Carrier;
use pyrite_kernels::lanes::Block;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        "Running sums along a dimension.",
        running_meta,
        |c| running(c, |a, b| a + b, i64::wrapping_add, |a, b| a + b),
    )
    .tags(&[Tag::Core])
    .derivative(d::cumsum)
    .lower(to_loops::scan::cumsum)
    .samples(&[
        "f32[3, 4], 1",
        "bf16[3, 70], 1",
        "f32[300], 0",
        "i32[3, 4], 0",
        "b8[4], 0",
        "c64[3], 0",
        "f32[2, 3]<[1, 2], -1, dtype=f64",
        "f32[], 0",
        "f32[], -1",
        "f32[5, 300, 3], 1",
        "i16[40, 290], 0, dtype=i32",
        "f32[20, 270]<[1, 20], 1",
        "f16[1, 600], 1",
        "f64[3, 1], 1",
        "f32[0, 4], 0",
    ]),
    OpDef::kernel(
        "aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        "Running products along a dimension.",
        running_meta,
        |c| running(c, |a, b| a * b, i64::wrapping_mul, |a, b| a * b),
    )
    .derivative(d::cumprod)
    .lower(to_loops::scan::cumprod)
    .samples(&["f32[3, 4], 1", "f32[2, 300], 1", "i64[300, 9], 0", "i32[3, 4], 0", "c64[3], 0", "bf16[0, 3], 0"]),
    OpDef::written(
        "aten::cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
        "Replaces elements by running sums along a dimension.",
        "aten.cumsum.default",
    )
    .samples(&["f32[3, 4], 1"]),
    OpDef::written(
        "aten::cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
        "Replaces elements by running products along a dimension.",
        "aten.cumprod.default",
    )
    .samples(&["f32[3, 4], 1"]),
    OpDef::kernel(
        "aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        "Running maxima along a dimension and the last places where they stand.",
        |a| extreme_meta(a, "cummax"),
        |c| extreme(c, Side::Max),
    )
    .tolerance(Tolerance::Exact)
    .free(Freedom::TiesInWindow)
    .derivative(d::extreme)
    .samples(&["f32[3, 4], 1", "i64[3, 4], 0", "b8[4], 0", "f32[], 0"]),
    OpDef::kernel(
        "aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        "Running minima along a dimension and the last places where they stand.",
        |a| extreme_meta(a, "cummin"),
        |c| extreme(c, Side::Min),
    )
    .tolerance(Tolerance::Exact)
    .free(Freedom::TiesInWindow)
    .derivative(d::extreme)
    .samples(&["f32[3, 4], 1", "i64[3, 4], 0", "bf16[4], 0"]),
    OpDef::kernel(
        "aten::logcumsumexp(Tensor self, int dim) -> Tensor",
        "Logarithms of running sums of exponentials along a dimension.",
        |a| {
            let input = a.tensor(0)?;
            wrap_dim(a.int(1)?, input.rank())?;
            if !input.dtype.is_inexact() {
                invalid!("logcumsumexp is defined for float and complex types, not for {}", input.dtype);
            }
            Ok(input.fresh(&input.shape, input.dtype).into())
        },
        logcumsumexp,
    )
    .derivative(d::logcumsumexp)
    .samples(&["f32[3, 4], 1", "f64[3, 4], 0", "c64[4], 0"]),
    OpDef::composite(
        "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        "Differences of neighbours along a dimension, taken `n` times.",
        diff,
    )
    .samples(&["f32[3, 4]", "f32[3, 4], 2, 0", "i64[5], 1, -1, i64[1]", "b8[4]"]),
];

#[derive(Clone, Copy)]
enum Side {
    Max,
    Min,
}

fn running_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    wrap_dim(a.int(1)?, input.rank())?;
    Ok(input.fresh(&input.shape, sum_dtype(input.dtype, a.dtype(2)?)).into())
}

/// Combines every element with the one before it along a dimension.
fn scan<T: Copy>(values: &mut [T], block: Block, combine: impl Fn(T, T) -> T) {
    let Block { len, inner, .. } = block;
    if values.is_empty() {
        return;
    }
    for part in values.chunks_mut(len * inner) {
        for i in inner..part.len() {
            part[i] = combine(part[i - inner], part[i]);
        }
    }
}

fn running(
    call: &Call<'_>,
    floats: fn(f64, f64) -> f64,
    ints: fn(i64, i64) -> i64,
    complexes: fn(Complex64, Complex64) -> Complex64,
) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    let block = Block::new(out.shape(), wrap_dim(call.args.int(1)?, out.rank())?);
    let input = if input.dtype() == out.dtype() { input.clone() } else { input.cast(out.dtype()) };
    match out.dtype() {
        d if d.is_float() => scanned(&input, &out, block, floats),
        d if d.is_complex() => scanned(&input, &out, block, complexes),
        _ => scanned(&input, &out, block, ints),
    }
    Ok(out.into())
}

fn scanned<T: Carrier>(input: &Tensor, out: &Tensor, block: Block, combine: impl Fn(T, T) -> T) {
    let mut values = T::load(input);
    scan(&mut values, block, combine);
    T::store(out, &values);
}

fn extreme_meta(a: &Args<'_, Meta>, what: &str) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    wrap_dim(a.int(1)?, input.rank())?;
    if input.dtype.is_complex() {
        invalid!("{what} is not defined for complex numbers");
    }
    Ok(vec![input.fresh(&input.shape, input.dtype), input.fresh(&input.shape, DType::I64)].into())
}

fn extreme(call: &Call<'_>, side: Side) -> Result<Value<Tensor>, OpError> {
    let (values, indices) = (call.allocate(0)?, call.allocate(1)?);
    let input = call.args.tensor(0)?;
    let block = Block::new(input.shape(), wrap_dim(call.args.int(1)?, input.rank())?);
    match input.dtype() {
        DType::F32 => {
            let (found, places) = extremes(&input.to_f32s(), block, side);
            values.write_f32s(&found);
            indices.write_i64s(&places);
        }
        d if d.is_float() => {
            let (found, places) = extremes(&input.to_f64s(), block, side);
            values.write_f64s(&found);
            indices.write_i64s(&places);
        }
        _ => {
            let (found, places) = extremes(&input.to_i64s(), block, side);
            values.write_i64s(&found);
            indices.write_i64s(&places);
        }
    }
    Ok(vec![values, indices].into())
}

/// The running extremes of every lane, and their places.
fn extremes<T: Copy + PartialOrd>(from: &[T], block: Block, side: Side) -> (Vec<T>, Vec<i64>) {
    let (mut values, mut places) = (from.to_vec(), vec![0i64; from.len()]);
    let lanes = if from.is_empty() { 0 } else { block.lanes() };
    for start in (0..lanes).map(|lane| block.start(lane)) {
        let (mut best, mut place) = (from[start], 0);
        for i in 1..block.len {
            let at = start + i * block.inner;
            let own = from[at];
            let reaches = match side {
                Side::Max => own >= best,
                Side::Min => own <= best,
            };
            #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
            if reaches || own != own {
                (best, place) = (own, i as i64);
            }
            (values[at], places[at]) = (best, place);
        }
    }
    (values, places)
}

fn logcumsumexp(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    let block = Block::new(out.shape(), wrap_dim(call.args.int(1)?, out.rank())?);
    if input.dtype().is_complex() {
        scanned::<Complex64>(input, &out, block, |a, b| {
            let (low, high) = if a.re < b.re { (a, b) } else { (b, a) };
            if low.re == f64::NEG_INFINITY { high } else { high + ((low - high).exp() + 1.0).ln() }
        });
    } else {
        scanned::<f64>(input, &out, block, |a, b| {
            if a.is_nan() || b.is_nan() {
                return f64::NAN;
            }
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            // Equal infinities would give NaN by subtraction.
            if low == high && high.is_infinite() { high } else { high + (low - high).exp().ln_1p() }
        });
    }
    Ok(out.into())
}

fn diff(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let mut input = *a.tensor(0)?;
    let rank = e.rank(input);
    if rank == 0 {
        invalid!("diff wants at least one dimension");
    }
    let (times, dim) = (a.int(1)?, wrap_dim(a.int(2)?, rank)?);
    if times < 0 {
        invalid!("diff cannot be taken {times} times");
    }
    if times == 0 {
        return Ok(e.one("aten.clone.default", args![input])?.into());
    }
    let parts: Vec<Handle> =
        [a.opt_tensor(3)?.copied(), Some(input), a.opt_tensor(4)?.copied()].into_iter().flatten().collect();
    if parts.len() > 1 {
        input = e.one("aten.cat.default", args![parts, dim])?;
    }
    let minus = if e.dtype(input) == DType::Bool { "aten.logical_xor.default" } else { "aten.sub.Tensor" };
    let size = e.shape(input)[dim].clone();
    // A dimension that is too short leaves nothing.
    let times = if size.is_lt(times) { size.as_int().unwrap_or(times) } else { times };
    for _ in 0..times {
        let size = e.shape(input)[dim].clone();
        let later = e.one("aten.slice.Tensor", args![input, dim, 1, &size])?;
        let earlier = e.one("aten.slice.Tensor", args![input, dim, 0, size - SymInt::Int(1)])?;
        input = e.one(minus, args![later, earlier])?;
    }
    Ok(input.into())
}
