//! Matrix multiplication: `out = keep·out + scale·(lhs @ rhs)`.
//!
//! Who computes a product is a [`Provider`]. [`Panels`] is ours: operands are packed into panels ([`pack`]), tiles of
//! the output are summed in registers ([`tile`]), blocks of it are shared among threads ([`blocked`]). Operands may lie in
//! any order and are never copied as a whole; a right operand with dense columns is read as it lies ([`columns`]), and one
//! that stays the same can be kept in panels ([`Packed`]), and one whose rows begin anywhere ([`Rows`]) needs no copy either.
//! Half precision is converted while it is packed, or multiplied in pairs ([`Pair`]) where the processor can. Products of few
//! rows read the other operand once, as it lies: by columns ([`few`]) or by rows ([`row`]). [`Library`] is the `gemm` crate: it
//! takes what has no microkernels (complex numbers, other processors) and outputs with neither dense rows nor dense columns.
//! [`provider`] chooses.
//!
//! Sums are taken in blocks of [`tile::BLOCK`] terms, so that rounding errors are about those of PyTorch's matmuls.
//! Matrices are slices with strides; every function checks that they stay within them.

mod blocked;
mod columns;
mod few;
mod library;
mod pack;
mod packed;
mod panels;
mod row;
mod tile;

pub use library::Library;
pub use pack::{Pair, Source};
pub use packed::Packed;
pub use panels::{Base, Panels, Request, Right, Rows, SLACK, multiply_into};
pub use tile::Lane;

use num_complex::{Complex32, Complex64};

/// Sizes and strides of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements from one row to the next.
    pub row_stride: usize,
    /// Elements from one column to the next.
    pub col_stride: usize,
}

impl Shape {
    /// A dense matrix, rows one after the other.
    pub fn rows_first(rows: usize, cols: usize) -> Self {
        Self { rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The same elements with rows and columns exchanged.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride }
    }

    /// Elements from the first to the last, both included; `None` when that does not fit.
    pub fn span(self) -> Option<usize> {
        if self.rows == 0 || self.cols == 0 {
            return Some(0);
        }
        let down = (self.rows - 1).checked_mul(self.row_stride)?;
        let across = (self.cols - 1).checked_mul(self.col_stride)?;
        down.checked_add(across)?.checked_add(1)
    }

    /// # Panics
    /// When the matrix leaves a slice of this length.
    pub fn check(self, len: usize) {
        let inside = self.span().is_some_and(|span| span <= len);
        assert!(inside, "the matrix {self:?} does not fit {len} elements");
        assert!(
            isize::try_from(self.row_stride).is_ok() && isize::try_from(self.col_stride).is_ok(),
            "the strides of {self:?} do not fit a pointer"
        );
    }

    /// Whether no two positions share an element.
    pub fn is_disjoint(self) -> bool {
        let reach = |size: usize, stride: usize| size.saturating_sub(1).saturating_mul(stride);
        let by_rows = (self.cols <= 1 || self.col_stride > 0)
            && (self.rows <= 1 || self.row_stride > reach(self.cols, self.col_stride));
        let by_cols = (self.rows <= 1 || self.row_stride > 0)
            && (self.cols <= 1 || self.col_stride > reach(self.rows, self.row_stride));
        by_rows || by_cols
    }
}

/// A matrix to read.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    /// Its elements, the first of the matrix first.
    pub data: &'a [T],
    /// Where they are.
    pub shape: Shape,
}

impl<T> Matrix<'_, T> {
    /// The same elements with rows and columns exchanged.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { data: self.data, shape: self.shape.transposed() }
    }
}

/// What the result is added to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Onto<T> {
    /// Nothing: what the output holds is not read.
    Nothing,
    /// The output times a factor.
    Scaled(T),
}

/// Who may work on a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The calling thread alone.
    One,
    /// All threads of the pool, as many as the product is worth.
    All,
}

/// Computes matmuls of one type.
pub trait Provider<T>: Sync {
    /// `out = keep·out + scale·(lhs @ rhs)`.
    ///
    /// # Panics
    /// When sizes do not fit each other, a size is zero, a matrix leaves its slice or positions of the output share
    /// elements.
    fn gemm(
        &self,
        out: (&mut [T], Shape),
        lhs: Matrix<'_, T>,
        rhs: Matrix<'_, T>,
        scale: T,
        onto: Onto<T>,
        threads: Threads,
    );

    /// Whether it has [`Self::gemm_rows`] and [`Self::gemm_columns`].
    fn takes_rows(&self) -> bool {
        false
    }

    /// `out = lhs @ rhs` for a right operand whose rows begin anywhere.
    ///
    /// # Panics
    /// As [`Self::gemm`], where the output's rows are not dense, and where [`Self::takes_rows`] says no.
    fn gemm_rows(&self, _out: (&mut [T], Shape), _lhs: Matrix<'_, T>, _rhs: Rows<'_, T>, _threads: Threads) {
        panic!("there are no microkernels for this processor");
    }

    /// `out += lhs @ rhsᵀ`, likewise.
    ///
    /// # Panics
    /// As [`Self::gemm_rows`].
    fn gemm_columns(&self, _out: (&mut [T], Shape), _lhs: Matrix<'_, T>, _rhs: Rows<'_, T>, _threads: Threads) {
        panic!("there are no microkernels for this processor");
    }
}

/// An element type of matmuls.
pub trait Number: Sized + 'static {
    /// The implementation for this processor.
    fn provider() -> &'static dyn Provider<Self>;
}

macro_rules! number {
    ($($type:ty => $provider:expr;)*) => {
        $(impl Number for $type {
            fn provider() -> &'static dyn Provider<Self> {
                $provider
            }
        })*
    };
}

number! {
    f32 => if f32::isas().is_empty() { &Library } else { &Panels };
    f64 => if f64::isas().is_empty() { &Library } else { &Panels };
    Complex32 => &Library;
    Complex64 => &Library;
}

/// The implementation for a type on this processor.
pub fn provider<T: Number>() -> &'static dyn Provider<T> {
    T::provider()
}

/// # Panics
/// When sizes do not fit each other, one is zero, the left operand leaves its slice or positions of the output share
/// elements.
fn check<S>(shape: Shape, lhs: Matrix<'_, S>, rhs: (usize, usize)) {
    lhs.shape.check(lhs.data.len());
    assert!(shape.is_disjoint(), "the positions of {shape:?} share elements");
    let fit = shape.rows == lhs.shape.rows && shape.cols == rhs.1 && lhs.shape.cols == rhs.0;
    assert!(fit, "{:?} times {rhs:?} is not {shape:?}", lhs.shape);
    assert!(shape.rows > 0 && shape.cols > 0 && lhs.shape.cols > 0, "a product without terms");
}
