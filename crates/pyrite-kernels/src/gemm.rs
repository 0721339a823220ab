//! Matmuls: `out = keep·out + scale·(lhs @ rhs)`.
//!
//! [`multiply`] works on slices with any row and column strides, [`multiply_batch`] on many such matrices at once,
//! [`multiply_tensors`] on tensors of two or three dimensions and any type. Floats and complex numbers go to the
//! provider of `pyrite-matmul`; integers have a loop of their own that wraps, so they are exact modulo the width of
//! their type; half precision is multiplied in `f32` and rounded once.

use num_complex::{Complex32, Complex64};
pub use pyrite_matmul::{Matrix, Onto, Rows, SLACK, Shape};
use pyrite_matmul::{Threads, provider};
use pyrite_tensor::{DType, Element, Scalar, Tensor};

use crate::simd::{Loop, multiply_add, vectorized};

/// Products with fewer multiplications than this stay on one thread.
const PARALLEL: usize = 1 << 18;
/// Products of `f32` with at most this many multiplications are summed in double precision: that takes no longer, and
/// results that come out of cancellation, as in attention, are as good as can be.
const TINY: usize = 1 << 12;
/// From this many multiplications on, one product is worth all threads; smaller ones of a batch get a thread each.
const LARGE: usize = 1 << 24;

/// Why tensors cannot be multiplied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GemmError {
    /// Tensors of different types, or of other ranks than two and three.
    #[error("a matmul of tensors of different types or ranks")]
    Operands,
    /// Sizes that do not fit each other.
    #[error("{lhs:?} times {rhs:?} is not {out:?}")]
    Shapes {
        /// The left operand's.
        lhs: Vec<i64>,
        /// The right operand's.
        rhs: Vec<i64>,
        /// The output's.
        out: Vec<i64>,
    },
    /// The output shares memory with an operand.
    #[error("a matmul into one of its operands")]
    Aliased,
    /// The output's elements share memory with each other.
    #[error("a matmul into a tensor some of whose elements share memory")]
    Overlapping,
}

/// An element type that [`multiply`] takes.
pub trait Factor: Element + std::ops::Mul<Output = Self> {
    /// Zero.
    const ZERO: Self;
    /// The sum; integers wrap.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The product; integers wrap.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// `self·factor + addend`, rounded once where the type has fractions and `FUSED` says that it costs nothing.
    #[must_use]
    fn times_plus<const FUSED: bool>(self, factor: Self, addend: Self) -> Self;
    /// `out = keep·out + scale·(lhs @ rhs)` where all sizes fit each other and none is zero.
    fn product(
        out: (&mut [Self], Shape),
        lhs: Matrix<'_, Self>,
        rhs: Matrix<'_, Self>,
        scale: Self,
        onto: Onto<Self>,
        threads: Threads,
    );
    /// Whether there are [`Self::product_of_rows`] and [`Self::add_product_of_columns`] on this processor.
    fn takes_rows() -> bool {
        false
    }
    /// `out = lhs @ rhs` where the right operand's rows begin anywhere, on all threads that are free.
    ///
    /// # Panics
    /// Where [`Self::takes_rows`] says no, and where sizes do not fit.
    fn product_of_rows(_out: (&mut [Self], Shape), _lhs: Matrix<'_, Self>, _rhs: Rows<'_, Self>) {
        panic!("matmuls with indirect rows are not supported for this type");
    }
    /// `out += lhs @ rhsᵀ`, likewise.
    ///
    /// # Panics
    /// As [`Self::product_of_rows`].
    fn add_product_of_columns(_out: (&mut [Self], Shape), _lhs: Matrix<'_, Self>, _rhs: Rows<'_, Self>) {
        panic!("matmuls with indirect columns are not supported for this type");
    }
}

macro_rules! factor {
    ($($type:ty, $zero:expr, $times_plus:expr, $tiny:expr;)*) => {
        $(impl Factor for $type {
            const ZERO: Self = $zero;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn times_plus<const FUSED: bool>(self, factor: Self, addend: Self) -> Self {
                // The fused operation is a slow call where it is not an instruction.
                if FUSED { $times_plus(self, factor, addend) } else { self * factor + addend }
            }
            fn product(
                out: (&mut [Self], Shape),
                lhs: Matrix<'_, Self>,
                rhs: Matrix<'_, Self>,
                scale: Self,
                onto: Onto<Self>,
                threads: Threads,
            ) {
                if !$tiny((&mut *out.0, out.1), lhs, rhs, scale, onto) {
                    provider().gemm(out, lhs, rhs, scale, onto, threads);
                }
            }
            fn takes_rows() -> bool {
                provider::<$type>().takes_rows()
            }
            fn product_of_rows(out: (&mut [Self], Shape), lhs: Matrix<'_, Self>, rhs: Rows<'_, Self>) {
                let threads = threads_for(work(out.1, lhs.shape.cols));
                provider().gemm_rows(out, lhs, rhs, threads);
            }
            fn add_product_of_columns(out: (&mut [Self], Shape), lhs: Matrix<'_, Self>, rhs: Rows<'_, Self>) {
                let threads = threads_for(work(out.1, lhs.shape.cols));
                provider().gemm_columns(out, lhs, rhs, threads);
            }
        })*
    };
}

factor! {
    f32, 0.0, f32::mul_add, in_double;
    f64, 0.0, f64::mul_add, never;
    Complex32, Complex32::new(0.0, 0.0), |a: Complex32, b, c| a * b + c, never;
    Complex64, Complex64::new(0.0, 0.0), |a: Complex64, b, c| a * b + c, never;
}

/// The product in double precision, where that is how it is made.
fn in_double(
    (out, shape): (&mut [f32], Shape),
    lhs: Matrix<'_, f32>,
    rhs: Matrix<'_, f32>,
    scale: f32,
    onto: Onto<f32>,
) -> bool {
    let tiny = work(shape, lhs.shape.cols) <= TINY;
    if tiny {
        vectorized(InDouble { out, shape, lhs, rhs, scale, onto });
    }
    tiny
}

fn never<T>(_out: (&mut [T], Shape), _lhs: Matrix<'_, T>, _rhs: Matrix<'_, T>, _scale: T, _onto: Onto<T>) -> bool {
    false
}

impl Factor for i64 {
    const ZERO: Self = 0;
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    fn times_plus<const FUSED: bool>(self, factor: Self, addend: Self) -> Self {
        self.times(factor).plus(addend)
    }
    fn product(
        (out, shape): (&mut [Self], Shape),
        lhs: Matrix<'_, Self>,
        rhs: Matrix<'_, Self>,
        scale: Self,
        onto: Onto<Self>,
        _: Threads,
    ) {
        keep(out, shape, onto);
        for i in 0..shape.rows {
            for k in 0..lhs.shape.cols {
                let factor = scale.times(lhs.data[i * lhs.shape.row_stride + k * lhs.shape.col_stride]);
                for j in 0..shape.cols {
                    let at = i * shape.row_stride + j * shape.col_stride;
                    let term = factor.times(rhs.data[k * rhs.shape.row_stride + j * rhs.shape.col_stride]);
                    out[at] = out[at].plus(term);
                }
            }
        }
    }
}

/// `out = keep·out`.
fn keep<T: Factor>(out: &mut [T], shape: Shape, onto: Onto<T>) {
    for i in 0..shape.rows {
        for j in 0..shape.cols {
            let at = i * shape.row_stride + j * shape.col_stride;
            out[at] = match onto {
                Onto::Nothing => T::ZERO,
                Onto::Scaled(factor) => out[at].times(factor),
            };
        }
    }
}

/// The product of floats, with at most [`TINY`] multiplications, summed in double precision and rounded once.
struct InDouble<'a> {
    out: &'a mut [f32],
    shape: Shape,
    lhs: Matrix<'a, f32>,
    rhs: Matrix<'a, f32>,
    scale: f32,
    onto: Onto<f32>,
}

/// Columns that are summed side by side.
const COLUMNS: usize = 16;
/// Rows of the left operand that are summed side by side.
const HEIGHT: usize = 4;
/// Rows of the right operand that are brought to double precision once for all rows of the left one.
const PANEL: usize = 64;

#[expect(clippy::inline_always, reason = "part of a `Loop`")]
impl InDouble<'_> {
    /// Elements of a row of the right operand, from a column on.
    #[inline(always)]
    fn right(&self, k: usize, first: usize) -> [f64; COLUMNS] {
        let Shape { row_stride, col_stride, cols, .. } = self.rhs.shape;
        let from = &self.rhs.data[k * row_stride + first * col_stride..];
        let mut row = [0.0; COLUMNS];
        if let (1, Some(from)) = (col_stride, from[..from.len().min(cols - first)].first_chunk::<COLUMNS>()) {
            for (to, from) in row.iter_mut().zip(from) {
                *to = f64::from(*from);
            }
        } else {
            for (j, to) in row.iter_mut().enumerate().take(cols - first) {
                *to = f64::from(from[j * col_stride]);
            }
        }
        row
    }

    /// Some rows of the left operand times the columns whose elements `right` gives.
    #[inline(always)]
    fn rows<const FUSED: bool, const ROWS: usize>(
        &mut self,
        i: usize,
        first: usize,
        right: impl Fn(&Self, usize) -> [f64; COLUMNS],
    ) {
        let Shape { row_stride, col_stride, cols: depth, .. } = self.lhs.shape;
        let mut sums = [[0.0; COLUMNS]; ROWS];
        for k in 0..depth {
            let right = right(self, k);
            for (r, sums) in sums.iter_mut().enumerate() {
                let left = f64::from(self.lhs.data[(i + r) * row_stride + k * col_stride]);
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = multiply_add::<FUSED>(left, right, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            self.leave(i + r, first, sums);
        }
    }

    /// Writes the sums of a row, or as many of them as it has columns.
    #[inline(always)]
    fn leave(&mut self, i: usize, first: usize, sums: &[f64; COLUMNS]) {
        let (Shape { row_stride, col_stride, cols, .. }, scale) = (self.shape, f64::from(self.scale));
        let to = &mut self.out[i * row_stride + first * col_stride..];
        let end = to.len().min(cols - first);
        match (self.onto, to[..end].first_chunk_mut::<COLUMNS>()) {
            (Onto::Nothing, Some(to)) if col_stride == 1 => {
                for (to, sum) in to.iter_mut().zip(sums) {
                    *to = (scale * sum) as f32;
                }
            }
            (onto, _) => {
                for (j, sum) in sums.iter().enumerate().take(cols - first) {
                    let to = &mut to[j * col_stride];
                    let kept = match onto {
                        Onto::Nothing => 0.0,
                        Onto::Scaled(factor) => f64::from(factor) * f64::from(*to),
                    };
                    *to = (kept + scale * sum) as f32;
                }
            }
        }
    }

    /// All rows times some columns.
    #[inline(always)]
    fn columns<const FUSED: bool>(&mut self, first: usize, right: impl Fn(&Self, usize) -> [f64; COLUMNS]) {
        let rows = self.shape.rows;
        let whole = rows - rows % HEIGHT;
        for i in (0..whole).step_by(HEIGHT) {
            self.rows::<FUSED, HEIGHT>(i, first, &right);
        }
        for i in whole..rows {
            self.rows::<FUSED, 1>(i, first, &right);
        }
    }
}

impl Loop for InDouble<'_> {
    type Output = ();
    #[expect(clippy::inline_always, reason = "part of a `Loop`")]
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        let depth = self.rhs.shape.rows;
        let mut panel = [[0.0; COLUMNS]; PANEL];
        for first in (0..self.shape.cols).step_by(COLUMNS) {
            if depth > PANEL {
                self.columns::<FUSED>(first, |own, k| own.right(k, first));
                continue;
            }
            for (k, row) in panel[..depth].iter_mut().enumerate() {
                *row = self.right(k, first);
            }
            self.columns::<FUSED>(first, |_, k| panel[k]);
        }
    }
}

fn product<T: Factor>(
    (out, shape): (&mut [T], Shape),
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    scale: T,
    onto: Onto<T>,
    threads: Threads,
) {
    assert!(
        shape.rows == lhs.shape.rows && shape.cols == rhs.shape.cols && lhs.shape.cols == rhs.shape.rows,
        "{:?} times {:?} is not {shape:?}",
        lhs.shape,
        rhs.shape
    );
    if shape.rows == 0 || shape.cols == 0 {
        return;
    }
    // A factor of zero means that the operands are not looked at, so their infinities do not matter.
    if lhs.shape.cols == 0 || scale == T::ZERO {
        keep(out, shape, onto);
    } else {
        shape.check(out.len());
        lhs.shape.check(lhs.data.len());
        rhs.shape.check(rhs.data.len());
        T::product((out, shape), lhs, rhs, scale, onto, threads);
    }
}

fn work(out: Shape, depth: usize) -> usize {
    out.rows.saturating_mul(out.cols).saturating_mul(depth)
}

fn threads_for(work: usize) -> Threads {
    if work >= PARALLEL && pyrite_threads::count() > 1 { Threads::All } else { Threads::One }
}

/// `out = keep·out + scale·(lhs @ rhs)`, on all threads when it is large. Where `onto` is [`Onto::Nothing`], what the
/// output holds does not matter, not even when it is NaN.
///
/// # Panics
/// When sizes do not fit each other or a matrix leaves its slice; callers infer shapes before.
pub fn multiply<T: Factor>(
    out: &mut [T],
    shape: Shape,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    scale: T,
    onto: Onto<T>,
) {
    let threads = threads_for(work(shape, lhs.shape.cols));
    product((out, shape), lhs, rhs, scale, onto, threads);
}

/// A batch of matrices: one shape, and the elements from one matrix to the next (0 repeats one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The shape of each matrix.
    pub shape: Shape,
    /// Elements from one matrix to the next.
    pub stride: usize,
}

/// [`multiply`] for `count` matrices each.
///
/// # Panics
/// As [`multiply`].
pub fn multiply_batch<T: Factor>(
    count: usize,
    out: &mut [T],
    into: Batch,
    (lhs, left): (&[T], Batch),
    (rhs, right): (&[T], Batch),
    scale: T,
    onto: Onto<T>,
) {
    let each = work(into.shape, left.shape.cols);
    if count == 0 || into.shape.rows == 0 || into.shape.cols == 0 {
        return;
    }
    let matrix = |data: &'_ [T], batch: Batch, index: usize| -> usize {
        // A matrix without elements has no place to be checked.
        let start = if batch.shape.span() == Some(0) { 0 } else { index * batch.stride };
        assert!(start <= data.len(), "matrix {index} of {batch:?} leaves its slice");
        start
    };
    let one = |index: usize, out: &mut [T], threads: Threads| {
        let lhs = Matrix { data: &lhs[matrix(lhs, left, index)..], shape: left.shape };
        let rhs = Matrix { data: &rhs[matrix(rhs, right, index)..], shape: right.shape };
        product((out, into.shape), lhs, rhs, scale, onto, threads);
    };
    let apart = into.shape.span().is_some_and(|span| into.stride >= span);
    if apart && count > 1 && each < LARGE && each.saturating_mul(count) >= PARALLEL {
        let end = out.len().min(count.saturating_mul(into.stride));
        pyrite_threads::chunks(&mut out[..end], into.stride, |index, out| one(index, out, Threads::One));
    } else {
        for index in 0..count {
            one(index, &mut out[index * into.stride..], threads_for(each));
        }
    }
}

/// `out = keep·out + scale·(lhs @ rhs)` for tensors of one type, with two dimensions, or three of which the first
/// counts matrices. With `keep` of `None` the output is not read.
///
/// An output in half precision is rounded once, after the sum. The output must not share its storage with an operand.
pub fn multiply_tensors(
    out: &Tensor,
    lhs: &Tensor,
    rhs: &Tensor,
    scale: Scalar,
    keep: Option<Scalar>,
) -> Result<(), GemmError> {
    let rank = out.rank();
    let same = |t: &Tensor| t.dtype() == out.dtype() && t.rank() == rank;
    if !matches!(rank, 2 | 3) || !same(lhs) || !same(rhs) {
        return Err(GemmError::Operands);
    }
    let (o, l, r) = (out.shape(), lhs.shape(), rhs.shape());
    let fits = o[rank - 2] == l[rank - 2] && o[rank - 1] == r[rank - 1] && l[rank - 1] == r[rank - 2];
    if !fits || o[..rank - 2] != l[..rank - 2] || o[..rank - 2] != r[..rank - 2] {
        return Err(GemmError::Shapes { lhs: l.to_vec(), rhs: r.to_vec(), out: o.to_vec() });
    }
    if out.storage().same(lhs.storage()) || out.storage().same(rhs.storage()) {
        return Err(GemmError::Aliased);
    }
    if out.layout().may_overlap() {
        return Err(GemmError::Overlapping);
    }
    let operands = [out, lhs, rhs];
    match out.dtype() {
        DType::F32 => direct::<f32>(operands, scale.to_f64() as f32, keep.map(|v| v.to_f64() as f32)),
        DType::F64 => direct::<f64>(operands, scale.to_f64(), keep.map(Scalar::to_f64)),
        // Single-precision complex sums lose too much where terms cancel.
        DType::C64 => {
            converted(operands, [Tensor::to_c128s; 3], Tensor::write_c128s, scale.to_c128(), keep.map(Scalar::to_c128));
        }
        DType::C128 => direct::<Complex64>(operands, scale.to_c128(), keep.map(Scalar::to_c128)),
        DType::F16 | DType::BF16 => {
            converted(
                operands,
                [Tensor::to_f32s; 3],
                Tensor::write_f32s,
                scale.to_f64() as f32,
                keep.map(|v| v.to_f64() as f32),
            );
        }
        _ => converted(operands, [Tensor::to_i64s; 3], Tensor::write_i64s, scale.to_i64(), keep.map(Scalar::to_i64)),
    }
    Ok(())
}

fn onto<T>(keep: Option<T>) -> Onto<T> {
    keep.map_or(Onto::Nothing, Onto::Scaled)
}

/// The batch that a tensor of two or three dimensions is.
fn batch(tensor: &Tensor) -> Batch {
    let (shape, stride, last) = (tensor.shape(), tensor.stride(), tensor.rank() - 1);
    Batch {
        shape: Shape {
            rows: shape[last - 1] as usize,
            cols: shape[last] as usize,
            // A stride along a single row or column is never walked, whatever it says.
            row_stride: if shape[last - 1] == 1 { 0 } else { stride[last - 1] as usize },
            col_stride: if shape[last] == 1 { 0 } else { stride[last] as usize },
        },
        stride: if last == 2 && shape[0] != 1 { stride[0] as usize } else { 0 },
    }
}

fn count(tensor: &Tensor) -> usize {
    if tensor.rank() == 3 { tensor.shape()[0] as usize } else { 1 }
}

/// Computes on the tensors' own memory.
fn direct<T: Factor>([out, lhs, rhs]: [&Tensor; 3], scale: T, keep: Option<T>) {
    if out.numel() == 0 {
        return;
    }
    let (left, right) = (lhs.storage().read::<T>(), rhs.storage().read::<T>());
    let mut written = out.storage().write::<T>();
    let start = |t: &Tensor, len: usize| (t.layout().offset as usize).min(len);
    let (left, right) = (&left[start(lhs, left.len())..], &right[start(rhs, right.len())..]);
    let from = start(out, written.len());
    multiply_batch(
        count(out),
        &mut written[from..],
        batch(out),
        (left, batch(lhs)),
        (right, batch(rhs)),
        scale,
        onto(keep),
    );
}

/// Computes on dense copies in another type.
fn converted<T: Factor>(
    [out, lhs, rhs]: [&Tensor; 3],
    load: [fn(&Tensor) -> Vec<T>; 3],
    store: fn(&Tensor, &[T]),
    scale: T,
    keep: Option<T>,
) {
    let dense = |t: &Tensor| {
        let shape = batch(t).shape;
        Batch { shape: Shape::rows_first(shape.rows, shape.cols), stride: shape.rows * shape.cols }
    };
    let mut result = if keep.is_some() { load[0](out) } else { vec![T::ZERO; out.numel()] };
    multiply_batch(
        count(out),
        &mut result,
        dense(out),
        (&load[1](lhs), dense(lhs)),
        (&load[2](rhs), dense(rhs)),
        scale,
        onto(keep),
    );
    store(out, &result);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(a: &[f64], b: &[f64], (m, n, k): (usize, usize, usize)) -> Vec<f64> {
        let mut out = vec![0.0; m * n];
        for i in 0..m {
            for j in 0..n {
                out[i * n + j] = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
            }
        }
        out
    }

    fn numbers(count: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 7919) % 23) as f64 - 11.0).collect()
    }

    #[test]
    fn every_stride_gives_the_same_product() {
        let (m, n, k) = (5, 7, 3);
        let (a, b) = (numbers(m * k), numbers(k * n));
        let expected = naive(&a, &b, (m, n, k));
        let transpose = |data: &[f64], rows: usize, cols: usize| -> Vec<f64> {
            (0..rows * cols).map(|i| data[(i % rows) * cols + i / rows]).collect()
        };
        let (at, bt) = (transpose(&a, m, k), transpose(&b, k, n));
        for (left, left_shape) in [(&a, Shape::rows_first(m, k)), (&at, Shape::rows_first(k, m).transposed())] {
            for (right, right_shape) in [(&b, Shape::rows_first(k, n)), (&bt, Shape::rows_first(n, k).transposed())] {
                let mut out = vec![f64::NAN; m * n];
                let lhs = Matrix { data: left, shape: left_shape };
                let rhs = Matrix { data: right, shape: right_shape };
                multiply(&mut out, Shape::rows_first(m, n), lhs, rhs, 1.0, Onto::Nothing);
                assert_eq!(out, expected);
                multiply(&mut out, Shape::rows_first(m, n), lhs, rhs, 2.0, Onto::Scaled(-1.0));
                assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn large_matmuls_on_all_threads_agree() {
        let (m, n, k) = (130, 90, 70);
        let (a, b) = (numbers(m * k), numbers(k * n));
        let tensor = |data: &[f64], shape: &[i64]| Tensor::from_slice(data, shape);
        let expected = naive(&a, &b, (m, n, k));
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128, DType::I32, DType::F16] {
            let out = Tensor::empty(&[m as i64, n as i64], dtype).unwrap();
            let (lhs, rhs) =
                (tensor(&a, &[m as i64, k as i64]).cast(dtype), tensor(&b, &[k as i64, n as i64]).cast(dtype));
            multiply_tensors(&out, &lhs, &rhs, Scalar::Int(1), None).unwrap();
            let worst = out.to_f64s().iter().zip(&expected).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
            assert!(worst <= if dtype == DType::F16 { 4.0 } else { 0.0 }, "{dtype}: {worst}");
        }
    }

    #[test]
    fn a_right_hand_side_that_lies_in_columns_gives_the_same_product() {
        for (m, n, k) in [(3, 5, 4), (37, 53, 300), (64, 48, 129), (2, 200, 700)] {
            let (a, b) = (numbers(m * k), numbers(k * n));
            let lhs = Tensor::from_slice(&a, &[m as i64, k as i64]).cast(DType::F32);
            let transposed: Vec<f64> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
            let rhs = Tensor::from_slice(&transposed, &[n as i64, k as i64]).cast(DType::F32).permuted(&[1, 0]);
            let out = Tensor::empty(&[m as i64, n as i64], DType::F32).unwrap();
            multiply_tensors(&out, &lhs, &rhs, Scalar::Int(1), None).unwrap();
            assert_eq!(out.to_f64s(), naive(&a, &b, (m, n, k)));
        }
    }

    #[test]
    fn small_products_of_single_precision_are_rounded_once() {
        let lhs = Tensor::from_slice(&[1e8f32, 1.0, -1e8], &[1, 3]);
        let rhs = Tensor::from_slice(&[1.0f32, 0.5, 1.0], &[3, 1]);
        let out = Tensor::from_slice(&[2.0f32], &[1, 1]);
        multiply_tensors(&out, &lhs, &rhs, Scalar::Int(2), Some(Scalar::Int(3))).unwrap();
        assert_eq!(out.to_f64s(), [7.0]);
    }

    #[test]
    fn a_batch_is_one_matmul_per_matrix_and_a_stride_of_zero_repeats() {
        let (count, m, n, k) = (40, 12, 11, 13);
        let (a, b) = (numbers(count * m * k), numbers(k * n));
        let mut out = vec![0.0; count * m * n];
        let dense = |rows: usize, cols: usize| Batch { shape: Shape::rows_first(rows, cols), stride: rows * cols };
        let repeated = Batch { stride: 0, ..dense(k, n) };
        multiply_batch(count, &mut out, dense(m, n), (&a, dense(m, k)), (&b, repeated), 1.0, Onto::Nothing);
        for (index, out) in out.chunks_exact(m * n).enumerate() {
            assert_eq!(out, naive(&a[index * m * k..(index + 1) * m * k], &b, (m, n, k)));
        }
    }

    #[test]
    fn integers_wrap_and_an_empty_depth_gives_zeros() {
        let big = Tensor::from_slice(&[i64::MAX, 2], &[1, 2]);
        let two = Tensor::from_slice(&[2i64, 3], &[2, 1]);
        let out = Tensor::zeros(&[1, 1], DType::I64).unwrap();
        multiply_tensors(&out, &big, &two, Scalar::Int(1), None).unwrap();
        assert_eq!(out.to_i64s(), [4]);
        let (a, b) = (Tensor::zeros(&[2, 0], DType::F32).unwrap(), Tensor::zeros(&[0, 2], DType::F32).unwrap());
        let out = Tensor::from_slice(&[f32::NAN; 4], &[2, 2]);
        multiply_tensors(&out, &a, &b, Scalar::Int(1), None).unwrap();
        assert_eq!(out.to_f64s(), [0.0; 4]);
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn a_matrix_that_leaves_its_slice_is_refused() {
        let mut out = [0.0f32; 4];
        let matrix = Matrix { data: &[1.0f32; 3], shape: Shape::rows_first(2, 2) };
        multiply(&mut out, Shape::rows_first(2, 2), matrix, matrix, 1.0, Onto::Nothing);
    }
}
