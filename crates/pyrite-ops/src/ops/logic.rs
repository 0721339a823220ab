//! Comparisons and logic.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
