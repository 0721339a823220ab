//! The stack frame of a kernel.
//!
//! All that outlives a region is in the frame: the arguments, the loop counters, where each access is, what was reduced.
//! Vectors have 64 bytes each, at multiples of 64.

use pyrite_loops::{Kernel, Reduction};

use super::reduce::reduced_type;
use super::vector::Kind;

pub(super) const BASES: u32 = 0;
pub(super) const EXTENTS: u32 = 8;
pub(super) const BEGINS: u32 = 16;
pub(super) const STEPS: u32 = 24;
pub(super) const NUMBERS: u32 = 32;
/// How many lanes count.
pub(super) const COUNT: u32 = 40;
/// The stack pointer of the caller.
pub(super) const CALLER: u32 = 48;
/// Whether results are too many to stay in the caches.
pub(super) const STREAM: u32 = 56;
/// Where general registers are kept during calls.
pub(super) const SAVED: u32 = 64;
/// Which lanes count, as 32-bit lanes.
pub(super) const MASK32: u32 = 128;
/// Which lanes count, as 64-bit lanes.
pub(super) const MASK64: u32 = 192;
/// The arguments of a routine and what it gives; also where elements are gathered one by one.
pub(super) const FIRST: u32 = 256;
pub(super) const SECOND: u32 = 320;
pub(super) const GIVEN: u32 = 384;
pub(super) const OPMASK: u32 = 448;
/// Where vector registers are kept during calls, by their number.
pub(super) const REGISTERS: u32 = 512;
/// How far behind a total there is what its roundings lost.
pub(super) const LOST: u32 = 64;
const FREE: u32 = REGISTERS + 32 * 64;

/// The places of what outlives a region.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The vector of each reduced number.
    pub(super) results: Vec<u32>,
    /// For each phase and each of its reductions the number of its first accumulator.
    pub(super) accumulators: Vec<Vec<u32>>,
    /// For each phase the vector and the kind of each accumulator.
    pub(super) totals: Vec<Vec<(u32, Kind)>>,
    /// The index of each axis.
    pub(super) counters: Vec<u32>,
    /// Where each access is.
    pub(super) cursors: Vec<u32>,
    /// The step of each access along each axis in bytes, where it is not known.
    pub(super) steps: Vec<Vec<Option<u32>>>,
    /// The vectors of results and totals for each block of rows that lie side by side.
    blocks: Vec<(Vec<u32>, Vec<Vec<(u32, Kind)>>)>,
    size: u32,
}

impl Layout {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut layout = Self {
            results: vec![0; kernel.results.len()],
            accumulators: Vec::new(),
            totals: Vec::new(),
            counters: Vec::new(),
            cursors: Vec::new(),
            steps: Vec::new(),
            blocks: Vec::new(),
            size: FREE,
        };
        for phase in &kernel.phases {
            let (mut firsts, mut totals) = (Vec::new(), Vec::new());
            for reduce in &phase.reduces {
                firsts.push(totals.len() as u32);
                let kind = Kind::of(reduced_type(phase.code.ty(reduce.value)));
                totals.push((layout.total(), kind));
                if matches!(reduce.op, Reduction::ArgMax | Reduction::ArgMin) {
                    totals.push((layout.total(), Kind::W64));
                }
                layout.results[reduce.result.0 as usize] = totals[totals.len() - 1].0;
            }
            layout.accumulators.push(firsts);
            layout.totals.push(totals);
        }
        layout.counters = kernel.axes.iter().map(|_| layout.word()).collect();
        layout.cursors = kernel.accesses.iter().map(|_| layout.word()).collect();
        layout.steps = kernel
            .accesses
            .iter()
            .map(|access| {
                let known = |step: &pyrite_sym::SymInt| {
                    step.as_int().is_some_and(|s| i32::try_from(s.saturating_mul(64 * 8)).is_ok())
                };
                access.steps.iter().map(|step| (!known(step)).then(|| layout.word())).collect()
            })
            .collect();
        layout
    }

    /// Makes room for what some blocks of rows reduce.
    pub(super) fn add_blocks(&mut self, kernel: &Kernel, blocks: usize) {
        self.blocks.push((self.results.clone(), self.totals.clone()));
        for _ in 1..blocks {
            let mut totals = self.totals.clone();
            totals.iter_mut().flatten().for_each(|(slot, _)| *slot = self.total());
            let mut results = self.results.clone();
            for (phase, (firsts, totals)) in kernel.phases.iter().zip(self.accumulators.iter().zip(&totals)) {
                for (reduce, first) in phase.reduces.iter().zip(firsts) {
                    let own = *first as usize + usize::from(reduce.index.is_some());
                    results[reduce.result.0 as usize] = totals[own].0;
                }
            }
            self.blocks.push((results, totals));
        }
    }

    /// Makes the vectors of a block the present ones.
    pub(super) fn select_block(&mut self, block: usize) {
        if let Some((results, totals)) = self.blocks.get(block) {
            (self.results, self.totals) = (results.clone(), totals.clone());
        }
    }

    /// A new vector.
    pub(super) fn vector(&mut self) -> u32 {
        self.size = self.size.next_multiple_of(64) + 64;
        self.size - 64
    }

    /// As many new vectors, one after the other.
    pub(super) fn vectors(&mut self, count: usize) -> u32 {
        let first = self.vector();
        (1..count).for_each(|_| {
            self.vector();
        });
        first
    }

    /// A new vector for a total, with one for what its roundings lost right behind.
    fn total(&mut self) -> u32 {
        let total = self.vector();
        let lost = self.vector();
        debug_assert_eq!(lost, total + LOST);
        total
    }

    fn word(&mut self) -> u32 {
        self.size += 8;
        self.size - 8
    }

    /// How many bytes the frame has.
    pub(super) fn size(&self) -> u32 {
        self.size.next_multiple_of(64)
    }

    /// Gives up the vectors that a region has taken since the frame was so long.
    pub(super) fn truncate(&mut self, size: u32) {
        self.size = size;
    }
}
