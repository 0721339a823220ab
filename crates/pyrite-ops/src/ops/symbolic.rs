//! Sizes and arithmetic on them.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
