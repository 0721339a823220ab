//! Right operands kept in panels, for products that take the same matrix again and again.

use aligned_vec::{AVec, ConstAlign};

use crate::Matrix;
use crate::pack::{Source, View, pack_right};
use crate::tile::{DEPTH, Isa, Lane};

/// A right operand in panels; it is a copy and knows nothing of later writes to the matrix.
pub struct Packed<T: Lane> {
    panels: AVec<T, ConstAlign<64>>,
    rows: usize,
    cols: usize,
    isa: &'static Isa<T>,
}

impl<T: Lane> Packed<T> {
    /// Packs a matrix; `None` where products of the type have no microkernels here.
    ///
    /// # Panics
    /// When the matrix leaves its slice.
    pub fn new<S: Source<T>>(matrix: Matrix<'_, S>) -> Option<Self> {
        Some(Self::by(S::isa()?, matrix))
    }

    pub(crate) fn by<S: Source<T>>(isa: &'static Isa<T>, matrix: Matrix<'_, S>) -> Self {
        matrix.shape.check(matrix.data.len());
        let (rows, cols) = (matrix.shape.rows, matrix.shape.cols);
        let view = View::of(matrix);
        let width = isa.cols;
        let mut panels = AVec::with_capacity(64, rows * cols.div_ceil(width) * width);
        panels.resize(rows * cols.div_ceil(width) * width, T::ZERO);
        if rows > 0 && cols > 0 {
            let depth = rows.div_ceil(rows.div_ceil(DEPTH));
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
        Self { panels, rows, cols, isa }
    }

    /// Rows and columns of the matrix.
    pub fn sizes(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Bytes that it takes.
    pub fn nbytes(&self) -> usize {
        self.panels.len() * size_of::<T>()
    }

    pub(crate) fn isa(&self) -> &'static Isa<T> {
        self.isa
    }

    /// The panel of a block of steps that begins with `step`.
    pub(crate) fn panel(&self, step: usize, depth: usize, panel: usize) -> *const T {
        let width = self.isa.cols;
        let at = step * self.cols.div_ceil(width) * width + panel * depth * width;
        self.panels[at..at + depth * width].as_ptr()
    }
}
