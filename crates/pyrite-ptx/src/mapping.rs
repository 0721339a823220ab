//! How the rows and phases of a kernel become threads.

use std::fmt;

use pyrite_loops::{AccessId, AxisId, BufferId, Inst, Kernel, Lanes};

/// What a thread stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// A position of the only phase, or a few neighbours along the last axis: nothing is reduced.
    Positions,
    /// A row; it runs the phases one position at a time.
    Rows,
    /// A place in a block, which stands for a row: the positions of each phase are dealt out to its threads, and what they
    /// reduce is joined by shuffles and through shared memory.
    Blocks,
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Positions => "a position",
            Self::Rows => "a row",
            Self::Blocks => "a place in the block of a row",
        })
    }
}

impl Mapping {
    /// That of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        match (&kernel.phases[..], kernel.lanes) {
            ([only], _) if only.reduces.is_empty() => Self::Positions,
            (_, Lanes::Rows) => Self::Rows,
            (_, Lanes::Phase) => Self::Blocks,
        }
    }
}

/// The axes that the positions of a thread or a block are counted along, outermost first.
pub(crate) fn grid_axes(kernel: &Kernel, mapping: Mapping) -> Vec<AxisId> {
    let own = match (mapping, kernel.phases.first()) {
        (Mapping::Positions, Some(phase)) => &phase.axes[..],
        _ => &[],
    };
    kernel.rows.iter().chain(own).copied().collect()
}

/// How many neighbours along the last axis a thread may take at once, so that it moves up to 16 bytes at a time; nothing
/// if it may take only one.
pub(crate) fn vector(kernel: &Kernel, mapping: Mapping) -> Option<i64> {
    let axis = *grid_axes(kernel, mapping).last()?;
    let (Mapping::Positions, [phase]) = (mapping, &kernel.phases[..]) else { return None };
    let mut sizes = Vec::new();
    for inst in phase.code.insts() {
        let Some(id) = inst.access() else { continue };
        let access = kernel.access(id);
        match (inst, access.step(axis).as_int()) {
            (Inst::Load(_) | Inst::Store { .. }, Some(1)) => sizes.push(access.dtype.size() as i64),
            (Inst::Load(_), Some(0)) => {}
            _ => return None,
        }
    }
    let widest = *sizes.iter().max()?;
    Some(if sizes.iter().all(|size| *size == 2) { 8 } else { (16 / widest).min(4) })
}

/// The accesses that move along the last axis of the grid, for [`vector`].
pub(crate) fn stepping(kernel: &Kernel, axis: AxisId) -> impl Iterator<Item = usize> + '_ {
    (0..kernel.accesses.len()).filter(move |index| kernel.accesses[*index].step(axis).as_int() == Some(1))
}

/// Whether a buffer may hold what a row puts aside for itself: it is written and read, and no access to it moves along
/// the rows. Each block, or thread, that has a row then needs memory of its own.
pub(crate) fn may_be_scratch(kernel: &Kernel, buffer: BufferId) -> bool {
    let of_buffer = |id: AccessId| kernel.access(id).buffer == buffer;
    let stays = kernel
        .accesses
        .iter()
        .filter(|access| access.buffer == buffer)
        .all(|access| kernel.rows.iter().all(|row| access.step(*row).as_int() == Some(0)));
    let does = |wanted: fn(&Inst) -> bool| {
        kernel
            .phases
            .iter()
            .flat_map(|phase| phase.code.insts())
            .any(|inst| wanted(inst) && inst.access().is_some_and(of_buffer))
    };
    let reads = |inst: &Inst| matches!(inst, Inst::Load(_) | Inst::Gather { .. });
    !kernel.rows.is_empty() && stays && does(reads) && does(Inst::writes)
}
