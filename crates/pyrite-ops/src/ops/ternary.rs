//! Pointwise functions of three and more operands.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
