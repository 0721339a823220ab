//! Dimensions that go on around their ends.

use pyrite_sym::SymInt;

/// How a dimension goes on around its ends. What negative padding cuts off goes first; the rest repeats.
pub struct Around {
    /// Where what is kept begins.
    pub first: SymInt,
    /// How long it is.
    pub kept: SymInt,
    /// How much is put before it.
    pub before: SymInt,
    /// How much is put behind it.
    pub after: SymInt,
}

impl Around {
    /// Of a dimension of that size, with that much added to, or cut off, its two ends.
    pub fn new(size: &SymInt, before: &SymInt, after: &SymInt) -> Self {
        let zero = SymInt::Int(0);
        let first = (-before).max(&zero);
        let kept = size - &first - (-after).max(&zero);
        Self { first, kept, before: before.max(&zero), after: after.max(&zero) }
    }
}
