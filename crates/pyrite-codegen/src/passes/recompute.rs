//! The passes `recompute-constants` and `recompute`, for GPUs: what is cheap is computed again where it is read.
//!
//! A kernel that hands a buffer to others writes all of it, and they read all of it. Where the value takes a few instructions
//! and no more bytes than the buffer has, its readers had better compute it themselves: nothing is written, and kernels wait
//! for each other no more. Either all readers do so or none, since the buffer is written as long as somebody reads it. Every
//! buffer is a decision.

use pyrite_loops::{Access, AccessId, AxisId, BufferId, Inst, Kernel, Phase, Val};
use pyrite_sym::SymInt;
use rustc_hash::FxHashSet;

use super::State;
use super::finish::{cost, inline_phases, needed_for};
use super::fuse_kernels::drop_unused;
use crate::axes::with_access;
use crate::code_map::rebuilt_by;
use crate::schedule::{Op, Origin, Schedule, places};

/// Values that take no more than this are computed again.
const CHEAP: usize = 18;

/// Which values are computed again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those that read nothing.
    Constants,
    /// All that are cheap.
    Cheap,
}

/// Computes again what reads nothing, so that it stands between no kernels that could be one.
pub fn constants(program: &mut Schedule, state: &mut State<'_, '_>) {
    recompute(program, state, Which::Constants);
}

/// Computes again what is cheap. A kernel that stores several values one of another is looked at as if it kept none of them: what a value
/// takes counts from what the kernel reads.
pub fn cheap(program: &mut Schedule, state: &mut State<'_, '_>) {
    for statement in &mut program.statements {
        if let Op::Loop(kernel) = &mut statement.op {
            inline_phases(kernel, &|_| true, CHEAP);
        }
    }
    recompute(program, state, Which::Cheap);
}

/// A value that a kernel stores.
struct Stored {
    statement: usize,
    phase: usize,
    access: AccessId,
    value: Val,
}

fn recompute(program: &mut Schedule, state: &mut State<'_, '_>, which: Which) {
    let returned: FxHashSet<BufferId> = places(&program.output).into_iter().collect();
    for index in 0..program.buffers.len() {
        let buffer = BufferId(index as u32);
        let is_plain = state.parts.whole(buffer) == buffer && state.parts.of(buffer).is_empty();
        if program.buffers[index].origin != Origin::Computed || returned.contains(&buffer) || !is_plain {
            continue;
        }
        let Some(stored) = only_store(program, buffer) else { continue };
        let Some(writer) = kernel(program, stored.statement).cloned() else { continue };
        if !is_cheap(&writer, &stored, which) {
            continue;
        }
        let readers: Vec<usize> = (0..program.statements.len())
            .filter(|at| *at != stored.statement && program.statements[*at].op.reads().contains(&buffer))
            .collect();
        let made: Option<Vec<Kernel>> =
            readers.iter().map(|at| recomputed(kernel(program, *at)?, &writer, &stored, buffer)).collect();
        let Some(made) = made.filter(|made| !made.is_empty()) else { continue };
        let decision =
            format!("recompute {} of {}", crate::schedule::buffer_name(&program.buffers, buffer), writer.name);
        if !state.decisions.allow(&decision) {
            continue;
        }
        for (at, mut kernel) in readers.into_iter().zip(made) {
            state.decisions.made(&decision, &mut kernel);
            program.statements[at].op = Op::Loop(kernel);
        }
        // A kernel that did nothing else is not needed any more; otherwise `finish-kernels` drops the store.
        let reads_back = writer.read().contains(&buffer);
        if writer.written() == [buffer] && !reads_back {
            program.statements[stored.statement].op = Op::Loop(Kernel { name: writer.name, ..Kernel::default() });
        }
    }
    program.statements.retain(|statement| !matches!(&statement.op, Op::Loop(kernel) if kernel.phases.is_empty()));
}

fn kernel(program: &Schedule, at: usize) -> Option<&Kernel> {
    match &program.statements[at].op {
        Op::Loop(kernel) => Some(kernel),
        _ => None,
    }
}

/// The store that fills a buffer, if it is one store of a kernel.
fn only_store(program: &Schedule, buffer: BufferId) -> Option<Stored> {
    let mut found = None;
    for (statement, each) in program.statements.iter().enumerate() {
        if !each.op.writes().contains(&buffer) {
            continue;
        }
        let Op::Loop(kernel) = &each.op else { return None };
        for (phase, code) in kernel.phases.iter().enumerate() {
            for inst in code.code.insts() {
                match *inst {
                    Inst::Store { access, value } if kernel.access(access).buffer == buffer => {
                        let earlier = found.replace(Stored { statement, phase, access, value });
                        if earlier.is_some() {
                            return None;
                        }
                    }
                    Inst::Scatter { access, .. } if kernel.access(access).buffer == buffer => return None,
                    _ => {}
                }
            }
        }
    }
    found
}

/// Whether a value depends on its position alone and takes few instructions and bytes.
fn is_cheap(kernel: &Kernel, stored: &Stored, which: Which) -> bool {
    let phase = &kernel.phases[stored.phase];
    let needed = needed_for(&phase.code, stored.value);
    let written = kernel.written();
    let mut bytes = 0;
    for (_, inst) in phase.code.iter().filter(|(value, _)| needed[value.0 as usize]) {
        match inst {
            Inst::Load(_) if which == Which::Constants => return false,
            Inst::Load(id) if written.contains(&kernel.access(*id).buffer) => return false,
            Inst::Load(id) => bytes += moved(kernel, phase, kernel.access(*id)),
            Inst::Result(_) | Inst::Before(_) | Inst::Offset(_) | Inst::Gather { .. } | Inst::Bounded { .. } => {
                return false;
            }
            _ => {}
        }
    }
    let own = moved(kernel, phase, kernel.access(stored.access));
    cost(&phase.code, stored.value) <= CHEAP && bytes <= own + own / 4
}

/// How many bytes go through an access, by the sizes that are known.
fn moved(kernel: &Kernel, phase: &Phase, access: &Access) -> i64 {
    let extent = |axis: &AxisId| match access.step(*axis).as_int() {
        Some(0) => 1,
        _ => kernel.extent(*axis).hint().unwrap_or(1).max(1),
    };
    let count: i64 = kernel.rows.iter().chain(&phase.axes).map(extent).product();
    count.saturating_mul(access.dtype.size() as i64)
}

/// A kernel that computes a value of another one instead of reading it; nothing where it reads in another way than element
/// by element.
fn recomputed(reader: &Kernel, writer: &Kernel, stored: &Stored, buffer: BufferId) -> Option<Kernel> {
    let mut new = reader.clone();
    for at in 0..new.phases.len() {
        let phase = new.phases[at].clone();
        let mut refused = false;
        let mut reduces = phase.reduces.clone();
        let code = rebuilt_by(&phase.code, &mut reduces, &mut |code, value, inst| match inst {
            Inst::Load(id) if new.access(id).buffer == buffer => {
                let read = new.access(id).clone();
                if let Some(pairs) = axes(&new, &phase, &read, writer, stored) {
                    copied(&mut new, writer, stored, &pairs, code)
                } else {
                    refused = true;
                    code.push(inst, value)
                }
            }
            _ => {
                refused |= inst.access().is_some_and(|id| new.access(id).buffer == buffer);
                code.push(inst, value)
            }
        });
        if refused {
            return None;
        }
        new.phases[at] = Phase { axes: phase.axes, code, reduces };
    }
    drop_unused(&mut new);
    Some(new)
}

/// Which axis of the reader is which of the writer, where the value depends on any.
fn axes(
    reader: &Kernel,
    phase: &Phase,
    read: &Access,
    writer: &Kernel,
    stored: &Stored,
) -> Option<Vec<(AxisId, AxisId)>> {
    let from = &writer.phases[stored.phase];
    let needed = needed_for(&from.code, stored.value);
    let depends = from.code.iter().filter(|(value, _)| needed[value.0 as usize]).any(|(_, inst)| match inst {
        Inst::Load(id) => writer.access(*id).steps.iter().any(|step| step.as_int() != Some(0)),
        Inst::Index(_) => true,
        _ => false,
    });
    if !depends {
        return Some(Vec::new());
    }
    let write = writer.access(stored.access);
    if write.offset != read.offset || write.dtype != read.dtype {
        return None;
    }
    let moving = |kernel: &Kernel, phase: &Phase, access: &Access| -> Vec<AxisId> {
        let all = kernel.rows.iter().chain(&phase.axes);
        all.filter(|axis| access.step(**axis).as_int() != Some(0)).copied().collect()
    };
    let theirs: Vec<AxisId> = writer.rows.iter().chain(&from.axes).copied().collect();
    let mut own = moving(reader, phase, read);
    let mut pairs = Vec::new();
    for axis in theirs {
        let alike =
            |other: &AxisId| read.step(*other) == write.step(axis) && reader.extent(*other) == writer.extent(axis);
        let found = own.iter().position(alike).filter(|_| write.step(axis).as_int() != Some(0))?;
        pairs.push((axis, own.remove(found)));
    }
    own.is_empty().then_some(pairs)
}

/// Copies the code of a value into that of a reader.
fn copied(
    reader: &mut Kernel,
    writer: &Kernel,
    stored: &Stored,
    pairs: &[(AxisId, AxisId)],
    into: &mut pyrite_loops::Block,
) -> Val {
    let code = &writer.phases[stored.phase].code;
    let needed = needed_for(code, stored.value);
    let own = |axis: AxisId| pairs.iter().find(|(theirs, _)| *theirs == axis).map_or(axis, |(_, own)| *own);
    let mut copies: Vec<Option<Val>> = vec![None; code.len()];
    for (old, inst) in code.iter().filter(|(value, _)| needed[value.0 as usize]) {
        let inst = match *inst {
            Inst::Index(axis) => Inst::Index(own(axis)),
            Inst::Size(number) => Inst::Size(reader.add_number(writer.numbers[number as usize].clone())),
            inst => match inst.access() {
                Some(id) => {
                    let access = writer.access(id);
                    let mut steps = vec![SymInt::Int(0); reader.axes.len()];
                    for (theirs, own) in pairs {
                        steps[own.0 as usize] = access.step(*theirs).clone();
                    }
                    let id = reader.add_access(Access { steps, ..access.clone() });
                    with_access(inst, &|_| id)
                }
                None => inst,
            },
        };
        let inst = inst.map_operands(&mut |v| copies[v.0 as usize].unwrap_or(v));
        copies[old.0 as usize] = Some(into.push(inst, code.ty(old)));
    }
    copies[stored.value.0 as usize].unwrap_or(stored.value)
}
