//! Products of batches of matrices, and the kernels around them, block of rows by block of rows.
//!
//! A chain is products and kernels that go through the same rows: those of all matrices of a batch, one matrix after the
//! other. Each link takes rows as the link before completes them, while they are in the cache, on the thread that has
//! them. A kernel *follows* a product whose rows it reads, and *leads* one whose left operand it fills; so the scores of
//! attention, their softmax and its product with the values are one chain. A product alone is a chain, too.
//!
//! - What a link fills and only later links read has no memory but a block of rows for each thread.
//! - Whatever one link writes, others read row by row ([`Rows`]), or not at all.
//! - Matrices begin wherever strides say: several dimensions may number them. The right operands of a task are packed
//!   once.
//!
//! Chains of more than one link have known sizes.

use pyrite_ir::lower::Place;
use pyrite_ir::{OpError, Value};
use pyrite_loops::BufferId;
use pyrite_matmul::Lane;
use pyrite_tensor::DType;

use crate::heirs::Heir;
use crate::loops::Loops;
use crate::pieces::{Buffer, Outside};
use crate::products::FOLLOWED_ROWS;
use crate::rows::Rows;

/// A chain; see the module's text.
pub struct Chain {
    /// What it does, for every block of rows in this order.
    pub links: Vec<Link>,
    /// Buffers that links fill, with the elements of a row where they are filled row by row.
    filled: Vec<(BufferId, Option<i64>)>,
    /// Those that have a block for each thread.
    pub blocks: Vec<Block>,
}

/// A link of a chain.
pub enum Link {
    /// A product.
    Product(Box<Batch>),
    /// A kernel, and how it goes through the rows.
    Kernel(Box<Loops>, Rows),
}

/// A product of batches of matrices: leading dimensions number them.
pub struct Batch {
    /// The call that it stands for.
    pub outside: Box<Outside>,
    /// The left operand.
    pub lhs: Place,
    /// The right operand.
    pub rhs: Place,
    /// The result.
    pub out: Place,
}

/// A buffer of which each thread has a block of rows.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes of a row.
    pub row: usize,
    /// The block that it is written over, by its index.
    pub over: Option<usize>,
}

/// The sizes of a product of batches.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sizes {
    count: i64,
    rows: i64,
    depth: i64,
    cols: i64,
}

impl Batch {
    /// A call as a product of batches, if it is one.
    pub fn of(outside: Box<Outside>) -> Result<Self, Box<Outside>> {
        let place = |value: Option<&Value<Place>>| value.and_then(Value::as_tensor).cloned();
        let places = (place(outside.args.first()), place(outside.args.get(1)), place(Some(&outside.results)));
        match places {
            (Some(lhs), Some(rhs), Some(out)) if Self::takes(&outside) => Ok(Self { outside, lhs, rhs, out }),
            _ => Err(outside),
        }
    }

    /// Whether a call is a product of batches that we compute.
    pub fn takes(call: &Outside) -> bool {
        let Some(out) = call.results.as_tensor() else { return false };
        let known = match out.meta.dtype {
            DType::F32 => !f32::isas().is_empty(),
            DType::F64 => !f64::isas().is_empty(),
            _ => false,
        };
        let same = |arg: &Value<Place>| arg.as_tensor().is_some_and(|place| place.meta.dtype == out.meta.dtype);
        known && call.op.name() == "aten.bmm.default" && call.args.iter().all(same)
    }

    /// Whether the result lies otherwise than the call would leave it.
    pub fn is_redirected(&self) -> bool {
        self.out.meta.rank() != 3 || !self.out.meta.is_contiguous()
    }

    /// The sizes, where all are known.
    fn sizes(&self) -> Option<Sizes> {
        let all = |place: &Place| place.meta.shape.iter().map(pyrite_sym::SymInt::as_int).collect::<Option<Vec<_>>>();
        let (lhs, out) = (all(&self.lhs)?, all(&self.out)?);
        let [counts @ .., rows, cols] = &out[..] else { return None };
        Some(Sizes { count: counts.iter().product(), rows: *rows, depth: *lhs.last()?, cols: *cols })
    }
}

/// The elements of a row of a tensor whose rows lie one after the other from the start of its buffer.
fn dense_row(place: &Place) -> Option<i64> {
    let first = place.meta.offset.as_int() == Some(0);
    if first && place.meta.is_contiguous() { place.meta.shape.last()?.as_int() } else { None }
}

impl Chain {
    /// A product alone.
    pub fn new(batch: Batch) -> Self {
        let filled = vec![(batch.out.buffer, dense_row(&batch.out))];
        Self { links: vec![Link::Product(Box::new(batch))], filled, blocks: Vec::new() }
    }

    /// How many matrices and how many rows each of them has, if there are enough to work on them block by block.
    fn rows(&self) -> Option<(i64, i64)> {
        let product = self.links.iter().find_map(|link| match link {
            Link::Product(batch) => Some(&**batch),
            Link::Kernel(..) => None,
        });
        let sizes = product?.sizes()?;
        let enough = sizes.rows > 1 && sizes.count.checked_mul(sizes.rows)? >= FOLLOWED_ROWS;
        enough.then_some((sizes.count, sizes.rows))
    }

    /// The kernels, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &Loops> {
        self.links.iter().filter_map(|link| match link {
            Link::Kernel(loops, _) => Some(&**loops),
            Link::Product(_) => None,
        })
    }

    /// The products, in order.
    pub fn products(&self) -> impl Iterator<Item = &Batch> {
        self.links.iter().filter_map(|link| match link {
            Link::Product(batch) => Some(&**batch),
            Link::Kernel(..) => None,
        })
    }

    /// The kernel or product that would come before a new link.
    pub fn last_name(&self) -> &str {
        match self.links.last() {
            Some(Link::Kernel(loops, _)) => &loops.kernel.name,
            Some(Link::Product(batch)) => &batch.outside.node.name,
            None => "",
        }
    }

    /// Whether a link fills a buffer.
    pub fn fills(&self, buffer: BufferId) -> bool {
        self.filled.iter().any(|(known, _)| *known == buffer)
    }

    /// How a kernel that comes next goes through the rows, if it can follow.
    pub fn followed_by(&self, loops: &Loops) -> Option<Rows> {
        let (count, rows) = self.rows()?;
        let kernel = &loops.kernel;
        if kernel.written().iter().any(|buffer| self.fills(*buffer)) {
            return None;
        }
        let mut found: Option<Rows> = None;
        for (buffer, row) in &self.filled {
            if kernel.accesses.iter().all(|access| access.buffer != *buffer) {
                continue;
            }
            let way = Rows::of(loops, *buffer, count * rows, (*row)?)?;
            if found.get_or_insert_with(|| way.clone()) != &way {
                return None;
            }
        }
        found
    }

    /// Lets a kernel follow.
    pub fn follow(&mut self, loops: Box<Loops>, rows: Rows, buffers: &[Buffer]) {
        self.note_filled(&loops, &rows, buffers);
        self.links.push(Link::Kernel(loops, rows));
    }

    fn note_filled(&mut self, loops: &Loops, way: &Rows, buffers: &[Buffer]) {
        let Some((count, rows)) = self.rows() else { return };
        let all = count * rows;
        for buffer in loops.kernel.written() {
            let elements = buffers[buffer.0 as usize].elements.as_int().filter(|elements| elements % all == 0);
            let row = elements.map(|elements| elements / all);
            let row = row.filter(|row| Rows::of(loops, buffer, all, *row).as_ref() == Some(way));
            self.filled.push((buffer, row));
        }
    }

    /// Whether a product takes its left operand row by row from the last link, and nothing else from the chain.
    pub fn leads(&self, batch: &Batch) -> bool {
        let (Some((count, rows)), Some(sizes)) = (self.rows(), batch.sizes()) else { return false };
        let of_rows = |(buffer, row): &(BufferId, Option<i64>)| {
            *buffer == batch.lhs.buffer && row.is_some() && dense_row(&batch.lhs) == *row
        };
        let same_type = self.products().all(|known| known.out.meta.dtype == batch.out.meta.dtype);
        let same_rows = (sizes.count, sizes.rows) == (count, rows);
        same_type && same_rows && self.filled.iter().any(of_rows) && !self.fills(batch.rhs.buffer)
    }

    /// Lets a product take what the last link fills.
    pub fn lead(&mut self, batch: Batch) {
        self.filled.push((batch.out.buffer, dense_row(&batch.out)));
        self.links.push(Link::Product(Box::new(batch)));
    }

    /// How a kernel fills the left operand of a product row by row, if it does.
    pub fn led_by(&self, loops: &Loops) -> Option<Rows> {
        let ([Link::Product(batch)], Some((count, rows))) = (&self.links[..], self.rows()) else { return None };
        let written = loops.kernel.written();
        let apart = !written.contains(&batch.rhs.buffer) && !written.contains(&batch.out.buffer);
        let fills = apart && written.contains(&batch.lhs.buffer);
        if fills { Rows::of(loops, batch.lhs.buffer, count * rows, dense_row(&batch.lhs)?) } else { None }
    }

    /// Puts a kernel before the only product.
    pub fn put_before(&mut self, loops: Box<Loops>, rows: Rows, buffers: &[Buffer]) {
        self.note_filled(&loops, &rows, buffers);
        self.links.insert(0, Link::Kernel(loops, rows));
    }

    /// Gives a block of rows to what is filled row by row and has no other use. `dies` says of a buffer whether only
    /// this chain uses it.
    pub fn find_blocks(&mut self, dies: impl Fn(BufferId) -> bool, buffers: &[Buffer]) {
        if self.links.len() < 2 {
            return;
        }
        for (buffer, row) in &self.filled {
            if let (Some(row), true) = (row, dies(*buffer)) {
                let row = *row as usize * buffers[buffer.0 as usize].dtype.size();
                self.blocks.push(Block { buffer: *buffer, row, over: None });
            }
        }
    }

    /// For each kernel those of the buffers that links before fill and no link after reads.
    pub fn last_reads(&self, dying: &[BufferId]) -> Vec<(&Loops, Vec<BufferId>)> {
        let reads = |link: &Link, buffer: BufferId| match link {
            Link::Kernel(loops, _) => loops.kernel.accesses.iter().any(|access| access.buffer == buffer),
            Link::Product(batch) => batch.lhs.buffer == buffer,
        };
        let mut found = Vec::new();
        for (at, link) in self.links.iter().enumerate() {
            let Link::Kernel(loops, _) = link else { continue };
            let read_later = |buffer: BufferId| self.links[at + 1..].iter().any(|later| reads(later, buffer));
            let here = dying.iter().copied().filter(|id| self.fills(*id) && !read_later(*id));
            found.push((&**loops, here.collect()));
        }
        found
    }

    /// Lets blocks be written over others as heirs say, and gives back the heirs of buffers that are none.
    pub fn settle_heirs(&mut self, heirs: Vec<Heir>) -> Vec<Heir> {
        let mut rest = Vec::new();
        for Heir { of, heir } in heirs {
            match (self.block_of(of), self.block_of(heir)) {
                (Some(of), Some(heir)) if of < heir => self.blocks[heir].over = Some(of),
                (None, None) => rest.push(Heir { of, heir }),
                _ => {}
            }
        }
        rest
    }

    /// What the links fill.
    pub fn filled(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.filled.iter().map(|(buffer, _)| *buffer)
    }

    /// The index of a buffer's block.
    pub fn block_of(&self, buffer: BufferId) -> Option<usize> {
        self.blocks.iter().position(|block| block.buffer == buffer)
    }

    /// A fault of a link as an error.
    pub fn error(&self, link: usize, fault: crate::code::Fault) -> OpError {
        match &self.links[link] {
            Link::Kernel(loops, _) => loops.error(fault),
            Link::Product(batch) => OpError::fault(format!("{fault} in {}", batch.outside.node.name)),
        }
    }
}
