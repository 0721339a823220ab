//! Tensors from nothing: constants, ranges, index grids.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
