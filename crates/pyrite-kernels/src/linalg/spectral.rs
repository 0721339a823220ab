//! Eigenvalues of Hermitian matrices and singular values, by Jacobi rotations.
//!
//! Rotations converge to full relative precision and are simple. The vectors that they give are right, yet not the ones
//! that LAPACK gives: each may differ by a factor of modulus one, and those of equal values by a rotation. The factors
//! are chosen so that the largest element of each vector (of `V`) is a positive real number.

use super::matrix::{Matrix, Number};

const SWEEPS: usize = 60;

/// A thin singular value decomposition `U·diag(S)·Vᴴ` of a matrix with at least as many rows as columns; the values
/// descend, and columns of `U` that belong to zero are zero.
pub struct Svd<T> {
    /// Left singular vectors, as columns.
    pub u: Matrix<T>,
    /// Singular values, the largest first.
    pub s: Vec<f64>,
    /// Right singular vectors, as columns.
    pub v: Matrix<T>,
}

/// By orthogonalizing columns in pairs.
pub fn svd<T: Number>(a: &Matrix<T>) -> Svd<T> {
    let n = a.cols;
    let (mut u, mut v) = (a.clone(), Matrix::<T>::identity(n));
    let dot = |m: &Matrix<T>, p: usize, q: usize| {
        m.column(p).iter().zip(m.column(q)).fold(T::ZERO, |sum, (x, y)| sum + x.conj() * *y)
    };
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let (alpha, beta, gamma) = (dot(&u, p, p).re(), dot(&u, q, q).re(), dot(&u, p, q));
                let size = gamma.modulus();
                if size == 0.0 || size <= 1e-16 * (alpha * beta).sqrt() {
                    continue;
                }
                rotated = true;
                let zeta = (beta - alpha) / (2.0 * size);
                let t = 1.0_f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let phase = gamma / T::real(size);
                rotate(&mut u, p, q, c, c * t, phase);
                rotate(&mut v, p, q, c, c * t, phase);
            }
        }
        if !rotated {
            break;
        }
    }
    let norms: Vec<f64> = (0..n).map(|j| u.column(j).iter().fold(0.0, |sum: f64, x| sum.hypot(x.modulus()))).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| norms[*b].total_cmp(&norms[*a]));
    let phases = phases(&v);
    let unit = |i: usize, j: usize| {
        let norm = norms[order[j]];
        if norm == 0.0 { T::ZERO } else { u[(i, order[j])] * phases[order[j]] / T::real(norm) }
    };
    Svd {
        u: Matrix::from_fn(u.rows, n, unit),
        s: order.iter().map(|j| norms[*j]).collect(),
        v: Matrix::from_fn(n, n, |i, j| v[(i, order[j])] * phases[order[j]]),
    }
}

/// The first columns of `U`, as many as asked for, all orthonormal: those whose value is too small to tell their
/// direction, and those that are missing, are chosen orthogonal to the others.
pub fn completed<T: Number>(u: &Matrix<T>, s: &[f64], cols: usize) -> Matrix<T> {
    let norm = |column: &[T]| column.iter().fold(0.0, |sum: f64, x| sum.hypot(x.modulus()));
    let rows = u.rows;
    let smallest = s.first().map_or(0.0, |largest| largest * f64::EPSILON * rows as f64);
    let is_known = |j: usize| s.get(j).is_some_and(|value| *value > smallest);
    let mut columns: Vec<Option<Vec<T>>> = (0..cols).map(|j| is_known(j).then(|| u.column(j).to_vec())).collect();
    while let Some(at) = columns.iter().position(Option::is_none) {
        // Of the unit vectors, the one that the columns so far reach least.
        let reached = |i: usize| columns.iter().flatten().map(|c| c[i].modulus().powi(2)).sum::<f64>();
        let unit = (0..rows).min_by(|x, y| reached(*x).total_cmp(&reached(*y))).unwrap_or(0);
        let mut made: Vec<T> = (0..rows).map(|i| if i == unit { T::ONE } else { T::ZERO }).collect();
        // Twice, so that rounding errors of the first time are taken off too.
        for _ in 0..2 {
            for column in columns.iter().flatten() {
                let dot = column.iter().zip(&made).fold(T::ZERO, |sum, (x, y)| sum + x.conj() * *y);
                made.iter_mut().zip(column).for_each(|(x, y)| *x = *x - *y * dot);
            }
        }
        let length = T::real(norm(&made));
        columns[at] = Some(made.iter().map(|x| *x / length).collect());
    }
    Matrix { rows, cols, data: columns.into_iter().flatten().flatten().collect() }
}

/// For each column, the factor that makes its largest element a positive real number.
fn phases<T: Number>(v: &Matrix<T>) -> Vec<T> {
    let phase = |column: &[T]| {
        // Of elements that are as good as equal, the first one: it is the same one after a small change.
        let larger = |most: T, x: &T| if x.modulus() > most.modulus() * (1.0 + 1e-8) { *x } else { most };
        let most = column.iter().fold(T::ZERO, larger);
        if most == T::ZERO { T::ONE } else { most.conj() / T::real(most.modulus()) }
    };
    (0..v.cols).map(|j| phase(v.column(j))).collect()
}

/// Turns columns `p` and `q` by an angle with cosine `c` and sine `s`, after taking the phase off column `q`.
fn rotate<T: Number>(m: &mut Matrix<T>, p: usize, q: usize, c: f64, s: f64, phase: T) {
    for i in 0..m.rows {
        let (x, y) = (m[(i, p)], m[(i, q)] * phase.conj());
        m[(i, p)] = x * T::real(c) - y * T::real(s);
        m[(i, q)] = x * T::real(s) + y * T::real(c);
    }
}

/// The same for rows, by the adjoint.
fn rotate_rows<T: Number>(m: &mut Matrix<T>, p: usize, q: usize, c: f64, s: f64, phase: T) {
    for j in 0..m.cols {
        let (x, y) = (m[(p, j)], m[(q, j)] * phase);
        m[(p, j)] = x * T::real(c) - y * T::real(s);
        m[(q, j)] = x * T::real(s) + y * T::real(c);
    }
}

/// The eigenvalues of a Hermitian matrix in ascending order, with their vectors.
pub fn eigh<T: Number>(mut a: Matrix<T>) -> (Vec<f64>, Matrix<T>) {
    let n = a.rows;
    let mut v = Matrix::<T>::identity(n);
    let scale = a.data.iter().fold(0.0_f64, |m, x| m.max(x.modulus()));
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let size = a[(p, q)].modulus();
                let (alpha, beta) = (a[(p, p)].re(), a[(q, q)].re());
                if size <= 1e-17 * scale || size <= 1e-17 * (alpha.abs() * beta.abs()).sqrt() {
                    continue;
                }
                rotated = true;
                let zeta = (beta - alpha) / (2.0 * size);
                let t = 1.0_f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let phase = a[(p, q)] / T::real(size);
                rotate(&mut a, p, q, c, c * t, phase);
                rotate_rows(&mut a, p, q, c, c * t, phase);
                rotate(&mut v, p, q, c, c * t, phase);
            }
        }
        if !rotated {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| a[(*x, *x)].re().total_cmp(&a[(*y, *y)].re()));
    let phases = phases(&v);
    let vectors = Matrix::from_fn(n, n, |i, j| v[(i, order[j])] * phases[order[j]]);
    (order.iter().map(|j| a[(*j, *j)].re()).collect(), vectors)
}

/// The whole Hermitian matrix of which one triangle is stored.
pub fn hermitian<T: Number>(a: &Matrix<T>, triangle: super::factor::Triangle) -> Matrix<T> {
    let lower = triangle == super::factor::Triangle::Lower;
    Matrix::from_fn(a.rows, a.cols, |i, j| {
        if i == j {
            T::real(a[(i, i)].re())
        } else if (i > j) == lower {
            a[(i, j)]
        } else {
            a[(j, i)].conj()
        }
    })
}
