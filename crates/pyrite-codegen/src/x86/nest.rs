//! The loops of a kernel: rows, phases, the axes of phases.
//!
//! Loops outside of regions keep their counters and the positions of accesses in the frame. A loop leaves every access
//! where it found it.

use iced_x86::code_asm::{
    ptr, qword_ptr,
    registers::{
        gpr32::{eax, r10d, r11d},
        gpr64::{r8, r9, r10, r11, r12, r13, r14, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp},
    },
};
use pyrite_loops::{AccessId, AxisId, Inst, Kernel, Reduction};

use super::EmitError;
use super::emitter::{Done, Emitter, frame};
use super::layout::{BASES, BEGINS, CALLER, EXTENTS, NUMBERS, STEPS, STREAM};
use super::lower::{self, Count, RowGrouping, takes_blocks};
use super::region::{LoopForm, Rounds, Start, Stores, Traversal, weight};
use super::tile::Tiling;
use super::vector::{Kind, Region, VectorOp};

/// After how many positions along the lanes a sum is put aside, so that no chain of additions gets long.
const CHUNK: i32 = 1 << 12;
/// The same, for positions that are taken one at a time.
const STEP_CHUNK: i32 = 1 << 6;

/// The distance of a stack's guard at least.
const PAGE: u32 = 4096;

/// A body with more operations than this is not tiled: squares have a copy of it for each lane.
const HEAVIEST: usize = 40;

impl Emitter<'_> {
    /// Emits the whole function.
    pub(super) fn kernel(&mut self) -> Done {
        let (mut enter, mut body) = (self.asm.create_label(), self.asm.create_label());
        self.asm.jmp(enter)?;
        self.asm.set_label(&mut body)?;
        let rows = self.kernel.rows.clone();
        if let Some(lane) = self.shape.rows {
            self.blocks = self.choose_blocks(lane);
            self.layout.add_blocks(self.kernel, self.blocks);
        }
        match self.shape.rows {
            None => self.loops(&rows, &mut |e| e.phases(Count::Full))?,
            Some(lane) => self.loops(&rows[..rows.len() - 1], &mut |e| e.tiles(lane))?,
        }
        let (mut leave, mut fault) = (self.asm.create_label(), self.fault);
        self.asm.xor(eax, eax)?;
        self.asm.set_label(&mut leave)?;
        if (0..self.kernel.phases.len()).any(|number| !streams(self.kernel, number).is_empty()) {
            self.asm.sfence()?;
        }
        self.asm.vzeroupper()?;
        let caller = frame(CALLER);
        self.asm.mov(rsp, caller)?;
        for register in [r15, r14, r13, r12, rbp, rbx] {
            self.asm.pop(register)?;
        }
        self.asm.ret()?;
        self.asm.set_label(&mut fault)?;
        self.asm.mov(rax, 1i64)?;
        self.asm.jmp(leave)?;
        self.asm.set_label(&mut enter)?;
        self.enter()?;
        self.asm.jmp(body)?;
        self.place_data()
    }

    /// Builds the frame: the arguments, where accesses begin, steps in bytes.
    fn enter(&mut self) -> Done {
        for register in [rbx, rbp, r12, r13, r14, r15] {
            self.asm.push(register)?;
        }
        self.asm.mov(rax, rsp)?;
        // Each page of the frame is touched in order: a stack that ends is met at its guard, never jumped over.
        for below in (PAGE..=self.deepest + 64).step_by(PAGE as usize) {
            self.asm.test(qword_ptr(rsp - below as i32), rax)?;
        }
        self.asm.sub(rsp, self.deepest as i32)?;
        self.asm.and(rsp, -64)?;
        let arguments =
            [(CALLER, rax), (BASES, rdi), (EXTENTS, rsi), (BEGINS, rdx), (STEPS, rcx), (NUMBERS, r8), (STREAM, r9)];
        for (offset, register) in arguments {
            let place = frame(offset);
            self.asm.mov(place, register)?;
        }
        for index in 0..self.kernel.accesses.len() {
            let cursor = frame(self.layout.cursors[index]);
            self.asm.mov(rax, ptr(rdi + (index * 8) as i32))?;
            self.asm.mov(cursor, rax)?;
        }
        let axes = self.kernel.axes.len();
        for index in 0..self.kernel.accesses.len() {
            let size = self.kernel.accesses[index].dtype.size() as i32;
            for axis in 0..axes {
                if let Some(offset) = self.layout.steps[index][axis] {
                    let place = frame(offset);
                    self.asm.imul_3(rax, qword_ptr(rcx + ((index * axes + axis) * 8) as i32), size)?;
                    self.asm.mov(place, rax)?;
                }
            }
        }
        for axis in 0..axes {
            let counter = frame(self.layout.counters[axis]);
            self.asm.mov(qword_ptr(counter), 0)?;
        }
        Ok(())
    }

    /// The extent of an axis, in `rax`.
    fn extent(&mut self, axis: AxisId) -> Done {
        let extents = frame(EXTENTS);
        self.asm.mov(rax, extents)?;
        self.asm.mov(rax, ptr(rax + (axis.0 * 8) as i32))?;
        Ok(())
    }

    /// Loops over axes, one position at a time.
    fn loops(&mut self, axes: &[AxisId], inner: &mut dyn FnMut(&mut Self) -> Done) -> Done {
        let Some((&axis, rest)) = axes.split_first() else { return inner(self) };
        let counter = frame(self.layout.counters[axis.0 as usize]);
        let (mut again, mut done) = (self.asm.create_label(), self.asm.create_label());
        self.asm.mov(qword_ptr(counter), 0)?;
        self.extent(axis)?;
        self.asm.test(rax, rax)?;
        self.asm.jle(done)?;
        self.asm.set_label(&mut again)?;
        self.loops(rest, inner)?;
        self.move_cursors(axis, Steps::Forward(1))?;
        self.extent(axis)?;
        self.asm.mov(rcx, counter)?;
        self.asm.inc(rcx)?;
        self.asm.mov(counter, rcx)?;
        self.asm.cmp(rcx, rax)?;
        self.asm.jl(again)?;
        self.move_cursors(axis, Steps::Back)?;
        self.asm.set_label(&mut done)?;
        self.asm.mov(qword_ptr(counter), 0)?;
        Ok(())
    }

    /// Loops over the rows that lie side by side.
    fn tiles(&mut self, axis: AxisId) -> Done {
        let counter = frame(self.layout.counters[axis.0 as usize]);
        let lanes = self.shape.lanes as i32;
        let (mut again, mut rest, mut done) =
            (self.asm.create_label(), self.asm.create_label(), self.asm.create_label());
        self.asm.mov(qword_ptr(counter), 0)?;
        if self.blocks > 1 {
            let all = lanes * self.blocks as i32;
            let mut blocks = self.asm.create_label();
            self.asm.set_label(&mut blocks)?;
            self.extent(axis)?;
            self.asm.mov(rcx, counter)?;
            self.asm.add(rcx, all)?;
            self.asm.cmp(rcx, rax)?;
            self.asm.jg(again)?;
            self.blocked_phases(axis)?;
            self.move_cursors(axis, Steps::Forward(all))?;
            self.asm.add(qword_ptr(counter), all)?;
            self.asm.jmp(blocks)?;
        }
        self.asm.set_label(&mut again)?;
        self.extent(axis)?;
        self.asm.mov(rcx, counter)?;
        self.asm.add(rcx, lanes)?;
        self.asm.cmp(rcx, rax)?;
        self.asm.jg(rest)?;
        self.phases(Count::Full)?;
        self.move_cursors(axis, Steps::Forward(lanes))?;
        self.asm.add(qword_ptr(counter), lanes)?;
        self.asm.jmp(again)?;
        self.asm.set_label(&mut rest)?;
        self.extent(axis)?;
        self.asm.sub(rax, counter)?;
        self.asm.test(rax, rax)?;
        self.asm.jle(done)?;
        self.set_count()?;
        self.phases(Count::Rest)?;
        self.asm.set_label(&mut done)?;
        self.move_cursors(axis, Steps::Back)?;
        self.asm.mov(qword_ptr(counter), 0)?;
        Ok(())
    }

    /// Moves all accesses along an axis, forward by some positions or back by as many as its counter tells.
    fn move_cursors(&mut self, axis: AxisId, steps: Steps) -> Done {
        for index in 0..self.kernel.accesses.len() {
            let access = &self.kernel.accesses[index];
            let known = access.step(axis).as_int();
            if known == Some(0) {
                continue;
            }
            let size = access.dtype.size() as i32;
            let cursor = frame(self.layout.cursors[index]);
            match (steps, self.layout.steps[index][axis.0 as usize]) {
                (Steps::Forward(times), None) => {
                    self.asm.add(qword_ptr(cursor), known.unwrap_or(0) as i32 * size * times)?;
                    continue;
                }
                (Steps::Forward(times), Some(_)) => {
                    self.step_bytes(pyrite_loops::AccessId(index as u32), axis)?;
                    if times != 1 {
                        self.asm.imul_3(rcx, rcx, times)?;
                    }
                }
                (Steps::Back, _) => {
                    self.step_bytes(pyrite_loops::AccessId(index as u32), axis)?;
                    let counter = frame(self.layout.counters[axis.0 as usize]);
                    self.asm.imul_2(rcx, counter)?;
                    self.asm.neg(rcx)?;
                }
            }
            self.asm.add(cursor, rcx)?;
        }
        Ok(())
    }

    /// Runs all phases for a row, or for as many as lie side by side.
    fn phases(&mut self, count: Count) -> Done {
        for number in 0..self.kernel.phases.len() {
            self.phase(number, count)?;
        }
        Ok(())
    }

    /// How many vectors of rows are taken together: more than one if a phase can reduce them side by side.
    fn choose_blocks(&self, lane: AxisId) -> usize {
        let registers = if self.is_wide() { 30 } else { 14 };
        let mut blocks = 0;
        for number in 0..self.kernel.phases.len() {
            if let Some(most) = self.phase_blocks(number, lane) {
                let room = registers / 2 / most.max(1);
                let fits = [8, 4, 2].into_iter().find(|b| *b <= room).unwrap_or(1);
                blocks = if blocks == 0 { fits } else { blocks.min(fits) };
            }
        }
        blocks.max(1)
    }

    /// How many accumulators a phase has, if it can reduce several vectors of rows side by side.
    fn phase_blocks(&self, number: usize, lane: AxisId) -> Option<usize> {
        let phase = &self.kernel.phases[number];
        if phase.axes.is_empty() || phase.reduces.is_empty() || phase.is_ordered() {
            return None;
        }
        let region = lower::region(self.kernel, number, &self.shape, &self.layout, Count::Full, RowGrouping::Blocks);
        takes_blocks(&region, self.kernel, lane).then(|| self.layout.totals[number].len())
    }

    /// Runs all phases for several vectors of rows.
    fn blocked_phases(&mut self, lane: AxisId) -> Done {
        let counter = frame(self.layout.counters[lane.0 as usize]);
        let (lanes, blocks) = (self.shape.lanes as i32, self.blocks);
        for number in 0..self.kernel.phases.len() {
            if self.phase_blocks(number, lane).is_some() {
                for block in 0..blocks {
                    self.layout.select_block(block);
                    self.start_totals(number)?;
                }
                self.layout.select_block(0);
                let axes = self.kernel.phases[number].axes.clone();
                let (last, outer) = axes.split_last().expect("only phases with axes reduce blocks");
                self.loops(outer, &mut |e| e.innermost(number, *last, Traversal::Blocks, Count::Full))?;
                for block in 0..blocks {
                    self.layout.select_block(block);
                    self.compensate_sums(number)?;
                }
                self.layout.select_block(0);
                continue;
            }
            for block in 0..blocks {
                self.layout.select_block(block);
                self.phase(number, Count::Full)?;
                self.move_cursors(lane, Steps::Forward(lanes))?;
                self.asm.add(qword_ptr(counter), lanes)?;
            }
            self.layout.select_block(0);
            self.move_cursors(lane, Steps::Forward(-lanes * blocks as i32))?;
            self.asm.sub(qword_ptr(counter), lanes * blocks as i32)?;
        }
        Ok(())
    }

    /// The region of a phase that takes one position of all blocks at a time.
    fn blocked_body(&mut self, number: usize, lane: Option<AxisId>) -> Done {
        let size = self.layout.size();
        let mut regions = Vec::new();
        for block in 0..self.blocks {
            self.layout.select_block(block);
            regions.push(lower::region(
                self.kernel,
                number,
                &self.shape,
                &self.layout,
                Count::Full,
                RowGrouping::Blocks,
            ));
        }
        self.layout.select_block(0);
        let accumulators: Vec<(Kind, Vec<u32>)> = self.layout.totals[number]
            .clone()
            .into_iter()
            .map(|(_, kind)| (kind, (0..self.blocks).map(|_| self.layout.vector()).collect()))
            .collect();
        let plan = LoopForm {
            run: Traversal::Blocks,
            count: Count::Full,
            copies: self.blocks,
            lane,
            accumulators: &accumulators,
            totals: Some(number),
            stores: Stores::Cached,
            tiling: None,
            rounds: Rounds::Counted,
            start: Start::Begun,
        };
        self.regions(&regions.iter().collect::<Vec<_>>(), &plan)?;
        self.deepest = self.deepest.max(self.layout.size());
        self.layout.truncate(size);
        Ok(())
    }

    fn phase(&mut self, number: usize, count: Count) -> Done {
        let phase = &self.kernel.phases[number];
        if self.start(number) == Start::Begun {
            self.start_totals(number)?;
        }
        match (self.shape.rows, phase.axes.split_last()) {
            (None, None) => {
                self.set_known_count(1)?;
                self.body(number, Traversal::Once, Count::Rest)?;
            }
            (Some(_), None) => self.body(number, Traversal::Once, count)?,
            (rows, Some((&last, outer))) => {
                let run = if rows.is_some() { Traversal::Steps } else { Traversal::Lanes };
                self.loops(outer, &mut |e| e.innermost(number, last, run, count))?;
            }
        }
        self.compensate_sums(number)?;
        if self.shape.rows.is_none() {
            self.join_lanes(number)?;
        }
        Ok(())
    }

    /// The innermost loop of a phase.
    fn innermost(&mut self, number: usize, axis: AxisId, run: Traversal, count: Count) -> Done {
        let counter = frame(self.layout.counters[axis.0 as usize]);
        let phase = &self.kernel.phases[number];
        let sums = phase
            .reduces
            .iter()
            .any(|r| matches!(r.op, Reduction::Sum | Reduction::Prod) && phase.code.ty(r.value).is_float());
        let chunk = self.chunk();
        let known = self.known_extent(axis).filter(|extent| !sums || *extent <= i64::from(chunk));
        if let Some(extent) = known {
            self.asm.mov(r10d, extent as i32)?;
        } else {
            self.extent(axis)?;
            self.asm.mov(r10, rax)?;
        }
        self.asm.xor(r11d, r11d)?;
        if run == Traversal::Lanes {
            let tiled = self.squares(number, axis)?;
            if let (Some(extent), false) = (known, tiled) {
                return self.known_body(number, extent);
            }
        }
        if !sums || phase.is_ordered() || known.is_some() {
            return self.body(number, run, count);
        }
        let (mut again, mut done) = (self.asm.create_label(), self.asm.create_label());
        self.asm.set_label(&mut again)?;
        self.extent(axis)?;
        self.asm.lea(r10, ptr(r11 + chunk))?;
        self.asm.cmp(r10, rax)?;
        self.asm.cmovg(r10, rax)?;
        self.asm.cmp(r11, r10)?;
        self.asm.jge(done)?;
        self.body(number, run, count)?;
        self.asm.jmp(again)?;
        self.asm.set_label(&mut done)?;
        self.asm.mov(qword_ptr(counter), 0)?;
        Ok(())
    }

    /// After how many positions of an innermost loop sums are put aside.
    pub(super) fn chunk(&self) -> i32 {
        if self.shape.rows.is_none() { CHUNK } else { STEP_CHUNK }
    }

    /// The squares of a phase that has some: all that begin at this position of the axis around the lanes. Then `r11`
    /// is where they end, at this position too if it lies within one. Says whether there are any.
    fn squares(&mut self, number: usize, axis: AxisId) -> Result<bool, EmitError> {
        let size = self.layout.size();
        let Some(tiling) = Tiling::of(self.kernel, number, &self.shape, &mut self.layout) else { return Ok(false) };
        let rows = RowGrouping::Tile(&tiling);
        let region = lower::region(self.kernel, number, &self.shape, &self.layout, Count::Full, rows);
        let calls = region.ops.iter().any(|op| matches!(op, VectorOp::Call { .. } | VectorOp::Patch { .. }));
        let tiled = !calls && weight(&region) <= HEAVIEST;
        if tiled {
            let lanes = self.shape.lanes;
            let (mut within, mut plain) = (self.asm.create_label(), self.asm.create_label());
            let counter = frame(self.layout.counters[tiling.across.0 as usize]);
            self.extent(tiling.across)?;
            self.asm.and(rax, -(lanes as i32))?;
            self.asm.mov(rcx, counter)?;
            self.asm.cmp(rcx, rax)?;
            self.asm.jge(plain)?;
            self.asm.test(rcx, lanes as i32 - 1)?;
            self.asm.jnz(within)?;
            let (run, count, lane) = (Traversal::Tile, Count::Full, Some(axis));
            let plan = |stores| LoopForm {
                run,
                count,
                copies: lanes,
                lane,
                accumulators: &[],
                totals: None,
                stores,
                tiling: Some(&tiling),
                rounds: Rounds::Counted,
                start: Start::Begun,
            };
            if streams(self.kernel, number).is_empty() {
                self.region(&region, &plan(Stores::Cached))?;
            } else {
                let mut cached = self.asm.create_label();
                self.asm.cmp(qword_ptr(frame(STREAM)), 0)?;
                self.asm.je(cached)?;
                self.region(&region, &plan(Stores::Streamed))?;
                self.asm.jmp(within)?;
                self.asm.set_label(&mut cached)?;
                self.region(&region, &plan(Stores::Cached))?;
            }
            self.asm.set_label(&mut within)?;
            self.extent(axis)?;
            self.asm.mov(r10, rax)?;
            self.asm.and(rax, -(lanes as i32))?;
            self.asm.mov(r11, rax)?;
            self.asm.set_label(&mut plain)?;
            self.asm.nop()?;
        }
        self.deepest = self.deepest.max(self.layout.size());
        self.layout.truncate(size);
        Ok(tiled)
    }

    /// The regions of a phase: from `r11` to `r10`, or once.
    fn body(&mut self, number: usize, run: Traversal, count: Count) -> Done {
        let lane = self.shape.rows.or(self.kernel.phases[number].axes.last().copied());
        if run == Traversal::Blocks {
            return self.blocked_body(number, lane);
        }
        let passes: Vec<(Count, bool)> = match run {
            Traversal::Lanes => vec![(Count::Full, true), (Count::Rest, false)],
            // What takes its turn has one accumulator, which goes through all positions.
            Traversal::Steps if self.kernel.phases[number].is_ordered() => vec![(count, false)],
            Traversal::Steps => vec![(count, true), (count, false)],
            Traversal::Once | Traversal::Blocks | Traversal::Tile => vec![(count, false)],
        };
        for (count, repeated) in passes {
            let region = lower::region(self.kernel, number, &self.shape, &self.layout, count, RowGrouping::Single);
            let copies = if repeated { self.copies(number, &region) } else { 1 };
            let (rounds, start) = (Rounds::Counted, Start::Begun);
            let plan = LoopForm {
                run,
                count,
                copies,
                lane,
                accumulators: &[],
                totals: None,
                stores: Stores::Cached,
                tiling: None,
                rounds,
                start,
            };
            self.pass(number, &region, plan, repeated)?;
        }
        Ok(())
    }

    /// How many copies of its body a loop gets.
    pub(super) fn copies(&self, number: usize, region: &Region) -> usize {
        let weight = weight(region);
        let totals = self.layout.totals[number].len();
        let single = region.ops.iter().any(|op| matches!(op, VectorOp::Call { .. }) || op.scatters());
        let registers = if self.is_wide() { 30 } else { 14 };
        let wanted = match weight {
            _ if single => 1,
            0..=12 => 4,
            13..=32 => 2,
            _ if totals > 0 && weight <= 64 => 2,
            _ => 1,
        };
        let room = |copies: usize| totals * copies <= registers / 2;
        [wanted, 2, 1].into_iter().find(|copies| *copies <= wanted && room(*copies)).unwrap_or(1)
    }

    /// A region with its accumulators. What takes many positions has its own, what takes the rest uses the totals. Where
    /// results may go past the caches there are two of it.
    pub(super) fn pass(&mut self, number: usize, region: &Region, plan: LoopForm<'_>, repeated: bool) -> Done {
        let streamed = plan.run == Traversal::Lanes && repeated && !streams(self.kernel, number).is_empty();
        if !streamed {
            return self.pass_stored(number, region, plan, repeated);
        }
        let (mut cached, mut done) = (self.asm.create_label(), self.asm.create_label());
        self.asm.cmp(qword_ptr(frame(STREAM)), 0)?;
        self.asm.je(cached)?;
        self.pass_stored(number, region, LoopForm { stores: Stores::Streamed, ..plan }, repeated)?;
        self.asm.jmp(done)?;
        self.asm.set_label(&mut cached)?;
        self.pass_stored(number, region, plan, repeated)?;
        self.asm.set_label(&mut done)?;
        self.asm.nop()?;
        Ok(())
    }

    fn pass_stored(&mut self, number: usize, region: &Region, plan: LoopForm<'_>, repeated: bool) -> Done {
        let size = self.layout.size();
        let totals = self.layout.totals[number].clone();
        if !repeated {
            let accumulators: Vec<(Kind, Vec<u32>)> =
                totals.into_iter().map(|(slot, kind)| (kind, vec![slot])).collect();
            return self.region(region, &LoopForm { accumulators: &accumulators, ..plan });
        }
        let accumulators: Vec<(Kind, Vec<u32>)> = totals
            .into_iter()
            .map(|(_, kind)| (kind, (0..plan.copies).map(|_| self.layout.vector()).collect()))
            .collect();
        self.region(region, &LoopForm { accumulators: &accumulators, totals: Some(number), ..plan })?;
        self.deepest = self.deepest.max(self.layout.size());
        self.layout.truncate(size);
        Ok(())
    }
}

/// The accesses whose stores a phase may send past the caches, if all of its stores can go there: rows of 32-bit or
/// 64-bit elements of buffers that the kernel does not read.
pub(super) fn streams(kernel: &Kernel, number: usize) -> Vec<AccessId> {
    let phase = &kernel.phases[number];
    let read = kernel.read();
    let mut found = Vec::new();
    for inst in phase.code.insts().iter().filter(|inst| inst.writes()) {
        let (Inst::Store { access: id, .. }, Some(lane)) = (inst, phase.axes.last()) else { return Vec::new() };
        let access = kernel.access(*id);
        if access.step(*lane).as_int() != Some(1) || access.dtype.size() < 4 || read.contains(&access.buffer) {
            return Vec::new();
        }
        found.push(*id);
    }
    found
}

/// How far accesses are moved.
#[derive(Clone, Copy)]
enum Steps {
    Forward(i32),
    Back,
}
