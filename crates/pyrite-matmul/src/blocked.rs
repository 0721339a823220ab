//! The loops around the microkernels.
//!
//! A task computes a block of the output: some rows, and some right panels. It takes as many right panels at a time as
//! the second-level cache holds, packs them unless they are packed already, and goes through the rows with one left
//! panel after the other, which the first-level cache holds. Tasks share nothing but what they read. Right operands with
//! dense columns go another way: see [`columns`].

use std::cell::RefCell;
use std::ops::Range;

use aligned_vec::{AVec, ConstAlign};

use crate::columns::{self, Columns};
use crate::few;
use crate::pack::{PANEL_ROWS, Source, View, pack_left, pack_right};
use crate::packed::Packed;
use crate::row;
use crate::tile::{Isa, LINE, Lane, PANEL, Start, Tile, depth_of};

/// Bytes of the right panels that are worked on at a time.
const CACHED: usize = 1 << 20;

/// Multiplications that are worth a thread of their own.
const SHARE: usize = 1 << 20;

/// The right operand.
pub enum Right<'a, S, T: Lane> {
    /// As it lies in memory.
    Plain(View<S>),
    /// In panels.
    Packed(&'a Packed<T>),
    /// Rows that begin so many elements behind an address each, with room behind them for the last tile of a row.
    Rows(*const T, &'a [usize]),
    /// Columns that begin so many elements behind an address each.
    Columns(*const T, &'a [usize]),
}

/// A product to compute.
pub struct Gemm<'a, S, T: Lane> {
    /// Rows, columns, and steps of each sum; none is zero.
    pub sizes: (usize, usize, usize),
    /// The left operand.
    pub lhs: View<S>,
    /// The right operand.
    pub rhs: Right<'a, S, T>,
    /// The first element of the output, whose rows are dense.
    pub out: *mut T,
    /// Elements from one row of the output to the next.
    pub out_step: usize,
    /// The factor of the sums.
    pub scale: T,
    /// What they are added to.
    pub start: Start<T>,
    /// Is told of rows of the output that are complete, on the thread that completed them.
    pub finish: Option<&'a (dyn Fn(Range<usize>) + Sync)>,
}

// SAFETY: tasks write to different blocks of the output, and what they read nobody writes meanwhile; see `run`.
#[expect(unsafe_code, reason = "threads share operands as raw memory")]
unsafe impl<S: Sync, T: Lane> Sync for Gemm<'_, S, T> {}

/// A left operand with dense rows: the one that there is, or a copy.
pub enum DenseRows<S, T> {
    /// As it lies.
    Lies(View<S>),
    /// A copy, rows one after the other.
    Copied(Vec<T>, usize),
}

impl<S: Source<T>, T: Lane> DenseRows<S, T> {
    /// Where a row begins, and how far it is to the next.
    pub fn view(&self) -> View<T> {
        match self {
            Self::Lies(view) => View { data: view.data.cast(), row_stride: view.row_stride, col_stride: 1 },
            Self::Copied(data, row_stride) => View { data: data.as_ptr(), row_stride: *row_stride, col_stride: 1 },
        }
    }
}

impl<S: Source<T>, T: Lane> Gemm<'_, S, T> {
    /// The left operand with dense rows.
    // SAFETY: callers make sure that it holds what the sizes say.
    #[expect(unsafe_code, reason = "operands are raw memory")]
    pub unsafe fn dense_lhs(&self) -> DenseRows<S, T> {
        let (m, _, k) = self.sizes;
        if S::SAME && (self.lhs.col_stride == 1 || k == 1) {
            return DenseRows::Lies(self.lhs);
        }
        // SAFETY: as above.
        let element = |at: usize| unsafe { *self.lhs.at(at / k, at % k) }.value();
        DenseRows::Copied((0..m * k).map(element).collect(), k)
    }
}

/// How many tasks rows and columns are split into.
fn grid<S, T: Lane>(p: &Gemm<'_, S, T>, isa: &Isa<T>, threads: usize) -> (usize, usize) {
    let (m, n, k) = p.sizes;
    let work = m.saturating_mul(n).saturating_mul(k);
    let tasks = threads.min(work / SHARE).max(1);
    // Whoever waits for whole rows does not want them split.
    let by_rows = |down: usize| if p.finish.is_some() { 1 } else { tasks / down };
    let cost = |(down, across): (usize, usize)| {
        let (rows, cols) = (m.div_ceil(down), n.div_ceil(isa.cols).div_ceil(across) * isa.cols);
        // Each task reads its part of both operands, which costs more for the right one.
        rows * cols + 4 * rows + 16 * cols
    };
    (1..=tasks).map(|down| (down, by_rows(down))).min_by_key(|grid| cost(*grid)).unwrap_or((1, 1))
}

/// Computes a product on at most so many threads.
// SAFETY: callers make sure that the views and the output hold what the sizes say, that nobody else reads or writes the
// output or writes the operands meanwhile, and that the processor has the instructions of `isa`.
#[expect(unsafe_code, reason = "operands are raw memory")]
pub unsafe fn run<S: Source<T>, T: Lane>(p: &Gemm<'_, S, T>, isa: &Isa<T>, threads: usize) {
    let (m, n, _) = p.sizes;
    if let Right::Plain(rhs) = p.rhs {
        // SAFETY: as above.
        unsafe {
            if few::takes(p, rhs, isa) {
                return few::run(p, rhs, isa, threads);
            }
            if row::takes(p, rhs, isa) {
                return row::run(p, rhs, isa, threads);
            }
        }
    }
    let panels = n.div_ceil(isa.cols);
    let (down, across) = grid(p, isa, threads);
    let part = |index: usize, parts: usize, whole: usize| index * whole / parts..(index + 1) * whole / parts;
    let task = |index: usize| {
        let (i, j) = (index / across, index % across);
        let (rows, panels) = (part(i, down, m), part(j, across, panels));
        // SAFETY: as above, and the blocks of different tasks have no element in common.
        BUFFERS.with_borrow_mut(|buffers| unsafe {
            let dense = match p.rhs {
                Right::Plain(view) if view.row_stride == 1 && view.col_stride != 1 => Some(Columns::Strided(view)),
                Right::Columns(data, starts) => Some(Columns::Anywhere(data, starts)),
                _ => None,
            };
            match dense {
                Some(rhs) => {
                    let cols = panels.start * isa.cols..(panels.end * isa.cols).min(n);
                    columns::block(p, rhs, isa, rows, cols, buffers);
                }
                None => block(p, isa, rows, panels, buffers),
            }
        });
    };
    pyrite_threads::each(down * across, task);
}

/// Memory for panels.
pub type Buffer = AVec<u64, ConstAlign<64>>;

thread_local! {
    /// The memory of a thread for panels, left ones and right ones, and for sums.
    static BUFFERS: RefCell<[Buffer; 3]> = RefCell::new(std::array::from_fn(|_| AVec::new(64)));
}

/// A buffer as so many numbers.
pub fn numbers<T: Lane>(buffer: &mut Buffer, count: usize) -> &mut [T] {
    let words = (count * size_of::<T>()).div_ceil(8);
    if buffer.len() < words {
        buffer.resize(words, 0);
    }
    // SAFETY: the buffer has room for `count` numbers, is aligned for them, and any bits are numbers, since only
    // floating-point types are lanes.
    #[expect(unsafe_code, reason = "one buffer serves all types")]
    unsafe {
        std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<T>(), count)
    }
}

/// Computes some rows and right panels of the output.
// SAFETY: as for `run`; nobody else computes this block.
#[expect(unsafe_code, reason = "operands are raw memory")]
unsafe fn block<S: Source<T>, T: Lane>(
    p: &Gemm<'_, S, T>,
    isa: &Isa<T>,
    rows: Range<usize>,
    panels: Range<usize>,
    [left, right, _]: &mut [Buffer; 3],
) {
    let (m, n, k) = p.sizes;
    if rows.is_empty() || panels.is_empty() {
        return;
    }
    let height = rows.len().div_ceil(rows.len().div_ceil(isa.rows()));
    let depth = depth_of(k);
    let at_once = (CACHED / (depth * isa.cols * size_of::<T>())).max(1);
    let left = numbers::<T>(left, PANEL_ROWS * PANEL);
    let right = numbers::<T>(right, at_once * depth * isa.cols);
    let mut edge = [T::ZERO; PANEL_ROWS * 32];
    for group in panels.clone().step_by(at_once) {
        let group = group..(group + at_once).min(panels.end);
        for step in (0..k).step_by(depth) {
            let depth = depth.min(k - step);
            let start = if step == 0 { p.start } else { Start::Scaled(T::ONE) };
            let mut direct = None;
            if let Right::Plain(view) = &p.rhs {
                // A matrix whose rows are dense is read once for a single left panel, so it is not copied for it, but for
                // the panel that its end cuts.
                if S::SAME && view.col_stride == 1 && rows.len() <= isa.rows() {
                    direct = Some(view);
                }
                let whole =
                    if direct.is_some() { whole_panels(isa, n).clamp(group.start, group.end) } else { group.start };
                if whole < group.end {
                    let cols = (group.end * isa.cols).min(n) - whole * isa.cols;
                    let to = &mut right[(whole - group.start) * depth * isa.cols..];
                    let to = &mut to[..(group.end - whole) * depth * isa.cols];
                    // SAFETY: the matrix has these steps and columns.
                    unsafe { pack_right(isa, *view, (step, whole * isa.cols), (depth, cols), to) };
                }
            }
            for row in rows.clone().step_by(height) {
                let height = height.min(rows.end - row);
                // SAFETY: the matrix has these rows and steps.
                unsafe { pack_left(isa, p.lhs, (row, step), (height, depth), m, left) };
                for (index, panel) in group.clone().enumerate() {
                    let (first, width) = (panel * isa.cols, isa.cols);
                    // The last tile may be a narrow one.
                    let isa = isa.narrow.filter(|narrow| n - first <= narrow.cols).unwrap_or(isa);
                    let (rhs, rhs_step) = match (&p.rhs, direct) {
                        (Right::Rows(data, _), _) => (data.wrapping_add(first), 0),
                        (Right::Packed(packed), _) => (packed.panel(step, depth, panel), width),
                        (_, Some(view)) if first + isa.cols <= n => (view.at(step, first).cast::<T>(), view.row_stride),
                        _ => (right[index * depth * width..].as_ptr(), width),
                    };
                    let (compute, starts) = match &p.rhs {
                        Right::Rows(_, starts) => (isa.indirect, starts[step..].as_ptr()),
                        _ => (isa.compute, std::ptr::null()),
                    };
                    let out = p.out.wrapping_add(row * p.out_step + first);
                    let whole = first + isa.cols <= n;
                    let start = match start {
                        Start::Row(bias) => Start::Row(bias.wrapping_add(first)),
                        other => other,
                    };
                    let mut tile = Tile {
                        depth,
                        lhs: left.as_ptr(),
                        rhs,
                        rhs_step,
                        starts,
                        out,
                        out_step: p.out_step,
                        scale: p.scale,
                        start,
                        hints: [
                            (out.cast_const(), p.out_step),
                            (out.wrapping_add(width / 2).cast_const(), p.out_step),
                            ahead(p.lhs, (row + height + 2 * index, step)),
                            ahead(p.lhs, (row + height + 2 * index + 1, step)),
                        ],
                    };
                    if !whole {
                        (tile.out, tile.out_step) = (edge.as_mut_ptr(), width);
                        (tile.scale, tile.start) = (T::ONE, Start::Nothing);
                    }
                    // SAFETY: both panels are filled, and the output has this tile, or the edge has it.
                    unsafe { compute[height - 1](&tile) };
                    if !whole {
                        // SAFETY: the output has these rows and columns.
                        unsafe { copy_edge(&edge, width, p, start, (row, height), (first, n - first)) };
                    }
                }
                if let Some(finish) = p.finish
                    && step + depth == k
                    && group.end == panels.end
                {
                    finish(row..row + height);
                }
            }
        }
    }
}

/// How many panels a matrix of so many columns fills, the last of which may be a narrow one.
fn whole_panels<T>(isa: &Isa<T>, cols: usize) -> usize {
    let rest = cols % isa.cols;
    cols / isa.cols + usize::from(isa.narrow.is_some_and(|narrow| narrow.cols == rest))
}

/// Where steps of a left operand's row begin, for [`Tile::hints`]; there need not be such a row.
fn ahead<S: Source<T>, T: Lane>(from: View<S>, (row, step): (usize, usize)) -> (*const T, usize) {
    (from.at(row, step).cast::<T>(), LINE)
}

/// Puts a tile that the right edge of the output cuts where it belongs.
// SAFETY: callers make sure that the output has these rows and columns.
#[expect(unsafe_code, reason = "the output is raw memory")]
unsafe fn copy_edge<S, T: Lane>(
    edge: &[T],
    width: usize,
    p: &Gemm<'_, S, T>,
    start: Start<T>,
    (row, height): (usize, usize),
    (first, cols): (usize, usize),
) {
    for (r, sums) in edge.chunks_exact(width).take(height).enumerate() {
        for (col, sum) in sums[..cols].iter().enumerate() {
            // SAFETY: as above.
            unsafe {
                let out = p.out.add((row + r) * p.out_step + first + col);
                *out = match start {
                    Start::Nothing => p.scale.times_plus(*sum, T::ZERO),
                    Start::Scaled(factor) => p.scale.times_plus(*sum, factor.times_plus(*out, T::ZERO)),
                    Start::Row(bias) => p.scale.times_plus(*sum, *bias.add(col)),
                };
            }
        }
    }
}
