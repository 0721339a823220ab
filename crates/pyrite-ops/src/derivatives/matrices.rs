//! Terms that stand for matrices: the last two dimensions are rows and columns, the others count matrices.

use pyrite_ir::args;
use pyrite_sym::SymInt;

use super::formula::{Operand, Sheet, Term};

/// Which triangle of a matrix counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// Below the diagonal.
    Lower,
    /// Above the diagonal.
    Upper,
}

impl Triangle {
    pub fn upper(upper: bool) -> Self {
        if upper { Self::Upper } else { Self::Lower }
    }

    pub fn flipped(self) -> Self {
        if self == Self::Upper { Self::Lower } else { Self::Upper }
    }
}

/// Whether the unknown of a system stands to the right of the matrix or to its left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `A·X = B`
    Left,
    /// `X·A = B`
    Right,
}

impl Side {
    pub fn left(left: bool) -> Self {
        if left { Self::Left } else { Self::Right }
    }
}

/// What is on the diagonal of a triangular matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonal {
    Stored,
    Ones,
}

impl Term<'_> {
    /// The matrix product.
    #[must_use]
    pub fn mm(self, other: Self) -> Self {
        self.with("aten.matmul.default", other)
    }

    /// The conjugate transpose.
    #[must_use]
    pub fn adjoint(self) -> Self {
        self.of("aten.transpose.int", args![-2i64, -1i64]).conj()
    }

    /// On and below a diagonal; zero elsewhere.
    #[must_use]
    pub fn tril(self, diagonal: i64) -> Self {
        self.of("aten.tril.default", args![diagonal])
    }

    /// On and above a diagonal; zero elsewhere.
    #[must_use]
    pub fn triu(self, diagonal: i64) -> Self {
        self.of("aten.triu.default", args![diagonal])
    }

    /// One triangle, without the diagonal where that holds ones that are not stored.
    #[must_use]
    pub fn triangle(self, triangle: Triangle, diagonal: Diagonal) -> Self {
        let offset = i64::from(diagonal == Diagonal::Ones);
        if triangle == Triangle::Upper { self.triu(offset) } else { self.tril(-offset) }
    }

    /// The diagonal.
    #[must_use]
    pub fn diagonal(self) -> Self {
        self.of("aten.diagonal.default", args![0i64, -2i64, -1i64])
    }

    /// The matrix with this diagonal.
    #[must_use]
    pub fn embed(self) -> Self {
        self.of("aten.diag_embed.default", &[])
    }

    /// As a row for each row of a matrix: numbers that belong to its columns.
    #[must_use]
    pub fn as_row(self) -> Self {
        self.of("aten.unsqueeze.default", args![-2i64])
    }

    /// As a column for each column of a matrix: numbers that belong to its rows.
    #[must_use]
    pub fn as_column(self) -> Self {
        self.of("aten.unsqueeze.default", args![-1i64])
    }

    /// The difference from the own adjoint.
    #[must_use]
    pub fn skew(self) -> Self {
        self - self.adjoint()
    }

    /// The solution of a system with a triangular matrix and this right-hand side.
    #[must_use]
    pub fn solved(self, a: Self, triangle: Triangle, side: Side, diagonal: Diagonal) -> Self {
        let flags = args![self.value(), triangle == Triangle::Upper, side == Side::Left, diagonal == Diagonal::Ones];
        a.of("aten.linalg_solve_triangular.default", flags)
    }

    /// The number of rows or columns, counting dimensions from the end.
    #[must_use]
    pub fn size(self, from_end: usize) -> SymInt {
        let shape = self.shape();
        shape.len().checked_sub(from_end).and_then(|at| shape.get(at)).cloned().unwrap_or(SymInt::Int(0))
    }

    /// Some of the elements along a dimension.
    #[must_use]
    pub fn part(self, dim: impl Dimension, start: &SymInt, end: &SymInt) -> Self {
        self.of("aten.slice.Tensor", args![dim.number(), start.clone(), end.clone()])
    }

    /// The first elements along a dimension.
    #[must_use]
    pub fn first(self, dim: impl Dimension, count: &SymInt) -> Self {
        self.part(dim, &SymInt::Int(0), count)
    }

    /// All but the first elements along a dimension.
    #[must_use]
    pub fn rest(self, dim: impl Dimension, count: &SymInt) -> Self {
        self.of("aten.slice.Tensor", args![dim.number(), count.clone()])
    }

    /// With zeros at the end of a dimension, counted from the front, up to a size.
    #[must_use]
    pub fn padded(self, dim: usize, size: &SymInt) -> Self {
        let shape = self.shape();
        let Some(from) = shape.get(dim).filter(|from| !from.is_eq(size)) else { return self };
        let mut pads = vec![SymInt::Int(0); 2 * (shape.len() - dim)];
        if let Some(last) = pads.last_mut() {
            *last = size.clone() - from;
        }
        self.of("aten.constant_pad_nd.default", args![&pads[..]])
    }
}

/// A dimension as a number.
pub trait Dimension {
    fn number(self) -> i64;
}

impl Dimension for i64 {
    fn number(self) -> i64 {
        self
    }
}

impl Dimension for usize {
    fn number(self) -> i64 {
        self as i64
    }
}

impl Sheet<'_> {
    /// The sum of what is there.
    pub fn sum<'s>(terms: impl IntoIterator<Item = Option<Term<'s>>>) -> Option<Term<'s>> {
        terms.into_iter().flatten().reduce(|a, b| a + b)
    }
}
