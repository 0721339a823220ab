//! Matmuls and vectors.
//!
//! All operands of a product have one type. Results are dense, last dimension fastest, whatever the operands' strides.
//! Where a factor `beta` is zero, the tensor it scales is not read: its NaNs do not matter.

use num_complex::Complex64;
use pyrite_ir::{
    Args, Call, Emit, ExternKind, Handle, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, Vjp, args, invalid,
    unsupported,
};
use pyrite_sym::SymInt;
use pyrite_tensor::walk::Walk;
use pyrite_tensor::{DType, Layout, Scalar, Tensor};

use crate::decompositions::matmul as by;
use crate::derivatives::matmul as d;
use crate::kernels::Pointwise;
use crate::rules::{broadcast, operand_dtype, wrap_dims};
use pyrite_kernels::gemm::{self, Factor};

const SUMS: Tolerance = Tolerance::Times(4.0);

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel("aten::mm(Tensor self, Tensor mat2) -> Tensor", "The product of two matrices.", infer_mm, mm)
        .as_call(ExternKind::Mm)
        .tags(&[Tag::Core])
        .tolerance(SUMS)
        .derivative(d::mm)
        .samples(&[
            "f32[3, 4], f32[4, 2]",
            "f64[3, 4]<[1, 3], f64[4, 2]<[1, 4]",
            "f32[3, 4]<[0, 1], f32[4, 2]",
            "i64[2, 3], i64[3, 4]",
            "bf16[2, 3], bf16[3, 4]",
            "c64[2, 3], c64[3, 4]",
            "f32[2, 0], f32[0, 3]",
            "f32[0, 2], f32[2, 3]",
            "f32[70, 60], f32[60, 50]",
        ]),
    OpDef::kernel(
        "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
        "The product of each pair of matrices of two batches.",
        infer_bmm,
        mm,
    )
    .as_call(ExternKind::Bmm)
    .tags(&[Tag::Core])
    .tolerance(SUMS)
    .derivative(d::bmm)
    .samples(&[
        "f32[5, 3, 4], f32[5, 4, 2]",
        "f32[5, 3, 4]<[0, 4, 1], f32[5, 4, 2]<[8, 1, 4]",
        "i32[2, 3, 4], i32[2, 4, 2]",
        "f16[2, 3, 4], f16[2, 4, 2]",
        "f32[0, 3, 4], f32[0, 4, 2]",
        "f32[8, 40, 30], f32[8, 30, 20]",
    ]),
    OpDef::kernel(
        "aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) \
         -> Tensor",
        "Products of groups of rows, columns or depths with a matrix each; `offs` says where each group ends.",
        infer_grouped_mm,
        grouped_mm,
    )
    .tolerance(SUMS)
    .derivative(d::grouped_mm)
    .samples(&["f32[3, 4, 8], f32[3, 8, 4]", "bf16[3, 8, 8], bf16[3, 8, 8]", "f32[0, 4, 8], f32[0, 8, 5]"]),
    OpDef::kernel(
        "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "`beta·self + alpha·(mat1 @ mat2)`.",
        infer_addmm,
        addmm,
    )
    .as_call(ExternKind::Addmm)
    .tags(&[Tag::Core])
    .tolerance(SUMS)
    .derivative(d::addmm)
    .samples(&[
        "f32[2], f32[3, 4], f32[4, 2]",
        "f64[3, 1], f64[3, 4], f64[4, 2], beta=0.5, alpha=2",
        "i64[3, 2], i64[3, 4], i64[4, 2], beta=-1, alpha=3",
        "bf16[2], bf16[3, 4], bf16[4, 2], beta=0",
        "f32[3, 2], f32[3, 0], f32[0, 2], beta=3",
    ]),
    OpDef::kernel(
        "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "`beta·self + alpha·(batch1 @ batch2)` for each pair of matrices.",
        infer_baddbmm,
        addmm,
    )
    .tolerance(SUMS)
    .derivative(d::baddbmm)
    .decompose(by::baddbmm)
    .samples(&[
        "f32[5, 5, 10], f32[5, 5, 0], f32[5, 0, 10]",
        "f32[2], f32[5, 3, 4], f32[5, 4, 2], beta=0.5, alpha=2",
        "f64[5, 3, 2], f64[5, 3, 4], f64[5, 4, 2]",
    ]),
    OpDef::kernel(
        "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "`beta·self + alpha·Σ(batch1 @ batch2)`, summed over the batch.",
        infer_addbmm,
        addbmm,
    )
    .tolerance(SUMS)
    .derivative(d::addbmm)
    .decompose(by::addbmm)
    .samples(&["f32[3, 2], f32[5, 3, 4], f32[5, 4, 2], beta=0.5, alpha=2", "i64[2], i64[0, 3, 4], i64[0, 4, 2]"]),
    OpDef::kernel("aten::mv(Tensor self, Tensor vec) -> Tensor", "The product of a matrix and a vector.", infer_mv, mv)
        .tolerance(SUMS)
        .derivative(d::mv)
        .decompose(by::mv)
        .samples(&["f32[3, 4], f32[4]", "f64[3, 4]<[1, 3], f64[4]<[2]", "i64[3, 0], i64[0]"]),
    OpDef::kernel(
        "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "`beta·self + alpha·(mat @ vec)`.",
        infer_addmv,
        addmv,
    )
    .tolerance(SUMS)
    .derivative(d::addmv)
    .decompose(by::addmv)
    .samples(&["f32[3], f32[3, 4], f32[4], beta=0.5, alpha=2", "i64[1], i64[3, 4], i64[4], beta=0"]),
    OpDef::kernel(
        "aten::dot(Tensor self, Tensor tensor) -> Tensor",
        "The sum of the products of two vectors' elements.",
        infer_dot,
        |call| dot(call, |value| value),
    )
    .tolerance(SUMS)
    .derivative(d::dot)
    .decompose(by::dot)
    .samples(&["f32[5], f32[5]", "i32[5]<[2], i32[5]", "c64[3], c64[3]", "f64[0], f64[0]"]),
    OpDef::kernel(
        "aten::vdot(Tensor self, Tensor other) -> Tensor",
        "The sum of the products of two vectors' elements, the first conjugated.",
        infer_dot,
        |call| dot(call, |value| value.conj()),
    )
    .tolerance(SUMS)
    .derivative(d::vdot)
    .decompose(by::vdot)
    .samples(&["f32[5], f32[5]", "c128[3], c128[3]"]),
    OpDef::kernel(
        "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "`beta·self + alpha·vec1·vec2ᵀ`.",
        infer_addr,
        addr,
    )
    .derivative(d::addr)
    .decompose(by::addr)
    .samples(&[
        "f32[3, 2], f32[3], f32[2]",
        "f32[3, 2]<[1, 3], f32[3], f32[2], beta=0.5, alpha=2",
        "i64[2], i64[3], i64[2], beta=0, alpha=3",
        "b8[3, 2], b8[3], b8[2]",
    ]),
    OpDef::kernel(
        "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
        "`input @ weightᵀ + bias` over the last dimension.",
        infer_linear,
        linear,
    )
    .decompose(decompose_linear)
    .vjp(Vjp::ViaDecomposition)
    .tolerance(SUMS)
    .samples(&[
        "f32[3, 4], f32[2, 4], f32[2]",
        "f32[5, 3, 4], f32[2, 4]",
        "f64[5, 3, 4]<[4, 20, 1], f64[2, 4], f64[2]",
        "f32[4], f32[2, 4], f32[2]",
        "f32[3, 4], f32[4]",
        "bf16[0, 3, 4], bf16[2, 4], bf16[2]",
    ]),
    OpDef::kernel(
        "aten::matmul(Tensor self, Tensor other) -> Tensor",
        "The product over the last two dimensions, with the others broadcast; vectors count as one row or one column.",
        infer_matmul,
        matmul,
    )
    .decompose(decompose_matmul)
    .vjp(Vjp::ViaDecomposition)
    .tolerance(SUMS)
    .samples(&[
        "f32[3], f32[3]",
        "f32[2, 3], f32[3]",
        "f32[3], f32[3, 4]",
        "f32[2, 3], f32[3, 4]",
        "f32[5, 2, 3], f32[3]",
        "f32[3], f32[5, 3, 4]",
        "f32[5, 2, 3], f32[3, 4]",
        "f64[5, 2, 3]<[6, 1, 2], f64[3, 4]",
        "f32[2, 3], f32[5, 3, 4]",
        "f32[6, 1, 2, 3], f32[5, 3, 4]",
        "f32[6, 5, 2, 3], f32[6, 5, 3, 4]",
        "f32[6, 5, 2, 3], f32[3]",
        "f32[5, 0, 3], f32[3, 4]",
    ]),
    OpDef::composite(
        "aten::linalg_matmul(Tensor self, Tensor other) -> Tensor",
        "Another name of `matmul`.",
        |e, a| e.call("aten.matmul.default", a.values),
    )
    .samples(&["f32[2, 3], f32[3, 4]"]),
    OpDef::kernel(
        "aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, \
         int unroll_dim=1) -> Tensor",
        "The product of three tensors, each given dimensions of size one, summed over some dimensions.",
        infer_trilinear,
        trilinear,
    )
    .tolerance(SUMS)
    .derivative(d::trilinear)
    .decompose(by::trilinear)
    .samples(&["f32[3, 4], f32[2, 4, 5], f32[3, 5], [1, 3], [0], [1, 2], [2, 3]"]),
    OpDef::written(
        "aten::addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "`addmm` in place.",
        "aten.addmm.default",
    )
    .samples(&["f32[3, 2], f32[3, 4], f32[4, 2], alpha=2"]),
    OpDef::written(
        "aten::baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "`baddbmm` in place.",
        "aten.baddbmm.default",
    )
    .samples(&["f32[5, 3, 2], f32[5, 3, 4], f32[5, 4, 2]"]),
    OpDef::written(
        "aten::addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "`addbmm` in place.",
        "aten.addbmm.default",
    )
    .samples(&["f32[3, 2], f32[5, 3, 4], f32[5, 4, 2]"]),
    OpDef::written(
        "aten::addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "`addmv` in place.",
        "aten.addmv.default",
    )
    .samples(&["f32[3], f32[3, 4], f32[4]"]),
    OpDef::written(
        "aten::addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "`addr` in place.",
        "aten.addr.default",
    )
    .samples(&["f32[3, 2], f32[3], f32[2]"]),
];

/// A tensor with this many dimensions.
fn of_rank<'a>(a: &Args<'a, Meta>, index: usize, rank: usize) -> Result<&'a Meta, OpError> {
    let meta = a.tensor(index)?;
    if meta.rank() != rank {
        let name = &a.schema.params[index].name;
        invalid!("{}'s `{name}` must have {rank} dimensions, it has shape {:?}", a.schema.name, meta.shape);
    }
    Ok(meta)
}

/// The common type of all tensors among the arguments, which a product needs.
fn one_dtype(a: &Args<'_, Meta>) -> Result<DType, OpError> {
    let mut found: Option<DType> = None;
    for meta in a.values.iter().filter_map(Value::as_tensor) {
        match found {
            Some(dtype) if dtype != meta.dtype => {
                invalid!("{} needs operands of one type, got {dtype} and {}", a.schema.name, meta.dtype)
            }
            _ => found = Some(meta.dtype),
        }
    }
    match found {
        Some(DType::Bool) => invalid!("{} is not defined for bool", a.schema.name),
        Some(dtype) => Ok(dtype),
        None => invalid!("{} needs a tensor", a.schema.name),
    }
}

fn expect_size(a: &Args<'_, Meta>, left: &SymInt, right: &SymInt) -> Result<(), OpError> {
    if left.is_eq(right) {
        return Ok(());
    }
    let shapes: Vec<String> =
        a.values.iter().filter_map(Value::as_tensor).map(|meta| format!("{:?}", meta.shape)).collect();
    invalid!("{}: shapes {} cannot be multiplied ({left} and {right})", a.schema.name, shapes.join(" and "))
}

/// An error unless the tensor added broadcasts to the result's shape.
fn expect_expands(a: &Args<'_, Meta>, shape: &[SymInt]) -> Result<(), OpError> {
    let added = a.tensor(0)?;
    let whole = broadcast(&[&added.shape, shape]);
    if added.rank() > shape.len() || !whole.is_ok_and(|w| w.iter().zip(shape).all(|(x, y)| x.is_eq(y))) {
        invalid!("{}: shape {:?} does not broadcast to {shape:?}", a.schema.name, added.shape);
    }
    Ok(())
}

fn infer_mm(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, y) = (of_rank(a, 0, 2)?, of_rank(a, 1, 2)?);
    expect_size(a, &x.shape[1], &y.shape[0])?;
    Ok(x.fresh(&[x.shape[0].clone(), y.shape[1].clone()], one_dtype(a)?).into())
}

fn infer_bmm(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    batch_product(a, 0)
}

fn batch_product(a: &Args<'_, Meta>, first: usize) -> Result<Value<Meta>, OpError> {
    let (x, y) = (of_rank(a, first, 3)?, of_rank(a, first + 1, 3)?);
    expect_size(a, &x.shape[0], &y.shape[0])?;
    expect_size(a, &x.shape[2], &y.shape[1])?;
    Ok(x.fresh(&[x.shape[0].clone(), x.shape[1].clone(), y.shape[2].clone()], one_dtype(a)?).into())
}

fn infer_addmm(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, y) = (of_rank(a, 1, 2)?, of_rank(a, 2, 2)?);
    expect_size(a, &x.shape[1], &y.shape[0])?;
    let shape = [x.shape[0].clone(), y.shape[1].clone()];
    expect_expands(a, &shape)?;
    Ok(x.fresh(&shape, one_dtype(a)?).into())
}

fn infer_baddbmm(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let out = batch_product(a, 1)?;
    if let Value::Tensor(meta) = &out {
        expect_expands(a, &meta.shape)?;
    }
    Ok(out)
}

fn infer_addbmm(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let Value::Tensor(batches) = batch_product(a, 1)? else { return Err(OpError::fault("a batch product")) };
    let shape = &batches.shape[1..];
    expect_expands(a, shape)?;
    Ok(batches.fresh(shape, batches.dtype).into())
}

fn infer_mv(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (matrix, vector) = (of_rank(a, 0, 2)?, of_rank(a, 1, 1)?);
    expect_size(a, &matrix.shape[1], &vector.shape[0])?;
    Ok(matrix.fresh(&matrix.shape[..1], one_dtype(a)?).into())
}

fn infer_addmv(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (matrix, vector) = (of_rank(a, 1, 2)?, of_rank(a, 2, 1)?);
    expect_size(a, &matrix.shape[1], &vector.shape[0])?;
    expect_expands(a, &matrix.shape[..1])?;
    Ok(matrix.fresh(&matrix.shape[..1], one_dtype(a)?).into())
}

fn infer_dot(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, y) = (of_rank(a, 0, 1)?, of_rank(a, 1, 1)?);
    expect_size(a, &x.shape[0], &y.shape[0])?;
    Ok(x.fresh(&[], one_dtype(a)?).into())
}

fn infer_addr(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, y) = (of_rank(a, 1, 1)?, of_rank(a, 2, 1)?);
    let shape = [x.shape[0].clone(), y.shape[0].clone()];
    expect_expands(a, &shape)?;
    let column = x.view(&[x.shape[0].clone(), 1.into()], &[x.stride[0].clone(), 1.into()], x.offset.clone());
    let dtype = operand_dtype([a.tensor(0)?, x, y]);
    for (index, name) in [(3, "beta"), (4, "alpha")] {
        if dtype.is_integral() && matches!(a.scalar(index)?, Scalar::Float(_) | Scalar::Complex(_)) {
            invalid!("{}: `{name}` must not be a float for integers", a.schema.name);
        }
    }
    Ok(crate::rules::same_as(&[a.tensor(0)?.clone(), column, y.clone()], dtype)?.into())
}

/// The shape of a product over the last two dimensions.
fn matmul_shape(a: &Args<'_, Meta>, x: &[SymInt], y: &[SymInt]) -> Result<SymDims, OpError> {
    if x.is_empty() || y.is_empty() {
        invalid!("{} needs operands with at least one dimension", a.schema.name);
    }
    expect_size(a, &x[x.len() - 1], &y[y.len().saturating_sub(2)])?;
    let mut shape = broadcast(&[&x[..x.len().saturating_sub(2)], &y[..y.len().saturating_sub(2)]])?;
    if x.len() > 1 {
        shape.push(x[x.len() - 2].clone());
    }
    if y.len() > 1 {
        shape.push(y[y.len() - 1].clone());
    }
    Ok(shape)
}

fn infer_matmul(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    Ok(x.fresh(&matmul_shape(a, &x.shape, &y.shape)?, one_dtype(a)?).into())
}

/// [`gemm::multiply_tensors`]; sizes that do not fit are a fault of the rule that inferred them.
fn multiply_tensors(
    out: &Tensor,
    lhs: &Tensor,
    rhs: &Tensor,
    scale: Scalar,
    keep: Option<Scalar>,
) -> Result<(), OpError> {
    gemm::multiply_tensors(out, lhs, rhs, scale, keep).map_err(|error| OpError::fault(error.to_string()))
}

fn infer_linear(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (input, weight) = (a.tensor(0)?, a.tensor(1)?);
    if !matches!(weight.rank(), 1 | 2) {
        invalid!("linear's `weight` must have one or two dimensions, it has shape {:?}", weight.shape);
    }
    let transposed: SymDims = weight.shape.iter().rev().cloned().collect();
    let mut shape = matmul_shape(a, &input.shape, &transposed)?;
    if let Some(bias) = a.opt_tensor(2)? {
        // torch adds it by other operators, which take it for another shape.
        if weight.rank() != 2 || bias.rank() > 1 {
            unsupported!("{} with a bias of shape {:?} and weights {:?}", a.schema.name, bias.shape, weight.shape);
        }
        shape = broadcast(&[&shape, &bias.shape])?;
    }
    Ok(input.fresh(&shape, one_dtype(a)?).into())
}

fn mm(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    multiply_tensors(&out, call.args.tensor(0)?, call.args.tensor(1)?, Scalar::Int(1), None)?;
    Ok(out.into())
}

/// Rows begin at multiples of 16 bytes.
fn infer_grouped_mm(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    let dtype = x.dtype;
    if !dtype.is_float() || y.dtype != dtype {
        invalid!("{} needs matrices of one floating-point type, got {dtype} and {}", a.schema.name, y.dtype);
    }
    if !matches!((x.rank(), y.rank()), (2 | 3, 2 | 3)) {
        invalid!("{} needs 2 or 3 dimensions, got shapes {:?} and {:?}", a.schema.name, x.shape, y.shape);
    }
    if a.opt_tensor(3)?.is_some() {
        unsupported!("{} with a bias", a.schema.name);
    }
    if a.dtype(4)?.is_some_and(|wanted| wanted != dtype) {
        invalid!("{}: the result has the operands' type, {dtype}", a.schema.name);
    }
    let offsets = a.opt_tensor(2)?;
    if offsets.is_some() != (x.rank() == 2 || y.rank() == 2) {
        invalid!("{} needs `offs` where an operand has 2 dimensions, and only there", a.schema.name);
    }
    let mut groups = (x.rank() == 3).then(|| &x.shape[0]).or((y.rank() == 3).then(|| &y.shape[0]));
    if let Some(offsets) = offsets {
        if offsets.rank() != 1 || offsets.dtype != DType::I32 {
            invalid!(
                "{}: `offs` must be a vector of int32, it is {} {:?}",
                a.schema.name,
                offsets.dtype,
                offsets.shape
            );
        }
        if let Some(count) = groups {
            expect_size(a, count, &offsets.shape[0])?;
        }
        groups = groups.or(Some(&offsets.shape[0]));
    } else {
        expect_size(a, &x.shape[0], &y.shape[0])?;
    }
    let last = |meta: &Meta, back: usize| meta.shape[meta.rank() - back].clone();
    expect_size(a, &last(x, 1), &last(y, 2))?;
    let (rows, columns) = (last(x, 2), last(y, 1));
    let step = 16 / dtype.size() as i64;
    let step = SymInt::Int(step);
    let width = (&columns + &step - SymInt::Int(1)).floor_div(&step) * &step;
    let batched = x.rank() == y.rank();
    let (mut shape, mut stride) = (vec![rows.clone(), columns], vec![width.clone(), SymInt::Int(1)]);
    if let Some(groups) = groups.filter(|_| batched) {
        shape.insert(0, groups.clone());
        stride.insert(0, rows * width);
    }
    Ok(Meta { device: x.device.clone(), ..Meta::strided(&shape, &stride, dtype) }.into())
}

/// What no group covers is zero.
fn grouped_mm(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, y) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let out = call.allocate(0)?;
    let Some(offsets) = call.args.opt_tensor(2)? else {
        multiply_tensors(&out, x, y, Scalar::Int(1), None)?;
        return Ok(out.into());
    };
    out.write_from(&Tensor::zeros(&[], out.dtype())?.expanded(out.shape()));
    let (rank_x, rank_y) = (x.rank(), y.rank());
    // The dimension of each that groups divide; where there is none, its first dimension counts groups.
    let (in_x, in_y, in_out) = match (rank_x, rank_y) {
        (2, 2) => (Some(1), Some(0), None),
        (2, _) => (Some(0), None, Some(0)),
        _ => (None, Some(1), Some(1)),
    };
    let mut start = 0;
    for (group, end) in offsets.to_i64s().into_iter().enumerate() {
        let whole = in_x.map_or_else(|| y.shape()[in_y.unwrap_or(0)], |dim| x.shape()[dim]);
        if end < start || end > whole {
            invalid!(
                "{}: `offs` must rise and end within {whole}, not go from {start} to {end}",
                call.args.schema.name
            );
        }
        let part = |tensor: &Tensor, dim: Option<usize>| -> Result<Tensor, OpError> {
            let mut layout = tensor.layout().clone();
            if let Some(dim) = dim {
                layout.offset += start * layout.stride[dim];
                layout.shape[dim] = end - start;
            } else {
                layout.offset += group as i64 * layout.stride[0];
                layout.shape.remove(0);
                layout.stride.remove(0);
            }
            Ok(tensor.view(tensor.dtype(), layout)?)
        };
        multiply_tensors(&part(&out, in_out)?, &part(x, in_x)?, &part(y, in_y)?, Scalar::Int(1), None)?;
        start = end;
    }
    Ok(out.into())
}

/// Fills the output with what the product is added to, unless its factor is zero.
fn start_with(out: &Tensor, added: &Tensor, beta: Scalar) -> Option<Scalar> {
    if !beta.to_bool() {
        return None;
    }
    out.write_from(&added.expanded(out.shape()));
    Some(beta)
}

/// A factor in the type of the result; a complex one has no place in a real product.
fn factor(call: &Call<'_>, index: usize) -> Result<Scalar, OpError> {
    let (value, dtype) = (call.args.scalar(index)?, call.out_meta(0)?.dtype);
    match value {
        Scalar::Complex(v) if v.im != 0.0 && !dtype.is_complex() => {
            invalid!("{}: {value} cannot scale a product of type {dtype}", call.args.schema.name)
        }
        value if dtype.is_integral() => Ok(Scalar::Int(value.to_i64())),
        value => Ok(value),
    }
}

fn addmm(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (beta, alpha) = (factor(call, 3)?, factor(call, 4)?);
    let out = call.allocate(0)?;
    let keep = start_with(&out, call.args.tensor(0)?, beta);
    multiply_tensors(&out, call.args.tensor(1)?, call.args.tensor(2)?, alpha, keep)?;
    Ok(out.into())
}

/// The sum over a batch is one product whose depth runs over all matrices.
fn addbmm(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (beta, alpha) = (factor(call, 3)?, factor(call, 4)?);
    let out = call.allocate(0)?;
    let (x, y) = (call.args.tensor(1)?, call.args.tensor(2)?);
    // The depth is large, so complex numbers are summed in double precision.
    let wide = if out.dtype() == DType::C64 { DType::C128 } else { out.dtype() };
    let (x, y, sum) = (x.cast(wide), y.cast(wide), out.cast(wide));
    let keep = start_with(&sum, &call.args.tensor(0)?.cast(wide), beta);
    let depth = x.shape()[0] * x.shape()[2];
    let x = x.permuted(&[1, 0, 2]).reshaped(&[x.shape()[1], depth]);
    let y = y.reshaped(&[depth, y.shape()[2]]);
    multiply_tensors(&sum, &x, &y, alpha, keep)?;
    out.write_from(&sum);
    Ok(out.into())
}

/// A vector as a matrix of one column.
fn column(vector: &Tensor) -> Result<Tensor, OpError> {
    let layout = vector.layout();
    Ok(vector.view(vector.dtype(), Layout::new(&[layout.shape[0], 1], &[layout.stride[0], 1], layout.offset))?)
}

fn mv(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let vector = column(call.args.tensor(1)?)?;
    multiply_tensors(&column(&out)?, call.args.tensor(0)?, &vector, Scalar::Int(1), None)?;
    Ok(out.into())
}

fn addmv(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (beta, alpha) = (factor(call, 3)?, factor(call, 4)?);
    let out = call.allocate(0)?;
    let keep = start_with(&out, call.args.tensor(0)?, beta);
    let vector = column(call.args.tensor(2)?)?;
    multiply_tensors(&column(&out)?, call.args.tensor(1)?, &vector, alpha, keep)?;
    Ok(out.into())
}

fn dot(call: &Call<'_>, left: impl Fn(Complex64) -> Complex64) -> Result<Value<Tensor>, OpError> {
    let (x, y) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let out = call.allocate(0)?;
    match out.dtype() {
        dtype if dtype.is_float() => {
            out.write_f64s(&[x.to_f64s().iter().zip(y.to_f64s()).map(|(x, y)| x * y).sum()]);
        }
        dtype if dtype.is_complex() => {
            out.write_c128s(&[x.to_c128s().into_iter().zip(y.to_c128s()).map(|(x, y)| left(x) * y).sum()]);
        }
        _ => {
            let terms = x.to_i64s().into_iter().zip(y.to_i64s()).map(|(x, y)| x.wrapping_mul(y));
            out.write_i64s(&[terms.fold(0, i64::wrapping_add)]);
        }
    }
    Ok(out.into())
}

fn addr(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (beta, alpha) = (call.args.scalar(3)?, call.args.scalar(4)?);
    let operands = [call.args.tensor(0)?, &column(call.args.tensor(1)?)?, call.args.tensor(2)?];
    let map = Pointwise::as_result(call, operands)?;
    // What is scaled by zero is not looked at.
    let used = beta.to_bool();
    let (b, a) = (beta.to_f64(), alpha.to_f64());
    let (bi, ai) = (beta.to_i64(), alpha.to_i64());
    let (bc, ac) = (beta.to_c128(), alpha.to_c128());
    map.f64(|[x, u, v]| if used { b * x + a * u * v } else { a * u * v })
        .i64(|[x, u, v]| bi.wrapping_mul(x).wrapping_add(ai.wrapping_mul(u).wrapping_mul(v)))
        .c128(|[x, u, v]| if used { bc * x + ac * u * v } else { ac * u * v })
        .finish()
}

/// The product of tensors whose batches broadcast, into a dense output.
fn matmul_into(out: &Tensor, x: &Tensor, y: &Tensor, keep: Option<Scalar>) -> Result<(), OpError> {
    // Vectors become one row or one column.
    let row = |t: &Tensor| if t.rank() == 1 { t.expanded(&[1, t.shape()[0]]) } else { t.clone() };
    let col = |t: &Tensor| if t.rank() == 1 { column(t) } else { Ok(t.clone()) };
    let (x, y) = (row(x), col(y)?);
    let (n, depth, p) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1], y.shape()[y.rank() - 1]);
    let one = Scalar::Int(1);
    if y.rank() == 2 {
        let rows: i64 = x.shape()[..x.rank() - 1].iter().product();
        let x = if x.rank() == 2 { x } else { x.reshaped(&[rows, depth]) };
        return multiply_tensors(&out.reshaped(&[rows, p]), &x, &y, one, keep);
    }
    let total = out.numel() as i64;
    let count = if n * p == 0 { 0 } else { total / (n * p) };
    let (lead, own) = (x.rank().max(y.rank()) - 2, |t: &Tensor| t.rank() - 2);
    let mut batch = vec![1; lead];
    for t in [&x, &y] {
        for (d, size) in t.shape()[..own(t)].iter().enumerate() {
            let slot = &mut batch[lead - own(t) + d];
            *slot = if *slot == 1 { *size } else { *slot };
        }
    }
    let flat = |t: &Tensor| {
        let matrix = &t.shape()[t.rank() - 2..];
        let wide = t.expanded(&[&batch, matrix].concat());
        if lead == 1 { wide } else { wide.reshaped(&[batch.iter().product(), matrix[0], matrix[1]]) }
    };
    if count == 0 {
        return Ok(());
    }
    multiply_tensors(&out.reshaped(&[count, n, p]), &flat(&x), &flat(&y), one, keep)
}

fn matmul(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    matmul_into(&out, call.args.tensor(0)?, call.args.tensor(1)?, None)?;
    Ok(out.into())
}

fn linear(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let (input, weight) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let weight = if weight.rank() == 2 { weight.permuted(&[1, 0]) } else { weight.clone() };
    let rows: i64 = input.shape()[..input.rank() - 1].iter().product();
    let columns = if weight.rank() == 2 { weight.shape()[1] } else { 1 };
    if out.numel() as i64 != rows.saturating_mul(columns) {
        unsupported!("a bias of linear that is larger than its result");
    }
    let keep = call.args.opt_tensor(2)?.and_then(|bias| start_with(&out, bias, Scalar::Int(1)));
    matmul_into(&out, input, &weight, keep)?;
    Ok(out.into())
}

fn decompose_linear(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (input, weight, bias) = (*a.tensor(0)?, *a.tensor(1)?, a.opt_tensor(2)?.copied());
    let transposed = if e.rank(weight) == 2 { e.one("aten.t.default", args![weight])? } else { weight };
    let Some(bias) = bias else { return e.call("aten.matmul.default", args![input, transposed]) };
    let rank = e.rank(input);
    let plain = e.rank(weight) == 2 && e.rank(bias) == 1;
    if rank == 2 && plain {
        return e.call("aten.addmm.default", args![bias, input, transposed]);
    }
    if plain && rank > 0 && e.meta(input).is_contiguous() {
        let shape = e.shape(input);
        let rows = shape[..rank - 1].iter().fold(SymInt::Int(1), |n, d| n * d);
        let flat = e.one("aten.view.default", args![input, vec![rows, shape[rank - 1].clone()]])?;
        let flat = e.one("aten.addmm.default", args![bias, flat, transposed])?;
        let mut whole = shape[..rank - 1].to_vec();
        whole.push(e.shape(weight)[0].clone());
        return e.call("aten.view.default", args![flat, whole]);
    }
    let product = e.one("aten.matmul.default", args![input, transposed])?;
    e.call("aten.add.Tensor", args![product, bias])
}

/// Whether the larger operand's leading dimensions are one dimension in memory, so that the product is one of two
/// matrices.
fn folds(large: &Meta, small: &Meta, first_is_matrix: bool) -> bool {
    if large.rank() < 3 || small.rank() > 2 {
        return false;
    }
    if small.requires_grad {
        return true;
    }
    if first_is_matrix {
        return false;
    }
    if large.shape.iter().any(|d| d.is_eq(0)) {
        return true;
    }
    (0..large.rank() - 2).all(|d| large.stride[d].is_eq(&large.stride[d + 1] * &large.shape[d + 1]))
}

fn decompose_matmul(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    match (e.rank(x), e.rank(y)) {
        (1, 1) => return e.call("aten.dot.default", args![x, y]),
        (2, 1) => return e.call("aten.mv.default", args![x, y]),
        (1, 2) => {
            let row = e.one("aten.unsqueeze.default", args![x, 0])?;
            let row = e.one("aten.mm.default", args![row, y])?;
            return e.call("aten.squeeze.dim", args![row, 0]);
        }
        (2, 2) => return e.call("aten.mm.default", args![x, y]),
        (0, _) | (_, 0) => invalid!("matmul needs operands with at least one dimension"),
        _ => {}
    }
    let first_is_larger = e.rank(x) >= e.rank(y);
    let (large, small) = if first_is_larger {
        (x, y)
    } else {
        let small = if e.rank(x) == 2 { e.one("aten.t.default", args![x])? } else { x };
        (e.one("aten.transpose.int", args![y, -2, -1])?, small)
    };
    if folds(e.meta(large), e.meta(small), e.rank(x) == 2) {
        return folded(e, large, small, first_is_larger);
    }
    let (xs, ys) = (e.shape(x), e.shape(y));
    let leading = |shape: &SymDims| shape[..shape.len().saturating_sub(2)].to_vec();
    let mut shape: Vec<SymInt> = broadcast(&[&leading(&xs), &leading(&ys)])?.to_vec();
    let count = shape.iter().fold(SymInt::Int(1), |n, d| n * d);
    let last = |shape: &SymDims, back: usize| shape[shape.len() - back].clone();
    let rows = if xs.len() > 1 { last(&xs, 2) } else { 1.into() };
    let left = [rows.clone(), last(&xs, 1)];
    let left = batched(e, x, &shape, &count, &left)?;
    let right = if ys.len() > 1 {
        batched(e, y, &shape, &count, &[last(&ys, 2), last(&ys, 1)])?
    } else {
        let flat = batched(e, y, &shape, &count, &[last(&ys, 1)])?;
        e.one("aten.unsqueeze.default", args![flat, 2])?
    };
    let product = e.one("aten.bmm.default", args![left, right])?;
    if xs.len() > 1 {
        shape.push(rows);
    }
    if ys.len() > 1 {
        shape.push(last(&ys, 1));
    }
    e.call("aten.view.default", args![product, shape])
}

/// The product of a folded tensor and a matrix or vector.
fn folded(e: &mut dyn Emit, large: Handle, small: Handle, first_is_larger: bool) -> Result<Value<Handle>, OpError> {
    let sizes = e.shape(large);
    let (last, lead) = (sizes[sizes.len() - 1].clone(), &sizes[..sizes.len() - 1]);
    let rows = lead.iter().fold(SymInt::Int(1), |n, d| n * d);
    let flat = e.one("aten.reshape.default", args![large, vec![rows, last]])?;
    let mut shape = lead.to_vec();
    if e.rank(small) == 1 {
        let product = e.one("aten.mv.default", args![flat, small])?;
        return e.call("aten.view.default", args![product, shape]);
    }
    shape.push(e.shape(small)[1].clone());
    let product = e.one("aten.mm.default", args![flat, small])?;
    let product = e.one("aten.view.default", args![product, shape])?;
    if first_is_larger {
        return Ok(product.into());
    }
    let transposed = e.one("aten.transpose.int", args![product, -2, -1])?;
    e.call("aten.contiguous.default", args![transposed])
}

/// A tensor expanded to a batch shape and flattened to one batch dimension before `inner`.
fn batched(
    e: &mut dyn Emit,
    tensor: Handle,
    batch: &[SymInt],
    count: &SymInt,
    inner: &[SymInt],
) -> Result<Handle, OpError> {
    let wide = e.one("aten.expand.default", args![tensor, [batch, inner].concat()])?;
    e.one("aten.reshape.default", args![wide, [std::slice::from_ref(count), inner].concat()])
}

/// The three operands' shapes with dimensions of size one put in.
fn trilinear_shapes(a: &Args<'_, Meta>) -> Result<[SymDims; 3], OpError> {
    let mut shapes: [SymDims; 3] = Default::default();
    let total = a.tensor(0)?.rank() + a.ints(3)?.len();
    for (index, shape) in shapes.iter_mut().enumerate() {
        let (meta, added) = (a.tensor(index)?, wrap_dims(&a.ints(3 + index)?, total)?);
        if meta.rank() + added.len() != total {
            invalid!("_trilinear: operand {index} has {} dimensions instead of {total}", meta.rank() + added.len());
        }
        let mut own = meta.shape.iter().cloned();
        *shape = (0..total)
            .map(|d| if added.contains(&d) { SymInt::Int(1) } else { own.next().unwrap_or(SymInt::Int(1)) })
            .collect();
    }
    Ok(shapes)
}

fn infer_trilinear(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let [x, y, z] = trilinear_shapes(a)?;
    let whole = broadcast(&[&x, &y, &z])?;
    let summed = wrap_dims(&a.ints(6)?, whole.len())?;
    let shape: SymDims =
        whole.iter().enumerate().filter(|(d, _)| !summed.contains(d)).map(|(_, size)| size.clone()).collect();
    Ok(a.tensor(0)?.fresh(&shape, one_dtype(a)?).into())
}

fn trilinear(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let metas: Vec<Value<Meta>> = call.args.values.iter().map(|v| v.map(&mut |t| Meta::of(t))).collect();
    let shapes = trilinear_shapes(&Args { schema: call.args.schema, values: &metas })?;
    let ints = |dims: &SymDims| dims.iter().map(|d| d.as_int().unwrap_or(1)).collect::<Vec<i64>>();
    let whole = ints(&broadcast(&[&shapes[0], &shapes[1], &shapes[2]])?);
    let summed = wrap_dims(&call.args.ints(6)?, whole.len())?;
    let kept = (0..whole.len()).filter(|d| !summed.contains(d));
    let order: Vec<usize> = kept.chain(summed.iter().copied()).collect();
    let pick = |dims: &[i64]| order.iter().map(|d| dims[*d]).collect::<Vec<i64>>();
    let operands = [call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?];
    let strides: Vec<Vec<i64>> = operands
        .iter()
        .zip(&shapes)
        .map(|(tensor, shape)| pick(tensor.reshaped(&ints(shape)).expanded(&whole).stride()))
        .collect();
    let inner = summed.iter().map(|d| whole[*d]).product::<i64>().max(1) as usize;
    let walk = Walk::new(&pick(&whole), &[&strides[0], &strides[1], &strides[2]]);
    if out.dtype().is_integral() {
        out.write_i64s(&sum_products(operands.map(Tensor::to_i64s), &walk, inner, out.numel()));
    } else if out.dtype().is_float() {
        out.write_f64s(&sum_products(operands.map(Tensor::to_f64s), &walk, inner, out.numel()));
    } else {
        out.write_c128s(&sum_products(operands.map(Tensor::to_c128s), &walk, inner, out.numel()));
    }
    Ok(out.into())
}

/// The sums of `inner` products each, in the order of the walk.
fn sum_products<T: Factor>(data: [Vec<T>; 3], walk: &Walk, inner: usize, count: usize) -> Vec<T> {
    let mut results = vec![T::ZERO; count];
    let mut seen = 0;
    walk.each_row(|at| {
        for j in 0..walk.row as i64 {
            let [x, y, z] = std::array::from_fn(|i| data[i][(at[i] + j * walk.row_strides[i]) as usize]);
            let sum = &mut results[seen / inner];
            *sum = sum.plus(x.times(y).times(z));
            seen += 1;
        }
    });
    results
}
