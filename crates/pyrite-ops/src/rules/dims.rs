//! Dimensions: wrapping negative ones, broadcasting, reducing.

use pyrite_ir::{OpError, SymDims, invalid, unsupported};
use pyrite_sym::SymInt;

/// A dimension counted from the front; a negative one counts from the back. A tensor without dimensions takes 0 and -1.
pub fn wrap_dim(dim: i64, rank: usize) -> Result<usize, OpError> {
    let rank = rank.max(1) as i64;
    if !(-rank..rank).contains(&dim) {
        invalid!("dimension {dim} is out of range: expected {} to {}", -rank, rank - 1);
    }
    Ok(if dim < 0 { dim + rank } else { dim } as usize)
}

/// Several dimensions counted from the front, each at most once.
pub fn wrap_dims(dims: &[i64], rank: usize) -> Result<Vec<usize>, OpError> {
    let mut wrapped = Vec::with_capacity(dims.len());
    for dim in dims {
        let dim = wrap_dim(*dim, rank)?;
        if wrapped.contains(&dim) {
            invalid!("dimension {dim} appears twice in {dims:?}");
        }
        wrapped.push(dim);
    }
    Ok(wrapped)
}

/// The shape that all shapes broadcast to.
pub fn broadcast(shapes: &[&[SymInt]]) -> Result<SymDims, OpError> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut result: SymDims = (0..rank).map(|_| SymInt::Int(1)).collect();
    for shape in shapes {
        let lead = rank - shape.len();
        for (d, size) in shape.iter().enumerate() {
            let slot = &mut result[lead + d];
            if slot.is_eq(1) {
                *slot = size.clone();
            } else if !size.is_eq(1) && !size.is_eq(&*slot) {
                let shapes: Vec<String> = shapes.iter().map(|s| format!("{s:?}")).collect();
                invalid!("shapes {} do not broadcast", shapes.join(" and "));
            }
        }
    }
    Ok(result)
}

/// An error unless both shapes are the same.
pub fn expect_same_shape(what: &str, left: &[SymInt], right: &[SymInt]) -> Result<(), OpError> {
    if left.len() != right.len() || left.iter().zip(right).any(|(a, b)| !a.is_eq(b)) {
        invalid!("{what}: shape {left:?} differs from {right:?}");
    }
    Ok(())
}

/// The shape left after reducing dimensions (all of them when the list is empty).
pub fn reduced_shape(shape: &[SymInt], dims: &[usize], keep: bool) -> SymDims {
    let reduced = |d: usize| dims.is_empty() || dims.contains(&d);
    shape
        .iter()
        .enumerate()
        .filter(|(d, _)| keep || !reduced(*d))
        .map(|(d, size)| if reduced(d) { SymInt::Int(1) } else { size.clone() })
        .collect()
}

/// The number that a size is. A symbolic size is taken to be its captured value, which becomes a constraint; a size
/// that only a run can tell is refused.
pub fn specialized(size: &SymInt) -> Result<i64, OpError> {
    match size.as_int().or_else(|| size.hint()) {
        Some(value) if size.is_eq(value) => Ok(value),
        _ => unsupported!("a call whose number of results depends on the size {size}, which only a run can tell"),
    }
}

/// Whether the right-hand side of systems with these matrices holds one vector per matrix.
pub fn is_vector(matrices: &[SymInt], rhs: &[SymInt]) -> bool {
    rhs.len() == 1 || (rhs.len() + 1 == matrices.len() && matrices.iter().zip(rhs).all(|(x, y)| x.is_eq(y)))
}
