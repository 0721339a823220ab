//! Orders: sorting, selecting by rank, searching, finding what occurs.
//!
//! NaN is larger than every number. Sorting is stable; where selection (`topk`, `kthvalue`, `median`) meets equal
//! elements, it takes the first ones.

mod search;
mod select;
mod unique;

use std::cmp::Ordering;

use pyrite_ir::OpDef;
use pyrite_tensor::{DType, Tensor};

use pyrite_kernels::Carrier;

/// Sorting and selecting.
pub const SELECT: &[OpDef] = select::OPS;
/// Searching.
pub const SEARCH: &[OpDef] = search::OPS;
/// What occurs.
pub const UNIQUE: &[OpDef] = unique::OPS;

/// Elements in their own order, with NaN last.
trait Ordered: Carrier {
    fn order(self, other: Self) -> Ordering;
    fn is_nan(self) -> bool;
}

impl Ordered for f64 {
    fn order(self, other: Self) -> Ordering {
        self.partial_cmp(&other).unwrap_or_else(|| f64::is_nan(self).cmp(&f64::is_nan(other)))
    }
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}

impl Ordered for i64 {
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
    fn is_nan(self) -> bool {
        false
    }
}

/// The elements as numbers that can be compared, one kind for floats and one for integers.
enum Keys {
    Floats(Vec<f64>),
    Ints(Vec<i64>),
}

impl Keys {
    fn of(tensor: &Tensor, dtype: DType) -> Self {
        if dtype.is_float() { Self::Floats(tensor.to_f64s()) } else { Self::Ints(tensor.to_i64s()) }
    }
}
