//! Padding, and images as columns of patches.

use num_complex::Complex64;
use pyrite_ir::{Args, Emit, Handle, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, args, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Element, Tensor};

use crate::decompositions::image as by;
use crate::derivatives::pad as d;
use crate::lowerings as to_loops;
use crate::rules::{Around, expect_same_shape, format_strides, preserved_strides, suggested_format, views};
use pyrite_kernels::{accumulate, fill_with, remap};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
        "One value around a tensor, two numbers per dimension from the last on; negative ones cut off.",
        |a| {
            let x = a.tensor(0)?;
            let pad = a.syms(1)?;
            let shape = padded_shape(x, &pad)?;
            let fresh = x.fresh(&shape, x.dtype);
            let stride = if pad.iter().all(|p| p.is_le(0)) {
                preserved_strides(&cropped(x, &pad)?)
            } else {
                format_strides(Some(suggested_format(x)), &fresh)?
            };
            Ok(Meta { stride, ..fresh }.into())
        },
        |call| {
            let (x, out, pad) = (call.args.tensor(0)?, call.allocate(0)?, call.args.syms(1)?);
            fill_with(&out, call.args.scalar(2)?);
            // What is cut off the source is not cut off the result, and the other way round.
            let opposite: Vec<SymInt> = pad.iter().map(|p| -p).collect();
            let from = x.view(x.dtype(), cropped(&Meta::of(x), &pad)?.layout()?)?;
            let to = out.view(out.dtype(), cropped(&Meta::of(&out), &opposite)?.layout()?)?;
            if from.numel() > 0 {
                to.write_from(&from);
            }
            Ok(out.into())
        },
    ).tolerance(Tolerance::Exact).every_type()
    .lower(to_loops::copy::constant_pad_nd).tags(&[Tag::Core])
    .derivative(d::constant_pad)
    .samples(&["f32[2, 3], [1, 2]", "i64[2, 3], [0, 1, -1, 1], 7", "f32[3], [-1, -1], 1.5", "b8[0, 2], [1, 1], True"]),
    padding("aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", REFLECT, &["f32[2, 4], [1, 2]"]).tolerance(Tolerance::Exact).tags(&[Tag::Core]).decompose(by::reflection_pad),
    padding("aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", REFLECT, &["f32[1, 2, 3, 4], [1, 2, 0, 1]"]).tolerance(Tolerance::Exact)
        .tags(&[Tag::Core]).decompose(by::reflection_pad),
    padding("aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", REFLECT, &["f32[1, 2, 2, 3, 4], 1"]).tolerance(Tolerance::Exact)
        .tags(&[Tag::Core]).decompose(by::reflection_pad),
    padding("aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", REPLICATE, &["f32[2, 4], [1, 6]"]).tolerance(Tolerance::Exact).decompose(by::replication_pad),
    padding("aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", REPLICATE, &["f32[1, 2, 3, 4], [1, 2, 0, 5]"]).tolerance(Tolerance::Exact)
        .tags(&[Tag::Core]).decompose(by::replication_pad),
    padding("aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", REPLICATE, &["f32[1, 2, 2, 3, 4], 1"]).tolerance(Tolerance::Exact)
        .tags(&[Tag::Core]).decompose(by::replication_pad),
    padding_grad(
        "aten::reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        &["f32[2, 7], f32[2, 4], [1, 2]"],
    )
    .decompose(by::reflection_pad_backward),
    padding_grad(
        "aten::reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        &["f32[1, 2, 4, 7], f32[1, 2, 3, 4], [1, 2, 0, 1]"],
    )
    .decompose(by::reflection_pad_backward),
    padding_grad(
        "aten::reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        &["f32[1, 2, 4, 5, 6], f32[1, 2, 2, 3, 4], 1"],
    )
    .decompose(by::reflection_pad_backward),
    padding_grad(
        "aten::replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        &["f32[2, 7], f32[2, 4], [1, 2]"],
    )
    .decompose(by::replication_pad_backward),
    padding_grad(
        "aten::replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        &["f32[1, 2, 4, 7], f32[1, 2, 3, 4], [1, 2, 0, 1]"],
    )
    .decompose(by::replication_pad_backward),
    padding_grad(
        "aten::replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        &["f32[1, 2, 4, 5, 6], f32[1, 2, 2, 3, 4], 1"],
    )
    .decompose(by::replication_pad_backward),
    OpDef::kernel(
        "aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
        "A tensor continued periodically.",
        |a| {
            let (x, pad) = (a.tensor(0)?, a.syms(1)?);
            let shape = padded_shape(x, &pad)?;
            for (d, [before, after]) in per_dim(x.rank(), &pad)? {
                if before.is_gt(&x.shape[d]) || after.is_gt(&x.shape[d]) {
                    invalid!("padding {before} and {after} goes around size {} more than once", x.shape[d]);
                }
                if Around::new(&x.shape[d], &before, &after).kept.is_eq(0) && !shape[d].is_eq(0) {
                    invalid!("padding {before} and {after} leaves nothing of size {} to go on with", x.shape[d]);
                }
            }
            Ok(x.fresh(&shape, x.dtype).into())
        },
        |call| {
            let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
            let rank = x.shape().len();
            let mut tables = tables(x.shape(), out.shape(), &[], |i, _| i);
            for (pair, d) in call.args.ints(1)?.chunks_exact(2).zip((0..rank).rev()) {
                let around = Around::new(&x.shape()[d].into(), &pair[0].into(), &pair[1].into());
                let known = |size: &SymInt| size.as_int().unwrap_or_default();
                let (first, kept, before) = (known(&around.first), known(&around.kept), known(&around.before));
                tables[d].iter_mut().for_each(|i| *i = first + (*i - before).rem_euclid(kept));
            }
            remap(x, &out, &tables);
            Ok(out.into())
        },
    )
    .derivative(d::pad_circular)
    .decompose(by::pad_circular)
    .samples(&["f32[1, 2, 4], [1, 2]", "f32[1, 2, 3, 4], [1, 1, -1, 2]", "f64[1, 2, 4, 5], [-1, 1, 2, -2]"]),
    OpDef::composite(
        "aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
        "A tensor padded with a value, its mirror image, its border or its other end.",
        pad,
    )
    .samples(&["f32[2, 3], [1, 2]", "f32[1, 2, 4], [1, 2], 'reflect'", "f32[1, 2, 3, 4], [1, 1, 1, 1], 'replicate'", "f32[1, 2, 4], [1, 2], 'circular'", "f32[3], [1, 1], 'constant', 2.5"]),
    OpDef::kernel(
        "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        "Every patch of an image as a column.",
        |a| {
            let x = a.tensor(0)?;
            if !matches!(x.rank(), 3 | 4) {
                invalid!("im2col wants three or four dimensions, not {}", x.rank());
            }
            if x.dtype.is_integral() && x.dtype != DType::Bool {
                invalid!("im2col is not defined for {}", x.dtype);
            }
            let lead = x.rank() - 3;
            let windows = windows(a, 1, &[x.shape[lead + 1].clone(), x.shape[lead + 2].clone()])?;
            let kernel = a.ints(1)?;
            let mut shape: SymDims = x.shape[..lead].into();
            shape.push(&x.shape[lead] * kernel[0] * kernel[1]);
            shape.push(&windows[0] * &windows[1]);
            Ok(x.fresh(&shape, x.dtype).into())
        },
        |call| {
            let (x, out) = (call.args.tensor(0)?.contiguous(), call.allocate(0)?);
            fill_with(&out, pyrite_tensor::Scalar::Int(0));
            let patches = Patches::of(&call.args, 1, x.shape())?;
            match x.dtype().size() {
                1 => unfold::<u8>(&x, &out, &patches),
                2 => unfold::<i16>(&x, &out, &patches),
                4 => unfold::<i32>(&x, &out, &patches),
                8 => unfold::<i64>(&x, &out, &patches),
                _ => unfold::<Complex64>(&x, &out, &patches),
            }
            Ok(out.into())
        },
    )
    .derivative(d::im2col)
    .samples(&["f32[1, 2, 4, 5], [2, 3], [1, 1], [0, 1], [1, 2]", "f64[2, 4, 5], 2, 2, 0, 1"]),
    OpDef::kernel(
        "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        "An image in which every pixel sums the patches that hold it.",
        |a| {
            let (x, size) = (a.tensor(0)?, a.syms(1)?);
            if !matches!(x.rank(), 2 | 3) {
                invalid!("col2im wants two or three dimensions, not {}", x.rank());
            }
            let lead = x.rank() - 2;
            let windows = windows(a, 2, &[size[0].clone(), size[1].clone()])?;
            let kernel = a.ints(2)?;
            let area = SymInt::Int(kernel[0]) * kernel[1];
            if !x.shape[lead].modulo(&area).is_eq(0) || !x.shape[lead + 1].is_eq(&windows[0] * &windows[1]) {
                invalid!("columns of shape {:?} are not those of an image of {size:?}", x.shape);
            }
            let mut shape: SymDims = x.shape[..lead].into();
            shape.push(x.shape[lead].floor_div(&area));
            shape.extend(size);
            Ok(x.fresh(&shape, x.dtype).into())
        },
        |call| {
            let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
            let patches = Patches::of(&call.args, 2, out.shape())?;
            if x.dtype().is_complex() {
                out.write_c128s(&folded(&x.to_c128s(), &out, &patches, |a: Complex64, b| a + b));
            } else {
                out.write_f64s(&folded(&x.to_f64s(), &out, &patches, |a: f64, b| a + b));
            }
            Ok(out.into())
        },
    )
    .tags(&[Tag::Core])
    .derivative(d::col2im)
    .samples(&["f32[1, 12, 9], [4, 5], [2, 3], [1, 1], [0, 1], [1, 2]", "f64[8, 8], [4, 6], 2, 2, 0, 1"]),
];

/// How an index outside of a dimension is brought back into it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Border {
    Reflect,
    Replicate,
}

const REFLECT: &str = "A tensor continued by its mirror image.";
const REPLICATE: &str = "A tensor continued by its border.";

impl Border {
    fn of<T>(a: &Args<'_, T>) -> Self {
        if a.schema.name.contains("reflection") { Self::Reflect } else { Self::Replicate }
    }

    fn index(self, i: i64, size: i64) -> i64 {
        match self {
            Self::Reflect if i < 0 => -i,
            Self::Reflect if i >= size => 2 * (size - 1) - i,
            Self::Reflect => i,
            Self::Replicate => i.clamp(0, size - 1),
        }
    }
}

const fn padding(schema: &'static str, doc: &'static str, samples: &'static [&'static str]) -> OpDef {
    OpDef::kernel(
        schema,
        doc,
        |a| {
            let x = a.tensor(0)?;
            if x.dtype == DType::Bool {
                invalid!("{} does not pad bools; convert them to uint8", a.schema.name);
            }
            let shape = bordered(a, x, &a.syms(1)?)?;
            let fresh = x.fresh(&shape, x.dtype);
            let stride = format_strides(Some(suggested_format(x)), &fresh)?;
            Ok(Meta { stride, ..fresh }.into())
        },
        |call| {
            let (x, out, border) = (call.args.tensor(0)?, call.allocate(0)?, Border::of(&call.args));
            remap(x, &out, &tables(x.shape(), out.shape(), &call.args.ints(1)?, |i, size| border.index(i, size)));
            Ok(out.into())
        },
    )
    .derivative(d::padding)
    .samples(samples)
}

const fn padding_grad(schema: &'static str, samples: &'static [&'static str]) -> OpDef {
    OpDef::kernel(
        schema,
        "The gradient of the padding: every element sums the places that show it.",
        |a| {
            let (grad, x) = (a.tensor(0)?, a.tensor(1)?);
            expect_same_shape(&a.schema.name, &grad.shape, &bordered(a, x, &a.syms(2)?)?)?;
            let fresh = x.fresh(&x.shape, x.dtype);
            let stride = format_strides(Some(suggested_format(x)), &fresh)?;
            Ok(Meta { stride, ..fresh }.into())
        },
        |call| {
            let (grad, out, border) = (call.args.tensor(0)?, call.allocate(0)?, Border::of(&call.args));
            accumulate(
                grad,
                &out,
                &tables(out.shape(), grad.shape(), &call.args.ints(2)?, |i, size| border.index(i, size)),
            );
            Ok(out.into())
        },
    )
    .derivative(d::padding_backward)
    .samples(samples)
}

/// The dimensions with their padding before and after.
fn per_dim(rank: usize, pad: &[SymInt]) -> Result<Vec<(usize, [SymInt; 2])>, OpError> {
    if !pad.len().is_multiple_of(2) || pad.len() > 2 * rank {
        invalid!("{} paddings for {rank} dimensions", pad.len());
    }
    Ok(pad.chunks_exact(2).enumerate().map(|(n, pair)| (rank - 1 - n, [pair[0].clone(), pair[1].clone()])).collect())
}

fn padded_shape(x: &Meta, pad: &[SymInt]) -> Result<SymDims, OpError> {
    let mut shape = x.shape.clone();
    for (d, [before, after]) in per_dim(x.rank(), pad)? {
        shape[d] = &shape[d] + before + after;
        if shape[d].is_lt(0) {
            invalid!("padding {pad:?} leaves a negative size of dimension {d} in {:?}", x.shape);
        }
    }
    Ok(shape)
}

/// The tensor without what negative paddings cut off.
fn cropped(x: &Meta, pad: &[SymInt]) -> Result<Meta, OpError> {
    let cut = |p: SymInt| if p.is_lt(0) { -&p } else { SymInt::Int(0) };
    let mut view = x.clone();
    for (d, [before, after]) in per_dim(x.rank(), pad)? {
        let (before, after) = (cut(before), cut(after));
        let length = &view.shape[d] - &before - &after;
        let length = if length.is_lt(0) { SymInt::Int(0) } else { length };
        let start = if before.is_gt(&view.shape[d]) { view.shape[d].clone() } else { before };
        view = views::narrowed(&view, d as i64, &start, &length)?;
    }
    Ok(view)
}

/// The shape of a reflected or replicated tensor.
fn bordered(a: &Args<'_, Meta>, x: &Meta, pad: &[SymInt]) -> Result<SymDims, OpError> {
    let dims = pad.len() / 2;
    if x.rank() != dims + 1 && x.rank() != dims + 2 {
        invalid!("{} wants {} or {} dimensions, not {}", a.schema.name, dims + 1, dims + 2, x.rank());
    }
    let batched = x.rank() == dims + 2;
    if x.shape.iter().skip(usize::from(batched)).any(|d| d.is_eq(0)) {
        invalid!("{} wants sizes other than zero, not {:?}", a.schema.name, x.shape);
    }
    let shape = padded_shape(x, pad)?;
    for (d, [before, after]) in per_dim(x.rank(), pad)? {
        let size = &x.shape[d];
        if Border::of(a) == Border::Reflect && (before.is_ge(size) || after.is_ge(size)) {
            invalid!("a mirror image of size {size} is too small for paddings {before} and {after}");
        }
        if shape[d].is_lt(1) {
            invalid!("paddings {before} and {after} leave nothing of size {size}");
        }
    }
    Ok(shape)
}

/// For each dimension, which source index every index of the padded tensor shows.
fn tables(shape: &[i64], padded: &[i64], pad: &[i64], index: impl Fn(i64, i64) -> i64) -> Vec<Vec<i64>> {
    (0..shape.len())
        .map(|d| {
            let before = pad.get(2 * (shape.len() - 1 - d)).copied().unwrap_or(0);
            (0..padded[d]).map(|i| index(i - before, shape[d])).collect()
        })
        .collect()
}

fn pad(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (x, mode) = (*a.tensor(0)?, a.str(2)?);
    let pad = a.syms(1)?;
    if mode == "constant" {
        return e.call("aten.constant_pad_nd.default", args![x, pad, a.opt_float(3)?.unwrap_or(0.0)]);
    }
    if !matches!(a.value(3), Value::None) && a.opt_float(3)? != Some(0.0) {
        invalid!("padding mode '{mode}' takes no value");
    }
    let dims = pad.len() / 2;
    let rank = e.rank(x);
    if !(1..=3).contains(&dims) || (rank != dims + 1 && rank != dims + 2) {
        unsupported!("padding mode '{mode}' of {rank} dimensions by {} numbers", pad.len());
    }
    let name = match mode {
        "circular" => return e.call("aten._pad_circular.default", args![x, pad]),
        "reflect" => "reflection",
        "replicate" => "replication",
        other => invalid!("unknown padding mode '{other}'"),
    };
    e.call(&format!("aten.{name}_pad{dims}d.default"), args![x, pad])
}

/// How many windows lie along height and width; kernel, dilation, padding and stride are arguments from `first` on.
fn windows(a: &Args<'_, Meta>, first: usize, size: &[SymInt; 2]) -> Result<[SymInt; 2], OpError> {
    let (kernel, dilation, padding, stride) =
        (a.ints(first)?, a.ints(first + 1)?, a.ints(first + 2)?, a.ints(first + 3)?);
    let mut counts = [SymInt::Int(0), SymInt::Int(0)];
    for d in 0..2 {
        let pick = |list: &[i64]| list.get(d).or(list.first()).copied().unwrap_or(0);
        let (kernel, dilation, padding, stride) = (pick(&kernel), pick(&dilation), pick(&padding), pick(&stride));
        if kernel <= 0 || dilation <= 0 || padding < 0 || stride <= 0 {
            invalid!("kernel {kernel}, dilation {dilation}, padding {padding}, stride {stride} describe no window");
        }
        let reach = SymInt::Int(dilation) * (kernel - 1) + 1;
        let room = &size[d] + SymInt::Int(padding) * 2 - reach;
        if room.is_lt(0) {
            invalid!("a window of {kernel} elements {dilation} apart does not fit size {}", size[d]);
        }
        counts[d] = room.floor_div(&stride.into()) + 1;
    }
    Ok(counts)
}

/// The correspondence of the pixels of an image and the cells of its columns.
struct Patches {
    /// Images times channels.
    planes: usize,
    /// Pixels of a plane.
    plane: usize,
    width: usize,
    /// For every row of the kernel, the image row that each window row shows; `None` in the padding.
    rows: Vec<Vec<Option<usize>>>,
    /// The same for columns.
    columns: Vec<Vec<Option<usize>>>,
}

impl Patches {
    fn of(a: &Args<'_, Tensor>, first: usize, image: &[i64]) -> Result<Self, OpError> {
        let lead = image.len() - 2;
        let [height, width] = [image[lead], image[lead + 1]];
        let lists = [a.ints(first)?, a.ints(first + 1)?, a.ints(first + 2)?, a.ints(first + 3)?];
        let axis = |d: usize, size: i64| {
            let [kernel, dilation, padding, stride] =
                [0, 1, 2, 3].map(|n: usize| lists[n].get(d).or(lists[n].first()).copied().unwrap_or(1));
            let count = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
            (0..kernel)
                .map(|k| {
                    (0..count)
                        .map(|w| {
                            usize::try_from(w * stride - padding + k * dilation).ok().filter(|i| (*i as i64) < size)
                        })
                        .collect()
                })
                .collect()
        };
        Ok(Self {
            planes: image[..lead].iter().product::<i64>() as usize,
            plane: (height * width) as usize,
            width: width as usize,
            rows: axis(0, height),
            columns: axis(1, width),
        })
    }

    /// Calls `visit` with the position of every cell of the columns and of the pixel that it shows.
    fn each(&self, mut visit: impl FnMut(usize, usize)) {
        let mut cell = 0;
        for plane in 0..self.planes {
            for rows in &self.rows {
                for columns in &self.columns {
                    for row in rows {
                        for column in columns {
                            if let (Some(row), Some(column)) = (row, column) {
                                visit(cell, plane * self.plane + row * self.width + column);
                            }
                            cell += 1;
                        }
                    }
                }
            }
        }
    }
}

/// Copies pixels into dense columns.
fn unfold<T: Element>(image: &Tensor, columns: &Tensor, patches: &Patches) {
    let read = image.storage().read::<T>();
    let mut written = columns.storage().write::<T>();
    let base = image.layout().offset as usize;
    patches.each(|cell, pixel| written[cell] = read[base + pixel]);
}

/// The sum over the columns for every pixel.
fn folded<T: Element>(columns: &[T], image: &Tensor, patches: &Patches, add: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sums = vec![<T as Element>::from_i64(0); image.numel()];
    patches.each(|cell, pixel| sums[pixel] = add(sums[pixel], columns[cell]));
    sums
}

#[cfg(test)]
mod tests {
    use pyrite_tensor::DType;

    use super::*;

    #[test]
    fn a_mirror_does_not_repeat_the_border_and_a_replica_does() {
        let shown = |border: Border| (-2..5).map(|i| border.index(i, 3)).collect::<Vec<_>>();
        assert_eq!(shown(Border::Reflect), [2, 1, 0, 1, 2, 1, 0]);
        assert_eq!(shown(Border::Replicate), [0, 0, 0, 1, 2, 2, 2]);
    }

    #[test]
    fn paddings_are_read_from_the_last_dimension_on() {
        let x = Meta::of_shape(&[2, 3], DType::F32);
        let pad: Vec<SymInt> = [1, 2, 3, 4].into_iter().map(SymInt::Int).collect();
        assert_eq!(padded_shape(&x, &pad).unwrap()[..], [SymInt::Int(9), SymInt::Int(6)]);
    }
}
