//! The order in which results lie in memory.
//!
//! PyTorch's pointwise operators keep the order of their operands' dimensions: equal layouts are kept as they are,
//! otherwise dimensions are sorted by the operands' strides, the first operand that has an opinion deciding.

use std::cmp::Ordering;

use pyrite_ir::meta::{contiguous_strides, strides_in_order};
use pyrite_ir::{Meta, OpError, SymDims, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::MemoryFormat;

/// The strides of a pointwise result of the given shape.
pub fn pointwise_strides(operands: &[&Meta], shape: &[SymInt]) -> SymDims {
    let same_shape =
        operands.iter().all(|m| m.rank() == shape.len() && m.shape.iter().zip(shape).all(|(a, b)| a.is_eq(b)));
    if same_shape && !operands.is_empty() {
        if operands.iter().all(|m| m.is_contiguous()) {
            return contiguous_strides(shape);
        }
        if operands.iter().all(|m| m.is_channels_last()) {
            return strides_in_order(shape, &[0, 2, 3, 1]);
        }
        let first = &operands[0].stride;
        let equal = |m: &&Meta| m.stride.iter().zip(first).all(|(a, b)| a.is_eq(b));
        if operands.iter().all(|m| m.is_dense()) && operands.iter().all(equal) {
            return first.clone();
        }
    }
    let broadcast: Vec<(SymDims, i64)> =
        operands.iter().map(|m| (broadcast_strides(m, shape), m.dtype.size() as i64)).collect();
    sorted_strides(&broadcast, shape)
}

/// The strides of a copy that keeps the layout: those of a dense tensor, else dense ones in the same order.
pub fn preserved_strides(meta: &Meta) -> SymDims {
    if meta.is_dense() {
        return meta.stride.clone();
    }
    sorted_strides(&[(meta.stride.clone(), 1)], &meta.shape)
}

/// The strides of a fresh tensor in a memory format; `None` and `Preserve` keep the layout of `like`.
pub fn format_strides(format: Option<MemoryFormat>, like: &Meta) -> Result<SymDims, OpError> {
    let (order, rank): (&[usize], usize) = match format {
        None | Some(MemoryFormat::Preserve) => return Ok(preserved_strides(like)),
        Some(MemoryFormat::Contiguous) => return Ok(contiguous_strides(&like.shape)),
        Some(MemoryFormat::ChannelsLast) => (&[0, 2, 3, 1], 4),
        Some(MemoryFormat::ChannelsLast3d) => (&[0, 2, 3, 4, 1], 5),
    };
    if like.rank() != rank {
        invalid!("this memory format needs {rank} dimensions, the tensor has {}", like.rank());
    }
    Ok(strides_in_order(&like.shape, order))
}

/// The named format whose order of dimensions the strides follow: channels last where they say so, else contiguous.
/// Operators that write their result in "the format of the input" ask this.
pub fn suggested_format(meta: &Meta) -> MemoryFormat {
    let follows = |order: &[usize]| {
        if meta.rank() != order.len() || meta.stride[1].is_eq(0) {
            return false;
        }
        let mut least = SymInt::Int(0);
        for (position, d) in order.iter().enumerate() {
            let (size, stride) = (&meta.shape[*d], &meta.stride[*d]);
            let last = position + 1 == order.len();
            // A batch stride no larger than that of the channels leaves the order open.
            if size.is_eq(0) || stride.is_lt(&least) || (last && least.is_eq(&meta.stride[1])) {
                return false;
            }
            least = if size.is_gt(1) { stride * size } else { stride.clone() };
        }
        true
    };
    if follows(&[1, 3, 2, 0]) {
        MemoryFormat::ChannelsLast
    } else if follows(&[1, 4, 3, 2, 0]) {
        MemoryFormat::ChannelsLast3d
    } else {
        MemoryFormat::Contiguous
    }
}

fn broadcast_strides(meta: &Meta, shape: &[SymInt]) -> SymDims {
    let lead = shape.len() - meta.rank();
    (0..shape.len())
        .map(|d| match d.checked_sub(lead) {
            Some(own) if meta.shape[own].is_eq(1) && !shape[d].is_eq(1) => SymInt::Int(0),
            Some(own) => meta.stride[own].clone(),
            None => SymInt::Int(0),
        })
        .collect()
}

/// Dense strides with the dimensions sorted by the operands' strides (with their element sizes), fastest first.
fn sorted_strides(operands: &[(SymDims, i64)], shape: &[SymInt]) -> SymDims {
    let rank = shape.len();
    let compare = |a: usize, b: usize| {
        for (strides, size) in operands {
            let (x, y) = (&strides[a] * *size, &strides[b] * *size);
            if x.is_eq(0) || y.is_eq(0) {
                continue;
            }
            if x.is_lt(&y) {
                return Ordering::Less;
            }
            if x.is_gt(&y) || shape[a].is_gt(&shape[b]) {
                return Ordering::Greater;
            }
        }
        Ordering::Equal
    };
    // An insertion sort that goes on past equal neighbours, since "equal" only means "no opinion" here.
    let mut fastest_first: Vec<usize> = (0..rank).rev().collect();
    for i in 1..rank {
        let mut at = i;
        for other in (0..i).rev() {
            match compare(fastest_first[other], fastest_first[at]) {
                Ordering::Greater => {
                    fastest_first.swap(other, at);
                    at = other;
                }
                Ordering::Less => break,
                Ordering::Equal => {}
            }
        }
    }
    if fastest_first.iter().rev().copied().eq(0..rank) {
        return contiguous_strides(shape);
    }
    let mut strides: SymDims = shape.into();
    let mut next = SymInt::Int(1);
    for d in fastest_first {
        strides[d] = next.clone();
        next = next * &shape[d];
    }
    strides
}
