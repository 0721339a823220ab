//! Which kernels become one, and in which order pieces run.
//!
//! Pieces are taken in their order. A kernel joins an earlier one that it shares memory with, the one with which it
//! shares most, if everything it reads is there by then; else it stays where it is. Every fusion is a decision.

use pyrite_ir::Value;
use pyrite_loops::{Access, BufferId, Direction, Kernel, Phase};
use pyrite_sym::SymInt;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::decisions::Decisions;
use crate::finish::finish;
use crate::fuse::fused;
use crate::pieces::{Buffer, Origin, Piece, Pieces};

/// How many pieces back a partner is looked for.
const REACH: usize = 64;

/// How often all kernels are gone through: a kernel that grew may be able to join another one.
const ROUNDS: usize = 3;

/// Fuses the kernels of a program and finishes them.
pub fn schedule(program: &mut Pieces, decisions: &mut Decisions<'_>) {
    for _ in 0..ROUNDS {
        let before = program.pieces.len();
        fuse_all(program, decisions);
        if program.pieces.len() == before {
            break;
        }
    }
    finish_all(program);
}

fn fuse_all(program: &mut Pieces, decisions: &mut Decisions<'_>) {
    let mut placed: Vec<Piece> = Vec::new();
    // The last piece that writes each buffer, by position.
    let mut written: FxHashMap<BufferId, usize> = FxHashMap::default();
    for piece in std::mem::take(&mut program.pieces) {
        let Piece::Loops(kernel) = piece else {
            let at = placed.len();
            outputs_of(&piece).into_iter().for_each(|buffer| {
                written.insert(buffer, at);
            });
            placed.push(piece);
            continue;
        };
        let ready = kernel.read().iter().chain(&kernel.written()).filter_map(|b| written.get(b)).max().copied();
        let first = ready.unwrap_or(0).max(placed.len().saturating_sub(REACH));
        let mut partners: Vec<(i64, usize)> = (first..placed.len())
            .filter_map(|at| match &placed[at] {
                Piece::Loops(earlier) => Some((shared(earlier, &kernel), at)),
                Piece::Outside(_) => None,
            })
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        partners.sort_unstable();
        let mut joined = false;
        for (_, at) in partners.into_iter().rev() {
            let Piece::Loops(earlier) = &placed[at] else { continue };
            let decision = format!("fuse {} and {}", earlier.name, kernel.name);
            if let Some(mut both) = fused(earlier, &kernel)
                && decisions.allow(&decision)
            {
                decisions.made(&decision, &mut both);
                for buffer in kernel.written() {
                    written.insert(buffer, at);
                }
                placed[at] = Piece::Loops(both);
                joined = true;
                break;
            }
        }
        if !joined {
            for buffer in kernel.written() {
                written.insert(buffer, placed.len());
            }
            placed.push(Piece::Loops(kernel));
        }
    }
    program.pieces = placed;
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
fn finish_all(program: &mut Pieces) {
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
            computed.get(buffer.0 as usize) == Some(&true)
                && users.get(&buffer).is_some_and(|(_, alone)| *alone)
                && !returned.contains(&buffer)
        };
        finish(kernel, &is_local, &mut |of, elements| {
            let dtype = buffers[of.0 as usize].dtype;
            buffers.push(Buffer { origin: Origin::Scratch, dtype, elements });
            BufferId(buffers.len() as u32 - 1)
        });
    }
    pieces.retain(|piece| !matches!(piece, Piece::Loops(kernel) if kernel.phases.iter().all(is_idle)));
}

fn is_idle(phase: &Phase) -> bool {
    phase.code.is_empty()
}
