//! Right operands packed into panels once, for matmuls that use the same matrix again and again.

use std::cell::RefCell;

use aligned_vec::AVec;

use crate::Matrix;
use crate::blocked::{Buffer, numbers};
use crate::pack::{Source, View, pack_right};
use crate::tile::{Isa, Lane, depth_of};

/// A right operand in panels; it is a copy and knows nothing of later writes to the matrix.
pub struct Packed<T: Lane> {
    panels: Buffer,
    /// How many numbers the panels have.
    len: usize,
    rows: usize,
    cols: usize,
    isa: &'static Isa<T>,
    life: Life,
}

/// How long panels are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Across calls: they have memory of their own.
    Long,
    /// For a few matmuls: the memory of earlier panels is reused.
    Short,
}

/// At most this many blocks of memory wait for the next panels of a thread.
const SPARE: usize = 4;
/// Larger ones, in words, are given back.
const SPARE_WORDS: usize = 1 << 19;

thread_local! {
    /// The memory of panels that are gone.
    static GONE: RefCell<Vec<Buffer>> = const { RefCell::new(Vec::new()) };
}

impl<T: Lane> Drop for Packed<T> {
    fn drop(&mut self) {
        if self.life == Life::Short && self.panels.len() <= SPARE_WORDS {
            let memory = std::mem::replace(&mut self.panels, AVec::new(64));
            GONE.with_borrow_mut(|gone| {
                if gone.len() < SPARE {
                    gone.push(memory);
                }
            });
        }
    }
}

impl<T: Lane> Packed<T> {
    /// Whether matmuls of so many rows are faster with the matrix in panels than with it as it lies.
    pub fn pays<S: Source<T>>(rows: usize, matrix: Matrix<'_, S>) -> bool {
        let dense = matrix.shape.row_stride == 1 || matrix.shape.col_stride == 1;
        // Few rows read each element once or twice, which takes as long wherever it lies.
        !(S::SAME && dense && S::isa().is_some_and(|isa| rows <= isa.rows()))
    }

    /// Packs a matrix; `None` if matmuls of the type have no microkernels on this processor.
    ///
    /// # Panics
    /// When the matrix leaves its slice.
    pub fn new<S: Source<T>>(matrix: Matrix<'_, S>) -> Option<Self> {
        Some(Self::by(S::isa()?, matrix))
    }

    /// The same for a few matmuls of this thread: memory is taken from earlier panels, and left to later ones.
    ///
    /// # Panics
    /// When the matrix leaves its slice.
    pub fn for_now<S: Source<T>>(matrix: Matrix<'_, S>) -> Option<Self> {
        let memory = GONE.with_borrow_mut(Vec::pop).unwrap_or_else(|| AVec::new(64));
        Some(Self::into_memory(S::isa()?, matrix, memory, Life::Short))
    }

    pub(crate) fn by<S: Source<T>>(isa: &'static Isa<T>, matrix: Matrix<'_, S>) -> Self {
        Self::into_memory(isa, matrix, AVec::new(64), Life::Long)
    }

    fn into_memory<S: Source<T>>(isa: &'static Isa<T>, matrix: Matrix<'_, S>, mut memory: Buffer, life: Life) -> Self {
        matrix.shape.check(matrix.data.len());
        let (rows, cols) = (matrix.shape.rows, matrix.shape.cols);
        let view = View::of(matrix);
        let width = isa.cols;
        let len = rows * cols.div_ceil(width) * width;
        let panels = numbers::<T>(&mut memory, len);
        if rows > 0 && cols > 0 {
            let depth = depth_of(rows);
            let slab = depth * cols.div_ceil(width) * width;
            for (block, slab) in panels.chunks_mut(slab).enumerate() {
                let step = block * depth;
                let depth = depth.min(rows - step);
                pyrite_threads::chunks(slab, depth * width, |panel, to| {
                    let first = panel * width;
                    // SAFETY: the matrix lies within its slice and has these rows and columns.
                    #[expect(unsafe_code, reason = "operands are raw memory")]
                    unsafe {
                        pack_right(isa, view, (step, first), (depth, width.min(cols - first)), to);
                    }
                });
            }
        }
        Self { panels: memory, len, rows, cols, isa, life }
    }

    /// Rows and columns of the matrix.
    pub fn sizes(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Bytes that it takes.
    pub fn nbytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    pub(crate) fn isa(&self) -> &'static Isa<T> {
        self.isa
    }

    /// The panel of a block of steps that begins with `step`.
    pub(crate) fn panel(&self, step: usize, depth: usize, panel: usize) -> *const T {
        let width = self.isa.cols;
        let at = step * self.cols.div_ceil(width) * width + panel * depth * width;
        assert!(at + depth * width <= self.len, "a panel behind the last one");
        self.panels.as_ptr().cast::<T>().wrapping_add(at)
    }
}
