//! The numbered decisions of the compiler: which operator becomes loops, which kernels become one, which get machine
//! code. Each can be refused, and a test can spoil what came out of one, to see whether it is found.

use pyrite_loops::Kernel;
use pyrite_passes::Gate;

/// The first word of every decision, and what it decides.
pub const DECISIONS: &[(&str, &str)] = &[
    ("lower", "an operator becomes loops; refused, it is a call of its reference kernel"),
    ("fuse", "two kernels become one; refused, each writes its results to memory"),
    ("recompute", "on a GPU: kernels compute a cheap value of another one themselves; refused, it is written and read"),
    (
        "fuse-column-sums",
        "on a GPU: sums over columns are a part of the kernel that reads the rows; refused, matrices are read twice",
    ),
    (
        "split-reduction",
        "on a GPU: parts of long rows are reduced first, by more blocks of threads; refused, a row has one",
    ),
    (
        "split-concat",
        "a kernel is split along the parts of a concatenation, each of which can fuse with the kernel that writes its part; refused, it waits for all of them",
    ),
    ("elide-copy", "a bmm reads or writes where a copy would take from or to; refused, the copy is made"),
    ("fuse-epilogue", "a kernel runs behind a matmul, row by row while the rows are in the cache"),
    ("fuse-prologue", "a bmm takes rows as a kernel fills them; refused, it waits for all of them"),
    (
        "winograd",
        "a convolution by windows of three by three multiplies transformed tiles; refused, it is a call of its reference kernel",
    ),
    ("reuse", "a result lies where something lay that its kernel is the last to read"),
    ("emit", "a kernel becomes machine code; refused, the tile interpreter runs it"),
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
