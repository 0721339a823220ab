//! Rows of a table picked by number, and their gradients.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
