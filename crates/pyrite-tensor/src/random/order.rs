//! The order in which PyTorch visits the elements of an output that it fills.
//!
//! PyTorch does not fill a tensor in the order of its shape but in the order of its strides: the dimension with the
//! smallest stride is the fastest. For a dense tensor that is the order of memory; for a sliced one it is the order
//! of its addresses. Dimensions of stride zero keep their place among the others. The sort is PyTorch's insertion
//! sort, because with ambiguous comparisons the result depends on it.

use smallvec::SmallVec;

use crate::walk::Walk;
use crate::{Element, Layout, Tensor};

/// The dimensions, slowest first.
pub(super) fn visit_order(layout: &Layout) -> SmallVec<[usize; 6]> {
    let (shape, stride) = (&layout.shape, &layout.stride);
    // A dimension of one element is never walked along, so its stride must not decide anything.
    let mut order: SmallVec<[usize; 6]> = (0..shape.len()).rev().filter(|d| shape[*d] != 1).collect();
    for i in 1..order.len() {
        let mut moving = i;
        for at in (0..i).rev() {
            let (fast, slow) = (order[at], order[moving]);
            if stride[fast] == 0 || stride[slow] == 0 {
                continue;
            }
            if stride[fast] > stride[slow] || (stride[fast] == stride[slow] && shape[fast] > shape[slow]) {
                order.swap(at, moving);
                moving = at;
            } else if stride[fast] < stride[slow] {
                break;
            }
        }
    }
    order.reverse();
    order
}

/// Stores what `draw` gives, one element after the other in visiting order.
pub(super) fn fill<T: Element>(out: &Tensor, mut draw: impl FnMut() -> T) {
    debug_assert_eq!(T::DTYPE, out.dtype());
    let order = visit_order(out.layout());
    let shape: SmallVec<[i64; 6]> = order.iter().map(|d| out.shape()[*d]).collect();
    let stride: SmallVec<[i64; 6]> = order.iter().map(|d| out.stride()[*d]).collect();
    let walk = Walk::new(&shape, &[&stride]);
    let step = walk.row_strides[0] as usize;
    let mut data = out.storage().write::<T>();
    walk.each_row(|at| {
        let start = (out.layout().offset + at[0]) as usize;
        for i in 0..walk.row {
            data[start + i * step] = draw();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn a_transposed_tensor_is_filled_in_the_order_of_memory() {
        let out = Tensor::empty_strided(&[2, 3], &[1, 2], DType::I64).unwrap();
        let mut next = 0i64;
        fill(&out, || {
            next += 1;
            next
        });
        assert_eq!(out.to_vec::<i64>(), [1, 3, 5, 2, 4, 6]);
    }

    #[test]
    fn zero_strides_and_single_elements_keep_their_place() {
        assert_eq!(visit_order(&Layout::new(&[2, 3, 4], &[4, 0, 1], 0)).as_slice(), [0, 1, 2]);
        assert_eq!(visit_order(&Layout::new(&[2, 1, 4], &[1, 1, 2], 0)).as_slice(), [2, 0]);
        assert_eq!(visit_order(&Layout::new(&[2, 3, 4, 5], &[60, 1, 15, 3], 0)).as_slice(), [0, 2, 3, 1]);
    }
}
