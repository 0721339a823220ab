//! Convolutions as matmuls whose right operand is read where the image lies.
//!
//! In a [`Field`] the elements of a window are always the same distance away from its position, so a row of unrolled windows is
//! the field itself from some distance on: the product takes [`Rows`], and nothing is unrolled. Positions between two lines of
//! the output are computed in vain and left out when the sums are copied to their lines. The gradient of the input is the same
//! with distances reversed, for positions of the input that are a stride apart; that of the weight takes the rows as columns.

use super::Geometry;
use super::direct::{Spread, flip, phases};
use super::field::{Axis, Field, Fill};
use crate::copy::copy_short;
use crate::gemm::{Factor, Matrix, Rows, SLACK, Shape};
use crate::simd::{Loop, vectorized};
use pyrite_tensor::Storage;

/// Positions of an image that are worth it: of fewer, too many are computed in vain, and several images are one product.
pub(super) const POSITIONS: usize = 64;
/// Sums that are computed at a time, about, so that they stay in a core's cache.
const SUMS: usize = 1 << 17;
/// Positions that are computed at a time.
const COLUMNS: (usize, usize) = (128, 1024);

/// The most sets of positions that are a stride apart. Each is a field of its own; the windows of wide strides have few elements
/// in common, so unrolling copies little. Milliseconds of one image of 3×224² to 192 channels by 16×16 with stride 16, where it
/// lies and unrolled: 0.61 and 0.55, gradient of the input 6.2 and 0.55, of the weight 0.72 and 0.55.
const PHASES: usize = 4;

/// Whether a convolution and its gradients are worth it, and the processor has the product for it.
pub fn suits<T: Factor>(g: &Geometry) -> bool {
    let close = g.stride.iter().product::<usize>() <= PHASES;
    let empty = g.group_weight() == 0 || g.planes().0 == 0;
    T::takes_rows() && close && !empty && !g.is_plain() && g.planes().1 >= POSITIONS
}

/// Rows of the product, and positions, that are worth it where channels are few.
const FEW: (usize, usize) = (3, 320);

/// Whether a convolution of few channels is worth it, as a product of so many rows.
pub(super) fn suits_few<T: Factor>(g: &Geometry, rows: usize) -> bool {
    suits::<T>(g) && g.stride == [1; 3] && rows >= FEW.0 && g.planes().1 >= FEW.1
}

/// Whether windows have so few elements, for so many channels, that copying them costs less than copying sums to their lines.
pub(super) fn is_narrow(g: &Geometry) -> bool {
    g.window() <= 36 && g.channels.1 >= 32
}

/// Copies sums to lines of the output.
struct Leave<'a, T> {
    /// Where lines begin among the sums, and where they go.
    lines: &'a [(usize, usize)],
    width: usize,
    sums: &'a [T],
    bias: Option<T>,
    y: &'a mut [T],
}

impl<T: Factor> Loop for Leave<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { lines, width, sums, bias, y } = self;
        let first = lines.first().map_or(0, |line| line.0);
        for (from, line) in lines {
            let (sums, y) = (&sums[from - first..][..width], &mut y[line * width..][..width]);
            match bias {
                None => copy_short(sums, y),
                Some(bias) => y.iter_mut().zip(sums).for_each(|(y, sum)| *y = sum.plus(bias)),
            }
        }
    }
}

/// [`forward`](super::forward), of a convolution that [`suits`].
pub fn forward<T: Factor>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let ((input, output), (inner, depth), k) = (g.planes(), g.channels, g.window());
    let Some(field) = Field::new([0, 1, 2].map(|dim| Axis::forward(g, dim)), SLACK) else { return };
    let (_, starts) = field.taps(g.kernel, inner);
    let mut lines = Vec::new();
    field.rows(|from, line| lines.push((from, line)));
    let (width, most) = (g.output[2], (SUMS / depth).clamp(COLUMNS.0, COLUMNS.1));
    pyrite_threads::chunks(y, depth * output, |part, y| {
        let group = part % g.groups;
        let weight = Matrix { data: &weight[group * g.group_weight()..], shape: Shape::rows_first(depth, k) };
        let bias = bias.map(|bias| &bias[group * depth..]);
        let x = &x[part * inner * input..][..inner * input];
        let fields = filled(&field, x, inner);
        let fields = fields.read::<T>();
        let (mut sums, mut rest) = (Vec::new(), &*lines);
        while let Some((first, _)) = rest.first() {
            let count = rest.partition_point(|(from, _)| from + width <= first + most).max(1);
            let (block, after) = rest.split_at(count);
            rest = after;
            let cols = block.last().map_or(0, |(from, _)| from + width - first);
            sums.resize(depth * cols, T::ZERO);
            let rows = Rows { data: &fields[*first..], starts: &starts, cols };
            T::product_of_rows((&mut sums, Shape::rows_first(depth, cols)), weight, rows);
            pyrite_threads::chunks(y, output, |channel, y| {
                let (sums, bias) = (&sums[channel * cols..][..cols], bias.map(|bias| bias[channel]));
                vectorized(Leave { lines: block, width, sums, bias, y });
            });
        }
    });
}

/// The fields of some channels, one after the other.
fn filled<T: Factor>(field: &Field, x: &[T], channels: usize) -> Storage {
    let plane = x.len() / channels;
    let fields = Storage::recycled(channels * field.channel() * size_of::<T>());
    pyrite_threads::chunks(&mut fields.write::<T>(), field.channel(), |at, to| {
        to.fill(T::ZERO);
        vectorized(Fill { field, x: &x[at * plane..][..plane], to });
    });
    fields
}

/// [`into_windows`](super::into_windows), of a convolution that [`suits`].
pub fn into_windows<T: Factor>(g: &Geometry, y: &[T], weight: &[T], x: &mut [T]) {
    let ((input, output), (inner, depth)) = (g.planes(), g.channels);
    let window = g.kernel.iter().product::<usize>();
    let mut flipped = Vec::new();
    for (first, fields) in phases(g, SLACK) {
        let mut column = |field: Field| {
            let (taps, starts) = field.taps(g.kernel, depth);
            let flipped = weight.chunks(g.group_weight()).map(|weight| {
                flip(weight, (inner, window), &taps, &mut flipped);
                std::mem::take(&mut flipped)
            });
            let groups: Vec<Vec<T>> = flipped.collect();
            (field, starts, groups)
        };
        let columns: Vec<_> = fields.into_iter().map(|field| field.map(&mut column)).collect();
        pyrite_threads::chunks(x, inner * input, |part, x| {
            let y = &y[part * depth * output..][..depth * output];
            let product = |(field, starts, groups): &(Field, Vec<usize>, Vec<Vec<T>>)| {
                let (cols, weight) = (field.positions, &groups[part % g.groups]);
                let weight = Matrix { data: weight, shape: Shape::rows_first(inner, starts.len()) };
                let fields = filled(field, y, depth);
                let sums = Storage::recycled(inner * cols * size_of::<T>());
                let rows = Rows { data: &fields.read::<T>(), starts, cols };
                T::product_of_rows((&mut sums.write::<T>(), Shape::rows_first(inner, cols)), weight, rows);
                (sums, cols, field.pitch)
            };
            let sums: Vec<_> = columns.iter().map(|column| column.as_ref().map(product)).collect();
            let sums: Vec<_> = sums
                .iter()
                .map(|sums| sums.as_ref().map(|(sums, cols, pitch)| (sums.read::<T>(), *cols, *pitch)))
                .collect();
            pyrite_threads::chunks(x, input, |channel, x| {
                let sums: Vec<_> = sums
                    .iter()
                    .map(|sums| sums.as_ref().map(|(sums, cols, pitch)| (&sums[channel * cols..][..*cols], *pitch)))
                    .collect();
                vectorized(Spread { g, first, sums: &sums, x });
            });
        });
    }
}

/// [`onto_weight`](super::onto_weight), of a convolution that [`suits`].
pub fn onto_weight<T: Factor>(g: &Geometry, y: &[T], x: &[T], weight: &mut [T]) {
    let ((input, output), (inner, depth), k) = (g.planes(), g.channels, g.window());
    weight.fill(T::ZERO);
    let Some(field) = Field::new([0, 1, 2].map(|dim| Axis::forward(g, dim)), SLACK) else { return };
    let (_, starts) = field.taps(g.kernel, inner);
    let (width, cols) = (g.output[2], field.positions);
    let mut lines = Vec::new();
    field.rows(|from, line| lines.push((from, line)));
    pyrite_threads::chunks(weight, depth * k, |group, weight| {
        // Zeros between the lines stay from image to image.
        let mut gradient = vec![T::ZERO; depth * cols];
        for image in 0..g.batch {
            let at = image * g.groups + group;
            let y = &y[at * depth * output..][..depth * output];
            pyrite_threads::chunks(&mut gradient, cols, |channel, to| {
                let y = &y[channel * output..][..output];
                vectorized(Lines { lines: &lines, width, y, to });
            });
            let fields = filled(&field, &x[at * inner * input..][..inner * input], inner);
            let columns = Rows { data: &fields.read::<T>(), starts: &starts, cols };
            let lhs = Matrix { data: &gradient, shape: Shape::rows_first(depth, cols) };
            T::add_product_of_columns((weight, Shape::rows_first(depth, k)), lhs, columns);
        }
    });
}

/// Copies lines of a gradient to their positions.
struct Lines<'a, T> {
    lines: &'a [(usize, usize)],
    width: usize,
    y: &'a [T],
    to: &'a mut [T],
}

impl<T: Factor> Loop for Lines<'_, T> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (from, line) in self.lines {
            copy_short(&self.y[line * self.width..][..self.width], &mut self.to[*from..from + self.width]);
        }
    }
}
