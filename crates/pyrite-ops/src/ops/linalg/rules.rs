//! Metadata of the operators on matrices.
//!
//! Factors lie column by column, as LAPACK leaves them; what further operators make of them lies row by row.

use pyrite_ir::meta::contiguous_strides;
use pyrite_ir::{Args, Meta, OpError, SymDims, Value, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use crate::rules::{broadcast, is_vector};

type Inferred = Result<Value<Meta>, OpError>;

/// An error unless the argument holds matrices of a type that LAPACK knows.
fn matrices<'a>(args: &Args<'a, Meta>, index: usize) -> Result<&'a Meta, OpError> {
    let meta = args.tensor(index)?;
    if meta.rank() < 2 {
        invalid!("{} takes matrices, not a tensor of shape {:?}", args.schema.name, meta.shape);
    }
    // The exponential is a sum of products and needs no LAPACK.
    let by_products = &*args.schema.name == "aten.linalg_matrix_exp.default";
    let half = matches!(meta.dtype, DType::F16 | DType::BF16);
    if meta.dtype.is_integral() || (half && !by_products) {
        invalid!("{} is not defined for {}", args.schema.name, meta.dtype);
    }
    Ok(meta)
}

fn square<'a>(args: &Args<'a, Meta>, index: usize) -> Result<&'a Meta, OpError> {
    let meta = matrices(args, index)?;
    let (rows, cols) = size(meta);
    if !rows.is_eq(&cols) {
        invalid!("{} takes square matrices, not {rows} by {cols} ones", args.schema.name);
    }
    Ok(meta)
}

fn size(meta: &Meta) -> (SymInt, SymInt) {
    (meta.shape[meta.rank() - 2].clone(), meta.shape[meta.rank() - 1].clone())
}

/// The smaller size, decided by comparing, so that a size of zero or one stays a number.
fn shorter<'a>(rows: &'a SymInt, cols: &'a SymInt) -> &'a SymInt {
    if rows.is_le(cols) { rows } else { cols }
}

fn batch(meta: &Meta) -> &[SymInt] {
    &meta.shape[..meta.rank() - 2]
}

fn shaped(batch: &[SymInt], sizes: &[&SymInt]) -> SymDims {
    batch.iter().chain(sizes.iter().copied()).cloned().collect()
}

/// Matrices that lie column by column.
fn columns(like: &Meta, shape: &[SymInt], dtype: DType) -> Meta {
    let mut stride: SymDims = shape.into();
    let last = shape.len() - 1;
    stride.swap(last, last - 1);
    let mut stride = contiguous_strides(&stride);
    stride.swap(last, last - 1);
    Meta { device: like.device.clone(), ..Meta::strided(shape, &stride, dtype) }
}

/// What stands for a result that was not asked for.
fn nothing(like: &Meta, dtype: DType) -> Meta {
    like.fresh(&[SymInt::Int(0)], dtype)
}

fn pivots_and_info(a: &Meta) -> (Meta, Meta) {
    let (rows, cols) = size(a);
    let pivots = a.fresh(&shaped(batch(a), &[shorter(&rows, &cols)]), DType::I32);
    (pivots, a.fresh(batch(a), DType::I32))
}

fn same_type(args: &Args<'_, Meta>, a: &Meta, b: &Meta) -> Result<(), OpError> {
    if a.dtype != b.dtype {
        invalid!("{} of {} and {}", args.schema.name, a.dtype, b.dtype);
    }
    Ok(())
}

/// The shape of the solution of a system with matrices `a` and a right-hand side.
fn solution(args: &Args<'_, Meta>, a: &Meta, b: &Meta, left: bool) -> Result<SymDims, OpError> {
    same_type(args, a, b)?;
    let ((rows, cols), n) = (size(b), size(a).0);
    if !n.is_eq(if left { &rows } else { &cols }) {
        invalid!("{}: matrices of shape {:?} and a right-hand side of shape {:?}", args.schema.name, a.shape, b.shape);
    }
    Ok(shaped(&broadcast(&[batch(a), batch(b)])?, &[&rows, &cols]))
}

pub fn cholesky_ex(args: &Args<'_, Meta>) -> Inferred {
    let a = square(args, 0)?;
    Ok(vec![columns(a, &a.shape, a.dtype), pivots_and_info(a).1].into())
}

pub fn inv_ex(args: &Args<'_, Meta>) -> Inferred {
    cholesky_ex(args)
}

pub fn like_square(args: &Args<'_, Meta>) -> Inferred {
    let a = square(args, 0)?;
    Ok(columns(a, &a.shape, a.dtype).into())
}

pub fn rows_like_square(args: &Args<'_, Meta>) -> Inferred {
    let a = square(args, 0)?;
    Ok(a.fresh(&a.shape, a.dtype).into())
}

pub fn cholesky_solve(args: &Args<'_, Meta>) -> Inferred {
    let (b, a) = (matrices(args, 0)?, square(args, 1)?);
    Ok(columns(a, &solution(args, a, b, true)?, a.dtype).into())
}

pub fn solve_triangular(args: &Args<'_, Meta>) -> Inferred {
    let (a, b) = (square(args, 0)?, matrices(args, 1)?);
    Ok(columns(a, &solution(args, a, b, args.bool(3)?)?, a.dtype).into())
}

pub fn triangular_solve(args: &Args<'_, Meta>) -> Inferred {
    let (b, a) = (matrices(args, 0)?, square(args, 1)?);
    let shape = solution(args, a, b, true)?;
    let n = size(a).0;
    let clone = shaped(&shape[..shape.len() - 2], &[&n, &n]);
    Ok(vec![columns(a, &shape, a.dtype), columns(a, &clone, a.dtype)].into())
}

pub fn solve_ex(args: &Args<'_, Meta>) -> Inferred {
    let (a, b) = (square(args, 0)?, args.tensor(1)?);
    let left = args.bool(2)?;
    let result = if is_vector(&a.shape, &b.shape) {
        same_type(args, a, b)?;
        if !left || !b.shape[b.rank() - 1].is_eq(&size(a).0) || (b.rank() == 1 && a.rank() > 2) {
            invalid!("{}: matrices of shape {:?} and vectors of shape {:?}", args.schema.name, a.shape, b.shape);
        }
        if b.rank() == 1 { b.fresh(&b.shape, b.dtype) } else { columns(b, &b.shape, b.dtype) }
    } else {
        let shape = solution(args, a, matrices(args, 1)?, left)?;
        if left { columns(a, &shape, a.dtype) } else { a.fresh(&shape, a.dtype) }
    };
    let (pivots, info) = pivots_and_info(a);
    Ok(vec![result, columns(a, &a.shape, a.dtype), pivots, info].into())
}

pub fn det(args: &Args<'_, Meta>) -> Inferred {
    let a = square(args, 0)?;
    Ok(vec![a.fresh(batch(a), a.dtype), columns(a, &a.shape, a.dtype), pivots_and_info(a).0].into())
}

pub fn slogdet(args: &Args<'_, Meta>) -> Inferred {
    let a = square(args, 0)?;
    let (sign, log) = (a.fresh(batch(a), a.dtype), a.fresh(batch(a), a.dtype.to_real()));
    Ok(vec![sign, log, columns(a, &a.shape, a.dtype), pivots_and_info(a).0].into())
}

pub fn lu_factor_ex(args: &Args<'_, Meta>) -> Inferred {
    let a = matrices(args, 0)?;
    let (pivots, info) = pivots_and_info(a);
    Ok(vec![columns(a, &a.shape, a.dtype), pivots, info].into())
}

fn plu(a: &Meta) -> [Meta; 3] {
    let (rows, cols) = size(a);
    let short = shorter(&rows, &cols).clone();
    [(&rows, &rows), (&rows, &short), (&short, &cols)].map(|(m, n)| a.fresh(&shaped(batch(a), &[m, n]), a.dtype))
}

pub fn lu(args: &Args<'_, Meta>) -> Inferred {
    let a = matrices(args, 0)?;
    let [mut p, l, u] = plu(a);
    if !args.bool(1)? {
        p = nothing(a, a.dtype);
    }
    Ok(vec![p, l, u].into())
}

pub fn lu_unpack(args: &Args<'_, Meta>) -> Inferred {
    let a = matrices(args, 0)?;
    if args.bool(3)? && args.tensor(1)?.dtype != DType::I32 {
        invalid!("pivots must be i32, not {}", args.tensor(1)?.dtype);
    }
    let [mut p, mut l, mut u] = plu(a);
    if !args.bool(2)? {
        (l, u) = (nothing(a, a.dtype), nothing(a, a.dtype));
    }
    if !args.bool(3)? {
        p = nothing(a, a.dtype);
    }
    Ok(vec![p, l, u].into())
}

pub fn lu_solve(args: &Args<'_, Meta>) -> Inferred {
    let (a, b) = (square(args, 0)?, matrices(args, 2)?);
    if args.tensor(1)?.dtype != DType::I32 {
        invalid!("pivots must be i32, not {}", args.tensor(1)?.dtype);
    }
    let left = args.bool(3)?;
    let shape = solution(args, a, b, left)?;
    Ok(if left { columns(a, &shape, a.dtype) } else { a.fresh(&shape, a.dtype) }.into())
}

pub fn qr(args: &Args<'_, Meta>) -> Inferred {
    let a = matrices(args, 0)?;
    let (rows, cols) = size(a);
    let short = shorter(&rows, &cols).clone();
    let matrix = |m: &SymInt, n: &SymInt| columns(a, &shaped(batch(a), &[m, n]), a.dtype);
    Ok(match args.str(1)? {
        "reduced" => vec![matrix(&rows, &short), matrix(&short, &cols)],
        "complete" => vec![matrix(&rows, &rows), matrix(&rows, &cols)],
        "r" => vec![nothing(a, a.dtype), matrix(&short, &cols)],
        other => invalid!("the mode of qr is 'reduced', 'complete' or 'r', not '{other}'"),
    }
    .into())
}

pub fn geqrf(args: &Args<'_, Meta>) -> Inferred {
    let a = matrices(args, 0)?;
    let (rows, cols) = size(a);
    let tau = a.fresh(&shaped(batch(a), &[shorter(&rows, &cols)]), a.dtype);
    Ok(vec![columns(a, &a.shape, a.dtype), tau].into())
}

/// An error unless `tau` has a factor for each of at most as many reflections as there are columns.
fn check_tau(args: &Args<'_, Meta>, a: &Meta, tau: &Meta) -> Result<(), OpError> {
    same_type(args, a, tau)?;
    let lead = a.rank() - 2;
    let fits = tau.rank() == a.rank() - 1
        && tau.shape[..lead].iter().zip(&a.shape).all(|(x, y)| x.is_eq(y))
        && tau.shape[lead].is_le(&size(a).1)
        && tau.shape[lead].is_le(&size(a).0);
    if !fits {
        invalid!("{}: reflections of shape {:?} with factors of shape {:?}", args.schema.name, a.shape, tau.shape);
    }
    Ok(())
}

pub fn householder_product(args: &Args<'_, Meta>) -> Inferred {
    let a = matrices(args, 0)?;
    check_tau(args, a, args.tensor(1)?)?;
    if size(a).0.is_lt(&size(a).1) {
        invalid!("{} takes at least as many rows as columns", args.schema.name);
    }
    Ok(columns(a, &a.shape, a.dtype).into())
}

pub fn ormqr(args: &Args<'_, Meta>) -> Inferred {
    let (a, other) = (matrices(args, 0)?, matrices(args, 2)?);
    check_tau(args, a, args.tensor(1)?)?;
    same_type(args, a, other)?;
    let (rows, cols) = size(other);
    let same_batch = batch(a).len() == batch(other).len() && batch(a).iter().zip(batch(other)).all(|(x, y)| x.is_eq(y));
    if !size(a).0.is_eq(if args.bool(3)? { &rows } else { &cols }) || !same_batch {
        invalid!("{}: reflections of shape {:?} and matrices of shape {:?}", args.schema.name, a.shape, other.shape);
    }
    Ok(columns(other, &other.shape, other.dtype).into())
}

pub fn eigh(args: &Args<'_, Meta>) -> Inferred {
    let a = square(args, 0)?;
    if !matches!(args.str(1)?, "L" | "l" | "U" | "u") {
        invalid!("the triangle is 'L' or 'U', not '{}'", args.str(1)?);
    }
    let values = a.fresh(&a.shape[..a.rank() - 1], a.dtype.to_real());
    let vectors = if args.bool(2)? { columns(a, &a.shape, a.dtype) } else { nothing(a, a.dtype) };
    Ok(vec![values, vectors].into())
}

pub fn svd(args: &Args<'_, Meta>) -> Inferred {
    let a = matrices(args, 0)?;
    let (rows, cols) = size(a);
    let short = shorter(&rows, &cols).clone();
    let s = a.fresh(&shaped(batch(a), &[&short]), a.dtype.to_real());
    if !args.bool(2)? {
        return Ok(vec![nothing(a, a.dtype), s, nothing(a, a.dtype)].into());
    }
    let full = args.bool(1)?;
    let matrix = |m: &SymInt, n: &SymInt| columns(a, &shaped(batch(a), &[m, n]), a.dtype);
    let (u, vh) = (matrix(&rows, if full { &rows } else { &short }), matrix(if full { &cols } else { &short }, &cols));
    Ok(vec![u, s, vh].into())
}

pub fn pinv(args: &Args<'_, Meta>) -> Inferred {
    let a = if args.bool(3)? { square(args, 0)? } else { matrices(args, 0)? };
    let (rows, cols) = size(a);
    Ok(a.fresh(&shaped(batch(a), &[&cols, &rows]), a.dtype).into())
}

pub fn polar(args: &Args<'_, Meta>) -> Inferred {
    let a = matrices(args, 0)?;
    let (rows, cols) = size(a);
    if rows.is_lt(&cols) {
        invalid!("polar takes at least as many rows as columns, not {rows} by {cols} matrices");
    }
    Ok(vec![a.fresh(&a.shape, a.dtype), a.fresh(&shaped(batch(a), &[&cols, &cols]), a.dtype)].into())
}

pub fn cross(args: &Args<'_, Meta>) -> Inferred {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    same_type(args, a, b)?;
    if a.rank() != b.rank() || a.rank() == 0 || a.dtype == DType::Bool {
        invalid!("a cross product of {a} and {b}");
    }
    let dim = crate::rules::wrap_dim(args.int(2)?, a.rank())?;
    if !a.shape[dim].is_eq(3) || !b.shape[dim].is_eq(3) {
        invalid!("a cross product over a dimension of sizes {} and {}, expected 3", a.shape[dim], b.shape[dim]);
    }
    Ok(a.fresh(&broadcast(&[&a.shape, &b.shape])?, a.dtype).into())
}

pub fn check_errors(args: &Args<'_, Meta>) -> Inferred {
    args.tensor(0)?;
    Ok(Value::None)
}
