//! Resizing images.
//!
//! Every kind is separable: an element of the result is a weighted sum of elements of the input along each dimension in
//! turn. [`taps`] lists the weights along one dimension; its gradient runs the same list backwards.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, SymDims, Tag, Value, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use crate::decompositions::image as by;
use crate::derivatives::upsample as d;
use crate::rules::{expect_same_shape, image_like};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        "A tensor resized along one dimension by repeating or dropping elements.",
        |args| infer(args, 1),
        |call| resize(call, 1, Kind::Nearest),
    )
    .derivative(d::resize)
    .decompose(by::nearest)
    .samples(&["f32[2, 3, 5], [8]", "f32[2, 3, 5], [3]", "f32[2, 3, 5], [8], 1.7"]),
    OpDef::kernel(
        "aten::upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        "A tensor resized along one dimension by repeating or dropping elements; the size may be given as factors.",
        |args| infer(args, 1),
        |call| resize(call, 1, Kind::Nearest),
    )
    .derivative(d::resize)
    .decompose(by::nearest)
    .samples(&["f32[2, 3, 5], [8], None", "f32[2, 3, 5], None, [1.5]"]),
    OpDef::kernel(
        "aten::upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
        "The gradient of `upsample_nearest1d`.",
        |args| backward_infer(args, 1),
        |call| backward(call, 1, Kind::Nearest),
    )
    .derivative(d::resize_backward)
    .decompose(by::nearest_backward)
    .samples(&["f32[2, 3, 8], [8], [2, 3, 5]"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        "A tensor resized along one dimension by the elements nearest to the centres of the new ones.",
        |args| infer(args, 1),
        |call| resize(call, 1, Kind::NearestExact),
    )
    .derivative(d::resize)
    .decompose(by::nearest_exact)
    .samples(&["f32[2, 3, 5], [8]", "f32[2, 3, 5], [3]", "f32[2, 3, 5], [8], 1.7"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        "A tensor resized along one dimension by the elements nearest to the centres of the new ones; the size may be given as factors.",
        |args| infer(args, 1),
        |call| resize(call, 1, Kind::NearestExact),
    )
    .derivative(d::resize)
    .decompose(by::nearest_exact)
    .samples(&["f32[2, 3, 5], [8], None", "f32[2, 3, 5], None, [1.5]"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
        "The gradient of `_upsample_nearest_exact1d`.",
        |args| backward_infer(args, 1),
        |call| backward(call, 1, Kind::NearestExact),
    )
    .derivative(d::resize_backward)
    .decompose(by::nearest_exact_backward)
    .samples(&["f32[2, 3, 8], [8], [2, 3, 5]"]),
    OpDef::kernel(
        "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along two dimensions by repeating or dropping elements.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::Nearest),
    )
    .derivative(d::resize)
    .decompose(by::nearest)
    .samples(&["f32[2, 3, 5, 4], [8, 8]", "f32[2, 3, 5, 4], [3, 9]", "f32[2, 3, 5, 4], [8, 8], 1.7, 1.7", "f32[2, 3, 5, 4]<[60, 1, 12, 3], [8, 8]"]),
    OpDef::kernel(
        "aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        "A tensor resized along two dimensions by repeating or dropping elements; the size may be given as factors.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::Nearest),
    )
    .tags(&[Tag::Core])
    .derivative(d::resize)
    .decompose(by::nearest)
    .samples(&["f32[2, 3, 5, 4], [8, 8], None", "f32[2, 3, 5, 4], None, [1.5, 1.5]"]),
    OpDef::kernel(
        "aten::upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `upsample_nearest2d`.",
        |args| backward_infer(args, 2),
        |call| backward(call, 2, Kind::Nearest),
    )
    .derivative(d::resize_backward)
    .decompose(by::nearest_backward)
    .samples(&["f32[2, 3, 8, 8], [8, 8], [2, 3, 5, 4]"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along two dimensions by the elements nearest to the centres of the new ones.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::NearestExact),
    )
    .derivative(d::resize)
    .decompose(by::nearest_exact)
    .samples(&["f32[2, 3, 5, 4], [8, 8]", "f32[2, 3, 5, 4], [3, 9]", "f32[2, 3, 5, 4], [8, 8], 1.7, 1.7", "f32[2, 3, 5, 4]<[60, 1, 12, 3], [8, 8]"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        "A tensor resized along two dimensions by the elements nearest to the centres of the new ones; the size may be given as factors.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::NearestExact),
    )
    .derivative(d::resize)
    .decompose(by::nearest_exact)
    .samples(&["f32[2, 3, 5, 4], [8, 8], None", "f32[2, 3, 5, 4], None, [1.5, 1.5]"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `_upsample_nearest_exact2d`.",
        |args| backward_infer(args, 2),
        |call| backward(call, 2, Kind::NearestExact),
    )
    .derivative(d::resize_backward)
    .decompose(by::nearest_exact_backward)
    .samples(&["f32[2, 3, 8, 8], [8, 8], [2, 3, 5, 4]"]),
    OpDef::kernel(
        "aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along three dimensions by repeating or dropping elements.",
        |args| infer(args, 3),
        |call| resize(call, 3, Kind::Nearest),
    )
    .derivative(d::resize)
    .decompose(by::nearest)
    .samples(&["f32[1, 2, 3, 4, 3], [5, 8, 2]", "f32[1, 2, 3, 4, 3], [5, 8, 2], 1.7, 1.7, 1.7"]),
    OpDef::kernel(
        "aten::upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        "A tensor resized along three dimensions by repeating or dropping elements; the size may be given as factors.",
        |args| infer(args, 3),
        |call| resize(call, 3, Kind::Nearest),
    )
    .derivative(d::resize)
    .decompose(by::nearest)
    .samples(&["f32[1, 2, 3, 4, 3], [5, 8, 2], None", "f32[1, 2, 3, 4, 3], None, [1.5, 1.5, 1.5]"]),
    OpDef::kernel(
        "aten::upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `upsample_nearest3d`.",
        |args| backward_infer(args, 3),
        |call| backward(call, 3, Kind::Nearest),
    )
    .derivative(d::resize_backward)
    .decompose(by::nearest_backward)
    .samples(&["f32[1, 2, 5, 8, 2], [5, 8, 2], [1, 2, 3, 4, 3]"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along three dimensions by the elements nearest to the centres of the new ones.",
        |args| infer(args, 3),
        |call| resize(call, 3, Kind::NearestExact),
    )
    .derivative(d::resize)
    .decompose(by::nearest_exact)
    .samples(&["f32[1, 2, 3, 4, 3], [5, 8, 2]", "f32[1, 2, 3, 4, 3], [5, 8, 2], 1.7, 1.7, 1.7"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        "A tensor resized along three dimensions by the elements nearest to the centres of the new ones; the size may be given as factors.",
        |args| infer(args, 3),
        |call| resize(call, 3, Kind::NearestExact),
    )
    .derivative(d::resize)
    .decompose(by::nearest_exact)
    .samples(&["f32[1, 2, 3, 4, 3], [5, 8, 2], None", "f32[1, 2, 3, 4, 3], None, [1.5, 1.5, 1.5]"]),
    OpDef::kernel(
        "aten::_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `_upsample_nearest_exact3d`.",
        |args| backward_infer(args, 3),
        |call| backward(call, 3, Kind::NearestExact),
    )
    .derivative(d::resize_backward)
    .decompose(by::nearest_exact_backward)
    .samples(&["f32[1, 2, 5, 8, 2], [5, 8, 2], [1, 2, 3, 4, 3]"]),
    OpDef::kernel(
        "aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
        "A tensor resized along one dimension by linear interpolation.",
        |args| infer(args, 1),
        |call| resize(call, 1, Kind::Linear),
    )
    .derivative(d::resize)
    .decompose(by::linear)
    .samples(&["f32[2, 3, 5], [8], False", "f32[2, 3, 5], [3], False", "f64[2, 3, 5], [8], True", "f32[2, 3, 5], [8], False, 1.7"]),
    OpDef::kernel(
        "aten::upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        "A tensor resized along one dimension by linear interpolation; the size may be given as factors.",
        |args| infer(args, 1),
        |call| resize(call, 1, Kind::Linear),
    )
    .derivative(d::resize)
    .decompose(by::linear)
    .samples(&["f32[2, 3, 5], [8], False, None", "f32[2, 3, 5], None, False, [1.5]"]),
    OpDef::kernel(
        "aten::upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor",
        "The gradient of `upsample_linear1d`.",
        |args| backward_infer(args, 1),
        |call| backward(call, 1, Kind::Linear),
    )
    .derivative(d::resize_backward)
    .decompose(by::linear_backward)
    .samples(&["f32[2, 3, 8], [8], [2, 3, 5], False"]),
    OpDef::kernel(
        "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along two dimensions by linear interpolation.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::Linear),
    )
    .derivative(d::resize)
    .decompose(by::linear)
    .samples(&["f32[2, 3, 5, 4], [8, 8], False", "f32[2, 3, 5, 4], [3, 9], False", "f64[2, 3, 5, 4], [8, 8], True", "f32[2, 3, 5, 4], [8, 8], False, 1.7, 1.7", "f32[2, 3, 5, 4]<[60, 1, 12, 3], [8, 8], False"]),
    OpDef::kernel(
        "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        "A tensor resized along two dimensions by linear interpolation; the size may be given as factors.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::Linear),
    )
    .tags(&[Tag::Core])
    .derivative(d::resize)
    .decompose(by::linear)
    .samples(&["f32[2, 3, 5, 4], [8, 8], False, None", "f32[2, 3, 5, 4], None, False, [1.5, 1.5]"]),
    OpDef::kernel(
        "aten::upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `upsample_bilinear2d`.",
        |args| backward_infer(args, 2),
        |call| backward(call, 2, Kind::Linear),
    )
    .derivative(d::resize_backward)
    .decompose(by::linear_backward)
    .samples(&["f32[2, 3, 8, 8], [8, 8], [2, 3, 5, 4], False"]),
    OpDef::kernel(
        "aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along three dimensions by linear interpolation.",
        |args| infer(args, 3),
        |call| resize(call, 3, Kind::Linear),
    )
    .derivative(d::resize)
    .decompose(by::linear)
    .samples(&["f32[1, 2, 3, 4, 3], [5, 8, 2], False", "f64[1, 2, 3, 4, 3], [5, 8, 2], True", "f32[1, 2, 3, 4, 3], [5, 8, 2], False, 1.7, 1.7, 1.7"]),
    OpDef::kernel(
        "aten::upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        "A tensor resized along three dimensions by linear interpolation; the size may be given as factors.",
        |args| infer(args, 3),
        |call| resize(call, 3, Kind::Linear),
    )
    .derivative(d::resize)
    .decompose(by::linear)
    .samples(&["f32[1, 2, 3, 4, 3], [5, 8, 2], False, None", "f32[1, 2, 3, 4, 3], None, False, [1.5, 1.5, 1.5]"]),
    OpDef::kernel(
        "aten::upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `upsample_trilinear3d`.",
        |args| backward_infer(args, 3),
        |call| backward(call, 3, Kind::Linear),
    )
    .derivative(d::resize_backward)
    .decompose(by::linear_backward)
    .samples(&["f32[1, 2, 5, 8, 2], [5, 8, 2], [1, 2, 3, 4, 3], False"]),
    OpDef::kernel(
        "aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along two dimensions by cubic interpolation.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::Cubic),
    )
    .derivative(d::resize)
    .decompose(by::cubic_convolution)
    .samples(&["f32[2, 3, 5, 4], [8, 8], False", "f32[2, 3, 5, 4], [3, 9], False", "f64[2, 3, 5, 4], [8, 8], True", "f32[2, 3, 5, 4], [8, 8], False, 1.7, 1.7", "f32[2, 3, 5, 4]<[60, 1, 12, 3], [8, 8], False"]),
    OpDef::kernel(
        "aten::upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        "A tensor resized along two dimensions by cubic interpolation; the size may be given as factors.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::Cubic),
    )
    .derivative(d::resize)
    .decompose(by::cubic_convolution)
    .samples(&["f32[2, 3, 5, 4], [8, 8], False, None", "f32[2, 3, 5, 4], None, False, [1.5, 1.5]"]),
    OpDef::kernel(
        "aten::upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `upsample_bicubic2d`.",
        |args| backward_infer(args, 2),
        |call| backward(call, 2, Kind::Cubic),
    )
    .derivative(d::resize_backward)
    .decompose(by::cubic_convolution_backward)
    .samples(&["f32[2, 3, 8, 8], [8, 8], [2, 3, 5, 4], False"]),
    OpDef::kernel(
        "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along two dimensions by linear interpolation, averaging over all elements when it shrinks.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::LinearWide),
    )
    .derivative(d::resize)
    .samples(&["f32[2, 3, 5, 4], [8, 8], False", "f32[2, 3, 5, 4], [3, 9], False", "f64[2, 3, 5, 4], [8, 8], True", "f32[2, 3, 5, 4], [8, 8], False, 1.7, 1.7", "f32[2, 3, 5, 4]<[60, 1, 12, 3], [8, 8], False"]),
    OpDef::kernel(
        "aten::_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        "A tensor resized along two dimensions by linear interpolation, averaging over all elements when it shrinks; the size may be given as factors.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::LinearWide),
    )
    .derivative(d::resize)
    .samples(&["f32[2, 3, 5, 4], [8, 8], False, None", "f32[2, 3, 5, 4], None, False, [1.5, 1.5]"]),
    OpDef::kernel(
        "aten::_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `_upsample_bilinear2d_aa`.",
        |args| backward_infer(args, 2),
        |call| backward(call, 2, Kind::LinearWide),
    )
    .derivative(d::resize_backward)
    .samples(&["f32[2, 3, 8, 8], [8, 8], [2, 3, 5, 4], False"]),
    OpDef::kernel(
        "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "A tensor resized along two dimensions by cubic interpolation, averaging over all elements when it shrinks.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::CubicWide),
    )
    .derivative(d::resize)
    .samples(&["f32[2, 3, 5, 4], [8, 8], False", "f32[2, 3, 5, 4], [3, 9], False", "f64[2, 3, 5, 4], [8, 8], True", "f32[2, 3, 5, 4], [8, 8], False, 1.7, 1.7", "f32[2, 3, 5, 4]<[60, 1, 12, 3], [8, 8], False"]),
    OpDef::kernel(
        "aten::_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        "A tensor resized along two dimensions by cubic interpolation, averaging over all elements when it shrinks; the size may be given as factors.",
        |args| infer(args, 2),
        |call| resize(call, 2, Kind::CubicWide),
    )
    .derivative(d::resize)
    .samples(&["f32[2, 3, 5, 4], [8, 8], False, None", "f32[2, 3, 5, 4], None, False, [1.5, 1.5]"]),
    OpDef::kernel(
        "aten::_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "The gradient of `_upsample_bicubic2d_aa`.",
        |args| backward_infer(args, 2),
        |call| backward(call, 2, Kind::CubicWide),
    )
    .derivative(d::resize_backward)
    .samples(&["f32[2, 3, 8, 8], [8, 8], [2, 3, 5, 4], False"]),
];

/// How elements between the given ones are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The element at the scaled position, rounded down.
    Nearest,
    /// The element whose centre is nearest.
    NearestExact,
    /// Linear between two.
    Linear,
    /// Cubic between four.
    Cubic,
    /// Linear, widened when shrinking.
    LinearWide,
    /// Cubic, widened when shrinking.
    CubicWide,
}

/// The weights of the elements that one element of the result is summed from.
type Tap = Vec<(usize, f64)>;

/// What a call says of the scale: whether the corners of both images coincide, and factors that replace the ratio of
/// sizes.
struct Scale {
    align_corners: bool,
    factors: Vec<Option<f64>>,
}

impl Scale {
    fn read<T>(args: &Args<'_, T>, dims: usize) -> Result<Self, OpError> {
        let align_corners = args.schema.param("align_corners").map_or(Ok(false), |at| args.bool(at))?;
        let factors = if let Some(at) = args.schema.param("scale_factors") {
            match args.opt_floats(at)? {
                Some(factors) if factors.len() == dims => factors.into_iter().map(Some).collect(),
                Some(factors) => invalid!("{} scale factors for {dims} dimensions", factors.len()),
                None => vec![None; dims],
            }
        } else {
            let first = args.schema.params.len() - dims;
            (first..first + dims).map(|at| args.opt_float(at)).collect::<Result<_, _>>()?
        };
        Ok(Self { align_corners, factors })
    }
}

/// Runs arithmetic in the precision that PyTorch uses for positions.
#[derive(Clone, Copy)]
enum Precision {
    Single,
    Double,
}

impl Precision {
    fn of(dtype: DType) -> Self {
        if dtype == DType::F64 { Self::Double } else { Self::Single }
    }

    fn round(self, value: f64) -> f64 {
        match self {
            Self::Single => f64::from(value as f32),
            Self::Double => value,
        }
    }
}

/// The weights along one dimension that goes from `size` to `count` elements.
fn taps(kind: Kind, size: usize, count: usize, scale: &Scale, dim: usize, precision: Precision) -> Vec<Tap> {
    let given = scale.factors[dim].filter(|factor| *factor > 0.0);
    let nearest = matches!(kind, Kind::Nearest | Kind::NearestExact);
    let precision = if nearest { Precision::Single } else { precision };
    let ratio = if !nearest && scale.align_corners {
        if count > 1 { (size - 1) as f64 / (count - 1) as f64 } else { 0.0 }
    } else {
        given.map_or(size as f64 / count as f64, |factor| 1.0 / factor)
    };
    let ratio = precision.round(ratio);
    let last = size - 1;
    let centre = |i: usize| {
        if scale.align_corners {
            precision.round(ratio * i as f64)
        } else {
            precision.round(precision.round(ratio * (i as f64 + 0.5)) - 0.5)
        }
    };
    (0..count)
        .map(|i| match kind {
            Kind::Nearest if count == size => vec![(i, 1.0)],
            Kind::Nearest if count == 2 * size => vec![(i / 2, 1.0)],
            Kind::Nearest => vec![((precision.round(i as f64 * ratio).floor() as usize).min(last), 1.0)],
            Kind::NearestExact => {
                vec![((precision.round((i as f64 + 0.5) * ratio).floor() as usize).min(last), 1.0)]
            }
            Kind::Linear if count == size => vec![(i, 1.0)],
            Kind::Linear => {
                let at = centre(i).max(0.0);
                let low = (at.floor() as usize).min(last);
                let weight = (at - low as f64).clamp(0.0, 1.0);
                vec![(low, 1.0 - weight), ((low + 1).min(last), weight)]
            }
            Kind::Cubic => {
                let at = centre(i);
                let low = at.floor().min(last as f64);
                let weights = cubic((at - low).clamp(0.0, 1.0));
                let place = |j: usize| (low + j as f64 - 1.0).clamp(0.0, last as f64) as usize;
                (0..4).map(|j| (place(j), weights[j])).collect()
            }
            Kind::LinearWide => wide(i, size, ratio, 1.0, |x| (1.0 - x).max(0.0)),
            Kind::CubicWide => wide(i, size, ratio, 2.0, |x| cubic_filter(x, -0.5)),
        })
        .collect()
}

/// The cubic convolution kernel at a distance that is not negative.
fn cubic_filter(x: f64, a: f64) -> f64 {
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}

/// The weights of the four elements around a position `t` between the second and the third.
pub(super) fn cubic(t: f64) -> [f64; 4] {
    [t + 1.0, t, 1.0 - t, 2.0 - t].map(|x| cubic_filter(x, -0.75))
}

/// The normalised weights of a filter that is stretched by the ratio when shrinking.
fn wide(i: usize, size: usize, ratio: f64, reach: f64, filter: impl Fn(f64) -> f64) -> Tap {
    let stretch = ratio.max(1.0);
    let (support, centre) = (reach * stretch, ratio * (i as f64 + 0.5));
    let low = (centre - support + 0.5).max(0.0) as usize;
    let high = ((centre + support + 0.5) as usize).min(size);
    let mut tap: Tap = (low..high).map(|j| (j, filter(((j as f64 - centre + 0.5) / stretch).abs()))).collect();
    let total: f64 = tap.iter().map(|(_, weight)| weight).sum();
    if total != 0.0 {
        tap.iter_mut().for_each(|(_, weight)| *weight /= total);
    }
    tap
}

/// Sums along one dimension, `outer` times, over rows of `inner` elements.
fn along(x: &[f64], size: usize, inner: usize, taps: &[Tap]) -> Vec<f64> {
    let outer = x.len() / (size * inner).max(1);
    let mut y = vec![0.0; outer * taps.len() * inner];
    for (x, y) in x.chunks_exact((size * inner).max(1)).zip(y.chunks_exact_mut((taps.len() * inner).max(1))) {
        for (tap, y) in taps.iter().zip(y.chunks_exact_mut(inner)) {
            match tap.as_slice() {
                [(at, 1.0)] => y.copy_from_slice(&x[at * inner..][..inner]),
                tap => {
                    for (at, weight) in tap {
                        for (y, x) in y.iter_mut().zip(&x[at * inner..][..inner]) {
                            *y += weight * x;
                        }
                    }
                }
            }
        }
    }
    y
}

/// The same backwards: spreads elements over those that they were summed from.
fn along_backward(dy: &[f64], size: usize, inner: usize, taps: &[Tap]) -> Vec<f64> {
    let outer = dy.len() / (taps.len() * inner).max(1);
    let mut dx = vec![0.0; outer * size * inner];
    for (dx, dy) in dx.chunks_exact_mut((size * inner).max(1)).zip(dy.chunks_exact((taps.len() * inner).max(1))) {
        for (tap, dy) in taps.iter().zip(dy.chunks_exact(inner)) {
            for (at, weight) in tap {
                for (dx, dy) in dx[at * inner..][..inner].iter_mut().zip(dy) {
                    *dx += weight * dy;
                }
            }
        }
    }
    dx
}

fn check(args: &Args<'_, Meta>, x: &Meta, dims: usize) -> Result<(), OpError> {
    if x.rank() != dims + 2 {
        invalid!("{} wants {} dimensions, not {}", args.schema.name, dims + 2, x.rank());
    }
    if x.shape[1..].iter().any(|size| size.is_lt(1)) {
        invalid!("{} wants only the batch to be empty, not shape {:?}", args.schema.name, x.shape);
    }
    if !x.dtype.is_float() && x.dtype != DType::U8 {
        invalid!("{} of {}", args.schema.name, x.dtype);
    }
    Ok(())
}

/// The sizes of the result, which may be given as factors.
fn output_size(args: &Args<'_, Meta>, x: &Meta, dims: usize) -> Result<Vec<SymInt>, OpError> {
    let given = args.opt_syms(1)?;
    let factors = args.schema.param("scale_factors").map_or(Ok(None), |at| args.opt_floats(at))?;
    let sizes = match (given, factors) {
        (Some(sizes), None) => sizes,
        (Some(_), Some(_)) => invalid!("{} wants sizes or factors, not both", args.schema.name),
        (None, Some(factors)) if factors.len() == dims => x.shape[2..]
            .iter()
            .zip(factors)
            .map(|(size, factor)| match size.as_int() {
                Some(size) => Ok(SymInt::Int((size as f64 * factor) as i64)),
                // A factor with few binary digits is a fraction, so the product can be written down.
                None => match (0..20).find(|bits| (factor * f64::from(1 << bits)).fract() == 0.0) {
                    Some(bits) => {
                        let whole = SymInt::Int(1 << bits);
                        Ok((size * (factor * f64::from(1 << bits)) as i64).floor_div(&whole))
                    }
                    None => unsupported!("resizing a symbolic size by {factor}"),
                },
            })
            .collect::<Result<_, OpError>>()?,
        _ => invalid!("{} wants {dims} sizes or factors", args.schema.name),
    };
    if sizes.len() != dims || sizes.iter().any(|size| size.is_lt(1)) {
        invalid!("{} wants {dims} positive sizes", args.schema.name);
    }
    Ok(sizes)
}

fn infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    let x = args.tensor(0)?;
    check(args, x, dims)?;
    Scale::read(args, dims)?;
    let shape: SymDims = x.shape[..2].iter().cloned().chain(output_size(args, x, dims)?).collect();
    Ok(image_like(x, &shape).into())
}

fn resize(call: &Call<'_>, dims: usize, kind: Kind) -> Result<Value<Tensor>, OpError> {
    let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
    if x.dtype() == DType::U8 && !matches!(kind, Kind::Nearest | Kind::NearestExact) {
        return resize_bytes(call, dims, kind);
    }
    let (scale, precision) = (Scale::read(&call.args, dims)?, Precision::of(x.dtype()));
    let mut values = x.to_f64s();
    // The last dimension first, so that later sums run over longer rows.
    for d in (0..dims).rev() {
        let (size, count) = (x.shape()[d + 2] as usize, out.shape()[d + 2] as usize);
        let inner: i64 = out.shape()[d + 3..].iter().product();
        values = along(&values, size, inner as usize, &taps(kind, size, count, &scale, d, precision));
    }
    out.write_f64s(&values);
    Ok(out.into())
}

/// Bytes between other bytes, in the fixed-point arithmetic of PyTorch's kernels: every dimension whose size changes is
/// summed with weights of 16 bits and rounded to bytes.
fn resize_bytes(call: &Call<'_>, dims: usize, kind: Kind) -> Result<Value<Tensor>, OpError> {
    let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
    let scale = Scale::read(&call.args, dims)?;
    let mut values: Vec<i64> = x.to_f64s().into_iter().map(|value| value as i64).collect();
    for d in (0..dims).rev() {
        let (size, count) = (x.shape()[d + 2] as usize, out.shape()[d + 2] as usize);
        if size == count {
            continue;
        }
        let inner: i64 = out.shape()[d + 3..].iter().product();
        let (taps, bits) = byte_taps(kind, size, count, &scale, d);
        values = along_bytes(&values, size, inner as usize, &taps, bits);
    }
    out.write_f64s(&values.into_iter().map(|value| value as f64).collect::<Vec<_>>());
    Ok(out.into())
}

/// The weights along one dimension in fixed point, and how many of their bits stand behind the point: as many as 16 bits
/// have room for beside the largest weight.
fn byte_taps(kind: Kind, size: usize, count: usize, scale: &Scale, dim: usize) -> (Vec<Vec<(usize, i64)>>, u32) {
    let given = scale.factors[dim].filter(|factor| *factor > 0.0);
    let ratio = match (scale.align_corners, count) {
        (true, 0 | 1) => 0.0,
        (true, _) => (size - 1) as f64 / (count - 1) as f64,
        (false, _) => given.map_or(size as f64 / count as f64, |factor| 1.0 / factor),
    };
    let last = size as i64 - 1;
    // The elements around a position at whole numbers, those beyond the edges at the edges.
    let around = |i: usize, reach: f64, filter: &dyn Fn(f64) -> f64| {
        let shift = if scale.align_corners { 0.0 } else { 0.5 };
        let at = ratio * (i as f64 + shift) - shift;
        let first = (at - reach + 1.0).floor();
        let mut tap: Tap = Vec::new();
        for j in 0..(2.0 * reach) as i64 {
            let place = (first as i64 + j).clamp(0, last) as usize;
            let weight = filter((first + j as f64 - at).abs());
            match tap.last_mut() {
                Some((before, sum)) if *before == place => *sum += weight,
                _ => tap.push((place, weight)),
            }
        }
        tap
    };
    let taps: Vec<Tap> = (0..count)
        .map(|i| match kind {
            Kind::Linear => around(i, 1.0, &|x| (1.0 - x).max(0.0)),
            Kind::Cubic => around(i, 2.0, &|x| cubic_filter(x, -0.75)),
            Kind::LinearWide => wide(i, size, ratio, 1.0, |x| (1.0 - x).max(0.0)),
            Kind::CubicWide => wide(i, size, ratio, 2.0, |x| cubic_filter(x, -0.5)),
            Kind::Nearest | Kind::NearestExact => unreachable!("nearest elements are copied"),
        })
        .collect();
    let largest = taps.iter().flatten().map(|(_, weight)| *weight).fold(0.0, f64::max);
    let fixed = |weight: f64, bits: u32| weight * f64::from(1u32 << bits);
    let fits = |bits: &u32| (0.5 + fixed(largest, bits + 1)) as i64 >= 1 << 15;
    let bits = (0..22).find(fits).unwrap_or(22);
    let rounded = |weight: f64| (fixed(weight, bits) + if weight < 0.0 { -0.5 } else { 0.5 }) as i64;
    let taps = taps.into_iter().map(|tap| tap.into_iter().map(|(at, weight)| (at, rounded(weight))).collect());
    (taps.collect(), bits)
}

/// Sums along one dimension in fixed point, each rounded to a byte.
fn along_bytes(x: &[i64], size: usize, inner: usize, taps: &[Vec<(usize, i64)>], bits: u32) -> Vec<i64> {
    let outer = x.len() / (size * inner).max(1);
    let mut y = vec![(1 << bits) >> 1; outer * taps.len() * inner];
    for (x, y) in x.chunks_exact((size * inner).max(1)).zip(y.chunks_exact_mut((taps.len() * inner).max(1))) {
        for (tap, y) in taps.iter().zip(y.chunks_exact_mut(inner)) {
            for (at, weight) in tap {
                for (y, x) in y.iter_mut().zip(&x[at * inner..][..inner]) {
                    *y += weight * x;
                }
            }
        }
    }
    y.iter_mut().for_each(|sum| *sum = (*sum >> bits).clamp(0, 255));
    y
}

fn backward_infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    let (grad, sizes, shape) = (args.tensor(0)?, args.syms(1)?, args.syms(2)?);
    check(args, grad, dims)?;
    if shape.len() != dims + 2 || shape[1..].iter().any(|size| size.is_lt(1)) {
        invalid!("{} wants the {} sizes of its input", args.schema.name, dims + 2);
    }
    let expected: SymDims = shape[..2].iter().cloned().chain(sizes).collect();
    expect_same_shape("the gradient", &grad.shape, &expected)?;
    Ok(image_like(grad, &shape).into())
}

fn backward(call: &Call<'_>, dims: usize, kind: Kind) -> Result<Value<Tensor>, OpError> {
    let (grad, out) = (call.args.tensor(0)?, call.allocate(0)?);
    let (scale, precision) = (Scale::read(&call.args, dims)?, Precision::of(grad.dtype()));
    let mut values = grad.to_f64s();
    for d in 0..dims {
        let (size, count) = (out.shape()[d + 2] as usize, grad.shape()[d + 2] as usize);
        let inner: i64 = grad.shape()[d + 3..].iter().product();
        values = along_backward(&values, size, inner as usize, &taps(kind, size, count, &scale, d, precision));
    }
    out.write_f64s(&values);
    Ok(out.into())
}
