//! The numbered decisions of the compiler: which operators are lowered to loops, which kernels are fused, which get machine
//! code. Each can be refused, and a test can spoil what came out of one, to see whether it is found.

use pyrite_loops::Kernel;
use pyrite_passes::Gate;

/// The first word of every decision, and what it decides.
pub const DECISIONS: &[(&str, &str)] = &[
    ("lower", "an operator is lowered to loops; refused, it is a call of its reference kernel"),
    ("fuse", "two kernels are fused; refused, each writes its results to memory"),
    ("recompute", "on a GPU: a cheap value of another kernel is recomputed; refused, it is stored and loaded"),
    (
        "fuse-column-sums",
        "on a GPU: sums over columns are computed by the kernel that reads the rows; refused, the matrices are read twice",
    ),
    ("split-reduction", "on a GPU: a long row is reduced by several blocks of threads; refused, by one"),
    (
        "split-concat",
        "a kernel is split along a concatenation, so that each part can fuse with the kernel that computes it; refused, it reads the whole concatenation",
    ),
    ("elide-copy", "a bmm reads the source or writes the destination of a copy; refused, the copy is executed"),
    (
        "fuse-epilogue",
        "a kernel runs as the epilogue of a matmul, on rows that are still in the cache; refused, it runs afterwards",
    ),
    (
        "fuse-prologue",
        "a kernel runs as the prologue of a bmm, which reads its rows from the cache; refused, it runs before",
    ),
    ("winograd", "a 3×3 convolution uses the Winograd algorithm; refused, it is a call of its reference kernel"),
    ("reuse", "a result reuses the memory of a buffer whose last use is in its kernel"),
    ("emit", "a kernel is compiled to machine code; refused, the tile interpreter runs it"),
];

/// A decision by the name that releases up to 0.1 gave it, as it is called now.
pub fn renamed(old: &str) -> Option<String> {
    let (word, rest) = old.split_once(' ')?;
    let swapped =
        |name: &str, rest: &str| rest.split_once(" with ").map(|(of, kernel)| format!("{name} {kernel} of {of}"));
    match word {
        "follow" => swapped("fuse-epilogue", rest),
        "lead" => swapped("fuse-prologue", rest),
        "through" => Some(format!("elide-copy {rest}")),
        "part" => Some(format!("split-concat {rest}")),
        _ => None,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_of_older_releases_have_their_new_names() {
        let new = |old: &str| renamed(old).unwrap_or_else(|| "none".to_owned());
        assert_eq!(new("follow mm with relu"), "fuse-epilogue relu of mm");
        assert_eq!(new("lead bmm_1 with exp"), "fuse-prologue exp of bmm_1");
        assert_eq!(new("through buf1 for buf2"), "elide-copy buf1 for buf2");
        assert_eq!(new("part add, mul"), "split-concat add, mul");
        assert_eq!(renamed("fuse relu and mul"), None);
        let known: Vec<&str> = DECISIONS.iter().map(|(word, _)| *word).collect();
        for old in ["follow a with b", "lead a with b", "through a for b", "part a"] {
            assert!(known.contains(&new(old).split(' ').next().unwrap()), "{old}");
        }
    }
}
