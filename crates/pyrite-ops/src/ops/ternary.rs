//! Pointwise functions of three and more operands.

use pyrite_ir::{Args, Call, FromNumber, Meta, OpDef, OpError, Tolerance, Type, Value, invalid};
use pyrite_kernels::complex::quotient;
use pyrite_tensor::{Complex64, DType, Scalar, Tensor};

use crate::decompositions::pointwise as by;
use crate::derivatives::ternary as d;
use crate::kernels::{Pointwise, operand};
use crate::lowerings as to_loops;
use crate::rules::{core_pointwise, in_place, operand_dtype, operands, plain_pointwise, same_as, to_same_number};

/// The table.
pub const OPS: &[OpDef] = &[
    core_pointwise(
        "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
        "The first where the condition holds, else the second.",
        to_chosen,
        choose,
        &[
            "b8[3, 4], f32[3, 4], f32[4]",
            "b8[3, 1], f32[4], f64[]",
            "b8[2], i64[2], 2.5",
            "b8[2, 3]<[1, 2], c64[3], c64[2, 3]",
            "u8[3], bf16[3], bf16[3]",
            "b8[0], f32[0], f32[]",
        ],
    )
    .every_type()
    .lower(to_loops::pointwise::where_self)
    .derivative(d::choose),
    OpDef::kernel(
        "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
        "The first where the condition holds, else the second; numbers stand for tensors.",
        to_chosen,
        choose,
    )
    .derivative(d::choose)
    .decompose(by::choose)
    .samples(&["b8[3, 4], f32[4], 2"]),
    OpDef::kernel(
        "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
        "The first where the condition holds, else the second; numbers stand for tensors.",
        to_chosen,
        choose,
    )
    .derivative(d::choose)
    .decompose(by::choose)
    .samples(&["b8[3, 4], 2.0, i64[4]", "b8[3, 4], 2, f32[4]"]),
    OpDef::kernel(
        "aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
        "The first where the condition holds, else the second; numbers stand for tensors.",
        to_chosen,
        choose,
    )
    .no_derivative("numbers")
    .decompose(by::choose)
    .samples(&["b8[3, 4], 2, 1.5", "b8[2], 1, 0"]),
    core_pointwise(
        "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
        "Keeps elements between two bounds; where they cross, the upper one wins.",
        to_clamped,
        clamp,
        &[
            "f32[3, 4], -0.5, 0.5",
            "f64[5], None, 0.1",
            "i64[4], 0",
            "i64[4], 0.5",
            "bf16[2, 3]<[1, 2], 0, 1",
            "f32[0], 1",
            "u8[6], -2, 3",
            "i8[6], -1000, 1000",
            "i32[4], None, 3000000000",
        ],
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::clamp)
    .derivative(d::clamp),
    core_pointwise(
        "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
        "Keeps elements between two bounds; where they cross, the upper one wins.",
        to_clamped,
        clamp,
        &["f32[3, 4], f32[4], f32[3, 1]", "i64[4], None, i64[4]", "i64[3], f32[3]"],
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::pointwise::clamp)
    .derivative(d::clamp),
    in_place(
        "aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
        "aten.clamp.default",
        &["f32[3, 4], -0.5, 0.5"],
    ),
    in_place(
        "aten::clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
        "aten.clamp.Tensor",
        &["f32[3, 4], f32[4]"],
    ),
    plain_pointwise(
        "aten::clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
        "Another name of `clamp`.",
        to_clamped,
        clamp,
        &["f32[3, 4], -0.5, 0.5"],
    )
    .derivative(d::clamp)
    .decompose(by::clip),
    plain_pointwise(
        "aten::clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
        "Another name of `clamp`.",
        to_clamped,
        clamp,
        &["f32[3, 4], f32[4], f32[3, 1]"],
    )
    .derivative(d::clamp)
    .decompose(by::clip_tensor),
    in_place(
        "aten::clip_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
        "aten.clamp.default",
        &["f32[3, 4], -0.5, 0.5"],
    ),
    in_place(
        "aten::clip_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
        "aten.clamp.Tensor",
        &["f32[3, 4], f32[4]"],
    ),
    plain_pointwise(
        "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
        "Raises what is below the bound to it.",
        to_clamped,
        clamp_min,
        &["f32[3, 4], 0.5", "i64[4], 0", "i64[4], 0.5", "bf16[2], 0"],
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::clamp_min)
    .decompose(by::clamp_min),
    plain_pointwise(
        "aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
        "Raises what is below the bound to it.",
        to_clamped,
        clamp_min,
        &["f32[3, 4], f32[4]", "i64[4], i64[4]", "b8[3], b8[3]"],
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::clamp_min)
    .decompose(by::clamp_min_tensor),
    in_place(
        "aten::clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)",
        "aten.clamp_min.default",
        &["f32[3, 4], 0.5"],
    ),
    in_place(
        "aten::clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)",
        "aten.clamp_min.Tensor",
        &["f32[3, 4], f32[4]"],
    ),
    plain_pointwise(
        "aten::clamp_max(Tensor self, Scalar max) -> Tensor",
        "Lowers what is above the bound to it.",
        to_clamped,
        clamp_max,
        &["f32[3, 4], 0.5", "i64[4], 0", "i64[4], 0.5", "bf16[2], 0"],
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::clamp_max)
    .decompose(by::clamp_max),
    plain_pointwise(
        "aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
        "Lowers what is above the bound to it.",
        to_clamped,
        clamp_max,
        &["f32[3, 4], f32[4]", "i64[4], i64[4]", "b8[3], b8[3]"],
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::clamp_max)
    .decompose(by::clamp_max_tensor),
    in_place(
        "aten::clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)",
        "aten.clamp_max.default",
        &["f32[3, 4], 0.5"],
    ),
    in_place(
        "aten::clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)",
        "aten.clamp_max.Tensor",
        &["f32[3, 4], f32[4]"],
    ),
    plain_pointwise(
        "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
        "Moves from the first to the second by a weight.",
        to_between,
        lerp,
        &["f32[3, 4], f32[4], 0.3", "f64[3], f64[3], 2", "c64[2], c64[2], 0.7", "bf16[2], bf16[2], 0.5"],
    )
    .derivative(d::lerp)
    .decompose(by::lerp),
    plain_pointwise(
        "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
        "Moves from the first to the second by a weight.",
        to_between,
        lerp,
        &["f32[3, 4], f32[4], f32[3, 1]", "f64[3], f64[3], f64[]"],
    )
    .derivative(d::lerp)
    .decompose(by::lerp),
    in_place(
        "aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)",
        "aten.lerp.Scalar",
        &["f32[3, 4], f32[4], 0.3"],
    ),
    in_place(
        "aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)",
        "aten.lerp.Tensor",
        &["f32[3, 4], f32[4], f32[4]"],
    ),
    plain_pointwise(
        "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        "`self + value·tensor1·tensor2`.",
        to_same_number,
        addcmul,
        &[
            "f32[3, 4], f32[4], f32[3, 1]",
            "i64[4], i64[4], i64[4], value=2",
            "f64[3], f32[3], f64[3], value=0.5",
            "c64[2], c64[2], c64[2]",
        ],
    )
    .derivative(d::addcmul)
    .decompose(by::addcmul),
    in_place(
        "aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
        "aten.addcmul.default",
        &["f32[3, 4], f32[4], f32[3, 1], value=2"],
    ),
    plain_pointwise(
        "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        "`self + value·tensor1 / tensor2`.",
        to_added_quotient,
        addcdiv,
        &["f32[3, 4], f32[4], f32[3, 1]", "f64[3], f64[3], f64[3], value=0.5", "c64[2], c64[2], c64[2]"],
    )
    .derivative(d::addcdiv)
    .decompose(by::addcdiv),
    in_place(
        "aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
        "aten.addcdiv.default",
        &["f32[3, 4], f32[4], f32[3, 1], value=2"],
    ),
];

/// An argument as an operand: a tensor, a number that stands for one, or nothing.
fn meta_operand(args: &Args<'_, Meta>, index: usize) -> Option<Meta> {
    match args.values.get(index)? {
        Value::Tensor(meta) => Some(meta.clone()),
        // The value of a symbolic number is not needed for metadata.
        Value::Int(v) => Some(Meta::from_number(v.hint().unwrap_or(0).into())),
        other => other.as_scalar().map(Meta::from_number),
    }
}

/// The common type of two possibilities, in the shape and layout of all three operands.
fn to_chosen(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (Some(condition), Some(one), Some(other)) =
        (meta_operand(args, 0), meta_operand(args, 1), meta_operand(args, 2))
    else {
        invalid!("where wants a condition and two possibilities");
    };
    if !matches!(condition.dtype, DType::Bool | DType::U8) {
        invalid!("the condition of where is bool, not {}", condition.dtype);
    }
    let dtype = operand_dtype([&one, &other]);
    Ok(same_as(&[condition, one, other], dtype)?.into())
}

fn choose(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (condition, a, b) = (call.args.tensor(0)?, operand(call, 1)?, operand(call, 2)?);
    Pointwise::as_result(call, [condition, &a, &b])?
        .f32(|[c, a, b]| if c == 0.0 { b } else { a })
        .f64(|[c, a, b]| if c == 0.0 { b } else { a })
        .i64(|[c, a, b]| if c == 0 { b } else { a })
        .c128(|[c, a, b]| if c == Complex64::ZERO { b } else { a })
        .finish()
}

fn to_clamped(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let operands: Vec<Meta> = (0..args.values.len()).filter_map(|i| meta_operand(args, i)).collect();
    if operands.len() < 2 {
        invalid!("{}: at least one bound is needed", args.schema.name);
    }
    let dtype = operand_dtype(&operands);
    // With one bound that is a tensor it is a maximum or a minimum, which bools have.
    let by_tensor = *args.schema.params[1].ty.required() == Type::Tensor && operands.len() == 2;
    if (dtype == DType::Bool && !by_tensor) || dtype.is_complex() {
        invalid!("{} is not defined for {dtype}", args.schema.name);
    }
    Ok(same_as(&operands, dtype)?.into())
}

/// The larger of two, NaN if either is.
fn larger<T: PartialOrd>(a: T, b: T) -> T {
    if a >= b || a.partial_cmp(&a).is_none() { a } else { b }
}

/// The smaller of two, NaN if either is.
fn smaller<T: PartialOrd>(a: T, b: T) -> T {
    if a <= b || a.partial_cmp(&a).is_none() { a } else { b }
}

fn clamp(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let given = |index| !matches!(call.args.value(index), Value::None);
    match (given(1), given(2)) {
        (true, false) => raise(call, 1),
        (false, _) => lower(call, 2),
        (true, true) => {
            let (x, low, high) = (call.args.tensor(0)?, bound(call, 1)?, bound(call, 2)?);
            Pointwise::as_result(call, [x, &low, &high])?
                .rounded()
                .f32(|[x, low, high]| smaller(larger(x, low), high))
                .f64(|[x, low, high]| smaller(larger(x, low), high))
                .i64(|[x, low, high]| x.max(low).min(high))
                .finish()
        }
    }
}

/// A bound of `clamp`. One that is an integer beyond the result's type becomes the nearest of that type.
fn bound(call: &Call<'_>, index: usize) -> Result<Tensor, OpError> {
    match (call.args.value(index).as_scalar(), call.out_meta(0)?.dtype.integers()) {
        (Some(Scalar::Int(number)), Some((least, most))) => Ok(Tensor::number(Scalar::Int(number.clamp(least, most)))),
        _ => operand(call, index),
    }
}

fn raise(call: &Call<'_>, index: usize) -> Result<Value<Tensor>, OpError> {
    let (x, low) = (call.args.tensor(0)?, bound(call, index)?);
    Pointwise::as_result(call, [x, &low])?
        .rounded()
        .f32(|[x, low]| larger(x, low))
        .f64(|[x, low]| larger(x, low))
        .i64(|[x, low]| x.max(low))
        .finish()
}

fn lower(call: &Call<'_>, index: usize) -> Result<Value<Tensor>, OpError> {
    let (x, high) = (call.args.tensor(0)?, bound(call, index)?);
    Pointwise::as_result(call, [x, &high])?
        .rounded()
        .f32(|[x, high]| smaller(x, high))
        .f64(|[x, high]| smaller(x, high))
        .i64(|[x, high]| x.min(high))
        .finish()
}

fn clamp_min(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    raise(call, 1)
}

fn clamp_max(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    lower(call, 1)
}

fn to_between(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (start, end) = (args.tensor(0)?, args.tensor(1)?);
    if start.dtype != end.dtype || !start.dtype.is_inexact() {
        invalid!("lerp wants two float or complex tensors of one type, not {} and {}", start.dtype, end.dtype);
    }
    Ok(same_as(&operands(args), start.dtype)?.into())
}

fn lerp(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (start, end, weight) = (call.args.tensor(0)?, call.args.tensor(1)?, operand(call, 2)?);
    // Going from the nearer end keeps the result exact at both.
    Pointwise::as_result(call, [start, end, &weight])?
        .f32(|[a, b, w]| if w.abs() < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) })
        .f64(|[a, b, w]| if w.abs() < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) })
        .c128(|[a, b, w]| if w.norm() < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) })
        .finish()
}

fn addcmul(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let value = call.args.scalar(3)?;
    let (single, double, integer, complex) = (value.to_f64() as f32, value.to_f64(), value.to_i64(), value.to_c128());
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?])?
        .f32(|[x, a, b]| x + single * a * b)
        .f64(|[x, a, b]| x + double * a * b)
        .i64(|[x, a, b]| x.wrapping_add(integer.wrapping_mul(a).wrapping_mul(b)))
        .c128(|[x, a, b]| x + complex * a * b)
        .finish()
}

fn to_added_quotient(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    if args.tensor(1)?.dtype.is_integral() && args.tensor(2)?.dtype.is_integral() {
        invalid!("addcdiv does not divide integers");
    }
    to_same_number(args)
}

fn addcdiv(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let value = call.args.scalar(3)?;
    let (single, double, complex) = (value.to_f64() as f32, value.to_f64(), value.to_c128());
    Pointwise::as_result(call, [call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?])?
        .f32(|[x, a, b]| x + single * a / b)
        .f64(|[x, a, b]| x + double * a / b)
        .c128(|[x, a, b]| x + quotient(complex * a, b))
        .finish()
}
