//! Arithmetic of two operands, each a tensor or a number.

use pyrite_ir::{Args, Call, Emit, Freedom, Handle, Meta, OpDef, OpError, Tag, Tolerance, Value, args, invalid};
use pyrite_tensor::element::{BF16, F16};
use pyrite_tensor::{Category, Complex64, DType, Scalar, Tensor};

use crate::decompositions::pointwise as by;
use crate::derivatives::binary as d;
use crate::kernels::{Pointwise, operand};
use crate::lowerings as to_loops;
use crate::rules::{
    core_pointwise, in_place, operand_dtype, operands, plain_pointwise, rounded_to, same_as, to_float, to_same,
    to_same_float, to_same_inexact, to_same_number,
};
use pyrite_kernels::complex;

const ADDITIVE: &[&str] = &[
    "f32[3, 4], f32[3, 4]",
    "f32[3, 4], f32[4]",
    "f32[2, 3, 2]<[1, 4, 2], f32[3, 1]",
    "f64[3], 2",
    "bf16[3], f32[]",
    "i64[4], i32[4]",
    "i64[4], 2.5",
    "b8[3], b8[3]",
    "c64[2, 2], f64[2]",
    "f32[0, 3], f32[3]",
    "u8[3], i8[3]",
];
const SUBTRACTIVE: &[&str] = &[
    "f32[3, 4], f32[3, 4]",
    "f32[3, 4], f32[4], alpha=2",
    "f32[2, 3, 2]<[1, 4, 2], f32[3, 1]",
    "f64[3], 2",
    "i64[4], i32[4]",
    "i64[4], 2.5",
    "c64[2, 2], f64[2]",
    "f32[0, 3], f32[3]",
    "u8[3], i8[3]",
];
const WITH_NUMBER: &[&str] = &["f32[3, 4], 2.5", "f64[2, 3]<[1, 2], 2", "bf16[4], 3", "i64[4], 2", "i64[4], 1.5"];
const DIVISORS: &[&str] =
    &["f32[3, 4], f32[4]", "i64[4], i64[4]{1..9}", "i32[3], f32[3]", "bf16[3], 2", "u8[3], u8[3]{1..9}"];
const MODES: &[&str] = &[
    "f32[3, 4], f32[4], rounding_mode='floor'",
    "i64[4], i64[4]{1..9}, rounding_mode='floor'",
    "i64[4], i64[4]{-9..0}, rounding_mode='trunc'",
    "i64[4], 3, rounding_mode=None",
    "bf16[3], bf16[3], rounding_mode='trunc'",
];
const COMPARABLE: &[&str] =
    &["f32[3, 4], f32[4]", "f64[3], f64[]", "bf16[2], f32[2]", "i64[4], i64[4]", "b8[3], b8[3]"];
const FLOATS: &[&str] = &["f32[3, 4], f32[4]", "f64[3], f64[3]", "bf16[2], bf16[2]"];
const INTEGERS: &[&str] = &["i64[4], i64[4]", "i32[3, 4], i32[4]", "u8[3], u8[3]"];
const BOTH_IN_PLACE: &[&str] = &["f32[3, 4], f32[4]", "f64[2, 3]<[1, 2], f64[2, 3]"];
const NUMBER_IN_PLACE: &[&str] = &["f32[3, 4], 2", "f64[2, 3]<[1, 2], 3.0"];
const INTEGERS_IN_PLACE: &[&str] = &["i64[3, 4], i64[4]"];

/// The table.
pub const OPS: &[OpDef] = &[
    core_pointwise(
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "`self + alpha·other`.",
        to_sum,
        add,
        ADDITIVE,
    )
    .lower(to_loops::pointwise::add)
    .derivative(d::add),
    core_pointwise(
        "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        "`self + alpha·other`.",
        to_sum,
        add,
        &["f32[3, 4], 2.5", "i64[4], 2", "i64[4], 1.5, 2", "bf16[2], 1, alpha=3"],
    )
    .lower(to_loops::pointwise::add)
    .derivative(d::add),
    in_place(
        "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "aten.add.Tensor",
        &["f32[3, 4], f32[4]", "f64[2, 3]<[1, 2], i64[2, 3], alpha=2"],
    ),
    in_place(
        "aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
        "aten.add.Scalar",
        &["f32[3, 4], 2"],
    ),
    core_pointwise(
        "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "`self - alpha·other`.",
        to_difference,
        sub,
        SUBTRACTIVE,
    )
    .lower(to_loops::pointwise::sub)
    .derivative(d::sub),
    core_pointwise(
        "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        "`self - alpha·other`.",
        to_difference,
        sub,
        &["f32[3, 4], 2.5", "i64[4], 2", "i64[4], 1.5, 2", "bf16[2], 1, alpha=3"],
    )
    .lower(to_loops::pointwise::sub)
    .derivative(d::sub),
    in_place(
        "aten::sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "aten.sub.Tensor",
        &["f32[3, 4], f32[4]", "f64[2, 3]<[1, 2], i64[2, 3], alpha=2"],
    ),
    in_place(
        "aten::sub_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
        "aten.sub.Scalar",
        &["f32[3, 4], 2"],
    ),
    OpDef::kernel(
        "aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "`other - alpha·self`.",
        to_reversed_difference,
        rsub,
    )
    .derivative(d::rsub)
    .decompose(by::rsub)
    .samples(SUBTRACTIVE),
    plain_pointwise(
        "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        "`other - alpha·self`.",
        to_reversed_difference,
        rsub,
        &["f32[3, 4], 2.5", "i64[4], 2", "bf16[2], 1, 3"],
    )
    .derivative(d::rsub)
    .decompose(by::rsub),
    core_pointwise("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", "The product.", to_same, mul, ADDITIVE)
        .lower(to_loops::pointwise::mul)
        .derivative(d::mul),
    core_pointwise(
        "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor",
        "The product with a number.",
        to_same,
        mul,
        WITH_NUMBER,
    )
    .lower(to_loops::pointwise::mul)
    .derivative(d::mul),
    in_place("aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.mul.Tensor", BOTH_IN_PLACE),
    in_place("aten::mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.mul.Scalar", NUMBER_IN_PLACE),
    core_pointwise(
        "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
        "The quotient; integers become floats.",
        to_float,
        div,
        ADDITIVE,
    )
    .lower(to_loops::pointwise::div)
    .derivative(d::div),
    core_pointwise(
        "aten::div.Scalar(Tensor self, Scalar other) -> Tensor",
        "The quotient by a number; integers become floats.",
        to_float,
        div,
        WITH_NUMBER,
    )
    .lower(to_loops::pointwise::div)
    .derivative(d::div),
    core_pointwise(
        "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        "The quotient, rounded down (`floor`), toward zero (`trunc`) or not at all.",
        to_quotient,
        div_mode,
        MODES,
    )
    .lower(to_loops::pointwise::div_mode)
    .derivative(d::div_mode),
    core_pointwise(
        "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
        "The quotient by a number, rounded down (`floor`), toward zero (`trunc`) or not at all.",
        to_quotient,
        div_mode,
        &["f32[3, 4], 2, rounding_mode='floor'", "i64[3], -3, rounding_mode='trunc'", "i64[3], 3, rounding_mode=None"],
    )
    .lower(to_loops::pointwise::div_mode)
    .derivative(d::div_mode),
    in_place("aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.div.Tensor", BOTH_IN_PLACE),
    in_place("aten::div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.div.Scalar", NUMBER_IN_PLACE),
    in_place(
        "aten::div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
        "aten.div.Tensor_mode",
        &["f32[3, 4], f32[4], rounding_mode='floor'"],
    ),
    in_place(
        "aten::div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)",
        "aten.div.Scalar_mode",
        &["f32[3, 4], 2, rounding_mode='trunc'"],
    ),
    OpDef::kernel(
        "aten::floor_divide(Tensor self, Tensor other) -> Tensor",
        "The quotient rounded down.",
        to_same_number,
        floor_divide,
    )
    .decompose(by::floor_divide)
    .samples(DIVISORS),
    OpDef::kernel(
        "aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
        "The quotient rounded down.",
        to_same_number,
        floor_divide,
    )
    .decompose(by::floor_divide)
    .samples(WITH_NUMBER),
    in_place(
        "aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.floor_divide.default",
        BOTH_IN_PLACE,
    ),
    in_place(
        "aten::floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.floor_divide.Scalar",
        NUMBER_IN_PLACE,
    ),
    core_pointwise(
        "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor",
        "The rest of a division rounded down; it has the sign of the divisor.",
        to_same_number,
        remainder,
        DIVISORS,
    )
    .lower(to_loops::pointwise::remainder)
    .derivative(d::remainder),
    core_pointwise(
        "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor",
        "The rest of a division rounded down; it has the sign of the divisor.",
        to_same_number,
        remainder,
        WITH_NUMBER,
    )
    .lower(to_loops::pointwise::remainder)
    .derivative(d::remainder),
    plain_pointwise(
        "aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        "The rest of a division rounded down; it has the sign of the divisor.",
        to_same_number,
        remainder,
        &["7.5, f32[3, 4]", "7, i64[4]{1..9}"],
    )
    .derivative(d::remainder)
    .decompose(by::remainder),
    in_place(
        "aten::remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.remainder.Tensor",
        BOTH_IN_PLACE,
    ),
    in_place(
        "aten::remainder_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.remainder.Scalar",
        NUMBER_IN_PLACE,
    ),
    core_pointwise(
        "aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor",
        "The rest of a division rounded toward zero; it has the sign of the dividend.",
        to_same_number,
        fmod,
        DIVISORS,
    )
    .lower(to_loops::pointwise::fmod)
    .derivative(d::fmod),
    core_pointwise(
        "aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor",
        "The rest of a division rounded toward zero; it has the sign of the dividend.",
        to_same_number,
        fmod,
        WITH_NUMBER,
    )
    .lower(to_loops::pointwise::fmod)
    .derivative(d::fmod),
    in_place("aten::fmod_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.fmod.Tensor", BOTH_IN_PLACE),
    in_place("aten::fmod_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.fmod.Scalar", NUMBER_IN_PLACE),
    core_pointwise(
        "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
        "The base raised to the exponent.",
        to_same_number,
        pow,
        &[
            "f32[3, 4]{0..4}, f32[4]",
            "i64[4], i64[4]",
            "f64[3], 2.0",
            "c64[2], c64[2]",
            "bf16[3]{0..2}, f32[]",
            "i32[3], f32[3]",
        ],
    )
    .lower(to_loops::pointwise::pow)
    .derivative(d::pow),
    core_pointwise(
        "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        "The base raised to the exponent.",
        to_same_number,
        pow_number,
        &[
            "f32[3, 4], 2",
            "f32[4]{0..4}, 0.5",
            "i64[4], 3",
            "f64[3]{0..4}, -0.5",
            "c64[2], 2.5",
            "bf16[3], 3",
            "b8[3], 2",
            "i64[3], 0.5",
        ],
    )
    .lower(to_loops::pointwise::pow_scalar)
    .derivative(d::pow),
    core_pointwise(
        "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
        "The base raised to the exponent.",
        to_power_of_number,
        pow,
        &["2, f32[3, 4]", "2.5, i64[4]", "2, i64[4]", "1, c64[2]"],
    )
    .lower(to_loops::pointwise::pow)
    .derivative(d::pow),
    in_place(
        "aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
        "aten.pow.Tensor_Scalar",
        NUMBER_IN_PLACE,
    ),
    in_place(
        "aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
        "aten.pow.Tensor_Tensor",
        &["f32[3, 4]{0..4}, f32[4]"],
    ),
    plain_pointwise(
        "aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
        "The base raised to the exponent, in double precision.",
        to_double,
        pow,
        &["f32[3, 4]{0..4}, f32[4]", "i64[4], i64[4]"],
    )
    .derivative(d::pow)
    .decompose(by::float_power),
    plain_pointwise(
        "aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        "The base raised to the exponent, in double precision.",
        to_double,
        pow,
        &["f32[3, 4], 2", "c64[3], 2"],
    )
    .derivative(d::pow)
    .decompose(by::float_power),
    plain_pointwise(
        "aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
        "The base raised to the exponent, in double precision.",
        to_double_power_of_number,
        pow,
        &["2, f32[3, 4]"],
    )
    .derivative(d::pow)
    .decompose(by::float_power),
    core_pointwise(
        "aten::maximum(Tensor self, Tensor other) -> Tensor",
        "The larger of two; NaN if either is.",
        to_same,
        maximum,
        COMPARABLE,
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::maximum)
    .derivative(d::maximum),
    core_pointwise(
        "aten::minimum(Tensor self, Tensor other) -> Tensor",
        "The smaller of two; NaN if either is.",
        to_same,
        minimum,
        COMPARABLE,
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::minimum)
    .derivative(d::minimum),
    plain_pointwise(
        "aten::max.other(Tensor self, Tensor other) -> Tensor",
        "The larger of two; NaN if either is.",
        to_same,
        maximum,
        COMPARABLE,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::maximum)
    .decompose(by::maximum),
    plain_pointwise(
        "aten::min.other(Tensor self, Tensor other) -> Tensor",
        "The smaller of two; NaN if either is.",
        to_same,
        minimum,
        COMPARABLE,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::minimum)
    .decompose(by::minimum),
    plain_pointwise(
        "aten::fmax(Tensor self, Tensor other) -> Tensor",
        "The larger of two; a number rather than NaN.",
        to_same,
        |c| ordered(c, f64::max, std::cmp::Ord::max),
        COMPARABLE,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::fmax)
    .decompose(by::fmax),
    plain_pointwise(
        "aten::fmin(Tensor self, Tensor other) -> Tensor",
        "The smaller of two; a number rather than NaN.",
        to_same,
        |c| ordered(c, f64::min, std::cmp::Ord::min),
        COMPARABLE,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::fmin)
    .decompose(by::fmin),
    core_pointwise(
        "aten::atan2(Tensor self, Tensor other) -> Tensor",
        "The angle of the point (`other`, `self`).",
        to_float,
        |c| real(c, f64::atan2),
        COMPARABLE,
    )
    .free(Freedom::HalfTurn)
    .lower(to_loops::pointwise::atan2)
    .derivative(d::atan2),
    in_place(
        "aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten.atan2.default",
        &["f32[3], f32[3], out=f32[3]"],
    )
    .tags(&[Tag::Core, Tag::Pointwise]),
    in_place("aten::atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.atan2.default", BOTH_IN_PLACE),
    plain_pointwise(
        "aten::hypot(Tensor self, Tensor other) -> Tensor",
        "The length of the hypotenuse.",
        to_same_float,
        |c| real(c, f64::hypot),
        FLOATS,
    )
    .derivative(d::hypot)
    .decompose(by::hypot),
    in_place("aten::hypot_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.hypot.default", BOTH_IN_PLACE),
    plain_pointwise(
        "aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor",
        "The first with the sign of the second.",
        to_float,
        |c| real(c, f64::copysign),
        COMPARABLE,
    )
    .derivative(d::copysign)
    .decompose(by::copysign),
    plain_pointwise(
        "aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor",
        "A tensor with the sign of a number.",
        to_float,
        |c| real(c, f64::copysign),
        WITH_NUMBER,
    )
    .derivative(d::copysign)
    .decompose(by::copysign),
    in_place(
        "aten::copysign_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.copysign.Tensor",
        BOTH_IN_PLACE,
    ),
    in_place(
        "aten::copysign_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.copysign.Scalar",
        NUMBER_IN_PLACE,
    ),
    plain_pointwise(
        "aten::nextafter(Tensor self, Tensor other) -> Tensor",
        "The number of its type next to the first, toward the second.",
        to_same,
        nextafter,
        FLOATS,
    )
    .derivative(d::nextafter),
    in_place("aten::nextafter_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.nextafter.default", BOTH_IN_PLACE),
    plain_pointwise(
        "aten::heaviside(Tensor self, Tensor values) -> Tensor",
        "0 below zero, 1 above, and the second operand at zero.",
        to_step,
        heaviside,
        &["f32[3, 4], f32[4]", "i64[4], i64[4]", "b8[3], b8[3]"],
    )
    .decompose(by::heaviside),
    in_place("aten::heaviside_(Tensor(a!) self, Tensor values) -> Tensor(a!)", "aten.heaviside.default", BOTH_IN_PLACE),
    OpDef::composite("aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor", "`self·2^other`.", ldexp)
        .tags(&[Tag::Pointwise])
        .samples(&["f32[3, 4], i64[4]", "i64[3], i64[3]", "f64[2], f32[2]", "bf16[5], i32[5]"]),
    in_place("aten::ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.ldexp.Tensor", BOTH_IN_PLACE),
    plain_pointwise(
        "aten::gcd(Tensor self, Tensor other) -> Tensor",
        "The greatest common divisor.",
        to_same_number,
        |c| {
            let least = c.out_meta(0)?.dtype.integers().map_or(i64::MIN, |(least, _)| least);
            integers(c, move |a, b| gcd(a, b, least))
        },
        INTEGERS,
    )
    .no_derivative("integers"),
    in_place("aten::gcd_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.gcd.default", INTEGERS_IN_PLACE),
    plain_pointwise(
        "aten::lcm(Tensor self, Tensor other) -> Tensor",
        "The least common multiple.",
        to_same_number,
        |c| integers(c, lcm),
        INTEGERS,
    )
    .no_derivative("integers"),
    in_place("aten::lcm_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.lcm.default", INTEGERS_IN_PLACE),
    plain_pointwise(
        "aten::logaddexp(Tensor self, Tensor other) -> Tensor",
        "The logarithm of the sum of the exponentials.",
        to_same_inexact,
        logaddexp,
        &["f32[3, 4], f32[4]", "f64[3], f64[3]", "bf16[2], bf16[2]", "c64[2], c64[2]"],
    )
    .derivative(d::logaddexp)
    .decompose(by::logaddexp),
    plain_pointwise(
        "aten::logaddexp2(Tensor self, Tensor other) -> Tensor",
        "As `logaddexp`, for base two.",
        to_same_float,
        |c| real(c, logaddexp2),
        FLOATS,
    )
    .derivative(d::logaddexp2)
    .decompose(by::logaddexp2),
    plain_pointwise(
        "aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
        "`x·ln y`, zero where x is.",
        to_real_float,
        |c| times_log(c, f64::ln),
        COMPARABLE,
    )
    .derivative(d::xlogy)
    .decompose(by::xlogy),
    plain_pointwise(
        "aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
        "`x·ln y`, zero where x is.",
        to_real_float,
        |c| times_log(c, f64::ln),
        WITH_NUMBER,
    )
    .derivative(d::xlogy)
    .decompose(by::xlogy),
    plain_pointwise(
        "aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
        "`x·ln y`, zero where x is.",
        to_real_float,
        |c| times_log(c, f64::ln),
        &["2, f32[3, 4]", "2.5, i64[4]", "2.5, f64[4]{0.2..3}"],
    )
    .derivative(d::xlogy)
    .decompose(by::xlogy),
    plain_pointwise(
        "aten::special_xlog1py(Tensor self, Tensor other) -> Tensor",
        "`x·ln(1 + y)`, zero where x is.",
        to_float,
        |c| times_log(c, f64::ln_1p),
        COMPARABLE,
    )
    .derivative(d::xlog1py)
    .decompose(by::xlog1py),
    plain_pointwise(
        "aten::special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
        "`x·ln(1 + y)`, zero where x is.",
        to_float,
        |c| times_log(c, f64::ln_1p),
        WITH_NUMBER,
    )
    .derivative(d::xlog1py)
    .decompose(by::xlog1py),
    plain_pointwise(
        "aten::special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
        "`x·ln(1 + y)`, zero where x is.",
        to_float,
        |c| times_log(c, f64::ln_1p),
        &["2, f32[3, 4]", "2.5, i64[4]", "2.5, f64[4]{0.2..3}"],
    )
    .derivative(d::xlog1py)
    .decompose(by::xlog1py),
    in_place("aten::xlogy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.xlogy.Tensor", BOTH_IN_PLACE),
    in_place(
        "aten::xlogy_.Scalar_Other(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.xlogy.Scalar_Other",
        NUMBER_IN_PLACE,
    ),
    OpDef::kernel(
        "aten::complex(Tensor real, Tensor imag) -> Tensor",
        "Complex numbers from their real and imaginary parts.",
        to_complex,
        complex_parts,
    )
    .derivative(d::complex)
    .samples(&["f32[3, 4], f32[4]", "f64[2], f64[2]", "f32[0], f32[0]"]),
    OpDef::kernel(
        "aten::polar(Tensor abs, Tensor angle) -> Tensor",
        "Complex numbers from their lengths and angles.",
        to_complex,
        polar,
    )
    .derivative(d::polar)
    .decompose(by::polar)
    .samples(&["f32[3, 4]{0.1..2}, f32[4]", "f64[2]{0.1..2}, f64[2]"]),
];

/// The two operands.
fn both(call: &Call<'_>) -> Result<[Tensor; 2], OpError> {
    Ok([operand(call, 0)?, operand(call, 1)?])
}

/// A function of real numbers, in double precision.
fn real(call: &Call<'_>, f: fn(f64, f64) -> f64) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::as_result(call, [&a, &b])?.rounded().f64(|[a, b]| f(a, b)).finish()
}

/// A function of integers.
fn integers(call: &Call<'_>, f: impl Fn(i64, i64) -> i64 + Sync) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    let dtype = call.out_meta(0)?.dtype;
    if !dtype.is_integral() {
        invalid!("{} is defined for integers, not for {dtype}", call.args.schema.name);
    }
    Pointwise::as_result(call, [&a, &b])?.i64(|[a, b]| f(a, b)).finish()
}

/// A function of ordered numbers, bools among them.
fn ordered(call: &Call<'_>, f: fn(f64, f64) -> f64, g: fn(i64, i64) -> i64) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::as_result(call, [&a, &b])?.rounded().f64(|[a, b]| f(a, b)).i64(|[a, b]| g(a, b)).finish()
}

fn to_sum(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    let dtype = operand_dtype(&operands);
    let refused = match args.value(2) {
        Value::Bool(_) => dtype != DType::Bool,
        Value::Float(_) => dtype.category() < Category::Float,
        Value::Complex(_) => dtype.category() < Category::Complex,
        _ => false,
    };
    if refused {
        invalid!(
            "{}: alpha is {}, which does not fit operands of type {dtype}",
            args.schema.name,
            args.value(2).kind()
        );
    }
    Ok(same_as(&operands, dtype)?.into())
}

fn to_difference(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let bools = operands(args).iter().filter(|m| m.dtype == DType::Bool).count();
    let refused = if matches!(args.value(1), Value::Tensor(_)) { bools > 0 } else { bools > 1 };
    if refused {
        invalid!("bools cannot be subtracted; use logical_xor or bitwise_not");
    }
    to_sum(args)
}

/// The second operand comes first.
fn to_reversed_difference(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    to_difference(args)?;
    let reversed: Vec<Meta> = operands(args).into_iter().rev().collect();
    Ok(same_as(&reversed, operand_dtype(&reversed))?.into())
}

fn to_double(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    let dtype = if operand_dtype(&operands).is_complex() { DType::C128 } else { DType::F64 };
    Ok(same_as(&operands, dtype)?.into())
}

/// PyTorch lays a power of a number out contiguously, however its exponent lies.
fn to_power_of_number(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    laid_out_anew(to_same_number(args)?)
}

fn to_double_power_of_number(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    laid_out_anew(to_double(args)?)
}

fn laid_out_anew(result: Value<Meta>) -> Result<Value<Meta>, OpError> {
    let Value::Tensor(meta) = result else { return Ok(result) };
    Ok(meta.fresh(&meta.shape, meta.dtype).into())
}

fn to_step(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, values) = (args.tensor(0)?, args.tensor(1)?);
    if x.dtype != values.dtype || x.dtype.is_complex() {
        invalid!("heaviside wants two real tensors of one type, not {} and {}", x.dtype, values.dtype);
    }
    to_same(args)
}

/// As `to_float`, for operators without complex numbers.
fn to_real_float(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    if operand_dtype(&operands(args)).is_complex() {
        invalid!("{} is not defined for complex numbers", args.schema.name);
    }
    to_float(args)
}

fn to_complex(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    if a.dtype != b.dtype || !matches!(a.dtype, DType::F32 | DType::F64) {
        invalid!("{} wants two f32 or two f64 tensors, not {} and {}", args.schema.name, a.dtype, b.dtype);
    }
    Ok(same_as(&operands(args), a.dtype.to_complex())?.into())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    None,
    Floor,
    Trunc,
}

fn rounding(mode: Option<&str>) -> Result<Rounding, OpError> {
    match mode {
        None => Ok(Rounding::None),
        Some("floor") => Ok(Rounding::Floor),
        Some("trunc") => Ok(Rounding::Trunc),
        Some(other) => invalid!("rounding_mode must be None, 'floor' or 'trunc', not '{other}'"),
    }
}

fn to_quotient(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    match rounding(args.opt_str(2)?)? {
        Rounding::None => to_float(args),
        Rounding::Floor | Rounding::Trunc => to_same_number(args),
    }
}

/// `a + alpha·b`.
fn weighted_sum(call: &Call<'_>, a: &Tensor, b: &Tensor, alpha: Scalar) -> Result<Value<Tensor>, OpError> {
    let dtype = call.out_meta(0)?.dtype;
    let real = rounded_to(dtype, alpha.to_f64());
    let alpha = if dtype == DType::Bool { Scalar::Int(alpha.to_bool().into()) } else { alpha };
    let (single, double, integer, complex) = (real as f32, real, alpha.to_i64(), alpha.to_c128());
    brought(call, [a, b])?
        .f32(|[a, b]| a + single * b)
        .f64(|[a, b]| a + double * b)
        .i64(|[a, b]| a.wrapping_add(integer.wrapping_mul(b)))
        .c128(|[a, b]| a + complex * b)
        .finish()
}

fn negated(alpha: Scalar) -> Scalar {
    match alpha {
        Scalar::Float(v) => Scalar::Float(-v),
        Scalar::Complex(v) => Scalar::Complex(-v),
        other => Scalar::Int(other.to_i64().wrapping_neg()),
    }
}

fn is_one(alpha: Scalar) -> bool {
    alpha.to_c128() == Complex64::ONE
}

fn add(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    let alpha = call.args.scalar(2)?;
    if !is_one(alpha) {
        return weighted_sum(call, &a, &b, alpha);
    }
    brought(call, [&a, &b])?
        .f32(|[a, b]| a + b)
        .f64(|[a, b]| a + b)
        .i64(|[a, b]| a.wrapping_add(b))
        .c128(|[a, b]| a + Complex64::ONE * b)
        .finish()
}

/// A computation in the result's type; where that is a half precision, operands are rounded to it first.
fn brought(call: &Call<'_>, operands: [&Tensor; 2]) -> Result<Pointwise<2>, OpError> {
    let pointwise = Pointwise::as_result(call, operands)?;
    let is_half = matches!(call.out_meta(0)?.dtype, DType::F16 | DType::BF16);
    Ok(if is_half { pointwise.rounded() } else { pointwise })
}

fn difference(call: &Call<'_>, a: &Tensor, b: &Tensor) -> Result<Value<Tensor>, OpError> {
    let alpha = call.args.scalar(2)?;
    if !is_one(alpha) {
        return weighted_sum(call, a, b, negated(alpha));
    }
    brought(call, [a, b])?
        .f32(|[a, b]| a - b)
        .f64(|[a, b]| a - b)
        .i64(|[a, b]| a.wrapping_sub(b))
        .c128(|[a, b]| a + Complex64::new(-1.0, 0.0) * b)
        .finish()
}

fn sub(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    difference(call, &a, &b)
}

fn rsub(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    difference(call, &b, &a)
}

fn mul(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::as_result(call, [&a, &b])?
        .f32(|[a, b]| a * b)
        .f64(|[a, b]| a * b)
        .i64(|[a, b]| a.wrapping_mul(b))
        .c128(|[a, b]| a * b)
        .finish()
}

fn div(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::as_result(call, [&a, &b])?
        .f32(|[a, b]| a / b)
        .f64(|[a, b]| a / b)
        .c128(|[a, b]| complex::quotient(a, b))
        .finish()
}

/// An error when integers are divided by zero, or by a number that is zero in their type.
fn expect_divisible(call: &Call<'_>, divisor: &Tensor) -> Result<(), OpError> {
    let out = call.out_meta(0)?;
    if out.dtype.is_integral() && !out.numel().is_eq(0) && divisor.cast(out.dtype).to_i64s().contains(&0) {
        invalid!("{}: an integer is divided by zero", call.args.schema.name);
    }
    Ok(())
}

fn div_mode(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    match rounding(call.args.opt_str(2)?)? {
        Rounding::None => div(call),
        Rounding::Floor => floor_divide(call),
        Rounding::Trunc => {
            let [a, b] = both(call)?;
            expect_divisible(call, &b)?;
            let half = quotient_type(call, &b)?;
            divided(call, &a, &b, half)?
                .f32(|[a, b]| (rounded_to(half, f64::from(a / b)) as f32).trunc())
                .f64(|[a, b]| (a / b).trunc())
                .i64(|[a, b]| a.wrapping_div(b))
                .finish()
        }
    }
}

fn floor_divide(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    expect_divisible(call, &b)?;
    let dtype = quotient_type(call, &b)?;
    divided(call, &a, &b, dtype)?
        .f64(|[a, b]| floored(a, b, |v| if dtype == DType::F64 { v } else { rounded_to(dtype, f64::from(v as f32)) }))
        .i64(|[a, b]| {
            let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
            if rest != 0 && (rest < 0) != (b < 0) { quotient - 1 } else { quotient }
        })
        .finish()
}

/// The type in which PyTorch keeps the steps of a rounded division: tensors of half precision are divided in their own type, by a
/// number in single precision.
fn quotient_type(call: &Call<'_>, divisor: &Tensor) -> Result<DType, OpError> {
    let dtype = call.out_meta(0)?.dtype;
    Ok(if divisor.numel() == 1 && matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype })
}

/// A rounded division whose steps are of a type: the divisor is an element of it, the dividend one of the result.
fn divided(call: &Call<'_>, a: &Tensor, b: &Tensor, steps: DType) -> Result<Pointwise<2>, OpError> {
    let dtype = call.out_meta(0)?.dtype;
    let pointwise = if dtype == steps {
        Pointwise::as_result(call, [a, b])?.rounded()
    } else {
        Pointwise::as_result(call, [&a.cast(dtype), &b.cast(steps)])?
    };
    Ok(pointwise)
}

/// The quotient rounded down, by way of the exact remainder: dividing first could round up to the next integer. Each step is
/// rounded to the type of the operands.
fn floored(a: f64, b: f64, round: impl Fn(f64) -> f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    let rest = a % b;
    let mut quotient = round(round(a - rest) / b);
    if rest != 0.0 && (b < 0.0) != (rest < 0.0) {
        quotient = round(quotient - 1.0);
    }
    if quotient == 0.0 {
        return 0f64.copysign(a / b);
    }
    let floor = quotient.floor();
    if round(quotient - floor) > 0.5 { round(floor + 1.0) } else { floor }
}

fn remainder(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    expect_divisible(call, &b)?;
    Pointwise::as_result(call, [&a, &b])?
        .rounded()
        .f64(|[a, b]| {
            let rest = a % b;
            if rest != 0.0 && (b < 0.0) != (rest < 0.0) { rest + b } else { rest }
        })
        .i64(|[a, b]| {
            let rest = a.wrapping_rem(b);
            if rest != 0 && (b < 0) != (rest < 0) { rest + b } else { rest }
        })
        .finish()
}

fn fmod(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    expect_divisible(call, &b)?;
    Pointwise::as_result(call, [&a, &b])?.rounded().f64(|[a, b]| a % b).i64(|[a, b]| a.wrapping_rem(b)).finish()
}

/// An integer power that wraps; what is below one is cut to zero.
fn integer_power(base: i64, exponent: i64) -> i64 {
    if exponent >= 0 {
        let (mut result, mut square, mut rest) = (1i64, base, exponent);
        while rest > 0 {
            if rest & 1 == 1 {
                result = result.wrapping_mul(square);
            }
            square = square.wrapping_mul(square);
            rest >>= 1;
        }
        return result;
    }
    match base {
        1 => 1,
        -1 if exponent % 2 == 0 => 1,
        -1 => -1,
        _ => 0,
    }
}

fn pow(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    if call.args.value(0).as_scalar().is_some_and(|base| base.to_c128() == Complex64::ONE) {
        return Pointwise::as_result(call, [&b])?.f64(|_| 1.0).i64(|_| 1).c128(|_| Complex64::ONE).finish();
    }
    Pointwise::as_result(call, [&a, &b])?
        .f64(|[a, b]| a.powf(b))
        .i64(|[a, b]| integer_power(a, b))
        .c128(|[a, b]| complex::pow(a, b))
        .finish()
}

/// Powers that are roots and products are computed as such.
fn pow_number(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let exponent = call.args.scalar(1)?;
    let integral = call.out_meta(0)?.dtype.is_integral();
    if integral && exponent.to_i64() < 0 {
        invalid!("integers cannot be raised to the negative power {exponent}");
    }
    let map = Pointwise::as_result(call, [call.args.tensor(0)?])?;
    let dtype = call.out_meta(0)?.dtype;
    let (real, complex) = (rounded_to(dtype, exponent.to_f64()), exponent.to_c128());
    // PyTorch multiplies elements of `bf16`, and computes `f16` in single precision.
    let square = |x: f32| if dtype == DType::BF16 { BF16::from_f32(x * x).to_f32() } else { x * x };
    if complex == Complex64::ONE {
        map.f64(|[x]| x).i64(|[x]| x).c128(|[z]| z)
    } else if complex == Complex64::new(2.0, 0.0) {
        map.f32(|[x]| x * x).f64(|[x]| x * x).i64(|[x]| x.wrapping_mul(x)).c128(|[z]| z * z)
    } else if complex == Complex64::new(3.0, 0.0) {
        map.f32(|[x]| square(x) * x)
            .f64(|[x]| x * x * x)
            .i64(|[x]| x.wrapping_mul(x).wrapping_mul(x))
            .c128(|[z]| z * z * z)
    } else if complex == Complex64::new(0.5, 0.0) {
        map.f32(|[x]| x.sqrt()).f64(|[x]| x.sqrt()).c128(|[z]| complex::sqrt(z))
    } else if complex == Complex64::new(-0.5, 0.0) {
        map.f32(|[x]| x.sqrt().recip())
            .f64(|[x]| x.sqrt().recip())
            .c128(|[z]| complex::quotient(Complex64::ONE, complex::sqrt(z)))
    } else if complex == Complex64::new(-1.0, 0.0) && !integral {
        map.f32(|[x]| x.recip()).f64(|[x]| x.recip()).c128(|[z]| complex::quotient(Complex64::ONE, z))
    } else if complex == Complex64::new(-2.0, 0.0) && !integral {
        map.f32(|[x]| square(x).recip()).f64(|[x]| (x * x).recip()).c128(|[z]| complex::quotient(Complex64::ONE, z * z))
    } else if complex == Complex64::ZERO {
        map.f64(|_| 1.0).i64(|_| 1).c128(|_| Complex64::ONE)
    } else {
        let integer = exponent.to_i64();
        map.f64(|[x]| x.powf(real)).i64(|[x]| integer_power(x, integer)).c128(|[z]| complex::pow(z, complex))
    }
    .finish()
}

fn maximum(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::as_result(call, [&a, &b])?
        .rounded()
        .f32(|[a, b]| if a > b || a.is_nan() { a } else { b })
        .f64(|[a, b]| if a > b || a.is_nan() { a } else { b })
        .i64(|[a, b]| a.max(b))
        .finish()
}

fn minimum(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::as_result(call, [&a, &b])?
        .rounded()
        .f32(|[a, b]| if a < b || a.is_nan() { a } else { b })
        .f64(|[a, b]| if a < b || a.is_nan() { a } else { b })
        .i64(|[a, b]| a.min(b))
        .finish()
}

/// The neighbour of `x` toward `toward`, on the numbers that `bits` and `from_bits` count in order from zero.
fn neighbour(x: f64, toward: f64, bits: impl Fn(f64) -> u64, from_bits: impl Fn(u64) -> f64) -> f64 {
    if x.is_nan() || toward.is_nan() {
        return f64::NAN;
    }
    if x == toward {
        return toward;
    }
    if x == 0.0 {
        return from_bits(1).copysign(toward);
    }
    let magnitude = bits(x.abs());
    from_bits(if (toward > x) == (x > 0.0) { magnitude + 1 } else { magnitude - 1 }).copysign(x)
}

fn nextafter(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    let map = Pointwise::as_result(call, [&a, &b])?.rounded();
    match call.out_meta(0)?.dtype {
        DType::F16 => map.f64(|[a, b]| {
            neighbour(a, b, |x| F16::from_f32(x as f32).to_bits().into(), |n| F16::from_bits(n as u16).to_f64())
        }),
        DType::BF16 => map.f64(|[a, b]| {
            neighbour(a, b, |x| BF16::from_f32(x as f32).to_bits().into(), |n| BF16::from_bits(n as u16).to_f64())
        }),
        DType::F32 => {
            map.f64(|[a, b]| neighbour(a, b, |x| (x as f32).to_bits().into(), |n| f32::from_bits(n as u32).into()))
        }
        _ => map.f64(|[a, b]| neighbour(a, b, f64::to_bits, f64::from_bits)),
    }
    .finish()
}

fn heaviside(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::as_result(call, [&a, &b])?
        .f64(|[x, at_zero]| if x == 0.0 { at_zero } else { f64::from(u8::from(x > 0.0)) })
        .i64(|[x, at_zero]| if x == 0 { at_zero } else { i64::from(x > 0) })
        .finish()
}

fn ldexp(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (x, exponent) = (*a.tensor(0)?, *a.tensor(1)?);
    let mut power = e.one("aten.pow.Scalar", args![2.0, exponent])?;
    // An integer exponent does not widen the result.
    if e.dtype(x).is_inexact() && e.dtype(exponent).is_integral() {
        power = e.one("aten._to_copy.default", args![power, e.dtype(x)])?;
    }
    e.call("aten.mul.Tensor", args![x, power])
}

/// By Euclid, in the order in which PyTorch does it: the least integer of a type has no absolute value there, and the sign
/// of the result depends on the order.
fn gcd(a: i64, b: i64, least: i64) -> i64 {
    let absolute = |x: i64| if x == least { x } else { x.wrapping_abs() };
    let (mut a, mut b) = (absolute(a), absolute(b));
    while a != 0 {
        (a, b) = (b.wrapping_rem(a), a);
    }
    b
}

fn lcm(a: i64, b: i64) -> i64 {
    match gcd(a, b, i64::MIN) {
        0 => 0,
        divisor => a.wrapping_div(divisor).wrapping_mul(b).wrapping_abs(),
    }
}

fn logaddexp(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::as_result(call, [&a, &b])?
        .f64(|[a, b]| {
            if a.is_infinite() && a == b {
                return a;
            }
            a.max(b) + (-(a - b).abs()).exp().ln_1p()
        })
        .c128(|[a, b]| {
            let (large, small) = if a.re >= b.re { (a, b) } else { (b, a) };
            if large.re == f64::NEG_INFINITY { large } else { large + complex::ln_1p((small - large).exp()) }
        })
        .finish()
}

fn logaddexp2(a: f64, b: f64) -> f64 {
    if a.is_infinite() && a == b {
        return a;
    }
    a.max(b) + (-(a - b).abs()).exp2().ln_1p() * std::f64::consts::LOG2_E
}

/// `x·log(y)`, zero where `x` is, and NaN where `y` is. The logarithm is an element of the result's type, as in PyTorch.
fn times_log(call: &Call<'_>, log: fn(f64) -> f64) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    let dtype = call.out_meta(0)?.dtype;
    let f = |x: f64, y: f64| match x {
        _ if y.is_nan() => y,
        0.0 => 0.0,
        _ => x * rounded_to(dtype, log(y)),
    };
    Pointwise::as_result(call, [&a, &b])?.rounded().f64(|[a, b]| f(a, b)).finish()
}

fn complex_parts(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::over(call, [&a, &b], a.dtype())?.f64_to_c128(|[re, im]| Complex64::new(re, im)).finish()
}

fn polar(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let [a, b] = both(call)?;
    Pointwise::over(call, [&a, &b], a.dtype())?
        .f64_to_c128(|[length, angle]| Complex64::from_polar(length, angle))
        .finish()
}
