//! Tensors as rows of elements: borrowing where memory allows, and splitting along dimensions.
//!
//! A *lane* is the run of elements that one result is computed from, such as a row that is summed. Reductions over
//! several dimensions see lanes of all of them together ([`reduce`]); operators along one dimension of a dense tensor
//! see an outer-lane-inner block ([`Block`]).

use std::ops::Deref;

use pyrite_tensor::storage::Reading;
use pyrite_tensor::walk::Walk;
use pyrite_tensor::{Element, Tensor};

use crate::Carrier;

/// Below this many elements a loop stays on one thread.
pub const PARALLEL: usize = 1 << 15;

/// The elements of a tensor in order, borrowed or converted.
pub enum Elements<'a, T: Element> {
    /// The tensor's own memory.
    Borrowed(Reading<'a, T>),
    /// A copy.
    Owned(Vec<T>),
}

impl<T: Element> Deref for Elements<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Self::Borrowed(slice) => slice,
            Self::Owned(vec) => vec,
        }
    }
}

/// The elements of a tensor in order, without a copy where it is dense and of this very type.
pub fn elements<T: Carrier>(tensor: &Tensor) -> Elements<'_, T> {
    if tensor.dtype() == T::DTYPE
        && let Some(slice) = tensor.as_slice::<T>()
    {
        return Elements::Borrowed(slice);
    }
    Elements::Owned(T::load(tensor))
}

/// Lets `f` write the elements of a fresh tensor in order, straight into its memory where it is dense and of this
/// very type.
pub fn fill<T: Carrier>(tensor: &Tensor, f: impl FnOnce(&mut [T])) {
    if tensor.dtype() == T::DTYPE && tensor.layout().is_contiguous() {
        let (start, len) = (tensor.layout().offset as usize, tensor.numel());
        f(&mut tensor.storage().write::<T>()[start..start + len]);
    } else {
        let mut values = vec![T::from_i64(0); tensor.numel()];
        f(&mut values);
        T::store(tensor, &values);
    }
}

/// A dense tensor seen along one dimension.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Positions before the dimension.
    pub outer: usize,
    /// The dimension's size.
    pub len: usize,
    /// Positions after the dimension: the distance between neighbours of a lane.
    pub inner: usize,
}

impl Block {
    /// The block of a shape along a dimension; a shape without dimensions is one lane of one element.
    pub fn new(shape: &[i64], dim: usize) -> Self {
        let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        if shape.is_empty() {
            return Self { outer: 1, len: 1, inner: 1 };
        }
        Self { outer: product(&shape[..dim]), len: shape[dim] as usize, inner: product(&shape[dim + 1..]) }
    }

    /// The number of lanes.
    pub fn lanes(self) -> usize {
        self.outer * self.inner
    }

    /// Where a lane starts; its elements are `inner` apart.
    pub fn start(self, lane: usize) -> usize {
        lane / self.inner * self.len * self.inner + lane % self.inner
    }

    /// Copies a lane out of a dense buffer.
    pub fn gather<T: Copy>(self, from: &[T], lane: usize, to: &mut Vec<T>) {
        to.clear();
        let start = self.start(lane);
        to.extend((0..self.len).map(|i| from[start + i * self.inner]));
    }

    /// Copies a lane into a dense buffer.
    pub fn scatter<T: Copy>(self, lane: &[T], index: usize, to: &mut [T]) {
        let start = self.start(index);
        for (i, value) in lane.iter().enumerate() {
            to[start + i * self.inner] = *value;
        }
    }
}

/// The order of dimensions that puts the reduced ones last, each group in its own order.
pub fn reduced_last(rank: usize, dims: &[usize]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..rank).filter(|d| !dims.contains(d)).collect();
    let kept = order.len();
    order.extend((0..rank).filter(|d| dims.contains(d)));
    (order, kept)
}

/// Applies `f` to every lane of the reduced dimensions; one result per remaining position, in order.
pub fn reduce<T: Carrier, R: Send>(tensor: &Tensor, dims: &[usize], f: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    let (order, kept) = reduced_last(tensor.rank(), dims);
    let view = tensor.permuted(&order);
    let lanes = view.shape()[..kept].iter().product::<i64>() as usize;
    let len = view.shape()[kept..].iter().product::<i64>() as usize;
    if len == 0 {
        return (0..lanes).map(|_| f(&[])).collect();
    }
    let values = elements::<T>(&view);
    if values.len() >= PARALLEL && lanes > 1 {
        pyrite_threads::map(values.len().div_ceil(len), |lane| {
            f(&values[lane * len..values.len().min((lane + 1) * len)])
        })
    } else {
        values.chunks(len).map(f).collect()
    }
}

/// The sum of `term(x, about)` over the reduced dimensions of an `f32` tensor of any layout, in `f64`, where `about`
/// is a number per result (all zero when `None`). One result per remaining position, in order.
pub fn accumulate(
    tensor: &Tensor,
    dims: &[usize],
    about: Option<&[f64]>,
    term: impl Fn(f64, f64) -> f64 + Sync,
) -> Vec<f64> {
    let rank = tensor.rank();
    let mut targets = vec![0i64; rank];
    let mut results = 1i64;
    for d in (0..rank).rev().filter(|d| !dims.contains(d)) {
        targets[d] = results;
        results *= tensor.shape()[d];
    }
    let mut sums = vec![0.0; results as usize];
    if tensor.numel() == 0 {
        return sums;
    }
    let zeros = if about.is_none() { vec![0.0; sums.len()] } else { Vec::new() };
    let about = about.unwrap_or(&zeros);
    // Memory order, so that rows are as long as can be.
    let mut order: Vec<usize> = (0..rank).collect();
    order.sort_by_key(|d| std::cmp::Reverse(tensor.stride()[*d]));
    let view = tensor.permuted(&order);
    let targets: Vec<i64> = order.iter().map(|d| targets[*d]).collect();
    let data = tensor.storage().read::<f32>();
    let base = tensor.layout().offset;
    let part = |shape: &[i64], first: i64, sums: &mut [f64]| {
        let walk = Walk::new(shape, &[view.stride(), &targets]);
        let (step, target_step) = (walk.row_strides[0] as usize, walk.row_strides[1] as usize);
        walk.each_row(|at| {
            let (from, to) = ((base + first + at[0]) as usize, at[1] as usize);
            if target_step == 0 || walk.row == 1 {
                let about = about[to];
                sums[to] += if step == 1 {
                    sum_row(&data[from..from + walk.row], |x| term(x, about))
                } else {
                    (0..walk.row).map(|i| term(f64::from(data[from + i * step]), about)).sum::<f64>()
                };
            } else if step == 1 && target_step == 1 {
                let (sums, about) = (&mut sums[to..to + walk.row], &about[to..to + walk.row]);
                for ((sum, x), about) in sums.iter_mut().zip(&data[from..from + walk.row]).zip(about) {
                    *sum += term(f64::from(*x), *about);
                }
            } else {
                for i in 0..walk.row {
                    let cell = to + i * target_step;
                    sums[cell] += term(f64::from(data[from + i * step]), about[cell]);
                }
            }
        });
    };
    // Pieces along a reduced dimension have sums of their own; few results make that cheap.
    let split = (0..rank).filter(|d| targets[*d] == 0).max_by_key(|d| view.shape()[*d]);
    match split {
        Some(d) if tensor.numel() >= PARALLEL && sums.len() * 16 <= tensor.numel() && view.shape()[d] > 1 => {
            let pieces = (pyrite_threads::count() as i64).min(view.shape()[d]);
            let size = view.shape()[d];
            let partial: Vec<Vec<f64>> = pyrite_threads::map(pieces as usize, |piece| {
                let piece = piece as i64;
                let (start, end) = (size * piece / pieces, size * (piece + 1) / pieces);
                let mut shape = view.shape().to_vec();
                shape[d] = end - start;
                let mut own = vec![0.0; sums.len()];
                part(&shape, start * view.stride()[d], &mut own);
                own
            });
            for own in partial {
                for (sum, part) in sums.iter_mut().zip(own) {
                    *sum += part;
                }
            }
        }
        _ => part(view.shape(), 0, &mut sums),
    }
    sums
}

/// The sum of `term(x)` over a row, in several independent chains.
pub fn sum_row<T: Element>(row: &[T], term: impl Fn(f64) -> f64) -> f64 {
    let mut chains = [0.0; 8];
    let chunks = row.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (chain, x) in chains.iter_mut().zip(chunk) {
            *chain += term(x.to_f64());
        }
    }
    chains.iter().sum::<f64>() + rest.iter().map(|x| term(x.to_f64())).sum::<f64>()
}
