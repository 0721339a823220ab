//! Searching: places in sorted sequences, and membership.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Value, Vjp, invalid};
use pyrite_tensor::{DType, Tensor};

use super::{Keys, Ordered};
use crate::decompositions::index as by;
use crate::rules::operand_dtype;

const NO_SLOPE: Vjp = Vjp::NonDifferentiable("a place is an integer");

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        "Where values would stand in sorted rows.",
        search_meta,
        search,
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[4]{0..1}, f32[2, 3]", "f64[2, 4], f64[2, 3], right=True", "i64[3], i64[], out_int32=True", "f32[0], f32[2], side='right'"]),
    OpDef::kernel(
        "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        "Where a number would stand in a sorted sequence.",
        search_meta,
        search,
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[4], 0.5", "i64[4], 2, right=True"]),
    OpDef::kernel(
        "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        "Between which boundaries values lie.",
        bucketize_meta,
        bucketize,
    )
    .vjp(NO_SLOPE)
    .samples(&["f32[2, 3], f32[4]", "i64[3], f32[2], right=True, out_int32=True"]),
    OpDef::kernel(
        "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        "Between which boundaries a number lies.",
        bucketize_meta,
        bucketize,
    )
    .vjp(NO_SLOPE)
    .samples(&["0.5, f32[4]"]),
    OpDef::kernel(
        "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
        "Whether elements are among others.",
        isin_meta,
        isin,
    )
    .vjp(NO_SLOPE)
    .decompose(by::isin)
    .samples(&["i64[3, 4], i64[5]", "f32[3], i64[2], invert=True", "i64[2], i64[0]"]),
    OpDef::kernel(
        "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
        "Whether elements are a number.",
        isin_meta,
        isin,
    )
    .vjp(NO_SLOPE)
    .decompose(by::isin)
    .samples(&["i64[3, 4], 3"]),
    OpDef::kernel(
        "aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
        "Whether a number is among elements.",
        isin_meta,
        isin,
    )
    .vjp(NO_SLOPE)
    .decompose(by::isin)
    .samples(&["3, i64[3, 4]"]),
];

/// An operand that may be a number.
fn operand(a: &Args<'_, Meta>, index: usize) -> Result<Meta, OpError> {
    match a.opt_tensor(index) {
        Ok(Some(meta)) => Ok(meta.clone()),
        _ => Ok(Meta::number(a.scalar(index)?)),
    }
}

fn operand_tensor(call: &Call<'_>, index: usize) -> Result<Tensor, OpError> {
    match call.args.opt_tensor(index) {
        Ok(Some(tensor)) => Ok(tensor.clone()),
        _ => Ok(Tensor::number(call.args.scalar(index)?)),
    }
}

fn place_dtype(a: &Args<'_, Meta>) -> Result<DType, OpError> {
    Ok(if a.bool(2)? { DType::I32 } else { DType::I64 })
}

fn search_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (rows, values) = (a.tensor(0)?, operand(a, 1)?);
    if rows.dtype == DType::Bool || rows.dtype.is_complex() || values.dtype.is_complex() {
        invalid!("searchsorted wants real numbers, not {} among {}", values.dtype, rows.dtype);
    }
    match (a.opt_str(4)?, a.bool(3)?) {
        (Some("left"), true) => invalid!("searchsorted got `right` and a side of 'left'"),
        (None | Some("left" | "right"), _) => {}
        (Some(side), _) => invalid!("searchsorted's side is 'left' or 'right', not '{side}'"),
    }
    if rows.rank() == 0 || (values.number && rows.rank() != 1) {
        invalid!("searchsorted wants rows to search, not shape {:?}", rows.shape);
    }
    let lead = rows.rank() - 1;
    if lead > 0 && (values.rank() != rows.rank() || (0..lead).any(|d| !rows.shape[d].is_eq(&values.shape[d]))) {
        invalid!("searchsorted's rows of shape {:?} do not belong to values of shape {:?}", rows.shape, values.shape);
    }
    if let Some(sorter) = a.opt_tensor(5)? {
        crate::rules::expect_same_shape("searchsorted's sorter", &sorter.shape, &rows.shape)?;
        if sorter.dtype != DType::I64 {
            invalid!("searchsorted's sorter is of i64, not {}", sorter.dtype);
        }
    }
    Ok(rows.fresh(&values.shape, place_dtype(a)?).into())
}

fn search(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let right = call.args.bool(3)? || call.args.opt_str(4)? == Some("right");
    let (rows, values) = (call.args.tensor(0)?, operand_tensor(call, 1)?);
    let len = rows.shape().last().map_or(0, |d| *d as usize);
    let sorter = call.args.opt_tensor(5)?.map(Tensor::to_i64s);
    if sorter.as_ref().is_some_and(|s| s.iter().any(|i| !(0..len as i64).contains(i))) {
        invalid!("searchsorted's sorter points outside of its row");
    }
    places(call, rows, &values, sorter.as_deref(), right)
}

fn bucketize_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (values, boundaries) = (operand(a, 0)?, a.tensor(1)?);
    if boundaries.rank() != 1 {
        invalid!("bucketize wants boundaries of one dimension, not {}", boundaries.rank());
    }
    Ok(boundaries.fresh(&values.shape, place_dtype(a)?).into())
}

fn bucketize(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    places(call, call.args.tensor(1)?, &operand_tensor(call, 0)?, None, call.args.bool(3)?)
}

/// The places of values in rows; one row serves all values when there is only one.
fn places(
    call: &Call<'_>,
    rows: &Tensor,
    values: &Tensor,
    sorter: Option<&[i64]>,
    right: bool,
) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let dtype = operand_dtype(&[Meta::of(rows), Meta::of(values)]);
    let len = rows.shape().last().map_or(0, |d| *d as usize);
    let per_row = if rows.rank() == 1 { values.numel() } else { values.shape().last().map_or(1, |d| *d as usize) };
    // A value that the common type cannot hold wraps around or is rounded before it is looked for.
    let brought = |t: &Tensor| if t.dtype() == dtype { t.clone() } else { t.cast(dtype) };
    let found = match (Keys::of(&brought(rows), dtype), Keys::of(&brought(values), dtype)) {
        (Keys::Floats(rows), Keys::Floats(values)) => search_all(&rows, &values, len, per_row, sorter, right),
        (Keys::Ints(rows), Keys::Ints(values)) => search_all(&rows, &values, len, per_row, sorter, right),
        _ => return Err(OpError::fault("keys of different kinds")),
    };
    out.write_i64s(&found);
    Ok(out.into())
}

fn search_all<T: Ordered>(
    rows: &[T],
    values: &[T],
    len: usize,
    per_row: usize,
    sorter: Option<&[i64]>,
    right: bool,
) -> Vec<i64> {
    let at = |start: usize, i: usize| rows[start + sorter.map_or(i, |s| s[start + i] as usize)];
    values
        .iter()
        .enumerate()
        .map(|(n, value)| {
            let start = n / per_row.max(1) * len;
            let (mut low, mut high) = (0, len);
            while low < high {
                let middle = low + (high - low) / 2;
                // NaN stands after everything, also after itself.
                let order = at(start, middle).order(*value);
                let before = order.is_lt() || (right && order.is_eq()) || value.is_nan();
                if before { low = middle + 1 } else { high = middle }
            }
            low as i64
        })
        .collect()
}

fn isin_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (elements, tests) = (operand(a, 0)?, operand(a, 1)?);
    for meta in [&elements, &tests] {
        if meta.dtype.is_complex() || meta.dtype == DType::Bool {
            invalid!("isin is not defined for {}", meta.dtype);
        }
    }
    Ok(elements.fresh(&elements.shape, DType::Bool).into())
}

fn isin(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let (elements, tests) = (operand_tensor(call, 0)?, operand_tensor(call, 1)?);
    let invert = call.args.bool(3)?;
    let dtype = operand_dtype(&[Meta::of(&elements), Meta::of(&tests)]);
    let found = match (Keys::of(&elements, dtype), Keys::of(&tests, dtype)) {
        (Keys::Floats(elements), Keys::Floats(tests)) => among(&elements, tests),
        (Keys::Ints(elements), Keys::Ints(tests)) => among(&elements, tests),
        _ => return Err(OpError::fault("keys of different kinds")),
    };
    out.write_i64s(&found.iter().map(|f| i64::from(*f != invert)).collect::<Vec<_>>());
    Ok(out.into())
}

fn among<T: Ordered>(elements: &[T], mut tests: Vec<T>) -> Vec<bool> {
    tests.sort_unstable_by(|a, b| a.order(*b));
    elements.iter().map(|x| !x.is_nan() && tests.binary_search_by(|t| t.order(*x)).is_ok()).collect()
}
