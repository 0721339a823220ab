//! Joining, repeating and rearranging whole tensors.

use pyrite_ir::{Args, Call, Emit, Handle, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, args, invalid};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::{DType, Layout, MemoryFormat, Tensor};

use crate::decompositions::image as by;
use crate::derivatives::{join as d, view::self_adjoint};
use crate::lowerings as to_loops;
use crate::rules::{
    broadcast, format_strides, operand_dtype, preserved_strides, suggested_format, wrap_dim, wrap_dims,
};
use pyrite_kernels::remap;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
        "Tensors one after the other along a dimension.",
        cat_rule,
        cat,
    ).tolerance(Tolerance::Exact).every_type()
    .lower(to_loops::copy::cat).tags(&[Tag::Core])
    .derivative(d::cat)
    .samples(&[
        "[f32[2, 3], f32[1, 3]]",
        "[f32[2, 3], i64[2, 1]], -1",
        "[f32[0], f32[2, 3], f32[2, 0]], 1",
        "[f32[1, 2, 2, 2]<[8, 1, 4, 2], f32[1, 2, 2, 2]<[8, 1, 4, 2]], 1",
    ]),
    same_cat("aten::concat(Tensor[] tensors, int dim=0) -> Tensor"),
    same_cat("aten::concatenate(Tensor[] tensors, int dim=0) -> Tensor"),
    OpDef::composite(
        "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
        "Tensors of one shape along a new dimension.",
        stack,
    ).tolerance(Tolerance::Exact)
    .samples(&["[f32[2, 3], f32[2, 3]]", "[f32[2], i64[2]], -1", "[f32[], f32[]]"]),
    OpDef::composite("aten::hstack(Tensor[] tensors) -> Tensor", "`cat` along the second dimension (the first of vectors).", |e, a| {
        let tensors = at_least(e, a, 1)?;
        let dim = i32::from(tensors.first().is_none_or(|x| e.rank(*x) != 1));
        e.call("aten.cat.default", args![tensors, dim])
    })
    .samples(&["[f32[2], f32[3]]", "[f32[2, 1], f32[2, 3]]", "[f32[], f32[]]"]),
    OpDef::composite("aten::vstack(Tensor[] tensors) -> Tensor", "`cat` along the first dimension of matrices.", |e, a| {
        let tensors = at_least(e, a, 2)?;
        e.call("aten.cat.default", args![tensors, 0])
    })
    .samples(&["[f32[3], f32[2, 3]]"]),
    OpDef::composite("aten::row_stack(Tensor[] tensors) -> Tensor", "`vstack` under its other name.", |e, a| {
        e.call("aten.vstack.default", a.values)
    })
    .samples(&["[f32[3], f32[2, 3]]"]),
    OpDef::composite("aten::dstack(Tensor[] tensors) -> Tensor", "`cat` along the third dimension.", |e, a| {
        let tensors = at_least(e, a, 3)?;
        e.call("aten.cat.default", args![tensors, 2])
    })
    .samples(&["[f32[2, 3], f32[2, 3]]"]),
    OpDef::composite("aten::column_stack(Tensor[] tensors) -> Tensor", "Vectors as the columns of a matrix.", |e, a| {
        let mut columns = Vec::new();
        for x in a.tensors(0)? {
            columns.push(match e.rank(*x) {
                0 => e.one("aten.reshape.default", args![*x, vec![1i64, 1]])?,
                1 => e.one("aten.unsqueeze.default", args![*x, 1])?,
                _ => *x,
            });
        }
        e.call("aten.hstack.default", args![columns])
    })
    .samples(&["[f32[3], f32[3, 2]]"]),
    OpDef::composite("aten::atleast_1d(Tensor self) -> Tensor", "With at least one dimension.", |e, a| {
        Ok(with_rank(e, *a.tensor(0)?, 1)?.into())
    })
    .samples(&["f32[]", "f32[2]"]),
    OpDef::composite("aten::atleast_2d(Tensor self) -> Tensor", "With at least two dimensions.", |e, a| {
        Ok(with_rank(e, *a.tensor(0)?, 2)?.into())
    })
    .samples(&["f32[]", "f32[2]"]),
    OpDef::composite("aten::atleast_3d(Tensor self) -> Tensor", "With at least three dimensions.", |e, a| {
        Ok(with_rank(e, *a.tensor(0)?, 3)?.into())
    })
    .samples(&["f32[]", "f32[2]", "f32[2, 3]"]),
    OpDef::kernel(
        "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor",
        "The whole tensor repeated along each dimension.",
        |a| {
            let (x, repeats) = (a.tensor(0)?, a.syms(1)?);
            if repeats.len() < x.rank() || repeats.iter().any(|r| r.is_lt(0)) {
                invalid!("repeats {repeats:?} do not fit a tensor of {} dimensions", x.rank());
            }
            let lead = repeats.len() - x.rank();
            let shape: SymDims = repeats
                .iter()
                .enumerate()
                .map(|(d, r)| if d < lead { r.clone() } else { r * &x.shape[d - lead] })
                .collect();
            Ok(x.fresh(&shape, x.dtype).into())
        },
        repeat,
    ).tolerance(Tolerance::Exact).every_type()
    .tags(&[Tag::Core])
    .derivative(d::repeat)
    .decompose(by::repeat)
    .samples(&["f32[2, 3], [2, 1, 2]", "i64[2, 3]<[1, 2], [1, 2]", "f32[], [3]", "f32[2], [0]"]),
    OpDef::composite("aten::tile(Tensor self, SymInt[] dims) -> Tensor", "`repeat`, with ones in front where repeats are missing.", |e, a| {
        let (x, mut repeats) = (*a.tensor(0)?, a.syms(1)?);
        while repeats.len() < e.rank(x) {
            repeats.insert(0, SymInt::Int(1));
        }
        e.call("aten.repeat.default", args![x, repeats])
    })
    .samples(&["f32[2, 3], [2]", "f32[3], [2, 2]"]),
    OpDef::kernel(
        "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
        "Every index as often as its number of repeats says.",
        |a| {
            let repeats = a.tensor(0)?;
            if repeats.rank() > 1 || !matches!(repeats.dtype, DType::I32 | DType::I64) {
                invalid!("repeats are a vector of i32 or i64, not {repeats}");
            }
            let length = a.opt_sym(1)?.unwrap_or_else(|| SymEnv::new().unbacked());
            Ok(repeats.fresh(&[length], repeats.dtype).into())
        },
        |call| {
            let repeats = call.args.tensor(0)?;
            let mut indices = Vec::new();
            for (index, count) in repeats.to_i64s().into_iter().enumerate() {
                if !(0..=1 << 32).contains(&count) {
                    invalid!("{count} repeats");
                }
                indices.extend(std::iter::repeat_n(index as i64, count as usize));
            }
            if let Some(wanted) = call.args.opt_int(1)?
                && wanted != indices.len() as i64
            {
                invalid!("output_size is {wanted}, the repeats sum to {}", indices.len());
            }
            let out = Tensor::empty(&[indices.len() as i64], repeats.dtype())?;
            out.write_i64s(&indices);
            Ok(out.into())
        },
    )
    .tags(&[Tag::DataDependentShape])
    .no_derivative("indices are integers")
    .samples(&["i64[4]{0..3}", "i32[0]"]),
    OpDef::composite(
        "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        "Every index of a dimension repeated; of the flattened tensor when there is no dimension.",
        |e, a| {
            let (x, dim) = flat_unless_dim(e, a)?;
            let repeats = a.sym(1)?;
            if repeats.is_lt(0) {
                invalid!("repeat_interleave wants repeats that are not negative, not {repeats}");
            }
            let mut shape = e.shape(x);
            let at = wrap_dim(dim, shape.len())?;
            let joined = &shape[at] * &repeats;
            let column = e.one("aten.unsqueeze.default", args![x, at + 1])?;
            shape.insert(at + 1, repeats);
            let wide = e.one("aten.expand.default", args![column, &*shape])?;
            let copy = e.one("aten.clone.default", args![wide, MemoryFormat::Contiguous])?;
            shape.remove(at + 1);
            shape[at] = joined;
            e.call("aten.view.default", args![copy, &*shape])
        },
    )
    .samples(&["f32[2, 3], 2, 1", "f32[2, 3], 2"]),
    OpDef::composite(
        "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        "Every index of a dimension as often as its number of repeats says.",
        |e, a| {
            let (x, dim) = flat_unless_dim(e, a)?;
            let mut repeats = *a.tensor(1)?;
            let size = e.shape(x).get(wrap_dim(dim, e.rank(x))?).cloned().unwrap_or(SymInt::Int(1));
            if e.meta(repeats).numel().is_eq(1) {
                let one = e.one("aten.reshape.default", args![repeats, vec![1i64]])?;
                repeats = e.one("aten.expand.default", args![one, vec![size]])?;
            } else if !e.meta(repeats).numel().is_eq(&size) {
                invalid!("{} repeats for a dimension of size {size}", e.meta(repeats).numel());
            }
            let indices = e.one("aten.repeat_interleave.Tensor", &[repeats.into(), a.value(3).clone()])?;
            e.call("aten.index_select.default", args![x, dim, indices])
        },
    )
    .samples(&["f32[2, 3], i64[3]{0..3}, 1", "f32[4], i64[1]{2..3}"]),
    OpDef::composite(
        "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
        "Elements moved along dimensions, those that leave coming back in front; of the flattened tensor without any.",
        roll,
    ).tolerance(Tolerance::Exact)
    .samples(&["f32[2, 3], [1], [1]", "f32[2, 3], [-1, 2], [0, 1]", "f32[2, 3]<[1, 2], 2", "f32[0, 3], 1, 0"]),
    OpDef::kernel("aten::flip(Tensor self, int[] dims) -> Tensor", "Dimensions in reverse.", |a| {
        let x = a.tensor(0)?;
        wrap_dims(&a.ints(1)?, x.rank())?;
        Ok(Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &preserved_strides(x), x.dtype) }.into())
    }, |call| {
        let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
        let flipped = wrap_dims(&call.args.ints(1)?, x.rank())?;
        let table = |d: usize| {
            let size = x.shape()[d];
            (0..size).map(|i| if flipped.contains(&d) { size - 1 - i } else { i }).collect()
        };
        remap(x, &out, &(0..x.rank()).map(table).collect::<Vec<_>>());
        Ok(out.into())
    }).tolerance(Tolerance::Exact).every_type()
    .lower(to_loops::copy::flip).tags(&[Tag::Core])
    .derivative(self_adjoint)
    .samples(&["f32[2, 3], [1]", "i64[2, 3]<[1, 2], [0, 1]", "b8[0, 2], [0]", "c64[3], []", "f32[], []"]),
    OpDef::composite("aten::fliplr(Tensor self) -> Tensor", "Columns in reverse.", |e, a| {
        e.call("aten.flip.default", args![*a.tensor(0)?, vec![1i64]])
    })
    .samples(&["f32[2, 3]"]),
    OpDef::composite("aten::flipud(Tensor self) -> Tensor", "Rows in reverse.", |e, a| {
        e.call("aten.flip.default", args![*a.tensor(0)?, vec![0i64]])
    })
    .samples(&["f32[2, 3]"]),
    OpDef::composite("aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", "Quarter turns in a plane of two dimensions.", |e, a| {
        let (x, dims) = (*a.tensor(0)?, a.ints(2)?);
        let [first, second] = wrap_dims(&dims, e.rank(x))?[..] else {
            invalid!("rot90 turns in two dimensions, not in {dims:?}")
        };
        let turned = |e: &mut dyn Emit, dim: usize| {
            let flipped = e.one("aten.flip.default", args![x, vec![dim as i64]])?;
            e.call("aten.transpose.int", args![flipped, first, second])
        };
        match a.int(1)?.rem_euclid(4) {
            1 => turned(e, second),
            2 => e.call("aten.flip.default", args![x, dims]),
            3 => turned(e, first),
            _ => e.call("aten.clone.default", args![x, MemoryFormat::Contiguous]),
        }
    })
    .samples(&["f32[2, 3]", "f32[2, 3], 2", "f32[2, 3], -1, [1, 0]", "f32[2, 3], 4"]),
    OpDef::composite(
        "aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
        "Each tensor padded and cut into chunks along a dimension, the chunks of all joined one by one.",
        chunk_cat,
    )
    .samples(&["[f32[3, 4], f32[2, 2]], 0, 2"]),
    OpDef::kernel(
        "aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor",
        "Channels of groups dealt out in turn.",
        |a| {
            let (x, groups) = (a.tensor(0)?, a.sym(1)?);
            if x.rank() < 3 || !groups.is_gt(0) || !x.shape[1].modulo(&groups).is_eq(0) {
                invalid!("the channels of shape {:?} do not divide into {groups} groups", x.shape);
            }
            like_in_format(x, &x.shape, x)
        },
        |call| {
            let (x, out, groups) = (call.args.tensor(0)?, call.allocate(0)?, call.args.int(1)?);
            let size = x.shape()[1] / groups;
            let table = |d: usize| (0..x.shape()[d]).map(|i| if d == 1 { i % groups * size + i / groups } else { i }).collect();
            remap(x, &out, &(0..x.rank()).map(table).collect::<Vec<_>>());
            Ok(out.into())
        },
    )
    .derivative(d::channel_shuffle)
    .decompose(by::channel_shuffle)
    .samples(&["f32[1, 4, 2, 2], 2", "f32[2, 6, 3], 3", "f32[1, 4, 2, 2]<[16, 1, 8, 4], 2"]),
    OpDef::composite("aten::native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", "`channel_shuffle` under its other name.", |e, a| {
        e.call("aten.channel_shuffle.default", a.values)
    })
    .samples(&["f32[1, 4, 2, 2], 2"]),
    OpDef::kernel(
        "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
        "Groups of channels as the pixels of a larger image.",
        |a| {
            let (x, factor) = (a.tensor(0)?, factor(a)?);
            let lead = image(x)?;
            let area = SymInt::Int(factor) * factor;
            if !x.shape[lead].modulo(&area).is_eq(0) {
                invalid!("{} channels do not divide into groups of {area}", x.shape[lead]);
            }
            let mut shape = x.shape.clone();
            shape[lead] = shape[lead].floor_div(&area);
            shape[lead + 1] = &shape[lead + 1] * factor;
            shape[lead + 2] = &shape[lead + 2] * factor;
            like_in_format(x, &shape, x)
        },
        |call| {
            let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
            blocks(&out, call.args.int(1)?)?.write_from(&channels(x, call.args.int(1)?)?);
            Ok(out.into())
        },
    )
    .derivative(d::pixel_shuffle)
    .decompose(by::pixel_shuffle)
    .samples(&["f32[1, 4, 2, 2], 2", "i64[8, 1, 3], 2", "f32[1, 4, 2, 2]<[16, 1, 8, 4], 2"]),
    OpDef::kernel(
        "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
        "The pixels of blocks as channels of a smaller image.",
        |a| {
            let (x, factor) = (a.tensor(0)?, factor(a)?);
            let lead = image(x)?;
            let by = SymInt::Int(factor);
            let mut shape = x.shape.clone();
            for d in [lead + 1, lead + 2] {
                if !shape[d].modulo(&by).is_eq(0) {
                    invalid!("size {} does not divide by {factor}", shape[d]);
                }
                shape[d] = shape[d].floor_div(&by);
            }
            shape[lead] = &shape[lead] * factor * factor;
            like_in_format(x, &shape, x)
        },
        |call| {
            let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
            channels(&out, call.args.int(1)?)?.write_from(&blocks(x, call.args.int(1)?)?);
            Ok(out.into())
        },
    )
    .derivative(d::pixel_unshuffle)
    .decompose(by::pixel_unshuffle)
    .samples(&["f32[1, 1, 4, 4], 2", "f32[2, 2, 4], 2"]),
    OpDef::composite("aten::meshgrid(Tensor[] tensors) -> Tensor[]", "Vectors as the axes of a grid.", |e, a| grid(e, a, "ij"))
        .samples(&["[f32[2], f32[3], f32[]]"]),
    OpDef::composite(
        "aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
        "Vectors as the axes of a grid, rows first (`ij`) or columns first (`xy`).",
        |e, a| grid(e, a, a.str(1)?),
    )
    .samples(&["[f32[2], f32[3]], indexing='xy'", "[f32[2], f32[3]], indexing='ij'"]),
    OpDef::composite("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]", "Tensors expanded to their common shape.", |e, a| {
        let tensors = a.tensors(0)?;
        let shapes: Vec<SymDims> = tensors.iter().map(|x| e.shape(**x)).collect();
        let shape = broadcast(&shapes.iter().map(|s| &**s).collect::<Vec<_>>())?;
        let mut wide = Vec::new();
        for x in tensors {
            wide.push(e.one("aten.expand.default", args![*x, &*shape])?);
        }
        Ok(wide.into())
    })
    .samples(&["[f32[2, 1], f32[3]]"]),
    OpDef::composite("aten::cartesian_prod(Tensor[] tensors) -> Tensor", "All combinations of the elements of vectors.", |e, a| {
        if a.tensors(0)?.iter().any(|each| e.rank(**each) != 1) {
            invalid!("cartesian_prod wants vectors");
        }
        let Value::List(grids) = grid(e, a, "ij")? else { invalid!("cartesian_prod wants vectors") };
        let mut columns = Vec::new();
        for axis in grids.iter().filter_map(Value::as_tensor) {
            columns.push(e.one("aten.flatten.using_ints", args![*axis])?);
        }
        if let [only] = columns[..] {
            return Ok(only.into());
        }
        e.call("aten.stack.default", args![columns, 1])
    })
    .samples(&["[f32[2], f32[3]]", "[f32[2]]"]),
];

const fn same_cat(schema: &'static str) -> OpDef {
    OpDef::composite(schema, "`cat` under its other name.", |e, a| e.call("aten.cat.default", a.values))
        .samples(&["[f32[2, 3], f32[1, 3]]"])
}

/// Whether `cat` passes over a tensor: an empty vector, whatever the shape of the others.
fn skipped(x: &Meta) -> bool {
    x.rank() == 1 && x.shape[0].is_eq(0)
}

fn cat_rule(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let tensors = a.tensors(0)?;
    if tensors.is_empty() {
        invalid!("cat wants at least one tensor");
    }
    if tensors.iter().any(|x| x.rank() == 0) {
        invalid!("cat wants tensors with dimensions");
    }
    let dtype = operand_dtype(tensors.iter().copied());
    let mut joined: Option<(Meta, usize)> = None;
    for x in tensors.iter().filter(|x| !skipped(x)) {
        match &mut joined {
            None => joined = Some(((*x).clone(), wrap_dim(a.int(1)?, x.rank())?)),
            Some((whole, dim)) => {
                let fits = |d: usize| d == *dim || x.shape[d].is_eq(&whole.shape[d]);
                if x.rank() != whole.rank() || !(0..x.rank()).all(fits) {
                    invalid!("shapes {:?} and {:?} cannot be joined along dimension {dim}", whole.shape, x.shape);
                }
                whole.shape[*dim] = &whole.shape[*dim] + &x.shape[*dim];
            }
        }
    }
    let Some((whole, _)) = joined else { return Ok(tensors[0].fresh(&[0.into()], dtype).into()) };
    let mut formats = tensors.iter().map(|x| suggested_format(x));
    let format = formats.next().unwrap_or(MemoryFormat::Contiguous);
    let format = if formats.all(|f| f == format) { format } else { MemoryFormat::Contiguous };
    let fresh = whole.fresh(&whole.shape, dtype);
    let stride = format_strides(Some(format), &fresh)?;
    Ok(Meta { stride, ..fresh }.into())
}

fn cat(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let dim = wrap_dim(call.args.int(1)?, out.rank())?;
    let mut start = 0;
    for x in call.args.tensors(0)? {
        if skipped(&Meta::of(x)) {
            continue;
        }
        let mut layout = out.layout().clone();
        layout.offset += start * layout.stride[dim];
        layout.shape[dim] = x.shape()[dim];
        start += x.shape()[dim];
        out.view(out.dtype(), layout)?.write_from(x);
    }
    Ok(out.into())
}

fn stack(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let tensors: Vec<Handle> = a.tensors(0)?.into_iter().copied().collect();
    let Some(first) = tensors.first() else { invalid!("stack wants at least one tensor") };
    let mut shape = e.shape(*first);
    let dim = wrap_dim(a.int(1)?, shape.len() + 1)?;
    for x in &tensors {
        crate::rules::expect_same_shape("stack", &shape, &e.shape(*x))?;
    }
    if dim < shape.len() {
        let joined = e.one("aten.cat.default", args![tensors.clone(), dim])?;
        shape.insert(dim, tensors.len().into());
        return e.call("aten.view.default", args![joined, &*shape]);
    }
    let mut columns = Vec::new();
    for x in tensors {
        columns.push(e.one("aten.unsqueeze.default", args![x, dim])?);
    }
    e.call("aten.cat.default", args![columns, dim])
}

/// A tensor with at least so many dimensions: vectors become rows, matrices get a third dimension at the end.
fn with_rank(e: &mut dyn Emit, x: Handle, rank: usize) -> Result<Handle, OpError> {
    let own = e.rank(x);
    if own >= rank {
        return Ok(x);
    }
    if own == 0 {
        return e.one("aten.reshape.default", args![x, vec![1i64; rank]]);
    }
    let mut wide = x;
    if own == 1 {
        wide = e.one("aten.unsqueeze.default", args![wide, 0])?;
    }
    if rank == 3 {
        wide = e.one("aten.unsqueeze.default", args![wide, -1])?;
    }
    Ok(wide)
}

fn at_least(e: &mut dyn Emit, a: &Args<'_, Handle>, rank: usize) -> Result<Vec<Handle>, OpError> {
    a.tensors(0)?.into_iter().map(|x| with_rank(e, *x, rank)).collect()
}

fn repeat(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, out, repeats) = (call.args.tensor(0)?, call.allocate(0)?, call.args.ints(1)?);
    if out.numel() == 0 {
        return Ok(out.into());
    }
    // Each dimension of the result is two: which repeat, and where in the tensor.
    let lead = repeats.len() - x.rank();
    let (mut shape, mut from) = (Vec::new(), Vec::new());
    for (d, count) in repeats.iter().enumerate() {
        shape.push(*count);
        from.push(0);
        if let Some(own) = d.checked_sub(lead) {
            shape.push(x.shape()[own]);
            from.push(x.stride()[own]);
        }
    }
    let target = out.view(out.dtype(), Layout::contiguous(&shape))?;
    target.write_from(&x.view(x.dtype(), Layout::new(&shape, &from, x.layout().offset))?);
    Ok(out.into())
}

/// The tensor and the dimension of a `repeat_interleave`: the only one of the flattened tensor if none is given.
fn flat_unless_dim(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<(Handle, i64), OpError> {
    match a.opt_int(2)? {
        Some(dim) => Ok((*a.tensor(0)?, dim)),
        None => Ok((e.one("aten.flatten.using_ints", args![*a.tensor(0)?])?, 0)),
    }
}

fn roll(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (x, shifts, dims) = (*a.tensor(0)?, a.syms(1)?, a.ints(2)?);
    let shape = e.shape(x);
    if shifts.is_empty() || (!dims.is_empty() && dims.len() != shifts.len()) || (dims.is_empty() && shifts.len() != 1) {
        invalid!("shifts {shifts:?} do not go with dimensions {dims:?}");
    }
    if e.meta(x).numel().is_eq(0) {
        return e.call("aten.clone.default", args![x]);
    }
    if dims.is_empty() {
        let dense = e.one("aten.contiguous.default", args![x])?;
        let flat = e.one("aten.view.default", args![dense, vec![-1i64]])?;
        let rolled = roll_one(e, flat, &shifts[0], 0)?;
        return e.call("aten.view.default", args![rolled, &*shape]);
    }
    let mut rolled = x;
    for (shift, dim) in shifts.iter().zip(dims) {
        rolled = roll_one(e, rolled, shift, wrap_dim(dim, shape.len())?)?;
    }
    Ok(rolled.into())
}

fn roll_one(e: &mut dyn Emit, x: Handle, shift: &SymInt, dim: usize) -> Result<Handle, OpError> {
    let shape = e.shape(x);
    let Some(size) = shape.get(dim) else { return e.one("aten.clone.default", args![x]) };
    let start = (size - shift).modulo(size);
    let back = e.one("aten.slice.Tensor", args![x, dim, &start, i64::MAX])?;
    let front = e.one("aten.slice.Tensor", args![x, dim, 0, &start])?;
    e.one("aten.cat.default", args![vec![back, front], dim])
}

fn chunk_cat(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let (tensors, dim, chunks) = (a.tensors(0)?, a.int(1)?, a.int(2)?);
    let Some(first) = tensors.first() else { invalid!("_chunk_cat wants at least one tensor") };
    let dim = wrap_dim(dim, e.rank(**first))?;
    if chunks <= 0 {
        invalid!("_chunk_cat into {chunks} chunks");
    }
    let mut parts = Vec::new();
    for x in tensors {
        let shape = e.shape(*x);
        if dim >= shape.len() {
            invalid!("_chunk_cat wants tensors with a dimension {dim}");
        }
        if shape.iter().any(|size| size.is_eq(0)) {
            invalid!("_chunk_cat wants tensors that are not empty");
        }
        let missing = shape[dim].ceil_div(&chunks.into()) * chunks - &shape[dim];
        let mut pad = vec![SymInt::Int(0); 2 * (shape.len() - dim)];
        if let Some(last) = pad.last_mut() {
            *last = missing;
        }
        let padded = e.one("aten.constant_pad_nd.default", args![*x, pad])?;
        let mut sizes = shape[..dim].to_vec();
        sizes.extend([SymInt::Int(chunks), SymInt::Int(-1)]);
        parts.push(e.one("aten.view.default", args![padded, sizes])?);
    }
    e.call("aten.cat.default", args![parts, dim + 1])
}

/// A fresh tensor of a shape in the format of another.
fn like_in_format(x: &Meta, shape: &[SymInt], format_of: &Meta) -> Result<Value<Meta>, OpError> {
    let fresh = x.fresh(shape, x.dtype);
    let stride = format_strides(Some(suggested_format(format_of)), &fresh)?;
    Ok(Meta { stride, ..fresh }.into())
}

fn factor(a: &Args<'_, Meta>) -> Result<i64, OpError> {
    match a.int(1)? {
        factor @ 1..=0xffff => Ok(factor),
        other => invalid!("a factor of {other}"),
    }
}

/// The position of the channels before height and width.
fn image(x: &Meta) -> Result<usize, OpError> {
    match x.rank().checked_sub(3) {
        Some(lead) => Ok(lead),
        None => invalid!("an image has at least three dimensions, not {}", x.rank()),
    }
}

/// `[…, C·r·r, H, W]` as `[…, C, r, r, H, W]`.
fn channels(x: &Tensor, factor: i64) -> Result<Tensor, OpError> {
    let lead = x.rank() - 3;
    let (mut layout, area) = (x.layout().clone(), factor * factor);
    let step = layout.stride[lead];
    layout.shape[lead] /= area;
    layout.stride[lead] = step * area;
    layout.shape.insert_many(lead + 1, [factor, factor]);
    layout.stride.insert_many(lead + 1, [step * factor, step]);
    Ok(x.view(x.dtype(), layout)?)
}

/// `[…, C, H·r, W·r]` as `[…, C, r, r, H, W]`.
fn blocks(x: &Tensor, factor: i64) -> Result<Tensor, OpError> {
    let lead = x.rank() - 3;
    let mut layout = x.layout().clone();
    let steps = [layout.stride[lead + 1], layout.stride[lead + 2]];
    for d in [lead + 1, lead + 2] {
        layout.shape[d] /= factor;
        layout.stride[d] *= factor;
    }
    layout.shape.insert_many(lead + 1, [factor, factor]);
    layout.stride.insert_many(lead + 1, steps);
    Ok(x.view(x.dtype(), layout)?)
}

fn grid(e: &mut dyn Emit, a: &Args<'_, Handle>, indexing: &str) -> Result<Value<Handle>, OpError> {
    let tensors: Vec<Handle> = a.tensors(0)?.into_iter().copied().collect();
    if tensors.is_empty() {
        invalid!("meshgrid wants at least one vector");
    }
    let swapped = match indexing {
        "ij" => false,
        "xy" => tensors.len() > 1,
        other => invalid!("indexing is 'ij' or 'xy', not '{other}'"),
    };
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    if swapped {
        order.swap(0, 1);
    }
    let mut shape = Vec::new();
    for index in &order {
        if e.rank(tensors[*index]) > 1 {
            invalid!("meshgrid wants vectors");
        }
        shape.push(e.meta(tensors[*index]).numel());
    }
    let mut axes = Vec::new();
    for index in &order {
        let place = axes.len();
        let mut sizes = vec![1i64; shape.len()];
        sizes[place] = -1;
        let axis = e.one("aten.view.default", args![tensors[*index], sizes])?;
        axes.push(e.one("aten.expand.default", args![axis, shape.clone()])?);
    }
    if swapped {
        axes.swap(0, 1);
    }
    Ok(axes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_vector_is_passed_over_but_an_empty_matrix_is_not() {
        assert!(skipped(&Meta::of_shape(&[0], DType::F32)));
        assert!(!skipped(&Meta::of_shape(&[0, 2], DType::F32)));
    }
}
