//! Memory formats of image operators: most of them answer a channels-last input with a channels-last result.

use pyrite_ir::meta::{contiguous_strides, strides_in_order};
use pyrite_ir::{Meta, SymDims};
use pyrite_sym::SymInt;
use pyrite_tensor::MemoryFormat;

/// The dimensions of a channels-last tensor from the slowest to the fastest.
fn order(rank: usize) -> Option<&'static [usize]> {
    match rank {
        4 => Some(&[0, 2, 3, 1]),
        5 => Some(&[0, 2, 3, 4, 1]),
        _ => None,
    }
}

/// Whether a tensor of four or five dimensions has the strides of a channels-last one. It may have gaps; where
/// sizes of 1 leave the order open, it has not.
pub fn suggests_channels_last(meta: &Meta) -> bool {
    let Some(order) = order(meta.rank()) else { return false };
    if meta.stride[1].is_eq(0) {
        return false;
    }
    let mut least = SymInt::Int(0);
    for d in order.iter().rev() {
        let (size, stride) = (&meta.shape[*d], &meta.stride[*d]);
        if size.is_eq(0) || stride.is_lt(&least) || (*d == 0 && least.is_eq(&meta.stride[1])) {
            return false;
        }
        least = if size.is_gt(1) { stride * size } else { stride.clone() };
    }
    true
}

/// Dense strides; channels-last ones only where the shape has four or five dimensions.
pub fn image_strides(shape: &[SymInt], format: MemoryFormat) -> SymDims {
    match order(shape.len()) {
        Some(order) if format == MemoryFormat::ChannelsLast => strides_in_order(shape, order),
        _ => contiguous_strides(shape),
    }
}

/// A fresh result of an image operator on `like`, in its memory format.
pub fn image_like(like: &Meta, shape: &[SymInt]) -> Meta {
    let last = suggests_channels_last(like);
    let stride = image_strides(shape, if last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous });
    Meta { device: like.device.clone(), ..Meta::strided(shape, &stride, like.dtype) }
}
