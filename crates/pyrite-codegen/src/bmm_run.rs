//! The run of a [`FusedBmm`]: tasks of rows, each with its packed operands and its blocks.

use std::cell::Cell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pyrite_ir::OpError;
use pyrite_matmul::{Base, Lane, Matrix, Onto, Packed, Request, Right, Shape, Source, Threads, multiply_into};
use pyrite_tensor::storage::Reading;
use pyrite_tensor::{DType, Element, Tensor};

use crate::bmm::{Block, Bmm, FusedBmm, Link};
use crate::code::Fault;
use crate::gemm::SMALL;
use crate::loops::{Line, Loops, Ready};

/// Bytes of the blocks of a thread.
const BLOCK_BYTES: usize = 192 << 10;
/// Fewer rows are not worth a block: two panels of the largest tiles.
const BLOCK_ROWS: usize = 28;
/// Multiplications that are worth another thread.
const SHARE: usize = 1 << 18;
/// Blocks of more lines than this are given back.
const KEPT_LINES: usize = 1 << 15;

/// What a link needs for a run.
#[expect(clippy::large_enum_variant, reason = "a few for the length of a call")]
pub enum Given<'a> {
    /// A batched matmul.
    Bmm(BmmOperands),
    /// A kernel.
    Kernel(Ready<'a>),
}

/// The tensors of a batched matmul.
pub struct BmmOperands {
    /// The left operand, unless it is a block.
    pub lhs: Option<Tensor>,
    /// Whether an earlier link fills the left operand.
    pub fed: bool,
    /// The right operand.
    pub rhs: Tensor,
    /// The result, unless it is a block.
    pub out: Option<Tensor>,
}

/// Sizes of a batched matmul in a call: matrices, rows, depth, columns.
#[derive(Clone, Copy)]
pub struct Extents {
    count: usize,
    rows: usize,
    depth: usize,
    cols: usize,
}

impl Extents {
    /// Of a left operand and a result of these shapes.
    pub fn of(lhs: &[i64], out: &[i64]) -> Self {
        let (counts, matrix) = out.split_at(out.len() - 2);
        let count = counts.iter().product::<i64>() as usize;
        let depth = lhs.last().map_or(0, |depth| *depth as usize);
        Self { count, rows: matrix[0] as usize, depth, cols: matrix[1] as usize }
    }

    /// Whether the bmm is better left to a call: because that is more exact, or because it is bound by memory.
    pub fn is_small(self) -> bool {
        self.work() <= SMALL || self.rows == 1 || self.cols == 1 || self.count == 0
    }

    fn work(self) -> usize {
        self.rows.saturating_mul(self.cols).saturating_mul(self.depth)
    }
}

/// An address in a result; tasks have different rows.
#[derive(Clone, Copy)]
struct Address<T>(*mut T);

// SAFETY: an address is only a number until a bmm follows it, and bmms of different tasks have different rows.
#[expect(unsafe_code, reason = "tasks write to rows of one result")]
unsafe impl<T: Send> Send for Address<T> {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "tasks write to rows of one result")]
unsafe impl<T: Send> Sync for Address<T> {}

/// Where the matrices of a batch lie.
struct Lies {
    /// Sizes and strides of the dimensions that number matrices.
    counts: Vec<(usize, usize)>,
    first: usize,
    shape: Shape,
}

impl Lies {
    fn of(tensor: &Tensor) -> Self {
        let (shape, stride) = (tensor.shape(), tensor.stride());
        let split = shape.len() - 2;
        let counts = shape[..split].iter().zip(stride).map(|(size, stride)| (*size as usize, *stride as usize));
        // A stride along a single row or column is never walked, whatever it says.
        let step = |at: usize| if shape[at] == 1 { 0 } else { stride[at] as usize };
        Self {
            counts: counts.collect(),
            first: tensor.layout().offset as usize,
            shape: Shape {
                rows: shape[split] as usize,
                cols: shape[split + 1] as usize,
                row_stride: step(split),
                col_stride: step(split + 1),
            },
        }
    }

    /// Where a matrix begins.
    fn start(&self, mut entry: usize) -> usize {
        let mut at = self.first;
        for (size, stride) in self.counts.iter().rev() {
            at += entry % size * stride;
            entry /= size;
        }
        at
    }

    /// Some rows of a matrix.
    fn rows<'a, T>(&self, data: &'a [T], entry: usize, rows: Range<usize>) -> Matrix<'a, T> {
        let shape = Shape { rows: rows.len(), ..self.shape };
        Matrix { data: &data[self.start(entry) + rows.start * self.shape.row_stride..], shape }
    }
}

/// A batched matmul as tasks see it.
struct Factors<'a, T> {
    lhs: Left<'a, T>,
    rhs: (&'a [T], Lies),
    out: Destination<T>,
    extents: Extents,
}

/// A left operand.
enum Left<'a, T> {
    /// It was there before.
    Given(&'a [T], Lies),
    /// An earlier link has filled its rows, which lie one after the other.
    Filled(Address<T>),
    /// They are in a block.
    Block(usize),
}

/// A result.
enum Destination<T> {
    Given(Address<T>, Lies),
    Block(usize),
}

/// A link as tasks see it.
#[expect(clippy::large_enum_variant, reason = "a few for the length of a call")]
enum ReadyLink<'a, T> {
    Bmm(Factors<'a, T>),
    Kernel(&'a Ready<'a>),
}

/// The operands of a bmm that were there before, for reading; the right one last.
fn readings<'a, T: Element>(given: &'a Given<'_>) -> Vec<Reading<'a, T>> {
    let Given::Bmm(operands) = given else { return Vec::new() };
    let read = |tensor: &'a Tensor| tensor.storage().read::<T>();
    operands.lhs.iter().filter(|_| !operands.fed).chain([&operands.rhs]).map(read).collect()
}

thread_local! {
    /// The memory of the blocks of a thread, one statement at a time.
    static MEMORY: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

impl FusedBmm<Loops> {
    /// Runs the links, with what each is given, block by block. Results have memory of their own.
    pub fn run(&self, given: &[Given<'_>], extents: &[Extents]) -> Result<(), OpError> {
        match self.bmms().next().map(|bmm| bmm.out.meta.dtype) {
            Some(DType::F64) => self.typed::<f64>(given, extents),
            _ => self.typed::<f32>(given, extents),
        }
    }

    fn typed<T: Element + Lane + Source<T>>(&self, given: &[Given<'_>], extents: &[Extents]) -> Result<(), OpError> {
        let readings: Vec<Vec<Reading<'_, T>>> = given.iter().map(readings).collect();
        let mut sizes = extents.iter();
        let mut steps: Vec<ReadyLink<'_, T>> = Vec::with_capacity(given.len());
        for ((given, link), readings) in given.iter().zip(&self.links).zip(&readings) {
            steps.push(match (given, link, sizes.as_slice().first()) {
                (Given::Kernel(ready), ..) => ReadyLink::Kernel(ready),
                (Given::Bmm(operands), Link::Bmm(bmm), Some(extents)) => {
                    sizes.next();
                    let factors = self.factors(bmm, operands, readings, *extents);
                    ReadyLink::Bmm(factors.ok_or_else(|| OpError::fault("a bmm without memory"))?)
                }
                _ => return Err(OpError::fault("a link that is given what belongs to another")),
            });
        }
        let Some(&Extents { count, rows, .. }) = extents.first() else { return Ok(()) };
        let work = extents.iter().map(|extents| extents.work()).fold(0, usize::saturating_add);
        let threads = pyrite_threads::count().min(work.saturating_mul(count) / SHARE).max(1);
        if let ([ReadyLink::Bmm(factors)], true) = (&steps[..], count < threads) {
            (0..count).for_each(|entry| factors.multiply(entry, 0..rows, &[], None, Threads::All));
            return Ok(());
        }
        // A few matrices are cut, so that all threads have about as much to do.
        let even = count >= 4 * threads || count.is_multiple_of(threads);
        let parts = if even { 1 } else { threads.min(rows / BLOCK_ROWS).max(1) };
        let faults: Mutex<Option<(usize, Fault)>> = Mutex::new(None);
        let task = |index: usize| {
            let (entry, part) = (index / parts, index % parts);
            let own = part * rows / parts..(part + 1) * rows / parts;
            if let Err(found) = self.run_rows(&steps, entry, rows, own) {
                *faults.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            }
        };
        if threads == 1 {
            (0..count).for_each(task);
        } else {
            pyrite_threads::each(count * parts, task);
        }
        let fault = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
        fault.map_or(Ok(()), |(link, fault)| Err(self.error(link, fault)))
    }

    /// What tasks need to know of a bmm.
    fn factors<'a, T: Element>(
        &self,
        bmm: &Bmm,
        operands: &BmmOperands,
        readings: &'a [Reading<'_, T>],
        extents: Extents,
    ) -> Option<Factors<'a, T>> {
        let address = |tensor: &Tensor| Address(tensor.storage().as_mut_ptr().cast::<T>());
        let lhs = match &operands.lhs {
            None => Left::Block(self.block_of(bmm.lhs.buffer)?),
            Some(lhs) if operands.fed => Left::Filled(address(lhs)),
            Some(lhs) => Left::Given(readings.first()?, Lies::of(lhs)),
        };
        let out = match &operands.out {
            None => Destination::Block(self.block_of(bmm.out.buffer)?),
            Some(out) => Destination::Given(address(out), Lies::of(out)),
        };
        Some(Factors { lhs, rhs: (readings.last()?, Lies::of(&operands.rhs)), out, extents })
    }

    /// Runs all links on some rows of a matrix, of which there are `rows`.
    fn run_rows<T: Element + Lane + Source<T>>(
        &self,
        steps: &[ReadyLink<'_, T>],
        entry: usize,
        rows: usize,
        own: Range<usize>,
    ) -> Result<(), (usize, Fault)> {
        let bytes: usize = self.blocks.iter().filter(|block| block.over.is_none()).map(|block| block.row).sum();
        let most = if self.links.len() == 1 { own.len() } else { (BLOCK_BYTES / bytes.max(1)).max(BLOCK_ROWS) };
        let height = own.len().div_ceil(own.len().div_ceil(most).max(1)).max(1);
        let mut memory = MEMORY.take();
        let blocks = self.lay_out(height, &mut memory);
        // Packing pays when a right operand is used again.
        let packs = height < own.len();
        let panels: Vec<Option<Packed<T>>> = steps
            .iter()
            .map(|step| match step {
                ReadyLink::Bmm(factors) if packs => Packed::for_now(factors.right(entry)),
                _ => None,
            })
            .collect();
        let mut done = Ok(());
        for begin in own.clone().step_by(height) {
            let part = begin..(begin + height).min(own.end);
            let all = (entry * rows + part.start) as i64..(entry * rows + part.end) as i64;
            for (at, (step, panels)) in steps.iter().zip(&panels).enumerate() {
                match (step, &self.links[at]) {
                    (ReadyLink::Bmm(factors), _) => {
                        factors.multiply(entry, part.clone(), &blocks, panels.as_ref(), Threads::One);
                    }
                    (ReadyLink::Kernel(ready), Link::Kernel(_, way)) => way.bounds(all.clone(), |bounds, row| {
                        let ahead = (row - all.start) as usize;
                        let here = |(block, at): (&Block, &*mut u8)| at.wrapping_add(ahead * block.row);
                        let blocks: Vec<*mut u8> = self.blocks.iter().zip(&blocks).map(here).collect();
                        if let Err(fault) = ready.run_within(bounds, &blocks) {
                            done = Err((at, fault));
                        }
                    }),
                    _ => {}
                }
            }
        }
        if memory.len() <= KEPT_LINES {
            MEMORY.set(memory);
        }
        done
    }

    /// The address of each block, of so many rows.
    fn lay_out(&self, height: usize, memory: &mut Vec<Line>) -> Vec<*mut u8> {
        let lines = |row: usize| (height * row).div_ceil(size_of::<Line>());
        let own = self.blocks.iter().filter(|block| block.over.is_none());
        let all: usize = own.map(|block| lines(block.row)).sum();
        if memory.len() < all {
            memory.resize(all, Line::default());
        }
        let (start, mut next) = (memory.as_mut_ptr(), 0);
        let mut found: Vec<*mut u8> = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            found.push(block.over.map_or_else(
                || {
                    next += lines(block.row);
                    start.wrapping_add(next - lines(block.row)).cast()
                },
                |over| found[over],
            ));
        }
        found
    }
}

impl<T: Element + Lane + Source<T>> Factors<'_, T> {
    /// The right operand of a matrix of the batch.
    fn right(&self, entry: usize) -> Matrix<'_, T> {
        let (data, lies) = &self.rhs;
        lies.rows(data, entry, 0..lies.shape.rows)
    }

    /// Multiplies some rows of a matrix of the batch.
    fn multiply(
        &self,
        entry: usize,
        part: Range<usize>,
        blocks: &[*mut u8],
        panels: Option<&Packed<T>>,
        threads: Threads,
    ) {
        let Extents { rows, depth, cols, .. } = self.extents;
        let filled = |start: *const T| {
            // SAFETY: these rows have been filled by an earlier link on this thread, and nobody writes them any more.
            #[expect(unsafe_code, reason = "rows are read while others are computed")]
            let data = unsafe { std::slice::from_raw_parts(start, part.len() * depth) };
            Matrix { data, shape: Shape::rows_first(part.len(), depth) }
        };
        let lhs = match &self.lhs {
            Left::Given(data, lies) => lies.rows(data, entry, part.clone()),
            Left::Filled(start) => filled(start.0.wrapping_add((entry * rows + part.start) * depth)),
            Left::Block(block) => filled(blocks[*block].cast()),
        };
        let (out, row_stride) = match &self.out {
            Destination::Given(first, lies) => {
                let at = lies.start(entry) + part.start * lies.shape.row_stride;
                (first.0.wrapping_add(at), lies.shape.row_stride)
            }
            Destination::Block(block) => (blocks[*block].cast(), cols),
        };
        let rhs = panels.map_or_else(|| Right::Plain(self.right(entry)), Right::Packed);
        let shape = Shape { rows: part.len(), cols, row_stride, col_stride: 1 };
        let onto = Base::Out(Onto::Nothing);
        let request = Request { lhs, rhs, scale: T::ONE, onto, threads, finish: None };
        // SAFETY: the result's memory, or the block, holds what the shape reaches, and these rows are this task's own.
        #[expect(unsafe_code, reason = "tasks write to rows of one result")]
        unsafe {
            multiply_into(out, shape, &request);
        }
    }
}
