//! Distances between points.
//!
//! The norm of the difference of two rows, for any order: 0 counts the coordinates that differ, infinity takes the
//! largest difference. Computed in `f64`, always from differences.

use pyrite_ir::{Args, Call, Emit, Handle, Meta, OpDef, OpError, Tag, Value, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use crate::derivatives::distance as d;
use crate::lowerings::distance as to_loops;
use crate::rules::{broadcast, expect_same_shape};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
        "The distances between all pairs of rows of two batches of matrices.",
        cdist_infer,
        cdist,
    )
    .lower(to_loops::cdist)
    .tags(&[Tag::Core])
    .derivative(d::cdist)
    .samples(&[
        "f32[3, 4], f32[5, 4], 2.0, None",
        "f64[2, 1, 3, 4], f64[3, 5, 4], 1.0, 0",
        "f64[3, 4], f64[5, 4], inf, 2",
        "f32[3, 4]<[1, 3], f32[5, 4], 0.0, None",
        "f32[3, 0], f32[5, 0], 0.5, None",
        "f32[0, 3], f32[5, 3], 3.0, None",
    ]),
    OpDef::kernel(
        "aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
        "The Euclidean distances between all pairs of rows.",
        euclidean_infer,
        |call| pairs(call, 2.0),
    )
    .lower(to_loops::euclidean)
    .derivative(d::euclidean)
    .samples(&["f32[3, 4], f32[5, 4]", "f64[2, 3, 4], f64[2, 5, 4]"]),
    OpDef::kernel(
        "aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
        "The gradient of `_cdist_forward` for its first argument.",
        cdist_backward_infer,
        cdist_backward,
    )
    .lower(to_loops::cdist_backward)
    .samples(&[
        "f32[3, 5], f32[3, 4], f32[5, 4], 2.0, f32[3, 5]{1..2}",
        "f64[2, 3, 5], f64[2, 3, 4], f64[5, 4], 1.0, f64[2, 3, 5]{1..2}",
        "f64[3, 5], f64[3, 4], f64[5, 4], 3.0, f64[3, 5]{1..2}",
        "f64[3, 5], f64[3, 4], f64[5, 4], 0.0, f64[3, 5]{1..2}",
    ]),
    OpDef::composite(
        "aten::cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
        "The distances between all pairs of rows of two batches of matrices.",
        |e: &mut dyn Emit, args: &Args<'_, Handle>| e.call("aten._cdist_forward.default", args.values),
    )
    .samples(&["f32[3, 4], f32[5, 4]", "f64[2, 3, 4], f64[5, 4], 1.0"]),
    OpDef::kernel(
        "aten::_pdist_forward(Tensor self, float p=2) -> Tensor",
        "The distances between all pairs of different rows of a matrix, each pair once.",
        pdist_infer,
        pdist,
    )
    .tags(&[Tag::Core])
    .derivative(d::pdist)
    .samples(&["f32[5, 3]", "f64[4, 3]<[1, 4], 1.0", "f64[4, 3], inf", "f32[1, 3], 0.0", "f32[0, 3]", "f32[3, 0]"]),
    OpDef::kernel(
        "aten::_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
        "The gradient of `_pdist_forward`.",
        |args| {
            let points = args.tensor(1)?;
            Ok(points.fresh(&points.shape, points.dtype).into())
        },
        pdist_backward,
    )
    .samples(&["f32[10], f32[5, 3], 2.0, f32[10]{1..2}", "f64[6], f64[4, 3], 1.5, f64[6]{1..2}"]),
    OpDef::composite(
        "aten::pdist(Tensor self, float p=2) -> Tensor",
        "The distances between all pairs of different rows of a matrix, each pair once.",
        |e: &mut dyn Emit, args: &Args<'_, Handle>| e.call("aten._pdist_forward.default", args.values),
    )
    .samples(&["f32[5, 3]"]),
];

/// How many differences are worth a second thread.
const PARALLEL: usize = 1 << 15;

fn check_order(p: f64) -> Result<(), OpError> {
    if p >= 0.0 { Ok(()) } else { invalid!("distances of the order {p}, expected a non-negative one") }
}

fn cdist_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    check_order(args.float(2)?)?;
    if !matches!(args.opt_int(3)?, None | Some(0..=2)) {
        invalid!("compute_mode must be 0, 1 or 2");
    }
    if !matches!(args.tensor(0)?.dtype, DType::F32 | DType::F64) {
        invalid!("distances are not defined for {}", args.tensor(0)?.dtype);
    }
    euclidean_infer(args)
}

fn euclidean_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (left, right) = (args.tensor(0)?, args.tensor(1)?);
    if left.rank() < 2 || right.rank() < 2 {
        invalid!("distances need matrices, not shapes {:?} and {:?}", left.shape, right.shape);
    }
    if left.dtype != right.dtype || !left.dtype.is_float() {
        invalid!("distances between {} and {}", left.dtype, right.dtype);
    }
    let (l, r) = (left.rank() - 2, right.rank() - 2);
    if !left.shape[l + 1].is_eq(&right.shape[r + 1]) {
        invalid!("points of {} and of {} coordinates", left.shape[l + 1], right.shape[r + 1]);
    }
    let mut shape = broadcast(&[&left.shape[..l], &right.shape[..r]])?;
    shape.push(left.shape[l].clone());
    shape.push(right.shape[r].clone());
    Ok(left.fresh(&shape, left.dtype).into())
}

fn pdist_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let meta = args.tensor(0)?;
    check_order(args.float(1)?)?;
    if meta.rank() != 2 || !matches!(meta.dtype, DType::F32 | DType::F64) {
        invalid!("pdist takes a matrix of f32 or f64, not {meta}");
    }
    let rows = &meta.shape[0];
    let count =
        if rows.is_le(1) { SymInt::Int(0) } else { (rows.clone() * &(rows.clone() - 1)).floor_div(&SymInt::Int(2)) };
    Ok(meta.fresh(&[count], meta.dtype).into())
}

/// The distance of two points. A NaN among the differences makes the result one, except that the largest difference
/// ignores it where `ignore_nan` says so.
fn distance(a: &[f64], b: &[f64], p: f64, nan: Nan) -> f64 {
    let differences = a.iter().zip(b).map(|(x, y)| (x - y).abs());
    if p == 0.0 {
        differences.map(|d| if d.is_nan() { d } else { f64::from(d != 0.0) }).sum()
    } else if p == 1.0 {
        differences.sum()
    } else if p == 2.0 {
        differences.map(|d| d * d).sum::<f64>().sqrt()
    } else if p.is_infinite() {
        differences
            .fold(0.0, |largest: f64, d| if d > largest || (d.is_nan() && nan == Nan::Spreads) { d } else { largest })
    } else {
        differences.map(|d| d.powf(p)).sum::<f64>().powf(1.0 / p)
    }
}

/// What a NaN does to the largest difference.
#[derive(Clone, Copy, PartialEq)]
enum Nan {
    Ignored,
    Spreads,
}

fn cdist(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    pairs(call, call.args.float(2)?)
}

fn pairs(call: &Call<'_>, p: f64) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let (left, right) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let batch = &out.shape()[..out.rank() - 2];
    let points = |t: &Tensor| {
        let shape: Vec<i64> = batch.iter().chain(&t.shape()[t.rank() - 2..]).copied().collect();
        t.expanded(&shape).to_f64s()
    };
    let (rows, cols) = (out.shape()[out.rank() - 2] as usize, out.shape()[out.rank() - 1] as usize);
    let size = left.shape()[left.rank() - 1] as usize;
    let (left, right) = (points(left), points(right));
    let mut result = vec![0.0; out.numel()];
    if size > 0 && !result.is_empty() {
        let row = |index: usize, to: &mut [f64]| {
            let a = &left[index * size..(index + 1) * size];
            let others = &right[index / rows * cols * size..];
            for (j, to) in to.iter_mut().enumerate() {
                *to = distance(a, &others[j * size..(j + 1) * size], p, Nan::Ignored);
            }
        };
        if result.len() * size < PARALLEL {
            result.chunks_mut(cols).enumerate().for_each(|(index, to)| row(index, to));
        } else {
            pyrite_threads::chunks(&mut result, cols, row);
        }
    }
    out.write_f64s(&result);
    Ok(out.into())
}

fn pdist(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (input, p) = (call.args.tensor(0)?, call.args.float(1)?);
    let out = call.allocate(0)?;
    let (rows, size) = (input.shape()[0] as usize, input.shape()[1] as usize);
    let points = input.to_f64s();
    let point = |i: usize| &points[i * size..(i + 1) * size];
    let mut result = Vec::with_capacity(out.numel());
    for i in 0..rows {
        result.extend((i + 1..rows).map(|j| distance(point(i), point(j), p, Nan::Spreads)));
    }
    out.write_f64s(&result);
    Ok(out.into())
}

/// The difference of two coordinates as an element of their type, as distances were computed of.
fn difference(a: f64, b: f64, dtype: DType) -> f64 {
    if dtype == DType::F32 { f64::from((a - b) as f32) } else { a - b }
}

/// The derivative of a distance by one coordinate's difference. Where points coincide it is 0.
fn slope(difference: f64, p: f64, distance: f64) -> f64 {
    let sign = if difference == 0.0 { 0.0 } else { difference.signum() };
    if p == 0.0 {
        0.0
    } else if p == 1.0 {
        sign
    } else if p.is_infinite() {
        // Every coordinate with the largest difference counts.
        if difference.abs() == distance { sign } else { 0.0 }
    } else if distance == 0.0 || difference == 0.0 {
        0.0
    } else if p == 2.0 {
        difference / distance
    } else {
        sign * (difference.abs() / distance).powf(p - 1.0)
    }
}

fn cdist_backward_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (grad, left, right) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    check_order(args.float(3)?)?;
    if left.rank() < 2 || right.rank() < 2 {
        invalid!("distances need matrices, not shapes {:?} and {:?}", left.shape, right.shape);
    }
    let (l, r) = (left.rank() - 2, right.rank() - 2);
    let batch = broadcast(&[&left.shape[..l], &right.shape[..r]])?;
    let mut whole = batch.clone();
    whole.extend([left.shape[l].clone(), right.shape[r].clone()]);
    expect_same_shape("the gradient of distances", &grad.shape, &whole)?;
    // Without distances there is nothing to expand to.
    if grad.numel().is_eq(0) || left.numel().is_eq(0) {
        return Ok(left.fresh(&left.shape, left.dtype).into());
    }
    let mut shape = batch;
    shape.extend(left.shape[l..].iter().cloned());
    Ok(left.fresh(&shape, left.dtype).into())
}

fn cdist_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, left, right) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let (p, distances) = (call.args.float(3)?, call.args.tensor(4)?.to_f64s());
    let out = call.allocate(0)?;
    let batch = &grad.shape()[..grad.rank() - 2];
    let points = |t: &Tensor| {
        let shape: Vec<i64> = batch.iter().chain(&t.shape()[t.rank() - 2..]).copied().collect();
        t.expanded(&shape).to_f64s()
    };
    let (rows, cols) = (grad.shape()[grad.rank() - 2] as usize, grad.shape()[grad.rank() - 1] as usize);
    let (size, dtype) = (left.shape()[left.rank() - 1] as usize, left.dtype());
    let (grad, left, right) = (grad.to_f64s(), points(left), points(right));
    let mut result = vec![0.0; out.numel()];
    if distances.len() != grad.len() {
        invalid!("{} distances for {} gradients", distances.len(), grad.len());
    }
    if size > 0 && !grad.is_empty() {
        pyrite_threads::chunks(&mut result, size, |index, to| {
            let a = &left[index * size..(index + 1) * size];
            let others = &right[index / rows * cols * size..];
            for j in 0..cols {
                let (g, distance) = (grad[index * cols + j], distances[index * cols + j]);
                for ((to, a), b) in to.iter_mut().zip(a).zip(&others[j * size..]) {
                    *to += g * slope(difference(*a, *b, dtype), p, distance);
                }
            }
        });
    }
    out.write_f64s(&result);
    Ok(out.into())
}

fn pdist_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, input, p) = (call.args.tensor(0)?.to_f64s(), call.args.tensor(1)?, call.args.float(2)?);
    let distances = call.args.tensor(3)?.to_f64s();
    let out = call.allocate(0)?;
    let (rows, size) = (input.shape()[0] as usize, input.shape()[1] as usize);
    let pairs = rows * rows.saturating_sub(1) / 2;
    if grad.len() != pairs || distances.len() != pairs {
        invalid!("{} gradients and {} distances for {pairs} pairs", grad.len(), distances.len());
    }
    let points = input.to_f64s();
    let mut result = vec![0.0; points.len()];
    let mut pairs = grad.iter().zip(&distances);
    for i in 0..rows {
        for (j, (g, distance)) in (i + 1..rows).zip(&mut pairs) {
            for c in 0..size {
                let (at, other) = (i * size + c, j * size + c);
                let apart = difference(points[at], points[other], input.dtype());
                let change = g * slope(apart, p, *distance);
                result[at] += change;
                result[other] -= change;
            }
        }
    }
    out.write_f64s(&result);
    Ok(out.into())
}
