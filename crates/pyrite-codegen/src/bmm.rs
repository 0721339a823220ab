//! Fused bmm: batched matmuls and the kernels around them, block of rows by block of rows.
//!
//! A fused bmm is a sequence of links, batched matmuls and kernels, that go through the same rows: those of all matrices
//! of a batch, one matrix after the other. Each link takes rows as the link before completes them, while they are in the
//! cache, on the thread that has them. A kernel that reads the rows of a bmm is its *epilogue*, one that fills the left
//! operand of a bmm is its *prologue*; so the scores of attention, their softmax and its bmm with the values are one
//! statement. A bmm alone is a fused bmm of one link.
//!
//! - What a link fills and only later links read has no memory but a block of rows for each thread.
//! - Whatever one link writes, others read row by row ([`Rows`]), or not at all.
//! - Matrices begin wherever strides say: several dimensions may number them. The right operands of a task are packed
//!   once.
//!
//! A fused bmm of more than one link has known sizes.

use pyrite_ir::lower::Place;
use pyrite_ir::{ExternKind, Lower, Node, OpError, OpRef, Value};
use pyrite_loops::{BufferId, Kernel};
use pyrite_matmul::Lane;
use pyrite_tensor::DType;

use crate::gemm::EPILOGUE_ROWS;
use crate::loops::{LoopShape, Loops};
use crate::rows::Rows;
use crate::schedule::{AsKernel, Buffer, ExternCall, Reuse};

/// A fused bmm; see the module's text.
pub struct FusedBmm<K = Kernel> {
    /// What it does, for every block of rows in this order.
    pub links: Vec<Link<K>>,
    /// Buffers that links fill, with the elements of a row where they are filled row by row.
    filled: Vec<(BufferId, Option<i64>)>,
    /// Those that have a block for each thread.
    pub blocks: Vec<Block>,
}

/// A link of a fused bmm.
#[derive(Clone)]
pub enum Link<K = Kernel> {
    /// A batched matmul.
    Bmm(Box<Bmm>),
    /// A kernel, and how it goes through the rows.
    Kernel(K, Rows),
}

/// A batched matmul: leading dimensions number the matrices.
#[derive(Clone)]
pub struct Bmm {
    /// The operator, for matrices that are too small to be packed.
    pub op: OpRef,
    /// The node it comes from.
    pub node: Node,
    /// The left operand.
    pub lhs: Place,
    /// The right operand.
    pub rhs: Place,
    /// The result.
    pub out: Place,
}

/// A buffer of which each thread has a block of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes of a row.
    pub row: usize,
    /// The block that it is written over, by its index.
    pub over: Option<usize>,
}

/// The sizes of a batched matmul.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BmmSizes {
    count: i64,
    rows: i64,
    depth: i64,
    cols: i64,
}

impl Bmm {
    /// A call as a batched matmul, if it is one that we compute.
    pub fn of(call: ExternCall) -> Result<Self, Box<ExternCall>> {
        let place = |value: Option<&Value<Place>>| value.and_then(Value::as_tensor).cloned();
        let places = (place(call.args.first()), place(call.args.get(1)), place(Some(&call.results)));
        match places {
            (Some(lhs), Some(rhs), Some(out)) if takes(&call) => {
                Ok(Self { op: call.op, node: call.node, lhs, rhs, out })
            }
            _ => Err(Box::new(call)),
        }
    }

    /// Whether the result lies otherwise than the call would leave it.
    pub fn is_redirected(&self) -> bool {
        self.out.meta.rank() != 3 || !self.out.meta.is_contiguous()
    }

    /// The sizes, where all are known.
    fn sizes(&self) -> Option<BmmSizes> {
        let all = |place: &Place| place.meta.shape.iter().map(pyrite_sym::SymInt::as_int).collect::<Option<Vec<_>>>();
        let (lhs, out) = (all(&self.lhs)?, all(&self.out)?);
        let [counts @ .., rows, cols] = &out[..] else { return None };
        Some(BmmSizes { count: counts.iter().product(), rows: *rows, depth: *lhs.last()?, cols: *cols })
    }
}

/// Whether a call is a batched matmul that we compute.
fn takes(call: &ExternCall) -> bool {
    let Some(out) = call.results.as_tensor() else { return false };
    let known = match out.meta.dtype {
        DType::F32 => !f32::isas().is_empty(),
        DType::F64 => !f64::isas().is_empty(),
        _ => false,
    };
    let same = |arg: &Value<Place>| arg.as_tensor().is_some_and(|place| place.meta.dtype == out.meta.dtype);
    known && matches!(call.op.def.lower, Lower::Extern(ExternKind::Bmm)) && call.args.iter().all(same)
}

/// The elements of a row of a tensor whose rows lie one after the other from the start of its buffer.
fn dense_row(place: &Place) -> Option<i64> {
    let first = place.meta.offset.as_int() == Some(0);
    if first && place.meta.is_contiguous() { place.meta.shape.last()?.as_int() } else { None }
}

impl From<Bmm> for FusedBmm {
    /// A bmm alone.
    fn from(bmm: Bmm) -> Self {
        let filled = vec![(bmm.out.buffer, dense_row(&bmm.out))];
        Self { links: vec![Link::Bmm(Box::new(bmm))], filled, blocks: Vec::new() }
    }
}

impl<K> FusedBmm<K> {
    /// The kernels, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &K> {
        self.links.iter().filter_map(|link| match link {
            Link::Kernel(kernel, _) => Some(kernel),
            Link::Bmm(_) => None,
        })
    }

    /// The batched matmuls, in order.
    pub fn bmms(&self) -> impl Iterator<Item = &Bmm> {
        self.links.iter().filter_map(|link| match link {
            Link::Bmm(bmm) => Some(&**bmm),
            Link::Kernel(..) => None,
        })
    }

    /// The bmm, if it is alone.
    pub fn single(&self) -> Option<&Bmm> {
        match &self.links[..] {
            [Link::Bmm(bmm)] => Some(bmm),
            _ => None,
        }
    }

    /// Whether a link fills a buffer.
    pub fn fills(&self, buffer: BufferId) -> bool {
        self.filled.iter().any(|(known, _)| *known == buffer)
    }

    /// What the links fill.
    pub fn filled(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.filled.iter().map(|(buffer, _)| *buffer)
    }

    /// The index of a buffer's block.
    pub fn block_of(&self, buffer: BufferId) -> Option<usize> {
        self.blocks.iter().position(|block| block.buffer == buffer)
    }

    /// The same with something else in the place of each kernel.
    pub fn try_map<L, E>(self, f: &mut dyn FnMut(K) -> Result<L, E>) -> Result<FusedBmm<L>, E> {
        let Self { links, filled, blocks } = self;
        let mut mapped = Vec::with_capacity(links.len());
        for link in links {
            mapped.push(match link {
                Link::Bmm(bmm) => Link::Bmm(bmm),
                Link::Kernel(kernel, rows) => Link::Kernel(f(kernel)?, rows),
            });
        }
        Ok(FusedBmm { links: mapped, filled, blocks })
    }

    /// How many matrices and how many rows each of them has, if there are enough to work on them block by block.
    fn rows(&self) -> Option<(i64, i64)> {
        let sizes = self.bmms().next()?.sizes()?;
        let enough = sizes.rows > 1 && sizes.count.checked_mul(sizes.rows)? >= EPILOGUE_ROWS;
        enough.then_some((sizes.count, sizes.rows))
    }
}

impl<K: AsKernel> FusedBmm<K> {
    /// The buffers that links read.
    pub fn reads(&self) -> Vec<BufferId> {
        self.links
            .iter()
            .flat_map(|link| match link {
                Link::Bmm(bmm) => vec![bmm.lhs.buffer, bmm.rhs.buffer],
                Link::Kernel(kernel, _) => kernel.kernel().read(),
            })
            .collect()
    }

    /// The kernel or bmm of the last link.
    pub fn last_name(&self) -> &str {
        match self.links.last() {
            Some(Link::Kernel(kernel, _)) => &kernel.kernel().name,
            Some(Link::Bmm(bmm)) => &bmm.node.name,
            None => "",
        }
    }
}

impl FusedBmm {
    /// How a kernel that comes next goes through the rows, if it can be an epilogue.
    pub fn rows_of_epilogue(&self, kernel: &Kernel) -> Option<Rows> {
        let (count, rows) = self.rows()?;
        if kernel.written().iter().any(|buffer| self.fills(*buffer)) {
            return None;
        }
        let shape = LoopShape::of(kernel);
        let mut found: Option<Rows> = None;
        for (buffer, row) in &self.filled {
            if kernel.accesses.iter().all(|access| access.buffer != *buffer) {
                continue;
            }
            let way = Rows::of(kernel, &shape, *buffer, count * rows, (*row)?)?;
            if found.get_or_insert_with(|| way.clone()) != &way {
                return None;
            }
        }
        found
    }

    /// Makes a kernel an epilogue.
    pub fn push_epilogue(&mut self, kernel: Kernel, rows: Rows, buffers: &[Buffer]) {
        self.note_filled(&kernel, &rows, buffers);
        self.links.push(Link::Kernel(kernel, rows));
    }

    fn note_filled(&mut self, kernel: &Kernel, way: &Rows, buffers: &[Buffer]) {
        let Some((count, rows)) = self.rows() else { return };
        let (all, shape) = (count * rows, LoopShape::of(kernel));
        for buffer in kernel.written() {
            let elements = buffers[buffer.0 as usize].elements.as_int().filter(|elements| elements % all == 0);
            let row = elements.map(|elements| elements / all);
            let row = row.filter(|row| Rows::of(kernel, &shape, buffer, all, *row).as_ref() == Some(way));
            self.filled.push((buffer, row));
        }
    }

    /// Whether a bmm takes its left operand row by row from the links so far, and nothing else from them.
    pub fn feeds(&self, bmm: &Bmm) -> bool {
        let (Some((count, rows)), Some(sizes)) = (self.rows(), bmm.sizes()) else { return false };
        let of_rows = |(buffer, row): &(BufferId, Option<i64>)| {
            *buffer == bmm.lhs.buffer && row.is_some() && dense_row(&bmm.lhs) == *row
        };
        let same_type = self.bmms().all(|known| known.out.meta.dtype == bmm.out.meta.dtype);
        let same_rows = (sizes.count, sizes.rows) == (count, rows);
        same_type && same_rows && self.filled.iter().any(of_rows) && !self.fills(bmm.rhs.buffer)
    }

    /// Lets a bmm take what the links so far fill.
    pub fn push_bmm(&mut self, bmm: Box<Bmm>) {
        self.filled.push((bmm.out.buffer, dense_row(&bmm.out)));
        self.links.push(Link::Bmm(bmm));
    }

    /// How a kernel fills the left operand of the only bmm row by row, if it does.
    pub fn rows_of_prologue(&self, kernel: &Kernel) -> Option<Rows> {
        let (bmm, (count, rows)) = (self.single()?, self.rows()?);
        let written = kernel.written();
        let apart = !written.contains(&bmm.rhs.buffer) && !written.contains(&bmm.out.buffer);
        let fills = apart && written.contains(&bmm.lhs.buffer);
        let row = if fills { dense_row(&bmm.lhs)? } else { return None };
        Rows::of(kernel, &LoopShape::of(kernel), bmm.lhs.buffer, count * rows, row)
    }

    /// Makes a kernel the prologue of the only bmm.
    pub fn insert_prologue(&mut self, kernel: Kernel, rows: Rows, buffers: &[Buffer]) {
        self.note_filled(&kernel, &rows, buffers);
        self.links.insert(0, Link::Kernel(kernel, rows));
    }

    /// Links the same once more, by what links are said to do; says what does not hold.
    pub fn relinked(&self, buffers: &[Buffer]) -> Result<Self, String> {
        let fused = Self::of_links(self.links.clone(), buffers)?;
        Ok(Self { blocks: self.blocks.clone(), ..fused })
    }

    /// A fused bmm of these links, if each of them does what it has to.
    pub fn of_links(links: Vec<Link>, buffers: &[Buffer]) -> Result<Self, String> {
        let mut links = links.into_iter();
        let (prologue, first) = match links.next() {
            Some(Link::Kernel(kernel, rows)) => (Some((kernel, rows)), links.next()),
            first => (None, first),
        };
        let Some(Link::Bmm(first)) = first else { return Err("a fused bmm that does not begin with a bmm".to_owned()) };
        let mut fused = Self::from(*first);
        if let Some((kernel, rows)) = prologue {
            if fused.rows_of_prologue(&kernel).as_ref() != Some(&rows) {
                return Err(format!("{} does not fill the left operand row by row", kernel.name));
            }
            fused.insert_prologue(kernel, rows, buffers);
        }
        for link in links {
            match link {
                Link::Kernel(kernel, rows) if fused.rows_of_epilogue(&kernel).as_ref() == Some(&rows) => {
                    fused.push_epilogue(kernel, rows, buffers);
                }
                Link::Kernel(kernel, _) => return Err(format!("{} does not go through the rows", kernel.name)),
                Link::Bmm(bmm) if fused.feeds(&bmm) => fused.push_bmm(bmm),
                Link::Bmm(bmm) => return Err(format!("nothing before {} fills its left operand", bmm.node.name)),
            }
        }
        Ok(fused)
    }

    /// Gives a block of rows to what is filled row by row and has no other use. `dies` says of a buffer whether only
    /// this statement uses it.
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

    /// For each kernel the buffers it may be the last to read: those that links before fill and no link after reads,
    /// and, of the first link, those that no other link touches. What a bmm reads is read until the last row is done.
    pub fn last_reads(&self, dying: &[BufferId]) -> Vec<(&Kernel, Vec<BufferId>)> {
        let reads = |link: &Link, buffer: BufferId| match link {
            Link::Kernel(kernel, _) => kernel.accesses.iter().any(|access| access.buffer == buffer),
            Link::Bmm(bmm) => bmm.lhs.buffer == buffer || bmm.rhs.buffer == buffer,
        };
        let mut found = Vec::new();
        for (at, link) in self.links.iter().enumerate() {
            let Link::Kernel(kernel, _) = link else { continue };
            let read_later = |buffer: BufferId| self.links[at + 1..].iter().any(|later| reads(later, buffer));
            let read = kernel.read();
            let free = |id: &BufferId| read.contains(id) && (at == 0 || self.fills(*id)) && !read_later(*id);
            let here = dying.iter().copied().filter(free);
            found.push((kernel, here.collect()));
        }
        found
    }

    /// Lets blocks be written over others as the reuses say, and gives back those of buffers that are no blocks.
    pub fn reuse_blocks(&mut self, reuses: Vec<Reuse>) -> Vec<Reuse> {
        let mut rest = Vec::new();
        for Reuse { dead, result } in reuses {
            match (self.block_of(dead), self.block_of(result)) {
                (Some(dead), Some(result)) if dead < result => self.blocks[result].over = Some(dead),
                (None, None) => rest.push(Reuse { dead, result }),
                _ => {}
            }
        }
        rest
    }
}

impl FusedBmm<Loops> {
    /// A fault of a link as an error.
    pub fn error(&self, link: usize, fault: crate::code::Fault) -> OpError {
        match &self.links[link] {
            Link::Kernel(loops, _) => loops.error(fault),
            Link::Bmm(bmm) => OpError::fault(format!("{fault} in {}", bmm.node.name)),
        }
    }
}
