//! Views: other shapes and strides of the same memory.
//!
//! The geometry is in [`crate::rules::views`]; a record here names the rule and its arguments. A tensor is an
//! immutable view of a storage, so the operators that change a tensor's shape in place (`transpose_`, `resize_`)
//! return the new view of the same storage: whoever holds the graph must read later uses of the argument as uses of
//! the result.
//!
//! Views that exist in PyTorch only as flags on a tensor (`_conj`, `_neg_view`) are computed: the result has the
//! view's shape and strides but memory of its own. Functionalization knows them as views, so that writes reach both;
//! the interpreter refuses such writes. `resolve_conj` and `resolve_neg` are copies where functionalization knows of a flag.

use num_complex::Complex64;
use pyrite_ir::meta::contiguous_strides;
use pyrite_ir::{Args, Call, Emit, Eval, Handle, Meta, OpDef, OpError, Tag, Value, args, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Layout, MemoryFormat, Storage, Tensor};

use crate::decompositions::view as by;
use crate::derivatives::view as d;
use crate::kernels::Pointwise;
use crate::rules::{format_strides, views, wrap_dim, wrap_dims};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::view(
        "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
        "The same memory with another shape; one size may be -1.",
        |a| Ok(views::reshaped(a.tensor(0)?, &a.syms(1)?)?.into()),
    )
    .tags(&[Tag::Core])
    .derivative(d::reshaped)
    .samples(&["f32[2, 3, 4], [6, -1]", "f32[2, 6]<[1, 2], [2, 2, 3]", "f32[0, 3], [3, 0]", "i64[], [1, 1]"]),
    OpDef::view(
        "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
        "The same memory read as elements of another type.",
        |a| Ok(views::retyped(a.tensor(0)?, wanted(a, 1)?)?.into()),
    )
    .no_derivative("the bits are read anew")
    .samples(&["f32[2, 4], i32", "f32[2, 4], u8", "f32[2, 4], f64", "c64[3], f32"]),
    OpDef::composite(
        "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
        "`view`, for callers that drop the original.",
        |e, a| e.call("aten.view.default", a.values),
    )
    .samples(&["f32[2, 3], [3, 2]"]),
    OpDef::view(
        "aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
        "`view` with the strides given.",
        |a| Ok(views::strided(a.tensor(0)?, &a.syms(1)?, &a.syms(2)?, None)?.into()),
    )
    .derivative(d::reshaped)
    .samples(&["f32[2, 3], [3, 2], [2, 1]"]),
    OpDef::composite(
        "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
        "Another shape: a view where the strides allow it, else a copy.",
        |e, a| Ok(reshape(e, *a.tensor(0)?, &a.syms(1)?)?.into()),
    )
    .samples(&["f32[2, 3], [-1]", "f32[2, 3]<[1, 2], [6]", "f32[0, 3], [0]"]),
    OpDef::composite(
        "aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
        "`reshape` to the shape of another tensor.",
        |e, a| {
            let shape = e.shape(*a.tensor(1)?);
            Ok(reshape(e, *a.tensor(0)?, &shape)?.into())
        },
    )
    .samples(&["f32[2, 3], i64[3, 2]"]),
    OpDef::composite(
        "aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
        "`view` with the shape of another tensor.",
        |e, a| {
            let shape = e.shape(*a.tensor(1)?);
            e.call("aten.view.default", args![*a.tensor(0)?, &*shape])
        },
    )
    .samples(&["f32[2, 3], i64[3, 2]"]),
    OpDef::composite(
        "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
        "Neighbouring dimensions joined into one.",
        flatten,
    )
    .samples(&["f32[2, 3, 4]", "f32[2, 3, 4], 1", "f32[]", "f32[2, 3]<[1, 2]", "f32[2, 3], 1, 1"]),
    OpDef::composite("aten::ravel(Tensor(a) self) -> Tensor(a)", "All elements in one dimension.", |e, a| {
        let dense = e.call("aten.contiguous.default", a.values)?;
        e.call("aten.view.default", &[dense, vec![-1i64].into()])
    })
    .samples(&["f32[2, 3]", "f32[]", "f32[2, 3]<[1, 2]"]),
    OpDef::view(
        "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
        "One dimension divided into several.",
        unflatten,
    )
    .derivative(d::reshaped)
    .decompose(by::unflatten)
    .samples(&["f32[2, 6], 1, [2, -1]", "f32[6, 2]<[1, 6], 0, [3, 2]"]),
    OpDef::view(
        "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
        "Dimensions of size one repeated to other sizes, new ones in front; -1 keeps a size.",
        |a| Ok(views::expanded(a.tensor(0)?, &a.syms(1)?)?.into()),
    )
    .tags(&[Tag::Core])
    .derivative(d::same)
    .samples(&["f32[3, 1], [2, -1, 4]", "f32[], [2]", "f32[1, 3], [0, 3]"]),
    OpDef::composite(
        "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
        "`expand` to the shape of another tensor.",
        |e, a| {
            let shape = e.shape(*a.tensor(1)?);
            e.call("aten.expand.default", args![*a.tensor(0)?, &*shape])
        },
    )
    .samples(&["f32[3, 1], f32[3, 4]"]),
    OpDef::view(
        "aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
        "`expand` under its other name.",
        |a| Ok(views::expanded(a.tensor(0)?, &a.syms(1)?)?.into()),
    )
    .derivative(d::same)
    .decompose(by::broadcast_to)
    .samples(&["f32[3], [2, 3]"]),
    OpDef::view(
        "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
        "The dimensions in another order.",
        |a| Ok(views::permuted(a.tensor(0)?, &a.ints(1)?)?.into()),
    )
    .tags(&[Tag::Core])
    .derivative(d::permute)
    .samples(&["f32[2, 3, 4], [2, 0, -2]", "f32[], []"]),
    OpDef::view("aten::t(Tensor(a) self) -> Tensor(a)", "A matrix transposed; vectors stay as they are.", t)
        .derivative(d::self_adjoint)
        .decompose(by::t)
        .samples(&["f32[2, 3]", "f32[3]", "f32[]"]),
    OpDef::view(
        "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
        "Two dimensions exchanged.",
        transpose,
    )
    .derivative(d::self_adjoint)
    .decompose(by::transpose)
    .samples(&["f32[2, 3, 4], 0, -1", "f32[], 0, -1"]),
    OpDef::view(
        "aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
        "`transpose` under its other name.",
        transpose,
    )
    .derivative(d::self_adjoint)
    .decompose(by::transpose)
    .samples(&["f32[2, 3], 0, 1"]),
    OpDef::view(
        "aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
        "`transpose` under its other name.",
        transpose,
    )
    .derivative(d::self_adjoint)
    .decompose(by::transpose)
    .samples(&["f32[2, 3], 0, 1"]),
    OpDef::view("aten::numpy_T(Tensor(a) self) -> Tensor(a)", "All dimensions in reverse order.", |a| {
        let order: Vec<i64> = (0..a.tensor(0)?.rank() as i64).rev().collect();
        Ok(views::permuted(a.tensor(0)?, &order)?.into())
    })
    .derivative(d::self_adjoint)
    .decompose(by::t)
    .samples(&["f32[2, 3, 4]"]),
    OpDef::view("aten::mT(Tensor(a) self) -> Tensor(a)", "The last two dimensions exchanged.", matrix_transpose)
        .derivative(d::self_adjoint)
        .decompose(by::matrix_transpose)
        .samples(&["f32[2, 3, 4]"]),
    OpDef::composite("aten::adjoint(Tensor(a) self) -> Tensor(a)", "The conjugate transpose of matrices.", adjoint)
        .samples(&["f32[2, 3, 4]", "c64[2, 3]"]),
    OpDef::composite("aten::mH(Tensor(a) self) -> Tensor(a)", "The conjugate transpose of matrices.", adjoint)
        .samples(&["f32[2, 3, 4]", "c64[2, 3]"]),
    OpDef::view(
        "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
        "One dimension moved to another place.",
        move_one,
    )
    .derivative(d::movedim)
    .decompose(by::movedim)
    .samples(&["f32[2, 3, 4], 0, -1", "f32[], 0, 0"]),
    OpDef::view(
        "aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
        "Dimensions moved to other places.",
        move_many,
    )
    .derivative(d::movedim)
    .decompose(by::movedims)
    .samples(&["f32[2, 3, 4], [0, 1], [-1, 0]"]),
    OpDef::view(
        "aten::moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
        "`movedim` under its other name.",
        move_one,
    )
    .derivative(d::movedim)
    .decompose(by::movedim)
    .samples(&["f32[2, 3, 4], 0, -1"]),
    OpDef::view(
        "aten::moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
        "`movedim` under its other name.",
        move_many,
    )
    .derivative(d::movedim)
    .decompose(by::movedims)
    .samples(&["f32[2, 3, 4], [0, 1], [-1, 0]"]),
    OpDef::view(
        "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
        "One index of a dimension, which is dropped.",
        |a| Ok(views::selected(a.tensor(0)?, a.int(1)?, &a.sym(2)?)?.into()),
    )
    .tags(&[Tag::Core])
    .derivative(d::select)
    .samples(&["f32[2, 3], 1, -1", "f32[2, 0], 0, 1"]),
    OpDef::view(
        "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
        "Part of a dimension, as Python slices.",
        |a| {
            let (start, end) = (a.opt_sym(2)?, a.opt_sym(3)?);
            Ok(views::sliced(a.tensor(0)?, a.int(1)?, start.as_ref(), end.as_ref(), &a.sym(4)?)?.into())
        },
    )
    .tags(&[Tag::Core])
    .derivative(d::slice)
    .samples(&["f32[5, 3], 0, 1, 9223372036854775807, 2", "f32[5], 0, -3, -1", "f32[5], 0, 4, 2", "f32[5]"]),
    OpDef::view(
        "aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
        "A number of indices of a dimension from a start.",
        |a| Ok(views::narrowed(a.tensor(0)?, a.int(1)?, &a.sym(2)?, &a.sym(3)?)?.into()),
    )
    .derivative(d::narrow)
    .decompose(by::narrow)
    .samples(&["f32[5, 3], 0, 1, 2", "f32[5], 0, -2, 2", "f32[5], 0, 5, 0"]),
    OpDef::view("aten::squeeze(Tensor(a) self) -> Tensor(a)", "Without the dimensions of size one.", squeeze)
        .derivative(d::squeeze)
        .decompose(by::squeeze)
        .samples(&["f32[1, 3, 1]", "f32[]"]),
    OpDef::view(
        "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
        "Without the dimension, if its size is one.",
        squeeze_dim,
    )
    .tags(&[Tag::Core])
    .derivative(d::squeeze)
    .samples(&["f32[1, 3, 1], -1", "f32[2, 3], 0", "f32[], 0"]),
    OpDef::view(
        "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
        "Without those of the dimensions whose size is one.",
        squeeze_dims,
    )
    .tags(&[Tag::Core])
    .derivative(d::squeeze)
    .samples(&["f32[1, 3, 1], [0, 1]", "f32[1, 3, 1], []"]),
    OpDef::view(
        "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
        "With one more dimension, of size one.",
        unsqueeze,
    )
    .tags(&[Tag::Core])
    .derivative(d::unsqueeze)
    .samples(&["f32[2, 3], 1", "f32[2, 3]<[1, 2], -1", "f32[], 0"]),
    OpDef::view(
        "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
        "A view of the storage with the sizes, strides and offset given.",
        as_strided,
    )
    .tags(&[Tag::Core])
    .derivative(d::as_strided)
    .samples(&["f32[2, 3], [2, 2], [1, 2], 1", "f32[6], [3, 2], [1, 1]"]),
    OpDef::view(
        "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
        "A diagonal of two dimensions as a new last dimension.",
        |a| Ok(views::diagonal(a.tensor(0)?, a.int(1)?, a.int(2)?, a.int(3)?)?.into()),
    )
    .tags(&[Tag::Core])
    .derivative(d::diagonal)
    .samples(&["f32[3, 4]", "f32[2, 3, 4], -1, 1, 2", "f32[3, 4], 9"]),
    OpDef::view(
        "aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
        "`diagonal` of the last two dimensions.",
        |a| Ok(views::diagonal(a.tensor(0)?, a.int(1)?, a.int(2)?, a.int(3)?)?.into()),
    )
    .derivative(d::diagonal)
    .decompose(by::linalg_diagonal)
    .samples(&["f32[2, 3, 4]"]),
    OpDef::view(
        "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
        "Windows along a dimension, each as a new last dimension.",
        |a| Ok(views::unfolded(a.tensor(0)?, a.int(1)?, a.int(2)?, a.int(3)?)?.into()),
    )
    .derivative(d::unfold)
    .samples(&["f32[5, 2], 0, 3, 1", "f32[], 0, 1, 1", "f32[5], 0, 2, 2"]),
    OpDef::view("aten::alias(Tensor(a) self) -> Tensor(a)", "The tensor itself.", same)
        .tags(&[Tag::Core])
        .derivative(d::same)
        .samples(&["f32[2, 3]<[1, 2]"]),
    OpDef::view("aten::detach(Tensor(a) self) -> Tensor(a)", "The tensor, cut off from its gradient.", |a| {
        let mut view = a.tensor(0)?.clone();
        view.requires_grad = false;
        view.number = false;
        Ok(view.into())
    })
    .no_derivative("it is there to have none")
    .decompose(by::itself)
    .samples(&["f32[2, 3]<[1, 2]"]),
    OpDef::view("aten::lift_fresh(Tensor(a) self) -> Tensor(a)", "A constant of the program, as it is.", same)
        .derivative(d::same)
        .decompose(by::itself)
        .samples(&["f32[2, 3]"]),
    OpDef::view(
        "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
        "Parts of equal size along a dimension, the last maybe smaller.",
        |a| Ok(views::split_by_size(a.tensor(0)?, &a.sym(1)?, a.int(2)?)?.into()),
    )
    .derivative(d::split)
    .decompose(by::split)
    .samples(&["f32[5, 2], 2", "f32[2, 3], 2, 1", "f32[0], 0"]),
    OpDef::view(
        "aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
        "Parts of the given sizes along a dimension.",
        split_with_sizes,
    )
    .derivative(d::split)
    .decompose(by::split_sizes)
    .samples(&["f32[5, 2], [2, 3]"]),
    OpDef::view(
        "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
        "Parts of the given sizes along a dimension.",
        split_with_sizes,
    )
    .tags(&[Tag::Core])
    .derivative(d::split)
    .samples(&["f32[5, 2], [2, 0, 3]"]),
    OpDef::composite(
        "aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
        "`split`, for callers that write to at most one part.",
        |e, a| e.call("aten.split.Tensor", a.values),
    )
    .samples(&["f32[5, 2], 2"]),
    OpDef::composite(
        "aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
        "`split_with_sizes`, for callers that write to at most one part.",
        |e, a| e.call("aten.split_with_sizes.default", a.values),
    )
    .samples(&["f32[5, 2], [2, 3]"]),
    OpDef::view(
        "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
        "At most the given number of parts along a dimension.",
        |a| Ok(views::chunked(a.tensor(0)?, a.int(1)?, a.int(2)?)?.into()),
    )
    .derivative(d::split)
    .decompose(by::chunk)
    .samples(&["f32[5, 2], 2", "f32[5, 2], 4", "f32[0], 3"]),
    OpDef::composite(
        "aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
        "`chunk`, for callers that write to at most one part.",
        |e, a| e.call("aten.chunk.default", a.values),
    )
    .samples(&["f32[5, 2], 2"]),
    OpDef::view(
        "aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
        "Parts along a dimension whose sizes differ by at most one.",
        |a| Ok(views::split_evenly(a.tensor(0)?, a.int(1)?, a.int(2)?)?.into()),
    )
    .derivative(d::tensor_split)
    .samples(&["f32[5, 2], 3", "f32[2], 3"]),
    OpDef::view(
        "aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
        "Parts along a dimension between indices.",
        |a| Ok(views::split_at(a.tensor(0)?, &a.syms(1)?, a.int(2)?)?.into()),
    )
    .derivative(d::tensor_split)
    .samples(&["f32[5, 2], [1, 3]", "f32[5], [3, 1, -1, 9]"]),
    OpDef::view(
        "aten::hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
        "`tensor_split` along the second dimension (the first of a vector).",
        |a| split_along(a, |rank| i64::from(rank != 1)),
    )
    .derivative(d::hsplit)
    .samples(&["f32[2, 4], 2", "f32[4], 2"]),
    OpDef::view(
        "aten::hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
        "`tensor_split` along the second dimension (the first of a vector).",
        |a| split_along(a, |rank| i64::from(rank != 1)),
    )
    .derivative(d::hsplit)
    .samples(&["f32[2, 4], [1, 3]"]),
    OpDef::view(
        "aten::vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
        "`tensor_split` along the first dimension.",
        |a| split_along(a, |rank| if rank < 2 { -9 } else { 0 }),
    )
    .derivative(d::vsplit)
    .samples(&["f32[4, 2], 2"]),
    OpDef::view(
        "aten::vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
        "`tensor_split` along the first dimension.",
        |a| split_along(a, |rank| if rank < 2 { -9 } else { 0 }),
    )
    .derivative(d::vsplit)
    .samples(&["f32[4, 2], [1, 3]"]),
    OpDef::view(
        "aten::dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
        "`tensor_split` along the third dimension.",
        |a| split_along(a, |_| 2),
    )
    .derivative(d::dsplit)
    .samples(&["f32[1, 2, 4], 2"]),
    OpDef::view(
        "aten::dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
        "`tensor_split` along the third dimension.",
        |a| split_along(a, |_| 2),
    )
    .derivative(d::dsplit)
    .samples(&["f32[1, 2, 4], [1, 3]"]),
    OpDef::view(
        "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
        "Every index of a dimension as a tensor of its own.",
        |a| Ok(views::unbound(a.tensor(0)?, a.int(1)?)?.into()),
    )
    .derivative(d::unbind)
    .decompose(by::unbind)
    .samples(&["f32[3, 2]", "f32[3, 2], -1", "f32[0, 2]"]),
    OpDef::view(
        "aten::view_as_real(Tensor(a) self) -> Tensor(a)",
        "Complex numbers as pairs of real ones in a new last dimension.",
        |a| Ok(parts(a.tensor(0)?)?.into()),
    )
    .derivative(d::view_as_real)
    .samples(&["c64[2, 3]", "c128[]", "c64[2, 3]<[1, 2]"]),
    OpDef::view(
        "aten::view_as_complex(Tensor(a) self) -> Tensor(a)",
        "Pairs of real numbers in the last dimension as complex ones.",
        view_as_complex,
    )
    .derivative(d::view_as_complex)
    .samples(&["f32[3, 2]", "f64[2]"]),
    OpDef::view(
        "aten::real(Tensor(a) self) -> Tensor(a)",
        "The real part; a real tensor itself.",
        |a| part(a.tensor(0)?, 0),
    )
    .derivative(d::same)
    .samples(&["c64[2, 3]", "f32[3]"]),
    OpDef::view("aten::imag(Tensor(a) self) -> Tensor(a)", "The imaginary part.", |a| {
        if !a.tensor(0)?.dtype.is_complex() {
            invalid!("a real tensor has no imaginary part");
        }
        part(a.tensor(0)?, 1)
    })
    .derivative(d::imag)
    .samples(&["c64[2, 3]"]),
    OpDef::kernel("aten::_conj(Tensor(a) self) -> Tensor(a)", "The complex conjugate.", computed_view, conj)
        .derivative(d::conj)
        .samples(&["c64[2, 3]", "c64[2, 3]<[1, 2]", "f32[3]"]),
    OpDef::kernel(
        "aten::_neg_view(Tensor(a) self) -> Tensor(a)",
        "The negative, as conjugation leaves it in imaginary parts.",
        computed_view,
        |call| {
            let x = call.args.tensor(0)?;
            Pointwise::as_result(call, [x])?.f64(|[x]| -x).i64(|[x]| x.wrapping_neg()).c128(|[x]| -x).finish()
        },
    )
    .derivative(d::neg)
    .samples(&["f32[2, 3]", "c64[2, 3]<[1, 2]"]),
    OpDef::composite("aten::conj(Tensor(a) self) -> Tensor(a)", "The complex conjugate; a real tensor itself.", |e, a| {
        let x = *a.tensor(0)?;
        if e.dtype(x).is_complex() { e.call("aten._conj.default", args![x]) } else { Ok(x.into()) }
    })
    .samples(&["c64[2, 3]", "f32[3]"]),
    OpDef::view("aten::resolve_conj(Tensor(a) self) -> Tensor(a)", "The tensor itself: conjugates are computed.", same)
        .derivative(d::same)
        .decompose(by::itself)
        .samples(&["c64[2]"]),
    OpDef::view("aten::resolve_neg(Tensor(a) self) -> Tensor(a)", "The tensor itself: negatives are computed.", same)
        .derivative(d::same)
        .decompose(by::itself)
        .samples(&["f32[2]"]),
    OpDef::composite(
        "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
        "The tensor itself if it is dense in the format, else a copy that is.",
        contiguous,
    )
    .samples(&["f32[2, 3]<[1, 2]", "f32[2, 3]", "f32[1, 2, 3, 2], memory_format=channels_last"]),
    in_place("aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "`transpose` in place.", transpose)
        .samples(&["f32[2, 3], 0, 1"]),
    in_place("aten::t_(Tensor(a!) self) -> Tensor(a!)", "`t` in place.", t).samples(&["f32[2, 3]"]),
    in_place("aten::squeeze_(Tensor(a!) self) -> Tensor(a!)", "`squeeze` in place.", squeeze).samples(&["f32[1, 3]"]),
    in_place("aten::squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", "`squeeze` in place.", squeeze_dim)
        .samples(&["f32[1, 3], 0"]),
    in_place("aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", "`squeeze` in place.", squeeze_dims)
        .samples(&["f32[1, 3], [0]"]),
    in_place("aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", "`unsqueeze` in place.", unsqueeze)
        .samples(&["f32[2, 3], 0"]),
    in_place(
        "aten::as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)",
        "`as_strided` in place.",
        as_strided,
    )
    .samples(&["f32[2, 3], [3], [2]"]),
    OpDef { eval: Eval::Kernel(resize), ..in_place(
        "aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
        "Another size: of the same storage where that suffices, else of a larger one that starts with the same elements.",
        |a| resized(a.tensor(0)?, &a.syms(1)?, a.memory_format(2)?),
    ) }
    .tags(&[Tag::Core])
    .samples(&["f32[2, 3], [2, 2]", "f32[2, 3], [4, 4]", "f32[0], [2, 2]", "f32[2, 3]<[1, 2], [2, 3]"]),
    OpDef { eval: Eval::Kernel(resize), ..in_place(
        "aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
        "`resize_` to the size of another tensor.",
        |a| resized(a.tensor(0)?, &a.tensor(1)?.shape, a.memory_format(2)?),
    ) }
    .samples(&["f32[2, 3], i64[4]", "f32[2], i64[4, 2]"]),
];

/// An operator that gives its argument another shape in place; see the module's text.
const fn in_place(schema: &'static str, doc: &'static str, infer: pyrite_ir::op::InferFn) -> OpDef {
    OpDef::view(schema, doc, infer)
}

/// The tensor with another shape, through a copy where it must be.
fn reshape(e: &mut dyn Emit, x: Handle, sizes: &[SymInt]) -> Result<Handle, OpError> {
    let shape = views::resolve_sizes(sizes, &e.meta(x).numel())?;
    if views::strides_for_shape(e.meta(x), &shape).is_some() {
        return e.one("aten.view.default", args![x, &*shape]);
    }
    let copy = e.one("aten.clone.default", args![x, MemoryFormat::Contiguous])?;
    e.one("aten._unsafe_view.default", args![copy, &*shape])
}

fn flatten(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let x = *a.tensor(0)?;
    let shape = e.shape(x);
    let (start, end) = (wrap_dim(a.int(1)?, shape.len())?, wrap_dim(a.int(2)?, shape.len())?);
    if start > end {
        invalid!("flatten from dimension {start} to {end}, which lies before it");
    }
    if shape.is_empty() {
        return Ok(reshape(e, x, &[SymInt::Int(1)])?.into());
    }
    if start == end {
        return Ok(x.into());
    }
    let joined = shape[start..=end].iter().fold(SymInt::Int(1), |n, d| n * d);
    let mut sizes = shape[..start].to_vec();
    sizes.push(joined);
    sizes.extend_from_slice(&shape[end + 1..]);
    Ok(reshape(e, x, &sizes)?.into())
}

fn unflatten(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    let dim = wrap_dim(a.int(1)?, x.rank())?;
    let Some(size) = x.shape.get(dim) else { invalid!("a tensor without dimensions cannot be unflattened") };
    let sizes = a.syms(2)?;
    if sizes.is_empty() {
        invalid!("unflatten wants at least one size");
    }
    let inner = views::resolve_sizes(&sizes, size)?;
    let mut shape = x.shape[..dim].to_vec();
    shape.extend(inner);
    shape.extend_from_slice(&x.shape[dim + 1..]);
    Ok(views::reshaped(x, &shape)?.into())
}

fn wanted(a: &Args<'_, Meta>, index: usize) -> Result<DType, OpError> {
    a.dtype(index)?.ok_or_else(|| OpError::invalid("a data type is missing"))
}

fn same(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    Ok(x.view(&x.shape, &x.stride, x.offset.clone()).into())
}

fn t(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    match x.rank() {
        0 | 1 => same(a),
        2 => Ok(views::transposed(x, 0, 1)?.into()),
        rank => invalid!("t wants at most two dimensions, not {rank}"),
    }
}

fn transpose(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(views::transposed(a.tensor(0)?, a.int(1)?, a.int(2)?)?.into())
}

fn matrix_transpose(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    match x.rank() {
        0 => same(a),
        1 => invalid!("a vector has no transpose"),
        _ => Ok(views::transposed(x, -2, -1)?.into()),
    }
}

fn adjoint(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let transposed = e.one("aten.mT.default", args![*a.tensor(0)?])?;
    e.call("aten.conj.default", args![transposed])
}

fn move_one(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(views::moved(a.tensor(0)?, &[a.int(1)?], &[a.int(2)?])?.into())
}

fn move_many(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(views::moved(a.tensor(0)?, &a.ints(1)?, &a.ints(2)?)?.into())
}

fn squeeze(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    Ok(views::squeezed(x, &(0..x.rank()).collect::<Vec<_>>()).into())
}

fn squeeze_dim(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    Ok(views::squeezed(x, &[wrap_dim(a.int(1)?, x.rank())?]).into())
}

fn squeeze_dims(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    Ok(views::squeezed(x, &wrap_dims(&a.ints(1)?, x.rank())?).into())
}

fn unsqueeze(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(views::unsqueezed(a.tensor(0)?, a.int(1)?)?.into())
}

fn as_strided(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(views::strided(a.tensor(0)?, &a.syms(1)?, &a.syms(2)?, a.opt_sym(3)?)?.into())
}

fn split_with_sizes(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    Ok(views::split_by_sizes(a.tensor(0)?, &a.syms(1)?, a.int(2)?)?.into())
}

/// `hsplit` and its like: into sections that must come out even, or at indices.
fn split_along(a: &Args<'_, Meta>, dim: fn(usize) -> i64) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    let dim = dim(x.rank());
    if dim < 0 || dim as usize >= x.rank() {
        invalid!("{} does not split a tensor of {} dimensions", a.schema.name, x.rank());
    }
    if matches!(a.value(1), Value::List(_)) {
        return Ok(views::split_at(x, &a.syms(1)?, dim)?.into());
    }
    let sections = a.int(1)?;
    if sections <= 0 || !x.shape[dim as usize].modulo(&sections.into()).is_eq(0) {
        invalid!("size {} does not divide into {sections} equal sections", x.shape[dim as usize]);
    }
    Ok(views::split_evenly(x, sections, dim)?.into())
}

/// Complex numbers as pairs.
fn parts(x: &Meta) -> Result<Meta, OpError> {
    if !x.dtype.is_complex() {
        invalid!("a tensor of type {} has no real and imaginary parts", x.dtype);
    }
    let mut view = x.view(&x.shape, &x.stride, &x.offset * 2);
    view.dtype = x.dtype.to_real();
    for stride in &mut view.stride {
        *stride = &*stride * 2;
    }
    view.shape.push(SymInt::Int(2));
    view.stride.push(SymInt::Int(1));
    Ok(view)
}

fn part(x: &Meta, index: i64) -> Result<Value<Meta>, OpError> {
    if !x.dtype.is_complex() {
        return Ok(x.view(&x.shape, &x.stride, x.offset.clone()).into());
    }
    Ok(views::selected(&parts(x)?, -1, &index.into())?.into())
}

fn view_as_complex(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    let even = |v: &SymInt| v.modulo(&2.into()).is_eq(0);
    let Some(last) = x.rank().checked_sub(1) else { invalid!("view_as_complex wants a last dimension of size 2") };
    if !matches!(x.dtype, DType::F32 | DType::F64) {
        invalid!("view_as_complex wants f32 or f64, not {}", x.dtype);
    }
    if !x.shape[last].is_eq(2) || !x.stride[last].is_eq(1) {
        invalid!(
            "view_as_complex wants a dense last dimension of size 2, not {:?} with strides {:?}",
            x.shape,
            x.stride
        );
    }
    if !even(&x.offset) || !x.stride[..last].iter().all(even) {
        invalid!("view_as_complex wants even strides and offset, not {:?} and {}", x.stride, x.offset);
    }
    let half = |v: &SymInt| v.floor_div(&2.into());
    let stride: Vec<SymInt> = x.stride[..last].iter().map(half).collect();
    let mut view = x.view(&x.shape[..last], &stride, half(&x.offset));
    view.dtype = x.dtype.to_complex();
    Ok(view.into())
}

/// A result with memory of its own that has the strides of its argument.
fn computed_view(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    Ok(Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &x.stride, x.dtype) }.into())
}

fn conj(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    Pointwise::as_result(call, [x])?.f64(|[x]| x).i64(|[x]| x).c128(|[x]: [Complex64; 1]| x.conj()).finish()
}

fn contiguous(e: &mut dyn Emit, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    let x = *a.tensor(0)?;
    let meta = e.meta(x);
    let format = a.memory_format(1)?.unwrap_or(MemoryFormat::Contiguous);
    let already = match format {
        MemoryFormat::Contiguous => meta.is_contiguous(),
        MemoryFormat::ChannelsLast => meta.is_channels_last(),
        MemoryFormat::ChannelsLast3d => meta.is_channels_last_3d(),
        MemoryFormat::Preserve => invalid!("contiguous wants a format to be contiguous in"),
    };
    if already { Ok(x.into()) } else { e.call("aten.clone.default", args![x, format]) }
}

fn resized(x: &Meta, sizes: &[SymInt], format: Option<MemoryFormat>) -> Result<Value<Meta>, OpError> {
    if sizes.iter().any(|d| d.as_int().is_some_and(|v| v < 0)) {
        invalid!("sizes {sizes:?} hold a negative number");
    }
    let unchanged = x.rank() == sizes.len() && x.shape.iter().zip(sizes).all(|(a, b)| a.is_eq(b));
    let stride = match format {
        None if unchanged => x.stride.clone(),
        None => contiguous_strides(sizes),
        Some(MemoryFormat::Preserve) => invalid!("resize_ cannot preserve a format"),
        Some(format) => format_strides(Some(format), &Meta::contiguous(sizes, x.dtype))?,
    };
    Ok(x.view(sizes, &stride, x.offset.clone()).into())
}

fn resize(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, meta) = (call.args.tensor(0)?, call.out_meta(0)?);
    let layout = meta.layout()?;
    if let Ok(view) = x.view(meta.dtype, layout.clone()) {
        return Ok(view.into());
    }
    // The check of sizes that no tensor can have, before memory is asked for.
    Tensor::empty_strided(&layout.shape, &layout.stride, meta.dtype)?;
    let bytes = (layout.span().unwrap_or(0) as usize) * meta.dtype.size();
    let storage = Storage::zeroed(bytes);
    let old = x.storage().to_bytes();
    storage.write::<u8>()[..old.len()].copy_from_slice(&old);
    Ok(Tensor::new(storage, meta.dtype, Layout { ..layout })?.into())
}
