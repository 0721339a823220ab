//! Operands copied into the order in which microkernels read them, converted on the way.
//!
//! A left panel has a row for each row of its tile, [`PANEL`] elements apart. A right panel has a row of
//! [`Isa::cols`] elements for each step of the sum, filled up with zeros where the matrix ends.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::tile::{Isa, Lane, PANEL, pairs};
use crate::{Matrix, Shape};

/// An operand's element type in matmuls of `T`.
///
/// # Safety
/// Where [`Self::SAME`] is true, the type has the size, the alignment and the valid bits of `T`: matrices of it are read as
/// matrices of `T`.
#[expect(unsafe_code, reason = "a promise about bits that are cast")]
pub unsafe trait Source<T: Lane>: Copy + Send + Sync + 'static {
    /// Whether its bits are those of a `T`.
    const SAME: bool;
    /// Its value, as microkernels take it.
    fn value(self) -> T;
    /// The values of as many elements.
    fn values(from: &[Self], to: &mut [T]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.value();
        }
    }
    /// The microkernels for it on the processor at hand.
    fn isa() -> Option<&'static Isa<T>> {
        T::isas().first().copied()
    }
}

macro_rules! source {
    ($($from:ty => $to:ty, $same:literal, |$x:ident| $value:expr $(, $values:path)?;)*) => {
        // SAFETY: only a type itself is said to be the same.
        $(#[expect(unsafe_code, reason = "a promise about bits that are cast")]
        unsafe impl Source<$to> for $from {
            const SAME: bool = $same;
            fn value(self) -> $to {
                let $x = self;
                $value
            }
            $(fn values(from: &[Self], to: &mut [$to]) {
                $values(from, to);
            })?
        })*
    };
}

source! {
    f32 => f32, true, |x| x;
    f64 => f64, true, |x| x;
    // The upper half of a number in single precision; a loop of these is one of vectors.
    bf16 => f32, false, |x| f32::from_bits(u32::from(x.to_bits()) << 16);
    f16 => f32, false, |x| x.to_f32(), halves;
}

/// Where the processor converts vectors, the library does.
fn halves(from: &[f16], to: &mut [f32]) {
    let count = from.len().min(to.len());
    from[..count].convert_to_f32_slice(&mut to[..count]);
}

/// Two neighbours of `bf16`, multiplied with two others at a time. The instruction takes subnormal numbers for zero.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Pair(f32);

// SAFETY: it is a transparent `f32`.
#[expect(unsafe_code, reason = "a promise about bits that are cast")]
unsafe impl Source<f32> for Pair {
    const SAME: bool = true;

    fn value(self) -> f32 {
        self.0
    }

    fn isa() -> Option<&'static Isa<f32>> {
        pairs()
    }
}

impl Pair {
    /// A matrix whose rows are dense as one of pairs of neighbours in a row, if the processor multiplies those and no
    /// element is left over.
    pub fn of_rows(matrix: Matrix<'_, bf16>) -> Option<Matrix<'_, Self>> {
        let (shape, start) = (matrix.shape, matrix.data.as_ptr());
        let even = shape.cols.is_multiple_of(2) && (shape.rows == 1 || shape.row_stride.is_multiple_of(2));
        let fits = even && shape.col_stride == 1 && start.addr().is_multiple_of(align_of::<Self>());
        if !fits || pairs().is_none() {
            return None;
        }
        // SAFETY: the elements are there, two for each pair, any bits are a pair, and the address is aligned.
        #[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "two elements are looked at as one")]
        let data = unsafe { std::slice::from_raw_parts(start.cast::<Self>(), matrix.data.len() / 2) };
        Some(Matrix { data, shape: Shape { cols: shape.cols / 2, row_stride: shape.row_stride / 2, ..shape } })
    }
}

/// A matrix in memory that somebody else keeps alive and does not write meanwhile.
#[derive(Clone, Copy)]
pub struct View<S> {
    /// Its first element.
    pub data: *const S,
    /// Elements from one row to the next.
    pub row_stride: usize,
    /// Elements from one column to the next.
    pub col_stride: usize,
}

// SAFETY: a view is only read, and whoever makes one keeps its memory unchanged while threads have it.
#[expect(unsafe_code, reason = "threads read operands through raw memory")]
unsafe impl<S: Sync> Send for View<S> {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "threads read operands through raw memory")]
unsafe impl<S: Sync> Sync for View<S> {}

impl<S> View<S> {
    /// The address of an element.
    pub fn at(&self, row: usize, col: usize) -> *const S {
        self.data.wrapping_add(row * self.row_stride + col * self.col_stride)
    }
}

/// Rows of a left panel, one more than any tile has, so that whole squares can be transposed.
pub const PANEL_ROWS: usize = 16;

/// Fills a left panel with `rows` rows from `first.0` on and `depth` steps from `first.1` on, of a matrix that has
/// `all` rows.
// SAFETY: callers hand over a view that holds all of these elements.
#[expect(unsafe_code, reason = "operands are raw memory")]
pub unsafe fn pack_left<S: Source<T>, T: Lane>(
    isa: &Isa<T>,
    from: View<S>,
    first: (usize, usize),
    (rows, depth): (usize, usize),
    all: usize,
    to: &mut [T],
) {
    assert!(rows <= PANEL_ROWS && depth <= PANEL && to.len() >= PANEL_ROWS * PANEL);
    let side = isa.square;
    let transposes = S::SAME && from.row_stride == 1 && from.col_stride != 1;
    let (mut row, mut wide) = (0, 0);
    if transposes {
        wide = depth / side * side;
        while row < rows && first.0 + row + side <= all {
            for step in (0..wide).step_by(side) {
                let square = from.at(first.0 + row, first.1 + step).cast::<T>();
                // SAFETY: the square lies within the matrix, and `row + side` is at most `PANEL_ROWS`, since that is a
                // multiple of `side`; the processor has the instructions of its own table.
                unsafe { (isa.transpose)(square, from.col_stride, to.as_mut_ptr().add(row * PANEL + step), PANEL) };
            }
            row += side;
        }
    }
    for r in 0..rows {
        let begin = if r < row { wide } else { 0 };
        let target = &mut to[r * PANEL + begin..r * PANEL + depth];
        let source = from.at(first.0 + r, first.1 + begin);
        // SAFETY: the view holds `depth` steps of this row.
        unsafe { gather(source, from.col_stride, target) };
    }
}

/// Copies elements that lie a stride apart.
// SAFETY: callers make sure that there are as many elements as the target has.
#[expect(unsafe_code, reason = "operands are raw memory")]
unsafe fn gather<S: Source<T>, T: Lane>(from: *const S, stride: usize, to: &mut [T]) {
    if stride == 1 && S::SAME {
        // SAFETY: as above, and the elements have the bits of the target's; what is written is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<T>(), to.as_mut_ptr(), to.len()) };
    } else if stride == 1 {
        // SAFETY: as above.
        let from = unsafe { std::slice::from_raw_parts(from, to.len()) };
        S::values(from, to);
    } else {
        for (i, to) in to.iter_mut().enumerate() {
            // SAFETY: as above.
            *to = unsafe { *from.add(i * stride) }.value();
        }
    }
}

/// Fills right panels, one after the other, with `depth` steps from `first.0` on and `cols` columns from `first.1` on.
// SAFETY: callers hand over a view that holds all of these elements.
#[expect(unsafe_code, reason = "operands are raw memory")]
pub unsafe fn pack_right<S: Source<T>, T: Lane>(
    isa: &Isa<T>,
    from: View<S>,
    first: (usize, usize),
    (depth, cols): (usize, usize),
    to: &mut [T],
) {
    let width = isa.cols;
    assert!(to.len() == cols.div_ceil(width) * depth * width);
    if from.row_stride == 1 && from.col_stride != 1 {
        for (panel, to) in to.chunks_exact_mut(depth * width).enumerate() {
            let begin = panel * width;
            // SAFETY: as above.
            unsafe { transpose_panel(isa, from, (first.0, first.1 + begin), (depth, width.min(cols - begin)), to) };
        }
        return;
    }
    // Some panels at a time, row by row: rows are what lies together in memory, and few panels are written at a time.
    for (group, to) in to.chunks_mut(TOGETHER * depth * width).enumerate() {
        let begin = group * TOGETHER * width;
        let cols = cols - begin;
        for step in 0..depth {
            let row = from.at(first.0 + step, first.1 + begin);
            for (panel, to) in to.chunks_exact_mut(depth * width).enumerate() {
                let to = &mut to[step * width..][..width];
                let (row, count) = (row.wrapping_add(panel * width * from.col_stride), width.min(cols - panel * width));
                // SAFETY: the view holds these columns of this row.
                unsafe {
                    if S::SAME && from.col_stride == 1 && count == WIDE {
                        // The usual width: a copy whose length is known is a few instructions.
                        std::ptr::copy_nonoverlapping(row.cast::<T>(), to.as_mut_ptr(), WIDE);
                    } else {
                        gather(row, from.col_stride, &mut to[..count]);
                        to[count..].fill(T::ZERO);
                    }
                }
            }
        }
    }
}

/// Right panels that are filled at a time.
const TOGETHER: usize = 4;
/// Columns of the widest panels.
const WIDE: usize = 32;

/// Fills a right panel from a matrix whose columns are dense.
// SAFETY: callers hand over a view that holds all of these elements.
#[expect(unsafe_code, reason = "operands are raw memory")]
unsafe fn transpose_panel<S: Source<T>, T: Lane>(
    isa: &Isa<T>,
    from: View<S>,
    first: (usize, usize),
    (depth, cols): (usize, usize),
    to: &mut [T],
) {
    let (width, side) = (isa.cols, isa.square);
    let (mut wide, mut deep) = (0, 0);
    if S::SAME {
        (wide, deep) = (cols / side * side, depth / side * side);
        for step in (0..deep).step_by(side) {
            for col in (0..wide).step_by(side) {
                let square = from.at(first.0 + step, first.1 + col).cast::<T>();
                // SAFETY: the square lies within the matrix and its copy within the panel; the processor has the
                // instructions of its own table.
                unsafe { (isa.transpose)(square, from.col_stride, to.as_mut_ptr().add(step * width + col), width) };
            }
        }
    }
    for col in 0..cols {
        let begin = if col < wide { deep } else { 0 };
        for step in begin..depth {
            // SAFETY: the view holds this element.
            to[step * width + col] = unsafe { *from.at(first.0 + step, first.1 + col) }.value();
        }
    }
    if cols < width {
        to.chunks_exact_mut(width).for_each(|row| row[cols..].fill(T::ZERO));
    }
}
