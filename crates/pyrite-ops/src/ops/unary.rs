//! Functions of one operand.

use std::f64::consts::{LN_2, LN_10, PI};

use pyrite_ir::{Args, Call, Emit, Freedom, Handle, Meta, OpDef, OpError, Tag, Tolerance, Value, args, invalid};
use pyrite_tensor::{Complex64, DType, Tensor};

use crate::decompositions::pointwise as by;
use crate::derivatives::unary as d;
use crate::kernels::Pointwise;
use crate::lowerings as to_loops;
use crate::rules::{
    compare, compare_real, core_pointwise, in_place, operand_dtype, operands, plain_pointwise, preserved_strides,
    rounded_to, same_as, to_float, to_real, to_real_float, to_same, to_same_float, to_same_number,
};
use pyrite_kernels::{complex, vector_math};

const FLOATS: &[&str] = &["f32[3, 4]", "f64[5]", "bf16[2, 3]<[1, 2]", "f16[4]", "f32[0, 3]", "f32[]"];
const REALS: &[&str] = &["f32[3, 4]", "f64[5]<[2]", "bf16[2, 3]<[1, 2]", "i64[4]", "u8[3]", "f32[0, 3]", "f32[]"];
const NUMBERS: &[&str] = &["f32[3, 4]", "f64[5]", "bf16[2, 3]<[1, 2]", "i64[4]", "c64[2, 2]", "f32[0, 3]"];
const SMOOTH: &[&str] = &["f32[3, 4]", "f64[5]", "bf16[2, 3]<[1, 2]", "i64[4]", "b8[3]", "c64[2, 2]", "c128[3]"];
const ANY: &[&str] = &["f32[3, 4]", "bf16[2, 3]<[1, 2]", "i64[4]", "b8[3]", "c64[2, 2]", "f32[0, 3]"];
const IN_PLACE: &[&str] = &["f32[3, 4]", "f64[2, 3]<[1, 4]"];

/// The table.
pub const OPS: &[OpDef] = &[
    core_pointwise(
        "aten::abs(Tensor self) -> Tensor",
        "The absolute value; the length of a complex number.",
        to_real_number,
        abs,
        NUMBERS,
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::abs)
    .derivative(d::abs),
    core_pointwise(
        "aten::acos(Tensor self) -> Tensor",
        "The arc cosine.",
        to_float,
        |c| smooth(c, f64::acos, complex::acos),
        SMOOTH,
    )
    .lower(to_loops::pointwise::acos)
    .derivative(d::acos),
    core_pointwise(
        "aten::acosh(Tensor self) -> Tensor",
        "The inverse hyperbolic cosine.",
        to_float,
        |c| smooth(c, acosh, complex::acosh),
        SMOOTH,
    )
    .lower(to_loops::pointwise::acosh)
    .derivative(d::acosh),
    plain_pointwise(
        "aten::angle(Tensor self) -> Tensor",
        "The angle of a complex number; π for negative real ones.",
        to_angle,
        angle,
        SMOOTH,
    )
    .free(Freedom::HalfTurn)
    .derivative(d::angle)
    .decompose(by::angle),
    core_pointwise(
        "aten::asin(Tensor self) -> Tensor",
        "The arc sine.",
        to_float,
        |c| smooth(c, f64::asin, complex::asin),
        SMOOTH,
    )
    .lower(to_loops::pointwise::asin)
    .derivative(d::asin),
    core_pointwise(
        "aten::asinh(Tensor self) -> Tensor",
        "The inverse hyperbolic sine.",
        to_float,
        |c| smooth(c, libm::asinh, complex::asinh),
        SMOOTH,
    )
    .lower(to_loops::pointwise::asinh)
    .derivative(d::asinh),
    core_pointwise(
        "aten::atan(Tensor self) -> Tensor",
        "The arc tangent.",
        to_float,
        |c| smooth(c, f64::atan, complex::atan),
        SMOOTH,
    )
    .lower(to_loops::pointwise::atan)
    .derivative(d::atan),
    core_pointwise(
        "aten::atanh(Tensor self) -> Tensor",
        "The inverse hyperbolic tangent.",
        to_float,
        |c| smooth(c, libm::atanh, complex::atanh),
        SMOOTH,
    )
    .lower(to_loops::pointwise::atanh)
    .derivative(d::atanh),
    core_pointwise(
        "aten::ceil(Tensor self) -> Tensor",
        "The smallest integer not below.",
        to_same_number,
        |c| rounding(c, f64::ceil),
        REALS,
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::ceil)
    .derivative(d::constant),
    OpDef::composite(
        "aten::conj_physical(Tensor self) -> Tensor",
        "The complex conjugate, computed; a real tensor is itself.",
        conj_physical,
    )
    .tags(&[Tag::Pointwise])
    .samples(&["c64[2, 2]", "c128[2, 3]<[1, 2]"]),
    core_pointwise(
        "aten::cos(Tensor self) -> Tensor",
        "The cosine.",
        to_float,
        |c| smooth(c, f64::cos, complex::cos),
        SMOOTH,
    )
    .lower(to_loops::pointwise::cos)
    .derivative(d::cos),
    core_pointwise(
        "aten::cosh(Tensor self) -> Tensor",
        "The hyperbolic cosine.",
        to_float,
        |c| smooth(c, f64::cosh, complex::cosh),
        SMOOTH,
    )
    .lower(to_loops::pointwise::cosh)
    .derivative(d::cosh),
    plain_pointwise(
        "aten::deg2rad(Tensor self) -> Tensor",
        "Degrees as radians.",
        to_real_float,
        |c| real(c, f64::to_radians),
        REALS,
    )
    .derivative(d::deg2rad)
    .decompose(by::deg2rad),
    core_pointwise("aten::erf(Tensor self) -> Tensor", "The error function.", to_float, erf, REALS)
        .lower(to_loops::pointwise::erf)
        .derivative(d::erf),
    plain_pointwise(
        "aten::erfc(Tensor self) -> Tensor",
        "One minus the error function.",
        to_float,
        |c| real(c, libm::erfc),
        REALS,
    )
    .lower(to_loops::pointwise::erfc)
    .derivative(d::erfc),
    plain_pointwise(
        "aten::erfinv(Tensor self) -> Tensor",
        "The inverse of the error function.",
        to_float,
        |c| real(c, erfinv),
        REALS,
    )
    .derivative(d::erfinv),
    core_pointwise("aten::exp(Tensor self) -> Tensor", "The exponential function.", to_float, exp, SMOOTH)
        .lower(to_loops::pointwise::exp)
        .derivative(d::exp),
    plain_pointwise(
        "aten::exp2(Tensor self) -> Tensor",
        "Two to the power of each element.",
        to_float,
        |c| smooth(c, f64::exp2, complex::exp2),
        SMOOTH,
    )
    .derivative(d::exp2)
    .decompose(by::exp2),
    core_pointwise(
        "aten::expm1(Tensor self) -> Tensor",
        "The exponential function minus one, exact near zero.",
        to_float,
        |c| smooth(c, f64::exp_m1, complex::exp_m1),
        SMOOTH,
    )
    .lower(to_loops::pointwise::expm1)
    .derivative(d::expm1),
    core_pointwise(
        "aten::floor(Tensor self) -> Tensor",
        "The largest integer not above.",
        to_same_number,
        |c| rounding(c, f64::floor),
        REALS,
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::floor)
    .derivative(d::constant),
    plain_pointwise(
        "aten::frac(Tensor self) -> Tensor",
        "The part behind the point, with the sign of the element.",
        to_same_float,
        |c| real(c, f64::fract),
        FLOATS,
    )
    .derivative(d::frac)
    .decompose(by::frac),
    core_pointwise(
        "aten::isinf(Tensor self) -> Tensor",
        "Whether an element is infinite.",
        compare,
        |c| test(c, f64::is_infinite, |z| z.re.is_infinite() || z.im.is_infinite()),
        ANY,
    )
    .lower(to_loops::pointwise::isinf)
    .no_derivative("bools"),
    core_pointwise(
        "aten::isnan(Tensor self) -> Tensor",
        "Whether an element is not a number.",
        compare,
        |c| test(c, f64::is_nan, |z| z.re.is_nan() || z.im.is_nan()),
        ANY,
    )
    .lower(to_loops::pointwise::isnan)
    .no_derivative("bools"),
    plain_pointwise(
        "aten::isneginf(Tensor self) -> Tensor",
        "Whether an element is minus infinity.",
        compare_real,
        |c| real_test(c, |x| x == f64::NEG_INFINITY),
        REALS,
    )
    .no_derivative("bools")
    .decompose(by::isneginf),
    plain_pointwise(
        "aten::isposinf(Tensor self) -> Tensor",
        "Whether an element is plus infinity.",
        compare_real,
        |c| real_test(c, |x| x == f64::INFINITY),
        REALS,
    )
    .no_derivative("bools")
    .decompose(by::isposinf),
    core_pointwise(
        "aten::log(Tensor self) -> Tensor",
        "The natural logarithm.",
        to_float,
        |c| smooth(c, f64::ln, num_complex::Complex::ln),
        SMOOTH,
    )
    .lower(to_loops::pointwise::log)
    .derivative(d::log),
    core_pointwise(
        "aten::log10(Tensor self) -> Tensor",
        "The logarithm of base ten.",
        to_float,
        |c| smooth(c, f64::log10, |z| z.ln() / LN_10),
        SMOOTH,
    )
    .lower(to_loops::pointwise::log10)
    .derivative(d::log10),
    core_pointwise(
        "aten::log1p(Tensor self) -> Tensor",
        "The logarithm of one plus each element, exact near zero.",
        to_float,
        |c| smooth(c, f64::ln_1p, complex::ln_1p),
        SMOOTH,
    )
    .lower(to_loops::pointwise::log1p)
    .derivative(d::log1p),
    core_pointwise(
        "aten::log2(Tensor self) -> Tensor",
        "The logarithm of base two.",
        to_float,
        |c| smooth(c, f64::log2, |z| z.ln() / LN_2),
        SMOOTH,
    )
    .lower(to_loops::pointwise::log2)
    .derivative(d::log2),
    plain_pointwise(
        "aten::logit(Tensor self, float? eps=None) -> Tensor",
        "The inverse of `sigmoid`, with the argument kept `eps` away from 0 and 1.",
        to_real_float,
        logit,
        &["f32[3, 4]{0..1}", "f64[5]{-1..2}, 0.1", "f32[9]{0..1}, 0.6", "i64[3]", "b8[3]", "bf16[4]{0..1}, eps=0.01"],
    )
    .derivative(d::logit)
    .decompose(by::logit),
    plain_pointwise(
        "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
        "Replaces NaN by zero and infinities by the largest finite numbers, or by the numbers given.",
        to_same,
        nan_to_num,
        &["f32[3, 4]", "f64[2], 1.0, 2.0, 3.0", "i64[3]", "c64[2]", "bf16[0]"],
    )
    .derivative(d::nan_to_num)
    .decompose(by::nan_to_num),
    core_pointwise("aten::neg(Tensor self) -> Tensor", "The negated number.", to_same_number, neg, NUMBERS)
        .tolerance(Tolerance::Exact)
        .lower(to_loops::pointwise::neg)
        .derivative(d::neg),
    plain_pointwise(
        "aten::rad2deg(Tensor self) -> Tensor",
        "Radians as degrees.",
        to_real_float,
        |c| real(c, f64::to_degrees),
        REALS,
    )
    .derivative(d::rad2deg)
    .decompose(by::rad2deg),
    core_pointwise(
        "aten::reciprocal(Tensor self) -> Tensor",
        "One divided by each element.",
        to_float,
        |c| smooth(c, f64::recip, |z| complex::quotient(Complex64::ONE, z)),
        SMOOTH,
    )
    .lower(to_loops::pointwise::reciprocal)
    .derivative(d::reciprocal),
    core_pointwise(
        "aten::round(Tensor self) -> Tensor",
        "The nearest integer, halves to the even one.",
        to_same_number,
        |c| rounding(c, f64::round_ties_even),
        REALS,
    )
    .lower(to_loops::pointwise::round)
    .derivative(d::constant),
    plain_pointwise(
        "aten::round.decimals(Tensor self, *, int decimals) -> Tensor",
        "Rounds to a number of decimal places, halves to even.",
        to_same_number,
        round_decimals,
        &["f32[3, 4], decimals=1", "f64[5]{-900..900}, decimals=-2", "bf16[3], decimals=0"],
    )
    .derivative(d::constant)
    .decompose(by::round_decimals),
    core_pointwise("aten::rsqrt(Tensor self) -> Tensor", "One divided by the square root.", to_float, rsqrt, SMOOTH)
        .lower(to_loops::pointwise::rsqrt)
        .derivative(d::rsqrt),
    plain_pointwise(
        "aten::sgn(Tensor self) -> Tensor",
        "The sign; the direction of a complex number.",
        to_same,
        sgn,
        ANY,
    )
    .derivative(d::sgn)
    .decompose(by::sgn),
    core_pointwise(
        "aten::sign(Tensor self) -> Tensor",
        "The sign: -1, 0 or 1.",
        to_same,
        sign,
        &["f32[3, 4]", "i64[4]", "b8[3]", "u8[2]", "bf16[2, 3]<[1, 2]"],
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::sign)
    .derivative(d::constant),
    plain_pointwise(
        "aten::signbit(Tensor self) -> Tensor",
        "Whether the sign is minus; minus zero has one.",
        compare,
        signbit,
        REALS,
    )
    .no_derivative("bools"),
    core_pointwise(
        "aten::sin(Tensor self) -> Tensor",
        "The sine.",
        to_float,
        |c| smooth(c, f64::sin, complex::sin),
        SMOOTH,
    )
    .lower(to_loops::pointwise::sin)
    .derivative(d::sin),
    plain_pointwise("aten::sinc(Tensor self) -> Tensor", "`sin(πx) / (πx)`, one at zero.", to_float, sinc, SMOOTH)
        .derivative(d::sinc)
        .decompose(by::sinc),
    core_pointwise(
        "aten::sinh(Tensor self) -> Tensor",
        "The hyperbolic sine.",
        to_float,
        |c| smooth(c, f64::sinh, complex::sinh),
        SMOOTH,
    )
    .lower(to_loops::pointwise::sinh)
    .derivative(d::sinh),
    core_pointwise("aten::sqrt(Tensor self) -> Tensor", "The square root.", to_float, sqrt, SMOOTH)
        .lower(to_loops::pointwise::sqrt)
        .derivative(d::sqrt),
    core_pointwise(
        "aten::tan(Tensor self) -> Tensor",
        "The tangent.",
        to_float,
        |c| smooth(c, f64::tan, complex::tan),
        SMOOTH,
    )
    .lower(to_loops::pointwise::tan)
    .derivative(d::tan),
    core_pointwise("aten::tanh(Tensor self) -> Tensor", "The hyperbolic tangent.", to_float, tanh, SMOOTH)
        .lower(to_loops::pointwise::tanh)
        .derivative(d::tanh),
    core_pointwise(
        "aten::trunc(Tensor self) -> Tensor",
        "The integer part, toward zero.",
        to_same_number,
        |c| rounding(c, f64::trunc),
        REALS,
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::trunc)
    .derivative(d::constant),
    OpDef::kernel(
        "aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
        "Mantissas between a half and one, and the powers of two that belong to them.",
        infer_frexp,
        frexp,
    )
    .derivative(d::frexp)
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3, 4]", "f64[5]", "bf16[2, 3]<[1, 2]", "f32[0]"]),
    in_place("aten::abs_(Tensor(a!) self) -> Tensor(a!)", "aten.abs.default", IN_PLACE),
    in_place("aten::acos_(Tensor(a!) self) -> Tensor(a!)", "aten.acos.default", IN_PLACE),
    in_place("aten::acosh_(Tensor(a!) self) -> Tensor(a!)", "aten.acosh.default", IN_PLACE),
    in_place("aten::asin_(Tensor(a!) self) -> Tensor(a!)", "aten.asin.default", IN_PLACE),
    in_place("aten::asinh_(Tensor(a!) self) -> Tensor(a!)", "aten.asinh.default", IN_PLACE),
    in_place("aten::atan_(Tensor(a!) self) -> Tensor(a!)", "aten.atan.default", IN_PLACE),
    in_place("aten::atanh_(Tensor(a!) self) -> Tensor(a!)", "aten.atanh.default", IN_PLACE),
    in_place("aten::ceil_(Tensor(a!) self) -> Tensor(a!)", "aten.ceil.default", IN_PLACE),
    in_place("aten::conj_physical_(Tensor(a!) self) -> Tensor(a!)", "aten.conj_physical.default", IN_PLACE),
    in_place("aten::cos_(Tensor(a!) self) -> Tensor(a!)", "aten.cos.default", IN_PLACE),
    in_place("aten::cosh_(Tensor(a!) self) -> Tensor(a!)", "aten.cosh.default", IN_PLACE),
    in_place("aten::deg2rad_(Tensor(a!) self) -> Tensor(a!)", "aten.deg2rad.default", IN_PLACE),
    in_place("aten::erf_(Tensor(a!) self) -> Tensor(a!)", "aten.erf.default", IN_PLACE),
    in_place("aten::erfc_(Tensor(a!) self) -> Tensor(a!)", "aten.erfc.default", IN_PLACE),
    in_place("aten::erfinv_(Tensor(a!) self) -> Tensor(a!)", "aten.erfinv.default", IN_PLACE),
    in_place("aten::exp_(Tensor(a!) self) -> Tensor(a!)", "aten.exp.default", IN_PLACE),
    in_place("aten::exp2_(Tensor(a!) self) -> Tensor(a!)", "aten.exp2.default", IN_PLACE),
    in_place("aten::expm1_(Tensor(a!) self) -> Tensor(a!)", "aten.expm1.default", IN_PLACE),
    in_place("aten::floor_(Tensor(a!) self) -> Tensor(a!)", "aten.floor.default", IN_PLACE),
    in_place("aten::frac_(Tensor(a!) self) -> Tensor(a!)", "aten.frac.default", IN_PLACE),
    in_place("aten::log_(Tensor(a!) self) -> Tensor(a!)", "aten.log.default", IN_PLACE),
    in_place("aten::log10_(Tensor(a!) self) -> Tensor(a!)", "aten.log10.default", IN_PLACE),
    in_place("aten::log1p_(Tensor(a!) self) -> Tensor(a!)", "aten.log1p.default", IN_PLACE),
    in_place("aten::log2_(Tensor(a!) self) -> Tensor(a!)", "aten.log2.default", IN_PLACE),
    in_place(
        "aten::logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)",
        "aten.logit.default",
        &["f32[3, 4]{0..1}, 0.1"],
    ),
    in_place(
        "aten::nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor(a!)",
        "aten.nan_to_num.default",
        &["f32[3, 4], 1.0"],
    ),
    in_place("aten::neg_(Tensor(a!) self) -> Tensor(a!)", "aten.neg.default", IN_PLACE),
    in_place("aten::rad2deg_(Tensor(a!) self) -> Tensor(a!)", "aten.rad2deg.default", IN_PLACE),
    in_place("aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)", "aten.reciprocal.default", IN_PLACE),
    in_place("aten::round_(Tensor(a!) self) -> Tensor(a!)", "aten.round.default", IN_PLACE),
    in_place(
        "aten::round_.decimals(Tensor(a!) self, *, int decimals) -> Tensor(a!)",
        "aten.round.decimals",
        &["f32[3, 4], decimals=1"],
    ),
    in_place("aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)", "aten.rsqrt.default", IN_PLACE),
    in_place("aten::sgn_(Tensor(a!) self) -> Tensor(a!)", "aten.sgn.default", IN_PLACE),
    in_place("aten::sign_(Tensor(a!) self) -> Tensor(a!)", "aten.sign.default", IN_PLACE),
    in_place("aten::sin_(Tensor(a!) self) -> Tensor(a!)", "aten.sin.default", IN_PLACE),
    in_place("aten::sinc_(Tensor(a!) self) -> Tensor(a!)", "aten.sinc.default", IN_PLACE),
    in_place("aten::sinh_(Tensor(a!) self) -> Tensor(a!)", "aten.sinh.default", IN_PLACE),
    in_place("aten::sqrt_(Tensor(a!) self) -> Tensor(a!)", "aten.sqrt.default", IN_PLACE),
    in_place("aten::tan_(Tensor(a!) self) -> Tensor(a!)", "aten.tan.default", IN_PLACE),
    in_place("aten::tanh_(Tensor(a!) self) -> Tensor(a!)", "aten.tanh.default", IN_PLACE),
    in_place("aten::trunc_(Tensor(a!) self) -> Tensor(a!)", "aten.trunc.default", IN_PLACE),
];

/// A function of floats; integers become floats first.
fn real(call: &Call<'_>, f: fn(f64) -> f64) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?.f64(|[x]| f(x)).finish()
}

/// A function of floats and complex numbers; integers become floats first.
fn smooth(call: &Call<'_>, f: fn(f64) -> f64, g: fn(Complex64) -> Complex64) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?.f64(|[x]| f(x)).c128(|[z]| g(z)).finish()
}

/// The inverse hyperbolic cosine. Below one, where there is none, the function of the library gives what rounding leaves of
/// numbers that cancel.
fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// A function that leaves integers as they are.
fn rounding(call: &Call<'_>, f: fn(f64) -> f64) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?.f64(|[x]| f(x)).i64(|[x]| x).finish()
}

/// A question that integers answer with no.
fn test(call: &Call<'_>, f: fn(f64) -> bool, g: fn(Complex64) -> bool) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    Pointwise::over(call, [x], x.dtype())?.test_f64(|[x]| f(x)).test_i64(|_| false).test_c128(|[z]| g(z)).finish()
}

/// A question that integers answer with no and complex numbers cannot be asked.
fn real_test(call: &Call<'_>, f: fn(f64) -> bool) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    Pointwise::over(call, [x], x.dtype())?.test_f64(|[x]| f(x)).test_i64(|_| false).finish()
}

fn to_real_number(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    to_same_number(args)?;
    to_real(args)
}

fn to_angle(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    Ok(same_as(&operands, operand_dtype(&operands).to_real().to_inexact())?.into())
}

fn abs(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    Pointwise::over(call, [x], x.dtype())?
        .f32(|[x]| x.abs())
        .f64(|[x]| x.abs())
        .i64(|[x]| x.wrapping_abs())
        .c128_to_f64(|[z]| z.norm())
        .finish()
}

fn angle(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    let of_real = |x: f64| match x {
        x if x.is_nan() => x,
        x if x < 0.0 => PI,
        _ => 0.0,
    };
    Pointwise::over(call, [x], x.dtype().to_inexact())?.f64(|[x]| of_real(x)).c128_to_f64(|[z]| z.arg()).finish()
}

fn conj_physical(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let x = *a.tensor(0)?;
    if e.dtype(x).is_complex() { e.call("aten._conj_physical.default", args![x]) } else { Ok(x.into()) }
}

fn neg(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32(|[x]| -x)
        .f64(|[x]| -x)
        .i64(|[x]| x.wrapping_neg())
        .c128(|[z]| -z)
        .finish()
}

fn sqrt(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32(|[x]| x.sqrt())
        .f64(|[x]| x.sqrt())
        .c128(|[z]| complex::sqrt(z))
        .finish()
}

fn rsqrt(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32(|[x]| x.sqrt().recip())
        .f64(|[x]| x.sqrt().recip())
        .c128(|[z]| complex::quotient(Complex64::ONE, complex::sqrt(z)))
        .finish()
}

fn exp(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32_slices(vector_math::exp)
        .f64(|[x]| x.exp())
        .c128(|[z]| z.exp())
        .finish()
}

fn erf(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?.f32_slices(vector_math::erf).f64(|[x]| libm::erf(x)).finish()
}

fn tanh(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f32_slices(vector_math::tanh)
        .f64(|[x]| x.tanh())
        .c128(|[z]| complex::tanh(z))
        .finish()
}

/// -1, 0 or 1; NaN has no sign and gives zero.
fn sign_of(x: f64) -> f64 {
    f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))
}

fn sign(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?.f64(|[x]| sign_of(x)).i64(|[x]| x.signum()).finish()
}

fn sgn(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f64(|[x]| sign_of(x))
        .i64(|[x]| x.signum())
        .c128(|[z]| complex::sgn(z))
        .finish()
}

fn signbit(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    Pointwise::over(call, [x], x.dtype())?.test_f64(|[x]| x.is_sign_negative()).test_i64(|[x]| x < 0).finish()
}

fn sinc(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::as_result(call, [call.args.tensor(0)?])?
        .f64(|[x]| if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) })
        .c128(|[z]| if z == Complex64::ZERO { Complex64::ONE } else { complex::sin(z * PI) / (z * PI) })
        .finish()
}

fn logit(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    let map = Pointwise::as_result(call, [x])?;
    match call.args.opt_float(1)? {
        None => map.f64(|[x]| (x / (1.0 - x)).ln()),
        Some(eps) => {
            // The bounds are elements of the argument's type.
            let low = rounded_to(x.dtype(), eps);
            let high = rounded_to(x.dtype(), 1.0 - low);
            map.f64(move |[x]| {
                // The lower bound wins where the two cross.
                let inside = match x {
                    x if x < low => low,
                    x if x > high => high,
                    x => x,
                };
                (inside / (1.0 - inside)).ln()
            })
        }
    }
    .finish()
}

fn nan_to_num(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    let largest = match x.dtype().to_real() {
        DType::F16 => 65504.0,
        // The largest bfloat16 has seven bits behind the point.
        DType::BF16 => 3.389_531_389_251_535_5e38,
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    let nan = call.args.opt_float(1)?.unwrap_or(0.0);
    let above = call.args.opt_float(2)?.unwrap_or(largest);
    let below = call.args.opt_float(3)?.unwrap_or(-largest);
    let replace = move |x: f64| match x {
        x if x.is_nan() => nan,
        f64::INFINITY => above,
        f64::NEG_INFINITY => below,
        x => x,
    };
    Pointwise::as_result(call, [x])?
        .f64(|[x]| replace(x))
        .i64(|[x]| x)
        .c128(|[z]| Complex64::new(replace(z.re), replace(z.im)))
        .finish()
}

fn round_decimals(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let decimals = call.args.int(1)?;
    let digits = decimals.unsigned_abs().min(400) as i32;
    let map = Pointwise::as_result(call, [call.args.tensor(0)?])?;
    // The scaled number is rounded to the element type before the tie is decided, as PyTorch does.
    let (scale32, scale) = (10f32.powi(digits), 10f64.powi(digits));
    if decimals >= 0 {
        map.f32(|[x]| (x * scale32).round_ties_even() / scale32).f64(|[x]| (x * scale).round_ties_even() / scale)
    } else {
        map.f32(|[x]| (x / scale32).round_ties_even() * scale32).f64(|[x]| (x / scale).round_ties_even() * scale)
    }
    .finish()
}

fn infer_frexp(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = args.tensor(0)?;
    if !x.dtype.is_float() {
        invalid!("frexp takes floating-point numbers, not {}", x.dtype);
    }
    let result = |dtype| Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &preserved_strides(x), dtype) };
    Ok(Value::List(vec![result(x.dtype).into(), result(DType::I32).into()]))
}

fn frexp(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (mantissas, exponents) = (call.allocate(0)?, call.allocate(1)?);
    let parts: Vec<(f64, i32)> = call.args.tensor(0)?.to_f64s().into_iter().map(libm::frexp).collect();
    mantissas.write_f64s(&parts.iter().map(|p| p.0).collect::<Vec<_>>());
    exponents.write_i64s(&parts.iter().map(|p| i64::from(p.1)).collect::<Vec<_>>());
    Ok(Value::List(vec![mantissas.into(), exponents.into()]))
}

/// A rational start for the middle and a logarithmic one for the ends, then Newton steps on the error function itself.
fn erfinv(x: f64) -> f64 {
    let rest = 1.0 - x.abs();
    if x.is_nan() || rest < 0.0 {
        return f64::NAN;
    }
    if rest == 0.0 {
        return f64::INFINITY.copysign(x);
    }
    // Winitzki's approximation is good to two digits everywhere.
    let log = (rest * (1.0 + x.abs())).ln();
    let a = 0.147;
    let middle = 2.0 / (PI * a) + 0.5 * log;
    let mut y = ((middle * middle - log / a).sqrt() - middle).max(0.0).sqrt();
    for _ in 0..4 {
        // The complement keeps its digits near one, the function itself near zero.
        let error = if rest < 0.5 { rest - libm::erfc(y) } else { libm::erf(y) - x.abs() };
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
        let step = error / slope;
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::{acosh, erfinv};

    #[test]
    fn numbers_below_one_have_no_inverse_hyperbolic_cosine() {
        assert_eq!(acosh(1.0), 0.0);
        for x in [0.99, 0.0, -1.0, -6.702_908e3, -1e10, f64::NEG_INFINITY, f64::NAN] {
            assert!(acosh(x).is_nan(), "{x}");
        }
    }

    #[test]
    fn the_inverse_of_the_error_function_is_one() {
        for i in 0..2000 {
            let x = f64::from(i) / 2000.0;
            assert!((libm::erf(erfinv(x)) - x).abs() < 1e-15, "{x}");
            assert_eq!(erfinv(-x), -erfinv(x));
        }
        for exponent in 2..16 {
            let rest = 10f64.powi(-exponent);
            let y = erfinv(1.0 - rest);
            let exact = 1.0 - (1.0 - rest);
            assert!((libm::erfc(y) / exact - 1.0).abs() < 1e-13, "1 - {rest}");
        }
        assert!(erfinv(1.5).is_nan() && erfinv(1.0).is_infinite());
    }
}
