//! An independent check of a finished memory plan.
//!
//! The planner reasons about kernels in general; this checker goes through the program once, for the sizes that are known
//! or hinted at, and keeps of every buffer which elements hold a value. It shares no rule with the planner:
//!
//! 1. An element is read only after it was written. Inputs and constants are there from the start; a gather may read any
//!    element, so it needs all of them.
//! 2. A lifetime ends once, behind the last use, and never that of the output. Every computed buffer that is not returned
//!    is freed.
//! 3. A result is written over a buffer only if that buffer holds a value, is freed by the same statement, has the same
//!    size, is given to one result, and is computed or an input.
//! 4. In the kernel that writes it, no element of the dead buffer is read at another row, at another position of the same
//!    phase, or later, than it is overwritten. Rows and the positions of a phase run in any order. Behind a matmul a row
//!    writes to the memory of the same row alone: other rows are not there yet, or are still wanted.
//! 5. A buffer of which each thread has a block of rows is used by no other statement, is not returned, and is written
//!    over a block only if that was filled before and no later link reads it.
//!
//! Kernels of more than [`MOST_POSITIONS`] positions, and those that see a buffer in elements of another size, are taken at
//! their word: they write and read whole buffers, and rule 4 is not looked at.

use pyrite_ir::Value;
use pyrite_ir::lower::Place;
use pyrite_loops::{AccessId, AxisId, BufferId, Inst, Kernel};
use rustc_hash::{FxHashMap, FxHashSet};

use super::verify::Problem;
use super::{Op, Origin, Reuse, Schedule, Statement, places};
use crate::bmm::{FusedBmm, Link};

/// Kernels with more positions are not enumerated.
pub const MOST_POSITIONS: i64 = 1 << 16;

/// All that is wrong with the memory plan of a finished schedule.
pub fn check(schedule: &Schedule) -> Vec<Problem> {
    let mut checker = Checker {
        schedule,
        contents: FxHashMap::default(),
        freed: FxHashSet::default(),
        returned: places(&schedule.output).into_iter().collect(),
        problems: Vec::new(),
        at: 0,
    };
    for (at, statement) in schedule.statements.iter().enumerate() {
        checker.at = at;
        checker.statement(statement);
    }
    checker.end();
    checker.problems
}

/// Which elements of a buffer hold a value.
#[derive(Clone)]
enum Contents {
    /// All of them.
    Whole,
    /// These.
    Elements(FxHashSet<i64>),
}

struct Checker<'a> {
    schedule: &'a Schedule,
    contents: FxHashMap<BufferId, Contents>,
    freed: FxHashSet<BufferId>,
    returned: FxHashSet<BufferId>,
    problems: Vec<Problem>,
    at: usize,
}

/// A read or a write of a kernel at one position.
struct Touch {
    access: AccessId,
    writes: bool,
    /// The element; none of a gather or a scatter, which may go anywhere.
    element: Option<i64>,
    row: i64,
    phase: usize,
    position: i64,
    inst: usize,
}

impl Checker<'_> {
    fn say(&mut self, message: String) {
        self.problems.push(Problem { statement: Some(self.at), message });
    }

    fn statement(&mut self, statement: &Statement) {
        self.reuses(statement);
        match &statement.op {
            Op::Loop(kernel) => self.kernel(kernel),
            Op::Gemm(gemm) => {
                self.call(&gemm.call.args, &gemm.call.results);
                if let Some(epilogue) = &gemm.epilogue {
                    self.kernel(&epilogue.kernel);
                }
            }
            Op::Bmm(fused) => {
                self.blocks(fused, statement);
                for link in &fused.links {
                    match link {
                        Link::Kernel(kernel, _) => self.kernel(kernel),
                        Link::Bmm(bmm) => {
                            self.read(&bmm.lhs);
                            self.read(&bmm.rhs);
                            self.write(&bmm.out);
                        }
                    }
                }
            }
            Op::Conv(conv) => self.call(&conv.call.args, &conv.call.results),
            Op::Call(call) => self.call(&call.args, &call.results),
        }
        for buffer in &statement.frees {
            if self.returned.contains(buffer) {
                self.say(format!("frees b{}, which is returned", buffer.0));
            }
            if !self.freed.insert(*buffer) {
                self.say(format!("frees b{} twice", buffer.0));
            }
            self.contents.remove(buffer);
        }
    }

    /// What is to hold when everything has run.
    fn end(&mut self) {
        self.at = self.schedule.statements.len();
        let mut all = Vec::new();
        self.schedule.output.each(&mut |place| all.push(place.clone()));
        all.iter().for_each(|place| self.read(place));
        let mut left: Vec<BufferId> = self.contents.keys().copied().collect();
        left.sort_unstable();
        for buffer in left {
            if self.schedule.buffer(buffer).origin == Origin::Computed && !self.returned.contains(&buffer) {
                self.say(format!("b{} is never freed", buffer.0));
            }
        }
    }

    fn call(&mut self, args: &[Value<Place>], results: &Value<Place>) {
        for arg in args {
            arg.each(&mut |place| self.read(place));
        }
        results.each(&mut |place| self.write(place));
    }

    /// The elements of a tensor; none where they are too many, not known, or not those of the buffer.
    fn elements(&self, place: &Place) -> Option<Vec<i64>> {
        let same = place.meta.dtype.size() == self.schedule.buffer(place.buffer).dtype.size();
        if same { elements(place) } else { None }
    }

    /// All reads and writes of a kernel; none where they are too many, not known, or not those of the buffers.
    fn touches(&self, kernel: &Kernel) -> Option<Vec<Touch>> {
        let size = |buffer: BufferId| self.schedule.buffer(buffer).dtype.size();
        let same = kernel.accesses.iter().all(|access| access.dtype.size() == size(access.buffer));
        if same { touches(kernel) } else { None }
    }

    fn is_given(&self, buffer: BufferId) -> bool {
        matches!(self.schedule.buffer(buffer).origin, Origin::Input(_) | Origin::Constant(_))
    }

    /// Whether a buffer may be used: not after the end of its lifetime.
    fn lives(&mut self, buffer: BufferId) -> bool {
        if self.freed.contains(&buffer) {
            self.say(format!("uses b{} after it was freed", buffer.0));
            return false;
        }
        true
    }

    fn read(&mut self, place: &Place) {
        if !self.lives(place.buffer) || self.is_given(place.buffer) {
            return;
        }
        let wanted = self.elements(place);
        self.wants(place.buffer, wanted);
    }

    /// Reads elements of a computed buffer; all of them where they are not known.
    fn wants(&mut self, buffer: BufferId, wanted: Option<Vec<i64>>) {
        let missing = match (self.contents.get(&buffer), wanted) {
            (None, Some(wanted)) => (!wanted.is_empty()).then_some("which nothing has written"),
            (None, None) => Some("which nothing has written"),
            (Some(Contents::Whole), _) => None,
            (Some(Contents::Elements(known)), Some(wanted)) => {
                wanted.iter().any(|element| !known.contains(element)).then_some("of which a part was never written")
            }
            (Some(Contents::Elements(known)), None) => {
                let all = self.schedule.buffer(buffer).elements.hint();
                all.is_some_and(|all| (known.len() as i64) < all).then_some("of which a part was never written")
            }
        };
        if let Some(what) = missing {
            self.say(format!("reads b{}, {what}", buffer.0));
        }
    }

    fn write(&mut self, place: &Place) {
        if self.lives(place.buffer) {
            let written = self.elements(place);
            self.fills(place.buffer, written);
        }
    }

    fn fills(&mut self, buffer: BufferId, written: Option<Vec<i64>>) {
        match (self.contents.entry(buffer).or_insert_with(|| Contents::Elements(FxHashSet::default())), written) {
            (Contents::Elements(known), Some(written)) => known.extend(written),
            (contents, None) => *contents = Contents::Whole,
            (Contents::Whole, _) => {}
        }
    }

    fn kernel(&mut self, kernel: &Kernel) {
        let used = [kernel.read(), kernel.written()].concat();
        if !used.iter().all(|buffer| self.lives(*buffer)) {
            return;
        }
        let Some(touches) = self.touches(kernel) else {
            for buffer in kernel.read() {
                let computed = self.schedule.buffer(buffer).origin == Origin::Computed;
                if computed && !kernel.written().contains(&buffer) {
                    self.wants(buffer, None);
                }
            }
            kernel.written().into_iter().for_each(|buffer| self.fills(buffer, None));
            return;
        };
        // What a kernel has written itself, it may read: phases of a row run in order.
        let mut written: FxHashMap<BufferId, FxHashSet<i64>> = FxHashMap::default();
        let mut anywhere: FxHashSet<BufferId> = FxHashSet::default();
        let mut wanted: FxHashMap<BufferId, Vec<i64>> = FxHashMap::default();
        let mut all_wanted: Vec<BufferId> = Vec::new();
        for touch in &touches {
            let buffer = kernel.access(touch.access).buffer;
            let computed = self.schedule.buffer(buffer).origin == Origin::Computed;
            match (touch.writes, touch.element) {
                (true, Some(element)) => {
                    written.entry(buffer).or_default().insert(element);
                }
                (true, None) => {
                    anywhere.insert(buffer);
                }
                (false, _) if !computed || anywhere.contains(&buffer) => {}
                (false, Some(element)) => {
                    if !written.get(&buffer).is_some_and(|own| own.contains(&element)) {
                        wanted.entry(buffer).or_default().push(element);
                    }
                }
                (false, None) if written.contains_key(&buffer) || all_wanted.contains(&buffer) => {}
                (false, None) => all_wanted.push(buffer),
            }
        }
        all_wanted.into_iter().for_each(|buffer| self.wants(buffer, None));
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_unstable();
        wanted.into_iter().for_each(|(buffer, elements)| self.wants(buffer, Some(elements)));
        // A kernel without positions fills its buffers with nothing.
        kernel.written().into_iter().for_each(|buffer| self.fills(buffer, Some(Vec::new())));
        written.into_iter().for_each(|(buffer, own)| self.fills(buffer, Some(own.into_iter().collect())));
        anywhere.into_iter().for_each(|buffer| self.fills(buffer, None));
    }

    /// Rules 3 and 4.
    fn reuses(&mut self, statement: &Statement) {
        let mut given: Vec<BufferId> = Vec::new();
        for Reuse { dead, result } in &statement.reuses {
            let (old, new) = (self.schedule.buffer(*dead), self.schedule.buffer(*result));
            let own = statement.op.writes().contains(dead);
            if !own && !self.is_given(*dead) && !self.contents.contains_key(dead) {
                self.say(format!("writes b{} over b{}, which holds nothing", result.0, dead.0));
            }
            if !statement.frees.contains(dead) {
                self.say(format!("writes b{} over b{}, which lives on", result.0, dead.0));
            }
            let bytes = |elements: Option<i64>, size: usize| elements.map(|count| count * size as i64);
            let (old_bytes, new_bytes) =
                (bytes(old.elements.hint(), old.dtype.size()), bytes(new.elements.hint(), new.dtype.size()));
            let sized = old.origin == Origin::Computed;
            if old.dtype.size() != new.dtype.size() || sized && old_bytes != new_bytes {
                self.say(format!("writes b{} over b{}, which has another size", result.0, dead.0));
            }
            if !matches!(old.origin, Origin::Computed | Origin::Input(_)) || new.origin != Origin::Computed {
                self.say(format!("writes b{} over b{}, whose memory is not its own", result.0, dead.0));
            }
            if given.contains(dead) {
                self.say(format!("gives the memory of b{} twice", dead.0));
            }
            given.push(*dead);
            let rows = match &statement.op {
                Op::Gemm(_) | Op::Bmm(_) => RowOrder::OfMatmul,
                _ => RowOrder::Any,
            };
            for kernel in statement.op.kernels() {
                if kernel.written().contains(result) {
                    self.overwrites(kernel, *dead, *result, rows);
                } else if !own && kernel.read().contains(dead) {
                    self.say(format!("writes b{} over b{}, which {} reads", result.0, dead.0, kernel.name));
                }
            }
        }
    }

    /// Rule 4 for one kernel.
    fn overwrites(&mut self, kernel: &Kernel, dead: BufferId, result: BufferId, rows: RowOrder) {
        let Some(touches) = self.touches(kernel) else { return };
        let of = |touch: &Touch| kernel.access(touch.access).buffer;
        if touches.iter().any(|touch| (of(touch) == dead || of(touch) == result) && touch.element.is_none()) {
            return self.say(format!("writes b{} over b{} by places that data decides", result.0, dead.0));
        }
        let mut stores: FxHashMap<i64, &Touch> = FxHashMap::default();
        for touch in touches.iter().filter(|touch| of(touch) == result && touch.writes) {
            if let Some(element) = touch.element
                && stores.insert(element, touch).is_some()
            {
                return self.say(format!("writes an element of b{} twice, over b{}", result.0, dead.0));
            }
        }
        let wrong = touches.iter().filter(|touch| of(touch) == dead).any(|read| {
            let Some(store) = read.element.and_then(|element| stores.get(&element)) else { return false };
            let before = match read.phase.cmp(&store.phase) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => read.position == store.position && read.inst < store.inst,
                std::cmp::Ordering::Greater => false,
            };
            read.writes || read.row != store.row || !before
        });
        let read: FxHashSet<(i64, i64)> = touches
            .iter()
            .filter(|touch| of(touch) == dead && !touch.writes)
            .filter_map(|touch| Some((touch.element?, touch.row)))
            .collect();
        let beyond = stores.iter().any(|(element, store)| !read.contains(&(*element, store.row)));
        if wrong || rows == RowOrder::OfMatmul && beyond {
            self.say(format!("overwrites an element of b{} with b{} before it was read", dead.0, result.0));
        }
    }

    /// Rule 5.
    fn blocks(&mut self, fused: &FusedBmm, statement: &Statement) {
        for (index, block) in fused.blocks.iter().enumerate() {
            let buffer = block.buffer;
            let elsewhere = self.schedule.statements.iter().enumerate().any(|(at, other)| {
                at != self.at && (other.op.reads().contains(&buffer) || other.op.writes().contains(&buffer))
            });
            if elsewhere || self.returned.contains(&buffer) || !statement.frees.contains(&buffer) {
                self.say(format!("keeps b{} in blocks, which is used elsewhere", buffer.0));
            }
            let Some(over) = block.over else { continue };
            let writer = |wanted: BufferId| fused.links.iter().position(|link| link_writes(link).contains(&wanted));
            let Some(old) = fused.blocks.get(over).filter(|_| over < index).map(|block| block.buffer) else {
                self.say(format!("writes the block of b{} over one that comes later", buffer.0));
                continue;
            };
            let Some(at) = writer(buffer) else { continue };
            let filled = writer(old).is_some_and(|filled| filled < at);
            let read_later = fused.links[at + 1..].iter().any(|link| link_reads(link).contains(&old));
            if !filled || read_later {
                self.say(format!("writes the block of b{} over that of b{}, which is still wanted", buffer.0, old.0));
            } else if let Link::Kernel(kernel, _) = &fused.links[at] {
                self.overwrites(kernel, old, buffer, RowOrder::OfMatmul);
            } else {
                self.say(format!("a bmm writes the block of b{} over that of b{}", buffer.0, old.0));
            }
        }
    }
}

/// Whether the rows of a kernel run behind those of a matmul.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowOrder {
    Any,
    OfMatmul,
}

fn link_writes(link: &Link) -> Vec<BufferId> {
    match link {
        Link::Bmm(bmm) => vec![bmm.out.buffer],
        Link::Kernel(kernel, _) => kernel.written(),
    }
}

fn link_reads(link: &Link) -> Vec<BufferId> {
    match link {
        Link::Bmm(bmm) => vec![bmm.lhs.buffer, bmm.rhs.buffer],
        Link::Kernel(kernel, _) => kernel.read(),
    }
}

/// The elements of a tensor; none where they are too many, or not known.
fn elements(place: &Place) -> Option<Vec<i64>> {
    let mut found = vec![place.meta.offset.hint()?];
    for (size, stride) in place.meta.shape.iter().zip(&place.meta.stride) {
        let (size, stride) = (size.hint()?, stride.hint()?);
        if size.checked_mul(found.len() as i64)? > MOST_POSITIONS {
            return None;
        }
        found = found.iter().flat_map(|first| (0..size).map(move |index| first + index * stride)).collect();
    }
    Some(found)
}

/// All reads and writes of a kernel, in the order of rows, phases, positions and instructions; none where they are too
/// many, or sizes are not known.
fn touches(kernel: &Kernel) -> Option<Vec<Touch>> {
    let extents: Vec<i64> = kernel.axes.iter().map(|axis| axis.extent.hint()).collect::<Option<_>>()?;
    let mut steps: Vec<(i64, Vec<i64>)> = Vec::with_capacity(kernel.accesses.len());
    for access in &kernel.accesses {
        let along: Option<Vec<i64>> = access.steps.iter().map(pyrite_sym::SymInt::hint).collect();
        steps.push((access.offset.hint()?, along?));
    }
    let count = |axes: &[AxisId]| -> Option<i64> {
        axes.iter().try_fold(1i64, |all, axis| all.checked_mul(extents[axis.0 as usize]))
    };
    let rows = count(&kernel.rows)?;
    let work = kernel.phases.iter().try_fold(0i64, |all, phase| {
        let code = phase.code.insts().iter().filter(|inst| inst.access().is_some()).count() as i64;
        all.checked_add(rows.checked_mul(count(&phase.axes)?)?.checked_mul(code)?)
    })?;
    if work > MOST_POSITIONS {
        return None;
    }
    let mut found = Vec::with_capacity(work as usize);
    let mut index = vec![0i64; extents.len()];
    let set = |index: &mut Vec<i64>, axes: &[AxisId], mut number: i64| {
        for axis in axes.iter().rev() {
            let extent = extents[axis.0 as usize].max(1);
            index[axis.0 as usize] = number % extent;
            number /= extent;
        }
    };
    for row in 0..rows {
        set(&mut index, &kernel.rows, row);
        for (number, phase) in kernel.phases.iter().enumerate() {
            for position in 0..count(&phase.axes)? {
                set(&mut index, &phase.axes, position);
                for (at, inst) in phase.code.insts().iter().enumerate() {
                    let Some(access) = inst.access().filter(|_| !matches!(inst, Inst::Offset(_))) else { continue };
                    let (offset, along) = &steps[access.0 as usize];
                    let moves = matches!(inst, Inst::Gather { .. } | Inst::Scatter { .. });
                    let element = offset + index.iter().zip(along).map(|(i, step)| i * step).sum::<i64>();
                    found.push(Touch {
                        access,
                        writes: inst.writes(),
                        element: (!moves).then_some(element),
                        row,
                        phase: number,
                        position,
                        inst: at,
                    });
                }
            }
        }
    }
    Some(found)
}
