//! Convolutions of single channels with [`LANES`] of them side by side.
//!
//! In a depthwise convolution every channel has an image and windows of its own. Direct sums fill their lanes with
//! the positions of one image; where that has few of them, or a stride takes them apart, most lanes compute nothing. Here a
//! lane is a channel: images are transposed into cells of one position each, with zeros around them for the padding, and a
//! window is the same list of cells from every position on, whatever stride, dilation and rank.
//!
//! Zeros of the padding are multiplied like numbers, as in unrolled windows: next to them an infinite factor gives NaN.

use std::array;

use super::Geometry;
use crate::gemm::Factor;
use crate::simd::{Loop, vectorized};

/// Channels side by side.
const LANES: usize = 16;
/// Positions, or taps, whose sums are computed together: as many as fit into the registers of AVX2.
const SUMS: usize = 6;
/// Blocks of channels are shared out in about this many parts for each thread.
const PARTS: usize = 4;

/// Cells of an image with the zeros around it, at most: they are read again for every tap, from the nearest cache.
const MOST: usize = 512;

/// One position of all lanes.
type Cell<T> = [T; LANES];

/// `factor·other + addend` in every lane.
#[expect(clippy::inline_always, reason = "part of a `Loop`")]
#[inline(always)]
fn times_plus<T: Factor, const FUSED: bool>(factor: &Cell<T>, other: &Cell<T>, addend: &Cell<T>) -> Cell<T> {
    array::from_fn(|lane| factor[lane].times_plus::<FUSED>(other[lane], addend[lane]))
}

/// Whether this is the method for a convolution.
pub fn suits(g: &Geometry) -> bool {
    let cells = g.reached().iter().fold(1, |all: usize, size| all.saturating_mul(*size));
    g.channels == (1, 1) && g.groups >= LANES / 2 && cells <= MOST && g.window() > 1
}

impl Geometry {
    /// The sizes of an image with the zeros before it, and those behind it that windows reach; no size is zero.
    fn reached(&self) -> [usize; 3] {
        [0, 1, 2].map(|dim| {
            let last = (self.output[dim] - 1).saturating_mul(self.stride[dim]);
            let window = (self.kernel[dim] - 1).saturating_mul(self.dilation[dim]).saturating_add(1);
            last.saturating_add(window).max(self.input[dim].saturating_add(self.padding[dim]))
        })
    }
}

/// Where the cells of an image lie, and those of its windows.
struct Cells {
    /// With the zeros around the image.
    count: usize,
    /// For each element of the image, row by row, its cell.
    image: Vec<usize>,
    /// For each position of the output the cell that its window begins at; for the last one again up to [`SUMS`] of them.
    windows: Vec<usize>,
    /// From there to the cell of each tap.
    taps: Vec<usize>,
}

impl Cells {
    fn new(g: &Geometry) -> Self {
        let size = g.reached();
        let cell = |at: [usize; 3]| (at[0] * size[1] + at[1]) * size[2] + at[2];
        let all = |sizes: [usize; 3], of: &dyn Fn([usize; 3]) -> [usize; 3]| -> Vec<usize> {
            let [depth, height, width] = sizes;
            let at = |i: usize| [i / (height * width), i / width % height, i % width];
            (0..depth * height * width).map(|i| cell(of(at(i)))).collect()
        };
        let mut windows = all(g.output, &|at| [0, 1, 2].map(|dim| at[dim] * g.stride[dim]));
        while let Some(last) = windows.last().copied().filter(|_| windows.len() < SUMS) {
            windows.push(last);
        }
        Self {
            count: size.iter().product(),
            image: all(g.input, &|at| [0, 1, 2].map(|dim| at[dim] + g.padding[dim])),
            windows,
            taps: all(g.kernel, &|at| [0, 1, 2].map(|dim| at[dim] * g.dilation[dim])),
        }
    }
}

/// Copies some images, one after the other, into a lane each: element `i` into the cell `places[i]`.
struct Gather<'a, T> {
    images: &'a [T],
    places: &'a [usize],
    cells: &'a mut [Cell<T>],
}

impl<T: Factor> Loop for Gather<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let size = self.places.len();
        if self.images.len() == LANES * size {
            for (at, place) in self.places.iter().enumerate() {
                let cell = &mut self.cells[*place];
                for (lane, element) in cell.iter_mut().enumerate() {
                    *element = self.images[lane * size + at];
                }
            }
            return;
        }
        for (lane, image) in self.images.chunks_exact(size).enumerate() {
            for (element, place) in image.iter().zip(self.places) {
                self.cells[*place][lane] = *element;
            }
        }
    }
}

/// Copies lanes to images, one after the other: the cell `places[i]`, or the `i`th, becomes element `i`.
struct Scatter<'a, T> {
    cells: &'a [Cell<T>],
    places: Option<&'a [usize]>,
    images: &'a mut [T],
    /// Elements of an image.
    size: usize,
}

impl<T: Factor> Loop for Scatter<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (lane, image) in self.images.chunks_exact_mut(self.size).enumerate() {
            match self.places {
                None => image.iter_mut().zip(self.cells).for_each(|(element, cell)| *element = cell[lane]),
                Some(places) => {
                    image.iter_mut().zip(places).for_each(|(element, place)| *element = self.cells[*place][lane]);
                }
            }
        }
    }
}

/// The sums of the windows of an image.
struct Windows<'a, T> {
    cells: &'a Cells,
    image: &'a [Cell<T>],
    /// A cell for each tap.
    weight: &'a [Cell<T>],
    start: Cell<T>,
    /// A cell for each window.
    out: &'a mut [Cell<T>],
}

#[expect(clippy::inline_always, reason = "part of a `Loop`")]
impl<T: Factor> Windows<'_, T> {
    #[inline(always)]
    fn positions<const FUSED: bool>(&mut self, first: usize) {
        let mut sums = [[T::ZERO; LANES]; SUMS];
        let Some(windows) = self.cells.windows[first..].first_chunk::<SUMS>() else { return };
        for (tap, weight) in self.cells.taps.iter().zip(self.weight) {
            let x: [&Cell<T>; SUMS] = array::from_fn(|at| &self.image[windows[at] + tap]);
            for at in 0..SUMS {
                sums[at] = times_plus::<T, FUSED>(x[at], weight, &sums[at]);
            }
        }
        for (out, sums) in self.out[first..][..SUMS].iter_mut().zip(sums) {
            for lane in 0..LANES {
                out[lane] = sums[lane].plus(self.start[lane]);
            }
        }
    }
}

impl<T: Factor> Loop for Windows<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        let last = self.out.len() - SUMS;
        for at in (0..last).step_by(SUMS) {
            self.positions::<FUSED>(at);
        }
        // Some of these may be computed again.
        self.positions::<FUSED>(last);
    }
}

/// Adds a gradient to the windows that it is of.
struct Spread<'a, T> {
    cells: &'a Cells,
    gradient: &'a [Cell<T>],
    weight: &'a [Cell<T>],
    image: &'a mut [Cell<T>],
}

impl<T: Factor> Loop for Spread<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        self.image.fill([T::ZERO; LANES]);
        for (gradient, window) in self.gradient.iter().zip(&self.cells.windows) {
            for (tap, weight) in self.cells.taps.iter().zip(self.weight) {
                let x = &mut self.image[window + tap];
                *x = times_plus::<T, FUSED>(gradient, weight, x);
            }
        }
    }
}

/// Adds the products of a gradient and the image at each tap.
struct Dots<'a, T> {
    cells: &'a Cells,
    gradient: &'a [Cell<T>],
    image: &'a [Cell<T>],
    /// A sum for each tap.
    out: &'a mut [Cell<T>],
}

#[expect(clippy::inline_always, reason = "part of a `Loop`")]
impl<T: Factor> Dots<'_, T> {
    #[inline(always)]
    fn taps<const FUSED: bool, const COUNT: usize>(&mut self, first: usize) {
        let mut sums = [[T::ZERO; LANES]; COUNT];
        let Some(taps) = self.cells.taps[first..].first_chunk::<COUNT>() else { return };
        for (gradient, window) in self.gradient.iter().zip(&self.cells.windows) {
            let x: [&Cell<T>; COUNT] = array::from_fn(|at| &self.image[window + taps[at]]);
            for at in 0..COUNT {
                sums[at] = times_plus::<T, FUSED>(x[at], gradient, &sums[at]);
            }
        }
        for (out, sums) in self.out[first..][..COUNT].iter_mut().zip(sums) {
            for lane in 0..LANES {
                out[lane] = out[lane].plus(sums[lane]);
            }
        }
    }
}

impl<T: Factor> Loop for Dots<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        let taps = self.cells.taps.len();
        let whole = taps - taps % SUMS;
        for first in (0..whole).step_by(SUMS) {
            self.taps::<FUSED, SUMS>(first);
        }
        for first in whole..taps {
            self.taps::<FUSED, 1>(first);
        }
    }
}

/// How many of `count` blocks a thread takes at a time.
fn share(count: usize) -> usize {
    count.div_ceil(PARTS * pyrite_threads::count()).max(1)
}

fn cells<T: Factor>(count: usize) -> Vec<Cell<T>> {
    vec![[T::ZERO; LANES]; count]
}

/// The weights of all blocks of channels. Images of a batch follow each other, so a block may begin at any channel; after
/// so many blocks they begin at the same ones again.
struct Weights<T> {
    blocks: Vec<Vec<Cell<T>>>,
    start: Vec<Cell<T>>,
}

impl<T: Factor> Weights<T> {
    fn new(g: &Geometry, weight: &[T], bias: Option<&[T]>) -> Self {
        let (channels, taps) = (g.groups, g.window());
        let period = (1..=LANES).find(|blocks| blocks * channels % LANES == 0).unwrap_or(1) * channels / LANES;
        let count = period.min((g.batch * channels).div_ceil(LANES));
        let mut blocks = vec![cells(taps); count];
        let mut start = cells(count);
        for (at, (block, start)) in blocks.iter_mut().zip(&mut start).enumerate() {
            for lane in 0..LANES {
                let channel = (at * LANES + lane) % channels;
                for (cell, weight) in block.iter_mut().zip(&weight[channel * taps..]) {
                    cell[lane] = *weight;
                }
                start[lane] = bias.map_or(T::ZERO, |bias| bias[channel]);
            }
        }
        Self { blocks, start }
    }

    fn of(&self, block: usize) -> (&[Cell<T>], Cell<T>) {
        let at = block % self.blocks.len();
        (&self.blocks[at], self.start[at])
    }
}

/// [`forward`](super::forward); no size is zero.
pub fn forward<T: Factor>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let (input, output) = g.planes();
    let lie = Cells::new(g);
    let weights = Weights::new(g, weight, bias);
    let each = share(y.len() / output / LANES);
    pyrite_threads::chunks(y, each * LANES * output, |part, y| {
        let (mut image, mut sums) = (cells(lie.count), cells(lie.windows.len()));
        for (at, y) in y.chunks_mut(LANES * output).enumerate() {
            let block = part * each + at;
            let (weight, start) = weights.of(block);
            let images = &x[block * LANES * input..][..y.len() / output * input];
            vectorized(Gather { images, places: &lie.image, cells: &mut image });
            vectorized(Windows { cells: &lie, image: &image, weight, start, out: &mut sums });
            vectorized(Scatter { cells: &sums, places: None, images: y, size: output });
        }
    });
}

/// The convolution that gives the gradient of the input, with the windows reversed; none where windows are a stride apart.
fn reversed(g: &Geometry) -> Option<Geometry> {
    let around = |dim: usize| ((g.kernel[dim] - 1) * g.dilation[dim]).checked_sub(g.padding[dim]);
    let padding = [around(0)?, around(1)?, around(2)?];
    (g.stride == [1; 3]).then_some(Geometry { input: g.output, output: g.input, padding, ..*g })
}

/// [`into_windows`](super::into_windows); no size is zero.
pub fn into_windows<T: Factor>(g: &Geometry, y: &[T], weight: &[T], x: &mut [T]) {
    if let Some(reversed) = reversed(g) {
        let weight: Vec<T> = weight.chunks(g.window()).flat_map(|window| window.iter().rev().copied()).collect();
        return forward(&reversed, y, &weight, None, x);
    }
    let (input, output) = g.planes();
    let lie = Cells::new(g);
    let weights = Weights::new(g, weight, None);
    let places: Vec<usize> = (0..output).collect();
    let each = share(x.len() / input / LANES);
    pyrite_threads::chunks(x, each * LANES * input, |part, x| {
        let (mut image, mut gradient) = (cells(lie.count), cells(output));
        for (at, x) in x.chunks_mut(LANES * input).enumerate() {
            let block = part * each + at;
            let (weight, _) = weights.of(block);
            let images = &y[block * LANES * output..][..x.len() / input * output];
            vectorized(Gather { images, places: &places, cells: &mut gradient });
            vectorized(Spread { cells: &lie, gradient: &gradient, weight, image: &mut image });
            vectorized(Scatter { cells: &image, places: Some(&lie.image), images: x, size: input });
        }
    });
}

/// [`onto_weight`](super::onto_weight); no size is zero.
pub fn onto_weight<T: Factor>(g: &Geometry, y: &[T], x: &[T], weight: &mut [T]) {
    let ((input, output), taps) = (g.planes(), g.window());
    let lie = Cells::new(g);
    let places: Vec<usize> = (0..output).collect();
    let each = share(g.groups / LANES);
    pyrite_threads::chunks(weight, each * LANES * taps, |part, weight| {
        let (mut image, mut gradient) = (cells(lie.count), cells(output));
        for (at, weight) in weight.chunks_mut(LANES * taps).enumerate() {
            let (first, lanes) = ((part * each + at) * LANES, weight.len() / taps);
            let mut sums = cells(taps);
            for sample in 0..g.batch {
                let channel = sample * g.groups + first;
                let (x, y) = (&x[channel * input..][..lanes * input], &y[channel * output..][..lanes * output]);
                vectorized(Gather { images: x, places: &lie.image, cells: &mut image });
                vectorized(Gather { images: y, places: &places, cells: &mut gradient });
                vectorized(Dots { cells: &lie, gradient: &gradient, image: &image, out: &mut sums });
            }
            vectorized(Scatter { cells: &sums, places: None, images: weight, size: taps });
        }
    });
}
