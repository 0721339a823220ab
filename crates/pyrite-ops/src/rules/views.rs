//! The geometry of views: which shape, strides and offset a view of a tensor has.
//!
//! Every function takes what is viewed and returns the view of the same storage, or says why there is none. Sizes may
//! be symbolic.

use pyrite_ir::meta::contiguous_strides;
use pyrite_ir::{Meta, OpError, SymDims, invalid};
use pyrite_sym::SymInt;

use super::{specialized, wrap_dim, wrap_dims};

/// The sizes with a `-1` replaced by what the number of elements leaves for it.
pub fn resolve_sizes(sizes: &[SymInt], numel: &SymInt) -> Result<SymDims, OpError> {
    let mut open = None;
    let mut known = SymInt::Int(1);
    for (d, size) in sizes.iter().enumerate() {
        if *size == -1 {
            if open.replace(d).is_some() {
                invalid!("only one of the sizes {sizes:?} can be -1");
            }
        } else if size.as_int().is_some_and(|v| v < 0) {
            invalid!("the sizes {sizes:?} hold a negative number");
        } else {
            known = known * size;
        }
    }
    let mut resolved: SymDims = sizes.into();
    if let Some(d) = open {
        if known.is_eq(0) {
            invalid!("the sizes {sizes:?} of an empty tensor leave -1 undetermined");
        }
        resolved[d] = numel.floor_div(&known);
        known = known * &resolved[d];
    }
    if !known.is_eq(numel) {
        invalid!("sizes {sizes:?} do not hold {numel} elements");
    }
    Ok(resolved)
}

/// The strides under which a tensor has another shape without a copy; `None` when it needs one. Both shapes hold the
/// same number of elements.
pub fn strides_for_shape(meta: &Meta, shape: &[SymInt]) -> Option<SymDims> {
    let same = || meta.rank() == shape.len() && meta.shape.iter().zip(shape).all(|(a, b)| a.is_eq(b));
    if meta.shape.iter().any(|d| d.is_eq(0)) {
        return Some(if same() { meta.stride.clone() } else { contiguous_strides(shape) });
    }
    // A dimension of one element may have any stride, and a view of the same shape keeps it.
    if meta.is_contiguous() {
        let dense = contiguous_strides(&meta.shape);
        let usual = meta.stride.iter().zip(&dense).all(|(have, want)| have.is_eq(want));
        return if usual { None } else { strides_over_chunks(meta, shape) }.or_else(|| Some(contiguous_strides(shape)));
    }
    strides_over_chunks(meta, shape)
}

/// The same for a tensor with elements, whatever its strides.
fn strides_over_chunks(meta: &Meta, shape: &[SymInt]) -> Option<SymDims> {
    // Both shapes are walked from the fastest dimension. A chunk is a run of dimensions of the old shape that lie
    // densely in one another; the new dimensions must fill each chunk exactly.
    let mut strides: SymDims = shape.into();
    let mut open = shape.len();
    let mut base = meta.stride.last().cloned().unwrap_or(SymInt::Int(1));
    let (mut chunk, mut filled) = (SymInt::Int(1), SymInt::Int(1));
    for d in (0..meta.rank()).rev() {
        chunk = chunk * &meta.shape[d];
        let ends = d == 0 || (!meta.shape[d - 1].is_eq(1) && !meta.stride[d - 1].is_eq(&chunk * &base));
        if !ends {
            continue;
        }
        while open > 0 && (filled.is_lt(&chunk) || shape[open - 1].is_eq(1)) {
            open -= 1;
            strides[open] = &filled * &base;
            filled = filled * &shape[open];
        }
        if !filled.is_eq(&chunk) {
            return None;
        }
        if d > 0 {
            base = meta.stride[d - 1].clone();
            (chunk, filled) = (SymInt::Int(1), SymInt::Int(1));
        }
    }
    (open == 0).then_some(strides)
}

/// The tensor with another shape.
pub fn reshaped(meta: &Meta, sizes: &[SymInt]) -> Result<Meta, OpError> {
    let shape = resolve_sizes(sizes, &meta.numel())?;
    match strides_for_shape(meta, &shape) {
        Some(stride) => Ok(meta.view(&shape, &stride, meta.offset.clone())),
        None => invalid!(
            "a tensor of shape {:?} and strides {:?} has no view of shape {shape:?}; reshape copies it",
            meta.shape,
            meta.stride
        ),
    }
}

/// The tensor with its dimensions in another order.
pub fn permuted(meta: &Meta, order: &[i64]) -> Result<Meta, OpError> {
    let dims = wrap_dims(order, meta.rank())?;
    if dims.len() != meta.rank() {
        invalid!("{} dimensions are named to permute {}", dims.len(), meta.rank());
    }
    let pick = |from: &SymDims| dims.iter().map(|d| from[*d].clone()).collect::<SymDims>();
    Ok(meta.view(&pick(&meta.shape), &pick(&meta.stride), meta.offset.clone()))
}

/// The tensor with two dimensions exchanged.
pub fn transposed(meta: &Meta, first: i64, second: i64) -> Result<Meta, OpError> {
    let (a, b) = (wrap_dim(first, meta.rank())?, wrap_dim(second, meta.rank())?);
    let mut view = meta.view(&meta.shape, &meta.stride, meta.offset.clone());
    if meta.rank() > 0 {
        view.shape.swap(a, b);
        view.stride.swap(a, b);
    }
    Ok(view)
}

/// The tensor with dimensions moved from one place to another; the others keep their order.
pub fn moved(meta: &Meta, source: &[i64], destination: &[i64]) -> Result<Meta, OpError> {
    if source.len() != destination.len() {
        invalid!("{} dimensions cannot move to {} places", source.len(), destination.len());
    }
    let (from, to) = (wrap_dims(source, meta.rank())?, wrap_dims(destination, meta.rank())?);
    let mut rest = (0..meta.rank()).filter(|d| !from.contains(d));
    let order: Vec<i64> = (0..meta.rank())
        .filter_map(|d| match to.iter().position(|t| *t == d) {
            Some(at) => Some(from[at] as i64),
            None => rest.next().map(|d| d as i64),
        })
        .collect();
    if meta.rank() == 0 { Ok(meta.view(&[], &[], meta.offset.clone())) } else { permuted(meta, &order) }
}

/// The tensor broadcast to sizes, `-1` keeping a dimension's own.
pub fn expanded(meta: &Meta, sizes: &[SymInt]) -> Result<Meta, OpError> {
    if sizes.len() < meta.rank() {
        invalid!("{} sizes are too few to expand {} dimensions", sizes.len(), meta.rank());
    }
    let lead = sizes.len() - meta.rank();
    let (mut shape, mut stride): (SymDims, SymDims) = (sizes.into(), sizes.into());
    for d in (0..sizes.len()).rev() {
        let (own, step) = if d >= lead {
            (meta.shape[d - lead].clone(), meta.stride[d - lead].clone())
        } else if meta.rank() == 0 {
            (SymInt::Int(1), SymInt::Int(0))
        } else {
            (SymInt::Int(1), &shape[d + 1] * &stride[d + 1])
        };
        if sizes[d] == -1 {
            if d < lead {
                invalid!("the new dimension {d} cannot have the size -1");
            }
            (shape[d], stride[d]) = (own, step);
        } else if sizes[d].as_int().is_some_and(|v| v < 0) {
            invalid!("sizes {sizes:?} hold a negative number");
        } else if own.is_eq(&sizes[d]) {
            stride[d] = step;
        } else if own.is_eq(1) {
            stride[d] = SymInt::Int(0);
        } else {
            invalid!("shape {:?} does not expand to {sizes:?}", meta.shape);
        }
    }
    Ok(meta.view(&shape, &stride, meta.offset.clone()))
}

/// The tensor with a dimension of size one more.
pub fn unsqueezed(meta: &Meta, dim: i64) -> Result<Meta, OpError> {
    let at = wrap_dim(dim, meta.rank() + 1)?;
    let step = if at < meta.rank() { &meta.shape[at] * &meta.stride[at] } else { SymInt::Int(1) };
    let mut view = meta.view(&meta.shape, &meta.stride, meta.offset.clone());
    view.shape.insert(at, SymInt::Int(1));
    view.stride.insert(at, step);
    Ok(view)
}

/// The tensor without those of the dimensions that have size one.
pub fn squeezed(meta: &Meta, dims: &[usize]) -> Meta {
    let keep: Vec<usize> = (0..meta.rank()).filter(|d| !(dims.contains(d) && meta.shape[*d].is_eq(1))).collect();
    let pick = |from: &SymDims| keep.iter().map(|d| from[*d].clone()).collect::<SymDims>();
    meta.view(&pick(&meta.shape), &pick(&meta.stride), meta.offset.clone())
}

/// One index of a dimension, which is dropped.
pub fn selected(meta: &Meta, dim: i64, index: &SymInt) -> Result<Meta, OpError> {
    if meta.rank() == 0 {
        invalid!("a tensor without dimensions has nothing to select");
    }
    let dim = wrap_dim(dim, meta.rank())?;
    let size = &meta.shape[dim];
    let wrapped = if index.is_lt(0) { index + size } else { index.clone() };
    if wrapped.is_lt(0) || wrapped.is_ge(size) {
        invalid!("index {index} is out of range for dimension {dim} of size {size}");
    }
    let mut view = meta.view(&meta.shape, &meta.stride, &meta.offset + &wrapped * &meta.stride[dim]);
    view.shape.remove(dim);
    view.stride.remove(dim);
    Ok(view)
}

/// Part of a dimension, as Python slices: bounds count from the back when negative and are clamped.
pub fn sliced(
    meta: &Meta,
    dim: i64,
    start: Option<&SymInt>,
    end: Option<&SymInt>,
    step: &SymInt,
) -> Result<Meta, OpError> {
    if meta.rank() == 0 {
        invalid!("a tensor without dimensions cannot be sliced");
    }
    let dim = wrap_dim(dim, meta.rank())?;
    if !step.is_gt(0) {
        invalid!("a slice has a positive step, not {step}");
    }
    let size = &meta.shape[dim];
    let clamp = |bound: &SymInt| {
        // "To the end", without assuming anything about a symbolic size.
        if *bound == i64::MAX {
            return size.clone();
        }
        let wrapped = if bound.is_lt(0) { bound + size } else { bound.clone() };
        if wrapped.is_lt(0) {
            SymInt::Int(0)
        } else if wrapped.is_gt(size) {
            size.clone()
        } else {
            wrapped
        }
    };
    let start = start.map_or(SymInt::Int(0), clamp);
    let end = end.map_or(size.clone(), clamp);
    let length = if end.is_lt(&start) { SymInt::Int(0) } else { &end - &start };
    let mut view = meta.view(&meta.shape, &meta.stride, &meta.offset + &start * &meta.stride[dim]);
    // The usual step leaves a symbolic length as it is.
    view.shape[dim] = if *step == 1 { length } else { length.ceil_div(step) };
    view.stride[dim] = &meta.stride[dim] * step;
    Ok(view)
}

/// `length` indices of a dimension from `start`.
pub fn narrowed(meta: &Meta, dim: i64, start: &SymInt, length: &SymInt) -> Result<Meta, OpError> {
    if meta.rank() == 0 {
        invalid!("a tensor without dimensions cannot be narrowed");
    }
    let at = wrap_dim(dim, meta.rank())?;
    let size = &meta.shape[at];
    let first = if start.is_lt(0) { start + size } else { start.clone() };
    let end = &first + length;
    if length.is_lt(0) || first.is_lt(0) || end.is_gt(size) {
        invalid!("{length} elements from {start} leave dimension {at} of size {size}");
    }
    let mut view = meta.view(&meta.shape, &meta.stride, &meta.offset + &first * &meta.stride[at]);
    view.shape[at] = length.clone();
    Ok(view)
}

/// Consecutive parts of a dimension with these sizes.
pub fn split_by_sizes(meta: &Meta, sizes: &[SymInt], dim: i64) -> Result<Vec<Meta>, OpError> {
    if meta.rank() == 0 {
        invalid!("a tensor without dimensions cannot be split");
    }
    let at = wrap_dim(dim, meta.rank())?;
    let total = sizes.iter().fold(SymInt::Int(0), |n, size| n + size);
    if sizes.iter().any(|size| size.is_lt(0)) || !total.is_eq(&meta.shape[at]) {
        invalid!("parts of sizes {sizes:?} do not make up dimension {at} of size {}", meta.shape[at]);
    }
    let mut start = SymInt::Int(0);
    sizes
        .iter()
        .map(|size| {
            let part = narrowed(meta, dim, &start, size)?;
            start = &start + size;
            Ok(part)
        })
        .collect()
}

/// Consecutive parts of a dimension of equal size, the last maybe smaller.
pub fn split_by_size(meta: &Meta, size: &SymInt, dim: i64) -> Result<Vec<Meta>, OpError> {
    if meta.rank() == 0 {
        invalid!("a tensor without dimensions cannot be split");
    }
    let total = meta.shape[wrap_dim(dim, meta.rank())?].clone();
    if size.is_lt(0) || (size.is_eq(0) && !total.is_eq(0)) {
        invalid!("a dimension of size {total} does not split into parts of {size}");
    }
    let count = if size.is_eq(0) { 1 } else { specialized(&total.ceil_div(size))?.max(1) };
    let mut sizes = vec![size.clone(); pieces(count)?];
    if let Some(last) = sizes.last_mut() {
        *last = total - size * (count - 1);
    }
    split_by_sizes(meta, &sizes, dim)
}

/// A number of tensors that a call may return. Each is a value of its own, so a huge number is a mistake, and would use
/// up the memory before anybody could say so.
fn pieces(count: i64) -> Result<usize, OpError> {
    const MOST: i64 = 1 << 20;
    if !(0..=MOST).contains(&count) {
        invalid!("a call cannot return {count} tensors; at most {MOST} are possible");
    }
    Ok(count as usize)
}

/// At most `chunks` parts of a dimension, of equal size but for the last.
pub fn chunked(meta: &Meta, chunks: i64, dim: i64) -> Result<Vec<Meta>, OpError> {
    if chunks <= 0 || meta.rank() == 0 {
        invalid!("a tensor of shape {:?} cannot be cut into {chunks} chunks", meta.shape);
    }
    let total = &meta.shape[wrap_dim(dim, meta.rank())?];
    let size = total.ceil_div(&chunks.into());
    if size.is_eq(0) {
        return split_by_sizes(meta, &vec![SymInt::Int(0); pieces(chunks)?], dim);
    }
    split_by_size(meta, &size, dim)
}

/// Parts of a dimension whose sizes differ by at most one, larger ones first.
pub fn split_evenly(meta: &Meta, sections: i64, dim: i64) -> Result<Vec<Meta>, OpError> {
    if meta.rank() == 0 || sections <= 0 {
        invalid!("a tensor of shape {:?} does not split into {sections} sections", meta.shape);
    }
    let total = &meta.shape[wrap_dim(dim, meta.rank())?];
    let (small, larger) = (total.floor_div(&sections.into()), specialized(&total.modulo(&sections.into()))?);
    let sizes: Vec<SymInt> =
        (0..pieces(sections)? as i64).map(|i| if i < larger { &small + 1 } else { small.clone() }).collect();
    split_by_sizes(meta, &sizes, dim)
}

/// Parts of a dimension between indices, as slices.
pub fn split_at(meta: &Meta, indices: &[SymInt], dim: i64) -> Result<Vec<Meta>, OpError> {
    let mut parts = Vec::with_capacity(indices.len() + 1);
    let mut start = SymInt::Int(0);
    for index in indices {
        parts.push(sliced(meta, dim, Some(&start), Some(index), &SymInt::Int(1))?);
        start = index.clone();
    }
    parts.push(sliced(meta, dim, Some(&start), None, &SymInt::Int(1))?);
    Ok(parts)
}

/// Every index of a dimension.
pub fn unbound(meta: &Meta, dim: i64) -> Result<Vec<Meta>, OpError> {
    if meta.rank() == 0 {
        invalid!("a tensor without dimensions has nothing to unbind");
    }
    let count = specialized(&meta.shape[wrap_dim(dim, meta.rank())?])?;
    (0..pieces(count)? as i64).map(|index| selected(meta, dim, &index.into())).collect()
}

/// The elements at equal indices (but for `offset`) of two dimensions, as a new last dimension.
pub fn diagonal(meta: &Meta, offset: i64, dim1: i64, dim2: i64) -> Result<Meta, OpError> {
    let (a, b) = (wrap_dim(dim1, meta.rank())?, wrap_dim(dim2, meta.rank())?);
    if a == b || meta.rank() < 2 {
        invalid!("a diagonal lies in two different dimensions, not in {dim1} and {dim2} of {}", meta.rank());
    }
    let Some(below) = offset.checked_neg() else { invalid!("a diagonal's offset cannot be {offset}") };
    let (rows, columns) = (&meta.shape[a], &meta.shape[b]);
    let size = if offset >= 0 { rows.min(&(columns - offset)) } else { (rows - below).min(columns) };
    let size = if size.is_lt(0) { SymInt::Int(0) } else { size };
    let first = if size.is_eq(0) {
        meta.offset.clone()
    } else if offset >= 0 {
        &meta.offset + &meta.stride[b] * offset
    } else {
        &meta.offset + &meta.stride[a] * below
    };
    let step = &meta.stride[a] + &meta.stride[b];
    let keep: Vec<usize> = (0..meta.rank()).filter(|d| *d != a && *d != b).collect();
    let pick = |from: &SymDims| keep.iter().map(|d| from[*d].clone()).collect::<SymDims>();
    let (mut shape, mut stride) = (pick(&meta.shape), pick(&meta.stride));
    shape.push(size);
    stride.push(step);
    Ok(meta.view(&shape, &stride, first))
}

/// Windows of `size` along a dimension, `step` apart, each window as a new last dimension.
pub fn unfolded(meta: &Meta, dim: i64, size: i64, step: i64) -> Result<Meta, OpError> {
    let at = wrap_dim(dim, meta.rank())?;
    let total = meta.shape.get(at).cloned().unwrap_or(SymInt::Int(1));
    if size < 0 || step <= 0 || total.is_lt(size) {
        invalid!("windows of {size}, {step} apart, do not fit a dimension of size {total}");
    }
    let mut view = meta.view(&meta.shape, &meta.stride, meta.offset.clone());
    let window = meta.stride.get(at).cloned().unwrap_or(SymInt::Int(1));
    if meta.rank() > 0 {
        view.shape[at] = (total - size).floor_div(&step.into()) + 1;
        view.stride[at] = &window * step;
    }
    view.shape.push(size.into());
    view.stride.push(window);
    Ok(view)
}

/// The view of the storage with exactly these sizes, strides and offset.
pub fn strided(meta: &Meta, sizes: &[SymInt], strides: &[SymInt], offset: Option<SymInt>) -> Result<Meta, OpError> {
    let negative = |dims: &[SymInt]| dims.iter().any(|d| d.as_int().is_some_and(|v| v < 0));
    if sizes.len() != strides.len() || negative(sizes) || negative(strides) {
        invalid!("sizes {sizes:?} and strides {strides:?} describe no tensor");
    }
    Ok(meta.view(sizes, strides, offset.unwrap_or_else(|| meta.offset.clone())))
}

/// The memory as elements of another type; the last dimension grows or shrinks when their sizes differ.
pub fn retyped(meta: &Meta, dtype: pyrite_tensor::DType) -> Result<Meta, OpError> {
    let (old, new) = (meta.dtype.size() as i64, dtype.size() as i64);
    let mut view = meta.view(&meta.shape, &meta.stride, meta.offset.clone());
    view.dtype = dtype;
    if old == new {
        return Ok(view);
    }
    let Some(last) = meta.rank().checked_sub(1) else {
        invalid!("a tensor without dimensions cannot be viewed as {dtype}, whose size differs from {}", meta.dtype)
    };
    if !meta.stride[last].is_eq(1) {
        invalid!("the last dimension must be dense to view {} as {dtype}", meta.dtype);
    }
    if old > new {
        let ratio = old / new;
        for stride in &mut view.stride[..last] {
            *stride = &*stride * ratio;
        }
        view.shape[last] = &meta.shape[last] * ratio;
        view.offset = &meta.offset * ratio;
        return Ok(view);
    }
    let ratio = SymInt::Int(new / old);
    let whole = |v: &SymInt| v.modulo(&ratio).is_eq(0);
    if !whole(&meta.shape[last]) || !whole(&meta.offset) || !meta.stride[..last].iter().all(whole) {
        invalid!("shape {:?}, strides {:?} of {} hold no whole {dtype} elements", meta.shape, meta.stride, meta.dtype);
    }
    for stride in &mut view.stride[..last] {
        *stride = stride.floor_div(&ratio);
    }
    view.shape[last] = meta.shape[last].floor_div(&ratio);
    view.offset = meta.offset.floor_div(&ratio);
    Ok(view)
}
