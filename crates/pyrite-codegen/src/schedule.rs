//! Which kernels become one, and in which order pieces run.
//!
//! Kernels that read what others write in parts are cut first ([`parts`](crate::parts)). Then pieces are taken in their
//! order. A kernel joins an earlier one that it shares memory with, the one with which it shares most, if everything it
//! reads is there by then; or an earlier one joins it, if nothing between them needs that; else it stays where it is.
//! Every fusion is a decision. Kernels that can be cut only now are, and are fused once more.

use pyrite_ir::Value;
use pyrite_loops::{Access, BufferId, Direction, Kernel, Phase};
use pyrite_sym::SymInt;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::decisions::Decisions;
use crate::finish::finish;
use crate::fuse::fused;
use crate::parts::{self, Parts};
use crate::pieces::{Buffer, Origin, Piece, Pieces};

/// How many pieces back a partner is looked for.
const REACH: usize = 64;

/// How often all kernels are gone through: a kernel that grew may be able to join another one.
const ROUNDS: usize = 3;

/// Fuses the kernels of a program and finishes them.
pub fn schedule(program: &mut Pieces, decisions: &mut Decisions<'_>) {
    let mut parts = Parts::default();
    parts::cut_all(program, &mut parts, decisions);
    fuse_all(program, &parts, decisions);
    parts::cut_rest(program, &mut parts, decisions);
    if !parts.is_empty() {
        fuse_all(program, &parts, decisions);
    }
    finish_all(program, &parts);
}

fn fuse_all(program: &mut Pieces, parts: &Parts, decisions: &mut Decisions<'_>) {
    for _ in 0..ROUNDS {
        let before = program.pieces.len();
        fuse_once(program, parts, decisions);
        if program.pieces.len() == before {
            break;
        }
    }
}

/// What has been put in order so far.
struct Placed<'a> {
    /// A piece that joined a later one leaves its place empty.
    pieces: Vec<Option<Piece>>,
    /// The last piece that writes each buffer, by position.
    written: FxHashMap<BufferId, usize>,
    parts: &'a Parts,
}

fn fuse_once(program: &mut Pieces, parts: &Parts, decisions: &mut Decisions<'_>) {
    let mut placed = Placed { pieces: Vec::new(), written: FxHashMap::default(), parts };
    for piece in std::mem::take(&mut program.pieces) {
        match piece {
            Piece::Loops(kernel) => placed.place(kernel, decisions),
            call @ Piece::Outside(_) => placed.push(call),
        }
    }
    program.pieces = placed.pieces.into_iter().flatten().collect();
}

impl Placed<'_> {
    fn push(&mut self, piece: Piece) {
        let at = self.pieces.len();
        outputs_of(&piece).into_iter().for_each(|buffer| {
            self.written.insert(buffer, at);
        });
        self.pieces.push(Some(piece));
    }

    fn kernel(&self, at: usize) -> Option<&Kernel> {
        match &self.pieces[at] {
            Some(Piece::Loops(kernel)) => Some(kernel),
            _ => None,
        }
    }

    /// Lets a kernel join another one, or puts it last.
    fn place(&mut self, kernel: Kernel, decisions: &mut Decisions<'_>) {
        let end = self.pieces.len();
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
                self.pieces[*at] = Some(Piece::Loops(both));
                return;
            }
        }
        for (_, at) in partners.into_iter().rev().filter(|(_, at)| *at < ready) {
            if self.can_wait(at, &kernel)
                && let Some(both) = self.joined(at, &kernel, decisions)
            {
                self.pieces[at] = None;
                self.push(Piece::Loops(both));
                return;
            }
        }
        self.push(Piece::Loops(kernel));
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
            && self.pieces[at + 1..].iter().flatten().all(|later| match later {
                Piece::Loops(later) => !uses(later),
                Piece::Outside(_) => false,
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

/// The buffers that a piece fills.
pub fn outputs_of(piece: &Piece) -> Vec<BufferId> {
    match piece {
        Piece::Loops(kernel) => kernel.written(),
        Piece::Outside(call) => places(&call.results),
    }
}

/// The buffers that a piece reads.
pub fn inputs_of(piece: &Piece) -> Vec<BufferId> {
    match piece {
        Piece::Loops(kernel) => kernel.read(),
        Piece::Outside(call) => call.args.iter().flat_map(places).collect(),
    }
}

/// The buffers of a value.
pub fn places(value: &Value<pyrite_ir::Place>) -> Vec<BufferId> {
    let mut found = Vec::new();
    value.each(&mut |place| found.push(place.buffer));
    found
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

/// Finishes every kernel, now that it is known which buffers only one of them uses.
fn finish_all(program: &mut Pieces, parts: &Parts) {
    let mut users: FxHashMap<BufferId, (usize, bool)> = FxHashMap::default();
    let returned: FxHashSet<BufferId> = places(&program.output).into_iter().collect();
    for (at, piece) in program.pieces.iter().enumerate() {
        for buffer in inputs_of(piece).into_iter().chain(outputs_of(piece)) {
            let entry = users.entry(buffer).or_insert((at, true));
            entry.1 &= entry.0 == at;
        }
    }
    let Pieces { buffers, pieces, .. } = program;
    let computed: Vec<bool> = buffers.iter().map(|b| b.origin == Origin::Computed).collect();
    for piece in pieces.iter_mut() {
        let Piece::Loops(kernel) = piece else { continue };
        let is_local = |buffer: BufferId| {
            let whole = parts.whole(buffer);
            computed.get(buffer.0 as usize) == Some(&true)
                && users.get(&buffer).is_some_and(|(_, alone)| *alone)
                && (whole == buffer || !users.contains_key(&whole))
                && parts.of(buffer).is_empty()
                && !returned.contains(&whole)
        };
        finish(kernel, &is_local, &mut |of, elements| {
            let dtype = buffers[of.0 as usize].dtype;
            buffers.push(Buffer { origin: Origin::Scratch, dtype, elements });
            BufferId(buffers.len() as u32 - 1)
        });
        parts.join(kernel);
    }
    pieces.retain(|piece| !matches!(piece, Piece::Loops(kernel) if kernel.phases.iter().all(is_idle)));
}

fn is_idle(phase: &Phase) -> bool {
    phase.code.is_empty()
}
