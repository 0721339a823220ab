//! Linear algebra on matrices: solving, factorizing, determinants, values of decompositions.
//!
//! Matrices are the last two dimensions of a tensor, the others count them. Everything is computed in `f64` or
//! `Complex64`, with the conventions of LAPACK where a factorization leaves a choice. Vectors of eigenvalues and
//! singular values are right, yet not LAPACK's: each is unique only up to a factor of modulus one.

mod eval;
mod rules;

use pyrite_ir::{Freedom, OpDef};

use crate::derivatives::linalg as d;

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
        "The cross product of vectors of three numbers.",
        rules::cross,
        eval::cross,
    )
    .derivative(d::cross)
    .samples(&["f32[4, 3], f32[4, 3]", "i64[3, 2], i64[3, 1], dim=0", "c64[2, 3, 2]<[1, 4, 2], c64[2, 3, 2], dim=1", "bf16[3], bf16[3]"]),
    OpDef::kernel(
        "aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
        "An error when a factorization reported one.",
        rules::check_errors,
        eval::check_errors,
    )
    .no_derivative("it returns nothing")
    .samples(&["i32[3]{0..1}, 'linalg.inv', is_matrix=False"]),
    OpDef::kernel(
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
        "The Cholesky factor of positive-definite matrices, and where it failed.",
        rules::cholesky_ex,
        eval::cholesky_ex,
    )
    .derivative(d::cholesky_ex)
    .samples(&["f32[2, 3, 3]", "f64[1, 1]{1..2}, upper=True", "c64[3, 3]", "f32[2, 0, 0]", "f32[0, 3, 3]"]),
    OpDef::kernel(
        "aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
        "The inverse of a matrix whose Cholesky factor this is.",
        rules::like_square,
        eval::cholesky_inverse,
    )
    .derivative(d::cholesky_inverse)
    .samples(&["f32[2, 3, 3]{1..2}", "f64[3, 3]{1..2}, True", "c64[3, 3]"]),
    OpDef::kernel(
        "aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
        "The solution of a system by the Cholesky factor of its matrix.",
        rules::cholesky_solve,
        eval::cholesky_solve,
    )
    .derivative(d::cholesky_solve)
    .samples(&["f32[3, 2], f32[2, 3, 3]{1..2}", "c64[3, 2], c64[3, 3], True"]),
    OpDef::kernel(
        "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
        "The solution of a system with a triangular matrix.",
        rules::solve_triangular,
        eval::solve_triangular,
    )
    .derivative(d::solve_triangular)
    .samples(&["f32[2, 3, 3], f32[3, 2], upper=True", "f64[3, 3], f64[2, 3], upper=False, left=False, unitriangular=True", "c64[3, 3], c64[3, 1], upper=False", "f32[2, 0, 0], f32[2, 0, 2], upper=True"]),
    OpDef::kernel(
        "aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
        "The solution of a system with a triangular matrix, and a copy of the matrix.",
        rules::triangular_solve,
        eval::triangular_solve,
    )
    .derivative(d::triangular_solve)
    .samples(&["f32[3, 2], f32[2, 3, 3]", "c64[3, 2], c64[3, 3], False, True, True"]),
    OpDef::kernel(
        "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
        "The inverse of matrices, and where it failed.",
        rules::inv_ex,
        eval::inv_ex,
    )
    .derivative(d::inv_ex)
    .samples(&["f32[2, 3, 3]", "c64[3, 3]<[1, 3]", "f64[2, 0, 0]"]),
    OpDef::kernel(
        "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
        "The solution of a system with the factors of its matrix.",
        rules::solve_ex,
        eval::solve_ex,
    )
    .derivative(d::solve_ex)
    .constants(&[1])
    .samples(&["f32[2, 3, 3], f32[2, 3]", "f64[3, 3], f64[3]", "f64[3, 3], f64[2, 2, 3], left=False", "c64[2, 3, 3], c64[3, 1]"]),
    OpDef::kernel(
        "aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
        "The determinant, with the factors it was computed from.",
        rules::det,
        eval::det,
    )
    .derivative(d::det)
    .constants(&[1])
    .samples(&["f32[2, 3, 3]", "c64[3, 3]", "f64[3, 3]<[1, 3]", "f64[2, 0, 0]"]),
    OpDef::kernel(
        "aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
        "Sign and logarithm of the determinant, with the factors they were computed from.",
        rules::slogdet,
        eval::slogdet,
    )
    .derivative(d::slogdet)
    .constants(&[2])
    .samples(&["f32[2, 3, 3]", "c64[3, 3]"]),
    OpDef::kernel(
        "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
        "The LU factorization with both factors in one matrix, and where it failed.",
        rules::lu_factor_ex,
        eval::lu_factor_ex,
    )
    .derivative(d::lu_factor_ex)
    .samples(&["f32[2, 3, 3]", "f64[2, 3, 5]", "c64[5, 3]", "f32[3, 0]"]),
    OpDef::kernel(
        "aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
        "The LU factorization.",
        rules::lu,
        eval::lu,
    )
    .derivative(d::lu)
    .constants(&[0])
    .samples(&["f32[2, 3, 3]", "f64[2, 3, 5]", "c64[5, 3]", "f32[0, 3]"]),
    OpDef::kernel(
        "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
        "The factors of a stored LU factorization.",
        rules::lu_unpack,
        eval::lu_unpack,
    )
    .derivative(d::lu_unpack)
    .constants(&[0])
    .samples(&["f32[2, 3, 3], i32[2, 3]{1..4}", "f64[5, 3], i32[3]{1..6}, False", "c64[3, 5], i32[3]{1..4}, True, False"]),
    OpDef::kernel(
        "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
        "The solution of a system by the LU factorization of its matrix.",
        rules::lu_solve,
        eval::lu_solve,
    )
    .derivative(d::lu_solve)
    .samples(&["f32[2, 3, 3], i32[2, 3]{1..4}, f32[3, 2]", "c64[3, 3], i32[3]{1..4}, c64[2, 3], left=False, adjoint=True"]),
    OpDef::kernel(
        "aten::linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
        "The QR factorization by Householder reflections.",
        rules::qr,
        eval::qr,
    )
    .free(Freedom::Signs)
    .derivative(d::qr)
    .samples(&["f32[2, 3, 3]", "f64[5, 3], 'complete'", "c64[3, 5], 'r'", "f32[3, 0]", "f32[0, 3]"]),
    OpDef::kernel(
        "aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)",
        "The QR factorization as reflections with their factors.",
        rules::geqrf,
        eval::geqrf,
    )
    .samples(&["f32[2, 5, 3]", "c64[3, 3]"]),
    OpDef::kernel(
        "aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
        "The first columns of a product of reflections.",
        rules::householder_product,
        eval::householder_product,
    )
    .derivative(d::householder_product)
    .samples(&["f32[2, 5, 3], f32[2, 3]", "c64[3, 3], c64[2]"]),
    OpDef::kernel(
        "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
        "The product of reflections with a matrix.",
        rules::ormqr,
        eval::ormqr,
    )
    .derivative(d::ormqr)
    .samples(&["f32[2, 5, 3], f32[2, 3], f32[2, 5, 2]", "c64[3, 3], c64[2], c64[4, 3], False, True"]),
    OpDef::kernel(
        "aten::_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
        "The eigenvalues of Hermitian matrices, and their vectors up to a factor of modulus one.",
        rules::eigh,
        eval::eigh,
    )
    .free(Freedom::Signs)
    .derivative(d::eigh)
    .samples(&["f32[2, 3, 3], 'L', False", "c64[3, 3], 'U', False", "f64[0, 0], 'L', False", "f64[2, 3, 3]"]),
    OpDef::kernel(
        "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        "The singular values of matrices, and their vectors up to a factor of modulus one.",
        rules::svd,
        eval::svd,
    )
    .free(Freedom::Signs)
    .derivative(d::svd)
    .samples(&["f32[2, 3, 5], False, False", "c64[5, 3], True, False", "f64[3, 0], False, False", "f64[2, 5, 3]", "f64[3, 5]", "f64[3, 3], True"]),
    OpDef::kernel(
        "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
        "The pseudoinverse; singular values below the tolerances count as zero.",
        rules::pinv,
        eval::pinv,
    )
    .derivative(d::pinv)
    .samples(&["f32[2, 3, 5]", "c64[5, 3], atol=f64[]{0..1}", "f64[3, 3], rtol=f64[]{0..0.001}, hermitian=True", "f32[3, 0]"]),
    OpDef::kernel(
        "aten::linalg_polar(Tensor A) -> (Tensor U, Tensor H)",
        "The polar decomposition into a unitary and a positive matrix.",
        rules::polar,
        eval::polar,
    )
    .derivative(d::polar)
    .samples(&["f32[2, 5, 3]", "c64[3, 3]"]),
    OpDef::kernel(
        "aten::linalg_matrix_sqrth(Tensor self) -> Tensor",
        "The square root of Hermitian matrices; negative eigenvalues count as zero.",
        rules::rows_like_square,
        eval::matrix_sqrth,
    )
    .derivative(d::matrix_sqrth)
    .samples(&["f32[2, 3, 3]", "c64[3, 3]"]),
    OpDef::kernel(
        "aten::linalg_matrix_exp(Tensor self) -> Tensor",
        "The exponential of matrices.",
        rules::rows_like_square,
        eval::matrix_exp,
    )
    .derivative(d::matrix_exp)
    .samples(&["f32[2, 3, 3]", "c64[3, 3]", "f64[2, 0, 0]", "bf16[3, 3]"]),
];
