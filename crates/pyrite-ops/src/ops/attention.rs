//! Attention: `softmax(scale·query·keyᵀ + mask)·value`.
//!
//! The fused kernel works on blocks of query rows, one task each, so that it never holds more than a block of scores.
//! A row whose keys are all masked out gives zeros, and a `logsumexp` of zero.
//!
//! `scaled_dot_product_attention`, which chooses between this and plain products, is in `composite.rs`.

use pyrite_ir::{Args, Call, ExternKind, Meta, OpDef, OpError, Tolerance, Value, invalid};
use pyrite_tensor::tensor::broadcast_strides;
use pyrite_tensor::{DType, Tensor, layout};

use crate::decompositions::softmax as by;
use crate::derivatives::attention as d;
use crate::rules::{preserved_strides, to_float, wrap_dim};
use pyrite_kernels::gemm::{Factor, Matrix, Onto, Shape, multiply};
use pyrite_kernels::{Carrier, vector_math};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., \
         bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
        "Attention of four-dimensional tensors, and the logarithm of each row's sum of exponentials.",
        infer_flash,
        flash,
    )
    .as_call(ExternKind::Kernel)
    .tolerance(Tolerance::Times(4.0))
    .derivative(d::flash_attention)
    .constants(&[1])
    .samples(&[
        "f32[2, 4, 6, 8], f32[2, 4, 5, 8], f32[2, 4, 5, 8]",
        "f32[2, 4, 6, 8]<[192, 8, 32, 1], f32[2, 2, 5, 8], f32[2, 2, 5, 8], is_causal=True",
        "f64[2, 4, 6, 8], f64[2, 4, 5, 8], f64[2, 4, 5, 8], attn_mask=f64[6, 5], scale=0.3",
        "bf16[2, 4, 6, 8], bf16[2, 4, 5, 8], bf16[2, 4, 5, 8], attn_mask=bf16[2, 1, 1, 5]",
    ]),
    OpDef::kernel(
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor \
         value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? \
         scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
        "The gradients of the fused attention.",
        infer_flash_backward,
        flash_backward,
    )
    .as_call(ExternKind::Kernel)
    .tolerance(Tolerance::Times(4.0))
    .samples(&[
        "f32[2, 4, 6, 8], f32[2, 4, 6, 8], f32[2, 4, 5, 8], f32[2, 4, 5, 8], f32[2, 4, 6, 8], f32[2, 4, 6]{3..4}, 0., \
         False",
        "f64[2, 4, 6, 8], f64[2, 4, 6, 8]<[192, 8, 32, 1], f64[2, 4, 5, 8], f64[2, 4, 5, 8], f64[2, 4, 6, 8], f64[2, \
         4, 6]{3..4}, 0., True, attn_mask=f64[6, 5]",
    ]),
    OpDef::kernel(
        "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        "The softmax over one dimension, zero where all of it is masked out by -inf.",
        infer_safe_softmax,
        safe_softmax,
    )
    .derivative(crate::derivatives::softmax::softmax)
    .decompose(by::safe_softmax)
    .samples(&["f32[3, 4], -1", "f64[3, 4]<[1, 3], 0", "bf16[0, 4], 1", "f32[3], 0, dtype=f64"]),
];

/// What the fused kernels take: sizes, and how queries see keys.
struct Problem {
    batch: usize,
    heads: usize,
    /// How many query heads share a key head.
    group: usize,
    queries: usize,
    keys: usize,
    width: usize,
    value_width: usize,
    scale: f64,
    causal: bool,
}

fn expect_fused(query: &Meta, key: &Meta, value: &Meta) -> Result<(), OpError> {
    let fits = [query, key, value].iter().all(|m| m.rank() == 4 && m.dtype == query.dtype)
        && query.dtype.is_float()
        && query.shape[3].is_eq(&key.shape[3])
        && key.shape[2].is_eq(&value.shape[2])
        && key.shape[1].is_eq(&value.shape[1])
        && query.shape[0].is_eq(&key.shape[0])
        && query.shape[0].is_eq(&value.shape[0])
        && key.shape[1].is_gt(0)
        && query.shape[1].modulo(&key.shape[1]).is_eq(0);
    if !fits {
        invalid!(
            "fused attention does not take queries {:?}, keys {:?} and values {:?}",
            query.shape,
            key.shape,
            value.shape
        );
    }
    Ok(())
}

fn infer_flash(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (query, key, value) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    expect_fused(query, key, value)?;
    if a.float(3)? != 0.0 {
        invalid!("fused attention on the CPU has no dropout");
    }
    let (b, h, q) = (&query.shape[0], &query.shape[1], &query.shape[2]);
    let output =
        Meta { device: query.device.clone(), ..Meta::strided(&query.shape, &preserved_strides(query), query.dtype) };
    let stored = query.fresh(&[b.clone(), q.clone(), h.clone()], query.dtype.to_compute());
    let stride = [stored.stride[0].clone(), stored.stride[2].clone(), stored.stride[1].clone()];
    let sums = Meta::strided(&[b.clone(), h.clone(), q.clone()], &stride, stored.dtype);
    Ok(vec![output, sums].into())
}

fn infer_flash_backward(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    expect_fused(a.tensor(1)?, a.tensor(2)?, a.tensor(3)?)?;
    let like = |index: usize| -> Result<Meta, OpError> {
        let meta = a.tensor(index)?;
        Ok(Meta { device: meta.device.clone(), ..Meta::strided(&meta.shape, &preserved_strides(meta), meta.dtype) })
    };
    Ok(vec![like(1)?, like(2)?, like(3)?].into())
}

fn problem(query: &Tensor, key: &Tensor, value: &Tensor, scale: Option<f64>, causal: bool) -> Problem {
    let (q, k, v) = (query.shape(), key.shape(), value.shape());
    let size = |dims: &[i64], d: usize| dims[d] as usize;
    Problem {
        batch: size(q, 0),
        heads: size(q, 1),
        group: size(q, 1) / size(k, 1).max(1),
        queries: size(q, 2),
        keys: size(k, 2),
        width: size(q, 3),
        value_width: size(v, 3),
        scale: scale.unwrap_or_else(|| 1.0 / (q[3] as f64).sqrt()),
        causal,
    }
}

/// A float type that the fused kernels compute in.
trait Real: Carrier + Factor {
    const LEAST: Self;
    /// The exponential of every value.
    fn exp_all(values: &mut [Self]);
    fn ln(self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn of(value: f64) -> Self;
}

macro_rules! real {
    ($($type:ident, $exp_all:expr;)*) => {
        $(impl Real for $type {
            const LEAST: Self = $type::NEG_INFINITY;
            fn exp_all(values: &mut [Self]) {
                $exp_all(values);
            }
            fn ln(self) -> Self {
                $type::ln(self)
            }
            fn larger(self, other: Self) -> Self {
                if self.is_nan() || self > other { self } else { other }
            }
            fn of(value: f64) -> Self {
                value as $type
            }
        })*
    };
}

real! {
    f32, exp_many;
    f64, |values: &mut [f64]| values.iter_mut().for_each(|value| *value = value.exp());
}

fn exp_many(values: &mut [f32]) {
    let mut from = [0.0; 256];
    for part in values.chunks_mut(from.len()) {
        let from = &mut from[..part.len()];
        from.copy_from_slice(part);
        vector_math::exp([from], part);
    }
}

/// What is added to the scores, with strides that broadcast it.
struct Mask<T> {
    values: Vec<T>,
    stride: Vec<usize>,
}

impl<T: Real> Mask<T> {
    fn load(mask: &Tensor, p: &Problem) -> Result<Self, OpError> {
        let whole = [p.batch as i64, p.heads as i64, p.queries as i64, p.keys as i64];
        let lead = whole.len().checked_sub(mask.rank());
        let fits = lead.is_some_and(|lead| mask.shape().iter().zip(&whole[lead..]).all(|(m, w)| *m == 1 || m == w));
        if !fits {
            invalid!("a mask of shape {:?} does not broadcast to scores of shape {whole:?}", mask.shape());
        }
        let stride = broadcast_strides(mask.shape(), &layout::contiguous_strides(mask.shape()), &whole);
        let values = if mask.dtype() == DType::Bool {
            mask.to_bools().into_iter().map(|seen| if seen { T::ZERO } else { T::LEAST }).collect()
        } else {
            T::load(mask)
        };
        Ok(Self { values, stride: stride.iter().map(|s| *s as usize).collect() })
    }

    fn at(&self, b: usize, h: usize, i: usize, j: usize) -> T {
        let s = &self.stride;
        self.values[b * s[0] + h * s[1] + i * s[2] + j * s[3]]
    }
}

/// Query rows per task.
const BLOCK: usize = 128;

impl Problem {
    /// The scores of some rows of one head: scaled, masked, -inf where a key is not seen.
    fn scores<T: Real>(
        &self,
        q: &[T],
        k: &[T],
        mask: Option<&Mask<T>>,
        (b, h): (usize, usize),
        first: usize,
    ) -> Vec<T> {
        let rows = q.len() / self.width.max(1);
        let mut scores = vec![T::ZERO; rows * self.keys];
        multiply(
            &mut scores,
            Shape::rows_first(rows, self.keys),
            Matrix { data: q, shape: Shape::rows_first(rows, self.width) },
            Matrix { data: k, shape: Shape::rows_first(self.keys, self.width).transposed() },
            T::of(self.scale),
            Onto::Nothing,
        );
        for (i, row) in scores.chunks_exact_mut(self.keys.max(1)).enumerate() {
            if let Some(mask) = mask {
                for (j, score) in row.iter_mut().enumerate() {
                    *score = score.plus(mask.at(b, h, first + i, j));
                }
            }
            if self.causal {
                row[(first + i + 1).min(self.keys)..].fill(T::LEAST);
            }
        }
        scores
    }

    /// The rows of one head of a dense tensor of shape (batch, heads, rows, width).
    fn head<T>(data: &[T], heads: usize, (b, h): (usize, usize), rows: usize, width: usize) -> &[T] {
        let start = (b * heads + h) * rows * width;
        &data[start..start + rows * width]
    }
}

fn flash(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    match call.args.tensor(0)?.dtype() {
        DType::F64 => flash_in::<f64>(call),
        _ => flash_in::<f32>(call),
    }
}

fn flash_in<T: Real>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (query, key, value) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let p = problem(query, key, value, call.args.opt_float(6)?, call.args.bool(4)?);
    let mask = call.args.opt_tensor(5)?.map(|mask| Mask::<T>::load(mask, &p)).transpose()?;
    let (q, k, v) = (T::load(query), T::load(key), T::load(value));
    let blocks = p.queries.div_ceil(BLOCK);
    let results: Vec<(Vec<T>, Vec<T>)> = pyrite_threads::map(p.batch * p.heads * blocks, |task| {
        let (head, first) = (task / blocks, task % blocks * BLOCK);
        let at = (head / p.heads, head % p.heads);
        let shared = (at.0, at.1 / p.group);
        let rows = BLOCK.min(p.queries - first);
        let q = &Problem::head(&q, p.heads, at, p.queries, p.width)[first * p.width..(first + rows) * p.width];
        let k = Problem::head(&k, p.heads / p.group, shared, p.keys, p.width);
        let v = Problem::head(&v, p.heads / p.group, shared, p.keys, p.value_width);
        let mut weights = p.scores(q, k, mask.as_ref(), at, first);
        let sums = weights.chunks_exact_mut(p.keys.max(1)).map(soften).collect();
        let mut out = vec![T::ZERO; rows * p.value_width];
        multiply(
            &mut out,
            Shape::rows_first(rows, p.value_width),
            Matrix { data: &weights, shape: Shape::rows_first(rows, p.keys) },
            Matrix { data: v, shape: Shape::rows_first(p.keys, p.value_width) },
            T::of(1.0),
            Onto::Nothing,
        );
        (out, sums)
    });
    let (output, sums) = (call.allocate(0)?, call.allocate(1)?);
    let (mut all, mut logs) = (Vec::with_capacity(output.numel()), Vec::with_capacity(sums.numel()));
    for (out, sum) in results {
        all.extend(out);
        logs.extend(sum);
    }
    logs.resize(sums.numel(), T::ZERO);
    all.resize(output.numel(), T::ZERO);
    T::store(&output, &all);
    T::store(&sums, &logs);
    Ok(vec![output, sums].into())
}

/// Turns a row of scores into weights and returns the logarithm of the sum of exponentials.
fn soften<T: Real>(row: &mut [T]) -> T {
    let most = row.iter().copied().fold(T::LEAST, |most, v| v.larger(most));
    if most == T::LEAST {
        row.fill(T::ZERO);
        return T::ZERO;
    }
    let below = most.times(T::of(-1.0));
    row.iter_mut().for_each(|value| *value = value.plus(below));
    T::exp_all(row);
    // Several sums at a time do not wait for each other.
    let mut sums = [0.0; 8];
    for part in row.chunks(sums.len()) {
        sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value.to_f64());
    }
    let sum: f64 = sums.iter().sum();
    let inverse = T::of(1.0 / sum);
    row.iter_mut().for_each(|value| *value = value.times(inverse));
    most.plus(T::of(sum).ln())
}

fn flash_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    match call.args.tensor(1)?.dtype() {
        DType::F64 => flash_backward_in::<f64>(call),
        _ => flash_backward_in::<f32>(call),
    }
}

/// With weights `P = exp(scores - logsumexp)`: `dV = Pᵀ·dO`, `dS = P·(dO·Vᵀ - rowsum(dO·O))`, `dQ = scale·dS·K`,
/// `dK = scale·dSᵀ·Q`. Heads that share keys add up.
fn flash_backward_in<T: Real>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (query, key, value) = (call.args.tensor(1)?, call.args.tensor(2)?, call.args.tensor(3)?);
    let p = problem(query, key, value, call.args.opt_float(9)?, call.args.bool(7)?);
    let mask = call.args.opt_tensor(8)?.map(|mask| Mask::<T>::load(mask, &p)).transpose()?;
    let (q, k, v) = (T::load(query), T::load(key), T::load(value));
    let load = |index: usize, shape: &[i64]| -> Result<Vec<T>, OpError> {
        let tensor = call.args.tensor(index)?;
        if tensor.shape() != shape {
            invalid!("the gradient of attention needs shape {shape:?}, got {:?}", tensor.shape());
        }
        Ok(T::load(tensor))
    };
    let (g, o) = (load(0, query.shape())?, load(4, query.shape())?);
    let logs = load(5, &query.shape()[..3])?;
    let kv_heads = p.heads / p.group;
    let (scale, one) = (T::of(p.scale), T::of(1.0));
    let (rows, keys) = (Shape::rows_first(p.queries, p.width), Shape::rows_first(p.keys, p.width));
    let weights = Shape::rows_first(p.queries, p.keys);
    let per_head: Vec<[Vec<T>; 3]> = pyrite_threads::map(p.batch * kv_heads, |task| {
        let shared = (task / kv_heads, task % kv_heads);
        let k = Problem::head(&k, kv_heads, shared, p.keys, p.width);
        let v = Problem::head(&v, kv_heads, shared, p.keys, p.width);
        let mut dq = vec![T::ZERO; p.group * p.queries * p.width];
        let mut dk = vec![T::ZERO; p.keys * p.width];
        let mut dv = vec![T::ZERO; p.keys * p.width];
        for member in 0..p.group {
            let at = (shared.0, shared.1 * p.group + member);
            let of = |data| Problem::head(data, p.heads, at, p.queries, p.width);
            let (q, g, o) = (of(&q), of(&g), of(&o));
            let logs = Problem::head(&logs, p.heads, at, p.queries, 1);
            let mut probabilities = p.scores(q, k, mask.as_ref(), at, 0);
            for (row, log) in probabilities.chunks_exact_mut(p.keys.max(1)).zip(logs) {
                row.iter_mut().for_each(|s| *s = s.plus(log.times(T::of(-1.0))));
                T::exp_all(row);
            }
            let (grad, prob) = (Matrix { data: g, shape: rows }, Matrix { data: &probabilities[..], shape: weights });
            let transposed = Matrix { shape: weights.transposed(), ..prob };
            multiply(&mut dv, keys, transposed, grad, one, Onto::Scaled(one));
            let mut ds = vec![T::ZERO; p.queries * p.keys];
            let values = Matrix { data: v, shape: keys.transposed() };
            multiply(&mut ds, weights, grad, values, one, Onto::Nothing);
            let lines = ds.chunks_exact_mut(p.keys.max(1)).zip(probabilities.chunks_exact(p.keys.max(1)));
            let inner = g.chunks_exact(p.width.max(1)).zip(o.chunks_exact(p.width.max(1)));
            for ((ds, prob), (g, o)) in lines.zip(inner) {
                let dot: f64 = g.iter().zip(o).map(|(g, o)| g.to_f64() * o.to_f64()).sum();
                for (ds, prob) in ds.iter_mut().zip(prob) {
                    *ds = ds.plus(T::of(-dot)).times(*prob);
                }
            }
            let ds = Matrix { data: &ds[..], shape: weights };
            let part = &mut dq[member * p.queries * p.width..(member + 1) * p.queries * p.width];
            multiply(part, rows, ds, Matrix { data: k, shape: keys }, scale, Onto::Nothing);
            let transposed = Matrix { shape: weights.transposed(), ..ds };
            multiply(&mut dk, keys, transposed, Matrix { data: q, shape: rows }, scale, Onto::Scaled(one));
        }
        [dq, dk, dv]
    });
    let mut outs = Vec::new();
    for index in 0..3 {
        let out = call.allocate(index)?;
        let values: Vec<T> = per_head.iter().flat_map(|grads| grads[index].iter().copied()).collect();
        T::store(&out, &values);
        outs.push(out);
    }
    Ok(outs.into())
}

fn infer_safe_softmax(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let meta = a.tensor(0)?;
    wrap_dim(a.int(1)?, meta.rank())?;
    let Value::Tensor(same) = to_float(a)? else { return Err(OpError::fault("a softmax of no tensor")) };
    let dtype = a.dtype(2)?.unwrap_or(same.dtype);
    if !dtype.is_float() {
        invalid!("softmax has no results of type {dtype}");
    }
    Ok(Meta { dtype, ..same }.into())
}

fn safe_softmax(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let out = call.allocate(0)?;
    let dim = wrap_dim(call.args.int(1)?, input.rank())?;
    // The dimension goes last, so that rows are dense.
    let mut order: Vec<usize> = (0..input.rank()).filter(|d| *d != dim).collect();
    order.extend((dim < input.rank()).then_some(dim));
    let (from, to) = (input.permuted(&order), out.permuted(&order));
    let width = from.shape().last().map_or(1, |d| *d as usize).max(1);
    if out.dtype() == DType::F32 {
        let mut values = from.to_f32s();
        pyrite_threads::chunks(&mut values, width, |_, row| {
            soften(row);
        });
        to.write_f32s(&values);
    } else {
        let mut values = from.to_f64s();
        values.chunks_exact_mut(width).for_each(|row| {
            soften(row);
        });
        to.write_f64s(&values);
    }
    Ok(out.into())
}
