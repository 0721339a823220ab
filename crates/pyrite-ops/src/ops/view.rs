//! Views: other shapes and strides of the same memory.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
