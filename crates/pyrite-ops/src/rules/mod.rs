//! Metadata rules that operators share.

pub mod around;
pub mod channels;
pub mod dims;
pub mod pointwise;
pub mod records;
pub mod strides;
pub mod views;

pub use around::Around;
pub use channels::{image_like, image_strides, suggests_channels_last};
pub use dims::{broadcast, expect_same_shape, is_vector, reduced_shape, specialized, wrap_dim, wrap_dims};
pub use pointwise::{
    compare, compare_real, operand_dtype, operands, rounded_to, same_as, to_float, to_real, to_real_float, to_same,
    to_same_float, to_same_inexact, to_same_number,
};
pub use records::{core_pointwise, in_place, plain_pointwise};
pub use strides::{format_strides, pointwise_strides, preserved_strides, suggested_format};
