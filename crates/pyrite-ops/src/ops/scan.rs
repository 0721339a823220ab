//! Running sums, products and extremes.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
