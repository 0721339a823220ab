//! Joining, repeating and rearranging.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
