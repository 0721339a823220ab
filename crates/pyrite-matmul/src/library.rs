//! Products by the `gemm` crate.

use gemm::Parallelism;
use num_complex::{Complex32, Complex64};

use crate::{Matrix, Onto, Provider, Shape, Threads, check};

/// The `gemm` crate as a provider.
pub struct Library;

macro_rules! library {
    ($($type:ty, $zero:expr;)*) => {
        $(impl Provider<$type> for Library {
            #[expect(unsafe_code, reason = "gemm takes pointers")]
            fn product(
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
                let threads = match threads {
                    Threads::One => Parallelism::None,
                    Threads::All => Parallelism::Rayon(0),
                };
                // SAFETY: the three pointers come from slices that hold every element that sizes and strides reach;
                // the output is borrowed exclusively and no two of its positions share an element, so threads write
                // apart; `gemm` knows the type.
                unsafe {
                    gemm::gemm(
                        shape.rows,
                        shape.cols,
                        lhs.shape.cols,
                        out.as_mut_ptr(),
                        shape.col_stride as isize,
                        shape.row_stride as isize,
                        read_out,
                        lhs.data.as_ptr(),
                        lhs.shape.col_stride as isize,
                        lhs.shape.row_stride as isize,
                        rhs.data.as_ptr(),
                        rhs.shape.col_stride as isize,
                        rhs.shape.row_stride as isize,
                        factor,
                        scale,
                        false,
                        false,
                        false,
                        threads,
                    );
                }
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
