//! Operators that call nested graphs.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
