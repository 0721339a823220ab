//! Images laid out so that the elements of a window are always the same distance away from its position.
//!
//! A [`Field`] holds the rows of an image with the zeros of its padding between them, the same ones behind a row and
//! before the next; elements that are a stride apart lie side by side, in *phases*. So all windows are read by one loop
//! over positions, whatever the sizes; positions between two rows are of no window.

use std::ops::Range;

use super::Geometry;
use crate::copy::copy_steps;
use crate::gemm::Factor;
use crate::simd::Loop;

/// One dimension: `out[o]` is summed over taps, `weight[tap]·x[o·step + distance]`, where `x` is zero outside itself.
#[derive(Clone, Debug)]
pub struct Axis {
    size: usize,
    output: usize,
    step: usize,
    /// Positions in the weight, and distances.
    taps: Vec<(usize, isize)>,
}

/// How the positions of one channel lie; see the module's text.
pub struct Field {
    axes: [Axis; 3],
    lowest: [isize; 3],
    phases: Vec<[usize; 3]>,
    /// Elements of one phase, with room for what is read in vain behind the last position.
    len: usize,
    /// Positions from one plane, and from one row, to the next.
    pub pitch: [usize; 2],
    /// From the first to the last position of the output, both included.
    pub positions: usize,
}

impl Axis {
    /// Of the convolution.
    pub fn forward(g: &Geometry, dim: usize) -> Self {
        let taps = (0..g.kernel[dim]).map(|k| (k, (k * g.dilation[dim]) as isize - g.padding[dim] as isize)).collect();
        Self { size: g.input[dim], output: g.output[dim], step: g.stride[dim], taps }
    }

    /// Of the gradient at the input's positions that are `first` and multiples of the stride after it.
    pub fn backward(g: &Geometry, dim: usize, first: usize) -> Self {
        let stride = g.stride[dim] as isize;
        let distance = |k: usize| (first + g.padding[dim]) as isize - (k * g.dilation[dim]) as isize;
        let near = (0..g.kernel[dim]).map(|k| (k, distance(k))).filter(|(_, distance)| distance % stride == 0);
        let taps = near.map(|(k, distance)| (k, distance / stride)).collect();
        let output = g.input[dim].saturating_sub(first).div_ceil(g.stride[dim]);
        Self { size: g.output[dim], output, step: 1, taps }
    }

    /// Of tiles of two positions of a convolution by windows of three.
    pub fn tiles(g: &Geometry, dim: usize) -> Self {
        let taps = (0..4).map(|k| (k, k as isize - g.padding[dim] as isize)).collect();
        Self { size: g.input[dim], output: g.output[dim].div_ceil(2), step: 2, taps }
    }

    fn lowest(&self) -> isize {
        self.taps.iter().map(|tap| tap.1).min().unwrap_or(0)
    }

    /// Elements of a row, or rows of a plane, that positions and their taps reach in one phase.
    fn cells(&self) -> usize {
        let highest = self.taps.iter().map(|tap| tap.1).max().unwrap_or(0);
        self.output + (highest - self.lowest()) as usize / self.step
    }

    /// From one row to the next. Rows overlap where all phases of both have zeros.
    fn pitch(&self) -> usize {
        let cells = self.cells();
        let before = (-self.lowest()).max(0) as usize;
        let zeros = before.saturating_sub(self.step - 1).div_ceil(self.step);
        let end = (self.size as isize - self.lowest()).max(0) as usize;
        self.output.max(cells.saturating_sub(zeros)).max(end.div_ceil(self.step)).min(cells)
    }

    /// The cells of a phase that lie within the input, and the first of its elements there.
    fn inside(&self, phase: usize, cells: usize) -> (Range<usize>, usize) {
        let first = phase as isize + self.lowest();
        let begin = ((-first).max(0) as usize).div_ceil(self.step);
        let end = ((self.size as isize - first).max(0) as usize).div_ceil(self.step).min(cells);
        (begin..end.max(begin), (begin * self.step).wrapping_add_signed(first))
    }
}

impl Field {
    /// Nothing where nothing is summed. `slack` elements may be read behind the last position.
    pub fn new(axes: [Axis; 3], slack: usize) -> Option<Self> {
        if axes.iter().any(|axis| axis.taps.is_empty() || axis.output == 0) {
            return None;
        }
        let (row, rows, planes) = (axes[2].pitch(), axes[1].cells(), axes[0].cells());
        let mut field = Self {
            positions: ((axes[0].output - 1) * rows + axes[1].output - 1) * row + axes[2].output,
            len: planes * rows * row + axes[2].cells() + slack,
            lowest: [0, 1, 2].map(|dim| axes[dim].lowest()),
            pitch: [rows * row, row],
            phases: Vec::new(),
            axes,
        };
        let mut phases: Vec<[usize; 3]> = Vec::new();
        field.each_tap(|_, phase, _| {
            if !phases.contains(&phase) {
                phases.push(phase);
            }
        });
        field.phases = phases;
        Some(field)
    }

    /// Calls `visit(position in the weight, phase, distance within the phase)` for every tap.
    fn each_tap(&self, mut visit: impl FnMut([usize; 3], [usize; 3], usize)) {
        let [planes, rows, columns] = &self.axes;
        for plane in &planes.taps {
            for row in &rows.taps {
                for column in &columns.taps {
                    let taps = [plane, row, column];
                    let shift = [0, 1, 2].map(|dim| (taps[dim].1 - self.lowest[dim]) as usize);
                    let cell = [0, 1, 2].map(|dim| shift[dim] / self.axes[dim].step);
                    let phase = [0, 1, 2].map(|dim| shift[dim] % self.axes[dim].step);
                    visit(taps.map(|tap| tap.0), phase, cell[0] * self.pitch[0] + cell[1] * self.pitch[1] + cell[2]);
                }
            }
        }
    }

    /// All taps in so many channels, whose fields follow each other: their positions in a window, and their distances.
    pub fn taps(&self, kernel: [usize; 3], channels: usize) -> (Vec<usize>, Vec<usize>) {
        let (mut taps, mut distances) = (Vec::new(), Vec::new());
        for channel in 0..channels {
            self.each_tap(|[d, h, w], phase, distance| {
                let phase = self.phases.iter().position(|known| *known == phase).unwrap_or(0);
                taps.push(((channel * kernel[0] + d) * kernel[1] + h) * kernel[2] + w);
                distances.push((channel * self.phases.len() + phase) * self.len + distance);
            });
        }
        (taps, distances)
    }

    /// Elements of one channel.
    pub fn channel(&self) -> usize {
        self.phases.len() * self.len
    }

    /// Calls `visit(first position, number of the row)` for every row of the output.
    pub fn rows(&self, mut visit: impl FnMut(usize, usize)) {
        let rows = self.axes[1].output;
        for plane in 0..self.axes[0].output {
            for row in 0..rows {
                visit(plane * self.pitch[0] + row * self.pitch[1], plane * rows + row);
            }
        }
    }
}

/// Copies a channel into its field, where the zeros are already.
pub struct Fill<'a, T> {
    /// The field.
    pub field: &'a Field,
    /// The channel.
    pub x: &'a [T],
    /// The field's elements.
    pub to: &'a mut [T],
}

impl<T: Factor> Loop for Fill<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { field, x, to } = self;
        let [depth, height, width] = &field.axes;
        for (phase, to) in field.phases.iter().zip(to.chunks_mut(field.len)) {
            let (planes, first_plane) = depth.inside(phase[0], depth.cells());
            let (rows, first_row) = height.inside(phase[1], height.cells());
            let (columns, first_column) = width.inside(phase[2], field.pitch[1]);
            for (plane, d) in planes.zip((first_plane..).step_by(depth.step)) {
                for (row, h) in rows.clone().zip((first_row..).step_by(height.step)) {
                    let from = (d * height.size + h) * width.size + first_column;
                    let at = plane * field.pitch[0] + row * field.pitch[1];
                    copy_steps(x, from, width.step, &mut to[at + columns.start..at + columns.end]);
                }
            }
        }
    }
}
