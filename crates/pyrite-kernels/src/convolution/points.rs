//! Convolutions of images of a single position by windows of one: matmuls of all images at once, as in the gates of
//! squeeze-and-excitation blocks.

use super::Geometry;
use crate::gemm::{Factor, Matrix, Onto, Shape, multiply};

/// Whether a convolution is one of these.
pub fn suits(g: &Geometry) -> bool {
    g.groups == 1 && g.is_plain() && g.planes() == (1, 1)
}

/// `out = rows @ right`.
fn rows<T: Factor>(out: &mut [T], rows: &[T], right: Matrix<'_, T>, onto: Onto<T>) {
    let (depth, cols) = (right.shape.rows, right.shape.cols);
    let count = rows.len() / depth;
    let lhs = Matrix { data: rows, shape: Shape::rows_first(count, depth) };
    multiply(out, Shape::rows_first(count, cols), lhs, right, T::from_i64(1), onto);
}

/// [`forward`](super::forward); no size is zero.
pub fn forward<T: Factor>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let (inner, outer) = g.channels;
    let onto = match bias {
        Some(bias) => {
            y.chunks_exact_mut(outer).for_each(|y| y.copy_from_slice(bias));
            Onto::Scaled(T::from_i64(1))
        }
        None => Onto::Nothing,
    };
    rows(y, x, Matrix { data: weight, shape: Shape::rows_first(outer, inner).transposed() }, onto);
}

/// [`into_windows`](super::into_windows); no size is zero.
pub fn into_windows<T: Factor>(g: &Geometry, y: &[T], weight: &[T], x: &mut [T]) {
    let (inner, outer) = g.channels;
    rows(x, y, Matrix { data: weight, shape: Shape::rows_first(outer, inner) }, Onto::Nothing);
}

/// [`onto_weight`](super::onto_weight); no size is zero.
pub fn onto_weight<T: Factor>(g: &Geometry, y: &[T], x: &[T], weight: &mut [T]) {
    let (inner, outer) = g.channels;
    let y = Matrix { data: y, shape: Shape::rows_first(g.batch, outer).transposed() };
    let x = Matrix { data: x, shape: Shape::rows_first(g.batch, inner) };
    multiply(weight, Shape::rows_first(outer, inner), y, x, T::from_i64(1), Onto::Nothing);
}
