//! Looking up rows of a table, and the gradients of that.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use super::index::pick;
use crate::derivatives::embedding as d;
use crate::kernels::indexing::{Negative, bounded};
use crate::lowerings as to_loops;
use pyrite_kernels::carried;
use pyrite_kernels::dense;
use pyrite_kernels::gemm::Factor;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
        "The rows of a table that indices name.",
        embedding_infer,
        embedding,
    ).tolerance(Tolerance::Exact).every_type()
    .lower(to_loops::index::embedding).tags(&[Tag::Core])
    .tolerance(Tolerance::Exact)
    .derivative(d::embedding)
    .samples(&["f32[5, 4], i64[2, 3]{0..5}", "bf16[5, 4]<[1, 5], i32[3]{0..5}, 2", "f32[5, 4], i64[]{0..5}", "f32[5, 4], i64[0]"]),
    OpDef::kernel(
        "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
        "The gradient of the table of `embedding`: rows summed where they were read, none for the padding row.",
        embedding_backward_infer,
        embedding_backward,
    )
    .lower(to_loops::index::embedding_dense_backward).tags(&[Tag::Core])
    .derivative(d::embedding_dense_backward)
    .samples(&["f32[2, 3, 4], i64[2, 3]{0..5}, 5, -1, False", "f64[6, 4], i64[6]{0..3}, 5, 1, True", "bf16[0, 4], i64[0], 5, -1, False"]),
    OpDef::kernel(
        "aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
        "A copy of a table with the named rows scaled down to a largest norm.",
        |args| {
            let x = args.tensor(0)?;
            let stride = crate::rules::preserved_strides(x);
            Ok(Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &stride, x.dtype) }.into())
        },
        embedding_renorm,
    )
    .samples(&["f32[5, 4], i64[3]{0..5}, 1.0, 2.0", "f64[5, 4], i64[3]{0..5}, 0.5, inf"]),
    OpDef::written(
        "aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
        "`embedding_renorm` in place.",
        "aten.embedding_renorm.default",
    )
    .samples(&["f32[5, 4], i64[3]{0..5}, 1.0, 2.0"]),
    OpDef::kernel(
        "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        "Sums, means or maxima of the rows that bags of indices name, with what the gradient needs of them.",
        |args| bag_infer(args, Sizes::Exact),
        embedding_bag,
    )
    .tags(&[Tag::Core])
    .derivative(d::embedding_bag)
    .samples(&[
        "f32[5, 4], i64[6]{0..5}, i64[3]{0..1}",
        "f32[5, 4], i64[6]{0..5}, i64[3]{0..1}, False, 1, False, None, False, 2",
        "f64[5, 4], i64[6]{0..5}, i64[3]{0..1}, False, 2",
        "f32[5, 4], i64[6]{0..5}, i64[1]{0..1}, False, 0, False, f32[6]",
    ]),
    OpDef::kernel(
        "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        "As `_embedding_bag`, where no gradient is wanted.",
        |args| bag_infer(args, Sizes::WithLastOffset),
        embedding_bag,
    )
    .derivative(d::embedding_bag)
    .samples(&["f32[5, 4], i64[6]{0..5}, i64[3]{0..1}", "f32[5, 4], i64[6]{0..5}, i64[3]{0..1}, False, 1"]),
];

fn check_indices(indices: &Meta) -> Result<(), OpError> {
    if !matches!(indices.dtype, DType::I64 | DType::I32) {
        invalid!("an embedding wants indices of 32 or 64 bits, not {}", indices.dtype);
    }
    Ok(())
}

fn embedding_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (weight, indices) = (args.tensor(0)?, args.tensor(1)?);
    if weight.rank() != 2 {
        invalid!("the table of an embedding has two dimensions, not {}", weight.rank());
    }
    check_indices(indices)?;
    let shape: SymDims = indices.shape.iter().chain(&weight.shape[1..]).cloned().collect();
    Ok(weight.fresh(&shape, weight.dtype).into())
}

fn embedding(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (weight, indices, out) = (call.args.tensor(0)?, call.args.tensor(1)?, call.allocate(0)?);
    pick(weight, &[Some(indices)], Negative::Refuse, &out)?;
    Ok(out.into())
}

fn embedding_backward_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (grad, indices, rows) = (args.tensor(0)?, args.tensor(1)?, args.sym(2)?);
    check_indices(indices)?;
    let Some(width) = grad.shape.last() else { invalid!("the gradient of an embedding has at least one dimension") };
    if rows.is_lt(0) {
        invalid!("an embedding cannot have {rows} rows");
    }
    Ok(grad.fresh(&[rows, width.clone()], grad.dtype).into())
}

fn embedding_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, indices, out) = (call.args.tensor(0)?, call.args.tensor(1)?, call.allocate(0)?);
    let (padding, by_frequency) = (call.args.int(3)?, call.args.bool(4)?);
    let (rows, width) = (out.shape()[0], out.shape()[1] as usize);
    let indices = indices.to_i64s();
    if indices.len() * width != grad.numel() {
        invalid!("a gradient of shape {:?} for {} indices", grad.shape(), indices.len());
    }
    let mut counts = vec![0i64; rows as usize];
    for index in &indices {
        if *index != padding {
            counts[bounded(*index, rows, Negative::Refuse)? as usize] += 1;
        }
    }
    carried!(grad.dtype(), T => dense::fill::<T, _>(&out, |out| {
        out.fill(T::ZERO);
        dense::read::<T, _>(grad, |grad| {
            for (row, index) in indices.iter().enumerate().filter(|(_, index)| **index != padding) {
                let share = if by_frequency { 1.0 / counts[*index as usize] as f64 } else { 1.0 };
                let share = <T as pyrite_tensor::Element>::from_f64(share);
                let to = &mut out[*index as usize * width..][..width];
                for (to, from) in to.iter_mut().zip(&grad[row * width..][..width]) {
                    *to = to.plus(from.times(share));
                }
            }
        });
    }));
    Ok(out.into())
}

fn embedding_renorm(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
    let (largest, power) = (call.args.float(2)?, call.args.float(3)?);
    if x.rank() != 2 {
        invalid!("the table of an embedding has two dimensions, not {}", x.rank());
    }
    let (rows, width) = (x.shape()[0], x.shape()[1] as usize);
    let mut named = call.args.tensor(1)?.to_i64s();
    named.sort_unstable();
    named.dedup();
    let mut values = x.to_f64s();
    for index in named {
        let row = &mut values[bounded(index, rows, Negative::Refuse)? as usize * width..][..width];
        let norm = if power.is_infinite() {
            row.iter().fold(0.0, |most: f64, v| most.max(v.abs()))
        } else {
            row.iter().map(|v| v.abs().powf(power)).sum::<f64>().powf(1.0 / power)
        };
        if norm > largest {
            let scale = largest / (norm + 1e-7);
            row.iter_mut().for_each(|v| *v *= scale);
        }
    }
    out.write_f64s(&values);
    Ok(out.into())
}

/// How a bag's rows become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Sum,
    Mean,
    Max,
}

/// How many entries the sizes of bags that are only summed have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sizes {
    /// One per bag.
    Exact,
    /// One per offset, the end of the last bag included.
    WithLastOffset,
}

fn mode(number: i64) -> Result<Mode, OpError> {
    match number {
        0 => Ok(Mode::Sum),
        1 => Ok(Mode::Mean),
        2 => Ok(Mode::Max),
        other => invalid!("the mode of an embedding bag is 0 (sum), 1 (mean) or 2 (max), not {other}"),
    }
}

fn bag_infer(args: &Args<'_, Meta>, sizes: Sizes) -> Result<Value<Meta>, OpError> {
    let (weight, indices, offsets) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let (mode, samples) = (mode(args.int(4)?)?, args.opt_tensor(6)?);
    if weight.rank() != 2 || indices.rank() != 1 || offsets.rank() != 1 {
        invalid!("an embedding bag wants a table of two dimensions, indices and offsets of one");
    }
    check_indices(indices)?;
    check_indices(offsets)?;
    if let Some(samples) = samples {
        if mode != Mode::Sum {
            invalid!("an embedding bag takes weights of samples only in mode sum");
        }
        if samples.dtype != weight.dtype {
            invalid!("an embedding bag wants weights of samples of type {}, not {}", weight.dtype, samples.dtype);
        }
        crate::rules::expect_same_shape("the weights of samples", &samples.shape, &indices.shape)?;
    }
    let last = args.bool(7)?;
    if last && offsets.numel().is_lt(1) {
        invalid!("an embedding bag with the last offset included wants at least one offset");
    }
    let bags = if last { &offsets.shape[0] - 1 } else { offsets.shape[0].clone() };
    let width = weight.shape[1].clone();
    let index_type = indices.dtype.promote(offsets.dtype);
    // The plain sums of single and half precision are computed without listing which bag each index is in.
    let plain = mode == Mode::Sum
        && args.int(8)? < 0
        && matches!(weight.dtype, DType::F32 | DType::F16 | DType::BF16)
        && weight.stride[1].is_eq(1)
        && samples.is_none_or(|s| s.stride[0].is_eq(1));
    let listed = if plain { SymInt::Int(0) } else { indices.shape[0].clone() };
    let counted = match (mode, sizes) {
        (Mode::Sum, Sizes::WithLastOffset) => offsets.shape[0].clone(),
        _ => bags.clone(),
    };
    let fresh = |shape: &[SymInt]| weight.fresh(shape, index_type);
    let largest =
        if mode == Mode::Max { fresh(&[bags.clone(), width.clone()]) } else { fresh(std::slice::from_ref(&counted)) };
    Ok(vec![weight.fresh(&[bags, width], weight.dtype), fresh(&[listed]), fresh(&[counted]), largest].into())
}

fn embedding_bag(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (weight, indices, offsets) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let (mode, samples, padding) = (mode(call.args.int(4)?)?, call.args.opt_tensor(6)?, call.args.int(8)?);
    let outs = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?, call.allocate(3)?];
    let (bags, width, rows) = (outs[0].shape()[0] as usize, outs[0].shape()[1] as usize, weight.shape()[0]);
    let (indices, mut offsets) = (indices.to_i64s(), offsets.to_i64s());
    let count = indices.len() as i64;
    if offsets.first().is_some_and(|first| *first != 0) {
        invalid!("the first offset of an embedding bag is 0, not {}", offsets[0]);
    }
    offsets.truncate(bags);
    offsets.push(if call.args.bool(7)? { call.args.tensor(2)?.to_i64s()[bags] } else { count });
    if offsets.windows(2).any(|pair| pair[0] > pair[1]) || offsets.iter().any(|offset| *offset > count) {
        invalid!("the offsets of an embedding bag must ascend and stay within the {count} indices");
    }
    let table = weight.to_f64s();
    let samples = samples.map(Tensor::to_f64s);
    let padding = if padding < 0 && padding != -1 { padding + rows } else { padding };
    let mut result = vec![0.0; bags * width];
    let mut bag_of = vec![0i64; indices.len()];
    let mut sizes = vec![0i64; bags];
    let mut largest = vec![0i64; bags * width];
    for bag in 0..bags {
        let out = &mut result[bag * width..][..width];
        for at in offsets[bag] as usize..offsets[bag + 1] as usize {
            bag_of[at] = bag as i64;
            let row = bounded(indices[at], rows, Negative::Refuse)?;
            if row == padding {
                continue;
            }
            let row_values = &table[row as usize * width..][..width];
            let scale = samples.as_ref().map_or(1.0, |s| s[at]);
            for (j, (out, value)) in out.iter_mut().zip(row_values).enumerate() {
                match mode {
                    Mode::Max if sizes[bag] == 0 || *value > *out => {
                        *out = *value;
                        largest[bag * width + j] = row;
                    }
                    Mode::Max => {}
                    Mode::Sum | Mode::Mean => *out += scale * value,
                }
            }
            sizes[bag] += 1;
        }
        if mode == Mode::Mean && sizes[bag] > 0 {
            out.iter_mut().for_each(|v| *v /= sizes[bag] as f64);
        }
    }
    outs[0].write_f64s(&result);
    if outs[1].numel() > 0 {
        outs[1].write_i64s(&bag_of);
    }
    if mode == Mode::Sum {
        sizes = vec![0; outs[2].numel()];
    }
    outs[2].write_i64s(&sizes);
    outs[3].write_i64s(if mode == Mode::Max { &largest } else { &sizes });
    Ok(Vec::from(outs).into())
}
