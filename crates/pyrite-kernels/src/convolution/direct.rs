//! Convolutions without unrolled windows, for few channels per group: a product of matrices with so few rows or columns
//! spends its time copying windows.
//!
//! Images are copied into a [`Field`], where a convolution is one loop over positions ([`Correlate`]). The gradient of
//! the input is the same with distances reversed, for positions of the input that are a stride apart ([`Spread`]);
//! that of the weight multiplies the gradient with the image at each distance ([`Dots`]).
//!
//! Zeros between rows are multiplied like numbers, as in unrolled windows: next to them an infinite factor gives NaN.

use super::Geometry;
use super::field::{Axis, Field, Fill};
use crate::copy::copy_short;
use crate::gemm::Factor;
use crate::simd::{Loop, vectorized};

/// Positions that are summed side by side. All sums of a loop are an array of a few such rows: larger ones the compiler
/// does not keep in registers.
const LANES: usize = 16;
/// Elements that are read behind the last position, at most.
const SLACK: usize = 5 * LANES;
/// Positions of a gradient that are summed before the sums of the lanes are.
const SPAN: usize = 1 << 12;
/// Distances that the gradient of a single channel is multiplied at, at a time.
const TAPS: usize = 8;
/// Elements of images and gradients that are laid out at a time, about, so that they stay in a core's nearest cache.
const IMAGES: usize = 1 << 13;
/// Groups of images are shared out in about this many parts for each thread.
const PARTS: usize = 4;

/// Whether sums may take twice the registers: there are 32 that hold all lanes of single precision.
fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512f")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Sums the products of taps and weights for every position of some channels.
struct Correlate<'a, T> {
    positions: usize,
    /// The field of the image.
    x: &'a [T],
    distances: &'a [usize],
    /// For each channel a weight for each distance.
    weights: &'a [T],
    /// What is added to the sums of each channel.
    start: &'a [T],
    /// The sums of all positions, one channel after the other.
    out: &'a mut [T],
    /// Positions from one channel to the next.
    step: usize,
    is_wide: bool,
}

#[expect(clippy::inline_always, reason = "part of a `Loop`")]
impl<T: Factor> Correlate<'_, T> {
    /// Some channels, for which what is read of the image serves, `SUMS` rows of lanes at a time; the last rows may be some of
    /// those before. `ROWS` is their product: more than eight rows of sums, or arrays of arrays of them, are not kept in registers.
    #[inline(always)]
    fn channels<const FUSED: bool, const CHANNELS: usize, const SUMS: usize, const ROWS: usize>(
        &mut self,
        first: usize,
    ) {
        let last = self.positions.next_multiple_of(LANES).saturating_sub(SUMS * LANES);
        let mut at = 0;
        loop {
            self.block::<FUSED, CHANNELS, SUMS, ROWS>(first, at);
            if at >= last {
                break;
            }
            at = (at + SUMS * LANES).min(last);
        }
    }

    #[inline(always)]
    fn block<const FUSED: bool, const CHANNELS: usize, const SUMS: usize, const ROWS: usize>(
        &mut self,
        first: usize,
        at: usize,
    ) {
        let mut sums = [[T::ZERO; LANES]; ROWS];
        let taps = self.distances.len();
        let weights: [&[T]; CHANNELS] =
            std::array::from_fn(|channel| &self.weights[(first + channel) * taps..][..taps]);
        for (tap, distance) in self.distances.iter().enumerate() {
            let x = &self.x[at + distance..][..SUMS * LANES];
            for (row, sums) in sums.iter_mut().enumerate() {
                let weight = weights[row / SUMS][tap];
                let x = &x[row % SUMS * LANES..][..LANES];
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = x.times_plus::<FUSED>(weight, *sum);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            let channel = first + row / SUMS;
            let start = self.start[channel];
            let out = &mut self.out[channel * self.step + at + row % SUMS * LANES..][..LANES];
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = sum.plus(start);
            }
        }
    }
}

impl<T: Factor> Loop for Correlate<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        let (mut channel, count) = (0, self.start.len());
        while self.is_wide && channel + 8 <= count {
            self.channels::<FUSED, 8, 1, 8>(channel);
            channel += 8;
        }
        while channel + 4 <= count {
            self.channels::<FUSED, 4, 1, 4>(channel);
            channel += 4;
        }
        // Five rows are what images of 7 by 7 and windows as large take.
        let five = self.positions.div_ceil(LANES) == 5;
        for channel in channel..count {
            if five {
                self.channels::<FUSED, 1, 5, 5>(channel);
            } else {
                self.channels::<FUSED, 1, 4, 4>(channel);
            }
        }
    }
}

/// Sums the products of the gradients of some channels and the images at each distance.
struct Dots<'a, T> {
    /// The gradients, zero between rows and behind the last, as many as fill all lanes: image by image, channel by channel.
    y: &'a [T],
    /// The fields of the images.
    x: &'a [T],
    /// Elements of a channel's gradient, and of all fields of an image.
    sizes: (usize, usize),
    channels: usize,
    distances: &'a [usize],
    /// For each channel a sum for each distance, added to.
    out: &'a mut [T],
    is_wide: bool,
}

#[expect(clippy::inline_always, reason = "part of a `Loop`")]
impl<T: Factor> Dots<'_, T> {
    /// Some distances in some channels; `ROWS` is their product.
    #[inline(always)]
    fn taps<const FUSED: bool, const COUNT: usize, const CHANNELS: usize, const ROWS: usize>(
        &mut self,
        channel: usize,
        first: usize,
    ) {
        let (gradient, fields) = self.sizes;
        let distances: [usize; COUNT] = std::array::from_fn(|tap| self.distances[first + tap]);
        let images = self.y.len() / (self.channels * gradient);
        let each = (SPAN / gradient).max(1);
        // Chains of additions stay short: some images are summed at a time, or parts of one.
        for image in (0..images).step_by(each) {
            for begin in (0..gradient).step_by(SPAN) {
                let mut sums = [[T::ZERO; LANES]; ROWS];
                for image in image..(image + each).min(images) {
                    let (y, x) = (&self.y[(image * self.channels + channel) * gradient..], &self.x[image * fields..]);
                    for at in (begin..(begin + SPAN).min(gradient)).step_by(LANES) {
                        let ys: [&[T]; CHANNELS] = std::array::from_fn(|of| &y[of * gradient + at..][..LANES]);
                        let xs: [&[T]; COUNT] = std::array::from_fn(|tap| &x[at + distances[tap]..][..LANES]);
                        for (row, sums) in sums.iter_mut().enumerate() {
                            for ((sum, x), y) in sums.iter_mut().zip(xs[row % COUNT]).zip(ys[row / COUNT]) {
                                *sum = x.times_plus::<FUSED>(*y, *sum);
                            }
                        }
                    }
                }
                for (row, sums) in sums.into_iter().enumerate() {
                    let out = &mut self.out[(channel + row / COUNT) * self.distances.len() + first + row % COUNT];
                    *out = out.plus(halved(sums));
                }
            }
        }
    }

    /// All distances in some channels.
    #[inline(always)]
    fn channels<const FUSED: bool, const COUNT: usize, const CHANNELS: usize, const ROWS: usize>(
        &mut self,
        channel: usize,
    ) {
        let taps = self.distances.len();
        let whole = taps - taps % COUNT;
        for first in (0..whole).step_by(COUNT) {
            self.taps::<FUSED, COUNT, CHANNELS, ROWS>(channel, first);
        }
        for first in whole..taps {
            self.taps::<FUSED, 1, CHANNELS, CHANNELS>(channel, first);
        }
    }
}

impl<T: Factor> Loop for Dots<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        let (mut channel, count) = (0, self.channels);
        while self.is_wide && channel + 4 <= count {
            self.channels::<FUSED, 2, 4, 8>(channel);
            channel += 4;
        }
        while channel + 2 <= count {
            if self.is_wide {
                self.channels::<FUSED, 4, 2, 8>(channel);
            } else {
                self.channels::<FUSED, 2, 2, 4>(channel);
            }
            channel += 2;
        }
        for channel in channel..count {
            self.channels::<FUSED, TAPS, 1, TAPS>(channel);
        }
    }
}

/// The sum of all lanes.
#[expect(clippy::inline_always, reason = "part of a `Loop`")]
#[inline(always)]
fn halved<T: Factor>(mut sums: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        let (left, right) = sums.split_at_mut(half);
        left.iter_mut().zip(right).for_each(|(left, right)| *left = left.plus(*right));
        half /= 2;
    }
    sums[0]
}

/// Copies sums to the lines of an image that are `first` and multiples of the stride after it.
pub(super) struct Spread<'a, T> {
    pub g: &'a Geometry,
    /// The first plane and the first line of it.
    pub first: [usize; 2],
    /// For each first column the sums, and from one plane and one row to the next; none where all are zero.
    pub sums: &'a [Option<(&'a [T], [usize; 2])>],
    pub x: &'a mut [T],
}

impl<T: Factor> Loop for Spread<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { g, first, sums, x } = self;
        let ([depth, height, width], step) = (g.input, g.stride[2]);
        for (plane, d) in (first[0]..depth).step_by(g.stride[0]).enumerate() {
            for (row, h) in (first[1]..height).step_by(g.stride[1]).enumerate() {
                let line = &mut x[(d * height + h) * width..][..width];
                let of = |column: usize| {
                    let count = width.saturating_sub(column).div_ceil(step);
                    sums[column].map(|(sums, pitch)| &sums[plane * pitch[0] + row * pitch[1]..][..count])
                };
                if let (1, Some(sums)) = (step, of(0)) {
                    copy_short(sums, line);
                } else if let (2, Some(even), Some(odd)) = (step, of(0), sums.get(1).and_then(|_| of(1))) {
                    // Both at once: elements side by side are stored together.
                    let (pairs, rest) = line.as_chunks_mut::<2>();
                    pairs.iter_mut().zip(even).zip(odd).for_each(|((pair, even), odd)| *pair = [*even, *odd]);
                    rest.iter_mut().zip(even.last()).for_each(|(to, last)| *to = *last);
                } else {
                    for column in 0..step.min(width) {
                        let to = line[column..].iter_mut().step_by(step);
                        match of(column) {
                            Some(sums) => to.zip(sums).for_each(|(to, sum)| *to = *sum),
                            None => to.for_each(|to| *to = T::ZERO),
                        }
                    }
                }
            }
        }
    }
}

/// How many of `count` things a thread takes at a time.
fn share(count: usize) -> usize {
    count.div_ceil(PARTS * pyrite_threads::count()).max(1)
}

/// Positions of the sums of one channel.
fn room(field: &Field) -> usize {
    field.positions.next_multiple_of(LANES).max(SLACK)
}

/// [`forward`](super::forward); no size is zero.
pub fn forward<T: Factor>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let ((input, output), (inner, outer)) = (g.planes(), g.channels);
    let Some(field) = Field::new([0, 1, 2].map(|dim| Axis::forward(g, dim)), SLACK) else { return };
    let (_, distances) = field.taps(g.kernel, inner);
    let (step, size, width) = (room(&field), g.group_weight(), g.output[2]);
    let zeros = vec![T::ZERO; outer];
    let is_wide = is_wide();
    let each = share(g.batch * g.groups);
    pyrite_threads::chunks(y, each * outer * output, |part, y| {
        let mut image = vec![T::ZERO; inner * field.channel()];
        let mut sums = vec![T::ZERO; outer * step];
        for (at, y) in y.chunks_mut(outer * output).enumerate() {
            let at = part * each + at;
            let group = at % g.groups;
            for (x, to) in x[at * inner * input..].chunks(input).zip(image.chunks_mut(field.channel())) {
                vectorized(Fill { field: &field, x, to });
            }
            vectorized(Correlate {
                positions: field.positions,
                x: &image,
                distances: &distances,
                weights: &weight[group * size..][..size],
                start: bias.map_or(&zeros[..], |bias| &bias[group * outer..][..outer]),
                out: &mut sums,
                step,
                is_wide,
            });
            for (sums, y) in sums.chunks(step).zip(y.chunks_mut(output)) {
                field.rows(|from, row| copy_short(&sums[from..from + width], &mut y[row * width..][..width]));
            }
        }
    });
}

/// The fields of a gradient, one for each set of the input's positions that are a stride apart; none where nothing is summed.
/// Those of the lines that begin with the same plane and line are together, by their first column.
pub(super) fn phases(g: &Geometry, slack: usize) -> Vec<([usize; 2], Vec<Option<Field>>)> {
    let [depth, height, width] = g.stride;
    let field = |plane, line, column| {
        Field::new([(0, plane), (1, line), (2, column)].map(|(dim, first)| Axis::backward(g, dim, first)), slack)
    };
    (0..depth * height)
        .map(|at| [at / height, at % height])
        .map(|[plane, line]| ([plane, line], (0..width).map(|column| field(plane, line, column)).collect()))
        .collect()
}

/// The weight of a gradient's field: for each of so many input channels a number for each tap, which are positions in the
/// windows of the output channels.
pub(super) fn flip<T: Factor>(weight: &[T], (inner, window): (usize, usize), taps: &[usize], flipped: &mut Vec<T>) {
    let places: Vec<usize> = taps.iter().map(|tap| tap / window * inner * window + tap % window).collect();
    flipped.resize(inner * taps.len(), T::ZERO);
    for (channel, flipped) in flipped.chunks_mut(taps.len().max(1)).enumerate() {
        for (to, place) in flipped.iter_mut().zip(&places) {
            *to = weight[place + channel * window];
        }
    }
}

/// The sums of a gradient for some lines of the input, from one first column on.
struct Column<T> {
    field: Field,
    distances: Vec<usize>,
    /// The weights of each group.
    groups: Vec<Vec<T>>,
}

/// [`into_windows`](super::into_windows); no size is zero.
pub fn into_windows<T: Factor>(g: &Geometry, y: &[T], weight: &[T], x: &mut [T]) {
    let ((input, output), (inner, outer)) = (g.planes(), g.channels);
    let (size, window) = (g.group_weight(), g.kernel.iter().product::<usize>());
    let column = |field: Field| {
        let (taps, distances) = field.taps(g.kernel, outer);
        let flipped = weight.chunks(size).map(|weight| {
            let mut flipped = Vec::new();
            flip(weight, (inner, window), &taps, &mut flipped);
            flipped
        });
        let groups = flipped.collect();
        Column { field, distances, groups }
    };
    let lines = phases(g, SLACK).into_iter().map(|(first, fields)| {
        let columns: Vec<_> = fields.into_iter().map(|field| field.map(column)).collect();
        (first, columns)
    });
    let lines: Vec<_> = lines.collect();
    let start = vec![T::ZERO; inner];
    let is_wide = is_wide();
    let each = share(g.batch * g.groups);
    pyrite_threads::chunks(x, each * inner * input, |part, x| {
        for (first, columns) in &lines {
            let memory = |column: &Column<T>| {
                let (field, step) = (&column.field, room(&column.field));
                (vec![T::ZERO; outer * field.channel()], vec![T::ZERO; inner * step])
            };
            let mut memory: Vec<_> = columns.iter().map(|column| column.as_ref().map(memory)).collect();
            for (at, x) in x.chunks_mut(inner * input).enumerate() {
                let at = part * each + at;
                for (column, memory) in columns.iter().zip(&mut memory) {
                    let (Some(column), Some((image, sums))) = (column, memory) else { continue };
                    let field = &column.field;
                    for (y, to) in y[at * outer * output..].chunks(output).zip(image.chunks_mut(field.channel())) {
                        vectorized(Fill { field, x: y, to });
                    }
                    vectorized(Correlate {
                        positions: field.positions,
                        x: image,
                        distances: &column.distances,
                        weights: &column.groups[at % g.groups],
                        start: &start,
                        out: sums,
                        step: room(field),
                        is_wide,
                    });
                }
                for (channel, x) in x.chunks_mut(input).enumerate() {
                    let sums: Vec<_> = columns
                        .iter()
                        .zip(&memory)
                        .map(|(column, memory)| {
                            let (column, (_, sums)) = column.as_ref().zip(memory.as_ref())?;
                            let step = room(&column.field);
                            Some((&sums[channel * step..][..step], column.field.pitch))
                        })
                        .collect();
                    vectorized(Spread { g, first: *first, sums: &sums, x });
                }
            }
        }
    });
}

/// [`onto_weight`](super::onto_weight); no size is zero.
pub fn onto_weight<T: Factor>(g: &Geometry, y: &[T], x: &[T], weight: &mut [T]) {
    let ((input, output), (inner, outer)) = (g.planes(), g.channels);
    weight.fill(T::ZERO);
    let Some(field) = Field::new([0, 1, 2].map(|dim| Axis::forward(g, dim)), SLACK) else { return };
    let (_, distances) = field.taps(g.kernel, inner);
    let (width, is_wide) = (g.output[2], is_wide());
    let sizes = (field.positions.next_multiple_of(LANES), inner * field.channel());
    // Small images are summed together before the sums of their lanes are.
    let together = (IMAGES / (sizes.1 + outer * sizes.0)).clamp(1, g.batch);
    let each = share(g.groups);
    pyrite_threads::chunks(weight, each * g.group_weight(), |part, weight| {
        // Zeros between the lines stay from image to image.
        let mut fields = vec![T::ZERO; together * sizes.1];
        let mut gradients = vec![T::ZERO; together * outer * sizes.0];
        for (group, weight) in weight.chunks_mut(g.group_weight()).enumerate() {
            for first in (0..g.batch).step_by(together) {
                let count = together.min(g.batch - first);
                let images = gradients.chunks_mut(outer * sizes.0).zip(fields.chunks_mut(sizes.1)).take(count);
                for (sample, (gradient, image)) in (first..).zip(images) {
                    let at = sample * g.groups + part * each + group;
                    for (x, to) in x[at * inner * input..].chunks(input).zip(image.chunks_mut(field.channel())) {
                        vectorized(Fill { field: &field, x, to });
                    }
                    let y = y[at * outer * output..].chunks(output);
                    for (y, to) in y.zip(gradient.chunks_mut(sizes.0)) {
                        field.rows(|from, row| copy_short(&y[row * width..][..width], &mut to[from..from + width]));
                    }
                }
                vectorized(Dots {
                    y: &gradients[..count * outer * sizes.0],
                    x: &fields[..count * sizes.1],
                    sizes,
                    channels: outer,
                    distances: &distances,
                    out: weight,
                    is_wide,
                });
            }
        }
    });
}
