//! Reading elements at places that tensors name.

use pyrite_ir::{Args, Call, Emit, Handle, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, Vjp, args, invalid};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::{DType, Scalar, Tensor};

use super::scatter::{excluded, fill_where};
use crate::decompositions::index as by;
use crate::derivatives::index as d;
use crate::kernels::indexing::{self, Negative, Plan, along, lead};
use crate::lowerings as to_loops;
use crate::moved;
use crate::rules::{broadcast, pointwise_strides, wrap_dim};

const INTEGER: Vjp = Vjp::NonDifferentiable("its result holds positions");

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        "The elements at the places that index tensors or masks name, a dimension each.",
        index_infer,
        index,
    )
    .tolerance(Tolerance::Exact)
    .every_type()
    .lower(to_loops::index::index)
    .tags(&[Tag::Core, Tag::DataDependentShape])
    .tolerance(Tolerance::Exact)
    .derivative(d::index)
    .samples(&[
        "f32[4, 3], [i64[5]{-4..4}]",
        "f32[4, 3, 2], [None, i64[2, 2]{0..3}]",
        "bf16[4, 3, 2]<[1, 8, 4], [i64[3]{0..4}, None, i64[2, 1]{0..2}]",
        "i64[4, 3], [b8[4, 3]]",
        "f32[4, 3], [b8[4], i64[]{0..3}]",
        "c64[2, 3, 4, 5]<[60, 1, 15, 3], [i64[2]{0..2}]",
        "f32[0, 3], [i64[0]]",
    ]),
    OpDef::kernel(
        "aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        "As `index`, where the caller vouches for the indices; they are checked all the same.",
        index_infer,
        index,
    )
    .tags(&[Tag::DataDependentShape])
    .tolerance(Tolerance::Exact)
    .derivative(d::index)
    .decompose(by::unsafe_index)
    .samples(&["f32[4, 3], [i64[5]{0..4}, None]"]),
    OpDef::kernel(
        "aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
        "The elements at the indices where a mask holds, a fill value elsewhere; wrong indices there do not matter.",
        masked_index_infer,
        masked_index,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::masked_index)
    .samples(&[
        "f32[4], b8[5], [i64[5]], 7",
        "f64[4, 3], b8[5], [i64[5], i64[5]], 0.5",
        "i64[0, 3], b8[3], [i64[2]], 1",
    ]),
    OpDef::kernel(
        "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
        "The slices along a dimension that an index names.",
        index_select_infer,
        index_select,
    )
    .tolerance(Tolerance::Exact)
    .every_type()
    .lower(to_loops::index::index_select)
    .tags(&[Tag::Core])
    .tolerance(Tolerance::Exact)
    .derivative(d::index_select)
    .samples(&[
        "f32[4, 3], 1, i64[5]{0..3}",
        "b8[4, 3]<[1, 4], 0, i32[2]{0..4}",
        "f16[], 0, i64[1]{0..1}",
        "f32[3, 0], 0, i64[2]{0..3}",
    ]),
    OpDef::kernel(
        "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
        "At each place of the index tensor, the element that lies there along a dimension.",
        gather_infer,
        gather,
    )
    .tolerance(Tolerance::Exact)
    .lower(to_loops::index::gather)
    .tags(&[Tag::Core])
    .tolerance(Tolerance::Exact)
    .derivative(d::gather)
    .samples(&[
        "f32[4, 3], 1, i64[2, 5]{0..3}",
        "i16[4, 3]<[1, 4], 0, i64[6, 2]{0..4}",
        "f32[], 0, i64[]{0..1}",
        "f32[4, 3], 0, i64[0, 3]",
    ]),
    OpDef::kernel(
        "aten::take(Tensor self, Tensor index) -> Tensor",
        "The elements at positions that count through the whole tensor.",
        take_infer,
        take,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::take)
    .decompose(by::take)
    .samples(&["f32[4, 3], i64[2, 2]{-12..12}", "c64[3, 2]<[1, 3], i64[4]{0..6}"]),
    OpDef::composite(
        "aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
        "`gather` with tensor and indices broadcast; without a dimension, over the flattened tensor.",
        take_along_dim,
    )
    .samples(&["f32[4, 3], i64[1, 3]{-4..4}, 0", "c64[4, 3], i64[4, 1]{-3..3}, -1", "f32[4, 3], i64[5]{0..12}"]),
    OpDef::kernel(
        "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
        "The elements where a mask holds, in order.",
        masked_select_infer,
        masked_select,
    )
    .tolerance(Tolerance::Exact)
    .tags(&[Tag::DataDependentShape])
    .tolerance(Tolerance::Exact)
    .derivative(d::masked_select)
    .samples(&["f32[4, 3], b8[4, 3]", "i64[3]<[2], b8[4, 1]", "f32[], b8[]"]),
    OpDef::kernel(
        "aten::nonzero(Tensor self) -> Tensor",
        "The coordinates of the elements that are not zero, a row each.",
        |args| nonzero_meta(args.tensor(0)?, SymEnv::new().unbacked()),
        nonzero,
    )
    .tags(&[Tag::Core, Tag::DataDependentShape])
    .tolerance(Tolerance::Exact)
    .vjp(INTEGER)
    .samples(&["b8[4, 3]", "f32[5]", "c64[2, 2]", "i64[0, 3]", "f32[]"]),
    OpDef::kernel(
        "aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
        "The first coordinates of elements that are not zero, filled up to a given number of rows.",
        nonzero_static_infer,
        nonzero_static,
    )
    .tolerance(Tolerance::Exact)
    .vjp(INTEGER)
    .samples(&["b8[4, 3], size=3", "f32[5], size=9, fill_value=7", "i64[2, 2], size=0"]),
    OpDef::composite("aten::argwhere(Tensor self) -> Tensor", "`nonzero` by another name.", |e, a| {
        Ok(e.one("aten.nonzero.default", &[a.value(0).clone()])?.into())
    })
    .tags(&[Tag::DataDependentShape])
    .samples(&["b8[4, 3]"]),
];

fn check_index(index: &Meta) -> Result<(), OpError> {
    if !index.dtype.is_integral() || index.dtype == DType::Bool {
        invalid!("an index tensor must hold integers, not {}", index.dtype);
    }
    Ok(())
}

/// The result of indexing by tensors. `count` gives the number of true elements of the i-th index, a mask.
///
/// PyTorch lays the result out as a pointwise operator on the tensor without its indexed dimensions, and the indices.
fn indexed(x: &Meta, indices: &[Option<Meta>], count: &mut dyn FnMut(usize) -> SymInt) -> Result<Meta, OpError> {
    let mut found: Vec<(usize, Meta)> = Vec::new();
    let mut dim = 0;
    for (position, index) in indices.iter().enumerate() {
        let Some(index) = index else {
            dim += 1;
            continue;
        };
        if matches!(index.dtype, DType::Bool | DType::U8) {
            let fits = x
                .shape
                .get(dim..dim + index.rank())
                .is_some_and(|sizes| sizes.iter().zip(&index.shape).all(|(own, mask)| own.is_eq(mask)));
            if !fits {
                invalid!("a mask of shape {:?} does not fit shape {:?} at dimension {dim}", index.shape, x.shape);
            }
            let count = count(position);
            for _ in 0..index.rank() {
                found.push((dim, Meta::contiguous(std::slice::from_ref(&count), DType::I64)));
                dim += 1;
            }
        } else {
            check_index(index)?;
            found.push((dim, Meta { dtype: DType::I64, ..index.clone() }));
            dim += 1;
        }
    }
    if dim > x.rank() {
        invalid!("too many indices: {dim} for a tensor of {} dimensions", x.rank());
    }
    let shapes: Vec<&[SymInt]> = found.iter().map(|(_, index)| &*index.shape).collect();
    let middle = broadcast(&shapes)?;
    let dims: Vec<usize> = found.iter().map(|(dim, _)| *dim).collect();
    let kept: Vec<usize> = (0..x.rank()).filter(|d| !dims.contains(d)).collect();
    let (before, after) = kept.split_at(lead(&dims, x.rank()));
    let pick = |from: &SymDims, dims: &[usize]| dims.iter().map(|d| from[*d].clone()).collect::<SymDims>();
    let join = |left: SymDims, middle: &[SymInt], right: SymDims| -> SymDims {
        left.into_iter().chain(middle.iter().cloned()).chain(right).collect()
    };
    let shape = join(pick(&x.shape, before), &middle, pick(&x.shape, after));
    let zeros: SymDims = middle.iter().map(|_| SymInt::Int(0)).collect();
    let restrided = x.view(&shape, &join(pick(&x.stride, before), &zeros, pick(&x.stride, after)), SymInt::Int(0));
    let ones = |count: usize| (0..count).map(|_| SymInt::Int(1)).collect::<SymDims>();
    let mut operands = vec![restrided];
    for (_, index) in &found {
        let missing = middle.len() - index.rank();
        let sizes = join(ones(missing), &index.shape, SymDims::new());
        let mut strides: SymDims = (0..missing).map(|_| SymInt::Int(0)).chain(index.stride.iter().cloned()).collect();
        for ((stride, own), full) in strides.iter_mut().zip(&sizes).zip(&middle) {
            if own.is_eq(1) && !full.is_eq(1) {
                *stride = SymInt::Int(0);
            }
        }
        let last = strides.last().cloned().unwrap_or(SymInt::Int(1));
        let first = match (strides.first(), middle.first()) {
            (Some(stride), Some(size)) => stride * size,
            _ => SymInt::Int(1),
        };
        let strides = join(
            before.iter().map(|_| first.clone()).collect(),
            &strides,
            after.iter().map(|_| last.clone()).collect(),
        );
        operands.push(index.view(&join(ones(before.len()), &middle, ones(after.len())), &strides, SymInt::Int(0)));
    }
    let operands: Vec<&Meta> = operands.iter().collect();
    let stride = pointwise_strides(&operands, &shape);
    Ok(Meta { device: x.device.clone(), ..Meta::strided(&shape, &stride, x.dtype) })
}

fn index_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let indices: Vec<Option<Meta>> = args.opt_tensors(1)?.into_iter().map(Option::<&Meta>::cloned).collect();
    Ok(indexed(args.tensor(0)?, &indices, &mut |_| SymEnv::new().unbacked())?.into())
}

/// A tensor as inference describes it once the counts of masks are known.
fn allocate_indexed(x: &Tensor, indices: &[Option<&Tensor>]) -> Result<Tensor, OpError> {
    let metas: Vec<Option<Meta>> = indices.iter().map(|index| index.map(Meta::of)).collect();
    let mut count = |position: usize| {
        let mask = indices[position].map(Tensor::to_bools).unwrap_or_default();
        SymInt::from(mask.into_iter().filter(|v| *v).count())
    };
    let layout = indexed(&Meta::of(x), &metas, &mut count)?.layout()?;
    Ok(Tensor::empty_strided(&layout.shape, &layout.stride, x.dtype())?)
}

fn index(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, indices) = (call.args.tensor(0)?, call.args.opt_tensors(1)?);
    let out = allocate_indexed(x, &indices)?;
    pick(x, &indices, Negative::Wrap, &out)?;
    Ok(out.into())
}

/// Copies the indexed elements into a fresh tensor of the result's shape.
pub(super) fn pick(x: &Tensor, indices: &[Option<&Tensor>], negative: Negative, out: &Tensor) -> Result<(), OpError> {
    let plan = Plan::new(x.shape(), x.stride(), indices, negative)?;
    if plan.shape != out.shape() {
        return Err(OpError::fault(format!("indexing gives shape {:?}, inference says {:?}", plan.shape, out.shape())));
    }
    let base = x.layout().offset;
    moved!(x.dtype(), T => {
        let from = x.storage().read::<T>();
        let mut to = out.storage().write::<T>();
        plan.each_row(out.stride(), |at, place, (len, from_step, to_step)| {
            let (at, place) = ((base + at) as usize, place as usize);
            if from_step == 1 && to_step == 1 {
                to[place..place + len].copy_from_slice(&from[at..at + len]);
            } else {
                for j in 0..len {
                    to[place + j * to_step as usize] = from[at + j * from_step as usize];
                }
            }
        });
    });
    Ok(())
}

fn masked_index_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, mask) = (args.tensor(0)?, args.tensor(1)?);
    let indices: Vec<Option<Meta>> = args.opt_tensors(2)?.into_iter().map(Option::<&Meta>::cloned).collect();
    let result = indexed(x, &indices, &mut |_| SymEnv::new().unbacked())?;
    Ok(x.fresh(&broadcast(&[&result.shape, &mask.shape])?, x.dtype).into())
}

fn masked_index(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, mask, indices) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.opt_tensors(2)?);
    let out = call.allocate(0)?;
    let fill = Tensor::scalar(call.args.scalar(3)?, x.dtype());
    if x.numel() == 0 {
        out.write_from(&fill.expanded(out.shape()));
        return Ok(out.into());
    }
    let picked = allocate_indexed(x, &indices)?;
    pick(x, &indices, Negative::Clamp, &picked)?;
    out.write_from(&picked.expanded(out.shape()));
    fill_where(&out, &excluded(&mask.expanded(out.shape())), &fill);
    Ok(out.into())
}

fn index_select_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, index) = (args.tensor(0)?, args.tensor(2)?);
    let dim = wrap_dim(args.int(1)?, x.rank())?;
    check_index(index)?;
    if index.rank() > 1 {
        invalid!("index_select wants an index of one dimension, not {}", index.rank());
    }
    let mut shape = x.shape.clone();
    match shape.get_mut(dim) {
        Some(size) => *size = index.numel(),
        None if index.numel().is_eq(1) => {}
        None => invalid!("index_select on a tensor without dimensions wants one index"),
    }
    Ok(x.fresh(&shape, x.dtype).into())
}

fn index_select(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, index, out) = (call.args.tensor(0)?, call.args.tensor(2)?, call.allocate(0)?);
    let dim = wrap_dim(call.args.int(1)?, x.rank())?;
    if x.rank() == 0 {
        indexing::bounded(index.to_i64s()[0], 1, Negative::Refuse)?;
        out.write_from(x);
        return Ok(out.into());
    }
    let flat = index.reshaped(&[index.numel() as i64]);
    let mut indices = vec![None; dim];
    indices.push(Some(&flat));
    pick(x, &indices, Negative::Refuse, &out)?;
    Ok(out.into())
}

/// Checks an index tensor of the kind that `gather` and `scatter` take: as many dimensions as the tensor, and within
/// it except along `dim`.
pub(super) fn check_along(x: &Meta, dim: usize, index: &Meta, within: &str) -> Result<(), OpError> {
    check_index(index)?;
    if index.numel().is_eq(0) {
        return Ok(());
    }
    if x.rank().max(1) != index.rank().max(1) {
        invalid!("an index of {} dimensions for a tensor {within} of {}", index.rank(), x.rank());
    }
    for (d, (own, size)) in x.shape.iter().zip(&index.shape).enumerate() {
        if d != dim && size.is_gt(own) {
            invalid!("an index of shape {:?} exceeds the tensor {within} of shape {:?}", index.shape, x.shape);
        }
    }
    Ok(())
}

fn gather_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, index) = (args.tensor(0)?, args.tensor(2)?);
    check_along(x, wrap_dim(args.int(1)?, x.rank())?, index, "to read")?;
    Ok(x.fresh(&index.shape, x.dtype).into())
}

fn gather(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, index, out) = (call.args.tensor(0)?, call.args.tensor(2)?, call.allocate(0)?);
    let dim = wrap_dim(call.args.int(1)?, x.rank())?;
    if index.numel() == 0 {
        return Ok(out.into());
    }
    let (base, size) = (x.layout().offset as usize, x.shape().get(dim).copied().unwrap_or(1));
    let strides = if x.rank() == 0 { vec![1; index.rank()] } else { x.stride().to_vec() };
    let places = if index.rank() == 0 { vec![0; strides.len()] } else { out.stride().to_vec() };
    let index = index.reshaped(if index.rank() == 0 { &[1][..strides.len()] } else { index.shape() });
    moved!(x.dtype(), T => {
        let from = x.storage().read::<T>();
        let mut to = out.storage().write::<T>();
        along(&index, dim, (size, &strides), &places, |at, place| to[place] = from[base + at])?;
    });
    Ok(out.into())
}

fn take_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, index) = (args.tensor(0)?, args.tensor(1)?);
    check_index(index)?;
    Ok(x.fresh(&index.shape, x.dtype).into())
}

fn take(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, index, out) = (call.args.tensor(0)?, call.args.tensor(1)?, call.allocate(0)?);
    let flat = x.reshaped(&[x.numel() as i64]);
    pick(&flat, &[Some(index)], Negative::Wrap, &out)?;
    Ok(out.into())
}

fn take_along_dim(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (x, index) = (*a.tensor(0)?, *a.tensor(1)?);
    let Some(dim) = a.opt_int(2)? else {
        let flat = [Value::from(vec![-1i64])];
        let x = e.one("aten.reshape.default", &[x.into(), flat[0].clone()])?;
        let index = e.one("aten.reshape.default", &[index.into(), flat[0].clone()])?;
        return Ok(e.one("aten.gather.default", args![x, 0, index])?.into());
    };
    let (own, named) = (e.shape(x), e.shape(index));
    if own.len() != named.len() {
        invalid!(
            "take_along_dim wants as many dimensions in the indices ({}) as in the tensor ({})",
            named.len(),
            own.len()
        );
    }
    let dim = wrap_dim(dim, own.len())?;
    let except = |shape: &SymDims, size: &SymInt| {
        let mut shape = shape.clone();
        if let Some(slot) = shape.get_mut(dim) {
            *slot = size.clone();
        }
        shape
    };
    let one = SymInt::Int(1);
    let common = broadcast(&[&except(&own, &one), &except(&named, &one)])?;
    let full = |shape: &SymDims| shape.get(dim).map_or_else(|| common.clone(), |size| except(&common, size));
    let x = e.one("aten.expand.default", args![x, &full(&own)[..]])?;
    let index = e.one("aten.expand.default", args![index, &full(&named)[..]])?;
    // Negative indices count from the end, as `gather` alone does not let them.
    let size = own.get(dim).cloned().unwrap_or(one);
    let negative = e.one("aten.lt.Scalar", args![index, 0])?;
    let wrapped = e.one("aten.add.Tensor", &[index.into(), Value::Int(size)])?;
    let index = e.one("aten.where.self", args![negative, wrapped, index])?;
    Ok(e.one("aten.gather.default", args![x, dim, index])?.into())
}

fn masked_select_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, mask) = (args.tensor(0)?, args.tensor(1)?);
    if mask.dtype != DType::Bool {
        invalid!("masked_select wants a mask of bools, not {}", mask.dtype);
    }
    broadcast(&[&x.shape, &mask.shape])?;
    Ok(x.fresh(&[SymEnv::new().unbacked()], x.dtype).into())
}

fn masked_select(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, mask) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let shape = broadcast(&[&Meta::of(x).shape, &Meta::of(mask).shape])?;
    let shape = Meta::contiguous(&shape, x.dtype()).layout()?.shape;
    let mask = mask.expanded(&shape).to_bools();
    let places: Vec<i64> = mask.into_iter().enumerate().filter(|(_, v)| *v).map(|(at, _)| at as i64).collect();
    let (count, x) = (places.len() as i64, x.expanded(&shape));
    let flat = x.reshaped(&[x.numel() as i64]);
    let out = Tensor::empty(&[count], x.dtype())?;
    pick(&flat, &[Some(&Tensor::from_slice(&places, &[count]))], Negative::Refuse, &out)?;
    Ok(out.into())
}

/// Coordinates lie in memory one dimension after the other.
fn nonzero_meta(x: &Meta, count: SymInt) -> Result<Value<Meta>, OpError> {
    let shape = [count.clone(), SymInt::from(x.rank())];
    Ok(Meta { device: x.device.clone(), ..Meta::strided(&shape, &[SymInt::Int(1), count], DType::I64) }.into())
}

fn nonzero(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    let found = indexing::nonzero(x);
    let count = found.first().map_or_else(|| x.to_bools().into_iter().filter(|v| *v).count(), Vec::len) as i64;
    let flat = Tensor::from_slice(&found.concat(), &[count * x.rank() as i64]);
    let layout = pyrite_tensor::Layout::new(&[count, x.rank() as i64], &[1, count], 0);
    Ok(flat.view(DType::I64, layout)?.into())
}

fn nonzero_static_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, size) = (args.tensor(0)?, args.sym(1)?);
    if size.is_lt(0) {
        invalid!("nonzero_static wants a size that is not negative, not {size}");
    }
    Ok(x.fresh(&[size, SymInt::from(x.rank())], DType::I64).into())
}

fn nonzero_static(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
    let fill = Tensor::scalar(Scalar::Int(call.args.int(2)?), DType::I64);
    out.write_from(&fill.expanded(out.shape()));
    let found = indexing::nonzero(x);
    let (size, rank) = (out.shape()[0] as usize, x.rank());
    let mut to = out.storage().write::<i64>();
    for (d, coordinates) in found.iter().enumerate() {
        for (row, value) in coordinates.iter().take(size).enumerate() {
            to[row * rank + d] = *value;
        }
    }
    drop(to);
    Ok(out.into())
}
