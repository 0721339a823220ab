//! Copies: of whole tensors, of views, into parts of tensors.

use pyrite_ir::{
    Args, Call, Emit, Eval, Freedom, Handle, Meta, OpDef, OpError, Overlap, Tag, Tolerance, Value, args, invalid,
    unsupported,
};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, MemoryFormat, Scalar, Storage, Tensor};

use crate::decompositions::copy as by;
use crate::decompositions::create as by_creation;
use crate::derivatives::copy as d;
use crate::lowerings as to_loops;
use crate::rules::{expect_same_shape, format_strides, preserved_strides, suggested_format, views, wrap_dim};
use pyrite_kernels::fill_with;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
        "A copy, in the order of the original or in the format given.",
        |a| in_format(a.tensor(0)?, a.tensor(0)?.dtype, a.memory_format(1)?),
        converted,
    ).tolerance(Tolerance::Exact).every_type()
    .lower(to_loops::copy::copied).tags(&[Tag::Core])
    .derivative(d::converted)
    .samples(&[
        "f32[2, 3]<[1, 2]",
        "f32[2, 3]<[0, 1]",
        "b8[0, 3]",
        "f32[1, 2, 3, 2], memory_format=channels_last",
        "i64[2, 3]<[1, 2], memory_format=contiguous_format",
    ]),
    OpDef::kernel(
        "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
        "A copy with another type, device or format.",
        |a| {
            let x = a.tensor(0)?;
            expect_strided(a, 2)?;
            let device = a.device(3)?;
            let mut copy = in_format(x, a.dtype(1)?.unwrap_or(x.dtype), a.memory_format(6)?)?;
            if let (Value::Tensor(copy), Some(device)) = (&mut copy, device) {
                copy.device = device;
            }
            Ok(copy)
        },
        converted,
    ).every_type()
    .free(Freedom::OutOfRange)
    .lower(to_loops::copy::copied).tags(&[Tag::Core])
    .derivative(d::converted)
    .samples(&["f32[2, 3]<[1, 2], dtype=f64", "f64[3], dtype=i32", "f32[3], dtype=b8", "c64[3], dtype=f32", "bf16[2, 3]"]),
    OpDef::composite(
        "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
        "The tensor itself if it has the type, else a copy that does.",
        |e, a| to(e, *a.tensor(0)?, a.value(1), &Value::None, a.bool(3)?, a.memory_format(4)?),
    )
    .free(Freedom::OutOfRange)
    .samples(&["f32[2, 3], f64", "f32[2, 3], f32", "f32[2], f32, copy=True"]),
    OpDef::composite(
        "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
        "The tensor itself if it has type and device, else a copy that does.",
        |e, a| to(e, *a.tensor(0)?, a.value(1), a.value(3), a.bool(6)?, a.memory_format(7)?),
    )
    .free(Freedom::OutOfRange)
    .samples(&["f32[2, 3], dtype=f64", "f32[2]"]),
    OpDef::composite(
        "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
        "The tensor itself if it has type and device, else a copy that does.",
        |e, a| to(e, *a.tensor(0)?, a.value(2), a.value(1), a.bool(4)?, a.memory_format(5)?),
    )
    .free(Freedom::OutOfRange)
    .samples(&["f32[2, 3], 'cpu', f64"]),
    OpDef::composite(
        "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
        "The tensor with the type and device of another.",
        |e, a| {
            let like = e.meta(*a.tensor(1)?).clone();
            to(e, *a.tensor(0)?, &like.dtype.into(), &like.device.into(), a.bool(3)?, a.memory_format(4)?)
        },
    )
    .free(Freedom::OutOfRange)
    .samples(&["f32[2, 3], i64[1]"]),
    OpDef::composite("aten::type_as(Tensor self, Tensor other) -> Tensor", "The tensor with the type of another.", |e, a| {
        let like = e.meta(*a.tensor(1)?).clone();
        to(e, *a.tensor(0)?, &like.dtype.into(), &like.device.into(), false, None)
    })
    .free(Freedom::OutOfRange)
    .samples(&["f32[2, 3], i64[1]", "f32[2], f32[1]"]),
    OpDef::kernel(
        "prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor",
        "A copy with another type.",
        |a| {
            let Some(dtype) = a.dtype(1)? else { invalid!("convert_element_type wants a type") };
            in_format(a.tensor(0)?, dtype, None)
        },
        converted,
    )
    .free(Freedom::OutOfRange)
    .derivative(d::converted)
    .decompose(by_creation::converted)
    .samples(&["f32[2, 3]<[1, 2], f64"]),
    OpDef::composite(
        "prims::device_put(Tensor a, Device device, bool non_blocking=False) -> Tensor",
        "A copy on another device.",
        |e, a| e.call("aten._to_copy.default", &[a.value(0).clone(), Value::None, Value::None, a.value(1).clone()]),
    )
    .samples(&["f32[2, 3], 'cpu'"]),
    OpDef::kernel(
        "aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
        "A tensor with the shape and type of the first and the elements of the second.",
        |a| {
            let (x, src) = (a.tensor(0)?, a.tensor(1)?);
            views::expanded(src, &x.shape)?;
            in_format(x, x.dtype, None)
        },
        |call| {
            let out = call.allocate(0)?;
            out.write_from(&call.args.tensor(1)?.expanded(out.shape()));
            Ok(out.into())
        },
    ).every_type()
    .lower(to_loops::copy::copy).tags(&[Tag::Core])
    .derivative(d::copy)
    .samples(&["f32[2, 3], f32[3]", "i64[2, 3]<[1, 2], f32[2, 3]", "f32[2], 5"]),
    OpDef { eval: Eval::Kernel(copy_in_place), ..OpDef::written(
        "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
        "Overwrites a tensor with the elements of another, converted and broadcast.",
        "",
    ).every_type() }
    .samples(&["f32[2, 3], f32[3]", "i64[2, 3]<[1, 2], f32[2, 3]", "f32[2], 5"]),
    OpDef::composite("aten::lift(Tensor self) -> Tensor", "The tensor itself.", |_, a| Ok(a.value(0).clone()))
        .samples(&["f32[2]"]),
    OpDef::composite("aten::data(Tensor self) -> Tensor", "The tensor, cut off from its gradient.", |e, a| {
        e.call("aten.detach.default", a.values)
    })
    .samples(&["f32[2]"]),
    OpDef::kernel(
        "aten::lift_fresh_copy(Tensor self) -> Tensor",
        "A copy of a constant of the program.",
        |a| in_format(a.tensor(0)?, a.tensor(0)?.dtype, None),
        converted,
    ).every_type()
    .derivative(d::converted)
    .decompose(by_creation::copied)
    .samples(&["f32[2, 3]", "i64[]"]),
    copy_of("aten::alias_copy(Tensor self) -> Tensor", &["f32[2, 3]<[1, 2]"]),
    copy_of("aten::detach_copy(Tensor self) -> Tensor", &["f32[2, 3]<[1, 2]"]),
    copy_of(
        "aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
        &["f32[2, 3], [2, 2], [1, 2], 1"],
    ),
    copy_of("aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", &["f32[3, 4], 1"]),
    copy_of("aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", &["f32[3, 1], [2, -1, 4]"]),
    copy_of("aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", &["f32[5, 3], 0, 1, 2"]),
    copy_of("aten::permute_copy(Tensor self, int[] dims) -> Tensor", &["f32[2, 3, 4], [2, 0, 1]"]),
    copy_of("aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", &["f32[2, 3], 1, -1"]),
    copy_of(
        "aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
        &["f32[5, 3], 0, 1, None, 2"],
    ),
    copy_of("aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", &["f32[5, 2], 2"]),
    copy_of("aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", &["f32[5], [2, 3]"]),
    copy_of("aten::squeeze_copy(Tensor self) -> Tensor", &["f32[1, 3, 1]"]),
    copy_of("aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor", &["f32[1, 3, 1], 0"]),
    copy_of("aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", &["f32[1, 3, 1], [0, 2]"]),
    copy_of("aten::t_copy(Tensor self) -> Tensor", &["f32[2, 3]"]),
    copy_of("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", &["f32[2, 3], 0, 1"]),
    copy_of("aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", &["f32[2, 3]<[1, 2]"]),
    copy_of("aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", &["f32[5, 2], 0, 3, 1"]),
    copy_of("aten::unsqueeze_copy(Tensor self, int dim) -> Tensor", &["f32[2, 3]<[1, 2], 0"]),
    copy_of("aten::view_copy(Tensor self, SymInt[] size) -> Tensor", &["f32[2, 3], [3, -1]"]),
    copy_of("aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", &["f32[2, 3], i32"]),
    copy_of("aten::view_as_real_copy(Tensor self) -> Tensor", &["c64[2, 3]"]),
    copy_of("aten::view_as_complex_copy(Tensor self) -> Tensor", &["f32[3, 2]"]),
    copy_of("aten::_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor", &["f32[2, 3], [6], [1]"]),
    copy_of("aten::_conj_copy(Tensor self) -> Tensor", &["c64[2, 3]"]),
    copy_of("aten::_neg_view_copy(Tensor self) -> Tensor", &["f32[2, 3]"]),
    OpDef::composite(
        "aten::_conj_physical(Tensor self) -> Tensor",
        "The complex conjugate, in memory of its own.",
        |e, a| {
            let conj = e.one("aten._conj.default", a.values)?;
            e.call("aten.clone.default", args![conj])
        },
    )
    .samples(&["c64[2, 3]<[1, 2]"]),
    OpDef::kernel(
        "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
        "A copy in which one index of a dimension is another tensor.",
        scattered,
        scatter,
    ).tolerance(Tolerance::Exact).every_type()
    .lower(to_loops::copy::select_scatter).tags(&[Tag::Core])
    .derivative(d::select_scatter)
    .samples(&["f32[2, 3], f32[2], 1, -1", "f32[2, 3]<[1, 2], f64[3], 0, 0", "f32[2, 3]<[0, 1], f32[3], 0, 1"]),
    OpDef::kernel(
        "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
        "A copy in which a slice is another tensor.",
        scattered,
        scatter,
    ).tolerance(Tolerance::Exact).every_type()
    .lower(to_loops::copy::slice_scatter).tags(&[Tag::Core])
    .derivative(d::slice_scatter)
    .samples(&["f32[5, 3], f32[2, 3], 0, 1, None, 2", "f32[5], f32[5]", "i64[2, 3]<[1, 2], i64[2, 1], 1, -1"]),
    OpDef::kernel(
        "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
        "A copy in which a diagonal is another tensor.",
        scattered,
        scatter,
    )
    .derivative(d::diagonal_scatter)
    .samples(&["f32[3, 4], f32[3]", "f32[2, 3, 4], f32[2, 3], 1, 1, 2"]),
    OpDef::kernel(
        "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
        "A copy in which a strided view is another tensor.",
        scattered,
        scatter,
    )
    .derivative(d::as_strided_scatter)
    .samples(&["f32[2, 3], f32[2, 2], [2, 2], [1, 2], 1"]),
    OpDef::kernel(
        "aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
        "The gradient of `select`: zeros but for the selected index.",
        padded_grad,
        scatter_grad,
    )
    .derivative(d::select_backward)
    .decompose(by::select_backward)
    .samples(&["f32[3], [2, 3], 0, 1"]),
    OpDef::kernel(
        "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor",
        "The gradient of `slice`: zeros but for the slice.",
        padded_grad,
        scatter_grad,
    )
    .derivative(d::slice_backward)
    .decompose(by::slice_backward)
    .samples(&["f32[2, 3], [5, 3], 0, 1, 9223372036854775807, 2"]),
    OpDef::kernel(
        "aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
        "The gradient of `diagonal`: zeros but for the diagonal.",
        padded_grad,
        scatter_grad,
    )
    .derivative(d::diagonal_backward)
    .decompose(by::diagonal_backward)
    .samples(&["f32[3], [3, 4], 0, 0, 1"]),
    OpDef::kernel(
        "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
        "The gradient of `unfold`: every element sums the windows it is in.",
        |a| {
            let (grad, sizes) = (a.tensor(0)?, a.syms(1)?);
            let windows = views::unfolded(&grad.fresh(&sizes, grad.dtype), a.int(2)?, a.int(3)?, a.int(4)?)?;
            expect_same_shape("unfold_backward", &grad.shape, &windows.shape)?;
            Ok(grad.fresh(&sizes, grad.dtype).into())
        },
        unfold_backward,
    )
    .derivative(d::unfold_backward)
    .decompose(by::unfold_backward)
    .samples(&["f32[3, 2, 3], [5, 2], 0, 3, 1", "f64[2, 2], [5], 0, 2, 2"]),
];

/// The copying variant of a view operator: `aten.x_copy.o` copies what `aten.x.o` returns.
const fn copy_of(schema: &'static str, samples: &'static [&'static str]) -> OpDef {
    OpDef::composite(schema, "A dense copy of what the view operator of the same name returns.", |e, a| {
        let viewed = e.call(&a.schema.name.replacen("_copy", "", 1), a.values)?;
        let mut copies = Vec::new();
        viewed.each(&mut |view| copies.push(*view));
        for copy in &mut copies {
            *copy = e.one("aten.clone.default", args![*copy, MemoryFormat::Contiguous])?;
        }
        Ok(match viewed {
            Value::Tensor(_) => copies[0].into(),
            _ => copies.into(),
        })
    })
    .samples(samples)
}

/// A fresh tensor like another, of a type and in a format.
fn in_format(x: &Meta, dtype: DType, format: Option<MemoryFormat>) -> Result<Value<Meta>, OpError> {
    let stride = format_strides(format, x)?;
    Ok(Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &stride, dtype) }.into())
}

/// Refuses layouts other than strided ones.
pub fn expect_strided<T>(a: &Args<'_, T>, index: usize) -> Result<(), OpError> {
    match a.value(index) {
        Value::Layout(name) if &**name != "strided" => unsupported!("tensors of layout {name}"),
        _ => Ok(()),
    }
}

fn converted(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    out.write_from(call.args.tensor(0)?);
    Ok(out.into())
}

fn to(
    e: &mut dyn Emit,
    x: Handle,
    dtype: &Value<Handle>,
    device: &Value<Handle>,
    copy: bool,
    format: Option<MemoryFormat>,
) -> Result<Value<Handle>, OpError> {
    let meta = e.meta(x);
    let same_type = !matches!(dtype, Value::DType(wanted) if *wanted != meta.dtype);
    let same_device = !matches!(device, Value::Device(wanted) if *wanted != meta.device);
    // PyTorch asks which format the strides follow, not whether the tensor is dense in it: all that are not channels last
    // are contiguous to it.
    let same_format = match format {
        None | Some(MemoryFormat::Preserve) => true,
        Some(format) => suggested_format(meta) == format,
    };
    if same_type && same_device && same_format && !copy {
        return Ok(x.into());
    }
    let options = [x.into(), dtype.clone(), Value::None, device.clone(), Value::None, false.into(), format.into()];
    e.call("aten._to_copy.default", &options)
}

fn copy_in_place(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, src) = (call.args.tensor(0)?, call.args.tensor(1)?);
    views::expanded(&Meta::of(src), &Meta::of(x).shape)?;
    if x.layout().may_overlap() {
        invalid!("copy_ writes to a tensor some of whose elements share memory; clone it first");
    }
    let (to, from) = (Meta::of(x), Meta::of(src));
    if x.storage().same(src.storage()) && Overlap::between(&to, &from) == Some(Overlap::Part) {
        return Err(Overlap::refusal(&call.args.schema.name, &to, &from));
    }
    x.write_from(&src.expanded(x.shape()));
    Ok(x.clone().into())
}

/// The view that a `*_scatter` or `*_backward` operator fills, of a base with the arguments from `first` on.
fn target<T>(a: &Args<'_, T>, base: &Meta, first: usize) -> Result<Meta, OpError> {
    let name = a.schema.name.split('.').nth(1).unwrap_or_default();
    match name {
        "select_scatter" | "select_backward" => views::selected(base, a.int(first)?, &a.sym(first + 1)?),
        "slice_scatter" | "slice_backward" => {
            let (start, end) = (a.opt_sym(first + 1)?, a.opt_sym(first + 2)?);
            views::sliced(base, a.int(first)?, start.as_ref(), end.as_ref(), &a.sym(first + 3)?)
        }
        "diagonal_scatter" | "diagonal_backward" => {
            views::diagonal(base, a.int(first)?, a.int(first + 1)?, a.int(first + 2)?)
        }
        "as_strided_scatter" => views::strided(base, &a.syms(first)?, &a.syms(first + 1)?, a.opt_sym(first + 2)?),
        other => Err(OpError::fault(format!("{other} fills no view"))),
    }
}

/// A copy of the whole storage behind a tensor, so that strides and offset stay; only elements that are repeated by a
/// stride of zero are made separate.
fn scattered(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, src) = (a.tensor(0)?, a.tensor(1)?);
    let repeats = x.shape.iter().zip(&x.stride).any(|(size, stride)| stride.is_eq(0) && size.is_gt(1));
    let copy = if repeats {
        Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &preserved_strides(x), x.dtype) }
    } else {
        let like = Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &x.stride, x.dtype) };
        Meta { offset: x.offset.clone(), ..like }
    };
    expect_same_shape(&a.schema.name, &src.shape, &target(a, &copy, 2)?.shape)?;
    Ok(copy.into())
}

fn scatter(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    let meta = call.out_meta(0)?;
    let layout = meta.layout()?;
    let out = if layout == *x.layout() {
        Tensor::new(Storage::from_slice(&x.storage().to_bytes()), x.dtype(), layout)?
    } else {
        let out = call.allocate(0)?;
        out.write_from(x);
        out
    };
    let part = target(&call.args, &Meta::of(&out), 2)?;
    out.view(out.dtype(), part.layout()?)?.write_from(call.args.tensor(1)?);
    Ok(out.into())
}

fn padded_grad(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let grad = a.tensor(0)?;
    let result = grad.fresh(&a.syms(1)?, grad.dtype);
    expect_same_shape(&a.schema.name, &grad.shape, &target(a, &result, 2)?.shape)?;
    Ok(result.into())
}

fn scatter_grad(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    fill_with(&out, Scalar::Int(0));
    let part = target(&call.args, &Meta::of(&out), 2)?;
    out.view(out.dtype(), part.layout()?)?.write_from(call.args.tensor(0)?);
    Ok(out.into())
}

fn unfold_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, out) = (call.args.tensor(0)?, call.allocate(0)?);
    let dim = wrap_dim(call.args.int(2)?, out.rank())?;
    let step = call.args.int(4)?;
    let window = grad.rank() - 1;
    fill_with(&out, Scalar::Int(0));
    if out.rank() == 0 {
        out.write_from(&grad.reshaped(&[]));
        return Ok(out.into());
    }
    // One pass per place in the window: the elements that windows have there are `step` apart, hence distinct.
    let base = Meta::of(&out);
    let sum = Tensor::zeros(out.shape(), if out.dtype().is_complex() { DType::C128 } else { DType::F64 })?;
    for place in 0..call.args.int(3)? {
        let from = views::selected(&Meta::of(grad), window as i64, &place.into())?;
        let from = grad.view(grad.dtype(), from.layout()?)?;
        let count = SymInt::Int(grad.shape()[dim]);
        let end = SymInt::Int(place) + (count - 1) * step + 1;
        let part = views::sliced(&base, dim as i64, Some(&place.into()), Some(&end), &step.into())?;
        let part = sum.view(sum.dtype(), part.layout()?)?;
        if sum.dtype().is_complex() {
            let total: Vec<_> = part.to_c128s().iter().zip(from.to_c128s()).map(|(a, b)| a + b).collect();
            part.write_c128s(&total);
        } else {
            let total: Vec<_> = part.to_f64s().iter().zip(from.to_f64s()).map(|(a, b)| a + b).collect();
            part.write_f64s(&total);
        }
    }
    out.write_from(&sum);
    Ok(out.into())
}
