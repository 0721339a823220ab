//! What a well-formed schedule is.
//!
//! 1. Every buffer that a statement, an input or the output names exists.
//! 2. Kernels are well-formed ([`pyrite_loops::verify`]).
//! 3. Statements write to computed buffers, kernels also to scratch; never to inputs and constants. A scratch buffer
//!    belongs to one kernel.
//! 4. The epilogue of a GEMM, and every kernel of a fused bmm, goes through the rows as it says, which is found anew.
//! 5. A fused bmm has a bmm, at most one kernel before the first, and a bmm behind another link takes what that fills.
//! 6. What is freed or reused is a buffer that the statement uses.
//!
//! All of it holds between any two passes. What holds of a finished schedule alone (reads follow writes, memory is reused
//! rightly) is checked in [`memory`](super::memory).

use std::fmt;

use pyrite_ir::Value;
use pyrite_ir::lower::Place;
use pyrite_loops::{BufferId, Kernel};
use rustc_hash::FxHashMap;

use super::{Op, Origin, Reuse, Schedule, places};

/// What is wrong with a schedule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The statement, by its number; none where it is about inputs or the output.
    pub statement: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.statement {
            Some(at) => write!(f, "statement {at}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// All that is wrong with a schedule.
pub fn verify(schedule: &Schedule) -> Vec<Problem> {
    let mut verifier = Verifier { schedule, problems: Vec::new(), scratch: FxHashMap::default() };
    verifier.run();
    verifier.problems
}

struct Verifier<'a> {
    schedule: &'a Schedule,
    problems: Vec<Problem>,
    /// The statement that uses each scratch buffer, and which of its kernels.
    scratch: FxHashMap<BufferId, (usize, usize)>,
}

impl Verifier<'_> {
    fn say(&mut self, statement: Option<usize>, message: String) {
        self.problems.push(Problem { statement, message });
    }

    fn run(&mut self) {
        for (what, value) in
            self.schedule.inputs.iter().map(|input| ("an input", input)).chain([("the output", &self.schedule.output)])
        {
            self.exist(None, what, value);
        }
        if self.schedule.reaches.iter().any(|reach| !matches!(self.origin(reach.buffer), Some(Origin::Input(_)))) {
            self.say(None, "a view reaches beyond a buffer that is no input".to_owned());
        }
        for (at, statement) in self.schedule.statements.iter().enumerate() {
            let used = [statement.op.reads(), statement.op.writes()].concat();
            if used.iter().any(|buffer| self.origin(*buffer).is_none()) {
                self.say(Some(at), "a buffer that does not exist".to_owned());
                continue;
            }
            for buffer in statement.op.writes() {
                if matches!(self.origin(buffer), Some(Origin::Input(_) | Origin::Constant(_))) {
                    self.say(Some(at), format!("writes to b{}, an input or a constant", buffer.0));
                }
            }
            for (number, kernel) in statement.op.kernels().into_iter().enumerate() {
                self.kernel(at, number, kernel);
            }
            match &statement.op {
                Op::Gemm(gemm) => {
                    if let Some(epilogue) = &gemm.epilogue
                        && gemm.rows_of(&epilogue.kernel).as_ref() != Some(&epilogue.rows)
                    {
                        self.say(
                            Some(at),
                            format!("{} does not go through the rows of the GEMM", epilogue.kernel.name),
                        );
                    }
                }
                Op::Bmm(fused) => {
                    if let Err(message) = fused.relinked(&self.schedule.buffers) {
                        self.say(Some(at), message);
                    }
                }
                Op::Loop(_) | Op::Conv(_) | Op::Call(_) => {}
            }
            let planned = statement.reuses.iter().flat_map(|Reuse { dead, result }| [*dead, *result]);
            for buffer in planned.chain(statement.frees.iter().copied()) {
                if !used.contains(&buffer) {
                    self.say(Some(at), format!("plans the memory of b{}, which it does not use", buffer.0));
                }
            }
        }
    }

    fn origin(&self, buffer: BufferId) -> Option<&Origin> {
        self.schedule.buffers.get(buffer.0 as usize).map(|buffer| &buffer.origin)
    }

    fn exist(&mut self, statement: Option<usize>, what: &str, value: &Value<Place>) {
        if places(value).into_iter().any(|buffer| self.origin(buffer).is_none()) {
            self.say(statement, format!("{what} is in a buffer that does not exist"));
        }
    }

    fn kernel(&mut self, at: usize, number: usize, kernel: &Kernel) {
        if let Some(problem) = pyrite_loops::verify(kernel).first() {
            self.say(Some(at), format!("{}: {problem}", kernel.name));
            return;
        }
        kernel.each_access(|id, _| {
            let access = kernel.access(id);
            let buffer = self.schedule.buffer(access.buffer);
            if buffer.origin == Origin::Scratch {
                let user = *self.scratch.entry(access.buffer).or_insert((at, number));
                if user != (at, number) {
                    let message = format!("{} uses the scratch b{} of another kernel", kernel.name, access.buffer.0);
                    self.problems.push(Problem { statement: Some(at), message });
                }
            }
        });
    }
}
