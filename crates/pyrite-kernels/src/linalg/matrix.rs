//! Matrices of real or complex numbers, and batches of them in tensors.

use std::ops::{Add, Div, Index, IndexMut, Mul, Neg, Sub};

use num_complex::Complex64;
use pyrite_tensor::Tensor;

use crate::Carrier;

/// A number that matrices are made of: `f64` or `Complex64`.
pub trait Number:
    Carrier
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + PartialEq
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// A real number.
    fn real(value: f64) -> Self;
    /// The real part.
    fn re(self) -> f64;
    /// The conjugate.
    #[must_use]
    fn conj(self) -> Self;
    /// The absolute value.
    fn modulus(self) -> f64;
    /// The absolute value that LAPACK compares pivots by: of complex numbers, that of both parts added.
    fn size(self) -> f64;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

impl Number for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    fn real(value: f64) -> Self {
        value
    }
    fn re(self) -> f64 {
        self
    }
    fn conj(self) -> Self {
        self
    }
    fn modulus(self) -> f64 {
        self.abs()
    }
    fn size(self) -> f64 {
        self.abs()
    }
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
}

impl Number for Complex64 {
    const ZERO: Self = Complex64::new(0.0, 0.0);
    const ONE: Self = Complex64::new(1.0, 0.0);
    fn real(value: f64) -> Self {
        Complex64::new(value, 0.0)
    }
    fn re(self) -> f64 {
        self.re
    }
    fn conj(self) -> Self {
        Complex64::conj(&self)
    }
    fn modulus(self) -> f64 {
        self.norm()
    }
    fn size(self) -> f64 {
        self.re.abs() + self.im.abs()
    }
    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }
}

/// A dense matrix, column after column.
#[derive(Clone, Debug)]
pub struct Matrix<T> {
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
    /// Its elements, column after column.
    pub data: Vec<T>,
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;
    fn index(&self, (i, j): (usize, usize)) -> &T {
        &self.data[j * self.rows + i]
    }
}

impl<T> IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut T {
        &mut self.data[j * self.rows + i]
    }
}

impl<T: Number> Matrix<T> {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![T::ZERO; rows * cols] }
    }

    /// The matrix of `f(row, column)`.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for j in 0..cols {
            data.extend((0..rows).map(|i| f(i, j)));
        }
        Self { rows, cols, data }
    }

    /// The identity.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| if i == j { T::ONE } else { T::ZERO })
    }

    /// The transpose.
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// The conjugate transpose.
    #[must_use]
    pub fn adjoint(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self[(j, i)].conj())
    }

    /// One column.
    pub fn column(&self, j: usize) -> &[T] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// The matrix product `self @ other`.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let mut out = Self::zeros(self.rows, other.cols);
        for j in 0..other.cols {
            for k in 0..self.cols {
                let factor = other[(k, j)];
                for i in 0..self.rows {
                    out[(i, j)] = out[(i, j)] + self[(i, k)] * factor;
                }
            }
        }
        out
    }

    /// Exchanges two rows.
    pub fn swap_rows(&mut self, a: usize, b: usize) {
        for j in 0..self.cols {
            let column = j * self.rows;
            self.data.swap(column + a, column + b);
        }
    }

    /// Whether no element is infinite or NaN.
    pub fn is_finite(&self) -> bool {
        self.data.iter().all(|v| v.is_finite())
    }
}

/// The matrices in the last two dimensions of a tensor.
pub fn load<T: Number>(tensor: &Tensor) -> Vec<Matrix<T>> {
    load_as(tensor, &tensor.shape()[..tensor.rank() - 2])
}

/// The same for a tensor whose batch is broadcast to this shape.
pub fn load_as<T: Number>(tensor: &Tensor, batch: &[i64]) -> Vec<Matrix<T>> {
    let rank = tensor.rank();
    let (rows, cols) = (tensor.shape()[rank - 2], tensor.shape()[rank - 1]);
    let shape: Vec<i64> = batch.iter().copied().chain([rows, cols]).collect();
    let data = T::load(&columns_first(&tensor.expanded(&shape)));
    let (rows, cols) = (rows as usize, cols as usize);
    let count = batch.iter().product::<i64>() as usize;
    (0..count).map(|n| Matrix { rows, cols, data: data[n * rows * cols..(n + 1) * rows * cols].to_vec() }).collect()
}

/// Stores matrices in the last two dimensions of a tensor.
pub fn store<'a, T: Number + 'a>(tensor: &Tensor, matrices: impl IntoIterator<Item = &'a Matrix<T>>) {
    let data: Vec<T> = matrices.into_iter().flat_map(|m| m.data.iter().copied()).collect();
    T::store(&columns_first(tensor), &data);
}

fn columns_first(tensor: &Tensor) -> Tensor {
    let rank = tensor.rank();
    let order: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    tensor.permuted(&order)
}
