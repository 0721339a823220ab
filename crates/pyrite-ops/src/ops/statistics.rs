//! Histograms, counts and reductions of segments.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, SymDims, Tag, Value, Vjp, invalid};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::{DType, Tensor};

use crate::derivatives::statistics as d;
use crate::rules::wrap_dim;
use pyrite_kernels::lanes::Block;

const NO_SLOPE: Vjp = Vjp::NonDifferentiable("counts do not vary smoothly");

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
        "How often every number from zero occurs, or the sum of its weights.",
        bincount_meta,
        bincount,
    )
    .tags(&[Tag::DataDependentShape])
    .derivative(d::bincount)
    .samples(&["i64[9]{0..5}", "i32[9]{0..5}, f32[9]", "i64[0], None, 3", "u8[4]{0..3}, i64[4], 9"]),
    OpDef::kernel(
        "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
        "How many elements fall into each of equal bins between two bounds, or between the extremes.",
        histc_meta,
        histc,
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[20], 4", "f64[20], 3, -1, 1", "bf16[5], 2", "f32[0], 2"]),
    OpDef::kernel(
        "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        "A histogram of equal bins and their edges.",
        |a| histogram_meta(a, &[a.sym(1)?]),
        |c| {
            let edges = equal_edges(c, &[c.args.int(1)?], 2)?;
            histogram(c, &edges, 3)
        },
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[20], 4", "f64[20], 3, range=[-1., 1.], weight=f64[20], density=True", "f32[0], 2"]),
    OpDef::kernel(
        "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        "A histogram of bins given by their edges.",
        |a| {
            let bins = a.tensor(1)?;
            if bins.rank() != 1 || bins.shape[0].is_lt(1) {
                invalid!("histogram wants the edges of its bins in one dimension, not shape {:?}", bins.shape);
            }
            histogram_meta(a, &[bins.shape[0].clone() - SymInt::Int(1)])
        },
        |c| histogram(c, &[c.args.tensor(1)?.to_f64s()], 2),
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[20], f32[4]{0..1}", "f64[2, 3], f64[3]{0..1}, weight=f64[2, 3], density=True"]),
    OpDef::kernel(
        "aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
        "The edges of equal bins for every coordinate of points.",
        |a| {
            let input = a.tensor(0)?;
            expect_points(input, a.syms(1)?.len())?;
            let edge = |bins: &SymInt| input.fresh(&[bins + SymInt::Int(1)], input.dtype);
            Ok(a.syms(1)?.iter().map(edge).collect::<Vec<_>>().into())
        },
        |c| {
            let edges = equal_edges(c, &c.args.ints(1)?, 2)?;
            let write = |(index, edges): (usize, &Vec<f64>)| {
                let out = c.allocate(index)?;
                out.write_f64s(edges);
                Ok::<_, OpError>(out)
            };
            Ok(edges.iter().enumerate().map(write).collect::<Result<Vec<_>, _>>()?.into())
        },
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[5, 2], [2, 3]", "f64[5, 1], [2], range=[0., 1.]"]),
    OpDef::kernel(
        "aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
        "How many points fall into each cell of a grid of equal bins.",
        |a| {
            let input = a.tensor(0)?;
            expect_points(input, a.syms(1)?.len())?;
            Ok(input.fresh(&a.syms(1)?, input.dtype).into())
        },
        |c| {
            let edges = equal_edges(c, &c.args.ints(1)?, 2)?;
            let out = c.allocate(0)?;
            out.write_f64s(&count_cells(c, &edges, 3)?);
            Ok(out.into())
        },
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[5, 2], [2, 3]", "f64[5, 2], [2, 2], range=[-1., 1., -1., 1.], density=True"]),
    OpDef::kernel(
        "aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
        "How many points fall into each cell of a grid given by edges.",
        |a| {
            let input = a.tensor(0)?;
            let bins = a.tensors(1)?;
            expect_points(input, bins.len())?;
            if bins.iter().any(|b| b.rank() != 1) {
                invalid!("the edges of a histogram's bins have one dimension");
            }
            let shape: SymDims = bins.iter().map(|b| b.shape[0].clone() - SymInt::Int(1)).collect();
            Ok(input.fresh(&shape, input.dtype).into())
        },
        |c| {
            let edges: Vec<Vec<f64>> = c.args.tensors(1)?.iter().map(|t| t.to_f64s()).collect();
            let out = c.allocate(0)?;
            out.write_f64s(&count_cells(c, &edges, 2)?);
            Ok(out.into())
        },
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[5, 2], [f32[3]{0..1}, f32[2]{0..1}]"]),
    OpDef::kernel(
        "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
        "The sum, mean, product, maximum or minimum of consecutive segments along an axis.",
        segment_meta,
        segment_reduce,
    )
    .derivative(d::segment_reduce)
    .samples(&[
        "f32[5, 2], 'sum', offsets=i64[1]{0..1}",
        "f32[0, 2], 'mean', lengths=i64[3]{0..1}",
        "f64[2, 0], 'max', lengths=i64[2, 3]{0..1}, axis=1, initial=1",
        "f64[6, 2], 'sum', lengths=i64[2]{3..4}",
        "f64[2, 6, 2], 'mean', lengths=i64[2, 3]{2..3}, axis=1",
        "f64[6], 'max', lengths=i64[2]{3..4}, initial=0.1",
        "f32[6, 2], 'prod', lengths=i64[3]{2..3}, initial=0.5",
    ]),
];

fn bincount_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    if input.rank() != 1 || !input.dtype.is_integral() || input.dtype == DType::Bool {
        invalid!("bincount wants integers of one dimension, not {input}");
    }
    if a.sym(2)?.is_lt(0) {
        invalid!("bincount's minlength is not negative");
    }
    let empty = input.shape[0].is_eq(0);
    let dtype = match a.opt_tensor(1)? {
        Some(weights) => {
            if weights.rank() != 1 || !weights.shape[0].is_eq(&input.shape[0]) {
                invalid!("bincount's weights have shape {:?}, its input {:?}", weights.shape, input.shape);
            }
            match weights.dtype {
                _ if empty => DType::I64,
                DType::F32 => DType::F32,
                _ => DType::F64,
            }
        }
        None => DType::I64,
    };
    let size = if empty { a.sym(2)? } else { SymEnv::new().unbacked() };
    Ok(input.fresh(&[size], dtype).into())
}

fn bincount(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?.to_i64s();
    if input.iter().any(|v| *v < 0) {
        invalid!("bincount wants numbers that are not negative");
    }
    let len = input.iter().max().map_or(0, |v| v.saturating_add(1)).max(call.args.int(2)?);
    let out = Tensor::zeros(&[len], call.out_meta(0)?.dtype)?;
    if let Some(weights) = call.args.opt_tensor(1)?.filter(|_| !input.is_empty()) {
        let mut sums = vec![0.0; len as usize];
        for (bin, weight) in input.iter().zip(weights.to_f64s()) {
            sums[*bin as usize] += weight;
        }
        out.write_f64s(&sums);
    } else {
        let mut counts = vec![0i64; len as usize];
        for bin in &input {
            counts[*bin as usize] += 1;
        }
        out.write_i64s(&counts);
    }
    Ok(out.into())
}

fn expect_float(input: &Meta) -> Result<(), OpError> {
    if !input.dtype.is_float() {
        invalid!("a histogram is of float elements, not of {}", input.dtype);
    }
    Ok(())
}

fn histc_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_float(input)?;
    let bins = a.sym(1)?;
    if bins.is_lt(1) {
        invalid!("histc wants at least one bin, not {bins}");
    }
    Ok(input.fresh(&[bins], input.dtype).into())
}

/// The bounds of bins: those given, else the extremes, moved apart where they are equal.
fn bounds(values: impl Iterator<Item = f64>, given: Option<(f64, f64)>) -> Result<(f64, f64), OpError> {
    let (mut low, mut high) = given.unwrap_or_else(|| {
        let extremes = values.fold(None, |seen: Option<(f64, f64)>, x| {
            let (low, high) = seen.unwrap_or((x, x));
            Some(if x.is_nan() { (x, x) } else { (if x < low { x } else { low }, if x > high { x } else { high }) })
        });
        extremes.unwrap_or((0.0, 0.0))
    });
    if !low.is_finite() || !high.is_finite() {
        invalid!("the range of a histogram, {low} to {high}, is not finite");
    }
    if low > high {
        invalid!("the range of a histogram goes from {low} down to {high}");
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    Ok((low, high))
}

fn histc(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let values = call.args.tensor(0)?.to_f64s();
    let bins = call.args.int(1)? as usize;
    let (low, high) = (call.args.float(2)?, call.args.float(3)?);
    let mut counts = vec![0.0; bins];
    let (low, high) = bounds(
        values.iter().copied(),
        (low != high).then_some((low, high)).or_else(|| {
            // Equal bounds other than zero are meant as they are where there is nothing to look at.
            values.is_empty().then_some((low, high))
        }),
    )?;
    for x in values.into_iter().filter(|x| (low..=high).contains(x)) {
        let bin = ((x - low) * bins as f64 / (high - low)) as usize;
        counts[bin.min(bins - 1)] += 1.0;
    }
    out.write_f64s(&counts);
    Ok(out.into())
}

fn histogram_meta(a: &Args<'_, Meta>, bins: &[SymInt]) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_float(input)?;
    if bins[0].is_lt(1) {
        invalid!("a histogram wants at least one bin");
    }
    let edges = input.fresh(&[&bins[0] + SymInt::Int(1)], input.dtype);
    Ok(vec![input.fresh(bins, input.dtype), edges].into())
}

fn expect_points(input: &Meta, coordinates: usize) -> Result<(), OpError> {
    expect_float(input)?;
    if input.rank() < 2 || !input.shape[input.rank() - 1].is_eq(coordinates) {
        invalid!("a histogram of {coordinates} coordinates wants such points, not shape {:?}", input.shape);
    }
    Ok(())
}

/// The edges of equal bins per coordinate.
fn equal_edges(call: &Call<'_>, bins: &[i64], range: usize) -> Result<Vec<Vec<f64>>, OpError> {
    let values = call.args.tensor(0)?.to_f64s();
    let given = call.args.opt_floats(range)?;
    if given.as_ref().is_some_and(|g| g.len() != 2 * bins.len()) {
        invalid!("a histogram of {} coordinates wants a range of twice as many numbers", bins.len());
    }
    let mut edges = Vec::with_capacity(bins.len());
    for (n, count) in bins.iter().enumerate() {
        if *count < 1 {
            invalid!("a histogram wants at least one bin, not {count}");
        }
        let own = values.iter().skip(n).step_by(bins.len()).copied();
        let given = given.as_ref().map(|g| (g[2 * n], g[2 * n + 1]));
        let (mut low, mut high) = match given {
            Some(pair) => pair,
            None if values.is_empty() => (0.0, 1.0),
            None => {
                let spread = own.clone().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
                if own.clone().any(f64::is_nan) { (f64::NAN, f64::NAN) } else { spread }
            }
        };
        if !low.is_finite() || !high.is_finite() || low > high {
            invalid!("the range of a histogram, {low} to {high}, is not finite and in order");
        }
        if low == high {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let step = (high - low) / *count as f64;
        // From both ends, so that the last edge is exactly the upper bound.
        let edge = |i: i64| if i <= count / 2 { low + step * i as f64 } else { high - step * (count - i) as f64 };
        edges.push((0..=*count).map(edge).collect());
    }
    Ok(edges)
}

fn histogram(call: &Call<'_>, edges: &[Vec<f64>], weight: usize) -> Result<Value<Tensor>, OpError> {
    let (counts, bounds) = (call.allocate(0)?, call.allocate(1)?);
    counts.write_f64s(&count_cells(call, edges, weight)?);
    bounds.write_f64s(&edges[0]);
    Ok(vec![counts, bounds].into())
}

/// The weights of points per cell of a grid, as densities where the call says so.
fn count_cells(call: &Call<'_>, edges: &[Vec<f64>], weight: usize) -> Result<Vec<f64>, OpError> {
    let points = call.args.tensor(0)?.to_f64s();
    let weights = call.args.opt_tensor(weight)?.map(Tensor::to_f64s);
    if weights.as_ref().is_some_and(|w| w.len() * edges.len() != points.len()) {
        invalid!("a histogram's weights are not one per point");
    }
    let cells: usize = edges.iter().map(|e| e.len().saturating_sub(1)).product();
    let mut counts = vec![0.0; cells];
    // Edges are kept in the input's type, and elements are compared with those.
    let single = call.args.tensor(0)?.dtype() == DType::F32;
    let edges: Vec<Vec<f64>> =
        edges.iter().map(|e| e.iter().map(|x| if single { f64::from(*x as f32) } else { *x }).collect()).collect();
    for (n, point) in points.chunks(edges.len()).enumerate() {
        let mut cell = Some(0);
        for (x, edges) in point.iter().zip(&edges) {
            let bins = edges.len().saturating_sub(1);
            let inside = bins > 0 && *x >= edges[0] && *x <= edges[bins];
            // The last bin has its upper edge too.
            let bin = edges.partition_point(|e| e <= x).saturating_sub(1).min(bins.saturating_sub(1));
            cell = cell.filter(|_| inside).map(|cell: usize| cell * bins + bin);
        }
        if let Some(cell) = cell {
            counts[cell] += weights.as_ref().map_or(1.0, |w| w[n]);
        }
    }
    if call.args.bool(weight + 1)? {
        let total: f64 = counts.iter().sum();
        for (cell, count) in counts.iter_mut().enumerate() {
            let mut rest = cell;
            let mut volume = 1.0;
            for edges in edges.iter().rev() {
                let bins = edges.len() - 1;
                volume *= edges[rest % bins + 1] - edges[rest % bins];
                rest /= bins;
            }
            *count /= total * volume;
        }
    }
    Ok(counts)
}

fn segment_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let data = a.tensor(0)?;
    expect_float(data)?;
    if !matches!(a.str(1)?, "sum" | "mean" | "max" | "min" | "prod") {
        invalid!("segment_reduce does not know the reduction '{}'", a.str(1)?);
    }
    let axis = wrap_dim(a.int(5)?, data.rank())?;
    let (bounds, extra) = match (a.opt_tensor(2)?, a.opt_tensor(4)?) {
        (Some(lengths), None) => (lengths, 0),
        (None, Some(offsets)) => (offsets, 1),
        _ => invalid!("segment_reduce wants either lengths or offsets"),
    };
    if bounds.rank() != axis + 1 || data.rank() <= axis {
        invalid!("segment_reduce along axis {axis} wants segments of {} dimensions, not {}", axis + 1, bounds.rank());
    }
    let mut shape: SymDims = bounds.shape.clone();
    shape[axis] = shape[axis].clone() - SymInt::Int(extra);
    shape.extend(data.shape[axis + 1..].iter().cloned());
    Ok(data.fresh(&shape, data.dtype).into())
}

fn segment_reduce(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let data = call.args.tensor(0)?;
    let how = call.args.str(1)?;
    let axis = wrap_dim(call.args.int(5)?, data.rank())?;
    let initial = call.args.opt_float(7)?;
    let block = Block::new(data.shape(), axis);
    let values = data.to_f64s();
    let segments = out.shape()[axis] as usize;
    // The segments of each outer position as ranges along the axis.
    let ranges = ranges(call, block.outer, segments)?;
    if ranges.iter().any(|(start, end)| start > end || *end > block.len) {
        invalid!("segment_reduce's segments do not lie within the {} elements of the axis", block.len);
    }
    let mut results = Vec::with_capacity(out.numel());
    for (n, (start, end)) in ranges.iter().enumerate() {
        let base = n / segments.max(1) * block.len;
        for inner in 0..block.inner {
            let lane = (*start..*end).map(|i| values[(base + i) * block.inner + inner]);
            let count = (end - start) as f64;
            let pick = |take: fn(f64, f64) -> bool, from: f64| {
                lane.clone().fold(from, |a, b| if a.is_nan() || !(b.is_nan() || take(b, a)) { a } else { b })
            };
            results.push(match how {
                "max" => pick(|b, a| b > a, initial.unwrap_or(f64::NEG_INFINITY)),
                "min" => pick(|b, a| b < a, initial.unwrap_or(f64::INFINITY)),
                "prod" => lane.fold(initial.unwrap_or(1.0), |a, b| a * b),
                "sum" => lane.fold(initial.unwrap_or(0.0), |a, b| a + b),
                _ if count == 0.0 => initial.unwrap_or(f64::NAN),
                _ => lane.fold(initial.unwrap_or(0.0), |a, b| a + b) / count,
            });
        }
    }
    out.write_f64s(&results);
    Ok(out.into())
}

fn ranges(call: &Call<'_>, outer: usize, segments: usize) -> Result<Vec<(usize, usize)>, OpError> {
    let bounds = match (call.args.opt_tensor(2)?, call.args.opt_tensor(4)?) {
        (Some(lengths), _) => {
            let lengths = lengths.to_i64s();
            let axis = call.args.tensor(0)?.shape()[wrap_dim(call.args.int(5)?, call.args.tensor(0)?.rank())?];
            let rows = lengths.chunks(segments.max(1));
            if !call.args.bool(6)? && rows.clone().any(|row| row.iter().sum::<i64>() != axis) {
                invalid!("segment_reduce's lengths do not add up to the {axis} elements of the axis");
            }
            rows.flat_map(|row| {
                row.iter()
                    .scan(0, |at, length| {
                        *at += length;
                        Some((*at - length, *at))
                    })
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
        }
        (_, Some(offsets)) => {
            let offsets = offsets.to_i64s();
            offsets.chunks(segments + 1).flat_map(|row| row.windows(2).map(|w| (w[0], w[1]))).collect()
        }
        _ => invalid!("segment_reduce wants either lengths or offsets"),
    };
    if bounds.len() != outer * segments || bounds.iter().any(|(start, end)| *start < 0 || end < start) {
        invalid!("segment_reduce's segments are malformed");
    }
    Ok(bounds.into_iter().map(|(start, end)| (start as usize, end as usize)).collect())
}
