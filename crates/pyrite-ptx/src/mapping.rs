//! How the rows and phases of a kernel become threads.

use std::fmt;

use pyrite_loops::{Access, AccessId, AxisId, BufferId, Inst, Kernel, Lanes, Number, Phase, Write};
use pyrite_tensor::DType;

/// What a thread stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// A position of the only phase, or a few neighbours along the last axis: nothing is reduced.
    Positions,
    /// A row; it runs the phases one position at a time.
    Rows,
    /// A row and a part of its positions: the lanes of a warp are rows side by side, the warps of a block share the positions
    /// of each phase, and what they reduce is joined through shared memory.
    Columns,
    /// A place in a block, which stands for a row: the positions of each phase are dealt out to its threads, and what they
    /// reduce is joined by shuffles and through shared memory.
    Blocks,
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Positions => "a position",
            Self::Rows => "a row",
            Self::Columns => "a row and a part of its positions",
            Self::Blocks => "a place in the block of a row",
        })
    }
}

impl Mapping {
    /// That of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        match (&kernel.phases[..], kernel.lanes) {
            ([only], _) if only.reduces.is_empty() => Self::Positions,
            (_, Lanes::Rows) if shares_columns(kernel) => Self::Columns,
            (_, Lanes::Rows) => Self::Rows,
            // Positions that take their turn cannot be dealt out.
            (phases, Lanes::Phase) if phases.iter().any(Phase::is_ordered) => Self::Rows,
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

/// More rows than this keep all threads of a device busy, one each.
const MANY_ROWS: i64 = 1 << 18;
/// Fewer positions than this are not shared.
const FEW_POSITIONS: i64 = 16;
/// The most numbers that a phase may reduce where warps share positions: each has a place for every thread.
const MOST_SHARED: usize = 8;

/// Whether the warps of a block share the positions of rows that lie side by side: there are too few rows for the device, and
/// many positions.
fn shares_columns(kernel: &Kernel) -> bool {
    let product = |axes: &[AxisId]| axes.iter().map(|axis| kernel.extent(*axis).as_int()).product::<Option<i64>>();
    let words =
        |phase: &Phase| phase.reduces.iter().map(|reduce| 1 + usize::from(reduce.index.is_some())).sum::<usize>();
    let long = |phase: &Phase| {
        !phase.reduces.is_empty() && product(&phase.axes).is_none_or(|positions| positions >= FEW_POSITIONS)
    };
    kernel.phases.iter().all(|phase| !phase.is_ordered() && words(phase) <= MOST_SHARED)
        && kernel.phases.iter().any(long)
        && product(&kernel.rows).is_none_or(|rows| rows < MANY_ROWS)
}

/// How a block keeps its row in registers: each thread has the same positions in every phase, in runs of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptRow {
    /// How many positions each phase has that has an axis.
    pub(crate) extent: i64,
    /// How many neighbours a run has.
    pub(crate) lanes: i64,
    /// How many threads the block has.
    pub(crate) threads: u32,
    /// How many runs a thread has.
    pub(crate) runs: usize,
    /// Whether a block takes the rows along the last axis one after the other, since it adds up over them.
    pub(crate) adds: bool,
}

/// The fewest positions of a row that is worth keeping.
const SHORTEST: i64 = 64;
/// The most positions of a row that a thread keeps.
const MOST_KEPT: i64 = 32;
/// How many positions a thread keeps where there are many rows, so that loads are in flight while others compute: of rows of some
/// thousand positions, whose blocks are large, and of shorter ones.
const USUALLY_KEPT: [i64; 2] = [32, 16];
/// How many it keeps where sums over the rows take registers too.
const KEPT_WITH_SUMS: i64 = 8;
/// From so many positions on a row is long.
const LONG: i64 = 4096;
/// The most positions of a row that a warp has alone.
const WARP_ROW: i64 = 512;
/// Below so many rows a block has as many threads as it can use.
const FEW_ROWS: i64 = 1024;

impl KeptRow {
    /// How a kernel's rows are kept; nothing if they are too long, or of unknown length, or not read in runs.
    pub(crate) fn of(kernel: &Kernel) -> Option<Self> {
        let mut extents = kernel.phases.iter().flat_map(|phase| &phase.axes).map(|axis| kernel.extent(*axis).as_int());
        let extent = extents.next()??;
        if Mapping::of(kernel) != Mapping::Blocks || extents.any(|other| other != Some(extent)) || extent < SHORTEST {
            return None;
        }
        let (mut sizes, mut adds) = (Vec::new(), false);
        for phase in &kernel.phases {
            let axis = match &phase.axes[..] {
                [] => continue,
                [axis] => *axis,
                _ => return None,
            };
            for inst in phase.code.insts() {
                let Some(id) = inst.access() else { continue };
                let access = kernel.access(id);
                match (inst, access.step(axis).as_int()) {
                    (Inst::Load(_) | Inst::Store { .. }, Some(1)) => sizes.push(access.dtype.size() as i64),
                    (Inst::Load(_), Some(0)) => {}
                    (inst, Some(1)) if stays(kernel, phase, inst) => adds = true,
                    _ => return None,
                }
            }
        }
        let lanes = widest_vector(&sizes)?;
        let rows: Option<i64> = kernel.rows.iter().map(|row| kernel.extent(*row).as_int()).product();
        let each = match rows {
            Some(rows) if rows < FEW_ROWS => lanes,
            // With fewer positions a thread, more threads wait for memory at a time.
            _ if adds => KEPT_WITH_SUMS,
            _ => USUALLY_KEPT[usize::from(extent < LONG)],
        };
        let threads = (extent.div_euclid(each) + 31) / 32 * 32;
        // A short row is one warp's, which needs no memory to join what it reduces.
        let threads = if extent <= WARP_ROW { 32 } else { threads.clamp(32, 1024) };
        let runs = (extent + threads * lanes - 1) / (threads * lanes);
        let fits = extent % lanes == 0 && runs * lanes <= MOST_KEPT;
        fits.then_some(Self { extent, lanes, threads: threads as u32, runs: runs as usize, adds })
    }

    /// Whether some thread has nothing to do in a run.
    pub(crate) fn is_partial(&self, run: usize) -> bool {
        (run as i64 + 1) * i64::from(self.threads) * self.lanes > self.extent
    }
}

/// Whether an instruction adds to the same place at all rows along the last axis: an adding scatter without an index.
pub(crate) fn stays(kernel: &Kernel, phase: &Phase, inst: &Inst) -> bool {
    let Inst::Scatter { access, at, write: Write::Add, .. } = inst else { return false };
    let access = kernel.access(*access);
    let still = |row: &AxisId| access.step(*row).as_int() == Some(0);
    matches!(phase.code.inst(*at), Inst::Const(Number::Int(0), _))
        && access.dtype == DType::F32
        && kernel.rows.len() > 1
        && kernel.rows.last().is_some_and(still)
        && kernel.rows[..kernel.rows.len() - 1]
            .iter()
            .all(|row| access.step(*row).as_int().is_some_and(|step| step != 0))
}

/// Whether the blocks of a kernel keep their rows in registers, where its memory is aligned.
pub fn keeps_rows(kernel: &Kernel) -> bool {
    KeptRow::of(kernel).is_some()
}

/// How a phase goes through a buffer: two accesses that go the same way are at the same elements at each run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Way {
    pub(crate) access: Access,
}

impl Way {
    /// That of an access in a phase; the axis of the phase is left out of the steps, since each phase has its own.
    pub(crate) fn of(kernel: &Kernel, id: AccessId, axis: AxisId) -> Self {
        let mut access = kernel.access(id).clone();
        let own = access.steps[axis.0 as usize].clone();
        access.steps[axis.0 as usize] = 0.into();
        access.steps.push(own);
        Self { access }
    }
}

/// Whether what a row puts aside in a buffer never has to be read from memory where rows are kept: all accesses go the same
/// way.
pub(crate) fn stays_in_registers(kernel: &Kernel, buffer: BufferId) -> bool {
    if !may_be_scratch(kernel, buffer) {
        return false;
    }
    let mut ways = Vec::new();
    for phase in &kernel.phases {
        for inst in phase.code.insts() {
            let Some(id) = inst.access().filter(|id| kernel.access(*id).buffer == buffer) else { continue };
            let [axis] = phase.axes[..] else { return false };
            ways.push(Way::of(kernel, id, axis));
        }
    }
    ways.windows(2).all(|pair| pair[0] == pair[1])
}

/// How many positions a tile has along each of its axes, where it is small and where it is large.
const TILES: [i64; 2] = [32, 64];
/// How many large tiles keep a device busy.
const MANY_TILES: i64 = 528;
/// The most code that is written out for every position that a thread has of a large tile.
const SHORT_CODE: usize = 24;

/// How a block goes through a part of a kernel that writes along one axis and reads along another: by tiles of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The axis along which everything is written.
    pub(crate) along: AxisId,
    /// The axis along which something is read.
    pub(crate) across: AxisId,
    /// How many positions it has along both.
    pub(crate) size: i64,
}

impl Tile {
    /// The tiles of a kernel; nothing if it reads and writes along the same axis.
    pub(crate) fn of(kernel: &Kernel, mapping: Mapping) -> Option<Self> {
        let (Mapping::Positions, [phase]) = (mapping, &kernel.phases[..]) else { return None };
        let axes = grid_axes(kernel, mapping);
        let along = *axes.last()?;
        let is_long = |axis: AxisId| kernel.extent(axis).as_int().is_none_or(|extent| extent >= TILES[0] / 2);
        let mut found: Option<Self> = None;
        for inst in phase.code.insts() {
            let Some(id) = inst.access() else { continue };
            let access = kernel.access(id);
            match inst {
                Inst::Load(_) if !matches!(access.step(along).as_int(), Some(0 | 1)) => {
                    let across = axes.iter().find(|axis| access.step(**axis).as_int() == Some(1));
                    let tile = across.map(|across| Self { along, across: *across, size: TILES[0] });
                    found = found.or(tile);
                }
                Inst::Store { .. } if access.step(along).as_int() != Some(1) => return None,
                Inst::Scatter { .. } => return None,
                _ => {}
            }
        }
        let tile = found.filter(|tile| is_long(tile.along) && is_long(tile.across))?;
        let read = phase.code.insts().iter().filter_map(|inst| match inst {
            Inst::Load(id) => Some(kernel.access(*id)),
            _ => None,
        });
        let transposed: Vec<&Access> = read.filter(|access| tile.takes(access)).collect();
        let written = kernel.written();
        let fits = transposed.len() <= MOST_TILES && transposed.iter().all(|access| !written.contains(&access.buffer));
        // Large tiles have longer runs in memory and more loads under way.
        let positions = axes.iter().map(|axis| kernel.extent(*axis).as_int()).product::<Option<i64>>();
        let is_large = positions.is_some_and(|positions| positions >= MANY_TILES * TILES[1] * TILES[1])
            && transposed.len() <= 2
            && transposed.iter().all(|access| access.dtype.size() <= 4)
            && phase.code.len() <= SHORT_CODE;
        fits.then_some(Self { size: TILES[usize::from(is_large)], ..tile })
    }

    /// Whether an access goes across.
    pub(crate) fn takes(&self, access: &Access) -> bool {
        access.step(self.across).as_int() == Some(1) && !matches!(access.step(self.along).as_int(), Some(0 | 1))
    }
}

/// The most accesses that are handed over through shared memory.
const MOST_TILES: usize = 4;

/// How many elements of these sizes are moved at once.
fn widest_vector(sizes: &[i64]) -> Option<i64> {
    let widest = *sizes.iter().max()?;
    Some(if sizes.iter().all(|size| *size == 2) { 8 } else { (16 / widest).min(4) })
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
    widest_vector(&sizes)
}

/// The accesses that move along an axis element by element.
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
