//! Comparisons and logic.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Tag, Value, invalid};
use pyrite_tensor::{Complex64, DType, Tensor};

use crate::decompositions::pointwise as by;
use crate::kernels::{Pointwise, common_dtype, operand};
use crate::lowerings as to_loops;
use crate::rules::{compare, core_pointwise, in_place, operand_dtype, operands, plain_pointwise, same_as};

const COMPARED: &[&str] = &[
    "f32[3, 4], f32[4]",
    "f32[2, 3]<[1, 2], f64[]",
    "bf16[4], 0.1",
    "i64[4], i32[4]",
    "b8[3], b8[3]",
    "u8[3], -1",
    "f32[0], f32[1]",
];
const EQUATED: &[&str] =
    &["f32[3, 4], f32[4]", "bf16[4], f32[4]", "i64[4], i32[4]", "b8[3], b8[3]", "c64[3], c64[3]", "f32[0], f32[1]"];
const WITH_NUMBER: &[&str] = &["f32[3, 4], 0", "i64[4], 2.5", "bf16[2, 3]<[1, 2], 0.1", "b8[3], 1"];
const BOTH_IN_PLACE: &[&str] = &["f32[3, 4], f32[4]", "i64[3], i64[3]", "b8[3], b8[3]"];
const NUMBER_IN_PLACE: &[&str] = &["f32[3, 4], 0", "i64[3], 2"];
const BITS: &[&str] = &["i64[3, 4], i64[4]", "b8[3], b8[3]", "u8[3], i8[3]", "i32[4], 3", "b8[2], i64[2]"];
const BITS_NUMBER: &[&str] = &["i64[4], 3", "u8[3], 1"];
const BITS_IN_PLACE: &[&str] = &["i64[3, 4], i64[4]", "b8[3], b8[3]"];
const SHIFTED: &[&str] = &["i64[4], i64[4]{-2..70}", "i32[3, 4], i32[4]{0..40}", "u8[3], u8[3]"];
const SHIFTED_BY: &[&str] = &["i64[4], 2", "u8[3], 9"];

/// The table.
pub const OPS: &[OpDef] = &[
    core_pointwise(
        "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor",
        "Whether elements are equal.",
        compare,
        eq,
        EQUATED,
    )
    .every_type()
    .lower(to_loops::pointwise::eq)
    .no_derivative("bools"),
    core_pointwise(
        "aten::eq.Scalar(Tensor self, Scalar other) -> Tensor",
        "Whether elements are equal.",
        compare,
        eq,
        WITH_NUMBER,
    )
    .every_type()
    .lower(to_loops::pointwise::eq)
    .no_derivative("bools"),
    in_place("aten::eq_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.eq.Tensor", BOTH_IN_PLACE),
    in_place("aten::eq_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.eq.Scalar", NUMBER_IN_PLACE),
    core_pointwise(
        "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor",
        "Whether elements differ.",
        compare,
        ne,
        EQUATED,
    )
    .every_type()
    .lower(to_loops::pointwise::ne)
    .no_derivative("bools"),
    core_pointwise(
        "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor",
        "Whether elements differ.",
        compare,
        ne,
        WITH_NUMBER,
    )
    .every_type()
    .lower(to_loops::pointwise::ne)
    .no_derivative("bools"),
    in_place("aten::ne_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.ne.Tensor", BOTH_IN_PLACE),
    in_place("aten::ne_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.ne.Scalar", NUMBER_IN_PLACE),
    core_pointwise(
        "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor",
        "Whether the first is less.",
        compare,
        |c| ordered(c, |a, b| a < b, |a, b| a < b),
        COMPARED,
    )
    .lower(to_loops::pointwise::lt)
    .no_derivative("bools"),
    core_pointwise(
        "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor",
        "Whether the first is less.",
        compare,
        |c| ordered(c, |a, b| a < b, |a, b| a < b),
        WITH_NUMBER,
    )
    .lower(to_loops::pointwise::lt)
    .no_derivative("bools"),
    in_place("aten::lt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.lt.Tensor", BOTH_IN_PLACE),
    in_place("aten::lt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.lt.Scalar", NUMBER_IN_PLACE),
    core_pointwise(
        "aten::le.Tensor(Tensor self, Tensor other) -> Tensor",
        "Whether the first is at most the second.",
        compare,
        |c| ordered(c, |a, b| a <= b, |a, b| a <= b),
        COMPARED,
    )
    .lower(to_loops::pointwise::le)
    .no_derivative("bools"),
    core_pointwise(
        "aten::le.Scalar(Tensor self, Scalar other) -> Tensor",
        "Whether the first is at most the second.",
        compare,
        |c| ordered(c, |a, b| a <= b, |a, b| a <= b),
        WITH_NUMBER,
    )
    .lower(to_loops::pointwise::le)
    .no_derivative("bools"),
    in_place("aten::le_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.le.Tensor", BOTH_IN_PLACE),
    in_place("aten::le_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.le.Scalar", NUMBER_IN_PLACE),
    core_pointwise(
        "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor",
        "Whether the first is greater.",
        compare,
        |c| ordered(c, |a, b| a > b, |a, b| a > b),
        COMPARED,
    )
    .lower(to_loops::pointwise::gt)
    .no_derivative("bools"),
    core_pointwise(
        "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor",
        "Whether the first is greater.",
        compare,
        |c| ordered(c, |a, b| a > b, |a, b| a > b),
        WITH_NUMBER,
    )
    .lower(to_loops::pointwise::gt)
    .no_derivative("bools"),
    in_place("aten::gt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.gt.Tensor", BOTH_IN_PLACE),
    in_place("aten::gt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.gt.Scalar", NUMBER_IN_PLACE),
    core_pointwise(
        "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor",
        "Whether the first is at least the second.",
        compare,
        |c| ordered(c, |a, b| a >= b, |a, b| a >= b),
        COMPARED,
    )
    .lower(to_loops::pointwise::ge)
    .no_derivative("bools"),
    core_pointwise(
        "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor",
        "Whether the first is at least the second.",
        compare,
        |c| ordered(c, |a, b| a >= b, |a, b| a >= b),
        WITH_NUMBER,
    )
    .lower(to_loops::pointwise::ge)
    .no_derivative("bools"),
    in_place("aten::ge_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.ge.Tensor", BOTH_IN_PLACE),
    in_place("aten::ge_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.ge.Scalar", NUMBER_IN_PLACE),
    core_pointwise(
        "aten::logical_and(Tensor self, Tensor other) -> Tensor",
        "Whether both are not zero.",
        compare,
        |c| logical(c, |a, b| a && b),
        EQUATED,
    )
    .lower(to_loops::pointwise::logical_and)
    .no_derivative("bools"),
    in_place(
        "aten::logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.logical_and.default",
        BOTH_IN_PLACE,
    ),
    core_pointwise(
        "aten::logical_or(Tensor self, Tensor other) -> Tensor",
        "Whether one is not zero.",
        compare,
        |c| logical(c, |a, b| a || b),
        EQUATED,
    )
    .lower(to_loops::pointwise::logical_or)
    .no_derivative("bools"),
    in_place(
        "aten::logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.logical_or.default",
        BOTH_IN_PLACE,
    ),
    core_pointwise(
        "aten::logical_xor(Tensor self, Tensor other) -> Tensor",
        "Whether exactly one is not zero.",
        compare,
        |c| logical(c, |a, b| a != b),
        EQUATED,
    )
    .lower(to_loops::pointwise::logical_xor)
    .no_derivative("bools"),
    in_place(
        "aten::logical_xor_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.logical_xor.default",
        BOTH_IN_PLACE,
    ),
    core_pointwise(
        "aten::logical_not(Tensor self) -> Tensor",
        "Whether an element is zero.",
        compare,
        logical_not,
        &["f32[3, 4]", "b8[3]", "i64[3]", "c64[2]"],
    )
    .lower(to_loops::pointwise::logical_not)
    .no_derivative("bools"),
    in_place("aten::logical_not_(Tensor(a!) self) -> Tensor(a!)", "aten.logical_not.default", &["f32[3, 4]", "b8[3]"]),
    core_pointwise(
        "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
        "The bits that both have.",
        to_bits,
        |c| bits(c, |a, b| a & b),
        BITS,
    )
    .lower(to_loops::pointwise::bitwise_and)
    .no_derivative("integers"),
    core_pointwise(
        "aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor",
        "The bits that both have.",
        to_bits,
        |c| bits(c, |a, b| a & b),
        BITS_NUMBER,
    )
    .lower(to_loops::pointwise::bitwise_and)
    .no_derivative("integers"),
    plain_pointwise(
        "aten::bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        "The bits that both have.",
        to_bits,
        |c| bits(c, |a, b| a & b),
        &["5, i64[3]", "1, u8[2]"],
    )
    .no_derivative("integers")
    .decompose(by::bitwise_and),
    in_place(
        "aten::bitwise_and_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.bitwise_and.Tensor",
        BITS_IN_PLACE,
    ),
    in_place(
        "aten::bitwise_and_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.bitwise_and.Scalar",
        BITS_NUMBER,
    ),
    core_pointwise(
        "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
        "The bits that either has.",
        to_bits,
        |c| bits(c, |a, b| a | b),
        BITS,
    )
    .lower(to_loops::pointwise::bitwise_or)
    .no_derivative("integers"),
    core_pointwise(
        "aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor",
        "The bits that either has.",
        to_bits,
        |c| bits(c, |a, b| a | b),
        BITS_NUMBER,
    )
    .lower(to_loops::pointwise::bitwise_or)
    .no_derivative("integers"),
    plain_pointwise(
        "aten::bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        "The bits that either has.",
        to_bits,
        |c| bits(c, |a, b| a | b),
        &["5, i64[3]", "1, u8[2]"],
    )
    .no_derivative("integers")
    .decompose(by::bitwise_or),
    in_place(
        "aten::bitwise_or_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.bitwise_or.Tensor",
        BITS_IN_PLACE,
    ),
    in_place(
        "aten::bitwise_or_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.bitwise_or.Scalar",
        BITS_NUMBER,
    ),
    core_pointwise(
        "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
        "The bits that exactly one has.",
        to_bits,
        |c| bits(c, |a, b| a ^ b),
        BITS,
    )
    .lower(to_loops::pointwise::bitwise_xor)
    .no_derivative("integers"),
    core_pointwise(
        "aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor",
        "The bits that exactly one has.",
        to_bits,
        |c| bits(c, |a, b| a ^ b),
        BITS_NUMBER,
    )
    .lower(to_loops::pointwise::bitwise_xor)
    .no_derivative("integers"),
    plain_pointwise(
        "aten::bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        "The bits that exactly one has.",
        to_bits,
        |c| bits(c, |a, b| a ^ b),
        &["5, i64[3]", "1, u8[2]"],
    )
    .no_derivative("integers")
    .decompose(by::bitwise_xor),
    in_place(
        "aten::bitwise_xor_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.bitwise_xor.Tensor",
        BITS_IN_PLACE,
    ),
    in_place(
        "aten::bitwise_xor_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.bitwise_xor.Scalar",
        BITS_NUMBER,
    ),
    core_pointwise(
        "aten::bitwise_not(Tensor self) -> Tensor",
        "Every bit turned.",
        to_bits,
        bitwise_not,
        &["i64[3]", "u8[4]", "b8[2, 2]"],
    )
    .lower(to_loops::pointwise::bitwise_not)
    .no_derivative("integers"),
    in_place("aten::bitwise_not_(Tensor(a!) self) -> Tensor(a!)", "aten.bitwise_not.default", &["i64[3]", "b8[3]"]),
    plain_pointwise(
        "aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
        "The bits moved up; zero when moved out.",
        to_bits,
        shift_left,
        SHIFTED,
    )
    .no_derivative("integers"),
    plain_pointwise(
        "aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
        "The bits moved up; zero when moved out.",
        to_bits,
        shift_left,
        SHIFTED_BY,
    )
    .no_derivative("integers")
    .decompose(by::left_shift),
    plain_pointwise(
        "aten::bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        "The bits moved up; zero when moved out.",
        to_bits,
        shift_left,
        &["3, i64[4]{0..9}"],
    )
    .no_derivative("integers")
    .decompose(by::left_shift),
    in_place(
        "aten::bitwise_left_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.bitwise_left_shift.Tensor",
        SHIFTED,
    ),
    in_place(
        "aten::bitwise_left_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.bitwise_left_shift.Tensor_Scalar",
        SHIFTED_BY,
    ),
    plain_pointwise(
        "aten::__lshift__.Tensor(Tensor self, Tensor other) -> Tensor",
        "The bits moved up; zero when moved out.",
        to_bits,
        shift_left,
        SHIFTED,
    )
    .no_derivative("integers")
    .decompose(by::left_shift),
    plain_pointwise(
        "aten::__lshift__.Scalar(Tensor self, Scalar other) -> Tensor",
        "The bits moved up; zero when moved out.",
        to_bits,
        shift_left,
        SHIFTED_BY,
    )
    .no_derivative("integers")
    .decompose(by::left_shift),
    in_place(
        "aten::__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.__lshift__.Tensor",
        SHIFTED,
    ),
    in_place(
        "aten::__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.__lshift__.Scalar",
        SHIFTED_BY,
    ),
    plain_pointwise(
        "aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
        "The bits moved down; the sign fills.",
        to_bits,
        shift_right,
        SHIFTED,
    )
    .no_derivative("integers"),
    plain_pointwise(
        "aten::bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
        "The bits moved down; the sign fills.",
        to_bits,
        shift_right,
        SHIFTED_BY,
    )
    .no_derivative("integers")
    .decompose(by::right_shift),
    plain_pointwise(
        "aten::bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        "The bits moved down; the sign fills.",
        to_bits,
        shift_right,
        &["3, i64[4]{0..9}"],
    )
    .no_derivative("integers")
    .decompose(by::right_shift),
    in_place(
        "aten::bitwise_right_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.bitwise_right_shift.Tensor",
        SHIFTED,
    ),
    in_place(
        "aten::bitwise_right_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.bitwise_right_shift.Tensor_Scalar",
        SHIFTED_BY,
    ),
    plain_pointwise(
        "aten::__rshift__.Tensor(Tensor self, Tensor other) -> Tensor",
        "The bits moved down; the sign fills.",
        to_bits,
        shift_right,
        SHIFTED,
    )
    .no_derivative("integers")
    .decompose(by::right_shift),
    plain_pointwise(
        "aten::__rshift__.Scalar(Tensor self, Scalar other) -> Tensor",
        "The bits moved down; the sign fills.",
        to_bits,
        shift_right,
        SHIFTED_BY,
    )
    .no_derivative("integers")
    .decompose(by::right_shift),
    in_place(
        "aten::__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten.__rshift__.Tensor",
        SHIFTED,
    ),
    in_place(
        "aten::__irshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten.__rshift__.Scalar",
        SHIFTED_BY,
    ),
    OpDef::kernel(
        "aten::equal(Tensor self, Tensor other) -> bool",
        "Whether two tensors have the same shape and equal elements.",
        known_when_run,
        equal,
    )
    .no_derivative("bools")
    .tags(&[Tag::Pointwise])
    .samples(&["f32[3], f32[3]", "f32[2], f32[3]", "i64[0], i64[0]"]),
    OpDef::kernel(
        "aten::allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
        "Whether all elements are close: `|a - b| <= atol + rtol·|b|`.",
        known_when_run,
        allclose,
    )
    .no_derivative("bools")
    .samples(&["f32[3], f32[3]", "f64[3, 2], f64[2], rtol=10.0"]),
    OpDef::kernel(
        "aten::isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
        "Whether elements are close: `|a - b| <= atol + rtol·|b|`.",
        to_close,
        isclose,
    )
    .no_derivative("bools")
    .decompose(by::isclose)
    .samples(&[
        "f32[3], f32[3]",
        "f64[3, 2], f64[2], rtol=10.0",
        "i64[3], i64[3]",
        "c64[2], c64[2], equal_nan=True",
    ]),
];

/// The two operands in their common type. Comparing rounds a number to the tensor's type first.
fn compared(call: &Call<'_>) -> Result<Pointwise<2>, OpError> {
    let (a, b) = (operand(call, 0)?, operand(call, 1)?);
    Ok(Pointwise::over(call, [&a, &b], common_dtype(&[&a, &b]))?.rounded())
}

fn eq(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    compared(call)?.test_f64(|[a, b]| a == b).test_i64(|[a, b]| a == b).test_c128(|[a, b]| a == b).finish()
}

fn ne(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    compared(call)?.test_f64(|[a, b]| a != b).test_i64(|[a, b]| a != b).test_c128(|[a, b]| a != b).finish()
}

fn ordered(
    call: &Call<'_>,
    f: impl Fn(f64, f64) -> bool + Sync,
    g: impl Fn(i64, i64) -> bool + Sync,
) -> Result<Value<Tensor>, OpError> {
    compared(call)?.test_f64(|[a, b]| f(a, b)).test_i64(|[a, b]| g(a, b)).finish()
}

fn logical(call: &Call<'_>, f: fn(bool, bool) -> bool) -> Result<Value<Tensor>, OpError> {
    let (a, b) = (operand(call, 0)?, operand(call, 1)?);
    Pointwise::over(call, [&a, &b], DType::Bool)?.rounded().test_i64(|[a, b]| f(a != 0, b != 0)).finish()
}

fn logical_not(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    Pointwise::over(call, [call.args.tensor(0)?], DType::Bool)?.rounded().test_i64(|[x]| x == 0).finish()
}

fn to_bits(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands = operands(args);
    let dtype = operand_dtype(&operands);
    if !dtype.is_integral() || (args.schema.name.contains("shift") && dtype == DType::Bool) {
        invalid!("{} is not defined for {dtype}", args.schema.name);
    }
    Ok(same_as(&operands, dtype)?.into())
}

fn bits(call: &Call<'_>, f: fn(i64, i64) -> i64) -> Result<Value<Tensor>, OpError> {
    let (a, b) = (operand(call, 0)?, operand(call, 1)?);
    Pointwise::as_result(call, [&a, &b])?.i64(|[a, b]| f(a, b)).finish()
}

fn bitwise_not(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    let is_bool = x.dtype() == DType::Bool;
    Pointwise::as_result(call, [x])?.i64(|[x]| if is_bool { 1 - x } else { !x }).finish()
}

fn shift_left(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let width = 8 * call.out_meta(0)?.dtype.size() as i64;
    let (a, b) = (operand(call, 0)?, operand(call, 1)?);
    Pointwise::as_result(call, [&a, &b])?
        .rounded()
        .i64(|[a, b]| if (0..width).contains(&b) { a << b } else { 0 })
        .finish()
}

fn shift_right(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    // Moving out every bit leaves the sign.
    let width = 8 * call.out_meta(0)?.dtype.size() as i64;
    let (a, b) = (operand(call, 0)?, operand(call, 1)?);
    Pointwise::as_result(call, [&a, &b])?
        .rounded()
        .i64(|[a, b]| if (0..width).contains(&b) { a >> b } else { a >> 63 })
        .finish()
}

/// A bool that only a run can tell.
fn known_when_run(_: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(Value::None)
}

fn equal(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (a, b) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let same = a.shape() == b.shape() && {
        let dtype = common_dtype(&[a, b]);
        let (a, b) = (a.cast(dtype), b.cast(dtype));
        match dtype {
            d if d.is_complex() => a.to_c128s() == b.to_c128s(),
            d if d.is_float() => a.to_f64s() == b.to_f64s(),
            _ => a.to_i64s() == b.to_i64s(),
        }
    };
    Ok(Value::Bool(same))
}

fn to_close(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    if a.dtype != b.dtype {
        invalid!("{} compares tensors of one type, not {} and {}", args.schema.name, a.dtype, b.dtype);
    }
    if args.float(2)? < 0.0 || args.float(3)? < 0.0 {
        invalid!("{}: tolerances must not be negative", args.schema.name);
    }
    compare(args)
}

/// Whether two numbers are close, by their distance and the size of the second.
#[derive(Clone, Copy)]
struct Closeness {
    rtol: f64,
    atol: f64,
    equal_nan: bool,
}

impl Closeness {
    fn of(args: &Args<'_, Tensor>) -> Result<Self, OpError> {
        Ok(Self { rtol: args.float(2)?, atol: args.float(3)?, equal_nan: args.bool(4)? })
    }

    fn holds(self, a: Complex64, b: Complex64) -> bool {
        let distance = (a - b).norm();
        a == b
            || (self.equal_nan && a.is_nan() && b.is_nan())
            || (distance.is_finite() && distance <= self.atol + self.rtol * b.norm())
    }
}

fn isclose(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let closeness = Closeness::of(&call.args)?;
    let (a, b) = (call.args.tensor(0)?, call.args.tensor(1)?);
    Pointwise::over(call, [a, b], DType::C128)?.test_c128(|[a, b]| closeness.holds(a, b)).finish()
}

fn allclose(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let metas: Vec<Value<Meta>> = call.args.values.iter().map(|v| v.map(&mut |t| Meta::of(t))).collect();
    let shape = to_close(&Args { schema: call.args.schema, values: &metas })?;
    let Value::Tensor(meta) = shape else { return Err(OpError::fault("isclose is one tensor")) };
    let closeness = Closeness::of(&call.args)?;
    let shape = meta.layout()?.shape;
    let (a, b) = (call.args.tensor(0)?.expanded(&shape), call.args.tensor(1)?.expanded(&shape));
    Ok(Value::Bool(a.to_c128s().into_iter().zip(b.to_c128s()).all(|(a, b)| closeness.holds(a, b))))
}
