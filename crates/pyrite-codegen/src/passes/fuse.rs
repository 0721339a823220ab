//! The passes `fuse` and `fuse-late`: which kernels become one, and in which order statements run.
//!
//! Statements are taken in their order. A kernel joins an earlier one that it shares memory with, the one with which it
//! shares most, if everything it reads is there by then; or an earlier one joins it, if nothing between them needs that;
//! else it stays where it is. Every fusion is a decision. How two kernels become one is told in
//! [`fuse_kernels`](super::fuse_kernels).

use pyrite_loops::{Access, BufferId, Direction, Kernel};
use pyrite_sym::SymInt;
use rustc_hash::FxHashMap;

use super::State;
use super::fuse_kernels::fused;
use super::split_concat::Parts;
use crate::decisions::Decisions;
use crate::schedule::{Op, Schedule, Statement};

/// How many statements back a partner is looked for.
const REACH: usize = 64;

/// How often all kernels are gone through: a kernel that grew may be able to join another one.
const ROUNDS: usize = 3;

/// Fuses the kernels of a program.
pub fn fuse_all(program: &mut Schedule, state: &mut State<'_, '_>) {
    for _ in 0..ROUNDS {
        let before = program.statements.len();
        fuse_once(program, &state.parts, state.decisions);
        if program.statements.len() == before {
            break;
        }
    }
}

/// Fuses once more where kernels were split.
pub fn fuse_split(program: &mut Schedule, state: &mut State<'_, '_>) {
    if !state.parts.is_empty() {
        fuse_all(program, state);
    }
}

/// What has been put in order so far.
struct Placed<'a> {
    /// A statement that joined a later one leaves its place empty.
    statements: Vec<Option<Statement>>,
    /// The last statement that writes each buffer, by position.
    written: FxHashMap<BufferId, usize>,
    parts: &'a Parts,
}

fn fuse_once(program: &mut Schedule, parts: &Parts, decisions: &mut Decisions<'_>) {
    let mut placed = Placed { statements: Vec::new(), written: FxHashMap::default(), parts };
    for statement in std::mem::take(&mut program.statements) {
        match statement.op {
            Op::Loop(kernel) => placed.place(kernel, decisions),
            other => placed.push(other),
        }
    }
    program.statements = placed.statements.into_iter().flatten().collect();
}

impl Placed<'_> {
    fn push(&mut self, op: Op) {
        let at = self.statements.len();
        op.writes().into_iter().for_each(|buffer| {
            self.written.insert(buffer, at);
        });
        self.statements.push(Some(op.into()));
    }

    fn kernel(&self, at: usize) -> Option<&Kernel> {
        match &self.statements[at].as_ref()?.op {
            Op::Loop(kernel) => Some(kernel),
            _ => None,
        }
    }

    /// Lets a kernel join another one, or puts it last.
    fn place(&mut self, kernel: Kernel, decisions: &mut Decisions<'_>) {
        let end = self.statements.len();
        let reach = end.saturating_sub(REACH);
        let mut partners: Vec<(i64, usize)> = (reach..end)
            .filter_map(|at| Some((shared(self.kernel(at)?, &kernel), at)))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        partners.sort_unstable();
        let ready = self.ready(&kernel);
        for (_, at) in partners.iter().rev().filter(|(_, at)| *at >= ready) {
            if let Some(both) = self.joined(*at, &kernel, decisions) {
                // What the earlier kernel writes may have been written again since; that stays known.
                for buffer in kernel.written() {
                    self.written.insert(buffer, *at);
                }
                self.statements[*at] = Some(Op::Loop(both).into());
                return;
            }
        }
        for (_, at) in partners.into_iter().rev().filter(|(_, at)| *at < ready) {
            if self.can_wait(at, &kernel)
                && let Some(both) = self.joined(at, &kernel, decisions)
            {
                self.statements[at] = None;
                self.push(Op::Loop(both));
                return;
            }
        }
        self.push(Op::Loop(kernel));
    }

    /// The first place at which a kernel could run as part of another one.
    fn ready(&self, kernel: &Kernel) -> usize {
        let read = kernel.read();
        let whole = read.iter().chain(&kernel.written()).filter_map(|buffer| self.written.get(buffer).copied()).max();
        let parts = read.iter().flat_map(|buffer| self.parts.of(*buffer)).filter_map(|part| self.written.get(part));
        whole.max(parts.max().map(|at| at + 1)).unwrap_or(0)
    }

    /// Whether a kernel that another one reads can as well run last: only kernels come after it, and none of them uses
    /// what it writes.
    fn can_wait(&self, at: usize, reader: &Kernel) -> bool {
        let Some(kernel) = self.kernel(at) else { return false };
        let written: Vec<BufferId> = kernel.written().into_iter().map(|buffer| self.parts.whole(buffer)).collect();
        let uses =
            |kernel: &Kernel| kernel.accesses.iter().any(|access| written.contains(&self.parts.whole(access.buffer)));
        let reads = reader.read().iter().any(|buffer| kernel.written().contains(buffer));
        reads
            && self.statements[at + 1..].iter().flatten().all(|later| match &later.op {
                Op::Loop(later) => !uses(later),
                _ => false,
            })
    }

    /// Whether a kernel reads a whole buffer of which another one writes a part: then it has to come behind it.
    fn needs_whole(&self, kernel: &Kernel, writer: &Kernel) -> bool {
        let written = writer.written();
        kernel.read().iter().any(|buffer| self.parts.of(*buffer).iter().any(|part| written.contains(part)))
    }

    fn joined(&self, at: usize, kernel: &Kernel, decisions: &mut Decisions<'_>) -> Option<Kernel> {
        let earlier = self.kernel(at)?;
        if self.needs_whole(kernel, earlier) {
            return None;
        }
        let mut both = fused(earlier, kernel)?;
        let decision = format!("fuse {} and {}", earlier.name, kernel.name);
        if !decisions.allow(&decision) {
            return None;
        }
        decisions.made(&decision, &mut both);
        Some(both)
    }
}

/// How many bytes need not be moved when two kernels become one, by the sizes that are known.
fn shared(first: &Kernel, second: &Kernel) -> i64 {
    let mut bytes = 0;
    let reads = second.read();
    first.each_access(|id, direction| {
        let access = first.access(id);
        if reads.contains(&access.buffer) {
            let weight = if direction == Direction::Write { 2 } else { 1 };
            bytes += weight * moved(first, access);
        }
    });
    bytes
}

fn moved(kernel: &Kernel, access: &Access) -> i64 {
    let extent = |(step, axis): (&SymInt, &pyrite_loops::Axis)| {
        if step.as_int() == Some(0) { 1 } else { axis.extent.hint().unwrap_or(1).max(1) }
    };
    let count: i64 = access.steps.iter().zip(&kernel.axes).map(extent).product();
    count.saturating_mul(access.dtype.size() as i64)
}
