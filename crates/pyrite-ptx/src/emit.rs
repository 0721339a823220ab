//! A kernel as PTX: its text, its parameters, and what a launch of it is.

use std::fmt::Write as _;

use pyrite_loops::{AccessId, AxisId, Kernel, Table};

use crate::mapping::{KeptRow, Mapping, Tile, grid_axes, may_be_scratch, stays_in_registers, stepping, vector};
use crate::nest::{Emitter, TILE_WARPS};

/// Threads of a block where each thread stands for a position or a row.
const THREADS: u32 = 128;
/// The most threads of a block that stands for a row, where there are few rows and where there are many.
const MOST_THREADS: [u32; 2] = [512, 256];
/// The most warps that share the positions of rows.
const MOST_WARPS: i64 = 16;
/// From how many rows on blocks are smaller.
const MANY_ROWS: i64 = 256;
/// The most blocks of a kernel whose blocks need memory of their own.
const BLOCKS_WITH_SCRATCH: i64 = 1024;
/// How many bytes of parameters an entry may have.
const PARAMETER_BYTES: usize = 4096;

/// What every module begins with.
pub(crate) const HEADER: &str = ".version 7.4\n.target sm_80\n.address_size 64\n";

/// Why a kernel has no PTX.
#[derive(Debug, thiserror::Error)]
pub enum Unsupported {
    /// It has more parameters than an entry may have.
    #[error("the kernel needs {0} bytes of parameters, and an entry has room for {PARAMETER_BYTES}")]
    Parameters(usize),
}

/// What a parameter of an entry is; each is a 64-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    /// Where a fault is noted down: a [`FaultNote`].
    Fault,
    /// How many positions or rows the grid has.
    Count,
    /// The address of the first element of an access.
    Base(AccessId),
    /// How many bytes the memory of one block, or thread, is from that of the next.
    Pitch(AccessId),
    /// The positions of an axis.
    Extent(AxisId),
    /// The index at which an axis begins.
    Begin(AxisId),
    /// How many elements a step along an axis is.
    Step(AccessId, AxisId),
    /// A number of the kernel.
    Number(u32),
}

/// A kernel as PTX.
#[derive(Clone, Debug)]
pub struct Ptx {
    /// What a thread stands for.
    pub mapping: Mapping,
    /// One entry for any launch, and another one that moves vectors where a launch allows it.
    entries: String,
    tables: Vec<Table>,
    kernel: Kernel,
    name: String,
    params: Vec<Param>,
    vector: Option<i64>,
    /// How the entry that moves vectors keeps rows.
    row: Option<KeptRow>,
    /// How its only entry goes through tiles.
    tile: Option<Tile>,
}

/// What a kernel notes down of an index that is out of bounds, as it lies in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultNote {
    /// Not zero if there was one.
    pub is_set: u32,
    padding: u32,
    /// The index.
    pub index: i64,
    /// How many elements there are.
    pub extent: i64,
}

impl FaultNote {
    /// How many words of 32 bits it has.
    pub const WORDS: usize = size_of::<Self>() / 4;

    /// A note of its words.
    pub fn of(words: [u32; Self::WORDS]) -> Self {
        let wide = |low: usize| (u64::from(words[low]) | u64::from(words[low + 1]) << 32) as i64;
        Self { is_set: words[0], padding: 0, index: wide(2), extent: wide(4) }
    }
}

/// What a launch is for: the arguments of a kernel's call.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// For each access the address of the element at which the launch begins.
    pub bases: &'a [u64],
    /// How many positions of each axis are run.
    pub extents: &'a [i64],
    /// The index at which each axis begins.
    pub begins: &'a [i64],
    /// How many elements a step along each axis is, for the first access, then for the second, and so on.
    pub steps: &'a [i64],
    /// The numbers of the kernel.
    pub numbers: &'a [i64],
    /// Where a fault is noted down: the address of a [`FaultNote`].
    pub fault: u64,
}

/// A grid with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The name of the entry.
    pub entry: String,
    /// How many blocks.
    pub grid: u32,
    /// How many threads a block has.
    pub block: u32,
    /// The parameters.
    pub params: Vec<u64>,
    /// How many rows are computed at the same time, each with memory of its own for what it puts aside.
    pub rows_at_once: u64,
}

/// Writes a kernel as PTX; its entry is named as told.
pub fn compile(kernel: &Kernel, name: &str) -> Result<Ptx, Unsupported> {
    let kernel = pyrite_math::expand(kernel);
    let mapping = Mapping::of(&kernel);
    let row = KeptRow::of(&kernel);
    let vector = row.map(|row| row.lanes).or_else(|| vector(&kernel, mapping));
    let tile = Tile::of(&kernel, mapping);
    let mut params = vec![Param::Fault, Param::Count];
    let first = match tile {
        Some(tile) => Emitter::tiled_entry(&kernel, tile, &mut params),
        None => Emitter::entry(&kernel, mapping, 1, None, &mut params),
    };
    let mut entries = vec![(name.to_owned(), first)];
    if let Some(lanes) = vector {
        entries.push((format!("{name}_v{lanes}"), Emitter::entry(&kernel, mapping, lanes, row, &mut params)));
    }
    if params.len() * 8 > PARAMETER_BYTES {
        return Err(Unsupported::Parameters(params.len() * 8));
    }
    let mut tables: Vec<Table> = entries.iter().flat_map(|(_, entry)| entry.tables.iter().copied()).collect();
    tables.sort_unstable();
    tables.dedup();
    let list: Vec<String> = (0..params.len()).map(|number| format!("    .param .u64 a{number}")).collect();
    let mut text = String::new();
    for (number, (entry, written)) in entries.iter().enumerate() {
        let _ = write!(text, "\n.visible .entry {entry}(\n{}\n)\n", list.join(",\n"));
        // The assembler leaves registers for so many threads.
        let threads = match (mapping, row) {
            (_, Some(row)) if number > 0 => row.threads,
            _ if tile.is_some() => TILE_WARPS as u32 * 32,
            (Mapping::Positions | Mapping::Rows, _) => THREADS,
            (Mapping::Columns, _) => MOST_WARPS as u32 * 32,
            (Mapping::Blocks, _) => MOST_THREADS[0],
        };
        let _ = write!(text, ".maxntid {threads}, 1, 1\n{{\n");
        text.push_str(&written.text(&params));
        text.push_str("}\n");
    }
    Ok(Ptx { entries: text, tables, mapping, kernel, name: name.to_owned(), params, vector, row, tile })
}

/// A module of some kernels, whose entries have different names.
pub fn module<'a>(kernels: impl IntoIterator<Item = &'a Ptx> + Clone) -> String {
    let mut text = String::from(HEADER);
    for table in Table::ALL {
        if kernels.clone().into_iter().any(|kernel| kernel.tables.contains(table)) {
            let words: Vec<String> = table.words().iter().map(|word| format!("0x{word:016x}")).collect();
            let name = format!("{table:?}").to_lowercase();
            let _ = writeln!(text, ".const .align 8 .b64 {name}[{}] = {{{}}};", words.len(), words.join(", "));
        }
    }
    kernels.into_iter().for_each(|kernel| text.push_str(&kernel.entries));
    text
}

impl Ptx {
    /// A module of this kernel alone.
    pub fn text(&self) -> String {
        module([self])
    }

    /// The names of its entries.
    pub fn entry_names(&self) -> Vec<String> {
        let vectors = self.vector.map(|lanes| format!("{}_v{lanes}", self.name));
        std::iter::once(self.name.clone()).chain(vectors).collect()
    }

    /// The buffers that may hold what a row puts aside for itself. If one does, each row that is computed at the same time
    /// ([`Launch::rows_at_once`]) has memory of its own there.
    pub fn may_be_scratch(&self, access: usize) -> bool {
        may_be_scratch(&self.kernel, self.kernel.accesses[access].buffer)
    }

    /// The launch for some arguments; nothing if there is nothing to compute. `pitch` tells for each access how many bytes
    /// the memory of a row is from that of the next one which is computed at the same time; zero, unless the access goes
    /// to what rows put aside.
    pub fn launch(&self, arguments: &Arguments<'_>, pitch: &dyn Fn(usize) -> u64) -> Option<Launch> {
        let axes = grid_axes(&self.kernel, self.mapping);
        let extent = |axis: &AxisId| arguments.extents[axis.0 as usize].max(0);
        let mut count: i64 = axes.iter().map(extent).product();
        if count == 0 {
            return None;
        }
        let mut entry = self.name.clone();
        let mut kept = None;
        if let Some(lanes) = self.vector.filter(|lanes| self.takes_vectors(arguments, *lanes)) {
            entry = format!("{entry}_v{lanes}");
            kept = self.row;
            if kept.is_none() {
                count /= lanes;
            }
        }
        if let Some(tile) = self.tile {
            let tiles = |extent: i64| (extent + tile.size - 1) / tile.size;
            let (along, across) = (extent(&tile.along), extent(&tile.across));
            count = count / along / across * tiles(along) * tiles(across);
        }
        let aside: Vec<usize> = (0..self.kernel.accesses.len()).filter(|access| pitch(*access) != 0).collect();
        // What stays in registers needs no memory, so all rows may have blocks.
        let stays = |access: &usize| stays_in_registers(&self.kernel, self.kernel.accesses[*access].buffer);
        let takes_turns = !(kept.is_some() || aside.is_empty()) || !aside.iter().all(stays);
        let (grid, block) = match self.mapping {
            Mapping::Blocks => {
                let positions = |axes: &[AxisId]| axes.iter().map(extent).product::<i64>();
                let longest = self.kernel.phases.iter().map(|phase| positions(&phase.axes)).max().unwrap_or(1);
                let most = MOST_THREADS[usize::from(count >= MANY_ROWS)];
                let threads = u32::try_from(longest).unwrap_or(most).div_ceil(32).max(1).saturating_mul(32).min(most);
                let neighbours = kept.filter(|row| row.adds).and(self.kernel.rows.last()).map_or(1, extent);
                (count / neighbours, kept.map_or(threads, |row| row.threads))
            }
            Mapping::Columns => {
                let positions = |axes: &[AxisId]| axes.iter().map(extent).product::<i64>();
                let longest = self.kernel.phases.iter().map(|phase| positions(&phase.axes)).max().unwrap_or(1);
                let warps = (longest / 4).clamp(1, MOST_WARPS);
                ((count + 31) / 32, warps as u32 * 32)
            }
            Mapping::Positions if self.tile.is_some() => (count, TILE_WARPS as u32 * 32),
            Mapping::Positions | Mapping::Rows => ((count + i64::from(THREADS) - 1) / i64::from(THREADS), THREADS),
        };
        let grid = grid.min(if takes_turns { BLOCKS_WITH_SCRATCH } else { i64::from(i32::MAX) });
        let grid = u32::try_from(grid).unwrap_or(1);
        let steps = self.kernel.axes.len();
        let value = |param: &Param| match *param {
            Param::Fault => arguments.fault,
            Param::Count => count as u64,
            Param::Base(access) => arguments.bases[access.0 as usize],
            Param::Pitch(access) => pitch(access.0 as usize),
            Param::Extent(axis) => arguments.extents[axis.0 as usize].max(0) as u64,
            Param::Begin(axis) => arguments.begins[axis.0 as usize] as u64,
            Param::Step(access, axis) => arguments.steps[access.0 as usize * steps + axis.0 as usize] as u64,
            Param::Number(number) => arguments.numbers[number as usize] as u64,
        };
        // Other arguments may need another entry, whose rows put things aside in memory.
        let rows_at_once =
            if aside.is_empty() { u64::from(grid) } else { u64::from(grid).min(BLOCKS_WITH_SCRATCH as u64) }
                * match self.mapping {
                    Mapping::Blocks => 1,
                    Mapping::Columns => 32,
                    Mapping::Positions | Mapping::Rows => u64::from(block),
                };
        Some(Launch { entry, grid, block, params: self.params.iter().map(value).collect(), rows_at_once })
    }

    /// Whether every vector of a launch lies within the last axis and begins where vectors may.
    fn takes_vectors(&self, arguments: &Arguments<'_>, lanes: i64) -> bool {
        let axes = self.kernel.axes.len();
        let aligned = |axis: AxisId, access: usize| {
            let bytes = lanes * self.kernel.accesses[access].dtype.size() as i64;
            let steps = &arguments.steps[access * axes..][..axes];
            let others = steps.iter().enumerate().filter(|(other, _)| *other != axis.0 as usize);
            arguments.bases[access].is_multiple_of(bytes as u64)
                && others.into_iter().all(|(_, step)| step % lanes == 0)
        };
        let moves = |axis: AxisId| stepping(&self.kernel, axis).all(|access| aligned(axis, access));
        if let Some(row) = self.row {
            let mut own = self.kernel.phases.iter().flat_map(|phase| &phase.axes);
            return own.all(|axis| {
                let at = axis.0 as usize;
                arguments.extents[at] == row.extent && arguments.begins[at] == 0 && moves(*axis)
            });
        }
        let last = grid_axes(&self.kernel, self.mapping).last().copied();
        last.is_some_and(|axis| arguments.extents[axis.0 as usize] % lanes == 0 && moves(axis))
    }
}
