//! The numbered decisions of the compiler: which operator becomes loops, which kernels become one, which get machine
//! code. Each can be refused, and a test can spoil what came out of one, to see whether it is found.

use pyrite_loops::Kernel;
use pyrite_passes::Gate;

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
