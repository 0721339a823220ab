//! Distances between points.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
