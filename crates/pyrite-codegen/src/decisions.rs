//! The numbered decisions of the compiler: which operator becomes loops, which kernels become one, which get machine
//! code. Each can be refused, and a test can spoil what came out of one, to see whether it is found.

use pyrite_loops::Kernel;
use pyrite_passes::Gate;

/// The first word of every decision, and what it decides.
pub const DECISIONS: &[(&str, &str)] = &[
    ("lower", "an operator becomes loops; refused, it is a call of its reference kernel"),
    ("fuse", "two kernels become one; refused, each writes its results to memory"),
    (
        "part",
        "a kernel is cut into parts that can join those that write what it reads; refused, it waits for all of them",
    ),
    ("through", "a batch of products reads or writes where a copy would take from or to; refused, the copy is made"),
    ("follow", "a kernel runs behind a product, row by row while the rows are in the cache"),
    ("lead", "a batch of products takes rows as a kernel fills them; refused, it waits for all of them"),
    (
        "winograd",
        "a convolution by windows of three by three multiplies transformed tiles; refused, it is a call of its kernel",
    ),
    ("reuse", "a result lies where something lay that its kernel is the last to read"),
    ("emit", "a kernel becomes machine code; refused, the tile interpreter runs it"),
];

/// Spoils the kernel that a decision made; it gets the decision's name.
pub type Spoil<'a> = dyn FnMut(&str, &mut Kernel) + 'a;

/// Asks the gate, and lets tests spoil.
pub struct Decisions<'a> {
    gate: &'a mut Gate,
    spoil: Option<&'a mut Spoil<'a>>,
}

impl<'a> Decisions<'a> {
    /// Decisions that a gate may refuse.
    pub fn new(gate: &'a mut Gate) -> Self {
        Self { gate, spoil: None }
    }

    /// The same, with something that spoils their outcome.
    pub fn spoiled(gate: &'a mut Gate, spoil: &'a mut Spoil<'a>) -> Self {
        Self { gate, spoil: Some(spoil) }
    }

    /// Whether a decision may be taken.
    pub fn allow(&mut self, name: &str) -> bool {
        self.gate.allows(|| name.to_owned())
    }

    /// Tells of the kernel that a decision made.
    pub fn made(&mut self, name: &str, kernel: &mut Kernel) {
        if let Some(spoil) = &mut self.spoil {
            spoil(name, kernel);
        }
    }
}
