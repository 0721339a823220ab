//! Decompositions of pointwise operators of one, two and three operands.

use std::f64::consts::{LN_2, LOG2_E, PI};

use pyrite_ir::{Args, Emit, Handle, Meta, OpError, Value};
use pyrite_tensor::{DType, Scalar};

use super::{Operand, Rule, Sheet, Term, formulas};
use crate::rules::{operand_dtype, rounded_to};

/// `x·log(y)`, zero where `x` is, and NaN where `y` is. Two operands become elements of the float type that both have room
/// in, and so does the logarithm; what is computed with them is wide enough.
fn times_log<'s>(s: &'s Sheet<'_>, a: &Args<'_, Handle>, log: impl Fn(Term<'s>) -> Term<'s>) -> Term<'s> {
    let pair = [s.term(a.value(0).clone()), s.term(a.value(1).clone())];
    let common = pair.iter().filter_map(|x| x.dtype()).reduce(DType::promote).unwrap_or(DType::F32).to_inexact();
    let [x, y] = pair.map(|x| match x.number() {
        Some(number) => s.full(&[], rounded_to(common, number.to_f64()), common.to_compute()),
        None => x.to(common).wide(),
    });
    y.isnan().select(f64::NAN, x.eq(0.0).select(0.0, x * log(y).to(common).wide()))
}

/// The larger of two plus the logarithm of one plus what the smaller adds.
fn log_of_sum<'s>(a: Term<'s>, b: Term<'s>, added: impl Fn(Term<'s>) -> Term<'s>) -> Term<'s> {
    let larger = a.with("aten.maximum.default", b);
    let same = a.isinf().and(a.eq(b));
    same.select(a, larger + added(-(a - b).abs()))
}

/// The largest finite number of a type.
fn largest(dtype: Option<DType>) -> f64 {
    match dtype.map(DType::to_real) {
        Some(DType::F16) => 65504.0,
        // The largest bfloat16 has seven bits behind the point.
        Some(DType::BF16) => 3.389_531_389_251_535_5e38,
        Some(DType::F32) => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

formulas! {
    angle |s, a, [x]| {
        if x.is_complex() {
            x.imag().with("aten.atan2.default", x.real())
        } else {
            let dtype = x.dtype().unwrap_or(DType::F32).to_inexact();
            let angle = x.lt(0.0).select(s.full(&[], PI, dtype), s.full(&[], 0.0, dtype));
            if x.dtype().is_some_and(DType::is_float) { x.isnan().select(x, angle) } else { angle }
        }
    };
    deg2rad |s, a, [x]| x * (PI / 180.0);
    rad2deg |s, a, [x]| x * (180.0 / PI);
    /// Each part of a complex number is scaled by itself, so that an infinite one does not make the other NaN.
    exp2 |s, a, [x]| {
        if x.is_complex() {
            (x.real() * LN_2).with("aten.complex.default", x.imag() * LN_2).exp()
        } else {
            s.term(2.0).pow(x)
        }
    };
    frac |s, a, [x]| x - x.trunc();
    isneginf |s, a, [x]| x.eq(f64::NEG_INFINITY);
    isposinf |s, a, [x]| x.eq(f64::INFINITY);
    /// What is below the lower bound becomes that one, and what is not and above the upper bound becomes that one: they may cross.
    logit |s, a, [x]| {
        // Bools cannot be subtracted from one.
        let x = x.dtype().map_or(x, |dtype| x.to(dtype.to_inexact()));
        let x = a.opt_float(1)?.map_or(x, |eps| {
            // The bounds are elements of the argument's type.
            let dtype = s.term(a.value(0).clone()).dtype().unwrap_or(DType::F32);
            let low = rounded_to(dtype, eps);
            let high = rounded_to(dtype, 1.0 - low);
            x.lt(low).select(low, x.gt(high).select(high, x))
        });
        (x / (1.0 - x)).log()
    };
    nan_to_num |s, a, [x]| {
        let largest = largest(s.term(a.value(0).clone()).dtype());
        let nan = a.opt_float(1)?.unwrap_or(0.0);
        let above = a.opt_float(2)?.unwrap_or(largest);
        let below = a.opt_float(3)?.unwrap_or(-largest);
        let finite = |x: Term<'_>| {
            let x = x.isnan().of("aten.where.ScalarSelf", &[nan.into(), x.value()]);
            let x = x.eq(f64::INFINITY).of("aten.where.ScalarSelf", &[above.into(), x.value()]);
            x.eq(f64::NEG_INFINITY).of("aten.where.ScalarSelf", &[below.into(), x.value()]).value()
        };
        match x.dtype() {
            Some(dtype) if dtype.is_integral() => x,
            Some(dtype) if dtype.is_complex() => {
                s.call("aten.complex.default", &[finite(x.real()), finite(x.imag())])
            }
            _ => s.term(finite(x)),
        }
    };
    round_decimals |s, a, [x]| {
        let decimals = a.int(1)?;
        let scale = 10f64.powi(decimals.unsigned_abs().min(400) as i32);
        let round = |x: Term<'_>| x.of("aten.round.default", &[]).value();
        if decimals >= 0 { s.term(round(x * scale)) / scale } else { s.term(round(x / scale)) * scale }
    };
    sgn |s, a, [x]| {
        if x.is_complex() { x.eq(0.0).select(0.0, x / x.abs()) } else { x.sign() }
    };
    sinc |s, a, [x]| x.eq(0.0).select(1.0, (x * PI).sin() / (x * PI));
    entr |s, a, [x]| {
        let below = x.eq(0.0).select(0.0, f64::NEG_INFINITY);
        x.isnan().select(f64::NAN, x.gt(0.0).select(-(x * x.log()), below))
    };

    /// In the operands' own types: a number is rounded to a half precision first.
    rsub |s, a, []| s.term(a.value(1).clone()).of("aten.sub.Tensor", &[a.value(0).clone(), a.value(2).clone()]);
    remainder |s, a, []| s.term(a.value(0).clone()).of("aten.remainder.Tensor", &[a.value(1).clone()]);
    floor_divide |s, a, []| s.term(a.value(0).clone()).of("aten.div.Tensor_mode", &[a.value(1).clone(), "floor".into()]);
    float_power |s, a, [x, y]| {
        let dtype = if x.is_complex() || y.is_complex() { DType::C128 } else { DType::F64 };
        x.to(dtype).pow(y.to(dtype))
    };
    maximum |s, a, [x, y]| x.with("aten.maximum.default", y);
    minimum |s, a, [x, y]| x.with("aten.minimum.default", y);
    fmax |s, a, [x, y]| x.isnan().select(y, y.isnan().select(x, x.with("aten.maximum.default", y)));
    fmin |s, a, [x, y]| x.isnan().select(y, y.isnan().select(x, x.with("aten.minimum.default", y)));
    /// By the ratio of the smaller to the larger, which does not overflow.
    hypot |s, a, [x, y]| {
        let (x, y) = (x.abs(), y.abs());
        let (large, small) = (x.with("aten.maximum.default", y), x.with("aten.minimum.default", y));
        let ratio = large.eq(0.0).select(0.0, small / large);
        x.isinf().or(y.isinf()).select(f64::INFINITY, large * (ratio * ratio + 1.0).sqrt())
    };
    copysign |s, a, [x, y]| {
        let minus = match y.number() {
            Some(number) => s.full(&[], number.to_f64().is_sign_negative(), DType::Bool),
            None => y.of("aten.signbit.default", &[]),
        };
        let size = x.to(x.dtype().unwrap_or(DType::F32).to_inexact()).abs();
        minus.select(-size, size)
    };
    heaviside |s, a, [x, values]| x.eq(0.0).select(values, x.gt(0.0).like(values));
    logaddexp |s, a, [x, y]| {
        if x.is_complex() || y.is_complex() {
            let first = x.real().ge(y.real());
            let (large, small) = (first.select(x, y), first.select(y, x));
            large.real().eq(f64::NEG_INFINITY).select(large, large + (small - large).exp().log1p())
        } else {
            log_of_sum(x, y, |rest| rest.exp().log1p())
        }
    };
    logaddexp2 |s, a, [x, y]| log_of_sum(x, y, |rest| rest.exp2().log1p() * LOG2_E);
    xlogy |s, a, []| times_log(&s, a, Term::log);
    xlog1py |s, a, []| times_log(&s, a, Term::log1p);
    polar |s, a, [length, angle]| {
        let (re, im) = (length * angle.cos(), length * angle.sin());
        re.with("aten.complex.default", im)
    };
    isclose |s, a, [x, y]| {
        let (relative, absolute, equal_nan) = (a.float(2)?, a.float(3)?, a.bool(4)?);
        let whole = |x: Term<'_>| if x.dtype().is_some_and(DType::is_integral) { x.to(DType::F64).value() } else { x.value() };
        let (x, y) = (s.term(whole(x)), s.term(whole(y)));
        let distance = (x - y).abs();
        let near = distance.le(y.abs() * relative + absolute).and(distance.isinf().logical_not());
        let close = x.eq(y).or(near);
        if equal_nan { close.or(x.isnan().and(y.isnan())) } else { close }
    };
    bitwise_and |s, a, [x, y]| x.with("aten.bitwise_and.Tensor", y);
    bitwise_or |s, a, [x, y]| x.with("aten.bitwise_or.Tensor", y);
    bitwise_xor |s, a, [x, y]| x.with("aten.bitwise_xor.Tensor", y);
    left_shift |s, a, [x, y]| x.with("aten.bitwise_left_shift.Tensor", y);
    right_shift |s, a, [x, y]| x.with("aten.bitwise_right_shift.Tensor", y);

    clip |s, a, [x]| x.clamp(a.value(1).clone(), a.value(2).clone());
    clip_tensor |s, a, [x]| x.of("aten.clamp.Tensor", &a.values[1..]);
    clamp_min |s, a, [x]| x.at_least(a.value(1).clone());
    clamp_max |s, a, [x]| x.at_most(a.value(1).clone());
    clamp_min_tensor |s, a, [x, y]| x.with("aten.maximum.default", y);
    clamp_max_tensor |s, a, [x, y]| x.with("aten.minimum.default", y);
    /// From the nearer end, which keeps the result exact at both.
    lerp |s, a, [x, y, w]| match w.number() {
        Some(Scalar::Complex(_)) | None => {
            let near = w.abs().lt(0.5);
            near.select(x + w * (y - x), y - (y - x) * (1.0 - w))
        }
        Some(number) if number.to_f64().abs() < 0.5 => x + (y - x) * w,
        Some(number) => y - (y - x) * (1.0 - number.to_f64()),
    };
    addcmul |s, a, [x, y, z]| x + scaled(y, a.scalar(3)?) * z;
    addcdiv |s, a, [x, y, z]| x + scaled(y, a.scalar(3)?) / z;
    masked_fill |s, a, [_x, mask]| {
        // Nothing is computed, so nothing is widened.
        let x = s.term(a.value(0).clone());
        let dtype = x.dtype().unwrap_or(DType::F32);
        let value = match a.value(2) {
            Value::Tensor(value) => s.term(*value).to(dtype),
            number => s.full(&[], number.clone(), dtype),
        };
        mask.select(value, x)
    };
    native_dropout_backward |s, a, [g, mask]| g * mask.like(g) * a.float(2)?;
}

/// Times a number that is one most of the time.
fn scaled(x: Term<'_>, factor: Scalar) -> Term<'_> {
    let one = !matches!(factor, Scalar::Complex(_)) && factor.to_f64() == 1.0;
    if one { x } else { x.of("aten.mul.Tensor", &[x.as_element(factor)]) }
}

/// What an operand of `where` is like.
fn operand_meta(e: &dyn Emit, value: &Value<Handle>) -> Option<Meta> {
    match value {
        Value::Tensor(handle) => Some(e.meta(*handle).clone()),
        Value::Int(size) => Some(Meta::number(Scalar::Int(size.hint().unwrap_or(0)))),
        other => other.as_scalar().map(Meta::number),
    }
}

/// `where` with numbers: each is a tensor of the common type.
pub fn choose(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Rule {
    let metas: Vec<Meta> = a.values[1..3].iter().filter_map(|value| operand_meta(e, value)).collect();
    let dtype = operand_dtype(&metas);
    let s = Sheet::new(e);
    let side = |index: usize| match a.value(index) {
        Value::Tensor(handle) => s.term(*handle).to(dtype),
        number => s.full(&[], number.clone(), dtype),
    };
    s.result_of(s.term(a.value(0).clone()).select(side(1), side(2)))
}

/// `mvlgamma`: `ln Γ` at arguments half apart.
pub fn mvlgamma(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let s = Sheet::new(e);
    let (x, p) = (s.wide(a, 0), a.int(1)?);
    let constant = (p * (p - 1)) as f64 / 4.0 * PI.ln();
    let sum = (1..p).fold(x.lgamma(), |sum, j| sum + (x - j as f64 / 2.0).lgamma());
    s.result_of(sum + constant)
}
