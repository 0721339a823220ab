//! Products by the `gemm` crate, which gets parts of the output to compute, one for each of our threads.

use gemm::Parallelism;
use num_complex::{Complex32, Complex64};

use crate::{Matrix, Onto, Provider, Shape, Threads, check};

/// Rows or columns that a thread gets at least.
const LEAST: usize = 16;

/// The `gemm` crate as a provider.
pub struct Library;

/// The output, of which each thread writes a part of its own.
struct Output<T>(*mut T);

impl<T> Output<T> {
    fn at(&self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }
}

// SAFETY: an address is only a number until it is followed, and threads follow it to parts of their own.
#[expect(unsafe_code, reason = "threads write to parts of one output")]
unsafe impl<T: Send> Sync for Output<T> {}

macro_rules! library {
    ($($type:ty, $zero:expr;)*) => {
        $(impl Provider<$type> for Library {
            #[expect(unsafe_code, reason = "gemm takes pointers")]
            fn gemm(
                &self,
                (out, shape): (&mut [$type], Shape),
                lhs: Matrix<'_, $type>,
                rhs: Matrix<'_, $type>,
                scale: $type,
                onto: Onto<$type>,
                threads: Threads,
            ) {
                shape.check(out.len());
                check(shape, lhs, (rhs.shape.rows, rhs.shape.cols));
                rhs.shape.check(rhs.data.len());
                let (read_out, factor) = match onto {
                    Onto::Nothing => (false, $zero),
                    Onto::Scaled(factor) => (true, factor),
                };
                let out = Output(out.as_mut_ptr());
                let by_rows = shape.rows > shape.cols;
                let whole = if by_rows { shape.rows } else { shape.cols };
                let parts = threads.count().min(whole / LEAST).max(1);
                pyrite_threads::each(parts, |part| {
                    let (begin, end) = (part * whole / parts, (part + 1) * whole / parts);
                    let (row, col) = if by_rows { (begin, 0) } else { (0, begin) };
                    let (rows, cols) = if by_rows { (end - begin, shape.cols) } else { (shape.rows, end - begin) };
                    // SAFETY: the three pointers come from slices that hold every element that sizes and strides
                    // reach; the output is borrowed exclusively and no two of its positions share an element, so
                    // threads write apart; `gemm` knows the type.
                    unsafe {
                    gemm::gemm(
                        rows,
                        cols,
                        lhs.shape.cols,
                        out.at(row * shape.row_stride + col * shape.col_stride),
                        shape.col_stride as isize,
                        shape.row_stride as isize,
                        read_out,
                        lhs.data.as_ptr().wrapping_add(row * lhs.shape.row_stride),
                        lhs.shape.col_stride as isize,
                        lhs.shape.row_stride as isize,
                        rhs.data.as_ptr().wrapping_add(col * rhs.shape.col_stride),
                        rhs.shape.col_stride as isize,
                        rhs.shape.row_stride as isize,
                        factor,
                        scale,
                        false,
                        false,
                        false,
                        Parallelism::None,
                    );
                    }
                });
            }
        })*
    };
}

library! {
    f32, 0.0;
    f64, 0.0;
    Complex32, Complex32::new(0.0, 0.0);
    Complex64, Complex64::new(0.0, 0.0);
}
