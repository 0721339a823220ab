//! A kernel as PTX: its text, its parameters, and what a launch of it is.

use std::fmt::Write as _;

use pyrite_loops::{AccessId, AxisId, Kernel};

use crate::mapping::{Mapping, grid_axes, may_be_scratch, stepping, vector};
use crate::nest::Emitter;

/// Threads of a block where each thread stands for a position or a row.
const THREADS: u32 = 128;
/// The most threads of a block that stands for a row, where there are few rows and where there are many.
const MOST_THREADS: [u32; 2] = [1024, 256];
/// From how many rows on blocks are smaller.
const MANY_ROWS: i64 = 256;
/// The most blocks of a kernel whose blocks need memory of their own.
const BLOCKS_WITH_SCRATCH: i64 = 1024;
/// How many bytes of parameters an entry may have.
const PARAMETER_BYTES: usize = 4096;

/// Why a kernel has no PTX.
#[derive(Debug, thiserror::Error)]
pub enum Unsupported {
    /// It has more parameters than an entry may have.
    #[error("the kernel needs {0} bytes of parameters, and an entry has room for {PARAMETER_BYTES}")]
    Parameters(usize),
    /// A phase uses what it has reduced so far, and its positions are dealt out to threads.
    #[error("positions take their turn, but rows do not lie side by side")]
    Ordered,
}

/// What a parameter of an entry is; each is a 64-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    /// Where a fault is noted down: 32 bits, not zero after one.
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
    /// The module: one entry for any launch, and another one that moves vectors where a launch allows it.
    pub text: String,
    /// What a thread stands for.
    pub mapping: Mapping,
    kernel: Kernel,
    name: String,
    params: Vec<Param>,
    vector: Option<i64>,
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
    /// Where a fault is noted down.
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
    if mapping == Mapping::Blocks && kernel.phases.iter().any(pyrite_loops::Phase::is_ordered) {
        return Err(Unsupported::Ordered);
    }
    let vector = vector(&kernel, mapping);
    let mut params = vec![Param::Fault, Param::Count];
    let mut entries = vec![(name.to_owned(), Emitter::entry(&kernel, mapping, 1, &mut params))];
    if let Some(lanes) = vector {
        entries.push((format!("{name}_v{lanes}"), Emitter::entry(&kernel, mapping, lanes, &mut params)));
    }
    if params.len() * 8 > PARAMETER_BYTES {
        return Err(Unsupported::Parameters(params.len() * 8));
    }
    let mut text = String::from(".version 7.4\n.target sm_80\n.address_size 64\n");
    for table in pyrite_loops::Table::ALL {
        if entries.iter().any(|(_, entry)| entry.tables.contains(table)) {
            let words: Vec<String> = table.words().iter().map(|word| format!("0x{word:016x}")).collect();
            let name = format!("{table:?}").to_lowercase();
            let _ = writeln!(text, ".const .align 8 .b64 {name}[{}] = {{{}}};", words.len(), words.join(", "));
        }
    }
    let list: Vec<String> = (0..params.len()).map(|number| format!("    .param .u64 a{number}")).collect();
    for (entry, written) in &entries {
        let _ = write!(text, "\n.visible .entry {entry}(\n{}\n)\n{{\n", list.join(",\n"));
        text.push_str(&written.text(&params));
        text.push_str("}\n");
    }
    Ok(Ptx { text, mapping, kernel, name: name.to_owned(), params, vector })
}

impl Ptx {
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
        if let Some(lanes) = self.vector.filter(|lanes| self.takes_vectors(arguments, *lanes)) {
            entry = format!("{entry}_v{lanes}");
            count /= lanes;
        }
        let scratch = (0..self.kernel.accesses.len()).any(|access| pitch(access) != 0);
        let (grid, block) = match self.mapping {
            Mapping::Blocks => {
                let positions = |axes: &[AxisId]| axes.iter().map(extent).product::<i64>();
                let longest = self.kernel.phases.iter().map(|phase| positions(&phase.axes)).max().unwrap_or(1);
                let most = MOST_THREADS[usize::from(count >= MANY_ROWS)];
                let threads = u32::try_from(longest).unwrap_or(most).div_ceil(32).max(1).saturating_mul(32).min(most);
                (count, threads)
            }
            Mapping::Positions | Mapping::Rows => ((count + i64::from(THREADS) - 1) / i64::from(THREADS), THREADS),
        };
        let grid = grid.min(if scratch { BLOCKS_WITH_SCRATCH } else { i64::from(i32::MAX) });
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
        let rows_at_once = u64::from(grid) * if self.mapping == Mapping::Blocks { 1 } else { u64::from(block) };
        Some(Launch { entry, grid, block, params: self.params.iter().map(value).collect(), rows_at_once })
    }

    /// Whether every vector of a launch lies within the last axis and begins where vectors may.
    fn takes_vectors(&self, arguments: &Arguments<'_>, lanes: i64) -> bool {
        let Some(axis) = grid_axes(&self.kernel, self.mapping).last().copied() else { return false };
        let axes = self.kernel.axes.len();
        let aligned = |access: usize| {
            let bytes = lanes * self.kernel.accesses[access].dtype.size() as i64;
            let steps = &arguments.steps[access * axes..][..axes];
            let others = steps.iter().enumerate().filter(|(other, _)| *other != axis.0 as usize);
            arguments.bases[access].is_multiple_of(bytes as u64)
                && others.into_iter().all(|(_, step)| step % lanes == 0)
        };
        arguments.extents[axis.0 as usize] % lanes == 0 && stepping(&self.kernel, axis).all(aligned)
    }
}
