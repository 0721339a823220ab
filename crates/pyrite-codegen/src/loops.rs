//! A kernel with its code, and its run.
//!
//! [`Loops::ready`] finds everything a run needs: the addresses of the accesses, and the numbers of the kernel for the
//! sizes of this call. What comes out can be run as a whole, shared among threads, or part by part along the axis that
//! threads share.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use pyrite_ir::{OpError, Symbols};
use pyrite_loops::{AccessId, AxisId, BufferId, Direction, Inst, Kernel, Lanes};
use pyrite_sym::SymInt;
use pyrite_tensor::Storage;

use crate::code::{Call, Code, Fault, MachineCode, Reach};
use crate::schedule::{AsKernel, Buffer, Origin};
use crate::{CodeStore, Generator, generate};

/// Work below this, in steps of code, is not shared among threads.
const WORTH_SHARING: i64 = 1 << 18;

/// The memory of a buffer in one call.
#[derive(Clone)]
pub struct Memory {
    /// The storage.
    pub storage: Storage,
    /// Where in it the buffer begins, in bytes. An input may lie elsewhere in its storage than the one that the program
    /// was compiled for: all of its places move with it.
    pub start: i64,
}

impl Memory {
    /// All of a storage.
    pub fn whole(storage: Storage) -> Self {
        Self { storage, start: 0 }
    }
}

/// A kernel with its code.
pub struct Loops {
    /// The kernel.
    pub kernel: Kernel,
    code: Arc<dyn Code>,
    shape: LoopShape,
    /// How many instructions run at each position.
    weight: i64,
    /// Whether each access writes.
    writes: Vec<bool>,
}

impl AsKernel for Loops {
    fn kernel(&self) -> &Kernel {
        &self.kernel
    }
}

/// What is known of the loops of a kernel before it is called.
pub struct LoopShape {
    /// The axis whose positions threads share, and by how many they are dealt out.
    shared: Option<(AxisId, i64)>,
    /// The tables of a kernel whose sizes are all known.
    pub tables: Option<Tables>,
}

impl LoopShape {
    /// Looks at a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        Self { shared: shared_axis(kernel), tables: Tables::of(kernel, &Symbols::default()).ok() }
    }

    /// The axes of which a run may be given bounds: their positions are independent of each other.
    pub fn independent<'a>(&'a self, kernel: &'a Kernel) -> &'a [AxisId] {
        match &self.shared {
            Some(_) if !kernel.rows.is_empty() => &kernel.rows,
            Some((axis, _)) => std::slice::from_ref(axis),
            None => &[],
        }
    }
}

/// The numbers of a kernel for one call.
#[derive(Clone)]
pub struct Tables {
    /// The positions of each axis.
    pub extents: Vec<i64>,
    /// The steps of each access along each axis.
    pub steps: Vec<i64>,
    /// The numbers of the kernel.
    pub numbers: Vec<i64>,
    /// The offset of each access.
    pub offsets: Vec<i64>,
}

/// An address that threads may share: each writes to elements of its own.
#[derive(Clone, Copy)]
struct Base(*mut u8);

// SAFETY: an address is only a number until compiled code follows it; see `Ready::run_within`.
#[expect(unsafe_code, reason = "parts of a kernel run on several threads")]
unsafe impl Send for Base {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "parts of a kernel run on several threads")]
unsafe impl Sync for Base {}

/// Positions of an axis: from one on, so many.
pub type Bounds = (AxisId, i64, i64);

/// A kernel that can be run now.
pub struct Ready<'a> {
    loops: &'a Loops,
    tables: Cow<'a, Tables>,
    bases: Vec<Base>,
    /// Which accesses go to blocks that the caller brings, and to which of them.
    blocks: Vec<(usize, usize)>,
    /// Which accesses go to memory that each thread has for itself, and to which line of it.
    scratch: Vec<(usize, usize)>,
    scratch_lines: usize,
    /// What each access may touch, where the code wants to know.
    reach: Vec<Reach>,
}

/// A line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Line {
    _bytes: [u8; 64],
}

impl Default for Line {
    fn default() -> Self {
        Self { _bytes: [0; 64] }
    }
}

thread_local! {
    /// What kernels of this thread put aside within a row, one kernel at a time.
    static SCRATCH: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// More lines than this are given back after a kernel.
const SCRATCH_KEPT: usize = 1 << 14;

impl Loops {
    /// Makes code of a kernel, or takes it from a store.
    pub fn new(kernel: Kernel, generator: Generator, store: &dyn CodeStore) -> Result<Self, OpError> {
        let code = generate(&kernel, generator, store)?;
        let weight = kernel.phases.iter().map(|phase| phase.code.len() as i64).max().unwrap_or(1);
        let mut writes = vec![false; kernel.accesses.len()];
        kernel.each_access(|id, direction| writes[id.0 as usize] |= direction == Direction::Write);
        Ok(Self { shape: LoopShape::of(&kernel), kernel, code, weight, writes })
    }

    /// Its machine code; nothing where it is interpreted.
    pub fn machine(&self) -> Option<MachineCode> {
        self.code.machine()
    }

    /// Finds the memory of a call. Every buffer but scratch has been given memory, and but those of which callers bring
    /// a block with each run.
    pub fn ready<'a>(
        &'a self,
        buffers: &[Buffer],
        symbols: &Symbols,
        memory: &[Option<Memory>],
        brought: &[BufferId],
    ) -> Result<Ready<'a>, OpError> {
        let tables = match &self.shape.tables {
            Some(tables) => Cow::Borrowed(tables),
            None => Cow::Owned(Tables::of(&self.kernel, symbols)?),
        };
        let mut bases = Vec::with_capacity(self.kernel.accesses.len());
        let (mut scratch, mut blocks) = (Vec::new(), Vec::new());
        let mut kept: Vec<(BufferId, usize)> = Vec::new();
        let mut scratch_lines = 0;
        let mut reach = vec![Reach::Access; if self.code.checks_memory() { self.kernel.accesses.len() } else { 0 }];
        for (index, (access, offset)) in self.kernel.accesses.iter().zip(&tables.offsets).enumerate() {
            let buffer = &buffers[access.buffer.0 as usize];
            if buffer.origin == Origin::Scratch {
                let known = kept.iter().find(|(known, _)| *known == access.buffer).map(|(_, first)| *first);
                let first = if let Some(first) = known {
                    first
                } else {
                    let bytes = symbols.eval(&buffer.elements)? as usize * buffer.dtype.size();
                    kept.push((access.buffer, scratch_lines));
                    scratch_lines += bytes.div_ceil(size_of::<Line>());
                    kept[kept.len() - 1].1
                };
                scratch.push((index, first));
                if let Some(reach) = reach.get_mut(index) {
                    *reach = Reach::Scratch;
                }
                bases.push(Base(std::ptr::null_mut()));
                continue;
            }
            if let Some(block) = brought.iter().position(|known| *known == access.buffer) {
                blocks.push((index, block));
                bases.push(Base(std::ptr::null_mut()));
                continue;
            }
            let memory = memory[access.buffer.0 as usize].as_ref();
            let Memory { storage, start } = memory.ok_or_else(|| OpError::fault("a kernel without memory"))?;
            // Reading must not count as writing: what was derived from the content stays valid.
            let first = if self.writes[index] { storage.as_mut_ptr() } else { storage.as_ptr().cast_mut() };
            if let Some(reach) = reach.get_mut(index) {
                *reach = Reach::Buffer(first.addr()..first.addr() + storage.nbytes());
            }
            let first = first.wrapping_offset(*start as isize);
            bases.push(Base(first.wrapping_offset(*offset as isize * access.dtype.size() as isize)));
        }
        Ok(Ready { loops: self, tables, bases, blocks, scratch, scratch_lines, reach })
    }
}

impl Ready<'_> {
    /// Runs the kernel, on several threads if it is large.
    pub fn run(&self) -> Result<(), OpError> {
        let kernel = &self.loops.kernel;
        let positions = self.tables.work(kernel);
        let threads =
            if positions.saturating_mul(self.loops.weight) < WORTH_SHARING { 1 } else { pyrite_threads::count() };
        let done = match self.loops.shape.shared {
            Some((axis, grain)) if threads > 1 => {
                let extent = self.tables.extents[axis.0 as usize];
                let share = (extent.div_euclid(threads as i64) + i64::from(extent % threads as i64 != 0)).max(1);
                let share = (share + grain - 1) / grain * grain;
                let parts: Vec<(i64, i64)> =
                    (0..extent).step_by(share as usize).map(|begin| (begin, share.min(extent - begin))).collect();
                if parts.len() < 2 {
                    self.run_within(&[], &[])
                } else {
                    let run = |part: usize| self.run_within(&[(axis, parts[part].0, parts[part].1)], &[]);
                    pyrite_threads::map(parts.len(), run).into_iter().collect()
                }
            }
            _ => self.run_within(&[], &[]),
        };
        done.map_err(|fault| self.loops.error(fault))
    }

    /// Runs the kernel within bounds of axes whose positions are independent of each other. A block holds what its
    /// buffer has within the bounds, and from the first position on.
    pub fn run_within(&self, bounds: &[Bounds], blocks: &[*mut u8]) -> Result<(), Fault> {
        let (tables, kernel) = (&self.tables, &self.loops.kernel);
        let axes = kernel.axes.len();
        let mut bases: Vec<*mut u8> = self.bases.iter().map(|base| base.0).collect();
        let mut begins = vec![0; axes];
        let mut extents = Cow::Borrowed(&tables.extents);
        for &(axis, begin, count) in bounds {
            extents.to_mut()[axis.0 as usize] = count;
            begins[axis.0 as usize] = begin;
        }
        if !bounds.is_empty() {
            for (index, (base, access)) in bases.iter_mut().zip(&kernel.accesses).enumerate() {
                let steps = &tables.steps[index * axes..(index + 1) * axes];
                let moved: i64 = bounds.iter().map(|(axis, begin, _)| begin * steps[axis.0 as usize]).sum();
                *base = base.wrapping_offset((moved * access.dtype.size() as i64) as isize);
            }
        }
        for &(access, block) in &self.blocks {
            let bytes = tables.offsets[access] * kernel.accesses[access].dtype.size() as i64;
            bases[access] = blocks[block].wrapping_offset(bytes as isize);
        }
        let mut lines = SCRATCH.take();
        lines.resize(self.scratch_lines.max(lines.len()), Line::default());
        for (access, first) in &self.scratch {
            bases[*access] = lines.as_mut_ptr().wrapping_add(*first).cast();
        }
        let (steps, numbers) = (&tables.steps, &tables.numbers);
        let call = Call { bases: &bases, extents: &extents, begins: &begins, steps, numbers, reach: &self.reach };
        // SAFETY: buffers have room for everything that accesses reach, because both come from the same metadata, and
        // inputs keep to the contract that the run has bound them by; inputs that others hold too are not written while
        // the run holds them. Parts of a shared axis write to different elements.
        #[expect(unsafe_code, reason = "compiled code works on raw memory")]
        let done = unsafe { self.loops.code.run(&call) };
        if lines.len() <= SCRATCH_KEPT {
            SCRATCH.set(lines);
        }
        done
    }
}

impl Loops {
    /// A fault as an error.
    pub fn error(&self, fault: Fault) -> OpError {
        let message = format!("{fault} in {}", self.kernel.name);
        match fault {
            Fault::OutOfBounds => OpError::OutOfRange(message),
            Fault::Trap(_) => OpError::fault(message),
        }
    }
}

/// The axis that threads share: the outermost row, or, of a kernel that has none and reduces nothing, its first axis.
fn shared_axis(kernel: &Kernel) -> Option<(AxisId, i64)> {
    let scatters = kernel.phases.iter().any(|p| p.code.insts().iter().any(|i| matches!(i, Inst::Scatter { .. })));
    if scatters {
        return None;
    }
    if let Some(first) = kernel.rows.first() {
        let lanes = kernel.lanes == Lanes::Rows && kernel.rows.len() == 1;
        return Some((*first, if lanes { 64 } else { 1 }));
    }
    let (first, others) = kernel.phases.split_first()?;
    let axis = first.axes.first()?;
    let alike = others.iter().all(|phase| phase.axes == first.axes);
    let reduces = kernel.phases.iter().any(|phase| !phase.reduces.is_empty());
    (alike && !reduces).then_some((*axis, if first.axes.len() == 1 { 64 } else { 1 }))
}

impl Tables {
    pub fn of(kernel: &Kernel, symbols: &Symbols) -> Result<Self, OpError> {
        let all = |sizes: &mut dyn Iterator<Item = &SymInt>| {
            sizes.map(|size| symbols.eval(size)).collect::<Result<Vec<i64>, OpError>>()
        };
        Ok(Self {
            extents: all(&mut kernel.axes.iter().map(|axis| &axis.extent))?,
            steps: all(&mut kernel.accesses.iter().flat_map(|access| &access.steps))?,
            numbers: all(&mut kernel.numbers.iter())?,
            offsets: all(&mut (0..kernel.accesses.len()).map(|i| &kernel.access(AccessId(i as u32)).offset))?,
        })
    }

    /// How many positions all phases have together.
    fn work(&self, kernel: &Kernel) -> i64 {
        let product = |axes: &[AxisId]| axes.iter().map(|axis| self.extents[axis.0 as usize]).product::<i64>();
        let rows = product(&kernel.rows);
        kernel.phases.iter().map(|phase| rows.saturating_mul(product(&phase.axes))).sum()
    }
}
