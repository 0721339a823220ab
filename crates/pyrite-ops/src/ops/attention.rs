//! Attention: `softmax(scale·query·keyᵀ + mask)·value`.
//!
//! The fused kernels are in `pyrite-kernels`; here tensors are handed to them, in place where their rows are dense.
//!
//! `scaled_dot_product_attention`, which chooses between this and plain matmuls, is in `composite.rs`.

use pyrite_ir::{Args, Call, ExternKind, Meta, OpDef, OpError, Tolerance, Value, invalid};
use pyrite_tensor::tensor::broadcast_strides;
use pyrite_tensor::{DType, Tensor, layout};

use crate::decompositions::softmax as by;
use crate::derivatives::attention as d;
use crate::rules::{preserved_strides, to_float, wrap_dim};
use pyrite_kernels::attention::{self, Gradients, Heads, Mask, Problem, Saved, Score, Target};
use pyrite_kernels::gemm::Factor;
use pyrite_kernels::lanes::{Elements, elements};
use pyrite_kernels::{Carrier, vector_math};
use pyrite_matmul::Lane;
use pyrite_tensor::storage::Reading;

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

fn expect_fused(query: &Meta, key: &Meta, value: &Meta) -> Result<(), OpError> {
    let fits = [query, key, value].iter().all(|m| m.rank() == 4 && m.dtype == query.dtype)
        && query.dtype.is_float()
        && query.shape[3].is_eq(&key.shape[3])
        && query.shape[3].is_eq(&value.shape[3])
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
    // Whatever the operands' order, the heads of gradients lie inside of their rows.
    let like = |index: usize| -> Result<Meta, OpError> {
        let meta = a.tensor(index)?;
        let [batch, heads, rows, width] = &meta.shape[..] else { invalid!("attention of {:?}", meta.shape) };
        let dense = meta.fresh(&[batch.clone(), rows.clone(), heads.clone(), width.clone()], meta.dtype);
        let stride = [0, 2, 1, 3].map(|d| dense.stride[d].clone());
        Ok(Meta { device: meta.device.clone(), ..Meta::strided(&meta.shape, &stride, meta.dtype) })
    };
    Ok(vec![like(1)?, like(2)?, like(3)?].into())
}

fn problem(query: &Tensor, key: &Tensor, scale: Option<f64>, causal: bool) -> Problem {
    let (q, k) = (query.shape(), key.shape());
    let size = |dims: &[i64], d: usize| dims[d] as usize;
    Problem {
        batch: size(q, 0),
        heads: size(q, 1),
        group: size(q, 1) / size(k, 1).max(1),
        queries: size(q, 2),
        keys: size(k, 2),
        width: size(q, 3),
        scale: scale.unwrap_or_else(|| 1.0 / (q[3] as f64).sqrt()),
        causal,
    }
}

/// A tensor's elements as the fused kernels read them: in place where its rows are dense and of the type, else a copy.
enum Loaded<'a, T: Score + Carrier> {
    InPlace(Reading<'a, T>, usize, [usize; 3]),
    Copied(Vec<T>, [usize; 3]),
}

/// The first three of four strides, or those of rows of single numbers.
fn outer_strides(stride: &[i64]) -> [usize; 3] {
    [stride[0], stride[1], stride[2]].map(|s| s as usize)
}

/// Whether the last of four dimensions is dense; rows of single numbers have no such dimension.
fn has_dense_rows(tensor: &Tensor) -> bool {
    tensor.rank() == 3 || tensor.stride()[3] == 1 || tensor.shape()[3] == 1
}

impl<'a, T: Score + Carrier> Loaded<'a, T> {
    fn new(tensor: &'a Tensor) -> Self {
        if tensor.dtype() == T::DTYPE && has_dense_rows(tensor) && tensor.numel() > 0 {
            let start = tensor.layout().offset as usize;
            return Self::InPlace(tensor.storage().read::<T>(), start, outer_strides(tensor.stride()));
        }
        Self::Copied(T::load(tensor), outer_strides(&layout::contiguous_strides(tensor.shape())))
    }

    fn heads(&self) -> Heads<'_, T> {
        match self {
            Self::InPlace(data, start, stride) => Heads { data: &data[*start..], stride: *stride },
            Self::Copied(data, stride) => Heads { data, stride: *stride },
        }
    }
}

/// Lets `f` write a fresh tensor: in place where its rows are dense and of the type, else a copy that is stored after.
fn write<T: Score + Carrier, R>(tensor: &Tensor, f: impl FnOnce(Target<'_, T>) -> R) -> R {
    if tensor.dtype() == T::DTYPE && has_dense_rows(tensor) && tensor.numel() > 0 {
        let start = tensor.layout().offset as usize;
        return f(Target::new(&mut tensor.storage().write::<T>()[start..], outer_strides(tensor.stride())));
    }
    let mut values = vec![T::ZERO; tensor.numel()];
    let result = f(Target::new(&mut values, outer_strides(&layout::contiguous_strides(tensor.shape()))));
    T::store(tensor, &values);
    result
}

/// What is added to the scores, with strides that broadcast it.
struct Added<'a, T: Carrier> {
    values: Elements<'a, T>,
    stride: [usize; 4],
}

impl<'a, T: Score + Carrier> Added<'a, T> {
    fn load(mask: &'a Tensor, p: &Problem) -> Result<Self, OpError> {
        let whole = [p.batch as i64, p.heads as i64, p.queries as i64, p.keys as i64];
        let lead = whole.len().checked_sub(mask.rank());
        let fits = lead.is_some_and(|lead| mask.shape().iter().zip(&whole[lead..]).all(|(m, w)| *m == 1 || m == w));
        if !fits {
            invalid!("a mask of shape {:?} does not broadcast to scores of shape {whole:?}", mask.shape());
        }
        let wide = broadcast_strides(mask.shape(), &layout::contiguous_strides(mask.shape()), &whole);
        let values = if mask.dtype() == DType::Bool {
            let added = |seen| if seen { <T as Lane>::ZERO } else { T::LEAST };
            Elements::Owned(mask.to_bools().into_iter().map(added).collect())
        } else {
            elements(mask)
        };
        Ok(Self { values, stride: [0, 1, 2, 3].map(|d| wide[d] as usize) })
    }

    fn mask(&self) -> Mask<'_, T> {
        Mask { data: &self.values, stride: self.stride }
    }
}

fn flash(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    match call.args.tensor(0)?.dtype() {
        DType::F64 => flash_in::<f64>(call),
        _ => flash_in::<f32>(call),
    }
}

fn flash_in<T: Score + Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (query, key, value) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let p = problem(query, key, call.args.opt_float(6)?, call.args.bool(4)?);
    let mask = call.args.opt_tensor(5)?.map(|mask| Added::<T>::load(mask, &p)).transpose()?;
    let loaded = [query, key, value].map(Loaded::<T>::new);
    let operands = [loaded[0].heads(), loaded[1].heads(), loaded[2].heads()];
    let (output, sums) = (call.allocate(0)?, call.allocate(1)?);
    write::<T, _>(&output, |out| {
        write::<T, _>(&sums, |logs| attention::forward(&p, operands, mask.as_ref().map(Added::mask), &out, &logs));
    });
    Ok(vec![output, sums].into())
}

fn flash_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    match call.args.tensor(1)?.dtype() {
        DType::F64 => flash_backward_in::<f64>(call),
        _ => flash_backward_in::<f32>(call),
    }
}

fn flash_backward_in<T: Score + Carrier>(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (query, key, value) = (call.args.tensor(1)?, call.args.tensor(2)?, call.args.tensor(3)?);
    let p = problem(query, key, call.args.opt_float(9)?, call.args.bool(7)?);
    let mask = call.args.opt_tensor(8)?.map(|mask| Added::<T>::load(mask, &p)).transpose()?;
    let of_shape = |index: usize, shape: &[i64]| -> Result<&Tensor, OpError> {
        let tensor = call.args.tensor(index)?;
        if tensor.shape() != shape {
            invalid!("the gradient of attention needs shape {shape:?}, got {:?}", tensor.shape());
        }
        Ok(tensor)
    };
    let (grad, out) = (of_shape(0, query.shape())?, of_shape(4, query.shape())?);
    let logs = of_shape(5, &query.shape()[..3])?;
    let loaded = [grad, query, key, value, out, logs].map(Loaded::<T>::new);
    let [grad, query, key, value, out, logs] = [0, 1, 2, 3, 4, 5].map(|i: usize| loaded[i].heads());
    let saved = Saved { query, key, value, out, logs, mask: mask.as_ref().map(Added::mask) };
    let outs = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?];
    write::<T, _>(&outs[0], |query| {
        write::<T, _>(&outs[1], |key| {
            write::<T, _>(&outs[2], |value| attention::backward(&p, grad, &saved, &Gradients { query, key, value }));
        });
    });
    Ok(outs.to_vec().into())
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
        pyrite_threads::chunks(&mut values, width, |_, row| soften(row));
        to.write_f32s(&values);
    } else {
        let mut values = from.to_f64s();
        values.chunks_exact_mut(width).for_each(soften);
        to.write_f64s(&values);
    }
    Ok(out.into())
}

/// A float type that softmax is computed in.
trait Real: Carrier + Factor {
    const LEAST: Self;
    /// The exponential of every value.
    fn exp_all(values: &mut [Self]);
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

/// Turns a row of scores into weights, zeros where none is seen.
fn soften<T: Real>(row: &mut [T]) {
    let most = row.iter().copied().fold(T::LEAST, |most, v| v.larger(most));
    if most == T::LEAST {
        row.fill(T::ZERO);
        return;
    }
    let below = most.times(T::of(-1.0));
    row.iter_mut().for_each(|value| *value = value.plus(below));
    T::exp_all(row);
    // Several sums at a time do not wait for each other.
    let mut sums = [0.0; 8];
    for part in row.chunks(sums.len()) {
        sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value.to_f64());
    }
    let inverse = T::of(1.0 / sums.iter().sum::<f64>());
    row.iter_mut().for_each(|value| *value = value.times(inverse));
}
