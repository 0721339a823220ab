//! Softmax and its relatives.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
