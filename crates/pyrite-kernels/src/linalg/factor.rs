//! Factorizations with the conventions of LAPACK: which rows are exchanged, which signs come out.

use super::matrix::{Matrix, Number};

/// Which part of a matrix counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// What is on and below the diagonal.
    Lower,
    /// What is on and above the diagonal.
    Upper,
}

/// What is on the diagonal of a triangular matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonal {
    /// What the matrix holds there.
    Stored,
    /// Ones, whatever the matrix holds there.
    Ones,
}

/// An LU factorization: `L` below the diagonal of `lu`, whose own is one, and `U` on and above it.
pub struct Lu<T> {
    /// Both factors in one matrix.
    pub lu: Matrix<T>,
    /// Step `i` exchanged rows `i` and `pivots[i]`.
    pub pivots: Vec<usize>,
    /// One plus the first place where the diagonal of `U` is zero; zero when there is none.
    pub info: usize,
}

/// LU with exchanges of rows, the largest element becoming the pivot.
pub fn lu<T: Number>(mut a: Matrix<T>) -> Lu<T> {
    let steps = a.rows.min(a.cols);
    let (mut pivots, mut info) = (Vec::with_capacity(steps), 0);
    for k in 0..steps {
        let mut pivot = k;
        for i in k + 1..a.rows {
            if a[(i, k)].size() > a[(pivot, k)].size() {
                pivot = i;
            }
        }
        pivots.push(pivot);
        if a[(pivot, k)] == T::ZERO {
            if info == 0 {
                info = k + 1;
            }
            continue;
        }
        if pivot != k {
            a.swap_rows(pivot, k);
        }
        for i in k + 1..a.rows {
            a[(i, k)] = a[(i, k)] / a[(k, k)];
        }
        for j in k + 1..a.cols {
            let factor = a[(k, j)];
            if factor != T::ZERO {
                for i in k + 1..a.rows {
                    a[(i, j)] = a[(i, j)] - a[(i, k)] * factor;
                }
            }
        }
    }
    Lu { lu: a, pivots, info }
}

impl<T: Number> Lu<T> {
    /// Solves `A·X = B` in place.
    pub fn solve(&self, b: &mut Matrix<T>) {
        for (k, pivot) in self.pivots.iter().enumerate() {
            if *pivot != k {
                b.swap_rows(k, *pivot);
            }
        }
        solve_triangular(&self.lu, b, Triangle::Lower, Diagonal::Ones);
        solve_triangular(&self.lu, b, Triangle::Upper, Diagonal::Stored);
    }

    /// Solves `Aᴴ·X = B` in place.
    pub fn solve_adjoint(&self, b: &mut Matrix<T>) {
        let adjoint = self.lu.adjoint();
        solve_triangular(&adjoint, b, Triangle::Lower, Diagonal::Stored);
        solve_triangular(&adjoint, b, Triangle::Upper, Diagonal::Ones);
        for (k, pivot) in self.pivots.iter().enumerate().rev() {
            if *pivot != k {
                b.swap_rows(k, *pivot);
            }
        }
    }

    /// Whether the number of exchanges is odd.
    pub fn is_odd(&self) -> bool {
        self.pivots.iter().enumerate().filter(|(k, pivot)| k != *pivot).count() % 2 == 1
    }
}

/// Solves `A·X = B` in place with a triangular `A`.
pub fn solve_triangular<T: Number>(a: &Matrix<T>, b: &mut Matrix<T>, triangle: Triangle, diagonal: Diagonal) {
    let n = b.rows;
    for j in 0..b.cols {
        for step in 0..n {
            let k = if triangle == Triangle::Lower { step } else { n - 1 - step };
            if b[(k, j)] == T::ZERO && a[(k, k)] != T::ZERO {
                continue;
            }
            if diagonal == Diagonal::Stored {
                b[(k, j)] = b[(k, j)] / a[(k, k)];
            }
            let value = b[(k, j)];
            let rest = if triangle == Triangle::Lower { k + 1..n } else { 0..k };
            for i in rest {
                b[(i, j)] = b[(i, j)] - a[(i, k)] * value;
            }
        }
    }
}

/// The lower Cholesky factor from the lower triangle of `a`, and one plus the place where it failed, or zero.
pub fn cholesky<T: Number>(mut a: Matrix<T>) -> (Matrix<T>, usize) {
    let n = a.rows;
    let mut info = 0;
    for k in 0..n {
        let sum = (0..k).fold(a[(k, k)].re(), |sum, p| sum - (a[(k, p)] * a[(k, p)].conj()).re());
        if sum <= 0.0 || sum.is_nan() {
            a[(k, k)] = T::real(sum);
            info = k + 1;
            break;
        }
        let pivot = sum.sqrt();
        a[(k, k)] = T::real(pivot);
        for i in k + 1..n {
            let value = (0..k).fold(a[(i, k)], |sum, p| sum - a[(i, p)] * a[(k, p)].conj());
            a[(i, k)] = value / T::real(pivot);
        }
    }
    for j in 1..n {
        for i in 0..j {
            a[(i, j)] = T::ZERO;
        }
    }
    (a, info)
}

/// Householder reflections: those of column `k` below the diagonal of `a`, with `R` on and above it, and their factors.
pub fn householder<T: Number>(mut a: Matrix<T>) -> (Matrix<T>, Vec<T>) {
    let mut taus = Vec::new();
    for k in 0..a.rows.min(a.cols) {
        let below = (k + 1..a.rows).map(|i| a[(i, k)].modulus()).fold(0.0, f64::hypot);
        let alpha = a[(k, k)];
        let imaginary = (alpha - T::real(alpha.re())).modulus();
        if below == 0.0 && imaginary == 0.0 {
            taus.push(T::ZERO);
            continue;
        }
        let beta = -alpha.modulus().hypot(below).copysign(alpha.re());
        let tau = (T::real(beta) - alpha) / T::real(beta);
        // The factor is `(β - α)/β` with the sign of the imaginary part as it is in α.
        taus.push(tau);
        let scale = T::ONE / (alpha - T::real(beta));
        for i in k + 1..a.rows {
            a[(i, k)] = a[(i, k)] * scale;
        }
        for j in k + 1..a.cols {
            let dot = (k + 1..a.rows).fold(a[(k, j)], |sum, i| sum + a[(i, k)].conj() * a[(i, j)]);
            let factor = tau.conj() * dot;
            a[(k, j)] = a[(k, j)] - factor;
            for i in k + 1..a.rows {
                a[(i, j)] = a[(i, j)] - a[(i, k)] * factor;
            }
        }
        a[(k, k)] = T::real(beta);
    }
    (a, taus)
}

/// Multiplies from the left by one reflection, or by its adjoint.
fn reflect<T: Number>(a: &Matrix<T>, k: usize, tau: T, target: &mut Matrix<T>) {
    if tau == T::ZERO {
        return;
    }
    for j in 0..target.cols {
        let dot = (k + 1..a.rows).fold(target[(k, j)], |sum, i| sum + a[(i, k)].conj() * target[(i, j)]);
        let factor = tau * dot;
        target[(k, j)] = target[(k, j)] - factor;
        for i in k + 1..a.rows {
            target[(i, j)] = target[(i, j)] - a[(i, k)] * factor;
        }
    }
}

/// `Q·target`, where Q is the product of the reflections in order.
pub fn apply_q<T: Number>(a: &Matrix<T>, taus: &[T], target: &mut Matrix<T>) {
    for (k, tau) in taus.iter().enumerate().rev() {
        reflect(a, k, *tau, target);
    }
}

/// `Qᴴ·target`.
pub fn apply_q_adjoint<T: Number>(a: &Matrix<T>, taus: &[T], target: &mut Matrix<T>) {
    for (k, tau) in taus.iter().enumerate() {
        reflect(a, k, tau.conj(), target);
    }
}

/// The first columns of the product of the reflections.
pub fn q_columns<T: Number>(a: &Matrix<T>, taus: &[T], cols: usize) -> Matrix<T> {
    let mut q = Matrix::from_fn(a.rows, cols, |i, j| if i == j { T::ONE } else { T::ZERO });
    apply_q(a, taus, &mut q);
    q
}
