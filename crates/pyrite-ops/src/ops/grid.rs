//! Sampling images at positions that a grid gives.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, SymDims, Tag, Value, invalid, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Tensor};
use rayon::prelude::*;

use super::upsample::cubic;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        "An image of two dimensions sampled at the positions of a grid, which go from -1 to 1.",
        |args| infer(args, 2),
        |call| sample(call, 2),
    )
    .tags(&[Tag::Core])
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
    .samples(&["f32[2, 3, 5, 4, 3], f32[2, 3, 4, 2, 3], 0, 0, False", "f64[2, 3, 5, 4, 3], f64[2, 3, 4, 2, 3], 1, 2, True"]),
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

fn options<T>(args: &Args<'_, T>, dims: usize) -> Result<(Interpolation, Outside, Ends), OpError> {
    let interpolation = match args.int(2)? {
        0 => Interpolation::Linear,
        1 => Interpolation::Nearest,
        2 if dims == 2 => Interpolation::Cubic,
        2 => unsupported!("cubic sampling of three dimensions"),
        other => invalid!("interpolation_mode is 0 (linear), 1 (nearest) or 2 (cubic), not {other}"),
    };
    let outside = match args.int(3)? {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Reflection,
        other => invalid!("padding_mode is 0 (zeros), 1 (border) or 2 (reflection), not {other}"),
    };
    Ok((interpolation, outside, if args.bool(4)? { Ends::Centres } else { Ends::Edges }))
}

fn infer(args: &Args<'_, Meta>, dims: usize) -> Result<Value<Meta>, OpError> {
    let (x, grid) = (args.tensor(0)?, args.tensor(1)?);
    options(args, dims)?;
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
    let shape: SymDims = x.shape[..2].iter().chain(&grid.shape[1..=dims]).cloned().collect();
    Ok(x.fresh(&shape, x.dtype).into())
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

    /// The position moved into the image, as far as that is asked for. What is not a number becomes 0.
    fn inside(self, at: f64) -> f64 {
        let last = self.size as f64 - 1.0;
        let clip = |at: f64| at.max(0.0).min(last);
        match self.outside {
            Outside::Zeros => at,
            Outside::Border => clip(at),
            Outside::Reflection => {
                let (low, span) = match self.ends {
                    Ends::Centres => (0.0, last),
                    Ends::Edges => (-0.5, self.size as f64),
                };
                if span == 0.0 {
                    return 0.0;
                }
                let from = (at - low).abs();
                let (extra, flips) = (self.round(from % span), (from / span).floor());
                clip(if flips % 2.0 == 0.0 { extra + low } else { span - extra + low })
            }
        }
    }

    /// The element at a whole position, if it is in the image.
    fn element(self, at: f64) -> Option<usize> {
        (at >= 0.0 && at < self.size as f64).then_some(at as usize)
    }

    /// The elements that a coordinate is interpolated from, with their weights.
    fn taps(self, coordinate: f64, interpolation: Interpolation) -> Vec<(Option<usize>, f64)> {
        let raw = self.position(coordinate);
        match interpolation {
            Interpolation::Nearest => vec![(self.element(self.inside(raw).round_ties_even()), 1.0)],
            Interpolation::Linear => {
                let at = self.inside(raw);
                let low = at.floor();
                vec![(self.element(low), low + 1.0 - at), (self.element(low + 1.0), at - low)]
            }
            Interpolation::Cubic => {
                let low = raw.floor();
                let weights = cubic(raw - low);
                let place = |j: usize| self.element(self.inside(low + j as f64 - 1.0));
                (0..4).map(|j| (place(j), weights[j])).collect()
            }
        }
    }
}

fn sample(call: &Call<'_>, dims: usize) -> Result<Value<Tensor>, OpError> {
    let (x, grid, out) = (call.args.tensor(0)?, call.args.tensor(1)?, call.allocate(0)?);
    let (interpolation, outside, ends) = options(&call.args, dims)?;
    let single = x.dtype() != DType::F64;
    let axes: Vec<Axis> =
        x.shape()[2..].iter().map(|size| Axis { size: *size as usize, outside, ends, single }).collect();
    let (channels, plane) = (x.shape()[1] as usize, axes.iter().map(|axis| axis.size).product::<usize>());
    let points = out.shape()[2..].iter().product::<i64>() as usize;
    let (values, coordinates) = (x.to_f64s(), grid.to_f64s());
    let mut result = vec![0.0; out.numel()];
    if result.is_empty() {
        return Ok(out.into());
    }
    result.par_chunks_mut(channels * points).enumerate().for_each(|(n, result)| {
        let image = &values[n * channels * plane..][..channels * plane];
        for (point, coordinates) in coordinates[n * points * dims..][..points * dims].chunks_exact(dims).enumerate() {
            // Coordinates are in the opposite order of dimensions.
            let taps = axes.iter().zip(coordinates.iter().rev()).map(|(axis, c)| axis.taps(*c, interpolation));
            let mut corners = vec![(Some(0), 1.0)];
            for (axis, taps) in axes.iter().zip(taps) {
                let one = |(at, weight): &(Option<usize>, f64), tap: &(Option<usize>, f64)| {
                    (at.zip(tap.0).map(|(at, place)| at * axis.size + place), weight * tap.1)
                };
                corners = corners.iter().flat_map(|corner| taps.iter().map(move |tap| one(corner, tap))).collect();
            }
            for (channel, image) in image.chunks_exact(plane).enumerate() {
                // An element outside counts as 0 times its weight, which may not be a number.
                let terms = corners.iter().map(|(at, weight)| at.map_or(0.0, |at| image[at]) * weight);
                result[channel * points + point] = terms.sum();
            }
        }
    });
    out.write_f64s(&result);
    Ok(out.into())
}
