//! Reading tensors of one shape together, in blocks of elements in logical order, whatever their layouts and types.

use std::ops::ControlFlow;

use pyrite_tensor::element::{BF16, F16};
use pyrite_tensor::storage::Reading;
use pyrite_tensor::walk::Walk;
use pyrite_tensor::{DType, Element, Tensor, dispatch};

use crate::carrier::Carrier;

/// Elements in a block: few enough that the blocks of three tensors stay in the first cache.
const BLOCK: usize = 1024;

/// Something that elements are read from.
trait Source<C> {
    /// Appends elements at equal distances in memory.
    fn push(&self, start: usize, step: usize, count: usize, block: &mut Vec<C>);
}

struct Typed<'a, T, F> {
    data: Reading<'a, T>,
    convert: F,
}

impl<C, T: Element, F: Fn(T) -> C> Source<C> for Typed<'_, T, F> {
    fn push(&self, start: usize, step: usize, count: usize, block: &mut Vec<C>) {
        if step == 1 {
            block.extend(self.data[start..start + count].iter().map(|v| (self.convert)(*v)));
        } else {
            block.extend((0..count).map(|i| (self.convert)(self.data[start + i * step])));
        }
    }
}

fn source<C: Carrier>(tensor: &Tensor) -> Box<dyn Source<C> + '_> {
    let storage = tensor.storage();
    match tensor.dtype() {
        DType::F16 => Box::new(Typed { data: storage.read(), convert: |v: F16| C::of(widen(v.to_bits())) }),
        DType::BF16 => Box::new(Typed {
            data: storage.read(),
            convert: |v: BF16| C::of(f32::from_bits(u32::from(v.to_bits()) << 16)),
        }),
        other => dispatch!(other, T => Box::new(Typed { data: storage.read(), convert: C::of::<T> })),
    }
}

/// A half-precision number by its bits, without branches: the exponent is moved to its place in single precision, and
/// a multiplication corrects its bias, for subnormal numbers too.
fn widen(bits: u16) -> f32 {
    const BIAS: f32 = f32::from_bits((127 + 127 - 15) << 23);
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let scaled = (f32::from_bits(magnitude) * BIAS).to_bits();
    let infinite = if magnitude >= 0x1f << 23 { 0xff << 23 } else { 0 };
    f32::from_bits(scaled | infinite | u32::from(bits & 0x8000) << 16)
}

/// Calls `visit` with the number of the first element and a block of each tensor, until it breaks or all is read.
/// The tensors have one shape.
pub fn each_block<C: Carrier, const N: usize>(
    tensors: [&Tensor; N],
    mut visit: impl FnMut(usize, [&[C]; N]) -> ControlFlow<()>,
) {
    let sources = tensors.map(source::<C>);
    let strides = tensors.map(Tensor::stride);
    let walk = Walk::new(tensors[0].shape(), &strides);
    let mut blocks: [Vec<C>; N] = std::array::from_fn(|_| Vec::with_capacity(BLOCK));
    let mut first = 0;
    let mut flush = |blocks: &mut [Vec<C>; N]| {
        let flow = visit(first, std::array::from_fn(|i| blocks[i].as_slice()));
        first += blocks[0].len();
        blocks.iter_mut().for_each(Vec::clear);
        flow
    };
    let mut flow = ControlFlow::Continue(());
    walk.each_row(|starts| {
        let mut at = 0;
        while at < walk.row && flow.is_continue() {
            let count = (walk.row - at).min(BLOCK - blocks[0].len());
            for i in 0..N {
                let step = walk.row_strides[i] as usize;
                let start = (tensors[i].layout().offset + starts[i]) as usize + at * step;
                sources[i].push(start, step, count, &mut blocks[i]);
            }
            at += count;
            if blocks[0].len() == BLOCK {
                flow = flush(&mut blocks);
            }
        }
    });
    if flow.is_continue() && !blocks[0].is_empty() {
        let _ = flush(&mut blocks);
    }
}

/// Whether two tensors of one shape hold the same bytes in the same order; `false` when it cannot be told quickly.
pub fn same_bytes(a: &Tensor, b: &Tensor) -> bool {
    if a.dtype() != b.dtype() {
        return false;
    }
    let same_order = a.stride() == b.stride() && a.layout().is_dense();
    let both_contiguous = a.layout().is_contiguous() && b.layout().is_contiguous();
    if !(same_order || both_contiguous) {
        return false;
    }
    let (size, elements) = (a.dtype().size(), a.numel());
    if elements == 0 {
        return true;
    }
    let start = |t: &Tensor| t.layout().offset as usize * size;
    let (from, to) = (a.storage().read::<u8>(), b.storage().read::<u8>());
    from[start(a)..][..elements * size] == to[start(b)..][..elements * size]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_precision_number_is_widened_exactly() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (widen(bits), F16::from_bits(bits).to_f32());
            assert!(ours == theirs && ours.is_sign_negative() == theirs.is_sign_negative() || theirs.is_nan());
            assert_eq!(ours.is_nan(), theirs.is_nan());
        }
    }

    #[test]
    fn blocks_come_in_logical_order_from_any_layout() {
        let elements: Vec<i64> = (0..3 * 1000).collect();
        let tall = Tensor::from_slice(&elements, &[1000, 3]);
        let wide = tall.permuted(&[1, 0]);
        let dense = wide.contiguous();
        let mut seen = 0;
        each_block::<i64, 2>([&wide, &dense], |first, [a, b]| {
            assert_eq!(first, seen);
            assert_eq!(a, b);
            assert_eq!(a[0], (first as i64 % 1000) * 3 + first as i64 / 1000);
            seen += a.len();
            ControlFlow::Continue(())
        });
        assert_eq!(seen, 3000);
    }

    #[test]
    fn a_visit_that_breaks_is_the_last() {
        let many = Tensor::zeros(&[10 * BLOCK as i64], DType::F32).unwrap();
        let mut visits = 0;
        each_block::<f64, 1>([&many], |_, _| {
            visits += 1;
            ControlFlow::Break(())
        });
        assert_eq!(visits, 1);
    }
}
