//! Do two runs of a program agree? The comparison of their results by the whole contract.
//!
//! [`compare`] takes what the reference gave, what the compiled program gave, and, where there is one, what the
//! reference gives in double precision (the *fp64 reference*). It returns a [`Report`]: one [`Difference`] per value and part of
//! the contract that is broken, as data.
//!
//! The contract of a value has these parts, each a [`Class`]: its place in the structure, its kind, element type,
//! shape, strides, what it shares memory with, where it is not finite, and its numbers. The contents of inputs after
//! the run are results like any other; a difference there is a mutation.
//!
//! Invariants:
//! - Every value of either side is compared or reported as missing: nothing is dropped because a list is shorter, a
//!   fp64 is missing, or an element type is not a float. What the options tell to overlook becomes a [`Note`].
//! - Shapes are compared before elements; nothing is broadcast.
//! - Integers and bools are compared exactly, over all 64 bits.
//! - A value that agrees with itself in every element agrees in every layout: strides never change what is read.
//! - One wrong element is found wherever it stands and however many right ones surround it: the rule that compares mean
//!   errors is always joined by one for the worst element.
//! - NaN and infinity must stand where the reference has them. Only where the reference itself overflowed may the
//!   fp64 decide.
//! - A result is never excused by an fp64 reference that cannot judge it: where the fp64 is missing, of another shape or not
//!   finite, the tolerance alone decides.
//! - Elements are streamed in blocks: no copy of a whole tensor is made, and statistics are computed only for values
//!   that are not close.

mod aliasing;
mod block;
mod carrier;
mod error_model;
mod numeric;
mod options;
mod report;
mod results;
mod structure;

pub use error_model::{Roundings, excuse};
pub use options::{Accuracy, Judgement, Nans, Options, SmallTensors, Strides, Tolerance, Tolerances, Weight};
pub use report::{
    Class, Difference, Note, Numbers, Outcome, Quantiles, Real, Remark, Report, Rule, Spread, ValuePath, Worst,
};
pub use results::{Group, Results, Role};

/// Compares what a program gave with what the reference gave; `fp64` is the reference in double precision.
pub fn compare(expected: &Results, actual: &Results, fp64: Option<&Results>, options: &Options) -> Report {
    let mut report = Report::default();
    if options.accuracy == Accuracy::Off {
        return report;
    }
    let pairs = structure::compare(expected, actual, fp64, options, &mut report);
    aliasing::compare(&pairs, options, &mut report);
    report.rank();
    report
}
