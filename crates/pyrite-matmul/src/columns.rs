//! Products whose right operand has dense columns, as a weight of a linear layer has.
//!
//! The microkernels want a right panel with dense rows, so such an operand would have to be transposed on its way. Here the
//! roles are exchanged instead: its columns are the rows of the *left* panels, which are plain copies that a product of few
//! rows is worth, and it is the left operand, the activations, that is transposed into right panels. Nothing has to be kept
//! from call to call, so nothing has to be proven about who wrote to a weight meanwhile.
//!
//! A task takes a block of rows and steps whose panels the second-level cache holds, and goes through the columns. The sums of
//! a block of columns are collected, transposed, in a buffer, and transposed back where they belong once they are complete.
//! They are added in the same order as in [`blocked`](crate::blocked), so both ways round alike where the scale is one.

use std::ops::Range;

use crate::blocked::{Buffer, Gemm, numbers};
use crate::pack::{PANEL_ROWS, Source, View, pack_left, pack_right};
use crate::tile::{Isa, LINE, Lane, PANEL, Start, Tile, depth_of};

/// The most rows of a block: the sums of a block of columns stay in the second-level cache. Each block reads the whole right
/// operand.
const MOST_ROWS: usize = 256;
/// Bytes of the right panels of a block.
const CACHED: usize = 1 << 20;
/// Left panels whose sums are collected at a time.
const STRIPS: usize = 8;

/// Computes some rows and columns of the output.
// SAFETY: as for `blocked::run`; the right operand is `rhs`, and nobody else computes this block.
#[expect(unsafe_code, reason = "operands are raw memory")]
pub unsafe fn block<S: Source<T>, T: Lane>(
    p: &Gemm<'_, S, T>,
    rhs: Columns<'_, S, T>,
    isa: &Isa<T>,
    rows: Range<usize>,
    cols: Range<usize>,
    buffers: &mut [Buffer; 3],
) {
    let k = p.sizes.2;
    let blocks = rows.len().div_ceil(MOST_ROWS).max(1);
    let size = rows.len().div_ceil(blocks).next_multiple_of(isa.cols);
    // Panels are of the same depth whether or not the steps are taken at once.
    let depth = depth_of(k);
    let at_once = (CACHED / (size * depth * size_of::<T>())).max(1) * depth;
    for first in rows.clone().step_by(size.max(1)) {
        let rows = first..(first + size).min(rows.end);
        for step in (0..k).step_by(at_once) {
            let steps = step..(step + at_once).min(k);
            // SAFETY: as above.
            unsafe { row_block(p, rhs, isa, rows.clone(), cols.clone(), steps, buffers) };
        }
        if let Some(finish) = p.finish {
            finish(rows);
        }
    }
}

/// A right operand with dense columns.
#[derive(Clone, Copy)]
pub enum Columns<'a, S, T> {
    /// As far apart each as the other.
    Strided(View<S>),
    /// Beginning so many elements behind an address each.
    Anywhere(*const T, &'a [usize]),
}

impl<S: Source<T>, T: Lane> Columns<'_, S, T> {
    /// Fills a left panel with some columns from `first.0` on, of `all`, and steps from `first.1` on.
    // SAFETY: callers make sure that the operand has these columns and steps.
    #[expect(unsafe_code, reason = "operands are raw memory")]
    unsafe fn pack(
        self,
        isa: &Isa<T>,
        first: (usize, usize),
        (count, depth): (usize, usize),
        all: usize,
        to: &mut [T],
    ) {
        match self {
            Self::Strided(view) => {
                let view = View { data: view.data, row_stride: view.col_stride, col_stride: view.row_stride };
                // SAFETY: as above.
                unsafe { pack_left(isa, view, first, (count, depth), all, to) };
            }
            Self::Anywhere(data, starts) => {
                for (start, to) in starts[first.0..first.0 + count].iter().zip(to.chunks_exact_mut(PANEL)) {
                    // SAFETY: as above; the panel is nobody else's.
                    unsafe {
                        std::ptr::copy_nonoverlapping(data.add(start + first.1), to[..depth].as_mut_ptr(), depth);
                    }
                }
            }
        }
    }

    /// Where steps of a column begin, for [`Tile::hints`]; there need not be such a column.
    fn ahead(self, col: usize, step: usize) -> (*const T, usize) {
        match self {
            Self::Strided(view) => (view.at(step, col).cast::<T>(), LINE),
            Self::Anywhere(data, starts) => (data.wrapping_add(starts.get(col).unwrap_or(&0) + step), LINE),
        }
    }
}

/// The right panels of a block of rows: all of them wide but the last, which is narrow where that is enough.
struct Panels<'a, T: 'static> {
    wide: (&'a Isa<T>, usize),
    narrow: Option<&'a Isa<T>>,
    /// Numbers of a step in all panels.
    width: usize,
}

impl<'a, T: Lane> Panels<'a, T> {
    fn of(isa: &'a Isa<T>, rows: usize) -> Self {
        let rest = rows % isa.cols;
        let narrow = isa.narrow.filter(|narrow| rest > 0 && rest <= narrow.cols);
        let wide = if narrow.is_some() { rows / isa.cols } else { rows.div_ceil(isa.cols) };
        Self { wide: (isa, wide), narrow, width: wide * isa.cols + narrow.map_or(0, |narrow| narrow.cols) }
    }

    /// Each panel's microkernels and its first row.
    fn each(&self) -> impl Iterator<Item = (&'a Isa<T>, usize)> + use<'a, T> {
        let (isa, count) = self.wide;
        (0..count).map(move |panel| (isa, panel * isa.cols)).chain(self.narrow.map(|narrow| (narrow, count * isa.cols)))
    }
}

// SAFETY: as for `block`.
#[expect(unsafe_code, reason = "operands are raw memory")]
unsafe fn row_block<S: Source<T>, T: Lane>(
    p: &Gemm<'_, S, T>,
    rhs: Columns<'_, S, T>,
    isa: &Isa<T>,
    rows: Range<usize>,
    cols: Range<usize>,
    steps: Range<usize>,
    [left, right, sums]: &mut [Buffer; 3],
) {
    let (_, n, k) = p.sizes;
    let panels = Panels::of(isa, rows.len());
    let depth = depth_of(k);
    let left = numbers::<T>(left, PANEL_ROWS * PANEL);
    let right = numbers::<T>(right, steps.len() * panels.width);
    let lhs = View { data: p.lhs.data, row_stride: p.lhs.col_stride, col_stride: p.lhs.row_stride };
    for step in steps.clone().step_by(depth) {
        let depth = depth.min(k - step);
        for (isa, first) in panels.each() {
            let to = &mut right[(step - steps.start) * panels.width + first * depth..][..depth * isa.cols];
            let count = isa.cols.min(rows.len() - first);
            // SAFETY: the matrix has these steps and rows.
            unsafe { pack_right(isa, lhs, (step, rows.start + first), (depth, count), to) };
        }
    }
    let strips = STRIPS * isa.rows();
    let sums = numbers::<T>(sums, strips * panels.width);
    // What is added to a product as it is can be what its sums begin with.
    let start = if steps.start == 0 { p.start } else { Start::Scaled(T::ONE) };
    let begins = match start {
        Start::Nothing => Begin::Zero,
        Start::Row(bias) if p.scale == T::ONE => Begin::Row(bias),
        Start::Scaled(factor) if p.scale == T::ONE && factor == T::ONE => Begin::Out,
        _ => Begin::Late(start),
    };
    for begin in cols.clone().step_by(strips) {
        let cols = begin..(begin + strips).min(cols.end);
        for (isa, first) in panels.each() {
            let sums = &mut sums[first * strips..];
            match begins {
                Begin::Row(bias) => {
                    for (at, sums) in sums.chunks_exact_mut(isa.cols).take(cols.len()).enumerate() {
                        // SAFETY: the bias has a number for each column.
                        sums.fill(unsafe { *bias.add(begin + at) });
                    }
                }
                Begin::Out => {
                    let row = rows.start + first;
                    let rows = row..(row + isa.cols).min(rows.end);
                    // SAFETY: the output has these rows and columns.
                    unsafe { fetch(p, isa, sums, rows, cols.clone()) };
                }
                Begin::Zero | Begin::Late(_) => {}
            }
        }
        for strip in cols.clone().step_by(isa.rows()) {
            let out = p.out.wrapping_add(rows.start * p.out_step + strip).cast_const();
            let height = isa.rows().min(cols.end - strip);
            for step in steps.clone().step_by(depth) {
                let depth = depth.min(k - step);
                let fresh = step == steps.start && matches!(begins, Begin::Zero | Begin::Late(_));
                // SAFETY: the matrix has these columns and steps.
                unsafe { rhs.pack(isa, (strip, step), (height, depth), n, left) };
                let (next, after) =
                    if step + depth < steps.end { (strip, step + depth) } else { (strip + height, steps.start) };
                for (index, (isa, first)) in panels.each().enumerate() {
                    let tile = Tile {
                        depth,
                        lhs: left.as_ptr(),
                        rhs: right[(step - steps.start) * panels.width + first * depth..].as_ptr(),
                        rhs_step: isa.cols,
                        starts: std::ptr::null(),
                        out: sums[first * strips + (strip - begin) * isa.cols..].as_mut_ptr(),
                        out_step: isa.cols,
                        scale: T::ONE,
                        start: if fresh { Start::Nothing } else { Start::Scaled(T::ONE) },
                        hints: [
                            (out.wrapping_add(first * p.out_step), p.out_step),
                            (out.wrapping_add((first + Tile::<T>::HINTED) * p.out_step), p.out_step),
                            rhs.ahead(next + 2 * index, after),
                            rhs.ahead(next + 2 * index + 1, after),
                        ],
                    };
                    // SAFETY: both panels are filled, and the sums have room for the tile.
                    unsafe { isa.compute[height - 1](&tile) };
                }
            }
        }
        for (isa, first) in panels.each() {
            let row = rows.start + first;
            let rows = row..(row + isa.cols).min(rows.end);
            // SAFETY: the output has these rows and columns.
            unsafe { leave(p, isa, &sums[first * strips..], rows, cols.clone(), begins) };
        }
    }
}

/// What the sums of a block begin with.
#[derive(Clone, Copy)]
enum Begin<T> {
    /// Nothing.
    Zero,
    /// A number for each column.
    Row(*const T),
    /// What the output holds.
    Out,
    /// Nothing; they are scaled and added to this when they are complete.
    Late(Start<T>),
}

/// Begins the sums of a panel, a dense row for each column, with what the output holds.
// SAFETY: callers make sure that the output has these rows and columns.
#[expect(unsafe_code, reason = "the output is raw memory")]
unsafe fn fetch<S, T: Lane>(p: &Gemm<'_, S, T>, isa: &Isa<T>, sums: &mut [T], rows: Range<usize>, cols: Range<usize>) {
    let (width, side) = (isa.cols, isa.square);
    assert!(sums.len() >= cols.len() * width && rows.len() <= width);
    for r in (0..rows.len()).step_by(side) {
        for c in (0..cols.len()).step_by(side) {
            let (tall, wide) = (side.min(rows.len() - r), side.min(cols.len() - c));
            let out = p.out.wrapping_add((rows.start + r) * p.out_step + cols.start + c);
            let to = sums.as_mut_ptr().wrapping_add(c * width + r);
            // SAFETY: a whole square lies within the output and within the sums; parts are copied element by element.
            unsafe {
                if tall == side && wide == side {
                    (isa.transpose)(out, p.out_step, to, width);
                    continue;
                }
                for (i, j) in (0..tall).flat_map(|i| (0..wide).map(move |j| (i, j))) {
                    *to.add(j * width + i) = *out.add(i * p.out_step + j);
                }
            }
        }
    }
}

/// Puts the sums of a panel, a dense row for each column, where they belong.
// SAFETY: callers make sure that the output has these rows and columns, and that there is a sum for each.
#[expect(unsafe_code, reason = "the output is raw memory")]
unsafe fn leave<S, T: Lane>(
    p: &Gemm<'_, S, T>,
    isa: &Isa<T>,
    sums: &[T],
    rows: Range<usize>,
    cols: Range<usize>,
    begins: Begin<T>,
) {
    let (width, side) = (isa.cols, isa.square);
    let as_they_are = p.scale == T::ONE && !matches!(begins, Begin::Late(_));
    let mut square = [T::ZERO; MOST_SQUARE * MOST_SQUARE];
    assert!(side <= MOST_SQUARE && sums.len() >= cols.len() * width && rows.len() <= width);
    for r in (0..rows.len()).step_by(side) {
        for c in (0..cols.len()).step_by(side) {
            let (tall, wide) = (side.min(rows.len() - r), side.min(cols.len() - c));
            let out = p.out.wrapping_add((rows.start + r) * p.out_step + cols.start + c);
            let from = sums.as_ptr().wrapping_add(c * width + r);
            // SAFETY: a whole square has `side` sums in each of `side` columns, and goes to the output, where it is whole
            // too, or to the buffer; parts of one are read and written element by element.
            unsafe {
                if tall == side && wide == side {
                    if as_they_are {
                        (isa.transpose)(from, width, out, p.out_step);
                        continue;
                    }
                    (isa.transpose)(from, width, square.as_mut_ptr(), side);
                } else {
                    for (i, j) in (0..tall).flat_map(|i| (0..wide).map(move |j| (i, j))) {
                        square[i * side + j] = *from.add(j * width + i);
                    }
                }
                for (i, j) in (0..tall).flat_map(|i| (0..wide).map(move |j| (i, j))) {
                    let (sum, out) = (square[i * side + j], out.add(i * p.out_step + j));
                    *out = match begins {
                        Begin::Row(_) | Begin::Out => sum,
                        Begin::Zero | Begin::Late(Start::Nothing) => p.scale.times_plus(sum, T::ZERO),
                        Begin::Late(Start::Scaled(factor)) => p.scale.times_plus(sum, factor.times_plus(*out, T::ZERO)),
                        Begin::Late(Start::Row(bias)) => p.scale.times_plus(sum, *bias.add(cols.start + c + j)),
                    };
                }
            }
        }
    }
}

/// The largest square that any processor transposes at a time.
const MOST_SQUARE: usize = 8;
