//! Sampling an image at given places.

use pyrite_ir::OpDef;

/// The table.
pub const OPS: &[OpDef] = &[];
