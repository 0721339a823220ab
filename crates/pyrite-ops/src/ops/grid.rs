//! Sampling images at positions that a grid gives.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, SymDims, Tag, Value, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};

use super::upsample::cubic;
use crate::derivatives::grid as d;
use crate::rules::expect_same_shape;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        "An image of two dimensions sampled at the positions of a grid, which go from -1 to 1.",
        |args| infer(args, 2),
        |call| sample(call, 2),
    )
    .tags(&[Tag::Core])
    .derivative(d::sample)
    .samples(&[
        "f32[2, 3, 5, 4], f32[2, 3, 4, 2], 0, 0, False",
        "f64[2, 3, 5, 4], f64[2, 3, 4, 2], 1, 1, True",
        "f32[2, 3, 5, 4], f32[2, 3, 4, 2], 2, 2, False",
        "bf16[1, 1, 1, 4], bf16[1, 3, 4, 2], 0, 2, True",
        "f32[0, 3, 5, 4], f32[0, 3, 4, 2], 0, 0, False",
    ]),
    OpDef::kernel(
        "aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        "An image of three dimensions sampled at the positions of a grid, which go from -1 to 1.",
        |args| infer(args, 3),
        |call| sample(call, 3),
    )
    .derivative(d::sample)
    .samples(&["f32[2, 3, 5, 4, 3], f32[2, 3, 4, 2, 3], 0, 0, False", "f64[2, 3, 5, 4, 3], f64[2, 3, 4, 2, 3], 1, 2, True"]),
    OpDef::kernel(
        "aten::grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
        "The gradients of `grid_sampler_2d` for the image, where it is wanted, and the grid.",
        |args| backward_infer(args, 2),
        |call| backward(call, 2),
    )
    .samples(&[
        "f32[2, 3, 3, 4], f32[2, 3, 5, 4], f32[2, 3, 4, 2], 0, 0, False, [True, True]",
        "f64[2, 3, 3, 4], f64[2, 3, 5, 4], f64[2, 3, 4, 2], 0, 1, True, [True, True]",
        "f32[2, 3, 3, 4], f32[2, 3, 5, 4], f32[2, 3, 4, 2], 0, 2, False, [False, True]",
        "f32[2, 3, 3, 4], f32[2, 3, 5, 4], f32[2, 3, 4, 2], 1, 0, False, [True, True]",
        "f64[2, 3, 3, 4], f64[2, 3, 5, 4], f64[2, 3, 4, 2], 2, 2, True, [True, True]",
    ]),
    OpDef::kernel(
        "aten::grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
        "The gradients of `grid_sampler_3d` for the image, where it is wanted, and the grid.",
        |args| backward_infer(args, 3),
        |call| backward(call, 3),
    )
    .samples(&[
        "f32[2, 3, 3, 4, 2], f32[2, 3, 5, 4, 3], f32[2, 3, 4, 2, 3], 0, 0, False, [True, True]",
        "f64[2, 3, 3, 4, 2], f64[2, 3, 5, 4, 3], f64[2, 3, 4, 2, 3], 1, 2, True, [True, True]",
    ]),
    OpDef::composite(
        "aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        "An image of two or three dimensions sampled at the positions of a grid.",
        |e, a| {
            let op = if e.rank(*a.tensor(0)?) == 5 { "aten.grid_sampler_3d.default" } else { "aten.grid_sampler_2d.default" };
            e.call(op, a.values)
        },
    )
    .samples(&["f32[2, 3, 5, 4], f32[2, 3, 4, 2], 0, 0, False"]),
];

/// How elements between the given ones are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interpolation {
    Linear,
    Nearest,
    Cubic,
}

/// What lies outside of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// Where the positions -1 and 1 are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// At the centres of the outermost elements.
    Centres,
    /// At their outer edges.
    Edges,
}

/// Reads the three options that start at a position.
fn options<T>(args: &Args<'_, T>, dims: usize, at: usize) -> Result<(Interpolation, Outside, Ends), OpError> {
    let interpolation = match args.int(at)? {
        0 => Interpolation::Linear,
        1 => Interpolation::Nearest,
        2 if dims == 2 => Interpolation::Cubic,
        2 => unsupported!("cubic sampling of three dimensions"),
        other => invalid!("interpolation_mode is 0 (linear), 1 (nearest) or 2 (cubic), not {other}"),
    };
    let outside = match args.int(at + 1)? {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Reflection,
        other => invalid!("padding_mode is 0 (zeros), 1 (border) or 2 (reflection), not {other}"),
    };
    Ok((interpolation, outside, if args.bool(at + 2)? { Ends::Centres } else { Ends::Edges }))
}

fn infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    options(args, dims, 2)?;
    let (x, shape) = (args.tensor(0)?, sampled_shape(args, dims, 0)?);
    Ok(x.fresh(&shape, x.dtype).into())
}

/// The shape of the samples of the image at a position and the grid after it.
fn sampled_shape(args: &Args<'_, Meta>, dims: usize, at: usize) -> Result<SymDims, OpError> {
    let (x, grid) = (args.tensor(at)?, args.tensor(at + 1)?);
    if x.rank() != dims + 2 || grid.rank() != dims + 2 || !grid.shape[dims + 1].is_eq(SymInt::from(dims)) {
        invalid!("{} wants {} dimensions, and {dims} coordinates in the last of the grid", args.schema.name, dims + 2);
    }
    if !x.shape[0].is_eq(&grid.shape[0]) || x.dtype != grid.dtype {
        invalid!(
            "a grid of type {} and shape {:?} for type {} and shape {:?}",
            grid.dtype,
            grid.shape,
            x.dtype,
            x.shape
        );
    }
    if !x.dtype.is_float() {
        invalid!("{} of {}", args.schema.name, x.dtype);
    }
    if x.shape[2..].iter().any(|size| size.is_lt(1)) {
        invalid!("{} of an empty image", args.schema.name);
    }
    Ok(x.shape[..2].iter().chain(&grid.shape[1..=dims]).cloned().collect())
}

fn backward_infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    options(args, dims, 3)?;
    let (grad, x, grid) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    expect_same_shape(&args.schema.name, &grad.shape, &sampled_shape(args, dims, 1)?)?;
    let of_image = wants_image(args).then(|| x.fresh(&x.shape, x.dtype));
    Ok(Value::List(vec![of_image.into(), grid.fresh(&grid.shape, grid.dtype).into()]))
}

/// Whether a backward operator is asked for the gradient of the image.
fn wants_image<T>(args: &Args<'_, T>) -> bool {
    matches!(args.value(6), Value::List(flags) if matches!(flags.first(), Some(Value::Bool(true))))
}

/// An axis of the image.
#[derive(Clone, Copy)]
struct Axis {
    size: usize,
    outside: Outside,
    ends: Ends,
    /// Whether positions are computed in single precision.
    single: bool,
}

impl Axis {
    fn round(self, value: f64) -> f64 {
        if self.single { f64::from(value as f32) } else { value }
    }

    /// The position in elements.
    fn position(self, coordinate: f64) -> f64 {
        let size = self.size as f64;
        let shifted = self.round(coordinate + 1.0);
        match self.ends {
            Ends::Centres => self.round(self.round(shifted / 2.0) * (size - 1.0)),
            Ends::Edges => self.round(self.round(shifted * size) - 1.0) / 2.0,
        }
    }

    /// How fast the position moves with the coordinate.
    fn pace(self) -> f64 {
        match self.ends {
            Ends::Centres => (self.size as f64 - 1.0) / 2.0,
            Ends::Edges => self.size as f64 / 2.0,
        }
    }

    /// The position moved into the image, as far as that is asked for, and how fast it moves with the one given. What is
    /// not a number becomes 0.
    fn inside(self, at: f64) -> (f64, f64) {
        let last = self.size as f64 - 1.0;
        // At a bound and beyond, the position stands still.
        let clip = |at: f64, pace: f64| (at.max(0.0).min(last), if at > 0.0 && at < last { pace } else { 0.0 });
        match self.outside {
            Outside::Zeros => (at, 1.0),
            Outside::Border => clip(at, 1.0),
            Outside::Reflection => {
                let (low, span) = match self.ends {
                    Ends::Centres => (0.0, last),
                    Ends::Edges => (-0.5, self.size as f64),
                };
                if span == 0.0 {
                    return (0.0, 0.0);
                }
                let from = (at - low).abs();
                let pace = if at < low { -1.0 } else { 1.0 };
                let (extra, flips) = (self.round(from % span), (from / span).floor());
                if flips % 2.0 == 0.0 { clip(extra + low, pace) } else { clip(span - extra + low, -pace) }
            }
        }
    }

    /// The element at a whole position, if it is in the image.
    fn element(self, at: f64) -> Option<usize> {
        (at >= 0.0 && at < self.size as f64).then_some(at as usize)
    }

    /// The elements that a coordinate is interpolated from.
    fn taps(self, coordinate: f64, interpolation: Interpolation) -> Vec<Tap> {
        let raw = self.position(coordinate);
        match interpolation {
            Interpolation::Nearest => {
                vec![Tap { at: self.element(self.inside(raw).0.round_ties_even()), weight: 1.0, slope: 0.0 }]
            }
            Interpolation::Linear => {
                let (at, pace) = self.inside(raw);
                let (low, slope) = (at.floor(), pace * self.pace());
                vec![
                    Tap { at: self.element(low), weight: low + 1.0 - at, slope: -slope },
                    Tap { at: self.element(low + 1.0), weight: at - low, slope },
                ]
            }
            Interpolation::Cubic => {
                let low = raw.floor();
                let (weights, slopes) = (cubic(raw - low), cubic_slopes(raw - low));
                let place = |j: usize| self.element(self.inside(low + j as f64 - 1.0).0);
                let tap = |j: usize| Tap { at: place(j), weight: weights[j], slope: slopes[j] * self.pace() };
                (0..4).map(tap).collect()
            }
        }
    }
}

/// An element that a coordinate is interpolated from, `None` outside of the image.
#[derive(Clone, Copy)]
struct Tap {
    at: Option<usize>,
    weight: f64,
    /// How fast the weight grows with the coordinate.
    slope: f64,
}

/// The derivatives of the four cubic weights.
fn cubic_slopes(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| (3.0 * (A + 2.0) * x - 2.0 * (A + 3.0)) * x;
    let far = |x: f64| (3.0 * A * x - 10.0 * A) * x + 8.0 * A;
    [far(t + 1.0), near(t), -near(1.0 - t), -far(2.0 - t)]
}

/// An element of the image that a sample is interpolated from.
#[derive(Clone)]
struct Corner {
    at: Option<usize>,
    weight: f64,
    /// How fast the weight grows with each coordinate.
    slopes: [f64; 3],
}

/// What a call samples.
struct Sampler {
    axes: Vec<Axis>,
    interpolation: Interpolation,
    channels: usize,
    /// Elements of a channel of the image.
    plane: usize,
    /// Samples of a channel of the result.
    points: usize,
}

impl Sampler {
    /// Reads a call whose image stands at a position, the grid and the options after it.
    fn new(call: &Call<'_>, dims: usize, at: usize) -> Result<Self, OpError> {
        let (x, grid) = (call.args.tensor(at)?, call.args.tensor(at + 1)?);
        let (interpolation, outside, ends) = options(&call.args, dims, at + 2)?;
        let single = x.dtype() != DType::F64;
        let axes: Vec<Axis> =
            x.shape()[2..].iter().map(|size| Axis { size: *size as usize, outside, ends, single }).collect();
        let plane = axes.iter().map(|axis| axis.size).product();
        let points = grid.shape()[1..=dims].iter().product::<i64>() as usize;
        Ok(Self { axes, interpolation, channels: x.shape()[1] as usize, plane, points })
    }

    /// The corners of each of a batch's samples. Coordinates are in the opposite order of dimensions.
    fn corners(&self, coordinates: &[f64]) -> Vec<Corner> {
        let mut corners = vec![Corner { at: Some(0), weight: 1.0, slopes: [0.0; 3] }];
        for (d, (axis, coordinate)) in self.axes.iter().zip(coordinates.iter().rev()).enumerate() {
            let taps = axis.taps(*coordinate, self.interpolation);
            let one = |corner: &Corner, tap: Tap| {
                let mut slopes = corner.slopes.map(|slope| slope * tap.weight);
                slopes[d] = corner.weight * tap.slope;
                let at = corner.at.zip(tap.at).map(|(at, place)| at * axis.size + place);
                Corner { at, weight: corner.weight * tap.weight, slopes }
            };
            corners = corners.iter().flat_map(|corner| taps.iter().map(move |tap| one(corner, *tap))).collect();
        }
        corners
    }
}

fn sample(call: &Call<'_>, dims: usize) -> Result<Value<Tensor>, OpError> {
    let (x, grid, out) = (call.args.tensor(0)?, call.args.tensor(1)?, call.allocate(0)?);
    let sampler = Sampler::new(call, dims, 0)?;
    let Sampler { channels, plane, points, .. } = sampler;
    let (values, coordinates) = (x.to_f64s(), grid.to_f64s());
    let mut result = vec![0.0; out.numel()];
    if result.is_empty() {
        return Ok(out.into());
    }
    pyrite_threads::chunks(&mut result, channels * points, |n, result| {
        let image = &values[n * channels * plane..][..channels * plane];
        for (point, coordinates) in coordinates[n * points * dims..][..points * dims].chunks_exact(dims).enumerate() {
            let corners = sampler.corners(coordinates);
            for (channel, image) in image.chunks_exact(plane).enumerate() {
                // An element outside counts as 0 times its weight, which may not be a number.
                let terms = corners.iter().map(|corner| corner.at.map_or(0.0, |at| image[at]) * corner.weight);
                result[channel * points + point] = terms.sum();
            }
        }
    });
    out.write_f64s(&result);
    Ok(out.into())
}

fn backward(call: &Call<'_>, dims: usize) -> Result<Value<Tensor>, OpError> {
    let (grad, x, grid) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let sampler = Sampler::new(call, dims, 1)?;
    let Sampler { channels, plane, points, .. } = sampler;
    let to_image = wants_image(&call.args).then(|| call.allocate(0)).transpose()?;
    let to_grid = call.allocate(1)?;
    let (grad, values, coordinates) = (grad.to_f64s(), x.to_f64s(), grid.to_f64s());
    let (mut of_image, mut of_grid) = (vec![0.0; values.len()], vec![0.0; coordinates.len()]);
    if !grad.is_empty() {
        let (image_size, grid_size) = (channels * plane, points * dims);
        let mut batches: Vec<_> = of_image.chunks_mut(image_size).zip(of_grid.chunks_mut(grid_size)).collect();
        pyrite_threads::chunks(&mut batches, 1, |n, batch| {
            let (of_image, of_grid) = &mut batch[0];
            let image = &values[n * image_size..][..image_size];
            let grad = &grad[n * channels * points..][..channels * points];
            let coordinates = coordinates[n * grid_size..][..grid_size].chunks_exact(dims);
            for (point, (coordinates, of_grid)) in coordinates.zip(of_grid.chunks_exact_mut(dims)).enumerate() {
                for corner in sampler.corners(coordinates) {
                    let Some(at) = corner.at else { continue };
                    let mut dot = 0.0;
                    for channel in 0..channels {
                        let g = grad[channel * points + point];
                        of_image[channel * plane + at] += g * corner.weight;
                        dot += g * image[channel * plane + at];
                    }
                    for (of_grid, slope) in of_grid.iter_mut().rev().zip(corner.slopes) {
                        *of_grid += dot * slope;
                    }
                }
            }
        });
    }
    to_grid.write_f64s(&of_grid);
    if let Some(to) = &to_image {
        to.write_f64s(&of_image);
    }
    Ok(Value::List(vec![to_image.into(), to_grid.into()]))
}
