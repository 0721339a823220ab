//! What is tried, in the order it is tried.
//!
//! A pass only proposes; the [`Search`] judges and accepts. Passes that need the values of nodes take them from an eager
//! run of the best candidate.

mod arguments;
mod bodies;
pub(crate) mod bottom_up;
pub(crate) mod dtypes;
pub(crate) mod flags;
mod inputs;
pub(crate) mod nested;
pub(crate) mod operators;
mod structure;

use crate::driver::Search;

/// A pass.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name in reports.
    pub name: &'static str,
    /// What it tries, in a sentence.
    pub doc: &'static str,
    /// Whether it goes on by itself until it finds nothing more.
    pub exhausts: bool,
    pub(crate) propose: fn(&mut Search<'_>),
}

/// All passes in their order: those first that shrink most for a query.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "large",
        doc: "makes the sizes of a program with very many elements smaller, before questions are asked that cost by them",
        exhausts: true,
        propose: inputs::large,
    },
    Pass {
        name: "bottom-up",
        doc: "cuts the graph at every node, feeds each from its eager value, and finds the part that fails",
        exhausts: true,
        propose: bottom_up::windows,
    },
    Pass { name: "outputs", doc: "returns fewer values", exhausts: true, propose: structure::outputs },
    Pass { name: "truncate", doc: "ends earlier", exhausts: true, propose: structure::truncate },
    Pass {
        name: "delta",
        doc: "replaces calls by inputs with their eager values, many at a time, then one at a time",
        exhausts: true,
        propose: structure::delta,
    },
    Pass { name: "bypass", doc: "replaces a call by one of its operands", exhausts: true, propose: structure::bypass },
    Pass {
        name: "ascend",
        doc: "returns an operand of an output instead of the output",
        exhausts: true,
        propose: structure::ascend,
    },
    Pass { name: "nested", doc: "inlines nested graphs", exhausts: true, propose: nested::inline },
    Pass { name: "bodies", doc: "applies the other passes to nested graphs", exhausts: true, propose: bodies::inside },
    Pass {
        name: "operators",
        doc: "replaces an operator by a simpler one with a result of the same form",
        exhausts: true,
        propose: operators::simpler,
    },
    Pass {
        name: "arguments",
        doc: "replaces arguments by their defaults",
        exhausts: true,
        propose: arguments::defaults,
    },
    Pass {
        name: "flags",
        doc: "removes autocast and gradient regions, and gradients of inputs",
        exhausts: true,
        propose: flags::needless,
    },
    Pass { name: "shapes", doc: "shrinks dimensions throughout the graph", exhausts: true, propose: inputs::shapes },
    Pass {
        name: "dtypes",
        doc: "replaces unusual dtypes by common ones throughout the graph",
        exhausts: true,
        propose: dtypes::usual_types,
    },
    Pass {
        name: "values",
        doc: "fills inputs with zeros, ones, small integers, a single nonzero element, or seeded random numbers",
        exhausts: true,
        propose: inputs::values,
    },
];
