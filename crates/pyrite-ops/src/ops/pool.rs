//! Pooling: averages and maxima over windows.
//!
//! A pooling is a list of windows per spatial dimension ([`Axis`]), whether they come from kernel sizes and strides, from
//! the number of results (adaptive), or from random numbers (fractional). The kernels see a tensor as planes of three
//! dimensions; fewer are filled up with sizes of 1.

use pyrite_ir::{
    Args, Call, Emit, Freedom, Handle, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, Vjp, invalid, unsupported,
};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use crate::derivatives::pool as d;
use crate::lowerings as to_loops;
use crate::rules::{expect_same_shape, image_like, suggests_channels_last};
use pyrite_kernels::gemm::Factor;
use pyrite_kernels::{Carrier, dense};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
        "Averages over windows of one dimension.",
        |args| avg_infer(args, 1),
        avg_pool,
    )
    .tags(&[Tag::Core])
    .derivative(d::average_1d)
    .samples(&["f32[2, 3, 8], [3], [2], [1]", "f64[3, 8]<[1, 3], [2], [2], [0], True", "f32[2, 3, 8]<[24, 1, 3], [2]"]),
    OpDef::kernel(
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        "Averages over windows of two dimensions.",
        |args| avg_infer(args, 2),
        avg_pool,
    )
    .lower(to_loops::pool::avg_pool2d).tags(&[Tag::Core])
    .derivative(d::average)
    .samples(&[
        "f32[2, 3, 8, 8], [3, 3], [2, 2], [1, 1]",
        "bf16[3, 7, 8], [2, 3], [2, 2], [1, 1], True, False",
        "f64[2, 3, 8, 8]<[192, 1, 24, 3], [2, 2], [], 0, False, True, 3",
        "f64[3, 8, 8], [2, 2], [], 0, False, True, -2",
        "i64[1, 1, 4, 4], [2, 2]",
        "f32[0, 3, 8, 8], [2, 2]",
    ]),
    OpDef::kernel(
        "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        "Averages over windows of three dimensions.",
        |args| avg_infer(args, 3),
        avg_pool,
    )
    .tags(&[Tag::Core])
    .derivative(d::average)
    .samples(&["f32[2, 3, 4, 5, 6], [2, 2, 2]", "f32[3, 4, 5, 6], [2, 3, 2], [1, 2, 1], [1, 1, 0], True, False"]),
    OpDef::kernel(
        "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        "The gradient of `avg_pool2d`.",
        |args| backward_infer(args, 2),
        avg_pool_backward,
    )
    .tags(&[Tag::Core])
    .derivative(d::average_backward)
    .samples(&["f32[2, 3, 4, 4], f32[2, 3, 8, 8], [3, 3], [2, 2], [1, 1], False, True, None", "f64[3, 4, 4], f64[3, 8, 8], [2, 2], [2, 2], [0, 0], True, False, 3", "f64[3, 4, 4], f64[3, 8, 8], [2, 2], [2, 2], [0, 0], False, True, -3"]),
    OpDef::kernel(
        "aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        "The gradient of `avg_pool3d`.",
        |args| backward_infer(args, 3),
        avg_pool_backward,
    )
    .derivative(d::average_backward)
    .samples(&["f32[2, 3, 2, 2, 2], f32[2, 3, 4, 4, 4], [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None"]),
    OpDef::kernel(
        "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
        "Averages over windows that divide two dimensions into a given number of parts.",
        |args| Ok(adaptive_infer(args, 2)?.into()),
        adaptive_avg_pool,
    )
    .lower(to_loops::pool::adaptive_avg_pool2d).tags(&[Tag::Core])
    .derivative(d::adaptive_average)
    .samples(&["f32[2, 3, 8, 7], [3, 2]", "bf16[3, 8, 7], [1, 1]", "f64[2, 3, 8, 7]<[168, 1, 21, 3], [9, 7]"]),
    OpDef::kernel(
        "aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
        "Averages over windows that divide three dimensions into a given number of parts.",
        |args| Ok(adaptive_infer(args, 3)?.into()),
        adaptive_avg_pool,
    )
    .tags(&[Tag::Core])
    .derivative(d::adaptive_average)
    .samples(&["f32[2, 3, 4, 5, 6], [3, 2, 2]", "f32[3, 4, 5, 6], [1, 1, 1]"]),
    OpDef::kernel(
        "aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
        "Averages over windows that divide one dimension into a given number of parts.",
        |args| Ok(adaptive_infer(args, 1)?.into()),
        adaptive_avg_pool,
    )
    .tags(&[Tag::Core])
    .derivative(d::adaptive_average_1d)
    .samples(&["f32[2, 3, 8], [3]", "f32[3, 8], [1]", "f32[2, 3, 8]<[24, 1, 3], [5]"]),
    OpDef::kernel(
        "aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
        "The gradient of `_adaptive_avg_pool2d`.",
        |args| backward_infer(args, 2),
        adaptive_avg_pool_backward,
    )
    .lower(to_loops::pool::adaptive_avg_pool2d_backward).tags(&[Tag::Core])
    .derivative(d::adaptive_average_backward)
    .samples(&["f32[2, 3, 3, 2], f32[2, 3, 8, 7]", "f64[3, 1, 1], f64[3, 8, 7]"]),
    OpDef::kernel(
        "aten::_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
        "The gradient of `_adaptive_avg_pool3d`.",
        |args| backward_infer(args, 3),
        adaptive_avg_pool_backward,
    )
    .derivative(d::adaptive_average_backward)
    .samples(&["f32[2, 3, 3, 2, 2], f32[2, 3, 4, 5, 6]"]),
    OpDef::composite(
        "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
        "Averages over windows that divide two dimensions into a given number of parts.",
        |e, a| e.call("aten._adaptive_avg_pool2d.default", a.values),
    )
    .samples(&["f32[2, 3, 8, 7], [1, 1]"]),
    OpDef::composite(
        "aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
        "Averages over windows that divide three dimensions into a given number of parts.",
        |e, a| e.call("aten._adaptive_avg_pool3d.default", a.values),
    )
    .samples(&["f32[2, 3, 4, 5, 6], [1, 1, 1]"]),
    OpDef::kernel(
        "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        "Maxima over windows of two dimensions, and where in the plane they lie.",
        |args| max_infer(args, 2),
        max_pool,
    ).tolerance(Tolerance::Exact)
    .free(Freedom::TiesInWindow)
    .lower(to_loops::pool::max_pool2d_with_indices).tags(&[Tag::Core])
    .tolerance(Tolerance::Exact)
    .derivative(d::maximum)
    .samples(&[
        "f32[2, 3, 8, 8], [3, 3], [2, 2], [1, 1]",
        "bf16[3, 7, 8], [2, 3], [2, 2], [1, 1], [2, 1], True",
        "i64[2, 3, 8, 8]<[192, 1, 24, 3], [2, 2]",
        "f32[0, 3, 8, 8], [2, 2]",
    ]),
    OpDef::kernel(
        "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        "Maxima over windows of three dimensions, and where in the volume they lie.",
        |args| max_infer(args, 3),
        max_pool,
    ).tolerance(Tolerance::Exact)
    .free(Freedom::TiesInWindow)
    .tags(&[Tag::Core])
    .tolerance(Tolerance::Exact)
    .derivative(d::maximum)
    .samples(&["f32[2, 3, 4, 5, 6], [2, 2, 2]", "f64[3, 4, 5, 6], [2, 3, 2], [1, 2, 1], [1, 1, 0], [1, 1, 2], True"]),
    OpDef::kernel(
        "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
        "Maxima over windows of one dimension.",
        |args| {
            let x = args.tensor(0)?;
            let (shape, _) = window_shape(args, 1, 0)?;
            if !x.dtype.is_float() {
                invalid!("max_pool1d without places is not defined for {}", x.dtype);
            }
            Ok(x.fresh(&shape, x.dtype).into())
        },
        max_pool1d,
    )
    .tolerance(Tolerance::Exact)
    .decompose(|e, a| first(e, "aten.max_pool1d_with_indices.default", a)).vjp(Vjp::ViaDecomposition)
    .samples(&["f32[2, 3, 8], [3], [2], [1]", "f32[3, 8]<[1, 3], [2]"]),
    OpDef::kernel(
        "aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
        "Maxima over windows of one dimension, and where they lie.",
        |args| max_infer(args, 1),
        max_pool,
    )
    .free(Freedom::TiesInWindow)
    .tolerance(Tolerance::Exact)
    .derivative(d::maximum_1d)
    .samples(&["f32[2, 3, 8], [3], [2], [1]", "f32[2, 3, 8]<[24, 1, 3], [2]"]),
    OpDef::composite(
        "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
        "Maxima over windows of two dimensions.",
        |e, a| first(e, "aten.max_pool2d_with_indices.default", a),
    )
    .samples(&["f32[2, 3, 8, 8], [3, 3], [2, 2], [1, 1]"]),
    OpDef::composite(
        "aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
        "Maxima over windows of three dimensions.",
        |e, a| first(e, "aten.max_pool3d_with_indices.default", a),
    )
    .samples(&["f32[2, 3, 4, 5, 6], [2, 2, 2]"]),
    OpDef::kernel(
        "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        "The gradient of `max_pool2d_with_indices`.",
        |args| backward_infer(args, 2),
        |call| spread(call, 7),
    )
    .lower(to_loops::pool::max_pool2d_with_indices_backward).tags(&[Tag::Core])
    .derivative(d::maximum_backward)
    .samples(&["f32[2, 3, 4, 4], f32[2, 3, 8, 8], [3, 3], [2, 2], [1, 1], [1, 1], False, i64[2, 3, 4, 4]{0..64}"]),
    OpDef::kernel(
        "aten::max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        "The gradient of `max_pool3d_with_indices`.",
        max3d_backward_infer,
        |call| spread(call, 7),
    )
    .derivative(d::maximum_backward)
    .samples(&["f32[2, 3, 2, 2, 2], f32[2, 3, 4, 4, 4], [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False, i64[2, 3, 2, 2, 2]{0..64}"]),
    OpDef::kernel(
        "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
        "Maxima over windows that divide one dimension into a given number of parts, and where they lie.",
        |args| Ok(with_places(adaptive_infer(args, 1)?)),
        adaptive_max_pool,
    )
    .free(Freedom::TiesInWindow)
    .tolerance(Tolerance::Exact)
    .derivative(d::adaptive_maximum_1d)
    .samples(&["f32[2, 3, 8], [3]", "f32[2, 3, 8]<[24, 1, 3], [5]"]),
    OpDef::kernel(
        "aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
        "Maxima over windows that divide two dimensions into a given number of parts, and where they lie.",
        |args| Ok(with_places(adaptive_infer(args, 2)?)),
        adaptive_max_pool,
    ).tolerance(Tolerance::Exact)
    .free(Freedom::TiesInWindow)
    .tolerance(Tolerance::Exact)
    .derivative(d::adaptive_maximum)
    .samples(&["f32[2, 3, 8, 7], [3, 2]", "bf16[3, 8, 7], [1, 1]"]),
    OpDef::kernel(
        "aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
        "Maxima over windows that divide three dimensions into a given number of parts, and where they lie.",
        |args| Ok(with_places(adaptive_infer(args, 3)?)),
        adaptive_max_pool,
    ).tolerance(Tolerance::Exact)
    .free(Freedom::TiesInWindow)
    .tolerance(Tolerance::Exact)
    .derivative(d::adaptive_maximum)
    .samples(&["f32[2, 3, 4, 5, 6], [3, 2, 2]"]),
    OpDef::kernel(
        "aten::adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        "The gradient of `adaptive_max_pool2d`.",
        |args| backward_infer(args, 2),
        |call| spread(call, 2),
    )
    .derivative(d::maximum_backward)
    .samples(&["f32[2, 3, 3, 2], f32[2, 3, 8, 7], i64[2, 3, 3, 2]{0..56}"]),
    OpDef::kernel(
        "aten::adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        "The gradient of `adaptive_max_pool3d`.",
        |args| backward_infer(args, 3),
        |call| spread(call, 2),
    )
    .derivative(d::maximum_backward)
    .samples(&["f32[2, 3, 3, 2, 2], f32[2, 3, 4, 5, 6], i64[2, 3, 3, 2, 2]{0..120}"]),
    OpDef::kernel(
        "aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        "Maxima over windows of two dimensions that random numbers place, and where they lie.",
        |args| fractional_infer(args, 2),
        fractional_max_pool,
    ).tolerance(Tolerance::Exact)
    .free(Freedom::TiesInWindow)
    .tolerance(Tolerance::Exact)
    .derivative(d::fractional)
    .samples(&["f32[2, 3, 8, 7], [2, 2], [3, 4], f32[2, 3, 2]{0..1}", "f64[3, 8, 7], [2, 3], [3, 1], f64[1, 3, 2]{0..1}"]),
    OpDef::kernel(
        "aten::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        "Maxima over windows of three dimensions that random numbers place, and where they lie.",
        |args| fractional_infer(args, 3),
        fractional_max_pool,
    )
    .free(Freedom::TiesInWindow)
    .tolerance(Tolerance::Exact)
    .derivative(d::fractional)
    .samples(&["f32[2, 3, 4, 5, 6], [2, 2, 2], [3, 2, 2], f32[2, 3, 3]{0..1}"]),
    OpDef::kernel(
        "aten::fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor indices) -> Tensor",
        "The gradient of `fractional_max_pool2d`.",
        |args| Ok(args.tensor(1)?.fresh(&args.tensor(1)?.shape, args.tensor(1)?.dtype).into()),
        |call| spread(call, 4),
    )
    .derivative(d::maximum_backward)
    .samples(&["f32[2, 3, 3, 4], f32[2, 3, 8, 7], [2, 2], [3, 4], i64[2, 3, 3, 4]{0..56}"]),
    OpDef::kernel(
        "aten::fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor indices) -> Tensor",
        "The gradient of `fractional_max_pool3d`.",
        |args| Ok(args.tensor(1)?.fresh(&args.tensor(1)?.shape, args.tensor(1)?.dtype).into()),
        |call| spread(call, 4),
    )
    .derivative(d::maximum_backward)
    .samples(&["f32[2, 3, 3, 2, 2], f32[2, 3, 4, 5, 6], [2, 2, 2], [3, 2, 2], i64[2, 3, 3, 2, 2]{0..120}"]),
    OpDef::kernel(
        "aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
        "Zeros with elements put back to where a pooling over two dimensions found them.",
        |args| unpool_infer(args, 2),
        max_unpool,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::unpool_2d)
    .samples(&["f32[2, 3, 1, 2], i64[2, 3, 1, 2]{0..64}, [8, 8]", "f64[3, 2, 1], i64[3, 2, 1]{0..40}, [8, 5]"]),
    OpDef::kernel(
        "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
        "Zeros with elements put back to where a pooling over three dimensions found them.",
        |args| unpool_infer(args, 3),
        max_unpool,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::unpool_3d)
    .samples(&["f32[2, 3, 1, 2, 1], i64[2, 3, 1, 2, 1]{0..64}, [4, 4, 4], [2, 2, 2], [0, 0, 0]"]),
    OpDef::kernel(
        "prims::_low_memory_max_pool_with_offsets(Tensor self, SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool ceil_mode) -> (Tensor, Tensor)",
        "Maxima over windows, and where in their window they lie, as bytes.",
        offsets_infer,
        max_pool_offsets,
    ).tolerance(Tolerance::Exact)
    .free(Freedom::TiesInWindow)
    .tolerance(Tolerance::Exact)
    .derivative(d::maximum_with_offsets)
    .samples(&["f32[2, 3, 8, 8], [3, 3], [2, 2], [1, 1], [1, 1], False", "f32[2, 3, 4, 5, 6], [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False"]),
    OpDef::kernel(
        "prims::_low_memory_max_pool_offsets_to_indices(Tensor self, SymInt[] kernel_size, SymInt[] input_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation) -> Tensor",
        "Positions in the plane from positions in the window.",
        |args| {
            let x = args.tensor(0)?;
            Ok(Meta { dtype: DType::I64, ..x.fresh(&x.shape, DType::I64) }.with_strides(&crate::rules::preserved_strides(x)).into())
        },
        offsets_to_indices,
    )
    .tolerance(Tolerance::Exact)
    .vjp(Vjp::NonDifferentiable("its result holds positions"))
    .samples(&["i8[2, 3, 4, 4]{0..9}, [3, 3], [8, 8], [2, 2], [1, 1], [1, 1]"]),
];

trait WithStrides {
    fn with_strides(self, stride: &[SymInt]) -> Self;
}

impl WithStrides for Meta {
    fn with_strides(self, stride: &[SymInt]) -> Self {
        Self { stride: stride.into(), ..self }
    }
}

/// A list of one number per dimension; a single number counts for all, none for `rest`.
fn per_dim<T: Clone>(what: &str, list: Vec<T>, rest: &[T], dims: usize) -> Result<Vec<T>, OpError> {
    match list.len() {
        0 if !rest.is_empty() => Ok(rest.to_vec()),
        1 => Ok(vec![list[0].clone(); dims]),
        len if len == dims => Ok(list),
        len => invalid!("{what} has {len} numbers for {dims} dimensions"),
    }
}

/// Checks that a tensor has channels and `dims` spatial dimensions, maybe a batch; only the batch may be empty.
fn check_image(name: &str, x: &Meta, dims: usize) -> Result<(), OpError> {
    if x.rank() != dims + 1 && x.rank() != dims + 2 {
        invalid!("{name} wants {} or {} dimensions, not {}", dims + 1, dims + 2, x.rank());
    }
    if x.shape[x.rank() - dims - 1..].iter().any(|size| size.is_eq(0)) {
        invalid!("{name} wants only the batch to be empty, not shape {:?}", x.shape);
    }
    Ok(())
}

/// Kernel sizes, strides, padding and dilation of a pooling.
struct Windows {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil: bool,
}

impl Windows {
    /// Reads them from the arguments that start at `at`; averages have no dilation.
    fn read<T>(args: &Args<'_, T>, dims: usize, at: usize) -> Result<Self, OpError> {
        let named = |name: &str| args.schema.param(name);
        let kernel = per_dim("kernel_size", args.ints(at)?, &[], dims)?;
        let stride = per_dim("stride", args.ints(at + 1)?, &kernel, dims)?;
        let padding = per_dim("padding", args.ints(at + 2)?, &[], dims)?;
        let dilation = match named("dilation") {
            Some(at) => per_dim("dilation", args.ints(at)?, &[], dims)?,
            None => vec![1; dims],
        };
        let ceil = named("ceil_mode").map_or(Ok(false), |at| args.bool(at))?;
        if [&kernel, &stride, &dilation].iter().any(|list| list.iter().any(|v| *v < 1)) {
            invalid!("a pooling wants positive kernel sizes, strides and dilations");
        }
        for d in 0..dims {
            if padding[d] < 0 || padding[d] > ((kernel[d] - 1).saturating_mul(dilation[d]) + 1) / 2 {
                invalid!("a pooling is padded by at most half of its window, not by {} of {}", padding[d], kernel[d]);
            }
        }
        Ok(Self { kernel, stride, padding, dilation, ceil })
    }

    /// The number of windows along a dimension.
    fn count(&self, d: usize, size: &SymInt) -> Result<SymInt, OpError> {
        let reach = self.dilation[d].saturating_mul(self.kernel[d] - 1);
        let stride = SymInt::Int(self.stride[d]);
        let room =
            size + self.padding[d].saturating_mul(2) - reach - 1 + if self.ceil { self.stride[d] - 1 } else { 0 };
        let mut count = room.floor_div(&stride) + 1;
        // The last window must start inside the input or the padding before it.
        if self.ceil && ((&count - 1) * &stride).is_ge(size + self.padding[d]) {
            count = count - 1;
        }
        if count.is_lt(1) {
            invalid!("a pooling by a window of {} gives nothing for a size of {size}", self.kernel[d]);
        }
        Ok(count)
    }

    fn axis(&self, d: usize, size: usize, count: usize) -> Axis {
        let (kernel, step) = (self.kernel[d], self.dilation[d]);
        let size = size as i64;
        (0..count as i64)
            .map(|i| {
                let mut start = i * self.stride[d] - self.padding[d];
                let end = start + (kernel - 1) * step + 1;
                let full = end.min(size + self.padding[d]) - start;
                if start < 0 {
                    start += (-start + step - 1) / step * step;
                }
                Window { start: start as usize, end: end.clamp(0, size) as usize, step: step as usize, full }
            })
            .collect()
    }
}

/// The part of a window that lies within the input, along one dimension.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: usize,
    end: usize,
    step: usize,
    /// Its length with the padding that averages count.
    full: i64,
}

/// The windows along one dimension.
type Axis = Vec<Window>;

/// A dimension of size 1 under a window of size 1.
fn no_axis() -> Axis {
    vec![Window { start: 0, end: 1, step: 1, full: 1 }]
}

/// The sizes of a tensor's last three dimensions, as far as they are spatial.
fn spatial(shape: &[i64], dims: usize) -> [usize; 3] {
    let mut sizes = [1; 3];
    for (slot, size) in sizes[3 - dims..].iter_mut().zip(&shape[shape.len() - dims..]) {
        *slot = *size as usize;
    }
    sizes
}

fn axes(input: [usize; 3], output: [usize; 3], dims: usize, axis: impl Fn(usize, usize, usize) -> Axis) -> [Axis; 3] {
    std::array::from_fn(|at| match (at + dims).checked_sub(3) {
        Some(d) => axis(d, input[at], output[at]),
        None => no_axis(),
    })
}

/// The windows that divide `size` into `count` parts.
fn adaptive_axis(size: usize, count: usize) -> Axis {
    (0..count)
        .map(|i| {
            let (start, end) = (i * size / count, ((i + 1) * size).div_ceil(count));
            Window { start, end, step: 1, full: (end - start) as i64 }
        })
        .collect()
}

/// The shape of a pooling's result, and its windows; their description starts at argument `at + 1`.
fn window_shape(args: &Args<'_, Meta>, dims: usize, at: usize) -> Result<(SymDims, Windows), OpError> {
    let x = args.tensor(at)?;
    check_image(&args.schema.name, x, dims)?;
    let windows = Windows::read(args, dims, at + 1)?;
    let lead = x.rank() - dims;
    let mut shape = x.shape.clone();
    for d in 0..dims {
        shape[lead + d] = windows.count(d, &x.shape[lead + d])?;
    }
    Ok((shape, windows))
}

/// The result of a pooling of `x` in the memory format that PyTorch gives it.
fn result_like(x: &Meta, shape: &[SymInt], dims: usize) -> Meta {
    match (dims, x.rank()) {
        // One dimension is pooled as two, of which the first has size 1.
        (1, 3) => {
            let middle = &x.shape[2] * &x.stride[2];
            let sizes = [&x.shape[0], &x.shape[1], &SymInt::Int(1), &x.shape[2]].map(Clone::clone);
            let strides = [&x.stride[0], &x.stride[1], &middle, &x.stride[2]].map(Clone::clone);
            let last = suggests_channels_last(&x.view(&sizes, &strides, SymInt::Int(0)));
            let order: &[usize] = if last { &[0, 2, 1] } else { &[0, 1, 2] };
            x.fresh(shape, x.dtype).with_strides(&pyrite_ir::meta::strides_in_order(shape, order))
        }
        (2, _) => image_like(x, shape),
        _ => x.fresh(shape, x.dtype),
    }
}

/// A result and a tensor of positions that lies in memory as it does.
fn with_places(values: Meta) -> Value<Meta> {
    let places = values.fresh(&values.shape, DType::I64).with_strides(&values.stride);
    vec![values, places].into()
}

/// What pooling needs of a carrier.
trait Pooled: Carrier + Factor + PartialOrd {
    const LOWEST: Self;
    fn is_no_number(self) -> bool;
    fn shared(self, count: i64) -> Self;
}

impl Pooled for f32 {
    const LOWEST: Self = Self::NEG_INFINITY;
    fn is_no_number(self) -> bool {
        self.is_nan()
    }
    fn shared(self, count: i64) -> Self {
        self / count as Self
    }
}

impl Pooled for f64 {
    const LOWEST: Self = Self::NEG_INFINITY;
    fn is_no_number(self) -> bool {
        self.is_nan()
    }
    fn shared(self, count: i64) -> Self {
        self / count as Self
    }
}

impl Pooled for i64 {
    const LOWEST: Self = Self::MIN;
    fn is_no_number(self) -> bool {
        false
    }
    fn shared(self, count: i64) -> Self {
        self / count
    }
}

/// Runs a body with the carrier of a real type.
macro_rules! pooled {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 | DType::F16 | DType::BF16 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::C64 | DType::C128 | DType::Bool => unsupported!("pooling of {}", $dtype),
            _ => {
                type $T = i64;
                $body
            }
        }
    };
}

/// Calls `f` with each plane of the input, each plane of the output and its number, on several threads when there is
/// much to do.
fn each_plane<T: Sync, U: Send>(
    x: &[T],
    y: &mut [U],
    planes: (usize, usize),
    f: impl Fn(&[T], &mut [U], usize) + Sync,
) {
    let (input, output) = planes;
    if input == 0 || output == 0 {
        return;
    }
    let visit = |at: usize, y: &mut [U]| f(&x[at * input..][..input], y, at);
    if x.len().max(y.len()) < 1 << 15 {
        y.chunks_mut(output).enumerate().for_each(|(at, y)| visit(at, y));
    } else {
        pyrite_threads::chunks(y, output, visit);
    }
}

fn volume(sizes: [usize; 3]) -> usize {
    sizes.iter().product()
}

/// What a sum over a window is divided by.
#[derive(Clone, Copy)]
enum Divisor {
    /// The window with its padding.
    Full,
    /// The part of the window within the input.
    Inside,
    /// A given number.
    Given(i64),
}

impl Divisor {
    fn of(self, windows: [&Window; 3]) -> i64 {
        match self {
            Self::Full => windows.iter().map(|w| w.full).product(),
            Self::Inside => windows.iter().map(|w| (w.end - w.start) as i64).product(),
            Self::Given(value) => value,
        }
    }

    fn read<T>(args: &Args<'_, T>) -> Result<Self, OpError> {
        let given = args.schema.param("divisor_override").map_or(Ok(None), |at| args.opt_int(at))?;
        let include = args.schema.param("count_include_pad").map_or(Ok(true), |at| args.bool(at))?;
        Ok(match given {
            Some(0) => invalid!("a pooling cannot divide by 0"),
            Some(value) => Self::Given(value),
            None if include => Self::Full,
            None => Self::Inside,
        })
    }
}

/// Calls `f` with every window of a plane, in order.
fn each_window(axes: &[Axis; 3], mut f: impl FnMut(usize, [&Window; 3])) {
    let mut at = 0;
    for d in &axes[0] {
        for h in &axes[1] {
            for w in &axes[2] {
                f(at, [d, h, w]);
                at += 1;
            }
        }
    }
}

fn average<T: Pooled>(x: &[T], y: &mut [T], input: [usize; 3], axes: &[Axis; 3], divisor: Divisor) {
    each_window(axes, |at, [d, h, w]| {
        if d.start >= d.end || h.start >= h.end || w.start >= w.end {
            y[at] = T::ZERO;
            return;
        }
        let mut sum = T::ZERO;
        for i in d.start..d.end {
            for j in h.start..h.end {
                let row = (i * input[1] + j) * input[2];
                sum = x[row + w.start..row + w.end].iter().fold(sum, |sum, v| sum.plus(*v));
            }
        }
        y[at] = sum.shared(divisor.of([d, h, w]));
    });
}

fn average_backward<T: Pooled>(dy: &[T], dx: &mut [T], input: [usize; 3], axes: &[Axis; 3], divisor: Divisor) {
    dx.fill(T::ZERO);
    each_window(axes, |at, [d, h, w]| {
        // A window without elements has no divisor and shares nothing.
        let share = match divisor.of([d, h, w]) {
            0 => return,
            divisor => dy[at].shared(divisor),
        };
        for i in d.start..d.end {
            for j in h.start..h.end {
                let row = (i * input[1] + j) * input[2];
                if w.start < w.end {
                    dx[row + w.start..row + w.end].iter_mut().for_each(|v| *v = v.plus(share));
                }
            }
        }
    });
}

/// The maxima of a plane; of equal ones the first counts, of elements that are no numbers the last.
fn maxima<T: Pooled>(x: &[T], y: &mut [(T, i64)], input: [usize; 3], axes: &[Axis; 3]) {
    each_window(axes, |at, [d, h, w]| {
        let mut best = T::LOWEST;
        let mut place = (d.start * input[1] + h.start) * input[2] + w.start;
        for i in (d.start..d.end).step_by(d.step) {
            for j in (h.start..h.end).step_by(h.step) {
                let row = (i * input[1] + j) * input[2];
                for k in (w.start..w.end).step_by(w.step) {
                    let value = x[row + k];
                    if value > best || value.is_no_number() {
                        (best, place) = (value, row + k);
                    }
                }
            }
        }
        y[at] = (best, place as i64);
    });
}

fn avg_infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    let (shape, _) = window_shape(args, dims, 0)?;
    Divisor::read(args)?;
    let dtype = args.tensor(0)?.dtype;
    if !(dtype.is_float() || dtype == DType::I64) {
        invalid!("an average over windows is not defined for {dtype}");
    }
    Ok(result_like(args.tensor(0)?, &shape, dims).into())
}

/// The number of spatial dimensions, from the number of kernel sizes that the schema wants.
fn dims_of<T>(args: &Args<'_, T>) -> usize {
    let digit = args.schema.name.chars().rev().find_map(|c| c.to_digit(10));
    // The digit is that of `1d`, `2d` or `3d`.
    digit.unwrap_or(2) as usize
}

fn avg_pool(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, out, dims) = (call.args.tensor(0)?, call.allocate(0)?, dims_of(&call.args));
    let (windows, divisor) = (Windows::read(&call.args, dims, 1)?, Divisor::read(&call.args)?);
    let (input, output) = (spatial(x.shape(), dims), spatial(out.shape(), dims));
    let axes = axes(input, output, dims, |d, size, count| windows.axis(d, size, count));
    run_average(x, &out, input, output, &axes, divisor)
}

fn run_average(
    x: &Tensor,
    out: &Tensor,
    input: [usize; 3],
    output: [usize; 3],
    axes: &[Axis; 3],
    divisor: Divisor,
) -> Result<Value<Tensor>, OpError> {
    pooled!(x.dtype(), T => dense::read::<T, _>(x, |x| dense::fill::<T, _>(out, |y| {
        each_plane(x, y, (volume(input), volume(output)), |x, y, _| average(x, y, input, axes, divisor));
    })));
    Ok(out.clone().into())
}

fn backward_infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    let (grad, x) = (args.tensor(0)?, args.tensor(1)?);
    check_image(&args.schema.name, x, dims)?;
    if grad.rank() != x.rank() || grad.dtype != x.dtype {
        invalid!(
            "a gradient of type {} and shape {:?} for type {} and shape {:?}",
            grad.dtype,
            grad.shape,
            x.dtype,
            x.shape
        );
    }
    if args.schema.param("kernel_size").is_some() {
        let (shape, _) = window_shape(args, dims, 1)?;
        expect_same_shape("the gradient", &grad.shape, &shape)?;
    }
    if let Some(at) = args.schema.param("indices") {
        expect_same_shape("the positions", &args.tensor(at)?.shape, &grad.shape)?;
    }
    Ok(result_like(x, &x.shape, dims).into())
}

fn avg_pool_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, out, dims) = (call.args.tensor(0)?, call.allocate(0)?, dims_of(&call.args));
    let (windows, divisor) = (Windows::read(&call.args, dims, 2)?, Divisor::read(&call.args)?);
    let (input, output) = (spatial(out.shape(), dims), spatial(grad.shape(), dims));
    let axes = axes(input, output, dims, |d, size, count| windows.axis(d, size, count));
    run_average_backward(grad, &out, input, output, &axes, divisor)
}

fn run_average_backward(
    grad: &Tensor,
    out: &Tensor,
    input: [usize; 3],
    output: [usize; 3],
    axes: &[Axis; 3],
    divisor: Divisor,
) -> Result<Value<Tensor>, OpError> {
    pooled!(grad.dtype(), T => dense::read::<T, _>(grad, |dy| dense::fill::<T, _>(out, |dx| {
        each_plane(dy, dx, (volume(output), volume(input)), |dy, dx, _| average_backward(dy, dx, input, axes, divisor));
    })));
    Ok(out.clone().into())
}

fn adaptive_infer(args: &Args<'_, Meta>, dims: usize) -> Result<Meta, OpError> {
    let x = args.tensor(0)?;
    check_image(&args.schema.name, x, dims)?;
    if !x.dtype.is_float() {
        invalid!("an adaptive pooling is not defined for {}", x.dtype);
    }
    let given = args.syms(1)?;
    if matches!(args.value(1), Value::List(_)) && given.len() != dims {
        invalid!("{} wants {dims} sizes, not {}", args.schema.name, given.len());
    }
    let sizes = per_dim("output_size", given, &[], dims)?;
    if sizes.iter().any(|size| size.is_lt(0)) {
        invalid!("an adaptive pooling wants sizes that are not negative");
    }
    let lead = x.rank() - dims;
    let shape: SymDims = x.shape[..lead].iter().chain(&sizes).cloned().collect();
    Ok(result_like(x, &shape, dims))
}

fn adaptive_avg_pool(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, out, dims) = (call.args.tensor(0)?, call.allocate(0)?, dims_of(&call.args));
    let (input, output) = (spatial(x.shape(), dims), spatial(out.shape(), dims));
    let axes = axes(input, output, dims, |_, size, count| adaptive_axis(size, count));
    run_average(x, &out, input, output, &axes, Divisor::Inside)
}

fn adaptive_avg_pool_backward(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (grad, out, dims) = (call.args.tensor(0)?, call.allocate(0)?, dims_of(&call.args));
    let (input, output) = (spatial(out.shape(), dims), spatial(grad.shape(), dims));
    let axes = axes(input, output, dims, |_, size, count| adaptive_axis(size, count));
    run_average_backward(grad, &out, input, output, &axes, Divisor::Inside)
}

fn max_infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    let x = args.tensor(0)?;
    let (shape, _) = window_shape(args, dims, 0)?;
    let result = if dims == 3 { volume_like(x, &shape) } else { result_like(x, &shape, dims) };
    Ok(with_places(result))
}

/// The result of a maximum over volumes, in the memory format of `x`, which may lack the batch.
fn volume_like(x: &Meta, shape: &[SymInt]) -> Meta {
    if x.rank() == 5 {
        return image_like(x, shape);
    }
    let batch = [SymInt::Int(1)];
    let whole = [x.numel()];
    let sizes: SymDims = batch.iter().chain(&x.shape).cloned().collect();
    let strides: SymDims = whole.iter().chain(&x.stride).cloned().collect();
    let order: &[usize] =
        if suggests_channels_last(&x.view(&sizes, &strides, SymInt::Int(0))) { &[1, 2, 3, 0] } else { &[0, 1, 2, 3] };
    x.fresh(shape, x.dtype).with_strides(&pyrite_ir::meta::strides_in_order(shape, order))
}

fn max3d_backward_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    backward_infer(args, 3)?;
    let x = args.tensor(1)?;
    Ok(volume_like(x, &x.shape).into())
}

/// Maxima and their places in the planes of `x`; `axes` gives the windows of a plane.
fn run_max(
    x: &Tensor,
    values: &Tensor,
    places: Option<&Tensor>,
    dims: usize,
    axes: impl Fn(usize) -> [Axis; 3] + Sync,
) -> Result<(), OpError> {
    let (input, output) = (spatial(x.shape(), dims), spatial(values.shape(), dims));
    pooled!(x.dtype(), T => {
        let mut found = vec![(T::ZERO, 0i64); values.numel()];
        dense::read::<T, _>(x, |x| {
            each_plane(x, &mut found, (volume(input), volume(output)), |x, y, at| maxima(x, y, input, &axes(at)));
        });
        dense::fill::<T, _>(values, |to| to.iter_mut().zip(&found).for_each(|(to, (value, _))| *to = *value));
        if let Some(places) = places {
            dense::fill::<i64, _>(places, |to| to.iter_mut().zip(&found).for_each(|(to, (_, place))| *to = *place));
        }
    });
    Ok(())
}

fn max_axes<T>(args: &Args<'_, T>, x: &Tensor, values: &Tensor, dims: usize) -> Result<[Axis; 3], OpError> {
    let windows = Windows::read(args, dims, 1)?;
    let (input, output) = (spatial(x.shape(), dims), spatial(values.shape(), dims));
    Ok(axes(input, output, dims, |d, size, count| windows.axis(d, size, count)))
}

fn max_pool(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, values, places) = (call.args.tensor(0)?, call.allocate(0)?, call.allocate(1)?);
    let dims = dims_of(&call.args);
    let axes = max_axes(&call.args, x, &values, dims)?;
    run_max(x, &values, Some(&places), dims, |_| axes.clone())?;
    Ok(vec![values, places].into())
}

fn max_pool1d(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, values) = (call.args.tensor(0)?, call.allocate(0)?);
    let axes = max_axes(&call.args, x, &values, 1)?;
    run_max(x, &values, None, 1, |_| axes.clone())?;
    Ok(values.into())
}

fn adaptive_max_pool(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, values, places) = (call.args.tensor(0)?, call.allocate(0)?, call.allocate(1)?);
    let dims = dims_of(&call.args);
    let (input, output) = (spatial(x.shape(), dims), spatial(values.shape(), dims));
    let axes = axes(input, output, dims, |_, size, count| adaptive_axis(size, count));
    run_max(x, &values, Some(&places), dims, |_| axes.clone())?;
    Ok(vec![values, places].into())
}

/// The gradient of any maximum: each element goes to its place; places are argument `at`.
fn spread(call: &Call<'_>, at: usize) -> Result<Value<Tensor>, OpError> {
    let (grad, places, out) = (call.args.tensor(0)?, call.args.tensor(at)?, call.allocate(0)?);
    let dims = dims_of(&call.args);
    let (input, output) = (volume(spatial(out.shape(), dims)), volume(spatial(grad.shape(), dims)));
    if grad.shape() != places.shape() {
        invalid!("{} positions for a gradient of shape {:?}", places.numel(), grad.shape());
    }
    let places = places.to_i64s();
    if let Some(wrong) = places.iter().find(|place| !(0..input as i64).contains(*place)) {
        invalid!("the position {wrong} is outside of a plane of {input} elements");
    }
    pooled!(grad.dtype(), T => dense::read::<T, _>(grad, |dy| dense::fill::<T, _>(&out, |dx| {
        dx.fill(T::ZERO);
        each_plane(dy, dx, (output, input), |dy, dx, plane| {
            for (value, place) in dy.iter().zip(&places[plane * output..]) {
                let slot = &mut dx[*place as usize];
                *slot = slot.plus(*value);
            }
        });
    })));
    Ok(out.into())
}

fn fractional_infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    let (x, samples) = (args.tensor(0)?, args.tensor(3)?);
    check_image(&args.schema.name, x, dims)?;
    let (kernel, sizes) =
        (per_dim("kernel_size", args.ints(1)?, &[], dims)?, per_dim("output_size", args.ints(2)?, &[], dims)?);
    let lead = x.rank() - dims;
    for d in 0..dims {
        if kernel[d] < 1 || sizes[d] < 1 || x.shape[lead + d].is_lt(sizes[d].saturating_add(kernel[d]) - 1) {
            invalid!("{} windows of {} do not fit a size of {}", sizes[d], kernel[d], x.shape[lead + d]);
        }
    }
    let batch = if lead == 2 { x.shape[0].clone() } else { SymInt::Int(1) };
    if samples.rank() != 3 || samples.dtype != x.dtype {
        invalid!("{} wants random numbers of type {} in three dimensions", args.schema.name, x.dtype);
    }
    expect_same_shape("the random numbers", &samples.shape, &[batch, x.shape[lead - 1].clone(), SymInt::from(dims)])?;
    let shape: SymDims = x.shape[..lead].iter().cloned().chain(sizes.into_iter().map(SymInt::Int)).collect();
    Ok(with_places(x.fresh(&shape, x.dtype)))
}

/// Where `count` windows start that a random number spreads over `size`, computed in the input's own type.
fn fractional_axis(sample: f64, size: usize, count: usize, kernel: usize, dtype: DType) -> Axis {
    let window = |start: usize| Window { start, end: start + kernel, step: 1, full: kernel as i64 };
    let last = size - kernel;
    let round = |v: f64| Tensor::scalar(v.into(), dtype).item().to_f64();
    let alpha = round(last as f64 / (count.max(2) - 1) as f64);
    let place = |v: f64| round(v * alpha) as i64;
    let start = |i: usize| (place(round(i as f64 + sample)) - place(sample)).clamp(0, last as i64) as usize;
    (0..count).map(|i| window(if i + 1 == count { last } else { start(i) })).collect()
}

fn fractional_max_pool(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, values, places) = (call.args.tensor(0)?, call.allocate(0)?, call.allocate(1)?);
    let dims = dims_of(&call.args);
    let kernel = per_dim("kernel_size", call.args.ints(1)?, &[], dims)?;
    let samples = call.args.tensor(3)?.to_f64s();
    let (input, output) = (spatial(x.shape(), dims), spatial(values.shape(), dims));
    run_max(x, &values, Some(&places), dims, |plane| {
        axes(input, output, dims, |d, size, count| {
            // The numbers of two dimensions are in the opposite order.
            let which = if dims == 2 { 1 - d } else { d };
            fractional_axis(samples[plane * dims + which], size, count, kernel[d] as usize, x.dtype())
        })
    })?;
    Ok(vec![values, places].into())
}

fn unpool_infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    let (x, places) = (args.tensor(0)?, args.tensor(1)?);
    check_image(&args.schema.name, x, dims)?;
    expect_same_shape("the positions", &places.shape, &x.shape)?;
    if places.dtype != DType::I64 {
        invalid!("positions must have 64 bits, not type {}", places.dtype);
    }
    if !x.dtype.is_float() {
        invalid!("{} is not defined for {}", args.schema.name, x.dtype);
    }
    let sizes = args.syms(2)?;
    if sizes.len() != dims {
        invalid!("output_size has {} numbers for {dims} dimensions", sizes.len());
    }
    let shape: SymDims = x.shape[..x.rank() - dims].iter().chain(&sizes).cloned().collect();
    Ok(if dims == 2 { image_like(x, &shape) } else { x.fresh(&shape, x.dtype) }.into())
}

fn max_unpool(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, places, out) = (call.args.tensor(0)?, call.args.tensor(1)?.to_i64s(), call.allocate(0)?);
    let dims = dims_of(&call.args);
    let (input, output) = (volume(spatial(x.shape(), dims)), volume(spatial(out.shape(), dims)));
    if let Some(wrong) = places.iter().find(|place| !(0..output as i64).contains(*place)) {
        invalid!("the position {wrong} is outside of a plane of {output} elements");
    }
    pooled!(x.dtype(), T => dense::read::<T, _>(x, |x| dense::fill::<T, _>(&out, |y| {
        y.fill(T::ZERO);
        each_plane(x, y, (input, output), |x, y, plane| {
            for (value, place) in x.iter().zip(&places[plane * input..]) {
                y[*place as usize] = *value;
            }
        });
    })));
    Ok(out.into())
}

fn first(e: &mut dyn Emit, op: &str, a: &Args<'_, Handle>) -> Result<Value<Handle>, OpError> {
    Ok(e.many(op, a.values)?[0].into())
}

/// The number of spatial dimensions of the pooling without one in its name.
fn dims_of_kernel<T>(args: &Args<'_, T>) -> Result<usize, OpError> {
    match args.ints(1)?.len() {
        dims @ (2 | 3) => Ok(dims),
        other => invalid!("a pooling over {other} dimensions"),
    }
}

fn offsets_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let Value::List(items) = max_infer(args, dims_of_kernel(args)?)? else {
        return Err(OpError::fault("a maximum without places"));
    };
    let Some(values) = items[0].as_tensor() else { return Err(OpError::fault("a maximum without values")) };
    let offsets = values.fresh(&values.shape, DType::I8).with_strides(&values.stride);
    Ok(vec![values.clone(), offsets].into())
}

/// Converts positions in the plane to positions in the window, or back.
fn convert_places(
    windows: &Windows,
    shape: &[i64],
    input: &[i64],
    places: &mut [i64],
    convert: impl Fn(&Windows, usize, i64, i64) -> i64,
    (from, to): (&[i64], &[i64]),
) {
    let dims = input.len();
    let out = &shape[shape.len() - dims..];
    for (at, place) in places.iter_mut().enumerate() {
        let (mut position, mut rest, mut scale, mut result) = (at as i64, *place, 1, 0);
        for d in (0..dims).rev() {
            let (window, coordinate) = (position % out[d].max(1), rest.rem_euclid(from[d].max(1)));
            (position, rest) = (position / out[d].max(1), rest.div_euclid(from[d].max(1)));
            result += scale * convert(windows, d, window, coordinate);
            scale *= to[d];
        }
        *place = result;
    }
}

fn max_pool_offsets(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, values, offsets) = (call.args.tensor(0)?, call.allocate(0)?, call.allocate(1)?);
    let dims = dims_of_kernel(&call.args)?;
    let axes = max_axes(&call.args, x, &values, dims)?;
    let found = Tensor::empty(values.shape(), DType::I64)?;
    run_max(x, &values, Some(&found), dims, |_| axes.clone())?;
    let windows = Windows::read(&call.args, dims, 1)?;
    let (input, mut places) = (&x.shape()[x.rank() - dims..], found.to_i64s());
    let relative =
        |w: &Windows, d: usize, window: i64, at: i64| (at - (window * w.stride[d] - w.padding[d])) / w.dilation[d];
    convert_places(&windows, values.shape(), input, &mut places, relative, (input, &windows.kernel));
    offsets.write_i64s(&places);
    Ok(vec![values, offsets].into())
}

fn offsets_to_indices(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
    let dims = dims_of_kernel(&call.args)?;
    let ints = |at: usize, what: &str| per_dim(what, call.args.ints(at)?, &[], dims);
    let windows = Windows {
        kernel: ints(1, "kernel_size")?,
        stride: ints(3, "stride")?,
        padding: ints(4, "padding")?,
        dilation: ints(5, "dilation")?,
        ceil: false,
    };
    let input = ints(2, "input_size")?;
    if x.rank() < dims {
        invalid!("offsets of {} dimensions for a pooling over {dims}", x.rank());
    }
    let mut places = x.to_i64s();
    let absolute =
        |w: &Windows, d: usize, window: i64, at: i64| window * w.stride[d] - w.padding[d] + at * w.dilation[d];
    convert_places(&windows, x.shape(), &input, &mut places, absolute, (&windows.kernel, &input));
    out.write_i64s(&places);
    Ok(out.into())
}
