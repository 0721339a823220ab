//! Operators of captured programs that stand for several simpler ones.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
