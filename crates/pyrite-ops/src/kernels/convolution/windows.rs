//! Convolutions as products of matrices, of the weight and unrolled windows.
//!
//! Images are taken one at a time, one to a thread, and the windows of a few rows at a time. Small images are taken
//! several at a time, side by side, and threads share their product.

use std::ops::Range;

use super::Geometry;
use crate::kernels::gemm::{Factor, Matrix, Onto, Shape, multiply};

/// Windows of about this many elements are unrolled at a time, so that they stay in a core's cache.
const TILE: usize = 1 << 17;
/// Columns of a product below which packing the weight takes as long as multiplying; more windows than the above are
/// unrolled for it.
const WIDE: usize = 256;
/// Images of fewer positions than this are taken several at a time: a product of so few columns would read the weight
/// for little work.
const COLUMNS: usize = 64;

impl Geometry {
    /// Output rows that are unrolled at a time, about as many each time.
    fn rows(&self) -> usize {
        let rows = (self.output[0] * self.output[1]).max(1);
        let width = self.output[2].max(1);
        let most = (TILE / (self.window() * width).max(1)).max(WIDE / width).clamp(1, rows);
        rows.div_ceil(rows.div_ceil(most))
    }

    /// How many images are taken at a time.
    fn joined(&self) -> usize {
        let empty = self.group_weight() == 0 || self.planes().0 == 0 || self.planes().1 == 0;
        if self.groups > 1 || empty { 1 } else { (COLUMNS / self.planes().1).clamp(1, self.batch.max(1)) }
    }

    /// Calls `visit(row of the unrolled windows, start there, start in the input, count, step in the input)` for every
    /// run of elements of the windows of output rows `from..to` that lie within the input. Columns are output positions.
    fn runs(&self, from: usize, to: usize, visit: impl FnMut(usize, usize, usize, usize, usize)) {
        self.channel_runs(0..self.channels.0, from, to, visit);
    }

    /// The same for some channels; the first row is the first of theirs.
    fn channel_runs(
        &self,
        channels: Range<usize>,
        from: usize,
        to: usize,
        mut visit: impl FnMut(usize, usize, usize, usize, usize),
    ) {
        let [depth, height, width] = self.input;
        let plane = depth * height * width;
        let mut row = 0;
        for c in channels {
            for kd in 0..self.kernel[0] {
                for kh in 0..self.kernel[1] {
                    for kw in 0..self.kernel[2] {
                        let shift = kw * self.dilation[2];
                        // The first and the last column whose element is within the input.
                        let first = self.padding[2].saturating_sub(shift).div_ceil(self.stride[2]);
                        let end = (width + self.padding[2]).saturating_sub(shift).div_ceil(self.stride[2]);
                        let end = end.min(self.output[2]);
                        for line in from..to {
                            let (od, oh) = (line / self.output[1], line % self.output[1]);
                            let d = (od * self.stride[0] + kd * self.dilation[0]).wrapping_sub(self.padding[0]);
                            let h = (oh * self.stride[1] + kh * self.dilation[1]).wrapping_sub(self.padding[1]);
                            if d < depth && h < height && first < end {
                                let w = first * self.stride[2] + shift - self.padding[2];
                                let at = c * plane + (d * height + h) * width + w;
                                visit(row, (line - from) * self.output[2] + first, at, end - first, self.stride[2]);
                            }
                        }
                        row += 1;
                    }
                }
            }
        }
    }

    /// Unrolls the windows of output rows `from..to`: a row per element of a window, a column per output position.
    fn unroll<T: Factor>(&self, x: &[T], from: usize, to: usize, windows: &mut [T]) {
        let columns = (to - from) * self.output[2];
        windows.fill(T::ZERO);
        self.runs(from, to, |row, column, at, count, step| {
            copy_run(x, at, step, &mut windows[row * columns + column..][..count]);
        });
    }

    /// Unrolls all windows of several images, side by side.
    fn unroll_images<T: Factor>(&self, x: &[T], images: usize) -> Vec<T> {
        let (input, output) = self.planes();
        let (lines, image) = (self.output[0] * self.output[1], self.channels.0 * input);
        let columns = images * output;
        let mut windows = vec![T::ZERO; self.window() * columns];
        let rows = self.kernel.iter().product::<usize>();
        pyrite_threads::chunks(&mut windows, rows * columns, |channel, windows| {
            for number in 0..images {
                let x = &x[number * image..][..image];
                self.channel_runs(channel..channel + 1, 0, lines, |row, column, at, count, step| {
                    copy_run(x, at, step, &mut windows[row * columns + number * output + column..][..count]);
                });
            }
        });
        windows
    }

    /// Images of the output side by side: a row per channel.
    fn side_by_side<T: Factor>(&self, y: &[T], images: usize) -> Vec<T> {
        let (depth, output) = (self.channels.1, self.planes().1);
        let mut sides = Vec::with_capacity(depth * images * output);
        for channel in 0..depth {
            for image in 0..images {
                sides.extend_from_slice(&y[(image * depth + channel) * output..][..output]);
            }
        }
        sides
    }
}

/// Copies elements that are `step` apart.
fn copy_run<T: Factor>(x: &[T], at: usize, step: usize, target: &mut [T]) {
    if step == 1 {
        target.copy_from_slice(&x[at..at + target.len()]);
    } else {
        for (target, value) in target.iter_mut().zip(x[at..].iter().step_by(step)) {
            *target = *value;
        }
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

/// The weight times the windows of the input, onto what `y` holds or over it.
pub fn forward<T: Factor>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let ((input, output), (depth, k)) = (g.planes(), (g.channels.1, g.window()));
    let block = depth * output;
    if block == 0 {
        return;
    }
    let joined = g.joined();
    if joined > 1 {
        let weight = Matrix { data: weight, shape: Shape::rows_first(depth, k) };
        for (x, y) in x.chunks(joined * g.channels.0 * input).zip(y.chunks_mut(joined * block)) {
            let images = y.len() / block;
            let columns = images * output;
            let windows = g.unroll_images(x, images);
            let windows = Matrix { data: &windows, shape: Shape::rows_first(k, columns) };
            let mut sides = vec![T::ZERO; depth * columns];
            multiply(&mut sides, Shape::rows_first(depth, columns), weight, windows, T::from_i64(1), Onto::Nothing);
            for (at, y) in y.chunks_mut(output).enumerate() {
                let (image, channel) = (at / depth, at % depth);
                y.copy_from_slice(&sides[channel * columns + image * output..][..output]);
                if let Some(bias) = bias {
                    y.iter_mut().for_each(|y| *y = y.plus(bias[channel]));
                }
            }
        }
        return;
    }
    pyrite_threads::chunks(y, block, |at, y| {
        let mut windows: Vec<T> = Vec::new();
        let group = at % g.groups;
        let weight = Matrix { data: &weight[group * g.group_weight()..], shape: Shape::rows_first(depth, k) };
        let x = &x[at * g.channels.0 * input..][..g.channels.0 * input];
        let onto = match bias {
            Some(bias) => {
                for (channel, y) in y.chunks_mut(output).enumerate() {
                    y.fill(bias[group * depth + channel]);
                }
                Onto::Scaled(T::from_i64(1))
            }
            None => Onto::Nothing,
        };
        if g.is_plain() {
            let x = Matrix { data: x, shape: Shape::rows_first(k, output) };
            multiply(y, Shape::rows_first(depth, output), weight, x, T::from_i64(1), onto);
            return;
        }
        let (lines, rows) = (g.output[0] * g.output[1], g.rows());
        for from in (0..lines).step_by(rows) {
            let to = (from + rows).min(lines);
            let columns = (to - from) * g.output[2];
            windows.resize(k * columns, T::ZERO);
            g.unroll(x, from, to, &mut windows);
            let part = Shape { rows: depth, cols: columns, row_stride: output, col_stride: 1 };
            let windows = Matrix { data: &windows, shape: Shape::rows_first(k, columns) };
            multiply(&mut y[from * g.output[2]..], part, weight, windows, T::from_i64(1), onto);
        }
    });
}

/// The weight's transpose times `y`, added up over the windows of `x`.
pub fn into_windows<T: Factor>(g: &Geometry, y: &[T], weight: &[T], x: &mut [T]) {
    let ((input, output), (depth, k)) = (g.planes(), (g.channels.1, g.window()));
    let block = g.channels.0 * input;
    if block == 0 {
        return;
    }
    let joined = g.joined();
    if joined > 1 {
        let weight = Matrix { data: weight, shape: Shape::rows_first(depth, k).transposed() };
        for (y, x) in y.chunks(joined * depth * output).zip(x.chunks_mut(joined * block)) {
            let images = x.len() / block;
            let columns = images * output;
            let sides = g.side_by_side(y, images);
            let sides = Matrix { data: &sides, shape: Shape::rows_first(depth, columns) };
            let mut windows = vec![T::ZERO; k * columns];
            multiply(&mut windows, Shape::rows_first(k, columns), weight, sides, T::from_i64(1), Onto::Nothing);
            let lines = g.output[0] * g.output[1];
            pyrite_threads::chunks(x, block, |image, x| {
                x.fill(T::ZERO);
                g.runs(0, lines, |row, column, at, count, step| {
                    add_run(&windows[row * columns + image * output + column..][..count], x, at, step);
                });
            });
        }
        return;
    }
    pyrite_threads::chunks(x, block, |at, x| {
        let mut windows: Vec<T> = Vec::new();
        let group = at % g.groups;
        let weight =
            Matrix { data: &weight[group * g.group_weight()..], shape: Shape::rows_first(depth, k).transposed() };
        let y = &y[at * depth * output..][..depth * output];
        if g.is_plain() {
            let y = Matrix { data: y, shape: Shape::rows_first(depth, output) };
            multiply(x, Shape::rows_first(k, output), weight, y, T::from_i64(1), Onto::Nothing);
            return;
        }
        x.fill(T::ZERO);
        let (lines, rows) = (g.output[0] * g.output[1], g.rows());
        for from in (0..lines).step_by(rows) {
            let to = (from + rows).min(lines);
            let columns = (to - from) * g.output[2];
            windows.resize(k * columns, T::ZERO);
            let part = Matrix {
                data: &y[from * g.output[2]..],
                shape: Shape { rows: depth, cols: columns, row_stride: output, col_stride: 1 },
            };
            multiply(&mut windows, Shape::rows_first(k, columns), weight, part, T::from_i64(1), Onto::Nothing);
            g.runs(from, to, |row, column, at, count, step| {
                add_run(&windows[row * columns + column..][..count], x, at, step);
            });
        }
    });
}

/// The sum over the batch of `y` times the windows of `x`.
pub fn onto_weight<T: Factor>(g: &Geometry, y: &[T], x: &[T], weight: &mut [T]) {
    let ((input, output), (depth, k)) = (g.planes(), (g.channels.1, g.window()));
    weight.fill(T::ZERO);
    if depth * k == 0 {
        return;
    }
    let one = T::from_i64(1);
    let joined = g.joined();
    if joined > 1 {
        for (x, y) in x.chunks(joined * g.channels.0 * input).zip(y.chunks(joined * depth * output)) {
            let images = y.len() / (depth * output);
            let columns = images * output;
            let (windows, sides) = (g.unroll_images(x, images), g.side_by_side(y, images));
            let windows = Matrix { data: &windows, shape: Shape::rows_first(k, columns).transposed() };
            let sides = Matrix { data: &sides, shape: Shape::rows_first(depth, columns) };
            multiply(weight, Shape::rows_first(depth, k), sides, windows, one, Onto::Scaled(one));
        }
        return;
    }
    pyrite_threads::chunks(weight, depth * k, |group, weight| {
        let mut windows: Vec<T> = Vec::new();
        for sample in 0..g.batch {
            let at = sample * g.groups + group;
            let x = &x[at * g.channels.0 * input..][..g.channels.0 * input];
            let y = &y[at * depth * output..][..depth * output];
            if g.is_plain() {
                let y = Matrix { data: y, shape: Shape::rows_first(depth, output) };
                let x = Matrix { data: x, shape: Shape::rows_first(k, output).transposed() };
                multiply(weight, Shape::rows_first(depth, k), y, x, one, Onto::Scaled(one));
                continue;
            }
            let (lines, rows) = (g.output[0] * g.output[1], g.rows());
            for from in (0..lines).step_by(rows) {
                let to = (from + rows).min(lines);
                let columns = (to - from) * g.output[2];
                windows.resize(k * columns, T::ZERO);
                g.unroll(x, from, to, &mut windows);
                let part = Matrix {
                    data: &y[from * g.output[2]..],
                    shape: Shape { rows: depth, cols: columns, row_stride: output, col_stride: 1 },
                };
                let windows = Matrix { data: &windows, shape: Shape::rows_first(k, columns).transposed() };
                multiply(weight, Shape::rows_first(depth, k), part, windows, one, Onto::Scaled(one));
            }
        }
    });
}
