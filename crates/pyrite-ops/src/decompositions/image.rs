//! Decompositions of padding, resizing and shuffling of images: by an index along each dimension.

use pyrite_ir::{Args, Emit, Handle, OpError, Value};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::{Operand, Rule, Sheet, Term, formulas};
use crate::rules::Around;

/// How an index outside of a dimension is brought back into it.
#[derive(Clone, Copy)]
enum Border {
    Reflect,
    Replicate,
}

impl Border {
    fn index<'s>(self, s: &'s Sheet<'_>, at: Term<'s>, size: &SymInt) -> Term<'s> {
        let last = size - SymInt::Int(1);
        match self {
            Self::Reflect => s.term(&last) - (s.term(&last) - at.abs()).abs(),
            Self::Replicate => at.clamp(0i64, last),
        }
    }
}

/// For each padded dimension, last first, the places that it shows.
fn borders<'s>(s: &'s Sheet<'_>, shape: &[SymInt], pad: &[SymInt], border: Border) -> Vec<(usize, Term<'s>)> {
    let pairs = pad.chunks_exact(2).zip((0..shape.len()).rev());
    let padded = pairs.filter(|(pair, _)| !(pair[0].is_eq(0) && pair[1].is_eq(0)));
    padded
        .map(|(pair, dim)| {
            let (size, end) = (&shape[dim], &shape[dim] + &pair[1]);
            let places = [(-&pair[0]).into(), end.into(), 1i64.into(), DType::I64.into()];
            (dim, border.index(s, s.call("aten.arange.start_step", &places), size))
        })
        .collect()
}

fn padded(e: &mut dyn Emit, a: &Args<'_, Handle>, border: Border) -> Rule {
    let s = Sheet::new(e);
    let x = s.term(a.value(0).clone());
    let picked = borders(&s, &x.shape(), &a.syms(1)?, border).into_iter().fold(x, |x, (dim, at)| x.pick(dim, at));
    s.result_of(picked)
}

/// What a vector of places along a dimension names, summed there.
fn summed<'s>(s: &'s Sheet<'_>, g: Term<'s>, dim: usize, size: &SymInt, at: Term<'s>) -> Term<'s> {
    let mut shape = g.shape();
    shape[dim] = size.clone();
    let zeros = s.full(&shape, 0i64, g.dtype().unwrap_or(DType::F32));
    zeros.of("aten.index_add.default", &[dim.into(), at.value(), g.value()])
}

fn padded_backward(e: &mut dyn Emit, a: &Args<'_, Handle>, border: Border) -> Rule {
    let s = Sheet::new(e);
    let (g, shape) = (s.wide(a, 0), s.term(a.value(1).clone()).shape());
    let places = borders(&s, &shape, &a.syms(2)?, border);
    s.result_of(places.into_iter().fold(g, |g, (dim, at)| summed(&s, g, dim, &shape[dim], at)))
}

/// `reflection_pad`.
pub fn reflection_pad(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    padded(e, a, Border::Reflect)
}

/// `replication_pad`.
pub fn replication_pad(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    padded(e, a, Border::Replicate)
}

/// `_pad_circular`.
pub fn pad_circular(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let s = Sheet::new(e);
    let x = s.term(a.value(0).clone());
    let shape = x.shape();
    let pad = a.syms(1)?;
    let picked = pad.chunks_exact(2).zip((0..shape.len()).rev()).fold(x, |x, (pair, dim)| {
        if pair[0].is_eq(0) && pair[1].is_eq(0) {
            return x;
        }
        let around = Around::new(&shape[dim], &pair[0], &pair[1]);
        let end = &around.kept + &around.after;
        let places = [(-&around.before).into(), end.into(), 1i64.into(), DType::I64.into()];
        let places = s.call("aten.arange.start_step", &places);
        x.pick(dim, places.of("aten.remainder.Scalar", &[(&around.kept).into()]) + s.term(&around.first))
    });
    s.result_of(picked)
}

/// `reflection_pad_backward`.
pub fn reflection_pad_backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    padded_backward(e, a, Border::Reflect)
}

/// `replication_pad_backward`.
pub fn replication_pad_backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    padded_backward(e, a, Border::Replicate)
}

/// How elements between the given ones are found.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
}

/// One term of the sum that an element of a resized dimension is: where it lies, and its weight unless that is one.
struct Tap<'s> {
    at: Term<'s>,
    weight: Option<Term<'s>>,
}

/// What a call says of the scale.
struct Scale {
    align_corners: bool,
    factors: Vec<Option<f64>>,
}

impl Scale {
    fn read(a: &Args<'_, Handle>, dims: usize) -> Result<Self, OpError> {
        let align_corners = a.schema.param("align_corners").map_or(Ok(false), |at| a.bool(at))?;
        let factors = if let Some(at) = a.schema.param("scale_factors") {
            a.opt_floats(at)?.map_or(vec![None; dims], |factors| factors.into_iter().map(Some).collect())
        } else {
            let first = a.schema.params.len() - dims;
            (first..first + dims).map(|at| a.opt_float(at)).collect::<Result<_, _>>()?
        };
        Ok(Self { align_corners, factors })
    }
}

/// A quotient of sizes, which may be symbolic, in the precision of positions.
fn ratio<'s>(s: &'s Sheet<'_>, above: &SymInt, below: &SymInt, dtype: DType) -> Term<'s> {
    match (above.as_int(), below.as_int()) {
        (Some(above), Some(below)) => s.term(rounded(above as f64 / below as f64, dtype)),
        _ => s.full(&[], above, dtype) / s.full(&[], below, dtype),
    }
}

fn rounded(value: f64, dtype: DType) -> f64 {
    if dtype == DType::F64 { value } else { f64::from(value as f32) }
}

/// The cubic convolution kernel at distances below one and from one to two.
fn cubic(x: Term<'_>, far: bool) -> Term<'_> {
    const A: f64 = -0.75;
    if far { (((x - 5.0) * x + 8.0) * x - 4.0) * A } else { (x * (A + 2.0) - (A + 3.0)) * x * x + 1.0 }
}

/// The terms along a dimension that goes from `size` to `count` elements, for elements of a type; none where nothing
/// changes.
fn taps<'s>(
    s: &'s Sheet<'_>,
    kind: Kind,
    [size, count]: [&SymInt; 2],
    align_corners: bool,
    factor: Option<f64>,
    dtype: DType,
) -> Option<Vec<Tap<'s>>> {
    let nearest = matches!(kind, Kind::Nearest | Kind::NearestExact);
    if size.is_eq(count) && matches!(kind, Kind::Nearest | Kind::Linear) {
        return None;
    }
    let dtype = if dtype == DType::F64 && !nearest { DType::F64 } else { DType::F32 };
    let one = SymInt::Int(1);
    let ratio = if !nearest && align_corners {
        if count.is_gt(1) { ratio(s, &(size - &one), &(count - &one), dtype) } else { s.term(0.0) }
    } else if kind == Kind::Nearest && count.is_eq(size * 2) {
        s.term(0.5)
    } else {
        match factor.filter(|factor| *factor > 0.0) {
            Some(factor) => s.term(rounded(1.0 / factor, dtype)),
            None => ratio(s, size, count, dtype),
        }
    };
    let last = size - &one;
    let at = s.iota(count).to(dtype);
    let place = |at: Term<'s>| at.clamp(0i64, &last);
    let centre = || if align_corners { at * ratio } else { (at + 0.5) * ratio - 0.5 };
    let single = |at: Term<'s>| Some(vec![Tap { at: place(at.floor().to(DType::I64)), weight: None }]);
    match kind {
        Kind::Nearest => single(at * ratio),
        Kind::NearestExact => single((at + 0.5) * ratio),
        Kind::Linear => {
            let at = centre().at_least(0.0);
            let low = place(at.floor().to(DType::I64));
            let weight = (at - low.to(dtype)).clamp(0.0, 1.0);
            let high = place(low.of("aten.add.Tensor", &[1i64.into()]));
            Some(vec![Tap { at: low, weight: Some(1.0 - weight) }, Tap { at: high, weight: Some(weight) }])
        }
        Kind::Cubic => {
            let at = centre();
            let low = at.floor().to(DType::I64).clamp(Value::None, &last);
            let part = (at - low.to(dtype)).clamp(0.0, 1.0);
            let weights =
                [cubic(part + 1.0, true), cubic(part, false), cubic(1.0 - part, false), cubic(2.0 - part, true)];
            let shifted = |by: i64| place(low.of("aten.add.Tensor", &[by.into()]));
            let taps = (-1i64..3).zip(weights);
            Some(taps.map(|(by, weight)| Tap { at: shifted(by), weight: Some(weight) }).collect())
        }
    }
}

fn resized(e: &mut dyn Emit, a: &Args<'_, Handle>, kind: Kind) -> Rule {
    let dims = e.rank(*a.tensor(0)?) - 2;
    let scale = Scale::read(a, dims)?;
    let s = Sheet::new(e);
    let given = s.term(a.value(0).clone());
    let bytes = given.dtype() == Some(DType::U8);
    let nearest = matches!(kind, Kind::Nearest | Kind::NearestExact);
    if bytes && !nearest {
        return Err(OpError::unsupported("resizing bytes in floats: it is done in fixed point"));
    }
    let mut x = if nearest { given } else { given.wide() };
    let shape = x.shape();
    let counts = match a.opt_syms(1)? {
        Some(counts) => counts,
        None => {
            shape[2..].iter().zip(&scale.factors).map(|(size, factor)| grown(size, factor.unwrap_or(1.0))).collect()
        }
    };
    for d in (0..dims).rev() {
        let sizes = [&shape[d + 2], &counts[d]];
        let dtype = x.dtype().unwrap_or(DType::F32);
        let Some(taps) = taps(&s, kind, sizes, scale.align_corners, scale.factors[d], dtype) else { continue };
        let parts = taps.iter().map(|tap| {
            let part = x.pick(d + 2, tap.at);
            tap.weight.map_or(part, |weight| part * weight.like(x).along(d + 2, dims + 2))
        });
        x = parts.reduce(|sum, part| sum + part).unwrap_or(x);
    }
    s.result_of(x)
}

/// A size times a factor, rounded down; a symbolic one times a factor of few binary digits.
fn grown(size: &SymInt, factor: f64) -> SymInt {
    if let Some(size) = size.as_int() {
        return SymInt::Int((size as f64 * factor) as i64);
    }
    let bits = (0..20).find(|bits| (factor * f64::from(1 << bits)).fract() == 0.0).unwrap_or(20);
    (size * (factor * f64::from(1 << bits)) as i64).floor_div(&SymInt::Int(1 << bits))
}

fn resized_backward(e: &mut dyn Emit, a: &Args<'_, Handle>, kind: Kind) -> Rule {
    let (counts, shape) = (a.syms(1)?, a.syms(2)?);
    let dims = counts.len();
    let scale = Scale::read(a, dims)?;
    let s = Sheet::new(e);
    let mut g = s.wide(a, 0);
    let dtype = g.dtype().unwrap_or(DType::F32);
    for d in 0..dims {
        let sizes = [&shape[d + 2], &counts[d]];
        let Some(taps) = taps(&s, kind, sizes, scale.align_corners, scale.factors[d], dtype) else { continue };
        let parts = taps.iter().map(|tap| {
            let part = tap.weight.map_or(g, |weight| g * weight.like(g).along(d + 2, dims + 2));
            summed(&s, part, d + 2, &shape[d + 2], tap.at)
        });
        g = parts.reduce(|sum, part| sum + part).unwrap_or(g);
    }
    s.result_of(g)
}

macro_rules! resizing {
    ($($forward:ident $backward:ident $kind:ident)*) => {$(
        #[doc = concat!("Resizing, ", stringify!($kind), ".")]
        pub fn $forward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
            resized(e, a, Kind::$kind)
        }

        #[doc = concat!("The gradient of resizing, ", stringify!($kind), ".")]
        pub fn $backward(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
            resized_backward(e, a, Kind::$kind)
        }
    )*};
}

resizing! {
    nearest nearest_backward Nearest
    nearest_exact nearest_exact_backward NearestExact
    linear linear_backward Linear
    cubic_convolution cubic_convolution_backward Cubic
}

formulas! {
    channel_shuffle |s, a, []| {
        let (x, groups) = (s.term(a.value(0).clone()), a.sym(1)?);
        let shape = x.shape();
        let mut apart = shape.to_vec();
        apart[1] = shape[1].floor_div(&groups);
        apart.insert(1, groups);
        let mut order: Vec<usize> = (0..apart.len()).collect();
        order.swap(1, 2);
        x.reshape(&apart).permute(&order).reshape(&shape)
    };
    pixel_shuffle |s, a, []| {
        let (x, factor) = (s.term(a.value(0).clone()), SymInt::Int(a.int(1)?));
        let shape = x.shape();
        let lead = shape.len() - 3;
        let (channels, height, width) = (&shape[lead], &shape[lead + 1], &shape[lead + 2]);
        let channels = channels.floor_div(&(&factor * &factor));
        let mut apart = shape[..lead].to_vec();
        let mut whole = apart.clone();
        whole.extend([channels.clone(), height * &factor, width * &factor]);
        apart.extend([channels, factor.clone(), factor, height.clone(), width.clone()]);
        let mut order: Vec<usize> = (0..lead).collect();
        order.extend([0, 3, 1, 4, 2].map(|d| lead + d));
        x.reshape(&apart).permute(&order).reshape(&whole)
    };
    pixel_unshuffle |s, a, []| {
        let (x, factor) = (s.term(a.value(0).clone()), SymInt::Int(a.int(1)?));
        let shape = x.shape();
        let lead = shape.len() - 3;
        let (channels, height, width) = (&shape[lead], &shape[lead + 1], &shape[lead + 2]);
        let (height, width) = (height.floor_div(&factor), width.floor_div(&factor));
        let mut apart = shape[..lead].to_vec();
        let mut whole = apart.clone();
        whole.extend([channels * &factor * &factor, height.clone(), width.clone()]);
        apart.extend([channels.clone(), height, factor.clone(), width, factor]);
        let mut order: Vec<usize> = (0..lead).collect();
        order.extend([0, 2, 4, 1, 3].map(|d| lead + d));
        x.reshape(&apart).permute(&order).reshape(&whole)
    };
    /// Every dimension is repeated beside a new one and joined with it.
    repeat |s, a, []| {
        let (x, repeats) = (s.term(a.value(0).clone()), a.syms(1)?);
        let missing = repeats.len() - x.rank();
        let shape: Vec<SymInt> = vec![SymInt::Int(1); missing].into_iter().chain(x.shape()).collect();
        let apart: Vec<SymInt> = shape.iter().flat_map(|size| [SymInt::Int(1), size.clone()]).collect();
        let spread: Vec<SymInt> = shape.iter().zip(&repeats).flat_map(|(size, n)| [n.clone(), size.clone()]).collect();
        let whole: Vec<SymInt> = shape.iter().zip(&repeats).map(|(size, n)| size * n).collect();
        x.reshape(&apart).expand(&spread).reshape(&whole)
    };
}
