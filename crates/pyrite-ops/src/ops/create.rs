//! Fresh tensors: constants, ranges, triangles.
//!
//! `empty` and its relatives return zeros: PyTorch leaves their content unspecified, and a program that reads it
//! should at least compute the same thing twice.

use num_complex::Complex64;
use pyrite_ir::meta::strides_in_order;
use pyrite_ir::op::{InferFn, KernelFn};
use pyrite_ir::{
    Args, Call, Device, Eval, Freedom, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, Vjp, args, invalid,
};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, MemoryFormat, Scalar, Tensor};

use super::copy::expect_strided;
use crate::decompositions::create as by;
use crate::derivatives::{create as d, view::self_adjoint};
use crate::lowerings as to_loops;
use crate::rules::{format_strides, operand_dtype, preserved_strides, views, wrap_dim, wrap_dims};
use pyrite_kernels::fill_with;

const CONSTANT: Vjp = Vjp::NonDifferentiable("its result does not depend on the values of tensors");

/// The table.
pub const OPS: &[OpDef] = &[
    constant(
        "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "A tensor of unspecified content; here zeros.",
        |a| {
            let fresh = sized(a, 0, options(a, 1, None, DType::F32)?)?;
            let stride = match a.memory_format(5)? {
                Some(MemoryFormat::Preserve) => invalid!("empty has no format to preserve"),
                None => fresh.stride.clone(),
                format => format_strides(format, &fresh)?,
            };
            Ok(Meta { stride, ..fresh }.into())
        },
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .free(Freedom::Contents)
    .tags(&[Tag::Core])
    .samples(&["[2, 3]", "[0], dtype=i64", "[1, 2, 3, 2], memory_format=channels_last"]),
    constant(
        "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "A tensor of unspecified content with the strides given; here zeros.",
        |a| with_strides(sized(a, 0, options(a, 2, None, DType::F32)?)?, &a.syms(1)?),
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .free(Freedom::Contents)
    .tags(&[Tag::Core])
    .samples(&["[2, 3], [1, 2]", "[2, 3], [0, 1], dtype=c64"]),
    constant(
        "aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "A tensor of unspecified content whose dimensions lie in the order given; here zeros.",
        |a| {
            let fresh = sized(a, 0, options(a, 2, None, DType::F32)?)?;
            let order = wrap_dims(&a.ints(1)?, fresh.rank())?;
            if order.len() != fresh.rank() {
                invalid!("{} dimensions are named to lay out {}", order.len(), fresh.rank());
            }
            let stride = strides_in_order(&fresh.shape, &order);
            Ok(Meta { stride, ..fresh }.into())
        },
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .free(Freedom::Contents)
    .samples(&["[2, 3, 4], [2, 0, 1]"]),
    constant(
        "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "A tensor like another, of unspecified content; here zeros.",
        |a| like(a, 1),
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .free(Freedom::Contents)
    .samples(&["f32[2, 3]<[1, 2]", "f32[2, 3], dtype=i32, memory_format=contiguous_format"]),
    constant(
        "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "Zeros like another tensor.",
        |a| like(a, 1),
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .decompose(by::zeros_like)
    .samples(&["f32[2, 3]<[1, 2]", "f32[2, 3]<[0, 1], dtype=i32"]),
    constant(
        "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "Ones like another tensor.",
        |a| like(a, 1),
        |call| repeated(call, Scalar::Int(1)),
    ).every_type()
    .decompose(by::ones_like)
    .samples(&["f32[2, 3]<[1, 2]", "c64[2, 3], dtype=b8"]),
    constant(
        "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        "One value repeated like another tensor.",
        |a| like(a, 2),
        |call| repeated(call, call.args.scalar(1)?),
    ).every_type()
    .lower(to_loops::create::full).tags(&[Tag::Core])
    .samples(&["f32[2, 3]<[1, 2], 2.5", "i64[2], 7, dtype=bf16", "f32[1, 2, 3, 2], True, memory_format=channels_last"]),
    constant(
        "aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "A tensor of unspecified content with the type of another; here zeros.",
        |a| new(a, 2),
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .free(Freedom::Contents)
    .samples(&["f64[2], [3, 2]"]),
    constant(
        "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "A tensor of unspecified content with the strides given and the type of another; here zeros.",
        |a| {
            let x = a.tensor(0)?;
            with_strides(sized(a, 1, options(a, 3, Some(x), x.dtype)?)?, &a.syms(2)?)
        },
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .free(Freedom::Contents)
    .samples(&["f64[2], [3, 2], [1, 3]"]),
    constant(
        "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Zeros with the type of another tensor.",
        |a| new(a, 2),
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .decompose(by::new_zeros)
    .samples(&["f64[2], [3, 2]", "f64[2], [0], dtype=i64"]),
    constant(
        "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Ones with the type of another tensor.",
        |a| new(a, 2),
        |call| repeated(call, Scalar::Int(1)),
    ).every_type()
    .decompose(by::new_ones)
    .samples(&["f64[2], [3, 2]"]),
    constant(
        "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "One value repeated, with the type of another tensor.",
        |a| new(a, 3),
        |call| repeated(call, call.args.scalar(2)?),
    ).every_type()
    .decompose(by::new_full)
    .samples(&["f64[2], [3, 2], 1.5", "i64[2], [3], 1.5"]),
    constant(
        "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Zeros.",
        |a| Ok(sized(a, 0, options(a, 1, None, DType::F32)?)?.into()),
        |call| repeated(call, Scalar::Int(0)),
    ).every_type()
    .decompose(by::zeros)
    .samples(&["[2, 3]", "[], dtype=i64"]),
    constant(
        "aten::_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Zeros.",
        |a| Ok(sized(a, 0, options(a, 1, None, DType::F32)?)?.into()),
        |call| repeated(call, Scalar::Int(0)),
    )
    .decompose(by::zeros)
    .samples(&["[2, 3]"]),
    constant(
        "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Ones.",
        |a| Ok(sized(a, 0, options(a, 1, None, DType::F32)?)?.into()),
        |call| repeated(call, Scalar::Int(1)),
    ).every_type()
    .decompose(by::ones)
    .samples(&["[2, 3]", "[0, 2], dtype=b8"]),
    constant(
        "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "One value repeated; its kind gives the type.",
        |a| Ok(sized(a, 0, options(a, 2, None, default_type(a.value(1)))?)?.into()),
        |call| repeated(call, call.args.scalar(1)?),
    ).every_type()
    .lower(to_loops::create::full).tags(&[Tag::Core])
    .samples(&["[2, 3], 2.5", "[2], 7", "[], True", "[2], -inf, dtype=f16"]),
    constant(
        "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "A number as a tensor without dimensions.",
        |a| Ok(shaped(&[], options(a, 1, None, DType::F32)?).into()),
        |call| repeated(call, call.args.scalar(0)?),
    ).every_type()
    .lower(to_loops::create::scalar_tensor).tags(&[Tag::Core])
    .samples(&["2.5", "7, dtype=i64", "True, dtype=b8"]),
    OpDef::kernel(
        "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
        "A tensor like another with one value everywhere.",
        filled,
        fill,
    ).every_type()
    .lower(to_loops::create::full).tags(&[Tag::Core])
    .derivative(d::fill)
    .samples(&["f32[2, 3]<[1, 2], 2.5", "i64[2], 7"]),
    OpDef::kernel(
        "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
        "A tensor like another with the value of a tensor without dimensions everywhere.",
        |a| {
            let rank = a.tensor(1)?.rank();
            if rank > 0 {
                invalid!("fill wants a value without dimensions, not one of {rank}");
            }
            filled(a)
        },
        fill,
    ).every_type()
    .derivative(d::fill)
    .decompose(by::fill)
    .samples(&["f32[2, 3]<[1, 2], f64[]", "i64[2], 7"]),
    OpDef { eval: Eval::Kernel(fill_in_place), ..OpDef::written(
        "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
        "Overwrites every element with one value.",
        "",
    ).every_type() }
    .samples(&["f32[2, 3]<[1, 2], 2.5", "i64[2], 7", "f32[2, 3]<[0, 1], 1"]),
    OpDef { eval: Eval::Kernel(fill_in_place), ..OpDef::written(
        "aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
        "Overwrites every element with the value of a tensor without dimensions.",
        "",
    ).every_type() }
    .samples(&["f32[2, 3], f64[]"]),
    OpDef::kernel(
        "aten::zero(Tensor self) -> Tensor",
        "A tensor like another with zeros everywhere.",
        filled,
        |call| {
            let out = call.allocate(0)?;
            fill_with(&out, Scalar::Int(0));
            Ok(out.into())
        },
    ).every_type()
    .derivative(d::fill)
    .decompose(by::zero)
    .samples(&["f32[2, 3]<[1, 2]"]),
    OpDef { eval: Eval::Kernel(|call| {
        let x = call.args.tensor(0)?;
        fill_with(x, Scalar::Int(0));
        Ok(x.clone().into())
    }), ..OpDef::written(
        "aten::zero_(Tensor(a!) self) -> Tensor(a!)",
        "Overwrites every element with zero.",
        "",
    ).every_type() }
    .samples(&["f32[2, 3]<[1, 2]"]),
    OpDef::kernel(
        "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "The numbers from zero up to an end.",
        |a| ranged(a, None, a.value(0), None, 1),
        |call| range(call, Scalar::Int(0), Scalar::Int(1)),
    )
    .vjp(CONSTANT)
    .decompose(by::arange)
    .samples(&["5", "2.5", "0", "4, dtype=f16"]),
    OpDef::kernel(
        "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "The numbers from a start up to an end.",
        |a| ranged(a, Some(a.value(0)), a.value(1), None, 2),
        |call| range(call, call.args.scalar(0)?, Scalar::Int(1)),
    )
    .vjp(CONSTANT)
    .decompose(by::arange_start)
    .samples(&["2, 5", "-1.5, 2.5"]),
    OpDef::kernel(
        "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "The numbers from a start up to an end, a step apart.",
        |a| ranged(a, Some(a.value(0)), a.value(1), Some(a.value(2)), 3),
        |call| range(call, call.args.scalar(0)?, call.args.scalar(2)?),
    )
    .lower(to_loops::create::arange).tags(&[Tag::Core])
    .vjp(CONSTANT)
    .samples(&["0, 10, 3", "5, 0, -2", "0, 1, 0.25", "1, 4, 1, dtype=f64"]),
    OpDef::kernel(
        "prims::iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad) -> Tensor",
        "A number of integers from a start, a step apart.",
        |a| {
            let length = a.sym(0)?;
            if length.is_lt(0) {
                invalid!("iota of length {length}");
            }
            let (dtype, device) = (a.dtype(3)?.unwrap_or(DType::I64), a.device(4)?.unwrap_or_default());
            Ok(shaped(&[length], (dtype, device)).into())
        },
        |call| range(call, call.args.scalar(1)?, call.args.scalar(2)?),
    )
    .vjp(CONSTANT)
    .decompose(by::iota)
    .samples(&["5, start=2, step=3, dtype=i64, device='cpu', requires_grad=False"]),
    OpDef::kernel(
        "aten::range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "The numbers from a start to an end inclusive, a step apart.",
        |a| {
            let (start, end, step) = (a.float(0)?, a.float(1)?, a.float(2)?);
            let length = checked_length(((end - start) / step).floor() + 1.0, start, end, step)?;
            Ok(shaped(&[length.into()], options(a, 3, None, DType::F32)?).into())
        },
        |call| range(call, call.args.scalar(0)?, call.args.scalar(2)?),
    )
    .vjp(CONSTANT)
    .samples(&["0, 3, 1", "0, 1, 0.25"]),
    spaced(
        "aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        &["0, 1, 5", "10, -7, 6, dtype=i32", "3, 5, 1", "0, 1, 0"],
    ),
    spaced(
        "aten::linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        &["f32[], f32[], 5"],
    ),
    spaced(
        "aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        &["f32[], 2.5, 5"],
    ),
    spaced(
        "aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        &["2.5, f32[], 5"],
    ),
    spaced(
        "aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        &["0, 1, 5", "0, 3, 4, 2.0, dtype=i64"],
    ),
    spaced(
        "aten::logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        &["f32[], f32[], 5"],
    ),
    spaced(
        "aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        &["f32[], 1, 5"],
    ),
    spaced(
        "aten::logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        &["1, f32[], 5"],
    ),
    OpDef::kernel(
        "aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "The identity matrix.",
        |a| identity(&a.sym(0)?, &a.sym(0)?, options(a, 1, None, DType::F32)?),
        eye,
    )
    .vjp(CONSTANT)
    .decompose(by::eye)
    .samples(&["3", "0", "2, dtype=b8"]),
    OpDef::kernel(
        "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "A matrix with ones on its diagonal.",
        |a| identity(&a.sym(0)?, &a.sym(1)?, options(a, 2, None, DType::F32)?),
        eye,
    )
    .vjp(CONSTANT)
    .decompose(by::eye_m)
    .samples(&["3, 2", "2, 4, dtype=i64"]),
    OpDef::kernel(
        "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
        "Matrices with zeros above a diagonal.",
        triangle,
        |call| keep_where(call, |row, column, diagonal| column - row <= diagonal),
    ).tolerance(Tolerance::Exact)
    .derivative(self_adjoint)
    .decompose(by::tril)
    .samples(&["f32[3, 4]", "f32[2, 3, 3]<[1, 2, 6], -1", "b8[2, 2], 1", "c64[0, 3]"]),
    OpDef::kernel(
        "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
        "Matrices with zeros below a diagonal.",
        triangle,
        |call| keep_where(call, |row, column, diagonal| column - row >= diagonal),
    ).tolerance(Tolerance::Exact)
    .derivative(self_adjoint)
    .decompose(by::triu)
    .samples(&["f32[3, 4]", "f32[2, 3, 3]<[1, 2, 6], -1"]),
    OpDef::written("aten::tril_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)", "`tril` in place.", "aten.tril.default")
        .samples(&["f32[3, 4]"]),
    OpDef::written("aten::triu_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)", "`triu` in place.", "aten.triu.default")
        .samples(&["f32[3, 4]"]),
    OpDef::kernel(
        "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "The rows and columns of the elements on and below a diagonal.",
        |a| triangle_indices(a, below),
        |call| write_indices(call, below),
    )
    .vjp(CONSTANT)
    .samples(&["3, 4", "3, 2, -1, dtype=i32", "0, 3"]),
    OpDef::kernel(
        "aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "The rows and columns of the elements on and above a diagonal.",
        |a| triangle_indices(a, above),
        |call| write_indices(call, above),
    )
    .vjp(CONSTANT)
    .samples(&["3, 4", "3, 2, -1", "2, 0"]),
    OpDef::kernel(
        "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
        "The last dimension as a diagonal of two new ones, zeros elsewhere.",
        |a| {
            let x = a.tensor(0)?;
            let Some(last) = x.shape.last() else { invalid!("diag_embed wants at least one dimension") };
            let rank = x.rank() + 1;
            let (first, second) = (wrap_dim(a.int(2)?, rank)?, wrap_dim(a.int(3)?, rank)?);
            if first == second {
                invalid!("a diagonal lies in two different dimensions, not twice in {first}");
            }
            let side = last + a.int(1)?.saturating_abs();
            let mut shape: SymDims = x.shape[..rank - 2].into();
            shape.insert(first.min(second), side.clone());
            shape.insert(first.max(second), side);
            Ok(x.fresh(&shape, x.dtype).into())
        },
        |call| {
            let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
            fill_with(&out, Scalar::Int(0));
            let (offset, first, second) = (call.args.int(1)?, call.args.int(2)?, call.args.int(3)?);
            let line = views::diagonal(&Meta::of(&out), offset, first, second)?;
            out.view(out.dtype(), line.layout()?)?.write_from(x);
            Ok(out.into())
        },
    )
    .derivative(d::diag_embed)
    .decompose(by::diag_embed)
    .samples(&["f32[2, 3]", "f32[3], 1", "f32[2, 3], -1, 0, 2", "i64[0]"]),
    OpDef::composite("aten::diag(Tensor self, int diagonal=0) -> Tensor", "A vector as a diagonal matrix, or a matrix's diagonal.", |e, a| {
        let x = *a.tensor(0)?;
        match e.rank(x) {
            1 => e.call("aten.diag_embed.default", args![x, a.int(1)?]),
            2 => e.call("aten.diagonal_copy.default", args![x, a.int(1)?]),
            rank => invalid!("diag wants a vector or a matrix, not {rank} dimensions"),
        }
    })
    .samples(&["f32[3], 1", "f32[3, 4]"]),
    OpDef::kernel(
        "aten::block_diag(Tensor[] tensors) -> Tensor",
        "A matrix with the given ones along its diagonal.",
        |a| {
            let tensors = a.tensors(0)?;
            let dtype = operand_dtype(tensors.iter().copied());
            let (mut rows, mut columns) = (SymInt::Int(0), SymInt::Int(0));
            for x in &tensors {
                let (height, width) = block(x)?;
                rows = rows + height;
                columns = columns + width;
            }
            Ok(Meta::contiguous(&if tensors.is_empty() { [SymInt::Int(1), SymInt::Int(0)] } else { [rows, columns] }, dtype).into())
        },
        |call| {
            let out = call.allocate(0)?;
            fill_with(&out, Scalar::Int(0));
            let (mut row, mut column) = (SymInt::Int(0), SymInt::Int(0));
            for x in call.args.tensors(0)? {
                let (height, width) = block(&Meta::of(x))?;
                let part = views::narrowed(&Meta::of(&out), 0, &row, &height)?;
                let part = views::narrowed(&part, 1, &column, &width)?;
                let target = out.view(out.dtype(), part.layout()?)?;
                target.write_from(&x.reshaped(target.shape()));
                row = row + height;
                column = column + width;
            }
            Ok(out.into())
        },
    )
    .derivative(d::block_diag)
    .decompose(by::block_diag)
    .samples(&["[f32[2, 3], f32[1, 2]]", "[f32[3], i64[], f64[2, 2]]", "[f32[2, 0], f32[1, 1]]"]),
];

/// An operator that returns one number everywhere.
const fn constant(schema: &'static str, doc: &'static str, infer: InferFn, eval: KernelFn) -> OpDef {
    OpDef::kernel(schema, doc, infer, eval).vjp(CONSTANT)
}

fn repeated(call: &Call<'_>, value: Scalar) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    fill_with(&out, value);
    Ok(out.into())
}

/// Type and device from the options `dtype, layout, device, pin_memory` that start at `first`; what they leave open is
/// as in another tensor, or the given type on the CPU.
fn options(a: &Args<'_, Meta>, first: usize, like: Option<&Meta>, default: DType) -> Result<(DType, Device), OpError> {
    expect_strided(a, first + 1)?;
    let device = a.device(first + 2)?.or_else(|| like.map(|m| m.device.clone())).unwrap_or_default();
    Ok((a.dtype(first)?.unwrap_or(default), device))
}

/// A dense tensor.
fn shaped(shape: &[SymInt], (dtype, device): (DType, Device)) -> Meta {
    Meta { device, ..Meta::contiguous(shape, dtype) }
}

/// A dense tensor of the sizes in an argument.
fn sized(a: &Args<'_, Meta>, index: usize, options: (DType, Device)) -> Result<Meta, OpError> {
    let sizes = a.syms(index)?;
    if sizes.iter().any(|d| d.as_int().is_some_and(|v| v < 0)) {
        invalid!("sizes {sizes:?} hold a negative number");
    }
    Ok(shaped(&sizes, options))
}

fn with_strides(fresh: Meta, stride: &[SymInt]) -> Result<Value<Meta>, OpError> {
    if stride.len() != fresh.rank() || stride.iter().any(|s| s.as_int().is_some_and(|v| v < 0)) {
        invalid!("sizes {:?} and strides {stride:?} describe no tensor", fresh.shape);
    }
    Ok(Meta { stride: stride.into(), ..fresh }.into())
}

/// The rule of `*_like`: options from `first` on, then a memory format.
fn like(a: &Args<'_, Meta>, first: usize) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    let stride = format_strides(a.memory_format(first + 4)?, x)?;
    let fresh = shaped(&x.shape, options(a, first, Some(x), x.dtype)?);
    Ok(Meta { stride, ..fresh }.into())
}

/// The rule of `new_*`: a size, then options from `first` on.
fn new(a: &Args<'_, Meta>, first: usize) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    Ok(sized(a, 1, options(a, first, Some(x), x.dtype)?)?.into())
}

/// The type a number has as a tensor.
fn default_type(number: &Value<Meta>) -> DType {
    match number {
        Value::Bool(_) => DType::Bool,
        Value::Int(_) => DType::I64,
        Value::Complex(_) => DType::C64,
        _ => DType::F32,
    }
}

fn filled(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    Ok(Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &preserved_strides(x), x.dtype) }.into())
}

/// The number that an argument is or holds.
fn number(args: &Args<'_, Tensor>, index: usize) -> Result<Scalar, OpError> {
    match args.value(index) {
        Value::Tensor(t) if t.numel() == 1 => Ok(t.item()),
        Value::Tensor(t) => invalid!("{} wants one number, not a tensor of shape {:?}", args.schema.name, t.shape()),
        _ => args.scalar(index),
    }
}

fn fill(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    repeated(call, number(&call.args, 1)?)
}

fn fill_in_place(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let x = call.args.tensor(0)?;
    fill_with(x, number(&call.args, 1)?);
    Ok(x.clone().into())
}

/// A length computed in floating point, if it is one.
fn checked_length(length: f64, start: f64, end: f64, step: f64) -> Result<i64, OpError> {
    // The comparisons are false for NaN.
    if !(step > 0.0 && end >= start || step < 0.0 && end <= start) || !(0.0..1e15).contains(&length) {
        invalid!("no range leads from {start} to {end} in steps of {step}");
    }
    Ok(length as i64)
}

/// The rule of `arange`: bounds, a step, options from `first` on.
fn ranged(
    a: &Args<'_, Meta>,
    start: Option<&Value<Meta>>,
    end: &Value<Meta>,
    step: Option<&Value<Meta>>,
    first: usize,
) -> Result<Value<Meta>, OpError> {
    let (zero, one) = (Value::Int(0.into()), Value::Int(1.into()));
    let bounds = [start.unwrap_or(&zero), end, step.unwrap_or(&one)];
    let integral = bounds.iter().all(|v| matches!(v, Value::Int(_) | Value::Bool(_)));
    let options = options(a, first, None, if integral { DType::I64 } else { DType::F32 })?;
    let whole = |v: &Value<Meta>| match v {
        Value::Int(v) => Some(v.clone()),
        other => other.as_scalar().map(|s| SymInt::Int(s.to_i64())),
    };
    let [start, end, step] = bounds;
    let length = match (whole(start), whole(end), whole(step)) {
        (Some(start), Some(end), Some(step)) if integral => {
            let (distance, step) = if step.is_lt(0) { (&start - &end, -&step) } else { (&end - &start, step) };
            if step.is_eq(0) || distance.is_lt(0) {
                invalid!("no range leads from {start} to {end} in steps of {step}");
            }
            if step == 1 { distance } else { distance.ceil_div(&step) }
        }
        _ => {
            let float = |v: &Value<Meta>| v.as_scalar().map(Scalar::to_f64);
            let (Some(start), Some(end), Some(step)) = (float(start), float(end), float(step)) else {
                invalid!("a range between numbers that are not known");
            };
            checked_length(((end - start) / step).ceil(), start, end, step)?.into()
        }
    };
    Ok(shaped(&[length], options).into())
}

/// Numbers a step apart.
fn range(call: &Call<'_>, start: Scalar, step: Scalar) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let count = out.numel() as i64;
    if out.dtype().is_integral() {
        let (start, step) = (start.to_i64(), step.to_i64());
        out.write_i64s(&(0..count).map(|i| start.wrapping_add(i.wrapping_mul(step))).collect::<Vec<_>>());
    } else {
        let (start, step) = (start.to_f64(), step.to_f64());
        out.write_f64s(&(0..count).map(|i| start + i as f64 * step).collect::<Vec<_>>());
    }
    Ok(out.into())
}

/// The variants of `linspace` and `logspace`.
const fn spaced(schema: &'static str, samples: &'static [&'static str]) -> OpDef {
    OpDef::kernel(
        schema,
        "Numbers at equal distances from a start to an end inclusive; `logspace` raises a base to them.",
        spaced_rule,
        space,
    )
    .vjp(CONSTANT)
    .samples(samples)
}

fn is_log<T>(a: &Args<'_, T>) -> bool {
    a.schema.name.contains("logspace")
}

fn spaced_rule(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let steps = a.int(2)?;
    if steps < 0 {
        invalid!("{steps} steps");
    }
    let complex = |v: &Value<Meta>| match v {
        Value::Tensor(meta) => meta.dtype.is_complex(),
        other => matches!(other, Value::Complex(_)),
    };
    let dtype = if complex(a.value(0)) || complex(a.value(1)) { DType::C64 } else { DType::F32 };
    Ok(shaped(&[steps.into()], options(a, if is_log(a) { 4 } else { 3 }, None, dtype)?).into())
}

fn space(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let (start, end) = (number(&call.args, 0)?, number(&call.args, 1)?);
    let base = if is_log(&call.args) { Some(call.args.float(3)?) } else { None };
    let steps = out.numel();
    // The bounds are rounded to the type of the result before steps are taken; a single number is computed as it is.
    let round = |v: Scalar| if steps == 1 && base.is_some() { v } else { Tensor::scalar(v, out.dtype()).item() };
    let (start, end) = (round(start), round(end));
    if out.dtype().is_complex() {
        let (start, end) = (start.to_c128(), end.to_c128());
        let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0.into() };
        let at = |i: usize| {
            let value =
                if i < steps / 2 || steps == 1 { start + step * i as f64 } else { end - step * (steps - 1 - i) as f64 };
            base.map_or(value, |base| Complex64::new(base, 0.0).powc(value))
        };
        out.write_c128s(&(0..steps).map(at).collect::<Vec<_>>());
    } else {
        let (start, end) = (start.to_f64(), end.to_f64());
        let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
        let at = |i: usize| {
            // Each half counts from its own end, so that both ends are exact.
            let value =
                if i < steps / 2 || steps == 1 { start + step * i as f64 } else { end - step * (steps - 1 - i) as f64 };
            base.map_or(value, |base| base.powf(value))
        };
        out.write_f64s(&(0..steps).map(at).collect::<Vec<_>>());
    }
    Ok(out.into())
}

fn identity(rows: &SymInt, columns: &SymInt, options: (DType, Device)) -> Result<Value<Meta>, OpError> {
    if rows.is_lt(0) || columns.is_lt(0) {
        invalid!("a matrix of {rows} by {columns}");
    }
    Ok(shaped(&[rows.clone(), columns.clone()], options).into())
}

fn eye(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    fill_with(&out, Scalar::Int(0));
    let line = views::diagonal(&Meta::of(&out), 0, 0, 1)?;
    fill_with(&out.view(out.dtype(), line.layout()?)?, Scalar::Int(1));
    Ok(out.into())
}

fn triangle(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let x = a.tensor(0)?;
    if x.rank() < 2 {
        invalid!("{} wants matrices, not {} dimensions", a.schema.name, x.rank());
    }
    Ok(x.fresh(&x.shape, x.dtype).into())
}

/// A copy with zeros in the places of each matrix that are not kept.
fn keep_where(call: &Call<'_>, keep: fn(i64, i64, i64) -> bool) -> Result<Value<Tensor>, OpError> {
    let (out, diagonal) = (call.allocate(0)?, call.args.int(1)?);
    out.write_from(call.args.tensor(0)?);
    let rank = out.rank();
    let (rows, columns) = (out.shape()[rank - 2], out.shape()[rank - 1]);
    let size = out.dtype().size();
    let mut bytes = out.storage().write::<u8>();
    let row_bytes = columns as usize * size;
    if row_bytes == 0 {
        drop(bytes);
        return Ok(out.into());
    }
    // The result is dense, and a zero is zero bytes in every type.
    for (index, line) in bytes.chunks_exact_mut(row_bytes).enumerate() {
        let row = index as i64 % rows;
        for (column, element) in line.chunks_exact_mut(size).enumerate() {
            if !keep(row, column as i64, diagonal) {
                element.fill(0);
            }
        }
    }
    drop(bytes);
    Ok(out.into())
}

/// The columns of a row on and below a diagonal, half-open.
fn below(row: i64, columns: i64, offset: i64) -> (i64, i64) {
    (0, row.saturating_add(offset).saturating_add(1).clamp(0, columns))
}

/// The columns of a row on and above a diagonal, half-open.
fn above(row: i64, columns: i64, offset: i64) -> (i64, i64) {
    (row.saturating_add(offset).clamp(0, columns), columns)
}

type Columns = fn(i64, i64, i64) -> (i64, i64);

fn triangle_indices(a: &Args<'_, Meta>, columns: Columns) -> Result<Value<Meta>, OpError> {
    let (rows, width, offset) = (a.int(0)?, a.int(1)?, a.int(2)?);
    if rows < 0 || width < 0 || rows.checked_mul(width).is_none_or(|n| n > 1 << 40) {
        invalid!("a matrix of {rows} by {width}");
    }
    let count = |row| {
        let (from, to) = columns(row, width, offset);
        to - from
    };
    let total: i64 = if width == 0 { 0 } else { (0..rows).map(count).sum() };
    Ok(shaped(&[2.into(), total.into()], options(a, 3, None, DType::I64)?).into())
}

fn write_indices(call: &Call<'_>, columns: Columns) -> Result<Value<Tensor>, OpError> {
    let (out, rows, width, offset) = (call.allocate(0)?, call.args.int(0)?, call.args.int(1)?, call.args.int(2)?);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for row in 0..if width == 0 { 0 } else { rows } {
        let (from, to) = columns(row, width, offset);
        for column in from..to {
            first.push(row);
            second.push(column);
        }
    }
    first.append(&mut second);
    out.write_i64s(&first);
    Ok(out.into())
}

/// The height and width of a block of `block_diag`.
fn block(x: &Meta) -> Result<(SymInt, SymInt), OpError> {
    match &x.shape[..] {
        [] => Ok((1.into(), 1.into())),
        [width] => Ok((1.into(), width.clone())),
        [height, width] => Ok((height.clone(), width.clone())),
        more => invalid!("block_diag wants at most two dimensions, not {}", more.len()),
    }
}
