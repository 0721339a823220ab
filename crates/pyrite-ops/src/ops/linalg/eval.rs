//! The kernels: each loads the matrices of a batch, works on one after the other, and stores the results.

use num_complex::Complex64;
use pyrite_ir::op::KernelFn;
use pyrite_ir::{Call, Meta, OpError, Value, invalid, unsupported};
use pyrite_tensor::{DType, Tensor};

use pyrite_kernels::linalg::factor::{self, Diagonal, Lu, Triangle};
use pyrite_kernels::linalg::matrix::{Matrix, Number, load, load_as, store};
use pyrite_kernels::linalg::spectral;

type Evaluated = Result<Value<Tensor>, OpError>;

/// Runs the kernel for real or for complex numbers.
fn by_type(call: &Call<'_>, real: KernelFn, complex: KernelFn) -> Evaluated {
    if call.args.tensor(0)?.dtype().is_complex() { complex(call) } else { real(call) }
}

/// An operator for both kinds of numbers.
macro_rules! both {
    ($($(#[$doc:meta])* $name:ident => $generic:ident;)*) => {
        $($(#[$doc])* pub fn $name(call: &Call<'_>) -> Evaluated {
            by_type(call, $generic::<f64>, $generic::<Complex64>)
        })*
    };
}

both! {
    cholesky_ex => cholesky_ex_of;
    cholesky_inverse => cholesky_inverse_of;
    cholesky_solve => cholesky_solve_of;
    solve_triangular => solve_triangular_of;
    triangular_solve => triangular_solve_of;
    inv_ex => inv_ex_of;
    solve_ex => solve_ex_of;
    det => det_of;
    slogdet => slogdet_of;
    lu_factor_ex => lu_factor_ex_of;
    lu => lu_of;
    lu_unpack => lu_unpack_of;
    lu_solve => lu_solve_of;
    qr => qr_of;
    geqrf => geqrf_of;
    householder_product => householder_product_of;
    ormqr => ormqr_of;
    eigh => eigh_of;
    svd => svd_of;
    pinv => pinv_of;
    polar => polar_of;
    matrix_sqrth => matrix_sqrth_of;
    matrix_exp => matrix_exp_of;
}

fn triangle(upper: bool) -> Triangle {
    if upper { Triangle::Upper } else { Triangle::Lower }
}

fn opposite(triangle: Triangle) -> Triangle {
    if triangle == Triangle::Lower { Triangle::Upper } else { Triangle::Lower }
}

fn store_ints(tensor: &Tensor, values: impl IntoIterator<Item = usize>) {
    tensor.write_i64s(&values.into_iter().map(|v| v as i64).collect::<Vec<_>>());
}

/// The batch dimensions of a result that holds matrices.
fn batch_of(tensor: &Tensor) -> &[i64] {
    &tensor.shape()[..tensor.rank() - 2]
}

fn check(call: &Call<'_>, index: usize, infos: &[usize], problem: &str) -> Result<(), OpError> {
    if call.args.bool(index)?
        && let Some(at) = infos.iter().position(|info| *info > 0)
    {
        invalid!("{}: matrix {at} of the batch: {problem} {}", call.args.schema.name, infos[at]);
    }
    Ok(())
}

/// The lower Cholesky factor that is stored in one triangle.
fn lower_factor<T: Number>(factor: &Matrix<T>, triangle: Triangle) -> Matrix<T> {
    if triangle == Triangle::Upper { factor.adjoint() } else { factor.clone() }
}

fn cholesky_ex_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let triangle = triangle(call.args.bool(1)?);
    let (out, info) = (call.allocate(0)?, call.allocate(1)?);
    let (factors, infos): (Vec<_>, Vec<_>) = load::<T>(call.args.tensor(0)?)
        .into_iter()
        .map(|a| {
            let (factor, info) = factor::cholesky(lower_factor(&a, triangle));
            (if triangle == Triangle::Upper { factor.adjoint() } else { factor }, info)
        })
        .unzip();
    check(call, 2, &infos, "it is not positive-definite, the leading minor fails that has the order")?;
    store(&out, &factors);
    store_ints(&info, infos);
    Ok(vec![out, info].into())
}

/// Solves `L·Lᴴ·X = B` in place.
fn solve_factored<T: Number>(lower: &Matrix<T>, b: &mut Matrix<T>) {
    factor::solve_triangular(lower, b, Triangle::Lower, Diagonal::Stored);
    factor::solve_triangular(&lower.adjoint(), b, Triangle::Upper, Diagonal::Stored);
}

fn cholesky_inverse_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let triangle = triangle(call.args.bool(1)?);
    let out = call.allocate(0)?;
    let inverses: Vec<Matrix<T>> = load::<T>(call.args.tensor(0)?)
        .iter()
        .map(|a| {
            let mut b = Matrix::identity(a.rows);
            solve_factored(&lower_factor(a, triangle), &mut b);
            b
        })
        .collect();
    store(&out, &inverses);
    Ok(out.into())
}

fn cholesky_solve_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let triangle = triangle(call.args.bool(2)?);
    let out = call.allocate(0)?;
    let mut solutions = load_as::<T>(call.args.tensor(0)?, batch_of(&out));
    for (b, a) in solutions.iter_mut().zip(load_as::<T>(call.args.tensor(1)?, batch_of(&out))) {
        solve_factored(&lower_factor(&a, triangle), b);
    }
    store(&out, &solutions);
    Ok(out.into())
}

fn solve_triangular_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (upper, left, ones) = (call.args.bool(2)?, call.args.bool(3)?, call.args.bool(4)?);
    let diagonal = if ones { Diagonal::Ones } else { Diagonal::Stored };
    let out = call.allocate(0)?;
    let mut solutions = load_as::<T>(call.args.tensor(1)?, batch_of(&out));
    for (b, a) in solutions.iter_mut().zip(load_as::<T>(call.args.tensor(0)?, batch_of(&out))) {
        if left {
            factor::solve_triangular(&a, b, triangle(upper), diagonal);
        } else {
            let mut transposed = b.transposed();
            factor::solve_triangular(&a.transposed(), &mut transposed, opposite(triangle(upper)), diagonal);
            *b = transposed.transposed();
        }
    }
    store(&out, &solutions);
    Ok(out.into())
}

fn triangular_solve_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (upper, transpose, ones) = (call.args.bool(2)?, call.args.bool(3)?, call.args.bool(4)?);
    let diagonal = if ones { Diagonal::Ones } else { Diagonal::Stored };
    let (out, clone) = (call.allocate(0)?, call.allocate(1)?);
    let mut solutions = load_as::<T>(call.args.tensor(0)?, batch_of(&out));
    let systems = load_as::<T>(call.args.tensor(1)?, batch_of(&out));
    for (b, a) in solutions.iter_mut().zip(&systems) {
        if transpose {
            factor::solve_triangular(&a.transposed(), b, opposite(triangle(upper)), diagonal);
        } else {
            factor::solve_triangular(a, b, triangle(upper), diagonal);
        }
    }
    store(&out, &solutions);
    store(&clone, &systems);
    Ok(vec![out, clone].into())
}

const SINGULAR: &str = "it is singular, zero is the diagonal element";

fn inv_ex_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (out, info) = (call.allocate(0)?, call.allocate(1)?);
    let (inverses, infos): (Vec<_>, Vec<_>) = load::<T>(call.args.tensor(0)?)
        .into_iter()
        .map(|a| {
            let mut b = Matrix::identity(a.rows);
            let factors = factor::lu(a);
            factors.solve(&mut b);
            (b, factors.info)
        })
        .unzip();
    check(call, 1, &infos, SINGULAR)?;
    store(&out, &inverses);
    store_ints(&info, infos);
    Ok(vec![out, info].into())
}

/// The side on which the unknown stands, and whether the matrix is conjugated and transposed.
#[derive(Clone, Copy)]
struct System {
    left: bool,
    adjoint: bool,
}

impl System {
    fn solve<T: Number>(self, factors: &Lu<T>, b: &mut Matrix<T>) {
        let solve =
            |b: &mut Matrix<T>| if self.adjoint == self.left { factors.solve_adjoint(b) } else { factors.solve(b) };
        if self.left {
            solve(b);
        } else {
            let mut transposed = b.adjoint();
            solve(&mut transposed);
            *b = transposed.adjoint();
        }
    }
}

/// Stores factors, pivots (counted from one) and, where it is asked for, what went wrong.
fn store_lu<T: Number>(factors: &[Lu<T>], lu: &Tensor, pivots: &Tensor) {
    store(lu, factors.iter().map(|f| &f.lu));
    store_ints(pivots, factors.iter().flat_map(|f| f.pivots.iter().map(|p| p + 1)));
}

fn solve_ex_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (a, b) = (call.args.tensor(0)?, call.args.tensor(1)?);
    let [out, lu, pivots, info] = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?, call.allocate(3)?];
    let vector = crate::rules::is_vector(&Meta::of(a).shape, &Meta::of(b).shape);
    let matrices = |t: &Tensor| {
        let mut layout = t.layout().clone();
        if vector {
            layout.shape.push(1);
            layout.stride.push(1);
        }
        t.view(t.dtype(), layout)
    };
    let (b, result) = (matrices(b)?, matrices(&out)?);
    let factors: Vec<Lu<T>> = load::<T>(a).into_iter().map(factor::lu).collect();
    let infos: Vec<usize> = factors.iter().map(|f| f.info).collect();
    check(call, 3, &infos, SINGULAR)?;
    let batch = batch_of(&result);
    let mut solutions = load_as::<T>(&b, batch);
    let which =
        Tensor::from_slice(&(0..factors.len() as i64).collect::<Vec<_>>(), batch_of(a)).expanded(batch).to_i64s();
    let system = System { left: call.args.bool(2)?, adjoint: false };
    for (b, which) in solutions.iter_mut().zip(which) {
        system.solve(&factors[which as usize], b);
    }
    store(&result, &solutions);
    store_lu(&factors, &lu, &pivots);
    store_ints(&info, infos);
    Ok(vec![out, lu, pivots, info].into())
}

/// The factors of each matrix; those of the transposed one where the argument lies row by row, which has the same
/// determinant.
fn determinant_factors<T: Number>(input: &Tensor) -> Vec<Lu<T>> {
    let transposed = input.layout().is_contiguous() && !input.dtype().is_complex();
    load::<T>(input).into_iter().map(|a| factor::lu(if transposed { a.transposed() } else { a })).collect()
}

fn diagonal<T: Number>(factors: &Lu<T>) -> impl Iterator<Item = T> {
    (0..factors.lu.rows).map(|i| factors.lu[(i, i)])
}

fn parity<T: Number>(factors: &Lu<T>) -> T {
    if factors.is_odd() { -T::ONE } else { T::ONE }
}

fn det_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let [out, lu, pivots] = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?];
    let factors = determinant_factors::<T>(call.args.tensor(0)?);
    let values: Vec<T> = factors.iter().map(|f| diagonal(f).fold(parity(f), |product, u| product * u)).collect();
    T::store(&out, &values);
    store_lu(&factors, &lu, &pivots);
    Ok(vec![out, lu, pivots].into())
}

fn slogdet_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let [sign, log, lu, pivots] = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?, call.allocate(3)?];
    let factors = determinant_factors::<T>(call.args.tensor(0)?);
    let unit = |u: T| if u == T::ZERO { u } else { u / T::real(u.modulus()) };
    let signs: Vec<T> = factors.iter().map(|f| diagonal(f).fold(parity(f), |product, u| product * unit(u))).collect();
    let logs: Vec<f64> = factors.iter().map(|f| diagonal(f).map(|u| u.modulus().ln()).sum()).collect();
    T::store(&sign, &signs);
    log.write_f64s(&logs);
    store_lu(&factors, &lu, &pivots);
    Ok(vec![sign, log, lu, pivots].into())
}

fn check_pivoting(call: &Call<'_>) -> Result<(), OpError> {
    if !call.args.bool(1)? && call.args.tensor(0)?.numel() > 0 {
        invalid!("{} without pivots is not defined on the CPU", call.args.schema.name);
    }
    Ok(())
}

fn lu_factor_ex_of<T: Number>(call: &Call<'_>) -> Evaluated {
    check_pivoting(call)?;
    let [lu, pivots, info] = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?];
    let factors: Vec<Lu<T>> = load::<T>(call.args.tensor(0)?).into_iter().map(factor::lu).collect();
    let infos: Vec<usize> = factors.iter().map(|f| f.info).collect();
    check(call, 2, &infos, "zero is the diagonal element of U")?;
    store_lu(&factors, &lu, &pivots);
    store_ints(&info, infos);
    Ok(vec![lu, pivots, info].into())
}

/// `P`, `L` and `U`, each where it is asked for, which a result with two dimensions or more says.
fn store_plu<T: Number>(factors: &[Lu<T>], [p, l, u]: [&Tensor; 3]) {
    let entry = |one: bool| if one { T::ONE } else { T::ZERO };
    if p.rank() >= 2 {
        let permutations: Vec<Matrix<T>> = factors
            .iter()
            .map(|f| {
                let mut rows: Vec<usize> = (0..f.lu.rows).collect();
                for (k, pivot) in f.pivots.iter().enumerate() {
                    rows.swap(k, *pivot);
                }
                Matrix::from_fn(f.lu.rows, f.lu.rows, |i, j| entry(rows[j] == i))
            })
            .collect();
        store(p, &permutations);
    }
    if l.rank() >= 2 {
        let short = |f: &Lu<T>| f.lu.rows.min(f.lu.cols);
        let lower =
            |f: &Lu<T>| Matrix::from_fn(f.lu.rows, short(f), |i, j| if i > j { f.lu[(i, j)] } else { entry(i == j) });
        let upper =
            |f: &Lu<T>| Matrix::from_fn(short(f), f.lu.cols, |i, j| if i <= j { f.lu[(i, j)] } else { T::ZERO });
        store(l, &factors.iter().map(lower).collect::<Vec<_>>());
        store(u, &factors.iter().map(upper).collect::<Vec<_>>());
    }
}

fn lu_of<T: Number>(call: &Call<'_>) -> Evaluated {
    check_pivoting(call)?;
    let [p, l, u] = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?];
    let factors: Vec<Lu<T>> = load::<T>(call.args.tensor(0)?).into_iter().map(factor::lu).collect();
    store_plu(&factors, [&p, &l, &u]);
    Ok(vec![p, l, u].into())
}

/// Factors that were stored, with their pivots; `batch` is what both are broadcast to.
fn load_lu<T: Number>(lu: &Tensor, pivots: Option<&Tensor>, batch: &[i64]) -> Result<Vec<Lu<T>>, OpError> {
    let matrices = load_as::<T>(lu, batch);
    let Some(pivots) = pivots else {
        return Ok(matrices.into_iter().map(|lu| Lu { lu, pivots: Vec::new(), info: 0 }).collect());
    };
    let Some(&steps) = pivots.shape().last() else { invalid!("pivots without a dimension") };
    if pivots.rank() + 1 != lu.rank() || batch_of(lu) != &pivots.shape()[..pivots.rank() - 1] {
        invalid!("factors of shape {:?} with pivots of shape {:?}", lu.shape(), pivots.shape());
    }
    let shape: Vec<i64> = batch.iter().copied().chain([steps]).collect();
    let all = pivots.expanded(&shape).to_i64s();
    matrices
        .into_iter()
        .enumerate()
        .map(|(n, lu)| {
            let own = &all[n * steps as usize..(n + 1) * steps as usize];
            if own.len() > lu.rows || own.iter().any(|p| !(1..=lu.rows as i64).contains(p)) {
                invalid!("pivots must be from 1 to the number of rows, {}", lu.rows);
            }
            Ok(Lu { pivots: own.iter().map(|p| *p as usize - 1).collect(), lu, info: 0 })
        })
        .collect()
}

fn lu_unpack_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let [p, l, u] = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?];
    let lu = call.args.tensor(0)?;
    let pivots = if call.args.bool(3)? { Some(call.args.tensor(1)?) } else { None };
    store_plu(&load_lu::<T>(lu, pivots, batch_of(lu))?, [&p, &l, &u]);
    Ok(vec![p, l, u].into())
}

fn lu_solve_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let out = call.allocate(0)?;
    let factors = load_lu::<T>(call.args.tensor(0)?, Some(call.args.tensor(1)?), batch_of(&out))?;
    let mut solutions = load_as::<T>(call.args.tensor(2)?, batch_of(&out));
    let system = System { left: call.args.bool(3)?, adjoint: call.args.bool(4)? };
    for (b, factors) in solutions.iter_mut().zip(&factors) {
        system.solve(factors, b);
    }
    store(&out, &solutions);
    Ok(out.into())
}

fn qr_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (q, r) = (call.allocate(0)?, call.allocate(1)?);
    let factored: Vec<_> = load::<T>(call.args.tensor(0)?).into_iter().map(factor::householder).collect();
    if q.rank() >= 2 {
        let cols = q.shape()[q.rank() - 1] as usize;
        store(&q, &factored.iter().map(|(a, taus)| factor::q_columns(a, taus, cols)).collect::<Vec<_>>());
    }
    let rows = r.shape()[r.rank() - 2] as usize;
    let upper = |a: &Matrix<T>| Matrix::from_fn(rows, a.cols, |i, j| if i <= j { a[(i, j)] } else { T::ZERO });
    store(&r, &factored.iter().map(|(a, _)| upper(a)).collect::<Vec<_>>());
    Ok(vec![q, r].into())
}

fn geqrf_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (out, tau) = (call.allocate(0)?, call.allocate(1)?);
    let factored: Vec<_> = load::<T>(call.args.tensor(0)?).into_iter().map(factor::householder).collect();
    store(&out, factored.iter().map(|(a, _)| a));
    T::store(&tau, &factored.iter().flat_map(|(_, taus)| taus.iter().copied()).collect::<Vec<_>>());
    Ok(vec![out, tau].into())
}

/// Reflections with their factors, matrix by matrix.
fn reflections<T: Number>(call: &Call<'_>) -> Result<Vec<(Matrix<T>, Vec<T>)>, OpError> {
    let tau = call.args.tensor(1)?;
    let count = tau.shape()[tau.rank() - 1] as usize;
    let taus = T::load(tau);
    let matrices = load::<T>(call.args.tensor(0)?).into_iter().enumerate();
    Ok(matrices.map(|(n, a)| (a, taus[n * count..(n + 1) * count].to_vec())).collect())
}

fn householder_product_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let out = call.allocate(0)?;
    let products: Vec<_> = reflections::<T>(call)?.iter().map(|(a, taus)| factor::q_columns(a, taus, a.cols)).collect();
    store(&out, &products);
    Ok(out.into())
}

fn ormqr_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (left, transpose) = (call.args.bool(3)?, call.args.bool(4)?);
    let out = call.allocate(0)?;
    let mut targets = load::<T>(call.args.tensor(2)?);
    for (target, (a, taus)) in targets.iter_mut().zip(reflections::<T>(call)?) {
        // From the right by way of the adjoint: `C·Q = (Qᴴ·Cᴴ)ᴴ`.
        let mut transposed = if left { target.clone() } else { target.adjoint() };
        if transpose == left {
            factor::apply_q_adjoint(&a, &taus, &mut transposed);
        } else {
            factor::apply_q(&a, &taus, &mut transposed);
        }
        *target = if left { transposed } else { transposed.adjoint() };
    }
    store(&out, &targets);
    Ok(out.into())
}

fn check_finite<T: Number>(call: &Call<'_>, matrices: &[Matrix<T>]) -> Result<(), OpError> {
    if matrices.iter().all(Matrix::is_finite) {
        return Ok(());
    }
    invalid!("{} of a matrix with infinities or NaNs", call.args.schema.name)
}

/// The triangle that a name says, as a whole Hermitian matrix.
fn hermitian_of<T: Number>(matrices: &[Matrix<T>], upper: bool) -> Vec<Matrix<T>> {
    matrices.iter().map(|a| spectral::hermitian(a, triangle(upper))).collect()
}

fn eigh_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (values, vectors) = (call.allocate(0)?, call.allocate(1)?);
    let matrices = hermitian_of(&load::<T>(call.args.tensor(0)?), matches!(call.args.str(1)?, "U" | "u"));
    check_finite(call, &matrices)?;
    let found: Vec<(Vec<f64>, Matrix<T>)> = matrices.into_iter().map(spectral::eigh).collect();
    values.write_f64s(&found.iter().flat_map(|(values, _)| values.iter().copied()).collect::<Vec<_>>());
    if call.args.bool(2)? {
        store(&vectors, found.iter().map(|(_, vectors)| vectors));
    }
    Ok(vec![values, vectors].into())
}

/// The decomposition of a matrix, or of its adjoint where that is the taller one.
fn tall<T: Number>(a: &Matrix<T>) -> Matrix<T> {
    if a.rows < a.cols { a.adjoint() } else { a.clone() }
}

fn svd_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let [u, s, vh] = [call.allocate(0)?, call.allocate(1)?, call.allocate(2)?];
    let matrices = load::<T>(call.args.tensor(0)?);
    check_finite(call, &matrices)?;
    let (full, vectors) = (call.args.bool(1)?, call.args.bool(2)?);
    let (mut values, mut lefts, mut rights) = (Vec::new(), Vec::new(), Vec::new());
    for a in &matrices {
        let found = spectral::svd(&tall(a));
        if vectors {
            let longest = a.rows.max(a.cols);
            let long = spectral::completed(&found.u, &found.s, if full { longest } else { found.s.len() });
            let (left, right) = if a.rows < a.cols { (found.v, long) } else { (long, found.v) };
            lefts.push(left);
            rights.push(right.adjoint());
        }
        values.extend(found.s);
    }
    s.write_f64s(&values);
    if vectors {
        store(&u, &lefts);
        store(&vh, &rights);
    }
    Ok(vec![u, s, vh].into())
}

fn epsilon(dtype: DType) -> f64 {
    if matches!(dtype, DType::F64 | DType::C128) { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

/// `left · diag(values) · rightᴴ`
fn compose<T: Number>(left: &Matrix<T>, values: &[f64], right: &Matrix<T>) -> Matrix<T> {
    Matrix::from_fn(left.rows, left.cols, |i, j| left[(i, j)] * T::real(values[j])).times(&right.adjoint())
}

fn pinv_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let input = call.args.tensor(0)?;
    let out = call.allocate(0)?;
    let matrices = load::<T>(input);
    check_finite(call, &matrices)?;
    let shape = &input.shape()[..input.rank() - 2];
    // One tolerance per matrix; more dimensions than the batch has are not done.
    let tolerances = |index: usize| match call.args.opt_tensor(index) {
        Ok(Some(t))
            if t.rank() <= shape.len()
                && t.shape().iter().rev().zip(shape.iter().rev()).all(|(a, b)| a == b || *a == 1) =>
        {
            Ok(Some(t.expanded(shape).to_f64s()))
        }
        Ok(None) => Ok(None),
        Ok(Some(t)) => {
            Err(OpError::unsupported(format!("tolerances of shape {:?} for the batch {shape:?}", t.shape())))
        }
        Err(error) => Err(error),
    };
    let (absolute, relative) = (tolerances(1)?, tolerances(2)?);
    let longest = input.shape()[input.rank() - 2].max(input.shape()[input.rank() - 1]) as f64;
    let usual = epsilon(input.dtype()) * longest;
    let cutoff = |n: usize, largest: f64| {
        let absolute = absolute.as_ref().map_or(0.0, |t| t[n]);
        let relative = relative.as_ref().map_or(if absolute > 0.0 { 0.0 } else { usual }, |t| t[n]);
        absolute.max(relative * largest)
    };
    let inverted = |n: usize, values: &[f64]| -> Vec<f64> {
        let cutoff = cutoff(n, values.iter().fold(0.0, |m: f64, v| m.max(v.abs())));
        values.iter().map(|v| if v.abs() > cutoff { 1.0 / v } else { 0.0 }).collect()
    };
    let hermitian = call.args.bool(3)?;
    let inverses: Vec<Matrix<T>> = matrices
        .iter()
        .enumerate()
        .map(|(n, a)| {
            if hermitian {
                let (values, vectors) = spectral::eigh(spectral::hermitian(a, Triangle::Lower));
                return compose(&vectors, &inverted(n, &values), &vectors);
            }
            let svd = spectral::svd(&tall(a));
            let inverse = compose(&svd.v, &inverted(n, &svd.s), &svd.u);
            if a.rows < a.cols { inverse.adjoint() } else { inverse }
        })
        .collect();
    store(&out, &inverses);
    Ok(out.into())
}

fn polar_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let (u, h) = (call.allocate(0)?, call.allocate(1)?);
    let matrices = load::<T>(call.args.tensor(0)?);
    check_finite(call, &matrices)?;
    let (mut unitary, mut rest) = (Vec::new(), Vec::new());
    for a in &matrices {
        let svd = spectral::svd(a);
        let (largest, smallest) = (svd.s.first().copied().unwrap_or(1.0), svd.s.last().copied().unwrap_or(1.0));
        if smallest <= epsilon(u.dtype()) * largest * a.rows as f64 {
            unsupported!("the polar factor of a matrix without full rank, which is not unique");
        }
        unitary.push(compose(&svd.u, &vec![1.0; a.cols], &svd.v));
        rest.push(compose(&svd.v, &svd.s, &svd.v));
    }
    store(&u, &unitary);
    store(&h, &rest);
    Ok(vec![u, h].into())
}

fn matrix_sqrth_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let out = call.allocate(0)?;
    let matrices = hermitian_of(&load::<T>(call.args.tensor(0)?), false);
    check_finite(call, &matrices)?;
    let roots: Vec<Matrix<T>> = matrices
        .into_iter()
        .map(|a| {
            let (values, vectors) = spectral::eigh(a);
            compose(&vectors, &values.iter().map(|v| v.max(0.0).sqrt()).collect::<Vec<_>>(), &vectors)
        })
        .collect();
    store(&out, &roots);
    Ok(out.into())
}

/// Terms of the exponential series that are enough for a norm of one half.
const EXPONENTIAL_TERMS: usize = 16;

/// By the series, on a matrix halved until its norm is small, squared as often.
fn exponential<T: Number>(a: &Matrix<T>) -> Matrix<T> {
    let norm = (0..a.cols).map(|j| a.column(j).iter().map(|v| v.modulus()).sum::<f64>()).fold(0.0, f64::max);
    let halvings = if norm > 0.5 { (norm / 0.5).log2().ceil() as i32 } else { 0 };
    let scale = T::real(0.5_f64.powi(halvings));
    let scaled = Matrix::from_fn(a.rows, a.cols, |i, j| a[(i, j)] * scale);
    let mut result = Matrix::<T>::identity(a.rows);
    for k in (1..=EXPONENTIAL_TERMS).rev() {
        let factor = T::real(1.0 / k as f64);
        result = scaled.times(&result);
        for (at, value) in result.data.iter_mut().enumerate() {
            *value = *value * factor + if at % (a.rows + 1) == 0 { T::ONE } else { T::ZERO };
        }
    }
    for _ in 0..halvings {
        result = result.times(&result);
    }
    result
}

fn matrix_exp_of<T: Number>(call: &Call<'_>) -> Evaluated {
    let out = call.allocate(0)?;
    let matrices = load::<T>(call.args.tensor(0)?);
    if !matrices.iter().all(Matrix::is_finite) {
        unsupported!("the exponential of a matrix with infinities or NaNs");
    }
    store(&out, &matrices.iter().map(exponential).collect::<Vec<_>>());
    Ok(out.into())
}

pub fn cross(call: &Call<'_>) -> Evaluated {
    let out = call.allocate(0)?;
    let dtype = out.dtype();
    if dtype.is_complex() {
        cross_of::<Complex64>(call, &out, |[a, b, c, d]| a * b - c * d)?;
    } else if dtype.is_float() {
        cross_of::<f64>(call, &out, |[a, b, c, d]| a * b - c * d)?;
    } else {
        cross_of::<i64>(call, &out, |[a, b, c, d]| a.wrapping_mul(b).wrapping_sub(c.wrapping_mul(d)))?;
    }
    Ok(out.into())
}

fn cross_of<T: pyrite_kernels::Carrier>(call: &Call<'_>, out: &Tensor, f: fn([T; 4]) -> T) -> Result<(), OpError> {
    let dim = crate::rules::wrap_dim(call.args.int(2)?, out.rank())?;
    let (a, b) =
        (T::load(&call.args.tensor(0)?.expanded(out.shape())), T::load(&call.args.tensor(1)?.expanded(out.shape())));
    let inner = out.shape()[dim + 1..].iter().product::<i64>() as usize;
    let result: Vec<T> = (0..a.len())
        .map(|at| {
            let (block, axis, rest) = (at / (3 * inner) * 3 * inner, at / inner % 3, at % inner);
            let place = |axis: usize| block + axis % 3 * inner + rest;
            let (next, after) = (place(axis + 1), place(axis + 2));
            f([a[next], b[after], a[after], b[next]])
        })
        .collect();
    T::store(out, &result);
    Ok(())
}

pub fn check_errors(call: &Call<'_>) -> Evaluated {
    let infos = call.args.tensor(0)?.to_i64s();
    if let Some(at) = infos.iter().position(|info| *info != 0) {
        invalid!("{}: matrix {at} of the batch cannot be worked with (error {})", call.args.str(1)?, infos[at]);
    }
    Ok(Value::None)
}
