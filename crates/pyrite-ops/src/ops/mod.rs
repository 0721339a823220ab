//! The families of operators, a table each.

use pyrite_ir::OpDef;

mod activation;

/// Every table.
pub const TABLES: &[&[OpDef]] = &[activation::OPS];
