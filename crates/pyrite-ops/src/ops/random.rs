//! Random numbers: exactly those that PyTorch draws on the CPU after the same seed and the same calls.
//!
//! The distributions themselves are in `pyrite_tensor::random`. Operators that fill a tensor in place draw in the order
//! in which PyTorch visits it; their functional twins fill a fresh tensor of the same layout.
//!
//! `pyrite::seed` and `pyrite::uniform` are the fast stream, by which `crate::decompositions::random` expresses the
//! others where nobody asks for PyTorch's numbers.

use pyrite_ir::{Args, Call, ExternKind, Meta, OpDef, OpError, Tag, Tolerance, Value, Vjp, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::random::stream::{draw, uniform_bits};
use pyrite_tensor::random::{RandomError, TorchGenerator};
use pyrite_tensor::{DType, Tensor};

use crate::decompositions::copy as by;
use crate::decompositions::pointwise as by_formula;
use crate::decompositions::random as stream;
use crate::derivatives::{create::fill, random as d};
use crate::kernels::Pointwise;
use crate::lowerings::create as lowerings;
use crate::rules::{broadcast, format_strides, preserved_strides, same_as};

const RANDOM: &[Tag] = &[Tag::Random];
const CORE: &[Tag] = &[Tag::Core, Tag::Random];
const DRAWN: Vjp = Vjp::NonDifferentiable("what is drawn does not depend on the argument");

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "pyrite::seed() -> Tensor",
        "The number of a fast stream, drawn from PyTorch's generator.",
        |_| Ok(Meta::contiguous(&[], DType::I64).into()),
        |call| {
            let number = call.rng.borrow_mut().next_u64();
            Ok(Tensor::from_slice(&[number as i64], &[]).into())
        },
    )
    .as_call(ExternKind::Kernel)
    .tags(RANDOM)
    .vjp(DRAWN)
    .samples(&[""]),
    OpDef::kernel(
        "pyrite::uniform(Tensor seed, SymInt[] size, *, ScalarType? dtype=None) -> Tensor",
        "Uniform numbers of a fast stream between 0 and 1. They depend on the arguments alone.",
        infer_stream,
        streamed,
    )
    .vjp(DRAWN)
    .lower(lowerings::uniform)
    .tolerance(Tolerance::Exact)
    .samples(&[
        "i64[], [3, 40]",
        "i64[], [20], dtype=f64",
        "i64[], [0]",
        "i64[], [50], dtype=bf16",
        "i64[], [2, 1, 9], dtype=f16",
    ]),
    OpDef::kernel(
        "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        "Uniform numbers between 0 and 1.",
        |a| sized(a, 0, 1, DType::F32),
        |call| fresh(call, |g, out| Ok(g.uniform(out, 0.0, 1.0)?)),
    )
    .tags(CORE)
    .vjp(DRAWN)
    .stream(stream::rand)
    .samples(&["[3, 4]", "[20], dtype=f64", "[0]", "[], dtype=c64"]),
    OpDef::kernel(
        "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        "Normal numbers.",
        |a| sized(a, 0, 1, DType::F32),
        |call| fresh(call, |g, out| Ok(g.normal(out, 0.0, 1.0)?)),
    )
    .tags(CORE)
    .vjp(DRAWN)
    .stream(stream::randn)
    .samples(&["[3, 4]", "[20], dtype=f64", "[0]", "[20], dtype=c64"]),
    OpDef::kernel(
        "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None) -> Tensor",
        "Whole numbers from 0 up to a limit.",
        |a| sized(a, 1, 2, DType::I64),
        |call| fresh(call, |g, out| Ok(g.random_range(out, 0, call.args.int(0)?)?)),
    )
    .tags(RANDOM)
    .vjp(DRAWN)
    .stream(stream::randint)
    .samples(&["10, [3, 4]", "5, [20], dtype=f32"]),
    OpDef::kernel(
        "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None) -> Tensor",
        "Whole numbers from one limit up to another.",
        |a| sized(a, 2, 3, DType::I64),
        |call| fresh(call, |g, out| Ok(g.random_range(out, call.args.int(0)?, call.args.int(1)?)?)),
    )
    .tags(RANDOM)
    .vjp(DRAWN)
    .stream(stream::randint_low)
    .samples(&["-3, 10, [3, 4]", "2, 5, [20], dtype=u8"]),
    OpDef::kernel(
        "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        "The numbers below `n` in random order.",
        infer_randperm,
        randperm,
    )
    .tags(CORE)
    .vjp(DRAWN)
    .samples(&["10", "0", "5, dtype=f32"]),
    OpDef::kernel(
        "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "Uniform numbers between 0 and 1, as many as another tensor has elements.",
        |a| alike(a, 1),
        |call| fresh(call, |g, out| Ok(g.uniform(out, 0.0, 1.0)?)),
    )
    .tags(RANDOM)
    .vjp(DRAWN)
    .stream(stream::rand)
    .samples(&["f32[3, 4]", "i64[4, 5]<[1, 4], dtype=f64"]),
    OpDef::kernel(
        "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "Normal numbers, as many as another tensor has elements.",
        |a| alike(a, 1),
        |call| fresh(call, |g, out| Ok(g.normal(out, 0.0, 1.0)?)),
    )
    .tags(RANDOM)
    .vjp(DRAWN)
    .stream(stream::randn)
    .samples(&["f32[3, 4]", "f64[4, 5]<[1, 4], memory_format=contiguous_format"]),
    OpDef::kernel(
        "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "Whole numbers from 0 up to a limit, as many as another tensor has elements.",
        |a| alike(a, 2),
        |call| fresh(call, |g, out| Ok(g.random_range(out, 0, call.args.int(1)?)?)),
    )
    .tags(RANDOM)
    .vjp(DRAWN)
    .stream(stream::randint_like)
    .samples(&["f32[3, 4], 10"]),
    OpDef::kernel(
        "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "Whole numbers from one limit up to another, as many as another tensor has elements.",
        |a| alike(a, 3),
        |call| fresh(call, |g, out| Ok(g.random_range(out, call.args.int(1)?, call.args.int(2)?)?)),
    )
    .tags(RANDOM)
    .vjp(DRAWN)
    .stream(stream::randint_like_low)
    .samples(&["f32[3, 4], -5, 10", "i64[3], 0, 2, dtype=b8"]),
    OpDef::kernel(
        "aten::uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
        "Uniform numbers between two limits, in place.",
        itself,
        |call| in_place(call, |g, out| Ok(g.uniform(out, call.args.float(1)?, call.args.float(2)?)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20]", "f64[3, 4]<[1, 3], 2., 5.", "c64[3]", "bf16[0]"]),
    OpDef::kernel(
        "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
        "Uniform numbers between two limits, as many as another tensor has elements.",
        same_layout,
        |call| fresh(call, |g, out| Ok(g.uniform(out, call.args.float(1)?, call.args.float(2)?)?)),
    )
    .tags(RANDOM)
    .derivative(fill)
    .stream(stream::uniform)
    .samples(&["f32[20]", "f64[3, 4]<[1, 3], 2., 5.", "c64[3]", "bf16[0]"]),
    OpDef::kernel(
        "aten::exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
        "Exponential numbers, in place.",
        itself,
        |call| in_place(call, |g, out| Ok(g.exponential(out, call.args.float(1)?)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20]", "f64[3, 4], 2."]),
    OpDef::kernel(
        "aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
        "Exponential numbers, as many as another tensor has elements.",
        same_layout,
        |call| fresh(call, |g, out| Ok(g.exponential(out, call.args.float(1)?)?)),
    )
    .tags(RANDOM)
    .derivative(fill)
    .stream(stream::exponential)
    .samples(&["f32[20]", "f64[3, 4], 2."]),
    OpDef::kernel(
        "aten::geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
        "Geometric numbers: the trials up to the first success, in place.",
        itself,
        |call| in_place(call, |g, out| Ok(g.geometric(out, call.args.float(1)?)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20], 0.5", "i64[4], 0.3"]),
    OpDef::kernel(
        "aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
        "Geometric numbers: the trials up to the first success, as many as another tensor has elements.",
        same_layout,
        |call| fresh(call, |g, out| Ok(g.geometric(out, call.args.float(1)?)?)),
    )
    .tags(RANDOM)
    .derivative(fill)
    .stream(stream::geometric)
    .samples(&["f32[20], 0.5", "i64[4], 0.3"]),
    OpDef::kernel(
        "aten::cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)",
        "Cauchy numbers, in place.",
        itself,
        |call| in_place(call, |g, out| Ok(g.cauchy(out, call.args.float(1)?, call.args.float(2)?)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20]", "f64[4], 1., 2."]),
    OpDef::kernel(
        "aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor",
        "Cauchy numbers, as many as another tensor has elements.",
        same_layout,
        |call| fresh(call, |g, out| Ok(g.cauchy(out, call.args.float(1)?, call.args.float(2)?)?)),
    )
    .tags(RANDOM)
    .derivative(fill)
    .stream(stream::cauchy)
    .samples(&["f32[20]", "f64[4], 1., 2."]),
    OpDef::kernel(
        "aten::log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)",
        "Numbers whose logarithm is normal, in place.",
        itself,
        |call| in_place(call, |g, out| Ok(g.log_normal(out, call.args.float(1)?, call.args.float(2)?)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20]", "f64[4], 0., 0.5"]),
    OpDef::kernel(
        "aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor",
        "Numbers whose logarithm is normal, as many as another tensor has elements.",
        same_layout,
        |call| fresh(call, |g, out| Ok(g.log_normal(out, call.args.float(1)?, call.args.float(2)?)?)),
    )
    .tags(RANDOM)
    .derivative(fill)
    .stream(stream::log_normal)
    .samples(&["f32[20]", "f64[4], 0., 0.5"]),
    OpDef::kernel(
        "aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
        "Normal numbers, in place.",
        itself,
        |call| in_place(call, |g, out| Ok(g.normal(out, call.args.float(1)?, call.args.float(2)?)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20]", "f64[3, 4]<[1, 3], 2., 5.", "c64[3]"]),
    OpDef::kernel(
        "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
        "Normal numbers, as many as another tensor has elements.",
        same_layout,
        |call| fresh(call, |g, out| Ok(g.normal(out, call.args.float(1)?, call.args.float(2)?)?)),
    )
    .tags(RANDOM)
    .derivative(fill)
    .stream(stream::normal)
    .samples(&["f32[20]", "f64[3, 4]<[1, 3], 2., 5.", "c64[3]"]),
    OpDef::kernel(
        "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
        "Normal numbers with a mean and a deviation each.",
        infer_normal,
        |call| normal(call, Parameter::Each(call.args.tensor(0)?), Parameter::Each(call.args.tensor(1)?)),
    )
    .tags(RANDOM)
    .derivative(d::normal)
    .stream(stream::normal_each)
    .samples(&["f32[20], f32[20]{0..2}", "f64[3, 1], f64[4]{0..2}"]),
    OpDef::kernel(
        "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
        "Normal numbers with a mean each.",
        infer_normal,
        |call| normal(call, Parameter::Each(call.args.tensor(0)?), Parameter::All(call.args.float(1)?)),
    )
    .tags(RANDOM)
    .derivative(d::normal)
    .stream(stream::normal_each)
    .samples(&["f32[20], 2."]),
    OpDef::kernel(
        "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
        "Normal numbers with a deviation each.",
        infer_normal,
        |call| normal(call, Parameter::All(call.args.float(0)?), Parameter::Each(call.args.tensor(1)?)),
    )
    .tags(RANDOM)
    .derivative(d::normal)
    .stream(stream::normal_each)
    .samples(&["2., f32[20]{0..2}"]),
    OpDef::kernel(
        "aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? \
         dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Normal numbers of a mean and a deviation.",
        |a| sized(a, 2, 4, DType::F32),
        |call| fresh(call, |g, out| Ok(g.normal(out, call.args.float(0)?, call.args.float(1)?)?)),
    )
    .tags(RANDOM)
    .vjp(DRAWN)
    .stream(stream::normal_all)
    .samples(&["1., 2., [3, 8]", "1., 2., [3], dtype=f64"]),
    OpDef::kernel(
        "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
        "One with the probability that each element gives, else zero.",
        infer_contiguous,
        |call| fresh(call, |g, out| Ok(g.bernoulli_tensor(out, call.args.tensor(0)?)?)),
    )
    .tags(RANDOM)
    .derivative(fill)
    .stream(stream::bernoulli)
    .samples(&["f32[20]{0..1}", "f64[3, 4]<[1, 3]{0..1}"]),
    OpDef::kernel(
        "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
        "One with probability `p`, else zero, as many as another tensor has elements.",
        infer_contiguous,
        |call| fresh(call, |g, out| Ok(g.bernoulli_scalar(out, call.args.float(1)?)?)),
    )
    .tags(RANDOM)
    .derivative(fill)
    .stream(stream::bernoulli_p)
    .samples(&["f32[20], 0.5", "i64[3], 0.1"]),
    OpDef::kernel(
        "aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
        "Overwrites with one with probability `p`, else zero.",
        itself,
        |call| in_place(call, |g, out| Ok(g.bernoulli_scalar(out, call.args.float(1)?)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20]", "b8[3], 0.1"]),
    OpDef::kernel(
        "aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
        "Overwrites with one with the probability that each element of `p` gives, else zero.",
        itself,
        bernoulli_each,
    )
    .tags(RANDOM)
    .samples(&["f32[20], f32[20]{0..1}", "i64[3, 4], f64[4]{0..1}"]),
    OpDef::kernel(
        "aten::random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
        "Overwrites with whole numbers of the type's whole range.",
        itself,
        |call| in_place(call, |g, out| Ok(g.random_full(out)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20]", "i64[3]", "u8[3]"]),
    OpDef::kernel(
        "aten::random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
        "Overwrites with whole numbers from 0 up to a limit.",
        itself,
        |call| in_place(call, |g, out| Ok(g.random_range(out, 0, call.args.int(1)?)?)),
    )
    .tags(RANDOM)
    .samples(&["f32[20], 10"]),
    OpDef::kernel(
        "aten::random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
        "Overwrites with whole numbers from one limit up to another.",
        itself,
        random_from,
    )
    .tags(RANDOM)
    .samples(&["f32[20], -5, 10", "i64[3], 7, None"]),
    OpDef::kernel(
        "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> \
         Tensor",
        "Indices drawn with the weights that each row gives.",
        infer_multinomial,
        multinomial,
    )
    .tags(RANDOM)
    .vjp(DRAWN)
    .samples(&["f32[5]{0..1}, 3", "f64[2, 5]{0..1}, 7, True"]),
    OpDef::kernel(
        "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
        "The input with elements dropped with probability `p` and the others scaled up, and which were kept.",
        infer_native_dropout,
        native_dropout,
    )
    .tags(CORE)
    .derivative(d::native_dropout)
    .decompose(by::native_dropout)
    .stream(stream::native_dropout)
    .samples(&["f32[4, 5], 0.5, True", "f64[4, 5]<[1, 4], 0.2, None", "f32[3], 0.5, False", "f32[3], 1., True"]),
    OpDef::kernel(
        "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
        "The gradient where elements were kept, scaled.",
        infer_native_dropout_backward,
        native_dropout_backward,
    )
    .tags(&[Tag::Pointwise])
    .derivative(d::native_dropout_backward)
    .decompose(by_formula::native_dropout_backward)
    .samples(&["f32[4, 5], b8[4, 5], 2."]),
];

fn infer_stream(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let seed = a.tensor(0)?;
    if seed.rank() != 0 || seed.dtype != DType::I64 {
        invalid!("a stream is numbered by one i64, got {} of rank {}", seed.dtype, seed.rank());
    }
    if let Some(dtype) = a.dtype(2)?.filter(|dtype| !dtype.is_float()) {
        invalid!("a stream gives floating-point numbers, not {dtype}");
    }
    sized(a, 1, 2, DType::F32)
}

fn streamed(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (seed, out) = (call.args.tensor(0)?.to_i64s()[0], call.allocate(0)?);
    let bits = uniform_bits(out.dtype());
    let (mask, scale) = ((1 << bits) - 1, 0.5f64.powi(bits));
    let number = |position| (draw(seed, position) & mask) as f64 * scale;
    out.write_f64s(&(0..out.numel() as i64).map(number).collect::<Vec<_>>());
    Ok(out.into())
}

/// Why a tensor could not be filled.
enum Refusal {
    Random(RandomError),
    Op(OpError),
}

impl From<RandomError> for Refusal {
    fn from(error: RandomError) -> Self {
        Self::Random(error)
    }
}

impl From<OpError> for Refusal {
    fn from(error: OpError) -> Self {
        Self::Op(error)
    }
}

impl From<Refusal> for OpError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Random(error) => Self::Invalid(error.to_string()),
            Refusal::Op(error) => error,
        }
    }
}

/// Fills the tensor that was inferred.
fn fresh(
    call: &Call<'_>,
    fill: impl Fn(&mut TorchGenerator, &Tensor) -> Result<(), Refusal>,
) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    fill(&mut call.rng.borrow_mut(), &out)?;
    Ok(out.into())
}

/// Fills the first argument.
fn in_place(
    call: &Call<'_>,
    fill: impl Fn(&mut TorchGenerator, &Tensor) -> Result<(), Refusal>,
) -> Result<Value<Tensor>, OpError> {
    let out = call.args.tensor(0)?;
    if out.layout().may_overlap() {
        invalid!("{} writes to a tensor some of whose elements share memory; clone it first", call.args.schema.name);
    }
    fill(&mut call.rng.borrow_mut(), out)?;
    Ok(out.clone().into())
}

fn itself(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(a.tensor(0)?.clone().into())
}

/// A dense tensor of the sizes at one position and the type at another.
fn sized(a: &Args<'_, Meta>, size: usize, dtype: usize, default: DType) -> Result<Value<Meta>, OpError> {
    let shape = a.syms(size)?;
    if let Some(bad) = shape.iter().find(|d| d.is_lt(0)) {
        invalid!("{}: a size is {bad}", a.schema.name);
    }
    Ok(Meta::contiguous(&shape, given_dtype(a, dtype, default)?).into())
}

fn given_dtype(a: &Args<'_, Meta>, index: usize, default: DType) -> Result<DType, OpError> {
    match a.value(index) {
        // The schema's default is the number of int64.
        Value::Int(_) => Ok(default),
        _ => Ok(a.dtype(index)?.unwrap_or(default)),
    }
}

/// A tensor like the first argument, with the type at a position and the memory format four after it.
fn alike(a: &Args<'_, Meta>, dtype: usize) -> Result<Value<Meta>, OpError> {
    let like = a.tensor(0)?;
    let stride = format_strides(a.memory_format(dtype + 4)?, like)?;
    let dtype = a.dtype(dtype)?.unwrap_or(like.dtype);
    Ok(Meta { device: like.device.clone(), ..Meta::strided(&like.shape, &stride, dtype) }.into())
}

/// A tensor with the layout of the first argument.
fn same_layout(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let like = a.tensor(0)?;
    Ok(Meta { device: like.device.clone(), ..Meta::strided(&like.shape, &preserved_strides(like), like.dtype) }.into())
}

/// A dense tensor with the shape of the first argument.
fn infer_contiguous(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let like = a.tensor(0)?;
    Ok(like.fresh(&like.shape, like.dtype).into())
}

fn infer_randperm(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let n = a.sym(0)?;
    if n.is_lt(0) {
        invalid!("randperm: n must not be negative, it is {n}");
    }
    Ok(Meta::contiguous(&[n], given_dtype(a, 1, DType::I64)?).into())
}

fn randperm(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let order = call.rng.borrow_mut().permutation(out.numel() as i64);
    out.write_i64s(&order);
    Ok(out.into())
}

fn random_from(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (from, to) = (call.args.int(1)?, call.args.opt_int(2)?);
    in_place(call, |g, out| match to {
        Some(to) => Ok(g.random_range(out, from, to)?),
        None => Ok(g.random_from(out, from)?),
    })
}

fn bernoulli_each(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (out, p) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let fits = p.rank() <= out.rank()
        && p.shape().iter().rev().zip(out.shape().iter().rev()).all(|(p, size)| *p == 1 || p == size);
    if !fits {
        invalid!("probabilities of shape {:?} do not broadcast to {:?}", p.shape(), out.shape());
    }
    // Probabilities that share the storage are read before anything is written.
    let p = if p.storage().same(out.storage()) { p.cast(p.dtype()) } else { p.clone() };
    in_place(call, |g, out| Ok(g.bernoulli_tensor(out, &p)?))
}

fn infer_normal(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let given: Vec<&Meta> = a.values.iter().filter_map(Value::as_tensor).collect();
    let shapes: Vec<&[SymInt]> = given.iter().map(|m| &*m.shape).collect();
    let Some(first) = given.first() else { invalid!("normal needs a tensor") };
    Ok(first.fresh(&broadcast(&shapes)?, first.dtype).into())
}

enum Parameter<'a> {
    All(f64),
    Each(&'a Tensor),
}

impl Parameter<'_> {
    fn values(&self, shape: &[i64]) -> Vec<f64> {
        match self {
            Self::All(value) => vec![*value; pyrite_tensor::layout::numel(shape) as usize],
            Self::Each(tensor) => tensor.expanded(shape).to_f64s(),
        }
    }
}

/// Standard normal numbers, scaled, then shifted; each step rounds to the type.
fn normal(call: &Call<'_>, mean: Parameter<'_>, std: Parameter<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    if !out.dtype().is_float() {
        unsupported!("normal for {}", out.dtype());
    }
    let (mean, std_each) = (mean.values(out.shape()), std.values(out.shape()));
    if let Some(bad) = std_each.iter().find(|s| **s < 0.0) {
        invalid!("normal expects deviations that are not negative, got {bad}");
    }
    let deviation = if let Parameter::All(std) = std { std } else { 1.0 };
    call.rng.borrow_mut().normal(&out, 0.0, deviation).map_err(|e| OpError::Invalid(e.to_string()))?;
    if let Parameter::Each(_) = std {
        let scaled: Vec<f64> = out.to_f64s().iter().zip(std_each).map(|(x, s)| x * s).collect();
        out.write_f64s(&scaled);
    }
    let shifted: Vec<f64> = out.to_f64s().iter().zip(mean).map(|(x, m)| x + m).collect();
    out.write_f64s(&shifted);
    Ok(out.into())
}

fn infer_multinomial(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let weights = a.tensor(0)?;
    if !matches!(weights.rank(), 1 | 2) || !weights.dtype.is_float() {
        invalid!("multinomial needs one or two dimensions of floats, got {weights}");
    }
    let mut shape = weights.shape.clone();
    shape[weights.rank() - 1] = a.sym(1)?;
    Ok(weights.fresh(&shape, DType::I64).into())
}

fn multinomial(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    use pyrite_tensor::random::Replacement;
    let replacement = if call.args.bool(2)? { Replacement::With } else { Replacement::Without };
    let Ok(samples) = usize::try_from(call.args.int(1)?) else { invalid!("multinomial draws at least one sample") };
    let drawn = call.rng.borrow_mut().multinomial(call.args.tensor(0)?, samples, replacement);
    Ok(drawn.map_err(|error| OpError::Invalid(error.to_string()))?.into())
}

/// An error where a share of elements cannot be dropped. NaN stands for a number that only a run can tell, and drawing refuses
/// it.
pub fn check_probability(p: f64) -> Result<(), OpError> {
    if !p.is_nan() && !(0.0..=1.0).contains(&p) {
        invalid!("dropout needs a probability between 0 and 1, got {p}");
    }
    Ok(())
}

fn infer_native_dropout(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    check_probability(a.float(1)?)?;
    let stride = preserved_strides(input);
    let mask = Meta { device: input.device.clone(), ..Meta::strided(&input.shape, &stride, DType::Bool) };
    let dtype = if a.opt_bool(2)? == Some(false) { input.dtype } else { input.dtype.to_inexact() };
    Ok(vec![same_as(&[input.clone(), mask.clone()], dtype)?, mask].into())
}

fn native_dropout(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let (out, mask) = (call.allocate(0)?, call.allocate(1)?);
    if call.args.opt_bool(2)? == Some(false) {
        mask.write_i64s(&vec![1; mask.numel()]);
        out.write_from(input);
        return Ok(vec![out, mask].into());
    }
    let keep = 1.0 - call.args.float(1)?;
    call.rng.borrow_mut().bernoulli_scalar(&mask, keep).map_err(|error| OpError::Invalid(error.to_string()))?;
    let scale = if keep == 0.0 { 0.0 } else { 1.0 / keep };
    let dtype = out.dtype();
    Pointwise::into("native_dropout", [input, &mask], dtype, out.clone())
        .f64(|[x, kept]| x * kept * scale)
        .c128(|[x, kept]| x * kept * scale)
        .finish()?;
    Ok(vec![out, mask].into())
}

fn infer_native_dropout_backward(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (grad, mask) = (a.tensor(0)?, a.tensor(1)?);
    if mask.dtype != DType::Bool {
        invalid!("native_dropout_backward needs a bool mask, got {}", mask.dtype);
    }
    Ok(same_as(&[grad.clone(), mask.clone()], grad.dtype.to_inexact())?.into())
}

fn native_dropout_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let scale = call.args.float(2)?;
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?])?
        .f64(|[g, kept]| g * kept * scale)
        .c128(|[g, kept]| g * kept * scale)
        .finish()
}
