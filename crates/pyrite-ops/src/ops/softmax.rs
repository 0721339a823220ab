//! Softmax and its logarithm.
//!
//! Half precision is computed in `f32`, single precision in `f32` with an exponential that vectorises and sums in
//! `f64`, double precision in `f64`. Results are dense.

use pyrite_ir::{Args, Call, Emit, Handle, Meta, OpDef, OpError, Tag, Value, args, invalid, unsupported};
use pyrite_tensor::{DType, Tensor};

use crate::decompositions::softmax as by;
use crate::derivatives::softmax as d;
use crate::rules::{expect_same_shape, wrap_dim};
use pyrite_kernels::Carrier;
use pyrite_kernels::lanes::{Block, PARALLEL, elements, fill};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        "Exponentials along a dimension, divided by their sum.",
        softmax_meta,
        |c| forward(c, Form::Plain),
    )
    .tags(&[Tag::Core])
    .derivative(d::softmax)
    .decompose(by::softmax)
    .samples(&[
        "f32[3, 4], 1, False",
        "f64[3, 4], 0, False",
        "f32[2, 3, 4]<[1, 2, 6], -1, False",
        "bf16[2, 5], -1, False",
        "f32[], 0, False",
        "f32[2, 0], 1, False",
        "f32[40, 1000], -1, False",
    ]),
    OpDef::kernel(
        "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        "The logarithm of softmax along a dimension.",
        softmax_meta,
        |c| forward(c, Form::Log),
    )
    .tags(&[Tag::Core])
    .derivative(d::log_softmax)
    .decompose(by::log_softmax)
    .samples(&["f32[3, 4], 1, False", "f64[3, 4], 0, False", "f16[2, 5], -1, False", "f32[3, 4, 2], 1, False"]),
    OpDef::kernel(
        "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        "The gradient of softmax from its result.",
        backward_meta,
        |c| backward(c, Form::Plain),
    )
    .derivative(d::softmax_backward)
    .decompose(by::softmax_backward)
    .samples(&["f32[3, 4], f32[3, 4], 1, f32", "f64[3, 4, 2], f64[3, 4, 2], 1, f64", "bf16[2, 3], bf16[2, 3], -1, bf16"]),
    OpDef::kernel(
        "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        "The gradient of log-softmax from its result.",
        backward_meta,
        |c| backward(c, Form::Log),
    )
    .derivative(d::log_softmax_backward)
    .decompose(by::log_softmax_backward)
    .samples(&["f32[3, 4], f32[3, 4], 1, f32", "f64[3, 4, 2], f64[3, 4, 2], 1, f64", "f32[], f32[], 0, f32"]),
    OpDef::composite(
        "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        "Softmax along a dimension.",
        |e, a| in_dtype(e, a, "aten._softmax.default"),
    )
    .samples(&["f32[3, 4], 1"]),
    OpDef::composite(
        "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        "The logarithm of softmax along a dimension.",
        |e, a| in_dtype(e, a, "aten._log_softmax.default"),
    )
    .samples(&["f32[3, 4], 1"]),
    OpDef::composite(
        "aten::special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        "Softmax along a dimension.",
        |e, a| in_dtype(e, a, "aten._softmax.default"),
    )
    .samples(&["f32[3, 4], 1"]),
    OpDef::composite(
        "aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        "The logarithm of softmax along a dimension.",
        |e, a| in_dtype(e, a, "aten._log_softmax.default"),
    )
    .samples(&["f32[3, 4], 1"]),
];

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Plain,
    Log,
}

fn in_dtype(e: &mut dyn Emit, a: &Args<'_, Handle>, op: &str) -> Result<Value<Handle>, OpError> {
    let mut input = *a.tensor(0)?;
    if let Some(dtype) = a.dtype(2)?
        && e.dtype(input) != dtype
    {
        input = e.one("aten._to_copy.default", args![input, dtype])?;
    }
    e.call(op, args![input, a.int(1)?, false])
}

fn expect_float(dtype: DType) -> Result<(), OpError> {
    if !dtype.is_float() {
        invalid!("softmax is defined for float types, not for {dtype}");
    }
    Ok(())
}

fn softmax_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    wrap_dim(a.int(1)?, input.rank())?;
    expect_float(input.dtype)?;
    if a.bool(2)? {
        unsupported!("softmax from half precision to f32 on the CPU");
    }
    Ok(input.fresh(&input.shape, input.dtype).into())
}

fn backward_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (grad, output) = (a.tensor(0)?, a.tensor(1)?);
    wrap_dim(a.int(2)?, grad.rank())?;
    expect_same_shape("softmax's gradient", &grad.shape, &output.shape)?;
    expect_float(grad.dtype)?;
    Ok(grad.fresh(&grad.shape, grad.dtype).into())
}

/// What the two float carriers do differently.
trait Float: Carrier + PartialOrd {
    const LOWEST: Self;
    fn exp(self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

impl Float for f32 {
    const LOWEST: Self = f32::NEG_INFINITY;
    fn exp(self) -> Self {
        fast_exp(self)
    }
    fn sub(self, other: Self) -> Self {
        self - other
    }
    fn mul(self, other: Self) -> Self {
        self * other
    }
}

impl Float for f64 {
    const LOWEST: Self = f64::NEG_INFINITY;
    fn exp(self) -> Self {
        f64::exp(self)
    }
    fn sub(self, other: Self) -> Self {
        self - other
    }
    fn mul(self, other: Self) -> Self {
        self * other
    }
}

/// The exponential of a number that is not positive, without branches or calls: the power of two is split off, the
/// rest is a polynomial. What would be subnormal becomes zero.
fn fast_exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting this rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x < -87.3 { -87.3 } else { x };
    let n = (clamped * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let p = 1.987_569_1e-4_f32;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let y = p * r * r + r + 1.0;
    let scaled = y * f32::from_bits(((n as i32 + 127) << 23) as u32);
    if x < -87.3 { 0.0 } else { scaled }
}

fn forward(call: &Call<'_>, form: Form) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    let block = Block::new(out.shape(), wrap_dim(call.args.int(1)?, input.rank())?);
    match out.dtype() {
        DType::F64 => fill::<f64>(&out, |to| lanes(&elements(input), to, block, form)),
        _ => fill::<f32>(&out, |to| lanes(&elements(input), to, block, form)),
    }
    Ok(out.into())
}

/// Calls `f` with every outer part of two buffers, on many threads when they are large.
fn each_part<T: Carrier>(to: &mut [T], part: usize, f: impl Fn(usize, &mut [T]) + Sync + Send) {
    if to.is_empty() {
        return;
    }
    if to.len() >= PARALLEL && to.len() > part {
        pyrite_threads::chunks(to, part, |n, to| f(n * part, to));
    } else {
        to.chunks_mut(part).enumerate().for_each(|(n, to)| f(n * part, to));
    }
}

fn lanes<T: Float>(from: &[T], to: &mut [T], block: Block, form: Form) {
    let Block { len, inner, .. } = block;
    each_part(to, len * inner, |start, to| {
        let from = &from[start..start + to.len()];
        // One maximum and one sum per lane of this part; with `inner` of 1 these are single numbers.
        let mut top = vec![T::LOWEST; inner];
        let mut sum = vec![0.0f64; inner];
        if inner == 1 {
            top[0] = from.iter().fold(T::LOWEST, |a, b| if *b > a { *b } else { a });
        } else {
            for row in from.chunks(inner) {
                for (top, x) in top.iter_mut().zip(row) {
                    if *x > *top {
                        *top = *x;
                    }
                }
            }
        }
        for (row, to) in from.chunks(inner).zip(to.chunks_mut(inner)) {
            for (((to, x), top), sum) in to.iter_mut().zip(row).zip(&top).zip(&mut sum) {
                let e = x.sub(*top).exp();
                *to = e;
                *sum += e.to_f64();
            }
        }
        if form == Form::Log {
            for sum in &mut sum {
                *sum = sum.ln();
            }
            for (row, to) in from.chunks(inner).zip(to.chunks_mut(inner)) {
                for (((to, x), top), log) in to.iter_mut().zip(row).zip(&top).zip(&sum) {
                    *to = <T as pyrite_tensor::Element>::from_f64(x.to_f64() - top.to_f64() - log);
                }
            }
        } else {
            let scale: Vec<T> = sum.iter().map(|s| <T as pyrite_tensor::Element>::from_f64(1.0 / s)).collect();
            for to in to.chunks_mut(inner) {
                for (to, scale) in to.iter_mut().zip(&scale) {
                    *to = to.mul(*scale);
                }
            }
        }
    });
}

fn backward(call: &Call<'_>, form: Form) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let (grad, output) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let block = Block::new(out.shape(), wrap_dim(call.args.int(2)?, out.rank())?);
    match out.dtype() {
        DType::F64 => fill::<f64>(&out, |to| backward_lanes(&elements(grad), &elements(output), to, block, form)),
        _ => fill::<f32>(&out, |to| backward_lanes(&elements(grad), &elements(output), to, block, form)),
    }
    Ok(out.into())
}

fn backward_lanes<T: Float>(grad: &[T], output: &[T], to: &mut [T], block: Block, form: Form) {
    let Block { len, inner, .. } = block;
    each_part(to, len * inner, |start, to| {
        let (grad, output) = (&grad[start..start + to.len()], &output[start..start + to.len()]);
        let mut sum = vec![0.0f64; inner];
        for (grad, output) in grad.chunks(inner).zip(output.chunks(inner)) {
            for ((sum, g), y) in sum.iter_mut().zip(grad).zip(output) {
                *sum += if form == Form::Log { g.to_f64() } else { g.to_f64() * y.to_f64() };
            }
        }
        for ((grad, output), to) in grad.chunks(inner).zip(output.chunks(inner)).zip(to.chunks_mut(inner)) {
            for (((to, g), y), sum) in to.iter_mut().zip(grad).zip(output).zip(&sum) {
                let value = match form {
                    Form::Log => g.to_f64() - y.to_f64().exp() * sum,
                    _ => (g.to_f64() - sum) * y.to_f64(),
                };
                *to = <T as pyrite_tensor::Element>::from_f64(value);
            }
        }
    });
}
