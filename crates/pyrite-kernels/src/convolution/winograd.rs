//! Convolutions by three-by-three windows with fewer multiplications: Winograd's minimal filtering.
//!
//! The output is cut into tiles of two by two, each of which reads four by four elements of the input. Windows, inputs
//! and outputs are transformed by small matrices, `Aᵀ·(Σ (G·w·Gᵀ) ⊙ (Bᵀ·x·B))·A`: between the transforms there is one
//! product for each of sixteen elements, sixteen instead of thirty-six, and summed over channels each is a product of
//! matrices. Inputs lie in a [`Field`], so that transforms are loops over tiles; tiles are taken some rows at a time, so
//! that what lies between the transforms stays in a core's cache.
//!
//! Transforms only add and halve. The error, root mean square against double precision, is 1.6 times that of the sum
//! over windows, whatever the number of channels: 2.6e-7 of the result for 128 channels, against 1.6e-7. Tiles of four
//! by four would multiply less still, by matrices whose numbers differ more: their error is ten times as large, 1.7e-6,
//! more than the factor of two that comparisons with double precision allow.

use std::cell::RefCell;

use pyrite_matmul::{Matrix, Onto, Shape, Threads, provider};
use pyrite_tensor::Storage;

use super::Geometry;
use super::field::{Axis, Field, Fill};
use crate::copy::copy_short;
use crate::simd::{Loop, vectorized};

/// Elements of a transformed tile.
const ELEMENTS: usize = 16;
/// Tiles that are taken at a time, about.
const BLOCK: usize = 128;

thread_local! {
    /// The memory of a thread for transformed tiles, and for what becomes of one channel.
    static ROOM: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Whether a convolution can be computed in tiles, and is worth it: tiles at the edges compute in vain, and transforms
/// cost as much as the products that they save where channels are few. Milliseconds on one thread of a Xeon with AVX-512,
/// windows read where they lie ([`indirect`](super::indirect)) against tiles: 32 channels of 96×96 to 32, 1.36 and 2.0; four
/// images of 64 of 40×40 to 64, 3.4 and 3.4; of 128 of 20×20 to 128, 3.5 and 2.8; of 256 of 10×10 to 256, 3.9 and 2.6. On one
/// of a Zen: 32 channels of 96×96 to 32, 0.77 and 0.92; 64 of 56×56 to 64, 0.93 and 0.74; of 224×224, 16.5 and 14.1; four
/// images of 64 of 14×14, 0.28 and 0.29; eight of 8×8, 0.23 and 0.25.
pub fn suits(g: &Geometry) -> bool {
    let (inner, outer) = g.channels;
    let flat = g.input[0] == 1 && g.output[0] == 1 && g.padding[0] == 0;
    let three = g.kernel == [1, 3, 3] && g.stride == [1; 3] && g.dilation == [1; 3] && g.groups == 1 && flat;
    let positions = g.batch * g.planes().1;
    let tiles = g.batch * g.output[1].div_ceil(2) * g.output[2].div_ceil(2);
    let enough = match inner.min(outer) {
        MANY_CHANNELS.. => POSITIONS,
        CHANNELS.. => MANY_POSITIONS,
        _ => return false,
    };
    three && positions >= enough && 3 * 16 * tiles <= 2 * 9 * positions
}

/// The convolution that the gradient of the input of one by windows of three is; its input is the gradient.
pub fn backward(g: &Geometry) -> Option<Geometry> {
    let padding = [0, 2usize.checked_sub(g.padding[1])?, 2usize.checked_sub(g.padding[2])?];
    Some(Geometry { channels: (g.channels.1, g.channels.0), input: g.output, output: g.input, padding, ..*g })
}

/// The fewest channels that are worth tiles of many positions of the output, and of fewer.
const CHANNELS: usize = 64;
const MANY_CHANNELS: usize = 96;
/// The fewest positions that are worth tiles of many channels, and of fewer.
const POSITIONS: usize = 128;
const MANY_POSITIONS: usize = 1024;

/// Transformed windows: for each output channel and each element a row.
pub struct Weights {
    numbers: Vec<f32>,
    channels: (usize, usize),
}

impl Weights {
    /// Of the convolution.
    pub fn forward(g: &Geometry, weight: &[f32]) -> Self {
        let (inner, outer) = g.channels;
        Self::new((inner, outer), |to, from, at| weight[(to * inner + from) * 9 + at])
    }

    /// Of the gradient of its input; see [`backward`].
    pub fn backward(g: &Geometry, weight: &[f32]) -> Self {
        let (inner, outer) = g.channels;
        Self::new((outer, inner), |to, from, at| weight[(from * inner + to) * 9 + 8 - at])
    }

    fn new((inner, outer): (usize, usize), weight: impl Fn(usize, usize, usize) -> f32 + Sync) -> Self {
        let mut numbers = vec![0.0; ELEMENTS * inner * outer];
        pyrite_threads::chunks(&mut numbers, ELEMENTS * inner, |to, rows| {
            for from in 0..inner {
                let transform = |p: f32, q: f32, r: f32| [p, (p + r + q) * 0.5, (p + r - q) * 0.5, r];
                let column =
                    |c: usize| transform(weight(to, from, c), weight(to, from, 3 + c), weight(to, from, 6 + c));
                let (left, middle, right) = (column(0), column(1), column(2));
                for r in 0..4 {
                    for (c, number) in transform(left[r], middle[r], right[r]).into_iter().enumerate() {
                        rows[(r * 4 + c) * inner + from] = number;
                    }
                }
            }
        });
        Self { numbers, channels: (inner, outer) }
    }

    /// Bytes that they take.
    pub fn nbytes(&self) -> usize {
        size_of_val(&*self.numbers)
    }
}

/// The first parts of a buffer, which grows as needed.
#[expect(clippy::inline_always, reason = "part of a `Loop`")]
#[inline(always)]
fn parts(buffer: &mut Vec<f32>, [first, second]: [usize; 2]) -> (&mut [f32], &mut [f32]) {
    if buffer.len() < first + second {
        buffer.resize(first + second, 0.0);
    }
    buffer[..first + second].split_at_mut(first)
}

#[expect(clippy::inline_always, reason = "part of a `Loop`")]
#[inline(always)]
fn quarters(all: &mut [f32]) -> [&mut [f32]; 4] {
    let quarter = all.len() / 4;
    let (left, right) = all.split_at_mut(2 * quarter);
    let ((a, b), (c, d)) = (left.split_at_mut(quarter), right.split_at_mut(quarter));
    [a, b, c, d]
}

/// One dimension of the transform of inputs, for many tiles.
#[expect(clippy::inline_always, clippy::too_many_arguments, reason = "part of a `Loop`; slices known to lie apart")]
#[inline(always)]
fn transform_input(
    p: &[f32],
    q: &[f32],
    r: &[f32],
    s: &[f32],
    t: &mut [f32],
    u: &mut [f32],
    v: &mut [f32],
    w: &mut [f32],
) {
    let len = t.len();
    let (p, q, r, s) = (&p[..len], &q[..len], &r[..len], &s[..len]);
    let (u, v, w) = (&mut u[..len], &mut v[..len], &mut w[..len]);
    for at in 0..len {
        t[at] = p[at] - r[at];
        u[at] = q[at] + r[at];
        v[at] = r[at] - q[at];
        w[at] = s[at] - q[at];
    }
}

/// One dimension of the transform of outputs, for many tiles.
#[expect(clippy::inline_always, reason = "part of a `Loop`")]
#[inline(always)]
fn transform_output(p: &[f32], q: &[f32], r: &[f32], s: &[f32], bias: f32, t: &mut [f32], u: &mut [f32]) {
    let len = t.len();
    let (p, q, r, s, u) = (&p[..len], &q[..len], &r[..len], &s[..len], &mut u[..len]);
    for at in 0..len {
        t[at] = p[at] + q[at] + r[at] + bias;
        u[at] = q[at] - r[at] + s[at] + bias;
    }
}

/// Rows of tiles of one image.
struct Segment {
    image: usize,
    first: usize,
    rows: usize,
}

/// Transforms the inputs of some rows of tiles.
struct Input<'a> {
    field: &'a Field,
    distances: &'a [usize],
    /// The fields of all channels of all images.
    x: &'a [f32],
    channels: usize,
    segments: &'a [Segment],
    /// Tiles of a row, and of all rows.
    tiles: (usize, usize),
    /// For each element a matrix with a row per channel.
    to: &'a mut [f32],
    scratch: &'a mut Vec<f32>,
}

impl Loop for Input<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let ((width, columns), pitch) = (self.tiles, self.field.pitch[1]);
        for channel in 0..self.channels {
            let mut column = 0;
            for segment in self.segments {
                let x = &self.x[(segment.image * self.channels + channel) * self.field.channel()..];
                let x = &x[segment.first * pitch..];
                let flat = (segment.rows - 1) * pitch + width;
                let (half, whole) = parts(self.scratch, [ELEMENTS * flat, ELEMENTS * flat]);
                for c in 0..4 {
                    let [p, q, r, s] = [0, 1, 2, 3].map(|r| &x[self.distances[r * 4 + c]..][..flat]);
                    let [t, u, v, w] = quarters(&mut half[c * 4 * flat..][..4 * flat]);
                    transform_input(p, q, r, s, t, u, v, w);
                }
                for r in 0..4 {
                    let [p, q, s, t] = [0, 1, 2, 3].map(|c| &half[(c * 4 + r) * flat..][..flat]);
                    let [u, v, w, z] = quarters(&mut whole[r * 4 * flat..][..4 * flat]);
                    transform_input(p, q, s, t, u, v, w, z);
                }
                for element in 0..ELEMENTS {
                    let from = &whole[element * flat..][..flat];
                    let to = &mut self.to[(element * self.channels + channel) * columns + column..];
                    for (row, to) in to.chunks_mut(width).take(segment.rows).enumerate() {
                        copy_short(&from[row * pitch..][..width], to);
                    }
                }
                column += segment.rows * width;
            }
        }
    }
}

/// Transforms products back, and adds the bias.
struct Output<'a> {
    g: &'a Geometry,
    channels: usize,
    /// For each element a matrix with a row per channel.
    products: &'a [f32],
    segments: &'a [Segment],
    /// Tiles of a row, and of all rows.
    tiles: (usize, usize),
    bias: Option<&'a [f32]>,
    y: &'a Shared,
    scratch: &'a mut Vec<f32>,
}

impl Loop for Output<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let (width, columns) = self.tiles;
        let (half, whole) = parts(self.scratch, [8 * columns, 4 * columns]);
        let [_, height, wide] = self.g.output;
        for channel in 0..self.channels {
            let bias = self.bias.map_or(0.0, |bias| bias[channel]);
            for c in 0..4 {
                let from = |r: usize| &self.products[((r * 4 + c) * self.channels + channel) * columns..][..columns];
                let (t, u) = half[c * 2 * columns..][..2 * columns].split_at_mut(columns);
                transform_output(from(0), from(1), from(2), from(3), 0.0, t, u);
            }
            for r in 0..2 {
                let from = |c: usize| &half[(c * 2 + r) * columns..][..columns];
                let (t, u) = whole[r * 2 * columns..][..2 * columns].split_at_mut(columns);
                transform_output(from(0), from(1), from(2), from(3), bias, t, u);
            }
            let mut column = 0;
            for segment in self.segments {
                for row in segment.first..segment.first + segment.rows {
                    for r in 0..2.min(height - row * 2) {
                        let at = ((segment.image * self.channels + channel) * height + row * 2 + r) * wide;
                        let line = self.y.row(at, wide);
                        let left = &whole[r * 2 * columns + column..][..width];
                        let right = &whole[(r * 2 + 1) * columns + column..][..width];
                        for ((to, left), right) in line.chunks_exact_mut(2).zip(left).zip(right) {
                            to[0] = *left;
                            to[1] = *right;
                        }
                        if wide % 2 == 1 {
                            line[wide - 1] = left[width - 1];
                        }
                    }
                    column += width;
                }
            }
        }
    }
}

/// An output that tasks share, each for rows of its own.
struct Shared {
    first: *mut f32,
    len: usize,
}

// SAFETY: an address is only a number until somebody follows it, and those who do say why they may.
#[expect(unsafe_code, reason = "threads write to rows of one output")]
unsafe impl Sync for Shared {}

impl Shared {
    #[expect(clippy::inline_always, clippy::mut_from_ref, reason = "part of a `Loop`; rows belong to one task each")]
    #[inline(always)]
    fn row(&self, at: usize, len: usize) -> &mut [f32] {
        assert!(at + len <= self.len, "a row beyond the output");
        // SAFETY: the row lies within the output, which `convolve` has borrowed exclusively; a row belongs to the one
        // task that has its tiles, and that task has no other reference to it while it has this one.
        #[expect(unsafe_code, reason = "threads write to rows of one output")]
        unsafe {
            std::slice::from_raw_parts_mut(self.first.add(at), len)
        }
    }
}

/// Computes a convolution that [`suits`], or one as small.
pub fn convolve(g: &Geometry, x: &[f32], weights: &Weights, bias: Option<&[f32]>, y: &mut [f32]) {
    let (input, _) = g.planes();
    let (inner, outer) = weights.channels;
    assert_eq!(weights.channels, g.channels, "windows for other channels");
    let axes = [Axis::forward(g, 0), Axis::tiles(g, 1), Axis::tiles(g, 2)];
    let Some(field) = Field::new(axes, 0) else { return };
    let (_, distances) = field.taps([1, 4, 4], 1);
    let fields = Storage::recycled(g.batch * inner * field.channel() * size_of::<f32>());
    pyrite_threads::chunks(&mut fields.write::<f32>(), field.channel(), |at, to| {
        to.fill(0.0);
        vectorized(Fill { field: &field, x: &x[at * input..][..input], to });
    });
    let fields = fields.read::<f32>();
    let (rows, width) = (g.output[1].div_ceil(2), g.output[2].div_ceil(2));
    let all = g.batch * rows;
    let blocks = (all * width).div_ceil(BLOCK).max(pyrite_threads::count()).min(all);
    let shared = Shared { first: y.as_mut_ptr(), len: y.len() };
    pyrite_threads::each(blocks, |block| {
        let (begin, end) = (block * all / blocks, (block + 1) * all / blocks);
        let next = |at: usize| (at / rows + 1) * rows;
        let segments: Vec<Segment> = std::iter::successors(Some(begin), |at| Some(next(*at)))
            .take_while(|at| *at < end)
            .map(|at| Segment { image: at / rows, first: at % rows, rows: end.min(next(at)) - at })
            .collect();
        let tiles = (width, (end - begin) * width);
        ROOM.with_borrow_mut(|(room, scratch)| {
            let (inputs, products) = parts(room, [ELEMENTS * inner * tiles.1, ELEMENTS * outer * tiles.1]);
            let (field, segments, distances) = (&field, &*segments, &*distances);
            vectorized(Input { field, distances, x: &fields, channels: inner, segments, tiles, to: inputs, scratch });
            for element in 0..ELEMENTS {
                let rows = Shape { row_stride: ELEMENTS * inner, ..Shape::rows_first(outer, inner) };
                let lhs = Matrix { data: &weights.numbers[element * inner..], shape: rows };
                let shape = Shape::rows_first(inner, tiles.1);
                let rhs = Matrix { data: &inputs[element * inner * tiles.1..], shape };
                let to = &mut products[element * outer * tiles.1..][..outer * tiles.1];
                let shape = Shape::rows_first(outer, tiles.1);
                provider().gemm((to, shape), lhs, rhs, 1.0, Onto::Nothing, Threads::One);
            }
            vectorized(Output { g, channels: outer, products, segments, tiles, bias, y: &shared, scratch });
        });
    });
}
