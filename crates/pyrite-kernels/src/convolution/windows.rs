//! Convolutions as matmuls, of the weight and unrolled windows.
//!
//! A thread takes an image at a time, and unrolls the windows of some *lines* of the output, rows over all planes of an
//! image, for one product. Small images are taken several at a time, side by side. Where there is but one thing to take,
//! threads share the copies and the product instead.

use std::ops::Range;

use super::Geometry;
use crate::copy::copy_steps;
use crate::gemm::{Factor, Matrix, Onto, Shape, multiply};
use crate::simd::{Loop, vectorized};

/// Windows of about this many elements are unrolled at a time, so that they stay in a core's cache.
const TILE: usize = 1 << 17;
/// Columns of a product below which packing the weight takes as long as multiplying; more windows than the above are
/// unrolled for it.
const WIDE: usize = 256;
/// Images of fewer positions than this are taken several at a time: a product of so few columns would read the weight
/// for little work.
const COLUMNS: usize = 64;

/// A line of the output, in one of several images: where its windows begin, from the first element of the padding on.
struct Line {
    image: usize,
    plane: usize,
    row: usize,
}

/// Elements of a window that lie within the input, for neighbouring positions of a line.
struct Run {
    /// The element of the window, and the first of the positions.
    row: usize,
    column: usize,
    /// The image, and the first of the elements in its channel.
    image: usize,
    at: usize,
    count: usize,
}

impl Geometry {
    /// How many images are taken at a time.
    fn joined(&self) -> usize {
        let empty = self.group_weight() == 0 || self.planes().0 == 0 || self.planes().1 == 0;
        if self.groups > 1 || empty { 1 } else { (COLUMNS / self.planes().1).clamp(1, self.batch.max(1)) }
    }

    /// The lines of images that are unrolled at a time, about as many each time; all of several images.
    fn tiles(&self, images: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (lines, width) = (images * self.output[0] * self.output[1], self.output[2]);
        let whole = images > 1 || self.is_plain();
        let most = (TILE / (self.window() * width).max(1)).max(WIDE / width.max(1)).clamp(1, lines.max(1));
        let count = if whole { lines.max(1) } else { lines.max(1).div_ceil(lines.max(1).div_ceil(most)) };
        let lines = if width == 0 { 0 } else { lines };
        (0..lines).step_by(count).map(move |from| from..(from + count).min(lines))
    }

    fn lines(&self, lines: &Range<usize>) -> Vec<Line> {
        let [planes, rows, _] = self.output;
        let line = |line: usize| Line {
            image: line / (planes * rows),
            plane: line / rows % planes * self.stride[0],
            row: line % rows * self.stride[1],
        };
        lines.clone().map(line).collect()
    }

    /// Whether windows stay within the input, so that there are no zeros in them.
    fn is_covered(&self) -> bool {
        let reach = |axis: usize| {
            self.output[axis].saturating_sub(1) * self.stride[axis]
                + self.kernel[axis].saturating_sub(1) * self.dilation[axis]
        };
        (0..3).all(|axis| self.padding[axis] == 0 && reach(axis) < self.input[axis])
    }

    /// The runs of the windows of some lines over one channel.
    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn runs(&self, lines: &[Line], mut visit: impl FnMut(Run)) {
        let [depth, height, width] = self.input;
        let mut row = 0;
        for kd in 0..self.kernel[0] {
            for kh in 0..self.kernel[1] {
                for kw in 0..self.kernel[2] {
                    let shift = kw * self.dilation[2];
                    // The first and the last column whose element is within the input.
                    let first = self.padding[2].saturating_sub(shift).div_ceil(self.stride[2]);
                    let end = (width + self.padding[2]).saturating_sub(shift).div_ceil(self.stride[2]);
                    let end = end.min(self.output[2]).max(first);
                    let from = (first * self.stride[2] + shift).wrapping_sub(self.padding[2]);
                    for (number, line) in lines.iter().enumerate() {
                        let d = (line.plane + kd * self.dilation[0]).wrapping_sub(self.padding[0]);
                        let h = (line.row + kh * self.dilation[1]).wrapping_sub(self.padding[1]);
                        if d < depth && h < height && first < end {
                            let at = (d * height + h) * width + from;
                            let column = number * self.output[2] + first;
                            visit(Run { row, column, image: line.image, at, count: end - first });
                        }
                    }
                    row += 1;
                }
            }
        }
    }

    /// The windows of some lines: a row per element of a window, a column per position. They are unrolled into `room`,
    /// unless they are the input's elements themselves.
    fn unroll<'a, T: Factor>(
        &self,
        x: &'a [T],
        images: usize,
        lines: &Range<usize>,
        room: &'a mut Vec<T>,
    ) -> Matrix<'a, T> {
        let columns = lines.len() * self.output[2];
        let shape = Shape::rows_first(self.window(), columns);
        if images == 1 && self.is_plain() {
            return Matrix { data: x, shape };
        }
        room.resize(self.window() * columns, T::ZERO);
        let (lines, plane) = (self.lines(lines), self.planes().0);
        let rows = self.kernel.iter().product::<usize>();
        pyrite_threads::chunks(room, rows * columns, |channel, windows| {
            vectorized(Unroll { g: self, lines: &lines, x, channel, plane, columns, windows });
        });
        Matrix { data: room, shape }
    }

    /// Adds the windows of some lines to what they were windows of.
    fn add<T: Factor>(&self, windows: &[T], lines: &Range<usize>, x: &mut [T]) {
        let columns = lines.len() * self.output[2];
        let (lines, rows) = (self.lines(lines), self.kernel.iter().product::<usize>());
        pyrite_threads::chunks(x, self.planes().0, |at, x| {
            let (image, channel) = (at / self.channels.0, at % self.channels.0);
            let first = lines.partition_point(|line| line.image < image);
            let end = lines.partition_point(|line| line.image <= image);
            self.runs(&lines[first..end], |run| {
                let column = first * self.output[2] + run.column;
                let source = &windows[(channel * rows + run.row) * columns + column..][..run.count];
                add_run(source, x, run.at, self.stride[2]);
            });
        });
    }

    /// Some lines of the output: a row per channel, a column per position. Those of several images are copied to `room`.
    fn side_by_side<'a, T: Factor>(
        &self,
        y: &'a [T],
        images: usize,
        lines: &Range<usize>,
        room: &'a mut Vec<T>,
    ) -> Matrix<'a, T> {
        let (depth, output) = (self.channels.1, self.planes().1);
        let columns = lines.len() * self.output[2];
        if images == 1 {
            let shape = Shape { row_stride: output, ..Shape::rows_first(depth, columns) };
            return Matrix { data: &y[lines.start * self.output[2]..], shape };
        }
        room.clear();
        for channel in 0..depth {
            for image in 0..images {
                room.extend_from_slice(&y[(image * depth + channel) * output..][..output]);
            }
        }
        Matrix { data: room, shape: Shape::rows_first(depth, columns) }
    }
}

/// Unrolls the windows of some lines over one channel.
struct Unroll<'a, T> {
    g: &'a Geometry,
    lines: &'a [Line],
    /// All channels of all images, and the elements of one.
    x: &'a [T],
    plane: usize,
    channel: usize,
    /// Positions in a row of the windows.
    columns: usize,
    windows: &'a mut [T],
}

impl<T: Factor> Loop for Unroll<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { g, lines, x, plane, channel, columns, windows } = self;
        if !g.is_covered() {
            windows.fill(T::ZERO);
        }
        g.runs(lines, |run| {
            let at = (run.image * g.channels.0 + channel) * plane + run.at;
            let target = &mut windows[run.row * columns + run.column..][..run.count];
            copy_steps(x, at, g.stride[2], target);
        });
    }
}

/// Adds to elements that are `step` apart.
fn add_run<T: Factor>(source: &[T], x: &mut [T], at: usize, step: usize) {
    if step == 1 {
        for (x, value) in x[at..at + source.len()].iter_mut().zip(source) {
            *x = x.plus(*value);
        }
    } else {
        for (x, value) in x[at..].iter_mut().step_by(step).zip(source) {
            *x = x.plus(*value);
        }
    }
}

/// [`forward`](super::forward).
pub fn forward<T: Factor>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let ((input, output), (inner, depth), k) = (g.planes(), g.channels, g.window());
    let (block, joined, one) = (depth * output, g.joined(), T::from_i64(1));
    if block == 0 {
        return;
    }
    pyrite_threads::chunks(y, joined * block, |part, y| {
        let (first, images) = (part * joined, y.len() / block);
        let group = first % g.groups;
        let weight = Matrix { data: &weight[group * g.group_weight()..], shape: Shape::rows_first(depth, k) };
        let x = &x[first * inner * input..][..images * inner * input];
        if images > 1 || bias.is_some() {
            for (at, y) in y.chunks_mut(output).enumerate() {
                y.fill(bias.map_or(T::ZERO, |bias| bias[group * depth + at % depth]));
            }
        }
        let (mut room, mut sides) = (Vec::new(), Vec::new());
        for lines in g.tiles(images) {
            let windows = g.unroll(x, images, &lines, &mut room);
            let shape = Shape::rows_first(depth, windows.shape.cols);
            if images == 1 {
                let onto = if bias.is_some() { Onto::Scaled(one) } else { Onto::Nothing };
                let shape = Shape { row_stride: output, ..shape };
                multiply(&mut y[lines.start * g.output[2]..], shape, weight, windows, one, onto);
                continue;
            }
            sides.resize(depth * shape.cols, T::ZERO);
            multiply(&mut sides, shape, weight, windows, one, Onto::Nothing);
            for (at, y) in y.chunks_mut(output).enumerate() {
                let side = &sides[at % depth * shape.cols + at / depth * output..][..output];
                y.iter_mut().zip(side).for_each(|(y, value)| *y = y.plus(*value));
            }
        }
    });
}

/// [`into_windows`](super::into_windows).
pub fn into_windows<T: Factor>(g: &Geometry, y: &[T], weight: &[T], x: &mut [T]) {
    let ((input, output), (inner, depth), k) = (g.planes(), g.channels, g.window());
    let (block, joined, one) = (inner * input, g.joined(), T::from_i64(1));
    if block == 0 {
        return;
    }
    pyrite_threads::chunks(x, joined * block, |part, x| {
        let (first, images) = (part * joined, x.len() / block);
        let weight = &weight[first % g.groups * g.group_weight()..];
        let weight = Matrix { data: weight, shape: Shape::rows_first(depth, k).transposed() };
        let y = &y[first * depth * output..][..images * depth * output];
        let (mut windows, mut room) = (Vec::new(), Vec::new());
        if images > 1 || !g.is_plain() {
            x.fill(T::ZERO);
        }
        for lines in g.tiles(images) {
            let sides = g.side_by_side(y, images, &lines, &mut room);
            let shape = Shape::rows_first(k, sides.shape.cols);
            if images == 1 && g.is_plain() {
                multiply(x, shape, weight, sides, one, Onto::Nothing);
                continue;
            }
            windows.resize(k * shape.cols, T::ZERO);
            multiply(&mut windows, shape, weight, sides, one, Onto::Nothing);
            g.add(&windows, &lines, x);
        }
    });
}

/// [`onto_weight`](super::onto_weight).
pub fn onto_weight<T: Factor>(g: &Geometry, y: &[T], x: &[T], weight: &mut [T]) {
    let ((input, output), (inner, depth), k) = (g.planes(), g.channels, g.window());
    let (joined, one) = (g.joined(), T::from_i64(1));
    weight.fill(T::ZERO);
    if depth * k == 0 {
        return;
    }
    pyrite_threads::chunks(weight, depth * k, |group, weight| {
        let (mut room, mut sides) = (Vec::new(), Vec::new());
        for image in (0..g.batch).step_by(joined) {
            let (first, images) = (image * g.groups + group, joined.min(g.batch - image));
            let x = &x[first * inner * input..][..images * inner * input];
            let y = &y[first * depth * output..][..images * depth * output];
            for lines in g.tiles(images) {
                let windows = g.unroll(x, images, &lines, &mut room);
                let sides = g.side_by_side(y, images, &lines, &mut sides);
                let shape = Shape::rows_first(depth, k);
                multiply(weight, shape, sides, windows.transposed(), one, Onto::Scaled(one));
            }
        }
    });
}
